/* Code objects that lie: each claim changes one thing of a sound one, and the emulated device refuses it or
 * runs it without leaving its own memory. What the fuzzers found stands here as what it was. */
#include "../../runtime/object/codeobject.h"
#include "../../runtime/device/device.h"
#include "../../runtime/object/elf64.h"
#include "../../runtime/object/little.h"
#include "../samples.h"
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

hd_status heddle_emu_open(const char *rest, device **out_device, diags *list);

static const char *const targets[] = {EMULATED_TARGETS};
enum { TARGETS = sizeof targets / sizeof *targets };

/* The sample kernels of a target, to be changed. */
typedef struct object {
  unsigned char *bytes;
  size_t size;
  codeobject facts;
} object;

static void open_object(const char *target_name, object *out) {
  diags problems;
  diags_init(&problems);
  out->bytes = sample_read(target_name, &out->size);
  cr_assert_eq(codeobject_parse(out->bytes, out->size, &out->facts, &problems), HD_OK);
  diags_finish(&problems);
}

/* Loads it, and launches its first kernel if that can be had. `out_problem`: the first one, "" when none. */
static hd_status run(const char *target_name, const object *o, char out_problem[256]) {
  device *d = NULL;
  device_module *m = NULL;
  device_function *f = NULL;
  device_pointer buffer = 0;
  uint64_t arguments[64];
  diags problems;
  diags_init(&problems);
  cr_assert_eq(heddle_emu_open(target_name, &d, &problems), HD_OK);
  cr_assert_eq(d->vtable->allocate(d, 4096, &buffer, &problems), HD_OK);
  cr_assert_eq(d->vtable->fill(d, NULL, buffer, 0, 4096, &problems), HD_OK);
  hd_status status = d->vtable->load(d, o->bytes, o->size, &m, &problems);
  if (status == HD_OK) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
      arguments[i] = i == 2 ? 16 : buffer;
    status = d->vtable->function(d, m, o->facts.kernels[0].symbol, 0, &f, &problems);
    device_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = arguments};
    launch.arguments_size = o->facts.kernels[0].kernarg_size;
    if (status == HD_OK) status = d->vtable->launch(d, NULL, f, &launch, &problems);
    d->vtable->unload(d, m);
  }
  snprintf(out_problem, 256, "%s", problems.count > 0 ? problems.items[0].message : "");
  device_close(d);
  diags_finish(&problems);
  return status;
}

/* Every place of this key's value in the metadata: what follows it. */
static void set_metadata(object *o, const char *key, unsigned char value) {
  size_t length = strlen(key), found = 0;
  for (size_t at = 0; at + length < o->size; at++)
    if (memcmp(o->bytes + at, key, length) == 0) {
      o->bytes[at + length] = value;
      found++;
    }
  cr_assert_gt(found, 0);
}

Test(emu_hostile, the_sample_runs) {
  for (int t = 0; t < TARGETS; t++) {
    object o;
    char problem[256];
    open_object(targets[t], &o);
    cr_expect_eq(run(targets[t], &o, problem), HD_OK, "%s: %s", targets[t], problem);
    free(o.bytes);
  }
}

Test(emu_hostile, a_wave_has_32_or_64_lanes) {
  static const unsigned char lanes[] = {1, 3, 31, 33, 63, 65, 127};
  for (int t = 0; t < TARGETS; t++)
    for (size_t i = 0; i < sizeof lanes; i++) {
      object o;
      char problem[256];
      open_object(targets[t], &o);
      set_metadata(&o, ".wavefront_size", lanes[i]);
      cr_expect_eq(run(targets[t], &o, problem), HD_INVALID, "%s with %d lanes", targets[t], lanes[i]);
      cr_expect(strstr(problem, "lanes") != NULL, "%s", problem);
      free(o.bytes);
    }
}

Test(emu_hostile, a_kernel_that_asks_for_gigabytes_of_arguments_gets_none) {
  for (int t = 0; t < TARGETS; t++) {
    object o;
    char problem[256];
    open_object(targets[t], &o);
    put_little(o.bytes + o.facts.kernels[0].descriptor_offset + 8, 0xfffffff0, 4);
    cr_expect_eq(run(targets[t], &o, problem), HD_INVALID, "%s", targets[t]);
    cr_expect(strstr(problem, "arguments") != NULL, "%s", problem);
    free(o.bytes);
  }
}

static uint64_t section_header(const object *o, const char *name, elf64_section *out) {
  elf64 e;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(elf64_open(o->bytes, o->size, &e, &problems), HD_OK);
  cr_assert(elf64_section_find(&e, name, out));
  for (int i = 0; i < e.section_count; i++) {
    elf64_section s;
    if (elf64_section_at(&e, i, &s) && s.offset == out->offset && s.name == out->name)
      return e.sections_at + (uint64_t)i * sizeof(Elf64_Shdr);
  }
  cr_assert(false);
  return 0;
}

/* LLVM's disassembler reads through a null pointer there. */
Test(emu_hostile, code_may_end_within_an_instruction) {
  /* v_add_u32 and the like with a literal that would follow, and whole words of every kind of encoding */
  static const uint32_t words[] = {0x000000ff, 0x680000ff, 0xbe8000ff, 0x800000ff, 0x7e0002ff, 0xf1000000,
                                   0xd1000000, 0xdc000000, 0xe0000000, 0xc0000000, 0xcc000000, 0xbf0000ff};
  for (int t = 0; t < TARGETS; t++)
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
      object o;
      char problem[256];
      elf64_section code;
      open_object(targets[t], &o);
      section_header(&o, ".text", &code);
      put_little(o.bytes + code.offset + code.size - 4, words[i], 4);
      cr_expect_eq(run(targets[t], &o, problem), HD_OK, "%s, %08x: %s", targets[t], words[i], problem);
      free(o.bytes);
    }
}

/* Encodings that no assembler makes, at which LLVM 22 ends the process: literals behind 8 bytes and as
 * barriers, reserved selects, scalars as matrices. */
Test(emu_hostile, words_that_are_no_instructions_are_data) {
  static const struct {
    const char *target;
    uint32_t words[2];
  } rows[] = {{"gfx942", {0xea000022, 0xff0703be}},  {"gfx942", {0xea9d0456, 0xff0703be}},
              {"gfx942", {0xd2800000, 0x04fe02ff}},  {"gfx942", {0xd04360ff, 0x2233968a}},
              {"gfx942", {0x031800f9, 0x11331789}},  {"gfx942", {0x005afef9, 0x81570e67}},
              {"gfx950", {0x14e480f9, 0xf302b77e}},  {"gfx950", {0x678a56f9, 0xc3779732}},
              {"gfx950", {0xd3ad00ff, 0x4dd31ac7}},  {"gfx950", {0xd3ae8004, 0x8c898b8d}},
              {"gfx1201", {0xbe9a51ff, 0xafa35297}}, {"gfx1201", {0xbea050ff, 0xc91abe0d}},
              {"gfx1250", {0xbe8652ff, 0x872f0331}}, {"gfx1250", {0xbe9a4eff, 0xd9258696}},
              {"gfx1250", {0xbedd4fff, 0xd83b16a0}}, {"gfx1250", {0xbec357ff, 0x35901cf7}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    object o;
    char problem[256];
    elf64_section code;
    open_object(rows[i].target, &o);
    section_header(&o, ".text", &code);
    for (uint64_t n = 0; n < 2; n++)
      put_little(o.bytes + code.offset + code.size - 64 + 4 * n, rows[i].words[n], 4);
    cr_expect_eq(run(rows[i].target, &o, problem), HD_OK, "%s, %08x: %s", rows[i].target, rows[i].words[0],
                 problem);
    free(o.bytes);
  }
}

Test(emu_hostile, registers_begin_with_no_more_than_the_arguments) {
  static const uint32_t lengths[] = {0x7f, 0x10, 1}, offsets[] = {0, 0x1ff, 0x80};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    object o;
    char problem[256];
    open_object("gfx950", &o);
    unsigned char *word = o.bytes + o.facts.kernels[0].descriptor_offset + 56;
    put_little(word, get_little(word, 2) | (uint64_t)(lengths[i] | offsets[i] << 7) << 16, 4);
    cr_expect_eq(run("gfx950", &o, problem), HD_INVALID, "%u from %u", lengths[i], offsets[i]);
    cr_expect(strstr(problem, "arguments in registers") != NULL, "%s", problem);
    free(o.bytes);
  }
}

/* A few bytes of code at each end of 256 MiB would be 64 million instructions to decode. */
Test(emu_hostile, code_is_no_larger_than_its_file) {
  for (int t = 0; t < TARGETS; t++) {
    object o;
    char problem[256];
    elf64_section other;
    elf64 e;
    diags problems;
    diags_init(&problems);
    open_object(targets[t], &o);
    cr_assert_eq(elf64_open(o.bytes, o.size, &e, &problems), HD_OK);
    for (int i = 0; i < e.segment_count; i++) { /* the last one grows */
      unsigned char *header = o.bytes + e.segments_at + (size_t)i * sizeof(Elf64_Phdr);
      if (get_little(header, 4) == PT_LOAD)
        put_little(header + offsetof(Elf64_Phdr, p_memsz), (200u << 20), 8);
    }
    uint64_t at = section_header(&o, ".comment", &other);
    put_little(o.bytes + at + offsetof(Elf64_Shdr, sh_addr), 200u << 20, 8);
    put_little(o.bytes + at + offsetof(Elf64_Shdr, sh_flags), SHF_ALLOC | SHF_EXECINSTR, 8);
    cr_expect_eq(run(targets[t], &o, problem), HD_INVALID, "%s", targets[t]);
    cr_expect(strstr(problem, "code") != NULL, "%s", problem);
    free(o.bytes);
    diags_finish(&problems);
  }
}
