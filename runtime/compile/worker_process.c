#include "worker_process.h"

#include "file.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKER_NAME "heddle-compile-worker"
#define FOLDER_STEM "heddle-compile-"

/* Longer than any compile: a folder in use changes more often. */
enum { ABANDONED_SECONDS = 600 };

#define NO_WORKER                                                                                            \
  (worker_process) {                                                                                         \
    .in = -1, .out = -1, .errors = -1, .folder_lock = -1                                                     \
  }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- where the worker is ---- */

static bool runnable(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* Cuts the last component off; "." when there is no slash. */
static void cut_name(char *path) {
  char *slash = strrchr(path, '/');
  if (slash)
    *(slash == path ? slash + 1 : slash) = '\0';
  else
    strcpy(path, ".");
}

static bool this_executable(char out_file[4096]) {
  ssize_t n = readlink("/proc/self/exe", out_file, 4095);
  if (n <= 0) return false;
  out_file[n] = '\0';
  return true;
}

static bool this_library(char out_file[4096]) {
  Dl_info facts;
  static const char here = 0; /* any object of this library */
  return dladdr(&here, &facts) && facts.dli_fname && realpath(facts.dli_fname, out_file);
}

hd_status worker_find(char *out_path, size_t size, diags *errors) {
  const char *forced = getenv("HEDDLE_WORKER");
  if (forced && *forced) {
    if (runnable(forced) && (size_t)snprintf(out_path, size, "%s", forced) < size) return HD_OK;
    diags_errorf(errors, "compile.worker", NULL,
                 "HEDDLE_WORKER names %s, which is no program that can be run", forced);
    return HD_UNAVAILABLE;
  }
  static bool (*const places[])(char out_file[4096]) = {this_executable, this_library};
  /* The last: of a library in a folder of its machine's, lib/x86_64-linux-gnu. */
  static const char *const below[] = {"", "/..", "/../libexec/heddle", "/../../libexec/heddle"};
  text tried;
  text_init(&tried);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char file[4096], folder[4096];
    if (!places[i](file)) continue;
    strcpy(folder, file);
    cut_name(folder);
    for (size_t j = 0; j < sizeof below / sizeof *below; j++) {
      int n = snprintf(out_path, size, "%s%s/" WORKER_NAME, folder, below[j]);
      if (n > 0 && (size_t)n < size && runnable(out_path) && file_belongs_with(out_path, file)) {
        text_finish(&tried);
        return HD_OK;
      }
      text_addf(&tried, "%s%s%s", tried.length ? ", " : "", folder, below[j]);
    }
  }
  diags_errorf(errors, "compile.worker", NULL,
               WORKER_NAME " was not found in %s: set HEDDLE_WORKER, or install heddle whole",
               text_string(&tried));
  text_finish(&tried);
  return HD_UNAVAILABLE;
}

/* ---- start ---- */

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *place) {
  (void)facts, (void)type, (void)place;
  remove(path);
  return 0;
}

static void remove_folder(const char *folder) {
  if (*folder) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* -1 where it is no folder, or where somebody holds it. */
static int lock_folder(int at, const char *path) {
  int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

/* The folders of a process that was killed: ours, old, and held by nobody. The lock ends with its holder,
 * also in another container, where the holder's number would say nothing. */
static void remove_abandoned(const char *place) {
  DIR *d = opendir(place);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    struct stat facts;
    char path[1400];
    if (strncmp(e->d_name, FOLDER_STEM, sizeof FOLDER_STEM - 1) != 0) continue;
    int fd = lock_folder(dirfd(d), e->d_name);
    if (fd < 0) continue;
    if (fstat(fd, &facts) == 0 && facts.st_uid == geteuid() &&
        facts.st_mtime + ABANDONED_SECONDS < time(NULL) &&
        (size_t)snprintf(path, sizeof path, "%s/%s", place, e->d_name) < sizeof path)
      remove_folder(path);
    close(fd);
  }
  closedir(d);
}

static const char *temporary_place(int index) {
  return index == 0 ? getenv("TMPDIR") : "/tmp";
}

/* Once in a process is enough. */
static void remove_all_abandoned(void) {
  for (int i = 0; i < 2; i++) {
    const char *place = temporary_place(i);
    if (place && place[0] == '/') remove_abandoned(place);
  }
}

static hd_status make_folder(char *out_folder, size_t size, diags *errors) {
  static pthread_once_t cleaned = PTHREAD_ONCE_INIT;
  pthread_once(&cleaned, remove_all_abandoned);
  const char *places[] = {temporary_place(0), temporary_place(1)};
  int failed = ENOENT;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (!places[i] || places[i][0] != '/') continue;
    char folder[1024];
    int n = snprintf(folder, sizeof folder, "%s/" FOLDER_STEM "XXXXXX", places[i]);
    if (n < 0 || (size_t)n >= sizeof folder || sizeof folder > size) continue;
    if (mkdtemp(folder)) {
      memcpy(out_folder, folder, (size_t)n + 1);
      return HD_OK;
    }
    failed = errno;
  }
  diags_errorf(errors, "compile.temporary", NULL,
               "no temporary folder can be made for the compiler in TMPDIR or /tmp: %s", strerror(failed));
  return HD_IO;
}

/* The worker's whole environment. Nothing of ours passes: compilers read switches from it that change code
 * (HIPRTC_COMPILE_OPTIONS_APPEND, AMD_COMGR_DRIVER_OPTIONS_APPEND, CCC_OVERRIDE_OPTIONS, NVRTC_APPEND_FLAGS),
 * and the loader libraries (LD_PRELOAD). comgr's own cache has handed out damaged entries, so it stays off.
 */
typedef struct worker_environment {
  char temporary[1100], home[1100], libraries[1100];
  char *all[10];
} worker_environment;

static void environment_fill(worker_environment *e, const compiler *c, const char *folder) {
  static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", locale[] = "LC_ALL=C",
              comgr_cache[] = "AMD_COMGR_CACHE=0", cuda_cache[] = "CUDA_CACHE_DISABLE=1";
  int count = 0;
  snprintf(e->temporary, sizeof e->temporary, "TMPDIR=%s", folder);
  snprintf(e->home, sizeof e->home, "HOME=%s", folder);
  e->all[count++] = path;
  e->all[count++] = locale;
  e->all[count++] = comgr_cache;
  e->all[count++] = cuda_cache;
  e->all[count++] = e->temporary;
  e->all[count++] = e->home;
  if (c->kind != COMPILER_LLVM && !c->loader[0]) {
    /* The libraries beside the compiler are the ones that its identity hashed. */
    snprintf(e->libraries, sizeof e->libraries, "LD_LIBRARY_PATH=%s", c->path);
    cut_name(e->libraries);
    e->all[count++] = e->libraries;
  }
  e->all[count] = NULL;
}

static void close_all(int fds[], int count) {
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
}

/* A pipe whose ends are above 2, so that placing them on 0, 1 and 2 of the worker can't clobber one with
 * another even in a host that has closed its standard streams. */
static bool pipe_above(int out_ends[2]) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  for (int i = 0; i < 2; i++) {
    out_ends[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
    close(ends[i]);
  }
  return out_ends[0] >= 0 && out_ends[1] >= 0;
}

static int open_errors(const char *folder) {
  char path[1100];
  snprintf(path, sizeof path, "%s/stderr", folder);
  int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || fd > 2) return fd;
  int above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return above;
}

static int spawn(pid_t *out_pid, char *const arguments[], char *const environment[], int in, int out,
                 int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed) return failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed) {
    posix_spawn_file_actions_destroy(&actions);
    return failed;
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  failed = posix_spawn_file_actions_adddup2(&actions, in, 0);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, errors, 2);
  if (!failed) failed = posix_spawn(out_pid, arguments[0], &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

hd_status worker_start(worker_process *w, const compiler *c, const compile_limits *limits, diags *errors) {
  *w = NO_WORKER;
  char worker[4096];
  hd_status status = worker_find(worker, sizeof worker, errors);
  if (status != HD_OK) return status;
  status = make_folder(w->folder, sizeof w->folder, errors);
  if (status != HD_OK) return status;
  w->folder_lock = lock_folder(AT_FDCWD, w->folder); /* -1 where a file system has no locks: none cleans up */

  int fds[5] = {-1, -1, -1, -1, -1}; /* request pipe, response pipe, errors */
  int failed = 0;
  if (!pipe_above(fds) || !pipe_above(fds + 2) || (fds[4] = open_errors(w->folder)) < 0) failed = errno;
  if (!failed && (fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0 || fcntl(fds[2], F_SETFL, O_NONBLOCK) != 0))
    failed = errno;

  char memory[32], seconds[32];
  snprintf(memory, sizeof memory, "%zu", limits->memory_bytes);
  snprintf(seconds, sizeof seconds, "%.0f", limits->seconds + 1);
  char library_path_option[] = "--library-path", *arguments[10];
  int count = 0;
  if (c->loader[0]) {
    arguments[count++] = (char *)c->loader;
    arguments[count++] = library_path_option;
    arguments[count++] = (char *)c->library_path;
  }
  arguments[count++] = worker;
  arguments[count++] = (char *)compiler_name(c->kind);
  arguments[count++] = (char *)c->path;
  arguments[count++] = memory;
  arguments[count++] = seconds;
  arguments[count] = NULL;
  worker_environment environment;
  environment_fill(&environment, c, w->folder);
  if (!failed) failed = spawn(&w->pid, arguments, environment.all, fds[0], fds[3], fds[4]);
  if (failed) {
    close_all(fds, 5);
    remove_folder(w->folder);
    if (w->folder_lock >= 0) close(w->folder_lock);
    *w = NO_WORKER;
    diags_errorf(errors, "compile.worker", NULL, "the compile worker %s can't be started: %s", worker,
                 strerror(failed));
    return HD_UNAVAILABLE;
  }
  close(fds[0]);
  close(fds[3]);
  w->in = fds[1];
  w->out = fds[2];
  w->errors = fds[4];
  return HD_OK;
}

/* ---- exchange ---- */

static void request_fill(text *t, const char *source, size_t source_bytes, const char *const *options,
                         int option_count) {
  worker_request_head head = {.magic = WORKER_REQUEST_MAGIC,
                              .version = WORKER_VERSION,
                              .option_count = (uint32_t)option_count,
                              .source_bytes = source_bytes};
  text_add_bytes(t, &head, sizeof head);
  for (int i = 0; i < option_count; i++) {
    uint32_t length = (uint32_t)strlen(options[i]);
    text_add_bytes(t, &length, sizeof length);
    text_add_bytes(t, options[i], length);
  }
  text_add_bytes(t, source, source_bytes);
}

/* An answer as it comes in: the head, then the code object, then the log. */
typedef struct incoming {
  worker_response_head head;
  size_t done; /* bytes of all three */
  char *code_object, *log;
} incoming;

static bool incoming_whole(const incoming *i) {
  return i->done >= sizeof i->head &&
         i->done == sizeof i->head + (size_t)i->head.code_object_bytes + (size_t)i->head.log_bytes;
}

/* Where the next bytes go. */
static char *incoming_place(incoming *i, size_t *out_room) {
  size_t head = sizeof i->head, code = (size_t)i->head.code_object_bytes, log = (size_t)i->head.log_bytes;
  if (i->done < head) {
    *out_room = head - i->done;
    return (char *)&i->head + i->done;
  }
  if (i->done < head + code) {
    *out_room = head + code - i->done;
    return i->code_object + (i->done - head);
  }
  *out_room = head + code + log - i->done;
  return i->log + (i->done - head - code);
}

/* The head has just come in whole. */
static worker_exchange_result incoming_open(incoming *i) {
  const worker_response_head *h = &i->head;
  if (h->magic != WORKER_RESPONSE_MAGIC || h->version != WORKER_VERSION || h->outcome > WORKER_IO ||
      h->code_object_bytes > WORKER_MAX_BYTES || h->log_bytes > WORKER_MAX_BYTES)
    return EXCHANGE_GARBLED;
  i->code_object = calloc((size_t)h->code_object_bytes + 1, 1);
  i->log = calloc((size_t)h->log_bytes + 1, 1);
  return i->code_object && i->log ? EXCHANGE_DONE : EXCHANGE_NO_MEMORY;
}

/* Reads what there is. EXCHANGE_DONE: so far so good. */
static worker_exchange_result incoming_read(incoming *i, int fd) {
  while (!incoming_whole(i)) {
    size_t room;
    char *place = incoming_place(i, &room);
    ssize_t n = read(fd, place, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return EXCHANGE_DONE;
    if (n <= 0) return EXCHANGE_DIED;
    i->done += (size_t)n;
    if (i->done != sizeof i->head) continue;
    worker_exchange_result opened = incoming_open(i);
    if (opened != EXCHANGE_DONE) return opened;
  }
  return EXCHANGE_DONE;
}

static worker_exchange_result exchange(worker_process *w, const text *request, double deadline,
                                       incoming *answer) {
  size_t sent = 0;
  while (!incoming_whole(answer)) {
    double left = deadline - now();
    if (left <= 0) return EXCHANGE_TIMEOUT;
    struct pollfd fds[2] = {{.fd = w->out, .events = POLLIN},
                            {.fd = sent < request->length ? w->in : -1, .events = POLLOUT}};
    int wait_ms = left > 1e6 ? 1000000000 : (int)(left * 1e3) + 1;
    if (poll(fds, 2, wait_ms) < 0 && errno != EINTR) return EXCHANGE_DIED;
    if (fds[1].revents) {
      ssize_t n = write(w->in, request->data + sent, request->length - sent);
      if (n > 0) sent += (size_t)n;
      /* A worker that ended is seen on its other pipe, with what it may still have said. */
      if (n < 0 && errno != EAGAIN && errno != EINTR) sent = request->length;
    }
    if (fds[0].revents) {
      worker_exchange_result got = incoming_read(answer, w->out);
      if (got != EXCHANGE_DONE) return got;
    }
  }
  return EXCHANGE_DONE;
}

worker_exchange_result worker_exchange(worker_process *w, const char *source, size_t source_bytes,
                                       const char *const *options, int option_count, double seconds,
                                       worker_answer *out_answer) {
  double deadline = now() + seconds;
  text request;
  text_init(&request);
  request_fill(&request, source, source_bytes, options, option_count);
  incoming answer = {0};
  worker_exchange_result result =
      request.failed ? EXCHANGE_NO_MEMORY : exchange(w, &request, deadline, &answer);
  text_finish(&request);
  if (result != EXCHANGE_DONE) {
    free(answer.code_object);
    free(answer.log);
    return result;
  }
  w->served++;
  *out_answer = (worker_answer){.outcome = (worker_outcome)answer.head.outcome,
                                .code = answer.head.code,
                                .code_object = answer.code_object,
                                .log = answer.log,
                                .code_object_bytes = (size_t)answer.head.code_object_bytes,
                                .log_bytes = (size_t)answer.head.log_bytes,
                                .seconds = answer.head.seconds};
  return EXCHANGE_DONE;
}

/* ---- stop ---- */

static void read_errors(int fd, char *out, size_t size) {
  out[0] = '\0';
  off_t end = lseek(fd, 0, SEEK_END);
  if (end <= 0) return;
  off_t start = end > (off_t)size - 1 ? end - (off_t)(size - 1) : 0;
  ssize_t n = pread(fd, out, size - 1, start);
  out[n > 0 ? n : 0] = '\0';
}

void worker_stop(worker_process *w, worker_end *out_end) {
  if (w->pid <= 0) return;
  close(w->in);
  worker_end end = {0};
  /* One that died by itself is already a zombie and keeps its own status; the signal is for what it may have
   * started. */
  kill(-w->pid, SIGKILL);
  struct rusage usage = {0};
  pid_t got;
  do
    got = wait4(w->pid, &end.status, 0, &usage);
  while (got < 0 && errno == EINTR);
  end.status_known = got == w->pid;
  end.peak_bytes = (size_t)usage.ru_maxrss * 1024;
  read_errors(w->errors, end.errors, sizeof end.errors);
  close(w->out);
  close(w->errors);
  remove_folder(w->folder);
  if (w->folder_lock >= 0) close(w->folder_lock);
  *w = NO_WORKER;
  if (out_end) *out_end = end;
}
