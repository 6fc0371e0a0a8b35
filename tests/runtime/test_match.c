/* Claims about dispatch: what is chosen, and what declines with which code. */
#include "match_fixture.h"

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
