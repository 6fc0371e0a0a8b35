/* What lies inside a page: scales, a tail in another format, V in K. */
#include "../../generator/emit.h"
#include "../spec_fixture.h"

static const char inline_spec[] = "heddle: 1\n"
                                  "query: {heads_per_kv: 8}\n"
                                  "head_dim: 128\n"
                                  "kv:\n"
                                  "  dtype: fp8_e4m3\n"
                                  "  page: 16\n"
                                  "  k: [b, s, h, d+4]\n"
                                  "  v: [b, s, h, d+4]\n"
                                  "scale:\n"
                                  "  granularity: token_head\n"
                                  "  k: {inside: k, at: 128, layout: [b, s, h, 33]}\n"
                                  "  v: {inside: v, at: 128, layout: [b, s, h, 33]}\n";

static const char latent_spec[] = "heddle: 1\n"
                                  "query: {heads_per_kv: 128}\n"
                                  "head_dim: {qk: 576, v: 512}\n"
                                  "kv:\n"
                                  "  dtype: fp8_e4m3\n"
                                  "  page: 64\n"
                                  "  k: [b, s, d+144]\n"
                                  "  v: k\n"
                                  "  tail: {channels: 64, dtype: bf16, at: 528, layout: [b, s, d+264]}\n"
                                  "scale:\n"
                                  "  granularity: group\n"
                                  "  group: 128\n"
                                  "  k: {inside: k, at: 512, layout: [b, s, d+160]}\n";

Test(page, scales_lie_inside_the_pages_of_their_cache) {
  spec s = parse_good(inline_spec);
  const contract *c = &s.contract;
  cr_expect(c->scale.inside);
  cr_expect_eq(c->scale.k_at, 128);
  cr_expect_eq(c->scale.v_at, 128);
  cr_expect_eq(c->kv.k.factors[3].pad, 4);
  cr_expect_eq(c->scale.k.count, 3, "heads step as the cache's do: 33 says nothing");
  cr_expect_not(c->kv.v_in_k);
  cr_expect_eq(c->kv.tail.channels, 0);
  spec_finish(&s);
}

Test(page, padding_that_only_makes_the_caches_own_strides_is_left_out) {
  static const char *const lists[] = {"[b, s, h]", "[b, s, h, 33]", "[b, s, h, 2]"};
  char *texts[3];
  for (int i = 0; i < 3; i++) {
    char place[96];
    snprintf(place, sizeof place, "at: 128, layout: %s}\n  v", lists[i]);
    char *yaml = spec_with(inline_spec, "at: 128, layout: [b, s, h, 33]}\n  v", place);
    texts[i] = canonical(yaml);
    cr_expect_str_eq(texts[i], texts[0]);
    free(yaml);
  }
  cr_expect_not_null(strstr(texts[0], "  k: {inside: k, at: 128, layout: [b, s, h]}\n"), "%s", texts[0]);
  for (int i = 0; i < 3; i++)
    free(texts[i]);
}

Test(page, canonical_text_means_the_same_contract) {
  const char *const specs[] = {inline_spec, latent_spec};
  for (int i = 0; i < 2; i++) {
    char *once = canonical(specs[i]), *twice = canonical(once);
    cr_expect_str_eq(once, twice);
    free(once);
    free(twice);
  }
}

Test(page, a_latent_cache_is_one_array_for_k_and_v) {
  spec s = parse_good(latent_spec);
  const contract *c = &s.contract;
  cr_expect(c->kv.v_in_k);
  cr_expect(layout_equal(&c->kv.k, &c->kv.v));
  cr_expect_eq(c->kv.k.size[AXIS_D], 512, "the channels before the tail");
  cr_expect_eq(c->kv.tail.channels, 64);
  cr_expect_eq(c->kv.tail.dtype, DTYPE_BF16);
  cr_expect_eq(c->kv.tail.at, 528);
  cr_expect_eq(c->kv.tail.layout.size[AXIS_D], 64);
  cr_expect_eq(c->scale.k.size[AXIS_D], 4, "groups of 128");
  cr_expect(layout_equal(&c->scale.k, &c->scale.v));
  cr_expect_eq(c->scale.v_at, 512);
  cr_expect_eq(contract_coded_k(c), 512);
  cr_expect_eq(contract_coded_v(c), 512);
  spec_finish(&s);
}

Test(page, values_may_reach_into_the_tail_and_scales_lie_behind_all_tokens) {
  spec s =
      parse_good("heddle: 1\nquery: {heads_per_kv: 64}\nhead_dim: 512\nkv:\n  dtype: fp8_e4m3\n  page: 64\n"
                 "  k: [b, s+512, d+128]\n  v: k\n"
                 "  tail: {channels: 64, dtype: bf16, at: 448, layout: [b, s, d+224]}\n"
                 "scale:\n  granularity: group\n  group: 64\n  dtype: e8m0\n"
                 "  k: {inside: k, at: 36864, layout: [b, s, d+1]}\n");
  const contract *c = &s.contract;
  cr_expect_eq(contract_coded_v(&s.contract), 448);
  cr_expect_eq(layout_elements(&c->kv.k, 1, 1), 64 * 584, "the bytes of a page");
  for (size_t t = 0; t < target_count(); t++) {
    const variant v = {0};
    diags problems;
    diags_init(&problems);
    cr_expect_eq(emit_check(c, OPERATION_WRITE, &v, target_at(t), &problems), HD_OK);
    cr_expect_eq(emit_check(c, OPERATION_DECODE, &v, target_at(t), &problems), HD_OK, "%s",
                 target_at(t)->name);
    diags_finish(&problems);
  }
  spec_finish(&s);
}

Test(page, a_cache_without_heads_has_one_kv_head_everywhere) {
  spec s = parse_good(
      "heddle: 1\nquery: {heads_per_kv: 16}\nhead_dim: 64\n"
      "kv: {dtype: int8, page: 16, k: [b, s, d], v: [b, d, s]}\nscale: {granularity: token_head}\n");
  text t;
  text_init(&t);
  layout_write(&s.contract.scale.v, &t);
  cr_expect_str_eq(text_string(&t), "[b, s]");
  text_finish(&t);
  spec_finish(&s);
}

Test(page, refuses_parts_of_a_page_that_do_not_fit_together) {
  static const refusal inside[] = {
      {"at: 128, layout: [b, s, h, 33]}\n  v", "at: 126, layout: [b, s, h, 33]}\n  v", "spec.conflict", 11, 6,
       "scale.k starts at byte 126, allowed: a multiple of its element's 4"},
      {"at: 128, layout: [b, s, h, 33]}\n  v", "at: 124, layout: [b, s, h, 33]}\n  v", "spec.conflict", 11, 6,
       "kv.k and scale.k share bytes of the page"},
      {"at: 128, layout: [b, s, h, 33]}\n  v", "at: 132, layout: [b, s, h, 33]}\n  v", "spec.conflict", 11, 6,
       "scale.k ends at byte 2116, allowed: within the page, whose padding included end is 2112"},
      {"v: [b, s, h, d+4]", "v: [b, s, h, d+3]", "spec.conflict", 12, 6,
       "scale.v steps by heads of bytes: 131"},
      {"at: 128, layout: [b, s, h, 33]}\n  v", "at: -1, layout: [b, s, h, 33]}\n  v", "spec.value", 11, 22,
       "scale.k.at is -1, allowed: bytes from the start of a page"},
      {"inside: k", "inside: v", "spec.value", 11, 15, "scale.k.inside is \"v\", allowed: k"},
      {"inside: k, at: 128, ", "inside: k, ", "spec.missing", 11, 6, "scale.k.at is missing"},
      {"inside: k, at: 128, ", "inside: k, at: 128, off: 1, ", "spec.unknown-key", 11, 27,
       "allowed in scale.k: inside, at, layout"},
      {"  k: {inside: k, at: 128, layout: [b, s, h, 33]}\n", "", "spec.conflict", 11, 6,
       "scale.k lies outside its cache's pages and scale.v inside"},
      {"  v: {inside: v, at: 128, layout: [b, s, h, 33]}\n", "", "spec.conflict", 11, 6,
       "scale.k lies inside its cache's pages and scale.v outside"},
      {"granularity: token_head", "granularity: head", "spec.conflict", 11, 15,
       "granularity head has no scale"},
      {"v: [b, s, h, d+4]", "v: [b, s, d+4]", "spec.layout", 8, 6, "axis h is missing"},
  };
  static const refusal latent[] = {
      {"  v: k\n", "  v: kk\n", "spec.type", 8, 6, "or k, where V is the first channels of K"},
      {"v: 512}", "v: 640}", "spec.conflict", 3, 11, "head_dim.v is 640, allowed: up to 576"},
      {"dtype: fp8_e4m3\n", "dtype: {k: fp8_e4m3, v: int8}\n", "spec.conflict", 5, 10,
       "kv.dtype.v is int8, allowed: fp8_e4m3, that of K"},
      {"group: 128", "group: {k: 128, v: 64}", "spec.conflict", 12, 10,
       "allowed: one number, since V lies in K"},
      {"group: 128", "group: 192", "spec.conflict", 12, 10, "channels before kv.tail of k, 512"},
      {"at: 528", "at: 520", "spec.conflict", 9, 3, "scale.k and kv.tail share bytes"},
      {"at: 528", "at: 529", "spec.conflict", 9, 3, "kv.tail starts at byte 529"},
      {"channels: 64", "channels: 576", "spec.conflict", 9, 20, "allowed: fewer than head_dim.qk, 576"},
      {"dtype: bf16", "dtype: fp32", "spec.value", 9, 31, "kv.tail.dtype is \"fp32\", allowed: bf16, fp16"},
      {", at: 528", "", "spec.missing", 9, 3, "kv.tail.at is missing"},
      {"layout: [b, s, d+264]", "layout: [b, s, d+200]", "spec.conflict", 9, 3, "share bytes"},
      {"[b, s, d+160]}\n", "[b, s, d+160]}\n  v: [b, s, d]\n", "spec.conflict", 14, 6,
       "scale.v has no meaning where V lies in K"},
      {"granularity: group\n  group: 128\n  k: {inside: k, at: 512, layout: [b, s, d+160]}\n",
       "granularity: head\n", "spec.conflict", 11, 16, "allowed: tensor, since kv.k has no h"},
  };
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
    expect_refusal(inline_spec, &inside[i]);
  for (size_t i = 0; i < sizeof latent / sizeof *latent; i++)
    expect_refusal(latent_spec, &latent[i]);
}

/* Overlap is found by arithmetic, not by going through the bytes of a page. */
Test(page, the_largest_page_is_judged_at_once) {
  char *large = spec_with(latent_spec, "page: 64", "page: 1048576");
  spec s = parse_good(large);
  spec_finish(&s);
  const refusal last = {"at: 528", "at: 526", "spec.conflict", 9, 3, "scale.k and kv.tail share bytes"};
  expect_refusal(large, &last);
  free(large);
}

Test(page, parts_that_interleave_without_meeting_are_fine) {
  spec s = parse_good("heddle: 1\nquery: {heads_per_kv: 8}\nhead_dim: 16\n"
                      "kv:\n  dtype: int8\n  page: 8\n  k: [b, h, s/2, d, s%2+2]\n  v: [b, h, s, d+4]\n"
                      "scale:\n  granularity: token_head\n  dtype: fp16\n"
                      "  k: {inside: k, at: 2, layout: [b, h, s, 4]}\n"
                      "  v: {inside: v, at: 18, layout: [b, h, s, 10]}\n");
  spec_finish(&s);
}
