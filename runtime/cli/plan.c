/* plan: what the generator solved for a target, and how a launch's tiles lie over splits, waves and stages.
 */
#include "../bench/bench.h"
#include "../pictures/plan_picture.h"
#include "console.h"
#include "shapes.h"
#include "tuned_launch.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything the verb holds while it works. */
typedef struct plan_work {
  const cli *c;
  spec_file file;
  const target *target;
  variant variant;
  decode_solution solution;
  write_plan write;
  emission made;
  tune_files records;
  tuned_launch launch;
  tune_shape shape;
  bool has_shape;
  int32_t *lengths;
  text variant_name;
  char split_choice[600];
  plan_picture picture;
} plan_work;

static int read_shape(plan_work *r) {
  const char *word = cli_text(r->c, "shape");
  if (!word) return cli_text(r->c, "split") ? cli_usage(r->c, "--shape is missing") : EXIT_FINE;
  r->has_shape = true;
  return cli_tune_shape(r->c, word, &r->shape);
}

/* Variant and split: those asked for, else what records or the policy say of the shape, as `tune explain`. */
static hd_status choose(plan_work *r, diags *d) {
  const contract resolved = contract_resolve(&r->file.spec.contract, r->target->fp8);
  const bool asked = cli_text(r->c, "variant") != NULL;
  hd_status status = asked ? HD_OK : cli_tuned_load(r->c, r->file.path, &r->records, d);
  if (status != HD_OK) return status;
  status = bench_rows(&resolved, r->shape.rows, &r->shape.rows, d);
  if (status != HD_OK) return status;
  const tuned_question question = {.contract = &resolved,
                                   .factors = &r->file.spec.split_factors,
                                   .target = r->target,
                                   .shape = r->shape,
                                   .splits = cli_int(r->c, "split", 0)};
  status = tuned_launch_of(&question, &r->records, &r->launch, d);
  if (status == HD_OK && !asked) r->variant = r->launch.choice.variant;
  return status;
}

static void choose_splits(plan_work *r) {
  const split_facts facts = split_facts_of(&r->made.descriptor);
  const bool by_records = r->launch.choice.found;
  schedule *s = &r->picture.schedule;
  s->splits = r->launch.splits;
  if (cli_text(r->c, "split")) {
    snprintf(r->split_choice, sizeof r->split_choice, "asked for");
    return;
  }
  snprintf(r->split_choice, sizeof r->split_choice, "%s",
           by_records ? r->launch.choice.reason : "by the policy");
  if (cli_text(r->c, "variant")) /* the policy's for that variant */
    s->splits = splits_among(&r->file.spec.split_factors,
                             launch_splits(facts, split_items(facts, s->seqs, r->shape.rows, s->kv_heads),
                                           r->shape.length, r->target->compute_units));
}

/* Workgroups of the decode kernel. */
static int64_t workgroups(const plan_work *r) {
  const descriptor *desc = &r->made.descriptor;
  int64_t dims[DIM_COUNT] = {0}, all = 1;
  dims[DIM_SEQS] = r->shape.seqs;
  dims[DIM_ROWS] = 1;
  dims[DIM_KV_HEADS] = r->shape.kv_heads;
  dims[DIM_SPLITS] = r->picture.schedule.splits;
  for (int i = 0; i < desc->kernel_count; i++)
    for (int way = 0; way < 3 && strcmp(desc->kernels[i].symbol, "heddle_decode") == 0; way++)
      all *= extent_value(&desc->kernels[i].grid[way], dims);
  return all;
}

static hd_status set_schedule(plan_work *r) {
  schedule *s = &r->picture.schedule;
  r->lengths = calloc((size_t)r->shape.seqs, sizeof *r->lengths);
  if (!r->lengths) return HD_OUT_OF_MEMORY;
  const bench_shape batch = {r->shape.seqs, r->shape.length, r->shape.kv_heads, 0};
  bench_lengths(&batch, r->shape.ragged, r->lengths);
  *s = (schedule){.on_line = r->solution.on_line,
                  .tile_tokens = plan_tile(&r->solution),
                  .window = r->solution.contract.mask.window,
                  .seqs = r->shape.seqs,
                  .kv_heads = r->shape.kv_heads,
                  .lengths = r->lengths};
  choose_splits(r);
  if (s->on_line) schedule_finish_line(s);
  r->picture.workgroups = workgroups(r);
  r->picture.longest = r->shape.length;
  return HD_OK;
}

static hd_status solve(plan_work *r, diags *d) {
  const contract *c = &r->file.spec.contract;
  hd_status status = r->has_shape ? choose(r, d) : HD_OK;
  if (status == HD_OK) status = plan_solve(c, &r->variant, r->target, &r->solution, d);
  if (status == HD_OK && r->has_shape && r->solution.plan.line && !r->solution.on_line) {
    diags_errorf(d, "plan.line", NULL,
                 "how waves take a part of the line of tiles is not drawn; without --shape the rest of the plan is");
    status = HD_DECLINED;
  }
  if (status == HD_OK)
    status = emit_operation(c, OPERATION_DECODE, &r->variant, r->target, templates_embedded(), &r->made, d);
  if (status != HD_OK) return status;
  variant_write(&r->variant, &r->variant_name);
  plan_picture *p = &r->picture;
  *p = (plan_picture){.name = r->file.spec.name,
                      .variant = text_string(&r->variant_name),
                      .target = r->target,
                      .solution = &r->solution,
                      .split_choice = r->split_choice,
                      .compute_units = r->target->compute_units,
                      .columns = console_columns(),
                      .colour = console_colours_output()};
  if (contract_has_operation(c, OPERATION_WRITE)) {
    contract resolved = plan_contract(c, r->target);
    diags ignored;
    diags_init(&ignored);
    if (plan_write(&resolved, &r->variant, r->target, &r->write, &ignored) == HD_OK) p->write = &r->write;
    diags_finish(&ignored);
  }
  return r->has_shape ? set_schedule(r) : HD_OK;
}

/* ---- JSON ---- */

static void json_operand(text *out, bool *first, const char *name, const matrix_op *op, bool widen,
                         int load_bytes) {
  bool inner = true;
  json_key(out, first, name);
  text_add(out, "{");
  json_text(out, &inner, "instruction", op->name);
  json_text(out, &inner, "operand", dtype_name(op->operand));
  json_bool(out, &inner, "widened", widen);
  json_int(out, &inner, "load_bytes", load_bytes);
  text_add(out, "}");
}

static void json_tiles(const decode_solution *s, text *out, bool *first) {
  const decode_plan *p = &s->plan;
  const contract *c = &s->contract;
  const int v_load = p->v_channels > 1 ? p->v_channels : p->v_tokens;
  json_int(out, first, "tokens_of_a_group", p->list);
  json_operand(out, first, "k", p->op, p->widen, p->k_load * dtype_bytes(c->kv.k_dtype));
  json_operand(out, first, "v", p->value_op, p->value_widen, v_load * dtype_bytes(c->kv.v_dtype));
  json_text(out, first, "v_loads_along", p->v_channels > 1 ? "channels" : "tokens");
  json_int(out, first, "query_parts", p->q_parts);
  json_int(out, first, "weight_parts", p->p_parts);
  json_int(out, first, "k_pieces", p->k_pieces);
  json_int(out, first, "column_groups", p->column_groups);
  json_int(out, first, "slices", p->slices);
  json_bool(out, first, "query_in_lds", p->query_in_lds);
  json_int(out, first, "registers", p->registers);
}

static void json_summary(const plan_picture *p, text *out, bool *first) {
  text all;
  text_init(&all);
  plan_sentences(p, &all);
  json_key(out, first, "summary");
  text_add(out, "[");
  const char *comma = "";
  for (char *at = all.data; at && *at;) {
    size_t length = strcspn(at, "\n"), indent = strspn(at, " ");
    bool more = at[length] == '\n';
    at[length] = '\0';
    text_add(out, comma);
    text_add_json(out, at + indent);
    comma = ", ";
    at += length + more;
  }
  text_add(out, "]");
  if (all.failed) out->failed = true;
  text_finish(&all);
}

static void json_order(const decode_solution *s, text *out, bool *first) {
  json_key(out, first, "score_rows");
  text_add(out, "[");
  for (int product = 0; product < plan_score_products(s); product++) {
    text_add(out, product ? ", [" : "[");
    for (int row = 0; row < plan_score_rows(s); row++)
      text_addf(out, "%s%d", row ? ", " : "", plan_row_token(s, product, row));
    text_add(out, "]");
  }
  text_add(out, "]");
}

static void json_launch(const plan_picture *p, text *out, bool *first) {
  enum { MOST_PARTS = 4096 };
  const schedule *s = &p->schedule;
  bool inner = true;
  json_key(out, first, "launch");
  text_add(out, "{");
  json_extents(out, &inner, s->seqs, p->longest, s->kv_heads);
  json_bool(out, &inner, "on_line", s->on_line);
  json_int(out, &inner, "split", s->splits);
  json_text(out, &inner, "split_choice", p->split_choice);
  json_int(out, &inner, "workgroups", p->workgroups);
  json_int(out, &inner, "compute_units", p->compute_units);
  if (s->on_line) json_int(out, &inner, "line_tiles", s->line_tiles);
  int64_t count = s->on_line ? s->parts : s->splits;
  json_key(out, &inner, s->on_line ? "parts" : "splits_of_the_first");
  text_add(out, "[");
  for (int64_t n = 0; n < count && n < MOST_PARTS; n++) {
    tile_span span = s->on_line ? schedule_part(s, n) : schedule_split(s, 0, n);
    text_addf(out, "%s[%" PRId64 ", %" PRId64 "]", n ? ", " : "", span.first, span.end);
  }
  text_add(out, "]}");
}

static int show_json(const plan_picture *p) {
  const decode_solution *s = p->solution;
  text out;
  bool first = true;
  text_init(&out);
  text_add(&out, "{");
  json_bool(&out, &first, "ok", true);
  json_text(&out, &first, "name", p->name);
  json_text(&out, &first, "target", p->target->name);
  json_text(&out, &first, "variant", p->variant);
  json_text(&out, &first, "structure", s->plan.structure == STRUCTURE_RING ? "ring" : "direct");
  json_text(&out, &first, "structure_reason", s->plan.structure_reason);
  json_summary(p, &out, &first);
  json_int(&out, &first, "tile", plan_tile(s));
  json_int(&out, &first, s->on_line ? "warpgroups" : "waves", plan_takers(s));
  json_int(&out, &first, "stages", plan_stages(s));
  json_int(&out, &first, "lds_bytes", s->on_line ? s->ring.lds_bytes : s->plan.lds_bytes);
  if (!s->on_line) json_tiles(s, &out, &first);
  json_order(s, &out, &first);
  if (p->write) {
    bool inner = true;
    json_key(&out, &first, "write");
    text_add(&out, "{");
    json_int(&out, &inner, "row_lanes", p->write->row_lanes);
    json_int(&out, &inner, "channels_of_a_lane", p->write->load);
    json_int(&out, &inner, "threads", p->write->threads);
    text_add(&out, "}");
  }
  if (p->schedule.lengths) json_launch(p, &out, &first);
  text_add(&out, "}\n");
  return cli_output_product(&out, EXIT_FINE);
}

/* ---- The verb ---- */

static int show(plan_work *r, diags *d) {
  const char *path = cli_text(r->c, "svg");
  text out;
  text_init(&out);
  if (path) {
    plan_svg(&r->picture, &out);
    hd_status status = cli_write_text(path, &out, d);
    text_finish(&out);
    if (status != HD_OK) return cli_fail(r->c, path, NULL, d, status);
    if (!r->c->json) return EXIT_FINE;
  }
  if (r->c->json) return show_json(&r->picture);
  plan_text(&r->picture, &out);
  return cli_output_product(&out, EXIT_FINE);
}

/* The one target that is named, or the spec's first. */
static int find_target(plan_work *r) {
  target_list targets;
  int code = cli_targets(r->c, &r->file.spec, &targets);
  if (!code && cli_list(r->c, "target", 0) && targets.count != 1)
    return cli_usage(r->c, "--target names one target here");
  if (!code) r->target = targets.items[0];
  return code;
}

static int plan_verb(cli *c) {
  plan_work *r = calloc(1, sizeof *r);
  diags d;
  if (!r) return EXIT_FAILED;
  r->c = c;
  diags_init(&d);
  text_init(&r->variant_name);
  int code = read_shape(r);
  if (!code) code = cli_variant(c, &r->variant);
  if (!code) {
    hd_status status = spec_file_read(c->arguments[0], &r->file, &d);
    if (status == HD_OK) code = find_target(r);
    if (status == HD_OK && !code && !contract_has_operation(&r->file.spec.contract, OPERATION_DECODE))
      code = cli_usage(c, "%s has no kernel 'decode'", r->file.path);
    if (status == HD_OK && !code) status = solve(r, &d);
    if (status != HD_OK)
      code = cli_fail(c, c->arguments[0], &r->file, &d, status);
    else if (!code)
      code = show(r, &d);
  }
  free(r->lengths);
  emission_finish(&r->made);
  tune_files_finish(&r->records);
  text_finish(&r->variant_name);
  spec_file_finish(&r->file);
  diags_finish(&d);
  free(r);
  return code;
}

static const cli_option plan_options[] = {
    {"target", 0, OPTION_LIST, "TARGET", "the target (default: the spec's first)", 0, 0},
    {"shape", 's', OPTION_TEXT, "SHAPE",
     "also show this launch: SEQSxLENGTHxKV_HEADS, with -2rows or -ragged behind it or not", 0, 0},
    {"split", 0, OPTION_INT, "N", "splits, or parts of the line (default: records, else the policy)", 1,
     65535},
    OPTION_ROW_VARIANT,
    OPTION_ROW_TUNED,
    OPTION_ROW_PICTURE,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_plan = {
    .name = "plan",
    .arguments = "SPEC --target TARGET",
    .summary = "show what the generator solved for decode, and how a launch is dealt out",
    .details =
        "The sentences are those at the head of the emitted source: structure and why, instructions,\n"
        "loads, registers. With --shape also which tiles the splits, waves and stages of a launch take\n"
        "(docs/pictures.md). Nothing is compiled and no device is asked.\n",
    .examples = "  heddle plan specs/minimax-m3-dense-fp8.yaml --target gfx950\n"
                "  heddle plan specs/minimax-m3-dense-fp8.yaml --target sm_90 --shape 4x8192x1\n"
                "  heddle plan specs/nhd-fp16.yaml --target gfx1250 --shape 4x8192x1 --svg plan.svg\n",
    .options = plan_options,
    .fewest = 1,
    .most = 1,
    .run = plan_verb,
    .environment = ENV_TUNED,
    .group = GROUP_KERNELS,
};
