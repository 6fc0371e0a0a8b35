/* new: a commented spec from a few answers, or from an engine's tensors. */
#include "../console.h"
#include "../request.h"
#include "../target_declines.h"
#include "../verbs.h"
#include "ask.h"
#include "fits.h"
#include "infer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything the verb holds while it works. */
typedef struct making {
  const cli *c;
  draft draft;
  text layout; /* the name of one, "": none */
  match_description description;
  bool has_tensors;
  text yaml;
  spec spec;
  bool parsed;
  diags declines; /* of the tensors, by the spec that was made of them */
  fits fits;
} making;

/* ---- What the fields are ---- */

/* "576,512" for keys and values. */
static void set_pair(draft *d, field_id field, const char *value) {
  const char *comma = strchr(value, ',');
  if (comma && value[0] != '{')
    draft_set(d, field, SOURCE_GIVEN, NULL, "{k: %.*s, v: %s}", (int)(comma - value), value, comma + 1);
  else
    draft_set(d, field, SOURCE_GIVEN, NULL, "%s", value);
}

static void take_options(making *m) {
  text targets;
  text_init(&targets);
  for (int i = 0; i < FIELD_COUNT; i++) {
    const char *option = draft_option((field_id)i), *value = option ? cli_text(m->c, option) : NULL;
    if (!value) continue;
    const char *comma = strchr(value, ',');
    if (i == FIELD_HEAD_DIM && comma && value[0] != '{')
      draft_set(&m->draft, FIELD_HEAD_DIM, SOURCE_GIVEN, NULL, "{qk: %.*s, v: %s}", (int)(comma - value),
                value, comma + 1);
    else if (i == FIELD_KV_DTYPE || i == FIELD_GROUP)
      set_pair(&m->draft, (field_id)i, value);
    else
      draft_set(&m->draft, (field_id)i, SOURCE_GIVEN, NULL, "%s", value);
  }
  for (int i = 0; cli_list(m->c, "target", i); i++)
    text_addf(&targets, "%s%s", i > 0 ? ", " : "", cli_list(m->c, "target", i));
  if (targets.length > 0)
    draft_set(&m->draft, FIELD_TARGETS, SOURCE_GIVEN, NULL, "[%s]", text_string(&targets));
  if (cli_text(m->c, "layout")) text_add(&m->layout, cli_text(m->c, "layout"));
  text_finish(&targets);
}

/* What a spec can't be without, as options say it. */
static const struct {
  field_id field;
  const char *option;
} required[] = {
    {FIELD_K, "layout"},          {FIELD_KV_DTYPE, "kv-dtype"},         {FIELD_PAGE, "page"},
    {FIELD_HEAD_DIM, "head-dim"}, {FIELD_HEADS_PER_KV, "heads-per-kv"},
};

/* The first option that is missing, or NULL. */
static const char *missing_option(const making *m) {
  for (size_t i = 0; i < sizeof required / sizeof *required; i++)
    if (!draft_has(&m->draft, required[i].field) && (required[i].field != FIELD_K || m->layout.length == 0))
      return required[i].option;
  return NULL;
}

static bool is_coded(const draft *d) {
  const char *format = draft_value(d, FIELD_KV_DTYPE);
  return strstr(format, "fp8") || strstr(format, "int8");
}

static void set_named_layout(making *m) {
  text k, v;
  text_init(&k);
  text_init(&v);
  if (m->layout.length > 0 && layout_named(text_string(&m->layout), is_coded(&m->draft) ? 1 : 2, &k, &v)) {
    draft_set(&m->draft, FIELD_K, SOURCE_GIVEN, NULL, "%s", text_string(&k));
    draft_set(&m->draft, FIELD_V, SOURCE_GIVEN, NULL, "%s", text_string(&v));
  }
  text_finish(&k);
  text_finish(&v);
}

/* What nobody said, with a comment that says what else it could be. */
static void assume(making *m) {
  static const struct {
    field_id field;
    const char *value, *note;
  } plain[] = {
      {FIELD_QUERY_DTYPE, "bf16", "assumed; fp16 is the other one"},
      {FIELD_ROWS, "1", "assumed; up to 8 query rows a sequence"},
      {FIELD_FORM, "table", "assumed; indptr, blocks and tokens are others"},
      {FIELD_WINDOW, "none", "assumed; a number is a sliding window in tokens"},
      {FIELD_SINKS, "none", "assumed; per_head is a sink logit for each query head"},
      {FIELD_LOGITS_SCALE, "argument", "assumed; rsqrt_d and a number fix it"},
      {FIELD_SOFTCAP, "none", "assumed; a number caps the logits"},
      {FIELD_LSE, "false", "assumed; true returns the log-sum-exp too"},
  };
  draft *d = &m->draft;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    draft_set(d, plain[i].field, SOURCE_ASSUMED, plain[i].note, "%s", plain[i].value);
  draft_set(d, FIELD_OUTPUT_DTYPE, SOURCE_ASSUMED, "assumed: that of the query", "%s",
            draft_value(d, FIELD_QUERY_DTYPE));
  if (strcmp(draft_value(d, FIELD_FORM), "blocks") == 0)
    draft_set(d, FIELD_BLOCK, SOURCE_ASSUMED, "assumed: tokens of a listed block", "128");
  if (draft_has(d, FIELD_K) && !draft_has(d, FIELD_V))
    draft_set(d, FIELD_V, SOURCE_ASSUMED, "assumed: as K", "%s", draft_value(d, FIELD_K));
  if (is_coded(d) && !draft_has(d, FIELD_GRANULARITY)) {
    bool seen = m->has_tensors; /* and they have no scales */
    draft_set(d, FIELD_GRANULARITY, SOURCE_ASSUMED,
              seen ? "assumed: there is no k_scale" : "assumed: a scale for each token and head", "%s",
              seen ? "none" : "token_head");
  }
  const char *scale = draft_value(d, FIELD_GRANULARITY);
  if (strcmp(scale, "token") == 0 || strcmp(scale, "token_head") == 0 || strcmp(scale, "group") == 0)
    draft_set(d, FIELD_WRITER, SOURCE_ASSUMED,
              "assumed: what the producer stores; docs/spec.md has other rules",
              "{amax_floor: 0, zero_row: 1.0, qmax: dialect}");
}

/* The file's, where there is one. */
static void set_name(making *m) {
  const char *path = cli_text(m->c, "output");
  const char *slash = path ? strrchr(path, '/') : NULL, *file = slash ? slash + 1 : path;
  size_t length = file ? strcspn(file, ".") : 0;
  if (length > 0 &&
      strspn(file, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") >= length)
    draft_set(&m->draft, FIELD_NAME, SOURCE_ASSUMED, NULL, "%.*s", (int)length, file);
  else
    draft_set(&m->draft, FIELD_NAME, SOURCE_ASSUMED, NULL, "my-cache");
}

/* ---- What is said about it ---- */

static void list_names(const char *const *names, int count, text *out) {
  for (int i = 0; i < count; i++)
    text_addf(out, "%s%s", i > 0 ? ", " : "", names[i]);
}

static void list_differences(const char *lines, text *out) {
  for (bool first = true; *lines; first = false) {
    size_t field = strcspn(lines, ":"), length = strcspn(lines, "\n");
    text_addf(out, "%s%.*s", first ? "" : ", ", (int)field, lines);
    lines += length + (lines[length] == '\n');
  }
}

/* Whether it may be that a tensor's dimensions are in another order than memory's. */
static bool needs_axes(const diags *declines) {
  static const char *const codes[] = {"bind.shape", "bind.strides", "bind.page", "bind.head-dim",
                                      "bind.kv-heads"};
  for (size_t i = 0; i < declines->count; i++)
    for (size_t j = 0; j < sizeof codes / sizeof *codes; j++)
      if (strcmp(declines->items[i].code, codes[j]) == 0) return true;
  return false;
}

static void write_report(const making *m, const char *key, text *out) {
  const char *path = cli_text(m->c, "output");
  const fits *f = &m->fits;
  text_addf(out, "%s: contract %.12s\n", path ? path : m->spec.name, key);
  bool some = false;
  for (int i = 0; i < FIELD_COUNT; i++) {
    const draft_field *field = &m->draft.fields[i];
    if (field->source != SOURCE_ASSUMED || field->note.length == 0) continue;
    text_addf(out, "%s%s", some ? ", " : "  assumed, and to be looked at: ", draft_path((field_id)i));
    some = true;
  }
  if (some) text_add(out, "\n");
  if (f->same_count > 0) {
    text_add(out, "  shipped with the same contract: ");
    list_names(f->same, f->same_count, out);
    text_add(out, "\n");
  } else if (f->nearest) {
    text_addf(out, "  no shipped spec has this contract; the nearest is %s, which differs in ", f->nearest);
    list_differences(text_string(&f->differences), out);
    text_add(out, "\n");
  }
  if (m->has_tensors) {
    text_add(out, "  shipped and serving these tensors: ");
    list_names(f->serves, f->serves_count, out);
    text_add(out, f->serves_count > 0 ? "\n" : "none\n");
  }
  for (size_t i = 0; i < m->declines.count; i++)
    text_addf(out, "%s%s [%s]\n",
              i == 0 ? "  what a match of these tensors would still decline:\n    " : "    ",
              m->declines.items[i].message, m->declines.items[i].code);
  if (needs_axes(&m->declines))
    text_add(out, "    (\"axes\" of a tensor say what its dimensions are, where they aren't in the layout's "
                  "order: docs/match.md)\n");
  if (path) text_addf(out, "next: heddle check %s\n", path);
}

static void write_names_json(const char *const *names, int count, text *out) {
  text_add(out, "[");
  for (int i = 0; i < count; i++) {
    if (i > 0) text_add(out, ", ");
    text_add_json(out, names[i]);
  }
  text_add(out, "]");
}

static void write_json(const making *m, const char *key, text *out) {
  const char *path = cli_text(m->c, "output");
  bool first = true, some = false;
  text_add(out, "{");
  json_bool(out, &first, "ok", true);
  json_text(out, &first, "name", m->spec.name);
  json_text(out, &first, "key", key);
  json_text(out, &first, "file", path ? path : "");
  json_text(out, &first, "spec", text_string(&m->yaml));
  json_key(out, &first, "fields");
  text_add(out, "[");
  for (int i = 0; i < FIELD_COUNT; i++) {
    static const char *const sources[] = {"", "assumed", "tensors", "given"};
    const draft_field *field = &m->draft.fields[i];
    bool inner = true;
    if (field->source == SOURCE_NONE) continue;
    text_add(out, some ? ", {" : "{");
    json_text(out, &inner, "field", draft_path((field_id)i));
    json_text(out, &inner, "value", text_string(&field->value));
    json_text(out, &inner, "source", sources[field->source]);
    text_add(out, "}");
    some = true;
  }
  text_add(out, "]");
  json_key(out, &first, "same");
  write_names_json(m->fits.same, m->fits.same_count, out);
  if (m->fits.nearest) json_text(out, &first, "nearest", m->fits.nearest);
  if (m->has_tensors) {
    json_key(out, &first, "serves");
    write_names_json(m->fits.serves, m->fits.serves_count, out);
    json_key(out, &first, "declines");
    diags_render_json(&m->declines, out);
  }
  text_add(out, "}\n");
}

/* The spec goes where it was asked for, what is said about it beside it. */
static int deliver(making *m, const char *key, diags *d) {
  const char *path = cli_text(m->c, "output");
  text out;
  text_init(&out);
  if (path) {
    hd_status status = cli_write_text(path, &m->yaml, d);
    if (status != HD_OK) return cli_fail(m->c, path, NULL, d, status);
  }
  diags_finish(d);
  if (m->c->json) {
    write_json(m, key, &out);
    return cli_output_product(&out, EXIT_FINE);
  }
  write_report(m, key, &out);
  if (path) return cli_output(&out, EXIT_FINE);
  if (!console_quiet()) fputs(text_string(&out), stderr);
  text_clear(&out);
  text_add(&out, text_string(&m->yaml));
  return cli_output_product(&out, EXIT_FINE);
}

/* ---- The steps ---- */

static int fill(making *m, diags *d) {
  const char *missing;
  take_options(m);
  if (cli_text(m->c, "from")) {
    int code = cli_request_from(m->c, "from", &m->description);
    if (code != EXIT_FINE) return code;
    m->has_tensors = true;
    hd_status status = infer_from(&m->description.request, cli_int(m->c, "kv-heads", 0), &m->draft, d);
    if (status == HD_OK && (missing = missing_option(m))) {
      diags_errorf(d, "new.missing", NULL, "the tensors don't say it: --%s", missing);
      status = HD_DECLINED;
    }
    if (status != HD_OK) return cli_fail(m->c, cli_text(m->c, "from"), NULL, d, status);
  } else if ((missing = missing_option(m))) {
    if (!isatty(STDIN_FILENO))
      return cli_usage(m->c, "--%s is missing (on a terminal it would be asked for); or --from tensors.json",
                       missing);
    if (!ask_for_fields(&m->draft, &m->layout))
      return cli_usage(m->c, "the input ended before the last answer");
  }
  set_named_layout(m);
  assume(m);
  set_name(m);
  draft_write(&m->draft,
              m->has_tensors ? "Made by heddle new from an engine's tensors." : "Made by heddle new.",
              &m->yaml);
  return EXIT_FINE;
}

/* As heddle check judges: targets that were named have to serve it, of all others one. */
static hd_status check_served(const making *m, diags *d) {
  target_list targets;
  target_declines declines;
  int served = 0;
  if (cli_targets(m->c, &m->spec, &targets) != EXIT_FINE) return HD_INVALID;
  target_declines_init(&declines);
  for (int t = 0; t < targets.count; t++)
    for (operation o = 0; o < OPERATION_COUNT; o++) {
      variant v = {0};
      diags why;
      diags_init(&why);
      served += emit_check(&m->spec.contract, o, &v, targets.items[t], &why) == HD_OK;
      target_declines_add(&declines, targets.items[t], &why);
      diags_finish(&why);
    }
  bool good = targets.named ? diags_errors(&declines.all) == 0 : served > 0;
  if (!good) target_declines_write(&declines, DIAG_ERROR, d);
  target_declines_finish(&declines);
  return good ? HD_OK : HD_DECLINED;
}

static int make(making *m) {
  char key[65];
  diags d;
  diags_init(&d);
  int code = fill(m, &d);
  if (code != EXIT_FINE) {
    diags_finish(&d);
    return code;
  }
  hd_status status =
      m->yaml.failed ? HD_OUT_OF_MEMORY : spec_parse(text_string(&m->yaml), m->yaml.length, &m->spec, &d);
  m->parsed = status == HD_OK;
  if (status == HD_OK) status = check_served(m, &d);
  if (status == HD_OK) status = contract_key(&m->spec.contract, key);
  if (status == HD_OK)
    status = fits_find(&m->spec.contract, m->has_tensors ? &m->description.request : NULL, &m->fits);
  if (status == HD_OK && m->has_tensors)
    status = fits_declines(&m->spec, &m->description.request, &m->declines);
  if (status == HD_OK) return deliver(m, key, &d);
  spec_file made = {.path = "the spec", .source = m->yaml.data, .parsed = m->parsed};
  if (m->parsed) made.spec = m->spec;
  return cli_fail(m->c, made.path, &made, &d, status);
}

static int new_verb(cli *c) {
  const char *path = cli_text(c, "output");
  if (path && !cli_flag(c, "force") && access(path, F_OK) == 0)
    return cli_usage(c, "%s is there already: --force writes over it", path);
  making *m = calloc(1, sizeof *m);
  if (!m) return EXIT_FAILED;
  m->c = c;
  draft_init(&m->draft);
  text_init(&m->yaml);
  text_init(&m->layout);
  diags_init(&m->declines);
  int code = make(m);
  if (m->parsed) spec_finish(&m->spec);
  fits_finish(&m->fits);
  diags_finish(&m->declines);
  draft_finish(&m->draft);
  text_finish(&m->yaml);
  text_finish(&m->layout);
  free(m);
  return code;
}

static const cli_option new_options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", "where to write it (default: standard output)", 0, 0},
    {"force", 'f', OPTION_FLAG, NULL, "write over a file that is there", 0, 0},
    {"from", 0, OPTION_TEXT, "FILE", "the engine's tensors as JSON (docs/match.md); - is standard input", 0,
     0},
    {"kv-heads", 0, OPTION_INT, "N", "with --from: kv heads of the caches, where shapes leave it open", 1,
     1 << 20},
    {"name", 0, OPTION_TEXT, "NAME", "the spec's name (default: the file's)", 0, 0},
    {"layout", 0, OPTION_TEXT, "LAYOUT", "nhd, hnd, shuffled, classic or latent (docs/spec.md)", 0, 0},
    {"k", 0, OPTION_TEXT, "FACTORS", "another layout of K, such as '[b, h, d/16, s, d%16]'", 0, 0},
    {"v", 0, OPTION_TEXT, "FACTORS", "that of V; k: V lies in K", 0, 0},
    {"kv-dtype", 0, OPTION_TEXT, "DTYPE[,DTYPE]", "of the cache, or of K and of V", 0, 0},
    {"page", 0, OPTION_INT, "N", "tokens in a page", 1, 1 << 20},
    {"head-dim", 0, OPTION_TEXT, "N[,N]", "channels of a head, or of keys and of values", 0, 0},
    {"heads-per-kv", 0, OPTION_INT, "N", "query heads for each kv head", 1, 128},
    {"query-dtype", 0, OPTION_TEXT, "QUERY_DTYPE", "of queries, and of K and V before they are written", 0,
     0},
    {"rows", 0, OPTION_INT, "N", "most query rows a sequence (default: 1)", 1, 8},
    {"scale", 0, OPTION_TEXT, "GRANULARITY",
     "what shares a scale: none, tensor, head, token, token_head, page_head, group", 0, 0},
    {"group", 0, OPTION_TEXT, "N[,N]", "with --scale group: channels that share one", 0, 0},
    {"scale-source", 0, OPTION_TEXT, "SOURCE", "with --scale tensor: memory, or argument of each launch", 0,
     0},
    {"scale-dtype", 0, OPTION_TEXT, "SCALE_DTYPE", "fp32, fp16 or e8m0", 0, 0},
    {"k-scale", 0, OPTION_TEXT, "FACTORS", "where K's scales lie, such as '[b, h, s]'", 0, 0},
    {"v-scale", 0, OPTION_TEXT, "FACTORS", "where V's scales lie", 0, 0},
    {"writer", 0, OPTION_TEXT, "RULE",
     "what the writer stores, such as '{scale_floor: 1e-6, zero_row: floor}'", 0, 0},
    {"select", 0, OPTION_TEXT, "FORM", "how pages are given: table, indptr, blocks or tokens", 0, 0},
    {"block", 0, OPTION_INT, "N", "with --select blocks: tokens of a block", 1, 1 << 20},
    {"per", 0, OPTION_TEXT, "PER", "what has a list of its own: sequence, kv_head or row", 0, 0},
    {"causal", 0, OPTION_TEXT, "BOOL", "whether rows see no later ones: true or false", 0, 0},
    {"window", 0, OPTION_TEXT, "N|none", "tokens that a row sees", 0, 0},
    {"sinks", 0, OPTION_TEXT, "SINKS", "none or per_head", 0, 0},
    {"logits-scale", 0, OPTION_TEXT, "SCALE", "argument, rsqrt_d or a number", 0, 0},
    {"softcap", 0, OPTION_TEXT, "X|none", "cap of the logits", 0, 0},
    {"output-dtype", 0, OPTION_TEXT, "OUTPUT_DTYPE", "bf16, fp16 or fp32", 0, 0},
    {"lse", 0, OPTION_TEXT, "BOOL", "whether the log-sum-exp is returned too", 0, 0},
    {"target", 0, OPTION_LIST, "TARGET", "where to build; may be repeated (default: every target)", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_new = {
    .name = "new",
    .arguments = "",
    .summary = "write a commented spec, from a few answers or from an engine's tensors",
    .details = "On a terminal it asks for what it isn't told: how the cache lies in memory, its number "
               "format, page,\n"
               "channels and heads. With --from it reads them from shapes and strides. A comment says of "
               "every field\n"
               "where it is from; what was assumed is to be looked at. It also says which shipped specs fit "
               "already.\n",
    .examples = "  heddle new -o my.yaml\n"
                "  heddle new --layout nhd --kv-dtype fp8_e4m3 --page 16 --head-dim 128 --heads-per-kv 8 \\\n"
                "      --scale token_head -o my.yaml\n"
                "  heddle tensors minimax-m3-dense-fp8 > tensors.json && heddle new --from tensors.json\n",
    .result = "0 written, 1 declined or not valid, 2 usage, 3 failure",
    .options = new_options,
    .fewest = 0,
    .most = 0,
    .run = new_verb,
};
