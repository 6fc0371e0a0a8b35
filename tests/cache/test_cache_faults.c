/* Disks, file systems and other processes that misbehave: each fault gives a right answer and one line in the
 * log. The calls that fail are wrapped by the linker (tests/meson.build). docs/cache.md has the table. */
#include "cache_fixture.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(cache_faults, .init = make_folder, .fini = remove_folder);

/* ---- Calls that fail ---- */

static struct {
  bool armed;
  long write_room;  /* bytes until the disk is full; -1: any number */
  int fsync_error;  /* errno, 0: works */
  int rename_error; /* the same */
  bool rename_done; /* it is renamed all the same: the server's answer got lost */
  int flock_error, read_error;
} faults = {.write_room = -1};

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from, const char *name, int to, const char *new_name);
int __wrap_renameat(int from, const char *name, int to, const char *new_name);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);

static int fail(int error) {
  errno = error;
  return -1;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
  if (!faults.armed || faults.write_room < 0) return __real_write(fd, bytes, size);
  if (faults.write_room == 0) return fail(ENOSPC);
  if (size > (size_t)faults.write_room) size = (size_t)faults.write_room;
  faults.write_room -= (long)size;
  return __real_write(fd, bytes, size);
}

int __wrap_fsync(int fd) {
  return faults.armed && faults.fsync_error ? fail(faults.fsync_error) : __real_fsync(fd);
}

int __wrap_renameat(int from, const char *name, int to, const char *new_name) {
  if (!faults.armed || !faults.rename_error) return __real_renameat(from, name, to, new_name);
  if (faults.rename_done) cr_assert(__real_renameat(from, name, to, new_name) == 0);
  return fail(faults.rename_error);
}

int __wrap_flock(int fd, int operation) {
  return faults.armed && faults.flock_error ? fail(faults.flock_error) : __real_flock(fd, operation);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size) {
  return faults.armed && faults.read_error ? fail(faults.read_error) : __real_read(fd, bytes, size);
}

/* ---- What is claimed of each ---- */

static bool has_leftovers(const char *key_text) {
  char path[256];
  entry_path(key_text, path);
  *strrchr(path, '/') = '\0';
  DIR *d = opendir(path);
  bool any = false;
  if (d == NULL) return false;
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    any = any || strncmp(e->d_name, ".new-", 5) == 0;
  closedir(d);
  return any;
}

/* Stores under the armed fault: the kernel is there, the log has one line with `why`, nothing is left behind.
 * Returns what the next process finds. */
static hd_status store_under_fault(const char *why) {
  sample s = make_sample("gfx950");
  cache_entry found;
  lines log = {0};
  cache_counts n;
  cache *c = open_cache();
  cache_set_log(c, take_line, &log);
  faults.armed = true;
  store(c, "key", &s);
  faults.armed = false;
  cr_expect(cache_find(c, "key", &found) == HD_OK && memcmp(found.code_object, s.code, s.size) == 0);
  cr_expect(counts_of(c).store_failures == 1 && counts_of(c).stores == 0);
  cr_expect(log.count == 1 && strstr(log.last, why) != NULL, "%d lines, \"%s\"", log.count, log.last);
  cr_expect(!has_leftovers("key"));
  cache_close(c);
  return find_fresh("key", &n);
}

Test(cache_faults, a_disk_that_is_full_at_any_byte) {
  static const long rooms[] = {0, 1, 39, 71, 72, 100, 2000, 5000};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    faults.write_room = rooms[i];
    cr_expect(store_under_fault("No space left") == HD_DECLINED, "room for %ld bytes", rooms[i]);
  }
}

Test(cache_faults, a_disk_that_stays_full_is_one_line_until_it_had_room_again) {
  sample s = make_sample("gfx950");
  lines log = {0};
  cache *c = open_cache();
  cache_set_log(c, take_line, &log);
  for (int round = 1; round <= 2; round++) {
    faults.armed = true;
    for (int i = 0; i < 3; i++) {
      faults.write_room = 100;
      store(c, i == 0 ? "a" : i == 1 ? "b" : "c", &s);
    }
    faults.armed = false;
    cr_expect(log.count == round && counts_of(c).store_failures == 3u * (unsigned)round, "%d lines",
              log.count);
    store(c, "d", &s);
    cr_expect(counts_of(c).stores == (unsigned)round);
  }
  cache_close(c);
}

Test(cache_faults, a_flush_that_fails) {
  faults.fsync_error = EIO;
  cr_expect(store_under_fault("Input/output error") == HD_DECLINED);
}

Test(cache_faults, a_rename_that_fails) {
  static const int errors[] = {ESTALE, EIO, EXDEV, EACCES, EDQUOT};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    faults.rename_error = errors[i];
    cr_expect(store_under_fault(strerror(errors[i])) == HD_DECLINED);
  }
}

Test(cache_faults, a_rename_whose_answer_got_lost) {
  faults.rename_error = ENOENT;
  faults.rename_done = true;
  cr_expect(store_under_fault("No such file") == HD_OK, "it was stored all the same, and is whole");
}

Test(cache_faults, a_file_system_without_locks) {
  sample s = make_sample("gfx950");
  lines log = {0};
  cache_lock *lock = NULL;
  cache_counts n;
  cache *c = open_cache();
  cache_set_log(c, take_line, &log);
  faults.flock_error = ENOLCK;
  faults.armed = true;
  cr_expect(cache_lock_key(c, "key", 5, &lock) == HD_OK && lock == NULL);
  cr_expect(cache_lock_key(c, "another", 0, &lock) == HD_OK && lock == NULL);
  store(c, "key", &s);
  cr_expect(log.count == 1 && strstr(log.last, "without") != NULL, "%s", log.last);
  cache_close(c);
  cr_expect(find_fresh("key", &n) == HD_OK);
}

Test(cache_faults, an_entry_that_cannot_be_read_now_is_a_miss_and_stays) {
  sample s = make_sample("gfx950");
  cache_entry found;
  cache_counts n;
  lines log = {0};
  cache *c = open_cache();
  store(c, "key", &s);
  cache_close(c);
  c = open_cache();
  cache_set_log(c, take_line, &log);
  faults.read_error = EIO;
  faults.armed = true;
  cr_expect(cache_find(c, "key", &found) == HD_DECLINED);
  faults.armed = false;
  cr_expect(log.count == 1 && counts_of(c).quarantined == 0, "%s", log.last);
  cache_close(c);
  cr_expect(find_fresh("key", &n) == HD_OK);
}

/* ---- A shared cache that can't be reached ---- */

static double later; /* seconds by which the clock is ahead */
int __real_clock_gettime(clockid_t clock, struct timespec *out_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time) {
  int result = __real_clock_gettime(clock, out_time);
  out_time->tv_sec += (time_t)later;
  return result;
}

/* A port that is taken, where nobody listens; with `listen_now` somebody does. */
static int open_port(bool listen_now, char out_url[64]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
            getsockname(fd, (struct sockaddr *)&address, &size) == 0);
  if (listen_now) cr_assert(listen(fd, 4) == 0);
  snprintf(out_url, 64, "http://127.0.0.1:%d", ntohs(address.sin_port));
  return fd;
}

/* Opens a cache in memory over this address. */
static cache *open_tier(const char *url, lines *log) {
  cache *c = NULL;
  diags errors;
  diags_init(&errors);
  setenv("HEDDLE_CACHE_URL", url, 1);
  setenv("HEDDLE_CACHE_TIMEOUT", "5", 1);
  cr_assert(cache_open("", &c, &errors) == HD_OK && errors.count == 0);
  cache_set_log(c, take_line, log);
  diags_finish(&errors);
  return c;
}

Test(cache_faults, a_shared_cache_that_is_down_is_asked_more_and_more_seldom, .timeout = 30) {
  static const int pauses[] = {30, 60, 120, 240, 480, 960, 960};
  lines log = {0};
  char url[64], key[16], pause[32];
  cache_entry found;
  sample s = make_sample("gfx950");
  int fd = open_port(false, url);
  cache *c = open_tier(url, &log);
  for (int i = 0; i < 7; i++) {
    snprintf(key, sizeof key, "key %d", i);
    cr_expect(cache_find(c, key, &found) == HD_DECLINED);
    store(c, key, &s);
    cache_share(c, key);
    snprintf(pause, sizeof pause, "alone for %d s", pauses[i]);
    cr_expect(log.count == i + 1 && strstr(log.last, pause) != NULL, "%d: \"%s\"", i, log.last);
    cr_expect(cache_find(c, key, &found) == HD_OK, "what is in memory needs nobody");
    later += pauses[i] - 2;
    cr_expect(cache_find(c, "none", &found) == HD_DECLINED && log.count == i + 1, "not yet");
    later += 2.5;
  }
  cr_expect(counts_of(c).tier_failures == 7 && counts_of(c).tier_puts == 0);
  cache_close(c);
  close(fd);
}

/* Answers `count` requests with this code, in a child, which ends with the number of PUTs. */
static pid_t serve(int fd, int count, const char *code) {
  char request[65536], answer[128];
  pid_t child = fork();
  if (child != 0) return child;
  int puts = 0;
  snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", code);
  for (int i = 0; i < count; i++) {
    int connection = accept(fd, NULL, NULL);
    if (connection < 0 || recv(connection, request, sizeof request, 0) <= 0) _exit(100);
    puts += strncmp(request, "PUT", 3) == 0;
    if (send(connection, answer, strlen(answer), 0) != (ssize_t)strlen(answer)) _exit(101);
    shutdown(connection, SHUT_WR);
    while (recv(connection, request, sizeof request, 0) > 0) {
    }
    close(connection);
  }
  _exit(puts);
}

Test(cache_faults, a_shared_cache_that_takes_nothing_is_read_all_the_same, .timeout = 30) {
  sample s = make_sample("gfx950");
  lines log = {0};
  char url[64], key[16];
  cache_entry found;
  int status = -1, fd = open_port(true, url);
  cache *c = open_tier(url, &log);
  store(c, "mine", &s);
  pid_t server = serve(fd, 1, "403 Forbidden");
  cache_share(c, "mine");
  cr_assert(waitpid(server, &status, 0) == server && WIFEXITED(status) && WEXITSTATUS(status) == 1);
  server = serve(fd, 3, "404 Not Found");
  for (int i = 0; i < 3; i++) {
    snprintf(key, sizeof key, "key %d", i);
    cr_expect(cache_find(c, key, &found) == HD_DECLINED);
    cache_share(c, "mine");
  }
  cr_assert(waitpid(server, &status, 0) == server && WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "three times asked, nothing offered");
  cr_expect(log.count == 1 && strstr(log.last, "offered nothing more") != NULL, "%s", log.last);
  cache_close(c);
  close(fd);
}

Test(cache_faults, an_answer_ends_the_growing_of_the_pauses, .timeout = 30) {
  lines log = {0};
  char url[64];
  cache_entry found;
  int status = -1, fd = open_port(false, url);
  cache *c = open_tier(url, &log);
  for (int i = 0; i < 3; i++) {
    cache_find(c, "key", &found);
    later += 200;
  }
  cr_expect(log.count == 3 && strstr(log.last, "alone for 120 s") != NULL, "%s", log.last);
  cr_assert(listen(fd, 4) == 0);
  pid_t server = serve(fd, 1, "404 Not Found");
  cr_expect(cache_find(c, "key", &found) == HD_DECLINED && log.count == 3, "a miss is no failure: %s",
            log.last);
  cr_assert(waitpid(server, &status, 0) == server && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(fd);
  cache_find(c, "key", &found);
  cr_expect(log.count == 4 && strstr(log.last, "alone for 30 s") != NULL, "%s", log.last);
  cache_close(c);
}

/* ---- What lies in an entry's place ---- */

static void put_folder(const char *path) {
  cr_assert(mkdir(path, 0700) == 0);
}

static void put_full_folder(const char *path) {
  char below[300];
  put_folder(path);
  snprintf(below, sizeof below, "%s/file", path);
  write_file(below, "x", 1);
}

static void put_link(const char *path) {
  cr_assert(symlink("/dev/zero", path) == 0);
}

static void put_broken_link(const char *path) {
  cr_assert(symlink("nowhere", path) == 0);
}

static void put_pipe(const char *path) {
  cr_assert(mkfifo(path, 0600) == 0);
}

static void put_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char here[256];
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  cr_assert(fd >= 0 && getcwd(here, sizeof here) != NULL);
  snprintf(address.sun_path, sizeof address.sun_path, "%.20s", "socket");
  cr_assert(chdir(folder) == 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
            rename("socket", path) == 0 && chdir(here) == 0);
  close(fd);
}

static void put_text(const char *path) {
  write_file(path, "no entry", 8);
}

static void put_others_file(const char *path) {
  put_text(path);
  cr_assert(chmod(path, 0666) == 0);
}

static void put_huge_file(const char *path) {
  put_text(path);
  cr_assert(truncate(path, (off_t)1 << 40) == 0);
}

static void put_other_version(const char *path) {
  size_t size;
  unsigned char *bytes = read_file(path, &size);
  bytes[8]++; /* the format's version: as a newer heddle would write it */
  write_file(path, bytes, size);
  free(bytes);
}

static void put_other_target(const char *path) {
  sample s = make_sample("gfx942");
  text file;
  text_init(&file);
  strcpy(s.descriptor.target, "gfx950");
  cache_file_write("key", &s.descriptor, s.code, s.size, &file);
  write_file(path, file.data, file.length);
  text_finish(&file);
}

Test(cache_faults, whatever_lies_in_an_entrys_place_is_a_miss_and_makes_room) {
  static const struct {
    const char *what;
    void (*put)(const char *path);
    bool instead; /* of the entry; else it changes it */
    bool stays;   /* can't be moved by anyone but a person */
  } cases[] = {
      {"a folder", put_folder, true, false},
      {"a full folder", put_full_folder, true, false},
      {"a link", put_link, true, false},
      {"a broken link", put_broken_link, true, false},
      {"a pipe", put_pipe, true, false},
      {"a socket", put_socket, true, false},
      {"a file that is no entry", put_text, true, false},
      {"a file that others can write", put_others_file, true, false},
      {"a file of a tebibyte", put_huge_file, true, false},
      {"an entry of another format", put_other_version, false, false},
      {"code for another target", put_other_target, true, false},
  };
  sample s = make_sample("gfx950");
  char path[256];
  cache_entry found;
  cache_counts n;
  entry_path("key", path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lines log = {0};
    cache *c = open_cache();
    store(c, "key", &s);
    cache_close(c);
    if (cases[i].instead) cr_assert(unlink(path) == 0, "%s", cases[i].what);
    cases[i].put(path);
    c = open_cache();
    cache_set_log(c, take_line, &log);
    cr_expect(cache_find(c, "key", &found) == HD_DECLINED, "%s", cases[i].what);
    cr_expect(log.count == 1 && counts_of(c).quarantined == 1, "%s: %d lines, \"%s\"", cases[i].what,
              log.count, log.last);
    store(c, "key", &s);
    cr_expect(counts_of(c).stores == 1 && log.count == 1, "%s: \"%s\"", cases[i].what, log.last);
    cache_close(c);
    cr_expect(find_fresh("key", &n) == HD_OK, "%s: the next process has it again", cases[i].what);
  }
}

/* ---- Folders ---- */

Test(cache_faults, folders_that_are_not_the_callers_alone_give_one_line) {
  static const int modes[] = {0770, 0720, 0702, 0777, 01777};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    cache *c = NULL;
    diags errors;
    diags_init(&errors);
    cr_assert(chmod(folder, (mode_t)modes[i]) == 0);
    cr_expect(cache_open(folder, &c, &errors) == HD_OK && errors.count == 1, "mode %o: %zu lines", modes[i],
              errors.count);
    cr_expect(cache_directory(c)[0] == '\0');
    cache_close(c);
    diags_finish(&errors);
  }
}

/* ---- Others ---- */

Test(cache_faults, a_stopped_lock_holder_costs_the_wait_and_a_compile, .timeout = 20) {
  sample s = make_sample("gfx950");
  cache_counts n;
  lines log = {0};
  pid_t holder = fork_holder();
  int status;
  kill(holder, SIGSTOP);
  cr_assert(waitpid(holder, &status, WUNTRACED) == holder && WIFSTOPPED(status));
  cache *c = open_cache();
  cache_lock *lock = NULL;
  cache_set_log(c, take_line, &log);
  cr_expect(cache_lock_key(c, "key", 0.2, &lock) == HD_OK && lock == NULL);
  cr_expect(log.count == 1 && strstr(log.last, "takes too long") != NULL, "%s", log.last);
  store(c, "key", &s);
  cache_close(c);
  cr_expect(find_fresh("key", &n) == HD_OK);
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
}
