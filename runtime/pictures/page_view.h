/* A page as it is drawn: which rows of bytes, and what a wave takes of them. Both forms, SVG and text, draw
 * the same view. */
#ifndef HEDDLE_PICTURES_PAGE_VIEW_H
#define HEDDLE_PICTURES_PAGE_VIEW_H

#include "../../generator/plan.h"
#include "page_map.h"

/* Bytes [start, end); `gap`: rows that are left out. */
typedef struct page_row {
  int64_t start, end;
  bool gap;
} page_row;

/* Consecutive bytes that a lane takes. */
typedef struct lane_bytes {
  int64_t at, bytes;
  int lane;
} lane_bytes;

typedef struct lane_list {
  size_t count, room;
  lane_bytes *items;
} lane_list;

typedef struct page_view {
  page_map map;
  int64_t row_bytes; /* of a whole row */
  int64_t cell_bytes;
  int row_count;
  page_row *rows;
  bool has_lanes;
  load_kind kind;
  lane_list load, operand, own; /* the first load; the first matrix instruction's operand; all of lane 0's */
  int pages;                    /* that the first load takes tokens of */
} page_view;

enum { PAGE_MOST_ROWS = 400 };

/* Up to `whole` rows all are drawn; of more at most `most`, those that show what repeats and what is loaded.
 */
typedef struct page_rows {
  int whole, most;
} page_rows;

/* `s`: what decode was solved as, or NULL: then there are no lanes. The first tile begins with the page, of
 * kv head 0. `cells`: so many in a row. False when memory ran out. */
bool page_view_of(const page_map *m, const decode_solution *s, bool is_k, int cells, page_rows rows,
                  page_view *out_view);
void page_view_finish(page_view *v);

/* The lanes of `l` that take some of bytes [at, at + bytes): "3", "0-3", "0, 2"; how many. */
int lanes_write(const lane_list *l, int64_t at, int64_t bytes, const char *dash, text *out);
/* What lies in rows that are left out: "tokens 4-127, channels 0-15". */
void page_gap_describe(const page_view *v, const page_row *gap, const char *dash, text *out);

#endif
