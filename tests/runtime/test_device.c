#include "../../runtime/device/device.h"
#include "fake_driver.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static diags errors;

static void start(void) {
  diags_init(&errors);
}

static void stop(void) {
  diags_finish(&errors);
}

TestSuite(device, .init = start, .fini = stop);

static const char *first_message(void) {
  return errors.count > 0 ? errors.items[0].message : "";
}

static const char *first_code(void) {
  return errors.count > 0 ? errors.items[0].code : "";
}

/* The same claims hold of both drivers. */
typedef struct kind {
  const char *name, *variable, *library, *target;
} kind;

static const kind kinds[] = {{"cuda", "HEDDLE_CUDA_LIBRARY", "libfake_cuda.so", "sm_90"},
                             {"hip", "HEDDLE_HIP_LIBRARY", "libfake_hip.so", "gfx950"}};

static fake_record *use_fake(const kind *k) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/%s", getenv("HEDDLE_BUILD"), k->library);
  setenv(k->variable, path, 1);
  void *library = dlopen(path, RTLD_NOW);
  cr_assert(library != NULL, "%s", dlerror());
  fake_record *(*get)(void);
  void *address = dlsym(library, FAKE_RECORD);
  memcpy(&get, &address, sizeof get);
  return get();
}

static device *open_fake(const kind *k, fake_record **out_record) {
  device *d = NULL;
  *out_record = use_fake(k);
  cr_assert(device_open(k->name, &d, &errors) == HD_OK, "%s", first_message());
  return d;
}

Test(device, a_name_that_is_none_is_refused_with_the_right_form) {
  static const char *const names[] = {"", "gpu", "cuda:x", "hip:-1", "cuda:1x", "cudaa:0", "hip:99999999999"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    device *d = NULL;
    cr_expect(device_open(names[i], &d, &errors) == HD_INVALID && d == NULL, "\"%s\"", names[i]);
    cr_expect(errors.count == i + 1 && strstr(errors.items[i].message, ":0\"") != NULL);
  }
}

Test(device, a_missing_library_is_an_answer_that_lists_what_was_tried) {
  for (int i = 0; i < 2; i++) {
    device *d = NULL;
    setenv(kinds[i].variable, "/nowhere/libdriver.so", 1);
    cr_expect(device_open(kinds[i].name, &d, &errors) == HD_UNAVAILABLE && d == NULL);
    cr_expect_str_eq(errors.items[i].code, "device.library");
    cr_expect(strstr(errors.items[i].message, "/nowhere/libdriver.so") != NULL);
    cr_expect(strstr(errors.items[i].message, kinds[i].variable) != NULL);
  }
}

Test(device, a_library_that_lacks_a_symbol_is_an_answer_that_names_it) {
  device *d = NULL;
  setenv("HEDDLE_CUDA_LIBRARY", "libc.so.6", 1);
  cr_expect(device_open("cuda", &d, &errors) == HD_UNAVAILABLE);
  cr_expect_str_eq(first_code(), "device.symbol");
  cr_expect(strstr(first_message(), "cuInit") != NULL);
}

Test(device, no_device_is_an_answer) {
  for (int i = 0; i < 2; i++) {
    device *d = NULL;
    use_fake(&kinds[i]);
    setenv("FAKE_DEVICES", "0", 1);
    cr_expect(device_open(kinds[i].name, &d, &errors) == HD_UNAVAILABLE);
    cr_expect_str_eq(errors.items[2 * i].code, "device.none");
    setenv("FAKE_DEVICES", "2", 1);
    char name[16];
    snprintf(name, sizeof name, "%s:2", kinds[i].name);
    cr_expect(device_open(name, &d, &errors) == HD_UNAVAILABLE && d == NULL);
    snprintf(name, sizeof name, "%s:1", kinds[i].name);
    cr_expect(strstr(errors.items[2 * i + 1].message, name) != NULL, "it says which there are");
    cr_assert(device_open(name, &d, &errors) == HD_OK);
    device_close(d);
  }
}

Test(device, facts_come_from_the_driver) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device_facts facts;
    device *d = open_fake(&kinds[i], &record);
    d->vtable->facts(d, &facts);
    cr_expect_str_eq(facts.target, kinds[i].target);
    cr_expect(strncmp(facts.name, "Fake ", 5) == 0);
    cr_expect(facts.compute_units == 132 && facts.wave == 32 && facts.lds_bytes_per_workgroup == 200 << 10);
    cr_expect(facts.memory_bytes == (int64_t)1 << 36 && facts.l2_bytes == 1 << 22 && !facts.emulated);
    cr_expect_float_eq(facts.peak_bytes_per_s, 2.048e12, 1.0, "2 GHz, two transfers, 512 bytes");
    device_close(d);
    cr_expect(record->retained == 0);
  }
}

Test(device, memory_goes_in_and_out) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device *d = open_fake(&kinds[i], &record);
    const device_vtable *v = d->vtable;
    device_pointer p = 0;
    char out[8];
    cr_assert(v->allocate(d, 8, &p, &errors) == HD_OK && p != 0);
    cr_expect(v->fill(d, NULL, p, 'x', 8, &errors) == HD_OK);
    cr_expect(v->copy_in(d, NULL, p + 2, "abc", 3, &errors) == HD_OK);
    cr_expect(v->copy_out(d, NULL, out, p, 8, &errors) == HD_OK);
    cr_expect(memcmp(out, "xxabcxxx", 8) == 0);
    cr_expect(v->release(d, p, &errors) == HD_OK && v->release(d, 0, &errors) == HD_OK);
    cr_expect(record->live == 0);
    device_close(d);
  }
}

Test(device, an_error_says_what_was_done_and_what_the_driver_calls_it) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device *d = open_fake(&kinds[i], &record);
    device_pointer p = 7;
    device_module *m = NULL;
    device_function *f = NULL;
    char expected[128];
    size_t first = errors.count;
    cr_expect(d->vtable->allocate(d, (size_t)1 << 31, &p, &errors) == HD_DEVICE && p == 7);
    snprintf(expected, sizeof expected,
             "%s:0: allocating 2147483648 bytes failed: ERROR_OUT_OF_MEMORY (out of memory)", kinds[i].name);
    cr_expect_str_eq(errors.items[first].message, expected);
    cr_expect(d->vtable->load(d, "none", 5, &m, &errors) == HD_DEVICE && m == NULL);
    cr_expect(strstr(errors.items[first + 1].message, "error 200") != NULL,
              "a code without a name is told as a number");
    cr_assert(d->vtable->load(d, "FAKE", 5, &m, &errors) == HD_OK);
    cr_expect(d->vtable->function(d, m, "missing", 0, &f, &errors) == HD_DEVICE);
    cr_expect(strstr(errors.items[first + 2].message, "kernel missing") != NULL);
    d->vtable->unload(d, m);
    device_close(d);
  }
}

typedef struct arguments {
  uint64_t out;
  int64_t stride;
  int32_t count;
  float scale;
} arguments;

Test(device, a_launch_passes_the_packed_arguments) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device *d = open_fake(&kinds[i], &record);
    const device_vtable *v = d->vtable;
    device_module *m;
    device_function *f;
    device_stream *s;
    const arguments packed = {0x1122334455667788, -5, 42, 0.125f};
    device_launch l = {.grid = {7, 8, 9},
                       .block = {128, 1, 1},
                       .lds_bytes = 100 << 10,
                       .arguments = &packed,
                       .arguments_size = sizeof packed};
    cr_assert(v->load(d, "FAKE", 5, &m, &errors) == HD_OK);
    cr_assert(v->function(d, m, "kernel", 48 << 10, &f, &errors) == HD_OK);
    cr_expect(record->dynamic_limit == 0, "48 KB need no leave");
    cr_assert(v->function(d, m, "kernel", l.lds_bytes, &f, &errors) == HD_OK);
    cr_expect(record->dynamic_limit == (i == 0 ? 100 << 10 : 0),
              "CUDA wants to be asked for more, HIP does not");
    cr_assert(v->stream_create(d, &s, &errors) == HD_OK);
    cr_expect(v->launch(d, s, f, &l, &errors) == HD_OK && record->launches == 1);
    cr_expect(record->arguments_size == sizeof packed &&
              memcmp(record->arguments, &packed, sizeof packed) == 0);
    cr_expect(record->grid[0] == 7 && record->grid[1] == 8 && record->grid[2] == 9 &&
              record->block[0] == 128);
    cr_expect(record->shared_bytes == 100 << 10 && record->stream == (void *)s);
    cr_expect(!record->early, "the kernel may rely on the one before it having ended");
    l.waits_itself = true;
    cr_expect(v->launch(d, s, f, &l, &errors) == HD_OK && record->launches == 2 && record->grid[0] == 7);
    cr_expect(record->early == (i == 0), "CUDA starts it early, HIP can't");
    l.arguments_size = 0;
    cr_expect(v->launch(d, NULL, f, &l, &errors) == HD_OK && record->arguments_size == 0);
    l.block[0] = 2048;
    cr_expect(v->launch(d, NULL, f, &l, &errors) == HD_DEVICE);
    cr_expect(strstr(errors.items[errors.count - 1].message, "7 x 8 x 9 workgroups of 2048 threads") != NULL);
    v->stream_destroy(d, s);
    v->unload(d, m);
    cr_expect(record->live == 0);
    device_close(d);
  }
}

Test(device, events_and_graphs) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device *d = open_fake(&kinds[i], &record);
    const device_vtable *v = d->vtable;
    device_module *m;
    device_function *f;
    device_stream *s;
    device_event *from, *to;
    device_graph *g = NULL;
    const device_launch l = {.grid = {1, 1, 1}, .block = {64, 1, 1}};
    double ms = 0;
    cr_assert(v->load(d, "FAKE", 5, &m, &errors) == HD_OK &&
              v->function(d, m, "kernel", 0, &f, &errors) == HD_OK);
    cr_assert(v->stream_create(d, &s, &errors) == HD_OK);
    cr_assert(v->event_create(d, &from, &errors) == HD_OK && v->event_create(d, &to, &errors) == HD_OK);
    cr_expect(v->capture_end(d, s, &g, &errors) == HD_DEVICE && g == NULL, "there is no capture to end");
    cr_assert(v->capture_begin(d, s, &errors) == HD_OK);
    cr_expect(v->launch(d, s, f, &l, &errors) == HD_OK && v->launch(d, s, f, &l, &errors) == HD_OK);
    cr_assert(v->capture_end(d, s, &g, &errors) == HD_OK);
    cr_expect(record->launches == 0, "a captured launch does not run");
    cr_expect(v->event_record(d, from, s, &errors) == HD_OK);
    cr_expect(v->graph_launch(d, g, s, &errors) == HD_OK && record->launches == 2);
    cr_expect(v->event_record(d, to, s, &errors) == HD_OK);
    cr_expect(v->event_elapsed(d, from, to, &ms, &errors) == HD_OK && ms == 1.5);
    cr_expect(v->synchronize(d, s, &errors) == HD_OK && v->synchronize(d, NULL, &errors) == HD_OK);
    v->graph_destroy(d, g);
    v->event_destroy(d, from);
    v->event_destroy(d, to);
    v->stream_destroy(d, s);
    v->unload(d, m);
    cr_expect(record->live == 0, "%d things are left", record->live);
    device_close(d);
  }
}

static void *allocate_and_release(void *user) {
  device *d = user;
  device_pointer p = 0;
  diags own;
  diags_init(&own);
  hd_status status = d->vtable->allocate(d, 64, &p, &own);
  if (status == HD_OK) status = d->vtable->release(d, p, &own);
  diags_finish(&own);
  return status == HD_OK ? user : NULL;
}

Test(device, a_thread_that_never_used_the_device_can) {
  for (int i = 0; i < 2; i++) {
    fake_record *record;
    device *d = open_fake(&kinds[i], &record);
    pthread_t thread;
    void *result = NULL;
    cr_assert(pthread_create(&thread, NULL, allocate_and_release, d) == 0);
    pthread_join(thread, &result);
    cr_expect(result == d && record->without_context == 0);
    device_close(d);
  }
}

Test(device, a_missing_plug_in_is_an_answer) {
  device *d = NULL;
  setenv("HEDDLE_EMU_LIBRARY", "/nowhere/libheddle-emu.so", 1);
  cr_expect(device_open("emu:gfx950", &d, &errors) == HD_UNAVAILABLE);
  cr_expect_str_eq(first_code(), "device.library");
  cr_expect(strstr(first_message(), "/nowhere/libheddle-emu.so") != NULL);
  setenv("HEDDLE_EMU_LIBRARY", "libc.so.6", 1);
  cr_expect(device_open("emu", &d, &errors) == HD_UNAVAILABLE);
  cr_expect_str_eq(errors.items[1].code, "device.symbol");
  device_close(NULL);
}

/* Runs the probe; its answer is one line. */
static void probe(const char *before, const char *name, char out_answer[4096]) {
  char command[4096];
  snprintf(command, sizeof command, "%s '%s/tests/device_probe' %s", before, getenv("HEDDLE_BUILD"), name);
  FILE *answer = popen(command, "r");
  cr_assert(answer != NULL && fgets(out_answer, 4096, answer) != NULL, "%s", command);
  cr_expect(pclose(answer) == 0, "%s: %s", command, out_answer);
}

#ifdef HEDDLE_WITH_EMU
Test(device, every_amd_target_runs_a_kernel_on_the_plug_in_of_the_build, .timeout = 60) {
  static const char *const names[] = {EMULATED_TARGETS};
  for (int i = 0; i < 4; i++) {
    char device_and_code[4096], answer[4096];
    snprintf(device_and_code, sizeof device_and_code, "emu:%s '%s/tests/sample_%s.co'", names[i],
             getenv("HEDDLE_BUILD"), names[i]);
    probe("", device_and_code, answer);
    cr_expect(strncmp(answer, "ok device.run: 0 numbers wrong", 30) == 0, "%s: %s", names[i], answer);
  }
}
#endif

/* The folder that tools/fetch-rocm.sh fills. */
static void fetched_folder(char out_path[1024]) {
  const char *given = getenv("HEDDLE_ROCM"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (given != NULL && given[0] != '\0')
    snprintf(out_path, 1024, "%s/usr/lib/x86_64-linux-gnu", given);
  else if (cache != NULL && cache[0] != '\0')
    snprintf(out_path, 1024, "%s/heddle/rocm/usr/lib/x86_64-linux-gnu", cache);
  else
    snprintf(out_path, 1024, "%s/.cache/heddle/rocm/usr/lib/x86_64-linux-gnu", home != NULL ? home : "");
}

/* Opened and used, or opened and found without a device: either way the library and every symbol were there.
 */
static bool library_answered(const char *answer) {
  return strncmp(answer, "ok ", 3) == 0 || strstr(answer, "device.none") != NULL;
}

Test(device, the_real_hip_library_opens_and_says_whether_there_is_a_device, .timeout = 60) {
  char answer[4096], libraries[1024], loader[2304];
  probe("", "hip:0", answer);
  if (library_answered(answer)) return; /* an installed ROCm */
  cr_expect(strstr(answer, "device.library") != NULL, "in this process it is a clean answer: %s", answer);
  fetched_folder(libraries);
  snprintf(loader, sizeof loader, "'%s/ld-linux-x86-64.so.2' --library-path '%s'", libraries, libraries);
  cr_assert(access(libraries, F_OK) == 0, "neither ROCm nor %s is there: run tools/fetch-rocm.sh", libraries);
  probe(loader, "hip:0", answer);
  cr_expect(library_answered(answer), "%s", answer);
}
