/* Several threads on one context: preparing now, lazily and in the background, launching kernels of all and
 * of their own on streams of their own, matching, asking. A program without a test framework, so that it also
 * runs under ThreadSanitizer (CONTRIBUTING.md has the command). */
#define FIXTURE_PLAIN
#include "fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 6, ROUNDS = 6 };

typedef struct shared {
  engine engine;
  hd_kernel *lazy;
  float expected[OUT_FLOATS];
  atomic_int messages;
} shared;

static void on_log(void *user, hd_severity severity, const char *message) {
  shared *s = user;
  (void)severity;
  atomic_fetch_add(&s->messages, message[0] != '\0');
}

/* What one thread has for itself. */
typedef struct worker {
  shared *shared;
  hd_diagnostics *why;
  hd_stream *stream;
  hd_kernel *own;
  uint64_t out;
  hd_tensor tensors[READ_COUNT];
  pthread_t thread;
  bool in_background;
} worker;

static bool prepare_own(worker *w, bool in_background) {
  const engine *e = &w->shared->engine;
  const hd_job job = job_of(e->contract, HD_DECODE);
  hd_future *f = NULL;
  if (!in_background) return hd_prepare(e->context, &job, &w->own, w->why) == HD_OK;
  bool good = hd_prepare_async(e->context, &job, 1, NULL, NULL, &f, w->why) == HD_OK &&
              hd_future_take(f, 0, &w->own, w->why) == HD_OK;
  hd_future_destroy(f);
  return good;
}

static bool matches(worker *w) {
  const hd_candidate candidate = {w->shared->engine.contract, NULL, 0};
  size_t chosen = 9;
  MAKE(hd_match_request, r);
  r.operation = HD_DECODE;
  r.tensors = w->tensors;
  r.tensor_count = READ_COUNT;
  return hd_match(&r, &candidate, 1, "gfx950", &chosen, &w->why) == HD_OK && chosen == 0;
}

static bool launch_once(worker *w, hd_kernel *k, bool bound) {
  const engine *e = &w->shared->engine;
  float got[OUT_FLOATS];
  hd_binding *b = NULL;
  hd_arguments a = engine_arguments(e, 1);
  MAKE(hd_kernel_info, info);
  a.tensors = w->tensors;
  memset(got, 0, sizeof got);
  hd_status status = bound ? hd_bind(k, &a, &b, w->why) : hd_launch(k, &a, w->stream, w->why);
  if (bound && status == HD_OK) status = hd_binding_launch(b, w->stream, w->why);
  hd_binding_destroy(b);
  return status == HD_OK && hd_kernel_get_info(k, &info) == HD_OK &&
         hd_memory_copy_out(e->context, w->stream, got, w->out, sizeof got, w->why) == HD_OK &&
         memcmp(got, w->shared->expected, sizeof got) == 0;
}

static void *use(void *user) {
  worker *w = user;
  const engine *e = &w->shared->engine;
  bool good = hd_diagnostics_create(&w->why) == HD_OK && prepare_own(w, w->in_background) &&
              hd_stream_create(e->context, &w->stream, w->why) == HD_OK &&
              hd_memory_allocate(e->context, OUT_FLOATS * sizeof(float), &w->out, w->why) == HD_OK;
  w->tensors[READ_COUNT - 1].address = w->out;
  hd_kernel *const kernels[] = {w->own, w->shared->lazy, e->decode};
  for (int round = 0; good && round < ROUNDS; round++)
    good = launch_once(w, kernels[round % 3], round % 2 == 0) && matches(w);
  hd_kernel_release(w->own);
  if (w->out != 0) hd_memory_release(e->context, w->out, NULL);
  hd_stream_destroy(e->context, w->stream);
  hd_diagnostics_destroy(w->why);
  return good ? user : NULL;
}

int main(void) {
  static shared s;
  static worker workers[THREADS];
  MAKE(hd_context_options, o);
  o.device = "emu:gfx950";
  o.log = on_log;
  o.log_user = &s;
  cr_assert_eq(hd_diagnostics_create(&why), HD_OK, "memory");
  OK(hd_context_create(&o, &s.engine.context, why));
  s.engine.contract = parse(spec_nhd);
  s.engine.decode = prepare(s.engine.context, s.engine.contract, HD_DECODE);
  engine_fill(&s.engine);
  engine_workspace(&s.engine);
  const hd_arguments a = engine_arguments(&s.engine, 1);
  OK(hd_launch(s.engine.decode, &a, NULL, why));
  engine_out(&s.engine, s.expected);
  const hd_job job = job_of(s.engine.contract, HD_DECODE);
  OK(hd_prepare_lazily(s.engine.context, &job, &s.lazy, why));
  for (int i = 0; i < THREADS; i++) {
    workers[i].shared = &s;
    workers[i].in_background = i % 2 == 0;
    memcpy(workers[i].tensors, s.engine.read, sizeof workers[i].tensors);
    cr_assert_eq(pthread_create(&workers[i].thread, NULL, use, &workers[i]), 0, "no thread");
  }
  bool good = true;
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(workers[i].thread, &result);
    good &= result == &workers[i];
  }
  hd_kernel_release(s.lazy);
  engine_close(&s.engine);
  hd_diagnostics_destroy(why);
  return good && s.messages > THREADS ? 0 : 1;
}
