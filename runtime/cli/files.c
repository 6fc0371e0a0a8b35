#include "../file.h"
#include "cli.h"
#include "console.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_output(text *t, int code) {
  if (console_hides_reports() && !t->failed) text_clear(t);
  return cli_output_product(t, code);
}

int cli_output_product(text *t, int code) {
  bool good = !t->failed;
  if (good) good = fwrite(text_string(t), 1, t->length, stdout) == t->length;
  if (fflush(stdout) != 0) good = false;
  if (!good) fprintf(stderr, "heddle: %s\n", t->failed ? "out of memory" : "can't write to standard output");
  text_finish(t);
  return good ? code : EXIT_FAILED;
}

int cli_exit_code(hd_status status) {
  switch (status) {
  case HD_OK:
    return EXIT_FINE;
  case HD_DECLINED:
  case HD_INVALID:
    return EXIT_DECLINED;
  default:
    return EXIT_FAILED;
  }
}

/* Grows *bytes to hold at least `needed` and a NUL. */
static bool grow(char **bytes, size_t *capacity, size_t needed) {
  if (needed + 1 <= *capacity) return true;
  size_t larger = *capacity ? *capacity * 2 : 65536;
  while (larger < needed + 1)
    larger *= 2;
  char *moved = realloc(*bytes, larger);
  if (!moved) return false;
  *bytes = moved;
  *capacity = larger;
  return true;
}

static hd_status read_stream(int fd, size_t limit, size_t expected, char **out_bytes, size_t *out_length) {
  char *bytes = NULL;
  size_t capacity = 0, length = 0;
  if (!grow(&bytes, &capacity, expected < limit ? expected : 0)) return HD_OUT_OF_MEMORY;
  for (;;) {
    if (!grow(&bytes, &capacity, length + 1)) {
      free(bytes);
      return HD_OUT_OF_MEMORY;
    }
    ssize_t got = read(fd, bytes + length, capacity - length - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      free(bytes);
      return HD_IO;
    }
    if (got == 0) break;
    length += (size_t)got;
    if (length > limit) {
      free(bytes);
      return HD_DECLINED;
    }
  }
  bytes[length] = 0;
  *out_bytes = bytes;
  *out_length = length;
  return HD_OK;
}

hd_status cli_read_file(const char *path, size_t limit, char **out_bytes, size_t *out_length, diags *d) {
  bool standard_input = strcmp(path, "-") == 0;
  int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (fd < 0 || fstat(fd, &facts) != 0 || S_ISDIR(facts.st_mode)) {
    const char *why = fd >= 0 ? "it is a directory" : strerror(errno);
    diags_errorf(d, "file.read", NULL, "can't read the file: %s", why);
    if (fd >= 0 && !standard_input) close(fd);
    return HD_IO;
  }
  size_t expected = S_ISREG(facts.st_mode) && facts.st_size > 0 ? (size_t)facts.st_size : 0;
  hd_status status = read_stream(fd, limit, expected, out_bytes, out_length);
  int reason = errno;
  if (!standard_input) close(fd);
  if (status == HD_IO) diags_errorf(d, "file.read", NULL, "can't read the file: %s", strerror(reason));
  if (status == HD_OUT_OF_MEMORY)
    diags_errorf(d, "file.read", NULL, "can't read the file: out of memory for %zu bytes", expected);
  if (status == HD_DECLINED)
    diags_errorf(d, "file.size", NULL, "the file is larger than %zu bytes, the most that is read", limit);
  return status;
}

static bool write_whole(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t done = write(fd, bytes, length);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    length -= (size_t)done;
  }
  return true;
}

hd_status cli_write_file(const char *path, const void *bytes, size_t length, diags *d) {
  struct stat facts;
  /* A pipe or /dev/null is written to, not replaced. */
  bool replace = stat(path, &facts) != 0 || S_ISREG(facts.st_mode);
  text name;
  text_init(&name);
  text_addf(&name, replace ? "%s.part-%ld" : "%s", path, (long)getpid());
  int flags = replace ? O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC : O_WRONLY | O_CLOEXEC;
  int fd = open(text_string(&name), flags, 0666);
  bool good = fd >= 0 && write_whole(fd, bytes, length);
  int reason = errno;
  if (fd >= 0 && close(fd) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good && replace && rename(text_string(&name), path) != 0) {
    good = false;
    reason = errno;
  }
  if (!good) {
    diags_errorf(d, "file.write", NULL, "can't write %s: %s", path, strerror(reason));
    if (replace && fd >= 0) unlink(text_string(&name));
  }
  text_finish(&name);
  return good ? HD_OK : HD_IO;
}

hd_status cli_write_text(const char *path, const text *contents, diags *d) {
  return contents->failed ? HD_OUT_OF_MEMORY : cli_write_file(path, contents->data, contents->length, d);
}

hd_status cli_make_folders(const char *path, diags *d) {
  if (file_make_folders(path, 0777) == HD_OK) return HD_OK;
  diags_errorf(d, "file.write", NULL, "can't make the folder %s: %s", path, strerror(errno));
  return HD_IO;
}

void cli_write_stem(const spec *s, const char *operation_text, text *out) {
  const char *name = s->name[0] ? s->name : "spec";
  for (const char *at = name; *at; at++) {
    bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                 *at == '-' || *at == '_' || (*at == '.' && at != name);
    text_add_bytes(out, plain ? at : "-", 1);
  }
  text_addf(out, ".%s", operation_text);
}
