#include "elf64.h"
#include "little.h"
#include <elf.h>
#include <string.h>

/* Fields are read byte by byte: the input need not be aligned. */
#define FIELD(base, type, field) get_little((base) + offsetof(type, field), (int)sizeof(((type *)0)->field))

static bool within(const elf64 *e, uint64_t offset, uint64_t count) {
  return offset <= e->size && count <= e->size - offset;
}

static hd_status refuse(diags *errors, const char *what) {
  diags_errorf(errors, "codeobject.elf", NULL, "not a usable ELF file: %s", what);
  return HD_INVALID;
}

hd_status elf64_open(const void *bytes, size_t size, elf64 *out_elf, diags *errors) {
  const unsigned char *p = bytes;
  if (bytes == NULL || size < sizeof(Elf64_Ehdr)) return refuse(errors, "shorter than an ELF header");
  if (memcmp(p, ELFMAG, SELFMAG) != 0) return refuse(errors, "wrong magic number");
  if (p[EI_CLASS] != ELFCLASS64 || p[EI_DATA] != ELFDATA2LSB)
    return refuse(errors, "not 64-bit little endian");
  elf64 e = {
      .bytes = p,
      .size = size,
      .machine = (uint16_t)FIELD(p, Elf64_Ehdr, e_machine),
      .abi = p[EI_OSABI],
      .abi_version = p[EI_ABIVERSION],
      .flags = (uint32_t)FIELD(p, Elf64_Ehdr, e_flags),
      .segments_at = FIELD(p, Elf64_Ehdr, e_phoff),
      .sections_at = FIELD(p, Elf64_Ehdr, e_shoff),
      .segment_count = (uint16_t)FIELD(p, Elf64_Ehdr, e_phnum),
      .section_count = (uint16_t)FIELD(p, Elf64_Ehdr, e_shnum),
      .names_index = (uint16_t)FIELD(p, Elf64_Ehdr, e_shstrndx),
  };
  if (e.segment_count > 0 && FIELD(p, Elf64_Ehdr, e_phentsize) != sizeof(Elf64_Phdr))
    return refuse(errors, "program headers of an unknown size");
  if (e.section_count > 0 && FIELD(p, Elf64_Ehdr, e_shentsize) != sizeof(Elf64_Shdr))
    return refuse(errors, "section headers of an unknown size");
  if (e.segment_count > ELF_MOST_SEGMENTS) return refuse(errors, "more than 64 segments");
  if (e.section_count > ELF_MOST_SECTIONS) return refuse(errors, "more than 4096 sections");
  if (!within(&e, e.segments_at, (uint64_t)e.segment_count * sizeof(Elf64_Phdr)))
    return refuse(errors, "program headers lie beyond its end");
  if (!within(&e, e.sections_at, (uint64_t)e.section_count * sizeof(Elf64_Shdr)))
    return refuse(errors, "section headers lie beyond its end");
  *out_elf = e;
  return HD_OK;
}

bool elf64_segment_at(const elf64 *e, int index, elf64_segment *out_segment) {
  if (index < 0 || index >= e->segment_count) return false;
  const unsigned char *p = e->bytes + e->segments_at + (size_t)index * sizeof(Elf64_Phdr);
  elf64_segment s = {
      .type = (uint32_t)FIELD(p, Elf64_Phdr, p_type),
      .flags = (uint32_t)FIELD(p, Elf64_Phdr, p_flags),
      .offset = FIELD(p, Elf64_Phdr, p_offset),
      .address = FIELD(p, Elf64_Phdr, p_vaddr),
      .file_size = FIELD(p, Elf64_Phdr, p_filesz),
      .memory_size = FIELD(p, Elf64_Phdr, p_memsz),
  };
  if (!within(e, s.offset, s.file_size)) return false;
  *out_segment = s;
  return true;
}

bool elf64_section_at(const elf64 *e, int index, elf64_section *out_section) {
  if (index < 0 || index >= e->section_count) return false;
  const unsigned char *p = e->bytes + e->sections_at + (size_t)index * sizeof(Elf64_Shdr);
  elf64_section s = {
      .name = (uint32_t)FIELD(p, Elf64_Shdr, sh_name),
      .type = (uint32_t)FIELD(p, Elf64_Shdr, sh_type),
      .link = (uint32_t)FIELD(p, Elf64_Shdr, sh_link),
      .flags = FIELD(p, Elf64_Shdr, sh_flags),
      .address = FIELD(p, Elf64_Shdr, sh_addr),
      .offset = FIELD(p, Elf64_Shdr, sh_offset),
      .size = FIELD(p, Elf64_Shdr, sh_size),
      .entry_size = FIELD(p, Elf64_Shdr, sh_entsize),
  };
  if (s.type != SHT_NOBITS && !within(e, s.offset, s.size)) return false;
  *out_section = s;
  return true;
}

/* Whether the string at `at` of a string table is exactly `name`, NUL included. */
static bool string_is(const elf64 *e, const elf64_section *strings, uint64_t at, const char *name) {
  size_t length = strlen(name) + 1;
  if (strings->type != SHT_STRTAB || at > strings->size || length > strings->size - at) return false;
  return memcmp(e->bytes + strings->offset + at, name, length) == 0;
}

bool elf64_section_find(const elf64 *e, const char *name, elf64_section *out_section) {
  elf64_section names, s;
  if (*name == '\0' || !elf64_section_at(e, e->names_index, &names)) return false;
  for (int i = 0; i < e->section_count; i++) {
    if (elf64_section_at(e, i, &s) && string_is(e, &names, s.name, name)) {
      *out_section = s;
      return true;
    }
  }
  return false;
}

static bool symbol_in_table(const elf64 *e, const elf64_section *table, const char *name,
                            elf64_symbol *out_symbol) {
  elf64_section strings;
  if (table->entry_size != sizeof(Elf64_Sym) || table->link > UINT16_MAX ||
      !elf64_section_at(e, (int)table->link, &strings))
    return false;
  for (uint64_t i = 0; i < table->size / sizeof(Elf64_Sym); i++) {
    const unsigned char *p = e->bytes + table->offset + i * sizeof(Elf64_Sym);
    uint16_t section = (uint16_t)FIELD(p, Elf64_Sym, st_shndx);
    if (section == SHN_UNDEF || !string_is(e, &strings, FIELD(p, Elf64_Sym, st_name), name)) continue;
    *out_symbol = (elf64_symbol){
        .address = FIELD(p, Elf64_Sym, st_value),
        .size = FIELD(p, Elf64_Sym, st_size),
        .section = section,
        .type = (uint8_t)(FIELD(p, Elf64_Sym, st_info) & 0xf),
    };
    return true;
  }
  return false;
}

/* The first table of a type: a file has one of each, and a hostile one with more is not worth the time. */
static bool table_of_type(const elf64 *e, uint32_t type, elf64_section *out_table) {
  for (int i = 0; i < e->section_count; i++) {
    if (elf64_section_at(e, i, out_table) && out_table->type == type) return true;
  }
  return false;
}

bool elf64_symbol_find(const elf64 *e, const char *name, elf64_symbol *out_symbol) {
  static const uint32_t order[] = {SHT_DYNSYM, SHT_SYMTAB};
  if (*name == '\0') return false;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    elf64_section table;
    if (table_of_type(e, order[i], &table) && symbol_in_table(e, &table, name, out_symbol)) return true;
  }
  return false;
}

bool elf64_file_offset(const elf64 *e, uint64_t address, uint64_t count, uint64_t *out_offset) {
  for (int i = 0; i < e->segment_count; i++) {
    elf64_segment s;
    if (!elf64_segment_at(e, i, &s) || s.type != PT_LOAD || address < s.address) continue;
    uint64_t inside = address - s.address;
    if (inside <= s.file_size && count <= s.file_size - inside) {
      *out_offset = s.offset + inside;
      return true;
    }
  }
  return false;
}
