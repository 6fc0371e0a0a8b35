/* Claims about the oracle's decode. Caches are laid out by offsets written here by hand, never by the layout
 * algebra; numbers are worked by hand where they can be. */
#include "../../generator/reference.h"
#include "../example_contract.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define EXPECT_NEAR(found, expected)                                                                         \
  cr_expect(fabs((found) - (expected)) <= 1e-12 * fmax(1.0, fabs(expected)), "%.17g, expected %.17g",        \
            (found), (expected))

static hd_status decode(const contract *c, const reference_decode_args *args) {
  diags problems;
  diags_init(&problems);
  const hd_status status = reference_decode(c, args, &problems);
  cr_expect_eq(diags_errors(&problems), status == HD_OK ? 0 : 1);
  diags_finish(&problems);
  return status;
}

static void expect_invalid(const contract *c, const reference_decode_args *args, const char *code) {
  diags problems;
  diags_init(&problems);
  cr_expect_eq(reference_decode(c, args, &problems), HD_INVALID);
  cr_assert_eq(problems.count, 1);
  cr_expect_str_eq(problems.items[0].code, code);
  diags_finish(&problems);
}

/* One sequence, one kv head, dim 2, pages of 2 tokens laid out [page, slot, channel]; small enough to work by
 * hand. */
typedef struct tiny {
  contract c;
  reference_decode_args args;
  unsigned char q[8 * 4 * 2 * 2], k[8 * 2 * 2 * 2], v[8 * 2 * 2 * 2]; /* bf16: 8 rows of 4 heads; 8 pages */
  int32_t table[8], lengths[8];
  float sinks[4];
  double out[8 * 4 * 2], lse[8 * 4];
} tiny;

static void tiny_init(tiny *t) {
  memset(t, 0, sizeof *t);
  t->c = example_contract(2, 2, 2);
  for (int i = 0; i < 8; i++)
    t->table[i] = i;
  const reference_cache k = {t->k, 4, 4}, v = {t->v, 4, 4}, none = {0};
  t->args = (reference_decode_args){.seqs = 1,
                                    .rows = 1,
                                    .kv_heads = 1,
                                    .table_pages = 8,
                                    .pages = 8,
                                    .q = t->q,
                                    .k_cache = k,
                                    .v_cache = v,
                                    .k_scale = none,
                                    .v_scale = none,
                                    .page_table = t->table,
                                    .lengths = t->lengths,
                                    .sinks = t->sinks,
                                    .logits_scale = 1.0,
                                    .out = t->out,
                                    .lse = t->lse};
  t->lengths[0] = 2;
  for (int i = 0; i < 64; i++)
    t->out[i] = -77.0;
  for (int i = 0; i < 32; i++)
    t->lse[i] = -77.0;
}

static void tiny_query(tiny *t, int row_head, double x, double y) {
  put(DTYPE_BF16, t->q, 2 * row_head, x);
  put(DTYPE_BF16, t->q, 2 * row_head + 1, y);
}

/* Token `position` by its physical place: page position / 2, slot position % 2. */
static void tiny_token(tiny *t, int position, double kx, double ky, double vx, double vy) {
  put(DTYPE_BF16, t->k, 2 * position, kx);
  put(DTYPE_BF16, t->k, 2 * position + 1, ky);
  put(DTYPE_BF16, t->v, 2 * position, vx);
  put(DTYPE_BF16, t->v, 2 * position + 1, vy);
}

/* Logits 2 and 1; values (1, 10) and (3, 50). */
static void tiny_two_tokens(tiny *t) {
  tiny_init(t);
  tiny_query(t, 0, 2.0, 1.0);
  tiny_token(t, 0, 1.0, 0.0, 1.0, 10.0);
  tiny_token(t, 1, 0.0, 1.0, 3.0, 50.0);
}

static const double sigmoid_1 = 0.73105857863000487925; /* 1 / (1 + e^-1) */

Test(reference, two_tokens_by_hand) {
  tiny t;
  tiny_two_tokens(&t);
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0 - 2.0 * sigmoid_1);
  EXPECT_NEAR(t.out[1], 50.0 - 40.0 * sigmoid_1);
  EXPECT_NEAR(t.lse[0], 2.3132616875182228341); /* 2 + ln(1 + e^-1) */
}

Test(reference, lse_may_be_left_out) {
  tiny t;
  tiny_two_tokens(&t);
  t.args.lse = NULL;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0 - 2.0 * sigmoid_1);
}

Test(reference, logits_scale_comes_from_where_the_contract_says) {
  tiny t;
  tiny_two_tokens(&t);
  t.args.logits_scale = 0.5;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 1.4740769841801067); /* 1 + ln(1 + e^-0.5) */
  t.c.logits.scale = LOGITS_RSQRT_D;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], log(exp(2.0 / sqrt(2.0)) + exp(1.0 / sqrt(2.0))));
  t.c.logits.scale = LOGITS_NUMBER;
  t.c.logits.number = 0.0;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 0.69314718055994530942);
  EXPECT_NEAR(t.out[1], 30.0);
}

Test(reference, softcap_bends_the_scaled_logit) {
  tiny t;
  tiny_two_tokens(&t);
  t.args.logits_scale = 3.0;
  t.c.logits.softcap = 2.0;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  const double a = 2.0 * tanh(3.0), b = 2.0 * tanh(1.5);
  EXPECT_NEAR(t.lse[0], log(exp(a) + exp(b)));
  EXPECT_NEAR(t.out[0], (exp(a) + 3.0 * exp(b)) / (exp(a) + exp(b)));
}

Test(reference, a_sink_adds_to_the_denominator_alone) {
  tiny t;
  tiny_two_tokens(&t);
  t.c.mask.sinks = true;
  t.sinks[0] = 1.0f;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  const double sum = exp(2.0) + 2.0 * exp(1.0);
  EXPECT_NEAR(t.out[0], (exp(2.0) + 3.0 * exp(1.0)) / sum);
  EXPECT_NEAR(t.lse[0], log(sum));
  t.c.mask.sinks = false; /* the argument alone does nothing */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0 - 2.0 * sigmoid_1);
}

Test(reference, a_large_sink_does_not_overflow) {
  tiny t;
  tiny_two_tokens(&t);
  t.c.mask.sinks = true;
  t.sinks[0] = 1e30f;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 0.0);
  t.sinks[0] = -INFINITY;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0 - 2.0 * sigmoid_1);
}

Test(reference, sinks_belong_to_query_heads) {
  tiny t;
  tiny_two_tokens(&t);
  t.c.query.heads_per_kv = 2;
  t.c.mask.sinks = true;
  tiny_query(&t, 1, 2.0, 1.0);
  t.sinks[0] = -INFINITY;
  t.sinks[1] = 2.0f;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 2.3132616875182228341);
  EXPECT_NEAR(t.lse[1], log(2.0 * exp(2.0) + exp(1.0)));
}

Test(reference, sinks_count_on_over_kv_heads) {
  tiny t;
  tiny_init(&t);
  t.args.kv_heads = 2;
  t.args.k_cache.stride_h = t.args.v_cache.stride_h = 0; /* both heads read the same cache */
  t.c.mask.sinks = true;
  t.lengths[0] = 0;
  t.sinks[0] = 1.0f;
  t.sinks[1] = 2.0f;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 1.0);
  EXPECT_NEAR(t.lse[1], 2.0);
}

Test(reference, length_zero_reads_nothing) {
  tiny t;
  tiny_init(&t);
  t.lengths[0] = 0;
  t.table[0] = -5;
  t.args.k_cache.data = t.args.v_cache.data = NULL;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(t.out[0] == 0.0 && t.out[1] == 0.0);
  cr_expect(t.lse[0] == -(double)INFINITY);
  t.c.mask.sinks = true;
  t.sinks[0] = 1.5f;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(t.out[0] == 0.0);
  EXPECT_NEAR(t.lse[0], 1.5);
}

Test(reference, what_lies_past_the_length_has_no_influence) {
  tiny t;
  tiny_two_tokens(&t);
  t.lengths[0] = 1;
  tiny_token(&t, 1, NAN, INFINITY, NAN, -INFINITY);
  t.table[1] = INT32_MAX;
  t.table[2] = INT32_MIN;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 1.0);
  EXPECT_NEAR(t.out[1], 10.0);
  EXPECT_NEAR(t.lse[0], 2.0);
}

Test(reference, a_visible_page_outside_the_cache_is_refused) {
  static const int32_t bad[] = {8, -1, INT32_MAX, INT32_MIN};
  for (int i = 0; i < 4; i++) {
    tiny t;
    tiny_two_tokens(&t);
    t.lengths[0] = 3;
    t.table[1] = bad[i];
    cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
  }
}

Test(reference, a_length_outside_the_table_is_refused) {
  tiny t;
  tiny_two_tokens(&t);
  t.lengths[0] = 3; /* the page after the table would be a good one */
  t.args.table_pages = 1;
  cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
  t.lengths[0] = -1;
  cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
}

Test(reference, an_unresolved_dialect_is_refused) {
  tiny t;
  tiny_two_tokens(&t);
  t.c.kv.v_dtype = DTYPE_FP8_E4M3;
  cr_expect_eq(decode(&t.c, &t.args), HD_INVALID);
}

Test(reference, the_page_table_says_where_tokens_lie) {
  tiny t;
  tiny_two_tokens(&t);
  tiny_token(&t, 10, 1.0, 0.0, 1.0, 10.0); /* page 5, slot 0 */
  tiny_token(&t, 11, 0.0, 1.0, 3.0, 50.0);
  tiny_token(&t, 0, NAN, NAN, NAN, NAN);
  t.table[0] = 5;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0 - 2.0 * sigmoid_1);
}

/* Token i has logit 0 and value (i, i^2), so that an output is a plain average over what is visible. */
static void tiny_counting(tiny *t, int length) {
  tiny_init(t);
  for (int i = 0; i < length; i++)
    tiny_token(t, i, 1.0, -1.0, i, i * i);
  t->lengths[0] = length;
}

Test(reference, a_query_of_zeros_averages) {
  tiny t;
  tiny_counting(&t, 5);
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 2.0);
  EXPECT_NEAR(t.out[1], 6.0);
  EXPECT_NEAR(t.lse[0], log(5.0));
}

Test(reference, row_i_of_r_sees_r_minus_i_minus_1_tokens_less) {
  tiny t;
  tiny_counting(&t, 5);
  t.args.rows = t.c.query.rows = 3;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 1.0); /* tokens 0..2 */
  EXPECT_NEAR(t.out[2], 1.5);
  EXPECT_NEAR(t.out[4], 2.0);
  t.c.mask.causal = false;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  for (int row = 0; row < 3; row++)
    EXPECT_NEAR(t.out[2 * row], 2.0);
}

Test(reference, more_rows_than_tokens_leave_the_first_rows_empty) {
  tiny t;
  tiny_counting(&t, 2);
  t.args.rows = t.c.query.rows = 4;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(t.out[0] == 0.0 && t.out[2] == 0.0);
  cr_expect(t.lse[1] == -(double)INFINITY);
  EXPECT_NEAR(t.lse[2], 0.0);
  EXPECT_NEAR(t.out[6], 0.5);
}

Test(reference, a_window_leaves_the_last_tokens_of_each_row) {
  tiny t;
  tiny_counting(&t, 6);
  t.args.rows = t.c.query.rows = 2;
  t.c.mask.window = 3;
  t.table[0] = -1; /* tokens 0 and 1 are seen by nobody */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 3.0); /* 2, 3, 4 */
  EXPECT_NEAR(t.out[2], 4.0); /* 3, 4, 5 */
  EXPECT_NEAR(t.lse[0], log(3.0));
}

Test(reference, nan_and_infinity_of_visible_tokens_propagate) {
  tiny t;
  tiny_two_tokens(&t);
  tiny_token(&t, 1, NAN, 1.0, 3.0, 50.0); /* a NaN key: a NaN logit: a NaN row */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(isnan(t.out[0]) && isnan(t.out[1]) && isnan(t.lse[0]));
  tiny_two_tokens(&t);
  tiny_token(&t, 1, 0.0, 1.0, NAN, 50.0); /* a NaN value: its channel alone */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(isnan(t.out[0]));
  EXPECT_NEAR(t.out[1], 50.0 - 40.0 * sigmoid_1);
  tiny_two_tokens(&t);
  tiny_token(&t, 1, 0.0, 1.0, -INFINITY, 50.0);
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(t.out[0] == -(double)INFINITY);
  tiny_two_tokens(&t);
  tiny_token(&t, 1, -INFINITY, 0.0, 3.0, 50.0); /* logit -inf: probability 0 */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.out[0], 1.0);
  tiny_token(&t, 1, INFINITY, 0.0, 3.0, 50.0); /* inf - inf */
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  cr_expect(isnan(t.out[0]));
}

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

enum { PAGES = 3, HEADS = 2, SLOTS = 4, CHANNELS = 4 };

typedef int64_t (*offset_function)(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                   int64_t stride_h);

static int64_t offset_hnd(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b, int64_t stride_h) {
  return b * stride_b + h * stride_h + s * 4 + d;
}
static int64_t offset_nhd(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b, int64_t stride_h) {
  return b * stride_b + s * 2 * stride_h + h * stride_h + d;
}
static int64_t offset_vectors_of_channels(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                          int64_t stride_h) {
  return b * stride_b + h * stride_h + (d / 2) * 8 + s * 2 + d % 2;
}
static int64_t offset_vectors_of_tokens(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                        int64_t stride_h) {
  return b * stride_b + h * stride_h + (s / 2) * 8 + d * 2 + s % 2;
}
static int64_t offset_transposed(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                 int64_t stride_h) {
  return b * stride_b + h * stride_h + d * 4 + s;
}

typedef struct layout_case {
  const char *name, *k, *v;
  offset_function k_offset, v_offset;
  int64_t k_stride_b, k_stride_h, v_stride_b, v_stride_h;
} layout_case;

static const layout_case layout_cases[] = {
    {"HND", "b h s d", "b h s d", offset_hnd, offset_hnd, 32, 16, 32, 16},
    {"HND, padded, K and V apart", "b h s d", "b h s d", offset_hnd, offset_hnd, 50, 20, 36, 18},
    {"NHD", "b s h d", "b s h d", offset_nhd, offset_nhd, 32, 4, 32, 4},
    {"NHD, padded", "b s h d", "b s h d", offset_nhd, offset_nhd, 60, 5, 48, 6},
    {"shuffled", "b h d/2 s d%2", "b h s/2 d s%2", offset_vectors_of_channels, offset_vectors_of_tokens, 32,
     16, 40, 20},
    {"classic", "b h d/2 s d%2", "b h d s", offset_vectors_of_channels, offset_transposed, 32, 16, 32, 16},
    {"heads outermost", "h b s d", "h b d s", offset_hnd, offset_transposed, 16, 48, 16, 64},
};

/* Distinct and exact in bf16. */
static double key_at(int64_t b, int64_t h, int64_t s, int64_t d) {
  return (double)(((b * HEADS + h) * SLOTS + s) * CHANNELS + d + 1);
}
static double value_at(int64_t b, int64_t h, int64_t s, int64_t d) {
  return -0.5 * key_at(b, h, s, d);
}

/* Every element on its own: a window of one token makes lse the key channel that q points at and out the
 * value. */
static void check_layout(const layout_case *l) {
  enum { ELEMENTS = 256 };
  unsigned char k[ELEMENTS * 2], v[ELEMENTS * 2], q[HEADS * CHANNELS * 2];
  for (int i = 0; i < ELEMENTS; i++) {
    put(DTYPE_BF16, k, i, NAN);
    put(DTYPE_BF16, v, i, NAN);
  }
  for (int i = 0; i < PAGES * HEADS * SLOTS * CHANNELS; i++) {
    const int b = i / 32, h = i / 16 % 2, s = i / 4 % 4, d = i % 4;
    put(DTYPE_BF16, k, l->k_offset(b, h, s, d, l->k_stride_b, l->k_stride_h), key_at(b, h, s, d));
    put(DTYPE_BF16, v, l->v_offset(b, h, s, d, l->v_stride_b, l->v_stride_h), value_at(b, h, s, d));
  }
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k = example_layout(l->k, SLOTS, CHANNELS);
  c.kv.v = example_layout(l->v, SLOTS, CHANNELS);
  c.mask.window = 1;
  const int32_t table[] = {2, 0, 1};
  int32_t length = 0;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {k, l->k_stride_b, l->k_stride_h},
                                      .v_cache = {v, l->v_stride_b, l->v_stride_h},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  for (int channel = 0; channel < CHANNELS; channel++) {
    for (int i = 0; i < HEADS * CHANNELS; i++)
      put(DTYPE_BF16, q, i, i % CHANNELS == channel ? 1.0 : 0.0);
    for (length = 1; length <= PAGES * SLOTS; length++) {
      const int b = table[(length - 1) / SLOTS], s = (length - 1) % SLOTS;
      cr_assert_eq(decode(&c, &args), HD_OK);
      for (int h = 0; h < HEADS; h++) {
        cr_expect(lse[h] == key_at(b, h, s, channel), "%s: key %d %d %d %d", l->name, b, h, s, channel);
        cr_expect(out[h * CHANNELS + channel] == value_at(b, h, s, channel), "%s: value", l->name);
      }
    }
  }
}

Test(reference, every_element_of_every_layout_is_found) {
  for (size_t i = 0; i < sizeof layout_cases / sizeof layout_cases[0]; i++)
    check_layout(&layout_cases[i]);
}

/* Scales. Codes are all 1, so that a key's logit is the sum of the scales of its channels and a value is its
 * scale. */

typedef struct scale_case {
  granularity granularity;
  const char *layout; /* NULL: none needed */
  int group;
  int64_t stride_b, stride_h;
  int64_t b, h, s, d; /* weights of the page, head, slot and group index in the offset, by hand */
} scale_case;

static const scale_case scale_cases[] = {
    {SCALE_TENSOR, NULL, 0, 0, 0, 0, 0, 0, 0},        {SCALE_HEAD, "h", 0, 0, 1, 0, 1, 0, 0},
    {SCALE_HEAD, "h", 0, 0, 3, 0, 3, 0, 0},           {SCALE_TOKEN, "b s", 0, 4, 0, 4, 0, 1, 0},
    {SCALE_TOKEN_HEAD, "b h s", 0, 8, 4, 8, 4, 1, 0}, {SCALE_TOKEN_HEAD, "b h s", 0, 16, 5, 16, 5, 1, 0},
    {SCALE_TOKEN_HEAD, "b s h", 0, 8, 1, 8, 1, 2, 0}, {SCALE_TOKEN_HEAD, "h b s", 0, 4, 12, 4, 12, 1, 0},
    {SCALE_PAGE_HEAD, "b h", 0, 2, 1, 2, 1, 0, 0},    {SCALE_PAGE_HEAD, "h b", 0, 1, 3, 1, 3, 0, 0},
    {SCALE_GROUP, "b h s d", 2, 16, 8, 16, 8, 2, 1},  {SCALE_GROUP, "b h d s", 1, 32, 16, 32, 16, 1, 4},
};

static void check_scale(const scale_case *x, dtype scale_dtype) {
  enum { ELEMENTS = 128 };
  unsigned char codes[96], k_scale[ELEMENTS * 4], v_scale[ELEMENTS * 4], q[HEADS * CHANNELS * 2];
  memset(codes, 0x38, sizeof codes); /* 1.0 in e4m3fn */
  for (int i = 0; i < ELEMENTS; i++) {
    put(scale_dtype, k_scale, i, ldexp(1.0, i % 11 - 5));
    put(scale_dtype, v_scale, i, ldexp(1.0, i % 13 - 6));
  }
  for (int i = 0; i < HEADS * CHANNELS; i++)
    put(DTYPE_BF16, q, i, 1.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.scale.granularity = x->granularity;
  c.scale.dtype = scale_dtype;
  c.scale.group_k = c.scale.group_v = x->group;
  if (x->layout != NULL)
    c.scale.k = c.scale.v = example_layout(x->layout, SLOTS, x->group > 0 ? CHANNELS / x->group : CHANNELS);
  c.mask.window = 1;
  const int32_t table[] = {2, 0, 1};
  int32_t length = 0;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {codes, 32, 16},
                                      .v_cache = {codes, 32, 16},
                                      .k_scale = {k_scale, x->stride_b, x->stride_h},
                                      .v_scale = {v_scale, x->stride_b, x->stride_h},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  for (length = 1; length <= PAGES * SLOTS; length++) {
    const int64_t b = table[(length - 1) / SLOTS], s = (length - 1) % SLOTS;
    cr_assert_eq(decode(&c, &args), HD_OK);
    for (int64_t h = 0; h < HEADS; h++) {
      double logit = 0.0;
      for (int64_t d = 0; d < CHANNELS; d++) {
        const int64_t i = b * x->b + h * x->h + s * x->s + (x->group > 0 ? d / x->group * x->d : 0);
        logit += ldexp(1.0, (int)(i % 11) - 5);
        cr_expect(out[h * CHANNELS + d] == ldexp(1.0, (int)(i % 13) - 6), "%s", x->layout);
      }
      cr_expect(lse[h] == logit, "%s", x->layout);
    }
  }
}

/* A number that is given with the call is read like the one in memory that it stands for. */
Test(reference, a_scale_that_is_an_argument_is_that_number) {
  enum { TOKENS = 2 };
  unsigned char codes[PAGES * HEADS * SLOTS * CHANNELS], q[HEADS * CHANNELS * 2];
  memset(codes, 0x38, sizeof codes); /* 1.0 in e4m3fn */
  for (int i = 0; i < HEADS * CHANNELS; i++)
    put(DTYPE_BF16, q, i, 1.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  const int32_t table[] = {2, 0, 1}, length = TOKENS;
  const float k_scale = 0.25f, v_scale = 3.0f;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {codes, HEADS * SLOTS * CHANNELS, SLOTS * CHANNELS},
                                      .v_cache = {codes, HEADS * SLOTS * CHANNELS, SLOTS * CHANNELS},
                                      .k_scale = {&k_scale, 0, 0},
                                      .v_scale = {&v_scale, 0, 0},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  for (int h = 0; h < HEADS; h++) {
    cr_expect(out[h * CHANNELS] == 3.0, "%g", out[h * CHANNELS]);
    cr_expect_float_eq(lse[h], 0.25 * CHANNELS + log(TOKENS), 1e-12);
  }
}

Test(reference, every_granularity_finds_its_scale) {
  for (size_t i = 0; i < sizeof scale_cases / sizeof scale_cases[0]; i++)
    check_scale(&scale_cases[i], DTYPE_FP32);
}

Test(reference, scales_may_be_fp16_or_e8m0) {
  check_scale(&scale_cases[4], DTYPE_FP16);
  check_scale(&scale_cases[10], DTYPE_E8M0);
}

Test(reference, the_same_byte_is_another_number_in_another_dialect) {
  static const struct {
    dtype d;
    double value;
  } cases[] = {
      {DTYPE_FP8_E4M3FN, -1.25}, {DTYPE_FP8_E4M3FNUZ, -0.625}, {DTYPE_FP8_E5M2, -0.75}, {DTYPE_INT8, -70.0}};
  for (int i = 0; i < 4; i++) {
    tiny t;
    tiny_init(&t);
    memset(t.v, 0xba, sizeof t.v);
    t.c.kv.v_dtype = cases[i].d; /* K stays bf16 */
    cr_assert_eq(decode(&t.c, &t.args), HD_OK);
    EXPECT_NEAR(t.out[0], cases[i].value);
  }
}

Test(reference, scales_of_invisible_slots_have_no_influence) {
  tiny t;
  tiny_two_tokens(&t);
  float scale[16];
  for (int i = 0; i < 16; i++)
    scale[i] = i == 0 ? 2.0f : i % 2 == 0 ? NAN : INFINITY;
  t.c.scale.granularity = SCALE_TOKEN_HEAD;
  t.c.scale.k = t.c.scale.v = example_layout("b h s", 2, 2);
  t.args.k_scale = t.args.v_scale = (reference_cache){scale, 2, 2};
  t.lengths[0] = 1;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 4.0);
  EXPECT_NEAR(t.out[1], 20.0);
}

/* Query heads, kv heads, sequences: which goes with which. */
Test(reference, query_heads_share_their_kv_head_and_sequences_keep_apart) {
  enum { SEQS = 2, G = 3 };
  unsigned char q[SEQS * HEADS * G * CHANNELS * 2], cache[PAGES * 32 * 2];
  for (int i = 0; i < PAGES * 32; i++)
    put(DTYPE_BF16, cache, i, i);
  for (int i = 0; i < SEQS * HEADS * G * CHANNELS; i++)
    put(DTYPE_BF16, q, i, i % CHANNELS == 0 ? i / CHANNELS + 1 : 0.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.query.heads_per_kv = G;
  const int32_t table[] = {1, 2}, lengths[] = {1, 1};
  double out[SEQS * HEADS * G * CHANNELS], lse[SEQS * HEADS * G];
  const reference_decode_args args = {.seqs = SEQS,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 1,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {cache, 32, 16},
                                      .v_cache = {cache, 32, 16},
                                      .page_table = table,
                                      .lengths = lengths,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  for (int i = 0; i < SEQS * HEADS * G; i++) {
    const int seq = i / 6, head = i % 6 / 3;
    const double first = 32.0 * (seq + 1) + 16.0 * head;
    EXPECT_NEAR(lse[i], (i + 1) * first);
    EXPECT_NEAR(out[i * CHANNELS + 3], first + 3.0);
  }
}

Test(reference, a_kv_head_may_have_a_table_of_its_own) {
  unsigned char q[HEADS * CHANNELS * 2], cache[PAGES * 32 * 2];
  memset(q, 0, sizeof q);
  for (int i = 0; i < PAGES * 32; i++)
    put(DTYPE_BF16, cache, i, i);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.select.per = PER_KV_HEAD;
  const int32_t table[] = {2, 0, 0, 1}, length = 5; /* [1 sequence, 2 heads, 2 pages] */
  double out[HEADS * CHANNELS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 2,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {cache, 32, 16},
                                      .v_cache = {cache, 32, 16},
                                      .page_table = table,
                                      .lengths = &length,
                                      .out = out};
  cr_assert_eq(decode(&c, &args), HD_OK);
  EXPECT_NEAR(out[0], (64.0 + 68.0 + 72.0 + 76.0 + 0.0) / 5.0);
  EXPECT_NEAR(out[CHANNELS], (16.0 + 20.0 + 24.0 + 28.0 + 48.0) / 5.0);
}

Test(reference, key_and_value_heads_may_differ_in_size) {
  unsigned char q[3 * 2], k[4 * 3 * 2], v[4 * 2 * 2];
  for (int i = 0; i < 3; i++)
    put(DTYPE_BF16, q, i, i == 2 ? 1.0 : 0.0);
  for (int i = 0; i < 12; i++)
    put(DTYPE_BF16, k, i, i < 3 ? 5.0 : 0.0);
  for (int i = 0; i < 8; i++)
    put(DTYPE_BF16, v, i, i + 1);
  const contract c = example_contract(4, 3, 2);
  const int32_t page = 0, length = 1;
  double out[2], lse;
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = 1,
                                      .table_pages = 1,
                                      .pages = 1,
                                      .q = q,
                                      .k_cache = {k, 12, 12},
                                      .v_cache = {v, 8, 8},
                                      .page_table = &page,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = &lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  EXPECT_NEAR(lse, 5.0);
  cr_expect(out[0] == 1.0 && out[1] == 2.0);
}

/* Identities, on a random fp8 cache with a scale per token and head. */

typedef struct random_case {
  contract c;
  reference_decode_args args;
  unsigned char q[2 * 2 * 4 * 16 * 2], k[8 * 2 * 4 * 16], v[8 * 2 * 4 * 16];
  float k_scale[8 * 2 * 4], v_scale[8 * 2 * 4];
  int32_t table[2 * 4], lengths[2];
  double out[2 * 2 * 4 * 16], lse[2 * 2 * 4];
} random_case;

enum { PAGE_BYTES = 2 * 4 * 16, PAGE_SCALES = 2 * 4, OUTPUTS = 2 * 2 * 4 * 16 };

static double random_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) * 0x1p-23 - 1.0;
}

/* 2 sequences of 13 and 7 tokens, 2 rows, 2 kv heads, g 2, page 4, dim 16, 8 pages. */
static void random_init(random_case *r) {
  memset(r, 0, sizeof *r);
  uint32_t state = 12345;
  r->c = example_contract(4, 16, 16);
  r->c.kv.k_dtype = r->c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  r->c.query.heads_per_kv = 2;
  r->c.query.rows = 2;
  r->c.scale.granularity = SCALE_TOKEN_HEAD;
  r->c.scale.k = r->c.scale.v = example_layout("b h s", 4, 16);
  for (int i = 0; i < OUTPUTS; i++)
    put(DTYPE_BF16, r->q, i, random_number(&state));
  for (int i = 0; i < 8 * PAGE_BYTES; i++) {
    put(DTYPE_FP8_E4M3FN, r->k, i, 448.0 * random_number(&state));
    put(DTYPE_FP8_E4M3FN, r->v, i, 448.0 * random_number(&state));
  }
  for (int i = 0; i < 8 * PAGE_SCALES; i++) {
    r->k_scale[i] = (float)(0.01 + 0.005 * random_number(&state));
    r->v_scale[i] = (float)exp(8.0 * random_number(&state));
  }
  static const int32_t table[] = {6, 1, 4, 3, 0, 7, -1, 1 << 30};
  memcpy(r->table, table, sizeof table);
  r->lengths[0] = 13;
  r->lengths[1] = 7;
  r->args = (reference_decode_args){.seqs = 2,
                                    .rows = 2,
                                    .kv_heads = 2,
                                    .table_pages = 4,
                                    .pages = 8,
                                    .q = r->q,
                                    .k_cache = {r->k, 128, 64},
                                    .v_cache = {r->v, 128, 64},
                                    .k_scale = {r->k_scale, 8, 4},
                                    .v_scale = {r->v_scale, 8, 4},
                                    .page_table = r->table,
                                    .lengths = r->lengths,
                                    .logits_scale = 0.25,
                                    .out = r->out,
                                    .lse = r->lse};
  cr_assert_eq(decode(&r->c, &r->args), HD_OK);
}

static void expect_same(const random_case *a, const random_case *b) {
  cr_expect(memcmp(a->out, b->out, sizeof a->out) == 0);
  cr_expect(memcmp(a->lse, b->lse, sizeof a->lse) == 0);
}

Test(reference, permuting_pages_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int page = 0; page < 8; page++) { /* page p moves to 7 - p */
    memcpy(b.k + (7 - page) * PAGE_BYTES, a.k + page * PAGE_BYTES, PAGE_BYTES);
    memcpy(b.v + (7 - page) * PAGE_BYTES, a.v + page * PAGE_BYTES, PAGE_BYTES);
    memcpy(b.k_scale + (7 - page) * PAGE_SCALES, a.k_scale + page * PAGE_SCALES, sizeof(float) * PAGE_SCALES);
    memcpy(b.v_scale + (7 - page) * PAGE_SCALES, a.v_scale + page * PAGE_SCALES, sizeof(float) * PAGE_SCALES);
  }
  for (int i = 0; i < 6; i++)
    b.table[i] = 7 - a.table[i];
  memset(b.out, 0, sizeof b.out);
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
}

Test(reference, scaling_v_scales_the_output_alone) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int i = 0; i < 8 * PAGE_SCALES; i++)
    b.v_scale[i] *= 4.0f;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  for (int i = 0; i < OUTPUTS; i++)
    cr_expect(b.out[i] == 4.0 * a.out[i]);
  cr_expect(memcmp(a.lse, b.lse, sizeof a.lse) == 0);
}

Test(reference, a_longer_window_that_sees_no_more_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  b.c.mask.window = 13;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
  b.c.mask.window = 1000000;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
  b.c.mask.window = 12;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  cr_expect(memcmp(a.out, b.out, sizeof a.out) != 0);
}

Test(reference, halving_q_and_doubling_the_logits_scale_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int i = 0; i < OUTPUTS; i++)
    put(DTYPE_BF16, b.q, i, 0.5 * get(DTYPE_BF16, a.q, i));
  b.args.logits_scale = 0.5;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
}

Test(reference, a_shifted_last_row_is_the_one_row_decode) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  b.c.query.rows = 1; /* row 0 of 2 sees one token less */
  b.args.rows = 1;
  b.args.seqs = 1;
  b.lengths[0] = 12;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  cr_expect(memcmp(a.out, b.out, sizeof(double) * 4 * 16) == 0);
}

Test(reference, outputs_stay_within_the_values_they_average) {
  random_case r;
  random_init(&r);
  double largest = 0.0;
  for (int i = 0; i < 8 * PAGE_SCALES; i++)
    largest = fmax(largest, (double)r.v_scale[i] * 448.0);
  for (int i = 0; i < OUTPUTS; i++)
    cr_expect(fabs(r.out[i]) <= largest);
}
