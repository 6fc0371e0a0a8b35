/* check, key, diff: what a spec means. */
#include "target_declines.h"
#include "verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMN = 7 };

/* What the generator says of one spec: for each target, which operations it serves. */
typedef struct served {
  text names[OPERATION_COUNT]; /* the targets that serve it, space-separated */
  target_declines declines[OPERATION_COUNT];
} served;

static void ask_generator(const spec *s, const target_list *targets, served *out) {
  const diags none = {0};
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    if (!contract_has_operation(&s->contract, o)) continue;
    for (int t = 0; t < targets->count; t++) {
      variant v = {0};
      diags why;
      diags_init(&why);
      bool fine = emit_check(&s->contract, o, &v, targets->items[t], &why) == HD_OK;
      if (fine) text_addf(&out->names[o], "%s%s", out->names[o].length ? " " : "", targets->items[t]->name);
      target_declines_add(&out->declines[o], targets->items[t], fine ? &none : &why);
      diags_finish(&why);
    }
  }
}

static void write_served_json(const served *s, text *out, bool *first) {
  json_key(out, first, "served");
  text_add(out, "{");
  bool first_operation = true;
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    json_key(out, &first_operation, operation_name(o));
    text_add(out, "[");
    char *names = strdup(text_string(&s->names[o])), *rest = names;
    bool first_name = true;
    for (char *name; names && (name = strtok_r(rest, " ", &rest));) {
      if (!first_name) text_add(out, ", ");
      first_name = false;
      text_add_json(out, name);
    }
    free(names);
    text_add(out, "]");
  }
  text_add(out, "}");
}

/* Checks one file; adds a line or a JSON object to `out`. */
static int check_file(const cli *c, const char *path, text *out) {
  spec_file file;
  diags d;
  served serves = {0};
  target_list targets = {0};
  int code = EXIT_FINE;
  diags_init(&d);
  for (operation o = 0; o < OPERATION_COUNT; o++)
    target_declines_init(&serves.declines[o]);
  hd_status status = spec_file_read(path, &file, &d);
  if (status == HD_OK && !cli_flag(c, "syntax")) {
    code = cli_targets(c, &file.spec, &targets);
    if (code == EXIT_FINE) ask_generator(&file.spec, &targets, &serves);
    /* A target that the spec or the caller names has to serve; of "every target", one is enough. */
    for (operation o = 0; o < OPERATION_COUNT; o++) {
      bool none = serves.names[o].length == 0, bad = diags_errors(&serves.declines[o].all) > 0;
      bool good = !bad || (!targets.named && !none);
      target_declines_write(&serves.declines[o], good ? DIAG_NOTE : DIAG_ERROR, &d);
      if (!good) status = HD_DECLINED;
    }
  }
  if (code != EXIT_USAGE) code = cli_exit_code(status);
  char key[65] = "";
  if (file.parsed && contract_key(&file.spec.contract, key) != HD_OK) code = EXIT_FAILED;
  cli_complain(path, file.source ? &file : NULL, &d);
  cli_hint(c, path, &d);
  if (c->json) {
    bool first = true;
    text_add(out, "{");
    json_text(out, &first, "file", path);
    json_bool(out, &first, "ok", code == EXIT_FINE);
    json_text(out, &first, "name", file.parsed ? file.spec.name : "");
    json_text(out, &first, "key", key);
    write_served_json(&serves, out, &first);
    json_key(out, &first, "diagnostics");
    diags_render_json(&d, out);
    text_add(out, "}");
  } else if (code == EXIT_FINE) {
    text_addf(out, "%s: fine, contract %.12s\n", path, key);
    for (operation o = 0; o < OPERATION_COUNT; o++)
      if (serves.names[o].length)
        text_addf(out, "  %s:%*s%s\n", operation_name(o), NAME_COLUMN - (int)strlen(operation_name(o)), "",
                  text_string(&serves.names[o]));
  }
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    text_finish(&serves.names[o]);
    target_declines_finish(&serves.declines[o]);
  }
  diags_finish(&d);
  spec_file_finish(&file);
  return code;
}

static int check(cli *c) {
  text out;
  text_init(&out);
  int worst = EXIT_FINE;
  if (c->json) text_add(&out, "[");
  for (int i = 0; i < c->argument_count; i++) {
    if (c->json && i > 0) text_add(&out, ",\n ");
    int code = check_file(c, c->arguments[i], &out);
    if (code > worst) worst = code;
    if (code == EXIT_USAGE) break;
  }
  if (c->json) text_add(&out, "]\n");
  if (worst == EXIT_USAGE) text_clear(&out);
  return cli_output(&out, worst);
}

static const cli_option check_options[] = {
    OPTION_ROW_TARGET,
    {"syntax", 0, OPTION_FLAG, NULL, "check the spec alone, not whether the targets serve it", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_check = {
    .name = "check",
    .arguments = "SPEC...",
    .summary = "say whether specs are valid and which targets serve them",
    .details = "All errors of a file are shown, each with its line. Nothing is compiled. SPEC may be - for\n"
               "standard input, here and everywhere else.\n",
    .examples = "  heddle check specs/minimax-m3-dense-fp8.yaml\n"
                "  heddle check --target gfx1250 --json specs/*.yaml\n",
    .result = "0 valid and served, 1 an error or a decline, 2 usage, 3 failure",
    .options = check_options,
    .fewest = 1,
    .most = -1,
    .run = check,
};

static int key(cli *c) {
  const char *path = c->arguments[0];
  spec_file file;
  diags d;
  text out, canonical;
  text_init(&out);
  text_init(&canonical);
  diags_init(&d);
  hd_status status = spec_file_read(path, &file, &d);
  char hex[65] = "";
  if (status == HD_OK) status = contract_key(&file.spec.contract, hex);
  int code;
  if (status != HD_OK) {
    code = cli_fail(c, path, &file, &d, status);
    text_finish(&out);
  } else {
    cli_complain(path, &file, &d);
    diags_finish(&d);
    contract_write(&file.spec.contract, &canonical);
    if (canonical.failed) out.failed = true;
    if (c->json) {
      bool first = true;
      text_add(&out, "{");
      json_text(&out, &first, "file", path);
      json_text(&out, &first, "name", file.spec.name);
      json_text(&out, &first, "key", hex);
      json_text(&out, &first, "canonical", text_string(&canonical));
      text_add(&out, "}\n");
    } else if (cli_flag(c, "quiet")) {
      text_addf(&out, "%s\n", hex);
    } else if (cli_flag(c, "text")) {
      text_add(&out, text_string(&canonical));
    } else {
      text_addf(&out, "%s", text_string(&canonical));
      if (canonical.length && canonical.data[canonical.length - 1] != '\n') text_add(&out, "\n");
      text_addf(&out, "\nsha256: %s\n", hex);
    }
    code = cli_output_product(&out, EXIT_FINE);
  }
  text_finish(&canonical);
  spec_file_finish(&file);
  return code;
}

static const cli_option key_options[] = {
    {"quiet", 'q', OPTION_FLAG, NULL, "print the key alone", 0, 0},
    {"text", 't', OPTION_FLAG, NULL, "print the canonical text alone, the bytes that are hashed", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_key = {
    .name = "key",
    .arguments = "SPEC",
    .summary = "print a spec's contract in canonical form, and its key",
    .details = "Two specs with the same key share caches, kernels and tuning. Name, targets, split and tune "
               "are not\n"
               "part of the contract.\n",
    .examples = "  heddle key specs/minimax-m3-dense-fp8.yaml\n"
                "  heddle key -q specs/minimax-m3-dense-fp8.yaml\n"
                "  heddle key --text specs/minimax-m3-dense-fp8.yaml | sha256sum\n",
    .result = "0 fine, 1 the spec is not valid, 2 usage, 3 failure",
    .options = key_options,
    .fewest = 1,
    .most = 1,
    .run = key,
};

/* One line of contract_diff: "field: a → b". */
static void write_difference_json(const char *line, size_t length, bool *first, text *out) {
  static const char arrow[] = " \xe2\x86\x92 ";
  char *copy = strndup(line, length);
  if (!copy) {
    out->failed = true;
    return;
  }
  char *before = strstr(copy, ": ");
  char *after = before ? strstr(before, arrow) : NULL;
  if (before) *before = 0, before += 2;
  if (after) *after = 0, after += sizeof arrow - 1;
  if (!*first) text_add(out, ", ");
  *first = false;
  bool first_member = true;
  text_add(out, "{");
  json_text(out, &first_member, "field", copy);
  json_text(out, &first_member, "a", before ? before : "");
  json_text(out, &first_member, "b", after ? after : "");
  text_add(out, "}");
  free(copy);
}

static void write_diff_json(const char *lines, char keys[2][65], text *out) {
  bool first = true, first_difference = true;
  text_add(out, "{");
  json_bool(out, &first, "same", strcmp(keys[0], keys[1]) == 0);
  json_text(out, &first, "a", keys[0]);
  json_text(out, &first, "b", keys[1]);
  json_key(out, &first, "differences");
  text_add(out, "[");
  for (const char *line = lines; *line;) {
    size_t length = strcspn(line, "\n");
    if (length) write_difference_json(line, length, &first_difference, out);
    line += length + (line[length] == '\n');
  }
  text_add(out, "]}\n");
}

static int diff(cli *c) {
  spec_file files[2] = {0};
  char keys[2][65] = {"", ""};
  for (int i = 0; i < 2; i++) {
    diags d;
    diags_init(&d);
    hd_status status = spec_file_read(c->arguments[i], &files[i], &d);
    if (status == HD_OK) status = contract_key(&files[i].spec.contract, keys[i]);
    if (status != HD_OK) {
      int code = cli_fail(c, c->arguments[i], &files[i], &d, status);
      spec_file_finish(&files[0]);
      spec_file_finish(&files[1]);
      return code;
    }
    cli_complain(c->arguments[i], &files[i], &d);
    diags_finish(&d);
  }
  text lines, out;
  text_init(&lines);
  text_init(&out);
  size_t count = contract_diff(&files[0].spec.contract, &files[1].spec.contract, &lines);
  if (lines.failed) out.failed = true;
  if (c->json)
    write_diff_json(text_string(&lines), keys, &out);
  else if (count == 0)
    text_addf(&out, "same contract: %s\n", keys[0]);
  else
    text_add(&out, text_string(&lines));
  text_finish(&lines);
  spec_file_finish(&files[0]);
  spec_file_finish(&files[1]);
  return cli_output(&out, count == 0 ? EXIT_FINE : EXIT_DECLINED);
}

static const cli_option diff_options[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_diff = {
    .name = "diff",
    .arguments = "SPEC SPEC",
    .summary = "say in which contract fields two specs differ",
    .details = NULL,
    .examples = "  heddle diff specs/minimax-m3-dense-fp8.yaml specs/minimax-m3-sparse-fp8.yaml\n",
    .result = "0 the same contract, 1 they differ or a spec is not valid, 2 usage, 3 failure",
    .options = diff_options,
    .fewest = 2,
    .most = 2,
    .run = diff,
};
