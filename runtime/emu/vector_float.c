/* Float arithmetic of f32 and f64, transcendentals, and the division helpers.
 *
 * Accuracy: add, mul, fma, rcp, sqrt and f64 division steps are correctly rounded. v_exp_f32 and v_log_f32 come from the
 * host's base-2 functions (error below 0.56 ulp), v_sin_f32, v_cos_f32, v_rsq_f32 are rounded from f64. The hardware promises
 * 1 ulp for these, so its last bit may differ. As on the hardware, the f32 exp, log, rcp, rsq and sqrt neither take nor give
 * denormals (compilers scale around that). */
#include "vector.h"

/* ---- f32 --------------------------------------------------------------------------------------------------- */

#define F32_1(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_f32(w, i, 0, &x);                                                             \
    rounding_begin(w, MODE_F32);                                                                             \
    LANES {                                                                                                  \
      float a = emu_float(p[lane]);                                                                          \
      r.lane[lane] = emu_bits(expression);                                                                   \
    }                                                                                                        \
    rounding_end(w, MODE_F32);                                                                               \
    result_f32(w, i, &r);                                                                                    \
  }

#define F32_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y);                               \
    rounding_begin(w, MODE_F32);                                                                             \
    LANES {                                                                                                  \
      float a = emu_float(p[lane]), b = emu_float(q[lane]);                                                  \
      r.lane[lane] = emu_bits(expression);                                                                   \
    }                                                                                                        \
    rounding_end(w, MODE_F32);                                                                               \
    result_f32(w, i, &r);                                                                                    \
  }

#define F32_3(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z); \
    LANES {                                                                                                  \
      float a = emu_float(p[lane]), b = emu_float(q[lane]), c = emu_float(s[lane]);                          \
      r.lane[lane] = emu_bits(expression);                                                                   \
    }                                                                                                        \
    result_f32(w, i, &r);                                                                                    \
  }

/* 0 times anything is +0, also infinity and NaN. */
EMU_INLINE float multiply_legacy(float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; }

/* ldexp without its libm call: three exact-enough steps would round twice for denormals, so go through f64, whose range holds every
 * f32 scaled by up to 2^±512, and round once. */
EMU_INLINE float scale_f32(float a, int32_t exponent) {
  exponent = exponent > 400 ? 400 : exponent < -400 ? -400 : exponent;
  return (float)((double)a * emu_f64((uint64_t)(1023 + exponent) << 52));
}

EMU_INLINE float fraction_f32(float a) {
  float below = floorf(a), f = a - below;
  return f >= 1.0f ? 0x1.fffffep-1f : f;
}

EMU_INLINE int exponent_field(uint32_t bits) { return (int)(bits >> 23 & 0xff); }

F32_2(v_add_f32, a + b)
F32_2(v_sub_f32, a - b)
F32_2(v_subrev_f32, b - a)
F32_2(v_mul_f32, a *b)
F32_2(v_mul_legacy_f32, multiply_legacy(a, b))
F32_2(v_min_f32, min_number(a, b))
F32_2(v_max_f32, max_number(a, b))
F32_2(v_minimum_f32, minimum(a, b))
F32_2(v_maximum_f32, maximum(a, b))
F32_3(v_min3_f32, min_number(min_number(a, b), c))
F32_3(v_max3_f32, max_number(max_number(a, b), c))
F32_3(v_minimum3_f32, minimum(minimum(a, b), c))
F32_3(v_maximum3_f32, maximum(maximum(a, b), c))
F32_3(v_minmax_f32, max_number(min_number(a, b), c))
F32_3(v_maxmin_f32, min_number(max_number(a, b), c))
F32_3(v_minimummaximum_f32, maximum(minimum(a, b), c))
F32_3(v_maximumminimum_f32, minimum(maximum(a, b), c))
F32_3(v_med3_f32, median(a, b, c))
F32_1(v_floor_f32, floorf(a))
F32_1(v_ceil_f32, ceilf(a))
F32_1(v_trunc_f32, truncf(a))
F32_1(v_fract_f32, fraction_f32(a))
F32_1(v_sqrt_f32, sqrtf(emu_f32(flush_f32(emu_bits(a)))))

static void v_rndne_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_f32(w, i, 0, &x);
  LANES r.lane[lane] = emu_bits(rintf(emu_float(p[lane]))); /* the host's mode is nearest even here */
  result_f32(w, i, &r);
}

/* Multiply-adds: the loop alone is compiled for FMA hardware. */
EMU_HOT static void fma_loop(const uint32_t *p, const uint32_t *q, const uint32_t *s, uint32_t *restrict r) {
  LANES r[lane] = emu_bits(fmaf(emu_float(p[lane]), emu_float(q[lane]), emu_float(s[lane])));
}

static void fma_rounded(emu_wave *w, const emu_instruction *i, const uint32_t *p, const uint32_t *q, const uint32_t *s) {
  emu_block r;
  rounding_begin(w, MODE_F32);
  fma_loop(p, q, s, r.lane);
  rounding_end(w, MODE_F32);
  result_f32(w, i, &r);
}

/* Also v_fmaak (K last) and v_fmamk (K in the middle): the operands come in the order of the text. */
static void v_fma_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z;
  fma_rounded(w, i, source_f32(w, i, 0, &x), source_f32(w, i, 1, &y), source_f32(w, i, 2, &z));
}

static void v_fmac_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z;
  fma_rounded(w, i, source_f32(w, i, 0, &x), source_f32(w, i, 1, &y), previous_f32(w, i, &z));
}

F32_3(v_fma_dx9_zero_f32, a == 0 || b == 0 ? c : fmaf(a, b, c))

static void v_ldexp_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  rounding_begin(w, MODE_F32);
  LANES r.lane[lane] = emu_bits(scale_f32(emu_float(p[lane]), (int32_t)q[lane]));
  rounding_end(w, MODE_F32);
  result_f32(w, i, &r);
}

static void v_frexp_mant_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_f32(w, i, 0, &x);
  LANES {
    int unused;
    float a = emu_float(p[lane]);
    r.lane[lane] = emu_bits(isfinite(a) ? frexpf(a, &unused) : a);
  }
  result_f32(w, i, &r);
}

static void v_frexp_exp_i32_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_f32(w, i, 0, &x);
  LANES {
    int exponent = 0;
    float a = emu_float(p[lane]);
    if (isfinite(a)) frexpf(a, &exponent);
    r.lane[lane] = (uint32_t)exponent;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- transcendental f32 ------------------------------------------------------------------------------------- */

/* Without denormals on either side. */
#define F32_TRANSCENDENTAL(name, expression)                                                                 \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_f32(w, i, 0, &x);                                                             \
    LANES {                                                                                                  \
      float a = emu_float(flush_f32(p[lane]));                                                               \
      r.lane[lane] = flush_f32(emu_bits(expression));                                                        \
    }                                                                                                        \
    result_f32(w, i, &r);                                                                                    \
  }

F32_TRANSCENDENTAL(v_exp_f32, exp2f(a))
F32_TRANSCENDENTAL(v_log_f32, log2f(a))
F32_TRANSCENDENTAL(v_rcp_f32, 1.0f / a)
F32_TRANSCENDENTAL(v_rsq_f32, (float)(1.0 / sqrt((double)a)))

/* The argument counts whole turns; beyond ±256 turns the result is that of 0. */
EMU_INLINE double turns_to_radians(float a) {
  double turns = fabsf(a) <= 256.0f ? (double)a : 0.0;
  return (turns - floor(turns)) * 6.283185307179586476925;
}

F32_1(v_sin_f32, isfinite(a) ? (float)sin(turns_to_radians(a)) : emu_f32(0x7fc00000))
F32_1(v_cos_f32, isfinite(a) ? (float)cos(turns_to_radians(a)) : emu_f32(0x7fc00000))
F32_1(v_tanh_f32, (float)tanh((double)a))

/* ---- division steps ------------------------------------------------------------------------------------------
 * x / y is computed as: scale both so that no step leaves the range (v_div_scale, which also tells in a mask whether the
 * quotient must be scaled back), reciprocal and multiply-adds, a last multiply-add that scales back (v_div_fmas), and the
 * special cases (v_div_fixup). Where the documents' pseudo-code cannot give the quotient that C asks for, what is here can:
 * a huge denominator of a tiny quotient is scaled down, not up (up would make it infinite), v_div_fmas rounds once, after
 * scaling back, and v_div_fixup takes a quotient that was lost on the way for an overflow. */

EMU_INLINE bool is_denormal_f32(double value) { return fabs(value) < 0x1p-126 && value != 0; }

static void v_div_scale_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  uint8_t flag[EMU_LANES];
  LANES {
    float value = emu_float(p[lane]), denominator = emu_float(q[lane]), numerator = emu_float(s[lane]);
    int gap = exponent_field(s[lane]) - exponent_field(q[lane]);
    double reciprocal = 1.0 / (double)denominator, quotient = (double)numerator / (double)denominator;
    bool scale_back = false;
    float result = value;
    if (numerator == 0 || denominator == 0) {
      result = emu_f32(0x7fc00000);
    } else if (gap >= 96) { /* the quotient is near the largest f32 */
      scale_back = true;
      if (p[lane] == q[lane]) result = scale_f32(value, 64);
    } else if (is_denormal_f32((double)denominator)) {
      result = scale_f32(value, 64);
    } else if (is_denormal_f32(reciprocal) && is_denormal_f32(quotient)) {
      scale_back = true;
      if (p[lane] == q[lane]) result = scale_f32(value, -64);
    } else if (is_denormal_f32(reciprocal)) {
      result = scale_f32(value, -64);
    } else if (is_denormal_f32(quotient)) {
      scale_back = true;
      if (p[lane] == s[lane]) result = scale_f32(value, 64);
    } else if (exponent_field(s[lane]) <= 23) { /* a tiny numerator */
      result = scale_f32(value, 64);
    }
    r.lane[lane] = emu_bits(result);
    flag[lane] = scale_back;
  }
  emu_result_mask(w, i, 1, pack_mask(flag));
  result_f32(w, i, &r);
}

static void v_div_fmas_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  uint64_t vcc = emu_pair(w, EMU_S_VCC);
  double sum[EMU_LANES];
  LANES {
    double exact = fma_to_odd((double)emu_float(p[lane]), (double)emu_float(q[lane]), (double)emu_float(s[lane]));
    /* A quotient estimate above 1 belongs to a huge quotient that was scaled down, below 1 to a tiny one. */
    double back = exponent_field(s[lane]) > 127 ? 0x1p+64 : 0x1p-64;
    sum[lane] = vcc >> lane & 1 ? exact * back : exact;
  }
  rounding_begin(w, MODE_F32);
  LANES r.lane[lane] = emu_bits((float)sum[lane]);
  rounding_end(w, MODE_F32);
  result_f32(w, i, &r);
}

/* A quotient that is NaN although both operands are finite and not zero was beyond the range half way: the scaled quotient of
 * 1e38 and 1e-44 is infinite, and its residual NaN. */
static void v_div_fixup_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  LANES {
    uint32_t sign = (q[lane] ^ s[lane]) & 0x80000000u;
    float denominator = emu_float(q[lane] & 0x7fffffffu), numerator = emu_float(s[lane] & 0x7fffffffu);
    uint32_t bits;
    if (isnan(numerator)) bits = s[lane] | 0x400000u;
    else if (isnan(denominator)) bits = q[lane] | 0x400000u;
    else if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator))) bits = 0xffc00000u;
    else if (denominator == 0 || isinf(numerator)) bits = sign | 0x7f800000u;
    else if (isinf(denominator) || numerator == 0) bits = sign;
    else if (exponent_field(s[lane]) - exponent_field(q[lane]) < -150) bits = sign;
    else if (isnan(emu_float(p[lane]))) bits = sign | 0x7f800000u;
    else bits = sign | (p[lane] & 0x7fffffffu);
    r.lane[lane] = bits;
  }
  result_f32(w, i, &r);
}

/* ---- f64 ------------------------------------------------------------------------------------------------------ */

EMU_INLINE uint64_t flush_f64(uint64_t bits) { return bits << 1 >> 53 ? bits : bits & UINT64_C(1) << 63; }

static emu_lanes source_f64(emu_wave *w, const emu_instruction *i, int k, block_pair *block) {
  emu_lanes p = source_64(w, i, k, EMU_F64, block);
  if (!mode_flushes_input(w, MODE_F16_F64)) return p;
  LANES set_pair(block, lane, flush_f64(pair_at(p, lane)));
  return (emu_lanes){block->lo.lane, block->hi.lane};
}

static void result_f64(emu_wave *w, const emu_instruction *i, block_pair *r) {
  if (mode_flushes_output(w, MODE_F16_F64))
    LANES set_pair(r, lane, flush_f64((uint64_t)r->hi.lane[lane] << 32 | r->lo.lane[lane]));
  emu_result64(w, i, EMU_F64, r->lo.lane, r->hi.lane);
}

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

EMU_INLINE int exponent_field_f64(uint32_t high) { return (int)(high >> 20 & 0x7ff); }
/* Of a reciprocal or quotient of finite numbers: one that the host rounds to 0 is below the normal range, too. */
EMU_INLINE bool is_denormal_f64(double value) { return fabs(value) < 0x1p-1022; }

static void v_div_scale_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_f64(w, i, 0, &x), q = source_f64(w, i, 1, &y), s = source_f64(w, i, 2, &z);
  uint8_t flag[EMU_LANES];
  LANES {
    double value = double_at(p, lane), denominator = double_at(q, lane), numerator = double_at(s, lane);
    int gap = exponent_field_f64(s.hi[lane]) - exponent_field_f64(q.hi[lane]);
    double reciprocal = 1.0 / denominator, quotient = numerator / denominator, result = value;
    bool is_denominator = pair_at(p, lane) == pair_at(q, lane), is_numerator = pair_at(p, lane) == pair_at(s, lane);
    bool scale_back = false;
    if (numerator == 0 || denominator == 0) {
      result = NAN;
    } else if (isinf(denominator)) {
      /* v_div_fixup gives the result; nothing to scale */
    } else if (gap >= 768) {
      scale_back = true;
      if (is_denominator) result = ldexp(value, 128);
    } else if (is_denormal_f64(denominator)) {
      result = ldexp(value, 128);
    } else if (is_denormal_f64(reciprocal) && is_denormal_f64(quotient)) {
      scale_back = true;
      if (is_denominator) result = ldexp(value, -128);
    } else if (is_denormal_f64(reciprocal)) {
      result = ldexp(value, -128);
    } else if (is_denormal_f64(quotient)) {
      scale_back = true;
      if (is_numerator) result = ldexp(value, 128);
    } else if (exponent_field_f64(s.hi[lane]) <= 53) {
      result = ldexp(value, 128);
    }
    set_double(&r, lane, result);
    flag[lane] = scale_back;
  }
  emu_result_mask(w, i, 1, pack_mask(flag));
  result_f64(w, i, &r);
}

/* sum * 2^-128, where sum is a * b + c rounded to nearest: one rounding in effect. A tie that the first rounding made, or hid, goes to
 * the side on which the exact sum lies. */
static double scaled_down(double a, double b, double c, double sum) {
  double product = a * b, product_error = fma(a, b, -product), total = product + c;
  double from_c = total - product, total_error = (product - (total - from_c)) + (c - from_c);
  double beyond = (total - sum) + (total_error + product_error); /* exact sum minus `sum`; its sign is what counts */
  double down = ldexp(sum, -128), lost = sum - ldexp(down, 128);
  if (fabs(lost) != 0x1p-947) return down; /* not half of the smallest denormal, 2^-1075 * 2^128 */
  if (lost > 0 && beyond > 0) return nextafter(down, INFINITY);
  if (lost < 0 && beyond < 0) return nextafter(down, -INFINITY);
  return down;
}

static void v_div_fmas_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_f64(w, i, 0, &x), q = source_f64(w, i, 1, &y), s = source_f64(w, i, 2, &z);
  uint64_t vcc = emu_pair(w, EMU_S_VCC);
  rounding_begin(w, MODE_F16_F64);
  LANES {
    double a = double_at(p, lane), b = double_at(q, lane), c = double_at(s, lane), sum = fma(a, b, c);
    if (vcc >> lane & 1) sum = exponent_field_f64(s.hi[lane]) > 1023 ? ldexp(sum, 128) : scaled_down(a, b, c, sum);
    set_double(&r, lane, sum);
  }
  rounding_end(w, MODE_F16_F64);
  result_f64(w, i, &r);
}

static void v_div_fixup_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_f64(w, i, 0, &x), q = source_f64(w, i, 1, &y), s = source_f64(w, i, 2, &z);
  const uint64_t sign_bit = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52, quiet = UINT64_C(1) << 51;
  LANES {
    uint64_t d = pair_at(q, lane), n = pair_at(s, lane), sign = (d ^ n) & sign_bit, bits;
    double denominator = fabs(emu_f64(d)), numerator = fabs(emu_f64(n));
    if (isnan(numerator)) bits = n | quiet;
    else if (isnan(denominator)) bits = d | quiet;
    else if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator))) bits = sign_bit | infinity | quiet;
    else if (denominator == 0 || isinf(numerator)) bits = sign | infinity;
    else if (isinf(denominator) || numerator == 0) bits = sign;
    else if (exponent_field_f64(s.hi[lane]) - exponent_field_f64(q.hi[lane]) < -1075) bits = sign;
    else if (isnan(double_at(p, lane))) bits = sign | infinity;
    else bits = sign | (pair_at(p, lane) & ~sign_bit);
    set_pair(&r, lane, bits);
  }
  result_f64(w, i, &r);
}

#define TRANSCENDENTAL(name, handler) {#name, handler, 1, EMU_TRANSCENDENTAL}

const emu_row emu_vector_float_rows[] = {
    ROW(v_add_f32),
    ROW(v_sub_f32),
    ROW(v_subrev_f32),
    ROW(v_mul_f32),
    ROW(v_mul_legacy_f32),
    ROW_AS(v_mul_dx9_zero_f32, v_mul_legacy_f32),
    ROW(v_min_f32),
    ROW(v_max_f32),
    ROW_AS(v_min_num_f32, v_min_f32),
    ROW_AS(v_max_num_f32, v_max_f32),
    ROW(v_minimum_f32),
    ROW(v_maximum_f32),
    ROW(v_min3_f32),
    ROW(v_max3_f32),
    ROW_AS(v_min3_num_f32, v_min3_f32),
    ROW_AS(v_max3_num_f32, v_max3_f32),
    ROW(v_minimum3_f32),
    ROW(v_maximum3_f32),
    ROW_AS(v_minmax_num_f32, v_minmax_f32),
    ROW_AS(v_maxmin_num_f32, v_maxmin_f32),
    ROW(v_minimummaximum_f32),
    ROW(v_maximumminimum_f32),
    ROW(v_med3_f32),
    ROW_AS(v_med3_num_f32, v_med3_f32),
    ROW(v_floor_f32),
    ROW(v_ceil_f32),
    ROW(v_trunc_f32),
    ROW(v_rndne_f32),
    ROW(v_fract_f32),
    ROW(v_fma_f32),
    ROW_AS(v_fmaak_f32, v_fma_f32),
    ROW_AS(v_fmamk_f32, v_fma_f32),
    ROW(v_fmac_f32),
    ROW(v_fma_dx9_zero_f32),
    ROW(v_ldexp_f32),
    ROW(v_frexp_mant_f32),
    ROW(v_frexp_exp_i32_f32),
    TRANSCENDENTAL(v_exp_f32, v_exp_f32),
    TRANSCENDENTAL(v_exp_legacy_f32, v_exp_f32),
    TRANSCENDENTAL(v_log_f32, v_log_f32),
    TRANSCENDENTAL(v_log_legacy_f32, v_log_f32),
    TRANSCENDENTAL(v_rcp_f32, v_rcp_f32),
    TRANSCENDENTAL(v_rcp_iflag_f32, v_rcp_f32),
    TRANSCENDENTAL(v_rsq_f32, v_rsq_f32),
    TRANSCENDENTAL(v_sqrt_f32, v_sqrt_f32),
    TRANSCENDENTAL(v_sin_f32, v_sin_f32),
    TRANSCENDENTAL(v_cos_f32, v_cos_f32),
    TRANSCENDENTAL(v_tanh_f32, v_tanh_f32),
    TRANSCENDENTAL(v_s_exp_f32, v_exp_f32), /* scalar operands, vector unit */
    TRANSCENDENTAL(v_s_log_f32, v_log_f32),
    TRANSCENDENTAL(v_s_rcp_f32, v_rcp_f32),
    TRANSCENDENTAL(v_s_rsq_f32, v_rsq_f32),
    TRANSCENDENTAL(v_s_sqrt_f32, v_sqrt_f32),
    {"v_div_scale_f32", v_div_scale_f32, 2, 0},
    ROW(v_div_fmas_f32),
    ROW(v_div_fixup_f32),
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
    {"v_div_scale_f64", v_div_scale_f64, 2, 0},
    ROW(v_div_fmas_f64),
    ROW(v_div_fixup_f64),
    END_OF_ROWS,
};
