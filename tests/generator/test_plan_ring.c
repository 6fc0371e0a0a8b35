/* Claims about the ring on sm_90: every token and channel is read from where it was copied, whatever the
 * layout and the format, and from different banks. */
#include "../../generator/plan.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

enum { HEADS = 3, HEAD = 1, NOTHING = -1 };

/* One side of a contract in the plan. */
typedef struct side {
  const layout *layout;
  const ring_place *place;
  int bytes, channels, slices;
  bool transposed; /* 16 bytes hold tokens of one channel */
} side;

static side k_side(const contract *c, const ring_plan *p) {
  return (side){&c->kv.k, &p->k, dtype_bytes(c->kv.k_dtype), c->head_dim.qk, p->k_slices, false};
}
static side v_side(const contract *c, const ring_plan *p) {
  return (side){&c->kv.v, &p->v, dtype_bytes(c->kv.v_dtype), c->head_dim.v, 1, !p->by_rows};
}

/* As the kernel has it: bytes from the beginning of K or V in a stage. */
static int place_of(const side *s, int token, int channel) {
  const ring_place *p = s->place;
  int start = token / p->tokens * p->stride + token % p->tokens / p->chunk * p->chunk_stride;
  if (s->transposed) return start + channel * p->channel_stride + token % p->chunk * s->bytes;
  if (s->slices == 0 || p->channel_stride == s->bytes) return start + channel * s->bytes;
  int chunk = 16 / s->bytes;
  return start + channel / chunk * p->channel_stride + channel % chunk * s->bytes;
}

/* Elements of the page and head, by their offset: slot * channels + channel. */
static int *elements_of_page(const side *s, int page, int64_t *out_stride_h, int64_t *out_count) {
  int64_t stride_b;
  layout_packed_strides(s->layout, 4, HEADS, &stride_b, out_stride_h);
  *out_count = layout_elements(s->layout, 4, HEADS);
  int *elements = malloc((size_t)*out_count * sizeof *elements);
  for (int64_t i = 0; i < *out_count; i++)
    elements[i] = NOTHING;
  for (int slot = 0; slot < page; slot++)
    for (int channel = 0; channel < s->channels; channel++)
      elements[layout_offset(s->layout, stride_b, *out_stride_h, HEADS, 0, HEAD, slot, channel)] =
          slot * s->channels + channel;
  return elements;
}

/* Copies the tile that begins `start` tokens into a row of pages, as the producers do, then reads it as the
 * consumers do. */
static void reads_what_was_copied(const contract *c, const ring_plan *p, const side *s, int start,
                                  const char *what) {
  int64_t stride_h, count;
  int *elements = elements_of_page(s, c->kv.page, &stride_h, &count);
  int stage_elements = s->place->bytes / s->bytes;
  int step = p->bulk ? p->piece : 1, run = step * s->channels / s->slices;
  int *stage = malloc((size_t)stage_elements * sizeof *stage);
  for (int i = 0; i < stage_elements; i++)
    stage[i] = NOTHING;
  cr_assert(run * s->bytes % 16 == 0, "%s: a copy of %d bytes", what, run * s->bytes);
  for (int token = 0; token < p->tile; token += step)
    for (int slice = 0; slice < s->slices; slice++) {
      int slot = (start + token) % c->kv.page, first = slice * (16 / s->bytes);
      int to = place_of(s, token, s->slices > 1 ? first : 0);
      int64_t from = layout_offset(s->layout, 0, stride_h, HEADS, 0, HEAD, slot, first);
      cr_assert(to % 16 == 0 && from * s->bytes % 16 == 0, "%s: copies are of 16 bytes", what);
      cr_assert(to / s->bytes + run <= stage_elements && from + run <= count, "%s", what);
      for (int i = 0; i < run; i++) {
        int *element = &stage[to / s->bytes + i];
        cr_assert_eq(*element, NOTHING, "%s: copied over another copy", what);
        cr_assert_neq(elements[from + i], NOTHING, "%s: token %d", what, token);
        *element = elements[from + i] + (token - slot) * s->channels; /* the token of the tile */
      }
    }
  for (int token = 0; token < p->tile; token++)
    for (int channel = 0; channel < s->channels; channel++)
      cr_assert_eq(stage[place_of(s, token, channel) / s->bytes], token * s->channels + channel,
                   "%s: token %d channel %d", what, token, channel);
  free(elements);
  free(stage);
}

/* Rows of 16 bytes that are read together: their banks, by 16 bytes of 128. At most `most` share one. */
static void come_from_banks(const int *places, int most, const char *what) {
  int shared[8] = {0};
  for (int i = 0; i < 8; i++)
    shared[places[i] / 16 % 8]++;
  for (int i = 0; i < 8; i++)
    cr_assert_leq(shared[i], most, "%s: %d of eight rows share a bank", what, shared[i]);
}

/* Lanes that are served together: eight lanes of load_fragments name a row each; in load_rows two rows have
 * four neighbouring lanes, in load_columns eight tokens take the warp's own units in turn. */
static void spreads_over_banks(const contract *c, const ring_plan *p, const char *what) {
  const side k = k_side(c, p), v = v_side(c, p);
  int own = c->head_dim.v / 64 * v.bytes, places[8];
  for (int chunk = 0; chunk < p->tile / 16; chunk++)
    for (int half = 0; half < 2; half++) {
      for (int lane = 0; lane < 8; lane++) { /* token_of in templates/decode_ring.hip */
        int pairs = chunk * 16 + lane / 2 * 4 + half * 2 + lane % 2,
            neighbours = chunk * 16 + half * 8 + lane;
        places[lane] = p->by_rows ? place_of(&k, chunk * 16 + half * 8 + lane / 4, lane % 4 * 16 / k.bytes)
                                  : place_of(&k, v.bytes == 2 ? neighbours : pairs, 0);
      }
      come_from_banks(places, p->by_rows || v.bytes == 1 ? 2 : 1, what);
      for (int lane = 0; lane < 8; lane++)
        places[lane] = p->by_rows ? place_of(&v, chunk * 16 + half * 8 + lane, lane / 2 % own * 16 / v.bytes)
                                  : place_of(&v, chunk * (16 / v.bytes), half * 8 + lane);
      come_from_banks(places, p->by_rows ? 8 / own : p->v.channel_stride > 16 ? 2 : 1, what);
    }
}

static void holds_together(const contract *c, const ring_plan *p, const char *what) {
  const side sides[] = {k_side(c, p), v_side(c, p)};
  cr_assert(p->tile == 64 || p->tile == 128, "%s: a tile of %d", what, p->tile);
  cr_assert(p->bulk || p->k.chunk_stride == p->v.chunk_stride, "%s: rows of two lengths, unit by unit", what);
  cr_assert(c->kv.page % p->piece == 0 && p->tile % p->piece == 0, "%s: pieces of %d", what, p->piece);
  cr_assert(p->stages >= p->consumers && p->lds_bytes <= p->target->lds_bytes, "%s: %d bytes", what,
            p->lds_bytes);
  cr_assert_geq(p->column_heads, c->query.heads_per_kv, "%s", what);
  for (int i = 0; i < 2; i++)
    for (int tile = 0; tile < 3; tile++)
      reads_what_was_copied(c, p, &sides[i], tile * p->tile, what);
  spreads_over_banks(c, p, what);
}

/* Layouts the ring takes as they are, of 16 bytes: chance alone rarely makes both sides one. */
static void take_served_layouts(uint64_t *state, contract *c) {
  static const char *const lists[][2] = {{"[b,h,d/%d,s,d%%%d]", "[b,h,s/%d,d,s%%%d]"},
                                         {"[h,b,d/%d,s,d%%%d]", "[b,h,d,s]"},
                                         {"[b,h,s,d]", "[h,b,s,d]"},
                                         {"[b,s,h,d]", "[b,s,h,d]"},
                                         {"[b,h,s,d]", "[b,s,h,d]"}};
  const char *const *pair = lists[random_below(state, sizeof lists / sizeof *lists)];
  for (int i = 0; i < 2; i++) {
    int x = 16 / dtype_bytes(i ? c->kv.v_dtype : c->kv.k_dtype);
    char list[48];
    layout l;
    layout_error error;
    snprintf(list, sizeof list, pair[i], x, x);
    if (parse_list(list, AXES_CACHE, c->kv.page, i ? c->head_dim.v : c->head_dim.qk, &l, &error))
      *(i ? &c->kv.v : &c->kv.k) = l;
  }
}

Test(plan_ring, every_token_is_read_from_where_it_was_copied) {
  const target *t = target_find("sm_90");
  uint64_t state = 0x94d049bb133111ebu;
  int blocks = 0, rows = 0, sliced = 0, columns = 0, single = 0, short_tiles = 0;
  for (int round = 0; round < 4000; round++) {
    contract c = random_contract(&state);
    c = contract_resolve(&c, t->fp8);
    if (random_below(&state, 4)) take_served_layouts(&state, &c);
    layout_canonicalize(&c.kv.k);
    layout_canonicalize(&c.kv.v);
    decode_plan p;
    diags problems;
    diags_init(&problems);
    if (plan_decode(&c, &(variant){0}, t, &p, &problems) == HD_OK && p.structure == STRUCTURE_RING) {
      ring_plan ring;
      text what;
      text_init(&what);
      contract_write(&c, &what);
      cr_assert_null(ring_obstacle(&c, t));
      cr_assert_eq(plan_ring(&c, &(variant){0}, t, &ring, &problems), HD_OK, "%s", text_string(&what));
      holds_together(&c, &ring, text_string(&what));
      text_finish(&what);
      blocks += !ring.by_rows, rows += ring.by_rows, single += !ring.bulk;
      sliced += ring.k_slices > 1, columns += !ring.by_rows && ring.v.channel_stride > 16;
      short_tiles += ring.tile == 64;
    } else if (diags_errors(&problems) == 0) {
      cr_assert(p.structure_reason[0], "a target with a ring says why it is not taken");
    }
    diags_finish(&problems);
  }
  cr_expect(blocks > 20 && rows > 60 && sliced > 5 && columns > 0 && single > 20 && short_tiles > 20,
            "%d blocks, %d of them sliced, %d columns; %d rows, %d of them one by one; %d short tiles",
            blocks, sliced, columns, rows, single, short_tiles);
}

Test(plan_ring, operands_hold_what_the_cache_holds) {
  static const struct {
    dtype query, k, v, k_operand, v_operand;
    int q_parts, p_parts, tile;
  } rows[] = {
      {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, 1, 2, 64},
      {DTYPE_FP16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, 2, 2, 64},
      {DTYPE_BF16, DTYPE_FP16, DTYPE_FP16, DTYPE_FP16, DTYPE_FP16, 1, 1, 64},
      {DTYPE_FP16, DTYPE_FP16, DTYPE_BF16, DTYPE_FP16, DTYPE_BF16, 1, 2, 64},
      {DTYPE_BF16, DTYPE_BF16, DTYPE_INT8, DTYPE_BF16, DTYPE_FP16, 1, 1, 64},
      {DTYPE_BF16, DTYPE_INT8, DTYPE_FP8_E5M2, DTYPE_FP16, DTYPE_FP16, 1, 1, 128},
      {DTYPE_FP16, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FN, DTYPE_FP16, DTYPE_FP16, 1, 1, 128},
  };
  char *yaml = read_shipped("llama3-70b-tp8-bf16");
  spec s = parse_good(yaml);
  free(yaml);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    contract c = s.contract;
    c.query.dtype = rows[i].query;
    c.kv.k_dtype = rows[i].k;
    c.kv.v_dtype = rows[i].v;
    ring_plan p;
    diags problems;
    diags_init(&problems);
    cr_assert_null(ring_obstacle(&c, target_find("sm_90")), "row %zu", i);
    cr_assert_eq(plan_ring(&c, &(variant){0}, target_find("sm_90"), &p, &problems), HD_OK);
    cr_expect(p.k_operand == rows[i].k_operand && p.v_operand == rows[i].v_operand, "row %zu", i);
    cr_expect(p.q_parts == rows[i].q_parts && p.p_parts == rows[i].p_parts, "row %zu", i);
    cr_expect_eq(p.tile, rows[i].tile, "row %zu", i);
    diags_finish(&problems);
  }
  spec_finish(&s);
}

Test(plan_ring, warps_that_copy_give_registers_or_the_variant_declines) {
  static const char *const layouts[] = {"[b, s, h, d]", "[b, h, s, d]"};
  int served = 0, declined = 0;
  for (int l = 0; l < 2; l++) {
    char yaml[400];
    snprintf(
        yaml, sizeof yaml,
        "heddle: 1\nname: n\nkernels: [decode]\nquery: {dtype: bf16, heads_per_kv: 8}\nhead_dim: 64\n"
        "kv: {dtype: int8, page: 64, k: %s, v: %s}\nscale: {granularity: tensor}\noutput: {dtype: bf16}\n",
        layouts[l], layouts[l]);
    spec s = parse_good(yaml);
    for (int waves = 4; waves <= 8; waves += 4)
      for (int stages = 2; stages <= 4; stages += 2)
        for (int resident = 1; resident <= 6; resident++) {
          const variant v = {.structure = STRUCTURE_RING,
                             .waves = waves,
                             .stages = stages,
                             .resident = resident,
                             .tile = 64};
          ring_plan p;
          diags problems;
          diags_init(&problems);
          hd_status status = plan_ring(&s.contract, &v, target_find("sm_90"), &p, &problems);
          if (status == HD_OK) {
            served++;
            cr_expect(p.producer_registers <= p.thread_registers &&
                          p.thread_registers <= p.consumer_registers,
                      "%d waves, %d resident: %d, then %d and %d", waves, resident, p.thread_registers,
                      p.producer_registers, p.consumer_registers);
          } else if (strcmp(problems.items[0].code, "decline.registers") == 0) {
            declined++;
          }
          diags_finish(&problems);
        }
    spec_finish(&s);
  }
  cr_expect(served > 0 && declined > 0, "%d served, %d declined", served, declined);
}
