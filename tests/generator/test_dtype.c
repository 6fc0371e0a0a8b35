/* Claims about the number formats, checked exhaustively where a format has at most 16 bits. */
#include "../../generator/dtype.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

static double decode(dtype d, uint64_t code) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++)
    bytes[i] = (unsigned char)(code >> (8 * i));
  return dtype_decode(d, bytes);
}

static uint64_t encode(dtype d, double value) {
  unsigned char bytes[8] = {0};
  dtype_encode(d, value, bytes);
  uint64_t code = 0;
  for (int i = 0; i < 8; i++)
    code |= (uint64_t)bytes[i] << (8 * i);
  return code;
}

static const dtype small_floats[] = {DTYPE_BF16, DTYPE_FP16, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ,
                                     DTYPE_FP8_E5M2};
enum { SMALL_FLOATS = sizeof small_floats / sizeof small_floats[0] };

static uint64_t sign_bit(dtype d) {
  return UINT64_C(1) << (8 * dtype_bytes(d) - 1);
}

/* Number of finite magnitudes: codes 0 .. count - 1 grow with their values. */
static uint64_t finite_count(dtype d) {
  uint64_t count = 0;
  while (count < sign_bit(d) && isfinite(decode(d, count)))
    count++;
  return count;
}

Test(dtype, values_worked_by_hand) {
  static const struct {
    dtype d;
    uint64_t code;
    double value;
  } cases[] = {
      {DTYPE_FP8_E4M3FN, 0x00, 0.0},
      {DTYPE_FP8_E4M3FN, 0x01, 0x1p-9},
      {DTYPE_FP8_E4M3FN, 0x07, 0x1.cp-7},
      {DTYPE_FP8_E4M3FN, 0x08, 0x1p-6},
      {DTYPE_FP8_E4M3FN, 0x38, 1.0},
      {DTYPE_FP8_E4M3FN, 0xb9, -1.125},
      {DTYPE_FP8_E4M3FN, 0x7e, 448.0},
      {DTYPE_FP8_E4M3FN, 0xfe, -448.0},
      {DTYPE_FP8_E4M3, 0x7e, 448.0},
      {DTYPE_FP8_E4M3FNUZ, 0x01, 0x1p-10},
      {DTYPE_FP8_E4M3FNUZ, 0x38, 0.5},
      {DTYPE_FP8_E4M3FNUZ, 0x40, 1.0},
      {DTYPE_FP8_E4M3FNUZ, 0x7f, 240.0},
      {DTYPE_FP8_E4M3FNUZ, 0x81, -0x1p-10},
      {DTYPE_FP8_E4M3FNUZ, 0xff, -240.0},
      {DTYPE_FP8_E5M2, 0x01, 0x1p-16},
      {DTYPE_FP8_E5M2, 0x04, 0x1p-14},
      {DTYPE_FP8_E5M2, 0x3c, 1.0},
      {DTYPE_FP8_E5M2, 0x7b, 57344.0},
      {DTYPE_FP8_E5M2, 0x7c, INFINITY},
      {DTYPE_FP8_E5M2, 0xfc, -INFINITY},
      {DTYPE_FP16, 0x0001, 0x1p-24},
      {DTYPE_FP16, 0x3555, 0.333251953125},
      {DTYPE_FP16, 0xc000, -2.0},
      {DTYPE_FP16, 0x7bff, 65504.0},
      {DTYPE_FP16, 0x7c00, INFINITY},
      {DTYPE_BF16, 0x0001, 0x1p-133},
      {DTYPE_BF16, 0x3f80, 1.0},
      {DTYPE_BF16, 0x4049, 3.140625},
      {DTYPE_BF16, 0xff80, -INFINITY},
      {DTYPE_FP32, 0x00000001, 0x1p-149},
      {DTYPE_FP32, 0x3fc00000, 1.5},
      {DTYPE_FP32, 0x7f7fffff, FLT_MAX},
      {DTYPE_E8M0, 0x00, 0x1p-127},
      {DTYPE_E8M0, 0x7f, 1.0},
      {DTYPE_E8M0, 0x80, 2.0},
      {DTYPE_E8M0, 0xfe, 0x1p127},
      {DTYPE_INT8, 0x7f, 127.0},
      {DTYPE_INT8, 0x80, -128.0},
      {DTYPE_INT8, 0xff, -1.0},
      {DTYPE_INT32, 0x80000000, -2147483648.0},
      {DTYPE_INT32, 0x7fffffff, 2147483647.0},
      {DTYPE_INT64, 0xffffffffffffffff, -1.0},
      {DTYPE_INT64, 0x0000000100000001, 4294967297.0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cr_expect(decode(cases[i].d, cases[i].code) == cases[i].value, "%s 0x%llx", dtype_name(cases[i].d),
              (unsigned long long)cases[i].code);
    cr_expect(isinf(cases[i].value) || encode(cases[i].d, cases[i].value) == cases[i].code, "%s back from %g",
              dtype_name(cases[i].d), cases[i].value);
  }
}

Test(dtype, nan_codes_are_exactly_the_documented_ones) {
  for (uint64_t code = 0; code < 256; code++) {
    cr_expect_eq(isnan(decode(DTYPE_FP8_E4M3FN, code)) != 0, code == 0x7f || code == 0xff);
    cr_expect_eq(isnan(decode(DTYPE_FP8_E4M3FNUZ, code)) != 0, code == 0x80);
    cr_expect_eq(isnan(decode(DTYPE_FP8_E5M2, code)) != 0, (code & 0x7f) > 0x7c);
    cr_expect_eq(isnan(decode(DTYPE_E8M0, code)) != 0, code == 0xff);
    cr_expect_not(isnan(decode(DTYPE_INT8, code)));
  }
  for (uint64_t code = 0; code < 65536; code++) {
    cr_expect_eq(isnan(decode(DTYPE_FP16, code)) != 0, (code & 0x7fff) > 0x7c00);
    cr_expect_eq(isnan(decode(DTYPE_BF16, code)) != 0, (code & 0x7fff) > 0x7f80);
  }
}

Test(dtype, nan_is_stored_as_the_positive_nan) {
  static const uint64_t expected[DTYPE_COUNT] = {
      [DTYPE_BF16] = 0x7fc0,     [DTYPE_FP16] = 0x7e00,       [DTYPE_FP32] = 0x7fc00000,
      [DTYPE_FP8_E4M3FN] = 0x7f, [DTYPE_FP8_E4M3FNUZ] = 0x80, [DTYPE_FP8_E5M2] = 0x7f,
      [DTYPE_E8M0] = 0xff,       [DTYPE_FP8_E4M3] = 0x7f,     [DTYPE_INT8] = 0,
      [DTYPE_INT32] = 0,         [DTYPE_INT64] = 0,           [DTYPE_UINT8] = 0,
  };
  for (int d = 0; d < DTYPE_COUNT; d++) {
    cr_expect_eq(encode((dtype)d, NAN), expected[d], "%s", dtype_name((dtype)d));
    cr_expect_eq(encode((dtype)d, copysign(NAN, -1.0)), expected[d], "%s", dtype_name((dtype)d));
  }
}

Test(dtype, every_code_survives_decode_and_encode) {
  for (int i = 0; i < SMALL_FLOATS; i++) {
    const dtype d = small_floats[i];
    const bool saturates = dtype_is_fp8(d);
    for (uint64_t code = 0; code < 2 * sign_bit(d); code++) {
      const double value = decode(d, code);
      if (isnan(value) || (isinf(value) && saturates)) continue;
      cr_expect_eq(encode(d, value), code, "%s 0x%llx", dtype_name(d), (unsigned long long)code);
    }
  }
  for (uint64_t code = 0; code < 255; code++)
    cr_expect_eq(encode(DTYPE_E8M0, decode(DTYPE_E8M0, code)), code);
  for (uint64_t code = 0; code < 256; code++) {
    cr_expect_eq(encode(DTYPE_INT8, decode(DTYPE_INT8, code)), code);
    cr_expect_eq(encode(DTYPE_UINT8, decode(DTYPE_UINT8, code)), code);
  }
}

Test(dtype, magnitudes_grow_with_codes_and_end_at_the_listed_maximum) {
  for (int i = 0; i < SMALL_FLOATS; i++) {
    const dtype d = small_floats[i];
    const uint64_t count = finite_count(d);
    for (uint64_t code = 1; code < count; code++)
      cr_assert(decode(d, code) > decode(d, code - 1));
    cr_expect(decode(d, count - 1) == dtype_max(d), "%s", dtype_name(d));
  }
  cr_expect(dtype_max(DTYPE_FP32) == FLT_MAX);
  cr_expect(decode(DTYPE_E8M0, 0xfe) == dtype_max(DTYPE_E8M0));
}

/* One ulp of double to either side of every midpoint: a second rounding on the way would move some of them.
 */
static void check_midpoints(dtype d) {
  const uint64_t count = finite_count(d);
  for (uint64_t below = 0; below + 1 < count; below++) {
    const uint64_t above = below + 1, even = below % 2 == 0 ? below : above;
    const double middle = (decode(d, below) + decode(d, above)) / 2; /* exact in double */
    for (int negative = 0; negative < 2; negative++) {
      const uint64_t sign = negative ? sign_bit(d) : 0;
      const double factor = negative ? -1.0 : 1.0;
      const uint64_t zero = d == DTYPE_FP8_E4M3FNUZ ? 0 : sign;
      const uint64_t low = below == 0 ? zero : sign | below;
      cr_expect_eq(encode(d, factor * nextafter(middle, 0.0)), low);
      cr_expect_eq(encode(d, factor * middle), even == below ? low : sign | above);
      cr_expect_eq(encode(d, factor * nextafter(middle, INFINITY)), sign | above);
    }
  }
}

Test(dtype, midpoints_round_to_even_and_neighbours_to_the_nearest) {
  for (int i = 0; i < SMALL_FLOATS; i++)
    check_midpoints(small_floats[i]);
}

Test(dtype, rounding_does_not_depend_on_the_rounding_mode) {
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(fesetround(modes[i]), 0);
    const uint64_t up = encode(DTYPE_FP8_E4M3FN, 1.0625 + 0x1p-30), tie = encode(DTYPE_FP8_E4M3FN, 1.0625);
    const uint64_t whole = encode(DTYPE_INT8, -2.5);
    fesetround(FE_TONEAREST);
    cr_expect_eq(up, 0x39);
    cr_expect_eq(tie, 0x38);
    cr_expect_eq(whole, 0xfe);
  }
}

Test(dtype, double_to_bf16_and_fp16_rounds_once) {
  /* Through fp32 first, the small addend would be lost and the tie would go to even. */
  cr_expect_eq(encode(DTYPE_BF16, 1.0 + 0x1p-8), 0x3f80);
  cr_expect_eq(encode(DTYPE_BF16, 1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
  cr_expect_eq(encode(DTYPE_FP16, 1.0 + 0x1p-11), 0x3c00);
  cr_expect_eq(encode(DTYPE_FP16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}

Test(dtype, beyond_the_largest_value) {
  static const struct {
    dtype d;
    double value;
    uint64_t code;
  } cases[] = {
      {DTYPE_FP8_E4M3FN, 449.0, 0x7e},
      {DTYPE_FP8_E4M3FN, 464.0, 0x7e}, /* halfway to what would be 480, the NaN code */
      {DTYPE_FP8_E4M3FN, 1e300, 0x7e},
      {DTYPE_FP8_E4M3FN, -INFINITY, 0xfe},
      {DTYPE_FP8_E4M3FNUZ, 248.0, 0x7f},
      {DTYPE_FP8_E4M3FNUZ, -1e9, 0xff},
      {DTYPE_FP8_E4M3FNUZ, INFINITY, 0x7f},
      {DTYPE_FP8_E5M2, 61440.0, 0x7b},
      {DTYPE_FP8_E5M2, INFINITY, 0x7b},
      {DTYPE_FP16, 65519.99, 0x7bff},
      {DTYPE_FP16, 65520.0, 0x7c00},
      {DTYPE_FP16, -1e10, 0xfc00},
      {DTYPE_BF16, 0x1.fep127, 0x7f7f},
      {DTYPE_BF16, 0x1.fefffffffffffp127, 0x7f7f},
      {DTYPE_BF16, 0x1.ffp127, 0x7f80},
      {DTYPE_BF16, -1e300, 0xff80},
      {DTYPE_FP32, 0x1.ffffffp127, 0x7f800000},
      {DTYPE_FP32, 0x1.fffffefffffffp127, 0x7f7fffff},
      {DTYPE_INT8, 127.5, 0x7f},
      {DTYPE_INT8, 1e30, 0x7f},
      {DTYPE_INT8, -128.5, 0x80},
      {DTYPE_INT8, -INFINITY, 0x80},
      {DTYPE_UINT8, 254.5, 0xfe},
      {DTYPE_UINT8, 255.5, 0xff},
      {DTYPE_UINT8, INFINITY, 0xff},
      {DTYPE_UINT8, -3.0, 0x00},
      {DTYPE_INT32, 1e10, 0x7fffffff},
      {DTYPE_INT64, INFINITY, 0x7fffffffffffffff},
      {DTYPE_INT64, -1e30, 0x8000000000000000},
      {DTYPE_E8M0, 1e300, 0xfe},
      {DTYPE_E8M0, INFINITY, 0xfe},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    cr_expect_eq(encode(cases[i].d, cases[i].value), cases[i].code, "%s %g gave 0x%llx",
                 dtype_name(cases[i].d), cases[i].value,
                 (unsigned long long)encode(cases[i].d, cases[i].value));
}

Test(dtype, no_negative_zero_in_fnuz) {
  cr_expect_eq(encode(DTYPE_FP8_E4M3FNUZ, -0.0), 0x00);
  cr_expect_eq(encode(DTYPE_FP8_E4M3FNUZ, -0x1p-11), 0x00); /* a tie with zero */
  cr_expect_eq(encode(DTYPE_FP8_E4M3FNUZ, -DBL_TRUE_MIN), 0x00);
  cr_expect_eq(encode(DTYPE_FP8_E4M3FNUZ, -0x1.8p-11), 0x81);
  cr_expect_eq(encode(DTYPE_FP8_E4M3FN, -0.0), 0x80);
  cr_expect_eq(encode(DTYPE_FP8_E5M2, -DBL_TRUE_MIN), 0x80);
}

Test(dtype, integers_round_to_even) {
  cr_expect_eq(encode(DTYPE_INT8, 0.5), 0);
  cr_expect_eq(encode(DTYPE_INT8, 1.5), 2);
  cr_expect_eq(encode(DTYPE_INT8, 2.5), 2);
  cr_expect_eq(encode(DTYPE_INT8, -0.5), 0);
  cr_expect_eq(encode(DTYPE_INT8, -1.5), 0xfe);
  cr_expect_eq(encode(DTYPE_INT8, 126.5), 126);
  cr_expect_eq(encode(DTYPE_INT8, nextafter(0.5, 0.0)), 0);
}

Test(dtype, e8m0_rounds_in_value_and_holds_no_zero) {
  cr_expect_eq(encode(DTYPE_E8M0, 1.49), 0x7f);
  cr_expect_eq(encode(DTYPE_E8M0, 1.5), 0x80); /* 127 is odd */
  cr_expect_eq(encode(DTYPE_E8M0, 3.0), 0x80); /* 128 is even */
  cr_expect_eq(encode(DTYPE_E8M0, 3.01), 0x81);
  cr_expect_eq(encode(DTYPE_E8M0, 0.0), 0x00);
  cr_expect_eq(encode(DTYPE_E8M0, DBL_TRUE_MIN), 0x00);
  cr_expect_eq(encode(DTYPE_E8M0, -1.0), 0xff);
}

Test(dtype, fp32_agrees_with_the_machine) {
  uint64_t state = 1;
  for (int i = 0; i < 200000; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    /* random bits: 40 of mantissa, exponents around the whole range of fp32 and a little beyond */
    const double mantissa = 1.0 + (double)(state >> 24) * 0x1p-40;
    double value = ldexp(mantissa, (int)(state % 290) - 160);
    if (i % 3 == 0) { /* midpoints between neighbours */
      const float near = (float)value;
      value = ((double)near + (double)nextafterf(near, INFINITY)) / 2;
    }
    const float expected = (float)value;
    uint32_t bits;
    memcpy(&bits, &expected, sizeof bits);
    cr_assert_eq(encode(DTYPE_FP32, value), bits, "%a", value);
    cr_assert(decode(DTYPE_FP32, bits) == (double)expected);
  }
}

Test(dtype, names_parse_to_themselves) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    dtype parsed = DTYPE_COUNT;
    cr_assert(dtype_parse(dtype_name((dtype)i), &parsed));
    cr_expect_eq((int)parsed, i);
  }
  dtype untouched = DTYPE_INT8;
  cr_expect_not(dtype_parse("fp8", &untouched));
  cr_expect_not(dtype_parse("", &untouched));
  cr_expect_eq(untouched, DTYPE_INT8);
}
