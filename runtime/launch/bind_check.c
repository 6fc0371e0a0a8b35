#include "../../generator/page_parts.h"
#include "bind_parts.h"
#include "strides.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One binding in progress. */
typedef struct binding {
  const contract *contract;
  operation operation;
  const tensors *tensors;
  int64_t *dims;
  diags *errors;
  bool good;
} binding;

static const tensor *tensor_of(const binding *b, tensor_name name) {
  return &b->tensors->by_name[name];
}

static void write_shape(const tensor *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(out, "]");
}

/* "NAME is FOUND, expected ALLOWED: REASON"; `reason` may be NULL. */
static void refuse(binding *b, const char *code, const char *field, const char *found, const char *allowed,
                   const char *reason) {
  diags_refusef(b->errors, code, field, found, allowed, "%s is %s, expected %s%s%s", field, found, allowed,
                reason ? ": " : "", reason ? reason : "");
  b->good = false;
}

/* `reason` is the part of the message that says why, NULL when the shapes speak for themselves. `known`: dims
 * are complete, so the expected shape is also given in numbers. */
static void refuse_shape(binding *b, tensor_name name, bool known, const char *reason) {
  text found, expected, numbers;
  text_init(&found);
  text_init(&expected);
  text_init(&numbers);
  write_shape(tensor_of(b, name), &found);
  bind_expected_shape(b->contract, name, &expected);
  tensor wanted;
  if (known && bind_tensor(b->contract, name, b->dims, &wanted)) {
    write_shape(&wanted, &numbers);
    if (strcmp(text_string(&numbers), text_string(&expected)) != 0)
      text_addf(&expected, " = %s", text_string(&numbers));
  }
  diags_refusef(b->errors, "bind.shape", tensor_name_text(name), text_string(&found), text_string(&expected),
                "%s has shape %s, expected %s%s%s", tensor_name_text(name), text_string(&found),
                text_string(&expected), reason ? ": " : "", reason ? reason : "");
  text_finish(&found);
  text_finish(&expected);
  text_finish(&numbers);
  b->good = false;
}

static bool is_e4m3(dtype d) {
  return d == DTYPE_FP8_E4M3 || d == DTYPE_FP8_E4M3FN || d == DTYPE_FP8_E4M3FNUZ;
}

/* Whether a cache's pages are records of bytes: codes of one byte beside something else. */
static bool is_record(const contract *c, tensor_name name, dtype codes) {
  page_part parts[PAGE_MAX_PARTS];
  if ((name != TENSOR_K_CACHE && name != TENSOR_V_CACHE) || dtype_bytes(codes) != 1) return false;
  return page_parts(c, name == TENSOR_K_CACHE, parts) > 1 || layout_is_padded(bind_layout(c, name));
}

static void check_format(binding *b, tensor_name name, dtype expected) {
  dtype found = tensor_of(b, name)->dtype;
  if (found == expected || (found == DTYPE_UINT8 && is_record(b->contract, name, expected))) return;
  const char *field = tensor_name_text(name);
  if (is_e4m3(found) && is_e4m3(expected))
    refuse(b, "bind.dialect", field, dtype_name(found), dtype_name(expected),
           "the same byte is another number in another dialect");
  else if (found == DTYPE_UINT8 && dtype_bytes(expected) == 1)
    refuse(b, "bind.dtype", field, dtype_name(found), dtype_name(expected),
           "bytes don't say what they are, and only pages of records may be called so");
  else
    refuse(b, "bind.dtype", field, dtype_name(found), dtype_name(expected), NULL);
}

/* Whether the rows of a page table that isn't dense have one stride, and the entries of a row lie together.
 */
static bool table_rows_fit(const tensor *t) {
  if (t->rank < 2 || (t->shape[t->rank - 1] > 1 && tensor_stride(t, t->rank - 1) != 1)) return false;
  int64_t row = tensor_stride(t, t->rank - 2), rows_of_all;
  if (t->rank == 3 && t->shape[1] == 1) row = tensor_stride(t, 0);
  if (row < t->shape[t->rank - 1] || row > INT32_MAX) return false;
  if (t->rank == 2 || t->shape[0] <= 1 || t->shape[1] <= 1) return true;
  return !__builtin_mul_overflow(row, t->shape[1], &rows_of_all) && tensor_stride(t, 0) == rows_of_all;
}

/* Tensors that kernels read and write by their shape alone. Caches and scales: strides_solve. */
static void check_dense(binding *b, tensor_name name) {
  const tensor *t = tensor_of(b, name);
  if (bind_layout(b->contract, name) || tensor_is_dense(t)) return;
  bool table = name == TENSOR_PAGE_TABLE, list = name == TENSOR_BLOCK_LIST || name == TENSOR_TOKEN_LIST;
  if (table && table_rows_fit(t)) return;
  if (list && t->rank > 0 && (t->shape[t->rank - 1] <= 1 || tensor_stride(t, t->rank - 1) == 1)) return;
  text found;
  text_init(&found);
  text_add(&found, "strided ");
  tensor_write_strides(t, &found);
  refuse(b, "bind.strides", tensor_name_text(name), text_string(&found),
         table  ? "entries that lie together in rows of one stride"
         : list ? "entries of a list that lie together"
                : "dense and row-major",
         NULL);
  text_finish(&found);
}

static void check_present(binding *b, tensor_name name, dtype expected) {
  const tensor *t = tensor_of(b, name);
  bool sound = t->rank >= 0 && t->rank <= TENSOR_MAX_RANK;
  for (int i = 0; sound && i < t->rank; i++)
    sound = t->shape[i] >= 0;
  if (!sound) {
    refuse(b, "bind.shape", tensor_name_text(name), "of an impossible shape", "extents of 0 and more", NULL);
    return;
  }
  check_format(b, name, expected);
  check_dense(b, name);
  char allowed[32];
  const int bytes = bind_alignment(name, expected);
  if (t->data % (uint64_t)bytes == 0) return;
  snprintf(allowed, sizeof allowed, "a multiple of %d bytes", bytes);
  diags_refusef(b->errors, "bind.alignment", tensor_name_text(name), "another address", allowed,
                "%s lies at an address that is not %s", tensor_name_text(name), allowed);
  b->good = false;
}

static void refuse_missing(binding *b, tensor_name name, dtype expected_type) {
  text expected;
  text_init(&expected);
  text_addf(&expected, "%s ", dtype_name(expected_type));
  bind_expected_shape(b->contract, name, &expected);
  diags_refusef(b->errors, "bind.missing", tensor_name_text(name), "none", text_string(&expected),
                "%s is missing: %s needs %s", tensor_name_text(name), operation_name(b->operation),
                text_string(&expected));
  text_finish(&expected);
  b->good = false;
}

void bind_refuse_unneeded(const contract *c, operation o, tensor_name name, diags *errors) {
  bool number =
      (name == TENSOR_K_SCALE || name == TENSOR_V_SCALE) && bind_takes_number(c, name == TENSOR_K_SCALE);
  diags_refusef(errors, "bind.unneeded", tensor_name_text(name), "given", number ? "a number" : "none",
                "%s takes no tensor %s under this contract%s", operation_name(o), tensor_name_text(name),
                number ? ", whose scale.source is argument: it is given as a number" : "");
}

/* Scales that come as numbers: there where the contract says so, and nowhere else. */
static void check_numbers(binding *b) {
  const scale_number *const numbers[] = {&b->tensors->k_scale, &b->tensors->v_scale};
  for (int i = 0; i < 2; i++) {
    const char *name = tensor_name_text(i == 0 ? TENSOR_K_SCALE : TENSOR_V_SCALE);
    bool wanted = bind_takes_number(b->contract, i == 0);
    if (numbers[i]->given == wanted) continue;
    if (wanted)
      diags_refusef(b->errors, "bind.missing", name, "none", "a number",
                    "%s is missing: %s needs it as a number, since scale.source is argument", name,
                    operation_name(b->operation));
    else
      diags_refusef(b->errors, "bind.unneeded", name, "a number", "none",
                    "%s takes no number %s under this contract", operation_name(b->operation), name);
    b->good = false;
  }
}

/* Which tensors are there that shouldn't be, which are missing, and what each shows without the others. */
static void check_presence(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor_role role = bind_role(b->contract, b->operation, name);
    bool present = b->tensors->present[name];
    dtype type;
    int rank;
    if (name == TENSOR_WORKSPACE) continue;
    if (present && role == ROLE_NONE) {
      bind_refuse_unneeded(b->contract, b->operation, name, b->errors);
      b->good = false;
    }
    if (role == ROLE_NONE || !bind_form(b->contract, name, &type, &rank)) continue;
    if (present)
      check_present(b, name, type);
    else if (role != ROLE_OUTPUT)
      refuse_missing(b, name, type);
  }
}

/* The extent of a tensor of sizes at `position`, if its rank fits. */
static int64_t read_extent(binding *b, tensor_name name, int position) {
  const tensor *t = tensor_of(b, name);
  dtype type;
  int rank;
  if (!bind_form(b->contract, name, &type, &rank)) return 0;
  if (t->rank == rank) return t->shape[position];
  refuse_shape(b, name, false, NULL);
  return 0;
}

/* Caches and scales, dimension by dimension: what each is. NULL for one that is flat, absent or of another
 * rank. */
static const layout *axes_of(const binding *b, tensor_name name) {
  const tensor *t = tensor_of(b, name);
  if (!b->tensors->present[name]) return NULL;
  const layout *l = bind_layout(b->contract, name), *axes = t->axes ? t->axes : l;
  return l && t->rank == axes->count ? axes : NULL;
}

static int64_t product_of(const tensor *t, const layout *axes, axis a) {
  int64_t product = 1;
  for (int i = 0; i < axes->count; i++)
    if (axes->factors[i].axis == a && __builtin_mul_overflow(product, t->shape[i], &product))
      return INT64_MAX;
  return product;
}

static void check_axis_size(binding *b, tensor_name name, axis a, int64_t expected, const char *code,
                            const char *what) {
  const layout *axes = axes_of(b, name);
  int64_t found = axes ? product_of(tensor_of(b, name), axes, a) : expected;
  char numbers[2][32];
  if (found == expected) return;
  snprintf(numbers[0], sizeof numbers[0], "%" PRId64, found);
  snprintf(numbers[1], sizeof numbers[1], "%" PRId64, expected);
  diags_refusef(b->errors, code, tensor_name_text(name), numbers[0], numbers[1], "%s has %s %s, expected %s",
                tensor_name_text(name), what, numbers[0], numbers[1]);
  b->good = false;
}

/* The sizes of a page and a head, by the caches' own shapes. */
static void check_caches(binding *b) {
  const contract *c = b->contract;
  const int64_t head_dim[] = {contract_coded_k(c), contract_coded_v(c)};
  for (int i = 0; i < 2; i++) {
    tensor_name name = i == 0 ? TENSOR_K_CACHE : TENSOR_V_CACHE;
    const layout *l = bind_layout(c, name);
    if (!l || layout_is_padded(l)) continue; /* of records the whole shape says it */
    check_axis_size(b, name, AXIS_S, c->kv.page, "bind.page", "a page of");
    check_axis_size(b, name, AXIS_D, head_dim[i], "bind.head-dim", "head_dim");
  }
}

/* Pages from the cache's b dimension, or from its size when it is flat. */
static int64_t read_pages(binding *b) {
  const tensor *t = tensor_of(b, TENSOR_K_CACHE);
  const layout *axes = axes_of(b, TENSOR_K_CACHE);
  if (axes) return product_of(t, axes, AXIS_B);
  int64_t per_page = layout_elements(&b->contract->kv.k, 1, b->dims[DIM_KV_HEADS]);
  bool flat =
      t->rank == 1 && b->dims[DIM_KV_HEADS] <= INT32_MAX && per_page > 0 && t->shape[0] % per_page == 0;
  if (flat) return t->shape[0] / per_page;
  refuse_shape(b, TENSOR_K_CACHE, false, t->rank == 1 ? "its size is not a whole number of pages" : NULL);
  return 0;
}

/* Caches that both say how many heads they have say the same. `likely`: what q or k implies; the cache that
 * has it is right. */
static void check_cache_heads(binding *b, int64_t likely) {
  int64_t heads[2];
  const tensor_name caches[] = {TENSOR_K_CACHE, TENSOR_V_CACHE};
  for (int i = 0; i < 2; i++) {
    const layout *axes = axes_of(b, caches[i]);
    if (!axes) return;
    heads[i] = product_of(tensor_of(b, caches[i]), axes, AXIS_H);
  }
  if (heads[0] == heads[1]) return;
  int wrong = heads[1] == likely ? 0 : 1;
  char found[32], allowed[32];
  snprintf(found, sizeof found, "%" PRId64, heads[wrong]);
  snprintf(allowed, sizeof allowed, "%" PRId64, heads[1 - wrong]);
  diags_refusef(b->errors, "bind.kv-heads", tensor_name_text(caches[wrong]), found, allowed,
                "%s has %s kv heads, %s has %s", tensor_name_text(caches[wrong]), found,
                tensor_name_text(caches[1 - wrong]), allowed);
  b->good = false;
}

/* kv heads, as the cache has them, or where it is flat as the query has them. */
static void infer_heads(binding *b, int64_t q_heads) {
  const layout *axes = axes_of(b, TENSOR_K_CACHE);
  int64_t group = b->contract->query.heads_per_kv, heads;
  heads = axes                          ? product_of(tensor_of(b, TENSOR_K_CACHE), axes, AXIS_H)
          : bind_has_heads(b->contract) ? q_heads / group
                                        : 1;
  b->dims[DIM_KV_HEADS] = heads;
  if (heads > 0 && q_heads % heads == 0 && q_heads / heads == group) return;
  char found[96], allowed[32];
  if (heads > 0 && q_heads % heads == 0)
    snprintf(found, sizeof found, "%" PRId64, q_heads / heads);
  else
    snprintf(found, sizeof found, "%" PRId64 " over %" PRId64 " kv heads", q_heads, heads);
  snprintf(allowed, sizeof allowed, "%" PRId64, group);
  diags_refusef(b->errors, "bind.heads-per-kv", "q", found, allowed,
                "q has query heads per kv head %s, expected %s", found, allowed);
  b->good = false;
}

int64_t bind_list_width(const contract *c, int64_t listed) {
  int64_t pages = c->select.form == SELECT_BLOCKS ? c->select.block / c->kv.page : 1, width;
  bool fits = !__builtin_mul_overflow(listed, pages, &width) && width < INT64_MAX;
  return fits ? width + 1 : INT64_MAX;
}

/* Block and token lists: sequences, entries of a list, and of the list of pages made of it. */
static void infer_lists(binding *b) {
  const contract *c = b->contract;
  bool blocks = c->select.form == SELECT_BLOCKS, by_head = c->select.per == PER_KV_HEAD;
  tensor_name list = blocks ? TENSOR_BLOCK_LIST : TENSOR_TOKEN_LIST;
  int last = blocks || by_head ? 2 : 1;
  b->dims[DIM_SEQS] = blocks ? read_extent(b, TENSOR_LENGTHS, 0) : read_extent(b, list, last - 1);
  b->dims[DIM_LISTED] = read_extent(b, list, last);
  if (blocks) {
    b->dims[DIM_TABLE_ROWS] = read_extent(b, TENSOR_PAGE_TABLE, 0);
    b->dims[DIM_TABLE_PAGES] = read_extent(b, TENSOR_PAGE_TABLE, 1);
  }
  b->dims[DIM_LIST_WIDTH] = bind_list_width(c, b->dims[DIM_LISTED]); /* too large: bind.size */
}

/* Sequences, and how long the lists of pages are. */
static void infer_selection(binding *b) {
  const contract *c = b->contract;
  if (contract_makes_lists(c)) {
    infer_lists(b);
  } else if (c->select.form == SELECT_INDPTR) {
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

static void infer_rows(binding *b, int64_t query_rows) {
  const contract *c = b->contract;
  int64_t seqs = b->dims[DIM_SEQS], rows = seqs > 0 ? query_rows / seqs : 1;
  int most = contract_most_rows(c);
  b->dims[DIM_ROWS] = rows;
  bool whole = rows >= 1 && query_rows % (seqs > 0 ? seqs : 1) == 0 && (seqs > 0 || query_rows == 0);
  if (whole && rows <= most) return;
  char found[96], allowed[32];
  if (whole)
    snprintf(found, sizeof found, "%" PRId64, rows);
  else
    snprintf(found, sizeof found, "%" PRId64 " over %" PRId64 " sequences", query_rows, seqs);
  snprintf(allowed, sizeof allowed, most > 1 ? "1 to %d" : "%d", most);
  diags_refusef(b->errors, "bind.rows", "q", found, allowed, "q has query rows per sequence %s, expected %s",
                found, allowed);
  b->good = false;
}

static void infer_decode(binding *b) {
  int64_t query_rows = read_extent(b, TENSOR_Q, 0);
  int64_t q_heads = b->good ? read_extent(b, TENSOR_Q, 1) : 0;
  if (b->good) check_cache_heads(b, q_heads / b->contract->query.heads_per_kv);
  if (b->good) infer_heads(b, q_heads);
  if (b->good) infer_selection(b);
  if (b->good) infer_rows(b, query_rows);
}

static void infer_write(binding *b) {
  b->dims[DIM_TOKENS] = read_extent(b, TENSOR_K, 0);
  if (b->good) b->dims[DIM_KV_HEADS] = read_extent(b, TENSOR_K, 1);
  if (b->good) check_cache_heads(b, b->dims[DIM_KV_HEADS]);
  if (b->good && b->dims[DIM_KV_HEADS] <= 0) refuse_shape(b, TENSOR_K, false, "kv_heads is 0");
  if (b->good && !bind_has_heads(b->contract) && b->dims[DIM_KV_HEADS] != 1)
    refuse_shape(b, TENSOR_K, false, "a cache without h has one kv head");
}

/* Sizes travel to kernels as int32. */
static void check_sizes(binding *b) {
  for (int d = 0; d < DIM_K_STRIDE_B; d++) {
    if (b->dims[d] >= 0 && b->dims[d] <= INT32_MAX) continue;
    char found[32];
    snprintf(found, sizeof found, "%" PRId64, b->dims[d]);
    diags_refusef(b->errors, "bind.size", dim_name((dim)d), found, "0 to 2147483647",
                  "%s is %s, allowed are 0 to %d", dim_name((dim)d), found, INT32_MAX);
    b->good = false;
  }
}

/* Kernels count tokens in int32, up to the end of a sequence's last tile. */
enum { LARGEST_TILE = 4096, MOST_TOKENS = INT32_MAX - LARGEST_TILE + 1 };

/* Lists of pages, and of tokens, that could name more. */
static void check_tokens(binding *b) {
  const contract *c = b->contract;
  bool tokens = c->select.form == SELECT_TOKENS;
  tensor_name list = tokens                            ? TENSOR_TOKEN_LIST
                     : c->select.form == SELECT_INDPTR ? TENSOR_KV_INDICES
                                                       : TENSOR_PAGE_TABLE;
  int64_t room = tokens ? b->dims[DIM_LISTED] : b->dims[DIM_TABLE_PAGES] * c->kv.page;
  if (!b->good || room <= MOST_TOKENS) return;
  char found[32], allowed[32];
  snprintf(found, sizeof found, "%" PRId64, room);
  snprintf(allowed, sizeof allowed, "up to %d tokens", MOST_TOKENS);
  diags_refusef(b->errors, "bind.size", tensor_name_text(list), found, allowed,
                "%s has room for %s tokens, expected %s", tensor_name_text(list), found, allowed);
  b->good = false;
}

/* A permuted view's extents; its axes have to be the layout's, each whole. Dimensions of one index may come
 * on top. */
static bool view_fits(const binding *b, const tensor *t, const layout *l) {
  const layout *axes = t->axes;
  unsigned wanted = 0, missing = 0;
  for (int i = 0; i < l->count; i++) {
    wanted |= 1u << l->factors[i].axis;
    if (l->factors[i].extent != 1) missing |= 1u << l->factors[i].axis;
  }
  for (axis a = AXIS_S; a <= AXIS_D; a++)
    if (axes->size[a] != l->size[a] && (l->size[a] != 0 || axes->size[a] > 1)) return false;
  if (t->rank != axes->count) return false;
  for (int i = 0; i < axes->count; i++) {
    const layout_factor *f = &axes->factors[i];
    bool known = wanted & 1u << f->axis;
    int64_t wanted_extent = f->axis == AXIS_B   ? b->dims[DIM_PAGES]
                            : f->axis == AXIS_H ? b->dims[DIM_KV_HEADS]
                                                : f->extent;
    if (t->shape[i] != (known ? wanted_extent : 1)) return false;
    missing &= ~(1u << f->axis);
  }
  return missing == 0;
}

static bool shape_fits(const binding *b, tensor_name name, const tensor *wanted) {
  const tensor *t = tensor_of(b, name);
  const layout *l = bind_layout(b->contract, name);
  if (l && t->axes) return view_fits(b, t, l);
  if (l && t->rank == l->count && layout_is_padded(l)) {
    for (int i = 0; i < l->count; i++) { /* folded: extents without padding */
      const layout_factor *f = &l->factors[i];
      int64_t wanted_extent = f->axis == AXIS_B   ? b->dims[DIM_PAGES]
                              : f->axis == AXIS_H ? b->dims[DIM_KV_HEADS]
                                                  : f->extent;
      if (t->shape[i] != wanted_extent) return false;
    }
    return true;
  }
  if (t->rank == wanted->rank && memcmp(t->shape, wanted->shape, (size_t)t->rank * sizeof t->shape[0]) == 0)
    return true;
  bool may_be_flat = l || name == TENSOR_K_SCALE || name == TENSOR_V_SCALE;
  return may_be_flat && t->rank <= 1 && tensor_elements(t) == tensor_elements(wanted);
}

static void check_shapes(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor wanted;
    if (!b->tensors->present[name] || !bind_tensor(b->contract, name, b->dims, &wanted)) continue;
    if (shape_fits(b, name, &wanted)) continue;
    bool scale = (name == TENSOR_K_SCALE || name == TENSOR_V_SCALE) && bind_layout(b->contract, name);
    refuse_shape(b, name, true,
                 scale ? "scales lie by page and slot of the cache, not by sequence and token" : NULL);
  }
}

/* Lists of a kv head and row may lie anywhere: [H, T, listed] is often cut out of a longer buffer. */
static void solve_list_strides(binding *b) {
  const tensor_name names[] = {TENSOR_BLOCK_LIST, TENSOR_TOKEN_LIST};
  for (int i = 0; i < 2; i++) {
    if (bind_role(b->contract, b->operation, names[i]) == ROLE_NONE) continue;
    const tensor *t = tensor_of(b, names[i]);
    b->dims[DIM_LISTED_STRIDE_ROW] = tensor_stride(t, t->rank - 2);
    b->dims[DIM_LISTED_STRIDE_H] = t->rank == 3 ? tensor_stride(t, 0) : 0;
  }
}

static void refuse_stride(binding *b, const char *code, tensor_name name, bool of_pages, int64_t stride,
                          const char *allowed) {
  char found[32];
  snprintf(found, sizeof found, "%" PRId64, stride);
  diags_refusef(b->errors, code, tensor_name_text(name), found, allowed,
                "%s has a %s stride of %s elements, expected %s", tensor_name_text(name),
                of_pages ? "page" : "head", found, allowed);
  b->good = false;
}

/* Pages that hold more than codes: what lies in them fits between strides `cache` of pages and heads, and has
 * strides of its own elements. */
static void inherit_page_strides(binding *b, bool is_k, const dim cache[2], const dim scale[2]) {
  const contract *c = b->contract;
  tensor_name name = is_k ? TENSOR_K_CACHE : TENSOR_V_CACHE;
  page_part parts[PAGE_MAX_PARTS];
  int count = page_parts(c, is_k, parts);
  int64_t packed[2];
  char allowed[96];
  layout_packed_strides(parts[0].layout, b->dims[DIM_PAGES], b->dims[DIM_KV_HEADS], &packed[0], &packed[1]);
  for (int d = 0; d < 2; d++) {
    int64_t stride = b->dims[cache[d]], inherited;
    bool steps = b->dims[d == 0 ? DIM_PAGES : DIM_KV_HEADS] > 1;
    if (count > 1 && steps && stride < packed[d]) {
      snprintf(allowed, sizeof allowed, "%" PRId64 " or more: all that a page has", packed[d]);
      refuse_stride(b, "bind.strides", name, d == 0, stride, allowed);
    }
    for (int i = 1; i < count; i++) {
      bool whole = page_part_stride(&parts[0], &parts[i], stride, &inherited);
      if (whole && parts[i].layout != &c->kv.tail.layout) b->dims[scale[d]] = inherited;
      if (whole) continue;
      snprintf(allowed, sizeof allowed, "whole elements of %d bytes: %s steps with it", parts[i].bytes,
               parts[i].field);
      refuse_stride(b, "bind.stride-alignment", name, d == 0, stride, allowed);
    }
  }
}

/* Strides of what has no tensor of its own. */
static void inherit_strides(binding *b) {
  static const dim k[2] = {DIM_K_STRIDE_B, DIM_K_STRIDE_H}, v[2] = {DIM_V_STRIDE_B, DIM_V_STRIDE_H};
  static const dim k_scale[2] = {DIM_K_SCALE_STRIDE_B, DIM_K_SCALE_STRIDE_H},
                   v_scale[2] = {DIM_V_SCALE_STRIDE_B, DIM_V_SCALE_STRIDE_H};
  bool shared = b->contract->kv.v_in_k;
  inherit_page_strides(b, true, k, k_scale);
  if (!shared) inherit_page_strides(b, false, v, v_scale);
  for (int d = 0; d < 2 && shared; d++) {
    b->dims[v[d]] = b->dims[k[d]];
    b->dims[v_scale[d]] = b->dims[k_scale[d]];
  }
}

static void solve_strides(binding *b) {
  const struct {
    tensor_name name;
    dim b, h;
  } paged[] = {
      {TENSOR_K_CACHE, DIM_K_STRIDE_B, DIM_K_STRIDE_H},
      {TENSOR_V_CACHE, DIM_V_STRIDE_B, DIM_V_STRIDE_H},
      {TENSOR_K_SCALE, DIM_K_SCALE_STRIDE_B, DIM_K_SCALE_STRIDE_H},
      {TENSOR_V_SCALE, DIM_V_SCALE_STRIDE_B, DIM_V_SCALE_STRIDE_H},
  };
  for (size_t i = 0; i < sizeof paged / sizeof paged[0]; i++) {
    tensor_name name = paged[i].name;
    const layout *l = bind_layout(b->contract, name);
    if (!l) continue;
    const strides_question q = {
        .name = tensor_name_text(name),
        .tensor = tensor_of(b, name),
        .layout = l,
        .pages = b->dims[DIM_PAGES],
        .heads = b->dims[DIM_KV_HEADS],
        .packed = b->contract->kv.packed,
        .updated = bind_role(b->contract, b->operation, name) == ROLE_UPDATED,
    };
    if (!strides_solve(&q, &b->dims[paged[i].b], &b->dims[paged[i].h], b->errors)) b->good = false;
  }
  solve_list_strides(b);
  inherit_strides(b);
  /* Rows of a page table that is cut out of a wider one. */
  const tensor *table = tensor_of(b, TENSOR_PAGE_TABLE);
  bool decode = bind_role(b->contract, b->operation, TENSOR_PAGE_TABLE) != ROLE_NONE;
  if (!decode || tensor_is_dense(table)) return;
  bool by_sequence = table->rank == 3 && table->shape[1] == 1;
  b->dims[DIM_TABLE_PAGES] = tensor_stride(table, by_sequence ? 0 : table->rank - 2);
}

static const tensor_name paged_tensors[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { PAGED_COUNT = sizeof paged_tensors / sizeof paged_tensors[0] };

/* Whether some tensor may be bound in another shape than its layout's. */
static bool needs_folding(const contract *c) {
  bool padded = !bind_has_heads(c);
  for (int i = 0; i < PAGED_COUNT; i++) {
    const layout *l = bind_layout(c, paged_tensors[i]);
    padded |= l && layout_is_padded(l);
  }
  return padded;
}

static const tensors *fold_all(const contract *c, const tensors *t, tensors *out) {
  *out = *t;
  for (int i = 0; i < PAGED_COUNT; i++) {
    const layout *l = bind_layout(c, paged_tensors[i]);
    if (l && t->present[paged_tensors[i]])
      out->by_name[paged_tensors[i]] = bind_fold(l, bind_has_heads(c), &t->by_name[paged_tensors[i]]);
  }
  return out;
}

hd_status bind_dims(const contract *c, operation o, const tensors *t, int64_t out_dims[DIM_COUNT],
                    diags *errors) {
  int64_t dims[DIM_COUNT] = {[DIM_SPLITS] = 1};
  tensors folded;
  binding b = {c, o, t, dims, errors, true};
  check_presence(&b);
  check_numbers(&b);
  if (needs_folding(c)) b.tensors = fold_all(c, t, &folded);
  check_caches(&b);
  if (b.good) (operation_attends(o) ? infer_decode : infer_write)(&b);
  if (b.good) dims[DIM_PAGES] = read_pages(&b);
  if (b.good) check_sizes(&b);
  if (b.good) check_tokens(&b);
  if (b.good) check_shapes(&b);
  if (b.good) solve_strides(&b);
  if (!b.good) return HD_DECLINED;
  memcpy(out_dims, dims, sizeof dims);
  return HD_OK;
}
