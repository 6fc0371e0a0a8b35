#include "layout_picture.h"
#include "lines.h"

#include <string.h>

/* Columns: an offset, then cells. */
enum { OFFSET = 9, COLUMN = 17 };

typedef struct printing {
  text *out;
  const layout_picture *picture;
} printing;

static const char *colour_of(const page_cell *c) {
  static const char *const colours[][2] = {
      {"34", "94"}, {"33", "93"}, {"32", "92"}, {"35", "95"}, {"36", "96"}};
  if (c->first.part < 0) return "90";
  int axis_kind = c->count == 1 ? 0 : c->along == AXIS_S ? 1 : c->along == AXIS_H ? 4 : 0;
  int kind = c->first.kind == PAGE_SCALES ? 2 : c->first.kind == PAGE_TAIL ? 3 : axis_kind;
  int64_t other = kind == 1 ? c->first.channel : c->first.slot;
  return colours[kind][other > 0 ? other % 2 : 0];
}

/* Examples of what a digit's values stand for. */
static void write_values(const page_digit *d, text *out) {
  text_add(out, "  ");
  for (int64_t n = 0; n < d->extent && n < 2; n++) {
    page_digit_value(d, n, "-", out);
    text_add(out, n + 1 < d->extent ? ", " : "");
  }
  if (d->extent > 3) text_add(out, "... ");
  if (d->extent > 2) page_digit_value(d, d->extent - 1, "-", out);
}

static void print_digits(const printing *w, const page_map *m) {
  enum { ENOUGH_FOR_VALUES = 64 };
  const page_map_part *codes = &m->parts[0];
  for (int i = 0; i < codes->digit_count; i++) {
    const page_digit *d = &codes->digits[i];
    if (d->extent == 1) continue;
    text name, line;
    text_init(&name);
    text_init(&line);
    page_digit_write(d, d->axis == AXIS_H ? 0 : codes->part.layout->size[d->axis], &name);
    text_addf(&line, "  %-10s %6lld x %8lld byte%s", text_string(&name), (long long)d->extent,
              (long long)d->bytes, d->bytes == 1 ? " " : "s");
    if (w->picture->columns >= ENOUGH_FOR_VALUES) write_values(d, &line);
    lines_wrap(w->out, w->picture->columns, text_string(&line));
    text_finish(&line);
    text_finish(&name);
  }
}

typedef void (*cell_writer)(const page_view *v, const page_cell *c, text *out);

static void write_label(const page_view *v, const page_cell *c, text *out) {
  page_cell_write(&v->map, c, "-", out);
}
static void write_lanes(const page_view *v, const page_cell *c, text *out) {
  text lanes;
  text_init(&lanes);
  int count = lanes_write(&v->load, c->at, c->bytes, "-", &lanes);
  if (count && v->kind == LOAD_BULK)
    text_add(out, "first copy");
  else if (count)
    text_addf(out, "lane%s %s", count > 1 ? "s" : "", text_string(&lanes));
  text_finish(&lanes);
}

/* One line of a row: the cells' words. False, and nothing printed, when there are none. */
static bool print_line(const printing *w, const page_view *v, const page_row *row, cell_writer write,
                       bool labels) {
  text words;
  bool some = false;
  text_init(&words);
  size_t start = w->out->length;
  if (labels)
    text_addf(w->out, "%8lld ", (long long)row->start);
  else
    text_addf(w->out, "%*s", OFFSET, "");
  for (int64_t at = row->start; at < row->end;) {
    page_cell c = page_map_cell(&v->map, at, row->end, v->cell_bytes);
    text_clear(&words);
    write(v, &c, &words);
    some |= words.length > 0;
    int width = v->map.parts[0].kind == PAGE_SCALES ? (COLUMN - 1) / 2 : COLUMN;
    lines_add(w->out, w->picture->colour, labels ? colour_of(&c) : "1", text_string(&words), width);
    at += c.bytes;
  }
  if (some)
    lines_end(w->out);
  else if (w->out->data)
    w->out->data[w->out->length = start] = '\0';
  text_finish(&words);
  return some;
}

static void print_bytes(const printing *w, const page_view *v) {
  for (int i = 0; i < v->row_count; i++) {
    const page_row *row = &v->rows[i];
    if (!row->gap) {
      print_line(w, v, row, write_label, true);
      if (v->load.count > 0) print_line(w, v, row, write_lanes, false);
      continue;
    }
    text words;
    text_init(&words);
    text_addf(&words, "     ... bytes %lld-%lld: ", (long long)row->start, (long long)(row->end - 1));
    page_gap_describe(v, row, "-", &words);
    lines_wrap(w->out, w->picture->columns, text_string(&words));
    text_finish(&words);
  }
}

void layout_text(const layout_picture *p, text *out) {
  layout_panel panels[LAYOUT_MOST_PANELS];
  int cells = (p->columns - OFFSET) / COLUMN;
  cells = cells < 2 ? 1 : cells < 4 ? 2 : cells < 8 ? 4 : 8;
  int count = layout_panels(p, cells, panels);
  if (count < 0) {
    out->failed = true;
    return;
  }
  printing w = {out, p};
  text words;
  text_init(&words);
  text_addf(&words, "%s. ", p->name);
  layout_lanes_sentence(p, panels, count, &words);
  lines_wrap(out, p->columns, text_string(&words));
  for (int i = 0; i < count; i++) {
    text_add(out, "\n");
    lines_wrap(out, p->columns, panels[i].heading);
    if (!panels[i].is_scales) print_digits(&w, &panels[i].view.map);
    print_bytes(&w, &panels[i].view);
  }
  if (*layout_scales_sentence(p->contract)) {
    text_add(out, "\n");
    lines_wrap(out, p->columns, layout_scales_sentence(p->contract));
  }
  text_finish(&words);
  layout_panels_finish(panels, count);
}
