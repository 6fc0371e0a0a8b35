/* Claims about the oracle's decode: numbers are worked by hand. */
#include "reference_fixture.h"

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
