/* Shapes of integer handlers, shared by vector_bits.c and vector_integer.c: the expression is the result of
 * one lane, over its sources a, b and c. */
#ifndef HEDDLE_EMU_VECTOR_INTEGER_H
#define HEDDLE_EMU_VECTOR_INTEGER_H

#include "vector.h"

#define B32_1(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, r;                                                                                          \
    const uint32_t *p = source_b32(w, i, 0, &x);                                                             \
    LANES {                                                                                                  \
      uint32_t a = p[lane];                                                                                  \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

#define B32_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y);                               \
    LANES {                                                                                                  \
      uint32_t a = p[lane], b = q[lane];                                                                     \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

#define B32_3(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_b32(w, i, 0, &x), *q = source_b32(w, i, 1, &y), *s = source_b32(w, i, 2, &z); \
    LANES {                                                                                                  \
      uint32_t a = p[lane], b = q[lane], c = s[lane];                                                        \
      r.lane[lane] = (expression);                                                                           \
    }                                                                                                        \
    emu_result(w, i, EMU_B32, r.lane);                                                                       \
  }

/* 16-bit sources come zero-extended; the result's upper half is ignored. */
#define B16_2(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, r;                                                                                       \
    const uint32_t *p = source_b16(w, i, 0, &x), *q = source_b16(w, i, 1, &y);                               \
    LANES {                                                                                                  \
      uint32_t a = p[lane] & 0xffff, b = q[lane] & 0xffff;                                                   \
      r.lane[lane] = (expression)&0xffff;                                                                    \
    }                                                                                                        \
    emu_result(w, i, EMU_B16, r.lane);                                                                       \
  }

#define B16_3(name, expression)                                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y, z, r;                                                                                    \
    const uint32_t *p = source_b16(w, i, 0, &x), *q = source_b16(w, i, 1, &y), *s = source_b16(w, i, 2, &z); \
    LANES {                                                                                                  \
      uint32_t a = p[lane] & 0xffff, b = q[lane] & 0xffff, c = s[lane] & 0xffff;                             \
      r.lane[lane] = (expression)&0xffff;                                                                    \
    }                                                                                                        \
    emu_result(w, i, EMU_B16, r.lane);                                                                       \
  }

EMU_INLINE int32_t sign16(uint32_t a) {
  return (int16_t)(uint16_t)a;
}
EMU_INLINE int32_t sign24(uint32_t a) {
  return (int32_t)(a << 8) >> 8;
}
EMU_INLINE uint32_t zero24(uint32_t a) {
  return a & 0xffffff;
}
EMU_INLINE int32_t signed32(uint32_t a) {
  return (int32_t)a;
}

#endif
