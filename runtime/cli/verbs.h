/* The verbs, in the order of the help; each is defined in the file of its name (check, key and diff share
 * one). Manual pages, completion and the check of the documents take them from these rows. */
#ifndef HEDDLE_CLI_VERBS_H
#define HEDDLE_CLI_VERBS_H

#include "cli.h"

#define VERB_LIST(X)                                                                                         \
  X(check)                                                                                                   \
  X(key)                                                                                                     \
  X(diff)                                                                                                    \
  X(new)                                                                                                     \
  X(tensors)                                                                                                 \
  X(match)                                                                                                   \
  X(view)                                                                                                    \
  X(layout)                                                                                                  \
  X(plan)                                                                                                    \
  X(emit)                                                                                                    \
  X(build)                                                                                                   \
  X(pack)                                                                                                    \
  X(run)                                                                                                     \
  X(reference)                                                                                               \
  X(verify)                                                                                                  \
  X(bench)                                                                                                   \
  X(tune)                                                                                                    \
  X(profile)                                                                                                 \
  X(inspect)                                                                                                 \
  X(cache)                                                                                                   \
  X(targets)                                                                                                 \
  X(doctor)                                                                                                  \
  X(explain)                                                                                                 \
  X(help)                                                                                                    \
  X(version)

#define DECLARE_VERB(name) extern const cli_verb verb_##name;
VERB_LIST(DECLARE_VERB)
#undef DECLARE_VERB

#endif
