/* Plans of the shipped specs and of random contracts, and what must hold of each. */
#ifndef HEDDLE_TESTS_PLAN_FIXTURE_H
#define HEDDLE_TESTS_PLAN_FIXTURE_H

#include "../../generator/plan.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

enum { WIDEST_STATIC_SHARED = 48 * 1024 }; /* what a CUDA kernel may declare, whatever the SM has */

static inline spec shipped(const char *name) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  free(yaml);
  return s;
}

static inline decode_plan planned(const contract *c, int waves, const target *t, const char *what) {
  contract resolved = contract_resolve(c, t->fp8);
  decode_plan p;
  variant v = {.structure = STRUCTURE_DIRECT, .waves = waves};
  diags problems;
  diags_init(&problems);
  hd_status status = plan_decode(&resolved, &v, t, &p, &problems);
  cr_assert_eq(status, HD_OK, "%s on %s: %s", what, t->name, problems.count ? problems.items[0].message : "");
  cr_expect_eq(problems.count, 0);
  diags_finish(&problems);
  return p;
}

static inline void for_each_shipped(void (*check)(const contract *c, const decode_plan *p,
                                                  const char *what)) {
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    spec s = shipped(shipped_specs[i]);
    for (size_t n = 0; n < target_count(); n++) {
      contract c = contract_resolve(&s.contract, target_at(n)->fp8);
      decode_plan p = planned(&c, 0, target_at(n), shipped_specs[i]);
      char what[128];
      snprintf(what, sizeof what, "%s on %s", shipped_specs[i], target_at(n)->name);
      check(&c, &p, what);
    }
    spec_finish(&s);
  }
}

/* The same check on every random contract that is served. */
static inline int for_each_random(int rounds,
                                  void (*check)(const contract *c, const decode_plan *p, const char *what)) {
  uint64_t state = 0x2545f4914f6cdd1du;
  int served = 0;
  for (int round = 0; round < rounds; round++) {
    contract c = random_contract(&state);
    const target *t = target_at((size_t)random_below(&state, (int)target_count()));
    contract resolved = contract_resolve(&c, t->fp8);
    decode_plan p;
    diags problems;
    diags_init(&problems);
    if (plan_decode(&resolved, &(variant){.structure = STRUCTURE_DIRECT}, t, &p, &problems) == HD_OK) {
      text what;
      text_init(&what);
      text_addf(&what, "round %d on %s:\n", round, t->name);
      contract_write(&resolved, &what);
      check(&resolved, &p, text_string(&what));
      text_finish(&what);
      served++;
    }
    diags_finish(&problems);
  }
  return served;
}

static inline void everywhere(void (*check)(const contract *c, const decode_plan *p, const char *what)) {
  for_each_shipped(check);
  cr_expect_gt(for_each_random(4000, check), 400);
}

static inline void counts_agree(const contract *c, const decode_plan *p, const char *what) {
  const matrix_op *op = p->op;
  cr_assert_eq(p->score_tiles * op->row_run, p->list, "%s", what);
  cr_assert_eq(p->list * op->groups, p->tile, "%s", what);
  cr_assert_eq(p->list % p->value_op->elements, 0, "%s: whole fragments of weights", what);
  cr_assert_eq(p->value_op->rows, op->rows, "%s: both products have one shape", what);
  cr_assert_eq(p->value_op->groups, op->groups, "%s", what);
  cr_assert_eq(p->value_op->row_run, op->row_run, "%s", what);
  int channels = p->slices * p->value_tiles * op->rows;
  cr_assert(channels >= contract_coded_v(c), "%s: %d channels of V", what, channels);
  cr_assert_eq(p->tail_value_op != NULL, contract_coded_v(c) < c->head_dim.v, "%s", what);
  cr_assert_eq(p->tail_tiles > 0, p->tail_value_op != NULL, "%s", what);
  int coded = contract_coded_k(c);
  cr_assert(p->k_list * op->groups >= coded, "%s", what);
  cr_assert(p->k_list * op->groups - coded < op->groups * op->elements, "%s", what);
  cr_assert_eq(p->k_list % op->elements, 0, "%s: whole fragments of K", what);
  cr_assert_eq(p->rows, contract_rows_have_lists(c) ? 1 : c->query.rows, "%s", what);
  int queries = p->rows * c->query.heads_per_kv, columns = p->blocks * op->columns;
  cr_assert(p->column_groups * columns >= queries && (p->column_groups - 1) * columns < queries, "%s", what);
  cr_assert(!p->folded || (p->q_parts == 2 && queries <= op->columns / 2), "%s", what);
  cr_assert_eq(p->value_widen, c->kv.v_dtype != p->value_op->operand, "%s", what);
  cr_assert_eq(p->value_tiles % p->v_parts, 0, "%s: a channel tile has one scale", what);
  cr_assert(p->v_part % (p->value_tiles / p->v_parts * op->rows) == 0, "%s", what);
  if (c->scale.granularity == SCALE_GROUP) {
    cr_assert(p->k_parts == 1 || (p->k_parts * p->k_part == coded && p->k_part == c->scale.group_k), "%s",
              what);
    cr_assert(p->v_part >= contract_coded_v(c) || p->v_part == c->scale.group_v, "%s", what);
  }
  cr_assert_eq(p->widen, c->kv.k_dtype != op->operand, "%s", what);
  cr_assert(p->waves >= 1 && p->waves * p->target->wave <= 1024, "%s", what);
  cr_assert(p->k_buffers >= 1 && p->k_buffers <= p->k_pieces, "%s", what);
  cr_assert_eq(p->k_list % (p->k_pieces * op->elements), 0, "%s: pieces are whole fragments", what);
  cr_assert_eq(p->k_list % (p->k_pieces * p->k_chunk), 0, "%s: pieces are whole chunks", what);
  cr_assert(p->k_pieces == 1 || p->k_parts % p->k_pieces == 0 || p->k_parts == 1, "%s: and whole groups",
            what);
  int tiles = p->blocks * plan_output_tiles(p);
  cr_assert(p->exchange >= 1 && p->exchange <= tiles, "%s", what);
  cr_assert(p->exchange == tiles || p->exchange >= p->waves, "%s: every wave has a tile to sum", what);
}

static inline int k_channel(const decode_plan *p, int group, int i) {
  return (i / p->k_chunk * p->op->groups + group) * p->k_chunk + i % p->k_chunk;
}

static inline int v_channel(const decode_plan *p, int index, int m) {
  return (m / p->v_channels * p->op->rows + index) * p->v_channels + m % p->v_channels;
}

static inline void channels_are_dealt_once(const contract *c, const decode_plan *p, const char *what) {
  int seen[2][4096] = {{0}};
  for (int group = 0; group < p->op->groups; group++)
    for (int i = 0; i < p->k_list; i++)
      seen[0][k_channel(p, group, i)]++;
  for (int index = 0; index < p->op->rows; index++)
    for (int m = 0; m < p->slices * p->value_tiles; m++)
      seen[1][v_channel(p, index, m)]++;
  for (int d = 0; d < contract_coded_k(c); d++)
    cr_assert_eq(seen[0][d], 1, "%s: K channel %d", what, d);
  for (int d = 0; d < contract_coded_v(c); d++)
    cr_assert_eq(seen[1][d], 1, "%s: V channel %d", what, d);
}

static inline bool is_width(int bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/* Strides of b and h are multiples of 16 bytes, as the launcher demands; bases too. */
static inline void loads_are_contiguous_and_aligned(const contract *c, const decode_plan *p,
                                                    const char *what) {
  const int64_t heads = 3, stride_h = 16 * 1021, stride_b = 16 * 99991;
  for (int group = 0; group < p->op->groups; group++)
    for (int i = 0; i < p->k_list; i += p->k_load) {
      cr_assert_eq(contract_coded_k(c) % p->k_load, 0, "%s: loads are whole inside the head, or outside",
                   what);
      if (k_channel(p, group, i) >= contract_coded_k(c)) continue;
      for (int64_t slot = 0; slot < c->kv.page; slot += 1 + c->kv.page / 5) {
        int64_t first =
            layout_offset(&c->kv.k, stride_b, stride_h, heads, 1, 1, slot, k_channel(p, group, i));
        cr_assert_eq(first % p->k_load, 0, "%s: K load at %lld", what, (long long)first);
        for (int n = 1; n < p->k_load; n++)
          cr_assert_eq(
              layout_offset(&c->kv.k, stride_b, stride_h, heads, 1, 1, slot, k_channel(p, group, i + n)),
              first + n, "%s: K channel %d", what, k_channel(p, group, i + n));
      }
    }
  for (int index = 0; index < p->op->rows; index++)
    for (int m = 0; m < p->slices * p->value_tiles; m += p->v_channels) {
      cr_assert_eq(contract_coded_v(c) % p->v_channels, 0, "%s: loads are whole inside the head, or outside",
                   what);
      if (v_channel(p, index, m) >= contract_coded_v(c)) continue;
      for (int64_t slot = 0; slot < c->kv.page; slot += p->v_tokens * (1 + c->kv.page / p->v_tokens / 5)) {
        int64_t first =
            layout_offset(&c->kv.v, stride_b, stride_h, heads, 1, 1, slot, v_channel(p, index, m));
        cr_assert_eq(first % (p->v_tokens * p->v_channels), 0, "%s: V load at %lld", what, (long long)first);
        for (int n = 1; n < p->v_tokens; n++)
          cr_assert_eq(
              layout_offset(&c->kv.v, stride_b, stride_h, heads, 1, 1, slot + n, v_channel(p, index, m)),
              first + n, "%s: V slot %lld", what, (long long)slot + n);
        for (int n = 1; n < p->v_channels; n++)
          cr_assert_eq(
              layout_offset(&c->kv.v, stride_b, stride_h, heads, 1, 1, slot, v_channel(p, index, m + n)),
              first + n, "%s: V channel tile %d", what, m + n);
      }
    }
}

static inline int lds_limit(const target *t) {
  return t->family == FAMILY_CUDA ? WIDEST_STATIC_SHARED : t->lds_bytes;
}

static inline void fits_lds(const contract *c, const decode_plan *p, const char *what) {
  (void)c;
  cr_assert(p->lds_bytes > 0 && p->lds_bytes <= lds_limit(p->target), "%s: %d of %d bytes of LDS", what,
            p->lds_bytes, lds_limit(p->target));
}

#endif
