/* Entries as files of the user's folder. */
#include "../../generator/sha256.h"
#include "cache_file.h"
#include "cache_parts.h"
#include "../file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* An entry's stamp, its file's modification time, says when it was last of use; it is renewed at most once in
 * so many seconds, so that a cache in use is hardly written to. */
enum { STAMP_SECONDS = 3600 };

void cache_entry_path(const char *key, char out_path[CACHE_PATH]) {
  snprintf(out_path, CACHE_PATH, "%.2s/%.64s", key, key);
}

void cache_quarantine_file(cache *c, const char *key, const char *why) {
  char path[CACHE_PATH];
  int objects = c->folders[CACHE_OBJECTS], quarantine = c->folders[CACHE_QUARANTINE];
  cache_entry_path(key, path);
  /* One bad file a key is kept for whoever wants to look; where it can't be moved it is removed. */
  bool moved = renameat(objects, path, quarantine, key) == 0;
  if (!moved && errno != ENOENT) {
    /* A folder can't replace a file, nor a file a folder. */
    if (unlinkat(quarantine, key, 0) != 0) unlinkat(quarantine, key, AT_REMOVEDIR);
    moved = renameat(objects, path, quarantine, key) == 0 || unlinkat(objects, path, 0) == 0 ||
            unlinkat(objects, path, AT_REMOVEDIR) == 0 || errno == ENOENT;
    if (!moved) moved = faccessat(objects, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  }
  cache_count(c, &c->counts.quarantined);
  cache_say(c, "cache.quarantine", "entry %.12s of %s is not used: %s; %s", key, c->directory, why,
            moved ? "moved to quarantine" : "it can't be moved away");
}

static void renew_stamp(int fd, const struct stat *facts) {
  time_t now = time(NULL);
  if (now - facts->st_mtime > STAMP_SECONDS || facts->st_mtime - now > STAMP_SECONDS)
    futimens(fd, NULL); /* in a folder that is only read it stays as it is */
}

/* Opens an entry's file if it is one that only the caller can have written. */
static int entry_open(cache *c, const char *key) {
  char path[CACHE_PATH];
  struct stat facts;
  const char *why = "a symbolic link";
  cache_entry_path(key, path);
  int fd = openat(c->folders[CACHE_OBJECTS], path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno != ELOOP && errno != ENXIO) return -1;
  if (fd < 0 && errno == ENXIO) why = "no regular file"; /* a socket */
  if (fd >= 0) {
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
      why = "no regular file";
    else if (facts.st_uid != geteuid())
      why = "another user's file";
    else if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      why = "others can write it";
    else {
      renew_stamp(fd, &facts);
      return fd;
    }
    close(fd);
  }
  cache_quarantine_file(c, key, why);
  return -1;
}

hd_status disk_find(cache *c, const char *key, memory_entry **out_entry) {
  if (c->folders[CACHE_OBJECTS] < 0) return HD_DECLINED;
  int fd = entry_open(c, key);
  if (fd < 0) return HD_DECLINED;
  char *bytes = NULL;
  size_t size = 0;
  diags problems;
  hd_status status = file_read_fd(fd, CACHE_FILE_MOST, &bytes, &size);
  int error = errno;
  close(fd);
  if (status == HD_IO && error != EFBIG) { /* a disk that can't be read now says nothing of the entry */
    cache_say(c, "cache.read", "entry %.12s of %s can't be read: %s", key, c->directory, strerror(error));
    return HD_DECLINED;
  }
  diags_init(&problems);
  if (status == HD_OK) status = cache_entry_read(key, bytes, size, out_entry, &problems);
  free(bytes);
  if (status != HD_OK && status != HD_OUT_OF_MEMORY) {
    cache_quarantine_file(c, key, problems.count > 0 ? problems.items[0].message : "it is too large");
    status = HD_DECLINED;
  }
  diags_finish(&problems);
  return status;
}

hd_status disk_store(cache *c, const char *key, const void *file, size_t size) {
  char path[CACHE_PATH], folder[3] = {key[0], key[1], '\0'};
  if (!c->writable) {
    errno = EROFS;
    return HD_IO;
  }
  cache_entry_path(key, path);
  if (mkdirat(c->folders[CACHE_OBJECTS], folder, 0700) != 0 && errno != EEXIST) return HD_IO;
  hd_status status = file_write_atomic(c->folders[CACHE_OBJECTS], path, 0600, file, size);
  if (status == HD_OK) cache_keep_below_cap(c, size);
  return status;
}
