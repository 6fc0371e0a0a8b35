#include "json.h"
#include "text.h"

#include <math.h>
#include <string.h>

json_reader json_reader_of(const char *bytes, size_t length) {
  return (json_reader){bytes, bytes, bytes + length, NULL};
}

bool json_failed(const json_reader *r) {
  return r->expected != NULL;
}

void json_fail(json_reader *r, const char *expected) {
  if (!r->expected) r->expected = expected;
}

void json_place(const json_reader *r, int *out_line, int *out_column) {
  int line = 1, column = 1;
  for (const char *at = r->start; at < r->at; at++) {
    column = *at == '\n' ? 1 : column + 1;
    line += *at == '\n';
  }
  *out_line = line;
  *out_column = column;
}

static void skip_space(json_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
    r->at++;
}

bool json_accept(json_reader *r, char c) {
  if (json_failed(r)) return false;
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static const char *punctuation_name(char c) {
  static const struct {
    char c;
    const char *name;
  } names[] = {{'{', "{"},       {'}', "}"},       {'[', "["},       {']', "]"},
               {':', "a colon"}, {',', "a comma"}, {'"', "a string"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].c == c) return names[i].name;
  return "something else";
}

void json_expect(json_reader *r, char c) {
  if (!json_accept(r, c)) json_fail(r, punctuation_name(c));
}

bool json_next(json_reader *r, int items_so_far, char close) {
  if (json_accept(r, close)) return false;
  if (items_so_far > 0) json_expect(r, ',');
  if (json_failed(r)) return false;
  skip_space(r); /* what is said of an item is said of where it begins */
  return true;
}

void json_expect_end(json_reader *r) {
  if (json_failed(r)) return;
  skip_space(r);
  if (r->at != r->end) json_fail(r, "nothing behind the end");
}

void json_read_string(json_reader *r, char *out, size_t capacity) {
  size_t length = 0;
  out[0] = '\0';
  json_expect(r, '"');
  while (!json_failed(r) && r->at < r->end && *r->at != '"') {
    const char c = *r->at;
    if (c < ' ' || c > '~' || c == '\\')
      json_fail(r, "printable ASCII without backslashes");
    else if (length + 1 == capacity)
      json_fail(r, "a shorter string");
    else
      out[length++] = c, r->at++;
  }
  if (!json_failed(r) && r->at == r->end) json_fail(r, "the string's end");
  if (!json_failed(r)) r->at++;
  out[json_failed(r) ? 0 : length] = '\0';
}

void json_read_key(json_reader *r, char *out, size_t capacity) {
  json_read_string(r, out, capacity);
  json_expect(r, ':');
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Digits without a leading zero, as JSON has them. */
static bool take_whole(json_reader *r, int64_t *out_magnitude, bool *out_too_large) {
  const char *start = r->at;
  int64_t value = 0;
  bool large = false;
  while (r->at < r->end && is_digit(*r->at)) {
    const int digit = *r->at++ - '0';
    large |= value > (INT64_MAX - digit) / 10;
    if (!large) value = 10 * value + digit;
  }
  *out_magnitude = value;
  *out_too_large = large;
  return r->at > start && !(*start == '0' && r->at - start > 1);
}

int64_t json_read_integer(json_reader *r, int64_t least, int64_t most) {
  if (json_failed(r)) return 0;
  skip_space(r);
  const char *start = r->at;
  const bool negative = r->at < r->end && *r->at == '-';
  int64_t value;
  bool large;
  r->at += negative;
  const bool whole = take_whole(r, &value, &large);
  const bool goes_on = r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E');
  if (negative) value = -value;
  if (!whole || goes_on)
    json_fail(r, "a whole number");
  else if (large || value < least || value > most)
    json_fail(r, "a whole number in range");
  if (!json_failed(r)) return value;
  r->at = start;
  return 0;
}

/* Digits behind a point or an exponent: at least one. */
static bool take_digits(json_reader *r) {
  const char *start = r->at;
  while (r->at < r->end && is_digit(*r->at))
    r->at++;
  return r->at > start;
}

double json_read_number(json_reader *r) {
  if (json_failed(r)) return 0;
  skip_space(r);
  const char *start = r->at;
  int64_t ignored;
  bool large;
  if (r->at < r->end && *r->at == '-') r->at++;
  bool good = take_whole(r, &ignored, &large);
  if (good && r->at < r->end && *r->at == '.') {
    r->at++;
    good = take_digits(r);
  }
  if (good && r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
    good = take_digits(r);
  }
  double value = 0;
  if (good) good = text_read_double(start, (size_t)(r->at - start), &value) && isfinite(value);
  if (good) return value;
  r->at = start;
  json_fail(r, "a number");
  return 0;
}

/* Takes `word` if it is next. */
static bool accept_word(json_reader *r, const char *word) {
  if (json_failed(r)) return false;
  skip_space(r);
  const size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

bool json_read_bool(json_reader *r) {
  if (accept_word(r, "true")) return true;
  if (!accept_word(r, "false")) json_fail(r, "true or false");
  return false;
}

bool json_accept_null(json_reader *r) {
  return accept_word(r, "null");
}

/* A string of any characters; escapes are passed over unread. */
static void skip_string(json_reader *r) {
  json_expect(r, '"');
  while (!json_failed(r) && r->at < r->end && *r->at != '"') {
    if ((unsigned char)*r->at < ' ') json_fail(r, "a string without control characters");
    r->at += *r->at == '\\' && r->end - r->at > 1 ? 2 : 1;
  }
  json_expect(r, '"');
}

/* Brackets that are open, one bit each: 1 for an object. */
void json_skip(json_reader *r) {
  uint64_t objects = 0;
  int depth = 0;
  do {
    bool opened = false;
    if (json_failed(r)) return;
    skip_space(r);
    const char c = r->at < r->end ? *r->at : '\0';
    if (c == '{' || c == '[') {
      if (depth == JSON_DEPTH) json_fail(r, "fewer brackets in brackets");
      r->at++;
      objects = objects << 1 | (c == '{');
      depth++;
      opened = true;
    } else if (c == '"') {
      skip_string(r);
    } else if (c == 't' || c == 'f') {
      json_read_bool(r);
    } else if (c != 'n' || !json_accept_null(r)) {
      json_read_number(r);
    }
    /* What may follow a value: brackets that close, then a comma; or the first member. */
    while (depth > 0 && json_accept(r, objects & 1 ? '}' : ']')) {
      objects >>= 1;
      depth--;
      opened = false;
    }
    if (depth > 0 && !opened) json_expect(r, ',');
    if (depth > 0 && objects & 1) {
      skip_string(r);
      json_expect(r, ':');
    }
  } while (depth > 0);
}
