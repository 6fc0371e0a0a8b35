/* The division helpers of f32 and f64.
 *
 * x / y is computed as: scale both so that no step leaves the range (v_div_scale, which also tells in a mask
 * whether the quotient must be scaled back), reciprocal and multiply-adds, a last multiply-add that scales
 * back (v_div_fmas), and the special cases (v_div_fixup). Where the documents' pseudo-code cannot give the
 * quotient that C asks for, what is here can: a huge denominator of a tiny quotient is scaled down, not up
 * (up would make it infinite), v_div_fmas rounds once, after scaling back, and v_div_fixup takes a quotient
 * that was lost on the way for an overflow. */
#include "vector.h"

/* ---- f32 ---- */

EMU_INLINE int exponent_field(uint32_t bits) {
  return (int)(bits >> 23 & 0xff);
}
EMU_INLINE bool is_denormal_f32(double value) {
  return fabs(value) < 0x1p-126 && value != 0;
}

static void v_div_scale_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  uint8_t flag[EMU_LANES];
  LANES {
    float value = emu_float(p[lane]), denominator = emu_float(q[lane]), numerator = emu_float(s[lane]);
    int top = exponent_field(s[lane]), bottom = exponent_field(q[lane]), gap = top - bottom;
    /* Nearly every division: normal operands whose reciprocal and quotient are normal too. */
    if (bottom >= 1 && bottom <= 252 && top > 23 && top < 255 && gap < 96 && gap > -125) {
      r.lane[lane] = p[lane];
      flag[lane] = 0;
      continue;
    }
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
    } else if (top <= 23) { /* a tiny numerator */
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
    double exact =
        fma_to_odd((double)emu_float(p[lane]), (double)emu_float(q[lane]), (double)emu_float(s[lane]));
    /* A quotient estimate above 1 belongs to a huge quotient that was scaled down, below 1 to a tiny one. */
    double back = exponent_field(s[lane]) > 127 ? 0x1p+64 : 0x1p-64;
    sum[lane] = vcc >> lane & 1 ? exact * back : exact;
  }
  rounding_begin(w, MODE_F32);
  LANES r.lane[lane] = emu_bits((float)sum[lane]);
  rounding_end(w, MODE_F32);
  result_f32(w, i, &r);
}

/* A quotient that is NaN although both operands are finite and not zero was beyond the range half way: the
 * scaled quotient of 1e38 and 1e-44 is infinite, and its residual NaN. */
static void v_div_fixup_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  LANES {
    uint32_t sign = (q[lane] ^ s[lane]) & 0x80000000u;
    float denominator = emu_float(q[lane] & 0x7fffffffu), numerator = emu_float(s[lane] & 0x7fffffffu);
    uint32_t bits;
    if (isnan(numerator))
      bits = s[lane] | 0x400000u;
    else if (isnan(denominator))
      bits = q[lane] | 0x400000u;
    else if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator)))
      bits = 0xffc00000u;
    else if (denominator == 0 || isinf(numerator))
      bits = sign | 0x7f800000u;
    else if (isinf(denominator) || numerator == 0)
      bits = sign;
    else if (exponent_field(s[lane]) - exponent_field(q[lane]) < -150)
      bits = sign;
    else if (isnan(emu_float(p[lane])))
      bits = sign | 0x7f800000u;
    else
      bits = sign | (p[lane] & 0x7fffffffu);
    r.lane[lane] = bits;
  }
  result_f32(w, i, &r);
}

/* ---- f64 ---- */

EMU_INLINE int exponent_field_f64(uint32_t high) {
  return (int)(high >> 20 & 0x7ff);
}
/* Of a reciprocal or quotient of finite numbers: one that the host rounds to 0 is below the normal range,
 * too. */
EMU_INLINE bool is_denormal_f64(double value) {
  return fabs(value) < 0x1p-1022;
}

static void v_div_scale_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_f64(w, i, 0, &x), q = source_f64(w, i, 1, &y), s = source_f64(w, i, 2, &z);
  uint8_t flag[EMU_LANES];
  LANES {
    double value = double_at(p, lane), denominator = double_at(q, lane), numerator = double_at(s, lane);
    int gap = exponent_field_f64(s.hi[lane]) - exponent_field_f64(q.hi[lane]);
    double reciprocal = 1.0 / denominator, quotient = numerator / denominator, result = value;
    bool is_denominator = pair_at(p, lane) == pair_at(q, lane),
         is_numerator = pair_at(p, lane) == pair_at(s, lane);
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

/* sum * 2^-128, where sum is a * b + c rounded to nearest: one rounding in effect. A tie that the first
 * rounding made, or hid, goes to the side on which the exact sum lies. */
static double scaled_down(double a, double b, double c, double sum) {
  double product = a * b, product_error = fma(a, b, -product), total = product + c;
  double from_c = total - product, total_error = (product - (total - from_c)) + (c - from_c);
  double beyond =
      (total - sum) + (total_error + product_error); /* exact sum minus `sum`; its sign is what counts */
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
    if (vcc >> lane & 1)
      sum = exponent_field_f64(s.hi[lane]) > 1023 ? ldexp(sum, 128) : scaled_down(a, b, c, sum);
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
    if (isnan(numerator))
      bits = n | quiet;
    else if (isnan(denominator))
      bits = d | quiet;
    else if ((numerator == 0 && denominator == 0) || (isinf(numerator) && isinf(denominator)))
      bits = sign_bit | infinity | quiet;
    else if (denominator == 0 || isinf(numerator))
      bits = sign | infinity;
    else if (isinf(denominator) || numerator == 0)
      bits = sign;
    else if (exponent_field_f64(s.hi[lane]) - exponent_field_f64(q.hi[lane]) < -1075)
      bits = sign;
    else if (isnan(double_at(p, lane)))
      bits = sign | infinity;
    else
      bits = sign | (pair_at(p, lane) & ~sign_bit);
    set_pair(&r, lane, bits);
  }
  result_f64(w, i, &r);
}

const emu_row emu_vector_divide_rows[] = {
    {"v_div_scale_f32", v_div_scale_f32, 2, 0},
    ROW(v_div_fmas_f32),
    ROW(v_div_fixup_f32),
    {"v_div_scale_f64", v_div_scale_f64, 2, 0},
    ROW(v_div_fmas_f64),
    ROW(v_div_fixup_f64),
    END_OF_ROWS,
};
