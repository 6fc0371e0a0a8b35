#include "diag.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCERPT_COLUMNS = 100, EXCERPT_BEFORE = 60 };

static const char *severity_name(diag_severity s) {
  static const char *const names[] = {"error", "warning", "note"};
  return names[s];
}

void diags_init(diags *list) {
  *list = (diags){0};
}

void diags_finish(diags *list) {
  for (size_t i = 0; i < list->count; i++) {
    free(list->items[i].field);
    free(list->items[i].message);
    free(list->items[i].found);
    free(list->items[i].allowed);
  }
  free(list->items);
  *list = (diags){0};
}

/* One more slot, or NULL with `failed` set. */
static diag *diags_slot(diags *list) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 8;
    diag *items = realloc(list->items, capacity * sizeof *items);
    if (!items) {
      list->failed = true;
      return NULL;
    }
    list->items = items;
    list->capacity = capacity;
  }
  return &list->items[list->count];
}

static void diags_vaddf(diags *list, diag_severity severity, const char *code, const char *field, int line,
                        int column, const char *format, va_list args) {
  text message;
  text_init(&message);
  text_vaddf(&message, format, args);
  /* Messages quote what a file or a compiler said: keep them one line, and free of terminal escapes. */
  for (size_t i = 0; i < message.length; i++)
    if ((unsigned char)message.data[i] < 0x20 || message.data[i] == 0x7f) message.data[i] = '?';
  char *message_copy = text_take(&message), *field_copy = field ? strdup(field) : NULL;
  diag *slot = diags_slot(list);
  if (!slot || !message_copy || (field && !field_copy)) {
    list->failed = true;
    free(message_copy);
    free(field_copy);
    return;
  }
  *slot = (diag){severity, code, field_copy, message_copy, line, column, NULL, NULL};
  list->count++;
}

void diags_addf(diags *list, diag_severity severity, const char *code, const char *field, int line,
                int column, const char *format, ...) {
  va_list args;
  va_start(args, format);
  diags_vaddf(list, severity, code, field, line, column, format, args);
  va_end(args);
}

void diags_errorf(diags *list, const char *code, const char *field, const char *format, ...) {
  va_list args;
  va_start(args, format);
  diags_vaddf(list, DIAG_ERROR, code, field, 0, 0, format, args);
  va_end(args);
}

void diags_refusef(diags *list, const char *code, const char *field, const char *found, const char *allowed,
                   const char *format, ...) {
  size_t before = list->count;
  va_list args;
  va_start(args, format);
  diags_vaddf(list, DIAG_ERROR, code, field, 0, 0, format, args);
  va_end(args);
  if (list->count == before) return;
  diag *added = &list->items[before];
  added->found = strdup(found);
  added->allowed = strdup(allowed);
  if (added->found && added->allowed) return;
  free(added->found);
  free(added->allowed);
  added->found = added->allowed = NULL;
  list->failed = true;
}

void diags_copy(diags *list, const diag *item) {
  size_t before = list->count;
  if (item->found)
    diags_refusef(list, item->code, item->field, item->found, item->allowed, "%s", item->message);
  else
    diags_errorf(list, item->code, item->field, "%s", item->message);
  if (list->count == before) return;
  diag *added = &list->items[before];
  added->severity = item->severity;
  added->line = item->line;
  added->column = item->column;
}

static void vdecline(diags *list, const char *code, const char *field, const char *found,
                     const char *allowed_format, va_list args) {
  text allowed;
  text_init(&allowed);
  text_vaddf(&allowed, allowed_format, args);
  list->failed |= allowed.failed;
  diags_refusef(list, code, field, found, text_string(&allowed), "%s is not served: allowed is %s", found,
                text_string(&allowed));
  text_finish(&allowed);
}

void diags_decline(diags *list, const char *code, const char *field, const char *found,
                   const char *allowed_format, ...) {
  va_list args;
  va_start(args, allowed_format);
  vdecline(list, code, field, found, allowed_format, args);
  va_end(args);
}

void diags_decline_number(diags *list, const char *code, const char *field, long long found,
                          const char *allowed_format, ...) {
  char number[32];
  va_list args;
  snprintf(number, sizeof number, "%lld", found);
  va_start(args, allowed_format);
  vdecline(list, code, field, number, allowed_format, args);
  va_end(args);
}

size_t diags_errors(const diags *list) {
  size_t errors = 0;
  for (size_t i = 0; i < list->count; i++)
    errors += list->items[i].severity == DIAG_ERROR;
  return errors;
}

/* Start of 1-based `line`, or NULL when the text is shorter. */
static const char *find_line(const char *source, int line) {
  for (; line > 1; line--) {
    source = strchr(source, '\n');
    if (!source) return NULL;
    source++;
  }
  return source;
}

static bool is_continuation(char byte) {
  return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The offending line, cut to a window around the column when long, and a caret below. Columns count
 * characters (code points), as the YAML parser does. */
static void render_excerpt(const char *source, int line, int column, text *out) {
  const char *start = find_line(source, line);
  if (!start) return;
  size_t length = strcspn(start, "\r\n");
  int skip = column > EXCERPT_COLUMNS ? column - EXCERPT_BEFORE : 0;
  text caret;
  text_init(&caret);
  text_add(out, "    ");
  int at = 0; /* characters before the current one */
  for (size_t i = 0; i < length; i++) {
    if (i > 0 && !is_continuation(start[i])) at++;
    if (at >= skip + EXCERPT_COLUMNS) break;
    if (at < skip) continue;
    bool control = (unsigned char)start[i] < 0x20 || start[i] == 0x7f;
    char byte = control && start[i] != '\t' ? '?' : start[i];
    text_add_bytes(out, &byte, 1);
    if (at + 1 < column && !is_continuation(byte)) text_add(&caret, byte == '\t' ? "\t" : " ");
  }
  if (column > 0) text_addf(out, "\n    %s^", text_string(&caret));
  text_add(out, "\n");
  text_finish(&caret);
}

bool diag_names_field(const diag *d) {
  if (!d->field) return true;
  if (d->line > 0) return strstr(d->message, d->field) != NULL;
  size_t length = strlen(d->field);
  return strncmp(d->message, d->field, length) == 0 && strchr(" :", d->message[length]);
}

void diags_render(const diags *list, const char *file, const char *source, text *out) {
  for (size_t i = 0; i < list->count; i++) {
    const diag *d = &list->items[i];
    if (file) text_add(out, file);
    if (file && d->line > 0) text_add(out, ":");
    if (d->line > 0) text_addf(out, "%d:%d", d->line, d->column);
    if (file || d->line > 0) text_add(out, ": ");
    text_addf(out, "%s: ", severity_name(d->severity));
    if (!diag_names_field(d)) text_addf(out, "%s: ", d->field);
    text_addf(out, "%s [%s]\n", d->message, d->code);
    if (source && d->line > 0) render_excerpt(source, d->line, d->column, out);
  }
}

void diags_render_json(const diags *list, text *out) {
  text_add(out, "[");
  for (size_t i = 0; i < list->count; i++) {
    const diag *d = &list->items[i];
    text_addf(out, "%s{\"severity\": \"%s\", \"code\": ", i ? ", " : "", severity_name(d->severity));
    text_add_json(out, d->code);
    text_add(out, ", \"field\": ");
    if (d->field)
      text_add_json(out, d->field);
    else
      text_add(out, "null");
    text_add(out, ", \"message\": ");
    text_add_json(out, d->message);
    text_addf(out, ", \"line\": %d, \"column\": %d}", d->line, d->column);
  }
  text_add(out, "]");
}
