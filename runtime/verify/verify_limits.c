#include "verify_limits.h"
#include <math.h>

/* A weight, probability times V scale, enters the matrix instruction in the format that V has there
 * (generator/plan.c): as one fp16, brought up to 2^14 for the row's largest, or, for V in bf16, as two bf16
 * whose sum it is. `relative`: of the weight; `least`: of the largest weight of the row and group of
 * channels, below which weights lose their last bits and then all. */
typedef struct weight_format {
  double relative, least;
} weight_format;
/* Half of fp16's last place, and half of its smallest step. */
static const weight_format one_fp16 = {0x1p-11, 0x1p-25 / 0x1p14};
/* Two bf16 have 2^-16 and end where fp32 does; but scores of some hundreds are exact to 2^-13 at most in
 * fp32. */
static const weight_format two_bf16 = {0x1p-13, 0x1p-126};

/* Roundings of different tokens add up like a random walk: in the mean over many tokens to 0.4 of the sum of
 * squares' root, never to more than this where a few tokens decide. */
static const double roundings = 2;

/* Below it fp32 has denormals, which instructions may take for 0. */
static const double smallest = 0x1p-126;

double verify_limit_computed(const contract *c, const reference_terms *terms, const double *exact,
                             int64_t width) {
  const weight_format format = c->kv.v_dtype == DTYPE_BF16 ? two_bf16 : one_fp16;
  double sum = 0;
  for (int64_t i = 0; i < width; i++) {
    if (!isfinite(exact[i])) continue;
    double error = roundings * format.relative * sqrt(terms[i].squares) +
                   format.least * terms[i].weight * terms[i].codes + smallest;
    sum += error * error;
  }
  return sum;
}

double verify_limit_relative(double norm, double rounding, double computed, double aim, double aim_computed) {
  double usual = fmax(aim * aim, rounding / norm + aim_computed * aim_computed);
  return sqrt(fmax(usual, (rounding + computed) / norm));
}

double verify_limit_cosine(const contract *c) {
  return fmin(dtype_least_cosine(c->kv.k_dtype), dtype_least_cosine(c->kv.v_dtype));
}

double verify_limit_cosine_near(double stored, double error) {
  double sine = sqrt(fmax(0, 1 - stored * stored)), apart = fmin(1, error);
  return stored * sqrt(1 - apart * apart) - sine * apart;
}
