#include "space.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new value of the language is one more word here. */
const space_field space_fields[] = {
    {"query.dtype", {"bf16", "fp16"}},
    {"query.heads_per_kv", {"8", "1", "4", "6", "7", "10", "12", "16", "24", "64", "128"}},
    {"query.rows", {"1", "2", "3", "4", "8"}},
    {"head_dim.qk", {"128", "64", "32", "72", "80", "96", "112", "192", "256", "320", "576"}},
    {"head_dim.v", {"128", "64", "32", "72", "80", "96", "112", "192", "256", "512"}},
    {"kv.dtype.k", {"fp8_e4m3", "bf16", "fp16", "fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2", "int8"}},
    {"kv.dtype.v", {"fp8_e4m3", "bf16", "fp16", "fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2", "int8"}},
    {"kv.page",
     {"16", "1", "2", "7", "24", "32", "64", "128", "256", "528", "544", "784", "1056", "1152", "1568",
      "2048"}},
    {"kv.k",
     {"[b, h, s, d]", "[b, s, h, d]", "[b, h, d/16, s, d%16]", "[b, h, d/8, s, d%8]", "[b, h, d, s]",
      "[h, b, s, d]", "[b, s/4, h, d, s%4]", "[b, h, d%2, s, d/2]", "[b, h, d/16, s/2, d%16/4, s%2, d%4]",
      "[b, s/16, h, d/16, s%16, d%16]", "[b, s, h, d+4]", "[b, s, h, d+132]", "[b, h, s+$4, d]"}},
    {"kv.v",
     {"[b, h, s, d]", "[b, s, h, d]", "[b, h, s/16, d, s%16]", "[b, h, s/8, d, s%8]", "[b, h, d, s]",
      "[h, b, s, d]", "[b, d, s, h]", "[b, d/8, s, h, d%8]", "[b, h, d/16, s/2, d%16, s%2]",
      "[b, h, s%2, d, s/2]", "[b, s, h, d+4]", "[b, h, s+$4, d]", "k"}},
    {"kv.tail",
     {"-", "{channels: 64, dtype: bf16, at: $qk-64, layout: [b, s, h, d]}",
      "{channels: 64, dtype: fp16, at: $qk-64, layout: [b, s, h, d]}",
      "{channels: 16, dtype: bf16, at: $qk-16, layout: [b, s, h, d]}"}},
    {"kv.strides", {"free", "packed"}},
    {"scale.granularity",
     {"none", "tensor", "head", "token", "token_head", "page_head", "group, group: 16", "group, group: 32",
      "group, group: 64"}},
    {"scale.source", {"-", "memory", "argument"}},
    {"scale.dtype", {"-", "fp32", "fp16", "e8m0"}},
    {"scale.*",
     {"-", "k: [h, b, s], v: [b, s, h]", "k: [b, s, h], v: [b, h, s/2, s%2]", "k: [h, b], v: [b, h]",
      "k: [b, s], v: [b, s]", "k: [b, s, h, d], v: [b, h, d, s]", "source: argument",
      "k: {inside: k, at: $qk+64, layout: [b, s, h]}",
      "k: {inside: k, at: $qk+64, layout: [b, s, h]}, v: {inside: v, at: $v, layout: [b, s, h]}",
      "k: {inside: k, at: $qk, layout: [b, s, h]}, v: {inside: v, at: $v, layout: [b, s, h]}",
      "k: {inside: k, at: $pqk, layout: [b, h, s]}, v: {inside: v, at: $pv, layout: [b, h, s]}"}},
    {"scale.writer",
     {"-", "{amax_floor: 1e-8, zero_row: floor}", "{zero_row: 0}", "{qmax: 240}",
      "{amax_floor: 1e-6, zero_row: 1e-6, qmax: 100}", "{scale_floor: 1e-2, zero_row: floor}"}},
    {"select.form", {"table", "indptr", "blocks, block: $1", "blocks, block: $4", "tokens"}},
    {"select.index", {"int32", "int64"}},
    {"select.per", {"sequence", "kv_head", "row"}},
    {"mask.causal", {"true", "false"}},
    {"mask.window", {"none", "1", "40", "128", "4096"}},
    {"mask.sinks", {"none", "per_head"}},
    {"logits.scale", {"argument", "rsqrt_d", "0.08"}},
    {"logits.softcap", {"none", "5", "30"}},
    {"output.dtype", {"bf16", "fp16", "fp32"}},
    {"output.lse", {"false", "true"}},
    {"run.variant", {"default", "w1", "w2", "w4", "w8", "line", "line-w2"}},
    {"run.split", {"0", "1", "2", "3", "7", "16"}},
    {"run.strides", {"dense", "padded"}},
    {"run.case",
     {"plain", "lengths", "split", "heads", "zero-query", "zero-tokens", "peaked", "outliers",
      "wide-v-scales", "zero-v-scales", "skipped-tokens", "nan", "tiles", "by-policy"}},
};

int space_field_count(void) {
  return (int)(sizeof space_fields / sizeof space_fields[0]);
}

int space_value_count(int field) {
  int count = 0;
  while (count < SPACE_MAX_VALUES && space_fields[field].values[count])
    count++;
  return count;
}

int space_find(const char *path) {
  for (int i = 0; i < space_field_count(); i++)
    if (strcmp(space_fields[i].path, path) == 0) return i;
  return -1;
}

/* What a plain point has other than the first values. */
enum { MOST_CHANGES = 5 };
static const struct {
  const char *path, *value;
} bases[][MOST_CHANGES] = {
    {{"scale.granularity", "token_head"}},
    {{"scale.granularity", "none"}},
    {{"kv.dtype.k", "bf16"}, {"kv.dtype.v", "bf16"}},
    {{"scale.granularity", "page_head"}},
    {{"scale.granularity", "group, group: 32"}},
    {{"scale.granularity", "token"}},
    {{"scale.granularity", "tensor"}},
    {{"scale.granularity", "token_head"},
     {"kv.k", "[b, s, h, d+4]"},
     {"kv.v", "[b, s, h, d+4]"},
     {"scale.*", "k: {inside: k, at: $qk, layout: [b, s, h]}, v: {inside: v, at: $v, layout: [b, s, h]}"}},
    {{"scale.granularity", "token_head"},
     {"kv.k", "[b, h, s+$4, d]"},
     {"kv.v", "[b, h, s+$4, d]"},
     {"scale.*", "k: {inside: k, at: $pqk, layout: [b, h, s]}, v: {inside: v, at: $pv, layout: [b, h, s]}"}},
    {{"scale.granularity", "none"}, {"kv.v", "k"}},
    {{"scale.granularity", "token_head"},
     {"kv.k", "[b, s, h, d+132]"},
     {"kv.v", "[b, s, h, d+4]"},
     {"kv.tail", "{channels: 64, dtype: bf16, at: $qk-64, layout: [b, s, h, d]}"},
     {"scale.*", "k: {inside: k, at: $qk+64, layout: [b, s, h]}, v: {inside: v, at: $v, layout: [b, s, h]}"}},
    {{"head_dim.v", "64"},
     {"kv.k", "[b, s, h, d+132]"},
     {"kv.v", "k"},
     {"kv.tail", "{channels: 64, dtype: bf16, at: $qk-64, layout: [b, s, h, d]}"}},
    {{"scale.granularity", "tensor"}, {"scale.*", "source: argument"}},
    {{"kv.page", "1"}, {"select.form", "tokens"}, {"select.per", "row"}},
    {{"kv.page", "1"}, {"select.form", "tokens"}, {"select.per", "kv_head"}},
};

int space_base_count(void) {
  return (int)(sizeof bases / sizeof bases[0]);
}

static void set(space_point *p, const char *path, const char *value) {
  int field = space_find(path);
  for (int v = 0; v < space_value_count(field); v++)
    if (strcmp(space_fields[field].values[v], value) == 0) p->at[field] = (unsigned char)v;
}

space_point space_base(int index) {
  space_point p = {{0}};
  for (int i = 0; i < MOST_CHANGES && bases[index][i].path; i++)
    set(&p, bases[index][i].path, bases[index][i].value);
  return p;
}

const char *space_value(const space_point *p, const char *path) {
  int field = space_find(path);
  return space_fields[field].values[p->at[field]];
}

/* How many bytes of two paths are common whole segments, the dots behind them included. */
static size_t common_segments(const char *a, const char *b) {
  size_t common = 0;
  for (size_t i = 0; a[i] && a[i] == b[i]; i++)
    if (a[i] == '.') common = i + 1;
  return common;
}

static int dots(const char *path) {
  int count = 0;
  for (; *path; path++)
    count += *path == '.';
  return count;
}

static void close_maps(text *out, int from, int to) {
  for (; from > to; from--)
    text_add(out, from == 1 ? "}\n" : "}");
}

/* What "$…" in a value stands for: "$qk" and "$v" the channels of a head, "$qk+N" and "$qk-N" so many more or
 * fewer,
 * "$pqk" and "$pv" those of a page, "$N" N times the tokens of a page. Returns what follows. */
static const char *add_number(text *out, const char *name, const space_point *p) {
  long number = 1;
  char *end;
  if (*name == 'p') {
    number = atoi(space_value(p, "kv.page"));
    name++;
  }
  if (strncmp(name, "qk", 2) == 0) {
    const bool changed = name[2] == '+' || name[2] == '-';
    const long more = changed ? strtol(name + 2, &end, 10) : 0;
    text_addf(out, "%ld", number * atoi(space_value(p, "head_dim.qk")) + more);
    return changed ? end : name + 2;
  }
  if (*name == 'v') {
    text_addf(out, "%ld", number * atoi(space_value(p, "head_dim.v")));
    return name + 1;
  }
  number = strtol(name, &end, 10);
  text_addf(out, "%ld", number * atoi(space_value(p, "kv.page")));
  return end;
}

static void add_value(text *out, const char *value, const space_point *p) {
  for (const char *next; (next = strchr(value, '$')) != NULL;) {
    text_addf(out, "%.*s", (int)(next - value), value);
    value = add_number(out, next + 1, p);
  }
  text_add(out, value);
}

/* Fields of one section stand together in the table. A section is a line, sections in it are maps. */
void space_write_spec(const space_point *p, const char *name, text *out) {
  const char *previous = "";
  int open = 0;
  text_addf(out, "heddle: 1\nname: %s\nkernels: [write, decode]\n", name);
  for (int i = 0; i < space_field_count(); i++) {
    const char *path = space_fields[i].path, *value = space_fields[i].values[p->at[i]];
    if (strncmp(path, "run.", 4) == 0 || strcmp(value, "-") == 0) continue;
    size_t common = common_segments(previous, path);
    int kept = 0;
    for (size_t j = 0; j < common; j++)
      kept += path[j] == '.';
    close_maps(out, open, kept);
    if (kept > 0) text_add(out, ", ");
    for (const char *segment = path + common; (segment = strchr(segment, '.')) != NULL; segment++) {
      const char *start = segment;
      while (start > path && start[-1] != '.')
        start--;
      text_addf(out, "%.*s: {", (int)(segment - start), start);
    }
    const char *leaf = strrchr(path, '.') + 1;
    if (strcmp(leaf, "*") != 0) text_addf(out, "%s: ", leaf);
    add_value(out, value, p);
    open = dots(path);
    previous = path;
  }
  close_maps(out, open, 0);
}

variant space_variant(const space_point *p) {
  variant v = {0};
  const char *name = space_value(p, "run.variant");
  if (strcmp(name, "default") != 0) variant_parse(name, &v);
  return v;
}

space_answer space_ask(const char *yaml, const variant *v, const target *on) {
  space_answer a = {false, ""};
  spec s;
  diags d;
  diags_init(&d);
  hd_status status = spec_parse(yaml, strlen(yaml), &s, &d);
  if (status == HD_OK) {
    static const struct {
      unsigned kernel;
      operation operation;
    } wanted[] = {{KERNEL_WRITE, OPERATION_WRITE}, {KERNEL_DECODE, OPERATION_DECODE}};
    contract resolved = contract_resolve(&s.contract, on->fp8);
    for (int i = 0; status == HD_OK && i < 2; i++)
      if (resolved.kernels & wanted[i].kernel) status = emit_check(&resolved, wanted[i].operation, v, on, &d);
    spec_finish(&s);
  }
  a.good = status == HD_OK;
  for (size_t i = 0; !a.good && i < d.count && !a.code[0]; i++)
    if (d.items[i].severity == DIAG_ERROR) snprintf(a.code, sizeof a.code, "%s", d.items[i].code);
  diags_finish(&d);
  return a;
}
