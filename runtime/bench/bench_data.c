#include "bench_data.h"
#include "bench_lists.h"
#include "bench_pages.h"
#include "../../generator/emit_read.h"
#include "../verify/verify_data.h"
#include <stdlib.h>
#include <string.h>

static const tensor_name cached[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { CACHED_COUNT = sizeof cached / sizeof cached[0] };

/* Elements that are made one by one; arrays repeat them. Odd, so that no two tokens near each other agree. */
enum { PATTERN_ELEMENTS = (1 << 18) + 37 };

static bool is_cached(tensor_name name) {
  for (int i = 0; i < CACHED_COUNT; i++)
    if (cached[i] == name) return true;
  return false;
}

static bool is_scale(tensor_name name) {
  return name == TENSOR_K_SCALE || name == TENSOR_V_SCALE;
}

/* 256 bytes: what allocators of devices give. */
static size_t align(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

static hd_status out_of_memory(size_t bytes, diags *errors) {
  diags_errorf(errors, "memory", NULL, "out of memory for the %zu bytes of a shape's caches", bytes);
  return HD_OUT_OF_MEMORY;
}

/* Normal numbers, or for scales numbers between `factor` / 2 and `factor`, repeated over the array. */
static bool fill_array(random_state *r, const tensor *t, void *to, double factor, bool scale) {
  size_t element = (size_t)dtype_bytes(t->dtype), bytes = tensor_bytes(t);
  size_t pattern = PATTERN_ELEMENTS * element < bytes ? PATTERN_ELEMENTS * element : bytes;
  for (size_t i = 0; i < pattern / element; i++)
    dtype_encode(t->dtype, scale ? factor * (0.5 + 0.5 * random_unit(r)) : factor * random_normal(r),
                 (unsigned char *)to + i * element);
  for (size_t done = pattern; done < bytes;) {
    size_t count = pattern < bytes - done ? pattern : bytes - done;
    memcpy((char *)to + done, to, count);
    done += count;
  }
  return true;
}

/* A format with scales has its values spread over its range, and the scale brings them back to 1. Six is as
 * far as random_normal goes. */
static double spread_of(const contract *c, dtype stored) {
  return c->scale.granularity == SCALE_NONE ? 1.0 : dtype_max(stored) / 6;
}

static void fill_all(bench_data *d, random_state *r) {
  const contract *c = d->contract;
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    const tensor *t = &d->host.by_name[name];
    void *to = (void *)(uintptr_t)t->data;
    dtype stored = name == TENSOR_K_CACHE || name == TENSOR_K_SCALE ? c->kv.k_dtype : c->kv.v_dtype;
    if (!d->host.present[name]) continue;
    if (is_scale(name))
      fill_array(r, t, to, 1.3 / spread_of(c, stored), true);
    else if (is_cached(name))
      fill_array(r, t, to, spread_of(c, stored), false);
    else if (name == TENSOR_Q || name == TENSOR_SINKS)
      fill_array(r, t, to, 1.0, false);
  }
  scale_number *const numbers[] = {&d->host.k_scale, &d->host.v_scale};
  for (int i = 0; i < 2; i++)
    if (bind_takes_number(c, i == 0))
      *numbers[i] = (scale_number){true, (float)(1.0 / spread_of(c, i == 0 ? c->kv.k_dtype : c->kv.v_dtype))};
}

static void set_sizes(bench_data *d, const bench_deal *deal, int rows) {
  const contract *c = d->contract;
  d->dims[DIM_SEQS] = d->dims[DIM_TABLE_ROWS] = deal->shape.seqs;
  d->dims[DIM_LISTED] = bench_listed(c);
  d->dims[DIM_ROWS] = rows;
  /* A cache without h has one kv head. */
  d->dims[DIM_KV_HEADS] = layout_has_axis(&c->kv.k, AXIS_H) ? deal->shape.kv_heads : 1;
  for (int64_t i = 0; i < deal->shape.seqs; i++) {
    if (d->lengths[i] > d->longest) d->longest = d->lengths[i];
    d->tokens += bench_seen(c, rows, d->lengths[i]);
  }
  bench_pages_size(d, deal->capacity);
  read_bytes bytes = read_bytes_of(c);
  d->bytes = d->tokens * (d->dims[DIM_KV_HEADS] * bytes.token_head + bytes.token);
}

/* Shapes of all tensors, the slab first. */
static hd_status allocate(bench_data *d, diags *errors) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    if (bind_role(d->contract, OPERATION_DECODE, name) == ROLE_NONE || name == TENSOR_WORKSPACE) continue;
    tensor *t = &d->host.by_name[name];
    d->host.present[name] = bind_tensor(d->contract, name, d->dims, t);
    if (!d->host.present[name] || is_cached(name)) continue;
    d->memory[name] = calloc(tensor_bytes(t) + 16, 1);
    if (!d->memory[name]) return out_of_memory(tensor_bytes(t), errors);
    t->data = (uint64_t)(uintptr_t)d->memory[name];
  }
  for (int i = 0; i < CACHED_COUNT; i++) {
    if (!d->host.present[cached[i]]) continue;
    d->offset[cached[i]] = d->slab_bytes;
    d->slab_bytes += align(tensor_bytes(&d->host.by_name[cached[i]]));
  }
  d->slab = malloc(d->slab_bytes + 256);
  if (!d->slab) return out_of_memory(d->slab_bytes, errors);
  for (int i = 0; i < CACHED_COUNT; i++)
    d->host.by_name[cached[i]].data = (uint64_t)(uintptr_t)(d->slab + d->offset[cached[i]]);
  return HD_OK;
}

hd_status bench_rows(const contract *c, int asked, int *out_rows, diags *errors) {
  int most = contract_most_rows(c);
  *out_rows = asked ? asked : most;
  if (*out_rows >= 1 && *out_rows <= most) return HD_OK;
  if (contract_rows_are_sequences(c))
    diags_errorf(errors, "bench.rows", "select",
                 "each query row has a length or list of its own and counts as a sequence: a shape's "
                 "sequences are rows, and %d rows of one are not to be had",
                 asked);
  else
    diags_errorf(errors, "bench.rows", "query.rows", "the contract takes %s%d query row%s a sequence, not %d",
                 most > 1 ? "1 to " : "", most, most > 1 ? "s" : "", asked);
  return HD_DECLINED;
}

hd_status bench_data_init(bench_data *d, const contract *c, const bench_deal *deal, diags *errors) {
  *d = (bench_data){.contract = c};
  random_state r = {deal->seed};
  int rows;
  hd_status status = bench_rows(c, deal->rows, &rows, errors);
  if (status != HD_OK) return status;
  const size_t bytes = (size_t)deal->shape.seqs * sizeof *d->lengths;
  d->lengths = calloc((size_t)deal->shape.seqs, sizeof *d->lengths);
  if (!d->lengths) return out_of_memory(bytes, errors);
  bench_lengths(&deal->shape, deal->ragged, d->lengths);
  set_sizes(d, deal, rows);
  status = allocate(d, errors);
  if (status == HD_OK) {
    memset(d->slab, 0, d->slab_bytes);
    if (d->memory[TENSOR_LENGTHS]) memcpy(d->memory[TENSOR_LENGTHS], d->lengths, bytes);
    fill_all(d, &r);
    if (!bench_pages_deal(d, &r)) status = out_of_memory((size_t)d->dims[DIM_PAGES] * 4, errors);
  }
  /* The strides, and a check that everything fits together. */
  if (status == HD_OK) status = bind_dims(c, OPERATION_DECODE, &d->host, d->dims, errors);
  d->dims[DIM_TOKENS] = d->tokens;
  if (status != HD_OK) bench_data_finish(d);
  return status;
}

void bench_data_finish(bench_data *d) {
  for (int i = 0; i < TENSOR_COUNT; i++)
    free(d->memory[i]);
  free(d->lengths);
  free(d->slab);
  *d = (bench_data){0};
}

hd_status bench_pool_init(bench_pool *p, session *s, const bench_data *d, int copies, diags *errors) {
  const device_vtable *v = s->device->vtable;
  *p = (bench_pool){.session = s, .copies = copies, .stride = d->slab_bytes, .data = d};
  tensors fixed = d->host;
  for (int i = 0; i < CACHED_COUNT; i++)
    fixed.present[cached[i]] = false;
  hd_status status = session_upload(s, d->contract, OPERATION_DECODE, &fixed, &p->fixed, errors);
  if (status != HD_OK) return status;
  status = v->allocate(s->device, p->stride * (size_t)copies + 256, &p->base, errors);
  for (int i = 0; status == HD_OK && i < copies; i++)
    status = v->copy_in(s->device, NULL, p->base + p->stride * (size_t)i, d->slab, d->slab_bytes, errors);
  if (status != HD_OK) bench_pool_finish(p);
  return status;
}

void bench_pool_finish(bench_pool *p) {
  diags ignored;
  diags_init(&ignored);
  if (p->base) p->session->device->vtable->release(p->session->device, p->base, &ignored);
  session_release(p->session, &p->fixed);
  diags_finish(&ignored);
  *p = (bench_pool){0};
}

tensors bench_pool_tensors(const bench_pool *p, int index) {
  tensors t = p->fixed;
  device_pointer copy = p->base + p->stride * (size_t)(index % p->copies);
  for (int i = 0; i < CACHED_COUNT; i++) {
    t.present[cached[i]] = p->data->host.present[cached[i]];
    t.by_name[cached[i]] = p->data->host.by_name[cached[i]];
    t.by_name[cached[i]].data = copy + p->data->offset[cached[i]];
  }
  return t;
}
