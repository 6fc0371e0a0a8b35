#include "cli.h"
#include <stdio.h>
#include <string.h>

#ifndef HEDDLE_VERSION
#define HEDDLE_VERSION "unknown"
#endif

static size_t verb_count(void) {
  size_t count = 0;
  while (cli_verbs[count])
    count++;
  return count;
}

static const char *verb_name_at(size_t index) {
  return cli_verbs[index]->name;
}

static const cli_verb *verb_find(const char *name) {
  for (size_t i = 0; cli_verbs[i]; i++)
    if (strcmp(cli_verbs[i]->name, name) == 0) return cli_verbs[i];
  return NULL;
}

static void write_overview(text *out) {
  text_add(out, "heddle: attention kernels from a written contract of the KV cache\n\n"
                "usage: heddle VERB [OPTION]... [ARGUMENT]...\n\nverbs:\n");
  for (size_t i = 0; cli_verbs[i]; i++)
    text_addf(out, "  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
  text_add(out, "\n"
                "heddle VERB --help shows a verb's options and examples.\n"
                "HEDDLE_CACHE_DIR moves the cache of code objects, HEDDLE_PACKS adds read-only ones.\n"
                "\nexit codes: 0 fine, 1 declined or differing, 2 usage, 3 failure\n");
}

static int unknown_verb(const char *word) {
  const char *near = cli_nearest(word, verb_count(), verb_name_at);
  fprintf(stderr, "heddle: unknown verb '%s'", word);
  if (near) fprintf(stderr, " (did you mean %s?)", near);
  fprintf(stderr, "\ntry: heddle --help\n");
  return EXIT_USAGE;
}

static int print_help(const cli_verb *verb) {
  text out;
  text_init(&out);
  if (verb)
    cli_print_help(verb, &out);
  else
    write_overview(&out);
  return cli_output(&out, EXIT_FINE);
}

/* heddle help [VERB] */
static int help(int argc, char **argv) {
  if (argc == 0) return print_help(NULL);
  const cli_verb *verb = verb_find(argv[0]);
  return verb ? print_help(verb) : unknown_verb(argv[0]);
}

static int run_verb(const cli_verb *verb, int argc, char **argv) {
  cli c;
  int code = cli_parse(&c, verb, argc, argv);
  if (code == EXIT_FINE) code = cli_flag(&c, "help") ? print_help(verb) : verb->run(&c);
  cli_finish(&c);
  return code;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    text out;
    text_init(&out);
    write_overview(&out);
    fputs(text_string(&out), stderr);
    text_finish(&out);
    return EXIT_USAGE;
  }
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return print_help(NULL);
  if (strcmp(word, "help") == 0) return help(argc - 2, argv + 2);
  if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
    text out;
    text_init(&out);
    text_addf(&out, "heddle %s\n", HEDDLE_VERSION);
    return cli_output(&out, EXIT_FINE);
  }
  if (word[0] == '-') {
    fprintf(stderr, "heddle: unknown option '%s'\ntry: heddle --help\n", word);
    return EXIT_USAGE;
  }
  const cli_verb *verb = verb_find(word);
  return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(word);
}
