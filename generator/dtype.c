#include "dtype.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* How a format's bits make a value. */
typedef enum codec {
  CODEC_FLOAT,   /* sign, exponent, mantissa */
  CODEC_INTEGER, /* two's complement */
  CODEC_BYTE,    /* from 0 on */
  CODEC_POWER    /* an exponent and nothing else */
} codec;

/* A float's magnitude is its code without the sign bit; magnitudes grow with the values they stand for. */
typedef struct dtype_row {
  const char *name;
  int bytes;
  double max;
  codec codec;
  int exponent_bits, mantissa_bits, bias;
  uint32_t max_code;      /* magnitude of the largest finite value */
  uint32_t infinity_code; /* 0: the format has none */
  uint32_t overflow_code; /* what a finite value beyond the largest one becomes */
  uint32_t nan_code;      /* the NaN that is written */
  bool zero_is_unsigned;  /* the code of −0 is the NaN ("uz") */
  unsigned uses;
  const char *format;
  double least_cosine;
} dtype_row;

/* Sources: IEEE 754 (fp16, fp32); OCP 8-bit Floating Point Specification 1.0 (e4m3fn, e5m2); AMD CDNA3 ISA
 * guide (e4m3fnuz: bias 8, 0x80 is the only NaN); OCP Microscaling Formats 1.0 (e8m0). The fp8 NaN written is
 * PTX's canonical 0x7f. */
#define FLOAT_BF16 CODEC_FLOAT, 8, 7, 127, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0, false
#define FLOAT_FP16 CODEC_FLOAT, 5, 10, 15, 0x7bff, 0x7c00, 0x7c00, 0x7e00, false
#define FLOAT_FP32 CODEC_FLOAT, 8, 23, 127, 0x7f7fffff, 0x7f800000, 0x7f800000, 0x7fc00000, false
#define FLOAT_E4M3FN CODEC_FLOAT, 4, 3, 7, 0x7e, 0, 0x7e, 0x7f, false
#define FLOAT_E4M3FNUZ CODEC_FLOAT, 4, 3, 8, 0x7f, 0, 0x7f, 0x80, true
#define FLOAT_E5M2 CODEC_FLOAT, 5, 2, 15, 0x7b, 0x7c, 0x7b, 0x7f, false
#define INTEGER CODEC_INTEGER, 0, 0, 0, 0, 0, 0, 0, true
#define BYTE CODEC_BYTE, 0, 0, 0, 0, 0, 0, 0, true
#define POWER CODEC_POWER, 8, 0, 127, 0xfe, 0, 0xfe, 0xff, true

static const dtype_row rows[DTYPE_COUNT] = {
#define X(name, text, bytes, max, encoding, uses, format, cosine)                                            \
  {text, bytes, max, encoding, uses, format, cosine},
    DTYPE_LIST(X)
#undef X
};

const char *dtype_name(dtype d) {
  return rows[d].name;
}

int dtype_bytes(dtype d) {
  return rows[d].bytes;
}

double dtype_max(dtype d) {
  return rows[d].max;
}

double dtype_lowest(dtype d) {
  const dtype_row *f = &rows[d];
  if (f->codec == CODEC_FLOAT) return -f->max;
  return f->codec == CODEC_INTEGER ? -ldexp(1, 8 * f->bytes - 1) : 0;
}

bool dtype_is_dialect(dtype d) {
  return dtype_is_fp8(d) && rows[d].mantissa_bits == 3 && d != DTYPE_FP8_E4M3;
}

bool dtype_is_integer(dtype d) {
  return rows[d].codec == CODEC_INTEGER;
}

double dtype_flushes_below(dtype d) {
  const dtype_row *f = &rows[d];
  return f->codec == CODEC_FLOAT && f->zero_is_unsigned ? ldexp(1, -f->bias - f->mantissa_bits) : 0;
}

bool dtype_serves(dtype d, dtype_use use) {
  return (rows[d].uses & (unsigned)use) != 0;
}

const char *dtype_format(dtype d) {
  return rows[d].format;
}

double dtype_least_cosine(dtype d) {
  return rows[d].least_cosine;
}

bool dtype_is_fp8(dtype d) {
  return rows[d].codec == CODEC_FLOAT && rows[d].bytes == 1;
}

bool dtype_parse(const char *name, dtype *out_dtype) {
  for (int d = 0; d < DTYPE_COUNT; d++) {
    if (strcmp(rows[d].name, name) == 0) {
      *out_dtype = (dtype)d;
      return true;
    }
  }
  return false;
}

static uint64_t load_code(const void *bytes, int count) {
  const unsigned char *from = bytes;
  uint64_t code = 0;
  for (int i = 0; i < count; i++)
    code |= (uint64_t)from[i] << (8 * i);
  return code;
}

static void store_code(uint64_t code, void *bytes, int count) {
  unsigned char *to = bytes;
  for (int i = 0; i < count; i++)
    to[i] = (unsigned char)(code >> (8 * i));
}

static double decode_float(const dtype_row *f, uint64_t code) {
  const uint32_t sign_bit = UINT32_C(1) << (8 * f->bytes - 1);
  if (f->zero_is_unsigned && code == sign_bit) return (double)NAN;
  const double sign = code & sign_bit ? -1.0 : 1.0;
  const uint32_t magnitude = (uint32_t)code & (sign_bit - 1);
  if (magnitude > f->max_code)
    return f->infinity_code != 0 && magnitude == f->infinity_code ? sign * (double)INFINITY : (double)NAN;
  const uint32_t hidden = UINT32_C(1) << f->mantissa_bits;
  const uint32_t mantissa = magnitude & (hidden - 1);
  const int exponent = (int)(magnitude >> f->mantissa_bits);
  if (exponent == 0) return sign * ldexp((double)mantissa, 1 - f->bias - f->mantissa_bits);
  return sign * ldexp((double)(hidden + mantissa), exponent - f->bias - f->mantissa_bits);
}

static double decode_integer(const dtype_row *f, uint64_t code) {
  const uint64_t sign_bit = UINT64_C(1) << (8 * f->bytes - 1);
  return (double)(int64_t)((code ^ sign_bit) - sign_bit); /* sign-extended */
}

static double decode_byte(const dtype_row *f, uint64_t code) {
  (void)f;
  return (double)code;
}

static double decode_power(const dtype_row *f, uint64_t code) {
  return code == f->nan_code ? (double)NAN : ldexp(1.0, (int)code - f->bias);
}

/* The integer nearest to `value` >= 0, ties to even, whatever the rounding mode of the thread is. */
static double round_even(double value) {
  const double below = floor(value);
  const double rest = value - below; /* exact */
  if (rest < 0.5) return below;
  if (rest > 0.5) return below + 1.0;
  return fmod(below, 2.0) == 0.0 ? below : below + 1.0;
}

static uint64_t encode_float(const dtype_row *f, double value) {
  if (isnan(value)) return f->nan_code;
  const uint32_t sign = signbit(value) ? UINT32_C(1) << (8 * f->bytes - 1) : 0;
  const double absolute = fabs(value);
  uint32_t magnitude = f->overflow_code;
  if (absolute <= 2.0 * f->max) {
    /* Count in units of the last place of the value's binade; denormals share the lowest one. A count that
     * rounds up to the next binade carries into the exponent by itself. */
    const int lowest = 1 - f->bias;
    int exponent = absolute > 0.0 ? ilogb(absolute) : lowest;
    if (exponent < lowest) exponent = lowest;
    const double count = round_even(ldexp(absolute, f->mantissa_bits - exponent));
    magnitude = ((uint32_t)(exponent - lowest) << f->mantissa_bits) + (uint32_t)count;
    if (magnitude > f->max_code) magnitude = f->overflow_code;
  }
  if (magnitude == 0 && f->zero_is_unsigned) return 0;
  return sign | magnitude;
}

static uint64_t encode_integer(const dtype_row *f, double value) {
  if (isnan(value)) return 0;
  const int bits = 8 * f->bytes;
  const uint64_t largest = (UINT64_C(1) << (bits - 1)) - 1;
  const double limit = ldexp(1.0, bits - 1); /* one more than the largest */
  const double rounded = copysign(round_even(fabs(value)), value);
  if (rounded >= limit) return largest;
  if (rounded < -limit) return largest + 1; /* the code of the lowest */
  return (uint64_t)(int64_t)rounded;
}

static uint64_t encode_byte(const dtype_row *f, double value) {
  if (!(value > 0.0)) return 0; /* NaN too */
  return value >= f->max ? (uint64_t)f->max : (uint64_t)round_even(value);
}

static uint64_t encode_power(const dtype_row *f, double value) {
  if (isnan(value) || value < 0.0) return f->nan_code;
  if (value >= ldexp(1.0, (int)f->max_code - f->bias)) return f->max_code;
  if (value <= ldexp(1.0, -f->bias)) return 0;
  const int exponent = ilogb(value);
  const double fraction = ldexp(value, -exponent); /* [1, 2) */
  const int code = exponent + f->bias;
  const bool up = fraction > 1.5 || (fraction == 1.5 && code % 2 == 1);
  return (uint64_t)(code + (up ? 1 : 0));
}

static const struct {
  double (*decode)(const dtype_row *f, uint64_t code);
  uint64_t (*encode)(const dtype_row *f, double value);
} codecs[] = {
    [CODEC_FLOAT] = {decode_float, encode_float},
    [CODEC_INTEGER] = {decode_integer, encode_integer},
    [CODEC_BYTE] = {decode_byte, encode_byte},
    [CODEC_POWER] = {decode_power, encode_power},
};

double dtype_decode(dtype d, const void *bytes) {
  const dtype_row *f = &rows[d];
  return codecs[f->codec].decode(f, load_code(bytes, f->bytes));
}

void dtype_encode(dtype d, double value, void *bytes) {
  const dtype_row *f = &rows[d];
  store_code(codecs[f->codec].encode(f, value), bytes, f->bytes);
}
