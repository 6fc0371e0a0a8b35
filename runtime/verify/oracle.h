/* The generator's reference, called on bound tensors in host memory. */
#ifndef HEDDLE_ORACLE_H
#define HEDDLE_ORACLE_H

#include "../../generator/reference.h"
#include "../launch/launch.h"

/* `c` resolved, `dims` from bind_dims. `out`: [seqs*rows, q_heads, head_dim.v], unrounded; `lse`: [seqs*rows,
 * q_heads] or NULL. */
hd_status oracle_decode(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT], double scale,
                        double *out, double *lse, diags *errors);
/* The same, with what each sum is made of: `terms` as out. */
hd_status oracle_decode_terms(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT],
                              double scale, double *out, double *lse, reference_terms *terms, diags *errors);
/* Writes caches and scales in place. */
hd_status oracle_write(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT], diags *errors);
/* The same as decode with results rounded to the contract's output format, in the tensors out and lse. */
hd_status oracle_decode_rounded(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT],
                                double scale, diags *errors);
/* The number logits are scaled by: the contract's, or `argument` where it says so. */
double oracle_logits_scale(const contract *c, double argument);

#endif
