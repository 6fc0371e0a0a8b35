/* The emulated device with one loaded code object: kernels compiled at three levels for every target. */
#ifndef HEDDLE_TESTS_EMU_FIXTURE_H
#define HEDDLE_TESTS_EMU_FIXTURE_H

#include "../../runtime/device/device.h"
#include "../../runtime/object/elf64.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct build_under_test {
  char target[16];
  char level[8];
} build_under_test;

#define EACH_BUILD(test)                                                                                     \
  ParameterizedTestParameters(emu, test) {                                                                   \
    static build_under_test builds[] = {EMU_TEST_BUILDS};                                                    \
    return cr_make_param_array(build_under_test, builds, sizeof builds / sizeof *builds);                    \
  }                                                                                                          \
  ParameterizedTest(build_under_test *b, emu, test)

/* ---- A device with one loaded code object ---- */

typedef struct bench {
  device *d;
  device_module *module;
  diags list;
  char label[40];
} bench;

static inline void check(bench *b, hd_status status, const char *what) {
  if (status == HD_OK) return;
  text t;
  text_init(&t);
  diags_render(&b->list, b->label, NULL, &t);
  cr_assert_fail("%s: %s: %s\n%s", b->label, what, hd_status_text(status), text_string(&t));
}

static inline void bench_open_part(bench *b, const build_under_test *build, const char *part) {
  char name[32], path[1024];
  diags_init(&b->list);
  snprintf(b->label, sizeof b->label, "%s -O%s", build->target, build->level);
  snprintf(name, sizeof name, "emu:%s", build->target);
  check(b, device_open(name, &b->d, &b->list), "open");
  snprintf(path, sizeof path, "%s/tests/emu_%s_%s_%s.co", getenv("HEDDLE_BUILD"), part, build->target,
           build->level);
  FILE *f = fopen(path, "rb");
  cr_assert(f, "%s", path);
  static unsigned char bytes[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  check(b, b->d->vtable->load(b->d, bytes, size, &b->module, &b->list), "load");
}

static inline void bench_open(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "kernels");
}
static inline void bench_open_faults(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "faults");
}

static inline void bench_open_unwritten(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "unwritten");
}

static inline void bench_open_copies(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "copies");
}

static inline void bench_close(bench *b) {
  b->d->vtable->unload(b->d, b->module);
  device_close(b->d);
  diags_finish(&b->list);
}

static inline device_pointer put(bench *b, const void *data, size_t bytes) {
  device_pointer p;
  check(b, b->d->vtable->allocate(b->d, bytes, &p, &b->list), "allocate");
  if (data) check(b, b->d->vtable->copy_in(b->d, NULL, p, data, bytes, &b->list), "copy in");
  return p;
}

static inline void get(bench *b, void *data, device_pointer p, size_t bytes) {
  check(b, b->d->vtable->copy_out(b->d, NULL, data, p, bytes, &b->list), "copy out");
}

typedef struct shape {
  uint32_t grid[3], block[3], lds;
} shape;

static inline hd_status try_launch(bench *b, const char *symbol, shape s, const void *arguments,
                                   size_t size) {
  device_function *f;
  check(b, b->d->vtable->function(b->d, b->module, symbol, s.lds, &f, &b->list), symbol);
  device_launch l = {.lds_bytes = s.lds, .arguments = arguments, .arguments_size = size};
  memcpy(l.grid, s.grid, sizeof l.grid);
  memcpy(l.block, s.block, sizeof l.block);
  return b->d->vtable->launch(b->d, NULL, f, &l, &b->list);
}

static inline void run(bench *b, const char *symbol, shape s, const void *arguments, size_t size) {
  check(b, try_launch(b, symbol, s, arguments, size), symbol);
}

static uint32_t random_state = 1;
static inline uint32_t random_bits(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}
static inline float random_float(void) {
  return (float)(int)(random_bits() % 20001) / 1000.0f - 10.0f;
}

static const shape one_wave = {{1, 1, 1}, {64, 1, 1}, 0};

static inline void expect_fault(bench *t, const char *symbol, shape s, const void *arguments, size_t size,
                                const char *phrase) {
  hd_status status = try_launch(t, symbol, s, arguments, size);
  cr_assert_eq(status, HD_DEVICE, "%s: %s: %s", t->label, symbol, hd_status_text(status));
  cr_assert_gt(t->list.count, 1);
  cr_assert(strstr(t->list.items[0].message, phrase), "%s: \"%s\" lacks \"%s\"", t->label,
            t->list.items[0].message, phrase);
  cr_assert(strstr(t->list.items[0].message, symbol), "%s: \"%s\" does not name the kernel", t->label,
            t->list.items[0].message);
  bool marked = false;
  for (size_t n = 1; n < t->list.count; ++n)
    marked = marked || strstr(t->list.items[n].message, "->");
  cr_assert(marked, "%s: no disassembly", t->label);
}

#endif
