/* How a benchmark's pages are dealt: to a page table, or to ragged lists. */
#ifndef HEDDLE_BENCH_PAGES_H
#define HEDDLE_BENCH_PAGES_H

#include "bench_data.h"
#include "../verify/verify_data.h"

/* Sets DIM_PAGES and DIM_TABLE_PAGES: every page is used, and tables and lists have room for sequences of
 * `capacity` tokens. The other sizes are set. */
void bench_pages_size(bench_data *d, int64_t capacity);
/* Deals every page to one sequence, which one is random, and lists what rows attend to (bench_lists.h). Kv
 * heads that have lists of their own get the sequence's pages in an order of their own. False without
 * memory. */
bool bench_pages_deal(bench_data *d, random_state *r);

#endif
