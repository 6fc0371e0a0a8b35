/* Copies to LDS and transposed reads, against what lies in memory. */
#include "emu_fixture.h"

EACH_BUILD(copies_through_lds) {
  enum { THREADS = 128 };
  static uint32_t in[THREADS][4], out[THREADS][4];
  bench t;
  bench_open_copies(&t, b);
  for (int i = 0; i < THREADS * 4; ++i)
    (&in[0][0])[i] = random_bits();
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "through_lds", (shape){{1, 1, 1}, {THREADS, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < THREADS; ++i)
    cr_assert_arr_eq(out[i], in[THREADS - 1 - i], sizeof out[i], "%s: thread %d", t.label, i);
  bench_close(&t);
}

EACH_BUILD(transposes_lds_reads) {
  uint16_t in[16][16], out[64][4];
  uint8_t bytes[32][16], columns[64][8];
  bench t;
  if (strcmp(b->target, "gfx950") != 0) return; /* the instruction is gfx950's */
  bench_open_copies(&t, b);
  for (int i = 0; i < 256; ++i)
    (&in[0][0])[i] = (uint16_t)random_bits();
  for (int i = 0; i < 512; ++i)
    (&bytes[0][0])[i] = (uint8_t)random_bits();
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "transposed_16", one_wave, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < 4; ++e)
      cr_assert_eq(out[lane][e], in[lane / 16 * 4 + e][lane % 16], "%s: lane %d element %d", t.label, lane,
                   e);
  args.in = put(&t, bytes, sizeof bytes);
  args.out = put(&t, NULL, sizeof columns);
  run(&t, "transposed_8", one_wave, &args, sizeof args);
  get(&t, columns, args.out, sizeof columns);
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < 8; ++e)
      cr_assert_eq(columns[lane][e], bytes[lane / 16 * 8 + e][lane % 16], "%s: lane %d element %d", t.label,
                   lane, e);
  bench_close(&t);
}

EACH_BUILD(copies_padded_tiles) {
  enum { STRIDE = 32, ROWS = 6, COLUMNS = 17, OUT = 200 };
  static uint16_t in[8][STRIDE], out[OUT];
  bench t;
  if (strcmp(b->target, "gfx1250") != 0) return; /* the instruction is gfx1250's */
  bench_open_copies(&t, b);
  for (int i = 0; i < 8 * STRIDE; ++i)
    (&in[0][0])[i] = (uint16_t)(random_bits() | 1);
  struct {
    device_pointer in, out;
    int stride, rows, columns;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out), STRIDE, ROWS, COLUMNS};
  run(&t, "tensor_copy", (shape){{1, 1, 1}, {32, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 20; ++x) {
      int packed = 2 * (y * 20 + x), at = (packed + packed / 16 * 4) / 2; /* one word after every four */
      uint16_t want = y < ROWS && x < COLUMNS ? in[y][x] : 0;
      cr_assert_eq(out[at], want, "%s: [%d][%d] %04x, not %04x", t.label, y, x, out[at], want);
    }
  bench_close(&t);
}
