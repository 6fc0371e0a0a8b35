/* Requests of a shuffled fp8 cache, and what is said to them. */
#ifndef HEDDLE_TESTS_MATCH_FIXTURE_H
#define HEDDLE_TESTS_MATCH_FIXTURE_H

#include "../../runtime/match/match.h"
#include "../../runtime/launch/strides.h"
#include "../example_contract.h"
#include "../random_contract.h"
#include <criterion/criterion.h>
#include <math.h>

enum { SEQS = 3, HEADS = 2, PAGES = 50, TABLE = 9 };

/* Shuffled fp8, page 16, head_dim 128, eight query heads a kv head, a scale per token and head. */
static inline contract shuffled(void) {
  contract c = example_contract(16, 128, 128);
  c.query.heads_per_kv = 8;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3;
  c.kv.k = example_layout("b h d/16 s d%16", 16, 128);
  c.kv.v = example_layout("b h s/16 d s%16", 16, 128);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", 16, 128);
  return c;
}

/* Tensors that fit the contract on the target. */
static inline match_request request_for(const contract *c, operation o, const char *target_name,
                                        const int64_t dims[DIM_COUNT]) {
  match_request r = {.operation = o};
  contract resolved = contract_resolve(c, target_find(target_name)->fp8);
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    if (bind_role(&resolved, o, name) == ROLE_NONE) continue;
    r.tensors.present[i] = bind_tensor(&resolved, name, dims, &r.tensors.by_name[i]);
    r.tensors.by_name[i].data = 4096;
  }
  r.tensors.k_scale = (scale_number){bind_takes_number(&resolved, true), 0.5f};
  r.tensors.v_scale = (scale_number){bind_takes_number(&resolved, false), 0.5f};
  r.longest = 16;
  r.lse = c->output.lse;
  r.sinks = c->mask.sinks;
  r.causal = c->mask.causal;
  r.window = c->mask.window;
  r.softcap = c->logits.softcap;
  r.logits_scale = c->logits.scale == LOGITS_NUMBER ? c->logits.number : 0;
  return r;
}

static const int64_t usual_dims[DIM_COUNT] = {
    [DIM_SEQS] = SEQS,         [DIM_ROWS] = 1,   [DIM_KV_HEADS] = HEADS,  [DIM_PAGES] = PAGES,
    [DIM_TABLE_PAGES] = TABLE, [DIM_TOKENS] = 5, [DIM_TABLE_ROWS] = SEQS, [DIM_LISTED] = 6};

static inline match_request usual(const contract *c) {
  return request_for(c, OPERATION_DECODE, "gfx950", usual_dims);
}

static inline tensor *strided(match_request *r, tensor_name name) {
  tensor *t = &r->tensors.by_name[name];
  for (int i = 0; i < t->rank; i++)
    t->strides[i] = tensor_stride(t, i);
  t->strided = true;
  return t;
}

static inline hd_status ask(const match_request *r, const contract *c, const char *target_name,
                            match_answer *out) {
  const match_candidate candidate = {.name = "one", .contract = c};
  int chosen = -7;
  hd_status status = match_best(r, &candidate, 1, target_name, out, &chosen);
  cr_assert_eq(chosen, status == HD_OK ? 0 : -7, "untouched unless one serves");
  cr_assert_eq(out->status, status);
  return status;
}

static inline void expect_match(const match_request *r, const contract *c) {
  match_answer a;
  hd_status status = ask(r, c, "gfx950", &a);
  cr_assert_eq(status, HD_OK, "%s", a.declines.count ? a.declines.items[0].message : "");
  match_answers_finish(&a, 1);
}

/* Declines for this one reason and no other. */
static inline void expect_decline(const match_request *r, const contract *c, const char *target_name,
                                  const char *code, const char *field, const char *found,
                                  const char *allowed) {
  match_answer a;
  cr_assert_eq(ask(r, c, target_name, &a), HD_DECLINED, "%s", code);
  const diag *d = &a.declines.items[0];
  cr_assert_str_eq(d->code, code);
  cr_assert_str_eq(d->field, field);
  cr_assert_str_eq(d->found, found);
  cr_assert_str_eq(d->allowed, allowed);
  cr_assert_eq(a.declines.count, 1, "%s and also %s", code, a.declines.items[a.declines.count - 1].message);
  match_answers_finish(&a, 1);
}

static inline void expect(const match_request *r, const contract *c, const char *code, const char *field,
                          const char *found, const char *allowed) {
  expect_decline(r, c, "gfx950", code, field, found, allowed);
}

#endif
