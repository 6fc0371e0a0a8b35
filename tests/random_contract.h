/* Contracts over the whole schema, from a seed: what the generator serves and what it declines. */
#ifndef HEDDLE_TESTS_RANDOM_CONTRACT_H
#define HEDDLE_TESTS_RANDOM_CONTRACT_H

#include "../generator/contract.h"
#include "layout_fixture.h"

/* Mostly one of what is served, at times one of the rest, so that a fair share of contracts is served whole.
 */
static inline int pick(uint64_t *state, const int *served, int served_count, const int *rest,
                       int rest_count) {
  if (rest_count == 0 || random_below(state, 12) != 0) return served[random_below(state, served_count)];
  return rest[random_below(state, rest_count)];
}

#define PICK(state, served, rest)                                                                            \
  pick(state, served, sizeof(served) / sizeof *(served), rest, sizeof(rest) / sizeof *(rest))

static inline layout random_cache_layout(uint64_t *state, int page, int head_dim) {
  static const char *const lists[] = {
      "[b,h,d/16,s,d%16]", "[b,h,s/16,d,s%16]",
      "[b,h,d/8,s,d%8]",   "[b,h,s/8,d,s%8]",
      "[b,s,h,d]",         "[b,h,s,d]",
      "[b,h,d,s]",         "[h,b,s,d]",
      "[b,d,s,h]",         "[b,s/4,h,d,s%4]",
      "[b,h,d/64,s,d%64]", "[b,h,d%2,s,d/2]",
      "[b,s,d/32,h,d%32]", "[b,h,d/64,s/2,d%64/16,s%2,d%16]",
  };
  for (;;) {
    layout l;
    layout_error error;
    if (parse_list(lists[random_below(state, sizeof lists / sizeof *lists)], AXES_CACHE, page, head_dim, &l,
                   &error))
      return l;
  }
}

static inline layout random_scale_layout(uint64_t *state, granularity g, int page, int groups) {
  static const char *const lists[] = {"[h]",   "[b,s]", "[b,h,s]",   "[b,s,h]",      "[h,b,s]",
                                      "[b,h]", "[h,b]", "[b,h,s,d]", "[b,h,s/2,s%2]"};
  for (;;) {
    layout l;
    layout_error error;
    if (parse_list(lists[random_below(state, sizeof lists / sizeof *lists)], contract_scale_axes(g), page,
                   groups, &l, &error))
      return l;
  }
}

/* Pages of records: padding, scales inside, V in K, a tail. What is random so far stays where it can. */
static inline void random_records(uint64_t *state, contract *c) {
  static const char *const lists[] = {"[b,s,h,d+%d]", "[b,h,s,d+%d]", "[h,b,s,d+%d]", "[b,s,d/8,h,d%%8+%d]"};
  const bool bytes = dtype_bytes(c->kv.k_dtype) == 1 && dtype_bytes(c->kv.v_dtype) == 1;
  const int order = random_below(state, 4), pad = 4 << random_below(state, 3);
  char list[48];
  layout_error error;
  snprintf(list, sizeof list, lists[order], pad);
  if (!parse_list(list, AXES_CACHE, c->kv.page, c->head_dim.qk, &c->kv.k, &error) ||
      !parse_list(list, AXES_CACHE, c->kv.page, c->head_dim.v, &c->kv.v, &error))
    cr_assert(false, "%s: %s", list, error.message);
  if (bytes && c->scale.granularity == SCALE_TOKEN_HEAD && order < 3) {
    c->scale.inside = true;
    c->scale.k_at = c->head_dim.qk;
    c->scale.v_at = c->head_dim.v;
    if (!parse_list(order == 0   ? "[b,s,h]"
                    : order == 1 ? "[b,h,s]"
                                 : "[h,b,s]",
                    contract_scale_axes(SCALE_TOKEN_HEAD), c->kv.page, 1, &c->scale.k, &error))
      cr_assert(false, "%s", error.message);
    if (order > 0) { /* inside h the step of a slot is the record's */
      c->scale.k.factors[c->scale.k.count++] =
          (layout_factor){AXIS_D, 1, 1, (c->head_dim.qk + pad) / dtype_bytes(c->scale.dtype) - 1};
    }
    c->scale.v = c->scale.k;
    if (order > 0)
      c->scale.v.factors[c->scale.v.count - 1].pad = (c->head_dim.v + pad) / dtype_bytes(c->scale.dtype) - 1;
    return;
  }
  if (random_below(state, 3) || c->head_dim.v > c->head_dim.qk) return;
  c->kv.v_in_k = true;
  c->kv.v_dtype = c->kv.k_dtype;
  c->kv.v = c->kv.k;
  c->scale.v = c->scale.k;
  c->scale.group_v = c->scale.group_k;
}

static inline contract random_contract(uint64_t *state) {
  static const int query_dtypes[] = {DTYPE_BF16, DTYPE_FP16}, no_dtypes[] = {DTYPE_FP32};
  static const int dims[] = {64, 128, 192, 256}, odd_dims[] = {16, 48, 72, 80, 96, 112, 320, 576};
  static const int cache_dtypes[] = {DTYPE_BF16, DTYPE_FP16, DTYPE_FP8_E4M3, DTYPE_FP8_E4M3,
                                     DTYPE_FP8_E4M3FN},
                   odd_dtypes[] = {DTYPE_FP8_E4M3FNUZ, DTYPE_FP8_E5M2, DTYPE_INT8};
  static const int pages[] = {1, 2, 8, 16, 16, 24, 32, 64, 128, 256, 528, 544, 784, 1056, 2048},
                   no_pages[] = {3, 7};
  static const int granularities[] = {SCALE_TENSOR, SCALE_TOKEN_HEAD},
                   odd_granularities[] = {SCALE_NONE, SCALE_HEAD, SCALE_TOKEN, SCALE_PAGE_HEAD, SCALE_GROUP};
  static const int scale_dtypes[] = {DTYPE_FP32, DTYPE_FP16}, odd_scale_dtypes[] = {DTYPE_E8M0};
  static const int forms[] = {SELECT_TABLE}, odd_forms[] = {SELECT_INDPTR, SELECT_BLOCKS, SELECT_TOKENS};
  static const int pers[] = {PER_SEQUENCE}, odd_pers[] = {PER_KV_HEAD, PER_ROW};
  static const int indices[] = {DTYPE_INT32}, odd_indices[] = {DTYPE_INT64};
  static const int outputs[] = {DTYPE_BF16, DTYPE_FP16, DTYPE_FP32}, odd_outputs[] = {DTYPE_FP8_E4M3FN};
  static const int one[] = {1}, several[] = {2, 3, 4, 8}, none[] = {0}, windows[] = {1, 128, 4096};
  static const int kernel_sets[] = {KERNEL_WRITE | KERNEL_DECODE},
                   one_kernel[] = {KERNEL_WRITE, KERNEL_DECODE};
  static const int logits[] = {LOGITS_ARGUMENT, LOGITS_RSQRT_D, LOGITS_NUMBER};

  contract c;
  memset(&c, 0, sizeof c);
  c.kernels = (unsigned)PICK(state, kernel_sets, one_kernel);
  c.query.dtype = (dtype)PICK(state, query_dtypes, no_dtypes);
  c.query.heads_per_kv = random_below(state, 12) ? 1 + random_below(state, 16) : 17 + random_below(state, 48);
  c.query.rows = PICK(state, one, several);
  c.head_dim.qk = c.head_dim.v = PICK(state, dims, odd_dims);
  if (random_below(state, 4) == 0) c.head_dim.v = PICK(state, dims, odd_dims);
  c.kv.k_dtype = c.kv.v_dtype = (dtype)PICK(state, cache_dtypes, odd_dtypes);
  if (random_below(state, 24) == 0) c.kv.v_dtype = (dtype)PICK(state, cache_dtypes, odd_dtypes);
  c.kv.page = PICK(state, pages, no_pages);
  c.kv.k = random_cache_layout(state, c.kv.page, c.head_dim.qk);
  c.kv.v = random_cache_layout(state, c.kv.page, c.head_dim.v);
  c.kv.packed = random_below(state, 4) == 0;
  c.scale.dtype = DTYPE_FP32;
  if (dtype_bytes(c.kv.k_dtype) == 1) {
    c.scale.granularity = (granularity)PICK(state, granularities, odd_granularities);
    if (c.scale.granularity != SCALE_NONE) c.scale.dtype = (dtype)PICK(state, scale_dtypes, odd_scale_dtypes);
    c.scale.argument = c.scale.granularity == SCALE_TENSOR && random_below(state, 4) == 0;
    if (c.scale.argument) c.scale.dtype = DTYPE_FP32;
    c.scale.group_k = c.scale.group_v = c.scale.granularity == SCALE_GROUP ? 8 : 0;
    if (contract_scale_axes(c.scale.granularity)) {
      c.scale.k = random_scale_layout(state, c.scale.granularity, c.kv.page, c.head_dim.qk / 8);
      c.scale.v = random_scale_layout(state, c.scale.granularity, c.kv.page, c.head_dim.v / 8);
    }
    if (contract_writer_scales(c.scale.granularity)) {
      c.scale.writer.amax_floor = random_below(state, 2) ? (double)1e-8f : 0;
      c.scale.writer.zero_row = random_below(state, 2) ? ZERO_ROW_VALUE : ZERO_ROW_FLOOR;
      c.scale.writer.zero_value = c.scale.writer.zero_row == ZERO_ROW_VALUE ? 1 : 0;
      c.scale.writer.qmax = random_below(state, 2) ? 127 : 0;
    }
  }
  if (random_below(state, 8) == 0) random_records(state, &c);
  c.select.form = (select_form)PICK(state, forms, odd_forms);
  c.select.per = (select_per)PICK(state, pers, odd_pers);
  if (c.select.form == SELECT_BLOCKS) {
    c.select.block = c.kv.page * (1 + random_below(state, 8)) + (random_below(state, 8) == 0 ? 1 : 0);
    if (c.select.per == PER_KV_HEAD) c.select.per = PER_ROW;
  }
  if (c.select.form == SELECT_TOKENS && c.select.per == PER_SEQUENCE) c.select.per = PER_ROW;
  c.select.index = (dtype)PICK(state, indices, odd_indices);
  c.mask.causal = random_below(state, 2);
  c.mask.window = PICK(state, none, windows);
  c.mask.sinks = random_below(state, 16) == 0;
  c.logits.scale = (logits_scale)PICK(state, logits, logits);
  if (c.logits.scale == LOGITS_NUMBER) c.logits.number = (double)0.0883883461356163f;
  c.logits.softcap = random_below(state, 16) == 0 ? 30 : 0;
  c.output.dtype = (dtype)PICK(state, outputs, odd_outputs);
  c.output.lse = random_below(state, 2);
  return c;
}

#endif
