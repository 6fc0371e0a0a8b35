/* tensors: what a spec's kernels take, as the JSON that match, view and new read. */
#include "../launch/launch.h"
#include "verbs.h"
#include <inttypes.h>

static void write_tensor(const tensor *t, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "dtype", dtype_name(t->dtype));
  json_key(out, &first, "shape");
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(out, "]}");
}

/* What the request has to say beside the tensors for the contract to serve it. */
static void write_facts(const contract *c, const int64_t dims[DIM_COUNT], text *out, bool *first) {
  json_int(out, first, "kv_heads", dims[DIM_KV_HEADS]);
  json_int(out, first, "rows", dims[DIM_ROWS]);
  json_int(out, first, "longest", dims[DIM_TABLE_PAGES] * c->kv.page);
  json_bool(out, first, "lse", c->output.lse);
  json_bool(out, first, "sinks", c->mask.sinks);
  json_bool(out, first, "causal", c->mask.causal);
  json_int(out, first, "window", c->mask.window);
  json_int(out, first, "block", c->select.form == SELECT_BLOCKS ? c->select.block : 0);
  json_number(out, first, "softcap", c->logits.softcap);
  json_number(out, first, "logits_scale", c->logits.scale == LOGITS_NUMBER ? c->logits.number : 0);
}

static void write_request(const contract *c, operation o, const int64_t dims[DIM_COUNT], text *out) {
  bool first = true, first_tensor = true;
  text_add(out, "{");
  json_text(out, &first, "operation", operation_name(o));
  if (operation_attends(o))
    write_facts(c, dims, out, &first);
  else
    json_int(out, &first, "kv_heads", dims[DIM_KV_HEADS]);
  if (bind_takes_number(c, true)) json_number(out, &first, "k_scale", 1);
  if (bind_takes_number(c, false)) json_number(out, &first, "v_scale", 1);
  json_key(out, &first, "tensors");
  text_add(out, "{");
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor t;
    if (bind_role(c, o, (tensor_name)i) == ROLE_NONE) continue;
    if (!bind_tensor(c, (tensor_name)i, dims, &t)) continue;
    text_add(out, first_tensor ? "\n  " : ",\n  ");
    text_add_json(out, tensor_name_text((tensor_name)i));
    text_add(out, ": ");
    write_tensor(&t, out);
    first_tensor = false;
  }
  text_add(out, "}}\n");
}

static int tensors_of(const cli *c, const spec_file *file) {
  target_list targets;
  operation_list operations;
  int code = cli_targets(c, &file->spec, &targets);
  if (!code) code = cli_operations(c, file, &operations);
  if (code) return code;
  contract resolved = contract_resolve(&file->spec.contract, targets.items[0]->fp8);
  operation o = operations.items[operations.count - 1]; /* decode, where there are both */
  bool has_heads = layout_has_axis(&resolved.kv.k, AXIS_H);
  int64_t dims[DIM_COUNT] = {0};
  dims[DIM_SEQS] = cli_int(c, "seqs", 4);
  dims[DIM_ROWS] = contract_most_rows(&resolved);
  dims[DIM_KV_HEADS] = has_heads ? cli_int(c, "kv-heads", 2) : 1;
  dims[DIM_PAGES] = cli_int(c, "pages", 64);
  dims[DIM_TABLE_PAGES] = dims[DIM_PAGES] / dims[DIM_SEQS] > 0 ? dims[DIM_PAGES] / dims[DIM_SEQS] : 1;
  dims[DIM_TOKENS] = dims[DIM_SEQS];
  dims[DIM_TABLE_ROWS] = dims[DIM_SEQS];
  dims[DIM_LISTED] = 16;
  text out;
  text_init(&out);
  write_request(&resolved, o, dims, &out);
  return cli_output_product(&out, EXIT_FINE);
}

static int tensors_verb(cli *c) {
  spec_file file;
  diags d;
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &file, &d);
  int code;
  if (status != HD_OK) {
    code = cli_fail(c, c->arguments[0], &file, &d, status);
  } else {
    cli_complain(c->arguments[0], &file, &d);
    diags_finish(&d);
    code = tensors_of(c, &file);
  }
  spec_file_finish(&file);
  return code;
}

static const cli_option tensors_options[] = {
    {"kernel", 0, OPTION_TEXT, "KERNEL", "write or decode (default: decode, where the spec has both)", 0, 0},
    {"target", 0, OPTION_TEXT, "TARGET", "whose dialect fp8_e4m3 means (default: the spec's first target)", 0,
     0},
    {"pages", 0, OPTION_INT, "N", "pages of the cache (default: 64)", 1, INT32_MAX},
    {"kv-heads", 0, OPTION_INT, "N", "kv heads, where the layout has them (default: 2)", 1, 1 << 20},
    {"seqs", 0, OPTION_INT, "N", "sequences (default: 4)", 1, 1 << 20},
    {"json", 0, OPTION_FLAG, NULL, "it is JSON in any case", 0, 0},
    OPTION_ROW_END,
};

const cli_verb verb_tensors = {
    .name = "tensors",
    .arguments = "SPEC",
    .summary = "print the tensors that a spec's kernels take, as JSON for match, view and new",
    .details = "Shapes and number formats for so many pages, heads and sequences, dense. docs/match.md has "
               "the form,\n"
               "which also takes strides.\n",
    .examples = "  heddle tensors minimax-m3-dense-fp8 --pages 100 --kv-heads 1\n"
                "  heddle tensors my.yaml | heddle match --request - --target gfx950 my.yaml\n",
    .result = "0 fine, 1 the spec is not valid, 2 usage, 3 failure",
    .options = tensors_options,
    .fewest = 1,
    .most = 1,
    .run = tensors_verb,
};
