#include "draft.h"
#include <string.h>

/* In the order of the file. A field without a section stands at the margin. */
static const struct {
  const char *section, *key, *option;
} rows[FIELD_COUNT] = {
    [FIELD_NAME] = {NULL, "name", "name"},
    [FIELD_QUERY_DTYPE] = {"query", "dtype", "query-dtype"},
    [FIELD_HEADS_PER_KV] = {"query", "heads_per_kv", "heads-per-kv"},
    [FIELD_ROWS] = {"query", "rows", "rows"},
    [FIELD_HEAD_DIM] = {NULL, "head_dim", "head-dim"},
    [FIELD_KV_DTYPE] = {"kv", "dtype", "kv-dtype"},
    [FIELD_PAGE] = {"kv", "page", "page"},
    [FIELD_K] = {"kv", "k", "k"},
    [FIELD_V] = {"kv", "v", "v"},
    [FIELD_TAIL] = {"kv", "tail", NULL},
    [FIELD_GRANULARITY] = {"scale", "granularity", "scale"},
    [FIELD_GROUP] = {"scale", "group", "group"},
    [FIELD_SCALE_SOURCE] = {"scale", "source", "scale-source"},
    [FIELD_SCALE_DTYPE] = {"scale", "dtype", "scale-dtype"},
    [FIELD_SCALE_K] = {"scale", "k", "k-scale"},
    [FIELD_SCALE_V] = {"scale", "v", "v-scale"},
    [FIELD_WRITER] = {"scale", "writer", "writer"},
    [FIELD_FORM] = {"select", "form", "select"},
    [FIELD_BLOCK] = {"select", "block", "block"},
    [FIELD_INDEX] = {"select", "index", NULL},
    [FIELD_PER] = {"select", "per", "per"},
    [FIELD_CAUSAL] = {"mask", "causal", "causal"},
    [FIELD_WINDOW] = {"mask", "window", "window"},
    [FIELD_SINKS] = {"mask", "sinks", "sinks"},
    [FIELD_LOGITS_SCALE] = {"logits", "scale", "logits-scale"},
    [FIELD_SOFTCAP] = {"logits", "softcap", "softcap"},
    [FIELD_OUTPUT_DTYPE] = {"output", "dtype", "output-dtype"},
    [FIELD_LSE] = {"output", "lse", "lse"},
    [FIELD_TARGETS] = {NULL, "targets", NULL},
};

void draft_init(draft *d) {
  *d = (draft){0};
  for (int i = 0; i < FIELD_COUNT; i++) {
    text_init(&d->fields[i].value);
    text_init(&d->fields[i].note);
  }
}

void draft_finish(draft *d) {
  for (int i = 0; i < FIELD_COUNT; i++) {
    text_finish(&d->fields[i].value);
    text_finish(&d->fields[i].note);
  }
}

void draft_set(draft *d, field_id field, field_source source, const char *note, const char *format, ...) {
  draft_field *f = &d->fields[field];
  if (source < f->source) return;
  f->source = source;
  text_clear(&f->value);
  text_clear(&f->note);
  va_list args;
  va_start(args, format);
  text_vaddf(&f->value, format, args);
  va_end(args);
  if (note) text_add(&f->note, note);
}

bool draft_has(const draft *d, field_id field) {
  return d->fields[field].source != SOURCE_NONE;
}

const char *draft_value(const draft *d, field_id field) {
  return text_string(&d->fields[field].value);
}

const char *draft_path(field_id field) {
  static char path[64];
  text t;
  text_init(&t);
  text_addf(&t, "%s%s%s", rows[field].section ? rows[field].section : "", rows[field].section ? "." : "",
            rows[field].key);
  strncpy(path, text_string(&t), sizeof path - 1);
  text_finish(&t);
  return path;
}

const char *draft_option(field_id field) {
  return rows[field].option;
}

/* The value, and its note as a comment in one column with its neighbours. */
static void write_field(const draft *d, field_id field, text *out) {
  enum { COMMENT_COLUMN = 40 };
  const draft_field *f = &d->fields[field];
  size_t before = out->length;
  text_addf(out, "%s%s: %s", rows[field].section ? "  " : "", rows[field].key, draft_value(d, field));
  if (f->note.length > 0) {
    int width = (int)(out->length - before);
    text_addf(out, "%*s # %s", width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 0, "",
              text_string(&f->note));
  }
  text_add(out, "\n");
}

void draft_write(const draft *d, const char *about, text *out) {
  const char *section = NULL;
  text_addf(
      out,
      "# %s\n# docs/spec.md has every field; fields without a comment are as they were given.\nheddle: 1\n",
      about);
  for (int i = 0; i < FIELD_COUNT; i++) {
    if (!draft_has(d, (field_id)i)) continue;
    bool same = rows[i].section && section && strcmp(rows[i].section, section) == 0;
    if (!same && i > 0) text_add(out, "\n");
    if (!same && rows[i].section) text_addf(out, "%s:\n", rows[i].section);
    section = rows[i].section;
    write_field(d, (field_id)i, out);
    if (i == FIELD_NAME) text_add(out, "\nkernels: [write, decode]\n");
  }
}
