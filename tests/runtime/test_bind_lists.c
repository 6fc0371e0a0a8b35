/* Claims about binding: tables, ragged lists, blocks and token lists. */
#include "bind_fixture.h"

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
