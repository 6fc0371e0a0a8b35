/* Streams and events. Work is done when the call that asks for it returns: there is nothing to wait for, and
 * an event is a reading of the host's clock. */
#include "runtime.h"
#include <stdlib.h>

struct ihipEvent_t {
  hipemu_device *device;
  device_event *event;
  unsigned flags;
  bool recorded;
  hipStream_t captured_on; /* the last record was captured: it has no time */
  unsigned long long capture;
};

hipError_t hipemu_stream(hipStream_t handle, hipStream_t *out_stream, hipemu_device **out_device) {
  *out_stream = NULL;
  if (!handle || handle == hipStreamLegacy || handle == hipStreamPerThread) return hipemu_enter(out_device);
  if (!hipemu_handle_check(handle, HIPEMU_STREAM)) return hipErrorInvalidHandle;
  *out_stream = handle;
  *out_device = handle->device;
  return hipSuccess;
}

hipError_t hipemu_enqueue(hipStream_t handle, hipemu_device **out_device, device_stream **out_stream) {
  hipStream_t stream = NULL;
  hipError_t code = hipemu_stream(handle, &stream, out_device);
  if (code != hipSuccess) return code;
  code = (hipError_t)atomic_load(&(*out_device)->fault);
  if (code != hipSuccess) return code;
  if (!stream) {
    *out_stream = NULL;
    return hipemu_default_stream_allowed(*out_device);
  }
  *out_stream = stream->stream;
  if (!stream->capture) return hipSuccess;
  if (stream->capture->invalidated) return hipErrorStreamCaptureInvalidated;
  stream->unjoined = stream != stream->capture->origin;
  *out_stream = stream->capture->origin->stream;
  return hipSuccess;
}

hipError_t hipStreamCreateWithPriority(hipStream_t *out_stream, unsigned int flags, int priority) {
  hipemu_device *d = NULL;
  diags messages;
  if (!out_stream || (flags & ~(unsigned)hipStreamNonBlocking) != 0)
    return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_enter(&d);
  if (code != hipSuccess) return hipemu_report(code);
  hipStream_t stream = calloc(1, sizeof *stream);
  if (!stream) return hipemu_report(hipErrorOutOfMemory);
  stream->device = d;
  stream->flags = flags;
  stream->priority = priority;
  diags_init(&messages);
  code = hipemu_answer(d, d->device->vtable->stream_create(d->device, &stream->stream, &messages), &messages);
  if (code == hipSuccess && !hipemu_handle_add(stream, HIPEMU_STREAM)) {
    d->device->vtable->stream_destroy(d->device, stream->stream);
    code = hipErrorOutOfMemory;
  }
  if (code == hipSuccess)
    *out_stream = stream;
  else
    free(stream);
  return hipemu_report(code);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *out_stream, unsigned int flags) {
  return hipStreamCreateWithPriority(out_stream, flags, 0);
}

hipError_t hipStreamCreate(hipStream_t *out_stream) {
  return hipStreamCreateWithPriority(out_stream, 0, 0);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  if (!stream || stream == hipStreamLegacy || stream == hipStreamPerThread ||
      !hipemu_handle_remove(stream, HIPEMU_STREAM))
    return hipemu_report(hipErrorInvalidHandle);
  hipemu_capture_drop(stream);
  stream->device->device->vtable->stream_destroy(stream->device->device, stream->stream);
  free(stream);
  return hipSuccess;
}

/* Waiting for a stream or asking whether it is done; neither may be captured. */
static hipError_t wait(hipStream_t handle) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code != hipSuccess) return code;
  if (stream && stream->capture) {
    stream->capture->invalidated = true;
    return hipErrorStreamCaptureUnsupported;
  }
  if (!stream) code = hipemu_default_stream_allowed(d);
  return code == hipSuccess ? (hipError_t)atomic_load(&d->fault) : code;
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return hipemu_report(wait(stream));
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  return hipemu_report(wait(stream));
}

hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned int flags) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  if (flags != 0) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code != hipSuccess || !hipemu_handle_check(event, HIPEMU_EVENT))
    return hipemu_report(code != hipSuccess ? code : hipErrorInvalidHandle);
  if (event->captured_on)
    code = stream ? hipemu_capture_join(stream, event->captured_on, event->capture)
                  : hipErrorStreamCaptureImplicit;
  return hipemu_report(code);
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned int *out_flags) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = out_flags ? hipemu_stream(handle, &stream, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_flags = stream ? stream->flags : 0;
  return hipemu_report(code);
}

hipError_t hipStreamGetPriority(hipStream_t handle, int *out_priority) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = out_priority ? hipemu_stream(handle, &stream, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_priority = stream ? stream->priority : 0;
  return hipemu_report(code);
}

hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t *out_device) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = out_device ? hipemu_stream(handle, &stream, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_device = d->ordinal;
  return hipemu_report(code);
}

/* A host function runs at once, on the calling thread. A graph can't hold one. */
static hipError_t before_host_function(hipStream_t handle, hipError_t *out_fault) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code == hipSuccess && stream && stream->capture) {
    stream->capture->invalidated = true;
    code = hipErrorStreamCaptureUnsupported;
  }
  if (code == hipSuccess) *out_fault = (hipError_t)atomic_load(&d->fault);
  return code;
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user,
                                unsigned int flags) {
  hipError_t fault = hipSuccess;
  if (!callback || flags != 0) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = before_host_function(stream, &fault);
  if (code == hipSuccess) callback(stream, fault, user);
  return hipemu_report(code);
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user) {
  hipError_t fault = hipSuccess;
  if (!function) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = before_host_function(stream, &fault);
  if (code == hipSuccess && fault == hipSuccess) function(user);
  return hipemu_report(code == hipSuccess ? fault : code);
}

/* ---- Events ---- */

hipError_t hipEventCreateWithFlags(hipEvent_t *out_event, unsigned flags) {
  hipemu_device *d = NULL;
  diags messages;
  if (!out_event || (flags & ~(unsigned)(hipEventBlockingSync | hipEventDisableTiming)) != 0)
    return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_enter(&d);
  if (code != hipSuccess) return hipemu_report(code);
  hipEvent_t event = calloc(1, sizeof *event);
  if (!event) return hipemu_report(hipErrorOutOfMemory);
  event->device = d;
  event->flags = flags;
  diags_init(&messages);
  code = hipemu_answer(d, d->device->vtable->event_create(d->device, &event->event, &messages), &messages);
  if (code == hipSuccess && !hipemu_handle_add(event, HIPEMU_EVENT)) {
    d->device->vtable->event_destroy(d->device, event->event);
    code = hipErrorOutOfMemory;
  }
  if (code == hipSuccess)
    *out_event = event;
  else
    free(event);
  return hipemu_report(code);
}

hipError_t hipEventCreate(hipEvent_t *out_event) {
  return hipEventCreateWithFlags(out_event, 0);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  if (!hipemu_handle_remove(event, HIPEMU_EVENT)) return hipemu_report(hipErrorInvalidHandle);
  event->device->device->vtable->event_destroy(event->device->device, event->event);
  free(event);
  return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle) {
  hipStream_t stream = NULL;
  hipemu_device *d = NULL;
  diags messages;
  if (!hipemu_handle_check(event, HIPEMU_EVENT)) return hipemu_report(hipErrorInvalidHandle);
  hipError_t code = hipemu_stream(handle, &stream, &d);
  if (code == hipSuccess && d != event->device) code = hipErrorInvalidHandle;
  if (code == hipSuccess && !stream) code = hipemu_default_stream_allowed(d);
  if (code == hipSuccess && stream && stream->capture) {
    if (stream->capture->invalidated) return hipemu_report(hipErrorStreamCaptureInvalidated);
    event->captured_on = stream;
    event->capture = stream->capture->id;
    return hipSuccess;
  }
  if (code != hipSuccess) return hipemu_report(code);
  event->captured_on = NULL;
  event->recorded = true;
  diags_init(&messages);
  return hipemu_report(hipemu_answer(
      d, d->device->vtable->event_record(d->device, event->event, stream ? stream->stream : NULL, &messages),
      &messages));
}

static hipError_t check_event(hipEvent_t event) {
  if (!hipemu_handle_check(event, HIPEMU_EVENT)) return hipErrorInvalidHandle;
  if (event->captured_on) return hipErrorCapturedEvent;
  return (hipError_t)atomic_load(&event->device->fault);
}

hipError_t hipEventQuery(hipEvent_t event) {
  return hipemu_report(check_event(event));
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return hipemu_report(check_event(event));
}

hipError_t hipEventElapsedTime(float *out_milliseconds, hipEvent_t start, hipEvent_t stop) {
  double milliseconds = 0;
  diags messages;
  if (!out_milliseconds) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = check_event(start);
  if (code == hipSuccess) code = check_event(stop);
  if (code != hipSuccess) return hipemu_report(code);
  if (!start->recorded || !stop->recorded || start->device != stop->device ||
      ((start->flags | stop->flags) & hipEventDisableTiming) != 0)
    return hipemu_report(hipErrorInvalidHandle);
  diags_init(&messages);
  hd_status status = start->device->device->vtable->event_elapsed(start->device->device, start->event,
                                                                  stop->event, &milliseconds, &messages);
  code = hipemu_answer(start->device, status, &messages);
  if (code == hipSuccess) *out_milliseconds = (float)milliseconds;
  return hipemu_report(code);
}
