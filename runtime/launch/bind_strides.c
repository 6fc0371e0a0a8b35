/* Strides of what has pages, of lists, and of the table. */
#include "../../generator/page_parts.h"
#include "bind_parts.h"
#include "strides.h"

#include <inttypes.h>
#include <stdio.h>

/* Lists of a kv head and row may lie anywhere: [H, T, listed] is often cut out of a longer buffer. */
static void solve_list_strides(binding *b) {
  const tensor_name names[] = {TENSOR_BLOCK_LIST, TENSOR_TOKEN_LIST};
  for (int i = 0; i < 2; i++) {
    if (bind_role(b->contract, b->operation, names[i]) == ROLE_NONE) continue;
    const tensor *t = binding_tensor(b, names[i]);
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

void binding_solve_strides(binding *b) {
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
        .tensor = binding_tensor(b, name),
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
  const tensor *table = binding_tensor(b, TENSOR_PAGE_TABLE);
  bool decode = bind_role(b->contract, b->operation, TENSOR_PAGE_TABLE) != ROLE_NONE;
  if (!decode || tensor_is_dense(table)) return;
  bool by_sequence = table->rank == 3 && table->shape[1] == 1;
  b->dims[DIM_TABLE_PAGES] = tensor_stride(table, by_sequence ? 0 : table->rank - 2);
}
