#include "cache_explain.h"
#include "cache_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of a field, up to its line's end; NULL when there is no such line. */
static const char *value_of(const char *key_text, const char *field, size_t field_length, int *out_length) {
  for (const char *line = key_text; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    if (length >= field_length + 1 && strncmp(line, field, field_length) == 0 && line[field_length] == ':') {
      const char *value = line + field_length + 1;
      value += *value == ' ';
      *out_length = (int)(line + length - value);
      return value;
    }
    line += length + (line[length] == '\n');
  }
  *out_length = 0;
  return NULL;
}

int key_text_compare(const char *wanted, const char *found,
                     key_difference out_differences[CACHE_MOST_FIELDS]) {
  int count = 0;
  for (const char *line = wanted; *line != '\0' && count < CACHE_MOST_FIELDS;) {
    size_t length = strcspn(line, "\n"), field_length = strcspn(line, ":\n");
    key_difference d = {0};
    snprintf(d.field, sizeof d.field, "%.*s", (int)field_length, line);
    d.wanted = value_of(wanted, line, field_length, &d.wanted_length);
    d.found = value_of(found, line, field_length, &d.found_length);
    bool same = d.wanted != NULL && d.found != NULL && d.wanted_length == d.found_length &&
                memcmp(d.wanted, d.found, (size_t)d.wanted_length) == 0;
    if (!same) out_differences[count++] = d;
    line += length + (line[length] == '\n');
  }
  return count;
}

typedef struct search {
  const char *wanted;
  cache_neighbour best;
  int differences;
  bool failed;
} search;

static bool consider(void *user, const char *place, const char *key, const void *bytes, size_t size) {
  search *s = user;
  cache_file file;
  diags ignored;
  key_difference differences[CACHE_MOST_FIELDS];
  diags_init(&ignored);
  bool good = cache_file_parse(bytes, size, &file, &ignored) == HD_OK;
  diags_finish(&ignored);
  if (!good) return true;
  char *key_text = strndup(file.key_text, file.key_text_size), *where = strdup(place);
  s->failed = key_text == NULL || where == NULL;
  int count = s->failed ? 0 : key_text_compare(s->wanted, key_text, differences);
  bool nearer = !s->failed && (s->best.key_text == NULL || count < s->differences ||
                               (count == s->differences && strcmp(key, s->best.key) < 0));
  if (nearer) {
    cache_neighbour_finish(&s->best);
    s->best.place = where;
    s->best.key_text = key_text;
    snprintf(s->best.key, sizeof s->best.key, "%s", key);
    s->differences = count;
  } else {
    free(key_text);
    free(where);
  }
  return !s->failed && !(nearer && count == 0);
}

hd_status cache_nearest(cache *c, const char *key_text, cache_neighbour *out_neighbour, diags *errors) {
  search s = {.wanted = key_text};
  hd_status status = cache_each_entry(c, consider, &s, errors);
  if (status == HD_OK && s.failed) status = HD_OUT_OF_MEMORY;
  if (status == HD_OK)
    *out_neighbour = s.best;
  else
    cache_neighbour_finish(&s.best);
  return status;
}

void cache_neighbour_finish(cache_neighbour *n) {
  free(n->place);
  free(n->key_text);
  *n = (cache_neighbour){0};
}
