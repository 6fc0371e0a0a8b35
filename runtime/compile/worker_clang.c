/* clang and lld: one clang command line that compiles and links, run in the worker's folder. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_NAME "kernel.co"
#define LOG_NAME "kernel.log"

extern char **environ;

/* clang's exit status after a failure of its own ("fatal error: error in backend"): EX_SOFTWARE. */
enum { CLANG_BROKE_DOWN = 70 };

static int write_file(const char *name, const char *bytes, size_t count) {
  int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return 0;
  size_t done = 0;
  while (done < count) {
    ssize_t n = write(fd, bytes + done, count - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += (size_t)n;
  }
  return close(fd) == 0 && done == count;
}

static int read_file(const char *name, char **out_bytes, size_t *out_count) {
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  struct stat facts;
  char *bytes = NULL;
  size_t size = 0, done = 0;
  if (fstat(fd, &facts) == 0 && facts.st_size >= 0 && (uint64_t)facts.st_size <= WORKER_MAX_BYTES) {
    size = (size_t)facts.st_size;
    bytes = malloc(size + 1);
  }
  while (bytes && done < size) {
    ssize_t n = read(fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += (size_t)n;
  }
  close(fd);
  if (!bytes || done != size) {
    free(bytes);
    return 0;
  }
  bytes[size] = '\0';
  *out_bytes = bytes;
  *out_count = size;
  return 1;
}

/* clang's own errors and the compile's go into the log file. 0: started and ended, *out_status is wait's. */
static int run(const char *path, const char **arguments, int *out_status) {
  posix_spawn_file_actions_t actions;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed) return failed;
  pid_t child = 0;
  failed =
      posix_spawn_file_actions_addopen(&actions, 1, LOG_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (!failed) failed = posix_spawn(&child, path, &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return failed;
  while (waitpid(child, out_status, 0) < 0)
    if (errno != EINTR) return errno;
  return 0;
}

void worker_clang_compile(const char *compiler, const char *path, const worker_job *job,
                          worker_answer *out_answer) {
  (void)compiler;
  unlink(OUTPUT_NAME);
  if (!write_file(WORKER_SOURCE_NAME, job->source, job->source_bytes)) {
    worker_answer_say(out_answer, WORKER_IO, errno, WORKER_SOURCE_NAME ": ", strerror(errno));
    return;
  }
  const char **arguments = calloc((size_t)job->option_count + 6, sizeof *arguments);
  if (!arguments) {
    out_answer->outcome = WORKER_NO_MEMORY;
    return;
  }
  int count = 0;
  arguments[count++] = path;
  for (int i = 0; i < job->option_count; i++)
    arguments[count++] = job->options[i];
  /* Without this a crash writes the preprocessed source and a script beside it. */
  arguments[count++] = "-fno-crash-diagnostics";
  arguments[count++] = WORKER_SOURCE_NAME;
  arguments[count++] = "-o";
  arguments[count++] = OUTPUT_NAME;
  double start = worker_now();
  int status = 0, failed = run(path, arguments, &status);
  out_answer->seconds = worker_now() - start;
  free(arguments);
  if (failed) {
    worker_answer_say(out_answer, WORKER_NO_COMPILER, failed, "", strerror(failed));
    return;
  }
  read_file(LOG_NAME, &out_answer->log, &out_answer->log_bytes);
  if (WIFSIGNALED(status)) {
    out_answer->outcome = WORKER_BROKE_DOWN;
    out_answer->code = 128 + WTERMSIG(status);
  } else if (WEXITSTATUS(status) != 0) {
    out_answer->code = WEXITSTATUS(status);
    out_answer->outcome = out_answer->code >= CLANG_BROKE_DOWN ? WORKER_BROKE_DOWN : WORKER_REJECTED;
  } else if (access(OUTPUT_NAME, F_OK) != 0) {
    /* Success without a code object: the parent refuses it as it does a wrong one. */
    out_answer->code_object_bytes = 0;
  } else if (!read_file(OUTPUT_NAME, &out_answer->code_object, &out_answer->code_object_bytes)) {
    worker_answer_say(out_answer, WORKER_IO, errno, OUTPUT_NAME ": ", strerror(errno));
  }
}
