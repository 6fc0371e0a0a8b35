/* The code-object cache: memory, then the user directory. Format and rules: docs/cache.md. Thread-safe. */
#ifndef HEDDLE_CACHE_H
#define HEDDLE_CACHE_H

#include "../generator/descriptor.h"
#include "../generator/target.h"
#include <stddef.h>

typedef struct cache cache;

typedef struct cache_entry {
  const char *key_text; /* the text whose SHA-256 is the key */
  const descriptor *descriptor;
  const void *code_object;
  size_t code_object_size;
} cache_entry;

typedef struct cache_counts {
  uint64_t memory_hits, disk_hits, misses, stores, quarantined, store_failures;
} cache_counts;

/* What cache_list and cache_verify say of one file. */
typedef struct cache_item {
  char key[65];
  char operation[16], target[16], variant[64], contract_key[65];
  uint64_t size;
  bool good;
  char problem[160];
} cache_item;

/* `directory`: NULL takes HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else $HOME/.cache/heddle. A
 * directory that can't be used (read-only, not ours, writable by others) leaves the cache in memory;
 * cache_warning says why. */
hd_status cache_open(const char *directory, cache **out_cache, diags *errors);
void cache_close(cache *c);                  /* NULL is fine */
const char *cache_directory(const cache *c); /* "" when memory only */
const char *cache_warning(const cache *c);   /* "" when none */

/* HD_OK: `*out_entry` points into storage that lives until the cache is closed. HD_DECLINED: a miss. A bad
 * file is quarantined and counts as a miss. */
hd_status cache_find(cache *c, const char *key_text, cache_entry *out_entry);
/* Copies everything; `out_stored` (may be NULL) is the copy, as cache_find would give it. Failing to write
 * the file is not a failure (counted, warned): the entry is then in memory. */
hd_status cache_store(cache *c, const cache_entry *entry, cache_entry *out_stored);
void cache_counts_get(cache *c, cache_counts *out_counts);

/* One process at a time compiles a key. HD_OK: this process should compile (call cache_unlock when stored).
 * HD_DECLINED: somebody else finished it meanwhile, look again. The wait is bounded; after it, or where locks
 * don't work, HD_OK with *out_lock = NULL. With `seconds` 0 there is no wait: HD_UNAVAILABLE when somebody
 * else holds the key. A lock is given back before its cache is closed. */
typedef struct cache_lock cache_lock;
hd_status cache_lock_key(cache *c, const char *key_text, double seconds, cache_lock **out_lock);
void cache_unlock(cache_lock *lock); /* NULL is fine */

/* Calls `visit` for each file; verify reads and checks every byte. */
hd_status cache_list(cache *c, bool verify, void (*visit)(void *user, const cache_item *item), void *user,
                     diags *errors);
/* Removes every entry, quarantined file and lock; returns how many entries in *out_count. */
hd_status cache_clear(cache *c, size_t *out_count, diags *errors);

#endif
