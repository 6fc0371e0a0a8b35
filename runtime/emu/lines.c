/* Source lines of a code object that was compiled with -g: the line tables of DWARF 4 and 5 (.debug_line;
 * DWARF 5 standard, 6.2), read once when a module is loaded. Debug information is a convenience, and comes
 * from files that nobody vouches for: whatever can't be read is passed over, and the code it would have
 * described has no line. */
#include "../object/elf64.h"
#include "execute.h"
#include <stdlib.h>

enum {
  FILES = 1024, /* names kept of a unit */
  FILL_FACTOR =
      4, /* words of code that tables may describe, in multiples of all there are: a bound on time */
  COMPRESSED = 2048 /* SHF_COMPRESSED */
};

typedef struct reader {
  const uint8_t *at, *end;
  bool bad; /* read past the end: everything since is 0 */
} reader;

static uint64_t number(reader *r, size_t bytes) {
  uint64_t value = 0;
  if (r->bad || (size_t)(r->end - r->at) < bytes) {
    r->bad = true;
    return 0;
  }
  memcpy(&value, r->at, bytes);
  r->at += bytes;
  return value;
}

static void skip(reader *r, uint64_t bytes) {
  if (r->bad || (uint64_t)(r->end - r->at) < bytes) {
    r->bad = true;
    return;
  }
  r->at += bytes;
}

/* LEB128; `*out_bits`: how many bits it had. */
static uint64_t leb(reader *r, unsigned *out_bits) {
  uint64_t value = 0;
  unsigned shift = 0;
  for (;;) {
    uint64_t byte = number(r, 1);
    if (r->bad) return 0;
    if (shift < 64) value |= (byte & 127) << shift;
    shift += 7;
    if (byte < 128) break;
  }
  *out_bits = shift;
  return value;
}
static uint64_t unsigned_leb(reader *r) {
  unsigned bits;
  return leb(r, &bits);
}
static uint64_t signed_leb(reader *r) { /* two's complement */
  unsigned bits = 64;
  uint64_t value = leb(r, &bits);
  return bits < 64 && value >> (bits - 1) & 1 ? value | UINT64_MAX << bits : value;
}

static const char *string(reader *r) {
  const char *start = (const char *)r->at;
  const uint8_t *zero = r->bad ? NULL : memchr(r->at, 0, (size_t)(r->end - r->at));
  if (!zero) {
    r->bad = true;
    return "";
  }
  r->at = zero + 1;
  return start;
}

/* ---- A unit ---- */

typedef struct unit {
  emu_module *m;
  const char *strings; /* .debug_line_str, ended by a NUL */
  uint64_t strings_size;
  uint64_t fill; /* words that may still be described, of all units */
  uint8_t least, line_range, opcode_base, lengths[256];
  int8_t line_base;
  const char *files[FILES];
} unit;

enum { /* DW_FORM_… */
       FORM_DATA2 = 0x05,
       FORM_DATA4 = 0x06,
       FORM_DATA8 = 0x07,
       FORM_STRING = 0x08,
       FORM_BLOCK = 0x09,
       FORM_DATA1 = 0x0b,
       FORM_STRP = 0x0e,
       FORM_UDATA = 0x0f,
       FORM_DATA16 = 0x1e,
       FORM_LINE_STRP = 0x1f,
       CONTENT_PATH = 1 /* DW_LNCT_path */
};

/* One field of an entry; a name, when it is one. */
static const char *field(unit *u, reader *r, uint64_t form) {
  switch (form) {
  case FORM_STRING:
    return string(r);
  case FORM_LINE_STRP: {
    uint64_t at = number(r, 4);
    return at < u->strings_size ? u->strings + at : NULL;
  }
  case FORM_BLOCK:
    skip(r, unsigned_leb(r));
    return NULL;
  case FORM_UDATA:
    (void)unsigned_leb(r);
    return NULL;
  case FORM_DATA1:
  case FORM_DATA2:
  case FORM_DATA4:
  case FORM_STRP:
  case FORM_DATA8:
  case FORM_DATA16:
    skip(r, form == FORM_DATA1    ? 1
            : form == FORM_DATA2  ? 2
            : form == FORM_DATA8  ? 8
            : form == FORM_DATA16 ? 16
                                  : 4);
    return NULL;
  default:
    r->bad = true;
    return NULL;
  }
}

/* DWARF 5: a table that describes its own columns; `files` NULL passes over it. */
static void read_entries(unit *u, reader *r, const char **files) {
  uint64_t content[16], form[16], columns = number(r, 1);
  if (columns > 16) r->bad = true;
  for (uint64_t n = 0; n < columns && !r->bad; ++n) {
    content[n] = unsigned_leb(r);
    form[n] = unsigned_leb(r);
  }
  uint64_t count = unsigned_leb(r);
  if (columns == 0 && count) r->bad = true;
  for (uint64_t k = 0; k < count && !r->bad; ++k)
    for (uint64_t n = 0; n < columns && !r->bad; ++n) {
      const char *name = field(u, r, form[n]);
      if (files && name && content[n] == CONTENT_PATH && k < FILES) files[k] = name;
    }
}

static void read_old_entries(unit *u, reader *r) { /* DWARF 4; files count from 1 */
  while (!r->bad && *string(r)) {
  }
  for (size_t k = 1; !r->bad; ++k) {
    const char *name = string(r);
    if (!*name) break;
    if (k < FILES) u->files[k] = name;
    for (int n = 0; n < 3; ++n)
      (void)unsigned_leb(r);
  }
}

typedef struct state {
  uint64_t address, file, line;
} state;

/* The code from `from` to `end` belongs to from's line. */
static void describe(unit *u, const state *from, uint64_t end) {
  emu_module *m = u->m;
  uint64_t at = from->address < m->code_start ? m->code_start : (from->address + 3) / 4 * 4;
  if (end > m->code_end) end = m->code_end;
  if (from->address >= end || from->line == 0 || from->file >= FILES || !u->files[from->file]) return;
  for (; at < end && u->fill; at += 4, --u->fill)
    m->lines[(at - m->code_start) / 4] = (emu_line){u->files[from->file], (uint32_t)from->line};
}

static void run_program(unit *u, reader *r) {
  const state fresh = {0, 1, 1};
  state now = fresh, last = fresh;
  bool row = false, open = false; /* `last` is a row of this sequence */
  while (!r->bad && r->at < r->end && u->fill) {
    uint8_t opcode = (uint8_t)number(r, 1);
    bool ends = false;
    row = false;
    if (opcode >= u->opcode_base) {
      unsigned adjusted = (unsigned)opcode - u->opcode_base;
      now.address += adjusted / u->line_range * u->least;
      now.line += (uint64_t)(int64_t)(u->line_base + (int)(adjusted % u->line_range));
      row = true;
    } else if (opcode == 0) { /* extended: length, code */
      uint64_t length = unsigned_leb(r);
      uint64_t code = number(r, 1);
      ends = row = code == 1;
      if (code == 2 && length == 9) {
        now.address = number(r, 8);
      } else {
        skip(r, length - 1);
      }
    } else if (opcode == 1) {
      row = true;
    } else if (opcode == 2) {
      now.address += unsigned_leb(r) * u->least;
    } else if (opcode == 3) {
      now.line += signed_leb(r);
    } else if (opcode == 4) {
      now.file = unsigned_leb(r);
    } else if (opcode == 8) {
      now.address += (255u - u->opcode_base) / u->line_range * u->least;
    } else if (opcode == 9) {
      now.address += number(r, 2);
    } else {
      for (uint8_t n = 0; n < u->lengths[opcode]; ++n)
        (void)unsigned_leb(r);
    }
    if (!row || r->bad) continue;
    if (open && now.address > last.address) describe(u, &last, now.address);
    last = now;
    open = !ends;
    if (ends) now = fresh;
  }
}

static void read_unit(unit *u, reader r) {
  uint64_t version = number(&r, 2);
  if (version != 4 && version != 5) return;
  if (version == 5) skip(&r, 2);
  uint64_t header = number(&r, 4);
  reader program = r;
  skip(&program, header);
  u->least = (uint8_t)number(&r, 1);
  skip(&r, 2);
  u->line_base = (int8_t)number(&r, 1);
  u->line_range = (uint8_t)number(&r, 1);
  u->opcode_base = (uint8_t)number(&r, 1);
  if (r.bad || u->line_range == 0 || u->opcode_base == 0) return;
  for (unsigned n = 1; n < u->opcode_base; ++n)
    u->lengths[n] = (uint8_t)number(&r, 1);
  memset(u->files, 0, sizeof u->files);
  if (version == 5) {
    read_entries(u, &r, NULL);
    read_entries(u, &r, u->files);
  } else {
    read_old_entries(u, &r);
  }
  if (!r.bad && !program.bad) run_program(u, &program);
}

/* ---- All of them ---- */

static bool find(const elf64 *e, const char *name, elf64_section *out) {
  return elf64_section_find(e, name, out) && !(out->flags & COMPRESSED) && out->size > 0;
}

hd_status emu_lines_load(emu_module *m, const elf64 *e) {
  elf64_section table, strings;
  if (!find(e, ".debug_line", &table)) return HD_OK;
  if (!find(e, ".debug_line_str", &strings)) strings.size = 0;
  uint64_t words = (m->code_end - m->code_start) / 4;
  unit *u = calloc(1, sizeof *u);
  m->lines = calloc((size_t)words, sizeof *m->lines);
  m->line_text = malloc((size_t)(table.size + strings.size) + 1);
  if (!u || !m->lines || !m->line_text) {
    free(u);
    return HD_OUT_OF_MEMORY;
  }
  memcpy(m->line_text, e->bytes + table.offset, (size_t)table.size);
  if (strings.size) memcpy(m->line_text + table.size, e->bytes + strings.offset, (size_t)strings.size);
  m->line_text[table.size + strings.size] = '\0';
  u->m = m;
  u->strings = m->line_text + table.size;
  u->strings_size = strings.size;
  u->fill = FILL_FACTOR * words;
  const uint8_t *start = (const uint8_t *)m->line_text;
  reader r = {start, start + table.size, false};
  while (!r.bad && r.at < r.end) {
    uint64_t length = number(&r, 4); /* 64-bit tables announce themselves as too long */
    const uint8_t *at = r.at;
    skip(&r, length);
    if (!r.bad) read_unit(u, (reader){at, r.at, false});
  }
  free(u);
  return HD_OK;
}
