/* The code-object cache: memory, read-only packs, the user directory, a tier over HTTP. Format and rules:
 * docs/cache.md. Thread-safe. */
#ifndef HEDDLE_CACHE_H
#define HEDDLE_CACHE_H

#include "../../generator/descriptor.h"
#include "../../generator/target.h"
#include "../../generator/text.h"
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
  uint64_t pack_hits, tier_hits, tier_puts, tier_failures, pruned;
} cache_counts;

/* What cache_list says of one entry. */
typedef struct cache_item {
  char key[65];
  char operation[16], target[16], variant[64], contract_key[65];
  const char *pack; /* the file that it is in; NULL: the user's folder */
  uint64_t size;
  bool good;
  bool stale; /* not good, since another version of heddle made it: it is not used, and ages away */
  char problem[160];
} cache_item;

/* `directory`: NULL takes HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else $HOME/.cache/heddle. A
 * directory that can't be used (read-only, not ours, writable by others) leaves the cache in memory;
 * cache_warning says why. Packs are those of HEDDLE_PACKS, the tier that of HEDDLE_CACHE_URL; what of it
 * can't be used is a warning too. */
hd_status cache_open(const char *directory, cache **out_cache, diags *errors);
void cache_close(cache *c);                  /* NULL is fine */
const char *cache_directory(const cache *c); /* "" when memory only */
const char *cache_warning(const cache *c);   /* the first one; "" when none */

/* Told of whatever goes wrong from now on, one line each, from whichever thread meets it. It must not call
 * the cache. */
typedef void (*cache_log_function)(void *user, const char *line);
void cache_set_log(cache *c, cache_log_function log, void *user);

/* Adds a pack (pack_file.h) behind the ones that are there. Not while another thread uses the cache. HD_IO or
 * HD_INVALID with "cache.pack": it can't be read, isn't sound, or others than the caller and root can write
 * it. */
hd_status cache_add_pack(cache *c, const char *path, diags *errors);

/* HD_OK: `*out_entry` points into storage that lives until the cache is closed. HD_DECLINED: a miss. A bad
 * file is quarantined and counts as a miss. */
hd_status cache_find(cache *c, const char *key_text, cache_entry *out_entry);
/* An entry whose key text begins with `source`, whatever compiled it: for who can't or may not compile. The
 * tier isn't asked. */
hd_status cache_find_source(cache *c, const char *source, cache_entry *out_entry);
/* Where entries are looked for: "memory, pack A, folder B, tier C". */
void cache_write_places(const cache *c, text *out);
/* Copies everything; `out_stored` (may be NULL) is the copy, as cache_find would give it. Failing to write
 * the file is not a failure (counted, warned): the entry is then in memory. */
hd_status cache_store(cache *c, const cache_entry *entry, cache_entry *out_stored);
/* Offers an entry that is in memory to the tier. Waits for it, but not for long; a failure is a line in the
 * log. */
void cache_share(cache *c, const char *key_text);
/* Checks an entry's file as one found on the disk, and puts it into the user's folder. HD_INVALID, HD_IO,
 * HD_UNAVAILABLE (no folder). */
hd_status cache_import(cache *c, const char *key, const void *bytes, size_t size, diags *errors);
void cache_counts_get(cache *c, cache_counts *out_counts);

/* One process at a time compiles a key. HD_OK: this process should compile (call cache_unlock when stored).
 * HD_DECLINED: somebody else finished it meanwhile, look again. The wait is bounded; after it, or where locks
 * don't work, HD_OK with *out_lock = NULL. With `seconds` 0 there is no wait: HD_UNAVAILABLE when somebody
 * else holds the key. A lock is given back before its cache is closed. */
typedef struct cache_lock cache_lock;
hd_status cache_lock_key(cache *c, const char *key_text, double seconds, cache_lock **out_lock);
void cache_unlock(cache_lock *lock); /* NULL is fine */

/* Calls `visit` for each entry of the packs and of the folder; verify reads and checks every byte. */
hd_status cache_list(cache *c, bool verify, void (*visit)(void *user, const cache_item *item), void *user,
                     diags *errors);
/* Removes every entry, quarantined file and lock; returns how many entries in *out_count. */
hd_status cache_clear(cache *c, size_t *out_count, diags *errors);

/* Removes the entries that were of use longest ago until the folder holds at most so many bytes, and what
 * killed processes left behind. Others may read and write meanwhile. */
typedef struct cache_pruned {
  size_t removed;
  uint64_t bytes, left; /* removed, still there */
} cache_pruned;
hd_status cache_prune(cache *c, uint64_t most_bytes, cache_pruned *out_pruned, diags *errors);
uint64_t cache_most_bytes(const cache *c); /* HEDDLE_CACHE_MAX_BYTES or its default; 0: no cap */

/* Calls `visit` with the whole file of each entry that can be read, pack by pack, then the folder; no byte of
 * it was checked but the head's. `visit` says whether to go on. */
hd_status cache_each_entry(cache *c,
                           bool (*visit)(void *user, const char *place, const char *key, const void *bytes,
                                         size_t size),
                           void *user, diags *errors);

#endif
