/* Claims about views: which byte each element of a view is, and what can't be viewed. */
#include "../../generator/spec.h"
#include "../../runtime/verify/oracle.h"
#include "../../runtime/launch/strides.h"
#include "../../runtime/match/views.h"
#include "../example_contract.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { PAGES = 3, LONG_PAGE = 128, PAGE = 16, DIM = 32 };

static contract contract_of(const char *k, const char *v, const char *scale, int page) {
  contract c = example_contract(page, DIM, DIM);
  c.query.heads_per_kv = 4;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout(k, page, DIM);
  c.kv.v = example_layout(v, page, DIM);
  if (scale) {
    c.scale.granularity = SCALE_TOKEN_HEAD;
    c.scale.k = c.scale.v = example_layout(scale, page, DIM);
  }
  return c;
}

static contract shuffled(int page) {
  return contract_of("b h d/16 s d%16", "b h s/16 d s%16", "b h s", page);
}

static void put_paged(tensors *t, tensor_name name, dtype type, const layout *l, int64_t heads) {
  tensor *p = &t->by_name[name];
  *p = (tensor){.dtype = type, .data = 4096 * (uint64_t)(1 + name)};
  p->rank = layout_shape(l, PAGES, heads, p->shape);
  t->present[name] = true;
}

static tensors tensors_of(const contract *c, int64_t heads) {
  tensors t = {0};
  put_paged(&t, TENSOR_K_CACHE, c->kv.k_dtype, &c->kv.k, heads);
  put_paged(&t, TENSOR_V_CACHE, c->kv.v_dtype, &c->kv.v, heads);
  if (c->scale.granularity != SCALE_NONE) {
    put_paged(&t, TENSOR_K_SCALE, c->scale.dtype, &c->scale.k, heads);
    put_paged(&t, TENSOR_V_SCALE, c->scale.dtype, &c->scale.v, heads);
  }
  return t;
}

static void make_strided(tensor *t) {
  for (int i = 0; i < t->rank; i++)
    t->strides[i] = tensor_stride(t, i);
  t->strided = true;
}

/* Where element (page, head, slot, channel) of a tensor lies, by its strides alone. */
static int64_t place(const tensor *t, const layout *l, int64_t page, int64_t head, int64_t slot,
                     int64_t channel) {
  int64_t offset = 0;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    int64_t index = f->axis == AXIS_B   ? page
                    : f->axis == AXIS_H ? head
                                        : (f->axis == AXIS_S ? slot : channel) / f->divisor % f->extent;
    cr_assert_lt(index, t->shape[i]);
    offset += index * tensor_stride(t, i);
  }
  return offset;
}

typedef struct pair {
  tensor_name name;
  const layout *from, *to;
  int64_t channels;
} pair;

static int pairs_of(const contract *from, const contract *to, pair out[4]) {
  out[0] = (pair){TENSOR_K_CACHE, &from->kv.k, &to->kv.k, DIM};
  out[1] = (pair){TENSOR_V_CACHE, &from->kv.v, &to->kv.v, DIM};
  if (from->scale.granularity == SCALE_NONE) return 2;
  out[2] = (pair){TENSOR_K_SCALE, &from->scale.k, &to->scale.k, 1};
  out[3] = (pair){TENSOR_V_SCALE, &from->scale.v, &to->scale.v, 1};
  return 4;
}

/* How many elements of a tensor are another byte under the view. */
static int64_t moved(const tensors *t, const view *v, const pair *p, int64_t heads, int long_page) {
  int64_t count = 0, page = v->contract.kv.page;
  const tensor *from = &t->by_name[p->name], *to = &v->tensors.by_name[p->name];
  cr_assert_eq(from->data, to->data, "a view starts where its tensor starts");
  for (int64_t b = 0; b < PAGES; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t s = 0; s < long_page; s++)
        for (int64_t d = 0; d < p->channels; d++) {
          int64_t id = (b * v->parts + s / page) * v->heads + (v->heads > 1 ? h : 0);
          count +=
              place(from, p->from, b, h, s, d) != place(to, p->to, id, v->heads > 1 ? 0 : h, s % page, d);
        }
  return count;
}

static void expect_same_bytes(const contract *c, const tensors *t, const view *v, int64_t heads) {
  pair pairs[4];
  int count = pairs_of(c, &v->contract, pairs);
  for (int i = 0; i < count; i++)
    cr_assert_eq(moved(t, v, &pairs[i], heads, c->kv.page), 0, "%s", tensor_name_text(pairs[i].name));
  cr_assert_eq(v->meaning, VIEW_SAME_BYTES);
}

static void expect_code(hd_status status, diags *d, const char *code, const char *field) {
  cr_assert_eq(status, HD_DECLINED, "expected %s", code);
  cr_assert_geq(d->count, 1);
  cr_assert_str_eq(d->items[0].code, code);
  cr_assert_str_eq(d->items[0].field, field);
  cr_assert(d->items[0].found && d->items[0].allowed);
  diags_finish(d);
}

static hd_status split(const contract *c, const tensors *t, int page, view_meaning wanted, view *out,
                       diags *d) {
  diags_init(d);
  return view_page_split(c, t, page, wanted, out, d);
}

static hd_status collapse(const contract *c, const tensors *t, view *out, diags *d) {
  diags_init(d);
  return view_collapse_heads(c, t, out, d);
}

Test(page_split, slots_outermost_keep_every_byte) {
  const char *const layouts[][2] = {{"b s h d", "b s h d"}, {"b s/16 s%16 h d/16 d%16", "b s h d"}};
  for (int i = 0; i < 2; i++) {
    contract c = contract_of(layouts[i][0], layouts[i][1], "b s h", LONG_PAGE);
    tensors t = tensors_of(&c, 2);
    view v;
    diags d;
    cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_BYTES, &v, &d), HD_OK);
    cr_assert_eq(v.parts, 8);
    cr_assert_eq(v.tensors.by_name[TENSOR_K_CACHE].shape[0], 8 * PAGES);
    expect_same_bytes(&c, &t, &v, 2);
  }
}

Test(page_split, one_head_of_hnd_keeps_every_byte) {
  contract c = contract_of("b h s d", "b h s/16 d s%16", "b h s", LONG_PAGE);
  tensors t = tensors_of(&c, 1);
  view v;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_BYTES, &v, &d), HD_OK);
  expect_same_bytes(&c, &t, &v, 1);
  t = tensors_of(&c, 2);
  expect_code(split(&c, &t, PAGE, VIEW_SAME_BYTES, &v, &d), &d, "view.meaning", "k_cache");
}

Test(page_split, shuffled_keys_mean_other_bytes_and_are_declined) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 1);
  view v = {.parts = -1};
  diags d;
  expect_code(split(&c, &t, PAGE, VIEW_SAME_BYTES, &v, &d), &d, "view.meaning", "k_cache");
  cr_assert_eq(v.parts, -1, "a decline leaves the result alone");
}

/* Every element of the view is one of the tensor's, each once: nothing outside is touched, nothing lost. */
static void expect_permutation(const tensor *from, const tensor *to, const layout *l, int64_t heads,
                               int64_t channels) {
  int64_t size = tensor_elements(from);
  cr_assert_eq(tensor_elements(to), size);
  unsigned char *seen = calloc((size_t)size, 1);
  for (int64_t b = 0; b < to->shape[0]; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t s = 0; s < l->size[AXIS_S]; s++)
        for (int64_t c = 0; c < channels; c++) {
          int64_t at = place(to, l, b, h, s, c);
          cr_assert(at >= 0 && at < size && !seen[at]);
          seen[at] = 1;
        }
  free(seen);
}

Test(page_split, same_storage_stays_in_the_tensors_own_memory) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 2);
  view v;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), HD_OK);
  cr_assert_eq(v.meaning, VIEW_SAME_STORAGE);
  const int64_t k_shape[] = {8 * PAGES, 2, 2, 16, 16}, v_shape[] = {8 * PAGES, 2, 1, 32, 16};
  cr_assert_arr_eq(v.tensors.by_name[TENSOR_K_CACHE].shape, k_shape, sizeof k_shape);
  cr_assert_arr_eq(v.tensors.by_name[TENSOR_V_CACHE].shape, v_shape, sizeof v_shape);
  pair pairs[4];
  int count = pairs_of(&c, &v.contract, pairs);
  for (int i = 0; i < count; i++) {
    expect_permutation(&t.by_name[pairs[i].name], &v.tensors.by_name[pairs[i].name], pairs[i].to, 2,
                       pairs[i].channels);
    cr_assert_gt(moved(&t, &v, &pairs[i], 2, LONG_PAGE), 0, "it does mean other bytes");
  }
}

Test(page_split, what_keeps_its_bytes_says_so_even_when_less_is_asked) {
  contract c = contract_of("b s h d", "b s h d", "b s h", LONG_PAGE);
  tensors t = tensors_of(&c, 2);
  view v;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), HD_OK);
  expect_same_bytes(&c, &t, &v, 2);
}

Test(page_split, padded_pages_are_declined) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 2);
  make_strided(&t.by_name[TENSOR_K_CACHE]);
  t.by_name[TENSOR_K_CACHE].strides[0] *=
      2; /* K and V in turn in one buffer: half of the parts would be V's */
  view v;
  diags d;
  expect_code(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), &d, "view.strides", "k_cache");
  c = contract_of("b s h d", "b s h d", "b s h", LONG_PAGE);
  t = tensors_of(&c, 2);
  make_strided(&t.by_name[TENSOR_V_CACHE]);
  t.by_name[TENSOR_V_CACHE].strides[0] *= 2;
  expect_code(split(&c, &t, PAGE, VIEW_SAME_BYTES, &v, &d), &d, "view.strides", "v_cache");
}

Test(page_split, tables_of_pages_are_not_carried_over_and_slots_are) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 1);
  t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] = t.present[TENSOR_SLOT_MAPPING] = true;
  view v;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), HD_OK);
  cr_assert_not(v.tensors.present[TENSOR_PAGE_TABLE]);
  cr_assert(v.tensors.present[TENSOR_LENGTHS]);
  cr_assert(v.tensors.present[TENSOR_SLOT_MAPPING]);
}

Test(page_split, pages_that_do_not_divide_are_declined) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 1);
  view v;
  diags d;
  const int wrong[] = {0, -16, 48, 256};
  for (int i = 0; i < 4; i++)
    expect_code(split(&c, &t, wrong[i], VIEW_SAME_STORAGE, &v, &d), &d, "view.page", "kv.page");
  c = contract_of("b h d s", "b h s/48 s%48/3 d s%3", NULL, 96);
  t = tensors_of(&c, 1);
  expect_code(split(&c, &t, 32, VIEW_SAME_STORAGE, &v, &d), &d, "view.page", "v_cache");
  c = shuffled(LONG_PAGE);
  c.scale.granularity = SCALE_PAGE_HEAD;
  c.scale.k = c.scale.v = example_layout("b h", LONG_PAGE, DIM);
  t = tensors_of(&c, 1);
  expect_code(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), &d, "view.scale", "scale.granularity");
}

static contract read_spec(const char *name) {
  char path[512], *bytes = calloc(1, 1 << 16);
  snprintf(path, sizeof path, "%s/specs/%s", getenv("HEDDLE_SOURCE"), name);
  FILE *file = fopen(path, "r");
  cr_assert(file, "%s", path);
  size_t length = fread(bytes, 1, (1 << 16) - 1, file);
  fclose(file);
  spec s;
  diags d;
  diags_init(&d);
  cr_assert_eq(spec_parse(bytes, length, &s, &d), HD_OK);
  contract c = s.contract;
  spec_finish(&s);
  diags_finish(&d);
  free(bytes);
  return c;
}

Test(page_split, the_dense_cache_of_minimax_m3_becomes_the_contract_of_its_sparse_layers) {
  contract dense = read_spec("minimax-m3-dense-fp8.yaml"), sparse = read_spec("minimax-m3-sparse-fp8.yaml");
  tensors t = tensors_of(&dense, 1);
  view v;
  diags d;
  char key[65], wanted[65];
  expect_code(split(&dense, &t, PAGE, VIEW_SAME_BYTES, &v, &d), &d, "view.meaning", "k_cache");
  cr_assert_eq(split(&dense, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), HD_OK);
  v.contract.select = sparse.select; /* how tokens are selected is no matter of the cache */
  cr_assert_eq(contract_key(&v.contract, key), HD_OK);
  cr_assert_eq(contract_key(&sparse, wanted), HD_OK);
  cr_assert_str_eq(key, wanted);
}

Test(collapse_heads, every_element_stays_where_it_is) {
  const int64_t heads[] = {1, 2, 4, 5};
  for (int i = 0; i < 4; i++) {
    contract c = shuffled(PAGE);
    tensors t = tensors_of(&c, heads[i]);
    view v;
    diags d;
    cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK);
    cr_assert_eq(v.heads, heads[i]);
    cr_assert_eq(v.tensors.by_name[TENSOR_K_CACHE].shape[0], PAGES * heads[i]);
    cr_assert_eq(v.tensors.by_name[TENSOR_K_CACHE].shape[1], 1);
    expect_same_bytes(&c, &t, &v, heads[i]);
  }
}

Test(collapse_heads, padded_heads_are_fine_while_pages_and_heads_are_one_run) {
  contract c = shuffled(PAGE);
  tensors t = tensors_of(&c, 3);
  tensor *k = &t.by_name[TENSOR_K_CACHE];
  make_strided(k);
  k->strides[1] += 64;
  k->strides[0] = 3 * k->strides[1];
  view v;
  diags d;
  cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK);
  expect_same_bytes(&c, &t, &v, 3);
  k->strides[0] += 64;
  expect_code(collapse(&c, &t, &v, &d), &d, "view.strides", "k_cache");
}

Test(collapse_heads, rows_become_rows_of_one_kv_head) {
  contract c = shuffled(PAGE);
  c.query.rows = 4;
  c.select.per = PER_KV_HEAD;
  c.output.lse = true;
  tensors t = tensors_of(&c, 2);
  t.by_name[TENSOR_Q] = (tensor){.dtype = DTYPE_BF16, .rank = 3, .shape = {7, 8, DIM}, .data = 16};
  t.by_name[TENSOR_LSE] = (tensor){.dtype = DTYPE_FP32, .rank = 2, .shape = {7, 8}, .data = 16};
  t.present[TENSOR_Q] = t.present[TENSOR_LSE] = t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] =
      true;
  view v;
  diags d;
  cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK);
  const int64_t q_shape[] = {14, 4, DIM};
  cr_assert_arr_eq(v.tensors.by_name[TENSOR_Q].shape, q_shape, sizeof q_shape);
  cr_assert_eq(v.tensors.by_name[TENSOR_LSE].shape[0], 14);
  cr_assert_eq(v.tensors.by_name[TENSOR_LSE].shape[1], 4);
  cr_assert_eq(v.contract.query.rows, 1);
  cr_assert_eq(v.contract.select.per, PER_SEQUENCE);
  cr_assert_not(v.tensors.present[TENSOR_PAGE_TABLE]);
  cr_assert_not(v.tensors.present[TENSOR_LENGTHS]);
  t.by_name[TENSOR_Q].shape[1] = 9;
  expect_code(collapse(&c, &t, &v, &d), &d, "view.shape", "q");
}

Test(collapse_heads, a_viewed_batch_binds_under_the_views_contract) {
  contract c = shuffled(PAGE);
  c.select.per = PER_KV_HEAD;
  tensors t = tensors_of(&c, 2);
  t.by_name[TENSOR_Q] = (tensor){.dtype = DTYPE_BF16, .rank = 3, .shape = {7, 8, DIM}, .data = 16};
  t.present[TENSOR_Q] = true;
  view v;
  diags d;
  cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK);
  v.tensors.by_name[TENSOR_PAGE_TABLE] =
      (tensor){.dtype = DTYPE_INT32, .rank = 2, .shape = {14, 128}, .data = 16};
  v.tensors.by_name[TENSOR_LENGTHS] = (tensor){.dtype = DTYPE_INT32, .rank = 1, .shape = {14}, .data = 16};
  v.tensors.present[TENSOR_PAGE_TABLE] = v.tensors.present[TENSOR_LENGTHS] = true;
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind_dims(&v.contract, OPERATION_DECODE, &v.tensors, dims, &d), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 14);
  cr_assert_eq(dims[DIM_KV_HEADS], 1);
  cr_assert_eq(dims[DIM_PAGES], 2 * PAGES);
  cr_assert_eq(dims[DIM_K_STRIDE_B], PAGE * DIM);
}

Test(collapse_heads, after_a_page_split_ids_are_those_of_the_sparse_decode) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 4);
  view parts, both;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &parts, &d), HD_OK);
  cr_assert_eq(collapse(&parts.contract, &parts.tensors, &both, &d), HD_OK);
  const tensor *k = &parts.tensors.by_name[TENSOR_K_CACHE],
               *collapsed = &both.tensors.by_name[TENSOR_K_CACHE];
  for (int64_t page = 0; page < PAGES; page++)
    for (int64_t j = 0; j < 8; j++)
      for (int64_t h = 0; h < 4; h++)
        for (int64_t s = 0; s < PAGE; s++)
          cr_assert_eq(place(k, &parts.contract.kv.k, page * 8 + j, h, s, s),
                       place(collapsed, &both.contract.kv.k, (page * 8 + j) * 4 + h, 0, s, s));
}

Test(page_split, lists_of_blocks_stay_and_the_table_does_not) {
  contract c = shuffled(LONG_PAGE);
  c.select.form = SELECT_BLOCKS;
  c.select.block = LONG_PAGE;
  tensors t = tensors_of(&c, 2);
  const tensor_name names[] = {TENSOR_BLOCK_LIST, TENSOR_LENGTHS, TENSOR_PAGE_TABLE};
  for (int i = 0; i < 3; i++) {
    t.by_name[names[i]] = (tensor){.dtype = DTYPE_INT32, .rank = 1, .shape = {3}, .data = 16};
    t.present[names[i]] = true;
  }
  view v;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), HD_OK);
  cr_assert(v.tensors.present[TENSOR_BLOCK_LIST]);
  cr_assert(v.tensors.present[TENSOR_LENGTHS]);
  cr_assert_not(v.tensors.present[TENSOR_PAGE_TABLE]);
}

/* Random numbers of `bytes` bytes at the tensor's address. */
static void *filled(tensor *t, uint32_t seed) {
  size_t bytes = tensor_bytes(t);
  unsigned char *memory = malloc(bytes + 16);
  cr_assert_not_null(memory);
  for (size_t i = 0; i < bytes; i++) {
    seed = seed * 1664525u + 1013904223u;
    memory[i] = (unsigned char)(seed >> 24) & 0x3f; /* positive, below 2 as fp8 and bf16 halves alike */
  }
  t->data = (uint64_t)(uintptr_t)memory;
  return memory;
}

static void put_list(tensors *t, tensor_name name, const int32_t *values, int rank, int64_t a, int64_t b,
                     int64_t c) {
  t->by_name[name] = (tensor){.dtype = DTYPE_INT32, .rank = rank, .shape = {a, b, c}};
  t->by_name[name].data = (uint64_t)(uintptr_t)values;
  t->present[name] = true;
}

static void decoded(const contract *c, const tensors *t, double *out) {
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  cr_assert_eq(bind_dims(c, OPERATION_DECODE, t, dims, &d), HD_OK, "%s", d.count ? d.items[0].message : "");
  cr_assert_eq(oracle_decode(c, t, dims, 0.125, out, NULL, &d), HD_OK, "%s",
               d.count ? d.items[0].message : "");
  diags_finish(&d);
}

/* MiniMax-M3's sparse decode in both its forms: heads as they are and lists for each, or heads collapsed into
 * pages of their own, with one list a row. Pages of 128 seen as eight of 16. */
Test(collapse_heads, sparse_decode_is_the_same_with_and_without) {
  enum { HEADS = 2, ROWS = 3, LISTED = 2, BLOCK = 128, SIXTEENTHS = 16 };
  contract c = shuffled(LONG_PAGE);
  c.select.form = SELECT_BLOCKS;
  c.select.block = BLOCK;
  c.select.per = PER_ROW;
  tensors t = tensors_of(&c, HEADS);
  t.by_name[TENSOR_Q] = (tensor){.dtype = DTYPE_BF16, .rank = 3, .shape = {ROWS, HEADS * 4, DIM}};
  t.present[TENSOR_Q] = true;
  const tensor_name read[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE, TENSOR_Q};
  void *memory[5];
  for (int i = 0; i < 5; i++)
    memory[i] = filled(&t.by_name[read[i]], 7u + (uint32_t)i);
  view parts, both;
  diags d;
  cr_assert_eq(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &parts, &d), HD_OK);
  cr_assert_eq(collapse(&parts.contract, &parts.tensors, &both, &d), HD_OK);

  /* Sequence 0 has pages 2 and 0, sequence 1 page 1; row 1 belongs to sequence 1. */
  static const int32_t pages[2][2] = {{2, 0}, {1, 0}}, of[ROWS] = {0, 1, 0}, lengths[ROWS] = {200, 77, 128};
  _Alignas(16) static const int32_t lists[HEADS][ROWS][LISTED] = {{{1, 0}, {0, -1}, {-1, 0}},
                                                                  {{-1, 1}, {-1, -1}, {0, 0}}};
  _Alignas(16) int32_t table[2][SIXTEENTHS], head_table[2 * HEADS][SIXTEENTHS], map[ROWS * HEADS],
      head_lengths[ROWS * HEADS], head_lists[ROWS * HEADS][LISTED];
  _Alignas(16) int32_t own_of[ROWS], own_lengths[ROWS];
  memcpy(own_of, of, sizeof of);
  memcpy(own_lengths, lengths, sizeof lengths);
  for (int s = 0; s < 2; s++)
    for (int i = 0; i < SIXTEENTHS; i++) {
      table[s][i] = pages[s][i / 8] * 8 + i % 8;
      for (int h = 0; h < HEADS; h++)
        head_table[s * HEADS + h][i] = (pages[s][i / 8] * 8 + i % 8) * HEADS + h;
    }
  for (int r = 0; r < ROWS; r++)
    for (int h = 0; h < HEADS; h++) {
      map[r * HEADS + h] = of[r] * HEADS + h;
      head_lengths[r * HEADS + h] = lengths[r];
      memcpy(head_lists[r * HEADS + h], lists[h][r], sizeof head_lists[0]);
    }
  double wanted[ROWS * HEADS * 4 * DIM], out[ROWS * HEADS * 4 * DIM], sum = 0;
  put_list(&parts.tensors, TENSOR_PAGE_TABLE, table[0], 2, 2, SIXTEENTHS, 0);
  put_list(&parts.tensors, TENSOR_LENGTHS, own_lengths, 1, ROWS, 0, 0);
  put_list(&parts.tensors, TENSOR_ROW_SEQUENCES, own_of, 1, ROWS, 0, 0);
  put_list(&parts.tensors, TENSOR_BLOCK_LIST, lists[0][0], 3, HEADS, ROWS, LISTED);
  decoded(&parts.contract, &parts.tensors, wanted);
  put_list(&both.tensors, TENSOR_PAGE_TABLE, head_table[0], 2, 2 * HEADS, SIXTEENTHS, 0);
  put_list(&both.tensors, TENSOR_LENGTHS, head_lengths, 1, ROWS * HEADS, 0, 0);
  put_list(&both.tensors, TENSOR_ROW_SEQUENCES, map, 1, ROWS * HEADS, 0, 0);
  put_list(&both.tensors, TENSOR_BLOCK_LIST, head_lists[0], 3, 1, ROWS * HEADS, LISTED);
  decoded(&both.contract, &both.tensors, out);
  for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
    cr_assert_eq(out[i], wanted[i], "element %zu", i);
    sum += out[i];
  }
  cr_assert_gt(sum, 0);
  for (int i = 0; i < 5; i++)
    free(memory[i]);
}

Test(collapse_heads, token_lists_stay_lists_of_rows) {
  contract c = contract_of("b h d", "b h d", NULL, 1);
  c.select.form = SELECT_TOKENS;
  c.select.per = PER_KV_HEAD;
  tensors t = tensors_of(&c, 2);
  view v;
  diags d;
  cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK);
  cr_assert_eq(v.contract.select.per, PER_ROW);
}

Test(collapse_heads, what_has_no_place_for_a_head_is_declined) {
  view v;
  diags d;
  contract c = contract_of("b s h d", "b s h d", NULL, PAGE);
  tensors t = tensors_of(&c, 2);
  expect_code(collapse(&c, &t, &v, &d), &d, "view.layout", "k_cache");
  c = shuffled(PAGE);
  c.mask.sinks = true;
  t = tensors_of(&c, 2);
  expect_code(collapse(&c, &t, &v, &d), &d, "view.sinks", "mask.sinks");
  t = tensors_of(&c, 1);
  cr_assert_eq(collapse(&c, &t, &v, &d), HD_OK, "with one head nothing changes");
  c = shuffled(PAGE);
  c.scale.granularity = SCALE_TOKEN;
  c.scale.k = c.scale.v = example_layout("b s", PAGE, DIM);
  t = tensors_of(&c, 2);
  expect_code(collapse(&c, &t, &v, &d), &d, "view.scale", "k_scale");
  c.scale.granularity = SCALE_HEAD;
  c.scale.k = c.scale.v = example_layout("h", PAGE, DIM);
  t = tensors_of(&c, 2);
  expect_code(collapse(&c, &t, &v, &d), &d, "view.scale", "k_scale");
}

Test(collapse_heads, rows_with_gaps_and_caches_that_differ_in_heads_are_declined) {
  contract c = shuffled(PAGE);
  tensors t = tensors_of(&c, 2);
  t.by_name[TENSOR_Q] = (tensor){.dtype = DTYPE_BF16, .rank = 3, .shape = {7, 8, DIM}, .data = 16};
  t.present[TENSOR_Q] = true;
  make_strided(&t.by_name[TENSOR_Q]);
  t.by_name[TENSOR_Q].strides[0] += 64; /* q, k and v in one row */
  view v;
  diags d;
  expect_code(collapse(&c, &t, &v, &d), &d, "view.strides", "q");
  t = tensors_of(&c, 2);
  t.by_name[TENSOR_V_CACHE].shape[1] = 3;
  expect_code(collapse(&c, &t, &v, &d), &d, "view.shape", "v_cache");
}

Test(views, a_tensor_of_another_shape_is_declined) {
  contract c = shuffled(LONG_PAGE);
  tensors t = tensors_of(&c, 2);
  view v;
  diags d;
  t.by_name[TENSOR_V_CACHE].shape[2] = 5;
  expect_code(split(&c, &t, PAGE, VIEW_SAME_STORAGE, &v, &d), &d, "view.shape", "v_cache");
  expect_code(collapse(&c, &t, &v, &d), &d, "view.shape", "v_cache");
  tensors none = {0};
  expect_code(split(&c, &none, PAGE, VIEW_SAME_STORAGE, &v, &d), &d, "view.shape", "k_cache");
  expect_code(collapse(&c, &none, &v, &d), &d, "view.shape", "k_cache");
}
