#include "bench.h"
#include "bench_data.h"
#include "oracle.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What the splits of one shape share. */
typedef struct benchmark {
  session *session;
  const bench_options *options;
  session_kernel decode, read;
  bool has_decode, has_read;
  bench_data data;
  bench_pool pool;
  bench_expected expected;
  unsigned char *out; /* host memory for the result */
  float scale;
  int64_t dims[DIM_COUNT];
} benchmark;

static hd_status launch_decode(void *user, device_stream *s, int index, diags *errors) {
  benchmark *b = user;
  tensors t = bench_pool_tensors(&b->pool, index);
  t.present[TENSOR_WORKSPACE] = b->decode.workspace != 0;
  t.by_name[TENSOR_WORKSPACE].data = b->decode.workspace;
  return launch_operation(b->session->device, s, b->decode.descriptor, b->decode.functions, &t, b->dims,
                          b->scale, errors);
}

static hd_status launch_read(void *user, device_stream *s, int index, diags *errors) {
  benchmark *b = user;
  tensors t = bench_pool_tensors(&b->pool, index);
  return launch_operation(b->session->device, s, b->read.descriptor, b->read.functions, &t, b->dims, b->scale,
                          errors);
}

static hd_status time_series(benchmark *b, bench_launch launch, bench_series *out, diags *errors) {
  out->count = b->options->repeat;
  hd_status status = bench_time(b->session->device, launch, b, bench_launches(b->pool.copies), out->count,
                                out->samples, errors);
  if (status == HD_OK) bench_statistics_of(out->samples, out->count, &out->statistics);
  return status;
}

/* The read kernel at several grid sizes; the fastest counts. */
static hd_status time_read(benchmark *b, bench_series *out, int64_t *out_workgroups, diags *errors) {
  static const int per_unit[] = {1, 2, 3, 4, 8, 16};
  int64_t kept = b->dims[DIM_SPLITS];
  bench_series best = {0};
  hd_status status = HD_OK;
  for (size_t i = 0; status == HD_OK && i < sizeof per_unit / sizeof per_unit[0]; i++) {
    bench_series series;
    b->dims[DIM_SPLITS] = (int64_t)per_unit[i] * b->session->facts.compute_units;
    status = time_series(b, launch_read, &series, errors);
    if (status != HD_OK || (i > 0 && series.statistics.median >= best.statistics.median)) continue;
    best = series;
    *out_workgroups = b->dims[DIM_SPLITS];
  }
  b->dims[DIM_SPLITS] = kept;
  *out = best;
  return status;
}

/* Once, where nothing is timed: an emulated device tells when it reads what it should not. */
static hd_status run_read(benchmark *b, diags *errors) {
  b->dims[DIM_SPLITS] = 2;
  hd_status status = launch_read(b, NULL, 0, errors);
  return status == HD_OK ? b->session->device->vtable->synchronize(b->session->device, NULL, errors) : status;
}

/* The first tensor of the pool's `out`, brought to the host. */
static hd_status fetch_out(benchmark *b, unsigned char *to, diags *errors) {
  tensors host = b->data.host;
  host.by_name[TENSOR_OUT].data = (uint64_t)(uintptr_t)to;
  return session_download(b->session, &b->pool.fixed, &host, TENSOR_OUT, errors);
}

/* One launch against the oracle. It also makes room in the workspace. */
static hd_status check(benchmark *b, bench_result *r, diags *errors) {
  const tensor *out = &b->pool.fixed.by_name[TENSOR_OUT];
  const device_vtable *v = b->session->device->vtable;
  tensors t = bench_pool_tensors(&b->pool, 0);
  hd_status status = v->fill(b->session->device, NULL, out->data, 0xff, tensor_bytes(out), errors);
  if (status == HD_OK) status = session_launch(b->session, &b->decode, &t, b->dims, b->scale, errors);
  if (status == HD_OK) status = fetch_out(b, b->out, errors);
  if (status == HD_OK) bench_expected_compare(&b->expected, &b->data, b->out, r);
  return status;
}

/* All copies hold the same, so the last timed launch has to give what the checked one gave. */
static hd_status check_again(benchmark *b, bench_result *r, diags *errors) {
  size_t bytes = tensor_bytes(&b->data.host.by_name[TENSOR_OUT]);
  unsigned char *again = malloc(bytes + 1);
  if (!again) return HD_OUT_OF_MEMORY;
  hd_status status = fetch_out(b, again, errors);
  if (status == HD_OK && memcmp(again, b->out, bytes) != 0) {
    r->good = r->timed = false;
    snprintf(r->problem, sizeof r->problem, "the result after timing is not the one before");
  }
  free(again);
  return status;
}

static void describe(benchmark *b, const bench_shape *shape, bench_result *r) {
  *r = (bench_result){.shape = *shape, .page = b->data.contract->kv.page, .ragged = b->options->ragged};
  r->shape.heads_per_kv = b->data.contract->query.heads_per_kv;
  memcpy(r->contract_key, b->decode.descriptor->contract_key, sizeof r->contract_key);
  memcpy(r->code_key, b->decode.key, sizeof r->code_key);
  memcpy(r->compiler, b->decode.compiler, sizeof r->compiler);
  memcpy(r->variant, b->decode.descriptor->variant, sizeof r->variant);
  r->tokens = b->data.tokens;
  r->bytes = b->data.bytes;
  r->copies = b->pool.copies;
  r->launches = bench_launches(b->pool.copies);
}

static hd_status run_split(benchmark *b, int64_t asked, bench_result *r, diags *errors) {
  b->dims[DIM_SPLITS] = session_splits(b->session, &b->decode, b->dims,
                                       bind_longest(b->data.contract, &b->data.host, b->dims), asked);
  r->splits = b->dims[DIM_SPLITS];
  r->by_policy = asked == 0;
  hd_status status = check(b, r, errors);
  if (status != HD_OK || !r->good || b->session->facts.emulated) return status;
  status = time_series(b, launch_decode, &r->decode, errors);
  r->timed = status == HD_OK;
  return status == HD_OK ? check_again(b, r, errors) : status;
}

static hd_status prepare(benchmark *b, const contract *c, const char *name, const variant *v,
                         const bench_shape *shape, diags *errors) {
  const variant plain = {0};
  double scale = oracle_logits_scale(c, 1.0 / sqrt((double)c->head_dim.qk));
  b->scale = (float)scale;
  hd_status status = session_load(b->session, c, name, OPERATION_DECODE, v, &b->decode, errors);
  b->has_decode = status == HD_OK;
  if (status == HD_OK) {
    status = session_load(b->session, c, name, OPERATION_READ, &plain, &b->read, errors);
    b->has_read = status == HD_OK;
  }
  if (status == HD_OK)
    status = bench_data_init(&b->data, c, shape, b->options->ragged, b->options->seed, errors);
  if (status != HD_OK) return status;
  int copies = b->session->facts.emulated
                   ? 1
                   : bench_copies((int64_t)b->data.slab_bytes, b->session->facts.memory_bytes);
  if (copies < 1) {
    diags_errorf(errors, "bench.memory", NULL,
                 "the caches of a shape take %zu bytes, the device has %" PRId64, b->data.slab_bytes,
                 b->session->facts.memory_bytes);
    return HD_DECLINED;
  }
  memcpy(b->dims, b->data.dims, sizeof b->dims);
  b->out = malloc(tensor_bytes(&b->data.host.by_name[TENSOR_OUT]) + 1);
  if (!b->out) return HD_OUT_OF_MEMORY;
  status = bench_pool_init(&b->pool, b->session, &b->data, copies, errors);
  /* The oracle gets the scale that the kernel gets, rounded to fp32. */
  if (status == HD_OK)
    status = bench_expected_init(&b->expected, &b->data, (double)b->scale, b->options->seed, errors);
  return status;
}

static void finish(benchmark *b) {
  bench_expected_finish(&b->expected);
  if (b->pool.session) bench_pool_finish(&b->pool);
  bench_data_finish(&b->data);
  free(b->out);
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
  if (c->select.form != SELECT_TABLE || c->select.per != PER_SEQUENCE || c->query.rows != 1) {
    diags_errorf(errors, "bench.select", "select",
                 "bench deals pages to a table of one row a sequence, and times one query row");
    return HD_DECLINED;
  }
  hd_status status = bench_contract(c, shape->heads_per_kv, options->page, &used, errors);
  if (status != HD_OK) return status;
  bool changed = used.query.heads_per_kv != c->query.heads_per_kv || used.kv.page != c->kv.page;
  bench_series read = {0};
  int64_t read_workgroups = 0;
  status = prepare(&b, &used, name, v, shape, errors);
  if (status == HD_OK)
    status = s->facts.emulated ? run_read(&b, errors) : time_read(&b, &read, &read_workgroups, errors);
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
