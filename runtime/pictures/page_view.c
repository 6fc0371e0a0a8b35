#include "page_view.h"

#include <stdlib.h>

/* ---- Lanes ---- */

static bool add_bytes(lane_list *l, lane_bytes b) {
  lane_bytes *last = l->count ? &l->items[l->count - 1] : NULL;
  if (last && last->lane == b.lane && last->at + last->bytes == b.at) {
    last->bytes += b.bytes;
    return true;
  }
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 256;
    lane_bytes *grown = realloc(l->items, room * sizeof *grown);
    if (!grown) return false;
    l->items = grown;
    l->room = room;
  }
  l->items[l->count++] = b;
  return true;
}

/* The bytes of those places that lie in the first page; tokens before channels where they are neighbours. */
static bool add_places(const page_map *m, int page, const plan_place *places, int count, lane_list *out) {
  const int size = m->parts[0].part.bytes;
  for (int i = 0; i < count; i++) {
    const plan_place *p = &places[i];
    bool tokens_inside = p->tokens > 1 && page_map_byte(m, 0, 0, p->token + 1, p->channel) ==
                                              page_map_byte(m, 0, 0, p->token, p->channel) + size;
    int inner = tokens_inside ? p->tokens : p->channels;
    for (int n = 0; n < p->tokens * p->channels; n++) {
      int token = p->token + (tokens_inside ? n % inner : n / inner);
      int channel = p->channel + (tokens_inside ? n / inner : n % inner);
      if (token >= page) continue;
      if (!add_bytes(out, (lane_bytes){page_map_byte(m, 0, 0, token, channel), size, p->lane})) return false;
    }
  }
  return true;
}

/* Pages that the first token of some place lies in. */
static int count_pages(const plan_place *places, int count, int page) {
  int pages = 0;
  for (int i = 0; i < count; i++) {
    bool seen = false;
    for (int j = 0; j < i; j++)
      seen |= places[j].token / page == places[i].token / page;
    pages += !seen;
  }
  return pages;
}

static bool find_lanes(const decode_solution *s, bool is_k, page_view *v) {
  plan_place *places = calloc(PLAN_MOST_PLACES, sizeof *places);
  const int page = s->contract.kv.page;
  if (!places) return false;
  v->has_lanes = true;
  v->kind = plan_load_kind(s);
  int count = plan_first_load(s, is_k, places);
  v->pages = count_pages(places, count, page);
  bool good = add_places(&v->map, page, places, count, &v->load);
  count = plan_first_operand(s, is_k, places);
  good = good && add_places(&v->map, page, places, count, &v->operand);
  count = v->kind == LOAD_BULK ? 0 : plan_lane_reads(s, is_k, 0, places);
  good = good && add_places(&v->map, page, places, count, &v->own);
  free(places);
  return good;
}

static bool overlaps(const lane_bytes *b, int64_t at, int64_t bytes) {
  return b->at < at + bytes && at < b->at + b->bytes;
}

int lanes_write(const lane_list *l, int64_t at, int64_t bytes, const char *dash, text *out) {
  enum { MOST_LANES = 64 };
  bool takes[MOST_LANES] = {false};
  int count = 0;
  for (size_t i = 0; i < l->count; i++)
    if (overlaps(&l->items[i], at, bytes) && l->items[i].lane < MOST_LANES) takes[l->items[i].lane] = true;
  for (int lane = 0; lane < MOST_LANES; lane++) {
    if (!takes[lane]) continue;
    int last = lane;
    while (last + 1 < MOST_LANES && takes[last + 1])
      last++;
    text_addf(out, "%s%d", count ? ", " : "", lane);
    if (last > lane) text_addf(out, "%s%d", dash, last);
    count += last - lane + 1;
    lane = last;
  }
  return count;
}

/* ---- Rows ---- */

enum { CELL = 16, LEAST_RECORD = 64, MOST_OF_RECORD = 8 };

/* How bytes fall into rows: each record, a step of some digit, begins a row of its own where rows would not
 * fall into step with it by themselves. */
typedef struct row_rule {
  int64_t row, record, rows_of_record, bytes;
} row_rule;

static row_rule find_rows(const page_map *m, int cells, int64_t cell) {
  row_rule r = {.row = cell * cells, .record = m->bytes, .bytes = m->bytes};
  if (r.row < CELL) r.row = CELL;
  const page_map_part *codes = &m->parts[0];
  for (int i = codes->digit_count - 1; i >= 0; i--) {
    int64_t step = codes->digits[i].bytes;
    if (step < LEAST_RECORD || step < r.row / 2 || step % r.row == 0 || r.row % step == 0) continue;
    r.record = step;
    if (step <= r.row + r.row / 4) r.row = step;
    break;
  }
  if (r.row > m->bytes) r.row = m->bytes;
  r.rows_of_record = (r.record + r.row - 1) / r.row;
  return r;
}

static int64_t rows_of(const row_rule *r) {
  int64_t rest = r->bytes % r->record;
  return r->bytes / r->record * r->rows_of_record + (rest + r->row - 1) / r->row;
}

static int64_t row_start(const row_rule *r, int64_t n) {
  int64_t at = n / r->rows_of_record * r->record + n % r->rows_of_record * r->row;
  return at < r->bytes ? at : r->bytes;
}

static int64_t row_at(const row_rule *r, int64_t byte) {
  return byte / r->record * r->rows_of_record + byte % r->record / r->row;
}

/* The rows to keep, ascending. */
typedef struct kept_rows {
  int count, most;
  int64_t rows[PAGE_MOST_ROWS];
} kept_rows;

static void keep(kept_rows *k, int64_t row) {
  int place = 0;
  while (place < k->count && k->rows[place] < row)
    place++;
  if (k->count >= k->most || (place < k->count && k->rows[place] == row)) return;
  for (int i = k->count++; i > place; i--)
    k->rows[i] = k->rows[i - 1];
  k->rows[place] = row;
}

/* Where the longest steps lead, and what the first load takes. */
static void choose_rows(const page_view *v, const row_rule *r, int64_t all, kept_rows *k) {
  if (all <= k->most) {
    for (int64_t n = 0; n < all; n++)
      keep(k, n);
    return;
  }
  keep(k, 0);
  keep(k, all - 1);
  for (int64_t n = 1; r->rows_of_record <= MOST_OF_RECORD && n < r->rows_of_record; n++)
    keep(k, n);
  keep(k, 1);
  for (int i = 0; i < v->map.parts[0].digit_count; i++) {
    const page_digit *d = &v->map.parts[0].digits[i];
    if (d->extent > 1 && d->bytes >= r->row) keep(k, row_at(r, d->bytes));
  }
  if (v->load.count > 0 && v->kind != LOAD_BULK)
    for (size_t i = 0; i < v->load.count; i++)
      keep(k, row_at(r, v->load.items[i].at));
  for (int i = 0; i + 1 < k->count; i++) /* what is between them, where it is one row */
    if (k->rows[i + 1] == k->rows[i] + 2) keep(k, k->rows[i] + 1);
  for (int64_t n = 2; n < all && k->count < k->most / 2; n++) /* at most half is no more than that */
    keep(k, n);
}

/* Rows between those that are kept are a gap; one alone is drawn as long as there is room. */
static bool fill_rows(page_view *v, const row_rule *r, const kept_rows *k, int64_t all) {
  v->rows = calloc(2 * (size_t)k->count + 1, sizeof *v->rows);
  if (!v->rows) return false;
  int64_t next = 0;
  int room = k->most - k->count;
  for (int i = 0; i <= k->count; i++) {
    int64_t row = i < k->count ? k->rows[i] : all;
    if (row > next) {
      bool gap = row > next + 1 || room-- <= 0;
      v->rows[v->row_count++] = (page_row){row_start(r, next), row_start(r, row), gap};
    }
    if (i < k->count) v->rows[v->row_count++] = (page_row){row_start(r, row), row_start(r, row + 1), false};
    next = row + 1;
  }
  return true;
}

bool page_view_of(const page_map *m, const decode_solution *s, bool is_k, int cells, page_rows rows,
                  page_view *out_view) {
  page_view v = {.map = *m};
  bool scales = m->parts[0].kind == PAGE_SCALES;
  v.cell_bytes = scales ? m->parts[0].part.bytes : CELL;
  page_cell first = page_map_cell(m, 0, m->bytes, v.cell_bytes);
  row_rule rule = find_rows(m, scales ? 2 * cells : cells, first.bytes);
  v.row_bytes = rule.row;
  bool good = !s || find_lanes(s, is_k, &v);
  int64_t all = rows_of(&rule);
  int most = all <= rows.whole ? rows.whole : rows.most;
  kept_rows kept = {.most = most < PAGE_MOST_ROWS ? most : PAGE_MOST_ROWS};
  choose_rows(&v, &rule, all, &kept);
  good = good && fill_rows(&v, &rule, &kept, all);
  if (good)
    *out_view = v;
  else
    page_view_finish(&v);
  return good;
}

void page_view_finish(page_view *v) {
  free(v->rows);
  free(v->load.items);
  free(v->operand.items);
  free(v->own.items);
  *v = (page_view){0};
}

/* ---- Gaps ---- */

enum { MOST_SCANNED = 1 << 22 };

void page_gap_describe(const page_view *v, const page_row *gap, const char *dash, text *out) {
  int64_t low[AXIS_COUNT] = {0}, high[AXIS_COUNT];
  bool scales = false, tail = false;
  for (int a = 0; a < AXIS_COUNT; a++)
    high[a] = -1;
  int64_t end = gap->end - gap->start > MOST_SCANNED ? gap->start : gap->end;
  for (int64_t at = gap->start; at < end;) {
    page_item i = page_map_at(&v->map, at);
    at += i.part < 0 ? 1 : v->map.parts[i.part].part.bytes;
    bool own_scales = i.kind == PAGE_SCALES && v->map.parts[0].kind == PAGE_SCALES;
    scales |= i.kind == PAGE_SCALES && !own_scales;
    tail |= i.kind == PAGE_TAIL;
    if (i.kind != PAGE_CODES && !own_scales) continue;
    const int64_t values[AXIS_COUNT] = {-1, i.head, i.slot, i.channel};
    for (int a = AXIS_H; a < AXIS_COUNT; a++) {
      if (values[a] < 0) continue;
      if (high[a] < 0 || values[a] < low[a]) low[a] = values[a];
      if (values[a] > high[a]) high[a] = values[a];
    }
  }
  static const char *const names[AXIS_COUNT] = {"", "kv head", "token", "channel"};
  const char *comma = "";
  for (int a = AXIS_H; a < AXIS_COUNT; a++) {
    if (high[a] < 0 || (a == AXIS_H && v->map.heads == 1)) continue;
    bool several = high[a] > low[a];
    bool groups = a == AXIS_D && v->map.parts[0].kind == PAGE_SCALES;
    text_addf(out, "%s%s%s %lld", comma, groups ? "group" : names[a], several ? "s" : "", (long long)low[a]);
    if (several) text_addf(out, "%s%lld", dash, (long long)high[a]);
    comma = ", ";
  }
  if (scales) {
    text_addf(out, "%sscales", comma);
    comma = ", ";
  }
  if (tail) text_addf(out, "%stail", comma);
}
