#include "estimate.h"

/* The same on every target that has rates (target.h): vector lanes of a compute unit that do a 32-bit
 * operation each clock, not packed or paired; what comes from the vector cache in one. Sources: the CDNA 3
 * and CDNA 4 white papers. */
enum {
  VECTOR_LANES = 64,
  TRANSCENDENTAL_COST = 4, /* quarter rate */
  CACHE_SIZE = 1           /* segments that a unit's cache gives in a clock: those of 64 bytes */
};

const char *estimate_bound_name(estimate_bound b) {
  static const char *const names[] = {"memory", "matrix", "vector", "LDS", "latency"};
  return names[b];
}

static int column_of(int bits) {
  return bits >= 64 ? 0 : bits >= 32 ? 1 : bits >= 16 ? 2 : bits >= 8 ? 3 : 4;
}

bool estimate_launch(const target *t, int compute_units, const launch_counts *c, estimate *out_estimate) {
  const target_rates *r = &t->rates;
  if (!(r->clock > 0) || compute_units < 1 || !(t->hbm_bytes_per_s > 0)) return false;
  estimate e = {0};
  /* Workgroups stay on their unit: fewer of them than units leave the others idle. */
  double units = c->workgroups < (uint64_t)compute_units ? (double)c->workgroups : (double)compute_units;
  if (units < 1) units = 1;
  double clocks = units * r->clock;
  e.bytes = (double)(c->lines_read + c->lines_written) * COUNT_LINE_BYTES;
  e.memory_seconds = e.bytes / t->hbm_bytes_per_s;
  double pieces = (double)(c->loads.segments[CACHE_SIZE] + c->stores.segments[CACHE_SIZE]);
  double path = pieces / clocks; /* one a clock */
  e.seconds[BOUND_MEMORY] = path > e.memory_seconds ? path : e.memory_seconds;
  for (size_t n = 0; n < c->matrix_count; n++) {
    double rate = r->matrix_flops[column_of(c->matrix[n].bits)];
    if (rate > 0) e.seconds[BOUND_MATRIX] += 2.0 * (double)c->matrix[n].multiply_adds / (clocks * rate);
  }
  double vector = (double)c->instructions[COUNT_VECTOR] +
                  TRANSCENDENTAL_COST * (double)c->instructions[COUNT_TRANSCENDENTAL];
  e.seconds[BOUND_VECTOR] = vector * c->lanes / (clocks * VECTOR_LANES);
  e.seconds[BOUND_LDS] = (double)c->lds_cycles / clocks;
  e.seconds[BOUND_LATENCY] = (double)c->longest_wave * r->issue_clocks / r->clock;
  for (int n = 1; n < BOUND_COUNT; n++)
    if (e.seconds[n] > e.seconds[e.bound]) e.bound = (estimate_bound)n;
  e.total = e.seconds[e.bound];
  e.efficiency = e.total > 0 ? e.memory_seconds / e.total : 0;
  *out_estimate = e;
  return true;
}
