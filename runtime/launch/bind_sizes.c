/* Sizes from the shapes of tensors. */
#include "bind_parts.h"

#include <inttypes.h>
#include <stdio.h>

/* The extent of a tensor of sizes at `position`, if its rank fits. */
static int64_t read_extent(binding *b, tensor_name name, int position) {
  const tensor *t = binding_tensor(b, name);
  dtype type;
  int rank;
  if (!bind_form(b->contract, name, &type, &rank)) return 0;
  if (t->rank == rank) return t->shape[position];
  binding_refuse_shape(b, name, false, NULL);
  return 0;
}

/* Caches and scales, dimension by dimension: what each is. NULL for one that is flat, absent or of another
 * rank. */
static const layout *axes_of(const binding *b, tensor_name name) {
  const tensor *t = binding_tensor(b, name);
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
  int64_t found = axes ? product_of(binding_tensor(b, name), axes, a) : expected;
  char numbers[2][32];
  if (found == expected) return;
  snprintf(numbers[0], sizeof numbers[0], "%" PRId64, found);
  snprintf(numbers[1], sizeof numbers[1], "%" PRId64, expected);
  diags_refusef(b->errors, code, tensor_name_text(name), numbers[0], numbers[1], "%s has %s %s, expected %s",
                tensor_name_text(name), what, numbers[0], numbers[1]);
  b->good = false;
}

void binding_check_caches(binding *b) {
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

int64_t binding_read_pages(binding *b) {
  const tensor *t = binding_tensor(b, TENSOR_K_CACHE);
  const layout *axes = axes_of(b, TENSOR_K_CACHE);
  if (axes) return product_of(t, axes, AXIS_B);
  int64_t per_page = layout_elements(&b->contract->kv.k, 1, b->dims[DIM_KV_HEADS]);
  bool flat =
      t->rank == 1 && b->dims[DIM_KV_HEADS] <= INT32_MAX && per_page > 0 && t->shape[0] % per_page == 0;
  if (flat) return t->shape[0] / per_page;
  binding_refuse_shape(b, TENSOR_K_CACHE, false,
                       t->rank == 1 ? "its size is not a whole number of pages" : NULL);
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
    heads[i] = product_of(binding_tensor(b, caches[i]), axes, AXIS_H);
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
  heads = axes                          ? product_of(binding_tensor(b, TENSOR_K_CACHE), axes, AXIS_H)
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
      binding_refuse_shape(b, TENSOR_LAST_PAGE_LEN, false, "kv_heads does not divide it");
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

void binding_infer_decode(binding *b) {
  int64_t query_rows = read_extent(b, TENSOR_Q, 0);
  int64_t q_heads = b->good ? read_extent(b, TENSOR_Q, 1) : 0;
  if (b->good) check_cache_heads(b, q_heads / b->contract->query.heads_per_kv);
  if (b->good) infer_heads(b, q_heads);
  if (b->good) infer_selection(b);
  if (b->good) infer_rows(b, query_rows);
}

void binding_infer_write(binding *b) {
  b->dims[DIM_TOKENS] = read_extent(b, TENSOR_K, 0);
  if (b->good) b->dims[DIM_KV_HEADS] = read_extent(b, TENSOR_K, 1);
  if (b->good) check_cache_heads(b, b->dims[DIM_KV_HEADS]);
  if (b->good && b->dims[DIM_KV_HEADS] <= 0) binding_refuse_shape(b, TENSOR_K, false, "kv_heads is 0");
  if (b->good && !bind_has_heads(b->contract) && b->dims[DIM_KV_HEADS] != 1)
    binding_refuse_shape(b, TENSOR_K, false, "a cache without h has one kv head");
}
