/* Modifiers as the disassembler writes them: "offset:16", "op_sel:[0,1]", "row_shr:1", "glc". */
#include "decode.h"
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum modifier_kind {
  MODIFIER_FLAG,          /* bool at offset := true */
  MODIFIER_BYTE,          /* uint8_t := number */
  MODIFIER_OFFSET,        /* int64_t := number */
  MODIFIER_BITS,          /* uint8_t := bit list [a,b,c] */
  MODIFIER_OP_SEL,        /* bit list, counted */
  MODIFIER_OMOD,          /* offset holds the code */
  MODIFIER_DPP,           /* emu_dpp in `code`, number follows */
  MODIFIER_SELECT,        /* BYTE_n, WORD_n, DWORD */
  MODIFIER_SOURCE_SELECT, /* of source `code` */
  MODIFIER_UNUSED,
  MODIFIER_FORMAT,   /* MATRIX_FMT_x → number by name */
  MODIFIER_SHORT,    /* uint16_t := number */
  MODIFIER_TEMPORAL, /* gfx12: a hint, but of an atomic also whether it returns the old value (glc before) */
  MODIFIER_IGNORED   /* cache policy, hints */
} modifier_kind;

typedef struct modifier {
  const char *name; /* up to the colon */
  modifier_kind kind;
  size_t offset;
  int code;
} modifier;

#define FIELD(name) offsetof(emu_instruction, name)
static const modifier modifiers[] = {
    {"clamp", MODIFIER_FLAG, FIELD(clamp), 0},
    {"glc", MODIFIER_FLAG, FIELD(glc), 0},
    {"slc", MODIFIER_FLAG, FIELD(slc), 0},
    {"nt", MODIFIER_FLAG, FIELD(nontemporal), 0},
    {"sc0", MODIFIER_FLAG, FIELD(sc0), 0},
    {"sc1", MODIFIER_FLAG, FIELD(sc1), 0},
    {"lds", MODIFIER_FLAG, FIELD(lds), 0},
    {"offen", MODIFIER_FLAG, FIELD(offen), 0},
    {"idxen", MODIFIER_FLAG, FIELD(idxen), 0},
    {"scale_offset", MODIFIER_FLAG, FIELD(scale_offset), 0},
    {"matrix_a_reuse", MODIFIER_FLAG, FIELD(matrix_a_reuse), 0},
    {"matrix_b_reuse", MODIFIER_FLAG, FIELD(matrix_b_reuse), 0},
    {"bound_ctrl", MODIFIER_FLAG, FIELD(bound_control), 0},
    {"fi", MODIFIER_FLAG, FIELD(fetch_inactive), 0},
    {"dlc", MODIFIER_IGNORED, 0, 0},
    {"th", MODIFIER_TEMPORAL, FIELD(glc), 0},
    {"scope", MODIFIER_IGNORED, 0, 0},
    {"nv", MODIFIER_IGNORED, 0, 0},
    {"offset", MODIFIER_OFFSET, FIELD(offset), 0},
    {"offset0", MODIFIER_BYTE, FIELD(offset0), 0},
    {"offset1", MODIFIER_BYTE, FIELD(offset1), 0},
    {"cbsz", MODIFIER_BYTE, FIELD(cbsz), 0},
    {"abid", MODIFIER_BYTE, FIELD(abid), 0},
    {"blgp", MODIFIER_BYTE, FIELD(blgp), 0},
    {"byte_sel", MODIFIER_BYTE, FIELD(byte_sel), 0},
    {"index_key", MODIFIER_BYTE, FIELD(index_key), 0},
    {"scale_sel", MODIFIER_BYTE, FIELD(scale_select), 0},
    {"bitop3", MODIFIER_SHORT, FIELD(bitop3), 0},
    {"neg", MODIFIER_BITS, FIELD(blgp), 0}, /* f64 matrix instructions reuse blgp as negation */
    {"neg_lo", MODIFIER_BITS, FIELD(neg_lo), 0},
    {"neg_hi", MODIFIER_BITS, FIELD(neg_hi), 0},
    {"op_sel", MODIFIER_OP_SEL, FIELD(op_sel), 0},
    {"op_sel_hi", MODIFIER_BITS, FIELD(op_sel_hi), 0},
    {"matrix_a_fmt", MODIFIER_FORMAT, FIELD(matrix_a_format), 0},
    {"matrix_b_fmt", MODIFIER_FORMAT, FIELD(matrix_b_format), 0},
    {"matrix_a_scale", MODIFIER_FORMAT, FIELD(matrix_a_scale), 0},
    {"matrix_b_scale", MODIFIER_FORMAT, FIELD(matrix_b_scale), 0},
    {"matrix_a_scale_fmt", MODIFIER_FORMAT, FIELD(matrix_a_scale_format), 0},
    {"matrix_b_scale_fmt", MODIFIER_FORMAT, FIELD(matrix_b_scale_format), 0},
    {"mul", MODIFIER_OMOD, 0, 0},
    {"div", MODIFIER_OMOD, 0, 3},
    {"quad_perm", MODIFIER_DPP, 0, EMU_DPP_QUAD_PERM},
    {"row_shl", MODIFIER_DPP, 0, EMU_DPP_ROW_SHL},
    {"row_shr", MODIFIER_DPP, 0, EMU_DPP_ROW_SHR},
    {"row_ror", MODIFIER_DPP, 0, EMU_DPP_ROW_ROR},
    {"wave_shl", MODIFIER_DPP, 0, EMU_DPP_WAVE_SHL},
    {"wave_rol", MODIFIER_DPP, 0, EMU_DPP_WAVE_ROL},
    {"wave_shr", MODIFIER_DPP, 0, EMU_DPP_WAVE_SHR},
    {"wave_ror", MODIFIER_DPP, 0, EMU_DPP_WAVE_ROR},
    {"row_mirror", MODIFIER_DPP, 0, EMU_DPP_ROW_MIRROR},
    {"row_half_mirror", MODIFIER_DPP, 0, EMU_DPP_ROW_HALF_MIRROR},
    {"row_bcast", MODIFIER_DPP, 0, EMU_DPP_ROW_BCAST_15},
    {"row_newbcast", MODIFIER_DPP, 0, EMU_DPP_ROW_NEWBCAST},
    {"row_share", MODIFIER_DPP, 0, EMU_DPP_ROW_SHARE},
    {"row_xmask", MODIFIER_DPP, 0, EMU_DPP_ROW_XMASK},
    {"dpp8", MODIFIER_DPP, 0, EMU_DPP_8},
    {"row_mask", MODIFIER_BYTE, FIELD(row_mask), 0},
    {"bank_mask", MODIFIER_BYTE, FIELD(bank_mask), 0},
    {"dst_sel", MODIFIER_SELECT, FIELD(destination_select), 0},
    {"dst_unused", MODIFIER_UNUSED, 0, 0},
    {"src0_sel", MODIFIER_SOURCE_SELECT, 0, 0},
    {"src1_sel", MODIFIER_SOURCE_SELECT, 0, 1},
};

typedef struct word_code {
  const char *word;
  int code;
} word_code;

static const word_code select_words[] = {
    {"BYTE_0", EMU_BYTE_0}, {"BYTE_1", EMU_BYTE_1}, {"BYTE_2", EMU_BYTE_2}, {"BYTE_3", EMU_BYTE_3},
    {"WORD_0", EMU_WORD_0}, {"WORD_1", EMU_WORD_1}, {"DWORD", EMU_DWORD},   {NULL, 0}};
static const word_code unused_words[] = {
    {"UNUSED_PAD", 0}, {"UNUSED_SEXT", 1}, {"UNUSED_PRESERVE", 2}, {NULL, 0}};
static const word_code format_words[] = {{"MATRIX_FMT_FP8", 0},
                                         {"MATRIX_FMT_BF8", 1},
                                         {"MATRIX_FMT_FP6", 2},
                                         {"MATRIX_FMT_BF6", 3},
                                         {"MATRIX_FMT_FP4", 4},
                                         {"MATRIX_SCALE_ROW0", 0},
                                         {"MATRIX_SCALE_ROW1", 1},
                                         {"MATRIX_SCALE_FMT_E8", 0},
                                         {"MATRIX_SCALE_FMT_E5M3", 1},
                                         {"MATRIX_SCALE_FMT_E4M3", 2},
                                         {NULL, 0}};

static int find_word(const word_code *words, const char *word) {
  for (; words->word; ++words)
    if (strcmp(words->word, word) == 0) return words->code;
  return -1;
}

/* "[1,0,1]" → bits, least significant first; returns how many, or -1. `width` bits an entry. */
static int parse_list(const char *s, unsigned width, uint32_t *out) {
  int count = 0;
  uint32_t bits = 0;
  if (*s++ != '[') return -1;
  for (;;) {
    char *end;
    unsigned long value = strtoul(s, &end, 0);
    if (end == s) return -1;
    bits |= (uint32_t)value << (width * (unsigned)count++);
    if (*end == ']') break;
    if (*end != ',') return -1;
    s = end + 1;
  }
  *out = bits;
  return count;
}

static bool parse_dpp(emu_instruction *i, int control, const char *value) {
  uint32_t list = 0;
  i->dpp = (uint8_t)control;
  if (control == EMU_DPP_QUAD_PERM || control == EMU_DPP_8) {
    if (parse_list(value, control == EMU_DPP_8 ? 3 : 2, &list) < 0) return false;
    i->dpp_value = list;
  } else if (*value) {
    i->dpp_value = (uint32_t)strtoul(value, NULL, 0);
  }
  if (control == EMU_DPP_ROW_BCAST_15 && i->dpp_value == 31) i->dpp = EMU_DPP_ROW_BCAST_31;
  return true;
}

bool emu_parse_modifier(emu_instruction *i, char *word, uint8_t selects[2]) {
  char *value = strchr(word, ':');
  if (value) *value++ = 0;
  const modifier *m = NULL;
  for (size_t n = 0; n < sizeof modifiers / sizeof *modifiers && !m; ++n)
    if (strcmp(word, modifiers[n].name) == 0) m = &modifiers[n];
  if (!m) return false;
  const char *v = value ? value : "";
  void *field = (char *)i + m->offset;
  uint32_t list = 0;
  int count, code;
  switch (m->kind) {
  case MODIFIER_FLAG:
    *(bool *)field = !(value && strcmp(value, "0") == 0 && m->offset != FIELD(bound_control));
    return true;
  case MODIFIER_BYTE:
    *(uint8_t *)field = (uint8_t)strtoul(v, NULL, 0);
    return isdigit((unsigned char)*v) != 0;
  case MODIFIER_SHORT:
    *(uint16_t *)field = (uint16_t)strtoul(v, NULL, 0);
    return isdigit((unsigned char)*v) != 0;
  case MODIFIER_OFFSET:
    *(int64_t *)field =
        strtoll(v, NULL, 0); /* swizzle(…) reads as 0: ds_swizzle takes its bits from the encoding */
    return true;
  case MODIFIER_BITS:
    if (parse_list(v, 1, &list) < 0) return false;
    *(uint8_t *)field = (uint8_t)list;
    return true;
  case MODIFIER_OP_SEL:
    count = parse_list(v, 1, &list);
    if (count < 0) return false;
    i->op_sel = (uint8_t)list;
    i->op_sel_count = (uint8_t)count;
    return true;
  case MODIFIER_OMOD:
    i->output_modifier = (uint8_t)(m->code ? m->code : strcmp(v, "4") == 0 ? 2 : 1);
    return true;
  case MODIFIER_DPP:
    return parse_dpp(i, m->code, v);
  case MODIFIER_SELECT:
    code = find_word(select_words, v);
    *(uint8_t *)field = (uint8_t)code;
    i->sdwa = true;
    return code >= 0;
  case MODIFIER_SOURCE_SELECT:
    code = find_word(select_words, v);
    selects[m->code] = (uint8_t)code;
    i->sdwa = true;
    return code >= 0;
  case MODIFIER_UNUSED:
    code = find_word(unused_words, v);
    i->destination_unused = (uint8_t)code;
    return code >= 0;
  case MODIFIER_FORMAT:
    code = find_word(format_words, v);
    *(uint8_t *)field = (uint8_t)code;
    return code >= 0;
  case MODIFIER_TEMPORAL:
    *(bool *)field = strstr(v, "RETURN") != NULL;
    return true;
  case MODIFIER_IGNORED:
    return true;
  }
  return false;
}
