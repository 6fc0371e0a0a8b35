/* gfx1250's tensor copies between memory and LDS. One instruction of a wave moves a tile of one to five
 * dimensions that two or four descriptors in scalars describe; dimension 0 is the innermost. Fields as the
 * Triton compiler's AMD back end writes them, bits of a group counted from its first word:
 *
 * group 0 (4 words): 1:0 predicate; 63:32 LDS address; 120:64 memory address; 127:126 type, 2.
 * group 1 (8 words): 15:0 workgroups of the cluster that get the tile; 17:16 log2 of the element's bytes; 20
 *   padding on; 24:22 log2(interval in words) - 1; 31:25 padding words - 1; 79:48, 111:80 the tensor's extent
 *   in dimensions 0 and 1; 127:112, 143:128, 159:144 the tile's in 0, 1, 2; 207:160, 255:208 stride of
 *   dimensions 1 and 2, elements.
 * group 2 (4 words): 31:0, 63:32 the tensor's extent in dimensions 2 and 3; 111:64 stride of dimension 3;
 *   127:112 the tile's extent in 3.
 * group 3 (4 words): 47:0 stride of dimension 4; 79:48 the tensor's extent in 4; 95:80 the tile's.
 *
 * A dimension whose extents are 0 (the tile's also 1) does not exist. Elements outside the tensor read as 0
 * and are not written. Clusters are not simulated: a workgroup is its own cluster, so a tile may go to it
 * (bit 0) and to nobody else. Gathering, iteration and barriers at the end are refused. */
#include "execute.h"

enum { DIMENSIONS = 5 };

typedef struct tile {
  bool enabled;
  uint32_t lds, element_bytes;
  uint64_t memory;
  uint64_t tensor[DIMENSIONS], extent[DIMENSIONS], stride[DIMENSIONS]; /* strides in elements */
  uint32_t pad_interval, pad_words; /* words of data between paddings; 0: none */
} tile;

enum { OTHER_WORKGROUPS = 0xfffe, BARRIER_ENABLE = 1 << 18, ITERATE_ENABLE = 1 << 19, PAD_ENABLE = 1 << 20 };

/* `width` bits, at most 48, from bit `at` of consecutive words. */
static uint64_t field(const uint32_t *words, unsigned at, unsigned width) {
  uint64_t value = words[at / 32] >> at % 32;
  unsigned have = 32 - at % 32;
  for (unsigned n = at / 32 + 1; have < width; ++n, have += 32)
    value |= (uint64_t)words[n] << have;
  return value & ((UINT64_C(1) << width) - 1);
}

/* Groups 2 and 3 hold dimensions past the second; operands that are off leave those out. */
static const uint32_t *group_at(const emu_wave *w, const emu_instruction *i, int n) {
  static const uint32_t none[4];
  bool present = n < i->operand_count && i->operand[n].kind == EMU_SCALAR && i->operand[n].count == 4;
  return present ? &w->s[i->operand[n].index] : none;
}

static bool read_tile(emu_wave *w, const emu_instruction *i, tile *t) {
  const uint32_t *a = &w->s[i->operand[0].index], *b = &w->s[i->operand[1].index];
  const uint32_t *c = group_at(w, i, 2), *d = group_at(w, i, 3);
  t->enabled = a[0] & 1;
  t->lds = a[1];
  t->memory = field(a, 64, 32) | field(a, 96, 25) << 32;
  t->element_bytes = 1u << (b[0] >> 16 & 3);
  t->pad_interval = b[0] & PAD_ENABLE ? 2u << (b[0] >> 22 & 7) : 0;
  t->pad_words = (b[0] >> 25) + 1;
  const uint64_t tensor[] = {field(b, 48, 32), field(b, 80, 32), c[0], c[1], field(d, 48, 32)};
  const uint64_t extent[] = {field(b, 112, 16), field(b, 128, 16), field(b, 144, 16), field(c, 112, 16),
                             field(d, 80, 16)};
  const uint64_t stride[] = {1, field(b, 160, 48), field(b, 208, 48), field(c, 64, 48), field(d, 0, 48)};
  if (!t->enabled) return true;
  if (a[0] >> 2 || a[3] >> 30 != 2) {
    emu_fault(w, i, -1,
              "the emulator does not implement this tensor descriptor: group 0 has words 0x%x, 0x%x", a[0],
              a[3]);
    return false;
  }
  if (b[0] & (OTHER_WORKGROUPS | BARRIER_ENABLE | ITERATE_ENABLE)) {
    emu_fault(w, i, -1, "the emulator does not implement this tensor descriptor: group 1 begins with 0x%x",
              b[0]);
    return false;
  }
  for (int n = 0; n < DIMENSIONS; ++n) {
    bool absent = n > 0 && extent[n] <= 1 && tensor[n] == 0;
    t->tensor[n] = absent ? 1 : tensor[n];
    t->extent[n] = absent ? 1 : extent[n];
    t->stride[n] = stride[n];
  }
  return true;
}

/* The next element of the tile, dimension 0 first; false after the last. */
static bool advance(const tile *t, uint64_t at[DIMENSIONS]) {
  for (int n = 0; n < DIMENSIONS; ++n) {
    if (++at[n] < t->extent[n]) return true;
    at[n] = 0;
  }
  return false;
}

static void copy_tile(emu_wave *w, const emu_instruction *i, bool to_lds) {
  tile t;
  if (!read_tile(w, i, &t) || !t.enabled || t.extent[0] == 0) return;
  uint64_t at[DIMENSIONS] = {0}, packed = 0; /* bytes of data so far; padding follows every interval */
  do {
    uint64_t padding = t.pad_interval ? packed / (4 * t.pad_interval) * 4 * t.pad_words : 0;
    uint32_t offset = (uint32_t)(t.lds + packed + padding);
    uint8_t *lds = emu_lds(w, i, -1, offset, t.element_bytes, to_lds ? EMU_TOUCH_WRITE : EMU_TOUCH_READ);
    if (!lds) return;
    if (to_lds && w->state->watch) {
      w->group->copies_in_flight = true;
      emu_watch_landing(w, EMU_COUNTER_TENSOR, offset, offset + t.element_bytes);
    }
    packed += t.element_bytes;
    bool inside = true;
    uint64_t element = 0;
    for (int n = 0; n < DIMENSIONS; ++n) {
      inside = inside && at[n] < t.tensor[n];
      element += at[n] * t.stride[n];
    }
    if (!inside) {
      if (to_lds) memset(lds, 0, t.element_bytes);
      continue;
    }
    uint64_t address = t.memory + element * t.element_bytes;
    uint8_t *memory = emu_global(w, i, -1, address, t.element_bytes, !to_lds);
    if (!memory) return;
    if (to_lds && w->state->watch) emu_watch_copied(w, address, offset, t.element_bytes);
    emu_copy(to_lds ? lds : memory, to_lds ? memory : lds, t.element_bytes);
  } while (advance(&t, at));
}

static void tensor_load_to_lds(emu_wave *w, const emu_instruction *i) {
  copy_tile(w, i, true);
}
static void tensor_store_from_lds(emu_wave *w, const emu_instruction *i) {
  copy_tile(w, i, false);
}

const emu_row emu_tensor_rows[] = {
    {"tensor_load_to_lds", tensor_load_to_lds, 0, EMU_NO_DESTINATION | EMU_MEMORY},
    {"tensor_store_from_lds", tensor_store_from_lds, 0, EMU_NO_DESTINATION | EMU_MEMORY},
    {NULL, NULL, 0, 0},
};
