#include "cache.h"
#include "../../generator/sha256.h"
#include "cache_file.h"
#include "cache_parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_MEGABYTES = 1024 };

void cache_say(cache *c, const char *code, const char *format, ...) {
  char line[sizeof c->warning];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (c->opening != NULL) diags_addf(c->opening, DIAG_WARNING, code, NULL, 0, 0, "%s", line);
  pthread_mutex_lock(&c->mutex);
  if (!atomic_load_explicit(&c->warned, memory_order_relaxed)) {
    memcpy(c->warning, line, sizeof line);
    atomic_store_explicit(&c->warned, true, memory_order_release);
  }
  cache_log_function log = c->log;
  void *user = c->log_user;
  pthread_mutex_unlock(&c->mutex);
  if (log != NULL) log(user, line);
}

void cache_set_log(cache *c, cache_log_function log, void *user) {
  pthread_mutex_lock(&c->mutex);
  c->log = log;
  c->log_user = user;
  pthread_mutex_unlock(&c->mutex);
}

/* HEDDLE_CACHE_MAX_BYTES; a word that is no number is reported and counts as the default. */
static uint64_t most_bytes(cache *c) {
  const uint64_t otherwise = (uint64_t)DEFAULT_MEGABYTES << 20;
  const char *value = getenv("HEDDLE_CACHE_MAX_BYTES");
  char *end;
  if (value == NULL || value[0] == '\0') return otherwise;
  errno = 0;
  unsigned long long bytes = strtoull(value, &end, 10);
  if (*end == '\0' && errno == 0 && value[0] >= '0' && value[0] <= '9') return bytes;
  cache_say(c, "cache.environment", "HEDDLE_CACHE_MAX_BYTES is \"%.40s\", which is no number of bytes",
            value);
  return otherwise;
}

static void open_directory(cache *c, const char *directory) {
  char *path = directory != NULL ? strdup(directory) : cache_default_directory();
  if (path == NULL && directory == NULL)
    cache_say(c, "cache.folder",
              "cache kept in memory: HEDDLE_CACHE_DIR, XDG_CACHE_HOME and HOME name no folder");
  if (path == NULL || path[0] == '\0' || !cache_open_folders(c, path)) {
    free(path);
    path = strdup("");
  }
  c->directory = path;
}

hd_status cache_open(const char *directory, cache **out_cache, diags *errors) {
  cache *c = calloc(1, sizeof *c);
  if (c == NULL) return HD_OUT_OF_MEMORY;
  pthread_mutex_init(&c->mutex, NULL);
  for (int i = 0; i < CACHE_FOLDER_COUNT; i++)
    c->folders[i] = -1;
  c->opening = errors;
  open_directory(c, directory);
  c->most_bytes = most_bytes(c);
  hd_status status = memory_init(c) && c->directory != NULL ? HD_OK : HD_OUT_OF_MEMORY;
  if (status == HD_OK) status = packs_open(c);
  if (status == HD_OK) status = tier_open(c);
  c->opening = NULL;
  if (status == HD_OK)
    *out_cache = c;
  else
    cache_close(c);
  return status;
}

void cache_close(cache *c) {
  if (c == NULL) return;
  tier_close(c->tier);
  packs_close(c);
  memory_finish(c);
  for (int i = 0; i < CACHE_FOLDER_COUNT; i++) {
    if (c->folders[i] >= 0) close(c->folders[i]);
  }
  pthread_mutex_destroy(&c->mutex);
  free(c->directory);
  free(c);
}

const char *cache_directory(const cache *c) {
  return c->directory;
}

const char *cache_warning(const cache *c) {
  return atomic_load_explicit(&c->warned, memory_order_acquire) ? c->warning : "";
}

void cache_counts_get(cache *c, cache_counts *out_counts) {
  pthread_mutex_lock(&c->mutex);
  *out_counts = c->counts;
  pthread_mutex_unlock(&c->mutex);
}

void cache_count(cache *c, uint64_t *counter) {
  pthread_mutex_lock(&c->mutex);
  ++*counter;
  pthread_mutex_unlock(&c->mutex);
}

hd_status cache_entry_read(const char *key, const void *bytes, size_t size, memory_entry **out_entry,
                           diags *errors) {
  cache_file file;
  descriptor *d = malloc(sizeof *d);
  if (d == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = cache_file_verify(bytes, size, key, &file, d, errors);
  memory_entry *e = NULL;
  if (status == HD_OK) {
    e = memory_entry_create(key, file.key_text, file.key_text_size, file.code_object, file.code_object_size);
    if (e == NULL) status = HD_OUT_OF_MEMORY;
  }
  if (status == HD_OK) {
    *memory_entry_descriptor(e) = *d;
    *out_entry = e;
  }
  free(d);
  return status;
}

/* What disk_store could not do is counted, and no failure; it is said once, until it can again. A folder that
 * is only read was reported when it was opened. */
static void store_file(cache *c, const char *key, const void *file, size_t size) {
  bool stored = c->folders[CACHE_OBJECTS] < 0 || disk_store(c, key, file, size) == HD_OK;
  const char *why = stored ? "" : strerror(errno);
  cache_count(c, stored ? &c->counts.stores : &c->counts.store_failures);
  if (atomic_exchange(&c->store_fails, !stored) || stored || !c->writable) return;
  cache_say(c, "cache.store", "new kernels are kept in memory: writing to %s failed: %s", c->directory, why);
}

static hd_status find_in_layers(cache *c, const char *key, memory_entry **out_entry) {
  char *bytes = NULL;
  size_t size = 0;
  uint64_t *counter = &c->counts.pack_hits;
  hd_status status = pack_find(c, key, out_entry);
  if (status == HD_DECLINED) {
    counter = &c->counts.disk_hits;
    status = disk_find(c, key, out_entry);
  }
  if (status == HD_DECLINED) {
    counter = &c->counts.tier_hits;
    status = tier_find(c, key, out_entry, &bytes, &size);
    if (status == HD_OK) store_file(c, key, bytes, size);
    free(bytes);
  }
  if (status == HD_OK || status == HD_DECLINED) cache_count(c, status == HD_OK ? counter : &c->counts.misses);
  return status;
}

/* Looks for a key; `key_text` may be NULL. */
static hd_status find_key(cache *c, const char *key, const char *key_text, cache_entry *out_entry) {
  pthread_mutex_lock(&c->mutex);
  memory_entry *e = memory_find(c, key, key_text);
  if (e != NULL) {
    c->counts.memory_hits++;
    *out_entry = memory_entry_view(e);
  }
  pthread_mutex_unlock(&c->mutex);
  if (e != NULL) return HD_OK;
  hd_status status = find_in_layers(c, key, &e);
  if (status == HD_OK) {
    *out_entry = memory_entry_view(e);
    memory_add(c, e);
  }
  return status;
}

hd_status cache_find(cache *c, const char *key_text, cache_entry *out_entry) {
  char key[65];
  sha256_hex(key_text, strlen(key_text), key);
  return find_key(c, key, key_text, out_entry);
}

hd_status cache_find_source(cache *c, const char *source, cache_entry *out_entry) {
  char source_key[65], key[65];
  pthread_mutex_lock(&c->mutex);
  memory_entry *e = memory_find_source(c, source);
  if (e != NULL) {
    c->counts.memory_hits++;
    *out_entry = memory_entry_view(e);
  }
  pthread_mutex_unlock(&c->mutex);
  if (e != NULL) return HD_OK;
  sha256_hex(source, strlen(source), source_key);
  if (!pack_find_source(c, source_key, key) && !disk_find_source(c, source, key)) return HD_DECLINED;
  cache_entry found;
  hd_status status = find_key(c, key, NULL, &found);
  /* The index of a pack may say of an entry what isn't so. */
  if (status == HD_OK && strncmp(found.key_text, source, strlen(source)) != 0) status = HD_DECLINED;
  if (status == HD_OK) *out_entry = found;
  return status;
}

hd_status cache_store(cache *c, const cache_entry *entry, cache_entry *out_stored) {
  char key[65];
  text file;
  sha256_hex(entry->key_text, strlen(entry->key_text), key);
  memory_entry *e = memory_entry_create(key, entry->key_text, strlen(entry->key_text), entry->code_object,
                                        entry->code_object_size);
  if (e == NULL) return HD_OUT_OF_MEMORY;
  *memory_entry_descriptor(e) = *entry->descriptor;
  text_init(&file);
  cache_file_write(entry->key_text, entry->descriptor, entry->code_object, entry->code_object_size, &file);
  if (!file.failed) store_file(c, key, file.data, file.length);
  text_finish(&file);
  if (out_stored != NULL) *out_stored = memory_entry_view(e);
  memory_add(c, e);
  return HD_OK;
}

hd_status cache_import(cache *c, const char *key, const void *bytes, size_t size, diags *errors) {
  cache_file file;
  descriptor *d = malloc(sizeof *d);
  if (d == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = cache_file_verify(bytes, size, key, &file, d, errors);
  free(d);
  if (status != HD_OK) return status;
  status = c->folders[CACHE_OBJECTS] < 0 ? HD_UNAVAILABLE : disk_store(c, key, bytes, size);
  if (status == HD_IO)
    diags_errorf(errors, "cache.store", NULL, "writing to %s failed: %s", c->directory, strerror(errno));
  return status;
}
