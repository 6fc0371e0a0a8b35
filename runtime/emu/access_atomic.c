/* What atomics make of the old value and the new one. */
#include "access.h"
#include "execute.h"
#include "formats.h"
#include "hot.h"
#include <math.h>

static uint64_t float_result(uint64_t old, uint64_t data, uint32_t bytes, emu_atomic operation) {
  if (bytes == 8) {
    double x = emu_double((uint32_t)old, (uint32_t)(old >> 32)),
           y = emu_double((uint32_t)data, (uint32_t)(data >> 32));
    double r = operation == EMU_ADD_FLOAT ? x + y : operation == EMU_MIN_FLOAT ? fmin(x, y) : fmax(x, y);
    return emu_double_bits(r);
  }
  float x = emu_float((uint32_t)old), y = emu_float((uint32_t)data);
  float r = operation == EMU_ADD_FLOAT ? x + y : operation == EMU_MIN_FLOAT ? fminf(x, y) : fmaxf(x, y);
  return emu_bits(r);
}

static uint32_t packed_sum(uint32_t old, uint32_t data, emu_format_id format) {
  uint32_t r = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    double sum = (double)emu_decode(format, old >> shift & 0xffff) +
                 (double)emu_decode(format, data >> shift & 0xffff);
    r |= emu_encode(format, sum, EMU_ROUND_NEAREST_EVEN, false) << shift;
  }
  return r;
}

static int64_t signed_value(uint64_t value, uint32_t bytes) {
  return bytes == 8 ? (int64_t)value : (int64_t)(int32_t)(uint32_t)value;
}

static uint64_t atomic_result(const emu_access *a, uint64_t old, uint64_t data, uint64_t expected) {
  switch ((emu_atomic)a->atomic) {
  case EMU_SWAP:
    return data;
  case EMU_COMPARE_SWAP:
    return old == expected ? data : old;
  case EMU_ADD:
    return old + data;
  case EMU_SUBTRACT:
    return old - data;
  case EMU_REVERSE_SUBTRACT:
    return data - old;
  case EMU_MIN_SIGNED:
    return signed_value(old, a->bytes) < signed_value(data, a->bytes) ? old : data;
  case EMU_MAX_SIGNED:
    return signed_value(old, a->bytes) > signed_value(data, a->bytes) ? old : data;
  case EMU_MIN_UNSIGNED:
    return old < data ? old : data;
  case EMU_MAX_UNSIGNED:
    return old > data ? old : data;
  case EMU_AND:
    return old & data;
  case EMU_OR:
    return old | data;
  case EMU_XOR:
    return old ^ data;
  case EMU_INCREMENT:
    return old >= data ? 0 : old + 1;
  case EMU_DECREMENT:
    return old == 0 || old > data ? data : old - 1;
  case EMU_ADD_CLAMPED:
    return old < data ? 0 : old - data;
  case EMU_CONDITIONAL_SUBTRACT:
    return old >= data ? old - data : old;
  case EMU_ADD_FLOAT:
  case EMU_MIN_FLOAT:
  case EMU_MAX_FLOAT:
    return float_result(old, data, a->bytes, (emu_atomic)a->atomic);
  case EMU_ADD_PACKED_F16:
    return packed_sum((uint32_t)old, (uint32_t)data, EMU_FORMAT_F16);
  case EMU_ADD_PACKED_BF16:
    return packed_sum((uint32_t)old, (uint32_t)data, EMU_FORMAT_BF16);
  }
  return old;
}

uint64_t emu_atomic_update(const emu_access *a, uint8_t *at, uint64_t data, uint64_t expected) {
  if (a->bytes == 8) {
    uint64_t *p = (uint64_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, atomic_result(a, old, data, expected), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return old;
  }
  uint32_t *p = (uint32_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      p, &old, (uint32_t)atomic_result(a, old, data & UINT32_MAX, expected & UINT32_MAX), false,
      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}
