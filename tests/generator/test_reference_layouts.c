/* Claims about the oracle's decode: where codes and scales lie. Offsets are written here by hand, never by
 * the layout algebra. */
#include "reference_fixture.h"

enum { PAGES = 3, HEADS = 2, SLOTS = 4, CHANNELS = 4 };

typedef int64_t (*offset_function)(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                   int64_t stride_h);

static int64_t offset_hnd(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b, int64_t stride_h) {
  return b * stride_b + h * stride_h + s * 4 + d;
}
static int64_t offset_nhd(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b, int64_t stride_h) {
  return b * stride_b + s * 2 * stride_h + h * stride_h + d;
}
static int64_t offset_vectors_of_channels(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                          int64_t stride_h) {
  return b * stride_b + h * stride_h + (d / 2) * 8 + s * 2 + d % 2;
}
static int64_t offset_vectors_of_tokens(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                        int64_t stride_h) {
  return b * stride_b + h * stride_h + (s / 2) * 8 + d * 2 + s % 2;
}
static int64_t offset_transposed(int64_t b, int64_t h, int64_t s, int64_t d, int64_t stride_b,
                                 int64_t stride_h) {
  return b * stride_b + h * stride_h + d * 4 + s;
}

typedef struct layout_case {
  const char *name, *k, *v;
  offset_function k_offset, v_offset;
  int64_t k_stride_b, k_stride_h, v_stride_b, v_stride_h;
} layout_case;

static const layout_case layout_cases[] = {
    {"HND", "b h s d", "b h s d", offset_hnd, offset_hnd, 32, 16, 32, 16},
    {"HND, padded, K and V apart", "b h s d", "b h s d", offset_hnd, offset_hnd, 50, 20, 36, 18},
    {"NHD", "b s h d", "b s h d", offset_nhd, offset_nhd, 32, 4, 32, 4},
    {"NHD, padded", "b s h d", "b s h d", offset_nhd, offset_nhd, 60, 5, 48, 6},
    {"shuffled", "b h d/2 s d%2", "b h s/2 d s%2", offset_vectors_of_channels, offset_vectors_of_tokens, 32,
     16, 40, 20},
    {"classic", "b h d/2 s d%2", "b h d s", offset_vectors_of_channels, offset_transposed, 32, 16, 32, 16},
    {"heads outermost", "h b s d", "h b d s", offset_hnd, offset_transposed, 16, 48, 16, 64},
};

/* Distinct and exact in bf16. */
static double key_at(int64_t b, int64_t h, int64_t s, int64_t d) {
  return (double)(((b * HEADS + h) * SLOTS + s) * CHANNELS + d + 1);
}
static double value_at(int64_t b, int64_t h, int64_t s, int64_t d) {
  return -0.5 * key_at(b, h, s, d);
}

/* Every element on its own: a window of one token makes lse the key channel that q points at and out the
 * value. */
static void check_layout(const layout_case *l) {
  enum { ELEMENTS = 256 };
  unsigned char k[ELEMENTS * 2], v[ELEMENTS * 2], q[HEADS * CHANNELS * 2];
  for (int i = 0; i < ELEMENTS; i++) {
    put(DTYPE_BF16, k, i, NAN);
    put(DTYPE_BF16, v, i, NAN);
  }
  for (int i = 0; i < PAGES * HEADS * SLOTS * CHANNELS; i++) {
    const int b = i / 32, h = i / 16 % 2, s = i / 4 % 4, d = i % 4;
    put(DTYPE_BF16, k, l->k_offset(b, h, s, d, l->k_stride_b, l->k_stride_h), key_at(b, h, s, d));
    put(DTYPE_BF16, v, l->v_offset(b, h, s, d, l->v_stride_b, l->v_stride_h), value_at(b, h, s, d));
  }
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k = example_layout(l->k, SLOTS, CHANNELS);
  c.kv.v = example_layout(l->v, SLOTS, CHANNELS);
  c.mask.window = 1;
  const int32_t table[] = {2, 0, 1};
  int32_t length = 0;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {k, l->k_stride_b, l->k_stride_h},
                                      .v_cache = {v, l->v_stride_b, l->v_stride_h},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  for (int channel = 0; channel < CHANNELS; channel++) {
    for (int i = 0; i < HEADS * CHANNELS; i++)
      put(DTYPE_BF16, q, i, i % CHANNELS == channel ? 1.0 : 0.0);
    for (length = 1; length <= PAGES * SLOTS; length++) {
      const int b = table[(length - 1) / SLOTS], s = (length - 1) % SLOTS;
      cr_assert_eq(decode(&c, &args), HD_OK);
      for (int h = 0; h < HEADS; h++) {
        cr_expect(lse[h] == key_at(b, h, s, channel), "%s: key %d %d %d %d", l->name, b, h, s, channel);
        cr_expect(out[h * CHANNELS + channel] == value_at(b, h, s, channel), "%s: value", l->name);
      }
    }
  }
}

Test(reference, every_element_of_every_layout_is_found) {
  for (size_t i = 0; i < sizeof layout_cases / sizeof layout_cases[0]; i++)
    check_layout(&layout_cases[i]);
}

/* Scales. Codes are all 1, so that a key's logit is the sum of the scales of its channels and a value is its
 * scale. */

typedef struct scale_case {
  granularity granularity;
  const char *layout; /* NULL: none needed */
  int group;
  int64_t stride_b, stride_h;
  int64_t b, h, s, d; /* weights of the page, head, slot and group index in the offset, by hand */
} scale_case;

static const scale_case scale_cases[] = {
    {SCALE_TENSOR, NULL, 0, 0, 0, 0, 0, 0, 0},        {SCALE_HEAD, "h", 0, 0, 1, 0, 1, 0, 0},
    {SCALE_HEAD, "h", 0, 0, 3, 0, 3, 0, 0},           {SCALE_TOKEN, "b s", 0, 4, 0, 4, 0, 1, 0},
    {SCALE_TOKEN_HEAD, "b h s", 0, 8, 4, 8, 4, 1, 0}, {SCALE_TOKEN_HEAD, "b h s", 0, 16, 5, 16, 5, 1, 0},
    {SCALE_TOKEN_HEAD, "b s h", 0, 8, 1, 8, 1, 2, 0}, {SCALE_TOKEN_HEAD, "h b s", 0, 4, 12, 4, 12, 1, 0},
    {SCALE_PAGE_HEAD, "b h", 0, 2, 1, 2, 1, 0, 0},    {SCALE_PAGE_HEAD, "h b", 0, 1, 3, 1, 3, 0, 0},
    {SCALE_GROUP, "b h s d", 2, 16, 8, 16, 8, 2, 1},  {SCALE_GROUP, "b h d s", 1, 32, 16, 32, 16, 1, 4},
};

static void check_scale(const scale_case *x, dtype scale_dtype) {
  enum { ELEMENTS = 128 };
  unsigned char codes[96], k_scale[ELEMENTS * 4], v_scale[ELEMENTS * 4], q[HEADS * CHANNELS * 2];
  memset(codes, 0x38, sizeof codes); /* 1.0 in e4m3fn */
  for (int i = 0; i < ELEMENTS; i++) {
    put(scale_dtype, k_scale, i, ldexp(1.0, i % 11 - 5));
    put(scale_dtype, v_scale, i, ldexp(1.0, i % 13 - 6));
  }
  for (int i = 0; i < HEADS * CHANNELS; i++)
    put(DTYPE_BF16, q, i, 1.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.scale.granularity = x->granularity;
  c.scale.dtype = scale_dtype;
  c.scale.group_k = c.scale.group_v = x->group;
  if (x->layout != NULL)
    c.scale.k = c.scale.v = example_layout(x->layout, SLOTS, x->group > 0 ? CHANNELS / x->group : CHANNELS);
  c.mask.window = 1;
  const int32_t table[] = {2, 0, 1};
  int32_t length = 0;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {codes, 32, 16},
                                      .v_cache = {codes, 32, 16},
                                      .k_scale = {k_scale, x->stride_b, x->stride_h},
                                      .v_scale = {v_scale, x->stride_b, x->stride_h},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  for (length = 1; length <= PAGES * SLOTS; length++) {
    const int64_t b = table[(length - 1) / SLOTS], s = (length - 1) % SLOTS;
    cr_assert_eq(decode(&c, &args), HD_OK);
    for (int64_t h = 0; h < HEADS; h++) {
      double logit = 0.0;
      for (int64_t d = 0; d < CHANNELS; d++) {
        const int64_t i = b * x->b + h * x->h + s * x->s + (x->group > 0 ? d / x->group * x->d : 0);
        logit += ldexp(1.0, (int)(i % 11) - 5);
        cr_expect(out[h * CHANNELS + d] == ldexp(1.0, (int)(i % 13) - 6), "%s", x->layout);
      }
      cr_expect(lse[h] == logit, "%s", x->layout);
    }
  }
}

/* A number that is given with the call is read like the one in memory that it stands for. */
Test(reference, a_scale_that_is_an_argument_is_that_number) {
  enum { TOKENS = 2 };
  unsigned char codes[PAGES * HEADS * SLOTS * CHANNELS], q[HEADS * CHANNELS * 2];
  memset(codes, 0x38, sizeof codes); /* 1.0 in e4m3fn */
  for (int i = 0; i < HEADS * CHANNELS; i++)
    put(DTYPE_BF16, q, i, 1.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  const int32_t table[] = {2, 0, 1}, length = TOKENS;
  const float k_scale = 0.25f, v_scale = 3.0f;
  double out[HEADS * CHANNELS], lse[HEADS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 3,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {codes, HEADS * SLOTS * CHANNELS, SLOTS * CHANNELS},
                                      .v_cache = {codes, HEADS * SLOTS * CHANNELS, SLOTS * CHANNELS},
                                      .k_scale = {&k_scale, 0, 0},
                                      .v_scale = {&v_scale, 0, 0},
                                      .page_table = table,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  for (int h = 0; h < HEADS; h++) {
    cr_expect(out[h * CHANNELS] == 3.0, "%g", out[h * CHANNELS]);
    cr_expect_float_eq(lse[h], 0.25 * CHANNELS + log(TOKENS), 1e-12);
  }
}

Test(reference, every_granularity_finds_its_scale) {
  for (size_t i = 0; i < sizeof scale_cases / sizeof scale_cases[0]; i++)
    check_scale(&scale_cases[i], DTYPE_FP32);
}

Test(reference, scales_may_be_fp16_or_e8m0) {
  check_scale(&scale_cases[4], DTYPE_FP16);
  check_scale(&scale_cases[10], DTYPE_E8M0);
}

Test(reference, the_same_byte_is_another_number_in_another_dialect) {
  static const struct {
    dtype d;
    double value;
  } cases[] = {
      {DTYPE_FP8_E4M3FN, -1.25}, {DTYPE_FP8_E4M3FNUZ, -0.625}, {DTYPE_FP8_E5M2, -0.75}, {DTYPE_INT8, -70.0}};
  for (int i = 0; i < 4; i++) {
    tiny t;
    tiny_init(&t);
    memset(t.v, 0xba, sizeof t.v);
    t.c.kv.v_dtype = cases[i].d; /* K stays bf16 */
    cr_assert_eq(decode(&t.c, &t.args), HD_OK);
    EXPECT_NEAR(t.out[0], cases[i].value);
  }
}

Test(reference, scales_of_invisible_slots_have_no_influence) {
  tiny t;
  tiny_two_tokens(&t);
  float scale[16];
  for (int i = 0; i < 16; i++)
    scale[i] = i == 0 ? 2.0f : i % 2 == 0 ? NAN : INFINITY;
  t.c.scale.granularity = SCALE_TOKEN_HEAD;
  t.c.scale.k = t.c.scale.v = example_layout("b h s", 2, 2);
  t.args.k_scale = t.args.v_scale = (reference_cache){scale, 2, 2};
  t.lengths[0] = 1;
  cr_assert_eq(decode(&t.c, &t.args), HD_OK);
  EXPECT_NEAR(t.lse[0], 4.0);
  EXPECT_NEAR(t.out[1], 20.0);
}

/* Query heads, kv heads, sequences: which goes with which. */
Test(reference, query_heads_share_their_kv_head_and_sequences_keep_apart) {
  enum { SEQS = 2, G = 3 };
  unsigned char q[SEQS * HEADS * G * CHANNELS * 2], cache[PAGES * 32 * 2];
  for (int i = 0; i < PAGES * 32; i++)
    put(DTYPE_BF16, cache, i, i);
  for (int i = 0; i < SEQS * HEADS * G * CHANNELS; i++)
    put(DTYPE_BF16, q, i, i % CHANNELS == 0 ? i / CHANNELS + 1 : 0.0);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.query.heads_per_kv = G;
  const int32_t table[] = {1, 2}, lengths[] = {1, 1};
  double out[SEQS * HEADS * G * CHANNELS], lse[SEQS * HEADS * G];
  const reference_decode_args args = {.seqs = SEQS,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 1,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {cache, 32, 16},
                                      .v_cache = {cache, 32, 16},
                                      .page_table = table,
                                      .lengths = lengths,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  for (int i = 0; i < SEQS * HEADS * G; i++) {
    const int seq = i / 6, head = i % 6 / 3;
    const double first = 32.0 * (seq + 1) + 16.0 * head;
    EXPECT_NEAR(lse[i], (i + 1) * first);
    EXPECT_NEAR(out[i * CHANNELS + 3], first + 3.0);
  }
}

Test(reference, a_kv_head_may_have_a_table_of_its_own) {
  unsigned char q[HEADS * CHANNELS * 2], cache[PAGES * 32 * 2];
  memset(q, 0, sizeof q);
  for (int i = 0; i < PAGES * 32; i++)
    put(DTYPE_BF16, cache, i, i);
  contract c = example_contract(SLOTS, CHANNELS, CHANNELS);
  c.select.per = PER_KV_HEAD;
  const int32_t table[] = {2, 0, 0, 1}, length = 5; /* [1 sequence, 2 heads, 2 pages] */
  double out[HEADS * CHANNELS];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = HEADS,
                                      .table_pages = 2,
                                      .pages = PAGES,
                                      .q = q,
                                      .k_cache = {cache, 32, 16},
                                      .v_cache = {cache, 32, 16},
                                      .page_table = table,
                                      .lengths = &length,
                                      .out = out};
  cr_assert_eq(decode(&c, &args), HD_OK);
  EXPECT_NEAR(out[0], (64.0 + 68.0 + 72.0 + 76.0 + 0.0) / 5.0);
  EXPECT_NEAR(out[CHANNELS], (16.0 + 20.0 + 24.0 + 28.0 + 48.0) / 5.0);
}

Test(reference, key_and_value_heads_may_differ_in_size) {
  unsigned char q[3 * 2], k[4 * 3 * 2], v[4 * 2 * 2];
  for (int i = 0; i < 3; i++)
    put(DTYPE_BF16, q, i, i == 2 ? 1.0 : 0.0);
  for (int i = 0; i < 12; i++)
    put(DTYPE_BF16, k, i, i < 3 ? 5.0 : 0.0);
  for (int i = 0; i < 8; i++)
    put(DTYPE_BF16, v, i, i + 1);
  const contract c = example_contract(4, 3, 2);
  const int32_t page = 0, length = 1;
  double out[2], lse;
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = 1,
                                      .table_pages = 1,
                                      .pages = 1,
                                      .q = q,
                                      .k_cache = {k, 12, 12},
                                      .v_cache = {v, 8, 8},
                                      .page_table = &page,
                                      .lengths = &length,
                                      .logits_scale = 1.0,
                                      .out = out,
                                      .lse = &lse};
  cr_assert_eq(decode(&c, &args), HD_OK);
  EXPECT_NEAR(lse, 5.0);
  cr_expect(out[0] == 1.0 && out[1] == 2.0);
}

/* Identities, on a random fp8 cache with a scale per token and head. */
