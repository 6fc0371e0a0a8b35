/* What is made of the table of verbs: help, manual pages, completion, and the table itself as JSON. */
#ifndef HEDDLE_CLI_HELP_H
#define HEDDLE_CLI_HELP_H

#include "../cli.h"
#include "../values.h"

#define HELP_VERSION_TEXT "heddle " HEDDLE_VERSION
#ifndef HEDDLE_VERSION
#define HEDDLE_VERSION "unknown"
#endif

const char *help_group_title(cli_group group);
/* "0 …, 1 …, 2 usage, 3 failure" of this verb. */
const char *help_exit_codes(const cli_verb *verb);

/* heddle --help */
void help_write_overview(text *out);
/* heddle VERB --help */
void help_write_verb(const cli_verb *verb, text *out);
/* The page of section 1 about a verb, or about heddle (NULL). */
void help_write_man(const cli_verb *verb, text *out);
/* The whole table. */
void help_write_json(text *out);

/* What may be an option's value or a verb's argument there, for a shell. */
void complete_bash(text *out);
void complete_zsh(text *out);
void complete_fish(text *out);

#endif
