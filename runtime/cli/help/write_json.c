/* The table of verbs as JSON: heddle help --json. */
#include "environment.h"
#include "help.h"
#include <string.h>

static void write_kind(const char *word, text *out) {
  value_kind k = value_kind_of(word);
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "word", word);
  json_text(out, &first, "type", value_type_name(k.type));
  if (k.ending) json_text(out, &first, "ending", k.ending);
  json_key(out, &first, "choices");
  text_add(out, "[");
  for (size_t i = 0; k.count && i < k.count(); i++) {
    if (i > 0) text_add(out, ", ");
    text_add_json(out, k.name_at(i));
  }
  text_add(out, "]}");
}

static void write_option(const cli_option *o, text *out) {
  static const char *const kinds[] = {[OPTION_FLAG] = "flag",
                                      [OPTION_TEXT] = "text",
                                      [OPTION_LIST] = "list",
                                      [OPTION_INT] = "integer",
                                      [OPTION_NUMBER] = "number"};
  const char letter[2] = {o->letter, 0};
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "name", o->name);
  if (o->letter) json_text(out, &first, "letter", letter);
  json_text(out, &first, "kind", kinds[o->kind]);
  if (o->kind == OPTION_INT) {
    json_int(out, &first, "minimum", o->minimum);
    json_int(out, &first, "maximum", o->maximum);
  }
  if (o->value) {
    json_key(out, &first, "value");
    write_kind(o->value, out);
  }
  json_text(out, &first, "help", o->help);
  text_add(out, "}");
}

static void write_lines(const char *lines, text *out) {
  bool some = false;
  text_add(out, "[");
  for (const char *at = lines; *at;) {
    size_t length = strcspn(at, "\n");
    text one;
    text_init(&one);
    text_add_bytes(&one, at, length);
    if (some) text_add(out, ", ");
    text_add_json(out, text_string(&one) + strspn(text_string(&one), " "));
    text_finish(&one);
    some = true;
    at += length + (at[length] == '\n');
  }
  text_add(out, "]");
}

static void write_verb(const cli_verb *verb, text *out) {
  bool first = true, some = false;
  text_add(out, "{");
  json_text(out, &first, "name", verb->name);
  json_text(out, &first, "group", help_group_title(verb->group));
  json_text(out, &first, "summary", verb->summary);
  json_text(out, &first, "arguments", verb->arguments);
  json_int(out, &first, "fewest", verb->fewest);
  json_int(out, &first, "most", verb->most);
  json_bool(out, &first, "runs", verb->run != NULL);
  json_key(out, &first, "options");
  text_add(out, "[");
  for (const cli_option *o = verb->options; o && o->name; o++, some = true) {
    text_add(out, some ? ",\n    " : "\n    ");
    write_option(o, out);
  }
  for (const cli_option *o = cli_common_options; o->name; o++) {
    if (cli_find_option(verb, o->name, strlen(o->name)) != o) continue;
    text_add(out, some ? ",\n    " : "\n    ");
    write_option(o, out);
    some = true;
  }
  text_add(out, "]");
  json_key(out, &first, "examples");
  write_lines(verb->examples, out);
  json_text(out, &first, "exit_codes", help_exit_codes(verb));
  json_key(out, &first, "environment");
  text_add(out, "[");
  some = false;
  for (const environment_row *row = environment_rows; row->name; row++) {
    if (row->verbs != 0 && (row->verbs & verb->environment) == 0) continue;
    if (some) text_add(out, ", ");
    text_add_json(out, row->name);
    some = true;
  }
  text_add(out, "]");
  json_key(out, &first, "actions");
  text_add(out, "[");
  for (int i = 0; verb->actions && verb->actions[i]; i++) {
    text_add(out, i > 0 ? ",\n  " : "\n  ");
    write_verb(verb->actions[i], out);
  }
  text_add(out, "]}");
}

void help_write_json(text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "version", HEDDLE_VERSION);
  json_key(out, &first, "verbs");
  text_add(out, "[");
  for (size_t i = 0; i < cli_verb_count(); i++) {
    text_add(out, i > 0 ? ",\n " : "\n ");
    write_verb(cli_verbs[i], out);
  }
  text_add(out, "]}\n");
}
