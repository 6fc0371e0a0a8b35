/* Scalar arithmetic: SOP1, SOP2, SOPC and the SOPK forms without control flow. In the lists `a` and `b` are
 * the sources, `r` the result, `scc` the condition bit before and the last column the condition bit after. */
#include "execute.h"
#include "formats.h"
#include <math.h>

#define SCC (w->s[EMU_S_SCC])

static uint32_t rotate_mask32(uint32_t width, uint32_t offset) {
  return ((width & 31) ? (1u << (width & 31)) - 1 : 0) << (offset & 31);
}

static uint64_t field_mask64(uint32_t width, uint32_t offset) {
  return ((width & 63) ? (UINT64_C(1) << (width & 63)) - 1 : 0) << (offset & 63);
}

/* b: offset in 4:0 (5:0), width in 22:16. */
static uint64_t extract_unsigned(uint64_t a, uint32_t b, uint32_t bits) {
  uint32_t offset = b & (bits - 1), width = b >> 16 & 0x7f;
  if (width == 0) return 0;
  a >>= offset;
  return width >= 64 ? a : a & ((UINT64_C(1) << width) - 1);
}

static int64_t extract_signed(int64_t a, uint32_t b, uint32_t bits) {
  uint32_t offset = b & (bits - 1), width = b >> 16 & 0x7f;
  if (width == 0) return 0;
  if (width > bits - offset) width = bits - offset;
  uint32_t up = 64 - width - offset;
  return (int64_t)((uint64_t)a << up) >> (64 - width);
}

static uint32_t reverse32(uint32_t a) {
  uint32_t r = 0;
  for (int n = 0; n < 32; ++n)
    r |= (a >> n & 1u) << (31 - n);
  return r;
}

static uint64_t reverse64(uint64_t a) {
  return (uint64_t)reverse32((uint32_t)a) << 32 | reverse32((uint32_t)(a >> 32));
}

static uint32_t count32(uint32_t a) {
  return (uint32_t)__builtin_popcount(a);
}
static uint32_t count64(uint64_t a) {
  return (uint32_t)__builtin_popcountll(a);
}
/* Position of the first one from below or above; all ones when there is none. */
static uint32_t first_low(uint64_t a) {
  return a ? (uint32_t)__builtin_ctzll(a) : UINT32_MAX;
}
static uint32_t first_high32(uint32_t a) {
  return a ? (uint32_t)__builtin_clz(a) : UINT32_MAX;
}
static uint32_t first_high64(uint64_t a) {
  return a ? (uint32_t)__builtin_clzll(a) : UINT32_MAX;
}
/* First bit from above that differs from the sign. */
static uint32_t first_unlike_sign32(uint32_t a) {
  return first_high32(a & 0x80000000u ? ~a : a);
}
static uint32_t first_unlike_sign64(uint64_t a) {
  return first_high64(a >> 63 ? ~a : a);
}

/* Whole-quad mode: a set bit sets all four of its quad. */
static uint64_t whole_quads(uint64_t a) {
  uint64_t any = (a | a >> 1 | a >> 2 | a >> 3) & UINT64_C(0x1111111111111111);
  return any * 15;
}

static uint64_t quad_mask(uint64_t a) {
  uint64_t r = 0;
  for (int n = 0; n < 16; ++n)
    if (a >> (4 * n) & 15) r |= UINT64_C(1) << n;
  return r;
}

static uint64_t replicate_bits(uint32_t a) {
  uint64_t r = 0;
  for (int n = 0; n < 32; ++n)
    if (a >> n & 1) r |= UINT64_C(3) << (2 * n);
  return r;
}

static uint32_t f(float x) {
  return emu_bits(x);
}
static float g(uint32_t x) {
  return emu_float(x);
}
static float h(uint32_t x) {
  return emu_decode(EMU_FORMAT_F16, x & 0xffff);
}
static uint32_t to_half(float x) {
  return emu_encode(EMU_FORMAT_F16, (double)x, EMU_ROUND_NEAREST_EVEN, false);
}
static int32_t to_int(float x) {
  return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : (int32_t)x;
}
static uint32_t to_unsigned(float x) {
  return x != x || x <= 0 ? 0 : x >= 4294967296.0f ? UINT32_MAX : (uint32_t)x;
}
/* IEEE 754-2019 minimumNumber and minimum: a NaN loses, or wins. */
static float minimum_number(float x, float y) {
  return x != x ? y : y != y ? x : x < y || (x == y && signbit(x)) ? x : y;
}
static float maximum_number(float x, float y) {
  return x != x ? y : y != y ? x : x > y || (x == y && !signbit(x)) ? x : y;
}
static float minimum(float x, float y) {
  return x != x || y != y ? x + y : minimum_number(x, y);
}
static float maximum(float x, float y) {
  return x != x || y != y ? x + y : maximum_number(x, y);
}

#define SCALAR2_32(X)                                                                                        \
  X(s_add_u32, a + b, r < a)                                                                                 \
  X(s_sub_u32, a - b, b > a)                                                                                 \
  X(s_add_i32, a + b, (~(a ^ b) & (a ^ r)) >> 31)                                                            \
  X(s_sub_i32, a - b, ((a ^ b) & (a ^ r)) >> 31)                                                             \
  X(s_addc_u32, a + b + scc, (uint64_t)a + b + scc > UINT32_MAX)                                             \
  X(s_subb_u32, a - b - scc, (uint64_t)b + scc > a)                                                          \
  X(s_min_i32, (int32_t)a < (int32_t)b ? a : b, (int32_t)a < (int32_t)b)                                     \
  X(s_min_u32, a < b ? a : b, a < b)                                                                         \
  X(s_max_i32, (int32_t)a > (int32_t)b ? a : b, (int32_t)a > (int32_t)b)                                     \
  X(s_max_u32, a > b ? a : b, a > b)                                                                         \
  X(s_cselect_b32, scc ? a : b, scc)                                                                         \
  X(s_and_b32, a &b, r != 0)                                                                                 \
  X(s_or_b32, a | b, r != 0)                                                                                 \
  X(s_xor_b32, a ^ b, r != 0)                                                                                \
  X(s_andn2_b32, a & ~b, r != 0)                                                                             \
  X(s_orn2_b32, a | ~b, r != 0)                                                                              \
  X(s_nand_b32, ~(a & b), r != 0)                                                                            \
  X(s_nor_b32, ~(a | b), r != 0)                                                                             \
  X(s_xnor_b32, ~(a ^ b), r != 0)                                                                            \
  X(s_lshl_b32, a << (b & 31), r != 0)                                                                       \
  X(s_lshr_b32, a >> (b & 31), r != 0)                                                                       \
  X(s_ashr_i32, (uint32_t)((int32_t)a >> (b & 31)), r != 0)                                                  \
  X(s_bfm_b32, rotate_mask32(a, b), scc)                                                                     \
  X(s_mul_i32, a *b, scc)                                                                                    \
  X(s_mul_hi_u32, (uint32_t)((uint64_t)a * b >> 32), scc)                                                    \
  X(s_mul_hi_i32, (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32), scc)                                   \
  X(s_bfe_u32, (uint32_t)extract_unsigned(a, b, 32), r != 0)                                                 \
  X(s_bfe_i32, (uint32_t)extract_signed((int32_t)a, b, 32), r != 0)                                          \
  X(s_absdiff_i32, (int32_t)a > (int32_t)b ? a - b : b - a, r != 0)                                          \
  X(s_lshl1_add_u32, (a << 1) + b, ((uint64_t)a << 1) + b > UINT32_MAX)                                      \
  X(s_lshl2_add_u32, (a << 2) + b, ((uint64_t)a << 2) + b > UINT32_MAX)                                      \
  X(s_lshl3_add_u32, (a << 3) + b, ((uint64_t)a << 3) + b > UINT32_MAX)                                      \
  X(s_lshl4_add_u32, (a << 4) + b, ((uint64_t)a << 4) + b > UINT32_MAX)                                      \
  X(s_pack_ll_b32_b16, (a & 0xffff) | b << 16, scc)                                                          \
  X(s_pack_lh_b32_b16, (a & 0xffff) | (b & 0xffff0000u), scc)                                                \
  X(s_pack_hl_b32_b16, a >> 16 | b << 16, scc)                                                               \
  X(s_pack_hh_b32_b16, a >> 16 | (b & 0xffff0000u), scc)                                                     \
  X(s_add_f32, f(g(a) + g(b)), scc)                                                                          \
  X(s_sub_f32, f(g(a) - g(b)), scc)                                                                          \
  X(s_mul_f32, f(g(a) * g(b)), scc)                                                                          \
  X(s_min_num_f32, f(minimum_number(g(a), g(b))), scc)                                                       \
  X(s_max_num_f32, f(maximum_number(g(a), g(b))), scc)                                                       \
  X(s_minimum_f32, f(minimum(g(a), g(b))), scc)                                                              \
  X(s_maximum_f32, f(maximum(g(a), g(b))), scc)                                                              \
  X(s_add_f16, to_half(h(a) + h(b)), scc)                                                                    \
  X(s_sub_f16, to_half(h(a) - h(b)), scc)                                                                    \
  X(s_mul_f16, to_half(h(a) * h(b)), scc)                                                                    \
  X(s_min_num_f16, to_half(minimum_number(h(a), h(b))), scc)                                                 \
  X(s_max_num_f16, to_half(maximum_number(h(a), h(b))), scc)                                                 \
  X(s_minimum_f16, to_half(minimum(h(a), h(b))), scc)                                                        \
  X(s_maximum_f16, to_half(maximum(h(a), h(b))), scc)                                                        \
  X(s_cvt_pk_rtz_f16_f32,                                                                                    \
    emu_encode(EMU_FORMAT_F16, (double)g(a), EMU_ROUND_ZERO, false) |                                        \
        emu_encode(EMU_FORMAT_F16, (double)g(b), EMU_ROUND_ZERO, false) << 16,                               \
    scc)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t a = emu_source_scalar(w, i, 0), b = emu_source_scalar(w, i, 1), scc = SCC, r = result;          \
    (void)scc;                                                                                               \
    emu_set_scalar32(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR2_32(X)
#undef X

/* Shift counts and field descriptors of 64-bit forms are 32-bit operands: `n`. */
#define SCALAR2_64(X)                                                                                        \
  X(s_cselect_b64, scc ? a : b, scc)                                                                         \
  X(s_and_b64, a &b, r != 0)                                                                                 \
  X(s_or_b64, a | b, r != 0)                                                                                 \
  X(s_xor_b64, a ^ b, r != 0)                                                                                \
  X(s_andn2_b64, a & ~b, r != 0)                                                                             \
  X(s_orn2_b64, a | ~b, r != 0)                                                                              \
  X(s_nand_b64, ~(a & b), r != 0)                                                                            \
  X(s_nor_b64, ~(a | b), r != 0)                                                                             \
  X(s_xnor_b64, ~(a ^ b), r != 0)                                                                            \
  X(s_add_nc_u64, a + b, scc)                                                                                \
  X(s_sub_nc_u64, a - b, scc)                                                                                \
  X(s_mul_u64, a *b, scc)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t scc = SCC;                                                                                      \
    uint64_t a = emu_scalar64(w, &i->operand[1]), b = emu_scalar64(w, &i->operand[2]), r = result;           \
    (void)scc;                                                                                               \
    emu_set_scalar64(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR2_64(X)
#undef X

#define SCALAR_SHIFT_64(X)                                                                                   \
  X(s_lshl_b64, a << (n & 63), r != 0)                                                                       \
  X(s_lshr_b64, a >> (n & 63), r != 0)                                                                       \
  X(s_ashr_i64, (uint64_t)((int64_t)a >> (n & 63)), r != 0)                                                  \
  X(s_bfe_u64, extract_unsigned(a, n, 64), r != 0)                                                           \
  X(s_bfe_i64, (uint64_t)extract_signed((int64_t)a, n, 64), r != 0)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint64_t a = emu_scalar64(w, &i->operand[1]);                                                            \
    uint32_t n = emu_source_scalar(w, i, 1);                                                                 \
    uint64_t r = result;                                                                                     \
    emu_set_scalar64(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR_SHIFT_64(X)
#undef X

static void s_bfm_b64(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar64(w, &i->operand[0], field_mask64(emu_source_scalar(w, i, 0), emu_source_scalar(w, i, 1)));
}

#define SCALAR1_32(X)                                                                                        \
  X(s_mov_b32, a, scc)                                                                                       \
  X(s_not_b32, ~a, r != 0)                                                                                   \
  X(s_wqm_b32, (uint32_t)whole_quads(a), r != 0)                                                             \
  X(s_quadmask_b32, (uint32_t)quad_mask(a), r != 0)                                                          \
  X(s_brev_b32, reverse32(a), scc)                                                                           \
  X(s_bcnt0_i32_b32, count32(~a), r != 0)                                                                    \
  X(s_bcnt1_i32_b32, count32(a), r != 0)                                                                     \
  X(s_ff0_i32_b32, first_low(~a), scc)                                                                       \
  X(s_ff1_i32_b32, first_low(a), scc)                                                                        \
  X(s_flbit_i32_b32, first_high32(a), scc)                                                                   \
  X(s_flbit_i32, first_unlike_sign32(a), scc)                                                                \
  X(s_sext_i32_i8, (uint32_t)(int32_t)(int8_t)a, scc)                                                        \
  X(s_sext_i32_i16, (uint32_t)(int32_t)(int16_t)a, scc)                                                      \
  X(s_abs_i32, (int32_t)a < 0 ? 0u - a : a, r != 0)                                                          \
  X(s_ceil_f32, f(ceilf(g(a))), scc)                                                                         \
  X(s_floor_f32, f(floorf(g(a))), scc)                                                                       \
  X(s_trunc_f32, f(truncf(g(a))), scc)                                                                       \
  X(s_rndne_f32, f(rintf(g(a))), scc)                                                                        \
  X(s_ceil_f16, to_half(ceilf(h(a))), scc)                                                                   \
  X(s_floor_f16, to_half(floorf(h(a))), scc)                                                                 \
  X(s_trunc_f16, to_half(truncf(h(a))), scc)                                                                 \
  X(s_rndne_f16, to_half(rintf(h(a))), scc)                                                                  \
  X(s_cvt_f32_i32, f((float)(int32_t)a), scc)                                                                \
  X(s_cvt_f32_u32, f((float)a), scc)                                                                         \
  X(s_cvt_i32_f32, (uint32_t)to_int(g(a)), scc)                                                              \
  X(s_cvt_u32_f32, to_unsigned(g(a)), scc)                                                                   \
  X(s_cvt_f16_f32, to_half(g(a)), scc)                                                                       \
  X(s_cvt_f32_f16, f(h(a)), scc)                                                                             \
  X(s_cvt_hi_f32_f16, f(h(a >> 16)), scc)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t a = emu_source_scalar(w, i, 0), scc = SCC, r = result;                                          \
    (void)scc;                                                                                               \
    emu_set_scalar32(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR1_32(X)
#undef X

#define SCALAR1_64(X)                                                                                        \
  X(s_mov_b64, a, scc)                                                                                       \
  X(s_not_b64, ~a, r != 0)                                                                                   \
  X(s_wqm_b64, whole_quads(a), r != 0)                                                                       \
  X(s_quadmask_b64, quad_mask(a), r != 0)                                                                    \
  X(s_brev_b64, reverse64(a), scc)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t scc = SCC;                                                                                      \
    uint64_t a = emu_scalar64(w, &i->operand[1]), r = result;                                                \
    (void)scc;                                                                                               \
    emu_set_scalar64(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR1_64(X)
#undef X

/* 64-bit source, 32-bit result. */
#define SCALAR1_32_64(X)                                                                                     \
  X(s_bcnt0_i32_b64, count64(~a), r != 0)                                                                    \
  X(s_bcnt1_i32_b64, count64(a), r != 0)                                                                     \
  X(s_ff0_i32_b64, first_low(~a), scc)                                                                       \
  X(s_ff1_i32_b64, first_low(a), scc)                                                                        \
  X(s_flbit_i32_b64, first_high64(a), scc)                                                                   \
  X(s_flbit_i32_i64, first_unlike_sign64(a), scc)

#define X(name, result, condition)                                                                           \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint64_t a = emu_scalar64(w, &i->operand[1]);                                                            \
    uint32_t scc = SCC, r = result;                                                                          \
    (void)scc;                                                                                               \
    emu_set_scalar32(w, &i->operand[0], r);                                                                  \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
SCALAR1_32_64(X)
#undef X

static void s_bitreplicate_b64_b32(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar64(w, &i->operand[0], replicate_bits(emu_source_scalar(w, i, 0)));
}

static void s_cmov_b32(emu_wave *w, const emu_instruction *i) {
  if (SCC) emu_set_scalar32(w, &i->operand[0], emu_source_scalar(w, i, 0));
}

static void s_cmov_b64(emu_wave *w, const emu_instruction *i) {
  if (SCC) emu_set_scalar64(w, &i->operand[0], emu_scalar64(w, &i->operand[1]));
}

static void set_bit(emu_wave *w, const emu_instruction *i, bool wide, bool value) {
  uint64_t bit = UINT64_C(1) << (emu_source_scalar(w, i, 0) & (wide ? 63 : 31));
  uint64_t old = wide ? emu_scalar64(w, &i->operand[0]) : emu_scalar32(w, &i->operand[0]);
  uint64_t result = value ? old | bit : old & ~bit;
  if (wide) {
    emu_set_scalar64(w, &i->operand[0], result);
  } else {
    emu_set_scalar32(w, &i->operand[0], (uint32_t)result);
  }
}
static void s_bitset0_b32(emu_wave *w, const emu_instruction *i) {
  set_bit(w, i, false, false);
}
static void s_bitset1_b32(emu_wave *w, const emu_instruction *i) {
  set_bit(w, i, false, true);
}
static void s_bitset0_b64(emu_wave *w, const emu_instruction *i) {
  set_bit(w, i, true, false);
}
static void s_bitset1_b64(emu_wave *w, const emu_instruction *i) {
  set_bit(w, i, true, true);
}

/* Multiply-adds with an inline literal or the destination as addend. */
static void s_fmac_f32(emu_wave *w, const emu_instruction *i) {
  float r =
      fmaf(g(emu_source_scalar(w, i, 0)), g(emu_source_scalar(w, i, 1)), g(emu_scalar32(w, &i->operand[0])));
  emu_set_scalar32(w, &i->operand[0], f(r));
}
static void s_fmac_f16(emu_wave *w, const emu_instruction *i) {
  double product = (double)h(emu_source_scalar(w, i, 0)) * (double)h(emu_source_scalar(w, i, 1));
  double r = product +
             (double)h(emu_scalar32(w, &i->operand[0])); /* exact in f64: 22 + 11 bits, exponents within 80 */
  emu_set_scalar32(w, &i->operand[0], emu_encode(EMU_FORMAT_F16, r, EMU_ROUND_NEAREST_EVEN, false));
}
static void s_fmaak_f32(emu_wave *w, const emu_instruction *i) {
  float r = fmaf(g(emu_source_scalar(w, i, 0)), g(emu_source_scalar(w, i, 1)), g(emu_source_scalar(w, i, 2)));
  emu_set_scalar32(w, &i->operand[0], f(r));
}
static void s_fmamk_f32(emu_wave *w, const emu_instruction *i) {
  s_fmaak_f32(
      w,
      i); /* operands come as a, constant, addend: the product's factors are the first two in text as well */
}

/* ---- EXEC := f(source, EXEC), destination := old EXEC ---- */

#define SAVE_EXEC(X)                                                                                         \
  X(s_and_saveexec, a &exec)                                                                                 \
  X(s_or_saveexec, a | exec)                                                                                 \
  X(s_xor_saveexec, a ^ exec)                                                                                \
  X(s_andn2_saveexec, a & ~exec)                                                                             \
  X(s_orn2_saveexec, a | ~exec)                                                                              \
  X(s_andn1_saveexec, ~a &exec)                                                                              \
  X(s_orn1_saveexec, ~a | exec)                                                                              \
  X(s_nand_saveexec, ~(a & exec))                                                                            \
  X(s_nor_saveexec, ~(a | exec))                                                                             \
  X(s_xnor_saveexec, ~(a ^ exec))

#define X(name, result)                                                                                      \
  static void name##_b64(emu_wave *w, const emu_instruction *i) {                                            \
    uint64_t a = emu_scalar64(w, &i->operand[1]), exec = emu_pair(w, EMU_S_EXEC), r = result;                \
    emu_set_scalar64(w, &i->operand[0], exec);                                                               \
    emu_set_pair(w, EMU_S_EXEC, r);                                                                          \
    SCC = r != 0;                                                                                            \
  }                                                                                                          \
  static void name##_b32(emu_wave *w, const emu_instruction *i) {                                            \
    uint32_t a = emu_source_scalar(w, i, 0), exec = w->s[EMU_S_EXEC], r = result;                            \
    emu_set_scalar32(w, &i->operand[0], exec);                                                               \
    w->s[EMU_S_EXEC] = r;                                                                                    \
    SCC = r != 0;                                                                                            \
  }
SAVE_EXEC(X)
#undef X

/* …_wrexec: EXEC and the destination both get the result. */
#define WRITE_EXEC(X)                                                                                        \
  X(s_andn1_wrexec, ~a &exec)                                                                                \
  X(s_andn2_wrexec, a & ~exec)
#define X(name, result)                                                                                      \
  static void name##_b64(emu_wave *w, const emu_instruction *i) {                                            \
    uint64_t a = emu_scalar64(w, &i->operand[1]), exec = emu_pair(w, EMU_S_EXEC), r = result;                \
    emu_set_pair(w, EMU_S_EXEC, r);                                                                          \
    emu_set_scalar64(w, &i->operand[0], r);                                                                  \
    SCC = r != 0;                                                                                            \
  }                                                                                                          \
  static void name##_b32(emu_wave *w, const emu_instruction *i) {                                            \
    uint32_t a = emu_source_scalar(w, i, 0), exec = w->s[EMU_S_EXEC], r = result;                            \
    w->s[EMU_S_EXEC] = r;                                                                                    \
    emu_set_scalar32(w, &i->operand[0], r);                                                                  \
    SCC = r != 0;                                                                                            \
  }
WRITE_EXEC(X)
#undef X

/* ---- Comparisons: SCC only ---- */

#define COMPARE_32(X)                                                                                        \
  X(s_cmp_eq_i32, a == b)                                                                                    \
  X(s_cmp_lg_i32, a != b)                                                                                    \
  X(s_cmp_gt_i32, (int32_t)a > (int32_t)b)                                                                   \
  X(s_cmp_ge_i32, (int32_t)a >= (int32_t)b)                                                                  \
  X(s_cmp_lt_i32, (int32_t)a < (int32_t)b)                                                                   \
  X(s_cmp_le_i32, (int32_t)a <= (int32_t)b)                                                                  \
  X(s_cmp_eq_u32, a == b)                                                                                    \
  X(s_cmp_lg_u32, a != b)                                                                                    \
  X(s_cmp_gt_u32, a > b)                                                                                     \
  X(s_cmp_ge_u32, a >= b)                                                                                    \
  X(s_cmp_lt_u32, a < b)                                                                                     \
  X(s_cmp_le_u32, a <= b)                                                                                    \
  X(s_bitcmp0_b32, (a >> (b & 31) & 1) == 0)                                                                 \
  X(s_bitcmp1_b32, (a >> (b & 31) & 1) == 1)

/* The fourteen float comparisons: ordered and unordered. */
#define COMPARE_FLOAT(X, suffix, v)                                                                          \
  X(s_cmp_lt_##suffix, v(a) < v(b))                                                                          \
  X(s_cmp_eq_##suffix, v(a) == v(b))                                                                         \
  X(s_cmp_le_##suffix, v(a) <= v(b))                                                                         \
  X(s_cmp_gt_##suffix, v(a) > v(b))                                                                          \
  X(s_cmp_lg_##suffix, v(a) < v(b) || v(a) > v(b))                                                           \
  X(s_cmp_ge_##suffix, v(a) >= v(b))                                                                         \
  X(s_cmp_o_##suffix, v(a) == v(a) && v(b) == v(b))                                                          \
  X(s_cmp_u_##suffix, v(a) != v(a) || v(b) != v(b))                                                          \
  X(s_cmp_nge_##suffix, !(v(a) >= v(b)))                                                                     \
  X(s_cmp_nlg_##suffix, !(v(a) < v(b) || v(a) > v(b)))                                                       \
  X(s_cmp_ngt_##suffix, !(v(a) > v(b)))                                                                      \
  X(s_cmp_nle_##suffix, !(v(a) <= v(b)))                                                                     \
  X(s_cmp_neq_##suffix, !(v(a) == v(b)))                                                                     \
  X(s_cmp_nlt_##suffix, !(v(a) < v(b)))

#define X(name, condition)                                                                                   \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t a = emu_scalar32(w, &i->operand[0]), b = emu_scalar32(w, &i->operand[1]);                       \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
COMPARE_32(X)
COMPARE_FLOAT(X, f32, g)
COMPARE_FLOAT(X, f16, h)
#undef X

#define COMPARE_64(X)                                                                                        \
  X(s_cmp_eq_u64, a == b)                                                                                    \
  X(s_cmp_lg_u64, a != b)                                                                                    \
  X(s_bitcmp0_b64, (a >> (b & 63) & 1) == 0)                                                                 \
  X(s_bitcmp1_b64, (a >> (b & 63) & 1) == 1)
#define X(name, condition)                                                                                   \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint64_t a = emu_scalar64(w, &i->operand[0]), b = emu_scalar64(w, &i->operand[1]);                       \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
COMPARE_64(X)
#undef X

/* ---- SOPK: a 16-bit constant in the encoding ---- */

static int32_t constant16(const emu_instruction *i) {
  return (int16_t)i->immediate;
}

#define COMPARE_CONSTANT(X)                                                                                  \
  X(s_cmpk_eq_i32, (int32_t)a == constant16(i))                                                              \
  X(s_cmpk_lg_i32, (int32_t)a != constant16(i))                                                              \
  X(s_cmpk_gt_i32, (int32_t)a > constant16(i))                                                               \
  X(s_cmpk_ge_i32, (int32_t)a >= constant16(i))                                                              \
  X(s_cmpk_lt_i32, (int32_t)a < constant16(i))                                                               \
  X(s_cmpk_le_i32, (int32_t)a <= constant16(i))                                                              \
  X(s_cmpk_eq_u32, a == i->immediate)                                                                        \
  X(s_cmpk_lg_u32, a != i->immediate)                                                                        \
  X(s_cmpk_gt_u32, a > i->immediate)                                                                         \
  X(s_cmpk_ge_u32, a >= i->immediate)                                                                        \
  X(s_cmpk_lt_u32, a < i->immediate)                                                                         \
  X(s_cmpk_le_u32, a <= i->immediate)
#define X(name, condition)                                                                                   \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    uint32_t a = emu_scalar32(w, &i->operand[0]);                                                            \
    SCC = (condition) ? 1u : 0u;                                                                             \
  }
COMPARE_CONSTANT(X)
#undef X

static void s_movk_i32(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar32(w, &i->operand[0], (uint32_t)constant16(i));
}
static void s_cmovk_i32(emu_wave *w, const emu_instruction *i) {
  if (SCC) emu_set_scalar32(w, &i->operand[0], (uint32_t)constant16(i));
}
static void s_addk_i32(emu_wave *w, const emu_instruction *i) {
  uint32_t a = emu_scalar32(w, &i->operand[0]), b = (uint32_t)constant16(i), r = a + b;
  emu_set_scalar32(w, &i->operand[0], r);
  SCC = (~(a ^ b) & (a ^ r)) >> 31;
}
static void s_mulk_i32(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar32(w, &i->operand[0], emu_scalar32(w, &i->operand[0]) * (uint32_t)constant16(i));
}

#define X(name, ...) {#name, name, 1, 0},
#define X64_32(name, ...) {#name "_b64", name##_b64, 1, 0}, {#name "_b32", name##_b32, 1, 0},
#define XC(name, ...) {#name, name, 0, EMU_NO_DESTINATION},
const emu_row emu_scalar_rows[] = {
    SCALAR2_32(X) SCALAR2_64(X) SCALAR_SHIFT_64(X) SCALAR1_32(X) SCALAR1_64(X) SCALAR1_32_64(X) /* */
    SAVE_EXEC(X64_32) WRITE_EXEC(X64_32) COMPARE_32(XC) COMPARE_64(XC) COMPARE_CONSTANT(XC)     /* */
    COMPARE_FLOAT(XC, f32, g) COMPARE_FLOAT(XC, f16, h)                                         /* */
    X(s_bfm_b64, ) X(s_bitreplicate_b64_b32, ) X(s_cmov_b32, ) X(s_cmov_b64, ) X(s_bitset0_b32, )
        X(s_bitset1_b32, ) X(s_bitset0_b64, ) X(s_bitset1_b64, ) X(s_fmac_f32, ) X(s_fmac_f16, )
            X(s_fmaak_f32, ) X(s_fmamk_f32, ) X(s_movk_i32, ) X(s_cmovk_i32, ) X(s_addk_i32, ) X(s_mulk_i32, )
    /* The same instructions under gfx11's and gfx12's names. */
    {"s_add_co_u32", s_add_u32, 1, 0},
    {"s_sub_co_u32", s_sub_u32, 1, 0},
    {"s_add_co_i32", s_add_i32, 1, 0},
    {"s_sub_co_i32", s_sub_i32, 1, 0},
    {"s_add_co_ci_u32", s_addc_u32, 1, 0},
    {"s_sub_co_ci_u32", s_subb_u32, 1, 0},
    {"s_addk_co_i32", s_addk_i32, 1, 0},
    {"s_and_not1_b32", s_andn2_b32, 1, 0},
    {"s_and_not1_b64", s_andn2_b64, 1, 0},
    {"s_or_not1_b32", s_orn2_b32, 1, 0},
    {"s_or_not1_b64", s_orn2_b64, 1, 0},
    {"s_and_not1_saveexec_b32", s_andn2_saveexec_b32, 1, 0},
    {"s_and_not1_saveexec_b64", s_andn2_saveexec_b64, 1, 0},
    {"s_or_not1_saveexec_b32", s_orn2_saveexec_b32, 1, 0},
    {"s_or_not1_saveexec_b64", s_orn2_saveexec_b64, 1, 0},
    {"s_and_not0_saveexec_b32", s_andn1_saveexec_b32, 1, 0},
    {"s_and_not0_saveexec_b64", s_andn1_saveexec_b64, 1, 0},
    {"s_or_not0_saveexec_b32", s_orn1_saveexec_b32, 1, 0},
    {"s_or_not0_saveexec_b64", s_orn1_saveexec_b64, 1, 0},
    {"s_and_not0_wrexec_b32", s_andn1_wrexec_b32, 1, 0},
    {"s_and_not0_wrexec_b64", s_andn1_wrexec_b64, 1, 0},
    {"s_and_not1_wrexec_b32", s_andn2_wrexec_b32, 1, 0},
    {"s_and_not1_wrexec_b64", s_andn2_wrexec_b64, 1, 0},
    {"s_ctz_i32_b32", s_ff1_i32_b32, 1, 0},
    {"s_ctz_i32_b64", s_ff1_i32_b64, 1, 0},
    {"s_clz_i32_u32", s_flbit_i32_b32, 1, 0},
    {"s_clz_i32_u64", s_flbit_i32_b64, 1, 0},
    {"s_cls_i32", s_flbit_i32, 1, 0},
    {"s_cls_i32_i64", s_flbit_i32_i64, 1, 0},
    {"s_add_u64", s_add_nc_u64, 1, 0},
    {"s_sub_u64", s_sub_nc_u64, 1, 0},
    {NULL, NULL, 0, 0},
};
