/* Going through every file of the user directory: list, verify, clear. */
#include "cache_file.h"
#include "cache_parts.h"
#include "file.h"
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

static bool is_key(const char *name) {
  return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Calls `visit` for every file of objects/ that lies where an entry or an unfinished file does. */
static hd_status each_file(cache *c,
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
    if (status == HD_INVALID)
      diags_errorf(errors, "cache.descriptor", NULL, "its launch descriptor can't be read");
  }
  if (status == HD_OK) {
    copy_field(item->operation, sizeof item->operation, d->operation);
    copy_field(item->target, sizeof item->target, d->target);
    copy_field(item->variant, sizeof item->variant, d->variant);
    copy_field(item->contract_key, sizeof item->contract_key, d->contract_key);
  }
  if (status == HD_OK && l->verify) status = cache_file_check(bytes, size, &file, item->key, errors);
  if (status == HD_OK && l->verify)
    status = cache_check_code(d, file.code_object, file.code_object_size, errors);
  free(d);
  return status;
}

static hd_status list_file(cache *c, const char *folder, const char *name, void *user) {
  const listing *l = user;
  char path[CACHE_PATH], *bytes = NULL;
  size_t size = 0;
  if (!is_key(name) || strncmp(folder, name, 2) != 0 || folder[2] != '\0') return HD_OK;
  cache_item item = {0};
  diags errors;
  diags_init(&errors);
  memcpy(item.key, name, sizeof item.key);
  cache_entry_path(name, path);
  hd_status status = file_read(c->folders[CACHE_OBJECTS], path, CACHE_FILE_MOST, &bytes, &size);
  bool gone = status == HD_IO && errno == ENOENT;
  if (status == HD_IO) diags_errorf(&errors, "cache.read", NULL, "can't be read: %s", strerror(errno));
  if (status == HD_OK) status = item_read(bytes, size, l, &item, &errors);
  item.size = size;
  item.good = status == HD_OK;
  if (errors.count > 0) copy_field(item.problem, sizeof item.problem, errors.items[0].message);
  free(bytes);
  diags_finish(&errors);
  if (status == HD_OUT_OF_MEMORY) return status;
  if (!gone) l->visit(l->user, &item);
  return HD_OK;
}

hd_status cache_list(cache *c, bool verify, void (*visit)(void *user, const cache_item *item), void *user,
                     diags *errors) {
  listing l = {.verify = verify, .visit = visit, .user = user};
  if (c->folders[CACHE_OBJECTS] < 0) return HD_OK;
  hd_status status = each_file(c, list_file, &l);
  if (status == HD_IO)
    diags_errorf(errors, "cache.read", NULL, "%s can't be read: %s", c->directory, strerror(errno));
  return status;
}

typedef struct clearing {
  size_t removed;
  int error; /* the first */
} clearing;

static void clear_one(int at, const char *path, bool counts, clearing *state) {
  if (unlinkat(at, path, 0) == 0)
    state->removed += counts;
  else if (errno != ENOENT && state->error == 0)
    state->error = errno;
}

static hd_status clear_file(cache *c, const char *folder, const char *name, void *user) {
  text path;
  text_init(&path);
  text_addf(&path, "%s/%s", folder, name);
  if (!path.failed) clear_one(c->folders[CACHE_OBJECTS], text_string(&path), is_key(name), user);
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
    status = each_file(c, clear_file, &state);
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
