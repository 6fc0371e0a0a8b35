/* Packed arithmetic (two results a lane) and dot products.
 *
 * Dot products of floats are summed in f64, where every product is exact, and rounded once; the hardware may
 * round or flush between the terms. Dot products of integers are exact, then wrap, or saturate with clamp. */
#include "vector.h"

/* ---- two f32 ---- */

static void flush_pair(emu_lanes p, block_pair *block) {
  LANES {
    block->lo.lane[lane] = flush_f32(p.lo[lane]);
    block->hi.lane[lane] = flush_f32(p.hi[lane]);
  }
}

static emu_lanes source_pk_f32(emu_wave *w, const emu_instruction *i, int k, block_pair *block) {
  emu_lanes p = source_64(w, i, k, EMU_PK_F32, block);
  if (!mode_flushes_input(w, MODE_F32)) return p;
  block_pair copy;
  flush_pair(p, &copy); /* aside: p may lie in `block` with its halves swapped */
  *block = copy;
  return (emu_lanes){block->lo.lane, block->hi.lane};
}

static void result_pk_f32(emu_wave *w, const emu_instruction *i, block_pair *r) {
  if (mode_flushes_output(w, MODE_F32)) flush_pair((emu_lanes){r->lo.lane, r->hi.lane}, r);
  emu_result64(w, i, EMU_PK_F32, r->lo.lane, r->hi.lane);
}

EMU_HOT static void add_loop(const uint32_t *p, const uint32_t *q, uint32_t *restrict r) {
  LANES r[lane] = emu_bits(emu_float(p[lane]) + emu_float(q[lane]));
}
EMU_HOT static void multiply_loop(const uint32_t *p, const uint32_t *q, uint32_t *restrict r) {
  LANES r[lane] = emu_bits(emu_float(p[lane]) * emu_float(q[lane]));
}
EMU_HOT static void fma_loop(const uint32_t *p, const uint32_t *q, const uint32_t *s, uint32_t *restrict r) {
  LANES r[lane] = emu_bits(fmaf(emu_float(p[lane]), emu_float(q[lane]), emu_float(s[lane])));
}

static void pk_binary_f32(emu_wave *w, const emu_instruction *i,
                          void (*loop)(const uint32_t *, const uint32_t *, uint32_t *)) {
  block_pair x, y, r;
  emu_lanes p = source_pk_f32(w, i, 0, &x), q = source_pk_f32(w, i, 1, &y);
  rounding_begin(w, MODE_F32);
  loop(p.lo, q.lo, r.lo.lane);
  loop(p.hi, q.hi, r.hi.lane);
  rounding_end(w, MODE_F32);
  result_pk_f32(w, i, &r);
}
static void v_pk_add_f32(emu_wave *w, const emu_instruction *i) {
  pk_binary_f32(w, i, add_loop);
}
static void v_pk_mul_f32(emu_wave *w, const emu_instruction *i) {
  pk_binary_f32(w, i, multiply_loop);
}

static void v_pk_fma_f32(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, z, r;
  emu_lanes p = source_pk_f32(w, i, 0, &x), q = source_pk_f32(w, i, 1, &y), s = source_pk_f32(w, i, 2, &z);
  rounding_begin(w, MODE_F32);
  fma_loop(p.lo, q.lo, s.lo, r.lo.lane);
  fma_loop(p.hi, q.hi, s.hi, r.hi.lane);
  rounding_end(w, MODE_F32);
  result_pk_f32(w, i, &r);
}

/* op_sel picks the half of source 0 for the low word and, unlike elsewhere, op_sel[1] the half of source 1
 * for the high word. */
static void v_pk_mov_b32(emu_wave *w, const emu_instruction *i) {
  block_pair x, y, r;
  const emu_operand *o[2] = {&i->operand[i->source0], &i->operand[i->source0 + 1]};
  emu_lanes p[2];
  block_pair *blocks[2] = {&x, &y};
  for (int k = 0; k < 2; ++k)
    p[k] = source_64(w, i, k, EMU_B64, blocks[k]);
  for (int k = 0; k < 2; ++k)
    if (o[k]->kind != EMU_VECTOR && o[k]->kind != EMU_SCALAR)
      p[k].hi = p[k].lo; /* a constant is in both halves */
  const uint32_t *low = i->op_sel & 1 ? p[0].hi : p[0].lo, *high = i->op_sel & 2 ? p[1].hi : p[1].lo;
  LANES {
    r.lo.lane[lane] = low[lane];
    r.hi.lane[lane] = high[lane];
  }
  emu_result64(w, i, EMU_PK_B32, r.lo.lane, r.hi.lane);
}

/* ---- two 16-bit integers ---- */

EMU_INLINE int32_t low_signed(uint32_t a) {
  return (int16_t)(uint16_t)a;
}
EMU_INLINE int32_t high_signed(uint32_t a) {
  return (int32_t)a >> 16;
}
EMU_INLINE int32_t low_unsigned(uint32_t a) {
  return (int32_t)(a & 0xffff);
}
EMU_INLINE int32_t high_unsigned(uint32_t a) {
  return (int32_t)(a >> 16);
}
EMU_INLINE uint32_t pack(int32_t low, int32_t high) {
  return ((uint32_t)low & 0xffff) | (uint32_t)high << 16;
}
EMU_INLINE int32_t clamp_i16(int32_t v) {
  return v < -0x8000 ? -0x8000 : v > 0x7fff ? 0x7fff : v;
}
EMU_INLINE int32_t clamp_u16(int32_t v) {
  return v < 0 ? 0 : v > 0xffff ? 0xffff : v;
}
EMU_INLINE int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}
EMU_INLINE int32_t larger(int32_t a, int32_t b) {
  return a > b ? a : b;
}

/* `sign`: signed or unsigned, names the readers; the expression gives one half from a, b, c. */
#define PACKED_16(name, sign, sources, expression)                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = emu_source(w, i, 0, EMU_PK_B16, &x).lo, *q = p, *s = p;                              \
    if (sources > 1) q = emu_source(w, i, 1, EMU_PK_B16, &y).lo;                                             \
    if (sources > 2) s = emu_source(w, i, 2, EMU_PK_B16, &z).lo;                                             \
    bool saturate = i->clamp;                                                                                \
    LANES {                                                                                                  \
      int32_t a = low_##sign(p[lane]), b = low_##sign(q[lane]), c = low_##sign(s[lane]);                     \
      (void)c, (void)saturate;                                                                               \
      int32_t low = (int32_t)(expression);                                                                   \
      a = high_##sign(p[lane]), b = high_##sign(q[lane]), c = high_##sign(s[lane]);                          \
      int32_t high = (int32_t)(expression);                                                                  \
      r.lane[lane] = pack(low, high);                                                                        \
    }                                                                                                        \
    emu_result(w, i, EMU_PK_B16, r.lane);                                                                    \
  }

PACKED_16(v_pk_add_i16, signed, 2, saturate ? clamp_i16(a + b) : a + b)
PACKED_16(v_pk_sub_i16, signed, 2, saturate ? clamp_i16(a - b) : a - b)
PACKED_16(v_pk_add_u16, unsigned, 2, saturate ? clamp_u16(a + b) : a + b)
PACKED_16(v_pk_sub_u16, unsigned, 2, saturate ? clamp_u16(a - b) : a - b)
PACKED_16(v_pk_mul_lo_u16, unsigned, 2, (uint32_t)a *(uint32_t)b)
PACKED_16(v_pk_mad_i16, signed, 3, saturate ? clamp_i16(a *b + c) : a *b + c)
PACKED_16(v_pk_mad_u16, unsigned, 3,
          saturate ? ((uint32_t)a *(uint32_t)b + (uint32_t)c > 0xffff ? 0xffffu : (uint32_t)(a * b + c))
                   : (uint32_t)a *(uint32_t)b + (uint32_t)c)
PACKED_16(v_pk_min_i16, signed, 2, smaller(a, b))
PACKED_16(v_pk_max_i16, signed, 2, larger(a, b))
PACKED_16(v_pk_min_u16, unsigned, 2, smaller(a, b))
PACKED_16(v_pk_max_u16, unsigned, 2, larger(a, b))
PACKED_16(v_pk_min3_i16, signed, 3, smaller(smaller(a, b), c))
PACKED_16(v_pk_max3_i16, signed, 3, larger(larger(a, b), c))
PACKED_16(v_pk_min3_u16, unsigned, 3, smaller(smaller(a, b), c))
PACKED_16(v_pk_max3_u16, unsigned, 3, larger(larger(a, b), c))
PACKED_16(v_pk_add_min_i16, signed, 3,
          smaller(low_signed((uint32_t)(saturate ? clamp_i16(a + b) : a + b)), c))
PACKED_16(v_pk_add_max_i16, signed, 3, larger(low_signed((uint32_t)(saturate ? clamp_i16(a + b) : a + b)), c))
PACKED_16(v_pk_add_min_u16, unsigned, 3,
          smaller(low_unsigned((uint32_t)(saturate ? clamp_u16(a + b) : a + b)), c))
PACKED_16(v_pk_add_max_u16, unsigned, 3,
          larger(low_unsigned((uint32_t)(saturate ? clamp_u16(a + b) : a + b)), c))
PACKED_16(v_pk_lshlrev_b16, unsigned, 2, (uint32_t)b << (a & 15))
PACKED_16(v_pk_lshrrev_b16, unsigned, 2, b >> (a & 15))
PACKED_16(v_pk_ashrrev_i16, signed, 2, b >> (a & 15))

/* ---- two f16 or bf16 ---- */

EMU_INLINE float half_value(emu_type type, uint32_t bits) {
  return type == EMU_PK_F16 ? emu_f32_from_f16(bits & 0xffff) : emu_f32_from_bf16(bits & 0xffff);
}

static const uint32_t *source_pk_half(emu_wave *w, const emu_instruction *i, int k, emu_type type,
                                      emu_block *block) {
  const uint32_t *p = emu_source(w, i, k, type, block).lo;
  if (type != EMU_PK_F16 || !mode_flushes_input(w, MODE_F16_F64)) return p;
  LANES block->lane[lane] = flush_f16(p[lane] & 0xffff) | flush_f16(p[lane] >> 16) << 16;
  return block->lane;
}

/* Rounds f32 bits in `low` and `high` to the halves and writes them. */
static void result_pk_half(emu_wave *w, const emu_instruction *i, emu_type type, const emu_block *low,
                           const emu_block *high) {
  emu_block r;
  int round = mode_round(w, type == EMU_PK_F16 ? MODE_F16_F64 : MODE_F32);
  bool saturate = mode_fp16_overflow(w) && type == EMU_PK_F16;
  if (round || saturate) {
    emu_format_id format = type == EMU_PK_F16 ? EMU_FORMAT_F16 : EMU_FORMAT_BF16;
    LANES r.lane[lane] = emu_encode(format, (double)emu_float(low->lane[lane]), (emu_round)round, saturate) |
                         emu_encode(format, (double)emu_float(high->lane[lane]), (emu_round)round, saturate)
                             << 16;
  } else if (type == EMU_PK_F16) {
    LANES r.lane[lane] =
        emu_f16_from_f32(emu_float(low->lane[lane])) | emu_f16_from_f32(emu_float(high->lane[lane])) << 16;
  } else {
    LANES r.lane[lane] =
        emu_bf16_from_f32(emu_float(low->lane[lane])) | emu_bf16_from_f32(emu_float(high->lane[lane])) << 16;
  }
  if (type == EMU_PK_F16 && mode_flushes_output(w, MODE_F16_F64))
    LANES r.lane[lane] = flush_f16(r.lane[lane] & 0xffff) | flush_f16(r.lane[lane] >> 16) << 16;
  emu_result(w, i, type, r.lane);
}

#define PACKED_HALF(name, type, sources, expression)                                                         \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, low, high;                                                                            \
    const uint32_t *p = source_pk_half(w, i, 0, type, &x), *q = source_pk_half(w, i, 1, type, &y), *s = p;   \
    if (sources > 2) s = source_pk_half(w, i, 2, type, &z);                                                  \
    LANES {                                                                                                  \
      float a = half_value(type, p[lane]), b = half_value(type, q[lane]), c = half_value(type, s[lane]);     \
      (void)c;                                                                                               \
      low.lane[lane] = emu_bits(expression);                                                                 \
    }                                                                                                        \
    LANES {                                                                                                  \
      float a = half_value(type, p[lane] >> 16), b = half_value(type, q[lane] >> 16);                        \
      float c = half_value(type, s[lane] >> 16);                                                             \
      (void)c;                                                                                               \
      high.lane[lane] = emu_bits(expression);                                                                \
    }                                                                                                        \
    result_pk_half(w, i, type, &low, &high);                                                                 \
  }

EMU_INLINE float fma_half(float a, float b, float c) {
  return to_odd_f32(fma_to_odd((double)a, (double)b, (double)c));
}

PACKED_HALF(v_pk_add_f16, EMU_PK_F16, 2, add_f16(a, b))
PACKED_HALF(v_pk_mul_f16, EMU_PK_F16, 2, a *b)
PACKED_HALF(v_pk_fma_f16, EMU_PK_F16, 3, fma_half(a, b, c))
PACKED_HALF(v_pk_min_f16, EMU_PK_F16, 2, min_number(a, b))
PACKED_HALF(v_pk_max_f16, EMU_PK_F16, 2, max_number(a, b))
PACKED_HALF(v_pk_min3_num_f16, EMU_PK_F16, 3, min_number(min_number(a, b), c))
PACKED_HALF(v_pk_max3_num_f16, EMU_PK_F16, 3, max_number(max_number(a, b), c))
PACKED_HALF(v_pk_minimum_f16, EMU_PK_F16, 2, minimum(a, b))
PACKED_HALF(v_pk_maximum_f16, EMU_PK_F16, 2, maximum(a, b))
PACKED_HALF(v_pk_minimum3_f16, EMU_PK_F16, 3, minimum(minimum(a, b), c))
PACKED_HALF(v_pk_maximum3_f16, EMU_PK_F16, 3, maximum(maximum(a, b), c))
PACKED_HALF(v_pk_add_bf16, EMU_PK_BF16, 2, add_bf16(a, b))
PACKED_HALF(v_pk_mul_bf16, EMU_PK_BF16, 2, a *b)
PACKED_HALF(v_pk_fma_bf16, EMU_PK_BF16, 3, fma_half(a, b, c))
PACKED_HALF(v_pk_min_num_bf16, EMU_PK_BF16, 2, min_number(a, b))
PACKED_HALF(v_pk_max_num_bf16, EMU_PK_BF16, 2, max_number(a, b))

static void v_pk_fmac_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, z, low, high;
  const uint32_t *p = source_pk_half(w, i, 0, EMU_PK_F16, &x), *q = source_pk_half(w, i, 1, EMU_PK_F16, &y);
  const uint32_t *s = emu_previous(w, i, EMU_B32, &z).lo;
  LANES {
    low.lane[lane] = emu_bits(fma_half(half_value(EMU_PK_F16, p[lane]), half_value(EMU_PK_F16, q[lane]),
                                       half_value(EMU_PK_F16, s[lane])));
    high.lane[lane] =
        emu_bits(fma_half(half_value(EMU_PK_F16, p[lane] >> 16), half_value(EMU_PK_F16, q[lane] >> 16),
                          half_value(EMU_PK_F16, s[lane] >> 16)));
  }
  result_pk_half(w, i, EMU_PK_F16, &low, &high);
}

/* ---- dot products ---- */

/* Two halves of each source and an f32: the accumulator is source 2, or the destination of the v_dot2c forms.
 */
static void dot2_f32(emu_wave *w, const emu_instruction *i, emu_type type, bool accumulate) {
  emu_block x, y, z, r;
  const uint32_t *p = source_pk_half(w, i, 0, type, &x), *q = source_pk_half(w, i, 1, type, &y);
  const uint32_t *s = accumulate ? emu_previous(w, i, EMU_F32, &z).lo : source_f32(w, i, 2, &z);
  LANES {
    double low = (double)half_value(type, p[lane]) * (double)half_value(type, q[lane]);
    double high = (double)half_value(type, p[lane] >> 16) * (double)half_value(type, q[lane] >> 16);
    r.lane[lane] = emu_bits((float)(low + high + (double)emu_float(s[lane])));
  }
  result_f32(w, i, &r);
}
static void v_dot2_f32_f16(emu_wave *w, const emu_instruction *i) {
  dot2_f32(w, i, EMU_PK_F16, false);
}
static void v_dot2_f32_bf16(emu_wave *w, const emu_instruction *i) {
  dot2_f32(w, i, EMU_PK_BF16, false);
}
static void v_dot2c_f32_f16(emu_wave *w, const emu_instruction *i) {
  dot2_f32(w, i, EMU_PK_F16, true);
}
static void v_dot2c_f32_bf16(emu_wave *w, const emu_instruction *i) {
  dot2_f32(w, i, EMU_PK_BF16, true);
}

/* The same with a 16-bit accumulator and result. */
static void dot2_half(emu_wave *w, const emu_instruction *i, emu_type pair, emu_type one) {
  emu_block x, y, z, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_B32, &x).lo, *q = emu_source(w, i, 1, EMU_B32, &y).lo;
  const uint32_t *s = emu_source(w, i, 2, one, &z).lo;
  emu_format_id format = one == EMU_F16 ? EMU_FORMAT_F16 : EMU_FORMAT_BF16;
  LANES {
    double low = (double)half_value(pair, p[lane]) * (double)half_value(pair, q[lane]);
    double high = (double)half_value(pair, p[lane] >> 16) * (double)half_value(pair, q[lane] >> 16);
    r.lane[lane] =
        emu_encode(format, low + high + (double)half_value(pair, s[lane]), EMU_ROUND_NEAREST_EVEN, false);
  }
  emu_result(w, i, one, r.lane);
}
static void v_dot2_f16_f16(emu_wave *w, const emu_instruction *i) {
  dot2_half(w, i, EMU_PK_F16, EMU_F16);
}
static void v_dot2_bf16_bf16(emu_wave *w, const emu_instruction *i) {
  dot2_half(w, i, EMU_PK_BF16, EMU_BF16);
}

static float byte_value(uint32_t code, bool fp8) {
  return fp8 ? emu_f32_from_fp8(code) : emu_f32_from_bf8(code);
}

static void dot4_f32(emu_wave *w, const emu_instruction *i, bool a_fp8, bool b_fp8) {
  emu_block x, y, z, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y), *s = source_f32(w, i, 2, &z);
  bool negate = i->neg_lo & 4, absolute = i->neg_hi & 4;
  LANES {
    double sum = (double)emu_float(s[lane]);
    if (absolute) sum = fabs(sum);
    if (negate) sum = -sum;
    for (int n = 0; n < 4; ++n)
      sum += (double)byte_value(p[lane] >> (8 * n), a_fp8) * (double)byte_value(q[lane] >> (8 * n), b_fp8);
    r.lane[lane] = emu_bits((float)sum);
  }
  result_f32(w, i, &r);
}
static void v_dot4_f32_fp8_fp8(emu_wave *w, const emu_instruction *i) {
  dot4_f32(w, i, true, true);
}
static void v_dot4_f32_fp8_bf8(emu_wave *w, const emu_instruction *i) {
  dot4_f32(w, i, true, false);
}
static void v_dot4_f32_bf8_fp8(emu_wave *w, const emu_instruction *i) {
  dot4_f32(w, i, false, true);
}
static void v_dot4_f32_bf8_bf8(emu_wave *w, const emu_instruction *i) {
  dot4_f32(w, i, false, false);
}

EMU_INLINE int64_t element(uint32_t word, int bits, int n, bool is_signed) {
  uint32_t top = word << (32 - bits * (n + 1));
  return is_signed ? (int64_t)((int32_t)top >> (32 - bits)) : (int64_t)(top >> (32 - bits));
}

/* Sum over 32/bits elements of a·b, plus an accumulator (source 2, or the destination). */
static void dot_integer(emu_wave *w, const emu_instruction *i, int bits, bool a_signed, bool b_signed,
                        bool accumulate) {
  emu_block x, y, z, r;
  emu_type pair = bits == 16 ? EMU_PK_B16 : EMU_B32;
  const uint32_t *p = emu_source(w, i, 0, pair, &x).lo, *q = emu_source(w, i, 1, pair, &y).lo;
  const uint32_t *s = accumulate ? emu_previous(w, i, EMU_B32, &z).lo : source_b32(w, i, 2, &z);
  bool is_signed = a_signed || b_signed || strstr(i->row->name, "_i32");
  LANES {
    int64_t sum = is_signed ? (int64_t)(int32_t)s[lane] : (int64_t)s[lane];
    for (int n = 0; n < 32 / bits; ++n)
      sum += element(p[lane], bits, n, a_signed) * element(q[lane], bits, n, b_signed);
    if (i->clamp && is_signed) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    if (i->clamp && !is_signed) sum = sum > UINT32_MAX ? UINT32_MAX : sum;
    r.lane[lane] = (uint32_t)sum;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_dot2_i32_i16(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 16, true, true, false);
}
static void v_dot2_u32_u16(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 16, false, false, false);
}
static void v_dot4_i32_i8(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 8, true, true, false);
}
static void v_dot4_u32_u8(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 8, false, false, false);
}
static void v_dot8_i32_i4(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 4, true, true, false);
}
static void v_dot8_u32_u4(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 4, false, false, false);
}
static void v_dot2c_i32_i16(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 16, true, true, true);
}
static void v_dot4c_i32_i8(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 8, true, true, true);
}
static void v_dot8c_i32_i4(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 4, true, true, true);
}
/* neg_lo says which source is signed. */
static void v_dot4_i32_iu8(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 8, i->neg_lo & 1, i->neg_lo & 2, false);
}
static void v_dot8_i32_iu4(emu_wave *w, const emu_instruction *i) {
  dot_integer(w, i, 4, i->neg_lo & 1, i->neg_lo & 2, false);
}

const emu_row emu_vector_packed_rows[] = {
    ROW(v_pk_add_f32),
    ROW(v_pk_mul_f32),
    ROW(v_pk_fma_f32),
    ROW(v_pk_mov_b32),
    ROW(v_pk_add_i16),
    ROW(v_pk_sub_i16),
    ROW(v_pk_add_u16),
    ROW(v_pk_sub_u16),
    ROW(v_pk_mul_lo_u16),
    ROW(v_pk_mad_i16),
    ROW(v_pk_mad_u16),
    ROW(v_pk_min_i16),
    ROW(v_pk_max_i16),
    ROW(v_pk_min_u16),
    ROW(v_pk_max_u16),
    ROW(v_pk_min3_i16),
    ROW(v_pk_max3_i16),
    ROW(v_pk_min3_u16),
    ROW(v_pk_max3_u16),
    ROW(v_pk_add_min_i16),
    ROW(v_pk_add_max_i16),
    ROW(v_pk_add_min_u16),
    ROW(v_pk_add_max_u16),
    ROW(v_pk_lshlrev_b16),
    ROW(v_pk_lshrrev_b16),
    ROW(v_pk_ashrrev_i16),
    ROW(v_pk_add_f16),
    ROW(v_pk_mul_f16),
    ROW(v_pk_fma_f16),
    ROW(v_pk_fmac_f16),
    ROW(v_pk_min_f16),
    ROW(v_pk_max_f16),
    ROW_AS(v_pk_min_num_f16, v_pk_min_f16),
    ROW_AS(v_pk_max_num_f16, v_pk_max_f16),
    ROW(v_pk_min3_num_f16),
    ROW(v_pk_max3_num_f16),
    ROW(v_pk_minimum_f16),
    ROW(v_pk_maximum_f16),
    ROW(v_pk_minimum3_f16),
    ROW(v_pk_maximum3_f16),
    ROW(v_pk_add_bf16),
    ROW(v_pk_mul_bf16),
    ROW(v_pk_fma_bf16),
    ROW(v_pk_min_num_bf16),
    ROW(v_pk_max_num_bf16),
    ROW(v_dot2_f32_f16),
    ROW(v_dot2_f32_bf16),
    ROW(v_dot2c_f32_f16),
    ROW(v_dot2c_f32_bf16),
    ROW(v_dot2_f16_f16),
    ROW(v_dot2_bf16_bf16),
    ROW(v_dot4_f32_fp8_fp8),
    ROW(v_dot4_f32_fp8_bf8),
    ROW(v_dot4_f32_bf8_fp8),
    ROW(v_dot4_f32_bf8_bf8),
    ROW(v_dot2_i32_i16),
    ROW(v_dot2_u32_u16),
    ROW(v_dot4_i32_i8),
    ROW(v_dot4_u32_u8),
    ROW(v_dot8_i32_i4),
    ROW(v_dot8_u32_u4),
    ROW(v_dot2c_i32_i16),
    ROW(v_dot4c_i32_i8),
    ROW(v_dot8c_i32_i4),
    ROW(v_dot4_i32_iu8),
    ROW(v_dot8_i32_iu4),
    END_OF_ROWS,
};
