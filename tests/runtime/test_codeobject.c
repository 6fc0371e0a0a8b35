#include "../../runtime/object/codeobject.h"
#include "../../generator/target.h"
#include "../../runtime/object/little.h"
#include "../samples.h"
#include <criterion/criterion.h>
#include <elf.h>

static codeobject object;

static hd_status parse(const void *bytes, size_t size) {
  diags problems;
  diags_init(&problems);
  hd_status status = codeobject_parse(bytes, size, &object, &problems);
  cr_expect((status == HD_OK) == (diags_errors(&problems) == 0),
            "a refusal says why, a success says nothing");
  diags_finish(&problems);
  return status;
}

static const codeobject_kernel *kernel(const char *symbol) {
  int i = 0;
  while (i < object.kernel_count && strcmp(object.kernels[i].symbol, symbol) != 0)
    i++;
  cr_assert(i < object.kernel_count, "no kernel %s", symbol);
  return &object.kernels[i];
}

Test(codeobject, reads_target_kernels_and_arguments_of_every_amd_target) {
  static const struct {
    const char *target;
    unsigned machine, wave;
  } rows[] = {{"gfx942", 0x4c, 64}, {"gfx950", 0x4f, 64}, {"gfx1201", 0x4e, 32}, {"gfx1250", 0x49, 32}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t size;
    unsigned char *bytes = sample_read(rows[i].target, &size);
    cr_assert(parse(bytes, size) == HD_OK);
    cr_expect(object.machine == rows[i].machine);
    cr_expect_str_eq(object.target, rows[i].target);
    cr_expect(object.kernel_count == 2);

    const codeobject_kernel *rotate = kernel("sample_rotate");
    cr_expect(rotate->wave == rows[i].wave && rotate->max_workgroup == 256);
    cr_expect(rotate->static_lds == 256, "64 floats of LDS, found %u bytes", rotate->static_lds);
    cr_expect(rotate->vgprs > 0 && rotate->sgprs > 0 && rotate->vgpr_spills == 0 && rotate->scratch == 0);
    cr_expect(rotate->kernarg_size == 20 && rotate->kernarg_align == 8 && rotate->argument_count == 3);
    cr_expect_str_eq(rotate->arguments[1].value_kind, "global_buffer");
    cr_expect(rotate->arguments[2].offset == 16 && rotate->arguments[2].size == 4);

    const codeobject_kernel *scale = kernel("sample_scale");
    cr_expect(scale->static_lds == 0 && scale->argument_count == 4);
    cr_expect(scale->arguments[1].size == 8 && scale->arguments[3].offset == 20);
    cr_expect(scale->descriptor_offset + 64 <= size);
    /* kernarg_size is the third word of the kernel descriptor. */
    cr_expect(bytes[scale->descriptor_offset + 8] == 24, "the descriptor lies where its symbol says");
    free(bytes);
  }
}

Test(codeobject, leaves_the_result_untouched_on_failure) {
  memset(&object, 0x5a, sizeof object);
  cr_expect(parse("\177ELF", 4) == HD_INVALID);
  cr_expect(object.machine == 0x5a5a5a5a && object.kernel_count == 0x5a5a5a5a);
}

Test(codeobject, refuses_what_is_no_amd_code_object) {
  size_t size;
  unsigned char *bytes = sample_read("gfx950", &size);
  static const struct {
    size_t offset;
    unsigned char value;
    const char *what;
  } edits[] = {{0, 0x7e, "magic"}, {4, 1, "32-bit"},           {5, 2, "big endian"},
               {7, 0, "ABI"},      {18, 62, "machine x86-64"}, {54, 55, "header size"}};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    unsigned char was = bytes[edits[i].offset];
    bytes[edits[i].offset] = edits[i].value;
    cr_expect(parse(bytes, size) == HD_INVALID, "%s", edits[i].what);
    bytes[edits[i].offset] = was;
  }
  cr_expect(parse(bytes, size) == HD_OK);
  cr_expect(parse(NULL, 0) == HD_INVALID);
  free(bytes);
}

Test(codeobject, an_unknown_machine_has_no_target_name) {
  size_t size;
  unsigned char *bytes = sample_read("gfx950", &size);
  bytes[48] = 0xfe; /* e_flags */
  cr_assert(parse(bytes, size) == HD_OK);
  cr_expect(object.machine == 0xfe);
  cr_expect_str_eq(object.target, "");
  free(bytes);
}

/* Buffers of exactly the given size, so that a sanitizer sees a read beyond the end. */
Test(codeobject, every_truncation_is_refused_without_reading_past_the_end) {
  size_t size;
  unsigned char *bytes = sample_read("gfx950", &size);
  for (size_t length = 0; length < size; length++) {
    unsigned char *cut = malloc(length > 0 ? length : 1);
    memcpy(cut, bytes, length);
    cr_expect(parse(cut, length) == HD_INVALID, "%zu of %zu bytes", length, size);
    free(cut);
  }
  free(bytes);
}

Test(codeobject, survives_every_damaged_byte_of_headers_and_metadata) {
  size_t size;
  unsigned char *bytes = sample_read("gfx950", &size);
  static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xdf, 0xdb, 0xc1};
  int refused = 0;
  for (size_t at = 0; at < size; at++) {
    unsigned char was = bytes[at];
    for (size_t v = 0; v < sizeof values; v++) {
      bytes[at] = values[v];
      hd_status status = parse(bytes, size);
      cr_expect(status == HD_OK || status == HD_INVALID);
      refused += status == HD_INVALID;
    }
    bytes[at] = was;
  }
  cr_expect(refused > 500, "damage to the metadata is noticed (%d refusals)", refused);
  free(bytes);
}

/* ---- Files that are made to take long ---- */

enum { FILLER = 4 << 20 };

static void expect_refused(const void *bytes, size_t size, const char *words) {
  diags problems;
  diags_init(&problems);
  cr_expect_eq(codeobject_parse(bytes, size, &object, &problems), HD_INVALID);
  cr_expect(problems.count > 0 && strstr(problems.items[0].message, words) != NULL, "%s",
            problems.count > 0 ? problems.items[0].message : "not a word");
  diags_finish(&problems);
}

/* The sample with `rows` copies of a table row behind it, and FILLER zeros behind those. */
static unsigned char *with_table(const void *row, size_t row_size, size_t rows, size_t *out_size) {
  size_t size, table = rows * row_size;
  unsigned char *bytes = sample_read("gfx950", &size);
  unsigned char *grown = calloc(1, size + table + FILLER);
  memcpy(grown, bytes, size);
  for (size_t i = 0; i < rows; i++)
    memcpy(grown + size + i * row_size, row, row_size);
  free(bytes);
  *out_size = size + table + FILLER;
  return grown;
}

/* Every segment would be searched for the note, all of it: 65535 times 4 MiB of empty notes. */
Test(codeobject, a_file_of_ever_so_many_segments_is_refused_at_once, .timeout = 10) {
  size_t size, rows = 65535;
  const Elf64_Phdr row = {.p_type = PT_NOTE, .p_offset = 8192 + rows * sizeof row, .p_filesz = FILLER - 8192};
  unsigned char *bytes = with_table(&row, sizeof row, rows, &size);
  put_little(bytes + offsetof(Elf64_Ehdr, e_phoff), size - FILLER - rows * sizeof row, 8);
  put_little(bytes + offsetof(Elf64_Ehdr, e_phnum), rows, 2);
  expect_refused(bytes, size, "segments");
  free(bytes);
}

Test(codeobject, a_file_of_ever_so_many_sections_is_refused_at_once, .timeout = 10) {
  size_t size, rows = 65535;
  const Elf64_Shdr row = {.sh_type = SHT_RELA, .sh_offset = 8192, .sh_size = FILLER};
  unsigned char *bytes = with_table(&row, sizeof row, rows, &size);
  put_little(bytes + offsetof(Elf64_Ehdr, e_shoff), size - FILLER - rows * sizeof row, 8);
  put_little(bytes + offsetof(Elf64_Ehdr, e_shnum), rows, 2);
  expect_refused(bytes, size, "sections");
  free(bytes);
}

/* Every list of arguments clears the one before it: 7 bytes of metadata for 5 KB of work. */
Test(codeobject, metadata_beyond_a_mebibyte_is_refused_at_once, .timeout = 10) {
  enum { MOST = 24 << 20 };
  static const unsigned char head[] = {0x81, 0xae, 'a', 'm', 'd', 'h', 's', 'a',  '.',
                                       'k',  'e',  'r', 'n', 'e', 'l', 's', 0x91, 0xdf};
  static const unsigned char pair[] = {0xa5, '.', 'a', 'r', 'g', 's', 0x90};
  size_t size, pairs = (MOST - 64) / sizeof pair;
  unsigned char *bytes = sample_read("gfx950", &size), *grown = calloc(1, size + MOST);
  unsigned char *note = grown + size, *at = note + 20;
  memcpy(grown, bytes, size);
  put_little(note, sizeof "AMDGPU", 4);
  put_little(note + 8, 32, 4); /* NT_AMDGPU_METADATA */
  memcpy(note + 12, "AMDGPU", sizeof "AMDGPU");
  memcpy(at, head, sizeof head);
  at += sizeof head;
  for (int i = 0; i < 4; i++)
    *at++ = (unsigned char)(pairs >> (24 - 8 * i));
  for (size_t i = 0; i < pairs; i++, at += sizeof pair)
    memcpy(at, pair, sizeof pair);
  put_little(note + 4, (uint64_t)(at - note - 20), 4);
  unsigned char *segments = grown + get_little(grown + offsetof(Elf64_Ehdr, e_phoff), 8);
  for (uint64_t i = 0; i < get_little(grown + offsetof(Elf64_Ehdr, e_phnum), 2); i++) {
    unsigned char *segment = segments + i * sizeof(Elf64_Phdr);
    if (get_little(segment, 4) != PT_NOTE) continue;
    put_little(segment + offsetof(Elf64_Phdr, p_offset), size, 8);
    put_little(segment + offsetof(Elf64_Phdr, p_filesz), MOST, 8);
  }
  expect_refused(grown, size + MOST, "1 MiB");
  free(bytes);
  free(grown);
}
