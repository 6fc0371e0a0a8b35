/* How a launch of decode is dealt out: which tiles of which sequence a split, or a part of the line of tiles,
 * takes. The kernels work it out on the device (templates/decode.hip, line.hip); this says the same. */
#ifndef HEDDLE_PICTURES_SCHEDULE_H
#define HEDDLE_PICTURES_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct schedule {
  bool on_line;            /* parts of the line of all tiles, not splits of each (sequence, kv head) */
  int tile_tokens, window; /* window 0: none */
  int64_t seqs, kv_heads, splits;
  const int32_t *lengths; /* [seqs] tokens */
  /* On the line: */
  int64_t line_tiles, parts; /* parts: splits, but none is empty */
} schedule;

/* Tiles [first, end) of a sequence, or of the line. */
typedef struct tile_span {
  int64_t first, end;
} tile_span;

/* Where a position of the line lies. */
typedef struct line_position {
  int64_t sequence, kv_head, tile, tiles; /* tile `tile` of `tiles` */
} line_position;

/* Works out line_tiles and parts from the rest. */
void schedule_finish_line(schedule *s);
/* The tiles of a sequence that some query sees; a sequence without tokens has none, but for one on the line.
 */
tile_span schedule_tiles(const schedule *s, int64_t sequence);
/* Of these, those of split n. */
tile_span schedule_split(const schedule *s, int64_t sequence, int64_t n);
/* What part n of the line takes of it, and where the second half of that begins. */
tile_span schedule_part(const schedule *s, int64_t n);
int64_t schedule_middle(const schedule *s, int64_t n);
line_position schedule_place(const schedule *s, int64_t position);

#endif
