/* heddle --help and heddle VERB --help. */
#include "environment.h"
#include "help.h"
#include <string.h>

const char *help_group_title(cli_group group) {
  static const char *const titles[GROUP_COUNT] = {
      "describe a cache",
      "make kernels, and keep them",
      "launch, hold against the reference, measure",
      "this machine, and this command",
  };
  return titles[group];
}

const char *help_exit_codes(const cli_verb *verb) {
  return verb->result ? verb->result : "0 fine, 1 declined, 2 usage, 3 failure";
}

void help_write_overview(text *out) {
  text_add(out, "heddle: attention kernels from a written contract of the KV cache\n\n"
                "usage: heddle VERB [OPTION]... [ARGUMENT]...\n");
  for (int g = 0; g < GROUP_COUNT; g++) {
    text_addf(out, "\n%s:\n", help_group_title((cli_group)g));
    for (size_t i = 0; i < cli_verb_count(); i++)
      if (cli_verbs[i]->group == (cli_group)g)
        text_addf(out, "  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
  }
  text_add(out, "\nbegin with:\n"
                "  heddle doctor                     what this machine can do\n"
                "  heddle new -o my.yaml             a spec of your cache, from a few questions\n"
                "  heddle check my.yaml              is it valid, and which targets serve it\n"
                "\nheddle VERB --help shows a verb's options and examples. Where SPEC stands, - is standard\n"
                "input, and the name of a shipped spec does where no file has it.\n"
                "\nexit codes: 0 fine, 1 declined or differing, 2 usage, 3 failure\n");
}

enum { HELP_MARGIN = 29, HELP_WIDTH = 84 };

/* Words from HELP_MARGIN on, in lines of HELP_WIDTH at most. */
static void write_wrapped(const char *words, text *out) {
  while (strlen(words) > HELP_WIDTH) {
    int length = HELP_WIDTH;
    while (length > 0 && words[length] != ' ')
      length--;
    if (length == 0) break;
    text_addf(out, "%.*s\n%*s", length, words, HELP_MARGIN, "");
    words += length + 1;
  }
  text_addf(out, "%s\n", words);
}

static void write_option(const cli_option *o, text *out) {
  text left;
  text_init(&left);
  if (o->letter)
    text_addf(&left, "-%c, --%s", o->letter, o->name);
  else
    text_addf(&left, "    --%s", o->name);
  if (o->value) text_addf(&left, " %s", o->value);
  text_addf(out, "  %-26s ", text_string(&left));
  if (left.length > 26) text_addf(out, "\n%*s", HELP_MARGIN, "");
  write_wrapped(o->help, out);
  text_finish(&left);
}

static void write_options(const cli_verb *verb, text *out) {
  text_add(out, "\noptions:\n");
  for (const cli_option *o = verb->options; o && o->name; o++)
    write_option(o, out);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) write_option(o, out);
}

static void write_actions(const cli_verb *verb, text *out) {
  text_add(out, "\nactions:\n");
  for (int i = 0; verb->actions[i]; i++)
    text_addf(out, "  %-10s %s\n", cli_last_word(verb->actions[i]), verb->actions[i]->summary);
  text_addf(out, "heddle %s ACTION --help shows an action's options and examples.\n", verb->name);
}

static void write_environment(const cli_verb *verb, text *out) {
  text_add(out, "\nenvironment:\n");
  for (const environment_row *row = environment_rows; row->name; row++)
    if (row->verbs == 0 || (row->verbs & verb->environment) != 0)
      text_addf(out, "  %-22s %s\n", row->name, row->help);
}

void help_write_verb(const cli_verb *verb, text *out) {
  text_addf(out, "heddle %s: %s\n\nusage: heddle %s [OPTION]...%s%s\n", verb->name, verb->summary, verb->name,
            verb->arguments[0] ? " " : "", verb->arguments);
  if (verb->details) text_addf(out, "\n%s", verb->details);
  if (verb->actions) write_actions(verb, out);
  write_options(verb, out);
  text_addf(out, "\nexamples:\n%s", verb->examples);
  text_addf(out, "\nexit codes: %s\n", help_exit_codes(verb));
  write_environment(verb, out);
}
