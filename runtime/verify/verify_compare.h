/* Holding results against the oracle's. */
#ifndef HEDDLE_VERIFY_COMPARE_H
#define HEDDLE_VERIFY_COMPARE_H

#include "verify.h"
#include "verify_data.h"

/* Records the first problem of an outcome; later ones don't replace it. */
void verify_problem(verify_outcome *o, const char *format, ...) HD_PRINTF(2, 3);

/* Caches and scales after a write: `expected` are the oracle's arrays, by tensor name, of the sizes of d's.
 * Fills codes_differ and scales_differ. */
void verify_compare_write(const verify_data *d, void *const expected[TENSOR_COUNT], verify_outcome *o);

/* Decode's out and lse in d's memory against the oracle on the stored bytes, and against attention that was
 * never quantised where the case allows it. Large batches are sampled, the longest sequence always among
 * them. `dims`: of the decode. */
hd_status verify_compare_decode(const verify_data *d, const int64_t dims[DIM_COUNT], double scale,
                                random_state *r, verify_outcome *o, diags *errors);

#endif
