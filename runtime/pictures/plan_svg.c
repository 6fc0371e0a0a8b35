#include "plan_picture.h"
#include "svg.h"

#include <stdio.h>
#include <string.h>

/* Pixels. */
enum { LEFT = 130, ACROSS = SVG_WIDTH - LEFT - 24, ROW = 24, LINE = 17 };

/* Colours in turn. */
enum { COLOURS = 8 };

typedef struct drawing {
  text *out;
  const plan_picture *picture;
  double y;
} drawing;

static void draw_head(drawing *w, const char *words) {
  svg_text(w->out, 24, w->y + 12, SVG_START, "head", words);
  w->y += 24;
}

/* A box with a title, and words where there is room. */
static void draw_box(drawing *w, double x, double width, const char *class, const char *title,
                     const char *words) {
  svg_group(w->out, title);
  double gap = width > 4 ? 0.5 : 0;
  svg_rect(w->out, x + gap, w->y, width - 2 * gap, ROW - 2, class);
  if (*words && svg_text_width(words) < width - 3)
    svg_text(w->out, x + width / 2, w->y + 15, SVG_MIDDLE, "", words);
  svg_group_end(w->out);
}

static void draw_sentences(drawing *w) {
  text all;
  text_init(&all);
  plan_sentences(w->picture, &all);
  for (const char *at = text_string(&all); *at;) {
    size_t length = strcspn(at, "\n");
    bool inner = strncmp(at, "  ", 2) == 0;
    svg_textf(w->out, inner ? 44 : 24, w->y + 11, SVG_START, "", "%.*s", (int)length - (inner ? 2 : 0),
              at + (inner ? 2 : 0));
    w->y += LINE;
    at += length + (at[length] == '\n');
  }
  if (all.failed) w->out->failed = true;
  text_finish(&all);
  w->y += 14;
}

/* ---- The batch ---- */

enum { MOST_ITEMS = 8, MOST_PIECES = 400 };

/* What is drawn of an item: the parts of it, one after the other. */
static void draw_item(drawing *w, int64_t sequence, int64_t kv_head, double scale) {
  const schedule *s = &w->picture->schedule;
  tile_span tiles = schedule_tiles(s, sequence);
  int64_t before = 0, n = 0;
  svg_textf(w->out, LEFT - 10, w->y + 15, SVG_END, "", "seq %lld, head %lld", (long long)sequence,
            (long long)kv_head);
  for (int64_t i = 0; s->on_line && i < sequence; i++)
    before += schedule_tiles(s, i).end * s->kv_heads;
  before += s->on_line ? kv_head * tiles.end : 0;
  /* The first part that ends within the item; cuts ascend. */
  for (int64_t step = s->on_line ? s->parts : 0; step > 0; step /= 2)
    while (n + step < s->parts && schedule_part(s, n + step - 1).end <= before)
      n += step;
  for (; n < (s->on_line ? s->parts : s->splits); n++) {
    tile_span span = s->on_line ? schedule_part(s, n) : schedule_split(s, sequence, n);
    if (s->on_line) span = (tile_span){span.first - before, span.end - before};
    if (span.first >= tiles.end) break;
    if (span.first < tiles.first) span.first = tiles.first;
    if (span.end > tiles.end) span.end = tiles.end;
    if (span.end <= span.first) continue;
    char title[160], words[24];
    int64_t end =
        span.end * s->tile_tokens < s->lengths[sequence] ? span.end * s->tile_tokens : s->lengths[sequence];
    snprintf(title, sizeof title, "%s %lld: tiles %lld–%lld, tokens %lld–%lld", s->on_line ? "part" : "split",
             (long long)n, (long long)span.first, (long long)(span.end - 1),
             (long long)(span.first * s->tile_tokens), (long long)(end - 1));
    snprintf(words, sizeof words, "%lld", (long long)n);
    static const char *const classes[] = {"w0", "w3", "w2", "w5"};
    draw_box(w, LEFT + (double)span.first * scale, (double)(span.end - span.first) * scale, classes[n % 4],
             title, words);
  }
  w->y += ROW;
}

static void draw_batch(drawing *w) {
  const schedule *s = &w->picture->schedule;
  int64_t items = s->seqs * s->kv_heads, most = 1, shown = items <= MOST_ITEMS ? items : MOST_ITEMS - 1;
  for (int64_t i = 0; i < s->seqs; i++)
    if (schedule_tiles(s, i).end > most) most = schedule_tiles(s, i).end;
  const decode_plan *p = &w->picture->solution->plan;
  const int share = p->column_groups * p->slices;
  char head[160];
  if (s->on_line)
    snprintf(head, sizeof head, "The line of tiles, item by item, and its parts: a workgroup each");
  else if (share == 1)
    snprintf(head, sizeof head, "Splits of each sequence and kv head: a workgroup each");
  else
    snprintf(head, sizeof head, "Splits of each sequence and kv head: %d workgroups each, which share %s",
             share,
             p->slices == 1          ? "the queries"
             : p->column_groups == 1 ? "the channels of V"
                                     : "queries and channels");
  draw_head(w, head);
  double scale = (double)ACROSS / (double)most;
  for (int64_t i = 0; i < shown; i++)
    draw_item(w, i / s->kv_heads, i % s->kv_heads, scale);
  if (shown < items) {
    svg_textf(w->out, LEFT, w->y + 13, SVG_START, "quiet", "⋯ %lld more", (long long)(items - shown - 1));
    w->y += ROW - 4;
    draw_item(w, s->seqs - 1, s->kv_heads - 1, scale);
  }
  svg_textf(w->out, LEFT, w->y + 10, SVG_START, "quiet small", "0");
  svg_textf(w->out, LEFT + ACROSS, w->y + 10, SVG_END, "quiet small", "%lld tokens",
            (long long)(most * s->tile_tokens));
  w->y += 30;
}

/* ---- One workgroup ---- */

enum { MOST_TILES = 12 };

/* Its first tiles: who takes them, and where a ring holds them. */
static void draw_workgroup(drawing *w) {
  const plan_picture *p = w->picture;
  const schedule *s = &p->schedule;
  const decode_solution *solved = p->solution;
  tile_span span = s->on_line ? schedule_part(s, 0) : schedule_split(s, 0, 0);
  int64_t count = span.end - span.first, shown = count <= MOST_TILES ? count : MOST_TILES;
  int takers = plan_takers(solved), stages = plan_stages(solved);
  char head[200];
  snprintf(head, sizeof head, "%s 0: %lld tile%s, %s by %d %s%s", s->on_line ? "Part" : "Split",
           (long long)count, count == 1 ? "" : "s", s->on_line ? "taken" : "taken in turn", takers,
           s->on_line ? "warpgroup" : "wave",
           s->on_line && takers > 1 ? "s, half each"
           : takers > 1             ? "s"
                                    : "");
  draw_head(w, head);
  double width = (double)ACROSS / MOST_TILES;
  svg_text(w->out, LEFT - 10, w->y + 15, SVG_END, "", "tile");
  for (int64_t i = 0; i < shown; i++) {
    char title[160], words[24];
    bool gap = shown < count && i == shown - 2;
    int64_t tile = shown < count && i == shown - 1 ? span.end - 1 : span.first + i;
    if (gap) {
      svg_text(w->out, LEFT + width * ((double)i + 0.5), w->y + 15, SVG_MIDDLE, "quiet", "⋯");
      continue;
    }
    line_position at = s->on_line ? schedule_place(s, tile) : (line_position){.tile = tile};
    snprintf(title, sizeof title, "sequence %lld, kv head %lld, tile %lld: tokens %lld–%lld",
             (long long)at.sequence, (long long)at.kv_head, (long long)at.tile,
             (long long)(at.tile * s->tile_tokens), (long long)((at.tile + 1) * s->tile_tokens - 1));
    snprintf(words, sizeof words, "%lld", (long long)at.tile);
    char class[8];
    snprintf(class, sizeof class, "w%d", plan_taker(p, tile - span.first) % COLOURS);
    draw_box(w, LEFT + width * (double)i, width, class, title, words);
  }
  w->y += ROW;
  svg_text(w->out, LEFT - 10, w->y + 11, SVG_END, "quiet", s->on_line ? "warpgroup" : "wave");
  if (stages) svg_text(w->out, LEFT - 10, w->y + 27, SVG_END, "quiet", "stage");
  for (int64_t i = 0; i < shown; i++) {
    if (shown < count && i == shown - 2) continue;
    int64_t n = shown < count && i == shown - 1 ? count - 1 : i;
    double x = LEFT + width * ((double)i + 0.5);
    svg_textf(w->out, x, w->y + 11, SVG_MIDDLE, "", "%d", plan_taker(p, n));
    if (stages) svg_textf(w->out, x, w->y + 27, SVG_MIDDLE, "", "%d", plan_stage(p, n));
  }
  w->y += stages ? 48 : 32;
}

/* Which stages are filled while a tile is computed: of one wave, or of the workgroup. */
static void draw_stages(drawing *w) {
  const plan_picture *p = w->picture;
  int stages = plan_stages(p->solution);
  if (stages == 0) return;
  enum { STEPS = 12 };
  const bool line = p->solution->on_line;
  char head[160];
  snprintf(head, sizeof head, "A ring of %d stages%s, step by step, where there are tiles enough", stages,
           line ? plan_takers(p->solution) > 1 ? " for each warpgroup" : "" : " for each wave");
  draw_head(w, head);
  double width = (double)ACROSS / STEPS;
  for (int stage = 0; stage < stages; stage++) {
    svg_textf(w->out, LEFT - 10, w->y + 15, SVG_END, "quiet", "stage %d", stage);
    for (int step = 0; step < STEPS; step++) {
      int tile = step;
      while (tile % stages != stage)
        tile++; /* the next that lies in this stage */
      bool computed = tile == step;
      char title[120], words[24];
      snprintf(title, sizeof title, "step %d, stage %d: tile %d is %s", step, stage, tile,
               computed ? "computed" : "on its way");
      snprintf(words, sizeof words, computed ? "tile %d" : "→ %d", tile);
      draw_box(w, LEFT + width * step, width, computed ? "w2" : "gap", title, words);
    }
    w->y += ROW;
  }
  svg_textf(w->out, LEFT, w->y + 11, SVG_START, "quiet",
            "filled: the tile that is computed; dashed: tiles on their way from memory. Numbers count one "
            "%s's tiles.",
            line ? "warpgroup" : "wave");
  w->y += 34;
}

/* ---- Orders ---- */

/* A cell of one of the tables below. */
static void draw_entry(drawing *w, int column, int columns, int owner, const char *title, const char *words) {
  char class[8];
  double width = (double)ACROSS / columns;
  snprintf(class, sizeof class, "w%d", owner % COLOURS);
  draw_box(w, LEFT + width * column, width, class, title, words);
}

static void draw_tokens(drawing *w) {
  const decode_solution *s = w->picture->solution;
  enum { MOST_COLUMNS = 16, MOST_PRODUCTS = 8 };
  int products = plan_score_products(s), rows = plan_score_rows(s);
  int columns = rows < MOST_COLUMNS ? rows : MOST_COLUMNS,
      shown = products < MOST_PRODUCTS ? products : MOST_PRODUCTS;
  char head[200];
  snprintf(head, sizeof head, "Tokens of a tile as rows of the score products: %d of %d rows%s", products,
           rows, s->on_line ? ", those of warp 0" : "; colours: the lane group that owns the token");
  draw_head(w, head);
  for (int product = 0; product < shown; product++) {
    svg_textf(w->out, LEFT - 10, w->y + 15, SVG_END, "quiet", "product %d", product);
    for (int row = 0; row < columns; row++) {
      char title[120], words[24];
      int token = plan_row_token(s, product, row), owner = plan_token_owner(s, token);
      snprintf(title, sizeof title, "product %d, row %d: token %d, of %s %d", product, row, token,
               s->on_line ? "warp" : "lane group", owner);
      snprintf(words, sizeof words, "t%d", token);
      draw_entry(w, row, columns, owner, title, words);
    }
    w->y += ROW;
  }
  w->y += 16;
}

static void draw_channels(drawing *w) {
  const decode_solution *s = w->picture->solution;
  const decode_plan *p = &s->plan;
  if (s->on_line) return;
  enum { MOST_COLUMNS = 10 };
  int fragments = plan_fragments(s), columns = fragments < MOST_COLUMNS ? fragments : MOST_COLUMNS;
  int coded = contract_coded_k(&s->contract), elements = p->op->elements;
  char head[200];
  snprintf(head, sizeof head, "Channels of K in a lane's fragments, %d each, by lane group%s", elements,
           fragments > columns ? ": the first of them" : "");
  draw_head(w, head);
  for (int group = 0; group < p->op->groups; group++) {
    svg_textf(w->out, LEFT - 10, w->y + 15, SVG_END, "quiet", "group %d", group);
    for (int u = 0; u < columns; u++) {
      char title[160], words[48] = "zeros";
      int first = plan_fragment_channel(s, u, group), run = elements < p->k_chunk ? elements : p->k_chunk;
      if (first < coded)
        snprintf(words, sizeof words, elements > run ? "d%d–%d …" : "d%d–%d", first, first + run - 1);
      snprintf(title, sizeof title, "fragment %d of lane group %d: %s%s", u, group, words,
               elements > run ? " and further chunks" : "");
      draw_entry(w, u, columns, group, title, words);
    }
    w->y += ROW;
  }
  w->y += 16;
}

static void draw_values(drawing *w) {
  const decode_solution *s = w->picture->solution;
  const decode_plan *p = &s->plan;
  if (s->on_line) return;
  enum { MOST_COLUMNS = 16, MOST_TILES_OF_V = 4 };
  int rows = p->value_op->rows, columns = rows < MOST_COLUMNS ? rows : MOST_COLUMNS;
  int shown = p->value_tiles < MOST_TILES_OF_V ? p->value_tiles : MOST_TILES_OF_V;
  double width = (double)ACROSS / columns;
  char head[220], tail[40] = "";
  if (p->tail_tiles) snprintf(tail, sizeof tail, ", %d more of the tail", p->tail_tiles);
  snprintf(head, sizeof head,
           "Channels of V as rows of the value products: %d channel tiles of %d rows%s%s%s", p->value_tiles,
           rows, tail, p->slices > 1 ? " in a slice" : "",
           shown < p->value_tiles ? ", the first of them" : "");
  draw_head(w, head);
  for (int m = 0; m < shown; m++) {
    svg_textf(w->out, LEFT - 10, w->y + 15, SVG_END, "quiet", "tile %d", m);
    for (int row = 0; row < columns; row++) {
      char title[120], words[24];
      int channel = (m / p->v_channels * rows + row) * p->v_channels + m % p->v_channels;
      snprintf(title, sizeof title, "channel tile %d, row %d: channel %d", m, row, channel);
      snprintf(words, sizeof words, "d%d", channel);
      draw_box(w, LEFT + width * row, width, row % 2 ? "d1" : "d0", title, words);
    }
    w->y += ROW;
  }
  w->y += 16;
}

void plan_svg(const plan_picture *p, text *out) {
  text body, title, launch;
  text_init(&body);
  text_init(&title);
  text_init(&launch);
  drawing w = {.out = &body, .picture = p, .y = 64};
  if (p->schedule.lengths) plan_launch_sentence(p, &launch);
  text_addf(&title, "%s on %s: how decode runs", p->name, p->target->name);
  svg_textf(&body, 24, 50, SVG_START, "quiet", "variant %s, %d lanes a wave", p->variant, p->target->wave);
  draw_sentences(&w);
  if (p->schedule.lengths) {
    svg_text(&body, 24, w.y + 4, SVG_START, "quiet", text_string(&launch));
    w.y += 22;
    draw_batch(&w);
    draw_workgroup(&w);
    draw_stages(&w);
  }
  draw_tokens(&w);
  draw_channels(&w);
  draw_values(&w);
  svg_begin(out, (int)w.y, text_string(&title),
            p->schedule.lengths ? text_string(&launch) : "the plan of decode");
  text_add(out, text_string(&body));
  svg_end(out);
  if (body.failed || title.failed || launch.failed) out->failed = true;
  text_finish(&body);
  text_finish(&title);
  text_finish(&launch);
}
