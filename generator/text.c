#include "text.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_FIRST_CAPACITY = 64, DISTANCE_MAX_LENGTH = 64 };

void text_init(text *t) {
  *t = (text){0};
}

void text_finish(text *t) {
  free(t->data);
  *t = (text){0};
}

void text_clear(text *t) {
  t->length = 0;
  t->failed = false;
  if (t->data) t->data[0] = '\0';
}

/* Room for `count` more bytes and the NUL. */
static bool text_reserve(text *t, size_t count) {
  if (t->failed) return false;
  if (count > SIZE_MAX / 2 - t->length - 1) {
    t->failed = true;
    return false;
  }
  size_t needed = t->length + count + 1;
  if (needed <= t->capacity) return true;
  size_t capacity = t->capacity ? t->capacity : TEXT_FIRST_CAPACITY;
  while (capacity < needed)
    capacity *= 2;
  char *data = realloc(t->data, capacity);
  if (!data) {
    t->failed = true;
    return false;
  }
  t->data = data;
  t->capacity = capacity;
  return true;
}

void text_add_bytes(text *t, const void *bytes, size_t count) {
  if (!text_reserve(t, count)) return;
  if (count) memcpy(t->data + t->length, bytes, count);
  t->length += count;
  t->data[t->length] = '\0';
}

void text_add(text *t, const char *string) {
  text_add_bytes(t, string, strlen(string));
}

void text_vaddf(text *t, const char *format, va_list args) {
  if (t->failed) return;
  va_list measured;
  va_copy(measured, args);
  int count = vsnprintf(NULL, 0, format, measured);
  va_end(measured);
  if (count < 0) {
    t->failed = true;
    return;
  }
  if (!text_reserve(t, (size_t)count)) return;
  vsnprintf(t->data + t->length, (size_t)count + 1, format, args);
  t->length += (size_t)count;
}

void text_addf(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_vaddf(t, format, args);
  va_end(args);
}

/* Bytes of the well-formed UTF-8 sequence at `s`, 0 when there is none (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). A NUL ends every sequence, so nothing behind it is read. */
static size_t utf8_sequence(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  unsigned low = 0x80, high = 0xbf;
  if (s[0] == 0xe0) low = 0xa0;
  if (s[0] == 0xed) high = 0x9f;
  if (s[0] == 0xf0) low = 0x90;
  if (s[0] == 0xf4) high = 0x8f;
  if (s[1] < low || s[1] > high) return 0;
  size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return length;
}

void text_add_json(text *t, const char *string) {
  static const struct {
    char byte;
    const char *escape;
  } escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
  text_add(t, "\"");
  for (const unsigned char *s = (const unsigned char *)string; *s;) {
    const char *escape = NULL;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
      if (*s == (unsigned char)escapes[i].byte) escape = escapes[i].escape;
    size_t length = utf8_sequence(s);
    if (escape) {
      text_add(t, escape);
    } else if (*s < 0x20 || *s == 0x7f) {
      text_addf(t, "\\u%04x", (unsigned)*s);
    } else if (length == 0) {
      text_add(t, "\\ufffd"); /* not UTF-8: JSON has no way to carry the byte */
    } else {
      text_add_bytes(t, s, length);
    }
    s += length ? length : 1;
  }
  text_add(t, "\"");
}

/* Fewest significant digits that read back as `value` (finite, > 0). Returns their count; the value is
 * d.ddd * 10^exponent. printf and strtod share the locale, so the round trip holds in any; only digits are
 * kept. */
static int shortest_digits(double value, char digits[18], int *out_exponent) {
  char buffer[64];
  for (int precision = 0; precision <= 16; precision++) {
    snprintf(buffer, sizeof buffer, "%.*e", precision, value);
    if (strtod(buffer, NULL) == value) break;
  }
  int count = 0;
  const char *s = buffer;
  for (; *s && *s != 'e'; s++)
    if (*s >= '0' && *s <= '9' && count < 17) digits[count++] = *s;
  *out_exponent = *s ? atoi(s + 1) : 0;
  while (count > 1 && digits[count - 1] == '0')
    count--;
  digits[count] = '\0';
  return count;
}

void text_add_double(text *t, double value) {
  if (isnan(value)) {
    text_add(t, "nan");
    return;
  }
  if (signbit(value)) text_add(t, "-");
  value = fabs(value);
  if (isinf(value)) {
    text_add(t, "inf");
  } else if (value == 0) {
    text_add(t, "0");
  } else {
    char digits[18];
    int exponent, count = shortest_digits(value, digits, &exponent);
    if (exponent < -5 || exponent > 16) { /* 1.25e-7 */
      text_add_bytes(t, digits, 1);
      if (count > 1) text_add(t, ".");
      text_add(t, digits + 1);
      text_addf(t, "e%d", exponent);
    } else if (exponent < 0) { /* 0.00125 */
      text_add(t, "0.");
      for (int i = -1; i > exponent; i--)
        text_add(t, "0");
      text_add(t, digits);
    } else { /* 12500, 1.25 */
      for (int i = 0; i < count || i <= exponent; i++) {
        if (i == exponent + 1) text_add(t, ".");
        text_add_bytes(t, i < count ? &digits[i] : "0", 1);
      }
    }
  }
}

/* strtod reads the point of the process's locale; a number in a file has a full stop. */
bool text_read_double(const char *bytes, size_t length, double *out_value) {
  enum { LONGEST = 100 };
  char point[16], buffer[LONGEST + sizeof point], *end;
  snprintf(point, sizeof point, "%.1f", 0.0); /* "0.0", "0,0" */
  point[strlen(point) - 1] = '\0';
  if (length == 0 || length > LONGEST || memchr(bytes, '\0', length)) return false;
  const char *stop = memchr(bytes, '.', length);
  if (stop)
    snprintf(buffer, sizeof buffer, "%.*s%s%.*s", (int)(stop - bytes), bytes, point + 1,
             (int)(length - 1 - (size_t)(stop - bytes)), stop + 1);
  else
    snprintf(buffer, sizeof buffer, "%.*s", (int)length, bytes);
  const double value = strtod(buffer, &end);
  if (*end) return false;
  *out_value = value;
  return true;
}

char *text_take(text *t) {
  text_add_bytes(t, NULL, 0); /* an empty text is a string too */
  char *data = t->failed ? NULL : t->data;
  if (!data) free(t->data);
  *t = (text){0};
  return data;
}

const char *text_string(const text *t) {
  return t->data && !t->failed ? t->data : "";
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

size_t text_distance(const char *a, const char *b) {
  size_t a_length = strnlen(a, DISTANCE_MAX_LENGTH), b_length = strnlen(b, DISTANCE_MAX_LENGTH);
  /* rows[i % 3][j]: distance of the first i characters of a and the first j of b */
  size_t rows[3][DISTANCE_MAX_LENGTH + 1];
  for (size_t j = 0; j <= b_length; j++)
    rows[0][j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b_length; j++) {
      size_t substitution = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = smaller(substitution, smaller(above[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = smaller(row[j], above2[j - 2] + 1);
    }
  }
  return rows[a_length % 3][b_length];
}
