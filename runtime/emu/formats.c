#include "formats.h"

#include <math.h>

const emu_format emu_formats[EMU_FORMAT_COUNT] = {
#define X(id, name, bits, exponent, mantissa, bias, special) {name, bits, exponent, mantissa, bias, special},
    EMU_FORMAT_LIST(X)
#undef X
};

static uint32_t sign_bit(const emu_format *format) {
  return 1u << (format->bits - 1);
}

/* The code of the largest finite magnitude. */
static uint32_t largest_code(const emu_format *format) {
  uint32_t magnitude_mask = sign_bit(format) - 1;
  switch (format->special) {
  case EMU_SPECIAL_IEEE:
    return magnitude_mask - (1u << format->mantissa_bits);
  case EMU_SPECIAL_FN:
    return magnitude_mask - 1;
  default:
    return magnitude_mask;
  }
}

static uint32_t nan_code(const emu_format *format, uint32_t sign) {
  switch (format->special) {
  case EMU_SPECIAL_IEEE: {
    uint32_t infinity = largest_code(format) + 1;
    /* f16 and bf16 keep a quiet NaN with an empty payload; OCP e5m2 has all its mantissa bits set. */
    uint32_t payload =
        format->bits == 8 ? (1u << format->mantissa_bits) - 1 : 1u << (format->mantissa_bits - 1);
    return infinity | payload | sign;
  }
  case EMU_SPECIAL_FN:
    return (sign_bit(format) - 1) | sign;
  case EMU_SPECIAL_FNUZ:
    return sign_bit(format);
  default:
    return largest_code(format) | sign;
  }
}

static uint32_t overflow_code(const emu_format *format, uint32_t sign, bool saturate) {
  if (saturate || format->special == EMU_SPECIAL_NONE) return largest_code(format) | sign;
  if (format->special == EMU_SPECIAL_IEEE) return (largest_code(format) + 1) | sign;
  return nan_code(format, sign);
}

float emu_decode(emu_format_id id, uint32_t code) {
  const emu_format *format = &emu_formats[id];
  uint32_t sign = code & sign_bit(format), magnitude = code & (sign_bit(format) - 1);
  uint32_t exponent = magnitude >> format->mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << format->mantissa_bits) - 1);
  if (format->special == EMU_SPECIAL_FNUZ && sign && !magnitude) return NAN;
  if (magnitude > largest_code(format)) {
    if (format->special == EMU_SPECIAL_IEEE && !mantissa) return sign ? -INFINITY : INFINITY;
    return NAN;
  }
  int scale = 1 - format->bias - format->mantissa_bits;
  if (exponent) {
    mantissa |= 1u << format->mantissa_bits;
    scale += (int)exponent - 1;
  }
  float value = ldexpf((float)mantissa, scale);
  return sign ? -value : value;
}

/* Rounds a non-negative magnitude to whole multiples of the step; `fraction` in [0, 1). */
static bool rounds_up(emu_round round, bool negative, bool odd, double fraction) {
  switch (round) {
  case EMU_ROUND_NEAREST_EVEN:
    return fraction > 0.5 || (fraction == 0.5 && odd);
  case EMU_ROUND_UP:
    return fraction > 0 && !negative;
  case EMU_ROUND_DOWN:
    return fraction > 0 && negative;
  default:
    return false;
  }
}

/* The exponent of the leading bit, at least that of the smallest normal number: it fixes the rounding step.
 */
static int step_exponent(const emu_format *format, double magnitude) {
  int lowest = 1 - format->bias;
  int exponent;
  frexp(magnitude, &exponent);
  exponent -= 1;
  return exponent < lowest ? lowest : exponent;
}

uint32_t emu_encode(emu_format_id id, double value, emu_round round, bool saturate) {
  const emu_format *format = &emu_formats[id];
  bool negative = signbit(value) != 0;
  uint32_t sign = negative ? sign_bit(format) : 0;
  if (isnan(value)) return nan_code(format, sign);
  if (isinf(value)) return overflow_code(format, sign, saturate && format->bits <= 8);
  double magnitude = fabs(value);
  if (magnitude == 0) return format->special == EMU_SPECIAL_FNUZ ? 0 : sign;
  int exponent = step_exponent(format, magnitude);
  double steps = ldexp(magnitude, format->mantissa_bits - exponent);
  double below = floor(steps);
  /* Directed rounding towards zero never leaves the finite range. */
  bool inward = round == EMU_ROUND_ZERO || (round == EMU_ROUND_UP && negative) ||
                (round == EMU_ROUND_DOWN && !negative);
  if (exponent + format->bias >= 1 << format->exponent_bits)
    return overflow_code(format, sign, saturate || inward);
  uint32_t count = (uint32_t)below;
  count += rounds_up(round, negative, count & 1, steps - below);
  /* A count of 2^(mantissa bits + 1) carries into the exponent by itself; a denormal has no implied bit. */
  uint32_t code = ((uint32_t)(exponent + format->bias - 1) << format->mantissa_bits) + count;
  if (code > largest_code(format)) return overflow_code(format, sign, saturate || inward);
  if (!code && format->special == EMU_SPECIAL_FNUZ) return 0;
  return code | sign;
}

uint32_t emu_encode_stochastic(emu_format_id id, float value, uint32_t random, bool saturate) {
  const emu_format *format = &emu_formats[id];
  if (isnan(value) || isinf(value) || value == 0)
    return emu_encode(id, (double)value, EMU_ROUND_ZERO, saturate);
  /* Whole random bits below one step of the destination: value + step * random / 2^n, then truncate. */
  int dropped = 23 - format->mantissa_bits;
  int exponent = step_exponent(format, fabs((double)value));
  double noise = ldexp((double)(random >> (32 - dropped)), exponent - format->mantissa_bits - dropped);
  double sum = fabs((double)value) + noise;
  double top = (double)emu_decode(id, largest_code(format));
  double step = ldexp(1, step_exponent(format, top) - format->mantissa_bits);
  /* Truncation alone would never overflow: a sum that reaches the step beyond the largest value does. */
  if (sum >= top + step) sum = INFINITY;
  if (isinf(sum)) return overflow_code(format, value < 0 ? sign_bit(format) : 0, saturate);
  return emu_encode(id, value < 0 ? -sum : sum, EMU_ROUND_ZERO, saturate);
}
