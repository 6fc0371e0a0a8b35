/* heddle-compile-worker: compiles what comes in on standard input until that ends. See worker.h. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef void (*compile_function)(const char *compiler, const char *path, const worker_job *job,
                                 worker_answer *out_answer);

static const struct {
  const char *name;
  compile_function compile;
} compilers[] = {
    {"hiprtc", worker_rtc_compile},
    {"nvrtc", worker_rtc_compile},
    {"llvm", worker_clang_compile},
};

void worker_answer_say(worker_answer *a, worker_outcome outcome, int code, const char *before,
                       const char *what) {
  free(a->code_object);
  free(a->log);
  *a = (worker_answer){.outcome = outcome, .code = code};
  size_t size = strlen(before) + strlen(what) + 1;
  a->log = malloc(size);
  if (!a->log) return;
  snprintf(a->log, size, "%s%s", before, what);
  a->log_bytes = size - 1;
}

double worker_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 1: read; 0: the input ended before the first byte; -1: it ended or failed in the middle. */
static int read_all(int fd, void *to, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t n = read(fd, (char *)to + done, count - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return done == 0 && n == 0 ? 0 : -1;
    done += (size_t)n;
  }
  return 1;
}

static int write_all(int fd, const void *from, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t n = write(fd, (const char *)from + done, count - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return 1;
}

static void job_finish(worker_job *job) {
  for (int i = 0; i < job->option_count; i++)
    free((char *)job->options[i]);
  free(job->options);
  free((char *)job->source);
}

static char *read_string(int fd, size_t length) {
  char *string = malloc(length + 1);
  if (!string) return NULL;
  if (length > 0 && read_all(fd, string, length) != 1) {
    free(string);
    return NULL;
  }
  string[length] = '\0';
  return string;
}

/* As read_all. */
static int job_read(int fd, worker_job *out_job) {
  worker_request_head head;
  *out_job = (worker_job){0};
  int got = read_all(fd, &head, sizeof head);
  if (got != 1) return got;
  if (head.magic != WORKER_REQUEST_MAGIC || head.version != WORKER_VERSION) return -1;
  if (head.option_count > WORKER_MAX_OPTIONS || head.source_bytes > WORKER_MAX_BYTES) return -1;
  worker_job job = {.options = calloc(head.option_count + 1, sizeof *job.options)};
  if (!job.options) return -1;
  for (uint32_t i = 0; i < head.option_count; i++) {
    uint32_t length;
    if (read_all(fd, &length, sizeof length) != 1 || length > WORKER_MAX_BYTES ||
        !(job.options[i] = read_string(fd, length))) {
      job_finish(&job);
      return -1;
    }
    job.option_count++;
  }
  job.source_bytes = (size_t)head.source_bytes;
  job.source = read_string(fd, job.source_bytes);
  if (!job.source) {
    job_finish(&job);
    return -1;
  }
  *out_job = job;
  return 1;
}

static int answer_write(int fd, const worker_answer *a) {
  worker_response_head head = {.magic = WORKER_RESPONSE_MAGIC,
                               .version = WORKER_VERSION,
                               .outcome = (uint32_t)a->outcome,
                               .code = a->code,
                               .code_object_bytes = a->code_object_bytes,
                               .log_bytes = a->log_bytes,
                               .seconds = a->seconds};
  if (write_all(fd, &head, sizeof head) < 0) return -1;
  if (a->code_object_bytes > 0 && write_all(fd, a->code_object, a->code_object_bytes) < 0) return -1;
  if (a->log_bytes > 0 && write_all(fd, a->log, a->log_bytes) < 0) return -1;
  return 1;
}

/* RLIMIT_DATA and not RLIMIT_AS: it counts private writable memory alone, while a compiler's address space is
 * mostly mapped libraries (hiprtc: 0.2 GB of them). */
static void limit(unsigned long long memory_bytes) {
  struct rlimit memory = {(rlim_t)memory_bytes, (rlim_t)memory_bytes}, none = {0, 0};
  struct rlimit file = {(rlim_t)WORKER_MAX_BYTES, (rlim_t)WORKER_MAX_BYTES};
  if (memory_bytes > 0) setrlimit(RLIMIT_DATA, &memory);
  setrlimit(RLIMIT_FSIZE, &file); /* a log that never ends */
  setrlimit(RLIMIT_CORE, &none);
}

/* The worker leads a process group of its own: this takes along clang and whatever clang started. */
static void end_group(int signal_number) {
  (void)signal_number;
  kill(0, SIGKILL);
}

/* A parent that was killed leaves no compile behind. The kernel's signal reaches this process alone, so with
 * a clang below it passes the end on. A library's worker has no children, and a library may put a handler of
 * its own in the place of ours: there it is SIGKILL. */
static void end_with_parent(int has_children) {
  struct sigaction action = {.sa_handler = end_group};
  if (!has_children || getpgrp() != getpid() || sigaction(SIGTERM, &action, NULL) != 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  else
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Whether nobody reads answers any more: the parent was gone before end_with_parent could ask for its
 * signal. */
static int is_orphan(int out) {
  struct pollfd end = {.fd = out};
  return poll(&end, 1, 0) == 1 && (end.revents & POLLERR);
}

/* Should this process be killed together with its parent, nobody is left to end clang. It counts its own
 * processor time from zero; a library's compiles all count here, so there it would be no limit on one of
 * them. */
static void limit_child_time(unsigned long long seconds) {
  struct rlimit time = {(rlim_t)seconds, (rlim_t)seconds};
  if (seconds > 0) setrlimit(RLIMIT_CPU, &time);
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr,
            "heddle-compile-worker: started by heddle, not by hand: COMPILER PATH MEMORY_BYTES SECONDS\n");
    return 2;
  }
  compile_function compile = NULL;
  for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++)
    if (strcmp(compilers[i].name, arguments[1]) == 0) compile = compilers[i].compile;
  if (!compile) {
    fprintf(stderr, "heddle-compile-worker: no compiler is called %s\n", arguments[1]);
    return 2;
  }
  /* Whatever the host had open without O_CLOEXEC is none of the compiler's business. */
  close_range(3, ~0U, 0);
  limit(strtoull(arguments[3], NULL, 10));
  int has_children = strcmp(arguments[1], "llvm") == 0;
  end_with_parent(has_children);
  if (has_children) limit_child_time(strtoull(arguments[4], NULL, 10));

  /* The protocol moves away from 0 and 1: a compiler that prints must not be able to write into it. */
  int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3),
      null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0) return 3;
  const char *folder = getenv("TMPDIR");
  if (folder && chdir(folder) != 0) return 3;

  for (;;) {
    worker_job job;
    int got = job_read(in, &job);
    if (got != 1) return got == 0 ? 0 : 4;
    if (is_orphan(out)) return 0;
    worker_answer answer = {0};
    compile(arguments[1], arguments[2], &job, &answer);
    int sent = answer_write(out, &answer);
    free(answer.code_object);
    free(answer.log);
    job_finish(&job);
    if (sent < 0) return 5;
  }
}
