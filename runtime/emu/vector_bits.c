/* Moves, selects and bit operations. */
#include "vector_integer.h"

/* ---- moves ---- */

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

static void v_nop(emu_wave *w, const emu_instruction *i) {
  (void)w, (void)i;
}

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
static void move_relative(emu_wave *w, const emu_instruction *i, uint32_t source_offset,
                          uint32_t destination_offset) {
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

static void v_movreld_b32(emu_wave *w, const emu_instruction *i) {
  move_relative(w, i, 0, w->s[EMU_S_M0]);
}
static void v_movrels_b32(emu_wave *w, const emu_instruction *i) {
  move_relative(w, i, w->s[EMU_S_M0], 0);
}
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

/* ---- bit operations ---- */

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
EMU_INLINE uint32_t leading_sign_bits(uint32_t a) {
  return leading_zeros(a ^ (uint32_t)(signed32(a) >> 31));
}
EMU_INLINE uint32_t trailing_zeros(uint32_t a) {
  return a ? count_bits((a & (0u - a)) - 1) : UINT32_MAX;
}

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

/* One byte of v_perm_b32: a selector 0-3 picks from b, 4-7 from a, 8-11 repeats a sign bit, 12 is 0, above
 * 0xff. */
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
static void v_mbcnt_lo_u32_b32(emu_wave *w, const emu_instruction *i) {
  count_below(w, i, 0);
}
static void v_mbcnt_hi_u32_b32(emu_wave *w, const emu_instruction *i) {
  count_below(w, i, 32);
}

const emu_row emu_vector_bits_rows[] = {
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
    END_OF_ROWS,
};
