/* Claims about specs: what is accepted, and what every field becomes. */
#include "comma_locale.h"
#include "../spec_fixture.h"
#include "../../generator/spec_yaml.h"
#include "../../generator/target.h"
#include <time.h>

/* ---- what is accepted ---- */

Test(spec, the_shortest_spec_has_every_default) {
  char *yaml = spec_with(base_spec, "", "");
  spec s = parse_good(yaml);
  const contract *c = &s.contract;
  cr_expect_str_eq(s.name, "unnamed");
  cr_expect_null(s.about);
  cr_expect_eq(c->kernels, KERNEL_WRITE | KERNEL_DECODE);
  cr_expect_eq(c->query.dtype, DTYPE_BF16);
  cr_expect_eq(c->query.heads_per_kv, 16);
  cr_expect_eq(c->query.rows, 1);
  cr_expect_eq(c->head_dim.qk, 128);
  cr_expect_eq(c->head_dim.v, 128);
  cr_expect_eq(c->kv.k_dtype, DTYPE_FP8_E4M3FN);
  cr_expect_eq(c->kv.v_dtype, DTYPE_FP8_E4M3FN);
  cr_expect_eq(c->kv.page, 16);
  cr_expect_eq(c->kv.k.count, 5);
  cr_expect_eq(c->kv.v.count, 5, "layouts stay as written: arrays have this shape");
  cr_expect_not(c->kv.packed);
  cr_expect_eq(c->scale.granularity, SCALE_TOKEN_HEAD);
  cr_expect_eq(c->scale.dtype, DTYPE_FP32);
  cr_expect_eq(c->scale.k.count, 3);
  cr_expect_eq(c->scale.v.count, 3);
  cr_expect_eq(c->scale.writer.amax_floor, 0);
  cr_expect_eq(c->scale.writer.zero_row, ZERO_ROW_VALUE);
  cr_expect_eq(c->scale.writer.zero_value, 1);
  cr_expect_eq(c->scale.writer.qmax, 0, "0 is the dialect's largest value");
  cr_expect_eq(c->select.form, SELECT_TABLE);
  cr_expect_eq(c->select.index, DTYPE_INT32);
  cr_expect_eq(c->select.per, PER_SEQUENCE);
  cr_expect(c->mask.causal);
  cr_expect_eq(c->mask.window, 0);
  cr_expect_not(c->mask.sinks);
  cr_expect_eq(c->logits.scale, LOGITS_ARGUMENT);
  cr_expect_eq(c->logits.softcap, 0);
  cr_expect_eq(c->output.dtype, DTYPE_BF16);
  cr_expect_not(c->output.lse);
  cr_expect_eq(s.target_count, 0, "no list: every target");
  cr_expect_eq(s.split_factors.count, 0);
  cr_expect_eq(s.tune_waves.count, 0);
  spec_finish(&s);
  free(yaml);
}

Test(spec, every_field_arrives) {
  spec s = parse_good(
      "heddle: 1\nname: all.of-it_1\nabout: |\n  two\n  lines\nkernels: [decode]\n"
      "query: {dtype: fp16, heads_per_kv: 7, rows: 8}\nhead_dim: {qk: 192, v: 128}\n"
      "kv: {dtype: {k: fp8_e5m2, v: int8}, page: 528, k: [h, b, s, d], v: [b, s, h, d], strides: packed}\n"
      "scale: {granularity: group, group: {k: 32, v: 64}, dtype: fp16, k: [b, h, s, d], v: [b, s, h, d],\n"
      "        writer: {amax_floor: 1e-8, zero_row: floor, qmax: 100.5}}\n"
      "select: {form: indptr, index: int64, per: kv_head}\n"
      "mask: {causal: false, window: 4096, sinks: per_head}\nlogits: {scale: 0.125, softcap: 30}\n"
      "output: {dtype: fp32, lse: true}\nsplit: {factors: [1, 2, 8]}\ntargets: [gfx950, sm_90]\n"
      "tune: {waves: [4], tile: [64, 128], stages: auto}\n");
  const contract *c = &s.contract;
  cr_expect_str_eq(s.name, "all.of-it_1");
  cr_expect_str_eq(s.about, "two\nlines\n");
  cr_expect_eq(c->kernels, KERNEL_DECODE);
  cr_expect_eq(c->query.dtype, DTYPE_FP16);
  cr_expect_eq(c->query.heads_per_kv, 7);
  cr_expect_eq(c->query.rows, 8);
  cr_expect_eq(c->head_dim.qk, 192);
  cr_expect_eq(c->head_dim.v, 128);
  cr_expect_eq(c->kv.k_dtype, DTYPE_FP8_E5M2);
  cr_expect_eq(c->kv.v_dtype, DTYPE_INT8);
  cr_expect_eq(c->kv.page, 528);
  cr_expect(c->kv.packed);
  cr_expect_eq(c->kv.k.size[AXIS_D], 192);
  cr_expect_eq(c->kv.v.size[AXIS_D], 128);
  cr_expect_eq(c->scale.granularity, SCALE_GROUP);
  cr_expect_eq(c->scale.group_k, 32);
  cr_expect_eq(c->scale.group_v, 64);
  cr_expect_eq(c->scale.dtype, DTYPE_FP16);
  cr_expect_eq(c->scale.k.size[AXIS_D], 6, "d counts groups: 192 / 32");
  cr_expect_eq(c->scale.v.size[AXIS_D], 2);
  cr_expect_eq(c->scale.writer.amax_floor, (double)1e-8f, "numbers are fp32 values");
  cr_expect_eq(c->scale.writer.zero_row, ZERO_ROW_FLOOR);
  cr_expect_eq(c->scale.writer.qmax, 100.5);
  cr_expect_eq(c->select.form, SELECT_INDPTR);
  cr_expect_eq(c->select.index, DTYPE_INT64);
  cr_expect_eq(c->select.per, PER_KV_HEAD);
  cr_expect_not(c->mask.causal);
  cr_expect_eq(c->mask.window, 4096);
  cr_expect(c->mask.sinks);
  cr_expect_eq(c->logits.scale, LOGITS_NUMBER);
  cr_expect_eq(c->logits.number, 0.125);
  cr_expect_eq(c->logits.softcap, 30);
  cr_expect_eq(c->output.dtype, DTYPE_FP32);
  cr_expect(c->output.lse);
  cr_expect_eq(s.split_factors.count, 3);
  cr_expect_eq(s.split_factors.values[2], 8);
  cr_expect_eq(s.target_count, 2);
  cr_expect_str_eq(s.targets[0], "gfx950");
  cr_expect_str_eq(s.targets[1], "sm_90");
  cr_expect_eq(s.tune_waves.values[0], 4);
  cr_expect_eq(s.tune_tile.count, 2);
  cr_expect_eq(s.tune_stages.count, 0);
  spec_finish(&s);
}

Test(spec, the_output_has_the_query_format_unless_it_says_otherwise) {
  char *yaml = spec_with(base_spec, "  heads_per_kv: 16\n", "  heads_per_kv: 16\n  dtype: fp16\n");
  spec s = parse_good(yaml);
  cr_expect_eq(s.contract.output.dtype, DTYPE_FP16);
  spec_finish(&s);
  free(yaml);
}

Test(spec, scale_layouts_follow_the_granularity) {
  static const struct {
    const char *granularity;
    int factors;
  } cases[] = {
      {"head", 1},  {"token", 2}, {"page_head", 2}, {"token_head", 3}, {"{group: {k: 32, v: 64}}", 4},
      {"tensor", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *yaml = spec_with(base_spec, "token_head", cases[i].granularity);
    spec s = parse_good(yaml);
    cr_expect_eq(s.contract.scale.k.count, cases[i].factors, "%s", cases[i].granularity);
    cr_expect_eq(s.contract.scale.v.count, cases[i].factors, "%s", cases[i].granularity);
    spec_finish(&s);
    free(yaml);
  }
}

Test(spec, token_lists_are_a_rows_own_unless_it_says_otherwise) {
  char *yaml = spec_with(base_spec, "head_dim: 128\n", "head_dim: 128\nselect: {form: tokens}\n");
  spec s = parse_good(yaml);
  cr_expect_eq(s.contract.select.per, PER_ROW);
  spec_finish(&s);
  free(yaml);
  yaml = spec_with(base_spec, "head_dim: 128\n", "head_dim: 128\nselect: {form: blocks, block: 64}\n");
  s = parse_good(yaml);
  cr_expect_eq(s.contract.select.per, PER_SEQUENCE);
  cr_expect_eq(s.contract.select.block, 64);
  spec_finish(&s);
  free(yaml);
}

Test(spec, aliases_stand_for_what_they_name) {
  char *yaml = spec_with(base_spec, "  k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]\n",
                         "  k: &hnd [b, h, s, d]\n  v: *hnd\n");
  spec s = parse_good(yaml);
  cr_expect(layout_equal(&s.contract.kv.k, &s.contract.kv.v));
  cr_expect_eq(s.contract.kv.v.count, 4);
  spec_finish(&s);
  free(yaml);
}

Test(spec, merged_keys_give_way_to_written_ones_and_to_earlier_maps) {
  char *yaml =
      spec_with(base_spec, "",
                "mask:\n  <<: [{window: 5, causal: false}, {window: 6, sinks: per_head}]\n  causal: true\n");
  spec s = parse_good(yaml);
  cr_expect(s.contract.mask.causal);
  cr_expect_eq(s.contract.mask.window, 5);
  cr_expect(s.contract.mask.sinks);
  spec_finish(&s);
  free(yaml);
}

Test(spec, numbers_do_not_depend_on_the_locale) {
  use_comma_locale();
  char *yaml = spec_with(base_spec, "", "logits: {scale: 0.0883}\n");
  spec s = parse_good(yaml);
  cr_expect_eq(s.contract.logits.number, (double)0.0883f);
  setlocale(LC_ALL, "C");
  spec_finish(&s);
  free(yaml);
}

Test(spec, pages_of_one_token_need_no_slot_axis) {
  char *yaml = spec_with(base_spec, "  page: 16\n  k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]\n",
                         "  page: 1\n  k: [b, h, d]\n  v: [b, h, s, d]\n");
  spec s = parse_good(yaml);
  cr_expect(layout_equal(&s.contract.kv.k, &s.contract.kv.v));
  spec_finish(&s);
  free(yaml);
}

Test(spec, fields_know_their_place) {
  spec s = parse_good(base_spec);
  static const struct {
    const char *field;
    int line, column;
  } cases[] = {
      {"kv.page", 7, 9}, {"kv.k", 8, 6}, {"kv", 5, 1}, {"scale.writer.qmax", 10, 1}, {"head_dim.qk", 4, 11}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int line = 0, column = 0;
    cr_expect(spec_find_place(&s, cases[i].field, &line, &column), "%s", cases[i].field);
    cr_expect_eq(line, cases[i].line, "%s: line %d", cases[i].field, line);
    cr_expect_eq(column, cases[i].column, "%s: column %d", cases[i].field, column);
  }
  int line, column;
  cr_expect_not(spec_find_place(&s, "output.lse", &line, &column), "left out, and so is its section");
  spec_finish(&s);
}

Test(spec, shipped_specs_parse_and_name_every_target) {
  for (int i = 0; i < SHIPPED_COUNT; i++) {
    char *yaml = read_shipped(shipped_specs[i]);
    spec s = parse_good(yaml);
    cr_expect_str_eq(s.name, shipped_specs[i], "a spec is called as its file is");
    cr_expect_eq((size_t)s.target_count, target_count());
    cr_expect_eq(s.contract.kernels, KERNEL_WRITE | KERNEL_DECODE);
    spec_finish(&s);
    free(yaml);
  }
}
