/* Pictures of what benchmarks measured: time over bytes beside a read of the same bytes, and the share of its
 * speed by shape. */
#ifndef HEDDLE_PICTURES_BENCH_PICTURE_H
#define HEDDLE_PICTURES_BENCH_PICTURE_H

#include "../../generator/diag.h"
#include "../../generator/text.h"
#include <stdint.h>

/* One shape's fastest split. */
typedef struct bench_point {
  int64_t seqs, length, kv_heads;
  int heads_per_kv, rows; /* rows: 0 in results of before there were any, which had one */
  bool ragged;
  char variant[64];
  int64_t splits, bytes;
  double us, read_us; /* medians */
} bench_point;

enum { BENCH_MOST_POINTS = 4096 };

typedef struct bench_points {
  char spec[128], device[128], target[32];
  int count, room;
  bench_point *items;
  int untimed; /* results without a time: wrong, or of an emulated device */
} bench_points;

/* HD_OUT_OF_MEMORY, or HD_DECLINED when there are too many. */
hd_status bench_points_add(bench_points *p, const bench_point *point);
/* Of what `heddle bench --json` prints: HD_DECLINED with "bench.from" and where. Safe on any bytes. Finish in
 * any case. */
hd_status bench_points_read(const char *json, size_t length, bench_points *out_points, diags *errors);
void bench_points_finish(bench_points *p);

/* "64x8192x4x16 2 rows ragged" */
void bench_point_write(const bench_point *p, text *out);
/* Failing is in the text (`failed`). */
void bench_svg(const bench_points *p, text *out);

#endif
