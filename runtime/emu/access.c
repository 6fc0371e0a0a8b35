/* Loads, stores and atomics of all address spaces, and copies between memory and LDS: where they go, and what
 * they move. Rows: access_table.c. */
#include "access.h"
#include "execute.h"
#include "hot.h"

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

static uint32_t words_of(const emu_access *a) {
  return a->bytes < 4 ? 1 : a->bytes / 4u;
}

/* Encodings can name fewer registers than what moves takes, and registers at the end of those that there are.
 */
static bool has_rows(emu_wave *w, const emu_instruction *i, const emu_operand *o, uint32_t words) {
  if (!o || emu_row_of(w, o) + words <= w->vector_rows) return true;
  emu_fault(w, i, -1, "moves %u words of registers from %u on, of %u", (unsigned)words,
            (unsigned)emu_row_of(w, o), (unsigned)w->vector_rows);
  return false;
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
  uint32_t first = emu_row_of(w, o.result), words = words_of(a);
  if (!has_rows(w, i, o.result, (uint32_t)a->elements * words)) return;
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
  for (int n = 0; n < a->elements; ++n)
    if (!has_rows(w, i, n ? o.data + 1 : o.data, words_of(a))) return;
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

static uint64_t data_word(emu_wave *w, const emu_operand *o, uint32_t index, uint32_t bytes, int lane) {
  uint32_t row = emu_row_of(w, o) + index * (bytes / 4);
  return bytes == 8 ? (uint64_t)w->v[row + 1][lane] << 32 | w->v[row][lane] : w->v[row][lane];
}

static void atomic(emu_wave *w, const emu_instruction *i) {
  const emu_access *a = i->access;
  operands o = find_operands(w, i);
  uint64_t exec = emu_exec(w);
  const bool swaps = a->atomic == EMU_COMPARE_SWAP, second = swaps && i->space == EMU_LDS;
  if (!has_rows(w, i, o.data, words_of(a) * (swaps && !second ? 2 : 1)) ||
      !has_rows(w, i, second ? o.data + 1 : NULL, words_of(a)) || !has_rows(w, i, o.result, words_of(a)))
    return;
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
      old = emu_atomic_update(a, at, data, expected);
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
  if (!has_rows(w, i, o.result, words_of(a))) return;
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
