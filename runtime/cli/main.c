#include "console.h"
#include "help/help.h"
#include <stdio.h>
#include <string.h>

static int unknown_verb(const char *word) {
  const char *near = cli_nearest(word, cli_verb_count(), cli_verb_name_at);
  fprintf(stderr, "heddle: unknown verb '%s'", word);
  if (near) fprintf(stderr, " (did you mean %s?)", near);
  fprintf(stderr, "\ntry: heddle %s\n", near ? near : "--help");
  return EXIT_USAGE;
}

static int print_help(const cli_verb *verb) {
  text out;
  text_init(&out);
  if (verb)
    help_write_verb(verb, &out);
  else
    help_write_overview(&out);
  return cli_output_product(&out, EXIT_FINE);
}

static int run_verb(const cli_verb *verb, int argc, char **argv) {
  cli c;
  const cli_verb *action = cli_find_action(verb, &argc, argv);
  if (!action) return EXIT_USAGE;
  int code = cli_parse(&c, action, argc, argv);
  if (code == EXIT_FINE) {
    /* key's --quiet is its own: the key alone. */
    bool common = cli_find_option(action, "quiet", 5) == &cli_common_options[0];
    console_set(cli_text(&c, "color"), common && cli_flag(&c, "quiet"), c.json);
    code = cli_flag(&c, "help") ? print_help(action) : action->run(&c);
  }
  cli_finish(&c);
  return code;
}

int main(int argc, char **argv) {
  console_set(NULL, false, false);
  if (argc < 2) {
    text out;
    text_init(&out);
    help_write_overview(&out);
    fputs(text_string(&out), stderr);
    text_finish(&out);
    return EXIT_USAGE;
  }
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return print_help(NULL);
  if (strcmp(word, "--version") == 0) word = "version";
  if (word[0] == '-') {
    fprintf(stderr, "heddle: unknown option '%s'\ntry: heddle --help\n", word);
    return EXIT_USAGE;
  }
  const cli_verb *verb = cli_find_verb(word);
  return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(word);
}
