#include "../spec_fixture.h"

/* ---- golden: a change of these is a change of every key in the field, and must be meant ---- */

Test(contract, canonical_text_is_as_documented) {
  char *yaml = spec_with(base_spec, "token_head",
                         "token_head\n  writer: {amax_floor: 1.0e-8, zero_row: floor, qmax: 240.0}");
  char *written = canonical(yaml);
  cr_assert_str_eq(written, "heddle: 1\n"
                            "kernels: [write, decode]\n"
                            "query:\n"
                            "  dtype: bf16\n"
                            "  heads_per_kv: 16\n"
                            "  rows: 1\n"
                            "head_dim: 128\n"
                            "kv:\n"
                            "  dtype: fp8_e4m3fn\n"
                            "  page: 16\n"
                            "  k: [b, h, d/16, s, d%16]\n"
                            "  v: [b, h, d, s]\n"
                            "  strides: free\n"
                            "scale:\n"
                            "  granularity: token_head\n"
                            "  dtype: fp32\n"
                            "  k: [b, h, s]\n"
                            "  v: [b, h, s]\n"
                            "  writer:\n"
                            "    amax_floor: 1e-8\n"
                            "    zero_row: floor\n"
                            "    qmax: 240\n"
                            "select:\n"
                            "  form: table\n"
                            "  index: int32\n"
                            "  per: sequence\n"
                            "mask:\n"
                            "  causal: true\n"
                            "  window: none\n"
                            "  sinks: none\n"
                            "logits:\n"
                            "  scale: argument\n"
                            "  softcap: none\n"
                            "output:\n"
                            "  dtype: bf16\n"
                            "  lse: false\n");
  free(written);
  free(yaml);
}

Test(contract, keys_of_the_shipped_specs_stay_what_they_are) {
  static const char *const keys[SHIPPED_COUNT] = {
      "c10687c5075a5f0112a28f3bd122653d4bd4ef7d07996166e24c63716ab54410",
      "a6bb110b8540c2c82ba192b4bc32ee39ce9e330420b10039e91bb29371026e52",
      "0723e26d3512a4fe366c9885f889bd52969db384bfa29783c71f2616481173a8",
      "3f0447d0ad16dfdc0fb69867de725fa6b8772b184b0c2a948c176fa0ed84dc33",
      "26a4c0c9f6b575ab8d9929c8c8e13c8a3aca389f1d7ba239450a048f45d0b9b9",
      "2b1d01e4aaa7908e8aed79122c1325bde09dd63d035450c2c91a43ac23b87fd1",
      "369c585df59946db3656fe79792fb02f8d315c87fbf17fdc977b62142504bbf6",
      "ec20b7b9be782df41a204a8144ab95322ebe13b030cfec78ad04a0a231765053",
      "80c603ca94ef6d7e0aad1f4808f79e3d5e86dab4004219dabd2053efad8d4a3b",
      "d01dea4c4ec2030c3f6c345fff19325dca5bb0203658d15092014af05624f1e6",
      "1758ce2ff3d8100d071e2cf95a18319556d9d9700f56dd197797ce2ecec619ed",
  };
  for (int i = 0; i < SHIPPED_COUNT; i++) {
    char *yaml = read_shipped(shipped_specs[i]), key[65];
    key_of(yaml, key);
    cr_expect_str_eq(key, keys[i], "%s", shipped_specs[i]);
    free(yaml);
  }
}

/* ---- identities ---- */

static char *change(const char *old, const char *replacement) {
  return spec_with(base_spec, old, replacement);
}

typedef struct spelling {
  const char *old, *replacement; /* a change to base_spec; old NULL: the whole file */
} spelling;

static char *spelled(spelling s) {
  return s.old ? change(s.old, s.replacement) : spec_with("", "", s.replacement);
}

Test(contract, spelling_never_changes_the_key) {
  static const struct {
    const char *claim;
    spelling a, b;
  } pairs[] = {
      {"comments and blank lines", {"", ""}, {"head_dim: 128", "# a comment\n\nhead_dim: 128 # another"}},
      {"quotes around words", {"", ""}, {"fp8_e4m3fn", "\"fp8_e4m3fn\""}},
      {"quotes around factors", {"", ""}, {"d%16]", "'d%16']"}},
      {"flow or block", {"", ""}, {"query:\n  heads_per_kv: 16\n", "query: {heads_per_kv: 16}\n"}},
      {"lists in block form",
       {"", ""},
       {"[b, h, d/16, s, d%16]", "\n  - b\n  - h\n  - d/16\n  - s\n  - d%16"}},
      {"order of fields",
       {"", ""},
       {NULL, "scale: {granularity: token_head}\n"
              "kv: {v: [b, h, s/16, d, s%16], k: [b, h, d/16, s, d%16], page: 16, dtype: fp8_e4m3fn}\n"
              "head_dim: 128\nquery: {heads_per_kv: 16}\nheddle: 1\n"}},
      {"order of kernels", {"", ""}, {"", "kernels: [decode, write]\n"}},
      {"defaults written out",
       {"", ""},
       {"token_head", "token_head\n  dtype: fp32\n  k: [b, h, s]\n"
                      "  writer: {amax_floor: 0, zero_row: 1.0, qmax: dialect}\n"
                      "select: {form: table, index: int32, per: sequence}\n"
                      "mask: {causal: true, window: none, sinks: none}\n"
                      "logits: {scale: argument, softcap: none}\n"
                      "output: {dtype: bf16, lse: false}"}},
      {"name, about, split, targets and tune",
       {"", ""},
       {"", "name: other\nabout: text\nsplit: {factors: [2]}\n"
            "targets: [gfx942]\ntune: {waves: [1]}\n"}},
      {"scales that lie in memory, said or not",
       {"token_head", "tensor"},
       {"token_head", "tensor\n  source: memory"}},
      {"the only format that a number has",
       {"token_head", "tensor\n  source: argument"},
       {"token_head", "tensor\n  dtype: fp32\n  source: argument"}},
      {"halves that agree", {"", ""}, {"head_dim: 128", "head_dim: {qk: 128, v: 128}"}},
      {"formats that agree", {"", ""}, {"fp8_e4m3fn", "{k: fp8_e4m3fn, v: fp8_e4m3fn}"}},
      {"aliases",
       {"[b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]", "[b, h, s, d]\n  v: [b, h, s, d]"},
       {"[b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]", "&x [b, h, s, d]\n  v: *x"}},
      {"merge keys", {"", "mask: {window: 5}\n"}, {"", "mask: {<<: {window: 5}}\n"}},
      {"1.0 or 1", {"", "logits: {softcap: 30}\n"}, {"", "logits: {softcap: 30.0}\n"}},
      {"exponents", {"", "logits: {softcap: 30}\n"}, {"", "logits: {softcap: 3.0e+1}\n"}},
      {"digits beyond fp32", {"", "logits: {scale: 0.1}\n"}, {"", "logits: {scale: 0.1000000001}\n"}},
      {"a page of 16 in blocks of 16", {"", ""}, {"s/16, d, s%16", "d, s"}},
      {"a factor of the whole axis", {"", ""}, {"[b, h, d/16, s, d%16]", "[b, h, d%128/16, s, d%16]"}},
      {"neighbours that are one digit",
       {"[b, h, d/16, s, d%16]", "[b, h, s, d]"},
       {"[b, h, d/16, s, d%16]", "[b, h, s, d/16, d%16]"}},
      {"a split in three that is one in two",
       {"", ""},
       {"[b, h, d/16, s, d%16]", "[b, h, d/32, d%32/16, s, d%16]"}},
      {"pages of one token with and without the axis",
       {"  page: 16\n  k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]",
        "  page: 1\n  k: [b, h, d]\n  v: [b, h, d]"},
       {"  page: 16\n  k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]",
        "  page: 1\n  k: [b, h, s, d]\n  v: [b, s, h, d]"}},
      {"the format's own largest value", {"", ""}, {"token_head", "token_head\n  writer: {qmax: 448}"}},
      {"a floor of nothing",
       {"token_head", "token_head\n  writer: {zero_row: 0}"},
       {"token_head", "token_head\n  writer: {zero_row: floor}"}},
      {"two ways to say floor",
       {"token_head", "token_head\n  writer: {amax_floor: 1, zero_row: floor}"},
       {"token_head", "token_head\n  writer: {amax_floor: 1.0, zero_row: floor/qmax}"}},
      {"minus nothing", {"", ""}, {"token_head", "token_head\n  writer: {amax_floor: -0.0}"}},
      {"no floor", {"", ""}, {"token_head", "token_head\n  writer: {scale_floor: 0}"}},
      {"a floor of zero rows",
       {"token_head", "token_head\n  writer: {scale_floor: 1e-6, zero_row: floor}"},
       {"token_head", "token_head\n  writer: {scale_floor: 1e-6, zero_row: 0.000001}"}},
      {"a floor of zero rows, rounded",
       {"token_head", "token_head\n  dtype: fp16\n  writer: {scale_floor: 1e-3, zero_row: floor}"},
       {"token_head", "token_head\n  dtype: fp16\n  writer: {scale_floor: 1e-3, zero_row: 1e-3}"}},
      {"a zero_row between two fp16 values",
       {"token_head", "token_head\n  dtype: fp16\n  writer: {zero_row: 1}"},
       {"token_head", "token_head\n  dtype: fp16\n  writer: {zero_row: 1.0001}"}},
      {"two ways to say group",
       {"token_head", "group\n  group: 32"},
       {"token_head", "{group: {k: 32, v: 32}}"}},
      {"no scales, said or not",
       {"scale:\n  granularity: token_head\n", ""},
       {"scale:\n  granularity: token_head\n", "scale: none\n"}},
      {"no scales, said twice", {"scale:\n  granularity: token_head\n", ""}, {"token_head", "none"}},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char *a = spelled(pairs[i].a), *b = spelled(pairs[i].b), key_a[65], key_b[65];
    key_of(a, key_a);
    key_of(b, key_b);
    cr_expect_str_eq(key_a, key_b, "%s\n%s----\n%s", pairs[i].claim, a, b);
    free(a);
    free(b);
  }
}

Test(contract, pages_matter_to_a_slot_axis_only_where_it_has_more_than_one_position) {
  char *page1 = change("  page: 16\n  k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]",
                       "  page: 1\n  k: [b, h, d]\n  v: [b, h, d]");
  char *written = canonical(page1);
  cr_expect_not_null(strstr(written, "\n  k: [b, h, d]\n"));
  cr_expect_not_null(strstr(written, "scale:\n  granularity: token_head\n  dtype: fp32\n  k: [b, h]\n"));
  free(written);
  free(page1);
}

/* All of these mean different things: no two keys are equal. */
static const spelling meanings[] = {
    {"", ""},
    {"", "kernels: [write]\n"},
    {"", "kernels: [decode]\n"},
    {"  heads_per_kv: 16\n", "  heads_per_kv: 16\n  dtype: fp16\noutput: {dtype: bf16}\n"},
    {"heads_per_kv: 16", "heads_per_kv: 8"},
    {"  heads_per_kv: 16\n", "  heads_per_kv: 16\n  rows: 2\n"},
    {"head_dim: 128", "head_dim: 64"},
    {"head_dim: 128", "head_dim: {qk: 192, v: 128}"},
    {"head_dim: 128", "head_dim: {qk: 128, v: 192}"},
    {"fp8_e4m3fn", "fp8_e4m3fnuz"},
    {"fp8_e4m3fn", "fp8_e4m3"},
    {"fp8_e4m3fn", "fp8_e5m2"},
    {"fp8_e4m3fn", "int8"},
    {"fp8_e4m3fn", "{k: fp8_e4m3fn, v: int8}"},
    {"fp8_e4m3fn", "{k: int8, v: fp8_e4m3fn}"},
    {"page: 16", "page: 32"},
    {"page: 16", "page: 64"},
    {"[b, h, d/16, s, d%16]", "[b, h, d/8, s, d%8]"},
    {"[b, h, d/16, s, d%16]", "[b, h, s, d]"},
    {"[b, h, d/16, s, d%16]", "[b, s, h, d]"},
    {"[b, h, d/16, s, d%16]", "[h, b, s, d]"},
    {"[b, h, d/16, s, d%16]", "[b, h, d, s]"},
    {"[b, h, s/16, d, s%16]", "[b, h, s/8, d, s%8]"},
    {"[b, h, s/16, d, s%16]", "[b, h, s, d]"},
    {"  page: 16\n", "  page: 16\n  strides: packed\n"},
    {"scale:\n  granularity: token_head\n", ""},
    {"token_head", "tensor"},
    {"token_head", "tensor\n  dtype: fp16"},
    {"token_head", "tensor\n  source: argument"},
    {"token_head", "head"},
    {"token_head", "token"},
    {"token_head", "page_head"},
    {"token_head", "{group: 32}"},
    {"token_head", "{group: 64}"},
    {"token_head", "{group: {k: 32, v: 64}}"},
    {"token_head", "{group: 32}\n  dtype: e8m0"},
    {"token_head", "token_head\n  dtype: fp16"},
    {"token_head", "token_head\n  k: [b, s, h]"},
    {"token_head", "token_head\n  v: [b, s, h]"},
    {"token_head", "token_head\n  writer: {amax_floor: 1e-8}"},
    {"token_head", "token_head\n  writer: {amax_floor: 1e-8, zero_row: floor}"},
    {"token_head", "token_head\n  writer: {amax_floor: 1e-12}"},
    {"token_head", "token_head\n  writer: {scale_floor: 1e-6}"},
    {"token_head", "token_head\n  writer: {scale_floor: 1e-6, zero_row: 0}"},
    {"token_head", "token_head\n  writer: {zero_row: 0}"},
    {"token_head", "token_head\n  writer: {zero_row: 1.0000001}"},
    {"token_head", "token_head\n  writer: {qmax: 240}"},
    {"", "select: {form: indptr}\n"},
    {"", "select: {form: blocks, block: 128}\n"},
    {"", "select: {form: blocks, block: 64}\n"},
    {"", "select: {form: blocks, block: 64, per: row}\n"},
    {"", "select: {form: tokens}\n"},
    {"", "select: {form: tokens, per: kv_head}\n"},
    {"", "select: {index: int64}\n"},
    {"", "select: {per: kv_head}\n"},
    {"", "select: {per: row}\n"},
    {"", "mask: {causal: false}\n"},
    {"", "mask: {window: 1}\n"},
    {"", "mask: {window: 4096}\n"},
    {"", "mask: {sinks: per_head}\n"},
    {"", "logits: {scale: rsqrt_d}\n"},
    {"", "logits: {scale: 0.125}\n"},
    {"", "logits: {scale: 0.12500001}\n"},
    {"", "logits: {softcap: 30}\n"},
    {"", "logits: {softcap: 50}\n"},
    {"", "output: {dtype: fp16}\n"},
    {"", "output: {dtype: fp32}\n"},
    {"", "output: {lse: true}\n"},
};
enum { MEANING_COUNT = sizeof meanings / sizeof *meanings };

Test(contract, different_meanings_have_different_keys) {
  static char keys[MEANING_COUNT][65];
  for (int i = 0; i < MEANING_COUNT; i++) {
    char *yaml = spelled(meanings[i]);
    key_of(yaml, keys[i]);
    for (int j = 0; j < i; j++)
      cr_expect(strcmp(keys[i], keys[j]) != 0, "\"%s\" and \"%s\" have one key", meanings[i].replacement,
                meanings[j].replacement);
    free(yaml);
  }
}

Test(contract, canonical_text_is_a_spec_of_the_same_contract) {
  for (int i = 0; i < MEANING_COUNT + SHIPPED_COUNT; i++) {
    char *yaml = i < MEANING_COUNT ? spelled(meanings[i]) : read_shipped(shipped_specs[i - MEANING_COUNT]);
    char *once = canonical(yaml), *twice = canonical(once);
    cr_expect_str_eq(once, twice);
    free(yaml);
    free(once);
    free(twice);
  }
}

/* ---- diff ---- */

static size_t diff(const char *yaml_a, const char *yaml_b, text *out) {
  spec a = parse_good(yaml_a), b = parse_good(yaml_b);
  size_t count = contract_diff(&a.contract, &b.contract, out);
  spec_finish(&a);
  spec_finish(&b);
  return count;
}

Test(contract, diff_finds_a_difference_exactly_where_keys_differ) {
  for (int i = 0; i < MEANING_COUNT; i++) {
    char *yaml = spelled(meanings[i]);
    text t;
    text_init(&t);
    size_t count = diff(base_spec, yaml, &t);
    cr_expect_eq(count > 0, i > 0, "%s", meanings[i].replacement);
    size_t lines = 0;
    for (const char *s = text_string(&t); *s; s++)
      lines += *s == '\n';
    cr_expect_eq(lines, count, "one line a field");
    text_finish(&t);
    free(yaml);
  }
}

Test(contract, diff_names_fields_and_both_values) {
  char *other = change("  granularity: token_head\n", "  granularity: tensor\nmask: {window: 4096}\n");
  text t;
  text_init(&t);
  cr_expect_eq(diff(base_spec, other, &t), 7);
  cr_expect_str_eq(text_string(&t), "scale.granularity: token_head → tensor\n"
                                    "scale.k: [b, h, s] → (absent)\n"
                                    "scale.v: [b, h, s] → (absent)\n"
                                    "scale.writer.amax_floor: 0 → (absent)\n"
                                    "scale.writer.zero_row: 1 → (absent)\n"
                                    "scale.writer.qmax: dialect → (absent)\n"
                                    "mask.window: none → 4096\n");
  text_finish(&t);
  free(other);
}

Test(contract, scales_that_are_arguments_are_in_text_and_diff) {
  char *memory = change("token_head", "tensor"),
       *argument = change("token_head", "tensor\n  source: argument");
  char *written = canonical(argument);
  cr_expect_not_null(
      strstr(written, "scale:\n  granularity: tensor\n  source: argument\n  dtype: fp32\nselect:\n"), "%s",
      written);
  text t;
  text_init(&t);
  cr_expect_eq(diff(memory, argument, &t), 1);
  cr_expect_str_eq(text_string(&t), "scale.source: (absent) → argument\n");
  text_finish(&t);
  free(written);
  free(argument);
  free(memory);
}

/* ---- resolving the target's dialect ---- */

Test(contract, a_resolved_contract_is_the_one_that_names_its_dialect) {
  static const struct {
    const char *name;
    dtype dialect;
    double qmax;
  } dialects[] = {{"fp8_e4m3fn", DTYPE_FP8_E4M3FN, 448}, {"fp8_e4m3fnuz", DTYPE_FP8_E4M3FNUZ, 240}};
  char *generic = change("fp8_e4m3fn", "fp8_e4m3");
  spec g = parse_good(generic);
  for (size_t i = 0; i < 2; i++) {
    char *yaml = change("fp8_e4m3fn", dialects[i].name), expected[65], key[65];
    key_of(yaml, expected);
    contract resolved = contract_resolve(&g.contract, dialects[i].dialect);
    cr_expect_eq(resolved.scale.writer.qmax, dialects[i].qmax);
    cr_assert_eq(contract_key(&resolved, key), HD_OK);
    cr_expect_str_eq(key, expected, "%s", dialects[i].name);
    cr_assert_eq(contract_key(&g.contract, key), HD_OK);
    cr_expect(strcmp(key, expected) != 0, "the spec's own contract is of both dialects");
    free(yaml);
  }
  spec_finish(&g);
  free(generic);
}

Test(contract, resolving_leaves_other_formats_alone) {
  char *yaml = change("fp8_e4m3fn", "{k: int8, v: fp8_e4m3}"),
       *expected_yaml = change("fp8_e4m3fn", "{k: int8, v: fp8_e4m3fnuz}");
  spec s = parse_good(yaml);
  contract resolved = contract_resolve(&s.contract, DTYPE_FP8_E4M3FNUZ);
  char key[65], expected[65];
  cr_assert_eq(contract_key(&resolved, key), HD_OK);
  key_of(expected_yaml, expected);
  cr_expect_str_eq(key, expected);
  cr_expect_eq(resolved.scale.writer.qmax, 0, "K and V end at different values");
  spec_finish(&s);
  free(yaml);
  free(expected_yaml);
}

Test(contract, scale_axes_are_those_of_the_default_layout) {
  static const char *const names[] = {"head", "token", "token_head", "page_head", "{group: 32}"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char *yaml = change("token_head", names[i]);
    spec s = parse_good(yaml);
    unsigned axes = 0;
    for (int f = 0; f < s.contract.scale.k.count; f++)
      axes |= 1u << s.contract.scale.k.factors[f].axis;
    cr_expect_eq(axes, contract_scale_axes(s.contract.scale.granularity), "%s", names[i]);
    spec_finish(&s);
    free(yaml);
  }
}
