/* Claims about dispatch: what is chosen, what declines with which code, and that launching agrees. */
#include "../../runtime/match/match.h"
#include "../../runtime/launch/strides.h"
#include "../example_contract.h"
#include "../random_contract.h"

#include <criterion/criterion.h>
#include <math.h>

enum { SEQS = 3, HEADS = 2, PAGES = 50, TABLE = 9 };

/* Shuffled fp8, page 16, head_dim 128, eight query heads a kv head, a scale per token and head. */
static contract shuffled(void) {
  contract c = example_contract(16, 128, 128);
  c.query.heads_per_kv = 8;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3;
  c.kv.k = example_layout("b h d/16 s d%16", 16, 128);
  c.kv.v = example_layout("b h s/16 d s%16", 16, 128);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", 16, 128);
  return c;
}

/* Tensors that fit the contract on the target. */
static match_request request_for(const contract *c, operation o, const char *target_name,
                                 const int64_t dims[DIM_COUNT]) {
  match_request r = {.operation = o};
  contract resolved = contract_resolve(c, target_find(target_name)->fp8);
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    if (bind_role(&resolved, o, name) == ROLE_NONE) continue;
    r.tensors.present[i] = bind_tensor(&resolved, name, dims, &r.tensors.by_name[i]);
    r.tensors.by_name[i].data = 4096;
  }
  r.tensors.k_scale = (scale_number){bind_takes_number(&resolved, true), 0.5f};
  r.tensors.v_scale = (scale_number){bind_takes_number(&resolved, false), 0.5f};
  r.longest = 16;
  r.lse = c->output.lse;
  r.sinks = c->mask.sinks;
  r.causal = c->mask.causal;
  r.window = c->mask.window;
  r.softcap = c->logits.softcap;
  r.logits_scale = c->logits.scale == LOGITS_NUMBER ? c->logits.number : 0;
  return r;
}

static const int64_t usual_dims[DIM_COUNT] = {
    [DIM_SEQS] = SEQS,         [DIM_ROWS] = 1,   [DIM_KV_HEADS] = HEADS,  [DIM_PAGES] = PAGES,
    [DIM_TABLE_PAGES] = TABLE, [DIM_TOKENS] = 5, [DIM_TABLE_ROWS] = SEQS, [DIM_LISTED] = 6};

static match_request usual(const contract *c) {
  return request_for(c, OPERATION_DECODE, "gfx950", usual_dims);
}

static tensor *strided(match_request *r, tensor_name name) {
  tensor *t = &r->tensors.by_name[name];
  for (int i = 0; i < t->rank; i++)
    t->strides[i] = tensor_stride(t, i);
  t->strided = true;
  return t;
}

static hd_status ask(const match_request *r, const contract *c, const char *target_name, match_answer *out) {
  const match_candidate candidate = {.name = "one", .contract = c};
  int chosen = -7;
  hd_status status = match_best(r, &candidate, 1, target_name, out, &chosen);
  cr_assert_eq(chosen, status == HD_OK ? 0 : -7, "untouched unless one serves");
  cr_assert_eq(out->status, status);
  return status;
}

static void expect_match(const match_request *r, const contract *c) {
  match_answer a;
  hd_status status = ask(r, c, "gfx950", &a);
  cr_assert_eq(status, HD_OK, "%s", a.declines.count ? a.declines.items[0].message : "");
  match_answers_finish(&a, 1);
}

/* Declines for this one reason and no other. */
static void expect_decline(const match_request *r, const contract *c, const char *target_name,
                           const char *code, const char *field, const char *found, const char *allowed) {
  match_answer a;
  cr_assert_eq(ask(r, c, target_name, &a), HD_DECLINED, "%s", code);
  const diag *d = &a.declines.items[0];
  cr_assert_str_eq(d->code, code);
  cr_assert_str_eq(d->field, field);
  cr_assert_str_eq(d->found, found);
  cr_assert_str_eq(d->allowed, allowed);
  cr_assert_eq(a.declines.count, 1, "%s and also %s", code, a.declines.items[a.declines.count - 1].message);
  match_answers_finish(&a, 1);
}

static void expect(const match_request *r, const contract *c, const char *code, const char *field,
                   const char *found, const char *allowed) {
  expect_decline(r, c, "gfx950", code, field, found, allowed);
}

Test(match, tensors_that_fit_are_served_and_bound) {
  contract c = shuffled();
  match_request r = usual(&c);
  match_answer a;
  r.rows = 1;
  r.kv_heads = HEADS;
  r.query_heads = 8 * HEADS;
  r.longest = 16 * TABLE;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_SEQS], SEQS);
  cr_assert_eq(a.dims[DIM_PAGES], PAGES);
  cr_assert_eq(a.dims[DIM_K_STRIDE_B], HEADS * 16 * 128);
  match_answers_finish(&a, 1);
  r = request_for(&c, OPERATION_WRITE, "gfx950", usual_dims);
  expect_match(&r, &c);
}

Test(match, several_rows_against_a_one_row_contract_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_Q].shape[0] = r.tensors.by_name[TENSOR_OUT].shape[0] = 4 * SEQS;
  expect(&r, &c, "bind.rows", "q", "4", "1");
  c.query.rows = 4;
  r.causal = true;
  expect_match(&r, &c);
  r.causal = false;
  expect(&r, &c, "match.causal", "mask.causal", "false", "true");
}

Test(match, rows_behind_a_cached_prefix_decline_unless_each_row_has_its_pages) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.prefix = true;
  expect(&r, &c, "match.prefix", "query.rows", "rows behind a cached prefix",
         "the same number of rows, at most 1, for each sequence");
  r.tensors.by_name[TENSOR_Q].shape[0] = r.tensors.by_name[TENSOR_OUT].shape[0] = 7;
  match_answer a;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_DECLINED);
  cr_assert_str_eq(a.declines.items[0].code, "match.prefix");
  cr_assert_str_eq(a.declines.items[1].code, "bind.rows");
  match_answers_finish(&a, 1);
  c.select.per = PER_ROW;
  r = usual(&c);
  r.prefix = true;
  expect_match(&r, &c);
}

Test(match, a_page_of_another_size_declines_also_when_smaller_than_a_chunk) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_K_CACHE].shape[3] = 8; /* [pages, heads, 8, 8, 16] */
  expect(&r, &c, "bind.page", "k_cache", "8", "16");
  r = usual(&c);
  r.tensors.by_name[TENSOR_V_CACHE].shape[2] = 8; /* [pages, heads, 8, 128, 16] */
  expect(&r, &c, "bind.page", "v_cache", "128", "16");
  r = usual(&c);
  r.tensors.by_name[TENSOR_V_CACHE].shape[3] = 96;
  expect(&r, &c, "bind.head-dim", "v_cache", "96", "128");
}

Test(match, pages_below_a_chunk_are_served_where_the_contract_has_them) {
  const int pages[] = {1, 2, 8};
  for (int i = 0; i < 3; i++) {
    contract c = example_contract(pages[i], 128, 128);
    c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3;
    match_request r = usual(&c);
    r.longest = pages[i];
    expect_match(&r, &c);
  }
}

Test(match, a_target_that_nobody_knows_or_the_spec_does_not_list_declines) {
  contract c = shuffled();
  match_request r = usual(&c);
  expect_decline(&r, &c, "gfx906", "match.target", "targets", "gfx906",
                 "gfx942, gfx950, gfx1201, gfx1250, sm_90");
  expect_decline(&r, &c, "", "match.target", "targets", "", "gfx942, gfx950, gfx1201, gfx1250, sm_90");
  const char targets[][16] = {"gfx942", "gfx1250"};
  const match_candidate candidate = {.name = "one", .contract = &c, .targets = targets, .target_count = 2};
  match_answer a;
  int chosen;
  cr_assert_eq(match_best(&r, &candidate, 1, "gfx950", &a, &chosen), HD_DECLINED);
  cr_assert_eq(a.declines.count, 1);
  cr_assert_str_eq(a.declines.items[0].code, "match.target");
  cr_assert_str_eq(a.declines.items[0].allowed, "gfx942, gfx1250");
  match_answers_finish(&a, 1);
}

Test(match, another_fp8_dialect_declines_by_name) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_K_CACHE].dtype = DTYPE_FP8_E4M3FNUZ;
  expect(&r, &c, "bind.dialect", "k_cache", "fp8_e4m3fnuz", "fp8_e4m3fn");
  r.tensors.by_name[TENSOR_K_CACHE].dtype = DTYPE_FP8_E4M3; /* does not say which */
  expect(&r, &c, "bind.dialect", "k_cache", "fp8_e4m3", "fp8_e4m3fn");
  r.tensors.by_name[TENSOR_K_CACHE].dtype = DTYPE_FP8_E5M2;
  expect(&r, &c, "bind.dtype", "k_cache", "fp8_e5m2", "fp8_e4m3fn");
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  r = request_for(&c, OPERATION_DECODE, "gfx942", usual_dims);
  match_answer a;
  cr_assert_eq(ask(&r, &c, "gfx942", &a), HD_DECLINED);
  cr_assert_str_eq(a.declines.items[0].code, "decline.dialect");
  cr_assert_str_eq(a.declines.items[0].found, "fp8_e4m3fn");
  match_answers_finish(&a, 1);
}

Test(match, strides_of_k_given_to_v_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  tensor *k = strided(&r, TENSOR_K_CACHE), *v = strided(&r, TENSOR_V_CACHE);
  memcpy(v->strides, k->strides,
         sizeof v->strides); /* [4096, 2048, 256, 16, 1] for [50, 2, 1, 128, 16]: by chance the same */
  expect_match(&r, &c);
  c = shuffled();
  c.kv.page = 32;
  c.kv.k = example_layout("b h d/16 s d%16", 32, 128);
  c.kv.v = example_layout("b h s/16 d s%16", 32, 128);
  c.scale.k = c.scale.v = example_layout("b h s", 32, 128);
  r = usual(&c);
  k = strided(&r, TENSOR_K_CACHE), v = strided(&r, TENSOR_V_CACHE);
  memcpy(v->strides, k->strides, sizeof v->strides);
  expect(&r, &c, "bind.strides", "v_cache", "[8192, 4096, 512, 16, 1]", "[any, any, 2048, 16, 1]");
}

Test(match, padded_strides_are_each_tensors_own) {
  contract c = shuffled();
  match_request r = usual(&c);
  match_answer a;
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2 * 4096;
  strided(&r, TENSOR_V_CACHE)->strides[1] = 2048 + 64;
  r.tensors.by_name[TENSOR_V_CACHE].strides[0] = 2 * (2048 + 64) + 16;
  strided(&r, TENSOR_K_SCALE)->strides[0] = 48;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_K_STRIDE_B], 8192);
  cr_assert_eq(a.dims[DIM_K_STRIDE_H], 2048);
  cr_assert_eq(a.dims[DIM_V_STRIDE_B], 2 * (2048 + 64) + 16);
  cr_assert_eq(a.dims[DIM_V_STRIDE_H], 2048 + 64);
  cr_assert_eq(a.dims[DIM_K_SCALE_STRIDE_B], 48);
  cr_assert_eq(a.dims[DIM_V_SCALE_STRIDE_B], 32);
  match_answers_finish(&a, 1);
}

Test(match, padding_that_loads_can_not_step_by_declines) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 4096 + 8;
  expect(&r, &c, "bind.stride-alignment", "k_cache", "4104", "a multiple of 16");
  r = usual(&c);
  strided(&r, TENSOR_V_SCALE)->strides[1] = 17;
  r.tensors.by_name[TENSOR_V_SCALE].strides[0] = 36;
  expect(&r, &c, "bind.stride-alignment", "v_scale", "17", "a multiple of 4");
}

Test(match, strides_inside_a_page_and_head_are_the_layouts) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[2] = 512;
  expect(&r, &c, "bind.strides", "k_cache", "[4096, 2048, 512, 16, 1]", "[any, any, 256, 16, 1]");
  r = usual(&c);
  strided(&r, TENSOR_K_SCALE)->strides[2] = 2;
  expect(&r, &c, "bind.strides", "k_scale", "[32, 16, 2]", "[any, any, 1]");
  r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = -4096;
  expect(&r, &c, "bind.strides", "k_cache", "[-4096, 2048, 256, 16, 1]", "[any, any, 256, 16, 1]");
  c.kv.packed = true;
  r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 8192;
  expect(&r, &c, "bind.strides", "k_cache", "[8192, 2048, 256, 16, 1]", "[4096, 2048, 256, 16, 1]");
}

Test(match, pages_that_share_bytes_decline_for_the_writer_only) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2048;
  expect_match(&r, &c);
  r = request_for(&c, OPERATION_WRITE, "gfx950", usual_dims);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2048;
  expect(&r, &c, "bind.overlap", "k_cache", "[2048, 2048, 256, 16, 1]", "[any, any, 256, 16, 1]");
}

Test(match, a_base_off_16_bytes_declines) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_V_CACHE].data = 4096 + 8;
  expect(&r, &c, "bind.alignment", "v_cache", "another address", "a multiple of 16 bytes");
}

Test(match, scales_by_logical_slot_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  tensor *scale = &r.tensors.by_name[TENSOR_K_SCALE];
  scale->rank = 2; /* [kv heads, tokens] */
  scale->shape[0] = HEADS;
  scale->shape[1] = SEQS * 16 * TABLE;
  expect(&r, &c, "bind.shape", "k_scale", "[2, 432]", "[pages, kv_heads, 16] = [50, 2, 16]");
  r = usual(&c);
  r.tensors.by_name[TENSOR_K_SCALE].shape[0] = SEQS; /* [seqs, kv heads, tokens] */
  r.tensors.by_name[TENSOR_K_SCALE].shape[2] = 16 * TABLE;
  expect(&r, &c, "bind.shape", "k_scale", "[3, 2, 144]", "[pages, kv_heads, 16] = [50, 2, 16]");
}

Test(match, page_tables_of_another_format_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_PAGE_TABLE].dtype = DTYPE_INT64;
  expect(&r, &c, "bind.dtype", "page_table", "int64", "int32");
  c.select.index = DTYPE_INT64;
  expect_match(&r, &c);
}

Test(match, query_heads_that_kv_heads_do_not_divide_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_Q].shape[1] = r.tensors.by_name[TENSOR_OUT].shape[1] = 15;
  expect(&r, &c, "bind.heads-per-kv", "q", "15 over 2 kv heads", "8");
  r.tensors.by_name[TENSOR_Q].shape[1] = r.tensors.by_name[TENSOR_OUT].shape[1] = 12;
  expect(&r, &c, "bind.heads-per-kv", "q", "6", "8");
}

Test(match, sequences_longer_than_their_page_table_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.longest = 16 * TABLE + 1;
  expect(&r, &c, "match.length", "longest", "145", "0 to 144");
  r.longest = -1;
  expect(&r, &c, "match.length", "longest", "-1", "0 to 144");
  r.longest = 16 * TABLE;
  strided(&r, TENSOR_PAGE_TABLE)->strides[0] = 512; /* wide rows give no more room */
  expect_match(&r, &c);
  r.longest++;
  expect(&r, &c, "match.length", "longest", "145", "0 to 144");
}

Test(match, facts_that_contradict_the_tensors_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.rows = 2;
  expect(&r, &c, "match.contradiction", "rows", "2", "1, as the tensors have it");
  r = usual(&c);
  r.kv_heads = 8;
  expect(&r, &c, "match.contradiction", "kv_heads", "8", "2, as the tensors have it");
  r = usual(&c);
  r.query_heads = 64;
  expect(&r, &c, "match.contradiction", "query_heads", "64", "16, as the tensors have it");
}

Test(match, block_lists_are_of_the_contracts_blocks) {
  contract c = shuffled();
  c.select.form = SELECT_BLOCKS;
  c.select.block = 128;
  match_request r = usual(&c);
  expect_match(&r, &c);
  r.block = 128;
  expect_match(&r, &c);
  r.block = 64;
  expect(&r, &c, "match.block", "select.block", "64", "128");
  c.select.block = 24;
  r.block = 24;
  expect(&r, &c, "decline.select-block", "select.block", "24", "a multiple of the page, 16");
  c = shuffled(); /* an engine that has lists, asked of a contract without */
  expect(&r, &c, "bind.unneeded", "block_list", "given", "none");
}

Test(match, lists_take_rows_behind_a_prefix_where_each_has_its_length) {
  contract c = shuffled();
  c.select.form = SELECT_BLOCKS;
  c.select.block = 128;
  match_request r = usual(&c);
  r.prefix = true;
  expect(&r, &c, "match.prefix", "query.rows", "rows behind a cached prefix",
         "the same number of rows, at most 1, for each sequence");
  c.select.per = PER_ROW;
  r = usual(&c);
  r.prefix = true;
  expect_match(&r, &c);
  r.longest = 16 * TABLE + 1;
  expect(&r, &c, "match.length", "longest", "145", "0 to 144");
}

Test(match, token_lists_take_sequences_of_any_length) {
  contract c = example_contract(1, 128, 128);
  c.kv.k = c.kv.v = example_layout("b h d", 1, 128);
  c.select.form = SELECT_TOKENS;
  c.select.per = PER_ROW;
  match_request r = usual(&c);
  r.longest = 1 << 20;
  r.prefix = true;
  expect_match(&r, &c);
}

Test(match, features_are_the_contracts_and_nothing_less) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.lse = true;
  expect(&r, &c, "match.lse", "output.lse", "true", "false");
  r = usual(&c);
  r.sinks = true;
  expect(&r, &c, "match.sinks", "mask.sinks", "true", "false");
  r = usual(&c);
  r.window = 4096;
  expect(&r, &c, "match.window", "mask.window", "4096", "0 (0: none)");
  r = usual(&c);
  r.softcap = 30;
  expect(&r, &c, "match.softcap", "logits.softcap", "30", "0");
  c.logits.scale = LOGITS_RSQRT_D;
  r = usual(&c);
  r.logits_scale = 1 / sqrt(128);
  expect_match(&r, &c);
  r.logits_scale = 0.5;
  expect(&r, &c, "match.logits-scale", "logits.scale", "0.5", "0.08838834764831843");
  c = shuffled();
  c.mask.window = 512;
  c.logits.softcap = (float)0.1;
  c.output.lse = true;
  c.mask.sinks = true;
  r = usual(&c);
  r.softcap = 0.1;
  expect_match(&r, &c);
}

Test(match, split_counts_are_those_of_the_spec) {
  contract c = shuffled();
  match_request r = usual(&c);
  const spec_ints splits = {2, {4, 8}};
  const match_candidate candidate = {.name = "one", .contract = &c, .splits = &splits};
  match_answer a;
  int chosen;
  const int asked[] = {0, 4, 8, 3, -1};
  for (int i = 0; i < 5; i++) {
    r.splits = asked[i];
    cr_assert_eq(match_best(&r, &candidate, 1, "gfx950", &a, &chosen), i < 3 ? HD_OK : HD_DECLINED);
    if (i >= 3) cr_assert_str_eq(a.declines.items[0].code, "match.split");
    match_answers_finish(&a, 1);
  }
}

Test(match, a_cache_beyond_2_gib_and_2_to_the_31_elements_is_served) {
  contract c = shuffled();
  int64_t dims[DIM_COUNT];
  memcpy(dims, usual_dims, sizeof dims);
  dims[DIM_PAGES] = (int64_t)1 << 28;
  match_request r = request_for(&c, OPERATION_DECODE, "gfx950", dims);
  match_answer a;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_PAGES], (int64_t)1 << 28);
  match_answers_finish(&a, 1);
  dims[DIM_PAGES] = (int64_t)1 << 31;
  r = request_for(&c, OPERATION_DECODE, "gfx950", dims);
  expect(&r, &c, "bind.size", "pages", "2147483648", "0 to 2147483647");
}

Test(match, what_another_kernel_serves_is_left_to_it_unless_this_one_is_known_to_be_better) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.incumbent = "asm_pa";
  expect(&r, &c, "match.incumbent", "incumbent", "asm_pa", "a kernel this contract is known to beat");
  const char *const beaten[] = {"other", "asm_pa"};
  const match_candidate candidate = {.name = "one", .contract = &c, .better_than = beaten, .better_count = 2};
  match_answer a;
  int chosen;
  cr_assert_eq(match_best(&r, &candidate, 1, "gfx950", &a, &chosen), HD_OK);
  match_answers_finish(&a, 1);
}

Test(match, each_contract_answers_and_the_fewest_rows_win) {
  contract c[4] = {shuffled(), shuffled(), shuffled(), shuffled()};
  c[0].kv.page = 32; /* declines */
  c[0].kv.k = example_layout("b h d/16 s d%16", 32, 128);
  c[0].kv.v = example_layout("b h s/16 d s%16", 32, 128);
  c[0].scale.k = c[0].scale.v = example_layout("b h s", 32, 128);
  c[1].query.rows = 4;
  match_request r = usual(&c[2]);
  match_candidate candidates[4];
  match_answer a[4];
  for (int i = 0; i < 4; i++)
    candidates[i] = (match_candidate){.name = "any", .contract = &c[i]};
  int chosen;
  cr_assert_eq(match_best(&r, candidates, 4, "gfx950", a, &chosen), HD_OK);
  cr_assert_eq(chosen, 2, "fewer rows than 1, before 3");
  cr_assert_eq(a[0].status, HD_DECLINED);
  cr_assert_eq(a[1].status, HD_OK);
  match_answers_finish(a, 4);
  cr_assert_eq(match_best(&r, candidates, 2, "gfx950", a, &chosen), HD_OK);
  cr_assert_eq(chosen, 1);
  match_answers_finish(a, 2);
  chosen = 7;
  cr_assert_eq(match_best(&r, candidates, 0, "gfx950", a, &chosen), HD_DECLINED);
  cr_assert_eq(chosen, 7);
}

/* What follows holds the less common ways of describing the same memory against each other. */

static contract plain(const char *k, int page) {
  contract c = example_contract(page, 64, 64);
  c.query.heads_per_kv = 8;
  c.kv.k = example_layout(k, page, 64);
  return c;
}

Test(match, a_flat_cache_is_dense) {
  contract c = plain("b h s d", 16);
  match_request r = usual(&c);
  tensor *k = &r.tensors.by_name[TENSOR_K_CACHE];
  k->shape[0] = tensor_elements(k);
  k->rank = 1;
  expect_match(&r, &c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2;
  expect(&r, &c, "bind.strides", "k_cache", "[2]", "[any, any, 64, 1]");
}

Test(match, with_one_head_the_slots_say_how_far_heads_would_be_apart) {
  contract c = plain("b s h d", 16);
  int64_t dims[DIM_COUNT];
  memcpy(dims, usual_dims, sizeof dims);
  dims[DIM_KV_HEADS] = 1;
  match_request r = request_for(&c, OPERATION_DECODE, "gfx950", dims);
  tensor *k = strided(&r, TENSOR_K_CACHE); /* [50, 16, 1, 64] */
  k->strides[0] = 16 * 80;
  k->strides[1] = 80;
  match_answer a;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_K_STRIDE_H], 80);
  match_answers_finish(&a, 1);
}

static void give_axes(match_request *r, const layout *axes, int64_t a, int64_t b, int64_t c, int64_t d,
                      int64_t e) {
  tensor *k = &r->tensors.by_name[TENSOR_K_CACHE];
  const int64_t shape[] = {a, b, c, d, e};
  k->rank = axes->count;
  k->axes = axes;
  memcpy(k->shape, shape, (size_t)k->rank * sizeof shape[0]);
}

Test(match, axes_are_compared_by_what_they_mean) {
  contract c = plain("b h s d", 12);
  match_request r = usual(&c);
  layout digits = example_layout("b h s/6 s%6 d", 12, 64), four = example_layout("b h s/4 s%4 d", 12, 64);
  give_axes(&r, &digits, PAGES, HEADS, 2, 6, 64);
  r.longest = 12;
  expect_match(&r, &c);
  c.kv.k = four; /* digits that do not nest with those of the view */
  expect_match(&r, &c);
  strided(&r, TENSOR_K_CACHE)->strides[2] = 7 * 64;
  expect(&r, &c, "bind.strides", "k_cache", "[1536, 768, 448, 64, 1]",
         "[any, any, 256, 64, 1] for [b, h, s/4, s%4, d]");
}

Test(match, axes_have_to_be_the_layouts_and_one_index_more_does_no_harm) {
  contract c = shuffled();
  match_request r = usual(&c);
  layout flat = example_layout("b h s d", 16, 1), other = example_layout("b s", 16, 1);
  tensor *scale = &r.tensors.by_name[TENSOR_K_SCALE];
  scale->axes = &flat; /* [pages, heads, 16, 1] */
  scale->rank = 4;
  scale->shape[3] = 1;
  expect_match(&r, &c);
  scale->axes = &other; /* no heads */
  scale->rank = 2;
  scale->shape[1] = 16;
  expect(&r, &c, "bind.shape", "k_scale", "[50, 16]", "[pages, kv_heads, 16] = [50, 2, 16]");
  c.scale.granularity = SCALE_TOKEN;
  c.scale.k = c.scale.v = example_layout("b s", 16, 128);
  r = usual(&c);
  layout heads = example_layout("b h s", 16, 1);
  scale = &r.tensors.by_name[TENSOR_K_SCALE];
  scale->axes = &heads; /* heads that the contract knows nothing of */
  scale->rank = 3;
  scale->shape[1] = HEADS;
  scale->shape[2] = 16;
  expect(&r, &c, "bind.shape", "k_scale", "[50, 2, 16]", "[pages, 16] = [50, 16]");
}

Test(match, rows_of_a_page_table_do_not_overlap_and_stay_within_31_bits) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_PAGE_TABLE)->strides[0] = TABLE - 1;
  expect(&r, &c, "bind.strides", "page_table", "strided [8, 1]",
         "entries that lie together in rows of one stride");
  r.tensors.by_name[TENSOR_PAGE_TABLE].strides[0] = (int64_t)INT32_MAX + 1;
  expect(&r, &c, "bind.strides", "page_table", "strided [2147483648, 1]",
         "entries that lie together in rows of one stride");
}

Test(match, a_remainder_of_query_heads_is_not_rounded_away) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_Q].shape[1] = r.tensors.by_name[TENSOR_OUT].shape[1] = 8 * HEADS + 1;
  expect(&r, &c, "bind.heads-per-kv", "q", "17 over 2 kv heads", "8");
}

Test(match, a_workspace_is_nobodys_business) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.present[TENSOR_WORKSPACE] = true;
  expect_match(&r, &c);
}

Test(match, lengths_end_a_tile_below_32_bits) {
  contract c = shuffled();
  match_request r = usual(&c);
  const int64_t most = ((int64_t)1 << 31) - 4096;
  r.tensors.by_name[TENSOR_PAGE_TABLE].shape[1] = most / 16;
  r.longest = most;
  expect_match(&r, &c);
  r.longest++;
  expect(&r, &c, "match.length", "longest", "2147479553", "0 to 2147479552");
}

Test(match, one_row_is_causal_either_way_and_the_writer_has_no_features) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.causal = !c.mask.causal;
  expect_match(&r, &c);
  c.output.lse = c.mask.sinks = true;
  c.mask.window = 64;
  r = request_for(&c, OPERATION_WRITE, "gfx950", usual_dims);
  r.lse = r.sinks = false;
  r.window = 0;
  r.splits = -3;
  r.prefix = true;
  expect_match(&r, &c);
}

Test(match, ragged_lists_are_matched_by_what_they_hold) {
  contract c = shuffled();
  c.select.form = SELECT_INDPTR;
  match_request r = usual(&c);
  r.longest = 16 * TABLE;
  expect_match(&r, &c);
  r.longest++;
  expect(&r, &c, "match.length", "longest", "145", "0 to 144");
  r = usual(&c);
  r.tensors.by_name[TENSOR_KV_INDPTR].shape[0] = SEQS;
  expect(&r, &c, "bind.shape", "kv_indptr", "[3]", "[seqs + 1] = [4]");
}

/* One scale for all of K and one for all of V: in memory, or numbers of the host. */
Test(match, scales_are_held_as_the_contract_takes_them) {
  contract memory = shuffled();
  memory.scale.granularity = SCALE_TENSOR;
  memory.scale.k.count = memory.scale.v.count = 0;
  contract number = memory, none = memory;
  number.scale.argument = true;
  none.scale.granularity = SCALE_NONE;
  for (int o = 0; o < 2; o++) {
    operation op = o ? OPERATION_DECODE : OPERATION_WRITE;
    match_request numbers = request_for(&number, op, "gfx950", usual_dims);
    match_request in_memory = request_for(&memory, op, "gfx950", usual_dims);
    expect_match(&numbers, &number);
    expect_match(&in_memory, &memory);
    const match_candidate candidates[] = {{.name = "memory", .contract = &memory},
                                          {.name = "number", .contract = &number}};
    match_answer answers[2];
    int chosen;
    cr_expect_eq(match_best(&numbers, candidates, 2, "gfx950", answers, &chosen), HD_OK);
    cr_expect_eq(chosen, 1);
    match_answers_finish(answers, 2);
    cr_expect_eq(match_best(&in_memory, candidates, 2, "gfx950", answers, &chosen), HD_OK);
    cr_expect_eq(chosen, 0);
    match_answers_finish(answers, 2);
    numbers.tensors.v_scale.given = false; /* values without their scale are wrong, not nearly right */
    expect(&numbers, &number, "bind.missing", "v_scale", "none", "a number");
    expect(&numbers, &none, "bind.unneeded", "k_scale", "a number", "none");
  }
}

/* One random fault, or what only looks like one. */
static void disturb(match_request *r, uint64_t *state) {
  int name = random_below(state, TENSOR_COUNT);
  tensor *t = &r->tensors.by_name[name];
  int at = t->rank > 0 ? random_below(state, t->rank) : 0;
  const int64_t numbers[] = {-1,        0,        1, 2, 3, 7, 16, 64, 4096, INT32_MAX, (int64_t)1 << 40,
                             INT64_MAX, INT64_MIN};
  int64_t number = numbers[random_below(state, sizeof numbers / sizeof numbers[0])];
  scale_number *scale = random_below(state, 2) ? &r->tensors.k_scale : &r->tensors.v_scale;
  switch (random_below(state, 9)) {
  case 0:
    t->dtype = (dtype)random_below(state, DTYPE_COUNT);
    break;
  case 1:
    t->shape[at] = number;
    break;
  case 2:
    strided(r, (tensor_name)name)->strides[at] = number;
    break;
  case 3:
    if (strided(r, (tensor_name)name)->strides[0] < (int64_t)1 << 40) t->strides[0] += 64;
    break;
  case 4:
    t->data += (uint64_t)random_below(state, 33);
    break;
  case 5:
    r->tensors.present[name] = !r->tensors.present[name];
    break;
  case 6:
    t->rank = random_below(state, 8);
    break;
  case 7:
    scale->given = !scale->given;
    break;
  default:
    strided(r, (tensor_name)name);
  }
}

static int code_count(const diags *d, const char *family) {
  int count = 0;
  for (size_t i = 0; i < d->count; i++)
    count += strncmp(d->items[i].code, family, strlen(family)) == 0;
  return count;
}

Test(match, asking_and_launching_agree_on_random_requests) {
  enum { REQUESTS = 20000 };
  uint64_t state = 20260;
  int served = 0, declined_by_tensors = 0;
  for (int i = 0; i < REQUESTS; i++) {
    contract c = random_contract(&state);
    operation o = random_below(&state, 2) ? OPERATION_DECODE : OPERATION_WRITE;
    const target *t = target_at((size_t)random_below(&state, (int)target_count()));
    int64_t dims[DIM_COUNT];
    memcpy(dims, usual_dims, sizeof dims);
    dims[DIM_KV_HEADS] = 1 + random_below(&state, 4);
    dims[DIM_PAGES] = random_below(&state, 5);
    dims[DIM_SEQS] = random_below(&state, 4);
    match_request r = request_for(&c, o, t->name, dims);
    for (int faults = random_below(&state, 3); faults > 0; faults--)
      disturb(&r, &state);
    r.longest = 0;
    match_answer a;
    diags planned, bound;
    diags_init(&planned);
    diags_init(&bound);
    const variant v = {0};
    contract resolved = contract_resolve(&c, t->fp8);
    hd_status plan = emit_check(&c, o, &v, t, &planned);
    hd_status bind = bind_dims(&resolved, o, &r.tensors, dims, &bound);
    hd_status status = ask(&r, &c, t->name, &a);
    cr_assert_eq(status == HD_OK, plan == HD_OK && bind == HD_OK, "request %d", i);
    cr_assert_eq(code_count(&a.declines, "bind."), (int)bound.count);
    cr_assert_eq(code_count(&a.declines, "decline."), (int)planned.count);
    if (status == HD_OK) cr_assert_arr_eq(a.dims, dims, sizeof dims);
    for (size_t d = 0; d < a.declines.count; d++)
      cr_assert(a.declines.items[d].found && a.declines.items[d].allowed && a.declines.items[d].field, "%s",
                a.declines.items[d].message);
    served += status == HD_OK;
    declined_by_tensors += bind != HD_OK;
    diags_finish(&planned);
    diags_finish(&bound);
    match_answers_finish(&a, 1);
  }
  cr_assert_gt(served, REQUESTS / 10, "%d", served);
  cr_assert_gt(declined_by_tensors, REQUESTS / 10, "%d", declined_by_tensors);
}

/* Reading descriptions. */

static const char described[] =
    "{\"operation\": \"decode\", \"longest\": 100, \"lse\": true, \"softcap\": 1.5,\n"
    " \"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [3, 16, 128]},\n"
    " \"k_cache\": {\"axes\": [\"b\", \"s\", \"h\", \"d\"], \"dtype\": \"bf16\",\n"
    "  \"shape\": [50, 16, 2, 128], \"strides\": [4096, 128, 2048, 1], \"align\": 64}},\n"
    " \"incumbent\": \"asm\", \"splits\": 4, \"v_scale\": 0.25}";

static match_description description;

static hd_status read_text(const char *json, diags *errors) {
  diags_init(errors);
  return match_read(json, strlen(json), &description, errors);
}

Test(match_read, a_description_becomes_a_request) {
  diags errors;
  cr_assert_eq(read_text(described, &errors), HD_OK);
  const match_request *r = &description.request;
  const tensor *k = &r->tensors.by_name[TENSOR_K_CACHE];
  cr_assert_eq(r->operation, OPERATION_DECODE);
  cr_assert_eq(r->longest, 100);
  cr_assert(r->lse && !r->sinks && r->causal && !r->prefix);
  cr_assert_eq(r->softcap, 1.5);
  cr_assert_eq(r->splits, 4);
  cr_assert_str_eq(r->incumbent, "asm");
  cr_assert(r->tensors.v_scale.given && !r->tensors.k_scale.given);
  cr_assert_eq(r->tensors.v_scale.value, 0.25f);
  cr_assert(r->tensors.present[TENSOR_Q] && !r->tensors.present[TENSOR_OUT]);
  cr_assert_eq(k->rank, 4);
  cr_assert_eq(k->strides[1], 128);
  cr_assert_eq(k->data, 64);
  cr_assert_eq(k->axes->factors[1].axis, AXIS_S);
  cr_assert_eq(k->axes->size[AXIS_S], 16);
  cr_assert_not(r->tensors.by_name[TENSOR_Q].strided);
}

Test(match_read, faults_have_a_place_and_say_what_was_expected) {
  const struct {
    const char *json, *expected;
    int line, column;
  } faults[] = {
      {"", "expected {", 1, 1},
      {"{\"opration\": 1}",
       "expected a known key: operation, tensors, rows, longest, query_heads, kv_heads, lse, sinks, causal, "
       "prefix, "
       "window, block, softcap, logits_scale, k_scale, v_scale, splits, incumbent; did you mean operation?",
       1, 2},
      {"{\"tensors\": {\"q\": {\"type\": \"bf16\"}}}",
       "expected a known key: dtype, shape, strides, align, axes; did you mean dtype?", 1, 20},
      {"{\"rows\": 1,\n\"rows\": 1}", "expected each key once", 2, 1},
      {"{\"rows\": -1}", "expected a whole number in range", 1, 10},
      {"{\"k_scale\": null}", "expected a number", 1, 13},
      {"{\"operation\": \"read\"}", "expected write or decode", 1, 21},
      {"{\"tensors\": {\"z\": {}}}",
       "expected a tensor that heddle knows: q, k_cache, v_cache, k_scale, v_scale, page_table, lengths, "
       "kv_indptr, "
       "kv_indices, last_page_len, block_list, token_list, row_sequences, sinks, k, v, slot_mapping, out, "
       "lse; a cache is "
       "k_cache and v_cache, two views if it is one buffer",
       1, 14},
      {"{\"tensors\": {\"page_tabel\": {}}}",
       "expected a tensor that heddle knows: q, k_cache, v_cache, k_scale, v_scale, page_table, lengths, "
       "kv_indptr, "
       "kv_indices, last_page_len, block_list, token_list, row_sequences, sinks, k, v, slot_mapping, out, "
       "lse; a cache is "
       "k_cache and v_cache, two views if it is one buffer; did you mean page_table?",
       1, 14},
      {"{\"tensors\": {\"q\": {}}}", "expected a tensor with dtype and shape", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf17\"}}}",
       "expected a number format: bf16, fp16, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8, fp32, e8m0, int32, "
       "int64, uint8; "
       "did you mean bf16?",
       1, 28},
      {"{\"tensors\": {\"q\": {\"dtype\": \"fp8\"}}}",
       "expected a number format: bf16, fp16, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8, fp32, e8m0, int32, "
       "int64, uint8; "
       "did you mean fp8_e4m3fn, fp8_e4m3fnuz or fp8_e5m2?",
       1, 28},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1, 2], \"strides\": [1]}}}",
       "expected as many strides as dimensions", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1, 2], \"axes\": [\"b\", \"x\"]}}}",
       "expected axes that name each dimension's digit of b, h, s, d", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1], \"align\": 24}}}",
       "expected a power of two", 1, 62},
      {"{} x", "expected nothing behind the end", 1, 4},
  };
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    diags errors;
    cr_assert_eq(read_text(faults[i].json, &errors), HD_DECLINED, "%s", faults[i].json);
    cr_assert_str_eq(errors.items[0].code, "request.syntax");
    cr_assert_str_eq(errors.items[0].message, faults[i].expected);
    cr_assert_eq(errors.items[0].line, faults[i].line, "%s", faults[i].json);
    cr_expect_eq(errors.items[0].column, faults[i].column, "%s: %d", faults[i].json, errors.items[0].column);
    diags_finish(&errors);
  }
}

Test(match_read, no_damaged_description_does_more_than_decline) {
  uint64_t state = 5;
  char damaged[sizeof described];
  int good = 0;
  for (int i = 0; i < 20000; i++) {
    memcpy(damaged, described, sizeof damaged);
    for (int n = 1 + random_below(&state, 3); n > 0; n--)
      damaged[random_below(&state, sizeof damaged - 1)] = "{}[]\",:0129-e. bhsd/%"[random_below(&state, 21)];
    diags errors;
    diags_init(&errors);
    hd_status status = match_read(damaged, strlen(damaged), &description, &errors);
    cr_assert_eq(status == HD_OK, errors.count == 0);
    good += status == HD_OK;
    diags_finish(&errors);
    if (status == HD_OK) {
      contract c = shuffled();
      match_answer a;
      ask(&description.request, &c, "gfx950", &a);
      match_answers_finish(&a, 1);
    }
  }
  cr_assert(good > 0 && good < 20000);
  for (size_t length = 0; length < strlen(described); length++) {
    diags errors;
    diags_init(&errors);
    cr_assert_eq(match_read(described, length, &description, &errors), HD_DECLINED);
    diags_finish(&errors);
  }
}
