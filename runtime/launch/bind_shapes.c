/* Shapes against the sizes that were found. */
#include "bind_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void binding_check_sizes(binding *b) {
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
void binding_check_tokens(binding *b) {
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
  const tensor *t = binding_tensor(b, name);
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

void binding_check_shapes(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor wanted;
    if (!b->tensors->present[name] || !bind_tensor(b->contract, name, b->dims, &wanted)) continue;
    if (shape_fits(b, name, &wanted)) continue;
    bool scale = (name == TENSOR_K_SCALE || name == TENSOR_V_SCALE) && bind_layout(b->contract, name);
    binding_refuse_shape(
        b, name, true, scale ? "scales lie by page and slot of the cache, not by sequence and token" : NULL);
  }
}
