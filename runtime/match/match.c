#include "match.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

match_candidate match_candidate_of(const spec *s) {
  return (match_candidate){.name = s->name,
                           .contract = &s->contract,
                           .targets = s->targets,
                           .target_count = s->target_count,
                           .splits = &s->split_factors};
}

/* One candidate in question. */
typedef struct question {
  const match_request *request;
  const match_candidate *candidate;
  const target *target; /* NULL: nobody knows it */
  const char *target_name;
  contract contract; /* resolved for the target */
  match_answer *answer;
} question;

static void check_target(question *q) {
  const match_candidate *c = q->candidate;
  bool listed = c->target_count == 0;
  for (int i = 0; i < c->target_count; i++)
    listed |= strcmp(c->targets[i], q->target_name) == 0;
  if (q->target && listed) return;
  text allowed;
  text_init(&allowed);
  for (int i = 0; i < c->target_count; i++)
    text_addf(&allowed, "%s%s", i ? ", " : "", c->targets[i]);
  for (size_t i = 0; c->target_count == 0 && i < target_count(); i++)
    text_addf(&allowed, "%s%s", i ? ", " : "", target_at(i)->name);
  diags_decline(&q->answer->declines, "match.target", "targets", q->target_name, "%s", text_string(&allowed));
  text_finish(&allowed);
}

static void check_incumbent(question *q) {
  const match_candidate *c = q->candidate;
  const char *incumbent = q->request->incumbent;
  if (!incumbent) return;
  for (int i = 0; i < c->better_count; i++)
    if (strcmp(c->better_than[i], incumbent) == 0) return;
  diags_refusef(&q->answer->declines, "match.incumbent", "incumbent", incumbent,
                "a kernel this contract is known to beat",
                "%s serves these tensors, and nothing shows this contract's kernel to be faster", incumbent);
}

static void check_flag(question *q, const char *code, const char *field, bool found, bool allowed) {
  if (found == allowed) return;
  diags_decline(&q->answer->declines, code, field, found ? "true" : "false", "%s",
                allowed ? "true" : "false");
}

static void check_value(question *q, const char *code, const char *field, double found, double allowed) {
  if ((float)found == (float)allowed) return; /* contracts hold fp32 values */
  text numbers[2];
  for (int i = 0; i < 2; i++) {
    text_init(&numbers[i]);
    text_add_double(&numbers[i], i == 0 ? found : allowed);
  }
  diags_decline(&q->answer->declines, code, field, text_string(&numbers[0]), "%s", text_string(&numbers[1]));
  for (int i = 0; i < 2; i++)
    text_finish(&numbers[i]);
}

static void check_logits_scale(question *q) {
  const contract *c = &q->contract;
  double rsqrt = 1 / sqrt(c->head_dim.qk), found = q->request->logits_scale;
  if (c->logits.scale == LOGITS_ARGUMENT) return;
  check_value(q, "match.logits-scale", "logits.scale", found != 0 ? found : rsqrt,
              c->logits.scale == LOGITS_NUMBER ? c->logits.number : rsqrt);
}

/* What attention the contract computes, whatever the tensors are. */
static void check_features(question *q) {
  const match_request *r = q->request;
  const contract *c = &q->contract;
  check_flag(q, "match.lse", "output.lse", r->lse, c->output.lse);
  check_flag(q, "match.sinks", "mask.sinks", r->sinks, c->mask.sinks);
  if (r->window != c->mask.window)
    diags_decline_number(&q->answer->declines, "match.window", "mask.window", r->window, "%d (0: none)",
                         c->mask.window);
  bool blocks = c->select.form == SELECT_BLOCKS;
  if (blocks && r->block != 0 && r->block != c->select.block)
    diags_decline_number(&q->answer->declines, "match.block", "select.block", r->block, "%d",
                         c->select.block);
  check_value(q, "match.softcap", "logits.softcap", r->softcap, c->logits.softcap);
  check_logits_scale(q);
  if (r->prefix && !contract_rows_are_sequences(c))
    diags_decline(&q->answer->declines, "match.prefix", "query.rows", "rows behind a cached prefix",
                  "the same number of rows, at most %d, for each sequence", c->query.rows);
  if (r->splits == 0) return;
  if (!splits_allowed(q->candidate->splits, r->splits))
    diags_decline_number(&q->answer->declines, "match.split", "split.factors", r->splits,
                         "one that the spec lists, 65535 at most, or 0");
}

/* Entries of the longest list of pages that the table has room for. */
static int64_t list_pages(const question *q) {
  const tensors *t = &q->request->tensors;
  if (q->contract.select.form == SELECT_INDPTR) return t->by_name[TENSOR_KV_INDICES].shape[0];
  if (q->contract.select.form == SELECT_TOKENS) return INT32_MAX; /* lists say nothing of the sequence */
  const tensor *table = &t->by_name[TENSOR_PAGE_TABLE];
  return table->shape[table->rank - 1];
}

/* What the request says beside its tensors. They are bound. */
static void check_facts(question *q) {
  const match_request *r = q->request;
  const int64_t *dims = q->answer->dims;
  const struct {
    const char *field;
    int64_t said, bound;
  } facts[] = {{"rows", r->rows, dims[DIM_ROWS]},
               {"kv_heads", r->kv_heads, dims[DIM_KV_HEADS]},
               {"query_heads", r->query_heads, dims[DIM_KV_HEADS] * q->contract.query.heads_per_kv}};
  bool decode = operation_attends(r->operation);
  for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
    bool applies = decode || strcmp(facts[i].field, "kv_heads") == 0;
    if (applies && facts[i].said != 0 && facts[i].said != facts[i].bound)
      diags_decline_number(&q->answer->declines, "match.contradiction", facts[i].field, facts[i].said,
                           "%" PRId64 ", as the tensors have it", facts[i].bound);
  }
  if (!decode) return;
  int64_t room = list_pages(q) * q->contract.kv.page; /* both fit 31 bits */
  if (room > INT32_MAX) room = INT32_MAX;             /* lengths are int32 */
  if (r->longest < 0 || r->longest > room)
    diags_decline_number(&q->answer->declines, "match.length", "longest", r->longest, "0 to %" PRId64, room);
  if (dims[DIM_ROWS] > 1) check_flag(q, "match.causal", "mask.causal", r->causal, q->contract.mask.causal);
}

static void answer(question *q) {
  const match_request *r = q->request;
  match_answer *a = q->answer;
  check_target(q);
  check_incumbent(q);
  if (q->target) {
    const variant chosen_by_plan = {0};
    emit_check(q->candidate->contract, r->operation, &chosen_by_plan, q->target, &a->declines);
    q->contract = contract_resolve(q->candidate->contract, q->target->fp8);
    if (operation_attends(r->operation)) check_features(q);
    if (bind_dims(&q->contract, r->operation, &r->tensors, a->dims, &a->declines) == HD_OK) check_facts(q);
  }
  a->status = diags_errors(&a->declines) == 0 ? HD_OK : HD_DECLINED;
}

hd_status match_best(const match_request *r, const match_candidate *candidates, int count,
                     const char *target_name, match_answer *answers, int *out_chosen) {
  int chosen = -1;
  bool kept = true;
  for (int i = 0; i < count; i++) {
    answers[i] = (match_answer){.status = HD_DECLINED};
    diags_init(&answers[i].declines);
    question q = {.request = r,
                  .candidate = &candidates[i],
                  .target = target_find(target_name),
                  .target_name = target_name,
                  .answer = &answers[i]};
    answer(&q);
    kept &= !answers[i].declines.failed;
    if (answers[i].status != HD_OK) continue;
    if (chosen < 0 || candidates[i].contract->query.rows < candidates[chosen].contract->query.rows)
      chosen = i;
  }
  if (!kept) return HD_OUT_OF_MEMORY;
  if (chosen < 0) return HD_DECLINED;
  *out_chosen = chosen;
  return HD_OK;
}

void match_answers_finish(match_answer *answers, int count) {
  for (int i = 0; i < count; i++)
    diags_finish(&answers[i].declines);
}
