/* Number formats: one row a format. */
#ifndef HEDDLE_DTYPE_H
#define HEDDLE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* X(enumerator, name in specs, bytes per element, largest finite value) */
#define DTYPE_LIST(X)                                                                                        \
  X(DTYPE_BF16, "bf16", 2, 3.38953138925153547590e+38)                                                       \
  X(DTYPE_FP16, "fp16", 2, 65504.0)                                                                          \
  X(DTYPE_FP32, "fp32", 4, 3.40282346638528859812e+38)                                                       \
  X(DTYPE_FP8_E4M3FN, "fp8_e4m3fn", 1, 448.0)                                                                \
  X(DTYPE_FP8_E4M3FNUZ, "fp8_e4m3fnuz", 1, 240.0)                                                            \
  X(DTYPE_FP8_E5M2, "fp8_e5m2", 1, 57344.0)                                                                  \
  X(DTYPE_INT8, "int8", 1, 127.0)                                                                            \
  X(DTYPE_E8M0, "e8m0", 1, 1.7014118346046923e+38)                                                           \
  X(DTYPE_INT32, "int32", 4, 2147483647.0)                                                                   \
  X(DTYPE_INT64, "int64", 8, 9223372036854775807.0)                                                          \
  X(DTYPE_UINT8, "uint8", 1, 255.0) /* bytes that may be several formats: of tensors, not of contracts */    \
  X(DTYPE_FP8_E4M3, "fp8_e4m3", 1, 448.0) /* the target's own dialect; resolved before emission */

typedef enum dtype {
#define X(name, text, bytes, max) name,
  DTYPE_LIST(X)
#undef X
      DTYPE_COUNT
} dtype;

const char *dtype_name(dtype d);
int dtype_bytes(dtype d);
double dtype_max(dtype d);
bool dtype_is_fp8(dtype d);
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
