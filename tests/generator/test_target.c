/* Claims about the target table: each row agrees with the architecture's facts, and each matrix instruction
 * with the fragment layouts of the ISA documents, recorded here on their own (docs/targets.md). */
#include "../../generator/target.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- architectures ---- */

static const struct {
  const char *name;
  int wave, lds_kilobytes, vgprs;
  dtype fp8;
  unsigned machine;
  double terabytes_per_s;
  int simd_waves, vgpr_granule;
  double gigahertz; /* 0: nothing is estimated */
  const char *prelude;
} facts[] = {
    {"gfx942", 64, 64, 512, DTYPE_FP8_E4M3FNUZ, 0x4c, 5.3, 8, 8, 2.1, "prelude_amdgcn.hip"},
    {"gfx950", 64, 160, 512, DTYPE_FP8_E4M3FN, 0x4f, 8.0, 8, 8, 2.4, "prelude_amdgcn.hip"},
    {"gfx1201", 32, 64, 256, DTYPE_FP8_E4M3FN, 0x4e, 0.64, 16, 24, 2.97, "prelude_amdgcn.hip"},
    {"gfx1250", 32, 320, 1024, DTYPE_FP8_E4M3FN, 0x49, 19.6, 16, 16, 2.4, "prelude_amdgcn.hip"},
    {"sm_90", 32, 227, 255, DTYPE_FP8_E4M3FN, 0, 4.8, 16, 8, 0, "prelude_sm90.hip"},
};

enum { FACT_COUNT = sizeof facts / sizeof *facts };

Test(target, every_row_has_the_facts_of_its_architecture) {
  cr_assert_eq(target_count(), FACT_COUNT);
  for (size_t i = 0; i < FACT_COUNT; i++) {
    const target *t = target_find(facts[i].name);
    cr_assert_not_null(t, "%s", facts[i].name);
    cr_expect_eq(t->wave, facts[i].wave, "%s", t->name);
    cr_expect_eq(t->lds_bytes, facts[i].lds_kilobytes * 1024, "%s", t->name);
    cr_expect_eq(t->vgprs, facts[i].vgprs, "%s", t->name);
    cr_expect_eq(t->fp8, facts[i].fp8, "%s", t->name);
    cr_expect_eq(t->elf_machine, facts[i].machine, "%s", t->name);
    cr_expect(t->hbm_bytes_per_s == facts[i].terabytes_per_s * 1e12, "%s", t->name);
    cr_expect_eq(t->simd_waves, facts[i].simd_waves, "%s", t->name);
    cr_expect_eq(t->vgpr_granule, facts[i].vgpr_granule, "%s", t->name);
    cr_expect(t->rates.clock == facts[i].gigahertz * 1e9, "%s", t->name);
    cr_expect_str_eq(t->prelude, facts[i].prelude);
    cr_expect(t->compute_units > 0 && t->product[0], "%s", t->name);
  }
}

Test(target, names_are_found_exactly_and_once) {
  for (size_t i = 0; i < target_count(); i++)
    cr_expect_eq(target_find(target_at(i)->name), target_at(i));
  static const char *const strangers[] = {"",       "gfx",    "gfx94",  "gfx9420",
                                          "GFX942", "gfx90a", "sm_90a", "sm_9"};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
    cr_expect_null(target_find(strangers[i]), "%s", strangers[i]);
  cr_expect_null(target_at(target_count()));
}

/* ---- matrix instructions ---- */

/* Where the ISA documents put things. The kv side is the A operand of MFMA and WMMA and the B operand of mma;
 * `k` is the first of each pair or block in the order of the lane's registers. */
typedef struct fragment {
  int row;
  int k[32];
} fragment;

/* MFMA 16x16, wave64: four groups of 16 lanes; lane = row + 16 * (k / E). */
static fragment mfma(int lane, int elements) {
  fragment f = {.row = lane % 16};
  for (int e = 0; e < elements; e++)
    f.k[e] = lane / 16 * elements + e;
  return f;
}

/* gfx1201 WMMA 16x16x16: lane t holds row t % 16 and k = t / 16 * 8 + i. */
static fragment wmma_gfx12(int lane, int elements) {
  fragment f = {.row = lane % 16};
  for (int e = 0; e < elements; e++)
    f.k[e] = lane / 16 * 8 + e;
  return f;
}

/* gfx1250 WMMA: k goes to the two groups in blocks, of 16 for fp8 and of 8 for 16-bit operands. */
static fragment wmma_gfx1250_fp8(int lane, int elements) {
  fragment f = {.row = lane % 16};
  for (int e = 0; e < elements; e++)
    f.k[e] = e / 16 * 32 + lane / 16 * 16 + e % 16;
  return f;
}
static fragment wmma_gfx1250_16(int lane, int elements) {
  fragment f = {.row = lane % 16};
  for (int e = 0; e < elements; e++)
    f.k[e] = e / 8 * 16 + lane / 16 * 8 + e % 8;
  return f;
}

/* mma m16n8k16, B: column lane / 4, k = lane % 4 * 2 + {0, 1}, then 8 more. */
static fragment mma_b(int lane, int elements) {
  fragment f = {.row = lane / 4};
  for (int e = 0; e < elements; e++)
    f.k[e] = lane % 4 * 2 + e % 2 + e / 2 * 8;
  return f;
}

/* The other operand holds the same k in the same lane; its row is a query head. */
static int same_row(int lane, int column_of_lane) {
  (void)column_of_lane;
  return lane % 16;
}
static int mma_a(int lane, int column_of_lane) {
  return lane / 4 + 8 * column_of_lane;
}

/* Accumulator register `reg` of `lane`: which kv row and which query column. */
static void mfma_c(int lane, int reg, int *row, int *column) {
  *row = lane / 16 * 4 + reg;
  *column = lane % 16;
}
static void wmma_c(int lane, int reg, int *row, int *column) {
  *row = lane / 16 * 8 + reg;
  *column = lane % 16;
}
/* mma's C is [query, kv]: registers 0 and 1 of row lane / 4, 2 and 3 of row lane / 4 + 8. */
static void mma_c(int lane, int reg, int *row, int *column) {
  *row = lane % 4 * 2 + reg % 2;
  *column = lane / 4 + reg / 2 * 8;
}

typedef struct instruction {
  const char *target, *name;
  dtype operand;
  int k, rows, columns, elements, accumulators;
  fragment (*kv)(int lane, int elements);
  int (*other)(int lane, int column_of_lane);
  void (*c)(int lane, int reg, int *row, int *column);
} instruction;

static const instruction instructions[] = {
    {"gfx942", "mfma_f32_16x16x32_fp8_fp8", DTYPE_FP8_E4M3FNUZ, 32, 16, 16, 8, 4, mfma, same_row, mfma_c},
    {"gfx942", "mfma_f32_16x16x16_bf16", DTYPE_BF16, 16, 16, 16, 4, 4, mfma, same_row, mfma_c},
    {"gfx942", "mfma_f32_16x16x16_f16", DTYPE_FP16, 16, 16, 16, 4, 4, mfma, same_row, mfma_c},
    {"gfx950", "mfma_f32_16x16x32_fp8_fp8", DTYPE_FP8_E4M3FN, 32, 16, 16, 8, 4, mfma, same_row, mfma_c},
    {"gfx950", "mfma_f32_16x16x32_bf16", DTYPE_BF16, 32, 16, 16, 8, 4, mfma, same_row, mfma_c},
    {"gfx950", "mfma_f32_16x16x32_f16", DTYPE_FP16, 32, 16, 16, 8, 4, mfma, same_row, mfma_c},
    {"gfx1201", "wmma_f32_16x16x16_fp8_fp8", DTYPE_FP8_E4M3FN, 16, 16, 16, 8, 8, wmma_gfx12, same_row,
     wmma_c},
    {"gfx1201", "wmma_f32_16x16x16_bf16", DTYPE_BF16, 16, 16, 16, 8, 8, wmma_gfx12, same_row, wmma_c},
    {"gfx1201", "wmma_f32_16x16x16_f16", DTYPE_FP16, 16, 16, 16, 8, 8, wmma_gfx12, same_row, wmma_c},
    {"gfx1250", "wmma_f32_16x16x64_fp8_fp8", DTYPE_FP8_E4M3FN, 64, 16, 16, 32, 8, wmma_gfx1250_fp8, same_row,
     wmma_c},
    {"gfx1250", "wmma_f32_16x16x32_bf16", DTYPE_BF16, 32, 16, 16, 16, 8, wmma_gfx1250_16, same_row, wmma_c},
    {"gfx1250", "wmma_f32_16x16x32_f16", DTYPE_FP16, 32, 16, 16, 16, 8, wmma_gfx1250_16, same_row, wmma_c},
    {"sm_90", "mma_m16n8k16_bf16", DTYPE_BF16, 16, 8, 16, 4, 4, mma_b, mma_a, mma_c},
    {"sm_90", "mma_m16n8k16_f16", DTYPE_FP16, 16, 8, 16, 4, 4, mma_b, mma_a, mma_c},
};

static const instruction *recorded(const target *t, const matrix_op *op) {
  for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
    if (strcmp(instructions[i].target, t->name) == 0 && strcmp(instructions[i].name, op->name) == 0)
      return &instructions[i];
  cr_assert(false, "%s of %s is not recorded here", op->name, t->name);
  return NULL;
}

static void for_each_op(void (*visit)(const target *t, const matrix_op *op)) {
  size_t visited = 0;
  for (size_t i = 0; i < target_count(); i++)
    for (size_t n = 0; n < target_at(i)->op_count; n++, visited++)
      visit(target_at(i), &target_at(i)->ops[n]);
  cr_expect_eq(visited, sizeof instructions / sizeof *instructions,
               "every recorded instruction is in the table");
}

static int row_of(const matrix_op *op, int lane) {
  return lane / op->row_stride % op->rows;
}
static int group_of(const matrix_op *op, int lane) {
  return lane / op->group_stride % op->groups;
}

static void has_its_shape(const target *t, const matrix_op *op) {
  const instruction *i = recorded(t, op);
  cr_expect_eq(op->operand, i->operand, "%s %s", t->name, op->name);
  cr_expect(op->k == i->k && op->rows == i->rows && op->columns == i->columns, "%s %s", t->name, op->name);
  cr_expect_eq(op->elements, i->elements, "%s %s", t->name, op->name);
  cr_expect_eq(op->row_run * op->columns_per_lane, i->accumulators, "%s %s", t->name, op->name);
}

Test(target, instructions_have_the_shapes_of_their_names) {
  for_each_op(has_its_shape);
}

static void adds_up(const target *t, const matrix_op *op) {
  cr_expect_eq(op->rows * op->groups, t->wave, "%s %s: lanes", t->name, op->name);
  cr_expect_eq(op->elements * op->groups, op->k, "%s %s: k", t->name, op->name);
  cr_expect_eq(op->groups * op->row_run, op->rows, "%s %s: accumulator rows", t->name, op->name);
  cr_expect_eq(op->rows * op->columns_per_lane, op->columns, "%s %s: accumulator columns", t->name, op->name);
}

Test(target, lanes_elements_and_accumulators_add_up) {
  for_each_op(adds_up);
}

static void covers_once(const target *t, const matrix_op *op) {
  int seen[64] = {0};
  for (int lane = 0; lane < t->wave; lane++)
    seen[row_of(op, lane) * op->groups + group_of(op, lane)]++;
  for (int i = 0; i < op->rows * op->groups; i++)
    cr_expect_eq(seen[i], 1, "%s %s: row %d of group %d", t->name, op->name, i / op->groups, i % op->groups);
}

Test(target, lanes_cover_every_row_and_group_once) {
  for_each_op(covers_once);
}

/* The generator lets k be in any order; what it needs is that lanes of a group share their k, and that the
 * groups divide k among them. */
static void matches_the_operands(const target *t, const matrix_op *op) {
  const instruction *i = recorded(t, op);
  int group_of_k[64], first_lane[8];
  memset(group_of_k, -1, sizeof group_of_k);
  memset(first_lane, -1, sizeof first_lane);
  for (int lane = 0; lane < t->wave; lane++) {
    const int group = group_of(op, lane);
    fragment f = i->kv(lane, i->elements);
    cr_expect_eq(f.row, row_of(op, lane), "%s %s: lane %d holds kv row %d", t->name, op->name, lane, f.row);
    for (int c = 0; c < op->columns_per_lane; c++)
      cr_expect_eq(i->other(lane, c), row_of(op, lane) + c * op->rows, "%s %s: lane %d's column %d", t->name,
                   op->name, lane, c);
    if (first_lane[group] < 0) first_lane[group] = lane;
    fragment first = i->kv(first_lane[group], i->elements);
    for (int e = 0; e < i->elements; e++) {
      cr_expect_eq(f.k[e], first.k[e], "%s %s: lanes of group %d differ in k", t->name, op->name, group);
      cr_assert(f.k[e] >= 0 && f.k[e] < op->k);
      cr_expect(group_of_k[f.k[e]] < 0 || group_of_k[f.k[e]] == group, "%s %s: two groups have k %d", t->name,
                op->name, f.k[e]);
      group_of_k[f.k[e]] = group;
    }
  }
  for (int k = 0; k < op->k; k++)
    cr_expect_geq(group_of_k[k], 0, "%s %s: nobody has k %d", t->name, op->name, k);
}

Test(target, operands_lie_in_the_lanes_the_isa_says) {
  for_each_op(matches_the_operands);
}

static void matches_the_accumulator(const target *t, const matrix_op *op) {
  const instruction *i = recorded(t, op);
  for (int lane = 0; lane < t->wave; lane++)
    for (int c = 0; c < op->columns_per_lane; c++)
      for (int r = 0; r < op->row_run; r++) {
        int row, column;
        i->c(lane, c * op->row_run + r, &row, &column);
        cr_expect_eq(row, group_of(op, lane) * op->row_run + r, "%s %s: lane %d register %d", t->name,
                     op->name, lane, r);
        cr_expect_eq(column, row_of(op, lane) + c * op->rows, "%s %s: lane %d register %d", t->name, op->name,
                     lane, r);
      }
}

Test(target, accumulators_lie_in_the_lanes_the_isa_says) {
  for_each_op(matches_the_accumulator);
}

/* "short4_t": 4 of 2 bytes. */
static int type_bytes(const char *type) {
  static const struct {
    const char *prefix;
    int bytes;
  } bases[] = {{"bf16x", 2}, {"short", 2}, {"half", 2}, {"int", 4}, {"long", 8}};
  for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
    if (strncmp(type, bases[i].prefix, strlen(bases[i].prefix)) == 0) {
      int count = atoi(type + strlen(bases[i].prefix));
      return bases[i].bytes * (count ? count : 1);
    }
  cr_assert(false, "%s is no operand type", type);
  return 0;
}

static void call_fits(const target *t, const matrix_op *op) {
  if (op->operand_type)
    cr_expect_eq(type_bytes(op->operand_type), op->elements * dtype_bytes(op->operand), "%s %s takes %s",
                 t->name, op->name, op->operand_type);
  cr_expect(strstr(op->call, "kv") && strstr(op->call, "other") && strstr(op->call, "acc"), "%s: %s",
            op->name, op->call);
  char shape[16], shape_of_mma[16];
  snprintf(shape, sizeof shape, "%dx%dx%d", op->columns, op->rows, op->k);
  snprintf(shape_of_mma, sizeof shape_of_mma, "m%dn%dk%d", op->columns, op->rows, op->k);
  cr_expect(strstr(op->call, shape) || strstr(op->call, shape_of_mma), "%s calls %s", op->name, op->call);
}

Test(target, calls_take_operands_of_their_size) {
  for_each_op(call_fits);
}

static void multiplies_its_own_dialect(const target *t, const matrix_op *op) {
  if (dtype_is_fp8(op->operand)) cr_expect_eq(op->operand, t->fp8, "%s %s", t->name, op->name);
}

Test(target, fp8_instructions_speak_the_targets_dialect) {
  for_each_op(multiplies_its_own_dialect);
}

Test(target, sixteen_bit_products_exist_everywhere) {
  for (size_t i = 0; i < target_count(); i++) {
    unsigned operands = 0;
    for (size_t n = 0; n < target_at(i)->op_count; n++)
      operands |= 1u << target_at(i)->ops[n].operand;
    cr_expect(operands & 1u << DTYPE_BF16 && operands & 1u << DTYPE_FP16, "%s", target_at(i)->name);
  }
}
