#include "compile.h"

#include "compile_log.h"
#include "worker_process.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SECONDS 60.0
#define DEFAULT_MEMORY ((size_t)4 << 30)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one request's outcome in words ---- */

/* What an exchange is about, for its diagnostics. */
typedef struct matter {
  const compiler *compiler;
  const compile_request *request;
  const compile_limits *limits; /* with the defaults filled in */
  compile_result *result;
} matter;

static void who(const matter *m, char *out, size_t size) {
  snprintf(out, size, "%s for %s", m->request->name ? m->request->name : "kernel", m->request->target->name);
}

/* A declined result with one diagnostic, "NAME for TARGET: …". */
#define decline(m, code, ...)                                                                                \
  do {                                                                                                       \
    char decline_who[300], decline_what[1400];                                                               \
    who(m, decline_who, sizeof decline_who);                                                                 \
    snprintf(decline_what, sizeof decline_what, __VA_ARGS__);                                                \
    diags_errorf(&(m)->result->diags, code, NULL, "%s: %s", decline_who, decline_what);                      \
    (m)->result->status = HD_DECLINED;                                                                       \
  } while (0)

static void decline_memory(const matter *m) {
  decline(m, "compile.memory", "%s needed more than the %zu MiB of memory that it may use",
          compiler_name(m->compiler->kind), m->limits->memory_bytes >> 20);
}

/* An AMD code object says in its ELF header which machine it is for. The cache checks more; this catches a
 * compiler that answered another question than the one asked. */
static bool is_code_for(const target *t, const unsigned char *code, size_t size) {
  if (size < 64 || memcmp(code, "\177ELF", 4) != 0) return false;
  return t->elf_machine == 0 || code[48] == t->elf_machine; /* e_flags at 48, its low byte is the machine */
}

static void rejected(const matter *m, const worker_answer *a) {
  const char *log = a->log ? a->log : "";
  if (compile_log_blames_memory(log)) {
    decline_memory(m);
    return;
  }
  char name[300];
  who(m, name, sizeof name);
  const char *code = compile_log_blames_options(log) ? "compile.option" : "compile.rejected";
  if (compile_log_errors(log, code, name, &m->result->diags) > 0) {
    m->result->status = HD_DECLINED;
    return;
  }
  char gist[400];
  compile_log_gist(log, gist, sizeof gist);
  if (gist[0])
    decline(m, "compile.rejected", "%s failed with code %d: %s", compiler_name(m->compiler->kind), a->code,
            gist);
  else
    decline(m, "compile.silent",
            "%s failed with code %d and gave no reason; it does so for an architecture that it doesn't know "
            "and for a "
            "temporary folder that it can't write",
            compiler_name(m->compiler->kind), a->code);
}

static void broke_down(const matter *m, const worker_answer *a) {
  const char *log = a->log ? a->log : "";
  char gist[600];
  compile_log_gist(log, gist, sizeof gist);
  if (compile_log_blames_memory(log))
    decline_memory(m);
  else
    decline(m, "compile.crashed", "%s broke down (code %d): %s", compiler_name(m->compiler->kind), a->code,
            gist);
}

static void compiled(const matter *m, worker_answer *a) {
  if (!is_code_for(m->request->target, (const unsigned char *)a->code_object, a->code_object_bytes)) {
    decline(m, "compile.malformed",
            "%s said that it compiled, but what it returned is no code object for this target (%zu bytes)",
            compiler_name(m->compiler->kind), a->code_object_bytes);
    return;
  }
  m->result->code_object = a->code_object;
  m->result->code_object_size = a->code_object_bytes;
  a->code_object = NULL;
  m->result->status = HD_OK;
}

static void no_compiler(const matter *m, const worker_answer *a) {
  diags_errorf(&m->result->diags, "compile.library", NULL, "%s can't be used: %s", m->compiler->path,
               a->log ? a->log : "");
  m->result->status = HD_UNAVAILABLE;
}

static void no_file(const matter *m, const worker_answer *a) {
  diags_errorf(&m->result->diags, "compile.temporary", NULL,
               "the compile worker's temporary folder can't be used: %s", a->log ? a->log : "");
  m->result->status = HD_IO;
}

static void answered(const matter *m, worker_answer *a, const char *folder) {
  if (a->log) compile_log_clean(a->log, folder);
  switch (a->outcome) {
  case WORKER_COMPILED:
    compiled(m, a);
    break;
  case WORKER_REJECTED:
    rejected(m, a);
    break;
  case WORKER_BROKE_DOWN:
    broke_down(m, a);
    break;
  case WORKER_NO_COMPILER:
    no_compiler(m, a);
    break;
  case WORKER_NO_MEMORY:
    decline_memory(m);
    break;
  case WORKER_IO:
    no_file(m, a);
    break;
  }
  free(a->code_object);
  if (a->log && a->log[0])
    m->result->log = a->log;
  else
    free(a->log);
}

/* The worker went away in the middle of this request. */
static void died(const matter *m, const worker_end *end) {
  char gist[600];
  compile_log_gist(end->errors, gist, sizeof gist);
  const char *colon = gist[0] ? ": " : "";
  bool at_limit = end->peak_bytes >= m->limits->memory_bytes - m->limits->memory_bytes / 10;
  m->result->log = end->errors[0] ? strdup(end->errors) : NULL;
  if (compile_log_blames_memory(end->errors) || at_limit)
    decline_memory(m);
  else if (!end->status_known)
    decline(m, "compile.crashed", "the compile worker ended in the middle of %s%s%s",
            compiler_name(m->compiler->kind), colon, gist);
  else if (WIFSIGNALED(end->status))
    decline(m, "compile.crashed", "%s ended by signal %d (%s)%s%s", compiler_name(m->compiler->kind),
            WTERMSIG(end->status), strsignal(WTERMSIG(end->status)), colon, gist);
  else {
    diags_errorf(&m->result->diags, "compile.worker", NULL, "the compile worker ended with status %d%s%s",
                 WEXITSTATUS(end->status), colon, gist);
    m->result->status = HD_UNAVAILABLE;
  }
}

/* ---- many requests ---- */

/* What the threads of one compile_all share; only `next` is written. */
typedef struct crew {
  const compiler *compiler;
  const compile_request *requests;
  compile_result *results;
  int count;
  compile_limits limits;
  atomic_int next;
} crew;

static hd_status gather_options(const compiler *c, const compile_request *r,
                                const char *out_options[WORKER_MAX_OPTIONS], int *out_count, diags *errors) {
  const char *own[32];
  int count = compiler_options(c->kind, r->target, own);
  if (count == 0 || r->extra_option_count < 0 || count + r->extra_option_count > WORKER_MAX_OPTIONS) {
    diags_errorf(errors, "compile.request", NULL,
                 "%s does not compile for %s, or there are more than %d options", compiler_name(c->kind),
                 r->target->name, WORKER_MAX_OPTIONS);
    return HD_INVALID;
  }
  memcpy(out_options, own, (size_t)count * sizeof *own);
  for (int i = 0; i < r->extra_option_count; i++)
    out_options[count++] = r->extra_options[i];
  *out_count = count;
  return HD_OK;
}

/* False when the worker had served before and died: its past may be to blame, so the caller tries again with
 * a fresh one and the answer does not depend on which requests came before. */
static bool compile_once(worker_process *w, const matter *m, const char *const *options, int option_count) {
  compile_result *r = m->result;
  if (w->pid == 0) {
    r->status = worker_start(w, m->compiler, m->limits, &r->diags);
    if (r->status != HD_OK) return true;
  }
  bool fresh = w->served == 0;
  worker_answer answer;
  worker_exchange_result got = worker_exchange(w, m->request->source, strlen(m->request->source), options,
                                               option_count, m->limits->seconds, &answer);
  if (got == EXCHANGE_DONE) {
    r->seconds = answer.seconds;
    answered(m, &answer, w->folder);
    /* After a failure a worker may be in any state. */
    if (r->status != HD_OK) worker_stop(w, NULL);
    return true;
  }
  worker_end end = {0};
  worker_stop(w, &end);
  switch (got) {
  case EXCHANGE_DIED:
    if (!fresh) return false;
    died(m, &end);
    break;
  case EXCHANGE_TIMEOUT:
    decline(m, "compile.timeout", "%s was stopped after %g seconds, the time that it may take",
            compiler_name(m->compiler->kind), m->limits->seconds);
    break;
  case EXCHANGE_GARBLED:
    diags_errorf(&r->diags, "compile.worker", NULL,
                 "the compile worker gave no proper answer: it is not of this version of heddle");
    r->status = HD_INTERNAL;
    break;
  default:
    r->status = HD_OUT_OF_MEMORY;
    break;
  }
  return true;
}

static void compile_one(worker_process *w, crew *c, int index) {
  compile_result *r = &c->results[index];
  const compile_request *request = &c->requests[index];
  matter m = {.compiler = c->compiler, .request = request, .limits = &c->limits, .result = r};
  const char *options[WORKER_MAX_OPTIONS];
  int option_count = 0;
  double start = now();
  r->status = gather_options(c->compiler, request, options, &option_count, &r->diags);
  if (r->status != HD_OK) return;
  if (!compile_once(w, &m, options, option_count)) compile_once(w, &m, options, option_count);
  r->wall_seconds = now() - start;
}

static void *work(void *argument) {
  crew *c = argument;
  worker_process w = {.in = -1, .out = -1, .errors = -1, .folder_lock = -1};
  for (int index; (index = atomic_fetch_add(&c->next, 1)) < c->count;) {
    compile_one(&w, c, index);
    if (c->limits.finished != NULL) c->limits.finished(c->limits.user, index);
  }
  worker_stop(&w, NULL);
  return NULL;
}

void compile_all(const compiler *c, const compile_request *requests, compile_result *results, int count,
                 int jobs, const compile_limits *limits) {
  enum { MOST_JOBS = 64 };
  crew shared = {.compiler = c, .requests = requests, .results = results, .count = count};
  if (limits) shared.limits = *limits;
  if (shared.limits.seconds <= 0) shared.limits.seconds = DEFAULT_SECONDS;
  if (shared.limits.memory_bytes == 0) shared.limits.memory_bytes = DEFAULT_MEMORY;
  atomic_init(&shared.next, 0);
  for (int i = 0; i < count; i++) {
    results[i] = (compile_result){.status = HD_INTERNAL};
    diags_init(&results[i].diags);
  }
  if (jobs <= 0) jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (jobs > count) jobs = count;
  if (jobs > MOST_JOBS) jobs = MOST_JOBS;
  /* The host's signal handlers stay in the host's threads, and a write to a worker that died raises no
   * SIGPIPE there. Even one job has a thread of its own for that. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t threads[MOST_JOBS];
  int started = 0;
  while (started < jobs && pthread_create(&threads[started], NULL, work, &shared) == 0)
    started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  for (int i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
  /* No thread could be had. */
  for (int i = 0; started == 0 && i < count; i++)
    results[i].status = HD_OUT_OF_MEMORY;
}

void compile_result_finish(compile_result *r) {
  free(r->code_object);
  free(r->log);
  diags_finish(&r->diags);
  *r = (compile_result){0};
}
