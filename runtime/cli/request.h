/* The option --request: an engine's tensors from a JSON file. */
#ifndef HEDDLE_CLI_REQUEST_H
#define HEDDLE_CLI_REQUEST_H

#include "../match/match.h"
#include "cli.h"

/* Reads what --request, which has been given, names. EXIT_FINE, or the exit code after complaining. The
 * description borrows nothing of the file; it is not to be copied. */
int cli_request(const cli *c, match_description *out);
/* The same of another option. */
int cli_request_from(const cli *c, const char *option, match_description *out);

#define OPTION_ROW_REQUEST                                                                                   \
  {                                                                                                          \
    "request", 0, OPTION_TEXT, "FILE", "the engine's tensors as JSON (docs/match.md); - is standard input",  \
        0, 0                                                                                                 \
  }

#endif
