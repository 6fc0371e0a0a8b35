/* Matrix instructions: one executor for every row of matrix_table.h.
 *
 * Accuracy: products are exact (they fit into f32; f64 for f64); sums are f32 in the order of k, each
 * addition rounded to nearest, starting from C. The hardware's adder trees keep other intermediate widths, so
 * the last bits may differ there. Block-scaled instructions sum 32 (16) elements of k unscaled, then scale
 * and add that partial sum. EXEC is ignored, as on the hardware; denormals are kept. */
#include "emu.h"
#include "formats.h"
#include "hot.h"
#include "matrix_table.h"

#include <math.h>

typedef enum number {
  NUMBER_F32,
  NUMBER_XF32, /* f32 whose mantissa's low 13 bits are dropped */
  NUMBER_F64,
  NUMBER_F16,
  NUMBER_BF16,
  NUMBER_FP8,
  NUMBER_BF8,
  NUMBER_FP8_FNUZ,
  NUMBER_BF8_FNUZ,
  NUMBER_FP6,
  NUMBER_BF6,
  NUMBER_FP4,
  NUMBER_I8,
  NUMBER_U8,
  NUMBER_I4,
  NUMBER_U4,
  NUMBER_I32,
  NUMBER_IU8,       /* I8 or U8, by neg_lo */
  NUMBER_IU4,       /* I4 or U4, by neg_lo */
  NUMBER_BF16F32,   /* D bf16, C f32 */
  NUMBER_BY_FORMAT, /* an 8-, 6- or 4-bit float chosen by the instruction's format field */
  NUMBER_COUNT
} number;

static const uint8_t number_bits[NUMBER_COUNT] = {
    [NUMBER_F32] = 32, [NUMBER_XF32] = 32, [NUMBER_F64] = 64,     [NUMBER_F16] = 16,     [NUMBER_BF16] = 16,
    [NUMBER_FP8] = 8,  [NUMBER_BF8] = 8,   [NUMBER_FP8_FNUZ] = 8, [NUMBER_BF8_FNUZ] = 8, [NUMBER_FP6] = 6,
    [NUMBER_BF6] = 6,  [NUMBER_FP4] = 4,   [NUMBER_I8] = 8,       [NUMBER_U8] = 8,       [NUMBER_I4] = 4,
    [NUMBER_U4] = 4,   [NUMBER_I32] = 32,
};

/* Values of the format fields cbsz, blgp, matrix_a_fmt and matrix_b_fmt. */
static const number numbers_by_format[] = {NUMBER_FP8, NUMBER_BF8, NUMBER_FP6, NUMBER_BF6, NUMBER_FP4};

typedef struct matrix_op {
  uint8_t m, n, k, blocks;
  number a, b, cd;
  uint8_t chunk_a, chunk_b, run;
} matrix_op;

static const matrix_op matrix_ops[] = {
#define X(name, m, n, k, blocks, a, b, cd, chunk_a, chunk_b, run)                                            \
  {m, n, k, blocks, NUMBER_##a, NUMBER_##b, NUMBER_##cd, chunk_a, chunk_b, run},
    EMU_MFMA_LIST(X) EMU_WMMA_LIST(X)
#undef X
};

enum {
  MAX_OPERAND = 2048, /* elements of one operand: 16 x 128 */
  MAX_RESULT = 2048,  /* elements of one result: 2 blocks of 32 x 32 */
  MAX_SCALES = 256    /* block scales of one operand: 16 rows x 8 blocks of 16 */
};

/* A and B as [block][k][row or column], C and D as [block][row][column]. */
typedef union matrix_values {
  _Alignas(64) float f[MAX_OPERAND];
  double d[MAX_OPERAND];
  int32_t i[MAX_OPERAND];
} matrix_values;

typedef uint32_t registers[EMU_LANES]; /* [lane] */

/* ---- operands ----
 */

/* The raw bits of slot `slot` in lanes [first, first + count): out[lane]. */
EMU_INLINE void slot_bits(const registers *source, int bits, int slot, int first, int count,
                          uint32_t *restrict out) {
  int offset = slot * bits, word = offset / 32, shift = offset % 32;
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const uint32_t *low = &source[word][first];
  if (shift + bits <= 32) {
    for (int lane = 0; lane < count; ++lane)
      out[lane] = low[lane] >> shift & mask;
  } else {
    const uint32_t *high = &source[word + 1][first];
    for (int lane = 0; lane < count; ++lane)
      out[lane] = (low[lane] >> shift | high[lane] << (32 - shift)) & mask;
  }
}

#define DECODE_ROW(expression)                                                                               \
  for (int lane = 0; lane < count; ++lane) {                                                                 \
    uint32_t code = raw[lane];                                                                               \
    out[lane] = (expression);                                                                                \
  }                                                                                                          \
  break

EMU_INLINE void decode_floats(number type, const uint32_t *restrict raw, int count, float *restrict out) {
  switch (type) {
  case NUMBER_F32:
    DECODE_ROW(emu_f32(code));
  case NUMBER_XF32:
    DECODE_ROW(emu_f32(code & ~0x1fffu));
  case NUMBER_F16:
    DECODE_ROW(emu_f32_from_f16(code));
  case NUMBER_BF16:
    DECODE_ROW(emu_f32_from_bf16(code));
  case NUMBER_FP8:
    DECODE_ROW(emu_f32_from_fp8(code));
  case NUMBER_BF8:
    DECODE_ROW(emu_f32_from_bf8(code));
  case NUMBER_FP8_FNUZ:
    DECODE_ROW(emu_f32_from_fp8_fnuz(code));
  case NUMBER_BF8_FNUZ:
    DECODE_ROW(emu_f32_from_bf8_fnuz(code));
  case NUMBER_FP6:
    DECODE_ROW(emu_decode(EMU_FORMAT_FP6, code));
  case NUMBER_BF6:
    DECODE_ROW(emu_decode(EMU_FORMAT_BF6, code));
  case NUMBER_FP4:
    DECODE_ROW(emu_decode(EMU_FORMAT_FP4, code));
  default:
    break;
  }
}

EMU_INLINE void decode_integers(number type, const uint32_t *restrict raw, int count, int32_t *restrict out) {
  switch (type) {
  case NUMBER_I8:
    DECODE_ROW((int32_t)(code << 24) >> 24);
  case NUMBER_I4:
    DECODE_ROW((int32_t)(code << 28) >> 28);
  default:
    DECODE_ROW((int32_t)code);
  }
}

/* Reads A or B into [block][k][row]. `broadcast` (cbsz) and `pick` (abid): groups of 2^broadcast blocks all
 * read the group's block number `pick`. */
EMU_HOT static void load_operand(const registers *source, number type, const matrix_op *op, int rows,
                                 int chunk, int wave, int broadcast, int pick, matrix_values *out) {
  int groups = wave / (rows * op->blocks), bits = number_bits[type], slots = op->k / groups;
  for (int block = 0; block < op->blocks; ++block) {
    int from = (block >> broadcast << broadcast) + pick;
    for (int group = 0; group < groups; ++group) {
      int first = rows * (from + op->blocks * group);
      for (int slot = 0; slot < slots; ++slot) {
        int k = (slot / chunk * groups + group) * chunk + slot % chunk;
        int at = (block * op->k + k) * rows;
        uint32_t raw[32];
        if (type == NUMBER_F64) {
          for (int lane = 0; lane < rows; ++lane)
            out->d[at + lane] =
                emu_double(source[2 * slot][first + lane], source[2 * slot + 1][first + lane]);
          continue;
        }
        slot_bits(source, bits, slot, first, rows, raw);
        if (op->cd == NUMBER_I32)
          decode_integers(type, raw, rows, &out->i[at]);
        else
          decode_floats(type, raw, rows, &out->f[at]);
      }
    }
  }
}

/* ---- results ----
 */

/* Where one run of a C/D register lies: lanes [first, first + n) hold columns 0 … n-1 of `row` in `block`. */
typedef struct segment {
  int block, row, first;
} segment;

static int result_slots(const matrix_op *op, int wave) {
  return op->m * op->n * op->blocks / wave;
}

static segment result_segment(const matrix_op *op, int wave, int slot, int part) {
  int first = part * op->n, run = op->run;
  if (op->m == 4) { /* blocks across the lanes */
    int group = part / op->blocks;
    int groups = wave / (op->n * op->blocks);
    return (segment){part % op->blocks, slot / run * run * groups + group * run + slot % run, first};
  }
  int groups = wave / op->n, per_block = op->m * op->n / wave, within = slot % per_block;
  return (segment){slot / per_block, within / run * run * groups + part * run + within % run, first};
}

/* Reads C into [block][row][column]. `source` NULL: every element is `constant`. */
EMU_HOT static void load_result(const registers *source, uint64_t constant, const matrix_op *op, number type,
                                int wave, matrix_values *out) {
  int parts = wave / op->n, slots = result_slots(op, wave), n = op->n;
  for (int slot = 0; slot < slots; ++slot)
    for (int part = 0; part < parts; ++part) {
      segment s = result_segment(op, wave, slot, part);
      int at = (s.block * op->m + s.row) * n;
      uint32_t raw[32];
      if (type == NUMBER_F64) {
        for (int j = 0; j < n; ++j)
          out->d[at + j] = source
                               ? emu_double(source[2 * slot][s.first + j], source[2 * slot + 1][s.first + j])
                               : emu_f64(constant);
      } else if (!source) {
        for (int j = 0; j < n; ++j)
          raw[j] = (uint32_t)constant;
      } else {
        slot_bits(source, number_bits[type], slot, s.first, n, raw);
      }
      if (type == NUMBER_I32)
        memcpy(&out->i[at], raw, (size_t)n * sizeof raw[0]);
      else if (type != NUMBER_F64)
        decode_floats(type, raw, n, &out->f[at]);
    }
}

EMU_HOT static void store_result(const matrix_values *value, const matrix_op *op, int wave, emu_round round,
                                 bool saturate, registers *out) {
  int parts = wave / op->n, slots = result_slots(op, wave), n = op->n;
  bool is_half = op->cd == NUMBER_F16 || op->cd == NUMBER_BF16 || op->cd == NUMBER_BF16F32;
  emu_format_id half = op->cd == NUMBER_F16 ? EMU_FORMAT_F16 : EMU_FORMAT_BF16;
  for (int slot = 0; slot < slots; ++slot)
    for (int part = 0; part < parts; ++part) {
      segment s = result_segment(op, wave, slot, part);
      int at = (s.block * op->m + s.row) * n;
      if (op->cd == NUMBER_F64) {
        for (int j = 0; j < n; ++j) {
          uint64_t bits = emu_bits64(value->d[at + j]);
          out[2 * slot][s.first + j] = (uint32_t)bits;
          out[2 * slot + 1][s.first + j] = (uint32_t)(bits >> 32);
        }
      } else if (is_half) {
        for (int j = 0; j < n; ++j) {
          uint32_t code = emu_encode(half, (double)value->f[at + j], round, saturate);
          uint32_t *word = &out[slot / 2][s.first + j];
          *word = slot % 2 ? (*word & 0xffff) | code << 16 : (*word & 0xffff0000u) | code;
        }
      } else {
        memcpy(&out[slot][s.first], &value->i[at], (size_t)n * sizeof(uint32_t));
      }
    }
}

/* ---- products ----
 */

/* d[m][n] += a[k][m] * b[k][n] over k in [k0, k1), as one outer product after another: the inner loop runs
 * over columns that lie side by side, and d stays in the first-level cache. */
#define PRODUCT(name, element)                                                                               \
  EMU_INLINE void name(const element *restrict a, const element *restrict b, element *restrict d, int m,     \
                       int n, int k0, int k1) {                                                              \
    for (int k = k0; k < k1; ++k)                                                                            \
      for (int i = 0; i < m; ++i) {                                                                          \
        element left = a[k * m + i];                                                                         \
        for (int j = 0; j < n; ++j)                                                                          \
          d[i * n + j] += left * b[k * n + j];                                                               \
      }                                                                                                      \
  }

PRODUCT(product_f32, float)
PRODUCT(product_f64, double)
PRODUCT(product_u32, uint32_t)

EMU_HOT static void multiply_floats(const matrix_op *op, const float *a, const float *b, float *d, int k0,
                                    int k1) {
  for (int block = 0; block < op->blocks; ++block) {
    const float *left = a + block * op->k * op->m, *right = b + block * op->k * op->n;
    float *sum = d + block * op->m * op->n;
    product_f32(left, right, sum, op->m, op->n, k0, k1);
  }
}

EMU_HOT static void multiply_doubles(const matrix_op *op, const double *a, const double *b, double *d) {
  for (int block = 0; block < op->blocks; ++block) {
    const double *left = a + block * op->k * op->m, *right = b + block * op->k * op->n;
    double *sum = d + block * op->m * op->n;
    product_f64(left, right, sum, op->m, op->n, 0, op->k);
  }
}

/* Unsigned, so that a sum that wraps is defined: the low 32 bits are the same. */
EMU_HOT static void multiply_integers(const matrix_op *op, const uint32_t *a, const uint32_t *b,
                                      uint32_t *d) {
  for (int block = 0; block < op->blocks; ++block) {
    const uint32_t *left = a + block * op->k * op->m, *right = b + block * op->k * op->n;
    uint32_t *sum = d + block * op->m * op->n;
    product_u32(left, right, sum, op->m, op->n, 0, op->k);
  }
}

/* With clamp: the exact 64-bit sum, saturated once. */
static void multiply_saturating(const matrix_op *op, const int32_t *a, const int32_t *b, int32_t *d) {
  for (int i = 0; i < op->m; ++i)
    for (int j = 0; j < op->n; ++j) {
      int64_t sum = d[i * op->n + j];
      for (int k = 0; k < op->k; ++k)
        sum += (int64_t)a[k * op->m + i] * b[k * op->n + j];
      d[i * op->n + j] = (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
}

/* d += sum over blocks of k of scale_a[row][block] * scale_b[column][block] * (partial sum of the block). */
static void multiply_scaled(const matrix_op *op, const float *a, const float *b, const float *scale_a,
                            const float *scale_b, int block_k, float *d) {
  int blocks = op->k / block_k;
  for (int part = 0; part < blocks; ++part) {
    _Alignas(64) float sum[MAX_RESULT];
    memset(sum, 0, sizeof(float) * op->m * op->n);
    multiply_floats(op, a, b, sum, part * block_k, (part + 1) * block_k);
    for (int i = 0; i < op->m; ++i)
      for (int j = 0; j < op->n; ++j) {
        double scale = (double)scale_a[i * blocks + part] * (double)scale_b[j * blocks + part];
        float *at = &d[i * op->n + j];
        *at = (float)((double)*at + (double)sum[i * op->n + j] * scale);
      }
  }
}

/* ---- block scales ----
 */

/* Values of matrix_a_scale_fmt: 0 e8m0, 1 e5m3, 2 e4m3 (unsigned). gfx9 has e8m0 only. */
static float decode_scale(uint32_t code, int format) {
  switch (format) {
  case 0:
    return emu_f32_from_e8m0(code);
  case 1: { /* unsigned, bias 15, all ones is NaN */
    if ((code & 0xff) == 0xff) return NAN;
    uint32_t exponent = code >> 3 & 0x1f, mantissa = code & 7;
    return exponent ? ldexpf((float)(8 + mantissa), (int)exponent - 18) : ldexpf((float)mantissa, -17);
  }
  default:
    return emu_f32_from_fp8(code & 0x7f);
  }
}

static uint32_t lane_word(emu_wave *w, const emu_operand *o, int word, int lane) {
  if (o->kind == EMU_VECTOR) return emu_registers(w, o)[word][lane];
  return (uint32_t)(emu_scalar64(w, o) >> (32 * word));
}

/* gfx950: lane r + rows * block holds, in byte `byte`, the scale of row r and the block-th 32 elements of k.
 */
static void load_scales_mfma(emu_wave *w, const emu_operand *o, int rows, int blocks, int byte, float *out) {
  for (int row = 0; row < rows; ++row)
    for (int block = 0; block < blocks; ++block)
      out[row * blocks + block] = emu_f32_from_e8m0(lane_word(w, o, 0, row + rows * block) >> (8 * byte));
}

/* gfx1250: byte b of lane r (+16 with `upper`) holds the scale of row r, block b; 16-wide blocks use two
 * registers. */
static void load_scales_wmma(emu_wave *w, const emu_operand *o, int blocks, bool upper, int format,
                             float *out) {
  for (int row = 0; row < 16; ++row)
    for (int block = 0; block < blocks; ++block) {
      uint32_t word = lane_word(w, o, block / 4, row + (upper ? 16 : 0));
      out[row * blocks + block] = decode_scale(word >> (8 * (block % 4)), format);
    }
}

/* ---- the instruction ----
 */

static const matrix_op *find_op(const emu_instruction *i) {
  return &matrix_ops[i->row - emu_matrix_rows];
}

static number resolve(number type, const emu_wave *w, const emu_instruction *i, int k) {
  switch (type) {
  case NUMBER_FP8:
    return w->target->fnuz ? NUMBER_FP8_FNUZ : type;
  case NUMBER_BF8:
    return w->target->fnuz ? NUMBER_BF8_FNUZ : type;
  case NUMBER_IU8:
    return i->neg_lo >> k & 1 ? NUMBER_I8 : NUMBER_U8;
  case NUMBER_IU4:
    return i->neg_lo >> k & 1 ? NUMBER_I4 : NUMBER_U4;
  case NUMBER_BY_FORMAT: {
    int format =
        w->target->generation == 9 ? (k ? i->blgp : i->cbsz) : (k ? i->matrix_b_format : i->matrix_a_format);
    return format < 5 ? numbers_by_format[format] : NUMBER_COUNT;
  }
  default:
    return type;
  }
}

static const registers *matrix_registers(emu_wave *w, const emu_instruction *i, int k, int count) {
  const emu_operand *o = &i->operand[k];
  if (o->kind != EMU_VECTOR) {
    emu_fault(w, i, -1, "operand %d of a matrix instruction is not a vector register", k);
    return NULL;
  }
  if (emu_row_of(w, o) + (uint32_t)count > w->vector_rows) {
    emu_fault(w, i, -1, "operand %d of a matrix instruction reaches past the wave's %u vector registers", k,
              (unsigned)w->vector_rows);
    return NULL;
  }
  return (const registers *)emu_registers(w, o);
}

/* Registers that `elements` of `type` take in every lane. */
static int register_count(number type, int elements, int wave) {
  return (elements / wave * number_bits[type] + 31) / 32;
}

static void negate_result(matrix_values *c, int count, bool negate, bool absolute) {
  for (int e = 0; e < count; ++e) {
    if (absolute) c->f[e] = fabsf(c->f[e]);
    if (negate) c->f[e] = -c->f[e];
  }
}

/* 6- and 4-bit elements come 32 to a lane group's turn: 24 or 16 whole bytes. */
static int chunk_of(const matrix_op *op, number type, int chunk) {
  return op->a == NUMBER_BY_FORMAT && number_bits[type] < 8 ? 32 : chunk;
}

static void run_scaled(emu_wave *w, const emu_instruction *i, const matrix_op *op, const matrix_values *a,
                       const matrix_values *b, matrix_values *d) {
  float scale_a[MAX_SCALES], scale_b[MAX_SCALES];
  bool wide = strstr(i->row->name, "scale16") != NULL;
  int block_k = wide ? 16 : 32, blocks = op->k / block_k;
  const emu_operand *from_a = &i->operand[4], *from_b = &i->operand[5];
  if (w->target->generation == 9) {
    int byte_a = (i->op_sel & 1) + 2 * (i->op_sel_hi & 1), byte_b = (i->op_sel >> 1 & 1) + (i->op_sel_hi & 2);
    load_scales_mfma(w, from_a, op->m, blocks, byte_a, scale_a);
    load_scales_mfma(w, from_b, op->n, blocks, byte_b, scale_b);
  } else {
    load_scales_wmma(w, from_a, blocks, i->matrix_a_scale != 0, i->matrix_a_scale_format, scale_a);
    load_scales_wmma(w, from_b, blocks, i->matrix_b_scale != 0, i->matrix_b_scale_format, scale_b);
  }
  multiply_scaled(op, a->f, b->f, scale_a, scale_b, block_k, d->f);
}

static void run_matrix(emu_wave *w, const emu_instruction *i) {
  const matrix_op *op = find_op(i);
  int wave = w->target->wave;
  bool mfma = w->target->generation == 9;
  number type_a = resolve(op->a, w, i, 0), type_b = resolve(op->b, w, i, 1);
  bool by_format = op->a == NUMBER_BY_FORMAT;
  if (type_a == NUMBER_COUNT || type_b == NUMBER_COUNT) {
    emu_fault(w, i, -1, "unknown element format of a matrix operand");
    return;
  }
  if (mfma && !by_format && ((i->blgp && op->cd != NUMBER_F64) || (i->cbsz && op->blocks == 1))) {
    emu_fault(w, i, -1, "cbsz:%d blgp:%d of a matrix instruction is not emulated", i->cbsz, i->blgp);
    return;
  }
  int results = op->m * op->n * op->blocks;
  number type_c = op->cd == NUMBER_BF16F32 ? NUMBER_F32 : op->cd,
         type_d = op->cd == NUMBER_BF16F32 ? NUMBER_BF16 : op->cd;
  const registers *from_a =
      matrix_registers(w, i, 1, register_count(type_a, op->m * op->k * op->blocks, wave));
  const registers *from_b =
      matrix_registers(w, i, 2, register_count(type_b, op->n * op->k * op->blocks, wave));
  const registers *into = matrix_registers(w, i, 0, register_count(type_d, results, wave));
  if (!from_a || !from_b || !into) return;
  const registers *from_c = NULL;
  uint64_t constant = 0;
  if (i->operand[3].kind == EMU_VECTOR) {
    from_c = matrix_registers(w, i, 3, register_count(type_c, results, wave));
    if (!from_c) return;
  } else {
    emu_type as = type_c == NUMBER_F64    ? EMU_F64
                  : type_c == NUMBER_I32  ? EMU_B32
                  : type_c == NUMBER_F16  ? EMU_F16
                  : type_c == NUMBER_BF16 ? EMU_BF16
                                          : EMU_F32;
    constant = emu_constant(&i->operand[3], as);
  }

  matrix_values a, b, d;
  int broadcast = mfma && !by_format ? i->cbsz : 0, pick = mfma && !by_format ? i->abid : 0;
  load_operand(from_a, type_a, op, op->m, chunk_of(op, type_a, op->chunk_a), wave, broadcast, pick, &a);
  load_operand(from_b, type_b, op, op->n, chunk_of(op, type_b, op->chunk_b), wave, 0, 0, &b);
  load_result(from_c, constant, op, type_c, wave, &d);
  if (op->cd == NUMBER_F64) {
    /* blgp negates A (bit 0), B (bit 1) and C (bit 2) of the f64 forms. */
    for (int e = 0; e < op->m * op->k * op->blocks && i->blgp & 1; ++e)
      a.d[e] = -a.d[e];
    for (int e = 0; e < op->n * op->k * op->blocks && i->blgp & 2; ++e)
      b.d[e] = -b.d[e];
    for (int e = 0; e < results && i->blgp & 4; ++e)
      d.d[e] = -d.d[e];
    multiply_doubles(op, a.d, b.d, d.d);
  } else if (op->cd == NUMBER_I32) {
    if (i->clamp && op->blocks == 1)
      multiply_saturating(op, a.i, b.i, d.i);
    else
      multiply_integers(op, (const uint32_t *)a.i, (const uint32_t *)b.i, (uint32_t *)d.i);
  } else {
    /* gfx12: neg_lo negates C and neg_hi takes its magnitude; for A and B neg_lo and neg_hi act on even and
     * odd k. */
    if (!mfma && ((i->neg_lo | i->neg_hi) & 4)) negate_result(&d, results, i->neg_lo & 4, i->neg_hi & 4);
    if (!mfma && ((i->neg_lo | i->neg_hi) & 3)) {
      for (int e = 0; e < op->m * op->k; ++e)
        if ((e / op->m % 2 ? i->neg_hi : i->neg_lo) & 1) a.f[e] = -a.f[e];
      for (int e = 0; e < op->n * op->k; ++e)
        if ((e / op->n % 2 ? i->neg_hi : i->neg_lo) & 2) b.f[e] = -b.f[e];
    }
    if (by_format && strstr(i->row->name, "scale"))
      run_scaled(w, i, op, &a, &b, &d);
    else
      multiply_floats(op, a.f, b.f, d.f, 0, op->k);
  }
  store_result(&d, op, wave, (emu_round)(w->mode >> 2 & 3), w->mode >> 23 & 1,
               emu_registers(w, &i->operand[0]));
}

const emu_row emu_matrix_rows[] = {
#define X(name, m, n, k, blocks, a, b, cd, chunk_a, chunk_b, run) {#name, run_matrix, 1, EMU_MATRIX},
    EMU_MFMA_LIST(X) EMU_WMMA_LIST(X)
#undef X
        {NULL, NULL, 0, 0},
};
