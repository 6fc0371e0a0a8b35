#include "bind_parts.h"
#include "strides.h"
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
  SIZE_TABLE_ROWS,
  SIZE_LISTED, /* entries of a block or token list */
  SIZE_DIM_QK,
  SIZE_DIM_V,
} size_symbol;

enum { RULE_MAX_RANK = 4 };

/* A tensor's rank and extents: from a layout of the contract, or a list of sizes. */
typedef struct tensor_shape {
  const layout *layout; /* NULL: sizes */
  size_symbol sizes[RULE_MAX_RANK];
} tensor_shape;

/* Whether query rows look up rows of a page table that they may share. */
static bool rows_are_mapped(const contract *c) {
  return c->select.form == SELECT_BLOCKS && c->select.per == PER_ROW;
}

bool bind_has_heads(const contract *c) {
  return layout_has_axis(&c->kv.k, AXIS_H);
}

static tensor_shape page_table_shape(const contract *c) {
  if (rows_are_mapped(c)) return (tensor_shape){NULL, {SIZE_TABLE_ROWS, SIZE_TABLE_PAGES}};
  return c->select.per == PER_KV_HEAD ? (tensor_shape){NULL, {SIZE_SEQS, SIZE_KV_HEADS, SIZE_TABLE_PAGES}}
                                      : (tensor_shape){NULL, {SIZE_SEQS, SIZE_TABLE_PAGES}};
}

static tensor_shape token_list_shape(const contract *c) {
  return c->select.per == PER_KV_HEAD ? (tensor_shape){NULL, {SIZE_KV_HEADS, SIZE_QUERY_ROWS, SIZE_LISTED}}
                                      : (tensor_shape){NULL, {SIZE_QUERY_ROWS, SIZE_LISTED}};
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
    [TENSOR_BLOCK_LIST] = {FORMAT_FIXED, DTYPE_INT32, {SIZE_KV_HEADS, SIZE_QUERY_ROWS, SIZE_LISTED}},
    [TENSOR_ROW_SEQUENCES] = {FORMAT_FIXED, DTYPE_INT32, {SIZE_QUERY_ROWS}},
    [TENSOR_SLOT_MAPPING] = {FORMAT_FIXED, DTYPE_INT64, {SIZE_TOKENS}},
    [TENSOR_SINKS] = {FORMAT_FIXED, DTYPE_FP32, {SIZE_Q_HEADS}},
    [TENSOR_OUT] = {FORMAT_OUTPUT, 0, {SIZE_QUERY_ROWS, SIZE_Q_HEADS, SIZE_DIM_V}},
    [TENSOR_LSE] = {FORMAT_FIXED, DTYPE_FP32, {SIZE_QUERY_ROWS, SIZE_Q_HEADS}},
};

/* Whether the contract has the tensor at all. */
static bool contract_has(const contract *c, tensor_name name) {
  switch (name) {
  case TENSOR_V:
  case TENSOR_V_CACHE:
    return !c->kv.v_in_k;
  case TENSOR_K_SCALE:
    return contract_scale_arrays(c);
  case TENSOR_V_SCALE:
    return contract_scale_arrays(c) && !c->kv.v_in_k;
  case TENSOR_SINKS:
    return c->mask.sinks;
  case TENSOR_LSE:
    return c->output.lse;
  case TENSOR_PAGE_TABLE:
  case TENSOR_LENGTHS:
    return c->select.form == SELECT_TABLE || c->select.form == SELECT_BLOCKS;
  case TENSOR_BLOCK_LIST:
    return c->select.form == SELECT_BLOCKS;
  case TENSOR_TOKEN_LIST:
    return c->select.form == SELECT_TOKENS;
  case TENSOR_ROW_SEQUENCES:
    return rows_are_mapped(c);
  case TENSOR_KV_INDPTR:
  case TENSOR_KV_INDICES:
  case TENSOR_LAST_PAGE_LEN:
    return c->select.form == SELECT_INDPTR;
  case TENSOR_LISTS:
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
  case TENSOR_TOKEN_LIST:
    *out_shape = token_list_shape(c);
    *out_dtype = c->select.index;
    break;
  default:
    *out_shape = (tensor_shape){0};
    memcpy(out_shape->sizes, plain_tensors[name].sizes, sizeof out_shape->sizes);
    *out_dtype = format_of(c, plain_tensors[name].source, plain_tensors[name].fixed);
  }
  return true;
}

/* Roles, one row a tensor, in the order of the operations (write, decode); whether the contract has the
 * tensor at all is shape_of's answer. */
static const tensor_role roles[TENSOR_COUNT][OPERATION_COUNT] = {
    [TENSOR_Q] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_K_CACHE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_CACHE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_K_SCALE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_SCALE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_PAGE_TABLE] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_LENGTHS] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_KV_INDPTR] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_KV_INDICES] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_LAST_PAGE_LEN] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_BLOCK_LIST] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_TOKEN_LIST] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_ROW_SEQUENCES] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_SINKS] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_K] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_V] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_SLOT_MAPPING] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_OUT] = {ROLE_NONE, ROLE_OUTPUT},
    [TENSOR_LSE] = {ROLE_NONE, ROLE_OUTPUT},
};

tensor_role bind_role(const contract *c, operation o, tensor_name name) {
  tensor_shape shape;
  dtype type;
  if ((unsigned)name >= TENSOR_COUNT || !shape_of(c, name, &shape, &type)) return ROLE_NONE;
  if ((unsigned)o >= OPERATION_COUNT) return ROLE_NONE;
  /* Scales that the writer does not work out are given to it. */
  bool scale = o == OPERATION_WRITE && (name == TENSOR_K_SCALE || name == TENSOR_V_SCALE);
  return scale && !contract_writer_scales(c->scale.granularity) ? ROLE_INPUT : roles[name][o];
}

bool bind_takes_number(const contract *c, bool is_k) {
  return c->scale.argument && (is_k || !c->kv.v_in_k);
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
  case SIZE_TABLE_ROWS:
    return dims[DIM_TABLE_ROWS];
  case SIZE_LISTED:
    return dims[DIM_LISTED];
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
    return contract_rows_are_sequences(c) ? "seqs*rows" : "seqs";
  case SIZE_QUERY_ROWS:
    return "seqs*rows";
  case SIZE_Q_HEADS:
    return "q_heads";
  case SIZE_KV_HEADS:
    return "kv_heads";
  case SIZE_TABLE_PAGES:
    return "table_pages";
  case SIZE_ITEMS:
    return by_head ? "seqs*kv_heads" : contract_rows_are_sequences(c) ? "seqs*rows" : "seqs";
  case SIZE_ITEMS_AND_ONE:
    return by_head ? "seqs*kv_heads + 1" : contract_rows_are_sequences(c) ? "seqs*rows + 1" : "seqs + 1";
  case SIZE_TOKENS:
    return "tokens";
  case SIZE_TABLE_ROWS:
    return "table_rows";
  case SIZE_LISTED:
    return "listed";
  default:
    return NULL;
  }
}

const layout *bind_layout(const contract *c, tensor_name name) {
  const layout *l;
  switch (name) {
  case TENSOR_K_CACHE:
    l = &c->kv.k;
    break;
  case TENSOR_V_CACHE:
    l = &c->kv.v;
    break;
  case TENSOR_K_SCALE:
    l = &c->scale.k;
    break;
  case TENSOR_V_SCALE:
    l = &c->scale.v;
    break;
  default:
    return NULL;
  }
  return l->count > 0 && contract_has(c, name) ? l : NULL;
}

bool bind_form(const contract *c, tensor_name name, dtype *out_dtype, int *out_rank) {
  tensor_shape shape;
  if (!shape_of(c, name, &shape, out_dtype)) return false;
  int rank = 0;
  while (rank < RULE_MAX_RANK && shape.sizes[rank] != SIZE_END)
    rank++;
  *out_rank = shape.layout ? shape.layout->count : rank;
  return true;
}

bool bind_tensor(const contract *c, tensor_name name, const int64_t dims[DIM_COUNT], tensor *out_tensor) {
  tensor_shape shape;
  dtype type;
  if (!shape_of(c, name, &shape, &type)) return false;
  *out_tensor = (tensor){.dtype = type};
  if (shape.layout) {
    out_tensor->rank = layout_shape(shape.layout, dims[DIM_PAGES], dims[DIM_KV_HEADS], out_tensor->shape);
  } else {
    for (int i = 0; i < RULE_MAX_RANK && shape.sizes[i] != SIZE_END; i++)
      out_tensor->shape[out_tensor->rank++] = size_value(c, shape.sizes[i], dims);
  }
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
      axis a = shape.layout->factors[i].axis; /* padding stands in the last dimension where it has no other */
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

int bind_alignment(tensor_name name, dtype format) {
  static const bool one_at_a_time[TENSOR_COUNT] = {
      [TENSOR_PAGE_TABLE] = true,    [TENSOR_LENGTHS] = true,       [TENSOR_KV_INDPTR] = true,
      [TENSOR_KV_INDICES] = true,    [TENSOR_LAST_PAGE_LEN] = true, [TENSOR_BLOCK_LIST] = true,
      [TENSOR_ROW_SEQUENCES] = true, [TENSOR_TOKEN_LIST] = true,    [TENSOR_SLOT_MAPPING] = true,
      [TENSOR_SINKS] = true,         [TENSOR_LSE] = true,
  };
  return one_at_a_time[name] ? dtype_bytes(format) : LOAD_BYTES;
}

/* Whatever the other dimensions are, and however far their product overflows. */
static bool is_empty(const tensor *t) {
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] == 0) return true;
  return false;
}

int64_t tensor_elements(const tensor *t) {
  int64_t product = is_empty(t) ? 0 : 1;
  for (int i = 0; i < t->rank && product; i++)
    if (__builtin_mul_overflow(product, t->shape[i], &product)) return INT64_MAX;
  return product;
}

/* From the first element to the last, for a strided tensor. */
static int64_t spanned_elements(const tensor *t) {
  int64_t span = 1, steps;
  if (is_empty(t)) return 0;
  for (int i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(tensor_stride(t, i), t->shape[i] - 1, &steps) ||
        __builtin_add_overflow(span, steps, &span))
      return INT64_MAX;
  return span;
}

size_t tensor_bytes(const tensor *t) {
  size_t bytes, elements = (size_t)(t->strided ? spanned_elements(t) : tensor_elements(t));
  if (__builtin_mul_overflow(elements, (size_t)dtype_bytes(t->dtype), &bytes)) return SIZE_MAX;
  return bytes;
}

int64_t bind_listed_tokens(const contract *c, const int64_t dims[DIM_COUNT]) {
  if (!contract_makes_lists(c)) return INT64_MAX;
  return dims[DIM_LISTED] * (c->select.form == SELECT_BLOCKS ? c->select.block : 1);
}

int64_t bind_capacity(const contract *c, const tensors *t, const int64_t dims[DIM_COUNT]) {
  int64_t most = bind_listed_tokens(c, dims), tokens = INT32_MAX;
  if (c->select.form != SELECT_TOKENS) {
    const tensor *list = &t->by_name[c->select.form == SELECT_INDPTR ? TENSOR_KV_INDICES : TENSOR_PAGE_TABLE];
    tokens = list->rank > 0 ? list->shape[list->rank - 1] * c->kv.page : 0; /* fits 31 bits */
  }
  return tokens < most ? tokens : most;
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
  const int64_t most = bind_listed_tokens(c, dims);
  if (c->select.form == SELECT_TOKENS) return most;
  const int32_t *lengths = (const int32_t *)(uintptr_t)host->by_name[TENSOR_LENGTHS].data;
  for (int64_t i = 0; i < dims[DIM_SEQS]; i++)
    if (lengths[i] > longest) longest = lengths[i];
  return longest < most ? longest : most;
}
