#include "compiler_identity.h"

#include "../../generator/sha256.h"
#include "../object/elf64.h"
#include "../file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PARTS = 16 };

#define MEMO_HEAD "heddle-compiler-identity 1"

/* Libraries that are part of a compiler; what else a file needs (libc, zlib) does not decide what code comes
 * out. */
static const char *const part_names[] = {"libhiprtc", "libamd_comgr", "libLLVM",     "libclang",
                                         "liblld",    "libnvrtc",     "libnvJitLink"};

static const char *const system_folders[] = {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                                             "/usr/lib"};

/* The files of one compiler, by real path, in the order found. */
typedef struct parts {
  char *paths[MOST_PARTS];
  int count;
} parts;

static void parts_finish(parts *p) {
  for (int i = 0; i < p->count; i++)
    free(p->paths[i]);
}

static void parts_add(parts *p, const char *path) {
  char *real = realpath(path, NULL);
  for (int i = 0; real && i < p->count; i++)
    if (strcmp(p->paths[i], real) == 0) {
      free(real);
      return;
    }
  if (real && p->count < MOST_PARTS)
    p->paths[p->count++] = real;
  else
    free(real);
}

static bool is_part(const char *name) {
  for (size_t i = 0; i < sizeof part_names / sizeof *part_names; i++)
    if (strncmp(name, part_names[i], strlen(part_names[i])) == 0) return true;
  return false;
}

/* A library by name: beside `user` (the file that needs it), in ../lib from there, in the system's folders.
 */
static void add_library(parts *p, const char *user, const char *name) {
  static const char *const near[] = {"", "/../lib", "/.."};
  char path[4096];
  int folder = (int)(strrchr(user, '/') - user);
  for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
    snprintf(path, sizeof path, "%.*s%s/%s", folder, user, near[i], name);
    if (access(path, R_OK) == 0) {
      parts_add(p, path);
      return;
    }
  }
  for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++) {
    snprintf(path, sizeof path, "%s/%s", system_folders[i], name);
    if (access(path, R_OK) == 0) {
      parts_add(p, path);
      return;
    }
  }
}

/* hiprtc and nvrtc open more of themselves at run time than their files say: what lies beside them under
 * these names. */
static void add_beside(parts *p, const char *path, const char *prefix) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  DIR *d = opendir(folder);
  if (!d) return;
  size_t length = strlen(prefix);
  char best[256] = "";
  for (struct dirent *e; (e = readdir(d));)
    if (strncmp(e->d_name, prefix, length) == 0 && strverscmp(e->d_name, best) > 0)
      snprintf(best, sizeof best, "%s", e->d_name);
  closedir(d);
  if (best[0]) add_library(p, path, best);
}

/* DT_NEEDED entries of one ELF file (System V ABI: tag 1, 16 bytes an entry). */
static void add_needed(parts *p, const char *path) {
  enum { DT_NEEDED_TAG = 1, ENTRY_BYTES = 16 };
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (fd < 0) return;
  void *bytes = fstat(fd, &facts) == 0 && facts.st_size > 0
                    ? mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                    : MAP_FAILED;
  close(fd);
  if (bytes == MAP_FAILED) return;
  elf64 e;
  elf64_section dynamic, names;
  diags ignored;
  diags_init(&ignored);
  if (elf64_open(bytes, (size_t)facts.st_size, &e, &ignored) == HD_OK &&
      elf64_section_find(&e, ".dynamic", &dynamic) && elf64_section_find(&e, ".dynstr", &names)) {
    for (uint64_t at = 0; at + ENTRY_BYTES <= dynamic.size; at += ENTRY_BYTES) {
      uint64_t entry[2];
      memcpy(entry, e.bytes + dynamic.offset + at, sizeof entry);
      if (entry[0] != DT_NEEDED_TAG || entry[1] >= names.size) continue;
      const char *name = (const char *)e.bytes + names.offset + entry[1];
      if (memchr(name, 0, (size_t)(names.size - entry[1])) && is_part(name)) add_library(p, path, name);
    }
  }
  diags_finish(&ignored);
  munmap(bytes, (size_t)facts.st_size);
}

static void gather_parts(const compiler *c, parts *out_parts) {
  static const struct {
    compiler_kind kind;
    const char *prefix;
  } beside[] = {
      {COMPILER_HIPRTC, "libamd_comgr.so."},
      {COMPILER_NVRTC, "libnvrtc-builtins.so."},
      {COMPILER_LLVM, "lld"},
  };
  parts_add(out_parts, c->path);
  if (out_parts->count == 0) return;
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
    if (beside[i].kind == c->kind) add_beside(out_parts, out_parts->paths[0], beside[i].prefix);
  /* Grows while it is walked: what the parts need in turn. */
  for (int i = 0; i < out_parts->count; i++)
    add_needed(out_parts, out_parts->paths[i]);
}

static bool hash_file(sha256 *s, const char *path) {
  enum { CHUNK = 1 << 20 };
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char *chunk = malloc(CHUNK);
  ssize_t n = -1;
  while (chunk && ((n = read(fd, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) sha256_update(s, chunk, (size_t)n);
  free(chunk);
  close(fd);
  return n == 0;
}

static bool hash_parts(const parts *p, char out_hex[65]) {
  unsigned char digest[32];
  sha256 s;
  sha256_init(&s);
  for (int i = 0; i < p->count; i++)
    if (!hash_file(&s, p->paths[i])) return false;
  sha256_digest(&s, digest);
  for (int i = 0; i < 32; i++)
    snprintf(out_hex + 2 * i, 3, "%02x", digest[i]);
  return p->count > 0;
}

/* ---- version ---- */

/* "libhiprtc.so.7.2.53211" has it in its name: hiprtcVersion says 9.0 for every release. */
static void version_from_names(const parts *p, const char *prefix, char *out, size_t size) {
  for (int i = 0; i < p->count; i++) {
    const char *name = strrchr(p->paths[i], '/') + 1;
    if (strncmp(name, prefix, strlen(prefix)) == 0) snprintf(out, size, "%s", name + strlen(prefix));
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads up to the end, `size` - 1 bytes or the time limit; false after the last. */
static bool read_answer(int fd, char *out, size_t size, double seconds) {
  double deadline = now() + seconds;
  size_t length = 0;
  bool in_time = true;
  while (in_time && length < size - 1) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    double left = deadline - now();
    in_time = left > 0;
    if (!in_time || poll(&readable, 1, (int)(left * 1e3) + 1) <= 0) continue;
    ssize_t n = read(fd, out + length, size - 1 - length);
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0) length += (size_t)n;
  }
  out[length] = '\0';
  return in_time;
}

/* The word after "version" in what `clang --version` says. False when it says nothing for too long: it would
 * compile no faster. */
static bool version_from_clang(const char *path, char *out, size_t size) {
  enum { SECONDS = 20 }; /* real ones take 0.03 */
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return true;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  pid_t child = 0;
  char version[] = "--version", *arguments[] = {(char *)path, version, NULL}, *environment[] = {NULL};
  bool started = false;
  if (posix_spawn_file_actions_init(&actions) == 0) {
    if (posix_spawnattr_init(&attributes) == 0) {
      posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
      posix_spawnattr_setpgroup(&attributes, 0); /* so that it can be killed whole */
      started = posix_spawn_file_actions_adddup2(&actions, ends[1], 1) == 0 &&
                posix_spawn(&child, path, &actions, &attributes, arguments, environment) == 0;
      posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  close(ends[1]);
  char said[1024] = "";
  bool in_time = !started || read_answer(ends[0], said, sizeof said, SECONDS);
  close(ends[0]);
  /* What it says has been read: one that closed its output and went on is not waited for. */
  if (started) kill(-child, SIGKILL);
  while (started && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    continue;
  const char *word = strstr(said, "version ");
  if (word) snprintf(out, size, "%.*s", (int)strcspn(word + 8, " \n"), word + 8);
  return in_time;
}

static bool find_version(compiler *c, const parts *p) {
  snprintf(c->version, sizeof c->version, "unknown");
  switch (c->kind) {
  case COMPILER_HIPRTC:
    version_from_names(p, "libhiprtc.so.", c->version, sizeof c->version);
    return true;
  case COMPILER_NVRTC:
    version_from_names(p, "libnvrtc-builtins.so.", c->version, sizeof c->version);
    return true;
  default:
    return version_from_clang(c->path, c->version, sizeof c->version);
  }
}

/* ---- the memo ---- */

static bool describe_file(const char *path, text *out) {
  struct stat f;
  if (stat(path, &f) != 0) return false;
  text_addf(out, "%jd %jd.%09ld %jd.%09ld %ju %s\n", (intmax_t)f.st_size, (intmax_t)f.st_mtim.tv_sec,
            f.st_mtim.tv_nsec, (intmax_t)f.st_ctim.tv_sec, f.st_ctim.tv_nsec, (uintmax_t)f.st_ino, path);
  return true;
}

/* False where nothing can be kept. The folder has to be ours alone, as the cache's (cache.h): who can write a
 * memo can make one compiler pass for another. */
static bool memo_path(const compiler *c, char *out, size_t size) {
  const char *forced = getenv("HEDDLE_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[3000], hex[65], named[1100];
  int n;
  if (forced && *forced)
    n = snprintf(folder, sizeof folder, "%s/identity", forced);
  else if (xdg && *xdg)
    n = snprintf(folder, sizeof folder, "%s/heddle/identity", xdg);
  else if (home && *home)
    n = snprintf(folder, sizeof folder, "%s/.cache/heddle/identity", home);
  else
    return false;
  if (n < 0 || (size_t)n >= sizeof folder || file_make_folders(folder, 0700) != HD_OK) return false;
  struct stat facts;
  if (stat(folder, &facts) != 0 || facts.st_uid != geteuid() || (facts.st_mode & 022)) return false;
  n = snprintf(named, sizeof named, "%s %s", compiler_name(c->kind), c->path);
  sha256_hex(named, (size_t)n, hex);
  n = snprintf(out, size, "%s/%.32s", folder, hex);
  return n > 0 && (size_t)n < size;
}

/* Four lines at least: head, version, identity, then one for each file as describe_file writes it. */
static bool memo_read(const char *path, compiler *c) {
  enum { MOST = 64 << 10 };
  char *bytes;
  size_t size;
  if (file_read(AT_FDCWD, path, MOST, &bytes, &size) != HD_OK) return false;
  char *rest = bytes, *head = strsep(&rest, "\n"), *version = strsep(&rest, "\n"),
       *identity = strsep(&rest, "\n");
  bool good = rest && strcmp(head, MEMO_HEAD) == 0 && strlen(version) < sizeof c->version &&
              strlen(identity) < sizeof c->identity && *rest;
  while (good && *rest) {
    char *line = strsep(&rest, "\n"), *name = strchr(line, '/');
    text current;
    text_init(&current);
    good = rest && name && describe_file(name, &current) && !current.failed &&
           current.length == strlen(line) + 1 && strncmp(current.data, line, strlen(line)) == 0;
    text_finish(&current);
  }
  if (good) {
    strcpy(c->version, version);
    strcpy(c->identity, identity);
  }
  free(bytes);
  return good;
}

/* `before` has the files as they were before they were hashed: one that changed meanwhile does not match next
 * time. */
static void memo_write(const char *path, const compiler *c, const text *before) {
  text t;
  text_init(&t);
  text_addf(&t, "%s\n%s\n%s\n%s", MEMO_HEAD, c->version, c->identity, text_string(before));
  if (!t.failed) file_write_atomic(AT_FDCWD, path, 0600, t.data, t.length);
  text_finish(&t);
}

/* Hashing takes a second of processor time, and on a cold node every rank would do it at once: one does, the
 * others wait for its memo, but not for long. Returns what memo_unlock takes; -1: it can't be locked, or the
 * wait was over. The kernel drops the lock of a process that dies. */
static int memo_lock(const char *memo) {
  enum { SECONDS = 30, PAUSE_NS = 5000000 };
  char path[4096 + 8];
  snprintf(path, sizeof path, "%s.lock", memo);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  double end = now() + SECONDS;
  while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    bool busy = errno == EWOULDBLOCK || errno == EINTR;
    if (busy && now() < end) {
      nanosleep(&pause, NULL);
      continue;
    }
    close(fd);
    fd = -1;
  }
  return fd;
}

static void memo_unlock(int fd) {
  if (fd >= 0) close(fd);
}

static hd_status identify(compiler *c, const char *memo, diags *errors) {
  char hex[65];
  bool keep = memo != NULL;
  parts p = {0};
  text before;
  text_init(&before);
  gather_parts(c, &p);
  for (int i = 0; i < p.count; i++)
    keep = describe_file(p.paths[i], &before) && keep;
  bool hashed = hash_parts(&p, hex), answered = !hashed || find_version(c, &p);
  if (hashed && answered) {
    snprintf(c->identity, sizeof c->identity, "%s %s sha256:%s", compiler_name(c->kind), c->version, hex);
    if (keep && !before.failed) memo_write(memo, c, &before);
  } else if (hashed) {
    diags_errorf(errors, "compile.unavailable", NULL, "%s gave no answer when it was asked for its version",
                 c->path);
  } else {
    diags_errorf(errors, "compile.unavailable", NULL, "%s can't be read: %s", c->path, strerror(errno));
  }
  text_finish(&before);
  parts_finish(&p);
  return !hashed ? HD_IO : answered ? HD_OK : HD_UNAVAILABLE;
}

hd_status compiler_identify(compiler *c, diags *errors) {
  char memo[4096];
  if (!memo_path(c, memo, sizeof memo)) return identify(c, NULL, errors);
  if (memo_read(memo, c)) return HD_OK;
  int lock = memo_lock(memo);
  hd_status status = memo_read(memo, c) ? HD_OK : identify(c, memo, errors);
  memo_unlock(lock);
  return status;
}
