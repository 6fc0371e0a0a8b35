#include "match_hint.h"

#include <string.h>

/* Formats and tensors that are the same in every spec of a form: a length is int32. */
static bool is_of_form(const diag *d, const tensors *t) {
  static const tensor_name fixed[] = {TENSOR_LENGTHS,    TENSOR_KV_INDPTR,     TENSOR_LAST_PAGE_LEN,
                                      TENSOR_BLOCK_LIST, TENSOR_ROW_SEQUENCES, TENSOR_SLOT_MAPPING};
  const bool ragged = t->present[TENSOR_KV_INDICES] || t->present[TENSOR_KV_INDPTR];
  const bool missing = strcmp(d->code, "bind.missing") == 0;
  if (!d->field || (!missing && strcmp(d->code, "bind.dtype") != 0)) return false;
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    if (strcmp(d->field, tensor_name_text(fixed[i])) != 0) continue;
    if (!missing) return true;
    return fixed[i] == TENSOR_LENGTHS ? t->present[TENSOR_PAGE_TABLE] && !ragged
           : fixed[i] == TENSOR_KV_INDPTR || fixed[i] == TENSOR_LAST_PAGE_LEN
               ? ragged
               : fixed[i] == TENSOR_SLOT_MAPPING;
  }
  return false;
}

/* A shape that is judged by the layout's order where a view's strides have another one: a spec that is made
 * of it has memory's order too, and only axes say what its dimensions are. */
static bool is_of_order(const diag *d, const tensors *t) {
  static const char *const codes[] = {"bind.page", "bind.shape", "bind.strides", "bind.head-dim",
                                      "bind.kv-heads"};
  tensor_name name;
  bool judged = false;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    judged |= strcmp(d->code, codes[i]) == 0;
  if (!judged || !d->field || !tensor_name_parse(d->field, &name) || !t->present[name]) return false;
  const tensor *one = &t->by_name[name];
  for (int i = 1; one->strided && !one->axes && i < one->rank; i++)
    if (one->strides[i] > one->strides[i - 1] && one->shape[i] > 1 && one->shape[i - 1] > 1) return true;
  return false;
}

/* Declines that are about the tensors and the device: no other spec would be without them. */
static bool is_of_tensors(const diag *d, const tensors *t) {
  static const char *const codes[] = {
      "bind.alignment", "bind.dialect",        "bind.overlap", "bind.size",    "bind.stride-alignment",
      "match.length",   "match.contradiction", "match.prefix", "match.target", "match.incumbent",
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (strcmp(d->code, codes[i]) == 0) return true;
  if (is_of_form(d, t) || is_of_order(d, t)) return true;
  /* Bytes of a cache of codes: heddle new, too, wants to be told which. */
  return strcmp(d->code, "bind.dtype") == 0 && d->found && strcmp(d->found, dtype_name(DTYPE_UINT8)) == 0;
}

const char *match_hint_code(const match_answer *answers, int count, const tensors *t) {
  const char *code = NULL;
  for (int i = 0; i < count; i++) {
    const diags *d = &answers[i].declines;
    size_t at = 0;
    while (at < d->count && !is_of_tensors(&d->items[at], t))
      at++;
    if (at == d->count) return NULL;
    if (!code) code = d->items[at].code;
  }
  return code;
}
