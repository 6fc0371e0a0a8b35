/* Shapes that a kernel was launched with before, and what binding made of them: the layers of a model launch
 * one kernel with the same shapes again and again, and only the addresses differ. */
#ifndef HEDDLE_API_SEEN_H
#define HEDDLE_API_SEEN_H

#include "../../generator/descriptor.h"
#include "../heddle.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  SEEN_WORDS = 120, /* of a list of tensors: one each, and one for each extent and stride */
  SEEN_ENTRIES = 4, /* of a kernel */
  SEEN_FACTS = DIM_COUNT + 1,
};

/* All that binding looks at in a list of tensors, in words: equal words bind alike. */
typedef struct seen_key {
  int count;
  uint64_t hash;
  uint64_t words[SEEN_WORDS];
} seen_key;

/* What binding found out. */
typedef struct seen_facts {
  int64_t dims[DIM_COUNT];
  int64_t capacity; /* tokens that a row of the page table or of a list has room for */
} seen_facts;

/* One list. Written by one thread at a time and read by any number, none of which waits: a writer makes
 * `version` odd while it writes, and a reader that meets another version than it began with has found
 * nothing.
 */
typedef struct seen_entry {
  atomic_uint_least64_t version;
  atomic_uint_least64_t count; /* 0: nothing is kept here */
  atomic_uint_least64_t words[SEEN_WORDS];
  atomic_int_least64_t facts[SEEN_FACTS];
} seen_entry;

/* Zero-initialised: nothing was seen. Threads may do with it what they like. Nothing allocates or locks. */
typedef struct seen_shapes {
  seen_entry entries[SEEN_ENTRIES];
} seen_shapes;

/* False for a list that is not kept: too long, or one that makes no sense. */
bool seen_key_of(const hd_tensor *list, size_t count, seen_key *out_key);
bool seen_find(seen_shapes *s, const seen_key *key, seen_facts *out_facts);
/* Keeps what was bound; not when another thread keeps something in the same place. */
void seen_keep(seen_shapes *s, const seen_key *key, const seen_facts *facts);

#endif
