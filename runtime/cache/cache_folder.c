/* The user's folder: which one, whether it may be used, and its sub-folders. */
#include "cache_parts.h"
#include "../file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folder_names[CACHE_FOLDER_COUNT] = {
#define X(name, text) text,
    CACHE_FOLDERS(X)
#undef X
};

char *cache_default_directory(void) {
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
    cache_say(c, "cache.folder", "cache kept in memory: %s is no folder", name);
    return false;
  }
  if (facts.st_uid != geteuid()) {
    cache_say(c, "cache.folder",
              "cache kept in memory: %s belongs to user %ld, not to user %ld who runs this", name,
              (long)facts.st_uid, (long)geteuid());
    return false;
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    cache_say(c, "cache.folder",
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
    cache_say(c, "cache.folder", "cache kept in memory: %s can't be opened: %s", name, strerror(errno));
    return -1;
  }
  if (folder_is_safe(c, fd, name)) return fd;
  close(fd);
  return -1;
}

bool cache_open_folders(cache *c, const char *directory) {
  if (file_make_folders(directory, 0700) != HD_OK) {
    cache_say(c, "cache.folder", "cache kept in memory: %s can't be made: %s", directory, strerror(errno));
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
      cache_say(c, "cache.folder", "cache kept in memory: %s can't be made: %s", name, strerror(errno));
      good = false;
      break;
    }
    c->folders[i] = open_folder(c, root, folder_names[i], name);
    good = c->folders[i] >= 0;
  }
  if (good && faccessat(c->folders[CACHE_OBJECTS], ".", W_OK, AT_EACCESS) == 0)
    c->writable = true;
  else if (good)
    cache_say(c, "cache.folder", "%s is read, but new kernels are kept in memory: %s", directory,
              strerror(errno));
  close(root);
  for (int i = 0; !good && i < CACHE_FOLDER_COUNT; i++) {
    if (c->folders[i] >= 0) close(c->folders[i]);
    c->folders[i] = -1;
  }
  return good;
}
