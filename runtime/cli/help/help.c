/* help and version. */
#include "help.h"
#include "../verbs.h"
#include <stdio.h>
#include <string.h>

/* The verb that the arguments name, or its action; NULL after a message. */
static const cli_verb *find_named(const cli *c) {
  const cli_verb *verb = cli_find_verb(c->arguments[0]);
  if (!verb) {
    const char *near = cli_nearest(c->arguments[0], cli_verb_count(), cli_verb_name_at);
    if (near)
      cli_usage(c, "unknown verb '%s' (did you mean %s?)", c->arguments[0], near);
    else
      cli_usage(c, "unknown verb '%s'", c->arguments[0]);
    return NULL;
  }
  if (c->argument_count == 1) return verb;
  for (int a = 0; verb->actions && verb->actions[a]; a++)
    if (strcmp(cli_last_word(verb->actions[a]), c->arguments[1]) == 0) return verb->actions[a];
  cli_usage(c, "%s has no action '%s'", verb->name, c->arguments[1]);
  return NULL;
}

static void write_completion(const char *shell, text *out) {
  static const struct {
    const char *shell;
    void (*write)(text *out);
  } scripts[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
    if (strcmp(scripts[i].shell, shell) == 0) scripts[i].write(out);
}

static int help(cli *c) {
  const char *shell = cli_text(c, "completion");
  const cli_verb *verb = NULL;
  if (c->argument_count > 0 && !(verb = find_named(c))) return EXIT_USAGE;
  text out;
  text_init(&out);
  if (c->json)
    help_write_json(&out);
  else if (shell)
    write_completion(shell, &out);
  else if (cli_flag(c, "man"))
    help_write_man(verb, &out);
  else if (verb)
    help_write_verb(verb, &out);
  else
    help_write_overview(&out);
  return cli_output_product(&out, EXIT_FINE);
}

static const cli_option help_options[] = {
    {"man", 0, OPTION_FLAG, NULL, "as a manual page, in roff", 0, 0},
    {"completion", 0, OPTION_TEXT, "SHELL", "the script that completes heddle's words in a shell", 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "every verb, its options and what they take, as JSON", 0, 0},
    OPTION_ROW_END,
};

const cli_verb verb_help = {
    .name = "help",
    .arguments = "[VERB] [ACTION]",
    .summary = "show help of a verb or an action; manual pages; completion for shells",
    .details = "heddle VERB --help is the same. Where heddle is installed, so are its manual pages and "
               "completion.\n",
    .examples = "  heddle help cache prune\n"
                "  heddle help check --man | man -l -\n"
                "  source <(heddle help --completion bash)\n"
                "  heddle help --completion fish > ~/.config/fish/completions/heddle.fish\n",
    .result = "0 fine, 2 usage, 3 failure",
    .options = help_options,
    .fewest = 0,
    .most = 2,
    .run = help,
    .group = GROUP_MACHINE,
};

static int version(cli *c) {
  text out;
  text_init(&out);
  text_add(&out, c->json ? "{\"version\": \"" HEDDLE_VERSION "\"}\n" : HELP_VERSION_TEXT "\n");
  return cli_output_product(&out, EXIT_FINE);
}

static const cli_option version_options[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_version = {
    .name = "version",
    .arguments = "",
    .summary = "print the version",
    .examples = "  heddle version\n  heddle version --json\n",
    .result = "0 fine, 2 usage, 3 failure",
    .options = version_options,
    .fewest = 0,
    .most = 0,
    .run = version,
    .group = GROUP_MACHINE,
};
