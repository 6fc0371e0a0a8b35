/* What each byte of a page holds: the layout algebra backwards. A page is that of a packed cache with so many
 * kv heads, from its first byte on; or the part of a scale array that belongs to one page. */
#ifndef HEDDLE_PICTURES_PAGE_MAP_H
#define HEDDLE_PICTURES_PAGE_MAP_H

#include "../../generator/page_parts.h"

typedef enum page_kind { PAGE_CODES, PAGE_SCALES, PAGE_TAIL, PAGE_PADDING } page_kind;

/* One digit of an axis: a step of `bytes` for each of its `extent` values. */
typedef struct page_digit {
  axis axis;
  int64_t divisor, extent, bytes;
} page_digit;

typedef struct page_map_part {
  page_part part;
  page_kind kind;
  int64_t first_channel; /* of the head's: the tail begins behind the codes */
  int digit_count;       /* longest steps first */
  page_digit digits[LAYOUT_MAX_FACTORS];
} page_map_part;

typedef struct page_map {
  int64_t heads, bytes;
  int part_count;
  page_map_part parts[PAGE_MAX_PARTS]; /* the codes, or the scales of an array of their own, first */
} page_map;

/* What a byte belongs to. An axis that the part lacks is -1; `channel` of scales counts groups. */
typedef struct page_item {
  page_kind kind;
  int part; /* -1: padding */
  int64_t head, slot, channel;
  int byte; /* of its element */
} page_item;

/* Bytes that belong together: consecutive elements along one axis. */
typedef struct page_cell {
  int64_t at, bytes;
  page_item first;
  axis along;
  int64_t count; /* elements */
} page_cell;

/* Maps point into `c`. Of K or V of a contract whose layouts stand as the spec has them. */
void page_map_of(const contract *c, bool is_k, int64_t heads, page_map *out_map);
/* Of the page's part of k_scale or v_scale; false where the contract has no such array, or one of a single
 * scale. */
bool page_map_of_scales(const contract *c, bool is_k, int64_t heads, page_map *out_map);

page_item page_map_at(const page_map *m, int64_t byte);
/* The first byte of an element: the contract's own offset (layout_offset). */
int64_t page_map_byte(const page_map *m, int part, int64_t head, int64_t slot, int64_t channel);
/* The cell from byte `at` on that ends before `end` and has at most `most` bytes; elements are never cut. */
page_cell page_map_cell(const page_map *m, int64_t at, int64_t end, int64_t most);

/* A digit as layouts have it: "d%64/16". `size`: of its axis. */
void page_digit_write(const page_digit *d, int64_t size, text *out);
/* What its n-th value stands for: "d0-15", "t3", "h1"; the dash is `dash`. */
void page_digit_value(const page_digit *d, int64_t n, const char *dash, text *out);
/* "t3 d0-15" with `dash` between; with heads "h1 t3 …"; scales "t3", "t3 g0"; "padding". */
void page_cell_write(const page_map *m, const page_cell *c, const char *dash, text *out);
/* "kv head 0, token 3, channels 0-15". */
void page_cell_describe(const page_map *m, const page_cell *c, const char *dash, text *out);

#endif
