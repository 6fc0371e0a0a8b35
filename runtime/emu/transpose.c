/* Which lane's data a transposed load hands on. Lanes fetch rows of a matrix, each its own address;
 * afterwards lane l holds a column: its element e comes from element `index` of what lane `from` fetched.
 *
 * Sources. gfx950: kernels in the field, which let lane l of 16 fetch row l / (16 / per), columns from
 * (l % (16 / per)) * per, with `per` elements in a lane's bits. gfx12: what is published about the hardware
 * by Triton's AMD back end (16 bits, and 8 bits from LDS), and AMD's own tests of its simulator (4 and 6
 * bits, and 8 bits from memory). */
#include "access.h"

enum { ROW = 16 }; /* lanes that hold one row or column of a matrix */

/* gfx950, 16 lanes by themselves. */
static emu_origin from_rows(unsigned lane, unsigned element, unsigned per) {
  unsigned lanes_a_row = ROW / per, column = lane % ROW;
  return (emu_origin){(lane - column) + element * lanes_a_row + column / per, column % per};
}

/* Eight lanes by themselves: 8 × 8 elements. */
static emu_origin from_eight(unsigned lane, unsigned element) {
  return (emu_origin){(lane & ~7u) | element, lane & 7};
}

/* 8 bits from LDS: the lanes of such an 8 × 8 are 0–3 and 8–11, or 4–7 and 12–15, of each 16. */
static emu_origin from_two_fours(unsigned lane, unsigned element) {
  return (emu_origin){(lane & 16) | (element & 4) << 1 | (lane >> 3 & 1) << 2 | (element & 3), lane & 7};
}

/* 4 bits: 32 columns of 16 elements, lane 16 h + m holds k = 8 h … 8 h + 7 and 16 more of each. */
static emu_origin from_columns_4(unsigned lane, unsigned element) {
  return (emu_origin){(element >> 3) << 4 | (lane >> 4 & 1) << 3 | (element & 7), lane & 15};
}

/* 6 bits: column k was fetched by lane 8 (k / 4 % 4) + 4 (k / 16) + k % 4. */
static emu_origin from_columns_6(unsigned lane, unsigned element) {
  return (emu_origin){(element >> 2) << 3 | (lane >> 4 & 1) << 2 | (element & 3), lane & 15};
}

emu_origin emu_transposed_origin(const emu_access *access, unsigned lane, unsigned element) {
  unsigned bits = access->atomic;
  switch ((emu_transpose)access->layout) {
  case EMU_TRANSPOSE_ROWS:
    return from_rows(lane, element, access->bytes * 8u / bits);
  case EMU_TRANSPOSE_EIGHT:
    return from_eight(lane, element);
  case EMU_TRANSPOSE_TWO_FOURS:
    return from_two_fours(lane, element);
  case EMU_TRANSPOSE_COLUMNS:
    return bits == 4 ? from_columns_4(lane, element) : from_columns_6(lane, element);
  }
  return (emu_origin){lane, element};
}
