/* Claims about what plans decline, and about the writer's. */
#include "plan_fixture.h"

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
