#include "bench.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST_LAUNCHES = 16, LEAST_COPIES = 2, MOST_COPIES = 256, WARM_UPS = 2, MOST_WARM_UPS = 200 };

/* Several times the last-level cache of any device, so that nothing a launch reads is left from the one
 * before. */
static const int64_t rotated_bytes = 450000000;

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void bench_statistics_of(const double *samples, int count, bench_statistics *out) {
  double sorted[BENCH_MAX_REPEAT];
  *out = (bench_statistics){0};
  if (count < 1 || count > BENCH_MAX_REPEAT) return;
  memcpy(sorted, samples, (size_t)count * sizeof *samples);
  qsort(sorted, (size_t)count, sizeof sorted[0], compare_doubles);
  out->least = sorted[0];
  out->most = sorted[count - 1];
  out->median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
  if (out->median > 0) out->spread = (out->most - out->least) / out->median;
}

int bench_copies(int64_t bytes, int64_t memory_bytes) {
  if (bytes < 1) bytes = 1;
  int64_t copies = rotated_bytes / bytes + 1;
  if (copies < LEAST_COPIES) copies = LEAST_COPIES;
  if (copies > MOST_COPIES) copies = MOST_COPIES;
  int64_t room = memory_bytes > 0 ? memory_bytes / 4 * 3 / bytes : copies;
  return (int)(copies < room ? copies : room);
}

int bench_launches(int copies) {
  if (copies < 1) return 0;
  return copies * ((LEAST_LAUNCHES + copies - 1) / copies);
}

/* What is made for timing, to be given back in reverse order. */
typedef struct timing {
  device *device;
  device_stream *stream;
  device_event *start, *stop;
  device_graph *graph;
} timing;

static hd_status prepare(timing *t, bench_launch launch, void *user, int launches, diags *errors) {
  const device_vtable *v = t->device->vtable;
  hd_status status = v->stream_create(t->device, &t->stream, errors);
  if (status == HD_OK) status = v->event_create(t->device, &t->start, errors);
  if (status == HD_OK) status = v->event_create(t->device, &t->stop, errors);
  if (status == HD_OK) status = v->capture_begin(t->device, t->stream, errors);
  if (status != HD_OK) return status;
  for (int i = 0; status == HD_OK && i < launches; i++)
    status = launch(user, t->stream, i, errors);
  /* A capture is ended in any case, or the stream could not be destroyed. */
  hd_status ended = v->capture_end(t->device, t->stream, &t->graph, errors);
  return status != HD_OK ? status : ended;
}

/* One replay between events. The one before it keeps the device busy while the host submits this one, so that
 * no time of the host is counted. */
static hd_status replay(timing *t, double *out_milliseconds, diags *errors) {
  const device_vtable *v = t->device->vtable;
  hd_status status = v->graph_launch(t->device, t->graph, t->stream, errors);
  if (status == HD_OK) status = v->event_record(t->device, t->start, t->stream, errors);
  if (status == HD_OK) status = v->graph_launch(t->device, t->graph, t->stream, errors);
  if (status == HD_OK) status = v->event_record(t->device, t->stop, t->stream, errors);
  if (status == HD_OK) status = v->event_elapsed(t->device, t->start, t->stop, out_milliseconds, errors);
  return status;
}

static void finish(timing *t) {
  const device_vtable *v = t->device->vtable;
  if (t->graph) v->graph_destroy(t->device, t->graph);
  if (t->stop) v->event_destroy(t->device, t->stop);
  if (t->start) v->event_destroy(t->device, t->start);
  if (t->stream) v->stream_destroy(t->device, t->stream);
}

hd_status bench_time(device *d, bench_launch launch, void *user, int launches, int repeat,
                     double warm_milliseconds, double *out_microseconds, diags *errors) {
  timing t = {.device = d};
  double milliseconds = 0, warm = 0;
  hd_status status = prepare(&t, launch, user, launches, errors);
  for (int i = 0; status == HD_OK && i < MOST_WARM_UPS; i++) {
    if (i >= WARM_UPS && warm >= warm_milliseconds) break;
    status = replay(&t, &milliseconds, errors);
    warm += milliseconds;
  }
  for (int i = 0; status == HD_OK && i < repeat; i++) {
    status = replay(&t, &milliseconds, errors);
    out_microseconds[i] = milliseconds * 1000 / launches;
  }
  finish(&t);
  return status;
}
