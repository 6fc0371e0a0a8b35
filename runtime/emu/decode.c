/* Disassembly into decoded instructions. LLVM's disassembler gives one line of text an instruction; mnemonic,
 * operands (decode_operand.c) and modifiers (decode_modifier.c) are read from it. Text rather than LLVM's
 * internals: the text is documented (AMDGPU operand and modifier syntax in LLVM's user guides), stable across
 * versions, and reachable through the C interface. */
#include "access.h"
#include "decode.h"
#include "disassemble.h"
#include "execute.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MSB_VECTOR_ROWS = 1024 };

/* ---- Rows ---- */

static const emu_row *const tables[] = {
    emu_scalar_rows,       emu_tensor_rows,         emu_control_rows,       emu_lane_rows,
    emu_vector_float_rows, emu_vector_double_rows,  emu_vector_divide_rows, emu_vector_half_rows,
    emu_vector_bits_rows,  emu_vector_integer_rows, emu_vector_packed_rows, emu_vector_convert_rows,
    emu_vector_bytes_rows, emu_vector_compare_rows, emu_vector_wide_rows,   emu_vector_scale_rows,
    emu_matrix_rows,       emu_vector_span_rows,
};

const emu_row *emu_find_row(const char *name, size_t length) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (const emu_row *row = tables[t]; row->name; ++row)
      if (strncmp(row->name, name, length) == 0 && row->name[length] == 0) return row;
  return NULL;
}

/* Open-addressed index over all tables, built once: decoding looks up every instruction. */
enum { INDEX_SLOTS = 8192 };
static const emu_row *row_index[INDEX_SLOTS];
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static size_t hash_name(const char *name, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t n = 0; n < length; ++n)
    hash = (hash ^ (unsigned char)name[n]) * 16777619u;
  return hash % INDEX_SLOTS;
}

static void build_index(void) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
    for (const emu_row *row = tables[t]; row->name; ++row) {
      size_t slot = hash_name(row->name, strlen(row->name));
      while (row_index[slot] && strcmp(row_index[slot]->name, row->name) != 0)
        slot = (slot + 1) % INDEX_SLOTS;
      if (!row_index[slot]) row_index[slot] = row;
    }
  }
}

static const emu_row *indexed_row(const char *name, size_t length) {
  pthread_once(&indexed, build_index);
  for (size_t slot = hash_name(name, length); row_index[slot]; slot = (slot + 1) % INDEX_SLOTS)
    if (strncmp(row_index[slot]->name, name, length) == 0 && row_index[slot]->name[length] == 0)
      return row_index[slot];
  return NULL;
}

/* ---- One instruction ---- */

static const char *const suffixes[] = {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa", "_dpp8", "_e96"};

static size_t strip_suffix(const char *name, size_t length) {
  for (size_t n = 0; n < sizeof suffixes / sizeof *suffixes; ++n) {
    size_t s = strlen(suffixes[n]);
    if (length > s && strncmp(name + length - s, suffixes[n], s) == 0) return length - s;
  }
  return length;
}

typedef struct space_prefix {
  const char *prefix;
  emu_space space;
} space_prefix;

static const space_prefix spaces[] = {{"global_", EMU_GLOBAL},   {"flat_", EMU_FLAT}, {"buffer_", EMU_BUFFER},
                                      {"cluster_", EMU_GLOBAL}, /* a workgroup is its own cluster */
                                      {"scratch_", EMU_SCRATCH}, {"ds_", EMU_LDS}};

static const emu_row memory_row = {"memory", NULL, 0, EMU_MEMORY};

/* Memory instructions are composed of a space and an access; a ds_ name may also be a row of its own
 * (ds_bpermute_b32). */
static bool find_access(emu_instruction *i, const char *name) {
  for (size_t n = 0; n < sizeof spaces / sizeof *spaces; ++n) {
    size_t length = strlen(spaces[n].prefix);
    if (strncmp(name, spaces[n].prefix, length) != 0) continue;
    const emu_access *access = emu_find_access(name + length, spaces[n].space == EMU_LDS);
    if (!access) return false;
    i->access = access;
    i->space = (uint8_t)spaces[n].space;
    i->row = &memory_row;
    return true;
  }
  return false;
}

/* Splits `s` at top-level commas, then blanks: the first word of each piece is an operand, further words are
 * modifiers. */
static bool parse_operands(emu_instruction *i, char *s, uint8_t selects[2], const char **bad) {
  bool operand_next = true;
  while (*s) {
    while (*s == ' ' || *s == '\t')
      ++s;
    if (!*s) break;
    char *start = s;
    int depth = 0;
    for (; *s && (depth > 0 || (*s != ',' && *s != ' ')); ++s) {
      if (*s == '[' || *s == '(') ++depth;
      if (*s == ']' || *s == ')') --depth;
    }
    char separator = *s;
    if (separator) *s++ = 0;
    *bad = start;
    if (operand_next) {
      char copy[EMU_LINE_BYTES];
      snprintf(copy, sizeof copy, "%s", start);
      if (i->operand_count == EMU_MAX_OPERANDS) return false;
      if (emu_parse_operand(copy, &i->operand[i->operand_count])) {
        ++i->operand_count;
      } else {
        memset(&i->operand[i->operand_count], 0, sizeof(emu_operand));
        if (!emu_parse_modifier(i, start, selects)) return false; /* an instruction that has modifiers only */
      }
    } else if (!emu_parse_modifier(i, start, selects)) {
      return false;
    }
    operand_next = separator == ',';
    if (separator ==
        ' ') { /* a comma may follow the blank in hand-written text; never in the disassembler's */
      while (*s == ' ')
        ++s;
      if (*s == ',') {
        ++s;
        operand_next = true;
      }
    }
  }
  return true;
}

static void append_scalar(emu_instruction *i, int at, int index, int count) {
  for (int n = i->operand_count; n > at; --n)
    i->operand[n] = i->operand[n - 1];
  emu_operand *o = &i->operand[at];
  memset(o, 0, sizeof *o);
  o->kind = EMU_SCALAR;
  o->index = (uint16_t)index;
  o->count = (uint16_t)count;
  ++i->operand_count;
}

/* Operands that the text leaves out: EXEC of v_cmpx on gfx12, VCC of v_cndmask in v_dual and in short forms.
 */
static void add_implicit_operands(const emu_target *target, emu_instruction *i) {
  const char *name = i->row->name;
  int masks = target->wave == 64 ? 2 : 1;
  if (strncmp(name, "v_cmpx", 6) == 0 && (i->operand_count < 3 || i->operand[0].kind != EMU_SCALAR) &&
      i->operand_count == 2)
    append_scalar(i, 0, EMU_S_EXEC, masks);
  if (strncmp(name, "v_cndmask", 9) == 0 && i->operand_count == 3) append_scalar(i, 3, EMU_S_VCC, masks);
}

/* Which field of s_set_vgpr_msb extends each operand (LLVM's VGPR lowering tables): by position for
 * arithmetic, so that the constant of v_fmamk takes a place; address src0, data src1 and src2, result dst for
 * memory. */
static uint8_t bank_of(const emu_instruction *i, int n) {
  enum { SOURCE0, SOURCE1, SOURCE2, DESTINATION };
  int source = n - i->source0;
  if (i->access) {
    emu_access_kind kind = i->access->kind;
    if (i->space == EMU_BUFFER) return n == 0 && !i->lds ? DESTINATION : SOURCE0;
    if (kind == EMU_ASYNC_TO_LDS) return n == 0 ? DESTINATION : SOURCE0;
    return source < 0 ? DESTINATION : source > 2 ? SOURCE2 : (uint8_t)source;
  }
  if (i->row->destinations == 2 && n == 1 && i->operand[1].kind == EMU_VECTOR) return SOURCE0; /* swaps */
  if (source < 0) return DESTINATION;
  /* Scales come with an encoding of their own in front: its src0 and src1. */
  if (source > 2 && (i->row->flags & EMU_MATRIX)) return source == 3 ? SOURCE0 : SOURCE1;
  return source > 2 ? SOURCE2 : (uint8_t)source;
}

static void assign_banks(emu_instruction *i) {
  for (int n = 0; n < i->operand_count; ++n)
    i->operand[n].bank = bank_of(i, n);
}

static uint8_t all_ones_unless_mix(const char *name) {
  return strncmp(name, "v_fma_mix", 9) == 0 || strncmp(name, "v_mad_mix", 9) == 0 ? 0 : 7;
}

/* Parses "mnemonic operands"; the first half of a pair leaves the second to the caller. */
static bool parse_instruction(const emu_target *target, char *line, uint32_t word, emu_instruction *i,
                              char *problem, size_t problem_size) {
  uint8_t selects[2] = {EMU_SELECT_NONE, EMU_SELECT_NONE};
  const char *bad = "";
  char name[96];
  while (*line == ' ' || *line == '\t')
    ++line;
  size_t length = strcspn(line, " \t");
  if (length >= sizeof name) length = sizeof name - 1;
  memcpy(name, line, length);
  name[length] = 0;
  if (strncmp(name, "v_dual_", 7) == 0) { /* a half of a pair is the instruction itself */
    memmove(name + 2, name + 7, length - 7 + 1);
    length -= 5;
  }
  size_t stem = strip_suffix(name, length);
  bool two_input = strncmp(name, "v_bitop2_b32", stem) == 0; /* v_bitop3_b32 with a third input of 0 */
  if (two_input) name[7] = '3';
  i->row = indexed_row(name, stem);
  if (!i->row && length != stem) i->row = indexed_row(name, length);
  name[stem] = 0;
  i->immediate = word & 0xffff;
  i->op_sel_hi = all_ones_unless_mix(name);
  i->row_mask = i->bank_mask = 0xf;
  if (i->row) {
    i->handler = i->row->handler;
  } else if (!find_access(i, name)) {
    snprintf(problem, problem_size, "no handler for \"%s\"", name);
    return false;
  }
  /* The operands of waits, hints and messages are in the encoding; their text has a grammar of its own. */
  if (i->row->flags & EMU_TEXT_IGNORED) return true;
  if (!parse_operands(i, line + strcspn(line, " \t"), selects, &bad)) {
    snprintf(problem, problem_size, "cannot read \"%s\"", bad);
    i->handler = NULL;
    return false;
  }
  if (two_input && i->operand_count == 3) i->operand[i->operand_count++].kind = EMU_INTEGER;
  add_implicit_operands(target, i);

  i->source0 = i->row->flags & EMU_NO_DESTINATION ? 0 : i->row->destinations ? i->row->destinations : 1;
  if (i->access) i->source0 = 0; /* set by the access: stores have none */
  if (i->source0 < EMU_MAX_OPERANDS) i->operand[i->source0].select = selects[0];
  if (i->source0 + 1 < EMU_MAX_OPERANDS) i->operand[i->source0 + 1].select = selects[1];
  int sources = i->operand_count - i->source0;
  /* op_sel lists sources, then the destination: with two sources entry 2 is the destination's (bit 3 of the
   * encoding). */
  if (i->op_sel_count > 0 && i->op_sel_count == sources + 1 && sources < 3) {
    uint8_t last = (uint8_t)(1u << sources);
    if (i->op_sel & last) i->op_sel = (uint8_t)((i->op_sel & ~last) | 8);
  }
  if (i->access) {
    emu_access_kind kind = i->access->kind;
    bool load = kind == EMU_LOAD || kind == EMU_LOAD_TRANSPOSED;
    i->handler = emu_access_handler(i->access, i->lds);
    i->source0 = load && !i->lds ? 1 : 0;
    if (kind == EMU_ATOMIC) {
      /* [destination,] address, data[, data], …: a destination is there when one operand more than the bare
       * form has. */
      int bare = i->space == EMU_LDS ? 2 : i->space == EMU_FLAT ? 2 : 3;
      if (i->space == EMU_LDS) {
        i->source0 = i->access->returns ? 1 : 0;
      } else if (i->space == EMU_BUFFER) {
        i->source0 = 0; /* data doubles as destination; sc0 or glc says so */
      } else {
        i->source0 = i->operand_count > bare ? 1 : 0;
      }
    }
  }
  if (strstr(name, "_i64"))
    for (int n = 0; n < i->operand_count; ++n)
      if (i->operand[n].kind == EMU_LITERAL && !i->operand[n].wide) {
        i->operand[n].bits = (uint64_t)(int64_t)(int32_t)i->operand[n].bits;
        i->operand[n].wide = true;
      }
  assign_banks(i);
  return true;
}

/* ---- The whole module ---- */

static const char *keep_text(emu_module *m, const char *line) {
  while (*line == ' ' || *line == '\t')
    ++line;
  size_t length = strlen(line) + 1;
  char *kept = m->texts + m->texts_size;
  if (m->texts_size + length > m->texts_capacity) return "";
  memcpy(kept, line, length);
  m->texts_size += length;
  return kept;
}

/* LLVM may add the full number of a register that s_set_vgpr_msb extends: comments, one blank and all, are
 * cut out. */
static void strip_comments(char *line) {
  for (char *start; (start = strstr(line, "/*")) != NULL;) {
    char *end = strstr(start, "*/");
    if (!end) break;
    if (start > line && start[-1] == ' ') --start;
    memmove(start, end + 2, strlen(end + 2) + 1);
  }
}

static void decode_line(emu_module *m, const char *line, uint64_t address, uint32_t word, uint32_t size) {
  char buffer[EMU_LINE_BYTES], problem[160] = "";
  snprintf(buffer, sizeof buffer, "%s", line);
  strip_comments(buffer);
  char *second = strstr(buffer, " :: ");
  if (second) {
    *second = 0;
    second += 4;
  }
  emu_instruction *i = &m->code[m->code_count++];
  memset(i, 0, sizeof *i);
  i->address = address;
  i->size = size;
  i->text = keep_text(m, line);
  bool fine = parse_instruction(m->target, buffer, word, i, problem, sizeof problem);
  i->dual = second != NULL;
  if (second) {
    emu_instruction *j = &m->code[m->code_count++];
    memset(j, 0, sizeof *j);
    j->address = address;
    j->text = i->text;
    fine = fine && parse_instruction(m->target, second, word, j, problem, sizeof problem);
    if (!fine) j->row = &emu_undefined_row;
  }
  if (!fine) {
    i->dual = false;
    i->handler = emu_undefined;
    i->row = &emu_undefined_row;
    i->problem = keep_text(m, problem);
  }
}

static void resolve_branches(emu_module *m) {
  for (size_t n = 0; n < m->code_count; ++n) {
    emu_instruction *i = &m->code[n];
    i->target = UINT32_MAX;
    if (!(i->row->flags & EMU_BRANCH)) continue;
    uint64_t to = i->address + 4 + (uint64_t)((int64_t)(int16_t)i->immediate * 4);
    if (to >= m->code_start && to < m->code_end) i->target = m->index_of[(to - m->code_start) / 4];
  }
}

/* Only the registers that the code names are held; s_set_vgpr_msb may reach all 1024. */
static uint32_t rows_needed(const emu_module *m) {
  uint32_t rows = 8, further = 0;
  for (size_t n = 0; n < m->code_count; ++n) {
    const emu_instruction *i = &m->code[n];
    if (strcmp(i->row->name, "s_set_vgpr_msb") == 0) return MSB_VECTOR_ROWS;
    if (i->row->flags & EMU_INDEXES) further = 256;
    if (strcmp(i->row->name, "s_setreg_imm32_b32") == 0 && m->target->setreg_extends_rows) further = 768;
    for (int k = 0; k < i->operand_count; ++k) {
      const emu_operand *o = &i->operand[k];
      if (o->kind == EMU_VECTOR && (uint32_t)o->index + o->count + 1 > rows)
        rows = (uint32_t)o->index + o->count + 1;
    }
  }
  return rows + further;
}

hd_status emu_module_decode(emu_module *m, diags *list) {
  emu_disassembler d;
  hd_status status = emu_disassembler_open(m->target->name, &d, list);
  if (status != HD_OK) return status;
  size_t words = (size_t)((m->code_end - m->code_start) / 4);
  /* Every instruction has at least one word, and a pair at least two. */
  m->code = calloc(words + 2, sizeof *m->code);
  m->index_of = malloc((words + 1) * sizeof *m->index_of);
  m->texts_capacity = words * 96 + 4096;
  m->texts = malloc(m->texts_capacity);
  if (!m->code || !m->index_of || !m->texts) {
    emu_disassembler_close(&d);
    return HD_OUT_OF_MEMORY;
  }
  memset(m->index_of, 0xff, (words + 1) * sizeof *m->index_of);

  uint64_t address = m->code_start;
  char line[EMU_LINE_BYTES];
  while (address + 4 <= m->code_end) {
    uint8_t *bytes = m->image + address;
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    size_t size = emu_disassemble(&d, bytes, m->code_end - address, address, line);
    m->index_of[(address - m->code_start) / 4] = (uint32_t)m->code_count;
    decode_line(m, line, address, word, (uint32_t)size);
    address += size;
  }
  emu_disassembler_close(&d);
  resolve_branches(m);
  m->vector_rows = rows_needed(m);
  return HD_OK;
}
