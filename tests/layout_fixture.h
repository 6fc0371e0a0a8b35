/* What the layout tests share: parsing from one string, every small layout, and an oracle that reads an
 * offset off the array's shape alone. */
#ifndef HEDDLE_TESTS_LAYOUT_FIXTURE_H
#define HEDDLE_TESTS_LAYOUT_FIXTURE_H

#include "../generator/layout.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES_CACHE = 1 << AXIS_B | 1 << AXIS_H | 1 << AXIS_S | 1 << AXIS_D };

/* "[b, h, d/16, s, d%16]", brackets optional. Factors go to the parser in allocations of their own size, so
 * that a memory checker sees a read past their end. */
static inline bool parse_list(const char *list, unsigned axes, int64_t page, int64_t head_dim, layout *out,
                              layout_error *error) {
  char *items[LAYOUT_MAX_FACTORS + 8] = {NULL};
  int count = 0;
  for (const char *at = list + (*list == '['); *at && *at != ']' && count < LAYOUT_MAX_FACTORS + 8;) {
    size_t length = strcspn(at, ",]");
    items[count] = malloc(length + 1);
    memcpy(items[count], at, length);
    items[count++][length] = 0;
    at += length + (at[length] == ',');
  }
  bool parsed = layout_parse((const char *const *)items, count, axes, page, head_dim, out, error);
  while (count > 0)
    free(items[--count]);
  return parsed;
}

static inline layout parsed(const char *list, int64_t page, int64_t head_dim) {
  layout l;
  layout_error error;
  unsigned axes = 0;
  for (int a = 0; a < AXIS_COUNT; a++)
    if (strchr(list, "bhsd"[a]) || a == AXIS_S) axes |= 1u << a;
  cr_assert(parse_list(list, axes, page, head_dim, &l, &error), "%s: %s", list, error.message);
  return l;
}

/* The offset by reading the shape as one long number, most significant digit first, once over the factors
 * outside h and once over those inside: what lies outside h steps over all heads. */
static inline int64_t offset_by_shape(const layout *l, int64_t stride_b, int64_t stride_h, int64_t heads,
                                      int64_t page, int64_t head, int64_t slot, int64_t channel) {
  int64_t outside = 0, inside = 0;
  bool past_head = true;
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].axis == AXIS_H) past_head = false;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    if (f->axis == AXIS_H) past_head = true;
    if (f->axis == AXIS_B || f->axis == AXIS_H) continue;
    int64_t digit = (f->axis == AXIS_S ? slot : channel) / f->divisor % f->extent;
    if (past_head)
      inside = inside * f->extent + digit;
    else
      outside = outside * f->extent + digit;
  }
  return page * stride_b + head * stride_h + outside * heads * stride_h + inside;
}

typedef void visit_layout(const layout *l, const char *list);

/* Calls `visit` for every arrangement of up to two digits each of a page and a head dimension of the sizes
 * below, digits of extent 1 included, with h anywhere and b outside every digit. Returns how many. */
static inline int64_t for_each_small_layout(visit_layout *visit) {
  static const int sizes[] = {1, 2, 4, 6, 8};
  int64_t visited = 0;
  for (size_t p = 0; p < 5; p++)
    for (size_t q = 0; q < 5; q++)
      for (int s = 0; s <= sizes[p]; s++)
        for (int d = 0; d <= sizes[q]; d++) {
          if ((s && sizes[p] % s) || (d && sizes[q] % d)) continue; /* 0: the axis stands whole */
          char digits[6][24];
          int count = 0;
          snprintf(digits[count++], 24, "b");
          snprintf(digits[count++], 24, "h");
          if (s == 0) snprintf(digits[count++], 24, "s");
          if (s != 0) snprintf(digits[count++], 24, "s/%d", s);
          if (s != 0) snprintf(digits[count++], 24, "s%%%d", s);
          if (d == 0) snprintf(digits[count++], 24, "d");
          if (d != 0) snprintf(digits[count++], 24, "d/%d", d);
          if (d != 0) snprintf(digits[count++], 24, "d%%%d", d);
          int arrangements = 1;
          for (int i = 2; i <= count; i++)
            arrangements *= i;
          for (int n = 0; n < arrangements; n++) {
            int left[6] = {0, 1, 2, 3, 4, 5}, code = n, remaining = count;
            char list[128] = "[";
            bool page_seen = false, legal = true;
            while (remaining > 0) {
              int pick = code % remaining;
              code /= remaining;
              int digit = left[pick];
              for (int i = pick; i + 1 < remaining; i++)
                left[i] = left[i + 1];
              remaining--;
              page_seen |= digit == 0;
              legal &= digit < 2 || page_seen;
              strcat(list, digits[digit]);
              strcat(list, remaining ? ", " : "]");
            }
            if (!legal) continue;
            layout l = parsed(list, sizes[p], sizes[q]);
            visit(&l, list);
            visited++;
          }
        }
  return visited;
}

/* xorshift64: the same sequence everywhere. */
static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static inline int random_below(uint64_t *state, int bound) {
  return (int)(random_next(state) % (uint64_t)bound);
}

#endif
