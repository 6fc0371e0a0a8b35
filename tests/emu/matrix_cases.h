/* Matrix instructions of every target: where lanes and slots of an operand and of the result lie, worked out
 * here on their own, and the codes of small integers in every format. */
#ifndef HEDDLE_TESTS_MATRIX_CASES_H
#define HEDDLE_TESTS_MATRIX_CASES_H

#include "emu_bench.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

/* Where an element of A (row = its row) or B (row = its column) lies. */
typedef struct place {
  int row, k, block;
} place;

/* ---- operand layouts: lane and slot → place ---- */

static place m32_k1x2(int lane, int slot) {
  return (place){lane % 32, slot, lane / 32};
} /* 32x32, two blocks */
static place m16_k1x4(int lane, int slot) {
  return (place){lane % 16, slot, lane / 16};
} /* 16x16, four blocks */
static place m4_x16(int lane, int slot) {
  return (place){lane % 4, slot, lane / 4};
} /* 4x4, sixteen blocks */
static place m32_by1(int lane, int slot) {
  return (place){lane % 32, lane / 32 + slot, 0};
} /* one k a lane */
static place m16_by1(int lane, int slot) {
  return (place){lane % 16, lane / 16 + slot, 0};
}
static place m32_by2(int lane, int slot) {
  return (place){lane % 32, 2 * (lane / 32) + slot, 0};
}
static place m16_by2(int lane, int slot) {
  return (place){lane % 16, 2 * (lane / 16) + slot, 0};
}
static place m32_by4(int lane, int slot) {
  return (place){lane % 32, 4 * (lane / 32) + slot, 0};
}
static place m16_by4(int lane, int slot) {
  return (place){lane % 16, 4 * (lane / 16) + slot, 0};
}
static place m32_by8(int lane, int slot) {
  return (place){lane % 32, 8 * (lane / 32) + slot, 0};
}
static place m16_by8(int lane, int slot) {
  return (place){lane % 16, 8 * (lane / 16) + slot, 0};
}
static place m32_by16(int lane, int slot) {
  return (place){lane % 32, 16 * (lane / 32) + slot, 0};
}
static place m16_by16(int lane, int slot) {
  return (place){lane % 16, 16 * (lane / 16) + slot, 0};
}
/* 16x16x128 with bytes: slots 0-15 are k 16g…, slots 16-31 are 64 + 16g… */
static place m16_k128(int lane, int slot) {
  return (place){lane % 16, 64 * (slot / 16) + 16 * (lane / 16) + slot % 16, 0};
}
static place m32_k64(int lane, int slot) {
  return (place){lane % 32, 32 * (slot / 16) + 16 * (lane / 32) + slot % 16, 0};
}
/* the same with 6- and 4-bit elements: 32 in a row */
static place m16_by32(int lane, int slot) {
  return (place){lane % 16, 32 * (lane / 16) + slot, 0};
}
static place m32_by32(int lane, int slot) {
  return (place){lane % 32, 32 * (lane / 32) + slot, 0};
}
static place f64_4x4(int lane, int slot) {
  return (place){lane % 4, lane / 16 + slot, lane / 4 % 4};
}
/* wave32: two halves */
static place w_by2(int lane, int slot) {
  return (place){lane % 16, 2 * (lane / 16) + slot, 0};
}
static place w_by8(int lane, int slot) {
  return (place){lane % 16, 8 * (lane / 16) + slot, 0};
}
static place w_by16(int lane, int slot) {
  return (place){lane % 16, 16 * (lane / 16) + slot, 0};
}
static place w_k32(int lane, int slot) {
  return (place){lane % 16, 16 * (slot / 8) + 8 * (lane / 16) + slot % 8, 0};
}
static place w_k64(int lane, int slot) {
  return (place){lane % 16, 32 * (slot / 16) + 16 * (lane / 16) + slot % 16, 0};
}
static place w_fp4(int lane, int slot) {
  return (place){lane % 16, 64 * (slot / 32) + 32 * (lane / 16) + slot % 32, 0};
}

/* ---- result layouts: lane and slot → row, column, block ---- */

typedef struct result_place {
  int row, column, block;
} result_place;

static result_place d32(int lane, int slot) { /* 16 slots a block */
  return (result_place){8 * (slot % 16 / 4) + 4 * (lane / 32) + slot % 4, lane % 32, slot / 16};
}
static result_place d16(int lane, int slot) {
  return (result_place){4 * (lane / 16) + slot % 4, lane % 16, slot / 4};
}
static result_place d4(int lane, int slot) {
  return (result_place){slot, lane % 4, lane / 4};
}
static result_place d16_f64(int lane, int slot) {
  return (result_place){lane / 16 + 4 * slot, lane % 16, 0};
}
static result_place d4_f64(int lane, int slot) {
  return (result_place){lane / 16 + 4 * slot, lane % 4, lane / 4 % 4};
}
static result_place dw(int lane, int slot) {
  return (result_place){8 * (lane / 16) + slot, lane % 16, 0};
}

/* ---- number codes of small integers ---- */

typedef enum kind { F32, F64, F16, BF16, FP8, BF8, FP8Z, BF8Z, FP6, BF6, FP4, I8, U8, I4, U4, I32 } kind;

static const int kind_bits[] = {
    [F32] = 32, [F64] = 64, [F16] = 16, [BF16] = 16, [FP8] = 8, [BF8] = 8, [FP8Z] = 8, [BF8Z] = 8,
    [FP6] = 6,  [BF6] = 6,  [FP4] = 4,  [I8] = 8,    [U8] = 8,  [I4] = 4,  [U4] = 4,   [I32] = 32};

/* Codes of 0, 1, 2, 3 and their negatives, looked up in the formats' definitions. */
static uint64_t code_of(kind k, int value) {
  static const uint8_t fp8[] = {0x00, 0x38, 0x40, 0x44}, bf8[] = {0x00, 0x3c, 0x40, 0x42},
                       fp8z[] = {0x00, 0x40, 0x48, 0x4c};
  static const uint8_t bf8z[] = {0x00, 0x40, 0x44, 0x46}, fp6[] = {0x00, 0x08, 0x10, 0x14},
                       bf6[] = {0x00, 0x0c, 0x10, 0x12};
  static const uint8_t fp4[] = {0x0, 0x2, 0x4, 0x5};
  static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200}, bf16[] = {0, 0x3f80, 0x4000, 0x4040};
  int magnitude = abs(value), negative = value < 0;
  float f = (float)value;
  double d = value;
  uint64_t bits = 0;
  switch (k) {
  case F32:
    memcpy(&bits, &f, sizeof f);
    return bits;
  case F64:
    memcpy(&bits, &d, sizeof d);
    return bits;
  case F16:
    return f16[magnitude] | (negative ? 0x8000u : 0);
  case BF16:
    return bf16[magnitude] | (negative ? 0x8000u : 0);
  case FP8:
    return fp8[magnitude] | (negative ? 0x80u : 0);
  case BF8:
    return bf8[magnitude] | (negative ? 0x80u : 0);
  case FP8Z:
    return fp8z[magnitude] | (negative ? 0x80u : 0);
  case BF8Z:
    return bf8z[magnitude] | (negative ? 0x80u : 0);
  case FP6:
    return fp6[magnitude] | (negative ? 0x20u : 0);
  case BF6:
    return bf6[magnitude] | (negative ? 0x20u : 0);
  case FP4:
    return fp4[magnitude] | (negative ? 0x8u : 0);
  default:
    return (uint64_t)(uint32_t)value & (kind_bits[k] == 32 ? UINT32_MAX : (1u << kind_bits[k]) - 1);
  }
}

static double value_of(kind k, uint64_t bits) {
  float f;
  double d;
  uint32_t low = (uint32_t)bits;
  switch (k) {
  case F32:
    memcpy(&f, &low, sizeof f);
    return (double)f;
  case F64:
    memcpy(&d, &bits, sizeof d);
    return d;
  case BF16:
    low <<= 16;
    memcpy(&f, &low, sizeof f);
    return (double)f;
  case F16: {
    int e = (int)(low >> 10 & 31), m = (int)(low & 1023);
    double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return low & 0x8000 ? -v : v;
  }
  default:
    return (double)(int32_t)low;
  }
}

/* ---- the instructions ---- */

typedef struct matrix_case {
  const char *name;
  int m, n, k, blocks;
  kind a, b, c, d;
  place (*place_a)(int, int);
  place (*place_b)(int, int);
  result_place (*place_d)(int, int);
  int formats; /* cbsz/blgp or matrix_fmt: a | b << 3, -1 when the name says all */
} matrix_case;

#define MFMA(name, m, n, k, blocks, a, b, d, layout, result)                                                 \
  { "v_mfma_" name, m, n, k, blocks, a, b, d, d, layout, layout, result, -1 }
#define F8F6F4(name, m, k, a, b, la, lb, result, fa, fb)                                                     \
  { name, m, m, k, 1, a, b, F32, F32, la, lb, result, (fa) | (fb) << 3 }
#define WMMA(name, k, a, b, d, layout)                                                                       \
  { "v_wmma_" name, 16, 16, k, 1, a, b, d, d, layout, layout, dw, -1 }

static const matrix_case mfma_cases[] = {
    MFMA("f32_32x32x1_2b_f32", 32, 32, 1, 2, F32, F32, F32, m32_k1x2, d32),
    MFMA("f32_16x16x1_4b_f32", 16, 16, 1, 4, F32, F32, F32, m16_k1x4, d16),
    MFMA("f32_4x4x1_16b_f32", 4, 4, 1, 16, F32, F32, F32, m4_x16, d4),
    MFMA("f32_32x32x2_f32", 32, 32, 2, 1, F32, F32, F32, m32_by1, d32),
    MFMA("f32_16x16x4_f32", 16, 16, 4, 1, F32, F32, F32, m16_by1, d16),
    MFMA("f32_32x32x4_xf32", 32, 32, 4, 1, F32, F32, F32, m32_by2, d32),
    MFMA("f32_16x16x8_xf32", 16, 16, 8, 1, F32, F32, F32, m16_by2, d16),
    MFMA("f32_32x32x4_2b_f16", 32, 32, 4, 2, F16, F16, F32, m32_k1x2, d32),
    MFMA("f32_16x16x4_4b_f16", 16, 16, 4, 4, F16, F16, F32, m16_k1x4, d16),
    MFMA("f32_4x4x4_16b_f16", 4, 4, 4, 16, F16, F16, F32, m4_x16, d4),
    MFMA("f32_32x32x8_f16", 32, 32, 8, 1, F16, F16, F32, m32_by4, d32),
    MFMA("f32_16x16x16_f16", 16, 16, 16, 1, F16, F16, F32, m16_by4, d16),
    MFMA("f32_32x32x16_f16", 32, 32, 16, 1, F16, F16, F32, m32_by8, d32),
    MFMA("f32_16x16x32_f16", 16, 16, 32, 1, F16, F16, F32, m16_by8, d16),
    MFMA("f32_32x32x4_2b_bf16", 32, 32, 4, 2, BF16, BF16, F32, m32_k1x2, d32),
    MFMA("f32_16x16x4_4b_bf16", 16, 16, 4, 4, BF16, BF16, F32, m16_k1x4, d16),
    MFMA("f32_4x4x4_16b_bf16", 4, 4, 4, 16, BF16, BF16, F32, m4_x16, d4),
    MFMA("f32_32x32x8_bf16", 32, 32, 8, 1, BF16, BF16, F32, m32_by4, d32),
    MFMA("f32_16x16x16_bf16", 16, 16, 16, 1, BF16, BF16, F32, m16_by4, d16),
    MFMA("f32_32x32x16_bf16", 32, 32, 16, 1, BF16, BF16, F32, m32_by8, d32),
    MFMA("f32_16x16x32_bf16", 16, 16, 32, 1, BF16, BF16, F32, m16_by8, d16),
    MFMA("f32_16x16x32_fp8_fp8", 16, 16, 32, 1, FP8, FP8, F32, m16_by8, d16),
    MFMA("f32_16x16x32_fp8_bf8", 16, 16, 32, 1, FP8, BF8, F32, m16_by8, d16),
    MFMA("f32_16x16x32_bf8_fp8", 16, 16, 32, 1, BF8, FP8, F32, m16_by8, d16),
    MFMA("f32_16x16x32_bf8_bf8", 16, 16, 32, 1, BF8, BF8, F32, m16_by8, d16),
    MFMA("f32_32x32x16_fp8_fp8", 32, 32, 16, 1, FP8, FP8, F32, m32_by8, d32),
    MFMA("f32_32x32x16_fp8_bf8", 32, 32, 16, 1, FP8, BF8, F32, m32_by8, d32),
    MFMA("f32_32x32x16_bf8_fp8", 32, 32, 16, 1, BF8, FP8, F32, m32_by8, d32),
    MFMA("f32_32x32x16_bf8_bf8", 32, 32, 16, 1, BF8, BF8, F32, m32_by8, d32),
    MFMA("i32_32x32x4_2b_i8", 32, 32, 4, 2, I8, I8, I32, m32_k1x2, d32),
    MFMA("i32_16x16x4_4b_i8", 16, 16, 4, 4, I8, I8, I32, m16_k1x4, d16),
    MFMA("i32_4x4x4_16b_i8", 4, 4, 4, 16, I8, I8, I32, m4_x16, d4),
    MFMA("i32_32x32x16_i8", 32, 32, 16, 1, I8, I8, I32, m32_by8, d32),
    MFMA("i32_16x16x32_i8", 16, 16, 32, 1, I8, I8, I32, m16_by8, d16),
    MFMA("i32_32x32x32_i8", 32, 32, 32, 1, I8, I8, I32, m32_by16, d32),
    MFMA("i32_16x16x64_i8", 16, 16, 64, 1, I8, I8, I32, m16_by16, d16),
    MFMA("f64_16x16x4_f64", 16, 16, 4, 1, F64, F64, F64, m16_by1, d16_f64),
    MFMA("f64_4x4x4_4b_f64", 4, 4, 4, 4, F64, F64, F64, f64_4x4, d4_f64),
    F8F6F4("v_mfma_f32_16x16x128_f8f6f4", 16, 128, FP8, FP8, m16_k128, m16_k128, d16, 0, 0),
    F8F6F4("v_mfma_f32_16x16x128_f8f6f4", 16, 128, FP8, BF8, m16_k128, m16_k128, d16, 0, 1),
    F8F6F4("v_mfma_f32_16x16x128_f8f6f4", 16, 128, FP6, BF6, m16_by32, m16_by32, d16, 2, 3),
    F8F6F4("v_mfma_f32_16x16x128_f8f6f4", 16, 128, FP4, FP4, m16_by32, m16_by32, d16, 4, 4),
    F8F6F4("v_mfma_f32_16x16x128_f8f6f4", 16, 128, FP8, FP4, m16_k128, m16_by32, d16, 0, 4),
    F8F6F4("v_mfma_f32_32x32x64_f8f6f4", 32, 64, FP8, BF8, m32_k64, m32_k64, d32, 0, 1),
    F8F6F4("v_mfma_f32_32x32x64_f8f6f4", 32, 64, BF6, FP6, m32_by32, m32_by32, d32, 3, 2),
    F8F6F4("v_mfma_f32_32x32x64_f8f6f4", 32, 64, FP4, FP8, m32_by32, m32_k64, d32, 4, 0),
};

static const matrix_case wmma_cases[] = {
    WMMA("f32_16x16x16_f16", 16, F16, F16, F32, w_by8),
    WMMA("f32_16x16x16_bf16", 16, BF16, BF16, F32, w_by8),
    WMMA("f16_16x16x16_f16", 16, F16, F16, F16, w_by8),
    WMMA("bf16_16x16x16_bf16", 16, BF16, BF16, BF16, w_by8),
    WMMA("f32_16x16x16_fp8_fp8", 16, FP8, FP8, F32, w_by8),
    WMMA("f32_16x16x16_fp8_bf8", 16, FP8, BF8, F32, w_by8),
    WMMA("f32_16x16x16_bf8_fp8", 16, BF8, FP8, F32, w_by8),
    WMMA("f32_16x16x16_bf8_bf8", 16, BF8, BF8, F32, w_by8),
    WMMA("i32_16x16x16_iu8", 16, U8, U8, I32, w_by8),
    WMMA("i32_16x16x16_iu4", 16, U4, U4, I32, w_by8),
    WMMA("i32_16x16x32_iu4", 32, U4, U4, I32, w_by16),
    WMMA("f32_16x16x4_f32", 4, F32, F32, F32, w_by2),
    WMMA("f32_16x16x32_f16", 32, F16, F16, F32, w_k32),
    WMMA("f32_16x16x32_bf16", 32, BF16, BF16, F32, w_k32),
    WMMA("f16_16x16x32_f16", 32, F16, F16, F16, w_k32),
    WMMA("bf16_16x16x32_bf16", 32, BF16, BF16, BF16, w_k32),
    {"v_wmma_bf16f32_16x16x32_bf16", 16, 16, 32, 1, BF16, BF16, F32, BF16, w_k32, w_k32, dw, -1},
    WMMA("f32_16x16x64_fp8_fp8", 64, FP8, FP8, F32, w_k64),
    WMMA("f32_16x16x64_fp8_bf8", 64, FP8, BF8, F32, w_k64),
    WMMA("f32_16x16x64_bf8_fp8", 64, BF8, FP8, F32, w_k64),
    WMMA("f32_16x16x64_bf8_bf8", 64, BF8, BF8, F32, w_k64),
    WMMA("f16_16x16x64_fp8_fp8", 64, FP8, FP8, F16, w_k64),
    WMMA("f16_16x16x64_fp8_bf8", 64, FP8, BF8, F16, w_k64),
    WMMA("f16_16x16x64_bf8_fp8", 64, BF8, FP8, F16, w_k64),
    WMMA("f16_16x16x64_bf8_bf8", 64, BF8, BF8, F16, w_k64),
    WMMA("f32_16x16x128_fp8_fp8", 128, FP8, FP8, F32, w_k64),
    WMMA("f32_16x16x128_fp8_bf8", 128, FP8, BF8, F32, w_k64),
    WMMA("f32_16x16x128_bf8_fp8", 128, BF8, FP8, F32, w_k64),
    WMMA("f32_16x16x128_bf8_bf8", 128, BF8, BF8, F32, w_k64),
    WMMA("f16_16x16x128_fp8_fp8", 128, FP8, FP8, F16, w_k64),
    WMMA("f16_16x16x128_fp8_bf8", 128, FP8, BF8, F16, w_k64),
    WMMA("f16_16x16x128_bf8_fp8", 128, BF8, FP8, F16, w_k64),
    WMMA("f16_16x16x128_bf8_bf8", 128, BF8, BF8, F16, w_k64),
    WMMA("i32_16x16x64_iu8", 64, U8, U8, I32, w_k64),
    F8F6F4("v_wmma_f32_16x16x128_f8f6f4", 16, 128, FP8, BF8, w_k64, w_k64, dw, 0, 1),
    F8F6F4("v_wmma_f32_16x16x128_f8f6f4", 16, 128, FP6, FP4, w_fp4, w_fp4, dw, 2, 4),
};

#endif
