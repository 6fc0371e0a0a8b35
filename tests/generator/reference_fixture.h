/* A decode small enough to be worked by hand. */
#ifndef HEDDLE_TESTS_REFERENCE_FIXTURE_H
#define HEDDLE_TESTS_REFERENCE_FIXTURE_H

#include "../../generator/reference.h"
#include "../example_contract.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define EXPECT_NEAR(found, expected)                                                                         \
  cr_expect(fabs((found) - (expected)) <= 1e-12 * fmax(1.0, fabs(expected)), "%.17g, expected %.17g",        \
            (found), (expected))

static inline hd_status decode(const contract *c, const reference_decode_args *args) {
  diags problems;
  diags_init(&problems);
  const hd_status status = reference_decode(c, args, &problems);
  cr_expect_eq(diags_errors(&problems), status == HD_OK ? 0 : 1);
  diags_finish(&problems);
  return status;
}

static inline void expect_invalid(const contract *c, const reference_decode_args *args, const char *code) {
  diags problems;
  diags_init(&problems);
  cr_expect_eq(reference_decode(c, args, &problems), HD_INVALID);
  cr_assert_eq(problems.count, 1);
  cr_expect_str_eq(problems.items[0].code, code);
  diags_finish(&problems);
}

/* One sequence, one kv head, dim 2, pages of 2 tokens laid out [page, slot, channel]; small enough to work by
 * hand. */
typedef struct tiny {
  contract c;
  reference_decode_args args;
  unsigned char q[8 * 4 * 2 * 2], k[8 * 2 * 2 * 2], v[8 * 2 * 2 * 2]; /* bf16: 8 rows of 4 heads; 8 pages */
  int32_t table[8], lengths[8];
  float sinks[4];
  double out[8 * 4 * 2], lse[8 * 4];
} tiny;

static inline void tiny_init(tiny *t) {
  memset(t, 0, sizeof *t);
  t->c = example_contract(2, 2, 2);
  for (int i = 0; i < 8; i++)
    t->table[i] = i;
  const reference_cache k = {t->k, 4, 4}, v = {t->v, 4, 4}, none = {0};
  t->args = (reference_decode_args){.seqs = 1,
                                    .rows = 1,
                                    .kv_heads = 1,
                                    .table_pages = 8,
                                    .pages = 8,
                                    .q = t->q,
                                    .k_cache = k,
                                    .v_cache = v,
                                    .k_scale = none,
                                    .v_scale = none,
                                    .page_table = t->table,
                                    .lengths = t->lengths,
                                    .sinks = t->sinks,
                                    .logits_scale = 1.0,
                                    .out = t->out,
                                    .lse = t->lse};
  t->lengths[0] = 2;
  for (int i = 0; i < 64; i++)
    t->out[i] = -77.0;
  for (int i = 0; i < 32; i++)
    t->lse[i] = -77.0;
}

static inline void tiny_query(tiny *t, int row_head, double x, double y) {
  put(DTYPE_BF16, t->q, 2 * row_head, x);
  put(DTYPE_BF16, t->q, 2 * row_head + 1, y);
}

/* Token `position` by its physical place: page position / 2, slot position % 2. */
static inline void tiny_token(tiny *t, int position, double kx, double ky, double vx, double vy) {
  put(DTYPE_BF16, t->k, 2 * position, kx);
  put(DTYPE_BF16, t->k, 2 * position + 1, ky);
  put(DTYPE_BF16, t->v, 2 * position, vx);
  put(DTYPE_BF16, t->v, 2 * position + 1, vy);
}

/* Logits 2 and 1; values (1, 10) and (3, 50). */
static inline void tiny_two_tokens(tiny *t) {
  tiny_init(t);
  tiny_query(t, 0, 2.0, 1.0);
  tiny_token(t, 0, 1.0, 0.0, 1.0, 10.0);
  tiny_token(t, 1, 0.0, 1.0, 3.0, 50.0);
}

/* Token i has logit 0 and value (i, i^2), so that an output is a plain average over what is visible. */
static inline void tiny_counting(tiny *t, int length) {
  tiny_init(t);
  for (int i = 0; i < length; i++)
    tiny_token(t, i, 1.0, -1.0, i, i * i);
  t->lengths[0] = length;
}

#endif
