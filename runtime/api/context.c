#include "parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts forks: contexts of another generation belong to the parent. */
static atomic_uint generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void) {
  atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, in_child);
}

bool api_alive(const hd_context *c, diags *errors) {
  if (c->generation == atomic_load_explicit(&generation, memory_order_relaxed)) return true;
  diags_errorf(errors, "context.forked", NULL,
               "the context of %s was made before a fork, by the parent process: make one in this process",
               c->device_name);
  return false;
}

void api_log(const hd_context *c, hd_severity severity, const char *format, ...) {
  char message[1024];
  va_list args;
  if (c->log == NULL) return;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  c->log(c->log_user, severity, message);
}

static void log_cache(void *user, const char *line) {
  api_log(user, HD_WARNING, "cache: %s", line);
}

static hd_status open_session(hd_context *c, const hd_context_options *o, compiler_kind kind, diags *errors) {
  size_t before = errors->count;
  hd_status status = session_open(o->device, kind, o->cache_directory, &c->session, errors);
  if (status != HD_OK) return status;
  for (size_t i = before; i < errors->count; i++)
    api_log(c, HD_WARNING, "%s", errors->items[i].message);
  cache_set_log(c->session.cache, log_cache, c);
  api_log(c, HD_NOTE, "%s is %s (%s), code objects in %s", o->device, c->session.facts.name,
          c->session.facts.target,
          cache_directory(c->session.cache)[0] != '\0' ? cache_directory(c->session.cache) : "memory");
  return HD_OK;
}

/* The records that the caller names have to be good; those of the environment only should. */
static hd_status load_tuned(hd_context *c, const char *asked, diags *errors) {
  const char *variable = getenv("HEDDLE_TUNED_DIR");
  const char *path = asked != NULL ? asked : variable;
  diags problems;
  if (path == NULL || path[0] == '\0') return HD_OK;
  diags_init(&problems);
  hd_status status = tune_files_load(path, &c->tuned, &problems);
  for (size_t i = 0; i < problems.count; i++) {
    const diag *d = &problems.items[i];
    diags_addf(errors, asked != NULL ? DIAG_ERROR : DIAG_WARNING, d->code, NULL, 0, 0, "%s", d->message);
    api_log(c, asked != NULL ? HD_ERROR : HD_WARNING, "%s", d->message);
  }
  diags_finish(&problems);
  return asked != NULL || status == HD_OUT_OF_MEMORY ? status : HD_OK;
}

static hd_status create(const hd_context_options *options, hd_context **out_context, diags *errors) {
  hd_context_options o;
  compiler_kind kind = COMPILER_AUTO;
  if (!api_take_struct(options, offsetof(hd_context_options, cache_directory), &o, sizeof o, "options",
                       errors))
    return HD_INVALID;
  if (o.device == NULL) {
    diags_errorf(errors, "device.name", "device",
                 "no device is named: \"cuda:0\", \"hip:0\", \"emu:gfx950\"");
    return HD_INVALID;
  }
  if (o.compiler != NULL && !compiler_parse(o.compiler, &kind)) {
    diags_refusef(errors, "context.options", "compiler", o.compiler, "hiprtc, llvm, nvrtc, auto",
                  "there is no compiler \"%s\": hiprtc, llvm, nvrtc or auto", o.compiler);
    return HD_INVALID;
  }
  pthread_once(&once, watch_forks);
  hd_context *c = calloc(1, sizeof *c);
  if (c == NULL) return HD_OUT_OF_MEMORY;
  atomic_init(&c->owners, 1);
  c->generation = atomic_load(&generation);
  c->log = o.log;
  c->log_user = o.log_user;
  c->limits = (compile_limits){.seconds = o.compile_seconds};
  c->jobs = o.jobs > 0 ? o.jobs : 0;
  c->device_name = strdup(o.device);
  bool locked = pthread_mutex_init(&c->tuned_lock, NULL) == 0;
  hd_status status = c->device_name != NULL && locked ? open_session(c, &o, kind, errors) : HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    status = load_tuned(c, o.tuned, errors);
    if (status != HD_OK) session_close(&c->session);
  }
  if (status == HD_OK) {
    *out_context = c;
    return HD_OK;
  }
  if (locked) pthread_mutex_destroy(&c->tuned_lock);
  free(c->device_name);
  free(c);
  return status;
}

hd_status hd_context_create(const hd_context_options *options, hd_context **out_context,
                            hd_diagnostics *diagnostics) {
  api_call call;
  if (out_context == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, create(options, out_context, call.errors));
}

hd_context *api_context_retain(hd_context *c) {
  atomic_fetch_add_explicit(&c->owners, 1, memory_order_relaxed);
  return c;
}

void api_context_release(hd_context *c) {
  if (atomic_fetch_sub_explicit(&c->owners, 1, memory_order_acq_rel) > 1) return;
  /* In a child the device is the parent's: its memory goes with the process. */
  if (c->generation == atomic_load(&generation)) session_close(&c->session);
  tune_files_finish(&c->tuned);
  pthread_mutex_destroy(&c->tuned_lock);
  free(c->device_name);
  free(c);
}

void hd_context_destroy(hd_context *c) {
  if (c != NULL) api_context_release(c);
}

hd_status hd_context_add_pack(hd_context *c, const char *path, hd_diagnostics *diagnostics) {
  api_call call;
  if (c == NULL || path == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  if (!api_alive(c, call.errors)) return api_end(&call, HD_INVALID);
  return api_end(&call, cache_add_pack(c->session.cache, path, call.errors));
}

hd_status hd_context_get_info(const hd_context *c, hd_context_info *out_info) {
  if (c == NULL) return HD_INVALID;
  const hd_context_info info = {
      .device = c->device_name,
      .name = c->session.facts.name,
      .target = c->session.facts.target,
      .cache_directory = cache_directory(c->session.cache),
      .compute_units = c->session.facts.compute_units,
      .emulated = c->session.facts.emulated,
      .memory_bytes = c->session.facts.memory_bytes,
  };
  return api_give_struct(&info, sizeof info, out_info, offsetof(hd_context_info, name));
}
