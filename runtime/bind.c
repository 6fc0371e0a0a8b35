#include "launch.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The sizes that shapes are made of. */
typedef enum size_symbol {
  SIZE_END,
  SIZE_ONE,
  SIZE_SEQS,
  SIZE_QUERY_ROWS, /* seqs*rows */
  SIZE_Q_HEADS,
  SIZE_KV_HEADS,
  SIZE_TABLE_PAGES, /* row length of the page table; entries of kv_indices */
  SIZE_ITEMS,       /* lists of pages: one a sequence, or one a (sequence, kv head) */
  SIZE_ITEMS_AND_ONE,
  SIZE_TOKENS,
  SIZE_DIM_QK,
  SIZE_DIM_V,
} size_symbol;

enum { RULE_MAX_RANK = 4 };

/* A tensor's rank and extents: from a layout of the contract, or a list of sizes. */
typedef struct tensor_shape {
  const layout *layout; /* NULL: sizes */
  size_symbol sizes[RULE_MAX_RANK];
} tensor_shape;

/* Whether each query row has a list of pages and a length of its own. Rows are then sequences of one row. */
static bool rows_are_sequences(const contract *c) {
  return c->select.per == PER_ROW;
}

static tensor_shape page_table_shape(const contract *c) {
  return c->select.per == PER_KV_HEAD ? (tensor_shape){NULL, {SIZE_SEQS, SIZE_KV_HEADS, SIZE_TABLE_PAGES}}
                                      : (tensor_shape){NULL, {SIZE_SEQS, SIZE_TABLE_PAGES}};
}

static tensor_shape scale_shape(const layout *l) {
  return l->count > 0 ? (tensor_shape){l, {SIZE_END}} : (tensor_shape){NULL, {SIZE_ONE}};
}

/* Tensors made of sizes, one row a tensor; which format: a field of the contract, or fixed. */
typedef enum format_source { FORMAT_FIXED, FORMAT_QUERY, FORMAT_OUTPUT, FORMAT_INDEX } format_source;

static const struct {
  format_source source;
  dtype fixed;
  size_symbol sizes[RULE_MAX_RANK];
} plain_tensors[TENSOR_COUNT] = {
    [TENSOR_Q] = {FORMAT_QUERY, 0, {SIZE_QUERY_ROWS, SIZE_Q_HEADS, SIZE_DIM_QK}},
    [TENSOR_K] = {FORMAT_QUERY, 0, {SIZE_TOKENS, SIZE_KV_HEADS, SIZE_DIM_QK}},
    [TENSOR_V] = {FORMAT_QUERY, 0, {SIZE_TOKENS, SIZE_KV_HEADS, SIZE_DIM_V}},
    [TENSOR_LENGTHS] = {FORMAT_FIXED, DTYPE_INT32, {SIZE_SEQS}},
    [TENSOR_KV_INDPTR] = {FORMAT_FIXED, DTYPE_INT32, {SIZE_ITEMS_AND_ONE}},
    [TENSOR_KV_INDICES] = {FORMAT_INDEX, 0, {SIZE_TABLE_PAGES}},
    [TENSOR_LAST_PAGE_LEN] = {FORMAT_FIXED, DTYPE_INT32, {SIZE_ITEMS}},
    [TENSOR_SLOT_MAPPING] = {FORMAT_FIXED, DTYPE_INT64, {SIZE_TOKENS}},
    [TENSOR_SINKS] = {FORMAT_FIXED, DTYPE_FP32, {SIZE_Q_HEADS}},
    [TENSOR_OUT] = {FORMAT_OUTPUT, 0, {SIZE_QUERY_ROWS, SIZE_Q_HEADS, SIZE_DIM_V}},
    [TENSOR_LSE] = {FORMAT_FIXED, DTYPE_FP32, {SIZE_QUERY_ROWS, SIZE_Q_HEADS}},
};

/* Whether the contract has the tensor at all. */
static bool contract_has(const contract *c, tensor_name name) {
  switch (name) {
  case TENSOR_K_SCALE:
  case TENSOR_V_SCALE:
    return c->scale.granularity != SCALE_NONE;
  case TENSOR_SINKS:
    return c->mask.sinks;
  case TENSOR_LSE:
    return c->output.lse;
  case TENSOR_PAGE_TABLE:
  case TENSOR_LENGTHS:
    return c->select.form != SELECT_INDPTR;
  case TENSOR_KV_INDPTR:
  case TENSOR_KV_INDICES:
  case TENSOR_LAST_PAGE_LEN:
    return c->select.form == SELECT_INDPTR;
  case TENSOR_WORKSPACE:
    return false;
  default:
    return (unsigned)name < TENSOR_COUNT;
  }
}

static dtype format_of(const contract *c, format_source source, dtype fixed) {
  switch (source) {
  case FORMAT_QUERY:
    return c->query.dtype;
  case FORMAT_OUTPUT:
    return c->output.dtype;
  case FORMAT_INDEX:
    return c->select.index;
  default:
    return fixed;
  }
}

static bool shape_of(const contract *c, tensor_name name, tensor_shape *out_shape, dtype *out_dtype) {
  if (!contract_has(c, name)) return false;
  switch (name) {
  case TENSOR_K_CACHE:
    *out_shape = (tensor_shape){&c->kv.k, {SIZE_END}};
    *out_dtype = c->kv.k_dtype;
    break;
  case TENSOR_V_CACHE:
    *out_shape = (tensor_shape){&c->kv.v, {SIZE_END}};
    *out_dtype = c->kv.v_dtype;
    break;
  case TENSOR_K_SCALE:
  case TENSOR_V_SCALE:
    *out_shape = scale_shape(name == TENSOR_K_SCALE ? &c->scale.k : &c->scale.v);
    *out_dtype = c->scale.dtype;
    break;
  case TENSOR_PAGE_TABLE:
    *out_shape = page_table_shape(c);
    *out_dtype = c->select.index;
    break;
  default:
    *out_shape = (tensor_shape){0};
    memcpy(out_shape->sizes, plain_tensors[name].sizes, sizeof out_shape->sizes);
    *out_dtype = format_of(c, plain_tensors[name].source, plain_tensors[name].fixed);
  }
  return true;
}

/* Roles, one row a tensor; whether the contract has the tensor at all is shape_of's answer. */
static const struct {
  tensor_role write, decode;
} roles[TENSOR_COUNT] = {
    [TENSOR_Q] = {ROLE_NONE, ROLE_INPUT},          [TENSOR_K_CACHE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_CACHE] = {ROLE_UPDATED, ROLE_INPUT}, [TENSOR_K_SCALE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_SCALE] = {ROLE_UPDATED, ROLE_INPUT}, [TENSOR_PAGE_TABLE] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_LENGTHS] = {ROLE_NONE, ROLE_INPUT},    [TENSOR_KV_INDPTR] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_KV_INDICES] = {ROLE_NONE, ROLE_INPUT}, [TENSOR_LAST_PAGE_LEN] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_SINKS] = {ROLE_NONE, ROLE_INPUT},      [TENSOR_K] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_V] = {ROLE_INPUT, ROLE_NONE},          [TENSOR_SLOT_MAPPING] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_OUT] = {ROLE_NONE, ROLE_OUTPUT},       [TENSOR_LSE] = {ROLE_NONE, ROLE_OUTPUT},
};

tensor_role bind_role(const contract *c, const char *operation, tensor_name name) {
  tensor_shape shape;
  dtype type;
  if ((unsigned)name >= TENSOR_COUNT || !shape_of(c, name, &shape, &type)) return ROLE_NONE;
  if (strcmp(operation, "decode") == 0) return roles[name].decode;
  if (strcmp(operation, "write") != 0) return ROLE_NONE;
  /* Scales that the writer does not work out are given to it. */
  bool scale = name == TENSOR_K_SCALE || name == TENSOR_V_SCALE;
  return scale && !contract_writer_scales(c->scale.granularity) ? ROLE_INPUT : roles[name].write;
}

static int64_t size_value(const contract *c, size_symbol symbol, const int64_t dims[DIM_COUNT]) {
  switch (symbol) {
  case SIZE_SEQS:
    return dims[DIM_SEQS];
  case SIZE_QUERY_ROWS:
    return dims[DIM_SEQS] * dims[DIM_ROWS];
  case SIZE_ITEMS:
  case SIZE_ITEMS_AND_ONE: {
    int64_t lists = c->select.per == PER_KV_HEAD ? dims[DIM_SEQS] * dims[DIM_KV_HEADS] : dims[DIM_SEQS];
    return symbol == SIZE_ITEMS ? lists : lists + 1;
  }
  case SIZE_Q_HEADS:
    return dims[DIM_KV_HEADS] * c->query.heads_per_kv;
  case SIZE_KV_HEADS:
    return dims[DIM_KV_HEADS];
  case SIZE_TABLE_PAGES:
    return dims[DIM_TABLE_PAGES];
  case SIZE_TOKENS:
    return dims[DIM_TOKENS];
  case SIZE_DIM_QK:
    return c->head_dim.qk;
  case SIZE_DIM_V:
    return c->head_dim.v;
  default:
    return 1;
  }
}

/* NULL: a number of the contract. */
static const char *size_text(const contract *c, size_symbol symbol) {
  bool by_head = c->select.per == PER_KV_HEAD;
  switch (symbol) {
  case SIZE_SEQS:
    return rows_are_sequences(c) ? "seqs*rows" : "seqs";
  case SIZE_QUERY_ROWS:
    return "seqs*rows";
  case SIZE_Q_HEADS:
    return "q_heads";
  case SIZE_KV_HEADS:
    return "kv_heads";
  case SIZE_TABLE_PAGES:
    return "table_pages";
  case SIZE_ITEMS:
    return by_head ? "seqs*kv_heads" : rows_are_sequences(c) ? "seqs*rows" : "seqs";
  case SIZE_ITEMS_AND_ONE:
    return by_head ? "seqs*kv_heads + 1" : rows_are_sequences(c) ? "seqs*rows + 1" : "seqs + 1";
  case SIZE_TOKENS:
    return "tokens";
  default:
    return NULL;
  }
}

bool bind_tensor(const contract *c, tensor_name name, const int64_t dims[DIM_COUNT], tensor *out_tensor) {
  tensor_shape shape;
  tensor t = {0};
  if (!shape_of(c, name, &shape, &t.dtype)) return false;
  if (shape.layout) {
    t.rank = layout_shape(shape.layout, dims[DIM_PAGES], dims[DIM_KV_HEADS], t.shape);
  } else {
    for (int i = 0; i < RULE_MAX_RANK && shape.sizes[i] != SIZE_END; i++)
      t.shape[t.rank++] = size_value(c, shape.sizes[i], dims);
  }
  *out_tensor = t;
  return true;
}

void bind_expected_shape(const contract *c, tensor_name name, text *out) {
  tensor_shape shape;
  dtype type;
  if (!shape_of(c, name, &shape, &type)) {
    text_add(out, "[]");
    return;
  }
  text_add(out, "[");
  if (shape.layout) {
    int64_t extents[LAYOUT_MAX_FACTORS];
    int rank = layout_shape(shape.layout, 0, 0, extents);
    for (int i = 0; i < rank; i++) {
      axis a = shape.layout->factors[i].axis;
      if (i > 0) text_add(out, ", ");
      if (a == AXIS_B || a == AXIS_H)
        text_add(out, a == AXIS_B ? "pages" : "kv_heads");
      else
        text_addf(out, "%" PRId64, extents[i]);
    }
  } else {
    const int64_t none[DIM_COUNT] = {0};
    for (int i = 0; i < RULE_MAX_RANK && shape.sizes[i] != SIZE_END; i++) {
      const char *symbol = size_text(c, shape.sizes[i]);
      if (i > 0) text_add(out, ", ");
      if (symbol)
        text_add(out, symbol);
      else
        text_addf(out, "%" PRId64, size_value(c, shape.sizes[i], none));
    }
  }
  text_add(out, "]");
}

int64_t tensor_elements(const tensor *t) {
  int64_t product = 1;
  for (int i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(product, t->shape[i], &product)) return INT64_MAX;
  return product;
}

size_t tensor_bytes(const tensor *t) {
  size_t bytes;
  if (__builtin_mul_overflow((size_t)tensor_elements(t), (size_t)dtype_bytes(t->dtype), &bytes))
    return SIZE_MAX;
  return bytes;
}

/* One binding in progress. */
typedef struct binding {
  const contract *contract;
  const char *operation;
  const tensors *tensors;
  int64_t *dims;
  diags *errors;
  bool good;
} binding;

static void write_shape(const tensor *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(out, "]");
}

/* `reason` is the part of the message that says why, NULL when the shapes speak for themselves. `known`: dims
 * are complete, so the expected shape is also given in numbers. */
static void refuse_shape(binding *b, tensor_name name, bool known, const char *reason) {
  text found, expected, numbers;
  text_init(&found);
  text_init(&expected);
  text_init(&numbers);
  write_shape(&b->tensors->by_name[name], &found);
  bind_expected_shape(b->contract, name, &expected);
  tensor wanted;
  if (known && bind_tensor(b->contract, name, b->dims, &wanted)) {
    write_shape(&wanted, &numbers);
    if (strcmp(text_string(&numbers), text_string(&expected)) == 0) known = false;
  }
  diags_errorf(b->errors, "bind.shape", tensor_name_text(name), "%s has shape %s, expected %s%s%s%s%s",
               tensor_name_text(name), text_string(&found), text_string(&expected), known ? " = " : "",
               known ? text_string(&numbers) : "", reason ? ": " : "", reason ? reason : "");
  text_finish(&found);
  text_finish(&expected);
  text_finish(&numbers);
  b->good = false;
}

/* Which tensors are there that shouldn't be, which are missing, and whether formats fit. */
static void check_presence(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor_role role = bind_role(b->contract, b->operation, name);
    bool present = b->tensors->present[name];
    if (name == TENSOR_WORKSPACE) continue;
    if (present && role == ROLE_NONE) {
      diags_errorf(b->errors, "bind.unneeded", tensor_name_text(name),
                   "%s takes no tensor %s under this contract", b->operation, tensor_name_text(name));
      b->good = false;
    }
    if (!present && (role == ROLE_INPUT || role == ROLE_UPDATED)) {
      text expected;
      tensor_shape shape;
      dtype type = DTYPE_FP32;
      text_init(&expected);
      shape_of(b->contract, name, &shape, &type);
      bind_expected_shape(b->contract, name, &expected);
      diags_errorf(b->errors, "bind.missing", tensor_name_text(name), "%s is missing: %s needs %s %s",
                   tensor_name_text(name), b->operation, dtype_name(type), text_string(&expected));
      text_finish(&expected);
      b->good = false;
    }
    if (present && role != ROLE_NONE) {
      tensor_shape shape;
      dtype type = DTYPE_FP32;
      shape_of(b->contract, name, &shape, &type);
      const tensor *t = &b->tensors->by_name[name];
      if (t->dtype != type) {
        diags_errorf(b->errors, "bind.dtype", tensor_name_text(name), "%s is %s, expected %s",
                     tensor_name_text(name), dtype_name(t->dtype), dtype_name(type));
        b->good = false;
      }
      if (t->data % 16 != 0) {
        diags_errorf(b->errors, "bind.alignment", tensor_name_text(name),
                     "%s lies at an address that is not a multiple of 16 bytes", tensor_name_text(name));
        b->good = false;
      }
    }
  }
}

/* The extent of a tensor of sizes at `position`, if its rank fits. */
static int64_t read_extent(binding *b, tensor_name name, int position) {
  tensor_shape shape;
  dtype type;
  const tensor *t = &b->tensors->by_name[name];
  int rank = 0;
  if (!shape_of(b->contract, name, &shape, &type)) return 0;
  while (rank < RULE_MAX_RANK && shape.sizes[rank] != SIZE_END)
    rank++;
  if (t->rank != rank) {
    refuse_shape(b, name, false, NULL);
    return 0;
  }
  return t->shape[position];
}

/* Pages from the cache's b factor, or from its size when it is flat. */
static int64_t read_pages(binding *b) {
  const tensor *t = &b->tensors->by_name[TENSOR_K_CACHE];
  const layout *l = &b->contract->kv.k;
  if (t->rank == l->count) {
    for (int i = 0; i < l->count; i++)
      if (l->factors[i].axis == AXIS_B) return t->shape[i];
  }
  int64_t per_page;
  bool flat = t->rank == 1 &&
              !__builtin_mul_overflow(layout_inner_elements(l), b->dims[DIM_KV_HEADS], &per_page) &&
              per_page > 0 && t->shape[0] % per_page == 0;
  if (!flat) {
    refuse_shape(b, TENSOR_K_CACHE, false, t->rank == 1 ? "its size is not a whole number of pages" : NULL);
    return 0;
  }
  return t->shape[0] / per_page;
}

/* Sequences, and how long the lists of pages are. */
static void infer_selection(binding *b) {
  const contract *c = b->contract;
  if (c->select.form == SELECT_INDPTR) {
    int64_t items = read_extent(b, TENSOR_LAST_PAGE_LEN, 0), heads = b->dims[DIM_KV_HEADS];
    b->dims[DIM_TABLE_PAGES] = read_extent(b, TENSOR_KV_INDICES, 0);
    b->dims[DIM_SEQS] = c->select.per == PER_KV_HEAD ? items / heads : items;
    if (c->select.per == PER_KV_HEAD && items % heads != 0)
      refuse_shape(b, TENSOR_LAST_PAGE_LEN, false, "kv_heads does not divide it");
  } else {
    b->dims[DIM_SEQS] = read_extent(b, TENSOR_LENGTHS, 0);
    b->dims[DIM_TABLE_PAGES] = read_extent(b, TENSOR_PAGE_TABLE, c->select.per == PER_KV_HEAD ? 2 : 1);
  }
}

static void infer_decode(binding *b) {
  const contract *c = b->contract;
  int64_t *dims = b->dims;
  int64_t query_rows = read_extent(b, TENSOR_Q, 0), q_heads = read_extent(b, TENSOR_Q, 1);
  if (!b->good) return;
  if (q_heads <= 0 || q_heads % c->query.heads_per_kv != 0) {
    char reason[96];
    snprintf(reason, sizeof reason, "q_heads must be a multiple of heads_per_kv = %d", c->query.heads_per_kv);
    refuse_shape(b, TENSOR_Q, false, reason);
    return;
  }
  dims[DIM_KV_HEADS] = q_heads / c->query.heads_per_kv;
  infer_selection(b);
  if (!b->good) return;
  int most = rows_are_sequences(c) ? 1 : c->query.rows;
  dims[DIM_ROWS] = dims[DIM_SEQS] > 0 ? query_rows / dims[DIM_SEQS] : 1;
  if (dims[DIM_ROWS] < 1 || dims[DIM_ROWS] > most || dims[DIM_ROWS] * dims[DIM_SEQS] != query_rows) {
    char reason[160];
    snprintf(reason, sizeof reason, "%s gives %" PRId64 " sequences, and a sequence has 1 to %d query rows",
             c->select.form == SELECT_INDPTR ? "last_page_len" : "lengths", dims[DIM_SEQS], most);
    refuse_shape(b, TENSOR_Q, false, reason);
  }
}

static void infer_write(binding *b) {
  b->dims[DIM_TOKENS] = read_extent(b, TENSOR_K, 0);
  b->dims[DIM_KV_HEADS] = read_extent(b, TENSOR_K, 1);
  if (b->good && b->dims[DIM_KV_HEADS] <= 0) refuse_shape(b, TENSOR_K, false, "kv_heads is 0");
}

static void check_shapes(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor wanted;
    if (!b->tensors->present[name] || !bind_tensor(b->contract, name, b->dims, &wanted)) continue;
    const tensor *t = &b->tensors->by_name[name];
    bool same = t->rank == wanted.rank;
    for (int j = 0; same && j < t->rank; j++)
      same = t->shape[j] == wanted.shape[j];
    tensor_shape shape;
    dtype type;
    shape_of(b->contract, name, &shape, &type);
    bool may_be_flat = shape.layout || shape.sizes[0] == SIZE_ONE;
    if (!same && may_be_flat && t->rank <= 1) same = tensor_elements(t) == tensor_elements(&wanted);
    if (!same) refuse_shape(b, name, true, NULL);
  }
}

/* Sizes travel to kernels as int32. */
static void check_sizes(binding *b) {
  for (int d = 0; d < DIM_K_STRIDE_B; d++) {
    if (b->dims[d] >= 0 && b->dims[d] <= INT32_MAX) continue;
    diags_errorf(b->errors, "bind.size", dim_name((dim)d), "%s is %" PRId64 ", allowed are 0 to %d",
                 dim_name((dim)d), b->dims[d], INT32_MAX);
    b->good = false;
  }
}

static void fill_strides(const contract *c, int64_t dims[DIM_COUNT]) {
  const struct {
    const layout *layout;
    dim b, h;
  } all[] = {
      {&c->kv.k, DIM_K_STRIDE_B, DIM_K_STRIDE_H},
      {&c->kv.v, DIM_V_STRIDE_B, DIM_V_STRIDE_H},
      {&c->scale.k, DIM_K_SCALE_STRIDE_B, DIM_K_SCALE_STRIDE_H},
      {&c->scale.v, DIM_V_SCALE_STRIDE_B, DIM_V_SCALE_STRIDE_H},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i].layout->count > 0)
      layout_packed_strides(all[i].layout, dims[DIM_PAGES], dims[DIM_KV_HEADS], &dims[all[i].b],
                            &dims[all[i].h]);
}

hd_status bind_dims(const contract *c, const char *operation, const tensors *t, int64_t out_dims[DIM_COUNT],
                    diags *errors) {
  int64_t dims[DIM_COUNT] = {[DIM_SPLITS] = 1};
  binding b = {c, operation, t, dims, errors, true};
  bool decode = strcmp(operation, "decode") == 0;
  if (!decode && strcmp(operation, "write") != 0) {
    diags_errorf(errors, "bind.operation", NULL, "unknown operation '%s', expected write or decode",
                 operation);
    return HD_INVALID;
  }
  if (decode && c->select.form == SELECT_BLOCKS) {
    diags_errorf(errors, "bind.select", "select.form",
                 "select.form: blocks can't be bound, only table and indptr");
    return HD_DECLINED;
  }
  check_presence(&b);
  if (b.good) (decode ? infer_decode : infer_write)(&b);
  if (b.good) dims[DIM_PAGES] = read_pages(&b);
  if (b.good) check_shapes(&b);
  if (b.good) check_sizes(&b);
  if (!b.good) return HD_DECLINED;
  fill_strides(c, dims);
  memcpy(out_dims, dims, sizeof dims);
  return HD_OK;
}

int64_t bind_longest(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT]) {
  int64_t longest = 0;
  if (c->select.form == SELECT_INDPTR) {
    const int32_t *first = (const int32_t *)(uintptr_t)host->by_name[TENSOR_KV_INDPTR].data;
    int64_t items = size_value(c, SIZE_ITEMS, dims);
    for (int64_t i = 0; i < items; i++) {
      int64_t tokens = ((int64_t)first[i + 1] - first[i]) * c->kv.page;
      if (tokens > longest) longest = tokens;
    }
    return longest;
  }
  const int32_t *lengths = (const int32_t *)(uintptr_t)host->by_name[TENSOR_LENGTHS].data;
  for (int64_t i = 0; i < dims[DIM_SEQS]; i++)
    if (lengths[i] > longest) longest = lengths[i];
  return longest;
}
