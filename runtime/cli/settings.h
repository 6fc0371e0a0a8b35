/* --set NAME=NUMBER of run and reference: what a launch is given by value. */
#ifndef HEDDLE_CLI_SETTINGS_H
#define HEDDLE_CLI_SETTINGS_H

#include "../../generator/emit.h"
#include "../launch/launch.h"
#include "cli.h"

typedef struct settings {
  double logits_scale;           /* 1/sqrt(d) where it is left to the caller and not set */
  scale_number k_scale, v_scale; /* given: set */
} settings;

/* Reads them for an operation under a contract; EXIT_FINE, or EXIT_USAGE for what is no number or has no
 * meaning there. A scale that the contract needs and that isn't set is for bind_dims to miss. */
int settings_read(const cli *c, const contract *terms, operation o, settings *out);
/* Into the JSON of a result. */
void settings_json(const settings *s, operation o, text *out, bool *first);

#define OPTION_ROW_SET                                                                                       \
  {                                                                                                          \
    "set", 0, OPTION_LIST, "NAME=X",                                                                         \
        "logits_scale (default: 1/sqrt(d)), k_scale, v_scale, where they are arguments; may be repeated", 0, \
        0                                                                                                    \
  }

#endif
