/* Claims about tuning: what is searched, that the winner follows from the times alone, records as text, and
 * which bucket a launch takes. */
#include "../../runtime/launch/launch.h"
#include "../../runtime/tune/tune_meter.h"
#include "../layout_fixture.h"
#include "../spec_fixture.h"

#include <math.h>

/* ---- The space ---- */

static tune_space space_of(const char *yaml, const char *target_name) {
  static tune_space space;
  spec s = parse_good(yaml);
  const target *t = target_find(target_name);
  contract c = contract_resolve(&s.contract, t->fp8);
  diags errors;
  diags_init(&errors);
  cr_assert_eq(tune_space_of(&s, &c, t, templates_embedded(), &space, &errors), HD_OK);
  diags_finish(&errors);
  spec_finish(&s);
  return space;
}

static const char shuffled[] =
    "heddle: 1\nquery: {heads_per_kv: 16}\nhead_dim: 128\n"
    "kv: {dtype: fp8_e4m3, page: 64, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"
    "scale: {granularity: token_head, k: [b, h, s], v: [b, h, s]}\n";

static bool has(const tune_space *s, const char *name) {
  for (int i = 0; i < s->count; i++)
    if (strcmp(s->items[i].name, name) == 0) return true;
  return false;
}

static const char *pruned_because(const tune_space *s, const char *name) {
  for (int i = 0; i < s->pruned_count; i++)
    if (strcmp(s->pruned[i].name, name) == 0) return s->pruned[i].why;
  return "";
}

Test(tune, the_space_has_both_structures_where_the_target_has_them) {
  tune_space hopper = space_of(shuffled, "sm_90"), instinct = space_of(shuffled, "gfx942");
  cr_expect_str_eq(hopper.items[0].name, "default");
  cr_expect(has(&hopper, "ring-w4-s3-o1") && has(&hopper, "direct-w2"));
  cr_expect(has(&instinct, "direct-w2"));
  for (int i = 0; i < instinct.count; i++)
    cr_expect(!strstr(instinct.items[i].name, "ring"), "%s", instinct.items[i].name);
  cr_expect(strstr(pruned_because(&instinct, "ring"), "ring"), "%s", pruned_because(&instinct, "ring"));
}

Test(tune, no_two_variants_of_a_space_are_the_same_kernel) {
  static const char *const targets[] = {EMULATED_TARGETS, "sm_90"};
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
    tune_space s = space_of(shuffled, targets[t]);
    cr_expect_gt(s.count, 2, "%s", targets[t]);
    for (int i = 0; i < s.count; i++)
      for (int j = 0; j < i; j++)
        cr_expect_str_neq(s.items[i].sum, s.items[j].sum, "%s: %s and %s", targets[t], s.items[i].name,
                          s.items[j].name);
  }
}

Test(tune, what_does_not_fit_the_lds_as_often_as_it_says_is_pruned) {
  tune_space s = space_of(shuffled, "sm_90");
  const target *t = target_find("sm_90");
  for (int i = 0; i < s.count; i++) {
    int resident = s.items[i].variant.resident ? s.items[i].variant.resident : 1;
    cr_expect_leq(s.items[i].lds_bytes * resident, t->lds_bytes, "%s", s.items[i].name);
  }
  cr_expect(strstr(pruned_because(&s, "ring-w4-s4-o3"), "LDS"), "%s", pruned_because(&s, "ring-w4-s4-o3"));
}

Test(tune, the_spec_bounds_the_space) {
  char yaml[2048];
  snprintf(yaml, sizeof yaml, "%stune: {waves: [4], stages: [2]}\nsplit: {factors: [1, 8]}\n", shuffled);
  spec checked = parse_good(yaml);
  spec_finish(&checked);
  tune_space s = space_of(yaml, "sm_90");
  for (int i = 1; i < s.count; i++)
    cr_expect(s.items[i].variant.waves == 4 && (s.items[i].variant.stages == 2 || !s.items[i].variant.stages),
              "%s", s.items[i].name);
  int64_t splits[TUNE_MAX_SPLITS], policy;
  int count = tune_splits_of(&s, &(tune_shape){4, 8192, 1, 1, false}, (split_facts){128, 0, 0, false}, 132,
                             splits, &policy);
  for (int i = 0; i < count; i++)
    cr_expect(splits[i] == 1 || splits[i] == 8 || splits[i] == policy, "%d", (int)splits[i]);
}

Test(tune, rows_with_lists_of_their_own_are_split_alone) {
  tune_space s = space_of(shuffled, "sm_90");
  int64_t splits[TUNE_MAX_SPLITS], policy;
  const tune_shape four = {4, 8192, 1, 4, false};
  tune_splits_of(&s, &four, (split_facts){128, 0, 0, false}, 132, splits, &policy);
  cr_expect_eq(policy, split_policy(4, 1, 8192, 128, 132));
  tune_splits_of(&s, &four, (split_facts){128, 0, 0, true}, 132, splits, &policy);
  cr_expect_eq(policy, split_policy(16, 1, 8192, 128, 132));
}

Test(tune, parts_of_a_line_are_tried_full_and_half) {
  tune_space s = space_of(shuffled, "sm_90");
  int64_t splits[TUNE_MAX_SPLITS], policy;
  int count = tune_splits_of(&s, &(tune_shape){4, 100, 1, 1, false}, (split_facts){128, 2, 0, false}, 132,
                             splits, &policy);
  cr_expect_eq(count, 2, "%d", count);
  cr_expect(splits[0] == 132 && splits[1] == 264 && policy == 264, "lengths set no limit");
}

Test(tune, splits_hold_the_policys_and_never_more_than_a_tile_each) {
  tune_space s = space_of(shuffled, "sm_90");
  for (int64_t seqs = 1; seqs <= 256; seqs *= 2)
    for (int64_t length = 64; length <= 131072; length *= 4) {
      int64_t splits[TUNE_MAX_SPLITS], policy;
      bool found = false;
      int count = tune_splits_of(&s, &(tune_shape){seqs, length, 2, 1, false},
                                 (split_facts){128, 0, 0, false}, 132, splits, &policy);
      cr_expect_eq(policy, split_policy(seqs, 2, length, 128, 132));
      for (int i = 0; i < count; i++) {
        cr_expect(splits[i] >= 1 && splits[i] <= (length + 127) / 128);
        cr_expect(i == 0 || splits[i] > splits[i - 1], "ascending, each once");
        found |= splits[i] == policy;
      }
      cr_expect(found);
    }
}

/* ---- The search, on made-up times ---- */

typedef struct fake {
  double noise;
  const char *fast, *wrong; /* a variant that is faster than all others; one that is wrong */
  int64_t wrong_split;      /* 0: at every split */
  int checks, times, begun, ended, dropped;
} fake;

static hd_status fake_begin(void *user, const tune_shape *s, diags *errors) {
  (void)s;
  (void)errors;
  ((fake *)user)->begun++;
  return HD_OK;
}
static void fake_end(void *user) {
  ((fake *)user)->ended++;
}
static hd_status fake_check(void *user, const tune_variant *v, int64_t splits, bool *good, char why[160],
                            diags *errors) {
  fake *f = user;
  (void)errors;
  f->checks++;
  *good = !f->wrong || strcmp(f->wrong, v->name) != 0 || (f->wrong_split && f->wrong_split != splits);
  if (!*good) snprintf(why, 160, "made up");
  return HD_OK;
}
static hd_status fake_time(void *user, const tune_variant *v, int64_t splits, int repeat, double *us,
                           diags *errors) {
  fake *f = user;
  (void)errors;
  (void)repeat;
  f->times++;
  *us = 100 + (double)splits * f->noise;
  if (f->fast && strcmp(f->fast, v->name) == 0) *us -= 20;
  return HD_OK;
}
static hd_status fake_read(void *user, double *us, diags *errors) {
  (void)user;
  (void)errors;
  *us = 50;
  return HD_OK;
}
static void count_dropped(void *user, const tune_shape *s, const char *name, int64_t splits,
                          const char *why) {
  (void)s;
  (void)name;
  (void)splits;
  cr_expect_str_eq(why, "made up");
  ((fake *)user)->dropped++;
}

static hd_status search(fake *f, tune_entry *out, diags *errors) {
  static tune_space space;
  space = space_of(shuffled, "sm_90");
  const tune_meter meter = {f, fake_begin, fake_end, fake_check, fake_time, fake_read};
  const tune_report report = {f, count_dropped};
  return tune_search(&space, &meter, &(tune_shape){4, 8192, 1, 1, false}, 132, 0.01, &report, out, errors);
}

Test(tune, the_fastest_wins_and_says_what_it_gained) {
  fake f = {.noise = 0.01, .fast = "ring-w4-s3-o1"};
  tune_entry e;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(search(&f, &e, &errors), HD_OK);
  cr_expect_str_eq(e.variant, "ring-w4-s3-o1");
  cr_expect_eq(e.splits, 66);
  cr_expect_float_eq(e.us, 80.66, 1e-9);
  cr_expect_float_eq(e.policy_us, 100 + 0.01 * 132, 1e-9);
  cr_expect_float_eq(e.read_us, 50, 0);
  cr_expect(f.begun == 1 && f.ended == 1);
  diags_finish(&errors);
}

Test(tune, ties_go_by_name_then_by_split) {
  fake f = {.noise = 0.001};
  tune_entry e;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(search(&f, &e, &errors), HD_OK);
  cr_expect_str_eq(e.variant, "default");
  cr_expect_eq(e.splits, 132);
  diags_finish(&errors);
}

Test(tune, a_wrong_variant_is_dropped_and_reported_however_fast_it_is) {
  fake f = {.noise = 0.01, .fast = "ring-w4-s3-o1", .wrong = "ring-w4-s3-o1"};
  tune_entry e;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(search(&f, &e, &errors), HD_OK);
  cr_expect_str_neq(e.variant, "ring-w4-s3-o1");
  cr_expect_gt(f.dropped, 0);
  diags_finish(&errors);
}

Test(tune, a_variant_that_is_wrong_at_the_winning_split_alone_does_not_win_with_it) {
  fake f = {.noise = -0.01, .fast = "ring-w4-s3-o1", .wrong = "ring-w4-s3-o1", .wrong_split = 64};
  tune_entry e;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(search(&f, &e, &errors), HD_OK);
  cr_expect(strcmp(e.variant, "ring-w4-s3-o1") != 0 || e.splits != 64);
  cr_expect_lt(e.us, 85, "another split of it is still right: %g", e.us);
  diags_finish(&errors);
}

/* ---- Records ---- */

static tune_record record_of(int entries, uint64_t salt) {
  static tune_record r;
  char sum[65];
  memset(sum, 'a', 64);
  sum[64] = '\0';
  r = (tune_record){.name = "one \"spec\"",
                    .target = "sm_90",
                    .device = "NVIDIA H200",
                    .compute_units = 132,
                    .compiler = "nvrtc 13.0",
                    .margin = 0.01,
                    .heads_per_kv = 16,
                    .page = 64};
  memset(r.contract, '0', 64);
  for (int i = 0; i < entries; i++) {
    uint64_t x = (salt + (uint64_t)i) * 2654435761u;
    tune_entry e = {.shape = {1 + (int64_t)(x >> 4) % 40, 1024 << (x >> 9) % 5, 1 << x % 3, 1, (x >> 12) % 2},
                    .splits = 1 + (int64_t)(x >> 7) % 9,
                    .us = 1.0 / 3 + (double)(x % 1000),
                    .policy_us = 7,
                    .candidates = 12};
    snprintf(e.variant, sizeof e.variant, "%s", x % 2 ? "default" : "ring-w4-s2-o2");
    cr_assert(tune_record_add(&r, &e, sum));
  }
  return r;
}

static text written(const tune_record *r) {
  text t;
  text_init(&t);
  tune_record_write(r, &t);
  return t;
}

Test(tune, a_record_reads_back_as_it_was_written) {
  static tune_record r, again;
  r = record_of(40, 3);
  text a = written(&r);
  diags errors;
  diags_init(&errors);
  cr_assert_eq(tune_record_parse(text_string(&a), a.length, &again, &errors), HD_OK, "%s",
               errors.count ? errors.items[0].message : "");
  text b = written(&again);
  cr_expect_str_eq(text_string(&a), text_string(&b));
  cr_expect_str_eq(again.name, "one \"spec\"");
  text_finish(&a);
  text_finish(&b);
  diags_finish(&errors);
}

Test(tune, the_order_of_measuring_leaves_no_trace) {
  static tune_record forth, back;
  static tune_entry entries[40];
  forth = record_of(40, 5);
  memcpy(entries, forth.entries, sizeof entries);
  back = forth;
  back.entry_count = back.source_count = 0;
  for (int i = forth.entry_count - 1; i >= 0; i--)
    cr_assert(tune_record_add(&back, &entries[i], forth.sources[0].sum));
  text a = written(&forth), b = written(&back);
  cr_expect_str_eq(text_string(&a), text_string(&b));
  text_finish(&a);
  text_finish(&b);
}

Test(tune, what_is_no_record_is_refused_with_its_place) {
  static tune_record r, out;
  r = record_of(3, 1);
  text whole = written(&r);
  static const char *const changes[][2] = {
      {"heddle_tuned: 1", "heddle_tuned: 2"},
      {"evidence: measured", "evidence: hoped"},
      {"compute_units: 132", "compute_units: 0"},
      {"split: ", "splits: "},
      {"ragged: ", "ragged: 1"},
      {"target: \"sm_90\"", "target: \"sm_80\""},
      {"margin: 0.01", "margin: .nan"},
      {"  ring-w4-s2-o2: a", "  ring-w4-s2-o2: g"},
      {"variant: \"ring-w4-s2-o2\"", "variant: \"ring-w4-s2-o9\""},
      {"page: 64\n", ""},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    text broken;
    diags errors;
    diags_init(&errors);
    text_init(&broken);
    const char *at = strstr(text_string(&whole), changes[i][0]);
    cr_assert(at, "%s", changes[i][0]);
    text_add_bytes(&broken, text_string(&whole), (size_t)(at - text_string(&whole)));
    text_add(&broken, changes[i][1]);
    text_add(&broken, at + strlen(changes[i][0]));
    memset(&out, 0x5a, sizeof out);
    cr_expect_eq(tune_record_parse(text_string(&broken), broken.length, &out, &errors), HD_DECLINED, "%s",
                 changes[i][1]);
    cr_expect(errors.count > 0 && errors.items[0].line > 0, "%s has no place", changes[i][1]);
    cr_expect_eq(out.entry_count, 0x5a5a5a5a, "%s changed the result", changes[i][1]);
    diags_finish(&errors);
    text_finish(&broken);
  }
  text_finish(&whole);
}

Test(tune, merging_is_a_choice_of_the_faster_in_any_order) {
  static tune_record a, b, c, ab, ba, left, right;
  a = record_of(30, 1);
  b = record_of(30, 15);
  c = record_of(30, 40);
  diags errors;
  diags_init(&errors);
  cr_assert_eq(tune_record_merge(&a, &b, &ab, &errors), HD_OK);
  cr_assert_eq(tune_record_merge(&b, &a, &ba, &errors), HD_OK);
  cr_assert_eq(tune_record_merge(&ab, &c, &left, &errors), HD_OK);
  cr_assert_eq(tune_record_merge(&b, &c, &right, &errors), HD_OK);
  cr_assert_eq(tune_record_merge(&a, &right, &right, &errors), HD_OK);
  text one = written(&ab), two = written(&ba), three = written(&left), four = written(&right);
  cr_expect_str_eq(text_string(&one), text_string(&two));
  cr_expect_str_eq(text_string(&three), text_string(&four));
  for (int i = 0; i < a.entry_count; i++)
    cr_expect_leq(tune_record_find(&ab, &a.entries[i].shape)->us, a.entries[i].us);
  text_finish(&one);
  text_finish(&two);
  text_finish(&three);
  text_finish(&four);
  diags_finish(&errors);
}

Test(tune, records_of_different_things_do_not_merge) {
  static tune_record a, b, out;
  for (int what = 0; what < 6; what++) {
    diags errors;
    diags_init(&errors);
    a = record_of(4, 1);
    b = record_of(4, 2);
    if (what == 0) b.contract[0] = '1';
    if (what == 1) b.evidence = TUNE_SIMULATED;
    if (what == 2) snprintf(b.device, sizeof b.device, "NVIDIA H100");
    if (what == 3) b.sources[0].sum[0] = 'b';
    if (what == 4) b.compute_units = 114;
    if (what == 5) snprintf(b.compiler, sizeof b.compiler, "nvrtc 12.9");
    out.entry_count = -1;
    cr_expect_eq(tune_record_merge(&a, &b, &out, &errors), HD_DECLINED, "%d", what);
    cr_expect_eq(out.entry_count, -1);
    cr_expect_str_eq(errors.items[0].code, "tune.merge");
    diags_finish(&errors);
  }
}

/* ---- Which bucket ---- */

Test(tune, a_bucket_gives_its_own_shape_its_own_split) {
  for (int64_t seqs = 1; seqs < 300; seqs += 7)
    for (int64_t splits = 1; splits < 140; splits += 3) {
      const tune_shape s = {seqs, 4096, 2, 1, false};
      cr_expect_eq(tune_scale_splits(&s, splits, &s, 132), splits, "%d x %d", (int)seqs, (int)splits);
    }
}

Test(tune, fewer_items_get_more_splits_and_the_device_stays_as_full) {
  const tune_shape bucket = {64, 8192, 1, 1, false}; /* 2 of 64 on 132 units: once full */
  cr_expect_eq(tune_scale_splits(&bucket, 2, &(tune_shape){44, 8192, 1, 1, false}, 132), 3);
  cr_expect_eq(tune_scale_splits(&bucket, 2, &(tune_shape){66, 8192, 1, 1, false}, 132), 2);
  cr_expect_eq(tune_scale_splits(&bucket, 2, &(tune_shape){67, 8192, 1, 1, false}, 132), 1);
  cr_expect_eq(tune_scale_splits(&bucket, 2, &(tune_shape){33, 8192, 2, 1, false}, 132), 2);
}

Test(tune, raggedness_and_rows_are_never_crossed_and_the_nearest_wins) {
  const tune_shape s = {64, 8192, 4, 1, false};
  cr_expect_eq(tune_distance(&s, &s, 132), 0);
  cr_expect_lt(tune_distance(&s, &(tune_shape){64, 8192, 4, 1, true}, 132), 0);
  cr_expect_lt(tune_distance(&s, &(tune_shape){64, 8192, 4, 2, false}, 132), 0);
  cr_expect_float_eq(tune_distance(&s, &(tune_shape){32, 8192, 4, 1, false}, 132), 1, 1e-9);
  cr_expect_float_eq(tune_distance(&s, &(tune_shape){64, 4096, 4, 1, false}, 132), 1, 1e-9);
  cr_expect_float_eq(tune_distance(&s, &(tune_shape){64, 32768, 4, 1, false}, 132), 0.5, 1e-9,
                     "a full device only takes longer");
  cr_expect(tune_is_ragged(8, 1000, 4000) && !tune_is_ragged(8, 1000, 8000) && !tune_is_ragged(8, 1000, 0));
}

static tune_files one_file(tune_record *r, bool valid) {
  static tune_file item;
  static char path[] = "here.yaml";
  item = (tune_file){path, r, valid, "not today"};
  return (tune_files){1, &item};
}

Test(tune, a_launch_takes_the_nearest_bucket_and_says_so) {
  static tune_record r;
  char sum[65] = "0000000000000000000000000000000000000000000000000000000000000000";
  r = record_of(0, 0);
  cr_assert(tune_record_add(&r, &(tune_entry){{4, 8192, 1, 1, false}, "ring-w4", 33, 8, 9, 4, 10}, sum));
  cr_assert(
      tune_record_add(&r, &(tune_entry){{64, 8192, 1, 1, false}, "ring-w4-s2-o2", 2, 35, 36, 32, 10}, sum));
  tune_files f = one_file(&r, true);
  tune_choice c;
  tune_choose(&f, &(tune_shape){40, 8000, 1, 1, false}, 132, &c);
  cr_assert(c.found);
  cr_expect(c.variant.waves == 4 && c.variant.resident == 2 && c.variant.structure == STRUCTURE_RING);
  cr_expect_eq(c.splits, 3);
  cr_expect(strstr(c.reason, "64x8192x1"), "%s", c.reason);
  tune_choose(&f, &(tune_shape){1, 100, 1, 1, false}, 132, &c);
  cr_expect(!c.found && strstr(c.reason, "doublings"), "%s", c.reason);
  tune_choose(&f, &(tune_shape){4, 8192, 1, 1, true}, 132, &c);
  cr_expect(!c.found && strstr(c.reason, "no bucket"), "%s", c.reason);
  f = one_file(&r, false);
  tune_choose(&f, &(tune_shape){4, 8192, 1, 1, false}, 132, &c);
  cr_expect(!c.found && strstr(c.reason, "not today"), "%s", c.reason);
}

Test(tune, a_record_holds_for_its_contract_target_device_and_source_alone) {
  static tune_record r;
  const target *t = target_find("sm_90");
  spec s = parse_good(shuffled);
  contract c = contract_resolve(&s.contract, t->fp8);
  char sum[65];
  diags errors;
  diags_init(&errors);
  device_facts facts = {.name = "NVIDIA H200", .compute_units = 132};
  for (int what = 0; what < 6; what++) {
    const char *expected[] = {"",           "contract", "measured on", "compute units", "it is for gfx950",
                              "differently"};
    r = record_of(0, 0);
    cr_assert_eq(contract_key(&c, r.contract), HD_OK);
    cr_assert_eq(tune_sum(&c, &(variant){.waves = 4}, t, templates_embedded(), sum, &errors), HD_OK);
    cr_assert(tune_record_add(&r, &(tune_entry){{4, 8192, 1, 1, false}, "w4", 33, 8, 9, 4, 10}, sum));
    if (what == 1) r.contract[0] = r.contract[0] == '0' ? '1' : '0';
    if (what == 2) snprintf(r.device, sizeof r.device, "NVIDIA H100");
    if (what == 3) r.compute_units = 131;
    if (what == 4) snprintf(r.target, sizeof r.target, "gfx950");
    if (what == 5) r.sources[0].sum[7] = r.sources[0].sum[7] == '0' ? '1' : '0';
    tune_files f = one_file(&r, false);
    tune_files_validate(&f, &c, t, &facts);
    cr_expect_eq(f.items[0].valid, what == 0, "%d: %s", what, f.items[0].why);
    cr_expect(strstr(f.items[0].why, expected[what]), "%d: %s", what, f.items[0].why);
  }
  diags_finish(&errors);
  spec_finish(&s);
}

/* An estimate is of the part, whoever ran the emulator. */
Test(tune, a_simulated_record_holds_on_any_device_of_as_many_units) {
  static tune_record r;
  const target *t = target_find("gfx950");
  spec s = parse_good(shuffled);
  contract c = contract_resolve(&s.contract, t->fp8);
  r = record_of(0, 0);
  cr_assert_eq(contract_key(&c, r.contract), HD_OK);
  snprintf(r.target, sizeof r.target, "gfx950");
  snprintf(r.device, sizeof r.device, "gfx950 emulated (MI355X)");
  r.evidence = TUNE_SIMULATED;
  r.compute_units = 256;
  device_facts facts = {.name = "AMD Instinct MI355X", .compute_units = 256};
  tune_files f = one_file(&r, false);
  tune_files_validate(&f, &c, t, &facts);
  cr_expect(f.items[0].valid, "%s", f.items[0].why);
  r.evidence = TUNE_MEASURED;
  tune_files_validate(&f, &c, t, &facts);
  cr_expect(!f.items[0].valid);
  spec_finish(&s);
}

Test(tune, a_shape_says_its_rows_where_they_are_several) {
  static const struct {
    const char *word;
    tune_shape shape;
  } good[] = {{"4x512x2", {4, 512, 2, 0, false}},
              {"4x512x2-3rows", {4, 512, 2, 3, false}},
              {"4x512x2-3rows-ragged", {4, 512, 2, 3, true}}};
  static const char *const bad[] = {
      "4x512x2-0rows", "4x512x2-rows",         "4x512x2rows", "4x512x2-22rows",
      "-2rows",        "4x512x2-ragged-2rows", "rows",        "4x512x2-2rows-2rows"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    tune_shape s;
    text word;
    text_init(&word);
    cr_expect(tune_shape_parse(good[i].word, &s) && tune_shape_same(&s, &good[i].shape), "%s", good[i].word);
    tune_shape_write(&s, &word);
    cr_expect_str_eq(text_string(&word), good[i].word);
    text_finish(&word);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tune_shape s = {.seqs = 7};
    cr_expect(!tune_shape_parse(bad[i], &s) && s.seqs == 7, "%s", bad[i]);
  }
}

Test(tune, the_default_shapes_stay_in_bounds_and_are_all_different) {
  static tune_shape shapes[TUNE_MAX_SHAPES];
  int count = tune_default_shapes(264, false, shapes);
  cr_expect(count > 60 && count < 120, "%d", count);
  for (int i = 0; i < count; i++) {
    cr_expect_leq(shapes[i].seqs * shapes[i].kv_heads * shapes[i].length * 264, 700000000);
    text word;
    tune_shape again;
    text_init(&word);
    tune_shape_write(&shapes[i], &word);
    cr_expect(tune_shape_parse(text_string(&word), &again) && tune_shape_same(&again, &shapes[i]), "%s",
              text_string(&word));
    text_finish(&word);
    for (int j = 0; j < i; j++)
      cr_expect(!tune_shape_same(&shapes[i], &shapes[j]), "%d and %d", i, j);
  }
}

/* ---- a file of times ---- */

static hd_status parse_timings_of(const char *units) {
  char file[256];
  tune_timings *t = NULL;
  diags problems;
  diags_init(&problems);
  snprintf(file, sizeof file, "heddle_timings: 1\ntarget: gfx950\ncompute_units: %s\n", units);
  hd_status status = tune_timings_parse(file, strlen(file), &t, &problems);
  if (status == HD_OK) tune_timings_destroy(t);
  cr_expect_eq(status == HD_OK, problems.count == 0);
  diags_finish(&problems);
  return status;
}

Test(tune, timings_are_of_a_number_of_units_that_there_can_be) {
  static const char *const none[] = {
      "", "0", "-1", "x", "256x", "1e3", "1048577", "4294967297", "99999999999999999999"};
  cr_expect_eq(parse_timings_of("256"), HD_OK);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    cr_expect_eq(parse_timings_of(none[i]), HD_DECLINED, "%s", none[i]);
}
