/* What the documents say of diagnostic codes, built into the command. */
#ifndef HEDDLE_CLI_CODES_H
#define HEDDLE_CLI_CODES_H

#include <stddef.h>

/* Empty where the document has nothing to say. */
typedef struct code_row {
  const char *code, *field, *cause, *cure;
  const char *document; /* "declines.md" */
} code_row;

extern const code_row code_rows[]; /* by code, in the alphabet's order */
extern const size_t code_row_count;

size_t code_count(void);
const char *code_name_at(size_t index);
const code_row *code_find(const char *code); /* NULL: there is none */

#endif
