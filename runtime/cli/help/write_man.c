/* Manual pages, in roff. */
#include "environment.h"
#include "help.h"
#include <ctype.h>
#include <string.h>

/* A line of text: nothing in it is roff. */
static void add_escaped(const char *from, size_t length, text *out) {
  for (size_t i = 0; i < length; i++) {
    if (i == 0 && (from[i] == '.' || from[i] == '\'')) text_add(out, "\\&");
    if (from[i] == '\\')
      text_add(out, "\\e");
    else if (from[i] == '-')
      text_add(out, "\\-");
    else
      text_add_bytes(out, from + i, 1);
  }
}

static void add_words(const char *words, text *out) {
  add_escaped(words, strlen(words), out);
}

/* Lines as they stand: columns and commands keep their form. */
static void add_lines(const char *lines, text *out) {
  text_add(out, ".nf\n");
  while (*lines) {
    size_t length = strcspn(lines, "\n");
    add_escaped(lines, length, out);
    text_add(out, "\n");
    lines += length + (lines[length] == '\n');
  }
  text_add(out, ".fi\n");
}

static void add_option(const cli_option *o, text *out) {
  text_add(out, ".TP\n");
  text_add(out, ".B ");
  if (o->letter) text_addf(out, "\\-%c, ", o->letter);
  text_add(out, "\\-\\-");
  add_words(o->name, out);
  if (o->value) {
    text_add(out, " \\fI");
    add_words(o->value, out);
    text_add(out, "\\fR");
  }
  text_add(out, "\n");
  add_words(o->help, out);
  value_kind k = value_kind_of(o->value ? o->value : "");
  if (k.type == VALUE_CHOICE && k.count() > 1) {
    text_add(out, " (");
    for (size_t i = 0; i < k.count(); i++) {
      text_add(out, i == 0 ? "" : ", ");
      add_words(k.name_at(i), out);
    }
    text_add(out, ")");
  }
  text_add(out, "\n");
}

static void add_title(const char *name, text *out) {
  text_add(out, ".TH \"");
  for (; *name; name++) {
    char letter = *name == ' ' ? '-' : (char)toupper((unsigned char)*name);
    if (letter == '-')
      text_add(out, "\\-");
    else
      text_add_bytes(out, &letter, 1);
  }
  text_add(out, "\" \"1\" \"\" \"" HELP_VERSION_TEXT "\" \"heddle\"\n");
}

/* What a verb and each of its actions have. */
static void add_body(const cli_verb *verb, const char *section, text *out) {
  text_addf(out, "%s SYNOPSIS\n.B heddle ", section);
  add_words(verb->name, out);
  text_add(out, "\n[\\fIOPTION\\fR]... ");
  add_words(verb->arguments, out);
  text_addf(out, "\n%s DESCRIPTION\n", section);
  if (verb->details)
    add_lines(verb->details, out);
  else
    text_addf(out, "%c%s.\n", toupper((unsigned char)verb->summary[0]), verb->summary + 1);
  text_addf(out, "%s OPTIONS\n", section);
  for (const cli_option *o = verb->options; o && o->name; o++)
    add_option(o, out);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) add_option(o, out);
  text_addf(out, "%s EXAMPLES\n", section);
  add_lines(verb->examples, out);
  text_addf(out, "%s EXIT STATUS\n", section);
  add_words(help_exit_codes(verb), out);
  text_add(out, "\n");
}

static void add_environment(unsigned verbs, text *out) {
  text_add(out, ".SH ENVIRONMENT\n");
  for (const environment_row *row = environment_rows; row->name; row++) {
    if (row->verbs != 0 && (row->verbs & verbs) == 0) continue;
    text_addf(out, ".TP\n.B %s\n", row->name);
    add_words(row->help, out);
    text_add(out, "\n");
  }
}

static void add_overview(text *out) {
  add_title("heddle", out);
  text_add(
      out,
      ".SH NAME\nheddle \\- attention kernels from a written contract of the KV cache\n"
      ".SH SYNOPSIS\n.B heddle\n\\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n"
      ".SH DESCRIPTION\n"
      "A spec describes a paged KV cache in YAML. heddle checks it, generates kernels that write and read\n"
      "exactly that cache, compiles them into a cache, launches them, and holds them against a\n"
      "reference in float64.\n");
  for (int g = 0; g < GROUP_COUNT; g++) {
    text_addf(out, ".SS %c%s\n", toupper((unsigned char)help_group_title((cli_group)g)[0]),
              help_group_title((cli_group)g) + 1);
    for (size_t i = 0; i < cli_verb_count(); i++) {
      if (cli_verbs[i]->group != (cli_group)g) continue;
      text_addf(out, ".TP\n.BR heddle\\-%s (1)\n", cli_verbs[i]->name);
      add_words(cli_verbs[i]->summary, out);
      text_add(out, "\n");
    }
  }
  text_add(out, ".SH EXIT STATUS\n0 fine, 1 declined or differing, 2 usage, 3 failure\n");
  add_environment(~0u, out);
}

void help_write_man(const cli_verb *verb, text *out) {
  unsigned environment = verb ? verb->environment : 0;
  text name;
  if (!verb) {
    add_overview(out);
    return;
  }
  text_init(&name);
  text_addf(&name, "heddle-%s", verb->name);
  add_title(text_string(&name), out);
  text_add(out, ".SH NAME\n");
  add_words(text_string(&name), out);
  text_finish(&name);
  text_add(out, " \\- ");
  add_words(verb->summary, out);
  text_add(out, "\n");
  add_body(verb, ".SH", out);
  for (int i = 0; verb->actions && verb->actions[i]; i++) {
    text_add(out, ".SH HEDDLE ");
    for (const char *at = verb->actions[i]->name; *at; at++)
      text_addf(out, "%c", toupper((unsigned char)*at));
    text_add(out, "\n");
    add_words(verb->actions[i]->summary, out);
    text_add(out, "\n");
    add_body(verb->actions[i], ".SS", out);
    environment |= verb->actions[i]->environment;
  }
  add_environment(environment, out);
  text_add(out, ".SH SEE ALSO\n.BR heddle (1)\n");
}
