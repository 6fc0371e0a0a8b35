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
    END_OF_ROWS,
};
