#include "cli.h"
#include <inttypes.h>
#include <math.h>

void json_key(text *t, bool *first, const char *name) {
  if (!*first) text_add(t, ", ");
  *first = false;
  text_add_json(t, name);
  text_add(t, ": ");
}

void json_text(text *t, bool *first, const char *name, const char *value) {
  json_key(t, first, name);
  text_add_json(t, value);
}

void json_int(text *t, bool *first, const char *name, int64_t value) {
  json_key(t, first, name);
  text_addf(t, "%" PRId64, value);
}

void json_bool(text *t, bool *first, const char *name, bool value) {
  json_key(t, first, name);
  text_add(t, value ? "true" : "false");
}

void json_number(text *t, bool *first, const char *name, double value) {
  json_key(t, first, name);
  if (isfinite(value))
    text_add_double(t, value);
  else
    text_add(t, "null");
}
