#include "verify_pad.h"
#include <stdlib.h>
#include <string.h>

enum { GAP_BYTE = 0xee };

static const tensor_name paged[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { PAGED_COUNT = sizeof paged / sizeof paged[0] };

static const layout *layout_of(const contract *c, tensor_name name) {
  return name == TENSOR_K_CACHE   ? &c->kv.k
         : name == TENSOR_V_CACHE ? &c->kv.v
         : name == TENSOR_K_SCALE ? &c->scale.k
                                  : &c->scale.v;
}

/* Two sets of strides over one layout. Pages that hold more than its elements (scales, a tail, padding) are
 * moved whole, as runs of a page. */
typedef struct pad_strides {
  const layout *layout; /* NULL: whole pages */
  int64_t pages, heads, slots, channels, run;
  int64_t dense_b, dense_h, b, h;
} pad_strides;

static bool is_record(const contract *c, const layout *l) {
  return c->scale.inside || c->kv.tail.channels > 0 || layout_is_padded(l);
}

/* Gaps are whole loads in every format, and another number of them in each tensor. */
static int64_t gap_of(tensor_name name) {
  return 16 * (1 + (int64_t)name);
}

static pad_strides strides_of_pages(const tensor *dense, tensor_name name) {
  pad_strides p = {.pages = dense->shape[0], .heads = 1, .slots = 1, .channels = 1};
  p.run = p.dense_b = tensor_elements(dense) / (p.pages > 0 ? p.pages : 1);
  p.b = p.dense_b + gap_of(name);
  return p;
}

static pad_strides strides_of(const contract *c, const int64_t sizes[DIM_COUNT], const tensor *dense,
                              tensor_name name) {
  const layout *l = layout_of(c, name);
  if (is_record(c, l)) return strides_of_pages(dense, name);
  pad_strides p = {.layout = l,
                   .pages = layout_has_axis(l, AXIS_B) ? sizes[DIM_PAGES] : 1,
                   .heads = layout_has_axis(l, AXIS_H) ? sizes[DIM_KV_HEADS] : 1,
                   .slots = l->size[AXIS_S] ? l->size[AXIS_S] : 1,
                   .channels = l->size[AXIS_D] ? l->size[AXIS_D] : 1,
                   .run = 1};
  const int64_t gap = gap_of(name);
  layout_packed_strides(l, p.pages, p.heads, &p.dense_b, &p.dense_h);
  if (!layout_has_axis(l, AXIS_H)) {
    p.b = p.dense_b + gap;
  } else if (l->factors[0].axis == AXIS_H) {
    p.b = layout_has_axis(l, AXIS_B) ? p.dense_b + gap : 0;
    p.h = layout_has_axis(l, AXIS_B) ? p.pages * p.b + 2 * gap : p.dense_h + gap;
  } else {
    p.h = p.dense_h + gap;
    p.b = p.dense_b / p.dense_h * p.h + 2 * gap;
  }
  return p;
}

static bool is_padded(const contract *c, const tensors *t, tensor_name name) {
  const layout *l = layout_of(c, name);
  if (!t->present[name] || c->kv.packed) return false;
  if (is_record(c, l)) return l->factors[0].axis == AXIS_B;
  return layout_has_axis(l, AXIS_B) || layout_has_axis(l, AXIS_H);
}

typedef enum pad_direction { PAD_OUT, PAD_BACK, PAD_ERASE } pad_direction;

/* To the padded elements, from them, or the gaps' pattern over them. */
static void move_elements(const pad_strides *p, size_t bytes, unsigned char *dense, unsigned char *padded,
                          pad_direction direction) {
  const layout *l = p->layout;
  size_t run = (size_t)p->run * bytes;
  for (int64_t page = 0; page < p->pages; page++)
    for (int64_t head = 0; head < p->heads; head++)
      for (int64_t slot = 0; slot < p->slots; slot++)
        for (int64_t d = 0; d < p->channels; d++) {
          int64_t from =
              l ? layout_offset(l, p->dense_b, p->dense_h, p->heads, page, head, slot, d) : page * p->dense_b;
          int64_t at = l ? layout_offset(l, p->b, p->h, p->heads, page, head, slot, d) : page * p->b;
          unsigned char *a = dense + (size_t)from * bytes, *b = padded + (size_t)at * bytes;
          if (direction == PAD_ERASE)
            memset(b, GAP_BYTE, run);
          else
            memcpy(direction == PAD_OUT ? b : a, direction == PAD_OUT ? a : b, run);
        }
}

static unsigned char *address(const tensor *t) {
  return (unsigned char *)(uintptr_t)t->data;
}

static void set_strides(const pad_strides *p, tensor *t) {
  t->strided = true;
  for (int64_t i = t->rank - 1, dense = 1; i >= 0; i--) {
    t->strides[i] = i == 0 ? p->b : dense;
    dense *= t->shape[i];
  }
  for (int i = 0; p->layout && i < t->rank; i++) {
    layout_stride s = layout_factor_stride(p->layout, i);
    axis a = p->layout->factors[i].axis;
    t->strides[i] = a == AXIS_B   ? p->b
                    : a == AXIS_H ? p->h
                                  : s.elements * (s.times_heads ? p->heads * p->h : 1);
  }
}

static bool pad_tensor(const contract *c, const int64_t sizes[DIM_COUNT], tensor_name name,
                       const tensor *dense, tensor *out) {
  pad_strides p = strides_of(c, sizes, dense, name);
  tensor t = *dense;
  set_strides(&p, &t);
  unsigned char *memory = malloc(tensor_bytes(&t) + 1);
  if (!memory) return false;
  memset(memory, GAP_BYTE, tensor_bytes(&t));
  move_elements(&p, (size_t)dtype_bytes(t.dtype), address(dense), memory, PAD_OUT);
  t.data = (uint64_t)(uintptr_t)memory;
  *out = t;
  return true;
}

hd_status verify_pad(const contract *c, const int64_t sizes[DIM_COUNT], const tensors *dense,
                     tensors *out_padded, diags *errors) {
  tensors padded = *dense;
  for (int i = 0; i < PAGED_COUNT; i++) {
    tensor_name name = paged[i];
    if (!is_padded(c, dense, name)) continue;
    if (pad_tensor(c, sizes, name, &dense->by_name[name], &padded.by_name[name])) continue;
    verify_pad_finish(dense, &padded);
    diags_errorf(errors, "memory", NULL, "out of memory for padded caches");
    return HD_OUT_OF_MEMORY;
  }
  *out_padded = padded;
  return HD_OK;
}

bool verify_unpad(const contract *c, const int64_t sizes[DIM_COUNT], tensor_name name, const tensors *padded,
                  const tensors *dense) {
  const tensor *from = &padded->by_name[name], *to = &dense->by_name[name];
  if (from->data == to->data) return true;
  pad_strides p = strides_of(c, sizes, to, name);
  size_t bytes = (size_t)dtype_bytes(from->dtype), size = tensor_bytes(from);
  move_elements(&p, bytes, address(to), address(from), PAD_BACK);
  /* What lies between: the elements are overwritten, then everything has to be the pattern. */
  move_elements(&p, bytes, address(to), address(from), PAD_ERASE);
  for (size_t i = 0; i < size; i++)
    if (address(from)[i] != GAP_BYTE) return false;
  return true;
}

void verify_pad_finish(const tensors *dense, tensors *padded) {
  for (int i = 0; i < PAGED_COUNT; i++) {
    tensor_name name = paged[i];
    if (padded->present[name] && padded->by_name[name].data != dense->by_name[name].data)
      free(address(&padded->by_name[name]));
  }
  *padded = (tensors){0};
}
