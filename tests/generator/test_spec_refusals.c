/* Claims about specs: what is refused, where, and in which words. */
#include "comma_locale.h"
#include "../spec_fixture.h"
#include "../../generator/spec_yaml.h"
#include "../../generator/target.h"
#include <time.h>

/* ---- what is refused, and where ---- */

static void expect_refusals(const refusal *cases, size_t count) {
  for (size_t i = 0; i < count; i++)
    expect_refusal(base_spec, &cases[i]);
}

#define EXPECT_REFUSALS(cases) expect_refusals(cases, sizeof cases / sizeof *cases)

Test(spec, refuses_what_is_not_one_plain_yaml_document) {
  static const refusal cases[] = {
      {NULL, "", "spec.type", 1, 1, "the file is empty"},
      {NULL, "# only a comment\n", "spec.type", 1, 1, "the file is empty"},
      {NULL, "- heddle\n", "spec.type", 1, 1, "a spec is a mapping"},
      {NULL, "heddle\n", "spec.type", 1, 1, "a spec is a mapping"},
      {"", "mask: {causal: true\n", "spec.syntax", 13, 1, "not valid YAML"},
      {"", "mask:\n\tcausal: true\n", "spec.syntax", 13, 1, "not valid YAML"},
      {"", "about: \"\xff\"\n", "spec.syntax", 12, 9, "UTF-8"},
      {"", "about: \"\\0\"\n", "spec.syntax", 12, 8, "NUL"},
      {"", "about: !!str text\n", "spec.syntax", 12, 8, "tag"},
      {"", "[a, b]: c\n", "spec.syntax", 12, 1, "key"},
      {"", "---\nheddle: 1\n", "spec.documents", 12, 1, "second YAML document"},
      {"", "about: *nothing\n", "spec.alias", 12, 8, "does not stand before it"},
      {"", "mask: &m {causal: *m}\n", "spec.alias", 12, 19, "recursion"},
      {"", "mask: {<<: 3}\n", "spec.merge", 12, 12, "takes a mapping"},
      {"", "mask: {<<: [{window: 1}, 3]}\n", "spec.merge", 12, 12, "takes a mapping"},
      {"", "head_dim: 64\n", "spec.duplicate-key", 12, 1, "head_dim"},
      {"", "mask: {window: 1, \"window\": 2}\n", "spec.duplicate-key", 12, 19, "window"},
      {"", "mask: {<<: {window: 1}, <<: {causal: false}}\n", "spec.duplicate-key", 12, 25, "<<"},
      {"", "about: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "spec.depth", 12, 23, "16 levels"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, refuses_other_versions_and_judges_nothing_else_then) {
  static const refusal cases[] = {
      {"heddle: 1", "heddle: 2\nwarp: 3", "spec.version", 1, 9, "version is 2, allowed: 1"},
      {"heddle: 1", "heddle: \"1\"", "spec.version", 1, 9, "\"1\""},
      {"heddle: 1", "heddle: [1]", "spec.version", 1, 9, "a list"},
      {"heddle: 1\n", "", "spec.missing", 1, 1, "heddle is missing"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, both_halves_of_a_value_are_judged) {
  static const char *const pairs[] = {"head_dim: {qk: 0, v: none}",
                                      "kv: {dtype: {k: fp8, v: int4}, page: 16, k: "
                                      "[b, h, s, d], v: [b, h, s, d]}"};
  static const char *const fields[][2] = {{"head_dim.qk is", "head_dim.v is"},
                                          {"kv.dtype.k is", "kv.dtype.v is"}};
  for (int i = 0; i < 2; i++) {
    text yaml;
    text_init(&yaml);
    text_addf(&yaml, "heddle: 1\nquery: {heads_per_kv: 8}\n%s\n%s\n", pairs[i],
              i == 0 ? "kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}" : "head_dim: 128");
    spec s;
    diags d;
    diags_init(&d);
    cr_assert_eq(spec_parse(text_string(&yaml), yaml.length, &s, &d), HD_DECLINED);
    cr_assert_eq(diags_errors(&d), 2, "%zu", diags_errors(&d));
    for (int half = 0; half < 2; half++)
      cr_expect(strstr(d.items[half].message, fields[i][half]), "%s", d.items[half].message);
    diags_finish(&d);
    text_finish(&yaml);
  }
}

Test(spec, unknown_keys_get_a_suggestion) {
  static const refusal cases[] = {
      {"  page: 16", "  pages: 16", "spec.unknown-key", 7, 3, "did you mean \"page\"?"},
      {"head_dim", "headdim", "spec.unknown-key", 4, 1, "did you mean \"head_dim\"?"},
      {"", "mask: {casual: true}\n", "spec.unknown-key", 12, 8, "did you mean \"causal\"?"},
      {"", "page: 16\n", "spec.unknown-key", 12, 1, "did you mean \"kv.page\"?"},
      {"", "strides: packed\n", "spec.unknown-key", 12, 1, "did you mean \"kv.strides\"?"},
      {"", "kv.page: 16\n", "spec.unknown-key", 12, 1, "\"kv.page\", allowed in a spec: heddle"},
      {"  page: 16", "  block_size: 16", "spec.unknown-key", 7, 3, "did you mean \"page\"?"},
      {"head_dim: 128", "head_size: 128", "spec.unknown-key", 4, 1, "did you mean \"head_dim\"?"},
      {"", "sliding_window: 4096\n", "spec.unknown-key", 12, 1, "did you mean \"mask.window\"?"},
      {"", "softmax_scale: 0.1\n", "spec.unknown-key", 12, 1, "did you mean \"logits.scale\"?"},
      {"", "kv_cache_dtype: fp8\n", "spec.unknown-key", 12, 1, "did you mean \"kv.dtype\"?"},
      {"", "layout: nhd\n", "spec.unknown-key", 12, 1, "did you mean \"kv.k\" or \"kv.v\"?"},
      {"", "k_scale: 0.5\n", "spec.unknown-key", 12, 1,
       "tune; a number is given at each launch, with scale: {"},
      {"head_dim: 128", "head_dim: {k: 128, v: 128}", "spec.unknown-key", 4, 12,
       "head_dim has no \"k\", allowed: qk, v; did you mean \"qk\"?"},
      {"head_dim: 128", "head_dim: [128, 128]", "spec.type", 4, 11,
       "head_dim is a list, expected one value, or {qk: …, v: …}"},
      {"fp8_e4m3fn", "[int8, bf16]", "spec.type", 6, 10,
       "kv.dtype is a list, expected one value, or {k: …, v: …}"},
      {"", "num_kv_heads: 8\n", "spec.unknown-key", 12, 1,
       "tune; kv heads are counted in the tensors, and any number of them is one contract"},
      {"", "mask: {shape: 1}\n", "spec.unknown-key", 12, 8, "allowed in mask: causal, window, sinks"},
      {"  granularity: token_head\n", "  granularity: token_head\n  writer: {qmix: 1}\n", "spec.unknown-key",
       12, 12, "allowed in scale.writer: amax_floor, scale_floor, zero_row, qmax; did you mean \"qmax\"?"},
      {"head_dim: 128", "head_dim: {qk: 128, v: 128, k: 1}", "spec.unknown-key", 4, 29, "allowed: qk, v"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, names_what_is_missing_at_the_section_that_lacks_it) {
  static const refusal cases[] = {
      {"  heads_per_kv: 16\n", "  rows: 1\n", "spec.missing", 2, 1, "query.heads_per_kv is missing"},
      {"head_dim: 128\n", "", "spec.missing", 1, 1, "head_dim is missing"},
      {"head_dim: 128", "head_dim: {qk: 128}", "spec.missing", 4, 11, "head_dim.v is missing"},
      {"  dtype: fp8_e4m3fn\n", "", "spec.missing", 5, 1, "kv.dtype is missing"},
      {"  page: 16\n", "", "spec.missing", 5, 1, "kv.page is missing"},
      {"  v: [b, h, s/16, d, s%16]\n", "", "spec.missing", 5, 1, "kv.v is missing"},
      {"  granularity: token_head\n", "  dtype: fp32\n", "spec.missing", 10, 1,
       "scale.granularity is missing"},
      {"granularity: token_head", "granularity: group", "spec.missing", 10, 1, "scale.group is missing"},
      {"head_dim: 128\n", "head_dim: 128\nselect: {form: blocks}\n", "spec.missing", 5, 1,
       "select.block is missing"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, refuses_values_outside_what_a_field_takes) {
  static const refusal cases[] = {
      {"", "name: ../etc\n", "spec.type", 12, 7, "name is \"../etc\""},
      {"", "name: [a]\n", "spec.type", 12, 7, "a list"},
      {"", "about: [a]\n", "spec.type", 12, 8, "a text"},
      {"", "kernels: write\n", "spec.type", 12, 10, "expected a list"},
      {"", "kernels: []\n", "spec.type", 12, 10, "expected a list"},
      {"", "kernels: [write, read]\n", "spec.value", 12, 18, "allowed: write, decode"},
      {"", "kernels: [write, write]\n", "spec.value", 12, 18, "twice"},
      {"query:\n", "query:\n  dtype: fp32\n", "spec.value", 3, 10, "allowed: bf16, fp16"},
      {"heads_per_kv: 16", "heads_per_kv: 0", "spec.value", 3, 17,
       "is 0, allowed: a whole number from 1 to 128"},
      {"heads_per_kv: 16", "heads_per_kv: 129", "spec.value", 3, 17, "is 129"},
      {"heads_per_kv: 16", "heads_per_kv: -1", "spec.value", 3, 17, "is -1"},
      {"heads_per_kv: 16", "heads_per_kv: 1.5", "spec.value", 3, 17, "is 1.5"},
      {"heads_per_kv: 16", "heads_per_kv: 016", "spec.value", 3, 17, "is 016"},
      {"heads_per_kv: 16", "heads_per_kv: 0x10", "spec.value", 3, 17, "0x10"},
      {"heads_per_kv: 16", "heads_per_kv: 99999999999999999999", "spec.value", 3, 17, "9999"},
      {"heads_per_kv: 16", "heads_per_kv: '16'", "spec.value", 3, 17, "without quotes"},
      {"heads_per_kv: 16", "heads_per_kv:", "spec.value", 3, 16, "is nothing"},
      {"heads_per_kv: 16", "heads_per_kv: 16\n  rows: 9", "spec.value", 4, 9, "1 to 8"},
      {"head_dim: 128", "head_dim: 0", "spec.value", 4, 11, "is 0"},
      {"head_dim: 128", "head_dim: {qk: 128, v: none}", "spec.value", 4, 24, "head_dim.v is \"none\""},
      {"head_dim: 128", "head_dim: {qk: 0, v: 64}", "spec.value", 4, 16, "head_dim.qk is 0"},
      {"granularity: token_head", "granularity: group\n  group: {k: 32, v: 0}", "spec.value", 12, 21,
       "scale.group.v is 0"},
      {"granularity: token_head", "granularity: {group: {k: 0, v: 32}}", "spec.value", 11, 28,
       "scale.group.k is 0"},
      {"fp8_e4m3fn", "fp8_e4m3fm", "spec.value", 6, 10, "did you mean \"fp8_e4m3fn\"?"},
      {"fp8_e4m3fn", "fp32", "spec.value", 6, 10, "allowed: bf16, fp16, fp8_e4m3"},
      {"fp8_e4m3fn", "fp8", "spec.value", 6, 10, "did you mean \"fp8_e4m3\" or \"fp8_e5m2\"?"},
      {"fp8_e4m3fn", "float16", "spec.value", 6, 10, "did you mean \"fp16\"?"},
      {"fp8_e4m3fn", "torch.float8_e4m3fn", "spec.value", 6, 10, "did you mean \"fp8_e4m3fn\"?"},
      {"fp8_e4m3fn", "uint8", "spec.value", 6, 10, "did you mean \"fp8_e4m3\", \"fp8_e5m2\" or \"int8\"?"},
      {"fp8_e4m3fn", "{k: int8, v: int4}", "spec.value", 6, 23,
       "kv.dtype.v is \"int4\", allowed: bf16, fp16, fp8_e4m3, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8; did "
       "you mean "
       "\"int8\"?"},
      {"  page: 16", "  page: 0", "spec.value", 7, 9, "is 0"},
      {"[b, h, d/16, s, d%16]", "NHD", "spec.type", 8, 6, "outermost first; NHD is [b, s, h, d]"},
      {"[b, h, s/16, d, s%16]", "hnd", "spec.type", 9, 6, "channels of K; HND is [b, h, s, d]"},
      {"[b, h, d/16, s, d%16]", "\"[b, s, h, d]\"", "spec.type", 8, 6, "outermost first, without quotes"},
      {"  page: 16", "  page: 1048577", "spec.value", 7, 9, "1 to 1048576"},
      {"  page: 16\n", "  page: 16\n  strides: dense\n", "spec.value", 8, 12, "allowed: free, packed"},
      {"token_head", "tokenhead", "spec.value", 11, 16, "did you mean \"token_head\"?"},
      {"token_head", "{groups: 32}", "spec.type", 11, 16, "{group: {k: N, v: N}}"},
      {"token_head", "group\n  group: 0", "spec.value", 12, 10, "is 0"},
      {"scale:\n  granularity: token_head\n", "scale:\n", "spec.type", 10, 7,
       "scale is nothing, expected a mapping"},
      {"", "select: table\n", "spec.type", 12, 9, "expected a mapping"},
      {"", "select: {form: tables}\n", "spec.value", 12, 16, "did you mean \"table\"?"},
      {"", "select: {index: int16}\n", "spec.value", 12, 17, "allowed: int32, int64"},
      {"", "select: {per: page}\n", "spec.value", 12, 15, "sequence, kv_head, row"},
      {"", "mask: {causal: yes}\n", "spec.value", 12, 16, "allowed: true, false"},
      {"", "mask: {window: 0}\n", "spec.value", 12, 16, "none, or a whole number"},
      {"", "mask: {sinks: per_row}\n", "spec.value", 12, 15, "none, per_head"},
      {"", "logits: {scale: rsqrt}\n", "spec.value", 12, 17, "did you mean \"rsqrt_d\"?"},
      {"", "logits: {scale: 0}\n", "spec.value", 12, 17, "a number > 0"},
      {"", "logits: {softcap: 0}\n", "spec.value", 12, 19, "a number > 0"},
      {"", "logits: {softcap: -30.0}\n", "spec.value", 12, 19, "is -30.0"},
      {"", "logits: {softcap: .inf}\n", "spec.value", 12, 19, ".inf"},
      {"", "logits: {softcap: .nan}\n", "spec.value", 12, 19, ".nan"},
      {"", "logits: {softcap: 1e39}\n", "spec.value", 12, 19, "fp32 can hold"},
      {"", "logits: {softcap: 1e-50}\n", "spec.value", 12, 19, "fp32 can hold"},
      {"", "logits: {softcap: 1e}\n", "spec.value", 12, 19, "\"1e\""},
      {"", "logits: {softcap: '30'}\n", "spec.value", 12, 19, "without quotes"},
      {"", "output: {dtype: fp8_e4m3}\n", "spec.value", 12, 17, "allowed: bf16, fp16, fp32"},
      {"", "output: {lse: 1}\n", "spec.value", 12, 15, "is 1, allowed: true, false"},
      {"", "split: {factors: 4}\n", "spec.type", 12, 18, "auto or a list"},
      {"", "split: {factors: [1, 0]}\n", "spec.value", 12, 22, "is 0"},
      {"", "split: {factors: [2, 2]}\n", "spec.value", 12, 22, "twice"},
      {"", "tune: {waves: []}\n", "spec.type", 12, 15, "auto or a list"},
      {"", "targets: []\n", "spec.type", 12, 10, "a list of targets"},
      {"", "targets: [gfx1200]\n", "spec.value", 12, 11, "did you mean \"gfx1201\"?"},
      {"", "targets: [MI300]\n", "spec.value", 12, 11, "did you mean \"gfx942\"?"},
      {"", "targets: [h100]\n", "spec.value", 12, 11, "did you mean \"sm_90\"?"},
      {"", "targets: [gfx940]\n", "spec.value", 12, 11, "did you mean \"gfx942\"?"},
      {"", "targets: [gfx9]\n", "spec.value", 12, 11, "did you mean \"gfx942\" or \"gfx950\"?"},
      {"", "targets: [gfx950, gfx950]\n", "spec.value", 12, 19, "twice"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, refuses_writer_rules_that_say_nothing) {
#define WRITER(rule) "token_head", "token_head\n  writer: {" rule "}"
  static const refusal cases[] = {
      {WRITER("amax_floor: -1"), "spec.value", 12, 24, "a number >= 0"},
      {WRITER("scale_floor: -1"), "spec.value", 12, 25, "a number >= 0"},
      {WRITER("zero_row: ceil"), "spec.value", 12, 22, "floor"},
      {WRITER("qmax: 0"), "spec.value", 12, 18, "dialect, or a number > 0"},
      {WRITER("qmax: 449"), "spec.conflict", 12, 18, "fp8_e4m3fn ends at 448"},
      {"token_head", "token_head\n  dtype: fp16\n  writer: {zero_row: 1e6}", "spec.conflict", 13, 22, "fp16"},
  };
  EXPECT_REFUSALS(cases);
  refusal generic = {"fp8_e4m3fn", "fp8_e4m3", "spec.conflict", 0, 0, ""};
  char *yaml = spec_with(base_spec, generic.old, generic.replacement);
  char *with_rule = spec_with(yaml, "token_head", "token_head\n  writer: {qmax: 448}");
  refusal whole = {NULL, with_rule, "spec.conflict", 12, 18, "ends at 240 in one of its dialects"};
  expect_refusal(base_spec, &whole);
  free(with_rule);
  free(yaml);
}

Test(spec, refuses_layouts_at_the_factor_that_is_wrong) {
  static const refusal cases[] = {
      {"[b, h, d/16, s, d%16]", "[b, h, d/16, s]", "spec.layout", 8, 6, "kv.k"},
      {"[b, h, d/16, s, d%16]", "[b, h, s]", "spec.layout", 8, 6, "axis d is missing"},
      {"[b, h, d/16, s, d%16]", "[b, h, s, d, h]", "spec.layout", 8, 6, "axis h"},
      {"[b, h, d/16, s, d%16]", "[b, s, d]", "spec.layout", 9, 10,
       "axis h does not belong in this layout: kv.k has none, and so one kv head"},
      {"[b, h, s/16, d, s%16]", "[b, s, d]", "spec.layout", 9, 6, "axis h is missing: kv.k has it"},
      {"[b, h, d/16, s, d%16]", "[b, h, d/24, s, d%24]", "spec.layout", 8, 13, "128"},
      {"[b, h, d/16, s, d%16]", "[b, h, x, d]", "spec.layout", 8, 13, "'x'"},
      {"[b, h, d/16, s, d%16]", "[]", "spec.layout", 8, 6, "missing"},
      {"[b, h, d/16, s, d%16]", "[b, h, [s], d]", "spec.type", 8, 13, "axis factor"},
      {"[b, h, d/16, s, d%16]", "nhd", "spec.type", 8, 6, "a layout"},
      {"[b, h, d/16, s, d%16]", "[b,h,s,d,d,d,d,d,d,d,d,d,d,d,d,d,d]", "spec.layout", 8, 6, "at most 16"},
      {"  page: 16", "  page: 8", "spec.layout", 9, 13, "page is 8"},
      {"token_head", "token_head\n  k: [b, h]", "spec.layout", 12, 6, "axis s is missing"},
      {"token_head", "token_head\n  v: [b, h, s, d]", "spec.layout", 12, 16, "axis d does not belong"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, refuses_fields_that_contradict_each_other) {
  static const refusal cases[] = {
      {"fp8_e4m3fn", "bf16", "spec.conflict", 10, 1, "a bf16 cache has none"},
      {"fp8_e4m3fn", "{k: int8, v: fp16}", "spec.conflict", 10, 1, "a fp16 cache has none"},
      {"token_head", "token_head\n  dtype: e8m0", "spec.conflict", 12, 10, "e8m0 with group only"},
      {"token_head", "token_head\n  group: 32", "spec.conflict", 12, 3, "allowed with: group"},
      {"token_head", "tensor\n  k: [b, h, s]", "spec.conflict", 12, 3, "no meaning with granularity tensor"},
      {"token_head", "tensor\n  writer: {qmax: 1, zero_row: 2}", "spec.conflict", 12, 3,
       "token, token_head, group"},
      {"token_head", "token_head\n  source: argument", "spec.conflict", 12, 3,
       "scale.source has no meaning with granularity token_head, allowed with: tensor"},
      {"token_head", "head\n  source: memory", "spec.conflict", 12, 3, "allowed with: tensor"},
      {"token_head", "tensor\n  source: argument\n  dtype: fp16", "spec.conflict", 13, 10,
       "fp16 with source argument, allowed: fp32"},
      {"token_head", "tensor\n  source: argument\n  dtype: e8m0", "spec.conflict", 13, 10, "allowed: fp32"},
      {"token_head", "tensor\n  source: argument\n  k: [h]", "spec.conflict", 13, 3,
       "no meaning with granularity tensor"},
      {"token_head", "none\n  dtype: fp32", "spec.conflict", 12, 3, "no meaning with granularity none"},
      {"token_head", "group\n  group: {k: 32, v: 48}", "spec.conflict", 12, 10, "scale.group.v is 48"},
      {"token_head", "{group: 32}\n  group: 32", "spec.conflict", 11, 16, "given here and in scale.group"},
      {"head_dim: 128\n", "head_dim: 128\nselect: {block: 128}\n", "spec.conflict", 5, 10,
       "no meaning with form table, allowed with: blocks"},
      {"head_dim: 128\n", "head_dim: 128\nselect: {form: blocks, block: 128, per: kv_head}\n",
       "spec.conflict", 5, 41, "allowed: sequence, row"},
      {"head_dim: 128\n", "head_dim: 128\nselect: {form: tokens, per: sequence}\n", "spec.conflict", 5, 29,
       "allowed: row, kv_head"},
  };
  EXPECT_REFUSALS(cases);
}

Test(spec, reports_every_error_in_one_run_in_file_order) {
  static const char yaml[] = "heddle: 1\n"
                             "query: {heads_per_kv: 129, dtype: bf17}\n"
                             "head_dim: 128\n"
                             "head_dim: 64\n"
                             "mask: {casual: true, window: -1}\n"
                             "kv:\n"
                             "  dtype: fp8\n"
                             "  page: none\n"
                             "  k: [b, h, s, d]\n"
                             "targets: [gfx900]\n";
  static const int lines[] = {2, 2, 4, 5, 5, 6, 7, 8, 10};
  spec s;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(spec_parse(yaml, strlen(yaml), &s, &problems), HD_DECLINED);
  cr_assert_eq(problems.count, sizeof lines / sizeof *lines);
  for (size_t i = 0; i < problems.count; i++)
    cr_expect_eq(problems.items[i].line, lines[i], "error %zu: %s", i, problems.items[i].message);
  diags_finish(&problems);
}

Test(spec, stops_reporting_at_a_hundred_errors) {
  text yaml;
  text_init(&yaml);
  text_add(&yaml, base_spec);
  for (int i = 0; i < 3000; i++)
    text_addf(&yaml, "field_%d: 1\n", i);
  spec s;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(spec_parse(yaml.data, yaml.length, &s, &problems), HD_DECLINED);
  cr_assert_eq(problems.count, 101);
  cr_assert_not_null(strstr(problems.items[100].message, "more than 100 errors"));
  diags_finish(&problems);
  text_finish(&yaml);
}
