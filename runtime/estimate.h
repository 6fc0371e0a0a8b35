/* From counts to what a launch would be bound by on the part itself, by the figures of datasheets. An
 * estimate: nothing here was measured, memory latency and the overlap of waves are not modelled, and the
 * device is taken to reach its peak in whatever bounds it. */
#ifndef HEDDLE_ESTIMATE_H
#define HEDDLE_ESTIMATE_H

#include "../generator/target.h"
#include "device/counts.h"

typedef enum estimate_bound {
  BOUND_MEMORY, /* different cache lines at the memory's rate, or 64-byte segments at the caches' */
  BOUND_MATRIX,
  BOUND_VECTOR,
  BOUND_LDS,
  BOUND_LATENCY, /* the longest wave, issuing as fast as one wave can */
  BOUND_COUNT
} estimate_bound;

typedef struct estimate {
  double seconds[BOUND_COUNT]; /* each by itself */
  double memory_seconds;       /* of seconds[BOUND_MEMORY] the part outside the compute units */
  estimate_bound bound;        /* the largest */
  double total;                /* seconds: seconds[bound] */
  double bytes;                /* different cache lines times their size */
  double efficiency;           /* share of the datasheet's bandwidth: memory_seconds / total */
} estimate;

const char *estimate_bound_name(estimate_bound b);
/* False when the table has no figures for the target. `compute_units`: of the device. */
bool estimate_launch(const target *t, int compute_units, const launch_counts *counts, estimate *out_estimate);

#endif
