#include "strides.h"

#include <inttypes.h>

int64_t tensor_stride(const tensor *t, int dimension) {
  if (t->strided) return t->strides[dimension];
  int64_t stride = 1;
  for (int i = dimension + 1; i < t->rank; i++)
    if (__builtin_mul_overflow(stride, t->shape[i], &stride)) return INT64_MAX;
  return stride;
}

bool tensor_is_dense(const tensor *t) {
  if (!t->strided) return true;
  int64_t dense = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (t->shape[i] == 0) return true;
    if (t->shape[i] > 1 && t->strides[i] != dense) return false;
    if (__builtin_mul_overflow(dense, t->shape[i], &dense)) return false;
  }
  return true;
}

void tensor_write_strides(const tensor *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i ? ", " : "", tensor_stride(t, i));
  text_add(out, "]");
}

/* The strides a dense inside needs: numbers where the layout fixes them, "any" where they are free. */
static void write_allowed(const strides_question *q, int64_t stride_h, text *out) {
  const layout *l = q->layout;
  int64_t packed_b, packed_h;
  layout_packed_strides(l, q->pages, q->heads, &packed_b, &packed_h);
  text_add(out, "[");
  for (int i = 0; i < l->count; i++) {
    axis a = l->factors[i].axis;
    layout_stride s = layout_factor_stride(l, i);
    text_add(out, i ? ", " : "");
    if (a != AXIS_B && a != AXIS_H)
      text_addf(out, "%" PRId64, s.elements * (s.times_heads ? q->heads * stride_h : 1));
    else if (q->packed)
      text_addf(out, "%" PRId64, a == AXIS_B ? packed_b : packed_h);
    else
      text_add(out, "any");
  }
  text_add(out, "]");
  if (!q->tensor->axes) return;
  text_add(out, " for ");
  layout_write(l, out);
}

static bool refuse(const strides_question *q, int64_t stride_h, const char *code, const char *why,
                   diags *errors) {
  text found, allowed;
  text_init(&found);
  text_init(&allowed);
  tensor_write_strides(q->tensor, &found);
  write_allowed(q, stride_h, &allowed);
  diags_refusef(errors, code, q->name, text_string(&found), text_string(&allowed),
                "%s has strides %s, expected %s: %s", q->name, text_string(&found), text_string(&allowed),
                why);
  text_finish(&found);
  text_finish(&allowed);
  return false;
}

/* Elements that the tensor puts between index 0 and `index` of an axis. */
static int64_t tensor_steps(const tensor *t, const layout *axes, axis a, int64_t index) {
  int64_t offset = 0;
  for (int i = 0; i < axes->count; i++) {
    const layout_factor *f = &axes->factors[i];
    if (f->axis != a) continue;
    bool whole = a == AXIS_B || a == AXIS_H;
    int64_t step;
    if (__builtin_mul_overflow(whole ? index : index / f->divisor % f->extent, tensor_stride(t, i), &step) ||
        __builtin_add_overflow(offset, step, &offset))
      return INT64_MIN; /* no layout's offset: 2^63 elements are not addressed */
  }
  return offset;
}

static int64_t layout_steps(const layout *l, int64_t heads, int64_t stride_h, axis a, int64_t index) {
  int64_t offset = 0, heads_stride;
  if (__builtin_mul_overflow(heads, stride_h, &heads_stride)) return INT64_MAX;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    if (f->axis != a) continue;
    layout_stride s = layout_factor_stride(l, i);
    int64_t step = index / f->divisor % f->extent * s.elements;
    if (__builtin_mul_overflow(step, s.times_heads ? heads_stride : 1, &step) ||
        __builtin_add_overflow(offset, step, &offset))
      return INT64_MAX; /* never what tensor_steps gives for the same reason */
  }
  return offset;
}

/* Whether every boundary of a digit, of either side, divides those above it. Then both sides are linear
 * between boundaries, and equal everywhere when they are equal at the boundaries. */
static bool boundaries_nest(const layout *x, const layout *y, axis a) {
  const layout *const both[] = {x, y};
  for (int p = 0; p < 2; p++)
    for (int i = 0; i < both[p]->count; i++)
      for (int q = 0; q < 2; q++)
        for (int j = 0; j < both[q]->count; j++) {
          const layout_factor *f = &both[p]->factors[i], *g = &both[q]->factors[j];
          if (f->axis == a && g->axis == a && f->divisor >= g->divisor && f->divisor % g->divisor != 0)
            return false;
        }
  return true;
}

/* The tensor's dimensions are the layout's factors: each digit steps by itself. */
static bool same_digits(const strides_question *q, axis a, int64_t stride_h) {
  const layout *l = q->layout;
  int64_t heads_stride;
  if (__builtin_mul_overflow(q->heads, stride_h, &heads_stride)) return false;
  for (int i = 0; i < l->count; i++) {
    if (l->factors[i].axis != a || l->factors[i].extent <= 1) continue;
    layout_stride s = layout_factor_stride(l, i);
    int64_t step;
    if (__builtin_mul_overflow(s.elements, s.times_heads ? heads_stride : 1, &step) ||
        step != tensor_stride(q->tensor, i))
      return false;
  }
  return true;
}

static bool same_axis(const strides_question *q, const layout *axes, axis a, int64_t stride_h) {
  const layout *l = q->layout;
  if (axes == l) return same_digits(q, a, stride_h);
  int64_t size = l->size[a];
  if (!boundaries_nest(l, axes, a)) {
    for (int64_t i = 0; i < size; i++)
      if (tensor_steps(q->tensor, axes, a, i) != layout_steps(l, q->heads, stride_h, a, i)) return false;
    return true;
  }
  const layout *const both[] = {l, axes};
  for (int p = 0; p < 2; p++)
    for (int i = 0; i < both[p]->count; i++) {
      const layout_factor *f = &both[p]->factors[i];
      if (f->axis != a || f->divisor >= size) continue;
      if (tensor_steps(q->tensor, axes, a, f->divisor) != layout_steps(l, q->heads, stride_h, a, f->divisor))
        return false;
    }
  return true;
}

/* A single head's stride is of no use but to factors outside h: it is what makes theirs right, if they need
 * one. */
static int64_t single_head_stride(const strides_question *q, const layout *axes, int64_t packed) {
  for (int i = 0; i < q->layout->count; i++) {
    layout_stride s = layout_factor_stride(q->layout, i);
    const layout_factor *f = &q->layout->factors[i];
    if (!s.times_heads || f->extent <= 1) continue;
    return tensor_steps(q->tensor, axes, f->axis, f->divisor) / s.elements;
  }
  return packed;
}

/* The largest power of two up to LOAD_BYTES that divides what a packed stride comes to: no load is wider than
 * that. */
static int64_t needed_alignment(int64_t packed_bytes) {
  int64_t two = packed_bytes & -packed_bytes;
  return two > 0 && two < LOAD_BYTES ? two : LOAD_BYTES;
}

static bool check_alignment(const strides_question *q, axis a, int64_t stride, int64_t packed,
                            diags *errors) {
  if (stride == packed) return true;
  int64_t bytes = dtype_bytes(q->tensor->dtype), needed = needed_alignment(packed * bytes);
  if (stride % (needed / bytes) == 0) return true; /* packed strides are whole elements: needed >= bytes */
  text found, allowed;
  text_init(&found);
  text_init(&allowed);
  text_addf(&found, "%" PRId64, stride);
  text_addf(&allowed, "a multiple of %" PRId64, needed / bytes);
  diags_refusef(errors, "bind.stride-alignment", q->name, text_string(&found), text_string(&allowed),
                "%s has a %s stride of %s elements, expected %s: loads are %" PRId64 " bytes wide", q->name,
                a == AXIS_B ? "page" : "head", text_string(&found), text_string(&allowed), needed);
  text_finish(&found);
  text_finish(&allowed);
  return false;
}

/* Strides forwards, and so short that no offset comes near 2^63. */
static bool spans_little(const tensor *t) {
  int64_t span = 0, steps;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] <= 1) continue;
    if (tensor_stride(t, i) < 0 || __builtin_mul_overflow(tensor_stride(t, i), t->shape[i] - 1, &steps) ||
        __builtin_add_overflow(span, steps, &span) || span > (int64_t)1 << 48)
      return false;
  }
  return true;
}

/* Sorted by stride, each dimension must step over all that the smaller ones cover. */
static bool elements_overlap(const tensor *t) {
  int64_t covered = 1; /* elements from the first to the last of the dimensions taken so far */
  unsigned taken = 0;
  for (int n = 0; n < t->rank; n++) {
    int next = -1;
    for (int i = 0; i < t->rank; i++)
      if (!(taken & 1u << i) && (next < 0 || tensor_stride(t, i) < tensor_stride(t, next))) next = i;
    taken |= 1u << next;
    if (t->shape[next] == 0) return false;
    if (t->shape[next] == 1) continue;
    int64_t stride = tensor_stride(t, next), steps;
    if (stride < covered) return true;
    if (__builtin_mul_overflow(stride, t->shape[next] - 1, &steps) ||
        __builtin_add_overflow(covered, steps, &covered))
      return true;
  }
  return false;
}

bool strides_solve(const strides_question *q, int64_t *out_stride_b, int64_t *out_stride_h, diags *errors) {
  const tensor *t = q->tensor;
  const layout *l = q->layout, *axes = t->axes ? t->axes : l;
  int64_t packed_b, packed_h;
  layout_packed_strides(l, q->pages, q->heads, &packed_b, &packed_h);
  if (t->rank != axes->count) { /* flat: its shape is one number, so its bytes are the packed ones */
    if (!tensor_is_dense(t)) return refuse(q, packed_h, "bind.strides", "a flat tensor is dense", errors);
    *out_stride_b = packed_b;
    *out_stride_h = packed_h;
    return true;
  }
  if (!spans_little(t))
    return refuse(q, packed_h, "bind.strides", "strides are not negative, and span at most 2^48 elements",
                  errors);
  int64_t stride_b = q->pages > 1 && layout_has_axis(l, AXIS_B) ? tensor_steps(t, axes, AXIS_B, 1) : packed_b;
  int64_t stride_h = !layout_has_axis(l, AXIS_H) ? packed_h
                     : q->heads > 1              ? tensor_steps(t, axes, AXIS_H, 1)
                                                 : single_head_stride(q, axes, packed_h);
  if (!same_axis(q, axes, AXIS_S, stride_h) || !same_axis(q, axes, AXIS_D, stride_h))
    return refuse(q, stride_h, "bind.strides",
                  "inside a page and head elements lie as the contract's layout says", errors);
  if (q->packed && (stride_b != packed_b || stride_h != packed_h))
    return refuse(q, stride_h, "bind.strides", "the contract is packed", errors);
  bool aligned = q->pages <= 1 || check_alignment(q, AXIS_B, stride_b, packed_b, errors);
  if (q->heads > 1 && !check_alignment(q, AXIS_H, stride_h, packed_h, errors)) aligned = false;
  if (!aligned) return false;
  if (q->updated && !tensor_is_dense(t) && elements_overlap(t))
    return refuse(q, stride_h, "bind.overlap", "two elements would share a place, and the tensor is written",
                  errors);
  *out_stride_b = stride_b;
  *out_stride_h = stride_h;
  return true;
}
