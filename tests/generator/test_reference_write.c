/* Claims about the oracle's cache writer: codes, scales and places worked out by hand. */
#include "../../generator/reference.h"
#include "../example_contract.h"

#include <math.h>

enum { BYTES = 64, UNTOUCHED = 0xa5 };

/* 2 pages of 2 tokens, up to 2 heads of 4 channels, cache [page, head, slot, channel], scales [page, head,
 * slot]; one token of bf16 K and V goes to slot 0 unless told otherwise. */
typedef struct fixture {
  contract c;
  reference_write_args args;
  unsigned char k[64], v[64];
  int64_t slots[4];
  unsigned char k_cache[BYTES], v_cache[BYTES], k_scale[BYTES], v_scale[BYTES];
} fixture;

static void fixture_init(fixture *f, dtype kv, int64_t heads) {
  memset(f, 0, sizeof *f);
  memset(f->k_cache, UNTOUCHED, sizeof f->k_cache);
  memset(f->v_cache, UNTOUCHED, sizeof f->v_cache);
  memset(f->k_scale, UNTOUCHED, sizeof f->k_scale);
  memset(f->v_scale, UNTOUCHED, sizeof f->v_scale);
  f->c = example_contract(2, 4, 4);
  f->c.kv.k_dtype = f->c.kv.v_dtype = kv;
  f->c.scale.granularity = SCALE_TOKEN_HEAD;
  f->c.scale.k = f->c.scale.v = example_layout("b h s", 2, 4);
  f->c.scale.writer.zero_value = 1.0;
  f->args = (reference_write_args){.tokens = 1,
                                   .kv_heads = heads,
                                   .pages = 2,
                                   .k = f->k,
                                   .v = f->v,
                                   .slot_mapping = f->slots,
                                   .k_cache = f->k_cache,
                                   .v_cache = f->v_cache,
                                   .k_scale = f->k_scale,
                                   .v_scale = f->v_scale,
                                   .k_stride_b = 8 * heads,
                                   .k_stride_h = 8,
                                   .v_stride_b = 8 * heads,
                                   .v_stride_h = 8,
                                   .k_scale_stride_b = 2 * heads,
                                   .k_scale_stride_h = 2,
                                   .v_scale_stride_b = 2 * heads,
                                   .v_scale_stride_h = 2};
}

/* Elements index * 4 .. + 3 of `array` (k or v), in bf16. */
static void row(unsigned char *array, int index, double a, double b, double c, double d) {
  const double values[] = {a, b, c, d};
  for (int i = 0; i < 4; i++)
    put(DTYPE_BF16, array, 4 * index + i, values[i]);
}

static hd_status write(const fixture *f) {
  diags problems;
  diags_init(&problems);
  const hd_status status = reference_write(&f->c, &f->args, &problems);
  cr_expect_eq(diags_errors(&problems), status == HD_OK ? 0 : 1);
  diags_finish(&problems);
  return status;
}

static void expect_codes(const unsigned char *found, int a, int b, int c, int d) {
  cr_expect(found[0] == a && found[1] == b && found[2] == c && found[3] == d,
            "%02x %02x %02x %02x, expected %02x %02x %02x %02x", found[0], found[1], found[2], found[3], a, b,
            c, d);
}

static uint32_t bits(const unsigned char *scales, int index) {
  const unsigned char *b = scales + 4 * index;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool all_untouched(const unsigned char *bytes, int begin, int end) {
  for (int i = begin; i < end; i++) {
    if (bytes[i] != UNTOUCHED) return false;
  }
  return true;
}

/* amax 4: q = 448 x / 4 = 112, -224, 56, 448. */
Test(reference_write, e4m3fn_by_hand) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);
  row(f.v, 0, 0.0, -0.0, 448.0, -1.0);
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x6e, 0xf6, 0x66, 0x7e);
  cr_expect_eq(bits(f.k_scale, 0), 0x3c124925, "4 / 448 = 1 / 112 in fp32");
  expect_codes(f.v_cache, 0x00, 0x80, 0x7e, 0xb8);
  cr_expect_eq(bits(f.v_scale, 0), 0x3f800000);
  cr_expect(all_untouched(f.k_cache, 4, BYTES) && all_untouched(f.v_cache, 4, BYTES));
  cr_expect(all_untouched(f.k_scale, 4, BYTES) && all_untouched(f.v_scale, 4, BYTES));
}

/* amax 4: q = 240 x / 4 = 60, -120, 30, 240. */
Test(reference_write, e4m3fnuz_by_hand) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FNUZ, 1);
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);
  row(f.v, 0, 240.0, -0.0, -0x1p-12, -1.0); /* a tiny negative must not become 0x80, the NaN */
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x6f, 0xf7, 0x67, 0x7f);
  cr_expect_eq(bits(f.k_scale, 0), 0x3c888889, "4 / 240 = 1 / 60 in fp32");
  expect_codes(f.v_cache, 0x7f, 0x00, 0x00, 0xc0);
  cr_expect_eq(bits(f.v_scale, 0), 0x3f800000);
}

Test(reference_write, int8_and_e5m2_by_hand) {
  fixture f;
  fixture_init(&f, DTYPE_INT8, 1);
  row(f.k, 0, 127.0, -127.0, 2.5, -3.5);
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 127, 0x81, 2, 0xfc);
  fixture_init(&f, DTYPE_FP8_E5M2, 1);
  row(f.k, 0, 57344.0, -1.0, 1.125, 1.375);
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x7b, 0xbc, 0x3c, 0x3e);
}

/* bf16 numbers whose quotient falls on a tie between two codes in fp32 but not in wider arithmetic, or not
 * when multiplied by a rounded reciprocal. */
Test(reference_write, codes_come_from_one_fp32_division) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  row(f.k, 0, 1.015625, 0.76171875, 0.0, 0.0); /* fp32: 336, to even 320; double: 336.000005, up to 352 */
  row(f.v, 0, 1.078125, 0.80859375, 0.0, 0.0); /* divided: 336; times 1/s: above it */
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x7e, 0x7a, 0x00, 0x00);
  expect_codes(f.v_cache, 0x7e, 0x7a, 0x00, 0x00);
}

Test(reference_write, qmax_of_the_contract_wins_over_the_dialect) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.writer.qmax = 240.0;
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3c888889);
  expect_codes(f.k_cache, 0x67, 0xef, 0x5f, 0x77); /* 60, -120, 30, 240 */
}

Test(reference_write, amax_floor_bounds_from_below) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.writer.amax_floor = 448.0;
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);
  row(f.v, 0, 896.0, 1.0, 0.0, 0.0); /* above the floor */
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3f800000);
  expect_codes(f.k_cache, 0x38, 0xc0, 0x30, 0x48);
  cr_expect_eq(bits(f.v_scale, 0), 0x40000000);
}

Test(reference_write, scale_floor_bounds_what_is_stored) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.writer.scale_floor = 0.5;
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);  /* amax / 448 is below */
  row(f.v, 0, 896.0, 1.0, 0.0, 0.0); /* and here above */
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3f000000);
  expect_codes(f.k_cache, 0x40, 0xc8, 0x38, 0x50); /* 2, -4, 1, 8 */
  cr_expect_eq(bits(f.v_scale, 0), 0x40000000);
  f.c.scale.writer.zero_value = 1.0; /* a row of zeros has a rule of its own */
  row(f.k, 0, 0.0, 0.0, 0.0, 0.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3f800000);
  f.c.scale.writer.zero_row = ZERO_ROW_FLOOR;
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3f000000);
  f.c.scale.writer.amax_floor = 448.0;
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x3f800000);
}

Test(reference_write, an_all_zero_row_stores_what_the_contract_says) {
  static const struct {
    zero_row rule;
    double value, floor;
    uint32_t stored;
  } cases[] = {
      {ZERO_ROW_VALUE, 1.0, 0.0, 0x3f800000},   {ZERO_ROW_VALUE, 0.0, 0.0, 0x00000000},
      {ZERO_ROW_VALUE, 1.0, 448.0, 0x3f800000}, {ZERO_ROW_FLOOR, 7.0, 448.0, 0x3f800000},
      {ZERO_ROW_FLOOR, 7.0, 1e-8, 0x2dc45763}, /* fp32(1e-8) / 448 = 2.2321428e-11 */
      {ZERO_ROW_FLOOR, 7.0, 0.0, 0x00000000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture f;
    fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
    f.c.scale.writer.zero_row = cases[i].rule;
    f.c.scale.writer.zero_value = cases[i].value;
    f.c.scale.writer.amax_floor = cases[i].floor;
    row(f.k, 0, 0.0, -0.0, 0.0, 0.0);
    cr_assert_eq(write(&f), HD_OK);
    cr_expect_eq(bits(f.k_scale, 0), cases[i].stored, "case %zu: 0x%08x", i, bits(f.k_scale, 0));
    cr_expect_eq(f.k_cache[0] & 0x7f, 0);
    cr_expect_eq(f.k_cache[3], 0);
  }
}

Test(reference_write, nan_elements_are_left_out_of_amax_and_stored_as_nan) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  row(f.k, 0, 1.0, NAN, 0.5, 4.0);
  row(f.v, 0, NAN, NAN, NAN, NAN);
  f.c.scale.writer.zero_value = 0.0;
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x6e, 0x7f, 0x66, 0x7e);
  cr_expect_eq(bits(f.k_scale, 0), 0x3c124925);
  expect_codes(f.v_cache, 0x7f, 0x7f, 0x7f, 0x7f); /* even by a scale of 0 */
  cr_expect_eq(bits(f.v_scale, 0), 0);
}

Test(reference_write, an_infinite_element_makes_an_infinite_scale) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  row(f.k, 0, 1.0, -INFINITY, 0.5, 4.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x7f800000);
  expect_codes(f.k_cache, 0x00, 0x7f, 0x00, 0x00);
}

Test(reference_write, scales_that_fp32_holds_only_as_denormals_still_divide) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  row(f.k, 0, 448.0 * 0x1p-133, 0x1p-133, 0.0, 0.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 0), 0x00010000); /* 2^-133 */
  expect_codes(f.k_cache, 0x7e, 0x38, 0x00, 0x00);
}

/* Both heads, token 1 to page 1 slot 1, token 0 skipped. */
Test(reference_write, codes_and_scales_go_to_their_slot) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 2);
  f.args.tokens = 2;
  f.slots[0] = -1;
  f.slots[1] = 3;
  row(f.k, 2, 448.0, 1.0, 2.0, 4.0);
  row(f.k, 3, 896.0, 2.0, 4.0, 8.0);
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache + 16 + 4, 0x7e, 0x38, 0x40, 0x48); /* page 1 at 16, head 0, slot 1 */
  expect_codes(f.k_cache + 16 + 8 + 4, 0x7e, 0x38, 0x40, 0x48);
  cr_expect_eq(bits(f.k_scale, 5), 0x3f800000); /* page 1 at 4, head 0, slot 1 */
  cr_expect_eq(bits(f.k_scale, 7), 0x40000000);
  cr_expect(all_untouched(f.k_cache, 0, 20) && all_untouched(f.k_cache, 24, 28) &&
            all_untouched(f.k_cache, 32, BYTES));
  cr_expect(all_untouched(f.k_scale, 0, 20) && all_untouched(f.k_scale, 24, 28));
}

Test(reference_write, k_and_v_have_layouts_strides_and_formats_of_their_own) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 2);
  f.c.kv.v_dtype = DTYPE_FP8_E4M3FNUZ;
  f.c.kv.k = example_layout("b h d/2 s d%2", 2, 4);
  f.c.kv.v = example_layout("b h d s", 2, 4);
  f.args.v_stride_b = 28;
  f.args.v_stride_h = 10;
  f.slots[0] = 3;
  row(f.k, 1, 448.0, 1.0, 2.0, 4.0);
  row(f.v, 1, 240.0, 1.0, 2.0, 4.0);
  cr_assert_eq(write(&f), HD_OK);
  const unsigned char *k = f.k_cache + 16 + 8; /* (d/2) * 4 + slot * 2 + d%2 */
  cr_expect(k[2] == 0x7e && k[3] == 0x38 && k[6] == 0x40 && k[7] == 0x48);
  const unsigned char *v = f.v_cache + 28 + 10; /* d * 2 + slot */
  cr_expect(v[1] == 0x7f && v[3] == 0x40 && v[5] == 0x48 && v[7] == 0x50);
  cr_expect(all_untouched(f.v_cache, 46, BYTES));
}

Test(reference_write, a_scale_per_token_spans_the_heads) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 2);
  f.c.scale.granularity = SCALE_TOKEN;
  f.c.scale.k = f.c.scale.v = example_layout("b s", 2, 4);
  f.args.k_scale_stride_b = 2;
  f.slots[0] = 2;
  row(f.k, 0, 448.0, 1.0, 0.0, 0.0);
  row(f.k, 1, 896.0, 2.0, 0.0, 0.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 2), 0x40000000);
  expect_codes(f.k_cache + 16, 0x76, 0x30, 0x00, 0x00);
  expect_codes(f.k_cache + 24, 0x7e, 0x38, 0x00, 0x00);
  cr_expect(all_untouched(f.k_scale, 0, 8) && all_untouched(f.k_scale, 12, BYTES));
}

Test(reference_write, a_scale_per_group_spans_its_channels) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.granularity = SCALE_GROUP;
  f.c.scale.group_k = 2;
  f.c.scale.group_v = 4;
  f.c.scale.k = example_layout("b h s d", 2, 2);
  f.c.scale.v = example_layout("b h s d", 2, 1);
  f.args.k_scale_stride_b = f.args.k_scale_stride_h = 4;
  row(f.k, 0, 448.0, 1.0, 4.0, 896.0);
  row(f.v, 0, 448.0, 1.0, 4.0, 896.0);
  f.slots[0] = 1;
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(bits(f.k_scale, 2), 0x3f800000);
  cr_expect_eq(bits(f.k_scale, 3), 0x40000000);
  expect_codes(f.k_cache + 4, 0x7e, 0x38, 0x40, 0x7e);
  cr_expect_eq(bits(f.v_scale, 1), 0x40000000);
  f.c.scale.group_k = 3;
  cr_expect_eq(write(&f), HD_INVALID);
}

Test(reference_write, e8m0_scales_round_up_to_a_power_of_two) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 2);
  f.c.scale.granularity = SCALE_GROUP;
  f.c.scale.dtype = DTYPE_E8M0;
  f.c.scale.group_k = f.c.scale.group_v = 4;
  f.c.scale.k = f.c.scale.v = example_layout("b h s d", 2, 1);
  row(f.k, 0, 450.0, 1.0, 0.0, 0.0); /* just over 1: stored 2 */
  row(f.k, 1, 448.0, 1.0, 0.0, 0.0); /* exactly 1 */
  row(f.v, 0, INFINITY, 1.0, 0.0, 0.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq(f.k_scale[0], 128);
  cr_expect_eq(f.k_scale[2], 127);
  expect_codes(f.k_cache, 0x76, 0x30, 0x00, 0x00); /* 225 -> 224, 0.5 */
  expect_codes(f.k_cache + 8, 0x7e, 0x38, 0x00, 0x00);
  cr_expect_eq(f.v_scale[0], 254);
}

Test(reference_write, fp16_scales_round_to_even_and_saturate) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.dtype = DTYPE_FP16;
  row(f.k, 0, 1.0, -2.0, 0.5, 4.0);
  row(f.v, 0, 0x1p30, 0x1p24, 0.0, 0.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect_eq((unsigned)(f.k_scale[0] | f.k_scale[1] << 8), 0x2092u); /* 1 / 112 */
  cr_expect_eq((unsigned)(f.v_scale[0] | f.v_scale[1] << 8), 0x7bffu);
  /* codes come from the stored scale: 4 / 0.00892639 = 448.11, saturated; 2^24 / 65504 = 256.1 */
  cr_expect_eq(f.k_cache[3], 0x7e);
  expect_codes(f.v_cache, 0x7e, 0x78, 0x00, 0x00);
}

Test(reference_write, given_scales_are_read_and_kept) {
  static const struct {
    granularity granularity;
    const char *layout;
    int64_t stride_b, stride_h;
    int index; /* of the scale of page 1, head 1 */
  } cases[] = {
      {SCALE_TENSOR, "b h", 0, 0, 0},
      {SCALE_HEAD, "h", 0, 1, 1},
      {SCALE_PAGE_HEAD, "b h", 2, 1, 3},
      {SCALE_PAGE_HEAD, "h b", 1, 2, 3},
  };
  for (int i = 0; i < 4; i++) {
    fixture f;
    fixture_init(&f, DTYPE_FP8_E4M3FN, 2);
    f.c.scale.granularity = cases[i].granularity;
    f.c.scale.k = f.c.scale.v = example_layout(cases[i].layout, 2, 4);
    f.args.k_scale_stride_b = f.args.v_scale_stride_b = cases[i].stride_b;
    f.args.k_scale_stride_h = f.args.v_scale_stride_h = cases[i].stride_h;
    for (int j = 0; j < 16; j++) {
      put(DTYPE_FP32, f.k_scale, j, j == cases[i].index ? 0.5 : NAN);
      put(DTYPE_FP32, f.v_scale, j, j == cases[i].index ? 0.0 : NAN);
    }
    unsigned char before[BYTES];
    memcpy(before, f.k_scale, BYTES);
    f.slots[0] = 2;
    row(f.k, 1, 1.0, -2.0, 1000.0, INFINITY);
    row(f.v, 1, 1.0, -2.0, NAN, INFINITY);
    cr_assert_eq(write(&f), HD_OK);
    expect_codes(f.k_cache + 16 + 8, 0x40, 0xc8, 0x7e, 0x7e);
    expect_codes(f.v_cache + 16 + 8, 0x00, 0x00, 0x7f, 0x00); /* a scale of 0 */
    cr_expect(memcmp(before, f.k_scale, BYTES) == 0);
  }
}

/* Nothing but codes is stored: the numbers are the caller's. */
Test(reference_write, scales_that_are_arguments_are_read_as_numbers) {
  const float k_scale = 0.5f, v_scale = 0.0f;
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.scale.granularity = SCALE_TENSOR;
  f.c.scale.argument = true;
  f.c.scale.k.count = f.c.scale.v.count = 0;
  f.args.k_scale = (void *)(uintptr_t)&k_scale;
  f.args.v_scale = (void *)(uintptr_t)&v_scale;
  row(f.k, 0, 1.0, -2.0, 1000.0, INFINITY);
  row(f.v, 0, 1.0, -2.0, NAN, INFINITY);
  cr_assert_eq(write(&f), HD_OK);
  expect_codes(f.k_cache, 0x40, 0xc8, 0x7e, 0x7e);
  expect_codes(f.v_cache, 0x00, 0x00, 0x7f, 0x00); /* a scale of 0 */
  cr_expect(k_scale == 0.5f && v_scale == 0.0f);
}

Test(reference_write, without_scales_values_are_converted_or_copied) {
  fixture f;
  fixture_init(&f, DTYPE_BF16, 1);
  f.c.scale.granularity = SCALE_NONE;
  f.c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  f.args.k_scale = f.args.v_scale = NULL;
  row(f.k, 0, 1.0, -0.0, INFINITY, 0.0);
  f.k[6] = 0xc1; /* a NaN with a payload of its own */
  f.k[7] = 0xff;
  row(f.v, 0, 1.0, 1000.0, -0x1p-10, 17.0); /* ties: 0, and 17 between 16 and 18 */
  cr_assert_eq(write(&f), HD_OK);
  cr_expect(memcmp(f.k_cache, f.k, 8) == 0);
  expect_codes(f.v_cache, 0x38, 0x7e, 0x80, 0x58);
  f.c.query.dtype = DTYPE_FP16;
  put(DTYPE_FP16, f.k, 0, 1.0 + 0x1p-10); /* more mantissa than bf16 has */
  put(DTYPE_FP16, f.k, 1, 65504.0);
  cr_assert_eq(write(&f), HD_OK);
  cr_expect(get(DTYPE_BF16, f.k_cache, 0) == 1.0 && get(DTYPE_BF16, f.k_cache, 1) == 65536.0);
}

Test(reference_write, a_slot_outside_the_cache_writes_nothing_at_all) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.args.tokens = 2;
  f.slots[0] = 0;
  f.slots[1] = 4;
  cr_expect_eq(write(&f), HD_INVALID);
  cr_expect(all_untouched(f.k_cache, 0, BYTES) && all_untouched(f.k_scale, 0, BYTES));
  f.slots[1] = INT64_MIN;
  cr_expect_eq(write(&f), HD_OK);
}

Test(reference_write, an_unresolved_dialect_is_refused) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3, 1);
  cr_expect_eq(write(&f), HD_INVALID);
}

/* Producer to consumer: what is written is what decode reads back, within half a step of the format. */
Test(reference_write, decode_reads_back_what_was_written) {
  fixture f;
  fixture_init(&f, DTYPE_FP8_E4M3FN, 1);
  f.c.kv.k = example_layout("b h d/2 s d%2", 2, 4);
  f.c.kv.v = example_layout("b h s/2 d s%2", 2, 4);
  row(f.k, 0, 0.3, -0.7, 0.11, 0.9);
  row(f.v, 0, -3.0, 0.77, 1.9, 0.2);
  f.slots[0] = 2;
  cr_assert_eq(write(&f), HD_OK);
  unsigned char q[8];
  row(q, 0, 1.0, 0.0, 0.0, 0.0);
  const int32_t page = 1, length = 1;
  double out[4], lse;
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = 1,
                                      .table_pages = 1,
                                      .pages = 2,
                                      .q = q,
                                      .k_cache = {f.k_cache, 8, 8},
                                      .v_cache = {f.v_cache, 8, 8},
                                      .k_scale = {f.k_scale, 2, 2},
                                      .v_scale = {f.v_scale, 2, 2},
                                      .page_table = &page,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = &lse};
  diags problems;
  diags_init(&problems);
  cr_assert_eq(reference_decode(&f.c, &args, &problems), HD_OK);
  diags_finish(&problems);
  cr_expect(fabs(lse - get(DTYPE_BF16, f.k, 0)) <= 0.3 / 16);
  for (int d = 0; d < 4; d++) {
    const double x = get(DTYPE_BF16, f.v, d);
    cr_expect(fabs(out[d] - x) <= fabs(x) / 16, "%g, wrote %g", out[d], x);
  }
}
