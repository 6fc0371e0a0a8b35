/* Memory instructions are a product: an address space times what moves. The space comes from the mnemonic's
 * prefix (global_, flat_, buffer_, scratch_, ds_), the rest from one row of this table. */
#ifndef HEDDLE_EMU_ACCESS_H
#define HEDDLE_EMU_ACCESS_H

#include "emu.h"

typedef enum emu_space { EMU_SPACE_NONE, EMU_GLOBAL, EMU_FLAT, EMU_BUFFER, EMU_SCRATCH, EMU_LDS } emu_space;

typedef enum emu_access_kind {
  EMU_LOAD,
  EMU_STORE,
  EMU_ATOMIC,       /* returns the old value when it has a destination operand */
  EMU_LOAD_TO_LDS,  /* global_load_lds_*: LDS base in M0, lanes consecutive */
  EMU_ASYNC_TO_LDS, /* global_load_async_to_lds_*: LDS address per lane */
  EMU_ASYNC_FROM_LDS,
  EMU_LOAD_TRANSPOSED,
  EMU_PREFETCH
} emu_access_kind;

typedef enum emu_atomic {
  EMU_SWAP,
  EMU_COMPARE_SWAP, /* data: new value, then the expected one */
  EMU_ADD,
  EMU_SUBTRACT,
  EMU_REVERSE_SUBTRACT,
  EMU_MIN_SIGNED,
  EMU_MAX_SIGNED,
  EMU_MIN_UNSIGNED,
  EMU_MAX_UNSIGNED,
  EMU_AND,
  EMU_OR,
  EMU_XOR,
  EMU_INCREMENT,   /* old >= data ? 0 : old + 1 */
  EMU_DECREMENT,   /* old == 0 || old > data ? data : old - 1 */
  EMU_ADD_CLAMPED, /* old - data, not below 0: sub_clamp */
  EMU_CONDITIONAL_SUBTRACT,
  EMU_ADD_FLOAT,
  EMU_MIN_FLOAT,
  EMU_MAX_FLOAT,
  EMU_ADD_PACKED_F16,
  EMU_ADD_PACKED_BF16
} emu_atomic;

/* How a transposed load spreads what its lanes fetch (transpose.c). */
typedef enum emu_transpose {
  EMU_TRANSPOSE_ROWS,      /* gfx950 */
  EMU_TRANSPOSE_EIGHT,     /* gfx12: 16 bits; 8 bits from memory */
  EMU_TRANSPOSE_TWO_FOURS, /* gfx1250: 8 bits from LDS */
  EMU_TRANSPOSE_COLUMNS    /* gfx1250: 4 and 6 bits */
} emu_transpose;

typedef struct emu_access {
  const char *name;
  emu_access_kind kind;
  uint8_t bytes;    /* of one element in memory */
  uint8_t elements; /* ds_read2: 2 addresses of `bytes` each */
  uint8_t stride64; /* ds_read2st64: offsets count 64 elements */
  bool sign_extend;
  bool d16; /* 16 bits of the register; the other half is kept */
  bool d16_high;
  bool returns;   /* ds_…_rtn */
  uint8_t atomic; /* emu_atomic; transposed loads: bits of an element */
  uint8_t layout; /* emu_transpose */
} emu_access;

/* Where an element of a transposed load comes from. */
typedef struct emu_origin {
  unsigned lane, index;
} emu_origin;
emu_origin emu_transposed_origin(const emu_access *access, unsigned lane, unsigned element);

/* All that can move through memory, or through LDS. */
const emu_access *emu_accesses(bool lds, size_t *out_count);
/* `name` without prefix; `lds` chooses the ds_ table. NULL when unknown. */
const emu_access *emu_find_access(const char *name, bool lds);
/* Updates memory and returns what was there. Other workgroups run on other threads: it is a compare-and-swap
 * on the host. `expected`: of EMU_COMPARE_SWAP. */
uint64_t emu_atomic_update(const emu_access *a, uint8_t *at, uint64_t data, uint64_t expected);
/* `to_lds`: a buffer load with the lds modifier. */
emu_handler emu_access_handler(const emu_access *access, bool to_lds);

#endif
