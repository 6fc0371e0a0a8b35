/* The questions that heddle new asks on a terminal. */
#ifndef HEDDLE_CLI_ASK_H
#define HEDDLE_CLI_ASK_H

#include "draft.h"

/* Asks on standard error for what a spec can't be without and the draft lacks, and reads answers from
 * standard input. False: it ended before all were answered. `*name`: that of a layout, owned by the
 * caller, where that is the answer. */
bool ask_for_fields(draft *d, text *name);

#endif
