#include "device_driver.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The same in both APIs. */
enum { STREAM_NON_BLOCKING = 1, CAPTURE_THREAD_LOCAL = 1, ERROR_NO_DEVICE = 100 };
#define EXTRA_BUFFER_POINTER ((void *)1)
#define EXTRA_BUFFER_SIZE ((void *)2)

const char *driver_environment(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

void *driver_library_open(const char *const *paths, int count, const char **out_path, text *tried) {
  for (int i = 0; i < count; i++) {
    void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
      *out_path = paths[i];
      return library;
    }
    const char *why = dlerror();
    text_addf(tried, "%s%s (%s)", tried->length > 0 ? "; " : "", paths[i],
              why != NULL ? why : "unknown error");
  }
  return NULL;
}

hd_status driver_symbols_load(void *library, const char *path, const driver_symbol *symbols, size_t count,
                              void *base, diags *errors) {
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library, symbols[i].name);
    if (address == NULL) {
      diags_errorf(errors, "device.symbol", NULL,
                   "%s has no %s: it is too old, or not the library it should be", path, symbols[i].name);
      return HD_UNAVAILABLE;
    }
    memcpy((char *)base + symbols[i].offset, &address, sizeof address);
  }
  return HD_OK;
}

hd_status driver_ordinal_parse(const char *kind, const char *rest, int *out_ordinal, diags *errors) {
  size_t digits = strspn(rest, "0123456789");
  if (rest[digits] != '\0' || digits > 4) {
    diags_errorf(errors, "device.name", NULL,
                 "\"%s:%s\" names no device: a number is expected, as in \"%s:0\"", kind, rest, kind);
    return HD_INVALID;
  }
  *out_ordinal = digits > 0 ? (int)strtol(rest, NULL, 10) : 0;
  return HD_OK;
}

/* "NAME (text)", or the number where the driver has no name for it. */
static void add_error(const driver_device *d, int code, text *out) {
  const char *name = NULL, *meaning = NULL;
  d->driver->error(d, code, &name, &meaning);
  if (name == NULL)
    text_addf(out, "error %d", code);
  else
    text_addf(out, "%s (%s)", name, meaning != NULL ? meaning : "no text");
}

hd_status driver_check(driver_device *d, int code, diags *errors, const char *format, ...) {
  if (code == 0) return HD_OK;
  text message;
  va_list args;
  text_init(&message);
  text_addf(&message, "%s:%d: ", d->driver->kind, d->ordinal);
  va_start(args, format);
  text_vaddf(&message, format, args);
  va_end(args);
  text_add(&message, " failed: ");
  add_error(d, code, &message);
  diags_errorf(errors, "device.error", NULL, "%s", text_string(&message));
  text_finish(&message);
  return HD_DEVICE;
}

static hd_status refuse(diags *errors, text *message) {
  diags_errorf(errors, "device.none", NULL, "%s", text_string(message));
  text_finish(message);
  return HD_UNAVAILABLE;
}

hd_status driver_device_pick(driver_device *d, int ordinal, const char *path, const char *hint,
                             diags *errors) {
  int count = 0;
  text message;
  int code = d->api.init(0);
  if (code == 0) code = d->api.device_count(&count);
  text_init(&message);
  if (code != 0 && code != ERROR_NO_DEVICE) {
    text_addf(&message, "no %s device: %s was opened, but starting it failed: ", d->driver->kind, path);
    add_error(d, code, &message);
    text_add(&message, hint);
    return refuse(errors, &message);
  }
  if (code == ERROR_NO_DEVICE || count == 0) {
    text_addf(&message, "no %s device: %s was opened and finds none%s", d->driver->kind, path, hint);
    return refuse(errors, &message);
  }
  if (ordinal >= count) {
    text_addf(&message, "no device %s:%d: the highest number is %s:%d", d->driver->kind, ordinal,
              d->driver->kind, count - 1);
    return refuse(errors, &message);
  }
  d->ordinal = ordinal;
  hd_status status = driver_check(d, d->api.device_get(&d->handle, ordinal), errors, "getting the device");
  size_t bytes = 0;
  if (status == HD_OK)
    status = driver_check(d, d->api.device_name(d->facts.name, (int)sizeof d->facts.name, d->handle), errors,
                          "asking for its name");
  if (status == HD_OK)
    status = driver_check(d, d->api.device_memory(&bytes, d->handle), errors, "asking for its memory size");
  d->facts.memory_bytes = (int64_t)bytes;
  return status;
}

static driver_device *self(device *d) {
  return (driver_device *)d;
}

/* Our handles are the driver's. */
static driver_handle *stream_of(device_stream *s) {
  return (driver_handle *)s;
}

static hd_status enter(driver_device *d, diags *errors) {
  return driver_check(d, d->driver->make_current(d), errors, "making the device current");
}

static void close_device(device *base) {
  driver_device *d = self(base);
  d->driver->finish(d);
  free(d); /* the library stays loaded: drivers keep threads */
}

static void get_facts(device *base, device_facts *out_facts) {
  *out_facts = self(base)->facts;
}

static hd_status allocate(device *base, size_t bytes, device_pointer *out_pointer, diags *errors) {
  driver_device *d = self(base);
  uint64_t address = 0;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.allocate(&address, bytes), errors, "allocating %zu bytes", bytes);
  if (status == HD_OK) *out_pointer = address;
  return status;
}

static hd_status release(device *base, device_pointer pointer, diags *errors) {
  driver_device *d = self(base);
  if (pointer == 0) return HD_OK;
  hd_status status = enter(d, errors);
  return status != HD_OK ? status : driver_check(d, d->api.release(pointer), errors, "releasing memory");
}

static hd_status wait_for(driver_device *d, device_stream *s, diags *errors, const char *what, size_t bytes) {
  return driver_check(d, d->api.stream_synchronize(stream_of(s)), errors, "waiting for %s of %zu bytes", what,
                      bytes);
}

static hd_status copy_in(device *base, device_stream *s, device_pointer to, const void *from, size_t bytes,
                         diags *errors) {
  driver_device *d = self(base);
  if (bytes == 0) return HD_OK;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status =
        driver_check(d, d->api.copy_in(to, from, bytes, stream_of(s)), errors, "copying %zu bytes in", bytes);
  return status != HD_OK ? status : wait_for(d, s, errors, "a copy in", bytes);
}

static hd_status copy_out(device *base, device_stream *s, void *to, device_pointer from, size_t bytes,
                          diags *errors) {
  driver_device *d = self(base);
  if (bytes == 0) return HD_OK;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.copy_out(to, from, bytes, stream_of(s)), errors, "copying %zu bytes out",
                          bytes);
  return status != HD_OK ? status : wait_for(d, s, errors, "a copy out", bytes);
}

static hd_status fill(device *base, device_stream *s, device_pointer to, unsigned char value, size_t bytes,
                      diags *errors) {
  driver_device *d = self(base);
  if (bytes == 0) return HD_OK;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.fill(to, value, bytes, stream_of(s)), errors, "filling %zu bytes", bytes);
  return status != HD_OK ? status : wait_for(d, s, errors, "a fill", bytes);
}

static hd_status load(device *base, const void *code_object, size_t bytes, device_module **out_module,
                      diags *errors) {
  driver_device *d = self(base);
  driver_handle *module = NULL;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.module_load(&module, code_object), errors,
                          "loading a code object of %zu bytes", bytes);
  if (status == HD_OK) *out_module = (device_module *)module;
  return status;
}

static void unload(device *base, device_module *m) {
  driver_device *d = self(base);
  if (m != NULL && d->driver->make_current(d) == 0) d->api.module_unload((driver_handle *)m);
}

static hd_status function(device *base, device_module *m, const char *symbol, size_t dynamic_lds,
                          device_function **out_function, diags *errors) {
  driver_device *d = self(base);
  driver_handle *found = NULL;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.module_function(&found, (driver_handle *)m, symbol), errors,
                          "finding kernel %s", symbol);
  if (status == HD_OK)
    status = driver_check(d, d->driver->prepare_function(d, found, dynamic_lds), errors,
                          "allowing kernel %s %zu bytes of dynamic shared memory", symbol, dynamic_lds);
  if (status == HD_OK) *out_function = (device_function *)found;
  return status;
}

static hd_status launch(device *base, device_stream *s, device_function *f, const device_launch *l,
                        diags *errors) {
  driver_device *d = self(base);
  size_t bytes = l->arguments_size;
  /* The driver copies the arguments before it returns; it takes them as void * but only reads. */
  union {
    const void *from;
    void *to;
  } arguments = {.from = l->arguments};
  void *extra[] = {EXTRA_BUFFER_POINTER, arguments.to, EXTRA_BUFFER_SIZE, &bytes, d->driver->launch_end};
  hd_status status = enter(d, errors);
  if (status != HD_OK) return status;
  void **list = bytes > 0 ? extra : NULL;
  int code = l->waits_itself && d->driver->launch_early != NULL
                 ? d->driver->launch_early(d, (driver_handle *)f, l, stream_of(s), list)
                 : d->api.launch((driver_handle *)f, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                 l->block[1], l->block[2], l->lds_bytes, stream_of(s), NULL, list);
  return driver_check(
      d, code, errors,
      "launching %u x %u x %u workgroups of %u threads with %u bytes of dynamic shared memory", l->grid[0],
      l->grid[1], l->grid[2], l->block[0] * l->block[1] * l->block[2], l->lds_bytes);
}

static hd_status stream_create(device *base, device_stream **out_stream, diags *errors) {
  driver_device *d = self(base);
  driver_handle *stream = NULL;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.stream_create(&stream, STREAM_NON_BLOCKING), errors, "making a stream");
  if (status == HD_OK) *out_stream = (device_stream *)stream;
  return status;
}

static void stream_destroy(device *base, device_stream *s) {
  driver_device *d = self(base);
  if (s != NULL && d->driver->make_current(d) == 0) d->api.stream_destroy(stream_of(s));
}

static hd_status synchronize(device *base, device_stream *s, diags *errors) {
  driver_device *d = self(base);
  hd_status status = enter(d, errors);
  if (status != HD_OK) return status;
  int code = s != NULL ? d->api.stream_synchronize(stream_of(s)) : d->api.synchronize_device();
  return driver_check(d, code, errors, "waiting for %s", s != NULL ? "a stream" : "the device");
}

static hd_status event_create(device *base, device_event **out_event, diags *errors) {
  driver_device *d = self(base);
  driver_handle *event = NULL;
  hd_status status = enter(d, errors);
  if (status == HD_OK) status = driver_check(d, d->api.event_create(&event, 0), errors, "making an event");
  if (status == HD_OK) *out_event = (device_event *)event;
  return status;
}

static void event_destroy(device *base, device_event *e) {
  driver_device *d = self(base);
  if (e != NULL && d->driver->make_current(d) == 0) d->api.event_destroy((driver_handle *)e);
}

static hd_status event_record(device *base, device_event *e, device_stream *s, diags *errors) {
  driver_device *d = self(base);
  hd_status status = enter(d, errors);
  if (status != HD_OK) return status;
  return driver_check(d, d->api.event_record((driver_handle *)e, stream_of(s)), errors, "recording an event");
}

static hd_status event_elapsed(device *base, device_event *start, device_event *stop, double *out_ms,
                               diags *errors) {
  driver_device *d = self(base);
  float ms = 0;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.event_synchronize((driver_handle *)stop), errors, "waiting for an event");
  if (status == HD_OK)
    status = driver_check(d, d->api.event_elapsed(&ms, (driver_handle *)start, (driver_handle *)stop), errors,
                          "reading the time between two events");
  if (status == HD_OK) *out_ms = (double)ms;
  return status;
}

static hd_status capture_begin(device *base, device_stream *s, diags *errors) {
  driver_device *d = self(base);
  hd_status status = enter(d, errors);
  if (status != HD_OK) return status;
  return driver_check(d, d->api.capture_begin(stream_of(s), CAPTURE_THREAD_LOCAL), errors,
                      "beginning a capture");
}

static hd_status capture_end(device *base, device_stream *s, device_graph **out_graph, diags *errors) {
  driver_device *d = self(base);
  driver_handle *graph = NULL, *executable = NULL;
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.capture_end(stream_of(s), &graph), errors, "ending a capture");
  if (status == HD_OK)
    status =
        driver_check(d, d->api.graph_instantiate(&executable, graph, 0), errors, "instantiating a graph");
  if (graph != NULL) d->api.graph_destroy(graph); /* the executable does not need it */
  if (status == HD_OK) *out_graph = (device_graph *)executable;
  return status;
}

static hd_status capturing(device *base, device_stream *s, bool *out_capturing, diags *errors) {
  driver_device *d = self(base);
  int capture = 0; /* none, active, invalidated */
  hd_status status = enter(d, errors);
  if (status == HD_OK)
    status = driver_check(d, d->api.capture_status(stream_of(s), &capture), errors,
                          "asking whether a stream captures");
  if (status == HD_OK) *out_capturing = capture != 0;
  return status;
}

static hd_status graph_launch(device *base, device_graph *g, device_stream *s, diags *errors) {
  driver_device *d = self(base);
  hd_status status = enter(d, errors);
  if (status != HD_OK) return status;
  return driver_check(d, d->api.graph_launch((driver_handle *)g, stream_of(s)), errors, "launching a graph");
}

static void graph_destroy(device *base, device_graph *g) {
  driver_device *d = self(base);
  if (g != NULL && d->driver->make_current(d) == 0) d->api.executable_destroy((driver_handle *)g);
}

const device_vtable driver_vtable = {
    .close = close_device,
    .facts = get_facts,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .load = load,
    .unload = unload,
    .function = function,
    .launch = launch,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .synchronize = synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capturing = capturing,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};
