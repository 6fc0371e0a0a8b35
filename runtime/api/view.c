#include "../match/views.h"
#include "parts.h"
#include <stdlib.h>
#include <string.h>

struct hd_view {
  view view;
  hd_contract *contract;
  hd_tensor tensors[TENSOR_COUNT];
  size_t count;
  hd_axes axes[TENSOR_COUNT]; /* copies: the caller's may go */
};

static hd_status describe(hd_view *v) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    const tensor *t = &v->view.tensors.by_name[i];
    hd_tensor *to = &v->tensors[v->count];
    if (!v->view.tensors.present[i]) continue;
    if (!api_tensor_name_back((tensor_name)i, &to->name) || !api_dtype_back(t->dtype, &to->dtype))
      return HD_INTERNAL;
    to->address = t->data;
    to->rank = t->rank;
    to->shape = t->shape;
    to->strides = t->strided ? t->strides : NULL;
    if (t->axes != NULL) {
      v->axes[i].layout = *t->axes;
      to->axes = &v->axes[i];
    }
    v->count++;
  }
  return HD_OK;
}

/* `page`: 0 collapses heads. */
static hd_status create(const hd_context *context, const hd_contract *c, const hd_tensor *from, size_t count,
                        int page, view_meaning wanted, hd_view **out_view, diags *errors) {
  tensors given = {0};
  if (!api_alive(context, errors)) return HD_INVALID;
  hd_status status = api_tensors(from, count, &given, errors);
  if (status != HD_OK) return status;
  hd_view *v = calloc(1, sizeof *v);
  if (v == NULL) return HD_OUT_OF_MEMORY;
  contract resolved = contract_resolve(&c->spec.contract, context->session.target->fp8);
  status = page > 0 ? view_page_split(&resolved, &given, page, wanted, &v->view, errors)
                    : view_collapse_heads(&resolved, &given, &v->view, errors);
  if (status == HD_OK) status = describe(v);
  if (status == HD_OK) status = api_contract_of(&v->view.contract, c->spec.name, &v->contract);
  if (status == HD_OK)
    *out_view = v;
  else
    hd_view_destroy(v);
  return status;
}

hd_status hd_view_page_split(const hd_context *context, const hd_contract *c, const hd_tensor *from,
                             size_t count, int page, hd_meaning wanted, hd_view **out_view,
                             hd_diagnostics *diagnostics) {
  static const view_meaning meanings[] = {
      [HD_SAME_BYTES] = VIEW_SAME_BYTES, [HD_SAME_STORAGE] = VIEW_SAME_STORAGE};
  api_call call;
  if (context == NULL || c == NULL || out_view == NULL || page <= 0 ||
      (unsigned)wanted >= sizeof meanings / sizeof *meanings)
    return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, create(context, c, from, count, page, meanings[wanted], out_view, call.errors));
}

hd_status hd_view_collapse_heads(const hd_context *context, const hd_contract *c, const hd_tensor *from,
                                 size_t count, hd_view **out_view, hd_diagnostics *diagnostics) {
  api_call call;
  if (context == NULL || c == NULL || out_view == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, create(context, c, from, count, 0, VIEW_SAME_BYTES, out_view, call.errors));
}

void hd_view_destroy(hd_view *v) {
  if (v == NULL) return;
  hd_contract_destroy(v->contract);
  free(v);
}

const hd_contract *hd_view_contract(const hd_view *v) {
  return v->contract;
}

size_t hd_view_tensors(const hd_view *v, const hd_tensor **out_tensors) {
  *out_tensors = v->tensors;
  return v->count;
}

hd_meaning hd_view_meaning(const hd_view *v) {
  return v->view.meaning == VIEW_SAME_BYTES ? HD_SAME_BYTES : HD_SAME_STORAGE;
}

void hd_view_pages(const hd_view *v, int64_t *out_parts, int64_t *out_heads) {
  *out_parts = v->view.parts;
  *out_heads = v->view.heads;
}
