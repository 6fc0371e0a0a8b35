/* Tuned records through heddle.h: what a job with a shape gets, and what its launches then take. The record
 * is made here, of this generator's own sums, so the test links the insides too. */
#include "../../runtime/api/parts.h"
#include "fixture.h"
#include <stdio.h>
#include <unistd.h>

static char path[64];

/* One bucket: 4 sequences of 4096 tokens with 2 heads are fastest with two waves at split 8. */
static void write_record(const char *yaml) {
  static tune_record r;
  hd_context *c = open_context("emu:gfx950");
  hd_contract *whole = parse(yaml);
  const variant two_waves = {.waves = 2};
  contract resolved = contract_resolve(&whole->spec.contract, c->session.target->fp8);
  text out;
  diags errors;
  diags_init(&errors);
  text_init(&out);
  r = (tune_record){.heads_per_kv = 4,
                    .page = PAGE,
                    .evidence = TUNE_SIMULATED,
                    .compute_units = c->session.facts.compute_units,
                    .margin = 0.01,
                    .name = "nhd",
                    .target = "gfx950",
                    .compiler = "any"};
  snprintf(r.device, sizeof r.device, "%s", c->session.facts.name);
  cr_assert_eq(contract_key(&resolved, r.contract), HD_OK);
  tune_entry e = {.shape = {4, 4096, 2, 1, false}, .variant = "w2", .splits = 8, .us = 10, .policy_us = 12};
  e.candidates = 3;
  char sum[65];
  cr_assert_eq(tune_sum(&resolved, &two_waves, c->session.target, templates_embedded(), sum, &errors), HD_OK);
  cr_assert(tune_record_add(&r, &e, sum));
  tune_record_write(&r, &out);
  snprintf(path, sizeof path, "/tmp/heddle-api-tuned-%ld.yaml", (long)getpid());
  FILE *f = fopen(path, "w");
  cr_assert(f != NULL && fputs(text_string(&out), f) >= 0 && fclose(f) == 0);
  text_finish(&out);
  diags_finish(&errors);
  hd_contract_destroy(whole);
  hd_context_destroy(c);
}

static hd_context *tuned_context(const char *yaml) {
  MAKE(hd_context_options, o);
  hd_context *c = NULL;
  o.device = "emu:gfx950";
  o.tuned = path;
  write_record(yaml);
  OK(hd_context_create(&o, &c, why));
  unlink(path);
  return c;
}

static hd_sizes sizes_of(int64_t seqs, int64_t kv_heads, int64_t longest) {
  MAKE(hd_sizes, s);
  s.seqs = seqs;
  s.kv_heads = kv_heads;
  s.longest = longest;
  return s;
}

static void check_choice(hd_context *c, const hd_job *job, const char *variant_name, const char *words,
                         int64_t splits) {
  hd_kernel *k = NULL;
  const hd_sizes launch = sizes_of(4, 2, 4096);
  int64_t found = 0;
  MAKE(hd_kernel_info, info);
  OK(hd_prepare(c, job, &k, why));
  OK(hd_kernel_get_info(k, &info));
  cr_expect_str_eq(info.variant, variant_name);
  cr_expect(strstr(info.choice, words) != NULL, "%s", info.choice);
  OK(hd_kernel_splits(k, &launch, &found));
  if (splits > 0)
    cr_expect_eq(found, splits);
  else
    cr_expect_neq(found, 8);
  hd_kernel_release(k);
}

Test(api_tuned, a_shape_takes_the_variant_and_splits_of_its_bucket) {
  hd_context *c = tuned_context(spec_nhd);
  hd_contract *nhd = parse(spec_nhd);
  const hd_sizes near = sizes_of(4, 2, 3900), far = sizes_of(400, 8, 100);
  hd_job job = job_of(nhd, HD_DECODE);
  check_choice(c, &job, "default", "no shape", 0);
  job.shape = &near;
  check_choice(c, &job, "w2", "simulated bucket 4x4096x2", 8);
  job.shape = &far;
  check_choice(c, &job, "default", "nearest bucket", 0);
  job.shape = &near;
  job.variant = "w4";
  check_choice(c, &job, "w4", "the caller's", 0);
  hd_contract_destroy(nhd);
  hd_context_destroy(c);
}

/* Records count such rows as sequences, as launches do. */
Test(api_tuned, rows_with_lists_of_their_own_are_looked_up_as_sequences) {
  char yaml[2048];
  snprintf(yaml, sizeof yaml, "%sselect: {form: indptr, per: row}\n", spec_nhd);
  hd_context *c = tuned_context(yaml);
  hd_contract *by_row = parse(yaml);
  hd_sizes shape = sizes_of(2, 2, 3900);
  hd_job job = job_of(by_row, HD_DECODE);
  shape.rows = 2;
  job.shape = &shape;
  check_choice(c, &job, "w2", "simulated bucket 4x4096x2", 8);
  hd_contract_destroy(by_row);
  hd_context_destroy(c);
}

/* Workspace holds for the record's splits as for the policy's, whatever is launched. */
Test(api_tuned, workspace_is_enough_for_tuned_splits) {
  hd_context *c = tuned_context(spec_nhd);
  hd_contract *nhd = parse(spec_nhd);
  const hd_sizes shape = sizes_of(4, 2, 4096);
  hd_job job = job_of(nhd, HD_DECODE);
  hd_kernel *k = NULL;
  int64_t room = 0, bytes = 0, splits = 0, split_launches = 0;
  job.shape = &shape;
  OK(hd_prepare(c, &job, &k, why));
  const hd_sizes most = sizes_of(300, 4, 30000);
  OK(hd_kernel_workspace(k, &most, &room));
  for (int64_t seqs = 1; seqs <= 300; seqs++)
    for (int64_t heads = 1; heads <= 4; heads++)
      for (int64_t longest = 1; longest <= 30000; longest = longest * 5 + 1) {
        hd_sizes s = sizes_of(seqs, heads, longest);
        OK(hd_kernel_splits(k, &s, &splits));
        split_launches += splits > 1;
        s.splits = splits;
        OK(hd_kernel_workspace(k, &s, &bytes));
        cr_assert_leq(bytes, room);
      }
  cr_assert_gt(split_launches, 100);
  hd_kernel_release(k);
  hd_contract_destroy(nhd);
  hd_context_destroy(c);
}

Test(api_tuned, records_that_are_named_have_to_be_good) {
  MAKE(hd_context_options, o);
  hd_context *c = NULL;
  cr_assert_eq(hd_diagnostics_create(&why), HD_OK);
  o.device = "emu:gfx950";
  o.tuned = "/nowhere/record.yaml";
  SAYS(HD_IO, "tune.file", hd_context_create(&o, &c, why));
  snprintf(path, sizeof path, "/tmp/heddle-api-bad-%ld.yaml", (long)getpid());
  FILE *f = fopen(path, "w");
  cr_assert(f != NULL && fputs("record: nonsense\n", f) >= 0 && fclose(f) == 0);
  o.tuned = path;
  SAYS(HD_DECLINED, "tune.record", hd_context_create(&o, &c, why));
  /* Those of the environment only warn. */
  o.tuned = NULL;
  setenv("HEDDLE_TUNED_DIR", path, 1);
  OK(hd_context_create(&o, &c, why));
  cr_assert_gt(hd_diagnostics_count(why), 0u);
  hd_context_destroy(c);
  unlink(path);
}
