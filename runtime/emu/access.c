/* Loads, stores and atomics of all address spaces, and copies between memory and LDS. */
#include "access.h"
#include "execute.h"
#include "formats.h"
#include "hot.h"
#include <math.h>

/* ---- What moves ---- */

#define LOAD(name, bytes)                                                                                    \
  { name, EMU_LOAD, bytes, 1, 0, false, false, false, false, 0, 0 }
#define LOAD_SIGNED(name, bytes)                                                                             \
  { name, EMU_LOAD, bytes, 1, 0, true, false, false, false, 0, 0 }
#define LOAD_D16(name, bytes, sign, high)                                                                    \
  { name, EMU_LOAD, bytes, 1, 0, sign, true, high, false, 0, 0 }
#define STORE(name, bytes)                                                                                   \
  { name, EMU_STORE, bytes, 1, 0, false, false, false, false, 0, 0 }
#define STORE_HIGH(name, bytes)                                                                              \
  { name, EMU_STORE, bytes, 1, 0, false, true, true, false, 0, 0 }
#define TO_LDS(name, bytes)                                                                                  \
  { name, EMU_LOAD_TO_LDS, bytes, 1, 0, false, false, false, false, 0, 0 }
#define TO_LDS_SIGNED(name, bytes)                                                                           \
  { name, EMU_LOAD_TO_LDS, bytes, 1, 0, true, false, false, false, 0, 0 }
#define ASYNC(name, bytes)                                                                                   \
  { name, EMU_ASYNC_TO_LDS, bytes, 1, 0, false, false, false, false, 0, 0 }
#define ASYNC_FROM(name, bytes)                                                                              \
  { name, EMU_ASYNC_FROM_LDS, bytes, 1, 0, false, false, false, false, 0, 0 }
#define ATOMIC(name, bytes, operation)                                                                       \
  { name, EMU_ATOMIC, bytes, 1, 0, false, false, false, false, operation, 0 }
#define RETURNS(name, bytes, operation)                                                                      \
  { name, EMU_ATOMIC, bytes, 1, 0, false, false, false, true, operation, 0 }
#define TRANSPOSED(name, bytes, element, layout)                                                             \
  { name, EMU_LOAD_TRANSPOSED, bytes, 1, 0, false, false, false, false, element, layout }

static const emu_access memory_accesses[] = {
    LOAD("load_dword", 4),
    LOAD("load_dwordx2", 8),
    LOAD("load_dwordx3", 12),
    LOAD("load_dwordx4", 16),
    LOAD("load_ubyte", 1),
    LOAD_SIGNED("load_sbyte", 1),
    LOAD("load_ushort", 2),
    LOAD_SIGNED("load_sshort", 2),
    LOAD_D16("load_short_d16", 2, false, false),
    LOAD_D16("load_short_d16_hi", 2, false, true),
    LOAD_D16("load_ubyte_d16", 1, false, false),
    LOAD_D16("load_ubyte_d16_hi", 1, false, true),
    LOAD_D16("load_sbyte_d16", 1, true, false),
    LOAD_D16("load_sbyte_d16_hi", 1, true, true),
    STORE("store_dword", 4),
    STORE("store_dwordx2", 8),
    STORE("store_dwordx3", 12),
    STORE("store_dwordx4", 16),
    STORE("store_byte", 1),
    STORE("store_short", 2),
    STORE_HIGH("store_byte_d16_hi", 1),
    STORE_HIGH("store_short_d16_hi", 2),
    TO_LDS("load_lds_dword", 4),
    TO_LDS("load_lds_dwordx3", 12),
    TO_LDS("load_lds_dwordx4", 16),
    TO_LDS("load_lds_ubyte", 1),
    TO_LDS_SIGNED("load_lds_sbyte", 1),
    TO_LDS("load_lds_ushort", 2),
    TO_LDS_SIGNED("load_lds_sshort", 2),
    /* gfx11 and gfx12 names */
    LOAD("load_b32", 4),
    LOAD("load_b64", 8),
    LOAD("load_b96", 12),
    LOAD("load_b128", 16),
    LOAD("load_u8", 1),
    LOAD_SIGNED("load_i8", 1),
    LOAD("load_u16", 2),
    LOAD_SIGNED("load_i16", 2),
    LOAD_D16("load_d16_b16", 2, false, false),
    LOAD_D16("load_d16_hi_b16", 2, false, true),
    LOAD_D16("load_d16_u8", 1, false, false),
    LOAD_D16("load_d16_hi_u8", 1, false, true),
    LOAD_D16("load_d16_i8", 1, true, false),
    LOAD_D16("load_d16_hi_i8", 1, true, true),
    STORE("store_b32", 4),
    STORE("store_b64", 8),
    STORE("store_b96", 12),
    STORE("store_b128", 16),
    STORE("store_b8", 1),
    STORE("store_b16", 2),
    STORE_HIGH("store_d16_hi_b8", 1),
    STORE_HIGH("store_d16_hi_b16", 2),
    ASYNC("load_async_to_lds_b8", 1),
    ASYNC("load_async_to_lds_b32", 4),
    ASYNC("load_async_to_lds_b64", 8),
    ASYNC("load_async_to_lds_b128", 16),
    ASYNC_FROM("store_async_from_lds_b8", 1),
    ASYNC_FROM("store_async_from_lds_b32", 4),
    ASYNC_FROM("store_async_from_lds_b64", 8),
    ASYNC_FROM("store_async_from_lds_b128", 16),
    LOAD("load_monitor_b32", 4),
    LOAD("load_monitor_b64", 8),
    LOAD("load_monitor_b128", 16),
    TRANSPOSED("load_tr_b64", 8, 8, EMU_TRANSPOSE_EIGHT),
    TRANSPOSED("load_tr_b128", 16, 16, EMU_TRANSPOSE_EIGHT),
    TRANSPOSED("load_tr16_b128", 16, 16, EMU_TRANSPOSE_EIGHT),
    TRANSPOSED("load_tr8_b64", 8, 8, EMU_TRANSPOSE_EIGHT),
    TRANSPOSED("load_tr6_b96", 12, 6, EMU_TRANSPOSE_COLUMNS),
    TRANSPOSED("load_tr4_b64", 8, 4, EMU_TRANSPOSE_COLUMNS),
    {"prefetch_b8", EMU_PREFETCH, 1, 1, 0, false, false, false, false, 0, 0},
    /* atomics: gfx9, then gfx12 */
    ATOMIC("atomic_swap", 4, EMU_SWAP),
    ATOMIC("atomic_cmpswap", 4, EMU_COMPARE_SWAP),
    ATOMIC("atomic_add", 4, EMU_ADD),
    ATOMIC("atomic_sub", 4, EMU_SUBTRACT),
    ATOMIC("atomic_smin", 4, EMU_MIN_SIGNED),
    ATOMIC("atomic_umin", 4, EMU_MIN_UNSIGNED),
    ATOMIC("atomic_smax", 4, EMU_MAX_SIGNED),
    ATOMIC("atomic_umax", 4, EMU_MAX_UNSIGNED),
    ATOMIC("atomic_and", 4, EMU_AND),
    ATOMIC("atomic_or", 4, EMU_OR),
    ATOMIC("atomic_xor", 4, EMU_XOR),
    ATOMIC("atomic_inc", 4, EMU_INCREMENT),
    ATOMIC("atomic_dec", 4, EMU_DECREMENT),
    ATOMIC("atomic_add_f32", 4, EMU_ADD_FLOAT),
    ATOMIC("atomic_pk_add_f16", 4, EMU_ADD_PACKED_F16),
    ATOMIC("atomic_pk_add_bf16", 4, EMU_ADD_PACKED_BF16),
    ATOMIC("atomic_add_f64", 8, EMU_ADD_FLOAT),
    ATOMIC("atomic_min_f64", 8, EMU_MIN_FLOAT),
    ATOMIC("atomic_max_f64", 8, EMU_MAX_FLOAT),
    ATOMIC("atomic_swap_x2", 8, EMU_SWAP),
    ATOMIC("atomic_cmpswap_x2", 8, EMU_COMPARE_SWAP),
    ATOMIC("atomic_add_x2", 8, EMU_ADD),
    ATOMIC("atomic_sub_x2", 8, EMU_SUBTRACT),
    ATOMIC("atomic_smin_x2", 8, EMU_MIN_SIGNED),
    ATOMIC("atomic_umin_x2", 8, EMU_MIN_UNSIGNED),
    ATOMIC("atomic_smax_x2", 8, EMU_MAX_SIGNED),
    ATOMIC("atomic_umax_x2", 8, EMU_MAX_UNSIGNED),
    ATOMIC("atomic_and_x2", 8, EMU_AND),
    ATOMIC("atomic_or_x2", 8, EMU_OR),
    ATOMIC("atomic_xor_x2", 8, EMU_XOR),
    ATOMIC("atomic_inc_x2", 8, EMU_INCREMENT),
    ATOMIC("atomic_dec_x2", 8, EMU_DECREMENT),
    ATOMIC("atomic_swap_b32", 4, EMU_SWAP),
    ATOMIC("atomic_cmpswap_b32", 4, EMU_COMPARE_SWAP),
    ATOMIC("atomic_add_u32", 4, EMU_ADD),
    ATOMIC("atomic_sub_u32", 4, EMU_SUBTRACT),
    ATOMIC("atomic_sub_clamp_u32", 4, EMU_ADD_CLAMPED),
    ATOMIC("atomic_cond_sub_u32", 4, EMU_CONDITIONAL_SUBTRACT),
    ATOMIC("atomic_min_i32", 4, EMU_MIN_SIGNED),
    ATOMIC("atomic_min_u32", 4, EMU_MIN_UNSIGNED),
    ATOMIC("atomic_max_i32", 4, EMU_MAX_SIGNED),
    ATOMIC("atomic_max_u32", 4, EMU_MAX_UNSIGNED),
    ATOMIC("atomic_and_b32", 4, EMU_AND),
    ATOMIC("atomic_or_b32", 4, EMU_OR),
    ATOMIC("atomic_xor_b32", 4, EMU_XOR),
    ATOMIC("atomic_inc_u32", 4, EMU_INCREMENT),
    ATOMIC("atomic_dec_u32", 4, EMU_DECREMENT),
    ATOMIC("atomic_min_num_f32", 4, EMU_MIN_FLOAT),
    ATOMIC("atomic_max_num_f32", 4, EMU_MAX_FLOAT),
    ATOMIC("atomic_swap_b64", 8, EMU_SWAP),
    ATOMIC("atomic_cmpswap_b64", 8, EMU_COMPARE_SWAP),
    ATOMIC("atomic_add_u64", 8, EMU_ADD),
    ATOMIC("atomic_sub_u64", 8, EMU_SUBTRACT),
    ATOMIC("atomic_min_i64", 8, EMU_MIN_SIGNED),
    ATOMIC("atomic_min_u64", 8, EMU_MIN_UNSIGNED),
    ATOMIC("atomic_max_i64", 8, EMU_MAX_SIGNED),
    ATOMIC("atomic_max_u64", 8, EMU_MAX_UNSIGNED),
    ATOMIC("atomic_and_b64", 8, EMU_AND),
    ATOMIC("atomic_or_b64", 8, EMU_OR),
    ATOMIC("atomic_xor_b64", 8, EMU_XOR),
    ATOMIC("atomic_inc_u64", 8, EMU_INCREMENT),
    ATOMIC("atomic_dec_u64", 8, EMU_DECREMENT),
    ATOMIC("atomic_min_num_f64", 8, EMU_MIN_FLOAT),
    ATOMIC("atomic_max_num_f64", 8, EMU_MAX_FLOAT),
};

#define PAIR(name, kind, bytes, stride)                                                                      \
  { name, kind, bytes, 2, stride, false, false, false, false, 0, 0 }

/* An LDS operation that exists with and without a returned value. */
#define BOTH(plain, returning, bytes, operation)                                                             \
  ATOMIC(plain, bytes, operation), RETURNS(returning, bytes, operation)

static const emu_access lds_accesses[] = {
    LOAD("read_b32", 4),
    LOAD("read_b64", 8),
    LOAD("read_b96", 12),
    LOAD("read_b128", 16),
    LOAD("read_u8", 1),
    LOAD_SIGNED("read_i8", 1),
    LOAD("read_u16", 2),
    LOAD_SIGNED("read_i16", 2),
    LOAD_D16("read_u8_d16", 1, false, false),
    LOAD_D16("read_u8_d16_hi", 1, false, true),
    LOAD_D16("read_i8_d16", 1, true, false),
    LOAD_D16("read_i8_d16_hi", 1, true, true),
    LOAD_D16("read_u16_d16", 2, false, false),
    LOAD_D16("read_u16_d16_hi", 2, false, true),
    PAIR("read2_b32", EMU_LOAD, 4, 0),
    PAIR("read2_b64", EMU_LOAD, 8, 0),
    PAIR("read2st64_b32", EMU_LOAD, 4, 1),
    PAIR("read2st64_b64", EMU_LOAD, 8, 1),
    STORE("write_b8", 1),
    STORE("write_b16", 2),
    STORE("write_b32", 4),
    STORE("write_b64", 8),
    STORE("write_b96", 12),
    STORE("write_b128", 16),
    STORE_HIGH("write_b8_d16_hi", 1),
    STORE_HIGH("write_b16_d16_hi", 2),
    PAIR("write2_b32", EMU_STORE, 4, 0),
    PAIR("write2_b64", EMU_STORE, 8, 0),
    PAIR("write2st64_b32", EMU_STORE, 4, 1),
    PAIR("write2st64_b64", EMU_STORE, 8, 1),
    LOAD("load_b32", 4),
    LOAD("load_b64", 8),
    LOAD("load_b96", 12),
    LOAD("load_b128", 16),
    LOAD("load_u8", 1),
    LOAD_SIGNED("load_i8", 1),
    LOAD("load_u16", 2),
    LOAD_SIGNED("load_i16", 2),
    LOAD_D16("load_u8_d16", 1, false, false),
    LOAD_D16("load_u8_d16_hi", 1, false, true),
    LOAD_D16("load_i8_d16", 1, true, false),
    LOAD_D16("load_i8_d16_hi", 1, true, true),
    LOAD_D16("load_u16_d16", 2, false, false),
    LOAD_D16("load_u16_d16_hi", 2, false, true),
    PAIR("load_2addr_b32", EMU_LOAD, 4, 0),
    PAIR("load_2addr_b64", EMU_LOAD, 8, 0),
    PAIR("load_2addr_stride64_b32", EMU_LOAD, 4, 1),
    PAIR("load_2addr_stride64_b64", EMU_LOAD, 8, 1),
    STORE("store_b8", 1),
    STORE("store_b16", 2),
    STORE("store_b32", 4),
    STORE("store_b64", 8),
    STORE("store_b96", 12),
    STORE("store_b128", 16),
    STORE_HIGH("store_b8_d16_hi", 1),
    STORE_HIGH("store_b16_d16_hi", 2),
    PAIR("store_2addr_b32", EMU_STORE, 4, 0),
    PAIR("store_2addr_b64", EMU_STORE, 8, 0),
    PAIR("store_2addr_stride64_b32", EMU_STORE, 4, 1),
    PAIR("store_2addr_stride64_b64", EMU_STORE, 8, 1),
    BOTH("add_u32", "add_rtn_u32", 4, EMU_ADD),
    BOTH("sub_u32", "sub_rtn_u32", 4, EMU_SUBTRACT),
    BOTH("rsub_u32", "rsub_rtn_u32", 4, EMU_REVERSE_SUBTRACT),
    BOTH("inc_u32", "inc_rtn_u32", 4, EMU_INCREMENT),
    BOTH("dec_u32", "dec_rtn_u32", 4, EMU_DECREMENT),
    BOTH("min_i32", "min_rtn_i32", 4, EMU_MIN_SIGNED),
    BOTH("max_i32", "max_rtn_i32", 4, EMU_MAX_SIGNED),
    BOTH("min_u32", "min_rtn_u32", 4, EMU_MIN_UNSIGNED),
    BOTH("max_u32", "max_rtn_u32", 4, EMU_MAX_UNSIGNED),
    BOTH("and_b32", "and_rtn_b32", 4, EMU_AND),
    BOTH("or_b32", "or_rtn_b32", 4, EMU_OR),
    BOTH("xor_b32", "xor_rtn_b32", 4, EMU_XOR),
    BOTH("min_f32", "min_rtn_f32", 4, EMU_MIN_FLOAT),
    BOTH("max_f32", "max_rtn_f32", 4, EMU_MAX_FLOAT),
    BOTH("min_num_f32", "min_num_rtn_f32", 4, EMU_MIN_FLOAT),
    BOTH("max_num_f32", "max_num_rtn_f32", 4, EMU_MAX_FLOAT),
    BOTH("add_f32", "add_rtn_f32", 4, EMU_ADD_FLOAT),
    BOTH("pk_add_f16", "pk_add_rtn_f16", 4, EMU_ADD_PACKED_F16),
    BOTH("pk_add_bf16", "pk_add_rtn_bf16", 4, EMU_ADD_PACKED_BF16),
    BOTH("sub_clamp_u32", "sub_clamp_rtn_u32", 4, EMU_ADD_CLAMPED),
    BOTH("cond_sub_u32", "cond_sub_rtn_u32", 4, EMU_CONDITIONAL_SUBTRACT),
    RETURNS("wrxchg_rtn_b32", 4, EMU_SWAP),
    RETURNS("wrxchg_rtn_b64", 8, EMU_SWAP),
    RETURNS("storexchg_rtn_b32", 4, EMU_SWAP),
    RETURNS("storexchg_rtn_b64", 8, EMU_SWAP),
    BOTH("cmpst_b32", "cmpst_rtn_b32", 4, EMU_COMPARE_SWAP),
    BOTH("cmpst_b64", "cmpst_rtn_b64", 8, EMU_COMPARE_SWAP),
    BOTH("cmpstore_b32", "cmpstore_rtn_b32", 4, EMU_COMPARE_SWAP),
    BOTH("cmpstore_b64", "cmpstore_rtn_b64", 8, EMU_COMPARE_SWAP),
    BOTH("add_u64", "add_rtn_u64", 8, EMU_ADD),
    BOTH("sub_u64", "sub_rtn_u64", 8, EMU_SUBTRACT),
    BOTH("min_i64", "min_rtn_i64", 8, EMU_MIN_SIGNED),
    BOTH("max_i64", "max_rtn_i64", 8, EMU_MAX_SIGNED),
    BOTH("min_u64", "min_rtn_u64", 8, EMU_MIN_UNSIGNED),
    BOTH("max_u64", "max_rtn_u64", 8, EMU_MAX_UNSIGNED),
    BOTH("and_b64", "and_rtn_b64", 8, EMU_AND),
    BOTH("or_b64", "or_rtn_b64", 8, EMU_OR),
    BOTH("xor_b64", "xor_rtn_b64", 8, EMU_XOR),
    BOTH("rsub_u64", "rsub_rtn_u64", 8, EMU_REVERSE_SUBTRACT),
    BOTH("inc_u64", "inc_rtn_u64", 8, EMU_INCREMENT),
    BOTH("dec_u64", "dec_rtn_u64", 8, EMU_DECREMENT),
    BOTH("min_num_f64", "min_num_rtn_f64", 8, EMU_MIN_FLOAT),
    BOTH("max_num_f64", "max_num_rtn_f64", 8, EMU_MAX_FLOAT),
    BOTH("add_f64", "add_rtn_f64", 8, EMU_ADD_FLOAT),
    BOTH("min_f64", "min_rtn_f64", 8, EMU_MIN_FLOAT),
    BOTH("max_f64", "max_rtn_f64", 8, EMU_MAX_FLOAT),
    TRANSPOSED("read_b64_tr_b16", 8, 16, EMU_TRANSPOSE_ROWS),
    TRANSPOSED("read_b64_tr_b8", 8, 8, EMU_TRANSPOSE_ROWS),
    TRANSPOSED("read_b96_tr_b6", 12, 6, EMU_TRANSPOSE_ROWS),
    TRANSPOSED("read_b64_tr_b4", 8, 4, EMU_TRANSPOSE_ROWS),
    TRANSPOSED("load_tr16_b128", 16, 16, EMU_TRANSPOSE_EIGHT),
    TRANSPOSED("load_tr8_b64", 8, 8, EMU_TRANSPOSE_TWO_FOURS),
    TRANSPOSED("load_tr6_b96", 12, 6, EMU_TRANSPOSE_COLUMNS),
    TRANSPOSED("load_tr4_b64", 8, 4, EMU_TRANSPOSE_COLUMNS),
};

const emu_access *emu_accesses(bool lds, size_t *out_count) {
  *out_count =
      lds ? sizeof lds_accesses / sizeof *lds_accesses : sizeof memory_accesses / sizeof *memory_accesses;
  return lds ? lds_accesses : memory_accesses;
}

const emu_access *emu_find_access(const char *name, bool lds) {
  size_t count;
  const emu_access *table = emu_accesses(lds, &count);
  for (size_t n = 0; n < count; ++n)
    if (strcmp(table[n].name, name) == 0) return &table[n];
  return NULL;
}

/* ---- Where ---- */

/* Four words of scalars. Until gfx12: base 47:0, stride 61:48, num_records 95:64. gfx1250, as LLVM makes
 * them: base 56:0, num_records 101:57, stride 121:108. */
emu_buffer emu_read_buffer(const emu_wave *w, int index) {
  uint64_t low = emu_pair(w, index), high = emu_pair(w, index + 2);
  if (w->target->wide_buffers)
    return (emu_buffer){low & ((UINT64_C(1) << 57) - 1), (high & ((UINT64_C(1) << 38) - 1)) << 7 | low >> 57,
                        high >> 44 & 0x3fff};
  return (emu_buffer){low & ((UINT64_C(1) << 48) - 1), (uint32_t)high, low >> 48 & 0x3fff};
}

/* Where one lane's access goes. */
typedef struct place {
  emu_space space; /* EMU_GLOBAL, EMU_LDS or EMU_SCRATCH */
  uint64_t address;
  bool dropped;   /* a buffer access beyond num_records: reads 0, writes nothing */
  uint32_t bytes; /* 0: all; else how many of them lie before num_records */
} place;

/* Operands of an access, found once for all lanes. `data` is where values come from or go to. */
typedef struct operands {
  const emu_operand *address, *scalar, *data, *result;
  emu_buffer buffer;
  uint32_t buffer_offset; /* the scalar one */
} operands;

/* Text order. global, flat, scratch: [result,] address, [data,] saddr. buffer: data, address, resource,
 * offset. ds: [result,] address, data, data. */
static operands find_operands(emu_wave *w, const emu_instruction *i) {
  operands o = {NULL, NULL, NULL, NULL, {0, 0, 0}, 0};
  int n = 0;
  emu_access_kind kind = i->access->kind;
  if (i->space == EMU_BUFFER) {
    if (!i->lds) o.data = o.result = &i->operand[n++];
    if (i->operand_count - n > 2) o.address = &i->operand[n++];
    if (o.address && o.address->kind == EMU_OFF) o.address = NULL;
    const emu_operand *resource = &i->operand[n++];
    o.buffer = emu_read_buffer(w, resource->index);
    o.buffer_offset = emu_scalar32(w, &i->operand[n]);
    if (kind == EMU_ATOMIC && !(i->sc0 || i->glc)) o.result = NULL;
    return o;
  }
  if (i->source0) o.result = &i->operand[n++];
  if (kind == EMU_ASYNC_TO_LDS || kind == EMU_ASYNC_FROM_LDS) {
    /* to LDS: LDS address, memory address; from LDS: memory address, LDS address */
    const emu_operand *first = &i->operand[n++], *second = &i->operand[n++];
    o.data = kind == EMU_ASYNC_TO_LDS ? first : second;
    o.address = kind == EMU_ASYNC_TO_LDS ? second : first;
  } else {
    o.address = &i->operand[n++];
    if (kind == EMU_STORE || kind == EMU_ATOMIC) o.data = &i->operand[n++];
  }
  if (n < i->operand_count && i->space != EMU_LDS) o.scalar = &i->operand[n];
  if (o.scalar && o.scalar->kind == EMU_OFF) o.scalar = NULL;
  return o;
}

static uint64_t vector64(emu_wave *w, const emu_operand *o, int lane) {
  uint32_t row = emu_row_of(w, o);
  return (uint64_t)w->v[row + 1][lane] << 32 | w->v[row][lane];
}

static uint32_t vector32(emu_wave *w, const emu_operand *o, int lane) {
  return w->v[emu_row_of(w, o)][lane];
}

/* gfx1250 makes scratch globally addressable: bits 62:52 carry the lane. Only a lane's own scratch is reached
 * that way here. */
#define LANE_FREE_ADDRESS UINT64_C(0x000fffffffffffff)

static place resolve_flat(const emu_wave *w, uint64_t address) {
  if (w->target->global_scratch && ((address & LANE_FREE_ADDRESS) >> 32) == (EMU_PRIVATE_APERTURE >> 32))
    return (place){EMU_SCRATCH, address & UINT32_MAX, false, 0};
  if ((address >> 32) == (EMU_SHARED_APERTURE >> 32)) return (place){EMU_LDS, address & UINT32_MAX, false, 0};
  if ((address >> 32) == (EMU_PRIVATE_APERTURE >> 32))
    return (place){EMU_SCRATCH, address & UINT32_MAX, false, 0};
  return (place){EMU_GLOBAL, address, false, 0};
}

static place buffer_place(emu_wave *w, const emu_instruction *i, const operands *o, int lane) {
  const emu_buffer *b = &o->buffer;
  uint64_t index = 0, offset = (uint64_t)i->offset;
  if (i->idxen) index = vector32(w, o->address, lane);
  if (i->offen) {
    emu_operand second = *o->address;
    if (i->idxen) ++second.index;
    offset += vector32(w, &second, lane);
  }
  uint32_t bytes = i->access->bytes;
  place p = {EMU_GLOBAL, b->base + o->buffer_offset + index * b->stride + offset, false, 0};
  if (b->stride) {
    p.dropped = index >= b->records || (i->offen && offset + bytes > b->stride);
    return p;
  }
  /* Loads and stores of several words are checked word by word, all else as a whole (ISA documents, range
   * checking). */
  uint64_t start = offset + o->buffer_offset, room = start < b->records ? b->records - start : 0;
  emu_access_kind kind = i->access->kind;
  bool by_word = (kind == EMU_LOAD || kind == EMU_STORE) && !i->lds;
  if (room < bytes) {
    p.bytes = by_word ? (uint32_t)room & ~3u : 0;
    p.dropped = p.bytes == 0;
  }
  return p;
}

static place place_of(emu_wave *w, const emu_instruction *i, const operands *o, int lane) {
  switch ((emu_space)i->space) {
  case EMU_LDS:
    return (place){EMU_LDS, vector32(w, o->address, lane) + (uint32_t)i->offset, false, 0};
  case EMU_BUFFER:
    return buffer_place(w, i, o, lane);
  case EMU_SCRATCH: {
    uint64_t offset = (uint64_t)i->offset;
    if (o->scalar) offset += emu_scalar32(w, o->scalar);
    if (o->address->kind == EMU_VECTOR) offset += vector32(w, o->address, lane);
    return (place){EMU_SCRATCH, offset & UINT32_MAX, false, 0};
  }
  default: {
    uint64_t address;
    if (o->scalar) {
      uint64_t offset = vector32(w, o->address, lane);
      if (w->target->signed_address_offset) offset = (uint64_t)(int64_t)(int32_t)offset;
      if (i->scale_offset) offset *= i->access->bytes;
      address = emu_scalar64(w, o->scalar) + offset;
    } else {
      address = vector64(w, o->address, lane);
    }
    address += (uint64_t)i->offset;
    return i->space == EMU_FLAT ? resolve_flat(w, address) : (place){EMU_GLOBAL, address, false, 0};
  }
  }
}

/* Memory and LDS take any address: the HSA runtime sets unaligned access mode, and LLVM counts on it when it
 * merges half words into a word, or puts a lane's array of bytes into LDS. LDS atomics and accesses of two
 * places are held to words all the same. */
static bool aligned(emu_wave *w, const emu_instruction *i, int lane, uint64_t address, uint32_t bytes) {
  uint32_t need = bytes >= 4 ? 4 : bytes;
  bool any = i->access->kind != EMU_ATOMIC && i->access->elements <= 1;
  if (any || address % need == 0) return true;
  emu_fault(w, i, lane, "misaligned access: %u bytes at 0x%llx", bytes, (unsigned long long)address);
  return false;
}

static uint8_t *resolve(emu_wave *w, const emu_instruction *i, place p, int lane, uint32_t bytes,
                        bool write) {
  if (p.space == EMU_LDS) {
    if (!aligned(w, i, lane, p.address, bytes)) return NULL;
    emu_touch touch = i->access->kind == EMU_ATOMIC ? EMU_TOUCH_ATOMIC
                      : write                       ? EMU_TOUCH_WRITE
                                                    : EMU_TOUCH_READ;
    return emu_lds(w, i, lane, (uint32_t)p.address, bytes, touch);
  }
  if (p.space == EMU_SCRATCH) return emu_scratch(w, i, lane, p.address, bytes);
  return emu_global(w, i, lane, p.address, bytes, write);
}

/* ---- Loads and stores ---- */

/* One element from memory into its registers of one lane. */
EMU_GUEST static void load_element(emu_wave *w, const emu_access *a, uint32_t row, int lane,
                                   const uint8_t *from) {
  if (a->bytes >= 4) {
    for (uint32_t n = 0; n < a->bytes / 4u; ++n)
      memcpy(&w->v[row + n][lane], from + 4 * n, 4);
    return;
  }
  uint32_t value = from[0];
  if (a->bytes == 2) value |= (uint32_t)from[1] << 8;
  if (a->sign_extend)
    value = a->bytes == 1 ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)(int32_t)(int16_t)value;
  uint32_t *to = &w->v[row][lane];
  if (!a->d16) {
    *to = value;
  } else if (a->d16_high) {
    *to = (*to & 0xffff) | value << 16;
  } else {
    *to = (*to & 0xffff0000u) | (value & 0xffff);
  }
}

EMU_GUEST static void store_element(const emu_wave *w, const emu_access *a, const emu_operand *data,
                                    uint32_t row, int lane, uint8_t *to) {
  uint32_t value = w->v[row][lane];
  switch (a->bytes) {
  case 1:
  case 2:
    if (a->d16_high || data->high) value >>= 16;
    to[0] = (uint8_t)value;
    if (a->bytes == 2) to[1] = (uint8_t)(value >> 8);
    break;
  default:
    for (uint32_t n = 0; n < a->bytes / 4u; ++n)
      memcpy(to + 4 * n, &w->v[row + n][lane], 4);
    break;
  }
}

/* The n-th address of ds_read2 and its like; one address otherwise. */
static place element_place(const emu_instruction *i, place p, int n) {
  const emu_access *a = i->access;
  if (a->elements > 1)
    p.address += (uint64_t)(n ? i->offset1 : i->offset0) * a->bytes * (a->stride64 ? 64 : 1);
  return p;
}

static void load(emu_wave *w, const emu_instruction *i) {
  const emu_access *a = i->access;
  operands o = find_operands(w, i);
  emu_access halved = *a; /* true16: v0.h as a destination */
  if (o.result->half) {
    halved.d16 = true;
    halved.d16_high = o.result->high;
  }
  uint32_t first = emu_row_of(w, o.result), words = a->bytes < 4 ? 1 : a->bytes / 4u;
  static const uint8_t zeros[16];
  /* The address may be one of the registers that the load overwrites: all addresses first. */
  place places[EMU_LANES];
  uint64_t exec = emu_exec(w);
  for (uint64_t left = exec; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    places[lane] = place_of(w, i, &o, lane);
  }
  for (uint64_t left = exec; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    for (int n = 0; n < a->elements; ++n) {
      place p = element_place(i, places[lane], n);
      const uint8_t *from = p.dropped ? zeros : resolve(w, i, p, lane, p.bytes ? p.bytes : a->bytes, false);
      if (!from) return;
      uint8_t part[16] = {0}; /* words out of range read 0 */
      if (p.bytes) {
        emu_copy(part, from, p.bytes);
        from = part;
      }
      load_element(w, &halved, first + (uint32_t)n * words, lane, from);
    }
  }
}

static void store(emu_wave *w, const emu_instruction *i) {
  const emu_access *a = i->access;
  operands o = find_operands(w, i);
  for (uint64_t left = emu_exec(w); left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    place base = place_of(w, i, &o, lane);
    for (int n = 0; n < a->elements; ++n) {
      place p = element_place(i, base, n);
      if (p.dropped) continue;
      uint8_t *to = resolve(w, i, p, lane, p.bytes ? p.bytes : a->bytes, true), part[16];
      if (!to) return;
      /* ds_write2: the second value is the operand after the first. */
      const emu_operand *data = n ? o.data + 1 : o.data;
      store_element(w, a, data, emu_row_of(w, data), lane, p.bytes ? part : to);
      if (p.bytes) emu_copy(to, part, p.bytes);
    }
  }
}

/* ---- Memory to LDS and back ---- */

/* The bytes count as there only when the copy has been waited for. */
static void lands(emu_wave *w, emu_counter counter, uint32_t offset, uint32_t bytes) {
  if (!w->state->watch) return;
  w->group->copies_in_flight = true;
  emu_watch_landing(w, counter, offset, offset + bytes);
}

/* LDS address: M0 + offset + lane * size; the offset counts on both sides. */
EMU_GUEST static void load_to_lds(emu_wave *w, const emu_instruction *i) {
  operands o = find_operands(w, i);
  uint32_t bytes = i->access->bytes, slot = bytes < 4 ? 4 : bytes;
  for (uint64_t left = emu_exec(w); left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    place p = place_of(w, i, &o, lane);
    static const uint8_t zeros[16];
    const uint8_t *from = p.dropped ? zeros : resolve(w, i, p, lane, bytes, false);
    if (!from) return;
    uint32_t offset = w->s[EMU_S_M0] + (uint32_t)i->offset + (uint32_t)lane * slot;
    uint8_t *to = resolve(w, i, (place){EMU_LDS, offset, false, 0}, lane, slot, true);
    if (!to) return;
    /* A narrow element fills its word, extended as into a register. */
    bool negative = bytes < 4 && i->access->sign_extend && from[bytes - 1] >> 7;
    if (bytes < 4) memset(to, negative ? 0xff : 0, 4);
    emu_copy(to, from, bytes);
    if (w->state->watch && !p.dropped && p.space == EMU_GLOBAL) emu_watch_copied(w, p.address, offset, bytes);
    lands(w, EMU_COUNTER_LOAD, offset, slot);
  }
}

static void async_copy(emu_wave *w, const emu_instruction *i) {
  operands o = find_operands(w, i);
  bool to_lds = i->access->kind == EMU_ASYNC_TO_LDS;
  uint32_t bytes = i->access->bytes;
  for (uint64_t left = emu_exec(w); left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    uint32_t offset = vector32(w, o.data, lane) + (uint32_t)i->offset;
    place p = place_of(w, i, &o, lane);
    uint8_t *memory = resolve(w, i, p, lane, bytes, !to_lds);
    uint8_t *lds = memory ? resolve(w, i, (place){EMU_LDS, offset, false, 0}, lane, bytes, to_lds) : NULL;
    if (!lds) return;
    emu_copy(to_lds ? lds : memory, to_lds ? memory : lds, bytes);
    if (to_lds && w->state->watch && p.space == EMU_GLOBAL) emu_watch_copied(w, p.address, offset, bytes);
    if (to_lds) lands(w, EMU_COUNTER_ASYNC, offset, bytes);
  }
}

static void prefetch(emu_wave *w, const emu_instruction *i) {
  (void)w;
  (void)i;
}

/* ---- Atomics ---- */

static uint64_t float_result(uint64_t old, uint64_t data, uint32_t bytes, emu_atomic operation) {
  if (bytes == 8) {
    double x = emu_double((uint32_t)old, (uint32_t)(old >> 32)),
           y = emu_double((uint32_t)data, (uint32_t)(data >> 32));
    double r = operation == EMU_ADD_FLOAT ? x + y : operation == EMU_MIN_FLOAT ? fmin(x, y) : fmax(x, y);
    return emu_double_bits(r);
  }
  float x = emu_float((uint32_t)old), y = emu_float((uint32_t)data);
  float r = operation == EMU_ADD_FLOAT ? x + y : operation == EMU_MIN_FLOAT ? fminf(x, y) : fmaxf(x, y);
  return emu_bits(r);
}

static uint32_t packed_sum(uint32_t old, uint32_t data, emu_format_id format) {
  uint32_t r = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    double sum = (double)emu_decode(format, old >> shift & 0xffff) +
                 (double)emu_decode(format, data >> shift & 0xffff);
    r |= emu_encode(format, sum, EMU_ROUND_NEAREST_EVEN, false) << shift;
  }
  return r;
}

static int64_t signed_value(uint64_t value, uint32_t bytes) {
  return bytes == 8 ? (int64_t)value : (int64_t)(int32_t)(uint32_t)value;
}

static uint64_t atomic_result(const emu_access *a, uint64_t old, uint64_t data, uint64_t expected) {
  switch ((emu_atomic)a->atomic) {
  case EMU_SWAP:
    return data;
  case EMU_COMPARE_SWAP:
    return old == expected ? data : old;
  case EMU_ADD:
    return old + data;
  case EMU_SUBTRACT:
    return old - data;
  case EMU_REVERSE_SUBTRACT:
    return data - old;
  case EMU_MIN_SIGNED:
    return signed_value(old, a->bytes) < signed_value(data, a->bytes) ? old : data;
  case EMU_MAX_SIGNED:
    return signed_value(old, a->bytes) > signed_value(data, a->bytes) ? old : data;
  case EMU_MIN_UNSIGNED:
    return old < data ? old : data;
  case EMU_MAX_UNSIGNED:
    return old > data ? old : data;
  case EMU_AND:
    return old & data;
  case EMU_OR:
    return old | data;
  case EMU_XOR:
    return old ^ data;
  case EMU_INCREMENT:
    return old >= data ? 0 : old + 1;
  case EMU_DECREMENT:
    return old == 0 || old > data ? data : old - 1;
  case EMU_ADD_CLAMPED:
    return old < data ? 0 : old - data;
  case EMU_CONDITIONAL_SUBTRACT:
    return old >= data ? old - data : old;
  case EMU_ADD_FLOAT:
  case EMU_MIN_FLOAT:
  case EMU_MAX_FLOAT:
    return float_result(old, data, a->bytes, (emu_atomic)a->atomic);
  case EMU_ADD_PACKED_F16:
    return packed_sum((uint32_t)old, (uint32_t)data, EMU_FORMAT_F16);
  case EMU_ADD_PACKED_BF16:
    return packed_sum((uint32_t)old, (uint32_t)data, EMU_FORMAT_BF16);
  }
  return old;
}

/* Other workgroups run on other threads: the update is a compare-and-swap on the host. */
static uint64_t atomic_update(const emu_access *a, uint8_t *at, uint64_t data, uint64_t expected) {
  if (a->bytes == 8) {
    uint64_t *p = (uint64_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, atomic_result(a, old, data, expected), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return old;
  }
  uint32_t *p = (uint32_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      p, &old, (uint32_t)atomic_result(a, old, data & UINT32_MAX, expected & UINT32_MAX), false,
      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}

static uint64_t data_word(emu_wave *w, const emu_operand *o, uint32_t index, uint32_t bytes, int lane) {
  uint32_t row = emu_row_of(w, o) + index * (bytes / 4);
  return bytes == 8 ? (uint64_t)w->v[row + 1][lane] << 32 | w->v[row][lane] : w->v[row][lane];
}

static void atomic(emu_wave *w, const emu_instruction *i) {
  const emu_access *a = i->access;
  operands o = find_operands(w, i);
  uint64_t exec = emu_exec(w);
  for (uint64_t left = exec; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    place p = place_of(w, i, &o, lane);
    uint64_t data = data_word(w, o.data, 0, a->bytes, lane), expected = 0, old = 0;
    if (a->atomic == EMU_COMPARE_SWAP) {
      if (i->space ==
          EMU_LDS) { /* gfx9: expected value, then new value; gfx12's cmpstore: new value, then expected */
        bool new_first = strncmp(a->name, "cmpstore", 8) == 0;
        uint64_t other = data_word(w, o.data + 1, 0, a->bytes, lane);
        expected = new_first ? other : data;
        data = new_first ? data : other;
      } else {
        expected = data_word(w, o.data, 1, a->bytes, lane);
      }
    }
    if (!p.dropped) {
      if (p.address % a->bytes) {
        emu_fault(w, i, lane, "misaligned atomic: %u bytes at 0x%llx", a->bytes,
                  (unsigned long long)p.address);
        return;
      }
      uint8_t *at = resolve(w, i, p, lane, a->bytes, true);
      if (!at) return;
      old = atomic_update(a, at, data, expected);
    }
    if (o.result) {
      uint32_t row = emu_row_of(w, o.result);
      w->v[row][lane] = (uint32_t)old;
      if (a->bytes == 8) w->v[row + 1][lane] = (uint32_t)(old >> 32);
    }
  }
}

/* ---- Transposed loads ---- */

/* `bits` bits from bit `at` of bytes that end with `size`. */
static uint32_t bits_of(const uint8_t *bytes, unsigned size, unsigned at, unsigned bits) {
  uint32_t word = bytes[at / 8];
  if (at / 8 + 1 < size) word |= (uint32_t)bytes[at / 8 + 1] << 8;
  return word >> at % 8 & ((1u << bits) - 1);
}

/* Every lane fetches its bytes, then elements change lanes (transpose.c). EXEC must be all ones: what
 * inactive lanes contribute is not documented. */
static void load_transposed(emu_wave *w, const emu_instruction *i) {
  enum { MAX_BYTES = 16 };
  const emu_access *a = i->access;
  if (emu_exec(w) != (w->lanes == 64 ? UINT64_MAX : UINT32_MAX)) {
    emu_fault(w, i, -1, "a transposed load needs all lanes active");
    return;
  }
  if (a->layout != EMU_TRANSPOSE_ROWS && w->lanes == 64) {
    emu_fault(w, i, -1, "the emulator does not implement this transposed load in a wave of 64 lanes");
    return;
  }
  operands o = find_operands(w, i);
  unsigned bits = a->atomic, per = a->bytes * 8u / bits;
  uint8_t in[EMU_LANES][MAX_BYTES];
  for (int lane = 0; lane < w->lanes; ++lane) {
    const uint8_t *from = resolve(w, i, place_of(w, i, &o, lane), lane, a->bytes, false);
    if (!from) return;
    emu_copy(in[lane], from, a->bytes);
  }
  uint32_t row = emu_row_of(w, o.result);
  for (int lane = 0; lane < w->lanes; ++lane) {
    uint64_t pending = 0;
    unsigned filled = 0, word = 0;
    for (unsigned e = 0; e < per; ++e) {
      emu_origin from = emu_transposed_origin(a, (unsigned)lane, e);
      pending |= (uint64_t)bits_of(in[from.lane], a->bytes, from.index * bits, bits) << filled;
      filled += bits;
      for (; filled >= 32; filled -= 32, pending >>= 32)
        w->v[row + word++][lane] = (uint32_t)pending;
    }
  }
}

emu_handler emu_access_handler(const emu_access *access, bool to_lds) {
  if (to_lds) return load_to_lds;
  switch (access->kind) {
  case EMU_LOAD:
    return load;
  case EMU_STORE:
    return store;
  case EMU_ATOMIC:
    return atomic;
  case EMU_LOAD_TO_LDS:
    return load_to_lds;
  case EMU_ASYNC_TO_LDS:
  case EMU_ASYNC_FROM_LDS:
    return async_copy;
  case EMU_LOAD_TRANSPOSED:
    return load_transposed;
  case EMU_PREFETCH:
    return prefetch;
  }
  return NULL;
}
