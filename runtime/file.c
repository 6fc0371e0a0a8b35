#include "file.h"
#include "../generator/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static hd_status fail(int error) {
  errno = error;
  return HD_IO;
}

hd_status file_read_fd(int fd, size_t most, char **out_bytes, size_t *out_size) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return HD_IO;
  if (!S_ISREG(facts.st_mode)) return fail(EINVAL);
  if (facts.st_size < 0 || (uintmax_t)facts.st_size > most) return fail(EFBIG);
  size_t size = (size_t)facts.st_size, done = 0;
  char *bytes = malloc(size + 1);
  if (bytes == NULL) return HD_OUT_OF_MEMORY;
  while (done < size) {
    ssize_t got = read(fd, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      int error = errno;
      free(bytes);
      return fail(error);
    }
    if (got == 0) break; /* it shrank */
    done += (size_t)got;
  }
  bytes[done] = '\0';
  *out_bytes = bytes;
  *out_size = done;
  return HD_OK;
}

hd_status file_read(int at, const char *path, size_t most, char **out_bytes, size_t *out_size) {
  int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return HD_IO;
  hd_status status = file_read_fd(fd, most, out_bytes, out_size);
  int error = errno;
  close(fd);
  errno = error;
  return status;
}

static bool write_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t put = write(fd, bytes, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes += put;
    size -= (size_t)put;
  }
  return true;
}

/* FOLDER/.new-PID-COUNT-RANDOM for FOLDER/name: unique across threads, processes and the hosts of a shared
 * folder. */
static void temporary_name(const char *path, text *out) {
  static atomic_uint count;
  const char *slash = strrchr(path, '/');
  uint64_t noise = 0;
  if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) < 0) noise = 0;
  if (slash != NULL) text_add_bytes(out, path, (size_t)(slash + 1 - path));
  text_addf(out, FILE_TEMPORARY_PREFIX "%ld-%u-%016llx", (long)getpid(), atomic_fetch_add(&count, 1u),
            (unsigned long long)noise);
}

hd_status file_write_atomic(int at, const char *path, unsigned mode, const void *bytes, size_t size) {
  text name;
  text_init(&name);
  temporary_name(path, &name);
  if (name.failed) {
    text_finish(&name);
    return HD_OUT_OF_MEMORY;
  }
  int error = 0;
  int fd = openat(at, text_string(&name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
  if (fd < 0) {
    error = errno;
  } else {
    if (!write_all(fd, bytes, size) || fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno; /* NFS reports a full disk here */
    if (error == 0 && renameat(at, text_string(&name), at, path) != 0) error = errno;
    if (error != 0) unlinkat(at, text_string(&name), 0);
  }
  text_finish(&name);
  return error == 0 ? HD_OK : fail(error);
}

hd_status file_make_folders(const char *path, unsigned mode) {
  text prefix;
  hd_status status = HD_OK;
  text_init(&prefix);
  for (const char *at = path; status == HD_OK && *at != '\0';) {
    size_t length = strspn(at, "/") + strcspn(at + strspn(at, "/"), "/");
    text_add_bytes(&prefix, at, length);
    at += length;
    if (prefix.failed)
      status = HD_OUT_OF_MEMORY;
    else if (mkdir(text_string(&prefix), (mode_t)mode) != 0 && errno != EEXIST) {
      /* An ancestor on a read-only file system is there all the same; a missing one fails with the next. */
      struct stat facts;
      int error = errno;
      if (stat(text_string(&prefix), &facts) != 0 || !S_ISDIR(facts.st_mode)) status = fail(error);
    }
  }
  int error = errno;
  text_finish(&prefix);
  errno = error;
  return status;
}

bool file_belongs_with(const char *path, const char *file) {
  struct stat link, target, beside;
  if (lstat(path, &link) != 0 || stat(path, &target) != 0 || !S_ISREG(target.st_mode)) return false;
  bool known = stat(file, &beside) == 0;
  const uid_t owners[] = {link.st_uid, target.st_uid};
  for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
    if (owners[i] != 0 && owners[i] != geteuid() && !(known && owners[i] == beside.st_uid)) return false;
  return true;
}
