/* Why a key isn't in the cache: the entry whose key text is nearest to it, and where the two differ. */
#ifndef HEDDLE_CACHE_EXPLAIN_H
#define HEDDLE_CACHE_EXPLAIN_H

#include "cache.h"

enum { CACHE_MOST_FIELDS = 16 };

/* A line of a key text that another one has otherwise; values end at a line's end. */
typedef struct key_difference {
  char field[32];
  const char *wanted, *found; /* NULL: it has no such line */
  int wanted_length, found_length;
} key_difference;

/* The differences of two key texts, in the order of `wanted`, at most CACHE_MOST_FIELDS; returns how many. */
int key_text_compare(const char *wanted, const char *found,
                     key_difference out_differences[CACHE_MOST_FIELDS]);

typedef struct cache_neighbour {
  char key[65];
  char *place, *key_text; /* NULL: the cache is empty; owned */
} cache_neighbour;

/* The entry that differs in the fewest fields from `key_text`, or is it; of several the first by key. The
 * tier isn't asked. */
hd_status cache_nearest(cache *c, const char *key_text, cache_neighbour *out_neighbour, diags *errors);
void cache_neighbour_finish(cache_neighbour *n);

#endif
