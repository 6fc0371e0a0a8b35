#include "schedule.h"

tile_span schedule_tiles(const schedule *s, int64_t sequence) {
  const int64_t length = s->lengths[sequence], tile = s->tile_tokens;
  if (s->on_line) return (tile_span){0, length > tile ? (length - 1) / tile + 1 : 1};
  int64_t first = s->window > 0 && length > s->window ? (length - s->window) / tile : 0;
  return (tile_span){first, length > 0 ? (length - 1) / tile + 1 : first};
}

tile_span schedule_split(const schedule *s, int64_t sequence, int64_t n) {
  tile_span all = schedule_tiles(s, sequence);
  int64_t tiles = all.end - all.first;
  return (tile_span){all.first + tiles * n / s->splits, all.first + tiles * (n + 1) / s->splits};
}

void schedule_finish_line(schedule *s) {
  s->line_tiles = 0;
  for (int64_t i = 0; i < s->seqs; i++)
    s->line_tiles += schedule_tiles(s, i).end * s->kv_heads;
  s->parts = s->splits < s->line_tiles ? s->splits : s->line_tiles;
}

line_position schedule_place(const schedule *s, int64_t position) {
  line_position at = {0};
  for (;; at.sequence++) {
    at.tiles = schedule_tiles(s, at.sequence).end;
    if (position < at.tiles * s->kv_heads || at.sequence + 1 == s->seqs) break;
    position -= at.tiles * s->kv_heads;
  }
  at.kv_head = position / at.tiles;
  at.tile = position % at.tiles;
  return at;
}

/* The cut before part n, where it is before it is moved. */
static int64_t even_cut(const schedule *s, int64_t n) {
  return n * (s->line_tiles / s->parts) + n * (s->line_tiles % s->parts) / s->parts;
}

/* A cut next to an item's first or last tile is moved there. */
static int64_t moved(const schedule *s, int64_t position) {
  if (position == s->line_tiles) return position;
  int64_t near = s->line_tiles / s->parts < 8 ? 0 : 1;
  line_position at = schedule_place(s, position);
  if (at.tile <= near) return position - at.tile;
  return at.tiles - at.tile <= near ? position + at.tiles - at.tile : position;
}

tile_span schedule_part(const schedule *s, int64_t n) {
  return (tile_span){moved(s, even_cut(s, n)), moved(s, even_cut(s, n + 1))};
}

int64_t schedule_middle(const schedule *s, int64_t n) {
  int64_t first = even_cut(s, n), next = even_cut(s, n + 1);
  return moved(s, first + (next - first + 1) / 2);
}
