/* What a random spec is made of so far; shared by the files that write its parts. */
#ifndef HEDDLE_CAMPAIGN_RANDOM_DRAFT_H
#define HEDDLE_CAMPAIGN_RANDOM_DRAFT_H

#include "../../generator/text.h"
#include "../../runtime/verify/verify_data.h"

typedef struct draft {
  random_state *random;
  int page, qk, v;
  const char *k_dtype, *v_dtype;
  int heads_per_kv, rows;
  bool v_in_k;
  bool one_head; /* the layouts have no h */
} draft;

int draft_below(draft *d, int limit);
bool draft_one_in(draft *d, int n);
#define DRAFT_WORD(d, list) (list)[draft_below(d, (int)(sizeof(list) / sizeof *(list)))]

/* ", writer: {…}", or nothing. */
void draft_writer(draft *d, const char *scale_dtype, text *out);
int draft_common_divisor(int a, int b);

/* The sections kv and scale of a cache whose pages hold more than codes: scales, and channels in another
 * format. */
void random_records(draft *d, text *out);

#endif
