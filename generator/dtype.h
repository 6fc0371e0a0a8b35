/* Number formats: one row a format. */
#ifndef HEDDLE_DTYPE_H
#define HEDDLE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* What a contract may store in a format: the fields that take it (spec.c), and what the generator serves. */
typedef enum dtype_use {
  USE_CACHE = 1,        /* K and V */
  USE_QUERY = 2,        /* the query, the writer's rows, the tail of a record */
  USE_OUTPUT = 4,       /* the output */
  USE_SCALE = 8,        /* scales of whole rows and more */
  USE_GROUP_SCALE = 16, /* scales of groups along d */
  USE_INDEX = 32        /* page ids and listed tokens */
} dtype_use;

/* X(enumerator, name in specs, bytes per element, largest finite value, encoding (dtype.c), uses, its
 * conversions in the preludes, least cosine that attention over a cache of it keeps: what verify asks). */
#define DTYPE_TENSOR_LIST(X)                                                                                 \
  X(DTYPE_BF16, "bf16", 2, 3.38953138925153547590e+38, FLOAT_BF16, USE_CACHE | USE_QUERY | USE_OUTPUT,       \
    "format_bf16", 0.99999)                                                                                  \
  X(DTYPE_FP16, "fp16", 2, 65504.0, FLOAT_FP16,                                                              \
    USE_CACHE | USE_QUERY | USE_OUTPUT | USE_SCALE | USE_GROUP_SCALE, "format_fp16", 0.99999)                \
  X(DTYPE_FP32, "fp32", 4, 3.40282346638528859812e+38, FLOAT_FP32, USE_OUTPUT | USE_SCALE | USE_GROUP_SCALE, \
    "format_fp32", 1)                                                                                        \
  X(DTYPE_FP8_E4M3FN, "fp8_e4m3fn", 1, 448.0, FLOAT_E4M3FN, USE_CACHE, "format_fp8", 0.999)                  \
  X(DTYPE_FP8_E4M3FNUZ, "fp8_e4m3fnuz", 1, 240.0, FLOAT_E4M3FNUZ, USE_CACHE, "format_fp8", 0.999)            \
  X(DTYPE_FP8_E5M2, "fp8_e5m2", 1, 57344.0, FLOAT_E5M2, USE_CACHE, "format_fp8_e5m2", 0.99)                  \
  X(DTYPE_INT8, "int8", 1, 127.0, INTEGER, USE_CACHE, "format_int8", 0.999)                                  \
  X(DTYPE_E8M0, "e8m0", 1, 1.7014118346046923e+38, POWER, USE_GROUP_SCALE, NULL, 1)                          \
  X(DTYPE_INT32, "int32", 4, 2147483647.0, INTEGER, USE_INDEX, NULL, 1)                                      \
  X(DTYPE_INT64, "int64", 8, 9223372036854775807.0, INTEGER, USE_INDEX, NULL, 1)                             \
  X(DTYPE_UINT8, "uint8", 1, 255.0, BYTE, 0, NULL, 1) /* of tensors whose bytes may be several formats */

/* And the target's own dialect of fp8: in specs, resolved before emission; no tensor has it. */
#define DTYPE_LIST(X)                                                                                        \
  DTYPE_TENSOR_LIST(X)                                                                                       \
  X(DTYPE_FP8_E4M3, "fp8_e4m3", 1, 448.0, FLOAT_E4M3FN, USE_CACHE, "format_fp8", 0.999)

typedef enum dtype {
#define X(name, text, bytes, max, encoding, uses, format, cosine) name,
  DTYPE_LIST(X)
#undef X
      DTYPE_COUNT
} dtype;

const char *dtype_name(dtype d);
int dtype_bytes(dtype d);
double dtype_max(dtype d);
double dtype_lowest(dtype d); /* the finite value furthest below 0 */
bool dtype_is_fp8(dtype d);
bool dtype_is_integer(dtype d);
bool dtype_is_dialect(dtype d); /* of e4m3: targets have one of them */
/* Half the smallest value of a format without −0, whose code is a NaN: magnitudes up to it round to 0. Else
 * 0. */
double dtype_flushes_below(dtype d);
bool dtype_serves(dtype d, dtype_use use);
/* The struct of its conversions in templates; NULL: none has them. */
const char *dtype_format(dtype d);
double dtype_least_cosine(dtype d);
/* False when no format has this name. */
bool dtype_parse(const char *name, dtype *out_dtype);

/* The value of one stored element; `bytes` points at dtype_bytes(d) bytes, little endian, any alignment.
 * Exact but for int64 beyond 2^53, which rounds to the nearest double. fp8_e4m3 reads and writes as e4m3fn.
 */
double dtype_decode(dtype d, const void *bytes);
/* Round `value` to nearest even, once, and store it. Beyond the largest finite value, infinity included: fp8,
 * e8m0 and integers saturate; fp16, bf16 and fp32 go to infinity as IEEE does. int8 saturates to -128 and
 * 127, uint8 to 0 and 255. NaN is stored as the format's positive quiet NaN (0x7f for e4m3fn and e5m2, 0x80
 * for e4m3fnuz, 0xff for e8m0; integers: 0). Where the format has no -0, it becomes 0. e8m0 holds no zero:
 * values below its smallest power become that, negative ones NaN. */
void dtype_encode(dtype d, double value, void *bytes);

#endif
