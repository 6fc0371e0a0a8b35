/* The size cap: entries that were of use longest ago go first. Nothing is locked: a file that is removed
 * stays readable for who has it open, who comes later compiles it again, and two that prune at the same time
 * remove the same files. */
#include "cache_parts.h"
#include "../../generator/sha256.h"
#include "../file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  ABANDONED_SECONDS = 3600,      /* an unfinished file this old has lost its writer */
  BAD_FILE_SECONDS = 30 * 86400, /* nobody will look at a quarantined file this old */
};

typedef struct stamped {
  char path[CACHE_PATH];
  struct timespec stamp;
  uint64_t size;
} stamped;

typedef struct survey {
  stamped *items;
  size_t count, room;
  uint64_t bytes;
  time_t now;
} survey;

static void remove_abandoned(cache *c, const char *folder, const char *name, time_t now) {
  char path[512];
  struct stat facts;
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (strncmp(name, FILE_TEMPORARY_PREFIX, strlen(FILE_TEMPORARY_PREFIX)) != 0 || length < 0 ||
      (size_t)length >= sizeof path)
    return;
  if (fstatat(c->folders[CACHE_OBJECTS], path, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      now - facts.st_mtime > ABANDONED_SECONDS)
    unlinkat(c->folders[CACHE_OBJECTS], path, 0);
}

static hd_status survey_file(cache *c, const char *folder, const char *name, void *user) {
  survey *s = user;
  struct stat facts;
  if (!sha256_is_hex(name)) {
    remove_abandoned(c, folder, name, s->now);
    return HD_OK;
  }
  if (s->count == s->room) {
    size_t room = s->room > 0 ? 2 * s->room : 256;
    stamped *grown = realloc(s->items, room * sizeof *grown);
    if (grown == NULL) return HD_OUT_OF_MEMORY;
    s->items = grown;
    s->room = room;
  }
  stamped *item = &s->items[s->count];
  cache_entry_path(name, item->path);
  if (fstatat(c->folders[CACHE_OBJECTS], item->path, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(facts.st_mode))
    return HD_OK;
  item->stamp = facts.st_mtim;
  item->size = (uint64_t)facts.st_size;
  s->bytes += item->size;
  s->count++;
  return HD_OK;
}

static int compare_stamps(const void *a, const void *b) {
  const stamped *x = a, *y = b;
  if (x->stamp.tv_sec != y->stamp.tv_sec) return x->stamp.tv_sec < y->stamp.tv_sec ? -1 : 1;
  if (x->stamp.tv_nsec != y->stamp.tv_nsec) return x->stamp.tv_nsec < y->stamp.tv_nsec ? -1 : 1;
  return strcmp(x->path, y->path);
}

static void remove_old_bad_file(int folder, const char *name, void *user) {
  const time_t *now = user;
  struct stat facts;
  if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && *now - facts.st_mtime > BAD_FILE_SECONDS)
    unlinkat(folder, name, S_ISDIR(facts.st_mode) ? AT_REMOVEDIR : 0);
}

/* Removes down to `goal` bytes if there are more than `most`. */
static hd_status prune_to(cache *c, uint64_t most, uint64_t goal, cache_pruned *out) {
  survey s = {.now = time(NULL)};
  cache_pruned done = {0};
  cache_each_name(c->folders[CACHE_QUARANTINE], remove_old_bad_file, &s.now);
  hd_status status = cache_each_file(c, survey_file, &s);
  int error = errno;
  if (status == HD_OK && s.count > 0) qsort(s.items, s.count, sizeof *s.items, compare_stamps);
  uint64_t limit = s.bytes > most ? goal : most;
  for (size_t i = 0; status == HD_OK && i < s.count && s.bytes > limit; i++) {
    bool removed = unlinkat(c->folders[CACHE_OBJECTS], s.items[i].path, 0) == 0;
    if (!removed && errno != ENOENT) {
      status = HD_IO;
      error = errno;
      break;
    }
    s.bytes -= s.items[i].size;
    if (!removed) continue; /* somebody else was faster */
    done.removed++;
    done.bytes += s.items[i].size;
  }
  free(s.items);
  done.left = s.bytes;
  pthread_mutex_lock(&c->mutex);
  c->counts.pruned += done.removed;
  pthread_mutex_unlock(&c->mutex);
  *out = done;
  errno = error;
  return status;
}

uint64_t cache_most_bytes(const cache *c) {
  return c->most_bytes;
}

hd_status cache_prune(cache *c, uint64_t most_bytes, cache_pruned *out_pruned, diags *errors) {
  cache_pruned done = {0};
  hd_status status = HD_OK;
  if (c->folders[CACHE_OBJECTS] >= 0) status = prune_to(c, most_bytes, most_bytes, &done);
  if (status == HD_IO)
    diags_errorf(errors, "cache.prune", NULL, "%s can't be pruned: %s", c->directory, strerror(errno));
  if (status == HD_OK) *out_pruned = done;
  return status;
}

/* The folder is measured on a process's first store, and then whenever it has stored a sixteenth of the cap;
 * what is removed leaves an eighth of it free, so that not every store removes something. */
void cache_keep_below_cap(cache *c, size_t stored) {
  uint64_t most = c->most_bytes;
  cache_pruned done;
  if (most == 0) return;
  pthread_mutex_lock(&c->mutex);
  c->unmeasured_bytes += stored;
  bool due = !c->measured || c->unmeasured_bytes > most / 16;
  if (due) {
    c->measured = true;
    c->unmeasured_bytes = 0;
  }
  pthread_mutex_unlock(&c->mutex);
  if (!due || prune_to(c, most, most - most / 8, &done) == HD_OK) return;
  cache_say(c, "cache.prune", "%s can't be kept below %llu bytes: %s", c->directory, (unsigned long long)most,
            strerror(errno));
}
