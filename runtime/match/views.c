#include "views.h"
#include "../launch/strides.h"

#include <inttypes.h>
#include <stdio.h>

/* The tensors that lie in pages, and which layout of a contract each has. */
static const tensor_name paged[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { PAGED_COUNT = sizeof paged / sizeof paged[0] };

static layout *layout_of(contract *c, tensor_name name) {
  switch (name) {
  case TENSOR_K_CACHE:
    return &c->kv.k;
  case TENSOR_V_CACHE:
    return &c->kv.v;
  case TENSOR_K_SCALE:
    return &c->scale.k;
  default:
    return &c->scale.v;
  }
}

static hd_status decline(diags *errors, const char *code, const char *field, const char *found,
                         const char *allowed) {
  diags_refusef(errors, code, field, found, allowed, "%s can't be viewed: allowed is %s", found, allowed);
  return HD_DECLINED;
}

static hd_status decline_number(diags *errors, const char *code, const char *field, int64_t found,
                                const char *allowed) {
  char number[32];
  snprintf(number, sizeof number, "%" PRId64, found);
  return decline(errors, code, field, number, allowed);
}

/* One paged tensor in its contract's terms. */
typedef struct paged_tensor {
  const char *name;
  const tensor *tensor;
  layout layout;
  int64_t pages, heads, stride_b, stride_h;
} paged_tensor;

/* Whether the tensor's dimensions are the layout's factors, and how many pages and heads it has; 0 where it
 * has no such axis. */
static bool read_extents(const tensor *t, const layout *l, int64_t *out_pages, int64_t *out_heads) {
  const layout *axes = t->axes ? t->axes : l;
  if (t->rank != axes->count || axes->size[AXIS_S] != l->size[AXIS_S] ||
      axes->size[AXIS_D] != l->size[AXIS_D])
    return false;
  *out_pages = *out_heads = 0;
  for (int i = 0; i < t->rank; i++) {
    const layout_factor *f = &axes->factors[i];
    int64_t *free_extent = f->axis == AXIS_B ? out_pages : f->axis == AXIS_H ? out_heads : NULL;
    if (free_extent)
      *free_extent = t->shape[i];
    else if (t->shape[i] != f->extent)
      return false;
    if (t->shape[i] < 0) return false;
  }
  return true;
}

static hd_status read_paged(const contract *c, const tensors *t, tensor_name name, paged_tensor *out,
                            diags *errors) {
  contract copy = *c;
  paged_tensor p = {
      .name = tensor_name_text(name), .tensor = &t->by_name[name], .layout = *layout_of(&copy, name)};
  if (!read_extents(p.tensor, &p.layout, &p.pages, &p.heads)) {
    text expected;
    text_init(&expected);
    bind_expected_shape(c, name, &expected);
    diags_refusef(errors, "view.shape", p.name, "another shape", text_string(&expected),
                  "%s has another shape than %s", p.name, text_string(&expected));
    text_finish(&expected);
    return HD_DECLINED;
  }
  strides_question q = {p.name, p.tensor, &p.layout, p.pages, p.heads, c->kv.packed, false};
  if (!strides_solve(&q, &p.stride_b, &p.stride_h, errors)) return HD_DECLINED;
  *out = p;
  return HD_OK;
}

/* The tensor in the factors of `p.layout`, with its strides. */
static tensor write_paged(const paged_tensor *p) {
  tensor t = {.dtype = p->tensor->dtype, .data = p->tensor->data, .strided = true};
  t.rank = layout_shape(&p->layout, p->pages, p->heads, t.shape);
  for (int i = 0; i < t.rank; i++) {
    layout_stride s = layout_factor_stride(&p->layout, i);
    axis a = p->layout.factors[i].axis;
    t.strides[i] = a == AXIS_B   ? p->stride_b
                   : a == AXIS_H ? p->stride_h
                                 : s.elements * (s.times_heads ? p->heads * p->stride_h : 1);
  }
  return t;
}

static void layout_text(const paged_tensor *p, text *out) {
  layout_write(&p->layout, out);
}

static void strides_text(const paged_tensor *p, text *out) {
  tensor_write_strides(p->tensor, out);
}

/* Declines a tensor for what `write` says of it. */
static hd_status decline_with(void (*write)(const paged_tensor *p, text *out), const paged_tensor *p,
                              const char *code, const char *allowed, diags *errors) {
  text found;
  text_init(&found);
  write(p, &found);
  decline(errors, code, p->name, text_string(&found), allowed);
  text_finish(&found);
  return HD_DECLINED;
}

/* Checks the viewed tensor as a launch would, and puts it into the view. */
static hd_status keep(view *v, tensor_name name, const paged_tensor *p, diags *errors) {
  tensor *t = &v->tensors.by_name[name];
  *t = write_paged(p);
  int64_t stride_b, stride_h;
  strides_question q = {p->name, t, &p->layout, p->pages, p->heads, v->contract.kv.packed, false};
  return strides_solve(&q, &stride_b, &stride_h, errors) ? HD_OK : HD_DECLINED;
}

static hd_status check_caches(const contract *c, const tensors *t, diags *errors) {
  if (layout_is_padded(&c->kv.k) || layout_is_padded(&c->kv.v) || c->scale.inside || c->kv.tail.channels)
    return decline(errors, "view.layout", "kv.k", "a page of records",
                   "layouts without padding, scales and tails inside pages");
  if (t->present[TENSOR_K_CACHE] || t->present[TENSOR_V_CACHE]) return HD_OK;
  return decline(errors, "view.shape", "k_cache", "no cache", "k_cache or v_cache");
}

/* page-split */

/* The digits of slots below `page`; those above have one value left. False when a digit is cut in the middle.
 */
static bool shorten_pages(layout *l, int page) {
  for (int i = 0; i < l->count; i++) {
    layout_factor *f = &l->factors[i];
    if (f->axis != AXIS_S) continue;
    if (f->divisor >= page)
      f->extent = 1;
    else if (f->divisor * f->extent > page && page % f->divisor != 0)
      return false;
    else if (f->divisor * f->extent > page)
      f->extent = page / f->divisor;
  }
  l->size[AXIS_S] = page;
  return true;
}

static int64_t slot_offset(const paged_tensor *p, int64_t slot) {
  return layout_offset(&p->layout, 0, p->stride_h, p->heads, 0, 0, slot, 0);
}

static int64_t channel_offset(const paged_tensor *p, int64_t channel) {
  return layout_offset(&p->layout, 0, p->stride_h, p->heads, 0, 0, 0, channel);
}

/* Whether part j, slot s, channel d of the view is slot j * page + s, channel d of the tensor, page by page.
 * Offsets are sums of what each axis adds. */
static bool same_order(const paged_tensor *from, const paged_tensor *to, int64_t page, int64_t parts) {
  for (int64_t s = 0; s < page * parts; s++)
    if (slot_offset(from, s) != s / page * to->stride_b + slot_offset(to, s % page)) return false;
  for (int64_t d = 0; d < from->layout.size[AXIS_D]; d++)
    if (channel_offset(from, d) != channel_offset(to, d)) return false;
  return true;
}

static bool is_packed(const paged_tensor *p) {
  int64_t stride_b, stride_h;
  layout_packed_strides(&p->layout, p->pages, p->heads, &stride_b, &stride_h);
  return (p->pages <= 1 || p->stride_b == stride_b) && (p->heads <= 1 || p->stride_h == stride_h);
}

static hd_status split_paged(const contract *c, const tensors *t, tensor_name name, view_meaning wanted,
                             view *v, diags *errors) {
  paged_tensor from;
  hd_status status = read_paged(c, t, name, &from, errors);
  if (status != HD_OK || !layout_has_axis(&from.layout, AXIS_S))
    return status; /* scales without tokens stay */
  paged_tensor to = from;
  int64_t page = v->contract.kv.page;
  to.layout = *layout_of(&v->contract, name);
  to.pages = from.pages * v->parts;
  to.stride_b = slot_offset(&from, page);
  bool order = same_order(&from, &to, page, v->parts);
  if (!order || (from.pages > 1 && from.stride_b != v->parts * to.stride_b)) {
    int64_t packed_b, packed_h;
    layout_packed_strides(&from.layout, from.pages, from.heads, &packed_b, &packed_h);
    bool gaps =
        order && from.stride_b != packed_b && packed_b == v->parts * to.stride_b; /* and nothing else */
    if (wanted == VIEW_SAME_BYTES && !gaps)
      return decline_with(
          layout_text, &from, "view.meaning",
          "slots outermost in a page, or same-storage where the view's own contract writes all that is read",
          errors);
    if (!is_packed(&from))
      return decline_with(strides_text, &from, "view.strides", "pages and heads without gaps", errors);
    layout_packed_strides(&to.layout, to.pages, to.heads, &to.stride_b, &to.stride_h);
    v->meaning = VIEW_SAME_STORAGE;
  }
  return keep(v, name, &to, errors);
}

hd_status view_page_split(const contract *c, const tensors *t, int page, view_meaning wanted, view *out_view,
                          diags *errors) {
  view v = {.contract = *c, .tensors = *t, .meaning = VIEW_SAME_BYTES, .heads = 1};
  if (page < 1 || page > c->kv.page || c->kv.page % page != 0) {
    char allowed[64];
    snprintf(allowed, sizeof allowed, "a divisor of the page, %d", c->kv.page);
    return decline_number(errors, "view.page", "kv.page", page, allowed);
  }
  v.parts = c->kv.page / page;
  v.contract.kv.page = page;
  const unsigned scale_axes = contract_scale_axes(c->scale.granularity);
  if (scale_axes & 1u << AXIS_B && !(scale_axes & 1u << AXIS_S) && v.parts > 1)
    return decline(errors, "view.scale", "scale.granularity", granularity_name(c->scale.granularity),
                   "scales that don't belong to whole pages");
  for (int i = 0; i < PAGED_COUNT; i++) {
    layout *l = layout_of(&v.contract, paged[i]);
    if (!layout_has_axis(l, AXIS_S) || shorten_pages(l, page)) continue;
    return decline_number(errors, "view.page", tensor_name_text(paged[i]), page,
                          "what the layout's digits of s divide");
  }
  hd_status status = check_caches(c, t, errors);
  for (int i = 0; i < PAGED_COUNT && status == HD_OK; i++)
    if (t->present[paged[i]] && layout_of(&v.contract, paged[i])->count > 0)
      status = split_paged(c, t, paged[i], wanted, &v, errors);
  if (status != HD_OK) return status;
  const tensor_name other_ids[] = {TENSOR_PAGE_TABLE, TENSOR_KV_INDPTR, TENSOR_KV_INDICES,
                                   TENSOR_LAST_PAGE_LEN};
  for (size_t i = 0; v.parts > 1 && i < sizeof other_ids / sizeof other_ids[0]; i++)
    v.tensors.present[other_ids[i]] = false;
  *out_view = v;
  return HD_OK;
}

/* collapse-heads */

static hd_status collapse_paged(const contract *c, const tensors *t, tensor_name name, int64_t heads, view *v,
                                diags *errors) {
  paged_tensor p;
  hd_status status = read_paged(c, t, name, &p, errors);
  if (status != HD_OK) return status;
  bool per_head = layout_has_axis(&p.layout, AXIS_H);
  if (per_head && p.heads != heads)
    return decline_number(errors, "view.shape", p.name, p.heads, "one number of kv heads");
  if (heads > 1 && (!per_head || !layout_has_axis(&p.layout, AXIS_B)))
    return decline(errors, "view.scale", p.name, granularity_name(c->scale.granularity),
                   "scales of their own for each page and head, or one for all");
  for (int i = 0; heads > 1 && i < p.layout.count; i++)
    if (layout_factor_stride(&p.layout, i).times_heads && p.layout.factors[i].extent > 1)
      return decline_with(layout_text, &p, "view.layout", "no slots or channels outside h", errors);
  if (p.pages > 1 && heads > 1 && p.stride_b != heads * p.stride_h)
    return decline_with(strides_text, &p, "view.strides", "a page stride of kv_heads head strides", errors);
  if (heads > 1) p.stride_b = p.stride_h;
  p.pages *= heads;
  p.heads = per_head ? 1 : 0;
  return keep(v, name, &p, errors);
}

/* [rows, heads, …] as [rows * kv heads, heads / kv heads, …]. */
static hd_status collapse_rows(tensors *t, tensor_name name, int64_t heads, int64_t each, diags *errors) {
  tensor *r = &t->by_name[name];
  if (!t->present[name]) return HD_OK;
  const char *field = tensor_name_text(name);
  if (r->rank < 2 || r->shape[1] != heads * each)
    return decline_number(errors, "view.shape", field, r->rank < 2 ? 0 : r->shape[1],
                          "kv_heads times the heads of each");
  if (!tensor_is_dense(r)) return decline(errors, "view.strides", field, "padded rows", "dense rows");
  r->strided = false;
  if (__builtin_mul_overflow(r->shape[0], heads, &r->shape[0])) r->shape[0] = INT64_MAX; /* bind.size */
  r->shape[1] = each;
  return HD_OK;
}

/* Of the first cache that is there. */
static int64_t count_heads(const contract *c, const tensors *t) {
  int64_t pages, heads;
  contract copy = *c;
  for (int i = 0; i < 2; i++)
    if (t->present[paged[i]] &&
        read_extents(&t->by_name[paged[i]], layout_of(&copy, paged[i]), &pages, &heads))
      return heads;
  return 0;
}

hd_status view_collapse_heads(const contract *c, const tensors *t, view *out_view, diags *errors) {
  view v = {.contract = *c, .tensors = *t, .meaning = VIEW_SAME_BYTES, .parts = 1};
  hd_status status = check_caches(c, t, errors);
  if (status != HD_OK) return status;
  int64_t heads = v.heads = count_heads(c, t);
  if (heads < 1)
    return decline(errors, "view.shape", "k_cache", "another shape or no heads",
                   "the contract's shape, one head or more");
  if (heads > 1 && c->mask.sinks)
    return decline(errors, "view.sinks", "mask.sinks", "per_head",
                   "none: a row's sink would depend on its kv head");
  v.contract.query.rows = 1;
  if (c->select.form != SELECT_BLOCKS) /* lists of blocks belong to kv heads and rows as they are */
    v.contract.select.per = c->select.form == SELECT_TOKENS ? PER_ROW : PER_SEQUENCE;
  for (int i = 0; i < PAGED_COUNT && status == HD_OK; i++)
    if (t->present[paged[i]] && layout_of(&v.contract, paged[i])->count > 0)
      status = collapse_paged(c, t, paged[i], heads, &v, errors);
  const struct {
    tensor_name name;
    int64_t each; /* heads of a row under the view */
  } rows[] = {{TENSOR_Q, c->query.heads_per_kv},
              {TENSOR_OUT, c->query.heads_per_kv},
              {TENSOR_LSE, c->query.heads_per_kv},
              {TENSOR_K, 1},
              {TENSOR_V, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == HD_OK; i++)
    status = collapse_rows(&v.tensors, rows[i].name, heads, rows[i].each, errors);
  if (status != HD_OK) return status;
  const tensor_name other_values[] = {TENSOR_PAGE_TABLE, TENSOR_LENGTHS,       TENSOR_KV_INDPTR,
                                      TENSOR_KV_INDICES, TENSOR_LAST_PAGE_LEN, TENSOR_SLOT_MAPPING,
                                      TENSOR_BLOCK_LIST, TENSOR_TOKEN_LIST,    TENSOR_ROW_SEQUENCES};
  for (size_t i = 0; i < sizeof other_values / sizeof other_values[0]; i++)
    v.tensors.present[other_values[i]] = false;
  *out_view = v;
  return HD_OK;
}
