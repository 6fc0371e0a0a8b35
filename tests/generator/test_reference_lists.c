/* Claims about the oracle's decode: which tokens page tables, ragged lists, blocks and token lists name. */
#include "reference_fixture.h"

Test(reference, indptr_lists_the_pages_of_each_sequence) {
  tiny t;
  tiny_counting(&t, 16);
  const int32_t indptr[] = {1, 3, 3, 4}, last[] = {1, 77, 2}, indices[] = {-9, 4, 2, 7, -9};
  t.c.select.form = SELECT_INDPTR;
  t.args.seqs = 3;
  t.args.kv_indptr = indptr;
  t.args.kv_indices = indices;
  t.args.last_page_len = last;
  t.args.page_table = NULL;
  t.args.lengths = NULL;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (8.0 + 9.0 + 4.0) / 3.0);
  cr_expect(t.out[2] == 0.0 && t.lse[1] == -(double)INFINITY);
  EXPECT_NEAR(t.out[4], 14.5);
  const int32_t backwards[] = {3, 1, 3, 4};
  t.args.kv_indptr = backwards;
  cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
}

Test(reference, a_row_may_have_a_table_and_a_length_of_its_own) {
  tiny t;
  tiny_counting(&t, 16);
  const int32_t table[] = {3, 5, 1, 0}; /* [2 rows, 2 pages] */
  t.c.select.per = PER_ROW;
  t.args.rows = t.c.query.rows = 2;
  t.args.page_table = table;
  t.args.table_pages = 2;
  t.lengths[0] = 3;
  t.lengths[1] = 1;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (6.0 + 7.0 + 10.0) / 3.0);
  EXPECT_NEAR(t.out[2], 2.0);
}

Test(reference, block_lists_choose_among_the_tokens_a_row_would_see) {
  tiny t;
  tiny_counting(&t, 16);
  const int32_t blocks[] = {2, 0, -1, 0, 99, 0}; /* [1 head, 2 rows, 3]; 4 tokens a block */
  t.c.select.form = SELECT_BLOCKS;
  t.c.select.block = 4;
  t.args.rows = t.c.query.rows = 2;
  t.args.block_list = blocks;
  t.args.listed = t.args.listed_stride_row = 3;
  t.lengths[0] = 11;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (0.0 + 1.0 + 2.0 + 3.0 + 8.0 + 9.0) / 6.0); /* the row ends at token 9 */
  EXPECT_NEAR(t.out[2], 1.5);
}

/* 2 sequences, 2 kv heads that read the same cache, 2 rows: 8 lists, each of one block of its own. */
Test(reference, block_lists_are_per_kv_head_then_row) {
  tiny t;
  tiny_counting(&t, 16);
  const int32_t blocks[] = {0, 1, 2, 3,
                            4, 5, 6, 7}; /* [2 heads, 2 sequences * 2 rows, 1]; 2 tokens a block */
  const int32_t table[] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
  t.c.select.form = SELECT_BLOCKS;
  t.c.select.block = 2;
  t.c.mask.causal = false;
  t.c.query.rows = 2;
  t.args.rows = t.args.seqs = t.args.kv_heads = 2;
  t.args.k_cache.stride_h = t.args.v_cache.stride_h = 0;
  t.args.page_table = table;
  t.args.block_list = blocks;
  t.args.listed = t.args.listed_stride_row = 1;
  t.args.listed_stride_h = 4;
  t.lengths[0] = t.lengths[1] = 16;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  for (int seq_row = 0; seq_row < 4; seq_row++) {
    for (int head = 0; head < 2; head++)
      EXPECT_NEAR(t.out[2 * (2 * seq_row + head)], 2.0 * blocks[4 * head + seq_row] + 0.5);
  }
}

/* A prefill decoded token by token: every row has its own length, several look up one row of the table. */
Test(reference, rows_with_block_lists_may_share_a_row_of_the_table) {
  tiny t;
  tiny_counting(&t, 16);
  const int32_t blocks[] = {0, 1, 0, 1, 1, 0}; /* 3 rows, 2 each; 2 tokens a block */
  const int32_t table[] = {7, 6, 1, 0}, map[] = {1, 1, 0}, lengths[] = {3, 1, 4};
  t.c.select.form = SELECT_BLOCKS;
  t.c.select.block = 2;
  t.c.select.per = PER_ROW;
  t.args.seqs = 3;
  t.args.page_table = table;
  t.args.table_pages = t.args.table_rows = 2;
  t.args.lengths = lengths;
  t.args.row_sequences = map;
  t.args.block_list = blocks;
  t.args.listed = t.args.listed_stride_row = 2;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (2.0 + 3.0 + 0.0) / 3.0);
  EXPECT_NEAR(t.out[2], 2.0);
  EXPECT_NEAR(t.out[4], (14.0 + 15.0 + 12.0 + 13.0) / 4.0);
  const int32_t wrong[] = {1, 2, 0};
  t.args.row_sequences = wrong;
  expect_invalid(&t.c, &t.args, "reference.row");
}

Test(reference, token_lists_name_places_and_count_repetitions) {
  tiny t;
  tiny_counting(&t, 8);
  const int64_t tokens[] = {-1, 6, 2, 6, -5, -1, -1, 3}; /* 2 kv heads, 1 row, 4 each */
  t.c.kv.page = 1;
  t.c.kv.k = t.c.kv.v = example_layout("b h d", 1, 2);
  t.args.k_cache.stride_b = t.args.v_cache.stride_b = 2;
  t.c.select.form = SELECT_TOKENS;
  t.c.select.per = PER_ROW;
  t.c.select.index = DTYPE_INT64;
  t.args.pages = 8;
  t.args.token_list = tokens;
  t.args.listed = t.args.listed_stride_row = 4;
  t.args.lengths = NULL;
  t.args.page_table = NULL;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (6.0 + 2.0 + 6.0) / 3.0);
  t.c.select.per = PER_KV_HEAD;
  t.args.kv_heads = 2;
  t.args.k_cache.stride_h = t.args.v_cache.stride_h = 0;
  t.args.listed_stride_h = 4;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], (6.0 + 2.0 + 6.0) / 3.0);
  EXPECT_NEAR(t.out[2], 3.0);
  t.args.pages = 6;
  expect_invalid(&t.c, &t.args, "reference.page");
}

Test(reference, page_ids_may_be_int64) {
  tiny t;
  tiny_counting(&t, 4);
  const int64_t table[] = {1, INT64_MAX};
  t.c.select.index = DTYPE_INT64;
  t.args.page_table = table;
  t.args.table_pages = 2;
  t.lengths[0] = 2;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 2.5);
  t.lengths[0] = 3;
  cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
}

/* Layouts. 3 pages, 2 heads, 4 tokens a page, 4 channels; what a kernel engineer would write down for each.
 */
