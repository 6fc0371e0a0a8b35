/* A bounded reader of little-endian ELF64 files in memory: AMD code objects and CUDA binaries. Nothing is
 * copied and nothing is trusted: every offset is checked against the size before it is followed, so hostile
 * input gives HD_INVALID or "not found". */
#ifndef HEDDLE_ELF64_H
#define HEDDLE_ELF64_H

#include "../../generator/diag.h"
#include <stdint.h>

enum { ELF_MACHINE_AMDGPU = 224, ELF_MACHINE_CUDA = 190 };

/* Far more than code objects have. Whoever walks over all of them and reads what each points at takes time in
 * multiples of the file's size, and headers may all point at all of it. */
enum { ELF_MOST_SEGMENTS = 64, ELF_MOST_SECTIONS = 4096 };

typedef struct elf64 {
  const unsigned char *bytes; /* the caller's, must outlive this */
  size_t size;
  uint16_t machine; /* e_machine */
  uint8_t abi, abi_version;
  uint32_t flags; /* e_flags */
  uint64_t segments_at, sections_at;
  uint16_t segment_count, section_count, names_index; /* both tables lie within the file */
} elf64;

typedef struct elf64_segment {
  uint32_t type, flags; /* PT_…, PF_… */
  uint64_t offset, address, file_size, memory_size;
} elf64_segment;

typedef struct elf64_section {
  uint32_t name, type, link; /* SHT_… */
  uint64_t flags, address, offset, size, entry_size;
} elf64_section;

typedef struct elf64_symbol {
  uint64_t address, size;
  uint16_t section; /* SHN_UNDEF when it is only named */
  uint8_t type;     /* STT_… */
} elf64_symbol;

hd_status elf64_open(const void *bytes, size_t size, elf64 *out_elf, diags *errors);
/* False when the index is out of range or the contents don't lie within the file. */
bool elf64_segment_at(const elf64 *e, int index, elf64_segment *out_segment);
bool elf64_section_at(const elf64 *e, int index, elf64_section *out_section);
/* The first section of this name ("" finds nothing). */
bool elf64_section_find(const elf64 *e, const char *name, elf64_section *out_section);
/* Looks `name` up in the dynamic symbols, then in the full table; only defined symbols. */
bool elf64_symbol_find(const elf64 *e, const char *name, elf64_symbol *out_symbol);
/* File offset of `count` bytes at a virtual address, through the loadable segments. */
bool elf64_file_offset(const elf64 *e, uint64_t address, uint64_t count, uint64_t *out_offset);

#endif
