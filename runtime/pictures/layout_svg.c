#include "layout_picture.h"
#include "svg.h"

#include <stdio.h>

/* Pixels. Offsets stand left of the bytes. */
enum {
  LEFT = 96,
  ACROSS = SVG_WIDTH - LEFT - 24,
  CELLS = 8,
  PLAIN = 22, /* height of a row */
  BARRED = 26,
  LOADED = 36,
  GAP = 20,
  STEP = 22, /* of the digits above */
  ZOOM = 14
};

/* What occurs, for the legend. */
typedef struct occurs {
  bool along_d, along_s, along_h, scales, tail, padding, load, own, operand;
  load_kind kind;
} occurs;

typedef struct drawing {
  text *out;
  double y;
  occurs seen;
} drawing;

/* ---- Digits: each row is one step of the row above it ---- */

static void draw_step(drawing *w, const page_digit *d, int64_t n, double x, double width) {
  static const char *const classes[AXIS_COUNT][2] = {{"h0", "h1"}, {"h0", "h1"}, {"s0", "s1"}, {"d0", "d1"}};
  text label, title;
  text_init(&label);
  text_init(&title);
  page_digit_value(d, n, "–", &label);
  text_addf(&title, "%s: %lld bytes from byte %lld of the step on", text_string(&label), (long long)d->bytes,
            (long long)(n * d->bytes));
  svg_group(w->out, text_string(&title));
  svg_rect(w->out, x + 0.5, w->y, width - 1, STEP, classes[d->axis][n % 2]);
  if (svg_text_width(text_string(&label)) < width - 4)
    svg_text(w->out, x + width / 2, w->y + 15, SVG_MIDDLE, "", text_string(&label));
  svg_group_end(w->out);
  text_finish(&label);
  text_finish(&title);
}

/* Steps of one digit: all, or the first and the last ones. Returns how wide the first is drawn. */
static double draw_digit(drawing *w, const page_digit *d, int64_t size) {
  enum { ALL = 16, FIRST = 8, LAST = 2 };
  bool all = d->extent <= ALL;
  int slots = all ? (int)d->extent : FIRST + 1 + LAST;
  double width = (double)ACROSS / slots;
  text name;
  text_init(&name);
  page_digit_write(d, size, &name);
  svg_text(w->out, LEFT - 10, w->y + 10, SVG_END, "mono", text_string(&name));
  svg_textf(w->out, LEFT - 10, w->y + 22, SVG_END, "quiet small", "%lld × %lld B", (long long)d->extent,
            (long long)d->bytes);
  text_finish(&name);
  for (int i = 0; i < slots; i++) {
    double x = LEFT + width * i;
    if (!all && i == FIRST)
      svg_text(w->out, x + width / 2, w->y + 15, SVG_MIDDLE, "quiet", "⋯");
    else
      draw_step(w, d, all || i < FIRST ? i : d->extent - slots + i, x, width);
  }
  w->y += STEP;
  return width;
}

static void draw_digits(drawing *w, const page_map *m) {
  const page_map_part *codes = &m->parts[0];
  bool first = true;
  double last = 0;
  for (int i = 0; i < codes->digit_count; i++) {
    const page_digit *d = &codes->digits[i];
    if (d->extent == 1) continue;
    if (!first) {
      svg_line(w->out, LEFT, w->y, LEFT, w->y + ZOOM, "edge");
      svg_line(w->out, LEFT + last, w->y, LEFT + ACROSS, w->y + ZOOM, "edge");
      w->y += ZOOM;
    }
    first = false;
    last = draw_digit(w, d, d->axis == AXIS_H ? 0 : codes->part.layout->size[d->axis]);
  }
  w->y += 16;
}

/* ---- Bytes ---- */

static const char *class_of(const page_cell *c, occurs *seen) {
  static const char *const classes[][2] = {
      {"d0", "d1"}, {"s0", "s1"}, {"c0", "c1"}, {"t0", "t1"}, {"h0", "h1"}};
  if (c->first.part < 0) {
    seen->padding = true;
    return "gap";
  }
  int axis_kind = c->count == 1 ? 0 : c->along == AXIS_S ? 1 : c->along == AXIS_H ? 4 : 0;
  int kind = c->first.kind == PAGE_SCALES ? 2 : c->first.kind == PAGE_TAIL ? 3 : axis_kind;
  seen->scales |= kind == 2;
  seen->tail |= kind == 3;
  seen->along_s |= kind == 1;
  seen->along_h |= kind == 4;
  seen->along_d |= kind == 0;
  int64_t other = kind == 1 ? c->first.channel : c->first.slot;
  return classes[kind][other > 0 ? other % 2 : 0];
}

/* Stretches of a cell's bytes that some lane of `l` takes, one after the other: from *from on. */
static bool next_taken(const lane_list *l, const page_cell *c, int64_t *from, int64_t *to) {
  const int64_t end = c->at + c->bytes;
  int64_t first = end, last;
  for (size_t i = 0; i < l->count; i++) {
    const lane_bytes *b = &l->items[i];
    int64_t at = b->at > *from ? b->at : *from;
    if (b->at + b->bytes > *from && at < first) first = at;
  }
  if (first >= end) return false;
  bool grows = true;
  for (last = first; grows && last < end;) {
    grows = false;
    for (size_t i = 0; i < l->count; i++) {
      const lane_bytes *b = &l->items[i];
      if (b->at > last || b->at + b->bytes <= last) continue;
      last = b->at + b->bytes;
      grows = true;
    }
  }
  *from = first;
  *to = last < end ? last : end;
  return true;
}

/* What is taken of a cell, as bars along one of its edges. */
static bool draw_bars(drawing *w, const lane_list *l, const page_cell *c, double x, double scale, double y,
                      const char *class) {
  bool some = false;
  for (int64_t from = c->at, to; next_taken(l, c, &from, &to); from = to) {
    double room = scale < 8 ? 1 : 2;
    svg_rect(w->out, x + (double)(from - c->at) * scale + room, y, (double)(to - from) * scale - 2 * room,
             3.5, class);
    some = true;
  }
  return some;
}

/* What differs from the cell before it; of scales whose they are. */
static void write_short(const page_view *v, const page_cell *c, text *out) {
  page_map one = v->map;
  page_cell cell = *c;
  one.heads = 1;
  if (c->first.kind == PAGE_SCALES) {
    if (c->first.slot >= 0) text_addf(out, "t%lld", (long long)c->first.slot);
    return;
  }
  if (c->along == AXIS_D && c->count > 1) cell.first.slot = -1;
  if (c->along == AXIS_S && c->count > 1) cell.first.channel = -1;
  page_cell_write(&one, &cell, "–", out);
}

static void draw_cell(drawing *w, const page_view *v, const page_cell *c, double x, double scale,
                      double height) {
  text title, label, lanes, operand;
  text *const all[] = {&title, &label, &lanes, &operand};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    text_init(all[i]);
  double width = (double)c->bytes * scale;
  int loaded = lanes_write(&v->load, c->at, c->bytes, "–", &lanes);
  int taken = lanes_write(&v->operand, c->at, c->bytes, "–", &operand);
  page_cell_write(&v->map, c, "–", &label);
  text_addf(&title, "bytes %lld–%lld: ", (long long)c->at, (long long)(c->at + c->bytes - 1));
  page_cell_describe(&v->map, c, "–", &title);
  const char *plural = loaded > 1 ? "s" : "";
  if (loaded)
    text_addf(&title, "; first %s: lane%s %s", v->kind == LOAD_REGISTERS ? "load" : "copy", plural,
              text_string(&lanes));
  if (taken)
    text_addf(&title, "; first matrix instruction: lane%s %s", taken > 1 ? "s" : "", text_string(&operand));
  svg_group(w->out, text_string(&title));
  char class[16];
  snprintf(class, sizeof class, "%s%s", class_of(c, &w->seen), loaded ? " load" : "");
  double inset = loaded ? 1.5 : 0.5;
  svg_rect(w->out, x + inset, w->y + inset, width - 2 * inset, height - 1 - 2 * inset, class);
  w->seen.own |= draw_bars(w, &v->own, c, x, scale, w->y, "own");
  w->seen.operand |= draw_bars(w, &v->operand, c, x, scale, w->y + height - 6.5, "operand");
  w->seen.load |= loaded > 0;
  if (svg_text_width(text_string(&label)) > width - 6) { /* the rest is the same all along the row */
    text_clear(&label);
    write_short(v, c, &label);
  }
  if (svg_text_width(text_string(&label)) <= width - 6)
    svg_text(w->out, x + width / 2, w->y + 14.5, SVG_MIDDLE, "", text_string(&label));
  if (loaded && v->kind != LOAD_BULK) {
    text_clear(&label);
    text_addf(&label, "lane%s %s", plural, text_string(&lanes));
    const char *words =
        svg_text_width(text_string(&label)) <= width - 6 ? text_string(&label) : text_string(&lanes);
    if (svg_text_width(words) <= width - 4)
      svg_text(w->out, x + width / 2, w->y + 26, SVG_MIDDLE, "lane", words);
  }
  svg_group_end(w->out);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (all[i]->failed) w->out->failed = true;
    text_finish(all[i]);
  }
}

static void draw_gap(drawing *w, const page_view *v, const page_row *row) {
  text words;
  text_init(&words);
  text_addf(&words, "⋯ bytes %lld–%lld", (long long)row->start, (long long)(row->end - 1));
  size_t length = words.length;
  text_add(&words, ": ");
  page_gap_describe(v, row, "–", &words);
  if (words.length == length + 2) words.data[words.length = length] = '\0';
  svg_text(w->out, LEFT + 4, w->y + 14, SVG_START, "quiet", text_string(&words));
  text_finish(&words);
  w->y += GAP;
}

static bool is_taken(const lane_list *l, const page_row *row) {
  for (size_t i = 0; i < l->count; i++)
    if (l->items[i].at < row->end && row->start < l->items[i].at + l->items[i].bytes) return true;
  return false;
}

static void draw_bytes(drawing *w, const page_view *v) {
  double scale = (double)ACROSS / (double)v->row_bytes;
  if (v->map.bytes <= 4 * v->cell_bytes) scale = (double)ACROSS / 8 / (double)v->cell_bytes; /* a few cells */
  for (int i = 0; i < v->row_count; i++) {
    const page_row *row = &v->rows[i];
    if (row->gap) {
      draw_gap(w, v, row);
      continue;
    }
    bool lanes = v->kind != LOAD_BULK && is_taken(&v->load, row);
    double height = lanes ? LOADED : is_taken(&v->operand, row) ? BARRED : PLAIN;
    svg_textf(w->out, LEFT - 10, w->y + 14.5, SVG_END, "quiet mono", "%lld", (long long)row->start);
    for (int64_t at = row->start; at < row->end;) {
      page_cell c = page_map_cell(&v->map, at, row->end, v->cell_bytes);
      draw_cell(w, v, &c, LEFT + (double)(at - row->start) * scale, scale, height);
      at += c.bytes;
    }
    w->y += height;
  }
  if (v->has_lanes) w->seen.kind = v->kind;
}

/* ---- The whole ---- */

typedef struct legend_item {
  bool occurs;
  const char *class, *words;
} legend_item;

static void draw_legend(drawing *w, const occurs *o) {
  static const char *const loads[] = {[LOAD_REGISTERS] = "first load of a wave, by its lanes",
                                      [LOAD_PIECES] = "first copy of a wave into LDS, by its lanes",
                                      [LOAD_BULK] = "first copy of a tile into shared memory"};
  const legend_item items[] = {
      {o->along_d, "d1", "consecutive channels of a token"},
      {o->along_s, "s1", "consecutive tokens of a channel"},
      {o->along_h, "h1", "kv heads of a token and channel"},
      {o->scales, "c1", "scales"},
      {o->tail, "t1", "K's tail, in a format of its own"},
      {o->padding, "gap", "padding"},
      {o->load, "none load", loads[o->kind]},
      {o->own, "own", "all that lane 0 reads of the tile"},
      {o->operand, "operand", "operand of the first matrix instruction"},
  };
  double x = 24;
  for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
    if (!items[i].occurs) continue;
    double needed = 22 + svg_text_width(items[i].words) + 18;
    if (x + needed > SVG_WIDTH - 12) {
      x = 24;
      w->y += 18;
    }
    bool bar = items[i].class[0] == 'o'; /* own, operand */
    svg_rect(w->out, x + 1, w->y + (bar ? 5 : 1), 14, bar ? 4 : 11, items[i].class);
    svg_text(w->out, x + 22, w->y + 11, SVG_START, "", items[i].words);
    x += needed;
  }
  w->y += 26;
}

static void draw_panel(drawing *w, const layout_panel *p) {
  svg_text(w->out, 24, w->y + 12, SVG_START, "head", p->heading);
  w->y += 24;
  if (!p->is_scales) draw_digits(w, &p->view.map);
  draw_bytes(w, &p->view);
  w->y += 22;
}

void layout_svg(const layout_picture *p, text *out) {
  layout_panel panels[LAYOUT_MOST_PANELS];
  int count = layout_panels(p, CELLS, panels);
  if (count < 0) {
    out->failed = true;
    return;
  }
  text body, title, sentence, head;
  text *const all[] = {&body, &title, &sentence, &head};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    text_init(all[i]);
  drawing w = {.out = &body};
  for (int i = 0; i < count; i++)
    draw_panel(&w, &panels[i]);
  if (*layout_scales_sentence(p->contract)) {
    svg_text(&body, 24, w.y + 10, SVG_START, "head", layout_scales_sentence(p->contract));
    w.y += 30;
  }
  layout_lanes_sentence(p, panels, count, &sentence);
  text_addf(&title, "%s: where the bytes of a page lie", p->name);
  drawing top = {.out = &head, .y = 62, .seen = w.seen};
  svg_text(&head, 24, 50, SVG_START, "quiet", text_string(&sentence));
  draw_legend(&top, &w.seen);
  svg_begin(out, (int)(top.y + w.y) + 8, text_string(&title), text_string(&sentence));
  text_add(out, text_string(&head));
  text_addf(out, "<g transform=\"translate(0 %d)\">\n", (int)top.y + 4);
  text_add(out, text_string(&body));
  text_add(out, "</g>\n");
  svg_end(out);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (all[i]->failed) out->failed = true;
    text_finish(all[i]);
  }
  layout_panels_finish(panels, count);
}
