/* What to type next after an error, by its code. */
#include "cli.h"
#include "codes.h"
#include "console.h"
#include "shipped.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The beginning of a code, and the command, behind which the spec's file comes or not. */
static const struct {
  const char *code, *command;
  bool names_file;
} hints[] = {
    {"spec.", "heddle check", true},
    {"decline.", "heddle check", true},
    {"bind.", "heddle tensors", true},
    {"request.", "heddle tensors minimax-m3-dense-fp8", false},
    {"compile.unavailable", "heddle doctor", false},
    {"compile.library", "heddle doctor", false},
    {"device.", "heddle doctor", false},
    {"cache.", "heddle cache verify", false},
};

static bool ends_with(const char *word, const char *end) {
  size_t length = strlen(word), own = strlen(end);
  return length >= own && strcmp(word + length - own, end) == 0;
}

/* "heddle check" is what check itself would not say. */
static bool is_own(const cli *c, const char *command) {
  size_t length = strlen(c->verb->name);
  return strncmp(command, "heddle ", 7) == 0 && strncmp(command + 7, c->verb->name, length) == 0 &&
         (command[7 + length] == ' ' || !command[7 + length]);
}

/* What another command could read too: no standard input, and no spec that was never written. */
static bool is_spec(const char *path) {
  return access(path, F_OK) == 0 || shipped_find(path);
}

void cli_hint(const cli *c, const char *path, const diags *d) {
  const diag *first = NULL;
  for (size_t i = 0; i < d->count && !first; i++)
    if (d->items[i].severity == DIAG_ERROR) first = &d->items[i];
  if (!first || console_quiet()) return;
  if (strcmp(first->code, "file.read") == 0 && ends_with(path, ".yaml") && access(path, F_OK) != 0) {
    fprintf(stderr, "try: heddle new -o %s\n", path);
    return;
  }
  /* A spec is checked with the generator's own variant, so check would not say what a named one can't. */
  const bool of_variant = first->field && strncmp(first->field, "tune.", 5) == 0;
  for (size_t i = 0; i < sizeof hints / sizeof *hints && !of_variant; i++) {
    if (strncmp(first->code, hints[i].code, strlen(hints[i].code)) != 0) continue;
    if (is_own(c, hints[i].command) || (hints[i].names_file && !is_spec(path))) break;
    fprintf(stderr, "try: %s%s%s\n", hints[i].command, hints[i].names_file ? " " : "",
            hints[i].names_file ? path : "");
    return;
  }
  if (code_find(first->code)) fprintf(stderr, "try: heddle explain %s\n", first->code);
}
