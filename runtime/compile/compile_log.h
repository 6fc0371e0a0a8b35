/* Reading a compiler's log: which lines are its errors, and what kind of trouble they speak of. Pure. */
#ifndef HEDDLE_COMPILE_LOG_H
#define HEDDLE_COMPILE_LOG_H

#include "../../generator/diag.h"

/* Removes the worker's private folder from the log, in place: "FOLDER/comgr-1-0-a/input/kernel.hip:3:5:
 * error: …" becomes "kernel.hip:3:5: error: …", so that the same source gives the same log. */
void compile_log_clean(char *log, const char *folder);

/* Whether the first error is about the command line, not about the source. */
bool compile_log_blames_options(const char *log);
/* Whether the text of a compiler that failed or died says that it got no memory. */
bool compile_log_blames_memory(const char *log);

/* One diagnostic for each of the first error lines, "WHO: LINE", and one that counts the rest. Returns how
 * many error lines there are. */
size_t compile_log_errors(const char *log, const char *code, const char *who, diags *errors);

/* The first line that is not blank, or that speaks of an error if there is one; "" when there is none. */
void compile_log_gist(const char *log, char *out, size_t size);

#endif
