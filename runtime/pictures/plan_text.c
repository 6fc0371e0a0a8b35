#include "lines.h"
#include "plan_picture.h"

#include <stdio.h>
#include <string.h>

/* Columns: a name, then cells. */
enum { NAME = 14, CELL = 4, LEAST_ACROSS = 10 };

static const char *const colours[] = {"34", "33", "32", "35", "36", "94", "93", "92"};
enum { COLOURS = sizeof colours / sizeof *colours };

static int across(const plan_picture *p) {
  return p->columns - NAME > LEAST_ACROSS ? p->columns - NAME : LEAST_ACROSS;
}

static void add_name(text *out, const char *format, ...) HD_PRINTF(2, 3);
static void add_name(text *out, const char *format, ...) {
  va_list args;
  text name;
  text_init(&name);
  va_start(args, format);
  text_vaddf(&name, format, args);
  va_end(args);
  text_addf(out, "%-*s", NAME, text_string(&name));
  text_finish(&name);
}

/* A heading behind an empty line. */
static void print_head(const plan_picture *p, text *out, const char *format, ...) HD_PRINTF(3, 4);
static void print_head(const plan_picture *p, text *out, const char *format, ...) {
  va_list args;
  text words;
  text_init(&words);
  va_start(args, format);
  text_vaddf(&words, format, args);
  va_end(args);
  text_add(out, "\n");
  lines_wrap(out, p->columns, text_string(&words));
  text_finish(&words);
}

static void print_sentences(const plan_picture *p, text *out) {
  text all;
  text_init(&all);
  plan_sentences(p, &all);
  char line[512];
  for (const char *at = text_string(&all); *at;) {
    size_t length = strcspn(at, "\n");
    snprintf(line, sizeof line, "  %.*s", (int)length, at);
    lines_wrap(out, p->columns, line);
    at += length + (at[length] == '\n');
  }
  if (all.failed) out->failed = true;
  text_finish(&all);
}

/* An item's tiles as a bar: each stretch of it the last digit of its split or part. */
static void print_item(const plan_picture *p, int64_t sequence, int64_t kv_head, int64_t most, text *out) {
  const schedule *s = &p->schedule;
  tile_span tiles = schedule_tiles(s, sequence);
  int64_t before = kv_head * tiles.end;
  for (int64_t i = 0; i < sequence; i++)
    before += schedule_tiles(s, i).end * s->kv_heads;
  add_name(out, "seq %lld h %lld", (long long)sequence, (long long)kv_head);
  int width = across(p);
  int64_t part = 0;
  for (int column = 0; column < width; column++) {
    int64_t tile = most * column / width;
    if (tile < tiles.first || tile >= tiles.end) {
      text_add(out, " ");
      continue;
    }
    if (s->on_line)
      while (part + 1 < s->parts && schedule_part(s, part).end <= before + tile)
        part++;
    else
      while (part + 1 < s->splits && schedule_split(s, sequence, part).end <= tile)
        part++;
    char digit[2] = {(char)('0' + part % 10), 0};
    lines_add(out, p->colour, colours[part % COLOURS], digit, 1);
  }
  lines_end(out);
}

static void print_batch(const plan_picture *p, text *out) {
  const schedule *s = &p->schedule;
  enum { MOST_ITEMS = 8 };
  int64_t items = s->seqs * s->kv_heads, most = 1, shown = items <= MOST_ITEMS ? items : MOST_ITEMS - 1;
  for (int64_t i = 0; i < s->seqs; i++)
    if (schedule_tiles(s, i).end > most) most = schedule_tiles(s, i).end;
  print_head(p, out, "%s, by the last digit of their number, over %lld tiles",
             s->on_line ? "Parts of the line" : "Splits", (long long)most);
  for (int64_t i = 0; i < shown; i++)
    print_item(p, i / s->kv_heads, i % s->kv_heads, most, out);
  if (shown == items) return;
  text_addf(out, "... %lld more\n", (long long)(items - shown - 1));
  print_item(p, s->seqs - 1, s->kv_heads - 1, most, out);
}

typedef int64_t (*tile_number)(const plan_picture *p, int64_t n, tile_span span);

static int64_t tile_of(const plan_picture *p, int64_t n, tile_span span) {
  return p->schedule.on_line ? schedule_place(&p->schedule, span.first + n).tile : span.first + n;
}
static int64_t taker_of(const plan_picture *p, int64_t n, tile_span span) {
  (void)span;
  return plan_taker(p, n);
}
static int64_t stage_of(const plan_picture *p, int64_t n, tile_span span) {
  (void)span;
  return plan_stage(p, n);
}

static void print_workgroup(const plan_picture *p, text *out) {
  const schedule *s = &p->schedule;
  tile_span span = s->on_line ? schedule_part(s, 0) : schedule_split(s, 0, 0);
  int64_t count = span.end - span.first, most = across(p) / CELL, shown = count < most ? count : most;
  const struct {
    const char *name;
    tile_number number;
  } rows[] = {{"tile", tile_of}, {s->on_line ? "warpgroup" : "wave", taker_of}, {"stage", stage_of}};
  print_head(p, out, "%s 0 of the first item: %lld tile%s%s", s->on_line ? "Part" : "Split", (long long)count,
             count == 1 ? "" : "s", shown < count ? ", the first of them" : "");
  for (int i = 0; i < (plan_stages(p->solution) ? 3 : 2); i++) {
    add_name(out, "  %s", rows[i].name);
    for (int64_t n = 0; n < shown; n++) {
      char word[24];
      snprintf(word, sizeof word, "%lld", (long long)rows[i].number(p, n, span));
      lines_add(out, p->colour, colours[taker_of(p, n, span) % COLOURS], word, CELL);
    }
    lines_end(out);
  }
}

static void print_tokens(const plan_picture *p, text *out) {
  const decode_solution *s = p->solution;
  int products = plan_score_products(s), rows = plan_score_rows(s), most = across(p) / CELL;
  int columns = rows < most ? rows : most, shown = products < 8 ? products : 8;
  print_head(p, out, "Tokens of a tile as rows of the score products");
  for (int product = 0; product < shown; product++) {
    add_name(out, "  product %d", product);
    for (int row = 0; row < columns; row++) {
      char word[24];
      int token = plan_row_token(s, product, row);
      snprintf(word, sizeof word, "%d", token);
      lines_add(out, p->colour, colours[plan_token_owner(s, token) % COLOURS], word, CELL);
    }
    lines_end(out);
  }
}

static void print_channels(const plan_picture *p, text *out) {
  const decode_solution *s = p->solution;
  if (s->on_line) return;
  enum { WIDE = 11 };
  const decode_plan *d = &s->plan;
  int most = across(p) / WIDE, fragments = plan_fragments(s), coded = contract_coded_k(&s->contract);
  int columns = fragments < most ? fragments : most > 0 ? most : 1;
  int run = d->op->elements < d->k_chunk ? d->op->elements : d->k_chunk;
  print_head(p, out, "Channels of K in a lane's fragments%s",
             columns < fragments ? ", the first of them" : "");
  for (int group = 0; group < d->op->groups; group++) {
    add_name(out, "  group %d", group);
    for (int u = 0; u < columns; u++) {
      char word[32] = "zeros";
      int first = plan_fragment_channel(s, u, group);
      if (first < coded) snprintf(word, sizeof word, "d%d-%d", first, first + run - 1);
      lines_add(out, p->colour, colours[group % COLOURS], word, WIDE);
    }
    lines_end(out);
  }
}

void plan_text(const plan_picture *p, text *out) {
  text words;
  text_init(&words);
  text_addf(&words, "%s on %s, variant %s", p->name, p->target->name, p->variant);
  lines_wrap(out, p->columns, text_string(&words));
  text_clear(&words);
  print_sentences(p, out);
  if (p->schedule.lengths) {
    text_add(out, "\n");
    plan_launch_sentence(p, &words);
    lines_wrap(out, p->columns, text_string(&words));
    print_batch(p, out);
    print_workgroup(p, out);
  }
  print_tokens(p, out);
  print_channels(p, out);
  if (words.failed) out->failed = true;
  text_finish(&words);
}
