/* Dispatch: an engine's tensors against a set of contracts and a target. The answer is the contract to use,
 * or why each one is not served. Nothing is compiled, read or launched, and launching asks the same functions
 * (bind_dims, emit_check), so that "can you?" and "do it" can't disagree. */
#ifndef HEDDLE_MATCH_H
#define HEDDLE_MATCH_H

#include "../../generator/emit.h"
#include "../../generator/spec.h"
#include "../launch/launch.h"

/* What the engine has and wants. Zero-initialise: 0 means "as the tensors say", "none" or "no". */
typedef struct match_request {
  operation operation;
  tensors tensors; /* as they are; `data` may be any number with the address's alignment, and so may scales
                      that are numbers */
  int64_t longest; /* tokens of the longest sequence, those of this step included */
  /* Facts that the tensors imply too: checked against them when not 0. */
  int64_t rows, query_heads, kv_heads;
  /* What attention has to be. */
  bool lse, sinks;
  bool causal; /* a row sees no later row of its own sequence; means nothing with one row */
  bool prefix; /* rows follow cached tokens, and sequences of one call differ in their number of rows */
  int window;  /* tokens */
  int block;   /* tokens of a block of block_list; 0: not said */
  double softcap;
  double logits_scale; /* 0: 1 / sqrt(head_dim.qk) */
  int splits;          /* workgroups a sequence is to be shared by; 0: the policy's */
  /* A kernel that the engine already has for these tensors, by a name of its choice; NULL: none. With one,
   * only contracts that are known to be better than it are used. */
  const char *incumbent;
} match_request;

/* A contract that may serve. Everything is borrowed. */
typedef struct match_candidate {
  const char *name;
  const contract *contract;
  const char (*targets)[16]; /* `target_count` names, 0: any */
  int target_count;
  const spec_ints *splits;        /* split counts that may be used; NULL or empty: any */
  const char *const *better_than; /* `better_count` incumbents that measurements show it to be faster than */
  int better_count;
} match_candidate;

/* A spec's contract, targets and split counts. */
match_candidate match_candidate_of(const spec *s);

/* What became of one candidate. */
typedef struct match_answer {
  hd_status status;        /* HD_OK or HD_DECLINED */
  int64_t dims[DIM_COUNT]; /* on HD_OK, as bind_dims leaves them */
  diags declines;          /* errors with code, field, found and allowed; why it declined */
} match_answer;

/* Answers for every candidate, in order, into the caller's `answers` (as many as candidates;
 * match_answers_finish them). HD_OK:
 * `*out_chosen` is the candidate to use: of those that serve the one with the fewest rows, then the first.
 * HD_DECLINED: none serves; each answer says why, also for a target that nobody knows. HD_OUT_OF_MEMORY: a
 * reason could not be kept. Threads may ask at the same time. A candidate that serves costs no allocation. */
hd_status match_best(const match_request *r, const match_candidate *candidates, int count,
                     const char *target_name, match_answer *answers, int *out_chosen);
void match_answers_finish(match_answer *answers, int count);

/* A request from its JSON description (docs/match.md has the fields). The request borrows from this struct,
 * so it is not to be copied. */
typedef struct match_description {
  match_request request;
  layout axes[TENSOR_COUNT];
  char incumbent[64];
} match_description;

/* HD_DECLINED: "request.…" diagnostics with line and column say what is wrong; `out` is then in no state to
 * use. */
hd_status match_read(const char *json, size_t length, match_description *out, diags *errors);

#endif
