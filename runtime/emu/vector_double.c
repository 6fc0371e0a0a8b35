/* Float arithmetic of f64. Everything here is correctly rounded, reciprocals and roots included, where the
 * hardware gives estimates that compilers refine. */
#include "vector.h"

#define F64_N(name, expression, sources)                                                                     \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    block_pair x, y, z, r;                                                                                   \
    emu_lanes p = source_f64(w, i, 0, &x), q = p, s = p;                                                     \
    if (sources > 1) q = source_f64(w, i, 1, &y);                                                            \
    if (sources > 2) s = source_f64(w, i, 2, &z);                                                            \
    rounding_begin(w, MODE_F16_F64);                                                                         \
    LANES {                                                                                                  \
      double a = double_at(p, lane), b = double_at(q, lane), c = double_at(s, lane);                         \
      (void)b, (void)c;                                                                                      \
      set_double(&r, lane, expression);                                                                      \
    }                                                                                                        \
    rounding_end(w, MODE_F16_F64);                                                                           \
    result_f64(w, i, &r);                                                                                    \
  }

EMU_INLINE double max_number_f64(double a, double b) {
  if (isnan(a)) return isnan(b) ? a + b : b;
  if (isnan(b)) return a;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
EMU_INLINE double min_number_f64(double a, double b) {
  if (isnan(a)) return isnan(b) ? a + b : b;
  if (isnan(b)) return a;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
EMU_INLINE double fraction_f64(double a) {
  double f = a - floor(a);
  return f >= 1.0 ? 0x1.fffffffffffffp-1 : f;
}

F64_N(v_add_f64, a + b, 2)
F64_N(v_mul_f64, a *b, 2)
F64_N(v_fma_f64, fma(a, b, c), 3)
F64_N(v_min_f64, min_number_f64(a, b), 2)
F64_N(v_max_f64, max_number_f64(a, b), 2)
F64_N(v_minimum_f64, isnan(a) || isnan(b) ? a + b : min_number_f64(a, b), 2)
F64_N(v_maximum_f64, isnan(a) || isnan(b) ? a + b : max_number_f64(a, b), 2)
F64_N(v_floor_f64, floor(a), 1)
F64_N(v_ceil_f64, ceil(a), 1)
F64_N(v_trunc_f64, trunc(a), 1)
F64_N(v_fract_f64, fraction_f64(a), 1)
F64_N(v_rcp_f64, 1.0 / a, 1)
F64_N(v_rsq_f64, 1.0 / sqrt(a), 1)
F64_N(v_sqrt_f64, sqrt(a), 1)

static void v_rndne_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, r;
  emu_lanes p = source_f64(w, i, 0, &x);
  LANES set_double(&r, lane, rint(double_at(p, lane)));
  result_f64(w, i, &r);
}

static void v_fmac_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_f64(w, i, 0, &x), q = source_f64(w, i, 1, &y);
  emu_lanes s = emu_previous64(w, i, EMU_F64, &z.lo, &z.hi);
  rounding_begin(w, MODE_F16_F64);
  LANES set_double(&r, lane, fma(double_at(p, lane), double_at(q, lane), double_at(s, lane)));
  rounding_end(w, MODE_F16_F64);
  result_f64(w, i, &r);
}

static void v_ldexp_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, r;
  emu_block y;
  emu_lanes p = source_f64(w, i, 0, &x);
  const uint32_t *q = source_b32(w, i, 1, &y);
  rounding_begin(w, MODE_F16_F64);
  LANES set_double(&r, lane, ldexp(double_at(p, lane), (int32_t)q[lane]));
  rounding_end(w, MODE_F16_F64);
  result_f64(w, i, &r);
}

static void v_frexp_mant_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, r;
  emu_lanes p = source_f64(w, i, 0, &x);
  LANES {
    int unused;
    double a = double_at(p, lane);
    set_double(&r, lane, isfinite(a) ? frexp(a, &unused) : a);
  }
  result_f64(w, i, &r);
}

static void v_frexp_exp_i32_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x;
  emu_block r;
  emu_lanes p = source_f64(w, i, 0, &x);
  LANES {
    int exponent = 0;
    double a = double_at(p, lane);
    if (isfinite(a)) frexp(a, &exponent);
    r.lane[lane] = (uint32_t)exponent;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

/* The fraction of 2 / pi, 64 bits a word, first bits first: what the reduction of huge angles multiplies by.
 */
static const uint64_t two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* 53 bits of it from segment source 1 on, as many more as source 0's exponent is beyond 1077, at the weight
 * that they have there; scaled up by 2^128 where the product with source 0 would otherwise lose bits. */
static void v_trig_preop_f64(emu_wave *w, const emu_instruction *i) {
  enum { BITS = 53, KNOWN = 1201 }; /* zeros follow */
  block_pair x, r;
  emu_block y;
  emu_lanes p = source_f64(w, i, 0, &x);
  const uint32_t *q = source_b32(w, i, 1, &y);
  LANES {
    int exponent = (int)(p.hi[lane] >> 20 & 0x7ff), shift = (int)(q[lane] & 31) * BITS;
    if (exponent > 1077) shift += exponent - 1077;
    uint64_t bits = 0;
    if (shift < KNOWN) {
      uint64_t first = two_over_pi[shift / 64], next = two_over_pi[shift / 64 + 1];
      bits = (shift % 64 ? first << shift % 64 | next >> (64 - shift % 64) : first) >> (64 - BITS);
      if (shift + BITS > KNOWN) bits &= UINT64_MAX << (shift + BITS - KNOWN);
    }
    set_double(&r, lane, ldexp((double)bits, -BITS - shift + (exponent >= 1968 ? 128 : 0)));
  }
  result_f64(w, i, &r);
}

const emu_row emu_vector_double_rows[] = {
    ROW(v_add_f64),
    ROW(v_mul_f64),
    ROW(v_fma_f64),
    ROW_AS(v_fmaak_f64, v_fma_f64),
    ROW_AS(v_fmamk_f64, v_fma_f64),
    ROW(v_fmac_f64),
    ROW(v_min_f64),
    ROW(v_max_f64),
    ROW_AS(v_min_num_f64, v_min_f64),
    ROW_AS(v_max_num_f64, v_max_f64),
    ROW(v_minimum_f64),
    ROW(v_maximum_f64),
    ROW(v_floor_f64),
    ROW(v_ceil_f64),
    ROW(v_trunc_f64),
    ROW(v_rndne_f64),
    ROW(v_fract_f64),
    TRANSCENDENTAL(v_rcp_f64, v_rcp_f64),
    TRANSCENDENTAL(v_rsq_f64, v_rsq_f64),
    TRANSCENDENTAL(v_sqrt_f64, v_sqrt_f64),
    ROW(v_ldexp_f64),
    ROW(v_frexp_mant_f64),
    ROW(v_frexp_exp_i32_f64),
    ROW(v_trig_preop_f64),
    END_OF_ROWS,
};
