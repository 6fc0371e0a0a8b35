#include "bench_picture.h"
#include "heat.h"
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Pixels. */
enum { LEFT = 84, ACROSS = SVG_WIDTH - LEFT - 30, PLOT = 300, BAR = 22, NAME = 190, FIGURES = 210 };

/* Shapes up to which each has a bar, and lines join the reads. */
enum { FEW = 24 };

typedef struct drawing {
  text *out;
  const bench_points *points;
  double y;
} drawing;

static double share_of(const bench_point *p) {
  return p->read_us / p->us;
}
/* docs/benchmarks.md */
static double aim_of(const bench_point *p) {
  return 1.02 * p->read_us + 2;
}

/* ---- Time over bytes ---- */

/* A logarithmic axis between two of 1, 2, 5, 10, … */
typedef struct log_axis {
  double least, most, from, size;
} log_axis;

/* The largest of 1, 2, 5, 10, … up to x, or the least from x on. */
static double round_step(double x, bool up) {
  static const double steps[] = {1, 2, 5, 10};
  double decade = pow(10, floor(log10(x) + 1e-9)), found = up ? 10 * decade : decade;
  for (int i = 0; i < 4; i++) {
    double step = steps[i] * decade;
    if (!up && step <= x * (1 + 1e-9)) found = step;
    if (up && step >= x * (1 - 1e-9) && step < found) found = step;
  }
  return found;
}

static double next_step(double step) {
  double decade = pow(10, floor(log10(step) + 1e-9)), lead = step / decade;
  return lead < 1.5 ? 2 * decade : lead < 3 ? 5 * decade : 10 * decade;
}

static double place(const log_axis *a, double x) {
  return a->from + a->size * (log(x) - log(a->least)) / (log(a->most) - log(a->least));
}

static void write_bytes(double bytes, text *out) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    unit++;
  }
  text_addf(out, "%.0f %s", bytes, units[unit]);
}

static void draw_axes(drawing *w, const log_axis *x, const log_axis *y) {
  for (double step = x->least; step <= x->most * 1.001; step = next_step(step)) {
    text label;
    text_init(&label);
    write_bytes(step, &label);
    svg_line(w->out, place(x, step), w->y, place(x, step), w->y + PLOT, "line");
    svg_text(w->out, place(x, step), w->y + PLOT + 16, SVG_MIDDLE, "quiet", text_string(&label));
    text_finish(&label);
  }
  for (double step = y->least; step <= y->most * 1.001; step = next_step(step)) {
    svg_line(w->out, LEFT, place(y, step), LEFT + ACROSS, place(y, step), "line");
    text label;
    text_init(&label);
    text_add_double(&label, step);
    text_add(&label, " µs");
    svg_text(w->out, LEFT - 8, place(y, step) + 4, SVG_END, "quiet", text_string(&label));
    text_finish(&label);
  }
}

static int by_bytes(const void *a, const void *b) {
  const bench_point *p = a, *q = b;
  if (p->bytes != q->bytes) return p->bytes < q->bytes ? -1 : 1;
  return (p->read_us > q->read_us) - (p->read_us < q->read_us);
}

static void write_point_title(const bench_point *p, text *out) {
  bench_point_write(p, out);
  text_addf(out, ": %.2f µs, read %.2f µs, share %.1f %%, %.0f GB/s, %" PRId64 " bytes; %s, split %" PRId64,
            p->us, p->read_us, 100 * share_of(p), (double)p->bytes / p->us / 1e3, p->bytes,
            *p->variant ? p->variant : "default", p->splits);
}

static void draw_line(drawing *w, const bench_point *sorted, int count, const log_axis *x, const log_axis *y,
                      bool aim) {
  double at[2 * FEW];
  for (int i = 0; i < count; i++) {
    at[2 * i] = place(x, (double)sorted[i].bytes);
    at[2 * i + 1] = place(y, aim ? aim_of(&sorted[i]) : sorted[i].read_us);
  }
  svg_polyline(w->out, at, count, aim ? "aim" : "read");
}

static void draw_key(drawing *w, double x, const char *class, bool dot, const char *words) {
  if (dot)
    svg_circle(w->out, x + 8, w->y, 4, class);
  else
    svg_line(w->out, x, w->y, x + 16, w->y, class);
  svg_text(w->out, x + 22, w->y + 4, SVG_START, "", words);
}

static void draw_times(drawing *w) {
  const bench_points *p = w->points;
  bench_point *sorted = calloc((size_t)p->count, sizeof *sorted);
  if (!sorted) {
    w->out->failed = true;
    return;
  }
  log_axis x = {INFINITY, 0, LEFT, ACROSS}, y = {INFINITY, 0, 0, -PLOT};
  for (int i = 0; i < p->count; i++) {
    const bench_point *b = sorted + i;
    sorted[i] = p->items[i];
    x.least = fmin(x.least, (double)b->bytes);
    x.most = fmax(x.most, (double)b->bytes);
    y.least = fmin(y.least, fmin(b->read_us, b->us));
    y.most = fmax(y.most, fmax(b->us, aim_of(b)));
  }
  qsort(sorted, (size_t)p->count, sizeof *sorted, by_bytes);
  x.least = round_step(x.least, false);
  y.least = round_step(y.least, false);
  x.most = round_step(fmax(x.most, x.least * 1.5), true);
  y.most = round_step(fmax(y.most, y.least * 1.5), true);
  svg_text(w->out, 24, w->y + 4, SVG_START, "head", "Time over the bytes that decode has to read");
  w->y += 26;
  draw_key(w, LEFT, "dot", true, "decode");
  draw_key(w, LEFT + 80, "hollow", true, "of ragged batches");
  draw_key(w, LEFT + 220, p->count <= FEW ? "read" : "readdot", p->count > FEW, "a read of the same bytes");
  if (p->count <= FEW) draw_key(w, LEFT + 400, "aim", false, "the aim: 1.02 × the read + 2 µs");
  w->y += 18;
  y.from = w->y + PLOT;
  draw_axes(w, &x, &y);
  if (p->count <= FEW) {
    draw_line(w, sorted, p->count, &x, &y, true);
    draw_line(w, sorted, p->count, &x, &y, false);
  }
  for (int i = 0; i < p->count; i++) {
    const bench_point *b = &sorted[i];
    text title;
    text_init(&title);
    write_point_title(b, &title);
    svg_group(w->out, text_string(&title));
    svg_circle(w->out, place(&x, (double)b->bytes), place(&y, b->read_us), 2.2, "readdot");
    svg_circle(w->out, place(&x, (double)b->bytes), place(&y, b->us), 4, b->ragged ? "hollow" : "dot");
    svg_group_end(w->out);
    text_finish(&title);
  }
  free(sorted);
  w->y += PLOT + 48;
}

/* ---- Shares by shape ---- */

static void draw_map(drawing *w, bool ragged) {
  const bench_points *p = w->points;
  heat_map map;
  heat_begin(&map);
  for (int i = 0; i < p->count; i++) {
    const bench_point *b = &p->items[i];
    if (b->ragged != ragged) continue;
    text title;
    text_init(&title);
    write_point_title(b, &title);
    heat_add(&map, heat_power(b->seqs * b->kv_heads), heat_power(b->length), share_of(b),
             text_string(&title));
    text_finish(&title);
  }
  if (map.count > 0) {
    svg_textf(w->out, 24, w->y + 4, SVG_START, "head",
              "Share of the read's speed%s: the least of the shapes nearest to each",
              ragged ? ", ragged batches" : "");
    w->y += 20;
    w->y += heat_draw(&map, w->out, w->y, "sequences × kv heads", "tokens of the longest sequence");
  }
  if (map.failed) w->out->failed = true;
  heat_finish(&map);
}

static void draw_bars(drawing *w) {
  const bench_points *p = w->points;
  const double from = 24 + NAME, across = SVG_WIDTH - from - FIGURES;
  svg_text(w->out, 24, w->y + 4, SVG_START, "head", "Share of the read's speed, shape by shape");
  w->y += 20;
  const double bottom = w->y + BAR * p->count;
  for (int percent = 0; percent <= 100; percent += 25) {
    double x = from + across * percent / 100;
    svg_line(w->out, x, w->y, x, bottom, "line");
    svg_textf(w->out, x, bottom + 14, SVG_MIDDLE, "quiet", "%d %%", percent);
  }
  for (int i = 0; i < p->count; i++) {
    const bench_point *b = &p->items[i];
    double share = share_of(b), aim = b->read_us / aim_of(b);
    text name, title;
    char class[8];
    text_init(&name);
    text_init(&title);
    bench_point_write(b, &name);
    write_point_title(b, &title);
    snprintf(class, sizeof class, "heat%d", heat_class(share));
    svg_group(w->out, text_string(&title));
    svg_text(w->out, from - 10, w->y + 14, SVG_END, "", text_string(&name));
    svg_rect(w->out, from, w->y + 2, across * fmin(share, 1), BAR - 5, class);
    svg_textf(w->out, from + across + 12, w->y + 14, SVG_START, "", "%.1f %%, %.1f µs, %.0f GB/s",
              100 * share, b->us, (double)b->bytes / b->us / 1e3);
    svg_group_end(w->out);
    svg_line(w->out, from + across * aim, w->y, from + across * aim, w->y + BAR - 1, "aim");
    w->y += BAR;
    text_finish(&name);
    text_finish(&title);
  }
  w->y += 42;
}

void bench_svg(const bench_points *p, text *out) {
  text body, title, device;
  text_init(&body);
  text_init(&title);
  text_init(&device);
  text_addf(&title, "heddle decode: %s", p->spec);
  text_addf(&device, "%s (%s), sequences x tokens x kv heads x query heads a kv head", p->device, p->target);
  if (p->untimed) text_addf(&device, "; %d result%s without a time", p->untimed, p->untimed > 1 ? "s" : "");
  drawing w = {&body, p, 78};
  svg_text(&body, 24, 50, SVG_START, "quiet", text_string(&device));
  if (p->count == 0) {
    svg_text(&body, 24, w.y + 4, SVG_START, "",
             "No result has a time: results of emulated devices are only checked.");
    w.y += 30;
  } else {
    draw_times(&w);
    if (p->count <= FEW) draw_bars(&w);
    draw_map(&w, false);
    draw_map(&w, true);
  }
  svg_begin(out, (int)w.y + 4, text_string(&title), text_string(&device));
  text_add(out, text_string(&body));
  svg_end(out);
  if (body.failed || title.failed || device.failed) out->failed = true;
  text_finish(&body);
  text_finish(&title);
  text_finish(&device);
}
