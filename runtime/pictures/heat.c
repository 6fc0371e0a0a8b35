#include "heat.h"
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEFT = 84, ACROSS = SVG_WIDTH - LEFT - 30, ROW = 34, WIDEST = 104, MOST_LINES = 64 };

void heat_begin(heat_map *m) {
  *m = (heat_map){0};
}

void heat_finish(heat_map *m) {
  for (int i = 0; i < m->count; i++)
    text_finish(&m->cells[i].title);
  free(m->cells);
  *m = (heat_map){0};
}

void heat_add(heat_map *m, int64_t row, int64_t column, double share, const char *title) {
  heat_cell *c = NULL;
  for (int i = 0; i < m->count && !c; i++)
    if (m->cells[i].row == row && m->cells[i].column == column) c = &m->cells[i];
  if (!c) {
    if (m->count == m->room) {
      int room = m->room ? 2 * m->room : 32;
      heat_cell *grown = realloc(m->cells, (size_t)room * sizeof *grown);
      m->failed |= !grown;
      if (!grown) return;
      m->cells = grown;
      m->room = room;
    }
    c = &m->cells[m->count++];
    *c = (heat_cell){.row = row, .column = column, .share = share};
    text_init(&c->title);
  }
  if (share < c->share) c->share = share;
  text_addf(&c->title, "%s%s", c->shapes++ ? "\n" : "", title);
  m->failed |= c->title.failed;
}

int heat_class(double share) {
  int n = (int)floor((share - 0.5) / 0.05 + 1e-9);
  return n < 0 ? 0 : n > 9 ? 9 : n;
}

int64_t heat_power(int64_t n) {
  return n < 1 ? 0 : (int64_t)1 << (int)lround(log2((double)n));
}

/* The distinct values of rows or columns, ascending. Returns how many. */
static int distinct(const heat_map *m, bool rows, int64_t out[MOST_LINES]) {
  int count = 0;
  for (int i = 0; i < m->count; i++) {
    int64_t value = rows ? m->cells[i].row : m->cells[i].column;
    int place = 0;
    while (place < count && out[place] < value)
      place++;
    if (count == MOST_LINES || (place < count && out[place] == value)) continue;
    for (int n = count++; n > place; n--)
      out[n] = out[n - 1];
    out[place] = value;
  }
  return count;
}

static int index_of(const int64_t *values, int count, int64_t value) {
  for (int i = 0; i < count; i++)
    if (values[i] == value) return i;
  return -1;
}

static void draw_cell(const heat_cell *c, text *out, double x, double y, double width) {
  char class[8];
  snprintf(class, sizeof class, "heat%d", heat_class(c->share));
  svg_group(out, text_string(&c->title));
  svg_rect(out, x + 0.5, y + 0.5, width - 1, ROW - 1, class);
  svg_textf(out, x + width / 2, y + (c->shapes > 1 ? 15 : 21), SVG_MIDDLE, "", "%.1f %%", 100 * c->share);
  if (c->shapes > 1) svg_textf(out, x + width / 2, y + 28, SVG_MIDDLE, "small", "%d shapes", c->shapes);
  svg_group_end(out);
}

double heat_draw(const heat_map *m, text *out, double y, const char *row_name, const char *column_name) {
  int64_t rows[MOST_LINES], columns[MOST_LINES];
  int row_count = distinct(m, true, rows), column_count = distinct(m, false, columns);
  double width = (double)ACROSS / column_count, top = y + 18;
  if (width > WIDEST) width = WIDEST;
  svg_text(out, 24, y + 10, SVG_START, "quiet small", row_name);
  for (int i = 0; i < row_count; i++)
    svg_textf(out, LEFT - 10, top + ROW * i + 21, SVG_END, "", "%" PRId64, rows[i]);
  for (int i = 0; i < m->count; i++) {
    const heat_cell *c = &m->cells[i];
    int row = index_of(rows, row_count, c->row), column = index_of(columns, column_count, c->column);
    if (row >= 0 && column >= 0) draw_cell(c, out, LEFT + width * column, top + ROW * row, width);
  }
  double bottom = top + ROW * row_count;
  for (int i = 0; i < column_count; i++)
    svg_textf(out, LEFT + width * (i + 0.5), bottom + 15, SVG_MIDDLE, "", "%" PRId64, columns[i]);
  svg_text(out, LEFT + width * column_count / 2, bottom + 32, SVG_MIDDLE, "quiet small", column_name);
  return bottom + 62 - y;
}
