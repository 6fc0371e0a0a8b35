/* Reading JSON strictly, in one pass, without allocating. The input may be hostile: depth is what the caller
 * reads, every string is bounded. The first mismatch makes the reader fail, and all further reads do nothing,
 * so that a caller checks once, at the end. */
#ifndef HEDDLE_JSON_H
#define HEDDLE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json_reader {
  const char *start, *at, *end;
  const char *expected; /* what was expected where it failed; outlives the reader. NULL: fine so far */
} json_reader;

/* `bytes` need not be NUL-terminated and outlives the reader. */
json_reader json_reader_of(const char *bytes, size_t length);
bool json_failed(const json_reader *r);
/* Fails unless it did already. `expected`: outlives the reader, "a whole number". */
void json_fail(json_reader *r, const char *expected);
/* 1-based place of the failure, in bytes. */
void json_place(const json_reader *r, int *out_line, int *out_column);

/* Takes the punctuation `c` if it is next. */
bool json_accept(json_reader *r, char c);
void json_expect(json_reader *r, char c);
/* Before each item of a list or object whose opening was taken: whether there is another one. `close`: ']' or
 * '}'. */
bool json_next(json_reader *r, int items_so_far, char close);
/* Only white space may follow. */
void json_expect_end(json_reader *r);

/* Printable ASCII without quotes and backslashes, shorter than `capacity`; NUL-terminated, "" on failure. */
void json_read_string(json_reader *r, char *out, size_t capacity);
/* A string and the colon behind it. */
void json_read_key(json_reader *r, char *out, size_t capacity);
/* A whole number without exponent, fraction or leading zero. */
int64_t json_read_integer(json_reader *r, int64_t least, int64_t most);
/* Any JSON number that a double holds. */
double json_read_number(json_reader *r);
bool json_read_bool(json_reader *r);
bool json_accept_null(json_reader *r);
/* Any value, whatever it holds, nested at most JSON_DEPTH times. */
void json_skip(json_reader *r);
enum { JSON_DEPTH = 64 };

#endif
