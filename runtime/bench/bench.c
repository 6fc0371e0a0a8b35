#include "bench.h"
#include "bench_rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Milliseconds of work until a clock that was idle has come up; of many shapes only the first finds it so. */
static double warm_up(const bench_options *o) {
  return o->quick ? 4 : 20;
}

double bench_gigabytes_per_second(const bench_result *r) {
  double time = r->decode.statistics.median;
  return time > 0 ? (double)r->bytes / time * 1e-3 : 0;
}

double bench_share(const bench_result *r) {
  double time = r->decode.statistics.median;
  return time > 0 ? r->read.statistics.median / time : 0;
}

double bench_ratio(const bench_result *r) {
  double aim = 1.02 * r->read.statistics.median + 2.0;
  return r->decode.statistics.median / aim;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void bench_summary_of(const bench_result *results, int count, bench_summary *out) {
  double ratios[BENCH_MAX_SHAPES];
  *out = (bench_summary){0};
  for (int i = 0; i < count; i++) {
    if (!results[i].best || out->count == BENCH_MAX_SHAPES) continue;
    double ratio = bench_ratio(&results[i]);
    if (out->count == 0 || ratio > out->worst) {
      out->worst = ratio;
      out->worst_result = &results[i];
    }
    ratios[out->count++] = ratio;
  }
  if (out->count == 0) return;
  qsort(ratios, (size_t)out->count, sizeof *ratios, compare_doubles);
  out->median = (ratios[(out->count - 1) / 2] + ratios[out->count / 2]) / 2;
}

/* What the splits of one shape share. */
typedef struct benchmark {
  session *session;
  const bench_options *options;
  bench_rig rig;
  session_kernel decode, read;
  bool has_rig, has_decode, has_read;
  tune_shape shape; /* as a launch would look it up */
  tune_choice choice;
} benchmark;

/* All copies hold the same, so the last timed launch has to give what the checked one gave. */
static hd_status check_again(benchmark *b, bench_result *r, diags *errors) {
  size_t bytes = bench_rig_out_bytes(&b->rig);
  unsigned char *again = malloc(bytes + 1);
  if (!again) return HD_OUT_OF_MEMORY;
  hd_status status = bench_rig_fetch(&b->rig, again, errors);
  if (status == HD_OK && memcmp(again, b->rig.out, bytes) != 0) {
    r->good = r->timed = false;
    snprintf(r->problem, sizeof r->problem, "the result after timing is not the one before");
  }
  free(again);
  return status;
}

static void describe(benchmark *b, const bench_shape *shape, bench_result *r) {
  const bench_data *data = &b->rig.data;
  *r = (bench_result){.shape = *shape, .page = data->contract->kv.page, .ragged = b->options->ragged};
  r->shape.heads_per_kv = data->contract->query.heads_per_kv;
  r->rows = (int)data->dims[DIM_ROWS];
  memcpy(r->contract_key, b->decode.descriptor->contract_key, sizeof r->contract_key);
  memcpy(r->code_key, b->decode.key, sizeof r->code_key);
  memcpy(r->compiler, b->decode.compiler, sizeof r->compiler);
  memcpy(r->variant, b->decode.descriptor->variant, sizeof r->variant);
  r->tokens = data->tokens;
  r->bytes = data->bytes;
  r->copies = b->rig.pool.copies;
  r->launches = bench_launches(b->rig.pool.copies);
}

static hd_status run_split(benchmark *b, int64_t asked, bench_result *r, diags *errors) {
  r->tuned = asked == 0 && b->choice.found;
  r->by_policy = asked == 0 && !r->tuned;
  r->splits = r->tuned ? tune_choice_splits(&b->choice, split_facts_of(b->decode.descriptor), &b->shape,
                                            b->session->facts.compute_units)
                       : session_splits(b->session, &b->decode, b->rig.dims, b->rig.longest, asked);
  if (asked == 0) memcpy(r->choice, b->choice.reason, sizeof r->choice);
  hd_status status = bench_rig_check(&b->rig, &b->decode, r->splits, r, errors);
  if (status != HD_OK || !r->good || b->session->facts.emulated) return status;
  status = bench_rig_time(&b->rig, &b->decode, r->splits, b->options->repeat, warm_up(b->options), &r->decode,
                          errors);
  r->timed = status == HD_OK;
  return status == HD_OK ? check_again(b, r, errors) : status;
}

/* What the records say for this shape, unless a variant is asked for. */
static hd_status choose(benchmark *b, const contract *c, const variant *asked, const bench_shape *shape,
                        int rows, variant *out_variant) {
  const session *s = b->session;
  int32_t *lengths = calloc((size_t)shape->seqs, sizeof *lengths);
  if (!lengths) return HD_OUT_OF_MEMORY;
  int64_t tokens = bench_lengths(shape, b->options->ragged, lengths);
  free(lengths);
  /* A graph that is captured for sequences that grow is launched for what they may grow to: how long they are
   * by then, and how evenly, isn't known. */
  const bool grows = b->options->capacity > shape->length;
  b->shape = (tune_shape){shape->seqs, grows ? b->options->capacity : shape->length, shape->kv_heads, rows,
                          !grows && tune_is_ragged(shape->seqs, shape->length, tokens)};
  *out_variant = *asked;
  bool free_to_choose = !asked->structure && !asked->waves && !asked->stages && !asked->resident;
  if (!b->options->tuned || !free_to_choose) return HD_OK;
  tune_files_validate(b->options->tuned, c, s->target, &s->facts);
  tune_choose(b->options->tuned, &b->shape, s->facts.compute_units, &b->choice);
  *out_variant = b->choice.variant;
  return HD_OK;
}

static hd_status prepare(benchmark *b, const contract *c, const char *name, const variant *v,
                         const bench_shape *shape, diags *errors) {
  const variant plain = {0};
  const bench_options *o = b->options;
  variant taken;
  int rows;
  hd_status status = bench_rows(c, o->rows, &rows, errors);
  if (status == HD_OK) status = choose(b, c, v, shape, rows, &taken);
  if (status != HD_OK) return status;
  status = session_load(b->session, c, name, OPERATION_DECODE, &taken, &b->decode, errors);
  b->has_decode = status == HD_OK;
  if (status != HD_OK) return status;
  status = session_load(b->session, c, name, OPERATION_READ, &plain, &b->read, errors);
  b->has_read = status == HD_OK;
  if (status != HD_OK) return status;
  const bench_deal deal = {*shape, rows, o->ragged, o->capacity, o->seed};
  status = bench_rig_init(&b->rig, b->session, c, &deal, o->quick, errors);
  b->has_rig = status == HD_OK;
  return status;
}

static void finish(benchmark *b) {
  if (b->has_rig) bench_rig_finish(&b->rig);
  if (b->has_read) session_unload(b->session, &b->read);
  if (b->has_decode) session_unload(b->session, &b->decode);
}

static void mark_best(bench_result *results, int count) {
  bench_result *best = NULL;
  for (int i = 0; i < count; i++) {
    bench_result *r = &results[i];
    if (!r->good || !r->timed) continue;
    if (!best || r->decode.statistics.median < best->decode.statistics.median) best = r;
  }
  if (best) best->best = true;
}

hd_status bench_run(session *s, const contract *c, const char *name, const variant *v,
                    const bench_shape *shape, const bench_options *options, bench_result *out_results,
                    diags *errors) {
  contract used;
  benchmark b = {.session = s, .options = options};
  hd_status status = bench_contract(c, shape->heads_per_kv, options->page, &used, errors);
  if (status != HD_OK) return status;
  bool changed = used.query.heads_per_kv != c->query.heads_per_kv || used.kv.page != c->kv.page;
  bench_series read = {0};
  int64_t read_workgroups = 0;
  status = prepare(&b, &used, name, v, shape, errors);
  if (status == HD_OK)
    status = s->facts.emulated ? bench_rig_read_once(&b.rig, &b.read, errors)
                               : bench_rig_read(&b.rig, &b.read, options->repeat, warm_up(options), &read,
                                                &read_workgroups, errors);
  for (int i = 0; status == HD_OK && i < options->split_count; i++) {
    bench_result *r = &out_results[i];
    describe(&b, shape, r);
    r->changed = changed;
    r->read = read;
    r->read_workgroups = read_workgroups;
    status = run_split(&b, options->splits[i], r, errors);
  }
  if (status == HD_OK) mark_best(out_results, options->split_count);
  finish(&b);
  return status;
}
