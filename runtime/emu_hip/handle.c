/* The set of live handles, sorted by address: a handle that was destroyed, or never was one, is an error code
 * and not a crash. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  const void *handle;
  hipemu_kind kind;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;
static size_t count, capacity;

static const char *const kinds[] = {"stream", "event", "module", "function", "graph", "executable graph"};

/* Where `handle` is or belongs. */
static size_t position(const void *handle) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)entries[middle].handle < (uintptr_t)handle)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool hipemu_handle_add(const void *handle, hipemu_kind kind) {
  pthread_mutex_lock(&lock);
  bool fine = true;
  if (count == capacity) {
    size_t more = capacity ? 2 * capacity : 64;
    entry *grown = realloc(entries, more * sizeof *grown);
    fine = grown != NULL;
    if (fine) {
      entries = grown;
      capacity = more;
    }
  }
  if (fine) {
    size_t at = position(handle);
    memmove(entries + at + 1, entries + at, (count - at) * sizeof *entries);
    entries[at] = (entry){handle, kind};
    ++count;
  }
  pthread_mutex_unlock(&lock);
  return fine;
}

static bool find(const void *handle, hipemu_kind kind, bool remove) {
  pthread_mutex_lock(&lock);
  size_t at = position(handle);
  bool found = at < count && entries[at].handle == handle && entries[at].kind == kind;
  if (found && remove) {
    memmove(entries + at, entries + at + 1, (count - at - 1) * sizeof *entries);
    --count;
  }
  pthread_mutex_unlock(&lock);
  if (!found) hipemu_log("hip.handle", "%p is no live %s", handle, kinds[kind]);
  return found;
}

bool hipemu_handle_check(const void *handle, hipemu_kind kind) {
  return find(handle, kind, false);
}

bool hipemu_handle_remove(const void *handle, hipemu_kind kind) {
  return find(handle, kind, true);
}
