/* match: which of several specs serves an engine's tensors, or why none does. */
#include "verbs.h"
#include "console.h"
#include "match_hint.h"
#include "request.h"
#include "tuned_launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything the verb holds while it works. */
typedef struct match_run {
  int count, better_count;
  spec_file *files;
  match_candidate *candidates;
  match_answer *answers;
  const char *better_than[16];
  match_description description;
  bool launch_known; /* --tuned, and the chosen spec's decode */
  tune_files tuned;
  tuned_launch launch;
} match_run;

static void write_decline_json(const diag *d, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "code", d->code);
  json_text(out, &first, "field", d->field ? d->field : "");
  json_text(out, &first, "found", d->found ? d->found : "");
  json_text(out, &first, "allowed", d->allowed ? d->allowed : "");
  json_text(out, &first, "message", d->message);
  text_add(out, "}");
}

static void write_answer_json(const match_run *m, int i, text *out) {
  const match_answer *a = &m->answers[i];
  bool first = true;
  char key[65] = "";
  if (contract_key(m->candidates[i].contract, key) != HD_OK) out->failed = true;
  text_add(out, "{");
  json_text(out, &first, "file", m->files[i].path);
  json_text(out, &first, "name", m->candidates[i].name);
  json_text(out, &first, "key", key);
  json_bool(out, &first, "ok", a->status == HD_OK);
  if (a->status == HD_OK) {
    bool first_dim = true;
    json_key(out, &first, "dims");
    text_add(out, "{");
    for (int d = 0; d < DIM_COUNT; d++)
      json_int(out, &first_dim, dim_name((dim)d), a->dims[d]);
    text_add(out, "}");
  }
  json_key(out, &first, "declines");
  text_add(out, "[");
  for (size_t d = 0; d < a->declines.count; d++) {
    if (d > 0) text_add(out, ", ");
    write_decline_json(&a->declines.items[d], out);
  }
  text_add(out, "]}");
}

static void write_json(const match_run *m, const char *target_name, int chosen, text *out) {
  bool first = true;
  text_add(out, "{");
  json_bool(out, &first, "ok", chosen >= 0);
  json_text(out, &first, "target", target_name);
  json_text(out, &first, "operation", operation_name(m->description.request.operation));
  json_key(out, &first, "chosen");
  if (chosen >= 0)
    text_addf(out, "%d", chosen);
  else
    text_add(out, "null");
  if (m->launch_known) {
    bool inner = true;
    json_key(out, &first, "launch");
    text_add(out, "{");
    tuned_launch_json(&m->launch, &m->tuned, &inner, out);
    text_add(out, "}");
  }
  json_key(out, &first, "answers");
  text_add(out, "[");
  for (int i = 0; i < m->count; i++) {
    if (i > 0) text_add(out, ",\n ");
    write_answer_json(m, i, out);
  }
  text_add(out, "]}\n");
}

enum { CELLS = 4 };

static void cells_of(const diag *d, const char *cells[CELLS]) {
  cells[0] = d->code;
  cells[1] = d->field ? d->field : "";
  cells[2] = d->found ? d->found : "";
  cells[3] = d->allowed ? d->allowed : d->message;
}

/* A table of declines, every column as wide as it needs to be. */
static void write_table(const match_answer *a, text *out) {
  static const char *const heads[CELLS] = {"code", "field", "found", "allowed"};
  size_t widths[CELLS];
  const char *cells[CELLS];
  for (int i = 0; i < CELLS; i++)
    widths[i] = strlen(heads[i]);
  for (size_t d = 0; d < a->declines.count; d++) {
    cells_of(&a->declines.items[d], cells);
    for (int i = 0; i < CELLS; i++)
      if (strlen(cells[i]) > widths[i]) widths[i] = strlen(cells[i]);
  }
  for (size_t d = 0; d <= a->declines.count; d++) {
    if (d == 0)
      memcpy(cells, heads, sizeof cells);
    else
      cells_of(&a->declines.items[d - 1], cells);
    text_add(out, " ");
    for (int i = 0; i + 1 < CELLS; i++)
      text_addf(out, " %-*s ", (int)widths[i], cells[i]);
    text_addf(out, " %s\n", cells[CELLS - 1]);
  }
}

static void write_choice(const match_run *m, const char *target_name, int chosen, text *out) {
  const match_answer *a = &m->answers[chosen];
  char key[65] = "";
  if (contract_key(m->candidates[chosen].contract, key) != HD_OK) out->failed = true;
  text_addf(out, "%s: %s serves %s on %s, contract %.12s\n ", m->files[chosen].path,
            m->candidates[chosen].name, operation_name(m->description.request.operation), target_name, key);
  for (int d = 0; d < DIM_COUNT; d++)
    if (a->dims[d] != 0) text_addf(out, " %s=%lld", dim_name((dim)d), (long long)a->dims[d]);
  text_add(out, "\n");
  if (m->launch_known) tuned_launch_write(&m->launch, &m->tuned, out);
}

static int read_specs(const cli *c, match_run *m) {
  int worst = EXIT_FINE;
  for (; m->count < c->argument_count; m->count++) {
    spec_file *f = &m->files[m->count];
    diags d;
    diags_init(&d);
    hd_status status = spec_file_read(c->arguments[m->count], f, &d);
    cli_complain(f->path, f->source ? f : NULL, &d);
    diags_finish(&d);
    if (cli_exit_code(status) > worst) worst = cli_exit_code(status);
    if (status != HD_OK) continue;
    m->candidates[m->count] = match_candidate_of(&f->spec);
    m->candidates[m->count].better_than = m->better_than;
    m->candidates[m->count].better_count = m->better_count;
  }
  return worst;
}

/* What the tuned records make of the choice. A launch knows the tokens of its longest sequence, or what a row
 * of the page table has room for; of the others' lengths a request says nothing. */
static hd_status ask_records(const cli *c, match_run *m, int chosen, diags *d) {
  const match_request *r = &m->description.request;
  const int64_t *dims = m->answers[chosen].dims;
  const spec *s = &m->files[chosen].spec;
  const target *t = target_find(cli_text(c, "target"));
  if (!cli_text(c, "tuned") || !operation_attends(r->operation) || !t) return HD_OK;
  const contract resolved = contract_resolve(&s->contract, t->fp8);
  const int64_t room = bind_capacity(&resolved, &r->tensors, dims);
  const tuned_question q = {
      .contract = &resolved,
      .factors = &s->split_factors,
      .target = t,
      .shape = {dims[DIM_SEQS], r->longest > 0 ? r->longest : room, dims[DIM_KV_HEADS], (int)dims[DIM_ROWS],
                false},
      .splits = r->splits,
  };
  hd_status status = cli_tuned_load(c, m->files[chosen].path, &m->tuned, d);
  if (status == HD_OK) status = tuned_launch_of(&q, &m->tuned, &m->launch, d);
  m->launch_known = status == HD_OK;
  return status;
}

static int report_match(const cli *c, const match_run *m, int chosen, bool failed) {
  const char *target_name = cli_text(c, "target");
  text out;
  text_init(&out);
  out.failed = failed;
  if (c->json)
    write_json(m, target_name, chosen, &out);
  else if (chosen >= 0)
    write_choice(m, target_name, chosen, &out);
  for (int i = 0; i < m->count && chosen < 0 && !c->json; i++) {
    text_addf(&out, "%s: %s declines\n", m->files[i].path, m->candidates[i].name);
    write_table(&m->answers[i], &out);
  }
  return cli_output(&out, chosen >= 0 ? EXIT_FINE : EXIT_DECLINED);
}

/* What to type next. */
static void hint(const cli *c, const match_run *m) {
  const char *request = cli_text(c, "request");
  const char *code = match_hint_code(m->answers, m->count, &m->description.request.tensors);
  if (code)
    fprintf(stderr, "try: heddle explain %s\n", code);
  else if (strcmp(request, "-") != 0)
    fprintf(stderr, "try: heddle new --from %s\n", request);
}

static int ask(const cli *c, match_run *m) {
  diags d;
  int chosen = -1, code;
  hd_status status = match_best(&m->description.request, m->candidates, m->count, cli_text(c, "target"),
                                m->answers, &chosen);
  const bool failed = status != HD_OK && status != HD_DECLINED;
  diags_init(&d);
  status = chosen >= 0 ? ask_records(c, m, chosen, &d) : HD_OK;
  if (status == HD_OK)
    code = report_match(c, m, chosen, failed);
  else
    code = cli_fail(c, m->files[chosen].path, NULL, &d, status);
  diags_finish(&d);
  if (chosen < 0 && !console_quiet()) hint(c, m);
  match_answers_finish(m->answers, m->count);
  return code;
}

static int match(cli *c) {
  if (!cli_text(c, "request")) return cli_usage(c, "--request is missing");
  if (!cli_text(c, "target")) return cli_usage(c, "--target is missing");
  match_run *m = calloc(1, sizeof *m);
  size_t specs = (size_t)c->argument_count;
  int code = EXIT_FAILED;
  if (m) {
    m->files = calloc(specs, sizeof *m->files);
    m->candidates = calloc(specs, sizeof *m->candidates);
    m->answers = calloc(specs, sizeof *m->answers);
    while (m->better_count < 16 && cli_list(c, "better-than", m->better_count)) {
      m->better_than[m->better_count] = cli_list(c, "better-than", m->better_count);
      m->better_count++;
    }
  }
  if (m && m->files && m->candidates && m->answers) {
    code = read_specs(c, m);
    if (code == EXIT_FINE) code = cli_request(c, &m->description);
    if (code == EXIT_FINE) code = ask(c, m);
    for (int i = 0; i < m->count; i++)
      spec_file_finish(&m->files[i]);
  }
  if (m) {
    free(m->files);
    free(m->candidates);
    free(m->answers);
    tune_files_finish(&m->tuned);
  }
  free(m);
  return code;
}

static const cli_option match_options[] = {
    OPTION_ROW_REQUEST,
    {"target", 0, OPTION_TEXT, "ARCHITECTURE", "the device's architecture", 0, 0},
    {"better-than", 0, OPTION_LIST, "INCUMBENT",
     "these specs are known to beat INCUMBENT, a request's incumbent", 0, 0},
    OPTION_ROW_TUNED,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_match = {
    .name = "match",
    .arguments = "SPEC...",
    .summary = "say which spec serves an engine's tensors, or why none does",
    .details =
        "Nothing is compiled. Of the specs that serve, the one with the fewest query rows is used, then the\n"
        "first. Where none does, each says why: code, field, what was found, what is allowed\n"
        "(docs/declines.md has causes and cures). With --tuned it also says which variant and split a "
        "decode\n"
        "would be launched with, and which record says so.\n",
    .examples = "  heddle match --request tensors.json --target gfx950 specs/*.yaml\n"
                "  heddle match --request tensors.json --target sm_90 --tuned specs/tuned specs/*.yaml\n"
                "  heddle match --request - --target gfx1250 --json mine.yaml < tensors.json\n",
    .result = "0 a spec serves, 1 all decline, or the request or a spec is not valid, 2 usage, 3 failure",
    .options = match_options,
    .environment = ENV_TEMPLATES,
    .fewest = 1,
    .most = -1,
    .run = match,
};
