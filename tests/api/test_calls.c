/* Contracts, contexts, matching, views, and misuse, through heddle.h. */
#include "fixture.h"

Test(api_calls, a_spec_that_is_not_valid) {
  hd_contract *c = NULL;
  hd_diagnostic first;
  const char yaml[] = "heddle: 1\nname: x\nkernels: [decode]\nhead_dim: many\n";
  cr_assert_eq(hd_diagnostics_create(&why), HD_OK);
  cr_assert_eq(hd_contract_parse(yaml, sizeof yaml - 1, &c, why), HD_DECLINED);
  cr_assert_null(c);
  cr_assert_gt(hd_diagnostics_count(why), 1u, "all errors at once");
  cr_assert_eq(hd_diagnostics_get(why, 0, &first), HD_OK);
  cr_assert_gt(first.line, 0);
  cr_assert(strncmp(first.code, "spec.", 5) == 0);
  cr_assert(strstr(hd_diagnostics_text(why), first.message) != NULL);
  cr_assert_eq(hd_diagnostics_get(why, 1000, &first), HD_INVALID);
  SAYS(HD_IO, "file.read", hd_contract_read("/nowhere/spec.yaml", &c, why));
  /* A call empties what the one before left. */
  OK(hd_contract_parse(spec_nhd, strlen(spec_nhd), &c, why));
  cr_assert_eq(hd_diagnostics_count(why), 0u);
  hd_contract_destroy(c);
}

Test(api_calls, a_contract_says_what_it_is) {
  hd_contract *c = parse(spec_nhd), *same = NULL;
  cr_assert_str_eq(hd_contract_name(c), "nhd");
  cr_assert_eq(strlen(hd_contract_key(c)), 64u);
  cr_assert_eq(hd_contract_has(c, HD_WRITE), 1);
  cr_assert_eq(hd_contract_has(c, (hd_operation)7), 0);
  OK(hd_contract_parse(hd_contract_text(c), strlen(hd_contract_text(c)), &same, why));
  cr_assert_str_eq(hd_contract_key(same), hd_contract_key(c),
                   "the canonical text is a spec of the same contract");
  hd_contract_destroy(same);
  hd_contract_destroy(c);
}

Test(api_calls, names_and_formats) {
  hd_tensor_name name;
  for (int i = 0; i <= HD_TENSOR_LSE; i++) {
    cr_assert_eq(hd_tensor_find(hd_tensor_text((hd_tensor_name)i), &name), HD_OK);
    cr_assert_eq((int)name, i);
  }
  cr_assert_str_eq(hd_tensor_text(HD_TENSOR_SLOT_MAPPING), "slot_mapping");
  cr_assert_null(hd_tensor_text((hd_tensor_name)-1));
  cr_assert_eq(hd_tensor_find("workspace", &name), HD_INVALID, "no tensor of the interface");
  cr_assert_str_eq(hd_dtype_text(HD_DTYPE_FP8_E4M3FNUZ), "fp8_e4m3fnuz");
  cr_assert_eq(hd_dtype_bytes(HD_DTYPE_INT64), 8);
  cr_assert_eq(hd_dtype_bytes((hd_dtype)55), 0);
}

Test(api_calls, contexts_that_cannot_be) {
  MAKE(hd_context_options, o);
  hd_context *c = NULL;
  struct {
    hd_context_options known;
    int unknown;
  } newer;
  cr_assert_eq(hd_diagnostics_create(&why), HD_OK);
  SAYS(HD_INVALID, "device.name", hd_context_create(&o, &c, why));
  SAYS(HD_INVALID, "context.options", hd_context_create(NULL, &c, why));
  o.device = "toaster:0";
  SAYS(HD_INVALID, "device.name", hd_context_create(&o, &c, why));
  o.device = "emu:gfx000";
  SAYS(HD_UNAVAILABLE, "device.emu", hd_context_create(&o, &c, why));
  o.device = "emu:gfx950";
  o.compiler = "tcc";
  SAYS(HD_INVALID, "context.options", hd_context_create(&o, &c, why));
  o.compiler = NULL;
  /* A newer program's struct: fine as long as it sets nothing that this library lacks. */
  memset(&newer, 0, sizeof newer);
  newer.known = o;
  newer.known.size = sizeof newer;
  OK(hd_context_create(&newer.known, &c, why));
  hd_context_destroy(c);
  newer.unknown = 1;
  SAYS(HD_INVALID, "context.options", hd_context_create(&newer.known, &c, why));
  /* An older one's. */
  o.size = offsetof(hd_context_options, cache_directory);
  OK(hd_context_create(&o, &c, why));
  MAKE(hd_context_info, info);
  OK(hd_context_get_info(c, &info));
  cr_assert_str_eq(info.target, "gfx950");
  cr_assert_eq(info.emulated, 1);
  cr_assert_gt(info.compute_units, 0);
  hd_context_destroy(c);
}

Test(api_calls, what_is_not_served_is_declined_by_name) {
  hd_context *c = open_context("emu:gfx950");
  hd_contract *odd = parse("heddle: 1\nname: odd\nkernels: [decode]\nquery: {dtype: bf16, heads_per_kv: 4}\n"
                           "head_dim: 100\nkv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}\n"
                           "logits: {scale: argument}\noutput: {dtype: bf16}\n");
  hd_kernel *k = NULL;
  hd_diagnostic first;
  hd_job job = job_of(odd, HD_DECODE);
  SAYS(HD_DECLINED, "decline.head-dim", hd_prepare(c, &job, &k, why));
  OK(hd_diagnostics_get(why, 0, &first));
  cr_assert_str_eq(first.found, "100");
  SAYS(HD_DECLINED, "decline.head-dim", hd_prepare_lazily(c, &job, &k, why));
  job.operation = HD_WRITE;
  SAYS(HD_DECLINED, "decline.kernels", hd_prepare(c, &job, &k, why));
  job.operation = (hd_operation)9;
  SAYS(HD_INVALID, "bind.operation", hd_prepare(c, &job, &k, why));
  job.operation = HD_DECODE;
  job.variant = "fast";
  SAYS(HD_INVALID, "context.options", hd_prepare(c, &job, &k, why));
  cr_assert_null(k);
  hd_contract_destroy(odd);
  hd_context_destroy(c);
}

Test(api_calls, a_kernel_says_which_tensors_it_takes) {
  hd_context *c = open_context("emu:gfx950");
  hd_contract *contract = parse(spec_nhd);
  const hd_job job = job_of(contract, HD_WRITE);
  hd_kernel *k = NULL;
  hd_role role;
  hd_dtype dtype;
  char shape[64];
  OK(hd_prepare_lazily(c, &job, &k, why)); /* nothing has to be compiled for that */
  OK(hd_kernel_tensor(k, HD_TENSOR_V_CACHE, &role, &dtype, shape, sizeof shape));
  cr_assert_eq(role, HD_ROLE_UPDATED);
  cr_assert_eq(dtype, HD_DTYPE_BF16);
  cr_assert_str_eq(shape, "[pages, 16, kv_heads, 64]");
  OK(hd_kernel_tensor(k, HD_TENSOR_SLOT_MAPPING, &role, &dtype, shape, 4));
  cr_assert_eq(dtype, HD_DTYPE_INT64);
  cr_assert_str_eq(shape, "[to");
  OK(hd_kernel_tensor(k, HD_TENSOR_Q, &role, NULL, NULL, 0));
  cr_assert_eq(role, HD_ROLE_NONE);
  hd_kernel_release(k);
  hd_contract_destroy(contract);
  hd_context_destroy(c);
}

/* An engine's MLA cache is uint8 [pages, slots, bytes of a token]. */
Test(api_calls, a_cache_of_records_matches_as_bytes) {
  hd_contract *latent = parse("heddle: 1\nkernels: [decode]\nquery: {heads_per_kv: 8}\nhead_dim: 96\n"
                              "kv:\n  dtype: fp8_e4m3\n  page: 16\n  k: [b, s+32, d+64]\n  v: k\n"
                              "  tail: {channels: 32, dtype: bf16, at: 64, layout: [b, s, d+32]}\n"
                              "scale:\n  granularity: {group: 64}\n  dtype: fp16\n"
                              "  k: {inside: k, at: 2048, layout: [b, s, d]}\n");
  const int64_t q[] = {2, 8, 96}, cache[] = {4, 16 * 130}, table[] = {2, 2}, lengths[] = {2};
  const uint64_t at = 4096;
  hd_tensor read[] = {
      {.name = HD_TENSOR_Q, .dtype = HD_DTYPE_BF16, .address = at, .rank = 3, .shape = q},
      {.name = HD_TENSOR_K_CACHE, .dtype = HD_DTYPE_UINT8, .address = at, .rank = 2, .shape = cache},
      {.name = HD_TENSOR_PAGE_TABLE, .dtype = HD_DTYPE_INT32, .address = at, .rank = 2, .shape = table},
      {.name = HD_TENSOR_LENGTHS, .dtype = HD_DTYPE_INT32, .address = at, .rank = 1, .shape = lengths},
  };
  const hd_candidate candidate = {latent, NULL, 0};
  size_t chosen = 99;
  MAKE(hd_match_request, r);
  r.operation = HD_DECODE;
  r.tensors = read;
  r.tensor_count = sizeof read / sizeof *read;
  cr_expect_str_eq(hd_dtype_text(HD_DTYPE_UINT8), "uint8");
  cr_assert_eq(hd_match(&r, &candidate, 1, "gfx950", &chosen, NULL), HD_OK);
  cr_expect_eq(chosen, 0u);
  read[0].dtype = HD_DTYPE_UINT8;
  cr_expect_eq(hd_match(&r, &candidate, 1, "gfx950", &chosen, NULL), HD_DECLINED, "q is no record");
  hd_contract_destroy(latent);
}

Test(api_calls, matching_chooses_or_says_why_not) {
  hd_contract *nhd = parse(spec_nhd);
  hd_contract *fp16 =
      parse("heddle: 1\nname: fp16\nkernels: [decode]\nquery: {dtype: fp16, heads_per_kv: 4}\n"
            "head_dim: 64\nkv: {dtype: fp16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n"
            "logits: {scale: rsqrt_d}\noutput: {dtype: fp32}\n");
  engine e = {.context = open_context("emu:gfx950")};
  hd_diagnostics *answers[2];
  hd_diagnostic first;
  size_t chosen = 99;
  const char *const better[] = {"old"};
  engine_fill(&e);
  MAKE(hd_match_request, r);
  r.operation = HD_DECODE;
  r.causal = 1;
  r.tensors = e.read;
  r.tensor_count = READ_COUNT;
  r.longest = LONGEST;
  hd_candidate candidates[] = {{fp16, NULL, 0}, {nhd, NULL, 0}};
  for (int i = 0; i < 2; i++)
    cr_assert_eq(hd_diagnostics_create(&answers[i]), HD_OK);
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, answers), HD_OK);
  cr_assert_eq(chosen, 1u);
  cr_assert_eq(hd_diagnostics_count(answers[1]), 0u);
  cr_assert_eq(hd_diagnostics_get(answers[0], 0, &first), HD_OK);
  cr_assert_str_eq(first.code, "bind.dtype");
  r.incumbent = "old";
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_DECLINED);
  candidates[1].better_than = better;
  candidates[1].better_count = 1;
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_OK);
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx000", &chosen, answers), HD_DECLINED);
  cr_assert_eq(hd_match(&r, candidates, 0, "gfx950", &chosen, NULL), HD_DECLINED);
  r.size = 8;
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_INVALID);
  for (int i = 0; i < 2; i++)
    hd_diagnostics_destroy(answers[i]);
  hd_contract_destroy(nhd);
  hd_contract_destroy(fp16);
  hd_context_destroy(e.context);
}

/* The same cache seen as pages of 8, and with a page table for those, gives the same attention. */
Test(api_calls, a_view_is_the_same_memory_under_another_contract) {
  engine e;
  hd_view *v = NULL;
  const hd_tensor *viewed = NULL;
  int64_t parts = 0, heads = 0;
  float before[OUT_FLOATS], after[OUT_FLOATS];
  engine_open(&e, "emu:gfx950");
  hd_arguments a = engine_arguments(&e, 1);
  OK(hd_launch(e.decode, &a, NULL, why));
  engine_out(&e, before);
  SAYS(HD_DECLINED, "view.page",
       hd_view_page_split(e.context, e.contract, &e.read[1], 2, 7, HD_SAME_BYTES, &v, why));
  OK(hd_view_page_split(e.context, e.contract, &e.read[1], 2, 8, HD_SAME_BYTES, &v, why));
  cr_assert_eq(hd_view_meaning(v), HD_SAME_BYTES);
  hd_view_pages(v, &parts, &heads);
  cr_assert_eq(parts, 2);
  cr_assert_eq(heads, 1);
  cr_assert_eq(hd_view_tensors(v, &viewed), 2u);
  cr_assert_eq(viewed[0].address, e.read[1].address);
  hd_kernel *k = prepare(e.context, hd_view_contract(v), HD_DECODE);
  int32_t table[2 * PAGES];
  const int64_t wide[] = {SEQS, 2 * TABLE};
  for (int i = 0; i < 2 * PAGES; i++)
    table[i] = (i / 2 * 7 + 3) % PAGES * 2 + i % 2;
  hd_tensor t[READ_COUNT];
  memcpy(t, e.read, sizeof t);
  memcpy(&t[1], viewed, 2 * sizeof *viewed);
  t[3].address = on_device(e.context, table, sizeof table);
  t[3].shape = wide;
  a.tensors = t;
  engine_forget_out(&e);
  OK(hd_launch(k, &a, NULL, why));
  engine_out(&e, after);
  cr_assert(difference(before, after) < 1e-4, "%g", difference(before, after));
  hd_view_destroy(v);
  hd_kernel_release(k);
  engine_close(&e);
}

/* Strides and axes: the same bytes as [pages, heads, slots, channels]. */
Test(api_calls, a_permuted_tensor_is_bound_by_its_axes) {
  engine e;
  hd_axes *axes = NULL;
  float before[OUT_FLOATS], after[OUT_FLOATS];
  const int64_t shape[] = {PAGES, KV_HEADS, PAGE, DIM};
  const int64_t strides[] = {PAGE * KV_HEADS * DIM, DIM, KV_HEADS * DIM, 1};
  engine_open(&e, "emu:gfx950");
  hd_arguments a = engine_arguments(&e, 1);
  OK(hd_launch(e.decode, &a, NULL, why));
  engine_out(&e, before);
  SAYS(HD_INVALID, "launch.axes", hd_axes_parse("[b, x]", PAGE, DIM, &axes, why));
  SAYS(HD_INVALID, "launch.axes", hd_axes_parse("[b, s, s, d]", PAGE, DIM, &axes, why));
  OK(hd_axes_parse("[b, h, s, d]", PAGE, DIM, &axes, why));
  hd_tensor t[READ_COUNT];
  memcpy(t, e.read, sizeof t);
  for (int i = 1; i <= 2; i++) {
    t[i].shape = shape;
    t[i].strides = strides;
    t[i].axes = axes;
  }
  a.tensors = t;
  engine_forget_out(&e);
  OK(hd_launch(e.decode, &a, NULL, why));
  engine_out(&e, after);
  cr_assert_eq(memcmp(before, after, sizeof after), 0);
  hd_axes_destroy(axes);
  engine_close(&e);
}

/* NULL where an object belongs is misuse, not a crash; destroying NULL is fine. */
Test(api_calls, null_is_answered) {
  hd_contract *c = NULL;
  hd_kernel *k = NULL;
  cr_assert_eq(hd_diagnostics_create(NULL), HD_INVALID);
  cr_assert_eq(hd_contract_parse(NULL, 0, &c, NULL), HD_INVALID);
  cr_assert_eq(hd_contract_parse("", 0, NULL, NULL), HD_INVALID);
  cr_assert_eq(hd_prepare(NULL, NULL, &k, NULL), HD_INVALID);
  cr_assert_eq(hd_launch(NULL, NULL, NULL, NULL), HD_INVALID);
  cr_assert_eq(hd_binding_launch(NULL, NULL, NULL), HD_INVALID);
  cr_assert_eq(hd_memory_allocate(NULL, 1, NULL, NULL), HD_INVALID);
  cr_assert_eq(hd_kernel_get_info(NULL, NULL), HD_INVALID);
  cr_assert_eq(hd_diagnostics_count(NULL), 0u);
  hd_diagnostics_destroy(NULL);
  hd_contract_destroy(NULL);
  hd_context_destroy(NULL);
  hd_kernel_release(NULL);
  hd_binding_destroy(NULL);
  hd_future_destroy(NULL);
  hd_view_destroy(NULL);
  hd_axes_destroy(NULL);
}
