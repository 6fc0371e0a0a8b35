/* What the files of the cache share. Not for others. */
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
typedef struct cache_pack cache_pack;
typedef struct cache_tier cache_tier;

struct cache {
  char *directory;                 /* "" when memory only */
  int folders[CACHE_FOLDER_COUNT]; /* descriptors, -1 when memory only */
  bool writable;
  uint64_t most_bytes; /* that the folder may hold; 0: any number */
  cache_pack *packs;   /* the first one is looked at first; only added to, before anything is looked for */
  cache_tier *tier;    /* NULL: none */
  diags *opening;      /* where warnings go while the cache is opened, else NULL */

  pthread_mutex_t mutex; /* guards what follows */
  memory_entry **buckets;
  size_t bucket_count, entry_count; /* entries that can be found */
  memory_entry *all;                /* every entry, freed at close */
  cache_counts counts;
  uint64_t unmeasured_bytes; /* stored since the folder was last measured */
  bool measured;
  char warning[512];
  cache_log_function log;
  void *log_user;
  atomic_bool warned;                    /* set once, after `warning` is written */
  atomic_bool store_fails, locks_broken; /* said already */
};

/* "ab/abcd…" below objects/. */
void cache_entry_path(const char *key, char out_path[CACHE_PATH]);
/* One line about something that went wrong: to the log; while the cache is opened a diagnostic of this code.
 * The first one is cache_warning's. */
void cache_say(cache *c, const char *code, const char *format, ...) HD_PRINTF(3, 4);
void cache_count(cache *c, uint64_t *counter);
/* Moves a bad file out of the way and says so; it may be gone already. */
void cache_quarantine_file(cache *c, const char *key, const char *why);

/* ---- cache_folder.c ---- */

/* The folder by the rules of cache_open; NULL when the environment names none. Owned by the caller. */
char *cache_default_directory(void);
/* Opens the cache folder and its sub-folders, making what is missing. False leaves `folders` at -1. */
bool cache_open_folders(cache *c, const char *directory);

/* ---- cache_disk.c ---- */

/* HD_DECLINED: there is none, or a bad one that is now out of the way. */
hd_status disk_find(cache *c, const char *key, memory_entry **out_entry);
/* Writes an entry's file. HD_IO: errno says why. */
hd_status disk_store(cache *c, const char *key, const void *file, size_t size);

/* ---- cache_memory.c ---- */

bool memory_init(cache *c);
void memory_finish(cache *c);
/* The entry of this key, of the given text if that is not NULL; the newest. The mutex is held. */
memory_entry *memory_find(const cache *c, const char *key, const char *key_text);
/* Any entry whose key text begins with `source`. The mutex is held. */
memory_entry *memory_find_source(const cache *c, const char *source);
void memory_add(cache *c, memory_entry *e); /* takes `e` over */
memory_entry *memory_entry_create(const char *key, const char *key_text, size_t key_text_size,
                                  const void *code_object, size_t code_object_size);
void memory_entry_destroy(memory_entry *e);
descriptor *memory_entry_descriptor(memory_entry *e);
cache_entry memory_entry_view(const memory_entry *e);
/* Makes entries in memory unfindable; what was handed out stays valid. */
void cache_forget(cache *c);

/* Everything that is checked of an entry's bytes, from wherever they come, before its code object is used. */
hd_status cache_entry_read(const char *key, const void *bytes, size_t size, memory_entry **out_entry,
                           diags *errors);

/* ---- cache_pack.c ---- */

/* Those that HEDDLE_PACKS names; one that can't be used is said and left out. */
hd_status packs_open(cache *c);
/* HD_DECLINED: no pack has it, or only bad ones, which were reported. */
hd_status pack_find(cache *c, const char *key, memory_entry **out_entry);
/* The key of an entry with this source key (64 hex digits), or false. */
bool pack_find_source(const cache *c, const char *source_key, char out_key[65]);
void packs_close(cache *c);
/* Every entry of every pack. */
hd_status packs_each(const cache *c,
                     hd_status (*visit)(void *user, const char *pack, const char *key, const char *bytes,
                                        size_t size),
                     void *user, diags *errors);
void packs_write(const cache *c, text *out); /* ", pack PATH" for each */

/* ---- cache_scan.c ---- */

/* Calls `visit` for every file of objects/ that lies where an entry or an unfinished file does. */
hd_status cache_each_file(cache *c,
                          hd_status (*visit)(cache *c, const char *folder, const char *name, void *user),
                          void *user);
/* Calls `visit` for every name in a flat folder. */
hd_status cache_each_name(int folder, void (*visit)(int folder, const char *name, void *user), void *user);
/* The key of an entry whose key text begins with `source`, or false: reads the head of every entry. */
bool disk_find_source(cache *c, const char *source, char out_key[65]);

/* ---- cache_prune.c ---- */

/* Called after so many bytes were stored. */
void cache_keep_below_cap(cache *c, size_t stored);

/* ---- cache_tier.c ---- */

/* What the environment says of a shared tier (docs/cache.md); leaves `c->tier` NULL without one. */
hd_status tier_open(cache *c);
void tier_close(cache_tier *t);                  /* NULL is fine */
void tier_write(const cache_tier *t, text *out); /* its address */
/* HD_DECLINED: it doesn't have it, can't be reached, or is left alone for a while. Only HD_OUT_OF_MEMORY is a
 * failure. `*out_bytes` is a whole entry, checked already, to be freed by the caller. */
hd_status tier_find(cache *c, const char *key, memory_entry **out_entry, char **out_bytes, size_t *out_size);

#endif
