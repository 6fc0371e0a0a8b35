/* Operands as the disassembler writes them: "v[4:7]", "s2", "-|v1|", "vcc_lo", "0x3f". */
#include "decode.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct named_scalar {
  const char *name;
  uint8_t kind;
  uint16_t index, count;
} named_scalar;

static const named_scalar named_scalars[] = {
    {"vcc", EMU_SCALAR, EMU_S_VCC, 2},
    {"vcc_lo", EMU_SCALAR, EMU_S_VCC, 1},
    {"vcc_hi", EMU_SCALAR, EMU_S_VCC + 1, 1},
    {"exec", EMU_SCALAR, EMU_S_EXEC, 2},
    {"exec_lo", EMU_SCALAR, EMU_S_EXEC, 1},
    {"exec_hi", EMU_SCALAR, EMU_S_EXEC + 1, 1},
    {"m0", EMU_SCALAR, EMU_S_M0, 1},
    {"null", EMU_SCALAR, EMU_S_NULL, 1},
    {"scc", EMU_SCALAR, EMU_S_SCC, 1},
    {"src_scc", EMU_SCALAR, EMU_S_SCC, 1},
    {"flat_scratch", EMU_SCALAR, EMU_S_FLAT_SCRATCH, 2},
    {"flat_scratch_lo", EMU_SCALAR, EMU_S_FLAT_SCRATCH, 1},
    {"flat_scratch_hi", EMU_SCALAR, EMU_S_FLAT_SCRATCH + 1, 1},
    {"src_flat_scratch_base_lo", EMU_SCALAR, EMU_S_FLAT_SCRATCH, 2},
    {"src_flat_scratch_base_hi", EMU_SCALAR, EMU_S_FLAT_SCRATCH + 1, 1},
    {"xnack_mask", EMU_SCALAR, EMU_S_XNACK_MASK, 2},
    {"xnack_mask_lo", EMU_SCALAR, EMU_S_XNACK_MASK, 1},
    {"xnack_mask_hi", EMU_SCALAR, EMU_S_XNACK_MASK + 1, 1},
    {"src_shared_base", EMU_SHARED_BASE, 0, 2},
    {"src_shared_limit", EMU_SHARED_LIMIT, 0, 2},
    {"src_private_base", EMU_PRIVATE_BASE, 0, 2},
    {"src_private_limit", EMU_PRIVATE_LIMIT, 0, 2},
    {"src_vccz", EMU_VCCZ, 0, 1},
    {"src_execz", EMU_EXECZ, 0, 1},
    {"off", EMU_OFF, 0, 0},
};

/* "12", "[4:7]" after a register letter; false when it is neither. */
static bool parse_registers(const char *s, unsigned *first, unsigned *count) {
  char *end;
  if (*s == '[') {
    if (!isdigit((unsigned char)s[1])) return false;
    *first = (unsigned)strtoul(s + 1, &end, 10);
    unsigned last = *first;
    if (*end == ':') last = (unsigned)strtoul(end + 1, &end, 10);
    if (*end != ']' || end[1] != 0 || last < *first) return false;
    *count = last - *first + 1;
    return true;
  }
  if (!isdigit((unsigned char)*s)) return false;
  *first = (unsigned)strtoul(s, &end, 10);
  *count = 1;
  return *end == 0;
}

static bool parse_register(char *s, emu_operand *o) {
  unsigned first, count, base;
  size_t length = strlen(s);
  uint8_t kind;
  if (s[0] == 'v' || s[0] == 'a') {
    if (length > 2 && s[length - 2] == '.' && (s[length - 1] == 'l' || s[length - 1] == 'h')) {
      o->half = true;
      o->high = s[length - 1] == 'h';
      s[length - 2] = 0;
    }
    kind = EMU_VECTOR;
    base = s[0] == 'a' ? EMU_ACCUMULATOR_BASE : 0;
    ++s;
  } else if (strncmp(s, "ttmp", 4) == 0) {
    kind = EMU_SCALAR;
    base = EMU_S_TTMP;
    s += 4;
  } else if (s[0] == 's') {
    kind = EMU_SCALAR;
    base = 0;
    ++s;
  } else {
    return false;
  }
  if (!parse_registers(s, &first, &count)) return false;
  o->kind = kind;
  o->index = (uint16_t)(base + first);
  o->count = (uint16_t)count;
  return true;
}

static bool parse_number(const char *s, emu_operand *o) {
  char *end;
  const char *digits = s[0] == '-' ? s + 1 : s;
  if (strncmp(s, "lit64(", 6) == 0 || strncmp(s, "lit(", 4) == 0) {
    o->kind = EMU_LITERAL;
    o->wide = s[3] == '6';
    o->bits = strtoull(strchr(s, '(') + 1, &end, 0);
    return *end == ')';
  }
  if (!isdigit((unsigned char)*digits)) return false;
  if (digits[0] == '0' && digits[1] == 'x') {
    o->kind = EMU_LITERAL;
    o->bits = strtoull(digits, &end, 16);
    if (s[0] == '-') o->bits = 0 - o->bits;
    o->wide = o->bits > UINT32_MAX;
    return *end == 0;
  }
  if (strpbrk(s, ".e")) {
    o->kind = EMU_FLOAT;
    o->value = strtod(s, &end);
    return *end == 0;
  }
  o->kind = EMU_INTEGER;
  o->bits = (uint64_t)strtoll(s, &end, 10);
  return *end == 0;
}

bool emu_parse_operand(char *s, emu_operand *o) {
  size_t length = strlen(s);
  if (length == 0) return false;
  if (strncmp(s, "sext(", 5) == 0 && s[length - 1] == ')') {
    s[length - 1] = 0;
    o->sign_extend = true;
    return emu_parse_operand(s + 5, o);
  }
  if ((strncmp(s, "neg(", 4) == 0 || strncmp(s, "abs(", 4) == 0) && s[length - 1] == ')') {
    if (s[0] == 'n')
      o->negate = true;
    else
      o->absolute = true;
    s[length - 1] = 0;
    return emu_parse_operand(s + 4, o);
  }
  if (s[0] == '-' && !isdigit((unsigned char)s[1])) {
    o->negate = true;
    return emu_parse_operand(s + 1, o);
  }
  if (s[0] == '|' && length > 2 && s[length - 1] == '|') {
    o->absolute = true;
    s[length - 1] = 0;
    return emu_parse_operand(s + 1, o);
  }
  for (size_t n = 0; n < sizeof named_scalars / sizeof *named_scalars; ++n) {
    if (strcmp(s, named_scalars[n].name) == 0) {
      o->kind = named_scalars[n].kind;
      o->index = named_scalars[n].index;
      o->count = named_scalars[n].count;
      return true;
    }
  }
  if (parse_register(s, o) || parse_number(s, o)) return true;
  if (strchr(s, '(')) { /* hwreg(…), sendmsg(…): their encoding is in emu_instruction.immediate */
    o->kind = EMU_SYMBOL;
    return true;
  }
  return false;
}
