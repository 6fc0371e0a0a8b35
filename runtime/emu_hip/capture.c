/* Captures of streams, and the graphs that come of them.
 *
 * A capture begins on one stream, its origin. Another stream takes part after it waited for an event of the
 * capture; the origin must wait for an event after that stream's last work before the capture ends. All of it
 * is recorded by the emulated device in the order of the calls, which is an order that the dependencies
 * allow. */
#include "runtime.h"
#include <stdlib.h>

/* Shared by a graph and the executables made of it. */
typedef struct recording {
  hipemu_device *device;
  device_graph *graph;
  atomic_int users;
} recording;

struct ihipGraph {
  recording *recording;
};

struct hipGraphExec {
  recording *recording;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `captures` and who takes part */
static hipemu_capture *captures;
static unsigned long long last_id;
/* Streams that take part in a capture without being its origin. */
static hipStream_t *guests;
static size_t guest_count, guest_capacity;
static _Thread_local hipStreamCaptureMode thread_mode = hipStreamCaptureModeGlobal;

/* Whether this thread's potentially unsafe calls disturb `c`. */
static bool concerns(const hipemu_capture *c) {
  if (c->mode == hipStreamCaptureModeRelaxed || thread_mode == hipStreamCaptureModeRelaxed) return false;
  if (pthread_equal(c->owner, pthread_self())) return true;
  return c->mode == hipStreamCaptureModeGlobal && thread_mode == hipStreamCaptureModeGlobal;
}

hipError_t hipemu_uncaptured(void) {
  hipError_t code = hipSuccess;
  pthread_mutex_lock(&lock);
  for (hipemu_capture *c = captures; c; c = c->next) {
    if (!concerns(c)) continue;
    c->invalidated = true;
    code = hipErrorStreamCaptureUnsupported;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

hipError_t hipemu_default_stream_allowed(const hipemu_device *d) {
  hipError_t code = hipSuccess;
  pthread_mutex_lock(&lock);
  for (hipemu_capture *c = captures; c; c = c->next) {
    if (c->origin->device != d || (c->origin->flags & hipStreamNonBlocking) != 0) continue;
    c->invalidated = true;
    code = hipErrorStreamCaptureImplicit;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

hipError_t hipemu_capture_join(hipStream_t stream, hipStream_t from, unsigned long long id) {
  hipError_t code = hipSuccess;
  pthread_mutex_lock(&lock);
  hipemu_capture *c = captures;
  while (c && c->id != id)
    c = c->next;
  if (!c) {
    code = hipErrorStreamCaptureIsolation; /* that capture is over */
  } else if (stream->capture && stream->capture != c) {
    stream->capture->invalidated = c->invalidated = true;
    code = hipErrorStreamCaptureMerge;
  } else {
    if (!stream->capture) {
      if (guest_count == guest_capacity) {
        size_t more = guest_capacity ? 2 * guest_capacity : 8;
        hipStream_t *grown = realloc(guests, more * sizeof *grown);
        if (grown) {
          guests = grown;
          guest_capacity = more;
        } else {
          code = hipErrorOutOfMemory;
        }
      }
      if (code == hipSuccess) {
        guests[guest_count++] = stream;
        stream->capture = c;
        stream->unjoined = true; /* also a stream without any work must be led back */
      }
    }
    for (size_t n = 0; n < guest_count && code == hipSuccess; ++n)
      if (guests[n] == from && from->capture == c && from != stream) from->unjoined = false;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

/* Takes the capture out of the list and its guests out of the capture; the caller holds the lock. False when
 * one of them did work that the origin did not wait for. */
static bool finish(hipemu_capture *c) {
  bool joined = true;
  size_t kept = 0;
  for (size_t n = 0; n < guest_count; ++n) {
    if (guests[n]->capture != c) {
      guests[kept++] = guests[n];
      continue;
    }
    joined = joined && !guests[n]->unjoined;
    guests[n]->capture = NULL;
    guests[n]->unjoined = false;
  }
  guest_count = kept;
  for (hipemu_capture **at = &captures; *at; at = &(*at)->next) {
    if (*at != c) continue;
    *at = c->next;
    break;
  }
  c->origin->capture = NULL;
  return joined;
}

static device_graph *end_recording(hipStream_t origin) {
  hipemu_device *d = origin->device;
  device_graph *graph = NULL;
  diags messages;
  diags_init(&messages);
  hd_status status = d->device->vtable->capture_end(d->device, origin->stream, &graph, &messages);
  hipemu_answer(d, status, &messages);
  return graph;
}

void hipemu_capture_drop(hipStream_t stream) {
  pthread_mutex_lock(&lock);
  hipemu_capture *c = stream->capture;
  if (c && c->origin == stream) {
    finish(c);
    stream->device->device->vtable->graph_destroy(stream->device->device, end_recording(stream));
    free(c);
  } else if (c) {
    c->invalidated = true;
    size_t kept = 0;
    for (size_t n = 0; n < guest_count; ++n)
      if (guests[n] != stream) guests[kept++] = guests[n];
    guest_count = kept;
  }
  pthread_mutex_unlock(&lock);
}

hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  diags messages;
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code != hipSuccess) return hipemu_report(code);
  if (!stream) return hipemu_report(hipErrorStreamCaptureUnsupported);
  if (mode != hipStreamCaptureModeGlobal && mode != hipStreamCaptureModeThreadLocal &&
      mode != hipStreamCaptureModeRelaxed)
    return hipemu_report(hipErrorInvalidValue);
  if (stream->capture) return hipemu_report(hipErrorIllegalState);
  hipemu_capture *c = calloc(1, sizeof *c);
  if (!c) return hipemu_report(hipErrorOutOfMemory);
  diags_init(&messages);
  code = hipemu_answer(d, d->device->vtable->capture_begin(d->device, stream->stream, &messages), &messages);
  if (code != hipSuccess) {
    free(c);
    return hipemu_report(code);
  }
  c->origin = stream;
  c->mode = mode;
  c->owner = pthread_self();
  pthread_mutex_lock(&lock);
  c->id = ++last_id;
  c->next = captures;
  captures = c;
  stream->capture = c;
  pthread_mutex_unlock(&lock);
  return hipSuccess;
}

/* `*out_capture`: what has ended, NULL when it goes on. */
static hipError_t end_capture(hipStream_t stream, hipemu_capture **out_capture) {
  hipemu_capture *c = stream->capture;
  if (!c) return hipErrorIllegalState;
  if (c->origin != stream) return hipErrorStreamCaptureUnmatched;
  if (c->mode != hipStreamCaptureModeRelaxed && !pthread_equal(c->owner, pthread_self()))
    return hipErrorStreamCaptureWrongThread;
  *out_capture = c;
  bool joined = finish(c);
  if (c->invalidated) return hipErrorStreamCaptureInvalidated;
  return joined ? hipSuccess : hipErrorStreamCaptureUnjoined;
}

hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t *out_graph) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipemu_capture *ended = NULL;
  if (!out_graph) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code == hipSuccess && !stream) code = hipErrorIllegalState;
  if (code != hipSuccess) return hipemu_report(code);
  pthread_mutex_lock(&lock);
  code = end_capture(stream, &ended);
  pthread_mutex_unlock(&lock);
  if (!ended) return hipemu_report(code);
  free(ended);
  device_graph *recorded = end_recording(stream);
  hipGraph_t graph = calloc(1, sizeof *graph);
  recording *r = calloc(1, sizeof *r);
  if (code == hipSuccess && (!graph || !r || !recorded || !hipemu_handle_add(graph, HIPEMU_GRAPH)))
    code = hipErrorOutOfMemory;
  if (code != hipSuccess) {
    d->device->vtable->graph_destroy(d->device, recorded);
    free(graph);
    free(r);
    *out_graph = NULL;
    return hipemu_report(code);
  }
  r->device = d;
  r->graph = recorded;
  atomic_init(&r->users, 1);
  graph->recording = r;
  *out_graph = graph;
  return hipSuccess;
}

hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus *out_status,
                                   unsigned long long *out_id) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = out_status ? hipemu_stream(handle, &stream, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  pthread_mutex_lock(&lock);
  const hipemu_capture *c = stream ? stream->capture : NULL;
  *out_status = !c               ? hipStreamCaptureStatusNone
                : c->invalidated ? hipStreamCaptureStatusInvalidated
                                 : hipStreamCaptureStatusActive;
  if (out_id && c) *out_id = c->id;
  pthread_mutex_unlock(&lock);
  return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out_status) {
  return hipStreamGetCaptureInfo(stream, out_status, NULL);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  if (!mode || (*mode != hipStreamCaptureModeGlobal && *mode != hipStreamCaptureModeThreadLocal &&
                *mode != hipStreamCaptureModeRelaxed))
    return hipemu_report(hipErrorInvalidValue);
  hipStreamCaptureMode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return hipSuccess;
}

/* ---- Graphs ---- */

static void recording_release(recording *r) {
  if (atomic_fetch_sub(&r->users, 1) > 1) return;
  r->device->device->vtable->graph_destroy(r->device->device, r->graph);
  free(r);
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out_executable, hipGraph_t graph,
                                        unsigned long long flags) {
  (void)flags;
  if (!out_executable || !graph || !hipemu_handle_check(graph, HIPEMU_GRAPH))
    return hipemu_report(hipErrorInvalidValue);
  hipGraphExec_t executable = calloc(1, sizeof *executable);
  if (!executable || !hipemu_handle_add(executable, HIPEMU_EXECUTABLE)) {
    free(executable);
    return hipemu_report(hipErrorOutOfMemory);
  }
  executable->recording = graph->recording;
  atomic_fetch_add(&executable->recording->users, 1);
  *out_executable = executable;
  return hipSuccess;
}

hipError_t hipGraphInstantiate(hipGraphExec_t *out_executable, hipGraph_t graph, hipGraphNode_t *out_node,
                               char *out_log, size_t log_size) {
  if (out_node) *out_node = NULL;
  if (out_log && log_size > 0) *out_log = '\0';
  return hipGraphInstantiateWithFlags(out_executable, graph, 0);
}

hipError_t hipGraphUpload(hipGraphExec_t executable, hipStream_t handle) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  if (!executable || !hipemu_handle_check(executable, HIPEMU_EXECUTABLE))
    return hipemu_report(hipErrorInvalidValue);
  return hipemu_report(hipemu_stream(handle, &stream, &d));
}

hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  hipemu_device *d = NULL;
  device_stream *s = NULL;
  diags messages;
  if (!executable || !hipemu_handle_check(executable, HIPEMU_EXECUTABLE))
    return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_enqueue(stream, &d, &s);
  if (code == hipSuccess && d != executable->recording->device) code = hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  diags_init(&messages);
  hd_status status = d->device->vtable->graph_launch(d->device, executable->recording->graph, s, &messages);
  return hipemu_report(hipemu_answer(d, status, &messages));
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  if (!graph || !hipemu_handle_remove(graph, HIPEMU_GRAPH)) return hipemu_report(hipErrorInvalidValue);
  recording_release(graph->recording);
  free(graph);
  return hipSuccess;
}

hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  if (!executable || !hipemu_handle_remove(executable, HIPEMU_EXECUTABLE))
    return hipemu_report(hipErrorInvalidValue);
  recording_release(executable->recording);
  free(executable);
  return hipSuccess;
}
