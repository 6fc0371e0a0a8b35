/* Whether tensors fit a contract: the order in which it is found out. */
#include "bind_parts.h"

#include <string.h>

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
  binding_check_presence(&b);
  binding_check_numbers(&b);
  if (needs_folding(c)) b.tensors = fold_all(c, t, &folded);
  binding_check_caches(&b);
  if (b.good) (operation_attends(o) ? binding_infer_decode : binding_infer_write)(&b);
  if (b.good) dims[DIM_PAGES] = binding_read_pages(&b);
  if (b.good) binding_check_sizes(&b);
  if (b.good) binding_check_tokens(&b);
  if (b.good) binding_check_shapes(&b);
  if (b.good) binding_solve_strides(&b);
  if (!b.good) return HD_DECLINED;
  memcpy(out_dims, dims, sizeof dims);
  return HD_OK;
}
