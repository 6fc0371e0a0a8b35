#include "progress.h"
#include "console.h"
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The line is ended by the next one, or cleared: \033[K takes away what was longer. */
static void show(const progress *p) {
  if (!console_shows_progress()) return;
  fprintf(stderr, "\r[%d/%d] %s", p->done, p->total, p->what);
  double left = p->done > 0 ? (now() - p->start) / p->done * (p->total - p->done) : 0;
  if (left >= 1) fprintf(stderr, ", about %.0f s left", left);
  fputs("\033[K", stderr);
  fflush(stderr);
}

void progress_begin(progress *p, const char *what, int total) {
  *p = (progress){.what = what, .total = total, .start = now()};
  pthread_mutex_init(&p->lock, NULL);
  show(p);
}

void progress_step(progress *p) {
  pthread_mutex_lock(&p->lock);
  p->done++;
  show(p);
  pthread_mutex_unlock(&p->lock);
}

void progress_clear(void) {
  if (console_shows_progress()) fputs("\r\033[K", stderr);
}

void progress_end(progress *p) {
  progress_clear();
  pthread_mutex_destroy(&p->lock);
}
