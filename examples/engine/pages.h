/* The pages of the cache, and sequences that hold some of them. Nothing here knows of heddle or a device. */
#ifndef ENGINE_PAGES_H
#define ENGINE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGE = 16, TABLE = 8, LONGEST = PAGE * TABLE }; /* tokens of a page; pages of the longest sequence */
enum { POOL = 17 };                                    /* pages of the cache: fewer than are wanted */

typedef struct pool {
  int32_t free[POOL]; /* a stack */
  int count;
} pool;

void pool_init(pool *p);

/* A request, and what the engine has of it. */
typedef struct sequence {
  int id;
  int arrives;          /* the step in which it is asked for */
  int prompt, generate; /* tokens */
  int length;           /* tokens that are known: of the prompt, and generated */
  int32_t pages[TABLE];
  int page_count;
} sequence;

/* Takes what the first `tokens` tokens need; false, and nothing taken, when there are too few. */
bool sequence_reserve(sequence *s, pool *p, int tokens);
/* Gives all back. */
void sequence_release(sequence *s, pool *p);
/* Where a token lies in the cache; its page must be there. */
int64_t sequence_slot(const sequence *s, int token);

#endif
