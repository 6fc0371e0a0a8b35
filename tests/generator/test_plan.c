/* Claims about plans: which token and channel is where, loads and resources. */
#include "plan_fixture.h"

Test(plan, tiles_lists_and_products_agree) {
  everywhere(counts_agree);
}

/* bf16 has 8 significant bits, fp16 11, e4m3 4: so many parts hold a query exactly. */
static void query_is_exact(const contract *c, const decode_plan *p, const char *what) {
  int query_bits = c->query.dtype == DTYPE_FP16 ? 11 : 8;
  int q_bits = p->op->operand == DTYPE_FP16 ? 11 : p->op->operand == DTYPE_BF16 ? 8 : 4;
  int p_bits = p->value_op->operand == DTYPE_FP16 ? 11 : p->value_op->operand == DTYPE_BF16 ? 8 : 4;
  cr_assert_geq(p->q_parts * q_bits, query_bits, "%s", what);
  cr_assert_geq(p->p_parts * p_bits, 8, "%s: weights as good as bf16", what);
  double largest = p->op->operand == DTYPE_BF16 ? 1e30 : dtype_max(p->op->operand);
  double heaviest = p->value_op->operand == DTYPE_BF16 ? 1e30 : dtype_max(p->value_op->operand);
  cr_assert_leq((double)(1 << p->q_top) * 2, largest,
                "%s: a query row's largest element is below 2^(q_top + 1)", what);
  cr_assert_leq((double)(1 << p->p_shift), heaviest, "%s: weights are at most 2^p_shift", what);
}

Test(plan, parts_hold_a_query_exactly_and_in_range) {
  everywhere(query_is_exact);
}

/* ---- which token and channel is where ---- */

/* Row `index` of score product t is this token of the tile, for every lane of that index. */
static int k_token(const decode_plan *p, int index, int t) {
  return index / p->op->row_run * p->list + index % p->op->row_run + t * p->op->row_run;
}

static void tokens_have_one_owner(const contract *c, const decode_plan *p, const char *what) {
  (void)c;
  int *rows = calloc((size_t)p->tile, sizeof *rows);
  for (int t = 0; t < p->score_tiles; t++)
    for (int index = 0; index < p->op->rows; index++) {
      int token = k_token(p, index, t);
      cr_assert(token >= 0 && token < p->tile, "%s: row %d of product %d", what, index, t);
      rows[token]++;
      /* the accumulator has this row in group index / row_run, register index % row_run */
      int owner = index / p->op->row_run, element = t * p->op->row_run + index % p->op->row_run;
      cr_assert_eq(token, owner * p->list + element, "%s: the lane that has its score owns token %d", what,
                   token);
    }
  for (int token = 0; token < p->tile; token++)
    cr_assert_eq(rows[token], 1, "%s: token %d", what, token);
  free(rows);
}

Test(plan, every_token_is_one_row_of_k_and_its_score_meets_its_value) {
  everywhere(tokens_have_one_owner);
}

Test(plan, every_channel_is_dealt_to_one_lane) {
  everywhere(channels_are_dealt_once);
}

/* ---- pages ---- */

static void values_stay_in_their_page(const contract *c, const decode_plan *p, const char *what) {
  cr_assert_eq(c->kv.page % p->own_run, 0, "%s", what);
  cr_assert_eq(p->list % p->own_run, 0, "%s", what);
  cr_assert_eq(p->own_run % p->v_tokens, 0, "%s", what);
  for (int tile = 0; tile < 7; tile++)
    for (int group = 0; group < p->op->groups; group++)
      for (int e = 0; e < p->list; e++) {
        int token = tile * p->tile + group * p->list + e;
        int first = e - e % p->v_tokens, named = e / p->own_run * p->own_run;
        cr_assert_eq(token / c->kv.page, (token - e + first) / c->kv.page, "%s: a V load crosses a page",
                     what);
        cr_assert_eq(token / c->kv.page, (token - e + named) / c->kv.page, "%s: own page id %d", what,
                     e / p->own_run);
      }
}

Test(plan, loads_of_v_never_cross_a_page) {
  everywhere(values_stay_in_their_page);
}

static void keys_have_their_page(const contract *c, const decode_plan *p, const char *what) {
  cr_assert_eq(p->k_exact, p->own_run < p->op->row_run, "%s", what);
  for (int tile = 0; tile < 7; tile++)
    for (int index = 0; index < p->op->rows; index++)
      for (int t = 0; t < p->score_tiles; t++) {
        int token = tile * p->tile + k_token(p, index, t);
        /* the page id this row takes was looked up for this token */
        int named = tile * p->tile + index / p->op->row_run * p->list +
                    (p->k_exact ? index % p->op->row_run + t * p->op->row_run
                                : t * p->op->row_run / p->own_run * p->own_run);
        cr_assert_eq(token / c->kv.page, named / c->kv.page, "%s: row %d of product %d", what, index, t);
      }
}

Test(plan, every_row_of_k_has_the_page_of_its_token) {
  everywhere(keys_have_their_page);
}

/* ---- loads ---- */

static void widths_are_legal(const contract *c, const decode_plan *p, const char *what) {
  const int k_bytes = dtype_bytes(c->kv.k_dtype), v_bytes = dtype_bytes(c->kv.v_dtype);
  cr_assert(is_width(p->k_load * k_bytes), "%s: K loads of %d bytes", what, p->k_load * k_bytes);
  cr_assert(is_width(p->v_tokens * p->v_channels * v_bytes), "%s: V loads of %d bytes", what,
            p->v_tokens * p->v_channels * v_bytes);
  cr_assert(p->v_tokens == 1 || p->v_channels == 1, "%s: a V load runs one way", what);
  cr_assert_eq(p->k_chunk % p->k_load, 0, "%s", what);
  cr_assert_eq(p->k_list % p->k_chunk, 0, "%s", what);
  cr_assert_eq(p->value_tiles % p->v_channels, 0, "%s", what);
  if (p->v_channels > 1) cr_assert_geq(p->v_channels * v_bytes, 4, "%s: transposing takes whole words", what);
}

Test(plan, loads_have_a_width_that_exists) {
  everywhere(widths_are_legal);
}

Test(plan, loads_read_consecutive_aligned_elements) {
  everywhere(loads_are_contiguous_and_aligned);
}

/* 16 bytes, or the whole of a lane's list of tokens where registers leave room for fewer. */
Test(plan, the_layouts_of_the_field_get_whole_loads) {
  static const struct {
    const char *spec;
    bool transposed;
  } rows[] = {{"minimax-m3-dense-fp8", false},
              {"minimax-m3-sparse-fp8", false},
              {"vllm-rocm-classic-fp8", false},
              {"llama3-70b-tp8-bf16", true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    spec s = shipped(rows[i].spec);
    for (size_t n = 0; n < target_count(); n++) {
      decode_plan p = planned(&s.contract, 0, target_at(n), rows[i].spec);
      int bytes = dtype_bytes(s.contract.kv.k_dtype);
      int widest = rows[i].transposed || p.list * bytes > 16 ? 16 : p.list * bytes;
      cr_expect_eq(p.k_load * bytes, 16, "%s on %s: K loads of %d bytes", rows[i].spec, target_at(n)->name,
                   p.k_load * bytes);
      cr_expect_eq(p.v_tokens * p.v_channels * bytes, widest, "%s on %s: V loads of %d bytes", rows[i].spec,
                   target_at(n)->name, p.v_tokens * p.v_channels * bytes);
      if (target_at(n)->family != FAMILY_CUDA)
        cr_expect_eq(widest, 16, "%s on %s", rows[i].spec, target_at(n)->name);
      cr_expect_eq(p.v_channels > 1, rows[i].transposed, "%s on %s", rows[i].spec, target_at(n)->name);
    }
    spec_finish(&s);
  }
}

/* ---- resources ---- */

static void fits_registers(const contract *c, const decode_plan *p, const char *what) {
  (void)c;
  cr_expect(p->registers > 0 && p->registers <= p->target->vgprs, "%s: %d of %d registers", what,
            p->registers, p->target->vgprs);
}

Test(plan, shipped_specs_are_estimated_to_fit_the_registers) {
  for_each_shipped(fits_registers);
}

Test(plan, a_workgroup_fits_the_lds) {
  everywhere(fits_lds);
}

Test(plan, a_variant_is_served_as_asked_or_declined) {
  spec s = shipped("minimax-m3-dense-fp8");
  for (size_t n = 0; n < target_count(); n++)
    for (int waves = 1; waves <= 17; waves++) {
      contract c = contract_resolve(&s.contract, target_at(n)->fp8);
      decode_plan p;
      variant v = {.structure = STRUCTURE_DIRECT, .waves = waves};
      diags problems;
      diags_init(&problems);
      hd_status status = plan_decode(&c, &v, target_at(n), &p, &problems);
      if (status == HD_OK) {
        cr_expect_eq(p.waves, waves);
        fits_lds(&c, &p, target_at(n)->name);
      } else {
        cr_assert_eq(problems.count, 1);
        cr_expect_str_eq(problems.items[0].code, "decline.waves");
        cr_expect_str_eq(problems.items[0].field, "tune.waves");
        cr_expect(waves > 4 || waves == 3, "%d waves on %s: %s", waves, target_at(n)->name,
                  problems.items[0].message);
      }
      diags_finish(&problems);
    }
  spec_finish(&s);
}

Test(plan, parts_of_a_variant_that_a_structure_lacks_decline) {
  spec s = shipped("minimax-m3-dense-fp8");
  const variant lacking[] = {{.structure = STRUCTURE_DIRECT, .stages = 4},
                             {.structure = STRUCTURE_DIRECT, .resident = 2},
                             {.structure = STRUCTURE_DIRECT, .tile = 64}};
  for (size_t n = 0; n < target_count(); n++)
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
      contract c = contract_resolve(&s.contract, target_at(n)->fp8);
      decode_plan p;
      diags problems;
      diags_init(&problems);
      cr_assert_eq(plan_decode(&c, &lacking[i], target_at(n), &p, &problems), HD_DECLINED);
      cr_expect_str_eq(problems.items[0].code, "decline.structure");
      diags_finish(&problems);
    }
  spec_finish(&s);
}

Test(plan, waves_that_make_no_warpgroup_take_the_direct_structure) {
  spec s = shipped("minimax-m3-dense-fp8");
  contract c = contract_resolve(&s.contract, target_find("sm_90")->fp8);
  for (int waves = 1; waves <= 4; waves *= 2) {
    decode_plan p;
    diags problems;
    diags_init(&problems);
    cr_assert_eq(plan_decode(&c, &(variant){.waves = waves}, target_find("sm_90"), &p, &problems), HD_OK);
    cr_expect_eq(p.structure, waves == 4 ? STRUCTURE_RING : STRUCTURE_DIRECT);
    diags_finish(&problems);
  }
  spec_finish(&s);
}

Test(plan, a_ring_that_cannot_be_is_declined_by_name) {
  spec s = shipped("deepseek-mla-bf16");
  for (size_t n = 0; n < target_count(); n++) {
    if (target_at(n)->ring_prelude && target_at(n)->family != FAMILY_CUDA) continue; /* there it can be */
    decode_plan p;
    diags problems;
    diags_init(&problems);
    cr_expect_eq(
        plan_decode(&s.contract, &(variant){.structure = STRUCTURE_RING}, target_at(n), &p, &problems),
        HD_DECLINED);
    cr_assert_eq(problems.count, 1);
    cr_expect_str_eq(problems.items[0].code, "decline.structure");
    diags_finish(&problems);
  }
  spec_finish(&s);
}
