/* Claims about strides on the (emulated) device: kernels read and write padded caches as they do packed ones,
 * and touch nothing in between. */
#include "../../runtime/session.h"
#include "../../runtime/launch/strides.h"
#include "../../runtime/verify/verify_data.h"
#include "../example_contract.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#ifdef HEDDLE_WITH_EMU

static const tensor_name paged[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { PAGED = 4, DIM = 64 };

static contract contract_of(const char *k, const char *v, const char *scale, dtype type) {
  contract c = example_contract(16, DIM, DIM);
  c.query.heads_per_kv = 4;
  c.kv.k_dtype = c.kv.v_dtype = type;
  c.kv.k = example_layout(k, 16, DIM);
  c.kv.v = example_layout(v, 16, DIM);
  if (scale) {
    c.scale.granularity = SCALE_TOKEN_HEAD;
    c.scale.k = c.scale.v = example_layout(scale, 16, DIM);
    c.scale.writer.zero_value = 1.0;
  }
  c.output.lse = true;
  return c;
}

/* Codes of a head, and then its scale. */
static contract inline_contract(void) {
  contract c = contract_of("b s h d", "b s h d", "b s h", DTYPE_FP8_E4M3);
  c.kv.k.factors[3].pad = c.kv.v.factors[3].pad = 4;
  c.scale.inside = true;
  c.scale.k_at = c.scale.v_at = DIM;
  return c;
}

static const layout *layout_of(const contract *c, tensor_name name) {
  static layout record; /* with its scale, that is */
  record = example_layout("b s h d", 16, DIM + 4);
  if (c->scale.inside) return &record;
  return name == TENSOR_K_CACHE   ? &c->kv.k
         : name == TENSOR_V_CACHE ? &c->kv.v
         : name == TENSOR_K_SCALE ? &c->scale.k
                                  : &c->scale.v;
}

/* Page and head strides of a padded tensor: each tensor's gaps are its own. */
static void padded_strides(const layout *l, tensor_name name, int64_t pages, int64_t heads, int64_t *b,
                           int64_t *h) {
  int64_t packed_b, packed_h, gap = 16 * (1 + (int64_t)name);
  layout_packed_strides(l, pages, heads, &packed_b, &packed_h);
  bool heads_outside = l->factors[0].axis == AXIS_H;
  *h = packed_h + gap;
  *b = packed_b / packed_h * *h + 2 * gap;
  if (!heads_outside) return;
  *b = packed_b + gap;
  *h = pages * *b + 2 * gap;
}

/* `packed` spread out into memory of its own, filled with 0xee between its elements. The caller frees data.
 */
static tensor spread(const tensor *packed, const layout *l, tensor_name name, int64_t pages, int64_t heads) {
  tensor t = *packed;
  int64_t b, h, b0, h0, bytes = dtype_bytes(t.dtype), channels = l->size[AXIS_D] ? l->size[AXIS_D] : 1;
  padded_strides(l, name, pages, heads, &b, &h);
  layout_packed_strides(l, pages, heads, &b0, &h0);
  t.strided = true;
  for (int i = 0; i < t.rank; i++) {
    layout_stride s = layout_factor_stride(l, i);
    axis a = l->factors[i].axis;
    t.strides[i] = a == AXIS_B ? b : a == AXIS_H ? h : s.elements * (s.times_heads ? heads * h : 1);
  }
  unsigned char *to = malloc(tensor_bytes(&t));
  const unsigned char *from = (const unsigned char *)(uintptr_t)packed->data;
  memset(to, 0xee, tensor_bytes(&t));
  for (int64_t page = 0; page < pages; page++)
    for (int64_t head = 0; head < heads; head++)
      for (int64_t slot = 0; slot < 16; slot++)
        for (int64_t d = 0; d < channels; d++)
          memcpy(to + bytes * layout_offset(l, b, h, heads, page, head, slot, d),
                 from + bytes * layout_offset(l, b0, h0, heads, page, head, slot, d), (size_t)bytes);
  t.data = (uint64_t)(uintptr_t)to;
  return t;
}

/* All paged tensors of `from` spread out. */
static tensors spread_all(const contract *c, const verify_data *d, const tensors *from) {
  tensors t = *from;
  for (int i = 0; i < PAGED; i++)
    if (t.present[paged[i]])
      t.by_name[paged[i]] = spread(&from->by_name[paged[i]], layout_of(c, paged[i]), paged[i],
                                   d->sizes[DIM_PAGES], d->sizes[DIM_KV_HEADS]);
  return t;
}

static void release_all(const tensors *t) {
  for (int i = 0; i < PAGED; i++)
    if (t->present[paged[i]]) free((void *)(uintptr_t)t->by_name[paged[i]].data);
}

/* Binds, launches, and brings back what is written. */
static void launch(session *s, const contract *c, operation o, const tensors *host, int64_t splits) {
  session_kernel k = {0};
  tensors on_device;
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  const variant v = {0};
  hd_status status = bind_dims(c, o, host, dims, &d);
  if (status == HD_OK) status = session_load(s, c, "strided", o, &v, &k, &d);
  if (status == HD_OK) status = session_upload(s, c, o, host, &on_device, &d);
  cr_assert_eq(status, HD_OK, "%s", d.count ? d.items[0].message : "");
  dims[DIM_SPLITS] = splits;
  status = session_launch(s, &k, &on_device, dims, 0.125f, &d);
  for (int i = 0; status == HD_OK && i < TENSOR_COUNT; i++) {
    tensor_role role = bind_role(c, o, (tensor_name)i);
    if (host->present[i] && (role == ROLE_OUTPUT || role == ROLE_UPDATED))
      status = session_download(s, &on_device, host, (tensor_name)i, &d);
  }
  cr_assert_eq(status, HD_OK, "%s", d.count ? d.items[0].message : "");
  session_release(s, &on_device);
  session_unload(s, &k);
  diags_finish(&d);
}

static void same_bytes(const tensor *a, const tensor *b, const char *what) {
  cr_assert_arr_eq((const void *)(uintptr_t)a->data, (const void *)(uintptr_t)b->data, tensor_bytes(a), "%s",
                   what);
}

/* Writes and decodes on packed and on padded caches: the same in every byte. */
static void padded_is_packed(const char *device_name, const contract *c) {
  const verify_case from = {.name = "strided",
                            .kv_heads = 3,
                            .length_count = 4,
                            .lengths = {{0, 0, 0}, {0, 0, 1}, {2, 0, 0}, {5, 0, 3}}};
  session s;
  verify_data data;
  random_state r = {3};
  diags d;
  diags_init(&d);
  hd_status status = session_open(device_name, COMPILER_LLVM, NULL, &s, &d);
  cr_assert_eq(status, HD_OK, "%s", d.count ? d.items[0].message : "");
  contract resolved = contract_resolve(c, s.target->fp8);
  cr_assert_eq(verify_data_init(&data, &resolved, &from, 64, &r, &d), HD_OK);

  tensors padded = spread_all(&resolved, &data, &data.write);
  launch(&s, &resolved, OPERATION_WRITE, &data.write, 1);
  launch(&s, &resolved, OPERATION_WRITE, &padded, 1);
  tensors wanted = spread_all(&resolved, &data, &data.write);
  for (int i = 0; i < PAGED; i++)
    if (padded.present[paged[i]])
      same_bytes(&wanted.by_name[paged[i]], &padded.by_name[paged[i]], tensor_name_text(paged[i]));
  release_all(&wanted);
  release_all(&padded);

  for (int64_t splits = 1; splits <= 3; splits += 2) {
    launch(&s, &resolved, OPERATION_DECODE, &data.decode, splits);
    padded = spread_all(&resolved, &data, &data.decode);
    tensor *out = &padded.by_name[TENSOR_OUT], *lse = &padded.by_name[TENSOR_LSE];
    out->data = (uint64_t)(uintptr_t)calloc(1, tensor_bytes(out));
    lse->data = (uint64_t)(uintptr_t)calloc(1, tensor_bytes(lse));
    launch(&s, &resolved, OPERATION_DECODE, &padded, splits);
    same_bytes(&data.decode.by_name[TENSOR_OUT], out, "out");
    same_bytes(&data.decode.by_name[TENSOR_LSE], lse, "lse");
    free((void *)(uintptr_t)out->data);
    free((void *)(uintptr_t)lse->data);
    release_all(&padded);
  }
  verify_data_finish(&data);
  session_close(&s);
  diags_finish(&d);
}

Test(strided, padded_caches_are_read_and_written_as_packed_ones_on_every_target) {
  const char *const devices[] = {"emu:gfx942", "emu:gfx950", "emu:gfx1201", "emu:gfx1250"};
  contract c = contract_of("b h d/16 s d%16", "b h s/16 d s%16", "b h s", DTYPE_FP8_E4M3);
  for (int i = 0; i < 4; i++)
    padded_is_packed(devices[i], &c);
}

/* K and V each with page and head strides of their own, and their scales with them. */
Test(strided, scales_inside_pages_step_with_their_own_cache_on_every_target) {
  const char *const devices[] = {"emu:gfx942", "emu:gfx950", "emu:gfx1201", "emu:gfx1250"};
  contract c = inline_contract();
  for (int i = 0; i < 4; i++)
    padded_is_packed(devices[i], &c);
}

Test(strided, in_every_order_of_pages_heads_and_slots) {
  contract all[] = {
      contract_of("b s h d", "b s h d", NULL, DTYPE_BF16),
      contract_of("b h s d", "b s h d", NULL, DTYPE_FP16),
      contract_of("h b s d", "b h d s", NULL, DTYPE_BF16),
      contract_of("b s/4 h d s%4", "b h d/16 s d%16", "b s h", DTYPE_FP8_E4M3),
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    padded_is_packed("emu:gfx950", &all[i]);
}

/* A page table cut out of a wider one, whose rest is garbage. */
Test(strided, rows_of_a_page_table_have_their_stride) {
  const verify_case from = {
      .name = "table", .kv_heads = 2, .length_count = 3, .lengths = {{3, 0, 1}, {0, 0, 5}, {2, 0, 0}}};
  contract c = contract_of("b h s d", "b h s d", NULL, DTYPE_BF16);
  session s;
  verify_data data;
  random_state r = {9};
  diags d;
  diags_init(&d);
  cr_assert_eq(session_open("emu:gfx950", COMPILER_LLVM, NULL, &s, &d), HD_OK);
  cr_assert_eq(verify_data_init(&data, &c, &from, 64, &r, &d), HD_OK);
  launch(&s, &c, OPERATION_WRITE, &data.write, 1);
  launch(&s, &c, OPERATION_DECODE, &data.decode, 1);
  tensors wide = data.decode;
  tensor *table = &wide.by_name[TENSOR_PAGE_TABLE], *out = &wide.by_name[TENSOR_OUT];
  const int32_t *from_table = (const int32_t *)(uintptr_t)table->data;
  int64_t width = table->shape[1], row = width + 29;
  int32_t *to_table = malloc((size_t)(table->shape[0] * row) * sizeof *to_table);
  for (int64_t i = 0; i < table->shape[0] * row; i++)
    to_table[i] = i % row < width ? from_table[i / row * width + i % row] : INT32_MIN;
  table->strided = true;
  table->strides[0] = row;
  table->strides[1] = 1;
  table->data = (uint64_t)(uintptr_t)to_table;
  out->data = (uint64_t)(uintptr_t)calloc(1, tensor_bytes(out));
  launch(&s, &c, OPERATION_DECODE, &wide, 1);
  same_bytes(&data.decode.by_name[TENSOR_OUT], out, "out");
  free((void *)(uintptr_t)out->data);
  free(to_table);
  verify_data_finish(&data);
  session_close(&s);
  diags_finish(&d);
}

#endif
