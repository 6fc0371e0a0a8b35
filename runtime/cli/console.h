/* What this process shows and how: --quiet, --color, and whether standard error is a terminal. */
#ifndef HEDDLE_CLI_CONSOLE_H
#define HEDDLE_CLI_CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

/* Once, before a verb runs. `when`: auto, always, never, or NULL for auto. */
void console_set(const char *when, bool quiet, bool json);

/* Warnings, notes and progress are left out. */
bool console_quiet(void);
/* So are reports. JSON is what was asked for, and stays. */
bool console_hides_reports(void);
/* Whether lines that are overwritten make sense: standard error is a terminal that understands them. */
bool console_shows_progress(void);

typedef enum console_paint { PAINT_PLAIN, PAINT_STRONG, PAINT_GOOD, PAINT_BAD, PAINT_WARNING } console_paint;

/* Whether pictures on standard output have colours, and how many columns: of the terminal, else COLUMNS or
 * 80; 20 to 1000. */
bool console_colours_output(void);
int console_columns(void);

/* The escape that begins a colour on `stream`, "" where there is none. PAINT_PLAIN ends every other. */
const char *console_paint_of(FILE *stream, console_paint paint);

#endif
