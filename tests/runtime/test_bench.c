/* Claims about bench: shapes, other groups and pages, statistics, derived figures. */
#include "bench_fixture.h"

/* ---- Shapes ---- */

Test(bench, a_shape_is_read_and_written) {
  bench_shape s;
  text out;
  text_init(&out);
  cr_assert(bench_shape_parse("64x8192x4x16", &s));
  cr_assert(s.seqs == 64 && s.length == 8192 && s.kv_heads == 4 && s.heads_per_kv == 16);
  bench_shape_write(&s, &out);
  cr_assert_str_eq(text_string(&out), "64x8192x4x16");
  text_clear(&out);
  cr_assert(bench_shape_parse("1x131072x1", &s));
  cr_assert_eq(s.heads_per_kv, 0);
  bench_shape_write(&s, &out);
  cr_assert_str_eq(text_string(&out), "1x131072x1");
  text_finish(&out);
}

Test(bench, what_is_no_shape_is_refused) {
  static const char *const words[] = {
      "",         "64",         "64x8192",    "64x8192x4x16x1", "64x8192x4x",
      "x64x1x1",  "0x64x1x1",   "64x0x1x1",   "64x64x0x1",      "64x64x1x65",
      "64x-64x1", "64 x64x1x1", "64x64x1x1 ", "4096x1048576x1", "1x99999999999999999999x1",
      "ax64x1",   "+4x64x1",    "64x64x1x0",  "64X64X1"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    bench_shape s = {.seqs = 7};
    cr_expect(!bench_shape_parse(words[i], &s), "'%s' was taken", words[i]);
    cr_expect_eq(s.seqs, 7, "'%s' changed the shape", words[i]);
  }
}

Test(bench, the_decode_preset_has_nine_shapes) {
  const bench_preset *p = bench_preset_find("decode");
  cr_assert_not_null(p);
  cr_assert_eq(p->count, 9);
  for (int i = 0; i < bench_preset_count; i++)
    for (int j = 0; j < bench_presets[i].count; j++) {
      bench_shape again;
      text word;
      text_init(&word);
      bench_shape_write(&bench_presets[i].shapes[j], &word);
      cr_expect(bench_shape_parse(text_string(&word), &again), "%s", text_string(&word));
      text_finish(&word);
    }
  cr_assert_null(bench_preset_find("dec"));
}

Test(bench, ragged_lengths_keep_every_eighth_and_stay_in_bounds) {
  const bench_shape s = {64, 8192, 1, 16};
  int32_t lengths[64];
  int64_t sum = 0;
  int different = 0;
  cr_assert_eq(bench_lengths(&s, false, lengths), 64 * 8192);
  int64_t told = bench_lengths(&s, true, lengths);
  for (int i = 0; i < 64; i++) {
    if (i % 8 == 0)
      cr_expect_eq(lengths[i], 8192);
    else
      cr_expect(lengths[i] >= 8192 / 16 && lengths[i] <= 8192 * 5 / 16, "%d: %d", i, lengths[i]);
    different += i > 1 && lengths[i] != lengths[i - 1];
    sum += lengths[i];
  }
  cr_assert_eq(told, sum);
  cr_assert(different > 50);
  const bench_shape tiny = {16, 1, 1, 1};
  cr_assert_eq(bench_lengths(&tiny, true, lengths), 16, "no sequence is empty");
}

static bool same_shape(const bench_shape *a, const bench_shape *b) {
  return a->seqs == b->seqs && a->length == b->length && a->kv_heads == b->kv_heads &&
         a->heads_per_kv == b->heads_per_kv;
}

Test(bench, random_shapes_follow_from_the_seed_and_fit) {
  int ragged = 0, long_ones = 0, wide = 0;
  for (int n = 0; n < 200; n++) {
    bench_shape a, b, other;
    bool a_ragged, b_ragged, other_ragged;
    bench_random_shape(7, n, 264, &a, &a_ragged);
    bench_random_shape(7, n, 264, &b, &b_ragged);
    bench_random_shape(8, n, 264, &other, &other_ragged);
    cr_expect(same_shape(&a, &b) && a_ragged == b_ragged);
    cr_expect(!same_shape(&a, &other) || a_ragged != other_ragged, "%d", n);
    cr_expect(a.seqs >= 1 && a.seqs <= 256 && a.length >= 1024 && a.length <= 65536, "%d x %d", (int)a.seqs,
              (int)a.length);
    cr_expect(a.kv_heads >= 1 && a.kv_heads <= 8 && a.heads_per_kv == 0);
    cr_expect_leq(a.seqs * a.length * a.kv_heads * 264, 600000000ll * (a_ragged ? 3 : 1));
    ragged += a_ragged;
    long_ones += a.length > 16384;
    wide += a.seqs > 64;
  }
  cr_expect(ragged > 60 && ragged < 140 && long_ones > 20 && wide > 20, "%d %d %d", ragged, long_ones, wide);
}

/* Reads of 98.04 us make an aim of 102. */
Test(bench, the_summary_is_of_the_fastest_split_of_each_shape) {
  static bench_result r[5];
  const double times[] = {102, 204, 153, 51, 1020};
  for (int i = 0; i < 5; i++) {
    r[i].read.statistics.median = 100 / 1.02;
    r[i].decode.statistics.median = times[i];
    r[i].best = i < 4; /* the last was slower than another split */
  }
  bench_summary s;
  bench_summary_of(r, 5, &s);
  cr_expect_eq(s.count, 4);
  cr_expect_float_eq(s.median, 1.25, 1e-9);
  cr_expect_float_eq(s.worst, 2, 1e-9);
  cr_expect_eq(s.worst_result, &r[1]);
  bench_summary_of(r, 0, &s);
  cr_expect(s.count == 0 && !s.worst_result);
}

/* ---- Other groups and pages ---- */

Test(bench, another_page_gives_the_layout_that_a_spec_with_it_has) {
  static const int pages[] = {16, 32, 64, 128};
  diags errors;
  diags_init(&errors);
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++) {
      contract c = fp8_contract(pages[from], 64), wanted = fp8_contract(pages[to], 64), got;
      cr_assert_eq(bench_contract(&c, 0, pages[to], &got, &errors), HD_OK);
      text a, b;
      text_init(&a);
      text_init(&b);
      contract_write(&got, &a);
      contract_write(&wanted, &b);
      cr_expect_str_eq(text_string(&a), text_string(&b), "%d to %d", pages[from], pages[to]);
      text_finish(&a);
      text_finish(&b);
    }
  diags_finish(&errors);
}

Test(bench, a_page_that_a_layout_cannot_have_is_refused) {
  contract c = fp8_contract(64, 64), got = {.kv.page = -1};
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_contract(&c, 0, 24, &got, &errors), HD_INVALID);
  cr_assert_eq(errors.count, 1);
  cr_assert_str_eq(errors.items[0].code, "bench.page");
  cr_assert_eq(got.kv.page, -1);
  diags_finish(&errors);
}

Test(bench, another_group_changes_the_group_alone) {
  contract c = fp8_contract(64, 64), got;
  diags errors;
  text differences;
  diags_init(&errors);
  text_init(&differences);
  cr_assert_eq(bench_contract(&c, 8, 0, &got, &errors), HD_OK);
  cr_assert_eq(contract_diff(&c, &got, &differences), 1);
  cr_assert(strstr(text_string(&differences), "query.heads_per_kv") == text_string(&differences));
  text_finish(&differences);
  diags_finish(&errors);
}

/* ---- Statistics and rotation ---- */

Test(bench, the_median_and_the_spread) {
  bench_statistics s;
  bench_statistics_of((const double[]){9, 1, 5}, 3, &s);
  cr_expect(s.median == 5 && s.least == 1 && s.most == 9 && s.spread == 8.0 / 5);
  bench_statistics_of((const double[]){4, 1, 3, 2}, 4, &s);
  cr_expect(s.median == 2.5 && s.least == 1 && s.most == 4);
  bench_statistics_of((const double[]){7}, 1, &s);
  cr_expect(s.median == 7 && s.spread == 0);
  bench_statistics_of(NULL, 0, &s);
  cr_expect(s.median == 0 && s.spread == 0);
}

Test(bench, copies_cover_more_than_any_cache_and_fit_in_memory) {
  const int64_t memory = 140000000000;
  const int64_t sizes[] = {8650752, 34603008, 69206016, 276824064, 553648128};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    int copies = bench_copies(sizes[i], memory);
    cr_expect(copies >= 2);
    cr_expect(copies * sizes[i] > 450000000, "%d copies of %ld", copies, (long)sizes[i]);
    cr_expect(bench_launches(copies) >= 16);
    cr_expect(bench_launches(copies) % copies == 0, "every copy equally often");
  }
  cr_expect_eq(bench_copies(1, 0), 256, "small ones have a bound");
  cr_expect_eq(bench_copies(400, 1000), 1, "memory for one");
  cr_expect_eq(bench_copies(1000, 1000), 0, "memory for none");
}

/* ---- Derived figures ---- */

static bench_result example_result(void) {
  bench_result r = {
      .shape = {64, 8192, 4, 16}, .bytes = 553648128, .good = true, .timed = true, .best = true};
  r.decode.statistics.median = 125;
  r.read.statistics.median = 120;
  return r;
}

Test(bench, derived_figures) {
  bench_result r = example_result();
  cr_expect_float_eq(bench_gigabytes_per_second(&r), 4429.185024, 1e-9);
  cr_expect_float_eq(bench_share(&r), 0.96, 1e-12);
  cr_expect_float_eq(bench_ratio(&r), 125 / 124.4, 1e-12);
}
