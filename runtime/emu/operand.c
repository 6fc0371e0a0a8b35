/* Operand access: constants, scalars, DPP, SDWA, op_sel, neg and abs on the way in; clamp, output modifier,
 * destination select and lane masks on the way out. */
#include "execute.h"
#include "formats.h"
#include <math.h>

enum { ROW_LANES = 16 }; /* a DPP row */

static bool two_words(emu_type type) {
  return type == EMU_B64 || type == EMU_F64 || type == EMU_PK_B32 || type == EMU_PK_F32;
}

static bool is_half(emu_type type) {
  return type == EMU_B16 || type == EMU_F16 || type == EMU_BF16;
}

static bool is_packed_half(emu_type type) {
  return type == EMU_PK_B16 || type == EMU_PK_F16 || type == EMU_PK_BF16;
}

/* 1/(2*pi) is the one inline float that is not exact: each width has its own rounding (ISA documents, "inline
 * constants"). */
static bool is_inverse_two_pi(double value) {
  return value > 0.159154 && value < 0.159156;
}

static uint32_t half_bits(double value) {
  if (is_inverse_two_pi(value)) return 0x3118;
  return emu_encode(EMU_FORMAT_F16, value, EMU_ROUND_NEAREST_EVEN, false);
}

uint64_t emu_constant(const emu_operand *o, emu_type type) {
  if (o->kind == EMU_INTEGER) return o->bits;
  if (o->kind == EMU_LITERAL) return type == EMU_F64 && !o->wide ? o->bits << 32 : o->bits;
  if (o->kind != EMU_FLOAT) return 0;
  switch (type) {
  case EMU_B16:
  case EMU_F16:
  case EMU_PK_F16:
    return half_bits(o->value);
  case EMU_BF16:
  case EMU_PK_BF16:
    return is_inverse_two_pi(o->value) ? 0x3e22 : emu_bits((float)o->value) >> 16;
  case EMU_B64:
  case EMU_F64:
    return is_inverse_two_pi(o->value) ? UINT64_C(0x3fc45f306dc9c882) : emu_double_bits(o->value);
  default:
    return is_inverse_two_pi(o->value) ? 0x3e22f983 : emu_bits((float)o->value);
  }
}

static uint64_t special(const emu_wave *w, const emu_operand *o) {
  switch (o->kind) {
  case EMU_SHARED_BASE:
    return EMU_SHARED_APERTURE;
  case EMU_SHARED_LIMIT:
    return EMU_SHARED_APERTURE + UINT32_MAX;
  case EMU_PRIVATE_BASE:
    return EMU_PRIVATE_APERTURE;
  case EMU_PRIVATE_LIMIT:
    return EMU_PRIVATE_APERTURE + UINT32_MAX;
  case EMU_VCCZ:
    return w->lanes == 64 ? emu_pair(w, EMU_S_VCC) == 0 : w->s[EMU_S_VCC] == 0;
  case EMU_EXECZ:
    return emu_exec(w) == 0;
  default:
    return 0;
  }
}

static int first_lane(const emu_wave *w) {
  uint64_t exec = emu_exec(w);
  return exec ? __builtin_ctzll(exec) : 0;
}

uint32_t emu_scalar32(emu_wave *w, const emu_operand *o) {
  switch (o->kind) {
  case EMU_SCALAR:
    return o->index == EMU_S_NULL ? 0 : w->s[o->index];
  case EMU_VECTOR:
    return w->v[emu_row_of(w, o)][first_lane(w)];
  case EMU_INTEGER:
  case EMU_LITERAL:
    return (uint32_t)o->bits;
  case EMU_FLOAT:
    return (uint32_t)emu_constant(o, EMU_F32);
  default:
    /* A 64-bit aperture read as 32 bits gives its high half: that is what flat pointers are built from. */
    return o->kind == EMU_SHARED_BASE || o->kind == EMU_PRIVATE_BASE ? (uint32_t)(special(w, o) >> 32)
                                                                     : (uint32_t)special(w, o);
  }
}

uint64_t emu_scalar64(emu_wave *w, const emu_operand *o) {
  switch (o->kind) {
  case EMU_SCALAR:
    return o->index == EMU_S_NULL                   ? 0
           : o->count == 1 && o->index >= EMU_S_SCC ? w->s[o->index]
                                                    : emu_pair(w, o->index);
  case EMU_VECTOR: {
    uint32_t row = emu_row_of(w, o);
    int lane = first_lane(w);
    return (uint64_t)w->v[row + 1][lane] << 32 | w->v[row][lane];
  }
  case EMU_INTEGER:
  case EMU_LITERAL:
    return o->bits;
  case EMU_FLOAT:
    return emu_constant(o, EMU_F64);
  default:
    return special(w, o);
  }
}

void emu_set_scalar32(emu_wave *w, const emu_operand *o, uint32_t value) {
  if (o->kind == EMU_SCALAR && o->index != EMU_S_NULL) w->s[o->index] = value;
}

void emu_set_scalar64(emu_wave *w, const emu_operand *o, uint64_t value) {
  if (o->kind == EMU_SCALAR && o->index != EMU_S_NULL) emu_set_pair(w, o->index, value);
}

uint32_t emu_source_scalar(emu_wave *w, const emu_instruction *i, int k) {
  return emu_scalar32(w, &i->operand[i->source0 + k]);
}

uint64_t emu_source_mask(emu_wave *w, const emu_instruction *i, int k) {
  const emu_operand *o = &i->operand[i->source0 + k];
  return w->lanes == 64 ? emu_scalar64(w, o) : emu_scalar32(w, o);
}

void emu_result_mask(emu_wave *w, const emu_instruction *i, int n, uint64_t mask) {
  const emu_operand *o = &i->operand[n];
  mask &= emu_exec(w);
  if (w->lanes == 64) {
    emu_set_scalar64(w, o, mask);
  } else {
    emu_set_scalar32(w, o, (uint32_t)mask);
  }
}

/* The lane that DPP lets `lane` read, or -1 when it falls outside. */
static int dpp_lane(const emu_instruction *i, int lane, int lanes) {
  int row = lane & ~(ROW_LANES - 1), column = lane & (ROW_LANES - 1), n = (int)i->dpp_value;
  switch ((emu_dpp)i->dpp) {
  case EMU_DPP_QUAD_PERM:
    return (lane & ~3) | (int)(i->dpp_value >> (2 * (lane & 3)) & 3);
  case EMU_DPP_ROW_SHL:
    return column + n < ROW_LANES ? lane + n : -1;
  case EMU_DPP_ROW_SHR:
    return column - n >= 0 ? lane - n : -1;
  case EMU_DPP_ROW_ROR:
    return row | ((column - n) & (ROW_LANES - 1));
  case EMU_DPP_WAVE_SHL:
    return lane + 1 < lanes ? lane + 1 : -1;
  case EMU_DPP_WAVE_ROL:
    return (lane + 1) & (lanes - 1);
  case EMU_DPP_WAVE_SHR:
    return lane - 1;
  case EMU_DPP_WAVE_ROR:
    return (lane - 1) & (lanes - 1);
  case EMU_DPP_ROW_MIRROR:
    return row | (ROW_LANES - 1 - column);
  case EMU_DPP_ROW_HALF_MIRROR:
    return (lane & ~7) | (7 - (lane & 7));
  case EMU_DPP_ROW_BCAST_15:
    return row - 1;
  case EMU_DPP_ROW_BCAST_31:
    return lane >= 32 ? 31 : -1;
  case EMU_DPP_ROW_NEWBCAST:
  case EMU_DPP_ROW_SHARE:
    return row | n;
  case EMU_DPP_ROW_XMASK:
    return row | ((column ^ n) & (ROW_LANES - 1));
  case EMU_DPP_8:
    return (lane & ~7) | (int)(i->dpp_value >> (3 * (lane & 7)) & 7);
  case EMU_DPP_NONE:
    break;
  }
  return lane;
}

static bool dpp_readable(const emu_wave *w, const emu_instruction *i, int from) {
  return from >= 0 && (i->fetch_inactive || i->dpp == EMU_DPP_8 || (emu_exec(w) >> from & 1));
}

static void dpp_apply(const emu_wave *w, const emu_instruction *i, const uint32_t *from, uint32_t *to) {
  for (int lane = 0; lane < w->lanes; ++lane) {
    int source = dpp_lane(i, lane, w->lanes);
    to[lane] = dpp_readable(w, i, source) ? from[source] : 0;
  }
}

/* Lanes that a DPP instruction may write: row and bank masks, and lanes whose source was out of reach unless
 * bound_ctrl reads 0. */
static uint64_t dpp_write_mask(const emu_wave *w, const emu_instruction *i) {
  uint64_t mask = 0;
  for (int lane = 0; lane < w->lanes; ++lane) {
    bool enabled = i->dpp == EMU_DPP_8 ||
                   ((i->row_mask >> (lane / ROW_LANES) & 1) && (i->bank_mask >> (lane % ROW_LANES / 4) & 1));
    if (enabled && (i->bound_control || dpp_readable(w, i, dpp_lane(i, lane, w->lanes))))
      mask |= UINT64_C(1) << lane;
  }
  return mask;
}

static uint32_t sdwa_select(uint32_t value, int select, bool sign_extend) {
  unsigned shift = 0, bits = 32;
  if (select >= EMU_BYTE_0 && select <= EMU_BYTE_3) {
    shift = 8u * (unsigned)(select - EMU_BYTE_0);
    bits = 8;
  } else if (select == EMU_WORD_0 || select == EMU_WORD_1) {
    shift = select == EMU_WORD_1 ? 16 : 0;
    bits = 16;
  }
  if (bits == 32) return value;
  value = value >> shift & ((1u << bits) - 1);
  if (sign_extend && value >> (bits - 1)) value |= ~0u << bits;
  return value;
}

/* Which halves of a packed operand feed the low and the high result. */
static uint32_t packed_half(uint32_t value, bool low_from_high, bool high_from_high) {
  uint32_t low = low_from_high ? value >> 16 : value & 0xffff;
  uint32_t high = high_from_high ? value & 0xffff0000u : value << 16;
  return high | low;
}

static void copy_row(uint32_t *to, const uint32_t *from) {
  memcpy(to, from, sizeof(uint32_t) * EMU_LANES);
}

static void fill_row(uint32_t *to, uint32_t value) {
  for (int lane = 0; lane < EMU_LANES; ++lane)
    to[lane] = value;
}

/* The operand's words before modifiers; constants and scalars are spread over the lanes. */
static emu_lanes raw_words(emu_wave *w, const emu_operand *o, emu_type type, emu_block *lo, emu_block *hi) {
  emu_lanes words = {lo->lane, NULL};
  bool two = two_words(type);
  if (o->kind == EMU_VECTOR) {
    uint32_t row = emu_row_of(w, o);
    words.lo = w->v[row];
    if (two) words.hi = w->v[o->count > 1 ? row + 1 : row];
    return words;
  }
  uint32_t low, high = 0;
  if (o->kind == EMU_SCALAR && o->index != EMU_S_NULL) {
    low = w->s[o->index];
    if (two) high = o->index < EMU_S_COUNT - 1 && o->count > 1 ? w->s[o->index + 1] : 0;
    if (type == EMU_PK_F32 || type == EMU_PK_B32)
      if (w->target->replicates_packed_scalar || o->count == 1) high = low;
  } else if (o->kind == EMU_INTEGER || o->kind == EMU_FLOAT || o->kind == EMU_LITERAL) {
    uint64_t bits = emu_constant(o, type);
    low = (uint32_t)bits;
    high = type == EMU_PK_F32 || type == EMU_PK_B32 ? low : (uint32_t)(bits >> 32);
  } else if (two) {
    uint64_t bits = emu_scalar64(w, o);
    low = (uint32_t)bits;
    high = (uint32_t)(bits >> 32);
  } else {
    low = emu_scalar32(w, o);
  }
  fill_row(lo->lane, low);
  if (two) {
    fill_row(hi->lane, high);
    words.hi = hi->lane;
  }
  return words;
}

/* Bits that neg and abs touch in the last word of a value. */
static uint32_t sign_bit(emu_type type) {
  if (type == EMU_F32 || type == EMU_F64) return 0x80000000u;
  return type == EMU_F16 || type == EMU_BF16 ? 0x8000u : 0;
}

static void modify_packed_half(const emu_instruction *i, int k, emu_type type, const uint32_t *from,
                               uint32_t *to) {
  bool low = i->op_sel >> k & 1, high = i->op_sel_hi >> k & 1;
  uint32_t flip = 0;
  if (type != EMU_PK_B16) {
    if (i->neg_lo >> k & 1) flip |= 0x8000u;
    if (i->neg_hi >> k & 1) flip |= 0x80000000u;
  }
  for (int lane = 0; lane < EMU_LANES; ++lane)
    to[lane] = packed_half(from[lane], low, high) ^ flip;
}

emu_lanes emu_source64(emu_wave *w, const emu_instruction *i, int k, emu_type type, emu_block *lo,
                       emu_block *hi) {
  const emu_operand *o = &i->operand[i->source0 + k];
  emu_lanes words = raw_words(w, o, type, lo, hi);
  bool constant = o->kind == EMU_INTEGER || o->kind == EMU_FLOAT || o->kind == EMU_LITERAL;

  if (i->dpp && k == 0 && o->kind == EMU_VECTOR) {
    dpp_apply(w, i, words.lo, lo->lane);
    if (words.hi) {
      dpp_apply(w, i, words.hi, hi->lane);
      words.hi = hi->lane;
    }
    words.lo = lo->lane;
  }
  if (o->select != EMU_SELECT_NONE && (o->select != EMU_DWORD || o->sign_extend)) {
    for (int lane = 0; lane < EMU_LANES; ++lane)
      lo->lane[lane] = sdwa_select(words.lo[lane], o->select, o->sign_extend);
    words.lo = lo->lane;
  } else if (is_half(type)) {
    bool high = o->high || (!o->half && !constant && (i->op_sel >> k & 1));
    unsigned shift = high ? 16 : 0;
    for (int lane = 0; lane < EMU_LANES; ++lane)
      lo->lane[lane] = words.lo[lane] >> shift & 0xffff;
    words.lo = lo->lane;
  } else if (is_packed_half(type)) {
    bool plain =
        !(i->op_sel >> k & 1) && (i->op_sel_hi >> k & 1) && !(i->neg_lo >> k & 1) && !(i->neg_hi >> k & 1);
    if (!plain) {
      modify_packed_half(i, k, type, words.lo, lo->lane);
      words.lo = lo->lane;
    }
    return words;
  } else if (type == EMU_PK_F32 || type == EMU_PK_B32) {
    const uint32_t *first = i->op_sel >> k & 1 ? words.hi : words.lo;
    const uint32_t *second = i->op_sel_hi >> k & 1 ? words.hi : words.lo;
    bool negate_first = type == EMU_PK_F32 && (i->neg_lo >> k & 1),
         negate_second = type == EMU_PK_F32 && (i->neg_hi >> k & 1);
    if (negate_first || negate_second) {
      /* Built aside: `first` and `second` may lie in either block. */
      emu_block a, b;
      for (int lane = 0; lane < EMU_LANES; ++lane) {
        a.lane[lane] = first[lane] ^ (negate_first ? 0x80000000u : 0);
        b.lane[lane] = second[lane] ^ (negate_second ? 0x80000000u : 0);
      }
      copy_row(lo->lane, a.lane);
      copy_row(hi->lane, b.lane);
      first = lo->lane;
      second = hi->lane;
    }
    return (emu_lanes){first, second};
  }

  uint32_t sign = sign_bit(type);
  if (sign && (o->negate || o->absolute)) {
    uint32_t keep = o->absolute ? ~sign : ~0u, flip = o->negate ? sign : 0;
    const uint32_t *from = words.hi ? words.hi : words.lo;
    uint32_t *to = words.hi ? hi->lane : lo->lane;
    for (int lane = 0; lane < EMU_LANES; ++lane)
      to[lane] = (from[lane] & keep) ^ flip;
    if (words.hi) {
      words.hi = to;
    } else {
      words.lo = to;
    }
  }
  return words;
}

emu_lanes emu_source(emu_wave *w, const emu_instruction *i, int k, emu_type type, emu_block *block) {
  return emu_source64(w, i, k, type, block, block);
}

static bool destination_high(const emu_instruction *i) {
  return i->operand[0].high || (!i->operand[0].half && (i->op_sel & 8));
}

emu_lanes emu_previous64(emu_wave *w, const emu_instruction *i, emu_type type, emu_block *lo, emu_block *hi) {
  emu_lanes words = raw_words(w, &i->operand[0], type, lo, hi);
  if (is_half(type)) {
    unsigned shift = destination_high(i) ? 16 : 0;
    for (int lane = 0; lane < EMU_LANES; ++lane)
      lo->lane[lane] = words.lo[lane] >> shift & 0xffff;
    words.lo = lo->lane;
  }
  return words;
}

emu_lanes emu_previous(emu_wave *w, const emu_instruction *i, emu_type type, emu_block *block) {
  return emu_previous64(w, i, type, block, block);
}

void emu_write_row(emu_wave *w, uint32_t row, uint64_t mask, const uint32_t *value) {
  emu_state *state = w->state;
  if (state->deferring) { /* first half of a v_dual pair: visible only after the second has read */
    emu_deferred *d = &state->deferred[state->deferred_count++];
    d->row = row;
    d->mask = mask;
    copy_row(d->value.lane, value);
    return;
  }
  uint32_t *to = w->v[row];
  if (mask == UINT64_MAX) {
    copy_row(to, value);
    return;
  }
  for (int half = 0; half < 2; ++half) {
    uint32_t bits = (uint32_t)(mask >> (32 * half));
    for (int lane = 0; lane < 32; ++lane) {
      uint32_t keep = (bits >> lane & 1) - 1u;
      to[32 * half + lane] = (to[32 * half + lane] & keep) | (value[32 * half + lane] & ~keep);
    }
  }
}

static float scale_of(int output_modifier) {
  static const float factor[] = {1, 2, 4, 0.5f};
  return factor[output_modifier];
}

/* DX10 clamp: NaN becomes 0; without it NaN passes. */
static float clamp_one(float x, bool nan_to_zero) {
  if (x != x) return nan_to_zero ? 0 : x;
  return x <= 0 ? 0 : x > 1 ? 1 : x;
}

static uint32_t finish_half(const emu_instruction *i, emu_type type, uint32_t bits, bool nan_to_zero) {
  emu_format_id format = type == EMU_BF16 || type == EMU_PK_BF16 ? EMU_FORMAT_BF16 : EMU_FORMAT_F16;
  float x = emu_decode(format, bits & 0xffff);
  x *= scale_of(i->output_modifier);
  if (i->clamp) x = clamp_one(x, nan_to_zero);
  return emu_encode(format, (double)x, EMU_ROUND_NEAREST_EVEN, false);
}

/* Output modifier and clamp; returns the words to store. */
static emu_lanes finish_float(emu_wave *w, const emu_instruction *i, emu_type type, emu_lanes in,
                              emu_block *lo, emu_block *hi) {
  bool nan_to_zero = w->target->generation >= 12 || (w->mode >> 8 & 1);
  float scale = scale_of(i->output_modifier);
  emu_lanes out = {lo->lane, in.hi ? hi->lane : NULL};
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    uint32_t a = in.lo[lane];
    switch (type) {
    case EMU_F32:
    case EMU_PK_F32: {
      float x = emu_float(a) * scale;
      lo->lane[lane] = emu_bits(i->clamp ? clamp_one(x, nan_to_zero) : x);
      if (type == EMU_PK_F32) {
        float y = emu_float(in.hi[lane]) * scale;
        hi->lane[lane] = emu_bits(i->clamp ? clamp_one(y, nan_to_zero) : y);
      }
      break;
    }
    case EMU_F64: {
      double x = emu_double(a, in.hi[lane]) * (double)scale;
      if (i->clamp) x = x != x ? (nan_to_zero ? 0 : x) : x <= 0 ? 0 : x > 1 ? 1 : x;
      uint64_t bits = emu_double_bits(x);
      lo->lane[lane] = (uint32_t)bits;
      hi->lane[lane] = (uint32_t)(bits >> 32);
      break;
    }
    case EMU_PK_F16:
    case EMU_PK_BF16:
      lo->lane[lane] =
          finish_half(i, type, a & 0xffff, nan_to_zero) | finish_half(i, type, a >> 16, nan_to_zero) << 16;
      break;
    default:
      lo->lane[lane] = finish_half(i, type, a & 0xffff, nan_to_zero);
      break;
    }
  }
  return out;
}

static bool is_float(emu_type type) {
  return type == EMU_F32 || type == EMU_F16 || type == EMU_BF16 || type == EMU_F64 || type == EMU_PK_F16 ||
         type == EMU_PK_BF16 || type == EMU_PK_F32;
}

/* SDWA destination: the result goes to one byte or word, the rest is cleared, sign-filled or kept. */
static void sdwa_destination(const emu_instruction *i, const uint32_t *old, const uint32_t *value,
                             uint32_t *out) {
  int select = i->destination_select;
  unsigned shift = 0, bits = 16;
  if (select >= EMU_BYTE_0 && select <= EMU_BYTE_3) {
    shift = 8u * (unsigned)(select - EMU_BYTE_0);
    bits = 8;
  } else if (select == EMU_WORD_1) {
    shift = 16;
  }
  uint32_t field = ((1u << bits) - 1) << shift;
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    uint32_t placed = value[lane] << shift & field;
    uint32_t rest = 0;
    if (i->destination_unused == 2) {
      rest = old[lane] & ~field;
    } else if (i->destination_unused == 1 && (value[lane] >> (bits - 1) & 1)) {
      rest = shift + bits < 32 ? ~0u << (shift + bits) : 0;
    }
    out[lane] = placed | rest;
  }
}

void emu_result64(emu_wave *w, const emu_instruction *i, emu_type type, const uint32_t *lo,
                  const uint32_t *hi) {
  emu_block finished_lo, finished_hi, placed;
  const emu_operand *o = &i->operand[0];
  emu_lanes words = {lo, two_words(type) ? hi : NULL};
  if ((i->clamp || i->output_modifier) && is_float(type))
    words = finish_float(w, i, type, words, &finished_lo, &finished_hi);

  if (o->kind == EMU_SCALAR) { /* a few VOP3 forms write scalars: v_readlane_b32 and its like */
    emu_set_scalar32(w, o, words.lo[first_lane(w)]);
    return;
  }
  uint32_t row = emu_row_of(w, o);
  uint64_t mask = emu_exec(w);
  if (i->dpp) mask &= dpp_write_mask(w, i);

  if (i->sdwa && i->destination_select != EMU_DWORD && i->destination_select != EMU_SELECT_NONE) {
    sdwa_destination(i, w->v[row], words.lo, placed.lane);
    words.lo = placed.lane;
  } else if (is_half(type)) {
    const uint32_t *old = w->v[row];
    bool keeps = w->target->generation >= 10 || (i->row->flags & EMU_KEEPS_HIGH);
    if (destination_high(i)) {
      for (int lane = 0; lane < EMU_LANES; ++lane)
        placed.lane[lane] = (old[lane] & 0xffff) | words.lo[lane] << 16;
    } else if (keeps) {
      for (int lane = 0; lane < EMU_LANES; ++lane)
        placed.lane[lane] = (old[lane] & 0xffff0000u) | (words.lo[lane] & 0xffff);
    } else {
      for (int lane = 0; lane < EMU_LANES; ++lane)
        placed.lane[lane] = words.lo[lane] & 0xffff;
    }
    words.lo = placed.lane;
  }
  if (mask == UINT32_MAX && w->lanes == 32) mask = UINT64_MAX; /* upper half is unused: take the fast path */
  emu_write_row(w, row, mask, words.lo);
  if (words.hi) emu_write_row(w, row + 1, mask, words.hi);
}

void emu_result(emu_wave *w, const emu_instruction *i, emu_type type, const uint32_t *lo) {
  emu_result64(w, i, type, lo, NULL);
}
