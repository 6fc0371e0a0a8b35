#include "fuzz.h"
#include "../../generator/layout.h"
#include <string.h>

enum { MOST_ITEMS = 24 };

/* Offsets lie in the array, and fewest factors mean the same. */
static void hold_offsets(const layout *l, const layout *fewest, int64_t page, int64_t head_dim,
                         uint32_t hash) {
  enum { PAGES = 3, HEADS = 2 };
  int64_t elements = layout_elements(l, PAGES, HEADS), b, h, b_again, h_again;
  layout_packed_strides(l, PAGES, HEADS, &b, &h);
  layout_packed_strides(fewest, PAGES, HEADS, &b_again, &h_again);
  FUZZ_HOLD(b == b_again && h == h_again && elements == layout_elements(fewest, PAGES, HEADS));
  for (int i = 0; i < 8; i++, hash = hash * 1664525u + 1013904223u) {
    int64_t p = hash % PAGES, head = hash / 4 % HEADS, slot = hash / 16 % 4096 % page,
            d = hash / 65536 % head_dim;
    if (i == 0) p = PAGES - 1, head = HEADS - 1, slot = page - 1, d = head_dim - 1;
    if (!layout_has_axis(l, AXIS_B)) p = 0;
    if (!layout_has_axis(l, AXIS_H)) head = 0;
    if (!layout_has_axis(l, AXIS_S)) slot = 0;
    if (!layout_has_axis(l, AXIS_D)) d = 0;
    int64_t offset = layout_offset(l, b, h, HEADS, p, head, slot, d);
    FUZZ_HOLD(offset >= 0 && offset < elements);
    FUZZ_HOLD(offset == layout_offset(fewest, b, h, HEADS, p, head, slot, d));
  }
}

static void hold_layout(const layout *l, unsigned axes, int64_t page, int64_t head_dim, uint32_t hash) {
  layout fewest = *l, twice;
  text words;
  layout_canonicalize(&fewest);
  twice = fewest;
  layout_canonicalize(&twice);
  FUZZ_HOLD(layout_equal(&fewest, &twice));
  hold_offsets(l, &fewest, page, head_dim, hash);
  for (int a = 0; a < AXIS_COUNT; a++) {
    if (!(axes & 1u << a)) continue;
    int64_t run = layout_run(l, (axis)a), aligned = layout_aligned_run(l, (axis)a);
    FUZZ_HOLD(run >= 1 && aligned >= 1 && aligned <= run);
  }
  text_init(&words);
  layout_write(l, &words);
  layout_write_offset(l, "slot", "channel", "heads_stride", &words);
  FUZZ_HOLD(words.length > 0);
  text_finish(&words);
}

/* "PAGE HEAD_DIM AXES", then a factor a line; AXES is a mask in decimal. Sizes are those that specs may have.
 */
int fuzz_layout(const uint8_t *bytes, size_t size) {
  const char *items[MOST_ITEMS];
  int count = 0;
  char *lines = strndup((const char *)bytes, size), *at = lines;
  char *numbers = strsep(&at, "\n");
  unsigned long page = strtoul(numbers, &numbers, 10), head_dim = strtoul(numbers, &numbers, 10);
  unsigned axes = (unsigned)strtoul(numbers, &numbers, 10) % (1u << AXIS_COUNT);
  while (at != NULL && count < MOST_ITEMS)
    items[count++] = strsep(&at, "\n");
  page = page == 0 || page > 1 << 20 ? 16 : page;
  head_dim = head_dim == 0 || head_dim > 4096 ? 64 : head_dim;
  layout l;
  layout_error error = {0};
  if (layout_parse(items, count, axes, (int64_t)page, (int64_t)head_dim, &l, &error))
    hold_layout(&l, axes, (int64_t)page, (int64_t)head_dim, fuzz_hash(bytes, size));
  else
    FUZZ_HOLD(error.message[0] != '\0' && error.item >= -1 && error.item < count);
  free(lines);
  return 0;
}
