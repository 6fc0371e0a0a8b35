/* Loads an AMD code object into host memory: segments at their virtual offsets, relative relocations applied,
 * all code decoded. */
#include "../object/elf64.h"
#include "execute.h"
#include <elf.h>
#include <stdlib.h>

enum {
  IMAGE_ALIGNMENT = 4096,
  IMAGE_LIMIT = 1 << 28,
  DESCRIPTOR_BYTES = 64,
  SCRATCH_LIMIT = 1 << 20,   /* bytes a lane */
  ARGUMENTS_LIMIT = 1 << 20, /* bytes */
  CODE_LIMIT = 1 << 24,      /* bytes: decoded they take some 200 times as many */
  /* ELF relocation types of the AMDGPU psABI that a linked code object may still hold. */
  RELOCATION_ABS64 = 3,
  RELOCATION_RELATIVE64 = 13
};

static hd_status refuse(diags *list, const char *what) {
  diags_errorf(list, "emu.load", NULL, "unusable code object: %s", what);
  return HD_INVALID;
}

static hd_status load_segments(emu_module *m, const elf64 *e, diags *list) {
  elf64_segment segment;
  for (int n = 0; n < e->segment_count; ++n) {
    if (!elf64_segment_at(e, n, &segment)) return refuse(list, "a segment lies outside the file");
    if (segment.type != PT_LOAD) continue;
    uint64_t end = segment.address + segment.memory_size;
    if (end < segment.address || end > IMAGE_LIMIT || segment.file_size > segment.memory_size)
      return refuse(list, "a segment is too large");
    if (end > m->image_size) m->image_size = end;
  }
  m->image_size = (m->image_size + IMAGE_ALIGNMENT) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
  m->image = aligned_alloc(IMAGE_ALIGNMENT, m->image_size);
  if (!m->image) return HD_OUT_OF_MEMORY;
  memset(m->image, 0, m->image_size);
  for (int n = 0; n < e->segment_count; ++n) {
    if (!elf64_segment_at(e, n, &segment) || segment.type != PT_LOAD) continue;
    memcpy(m->image + segment.address, e->bytes + segment.offset, segment.file_size);
  }
  return HD_OK;
}

static hd_status find_code(emu_module *m, const elf64 *e, diags *list) {
  elf64_section section;
  m->code_start = UINT64_MAX;
  for (int n = 0; n < e->section_count; ++n) {
    if (!elf64_section_at(e, n, &section)) continue;
    if (section.type != SHT_PROGBITS || !(section.flags & SHF_EXECINSTR)) continue;
    if (section.address > m->image_size || section.size > m->image_size - section.address)
      return refuse(list, "code lies outside the loaded segments");
    if (section.size == 0) continue;
    if (section.address < m->code_start) m->code_start = section.address;
    if (section.address + section.size > m->code_end) m->code_end = section.address + section.size;
  }
  m->code_end &= ~UINT64_C(3);
  if (m->code_start >= m->code_end || m->code_start % 4) return refuse(list, "no code");
  /* Everything between is decoded: sections far apart would make gigabytes of it. */
  if (m->code_end - m->code_start > e->size)
    return refuse(list, "its code spans more than the file has bytes");
  if (m->code_end - m->code_start > CODE_LIMIT) return refuse(list, "more than 16 MiB of code");
  return HD_OK;
}

static void relocate(emu_module *m, const elf64 *e) {
  elf64_section section;
  /* Tables that don't overlap have no more entries; what is beyond is made up. */
  uint64_t left = e->size / sizeof(Elf64_Rela);
  uint64_t base = (uint64_t)(uintptr_t)m->image;
  for (int n = 0; n < e->section_count; ++n) {
    if (!elf64_section_at(e, n, &section) || section.type != SHT_RELA) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.size && left > 0;
         at += sizeof(Elf64_Rela), left--) {
      Elf64_Rela r;
      memcpy(&r, e->bytes + section.offset + at, sizeof r);
      uint32_t type = (uint32_t)(r.r_info & UINT32_MAX);
      if (r.r_offset > m->image_size || m->image_size - r.r_offset < 8) continue;
      /* Symbols of a code object that is loaded alone resolve within it; only the relative form occurs then.
       */
      if (type != RELOCATION_RELATIVE64) continue;
      uint64_t value = base + (uint64_t)r.r_addend;
      memcpy(m->image + r.r_offset, &value, sizeof value);
    }
  }
}

hd_status emu_module_load(const emu_target *target, const void *bytes, size_t size, emu_module *out_module,
                          diags *list) {
  emu_module m;
  elf64 e;
  memset(&m, 0, sizeof m);
  m.target = target;
  m.object = malloc(sizeof *m.object);
  if (!m.object) return HD_OUT_OF_MEMORY;
  hd_status status = codeobject_parse(bytes, size, m.object, list);
  if (status == HD_OK) status = elf64_open(bytes, size, &e, list);
  if (status == HD_OK && m.object->machine != target->machine) {
    diags_errorf(list, "emu.target", NULL, "the code object is for %s, this device emulates %s",
                 m.object->target[0] ? m.object->target : "another processor", target->name);
    status = HD_INVALID;
  }
  if (status == HD_OK) status = load_segments(&m, &e, list);
  if (status == HD_OK) status = find_code(&m, &e, list);
  if (status == HD_OK) relocate(&m, &e);
  if (status == HD_OK) status = emu_lines_load(&m, &e);
  if (status == HD_OK) status = emu_module_decode(&m, list);
  if (status != HD_OK) {
    emu_module_finish(&m);
    return status;
  }
  *out_module = m;
  return HD_OK;
}

void emu_module_finish(emu_module *m) {
  free(m->object);
  free(m->image);
  free(m->code);
  free(m->index_of);
  free(m->texts);
  free(m->lines);
  free(m->line_text);
}

const codeobject_kernel *emu_module_kernel(const emu_module *m, const char *symbol) {
  for (int n = 0; n < m->object->kernel_count; ++n)
    if (strcmp(m->object->kernels[n].symbol, symbol) == 0) return &m->object->kernels[n];
  return NULL;
}

static uint32_t word_at(const uint8_t *p, size_t offset) {
  uint32_t word;
  memcpy(&word, p + offset, sizeof word);
  return word;
}

/* Layout: LLVM's AMDGPU user guide, "Kernel Descriptor". */
hd_status emu_module_descriptor(const emu_module *m, const codeobject_kernel *k, emu_descriptor *out,
                                diags *list) {
  uint64_t at = k->descriptor_address;
  if (k->wave != 0 && k->wave != 32 && k->wave != 64)
    return refuse(list, "a kernel's waves have neither 32 nor 64 lanes");
  if (at > m->image_size || m->image_size - at < DESCRIPTOR_BYTES)
    return refuse(list, "a kernel descriptor lies outside the image");
  const uint8_t *d = m->image + at;
  int64_t entry_offset;
  memcpy(&entry_offset, d + 16, sizeof entry_offset);
  uint32_t preload = word_at(d, 56) >> 16;
  *out = (emu_descriptor){
      .lds_bytes = word_at(d, 0),
      .scratch_bytes = word_at(d, 4),
      .kernarg_bytes = word_at(d, 8),
      .entry = at + (uint64_t)entry_offset,
      .rsrc3 = word_at(d, 44),
      .rsrc1 = word_at(d, 48),
      .rsrc2 = word_at(d, 52),
      .properties = word_at(d, 56) & 0xffff,
      .preload_length = preload & 0x7f,
      .preload_offset = preload >> 7,
  };
  if (out->scratch_bytes > SCRATCH_LIMIT)
    return refuse(list, "a kernel asks for more than 1 MiB of scratch a lane");
  if (out->kernarg_bytes > ARGUMENTS_LIMIT)
    return refuse(list, "a kernel asks for more than 1 MiB of arguments");
  /* Words of the arguments that a wave begins with in scalar registers. */
  if ((out->preload_offset + out->preload_length) * 4 > (out->kernarg_bytes + 15) / 16 * 16)
    return refuse(list, "a kernel begins with more arguments in registers than it has");
  if (out->entry < m->code_start || out->entry >= m->code_end || out->entry % 4 ||
      m->index_of[(out->entry - m->code_start) / 4] == UINT32_MAX)
    return refuse(list, "a kernel's entry is no instruction");
  return HD_OK;
}
