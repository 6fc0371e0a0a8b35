/* Conversions between integers, f16, bf16, f32, f64 and the 8-bit floats. Block-scaled conversions:
 * vector_scale.c.
 *
 * Float to integer truncates, saturates, and takes NaN to 0. Float to a narrower float rounds as MODE says
 * (8-bit floats: to nearest even) and overflows as MODE.FP16_OVFL says. The 8-bit dialect is the target's:
 * FNUZ on gfx942, OCP elsewhere. */
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
EMU_INLINE uint32_t f64_to_u32(double a) {
  return !(a > 0) ? 0 : a >= 0x1p+32 - 1 ? UINT32_MAX : (uint32_t)a;
}
EMU_INLINE uint32_t f32_to_i16(float a) {
  float inside = a != a ? 0.0f : a < -32768.0f ? -32768.0f : a > 32767.0f ? 32767.0f : a;
  return (uint32_t)(int32_t)inside & 0xffff;
}
EMU_INLINE uint32_t f32_to_u16(float a) {
  float inside = !(a > 0) ? 0.0f : a > 65535.0f ? 65535.0f : a;
  return (uint32_t)(int32_t)inside;
}

static bool nearest_f16(const emu_wave *w) {
  return !mode_round(w, MODE_F16_F64) && !mode_fp16_overflow(w);
}

/* f32 in each lane → f16 as MODE says. */
static void round_to_f16(const emu_wave *w, const uint32_t *p, uint32_t *r) {
  emu_round round = (emu_round)mode_round(w, MODE_F16_F64);
  if (nearest_f16(w))
    LANES r[lane] = emu_f16_from_f32(emu_float(p[lane]));
  else
    LANES r[lane] = emu_encode(EMU_FORMAT_F16, (double)emu_float(p[lane]), round, mode_fp16_overflow(w));
  if (mode_flushes_output(w, MODE_F16_F64)) LANES r[lane] = flush_f16(r[lane]);
}

/* ---- one source, 32-bit result ---- */

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

/* ---- f16 and bf16 ---- */

static void v_cvt_f16_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  round_to_f16(w, source_f32(w, i, 0, &x), r.lane);
  emu_result(w, i, EMU_F16, r.lane);
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

/* ---- two sources packed into one word ---- */

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
static void v_cvt_pknorm_i16_f16(emu_wave *w, const emu_instruction *i) {
  pack_normal_f16(w, i, true);
}
static void v_cvt_pknorm_u16_f16(emu_wave *w, const emu_instruction *i) {
  pack_normal_f16(w, i, false);
}

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
static void v_cvt_pk_i16_i32(emu_wave *w, const emu_instruction *i) {
  pack_integers(w, i, true);
}
static void v_cvt_pk_u16_u32(emu_wave *w, const emu_instruction *i) {
  pack_integers(w, i, false);
}

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

/* ---- f64 ---- */

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
    END_OF_ROWS,
};
