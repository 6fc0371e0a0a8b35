/* Matrix instructions against products of small integers, placed by layouts written again as plain rules: for
 * every lane and slot, which row and k it holds. The rules are those of the ISA documents' matrix chapters,
 * stated the other way round from the emulator's table, and one by one for each shape. */
#include "matrix_cases.h"

/* ---- running one ---- */

static uint32_t random_state = 12345;
static int small(int low, int high) { /* [low, high] */
  random_state = random_state * 1664525u + 1013904223u;
  return low + (int)(random_state >> 16) % (high - low + 1);
}

enum { AT_D = 300, AT_A = 16, AT_B = 80, AT_C = 400, MAX_K = 128, MAX_DIM = 32, MAX_BLOCKS = 16 };

static int a_value[MAX_BLOCKS][MAX_DIM][MAX_K], b_value[MAX_BLOCKS][MAX_DIM][MAX_K],
    c_value[MAX_BLOCKS][MAX_DIM][MAX_DIM];

static void put(uint32_t (*v)[EMU_LANES], int lane, int bits, int slot, uint64_t code) {
  for (int bit = 0; bit < bits; ++bit) {
    int at = slot * bits + bit;
    uint32_t *word = &v[at / 32][lane], mask = 1u << (at % 32);
    *word = code >> bit & 1 ? *word | mask : *word & ~mask;
  }
}
static uint64_t get(uint32_t (*v)[EMU_LANES], int lane, int bits, int slot) {
  uint64_t code = 0;
  for (int bit = 0; bit < bits; ++bit) {
    int at = slot * bits + bit;
    code |= (uint64_t)(v[at / 32][lane] >> (at % 32) & 1) << bit;
  }
  return code;
}

static emu_operand vector_operand(int row, int count) {
  return (emu_operand){.kind = EMU_VECTOR, .index = (uint16_t)row, .count = (uint16_t)count};
}

static kind in_dialect(kind k, const emu_target *target) {
  if (!target->fnuz) return k;
  return k == FP8 ? FP8Z : k == BF8 ? BF8Z : k;
}

static void fill_operand(bench *b, int row, const matrix_case *c, kind k, int dim, place (*where)(int, int),
                         int (*value)[MAX_DIM][MAX_K], int wave) {
  int slots = dim * c->k * c->blocks / wave;
  for (int lane = 0; lane < wave; ++lane)
    for (int slot = 0; slot < slots; ++slot) {
      place p = where(lane, slot);
      int low = k == U8 || k == U4 ? 0 : -3;
      value[p.block][p.row][p.k] = small(low, 3);
      put(b->v + row, lane, kind_bits[k], slot, code_of(k, value[p.block][p.row][p.k]));
    }
}

/* A as block `broadcast` of the group reads it. */
static void expect_product(bench *b, const matrix_case *c, const emu_instruction *i, int wave,
                           double constant_c) {
  int slots = c->m * c->n * c->blocks / wave;
  for (int lane = 0; lane < wave; ++lane)
    for (int slot = 0; slot < slots; ++slot) {
      result_place p = c->place_d(lane, slot);
      int from = (p.block >> i->cbsz << i->cbsz) + i->abid;
      if (c->formats >= 0) from = p.block;
      double want = isnan(constant_c) ? c_value[p.block][p.row][p.column] : constant_c;
      for (int k = 0; k < c->k; ++k)
        want += a_value[from][p.row][k] * b_value[p.block][p.column][k];
      double got = value_of(c->d, get(b->v + AT_D, lane, kind_bits[c->d], slot));
      cr_assert_float_eq(got, want, 0, "%s: row %d column %d block %d (lane %d slot %d) is %g, not %g",
                         c->name, p.row, p.column, p.block, lane, slot, got, want);
    }
}

static emu_instruction prepare(bench *b, const matrix_case *c, const emu_target *target) {
  bench_reset(b, target);
  int wave = target->wave;
  kind a = in_dialect(c->a, target), bb = in_dialect(c->b, target);
  fill_operand(b, AT_A, c, a, c->m, c->place_a, a_value, wave);
  fill_operand(b, AT_B, c, bb, c->n, c->place_b, b_value, wave);
  int slots = c->m * c->n * c->blocks / wave;
  for (int lane = 0; lane < wave; ++lane)
    for (int slot = 0; slot < slots; ++slot) {
      result_place p = c->place_d(lane, slot);
      c_value[p.block][p.row][p.column] = small(-3, 3);
      put(b->v + AT_C, lane, kind_bits[c->c], slot, code_of(c->c, c_value[p.block][p.row][p.column]));
    }
  const emu_row *row = emu_find_row(c->name, strlen(c->name));
  cr_assert_not_null(row, "%s has no handler", c->name);
  emu_instruction i = {
      .handler = row->handler, .row = row, .operand_count = 4, .source0 = 1, .op_sel_hi = 7, .text = c->name};
  i.operand[0] = vector_operand(AT_D, slots);
  i.operand[1] = vector_operand(AT_A, 1);
  i.operand[2] = vector_operand(AT_B, 1);
  i.operand[3] = vector_operand(AT_C, slots);
  if (c->formats >= 0) {
    i.cbsz = i.matrix_a_format = c->formats & 7;
    i.blgp = i.matrix_b_format = c->formats >> 3;
  }
  return i;
}

static bench b; /* of the running test */

static void start(const char *target) {
  static const uint8_t nothing[4];
  cr_assert(bench_init(&b, emu_find_target(target), nothing, sizeof nothing));
}

static void run(const emu_instruction *i) {
  i->handler(&b.wave, i);
  cr_assert(!b.wave.faulted, "%s: %s", i->row->name,
            b.messages.count ? b.messages.items[0].message : "fault");
}

static void check_cases(const char *target_name, const matrix_case *cases, size_t count) {
  const emu_target *target = emu_find_target(target_name);
  start(target_name);
  for (size_t n = 0; n < count; ++n) {
    if (cases[n].formats >= 0 && target->fnuz) continue; /* gfx942 has no f8f6f4 */
    emu_instruction i = prepare(&b, &cases[n], target);
    b.wave.s[EMU_S_EXEC] = 0; /* matrix instructions do not look at it */
    run(&i);
    expect_product(&b, &cases[n], &i, target->wave, NAN);
    /* The same with the result over C, and with an inline 0 for C. */
    i = prepare(&b, &cases[n], target);
    i.operand[0] = i.operand[3];
    run(&i);
    memmove(b.v[AT_D], b.v[AT_C], sizeof(uint32_t[32][EMU_LANES]));
    expect_product(&b, &cases[n], &i, target->wave, NAN);
    i = prepare(&b, &cases[n], target);
    i.operand[3] = (emu_operand){.kind = EMU_INTEGER};
    run(&i);
    expect_product(&b, &cases[n], &i, target->wave, 0);
  }
  bench_finish(&b);
}

Test(emu_matrix, mfma_products_on_gfx950) {
  check_cases("gfx950", mfma_cases, sizeof mfma_cases / sizeof *mfma_cases);
}
Test(emu_matrix, mfma_products_on_gfx942) {
  check_cases("gfx942", mfma_cases, sizeof mfma_cases / sizeof *mfma_cases);
}
Test(emu_matrix, wmma_products_on_gfx1201) {
  check_cases("gfx1201", wmma_cases, sizeof wmma_cases / sizeof *wmma_cases);
}
Test(emu_matrix, wmma_products_on_gfx1250) {
  check_cases("gfx1250", wmma_cases, sizeof wmma_cases / sizeof *wmma_cases);
}

static const matrix_case *find_case(const matrix_case *cases, size_t count, const char *name) {
  for (size_t n = 0; n < count; ++n)
    if (strcmp(cases[n].name, name) == 0) return &cases[n];
  return NULL;
}
#define MFMA_CASE(name) find_case(mfma_cases, sizeof mfma_cases / sizeof *mfma_cases, name)
#define WMMA_CASE(name) find_case(wmma_cases, sizeof wmma_cases / sizeof *wmma_cases, name)

/* ---- modifiers ----
 */

Test(emu_matrix, cbsz_and_abid_broadcast_a_block_of_a) {
  start("gfx950");
  const matrix_case *c = MFMA_CASE("v_mfma_f32_4x4x4_16b_f16");
  emu_instruction i = prepare(&b, c, emu_find_target("gfx950"));
  i.cbsz = 2;
  i.abid = 3;
  run(&i);
  expect_product(&b, c, &i, 64, NAN);
  bench_finish(&b);
}

Test(emu_matrix, what_is_not_emulated_is_a_fault) {
  start("gfx950");
  emu_instruction i = prepare(&b, MFMA_CASE("v_mfma_f32_16x16x16_f16"), emu_find_target("gfx950"));
  i.blgp = 1;
  b.module.code[0] = i; /* a fault quotes its neighbours */
  i.handler(&b.wave, &b.module.code[0]);
  cr_expect(b.wave.faulted);
  bench_finish(&b);
}

Test(emu_matrix, signedness_of_integer_wmma_is_in_neg_lo) {
  start("gfx1201");
  const matrix_case *c = WMMA_CASE("v_wmma_i32_16x16x16_iu8");
  for (int signs = 0; signs < 4; ++signs) {
    emu_instruction i = prepare(&b, c, emu_find_target("gfx1201"));
    for (int row = 0; row < 2; ++row)
      for (int lane = 0; lane < 32; ++lane)
        b.v[AT_A + row][lane] = b.v[AT_B + row][lane] = UINT32_MAX; /* -1 or 255 */
    i.operand[3] = (emu_operand){.kind = EMU_INTEGER};
    i.neg_lo = (uint8_t)signs;
    run(&i);
    int x = signs & 1 ? -1 : 255, y = signs & 2 ? -1 : 255;
    cr_expect_eq((int32_t)b.v[AT_D][5], 16 * x * y, "neg_lo %d: %d", signs, (int32_t)b.v[AT_D][5]);
  }
  bench_finish(&b);
}

Test(emu_matrix, clamp_saturates_integer_sums) {
  start("gfx1201");
  emu_instruction i = prepare(&b, WMMA_CASE("v_wmma_i32_16x16x16_iu8"), emu_find_target("gfx1201"));
  for (int lane = 0; lane < 32; ++lane) {
    b.v[AT_A][lane] = b.v[AT_A + 1][lane] = b.v[AT_B][lane] = b.v[AT_B + 1][lane] = 0x01010101;
    for (int slot = 0; slot < 8; ++slot)
      b.v[AT_C + slot][lane] = 0x7ffffff8;
  }
  i.clamp = true;
  run(&i);
  cr_expect_eq(b.v[AT_D][0], 0x7fffffffu);
  i.clamp = false;
  run(&i);
  cr_expect_eq(b.v[AT_D][0], 0x80000008u);
  bench_finish(&b);
}

Test(emu_matrix, neg_of_c_and_its_magnitude) {
  start("gfx1250");
  const matrix_case *c = WMMA_CASE("v_wmma_f32_16x16x64_fp8_fp8");
  emu_instruction i = prepare(&b, c, emu_find_target("gfx1250"));
  memset(b.v[AT_A], 0, sizeof(uint32_t[16][EMU_LANES]));
  i.neg_hi = 4;
  i.neg_lo = 4;
  run(&i);
  for (int lane = 0; lane < 32; ++lane) {
    result_place p = dw(lane, 3);
    cr_expect_eq(value_of(F32, b.v[AT_D + 3][lane]), (double)-abs(c_value[0][p.row][p.column]));
  }
  bench_finish(&b);
}

/* ---- block scales ----
 */

/* Row r's block q of 32 k is scaled by 2^(r % 3 - q), column j's by 2^(q - j % 2). */
Test(emu_matrix, mfma_scales_blocks_of_32) {
  start("gfx950");
  const matrix_case *c = MFMA_CASE("v_mfma_f32_16x16x128_f8f6f4");
  for (int byte = 0; byte < 4; ++byte) {
    emu_instruction i = prepare(&b, c, emu_find_target("gfx950"));
    const char *name = "v_mfma_scale_f32_16x16x128_f8f6f4";
    i.row = emu_find_row(name, strlen(name));
    cr_assert_not_null(i.row);
    i.operand_count = 6;
    i.operand[4] = vector_operand(150, 1);
    i.operand[5] = vector_operand(151, 1);
    i.op_sel = (uint8_t)((byte & 1) * 3);
    i.op_sel_hi = (uint8_t)((byte >> 1) * 3);
    for (int lane = 0; lane < 64; ++lane) { /* lane r + 16q */
      int r = lane % 16, q = lane / 16;
      b.v[150][lane] = ~(0xffu << (8 * byte)) | (uint32_t)(127 + r % 3 - q) << (8 * byte);
      b.v[151][lane] = ~(0xffu << (8 * byte)) | (uint32_t)(127 + q - r % 2) << (8 * byte);
    }
    run(&i);
    for (int lane = 0; lane < 64; ++lane)
      for (int slot = 0; slot < 4; ++slot) {
        result_place p = d16(lane, slot);
        double want = c_value[0][p.row][p.column];
        for (int k = 0; k < 128; ++k) {
          double scale = ldexp(1, p.row % 3 - k / 32) * ldexp(1, k / 32 - p.column % 2);
          want += a_value[0][p.row][k] * b_value[0][p.column][k] * scale;
        }
        cr_assert_float_eq(value_of(F32, b.v[AT_D + slot][lane]), want, 0, "byte %d row %d column %d", byte,
                           p.row, p.column);
      }
  }
  bench_finish(&b);
}

Test(emu_matrix, mfma_32x32_scales_and_constants) {
  start("gfx950");
  const matrix_case *c = MFMA_CASE("v_mfma_f32_32x32x64_f8f6f4");
  emu_instruction i = prepare(&b, c, emu_find_target("gfx950"));
  const char *name = "v_mfma_scale_f32_32x32x64_f8f6f4";
  i.row = emu_find_row(name, strlen(name));
  i.operand_count = 6;
  i.op_sel_hi = 0;
  i.operand[4] = vector_operand(150, 1);
  i.operand[5] = (emu_operand){.kind = EMU_LITERAL, .bits = 128}; /* 2.0 everywhere */
  for (int lane = 0; lane < 64; ++lane)
    b.v[150][lane] = (uint32_t)(lane < 32 ? 127 : 125); /* k ≥ 32 at a quarter */
  run(&i);
  for (int lane = 0; lane < 64; ++lane)
    for (int slot = 0; slot < 16; ++slot) {
      result_place p = d32(lane, slot);
      double want = c_value[0][p.row][p.column];
      for (int k = 0; k < 64; ++k)
        want += a_value[0][p.row][k] * b_value[0][p.column][k] * (k < 32 ? 2.0 : 0.5);
      cr_assert_float_eq(value_of(F32, b.v[AT_D + slot][lane]), want, 0);
    }
  bench_finish(&b);
}

static void check_wmma_scale(const char *name, int block_k, bool upper) {
  start("gfx1250");
  const matrix_case *c = WMMA_CASE("v_wmma_f32_16x16x128_f8f6f4");
  emu_instruction i = prepare(&b, c, emu_find_target("gfx1250"));
  i.row = emu_find_row(name, strlen(name));
  cr_assert_not_null(i.row);
  i.operand_count = 6;
  i.operand[4] = vector_operand(150, 2);
  i.operand[5] = vector_operand(152, 2);
  i.matrix_a_scale = i.matrix_b_scale = upper;
  for (int lane = 0; lane < 32; ++lane)
    for (int word = 0; word < 2; ++word) {
      uint32_t noise = 0xffffffffu, a = 0, s = 0;
      for (int byte = 0; byte < 4; ++byte) {
        int q = 4 * word + byte, r = lane % 16;
        a |= (uint32_t)(127 + r % 3 - q) << (8 * byte);
        s |= (uint32_t)(127 - r % 2) << (8 * byte);
      }
      bool used = (lane >= 16) == upper;
      b.v[150 + word][lane] = used ? a : noise;
      b.v[152 + word][lane] = used ? s : noise;
    }
  run(&i);
  for (int lane = 0; lane < 32; ++lane)
    for (int slot = 0; slot < 8; ++slot) {
      result_place p = dw(lane, slot);
      double want = c_value[0][p.row][p.column];
      for (int k = 0; k < 128; ++k)
        want +=
            a_value[0][p.row][k] * b_value[0][p.column][k] * ldexp(1, p.row % 3 - k / block_k - p.column % 2);
      cr_assert_float_eq(value_of(F32, b.v[AT_D + slot][lane]), want, 0, "%s row %d column %d", name, p.row,
                         p.column);
    }
  bench_finish(&b);
}

Test(emu_matrix, wmma_scales_blocks_of_32) {
  check_wmma_scale("v_wmma_scale_f32_16x16x128_f8f6f4", 32, false);
  check_wmma_scale("v_wmma_scale_f32_16x16x128_f8f6f4", 32, true);
}
Test(emu_matrix, wmma_scales_blocks_of_16) {
  check_wmma_scale("v_wmma_scale16_f32_16x16x128_f8f6f4", 16, false);
}

/* ---- coverage ----
 */

Test(emu_matrix, an_instruction_without_a_case_fails) {
  static const char *const others[] = {
      "v_mfma_scale_f32_16x16x128_f8f6f4", "v_mfma_scale_f32_32x32x64_f8f6f4",
      "v_wmma_scale_f32_16x16x128_f8f6f4", "v_wmma_scale16_f32_16x16x128_f8f6f4"};
  for (const emu_row *row = emu_matrix_rows; row->name; ++row) {
    bool tested = MFMA_CASE(row->name) || WMMA_CASE(row->name);
    for (size_t n = 0; n < sizeof others / sizeof *others; ++n)
      tested = tested || strcmp(others[n], row->name) == 0;
    cr_expect(tested, "%s is not tested here", row->name);
  }
}
