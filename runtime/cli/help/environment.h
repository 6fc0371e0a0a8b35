/* The variables of the environment that verbs look at, as help and manual pages list them. */
#ifndef HEDDLE_CLI_ENVIRONMENT_H
#define HEDDLE_CLI_ENVIRONMENT_H

typedef struct environment_row {
  const char *name, *help;
  unsigned verbs; /* ENV_…: verbs with one of these look at it; 0: every verb */
} environment_row;

extern const environment_row environment_rows[]; /* ends with a NULL name */

#endif
