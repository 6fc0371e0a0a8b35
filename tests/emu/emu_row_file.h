/* Rows of the instruction tests: "name | codes | inputs | results", one a line, '#' for comments. */
#ifndef HEDDLE_TESTS_EMU_ROW_FILE_H
#define HEDDLE_TESTS_EMU_ROW_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 8192 };

typedef struct instruction_row {
  char *name, *codes, *inputs, *results; /* into `file` */
} instruction_row;

static char *file;
static instruction_row rows[MAX_ROWS];
static size_t row_count;

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *contents = malloc((size_t)size + 1);
  size_t got = contents ? fread(contents, 1, (size_t)size, f) : 0;
  fclose(f);
  if (contents) contents[got] = 0;
  return contents;
}

static char *trimmed(char *s) {
  while (*s == ' ')
    ++s;
  size_t length = strlen(s);
  while (length && s[length - 1] == ' ')
    s[--length] = 0;
  return s;
}

/* `name`: a file of tests/emu. The rows point into `file`, which the caller frees. */
static void load_rows(const char *name) {
  char path[1024];
  const char *source = getenv("HEDDLE_SOURCE");
  snprintf(path, sizeof path, "%s/tests/emu/%s", source ? source : ".", name);
  file = read_file(path);
  cr_assert_not_null(file, "cannot read %s", path);
  char *next_line = file;
  while (*next_line) {
    char *line = next_line;
    char *end = strchr(line, '\n');
    if (end) *end = 0;
    next_line = end ? end + 1 : line + strlen(line);
    if (*line == '#' || !*line) continue;
    char *part[4] = {line, NULL, NULL, NULL};
    for (int n = 1; n < 4; ++n) {
      char *bar = strchr(part[n - 1], '|');
      cr_assert_not_null(bar, "row without four parts: %s", line);
      *bar = 0;
      part[n] = bar + 1;
    }
    cr_assert_lt(row_count, (size_t)MAX_ROWS);
    rows[row_count++] =
        (instruction_row){trimmed(part[0]), trimmed(part[1]), trimmed(part[2]), trimmed(part[3])};
  }
}

#endif
