/* Which variant and split a decode would be launched with, and which tuned record says so, without a device:
 * a target stands for any device of it. */
#ifndef HEDDLE_CLI_TUNED_LAUNCH_H
#define HEDDLE_CLI_TUNED_LAUNCH_H

#include "tuned.h"

typedef struct tuned_question {
  const contract *contract; /* resolved for the target */
  const spec_ints *factors; /* the spec's split.factors */
  const target *target;
  tune_shape shape;
  int64_t splits; /* that are asked for; 0: left open */
} tuned_question;

typedef struct tuned_launch {
  tune_shape shape;
  tune_choice choice;     /* borrows from the files */
  int64_t splits, policy; /* the policy's, for that variant */
} tuned_launch;

hd_status tuned_launch_of(const tuned_question *q, tune_files *files, tuned_launch *out_launch, diags *d);
void tuned_launch_write(const tuned_launch *l, const tune_files *files, text *out);
/* Members of an object that is open. */
void tuned_launch_json(const tuned_launch *l, const tune_files *files, bool *first, text *out);

#endif
