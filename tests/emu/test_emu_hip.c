/* device_hip, from open to the replay of a graph, over libheddle-hip.so: every call that it makes of HIP,
 * with real code objects and real results. (test_device.c holds it against a driver that only remembers.) */
#include "../../runtime/device/device.h"
#include "../../runtime/file.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 100, STRIDE = 3, FLOATS = ROWS * STRIDE, BYTES = FLOATS * (int)sizeof(float) };

static const char *const targets[] = {EMULATED_TARGETS};
static diags errors;
static char log_path[64];

static void start(void) {
  diags_init(&errors);
  setenv("HEDDLE_HIP_TARGET", "gfx942,gfx950,gfx1201,gfx1250", 1);
  snprintf(log_path, sizeof log_path, "/tmp/heddle-hip-log-%ld", (long)getpid());
  setenv("HEDDLE_EMU_LOG", log_path, 1);
}

static void stop(void) {
  unlink(log_path);
  diags_finish(&errors);
}

TestSuite(emu_hip, .init = start, .fini = stop);

static const char *message(void) {
  return errors.count > 0 ? errors.items[errors.count - 1].message : "";
}

static bool logged(const char *words) {
  char *bytes = NULL;
  size_t size = 0;
  if (file_read(AT_FDCWD, log_path, 1 << 20, &bytes, &size) != HD_OK) return false;
  bool found = strstr(bytes, words) != NULL;
  free(bytes);
  return found;
}

/* The arguments of sample_scale: out[row * stride] *= factor for row < count. */
typedef struct scale_arguments {
  device_pointer out;
  int64_t stride;
  int32_t count;
  float factor;
} scale_arguments;

/* A device with sample_kernels.hip loaded, and ROWS × STRIDE floats 1 in its memory. */
typedef struct bench {
  device *d;
  const device_vtable *v;
  device_module *module;
  device_function *scale;
  device_stream *stream;
  scale_arguments arguments;
} bench;

#define OK(call) cr_assert((call) == HD_OK, "%s: %s", #call, message())

static void open_bench(bench *b, int ordinal) {
  char name[16], path[4096], *code = NULL;
  size_t size = 0;
  float ones[FLOATS];
  memset(b, 0, sizeof *b);
  snprintf(name, sizeof name, "hip:%d", ordinal);
  OK(device_open(name, &b->d, &errors));
  b->v = b->d->vtable;
  snprintf(path, sizeof path, "%s/tests/sample_%s.co", getenv("HEDDLE_BUILD"), targets[ordinal]);
  OK(file_read(AT_FDCWD, path, 1 << 20, &code, &size));
  OK(b->v->load(b->d, code, size, &b->module, &errors));
  free(code);
  OK(b->v->function(b->d, b->module, "sample_scale", 0, &b->scale, &errors));
  OK(b->v->stream_create(b->d, &b->stream, &errors));
  OK(b->v->allocate(b->d, BYTES, &b->arguments.out, &errors));
  for (int n = 0; n < FLOATS; ++n)
    ones[n] = 1.0f;
  OK(b->v->copy_in(b->d, b->stream, b->arguments.out, ones, BYTES, &errors));
  b->arguments.stride = STRIDE;
  b->arguments.count = ROWS;
  b->arguments.factor = 2.0f;
}

static void close_bench(bench *b) {
  b->v->release(b->d, b->arguments.out, &errors);
  b->v->stream_destroy(b->d, b->stream);
  b->v->unload(b->d, b->module);
  device_close(b->d);
}

static hd_status run(bench *b) {
  const device_launch launch = {.grid = {ROWS, 1, 1},
                                .block = {1, 1, 1},
                                .arguments = &b->arguments,
                                .arguments_size = sizeof b->arguments};
  return b->v->launch(b->d, b->stream, b->scale, &launch, &errors);
}

/* Every row's first float is `value`, the others are still 1. */
static bool holds(bench *b, float value) {
  float floats[FLOATS];
  OK(b->v->copy_out(b->d, b->stream, floats, b->arguments.out, BYTES, &errors));
  bool good = true;
  for (int n = 0; n < FLOATS; ++n)
    good = good && floats[n] == (n % STRIDE == 0 ? value : 1.0f);
  return good;
}

Test(emu_hip, each_target_is_opened_and_tells_the_facts_of_the_emulated_device) {
  for (int n = 0; n < 4; ++n) {
    device *hip = NULL, *emu = NULL;
    device_facts f, expected;
    char name[16], says[64];
    snprintf(name, sizeof name, "hip:%d", n);
    OK(device_open(name, &hip, &errors));
    snprintf(name, sizeof name, "emu:%s", targets[n]);
    OK(device_open(name, &emu, &errors));
    hip->vtable->facts(hip, &f);
    emu->vtable->facts(emu, &expected);
    snprintf(says, sizeof says, "heddle emulated %s (not hardware)", targets[n]);
    cr_expect_str_eq(f.name, says);
    cr_expect_str_eq(f.target, targets[n]);
    cr_expect(f.emulated);
    cr_expect_eq(f.compute_units, expected.compute_units);
    cr_expect_eq(f.wave, expected.wave);
    cr_expect_eq(f.lds_bytes_per_workgroup, expected.lds_bytes_per_workgroup);
    cr_expect_eq(f.memory_bytes, expected.memory_bytes);
    cr_expect_eq(f.l2_bytes, expected.l2_bytes);
    cr_expect(f.peak_bytes_per_s == 0, "it has no clock to tell a peak from");
    device_close(hip);
    device_close(emu);
  }
  device *none = NULL;
  cr_expect_eq(device_open("hip:4", &none, &errors), HD_UNAVAILABLE);
}

Test(emu_hip, a_kernel_is_loaded_launched_and_timed_on_each_target) {
  for (int n = 0; n < 4; ++n) {
    bench b;
    device_event *from = NULL, *to = NULL;
    double milliseconds = -1;
    open_bench(&b, n);
    OK(b.v->event_create(b.d, &from, &errors));
    OK(b.v->event_create(b.d, &to, &errors));
    OK(b.v->event_record(b.d, from, b.stream, &errors));
    OK(run(&b));
    OK(b.v->event_record(b.d, to, b.stream, &errors));
    OK(b.v->event_elapsed(b.d, from, to, &milliseconds, &errors));
    cr_expect(milliseconds > 0 && milliseconds < 60000, "%g ms", milliseconds);
    OK(b.v->synchronize(b.d, NULL, &errors));
    cr_expect(holds(&b, 2.0f));
    b.v->event_destroy(b.d, from);
    b.v->event_destroy(b.d, to);
    close_bench(&b);
  }
}

Test(emu_hip, a_graph_replays_what_was_captured_with_the_arguments_of_then) {
  for (int n = 0; n < 4; ++n) {
    bench b;
    device_graph *graph = NULL;
    open_bench(&b, n);
    OK(b.v->capture_begin(b.d, b.stream, &errors));
    OK(run(&b));
    b.arguments.factor = 4.0f;
    OK(run(&b));
    OK(b.v->capture_end(b.d, b.stream, &graph, &errors));
    cr_expect(holds(&b, 1.0f), "a captured launch does not run");
    b.arguments.factor = 100.0f;
    OK(b.v->graph_launch(b.d, graph, b.stream, &errors));
    OK(b.v->graph_launch(b.d, graph, b.stream, &errors));
    OK(b.v->synchronize(b.d, b.stream, &errors));
    cr_expect(holds(&b, 64.0f));
    b.v->graph_destroy(b.d, graph);
    close_bench(&b);
  }
}

Test(emu_hip, a_fill_reaches_the_bytes_it_was_asked_for) {
  bench b;
  unsigned char bytes[16];
  open_bench(&b, 1);
  OK(b.v->fill(b.d, b.stream, b.arguments.out + 4, 0xab, 8, &errors));
  OK(b.v->copy_out(b.d, b.stream, bytes, b.arguments.out, sizeof bytes, &errors));
  for (size_t n = 0; n < sizeof bytes; ++n)
    cr_expect_eq(bytes[n] == 0xab, n >= 4 && n < 12, "byte %zu is 0x%02x", n, bytes[n]);
  close_bench(&b);
}

Test(emu_hip, a_kernel_out_of_bounds_is_an_error_that_stays_and_the_log_says_where) {
  bench b;
  open_bench(&b, 1);
  b.arguments.stride = 1000;
  cr_expect_eq(run(&b), HD_DEVICE);
  cr_expect(strstr(message(), "hipErrorIllegalAddress (an illegal memory access was encountered)"), "%s",
            message());
  cr_expect_eq(b.v->synchronize(b.d, b.stream, &errors), HD_DEVICE);
  cr_expect(strstr(message(), "hipErrorIllegalAddress"), "%s", message());
  b.arguments.stride = STRIDE;
  cr_expect_eq(run(&b), HD_DEVICE, "a device that faulted is lost");
  cr_expect(logged("kernel sample_scale, workgroup ("));
  cr_expect(logged("is out of bounds") && logged("-> 0x"));
  close_bench(&b);
}

Test(emu_hip, what_the_runtime_refuses_comes_back_by_the_name_of_its_error) {
  bench b;
  device_function *f = NULL;
  device_module *m = NULL;
  device_pointer p = 0;
  char byte = 0;
  open_bench(&b, 1);
  const struct {
    hd_status status;
    const char *error, *log;
  } refusals[] = {
      {b.v->function(b.d, b.module, "no_such_kernel", 0, &f, &errors), "hipErrorNotFound",
       "no kernel no_such_kernel"},
      {b.v->load(b.d, "no code object", 14, &m, &errors), "hipErrorInvalidImage",
       "neither an ELF file nor a bundle"},
      {b.v->allocate(b.d, (size_t)1 << 50, &p, &errors), "hipErrorOutOfMemory", "1125899906842624 bytes"},
      {b.v->release(b.d, b.arguments.out + 8, &errors), "hipErrorInvalidValue",
       "not the start of live memory"},
      {b.v->copy_in(b.d, b.stream, b.arguments.out + BYTES, &byte, 1, &errors), "hipErrorInvalidValue",
       "where no memory of a device is"},
      {b.v->copy_out(b.d, b.stream, &byte, b.arguments.out + BYTES - 1, 2, &errors), "hipErrorInvalidValue",
       "1 bytes are left of an allocation of 1200"},
      {b.v->graph_launch(b.d, (device_graph *)b.stream, b.stream, &errors), "hipErrorInvalidValue",
       "no live executable graph"},
  };
  const size_t count = sizeof refusals / sizeof *refusals;
  cr_assert_eq(errors.count, count);
  for (size_t n = 0; n < count; ++n) {
    cr_expect_eq(refusals[n].status, HD_DEVICE);
    cr_expect(strstr(errors.items[n].message, refusals[n].error), "%s", errors.items[n].message);
    cr_expect(logged(refusals[n].log), "\"%s\" is not in the log", refusals[n].log);
  }
  cr_expect(holds(&b, 1.0f), "none of it changed anything");
  close_bench(&b);
}

Test(emu_hip, a_code_object_of_another_target_is_refused) {
  bench b;
  char path[4096], *code = NULL;
  size_t size = 0;
  device_module *m = NULL;
  open_bench(&b, 1);
  snprintf(path, sizeof path, "%s/tests/sample_gfx1201.co", getenv("HEDDLE_BUILD"));
  OK(file_read(AT_FDCWD, path, 1 << 20, &code, &size));
  cr_expect_eq(b.v->load(b.d, code, size, &m, &errors), HD_DEVICE);
  cr_expect(strstr(message(), "hipErrorNoBinaryForGpu"), "%s", message());
  free(code);
  close_bench(&b);
}
