/* Claims about bench: results are checked, and whole runs on an emulated device. */
#include "bench_fixture.h"

/* ---- Checking ---- */

typedef struct checked {
  contract contract;
  bench_data data;
  bench_expected expected;
  unsigned char *out; /* right, rounded to the output format */
  diags errors;
} checked;

static void check_init(checked *c, bool ragged) {
  const bench_shape shape = {20, 200, 2, 2};
  diags_init(&c->errors);
  c->contract = fp8_contract(16, 64);
  cr_assert_eq(bench_data_init(&c->data, &c->contract,
                               &(bench_deal){.shape = shape, .ragged = ragged, .seed = 1}, &c->errors),
               HD_OK);
  cr_assert_eq(bench_expected_init(&c->expected, &c->data, 0.125, BENCH_CHECK_BUDGET, 1, &c->errors), HD_OK);
  cr_assert_eq(oracle_decode_rounded(&c->contract, &c->data.host, c->data.dims, 0.125, &c->errors), HD_OK);
  c->out = c->data.memory[TENSOR_OUT];
}

static void check_finish(checked *c) {
  bench_expected_finish(&c->expected);
  bench_data_finish(&c->data);
  diags_finish(&c->errors);
}

Test(bench, a_right_result_passes) {
  for (int ragged = 0; ragged < 2; ragged++) {
    checked c;
    bench_result r = {0};
    check_init(&c, ragged);
    bench_expected_compare(&c.expected, &c.data, c.out, &r);
    cr_expect(r.good, "%s", r.problem);
    cr_expect(r.checked > 1 && r.checked <= 20);
    cr_expect(r.rms > 0 && r.rms < 2e-3, "%g", r.rms); /* rounding to bf16 alone */
    check_finish(&c);
  }
}

Test(bench, a_wrong_element_of_a_checked_sequence_fails) {
  checked c;
  bench_result r = {0};
  check_init(&c, true);
  int64_t rows = 2 * 2, at = (c.expected.seqs[c.expected.count - 1] * rows + rows - 1) * 64 + 63;
  put(DTYPE_BF16, c.out, at, get(DTYPE_BF16, c.out, at) + 1.0);
  bench_expected_compare(&c.expected, &c.data, c.out, &r);
  cr_expect(!r.good);
  cr_expect(strstr(r.problem, "row"), "%s", r.problem);
  check_finish(&c);
}

Test(bench, a_row_that_nobody_wrote_fails_wherever_it_is) {
  checked c;
  check_init(&c, false);
  for (int64_t seq = 0; seq < 20; seq++) {
    bench_result r = {0};
    int64_t at = (seq * 4 + 1) * 64 + 5;
    double kept = get(DTYPE_BF16, c.out, at);
    put(DTYPE_BF16, c.out, at, (double)NAN);
    bench_expected_compare(&c.expected, &c.data, c.out, &r);
    cr_expect(!r.good, "sequence %ld", (long)seq);
    put(DTYPE_BF16, c.out, at, kept);
  }
  check_finish(&c);
}

Test(bench, the_longest_sequence_is_always_checked) {
  checked c;
  check_init(&c, true);
  const int32_t *lengths = c.data.memory[TENSOR_LENGTHS];
  cr_expect_eq(lengths[c.expected.seqs[0]], c.data.longest);
  check_finish(&c);
}

/* 70,000 tokens and 64 heads: more than the oracle has time for, so one head stands for them. */
Test(bench, a_very_long_sequence_is_checked_in_one_head_of_each_kv_head) {
  contract c = fp8_contract(16, 16);
  const bench_shape shape = {1, 70000, 2, 64};
  bench_data d;
  bench_expected e;
  diags errors;
  diags_init(&errors);
  c.query.heads_per_kv = 32;
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_assert_eq(bench_expected_init(&e, &d, 0.25, BENCH_CHECK_BUDGET, 1, &errors), HD_OK);
  cr_assert_eq(e.heads, 1);
  cr_assert_eq(oracle_decode_rounded(&c, &d.host, d.dims, 0.25, &errors), HD_OK);
  unsigned char *out = d.memory[TENSOR_OUT];
  for (int head = 0; head < 64; head++) {
    bench_result r = {0};
    int64_t at = head * 16 + 3;
    double kept = get(DTYPE_BF16, out, at);
    put(DTYPE_BF16, out, at, kept + 1.0);
    bench_expected_compare(&e, &d, out, &r);
    cr_expect_eq(r.good, head % 32 != e.head, "head %d, checked is %d: %s", head, e.head, r.problem);
    put(DTYPE_BF16, out, at, kept);
  }
  bench_expected_finish(&e);
  bench_data_finish(&d);
  diags_finish(&errors);
}

/* A wrong element of any row, wherever lists begin, with all heads checked or one of them (a budget of 1). */
Test(bench, a_wrong_row_fails_whatever_has_lists_of_its_own) {
  for (int p = 0; p < 3; p++)
    for (int64_t budget = 1; budget <= BENCH_CHECK_BUDGET; budget += BENCH_CHECK_BUDGET - 1) {
      contract c = listed_contract(SELECT_INDPTR, pers[p], 3);
      bench_data d;
      bench_expected e;
      bench_result r = {0};
      diags errors;
      diags_init(&errors);
      c.mask.sinks = true;
      cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = {3, 70, 2, 0}, .seed = 1}, &errors), HD_OK);
      cr_assert_eq(bench_expected_init(&e, &d, 0.125, budget, 1, &errors), HD_OK);
      cr_assert_eq(e.heads, budget == 1 ? 1 : 2);
      cr_assert_eq(oracle_decode_rounded(&c, &d.host, d.dims, 0.125, &errors), HD_OK);
      unsigned char *out = d.memory[TENSOR_OUT];
      bench_expected_compare(&e, &d, out, &r);
      cr_expect(r.good, "per %s: %s", per_words[p], r.problem);
      for (int64_t row = 0; row < d.dims[DIM_ROWS]; row++) {
        const int64_t at =
            ((e.seqs[0] * d.dims[DIM_ROWS] + row) * 4 + 2 + (budget == 1 ? e.head : 0)) * 64 + 5;
        const double kept = get(DTYPE_BF16, out, at);
        put(DTYPE_BF16, out, at, kept + 1.0);
        bench_expected_compare(&e, &d, out, &r);
        cr_expect(!r.good, "per %s, row %d", per_words[p], (int)row);
        put(DTYPE_BF16, out, at, kept);
      }
      bench_expected_finish(&e);
      bench_data_finish(&d);
      diags_finish(&errors);
    }
}

/* ---- Whole runs, on an emulated device ---- */

#ifdef HEDDLE_WITH_EMU

static void open_emulated(session *s, diags *errors) {
  hd_status status = session_open("emu:gfx950", COMPILER_LLVM, NULL, s, errors);
  cr_assert_eq(status, HD_OK, "%s", errors->count ? errors->items[0].message : "");
}

static bench_result *run_once(session *s, const bench_shape *shape, bench_options *options, diags *errors) {
  static bench_result results[2];
  const variant v = {0};
  contract c = fp8_contract(16, 128);
  options->repeat = 7;
  options->split_count = 2;
  options->splits[0] = 1;
  options->splits[1] = 2;
  hd_status status = bench_run(s, &c, "test", &v, shape, options, results, errors);
  cr_assert_eq(status, HD_OK, "%s", errors->count ? errors->items[0].message : "");
  return results;
}

/* The tuner times splits that it has not checked: the workspace has to be there all the same. */
Test(bench, timing_makes_room_for_its_split) {
  session s;
  session_kernel k;
  bench_rig rig;
  bench_series series;
  bench_result r = {0};
  diags errors;
  diags_init(&errors);
  open_emulated(&s, &errors);
  contract c = fp8_contract(16, 128);
  const bench_shape shape = {2, 300, 1, 2};
  cr_assert_eq(session_load(&s, &c, "test", OPERATION_DECODE, &(variant){0}, &k, &errors), HD_OK);
  cr_assert_eq(bench_rig_init(&rig, &s, &c, &(bench_deal){.shape = shape, .seed = 1}, true, &errors), HD_OK);
  cr_assert_eq(bench_rig_check(&rig, &k, 1, &r, &errors), HD_OK);
  cr_expect_eq(bench_rig_time(&rig, &k, 3, 1, 0, &series, &errors), HD_OK, "%s",
               errors.count ? errors.items[0].message : "");
  cr_assert_eq(bench_rig_fetch(&rig, rig.out, &errors), HD_OK);
  bench_expected_compare(&rig.expected, &rig.data, rig.out, &r);
  cr_expect(r.good, "%s", r.problem);
  bench_rig_finish(&rig);
  session_unload(&s, &k);
  session_close(&s);
  diags_finish(&errors);
}

Test(bench, an_emulated_device_checks_and_gives_no_times) {
  session s;
  diags errors;
  bench_options options = {.ragged = true};
  const bench_shape shape = {9, 70, 2, 4};
  diags_init(&errors);
  open_emulated(&s, &errors);
  bench_result *r = run_once(&s, &shape, &options, &errors);
  for (int i = 0; i < 2; i++) {
    cr_expect(r[i].good, "%s", r[i].problem);
    cr_expect(!r[i].timed && !r[i].best);
    cr_expect(r[i].rms > 0 && r[i].rms < 2.5e-3);
    cr_expect_eq(r[i].splits, i + 1);
    cr_expect(r[i].changed && r[i].shape.heads_per_kv == 4);
  }
  session_close(&s);
  diags_finish(&errors);
}

/* Whatever has lists of its own, on the copies that launches walk over. */
Test(bench, rows_over_ragged_lists_are_timed_on_every_copy, .timeout = 120) {
  session s;
  session_kernel k;
  bench_rig rig;
  bench_series series;
  diags errors;
  diags_init(&errors);
  open_emulated(&s, &errors);
  s.facts.emulated = false;
  s.facts.memory_bytes = 250000; /* three quarters of it hold five copies */
  contract c = listed_contract(SELECT_INDPTR, PER_KV_HEAD, 2);
  const bench_deal deal = {.shape = {3, 70, 2, 0}, .ragged = true, .seed = 1, .capacity = 500};
  cr_assert_eq(session_load(&s, &c, "lists", OPERATION_DECODE, &(variant){0}, &k, &errors), HD_OK);
  cr_assert_eq(bench_rig_init(&rig, &s, &c, &deal, true, &errors), HD_OK);
  cr_expect(rig.longest == 500 && rig.pool.copies > 2, "%d", rig.pool.copies);
  cr_expect_eq(bench_rig_time(&rig, &k, 2, 1, 0, &series, &errors), HD_OK);
  bench_result r = {0};
  cr_assert_eq(bench_rig_fetch(&rig, rig.out, &errors), HD_OK);
  bench_expected_compare(&rig.expected, &rig.data, rig.out, &r);
  cr_expect(r.good, "%s", r.problem);
  bench_rig_finish(&rig);
  session_unload(&s, &k);
  session_close(&s);
  diags_finish(&errors);
}

Test(bench, lists_of_blocks_are_checked_against_the_oracle) {
  session s;
  diags errors;
  const bench_shape shape = {3, 2300, 2, 0};
  bench_options options = {.ragged = true, .repeat = 7, .split_count = 2, .splits = {1, 3}};
  static bench_result r[2];
  contract c = blocks_contract();
  diags_init(&errors);
  open_emulated(&s, &errors);
  hd_status status = bench_run(&s, &c, "blocks", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  c.query.rows = 3;
  status = bench_run(&s, &c, "rows", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rows == 3 && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  session_close(&s);
  diags_finish(&errors);
}

/* Numbers for K and V that the oracle is asked with, too. */
Test(bench, scales_that_are_arguments_are_given_to_kernel_and_oracle) {
  session s;
  diags errors;
  const bench_shape shape = {3, 300, 2, 0};
  bench_options options = {.repeat = 7, .split_count = 2, .splits = {1, 3}};
  static bench_result r[2];
  bench_data d;
  contract c = fp8_contract(16, 128);
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  c.scale.k.count = c.scale.v.count = 0;
  c.kv.v_dtype = DTYPE_INT8;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_expect(d.host.k_scale.given && d.host.v_scale.given && d.host.k_scale.value != d.host.v_scale.value);
  bench_data_finish(&d);
  open_emulated(&s, &errors);
  hd_status status = bench_run(&s, &c, "numbers", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  session_close(&s);
  diags_finish(&errors);
}

/* The emulator's clock means nothing, but everything that hardware goes through is gone through. */
Test(bench, a_run_is_timed_beside_the_read_kernel, .timeout = 120) {
  session s;
  diags errors;
  bench_options options = {.page = 32};
  const bench_shape shape = {1, 40, 1, 0};
  diags_init(&errors);
  open_emulated(&s, &errors);
  s.facts.emulated = false;
  s.facts.compute_units = 1;
  s.facts.memory_bytes = 140000; /* three quarters of it hold six copies of 16896 bytes */
  bench_result *r = run_once(&s, &shape, &options, &errors);
  int best = 0;
  for (int i = 0; i < 2; i++) {
    cr_expect(r[i].good && r[i].timed, "%s", r[i].problem);
    cr_expect_eq(r[i].page, 32);
    cr_expect_eq(r[i].bytes, 40 * 264);
    cr_expect_eq(r[i].copies, 6);
    cr_expect_eq(r[i].launches, 18);
    cr_expect_eq(r[i].decode.count, 7);
    cr_expect(r[i].decode.statistics.median > 0 && r[i].read.statistics.median > 0);
    cr_expect_float_eq(bench_gigabytes_per_second(&r[i]), 40 * 264 / r[i].decode.statistics.median * 1e-3,
                       1e-9);
    best += r[i].best;
  }
  cr_expect_eq(best, 1);
  session_close(&s);
  diags_finish(&errors);
}

#endif
