/* Shared by vector_*.c: sources and results with the MODE register's denormal rules, rounding modes, and the
 * loop.
 *
 * A handler's arithmetic runs in the host's float unit. Rounding modes other than nearest even and flushed
 * denormals are set by few kernels; both are checked once per instruction, not per lane. */
#ifndef HEDDLE_EMU_VECTOR_H
#define HEDDLE_EMU_VECTOR_H

#include "emu.h"
#include "formats.h"
#include "hot.h"

#include <fenv.h>
#include <math.h>

#define LANES for (int lane = 0; lane < EMU_LANES; ++lane)

/* Shift of the MODE fields: f32 uses the lower pair, f16 and f64 the upper. */
enum { MODE_F32 = 0, MODE_F16_F64 = 2 };

static inline int mode_round(const emu_wave *w, int field) {
  return (int)(w->mode >> field & 3);
}
static inline bool mode_flushes_input(const emu_wave *w, int field) {
  return !(w->mode >> (4 + field) & 1);
}
static inline bool mode_flushes_output(const emu_wave *w, int field) {
  return !(w->mode >> (5 + field) & 1);
}
static inline bool mode_fp16_overflow(const emu_wave *w) {
  return w->mode >> 23 & 1;
}
static inline bool mode_ieee(const emu_wave *w) {
  return w->target->generation == 9 && (w->mode >> 9 & 1);
}

/* Brackets around a loop of arithmetic whose rounding the MODE register chooses. */
static inline void rounding_begin(const emu_wave *w, int field) {
  static const int host[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  int round = mode_round(w, field);
  if (round) fesetround(host[round]);
}
static inline void rounding_end(const emu_wave *w, int field) {
  if (mode_round(w, field)) fesetround(FE_TONEAREST);
}

/* Denormals to zero of the same sign. */
static inline uint32_t flush_f32(uint32_t bits) {
  return bits & 0x7f800000u ? bits : bits & 0x80000000u;
}
static inline uint32_t flush_f16(uint32_t bits) {
  return bits & 0x7c00u ? bits : bits & 0x8000u;
}
static inline uint64_t flush_f64(uint64_t bits) {
  return bits << 1 >> 53 ? bits : bits & UINT64_C(1) << 63;
}

static inline const uint32_t *source_f32(emu_wave *w, const emu_instruction *i, int k, emu_block *block) {
  const uint32_t *p = emu_source(w, i, k, EMU_F32, block).lo;
  if (!mode_flushes_input(w, MODE_F32)) return p;
  LANES block->lane[lane] = flush_f32(p[lane]);
  return block->lane;
}

static inline const uint32_t *previous_f32(emu_wave *w, const emu_instruction *i, emu_block *block) {
  const uint32_t *p = emu_previous(w, i, EMU_F32, block).lo;
  if (!mode_flushes_input(w, MODE_F32)) return p;
  LANES block->lane[lane] = flush_f32(p[lane]);
  return block->lane;
}

static inline void result_f32(emu_wave *w, const emu_instruction *i, emu_block *r) {
  if (mode_flushes_output(w, MODE_F32)) LANES r->lane[lane] = flush_f32(r->lane[lane]);
  emu_result(w, i, EMU_F32, r->lane);
}

/* f16 in the low half, by MODE's input rule. */
static inline const uint32_t *source_f16(emu_wave *w, const emu_instruction *i, int k, emu_block *block) {
  const uint32_t *p = emu_source(w, i, k, EMU_F16, block).lo;
  if (!mode_flushes_input(w, MODE_F16_F64)) return p;
  LANES block->lane[lane] = flush_f16(p[lane] & 0xffff);
  return block->lane;
}

static inline const uint32_t *source_b32(emu_wave *w, const emu_instruction *i, int k, emu_block *block) {
  return emu_source(w, i, k, EMU_B32, block).lo;
}
static inline const uint32_t *source_b16(emu_wave *w, const emu_instruction *i, int k, emu_block *block) {
  return emu_source(w, i, k, EMU_B16, block).lo;
}

/* Two blocks of one 64-bit or packed source or result. */
typedef struct block_pair {
  emu_block lo, hi;
} block_pair;

static inline emu_lanes source_64(emu_wave *w, const emu_instruction *i, int k, emu_type type,
                                  block_pair *block) {
  return emu_source64(w, i, k, type, &block->lo, &block->hi);
}

EMU_INLINE uint64_t pair_at(emu_lanes p, int lane) {
  return (uint64_t)p.hi[lane] << 32 | p.lo[lane];
}
EMU_INLINE double double_at(emu_lanes p, int lane) {
  return emu_double(p.lo[lane], p.hi[lane]);
}
EMU_INLINE void set_pair(block_pair *r, int lane, uint64_t value) {
  r->lo.lane[lane] = (uint32_t)value;
  r->hi.lane[lane] = (uint32_t)(value >> 32);
}
EMU_INLINE void set_double(block_pair *r, int lane, double value) {
  set_pair(r, lane, emu_bits64(value));
}

static inline emu_lanes source_f64(emu_wave *w, const emu_instruction *i, int k, block_pair *block) {
  emu_lanes p = source_64(w, i, k, EMU_F64, block);
  if (!mode_flushes_input(w, MODE_F16_F64)) return p;
  LANES set_pair(block, lane, flush_f64(pair_at(p, lane)));
  return (emu_lanes){block->lo.lane, block->hi.lane};
}

static inline void result_f64(emu_wave *w, const emu_instruction *i, block_pair *r) {
  if (mode_flushes_output(w, MODE_F16_F64))
    LANES set_pair(r, lane, flush_f64((uint64_t)r->hi.lane[lane] << 32 | r->lo.lane[lane]));
  emu_result64(w, i, EMU_F64, r->lo.lane, r->hi.lane);
}

/* flag[lane] in {0, 1} → bit `lane` of a mask. Eight flags at a time: the product gathers their low bits in
 * its top byte. */
static inline uint64_t pack_mask(const uint8_t flag[EMU_LANES]) {
  uint64_t mask = 0;
  for (int byte = 0; byte < EMU_LANES / 8; ++byte) {
    uint64_t eight;
    memcpy(&eight, flag + 8 * byte, sizeof eight);
    mask |= (eight * 0x0102040810204080u >> 56) << (8 * byte);
  }
  return mask;
}

/* Correctly rounded a * b + c for operands whose product is exact in f64 (f32 and narrower): the f64 sum is
 * rounded to odd, so that the later rounding to 25 bits or fewer sees on which side of a tie the exact value
 * lies. */
EMU_INLINE double fma_to_odd(double a, double b, double c) {
  double product = a * b, sum = product + c;
  double from_c = sum - product, error = (product - (sum - from_c)) + (c - from_c);
  uint64_t bits = emu_bits64(sum), error_bits = emu_bits64(error);
  /* Exact, infinite or NaN sums stay; otherwise step towards zero if the sum overshot, then set the last bit.
   */
  bool inexact = error > 0 || error < 0, overshot = (bits ^ error_bits) >> 63;
  uint64_t odd = (bits - (uint64_t)overshot) | 1;
  return emu_f64(inexact ? odd : bits);
}

/* f64 → f32 rounded to odd, for a second rounding to f16 or bf16. */
EMU_INLINE float to_odd_f32(double value) {
  float nearest = (float)value;
  double back = (double)nearest;
  uint32_t bits = emu_bits32(nearest);
  bool inexact = back > value || back < value;
  bool overshot = fabs(back) > fabs(value);
  return emu_f32(inexact ? (bits - (uint32_t)overshot) | 1 : bits);
}

/* Sums of two f16 (exact in f64) and of two bf16, rounded to odd so that any rounding to the half is right.
 */
EMU_INLINE float add_f16(float a, float b) {
  return to_odd_f32((double)a + (double)b);
}
EMU_INLINE float add_bf16(float a, float b) {
  return to_odd_f32(fma_to_odd((double)a, 1.0, (double)b));
}

/* ldexp without its libm call: three exact-enough steps would round twice for denormals, so go through f64,
 * whose range holds every f32 scaled by up to 2^±512, and round once. */
EMU_INLINE float scale_f32(float a, int32_t exponent) {
  exponent = exponent > 400 ? 400 : exponent < -400 ? -400 : exponent;
  return (float)((double)a * emu_f64((uint64_t)(1023 + exponent) << 52));
}

/* The larger and the smaller of two, by the rules of v_max_f32/v_min_f32 and minNum/maxNum: a NaN loses
 * against a number, +0 is larger than -0. */
EMU_INLINE float max_number(float a, float b) {
  uint32_t x = emu_bits32(a), y = emu_bits32(b);
  uint32_t r = a > b ? x : b > a ? y : x & y; /* equal zeros: +0 if any */
  r = a != a ? y : r;
  r = b != b ? x : r;
  return emu_f32(a != a && b != b ? x | 0x400000u : r);
}
EMU_INLINE float min_number(float a, float b) {
  uint32_t x = emu_bits32(a), y = emu_bits32(b);
  uint32_t r = a < b ? x : b < a ? y : x | y;
  r = a != a ? y : r;
  r = b != b ? x : r;
  return emu_f32(a != a && b != b ? x | 0x400000u : r);
}
/* IEEE 754-2019 maximum and minimum: a NaN wins. */
EMU_INLINE float maximum(float a, float b) {
  return a != a || b != b ? emu_f32(0x7fc00000u) : max_number(a, b);
}
EMU_INLINE float minimum(float a, float b) {
  return a != a || b != b ? emu_f32(0x7fc00000u) : min_number(a, b);
}

/* The middle of three numbers; with a NaN among them, the smallest of the others. */
EMU_INLINE float median(float a, float b, float c) {
  float low = min_number(a, b), middle = max_number(low, min_number(max_number(a, b), c));
  return a != a || b != b || c != c ? min_number(low, c) : middle;
}

#define TRANSCENDENTAL(name, handler)                                                                        \
  { #name, handler, 1, EMU_TRANSCENDENTAL }
#define KEEPS(name)                                                                                          \
  { #name, name, 1, EMU_KEEPS_HIGH }
#define ROW(name)                                                                                            \
  { #name, name, 1, 0 }
#define ROW_AS(name, handler)                                                                                \
  { #name, handler, 1, 0 }
#define END_OF_ROWS                                                                                          \
  { NULL, NULL, 0, 0 }

#endif
