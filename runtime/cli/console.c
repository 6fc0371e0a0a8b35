#include "console.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct { bool quiet, json, progress, colour_out, colour_err; } console;

void console_set(const char *when, bool quiet, bool json) {
  const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
  bool capable = terminal && strcmp(terminal, "dumb") != 0;
  bool automatic = capable && !(no_colour && no_colour[0]);
  if (when && strcmp(when, "auto") == 0) when = NULL;
  console.quiet = quiet;
  console.json = json;
  console.progress = capable && !quiet && isatty(STDERR_FILENO);
  console.colour_out = when ? strcmp(when, "always") == 0 : automatic && isatty(STDOUT_FILENO);
  console.colour_err = when ? strcmp(when, "always") == 0 : automatic && isatty(STDERR_FILENO);
}

bool console_quiet(void) {
  return console.quiet;
}

bool console_hides_reports(void) {
  return console.quiet && !console.json;
}

bool console_shows_progress(void) {
  return console.progress;
}

const char *console_paint_of(FILE *stream, console_paint paint) {
  static const char *const escapes[] = {[PAINT_PLAIN] = "\033[0m",
                                        [PAINT_STRONG] = "\033[1m",
                                        [PAINT_GOOD] = "\033[32m",
                                        [PAINT_BAD] = "\033[1;31m",
                                        [PAINT_WARNING] = "\033[35m"};
  bool shown = stream == stderr ? console.colour_err : console.colour_out;
  return shown ? escapes[paint] : "";
}

bool console_colours_output(void) {
  return console.colour_out;
}

int console_columns(void) {
  enum { DEFAULT_COLUMNS = 80, FEWEST_COLUMNS = 20, MOST_COLUMNS = 1000 };
  struct winsize size;
  const char *word = getenv("COLUMNS");
  long columns = 0;
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0 && word) columns = strtol(word, NULL, 10);
  if (columns <= 0) columns = DEFAULT_COLUMNS;
  return (int)(columns < FEWEST_COLUMNS ? FEWEST_COLUMNS : columns > MOST_COLUMNS ? MOST_COLUMNS : columns);
}
