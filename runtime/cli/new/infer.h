/* What an engine's tensors say about the contract they belong to. */
#ifndef HEDDLE_CLI_INFER_H
#define HEDDLE_CLI_INFER_H

#include "draft.h"
#include "readings.h"

/* Fills what the tensors say; what they don't stays as it is, or is assumed with a note that says so.
 * `heads`: kv heads, 0: not known. HD_DECLINED: "new.…" says what is missing or can be read in several ways.
 */
hd_status infer_from(const match_request *r, int64_t heads, draft *d, diags *errors);

#endif
