/* gfx1250's tensor copies between memory and LDS. One instruction of a wave moves a tile that two descriptors
 * in scalars describe.
 *
 * Group 0 (4 words): word 0 bit 0 predicate; word 1 LDS address; words 2-3 memory address (57 bits), type 2
 * in bits 127:126. Group 1 (8 words), bits: 17:16 log2 of the element's bytes; 20 padding on; 24:22
 * log2(interval in words) - 1; 31:25 padding words - 1; 79:48 and 111:80 tensor's extent in dimensions 0 and
 * 1; 127:112, 143:128, 159:144 the tile's extents; 207:160 stride of dimension 1 in elements. As the Triton
 * compiler's AMD back end writes them. Elements outside the tensor read as 0 and are not written. What else
 * the descriptor can ask for (multicast, gather, iteration, three and more dimensions) is refused. */
#include "execute.h"

typedef struct tile {
  bool enabled;
  uint32_t lds, element_bytes;
  uint64_t memory, stride; /* of dimension 1, elements */
  uint32_t tensor[2], extent[2];
  uint32_t pad_interval, pad_words; /* words of data between paddings; 0: none */
} tile;

enum { MULTICAST_MASK = 0xffff, BARRIER_ENABLE = 1 << 18, ITERATE_ENABLE = 1 << 19, PAD_ENABLE = 1 << 20 };

static bool read_tile(emu_wave *w, const emu_instruction *i, tile *t) {
  const uint32_t *a = &w->s[i->operand[0].index], *b = &w->s[i->operand[1].index];
  t->enabled = a[0] & 1;
  t->lds = a[1];
  t->memory = (uint64_t)(a[3] & 0x01ffffff) << 32 | a[2];
  t->element_bytes = 1u << (b[0] >> 16 & 3);
  t->tensor[0] = b[1] >> 16 | b[2] << 16;
  t->tensor[1] = b[2] >> 16 | b[3] << 16;
  t->extent[0] = b[3] >> 16;
  t->extent[1] = b[4] & 0xffff;
  t->stride = (uint64_t)(b[6] & 0xffff) << 32 | b[5];
  t->pad_interval = b[0] & PAD_ENABLE ? 2u << (b[0] >> 22 & 7) : 0;
  t->pad_words = (b[0] >> 25) + 1;
  if (!t->enabled) return true;
  if (a[0] >> 2 || a[3] >> 30 != 2) {
    emu_fault(w, i, -1,
              "the emulator does not implement this tensor descriptor: group 0 has words 0x%x, 0x%x", a[0],
              a[3]);
    return false;
  }
  if (b[0] & (MULTICAST_MASK | BARRIER_ENABLE | ITERATE_ENABLE) || b[4] >> 16 > 1) {
    emu_fault(w, i, -1,
              "the emulator does not implement this tensor descriptor: group 1 has words 0x%x, 0x%x", b[0],
              b[4]);
    return false;
  }
  if (t->extent[1] == 0) t->extent[1] = 1; /* a tile of one dimension */
  return true;
}

static void copy_tile(emu_wave *w, const emu_instruction *i, bool to_lds) {
  tile t;
  if (!read_tile(w, i, &t) || !t.enabled) return;
  uint64_t packed = 0; /* bytes of data so far; padding follows every interval */
  for (uint32_t y = 0; y < t.extent[1]; ++y) {
    for (uint32_t x = 0; x < t.extent[0]; ++x, packed += t.element_bytes) {
      uint64_t padding = t.pad_interval ? packed / (4 * t.pad_interval) * 4 * t.pad_words : 0;
      uint8_t *lds = emu_lds(w, i, -1, (uint32_t)(t.lds + packed + padding), t.element_bytes,
                             to_lds ? EMU_TOUCH_WRITE : EMU_TOUCH_READ);
      if (!lds) return;
      if (to_lds && w->state->watch) {
        w->group->copies_in_flight = true;
        uint32_t start = (uint32_t)(t.lds + packed + padding);
        emu_watch_landing(w, EMU_COUNTER_TENSOR, start, start + t.element_bytes);
      }
      bool inside = x < t.tensor[0] && (y < t.tensor[1] || t.extent[1] == 1);
      if (!inside) {
        if (to_lds) memset(lds, 0, t.element_bytes);
        continue;
      }
      uint64_t address = t.memory + (y * t.stride + x) * t.element_bytes;
      uint8_t *memory = emu_global(w, i, -1, address, t.element_bytes, !to_lds);
      if (!memory) return;
      memcpy(to_lds ? lds : memory, to_lds ? memory : lds, t.element_bytes);
    }
  }
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
