/* Counting on the emulated device: hand-assembled kernels (emu/counts_*.s) against counts worked out by hand.
 */
#include "../../runtime/device/device.h"
#include "../../runtime/estimate.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, LINES = BYTES / COUNT_LINE_BYTES };

typedef struct fixture {
  device *d;
  device_module *module;
  device_pointer memory;
  diags list;
} fixture;

static void check(fixture *f, hd_status status, const char *what) {
  if (status == HD_OK) return;
  cr_assert_fail("%s: %s: %s", what, hd_status_text(status), f->list.count ? f->list.items[0].message : "");
}

static void setup(fixture *f, const char *target_name) {
  static unsigned char bytes[1 << 20];
  char name[32], path[1024];
  diags_init(&f->list);
  snprintf(name, sizeof name, "emu:%s", target_name);
  check(f, device_open(name, &f->d, &f->list), "open");
  snprintf(path, sizeof path, "%s/tests/emu_counts_%s.co", getenv("HEDDLE_BUILD"), target_name);
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s", path);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  check(f, f->d->vtable->load(f->d, bytes, size, &f->module, &f->list), "load");
  check(f, f->d->vtable->allocate(f->d, BYTES, &f->memory, &f->list), "allocate");
  check(f, f->d->vtable->fill(f->d, NULL, f->memory, 0, BYTES, &f->list), "fill");
}

static void finish(fixture *f) {
  f->d->vtable->release(f->d, f->memory, &f->list);
  f->d->vtable->unload(f->d, f->module);
  device_close(f->d);
  diags_finish(&f->list);
}

static void launch(fixture *f, const char *symbol, uint32_t groups, uint32_t threads) {
  device_function *function;
  check(f, f->d->vtable->function(f->d, f->module, symbol, 0, &function, &f->list), symbol);
  device_launch l = {.grid = {groups, 1, 1},
                     .block = {threads, 1, 1},
                     .arguments = &f->memory,
                     .arguments_size = sizeof f->memory};
  check(f, f->d->vtable->launch(f->d, NULL, function, &l, &f->list), symbol);
}

static counts count(fixture *f, const char *symbol, uint32_t groups, uint32_t threads) {
  counts c;
  check(f, f->d->vtable->count_begin(f->d, &f->list), "begin");
  launch(f, symbol, groups, threads);
  check(f, f->d->vtable->count_end(f->d, &c, &f->list), "end");
  cr_assert_eq(c.count, 1);
  cr_assert_str_eq(c.launches[0].kernel, symbol);
  return c;
}

/* The n-th instruction of a class, in the order of the code. */
static const count_site *site(const launch_counts *l, count_class class, size_t n) {
  for (size_t at = 0; at < l->site_count; at++)
    if (l->sites[at].class == class && n-- == 0) return &l->sites[at];
  cr_assert_fail("no such instruction");
  return NULL;
}

static void expect_classes(const launch_counts *l, const uint64_t want[COUNT_CLASS_COUNT]) {
  for (int n = 0; n < COUNT_CLASS_COUNT; n++)
    cr_expect_eq(l->instructions[n], want[n], "%s: %llu, not %llu", count_class_name((count_class)n),
                 (unsigned long long)l->instructions[n], (unsigned long long)want[n]);
}

/* ---- Memory ---- */

typedef struct expected_traffic {
  const char *what;
  uint64_t bytes, distinct, segments[COUNT_SEGMENT_SIZES], least[COUNT_SEGMENT_SIZES];
} expected_traffic;

static void expect_loads(const launch_counts *l, const expected_traffic *want, size_t count) {
  for (size_t n = 0; n < count; n++) {
    const count_traffic *t = &site(l, COUNT_MEMORY, n)->traffic;
    cr_expect_eq(t->instructions, 1, "%s", want[n].what);
    cr_expect_eq(t->bytes, want[n].bytes, "%s: %d bytes", want[n].what, (int)t->bytes);
    cr_expect_eq(t->distinct, want[n].distinct, "%s: %d distinct bytes", want[n].what, (int)t->distinct);
    for (int size = 0; size < COUNT_SEGMENT_SIZES; size++) {
      cr_expect_eq(t->segments[size], want[n].segments[size], "%s: %d segments of %d bytes", want[n].what,
                   (int)t->segments[size], 32 << size);
      cr_expect_eq(t->least[size], want[n].least[size], "%s: at least %d segments of %d bytes", want[n].what,
                   (int)t->least[size], 32 << size);
    }
  }
}

Test(emu_count, segments_of_coalesced_strided_and_broadcast_loads_gfx950) {
  static const expected_traffic want[] = {
      {"a word a lane", 256, 256, {8, 4, 2}, {8, 4, 2}},
      {"a word every 64 bytes", 256, 256, {64, 64, 32}, {8, 4, 2}},
      {"the same word", 256, 4, {1, 1, 1}, {1, 1, 1}},
      {"16 bytes a lane", 1024, 1024, {32, 16, 8}, {32, 16, 8}},
      {"8 bytes a lane, backwards", 512, 512, {16, 8, 4}, {16, 8, 4}},
      {"half a line too far", 256, 256, {8, 4, 3}, {8, 4, 2}},
      {"a stored word a lane", 256, 256, {8, 4, 2}, {8, 4, 2}},
  };
  fixture f;
  setup(&f, "gfx950");
  counts c = count(&f, "loads", 1, 64);
  const launch_counts *l = &c.launches[0];
  expect_loads(l, want, sizeof want / sizeof *want);
  expect_classes(l, (uint64_t[COUNT_CLASS_COUNT]){[COUNT_SCALAR_MEMORY] = 1,
                                                  [COUNT_WAIT] = 2,
                                                  [COUNT_VECTOR] = 6,
                                                  [COUNT_MEMORY] = 7,
                                                  [COUNT_OTHER] = 1});
  cr_expect_eq(l->longest_wave, 17);
  cr_expect_eq(l->waves, 1);
  cr_expect_eq(l->lanes, 64);
  cr_expect(site(l, COUNT_MEMORY, 6)->writes);
  cr_expect(!site(l, COUNT_MEMORY, 5)->writes);
  cr_expect_float_eq(count_efficiency(&site(l, COUNT_MEMORY, 1)->traffic, COUNT_LINE), 2.0 / 32, 1e-9);
  /* By allocation: the strided load alone touches every line. */
  for (size_t n = 0; n < l->buffer_count; n++) {
    if (!l->buffers[n].serial) continue;
    cr_expect_eq(l->buffers[n].start, f.memory);
    cr_expect_eq(l->buffers[n].loads.instructions, 6);
    cr_expect_eq(l->buffers[n].loads.bytes, 4 * 256 + 1024 + 512);
    cr_expect_eq(l->buffers[n].stores.bytes, 256);
    cr_expect_eq(l->buffers[n].lines_read, LINES);
    cr_expect_eq(l->buffers[n].lines_written, 2);
  }
  cr_expect_eq(l->lines_read, LINES);
  counts_finish(&c);
  finish(&f);
}

Test(emu_count, segments_of_coalesced_strided_and_broadcast_loads_gfx1201) {
  static const expected_traffic want[] = {
      {"a word a lane", 128, 128, {4, 2, 1}, {4, 2, 1}},
      {"a word every 64 bytes", 128, 128, {32, 32, 16}, {4, 2, 1}},
      {"the same word", 128, 4, {1, 1, 1}, {1, 1, 1}},
      {"16 bytes a lane", 512, 512, {16, 8, 4}, {16, 8, 4}},
      {"8 bytes a lane, backwards", 256, 256, {8, 4, 2}, {8, 4, 2}},
      {"half a line too far", 128, 128, {4, 2, 2}, {4, 2, 1}},
      {"a stored word a lane", 128, 128, {4, 2, 1}, {4, 2, 1}},
  };
  fixture f;
  setup(&f, "gfx1201");
  counts c = count(&f, "loads", 1, 32);
  expect_loads(&c.launches[0], want, sizeof want / sizeof *want);
  counts_finish(&c);
  finish(&f);
}

Test(emu_count, lanes_that_are_off_move_nothing) {
  fixture f;
  setup(&f, "gfx950");
  counts c = count(&f, "loads", 1, 16);
  const count_traffic *t = &site(&c.launches[0], COUNT_MEMORY, 0)->traffic;
  cr_expect_eq(t->bytes, 64);
  cr_expect_eq(t->segments[0], 2);
  cr_expect_eq(t->segments[COUNT_LINE], 1);
  counts_finish(&c);
  finish(&f);
}

/* ---- LDS ---- */

typedef struct expected_banks {
  const char *what;
  uint64_t cycles, least;
} expected_banks;

static void expect_banks(const launch_counts *l, const expected_banks *want, size_t count) {
  uint64_t cycles = 0, least = 0;
  for (size_t n = 0; n < count; n++) {
    const count_site *s = site(l, COUNT_LDS, n);
    cr_expect_eq(s->lds_cycles, want[n].cycles, "%s: %d cycles", want[n].what, (int)s->lds_cycles);
    cr_expect_eq(s->lds_least, want[n].least, "%s: at least %d cycles", want[n].what, (int)s->lds_least);
    cycles += want[n].cycles;
    least += want[n].least;
  }
  cr_expect_eq(l->lds_cycles, cycles);
  cr_expect_eq(l->lds_least, least);
}

typedef struct bank_case {
  const char *target;
  uint32_t lanes;
  expected_banks want[8];
} bank_case;

/* 32 banks; gfx950: 64 in reads of 8 and 16 bytes; gfx1250: 64. */
static const bank_case bank_cases[] = {
    {"gfx942",
     64,
     {{"a word a lane", 2, 2},
      {"every second word: 2 ways", 4, 2},
      {"every 32nd word: 32 ways", 64, 2},
      {"16 bytes a lane", 8, 8},
      {"the same word", 2, 2},
      {"16 bytes a lane read", 8, 8},
      {"two words a lane", 4, 4},
      {"atomics on one word", 64, 2}}},
    {"gfx950",
     64,
     {{"a word a lane", 2, 2},
      {"every second word: 2 ways", 4, 2},
      {"every 32nd word: 32 ways", 64, 2},
      {"16 bytes a lane", 8, 8},
      {"the same word", 2, 2},
      {"16 bytes a lane read", 4, 4},
      {"two words a lane", 4, 4},
      {"atomics on one word", 64, 2}}},
    {"gfx1201",
     32,
     {{"a word a lane", 1, 1},
      {"every second word: 2 ways", 2, 1},
      {"every 32nd word: 32 ways", 32, 1},
      {"16 bytes a lane", 4, 4},
      {"the same word", 1, 1},
      {"16 bytes a lane read", 4, 4},
      {"two words a lane", 2, 2},
      {"atomics on one word", 32, 1}}},
    {"gfx1250",
     32,
     {{"a word a lane", 1, 1},
      {"every second word", 1, 1},
      {"every 32nd word: 16 ways", 16, 1},
      {"16 bytes a lane", 2, 2},
      {"the same word", 1, 1},
      {"16 bytes a lane read", 2, 2},
      {"two words a lane", 2, 2},
      {"atomics on one word", 32, 1}}},
};

Test(emu_count, bank_conflicts_on_every_target) {
  for (size_t n = 0; n < sizeof bank_cases / sizeof *bank_cases; n++) {
    const bank_case *one = &bank_cases[n];
    fixture f;
    setup(&f, one->target);
    counts c = count(&f, "banks", 1, one->lanes);
    expect_banks(&c.launches[0], one->want, sizeof one->want / sizeof *one->want);
    cr_expect_eq(c.launches[0].lds_bytes, (5 * 256 + 2 * 1024 + 512) * one->lanes / 64);
    cr_expect_eq(c.launches[0].instructions[COUNT_LDS], 8);
    counts_finish(&c);
    finish(&f);
  }
}

/* ---- Matrix instructions and classes ---- */

static void expect_matrix(const launch_counts *l, const count_matrix *want, size_t count) {
  cr_assert_eq(l->matrix_count, count);
  for (size_t n = 0; n < count; n++) {
    cr_expect_str_eq(l->matrix[n].name, want[n].name);
    cr_expect_eq(l->matrix[n].bits, want[n].bits, "%s: %d bits", want[n].name, l->matrix[n].bits);
    cr_expect_eq(l->matrix[n].executed, want[n].executed, "%s", want[n].name);
    cr_expect_eq(l->matrix[n].multiply_adds, want[n].multiply_adds, "%s", want[n].name);
  }
}

Test(emu_count, matrix_operations_and_classes_gfx950) {
  static const count_matrix want[] = {
      {"v_mfma_f32_16x16x32_fp8_fp8", 8, 3, 3 * 16 * 16 * 32},
      {"v_mfma_f32_16x16x16_f16", 16, 3, 3 * 16 * 16 * 16},
      {"v_mfma_f32_4x4x4_16b_f16", 16, 3, 3 * 4 * 4 * 4 * 16},
  };
  fixture f;
  setup(&f, "gfx950");
  counts c = count(&f, "products", 1, 64);
  const launch_counts *l = &c.launches[0];
  expect_matrix(l, want, sizeof want / sizeof *want);
  expect_classes(l, (uint64_t[COUNT_CLASS_COUNT]){[COUNT_SCALAR_MEMORY] = 1,
                                                  [COUNT_WAIT] = 1,
                                                  [COUNT_VECTOR] = 1,
                                                  [COUNT_SCALAR] = 7,
                                                  [COUNT_MATRIX] = 9,
                                                  [COUNT_TRANSCENDENTAL] = 3,
                                                  [COUNT_BRANCH] = 3,
                                                  [COUNT_BARRIER] = 1,
                                                  [COUNT_OTHER] = 1});
  cr_expect_eq(l->matrix_operations, 9);
  cr_expect_eq(l->multiply_adds, 3 * (8192 + 4096 + 1024));
  cr_expect_eq(l->longest_wave, launch_counts_total(l));
  counts_finish(&c);
  finish(&f);
}

Test(emu_count, matrix_operations_and_pairs_gfx1201) {
  static const count_matrix want[] = {
      {"v_wmma_f32_16x16x16_fp8_fp8", 8, 3, 3 * 16 * 16 * 16},
      {"v_wmma_f32_16x16x16_f16", 16, 3, 3 * 16 * 16 * 16},
      {"v_wmma_i32_16x16x32_iu4", 4, 3, 3 * 16 * 16 * 32},
  };
  fixture f;
  setup(&f, "gfx1201");
  counts c = count(&f, "products", 1, 32);
  const launch_counts *l = &c.launches[0];
  expect_matrix(l, want, sizeof want / sizeof *want);
  cr_expect_eq(l->instructions[COUNT_VECTOR], 2, "both halves of a pair");
  cr_expect_eq(l->instructions[COUNT_BARRIER], 2);
  cr_expect_eq(l->longest_wave, launch_counts_total(l) - 1, "a pair is one instruction of its wave");
  counts_finish(&c);
  finish(&f);
}

Test(emu_count, a_wait_at_a_barrier_counts_once) {
  fixture f;
  setup(&f, "gfx950");
  counts one = count(&f, "products", 1, 64), four = count(&f, "products", 1, 256);
  cr_expect_eq(four.launches[0].waves, 4);
  for (int n = 0; n < COUNT_CLASS_COUNT; n++)
    cr_expect_eq(four.launches[0].instructions[n], 4 * one.launches[0].instructions[n], "%s",
                 count_class_name((count_class)n));
  cr_expect_eq(four.launches[0].longest_wave, one.launches[0].longest_wave);
  counts_finish(&one);
  counts_finish(&four);
  finish(&f);
}

/* ---- The switch, and threads ---- */

static bool same_launch(const launch_counts *a, const launch_counts *b) {
  bool same = a->site_count == b->site_count && a->buffer_count == b->buffer_count &&
              a->matrix_count == b->matrix_count;
  for (size_t n = 0; same && n < a->site_count; n++) {
    count_site x = a->sites[n], y = b->sites[n];
    same = strcmp(x.text, y.text) == 0 && x.executed == y.executed && x.buffer == y.buffer &&
           x.several == y.several && x.lds_cycles == y.lds_cycles && x.lds_least == y.lds_least &&
           memcmp(&x.traffic, &y.traffic, sizeof x.traffic) == 0;
  }
  return same && memcmp(a->instructions, b->instructions, sizeof a->instructions) == 0 &&
         memcmp(a->buffers, b->buffers, a->buffer_count * sizeof *a->buffers) == 0 &&
         memcmp(&a->loads, &b->loads, sizeof a->loads) == 0 &&
         memcmp(&a->stores, &b->stores, sizeof a->stores) == 0 && a->lines_read == b->lines_read &&
         a->lines_written == b->lines_written && a->lds_cycles == b->lds_cycles &&
         a->longest_wave == b->longest_wave && a->multiply_adds == b->multiply_adds;
}

/* Kernel arguments lie elsewhere in every launch. */
static void forget_arguments(launch_counts *l) {
  for (size_t n = 0; n < l->buffer_count; n++)
    if (!l->buffers[n].serial) l->buffers[n].start = 0;
  for (size_t n = 0; n < l->site_count; n++)
    if (l->sites[n].class == COUNT_SCALAR_MEMORY) l->sites[n].buffer = 0;
}

Test(emu_count, counts_do_not_depend_on_threads) {
  static const char *const kernels[] = {"loads", "banks", "products"};
  fixture f;
  setup(&f, "gfx950");
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    counts by_threads[3];
    for (int n = 0; n < 3; n++) {
      char threads[8];
      snprintf(threads, sizeof threads, "%d", n + 1);
      setenv("HEDDLE_EMU_THREADS", threads, 1);
      by_threads[n] = count(&f, kernels[k], 37, 64);
      forget_arguments(&by_threads[n].launches[0]);
    }
    cr_expect(same_launch(&by_threads[0].launches[0], &by_threads[1].launches[0]), "%s", kernels[k]);
    cr_expect(same_launch(&by_threads[0].launches[0], &by_threads[2].launches[0]), "%s", kernels[k]);
    cr_expect_eq(by_threads[0].launches[0].waves, 37);
    for (int n = 0; n < 3; n++)
      counts_finish(&by_threads[n]);
  }
  unsetenv("HEDDLE_EMU_THREADS");
  finish(&f);
}

Test(emu_count, only_launches_between_begin_and_end_are_counted) {
  fixture f;
  counts c;
  setup(&f, "gfx950");
  cr_assert(device_counts_launches(f.d));
  launch(&f, "loads", 1, 64);
  check(&f, f.d->vtable->count_begin(f.d, &f.list), "begin");
  launch(&f, "products", 1, 64);
  launch(&f, "banks", 2, 64);
  check(&f, f.d->vtable->count_end(f.d, &c, &f.list), "end");
  launch(&f, "loads", 1, 64);
  cr_assert_eq(c.count, 2);
  cr_expect_str_eq(c.launches[0].kernel, "products");
  cr_expect_str_eq(c.launches[1].kernel, "banks");
  cr_expect_eq(c.launches[1].workgroups, 2);
  counts_finish(&c);
  check(&f, f.d->vtable->count_begin(f.d, &f.list), "begin");
  check(&f, f.d->vtable->count_end(f.d, &c, &f.list), "end");
  cr_expect_eq(c.count, 0);
  counts_finish(&c);
  finish(&f);
}

/* ---- Estimates ---- */

Test(emu_count, an_estimate_names_what_bounds) {
  const target *t = target_find("gfx950");
  estimate e;
  count_matrix products = {.bits = 8, .multiply_adds = UINT64_C(1) << 40};
  launch_counts l = {.lanes = 64, .workgroups = 256, .lines_read = 8000000000 / COUNT_LINE_BYTES};
  cr_assert(estimate_launch(t, 256, &l, &e));
  cr_expect_eq(e.bound, BOUND_MEMORY);
  cr_expect_float_eq(e.total, 8e9 / t->hbm_bytes_per_s, 1e-6);
  cr_expect_float_eq(e.efficiency, 1, 1e-9);
  l.matrix = &products;
  l.matrix_count = 1;
  l.lines_read = 0;
  cr_assert(estimate_launch(t, 256, &l, &e));
  cr_expect_eq(e.bound, BOUND_MATRIX);
  cr_expect_float_eq(e.total, 2 * (double)products.multiply_adds / 5.033e15, 1e-6);
  l.workgroups = 1; /* one unit does it all */
  estimate alone;
  cr_assert(estimate_launch(t, 256, &l, &alone));
  cr_expect_float_eq(alone.total / e.total, 256, 1e-6);
  cr_expect_not(estimate_launch(target_find("sm_90"), 132, &l, &e));
}
