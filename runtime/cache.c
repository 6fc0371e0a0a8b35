#include "cache.h"
#include "../generator/sha256.h"
#include "cache_file.h"
#include "cache_parts.h"
#include "file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entries in memory: a hash map with chains. Newer ones come first, so a key stored again hides the older
 * entry, which stays valid for whoever holds it. */
struct memory_entry {
  memory_entry *next_in_bucket, *next_of_all;
  char key[65];
  char *key_text;
  descriptor descriptor;
  void *code_object;
  size_t code_object_size;
};

static const char *const folder_names[CACHE_FOLDER_COUNT] = {
#define X(name, text) text,
    CACHE_FOLDERS(X)
#undef X
};

void cache_warn(cache *c, const char *format, ...) {
  va_list args;
  pthread_mutex_lock(&c->mutex);
  if (!atomic_load_explicit(&c->warned, memory_order_relaxed)) {
    va_start(args, format);
    vsnprintf(c->warning, sizeof c->warning, format, args);
    va_end(args);
    atomic_store_explicit(&c->warned, true, memory_order_release);
  }
  pthread_mutex_unlock(&c->mutex);
}

/* The folder by the rules of cache_open; NULL when the environment names none. Owned by the caller. */
static char *default_directory(void) {
  static const struct {
    const char *variable, *suffix;
    bool absolute_only; /* the XDG base directory specification has relative paths ignored */
  } places[] = {
      {"HEDDLE_CACHE_DIR", "", false}, {"XDG_CACHE_HOME", "/heddle", true}, {"HOME", "/.cache/heddle", true}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    const char *value = getenv(places[i].variable);
    if (value == NULL || value[0] == '\0' || (places[i].absolute_only && value[0] != '/')) continue;
    text path;
    text_init(&path);
    text_add(&path, value);
    text_add(&path, places[i].suffix);
    return text_take(&path);
  }
  return NULL;
}

/* Whether only the caller can change what lies in a folder; says why not. */
static bool folder_is_safe(cache *c, int fd, const char *name) {
  struct stat facts;
  if (fstat(fd, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    cache_warn(c, "cache kept in memory: %s is no folder", name);
    return false;
  }
  if (facts.st_uid != geteuid()) {
    cache_warn(c, "cache kept in memory: %s belongs to user %ld, not to user %ld who runs this", name,
               (long)facts.st_uid, (long)geteuid());
    return false;
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    cache_warn(c,
               "cache kept in memory: %s can be written by others (mode %03o); chmod 700 it, and clear it if "
               "you did not "
               "mean that",
               name, (unsigned)facts.st_mode & 0777u);
    return false;
  }
  return true;
}

static int open_folder(cache *c, int at, const char *path, const char *name) {
  int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    cache_warn(c, "cache kept in memory: %s can't be opened: %s", name, strerror(errno));
    return -1;
  }
  if (folder_is_safe(c, fd, name)) return fd;
  close(fd);
  return -1;
}

/* Opens the cache folder and its sub-folders, making what is missing. False leaves `folders` at -1. */
static bool open_folders(cache *c, const char *directory) {
  if (file_make_folders(directory, 0700) != HD_OK) {
    cache_warn(c, "cache kept in memory: %s can't be made: %s", directory, strerror(errno));
    return false;
  }
  int root = open_folder(c, AT_FDCWD, directory, directory);
  if (root < 0) return false;
  bool good = true;
  for (int i = 0; good && i < CACHE_FOLDER_COUNT; i++) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", directory, folder_names[i]);
    if (mkdirat(root, folder_names[i], 0700) != 0 && errno != EEXIST &&
        faccessat(root, folder_names[i], F_OK, 0) != 0) {
      cache_warn(c, "cache kept in memory: %s can't be made: %s", name, strerror(errno));
      good = false;
      break;
    }
    c->folders[i] = open_folder(c, root, folder_names[i], name);
    good = c->folders[i] >= 0;
  }
  if (good && faccessat(c->folders[CACHE_OBJECTS], ".", W_OK, AT_EACCESS) == 0)
    c->writable = true;
  else if (good)
    cache_warn(c, "%s is read, but new kernels are kept in memory: %s", directory, strerror(errno));
  close(root);
  for (int i = 0; !good && i < CACHE_FOLDER_COUNT; i++) {
    if (c->folders[i] >= 0) close(c->folders[i]);
    c->folders[i] = -1;
  }
  return good;
}

hd_status cache_open(const char *directory, cache **out_cache, diags *errors) {
  cache *c = calloc(1, sizeof *c);
  if (c == NULL) return HD_OUT_OF_MEMORY;
  pthread_mutex_init(&c->mutex, NULL);
  for (int i = 0; i < CACHE_FOLDER_COUNT; i++)
    c->folders[i] = -1;
  c->bucket_count = 64;
  c->buckets = calloc(c->bucket_count, sizeof *c->buckets);
  char *path = directory != NULL ? strdup(directory) : default_directory();
  if (path == NULL || path[0] == '\0')
    cache_warn(c, "cache kept in memory: HEDDLE_CACHE_DIR, XDG_CACHE_HOME and HOME name no folder");
  bool usable = path != NULL && path[0] != '\0' && open_folders(c, path);
  if (!usable) {
    free(path);
    path = strdup("");
  }
  c->directory = path;
  if (c->buckets == NULL || c->directory == NULL) {
    cache_close(c);
    return HD_OUT_OF_MEMORY;
  }
  if (cache_warning(c)[0] != '\0')
    diags_addf(errors, DIAG_WARNING, "cache.folder", NULL, 0, 0, "%s", cache_warning(c));
  *out_cache = c;
  return HD_OK;
}

static void memory_entry_destroy(memory_entry *e) {
  if (e == NULL) return;
  free(e->key_text);
  free(e->code_object);
  free(e);
}

void cache_close(cache *c) {
  if (c == NULL) return;
  for (memory_entry *e = c->all; e != NULL;) {
    memory_entry *next = e->next_of_all;
    memory_entry_destroy(e);
    e = next;
  }
  for (int i = 0; i < CACHE_FOLDER_COUNT; i++) {
    if (c->folders[i] >= 0) close(c->folders[i]);
  }
  pthread_mutex_destroy(&c->mutex);
  free(c->buckets);
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

static void count(cache *c, uint64_t *counter) {
  pthread_mutex_lock(&c->mutex);
  ++*counter;
  pthread_mutex_unlock(&c->mutex);
}

/* The key is a hash already: its first digits spread well. */
static size_t bucket_of(const char *key, size_t bucket_count) {
  size_t hash = 0;
  for (int i = 0; i < 12; i++)
    hash = hash * 31 + (unsigned char)key[i];
  return hash % bucket_count;
}

/* The mutex is held. */
static memory_entry *memory_find(const cache *c, const char *key, const char *key_text) {
  memory_entry *e = c->buckets[bucket_of(key, c->bucket_count)];
  while (e != NULL && (strcmp(e->key, key) != 0 || strcmp(e->key_text, key_text) != 0))
    e = e->next_in_bucket;
  return e;
}

/* The mutex is held. Growing may fail: chains then get longer, nothing else. */
static void memory_grow(cache *c) {
  size_t bucket_count = c->bucket_count * 4;
  memory_entry **buckets = calloc(bucket_count, sizeof *buckets);
  if (buckets == NULL) return;
  for (size_t i = 0; i < c->bucket_count; i++) {
    /* Reversed twice: the order within a chain says which entry is newer. */
    memory_entry *chain = NULL;
    for (memory_entry *e = c->buckets[i], *next; e != NULL; e = next) {
      next = e->next_in_bucket;
      e->next_in_bucket = chain;
      chain = e;
    }
    for (memory_entry *e = chain, *next; e != NULL; e = next) {
      memory_entry **bucket = &buckets[bucket_of(e->key, bucket_count)];
      next = e->next_in_bucket;
      e->next_in_bucket = *bucket;
      *bucket = e;
    }
  }
  free(c->buckets);
  c->buckets = buckets;
  c->bucket_count = bucket_count;
}

/* Takes `e` over. */
static void memory_add(cache *c, memory_entry *e) {
  pthread_mutex_lock(&c->mutex);
  if (c->entry_count >= 2 * c->bucket_count) memory_grow(c);
  memory_entry **bucket = &c->buckets[bucket_of(e->key, c->bucket_count)];
  e->next_in_bucket = *bucket;
  *bucket = e;
  e->next_of_all = c->all;
  c->all = e;
  c->entry_count++;
  pthread_mutex_unlock(&c->mutex);
}

void cache_forget(cache *c) {
  pthread_mutex_lock(&c->mutex);
  memset(c->buckets, 0, c->bucket_count * sizeof *c->buckets);
  c->entry_count = 0;
  pthread_mutex_unlock(&c->mutex);
}

static cache_entry entry_of(const memory_entry *e) {
  return (cache_entry){
      .key_text = e->key_text,
      .descriptor = &e->descriptor,
      .code_object = e->code_object,
      .code_object_size = e->code_object_size,
  };
}

static memory_entry *memory_entry_create(const char *key, const char *key_text, size_t key_text_size,
                                         const void *code_object, size_t code_object_size) {
  memory_entry *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  memcpy(e->key, key, sizeof e->key);
  e->key_text = strndup(key_text, key_text_size);
  e->code_object = malloc(code_object_size > 0 ? code_object_size : 1);
  e->code_object_size = code_object_size;
  if (e->key_text == NULL || e->code_object == NULL) {
    memory_entry_destroy(e);
    return NULL;
  }
  if (code_object_size > 0) memcpy(e->code_object, code_object, code_object_size);
  return e;
}

void cache_entry_path(const char *key, char out_path[CACHE_PATH]) {
  snprintf(out_path, CACHE_PATH, "%.2s/%.64s", key, key);
}

void cache_quarantine_file(cache *c, const char *key) {
  char path[CACHE_PATH];
  cache_entry_path(key, path);
  /* One bad file a key is kept for whoever wants to look; where it can't be moved it is removed. */
  if (renameat(c->folders[CACHE_OBJECTS], path, c->folders[CACHE_QUARANTINE], key) != 0 && errno != ENOENT)
    unlinkat(c->folders[CACHE_OBJECTS], path, 0);
  count(c, &c->counts.quarantined);
}

/* Everything that is checked of a file before its code object is used. */
static hd_status entry_read(const char *key, const void *bytes, size_t size, memory_entry **out_entry) {
  diags errors; /* cache_list reports what is wrong; here only that something is */
  cache_file file;
  memory_entry *e = NULL;
  diags_init(&errors);
  hd_status status = cache_file_parse(bytes, size, &file, &errors);
  if (status == HD_OK) status = cache_file_check(bytes, size, &file, key, &errors);
  if (status == HD_OK) {
    e = memory_entry_create(key, file.key_text, file.key_text_size, file.code_object, file.code_object_size);
    status = e == NULL ? HD_OUT_OF_MEMORY
                       : descriptor_parse(file.descriptor, file.descriptor_size, &e->descriptor);
  }
  if (status == HD_OK)
    status = cache_check_code(&e->descriptor, e->code_object, e->code_object_size, &errors);
  diags_finish(&errors);
  if (status == HD_OK)
    *out_entry = e;
  else
    memory_entry_destroy(e);
  return status;
}

/* Opens an entry's file if it is one that only the caller can have written. */
static int entry_open(cache *c, const char *key) {
  char path[CACHE_PATH];
  struct stat facts;
  cache_entry_path(key, path);
  int fd = openat(c->folders[CACHE_OBJECTS], path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ELOOP) cache_quarantine_file(c, key);
    return -1;
  }
  if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
      (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return fd;
  close(fd);
  cache_quarantine_file(c, key);
  return -1;
}

/* HD_DECLINED: there is none, or a bad one that is now out of the way. */
static hd_status disk_find(cache *c, const char *key, memory_entry **out_entry) {
  if (c->folders[CACHE_OBJECTS] < 0) return HD_DECLINED;
  int fd = entry_open(c, key);
  if (fd < 0) return HD_DECLINED;
  char *bytes = NULL;
  size_t size = 0;
  hd_status status = file_read_fd(fd, CACHE_FILE_MOST, &bytes, &size);
  int error = errno;
  close(fd);
  if (status == HD_IO && error != EFBIG)
    return HD_DECLINED; /* a disk that can't be read now says nothing of the entry */
  if (status == HD_OK) status = entry_read(key, bytes, size, out_entry);
  free(bytes);
  if (status == HD_OK || status == HD_OUT_OF_MEMORY) return status;
  cache_quarantine_file(c, key);
  return HD_DECLINED;
}

hd_status cache_find(cache *c, const char *key_text, cache_entry *out_entry) {
  char key[65];
  sha256_hex(key_text, strlen(key_text), key);
  pthread_mutex_lock(&c->mutex);
  memory_entry *e = memory_find(c, key, key_text);
  if (e != NULL) {
    c->counts.memory_hits++;
    *out_entry = entry_of(e);
  }
  pthread_mutex_unlock(&c->mutex);
  if (e != NULL) return HD_OK;
  hd_status status = disk_find(c, key, &e);
  if (status == HD_OK) {
    cache_entry found = entry_of(e);
    memory_add(c, e);
    count(c, &c->counts.disk_hits);
    *out_entry = found;
  } else if (status == HD_DECLINED) {
    count(c, &c->counts.misses);
  }
  return status;
}

static hd_status disk_store(cache *c, const char *key, const cache_entry *entry) {
  char path[CACHE_PATH], folder[3] = {key[0], key[1], '\0'};
  text file;
  if (!c->writable) {
    errno = EROFS;
    return HD_IO;
  }
  text_init(&file);
  cache_entry_path(key, path);
  cache_file_write(entry->key_text, entry->descriptor, entry->code_object, entry->code_object_size, &file);
  hd_status status = file.failed ? HD_OUT_OF_MEMORY : HD_OK;
  if (status == HD_OK && mkdirat(c->folders[CACHE_OBJECTS], folder, 0700) != 0 && errno != EEXIST)
    status = HD_IO;
  if (status == HD_OK)
    status = file_write_atomic(c->folders[CACHE_OBJECTS], path, 0600, file.data, file.length);
  int error = errno;
  text_finish(&file);
  errno = error;
  return status;
}

hd_status cache_store(cache *c, const cache_entry *entry, cache_entry *out_stored) {
  char key[65];
  sha256_hex(entry->key_text, strlen(entry->key_text), key);
  memory_entry *e = memory_entry_create(key, entry->key_text, strlen(entry->key_text), entry->code_object,
                                        entry->code_object_size);
  if (e == NULL) return HD_OUT_OF_MEMORY;
  e->descriptor = *entry->descriptor;
  bool stored = c->folders[CACHE_OBJECTS] < 0 || disk_store(c, key, entry) == HD_OK;
  if (!stored)
    cache_warn(c, "new kernels are kept in memory: writing to %s failed: %s", c->directory, strerror(errno));
  count(c, stored ? &c->counts.stores : &c->counts.store_failures);
  if (out_stored != NULL) *out_stored = entry_of(e);
  memory_add(c, e);
  return HD_OK;
}
