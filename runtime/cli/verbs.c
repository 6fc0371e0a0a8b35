#include "verbs.h"
#include <string.h>

const cli_verb *const cli_verbs[] = {
#define X(name) &verb_##name,
    VERB_LIST(X)
#undef X
        NULL,
};

size_t cli_verb_count(void) {
  return sizeof cli_verbs / sizeof *cli_verbs - 1;
}

const char *cli_verb_name_at(size_t index) {
  return cli_verbs[index]->name;
}

const cli_verb *cli_find_verb(const char *name) {
  for (size_t i = 0; i < cli_verb_count(); i++)
    if (strcmp(cli_verbs[i]->name, name) == 0) return cli_verbs[i];
  return NULL;
}
