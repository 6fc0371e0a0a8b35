#include "descriptor.h"
#include "json.h"

#include <limits.h>
#include <string.h>

static const char *const dim_names[DIM_COUNT] = {
#define X(name, text) text,
    DIM_LIST(X)
#undef X
};

static const char *const tensor_names[TENSOR_COUNT] = {
#define X(name, text) text,
    TENSOR_LIST(X)
#undef X
};

static const char *const number_names[NUMBER_COUNT] = {
#define X(name, text) text,
    NUMBER_LIST(X)
#undef X
};

enum { DESCRIPTOR_VERSION = 3 };

const char *dim_name(dim d) {
  return dim_names[d];
}

const char *tensor_name_text(tensor_name t) {
  return tensor_names[t];
}

static int find_name(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return i;
  }
  return -1;
}

bool tensor_name_parse(const char *name, tensor_name *out_name) {
  const int found = find_name(tensor_names, TENSOR_COUNT, name);
  if (found < 0) return false;
  *out_name = (tensor_name)found;
  return true;
}

/* Product of two numbers >= 0, INT64_MAX when it is larger than that. */
static int64_t multiply(int64_t a, int64_t b) {
  return a != 0 && b > INT64_MAX / a ? INT64_MAX : a * b;
}

int64_t extent_value(const extent *e, const int64_t dims[DIM_COUNT]) {
  int64_t product = e->multiplier;
  for (int i = 0; i < e->dim_count; i++) {
    const int64_t factor = dims[e->dims[i]];
    if (product <= 0 || factor <= 0) return 0;
    product = multiply(product, factor);
  }
  if (product <= 0) return 0;
  if (product == INT64_MAX || e->divisor <= 1) return product;
  return (product - 1) / e->divisor + 1;
}

int64_t descriptor_lists_bytes(const descriptor *d, const int64_t dims[DIM_COUNT]) {
  const int64_t bytes = extent_value(&d->lists, dims), rest = bytes % DESCRIPTOR_ALIGNMENT;
  return rest == 0 || bytes > INT64_MAX - DESCRIPTOR_ALIGNMENT ? bytes : bytes + DESCRIPTOR_ALIGNMENT - rest;
}

int64_t descriptor_workspace_bytes(const descriptor *d, const int64_t dims[DIM_COUNT]) {
  const int64_t lists = descriptor_lists_bytes(d, dims);
  const int64_t partial = dims[DIM_SPLITS] > 1 ? extent_value(&d->workspace, dims) : 0;
  return lists > INT64_MAX - partial ? INT64_MAX : lists + partial;
}

/* Arguments: one row a type. */
typedef struct argument_type {
  const char *name;
  size_t bytes;
} argument_type;

static const argument_type type_pointer = {"pointer", 8}, type_int64 = {"int64", 8},
                           type_int32 = {"int32", 4}, type_fp32 = {"fp32", 4};

static const argument_type *argument_type_of(argument a) {
  if (a.kind == ARGUMENT_TENSOR) return &type_pointer;
  if (a.kind == ARGUMENT_NUMBER) return &type_fp32;
  return a.index >= DIM_K_STRIDE_B ? &type_int64 : &type_int32;
}

size_t argument_bytes(argument a) {
  return argument_type_of(a)->bytes;
}

const char *argument_name(argument a) {
  if (a.kind == ARGUMENT_TENSOR) return tensor_names[a.index];
  return (a.kind == ARGUMENT_DIM ? dim_names : number_names)[a.index];
}

size_t kernel_arguments_layout(const kernel_descriptor *k, size_t out_offsets[DESCRIPTOR_MAX_ARGUMENTS]) {
  size_t end = 0;
  for (int i = 0; i < k->argument_count; i++) {
    const size_t bytes = argument_bytes(k->arguments[i]);
    const size_t offset = (end + bytes - 1) & ~(bytes - 1); /* a power of two */
    if (out_offsets != NULL) out_offsets[i] = offset;
    end = offset + bytes;
  }
  return end;
}

/* Writing. The order of the keys is part of the format: the reader wants the same. */

static void write_string(text *out, const char *indent, const char *key, const char *value) {
  text_addf(out, "%s\"%s\": ", indent, key);
  text_add_json(out, value);
  text_add(out, ",\n");
}

static void write_extent(text *out, const extent *e) {
  text_addf(out, "{\"multiplier\": %lld, \"divisor\": %lld, \"dims\": [", (long long)e->multiplier,
            (long long)(e->divisor < 1 ? 1 : e->divisor));
  for (int i = 0; i < e->dim_count; i++)
    text_addf(out, "%s\"%s\"", i == 0 ? "" : ", ", dim_names[e->dims[i]]);
  text_add(out, "]}");
}

static void write_kernel(text *out, const kernel_descriptor *k) {
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  const size_t bytes = kernel_arguments_layout(k, offsets);
  text_add(out, "    {\n");
  write_string(out, "      ", "symbol", k->symbol);
  text_add(out, "      \"grid\": [\n");
  for (int i = 0; i < 3; i++) {
    text_add(out, "        ");
    write_extent(out, &k->grid[i]);
    text_add(out, i < 2 ? ",\n" : "\n");
  }
  text_addf(out, "      ],\n      \"block\": %d,\n      \"lds_bytes\": %d,\n", k->block, k->lds_bytes);
  text_addf(out, "      \"only_when_split\": %s,\n", k->only_when_split ? "true" : "false");
  text_addf(out, "      \"waits_itself\": %s,\n", k->waits_itself ? "true" : "false");
  text_addf(out, "      \"argument_bytes\": %zu,\n      \"arguments\": [", bytes);
  for (int i = 0; i < k->argument_count; i++) {
    const argument a = k->arguments[i];
    text_addf(out, "%s\n        {\"name\": \"%s\", \"type\": \"%s\", \"offset\": %zu}", i == 0 ? "" : ",",
              argument_name(a), argument_type_of(a)->name, offsets[i]);
  }
  text_addf(out, "%s]\n    }", k->argument_count == 0 ? "" : "\n      ");
}

void descriptor_write(const descriptor *d, text *out) {
  text_addf(out, "{\n  \"descriptor\": %d,\n", DESCRIPTOR_VERSION);
  write_string(out, "  ", "operation", d->operation);
  write_string(out, "  ", "target", d->target);
  write_string(out, "  ", "variant", d->variant);
  write_string(out, "  ", "contract_key", d->contract_key);
  text_addf(out, "  \"tile_tokens\": %d,\n  \"line_parts\": %d,\n  \"lists\": ", d->tile_tokens,
            d->line_parts);
  write_extent(out, &d->lists);
  text_add(out, ",\n  \"workspace\": ");
  write_extent(out, &d->workspace);
  text_add(out, ",\n  \"kernels\": [");
  for (int i = 0; i < d->kernel_count; i++) {
    text_add(out, i == 0 ? "\n" : ",\n");
    write_kernel(out, &d->kernels[i]);
  }
  text_addf(out, "%s]\n}\n", d->kernel_count == 0 ? "" : "\n  ");
}

/* Reading. The input may be hostile: a cache file that somebody else touched. Fixed order, fixed depth, every
 * list bounded. */

static void read_literal(json_reader *r, const char *literal) {
  char found[32];
  json_read_string(r, found, sizeof found);
  if (strcmp(found, literal) != 0) json_fail(r, literal);
}

static void read_key(json_reader *r, const char *key) {
  read_literal(r, key);
  json_expect(r, ':');
}

static void read_next_key(json_reader *r, const char *key) {
  json_expect(r, ',');
  read_key(r, key);
}

static void read_extent(json_reader *r, extent *e) {
  json_expect(r, '{');
  read_key(r, "multiplier");
  e->multiplier = json_read_integer(r, 0, INT64_MAX);
  read_next_key(r, "divisor");
  e->divisor = json_read_integer(r, 0, INT64_MAX);
  if (e->divisor < 1) json_fail(r, "what heddle writes");
  read_next_key(r, "dims");
  json_expect(r, '[');
  while (json_next(r, e->dim_count, ']')) {
    char name[32];
    json_read_string(r, name, sizeof name);
    const int found = find_name(dim_names, DIM_COUNT, name);
    if (found < 0 || e->dim_count == (int)(sizeof e->dims / sizeof e->dims[0]))
      json_fail(r, "what heddle writes");
    else
      e->dims[e->dim_count++] = (dim)found;
  }
  json_expect(r, '}');
}

static bool argument_parse(const char *name, argument *out) {
  const int tensor = find_name(tensor_names, TENSOR_COUNT, name);
  const int found_dim = find_name(dim_names, DIM_COUNT, name);
  const int found_number = find_name(number_names, NUMBER_COUNT, name);
  if (tensor >= 0)
    *out = (argument){ARGUMENT_TENSOR, tensor};
  else if (found_dim >= 0)
    *out = (argument){ARGUMENT_DIM, found_dim};
  else if (found_number >= 0)
    *out = (argument){ARGUMENT_NUMBER, found_number};
  else
    return false;
  return true;
}

/* Type and offset follow from the name; a file that says otherwise was written by another heddle. */
static void read_argument(json_reader *r, kernel_descriptor *k) {
  char name[32];
  argument a;
  json_expect(r, '{');
  read_key(r, "name");
  json_read_string(r, name, sizeof name);
  if (json_failed(r) || k->argument_count == DESCRIPTOR_MAX_ARGUMENTS || !argument_parse(name, &a)) {
    json_fail(r, "what heddle writes");
    return;
  }
  k->arguments[k->argument_count++] = a;
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  kernel_arguments_layout(k, offsets);
  read_next_key(r, "type");
  read_literal(r, argument_type_of(a)->name);
  read_next_key(r, "offset");
  if (json_read_integer(r, 0, INT_MAX) != (int64_t)offsets[k->argument_count - 1])
    json_fail(r, "what heddle writes");
  json_expect(r, '}');
}

static void read_kernel(json_reader *r, kernel_descriptor *k) {
  json_expect(r, '{');
  read_key(r, "symbol");
  json_read_string(r, k->symbol, sizeof k->symbol);
  read_next_key(r, "grid");
  for (int i = 0; i < 3; i++) {
    json_expect(r, i == 0 ? '[' : ',');
    read_extent(r, &k->grid[i]);
  }
  json_expect(r, ']');
  read_next_key(r, "block");
  k->block = (int)json_read_integer(r, 0, INT_MAX);
  read_next_key(r, "lds_bytes");
  k->lds_bytes = (int)json_read_integer(r, 0, INT_MAX);
  read_next_key(r, "only_when_split");
  k->only_when_split = json_read_bool(r);
  read_next_key(r, "waits_itself");
  k->waits_itself = json_read_bool(r);
  read_next_key(r, "argument_bytes");
  const int64_t bytes = json_read_integer(r, 0, INT_MAX);
  read_next_key(r, "arguments");
  json_expect(r, '[');
  while (json_next(r, k->argument_count, ']'))
    read_argument(r, k);
  if (bytes != (int64_t)kernel_arguments_layout(k, NULL)) json_fail(r, "what heddle writes");
  json_expect(r, '}');
}

static void read_descriptor(json_reader *r, descriptor *d) {
  json_expect(r, '{');
  read_key(r, "descriptor");
  if (json_read_integer(r, 0, INT_MAX) != DESCRIPTOR_VERSION) json_fail(r, "what heddle writes");
  read_next_key(r, "operation");
  json_read_string(r, d->operation, sizeof d->operation);
  read_next_key(r, "target");
  json_read_string(r, d->target, sizeof d->target);
  read_next_key(r, "variant");
  json_read_string(r, d->variant, sizeof d->variant);
  read_next_key(r, "contract_key");
  json_read_string(r, d->contract_key, sizeof d->contract_key);
  read_next_key(r, "tile_tokens");
  d->tile_tokens = (int)json_read_integer(r, 0, INT_MAX);
  read_next_key(r, "line_parts");
  d->line_parts = (int)json_read_integer(r, 0, INT_MAX);
  read_next_key(r, "lists");
  read_extent(r, &d->lists);
  read_next_key(r, "workspace");
  read_extent(r, &d->workspace);
  read_next_key(r, "kernels");
  json_expect(r, '[');
  while (json_next(r, d->kernel_count, ']')) {
    if (d->kernel_count == DESCRIPTOR_MAX_KERNELS)
      json_fail(r, "what heddle writes");
    else
      read_kernel(r, &d->kernels[d->kernel_count++]);
  }
  json_expect(r, '}');
  json_expect_end(r);
}

hd_status descriptor_parse(const char *json, size_t length, descriptor *out_descriptor) {
  json_reader r = json_reader_of(json, length);
  descriptor d;
  memset(&d, 0, sizeof d);
  read_descriptor(&r, &d);
  if (json_failed(&r)) return HD_INVALID;
  *out_descriptor = d;
  return HD_OK;
}

bool descriptor_is_of_another_version(const char *json, size_t length) {
  json_reader r = json_reader_of(json, length);
  json_expect(&r, '{');
  read_key(&r, "descriptor");
  int64_t version = json_read_integer(&r, 1, INT_MAX);
  return !json_failed(&r) && version != DESCRIPTOR_VERSION;
}
