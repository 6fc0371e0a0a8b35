/* Verbs that have actions: which one the words name. */
#include "cli.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether the word at *index is an option of the verb or of any of its actions, and its value with it. */
static bool skip_option(const cli_verb *verb, int argc, char **argv, int *index) {
  const char *word = argv[*index];
  if (word[0] != '-' || !word[1]) return false;
  bool is_long = word[1] == '-';
  size_t length = is_long ? strcspn(word + 2, "=") : 1;
  const cli_option *o = is_long ? cli_find_option(verb, word + 2, length) : cli_find_letter(verb, word[1]);
  for (int i = 0; !o && verb->actions && verb->actions[i]; i++)
    o = is_long ? cli_find_option(verb->actions[i], word + 2, length)
                : cli_find_letter(verb->actions[i], word[1]);
  bool has_value = is_long ? word[2 + length] == '=' : word[2] != 0;
  if (o && o->kind != OPTION_FLAG && !has_value && *index + 1 < argc) ++*index;
  return true;
}

const char *cli_last_word(const cli_verb *verb) {
  const char *space = strrchr(verb->name, ' ');
  return space ? space + 1 : verb->name;
}

/* For cli_nearest, which knows no more than an index. */
static const cli_verb *const *nearest_among;
static const char *action_name_at(size_t index) {
  return cli_last_word(nearest_among[index]);
}

static const cli_verb *no_action(const cli_verb *verb, const char *word) {
  size_t count = 0;
  while (verb->actions[count])
    count++;
  nearest_among = verb->actions;
  const char *near = cli_nearest(word, count, action_name_at);
  /* A verb that does without an action takes the word for a file's name, unless there is no such file. */
  if (verb->run && (!near || access(word, F_OK) == 0)) return verb;
  fprintf(stderr, "heddle %s: unknown action '%s'", verb->name, word);
  if (near) fprintf(stderr, " (did you mean %s?)", near);
  for (size_t i = 0; i < count; i++)
    fprintf(stderr, "%s%s", i == 0 ? ": " : i + 1 < count ? ", " : " or ", action_name_at(i));
  fprintf(stderr, "\ntry: heddle %s --help\n", verb->name);
  return NULL;
}

const cli_verb *cli_find_action(const cli_verb *verb, int *argc, char **argv) {
  if (!verb->actions) return verb;
  for (int i = 0; i < *argc; i++) {
    if (strcmp(argv[i], "--") == 0) break;
    if (skip_option(verb, *argc, argv, &i)) continue;
    for (int a = 0; verb->actions[a]; a++) {
      if (strcmp(argv[i], cli_last_word(verb->actions[a])) != 0) continue;
      memmove(argv + i, argv + i + 1, (size_t)(*argc - i - 1) * sizeof *argv);
      --*argc;
      return verb->actions[a];
    }
    return no_action(verb, argv[i]);
  }
  return verb;
}
