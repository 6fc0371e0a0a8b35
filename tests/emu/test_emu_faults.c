/* Faults planted in kernels are named: where they read, write and wait. */
#include "emu_fixture.h"

EACH_BUILD(names_a_read_past_the_end) {
  float x[64] = {0};
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
    int at;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof x), 1};
  expect_fault(&t, "reads_past_end", one_wave, &args, sizeof args,
               "0 bytes past the end of allocation 1 (256 bytes");
  bench_close(&t);
}

EACH_BUILD(names_a_write_past_the_end) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), 2};
  expect_fault(&t, "writes_past_end", one_wave, &args, sizeof args, "write of 4 bytes");
  bench_close(&t);
}

EACH_BUILD(names_atomics_off_a_word) {
  static const char *const kernels[] = {"adds_to_lds_off_a_word", "adds_off_a_word"};
  bench t;
  bench_open_part(&t, b, "alignment");
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 512), 0};
  for (int n = 0; n < 2; ++n) {
    args.at = 0;
    run(&t, kernels[n], one_wave, &args, sizeof args);
    args.at = 2;
    expect_fault(&t, kernels[n], one_wave, &args, sizeof args, "misaligned");
    diags_finish(&t.list);
    diags_init(&t.list);
  }
  args.at = 3; /* unaligned access mode */
  run(&t, "reads_bytes_of_lds", one_wave, &args, sizeof args);
  bench_close(&t);
}

EACH_BUILD(stops_a_kernel_that_never_ends) {
  int flag = 0;
  bench t;
  setenv("HEDDLE_EMU_BUDGET", "100000", 1);
  bench_open_faults(&t, b);
  struct {
    device_pointer flag;
  } args = {put(&t, &flag, sizeof flag)};
  expect_fault(&t, "never_ends", one_wave, &args, sizeof args, "HEDDLE_EMU_BUDGET");
  bench_close(&t);
  unsetenv("HEDDLE_EMU_BUDGET");
}

EACH_BUILD(reports_a_trap) {
  bench t;
  bench_open_faults(&t, b);
  expect_fault(&t, "traps", one_wave, NULL, 0, "trap");
  bench_close(&t);
}

EACH_BUILD(names_registers_used_before_their_load_was_waited_for) {
  float x[65] = {0};
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof x)};
  run(&t, "waits_enough", one_wave, &args, sizeof args);
  expect_fault(&t, "uses_before_wait", one_wave, &args, sizeof args, "must be at most 0 here");
  diags_finish(&t.list);
  diags_init(&t.list);
  expect_fault(&t, "overwrites_before_wait", one_wave, &args, sizeof args,
               "before the load into it was waited for");
  bench_close(&t);
}

EACH_BUILD(names_races_in_lds) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 512)};
  expect_fault(&t, "races_in_lds", (shape){{1, 1, 1}, {128, 1, 1}, 0}, &args, sizeof args, "race in LDS");
  bench_close(&t);
}

EACH_BUILD(names_lds_that_nothing_wrote) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 256)};
  expect_fault(&t, "reads_unwritten_lds", one_wave, &args, sizeof args,
               "lane 5: LDS byte 20 is read, and nothing wrote it");
  bench_close(&t);
}

EACH_BUILD(knows_the_order_that_named_barriers_give) {
  if (strcmp(b->target, "gfx1250") != 0) return; /* alone has them */
  bench t;
  bench_open_part(&t, b, "barriers");
  struct {
    device_pointer out;
    int ordered;
  } args = {put(&t, NULL, 128), 1};
  const shape two_waves_of_32 = {{1, 1, 1}, {64, 1, 1}, 0};
  run(&t, "hands_over", two_waves_of_32, &args, 12);
  int got[32];
  check(&t, t.d->vtable->copy_out(t.d, NULL, got, args.out, sizeof got, &t.list), "copy out");
  for (int n = 0; n < 32; ++n)
    cr_expect_eq(got[n], 3 * n);
  args.ordered = 0;
  expect_fault(&t, "hands_over", two_waves_of_32, &args, 12,
               "race in LDS at byte 0: written here, read by wave 1");
  bench_close(&t);
}

static void forget_fault(bench *t) {
  diags_finish(&t->list);
  diags_init(&t->list);
}

EACH_BUILD(names_an_lds_byte_that_nothing_wrote) {
  bench t;
  bench_open_unwritten(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), -1};
  run(&t, "reads_one_unwritten_lds_byte", one_wave, &args, 12);
  args.at = 4 * 7 + 2;
  expect_fault(&t, "reads_one_unwritten_lds_byte", one_wave, &args, 12,
               "lane 7: LDS byte 30 is read, and nothing wrote it");
  bench_close(&t);
}

/* What a copy to LDS takes along is held to account when LDS is read. */
EACH_BUILD(names_lds_that_holds_a_copy_of_memory_that_nothing_wrote) {
  if (strcmp(b->target, "gfx1201") == 0) return; /* has no such copies */
  int words[64] = {0};
  bench t;
  bench_open_unwritten(&t, b);
  struct {
    device_pointer in, out;
    int at;
  } args = {put(&t, NULL, 256), put(&t, NULL, 256), 9};
  check(&t, t.d->vtable->copy_in(t.d, NULL, args.in, words, 40, &t.list), "copy in");
  run(&t, "reads_one_of_a_copy", one_wave, &args, 20);
  args.at = 10;
  expect_fault(&t, "reads_one_of_a_copy", one_wave, &args, 20, "LDS byte 40 is read, and nothing wrote it");
  bench_close(&t);
}

EACH_BUILD(names_a_byte_of_memory_that_nothing_wrote) {
  bench t;
  bench_open_unwritten(&t, b);
  const device_vtable *v = t.d->vtable;
  device_pointer bytes = put(&t, NULL, 256);
  struct {
    device_pointer in, out;
  } args = {bytes, put(&t, NULL, 64)};
  check(&t, v->fill(t.d, NULL, bytes, 0, 19, &t.list), "fill");
  check(&t, v->fill(t.d, NULL, bytes + 20, 0, 236, &t.list), "fill");
  expect_fault(&t, "copies_bytes", one_wave, &args, sizeof args, "lane 19: 1 bytes at 0x");
  forget_fault(&t);
  args.in = bytes + 20; /* its neighbours are nobody's business */
  run(&t, "copies_bytes", one_wave, &args, sizeof args);
  args.in = bytes;
  check(&t, v->fill(t.d, NULL, bytes + 19, 0, 1, &t.list), "fill");
  run(&t, "copies_bytes", one_wave, &args, sizeof args);
  bench_close(&t);
}

EACH_BUILD(names_memory_that_nothing_wrote) {
  int words[64] = {0};
  bench t;
  bench_open_faults(&t, b);
  const device_vtable *v = t.d->vtable;
  device_pointer half = put(&t, NULL, 512), empty = put(&t, NULL, 256), out = put(&t, NULL, 512);
  check(&t, v->copy_in(t.d, NULL, half, words, 256, &t.list), "copy in");
  struct {
    device_pointer in, out;
    int at;
  } args = {half, out, 0};
  run(&t, "copies_words", one_wave, &args, 16);
  args.in = out;
  args.out = out + 256;
  run(&t, "copies_words", one_wave, &args, 16); /* a kernel wrote it */
  args.in = half + 256;
  expect_fault(&t, "copies_words", one_wave, &args, 16, "lane 0: 4 bytes at 0x");
  cr_assert(strstr(t.list.items[0].message,
                   "are read, and nothing wrote them: byte 256 of allocation 1 (512 bytes"),
            "%s", t.list.items[0].message);
  forget_fault(&t);
  /* All but one byte. */
  check(&t, v->fill(t.d, NULL, half + 256, 0, 4 * 9 + 3, &t.list), "fill");
  check(&t, v->fill(t.d, NULL, half + 256 + 40, 0, 216, &t.list), "fill");
  expect_fault(&t, "copies_words", one_wave, &args, 16, "lane 9: 4 bytes at 0x");
  cr_assert(strstr(t.list.items[0].message,
                   "are read, and nothing wrote 1 of them: byte 295 of allocation 1 (512 bytes"),
            "%s", t.list.items[0].message);
  forget_fault(&t);
  args.in = half + 256;
  check(&t, v->fill(t.d, NULL, half + 256 + 39, 0, 1, &t.list), "fill");
  run(&t, "copies_words", one_wave, &args, 16);
  args.in = empty;
  check(&t, v->copy_in(t.d, NULL, empty, words, 8, &t.list), "copy in");
  args.at = 1;
  run(&t, "loads_a_scalar", one_wave, &args, sizeof args);
  args.at = 2;
  expect_fault(&t, "loads_a_scalar", one_wave, &args, sizeof args, "byte 8 of allocation 2");
  forget_fault(&t);
  device_pointer sum = empty;
  run(&t, "adds_to_memory", one_wave, &sum, sizeof sum);
  sum = empty + 12;
  expect_fault(&t, "adds_to_memory", one_wave, &sum, sizeof sum, "byte 12 of allocation 2");
  bench_close(&t);
}

EACH_BUILD(names_waves_that_part_at_a_barrier) {
  static const int zeros[128];
  static const shape two_waves = {{1, 1, 1}, {128, 1, 1}, 0};
  static const struct {
    const char *kernel;
    int half;
    const char *phrase;
  } faults[] = {
      {"half_a_barrier", 0, "divergence at a barrier: wave 0 waits at another one, 0x"},
      {"half_leaves", 1, "divergence at a barrier: the wave ends while wave 0 waits at 0x"},
      {"half_leaves", 0, " without coming to it"},
  };
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int rounds;
  } args = {put(&t, zeros, sizeof zeros), 5};
  run(&t, "meets_at_one_barrier", two_waves, &args, sizeof args);
  args.rounds = 0;
  run(&t, "meets_at_one_barrier", two_waves, &args, sizeof args);
  for (size_t n = 0; n < sizeof faults / sizeof *faults; ++n) {
    args.rounds = faults[n].half;
    expect_fault(&t, faults[n].kernel, two_waves, &args, sizeof args, faults[n].phrase);
    diags_finish(&t.list);
    diags_init(&t.list);
  }
  bench_close(&t);
}

EACH_BUILD(names_copies_used_before_they_landed) {
  static const char zeros[512];
  bench t;
  if (strcmp(b->target, "gfx1250") != 0) return; /* elsewhere the compiler waits */
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
  } args = {put(&t, zeros, sizeof zeros), put(&t, NULL, 512)};
  expect_fault(&t, "copy_not_waited_for", (shape){{1, 1, 1}, {32, 1, 1}, 0}, &args, sizeof args, "asynccnt");
  bench_close(&t);
}

/* A copy past the registers may write LDS before an access that was asked for earlier has come to it. */
EACH_BUILD(names_copies_over_what_is_still_being_read) {
  int words[128];
  bench t;
  if (strcmp(b->target, "gfx1201") == 0) return; /* has no such copies */
  for (int n = 0; n < 128; ++n)
    words[n] = 3 * n + 1;
  bench_open_part(&t, b, "overtaken");
  bool split = strcmp(b->target, "gfx1250") == 0;
  int lanes = split ? 32 : 64;
  shape one = {{1, 1, 1}, {lanes, 1, 1}, 0};
  struct {
    device_pointer in, out;
    int over;
  } args = {put(&t, words, sizeof words), put(&t, NULL, 256), 0};
  static const struct {
    const char *kernel;
    int over;
    const char *gfx9, *gfx12; /* NULL: no fault */
  } rows[] = {
      {"copies_over_a_read", 0, "lgkmcnt must be at most 1 here", "dscnt must be at most 1 here"},
      {"copies_over_a_read", 1, "lgkmcnt must be at most 0 here", "dscnt must be at most 0 here"},
      {"copies_over_the_second_read", 0, NULL, NULL},
      {"copies_over_the_second_read", 1, "lgkmcnt must be at most 0 here", "dscnt must be at most 0 here"},
      {"copies_behind_the_reads", 0, NULL, NULL},
      {"copies_behind_the_reads", 1, NULL, NULL},
      {"copies_over_a_write", 0, "an access of wave 0", "an access of wave 0"},
  };
  for (size_t n = 0; n < sizeof rows / sizeof *rows; ++n) {
    const char *phrase = split ? rows[n].gfx12 : rows[n].gfx9;
    args.over = rows[n].over;
    if (phrase) {
      expect_fault(&t, rows[n].kernel, one, &args, sizeof args, phrase);
      diags_finish(&t.list);
      diags_init(&t.list);
      continue;
    }
    run(&t, rows[n].kernel, one, &args, sizeof args);
    int out[64];
    get(&t, out, args.out, (size_t)lanes * sizeof *out);
    for (int k = 0; k < lanes; ++k) {
      int first = words[k], second = words[64 + k];
      cr_assert_eq(out[k], first + second + first + (args.over ? first : second), "%s: %s: lane %d", t.label,
                   rows[n].kernel, k);
    }
  }
  bench_close(&t);
}

EACH_BUILD(watches_only_when_asked) {
  bench t;
  setenv("HEDDLE_EMU_WATCH", "0", 1);
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 512)};
  run(&t, "races_in_lds", (shape){{1, 1, 1}, {128, 1, 1}, 0}, &args, sizeof args);
  bench_close(&t);
  unsetenv("HEDDLE_EMU_WATCH");
}

EACH_BUILD(refuses_what_does_not_fit) {
  bench t;
  bench_open(&t, b);
  struct {
    device_pointer out;
    int width, height;
  } args = {put(&t, NULL, 4096), 1, 1};
  cr_assert_eq(try_launch(&t, "grid_ids", one_wave, &args, 8), HD_INVALID);
  cr_assert_eq(try_launch(&t, "grid_ids", (shape){{1, 1, 1}, {2048, 1, 1}, 0}, &args, sizeof args),
               HD_INVALID);
  device_function *f;
  cr_assert_eq(t.d->vtable->function(t.d, t.module, "no_such_kernel", 0, &f, &t.list), HD_INVALID);
  cr_assert_eq(t.d->vtable->function(t.d, t.module, "dynamic_lds", 1 << 20, &f, &t.list), HD_INVALID);
  bench_close(&t);
}

Test(emu, opens_every_target_and_no_other) {
  static const char *const names[] = {"emu:gfx942", "emu:gfx950", "emu:gfx1201", "emu:gfx1250"};
  diags list;
  diags_init(&list);
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n) {
    device *d;
    device_facts facts;
    cr_assert_eq(device_open(names[n], &d, &list), HD_OK);
    d->vtable->facts(d, &facts);
    cr_assert(facts.emulated);
    cr_assert_str_eq(facts.target, names[n] + 4);
    device_close(d);
  }
  device *d;
  cr_assert_eq(device_open("emu:gfx1030", &d, &list), HD_UNAVAILABLE);
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n)
    cr_assert(strstr(list.items[0].message, names[n] + 4), "%s names no %s", list.items[0].message,
              names[n] + 4);
  diags_finish(&list);
}
