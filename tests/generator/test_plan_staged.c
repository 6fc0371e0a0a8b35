/* Claims about the ring on AMD targets: what its template relies on, for shipped and random contracts, and
 * what stands in its way, with the reason. */
#include "../../generator/plan.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

enum { PIECE = 16, MOST_COUNTED = 63 };

static const char *const ring_targets[] = {"gfx950", "gfx1250"};
static const variant ring = {.structure = STRUCTURE_RING};

static contract shipped_for(const char *name, const target *t) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  contract c = contract_resolve(&s.contract, t->fp8);
  spec_finish(&s);
  free(yaml);
  layout_canonicalize(&c.kv.k);
  layout_canonicalize(&c.kv.v);
  layout_canonicalize(&c.scale.k);
  layout_canonicalize(&c.scale.v);
  return c;
}

static hd_status plan_of(const contract *c, const variant *v, const target *t, decode_plan *out, char *why,
                         size_t size) {
  diags problems;
  diags_init(&problems);
  hd_status status = plan_decode(c, v, t, out, &problems);
  snprintf(why, size, "%s", problems.count ? problems.items[0].message : "");
  diags_finish(&problems);
  return status;
}

/* ---- The template's arithmetic, from its definition: what lies at a place of a stage ---- */

/* A lane's places are worked out once, for every stretch of `count` pieces: the turn knows no stretch. */
static int turned(const piece_order *o, int count, int piece) {
  int low = 0;
  for (int bit = 0; bit < TURNED_BITS; bit++)
    if (o->turn[bit]) low |= (piece % count >> o->turn[bit] & 1) << bit;
  return piece ^ low;
}

typedef struct corner {
  int token, channel; /* of the tile and head: the first of a piece */
} corner;

static corner corner_of(const piece_order *o, const staged_plan *s, int head_dim, int piece) {
  int rows = s->stretch / o->tokens, columns = head_dim / o->channels, count = rows * columns;
  int within = piece % count;
  int row = o->tokens_first ? within % rows : within / columns;
  int column = o->tokens_first ? within / rows : within % columns;
  return (corner){piece / count * s->stretch + row * o->tokens, column * o->channels};
}

static int64_t address(const layout *l, int slot, int channel) {
  return layout_offset(l, 0, layout_inner_elements(l), 1, 0, 0, slot, channel);
}

static void operand_holds(const contract *c, const decode_plan *p, const layout *l, dtype d, int head_dim,
                          const piece_order *o, const char *what) {
  const staged_plan *s = &p->staged;
  int bytes = dtype_bytes(d), pieces = o->copies * p->target->wave;
  cr_assert_eq(o->tokens * o->channels * bytes, PIECE, "%s", what);
  cr_assert_eq(pieces * PIECE, p->tile * head_dim * bytes, "%s: a stage holds a tile, and nothing twice",
               what);
  cr_assert_eq(pieces / s->stretches % p->target->wave, 0, "%s: a copy has one page", what);
  int count = pieces / s->stretches;
  for (int bit = 0; bit < TURNED_BITS; bit++)
    cr_assert_lt(o->turn[bit] ? 1 << o->turn[bit] : 0, count, "%s: bit %d is the number of a stretch", what,
                 o->turn[bit]);
  for (int place = 0; place < pieces; place++) {
    int piece = turned(o, count, place);
    cr_assert(piece >> TURNED_BITS == place >> TURNED_BITS && turned(o, count, piece) == place,
              "%s: place %d, piece %d", what, place, piece);
    corner first = corner_of(o, s, head_dim, piece);
    for (int n = 0; n < PIECE / bytes;
         n++) { /* it is 16 bytes in a row in the page, wherever its stretch lies */
      int token = first.token + (o->tokens > 1 ? n : 0), channel = first.channel + (o->channels > 1 ? n : 0);
      cr_assert_eq(token / s->stretch, first.token / s->stretch, "%s", what);
      for (int slots = 0; slots < c->kv.page; slots += s->stretch)
        cr_assert_eq(address(l, slots + token % s->stretch, channel),
                     address(l, slots, 0) + address(l, first.token % s->stretch, first.channel) + n,
                     "%s: token %d, channel %d", what, token, channel);
    }
    /* The instruction adds a copy's distance from its stretch on both sides: no lane may be nearer than that.
     */
    int copy = place / p->target->wave % (pieces / s->stretches / p->target->wave);
    cr_assert_geq(address(l, first.token % s->stretch, first.channel) * bytes,
                  (int64_t)copy * p->target->wave * PIECE, "%s", what);
  }
}

static void ring_holds(const contract *c, const decode_plan *p, const char *what) {
  const staged_plan *s = &p->staged;
  cr_assert_eq(p->structure, STRUCTURE_RING, "%s", what);
  cr_assert_eq(s->stretch * s->stretches, p->tile, "%s", what);
  cr_assert_eq(c->kv.page % s->stretch, 0, "%s: tokens of a stretch share a page", what);
  operand_holds(c, p, &c->kv.k, c->kv.k_dtype, c->head_dim.qk, &s->k, what);
  operand_holds(c, p, &c->kv.v, c->kv.v_dtype, c->head_dim.v, &s->v, what);
  bool scaled = c->scale.granularity >= SCALE_TOKEN;
  int scales = scaled ? 2 * (p->list > p->op->rows ? p->list / p->op->rows : 1) : 0;
  cr_assert_eq(s->copies, s->k.copies + s->v.copies + scales, "%s", what);
  cr_assert_geq(s->stages, 2, "%s", what);
  cr_assert_leq((s->stages - 1) * s->copies + s->v.copies, MOST_COUNTED, "%s: the counter ends there", what);
  cr_assert_geq(s->ring_bytes, s->stages * s->stage_bytes, "%s", what);
  cr_assert_eq(s->ring_bytes % (4 * p->target->wave), 0, "%s: outputs of a wave are rows of words", what);
  cr_assert_geq(s->ring_bytes, p->exchange * p->op->columns_per_lane * p->op->row_run * p->target->wave * 4,
                "%s: the outputs fit where the ring was", what);
  cr_assert_leq(p->lds_bytes, p->target->lds_bytes, "%s", what);
}

/* All but those whose layout has no runs of 16 bytes at all, and those whose K and V share bytes. */
Test(plan_staged, shipped_contracts_with_wide_runs_have_a_ring) {
  int served = 0;
  for (size_t n = 0; n < 2; n++)
    for (size_t i = 0; i < SHIPPED_COUNT; i++) {
      const target *t = target_find(ring_targets[n]);
      contract c = shipped_for(shipped_specs[i], t);
      decode_plan p;
      char why[300], what[128];
      snprintf(what, sizeof what, "%s on %s", shipped_specs[i], t->name);
      bool wide = layout_aligned_run(&c.kv.k, AXIS_D) * dtype_bytes(c.kv.k_dtype) >= PIECE && !c.kv.v_in_k;
      cr_assert_eq(plan_of(&c, &ring, t, &p, why, sizeof why), wide ? HD_OK : HD_DECLINED, "%s: %s", what,
                   why);
      if (!wide) continue;
      ring_holds(&c, &p, what);
      served++;
    }
  cr_expect_geq(served, 12, "%d", served);
}

Test(plan_staged, random_contracts_are_held_by_their_ring_or_declined_with_a_reason) {
  uint64_t state = 0x853c49e6748fea9bu;
  int served = 0;
  for (int round = 0; round < 2000; round++) {
    const target *t = target_find(ring_targets[round % 2]);
    contract c = random_contract(&state);
    c = contract_resolve(&c, t->fp8);
    layout_canonicalize(&c.kv.k);
    layout_canonicalize(&c.kv.v);
    layout_canonicalize(&c.scale.k);
    layout_canonicalize(&c.scale.v);
    decode_plan p;
    char why[300];
    if (plan_of(&c, &ring, t, &p, why, sizeof why) == HD_OK) {
      text what;
      text_init(&what);
      contract_write(&c, &what);
      ring_holds(&c, &p, text_string(&what));
      text_finish(&what);
      served++;
    } else {
      cr_assert(*why, "round %d", round);
    }
  }
  cr_expect_gt(served, 60, "%d", served);
}

/* ---- What is in the way, one field from a contract that has a ring ---- */

typedef struct change {
  const char *reason; /* a part of it */
  void (*make)(contract *c);
} change;

static void list_layout(const char *items, const contract *c, layout *out) {
  layout_error error;
  parse_list(items, AXES_CACHE, c->kv.page, c->head_dim.qk, out, &error);
}

static void single_tokens(contract *c) {
  c->kv.page = 1;
  list_layout("[b,h,d]", c, &c->kv.k);
  list_layout("[b,h,d]", c, &c->kv.v);
  list_layout("[b,h,s]", c, &c->scale.k);
  list_layout("[b,h,s]", c, &c->scale.v);
}
static void narrow_runs(contract *c) {
  list_layout("[b,h,d/8,s,d%8]", c, &c->kv.k);
}
static void small_pages(contract *c) {
  c->kv.page = 2;
  list_layout("[b,h,s,d]", c, &c->kv.k);
  list_layout("[b,h,s,d]", c, &c->kv.v);
  list_layout("[b,h,s]", c, &c->scale.k);
  list_layout("[b,h,s]", c, &c->scale.v);
}
static void scales_inside(contract *c) {
  c->scale.inside = true;
}
static void half_scales(contract *c) {
  c->scale.dtype = DTYPE_FP16;
}
static void backward_chunks(contract *c) {
  list_layout("[b,h,d/16%2,d/32,s,d%16]", c, &c->kv.k);
}

Test(plan_staged, what_is_in_the_way_takes_the_direct_structure_and_says_so) {
  const change changes[] = {{"runs of 16 bytes", narrow_runs},   {"4 bytes", half_scales},
                            {"inside the pages", scales_inside}, {"follow each other", backward_chunks},
                            {"less than a copy", single_tokens}, {"less than a copy", small_pages}};
  for (size_t n = 0; n < 2; n++)
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
      const target *t = target_find(ring_targets[n]);
      contract c = shipped_for("minimax-m3-dense-fp8", t);
      decode_plan p;
      char why[300];
      changes[i].make(&c);
      cr_expect_eq(plan_of(&c, &ring, t, &p, why, sizeof why), HD_DECLINED, "%zu on %s", i, t->name);
      cr_expect_not_null(strstr(why, changes[i].reason), "%zu on %s: %s", i, t->name, why);
      cr_assert_eq(plan_of(&c, &(variant){0}, t, &p, why, sizeof why), HD_OK, "%s", why);
      cr_expect_eq(p.structure, STRUCTURE_DIRECT);
      cr_expect_not_null(strstr(p.structure_reason, changes[i].reason), "%s", p.structure_reason);
    }
}

Test(plan_staged, targets_without_such_copies_decline_it) {
  const char *const others[] = {"gfx942", "gfx1201"};
  for (size_t n = 0; n < 2; n++) {
    const target *t = target_find(others[n]);
    contract c = shipped_for("minimax-m3-dense-fp8", t);
    decode_plan p;
    char why[300];
    cr_expect_eq(plan_of(&c, &ring, t, &p, why, sizeof why), HD_DECLINED);
    cr_expect_not_null(strstr(why, "not built for this target"), "%s", why);
  }
}

/* ---- The choice ---- */

Test(plan_staged, the_ring_is_taken_where_direct_loads_would_split_segments) {
  const struct {
    const char *spec, *target;
    structure taken;
  } cases[] = {{"minimax-m3-dense-fp8", "gfx950", STRUCTURE_DIRECT},
               {"llama3-70b-tp8-bf16", "gfx950", STRUCTURE_DIRECT},
               {"minimax-m3-dense-fp8", "gfx1250", STRUCTURE_DIRECT},
               {"llama3-70b-tp8-bf16", "gfx1250", STRUCTURE_RING},
               {"nhd-fp16", "gfx1250", STRUCTURE_RING}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const target *t = target_find(cases[i].target);
    contract c = shipped_for(cases[i].spec, t);
    decode_plan p;
    char why[300];
    cr_assert_eq(plan_of(&c, &(variant){0}, t, &p, why, sizeof why), HD_OK, "%s", why);
    cr_expect_eq(p.structure, cases[i].taken, "%s on %s", cases[i].spec, t->name);
    cr_assert_eq(plan_of(&c, &(variant){.structure = STRUCTURE_DIRECT}, t, &p, why, sizeof why), HD_OK);
    cr_expect_eq(p.structure, STRUCTURE_DIRECT, "direct stays to be had");
    cr_assert_eq(plan_of(&c, &(variant){.stages = 2}, t, &p, why, sizeof why), HD_OK);
    cr_expect_eq(p.structure, STRUCTURE_RING, "only a ring has stages");
  }
}

Test(plan_staged, waves_and_stages_that_do_not_fit_decline_where_they_are_asked_for) {
  const target *t = target_find("gfx1250");
  contract c = shipped_for("llama3-70b-tp8-bf16", t);
  decode_plan p;
  char why[300];
  cr_assert_eq(plan_of(&c, &(variant){.waves = 16}, t, &p, why, sizeof why), HD_OK, "%s", why);
  cr_expect_eq(p.structure, STRUCTURE_DIRECT, "so many waves without a word on the structure");
  const variant asked[] = {{.structure = STRUCTURE_RING, .waves = 16},
                           {.structure = STRUCTURE_RING, .stages = 3},
                           {.structure = STRUCTURE_RING, .stages = 1},
                           {.structure = STRUCTURE_RING, .resident = 2}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
    cr_expect_eq(plan_of(&c, &asked[i], t, &p, why, sizeof why), HD_DECLINED, "%zu", i);
}
