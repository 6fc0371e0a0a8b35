/* Copies and fills, each done when its call returns unless its stream is being captured. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

/* The device's side of a copy lies within one allocation. */
static bool inside(const char *what, const void *pointer, size_t bytes, hipemu_allocation *out_allocation) {
  bool found = hipemu_allocation_find(hipemu_address(pointer), out_allocation);
  if (found && out_allocation->size - (hipemu_address(pointer) - out_allocation->start) >= bytes) return true;
  if (found)
    hipemu_log("hip.pointer",
               "%s of %zu bytes at %p is out of bounds: %zu bytes are left of an allocation of %zu", what,
               bytes, pointer,
               out_allocation->size - (size_t)(hipemu_address(pointer) - out_allocation->start),
               out_allocation->size);
  else
    hipemu_log("hip.pointer", "%s of %zu bytes at %p, where no memory of a device is", what, bytes, pointer);
  return false;
}

/* By which side is a device's; hipMemcpyDefault looks the pointers up. */
static hipError_t direction(void *to, const void *from, hipMemcpyKind kind, bool *out_to, bool *out_from) {
  hipemu_allocation a;
  *out_to =
      kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice || kind == hipMemcpyDeviceToDeviceNoCU;
  *out_from =
      kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice || kind == hipMemcpyDeviceToDeviceNoCU;
  if (kind == hipMemcpyDefault) {
    *out_to = hipemu_allocation_find(hipemu_address(to), &a);
    *out_from = hipemu_allocation_find(hipemu_address(from), &a);
  }
  return *out_to || *out_from || kind == hipMemcpyDefault || kind == hipMemcpyHostToHost
             ? hipSuccess
             : hipErrorInvalidMemcpyDirection;
}

/* Work on `place`'s memory in a stream of `d`: done in `place`'s default stream, unless the stream is being
 * captured, since a graph is one device's. */
static hipError_t move_to(const hipemu_device *place, const hipemu_device *d, hipStream_t handle,
                          device_stream **stream) {
  hipStream_t s = NULL;
  hipemu_device *owner = NULL;
  if (place == d) return hipSuccess;
  *stream = NULL;
  if (hipemu_stream(handle, &s, &owner) != hipSuccess || !s || !s->capture) return hipSuccess;
  hipemu_log("hip.capture", "work on the memory of device %d in a stream of device %d can't be captured",
             place->ordinal, d->ordinal);
  s->capture->invalidated = true;
  return hipErrorStreamCaptureUnsupported;
}

/* A copy between devices reads the one's memory as the host does and writes the other's. The stream is that
 * of the device that is concerned when it has one: `stream` may belong to either. */
static hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  hipemu_device *d = NULL;
  device_stream *s = NULL;
  hipemu_allocation target, source;
  bool to_device = false, from_device = false;
  diags messages;
  if (bytes == 0) return hipSuccess;
  if (!to || !from) return hipErrorInvalidValue;
  hipError_t code = direction(to, from, kind, &to_device, &from_device);
  if (code != hipSuccess) return code;
  if (to_device && !inside("copy", to, bytes, &target)) return hipErrorInvalidValue;
  if (from_device && !inside("copy", from, bytes, &source)) return hipErrorInvalidValue;
  code = hipemu_enqueue(stream, &d, &s);
  if (code != hipSuccess) return code;
  if (!to_device && !from_device) {
    memmove(to, from, bytes);
    return hipSuccess;
  }
  hipemu_device *place = to_device ? target.device : source.device;
  code = move_to(place, d, stream, &s);
  if (code != hipSuccess) return code;
  diags_init(&messages);
  const device_vtable *v = place->device->vtable;
  hd_status status = to_device ? v->copy_in(place->device, s, hipemu_address(to), from, bytes, &messages)
                               : v->copy_out(place->device, s, to, hipemu_address(from), bytes, &messages);
  return hipemu_answer(place, status, &messages);
}

/* Waits, which a capture forbids. */
static hipError_t copy_now(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  hipError_t code = hipemu_uncaptured();
  return hipemu_report(code == hipSuccess ? copy(to, from, bytes, kind, NULL) : code);
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  return copy_now(to, from, bytes, kind);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return hipemu_report(copy(to, from, bytes, kind, stream));
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
  hipError_t code = hipemu_uncaptured();
  return hipemu_report(code == hipSuccess ? copy(to, from, bytes, kind, stream) : code);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes) {
  return copy_now(to, from, bytes, hipMemcpyHostToDevice);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes, hipStream_t stream) {
  return hipemu_report(copy(to, from, bytes, hipMemcpyHostToDevice, stream));
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
  return copy_now(to, from, bytes, hipMemcpyDeviceToHost);
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return hipemu_report(copy(to, from, bytes, hipMemcpyDeviceToHost, stream));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return copy_now(to, from, bytes, hipMemcpyDeviceToDevice);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return hipemu_report(copy(to, from, bytes, hipMemcpyDeviceToDevice, stream));
}

static hipError_t check_peers(int to_device, int from_device) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_device_at(to_device, &d);
  return code == hipSuccess ? hipemu_device_at(from_device, &d) : code;
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  hipError_t code = check_peers(to_device, from_device);
  return code == hipSuccess ? copy_now(to, from, bytes, hipMemcpyDeviceToDevice) : hipemu_report(code);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream) {
  hipError_t code = check_peers(to_device, from_device);
  return hipemu_report(code == hipSuccess ? copy(to, from, bytes, hipMemcpyDeviceToDevice, stream) : code);
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream) {
  hipError_t code = width > to_pitch || width > from_pitch ? hipErrorInvalidPitchValue : hipSuccess;
  for (size_t row = 0; row < height && code == hipSuccess; ++row)
    code = copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind, stream);
  return hipemu_report(code);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, hipMemcpyKind kind) {
  hipError_t code = hipemu_uncaptured();
  return code == hipSuccess ? hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL)
                            : hipemu_report(code);
}

/* The default stream's fills return before they are done, so a capture elsewhere does not forbid them. */
static hipError_t fill(void *to, unsigned char value, size_t bytes, hipStream_t stream) {
  hipemu_device *d = NULL;
  device_stream *s = NULL;
  hipemu_allocation target;
  diags messages;
  if (bytes == 0) return hipSuccess;
  if (!inside("fill", to, bytes, &target)) return hipErrorInvalidValue;
  hipError_t code = hipemu_enqueue(stream, &d, &s);
  if (code != hipSuccess) return code;
  code = move_to(target.device, d, stream, &s);
  if (code != hipSuccess) return code;
  diags_init(&messages);
  hd_status status = target.device->device->vtable->fill(target.device->device, s, hipemu_address(to), value,
                                                         bytes, &messages);
  return hipemu_answer(target.device, status, &messages);
}

/* `size` bytes of `value`, again and again. A pattern of equal bytes is a fill; others are copied from the
 * host, which a graph could not keep. */
static hipError_t fill_pattern(void *to, const void *value, size_t size, size_t number, hipStream_t stream) {
  const unsigned char *bytes = value;
  bool even = true;
  for (size_t n = 1; n < size; ++n)
    even = even && bytes[n] == bytes[0];
  if (number > SIZE_MAX / size) return hipErrorInvalidValue;
  if (even) return fill(to, bytes[0], size * number, stream);
  hipStream_t s = NULL;
  hipemu_device *d = NULL;
  hipError_t code = hipemu_stream(stream, &s, &d);
  if (code != hipSuccess) return code;
  if (s && s->capture) {
    hipemu_log("hip.capture", "a fill with %zu-byte values that are not one byte repeated can't be captured",
               size);
    return hipErrorStreamCaptureUnsupported;
  }
  char *pattern = malloc(size * number);
  if (!pattern) return hipErrorOutOfMemory;
  for (size_t n = 0; n < number; ++n)
    memcpy(pattern + n * size, value, size);
  code = copy(to, pattern, size * number, hipMemcpyHostToDevice, stream);
  free(pattern);
  return code;
}

hipError_t hipMemset(void *to, int value, size_t bytes) {
  return hipemu_report(fill(to, (unsigned char)value, bytes, NULL));
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  return hipemu_report(fill(to, (unsigned char)value, bytes, stream));
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t number) {
  return hipemu_report(fill(to, value, number, NULL));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t number, hipStream_t stream) {
  return hipemu_report(fill(to, value, number, stream));
}

hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t number) {
  return hipMemsetD16Async(to, value, number, NULL);
}

hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t number, hipStream_t stream) {
  return hipemu_report(fill_pattern(to, &value, sizeof value, number, stream));
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t number) {
  return hipMemsetD32Async(to, value, number, NULL);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t number, hipStream_t stream) {
  return hipemu_report(fill_pattern(to, &value, sizeof value, number, stream));
}
