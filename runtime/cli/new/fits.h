/* Which shipped specs a new one, or the tensors it was made from, could do with. */
#ifndef HEDDLE_CLI_FITS_H
#define HEDDLE_CLI_FITS_H

#include "../../match/match.h"
#include "../cli.h"

enum { FITS_MAX = 64 };

typedef struct fits {
  const char *same[FITS_MAX]; /* shipped specs of the same contract */
  int same_count;
  const char *serves[FITS_MAX]; /* shipped specs that serve the tensors on one of their targets */
  int serves_count;
  const char *nearest; /* with the fewest fields that differ, where none is the same; may be NULL */
  text differences;    /* of the nearest: "field: a → b" lines */
} fits;

/* `request` may be NULL: there are no tensors. Finish in any case. */
hd_status fits_find(const contract *c, const match_request *request, fits *out);
void fits_finish(fits *f);

/* What keeps a spec that was made of a request's tensors from serving them, on the target that declines
 * least: a format that no spec has, a tensor that is missing. Nothing of tensors that weren't described at
 * all. */
hd_status fits_declines(const spec *made, const match_request *request, diags *out);

#endif
