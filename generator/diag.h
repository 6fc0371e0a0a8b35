/* Diagnostics: what is wrong, what was found, what is allowed, and where. They are collected, never printed
 * here. `code` is stable and documented (docs/declines.md); messages may change between versions. */
#ifndef HEDDLE_DIAG_H
#define HEDDLE_DIAG_H

#include "text.h"
#include "status.h"

typedef enum diag_severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } diag_severity;

typedef struct diag {
  diag_severity severity;
  const char *code;      /* static storage, e.g. "spec.unknown-key", "decline.page" */
  char *field;           /* dotted path in the spec ("kv.page"), or NULL */
  char *message;         /* one line, lower case, no full stop */
  int line, column;      /* 1-based, 0 when the diagnostic has no place in a file */
  char *found, *allowed; /* both or neither: what diags_refusef was told, apart from the message */
} diag;

typedef struct diags {
  diag *items;
  size_t count, capacity;
  bool failed; /* an append ran out of memory: the list is incomplete */
} diags;

void diags_init(diags *list);
void diags_finish(diags *list);
void diags_addf(diags *list, diag_severity severity, const char *code, const char *field, int line,
                int column, const char *format, ...) HD_PRINTF(7, 8);
/* Error without a place in a file. */
void diags_errorf(diags *list, const char *code, const char *field, const char *format, ...) HD_PRINTF(4, 5);
/* The same about a value that is not among those allowed: each is kept for tables and programs to read. */
void diags_refusef(diags *list, const char *code, const char *field, const char *found, const char *allowed,
                   const char *format, ...) HD_PRINTF(6, 7);
/* A value that isn't served: "FOUND is not served: allowed is ALLOWED". */
void diags_decline(diags *list, const char *code, const char *field, const char *found,
                   const char *allowed_format, ...) HD_PRINTF(5, 6);
void diags_decline_number(diags *list, const char *code, const char *field, long long found,
                          const char *allowed_format, ...) HD_PRINTF(5, 6);
/* Another list's entry, as it is. */
void diags_copy(diags *list, const diag *item);
size_t diags_errors(const diags *list);
/* Whether its message says which field it is about, if it is about one: at its beginning, or beside a line of
 * the file anywhere. */
bool diag_names_field(const diag *d);

/* "file:line:col: error: message [code]" per entry, with the offending line and a caret when `source` (the
 * file's text, may be NULL) has it. Without a line: "file: error: field: message [code]". A message
 * that names the field itself has it once. */
void diags_render(const diags *list, const char *file, const char *source, text *out);
/* A JSON array of {severity, code, field, message, line, column}. */
void diags_render_json(const diags *list, text *out);

#endif
