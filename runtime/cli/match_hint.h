/* What may cure a match that every spec declined: another spec, or something else. */
#ifndef HEDDLE_CLI_MATCH_HINT_H
#define HEDDLE_CLI_MATCH_HINT_H

#include "../match/match.h"

/* The code to explain where each answer has a decline that no other spec would be without; NULL: a spec of
 * these tensors may serve them. */
const char *match_hint_code(const match_answer *answers, int count, const tensors *t);

#endif
