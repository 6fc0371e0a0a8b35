/* What lies where in one page of a cache: codes, and where the contract has them there too, scales and the
 * tail. All of them step by the cache's page and head strides. */
#ifndef HEDDLE_PAGE_PARTS_H
#define HEDDLE_PAGE_PARTS_H

#include "contract.h"
#include <stddef.h>

enum { PAGE_MAX_PARTS = 3 };

typedef struct page_part {
  const char *field; /* "kv.k", "scale.k", "kv.tail": of the spec */
  const layout *layout;
  int bytes;  /* of an element */
  int64_t at; /* bytes from the start of the page to its first element */
} page_part;

/* The parts of the K or V cache, the codes first; they point into `c`. Returns how many. */
int page_parts(const contract *c, bool is_k, page_part out_parts[PAGE_MAX_PARTS]);

/* The strides of the codes, in elements, as strides in elements of `part`. False when they are no whole
 * number of them. */
bool page_part_stride(const page_part *codes, const page_part *part, int64_t stride, int64_t *out_stride);

/* Whether in a packed cache of `heads` kv heads every part ends within its page, is aligned to its own
 * elements, and shares no byte with another. If not, `out_problem` says why, with fields, what was found and
 * what is allowed. */
bool page_parts_apart(const page_part *parts, int count, int64_t heads, char *out_problem,
                      size_t problem_size);

#endif
