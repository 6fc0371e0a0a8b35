/* Many kernels at once, here or in a thread of their own. */
#include "parts.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Without a thread it is the body of hd_prepare_many. */
struct hd_future {
  hd_context *context;
  int count;
  hd_kernel **kernels; /* NULL where a job makes no sense, or when taken */
  hd_status *statuses;
  diags *errors_of_each;
  hd_progress_function progress;
  void *user;
  size_t done; /* under `lock`, with `finished` */
  bool finished;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
};

static void future_free(hd_future *f) {
  for (int i = 0; i < f->count; i++) {
    if (f->kernels != NULL) hd_kernel_release(f->kernels[i]);
    if (f->errors_of_each != NULL) diags_finish(&f->errors_of_each[i]);
  }
  pthread_cond_destroy(&f->changed);
  pthread_mutex_destroy(&f->lock);
  api_context_release(f->context);
  free(f->kernels);
  free(f->statuses);
  free(f->errors_of_each);
  free(f);
}

static bool sync_init(hd_future *f) {
  pthread_condattr_t attributes;
  if (pthread_mutex_init(&f->lock, NULL) != 0) return false;
  bool good = pthread_condattr_init(&attributes) == 0;
  if (good) {
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    good = pthread_cond_init(&f->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
  }
  if (!good) pthread_mutex_destroy(&f->lock);
  return good;
}

/* Copies what the jobs say. A job that makes no sense is an answer of that job. */
static hd_status future_create(hd_context *c, const hd_job *jobs, size_t count, hd_progress_function progress,
                               void *user, hd_future **out_future, diags *errors) {
  if (!api_alive(c, errors)) return HD_INVALID;
  if (count > 0 && (jobs == NULL || jobs->size == 0 || count > INT_MAX / 2)) {
    diags_errorf(errors, "context.options", "jobs", "the jobs are missing, or their size is not set");
    return HD_INVALID;
  }
  hd_future *f = calloc(1, sizeof *f);
  if (f == NULL || !sync_init(f)) {
    free(f);
    return HD_OUT_OF_MEMORY;
  }
  size_t room = count > 0 ? count : 1;
  f->context = api_context_retain(c);
  f->progress = progress;
  f->user = user;
  f->kernels = calloc(room, sizeof *f->kernels);
  f->statuses = calloc(room, sizeof *f->statuses);
  f->errors_of_each = calloc(room, sizeof *f->errors_of_each);
  if (f->kernels == NULL || f->statuses == NULL || f->errors_of_each == NULL) {
    future_free(f);
    return HD_OUT_OF_MEMORY;
  }
  for (; f->count < (int)count; f->count++) {
    const hd_job *job = (const hd_job *)((const unsigned char *)jobs + (size_t)f->count * jobs->size);
    diags_init(&f->errors_of_each[f->count]);
    f->statuses[f->count] = api_kernel_create(c, job, &f->kernels[f->count], &f->errors_of_each[f->count]);
  }
  *out_future = f;
  return HD_OK;
}

/* One more is done; callbacks come one at a time because the lock is held. */
static void report(hd_future *f, int index) {
  pthread_mutex_lock(&f->lock);
  f->done++;
  const hd_progress p = {.done = f->done,
                         .count = (size_t)f->count,
                         .index = (size_t)index,
                         .status = f->statuses[index],
                         .name = f->kernels[index] != NULL ? f->kernels[index]->name : ""};
  if (f->progress != NULL) f->progress(f->user, &p);
  pthread_mutex_unlock(&f->lock);
}

/* What api_prepare works on: the jobs that make sense, side by side. */
typedef struct selection {
  hd_future *future;
  hd_kernel **kernels;
  hd_status *statuses;
  diags *errors_of_each;
  int *index;
} selection;

static void selected(void *user, int i) {
  const selection *s = user;
  s->future->statuses[s->index[i]] = s->statuses[i];
  report(s->future, s->index[i]);
}

static void run(hd_future *f) {
  size_t room = f->count > 0 ? (size_t)f->count : 1;
  selection s = {.future = f,
                 .kernels = calloc(room, sizeof *s.kernels),
                 .statuses = calloc(room, sizeof *s.statuses),
                 .errors_of_each = calloc(room, sizeof *s.errors_of_each),
                 .index = calloc(room, sizeof *s.index)};
  bool memory = s.kernels != NULL && s.statuses != NULL && s.errors_of_each != NULL && s.index != NULL;
  int count = 0;
  for (int i = 0; i < f->count; i++) {
    if (memory && f->statuses[i] == HD_OK) {
      s.kernels[count] = f->kernels[i];
      diags_init(&s.errors_of_each[count]);
      s.index[count++] = i;
      continue;
    }
    if (f->statuses[i] == HD_OK) f->statuses[i] = HD_OUT_OF_MEMORY;
    report(f, i);
  }
  if (memory) api_prepare(f->context, s.kernels, s.statuses, s.errors_of_each, count, selected, &s);
  for (int i = 0; i < count; i++) {
    api_append(&f->errors_of_each[s.index[i]], &s.errors_of_each[i]);
    diags_finish(&s.errors_of_each[i]);
  }
  free(s.kernels);
  free(s.statuses);
  free(s.errors_of_each);
  free(s.index);
}

hd_status hd_prepare_many(hd_context *c, const hd_job *jobs, size_t count, hd_progress_function progress,
                          void *user, hd_kernel **out_kernels, hd_status *out_statuses,
                          hd_diagnostics *diagnostics) {
  api_call call;
  hd_future *f;
  if (c == NULL || (count > 0 && (out_kernels == NULL || out_statuses == NULL))) return HD_INVALID;
  api_begin(&call, diagnostics);
  hd_status status = future_create(c, jobs, count, progress, user, &f, call.errors);
  for (size_t i = 0; status != HD_OK && i < count; i++) {
    out_kernels[i] = NULL;
    out_statuses[i] = status;
  }
  if (status != HD_OK) return api_end(&call, status);
  run(f);
  for (int i = 0; i < f->count; i++) {
    out_statuses[i] = f->statuses[i];
    out_kernels[i] = f->statuses[i] == HD_OK ? f->kernels[i] : NULL;
    if (f->statuses[i] == HD_OK) f->kernels[i] = NULL; /* the caller's now */
    if (status == HD_OK) status = f->statuses[i];
    api_append(call.errors, &f->errors_of_each[i]);
  }
  future_free(f);
  return api_end(&call, status);
}

static void *work(void *user) {
  hd_future *f = user;
  run(f);
  pthread_mutex_lock(&f->lock);
  f->finished = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

hd_status hd_prepare_async(hd_context *c, const hd_job *jobs, size_t count, hd_progress_function progress,
                           void *user, hd_future **out_future, hd_diagnostics *diagnostics) {
  api_call call;
  hd_future *f;
  if (c == NULL || out_future == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  hd_status status = future_create(c, jobs, count, progress, user, &f, call.errors);
  if (status != HD_OK) return api_end(&call, status);
  if (pthread_create(&f->thread, NULL, work, f) != 0) {
    future_free(f);
    return api_end(&call, HD_OUT_OF_MEMORY);
  }
  *out_future = f;
  return api_end(&call, HD_OK);
}

int hd_future_done(const hd_future *future) {
  hd_future *f = (hd_future *)(uintptr_t)future; /* for its lock */
  if (f == NULL) return 0;
  pthread_mutex_lock(&f->lock);
  int done = f->finished;
  pthread_mutex_unlock(&f->lock);
  return done;
}

static struct timespec moment_in(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  if (seconds > 1e9) seconds = 1e9;
  t.tv_sec += (time_t)seconds;
  t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    t.tv_sec++;
  }
  return t;
}

hd_status hd_future_wait(hd_future *f, double seconds) {
  if (f == NULL) return HD_INVALID;
  const struct timespec end = moment_in(seconds > 0 ? seconds : 0);
  pthread_mutex_lock(&f->lock);
  int code = 0;
  while (!f->finished && code != ETIMEDOUT)
    code = seconds < 0 ? pthread_cond_wait(&f->changed, &f->lock)
                       : pthread_cond_timedwait(&f->changed, &f->lock, &end);
  bool finished = f->finished;
  pthread_mutex_unlock(&f->lock);
  return finished ? HD_OK : HD_UNAVAILABLE;
}

hd_status hd_future_take(hd_future *f, size_t index, hd_kernel **out_kernel, hd_diagnostics *diagnostics) {
  api_call call;
  if (f == NULL || index >= (size_t)f->count || out_kernel == NULL) return HD_INVALID;
  hd_future_wait(f, -1);
  api_begin(&call, diagnostics);
  api_append(call.errors, &f->errors_of_each[index]);
  hd_status status = f->statuses[index];
  if (status == HD_OK && f->kernels[index] == NULL) status = HD_INVALID;
  if (status == HD_OK) {
    *out_kernel = f->kernels[index];
    f->kernels[index] = NULL;
  }
  return api_end(&call, status);
}

void hd_future_destroy(hd_future *f) {
  diags ignored;
  if (f == NULL) return;
  diags_init(&ignored);
  bool own = api_alive(f->context, &ignored); /* in a child there is no such thread */
  diags_finish(&ignored);
  if (!own) return;
  pthread_join(f->thread, NULL);
  future_free(f);
}
