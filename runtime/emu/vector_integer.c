/* Moves, bit operations, integer arithmetic, carries, and the select. */
#include "vector.h"

/* ---- shapes of handlers: sources p, q, s; the expression is the result of one lane ------------------------ */

#define B32_1(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_b32(w, i, 0, &x);                                                             \
    LANES {                                                                                                  \
      uint32_t a = p[lane];                                                                                  \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

#define B32_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);                               \
    LANES {                                                                                                  \
      uint32_t a = p[lane], b = q[lane];                                                                     \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

#define B32_3(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y), *s = source_b32(w, i, 2, &z); \
    LANES {                                                                                                  \
      uint32_t a = p[lane], b = q[lane], c = s[lane];                                                        \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

/* 16-bit sources come zero-extended; the result's upper half is ignored. */
#define B16_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_b16(w, i, 0, &x), *q = source_b16(w, i, 1, &y);                               \
    LANES {                                                                                                  \
      uint32_t a = p[lane] & 0xffff, b = q[lane] & 0xffff;                                                   \
      r.lane[lane] = (expression) & 0xffff;                                                                  \
    }                                                                                                        \
    emu_result(w, i, EMU_B16, r.lane);                                                                       \
  }

#define B16_3(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_b16(w, i, 0, &x), *q = source_b16(w, i, 1, &y), *s = source_b16(w, i, 2, &z); \
    LANES {                                                                                                  \
      uint32_t a = p[lane] & 0xffff, b = q[lane] & 0xffff, c = s[lane] & 0xffff;                             \
      r.lane[lane] = (expression) & 0xffff;                                                                  \
    }                                                                                                        \
    emu_result(w, i, EMU_B16, r.lane);                                                                       \
  }

EMU_INLINE int32_t sign16(uint32_t a) { return (int16_t)(uint16_t)a; }
EMU_INLINE int32_t sign24(uint32_t a) { return (int32_t)(a << 8) >> 8; }
EMU_INLINE uint32_t zero24(uint32_t a) { return a & 0xffffff; }
EMU_INLINE int32_t signed32(uint32_t a) { return (int32_t)a; }
EMU_INLINE uint32_t high_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
EMU_INLINE uint32_t high_i32(int64_t a, int64_t b) { return (uint32_t)((uint64_t)(a * b) >> 32); }

EMU_INLINE int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
EMU_INLINE int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
EMU_INLINE uint32_t smaller_u(uint32_t a, uint32_t b) { return a < b ? a : b; }
EMU_INLINE uint32_t larger_u(uint32_t a, uint32_t b) { return a > b ? a : b; }
EMU_INLINE int32_t middle(int32_t a, int32_t b, int32_t c) { return larger(smaller(a, b), smaller(larger(a, b), c)); }
EMU_INLINE uint32_t middle_u(uint32_t a, uint32_t b, uint32_t c) {
  return larger_u(smaller_u(a, b), smaller_u(larger_u(a, b), c));
}

/* Saturation, which the clamp bit asks for. */
EMU_INLINE uint32_t clamp_u32(int64_t v) { return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v; }
EMU_INLINE uint32_t clamp_i32(int64_t v) { return (uint32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v); }
EMU_INLINE uint32_t clamp_u16(int32_t v) { return v < 0 ? 0 : v > 0xffff ? 0xffff : (uint32_t)v; }
EMU_INLINE uint32_t clamp_i16(int32_t v) { return (uint32_t)(v < -0x8000 ? -0x8000 : v > 0x7fff ? 0x7fff : v); }

/* ---- moves -------------------------------------------------------------------------------------------------- */

static void v_mov_b32(emu_wave *w, const emu_instruction *i) {
  emu_block x;
  emu_result(w, i, EMU_B32, source_b32(w, i, 0, &x));
}

static void v_mov_b64(emu_wave *w, const emu_instruction *i) {
  block_pair x, r;
  emu_lanes p = source_64(w, i, 0, EMU_B64, &x);
  LANES set_pair(&r, lane, pair_at(p, lane));
  emu_result64(w, i, EMU_B64, r.lo.lane, r.hi.lane);
}

static void v_nop(emu_wave *w, const emu_instruction *i) { (void)w, (void)i; }

static void v_swap_b32(emu_wave *w, const emu_instruction *i) {
  uint32_t *a = emu_registers(w, &i->operand[0])[0], *b = emu_registers(w, &i->operand[1])[0];
  uint64_t exec = emu_exec(w);
  LANES {
    uint32_t mask = 0u - (uint32_t)(exec >> lane & 1), difference = (a[lane] ^ b[lane]) & mask;
    a[lane] ^= difference;
    b[lane] ^= difference;
  }
}

/* Relative moves: M0 is added to the register number of the source (s), the destination (d), or both. */
static void move_relative(emu_wave *w, const emu_instruction *i, uint32_t source_offset, uint32_t destination_offset) {
  uint32_t to = emu_row_of(w, &i->operand[0]) + destination_offset;
  const emu_operand *from = &i->operand[1];
  emu_block x;
  const uint32_t *p;
  if (from->kind == EMU_VECTOR) {
    uint32_t row = emu_row_of(w, from) + source_offset;
    if (row >= w->vector_rows) {
      emu_fault(w, i, -1, "relative move reads register %u of %u", (unsigned)row, (unsigned)w->vector_rows);
      return;
    }
    p = w->v[row];
  } else {
    p = source_b32(w, i, 0, &x);
  }
  if (to >= w->vector_rows) {
    emu_fault(w, i, -1, "relative move writes register %u of %u", (unsigned)to, (unsigned)w->vector_rows);
    return;
  }
  uint64_t exec = emu_exec(w);
  uint32_t *r = w->v[to];
  LANES r[lane] = exec >> lane & 1 ? p[lane] : r[lane];
}

static void v_movreld_b32(emu_wave *w, const emu_instruction *i) { move_relative(w, i, 0, w->s[EMU_S_M0]); }
static void v_movrels_b32(emu_wave *w, const emu_instruction *i) { move_relative(w, i, w->s[EMU_S_M0], 0); }
static void v_movrelsd_b32(emu_wave *w, const emu_instruction *i) {
  move_relative(w, i, w->s[EMU_S_M0], w->s[EMU_S_M0]);
}
/* M0[7:0] offsets the source, M0[23:16] the destination. */
static void v_movrelsd_2_b32(emu_wave *w, const emu_instruction *i) {
  move_relative(w, i, w->s[EMU_S_M0] & 0xff, w->s[EMU_S_M0] >> 16 & 0xff);
}

static void v_cndmask_b32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  /* neg and abs act on the bits, as in every float instruction; without them the type does not matter. */
  const uint32_t *p = emu_source(w, i, 0, EMU_F32, &x).lo, *q = emu_source(w, i, 1, EMU_F32, &y).lo;
  uint64_t mask = emu_source_mask(w, i, 2);
  uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t take_low = 0u - (low >> lane & 1), take_high = 0u - (high >> lane & 1);
    r.lane[lane] = (p[lane] & ~take_low) | (q[lane] & take_low);
    r.lane[lane + 32] = (p[lane + 32] & ~take_high) | (q[lane + 32] & take_high);
  }
  emu_result(w, i, EMU_B32, r.lane);
}

static void v_cndmask_b16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_F16, &x).lo, *q = emu_source(w, i, 1, EMU_F16, &y).lo;
  uint64_t mask = emu_source_mask(w, i, 2);
  LANES r.lane[lane] = mask >> lane & 1 ? q[lane] : p[lane];
  emu_result(w, i, EMU_B16, r.lane);
}

/* ---- bit operations ----------------------------------------------------------------------------------------- */

EMU_INLINE uint32_t reverse_bits(uint32_t a) {
  a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
  a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
  a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
  a = (a >> 8 & 0x00ff00ffu) | (a & 0x00ff00ffu) << 8;
  return a >> 16 | a << 16;
}
EMU_INLINE uint32_t count_bits(uint32_t a) {
  a -= a >> 1 & 0x55555555u;
  a = (a & 0x33333333u) + (a >> 2 & 0x33333333u);
  a = (a + (a >> 4)) & 0x0f0f0f0fu;
  return a * 0x01010101u >> 24;
}
/* Zeros above the highest set bit; -1 for 0. */
EMU_INLINE uint32_t leading_zeros(uint32_t a) {
  uint32_t below = a | a >> 1;
  below |= below >> 2;
  below |= below >> 4;
  below |= below >> 8;
  below |= below >> 16;
  return a ? 32 - count_bits(below) : UINT32_MAX;
}
/* Bits equal to the sign bit, counted from it; -1 when all are. */
EMU_INLINE uint32_t leading_sign_bits(uint32_t a) { return leading_zeros(a ^ (uint32_t)(signed32(a) >> 31)); }
EMU_INLINE uint32_t trailing_zeros(uint32_t a) { return a ? count_bits((a & (0u - a)) - 1) : UINT32_MAX; }

EMU_INLINE uint32_t field_u32(uint32_t a, uint32_t offset, uint32_t width) {
  offset &= 31, width &= 31;
  return a >> offset & ((1u << width) - 1);
}
EMU_INLINE uint32_t field_i32(uint32_t a, uint32_t offset, uint32_t width) {
  offset &= 31, width &= 31;
  if (!width) return 0;
  if (offset + width >= 32) return (uint32_t)(signed32(a) >> offset);
  return (uint32_t)(signed32(a << (32 - offset - width)) >> (32 - width));
}

/* One byte of v_perm_b32: a selector 0-3 picks from b, 4-7 from a, 8-11 repeats a sign bit, 12 is 0, above 0xff. */
EMU_INLINE uint32_t permuted_byte(uint32_t a, uint32_t b, uint32_t selector) {
  selector &= 0xff;
  if (selector >= 13) return 0xff;
  if (selector == 12) return 0;
  uint64_t both = (uint64_t)a << 32 | b;
  if (selector >= 8) return both >> (16 * (selector - 8) + 15) & 1 ? 0xff : 0;
  return (uint32_t)(both >> (8 * selector)) & 0xff;
}
EMU_INLINE uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  return permuted_byte(a, b, c) | permuted_byte(a, b, c >> 8) << 8 | permuted_byte(a, b, c >> 16) << 16 |
         permuted_byte(a, b, c >> 24) << 24;
}

/* Any function of three bits: bit n of `truth` is the result for (a, b, c) = the bits of n, a the highest. */
EMU_INLINE uint32_t any_of_three(uint32_t a, uint32_t b, uint32_t c, uint32_t truth) {
  uint32_t r = 0;
  for (uint32_t n = 0; n < 8; ++n) {
    uint32_t term = (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    r |= truth >> n & 1 ? term : 0;
  }
  return r;
}

B32_1(v_not_b32, ~a)
B32_1(v_bfrev_b32, reverse_bits(a))
B32_1(v_ffbh_u32, leading_zeros(a))
B32_1(v_ffbh_i32, leading_sign_bits(a))
B32_1(v_ffbl_b32, trailing_zeros(a))
B32_2(v_and_b32, a &b)
B32_2(v_or_b32, a | b)
B32_2(v_xor_b32, a ^ b)
B32_2(v_xnor_b32, ~(a ^ b))
B32_2(v_lshlrev_b32, b << (a & 31))
B32_2(v_lshrrev_b32, b >> (a & 31))
B32_2(v_ashrrev_i32, (uint32_t)(signed32(b) >> (a & 31)))
B32_2(v_bfm_b32, ((1u << (a & 31)) - 1) << (b & 31))
B32_2(v_bcnt_u32_b32, count_bits(a) + b)
B32_3(v_bfe_u32, field_u32(a, b, c))
B32_3(v_bfe_i32, field_i32(a, b, c))
B32_3(v_bfi_b32, (a & b) | (~a & c))
B32_3(v_alignbit_b32, (uint32_t)(((uint64_t)a << 32 | b) >> (c & 31)))
B32_3(v_alignbyte_b32, (uint32_t)(((uint64_t)a << 32 | b) >> (8 * (c & 3))))
B32_3(v_perm_b32, permute(a, b, c))
B32_3(v_and_or_b32, (a & b) | c)
B32_3(v_or3_b32, a | b | c)
B32_3(v_xor3_b32, a ^ b ^ c)
B32_3(v_lshl_or_b32, a << (b & 31) | c)
B32_3(v_lshl_add_u32, (a << (b & 31)) + c)
B32_3(v_add_lshl_u32, (a + b) << (c & 31))
B32_3(v_xad_u32, (a ^ b) + c)
B32_3(v_bitop3_b32, any_of_three(a, b, c, i->bitop3))
B16_3(v_bitop3_b16, any_of_three(a, b, c, i->bitop3))
B16_2(v_and_b16, a &b)
B16_2(v_or_b16, a | b)
B16_2(v_xor_b16, a ^ b)
B16_2(v_lshlrev_b16, b << (a & 15))
B16_2(v_lshrrev_b16, b >> (a & 15))
B16_2(v_ashrrev_i16, (uint32_t)(sign16(b) >> (a & 15)))

static void v_not_b16(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *p = source_b16(w, i, 0, &x);
  LANES r.lane[lane] = ~p[lane] & 0xffff;
  emu_result(w, i, EMU_B16, r.lane);
}

/* Set bits of a mask below the lane, plus the second source; `lo` looks at lanes 0-31, `hi` at 32-63. */
static void count_below(emu_wave *w, const emu_instruction *i, int first) {
  emu_block x, y, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  LANES {
    int below = lane - first;
    uint32_t mask = below <= 0 ? 0 : below >= 32 ? UINT32_MAX : (1u << below) - 1;
    r.lane[lane] = count_bits(p[lane] & mask) + q[lane];
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_mbcnt_lo_u32_b32(emu_wave *w, const emu_instruction *i) { count_below(w, i, 0); }
static void v_mbcnt_hi_u32_b32(emu_wave *w, const emu_instruction *i) { count_below(w, i, 32); }

/* ---- 32-bit arithmetic -------------------------------------------------------------------------------------- */

B32_2(v_add_u32, i->clamp ? clamp_u32((int64_t)a + b) : a + b)
B32_2(v_sub_u32, i->clamp ? clamp_u32((int64_t)a - b) : a - b)
B32_2(v_subrev_u32, i->clamp ? clamp_u32((int64_t)b - a) : b - a)
B32_2(v_add_i32, i->clamp ? clamp_i32((int64_t)signed32(a) + signed32(b)) : a + b)
B32_2(v_sub_i32, i->clamp ? clamp_i32((int64_t)signed32(a) - signed32(b)) : a - b)
B32_2(v_mul_lo_u32, a *b)
B32_2(v_mul_hi_u32, high_u32(a, b))
B32_2(v_mul_hi_i32, high_i32(signed32(a), signed32(b)))
B32_2(v_mul_u32_u24, zero24(a) * zero24(b))
B32_2(v_mul_i32_i24, (uint32_t)sign24(a) * (uint32_t)sign24(b))
B32_2(v_mul_hi_u32_u24, high_u32(zero24(a), zero24(b)))
B32_2(v_mul_hi_i32_i24, high_i32(sign24(a), sign24(b)))
B32_2(v_min_u32, smaller_u(a, b))
B32_2(v_max_u32, larger_u(a, b))
B32_2(v_min_i32, (uint32_t)smaller(signed32(a), signed32(b)))
B32_2(v_max_i32, (uint32_t)larger(signed32(a), signed32(b)))
B32_3(v_add3_u32, a + b + c)
B32_3(v_mad_u32, a *b + c)
B32_3(v_mad_u32_u24, i->clamp ? clamp_u32((int64_t)((uint64_t)zero24(a) * zero24(b) + c)) : zero24(a) * zero24(b) + c)
B32_3(v_mad_i32_i24, i->clamp ? clamp_i32((int64_t)sign24(a) * sign24(b) + signed32(c))
                              : (uint32_t)sign24(a) * (uint32_t)sign24(b) + c)
B32_3(v_min3_u32, smaller_u(smaller_u(a, b), c))
B32_3(v_max3_u32, larger_u(larger_u(a, b), c))
B32_3(v_min3_i32, (uint32_t)smaller(smaller(signed32(a), signed32(b)), signed32(c)))
B32_3(v_max3_i32, (uint32_t)larger(larger(signed32(a), signed32(b)), signed32(c)))
B32_3(v_med3_u32, middle_u(a, b, c))
B32_3(v_med3_i32, (uint32_t)middle(signed32(a), signed32(b), signed32(c)))
B32_3(v_minmax_u32, larger_u(smaller_u(a, b), c))
B32_3(v_maxmin_u32, smaller_u(larger_u(a, b), c))
B32_3(v_minmax_i32, (uint32_t)larger(smaller(signed32(a), signed32(b)), signed32(c)))
B32_3(v_maxmin_i32, (uint32_t)smaller(larger(signed32(a), signed32(b)), signed32(c)))
/* gfx1250: a saturated sum when clamped, then the bound. */
B32_3(v_add_max_u32, larger_u(i->clamp ? clamp_u32((int64_t)a + b) : a + b, c))
B32_3(v_add_min_u32, smaller_u(i->clamp ? clamp_u32((int64_t)a + b) : a + b, c))
B32_3(v_add_max_i32, (uint32_t)larger(signed32(i->clamp ? clamp_i32((int64_t)signed32(a) + signed32(b)) : a + b), signed32(c)))
B32_3(v_add_min_i32, (uint32_t)smaller(signed32(i->clamp ? clamp_i32((int64_t)signed32(a) + signed32(b)) : a + b), signed32(c)))

/* Carries: the sum's bit 32 goes to the mask in operand 1; `carry_in` is source 2's mask. */
typedef enum carry_kind { CARRY_ADD, CARRY_SUBTRACT, CARRY_SUBTRACT_REVERSED } carry_kind;

EMU_INLINE void carry_operation(emu_wave *w, const emu_instruction *i, carry_kind kind, bool has_carry_in) {
  emu_block x, y, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  uint64_t carry_in = has_carry_in ? emu_source_mask(w, i, 2) : 0;
  uint8_t flag[EMU_LANES];
  bool saturate = i->clamp;
  LANES {
    uint64_t a = p[lane], b = q[lane], in = carry_in >> lane & 1;
    uint64_t sum = kind == CARRY_ADD ? a + b + in : kind == CARRY_SUBTRACT ? a - b - in : b - a - in;
    bool carry = sum >> 32 & 1;
    flag[lane] = carry;
    r.lane[lane] = saturate && carry ? (kind == CARRY_ADD ? UINT32_MAX : 0) : (uint32_t)sum;
  }
  emu_result(w, i, EMU_B32, r.lane);
  emu_result_mask(w, i, 1, pack_mask(flag));
}

static void v_add_co_u32(emu_wave *w, const emu_instruction *i) { carry_operation(w, i, CARRY_ADD, false); }
static void v_sub_co_u32(emu_wave *w, const emu_instruction *i) { carry_operation(w, i, CARRY_SUBTRACT, false); }
static void v_subrev_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT_REVERSED, false);
}
static void v_addc_co_u32(emu_wave *w, const emu_instruction *i) { carry_operation(w, i, CARRY_ADD, true); }
static void v_subb_co_u32(emu_wave *w, const emu_instruction *i) { carry_operation(w, i, CARRY_SUBTRACT, true); }
static void v_subbrev_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT_REVERSED, true);
}

/* ---- 16-bit arithmetic -------------------------------------------------------------------------------------- */

B16_2(v_add_u16, i->clamp ? clamp_u16((int32_t)(a + b)) : a + b)
B16_2(v_sub_u16, i->clamp ? clamp_u16((int32_t)a - (int32_t)b) : a - b)
B16_2(v_subrev_u16, i->clamp ? clamp_u16((int32_t)b - (int32_t)a) : b - a)
B16_2(v_add_i16, i->clamp ? clamp_i16(sign16(a) + sign16(b)) : a + b)
B16_2(v_sub_i16, i->clamp ? clamp_i16(sign16(a) - sign16(b)) : a - b)
B16_2(v_mul_lo_u16, a *b)
B16_2(v_min_u16, smaller_u(a, b))
B16_2(v_max_u16, larger_u(a, b))
B16_2(v_min_i16, (uint32_t)smaller(sign16(a), sign16(b)))
B16_2(v_max_i16, (uint32_t)larger(sign16(a), sign16(b)))
B16_3(v_mad_u16, i->clamp ? smaller_u(a * b + c, 0xffff) : a * b + c)
B16_3(v_mad_i16, i->clamp ? clamp_i16(sign16(a) * sign16(b) + sign16(c)) : (uint32_t)(sign16(a) * sign16(b) + sign16(c)))
B16_3(v_min3_u16, smaller_u(smaller_u(a, b), c))
B16_3(v_max3_u16, larger_u(larger_u(a, b), c))
B16_3(v_min3_i16, (uint32_t)smaller(smaller(sign16(a), sign16(b)), sign16(c)))
B16_3(v_max3_i16, (uint32_t)larger(larger(sign16(a), sign16(b)), sign16(c)))
B16_3(v_med3_u16, middle_u(a, b, c))
B16_3(v_med3_i16, (uint32_t)middle(sign16(a), sign16(b), sign16(c)))

/* 16-bit factors, 32-bit sum. */
static void mad_wide(emu_wave *w, const emu_instruction *i, bool is_signed) {
  emu_block x, y, z, r;
  const uint32_t *p = source_b16(w, i, 0, &x), *q = source_b16(w, i, 1, &y), *s = source_b32(w, i, 2, &z);
  LANES {
    int64_t product = is_signed ? (int64_t)sign16(p[lane]) * sign16(q[lane])
                                : (int64_t)((uint64_t)(p[lane] & 0xffff) * (q[lane] & 0xffff));
    int64_t sum = product + (is_signed ? (int64_t)signed32(s[lane]) : (int64_t)s[lane]);
    r.lane[lane] = !i->clamp ? (uint32_t)sum : is_signed ? clamp_i32(sum) : clamp_u32(sum);
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_mad_u32_u16(emu_wave *w, const emu_instruction *i) { mad_wide(w, i, false); }
static void v_mad_i32_i16(emu_wave *w, const emu_instruction *i) { mad_wide(w, i, true); }

static void v_pack_b32_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_F16, &x).lo, *q = emu_source(w, i, 1, EMU_F16, &y).lo;
  LANES r.lane[lane] = (p[lane] & 0xffff) | q[lane] << 16;
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- sums of absolute differences --------------------------------------------------------------------------- */

EMU_INLINE uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
EMU_INLINE uint32_t byte_of(uint32_t a, int n) { return a >> (8 * n) & 0xff; }
EMU_INLINE uint32_t sad_bytes(uint32_t a, uint32_t b) {
  return distance(byte_of(a, 0), byte_of(b, 0)) + distance(byte_of(a, 1), byte_of(b, 1)) +
         distance(byte_of(a, 2), byte_of(b, 2)) + distance(byte_of(a, 3), byte_of(b, 3));
}
/* Masked: a reference byte (b) of 0 does not count. */
EMU_INLINE uint32_t masked_distance(uint32_t a, uint32_t b) { return b ? distance(a, b) : 0; }
EMU_INLINE uint32_t msad_bytes(uint32_t a, uint32_t b) {
  return masked_distance(byte_of(a, 0), byte_of(b, 0)) + masked_distance(byte_of(a, 1), byte_of(b, 1)) +
         masked_distance(byte_of(a, 2), byte_of(b, 2)) + masked_distance(byte_of(a, 3), byte_of(b, 3));
}
/* Per byte (a + b + lowest bit of c) / 2. */
EMU_INLINE uint32_t lerp_byte(uint32_t a, uint32_t b, uint32_t c, int n) {
  return ((byte_of(a, n) + byte_of(b, n) + (byte_of(c, n) & 1)) >> 1) << (8 * n);
}

B32_3(v_sad_u8, sad_bytes(a, b) + c)
B32_3(v_sad_hi_u8, (sad_bytes(a, b) << 16) + c)
B32_3(v_msad_u8, msad_bytes(a, b) + c)
B32_3(v_sad_u16, distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c)
B32_3(v_sad_u32, distance(a, b) + c)
B32_3(v_lerp_u8, lerp_byte(a, b, c, 0) | lerp_byte(a, b, c, 1) | lerp_byte(a, b, c, 2) | lerp_byte(a, b, c, 3))

/* A pseudo-random step (gfx950, gfx1250): a shift register with taps 0xc5 at its low end. */
B32_1(v_prng_b32, a << 1 ^ (a >> 31 ? 0xc5u : 0u))

/* Two signed words arithmetically shifted and saturated to a signed or unsigned byte pair. */
EMU_INLINE uint32_t saturate_byte(int32_t v, int32_t low, int32_t high) { return (uint32_t)(v < low ? low : v > high ? high : v) & 0xff; }

static void shift_to_bytes(emu_wave *w, const emu_instruction *i, int32_t low, int32_t high) {
  emu_block x, y, z, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y), *s = source_b32(w, i, 2, &z);
  LANES {
    uint32_t shift = s[lane] & 31;
    r.lane[lane] = saturate_byte(signed32(p[lane]) >> shift, low, high) |
                   saturate_byte(signed32(q[lane]) >> shift, low, high) << 8;
  }
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_ashr_pk_i8_i32(emu_wave *w, const emu_instruction *i) { shift_to_bytes(w, i, -128, 127); }
static void v_ashr_pk_u8_i32(emu_wave *w, const emu_instruction *i) { shift_to_bytes(w, i, 0, 255); }

B32_1(v_sat_pk_u8_i16, saturate_byte(sign16(a), 0, 255) | saturate_byte(sign16(a >> 16), 0, 255) << 8)

#define KEEPS(name) {#name, name, 1, EMU_KEEPS_HIGH}

const emu_row emu_vector_integer_rows[] = {
    ROW(v_mov_b32),
    ROW(v_mov_b64),
    {"v_nop", v_nop, 0, EMU_NO_DESTINATION},
    {"v_swap_b32", v_swap_b32, 2, 0},
    ROW(v_movreld_b32),
    ROW(v_movrels_b32),
    ROW(v_movrelsd_b32),
    ROW(v_movrelsd_2_b32),
    ROW_AS(v_accvgpr_read_b32, v_mov_b32),
    ROW_AS(v_accvgpr_write_b32, v_mov_b32),
    ROW_AS(v_accvgpr_mov_b32, v_mov_b32),
    ROW(v_cndmask_b32),
    ROW(v_cndmask_b16),
    ROW(v_not_b32),
    ROW(v_not_b16),
    ROW(v_bfrev_b32),
    ROW(v_ffbh_u32),
    ROW(v_ffbh_i32),
    ROW(v_ffbl_b32),
    ROW_AS(v_clz_i32_u32, v_ffbh_u32),
    ROW_AS(v_cls_i32, v_ffbh_i32),
    ROW_AS(v_ctz_i32_b32, v_ffbl_b32),
    ROW(v_and_b32),
    ROW(v_or_b32),
    ROW(v_xor_b32),
    ROW(v_xnor_b32),
    ROW(v_lshlrev_b32),
    ROW(v_lshrrev_b32),
    ROW(v_ashrrev_i32),
    ROW(v_bfm_b32),
    ROW(v_bcnt_u32_b32),
    ROW(v_bfe_u32),
    ROW(v_bfe_i32),
    ROW(v_bfi_b32),
    ROW(v_alignbit_b32),
    ROW(v_alignbyte_b32),
    ROW(v_perm_b32),
    ROW(v_and_or_b32),
    ROW(v_or3_b32),
    ROW(v_xor3_b32),
    ROW(v_lshl_or_b32),
    ROW(v_lshl_add_u32),
    ROW(v_add_lshl_u32),
    ROW(v_xad_u32),
    ROW(v_bitop3_b32),
    KEEPS(v_bitop3_b16),
    ROW(v_and_b16),
    ROW(v_or_b16),
    ROW(v_xor_b16),
    ROW(v_lshlrev_b16),
    ROW(v_lshrrev_b16),
    ROW(v_ashrrev_i16),
    ROW(v_mbcnt_lo_u32_b32),
    ROW(v_mbcnt_hi_u32_b32),
    ROW(v_add_u32),
    ROW(v_sub_u32),
    ROW(v_subrev_u32),
    ROW_AS(v_add_nc_u32, v_add_u32),
    ROW_AS(v_sub_nc_u32, v_sub_u32),
    ROW_AS(v_subrev_nc_u32, v_subrev_u32),
    ROW(v_add_i32),
    ROW(v_sub_i32),
    ROW_AS(v_add_nc_i32, v_add_i32),
    ROW_AS(v_sub_nc_i32, v_sub_i32),
    ROW(v_mul_lo_u32),
    ROW(v_mul_hi_u32),
    ROW(v_mul_hi_i32),
    ROW(v_mul_u32_u24),
    ROW(v_mul_i32_i24),
    ROW(v_mul_hi_u32_u24),
    ROW(v_mul_hi_i32_i24),
    ROW(v_min_u32),
    ROW(v_max_u32),
    ROW(v_min_i32),
    ROW(v_max_i32),
    ROW(v_add3_u32),
    ROW(v_mad_u32),
    ROW(v_mad_u32_u24),
    ROW(v_mad_i32_i24),
    ROW(v_min3_u32),
    ROW(v_max3_u32),
    ROW(v_min3_i32),
    ROW(v_max3_i32),
    ROW(v_med3_u32),
    ROW(v_med3_i32),
    ROW(v_minmax_u32),
    ROW(v_maxmin_u32),
    ROW(v_minmax_i32),
    ROW(v_maxmin_i32),
    ROW(v_add_max_u32),
    ROW(v_add_min_u32),
    ROW(v_add_max_i32),
    ROW(v_add_min_i32),
    {"v_add_co_u32", v_add_co_u32, 2, 0},
    {"v_sub_co_u32", v_sub_co_u32, 2, 0},
    {"v_subrev_co_u32", v_subrev_co_u32, 2, 0},
    {"v_addc_co_u32", v_addc_co_u32, 2, 0},
    {"v_subb_co_u32", v_subb_co_u32, 2, 0},
    {"v_subbrev_co_u32", v_subbrev_co_u32, 2, 0},
    {"v_add_co_ci_u32", v_addc_co_u32, 2, 0},
    {"v_sub_co_ci_u32", v_subb_co_u32, 2, 0},
    {"v_subrev_co_ci_u32", v_subbrev_co_u32, 2, 0},
    ROW(v_add_u16),
    ROW(v_sub_u16),
    ROW(v_subrev_u16),
    ROW_AS(v_add_nc_u16, v_add_u16),
    ROW_AS(v_sub_nc_u16, v_sub_u16),
    KEEPS(v_add_i16),
    KEEPS(v_sub_i16),
    ROW_AS(v_add_nc_i16, v_add_i16),
    ROW_AS(v_sub_nc_i16, v_sub_i16),
    ROW(v_mul_lo_u16),
    ROW(v_min_u16),
    ROW(v_max_u16),
    ROW(v_min_i16),
    ROW(v_max_i16),
    KEEPS(v_mad_u16),
    KEEPS(v_mad_i16),
    ROW_AS(v_mad_legacy_u16, v_mad_u16),
    ROW_AS(v_mad_legacy_i16, v_mad_i16),
    KEEPS(v_min3_u16),
    KEEPS(v_max3_u16),
    KEEPS(v_min3_i16),
    KEEPS(v_max3_i16),
    KEEPS(v_med3_u16),
    KEEPS(v_med3_i16),
    ROW(v_mad_u32_u16),
    ROW(v_mad_i32_i16),
    ROW(v_pack_b32_f16),
    ROW(v_sad_u8),
    ROW(v_sad_hi_u8),
    ROW(v_msad_u8),
    ROW(v_sad_u16),
    ROW(v_sad_u32),
    ROW(v_lerp_u8),
    ROW(v_prng_b32),
    KEEPS(v_ashr_pk_i8_i32),
    KEEPS(v_ashr_pk_u8_i32),
    ROW(v_sat_pk_u8_i16),
    END_OF_ROWS,
};
