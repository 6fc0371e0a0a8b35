/* The emulator's number formats against arithmetic written again from their definitions: every code decodes
 * to what sign, exponent and mantissa say, and every rounding case of every format lands on the neighbour
 * that the rule names. */
#include "../../runtime/emu/formats.h"

#include <criterion/criterion.h>
#include <math.h>

/* The value of a code by its definition; NAN and INFINITY for the codes that mean them. Written out per
 * format. */
static double defined_value(emu_format_id id, unsigned code) {
  switch (id) {
  case EMU_FORMAT_FP8_FNUZ:
    if (code == 0x80) return NAN;
    break;
  case EMU_FORMAT_BF8_FNUZ:
    if (code == 0x80) return NAN;
    break;
  case EMU_FORMAT_FP8:
    if ((code & 0x7f) == 0x7f) return NAN;
    break;
  case EMU_FORMAT_BF8:
    if ((code & 0x7f) == 0x7c) return code & 0x80 ? -INFINITY : INFINITY;
    if ((code & 0x7f) > 0x7c) return NAN;
    break;
  case EMU_FORMAT_F16:
    if ((code & 0x7fff) == 0x7c00) return code & 0x8000 ? -INFINITY : INFINITY;
    if ((code & 0x7fff) > 0x7c00) return NAN;
    break;
  case EMU_FORMAT_BF16:
    if ((code & 0x7fff) == 0x7f80) return code & 0x8000 ? -INFINITY : INFINITY;
    if ((code & 0x7fff) > 0x7f80) return NAN;
    break;
  default:
    break;
  }
  static const struct {
    int bits, exponent, mantissa, bias;
  } shape[EMU_FORMAT_COUNT] = {
      [EMU_FORMAT_F16] = {16, 5, 10, 15},   [EMU_FORMAT_BF16] = {16, 8, 7, 127},
      [EMU_FORMAT_FP8] = {8, 4, 3, 7},      [EMU_FORMAT_BF8] = {8, 5, 2, 15},
      [EMU_FORMAT_FP8_FNUZ] = {8, 4, 3, 8}, [EMU_FORMAT_BF8_FNUZ] = {8, 5, 2, 16},
      [EMU_FORMAT_FP6] = {6, 2, 3, 1},      [EMU_FORMAT_BF6] = {6, 3, 2, 3},
      [EMU_FORMAT_FP4] = {4, 2, 1, 1},
  };
  int m = shape[id].mantissa, e = (int)(code >> m) & ((1 << shape[id].exponent) - 1);
  double fraction = (double)(code & ((1u << m) - 1)) / (double)(1u << m);
  double magnitude = e ? (1 + fraction) * pow(2, e - shape[id].bias) : fraction * pow(2, 1 - shape[id].bias);
  return code >> (shape[id].bits - 1) & 1 ? -magnitude : magnitude;
}

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static unsigned codes(emu_format_id id) {
  return 1u << emu_formats[id].bits;
}

Test(emu_formats, every_code_decodes_to_its_definition) {
  for (int id = 0; id < EMU_FORMAT_COUNT; ++id)
    for (unsigned code = 0; code < codes((emu_format_id)id); ++code) {
      double want = defined_value((emu_format_id)id, code), got = (double)emu_decode((emu_format_id)id, code);
      cr_assert(same(want, got), "%s %#x is %g, not %g", emu_formats[id].name, code, want, got);
    }
}

Test(emu_formats, lane_decoders_agree_with_the_definition) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    cr_assert(same(defined_value(EMU_FORMAT_F16, code), (double)emu_f32_from_f16(code)), "f16 %#x", code);
    cr_assert(same(defined_value(EMU_FORMAT_BF16, code), (double)emu_f32_from_bf16(code)), "bf16 %#x", code);
  }
  for (unsigned code = 0; code < 0x100; ++code) {
    cr_assert(same(defined_value(EMU_FORMAT_FP8, code), (double)emu_f32_from_fp8(code)), "fp8 %#x", code);
    cr_assert(same(defined_value(EMU_FORMAT_BF8, code), (double)emu_f32_from_bf8(code)), "bf8 %#x", code);
    cr_assert(same(defined_value(EMU_FORMAT_FP8_FNUZ, code), (double)emu_f32_from_fp8_fnuz(code)), "fnuz %#x",
              code);
    cr_assert(same(defined_value(EMU_FORMAT_BF8_FNUZ, code), (double)emu_f32_from_bf8_fnuz(code)),
              "bf8 fnuz %#x", code);
    cr_assert(same(code == 255 ? NAN : ldexp(1, (int)code - 127), (double)emu_f32_from_e8m0(code)),
              "e8m0 %#x", code);
  }
}

Test(emu_formats, bits_above_the_code_do_not_matter) {
  for (unsigned code = 0; code < 0x100; ++code) {
    unsigned noisy = code | 0x5a5a5a00;
    cr_assert(same((double)emu_f32_from_fp8(noisy), (double)emu_f32_from_fp8(code)));
    cr_assert(same((double)emu_f32_from_bf8(noisy), (double)emu_f32_from_bf8(code)));
    cr_assert(same((double)emu_f32_from_fp8_fnuz(noisy), (double)emu_f32_from_fp8_fnuz(code)));
    cr_assert(same((double)emu_f32_from_bf8_fnuz(noisy), (double)emu_f32_from_bf8_fnuz(code)));
    cr_assert(same((double)emu_f32_from_e8m0(noisy), (double)emu_f32_from_e8m0(code)));
  }
}

Test(emu_formats, finite_codes_encode_to_themselves) {
  for (int id = 0; id < EMU_FORMAT_COUNT; ++id)
    for (unsigned code = 0; code < codes((emu_format_id)id); ++code) {
      double value = defined_value((emu_format_id)id, code);
      if (isnan(value)) continue;
      for (int round = 0; round < 4; ++round)
        cr_assert_eq(emu_encode((emu_format_id)id, value, (emu_round)round, false), code, "%s %#x",
                     emu_formats[id].name, code);
    }
}

/* Between every two neighbouring finite magnitudes: the midpoint, just beside it, and just beside both ends.
 */
Test(emu_formats, every_rounding_case_between_neighbours) {
  for (int n = 0; n < EMU_FORMAT_COUNT; ++n) {
    emu_format_id id = (emu_format_id)n;
    unsigned sign = codes(id) / 2;
    for (unsigned low = 0; low + 1 < sign; ++low) {
      double a = defined_value(id, low), b = defined_value(id, low + 1);
      if (isnan(a) || isinf(a) || isnan(b) || isinf(b)) continue;
      double middle = a + (b - a) / 2, below = nextafter(middle, 0), above = nextafter(middle, INFINITY);
      double first = nextafter(a, INFINITY), last = nextafter(b, 0);
      unsigned even = low % 2 ? low + 1 : low;
      /* A negative result of 0 is -0, except where the format has none. */
      bool unsigned_zero = id == EMU_FORMAT_FP8_FNUZ || id == EMU_FORMAT_BF8_FNUZ;
#define NEGATIVE(code) ((code) || !unsigned_zero ? (code) | sign : 0)
      const struct {
        double value;
        unsigned nearest;
      } cases[] = {{middle, even}, {below, low}, {above, low + 1}, {first, low}, {last, low + 1}};
      for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        double v = cases[c].value;
        cr_assert_eq(emu_encode(id, v, EMU_ROUND_NEAREST_EVEN, false), cases[c].nearest, "%s %.17g",
                     emu_formats[n].name, v);
        cr_assert_eq(emu_encode(id, -v, EMU_ROUND_NEAREST_EVEN, true), NEGATIVE(cases[c].nearest), "%s %.17g",
                     emu_formats[n].name, -v);
        cr_assert_eq(emu_encode(id, v, EMU_ROUND_UP, false), low + 1);
        cr_assert_eq(emu_encode(id, v, EMU_ROUND_DOWN, false), low);
        cr_assert_eq(emu_encode(id, v, EMU_ROUND_ZERO, false), low);
        cr_assert_eq(emu_encode(id, -v, EMU_ROUND_UP, false), NEGATIVE(low));
        cr_assert_eq(emu_encode(id, -v, EMU_ROUND_DOWN, false), low + 1 + sign);
        cr_assert_eq(emu_encode(id, -v, EMU_ROUND_ZERO, false), NEGATIVE(low));
      }
    }
  }
}

/* value, and the code without and with saturation */
typedef struct overflow_case {
  emu_format_id format;
  double value;
  unsigned plain, saturated;
} overflow_case;

Test(emu_formats, overflow_follows_the_format_and_the_mode) {
  static const overflow_case cases[] = {
      /* halfway to the next step (464, 248, 61440, 65520) still rounds to the largest code's even neighbour
         or beyond */
      {EMU_FORMAT_FP8, 448, 0x7e, 0x7e},
      {EMU_FORMAT_FP8, 464, 0x7e, 0x7e},
      {EMU_FORMAT_FP8, 464.001, 0x7f, 0x7e},
      {EMU_FORMAT_FP8, -1e30, 0xff, 0xfe},
      {EMU_FORMAT_FP8, INFINITY, 0x7f, 0x7e},
      {EMU_FORMAT_FP8_FNUZ, 240, 0x7f, 0x7f},
      {EMU_FORMAT_FP8_FNUZ, 247.9, 0x7f, 0x7f},
      {EMU_FORMAT_FP8_FNUZ, 248, 0x80, 0x7f},
      {EMU_FORMAT_FP8_FNUZ, -448, 0x80, 0xff},
      {EMU_FORMAT_FP8_FNUZ, -INFINITY, 0x80, 0xff},
      {EMU_FORMAT_BF8, 57344, 0x7b, 0x7b},
      {EMU_FORMAT_BF8, 61439, 0x7b, 0x7b},
      {EMU_FORMAT_BF8, 61440, 0x7c, 0x7b},
      {EMU_FORMAT_BF8, -INFINITY, 0xfc, 0xfb},
      {EMU_FORMAT_BF8_FNUZ, 57344, 0x7f, 0x7f},
      {EMU_FORMAT_BF8_FNUZ, 61440, 0x80, 0x7f},
      {EMU_FORMAT_F16, 65519.99, 0x7bff, 0x7bff},
      {EMU_FORMAT_F16, 65520, 0x7c00, 0x7bff},
      {EMU_FORMAT_F16, INFINITY, 0x7c00, 0x7c00}, /* a true infinity stays one */
      {EMU_FORMAT_BF16, 3.4e38, 0x7f80, 0x7f7f},
      {EMU_FORMAT_FP6, 100, 0x1f, 0x1f},
      {EMU_FORMAT_BF6, -100, 0x3f, 0x3f},
      {EMU_FORMAT_FP4, 100, 0x7, 0x7},
      {EMU_FORMAT_FP4, 5, 0x6, 0x6}, /* halfway between 4 and 6: to the even mantissa */
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; ++n) {
    const overflow_case *c = &cases[n];
    cr_expect_eq(emu_encode(c->format, c->value, EMU_ROUND_NEAREST_EVEN, false), c->plain, "%s %g",
                 emu_formats[c->format].name, c->value);
    cr_expect_eq(emu_encode(c->format, c->value, EMU_ROUND_NEAREST_EVEN, true), c->saturated,
                 "%s %g saturated", emu_formats[c->format].name, c->value);
  }
  for (int id = 0; id < EMU_FORMAT_COUNT; ++id)
    cr_expect(emu_formats[id].special == EMU_SPECIAL_NONE ||
              isnan((double)emu_decode((emu_format_id)id,
                                       emu_encode((emu_format_id)id, NAN, EMU_ROUND_NEAREST_EVEN, true))));
  /* Rounding towards zero never leaves the finite range. */
  cr_expect_eq(emu_encode(EMU_FORMAT_F16, 1e9, EMU_ROUND_ZERO, false), 0x7bffu);
  cr_expect_eq(emu_encode(EMU_FORMAT_F16, -1e9, EMU_ROUND_UP, false), 0xfbffu);
}

/* The fast encoders see every value of their format, every midpoint, the f32 neighbours of both, and the ends
 * of the range. */
static void check_fast(emu_format_id id, bool saturate, uint32_t (*fast)(float, bool)) {
  unsigned sign_bit = codes(id) / 2;
  for (unsigned code = 0; code < sign_bit; ++code) {
    double a = defined_value(id, code), b = defined_value(id, code + 1);
    if (!isfinite(a)) continue;
    if (!isfinite(b) || b <= 0) b = 2 * a - defined_value(id, code - 1); /* where the next step would lie */
    float middle = (float)(a + (b - a) / 2);
    const float values[] = {(float)a,
                            middle,
                            nextafterf(middle, 0),
                            nextafterf(middle, INFINITY),
                            nextafterf((float)a, INFINITY),
                            nextafterf((float)b, 0)};
    for (size_t n = 0; n < sizeof values / sizeof *values; ++n)
      for (int sign = 0; sign < 2; ++sign) {
        float v = sign ? -values[n] : values[n];
        unsigned want = emu_encode(id, (double)v, EMU_ROUND_NEAREST_EVEN, saturate), got = fast(v, saturate);
        cr_assert_eq(got, want, "%s %a is %#x, not %#x", emu_formats[id].name, (double)v, got, want);
      }
  }
  static const float ends[] = {INFINITY, 0x1p-149f, 0x1p-127f, 1e9f, 3e38f, 0x1.fffffep127f};
  for (size_t n = 0; n < sizeof ends / sizeof *ends; ++n)
    for (int sign = 0; sign < 2; ++sign) {
      float v = sign ? -ends[n] : ends[n];
      cr_assert_eq(fast(v, saturate), emu_encode(id, (double)v, EMU_ROUND_NEAREST_EVEN, saturate), "%s %a",
                   emu_formats[id].name, (double)v);
    }
  cr_assert(isnan((double)emu_decode(id, fast(NAN, saturate))));
  cr_assert(isnan((double)emu_decode(id, fast(emu_f32(0xff800001), saturate))),
            "a signalling NaN with a tiny payload");
}

static uint32_t fast_f16(float v, bool saturate) {
  return (void)saturate, emu_f16_from_f32(v);
}
static uint32_t fast_bf16(float v, bool saturate) {
  return (void)saturate, emu_bf16_from_f32(v);
}
static uint32_t fast_fp8(float v, bool saturate) {
  return emu_fp8_from_f32(v, saturate);
}
static uint32_t fast_bf8(float v, bool saturate) {
  return emu_bf8_from_f32(v, saturate);
}
static uint32_t fast_fp8_fnuz(float v, bool saturate) {
  return emu_fp8_fnuz_from_f32(v, saturate);
}
static uint32_t fast_bf8_fnuz(float v, bool saturate) {
  return emu_bf8_fnuz_from_f32(v, saturate);
}

Test(emu_formats, fast_encoders_round_as_the_definition) {
  check_fast(EMU_FORMAT_F16, false, fast_f16);
  check_fast(EMU_FORMAT_BF16, false, fast_bf16);
  for (int saturate = 0; saturate < 2; ++saturate) {
    check_fast(EMU_FORMAT_FP8, saturate, fast_fp8);
    check_fast(EMU_FORMAT_BF8, saturate, fast_bf8);
    check_fast(EMU_FORMAT_FP8_FNUZ, saturate, fast_fp8_fnuz);
    check_fast(EMU_FORMAT_BF8_FNUZ, saturate, fast_bf8_fnuz);
  }
}

/* Over all random numbers a value lands on its upper neighbour as often as it is far from the lower one. */
Test(emu_formats, stochastic_rounding_has_the_right_odds) {
  static const struct {
    emu_format_id format;
    float value;
    unsigned lower;
    double odds;
  } cases[] = {
      {EMU_FORMAT_FP8, 1.03125f, 0x38, 0.25},
      {EMU_FORMAT_FP8, -1.09375f, 0xb8, 0.75},
      {EMU_FORMAT_BF8, 1.0f, 0x3c, 0},
      {EMU_FORMAT_BF8, 1.125f, 0x3c, 0.5},
      {EMU_FORMAT_FP8_FNUZ, 2.0f, 0x48, 0},
      {EMU_FORMAT_FP8_FNUZ, 2.125f, 0x48, 0.5},
      {EMU_FORMAT_BF16, 1.001953125f, 0x3f80, 0.25},
      {EMU_FORMAT_FP8, 0x1.8p-10f, 0x00, 0.75}, /* in the denormals: step 2^-9 */
  };
  enum { DRAWS = 4096 };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; ++n) {
    unsigned up = 0;
    for (uint32_t draw = 0; draw < DRAWS; ++draw) {
      unsigned code = emu_encode_stochastic(cases[n].format, cases[n].value, draw << 20, false);
      cr_assert(code == cases[n].lower || code == cases[n].lower + 1, "%s %g gave %#x",
                emu_formats[cases[n].format].name, (double)cases[n].value, code);
      up += code != cases[n].lower;
    }
    cr_expect_float_eq((double)up / DRAWS, cases[n].odds, 1e-12, "%s %g went up %u times",
                       emu_formats[cases[n].format].name, (double)cases[n].value, up);
  }
}

Test(emu_formats, stochastic_rounding_overflows_like_the_others) {
  cr_expect_eq(emu_encode_stochastic(EMU_FORMAT_FP8, 448.0f, 0xffffffffu, false), 0x7eu);
  cr_expect_eq(emu_encode_stochastic(EMU_FORMAT_FP8, 470.0f, 0xffffffffu, false), 0x7fu);
  cr_expect_eq(emu_encode_stochastic(EMU_FORMAT_FP8, 470.0f, 0xffffffffu, true), 0x7eu);
  cr_expect_eq(emu_encode_stochastic(EMU_FORMAT_FP8, -470.0f, 0, true), 0xfeu);
}
