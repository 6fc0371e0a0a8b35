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
const spec_word spec_form_words[] = {SELECT_FORM_LIST(X){NULL, 0}};
const spec_word spec_per_words[] = {SELECT_PER_LIST(X){NULL, 0}};
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
const spec_field spec_fields[] = {
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
    {"select.form", spec_parse_word, .fallback = "table", .offset = AT(select.form),
     .words = spec_form_words},
    {"select.block", spec_parse_integer, .offset = AT(select.block), .low = 1, .high = 1 << 20,
     .forms = 1u << SELECT_BLOCKS},
    {"select.index", spec_parse_dtype, .fallback = "int32", .offset = AT(select.index), .dtypes = USE_INDEX},
    {"select.per", spec_parse_word, .derive = derive_per, .offset = AT(select.per), .words = spec_per_words},

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

enum { FIELD_COUNT = sizeof spec_fields / sizeof *spec_fields };
_Static_assert((int)FIELD_COUNT <= (int)SPEC_MAX_FIELDS, "a spec has room for the place of every field");

int spec_row(const char *path) {
  for (int i = 0; i < FIELD_COUNT; i++)
    if (strcmp(spec_fields[i].path, path) == 0) return i;
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
    if (strlen(spec_fields[i].path) == length - 1 && strncmp(spec_fields[i].path, f->path, length - 1) == 0)
      return &spec_fields[i];
  return NULL;
}

bool spec_is_ok(const spec_reader *r, const char *path) {
  return r->ok[spec_row(path)];
}

const spec_node *spec_find_node(const spec_reader *r, const char *path) {
  return r->nodes[spec_row(path)];
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
      guess_offer(&engine, is_child(path, section) ? path + section_length(path) : path, spec_row(path), 0);
    }
  for (int i = 0; i < FIELD_COUNT; i++) {
    const char *name = spec_fields[i].path + section_length(spec_fields[i].path);
    if (is_child(spec_fields[i].path, section))
      guess_offer_near(&near, name, i);
    else if (elsewhere.count == 0 && strcmp(name, key->text) == 0)
      guess_offer(&elsewhere, spec_fields[i].path, i, 0);
  }
  if (engine.count > 0) return engine;
  return near.count > 0 && (near.distance <= 1 || elsewhere.count == 0) ? near : elsewhere;
}

/* unknown field "pages", allowed in kv: dtype, page, …; did you mean "page"? */
static void reject_key(spec_reader *r, const spec_node *key, const char *section) {
  text allowed;
  text_init(&allowed);
  for (int i = 0, count = 0; i < FIELD_COUNT; i++)
    if (is_child(spec_fields[i].path, section))
      text_addf(&allowed, "%s%s", count++ ? ", " : "",
                spec_fields[i].path + section_length(spec_fields[i].path));
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
    if (snprintf(path, sizeof path, "%s%s", section, key->text) < (int)sizeof path) row = spec_row(path);
    if (row < 0 || !is_child(spec_fields[row].path, section)) { /* a key with a dot in it is no path */
      reject_key(r, key, section);
      continue;
    }
    const spec_field *f = &spec_fields[row];
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
  int group = spec_row("scale.group");
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

bool spec_has_meaning(const spec_reader *r, const spec_field *f) {
  const contract *c = &r->spec.contract;
  return (!f->granularities || f->granularities & 1u << c->scale.granularity) &&
         (!f->forms || f->forms & 1u << c->select.form);
}

static bool reject_meaningless(spec_reader *r, const spec_field *f, const spec_node *key) {
  const contract *c = &r->spec.contract;
  unsigned allowed = f->forms ? f->forms : f->granularities;
  int value = f->forms ? (int)c->select.form : (int)c->scale.granularity;
  const spec_word *words = f->forms ? spec_form_words : granularity_words;
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
  if (r->guessed[f - spec_fields]) return false; /* there under a wrong name, and said so */
  if (f->derive) return f->derive(r, f);
  if (f->fallback) {
    spec_node value = {.kind = NODE_SCALAR, .text = f->fallback};
    return !f->parse || !f->fallback[0] || f->parse(r, f, &value);
  }
  const spec_field *parent = parent_of(f);
  const spec_node *section = root;
  if (parent) {
    ptrdiff_t row = parent - spec_fields;
    if (!r->nodes[row] || r->nodes[row]->kind != NODE_MAP) return parent->fallback != NULL && !r->nodes[row];
    section = r->keys[row];
  }
  return spec_reject(r, "spec.missing", f, section, "%s is missing", f->path);
}

/* True when the spec then has the field's value. */
static bool read_field(spec_reader *r, const spec_field *f, const spec_node *root) {
  ptrdiff_t row = f - spec_fields;
  if (f->granularities && !spec_is_ok(r, "scale.granularity")) return false; /* its error is enough */
  if (f->forms && !spec_is_ok(r, "select.form")) return false;
  if (!spec_has_meaning(r, f)) {
    const spec_field *parent = parent_of(f);
    bool said = parent && !spec_has_meaning(r, parent); /* of the whole section */
    return !r->nodes[row] || said || reject_meaningless(r, f, r->keys[row]);
  }
  if (!r->nodes[row]) return read_default(r, f, root);
  return !f->parse || f->parse(r, f, r->nodes[row]);
}

/* ---- the whole ---- */

static void note_places(spec_reader *r) {
  spec *s = &r->spec;
  for (int row = 0; row < FIELD_COUNT; row++) {
    const spec_node *at = spec_fields[row].parse ? r->nodes[row] : r->keys[row];
    if (!at) continue;
    spec_place *p = &s->places[s->place_count++];
    snprintf(p->field, sizeof p->field, "%s", spec_fields[row].path);
    p->line = at->line;
    p->column = at->column;
  }
}

static void read_spec(spec_reader *r, const spec_node *root) {
  int version = spec_row("heddle");
  for (int i = 0; i < root->count; i++)
    if (strcmp(root->pairs[i].key->text, "heddle") == 0) r->nodes[version] = root->pairs[i].value;
  r->ok[version] = read_field(r, &spec_fields[version], root);
  if (r->nodes[version] && !r->ok[version]) return; /* another language: nothing else can be judged */
  collect(r, root, "");
  for (int row = version + 1; row < FIELD_COUNT; row++)
    r->ok[row] = read_field(r, &spec_fields[row], root);
  spec_check(r);
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
