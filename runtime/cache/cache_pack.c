/* Packs: read-only files of entries in front of the user's folder. */
#include "cache_file.h"
#include "cache_parts.h"
#include "../file.h"
#include "pack_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cache_pack {
  cache_pack *next;
  char *path;
  int fd; /* read with pread: any number of threads at a time */
  void *index;
};

static void pack_close(cache_pack *p) {
  if (p == NULL) return;
  if (p->fd >= 0) close(p->fd);
  free(p->index);
  free(p->path);
  free(p);
}

void packs_close(cache *c) {
  for (cache_pack *p = c->packs; p != NULL;) {
    cache_pack *next = p->next;
    pack_close(p);
    p = next;
  }
}

static hd_status read_at(int fd, uint64_t offset, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ENODATA; /* it was cut since it was opened */
    if (got <= 0) return HD_IO;
    done += (size_t)got;
  }
  return HD_OK;
}

/* Who can write a pack runs code in its readers: that may be root, who installs programs too, or the caller.
 */
static hd_status check_owner(const struct stat *facts, const char *path, diags *errors) {
  if (!S_ISREG(facts->st_mode)) {
    diags_errorf(errors, "cache.pack", NULL, "the pack %s is no regular file", path);
    return HD_INVALID;
  }
  if (facts->st_uid != 0 && facts->st_uid != geteuid()) {
    diags_errorf(
        errors, "cache.pack", NULL,
        "the pack %s is not used: it belongs to user %ld, neither to root nor to user %ld who runs this",
        path, (long)facts->st_uid, (long)geteuid());
    return HD_INVALID;
  }
  if ((facts->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    diags_errorf(errors, "cache.pack", NULL,
                 "the pack %s is not used: it can be written by others (mode %03o); chmod go-w", path,
                 (unsigned)facts->st_mode & 0777u);
    return HD_INVALID;
  }
  return HD_OK;
}

static hd_status read_index(cache_pack *p, uint64_t file_size, diags *errors) {
  unsigned char header[PACK_HEADER] = {0};
  size_t size = 0;
  diags problems;
  diags_init(&problems);
  hd_status status = file_size >= sizeof header ? read_at(p->fd, 0, header, sizeof header) : HD_OK;
  if (status == HD_OK) status = pack_index_size(header, file_size, &size, &problems);
  if (status == HD_OK) {
    p->index = malloc(size);
    status = p->index == NULL ? HD_OUT_OF_MEMORY : read_at(p->fd, 0, p->index, size);
  }
  if (status == HD_IO)
    diags_errorf(errors, "cache.pack", NULL, "the pack %s can't be read: %s", p->path, strerror(errno));
  /* The file may be changing: what was read the second time is what counts. */
  if (status == HD_OK && memcmp(p->index, header, sizeof header) != 0) status = HD_INVALID;
  if (status == HD_OK) status = pack_index_check(p->index, size, &problems);
  if (status == HD_INVALID)
    diags_errorf(errors, "cache.pack", NULL, "the pack %s is not used: %s", p->path,
                 problems.count > 0 ? problems.items[0].message : "it changes while it is read");
  diags_finish(&problems);
  return status;
}

static hd_status pack_open(const char *path, cache_pack **out_pack, diags *errors) {
  cache_pack *p = calloc(1, sizeof *p);
  struct stat facts;
  if (p == NULL) return HD_OUT_OF_MEMORY;
  p->path = strdup(path);
  p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  hd_status status = p->path != NULL ? HD_OK : HD_OUT_OF_MEMORY;
  if (status == HD_OK && (p->fd < 0 || fstat(p->fd, &facts) != 0)) {
    diags_errorf(errors, "cache.pack", NULL, "the pack %s can't be opened: %s", path, strerror(errno));
    status = HD_IO;
  }
  if (status == HD_OK) status = check_owner(&facts, path, errors);
  if (status == HD_OK) status = read_index(p, (uint64_t)facts.st_size, errors);
  if (status == HD_OK)
    *out_pack = p;
  else
    pack_close(p);
  return status;
}

hd_status cache_add_pack(cache *c, const char *path, diags *errors) {
  cache_pack *p, **last = &c->packs;
  hd_status status = pack_open(path, &p, errors);
  if (status != HD_OK) return status;
  while (*last != NULL)
    last = &(*last)->next;
  *last = p;
  return HD_OK;
}

hd_status packs_open(cache *c) {
  const char *list = getenv("HEDDLE_PACKS");
  hd_status status = HD_OK;
  while (list != NULL && *list != '\0' && status == HD_OK) {
    size_t length = strcspn(list, ":");
    char *path = strndup(list, length);
    diags problems;
    diags_init(&problems);
    status = path == NULL ? HD_OUT_OF_MEMORY : HD_OK;
    if (status == HD_OK && length > 0) status = cache_add_pack(c, path, &problems);
    if (problems.count > 0) cache_say(c, "cache.pack", "%s", problems.items[0].message);
    if (status != HD_OUT_OF_MEMORY) status = HD_OK;
    diags_finish(&problems);
    free(path);
    list += length + (list[length] == ':');
  }
  return status;
}

/* `*out_bytes` is the caller's. */
static hd_status read_entry(const cache_pack *p, const pack_row *row, char **out_bytes) {
  char *bytes = malloc((size_t)row->size);
  if (bytes == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = read_at(p->fd, row->offset, bytes, (size_t)row->size);
  int error = errno;
  if (status == HD_OK)
    *out_bytes = bytes;
  else
    free(bytes);
  errno = error;
  return status;
}

static hd_status find_in_pack(cache *c, const cache_pack *p, const pack_row *row, memory_entry **out_entry) {
  char *bytes = NULL;
  diags problems;
  diags_init(&problems);
  hd_status status = read_entry(p, row, &bytes);
  if (status == HD_IO) diags_errorf(&problems, "cache.read", NULL, "it can't be read: %s", strerror(errno));
  if (status == HD_OK) status = cache_entry_read(row->key, bytes, (size_t)row->size, out_entry, &problems);
  if (status != HD_OK && status != HD_OUT_OF_MEMORY) {
    cache_say(c, "cache.pack", "entry %.12s of the pack %s is not used: %s", row->key, p->path,
              problems.count > 0 ? problems.items[0].message : hd_status_text(status));
    status = HD_DECLINED;
  }
  diags_finish(&problems);
  free(bytes);
  return status;
}

hd_status pack_find(cache *c, const char *key, memory_entry **out_entry) {
  for (const cache_pack *p = c->packs; p != NULL; p = p->next) {
    size_t i;
    if (!pack_find_key(p->index, key, &i)) continue;
    pack_row row = pack_row_at(p->index, i);
    hd_status status = find_in_pack(c, p, &row, out_entry);
    if (status != HD_DECLINED) return status;
  }
  return HD_DECLINED;
}

bool pack_find_source(const cache *c, const char *source_key, char out_key[65]) {
  for (const cache_pack *p = c->packs; p != NULL; p = p->next) {
    size_t i;
    if (!pack_find_source_key(p->index, source_key, &i)) continue;
    pack_row row = pack_row_at(p->index, i);
    memcpy(out_key, row.key, sizeof row.key);
    return true;
  }
  return false;
}

hd_status packs_each(const cache *c,
                     hd_status (*visit)(void *user, const char *pack, const char *key, const char *bytes,
                                        size_t size),
                     void *user, diags *errors) {
  hd_status status = HD_OK;
  for (const cache_pack *p = c->packs; p != NULL && status == HD_OK; p = p->next) {
    size_t count = pack_count(p->index);
    for (size_t i = 0; i < count && status == HD_OK; i++) {
      pack_row row = pack_row_at(p->index, i);
      char *bytes = NULL;
      status = read_entry(p, &row, &bytes);
      if (status == HD_IO)
        diags_errorf(errors, "cache.read", NULL, "the pack %s can't be read: %s", p->path, strerror(errno));
      if (status == HD_OK) status = visit(user, p->path, row.key, bytes, (size_t)row.size);
      free(bytes);
    }
  }
  return status;
}

void packs_write(const cache *c, text *out) {
  for (const cache_pack *p = c->packs; p != NULL; p = p->next)
    text_addf(out, "%spack %s", out->length > 0 ? ", " : "", p->path);
}
