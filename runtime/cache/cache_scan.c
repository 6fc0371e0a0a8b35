/* Going through every entry of the packs and the user's folder: list, verify, search, clear. */
#include "cache_file.h"
#include "../../generator/sha256.h"
#include "cache_parts.h"
#include "../file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The names in a folder, sorted; "." and ".." left out. */
typedef struct names {
  char **items;
  size_t count;
} names;

static void names_finish(names *n) {
  for (size_t i = 0; i < n->count; i++)
    free(n->items[i]);
  free(n->items);
  *n = (names){0};
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static hd_status names_read(int at, const char *path, names *out_names) {
  names n = {0};
  int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (folder == NULL) {
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return HD_IO;
  }
  hd_status status = HD_OK;
  for (struct dirent *d; status == HD_OK && (d = readdir(folder)) != NULL;) {
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
    char **grown = realloc(n.items, (n.count + 1) * sizeof *n.items);
    if (grown != NULL) n.items = grown;
    char *name = grown != NULL ? strdup(d->d_name) : NULL;
    if (name == NULL)
      status = HD_OUT_OF_MEMORY;
    else
      n.items[n.count++] = name;
  }
  closedir(folder);
  if (status != HD_OK) {
    names_finish(&n);
    return status;
  }
  if (n.count > 0) qsort(n.items, n.count, sizeof *n.items, compare_names);
  *out_names = n;
  return HD_OK;
}

hd_status cache_each_file(cache *c,
                          hd_status (*visit)(cache *c, const char *folder, const char *name, void *user),
                          void *user) {
  names folders = {0};
  hd_status status = names_read(c->folders[CACHE_OBJECTS], ".", &folders);
  for (size_t i = 0; status == HD_OK && i < folders.count; i++) {
    names files = {0};
    if (names_read(c->folders[CACHE_OBJECTS], folders.items[i], &files) != HD_OK)
      continue; /* no folder, or gone */
    for (size_t k = 0; status == HD_OK && k < files.count; k++)
      status = visit(c, folders.items[i], files.items[k], user);
    names_finish(&files);
  }
  names_finish(&folders);
  return status;
}

/* A pipe or link in an entry's place is looked at by nobody. */
static hd_status cache_read_file(cache *c, const char *path, char **out_bytes, size_t *out_size) {
  int fd = openat(c->folders[CACHE_OBJECTS], path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return HD_IO;
  hd_status status = file_read_fd(fd, CACHE_FILE_MOST, out_bytes, out_size);
  int error = errno;
  close(fd);
  errno = error;
  return status;
}

hd_status cache_each_name(int folder, void (*visit)(int folder, const char *name, void *user), void *user) {
  names n = {0};
  hd_status status = names_read(folder, ".", &n);
  for (size_t i = 0; status == HD_OK && i < n.count; i++)
    visit(folder, n.items[i], user);
  names_finish(&n);
  return status;
}

typedef struct listing {
  bool verify;
  void (*visit)(void *user, const cache_item *item);
  void *user;
} listing;

/* A value that comes from a file goes to a terminal: control characters don't. */
static void copy_field(char *out, size_t size, const char *from) {
  size_t i = 0;
  for (; i + 1 < size && from[i] != '\0'; i++)
    out[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
  out[i] = '\0';
}

static hd_status item_read(const char *bytes, size_t size, const listing *l, cache_item *item,
                           diags *errors) {
  cache_file file;
  descriptor *d = malloc(sizeof *d);
  if (d == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = cache_file_parse(bytes, size, &file, errors);
  if (status == HD_OK) {
    status = descriptor_parse(file.descriptor, file.descriptor_size, d);
    item->stale = status == HD_INVALID && cache_file_check(bytes, size, &file, item->key, errors) == HD_OK &&
                  descriptor_is_of_another_version(file.descriptor, file.descriptor_size);
    if (status == HD_INVALID)
      diags_errorf(errors, "cache.descriptor", NULL,
                   item->stale ? "another version of heddle made it" : "its launch descriptor can't be read");
  }
  if (status == HD_OK) {
    copy_field(item->operation, sizeof item->operation, d->operation);
    copy_field(item->target, sizeof item->target, d->target);
    copy_field(item->variant, sizeof item->variant, d->variant);
    copy_field(item->contract_key, sizeof item->contract_key, d->contract_key);
  }
  if (status == HD_OK && l->verify) status = cache_file_verify(bytes, size, item->key, &file, d, errors);
  free(d);
  return status;
}

static bool is_entry(const char *folder, const char *name) {
  return sha256_is_hex(name) && strncmp(folder, name, 2) == 0 && folder[2] == '\0';
}

/* Judges what was read, or the failure to, and shows it. */
static hd_status list_item(const listing *l, const char *pack, const char *key, const char *bytes,
                           size_t size, hd_status status, diags *errors) {
  cache_item item = {.pack = pack, .size = size};
  memcpy(item.key, key, sizeof item.key);
  if (status == HD_OK) status = item_read(bytes, size, l, &item, errors);
  item.good = status == HD_OK;
  if (errors->count > 0) copy_field(item.problem, sizeof item.problem, errors->items[0].message);
  if (status == HD_OUT_OF_MEMORY) return status;
  l->visit(l->user, &item);
  return HD_OK;
}

static hd_status list_file(cache *c, const char *folder, const char *name, void *user) {
  char path[CACHE_PATH], *bytes = NULL;
  size_t size = 0;
  if (!is_entry(folder, name)) return HD_OK;
  diags errors;
  diags_init(&errors);
  cache_entry_path(name, path);
  hd_status status = cache_read_file(c, path, &bytes, &size);
  bool gone = status == HD_IO && errno == ENOENT;
  if (status == HD_IO) diags_errorf(&errors, "cache.read", NULL, "can't be read: %s", strerror(errno));
  status = gone ? HD_OK : list_item(user, NULL, name, bytes, size, status, &errors);
  free(bytes);
  diags_finish(&errors);
  return status;
}

static hd_status list_packed(void *user, const char *pack, const char *key, const char *bytes, size_t size) {
  diags errors;
  diags_init(&errors);
  hd_status status = list_item(user, pack, key, bytes, size, HD_OK, &errors);
  diags_finish(&errors);
  return status;
}

static void report_read(const cache *c, hd_status status, diags *errors) {
  if (status == HD_IO && errors->count == 0)
    diags_errorf(errors, "cache.read", NULL, "%s can't be read: %s", c->directory, strerror(errno));
}

hd_status cache_list(cache *c, bool verify, void (*visit)(void *user, const cache_item *item), void *user,
                     diags *errors) {
  listing l = {.verify = verify, .visit = visit, .user = user};
  hd_status status = packs_each(c, list_packed, &l, errors);
  if (status != HD_OK || c->folders[CACHE_OBJECTS] < 0) return status;
  status = cache_each_file(c, list_file, &l);
  report_read(c, status, errors);
  return status;
}

/* ---- Every entry's bytes ---- */

typedef struct tour {
  bool (*visit)(void *user, const char *place, const char *key, const void *bytes, size_t size);
  void *user;
  bool over;
} tour;

static hd_status tour_packed(void *user, const char *pack, const char *key, const char *bytes, size_t size) {
  tour *t = user;
  if (!t->over) t->over = !t->visit(t->user, pack, key, bytes, size);
  return HD_OK;
}

static hd_status tour_file(cache *c, const char *folder, const char *name, void *user) {
  tour *t = user;
  char path[CACHE_PATH], *bytes = NULL;
  size_t size = 0;
  if (t->over || !is_entry(folder, name)) return HD_OK;
  cache_entry_path(name, path);
  hd_status status = cache_read_file(c, path, &bytes, &size);
  if (status == HD_OK) t->over = !t->visit(t->user, c->directory, name, bytes, size);
  free(bytes);
  return status == HD_OUT_OF_MEMORY ? status : HD_OK; /* gone, or not to be read */
}

hd_status cache_each_entry(cache *c,
                           bool (*visit)(void *user, const char *place, const char *key, const void *bytes,
                                         size_t size),
                           void *user, diags *errors) {
  tour t = {.visit = visit, .user = user};
  hd_status status = packs_each(c, tour_packed, &t, errors);
  if (status != HD_OK || c->folders[CACHE_OBJECTS] < 0) return status;
  status = cache_each_file(c, tour_file, &t);
  report_read(c, status, errors);
  return status;
}

typedef struct search {
  const char *source;
  char key[65];
} search;

static bool has_source(void *user, const char *place, const char *key, const void *bytes, size_t size) {
  search *s = user;
  cache_file file;
  diags ignored;
  (void)place;
  diags_init(&ignored);
  bool found = cache_file_parse(bytes, size, &file, &ignored) == HD_OK &&
               file.key_text_size > strlen(s->source) &&
               memcmp(file.key_text, s->source, strlen(s->source)) == 0;
  diags_finish(&ignored);
  if (found) memcpy(s->key, key, sizeof s->key);
  return !found;
}

bool disk_find_source(cache *c, const char *source, char out_key[65]) {
  search s = {.source = source};
  tour t = {.visit = has_source, .user = &s};
  if (c->folders[CACHE_OBJECTS] < 0) return false;
  cache_each_file(c, tour_file, &t);
  if (s.key[0] != '\0') memcpy(out_key, s.key, sizeof s.key);
  return s.key[0] != '\0';
}

typedef struct clearing {
  size_t removed;
  int error; /* the first */
} clearing;

static void clear_one(int at, const char *path, bool counts, clearing *state) {
  if (unlinkat(at, path, 0) == 0 || (errno == EISDIR && unlinkat(at, path, AT_REMOVEDIR) == 0))
    state->removed += counts;
  else if (errno != ENOENT && state->error == 0)
    state->error = errno;
}

static hd_status clear_file(cache *c, const char *folder, const char *name, void *user) {
  text path;
  text_init(&path);
  text_addf(&path, "%s/%s", folder, name);
  if (!path.failed) clear_one(c->folders[CACHE_OBJECTS], text_string(&path), sha256_is_hex(name), user);
  hd_status status = path.failed ? HD_OUT_OF_MEMORY : HD_OK;
  text_finish(&path);
  return status;
}

/* The files of a flat folder. */
static hd_status clear_folder(int at, clearing *state) {
  names n = {0};
  hd_status status = names_read(at, ".", &n);
  for (size_t i = 0; status == HD_OK && i < n.count; i++)
    clear_one(at, n.items[i], false, state);
  names_finish(&n);
  return status;
}

static hd_status remove_empty_folders(int at) {
  names n = {0};
  hd_status status = names_read(at, ".", &n);
  for (size_t i = 0; status == HD_OK && i < n.count; i++)
    unlinkat(at, n.items[i], AT_REMOVEDIR); /* one that isn't empty has just got a new entry */
  names_finish(&n);
  return status;
}

hd_status cache_clear(cache *c, size_t *out_count, diags *errors) {
  clearing state = {0};
  hd_status status = HD_OK;
  cache_forget(c);
  if (c->folders[CACHE_OBJECTS] >= 0) {
    status = cache_each_file(c, clear_file, &state);
    if (status == HD_OK) status = clear_folder(c->folders[CACHE_QUARANTINE], &state);
    if (status == HD_OK) status = clear_folder(c->folders[CACHE_LOCKS], &state);
    if (status == HD_OK) status = remove_empty_folders(c->folders[CACHE_OBJECTS]);
    if (status == HD_OK && state.error != 0) {
      status = HD_IO;
      errno = state.error;
    }
    if (status == HD_IO)
      diags_errorf(errors, "cache.clear", NULL, "%s can't be cleared: %s", c->directory, strerror(errno));
  }
  if (status == HD_OK) *out_count = state.removed;
  return status;
}
