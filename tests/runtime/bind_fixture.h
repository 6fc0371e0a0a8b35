/* Tensors of a shuffled fp8 cache. */
#ifndef HEDDLE_TESTS_BIND_FIXTURE_H
#define HEDDLE_TESTS_BIND_FIXTURE_H

#include "../../runtime/launch/launch.h"
#include "../../runtime/launch/strides.h"
#include "../example_contract.h"
#include <criterion/criterion.h>

/* Shuffled fp8 caches with a scale per token and head: page 16, head_dim 32, four query heads a kv head. */
static inline contract shuffled_contract(void) {
  contract c = example_contract(16, 32, 32);
  c.query.heads_per_kv = 4;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout("b h d/16 s d%16", 16, 32);
  c.kv.v = example_layout("b h s/16 d s%16", 16, 32);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", 16, 32);
  return c;
}

static inline void set(tensors *t, tensor_name name, dtype type, int rank, int64_t a, int64_t b, int64_t c,
                       int64_t d, int64_t e) {
  const int64_t shape[5] = {a, b, c, d, e};
  t->present[name] = true;
  t->by_name[name] = (tensor){.dtype = type, .rank = rank, .data = 64};
  memcpy(t->by_name[name].shape, shape, (size_t)rank * sizeof shape[0]);
}

/* 3 sequences, 2 kv heads, 10 pages, table rows of 5 pages. */
static inline tensors decode_tensors(void) {
  tensors t = {0};
  set(&t, TENSOR_Q, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  set(&t, TENSOR_K_CACHE, DTYPE_FP8_E4M3FN, 5, 10, 2, 2, 16, 16);
  set(&t, TENSOR_V_CACHE, DTYPE_FP8_E4M3FN, 5, 10, 2, 1, 32, 16);
  set(&t, TENSOR_K_SCALE, DTYPE_FP32, 3, 10, 2, 16, 0, 0);
  set(&t, TENSOR_V_SCALE, DTYPE_FP32, 3, 10, 2, 16, 0, 0);
  set(&t, TENSOR_PAGE_TABLE, DTYPE_INT32, 2, 3, 5, 0, 0, 0);
  set(&t, TENSOR_LENGTHS, DTYPE_INT32, 1, 3, 0, 0, 0, 0);
  set(&t, TENSOR_OUT, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  return t;
}

static inline tensors write_tensors(void) {
  tensors t = decode_tensors();
  t.present[TENSOR_Q] = t.present[TENSOR_PAGE_TABLE] = t.present[TENSOR_LENGTHS] = t.present[TENSOR_OUT] =
      false;
  set(&t, TENSOR_K, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_V, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_SLOT_MAPPING, DTYPE_INT64, 1, 7, 0, 0, 0, 0);
  return t;
}

static inline hd_status bind(operation o, const tensors *t, int64_t dims[DIM_COUNT]) {
  contract c = shuffled_contract();
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(&c, o, t, dims, &d);
  cr_assert_eq(diags_errors(&d) == 0, status == HD_OK);
  diags_finish(&d);
  return status;
}

/* Binding declines with exactly this first message. */
static inline void expect_decline(operation o, const tensors *t, const char *code, const char *message) {
  contract c = shuffled_contract();
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, o, t, dims, &d), HD_DECLINED, "expected: %s", message);
  cr_assert_geq(d.count, 1);
  cr_assert_str_eq(d.items[0].code, code);
  cr_assert_str_eq(d.items[0].message, message);
  diags_finish(&d);
}

#endif
