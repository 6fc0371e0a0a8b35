#include "dtype_words.h"
#include "guess.h"
#include "spec_field.h"
#include "target.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(granularity) == sizeof(int) && sizeof(dtype) == sizeof(int),
               "words are stored through int");

static void *place_at(spec_reader *r, size_t offset) {
  return (char *)&r->spec + offset;
}

static void store_int(spec_reader *r, size_t offset, int value) {
  memcpy(place_at(r, offset), &value, sizeof value);
}

static bool is_empty(const spec_node *node) {
  return node->kind == NODE_SCALAR && !node->quoted && node->text[0] == '\0';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* [+-] digits with at most one point, then an exponent. */
static bool is_number(const char *s) {
  if (*s == '-' || *s == '+') s++;
  int digits = 0;
  for (; is_digit(*s); s++)
    digits++;
  if (*s == '.')
    for (s++; is_digit(*s); s++)
      digits++;
  if (digits == 0) return false;
  if (*s == 'e' || *s == 'E') {
    s++;
    if (*s == '-' || *s == '+') s++;
    if (!is_digit(*s)) return false;
    while (is_digit(*s))
      s++;
  }
  return *s == '\0';
}

const char *spec_found(const spec_node *node, char buffer[SPEC_FOUND_BYTES]) {
  if (node->kind != NODE_SCALAR || is_empty(node)) {
    snprintf(buffer, SPEC_FOUND_BYTES, "%s",
             node->kind == NODE_LIST  ? "a list"
             : node->kind == NODE_MAP ? "a mapping"
                                      : "nothing");
    return buffer;
  }
  if (!node->quoted && is_number(node->text)) {
    snprintf(buffer, SPEC_FOUND_BYTES, "%.40s", node->text);
    return buffer;
  }
  size_t length = strlen(node->text), most = SPEC_FOUND_BYTES - sizeof "\"...\"";
  bool cut = length > most;
  if (cut) length = most;
  while (cut && length > 0 && ((unsigned char)node->text[length] & 0xc0) == 0x80)
    length--; /* not inside a character */
  snprintf(buffer, SPEC_FOUND_BYTES, "\"%.*s%s\"", (int)length, node->text, cut ? "..." : "");
  return buffer;
}

bool spec_reject(spec_reader *r, const char *code, const spec_field *f, const spec_node *node,
                 const char *format, ...) {
  if (r->status == HD_OK) r->status = HD_DECLINED;
  if (r->errors > SPEC_MAX_ERRORS) return false;
  if (r->errors++ == SPEC_MAX_ERRORS) {
    diags_addf(r->problems, DIAG_ERROR, "spec.size", NULL, node->line, node->column,
               "more than %d errors: the rest is left out", SPEC_MAX_ERRORS);
    return false;
  }
  text message;
  text_init(&message);
  va_list args;
  va_start(args, format);
  text_vaddf(&message, format, args);
  va_end(args);
  if (message.failed) r->status = HD_OUT_OF_MEMORY;
  diags_addf(r->problems, DIAG_ERROR, code, f ? f->path : NULL, node->line, node->column, "%s",
             text_string(&message));
  text_finish(&message);
  return false;
}

/* "PATH is FOUND, allowed: ALLOWED", with the nearest word for a wrong one. Takes `allowed`. */
static bool reject_value(spec_reader *r, const spec_field *f, const spec_node *node, text *allowed,
                         const guess *near) {
  char found[SPEC_FOUND_BYTES];
  if (near && near->count > 0) {
    text_add(allowed, "; did you mean ");
    guess_write(near, "\"", "\"", allowed);
    text_add(allowed, "?");
  }
  spec_reject(r, "spec.value", f, node, "%s is %s, allowed: %s", f->path, spec_found(node, found),
              text_string(allowed));
  text_finish(allowed);
  return false;
}

bool spec_reject_type(spec_reader *r, const spec_field *f, const spec_node *node, const char *expected) {
  char found[SPEC_FOUND_BYTES];
  return spec_reject(r, "spec.type", f, node, "%s is %s, expected %s", f->path, spec_found(node, found),
                     expected);
}

/* ---- words ---- */

static void add_words(text *out, const spec_word *words) {
  for (int i = 0; words[i].word; i++)
    text_addf(out, "%s%s", i ? ", " : "", words[i].word);
}

static const spec_word *find_word(const spec_field *f, const spec_node *node) {
  if (node->kind != NODE_SCALAR || !f->words) return NULL;
  for (const spec_word *w = f->words; w->word; w++)
    if (strcmp(w->word, node->text) == 0) return w;
  return NULL;
}

static bool reject_word(spec_reader *r, const spec_field *f, const spec_node *node) {
  text allowed;
  text_init(&allowed);
  add_words(&allowed, f->words);
  guess near = {.found = node->kind == NODE_SCALAR ? node->text : ""};
  for (const spec_word *w = f->words; w->word; w++)
    guess_offer_near(&near, w->word, 0);
  return reject_value(r, f, node, &allowed, &near);
}

bool spec_parse_word(spec_reader *r, const spec_field *f, const spec_node *node) {
  const spec_word *w = find_word(f, node);
  if (!w) return reject_word(r, f, node);
  store_int(r, f->offset, w->value);
  return true;
}

/* A two-valued field, stored as bool. */
bool spec_parse_flag(spec_reader *r, const spec_field *f, const spec_node *node) {
  const spec_word *w = find_word(f, node);
  if (!w) return reject_word(r, f, node);
  *(bool *)place_at(r, f->offset) = w->value != 0;
  return true;
}

static bool read_dtype(spec_reader *r, const spec_field *f, const spec_node *node, int *out_dtype) {
  dtype d;
  if (node->kind == NODE_SCALAR && dtype_parse(node->text, &d) && dtype_serves(d, (dtype_use)f->dtypes)) {
    *out_dtype = (int)d;
    return true;
  }
  text allowed;
  text_init(&allowed);
  dtype_list(f->dtypes, &allowed);
  guess near = dtype_guess(node->kind == NODE_SCALAR ? node->text : "", f->dtypes);
  return reject_value(r, f, node, &allowed, &near);
}

bool spec_parse_dtype(spec_reader *r, const spec_field *f, const spec_node *node) {
  int d;
  if (!read_dtype(r, f, node, &d)) return false;
  store_int(r, f->offset, d);
  return true;
}

/* The two halves of a mapping such as {qk: 192, v: 128}: both, and nothing else. */
static bool find_halves(spec_reader *r, const spec_field *f, const spec_node *node,
                        const spec_node *out_halves[2]) {
  const spec_node *halves[2] = {NULL, NULL}, *unknown = NULL;
  int unknown_count = 0;
  for (int i = 0; i < node->count; i++) {
    const spec_node *key = node->pairs[i].key;
    int half = strcmp(key->text, f->halves[0]) == 0 ? 0 : strcmp(key->text, f->halves[1]) == 0 ? 1 : -1;
    if (half >= 0)
      halves[half] = node->pairs[i].value;
    else if (unknown_count++ == 0)
      unknown = key;
  }
  const int missing = !halves[0] + !halves[1];
  char found[SPEC_FOUND_BYTES];
  for (int i = 0; i < node->count && unknown; i++) {
    const spec_node *key = node->pairs[i].key;
    if (strcmp(key->text, f->halves[0]) == 0 || strcmp(key->text, f->halves[1]) == 0) continue;
    /* One that stands for the other that is missing: one fault. */
    const char *meant = unknown_count == 1 && missing == 1 ? f->halves[halves[0] ? 1 : 0] : NULL;
    spec_reject(r, "spec.unknown-key", f, key, "%s has no %s, allowed: %s, %s%s%s%s", f->path,
                spec_found(key, found), f->halves[0], f->halves[1], meant ? "; did you mean \"" : "",
                meant ? meant : "", meant ? "\"?" : "");
  }
  for (int half = 0; half < 2 && !(unknown_count == 1 && missing == 1); half++)
    if (!halves[half]) spec_reject(r, "spec.missing", f, node, "%s.%s is missing", f->path, f->halves[half]);
  if (unknown || missing) return false;
  out_halves[0] = halves[0];
  out_halves[1] = halves[1];
  return true;
}

/* The field of one half, by whose own path it is judged: head_dim.v. */
typedef struct half_field {
  char path[64];
  spec_field field;
} half_field;

static const spec_field *half_of(const spec_field *f, const spec_node *node, int half, half_field *out) {
  if (node->kind != NODE_MAP) return f;
  snprintf(out->path, sizeof out->path, "%s.%s", f->path, f->halves[half]);
  out->field = *f;
  out->field.path = out->path;
  return &out->field;
}

/* One value for both halves, or a mapping with one for each: both are judged, whatever the first is. */
static bool parse_pair(spec_reader *r, const spec_field *f, const spec_node *node,
                       bool (*read)(spec_reader *r, const spec_field *f, const spec_node *node, int *out)) {
  const bool split = node->kind == NODE_MAP;
  const spec_node *halves[2] = {node, node};
  int values[2] = {0, 0};
  half_field own;
  if (node->kind == NODE_LIST) {
    char found[SPEC_FOUND_BYTES];
    return spec_reject(r, "spec.type", f, node, "%s is %s, expected one value, or {%s: …, %s: …}", f->path,
                       spec_found(node, found), f->halves[0], f->halves[1]);
  }
  if (split && !find_halves(r, f, node, halves)) return false;
  bool ok = read(r, half_of(f, node, 0, &own), halves[0], &values[0]);
  values[1] = values[0];
  if (split && !read(r, half_of(f, node, 1, &own), halves[1], &values[1])) ok = false;
  if (!ok) return false;
  store_int(r, f->offset, values[0]);
  store_int(r, f->offset2, values[1]);
  return true;
}

bool spec_parse_dtype_pair(spec_reader *r, const spec_field *f, const spec_node *node) {
  return parse_pair(r, f, node, read_dtype);
}

/* ---- numbers ---- */

/* Decimal digits with no sign, no leading zero (010 is 8 to some YAML readers and 10 to others), below 10^9.
 */
static bool read_whole(const spec_node *node, int *out_value) {
  if (node->kind != NODE_SCALAR || node->quoted) return false;
  const char *s = node->text;
  size_t length = strlen(s);
  if (length == 0 || length > 9 || (s[0] == '0' && length > 1)) return false;
  int value = 0;
  for (; *s; s++) {
    if (!is_digit(*s)) return false;
    value = value * 10 + (*s - '0');
  }
  *out_value = value;
  return true;
}

static bool read_integer(spec_reader *r, const spec_field *f, const spec_node *node, int *out_value) {
  const spec_word *w = find_word(f, node);
  int value = 0;
  if (w || (read_whole(node, &value) && value >= f->low && value <= f->high)) {
    *out_value = w ? w->value : value;
    return true;
  }
  text allowed;
  text_init(&allowed);
  if (f->words) {
    add_words(&allowed, f->words);
    text_add(&allowed, ", or ");
  }
  text_addf(&allowed, "a whole number from %.0f to %.0f", f->low, f->high);
  if (node->kind == NODE_SCALAR && node->quoted) text_add(&allowed, ", without quotes");
  return reject_value(r, f, node, &allowed, NULL);
}

bool spec_parse_integer(spec_reader *r, const spec_field *f, const spec_node *node) {
  int value;
  if (!read_integer(r, f, node, &value)) return false;
  store_int(r, f->offset, value);
  return true;
}

bool spec_parse_integer_pair(spec_reader *r, const spec_field *f, const spec_node *node) {
  return parse_pair(r, f, node, read_integer);
}

/* auto, or a list of distinct whole numbers. */
bool spec_parse_integers(spec_reader *r, const spec_field *f, const spec_node *node) {
  spec_ints list = {0};
  if (!find_word(f, node)) {
    if (node->kind != NODE_LIST || node->count == 0)
      return spec_reject_type(r, f, node, "auto or a list of whole numbers");
    if (node->count > SPEC_MAX_LIST)
      return spec_reject(r, "spec.value", f, node, "%s has %d entries, allowed: at most %d", f->path,
                         node->count, SPEC_MAX_LIST);
    spec_field entry = *f;
    entry.words = NULL;
    for (int i = 0; i < node->count; i++) {
      int value;
      if (!read_integer(r, &entry, node->items[i], &value)) return false;
      for (int j = 0; j < i; j++)
        if (list.values[j] == value)
          return spec_reject(r, "spec.value", f, node->items[i], "%s has %d twice", f->path, value);
      list.values[list.count++] = value;
    }
  }
  memcpy(place_at(r, f->offset), &list, sizeof list);
  return true;
}

/* A number that fp32 holds without becoming 0 or infinite, rounded to it: kernels calculate in fp32, so that
 * is the number the contract has. */
static bool read_fp32(const spec_field *f, const spec_node *node, double *out_value) {
  if (node->kind != NODE_SCALAR || node->quoted || strlen(node->text) > 64 || !is_number(node->text))
    return false;
  double exact;
  if (!text_read_double(node->text, strlen(node->text), &exact)) return false;
  if (!(fabs(exact) <= dtype_max(DTYPE_FP32))) return false;
  double value = (double)(float)exact;
  if (value == 0 && exact != 0) return false;
  if (value < f->low || (f->positive && value <= 0) || (f->high > 0 && value > f->high)) return false;
  *out_value = value == 0 ? 0.0 : value; /* −0 is 0 */
  return true;
}

/* A number, or a word in its place. */
bool spec_parse_number(spec_reader *r, const spec_field *f, const spec_node *node) {
  const spec_word *w = find_word(f, node);
  double value = 0;
  if (w || read_fp32(f, node, &value)) {
    memcpy(place_at(r, f->offset), &value, sizeof value);
    if (f->offset2) store_int(r, f->offset2, w ? w->value : f->number_kind);
    return true;
  }
  text allowed;
  text_init(&allowed);
  guess near = {.found = node->kind == NODE_SCALAR ? node->text : ""};
  if (f->words) {
    add_words(&allowed, f->words);
    text_add(&allowed, ", or ");
    for (w = f->words; w->word; w++)
      guess_offer_near(&near, w->word, 0);
  }
  text_addf(&allowed, "a number %s 0 that fp32 can hold", f->positive ? ">" : ">=");
  if (node->kind == NODE_SCALAR && node->quoted) text_add(&allowed, ", without quotes");
  return reject_value(r, f, node, &allowed, &near);
}

/* ---- texts and lists of words ---- */

bool spec_parse_version(spec_reader *r, const spec_field *f, const spec_node *node) {
  int version;
  if (read_whole(node, &version) && version == 1) return true;
  char found[SPEC_FOUND_BYTES];
  return spec_reject(r, "spec.version", f, node, "the schema version is %s, allowed: 1",
                     spec_found(node, found));
}

/* Names become file names and parts of messages. */
bool spec_parse_name(spec_reader *r, const spec_field *f, const spec_node *node) {
  static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = node->kind == NODE_SCALAR ? strlen(node->text) : 0;
  bool ok = length > 0 && length < sizeof r->spec.name && node->text[0] != '.' && node->text[0] != '-' &&
            strspn(node->text, characters) == length;
  if (!ok) return spec_reject_type(r, f, node, "letters, digits, and . _ - after the first, at most 127");
  memcpy(r->spec.name, node->text, length + 1);
  return true;
}

bool spec_parse_about(spec_reader *r, const spec_field *f, const spec_node *node) {
  if (node->kind != NODE_SCALAR) return spec_reject_type(r, f, node, "a text");
  r->spec.about = strdup(node->text);
  if (!r->spec.about) r->status = HD_OUT_OF_MEMORY;
  return r->spec.about != NULL;
}

bool spec_parse_kernels(spec_reader *r, const spec_field *f, const spec_node *node) {
  if (node->kind != NODE_LIST || node->count == 0)
    return spec_reject_type(r, f, node, "a list of what to generate: [write, decode]");
  unsigned chosen = 0;
  for (int i = 0; i < node->count; i++) {
    const spec_word *w = find_word(f, node->items[i]);
    if (!w) return reject_word(r, f, node->items[i]);
    if (chosen & (unsigned)w->value)
      return spec_reject(r, "spec.value", f, node->items[i], "%s has %s twice", f->path, w->word);
    chosen |= (unsigned)w->value;
  }
  r->spec.contract.kernels = chosen;
  return true;
}

bool spec_parse_targets(spec_reader *r, const spec_field *f, const spec_node *node) {
  if (node->kind != NODE_LIST || node->count == 0)
    return spec_reject_type(r, f, node, "a list of targets, or nothing at all for every target");
  if (node->count > SPEC_MAX_LIST)
    return spec_reject(r, "spec.value", f, node, "%s has %d entries, allowed: at most %d", f->path,
                       node->count, SPEC_MAX_LIST);
  bool ok = true;
  const target *chosen[SPEC_MAX_LIST];
  for (int i = 0; i < node->count; i++) {
    const spec_node *item = node->items[i];
    chosen[i] = item->kind == NODE_SCALAR ? target_find(item->text) : NULL;
    if (!chosen[i]) {
      text allowed;
      text_init(&allowed);
      guess near = {.found = item->kind == NODE_SCALAR ? item->text : ""};
      for (size_t t = 0; t < target_count(); t++) {
        text_addf(&allowed, "%s%s", t ? ", " : "", target_at(t)->name);
        if (target_is_sold_as(target_at(t), near.found))
          guess_offer(&near, target_at(t)->name, 0, 0);
        else
          guess_offer_near(&near, target_at(t)->name, 0);
      }
      ok = reject_value(r, f, item, &allowed, &near);
    }
    for (int j = 0; j < i; j++)
      if (chosen[i] && chosen[j] == chosen[i])
        ok = spec_reject(r, "spec.value", f, item, "%s has %s twice", f->path, chosen[i]->name);
  }
  if (!ok) return false;
  r->spec.target_count = node->count;
  for (int i = 0; i < node->count; i++)
    snprintf(r->spec.targets[i], sizeof r->spec.targets[i], "%s", chosen[i]->name);
  return true;
}
