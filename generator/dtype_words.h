/* Number formats as people look for them. */
#ifndef HEDDLE_DTYPE_WORDS_H
#define HEDDLE_DTYPE_WORDS_H

#include "dtype.h"
#include "guess.h"

/* Every format once, `index` below DTYPE_COUNT, the likelier ones first: the order of lists in messages. */
dtype dtype_listed(int index);
/* The names of formats with any of `uses`, or with 0 of those that a tensor may have: "bf16, fp16, int8". */
void dtype_list(unsigned uses, text *out);
/* What a name that is none was meant to be, among the same formats: by how it is spelled, or the format that
 * other programs call so. */
guess dtype_guess(const char *name, unsigned uses);

#endif
