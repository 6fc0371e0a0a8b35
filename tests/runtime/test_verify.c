/* Claims about verification itself: a device that computes what the oracle computes passes every case, and
 * one that is wrong in one place of one case does not. */
#include "../../runtime/verify/verify_pad.h"
#include "verify_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* One scale for K and one for V, which come as numbers. */
static contract number_contract(void) {
  contract c = fp8_contract();
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  c.scale.k.count = c.scale.v.count = 0;
  return c;
}

static void all_cases_are_good(contract c, double rms) {
  for (int i = 0; i < verify_case_count; i++) {
    if (verify_cases[i].large) continue;
    solved s;
    solve(&s, c, &verify_cases[i], 11 + (uint64_t)i);
    verify_outcome o = judge(&s);
    cr_assert(o.good, "%s: %s", verify_cases[i].name, o.problem);
    cr_assert_leq(o.rms, rms, "%s", verify_cases[i].name);
    cr_assert_leq(o.rms_allowed, 2.7e-3, "%s", verify_cases[i].name);
    verify_data_finish(&s.data);
  }
}

/* Rounding to bf16 alone is 1.65e-3, more or less. */
Test(verify, right_results_are_good_in_every_case) {
  all_cases_are_good(fp8_contract(), 2e-3);
  all_cases_are_good(bf16_contract(), 2e-3);
  all_cases_are_good(number_contract(), 2e-3);
}

Test(verify, every_way_of_selecting_is_generated_right) {
  const select_form forms[] = {SELECT_TABLE, SELECT_INDPTR};
  const select_per pers[] = {PER_SEQUENCE, PER_KV_HEAD, PER_ROW};
  for (int f = 0; f < 2; f++)
    for (int p = 0; p < 3; p++)
      for (int index = 0; index < 2; index++) {
        contract c = fp8_contract();
        c.select.form = forms[f];
        c.select.per = pers[p];
        c.select.index = index ? DTYPE_INT64 : DTYPE_INT32;
        solved s;
        solve(&s, c, case_named(index ? "heads" : "lengths"), 5);
        verify_outcome o = judge(&s);
        cr_assert(o.good, "form %d per %d: %s", f, p, o.problem);
        cr_assert_gt(o.cosine, 0.999);
        verify_data_finish(&s.data);
      }
}

/* Of block lists a row may see the tokens of another sequence's table; a wrong place of either is found. */
Test(verify, lists_are_generated_right) {
  const struct {
    select_form form;
    select_per per;
    int page, rows;
  } ways[] = {{SELECT_BLOCKS, PER_SEQUENCE, 16, 1},
              {SELECT_BLOCKS, PER_SEQUENCE, 16, 3},
              {SELECT_BLOCKS, PER_ROW, 16, 1},
              {SELECT_TOKENS, PER_ROW, 1, 2},
              {SELECT_TOKENS, PER_KV_HEAD, 1, 1}};
  for (size_t n = 0; n < sizeof ways / sizeof *ways; n++)
    for (uint64_t seed = 0; seed < 4; seed++) {
      contract c = ways[n].page == 1 ? example_contract(1, 64, 64) : bf16_contract();
      c.query.rows = ways[n].rows;
      c.select.form = ways[n].form;
      c.select.block = ways[n].form == SELECT_BLOCKS ? 32 : 0;
      c.select.per = ways[n].per;
      solved s;
      solve(&s, c, case_named(seed % 2 ? "lists" : "lists-split"), seed);
      verify_outcome o = judge(&s);
      cr_assert(o.good, "way %zu: %s", n, o.problem);
      cr_assert_gt(s.data.sizes[DIM_LISTED], 0);
      unsigned char *out = s.data.memory[TENSOR_OUT];
      size_t bytes = tensor_bytes(&s.data.decode.by_name[TENSOR_OUT]);
      for (size_t i = 0; i < bytes / 2; i += 2) /* out's first half: where one list is empty another isn't */
        out[i + 1] ^= 0x80;
      o = judge(&s);
      cr_assert(!o.good, "way %zu: half of the outputs have the wrong sign", n);
      verify_data_finish(&s.data);
    }
}

Test(verify, several_rows_see_each_its_own_tokens) {
  contract c = fp8_contract();
  c.query.rows = 3;
  solved s;
  solve(&s, c, case_named("lengths"), 5);
  cr_assert_eq(s.dims[DIM_ROWS], 3);
  verify_outcome o = judge(&s);
  cr_assert(o.good, "%s", o.problem);
  verify_data_finish(&s.data);
}

Test(verify, random_cases_are_good_too) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    random_state r = {seed};
    verify_case from;
    solved s;
    verify_case_random(&r, "random", &from);
    solve(&s, seed % 2 ? fp8_contract() : bf16_contract(), &from, seed);
    verify_outcome o = judge(&s);
    cr_assert(o.good, "seed %d: %s", (int)seed, o.problem);
    verify_data_finish(&s.data);
  }
}

Test(verify, quantised_caches_stay_close_to_attention_that_was_never_quantised) {
  solved s;
  solve(&s, fp8_contract(), case_named("lengths"), 5);
  verify_outcome o = judge(&s);
  cr_assert_gt(o.cosine, 0.999);
  cr_assert_lt(o.cosine, 0.99999, "fp8 has to show");
  verify_data_finish(&s.data);
  solve(&s, bf16_contract(), case_named("lengths"), 5);
  o = judge(&s);
  cr_assert_gt(o.cosine, 0.99999);
  verify_data_finish(&s.data);
}

Test(verify, peculiar_inputs_are_not_held_against_unquantised_attention) {
  solved s;
  solve(&s, fp8_contract(), case_named("wide-v-scales"), 5);
  cr_assert(isnan(judge(&s).cosine));
  verify_data_finish(&s.data);
}

/* Changes out at `row`, `channel` and expects a verdict that names it. */
static void expect_bad(const char *name, int64_t row, int64_t channel, double value, const char *word) {
  solved s;
  solve(&s, fp8_contract(), case_named(name), 5);
  put(DTYPE_BF16, s.data.memory[TENSOR_OUT], row * 64 + channel, value);
  verify_outcome o = judge(&s);
  cr_assert_not(o.good, "%s row %d", name, (int)row);
  cr_assert_not_null(strstr(o.problem, word), "%s", o.problem);
  verify_data_finish(&s.data);
}

Test(verify, one_wrong_element_is_found) {
  expect_bad("lengths", 9, 3, 2.0, "row 9");
  expect_bad("lengths", 21, 63, 2.0, "row 21");
  expect_bad("heads", 0, 0, 2.0, "row 0");
}

Test(verify, nan_and_infinity_are_found) {
  expect_bad("lengths", 4, 3, (double)NAN, "row 4 channel 3 is nan");
  expect_bad("lengths", 4, 3, (double)INFINITY, "row 4 channel 3 is inf");
}

Test(verify, a_row_of_an_empty_sequence_has_to_be_zero) {
  expect_bad("lengths", 0, 7, 1e-20, "row 0 should be zero");
  expect_bad("zero-v-scales", 1, 7, 1e-20, "row 1 should be zero");
}

Test(verify, a_number_where_nan_belongs_is_found) {
  expect_bad("nan", 0, 0, 0.5, "expected nan");
}

Test(verify, a_wrong_lse_is_found) {
  solved s;
  solve(&s, fp8_contract(), case_named("lengths"), 5);
  cr_assert_eq(get(DTYPE_FP32, s.data.memory[TENSOR_LSE], 0), -(double)INFINITY,
               "nothing is visible to an empty sequence");
  put(DTYPE_FP32, s.data.memory[TENSOR_LSE], 0, 0.0);
  cr_assert_not(judge(&s).good);
  put(DTYPE_FP32, s.data.memory[TENSOR_LSE], 0, -(double)INFINITY);
  cr_assert(judge(&s).good);
  put(DTYPE_FP32, s.data.memory[TENSOR_LSE], 6, get(DTYPE_FP32, s.data.memory[TENSOR_LSE], 6) + 0.01);
  cr_assert_not(judge(&s).good);
  verify_data_finish(&s.data);
}

/* K's scale for V's, or none at all. */
Test(verify, an_attention_with_the_wrong_number_for_a_scale_is_found) {
  for (int i = 0; i < 3; i++) {
    solved s;
    diags d;
    diags_init(&d);
    solve(&s, number_contract(), case_named("lengths"), 5);
    cr_assert(judge(&s).good);
    tensors wrong = s.data.decode;
    cr_assert(wrong.k_scale.given && wrong.v_scale.given && wrong.k_scale.value != wrong.v_scale.value);
    if (i == 0) wrong.k_scale.value = wrong.v_scale.value;
    if (i == 1) wrong.v_scale.value = wrong.k_scale.value;
    if (i == 2) wrong.v_scale.value = 1;
    cr_assert_eq(oracle_decode_rounded(&s.contract, &wrong, s.dims, s.scale, &d), HD_OK);
    cr_assert_not(judge(&s).good, "%d", i);
    diags_finish(&d);
    verify_data_finish(&s.data);
  }
}

Test(verify, an_attention_over_one_token_too_few_is_found) {
  solved s;
  solve(&s, fp8_contract(), case_named("lengths"), 5);
  int32_t *lengths = s.data.memory[TENSOR_LENGTHS];
  diags d;
  diags_init(&d);
  lengths[7]--; /* 257 tokens: one more or less hardly shows in an average */
  cr_assert_eq(oracle_decode_rounded(&s.contract, &s.data.decode, s.dims, s.scale, &d), HD_OK);
  lengths[7]++;
  cr_assert_not(judge(&s).good);
  diags_finish(&d);
  verify_data_finish(&s.data);
}

/* Copies of what was written, changed by `change`, compared. */
static verify_outcome compare_changed(tensor_name name, int64_t byte, unsigned char flip) {
  solved s;
  void *expected[TENSOR_COUNT] = {NULL};
  solve(&s, fp8_contract(), case_named("skipped-tokens"), 5);
  const tensor_name written[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
  for (int i = 0; i < 4; i++) {
    size_t bytes = tensor_bytes(&s.data.write.by_name[written[i]]);
    expected[written[i]] = malloc(bytes);
    memcpy(expected[written[i]], s.data.memory[written[i]], bytes);
  }
  ((unsigned char *)s.data.memory[name])[byte] ^= flip;
  verify_outcome o = fresh_outcome();
  verify_compare_write(&s.data, expected, &o);
  for (int i = 0; i < 4; i++)
    free(expected[written[i]]);
  verify_data_finish(&s.data);
  return o;
}

Test(verify, one_wrong_code_or_scale_is_found) {
  cr_assert(compare_changed(TENSOR_K_CACHE, 0, 0).good);
  verify_outcome o = compare_changed(TENSOR_V_CACHE, 1 * 2 * 16 * 64 + 16 * 5 + 3, 1);
  cr_assert_not(o.good);
  cr_assert_eq(o.codes_differ, 1);
  cr_assert_eq(o.scales_differ, 0);
  cr_assert_not_null(strstr(o.problem, "page 1, head 0, slot 3, channel 5"), "%s", o.problem);
  o = compare_changed(TENSOR_K_SCALE, 4 * (2 * 16 + 16 + 9) + 1, 1);
  cr_assert_not(o.good);
  cr_assert_eq(o.scales_differ, 1);
}

/* A head whose values are all lost beside another's would have a result that no kernel's probabilities reach.
 */
Test(verify, heads_that_share_a_scale_are_outliers_together) {
  contract c = bf16_contract();
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_INT8;
  c.scale.granularity = SCALE_TOKEN;
  c.scale.k = c.scale.v = example_layout("b s", 16, 64);
  c.scale.writer.zero_value = 1.0;
  solved s;
  solve(&s, c, case_named("outliers"), 5);
  cr_assert_eq(s.data.sizes[DIM_KV_HEADS], 2);
  for (int64_t row = 0; row < s.data.sizes[DIM_TOKENS] * 2; row++) {
    double most[2] = {0, 0};
    for (int64_t i = 0; i < 128; i++)
      most[i / 64] = fmax(most[i / 64], fabs(get(DTYPE_BF16, s.data.memory[TENSOR_V], row / 2 * 128 + i)));
    cr_assert_lt(most[0], 64 * most[1]);
    cr_assert_lt(most[1], 64 * most[0]);
  }
  verify_data_finish(&s.data);
}

Test(verify, whole_numbers_are_not_held_against_unquantised_attention) {
  contract c = bf16_contract();
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_INT8;
  solved s;
  solve(&s, c, case_named("lengths"), 5);
  verify_outcome o = judge(&s);
  cr_assert(o.good, "%s", o.problem);
  cr_assert(isnan(o.cosine));
  verify_data_finish(&s.data);
}

Test(verify, large_logits_are_not_held_against_unquantised_attention) {
  solved s;
  solve(&s, fp8_contract(), case_named("lengths"), 5);
  s.scale = 0.126; /* beyond 1 / sqrt(64) */
  random_state r = {1};
  verify_outcome o = fresh_outcome();
  diags d;
  diags_init(&d);
  cr_assert_eq(verify_compare_decode(&s.data, s.dims, s.scale, &r, &o, &d), HD_OK);
  cr_assert(isnan(o.cosine));
  verify_data_finish(&s.data);
  diags_finish(&d);
}

Test(verify, pages_that_nothing_uses_lie_in_front) {
  const verify_case from = {.name = "spare",
                            .kv_heads = 1,
                            .length_count = 2,
                            .lengths = {{3, 0, 1}, {0, 0, 5}},
                            .spare_pages = 100};
  solved s;
  solve(&s, bf16_contract(), &from, 5);
  cr_assert_geq(s.data.sizes[DIM_PAGES], 105);
  for (int64_t t = 0; t < s.data.live_tokens; t++)
    cr_assert_geq(s.data.slot[t], 100 * 16);
  verify_data_finish(&s.data);
}

/* Gaps hold nothing, and a byte that is written to one is found. */
Test(verify, padded_caches_go_there_and_back) {
  solved s;
  solve(&s, fp8_contract(), case_named("heads"), 5);
  const tensor_name all[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
  diags d;
  diags_init(&d);
  for (int i = 0; i < 4; i++) {
    tensors padded;
    cr_assert_eq(verify_pad(&s.contract, s.data.sizes, &s.data.decode, &padded, &d), HD_OK);
    tensor *t = &padded.by_name[all[i]];
    unsigned char *memory = (unsigned char *)(uintptr_t)t->data;
    size_t dense = tensor_bytes(&s.data.decode.by_name[all[i]]);
    cr_assert_gt(tensor_bytes(t), dense);
    void *kept = malloc(dense);
    memcpy(kept, s.data.memory[all[i]], dense);
    memset(s.data.memory[all[i]], 0, dense);
    cr_assert(verify_unpad(&s.contract, s.data.sizes, all[i], &padded, &s.data.decode));
    cr_assert_arr_eq(kept, s.data.memory[all[i]], dense);
    /* The last byte of the first page's gap: page 1 begins behind it. */
    memory[t->strides[0] * dtype_bytes(t->dtype) - 1] ^= 1;
    cr_assert_not(verify_unpad(&s.contract, s.data.sizes, all[i], &padded, &s.data.decode));
    free(kept);
    verify_pad_finish(&s.data.decode, &padded);
  }
  verify_data_finish(&s.data);
  diags_finish(&d);
}

Test(verify, inputs_depend_on_the_seed_alone) {
  solved a, b;
  solve(&a, fp8_contract(), case_named("split"), 3);
  solve(&b, fp8_contract(), case_named("split"), 3);
  const tensor *t = &a.data.write.by_name[TENSOR_K_CACHE];
  cr_assert_arr_eq(a.data.memory[TENSOR_K_CACHE], b.data.memory[TENSOR_K_CACHE], tensor_bytes(t));
  verify_data_finish(&b.data);
  solve(&b, fp8_contract(), case_named("split"), 4);
  cr_assert_neq(memcmp(a.data.memory[TENSOR_K_CACHE], b.data.memory[TENSOR_K_CACHE], tensor_bytes(t)), 0);
  verify_data_finish(&a.data);
  verify_data_finish(&b.data);
}
