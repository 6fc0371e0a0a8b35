/* What cache.c, cache_lock.c and cache_scan.c share. Not for others. */
#ifndef HEDDLE_CACHE_PARTS_H
#define HEDDLE_CACHE_PARTS_H

#include "cache.h"
#include <pthread.h>
#include <stdatomic.h>

enum { CACHE_PATH = sizeof "ab/" + 64 }; /* an entry's path below objects/ */

/* Sub-folders of the cache folder. Everything is reached through their descriptors, so that nobody can swap a
 * folder between the check of its owner and its use. */
#define CACHE_FOLDERS(X)                                                                                     \
  X(CACHE_OBJECTS, "objects")                                                                                \
  X(CACHE_QUARANTINE, "quarantine")                                                                          \
  X(CACHE_LOCKS, "locks")

typedef enum cache_folder {
#define X(name, text) name,
  CACHE_FOLDERS(X)
#undef X
      CACHE_FOLDER_COUNT
} cache_folder;

typedef struct memory_entry memory_entry;

struct cache {
  char *directory;                 /* "" when memory only */
  int folders[CACHE_FOLDER_COUNT]; /* descriptors, -1 when memory only */
  bool writable;

  pthread_mutex_t mutex; /* guards what follows */
  memory_entry **buckets;
  size_t bucket_count, entry_count; /* entries that can be found */
  memory_entry *all;                /* every entry, freed at close */
  cache_counts counts;
  char warning[512];
  atomic_bool warned; /* set once, after `warning` is written */
};

/* "ab/abcd…" below objects/. */
void cache_entry_path(const char *key, char out_path[CACHE_PATH]);
/* Remembers the first warning. */
void cache_warn(cache *c, const char *format, ...) HD_PRINTF(2, 3);
/* Moves a bad file out of the way; it may be gone already. */
void cache_quarantine_file(cache *c, const char *key);
/* Makes entries in memory unfindable; what was handed out stays valid. */
void cache_forget(cache *c);

#endif
