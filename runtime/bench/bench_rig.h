/* What kernels of one shape are held against and timed on: its data, copies of its caches on the device, and
 * what the oracle says. Shared by benchmarks and the tuner, which try several kernels on one rig. */
#ifndef HEDDLE_BENCH_RIG_H
#define HEDDLE_BENCH_RIG_H

#include "bench_data.h"

typedef struct bench_rig {
  session *session;
  bench_data data;
  bench_pool pool;
  bench_expected expected;
  unsigned char *out; /* host memory: what the last checked launch gave */
  float scale;        /* of the logits */
  int64_t dims[DIM_COUNT];
  int64_t longest; /* tokens of the longest sequence */
} bench_rig;

/* `c` resolved, and outlives the rig. As many copies as benchmarks rotate over; `quick`: a
 * quarter of the oracle's rows. HD_DECLINED with a
 * diagnostic for rows that the contract has not, and a shape that doesn't fit the device. */
hd_status bench_rig_init(bench_rig *r, session *s, const contract *c, const bench_deal *deal, bool quick,
                         diags *errors);
void bench_rig_finish(bench_rig *r);

/* One launch at this split against the oracle: fills `r`'s figures of correctness. */
hd_status bench_rig_check(bench_rig *rig, session_kernel *k, int64_t splits, bench_result *r, diags *errors);
/* The output as it is on the device now, into `to` (bench_rig_out_bytes). */
hd_status bench_rig_fetch(bench_rig *rig, unsigned char *to, diags *errors);
size_t bench_rig_out_bytes(const bench_rig *rig);

/* Graph replays of the kernel at this split, after one launch that makes room in its workspace and a warm-up
 * of `warm_milliseconds`. */
hd_status bench_rig_time(bench_rig *rig, session_kernel *k, int64_t splits, int repeat,
                         double warm_milliseconds, bench_series *out, diags *errors);

/* The read kernel at several grid sizes; the fastest counts. `k`: OPERATION_READ. */
hd_status bench_rig_read(bench_rig *rig, session_kernel *k, int repeat, double warm_milliseconds,
                         bench_series *out, int64_t *out_workgroups, diags *errors);
/* The read kernel once, where nothing is timed: an emulated device tells when it reads what it should not. */
hd_status bench_rig_read_once(bench_rig *rig, session_kernel *k, diags *errors);

#endif
