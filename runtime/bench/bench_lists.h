/* What rows attend to in a benchmark: how much of a sequence, and lists of blocks or tokens. */
#ifndef HEDDLE_BENCH_LISTS_H
#define HEDDLE_BENCH_LISTS_H

#include "bench_data.h"
#include "../verify/verify_data.h"

/* Tokens that a list has room for: MiniMax-M3's 16 blocks of 128, DSA's 2048 tokens. */
enum { BENCH_LISTED_TOKENS = 2048 };

/* Entries of a list; 0 where the contract has none. */
int64_t bench_listed(const contract *c);
/* Of `length` tokens, those that one of `rows` query rows sees: all of them, those in its window, or what its
 * list names. Rows see the same as far as they can: such tokens count once. */
int64_t bench_seen(const contract *c, int rows, int64_t length);
/* Fills the lists of sequence `seq`, in the pages `own`: as many different blocks or tokens as there is room
 * for, the last one among them, in random order. Rows of a sequence list different ones, as long as there are
 * any. False without memory. */
bool bench_lists_fill(bench_data *d, int64_t seq, const int32_t *own, random_state *r);

#endif
