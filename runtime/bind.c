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
  SIZE_ROWS,
  SIZE_Q_HEADS,
  SIZE_KV_HEADS,
  SIZE_TABLE_PAGES,
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

static bool has_scales(const contract *c) {
  return c->scale.granularity != SCALE_NONE;
}

static tensor_shape page_table_shape(const contract *c) {
  switch (c->select.per) {
  case PER_KV_HEAD:
    return (tensor_shape){NULL, {SIZE_SEQS, SIZE_KV_HEADS, SIZE_TABLE_PAGES}};
  case PER_ROW:
    return (tensor_shape){NULL, {SIZE_SEQS, SIZE_ROWS, SIZE_TABLE_PAGES}};
  default:
    return (tensor_shape){NULL, {SIZE_SEQS, SIZE_TABLE_PAGES}};
  }
}

static tensor_shape scale_shape(const layout *l) {
  return l->count > 0 ? (tensor_shape){l, {SIZE_END}} : (tensor_shape){NULL, {SIZE_ONE}};
}

static bool shape_of(const contract *c, tensor_name name, tensor_shape *out_shape, dtype *out_dtype) {
  tensor_shape shape;
  dtype type;
  switch (name) {
  case TENSOR_Q:
    shape = (tensor_shape){NULL, {SIZE_QUERY_ROWS, SIZE_Q_HEADS, SIZE_DIM_QK}};
    type = c->query.dtype;
    break;
  case TENSOR_K:
    shape = (tensor_shape){NULL, {SIZE_TOKENS, SIZE_KV_HEADS, SIZE_DIM_QK}};
    type = c->query.dtype;
    break;
  case TENSOR_V:
    shape = (tensor_shape){NULL, {SIZE_TOKENS, SIZE_KV_HEADS, SIZE_DIM_V}};
    type = c->query.dtype;
    break;
  case TENSOR_K_CACHE:
    shape = (tensor_shape){&c->kv.k, {SIZE_END}};
    type = c->kv.k_dtype;
    break;
  case TENSOR_V_CACHE:
    shape = (tensor_shape){&c->kv.v, {SIZE_END}};
    type = c->kv.v_dtype;
    break;
  case TENSOR_K_SCALE:
    if (!has_scales(c)) return false;
    shape = scale_shape(&c->scale.k);
    type = c->scale.dtype;
    break;
  case TENSOR_V_SCALE:
    if (!has_scales(c)) return false;
    shape = scale_shape(&c->scale.v);
    type = c->scale.dtype;
    break;
  case TENSOR_PAGE_TABLE:
    shape = page_table_shape(c);
    type = c->select.index;
    break;
  case TENSOR_LENGTHS:
    shape = (tensor_shape){NULL, {SIZE_SEQS}};
    type = DTYPE_INT32;
    break;
  case TENSOR_SLOT_MAPPING:
    shape = (tensor_shape){NULL, {SIZE_TOKENS}};
    type = DTYPE_INT64;
    break;
  case TENSOR_SINKS:
    if (!c->mask.sinks) return false;
    shape = (tensor_shape){NULL, {SIZE_Q_HEADS}};
    type = DTYPE_FP32;
    break;
  case TENSOR_OUT:
    shape = (tensor_shape){NULL, {SIZE_QUERY_ROWS, SIZE_Q_HEADS, SIZE_DIM_V}};
    type = c->output.dtype;
    break;
  case TENSOR_LSE:
    if (!c->output.lse) return false;
    shape = (tensor_shape){NULL, {SIZE_QUERY_ROWS, SIZE_Q_HEADS}};
    type = DTYPE_FP32;
    break;
  default:
    return false;
  }
  *out_shape = shape;
  *out_dtype = type;
  return true;
}

/* Roles, one row a tensor; whether the contract has the tensor at all is shape_of's answer. */
static const struct {
  tensor_role write, decode;
} roles[TENSOR_COUNT] = {
    [TENSOR_Q] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_K_CACHE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_CACHE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_K_SCALE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_V_SCALE] = {ROLE_UPDATED, ROLE_INPUT},
    [TENSOR_PAGE_TABLE] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_LENGTHS] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_SINKS] = {ROLE_NONE, ROLE_INPUT},
    [TENSOR_K] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_V] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_SLOT_MAPPING] = {ROLE_INPUT, ROLE_NONE},
    [TENSOR_OUT] = {ROLE_NONE, ROLE_OUTPUT},
    [TENSOR_LSE] = {ROLE_NONE, ROLE_OUTPUT},
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
  case SIZE_ROWS:
    return dims[DIM_ROWS];
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

static const char *size_text(size_symbol symbol) {
  static const char *const names[] = {
      [SIZE_SEQS] = "seqs",         [SIZE_QUERY_ROWS] = "seqs*rows",
      [SIZE_ROWS] = "rows",         [SIZE_Q_HEADS] = "q_heads",
      [SIZE_KV_HEADS] = "kv_heads", [SIZE_TABLE_PAGES] = "table_pages",
      [SIZE_TOKENS] = "tokens",     [SIZE_DIM_V] = NULL,
  };
  return names[symbol];
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
      const char *symbol = size_text(shape.sizes[i]);
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

static void infer_decode(binding *b) {
  const contract *c = b->contract;
  int64_t *dims = b->dims;
  int64_t query_rows = read_extent(b, TENSOR_Q, 0), q_heads = read_extent(b, TENSOR_Q, 1);
  dims[DIM_SEQS] = read_extent(b, TENSOR_LENGTHS, 0);
  tensor_shape table = page_table_shape(c);
  dims[DIM_TABLE_PAGES] = read_extent(b, TENSOR_PAGE_TABLE, table.sizes[2] == SIZE_END ? 1 : 2);
  if (!b->good) return;
  if (q_heads <= 0 || q_heads % c->query.heads_per_kv != 0) {
    char reason[96];
    snprintf(reason, sizeof reason, "q_heads must be a multiple of heads_per_kv = %d", c->query.heads_per_kv);
    refuse_shape(b, TENSOR_Q, false, reason);
    return;
  }
  dims[DIM_KV_HEADS] = q_heads / c->query.heads_per_kv;
  dims[DIM_ROWS] = dims[DIM_SEQS] > 0 ? query_rows / dims[DIM_SEQS] : 1;
  bool rows_fit =
      dims[DIM_ROWS] >= 1 && dims[DIM_ROWS] <= c->query.rows && dims[DIM_ROWS] * dims[DIM_SEQS] == query_rows;
  if (!rows_fit) {
    char reason[160];
    snprintf(reason, sizeof reason,
             "lengths gives %" PRId64 " sequences, and a sequence has 1 to %d query rows", dims[DIM_SEQS],
             c->query.rows);
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
  if (decode && c->select.form != SELECT_TABLE) {
    diags_errorf(errors, "bind.select", "select.form", "only select.form: table can be bound");
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
