/* Completion for fish. */
#include "help.h"
#include <string.h>

static void add_quoted(const char *words, text *out) {
  text_add(out, "'");
  for (; *words; words++) {
    if (*words == '\'' || *words == '\\') text_add(out, "\\");
    text_add_bytes(out, words, 1);
  }
  text_add(out, "'");
}

/* -n CONDITION: the line names this verb, and its action. */
static void add_condition(const cli_verb *verb, text *out) {
  const char *last = cli_last_word(verb);
  text_add(out, "complete -c heddle -n '__fish_seen_subcommand_from ");
  if (last != verb->name) {
    text_add_bytes(out, verb->name, (size_t)(last - verb->name - 1));
    text_addf(out, "; and __fish_seen_subcommand_from %s", last);
  } else {
    text_add(out, verb->name);
    if (verb->actions) {
      text_add(out, "; and not __fish_seen_subcommand_from");
      for (int a = 0; verb->actions[a]; a++)
        text_addf(out, " %s", cli_last_word(verb->actions[a]));
    }
  }
  text_add(out, "'");
}

static void add_kind(const value_kind *k, text *out) {
  if (k->type != VALUE_FILE) text_add(out, " -f");
  if (k->type == VALUE_FOLDER) text_add(out, " -a '(__fish_complete_directories)'");
  if (!k->count || k->count() == 0) return;
  text_add(out, " -a '");
  for (size_t i = 0; i < k->count(); i++)
    text_addf(out, "%s%s", i > 0 ? " " : "", k->name_at(i));
  text_add(out, "'");
}

static void add_option(const cli_verb *verb, const cli_option *o, text *out) {
  add_condition(verb, out);
  text_addf(out, " -l %s", o->name);
  if (o->letter) text_addf(out, " -s %c", o->letter);
  if (o->value) {
    value_kind k = value_kind_of(o->value);
    text_add(out, " -r");
    add_kind(&k, out);
  }
  text_add(out, " -d ");
  add_quoted(o->help, out);
  text_add(out, "\n");
}

static void add_verb(const cli_verb *verb, text *out) {
  for (const cli_option *o = verb->options; o && o->name; o++)
    add_option(verb, o, out);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) add_option(verb, o, out);
  for (int a = 0; verb->actions && verb->actions[a]; a++) {
    add_condition(verb, out);
    text_addf(out, " %s-a %s -d ", verb->run ? "" : "-f ", cli_last_word(verb->actions[a]));
    add_quoted(verb->actions[a]->summary, out);
    text_add(out, "\n");
  }
  if (!verb->run) return;
  value_kind k = value_kind_of(verb->arguments);
  if (verb->most == 0) k = (value_kind){.type = VALUE_WORD};
  add_condition(verb, out);
  add_kind(&k, out);
  text_add(out, "\n");
}

void complete_fish(text *out) {
  text_add(out, "# Completion of heddle for fish; made by: heddle help --completion fish\n\n");
  for (size_t i = 0; i < cli_verb_count(); i++) {
    text_addf(out, "complete -c heddle -n __fish_use_subcommand -f -a %s -d ", cli_verbs[i]->name);
    add_quoted(cli_verbs[i]->summary, out);
    text_add(out, "\n");
  }
  for (size_t i = 0; i < cli_verb_count(); i++) {
    add_verb(cli_verbs[i], out);
    for (int a = 0; cli_verbs[i]->actions && cli_verbs[i]->actions[a]; a++)
      add_verb(cli_verbs[i]->actions[a], out);
  }
}
