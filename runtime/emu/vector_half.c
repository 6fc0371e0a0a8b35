/* f16 and bf16 arithmetic, one value a lane, and the mixed-precision multiply-adds.
 *
 * Products are exact in f32. Sums and multiply-adds go through f64 and are rounded to odd on the way, so that
 * the one rounding that counts is that to the half. Quotients and roots go through f32, whose bits suffice
 * for nearest even. Transcendentals are rounded once from f32 (f64 for sine and cosine); unlike the f32 forms
 * they take and give denormals. */
#include "vector.h"

static const uint32_t *source_half(emu_wave *w, const emu_instruction *i, int k, emu_type type,
                                   emu_block *block) {
  const uint32_t *p = emu_source(w, i, k, type, block).lo;
  bool flush = type == EMU_F16 && mode_flushes_input(w, MODE_F16_F64);
  if (flush) {
    LANES block->lane[lane] = flush_f16(p[lane] & 0xffff);
    return block->lane;
  }
  return p;
}

EMU_INLINE float half_value(emu_type type, uint32_t bits) {
  return type == EMU_F16 ? emu_f32_from_f16(bits & 0xffff) : emu_f32_from_bf16(bits & 0xffff);
}

/* f32 bits in each lane → the type, by MODE's rounding and overflow rule, and out. */
static void result_half(emu_wave *w, const emu_instruction *i, emu_type type, emu_block *r) {
  int round = mode_round(w, type == EMU_F16 ? MODE_F16_F64 : MODE_F32);
  bool saturate = mode_fp16_overflow(w) && type == EMU_F16;
  if (round || saturate) {
    emu_format_id format = type == EMU_F16 ? EMU_FORMAT_F16 : EMU_FORMAT_BF16;
    LANES r->lane[lane] = emu_encode(format, (double)emu_float(r->lane[lane]), (emu_round)round, saturate);
  } else if (type == EMU_F16) {
    LANES r->lane[lane] = emu_f16_from_f32(emu_float(r->lane[lane]));
  } else {
    LANES r->lane[lane] = emu_bf16_from_f32(emu_float(r->lane[lane]));
  }
  if (type == EMU_F16 && mode_flushes_output(w, MODE_F16_F64)) LANES r->lane[lane] = flush_f16(r->lane[lane]);
  emu_result(w, i, type, r->lane);
}

#define HALF(name, type, sources, expression)                                                                \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_half(w, i, 0, type, &x), *q = p, *s = p;                                      \
    if (sources > 1) q = source_half(w, i, 1, type, &y);                                                     \
    if (sources > 2) s = source_half(w, i, 2, type, &z);                                                     \
    LANES {                                                                                                  \
      float a = half_value(type, p[lane]), b = half_value(type, q[lane]), c = half_value(type, s[lane]);     \
      (void)b, (void)c;                                                                                      \
      r.lane[lane] = emu_bits(expression);                                                                   \
    }                                                                                                        \
    result_half(w, i, type, &r);                                                                             \
  }

EMU_INLINE float fma_half(float a, float b, float c) {
  return to_odd_f32(fma_to_odd((double)a, (double)b, (double)c));
}
/* v_mad_f16 rounds the product, too. */
EMU_INLINE float mad_half(float a, float b, float c) {
  float product = emu_f32_from_f16(emu_f16_from_f32(a * b));
  return add_f16(product, c);
}
EMU_INLINE float fraction(float a) {
  float f = a - floorf(a);
  return f >= 0x1.ffcp-1f ? 0x1.ffcp-1f : f; /* the largest f16 below 1 */
}
EMU_INLINE float in_turns(double (*function)(double), float a) {
  if (!isfinite(a)) return NAN;
  double turns = fabsf(a) <= 256.0f ? (double)a : 0.0;
  return (float)function((turns - floor(turns)) * 6.283185307179586476925);
}
/* Between the infinities of 2^x that neither format holds exp2f is exact enough to round once. */
EMU_INLINE float round_from_f64(double a) {
  return to_odd_f32(a);
}

HALF(v_add_f16, EMU_F16, 2, add_f16(a, b))
HALF(v_sub_f16, EMU_F16, 2, add_f16(a, -b))
HALF(v_subrev_f16, EMU_F16, 2, add_f16(b, -a))
HALF(v_mul_f16, EMU_F16, 2, a *b)
HALF(v_min_f16, EMU_F16, 2, min_number(a, b))
HALF(v_max_f16, EMU_F16, 2, max_number(a, b))
HALF(v_minimum_f16, EMU_F16, 2, minimum(a, b))
HALF(v_maximum_f16, EMU_F16, 2, maximum(a, b))
HALF(v_min3_f16, EMU_F16, 3, min_number(min_number(a, b), c))
HALF(v_max3_f16, EMU_F16, 3, max_number(max_number(a, b), c))
HALF(v_med3_f16, EMU_F16, 3, median(a, b, c))
HALF(v_minimum3_f16, EMU_F16, 3, minimum(minimum(a, b), c))
HALF(v_maximum3_f16, EMU_F16, 3, maximum(maximum(a, b), c))
HALF(v_minmax_f16, EMU_F16, 3, max_number(min_number(a, b), c))
HALF(v_maxmin_f16, EMU_F16, 3, min_number(max_number(a, b), c))
HALF(v_minimummaximum_f16, EMU_F16, 3, maximum(minimum(a, b), c))
HALF(v_maximumminimum_f16, EMU_F16, 3, minimum(maximum(a, b), c))
HALF(v_fma_f16, EMU_F16, 3, fma_half(a, b, c))
HALF(v_mad_f16, EMU_F16, 3, mad_half(a, b, c))
HALF(v_floor_f16, EMU_F16, 1, floorf(a))
HALF(v_ceil_f16, EMU_F16, 1, ceilf(a))
HALF(v_trunc_f16, EMU_F16, 1, truncf(a))
HALF(v_rndne_f16, EMU_F16, 1, rintf(a))
HALF(v_fract_f16, EMU_F16, 1, fraction(a))
HALF(v_exp_f16, EMU_F16, 1, round_from_f64(exp2((double)a)))
HALF(v_log_f16, EMU_F16, 1, round_from_f64(log2((double)a)))
HALF(v_rcp_f16, EMU_F16, 1, 1.0f / a)
HALF(v_rsq_f16, EMU_F16, 1, round_from_f64(1.0 / sqrt((double)a)))
HALF(v_sqrt_f16, EMU_F16, 1, sqrtf(a))
HALF(v_sin_f16, EMU_F16, 1, in_turns(sin, a))
HALF(v_cos_f16, EMU_F16, 1, in_turns(cos, a))
HALF(v_tanh_f16, EMU_F16, 1, round_from_f64(tanh((double)a)))
HALF(v_exp_bf16, EMU_BF16, 1, round_from_f64(exp2((double)a)))
HALF(v_log_bf16, EMU_BF16, 1, round_from_f64(log2((double)a)))
HALF(v_rcp_bf16, EMU_BF16, 1, 1.0f / a)
HALF(v_rsq_bf16, EMU_BF16, 1, round_from_f64(1.0 / sqrt((double)a)))
HALF(v_sqrt_bf16, EMU_BF16, 1, sqrtf(a))
HALF(v_sin_bf16, EMU_BF16, 1, in_turns(sin, a))
HALF(v_cos_bf16, EMU_BF16, 1, in_turns(cos, a))
HALF(v_tanh_bf16, EMU_BF16, 1, round_from_f64(tanh((double)a)))

static void accumulate_f16(emu_wave *w, const emu_instruction *i, bool fused) {
  emu_block x, y, z, r;
  const uint32_t *p = source_half(w, i, 0, EMU_F16, &x), *q = source_half(w, i, 1, EMU_F16, &y);
  const uint32_t *s = emu_previous(w, i, EMU_F16, &z).lo;
  LANES {
    float a = half_value(EMU_F16, p[lane]), b = half_value(EMU_F16, q[lane]),
          c = half_value(EMU_F16, s[lane]);
    r.lane[lane] = emu_bits(fused ? fma_half(a, b, c) : mad_half(a, b, c));
  }
  result_half(w, i, EMU_F16, &r);
}
static void v_fmac_f16(emu_wave *w, const emu_instruction *i) {
  accumulate_f16(w, i, true);
}
static void v_mac_f16(emu_wave *w, const emu_instruction *i) {
  accumulate_f16(w, i, false);
}

static void v_ldexp_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  const uint32_t *p = source_half(w, i, 0, EMU_F16, &x), *q = source_b16(w, i, 1, &y);
  LANES {
    int exponent = (int16_t)(uint16_t)q[lane];
    exponent = exponent > 64 ? 64 : exponent < -64 ? -64 : exponent;
    r.lane[lane] = emu_bits(half_value(EMU_F16, p[lane]) * emu_f32((uint32_t)(127 + exponent) << 23));
  }
  result_half(w, i, EMU_F16, &r);
}

static void v_frexp_mant_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_half(w, i, 0, EMU_F16, &x);
  LANES {
    int unused;
    float a = half_value(EMU_F16, p[lane]);
    r.lane[lane] = emu_bits(isfinite(a) ? frexpf(a, &unused) : a);
  }
  result_half(w, i, EMU_F16, &r);
}
static void v_frexp_exp_i16_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_half(w, i, 0, EMU_F16, &x);
  LANES {
    int exponent = 0;
    float a = half_value(EMU_F16, p[lane]);
    if (isfinite(a)) frexpf(a, &exponent);
    r.lane[lane] = (uint32_t)exponent & 0xffff;
  }
  emu_result(w, i, EMU_B16, r.lane);
}

static void v_div_fixup_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_half(w, i, 0, EMU_F16, &x), *q = source_half(w, i, 1, EMU_F16, &y);
  const uint32_t *s = source_half(w, i, 2, EMU_F16, &z);
  LANES {
    uint32_t sign = (q[lane] ^ s[lane]) & 0x8000, d = q[lane] & 0x7fff, n = s[lane] & 0x7fff, bits;
    if (n > 0x7c00)
      bits = (s[lane] & 0xffff) | 0x200;
    else if (d > 0x7c00)
      bits = (q[lane] & 0xffff) | 0x200;
    else if ((n == 0 && d == 0) || (n == 0x7c00 && d == 0x7c00))
      bits = 0xfe00;
    else if (d == 0 || n == 0x7c00)
      bits = sign | 0x7c00;
    else if (d == 0x7c00 || n == 0)
      bits = sign;
    else if ((p[lane] & 0x7fff) > 0x7c00)
      bits = sign | 0x7c00; /* see v_div_fixup_f32 */
    else
      bits = sign | (p[lane] & 0x7fff);
    r.lane[lane] = bits;
  }
  emu_result(w, i, EMU_F16, r.lane);
}

/* ---- mixed precision ----
 * Each source is an f32, or, where its op_sel_hi bit is set, the f16 (bf16) in the half that op_sel picks.
 * neg_lo negates and neg_hi takes the magnitude; the text may carry the same as -v0 and |v0|. */
static void mixed_source(emu_wave *w, const emu_instruction *i, int k, bool bf16, emu_block *out) {
  const emu_operand *o = &i->operand[i->source0 + k];
  bool is_half = i->op_sel_hi >> k & 1, high = i->op_sel >> k & 1;
  bool negate = o->negate || (i->neg_lo >> k & 1), absolute = o->absolute || (i->neg_hi >> k & 1);
  emu_block x;
  const uint32_t *p;
  if (o->kind != EMU_VECTOR && o->kind != EMU_SCALAR) {
    uint32_t constant = (uint32_t)emu_constant(o, !is_half ? EMU_F32 : bf16 ? EMU_BF16 : EMU_F16);
    LANES x.lane[lane] = constant;
    p = x.lane;
  } else {
    p = source_b32(w, i, k, &x);
  }
  LANES {
    uint32_t half = (high ? p[lane] >> 16 : p[lane]) & 0xffff;
    uint32_t bits = !is_half ? p[lane] : bf16 ? half << 16 : emu_bits(emu_f32_from_f16(half));
    if (absolute) bits &= 0x7fffffffu;
    if (negate) bits ^= 0x80000000u;
    out->lane[lane] = bits;
  }
  if (mode_flushes_input(w, MODE_F32)) LANES out->lane[lane] = flush_f32(out->lane[lane]);
}

typedef enum mix_result { MIX_F32, MIX_LOW, MIX_HIGH } mix_result;

static void mixed_fma(emu_wave *w, const emu_instruction *i, bool bf16, mix_result into) {
  emu_block x, y, z, old_block, r;
  mixed_source(w, i, 0, bf16, &x);
  mixed_source(w, i, 1, bf16, &y);
  mixed_source(w, i, 2, bf16, &z);
  double sum[EMU_LANES];
  LANES sum[lane] = fma_to_odd((double)emu_float(x.lane[lane]), (double)emu_float(y.lane[lane]),
                               (double)emu_float(z.lane[lane]));
  if (into == MIX_F32) {
    rounding_begin(w, MODE_F32);
    LANES r.lane[lane] = emu_bits((float)sum[lane]);
    rounding_end(w, MODE_F32);
    result_f32(w, i, &r);
    return;
  }
  /* The result is rounded once, to the half. */
  emu_format_id format = bf16 ? EMU_FORMAT_BF16 : EMU_FORMAT_F16;
  emu_round round = (emu_round)mode_round(w, bf16 ? MODE_F32 : MODE_F16_F64);
  bool saturate = mode_fp16_overflow(w) && !bf16;
  const uint32_t *old = emu_previous(w, i, EMU_B32, &old_block).lo;
  LANES {
    double value = sum[lane];
    if (i->clamp) value = !(value > 0) ? 0 : value > 1 ? 1 : value;
    uint32_t code = emu_encode(format, value, round, saturate);
    r.lane[lane] = into == MIX_LOW ? (old[lane] & 0xffff0000u) | code : (old[lane] & 0xffff) | code << 16;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_fma_mix_f32(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, false, MIX_F32);
}
static void v_fma_mixlo_f16(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, false, MIX_LOW);
}
static void v_fma_mixhi_f16(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, false, MIX_HIGH);
}
static void v_fma_mix_f32_bf16(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, true, MIX_F32);
}
static void v_fma_mixlo_bf16(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, true, MIX_LOW);
}
static void v_fma_mixhi_bf16(emu_wave *w, const emu_instruction *i) {
  mixed_fma(w, i, true, MIX_HIGH);
}

const emu_row emu_vector_half_rows[] = {
    ROW(v_add_f16),
    ROW(v_sub_f16),
    ROW(v_subrev_f16),
    ROW(v_mul_f16),
    ROW(v_min_f16),
    ROW(v_max_f16),
    ROW_AS(v_min_num_f16, v_min_f16),
    ROW_AS(v_max_num_f16, v_max_f16),
    ROW(v_minimum_f16),
    ROW(v_maximum_f16),
    KEEPS(v_min3_f16),
    KEEPS(v_max3_f16),
    KEEPS(v_med3_f16),
    ROW_AS(v_min3_num_f16, v_min3_f16),
    ROW_AS(v_max3_num_f16, v_max3_f16),
    ROW_AS(v_med3_num_f16, v_med3_f16),
    ROW(v_minimum3_f16),
    ROW(v_maximum3_f16),
    ROW_AS(v_minmax_num_f16, v_minmax_f16),
    ROW_AS(v_maxmin_num_f16, v_maxmin_f16),
    ROW(v_minimummaximum_f16),
    ROW(v_maximumminimum_f16),
    KEEPS(v_fma_f16),
    ROW_AS(v_fma_legacy_f16, v_fma_f16),
    ROW_AS(v_fmaak_f16, v_fma_f16),
    ROW_AS(v_fmamk_f16, v_fma_f16),
    KEEPS(v_mad_f16),
    ROW_AS(v_mad_legacy_f16, v_mad_f16),
    ROW_AS(v_madak_f16, v_mad_f16),
    ROW_AS(v_madmk_f16, v_mad_f16),
    ROW(v_fmac_f16),
    ROW(v_mac_f16),
    ROW(v_floor_f16),
    ROW(v_ceil_f16),
    ROW(v_trunc_f16),
    ROW(v_rndne_f16),
    ROW(v_fract_f16),
    TRANSCENDENTAL(v_exp_f16, v_exp_f16),
    TRANSCENDENTAL(v_log_f16, v_log_f16),
    TRANSCENDENTAL(v_rcp_f16, v_rcp_f16),
    TRANSCENDENTAL(v_rsq_f16, v_rsq_f16),
    TRANSCENDENTAL(v_sqrt_f16, v_sqrt_f16),
    TRANSCENDENTAL(v_sin_f16, v_sin_f16),
    TRANSCENDENTAL(v_cos_f16, v_cos_f16),
    TRANSCENDENTAL(v_tanh_f16, v_tanh_f16),
    TRANSCENDENTAL(v_s_exp_f16, v_exp_f16),
    TRANSCENDENTAL(v_s_log_f16, v_log_f16),
    TRANSCENDENTAL(v_s_rcp_f16, v_rcp_f16),
    TRANSCENDENTAL(v_s_rsq_f16, v_rsq_f16),
    TRANSCENDENTAL(v_s_sqrt_f16, v_sqrt_f16),
    TRANSCENDENTAL(v_exp_bf16, v_exp_bf16),
    TRANSCENDENTAL(v_log_bf16, v_log_bf16),
    TRANSCENDENTAL(v_rcp_bf16, v_rcp_bf16),
    TRANSCENDENTAL(v_rsq_bf16, v_rsq_bf16),
    TRANSCENDENTAL(v_sqrt_bf16, v_sqrt_bf16),
    TRANSCENDENTAL(v_sin_bf16, v_sin_bf16),
    TRANSCENDENTAL(v_cos_bf16, v_cos_bf16),
    TRANSCENDENTAL(v_tanh_bf16, v_tanh_bf16),
    ROW(v_ldexp_f16),
    ROW(v_frexp_mant_f16),
    ROW(v_frexp_exp_i16_f16),
    KEEPS(v_div_fixup_f16),
    ROW_AS(v_div_fixup_legacy_f16, v_div_fixup_f16),
    ROW(v_fma_mix_f32),
    ROW(v_fma_mixlo_f16),
    ROW(v_fma_mixhi_f16),
    ROW(v_fma_mix_f32_bf16),
    ROW(v_fma_mixlo_bf16),
    ROW(v_fma_mixhi_bf16),
    END_OF_ROWS,
};
