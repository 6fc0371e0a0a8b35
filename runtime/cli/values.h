/* What may stand where help writes SPEC, TARGET, FILE or N: one table of the words that arguments and the
 * values of options go by. Completion, did-you-mean and the checks of options ask it. */
#ifndef HEDDLE_CLI_VALUES_H
#define HEDDLE_CLI_VALUES_H

#include "cli.h"

typedef enum value_type {
  VALUE_WORD,   /* anything */
  VALUE_FILE,   /* one that ends with `ending`, where it is not NULL */
  VALUE_FOLDER, /* a directory */
  VALUE_CHOICE, /* one of `count` names */
} value_type;

typedef struct value_kind {
  const char *word; /* as help has it */
  value_type type;
  const char *ending;
  size_t (*count)(void); /* choices, also beside files; may be NULL */
  const char *(*name_at)(size_t index);
  bool open;                                 /* values that are no choice are the verb's to judge */
  bool (*fits)(const char *value);           /* takes more than the choices; NULL: doesn't */
  const char *(*nearest)(const char *value); /* NULL: by edit distance */
} value_kind;

/* What help's word stands for; "SPEC..." and "[SPEC...]" are SPEC. Any word where the table has no row. */
value_kind value_kind_of(const char *word);
const char *value_type_name(value_type type);
/* A usage error where the value is none that the option takes. */
int value_check(const cli *c, const cli_option *o, const char *value);

#endif
