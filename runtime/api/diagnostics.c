#include "parts.h"
#include <stdlib.h>
#include <string.h>

hd_status hd_diagnostics_create(hd_diagnostics **out_diagnostics) {
  if (out_diagnostics == NULL) return HD_INVALID;
  hd_diagnostics *d = calloc(1, sizeof *d);
  if (d == NULL) return HD_OUT_OF_MEMORY;
  diags_init(&d->list);
  text_init(&d->rendered);
  *out_diagnostics = d;
  return HD_OK;
}

void hd_diagnostics_destroy(hd_diagnostics *d) {
  if (d == NULL) return;
  diags_finish(&d->list);
  text_finish(&d->rendered);
  free(d);
}

size_t hd_diagnostics_count(const hd_diagnostics *d) {
  return d == NULL ? 0 : d->list.count;
}

hd_status hd_diagnostics_get(const hd_diagnostics *d, size_t index, hd_diagnostic *out_diagnostic) {
  static const hd_severity severities[] = {
      [DIAG_ERROR] = HD_ERROR, [DIAG_WARNING] = HD_WARNING, [DIAG_NOTE] = HD_NOTE};
  if (d == NULL || out_diagnostic == NULL || index >= d->list.count) return HD_INVALID;
  const diag *item = &d->list.items[index];
  *out_diagnostic = (hd_diagnostic){
      .severity = severities[item->severity],
      .code = item->code,
      .field = item->field,
      .message = item->message,
      .found = item->found,
      .allowed = item->allowed,
      .line = item->line,
      .column = item->column,
  };
  return HD_OK;
}

const char *hd_diagnostics_text(hd_diagnostics *d) {
  static const char *const severities[] = {
      [DIAG_ERROR] = "error", [DIAG_WARNING] = "warning", [DIAG_NOTE] = "note"};
  if (d == NULL) return "";
  text_clear(&d->rendered);
  for (size_t i = 0; i < d->list.count; i++) {
    const diag *item = &d->list.items[i];
    if (item->line > 0) text_addf(&d->rendered, "%d:%d: ", item->line, item->column);
    text_addf(&d->rendered, "%s: ", severities[item->severity]);
    if (item->line == 0 && !diag_names_field(item)) text_addf(&d->rendered, "%s: ", item->field);
    text_addf(&d->rendered, "%s [%s]\n", item->message, item->code);
  }
  return text_string(&d->rendered);
}

static void empty(diags *list) {
  if (list->items != NULL) diags_finish(list);
  diags_init(list);
}

void api_begin(api_call *call, hd_diagnostics *wanted) {
  diags_init(&call->thrown_away);
  call->errors = wanted != NULL ? &wanted->list : &call->thrown_away;
  if (wanted != NULL) empty(&wanted->list);
}

hd_status api_end(api_call *call, hd_status status) {
  if (call->thrown_away.items != NULL) diags_finish(&call->thrown_away);
  return status;
}

void api_append(diags *to, const diags *from) {
  for (size_t i = 0; i < from->count; i++)
    diags_copy(to, &from->items[i]);
}

bool api_take_struct(const void *from, size_t smallest, void *to, size_t room, const char *what,
                     diags *errors) {
  size_t size = 0;
  if (from != NULL) memcpy(&size, from, sizeof size);
  if (size < smallest) {
    diags_errorf(errors, "context.options", what, "%s is missing, or its size is not set", what);
    return false;
  }
  for (size_t i = room; i < size; i++) {
    if (((const unsigned char *)from)[i] == 0) continue;
    diags_errorf(errors, "context.options", what, "%s has something set that heddle %s doesn't know", what,
                 HD_VERSION_TEXT);
    return false;
  }
  memcpy(to, from, size < room ? size : room);
  if (size < room) memset((unsigned char *)to + size, 0, room - size);
  return true;
}

hd_status api_give_struct(const void *from, size_t room, void *to, size_t smallest) {
  size_t size = 0;
  if (to != NULL) memcpy(&size, to, sizeof size);
  if (size < smallest) return HD_INVALID;
  /* `size` itself stays the caller's. What is beyond this library's struct becomes 0. */
  memset((unsigned char *)to + sizeof size, 0, size - sizeof size);
  memcpy((unsigned char *)to + sizeof size, (const unsigned char *)from + sizeof size,
         (size < room ? size : room) - sizeof size);
  return HD_OK;
}

uint32_t hd_version(void) {
  return HD_VERSION_MAJOR * 1000000 + HD_VERSION_MINOR * 1000 + HD_VERSION_PATCH;
}

const char *hd_version_text(void) {
  return HD_VERSION_TEXT;
}
