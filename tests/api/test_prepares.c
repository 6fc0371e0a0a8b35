/* Preparing through heddle.h: one, many, later, after a fork. threads.c has several threads at it. */
#include "fixture.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Caches of their own, so that what is compiled now is known. */
static hd_context *fresh_context(hd_log_function log, void *user) {
  MAKE(hd_context_options, o);
  hd_context *c = NULL;
  if (why == NULL) cr_assert_eq(hd_diagnostics_create(&why), HD_OK);
  o.device = "emu:gfx950";
  o.cache_directory = "";
  o.log = log;
  o.log_user = user;
  OK(hd_context_create(&o, &c, why));
  cr_assert_eq(hd_diagnostics_count(why), 0u, "%s", hd_diagnostics_text(why));
  return c;
}

typedef struct watch {
  size_t calls, count;
  size_t last_done;
  unsigned seen; /* bit an index */
  char names[256];
  pthread_mutex_t lock;
} watch;

static void on_progress(void *user, const hd_progress *p) {
  watch *w = user;
  w->calls++;
  cr_assert_eq(p->done, w->last_done + 1, "one at a time, in order");
  w->last_done = p->done;
  w->count = p->count;
  w->seen |= 1u << p->index;
}

static void on_log(void *user, hd_severity severity, const char *message) {
  watch *w = user;
  (void)severity;
  pthread_mutex_lock(&w->lock);
  strncat(w->names, message, sizeof w->names - strlen(w->names) - 1);
  pthread_mutex_unlock(&w->lock);
}

Test(api_prepares, many_at_once_with_progress) {
  watch w = {0};
  hd_context *c = fresh_context(NULL, NULL);
  hd_contract *good = parse(spec_nhd);
  hd_job jobs[4] = {job_of(good, HD_DECODE), job_of(good, HD_WRITE), job_of(good, HD_DECODE),
                    job_of(good, HD_DECODE)};
  hd_kernel *kernels[4];
  hd_status statuses[4];
  jobs[3].variant = "w3"; /* no number of waves */
  cr_assert_eq(hd_prepare_many(c, jobs, 4, on_progress, &w, kernels, statuses, why), HD_DECLINED);
  cr_assert_eq(w.calls, 4u);
  cr_assert_eq(w.count, 4u);
  cr_assert_eq(w.seen, 15u);
  for (int i = 0; i < 3; i++)
    cr_assert_eq(statuses[i], HD_OK);
  cr_assert_eq(statuses[3], HD_DECLINED);
  cr_assert_null(kernels[3]);
  MAKE(hd_kernel_info, info);
  OK(hd_kernel_get_info(kernels[1], &info));
  cr_assert_str_eq(info.operation, "write");
  cr_assert_str_eq(info.origin, "compiled");
  hd_context_destroy(c);
  for (int i = 0; i < 4; i++)
    hd_kernel_release(kernels[i]);
  hd_contract_destroy(good);
}

Test(api_prepares, in_the_background) {
  watch w = {.lock = PTHREAD_MUTEX_INITIALIZER};
  hd_context *c = fresh_context(on_log, &w);
  hd_contract *good = parse(spec_nhd);
  hd_job jobs[] = {job_of(good, HD_DECODE), job_of(NULL, HD_WRITE)};
  hd_future *f = NULL;
  hd_kernel *k = NULL, *again = NULL;
  OK(hd_prepare_async(c, jobs, 2, on_progress, &w, &f, why));
  hd_contract_destroy(good); /* what was asked for was copied */
  hd_context_destroy(c);
  hd_status waited = hd_future_wait(f, 0);
  cr_assert(waited == HD_OK || waited == HD_UNAVAILABLE);
  cr_assert_eq(hd_future_wait(f, -1), HD_OK);
  cr_assert_eq(hd_future_done(f), 1);
  cr_assert_eq(w.calls, 2u);
  OK(hd_future_take(f, 0, &k, why));
  cr_assert_eq(hd_future_take(f, 0, &again, why), HD_INVALID, "taken");
  SAYS(HD_INVALID, "context.options", hd_future_take(f, 1, &again, why));
  cr_assert_eq(hd_future_take(f, 2, &again, why), HD_INVALID);
  hd_future_destroy(f);
  cr_assert(strstr(w.names, "nhd/decode") != NULL, "the log: %s", w.names);
  MAKE(hd_kernel_info, info);
  OK(hd_kernel_get_info(k, &info));
  hd_kernel_release(k);
}

Test(api_prepares, a_future_nobody_waits_for) {
  hd_context *c = fresh_context(NULL, NULL);
  hd_contract *good = parse(spec_nhd);
  const hd_job job = job_of(good, HD_WRITE);
  hd_future *f = NULL;
  OK(hd_prepare_async(c, &job, 1, NULL, NULL, &f, why));
  hd_future_destroy(f);
  OK(hd_prepare_async(c, NULL, 0, NULL, NULL, &f, why));
  cr_assert_eq(hd_future_wait(f, 10), HD_OK);
  hd_future_destroy(f);
  hd_contract_destroy(good);
  hd_context_destroy(c);
}

/* ---- Packs ---- */

Test(api_prepares, a_pack_serves_where_nothing_may_be_compiled) {
  char folder[] = "/tmp/heddle-test-pack-XXXXXX", path[64], command[512];
  watch w = {.lock = PTHREAD_MUTEX_INITIALIZER};
  hd_contract *contract = parse(spec_nhd);
  const hd_job decode = job_of(contract, HD_DECODE);
  hd_job other = decode;
  hd_kernel *k = NULL;
  MAKE(hd_kernel_info, info);
  cr_assert(mkdtemp(folder) != NULL && getenv("HEDDLE") != NULL);
  snprintf(path, sizeof path, "%s/spec.yaml", folder);
  FILE *spec = fopen(path, "w");
  cr_assert(spec != NULL && fputs(spec_nhd, spec) >= 0 && fclose(spec) == 0);
  snprintf(command, sizeof command, "'%s' pack %s --target gfx950 -o %s/kernels.pack >/dev/null",
           getenv("HEDDLE"), path, folder);
  cr_assert_eq(system(command), 0);
  setenv("HEDDLE_NO_JIT", "1", 1);
  hd_context *c = fresh_context(on_log, &w);
  SAYS(HD_UNAVAILABLE, "compile.no-jit", hd_prepare(c, &decode, &k, why));
  SAYS(HD_IO, "cache.pack", hd_context_add_pack(c, "/nowhere/kernels.pack", why));
  SAYS(HD_INVALID, "cache.pack", hd_context_add_pack(c, path, why));
  snprintf(path, sizeof path, "%s/kernels.pack", folder);
  OK(hd_context_add_pack(c, path, why));
  OK(hd_prepare(c, &decode, &k, why));
  OK(hd_kernel_get_info(k, &info));
  cr_assert_str_eq(info.origin, "cache");
  cr_assert(info.code_object_bytes > 0 && strlen(info.code_key) == 64);
  hd_kernel_release(k);
  other.variant = "w2";
  SAYS(HD_UNAVAILABLE, "compile.no-jit", hd_prepare(c, &other, &k, why));
  unsetenv("HEDDLE_NO_JIT");
  hd_contract_destroy(contract);
  hd_context_destroy(c);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

/* ---- Fork ---- */

/* What the child finds: 0 when everything is as the header promises. */
static int in_child(engine *e, hd_binding *b) {
  hd_kernel *k = NULL;
  engine own;
  float out[OUT_FLOATS];
  const hd_job job = job_of(e->contract, HD_DECODE);
  const hd_arguments a = engine_arguments(e, 1);
  hd_diagnostic first;
  if (hd_launch(e->decode, &a, NULL, why) != HD_INVALID) return 1;
  if (hd_diagnostics_get(why, 0, &first) != HD_OK || strcmp(first.code, "context.forked") != 0) return 2;
  if (hd_binding_launch(b, NULL, why) != HD_INVALID || hd_prepare(e->context, &job, &k, why) != HD_INVALID)
    return 3;
  hd_binding_destroy(b);
  engine_close(e);
  engine_open(&own, "emu:gfx950");
  const hd_arguments mine = engine_arguments(&own, 1);
  if (hd_launch(own.decode, &mine, NULL, why) != HD_OK) return 4;
  engine_out(&own, out);
  engine_close(&own);
  return isnan(out[0]) ? 5 : 0;
}

Test(api_prepares, a_child_makes_contexts_of_its_own) {
  engine e;
  hd_binding *b = NULL;
  int status = -1;
  float out[OUT_FLOATS];
  engine_open(&e, "emu:gfx950");
  const hd_arguments a = engine_arguments(&e, 1);
  OK(hd_bind(e.decode, &a, &b, why));
  pid_t child = fork();
  if (child == 0) _exit(in_child(&e, b));
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
  OK(hd_binding_launch(b, NULL, why)); /* the parent never notices */
  engine_out(&e, out);
  cr_assert(!isnan(out[0]));
  hd_binding_destroy(b);
  engine_close(&e);
}

Test(api_prepares, a_child_of_a_process_without_context) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    engine e;
    engine_open(&e, "emu:gfx950");
    const hd_arguments a = engine_arguments(&e, 1);
    _exit(hd_launch(e.decode, &a, NULL, why) == HD_OK ? 0 : 1);
  }
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
