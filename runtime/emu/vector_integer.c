/* Integer arithmetic of 32 and 16 bits, carries, and sums of differences. */
#include "vector_integer.h"

EMU_INLINE uint32_t high_u32(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}
EMU_INLINE uint32_t high_i32(int64_t a, int64_t b) {
  return (uint32_t)((uint64_t)(a * b) >> 32);
}

EMU_INLINE int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}
EMU_INLINE int32_t larger(int32_t a, int32_t b) {
  return a > b ? a : b;
}
EMU_INLINE uint32_t smaller_u(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
EMU_INLINE uint32_t larger_u(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}
EMU_INLINE int32_t middle(int32_t a, int32_t b, int32_t c) {
  return larger(smaller(a, b), smaller(larger(a, b), c));
}
EMU_INLINE uint32_t middle_u(uint32_t a, uint32_t b, uint32_t c) {
  return larger_u(smaller_u(a, b), smaller_u(larger_u(a, b), c));
}

/* Saturation, which the clamp bit asks for. */
EMU_INLINE uint32_t clamp_u32(int64_t v) {
  return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}
EMU_INLINE uint32_t clamp_i32(int64_t v) {
  return (uint32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}
EMU_INLINE uint32_t clamp_u16(int32_t v) {
  return v < 0 ? 0 : v > 0xffff ? 0xffff : (uint32_t)v;
}
EMU_INLINE uint32_t clamp_i16(int32_t v) {
  return (uint32_t)(v < -0x8000 ? -0x8000 : v > 0x7fff ? 0x7fff : v);
}

/* ---- 32-bit arithmetic ---- */

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
B32_3(v_mad_u32_u24,
      i->clamp ? clamp_u32((int64_t)((uint64_t)zero24(a) * zero24(b) + c)) : zero24(a) * zero24(b) + c)
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
B32_3(v_add_max_i32,
      (uint32_t)larger(signed32(i->clamp ? clamp_i32((int64_t)signed32(a) + signed32(b)) : a + b),
                       signed32(c)))
B32_3(v_add_min_i32,
      (uint32_t)smaller(signed32(i->clamp ? clamp_i32((int64_t)signed32(a) + signed32(b)) : a + b),
                        signed32(c)))

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

static void v_add_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_ADD, false);
}
static void v_sub_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT, false);
}
static void v_subrev_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT_REVERSED, false);
}
static void v_addc_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_ADD, true);
}
static void v_subb_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT, true);
}
static void v_subbrev_co_u32(emu_wave *w, const emu_instruction *i) {
  carry_operation(w, i, CARRY_SUBTRACT_REVERSED, true);
}

/* ---- 16-bit arithmetic ---- */

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
B16_3(v_mad_u16, i->clamp ? smaller_u(a *b + c, 0xffff) : a *b + c)
B16_3(v_mad_i16,
      i->clamp ? clamp_i16(sign16(a) * sign16(b) + sign16(c)) : (uint32_t)(sign16(a) * sign16(b) + sign16(c)))
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
static void v_mad_u32_u16(emu_wave *w, const emu_instruction *i) {
  mad_wide(w, i, false);
}
static void v_mad_i32_i16(emu_wave *w, const emu_instruction *i) {
  mad_wide(w, i, true);
}

static void v_pack_b32_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y, r;
  const uint32_t *p = emu_source(w, i, 0, EMU_F16, &x).lo, *q = emu_source(w, i, 1, EMU_F16, &y).lo;
  LANES r.lane[lane] = (p[lane] & 0xffff) | q[lane] << 16;
  emu_result(w, i, EMU_B32, r.lane);
}

/* ---- sums of absolute differences ---- */

EMU_INLINE uint32_t distance(uint32_t a, uint32_t b) {
  return a > b ? a - b : b - a;
}
EMU_INLINE uint32_t byte_of(uint32_t a, int n) {
  return a >> (8 * n) & 0xff;
}
EMU_INLINE uint32_t sad_bytes(uint32_t a, uint32_t b) {
  return distance(byte_of(a, 0), byte_of(b, 0)) + distance(byte_of(a, 1), byte_of(b, 1)) +
         distance(byte_of(a, 2), byte_of(b, 2)) + distance(byte_of(a, 3), byte_of(b, 3));
}
/* Masked: a reference byte (b) of 0 does not count. */
EMU_INLINE uint32_t masked_distance(uint32_t a, uint32_t b) {
  return b ? distance(a, b) : 0;
}
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
B32_3(v_lerp_u8,
      lerp_byte(a, b, c, 0) | lerp_byte(a, b, c, 1) | lerp_byte(a, b, c, 2) | lerp_byte(a, b, c, 3))

/* A pseudo-random step (gfx950, gfx1250): a shift register with taps 0xc5 at its low end. */
B32_1(v_prng_b32, a << 1 ^ (a >> 31 ? 0xc5u : 0u))

/* Two signed words arithmetically shifted and saturated to a signed or unsigned byte pair. */
EMU_INLINE uint32_t saturate_byte(int32_t v, int32_t low, int32_t high) {
  return (uint32_t)(v < low ? low : v > high ? high : v) & 0xff;
}

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
static void v_ashr_pk_i8_i32(emu_wave *w, const emu_instruction *i) {
  shift_to_bytes(w, i, -128, 127);
}
static void v_ashr_pk_u8_i32(emu_wave *w, const emu_instruction *i) {
  shift_to_bytes(w, i, 0, 255);
}

B32_1(v_sat_pk_u8_i16, saturate_byte(sign16(a), 0, 255) | saturate_byte(sign16(a >> 16), 0, 255) << 8)

const emu_row emu_vector_integer_rows[] = {
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
