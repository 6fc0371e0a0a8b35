/* The device's memory, streams and graphs. */
#include "parts.h"

/* Our handles are the device's. */
static device_stream *stream_of(hd_stream *s) {
  return (device_stream *)s;
}

/* Begins a call on the context's device; NULL when there is nothing to begin: misuse, or another process. */
static device *begin(api_call *call, const hd_context *c, bool sound, hd_diagnostics *diagnostics) {
  if (c == NULL || !sound) return NULL;
  api_begin(call, diagnostics);
  if (api_alive(c, call->errors)) return c->session.device;
  api_end(call, HD_INVALID);
  return NULL;
}

hd_status hd_memory_allocate(hd_context *c, size_t bytes, uint64_t *out_address,
                             hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, out_address != NULL, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->allocate(d, bytes > 0 ? bytes : 1, out_address, call.errors));
}

hd_status hd_memory_release(hd_context *c, uint64_t address, hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, true, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->release(d, address, call.errors));
}

hd_status hd_memory_copy_in(hd_context *c, hd_stream *s, uint64_t to, const void *from, size_t bytes,
                            hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, from != NULL || bytes == 0, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->copy_in(d, stream_of(s), to, from, bytes, call.errors));
}

hd_status hd_memory_copy_out(hd_context *c, hd_stream *s, void *to, uint64_t from, size_t bytes,
                             hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, to != NULL || bytes == 0, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->copy_out(d, stream_of(s), to, from, bytes, call.errors));
}

hd_status hd_memory_fill(hd_context *c, hd_stream *s, uint64_t to, unsigned char value, size_t bytes,
                         hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, true, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->fill(d, stream_of(s), to, value, bytes, call.errors));
}

hd_status hd_stream_create(hd_context *c, hd_stream **out_stream, hd_diagnostics *diagnostics) {
  api_call call;
  device_stream *s;
  device *d = begin(&call, c, out_stream != NULL, diagnostics);
  if (d == NULL) return HD_INVALID;
  hd_status status = d->vtable->stream_create(d, &s, call.errors);
  if (status == HD_OK) *out_stream = (hd_stream *)s;
  return api_end(&call, status);
}

void hd_stream_destroy(hd_context *c, hd_stream *s) {
  api_call call;
  device *d = begin(&call, c, s != NULL, NULL);
  if (d == NULL) return;
  d->vtable->stream_destroy(d, stream_of(s));
  api_end(&call, HD_OK);
}

hd_status hd_stream_wait(hd_context *c, hd_stream *s, hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, true, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->synchronize(d, stream_of(s), call.errors));
}

hd_status hd_capture_begin(hd_context *c, hd_stream *s, hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, s != NULL, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->capture_begin(d, stream_of(s), call.errors));
}

hd_status hd_capture_end(hd_context *c, hd_stream *s, hd_graph **out_graph, hd_diagnostics *diagnostics) {
  api_call call;
  device_graph *g;
  device *d = begin(&call, c, s != NULL && out_graph != NULL, diagnostics);
  if (d == NULL) return HD_INVALID;
  hd_status status = d->vtable->capture_end(d, stream_of(s), &g, call.errors);
  if (status == HD_OK) *out_graph = (hd_graph *)g;
  return api_end(&call, status);
}

hd_status hd_graph_launch(hd_context *c, hd_graph *g, hd_stream *s, hd_diagnostics *diagnostics) {
  api_call call;
  device *d = begin(&call, c, g != NULL, diagnostics);
  if (d == NULL) return HD_INVALID;
  return api_end(&call, d->vtable->graph_launch(d, (device_graph *)g, stream_of(s), call.errors));
}

void hd_graph_destroy(hd_context *c, hd_graph *g) {
  api_call call;
  device *d = begin(&call, c, g != NULL, NULL);
  if (d == NULL) return;
  d->vtable->graph_destroy(d, (device_graph *)g);
  api_end(&call, HD_OK);
}
