/* The specs that heddle ships, built into the command: where no file has the name, SPEC may be theirs. */
#ifndef HEDDLE_CLI_SHIPPED_H
#define HEDDLE_CLI_SHIPPED_H

#include <stddef.h>

size_t shipped_count(void);
const char *shipped_name_at(size_t index); /* in the alphabet's order, without .yaml */
const char *shipped_text_at(size_t index); /* the file */
/* The text of the shipped spec of that name, or NULL. */
const char *shipped_find(const char *name);

#endif
