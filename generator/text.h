/* A growable byte string. Appending never fails visibly: running out of memory sets `failed` and turns later
 * appends into no-ops, so a writer checks once, at the end. `data` is NUL-terminated whenever it is not NULL.
 */
#ifndef HEDDLE_TEXT_H
#define HEDDLE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#define HD_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define HD_PRINTF(fmt, first)
#endif

typedef struct text {
  char *data;
  size_t length, capacity;
  bool failed;
} text;

void text_init(text *t);
void text_finish(text *t);
void text_clear(text *t);
void text_add(text *t, const char *string);
void text_add_bytes(text *t, const void *bytes, size_t count);
void text_addf(text *t, const char *format, ...) HD_PRINTF(2, 3);
void text_vaddf(text *t, const char *format, va_list args);
/* A JSON string literal, quotes included. */
void text_add_json(text *t, const char *string);
/* Shortest decimal that reads back as exactly `value`; no locale. inf and nan as "inf", "-inf", "nan". */
void text_add_double(text *t, double value);
/* The value of a decimal number ("-1.5e3", `length` bytes) as strtod rounds it, with a full stop in any
 * locale. False when it is no number, or longer than 100 bytes. */
bool text_read_double(const char *bytes, size_t length, double *out_value);
/* The string, owned by the caller (free), or NULL when an append failed; `t` is empty afterwards. */
char *text_take(text *t);
/* text_take's content or "" without giving it away. */
const char *text_string(const text *t);

/* Edit distance with transpositions, capped at 64 characters; for did-you-mean. */
size_t text_distance(const char *a, const char *b);

#endif
