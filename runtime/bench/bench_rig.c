#include "bench_rig.h"
#include "../verify/oracle.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hd_status check_memory(const bench_rig *r, int copies, diags *errors) {
  if (copies >= 1) return HD_OK;
  diags_errorf(errors, "bench.memory", NULL, "the caches of a shape take %zu bytes, the device has %" PRId64,
               r->data.slab_bytes, r->session->facts.memory_bytes);
  return HD_DECLINED;
}

hd_status bench_rig_init(bench_rig *r, session *s, const contract *c, const bench_deal *deal, bool quick,
                         diags *errors) {
  *r = (bench_rig){.session = s};
  r->scale = (float)oracle_logits_scale(c, 1.0 / sqrt((double)c->head_dim.qk));
  hd_status status = bench_data_init(&r->data, c, deal, errors);
  if (status != HD_OK) return status;
  memcpy(r->dims, r->data.dims, sizeof r->dims);
  r->longest = bind_longest(c, &r->data.host, r->dims);
  if (deal->capacity > r->longest) r->longest = deal->capacity;
  r->out = malloc(bench_rig_out_bytes(r) + 1);
  status = r->out ? HD_OK : HD_OUT_OF_MEMORY;
  int copies = s->facts.emulated ? 1 : bench_copies((int64_t)r->data.slab_bytes, s->facts.memory_bytes);
  if (status == HD_OK) status = check_memory(r, copies, errors);
  if (status == HD_OK) status = bench_pool_init(&r->pool, s, &r->data, copies, errors);
  /* The oracle gets the scale that the kernel gets, rounded to fp32. */
  if (status == HD_OK)
    status = bench_expected_init(&r->expected, &r->data, (double)r->scale,
                                 quick ? BENCH_CHECK_BUDGET / 4 : BENCH_CHECK_BUDGET, deal->seed, errors);
  if (status != HD_OK) bench_rig_finish(r);
  return status;
}

void bench_rig_finish(bench_rig *r) {
  bench_expected_finish(&r->expected);
  if (r->pool.session) bench_pool_finish(&r->pool);
  bench_data_finish(&r->data);
  free(r->out);
  *r = (bench_rig){0};
}

size_t bench_rig_out_bytes(const bench_rig *rig) {
  return tensor_bytes(&rig->data.host.by_name[TENSOR_OUT]);
}

hd_status bench_rig_fetch(bench_rig *rig, unsigned char *to, diags *errors) {
  tensors host = rig->data.host;
  host.by_name[TENSOR_OUT].data = (uint64_t)(uintptr_t)to;
  return session_download(rig->session, &rig->pool.fixed, &host, TENSOR_OUT, errors);
}

hd_status bench_rig_check(bench_rig *rig, session_kernel *k, int64_t splits, bench_result *r, diags *errors) {
  const tensor *out = &rig->pool.fixed.by_name[TENSOR_OUT];
  const device_vtable *v = rig->session->device->vtable;
  tensors t = bench_pool_tensors(&rig->pool, 0);
  rig->dims[DIM_SPLITS] = splits;
  hd_status status = v->fill(rig->session->device, NULL, out->data, 0xff, tensor_bytes(out), errors);
  if (status == HD_OK) status = session_launch(rig->session, k, &t, rig->dims, rig->scale, errors);
  if (status == HD_OK) status = bench_rig_fetch(rig, rig->out, errors);
  if (status == HD_OK) bench_expected_compare(&rig->expected, &rig->data, rig->out, r);
  return status;
}

/* One kernel on the rig's copies. */
typedef struct rig_launch {
  bench_rig *rig;
  session_kernel *kernel;
} rig_launch;

static hd_status launch(void *user, device_stream *s, int index, diags *errors) {
  const rig_launch *l = user;
  tensors t = bench_pool_tensors(&l->rig->pool, index);
  t.present[TENSOR_WORKSPACE] = l->kernel->workspace != 0;
  t.by_name[TENSOR_WORKSPACE].data = l->kernel->workspace;
  return launch_operation(l->rig->session->device, s, l->kernel->descriptor, l->kernel->functions, &t,
                          l->rig->dims, l->rig->scale, errors);
}

hd_status bench_rig_time(bench_rig *rig, session_kernel *k, int64_t splits, int repeat,
                         double warm_milliseconds, bench_series *out, diags *errors) {
  rig_launch l = {rig, k};
  rig->dims[DIM_SPLITS] = splits;
  rig->dims[DIM_LISTS_SETTLED] = 1; /* as in every layer of a model but the first */
  out->count = repeat;
  tensors t = bench_pool_tensors(&rig->pool, 0);
  /* Makes room in the workspace, which a captured launch can't. */
  hd_status status = session_launch(rig->session, k, &t, rig->dims, rig->scale, errors);
  if (status != HD_OK) return status;
  status = bench_time(rig->session->device, launch, &l, bench_launches(rig->pool.copies), repeat,
                      warm_milliseconds, out->samples, errors);
  if (status == HD_OK) bench_statistics_of(out->samples, out->count, &out->statistics);
  return status;
}

hd_status bench_rig_read(bench_rig *rig, session_kernel *k, int repeat, double warm_milliseconds,
                         bench_series *out, int64_t *out_workgroups, diags *errors) {
  static const int per_unit[] = {1, 2, 3, 4, 8, 16};
  bench_series best = {0};
  hd_status status = HD_OK;
  for (size_t i = 0; status == HD_OK && i < sizeof per_unit / sizeof per_unit[0]; i++) {
    bench_series series;
    int64_t workgroups = (int64_t)per_unit[i] * rig->session->facts.compute_units;
    status = bench_rig_time(rig, k, workgroups, repeat, warm_milliseconds, &series, errors);
    if (status != HD_OK || (i > 0 && series.statistics.median >= best.statistics.median)) continue;
    best = series;
    *out_workgroups = workgroups;
  }
  *out = best;
  return status;
}

hd_status bench_rig_read_once(bench_rig *rig, session_kernel *k, diags *errors) {
  rig_launch l = {rig, k};
  device *d = rig->session->device;
  rig->dims[DIM_SPLITS] = 2;
  hd_status status = launch(&l, NULL, 0, errors);
  return status == HD_OK ? d->vtable->synchronize(d, NULL, errors) : status;
}
