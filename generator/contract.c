#include "contract.h"
#include "sha256.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line of the canonical text. */
typedef struct contract_field {
  const char *path; /* as in a spec; at most three deep */
  void (*write)(const contract *c, text *out);
  bool (*applies)(const contract *c); /* NULL: always */
} contract_field;

static const struct {
  const char *word;
  unsigned axes;
} granularities[] = {
#define X(name, word, axes) {word, axes},
    GRANULARITY_LIST(X)
#undef X
};

#define X(name, word) word,
static const char *const select_form_words[] = {SELECT_FORM_LIST(X)};
static const char *const select_per_words[] = {SELECT_PER_LIST(X)};
#undef X

static const char *const boolean_words[] = {"false", "true"};

unsigned contract_scale_axes(granularity g) {
  return granularities[g].axes;
}

bool contract_token_scales(const contract *c) {
  return contract_scale_axes(c->scale.granularity) & 1u << AXIS_B;
}

const char *granularity_name(granularity g) {
  return granularities[g].word;
}

bool contract_writer_scales(granularity g) {
  return granularities[g].axes & 1u << AXIS_S;
}

bool contract_has_operation(const contract *c, operation o) {
  return o < OPERATION_COUNT && (c->kernels >> o & 1) != 0;
}

bool contract_scale_arrays(const contract *c) {
  return c->scale.granularity != SCALE_NONE && !c->scale.inside && !c->scale.argument;
}

int contract_coded_k(const contract *c) {
  return c->head_dim.qk - c->kv.tail.channels;
}

int contract_coded_v(const contract *c) {
  int coded = contract_coded_k(c);
  return c->kv.v_in_k && coded < c->head_dim.v ? coded : c->head_dim.v;
}

bool contract_makes_lists(const contract *c) {
  return c->select.form == SELECT_BLOCKS || c->select.form == SELECT_TOKENS;
}

bool contract_rows_are_sequences(const contract *c) {
  return c->select.per == PER_ROW || c->select.form == SELECT_TOKENS;
}

int contract_most_rows(const contract *c) {
  return contract_rows_are_sequences(c) ? 1 : c->query.rows;
}

bool contract_rows_have_lists(const contract *c) {
  return contract_rows_are_sequences(c) || contract_makes_lists(c);
}

/* The shortest decimal that reads back as the same fp32 value: 0.1, not 0.10000000149011612. printf and
 * strtod share the locale, so the search works in any. */
static void add_fp32(text *out, double value) {
  char buffer[32];
  float rounded = (float)value;
  double shortest = (double)rounded;
  for (int precision = 0; precision <= 8; precision++) {
    snprintf(buffer, sizeof buffer, "%.*e", precision, (double)rounded);
    double candidate = strtod(buffer, NULL);
    if ((float)candidate != rounded) continue;
    shortest = candidate;
    break;
  }
  text_add_double(out, shortest == 0 ? 0.0 : shortest); /* −0 is 0 */
}

/* "16", or "{qk: 192, v: 128}" where the two sides differ. */
static void add_pair(text *out, const char *first_name, int first, const char *second_name, int second) {
  if (first == second)
    text_addf(out, "%d", first);
  else
    text_addf(out, "{%s: %d, %s: %d}", first_name, first, second_name, second);
}

static void add_layout(text *out, const layout *l) {
  layout canonical = *l;
  layout_canonicalize(&canonical);
  layout_write(&canonical, out);
}

static void write_version(const contract *c, text *out) {
  (void)c;
  text_add(out, "1");
}

static void write_kernels(const contract *c, text *out) {
  const char *separator = "[";
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    if (!contract_has_operation(c, o)) continue;
    text_addf(out, "%s%s", separator, operation_name(o));
    separator = ", ";
  }
  text_add(out, "]");
}

static void write_query_dtype(const contract *c, text *out) {
  text_add(out, dtype_name(c->query.dtype));
}

static void write_heads_per_kv(const contract *c, text *out) {
  text_addf(out, "%d", c->query.heads_per_kv);
}

static void write_rows(const contract *c, text *out) {
  text_addf(out, "%d", c->query.rows);
}

static void write_head_dim(const contract *c, text *out) {
  add_pair(out, "qk", c->head_dim.qk, "v", c->head_dim.v);
}

static void write_kv_dtype(const contract *c, text *out) {
  const char *k = dtype_name(c->kv.k_dtype), *v = dtype_name(c->kv.v_dtype);
  if (c->kv.k_dtype == c->kv.v_dtype)
    text_add(out, k);
  else
    text_addf(out, "{k: %s, v: %s}", k, v);
}

static void write_page(const contract *c, text *out) {
  text_addf(out, "%d", c->kv.page);
}

static void write_k(const contract *c, text *out) {
  add_layout(out, &c->kv.k);
}

static void write_v(const contract *c, text *out) {
  if (c->kv.v_in_k)
    text_add(out, "k");
  else
    add_layout(out, &c->kv.v);
}

static void write_tail_channels(const contract *c, text *out) {
  text_addf(out, "%d", c->kv.tail.channels);
}

static void write_tail_dtype(const contract *c, text *out) {
  text_add(out, dtype_name(c->kv.tail.dtype));
}

static void write_tail_at(const contract *c, text *out) {
  text_addf(out, "%lld", (long long)c->kv.tail.at);
}

static void write_tail_layout(const contract *c, text *out) {
  add_layout(out, &c->kv.tail.layout);
}

static void write_strides(const contract *c, text *out) {
  text_add(out, c->kv.packed ? "packed" : "free");
}

static void write_granularity(const contract *c, text *out) {
  text_add(out, granularity_name(c->scale.granularity));
}

static void write_source(const contract *c, text *out) {
  text_add(out, c->scale.argument ? "argument" : "memory");
}

static void write_group(const contract *c, text *out) {
  add_pair(out, "k", c->scale.group_k, "v", c->scale.group_v);
}

static void write_scale_dtype(const contract *c, text *out) {
  text_add(out, dtype_name(c->scale.dtype));
}

static void add_scale_place(const contract *c, char side, int64_t at, const layout *l, text *out) {
  if (c->scale.inside) text_addf(out, "{inside: %c, at: %lld, layout: ", side, (long long)at);
  add_layout(out, l);
  if (c->scale.inside) text_add(out, "}");
}

static void write_scale_k(const contract *c, text *out) {
  add_scale_place(c, 'k', c->scale.k_at, &c->scale.k, out);
}

static void write_scale_v(const contract *c, text *out) {
  add_scale_place(c, 'v', c->scale.v_at, &c->scale.v, out);
}

static void write_amax_floor(const contract *c, text *out) {
  add_fp32(out, c->scale.writer.amax_floor);
}

static void write_scale_floor(const contract *c, text *out) {
  add_fp32(out, c->scale.writer.scale_floor);
}

static void write_zero_row(const contract *c, text *out) {
  if (c->scale.writer.zero_row == ZERO_ROW_VALUE)
    add_fp32(out, c->scale.writer.zero_value);
  else if (c->scale.writer.amax_floor == 0 && c->scale.writer.scale_floor == 0)
    text_add(out, "0"); /* floor / qmax of no floor */
  else
    text_add(out, "floor");
}

/* Writing the dialect's own largest value as a number says nothing new. */
static void write_qmax(const contract *c, text *out) {
  double qmax = c->scale.writer.qmax;
  bool generic = c->kv.k_dtype == DTYPE_FP8_E4M3 || c->kv.v_dtype == DTYPE_FP8_E4M3;
  bool same = !generic && qmax == dtype_max(c->kv.k_dtype) && qmax == dtype_max(c->kv.v_dtype);
  if (qmax == 0 || same)
    text_add(out, "dialect");
  else
    add_fp32(out, qmax);
}

static void write_form(const contract *c, text *out) {
  text_add(out, select_form_words[c->select.form]);
}

static void write_block(const contract *c, text *out) {
  text_addf(out, "%d", c->select.block);
}

static void write_index(const contract *c, text *out) {
  text_add(out, dtype_name(c->select.index));
}

static void write_per(const contract *c, text *out) {
  text_add(out, select_per_words[c->select.per]);
}

static void write_causal(const contract *c, text *out) {
  text_add(out, boolean_words[c->mask.causal]);
}

static void write_window(const contract *c, text *out) {
  if (c->mask.window == 0)
    text_add(out, "none");
  else
    text_addf(out, "%d", c->mask.window);
}

static void write_sinks(const contract *c, text *out) {
  text_add(out, c->mask.sinks ? "per_head" : "none");
}

static void write_logits_scale(const contract *c, text *out) {
  switch (c->logits.scale) {
  case LOGITS_ARGUMENT:
    text_add(out, "argument");
    break;
  case LOGITS_RSQRT_D:
    text_add(out, "rsqrt_d");
    break;
  case LOGITS_NUMBER:
    add_fp32(out, c->logits.number);
    break;
  }
}

static void write_softcap(const contract *c, text *out) {
  if (c->logits.softcap == 0)
    text_add(out, "none");
  else
    add_fp32(out, c->logits.softcap);
}

static void write_output_dtype(const contract *c, text *out) {
  text_add(out, dtype_name(c->output.dtype));
}

static void write_lse(const contract *c, text *out) {
  text_add(out, boolean_words[c->output.lse]);
}

static bool has_scales(const contract *c) {
  return c->scale.granularity != SCALE_NONE;
}

/* Younger than the keys of specs without it, which stay what they were. */
static bool has_source(const contract *c) {
  return c->scale.argument;
}

static bool has_scale_layout(const contract *c) {
  return contract_scale_axes(c->scale.granularity) != 0;
}

static bool has_v_scale_layout(const contract *c) {
  return has_scale_layout(c) && !c->kv.v_in_k;
}

static bool has_tail(const contract *c) {
  return c->kv.tail.channels > 0;
}

static bool has_groups(const contract *c) {
  return c->scale.granularity == SCALE_GROUP;
}

static bool has_blocks(const contract *c) {
  return c->select.form == SELECT_BLOCKS;
}

static bool has_writer_rule(const contract *c) {
  return contract_writer_scales(c->scale.granularity);
}

/* Younger than the keys of specs without one, which stay what they were. */
static bool has_scale_floor(const contract *c) {
  return has_writer_rule(c) && c->scale.writer.scale_floor > 0;
}

/* The order is the canonical order: changing it changes every key. */
static const contract_field fields[] = {
    {"heddle", write_version, NULL},
    {"kernels", write_kernels, NULL},
    {"query.dtype", write_query_dtype, NULL},
    {"query.heads_per_kv", write_heads_per_kv, NULL},
    {"query.rows", write_rows, NULL},
    {"head_dim", write_head_dim, NULL},
    {"kv.dtype", write_kv_dtype, NULL},
    {"kv.page", write_page, NULL},
    {"kv.k", write_k, NULL},
    {"kv.v", write_v, NULL},
    {"kv.tail.channels", write_tail_channels, has_tail},
    {"kv.tail.dtype", write_tail_dtype, has_tail},
    {"kv.tail.at", write_tail_at, has_tail},
    {"kv.tail.layout", write_tail_layout, has_tail},
    {"kv.strides", write_strides, NULL},
    {"scale.granularity", write_granularity, NULL},
    {"scale.source", write_source, has_source},
    {"scale.group", write_group, has_groups},
    {"scale.dtype", write_scale_dtype, has_scales},
    {"scale.k", write_scale_k, has_scale_layout},
    {"scale.v", write_scale_v, has_v_scale_layout},
    {"scale.writer.amax_floor", write_amax_floor, has_writer_rule},
    {"scale.writer.scale_floor", write_scale_floor, has_scale_floor},
    {"scale.writer.zero_row", write_zero_row, has_writer_rule},
    {"scale.writer.qmax", write_qmax, has_writer_rule},
    {"select.form", write_form, NULL},
    {"select.block", write_block, has_blocks},
    {"select.index", write_index, NULL},
    {"select.per", write_per, NULL},
    {"mask.causal", write_causal, NULL},
    {"mask.window", write_window, NULL},
    {"mask.sinks", write_sinks, NULL},
    {"logits.scale", write_logits_scale, NULL},
    {"logits.softcap", write_softcap, NULL},
    {"output.dtype", write_output_dtype, NULL},
    {"output.lse", write_lse, NULL},
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static bool field_applies(const contract_field *f, const contract *c) {
  return !f->applies || f->applies(c);
}

/* Heads of the sections that `path` is in and `previous` is not, one a line, then the field's own name. */
static void add_path(text *out, const char *path, const char *previous) {
  int depth = 0;
  bool shared = true;
  const char *part = path;
  for (const char *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1, depth++) {
    size_t length = (size_t)(dot - path) + 1;
    shared = shared && strncmp(path, previous, length) == 0;
    if (!shared) text_addf(out, "%*s%.*s:\n", 2 * depth, "", (int)(dot - part), part);
  }
  text_addf(out, "%*s%s: ", 2 * depth, "", part);
}

void contract_write(const contract *c, text *out) {
  const char *previous = "";
  for (int i = 0; i < FIELD_COUNT; i++) {
    if (!field_applies(&fields[i], c)) continue;
    add_path(out, fields[i].path, previous);
    fields[i].write(c, out);
    text_add(out, "\n");
    previous = fields[i].path;
  }
}

hd_status contract_key(const contract *c, char out_hex[65]) {
  text canonical;
  text_init(&canonical);
  contract_write(c, &canonical);
  bool failed = canonical.failed;
  if (!failed) sha256_hex(canonical.data, canonical.length, out_hex);
  text_finish(&canonical);
  return failed ? HD_OUT_OF_MEMORY : HD_OK;
}

contract contract_resolve(const contract *c, dtype dialect) {
  contract resolved = *c;
  if (resolved.kv.k_dtype == DTYPE_FP8_E4M3) resolved.kv.k_dtype = dialect;
  if (resolved.kv.v_dtype == DTYPE_FP8_E4M3) resolved.kv.v_dtype = dialect;
  double k_max = dtype_max(resolved.kv.k_dtype), v_max = dtype_max(resolved.kv.v_dtype);
  bool has_rule = contract_writer_scales(resolved.scale.granularity);
  if (has_rule && resolved.scale.writer.qmax == 0 && k_max == v_max) resolved.scale.writer.qmax = k_max;
  return resolved;
}

size_t contract_diff(const contract *a, const contract *b, text *out) {
  static const char absent[] = "(absent)";
  size_t differences = 0;
  for (int i = 0; i < FIELD_COUNT; i++) {
    const contract_field *f = &fields[i];
    text left, right;
    text_init(&left);
    text_init(&right);
    if (field_applies(f, a)) f->write(a, &left);
    if (field_applies(f, b)) f->write(b, &right);
    if (left.failed || right.failed) out->failed = true;
    if (strcmp(text_string(&left), text_string(&right)) != 0) {
      text_addf(out, "%s: %s → %s\n", f->path, left.length ? left.data : absent,
                right.length ? right.data : absent);
      differences++;
    }
    text_finish(&left);
    text_finish(&right);
  }
  return differences;
}
