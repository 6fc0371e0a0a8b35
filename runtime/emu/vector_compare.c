/* Comparisons: one bit a lane into a mask. v_cmp writes the mask to scalars; v_cmpx also restricts EXEC to it
 * (gfx9 writes both, gfx12 EXEC alone, which the decoder then gives as operand 0). */
#include "vector.h"

static void finish(emu_wave *w, const emu_instruction *i, const uint8_t flag[EMU_LANES]) {
  bool exec_too = w->target->generation == 9 && strncmp(i->row->name, "v_cmpx", 6) == 0;
  uint64_t mask = pack_mask(flag) & emu_exec(w);
  emu_result_mask(w, i, 0, mask);
  if (exec_too) emu_set_pair(w, EMU_S_EXEC, mask);
}

#define COMPARE_32(name, condition, as, source)                                                              \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    emu_block x, y;                                                                                          \
    uint8_t flag[EMU_LANES];                                                                                 \
    const uint32_t *p = source(w, i, 0, &x), *q = source(w, i, 1, &y);                                       \
    LANES {                                                                                                  \
      as(p[lane], q[lane]);                                                                                  \
      flag[lane] = (uint8_t)(condition);                                                                     \
    }                                                                                                        \
    finish(w, i, flag);                                                                                      \
  }

#define COMPARE_64(name, condition, as, type)                                                                \
  static void name(emu_wave *w, const emu_instruction *i) {                                                  \
    block_pair x, y;                                                                                         \
    uint8_t flag[EMU_LANES];                                                                                 \
    emu_lanes p = source_64(w, i, 0, type, &x), q = source_64(w, i, 1, type, &y);                            \
    LANES {                                                                                                  \
      as(pair_at(p, lane), pair_at(q, lane));                                                                \
      flag[lane] = (uint8_t)(condition);                                                                     \
    }                                                                                                        \
    finish(w, i, flag);                                                                                      \
  }

#define AS_F32(x, y) float a = emu_float(x), b = emu_float(y)
#define AS_F16(x, y) float a = emu_f32_from_f16(x), b = emu_f32_from_f16(y)
#define AS_F64(x, y) double a = emu_f64(x), b = emu_f64(y)
#define AS_I16(x, y) int16_t a = (int16_t)(uint16_t)(x), b = (int16_t)(uint16_t)(y)
#define AS_U16(x, y) uint16_t a = (uint16_t)(x), b = (uint16_t)(y)
#define AS_I32(x, y) int32_t a = (int32_t)(x), b = (int32_t)(y)
#define AS_U32(x, y) uint32_t a = (x), b = (y)
#define AS_I64(x, y) int64_t a = (int64_t)(x), b = (int64_t)(y)
#define AS_U64(x, y) uint64_t a = (x), b = (y)

/* X(type, condition name, condition): every float comparison; `o` and `u` ask whether the operands are
 * ordered. */
#define FLOAT_CONDITIONS(X, type)                                                                            \
  X(type, lt, a < b)                                                                                         \
  X(type, eq, a == b)                                                                                        \
  X(type, le, a <= b)                                                                                        \
  X(type, gt, a > b)                                                                                         \
  X(type, lg, a<b || a> b)                                                                                   \
  X(type, ge, a >= b)                                                                                        \
  X(type, o, a == a && b == b)                                                                               \
  X(type, u, a != a || b != b)                                                                               \
  X(type, nge, !(a >= b))                                                                                    \
  X(type, nlg, !(a < b || a > b))                                                                            \
  X(type, ngt, !(a > b))                                                                                     \
  X(type, nle, !(a <= b))                                                                                    \
  X(type, neq, !(a == b))                                                                                    \
  X(type, nlt, !(a < b))

#define INTEGER_CONDITIONS(X, type)                                                                          \
  X(type, lt, a < b)                                                                                         \
  X(type, eq, a == b)                                                                                        \
  X(type, le, a <= b)                                                                                        \
  X(type, gt, a > b)                                                                                         \
  X(type, ne, a != b)                                                                                        \
  X(type, ge, a >= b)

#define DEFINE_f32(type, name, condition) COMPARE_32(cmp_##name##_f32, condition, AS_F32, source_f32)
#define DEFINE_f16(type, name, condition) COMPARE_32(cmp_##name##_f16, condition, AS_F16, source_f16)
#define DEFINE_f64(type, name, condition) COMPARE_64(cmp_##name##_f64, condition, AS_F64, EMU_F64)
#define DEFINE_i16(type, name, condition) COMPARE_32(cmp_##name##_i16, condition, AS_I16, source_b16)
#define DEFINE_u16(type, name, condition) COMPARE_32(cmp_##name##_u16, condition, AS_U16, source_b16)
#define DEFINE_i32(type, name, condition) COMPARE_32(cmp_##name##_i32, condition, AS_I32, source_b32)
#define DEFINE_u32(type, name, condition) COMPARE_32(cmp_##name##_u32, condition, AS_U32, source_b32)
#define DEFINE_i64(type, name, condition) COMPARE_64(cmp_##name##_i64, condition, AS_I64, EMU_B64)
#define DEFINE_u64(type, name, condition) COMPARE_64(cmp_##name##_u64, condition, AS_U64, EMU_B64)

FLOAT_CONDITIONS(DEFINE_f32, f32)
FLOAT_CONDITIONS(DEFINE_f16, f16)
FLOAT_CONDITIONS(DEFINE_f64, f64)
INTEGER_CONDITIONS(DEFINE_i16, i16)
INTEGER_CONDITIONS(DEFINE_u16, u16)
INTEGER_CONDITIONS(DEFINE_i32, i32)
INTEGER_CONDITIONS(DEFINE_u32, u32)
INTEGER_CONDITIONS(DEFINE_i64, i64)
INTEGER_CONDITIONS(DEFINE_u64, u64)

static void cmp_f(emu_wave *w, const emu_instruction *i) {
  static const uint8_t none[EMU_LANES];
  finish(w, i, none);
}
static void cmp_t(emu_wave *w, const emu_instruction *i) {
  uint8_t all[EMU_LANES];
  memset(all, 1, sizeof all);
  finish(w, i, all);
}

/* v_cmp_class: which kinds of number the second operand's bits ask for. */
enum {
  CLASS_SIGNALLING_NAN = 1 << 0,
  CLASS_QUIET_NAN = 1 << 1,
  CLASS_NEGATIVE_INFINITY = 1 << 2,
  CLASS_NEGATIVE_NORMAL = 1 << 3,
  CLASS_NEGATIVE_DENORMAL = 1 << 4,
  CLASS_NEGATIVE_ZERO = 1 << 5,
  CLASS_POSITIVE_ZERO = 1 << 6,
  CLASS_POSITIVE_DENORMAL = 1 << 7,
  CLASS_POSITIVE_NORMAL = 1 << 8,
  CLASS_POSITIVE_INFINITY = 1 << 9
};

/* The class bit of a number with `mantissa_bits` below `exponent_bits`. */
EMU_INLINE uint32_t class_of(uint64_t bits, int exponent_bits, int mantissa_bits) {
  uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
  uint64_t top = (UINT64_C(1) << exponent_bits) - 1, exponent = bits >> mantissa_bits & top;
  bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
  if (exponent == top && mantissa)
    return mantissa >> (mantissa_bits - 1) ? CLASS_QUIET_NAN : CLASS_SIGNALLING_NAN;
  if (exponent == top) return negative ? CLASS_NEGATIVE_INFINITY : CLASS_POSITIVE_INFINITY;
  if (exponent) return negative ? CLASS_NEGATIVE_NORMAL : CLASS_POSITIVE_NORMAL;
  if (mantissa) return negative ? CLASS_NEGATIVE_DENORMAL : CLASS_POSITIVE_DENORMAL;
  return negative ? CLASS_NEGATIVE_ZERO : CLASS_POSITIVE_ZERO;
}

static void cmp_class_f32(emu_wave *w, const emu_instruction *i) {
  emu_block x, y;
  uint8_t flag[EMU_LANES];
  const uint32_t *p = emu_source(w, i, 0, EMU_F32, &x).lo, *q = source_b32(w, i, 1, &y);
  LANES flag[lane] = (class_of(p[lane], 8, 23) & q[lane]) != 0;
  finish(w, i, flag);
}
static void cmp_class_f16(emu_wave *w, const emu_instruction *i) {
  emu_block x, y;
  uint8_t flag[EMU_LANES];
  const uint32_t *p = emu_source(w, i, 0, EMU_F16, &x).lo, *q = source_b16(w, i, 1, &y);
  LANES flag[lane] = (class_of(p[lane] & 0xffff, 5, 10) & q[lane]) != 0;
  finish(w, i, flag);
}
static void cmp_class_f64(emu_wave *w, const emu_instruction *i) {
  block_pair x;
  emu_block y;
  uint8_t flag[EMU_LANES];
  emu_lanes p = source_64(w, i, 0, EMU_F64, &x);
  const uint32_t *q = source_b32(w, i, 1, &y);
  LANES flag[lane] = (class_of(pair_at(p, lane), 11, 52) & q[lane]) != 0;
  finish(w, i, flag);
}

#define ROWS(type, name, condition)                                                                          \
  {"v_cmp_" #name "_" #type, cmp_##name##_##type, 1, EMU_COMPARE},                                           \
      {"v_cmpx_" #name "_" #type, cmp_##name##_##type, 1, EMU_COMPARE},
#define NAMED(name, handler)                                                                                 \
  {"v_cmp_" name, handler, 1, EMU_COMPARE}, {"v_cmpx_" name, handler, 1, EMU_COMPARE},
#define CONSTANT(type, always) NAMED("f_" #type, cmp_f) NAMED(always "_" #type, cmp_t)

const emu_row emu_vector_compare_rows[] = {
    FLOAT_CONDITIONS(ROWS, f32) FLOAT_CONDITIONS(ROWS, f16) FLOAT_CONDITIONS(ROWS, f64)
        INTEGER_CONDITIONS(ROWS, i16) INTEGER_CONDITIONS(ROWS, u16) INTEGER_CONDITIONS(ROWS, i32)
            INTEGER_CONDITIONS(ROWS, u32) INTEGER_CONDITIONS(ROWS, i64) INTEGER_CONDITIONS(ROWS, u64)
                CONSTANT(f32, "tru") CONSTANT(f16, "tru") CONSTANT(f64, "tru") CONSTANT(i16, "t")
                    CONSTANT(u16, "t") CONSTANT(i32, "t") CONSTANT(u32, "t") CONSTANT(i64, "t")
                        CONSTANT(u64, "t") NAMED("class_f32", cmp_class_f32) NAMED("class_f16", cmp_class_f16)
                            NAMED("class_f64", cmp_class_f64) END_OF_ROWS,
};
