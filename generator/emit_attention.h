/* What the decode structures (direct, ring) share: the arguments, the merge kernel, the logits and the
 * output. */
#ifndef HEDDLE_EMIT_ATTENTION_H
#define HEDDLE_EMIT_ATTENTION_H

#include "emit_internal.h"
#include "plan.h"

typedef struct attention_fences {
  const contract *contract;
  const target *target;
  const descriptor *descriptor;
  const template_source *templates;
  diags *errors;
} attention_fences;

/* Most query rows that share a page list, and so one reading of K and V. */
int shared_rows(const contract *c);
/* Workgroups along x: lists of pages, each of a sequence or of one of its rows. */
extent sequence_extent(const contract *c);

/* Fences every decode structure has: contract, prelude, logits, value_scale, merge … */
bool fill_attention(const attention_fences *f, const char *name, text *out);
/* The common scale of K where it cannot be part of the logits', as `key_scale`. */
void write_key_scale(const contract *c, text *out);
void write_store_output(const contract *c, text *out);
void write_merge_shape(text *out);

/* The fences that only a ring on an AMD target fills ("staged …"), and what the direct structure has instead.
 */

bool fill_staged(const attention_fences *f, const decode_plan *p, const char *name, text *out);
void write_staged_shape(const decode_plan *p, text *out);

hd_status emit_ring(const contract *c, const variant *v, const target *t, const template_source *templates,
                    text *out_source, descriptor *out_descriptor, diags *errors);

/* Behind the kernels of a decode, the one that makes its page lists; in the descriptor before them. */
hd_status emit_select(const contract *c, const template_source *templates, text *out_source,
                      descriptor *out_descriptor, diags *errors);

/* Where the page lists lie that decode reads, and the entries from one list to the next. */
void add_page_lists(const contract *c, kernel_descriptor *k);
void add_page_list_width(const contract *c, kernel_descriptor *k);
void add_decode_arguments(const contract *c, kernel_descriptor *k);
void add_merge_arguments(const contract *c, kernel_descriptor *k);
/* Whether each kv head has a list of pages of its own. */
bool lists_by_head(const contract *c);
/* Words of a partial result of one query. */
int partial_words(const contract *c);
/* Stores the log-sum-exp of `query`, an expression, where the contract has it. */
void write_lse(const contract *c, const char *query, const char *base, const char *total, text *out);
/* Adds the sink's logit to the sum of weights, where the contract has sinks. */
void write_sink(const contract *c, const char *base, const char *total, text *out);
/* The merge kernel as the descriptor's second, and the workspace both need. */
void describe_merge(const contract *c, descriptor *d);

#endif
