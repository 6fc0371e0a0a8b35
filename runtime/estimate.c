#include "estimate.h"
#include <string.h>

/* Per compute unit and clock. Sources: AMD's data sheets and product pages of MI300X, MI355X and Radeon RX
 * 9070 XT (peak engine clock; peak matrix rates divided by units and clock), the CDNA 3 and CDNA 4 white
 * papers (vector lanes, 64 bytes a clock between vector cache and registers). gfx1250: from announcements
 * (fp8 and fp4 peak), its clock and its 16-bit rate are assumptions. */
typedef struct rates {
  const char *target;
  double clock;           /* Hz */
  double matrix_flops[5]; /* of elements of 64, 32, 16, 8 and 4 bits */
  double vector_lanes;    /* 32-bit operations, not packed or paired */
  double cache_bytes;
  double issue_clocks; /* between two instructions of one wave */
} rates;

enum {
  TRANSCENDENTAL_COST = 4, /* quarter rate on all of them */
  CACHE_SIZE = 1,          /* segments that a unit's cache gives at once: those of 64 bytes */
  CACHE_BYTES = 64
};

static const rates table[] = {
    {"gfx942", 2.1e9, {256, 256, 2048, 4096, 4096}, 64, 64, 4},
    {"gfx950", 2.4e9, {128, 256, 4096, 8192, 16384}, 64, 64, 4},
    {"gfx1201", 2.97e9, {0, 0, 1024, 2048, 4096}, 64, 64, 1},
    {"gfx1250", 2.4e9, {128, 256, 16384, 32768, 65536}, 64, 64, 1},
};

static const rates *find(const char *name) {
  for (size_t n = 0; n < sizeof table / sizeof *table; n++)
    if (strcmp(table[n].target, name) == 0) return &table[n];
  return NULL;
}

const char *estimate_bound_name(estimate_bound b) {
  static const char *const names[] = {"memory", "matrix", "vector", "LDS", "latency"};
  return names[b];
}

static int column_of(int bits) {
  return bits >= 64 ? 0 : bits >= 32 ? 1 : bits >= 16 ? 2 : bits >= 8 ? 3 : 4;
}

bool estimate_launch(const target *t, int compute_units, const launch_counts *c, estimate *out_estimate) {
  const rates *r = find(t->name);
  if (!r || compute_units < 1 || !(t->hbm_bytes_per_s > 0)) return false;
  estimate e = {0};
  /* Workgroups stay on their unit: fewer of them than units leave the others idle. */
  double units = c->workgroups < (uint64_t)compute_units ? (double)c->workgroups : (double)compute_units;
  if (units < 1) units = 1;
  double clocks = units * r->clock;
  e.bytes = (double)(c->lines_read + c->lines_written) * COUNT_LINE_BYTES;
  e.memory_seconds = e.bytes / t->hbm_bytes_per_s;
  double pieces = (double)(c->loads.segments[CACHE_SIZE] + c->stores.segments[CACHE_SIZE]);
  double path = pieces * CACHE_BYTES / (clocks * r->cache_bytes);
  e.seconds[BOUND_MEMORY] = path > e.memory_seconds ? path : e.memory_seconds;
  for (size_t n = 0; n < c->matrix_count; n++) {
    double rate = r->matrix_flops[column_of(c->matrix[n].bits)];
    if (rate > 0) e.seconds[BOUND_MATRIX] += 2.0 * (double)c->matrix[n].multiply_adds / (clocks * rate);
  }
  double vector = (double)c->instructions[COUNT_VECTOR] +
                  TRANSCENDENTAL_COST * (double)c->instructions[COUNT_TRANSCENDENTAL];
  e.seconds[BOUND_VECTOR] = vector * c->lanes / (clocks * r->vector_lanes);
  e.seconds[BOUND_LDS] = (double)c->lds_cycles / clocks;
  e.seconds[BOUND_LATENCY] = (double)c->longest_wave * r->issue_clocks / r->clock;
  for (int n = 1; n < BOUND_COUNT; n++)
    if (e.seconds[n] > e.seconds[e.bound]) e.bound = (estimate_bound)n;
  e.total = e.seconds[e.bound];
  e.efficiency = e.total > 0 ? e.memory_seconds / e.total : 0;
  *out_estimate = e;
  return true;
}
