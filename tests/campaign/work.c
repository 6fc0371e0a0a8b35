#include "work.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSES = 64, IDLE = -1 };

/* Shared by all processes. */
typedef struct board {
  atomic_int next;
  atomic_int at[MAX_PROCESSES]; /* the job each process is at */
} board;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note_outcome(void *user, const verify_outcome *o) {
  work_result *r = user;
  r->cases++;
  if (o->decoded) {
    r->rms = fmax(r->rms, o->rms);
    r->row_rms = fmax(r->row_rms, o->row_rms);
    if (isfinite(o->lse_error)) r->lse = fmax(r->lse, o->lse_error);
  }
  if (o->good) return;
  r->bad++;
  if (!r->problem[0]) snprintf(r->problem, sizeof r->problem, "%s: %s", o->name, o->problem);
}

static void note_diagnostic(const diags *d, work_result *r) {
  for (size_t i = 0; i < d->count; i++) {
    if (d->items[i].severity != DIAG_ERROR) continue;
    snprintf(r->code, sizeof r->code, "%s", d->items[i].code);
    snprintf(r->problem, sizeof r->problem, "%s%s%s", d->items[i].field ? d->items[i].field : "",
             d->items[i].field ? ": " : "", d->items[i].message);
    return;
  }
}

/* A session is kept for jobs on the same device. */
typedef struct worker {
  session session;
  const char *device; /* NULL: no session */
} worker;

static hd_status worker_session(worker *w, const work_job *job, diags *d) {
  if (w->device && strcmp(w->device, job->device) == 0) return HD_OK;
  if (w->device) session_close(&w->session);
  w->device = NULL;
  hd_status status = session_open(job->device, COMPILER_AUTO, NULL, &w->session, d);
  if (status == HD_OK) w->device = job->device;
  return status;
}

static hd_status run_spec(worker *w, const work_job *job, const spec *s, work_result *r, diags *d) {
  const verify_options options = {.seed = job->seed,
                                  .random_cases = job->random_cases,
                                  .split = job->split,
                                  .padded = job->padded,
                                  .only = job->only};
  contract resolved = contract_resolve(&s->contract, target_find(job->target)->fp8);
  int bad = 0;
  for (int o = OPERATION_WRITE; o <= OPERATION_DECODE; o++) {
    hd_status status = emit_check(&resolved, (operation)o, &job->variant, target_find(job->target), d);
    r->declined = status == HD_DECLINED;
    if (status != HD_OK) return status;
  }
  hd_status status = worker_session(w, job, d);
  if (status != HD_OK) return status;
  return verify_run(&w->session, &resolved, s->name, &job->variant, &options, note_outcome, r, &bad, d);
}

static void run_job(worker *w, const work_job *job, work_result *r) {
  spec s;
  diags d;
  double start = now();
  diags_init(&d);
  hd_status status = spec_parse(job->yaml, strlen(job->yaml), &s, &d);
  if (status == HD_OK) {
    status = run_spec(w, job, &s, r, &d);
    spec_finish(&s);
  }
  if (status != HD_OK) {
    note_diagnostic(&d, r);
    if (!r->code[0]) snprintf(r->code, sizeof r->code, "status-%d", (int)status);
  }
  diags_finish(&d);
  r->done = true;
  r->seconds = now() - start;
}

static void send_result(int to, const work_result *r) {
  const char *at = (const char *)r;
  for (size_t sent = 0; sent < sizeof *r;) {
    ssize_t n = write(to, at + sent, sizeof *r - sent);
    if (n < 0 && errno != EINTR) _exit(3);
    if (n > 0) sent += (size_t)n;
  }
}

static _Noreturn void work(board *b, int place, const work_job *jobs, int count, int seconds, int to) {
  worker w = {.device = NULL};
  for (;;) {
    int i = atomic_fetch_add(&b->next, 1);
    if (i >= count) break;
    atomic_store(&b->at[place], i);
    alarm((unsigned)seconds);
    work_result r = {.job = i};
    run_job(&w, &jobs[i], &r);
    alarm(0);
    send_result(to, &r);
    atomic_store(&b->at[place], IDLE);
  }
  if (w.device) session_close(&w.session);
  _exit(0);
}

/* Where the results of one process come from. */
typedef struct place {
  pid_t pid; /* 0: none */
  int from;
} place;

static bool start_process(board *b, place *places, int at, const work_job *jobs, int count, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  atomic_store(&b->at[at], IDLE);
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    work(b, at, jobs, count, seconds, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return false;
  }
  places[at] = (place){pid, ends[0]};
  return true;
}

static bool receive(int from, work_result *r) {
  char *at = (char *)r;
  for (size_t got = 0; got < sizeof *r;) {
    ssize_t n = read(from, at + got, sizeof *r - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += (size_t)n;
  }
  return true;
}

/* The process at a place has ended. What it was at, if anything, is its result. */
static void bury(board *b, place *p, int at, const work_job *jobs, int seconds, work_report report,
                 void *user) {
  int state = 0, job = atomic_load(&b->at[at]);
  close(p->from);
  waitpid(p->pid, &state, 0);
  *p = (place){0, -1};
  if (job == IDLE) return;
  work_result r = {.job = job};
  snprintf(r.code, sizeof r.code, "crash");
  if (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM)
    snprintf(r.problem, sizeof r.problem, "took more than %d s", seconds);
  else if (WIFSIGNALED(state))
    snprintf(r.problem, sizeof r.problem, "the process was ended by signal %d", WTERMSIG(state));
  else
    snprintf(r.problem, sizeof r.problem, "the process ended with code %d", WEXITSTATUS(state));
  report(user, &jobs[job], &r);
}

bool work_run(const work_job *jobs, int count, int processes, int seconds, work_report report, void *user) {
  place places[MAX_PROCESSES] = {{0, -1}};
  board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) return false;
  if (processes > MAX_PROCESSES) processes = MAX_PROCESSES;
  atomic_store(&b->next, 0);
  bool good = true;
  int running = 0;
  for (int i = 0; i < processes; i++) {
    good = start_process(b, places, i, jobs, count, seconds);
    if (!good) break;
    running++;
  }
  while (running > 0) {
    struct pollfd polls[MAX_PROCESSES];
    for (int i = 0; i < processes; i++)
      polls[i] = (struct pollfd){.fd = places[i].pid ? places[i].from : -1, .events = POLLIN};
    if (poll(polls, (nfds_t)processes, -1) < 0) continue;
    for (int i = 0; i < processes; i++) {
      if (polls[i].fd < 0 || !polls[i].revents) continue;
      work_result r;
      if (receive(places[i].from, &r)) {
        report(user, &jobs[r.job], &r);
        continue;
      }
      bury(b, &places[i], i, jobs, seconds, report, user);
      running--;
      if (good && atomic_load(&b->next) < count) {
        good = start_process(b, places, i, jobs, count, seconds);
        running += good;
      }
    }
  }
  munmap(b, sizeof *b);
  return good;
}

void work_write_command(const work_job *job, const char *file, text *out) {
  text_addf(out, "heddle verify %s --device %s --variant ", file, job->device);
  variant_write(&job->variant, out);
  text_addf(out, " --seed %llu --cases %d", (unsigned long long)job->seed, job->random_cases);
  if (job->only) text_addf(out, " --only %s", job->only);
  if (job->split) text_addf(out, " --split %lld", (long long)job->split);
  if (job->padded) text_add(out, " --padded");
}
