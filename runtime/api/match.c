#include "../match/match.h"
#include "parts.h"
#include <stdlib.h>

static bool read_request(const hd_match_request *from, match_request *out, diags *errors) {
  hd_match_request r;
  if (!api_take_struct(from, offsetof(hd_match_request, k_scale), &r, sizeof r, "request", errors))
    return false;
  *out = (match_request){
      .longest = r.longest,
      .rows = r.rows,
      .query_heads = r.query_heads,
      .kv_heads = r.kv_heads,
      .lse = r.lse != 0,
      .sinks = r.sinks != 0,
      .causal = r.causal != 0,
      .prefix = r.prefix != 0,
      .window = r.window,
      .block = r.block,
      .softcap = r.softcap,
      .logits_scale = r.logits_scale,
      .splits = r.splits,
      .incumbent = r.incumbent,
  };
  if (!api_operation(r.operation, &out->operation)) {
    diags_errorf(errors, "bind.operation", "operation", "operation %d is none", (int)r.operation);
    return false;
  }
  if (api_tensors(r.tensors, r.tensor_count, &out->tensors, errors) != HD_OK) return false;
  api_scale_numbers(r.k_scale, r.v_scale, &out->tensors);
  return true;
}

/* Each candidate is asked by itself, so that the answers fit on the stack whatever their number. */
static hd_status match_one(const match_request *r, const hd_candidate *from, const char *target_name,
                           diags *reasons) {
  match_candidate candidate = match_candidate_of(&from->contract->spec);
  candidate.better_than = from->better_than;
  candidate.better_count = (int)from->better_count;
  match_answer answer;
  int chosen;
  hd_status status = match_best(r, &candidate, 1, target_name, &answer, &chosen);
  if (reasons != NULL) api_append(reasons, &answer.declines);
  match_answers_finish(&answer, 1);
  return status;
}

hd_status hd_match(const hd_match_request *request, const hd_candidate *candidates, size_t count,
                   const char *target_name, size_t *out_chosen, hd_diagnostics *const *answers) {
  match_request r;
  diags misuse;
  if (target_name == NULL || out_chosen == NULL || (count > 0 && candidates == NULL)) return HD_INVALID;
  size_t best = count;
  hd_status result = HD_DECLINED;
  diags_init(&misuse);
  bool sound = read_request(request, &r, &misuse);
  for (size_t i = 0; i < count; i++) {
    api_call call;
    api_begin(&call, answers != NULL ? answers[i] : NULL);
    if (!sound) {
      api_append(call.errors, &misuse);
      result = HD_INVALID;
    } else {
      hd_status status = candidates[i].contract != NULL
                             ? match_one(&r, &candidates[i], target_name, call.errors)
                             : HD_INVALID;
      if (status != HD_OK && status != HD_DECLINED) result = status;
      const contract *c = status == HD_OK ? &candidates[i].contract->spec.contract : NULL;
      if (c != NULL && (best == count || c->query.rows < candidates[best].contract->spec.contract.query.rows))
        best = i;
    }
    api_end(&call, HD_OK);
  }
  if (!sound) result = HD_INVALID;
  diags_finish(&misuse);
  if (result != HD_DECLINED || best == count) return result;
  *out_chosen = best;
  return HD_OK;
}
