/* A small contract to vary, and arrays of stored elements, for the oracle's tests. */
#ifndef HEDDLE_TESTS_EXAMPLE_CONTRACT_H
#define HEDDLE_TESTS_EXAMPLE_CONTRACT_H

#include "../generator/contract.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* `factors`: as in a spec but separated by blanks, "b h d/2 s d%2". */
static inline layout example_layout(const char *factors, int page, int head_dim) {
  char storage[128];
  const char *items[LAYOUT_MAX_FACTORS];
  int count = 0;
  unsigned axes = 0;
  snprintf(storage, sizeof storage, "%s", factors);
  for (char *item = strtok(storage, " "); item != NULL; item = strtok(NULL, " ")) {
    axes |= 1u << (strchr("bhsd", item[0]) - "bhsd");
    items[count++] = item;
  }
  layout l;
  layout_error error;
  cr_assert(layout_parse(items, count, axes, page, head_dim, &l, &error), "%s: %s", factors, error.message);
  return l;
}

/* bf16 throughout, one query head a kv head, HND, no scales, a page table per sequence, causal, scale by
 * argument. */
static inline contract example_contract(int page, int qk, int v) {
  contract c;
  memset(&c, 0, sizeof c);
  c.kernels = KERNEL_WRITE | KERNEL_DECODE;
  c.query.dtype = DTYPE_BF16;
  c.query.heads_per_kv = 1;
  c.query.rows = 1;
  c.head_dim.qk = qk;
  c.head_dim.v = v;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_BF16;
  c.kv.page = page;
  c.kv.k = example_layout("b h s d", page, qk);
  c.kv.v = example_layout("b h s d", page, v);
  c.scale.granularity = SCALE_NONE;
  c.scale.dtype = DTYPE_FP32;
  c.select.form = SELECT_TABLE;
  c.select.index = DTYPE_INT32;
  c.select.per = PER_SEQUENCE;
  c.mask.causal = true;
  c.logits.scale = LOGITS_ARGUMENT;
  c.output.dtype = DTYPE_BF16;
  return c;
}

static inline void put(dtype d, void *array, int64_t index, double value) {
  dtype_encode(d, value, (unsigned char *)array + index * dtype_bytes(d));
}

static inline double get(dtype d, const void *array, int64_t index) {
  return dtype_decode(d, (const unsigned char *)array + index * dtype_bytes(d));
}

#endif
