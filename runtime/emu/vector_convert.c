/* Conversions between integers, f16, bf16, f32, f64 and the 8-bit floats. Block-scaled conversions: vector_scale.c.
 *
 * Float to integer truncates, saturates, and takes NaN to 0. Float to a narrower float rounds as MODE says (8-bit floats:
 * to nearest even) and overflows as MODE.FP16_OVFL says. The 8-bit dialect is the target's: FNUZ on gfx942, OCP elsewhere. */
#include "vector.h"

EMU_INLINE uint32_t f32_to_i32(float a) {
  float inside = a != a ? 0.0f : a < -0x1p+31f ? -0x1p+31f : a >= 0x1p+31f ? 0.0f : a;
  return a >= 0x1p+31f ? 0x7fffffffu : (uint32_t)(int32_t)inside;
}
EMU_INLINE uint32_t f32_to_u32(float a) {
  float inside = !(a > 0) ? 0.0f : a >= 0x1p+32f ? 0.0f : a;
  return a >= 0x1p+32f ? UINT32_MAX : (uint32_t)(int64_t)inside;
}
EMU_INLINE uint32_t f64_to_i32(double a) {
  if (isnan(a)) return 0;
  return a <= -0x1p+31 ? 0x80000000u : a >= 0x1p+31 - 1 ? 0x7fffffffu : (uint32_t)(int32_t)a;
}
EMU_INLINE uint32_t f64_to_u32(double a) { return !(a > 0) ? 0 : a >= 0x1p+32 - 1 ? UINT32_MAX : (uint32_t)a; }
EMU_INLINE uint32_t f32_to_i16(float a) {
  float inside = a != a ? 0.0f : a < -32768.0f ? -32768.0f : a > 32767.0f ? 32767.0f : a;
  return (uint32_t)(int32_t)inside & 0xffff;
}
EMU_INLINE uint32_t f32_to_u16(float a) {
  float inside = !(a > 0) ? 0.0f : a > 65535.0f ? 65535.0f : a;
  return (uint32_t)(int32_t)inside;
}

static bool nearest_f16(const emu_wave *w) { return !mode_round(w, MODE_F16_F64) && !mode_fp16_overflow(w); }

/* f32 in each lane → f16 as MODE says. */
static void round_to_f16(const emu_wave *w, const uint32_t *p, uint32_t *r) {
  emu_round round = (emu_round)mode_round(w, MODE_F16_F64);
  if (nearest_f16(w))
    LANES r[lane] = emu_f16_from_f32(emu_float(p[lane]));
  else
    LANES r[lane] = emu_encode(EMU_FORMAT_F16, (double)emu_float(p[lane]), round, mode_fp16_overflow(w));
  if (mode_flushes_output(w, MODE_F16_F64)) LANES r[lane] = flush_f16(r[lane]);
}

/* ---- one source, 32-bit result -------------------------------------------------------------------------------- */

#define FROM_F32(name, expression)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_f32(w, i, 0, &x);                                                             \
    LANES {                                                                                                  \
      float a = emu_float(p[lane]);                                                                          \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

FROM_F32(v_cvt_i32_f32, f32_to_i32(a))
FROM_F32(v_cvt_u32_f32, f32_to_u32(a))
FROM_F32(v_cvt_floor_i32_f32, f32_to_i32(floorf(a)))
/* The nearest integer, ties upwards. */
FROM_F32(v_cvt_nearest_i32_f32, f32_to_i32(floorf(a) + (a - floorf(a) >= 0.5f ? 1.0f : 0.0f)))

#define TO_F32(name, expression)                                                                             \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_b32(w, i, 0, &x);                                                             \
    rounding_begin(w, MODE_F32);                                                                             \
    LANES {                                                                                                  \
      uint32_t a = p[lane];                                                                                  \
      r.lane[lane] = emu_bits(expression);                                                                   \
    }                                                                                                        \
    rounding_end(w, MODE_F32);                                                                               \
    emu_result(w, i, EMU_F32, r.lane);                                                                       \
  }

TO_F32(v_cvt_f32_i32, (float)(int32_t)a)
/* Two exact halves and one rounding: vector units convert signed words only. */
TO_F32(v_cvt_f32_u32, (float)((double)(int32_t)(a >> 16) * 0x1p+16 + (double)(int32_t)(a & 0xffff)))
TO_F32(v_cvt_f32_ubyte0, (float)(int32_t)(a & 0xff))
TO_F32(v_cvt_f32_ubyte1, (float)(int32_t)(a >> 8 & 0xff))
TO_F32(v_cvt_f32_ubyte2, (float)(int32_t)(a >> 16 & 0xff))
TO_F32(v_cvt_f32_ubyte3, (float)(int32_t)(a >> 24))
/* A signed nibble in sixteenths: -0.5 … 0.4375. */
TO_F32(v_cvt_off_f32_i4, (float)((int32_t)(a << 28) >> 28) * 0.0625f)

static void v_cvt_i32_i16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  LANES r.lane[lane] = (uint32_t)(int32_t)(int16_t)(uint16_t)p[lane];
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_u32_u16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  LANES r.lane[lane] = p[lane] & 0xffff;
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- f16 and bf16 ----------------------------------------------------------------------------------------------- */

static void v_cvt_f16_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  round_to_f16(w, source_f32(w, i, 0, &x), r.lane);
  emu_result(w, i, EMU_F16, r.lane);
}

static const uint32_t *source_f16(emu_wave *w, const emu_instruction *i, int k, emu_block *block) {
  const uint32_t *p = emu_source(w, i, k, EMU_F16, block).lo;
  if (!mode_flushes_input(w, MODE_F16_F64)) return p;
  LANES block->lane[lane] = flush_f16(p[lane] & 0xffff);
  return block->lane;
}

static void v_cvt_f32_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_f16(w, i, 0, &x);
  LANES r.lane[lane] = emu_bits(emu_f32_from_f16(p[lane]));
  result_f32(w, i, &r);
}

static void v_cvt_f32_bf16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_BF16, &x).lo;
  LANES r.lane[lane] = p[lane] << 16;
  result_f32(w, i, &r);
}

#define F16_TO_B16(name, expression)                                                                         \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_f16(w, i, 0, &x);                                                             \
    LANES {                                                                                                  \
      float a = emu_f32_from_f16(p[lane]);                                                                   \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B16, r.lane);                                                                       \
  }

/* Normalised: [-1, 1] or [0, 1] to the whole integer range, to nearest even. */
EMU_INLINE uint32_t normal_i16(float a) {
  float inside = a != a ? 0.0f : a < -1.0f ? -1.0f : a > 1.0f ? 1.0f : a;
  return (uint32_t)(int32_t)rint((double)inside * 32767.0) & 0xffff;
}
EMU_INLINE uint32_t normal_u16(float a) {
  float inside = !(a > 0) ? 0.0f : a > 1.0f ? 1.0f : a;
  return (uint32_t)(int32_t)rint((double)inside * 65535.0);
}

F16_TO_B16(v_cvt_i16_f16, f32_to_i16(a))
F16_TO_B16(v_cvt_u16_f16, f32_to_u16(a))
F16_TO_B16(v_cvt_norm_i16_f16, normal_i16(a))
F16_TO_B16(v_cvt_norm_u16_f16, normal_u16(a))

static void v_cvt_f16_i16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  LANES r.lane[lane] = emu_bits((float)(int16_t)(uint16_t)p[lane]);
  round_to_f16(w, r.lane, r.lane);
  emu_result(w, i, EMU_F16, r.lane);
}
static void v_cvt_f16_u16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  LANES r.lane[lane] = emu_bits((float)(int32_t)(p[lane] & 0xffff));
  round_to_f16(w, r.lane, r.lane);
  emu_result(w, i, EMU_F16, r.lane);
}

/* ---- two sources packed into one word ---------------------------------------------------------------------------- */

/* f32 in each lane → bf16, to nearest even or as MODE's f32 rounding says. */
static void round_to_bf16(const emu_wave *w, const uint32_t *p, uint32_t *r) {
  emu_round round = (emu_round)mode_round(w, MODE_F32);
  if (round == EMU_ROUND_NEAREST_EVEN)
    LANES r[lane] = emu_bf16_from_f32(emu_float(p[lane]));
  else
    LANES r[lane] = emu_encode(EMU_FORMAT_BF16, (double)emu_float(p[lane]), round, false);
}

static void v_cvt_pk_bf16_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, low, high;
  round_to_bf16(w, source_f32(w, i, 0, &x), low.lane);
  round_to_bf16(w, source_f32(w, i, 1, &y), high.lane);
  LANES low.lane[lane] |= high.lane[lane] << 16;
  emu_result(w, i, EMU_B32, low.lane);
}

static void v_cvt_pk_f16_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, low, high;
  round_to_f16(w, source_f32(w, i, 0, &x), low.lane);
  round_to_f16(w, source_f32(w, i, 1, &y), high.lane);
  LANES low.lane[lane] |= high.lane[lane] << 16;
  emu_result(w, i, EMU_B32, low.lane);
}

#define PACK_FROM_F32(name, expression)                                                                      \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y);                               \
    LANES {                                                                                                  \
      float a = emu_float(p[lane]);                                                                          \
      uint32_t low = (expression);                                                                           \
      a = emu_float(q[lane]);                                                                                \
      uint32_t high = (expression);                                                                          \
      r.lane[lane] = (low & 0xffff) | high << 16;                                                            \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

/* Round towards zero, whatever MODE says. */
PACK_FROM_F32(v_cvt_pkrtz_f16_f32, emu_encode(EMU_FORMAT_F16, (double)a, EMU_ROUND_ZERO, false))
PACK_FROM_F32(v_cvt_pknorm_i16_f32, normal_i16(a))
PACK_FROM_F32(v_cvt_pknorm_u16_f32, normal_u16(a))
PACK_FROM_F32(v_cvt_pk_i16_f32, f32_to_i16(a))
PACK_FROM_F32(v_cvt_pk_u16_f32, f32_to_u16(a))

static void pack_normal_f16(emu_wave *w, const emu_instruction *i, bool is_signed) {
  emu_block x, y, r;
  const uint32_t *p = source_f16(w, i, 0, &x), *q = source_f16(w, i, 1, &y);
  LANES {
    float a = emu_f32_from_f16(p[lane]), b = emu_f32_from_f16(q[lane]);
    r.lane[lane] = is_signed ? normal_i16(a) | normal_i16(b) << 16 : normal_u16(a) | normal_u16(b) << 16;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_pknorm_i16_f16(emu_wave *w, const emu_instruction *i) { pack_normal_f16(w, i, true); }
static void v_cvt_pknorm_u16_f16(emu_wave *w, const emu_instruction *i) { pack_normal_f16(w, i, false); }

static void pack_integers(emu_wave *w, const emu_instruction *i, bool is_signed) {
  emu_block x, y, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  LANES {
    uint32_t half[2] = {p[lane], q[lane]};
    for (int n = 0; n < 2; ++n) {
      int32_t a = (int32_t)half[n];
      if (is_signed)
        half[n] = (uint32_t)(a < -0x8000 ? -0x8000 : a > 0x7fff ? 0x7fff : a) & 0xffff;
      else
        half[n] = half[n] > 0xffff ? 0xffff : half[n];
    }
    r.lane[lane] = half[0] | half[1] << 16;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_pk_i16_i32(emu_wave *w, const emu_instruction *i) { pack_integers(w, i, true); }
static void v_cvt_pk_u16_u32(emu_wave *w, const emu_instruction *i) { pack_integers(w, i, false); }

/* Byte S1[1:0] of S2 becomes the saturated integer part of S0. */
static void v_cvt_pk_u8_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_b32(w, i, 1, &y), *s = source_b32(w, i, 2, &z);
  LANES {
    float a = emu_float(p[lane]);
    uint32_t byte = !(a > 0) ? 0 : a > 255.0f ? 255 : (uint32_t)(int32_t)a;
    uint32_t shift = 8 * (q[lane] & 3);
    r.lane[lane] = (s[lane] & ~(0xffu << shift)) | byte << shift;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- f64 ------------------------------------------------------------------------------------------------------------ */

static void v_cvt_f32_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x;
  emu_block r;
  emu_lanes p = source_64(w, i, 0, EMU_F64, &x);
  rounding_begin(w, MODE_F32);
  LANES r.lane[lane] = emu_bits((float)double_at(p, lane));
  rounding_end(w, MODE_F32);
  result_f32(w, i, &r);
}
static void v_cvt_f64_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x;
  block_pair r;
  const uint32_t *p = source_f32(w, i, 0, &x);
  LANES set_double(&r, lane, (double)emu_float(p[lane]));
  emu_result64(w, i, EMU_F64, r.lo.lane, r.hi.lane);
}
static void v_cvt_f64_i32(emu_wave *w, const emu_instruction *i) {
  emu_block x;
  block_pair r;
  const uint32_t *p = source_b32(w, i, 0, &x);
  LANES set_double(&r, lane, (double)(int32_t)p[lane]);
  emu_result64(w, i, EMU_F64, r.lo.lane, r.hi.lane);
}
static void v_cvt_f64_u32(emu_wave *w, const emu_instruction *i) {
  emu_block x;
  block_pair r;
  const uint32_t *p = source_b32(w, i, 0, &x);
  LANES set_double(&r, lane, (double)p[lane]);
  emu_result64(w, i, EMU_F64, r.lo.lane, r.hi.lane);
}
static void v_cvt_i32_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x;
  emu_block r;
  emu_lanes p = source_64(w, i, 0, EMU_F64, &x);
  LANES r.lane[lane] = f64_to_i32(double_at(p, lane));
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_u32_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x;
  emu_block r;
  emu_lanes p = source_64(w, i, 0, EMU_F64, &x);
  LANES r.lane[lane] = f64_to_u32(double_at(p, lane));
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- 8-bit floats ----------------------------------------------------------------------------------------------------- */

/* Which of the four bytes a conversion from one 8-bit float reads: gfx12 names it, SDWA has already moved it down. */
static uint32_t source_byte(const emu_instruction *i) { return 8u * i->byte_sel; }

#define DECODE_8(p, shift, format)                                                                           \
  switch (format) {                                                                                          \
  case EMU_FORMAT_FP8: LANES r->lane[lane] = emu_bits(emu_f32_from_fp8(p[lane] >> (shift))); break;         \
  case EMU_FORMAT_BF8: LANES r->lane[lane] = emu_bits(emu_f32_from_bf8(p[lane] >> (shift))); break;         \
  case EMU_FORMAT_FP8_FNUZ: LANES r->lane[lane] = emu_bits(emu_f32_from_fp8_fnuz(p[lane] >> (shift))); break; \
  default: LANES r->lane[lane] = emu_bits(emu_f32_from_bf8_fnuz(p[lane] >> (shift))); break;                 \
  }

static void decode_8(const uint32_t *p, uint32_t shift, emu_format_id format, emu_block *r) { DECODE_8(p, shift, format) }

static emu_format_id dialect(const emu_wave *w, bool is_fp8) {
  if (w->target->fnuz) return is_fp8 ? EMU_FORMAT_FP8_FNUZ : EMU_FORMAT_BF8_FNUZ;
  return is_fp8 ? EMU_FORMAT_FP8 : EMU_FORMAT_BF8;
}

static void one_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  emu_block x, r;
  decode_8(source_b32(w, i, 0, &x), source_byte(i), dialect(w, is_fp8), &r);
  result_f32(w, i, &r);
}
static void v_cvt_f32_fp8(emu_wave *w, const emu_instruction *i) { one_from_8(w, i, true); }
static void v_cvt_f32_bf8(emu_wave *w, const emu_instruction *i) { one_from_8(w, i, false); }

/* Two bytes of a word (op_sel, a true16 half or SDWA picks the word) to two f32. */
static void two_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  emu_block x;
  block_pair r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  decode_8(p, 0, dialect(w, is_fp8), &r.lo);
  decode_8(p, 8, dialect(w, is_fp8), &r.hi);
  emu_result64(w, i, EMU_PK_F32, r.lo.lane, r.hi.lane);
}
static void v_cvt_pk_f32_fp8(emu_wave *w, const emu_instruction *i) { two_from_8(w, i, true); }
static void v_cvt_pk_f32_bf8(emu_wave *w, const emu_instruction *i) { two_from_8(w, i, false); }

/* gfx1250: the same to f16, which holds every 8-bit float exactly. */
static void halves_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8, bool two) {
  emu_block x, low, high;
  const uint32_t *p = two ? source_b16(w, i, 0, &x) : source_b32(w, i, 0, &x);
  decode_8(p, two ? 0 : source_byte(i), dialect(w, is_fp8), &low);
  if (two) decode_8(p, 8, dialect(w, is_fp8), &high);
  LANES {
    uint32_t a = emu_f16_from_f32(emu_float(low.lane[lane]));
    uint32_t b = two ? emu_f16_from_f32(emu_float(high.lane[lane])) : 0;
    low.lane[lane] = a | b << 16;
  }
  emu_result(w, i, two ? EMU_B32 : EMU_F16, low.lane);
}
static void v_cvt_f16_fp8(emu_wave *w, const emu_instruction *i) { halves_from_8(w, i, true, false); }
static void v_cvt_f16_bf8(emu_wave *w, const emu_instruction *i) { halves_from_8(w, i, false, false); }
static void v_cvt_pk_f16_fp8(emu_wave *w, const emu_instruction *i) { halves_from_8(w, i, true, true); }
static void v_cvt_pk_f16_bf8(emu_wave *w, const emu_instruction *i) { halves_from_8(w, i, false, true); }

#define ENCODE_8(convert) LANES r[lane] = convert(emu_float(p[lane]), saturate)
static void encode_8(emu_format_id format, const uint32_t *p, bool saturate, uint32_t *restrict r) {
  switch (format) {
  case EMU_FORMAT_FP8: ENCODE_8(emu_fp8_from_f32); break;
  case EMU_FORMAT_BF8: ENCODE_8(emu_bf8_from_f32); break;
  case EMU_FORMAT_FP8_FNUZ: ENCODE_8(emu_fp8_fnuz_from_f32); break;
  default: ENCODE_8(emu_bf8_fnuz_from_f32); break;
  }
}

/* Two f32 to two bytes of the destination's word; the other word stays (op_sel picks). */
static void two_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  emu_block x, y, low, high;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y);
  encode_8(dialect(w, is_fp8), p, mode_fp16_overflow(w), low.lane);
  encode_8(dialect(w, is_fp8), q, mode_fp16_overflow(w), high.lane);
  LANES low.lane[lane] |= high.lane[lane] << 8;
  emu_result(w, i, EMU_B16, low.lane);
}
static void v_cvt_pk_fp8_f32(emu_wave *w, const emu_instruction *i) { two_to_8(w, i, true); }
static void v_cvt_pk_bf8_f32(emu_wave *w, const emu_instruction *i) { two_to_8(w, i, false); }

static void two_halves_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  emu_block x, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_PK_F16, &x).lo;
  emu_format_id format = dialect(w, is_fp8);
  bool saturate = mode_fp16_overflow(w);
  LANES r.lane[lane] =
      emu_encode(format, (double)emu_f32_from_f16(p[lane] & 0xffff), EMU_ROUND_NEAREST_EVEN, saturate) |
      emu_encode(format, (double)emu_f32_from_f16(p[lane] >> 16), EMU_ROUND_NEAREST_EVEN, saturate) << 8;
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_cvt_pk_fp8_f16(emu_wave *w, const emu_instruction *i) { two_halves_to_8(w, i, true); }
static void v_cvt_pk_bf8_f16(emu_wave *w, const emu_instruction *i) { two_halves_to_8(w, i, false); }

/* Stochastic rounding with the random number in source 1, to one byte; the others stay. gfx9 picks the byte with op_sel[3:2]. */
static void stochastic_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8, bool from_half) {
  emu_block x, y, z, r;
  const uint32_t *p = from_half ? source_f16(w, i, 0, &x) : source_f32(w, i, 0, &x);
  const uint32_t *q = source_b32(w, i, 1, &y), *old = emu_previous(w, i, EMU_B32, &z).lo;
  emu_format_id format = dialect(w, is_fp8);
  bool saturate = mode_fp16_overflow(w);
  uint32_t shift = 8 * (w->target->generation == 9 ? (uint32_t)(i->op_sel >> 2 & 3) : i->byte_sel);
  LANES {
    float a = from_half ? emu_f32_from_f16(p[lane]) : emu_float(p[lane]);
    uint32_t code = emu_encode_stochastic(format, a, q[lane], saturate);
    r.lane[lane] = (old[lane] & ~(0xffu << shift)) | code << shift;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_sr_fp8_f32(emu_wave *w, const emu_instruction *i) { stochastic_to_8(w, i, true, false); }
static void v_cvt_sr_bf8_f32(emu_wave *w, const emu_instruction *i) { stochastic_to_8(w, i, false, false); }
static void v_cvt_sr_fp8_f16(emu_wave *w, const emu_instruction *i) { stochastic_to_8(w, i, true, true); }
static void v_cvt_sr_bf8_f16(emu_wave *w, const emu_instruction *i) { stochastic_to_8(w, i, false, true); }

/* Stochastic rounding to 16 bits. */
static void stochastic_to_16(emu_wave *w, const emu_instruction *i, emu_format_id format) {
  emu_block x, y, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  LANES r.lane[lane] = emu_encode_stochastic(format, emu_float(p[lane]), q[lane], mode_fp16_overflow(w));
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_cvt_sr_f16_f32(emu_wave *w, const emu_instruction *i) { stochastic_to_16(w, i, EMU_FORMAT_F16); }
static void v_cvt_sr_bf16_f32(emu_wave *w, const emu_instruction *i) { stochastic_to_16(w, i, EMU_FORMAT_BF16); }
/* v_cvt_sr_pk_*: how one random number serves two elements is not documented; not emulated. */

#define KEEPS(name) {#name, name, 1, EMU_KEEPS_HIGH}

const emu_row emu_vector_convert_rows[] = {
    ROW(v_cvt_i32_f32),
    ROW(v_cvt_u32_f32),
    ROW(v_cvt_floor_i32_f32),
    ROW(v_cvt_nearest_i32_f32),
    ROW_AS(v_cvt_flr_i32_f32, v_cvt_floor_i32_f32),
    ROW_AS(v_cvt_rpi_i32_f32, v_cvt_nearest_i32_f32),
    ROW(v_cvt_f32_i32),
    ROW(v_cvt_f32_u32),
    ROW(v_cvt_f32_ubyte0),
    ROW(v_cvt_f32_ubyte1),
    ROW(v_cvt_f32_ubyte2),
    ROW(v_cvt_f32_ubyte3),
    ROW(v_cvt_off_f32_i4),
    ROW(v_cvt_i32_i16),
    ROW(v_cvt_u32_u16),
    ROW(v_cvt_f16_f32),
    ROW(v_cvt_f32_f16),
    ROW(v_cvt_f32_bf16),
    ROW(v_cvt_i16_f16),
    ROW(v_cvt_u16_f16),
    ROW(v_cvt_norm_i16_f16),
    ROW(v_cvt_norm_u16_f16),
    ROW(v_cvt_f16_i16),
    ROW(v_cvt_f16_u16),
    ROW(v_cvt_pk_bf16_f32),
    ROW(v_cvt_pk_f16_f32),
    ROW(v_cvt_pkrtz_f16_f32),
    ROW_AS(v_cvt_pk_rtz_f16_f32, v_cvt_pkrtz_f16_f32),
    ROW(v_cvt_pknorm_i16_f32),
    ROW(v_cvt_pknorm_u16_f32),
    ROW_AS(v_cvt_pk_norm_i16_f32, v_cvt_pknorm_i16_f32),
    ROW_AS(v_cvt_pk_norm_u16_f32, v_cvt_pknorm_u16_f32),
    ROW(v_cvt_pknorm_i16_f16),
    ROW(v_cvt_pknorm_u16_f16),
    ROW_AS(v_cvt_pk_norm_i16_f16, v_cvt_pknorm_i16_f16),
    ROW_AS(v_cvt_pk_norm_u16_f16, v_cvt_pknorm_u16_f16),
    ROW(v_cvt_pk_i16_f32),
    ROW(v_cvt_pk_u16_f32),
    ROW(v_cvt_pk_i16_i32),
    ROW(v_cvt_pk_u16_u32),
    ROW(v_cvt_pk_u8_f32),
    ROW(v_cvt_f32_f64),
    ROW(v_cvt_f64_f32),
    ROW(v_cvt_f64_i32),
    ROW(v_cvt_f64_u32),
    ROW(v_cvt_i32_f64),
    ROW(v_cvt_u32_f64),
    ROW(v_cvt_f32_fp8),
    ROW(v_cvt_f32_bf8),
    ROW(v_cvt_pk_f32_fp8),
    ROW(v_cvt_pk_f32_bf8),
    KEEPS(v_cvt_f16_fp8),
    KEEPS(v_cvt_f16_bf8),
    ROW(v_cvt_pk_f16_fp8),
    ROW(v_cvt_pk_f16_bf8),
    KEEPS(v_cvt_pk_fp8_f32),
    KEEPS(v_cvt_pk_bf8_f32),
    KEEPS(v_cvt_pk_fp8_f16),
    KEEPS(v_cvt_pk_bf8_f16),
    ROW(v_cvt_sr_fp8_f32),
    ROW(v_cvt_sr_bf8_f32),
    ROW(v_cvt_sr_fp8_f16),
    ROW(v_cvt_sr_bf8_f16),
    KEEPS(v_cvt_sr_f16_f32),
    KEEPS(v_cvt_sr_bf16_f32),
    END_OF_ROWS,
};
