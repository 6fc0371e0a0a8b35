/* Claims about pictures: what they say of a byte, a lane or a split is what the contract and the plan say. */
#include "../../runtime/pictures/bench_picture.h"
#include "../../runtime/pictures/layout_picture.h"
#include "../../runtime/pictures/plan_picture.h"
#include "../../runtime/pictures/svg.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

static spec shipped(const char *name) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  free(yaml);
  return s;
}

/* ---- Bytes ---- */

enum { MOST_BYTES = 1 << 18 };

/* Every element lies where the contract's own offset says, and no byte is said to be of two. */
static int64_t check_part(const page_map *m, int part, const contract *c, int64_t groups, const char *what) {
  const page_map_part *p = &m->parts[part];
  const layout *l = p->part.layout;
  int64_t slots = l->size[AXIS_S] ? l->size[AXIS_S] : 1, channels = l->size[AXIS_D], elements = 0;
  if (p->kind == PAGE_SCALES) channels = groups;
  int64_t stride_b, stride_h;
  layout_packed_strides(m->parts[0].part.layout, 1, m->heads, &stride_b, &stride_h);
  stride_h = stride_h * m->parts[0].part.bytes / p->part.bytes;
  (void)c;
  for (int64_t h = 0; h < m->heads; h++)
    for (int64_t s = 0; s < slots; s++)
      for (int64_t d = 0; d < channels; d++, elements++) {
        int64_t byte = p->part.at + p->part.bytes * layout_offset(l, 0, stride_h, m->heads, 0, h, s, d);
        for (int i = 0; i < p->part.bytes; i++) {
          page_item item = page_map_at(m, byte + i);
          cr_assert(item.part == part && item.byte == i, "%s: byte %d is of part %d", what, (int)byte,
                    item.part);
          cr_assert(item.head == (item.head < 0 ? -1 : h) && item.slot == (item.slot < 0 ? -1 : s) &&
                        item.channel == (item.channel < 0 ? -1 : d + p->first_channel),
                    "%s: byte %d is said to be of head %d, slot %d, channel %d, not of %d, %d, %d", what,
                    (int)byte, (int)item.head, (int)item.slot, (int)item.channel, (int)h, (int)s, (int)d);
        }
        cr_assert_eq(page_map_byte(m, part, h, s, d + p->first_channel), byte, "%s", what);
      }
  return elements * p->part.bytes;
}

static void check_map(const page_map *m, const contract *c, int64_t groups, const char *what) {
  int64_t used = 0, padding = 0;
  if (m->bytes > MOST_BYTES) return;
  for (int i = 0; i < m->part_count; i++)
    used += check_part(m, i, c, groups, what);
  for (int64_t byte = 0; byte < m->bytes; byte++)
    padding += page_map_at(m, byte).part < 0;
  cr_assert_eq(used + padding, m->bytes, "%s: %d bytes of elements and %d of padding are not %d", what,
               (int)used, (int)padding, (int)m->bytes);
}

static void check_view(const page_map *m, int most, const char *what) {
  page_view v;
  cr_assert(page_view_of(m, NULL, true, 8, (page_rows){most, most}, &v));
  int kept = 0;
  int64_t next = 0;
  for (int i = 0; i < v.row_count; i++) {
    cr_assert(v.rows[i].start == next && v.rows[i].end > next, "%s: row %d", what, i);
    for (int64_t at = next; !v.rows[i].gap && at < v.rows[i].end;) {
      page_cell cell = page_map_cell(m, at, v.rows[i].end, v.cell_bytes);
      cr_assert(cell.bytes > 0 && at + cell.bytes <= v.rows[i].end, "%s: cell at %d", what, (int)at);
      at += cell.bytes;
    }
    next = v.rows[i].end;
    kept += !v.rows[i].gap;
  }
  cr_assert_leq(kept, most, "%s", what);
  cr_assert_eq(next, m->bytes, "%s: rows end at %d of %d", what, (int)next, (int)m->bytes);
  page_view_finish(&v);
}

static void check_contract(const contract *c, int64_t heads, const char *what) {
  const bool groups = c->scale.granularity == SCALE_GROUP;
  for (int is_k = 0; is_k < 2; is_k++) {
    page_map m;
    const bool of_k = is_k || c->kv.v_in_k;
    const int channels = of_k ? contract_coded_k(c) : c->head_dim.v,
              group = of_k ? c->scale.group_k : c->scale.group_v;
    page_map_of(c, of_k, heads, &m);
    check_map(&m, c, groups ? channels / group : 1, what);
    check_view(&m, 12, what);
    check_view(&m, 3, what);
    if (page_map_of_scales(c, of_k, heads, &m)) {
      check_map(&m, c, groups ? channels / group : 1, what);
      check_view(&m, 3, what);
    }
  }
}

Test(pictures, every_byte_of_a_page_is_said_to_hold_what_it_holds) {
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    spec s = shipped(shipped_specs[i]);
    for (int heads = 1; heads <= 3; heads++)
      check_contract(&s.contract, heads, shipped_specs[i]);
    spec_finish(&s);
  }
}

Test(pictures, bytes_of_random_contracts_too) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int round = 0; round < 150; round++) {
    contract c = random_contract(&state);
    const int heads = 1 + random_below(&state, 3);
    page_part parts[PAGE_MAX_PARTS];
    char problem[240], what[32];
    bool apart = true;
    for (int is_k = 0; is_k < 2; is_k++)
      apart = apart && page_parts_apart(parts, page_parts(&c, is_k || c.kv.v_in_k, parts), heads, problem,
                                        sizeof problem);
    snprintf(what, sizeof what, "round %d", round);
    if (apart) check_contract(&c, heads, what);
  }
}

/* ---- Lanes ---- */

/* Which elements of a tile some lane takes; counts of each. */
typedef struct grid {
  int tokens, channels;
  unsigned char *counts;
} grid;

static grid grid_of(int tokens, int channels) {
  return (grid){tokens, channels, calloc((size_t)tokens * (size_t)channels, 1)};
}

static void mark(grid *g, const plan_place *places, int count, const char *what) {
  for (int i = 0; i < count; i++)
    for (int t = 0; t < places[i].tokens; t++)
      for (int d = 0; d < places[i].channels; d++) {
        const int token = places[i].token + t, channel = places[i].channel + d;
        cr_assert(token >= 0 && token < g->tokens && channel < g->channels, "%s: token %d, channel %d", what,
                  token, channel);
        g->counts[token * g->channels + channel]++;
      }
}

static int marked(const grid *g, const char *what) {
  int count = 0;
  for (int i = 0; i < g->tokens * g->channels; i++) {
    cr_assert_leq(g->counts[i], 1, "%s: token %d, channel %d is taken %d times", what, i / g->channels,
                  i % g->channels, g->counts[i]);
    count += g->counts[i];
  }
  return count;
}

static plan_place places[PLAN_MOST_PLACES];

/* A copy leaves lane n's piece in place n, where fragments look for it: at its number in its stretch, turned.
 */
static void check_pieces(const decode_solution *s, bool is_k, int count, int channels, const char *what) {
  const staged_plan *ring = &s->plan.staged;
  const piece_order *o = is_k ? &ring->k : &ring->v;
  const int rows = ring->stretch / o->tokens, columns = channels / o->channels;
  for (int i = 0; i < count; i++) {
    const int row = places[i].token / o->tokens, column = places[i].channel / o->channels;
    const int number = o->tokens_first ? column * rows + row : row * columns + column;
    int place = number;
    for (int bit = 0; bit < TURNED_BITS; bit++)
      if (o->turn[bit]) place ^= (number >> o->turn[bit] & 1) << bit;
    cr_assert_eq(place, places[i].lane, "%s: lane %d brings piece %d", what, places[i].lane, number);
  }
}

/* In the ring on sm_90 the lanes of a producer bring rows in the order of memory, and of the stage. */
static void check_units(const decode_solution *s, bool is_k, int count, const char *what) {
  const ring_place *stage = is_k ? &s->ring.k : &s->ring.v;
  const int bytes = dtype_bytes(is_k ? s->contract.kv.k_dtype : s->contract.kv.v_dtype);
  for (int i = 0; i < count; i++)
    cr_assert_eq(places[i].token * stage->chunk_stride + places[i].channel * bytes, places[i].lane * 16,
                 "%s: lane %d brings token %d, channel %d", what, places[i].lane, places[i].token,
                 places[i].channel);
}

/* The rows of the first product, whole along its k: tokens of K, channels of V. */
static void check_operand(const decode_solution *s, bool is_k, int count, const char *what) {
  const matrix_op *op = is_k ? s->plan.op : s->plan.value_op;
  const int rows = s->on_line ? 16 : op->rows, k = s->on_line ? 16 : op->k;
  for (int row = 0; row < rows; row++) {
    const int wanted = is_k ? plan_row_token(s, 0, row) : s->on_line ? row : row * s->plan.v_channels;
    int found = 0;
    for (int i = 0; i < count; i++)
      if ((is_k ? places[i].token : places[i].channel) == wanted)
        found += places[i].tokens * places[i].channels;
    cr_assert_eq(found, k, "%s: row %d has %d of %d elements", what, row, found, k);
  }
}

static void check_lanes(const decode_solution *s, const char *what) {
  const contract *c = &s->contract;
  for (int is_k = 0; is_k < 2; is_k++) {
    const int channels = is_k ? contract_coded_k(c) : c->head_dim.v, tile = plan_tile(s);
    const matrix_op *op = is_k ? s->plan.op : s->plan.value_op;
    grid load = grid_of(tile, channels), operand = grid_of(tile, channels), reads = grid_of(tile, channels);
    int count = plan_first_load(s, is_k, places);
    cr_assert_gt(count, 0, "%s", what);
    mark(&load, places, count, what);
    const int bytes = dtype_bytes(is_k ? c->kv.k_dtype : c->kv.v_dtype), loaded = marked(&load, what);
    if (plan_load_kind(s) == LOAD_PIECES && s->on_line) check_units(s, is_k, count, what);
    if (plan_load_kind(s) == LOAD_PIECES && !s->on_line) check_pieces(s, is_k, count, channels, what);
    if (plan_load_kind(s) == LOAD_PIECES) cr_expect_eq(loaded * bytes, 16 * s->plan.target->wave, "%s", what);
    count = plan_first_operand(s, is_k, places);
    mark(&operand, places, count, what);
    const int rows_wide = s->on_line ? 16 : is_k ? 1 : op->rows * s->plan.v_channels;
    if (s->on_line || (is_k && channels % op->k == 0) || (!is_k && channels >= rows_wide))
      check_operand(s, is_k, count, what);
    if (s->on_line)
      cr_expect_eq(marked(&operand, what), 16 * 16, "%s", what);
    else if (channels >= op->k && channels >= op->rows * s->plan.v_channels)
      cr_expect_eq(marked(&operand, what), op->rows * op->k, "%s: the operand of %s", what, op->name);
    for (int lane = 0; !s->on_line && lane < s->plan.target->wave; lane++)
      mark(&reads, places, plan_lane_reads(s, is_k, lane, places), what);
    const int of_slice = is_k ? channels : s->plan.value_tiles * op->rows;
    if (!s->on_line)
      cr_expect_eq(marked(&reads, what), tile * (of_slice < channels ? of_slice : channels),
                   "%s: lanes read %d elements of %c", what, marked(&reads, what), "vk"[is_k]);
    free(load.counts);
    free(operand.counts);
    free(reads.counts);
  }
}

/* The rows of all score products are the tokens of a tile, each once. */
static void check_rows(const decode_solution *s, const char *what) {
  grid g = grid_of(plan_tile(s), 1);
  for (int product = 0; product < plan_score_products(s); product++)
    for (int row = 0; row < plan_score_rows(s); row++)
      mark(&g, &(plan_place){0, plan_row_token(s, product, row), 0, 1, 1}, 1, what);
  cr_expect_eq(marked(&g, what), plan_tile(s), "%s", what);
  free(g.counts);
}

Test(pictures, lanes_share_a_tile_out_and_operands_are_whole) {
  static const variant variants[] = {{0}, {.structure = STRUCTURE_DIRECT}, {.structure = STRUCTURE_RING}};
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    spec spec_of = shipped(shipped_specs[i]);
    for (size_t t = 0; t < target_count(); t++)
      for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        decode_solution s;
        diags d;
        char what[128];
        diags_init(&d);
        snprintf(what, sizeof what, "%s on %s", shipped_specs[i], target_at(t)->name);
        hd_status status = plan_solve(&spec_of.contract, &variants[v], target_at(t), &s, &d);
        diags_finish(&d);
        cr_assert(status == HD_OK || variants[v].structure == STRUCTURE_RING, "%s", what);
        if (status != HD_OK) continue;
        check_lanes(&s, what);
        check_rows(&s, what);
      }
    spec_finish(&spec_of);
  }
}

/* ---- Whatever the contract ---- */

/* Elements that open and close one after the other, and no number that is none. */
static void check_svg(const text *svg, const char *what) {
  int depth = 0;
  cr_assert(!svg->failed && svg->length > 0, "%s", what);
  for (const char *at = text_string(svg); (at = strchr(at, '<')) != NULL; at++) {
    const char *end = strchr(at, '>');
    cr_assert_not_null(end, "%s", what);
    depth += at[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
    cr_assert_geq(depth, 0, "%s", what);
  }
  cr_assert_eq(depth, 0, "%s: %d elements are left open", what, depth);
  cr_assert(!strstr(text_string(svg), "\"nan\"") && !strstr(text_string(svg), "\"inf\""), "%s", what);
}

static void draw(const contract *c, const decode_solution *s, const target *t, int heads, const char *what) {
  static const int32_t lengths[] = {1000, 17, 0};
  layout_picture l = {.name = "a < b & c",
                      .contract = c,
                      .target = s ? t : NULL,
                      .solution = s,
                      .why_not = "of the test",
                      .heads = heads,
                      .columns = 80};
  text out;
  text_init(&out);
  layout_svg(&l, &out);
  check_svg(&out, what);
  text_clear(&out);
  layout_text(&l, &out);
  cr_assert(!out.failed && out.length > 0);
  if (s) {
    plan_picture p = {
        .name = "a < b & c", .variant = "default", .target = t, .solution = s, .split_choice = "test"};
    p.schedule = (schedule){.on_line = s->on_line,
                            .tile_tokens = plan_tile(s),
                            .seqs = 3,
                            .kv_heads = 2,
                            .splits = 5,
                            .lengths = lengths};
    p.columns = 80;
    schedule_finish_line(&p.schedule);
    text_clear(&out);
    plan_svg(&p, &out);
    check_svg(&out, what);
    text_clear(&out);
    plan_text(&p, &out);
    cr_assert(!out.failed && out.length > 0);
  }
  text_finish(&out);
}

Test(pictures, every_contract_that_is_served_can_be_drawn) {
  uint64_t state = 0x2545f4914f6cdd1du;
  int served = 0;
  for (int round = 0; round < 60; round++) {
    contract c = random_contract(&state);
    const target *t = target_at((size_t)random_below(&state, (int)target_count()));
    const int heads = random_below(&state, 3);
    page_part parts[PAGE_MAX_PARTS];
    char problem[240], what[64];
    bool apart =
        page_parts_apart(parts, page_parts(&c, true, parts), heads > 0 ? heads : 1, problem, sizeof problem);
    decode_solution s;
    diags d;
    if (!apart) continue;
    diags_init(&d);
    snprintf(what, sizeof what, "round %d on %s", round, t->name);
    const bool good = plan_solve(&c, &(variant){0}, t, &s, &d) == HD_OK;
    if (good) check_lanes(&s, what);
    draw(&c, good ? &s : NULL, t, heads, what);
    served += good;
    diags_finish(&d);
  }
  cr_expect_gt(served, 10, "%d", served);
}

/* ---- Launches ---- */

Test(pictures, splits_of_a_sequence_hold_every_tile_once) {
  static const int32_t lengths[] = {0, 1, 64, 65, 1000, 8192};
  for (int splits = 1; splits <= 40; splits += 3)
    for (int window = 0; window <= 200; window += 200) {
      schedule s = {.tile_tokens = 64,
                    .window = window,
                    .seqs = 6,
                    .kv_heads = 1,
                    .splits = splits,
                    .lengths = lengths};
      for (int64_t i = 0; i < s.seqs; i++) {
        const tile_span all = schedule_tiles(&s, i);
        const int64_t unseen = window && lengths[i] > window ? lengths[i] - window : 0;
        cr_expect(all.first == unseen / 64 && (all.end == (lengths[i] + 63) / 64 || lengths[i] == 0));
        int64_t next = all.first;
        for (int n = 0; n < splits; n++) {
          const tile_span span = schedule_split(&s, i, n);
          cr_expect_eq(span.first, next);
          next = span.end;
        }
        cr_expect_eq(next, all.end);
      }
    }
}

/* ---- Drawing ---- */

Test(pictures, words_are_escaped_and_numbers_are_short) {
  text t;
  text_init(&t);
  svg_begin(&t, 40, "a <title> & more", "what it is");
  svg_rect(&t, 1.0 / 3, -0.01, 2, 100.25, "d0");
  svg_end(&t);
  const char *s = text_string(&t);
  cr_expect_not_null(strstr(s, "<title>a &lt;title&gt; &amp; more</title>"));
  cr_expect_not_null(strstr(s, "<rect x=\"0.3\" y=\"0\" width=\"2\" height=\"100.3\" class=\"d0\"/>"), "%s",
                     strstr(s, "<rect x=\"0.3"));
  cr_expect_not_null(strstr(s, "prefers-color-scheme:dark"));
  cr_expect_null(strstr(strstr(s, "http") + 4, "http"), "the name space alone");
  text_finish(&t);
}

/* ---- Saved results ---- */

static const char saved[] =
    "{\"ok\": true, \"spec\": \"a & b\", \"device\": {\"name\": \"H200\", \"target\": \"sm_90\", "
    "\"emulated\": false},\n"
    " \"choice\": \"words with \\\"quotes\\\" and µs\", \"more\": [1, {\"a\": [], \"b\": {}}, null],\n"
    " \"results\": [\n"
    "  {\"seqs\": 64, \"length\": 8192, \"kv_heads\": 4, \"heads_per_kv\": 16, \"ragged\": false, \"best\": "
    "true, "
    "\"timed\": true, \"split\": 8, \"bytes\": 553648128, \"decode_us\": {\"median\": 125, \"samples\": [1, "
    "2]}, "
    "\"read_us\": {\"median\": 120}},\n"
    "  {\"seqs\": 64, \"length\": 8192, \"kv_heads\": 4, \"ragged\": false, \"best\": false, \"timed\": "
    "true},\n"
    "  {\"seqs\": 1, \"timed\": false, \"best\": false}]}\n";

static hd_status read_saved(const char *json, size_t length, bench_points *out, char message[240]) {
  diags d;
  diags_init(&d);
  hd_status status = bench_points_read(json, length, out, &d);
  snprintf(message, 240, "%s", d.count ? d.items[0].message : "");
  diags_finish(&d);
  return status;
}

Test(pictures, results_that_were_printed_can_be_drawn) {
  bench_points p;
  char message[240];
  cr_assert_eq(read_saved(saved, strlen(saved), &p, message), HD_OK, "%s", message);
  cr_assert_eq(p.count, 1);
  cr_expect(p.untimed == 1 && p.items[0].bytes == 553648128 && p.items[0].splits == 8 &&
            p.items[0].us == 125);
  text svg;
  text_init(&svg);
  bench_svg(&p, &svg);
  cr_expect_not_null(strstr(text_string(&svg), "a &amp; b"));
  cr_expect_not_null(
      strstr(text_string(&svg), "64x8192x4x16: 125.00 µs, read 120.00 µs, share 96.0 %, 4429 GB/s"));
  text_finish(&svg);
  bench_points_finish(&p);
}

Test(pictures, what_is_cut_off_or_changed_is_refused_with_its_place) {
  bench_points p;
  char message[240];
  for (size_t length = 0; length + 2 < strlen(saved); length++) {
    cr_expect_eq(read_saved(saved, length, &p, message), HD_DECLINED, "%zu bytes", length);
    cr_expect_not_null(strstr(message, "expected"), "%s", message);
    bench_points_finish(&p);
  }
  uint64_t state = 7;
  char changed[sizeof saved];
  for (int round = 0; round < 20000; round++) { /* must not crash */
    memcpy(changed, saved, sizeof saved);
    for (int n = 0; n < 3; n++)
      changed[random_below(&state, (int)sizeof saved - 1)] = "{}[]\",:0e\\\n\xff"[random_below(&state, 12)];
    read_saved(changed, sizeof saved - 1, &p, message);
    bench_points_finish(&p);
  }
  static const char without[] = "{\"results\": [{\"best\": true, \"timed\": true}]}";
  cr_expect_eq(read_saved(without, strlen(without), &p, message), HD_DECLINED);
  cr_expect_not_null(strstr(message, "line 1, column"), "%s", message);
  bench_points_finish(&p);
}
