/* How far from float64 a right kernel may be, from the formats it computes in. */
#ifndef HEDDLE_VERIFY_LIMITS_H
#define HEDDLE_VERIFY_LIMITS_H

#include "../../generator/reference.h"

/* What the formats of weights and of fp32 can cost a row of `width` channels, as the square of the error's
 * norm. Channels that are not finite in `exact` are left out. */
double verify_limit_computed(const contract *c, const reference_terms *terms, const double *exact,
                             int64_t width);

/* The relative error allowed of something whose exact values have `norm`, of which rounding to the output's
 * format alone takes `rounding` and computing may take `computed`, all squared: `aim`, or where that is more,
 * rounding and `aim_computed` (relative) together, or rounding and `computed`. norm > 0. */
double verify_limit_relative(double norm, double rounding, double computed, double aim, double aim_computed);

/* What storing k and v in the contract's formats usually leaves of the cosine to attention that was never
 * quantised. */
double verify_limit_cosine(const contract *c);
/* The least cosine for results within a relative `error` of some whose own cosine is `stored`. */
double verify_limit_cosine_near(double stored, double error);

#endif
