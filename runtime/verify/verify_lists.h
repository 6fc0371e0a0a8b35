/* Lists of blocks and tokens for verification: what a caller may give, unordered, padded anywhere, repeated.
 */
#ifndef HEDDLE_VERIFY_LISTS_H
#define HEDDLE_VERIFY_LISTS_H

#include "verify_data.h"

/* How long the lists of a case are: DIM_LISTED, 0 where the contract has none. After the lengths are known.
 */
void verify_lists_size(verify_data *d, random_state *r);
/* Fills the lists, and which row of the page table each query row looks up. Needs pages and slots. */
void verify_lists_fill(verify_data *d, random_state *r);
/* The sequence whose tokens query row or sequence `seq` sees. */
int64_t verify_lists_sequence(const verify_data *d, int64_t seq);

#endif
