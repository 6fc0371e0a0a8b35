/* Conversions of 8-bit floats, and stochastic rounding. They round to nearest even whatever MODE says, and
 * overflow as MODE.FP16_OVFL says. The dialect is the target's: FNUZ on gfx942, OCP elsewhere. */
#include "vector.h"

/* Which of the four bytes a conversion from one 8-bit float reads: gfx12 names it, SDWA has already moved it
 * down. */
static uint32_t source_byte(const emu_instruction *i) {
  return 8u * i->byte_sel;
}

/* gfx1250 turns the clamp bit of these into another format (e5m3), which is not emulated. */
static bool other_format(emu_wave *w, const emu_instruction *i) {
  if (!i->clamp || w->target->generation < 12) return false;
  emu_fault(w, i, -1, "an 8-bit conversion with clamp, which selects e5m3, is not emulated");
  return true;
}

#define DECODE_8(p, shift, format)                                                                           \
  switch (format) {                                                                                          \
  case EMU_FORMAT_FP8:                                                                                       \
    LANES r->lane[lane] = emu_bits(emu_f32_from_fp8(p[lane] >> (shift)));                                    \
    break;                                                                                                   \
  case EMU_FORMAT_BF8:                                                                                       \
    LANES r->lane[lane] = emu_bits(emu_f32_from_bf8(p[lane] >> (shift)));                                    \
    break;                                                                                                   \
  case EMU_FORMAT_FP8_FNUZ:                                                                                  \
    LANES r->lane[lane] = emu_bits(emu_f32_from_fp8_fnuz(p[lane] >> (shift)));                               \
    break;                                                                                                   \
  default:                                                                                                   \
    LANES r->lane[lane] = emu_bits(emu_f32_from_bf8_fnuz(p[lane] >> (shift)));                               \
    break;                                                                                                   \
  }

static void decode_8(const uint32_t *p, uint32_t shift, emu_format_id format, emu_block *r) {
  DECODE_8(p, shift, format)
}

static emu_format_id dialect(const emu_wave *w, bool is_fp8) {
  if (w->target->fnuz) return is_fp8 ? EMU_FORMAT_FP8_FNUZ : EMU_FORMAT_BF8_FNUZ;
  return is_fp8 ? EMU_FORMAT_FP8 : EMU_FORMAT_BF8;
}

static void one_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  if (other_format(w, i)) return;
  emu_block x, r;
  decode_8(source_b32(w, i, 0, &x), source_byte(i), dialect(w, is_fp8), &r);
  result_f32(w, i, &r);
}
static void v_cvt_f32_fp8(emu_wave *w, const emu_instruction *i) {
  one_from_8(w, i, true);
}
static void v_cvt_f32_bf8(emu_wave *w, const emu_instruction *i) {
  one_from_8(w, i, false);
}

/* Two bytes of a word (op_sel, a true16 half or SDWA picks the word) to two f32. */
static void two_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  if (other_format(w, i)) return;
  emu_block x;
  block_pair r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  decode_8(p, 0, dialect(w, is_fp8), &r.lo);
  decode_8(p, 8, dialect(w, is_fp8), &r.hi);
  emu_result64(w, i, EMU_PK_F32, r.lo.lane, r.hi.lane);
}
static void v_cvt_pk_f32_fp8(emu_wave *w, const emu_instruction *i) {
  two_from_8(w, i, true);
}
static void v_cvt_pk_f32_bf8(emu_wave *w, const emu_instruction *i) {
  two_from_8(w, i, false);
}

/* gfx1250: the same to f16, which holds every 8-bit float exactly. */
static void halves_from_8(emu_wave *w, const emu_instruction *i, bool is_fp8, bool two) {
  if (other_format(w, i)) return;
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
static void v_cvt_f16_fp8(emu_wave *w, const emu_instruction *i) {
  halves_from_8(w, i, true, false);
}
static void v_cvt_f16_bf8(emu_wave *w, const emu_instruction *i) {
  halves_from_8(w, i, false, false);
}
static void v_cvt_pk_f16_fp8(emu_wave *w, const emu_instruction *i) {
  halves_from_8(w, i, true, true);
}
static void v_cvt_pk_f16_bf8(emu_wave *w, const emu_instruction *i) {
  halves_from_8(w, i, false, true);
}

#define ENCODE_8(convert) LANES r[lane] = convert(emu_float(p[lane]), saturate)
static void encode_8(emu_format_id format, const uint32_t *p, bool saturate, uint32_t *restrict r) {
  switch (format) {
  case EMU_FORMAT_FP8:
    ENCODE_8(emu_fp8_from_f32);
    break;
  case EMU_FORMAT_BF8:
    ENCODE_8(emu_bf8_from_f32);
    break;
  case EMU_FORMAT_FP8_FNUZ:
    ENCODE_8(emu_fp8_fnuz_from_f32);
    break;
  default:
    ENCODE_8(emu_bf8_fnuz_from_f32);
    break;
  }
}

/* Two f32 to two bytes of the destination's word; the other word stays (op_sel picks). */
static void two_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  if (other_format(w, i)) return;
  emu_block x, y, low, high;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y);
  encode_8(dialect(w, is_fp8), p, mode_fp16_overflow(w), low.lane);
  encode_8(dialect(w, is_fp8), q, mode_fp16_overflow(w), high.lane);
  LANES low.lane[lane] |= high.lane[lane] << 8;
  emu_result(w, i, EMU_B16, low.lane);
}
static void v_cvt_pk_fp8_f32(emu_wave *w, const emu_instruction *i) {
  two_to_8(w, i, true);
}
static void v_cvt_pk_bf8_f32(emu_wave *w, const emu_instruction *i) {
  two_to_8(w, i, false);
}

static void two_halves_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8) {
  if (other_format(w, i)) return;
  emu_block x, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_PK_F16, &x).lo;
  emu_format_id format = dialect(w, is_fp8);
  bool saturate = mode_fp16_overflow(w);
  LANES r.lane[lane] =
      emu_encode(format, (double)emu_f32_from_f16(p[lane] & 0xffff), EMU_ROUND_NEAREST_EVEN, saturate) |
      emu_encode(format, (double)emu_f32_from_f16(p[lane] >> 16), EMU_ROUND_NEAREST_EVEN, saturate) << 8;
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_cvt_pk_fp8_f16(emu_wave *w, const emu_instruction *i) {
  two_halves_to_8(w, i, true);
}
static void v_cvt_pk_bf8_f16(emu_wave *w, const emu_instruction *i) {
  two_halves_to_8(w, i, false);
}

/* Stochastic rounding with the random number in source 1, to one byte; the others stay. gfx9 picks the byte
 * with op_sel[3:2]. */
static void stochastic_to_8(emu_wave *w, const emu_instruction *i, bool is_fp8, bool from_half) {
  if (other_format(w, i)) return;
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
static void v_cvt_sr_fp8_f32(emu_wave *w, const emu_instruction *i) {
  stochastic_to_8(w, i, true, false);
}
static void v_cvt_sr_bf8_f32(emu_wave *w, const emu_instruction *i) {
  stochastic_to_8(w, i, false, false);
}
static void v_cvt_sr_fp8_f16(emu_wave *w, const emu_instruction *i) {
  stochastic_to_8(w, i, true, true);
}
static void v_cvt_sr_bf8_f16(emu_wave *w, const emu_instruction *i) {
  stochastic_to_8(w, i, false, true);
}

/* Stochastic rounding to 16 bits. */
static void stochastic_to_16(emu_wave *w, const emu_instruction *i, emu_format_id format) {
  emu_block x, y, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  LANES r.lane[lane] = emu_encode_stochastic(format, emu_float(p[lane]), q[lane], mode_fp16_overflow(w));
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_cvt_sr_f16_f32(emu_wave *w, const emu_instruction *i) {
  stochastic_to_16(w, i, EMU_FORMAT_F16);
}
static void v_cvt_sr_bf16_f32(emu_wave *w, const emu_instruction *i) {
  stochastic_to_16(w, i, EMU_FORMAT_BF16);
}
/* gfx1250: two of them with one random number, which takes a step of v_prng_b32 in between. */
static void two_stochastic_to_16(emu_wave *w, const emu_instruction *i, emu_format_id format) {
  emu_block x, y, z, r;
  const uint32_t *p = source_f32(w, i, 0, &x), *q = source_f32(w, i, 1, &y), *seed = source_b32(w, i, 2, &z);
  bool saturate = mode_fp16_overflow(w);
  LANES {
    uint32_t second = seed[lane] << 1 ^ (seed[lane] >> 31 ? 197u : 0u);
    r.lane[lane] = emu_encode_stochastic(format, emu_float(p[lane]), seed[lane], saturate) |
                   emu_encode_stochastic(format, emu_float(q[lane]), second, saturate) << 16;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_cvt_sr_pk_f16_f32(emu_wave *w, const emu_instruction *i) {
  two_stochastic_to_16(w, i, EMU_FORMAT_F16);
}
static void v_cvt_sr_pk_bf16_f32(emu_wave *w, const emu_instruction *i) {
  two_stochastic_to_16(w, i, EMU_FORMAT_BF16);
}

const emu_row emu_vector_bytes_rows[] = {
    ROW(v_cvt_f32_fp8),       ROW(v_cvt_f32_bf8),        ROW(v_cvt_pk_f32_fp8),
    ROW(v_cvt_pk_f32_bf8),    KEEPS(v_cvt_f16_fp8),      KEEPS(v_cvt_f16_bf8),
    ROW(v_cvt_pk_f16_fp8),    ROW(v_cvt_pk_f16_bf8),     KEEPS(v_cvt_pk_fp8_f32),
    KEEPS(v_cvt_pk_bf8_f32),  KEEPS(v_cvt_pk_fp8_f16),   KEEPS(v_cvt_pk_bf8_f16),
    ROW(v_cvt_sr_fp8_f32),    ROW(v_cvt_sr_bf8_f32),     ROW(v_cvt_sr_fp8_f16),
    ROW(v_cvt_sr_bf8_f16),    KEEPS(v_cvt_sr_f16_f32),   KEEPS(v_cvt_sr_bf16_f32),
    ROW(v_cvt_sr_pk_f16_f32), ROW(v_cvt_sr_pk_bf16_f32), END_OF_ROWS,
};
