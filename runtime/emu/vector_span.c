/* Instructions whose sources and results span several registers a lane and are neither numbers of 64 bits nor
 * conversions: look-ups in small tables, and sums of absolute differences at four places. */
#include "execute.h"
#include "vector.h"

/* Consecutive registers of source k, or NULL and a fault. */
static uint32_t (*span_of(emu_wave *w, const emu_instruction *i, int operand, uint32_t words))[EMU_LANES] {
  const emu_operand *o = &i->operand[operand];
  if (o->kind == EMU_VECTOR && emu_row_of(w, o) + words <= w->vector_rows) return emu_registers(w, o);
  emu_fault(w, i, -1, "operand %d of this instruction is not a range of vector registers", operand);
  return NULL;
}

static void write_span(emu_wave *w, const emu_instruction *i, const emu_block *out, uint32_t words) {
  if (!span_of(w, i, 0, words)) return;
  for (uint32_t n = 0; n < words; ++n)
    emu_write_row(w, emu_row_of(w, &i->operand[0]) + n, emu_exec(w), out[n].lane);
}

/* gfx1250: sixteen elements of a table of sixteen. Source 0 holds the upper part of the table, source 1 the
 * lower; source 2 sixteen indices of four bits. */
static void look_up(emu_wave *w, const emu_instruction *i, unsigned bits, uint32_t upper, uint32_t lower) {
  enum { ELEMENTS = 16, MAX_WORDS = 4 };
  emu_block out[MAX_WORDS];
  uint32_t(*high)[EMU_LANES] = span_of(w, i, 1, upper), (*low)[EMU_LANES] = span_of(w, i, 2, lower);
  uint32_t(*index)[EMU_LANES] = span_of(w, i, 3, 2);
  if (!high || !low || !index) return;
  LANES {
    uint32_t table[MAX_WORDS + 1] = {0};
    for (uint32_t n = 0; n < lower; ++n)
      table[n] = low[n][lane];
    for (uint32_t n = 0; n < upper; ++n)
      table[lower + n] = high[n][lane];
    uint64_t pending = 0;
    unsigned filled = 0, word = 0;
    for (unsigned e = 0; e < ELEMENTS; ++e) {
      unsigned at = (index[e / 8][lane] >> 4 * (e % 8) & 15) * bits;
      uint64_t both = (uint64_t)table[at / 32 + 1] << 32 | table[at / 32];
      pending |= (both >> at % 32 & ((1u << bits) - 1)) << filled;
      for (filled += bits; filled >= 32; filled -= 32, pending >>= 32)
        out[word++].lane[lane] = (uint32_t)pending;
    }
  }
  write_span(w, i, out, ELEMENTS * bits / 32);
}
static void v_perm_pk16_b4_u4(emu_wave *w, const emu_instruction *i) {
  look_up(w, i, 4, 1, 1);
}
static void v_perm_pk16_b6_u4(emu_wave *w, const emu_instruction *i) {
  look_up(w, i, 6, 1, 2);
}
static void v_perm_pk16_b8_u4(emu_wave *w, const emu_instruction *i) {
  look_up(w, i, 8, 2, 2);
}

/* Four bytes against the reference; a masked sum leaves out bytes whose reference is 0. */
static uint32_t difference(uint32_t bytes, uint32_t reference, bool masked) {
  uint32_t sum = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    uint32_t a = bytes >> shift & 255, b = reference >> shift & 255;
    if (!masked || b) sum += a > b ? a - b : b - a;
  }
  return sum;
}

/* Sums at bytes 0 to 3 of source 0's eight, each added to its part of source 2. */
static void four_differences(emu_wave *w, const emu_instruction *i, bool masked, bool wide) {
  emu_block y, out[4];
  uint32_t words = wide ? 4 : 2;
  uint32_t(*bytes)[EMU_LANES] = span_of(w, i, 1, 2), (*sums)[EMU_LANES] = span_of(w, i, 3, words);
  if (!bytes || !sums) return;
  const uint32_t *reference = source_b32(w, i, 1, &y);
  LANES {
    uint64_t eight = (uint64_t)bytes[1][lane] << 32 | bytes[0][lane];
    uint32_t sum[4];
    for (unsigned n = 0; n < 4; ++n)
      sum[n] = difference((uint32_t)(eight >> 8 * n), reference[lane], masked);
    for (unsigned n = 0; n < words; ++n) {
      uint32_t old = sums[n][lane];
      out[n].lane[lane] =
          wide ? old + sum[n] : ((old + sum[2 * n]) & 0xffff) | ((old >> 16) + sum[2 * n + 1]) << 16;
    }
  }
  write_span(w, i, out, words);
}
static void v_qsad_pk_u16_u8(emu_wave *w, const emu_instruction *i) {
  four_differences(w, i, false, false);
}
static void v_mqsad_pk_u16_u8(emu_wave *w, const emu_instruction *i) {
  four_differences(w, i, true, false);
}
static void v_mqsad_u32_u8(emu_wave *w, const emu_instruction *i) {
  four_differences(w, i, true, true);
}

/* gfx1250: four bytes saturated to nibbles. */
static void saturate_to_nibbles(emu_wave *w, const emu_instruction *i, bool is_signed) {
  emu_block x, r;
  const uint32_t *p = source_b32(w, i, 0, &x);
  LANES {
    uint32_t packed = 0;
    for (unsigned n = 0; n < 4; ++n) {
      uint32_t byte = p[lane] >> 8 * n & 255;
      int32_t value = is_signed ? (int32_t)(int8_t)byte : (int32_t)byte, low = is_signed ? -8 : 0,
              high = is_signed ? 7 : 15;
      value = value < low ? low : value > high ? high : value;
      packed |= ((uint32_t)value & 15) << 4 * n;
    }
    r.lane[lane] = packed;
  }
  emu_result(w, i, EMU_B16, r.lane);
}
static void v_sat_pk4_i4_i8(emu_wave *w, const emu_instruction *i) {
  saturate_to_nibbles(w, i, true);
}
static void v_sat_pk4_u4_u8(emu_wave *w, const emu_instruction *i) {
  saturate_to_nibbles(w, i, false);
}

const emu_row emu_vector_span_rows[] = {
    ROW(v_perm_pk16_b4_u4), ROW(v_perm_pk16_b6_u4), ROW(v_perm_pk16_b8_u4),
    ROW(v_qsad_pk_u16_u8),  ROW(v_mqsad_pk_u16_u8), ROW(v_mqsad_u32_u8),
    ROW(v_sat_pk4_i4_i8),   ROW(v_sat_pk4_u4_u8),   END_OF_ROWS,
};
