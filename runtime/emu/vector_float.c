/* Float arithmetic of f32, and its transcendentals.
 *
 * Accuracy: add, mul, fma, rcp and sqrt are correctly rounded. v_exp_f32 and v_log_f32
 * come from the host's base-2 functions (error below 0.56 ulp), v_sin_f32, v_cos_f32, v_rsq_f32 are rounded
 * from f64. The hardware promises 1 ulp for these, so its last bit may differ. As on the hardware, the f32
 * exp, log, rcp, rsq and sqrt neither take nor give denormals (compilers scale around that). */
#include "vector.h"

/* ---- f32 ---- */

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
EMU_INLINE float multiply_legacy(float a, float b) {
  return a == 0 || b == 0 ? 0.0f : a * b;
}

EMU_INLINE float fraction_f32(float a) {
  float below = floorf(a), f = a - below;
  return f >= 1.0f ? 0x1.fffffep-1f : f;
}

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

/* Cube maps: which of three coordinates is largest, z before y before x, picks a face, the two others
 * (signed) its coordinates. */
typedef struct cube {
  float face, s, t, major;
} cube;
EMU_INLINE cube cube_of(float x, float y, float z) {
  float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
  cube on_x = {x < 0 ? 1.0f : 0.0f, x < 0 ? z : -z, -y, 2 * x};
  cube on_y = {y < 0 ? 3.0f : 2.0f, x, y < 0 ? -z : z, 2 * y};
  cube on_z = {z < 0 ? 5.0f : 4.0f, z < 0 ? -x : x, -y, 2 * z};
  return az >= ax && az >= ay ? on_z : ay >= ax ? on_y : on_x;
}
F32_3(v_cubeid_f32, cube_of(a, b, c).face)
F32_3(v_cubesc_f32, cube_of(a, b, c).s)
F32_3(v_cubetc_f32, cube_of(a, b, c).t)
F32_3(v_cubema_f32, cube_of(a, b, c).major)
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

static void fma_rounded(emu_wave *w, const emu_instruction *i, const uint32_t *p, const uint32_t *q,
                        const uint32_t *s) {
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

/* ---- transcendental f32 ---- */

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
    ROW(v_cubeid_f32),
    ROW(v_cubesc_f32),
    ROW(v_cubetc_f32),
    ROW(v_cubema_f32),
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
    /* scalar operands, vector unit */
    TRANSCENDENTAL(v_s_exp_f32, v_exp_f32),
    TRANSCENDENTAL(v_s_log_f32, v_log_f32),
    TRANSCENDENTAL(v_s_rcp_f32, v_rcp_f32),
    TRANSCENDENTAL(v_s_rsq_f32, v_rsq_f32),
    TRANSCENDENTAL(v_s_sqrt_f32, v_sqrt_f32),
    END_OF_ROWS,
};
