/* explain: what a diagnostic code means, and what helps. */
#include "codes.h"
#include "console.h"
#include "verbs.h"
#include <stdio.h>
#include <string.h>

size_t code_count(void) {
  return code_row_count;
}

const char *code_name_at(size_t index) {
  return code_rows[index].code;
}

const code_row *code_find(const char *code) {
  for (size_t i = 0; i < code_row_count; i++)
    if (strcmp(code_rows[i].code, code) == 0) return &code_rows[i];
  return NULL;
}

static void write_row_json(const code_row *row, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "code", row->code);
  json_text(out, &first, "field", row->field);
  json_text(out, &first, "cause", row->cause);
  json_text(out, &first, "cure", row->cure);
  json_text(out, &first, "document", row->document);
  text_add(out, "}");
}

static void write_row(const code_row *row, text *out) {
  text_addf(out, "%s%s%s", console_paint_of(stdout, PAINT_STRONG), row->code,
            console_paint_of(stdout, PAINT_PLAIN));
  if (row->field[0]) text_addf(out, " (%s)", row->field);
  text_addf(out, "\n  cause: %s\n", row->cause);
  if (row->cure[0]) text_addf(out, "  cure:  %s\n", row->cure);
  text_addf(out, "  more:  docs/%s\n", row->document);
}

static int unknown_code(const cli *c, const char *word) {
  const char *near = cli_nearest(word, code_count(), code_name_at);
  return near ? cli_usage(c, "unknown code '%s' (did you mean %s?)", word, near)
              : cli_usage(c, "unknown code '%s'; heddle explain lists them", word);
}

static int explain(cli *c) {
  text out;
  for (int i = 0; i < c->argument_count; i++)
    if (!code_find(c->arguments[i])) return unknown_code(c, c->arguments[i]);
  text_init(&out);
  if (c->json) text_add(&out, "[");
  size_t count = c->argument_count > 0 ? (size_t)c->argument_count : code_count();
  for (size_t i = 0; i < count; i++) {
    const code_row *row = c->argument_count > 0 ? code_find(c->arguments[i]) : &code_rows[i];
    if (c->json && i > 0) text_add(&out, ",\n ");
    if (c->json)
      write_row_json(row, &out);
    else if (c->argument_count > 0)
      write_row(row, &out);
    else
      text_addf(&out, "%-24s %s\n", row->code, row->cause);
  }
  if (c->json) text_add(&out, "]\n");
  return cli_output(&out, EXIT_FINE);
}

static const cli_option explain_options[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_explain = {
    .name = "explain",
    .arguments = "[CODE]...",
    .summary = "say what the code of an error or decline means, and what helps",
    .details = "The code is what stands in brackets behind a message, [decline.head-dim]. Without one all "
               "are listed.\n",
    .examples = "  heddle explain decline.head-dim\n  heddle explain | grep scale\n",
    .result = "0 fine, 2 usage, 3 failure",
    .options = explain_options,
    .fewest = 0,
    .most = -1,
    .run = explain,
    .group = GROUP_MACHINE,
};
