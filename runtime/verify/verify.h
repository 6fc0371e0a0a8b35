/* Verifying kernels on a device: random and adversarial inputs go through write and decode, and each result
 * is held against the oracle. The inputs depend on the contract, the tile size and the seed only. */
#ifndef HEDDLE_VERIFY_H
#define HEDDLE_VERIFY_H

#include "../session.h"

/* Relative RMS error of decode against float64 on the stored bytes, of all rows together and of any single
 * row. Rounding to bf16 is 1.65e-3 of that on average, but up to 3.9e-3 for a row that one or two channels
 * dominate, and more for fp16 below 6e-5. Where rounding alone takes more than usual, the sum of its square
 * and that of what is left for computing is allowed; where a row's sum cancels, or the tokens of the largest
 * weights have no value, what the formats of the products leave (verify_limits.h). */
#define VERIFY_RMS 2.5e-3
#define VERIFY_COMPUTED 1.88e-3 /* sqrt(2.5e-3^2 - 1.65e-3^2) */
#define VERIFY_ROW_RMS 5e-3
#define VERIFY_ROW_COMPUTED 3.1e-3 /* sqrt(5e-3^2 - 3.9e-3^2) */
/* lse: absolute, relative where it is larger than 1. */
#define VERIFY_LSE 1e-3

typedef struct verify_options {
  uint64_t seed;
  int random_cases; /* beside the table's */
  int64_t split;    /* forced on every case; 0: each case's own */
  bool padded; /* caches and scales with gaps between pages and heads, where the contract leaves strides free
                */
  bool large;  /* also the cases that only hardware gets through in reasonable time */
  const char *only; /* run the cases whose name contains this; NULL: all */
} verify_options;

typedef struct verify_outcome {
  char name[48];
  int64_t seqs, kv_heads, longest, splits;
  bool wrote;           /* the write kernel ran */
  int64_t codes_differ; /* elements of the caches, NaN equal to NaN */
  int64_t scales_differ;
  bool decoded;
  double rms, row_rms; /* relative; the worst row's */
  double rms_allowed, row_allowed;
  int64_t row;          /* which: query row * q_heads + head */
  double lse_error;     /* NaN when the contract has none */
  double cosine;        /* to attention that was never quantised; NaN where that says nothing */
  double cosine_stored; /* exact attention's on the stored bytes: what the format leaves */
  double cosine_least;  /* what it has to be */
  double write_seconds, decode_seconds;
  bool good;
  char problem[240]; /* "" when good */
} verify_outcome;

/* Runs every case and calls `report` after each. `c`: resolved for the session's target. `*out_bad` counts
 * the cases that failed. HD_OK also then; other statuses say that the kernels could not be built or run. */
hd_status verify_run(session *s, const contract *c, const char *name, const variant *v,
                     const verify_options *options, void (*report)(void *user, const verify_outcome *outcome),
                     void *user, int *out_bad, diags *errors);

/* How many cases that is. */
int verify_count(const contract *c, const verify_options *options);

#endif
