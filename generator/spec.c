#include "guess.h"
#include "spec.h"
#include "spec_field.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(spec, contract.member)
#define WITH(name) (1u << SCALE_##name)

enum {
#define X(name, word, axes) | 1 << name
  WITH_SCALES = (0 GRANULARITY_LIST(X)) & ~WITH(NONE),
#undef X
#define X(name, word, axes) | ((axes) != 0) << name
  WITH_LAYOUT = 0 GRANULARITY_LIST(X),
#undef X
#define X(name, word, axes) | ((1 << AXIS_S & (axes)) != 0) << name
  WITH_RULE = 0 GRANULARITY_LIST(X) /* contract_writer_scales */
#undef X
};

static const spec_word kernel_words[] = {
#define X(name, bit, word, attends) {word, bit},
    OPERATION_LIST(X)
#undef X
        {NULL, 0}};
static const spec_word granularity_words[] = {
#define X(name, word, axes) {word, name},
    GRANULARITY_LIST(X)
#undef X
        {NULL, 0}};
#define X(name, word) {word, name},
static const spec_word form_words[] = {SELECT_FORM_LIST(X){NULL, 0}};
static const spec_word per_words[] = {SELECT_PER_LIST(X){NULL, 0}};
#undef X
static const spec_word stride_words[] = {{"free", 0}, {"packed", 1}, {NULL, 0}};
static const spec_word source_words[] = {{"memory", 0}, {"argument", 1}, {NULL, 0}};
static const spec_word boolean_words[] = {{"true", 1}, {"false", 0}, {NULL, 0}};
static const spec_word sink_words[] = {{"none", 0}, {"per_head", 1}, {NULL, 0}};
static const spec_word none_words[] = {{"none", 0}, {NULL, 0}};
static const spec_word auto_words[] = {{"auto", 0}, {NULL, 0}};
static const spec_word dialect_words[] = {{"dialect", 0}, {NULL, 0}};
static const spec_word zero_row_words[] = {
    {"floor", ZERO_ROW_FLOOR}, {"floor/qmax", ZERO_ROW_FLOOR}, {NULL, 0}};
static const spec_word logits_words[] = {
    {"argument", LOGITS_ARGUMENT}, {"rsqrt_d", LOGITS_RSQRT_D}, {NULL, 0}};

static spec_parse_value parse_granularity;

static bool derive_kernels(spec_reader *r, const spec_field *f) {
  (void)f;
  r->spec.contract.kernels = KERNEL_WRITE | KERNEL_DECODE;
  return true;
}

static bool derive_output_dtype(spec_reader *r, const spec_field *f) {
  (void)f;
  r->spec.contract.output.dtype = r->spec.contract.query.dtype;
  return true;
}

/* Token lists are a row's own; the other forms have one list for all rows and heads of a sequence. */
static bool derive_per(spec_reader *r, const spec_field *f) {
  (void)f;
  r->spec.contract.select.per = r->spec.contract.select.form == SELECT_TOKENS ? PER_ROW : PER_SEQUENCE;
  return true;
}

/* The language, in the order in which fields are read: a row may rely on those above it. docs/spec.md says
 * what each means. */
static const spec_field fields[] = {
    {.path = "heddle", .parse = spec_parse_version},
    {"name", spec_parse_name, .fallback = "unnamed"},
    {"about", spec_parse_about, .fallback = ""},
    {"kernels", spec_parse_kernels, .derive = derive_kernels, .words = kernel_words},

    {.path = "query"},
    {"query.dtype", spec_parse_dtype, .fallback = "bf16", .offset = AT(query.dtype), .dtypes = USE_QUERY},
    {"query.heads_per_kv", spec_parse_integer, .offset = AT(query.heads_per_kv), .low = 1, .high = 128},
    {"query.rows", spec_parse_integer, .fallback = "1", .offset = AT(query.rows), .low = 1, .high = 8},

    {"head_dim", spec_parse_integer_pair, .offset = AT(head_dim.qk), .offset2 = AT(head_dim.v), .low = 1,
     .high = 4096, .halves = {"qk", "v"}},

    {.path = "kv"},
    {"kv.dtype", spec_parse_dtype_pair, .offset = AT(kv.k_dtype), .offset2 = AT(kv.v_dtype),
     .dtypes = USE_CACHE, .halves = {"k", "v"}},
    {"kv.page", spec_parse_integer, .offset = AT(kv.page), .low = 1, .high = 1 << 20},
    {"kv.tail", .fallback = "none"}, /* before kv.k, which has the other channels */
    {"kv.tail.channels", spec_parse_integer, .offset = AT(kv.tail.channels), .low = 1, .high = 4095},
    {"kv.tail.dtype", spec_parse_dtype, .offset = AT(kv.tail.dtype), .dtypes = USE_QUERY},
    {.path = "kv.tail.at", .parse = spec_parse_tail_at},
    {.path = "kv.k", .parse = spec_parse_k},
    {.path = "kv.v", .parse = spec_parse_v},
    {.path = "kv.tail.layout", .parse = spec_parse_tail_layout}, /* has h where kv.k does */
    {"kv.strides", spec_parse_flag, .fallback = "free", .offset = AT(kv.packed), .words = stride_words},

    {"scale", .fallback = "none"},
    {"scale.granularity", parse_granularity, .offset = AT(scale.granularity), .words = granularity_words},
    {"scale.source", spec_parse_flag, .fallback = "memory", .offset = AT(scale.argument),
     .words = source_words, .granularities = WITH(TENSOR)},
    {"scale.group", spec_parse_integer_pair, .offset = AT(scale.group_k), .offset2 = AT(scale.group_v),
     .low = 1, .high = 4096, .halves = {"k", "v"}, .granularities = WITH(GROUP)},
    {"scale.dtype", spec_parse_dtype, .fallback = "fp32", .offset = AT(scale.dtype),
     .dtypes = USE_SCALE | USE_GROUP_SCALE, .granularities = WITH_SCALES},
    {"scale.k", spec_parse_scale_k, .derive = spec_default_scale_layout, .granularities = WITH_LAYOUT},
    {"scale.v", spec_parse_scale_v, .derive = spec_default_scale_layout, .granularities = WITH_LAYOUT},
    {"scale.writer", .fallback = "", .granularities = WITH_RULE},
    {"scale.writer.amax_floor", spec_parse_number, .fallback = "0", .offset = AT(scale.writer.amax_floor),
     .granularities = WITH_RULE},
    {"scale.writer.scale_floor", spec_parse_number, .fallback = "0", .offset = AT(scale.writer.scale_floor),
     .granularities = WITH_RULE},
    {"scale.writer.zero_row", spec_parse_number, .fallback = "1.0", .offset = AT(scale.writer.zero_value),
     .offset2 = AT(scale.writer.zero_row), .words = zero_row_words, .number_kind = ZERO_ROW_VALUE,
     .granularities = WITH_RULE},
    {"scale.writer.qmax", spec_parse_number, .fallback = "dialect", .offset = AT(scale.writer.qmax),
     .words = dialect_words, .positive = true, .granularities = WITH_RULE},

    {"select", .fallback = ""},
    {"select.form", spec_parse_word, .fallback = "table", .offset = AT(select.form), .words = form_words},
    {"select.block", spec_parse_integer, .offset = AT(select.block), .low = 1, .high = 1 << 20,
     .forms = 1u << SELECT_BLOCKS},
    {"select.index", spec_parse_dtype, .fallback = "int32", .offset = AT(select.index), .dtypes = USE_INDEX},
    {"select.per", spec_parse_word, .derive = derive_per, .offset = AT(select.per), .words = per_words},

    {"mask", .fallback = ""},
    {"mask.causal", spec_parse_flag, .fallback = "true", .offset = AT(mask.causal), .words = boolean_words},
    {"mask.window", spec_parse_integer, .fallback = "none", .offset = AT(mask.window), .words = none_words,
     .low = 1, .high = 1 << 28},
    {"mask.sinks", spec_parse_flag, .fallback = "none", .offset = AT(mask.sinks), .words = sink_words},

    {"logits", .fallback = ""},
    {"logits.scale", spec_parse_number, .fallback = "argument", .offset = AT(logits.number),
     .offset2 = AT(logits.scale), .words = logits_words, .positive = true, .number_kind = LOGITS_NUMBER},
    {"logits.softcap", spec_parse_number, .fallback = "none", .offset = AT(logits.softcap),
     .words = none_words, .positive = true},

    {"output", .fallback = ""},
    {"output.dtype", spec_parse_dtype, .derive = derive_output_dtype, .offset = AT(output.dtype),
     .dtypes = USE_OUTPUT},
    {"output.lse", spec_parse_flag, .fallback = "false", .offset = AT(output.lse), .words = boolean_words},

    {"split", .fallback = ""},
    {"split.factors", spec_parse_integers, .fallback = "auto", .offset = offsetof(spec, split_factors),
     .words = auto_words, .low = 1, .high = 1024},
    {"targets", spec_parse_targets, .fallback = ""},
    {"tune", .fallback = ""},
    {"tune.waves", spec_parse_integers, .fallback = "auto", .offset = offsetof(spec, tune_waves),
     .words = auto_words, .low = 1, .high = 32},
    {"tune.tile", spec_parse_integers, .fallback = "auto", .offset = offsetof(spec, tune_tile),
     .words = auto_words, .low = 1, .high = 4096},
    {"tune.stages", spec_parse_integers, .fallback = "auto", .offset = offsetof(spec, tune_stages),
     .words = auto_words, .low = 1, .high = 16},
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };
_Static_assert((int)FIELD_COUNT <= (int)SPEC_MAX_FIELDS, "a spec has room for the place of every field");

static int find_field(const char *path) {
  for (int i = 0; i < FIELD_COUNT; i++)
    if (strcmp(fields[i].path, path) == 0) return i;
  return -1;
}

/* Bytes of the section's part of a path, with the dot: "scale.writer." of "scale.writer.qmax", 0 at the top.
 */
static size_t section_length(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? (size_t)(dot - path) + 1 : 0;
}

/* Whether `path` is a direct child of the section whose path, with a dot, is `section` ("" is the whole
 * file). */
static bool is_child(const char *path, const char *section) {
  size_t length = section_length(path);
  return length == strlen(section) && strncmp(path, section, length) == 0;
}

static const spec_field *parent_of(const spec_field *f) {
  size_t length = section_length(f->path);
  for (int i = 0; length && i < FIELD_COUNT; i++)
    if (strlen(fields[i].path) == length - 1 && strncmp(fields[i].path, f->path, length - 1) == 0)
      return &fields[i];
  return NULL;
}

static bool is_ok(const spec_reader *r, const char *path) {
  return r->ok[find_field(path)];
}

const spec_node *spec_find_node(const spec_reader *r, const char *path) {
  return r->nodes[find_field(path)];
}

/* ---- from tree to rows ---- */

/* What engines call a field, or say where a spec says nothing. */
static const struct {
  const char *word, *path; /* path NULL: no field has it */
  const char *note;
} engine_words[] = {
    {"block_size", "kv.page", NULL},
    {"page_size", "kv.page", NULL},
    {"tokens_per_block", "kv.page", NULL},
    {"head_size", "head_dim", NULL},
    {"kv_cache_dtype", "kv.dtype", NULL},
    {"cache_dtype", "kv.dtype", NULL},
    {"layout", "kv.k", NULL},
    {"layout", "kv.v", NULL},
    {"kv_layout", "kv.k", NULL},
    {"kv_layout", "kv.v", NULL},
    {"num_queries_per_kv", "query.heads_per_kv", NULL},
    {"num_key_value_groups", "query.heads_per_kv", NULL},
    {"sliding_window", "mask.window", NULL},
    {"window_size", "mask.window", NULL},
    {"softmax_scale", "logits.scale", NULL},
    {"sm_scale", "logits.scale", NULL},
    {"logits_soft_cap", "logits.softcap", NULL},
    {"num_kv_heads", NULL, "kv heads are counted in the tensors, and any number of them is one contract"},
    {"num_key_value_heads", NULL,
     "kv heads are counted in the tensors, and any number of them is one contract"},
    {"k_scale", NULL,
     "a number is given at each launch, with scale: {granularity: tensor, source: argument}"},
    {"v_scale", NULL,
     "a number is given at each launch, with scale: {granularity: tensor, source: argument}"},
    {"num_blocks", NULL, "pages are counted in the tensors, and any number of them is one contract"},
};

/* The rows that whoever wrote `key` in `section` most likely meant: what engines mean by it, near names
 * there, else the same name in another section. Words are paths where they stand elsewhere. */
static guess guess_fields(const spec_node *key, const char *section) {
  guess engine = {.found = key->text}, near = engine, elsewhere = engine;
  for (size_t i = 0; i < sizeof engine_words / sizeof *engine_words; i++)
    if (strcmp(engine_words[i].word, key->text) == 0) {
      if (!engine_words[i].path) return engine; /* none: the note says what it is */
      const char *path = engine_words[i].path;
      guess_offer(&engine, is_child(path, section) ? path + section_length(path) : path, find_field(path), 0);
    }
  for (int i = 0; i < FIELD_COUNT; i++) {
    const char *name = fields[i].path + section_length(fields[i].path);
    if (is_child(fields[i].path, section))
      guess_offer_near(&near, name, i);
    else if (elsewhere.count == 0 && strcmp(name, key->text) == 0)
      guess_offer(&elsewhere, fields[i].path, i, 0);
  }
  if (engine.count > 0) return engine;
  return near.count > 0 && (near.distance <= 1 || elsewhere.count == 0) ? near : elsewhere;
}

/* unknown field "pages", allowed in kv: dtype, page, …; did you mean "page"? */
static void reject_key(spec_reader *r, const spec_node *key, const char *section) {
  text allowed;
  text_init(&allowed);
  for (int i = 0, count = 0; i < FIELD_COUNT; i++)
    if (is_child(fields[i].path, section))
      text_addf(&allowed, "%s%s", count++ ? ", " : "", fields[i].path + section_length(fields[i].path));
  guess near = guess_fields(key, section);
  if (near.count > 0) {
    text_add(&allowed, "; did you mean ");
    guess_write(&near, "\"", "\"", &allowed);
    text_add(&allowed, "?");
  }
  for (int i = 0; i < near.count; i++)
    r->guessed[near.rows[i]] = true;
  for (size_t i = 0; i < sizeof engine_words / sizeof *engine_words; i++)
    if (engine_words[i].note && strcmp(engine_words[i].word, key->text) == 0)
      text_addf(&allowed, "; %s", engine_words[i].note);
  char found[SPEC_FOUND_BYTES];
  const char *where = section[0] ? section : "a spec.";
  spec_reject(r, "spec.unknown-key", NULL, key, "unknown field %s, allowed in %.*s: %s",
              spec_found(key, found), (int)strlen(where) - 1, where, text_string(&allowed));
  text_finish(&allowed);
}

/* Notes key and value of every field below `map` with its row. */
static void collect(spec_reader *r, const spec_node *map, const char *section) {
  for (int i = 0; i < map->count; i++) {
    const spec_node *key = map->pairs[i].key, *value = map->pairs[i].value;
    char path[80];
    int row = -1;
    if (snprintf(path, sizeof path, "%s%s", section, key->text) < (int)sizeof path) row = find_field(path);
    if (row < 0 || !is_child(fields[row].path, section)) { /* a key with a dot in it is no path */
      reject_key(r, key, section);
      continue;
    }
    const spec_field *f = &fields[row];
    char found[SPEC_FOUND_BYTES];
    r->keys[row] = key;
    r->nodes[row] = value;
    if (f->parse) continue;
    if (value->kind == NODE_MAP) {
      strcat(path, "."); /* paths of the table are shorter than the buffer by far */
      collect(r, value, path);
    } else if (f->fallback && f->fallback[0] && value->kind == NODE_SCALAR &&
               strcmp(value->text, f->fallback) == 0) {
      r->nodes[row] = NULL; /* `scale: none` says the same as nothing */
    } else {
      spec_reject(r, "spec.type", f, value, "%s is %s, expected a mapping", f->path,
                  spec_found(value, found));
    }
  }
}

/* A name, or {group: …}, which is granularity and group in one. */
static bool parse_granularity(spec_reader *r, const spec_field *f, const spec_node *node) {
  if (node->kind != NODE_MAP) return spec_parse_word(r, f, node);
  int group = find_field("scale.group");
  if (node->count != 1 || strcmp(node->pairs[0].key->text, "group") != 0)
    return spec_reject(r, "spec.type", f, node, "%s is a mapping, allowed: a name, or {group: {k: N, v: N}}",
                       f->path);
  if (r->nodes[group])
    return spec_reject(r, "spec.conflict", f, node, "the group is given here and in scale.group");
  r->nodes[group] = node->pairs[0].value;
  r->keys[group] = node->pairs[0].key;
  r->spec.contract.scale.granularity = SCALE_GROUP;
  return true;
}

static bool has_meaning(const spec_reader *r, const spec_field *f) {
  const contract *c = &r->spec.contract;
  return (!f->granularities || f->granularities & 1u << c->scale.granularity) &&
         (!f->forms || f->forms & 1u << c->select.form);
}

static bool reject_meaningless(spec_reader *r, const spec_field *f, const spec_node *key) {
  const contract *c = &r->spec.contract;
  unsigned allowed = f->forms ? f->forms : f->granularities;
  int value = f->forms ? (int)c->select.form : (int)c->scale.granularity;
  const spec_word *words = f->forms ? form_words : granularity_words;
  const char *found = "", *separator = "";
  text with;
  text_init(&with);
  for (const spec_word *w = words; w->word; w++) {
    if (w->value == value) found = w->word;
    if (!(allowed & 1u << w->value)) continue;
    text_addf(&with, "%s%s", separator, w->word);
    separator = ", ";
  }
  spec_reject(r, "spec.conflict", f, key, "%s has no meaning with %s %s, allowed with: %s", f->path,
              f->forms ? "form" : "granularity", found, text_string(&with));
  text_finish(&with);
  return false;
}

/* A field that the file leaves out: its default, or an error at the section that lacks it. */
static bool read_default(spec_reader *r, const spec_field *f, const spec_node *root) {
  if (r->guessed[f - fields]) return false; /* there under a wrong name, and said so */
  if (f->derive) return f->derive(r, f);
  if (f->fallback) {
    spec_node value = {.kind = NODE_SCALAR, .text = f->fallback};
    return !f->parse || !f->fallback[0] || f->parse(r, f, &value);
  }
  const spec_field *parent = parent_of(f);
  const spec_node *section = root;
  if (parent) {
    ptrdiff_t row = parent - fields;
    if (!r->nodes[row] || r->nodes[row]->kind != NODE_MAP) return parent->fallback != NULL && !r->nodes[row];
    section = r->keys[row];
  }
  return spec_reject(r, "spec.missing", f, section, "%s is missing", f->path);
}

/* True when the spec then has the field's value. */
static bool read_field(spec_reader *r, const spec_field *f, const spec_node *root) {
  ptrdiff_t row = f - fields;
  if (f->granularities && !is_ok(r, "scale.granularity")) return false; /* its error is enough */
  if (f->forms && !is_ok(r, "select.form")) return false;
  if (!has_meaning(r, f)) {
    const spec_field *parent = parent_of(f);
    bool said = parent && !has_meaning(r, parent); /* of the whole section */
    return !r->nodes[row] || said || reject_meaningless(r, f, r->keys[row]);
  }
  if (!r->nodes[row]) return read_default(r, f, root);
  return !f->parse || f->parse(r, f, r->nodes[row]);
}

/* ---- what fields must be to each other ---- */

static bool takes_scales(dtype d) {
  return dtype_bytes(d) == 1; /* wider formats store values themselves */
}

static void check_scaled_cache(spec_reader *r) {
  const contract *c = &r->spec.contract;
  if (c->scale.granularity == SCALE_NONE || !is_ok(r, "kv.dtype")) return;
  bool k = takes_scales(c->kv.k_dtype), v = takes_scales(c->kv.v_dtype);
  if (k && v) return;
  int row = find_field("scale");
  spec_reject(r, "spec.conflict", &fields[row], r->keys[row],
              "scale is given, but a %s cache has none, allowed: fp8 and int8 caches, or no scale",
              dtype_name(k ? c->kv.v_dtype : c->kv.k_dtype));
}

static void check_scale_dtype(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("scale.dtype");
  if (!is_ok(r, "scale.dtype")) return;
  if (c->scale.argument && c->scale.dtype != DTYPE_FP32) {
    spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
                "scale.dtype is %s with source argument, allowed: fp32, since a number that is given at a "
                "launch is one",
                dtype_name(c->scale.dtype));
    return;
  }
  if (c->scale.dtype != DTYPE_E8M0 || c->scale.granularity == SCALE_GROUP) return;
  spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
              "scale.dtype is e8m0 with granularity %s, allowed: fp32, fp16; e8m0 with group only",
              granularity_name(c->scale.granularity));
}

static void check_group(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("scale.group");
  if (c->scale.granularity != SCALE_GROUP || !is_ok(r, "scale.group") || !is_ok(r, "head_dim")) return;
  const struct {
    const char *half;
    int group, channels;
  } halves[] = {{"k", c->scale.group_k, contract_coded_k(c)}, {"v", c->scale.group_v, contract_coded_v(c)}};
  if (c->kv.v_in_k && c->scale.group_k != c->scale.group_v)
    spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
                "scale.group is %d for K and %d for V, allowed: one number, since V lies in K",
                c->scale.group_k, c->scale.group_v);
  for (int i = 0; i < (c->kv.v_in_k ? 1 : 2); i++)
    if (halves[i].channels % halves[i].group != 0)
      spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
                  "scale.group.%s is %d, allowed: what divides the %s of %s, %d", halves[i].half,
                  halves[i].group, i == 0 && c->kv.tail.channels ? "channels before kv.tail" : "head_dim",
                  halves[i].half, halves[i].channels);
}

/* V as the first channels of K: what is K's is V's. */
static void check_shared_values(spec_reader *r) {
  contract *c = &r->spec.contract;
  if (!c->kv.v_in_k) return;
  int dtype_row = find_field("kv.dtype"), dim_row = find_field("head_dim");
  if (is_ok(r, "kv.dtype") && c->kv.v_dtype != c->kv.k_dtype)
    spec_reject(r, "spec.conflict", &fields[dtype_row], r->nodes[dtype_row],
                "kv.dtype.v is %s, allowed: %s, that of K, since V lies in K", dtype_name(c->kv.v_dtype),
                dtype_name(c->kv.k_dtype));
  if (is_ok(r, "head_dim") && c->head_dim.v > c->head_dim.qk)
    spec_reject(r, "spec.conflict", &fields[dim_row], r->nodes[dim_row],
                "head_dim.v is %d, allowed: up to %d, the channels of K, since V lies in K", c->head_dim.v,
                c->head_dim.qk);
  c->kv.v = c->kv.k;
  c->scale.v = c->scale.k;
  c->scale.v_at = c->scale.k_at;
}

static void check_tail(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("kv.tail.channels");
  if (!r->nodes[row] || !is_ok(r, "kv.tail.channels") || !is_ok(r, "head_dim")) return;
  if (contract_coded_k(c) > 0) return;
  spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
              "kv.tail.channels is %d, allowed: fewer than head_dim.qk, %d", c->kv.tail.channels,
              c->head_dim.qk);
}

/* A scale of each head is one of the tensor where there is one head. */
static void check_head_scale(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("scale.granularity");
  if (c->scale.granularity != SCALE_HEAD || !is_ok(r, "kv.k") || layout_has_axis(&c->kv.k, AXIS_H)) return;
  spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
              "scale.granularity is head, allowed: tensor, since kv.k has no h and so one kv head");
}

/* What lies in one page must lie apart. Judged once all of it is known. */
static void check_pages(spec_reader *r) {
  static const char *const needed[] = {"kv.dtype",       "kv.k",        "kv.v",    "kv.tail.at",
                                       "kv.tail.layout", "scale.dtype", "scale.k", "scale.v"};
  const contract *c = &r->spec.contract;
  if (r->status != HD_OK) return;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!is_ok(r, needed[i])) return;
  for (int is_k = 1; is_k >= 0; is_k--) {
    bool inside = c->scale.inside, tail = is_k && c->kv.tail.channels > 0;
    if ((!inside && !tail) || (!is_k && c->kv.v_in_k)) continue;
    int row = find_field(tail ? "kv.tail" : is_k ? "scale.k" : "scale.v");
    spec_check_page(r, &fields[row], tail ? r->keys[row] : r->nodes[row], is_k);
  }
}

/* The largest code must be one that the cache's format has; of fp8_e4m3, that both dialects have. */
static void check_qmax(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("scale.writer.qmax");
  if (!r->nodes[row] || !is_ok(r, "scale.writer.qmax") || !is_ok(r, "kv.dtype")) return;
  const dtype dtypes[] = {c->kv.k_dtype, c->kv.v_dtype};
  for (int i = 0; i < 2; i++) {
    double most = dtype_max(dtypes[i] == DTYPE_FP8_E4M3 ? DTYPE_FP8_E4M3FNUZ : dtypes[i]);
    if (c->scale.writer.qmax <= most) continue;
    spec_reject(r, "spec.conflict", &fields[row], r->nodes[row],
                "%s is %s, but %s ends at %.0f%s, allowed: dialect, or a number up to that", fields[row].path,
                r->nodes[row]->text, dtype_name(dtypes[i]), most,
                dtypes[i] == DTYPE_FP8_E4M3 ? " in one of its dialects" : "");
    return;
  }
}

/* What is stored for an all-zero row is a scale: rounded to what its format holds. The floor of what is
 * stored, alone, is such a number. */
static void check_zero_row(spec_reader *r) {
  contract *c = &r->spec.contract;
  int row = find_field("scale.writer.zero_row");
  if (!has_meaning(r, &fields[row]) || !is_ok(r, "scale.dtype") || !is_ok(r, fields[row].path)) return;
  unsigned char stored[4];
  if (c->scale.writer.zero_row == ZERO_ROW_FLOOR && c->scale.writer.amax_floor == 0 &&
      c->scale.writer.scale_floor > 0) {
    dtype_encode(c->scale.dtype, c->scale.writer.scale_floor, stored);
    c->scale.writer.zero_value = dtype_decode(c->scale.dtype, stored);
    c->scale.writer.zero_row = ZERO_ROW_VALUE;
    return;
  }
  if (c->scale.writer.zero_row != ZERO_ROW_VALUE) return;
  dtype_encode(c->scale.dtype, c->scale.writer.zero_value, stored);
  double rounded = dtype_decode(c->scale.dtype, stored);
  bool lost = isinf(rounded) || (c->scale.writer.zero_value == 0) != (rounded == 0);
  if (c->scale.dtype == DTYPE_E8M0)
    lost = rounded != c->scale.writer.zero_value; /* a power of two or nothing */
  if (lost)
    spec_reject(r, "spec.conflict", &fields[row],
                r->nodes[row] ? r->nodes[row] : r->keys[find_field("scale")],
                "%s is %s, allowed with scale.dtype %s: %s", fields[row].path,
                r->nodes[row] ? r->nodes[row]->text : fields[row].fallback, dtype_name(c->scale.dtype),
                c->scale.dtype == DTYPE_E8M0 ? "a power of two"
                                             : "0, or what does not become 0 or infinite in that format");
  else
    c->scale.writer.zero_value = rounded;
}

/* Block lists belong to a kv head and row, token lists to a row, whatever select.per says; it says what comes
 * with each: a length, or a list for each kv head too. */
static void check_per(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = find_field("select.per");
  if (!is_ok(r, "select.form") || !is_ok(r, "select.per")) return;
  bool blocks = c->select.form == SELECT_BLOCKS && c->select.per == PER_KV_HEAD;
  bool tokens = c->select.form == SELECT_TOKENS && c->select.per == PER_SEQUENCE;
  if (blocks || tokens)
    spec_reject(r, "spec.conflict", &fields[row], r->nodes[row], "select.per is %s with form %s, allowed: %s",
                per_words[c->select.per].word, form_words[c->select.form].word,
                blocks ? "sequence, row" : "row, kv_head");
}

static void (*const checks[])(spec_reader *r) = {
    check_scaled_cache, check_scale_dtype, check_tail,       check_shared_values, check_group,
    check_qmax,         check_zero_row,    check_head_scale, check_pages,         check_per};

/* ---- the whole ---- */

static void note_places(spec_reader *r) {
  spec *s = &r->spec;
  for (int row = 0; row < FIELD_COUNT; row++) {
    const spec_node *at = fields[row].parse ? r->nodes[row] : r->keys[row];
    if (!at) continue;
    spec_place *p = &s->places[s->place_count++];
    snprintf(p->field, sizeof p->field, "%s", fields[row].path);
    p->line = at->line;
    p->column = at->column;
  }
}

static void read_spec(spec_reader *r, const spec_node *root) {
  int version = find_field("heddle");
  for (int i = 0; i < root->count; i++)
    if (strcmp(root->pairs[i].key->text, "heddle") == 0) r->nodes[version] = root->pairs[i].value;
  r->ok[version] = read_field(r, &fields[version], root);
  if (r->nodes[version] && !r->ok[version]) return; /* another language: nothing else can be judged */
  collect(r, root, "");
  for (int row = version + 1; row < FIELD_COUNT; row++)
    r->ok[row] = read_field(r, &fields[row], root);
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    checks[i](r);
  note_places(r);
}

/* File order; what stands at one place, by its text, so that the order never depends on the sort. */
static int compare_places(const void *a, const void *b) {
  const diag *x = a, *y = b;
  if (x->line != y->line) return x->line < y->line ? -1 : 1;
  if (x->column != y->column) return x->column < y->column ? -1 : 1;
  return strcmp(x->message, y->message);
}

hd_status spec_parse(const char *yaml, size_t length, spec *out_spec, diags *problems) {
  spec_tree tree;
  size_t before = problems->count;
  hd_status status = spec_tree_parse(yaml, length, &tree, problems);
  if (status != HD_OK) return problems->failed ? HD_OUT_OF_MEMORY : status;
  spec_reader *r = calloc(1, sizeof *r);
  if (!r) {
    spec_tree_finish(&tree);
    return HD_OUT_OF_MEMORY;
  }
  r->problems = problems;
  read_spec(r, tree.root);
  spec_tree_finish(&tree);
  status = problems->failed ? HD_OUT_OF_MEMORY : r->status;
  if (status == HD_OK && problems->count > before) status = HD_DECLINED; /* what the tree had to say */
  if (problems->count > before)
    qsort(problems->items + before, problems->count - before, sizeof *problems->items, compare_places);
  if (status == HD_OK)
    *out_spec = r->spec;
  else
    spec_finish(&r->spec);
  free(r);
  return status;
}

void spec_finish(spec *s) {
  free(s->about);
  s->about = NULL;
}

bool spec_find_place(const spec *s, const char *field, int *out_line, int *out_column) {
  /* The field itself, else what it is in: "kv.page", then "kv". */
  for (size_t length = strlen(field); length > 0;) {
    for (int i = 0; i < s->place_count; i++) {
      const spec_place *p = &s->places[i];
      if (strlen(p->field) != length || strncmp(p->field, field, length) != 0) continue;
      *out_line = p->line;
      *out_column = p->column;
      return true;
    }
    while (length > 0 && field[--length] != '.') {
    }
  }
  return false;
}
