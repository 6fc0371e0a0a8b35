#include "cli.h"
#include "values.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_option cli_common_options[] = {
    {"quiet", 'q', OPTION_FLAG, NULL, "no report, no warnings, no progress: errors and the exit code alone",
     0, 0},
    {"color", 0, OPTION_TEXT, "WHEN", "auto (on a terminal, unless NO_COLOR is set), always or never", 0, 0},
    {"help", 'h', OPTION_FLAG, NULL, "show this help", 0, 0},
    OPTION_ROW_END,
};

int cli_usage(const cli *c, const char *format, ...) {
  text message;
  text_init(&message);
  va_list args;
  va_start(args, format);
  text_vaddf(&message, format, args);
  va_end(args);
  fprintf(stderr, "heddle %s: %s\n", c->verb->name, text_string(&message));
  fprintf(stderr, "try: heddle %s --help\n", c->verb->name);
  text_finish(&message);
  return EXIT_USAGE;
}

/* A word of one or two letters is near everything: don't guess. A beginning of a name counts as near; last
 * come names in which the word is, or which are in it. */
static void offer_name(guess *g, const char *name) {
  size_t length = strlen(g->found), own = strlen(name), distance = text_distance(g->found, name);
  if (length >= 3 && strncmp(g->found, name, length) == 0) distance = 1;
  bool part = (length > 3 && strstr(name, g->found)) || (own > 3 && strstr(g->found, name));
  if (part || (distance < 3 && distance < own)) guess_offer(g, name, 0, distance);
}

const char *cli_guessed(const guess *g, const char *before_each) {
  static char words[256];
  text t;
  text_init(&t);
  guess_write(g, before_each, "", &t);
  snprintf(words, sizeof words, "%s", text_string(&t));
  text_finish(&t);
  return g->count > 0 ? words : NULL;
}

const char *cli_nearest(const char *word, size_t count, const char *(*name_at)(size_t index)) {
  guess near = {.found = word};
  for (size_t i = 0; i < count; i++)
    offer_name(&near, name_at(i));
  return cli_guessed(&near, "");
}

static const cli_option *find_in(const cli_option *table, const char *name, size_t length) {
  for (const cli_option *o = table; o && o->name; o++)
    if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) return o;
  return NULL;
}

const cli_option *cli_find_option(const cli_verb *verb, const char *name, size_t length) {
  const cli_option *own = find_in(verb->options, name, length);
  return own ? own : find_in(cli_common_options, name, length);
}

const cli_option *cli_find_letter(const cli_verb *verb, char letter) {
  const cli_option *const tables[] = {verb->options, cli_common_options};
  for (int i = 0; i < 2; i++)
    for (const cli_option *o = tables[i]; o && o->name; o++)
      if (o->letter == letter) return o;
  return NULL;
}

/* The nearest of the verb's options and the common ones. */
static const char *nearest_option(const cli_verb *verb, const char *name) {
  const cli_option *const tables[] = {verb->options, cli_common_options};
  guess near = {.found = name};
  for (int i = 0; i < 2; i++)
    for (const cli_option *o = tables[i]; o && o->name; o++)
      offer_name(&near, o->name);
  return cli_guessed(&near, "--");
}

static int unknown_option(const cli *c, const char *word, size_t length) {
  char *name = strndup(word, length);
  if (!name) return EXIT_FAILED;
  const char *best = nearest_option(c->verb, name);
  int code = best ? cli_usage(c, "unknown option --%s (did you mean %s?)", name, best)
                  : cli_usage(c, "unknown option --%s", name);
  free(name);
  return code;
}

static bool parse_int(const char *word, int64_t *out_value) {
  char *end;
  errno = 0;
  long long value = strtoll(word, &end, 10);
  if (end == word || *end || errno) return false;
  *out_value = value;
  return true;
}

static bool parse_number(const char *word, double *out_value) {
  char *end;
  double value = strtod(word, &end);
  if (end == word || *end) return false;
  *out_value = value;
  return true;
}

static int check_value(const cli *c, const cli_option *o, const char *value) {
  int64_t whole;
  double number;
  if (o->kind == OPTION_INT) {
    if (!parse_int(value, &whole)) return cli_usage(c, "--%s takes a whole number, not '%s'", o->name, value);
    if (whole < o->minimum || whole > o->maximum)
      return cli_usage(c, "--%s is %lld, allowed are %lld to %lld", o->name, (long long)whole,
                       (long long)o->minimum, (long long)o->maximum);
  }
  if (o->kind == OPTION_NUMBER && !parse_number(value, &number))
    return cli_usage(c, "--%s takes a number, not '%s'", o->name, value);
  if (o->kind == OPTION_NUMBER && !(number > 0 && number < 1e9))
    return cli_usage(c, "--%s takes a positive number, not '%s'", o->name, value);
  if (o->letter == 'o' && strcmp(value, "-") == 0) /* which would be a file of that name */
    return cli_usage(c, "--%s takes a name, not -%s", o->name,
                     strstr(o->help, "standard output") ? ": left out, it is standard output" : "");
  return value_check(c, o, value);
}

static void add_value(cli *c, const cli_option *o, const char *value) {
  c->values[c->value_count++] = (cli_value){o, value};
}

/* "--name", "--name=value" or "--name value"; *index moves past a value of its own. */
static int parse_long(cli *c, int argc, char **argv, int *index) {
  const char *word = argv[*index] + 2;
  const char *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  const cli_option *o = cli_find_option(c->verb, word, length);
  if (!o) return unknown_option(c, word, length);
  if (o->kind == OPTION_FLAG) {
    if (equals) return cli_usage(c, "--%s takes no value", o->name);
    add_value(c, o, "");
    return EXIT_FINE;
  }
  const char *value = equals ? equals + 1 : *index + 1 < argc ? argv[++*index] : NULL;
  if (!value) return cli_usage(c, "--%s needs a value: --%s %s", o->name, o->name, o->value);
  add_value(c, o, value);
  return check_value(c, o, value);
}

/* "-j", "-j4" or "-j 4". */
static int parse_short(cli *c, int argc, char **argv, int *index) {
  const char *word = argv[*index] + 1;
  const cli_option *o = cli_find_letter(c->verb, word[0]);
  if (!o) return cli_usage(c, "unknown option -%c", word[0]);
  if (o->kind == OPTION_FLAG) {
    if (word[1]) return cli_usage(c, "-%c takes no value, found '-%s'", o->letter, word);
    add_value(c, o, "");
    return EXIT_FINE;
  }
  const char *value = word[1] ? word + 1 : *index + 1 < argc ? argv[++*index] : NULL;
  if (!value) return cli_usage(c, "-%c needs a value: -%c %s", o->letter, o->letter, o->value);
  add_value(c, o, value);
  return check_value(c, o, value);
}

int cli_parse(cli *c, const cli_verb *verb, int argc, char **argv) {
  *c = (cli){.verb = verb};
  size_t room = (size_t)argc + 1;
  c->values = calloc(room, sizeof *c->values);
  c->arguments = calloc(room, sizeof *c->arguments);
  if (!c->values || !c->arguments) {
    fprintf(stderr, "heddle: out of memory\n");
    return EXIT_FAILED;
  }
  bool options_end = false;
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    int code = EXIT_FINE;
    if (options_end || word[0] != '-' || !word[1])
      c->arguments[c->argument_count++] = word;
    else if (strcmp(word, "--") == 0)
      options_end = true;
    else if (word[1] == '-')
      code = parse_long(c, argc, argv, &i);
    else
      code = parse_short(c, argc, argv, &i);
    if (code) return code;
  }
  c->json = cli_flag(c, "json");
  if (cli_flag(c, "help")) return EXIT_FINE;
  if (!verb->run) return cli_usage(c, "missing argument: heddle %s %s", verb->name, verb->arguments);
  if (c->argument_count < verb->fewest)
    return cli_usage(c, "missing argument: heddle %s %s", verb->name, verb->arguments);
  if (verb->most >= 0 && c->argument_count > verb->most)
    return cli_usage(c, "unexpected argument '%s'", c->arguments[verb->most]);
  return EXIT_FINE;
}

void cli_finish(cli *c) {
  free(c->values);
  free(c->arguments);
  c->values = NULL;
  c->arguments = NULL;
}

const char *cli_text(const cli *c, const char *name) {
  for (int i = c->value_count - 1; i >= 0; i--)
    if (strcmp(c->values[i].option->name, name) == 0) return c->values[i].text;
  return NULL;
}

const char *cli_list(const cli *c, const char *name, int index) {
  for (int i = 0; i < c->value_count; i++)
    if (strcmp(c->values[i].option->name, name) == 0 && index-- == 0) return c->values[i].text;
  return NULL;
}

bool cli_flag(const cli *c, const char *name) {
  return cli_text(c, name) != NULL;
}

int64_t cli_int(const cli *c, const char *name, int64_t otherwise) {
  const char *word = cli_text(c, name);
  int64_t value = otherwise;
  if (word) parse_int(word, &value);
  return value;
}

double cli_number(const cli *c, const char *name, double otherwise) {
  const char *word = cli_text(c, name);
  double value = otherwise;
  if (word) parse_number(word, &value);
  return value;
}
