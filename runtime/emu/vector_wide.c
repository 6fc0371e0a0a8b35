/* 64-bit integers: shifts, adds, multiply-adds, bounds. */
#include "vector.h"

#define B64_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    block_pair x, y, r;                                                                                      \
    emu_lanes p = source_64(w, i, 0, EMU_B64, &x), q = source_64(w, i, 1, EMU_B64, &y);                      \
    LANES {                                                                                                  \
      uint64_t a = pair_at(p, lane), b = pair_at(q, lane);                                                   \
      set_pair(&r, lane, expression);                                                                        \
    }                                                                                                        \
    emu_result64(w, i, EMU_B64, r.lo.lane, r.hi.lane);                                                       \
  }

/* Shift count (32 bits) first, value second. */
#define SHIFT(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x;                                                                                             \
    block_pair y, r;                                                                                         \
    const uint32_t *p = source_b32(w, i, 0, &x);                                                             \
    emu_lanes q = source_64(w, i, 1, EMU_B64, &y);                                                           \
    LANES {                                                                                                  \
      uint32_t a = p[lane] & 63;                                                                             \
      uint64_t b = pair_at(q, lane);                                                                         \
      set_pair(&r, lane, expression);                                                                        \
    }                                                                                                        \
    emu_result64(w, i, EMU_B64, r.lo.lane, r.hi.lane);                                                       \
  }

SHIFT(v_lshlrev_b64, b << a)
SHIFT(v_lshrrev_b64, b >> a)
SHIFT(v_ashrrev_i64, (uint64_t)((int64_t)b >> a))

B64_2(v_add_nc_u64, a + b)
B64_2(v_sub_nc_u64, a - b)
B64_2(v_mul_u64, a *b)
B64_2(v_min_u64, a < b ? a : b)
B64_2(v_max_u64, a > b ? a : b)
B64_2(v_min_i64, (int64_t)a < (int64_t)b ? a : b)
B64_2(v_max_i64, (int64_t)a > (int64_t)b ? a : b)

/* (S0 << S1[2:0]) + S2 */
static void v_lshl_add_u64(emu_wave *w, const emu_instruction *i) {
  block_pair x, z, r;
  emu_block y;
  emu_lanes p = source_64(w, i, 0, EMU_B64, &x), s = source_64(w, i, 2, EMU_B64, &z);
  const uint32_t *q = source_b32(w, i, 1, &y);
  LANES set_pair(&r, lane, (pair_at(p, lane) << (q[lane] & 7)) + pair_at(s, lane));
  emu_result64(w, i, EMU_B64, r.lo.lane, r.hi.lane);
}

/* 32 x 32 + 64 bits. The carry is bit 64 of the exact sum; for signed factors both terms are extended by
 * their signs. */
EMU_INLINE void multiply_add(emu_wave *w, const emu_instruction *i, bool is_signed, bool has_carry) {
  emu_block x, y;
  block_pair z, r;
  const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);
  emu_lanes s = source_64(w, i, 2, EMU_B64, &z);
  uint8_t flag[EMU_LANES];
  LANES {
    uint64_t product =
        is_signed ? (uint64_t)((int64_t)(int32_t)p[lane] * (int32_t)q[lane]) : (uint64_t)p[lane] * q[lane];
    uint64_t c = pair_at(s, lane), sum = product + c;
    uint64_t carry = sum < c, signs = is_signed ? (product ^ c) >> 63 : 0;
    flag[lane] = (uint8_t)(carry ^ signs);
    set_pair(&r, lane, sum);
  }
  emu_result64(w, i, EMU_B64, r.lo.lane, r.hi.lane);
  if (has_carry) emu_result_mask(w, i, 1, pack_mask(flag));
}

static void v_mad_u64_u32(emu_wave *w, const emu_instruction *i) {
  multiply_add(w, i, false, true);
}
static void v_mad_i64_i32(emu_wave *w, const emu_instruction *i) {
  multiply_add(w, i, true, true);
}
static void v_mad_nc_u64_u32(emu_wave *w, const emu_instruction *i) {
  multiply_add(w, i, false, false);
}
static void v_mad_nc_i64_i32(emu_wave *w, const emu_instruction *i) {
  multiply_add(w, i, true, false);
}

const emu_row emu_vector_wide_rows[] = {
    ROW(v_lshlrev_b64),
    ROW(v_lshrrev_b64),
    ROW(v_ashrrev_i64),
    ROW(v_add_nc_u64),
    ROW(v_sub_nc_u64),
    ROW(v_mul_u64),
    ROW(v_min_u64),
    ROW(v_max_u64),
    ROW(v_min_i64),
    ROW(v_max_i64),
    ROW(v_lshl_add_u64),
    {"v_mad_u64_u32", v_mad_u64_u32, 2, 0},
    {"v_mad_i64_i32", v_mad_i64_i32, 2, 0},
    {"v_mad_co_u64_u32", v_mad_u64_u32, 2, 0},
    {"v_mad_co_i64_i32", v_mad_i64_i32, 2, 0},
    ROW(v_mad_nc_u64_u32),
    ROW(v_mad_nc_i64_i32),
    END_OF_ROWS,
};
