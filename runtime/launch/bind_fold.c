#include "bind_parts.h"
#include "strides.h"

/* Dimensions of `t` from `first` on lie together, row-major. */
static bool dense_from(const tensor *t, int first) {
  int64_t dense = 1;
  for (int i = t->rank - 1; i >= first; i--) {
    if (t->shape[i] > 1 && tensor_stride(t, i) != dense) return false;
    if (__builtin_mul_overflow(dense, t->shape[i], &dense)) return false;
  }
  return true;
}

/* Factor by factor, padding counted or left out. */
static bool fold_factors(const layout *l, const tensor *t, tensor *out) {
  if (t->rank != l->count) return false;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    out->strides[i] = tensor_stride(t, i);
    if (f->axis == AXIS_B || f->axis == AXIS_H) continue;
    int64_t step = f->pad ? layout_factor_stride(l, i).elements : 1;
    if (t->shape[i] != f->extent && (f->pad % step != 0 || t->shape[i] != f->extent + f->pad / step))
      return false;
    out->shape[i] = f->extent;
  }
  return true;
}

/* Pages, or pages and heads, as one run of elements each, or page by page as one for each token. */
static bool fold_records(const layout *l, const tensor *t, tensor *out) {
  int leading = 0;
  while (leading < l->count && (l->factors[leading].axis == AXIS_B || l->factors[leading].axis == AXIS_H))
    leading++;
  bool tokens = t->rank == leading + 2 && l->size[AXIS_S] > 0 && t->shape[leading] == l->size[AXIS_S];
  if (leading == 0 || (t->rank != leading + 1 && !tokens)) return false;
  int64_t elements = t->shape[t->rank - 1];
  if (tokens && __builtin_mul_overflow(elements, t->shape[leading], &elements)) return false;
  if (layout_has_axis(l, AXIS_H) && leading < 2) return false; /* how many elements, the heads would say */
  if (elements != layout_inner_elements(l) || !dense_from(t, leading)) return false;
  for (int i = 0; i < l->count; i++) {
    if (i >= leading) out->shape[i] = l->factors[i].extent;
    out->strides[i] = i < leading ? tensor_stride(t, i) : layout_factor_stride(l, i).elements;
  }
  out->rank = l->count;
  return true;
}

tensor bind_fold(const layout *l, bool has_heads, const tensor *t) {
  tensor from = *t;
  if (t->axes || t->rank < 2 || t->rank > TENSOR_MAX_RANK || (has_heads && !layout_is_padded(l))) return from;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] < 0) return from;
  /* The dimension of the one kv head, which such a layout has none for. */
  for (int i = from.rank - 1; !has_heads && i > 0 && from.rank > l->count; i--) {
    if (from.shape[i] != 1) continue;
    tensor squeezed = from;
    squeezed.rank--;
    squeezed.strided = true;
    for (int d = 0; d < squeezed.rank; d++) {
      squeezed.shape[d] = from.shape[d < i ? d : d + 1];
      squeezed.strides[d] = tensor_stride(&from, d < i ? d : d + 1);
    }
    from = squeezed;
  }
  tensor out = from;
  out.strided = true;
  if (fold_factors(l, &from, &out) || (layout_is_padded(l) && fold_records(l, &from, &out))) return out;
  return *t;
}
