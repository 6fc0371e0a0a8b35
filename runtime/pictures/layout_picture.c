#include "layout_picture.h"

#include <stdio.h>

int64_t layout_heads(const layout_picture *p) {
  const contract *c = p->contract;
  if (!layout_has_axis(&c->kv.k, AXIS_H)) return 1;
  if (p->heads > 0) return p->heads;
  return layout_outside_head(&c->kv.k) || layout_outside_head(&c->kv.v) ? 2 : 1;
}

/* Bytes of the page that the contract has for a kv head, or all of them. */
static void write_heading(const layout_picture *p, const page_map *m, bool is_k, bool is_scales, char *out,
                          size_t size) {
  const contract *c = p->contract;
  const dtype d = is_scales ? c->scale.dtype : is_k ? c->kv.k_dtype : c->kv.v_dtype;
  text written;
  text_init(&written);
  layout_write(m->parts[0].part.layout, &written);
  const char *side = is_k ? "K" : "V";
  char heads[48] = "";
  if (layout_has_axis(m->parts[0].part.layout, AXIS_H))
    snprintf(heads, sizeof heads, " and %lld kv head%s", (long long)m->heads, m->heads > 1 ? "s" : "");
  if (is_scales)
    snprintf(out, size, "%s scales %s, %s: %lld bytes for a page%s", side, text_string(&written),
             dtype_name(d), (long long)m->bytes, heads);
  else if (!is_k && c->kv.v_in_k)
    snprintf(out, size, "V: the first %d channels of K, the same bytes", c->head_dim.v);
  else
    snprintf(out, size, "%s %s, %s: %lld bytes for a page of %d token%s%s", side, text_string(&written),
             dtype_name(d), (long long)m->bytes, c->kv.page, c->kv.page > 1 ? "s" : "", heads);
  text_finish(&written);
}

enum { WHOLE_ROWS = 36, SOME_ROWS = 24, SCALE_ROWS = 2 };

/* Small pages whole; of large ones what repeats. `cells` in a row: narrow rows hold less. */
static page_rows rows_to_keep(const layout_picture *p, bool is_scales, int cells) {
  enum { USUAL_CELLS = 8 };
  if (is_scales) return (page_rows){SCALE_ROWS, SCALE_ROWS};
  if (p->most_rows > 0) return (page_rows){p->most_rows, p->most_rows};
  return (page_rows){WHOLE_ROWS * USUAL_CELLS / cells, SOME_ROWS};
}

int layout_panels(const layout_picture *p, int cells, layout_panel out[LAYOUT_MOST_PANELS]) {
  const contract *c = p->contract;
  int count = 0;
  bool good = true;
  for (int i = 0; good && i < LAYOUT_MOST_PANELS; i++) {
    const bool is_k = i % 2 == 0, is_scales = i >= 2;
    const bool of_k = is_k || c->kv.v_in_k; /* whose bytes */
    page_map m;
    if (is_scales && (!page_map_of_scales(c, is_k, layout_heads(p), &m) || (!is_k && c->kv.v_in_k))) continue;
    if (!is_scales) page_map_of(c, of_k, layout_heads(p), &m);
    layout_panel *panel = &out[count];
    *panel = (layout_panel){.is_k = is_k, .is_scales = is_scales};
    write_heading(p, &m, is_k, is_scales, panel->heading, sizeof panel->heading);
    good = page_view_of(&m, is_scales ? NULL : p->solution, is_k, cells, rows_to_keep(p, is_scales, cells),
                        &panel->view);
    count += good;
  }
  if (good) return count;
  layout_panels_finish(out, count);
  return -1;
}

void layout_panels_finish(layout_panel *panels, int count) {
  for (int i = 0; i < count; i++)
    page_view_finish(&panels[i].view);
}

void layout_lanes_sentence(const layout_picture *p, const layout_panel *panels, int count, text *out) {
  static const char *const kinds[] = {[LOAD_REGISTERS] = "lanes load straight into fragments",
                                      [LOAD_PIECES] = "lanes copy pieces of 16 bytes into a ring in LDS",
                                      [LOAD_BULK] =
                                          "one lane copies many bytes at once into a ring in shared memory"};
  if (!p->solution) {
    text_addf(out, "No lanes are drawn: %s.", p->why_not);
    return;
  }
  text_addf(out, "%s: %s.", p->target->name, kinds[plan_load_kind(p->solution)]);
  int tile = p->solution->on_line ? p->solution->ring.tile : p->solution->plan.tile, pages = 1;
  for (int i = 0; i < count; i++)
    if (panels[i].view.pages > pages) pages = panels[i].view.pages;
  text_addf(out, " A tile is %d tokens", tile);
  if (pages > 1)
    text_addf(out, "; its first load takes bytes of %d pages, of which this is the first.", pages);
  else
    text_add(out, ".");
}

const char *layout_scales_sentence(const contract *c) {
  if (c->scale.argument) return "Scales: one number for K and one for V, given at each launch.";
  switch (c->scale.granularity) {
  case SCALE_TENSOR:
    return c->kv.v_in_k ? "Scales: one for the tensor, an array of one element."
                        : "Scales: one for all of K and one for all of V, arrays of one element.";
  case SCALE_HEAD:
    return "Scales: one for each kv head, whatever the page.";
  default:
    return "";
  }
}
