/* Claims about plans: what the templates rely on when they let every lane load its own piece of a fragment,
 * checked lane by lane, and what is declined, with its code and field. */
#include "../../generator/plan.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

enum { WIDEST_STATIC_SHARED = 48 * 1024 }; /* what a CUDA kernel may declare, whatever the SM has */

static spec shipped(const char *name) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  free(yaml);
  return s;
}

static decode_plan planned(const contract *c, int waves, const target *t, const char *what) {
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

static void for_each_shipped(void (*check)(const contract *c, const decode_plan *p, const char *what)) {
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
static int for_each_random(int rounds,
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

static void everywhere(void (*check)(const contract *c, const decode_plan *p, const char *what)) {
  for_each_shipped(check);
  cr_expect_gt(for_each_random(4000, check), 400);
}

/* ---- arithmetic between the numbers of a plan ---- */

static void counts_agree(const contract *c, const decode_plan *p, const char *what) {
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

static int k_channel(const decode_plan *p, int group, int i) {
  return (i / p->k_chunk * p->op->groups + group) * p->k_chunk + i % p->k_chunk;
}

static int v_channel(const decode_plan *p, int index, int m) {
  return (m / p->v_channels * p->op->rows + index) * p->v_channels + m % p->v_channels;
}

static void channels_are_dealt_once(const contract *c, const decode_plan *p, const char *what) {
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

static bool is_width(int bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

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

/* Strides of b and h are multiples of 16 bytes, as the launcher demands; bases too. */
static void loads_are_contiguous_and_aligned(const contract *c, const decode_plan *p, const char *what) {
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

static int lds_limit(const target *t) {
  return t->family == FAMILY_CUDA ? WIDEST_STATIC_SHARED : t->lds_bytes;
}

static void fits_lds(const contract *c, const decode_plan *p, const char *what) {
  (void)c;
  cr_assert(p->lds_bytes > 0 && p->lds_bytes <= lds_limit(p->target), "%s: %d of %d bytes of LDS", what,
            p->lds_bytes, lds_limit(p->target));
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

/* ---- latent caches ---- */

static const char *const latent_specs[] = {"deepseek-mla-bf16", "deepseek-mla-fp8", "deepseek-mla-fp8-656",
                                           "deepseek-mla-fp8-584"};

/* V's channels of the tail: each in one tile of one workgroup, loaded whole from where it lies. */
static void values_of_the_tail_are_dealt_once(const contract *c, const decode_plan *p, const char *what) {
  const layout *l = &c->kv.tail.layout;
  const int bytes = dtype_bytes(c->kv.tail.dtype), channels = c->head_dim.v - contract_coded_v(c);
  int seen[4096] = {0};
  if (channels == 0) return;
  cr_assert_eq(p->tail_value_op->elements, p->value_op->elements, "%s: weights of one shape", what);
  cr_assert(is_width(p->tail_tokens * p->tail_channels * bytes), "%s", what);
  cr_assert(p->tail_tokens == 1 || p->tail_channels == 1, "%s: a load runs one way", what);
  cr_assert_eq(p->tail_tiles % p->tail_channels, 0, "%s", what);
  cr_assert_eq(p->own_run % p->tail_tokens, 0, "%s", what);
  for (int slice = 0; slice < p->slices; slice++)
    for (int index = 0; index < p->op->rows; index++)
      for (int m = 0; m < p->tail_tiles; m++) {
        int first = (m / p->tail_channels * p->op->rows + index) * p->tail_channels;
        int channel = slice * p->tail_tiles * p->op->rows + first + m % p->tail_channels;
        seen[channel]++;
        if (m % p->tail_channels || channel >= channels) continue;
        cr_assert_leq(channel + p->tail_channels, channels, "%s: loads are whole inside V, or outside", what);
        for (int slot = 0; slot < c->kv.page; slot += p->tail_tokens) {
          int64_t at = c->kv.tail.at + bytes * layout_offset(l, 0, 0, 1, 0, 0, slot, channel);
          cr_assert_eq(at % (p->tail_tokens * p->tail_channels * bytes), 0, "%s: load at %lld", what,
                       (long long)at);
        }
      }
  for (int d = 0; d < channels; d++)
    cr_assert_eq(seen[d], 1, "%s: V channel %d of the tail", what, d);
}

/* The spec with pages of `tokens` tokens; where scales lie behind all of them, they move. Free it. */
static char *with_pages(const char *yaml, int tokens) {
  char page[32], behind[32], at[32];
  snprintf(page, sizeof page, "page: %d\n", tokens);
  char *changed = spec_with(yaml, "page: 64\n", page);
  if (!strstr(yaml, "s+512")) return changed;
  snprintf(behind, sizeof behind, "s+%d", 8 * tokens);
  snprintf(at, sizeof at, "at: %d", 576 * tokens);
  char *padded = spec_with(changed, "s+512", behind), *moved = spec_with(padded, "at: 36864", at);
  free(changed);
  free(padded);
  return moved;
}

Test(plan, latent_caches_are_served_with_any_queries_and_pages) {
  static const int heads[] = {8, 16, 20, 32, 64, 128}, pages[] = {1, 16, 64};
  for (size_t i = 0; i < sizeof latent_specs / sizeof *latent_specs; i++) {
    char *yaml = read_shipped(latent_specs[i]);
    for (int n = 0; n < 6 * 3; n++) {
      char head[32];
      snprintf(head, sizeof head, "heads_per_kv: %d\n", heads[n / 3]);
      char *with_heads = spec_with(yaml, "heads_per_kv: 16\n", head);
      char *changed = with_pages(with_heads, pages[n % 3]);
      spec s = parse_good(changed);
      for (size_t t = 0; t < target_count(); t++) {
        contract c = contract_resolve(&s.contract, target_at(t)->fp8);
        decode_plan p = planned(&c, 0, target_at(t), latent_specs[i]);
        counts_agree(&c, &p, latent_specs[i]);
        channels_are_dealt_once(&c, &p, latent_specs[i]);
        loads_are_contiguous_and_aligned(&c, &p, latent_specs[i]);
        values_of_the_tail_are_dealt_once(&c, &p, latent_specs[i]);
        fits_lds(&c, &p, latent_specs[i]);
      }
      spec_finish(&s);
      free(changed);
      free(with_heads);
    }
    free(yaml);
  }
}

Test(plan, channels_of_a_tail_are_dealt_once_in_loads_that_read_them) {
  spec s = shipped("deepseek-mla-fp8-656");
  for (size_t t = 0; t < target_count(); t++) {
    contract c = contract_resolve(&s.contract, target_at(t)->fp8);
    decode_plan p = planned(&c, 0, target_at(t), "656");
    const layout *l = &c.kv.tail.layout;
    int seen[256] = {0};
    cr_assert_not_null(p.tail_op);
    cr_expect_eq(p.tail_op->operand, DTYPE_BF16);
    cr_expect_eq(p.tail_load * 2, 16, "%s: the tail has runs of 16 bytes", target_at(t)->name);
    for (int group = 0; group < p.tail_op->groups; group++)
      for (int e = 0; e < p.tail_list; e++)
        seen[(e / p.tail_chunk * p.tail_op->groups + group) * p.tail_chunk + e % p.tail_chunk]++;
    for (int d = 0; d < c.kv.tail.channels; d++)
      cr_expect_eq(seen[d], 1, "%s: channel %d", target_at(t)->name, d);
    for (int slot = 0; slot < c.kv.page; slot++)
      cr_expect_eq((c.kv.tail.at + 2 * layout_offset(l, 0, 0, 1, 0, 0, slot, 0)) % (2 * p.tail_load), 0);
  }
  spec_finish(&s);
}

static void edit_tail_format(contract *c) {
  c->kv.tail.dtype = DTYPE_FP32;
}
static void edit_tail_length(contract *c) {
  c->kv.tail.channels = 60;
}

Test(plan, tails_that_no_product_takes_decline_by_name) {
  static void (*const edits[])(contract * c) = {edit_tail_format, edit_tail_length};
  spec s = shipped("deepseek-mla-fp8-656");
  for (size_t i = 0; i < 2; i++) {
    contract c = contract_resolve(&s.contract, DTYPE_FP8_E4M3FN);
    edits[i](&c);
    decode_plan p;
    diags problems;
    diags_init(&problems);
    cr_expect_eq(plan_decode(&c, &(variant){0}, target_find("gfx950"), &p, &problems), HD_DECLINED);
    cr_assert_geq((int)problems.count, 1);
    cr_expect_str_eq(problems.items[0].code, "decline.tail");
    diags_finish(&problems);
  }
  spec_finish(&s);
}

/* ---- the writer ---- */

Test(plan, the_writers_lanes_cover_a_row) {
  uint64_t state = 42;
  int served = 0;
  for (int round = 0; round < 2000; round++) {
    contract c = random_contract(&state);
    const target *t = target_at((size_t)random_below(&state, (int)target_count()));
    c = contract_resolve(&c, t->fp8);
    write_plan p;
    diags problems;
    diags_init(&problems);
    if (plan_write(&c, &(variant){0}, t, &p, &problems) == HD_OK) {
      int widest = c.head_dim.qk > c.head_dim.v ? c.head_dim.qk : c.head_dim.v;
      cr_assert_eq(p.load * dtype_bytes(c.query.dtype), 16);
      cr_assert(c.head_dim.qk % p.load == 0 && c.head_dim.v % p.load == 0, "lanes load whole chunks");
      cr_assert(p.row_lanes * p.load >= widest || p.row_lanes == t->wave,
                "a lane takes more only in full waves");
      cr_assert(p.row_lanes == 1 || p.row_lanes / 2 * p.load < widest);
      cr_assert_eq(p.row_lanes & (p.row_lanes - 1), 0);
      cr_assert(t->wave % p.row_lanes == 0 && p.threads % t->wave == 0, "a row stays in one wave");
      served++;
    }
    diags_finish(&problems);
  }
  cr_expect_gt(served, 400);
}

/* ---- declines ---- */

static void edit_rows(contract *c) {
  c->query.rows = 9;
}
static void edit_heads(contract *c) {
  c->query.heads_per_kv = 129;
}
static void edit_query(contract *c) {
  c->query.dtype = DTYPE_FP32;
}
static void edit_dialect(contract *c) {
  c->kv.k_dtype = c->kv.v_dtype = DTYPE_FP8_E4M3FNUZ;
}
static void edit_group_scale(contract *c) {
  c->scale.granularity = SCALE_GROUP;
  c->scale.group_k = 64;
  c->scale.group_v = 4;
}
static void edit_scale_dtype(contract *c) {
  c->scale.dtype = DTYPE_E8M0;
}
static void edit_blocks(contract *c) {
  c->select.form = SELECT_BLOCKS;
  c->select.block = 64; /* half a page */
}
static void edit_tokens(contract *c) {
  c->select.form = SELECT_TOKENS;
  c->select.per = PER_ROW;
}
static void edit_window_of_blocks(contract *c) {
  c->select.form = SELECT_BLOCKS;
  c->select.block = c->kv.page;
  c->mask.window = 64;
}
static void edit_index(contract *c) {
  c->select.index = DTYPE_FP32;
}
static void edit_output(contract *c) {
  c->output.dtype = DTYPE_FP8_E4M3FN;
}
static void edit_qk(contract *c) {
  c->head_dim.qk = 76;
}
static void edit_v(contract *c) {
  c->head_dim.v = 520;
}
static void edit_wide(contract *c) {
  c->head_dim.qk = 584;
}
static void edit_tiny(contract *c) {
  c->head_dim.qk = 60;
}
static void edit_kernels_decode(contract *c) {
  c->kernels = KERNEL_WRITE;
}
static void edit_kernels_write(contract *c) {
  c->kernels = KERNEL_DECODE;
}

enum { WRITER = 1, READER = 2, BOTH = 3 };

static const struct {
  void (*edit)(contract *c);
  int who; /* which operations decline it */
  const char *code, *field;
} declines[] = {
    {edit_rows, READER, "decline.query-rows", "query.rows"},
    {edit_heads, READER, "decline.heads-per-kv", "query.heads_per_kv"},
    {edit_query, BOTH, "decline.query-dtype", "query.dtype"},
    {edit_dialect, BOTH, "decline.dialect", "kv.dtype"},
    {edit_group_scale, BOTH, "decline.scale-group", "scale.group"},
    {edit_scale_dtype, BOTH, "decline.scale-dtype", "scale.dtype"},
    {edit_blocks, READER, "decline.select-block", "select.block"},
    {edit_tokens, READER, "decline.select-page", "kv.page"},
    {edit_window_of_blocks, READER, "decline.select-window", "mask.window"},
    {edit_index, READER, "decline.select-index", "select.index"},
    {edit_output, READER, "decline.output-dtype", "output.dtype"},
    {edit_qk, BOTH, "decline.head-dim", "head_dim.qk"},
    {edit_v, BOTH, "decline.head-dim", "head_dim.v"},
    {edit_wide, BOTH, "decline.head-dim", "head_dim.qk"},
    {edit_tiny, BOTH, "decline.head-dim", "head_dim.qk"},
    {edit_kernels_decode, READER, "decline.kernels", "kernels"},
    {edit_kernels_write, WRITER, "decline.kernels", "kernels"},
};

Test(plan, one_field_outside_what_is_served_is_one_decline_with_its_name) {
  spec s = shipped("minimax-m3-dense-fp8");
  const target *t = target_find("gfx950");
  for (size_t i = 0; i < sizeof declines / sizeof *declines; i++)
    for (int who = WRITER; who <= READER; who++) {
      contract c = s.contract;
      declines[i].edit(&c);
      c = contract_resolve(&c, t->fp8);
      union {
        decode_plan decode;
        write_plan write;
        unsigned char bytes[sizeof(decode_plan) + sizeof(write_plan)];
      } p, untouched;
      memset(&p, 0x5a, sizeof p);
      untouched = p;
      diags problems;
      diags_init(&problems);
      hd_status status = who == READER ? plan_decode(&c, &(variant){0}, t, &p.decode, &problems)
                                       : plan_write(&c, &(variant){0}, t, &p.write, &problems);
      const char *name = who == READER ? "decode" : "write";
      if (!(declines[i].who & who)) {
        cr_expect_eq(status, HD_OK, "%s serves %s", name, declines[i].code);
      } else {
        cr_expect_eq(status, HD_DECLINED, "%s declines %s", name, declines[i].code);
        cr_assert_eq(problems.count, 1, "%s, %s: %zu diagnostics", declines[i].code, name, problems.count);
        cr_expect_str_eq(problems.items[0].code, declines[i].code);
        cr_expect_str_eq(problems.items[0].field, declines[i].field);
        cr_expect_eq(memcmp(p.bytes, untouched.bytes, sizeof p.bytes), 0, "%s: the plan is left alone",
                     declines[i].code);
      }
      diags_finish(&problems);
    }
  spec_finish(&s);
}

/* What the ring lacks, one field from a contract that it takes; the direct structure has it. */
static void ask_rows(contract *c) {
  c->query.rows = 2;
}
static void ask_indptr(contract *c) {
  c->select.form = SELECT_INDPTR;
}
static void ask_kv_head(contract *c) {
  c->select.per = PER_KV_HEAD;
}
static void ask_per_row(contract *c) {
  c->select.per = PER_ROW;
}
static void ask_long_index(contract *c) {
  c->select.index = DTYPE_INT64;
}
static void ask_window(contract *c) {
  c->mask.window = 4096;
}
static void ask_sinks(contract *c) {
  c->mask.sinks = true;
}
static void ask_softcap(contract *c) {
  c->logits.softcap = 30;
}
static void ask_head_scale(contract *c) {
  c->scale.granularity = SCALE_HEAD;
}
static void ask_token_scale(contract *c) {
  c->scale.granularity = SCALE_TOKEN;
}
static void ask_page_scale(contract *c) {
  c->scale.granularity = SCALE_PAGE_HEAD;
}
static void ask_group_scale(contract *c) {
  c->scale.granularity = SCALE_GROUP;
  c->scale.group_k = c->scale.group_v = 64;
}
static void ask_fp16_scale(contract *c) {
  c->scale.dtype = DTYPE_FP16;
}

static decode_plan freely_planned(const contract *c, const target *t) {
  decode_plan p;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(plan_decode(c, &(variant){0}, t, &p, &problems), HD_OK);
  diags_finish(&problems);
  return p;
}

Test(plan, what_the_ring_lacks_takes_the_direct_structure) {
  static void (*const asks[])(contract * c) = {
      ask_rows,    ask_indptr,     ask_kv_head,     ask_per_row,    ask_long_index,  ask_window,    ask_sinks,
      ask_softcap, ask_head_scale, ask_token_scale, ask_page_scale, ask_group_scale, ask_fp16_scale};
  spec s = shipped("minimax-m3-dense-fp8");
  const target *t = target_find("sm_90");
  contract plain = contract_resolve(&s.contract, t->fp8);
  cr_expect_eq(freely_planned(&plain, t).structure, STRUCTURE_RING);
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    contract c = plain;
    asks[i](&c);
    decode_plan p = freely_planned(&c, t);
    cr_expect_eq(p.structure, STRUCTURE_DIRECT, "case %zu", i);
    cr_expect_neq(*p.structure_reason, 0, "case %zu says why", i);
  }
  spec_finish(&s);
}

Test(plan, the_ring_reads_lists_that_were_made_on_the_device) {
  spec s = shipped("minimax-m3-sparse-blocks-fp8");
  const target *t = target_find("sm_90");
  contract c = contract_resolve(&s.contract, t->fp8);
  for (int rows = 1; rows <= 4; rows++) {
    c.query.rows = rows;
    decode_plan p = freely_planned(&c, t);
    cr_expect_eq(p.structure, STRUCTURE_RING, "%s", p.structure_reason);
    cr_expect_eq(p.rows, 1, "each row has a list of its own");
  }
  c.select.per = PER_ROW;
  cr_expect_eq(freely_planned(&c, t).structure, STRUCTURE_RING);
  c.select.index = DTYPE_INT64;
  cr_expect_eq(freely_planned(&c, t).structure, STRUCTURE_DIRECT);
  spec_finish(&s);
}

Test(plan, a_dialect_is_served_where_it_is_spoken) {
  spec s = shipped("minimax-m3-dense-fp8");
  static const dtype dialects[] = {DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ};
  for (size_t n = 0; n < target_count(); n++)
    for (int i = 0; i < 2; i++) {
      const target *t = target_at(n);
      contract c = s.contract;
      c.kv.k_dtype = c.kv.v_dtype = dialects[i];
      decode_plan p;
      diags problems;
      diags_init(&problems);
      hd_status status = plan_decode(&c, &(variant){0}, t, &p, &problems);
      cr_expect_eq(status, dialects[i] == t->fp8 ? HD_OK : HD_DECLINED, "%s on %s", dtype_name(dialects[i]),
                   t->name);
      cr_expect((status == HD_OK) == (problems.count == 0));
      diags_finish(&problems);
    }
  spec_finish(&s);
}

Test(plan, all_declines_come_in_one_answer) {
  spec s = shipped("minimax-m3-dense-fp8");
  contract c = contract_resolve(&s.contract, DTYPE_FP8_E4M3FN);
  edit_rows(&c);
  edit_blocks(&c);
  edit_index(&c);
  edit_v(&c);
  decode_plan p;
  diags problems;
  diags_init(&problems);
  cr_expect_eq(plan_decode(&c, &(variant){.waves = 5}, target_find("gfx950"), &p, &problems), HD_DECLINED);
  cr_expect_eq(problems.count, 5);
  diags_finish(&problems);
  spec_finish(&s);
}

Test(plan, diagnostics_of_others_are_neither_counted_nor_lost) {
  spec s = shipped("nhd-fp16");
  decode_plan p;
  diags problems;
  diags_init(&problems);
  diags_errorf(&problems, "spec.value", "kv.page", "from before");
  cr_expect_eq(plan_decode(&s.contract, &(variant){0}, target_find("gfx942"), &p, &problems), HD_OK);
  cr_expect_eq(problems.count, 1);
  diags_finish(&problems);
  spec_finish(&s);
}
