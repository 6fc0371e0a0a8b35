/* Pages of records: the oracle on bytes put down by hand, and what shapes a cache is bound in. */
#include "../../generator/reference.h"
#include "../../runtime/launch/launch.h"
#include "../spec_fixture.h"
#include <math.h>

static contract contract_of(const char *yaml) {
  spec s = parse_good(yaml);
  contract c = contract_resolve(&s.contract, DTYPE_FP8_E4M3FN);
  spec_finish(&s);
  return c;
}

/* 40 bytes a token: 16 codes, two fp32 scales, 8 channels in bf16. V is the first 20 channels: it reaches
 * into the tail. */
static const char small_latent[] = "heddle: 1\n"
                                   "query: {heads_per_kv: 1}\n"
                                   "head_dim: {qk: 24, v: 20}\n"
                                   "kv:\n"
                                   "  dtype: int8\n"
                                   "  page: 2\n"
                                   "  k: [b, s, d+24]\n"
                                   "  v: k\n"
                                   "  tail: {channels: 8, dtype: bf16, at: 24, layout: [b, s, d+12]}\n"
                                   "scale:\n"
                                   "  granularity: {group: 8}\n"
                                   "  k: {inside: k, at: 16, layout: [b, s, d+8]}\n"
                                   "logits: {scale: 1.0}\n"
                                   "output: {lse: true}\n";

/* A token's record: codes code, code + 1, …; scales; a tail of tail, tail + 1, … */
static void put_record(unsigned char *to, int code, float first, float second, double tail) {
  for (int i = 0; i < 16; i++)
    to[i] = (unsigned char)(code + i);
  memcpy(to + 16, &first, 4);
  memcpy(to + 20, &second, 4);
  for (int i = 0; i < 8; i++)
    dtype_encode(DTYPE_BF16, tail + i, to + 24 + 2 * i);
}

Test(records, the_oracle_reads_codes_scales_and_tail_where_they_lie) {
  contract c = contract_of(small_latent);
  unsigned char cache[3 * 96], q[24 * 2]; /* pages of 80 bytes, 16 apart */
  memset(cache, 0xff, sizeof cache);
  put_record(cache + 96 + 40, 3, 0.5f, 2.0f, 100.0); /* page 1, slot 1 */
  put_record(cache + 96, -4, 0.25f, 1.0f, -7.0);     /* page 1, slot 0 */
  for (int channel = 0; channel < 24; channel++)
    dtype_encode(DTYPE_BF16, 0.0, q + 2 * channel);
  dtype_encode(DTYPE_BF16, 1.0, q + 2 * 9);  /* a code of the second group */
  dtype_encode(DTYPE_BF16, 0.5, q + 2 * 23); /* the last of the tail */
  const int32_t table[] = {1, -1}, lengths[] = {1};
  double out[20], lse;
  reference_decode_args args = {.seqs = 1,
                                .rows = 1,
                                .kv_heads = 1,
                                .table_pages = 2,
                                .pages = 3,
                                .q = q,
                                .k_cache = {cache, 96, 0},
                                .page_table = table,
                                .lengths = lengths,
                                .out = out,
                                .lse = &lse};
  diags problems;
  diags_init(&problems);
  cr_assert_eq(reference_decode(&c, &args, &problems), HD_OK);
  for (int channel = 0; channel < 20; channel++) {
    double expected = channel < 16 ? (-4 + channel) * (channel < 8 ? 0.25 : 1.0) : -7.0 + (channel - 16);
    cr_expect_eq(out[channel], expected, "channel %d: %g, not %g", channel, out[channel], expected);
  }
  cr_expect_float_eq(lse, (-4 + 9) * 1.0 + 0.5 * (-7.0 + 7), 1e-12, "the logit of the one token: %g", lse);
  const int32_t both[] = {2};
  args.lengths = both;
  cr_assert_eq(reference_decode(&c, &args, &problems), HD_OK);
  double first = 5.0, second = (3 + 9) * 2.0 + 0.5 * 107.0, weight = 1.0 / (1.0 + exp(first - second));
  cr_expect_float_eq(out[17], (1.0 - weight) * -6.0 + weight * 101.0, 1e-9);
  diags_finish(&problems);
}

Test(records, the_oracle_writes_records_and_nothing_between_them) {
  contract c = contract_of(small_latent);
  unsigned char cache[2 * 96], k[24 * 2], expected[2 * 96];
  memset(cache, 0xee, sizeof cache);
  memset(expected, 0xee, sizeof expected);
  for (int channel = 0; channel < 24; channel++)
    dtype_encode(DTYPE_BF16,
                 channel < 8    ? 254.0 * (channel == 3)
                 : channel < 16 ? -127.0
                                : 1000.0 + 8 * channel,
                 k + 2 * channel);
  for (int channel = 0; channel < 16; channel++)
    expected[96 + 40 + channel] = channel < 8 ? channel == 3 ? 127 : 0 : (unsigned char)-127;
  const float scales[] = {2.0f, 1.0f};
  memcpy(expected + 96 + 40 + 16, scales, sizeof scales);
  for (int channel = 16; channel < 24; channel++)
    dtype_encode(DTYPE_BF16, 1000.0 + 8 * channel, expected + 96 + 40 + 24 + 2 * (channel - 16));
  const int64_t slots[] = {3};
  const reference_write_args args = {.tokens = 1,
                                     .kv_heads = 1,
                                     .pages = 2,
                                     .k = k,
                                     .slot_mapping = slots,
                                     .k_cache = cache,
                                     .k_stride_b = 96};
  diags problems;
  diags_init(&problems);
  cr_assert_eq(reference_write(&c, &args, &problems), HD_OK);
  cr_expect_arr_eq(cache, expected, sizeof cache);
  diags_finish(&problems);
}

Test(records, the_oracle_steps_inline_scales_by_each_caches_own_strides) {
  contract c = contract_of("heddle: 1\nquery: {heads_per_kv: 1}\nhead_dim: 8\nkv:\n  dtype: int8\n  page: 1\n"
                           "  k: [b, s, h, d+4]\n  v: [b, s, h, d+4]\nscale:\n  granularity: token_head\n"
                           "  k: {inside: k, at: 8, layout: [b, s, h]}\n"
                           "  v: {inside: v, at: 8, layout: [b, s, h]}\n");
  unsigned char k_cache[128], v_cache[128], q[2 * 8 * 2];
  memset(k_cache, 1, sizeof k_cache);
  memset(v_cache, 0x7f, sizeof v_cache);
  memset(q, 0, sizeof q);
  const float one = 1.0f, scales[] = {0.5f, 3.0f};
  for (int head = 0; head < 2; head++) {
    memcpy(k_cache + 12 * head + 8, &one, 4);
    memset(v_cache + 40 + 20 * head, 4 + head, 8); /* page 1; heads 20 bytes apart */
    memcpy(v_cache + 40 + 20 * head + 8, &scales[head], 4);
  }
  const int32_t table[] = {1}, lengths[] = {1};
  double out[16];
  const reference_decode_args args = {.seqs = 1,
                                      .rows = 1,
                                      .kv_heads = 2,
                                      .table_pages = 1,
                                      .pages = 2,
                                      .q = q,
                                      .k_cache = {k_cache, 0, 12},
                                      .v_cache = {v_cache, 40, 20},
                                      .page_table = table,
                                      .lengths = lengths,
                                      .logits_scale = 1.0,
                                      .out = out};
  diags problems;
  diags_init(&problems);
  cr_assert_eq(reference_decode(&c, &args, &problems), HD_OK);
  for (int i = 0; i < 16; i++)
    cr_expect_eq(out[i], i < 8 ? 4 * 0.5 : 5 * 3.0);
  diags_finish(&problems);
}

/* ---- shapes ---- */

static tensor dense(dtype d, int rank, const int64_t *shape) {
  tensor t = {.dtype = d, .rank = rank, .data = 4096};
  memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
  return t;
}

#define DENSE(type, ...)                                                                                     \
  dense(type, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* Decode tensors of 2 sequences and `heads` kv heads, without the caches. */
static tensors selection(const contract *c, int64_t heads) {
  tensors t = {0};
  t.by_name[TENSOR_Q] = DENSE(c->query.dtype, 2, heads * c->query.heads_per_kv, c->head_dim.qk);
  t.by_name[TENSOR_PAGE_TABLE] = DENSE(DTYPE_INT32, 2, 5);
  t.by_name[TENSOR_LENGTHS] = DENSE(DTYPE_INT32, 2);
  t.present[TENSOR_Q] = t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] = true;
  return t;
}

static hd_status bind_caches(const contract *c, int64_t heads, tensor k, const tensor *v,
                             int64_t dims[DIM_COUNT], char *code) {
  tensors t = selection(c, heads);
  diags problems;
  diags_init(&problems);
  t.by_name[TENSOR_K_CACHE] = k;
  t.present[TENSOR_K_CACHE] = true;
  if (v) t.by_name[TENSOR_V_CACHE] = *v;
  t.present[TENSOR_V_CACHE] = v != NULL;
  hd_status status = bind_dims(c, OPERATION_DECODE, &t, dims, &problems);
  snprintf(code, 64, "%s", problems.count ? problems.items[0].code : "");
  diags_finish(&problems);
  return status;
}

Test(records, an_inline_cache_is_bound_as_bytes_or_as_a_view_of_its_codes) {
  char *yaml = read_shipped("vllm-inline-fp8"), code[64];
  contract c = contract_of(yaml);
  int64_t dims[DIM_COUNT];
  tensor k = DENSE(DTYPE_FP8_E4M3FN, 10, 16, 2, 132), v = k;
  cr_assert_eq(bind_caches(&c, 2, k, &v, dims, code), HD_OK, "%s", code);
  cr_expect_eq(dims[DIM_PAGES], 10);
  cr_expect_eq(dims[DIM_K_STRIDE_B], 16 * 2 * 132);
  cr_expect_eq(dims[DIM_K_STRIDE_H], 132);
  cr_expect_eq(dims[DIM_K_SCALE_STRIDE_B], 16 * 2 * 33, "scales step as the cache does, in scales");
  cr_expect_eq(dims[DIM_K_SCALE_STRIDE_H], 33);

  /* [pages, 2, slot, head, 132]: K and V are halves of one tensor; V's heads are 160 bytes apart. */
  tensor codes = DENSE(DTYPE_FP8_E4M3FN, 10, 16, 2, 128);
  codes.strided = true;
  memcpy(codes.strides, (const int64_t[]){2 * 16 * 2 * 132, 2 * 132, 132, 1}, 4 * sizeof(int64_t));
  v.strided = true;
  memcpy(v.strides, (const int64_t[]){16 * 2 * 160 + 64, 2 * 160, 160, 1}, 4 * sizeof(int64_t));
  cr_assert_eq(bind_caches(&c, 2, codes, &v, dims, code), HD_OK, "%s", code);
  cr_expect_eq(dims[DIM_K_STRIDE_B], 2 * 16 * 2 * 132);
  cr_expect_eq(dims[DIM_K_SCALE_STRIDE_B], 2 * 16 * 2 * 33);
  cr_expect_eq(dims[DIM_V_STRIDE_H], 160);
  cr_expect_eq(dims[DIM_V_SCALE_STRIDE_H], 40);
  cr_expect_eq(dims[DIM_V_SCALE_STRIDE_B], (16 * 2 * 160 + 64) / 4);

  memcpy(v.strides, (const int64_t[]){16 * 2 * 134, 2 * 134, 134, 1}, 4 * sizeof(int64_t));
  cr_expect_eq(bind_caches(&c, 2, k, &v, dims, code), HD_DECLINED);
  cr_expect_str_eq(code, "bind.stride-alignment");
  tensor bytes = DENSE(DTYPE_UINT8, 10, 16, 2, 132);
  cr_expect_eq(bind_caches(&c, 2, bytes, &bytes, dims, code), HD_OK, "%s", code);
  v = DENSE(DTYPE_FP8_E4M3FN, 10, 2, 16, 132);
  cr_expect_eq(bind_caches(&c, 2, k, &v, dims, code), HD_DECLINED, "slots and heads the other way round");
  v = DENSE(DTYPE_FP8_E4M3FN, 10, 16, 2, 136);
  cr_expect_eq(bind_caches(&c, 2, k, &v, dims, code), HD_DECLINED, "another record");
  free(yaml);
}

/* Bytes say nothing of a dialect: caches of nothing but codes have to. */
Test(records, bytes_are_taken_for_records_and_nothing_else) {
  char *yaml = read_shipped("deepseek-mla-fp8"), code[64];
  contract c = contract_of(yaml);
  int64_t dims[DIM_COUNT];
  tensors t = selection(&c, 1);
  cr_expect_eq(bind_caches(&c, 1, DENSE(DTYPE_UINT8, 10, 64, 576), NULL, dims, code), HD_DECLINED);
  cr_expect_str_eq(code, "bind.dtype");
  free(yaml);
  yaml = read_shipped("deepseek-mla-fp8-656");
  c = contract_of(yaml);
  cr_expect_eq(bind_caches(&c, 1, DENSE(DTYPE_UINT8, 10, 64, 656), NULL, dims, code), HD_OK, "%s", code);
  t.by_name[TENSOR_K_CACHE] = DENSE(DTYPE_UINT8, 10, 64, 656);
  t.by_name[TENSOR_LENGTHS].dtype = DTYPE_UINT8;
  t.present[TENSOR_K_CACHE] = true;
  diags problems;
  diags_init(&problems);
  cr_expect_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &problems), HD_DECLINED, "lengths are no records");
  cr_assert_eq(problems.count, 1);
  cr_expect_str_eq(problems.items[0].field, "lengths");
  diags_finish(&problems);
  free(yaml);
}

Test(records, a_latent_cache_is_bound_by_token_by_page_or_flat) {
  contract c =
      contract_of("heddle: 1\nquery: {heads_per_kv: 64}\nhead_dim: 512\nkv:\n  dtype: fp8_e4m3\n  page: 64\n"
                  "  k: [b, s+512, d+128]\n  v: k\n"
                  "  tail: {channels: 64, dtype: bf16, at: 448, layout: [b, s, d+224]}\n"
                  "scale:\n  granularity: {group: 64}\n  dtype: e8m0\n"
                  "  k: {inside: k, at: 36864, layout: [b, s, d+1]}\n");
  const tensor good[] = {
      DENSE(DTYPE_FP8_E4M3FN, 10, 64 * 584),   DENSE(DTYPE_FP8_E4M3FN, 10, 64, 584),
      DENSE(DTYPE_FP8_E4M3FN, 10, 64, 1, 584), DENSE(DTYPE_FP8_E4M3FN, 10 * 64 * 584),
      DENSE(DTYPE_UINT8, 10, 64, 584), /* as an engine has it: bytes */
      DENSE(DTYPE_UINT8, 10 * 64 * 584),
  };
  const tensor bad[] = {
      DENSE(DTYPE_FP8_E4M3FN, 10, 64, 576),    DENSE(DTYPE_FP8_E4M3FN, 10, 64 * 584 + 1),
      DENSE(DTYPE_FP8_E4M3FN, 10, 64, 2, 584), DENSE(DTYPE_BF16, 10, 64, 584),
      DENSE(DTYPE_FP8_E4M3FN, 10, 584, 64),    DENSE(DTYPE_INT8, 10, 64, 584),
      DENSE(DTYPE_UINT8, 10, 64, 576),
  };
  char code[64];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    int64_t dims[DIM_COUNT];
    cr_assert_eq(bind_caches(&c, 1, good[i], NULL, dims, code), HD_OK, "shape %zu: %s", i, code);
    cr_expect_eq(dims[DIM_PAGES], 10);
    cr_expect_eq(dims[DIM_K_STRIDE_B], 64 * 584);
    cr_expect_eq(dims[DIM_V_STRIDE_B], 64 * 584);
    cr_expect_eq(dims[DIM_K_SCALE_STRIDE_B], 64 * 584);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int64_t dims[DIM_COUNT];
    cr_expect_eq(bind_caches(&c, 1, bad[i], NULL, dims, code), HD_DECLINED, "shape %zu", i);
  }
  int64_t dims[DIM_COUNT];
  tensor apart = good[1]; /* pages padded to whole multiples of 576 bytes */
  apart.strided = true;
  memcpy(apart.strides, (const int64_t[]){65 * 576, 584, 1}, 3 * sizeof(int64_t));
  cr_assert_eq(bind_caches(&c, 1, apart, NULL, dims, code), HD_OK, "%s", code);
  cr_expect_eq(dims[DIM_K_STRIDE_B], 65 * 576);
  cr_expect_eq(dims[DIM_K_SCALE_STRIDE_B], 65 * 576);
  cr_expect_eq(bind_caches(&c, 2, good[1], NULL, dims, code), HD_DECLINED, "two kv heads in q");
}

Test(records, what_has_no_tensor_of_its_own_is_not_asked_for) {
  contract c = contract_of(small_latent);
  cr_expect_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K), ROLE_INPUT);
  cr_expect_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_CACHE), ROLE_UPDATED);
  static const tensor_name none[] = {TENSOR_V, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
  for (int i = 0; i < 4; i++) {
    cr_expect_eq(bind_role(&c, OPERATION_WRITE, none[i]), ROLE_NONE, "%s", tensor_name_text(none[i]));
    cr_expect_eq(bind_role(&c, OPERATION_DECODE, none[i]), ROLE_NONE, "%s", tensor_name_text(none[i]));
  }
}
