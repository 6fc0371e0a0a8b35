/* Claims about binding tensors by name, about the split policy and about what a launch passes to a kernel. */
#include "../../runtime/launch/launch.h"
#include "../../runtime/launch/strides.h"
#include "../example_contract.h"

#include <criterion/criterion.h>

/* Shuffled fp8 caches with a scale per token and head: page 16, head_dim 32, four query heads a kv head. */
static contract shuffled_contract(void) {
  contract c = example_contract(16, 32, 32);
  c.query.heads_per_kv = 4;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout("b h d/16 s d%16", 16, 32);
  c.kv.v = example_layout("b h s/16 d s%16", 16, 32);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", 16, 32);
  return c;
}

static void set(tensors *t, tensor_name name, dtype type, int rank, int64_t a, int64_t b, int64_t c,
                int64_t d, int64_t e) {
  const int64_t shape[5] = {a, b, c, d, e};
  t->present[name] = true;
  t->by_name[name] = (tensor){.dtype = type, .rank = rank, .data = 64};
  memcpy(t->by_name[name].shape, shape, (size_t)rank * sizeof shape[0]);
}

/* 3 sequences, 2 kv heads, 10 pages, table rows of 5 pages. */
static tensors decode_tensors(void) {
  tensors t = {0};
  set(&t, TENSOR_Q, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  set(&t, TENSOR_K_CACHE, DTYPE_FP8_E4M3FN, 5, 10, 2, 2, 16, 16);
  set(&t, TENSOR_V_CACHE, DTYPE_FP8_E4M3FN, 5, 10, 2, 1, 32, 16);
  set(&t, TENSOR_K_SCALE, DTYPE_FP32, 3, 10, 2, 16, 0, 0);
  set(&t, TENSOR_V_SCALE, DTYPE_FP32, 3, 10, 2, 16, 0, 0);
  set(&t, TENSOR_PAGE_TABLE, DTYPE_INT32, 2, 3, 5, 0, 0, 0);
  set(&t, TENSOR_LENGTHS, DTYPE_INT32, 1, 3, 0, 0, 0, 0);
  set(&t, TENSOR_OUT, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  return t;
}

static tensors write_tensors(void) {
  tensors t = decode_tensors();
  t.present[TENSOR_Q] = t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] = t.present[TENSOR_OUT] =
      false;
  set(&t, TENSOR_K, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_V, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_SLOT_MAPPING, DTYPE_INT64, 1, 7, 0, 0, 0, 0);
  return t;
}

static hd_status bind(operation o, const tensors *t, int64_t dims[DIM_COUNT]) {
  contract c = shuffled_contract();
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(&c, o, t, dims, &d);
  cr_assert_eq(diags_errors(&d) == 0, status == HD_OK);
  diags_finish(&d);
  return status;
}

/* Binding declines with exactly this first message. */
static void expect_decline(operation o, const tensors *t, const char *code, const char *message) {
  contract c = shuffled_contract();
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, o, t, dims, &d), HD_DECLINED, "expected: %s", message);
  cr_assert_geq(d.count, 1);
  cr_assert_str_eq(d.items[0].code, code);
  cr_assert_str_eq(d.items[0].message, message);
  diags_finish(&d);
}

Test(bind, decode_dims_follow_from_the_shapes) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_ROWS], 1);
  cr_assert_eq(dims[DIM_KV_HEADS], 2);
  cr_assert_eq(dims[DIM_PAGES], 10);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 5);
  cr_assert_eq(dims[DIM_SPLITS], 1);
}

/* Tokens up to the end of the last tile are int32: near 2^31 a kernel's comparisons would wrap. */
Test(bind, lists_that_could_name_two_thousand_million_tokens_are_refused) {
  const int64_t most = (INT64_C(1) << 31) - 4096;
  int64_t dims[DIM_COUNT];
  tensors t = decode_tensors();
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = most / 16;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TABLE_PAGES], most / 16);
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = most / 16 + 1;
  expect_decline(OPERATION_DECODE, &t, "bind.size",
                 "page_table has room for 2147479568 tokens, expected up to 2147479552 tokens");
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = INT64_C(1) << 28; /* the product is beyond 32 bits */
  expect_decline(OPERATION_DECODE, &t, "bind.size",
                 "page_table has room for 4294967296 tokens, expected up to 2147479552 tokens");
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = INT64_C(1) << 31;
  expect_decline(OPERATION_DECODE, &t, "bind.size", "table_pages is 2147483648, allowed are 0 to 2147483647");
}

Test(bind, a_tensor_with_a_dimension_of_none_has_no_bytes_however_large_the_others) {
  tensor t = {.dtype = DTYPE_FP32, .rank = 4, .shape = {1LL << 40, 1LL << 30, 0, 6}};
  cr_expect_eq(tensor_elements(&t), 0);
  cr_expect_eq(tensor_bytes(&t), 0);
  t.strided = true;
  for (int i = 0; i < t.rank; i++)
    t.strides[i] = 1LL << 40;
  cr_expect_eq(tensor_bytes(&t), 0);
  t.shape[2] = 1;
  cr_expect_eq(tensor_bytes(&t), SIZE_MAX);
}

Test(bind, strides_are_those_of_a_packed_cache) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 16 * 32);
  cr_assert_eq(dims[DIM_K_STRIDE_B], 2 * 16 * 32);
  cr_assert_eq(dims[DIM_V_STRIDE_B], 2 * 16 * 32);
  cr_assert_eq(dims[DIM_K_SCALE_STRIDE_H], 16);
  cr_assert_eq(dims[DIM_V_SCALE_STRIDE_B], 32);
}

Test(bind, write_dims_follow_from_the_shapes) {
  tensors t = write_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_WRITE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TOKENS], 7);
  cr_assert_eq(dims[DIM_KV_HEADS], 2);
  cr_assert_eq(dims[DIM_PAGES], 10);
}

Test(bind, a_flat_cache_gives_its_pages_by_its_size) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  set(&t, TENSOR_K_CACHE, DTYPE_FP8_E4M3FN, 1, 10 * 2 * 16 * 32, 0, 0, 0, 0);
  set(&t, TENSOR_K_SCALE, DTYPE_FP32, 1, 10 * 2 * 16, 0, 0, 0, 0);
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_PAGES], 10);
  t.by_name[TENSOR_K_CACHE].shape[0]++;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "k_cache has shape [10241], expected [pages, kv_heads, 2, 16, 16]: its size is not a whole "
                 "number of pages");
}

Test(bind, an_empty_batch_binds) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  t.by_name[TENSOR_Q].shape[0] = t.by_name[TENSOR_OUT].shape[0] = 0;
  t.by_name[TENSOR_PAGE_TABLE].shape[0] = t.by_name[TENSOR_LENGTHS].shape[0] = 0;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 0);
}

Test(bind, a_shape_that_does_not_fit_is_named_with_what_was_expected) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_V_CACHE].shape[0] = 9;
  expect_decline(
      OPERATION_DECODE, &t, "bind.shape",
      "v_cache has shape [9, 2, 1, 32, 16], expected [pages, kv_heads, 1, 32, 16] = [10, 2, 1, 32, 16]");
  t = decode_tensors();
  t.by_name[TENSOR_OUT].shape[2] = 64;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "out has shape [3, 8, 64], expected [seqs*rows, q_heads, 32] = [3, 8, 32]");
  t = decode_tensors();
  t.by_name[TENSOR_PAGE_TABLE].rank = 1;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "page_table has shape [3], expected [seqs, table_pages]");
}

Test(bind, query_heads_and_rows_that_do_not_fit_have_codes_of_their_own) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_Q].shape[1] = 7;
  expect_decline(OPERATION_DECODE, &t, "bind.heads-per-kv",
                 "q has query heads per kv head 7 over 2 kv heads, expected 4");
  t.by_name[TENSOR_Q].shape[1] = 16;
  expect_decline(OPERATION_DECODE, &t, "bind.heads-per-kv", "q has query heads per kv head 8, expected 4");
  t = decode_tensors();
  t.by_name[TENSOR_Q].shape[0] = 6;
  expect_decline(OPERATION_DECODE, &t, "bind.rows", "q has query rows per sequence 2, expected 1");
  t.by_name[TENSOR_Q].shape[0] = 7;
  expect_decline(OPERATION_DECODE, &t, "bind.rows",
                 "q has query rows per sequence 7 over 3 sequences, expected 1");
}

/* Strides of a dense tensor, to be changed. */
static tensor *strided(tensors *t, tensor_name name) {
  tensor *s = &t->by_name[name];
  for (int i = 0; i < s->rank; i++)
    s->strides[i] = tensor_stride(s, i);
  s->strided = true;
  return s;
}

Test(bind, free_strides_are_the_tensors_own_each_for_itself) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  strided(&t, TENSOR_K_CACHE)->strides[0] = 4096; /* K and V in turn in one buffer */
  strided(&t, TENSOR_V_CACHE)->strides[0] = 2 * 1024 + 16;
  strided(&t, TENSOR_V_SCALE)->strides[1] = 20;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_B], 4096);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 512);
  cr_assert_eq(dims[DIM_V_STRIDE_B], 2 * 1024 + 16);
  cr_assert_eq(dims[DIM_K_SCALE_STRIDE_H], 16);
  cr_assert_eq(dims[DIM_V_SCALE_STRIDE_H], 20);
}

Test(bind, rows_of_a_page_table_may_be_cut_out_of_a_wider_one) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  strided(&t, TENSOR_PAGE_TABLE)->strides[0] = 64;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 64);
  t.by_name[TENSOR_PAGE_TABLE].strides[1] = 2;
  expect_decline(OPERATION_DECODE, &t, "bind.strides",
                 "page_table is strided [64, 2], expected entries that lie together in rows of one stride");
}

Test(bind, a_permuted_view_binds_where_its_bytes_are_the_contracts) {
  contract c = example_contract(16, 32, 32);
  layout axes = example_layout("b s h d", 16, 32);
  tensors t = {0};
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  set(&t, TENSOR_K, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_V, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_SLOT_MAPPING, DTYPE_INT64, 1, 7, 0, 0, 0, 0);
  set(&t, TENSOR_K_CACHE, DTYPE_BF16, 4, 10, 16, 2, 32, 0);
  set(&t, TENSOR_V_CACHE, DTYPE_BF16, 4, 10, 2, 16, 32, 0);
  tensor *k = strided(&t, TENSOR_K_CACHE); /* [page, slot, head, channel], in memory head before slot */
  const int64_t strides[] = {1024, 32, 512, 1};
  memcpy(k->strides, strides, sizeof strides);
  k->axes = &axes;
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 512);
  k->strided = false; /* the same shape, but really NHD */
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_DECLINED);
  cr_assert_str_eq(d.items[0].code, "bind.strides");
  diags_finish(&d);
}

Test(bind, missing_and_unneeded_tensors_are_named) {
  tensors t = decode_tensors();
  t.present[TENSOR_LENGTHS] = false;
  expect_decline(OPERATION_DECODE, &t, "bind.missing", "lengths is missing: decode needs int32 [seqs]");
  t = decode_tensors();
  set(&t, TENSOR_SINKS, DTYPE_FP32, 1, 8, 0, 0, 0, 0);
  expect_decline(OPERATION_DECODE, &t, "bind.unneeded", "decode takes no tensor sinks under this contract");
  t = write_tensors();
  set(&t, TENSOR_Q, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  expect_decline(OPERATION_WRITE, &t, "bind.unneeded", "write takes no tensor q under this contract");
}

Test(bind, every_fault_is_reported_in_one_go) {
  contract c = shuffled_contract();
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  t.by_name[TENSOR_K_CACHE].dtype = DTYPE_BF16;
  t.by_name[TENSOR_LENGTHS].dtype = DTYPE_INT64;
  t.present[TENSOR_Q] = false;
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 3);
  diags_finish(&d);
}

Test(bind, a_query_of_another_rank_is_one_fault) {
  contract c = shuffled_contract();
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  set(&t, TENSOR_Q, DTYPE_BF16, 2, 3, 256, 0, 0, 0);
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 1);
  cr_assert_str_eq(d.items[0].message, "q has shape [3, 256], expected [seqs*rows, q_heads, 32]");
  diags_finish(&d);
  t = write_tensors();
  set(&t, TENSOR_K, DTYPE_BF16, 2, 7, 64, 0, 0, 0);
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 1);
  diags_finish(&d);
}

Test(bind, caches_that_differ_in_kv_heads_are_not_blamed_on_the_query) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_K_CACHE].shape[1] = 3;
  expect_decline(OPERATION_DECODE, &t, "bind.kv-heads", "k_cache has 3 kv heads, v_cache has 2");
  t = decode_tensors();
  t.by_name[TENSOR_V_CACHE].shape[1] = 1;
  expect_decline(OPERATION_DECODE, &t, "bind.kv-heads", "v_cache has 1 kv heads, k_cache has 2");
  t = write_tensors();
  t.by_name[TENSOR_V_CACHE].shape[1] = 1;
  expect_decline(OPERATION_WRITE, &t, "bind.kv-heads", "v_cache has 1 kv heads, k_cache has 2");
}

Test(bind, an_address_off_16_bytes_is_refused) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_K_CACHE].data = 72;
  expect_decline(OPERATION_DECODE, &t, "bind.alignment",
                 "k_cache lies at an address that is not a multiple of 16 bytes");
}

/* Engines cut lengths, tables and slots out of longer ones; kernels read them one at a time. */
Test(bind, indices_and_logits_lie_at_any_address_of_their_own_size) {
  static const struct {
    operation operation;
    tensor_name name;
    uint64_t good, bad;
  } places[] = {{OPERATION_DECODE, TENSOR_LENGTHS, 68, 66},
                {OPERATION_DECODE, TENSOR_PAGE_TABLE, 76, 74},
                {OPERATION_WRITE, TENSOR_SLOT_MAPPING, 72, 68}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    tensors t = places[i].operation == OPERATION_DECODE ? decode_tensors() : write_tensors();
    tensor *moved = &t.by_name[places[i].name];
    const contract c = shuffled_contract();
    int64_t dims[DIM_COUNT];
    char message[128];
    diags d;
    diags_init(&d);
    moved->data = places[i].good;
    cr_expect_eq(bind_dims(&c, places[i].operation, &t, dims, &d), HD_OK, "%s",
                 tensor_name_text(places[i].name));
    diags_finish(&d);
    moved->data = places[i].bad;
    snprintf(message, sizeof message, "%s lies at an address that is not a multiple of %d bytes",
             tensor_name_text(places[i].name), dtype_bytes(moved->dtype));
    expect_decline(places[i].operation, &t, "bind.alignment", message);
  }
}

/* Binds against a contract that selects in another way. */
static hd_status bind_selected(const tensors *t, select_form form, select_per per, int64_t dims[DIM_COUNT]) {
  contract c = shuffled_contract();
  c.select.form = form;
  c.select.per = per;
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(&c, OPERATION_DECODE, t, dims, &d);
  diags_finish(&d);
  return status;
}

Test(bind, kv_heads_may_have_tables_of_their_own) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind_selected(&t, SELECT_TABLE, PER_KV_HEAD, dims), HD_DECLINED);
  set(&t, TENSOR_PAGE_TABLE, DTYPE_INT32, 3, 3, 2, 5, 0, 0);
  cr_assert_eq(bind_selected(&t, SELECT_TABLE, PER_KV_HEAD, dims), HD_OK);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 5);
  cr_assert_eq(bind_selected(&t, SELECT_TABLE, PER_SEQUENCE, dims), HD_DECLINED);
}

Test(bind, rows_with_lists_of_their_own_are_sequences_of_one_row) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind_selected(&t, SELECT_TABLE, PER_ROW, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_ROWS], 1);
}

Test(bind, ragged_lists_take_the_place_of_table_and_lengths) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind_selected(&t, SELECT_INDPTR, PER_SEQUENCE, dims), HD_DECLINED);
  t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] = false;
  set(&t, TENSOR_KV_INDPTR, DTYPE_INT32, 1, 4, 0, 0, 0, 0);
  set(&t, TENSOR_KV_INDICES, DTYPE_INT32, 1, 9, 0, 0, 0, 0);
  set(&t, TENSOR_LAST_PAGE_LEN, DTYPE_INT32, 1, 3, 0, 0, 0, 0);
  cr_assert_eq(bind_selected(&t, SELECT_INDPTR, PER_SEQUENCE, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 9);
  t.by_name[TENSOR_KV_INDPTR].shape[0] = 3;
  cr_assert_eq(bind_selected(&t, SELECT_INDPTR, PER_SEQUENCE, dims), HD_DECLINED);
  t.by_name[TENSOR_KV_INDPTR].shape[0] = 7;
  t.by_name[TENSOR_LAST_PAGE_LEN].shape[0] = 6;
  cr_assert_eq(bind_selected(&t, SELECT_INDPTR, PER_KV_HEAD, dims), HD_OK, "two kv heads, three sequences");
  cr_assert_eq(dims[DIM_SEQS], 3);
}

/* Lists of blocks of two pages: 3 sequences, 2 kv heads, 7 entries. */
static tensors block_tensors(int64_t rows) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_Q].shape[0] = t.by_name[TENSOR_OUT].shape[0] = 3 * rows;
  set(&t, TENSOR_BLOCK_LIST, DTYPE_INT32, 3, 2, 3 * rows, 7, 0, 0);
  return t;
}

static contract block_contract(int rows, select_per per) {
  contract c = shuffled_contract();
  c.query.rows = rows;
  c.select.form = SELECT_BLOCKS;
  c.select.block = 32;
  c.select.per = per;
  return c;
}

/* The code of the first diagnostic, "" when it binds. */
static const char *bound(const contract *c, const tensors *t, int64_t dims[DIM_COUNT],
                         const char **out_field) {
  static char code[64], field[64];
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(c, OPERATION_DECODE, t, dims, &d);
  cr_assert_eq(d.count == 0, status == HD_OK);
  snprintf(code, sizeof code, "%s", d.count ? d.items[0].code : "");
  snprintf(field, sizeof field, "%s", d.count ? d.items[0].field : "");
  if (out_field) *out_field = field;
  diags_finish(&d);
  return code;
}

Test(bind, block_lists_come_beside_the_page_table) {
  contract c = block_contract(4, PER_SEQUENCE);
  tensors t = block_tensors(2);
  int64_t dims[DIM_COUNT];
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "");
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_ROWS], 2);
  cr_assert_eq(dims[DIM_LISTED], 7);
  cr_assert_eq(dims[DIM_LIST_WIDTH], 1 + 7 * 2, "a length, and two pages a block");
  cr_assert_eq(dims[DIM_TABLE_PAGES], 5);
  cr_assert_eq(dims[DIM_LISTED_STRIDE_ROW], 7);
  cr_assert_eq(dims[DIM_LISTED_STRIDE_H], 6 * 7);
  cr_assert_eq(bind_listed_tokens(&c, dims), 7 * 32);
  t.by_name[TENSOR_BLOCK_LIST].shape[1] = 3;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.shape");
  t.present[TENSOR_BLOCK_LIST] = false;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.missing");
}

Test(bind, block_lists_may_be_cut_out_of_a_longer_buffer) {
  contract c = block_contract(1, PER_SEQUENCE);
  tensors t = block_tensors(1);
  int64_t dims[DIM_COUNT];
  tensor *list = &t.by_name[TENSOR_BLOCK_LIST];
  list->strided = true;
  list->strides[0] = 4096 * 16;
  list->strides[1] = 16;
  list->strides[2] = 1;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "");
  cr_assert_eq(dims[DIM_LISTED_STRIDE_H], 4096 * 16);
  cr_assert_eq(dims[DIM_LISTED_STRIDE_ROW], 16);
  list->strides[2] = 2;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.strides");
}

Test(bind, rows_with_block_lists_say_which_row_of_the_table_is_theirs) {
  contract c = block_contract(1, PER_ROW);
  tensors t = block_tensors(1);
  int64_t dims[DIM_COUNT];
  const char *field;
  cr_assert_str_eq(bound(&c, &t, dims, &field), "bind.missing");
  cr_assert_str_eq(field, "row_sequences");
  set(&t, TENSOR_ROW_SEQUENCES, DTYPE_INT32, 1, 3, 0, 0, 0, 0);
  t.by_name[TENSOR_PAGE_TABLE].shape[0] = 2; /* fewer than rows */
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "");
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_ROWS], 1);
  cr_assert_eq(dims[DIM_TABLE_ROWS], 2);
  t.by_name[TENSOR_ROW_SEQUENCES].shape[0] = 2;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.shape");
}

Test(bind, token_lists_take_the_place_of_table_and_lengths) {
  contract c = example_contract(1, 32, 32);
  c.query.heads_per_kv = 4;
  c.kv.k = c.kv.v = example_layout("b h d", 1, 32);
  c.select.form = SELECT_TOKENS;
  c.select.per = PER_ROW;
  tensors t = {0};
  int64_t dims[DIM_COUNT];
  set(&t, TENSOR_Q, DTYPE_BF16, 3, 5, 8, 32, 0, 0);
  set(&t, TENSOR_K_CACHE, DTYPE_BF16, 3, 99, 2, 32, 0, 0);
  set(&t, TENSOR_V_CACHE, DTYPE_BF16, 3, 99, 2, 32, 0, 0);
  set(&t, TENSOR_TOKEN_LIST, DTYPE_INT32, 2, 5, 2048, 0, 0, 0);
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "");
  cr_assert_eq(dims[DIM_SEQS], 5);
  cr_assert_eq(dims[DIM_LISTED], 2048);
  cr_assert_eq(dims[DIM_LIST_WIDTH], 2049);
  c.select.per = PER_KV_HEAD;
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.shape");
  set(&t, TENSOR_TOKEN_LIST, DTYPE_INT32, 3, 2, 5, 2048, 0, 0);
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "");
  cr_assert_eq(dims[DIM_LISTED_STRIDE_H], 5 * 2048);
  set(&t, TENSOR_LENGTHS, DTYPE_INT32, 1, 5, 0, 0, 0, 0);
  cr_assert_str_eq(bound(&c, &t, dims, NULL), "bind.unneeded");
}

Test(bind, the_longest_sequence_is_read_off_lengths_or_lists) {
  contract c = shuffled_contract();
  _Alignas(16) static const int32_t lengths[] = {5, 40, 7}, first[] = {0, 1, 4, 4};
  tensors t = {0};
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2};
  t.by_name[TENSOR_LENGTHS].data = (uint64_t)(uintptr_t)lengths;
  t.by_name[TENSOR_KV_INDPTR].data = (uint64_t)(uintptr_t)first;
  cr_assert_eq(bind_longest(&c, &t, dims), 40);
  c.select.form = SELECT_INDPTR;
  cr_assert_eq(bind_longest(&c, &t, dims), 48, "three pages of 16");
  c.select.form = SELECT_BLOCKS;
  c.select.block = 16;
  const int64_t listed[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_LISTED] = 2};
  cr_assert_eq(bind_longest(&c, &t, listed), 32, "no list holds more than two blocks");
}

Test(bind, roles_depend_on_the_contract) {
  contract c = shuffled_contract();
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_UPDATED);
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_K_SCALE), ROLE_INPUT);
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_LSE), ROLE_NONE);
  c.output.lse = true;
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_LSE), ROLE_OUTPUT);
  c.scale.granularity = SCALE_TENSOR;
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_INPUT,
               "one scale for all is given to the writer");
  c.scale.granularity = SCALE_NONE;
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_NONE);
}

/* The scales of a tensor that the caller has as numbers: an operation has no tensors of these names then. */
static contract with_numbers(void) {
  contract c = shuffled_contract();
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  c.scale.k.count = c.scale.v.count = 0;
  return c;
}

static void drop_scales(tensors *t) {
  t->present[TENSOR_K_SCALE] = t->present[TENSOR_V_SCALE] = false;
}

/* Declined for one reason: its code, field, what was found and what is allowed, in one line. */
static void numbers_decline(const contract *c, operation o, const tensors *t, const char *wanted) {
  int64_t dims[DIM_COUNT];
  char said[160];
  diags d;
  diags_init(&d);
  cr_assert_eq(bind_dims(c, o, t, dims, &d), HD_DECLINED, "expected: %s", wanted);
  cr_expect_eq(d.count, 1u, "%s", wanted);
  snprintf(said, sizeof said, "%s %s: %s, %s", d.items[0].code, d.items[0].field, d.items[0].found,
           d.items[0].allowed);
  cr_expect_str_eq(said, wanted);
  diags_finish(&d);
}

Test(bind, scales_that_are_arguments_come_as_numbers_and_no_other_way) {
  contract c = with_numbers(), memory = c;
  memory.scale.argument = false;
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    tensors t = o == OPERATION_DECODE ? decode_tensors() : write_tensors();
    int64_t dims[DIM_COUNT];
    diags d;
    diags_init(&d);
    drop_scales(&t);
    t.k_scale = (scale_number){true, 0.5f};
    numbers_decline(&c, o, &t, "bind.missing v_scale: none, a number");
    t.v_scale = (scale_number){true, 0};
    cr_expect_eq(bind_dims(&c, o, &t, dims, &d), HD_OK, "0 is a number, too");
    cr_expect_eq(bind_role(&c, o, TENSOR_K_SCALE), ROLE_NONE);
    set(&t, TENSOR_K_SCALE, DTYPE_FP32, 1, 1, 0, 0, 0, 0);
    numbers_decline(&c, o, &t, "bind.unneeded k_scale: given, a number");
    set(&t, TENSOR_V_SCALE, DTYPE_FP32, 1, 1, 0, 0, 0, 0);
    t.k_scale.given = false;
    numbers_decline(&memory, o, &t, "bind.unneeded v_scale: a number, none");
    diags_finish(&d);
  }
}

Test(bind, values_that_lie_in_k_have_no_scale_of_their_own) {
  contract c = with_numbers();
  c.kv.v_in_k = true;
  c.kv.v = c.kv.k;
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  drop_scales(&t);
  t.present[TENSOR_V_CACHE] = false;
  t.k_scale = (scale_number){true, 0.5f};
  cr_expect_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_OK);
  t.v_scale = (scale_number){true, 0.5f};
  numbers_decline(&c, OPERATION_DECODE, &t, "bind.unneeded v_scale: a number, none");
  diags_finish(&d);
}

Test(split, short_items_are_not_split) {
  cr_assert_eq(split_policy(1, 1, 8 * 64, 64, 132), 1);
}

Test(split, a_full_device_is_not_split) {
  cr_assert_eq(split_policy(126, 1, 100000, 64, 132), 1);
  cr_assert_gt(split_policy(60, 1, 100000, 64, 132), 1);
}

Test(split, a_small_batch_is_spread_over_the_device_two_tiles_at_least_each) {
  cr_assert_eq(split_policy(4, 1, 8192, 128, 132), 32, "64 tiles allow 32, the device 33");
  cr_assert_eq(split_policy(4, 1, 100000, 128, 132), 33);
  cr_assert_eq(split_policy(1, 1, 10 * 128, 128, 132), 5);
}

Test(split, nothing_to_do_is_one_split) {
  cr_assert_eq(split_policy(0, 1, 100, 64, 132), 1);
  cr_assert_eq(split_policy(1, 1, 0, 64, 132), 1);
}

Test(launch, a_line_is_cut_by_the_device_and_evenly_where_that_costs_little) {
  const split_facts line = {128, 1, 0, false}, twice = {128, 2, 0, false};
  cr_expect_eq(launch_splits(line, 1, 1, 132), 132, "whatever the lengths are");
  cr_expect_eq(launch_splits(line, 1, 1 << 20, 132), 132);
  cr_expect_eq(launch_splits(line, 64, 8192, 132), 128, "two parts an item");
  cr_expect_eq(launch_splits(twice, 64, 8192, 132), 256);
  cr_expect_eq(launch_splits(line, 256, 8192, 132), 128, "two items a part");
  cr_expect_eq(launch_splits(line, 100, 8192, 132), 132, "100 parts would leave a quarter idle");
  cr_expect_eq(launch_splits(line, 0, 0, 132), 132);
  for (int64_t items = 1; items <= 3000; items++) {
    int64_t parts = launch_splits(line, items, 8192, 132);
    cr_expect(parts >= 124 && parts <= 132, "%d items: %d parts", (int)items, (int)parts);
  }
}

Test(launch, workgroups_that_take_the_same_part_are_so_many_fewer_parts) {
  descriptor d = {.line_parts = 3, .kernel_count = 2};
  d.kernels[0].grid[0] = (extent){1, 1, 2, {DIM_SEQS, DIM_ROWS}}; /* makes lists */
  d.kernels[1].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  d.kernels[1].grid[1] = (extent){4, 1, 0, {DIM_SEQS}};
  split_facts facts = split_facts_of(&d);
  cr_expect_eq(facts.line_shares, 4);
  cr_expect_eq(line_resident(facts, 64), 48, "192 workgroups are there at a time");
  cr_expect_eq(launch_splits(facts, 1, 4096, 64), 48);
  cr_expect_eq(line_resident(facts, 1), 3, "fewer workgroups than share a part");
}

Test(launch, splits_beyond_a_tile_each_are_of_no_use_but_on_a_line) {
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 8, 8 * 64), 8);
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 9, 8 * 64), 8);
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 9, 0), 1);
  cr_expect_eq(useful_splits((split_facts){64, 1, 0, false}, 132, 1), 132);
}

/* A device that writes down its launches. */
typedef struct recorder {
  device base;
  int count;
  device_launch launches[4];
  device_function *functions[4];
  unsigned char arguments[4][256];
} recorder;

static hd_status record(device *d, device_stream *s, device_function *f, const device_launch *launch,
                        diags *errors) {
  recorder *r = (recorder *)d;
  (void)s;
  (void)errors;
  cr_assert_lt(r->count, 4);
  r->launches[r->count] = *launch;
  r->functions[r->count] = f;
  memcpy(r->arguments[r->count++], launch->arguments, launch->arguments_size);
  return HD_OK;
}

static const device_vtable recorder_vtable = {.launch = record};

/* main(q, workspace, seqs, k_stride_b, logits_scale), then a merge when split. */
static descriptor two_kernels(void) {
  descriptor d = {.operation = "decode", .kernel_count = 2};
  d.kernels[0] = (kernel_descriptor){
      .symbol = "main",
      .block = 256,
      .lds_bytes = 1024,
      .argument_count = 5,
      .arguments = {{ARGUMENT_TENSOR, TENSOR_Q},
                    {ARGUMENT_TENSOR, TENSOR_WORKSPACE},
                    {ARGUMENT_DIM, DIM_SEQS},
                    {ARGUMENT_DIM, DIM_K_STRIDE_B},
                    {ARGUMENT_NUMBER, NUMBER_LOGITS_SCALE}},
  };
  d.kernels[0].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  d.kernels[0].grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  d.kernels[0].grid[2] = (extent){1, 1, 1, {DIM_SEQS}};
  d.kernels[1] = d.kernels[0];
  d.kernels[1].only_when_split = true;
  return d;
}

static device_function *const fake_functions[2] = {(device_function *)0x10, (device_function *)0x20};

static hd_status launch_recorded(recorder *r, const tensors *t, const int64_t dims[DIM_COUNT]) {
  descriptor d = two_kernels();
  diags errors;
  diags_init(&errors);
  r->base.vtable = &recorder_vtable;
  hd_status status = launch_operation(&r->base, NULL, &d, fake_functions, t, dims, 0.5f, &errors);
  diags_finish(&errors);
  return status;
}

Test(launch, arguments_are_the_kernels_c_struct) {
  struct {
    uint64_t q, workspace;
    int32_t seqs;
    int64_t k_stride_b;
    float logits_scale;
  } wanted = {0x1000, 0x2000, 3, (int64_t)1 << 40, 0.5f}, got;
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  t.by_name[TENSOR_Q].data = wanted.q;
  t.by_name[TENSOR_WORKSPACE].data = wanted.workspace;
  const int64_t dims[DIM_COUNT] = {
      [DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4, [DIM_K_STRIDE_B] = (int64_t)1 << 40};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 2);
  memcpy(&got, r.arguments[0], sizeof got);
  cr_assert_eq(got.q, wanted.q);
  cr_assert_eq(got.workspace, wanted.workspace);
  cr_assert_eq(got.seqs, wanted.seqs);
  cr_assert_eq(got.k_stride_b, wanted.k_stride_b);
  cr_assert_eq(got.logits_scale, wanted.logits_scale);
  cr_assert_eq(r.launches[0].grid[0], 4);
  cr_assert_eq(r.launches[0].grid[1], 2);
  cr_assert_eq(r.launches[0].grid[2], 3);
  cr_assert_eq(r.launches[0].block[0], 256);
  cr_assert_eq(r.launches[0].lds_bytes, 1024);
  cr_assert_eq(r.functions[1], fake_functions[1]);
}

/* Both kernels take V's scale, one of them K's. */
Test(launch, numbers_are_packed_by_value_and_can_be_exchanged) {
  descriptor d = two_kernels();
  d.kernels[0].arguments[3] = (argument){ARGUMENT_NUMBER, NUMBER_K_SCALE};
  d.kernels[0].arguments[4] = d.kernels[1].arguments[4] = (argument){ARGUMENT_NUMBER, NUMBER_V_SCALE};
  tensors t = {.k_scale = {true, 0.25f}, .v_scale = {true, 3.0f}};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4};
  launch_pack pack;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(launch_pack_init(&d, fake_functions, &t, dims, 0.5f, &pack, &errors), HD_OK);
  for (int round = 0; round < 2; round++) {
    float numbers[2], merge;
    memcpy(numbers, pack.parts[0].arguments.bytes + 20, sizeof numbers);
    memcpy(&merge, pack.parts[1].arguments.bytes + 32, sizeof merge);
    cr_expect_eq(numbers[0], round ? 0.125f : 0.25f);
    cr_expect_eq(numbers[1], 3.0f);
    cr_expect_eq(merge, 3.0f, "%g", (double)merge);
    cr_expect(launch_pack_set_number(&pack, &d, NUMBER_K_SCALE, 0.125f));
  }
  cr_expect_not(launch_pack_set_number(&pack, &d, NUMBER_LOGITS_SCALE, 1.0f), "nobody takes it");
  diags_finish(&errors);
}

Test(launch, lists_begin_the_workspace_and_partial_results_follow) {
  descriptor d = two_kernels();
  d.kernels[0].arguments[0].index = TENSOR_LISTS;
  d.lists = (extent){4, 1, 2, {DIM_SEQS, DIM_LIST_WIDTH}};
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  t.by_name[TENSOR_WORKSPACE].data = 0x2000;
  int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4, [DIM_LIST_WIDTH] = 100};
  recorder r = {.base.vtable = &recorder_vtable};
  diags errors;
  diags_init(&errors);
  cr_assert_eq(launch_operation(&r.base, NULL, &d, fake_functions, &t, dims, 0.5f, &errors), HD_OK);
  uint64_t addresses[2];
  memcpy(addresses, r.arguments[0], sizeof addresses);
  cr_assert_eq(addresses[0], 0x2000);
  cr_assert_eq(addresses[1], 0x2000 + 1280, "1200 bytes of lists, in whole 256");
  t.present[TENSOR_WORKSPACE] = false;
  dims[DIM_SPLITS] = 1;
  cr_assert_eq(launch_operation(&r.base, NULL, &d, fake_functions, &t, dims, 0.5f, &errors), HD_INVALID);
  diags_finish(&errors);
}

Test(launch, the_merge_runs_only_when_split_and_no_workspace_is_needed_then) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 1);
}

Test(launch, an_empty_grid_is_not_launched) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 0, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 0);
}

/* Its grid is the parts asked for, whatever the batch, and no tiles can't be dealt to them. */
Test(launch, a_line_without_sequences_is_not_launched) {
  descriptor d = two_kernels();
  d.line_parts = 2;
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  int64_t dims[DIM_COUNT] = {[DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4};
  launch_pack pack;
  diags errors;
  diags_init(&errors);
  for (int i = 0; i < d.kernel_count; i++) {
    d.kernels[i].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
    d.kernels[i].grid[1] = d.kernels[i].grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  }
  for (dims[DIM_SEQS] = 0; dims[DIM_SEQS] < 2; dims[DIM_SEQS]++) {
    cr_assert_eq(launch_pack_init(&d, fake_functions, &t, dims, 0.5f, &pack, &errors), HD_OK);
    cr_expect_eq(pack.count, dims[DIM_SEQS] > 0 ? 2 : 0, "%d", pack.count);
  }
  diags_finish(&errors);
}

Test(launch, a_tensor_that_is_not_there_is_refused) {
  tensors t = {0};
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_INVALID);
  t.present[TENSOR_Q] = true;
  const int64_t split[DIM_COUNT] = {[DIM_SEQS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 2};
  cr_assert_eq(launch_recorded(&r, &t, split), HD_INVALID, "a split needs its workspace");
  cr_assert_eq(r.count, 0);
}

Test(launch, a_size_beyond_int32_is_refused) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = (int64_t)1 << 31, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_INVALID);
  cr_assert_eq(r.count, 0);
}
