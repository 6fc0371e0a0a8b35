#include "tune.h"
#include "../../generator/sha256.h"
#include "../../generator/spec_yaml.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tune_evidence_name(tune_evidence e) {
  static const char *const names[] = {"measured", "simulated"};
  return names[e];
}

/* ---- Fields, as tables ---- */

typedef enum field_kind {
  FIELD_TEXT,
  FIELD_INT,
  FIELD_INT64,
  FIELD_NUMBER,
  FIELD_FLAG,
  FIELD_EVIDENCE
} field_kind;

typedef struct field {
  const char *name;
  field_kind kind;
  size_t offset, size; /* size: of a text's array */
  double least, most;  /* numbers */
} field;

#define TEXT_FIELD(type, name, member)                                                                       \
  { name, FIELD_TEXT, offsetof(type, member), sizeof((type *)0)->member, 0, 0 }

static const field head[] = {
    TEXT_FIELD(tune_record, "name", name),
    TEXT_FIELD(tune_record, "contract", contract),
    {"heads_per_kv", FIELD_INT, offsetof(tune_record, heads_per_kv), 0, 1, 1024},
    {"page", FIELD_INT, offsetof(tune_record, page), 0, 1, 1 << 20},
    TEXT_FIELD(tune_record, "target", target),
    {"evidence", FIELD_EVIDENCE, offsetof(tune_record, evidence), 0, 0, 0},
    TEXT_FIELD(tune_record, "device", device),
    {"compute_units", FIELD_INT, offsetof(tune_record, compute_units), 0, 1, 1 << 20},
    TEXT_FIELD(tune_record, "compiler", compiler),
    {"margin", FIELD_NUMBER, offsetof(tune_record, margin), 0, 0, 1},
};

static const field entry_fields[] = {
    {"seqs", FIELD_INT64, offsetof(tune_entry, shape.seqs), 0, 1, 1 << 20},
    {"length", FIELD_INT64, offsetof(tune_entry, shape.length), 0, 1, 1 << 28},
    {"kv_heads", FIELD_INT64, offsetof(tune_entry, shape.kv_heads), 0, 1, 1 << 12},
    {"rows", FIELD_INT, offsetof(tune_entry, shape.rows), 0, 1, 1024},
    {"ragged", FIELD_FLAG, offsetof(tune_entry, shape.ragged), 0, 0, 0},
    TEXT_FIELD(tune_entry, "variant", variant),
    {"split", FIELD_INT64, offsetof(tune_entry, splits), 0, 1, 4096},
    {"us", FIELD_NUMBER, offsetof(tune_entry, us), 0, 0, 1e12},
    {"policy_us", FIELD_NUMBER, offsetof(tune_entry, policy_us), 0, 0, 1e12},
    {"read_us", FIELD_NUMBER, offsetof(tune_entry, read_us), 0, 0, 1e12},
    {"candidates", FIELD_INT, offsetof(tune_entry, candidates), 0, 1, 1 << 20},
};

enum { HEAD_COUNT = sizeof head / sizeof *head, ENTRY_COUNT = sizeof entry_fields / sizeof *entry_fields };

/* ---- Writing ---- */

static void write_value(const field *f, const void *of, text *out) {
  const char *at = (const char *)of + f->offset;
  switch (f->kind) {
  case FIELD_TEXT:
    text_add_json(out, at);
    break;
  case FIELD_INT:
    text_addf(out, "%d", *(const int *)(const void *)at);
    break;
  case FIELD_INT64:
    text_addf(out, "%" PRId64, *(const int64_t *)(const void *)at);
    break;
  case FIELD_NUMBER:
    text_add_double(out, *(const double *)(const void *)at);
    break;
  case FIELD_FLAG:
    text_add(out, *(const bool *)(const void *)at ? "true" : "false");
    break;
  case FIELD_EVIDENCE:
    text_add(out, tune_evidence_name(*(const tune_evidence *)(const void *)at));
    break;
  }
}

void tune_record_write(const tune_record *r, text *out) {
  text_add(out, "heddle_tuned: 1\n");
  for (int i = 0; i < HEAD_COUNT; i++) {
    text_addf(out, "%s: ", head[i].name);
    write_value(&head[i], r, out);
    text_add(out, "\n");
  }
  text_add(
      out,
      "# what the times were taken of: SHA-256 of each variant's source and launch descriptor\nsources:\n");
  for (int i = 0; i < r->source_count; i++)
    text_addf(out, "  %s: %s\n", r->sources[i].variant, r->sources[i].sum);
  text_add(out, "entries:\n");
  for (int n = 0; n < r->entry_count; n++) {
    text_add(out, "  - {");
    for (int i = 0; i < ENTRY_COUNT; i++) {
      text_addf(out, "%s%s: ", i ? ", " : "", entry_fields[i].name);
      write_value(&entry_fields[i], &r->entries[n], out);
    }
    text_add(out, "}\n");
  }
}

/* ---- Reading ---- */

static bool reject(diags *errors, const spec_node *at, const char *format, ...) HD_PRINTF(3, 4);

/* Always false. */
static bool reject(diags *errors, const spec_node *at, const char *format, ...) {
  text message;
  va_list args;
  text_init(&message);
  va_start(args, format);
  text_vaddf(&message, format, args);
  va_end(args);
  diags_addf(errors, DIAG_ERROR, "tune.record", NULL, at->line, at->column, "%s", text_string(&message));
  text_finish(&message);
  return false;
}

static bool printable(const char *word) {
  for (; *word; word++)
    if ((unsigned char)*word < 0x20 || (unsigned char)*word == 0x7f) return false;
  return true;
}

static bool read_text(const field *f, const spec_node *node, char *to, diags *errors) {
  if (!node->text || strlen(node->text) >= f->size || !printable(node->text))
    return reject(errors, node, "%s takes a text of less than %zu bytes", f->name, f->size);
  memset(to, 0, f->size);
  memcpy(to, node->text, strlen(node->text));
  return true;
}

static bool read_number(const field *f, const spec_node *node, double *out, diags *errors) {
  double value;
  bool whole = f->kind != FIELD_NUMBER;
  if (node->text && !node->quoted && text_read_double(node->text, strlen(node->text), &value) &&
      value >= f->least && value <= f->most && (!whole || value == (double)(int64_t)value)) {
    *out = value;
    return true;
  }
  return reject(errors, node, "%s takes a %snumber from %g to %g", f->name, whole ? "whole " : "", f->least,
                f->most);
}

static bool read_word(const field *f, const spec_node *node, const char *first, const char *second,
                      bool *out_second, diags *errors) {
  if (node->text && (strcmp(node->text, first) == 0 || strcmp(node->text, second) == 0)) {
    *out_second = strcmp(node->text, second) == 0;
    return true;
  }
  return reject(errors, node, "%s is %s or %s", f->name, first, second);
}

static bool read_value(const field *f, const spec_node *node, void *of, diags *errors) {
  char *at = (char *)of + f->offset;
  double number = 0;
  bool flag = false;
  switch (f->kind) {
  case FIELD_TEXT:
    return read_text(f, node, at, errors);
  case FIELD_INT:
    if (!read_number(f, node, &number, errors)) return false;
    *(int *)(void *)at = (int)number;
    return true;
  case FIELD_INT64:
    if (!read_number(f, node, &number, errors)) return false;
    *(int64_t *)(void *)at = (int64_t)number;
    return true;
  case FIELD_NUMBER:
    return read_number(f, node, (double *)(void *)at, errors);
  case FIELD_FLAG:
    return read_word(f, node, "false", "true", (bool *)(void *)at, errors);
  default:
    if (!read_word(f, node, tune_evidence_name(TUNE_MEASURED), tune_evidence_name(TUNE_SIMULATED), &flag,
                   errors))
      return false;
    *(tune_evidence *)(void *)at = flag ? TUNE_SIMULATED : TUNE_MEASURED;
    return true;
  }
}

static const spec_node *value_of(const spec_node *map, const char *key) {
  for (int i = 0; i < map->count; i++)
    if (map->pairs[i].key->text && strcmp(map->pairs[i].key->text, key) == 0) return map->pairs[i].value;
  return NULL;
}

/* Every field once. */
static bool read_fields(const field *fields, int count, const spec_node *map, void *of, diags *errors) {
  bool good = true;
  for (int i = 0; i < count; i++) {
    const spec_node *value = value_of(map, fields[i].name);
    if (value)
      good = read_value(&fields[i], value, of, errors) && good;
    else
      good = reject(errors, map, "%s is missing", fields[i].name);
  }
  return good;
}

static bool known_key(const field *fields, int count, const char *key) {
  for (int i = 0; i < count; i++)
    if (strcmp(fields[i].name, key) == 0) return true;
  return false;
}

static bool check_keys(const field *fields, int count, const spec_node *map, const char *const *others,
                       diags *errors) {
  bool good = true;
  for (int i = 0; i < map->count; i++) {
    const char *key = map->pairs[i].key->text;
    bool known = key && known_key(fields, count, key);
    for (int n = 0; !known && key && others && others[n]; n++)
      known = strcmp(others[n], key) == 0;
    if (!known) good = reject(errors, map->pairs[i].key, "unknown key '%s'", key ? key : "");
  }
  return good;
}

static bool is_sum(const char *word) {
  return word && sha256_is_hex(word);
}

static bool is_variant(const char *name) {
  variant v;
  return strlen(name) < 64 && variant_parse(name, &v);
}

static int find_source(const tune_record *r, const char *name) {
  for (int i = 0; i < r->source_count; i++)
    if (strcmp(r->sources[i].variant, name) == 0) return i;
  return -1;
}

/* Keeps the sources sorted by name. */
static bool add_source(tune_record *r, const char *name, const char *sum) {
  int at = find_source(r, name);
  if (at >= 0) return strcmp(r->sources[at].sum, sum) == 0;
  if (r->source_count == (int)(sizeof r->sources / sizeof *r->sources)) return false;
  for (at = r->source_count++; at > 0 && strcmp(r->sources[at - 1].variant, name) > 0; at--)
    r->sources[at] = r->sources[at - 1];
  memset(&r->sources[at], 0, sizeof r->sources[at]);
  snprintf(r->sources[at].variant, sizeof r->sources[at].variant, "%s", name);
  snprintf(r->sources[at].sum, sizeof r->sources[at].sum, "%s", sum);
  return true;
}

static bool read_sources(const spec_node *map, tune_record *r, diags *errors) {
  if (map->kind != NODE_MAP) return reject(errors, map, "sources takes a mapping of variants");
  for (int i = 0; i < map->count; i++) {
    const spec_node *key = map->pairs[i].key, *sum = map->pairs[i].value;
    if (!key->text || !is_variant(key->text)) return reject(errors, key, "this is no variant");
    if (!is_sum(sum->text)) return reject(errors, sum, "the sum of a source is 64 hexadecimal digits");
    if (!add_source(r, key->text, sum->text)) return reject(errors, key, "too many sources");
  }
  return true;
}

static int order_of(const tune_shape *a, const tune_shape *b) {
  const int64_t x[] = {a->ragged, a->rows, a->kv_heads, a->seqs, a->length};
  const int64_t y[] = {b->ragged, b->rows, b->kv_heads, b->seqs, b->length};
  for (size_t i = 0; i < sizeof x / sizeof *x; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

const tune_entry *tune_record_find(const tune_record *r, const tune_shape *shape) {
  for (int i = 0; i < r->entry_count; i++)
    if (order_of(&r->entries[i].shape, shape) == 0) return &r->entries[i];
  return NULL;
}

bool tune_record_add(tune_record *r, const tune_entry *e, const char *sum) {
  if (!add_source(r, e->variant, sum)) return false;
  int at = 0;
  while (at < r->entry_count && order_of(&r->entries[at].shape, &e->shape) < 0)
    at++;
  bool replaces = at < r->entry_count && order_of(&r->entries[at].shape, &e->shape) == 0;
  if (!replaces) {
    if (r->entry_count == TUNE_MAX_ENTRIES) return false;
    memmove(&r->entries[at + 1], &r->entries[at], (size_t)(r->entry_count - at) * sizeof *r->entries);
    r->entry_count++;
  }
  r->entries[at] = *e;
  return true;
}

static bool read_entry(const spec_node *node, tune_record *r, diags *errors) {
  tune_entry e;
  memset(&e, 0, sizeof e);
  if (node->kind != NODE_MAP) return reject(errors, node, "an entry is a mapping");
  if (!check_keys(entry_fields, ENTRY_COUNT, node, NULL, errors)) return false;
  if (!read_fields(entry_fields, ENTRY_COUNT, node, &e, errors)) return false;
  if (!is_variant(e.variant)) return reject(errors, node, "'%s' is no variant", e.variant);
  int source = find_source(r, e.variant);
  if (source < 0) return reject(errors, node, "sources has no %s", e.variant);
  if (tune_record_find(r, &e.shape)) return reject(errors, node, "a second entry for a shape");
  if (!tune_record_add(r, &e, r->sources[source].sum))
    return reject(errors, node, "more than %d entries", TUNE_MAX_ENTRIES);
  return true;
}

static bool read_record(const spec_node *root, tune_record *r, diags *errors) {
  static const char *const others[] = {"heddle_tuned", "sources", "entries", NULL};
  const spec_node *version = value_of(root, "heddle_tuned"), *sources = value_of(root, "sources"),
                  *entries = value_of(root, "entries");
  if (!version || !version->text || strcmp(version->text, "1") != 0)
    return reject(errors, version ? version : root, "heddle_tuned: 1 is missing: this is no record");
  if (!check_keys(head, HEAD_COUNT, root, others, errors)) return false;
  if (!read_fields(head, HEAD_COUNT, root, r, errors)) return false;
  if (!is_sum(r->contract)) return reject(errors, root, "contract takes the 64 digits of a key");
  if (!target_find(r->target)) return reject(errors, root, "unknown target '%s'", r->target);
  if (!sources || !entries) return reject(errors, root, "%s is missing", sources ? "entries" : "sources");
  if (!read_sources(sources, r, errors)) return false;
  /* "entries:" with nothing behind it: none yet. */
  if (entries->kind != NODE_LIST)
    return entries->text && !entries->text[0] ? true : reject(errors, entries, "entries takes a list");
  bool good = true;
  for (int i = 0; good && i < entries->count; i++)
    good = read_entry(entries->items[i], r, errors);
  return good;
}

hd_status tune_record_parse(const char *yaml, size_t length, tune_record *out, diags *errors) {
  spec_tree tree;
  size_t before = diags_errors(errors);
  hd_status status = spec_tree_parse(yaml, length, &tree, errors);
  if (status != HD_OK) return status;
  tune_record *r = calloc(1, sizeof *r);
  if (!r) {
    spec_tree_finish(&tree);
    return HD_OUT_OF_MEMORY;
  }
  bool good = read_record(tree.root, r, errors) && diags_errors(errors) == before;
  if (good) *out = *r;
  free(r);
  spec_tree_finish(&tree);
  return good ? HD_OK : HD_DECLINED;
}

/* ---- Merging ---- */

static bool differ(diags *errors, const char *what, const char *a, const char *b) {
  if (strcmp(a, b) == 0) return false;
  diags_errorf(errors, "tune.merge", NULL, "the records differ in %s: '%s' and '%s'", what, a, b);
  return true;
}

static bool better(const tune_entry *a, const tune_entry *b) {
  if (a->us != b->us) return a->us < b->us;
  int order = strcmp(a->variant, b->variant);
  if (order) return order < 0;
  if (a->splits != b->splits) return a->splits < b->splits;
  if (a->policy_us != b->policy_us) return a->policy_us < b->policy_us;
  if (a->read_us != b->read_us) return a->read_us < b->read_us;
  return a->candidates > b->candidates;
}

static bool take_entries(tune_record *to, const tune_record *from, diags *errors) {
  for (int i = 0; i < from->source_count; i++)
    if (!add_source(to, from->sources[i].variant, from->sources[i].sum)) {
      diags_errorf(errors, "tune.merge", NULL, "the records were made by generators that emit %s differently",
                   from->sources[i].variant);
      return false;
    }
  for (int i = 0; i < from->entry_count; i++) {
    const tune_entry *e = &from->entries[i], *own = tune_record_find(to, &e->shape);
    if (own && !better(e, own)) continue;
    if (!tune_record_add(to, e, from->sources[find_source(from, e->variant)].sum)) {
      diags_errorf(errors, "tune.merge", NULL, "together the records have more than %d entries",
                   TUNE_MAX_ENTRIES);
      return false;
    }
  }
  return true;
}

hd_status tune_record_merge(const tune_record *a, const tune_record *b, tune_record *out, diags *errors) {
  size_t before = diags_errors(errors);
  differ(errors, "contract", a->contract, b->contract);
  differ(errors, "target", a->target, b->target);
  differ(errors, "device", a->device, b->device);
  differ(errors, "evidence", tune_evidence_name(a->evidence), tune_evidence_name(b->evidence));
  differ(errors, "compiler", a->compiler, b->compiler);
  if (a->compute_units != b->compute_units)
    diags_errorf(errors, "tune.merge", NULL, "the records differ in compute_units: %d and %d",
                 a->compute_units, b->compute_units);
  if (diags_errors(errors) > before) return HD_DECLINED;
  tune_record *r = malloc(sizeof *r);
  if (!r) return HD_OUT_OF_MEMORY;
  *r = *a;
  if (strcmp(b->name, a->name) < 0) memcpy(r->name, b->name, sizeof r->name);
  if (b->margin > r->margin) r->margin = b->margin;
  bool good = take_entries(r, b, errors);
  if (good) *out = *r;
  free(r);
  return good ? HD_OK : HD_DECLINED;
}
