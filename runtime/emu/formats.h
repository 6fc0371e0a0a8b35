/* The number formats of the emulated devices, as the AMD ISA documents define them.
 *
 * Everything here is written from the format's definition (sign, exponent, mantissa, bias, what the top codes
 * mean) and shares no code with generator/dtype.c on purpose: an emulator that shared the generator's
 * conversions would agree with its mistakes. Decoding is exact; every format below fits into f32, and into
 * f64.
 *
 * The small inline functions are branch-free so that a loop over lanes vectorises. */
#ifndef HEDDLE_EMU_FORMATS_H
#define HEDDLE_EMU_FORMATS_H

#include "hot.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What the codes beyond the largest finite value mean. */
typedef enum emu_special {
  EMU_SPECIAL_IEEE, /* top exponent: mantissa 0 is infinity, the rest NaN */
  EMU_SPECIAL_FN,   /* no infinity; only the all-ones code (either sign) is NaN */
  EMU_SPECIAL_FNUZ, /* no infinity, no negative zero; the code of negative zero is NaN */
  EMU_SPECIAL_NONE, /* every code is finite (OCP fp6 and fp4) */
} emu_special;

/* name, total bits, exponent bits, mantissa bits, exponent bias, special codes */
#define EMU_FORMAT_LIST(X)                                                                                   \
  X(EMU_FORMAT_F16, "f16", 16, 5, 10, 15, EMU_SPECIAL_IEEE)                                                  \
  X(EMU_FORMAT_BF16, "bf16", 16, 8, 7, 127, EMU_SPECIAL_IEEE)                                                \
  X(EMU_FORMAT_FP8, "fp8", 8, 4, 3, 7, EMU_SPECIAL_FN)              /* OCP e4m3fn: gfx950, gfx12 */          \
  X(EMU_FORMAT_BF8, "bf8", 8, 5, 2, 15, EMU_SPECIAL_IEEE)           /* OCP e5m2: gfx950, gfx12 */            \
  X(EMU_FORMAT_FP8_FNUZ, "fp8_fnuz", 8, 4, 3, 8, EMU_SPECIAL_FNUZ)  /* e4m3fnuz: gfx942 */                   \
  X(EMU_FORMAT_BF8_FNUZ, "bf8_fnuz", 8, 5, 2, 16, EMU_SPECIAL_FNUZ) /* e5m2fnuz: gfx942 */                   \
  X(EMU_FORMAT_FP6, "fp6", 6, 2, 3, 1, EMU_SPECIAL_NONE)            /* OCP e2m3 */                           \
  X(EMU_FORMAT_BF6, "bf6", 6, 3, 2, 3, EMU_SPECIAL_NONE)            /* OCP e3m2 */                           \
  X(EMU_FORMAT_FP4, "fp4", 4, 2, 1, 1, EMU_SPECIAL_NONE)            /* OCP e2m1 */

typedef enum emu_format_id {
#define X(id, name, bits, exponent, mantissa, bias, special) id,
  EMU_FORMAT_LIST(X)
#undef X
      EMU_FORMAT_COUNT
} emu_format_id;

typedef struct emu_format {
  const char *name;
  uint8_t bits, exponent_bits, mantissa_bits, bias;
  emu_special special;
} emu_format;

extern const emu_format emu_formats[EMU_FORMAT_COUNT];

/* Numbered as the MODE register's rounding fields number them. */
typedef enum emu_round {
  EMU_ROUND_NEAREST_EVEN,
  EMU_ROUND_UP,
  EMU_ROUND_DOWN,
  EMU_ROUND_ZERO,
} emu_round;

/* The value of `code` (low `bits` bits count). NaN codes give a quiet NaN. */
float emu_decode(emu_format_id format, uint32_t code);

/* The code of `value` in `format`. A magnitude that rounds beyond the largest finite value becomes, with
 * `saturate` (MODE.FP16_OVFL, or a clamp), the largest finite code; otherwise what the format has: infinity,
 * else NaN, else the largest finite code. Infinity itself: infinity or NaN without `saturate`; with it, the
 * largest finite code in the 8-bit formats and infinity in the 16-bit ones (the mode bit keeps true f16
 * infinities). */
uint32_t emu_encode(emu_format_id format, double value, emu_round round, bool saturate);

/* Stochastic rounding: `random` is a 32-bit number. Its top (23 - mantissa) bits are added below the kept
 * mantissa of the f32 source and the sum is truncated, so a value lands on its upper neighbour with the
 * probability of its distance from the lower one. Results below the format's normal range use the wider step
 * of its denormals. */
uint32_t emu_encode_stochastic(emu_format_id format, float value, uint32_t random, bool saturate);

/* Bit casts. */
static inline float emu_f32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t emu_bits32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline double emu_f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint64_t emu_bits64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Branch-free decoders for the formats that matrix instructions read. The magnitude bits are put where f32
 * has them and one exact multiplication by a power of two corrects the bias, which also normalises denormals.
 */
EMU_INLINE float emu_f32_from_bf16(uint32_t code) {
  return emu_f32((code & 0xffff) << 16);
}

EMU_INLINE float emu_f32_from_f16(uint32_t code) {
  uint32_t magnitude = emu_bits32(emu_f32((code & 0x7fff) << 13) * 0x1p+112f);
  uint32_t special = 0x7f800000u | ((code & 0x3ff) << 13);
  uint32_t is_special = 0u - (uint32_t)((code & 0x7c00) == 0x7c00);
  return emu_f32(((magnitude & ~is_special) | (special & is_special)) | ((code & 0x8000) << 16));
}

EMU_INLINE float emu_f32_from_fp8(uint32_t code) {
  uint32_t magnitude = emu_bits32(emu_f32((code & 0x7f) << 20) * 0x1p+120f);
  uint32_t is_nan = 0u - (uint32_t)((code & 0x7f) == 0x7f);
  return emu_f32(((magnitude & ~is_nan) | (0x7fc00000u & is_nan)) | ((code & 0x80) << 24));
}

EMU_INLINE float emu_f32_from_bf8(uint32_t code) {
  return emu_f32_from_f16((code & 0xff) << 8);
}

EMU_INLINE float emu_f32_from_fp8_fnuz(uint32_t code) {
  uint32_t magnitude = emu_bits32(emu_f32((code & 0x7f) << 20) * 0x1p+119f);
  uint32_t is_nan = 0u - (uint32_t)((code & 0xff) == 0x80);
  return emu_f32((magnitude | ((code & 0x80) << 24)) ^ (is_nan & 0xffc00000u));
}

EMU_INLINE float emu_f32_from_bf8_fnuz(uint32_t code) {
  uint32_t magnitude = emu_bits32(emu_f32((code & 0x7f) << 21) * 0x1p+111f);
  uint32_t is_nan = 0u - (uint32_t)((code & 0xff) == 0x80);
  return emu_f32((magnitude | ((code & 0x80) << 24)) ^ (is_nan & 0xffc00000u));
}

/* OCP e8m0, a block scale: 2^(code - 127); 255 is NaN. 2^-127 is an f32 denormal, and exact. */
EMU_INLINE float emu_f32_from_e8m0(uint32_t code) {
  code &= 0xff;
  return emu_f32(code == 0xff ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23);
}

/* Round to nearest even, branch-free; NaN stays NaN (quiet). The two conversions that kernels do in bulk. */
EMU_INLINE uint32_t emu_bf16_from_f32(float value) {
  uint32_t bits = emu_bits32(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded;
}

EMU_INLINE uint32_t emu_f16_from_f32(float value) {
  uint32_t bits = emu_bits32(value), magnitude = bits & 0x7fffffff;
  /* Below f16's normal range the sum with 0.5 drops the bits under 2^-24, rounding as the host does. */
  uint32_t small = emu_bits32(emu_f32(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude - 0x38000000u + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  uint32_t code = magnitude < 0x38800000u ? small : normal;
  code = magnitude >= 0x477ff000u ? 0x7c00u : code;
  code = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ff) : code;
  return code | ((bits >> 16) & 0x8000);
}

/* Round to nearest even to an 8-bit float with `mantissa` bits and `bias`; `top` is the largest finite code,
 * `overflow` what is beyond it, `nan` a NaN's magnitude; `fnuz`: no negative zero, and NaN has no sign. */
EMU_INLINE uint32_t emu_byte_from_f32(float value, int mantissa, int bias, uint32_t top, uint32_t overflow,
                                      uint32_t nan, bool fnuz) {
  int drop = 23 - mantissa;
  uint32_t bits = emu_bits32(value), magnitude = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
  /* A sum whose last bit is one denormal step of the format rounds there; the exponent field then holds
   * nothing but that sum's. */
  float step_holder = emu_f32((uint32_t)(127 + 23 + 1 - bias - mantissa) << 23);
  uint32_t small = emu_bits32(emu_f32(magnitude) + step_holder) - emu_bits32(step_holder);
  uint32_t rebased = magnitude - ((uint32_t)(127 - bias) << 23);
  uint32_t normal = (rebased + (1u << (drop - 1)) - 1 + (rebased >> drop & 1)) >> drop;
  uint32_t code = magnitude < (uint32_t)(127 + 1 - bias) << 23 ? small : normal;
  code = code > top || magnitude >= 0x7f800000u ? overflow : code;
  bool is_nan = magnitude > 0x7f800000u;
  code = is_nan ? nan : code;
  bool unsigned_code = fnuz && (code == 0 || code == 0x80);
  return unsigned_code ? code : code | sign;
}
EMU_INLINE uint32_t emu_fp8_from_f32(float value, bool saturate) {
  return emu_byte_from_f32(value, 3, 7, 0x7e, saturate ? 0x7e : 0x7f, 0x7f, false);
}
EMU_INLINE uint32_t emu_bf8_from_f32(float value, bool saturate) {
  return emu_byte_from_f32(value, 2, 15, 0x7b, saturate ? 0x7b : 0x7c, 0x7f, false);
}
EMU_INLINE uint32_t emu_fp8_fnuz_from_f32(float value, bool saturate) {
  return emu_byte_from_f32(value, 3, 8, 0x7f, saturate ? 0x7f : 0x80, 0x80, true);
}
EMU_INLINE uint32_t emu_bf8_fnuz_from_f32(float value, bool saturate) {
  return emu_byte_from_f32(value, 2, 16, 0x7f, saturate ? 0x7f : 0x80, 0x80, true);
}

#endif
