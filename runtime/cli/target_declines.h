/* What several targets decline of one spec: each fault once, whatever each target says of it. */
#ifndef HEDDLE_CLI_TARGET_DECLINES_H
#define HEDDLE_CLI_TARGET_DECLINES_H

#include "cli.h"

enum { TARGET_DECLINES_MOST = 64 };

typedef struct target_declines {
  diags all;                              /* as said, the same one once */
  unsigned targets[TARGET_DECLINES_MOST]; /* who says it: bits in the order of target_at */
  unsigned asked;                         /* all that were asked */
} target_declines;

void target_declines_init(target_declines *d);
void target_declines_finish(target_declines *d);
/* One target's answer; `why` is empty where it serves. */
void target_declines_add(target_declines *d, const target *t, const diags *why);
/* Adds a diagnostic for each value that is declined, where `to` has it not yet: "8 is not served on gfx942
 * and gfx950: allowed is …", and without names where all that were asked say so. */
void target_declines_write(const target_declines *d, diag_severity severity, diags *to);

#endif
