/* Cases of verify with right results, for tests that look at the verdict. */
#ifndef HEDDLE_TESTS_VERIFY_FIXTURE_H
#define HEDDLE_TESTS_VERIFY_FIXTURE_H

#include "../../runtime/verify/oracle.h"
#include "../../runtime/verify/verify_compare.h"
#include "../../runtime/verify/verify_data.h"
#include "../example_contract.h"

#include <math.h>

static inline contract fp8_contract(void) {
  contract c = example_contract(16, 64, 64);
  c.query.heads_per_kv = 2;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout("b h d/16 s d%16", 16, 64);
  c.kv.v = example_layout("b h s/16 d s%16", 16, 64);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", 16, 64);
  c.scale.writer.zero_value = 1.0;
  c.output.lse = true;
  return c;
}

static inline contract bf16_contract(void) {
  contract c = example_contract(16, 64, 64);
  c.query.heads_per_kv = 2;
  c.kv.k = example_layout("b s h d", 16, 64);
  c.kv.v = example_layout("b s h d", 16, 64);
  return c;
}

static inline const verify_case *case_named(const char *name) {
  for (int i = 0; i < verify_case_count; i++)
    if (strcmp(verify_cases[i].name, name) == 0) return &verify_cases[i];
  cr_assert_fail("no case %s", name);
  return NULL;
}

static inline verify_outcome fresh_outcome(void) {
  return (verify_outcome){.good = true, .lse_error = (double)NAN, .cosine = (double)NAN};
}

/* A case whose caches are written and whose out and lse are right. */
typedef struct solved {
  contract contract;
  verify_data data;
  int64_t dims[DIM_COUNT];
  double scale;
} solved;

static inline void solve(solved *s, contract c, const verify_case *from, uint64_t seed) {
  random_state r = {seed};
  diags d;
  diags_init(&d);
  s->contract = c;
  s->scale = 0.125;
  cr_assert_eq(verify_data_init(&s->data, &s->contract, from, 64, &r, &d), HD_OK);
  cr_assert_eq(bind_dims(&s->contract, OPERATION_WRITE, &s->data.write, s->dims, &d), HD_OK);
  cr_assert_eq(oracle_write(&s->contract, &s->data.write, s->dims, &d), HD_OK);
  verify_data_set_scales(&s->data, &r);
  cr_assert_eq(bind_dims(&s->contract, OPERATION_DECODE, &s->data.decode, s->dims, &d), HD_OK, "%s",
               d.count ? d.items[0].message : "");
  cr_assert_eq(oracle_decode_rounded(&s->contract, &s->data.decode, s->dims, s->scale, &d), HD_OK, "%s",
               d.count ? d.items[0].message : "");
  diags_finish(&d);
}

static inline verify_outcome judge(const solved *s) {
  random_state r = {1};
  diags d;
  diags_init(&d);
  verify_outcome o = fresh_outcome();
  cr_assert_eq(verify_compare_decode(&s->data, s->dims, s->scale, &r, &o, &d), HD_OK);
  diags_finish(&d);
  return o;
}

#endif
