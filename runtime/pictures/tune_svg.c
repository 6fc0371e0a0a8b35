#include "heat.h"
#include "svg.h"
#include "tune_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pixels; cells of a map are as wide as their columns leave, up to WIDEST. */
enum { LEFT = 110, ACROSS = SVG_WIDTH - LEFT - 24, ROW = 38, WIDEST = 120, COLOURS = 8, MOST_LINES = 128 };

typedef struct drawing {
  text *out;
  const tune_record *record;
  double y;
} drawing;

/* A row of a map: batches of so many sequences and kv heads. */
typedef struct batch {
  int64_t seqs, kv_heads;
  int rows;
} batch;

/* The rows and columns that entries of one raggedness have, ascending. */
typedef struct axes {
  int row_count, column_count;
  batch rows[MOST_LINES];
  int64_t columns[MOST_LINES];
} axes;

static int compare_batches(const batch *a, const batch *b) {
  const int64_t items[] = {a->seqs * a->kv_heads, b->seqs * b->kv_heads},
                heads[] = {a->kv_heads, b->kv_heads};
  if (items[0] != items[1]) return items[0] < items[1] ? -1 : 1;
  if (heads[0] != heads[1]) return heads[0] < heads[1] ? -1 : 1;
  return a->rows - b->rows;
}

static void add_row(axes *a, batch b) {
  int place = 0, order = 1;
  while (place < a->row_count && (order = compare_batches(&a->rows[place], &b)) < 0)
    place++;
  if (a->row_count == MOST_LINES || (place < a->row_count && order == 0)) return;
  for (int i = a->row_count++; i > place; i--)
    a->rows[i] = a->rows[i - 1];
  a->rows[place] = b;
}

static void add_column(axes *a, int64_t length) {
  int place = 0;
  while (place < a->column_count && a->columns[place] < length)
    place++;
  if (a->column_count == MOST_LINES || (place < a->column_count && a->columns[place] == length)) return;
  for (int i = a->column_count++; i > place; i--)
    a->columns[i] = a->columns[i - 1];
  a->columns[place] = length;
}

static batch batch_of(const tune_entry *e) {
  return (batch){e->shape.seqs, e->shape.kv_heads, e->shape.rows};
}

static int variant_index(const tune_record *r, const char *name) {
  for (int i = 0; i < r->source_count; i++)
    if (strcmp(r->sources[i].variant, name) == 0) return i;
  return 0;
}

static void write_title(const tune_entry *e, text *out) {
  tune_shape_write(&e->shape, out);
  text_addf(out, ": %s, split %" PRId64 ", %.2f µs of %d candidates", e->variant, e->splits, e->us,
            e->candidates);
  if (e->policy_us > 0) text_addf(out, "; the policy's choice %.2f µs", e->policy_us);
  if (e->read_us > 0) text_addf(out, "; a read of the same bytes %.2f µs", e->read_us);
}

/* What a cell says, and its class. */
typedef struct look {
  char class[8], first[80], second[48];
} look;

static look choice_of(const tune_record *r, const tune_entry *e) {
  look l;
  snprintf(l.class, sizeof l.class, "v%d", variant_index(r, e->variant) % COLOURS);
  snprintf(l.first, sizeof l.first, "%s", e->variant);
  snprintf(l.second, sizeof l.second, "split %" PRId64, e->splits);
  return l;
}

static look time_of(const tune_record *r, const tune_entry *e) {
  look l;
  (void)r;
  if (e->read_us > 0)
    snprintf(l.class, sizeof l.class, "heat%d", heat_class(e->read_us / e->us));
  else
    snprintf(l.class, sizeof l.class, "v7");
  snprintf(l.first, sizeof l.first, "%.1f µs", e->us);
  l.second[0] = '\0';
  if (e->read_us > 0)
    snprintf(l.second, sizeof l.second, "%.0f %% of a read", 100 * e->read_us / e->us);
  else if (e->policy_us > 0)
    snprintf(l.second, sizeof l.second, "gained %.1f %%", 100 * (e->policy_us / e->us - 1));
  return l;
}

static void draw_cell(drawing *w, const tune_entry *e, const look *l, double x, double y, double width) {
  text title;
  text_init(&title);
  write_title(e, &title);
  svg_group(w->out, text_string(&title));
  svg_rect(w->out, x + 0.5, y + 0.5, width - 1, ROW - 1, l->class);
  if (svg_text_width(l->first) < width - 4) svg_text(w->out, x + width / 2, y + 16, SVG_MIDDLE, "", l->first);
  if (svg_text_width(l->second) < width + 4)
    svg_text(w->out, x + width / 2, y + 30, SVG_MIDDLE, "small", l->second);
  svg_group_end(w->out);
  if (title.failed) w->out->failed = true;
  text_finish(&title);
}

static void draw_map(drawing *w, const axes *a, bool ragged, const char *head,
                     look (*of)(const tune_record *r, const tune_entry *e)) {
  const tune_record *r = w->record;
  double width = (double)ACROSS / a->column_count;
  if (width > WIDEST) width = WIDEST;
  svg_textf(w->out, 24, w->y + 4, SVG_START, "head", "%s%s", head, ragged ? ", ragged batches" : "");
  w->y += 18;
  svg_text(w->out, 24, w->y + 6, SVG_START, "quiet small", "sequences × kv heads");
  w->y += 14;
  for (int i = 0; i < a->row_count; i++) {
    svg_textf(w->out, LEFT - 10, w->y + ROW * i + 22, SVG_END, "",
              a->rows[i].rows > 1 ? "%" PRId64 " × %" PRId64 ", %d rows" : "%" PRId64 " × %" PRId64,
              a->rows[i].seqs, a->rows[i].kv_heads, a->rows[i].rows);
  }
  for (int i = 0; i < r->entry_count; i++) {
    const tune_entry *e = &r->entries[i];
    const batch own = batch_of(e);
    if (e->shape.ragged != ragged) continue;
    int row = 0, column = 0;
    while (row < a->row_count && compare_batches(&a->rows[row], &own) != 0)
      row++;
    while (column < a->column_count && a->columns[column] != e->shape.length)
      column++;
    if (row == a->row_count || column == a->column_count) continue;
    const look l = of(r, e);
    draw_cell(w, e, &l, LEFT + width * column, w->y + ROW * row, width);
  }
  w->y += ROW * a->row_count;
  for (int i = 0; i < a->column_count; i++)
    svg_textf(w->out, LEFT + width * (i + 0.5), w->y + 15, SVG_MIDDLE, "", "%" PRId64, a->columns[i]);
  svg_text(w->out, LEFT + width * a->column_count / 2, w->y + 32, SVG_MIDDLE, "quiet small",
           "tokens of the longest sequence");
  w->y += 58;
}

static void draw_variants(drawing *w) {
  double x = LEFT;
  svg_text(w->out, 24, w->y + 11, SVG_START, "quiet", "variants");
  for (int i = 0; i < w->record->source_count; i++) {
    const char *name = w->record->sources[i].variant;
    double needed = 22 + svg_text_width(name) + 18;
    char class[8];
    if (x + needed > SVG_WIDTH - 12) {
      x = LEFT;
      w->y += 18;
    }
    snprintf(class, sizeof class, "v%d", i % COLOURS);
    svg_rect(w->out, x, w->y + 1, 14, 11, class);
    svg_text(w->out, x + 20, w->y + 11, SVG_START, "", name);
    x += needed;
  }
  w->y += 30;
}

static void draw_record(drawing *w, axes *a) {
  const tune_record *r = w->record;
  svg_textf(w->out, 24, w->y + 4, SVG_START, "head", "%s, %d heads a kv head, page %d: %s on %s (%s)",
            r->name, r->heads_per_kv, r->page, tune_evidence_name(r->evidence), r->device, r->target);
  svg_textf(w->out, 24, w->y + 22, SVG_START, "quiet", "%d compute units, %s, contract %.12s",
            r->compute_units, r->compiler, r->contract);
  w->y += 36;
  draw_variants(w);
  for (int ragged = 0; ragged < 2; ragged++) {
    *a = (axes){0};
    for (int i = 0; i < r->entry_count; i++)
      if (r->entries[i].shape.ragged == (ragged == 1)) {
        add_row(a, batch_of(&r->entries[i]));
        add_column(a, r->entries[i].shape.length);
      }
    if (a->row_count == 0) continue;
    draw_map(w, a, ragged, "Variant and split of each bucket", choice_of);
    draw_map(w, a, ragged, "Time of each bucket", time_of);
  }
}

void tune_svg(const tune_record *const *records, int count, text *out) {
  axes *a = calloc(1, sizeof *a);
  text body;
  text_init(&body);
  drawing w = {.out = &body, .y = 60};
  out->failed |= !a;
  for (int i = 0; a && i < count; i++) {
    w.record = records[i];
    draw_record(&w, a);
  }
  svg_begin(out, (int)w.y + 4, "heddle tune: buckets",
            "variant, split and time of each shape that was tuned");
  text_add(out, text_string(&body));
  svg_end(out);
  out->failed |= body.failed;
  text_finish(&body);
  free(a);
}
