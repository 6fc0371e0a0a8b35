/* Lines of text for terminals. */
#ifndef HEDDLE_PICTURES_LINES_H
#define HEDDLE_PICTURES_LINES_H

#include "../../generator/text.h"

/* Words in lines of at most `columns` characters; those behind the first are indented by what the first is.
 */
void lines_wrap(text *out, int columns, const char *words);
/* Ends a line, without the spaces before its end. */
void lines_end(text *out);
/* Words in an SGR colour ("34"; "" or !colour: none), filled up to `width` characters with spaces. */
void lines_add(text *out, bool colour, const char *sgr, const char *words, int width);

#endif
