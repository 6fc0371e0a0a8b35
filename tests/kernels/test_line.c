/* Claims about the line of tiles: its parts hold every tile once, in order and evenly, and the parts that an
 * item is said to begin and end in are those that hold its first and last tile. The template's own source
 * runs on emulated devices (emu/line.hip); what it should say is counted out tile by tile. */
#include "../../runtime/device/device.h"
#include "../../runtime/pictures/schedule.h"
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As emu/line.hip has them; WINDOW to LEAST where it is built with a window. */
enum {
  TILE = 128,
  WINDOW = 1500,
  WINDOW_TILE = 32,
  STEP = 4,
  ROWS = 3,
  RESIDENT = 3,
  LEAST = 4,
  FEW_LISTS = 200,
  MAX_LISTS = 5000,
  MAX_HEADS = 4,
  MAX_SPLITS = 300,
  FIELDS = 9 /* of a part */
};

typedef struct fixture {
  device *d;
  device_module *module;
  device_function *parts, *items;
  int wave;
  bool window;
  diags list;
} fixture;

typedef struct parts_arguments {
  device_pointer lengths, out;
  int count, heads, splits;
} parts_arguments;

typedef struct items_arguments {
  device_pointer lengths, bounds, out;
  int count, heads, splits;
} items_arguments;

/* Without the padding behind the last argument. */
enum {
  PARTS_BYTES = offsetof(parts_arguments, splits) + sizeof(int),
  ITEMS_BYTES = offsetof(items_arguments, splits) + sizeof(int)
};

static void check(fixture *f, hd_status status, const char *what) {
  if (status == HD_OK) return;
  cr_assert_fail("%s: %s: %s", what, hd_status_text(status), f->list.count ? f->list.items[0].message : "");
}

static void setup(fixture *f, const char *target_name) {
  static unsigned char bytes[1 << 20];
  char path[1024];
  diags_init(&f->list);
  f->window = strstr(target_name, "-window") != NULL;
  snprintf(path, sizeof path, "emu:%.*s", (int)strcspn(target_name, "-"), target_name);
  check(f, device_open(path, &f->d, &f->list), "open");
  device_facts facts;
  f->d->vtable->facts(f->d, &facts);
  f->wave = facts.wave;
  snprintf(path, sizeof path, "%s/tests/emu_line_%s.co", getenv("HEDDLE_BUILD"), target_name);
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s", path);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  check(f, f->d->vtable->load(f->d, bytes, size, &f->module, &f->list), "load");
  check(f, f->d->vtable->function(f->d, f->module, "parts", 0, &f->parts, &f->list), "parts");
  check(f, f->d->vtable->function(f->d, f->module, "items", 0, &f->items, &f->list), "items");
}

static void finish(fixture *f) {
  f->d->vtable->unload(f->d, f->module);
  device_close(f->d);
  diags_finish(&f->list);
}

static device_pointer upload(fixture *f, const void *from, size_t bytes) {
  device_pointer p;
  check(f, f->d->vtable->allocate(f->d, bytes, &p, &f->list), "allocate");
  check(f, f->d->vtable->copy_in(f->d, NULL, p, from, bytes, &f->list), "copy in");
  return p;
}

static void download(fixture *f, void *to, device_pointer p, size_t bytes) {
  check(f, f->d->vtable->copy_out(f->d, NULL, to, p, bytes, &f->list), "copy out");
}

static void launch(fixture *f, device_function *function, int groups, const void *arguments, size_t bytes) {
  const device_launch l = {.grid = {(uint32_t)groups, 1, 1},
                           .block = {(uint32_t)f->wave, 1, 1},
                           .arguments = arguments,
                           .arguments_size = bytes};
  check(f, f->d->vtable->launch(f->d, NULL, function, &l, &f->list), "launch");
  check(f, f->d->vtable->synchronize(f->d, NULL, &f->list), "synchronize");
}

/* Counted tile by tile: tiles with a token that some row sees, in steps. */
static int tiles_of(const fixture *f, int length) {
  if (!f->window) return length > 0 ? (length + TILE - 1) / TILE : 1;
  int seen = 0;
  for (int first = 0; first < length; first += WINDOW_TILE) {
    bool any = false;
    for (int row = 0; row < ROWS; row++) {
      int end = length - ROWS + row + 1;
      any |= first < end && first + WINDOW_TILE > end - WINDOW;
    }
    seen += any || first > length - ROWS; /* of a list shorter than its rows */
  }
  return seen > 0 ? (seen + STEP - 1) / STEP : 1;
}

/* Of what runs at a time: one, two or three parts on each of splits / RESIDENT units. */
static int parts_of(const fixture *f, int tiles, int splits) {
  int parts = splits, units = splits / RESIDENT > 0 ? splits / RESIDENT : 1;
  if (f->window && tiles < units * RESIDENT * LEAST) parts = tiles < 2 * units * LEAST ? units : 2 * units;
  parts = parts < splits ? parts : splits;
  return parts < tiles ? parts : tiles;
}

/* What pictures of a launch say of its parts. */
static void drawn_as_it_runs(const int *lengths, int count, int heads, int splits, int (*rows)[FIELDS]) {
  schedule s = {.on_line = true,
                .tile_tokens = TILE,
                .seqs = count,
                .kv_heads = heads,
                .splits = splits,
                .lengths = lengths};
  schedule_finish_line(&s);
  for (int p = 0; p < s.parts; p++) {
    const tile_span span = schedule_part(&s, p);
    const line_position at = schedule_place(&s, span.first);
    cr_assert(span.first == rows[p][0] && span.end == rows[p][1],
              "part %d is drawn at tiles %d to %d, not %d to %d", p, (int)span.first, (int)span.end,
              rows[p][0], rows[p][1]);
    cr_assert(at.sequence == rows[p][2] && at.kv_head == rows[p][3] && at.tile == rows[p][4] &&
                  at.tiles == rows[p][5],
              "part %d is drawn to begin elsewhere", p);
  }
}

static void parts_hold_every_tile_once(fixture *f, const int *lengths, int count, int heads, int splits) {
  static int rows[MAX_SPLITS][FIELDS], bounds[MAX_LISTS * MAX_HEADS][2], ends[MAX_LISTS * MAX_HEADS][2];
  int tiles = 0;
  for (int i = 0; i < count; i++)
    for (int h = 0; h < heads; h++) {
      bounds[i * heads + h][0] = tiles;
      tiles += tiles_of(f, lengths[i]);
      bounds[i * heads + h][1] = tiles;
    }
  const int items = count * heads, parts = parts_of(f, tiles, splits);
  device_pointer on_device[] = {upload(f, lengths, (size_t)count * sizeof *lengths),
                                upload(f, rows, sizeof rows), upload(f, bounds, sizeof bounds),
                                upload(f, ends, sizeof ends)};
  const parts_arguments for_parts = {on_device[0], on_device[1], count, heads, splits};
  const items_arguments for_items = {on_device[0], on_device[2], on_device[3], count, heads, splits};
  launch(f, f->parts, splits, &for_parts, PARTS_BYTES);
  launch(f, f->items, items, &for_items, ITEMS_BYTES);
  download(f, rows, on_device[1], sizeof rows);
  download(f, ends, on_device[3], sizeof ends);
  for (size_t i = 0; i < sizeof on_device / sizeof *on_device; i++)
    check(f, f->d->vtable->release(f->d, on_device[i], &f->list), "release");

  const int each = tiles / parts, most = each + 1 + 2 * (each >= 8);
  for (int p = 0, item = 0; p < splits; p++) {
    const int *row = rows[p];
    if (p >= parts) {
      cr_assert_eq(row[0], -1, "part %d of %d has nothing to do", p, parts);
      continue;
    }
    cr_assert_eq(row[0], p > 0 ? rows[p - 1][1] : 0, "part %d begins where the one before ends", p);
    cr_assert(row[1] > row[0] && row[1] - row[0] <= most, "part %d: tiles %d to %d, %d at most", p, row[0],
              row[1], most);
    while (bounds[item][1] <= row[0])
      item++;
    const int list = item / heads;
    cr_assert(row[2] == list && row[3] == item % heads && row[4] == row[0] - bounds[item][0] &&
                  row[5] == tiles_of(f, lengths[list]) && row[6] == lengths[list] &&
                  row[7] == (list + 1 < count ? lengths[list + 1] : 0),
              "part %d begins with tile %d of list %d, head %d", p, row[4], row[2], row[3]);
    cr_assert_eq(row[8], row[4] > 0, "part %d begins %s an item", p, row[4] > 0 ? "within" : "with");
  }
  cr_assert_eq(rows[parts - 1][1], tiles);
  if (!f->window) drawn_as_it_runs(lengths, count, heads, splits, rows);
  for (int i = 0; i < items; i++)
    for (int end = 0; end < 2; end++) {
      const int tile = end ? bounds[i][1] - 1 : bounds[i][0], p = ends[i][end];
      cr_assert(p >= 0 && p < parts && rows[p][0] <= tile && tile < rows[p][1],
                "item %d: its tile %d is not in part %d of %d", i, tile, p, parts);
    }
}

static uint32_t next(uint32_t *state) {
  return *state = *state * 1664525u + 1013904223u;
}

static void all_batches(const char *target_name, uint32_t seed) {
  static const int most_tokens[] = {0, 1, TILE, 1000, 40000};
  fixture f;
  int lengths[FEW_LISTS];
  setup(&f, target_name);
  for (int round = 0; round < 60; round++) {
    const int count = 1 + (int)(next(&seed) >> 8) % (round % 3 ? 40 : FEW_LISTS),
              heads = 1 + (int)(next(&seed) >> 8) % MAX_HEADS;
    const int splits = 1 + (int)(next(&seed) >> 8) % (round % 4 ? MAX_SPLITS : 8);
    const int most = most_tokens[(next(&seed) >> 8) % 5], even = round % 5 == 0;
    for (int i = 0; i < count; i++)
      lengths[i] = most == 0 ? 0 : even ? most : (int)((next(&seed) >> 4) % (uint32_t)(most + 1));
    parts_hold_every_tile_once(&f, lengths, count, heads, splits);
  }
  finish(&f);
}

Test(line, parts_hold_every_tile_once_with_waves_of_64) {
  all_batches("gfx950", 1);
}
Test(line, parts_hold_every_tile_once_with_waves_of_32) {
  all_batches("gfx1201", 2);
}

Test(line, parts_hold_every_tile_once_that_a_window_leaves) {
  all_batches("gfx1201-window", 3);
}

/* So many that a lane has more of them than it keeps, and more than a wave has lanes. */
static void many_lists(const char *target_name) {
  static const int numbers[] = {129, 300, 2300, MAX_LISTS};
  static int lengths[MAX_LISTS];
  fixture f;
  uint32_t seed = 4;
  setup(&f, target_name);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    for (int list = 0; list < numbers[i]; list++)
      lengths[list] = (int)((next(&seed) >> 4) % (list % 7 ? 700 : 9000));
    parts_hold_every_tile_once(&f, lengths, numbers[i], 1 + (int)i % 2, 132);
  }
  finish(&f);
}

Test(line, many_lists_are_found_with_waves_of_64) {
  many_lists("gfx950");
}
Test(line, many_lists_are_found_with_waves_of_32) {
  many_lists("gfx1201");
}

Test(line, items_of_one_length_begin_and_end_with_the_parts_where_their_number_fits) {
  fixture f;
  int lengths[64];
  setup(&f, "gfx1201");
  for (int i = 0; i < 64; i++)
    lengths[i] = 8000; /* 63 tiles: 15.75 a part */
  static int rows[MAX_SPLITS][FIELDS];
  device_pointer on_device[] = {upload(&f, lengths, sizeof lengths), upload(&f, rows, sizeof rows)};
  const parts_arguments arguments = {on_device[0], on_device[1], 64, 1, 256};
  launch(&f, f.parts, 256, &arguments, PARTS_BYTES);
  download(&f, rows, on_device[1], sizeof rows);
  for (int p = 0; p < 256; p += 4)
    cr_expect(rows[p][2] == p / 4 && rows[p][4] == 0, "part %d begins at tile %d of item %d", p, rows[p][4],
              rows[p][2]);
  for (int i = 0; i < 2; i++)
    check(&f, f.d->vtable->release(f.d, on_device[i], &f.list), "release");
  finish(&f);
}
