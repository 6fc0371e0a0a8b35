/* A fault names the source line, and damaged line tables harm nothing. */
#include "emu_fixture.h"

/* The line of the planted fault, found in the source, not written down here. */
static int line_of(const char *phrase) {
  char path[1024], line[1024];
  snprintf(path, sizeof path, "%s/tests/emu/faults.hip", getenv("HEDDLE_SOURCE"));
  FILE *f = fopen(path, "r");
  cr_assert(f, "%s", path);
  for (int n = 1; fgets(line, sizeof line, f); ++n)
    if (strstr(line, phrase)) {
      fclose(f);
      return n;
    }
  fclose(f);
  return 0;
}

EACH_BUILD(names_source_lines) {
  char place[64];
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), 2};
  snprintf(place, sizeof place, "faults.hip:%d)", line_of("KERNEL void writes_past_end"));
  expect_fault(&t, "writes_past_end", one_wave, &args, sizeof args, place);
  diags_finish(&t.list);
  diags_init(&t.list);
  snprintf(place, sizeof place, "faults.hip:%d)", line_of("__builtin_trap"));
  expect_fault(&t, "traps", one_wave, NULL, 0, place);
  bench_close(&t);
}

EACH_BUILD(survives_damaged_source_lines) {
  static unsigned char bytes[1 << 20], damaged[1 << 20];
  char path[1024];
  bench t;
  bench_open_faults(&t, b);
  snprintf(path, sizeof path, "%s/tests/emu_faults_%s_%s.co", getenv("HEDDLE_BUILD"), b->target, b->level);
  FILE *f = fopen(path, "rb");
  cr_assert(f, "%s", path);
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  elf64 e;
  elf64_section lines;
  cr_assert_eq(elf64_open(bytes, size, &e, &t.list), HD_OK);
  cr_assert(elf64_section_find(&e, ".debug_line", &lines) && lines.size > 100);
  for (int round = 0; round < 40; ++round) {
    memcpy(damaged, bytes, size);
    for (int n = 0; n < 1 + round / 4; ++n)
      damaged[lines.offset + random_bits() % (round % 2 ? 100 : lines.size)] = (unsigned char)random_bits();
    device_module *m; /* the code is whole: it loads, whatever the lines say */
    check(&t, t.d->vtable->load(t.d, damaged, size, &m, &t.list), "load");
    t.d->vtable->unload(t.d, m);
  }
  bench_close(&t);
}
