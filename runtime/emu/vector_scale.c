/* Block-scaled conversions of gfx950 and gfx1250: small floats to and from f32, f16 and bf16 with a
 * power-of-two scale.
 *
 * The scale is the exponent field of an f32, or of the forms that take it by lane a byte (e8m0): decoding
 * multiplies by 2^(exponent - 127), encoding divides by it, then rounds to nearest even (or stochastically)
 * and overflows as MODE.FP16_OVFL says; fp6 and fp4 always saturate. */
#include "vector.h"

/* X(name, narrow format, wide format, elements): decoding. Two elements come from the word or byte that
 * op_sel picks, one from the byte; 32 from consecutive registers. */
#define DECODE_LIST(X)                                                                                       \
  X(v_cvt_scalef32_f32_fp8, FP8, F32, 1)                                                                     \
  X(v_cvt_scalef32_f32_bf8, BF8, F32, 1)                                                                     \
  X(v_cvt_scalef32_f16_fp8, FP8, F16, 1)                                                                     \
  X(v_cvt_scalef32_f16_bf8, BF8, F16, 1)                                                                     \
  X(v_cvt_scalef32_pk_f32_fp8, FP8, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_f32_bf8, BF8, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_f32_fp4, FP4, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_f16_fp8, FP8, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_f16_bf8, BF8, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_f16_fp4, FP4, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_bf16_fp8, FP8, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk_bf16_bf8, BF8, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk_bf16_fp4, FP4, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk32_f32_fp6, FP6, F32, 32)                                                               \
  X(v_cvt_scalef32_pk32_f32_bf6, BF6, F32, 32)                                                               \
  X(v_cvt_scalef32_pk32_f16_fp6, FP6, F16, 32)                                                               \
  X(v_cvt_scalef32_pk32_f16_bf6, BF6, F16, 32)                                                               \
  X(v_cvt_scalef32_pk32_bf16_fp6, FP6, BF16, 32)                                                             \
  X(v_cvt_scalef32_pk32_bf16_bf6, BF6, BF16, 32)

/* Decoding with the scales of other lanes: a row of 16 lanes holds four bytes each, and scale_sel says which.
 */
#define DECODE_BY_LANE_LIST(X)                                                                               \
  X(v_cvt_scale_pk8_f32_fp8, FP8, F32, 8)                                                                    \
  X(v_cvt_scale_pk8_f32_bf8, BF8, F32, 8)                                                                    \
  X(v_cvt_scale_pk8_f32_fp4, FP4, F32, 8)                                                                    \
  X(v_cvt_scale_pk8_f16_fp8, FP8, F16, 8)                                                                    \
  X(v_cvt_scale_pk8_f16_bf8, BF8, F16, 8)                                                                    \
  X(v_cvt_scale_pk8_f16_fp4, FP4, F16, 8)                                                                    \
  X(v_cvt_scale_pk8_bf16_fp8, FP8, BF16, 8)                                                                  \
  X(v_cvt_scale_pk8_bf16_bf8, BF8, BF16, 8)                                                                  \
  X(v_cvt_scale_pk8_bf16_fp4, FP4, BF16, 8)                                                                  \
  X(v_cvt_scale_pk16_f32_fp6, FP6, F32, 16)                                                                  \
  X(v_cvt_scale_pk16_f32_bf6, BF6, F32, 16)                                                                  \
  X(v_cvt_scale_pk16_f16_fp6, FP6, F16, 16)                                                                  \
  X(v_cvt_scale_pk16_f16_bf6, BF6, F16, 16)                                                                  \
  X(v_cvt_scale_pk16_bf16_fp6, FP6, BF16, 16)                                                                \
  X(v_cvt_scale_pk16_bf16_bf6, BF6, BF16, 16)

/* Encoding. One element is rounded stochastically into the byte that op_sel picks; two go to the word or byte
 * that it picks; more fill consecutive registers. */
#define ENCODE_LIST(X)                                                                                       \
  X(v_cvt_scalef32_sr_fp8_f32, FP8, F32, 1)                                                                  \
  X(v_cvt_scalef32_sr_bf8_f32, BF8, F32, 1)                                                                  \
  X(v_cvt_scalef32_sr_fp8_f16, FP8, F16, 1)                                                                  \
  X(v_cvt_scalef32_sr_bf8_f16, BF8, F16, 1)                                                                  \
  X(v_cvt_scalef32_sr_fp8_bf16, FP8, BF16, 1)                                                                \
  X(v_cvt_scalef32_sr_bf8_bf16, BF8, BF16, 1)                                                                \
  X(v_cvt_scalef32_pk_fp8_f32, FP8, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_bf8_f32, BF8, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_fp4_f32, FP4, F32, 2)                                                                  \
  X(v_cvt_scalef32_pk_fp8_f16, FP8, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_bf8_f16, BF8, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_fp4_f16, FP4, F16, 2)                                                                  \
  X(v_cvt_scalef32_pk_fp8_bf16, FP8, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk_bf8_bf16, BF8, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk_fp4_bf16, FP4, BF16, 2)                                                                \
  X(v_cvt_scalef32_pk32_fp6_f16, FP6, F16, 32)                                                               \
  X(v_cvt_scalef32_pk32_bf6_f16, BF6, F16, 32)                                                               \
  X(v_cvt_scalef32_pk32_fp6_bf16, FP6, BF16, 32)                                                             \
  X(v_cvt_scalef32_pk32_bf6_bf16, BF6, BF16, 32)                                                             \
  X(v_cvt_scalef32_pk8_fp8_f32, FP8, F32, 8)                                                                 \
  X(v_cvt_scalef32_pk8_bf8_f32, BF8, F32, 8)                                                                 \
  X(v_cvt_scalef32_pk8_fp4_f32, FP4, F32, 8)                                                                 \
  X(v_cvt_scalef32_pk8_fp8_f16, FP8, F16, 8)                                                                 \
  X(v_cvt_scalef32_pk8_bf8_f16, BF8, F16, 8)                                                                 \
  X(v_cvt_scalef32_pk8_fp4_f16, FP4, F16, 8)                                                                 \
  X(v_cvt_scalef32_pk8_fp8_bf16, FP8, BF16, 8)                                                               \
  X(v_cvt_scalef32_pk8_bf8_bf16, BF8, BF16, 8)                                                               \
  X(v_cvt_scalef32_pk8_fp4_bf16, FP4, BF16, 8)                                                               \
  X(v_cvt_scalef32_pk16_fp6_f32, FP6, F32, 16)                                                               \
  X(v_cvt_scalef32_pk16_bf6_f32, BF6, F32, 16)                                                               \
  X(v_cvt_scalef32_pk16_fp6_f16, FP6, F16, 16)                                                               \
  X(v_cvt_scalef32_pk16_bf6_f16, BF6, F16, 16)                                                               \
  X(v_cvt_scalef32_pk16_fp6_bf16, FP6, BF16, 16)                                                             \
  X(v_cvt_scalef32_pk16_bf6_bf16, BF6, BF16, 16)

/* Encoding of several elements with one random number: it takes a step of v_prng_b32 from one to the next. */
#define STOCHASTIC_LIST(X)                                                                                   \
  X(v_cvt_scalef32_sr_pk_fp4_f32, FP4, F32, 2)                                                               \
  X(v_cvt_scalef32_sr_pk_fp4_f16, FP4, F16, 2)                                                               \
  X(v_cvt_scalef32_sr_pk_fp4_bf16, FP4, BF16, 2)                                                             \
  X(v_cvt_scalef32_sr_pk32_fp6_f32, FP6, F32, 32)                                                            \
  X(v_cvt_scalef32_sr_pk32_bf6_f32, BF6, F32, 32)                                                            \
  X(v_cvt_scalef32_sr_pk32_fp6_f16, FP6, F16, 32)                                                            \
  X(v_cvt_scalef32_sr_pk32_bf6_f16, BF6, F16, 32)                                                            \
  X(v_cvt_scalef32_sr_pk32_fp6_bf16, FP6, BF16, 32)                                                          \
  X(v_cvt_scalef32_sr_pk32_bf6_bf16, BF6, BF16, 32)                                                          \
  X(v_cvt_scalef32_sr_pk8_fp8_f32, FP8, F32, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_bf8_f32, BF8, F32, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_fp4_f32, FP4, F32, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_fp8_f16, FP8, F16, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_bf8_f16, BF8, F16, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_fp4_f16, FP4, F16, 8)                                                              \
  X(v_cvt_scalef32_sr_pk8_fp8_bf16, FP8, BF16, 8)                                                            \
  X(v_cvt_scalef32_sr_pk8_bf8_bf16, BF8, BF16, 8)                                                            \
  X(v_cvt_scalef32_sr_pk8_fp4_bf16, FP4, BF16, 8)                                                            \
  X(v_cvt_scalef32_sr_pk16_fp6_f32, FP6, F32, 16)                                                            \
  X(v_cvt_scalef32_sr_pk16_bf6_f32, BF6, F32, 16)                                                            \
  X(v_cvt_scalef32_sr_pk16_fp6_f16, FP6, F16, 16)                                                            \
  X(v_cvt_scalef32_sr_pk16_bf6_f16, BF6, F16, 16)                                                            \
  X(v_cvt_scalef32_sr_pk16_fp6_bf16, FP6, BF16, 16)                                                          \
  X(v_cvt_scalef32_sr_pk16_bf6_bf16, BF6, BF16, 16)

/* Encoding of two times 16 elements, which take turns in the result. */
#define INTERLEAVED_LIST(X)                                                                                  \
  X(v_cvt_scalef32_2xpk16_fp6_f32, FP6, F32, 16)                                                             \
  X(v_cvt_scalef32_2xpk16_bf6_f32, BF6, F32, 16)

typedef enum wide_format { WIDE_F32, WIDE_F16, WIDE_BF16 } wide_format;

typedef struct scaled_op {
  emu_format_id narrow;
  wide_format wide;
  int elements;
} scaled_op;

static const scaled_op scaled_ops[] = {
#define X(name, narrow, wide, elements) {EMU_FORMAT_##narrow, WIDE_##wide, elements},
    DECODE_LIST(X) DECODE_BY_LANE_LIST(X) ENCODE_LIST(X) STOCHASTIC_LIST(X) INTERLEAVED_LIST(X)
#undef X
};

enum { MAX_ELEMENTS = 32 };

static double scale_of(uint32_t bits) {
  return (double)emu_f32_from_e8m0(bits >> 23);
}

static double wide_value(wide_format wide, uint32_t bits) {
  if (wide == WIDE_F32) return (double)emu_float(bits);
  return (double)(wide == WIDE_F16 ? emu_f32_from_f16(bits & 0xffff) : emu_f32_from_bf16(bits & 0xffff));
}

static uint32_t wide_code(const emu_wave *w, wide_format wide, double value) {
  if (wide == WIDE_F32) return emu_bits((float)value);
  emu_format_id format = wide == WIDE_F16 ? EMU_FORMAT_F16 : EMU_FORMAT_BF16;
  return emu_encode(format, value, EMU_ROUND_NEAREST_EVEN, wide == WIDE_F16 && mode_fp16_overflow(w));
}

/* Bits [offset, offset + bits) of consecutive registers of one lane. */
static uint32_t get_bits(const uint32_t (*words)[EMU_LANES], int lane, int offset, int bits) {
  uint64_t low = words[offset / 32][lane], high = offset % 32 + bits > 32 ? words[offset / 32 + 1][lane] : 0;
  return (uint32_t)((high << 32 | low) >> (offset % 32)) & (bits == 32 ? UINT32_MAX : (1u << bits) - 1);
}

/* Consecutive registers of source k that hold `bits` bits a lane. */
static const uint32_t (*source_registers(emu_wave *w, const emu_instruction *i, int k, int bits))[EMU_LANES] {
  const emu_operand *o = &i->operand[i->source0 + k];
  if (o->kind != EMU_VECTOR || emu_row_of(w, o) + (uint32_t)((bits + 31) / 32) > w->vector_rows) {
    emu_fault(w, i, -1, "source of a scaled conversion is not a range of vector registers");
    return NULL;
  }
  return (const uint32_t(*)[EMU_LANES])emu_registers(w, o);
}

/* out[element][lane] packed at `bits` each into the destination's registers, active lanes only. */
static void write_packed(emu_wave *w, const emu_instruction *i, uint32_t (*out)[EMU_LANES], int elements,
                         int bits) {
  uint32_t(*to)[EMU_LANES] = emu_registers(w, &i->operand[0]);
  int words = elements * bits / 32;
  if (emu_row_of(w, &i->operand[0]) + (uint32_t)words > w->vector_rows) {
    emu_fault(w, i, -1, "destination of a scaled conversion reaches past the vector registers");
    return;
  }
  uint64_t exec = emu_exec(w);
  for (int lane = 0; lane < w->lanes; ++lane) {
    if (!(exec >> lane & 1)) continue;
    uint64_t pending = 0;
    int filled = 0, word = 0;
    for (int e = 0; e < elements; ++e) {
      pending |= (uint64_t)out[e][lane] << filled;
      filled += bits;
      for (; filled >= 32; filled -= 32, pending >>= 32)
        to[word++][lane] = (uint32_t)pending;
    }
  }
}

/* Many elements, each times its lane's scale. */
static void decode_many(emu_wave *w, const emu_instruction *i, const scaled_op *op,
                        const float scale[EMU_LANES]) {
  int bits = emu_formats[op->narrow].bits;
  uint32_t out[MAX_ELEMENTS][EMU_LANES];
  const uint32_t(*words)[EMU_LANES] = source_registers(w, i, 0, bits * op->elements);
  if (!words) return;
  for (int e = 0; e < op->elements; ++e)
    LANES {
      double value = (double)emu_decode(op->narrow, get_bits(words, lane, e * bits, bits));
      out[e][lane] = wide_code(w, op->wide, value * (double)scale[lane]);
    }
  write_packed(w, i, out, op->elements, op->wide == WIDE_F32 ? 32 : 16);
}

/* scale_sel. 8-bit floats: bits 2:1 pick the byte, bit 3 the row of lanes that holds it. Narrower ones: bit 1
 * picks two bytes, the first for lanes 0-15 and the second for lanes 16-31; bit 2 the row. Both rows of the
 * wave read lane n % 16 of the row picked. Bit 0 is set for blocks of 16 elements. (MLIR's amdgpu dialect,
 * how scaled_ext_packed_matrix is lowered.) */
static void decode_by_lane(emu_wave *w, const emu_instruction *i) {
  const scaled_op *op = &scaled_ops[i->row - emu_vector_scale_rows];
  unsigned select = i->scale_select;
  bool bytes = emu_formats[op->narrow].bits == 8;
  if (select & 1) {
    emu_fault(w, i, -1, "the emulator does not implement scales of blocks of 16 elements (scale_sel:%u)",
              select);
    return;
  }
  emu_block y;
  float scale[EMU_LANES];
  const uint32_t *held = source_b32(w, i, 1, &y);
  LANES {
    unsigned upper = (unsigned)lane >> 4 & 1;
    unsigned byte = bytes ? select >> 1 & 3 : (select & 2) + upper;
    unsigned row = bytes ? select >> 3 & 1 : select >> 2 & 1;
    scale[lane] = emu_f32_from_e8m0(held[16 * row + ((unsigned)lane & 15)] >> (8 * byte));
  }
  decode_many(w, i, op, scale);
}

static void decode_scaled(emu_wave *w, const emu_instruction *i) {
  const scaled_op *op = &scaled_ops[i->row - emu_vector_scale_rows];
  int bits = emu_formats[op->narrow].bits;
  emu_block x, y, low, high;
  const uint32_t *scale = source_b32(w, i, 1, &y);
  if (op->elements > 2) {
    float factor[EMU_LANES];
    LANES factor[lane] = (float)scale_of(scale[lane]);
    decode_many(w, i, op, factor);
    return;
  }
  /* One byte by both bits of op_sel; a pair of bytes by its first bit, a pair of nibbles by both. */
  const uint32_t *p = source_b32(w, i, 0, &x);
  int pick = i->op_sel & 3;
  int offset = op->elements == 1 || bits == 4 ? 8 * pick : 16 * (pick & 1);
  int second = op->elements == 1 ? offset : offset + bits;
  LANES {
    low.lane[lane] =
        wide_code(w, op->wide, (double)emu_decode(op->narrow, p[lane] >> offset) * scale_of(scale[lane]));
    high.lane[lane] =
        wide_code(w, op->wide, (double)emu_decode(op->narrow, p[lane] >> second) * scale_of(scale[lane]));
  }
  if (op->elements == 1) {
    emu_result(w, i, op->wide == WIDE_F32 ? EMU_F32 : EMU_F16, low.lane);
  } else if (op->wide == WIDE_F32) {
    emu_result64(w, i, EMU_PK_F32, low.lane, high.lane);
  } else {
    LANES low.lane[lane] |= high.lane[lane] << 16;
    emu_result(w, i, EMU_B32, low.lane);
  }
}

static void encode_one_stochastically(emu_wave *w, const emu_instruction *i, const scaled_op *op) {
  emu_block x, y, z, old_block, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *random = source_b32(w, i, 1, &y),
                 *scale = source_b32(w, i, 2, &z);
  const uint32_t *old = emu_previous(w, i, EMU_B32, &old_block).lo;
  int shift = 8 * (i->op_sel >> 2 & 3);
  LANES {
    float value = (float)(wide_value(op->wide, p[lane]) / scale_of(scale[lane]));
    uint32_t code = emu_encode_stochastic(op->narrow, value, random[lane], mode_fp16_overflow(w));
    r.lane[lane] = (old[lane] & ~(0xffu << shift)) | code << shift;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

static void encode_scaled(emu_wave *w, const emu_instruction *i) {
  const scaled_op *op = &scaled_ops[i->row - emu_vector_scale_rows];
  int bits = emu_formats[op->narrow].bits, wide_bits = op->wide == WIDE_F32 ? 32 : 16;
  bool saturate = mode_fp16_overflow(w);
  emu_block x, y, z, old_block, r;
  if (op->elements == 1) {
    encode_one_stochastically(w, i, op);
    return;
  }
  if (op->elements > 2) {
    uint32_t out[MAX_ELEMENTS][EMU_LANES];
    const uint32_t *scale = source_b32(w, i, 1, &y);
    const uint32_t(*words)[EMU_LANES] = source_registers(w, i, 0, wide_bits * op->elements);
    if (!words) return;
    for (int e = 0; e < op->elements; ++e)
      LANES {
        double value =
            wide_value(op->wide, get_bits(words, lane, e * wide_bits, wide_bits)) / scale_of(scale[lane]);
        out[e][lane] = emu_encode(op->narrow, value, EMU_ROUND_NEAREST_EVEN, saturate);
      }
    write_packed(w, i, out, op->elements, bits);
    return;
  }
  /* Two f32 in two sources, or two halves in one. */
  const uint32_t *p = source_b32(w, i, 0, &x), *q = p, *scale;
  if (op->wide == WIDE_F32) {
    p = emu_source(w, i, 0, EMU_F32, &x).lo;
    q = emu_source(w, i, 1, EMU_F32, &y).lo;
    scale = source_b32(w, i, 2, &z);
  } else {
    scale = source_b32(w, i, 1, &y);
  }
  const uint32_t *old = emu_previous(w, i, EMU_B32, &old_block).lo;
  int shift = bits == 4 ? 8 * (i->op_sel >> 2 & 3) : 16 * (i->op_sel >> 3 & 1);
  uint32_t field = ((1u << 2 * bits) - 1) << shift;
  LANES {
    double first = wide_value(op->wide, p[lane]),
           second = wide_value(op->wide, op->wide == WIDE_F32 ? q[lane] : p[lane] >> 16);
    uint32_t low = emu_encode(op->narrow, first / scale_of(scale[lane]), EMU_ROUND_NEAREST_EVEN, saturate);
    uint32_t high = emu_encode(op->narrow, second / scale_of(scale[lane]), EMU_ROUND_NEAREST_EVEN, saturate);
    r.lane[lane] = (old[lane] & ~field) | (low | high << bits) << shift;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

static uint32_t next_random(uint32_t random) {
  return random << 1 ^ (random >> 31 ? 197u : 0u);
}

/* Source k, element e of a lane: consecutive registers, or two halves a register. */
static double element_value(const scaled_op *op, const uint32_t (*words)[EMU_LANES], int lane, int e) {
  int bits = op->wide == WIDE_F32 ? 32 : 16;
  return wide_value(op->wide, get_bits(words, lane, e * bits, bits));
}

static void encode_stochastically(emu_wave *w, const emu_instruction *i) {
  const scaled_op *op = &scaled_ops[i->row - emu_vector_scale_rows];
  int bits = emu_formats[op->narrow].bits, wide_bits = op->wide == WIDE_F32 ? 32 : 16;
  bool saturate = mode_fp16_overflow(w);
  emu_block y, z, old_block, r;
  uint32_t out[MAX_ELEMENTS][EMU_LANES];
  const uint32_t *seed = source_b32(w, i, 1, &y), *scale = source_b32(w, i, 2, &z);
  const uint32_t(*words)[EMU_LANES] = source_registers(w, i, 0, wide_bits * op->elements);
  if (!words) return;
  LANES {
    uint32_t random = seed[lane];
    for (int e = 0; e < op->elements; ++e, random = next_random(random)) {
      float value = (float)(element_value(op, words, lane, e) / scale_of(scale[lane]));
      out[e][lane] = emu_encode_stochastic(op->narrow, value, random, saturate);
    }
  }
  if (op->elements > 2) {
    write_packed(w, i, out, op->elements, bits);
    return;
  }
  const uint32_t *old = emu_previous(w, i, EMU_B32, &old_block).lo;
  int shift = 8 * (i->op_sel >> 2 & 3); /* the byte that two nibbles go to */
  LANES r.lane[lane] = (old[lane] & ~(0xffu << shift)) | (out[0][lane] | out[1][lane] << 4) << shift;
  emu_result(w, i, EMU_B32, r.lane);
}

static void encode_interleaved(emu_wave *w, const emu_instruction *i) {
  const scaled_op *op = &scaled_ops[i->row - emu_vector_scale_rows];
  emu_block z;
  uint32_t out[MAX_ELEMENTS][EMU_LANES];
  const uint32_t *scale = source_b32(w, i, 2, &z);
  for (int k = 0; k < 2; ++k) {
    const uint32_t(*words)[EMU_LANES] = source_registers(w, i, k, 32 * op->elements);
    if (!words) return;
    for (int e = 0; e < op->elements; ++e)
      LANES out[2 * e + k][lane] =
          emu_encode(op->narrow, element_value(op, words, lane, e) / scale_of(scale[lane]),
                     EMU_ROUND_NEAREST_EVEN, mode_fp16_overflow(w));
  }
  write_packed(w, i, out, 2 * op->elements, emu_formats[op->narrow].bits);
}

/* In the order of scaled_ops. */
const emu_row emu_vector_scale_rows[] = {
#define X(name, narrow, wide, elements) {#name, decode_scaled, 1, 0},
    DECODE_LIST(X)
#undef X
#define X(name, narrow, wide, elements) {#name, decode_by_lane, 1, 0},
        DECODE_BY_LANE_LIST(X)
#undef X
#define X(name, narrow, wide, elements) {#name, encode_scaled, 1, 0},
            ENCODE_LIST(X)
#undef X
#define X(name, narrow, wide, elements) {#name, encode_stochastically, 1, 0},
                STOCHASTIC_LIST(X)
#undef X
#define X(name, narrow, wide, elements) {#name, encode_interleaved, 1, 0},
                    INTERLEAVED_LIST(X)
#undef X
                        END_OF_ROWS,
};
