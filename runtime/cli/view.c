/* view: the same memory under another contract, as shapes and strides, or why not. */
#include "verbs.h"
#include "request.h"
#include "../launch/strides.h"
#include "../match/views.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Everything the verb holds while it works. */
typedef struct view_run {
  spec_file file;
  match_description description;
  view view;
} view_run;

static const char *const meanings[] = {
    [VIEW_SAME_BYTES] = "same-bytes", [VIEW_SAME_STORAGE] = "same-storage"};

/* Pages first: parts of a page are pages of every head. */
static hd_status make_view(const cli *c, view_run *r, diags *d) {
  const contract *terms = &r->file.spec.contract;
  view_meaning wanted = cli_flag(c, "same-storage") ? VIEW_SAME_STORAGE : VIEW_SAME_BYTES;
  view v = {.contract = *terms,
            .tensors = r->description.request.tensors,
            .meaning = VIEW_SAME_BYTES,
            .parts = 1,
            .heads = 1};
  hd_status status = HD_OK;
  int64_t page = cli_int(c, "page", 0);
  if (page > 0) status = view_page_split(terms, &v.tensors, (int)page, wanted, &v, d);
  if (status == HD_OK && cli_flag(c, "collapse-heads")) {
    view collapsed;
    status = view_collapse_heads(&v.contract, &v.tensors, &collapsed, d);
    if (status == HD_OK) {
      collapsed.parts = v.parts;
      if (v.meaning == VIEW_SAME_STORAGE) collapsed.meaning = VIEW_SAME_STORAGE;
      v = collapsed;
    }
  }
  r->view = v;
  return status;
}

static void add_shape(const tensor *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(out, "]");
}

/* (page * 8 + part) * 4 + kv_head, as far as there are parts and heads. */
static void add_page_id(const view *v, text *out) {
  bool parts = v->parts > 1, heads = v->heads > 1;
  text_addf(out, "%spage", parts && heads ? "(" : "");
  if (parts) text_addf(out, " * %" PRId64 " + part%s", v->parts, heads ? ")" : "");
  if (heads) text_addf(out, " * %" PRId64 " + kv_head", v->heads);
}

static bool is_absent(const view_run *r, int name) {
  return r->description.request.tensors.present[name] && !r->view.tensors.present[name];
}

static void write_table(const view_run *r, const char *key, text *out) {
  text_addf(out, "%s viewed: %s, contract %.12s\n  page id: ", r->file.spec.name, meanings[r->view.meaning],
            key);
  add_page_id(&r->view, out);
  text_add(out, "\n");
  for (int i = 0; i < TENSOR_COUNT; i++) {
    const tensor *t = &r->view.tensors.by_name[i];
    if (is_absent(r, i))
      text_addf(out, "  %-13s has other values under the view\n", tensor_name_text((tensor_name)i));
    if (!r->view.tensors.present[i]) continue;
    text_addf(out, "  %-13s %s ", tensor_name_text((tensor_name)i), dtype_name(t->dtype));
    add_shape(t, out);
    text_add(out, " strides ");
    tensor_write_strides(t, out);
    text_add(out, "\n");
  }
}

static void write_tensor_json(const tensor *t, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "dtype", dtype_name(t->dtype));
  json_key(out, &first, "shape");
  add_shape(t, out);
  json_key(out, &first, "strides");
  tensor_write_strides(t, out);
  text_add(out, "}");
}

static void write_json(const view_run *r, const char *key, text *out) {
  bool first = true, first_tensor = true;
  text other;
  text_init(&other);
  text_add(out, "{");
  json_bool(out, &first, "ok", true);
  json_text(out, &first, "name", r->file.spec.name);
  json_text(out, &first, "meaning", meanings[r->view.meaning]);
  json_int(out, &first, "parts", r->view.parts);
  json_int(out, &first, "heads", r->view.heads);
  add_page_id(&r->view, &other);
  json_text(out, &first, "page_id", text_string(&other));
  text_clear(&other);
  contract_write(&r->view.contract, &other);
  json_text(out, &first, "key", key);
  json_text(out, &first, "canonical", text_string(&other));
  json_key(out, &first, "tensors");
  text_add(out, "{");
  for (int i = 0; i < TENSOR_COUNT; i++) {
    if (!r->view.tensors.present[i]) continue;
    json_key(out, &first_tensor, tensor_name_text((tensor_name)i));
    write_tensor_json(&r->view.tensors.by_name[i], out);
  }
  text_add(out, "}");
  json_key(out, &first, "absent");
  text_add(out, "[");
  const char *separator = "";
  for (int i = 0; i < TENSOR_COUNT; i++) {
    if (!is_absent(r, i)) continue;
    text_addf(out, "%s\"%s\"", separator, tensor_name_text((tensor_name)i));
    separator = ", ";
  }
  text_add(out, "]}\n");
  if (other.failed) out->failed = true;
  text_finish(&other);
}

static int run_view(const cli *c, view_run *r) {
  char key[65];
  diags d;
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &r->file, &d);
  if (status != HD_OK) return cli_fail(c, c->arguments[0], &r->file, &d, status);
  int code = cli_request(c, &r->description);
  if (code != EXIT_FINE) {
    diags_finish(&d);
    return code;
  }
  status = make_view(c, r, &d);
  if (status == HD_OK) status = contract_key(&r->view.contract, key);
  if (status != HD_OK) return cli_fail(c, c->arguments[0], &r->file, &d, status);
  diags_finish(&d);
  text out;
  text_init(&out);
  (c->json ? write_json : write_table)(r, key, &out);
  return cli_output(&out, EXIT_FINE);
}

static int view_verb(cli *c) {
  if (!cli_text(c, "request")) return cli_usage(c, "--request is missing");
  if (!cli_flag(c, "collapse-heads") && cli_int(c, "page", 0) == 0)
    return cli_usage(c, "--page or --collapse-heads is missing: what is the view to change?");
  view_run *r = calloc(1, sizeof *r);
  if (!r) return EXIT_FAILED;
  int code = run_view(c, r);
  spec_file_finish(&r->file);
  free(r);
  return code;
}

static const cli_option view_options[] = {
    OPTION_ROW_REQUEST,
    {"page", 0, OPTION_INT, "N", "pages of N tokens where the spec has longer ones", 1, 1 << 20},
    {"collapse-heads", 0, OPTION_FLAG, NULL, "each kv head of a page as a page of its own", 0, 0},
    {"same-storage", 0, OPTION_FLAG, NULL, "the view's own writer fills what is read through it", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_view = {
    .name = "view",
    .arguments = "SPEC",
    .summary = "show a cache's memory under another contract: shapes, strides, key",
    .details =
        "Nothing is copied and no tensor is read. A view keeps the bytes' meaning; with --same-storage it "
        "may\n"
        "give the storage another one, and then only what was written through the view is read through it\n"
        "(docs/match.md, Views). With both changes pages are split before heads are collapsed.\n",
    .examples =
        "  heddle view specs/minimax-m3-dense-fp8.yaml --request tensors.json --page 16 --same-storage\n"
        "  heddle view mine.yaml --request - --collapse-heads --json < tensors.json\n",
    .result = "0 the view, 1 declined, or the request or spec is not valid, 2 usage, 3 failure",
    .options = view_options,
    .fewest = 1,
    .most = 1,
    .run = view_verb,
};
