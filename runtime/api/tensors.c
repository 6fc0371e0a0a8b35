/* Tensors as the interface has them, and as binding takes them. */
#include "parts.h"
#include <stdlib.h>
#include <string.h>

static const dtype dtypes[] = {
#define X(name, text, bytes, max, encoding, uses, format, cosine) [HD_##name] = name,
    DTYPE_TENSOR_LIST(X)
#undef X
};
enum { PUBLIC_DTYPES = sizeof dtypes / sizeof *dtypes };

static const tensor_name names[] = {
    [HD_TENSOR_Q] = TENSOR_Q,
    [HD_TENSOR_K_CACHE] = TENSOR_K_CACHE,
    [HD_TENSOR_V_CACHE] = TENSOR_V_CACHE,
    [HD_TENSOR_K_SCALE] = TENSOR_K_SCALE,
    [HD_TENSOR_V_SCALE] = TENSOR_V_SCALE,
    [HD_TENSOR_PAGE_TABLE] = TENSOR_PAGE_TABLE,
    [HD_TENSOR_LENGTHS] = TENSOR_LENGTHS,
    [HD_TENSOR_KV_INDPTR] = TENSOR_KV_INDPTR,
    [HD_TENSOR_KV_INDICES] = TENSOR_KV_INDICES,
    [HD_TENSOR_LAST_PAGE_LEN] = TENSOR_LAST_PAGE_LEN,
    [HD_TENSOR_SINKS] = TENSOR_SINKS,
    [HD_TENSOR_K] = TENSOR_K,
    [HD_TENSOR_V] = TENSOR_V,
    [HD_TENSOR_SLOT_MAPPING] = TENSOR_SLOT_MAPPING,
    [HD_TENSOR_OUT] = TENSOR_OUT,
    [HD_TENSOR_LSE] = TENSOR_LSE,
    [HD_TENSOR_BLOCK_LIST] = TENSOR_BLOCK_LIST,
    [HD_TENSOR_TOKEN_LIST] = TENSOR_TOKEN_LIST,
    [HD_TENSOR_ROW_SEQUENCES] = TENSOR_ROW_SEQUENCES,
};
enum { PUBLIC_NAMES = sizeof names / sizeof *names };
_Static_assert((int)HD_MAX_RANK == (int)TENSOR_MAX_RANK, "a tensor's rank is the same on both sides");

const char *hd_dtype_text(hd_dtype d) {
  return (unsigned)d < PUBLIC_DTYPES ? dtype_name(dtypes[d]) : NULL;
}

int hd_dtype_bytes(hd_dtype d) {
  return (unsigned)d < PUBLIC_DTYPES ? dtype_bytes(dtypes[d]) : 0;
}

const char *hd_tensor_text(hd_tensor_name name) {
  return (unsigned)name < PUBLIC_NAMES ? tensor_name_text(names[name]) : NULL;
}

hd_status hd_tensor_find(const char *words, hd_tensor_name *out_name) {
  tensor_name name;
  if (words == NULL || out_name == NULL || !tensor_name_parse(words, &name)) return HD_INVALID;
  return api_tensor_name_back(name, out_name) ? HD_OK : HD_INVALID;
}

bool api_tensor_name(hd_tensor_name name, tensor_name *out_name) {
  if ((unsigned)name >= PUBLIC_NAMES) return false;
  *out_name = names[name];
  return true;
}

bool api_tensor_name_back(tensor_name name, hd_tensor_name *out_name) {
  for (int i = 0; i < PUBLIC_NAMES; i++) {
    if (names[i] != name) continue;
    *out_name = (hd_tensor_name)i;
    return true;
  }
  return false;
}

bool api_dtype_back(dtype d, hd_dtype *out_dtype) {
  for (int i = 0; i < PUBLIC_DTYPES; i++) {
    if (dtypes[i] != d) continue;
    *out_dtype = (hd_dtype)i;
    return true;
  }
  return false;
}

bool api_operation(hd_operation o, operation *out_operation) {
  static const operation operations[] = {[HD_WRITE] = OPERATION_WRITE, [HD_DECODE] = OPERATION_DECODE};
  if ((unsigned)o >= sizeof operations / sizeof *operations) return false;
  *out_operation = operations[o];
  return true;
}

static hd_status refuse(diags *errors, size_t index, const char *field, const char *why) {
  diags_errorf(errors, "launch.tensor", field, "tensor %zu of the list%s%s %s", index, field ? ", " : "",
               field ? field : "", why);
  return HD_INVALID;
}

void api_scale_numbers(const float *k_scale, const float *v_scale, tensors *out) {
  out->k_scale = k_scale != NULL ? (scale_number){true, *k_scale} : (scale_number){0};
  out->v_scale = v_scale != NULL ? (scale_number){true, *v_scale} : (scale_number){0};
}

hd_status api_tensors(const hd_tensor *from, size_t count, tensors *out, diags *errors) {
  memset(out->present, 0, sizeof out->present);
  api_scale_numbers(NULL, NULL, out);
  if (from == NULL && count > 0) {
    diags_errorf(errors, "launch.tensor", NULL, "the list of %zu tensors is missing", count);
    return HD_INVALID;
  }
  for (size_t i = 0; i < count; i++) {
    const hd_tensor *t = &from[i];
    if ((unsigned)t->name >= PUBLIC_NAMES) return refuse(errors, i, NULL, "has a name that is none");
    tensor_name name = names[t->name];
    const char *words = tensor_name_text(name);
    if (out->present[name]) return refuse(errors, i, words, "is given twice");
    if ((unsigned)t->dtype >= PUBLIC_DTYPES) return refuse(errors, i, words, "has a dtype that is none");
    if (t->rank < 0 || t->rank > HD_MAX_RANK) return refuse(errors, i, words, "has more than 16 dimensions");
    if (t->rank > 0 && t->shape == NULL) return refuse(errors, i, words, "has no shape");
    tensor *to = &out->by_name[name];
    to->dtype = dtypes[t->dtype];
    to->rank = t->rank;
    to->data = t->address;
    to->strided = t->strides != NULL;
    to->axes = t->axes != NULL ? &t->axes->layout : NULL;
    size_t bytes = (size_t)t->rank * sizeof to->shape[0];
    if (bytes > 0) memcpy(to->shape, t->shape, bytes);
    if (bytes > 0 && to->strided) memcpy(to->strides, t->strides, bytes);
    out->present[name] = true;
  }
  return HD_OK;
}

void api_tensor_addresses(const hd_tensor *from, size_t count, tensors *out) {
  memset(out->present, 0, sizeof out->present);
  for (size_t i = 0; i < count; i++) {
    const tensor_name name = names[from[i].name];
    out->present[name] = true;
    out->by_name[name].data = from[i].address;
  }
}

/* "[b, h, d/16, s, d%16]" cut at its commas; `copy` is overwritten. 0 for too many or an unknown letter. */
static int cut_factors(char *copy, const char *items[LAYOUT_MAX_FACTORS], unsigned *out_axes) {
  static const char letters[] = "bhsd";
  int count = 0;
  char *left = NULL;
  *out_axes = 0;
  for (char *item = strtok_r(copy, "[], ", &left); item != NULL; item = strtok_r(NULL, "[], ", &left)) {
    const char *letter = strchr(letters, item[0]);
    if (count == LAYOUT_MAX_FACTORS || letter == NULL) return 0;
    *out_axes |= 1u << (letter - letters);
    items[count++] = item;
  }
  return count;
}

hd_status hd_axes_parse(const char *words, int64_t page, int64_t head_dim, hd_axes **out_axes,
                        hd_diagnostics *diagnostics) {
  static atomic_uint_least64_t made;
  api_call call;
  if (words == NULL || out_axes == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  const char *items[LAYOUT_MAX_FACTORS];
  unsigned mask;
  layout_error why = {.message = "at most 16 factors over b, h, s and d are expected"};
  hd_axes *axes = calloc(1, sizeof *axes);
  char *copy = strdup(words);
  hd_status status = axes != NULL && copy != NULL ? HD_OK : HD_OUT_OF_MEMORY;
  int count = status == HD_OK ? cut_factors(copy, items, &mask) : 0;
  if (status == HD_OK && (count == 0 || page <= 0 || head_dim <= 0 ||
                          !layout_parse(items, count, mask, page, head_dim, &axes->layout, &why))) {
    diags_errorf(call.errors, "launch.axes", NULL, "\"%s\": %s", words, why.message);
    status = HD_INVALID;
  }
  free(copy);
  if (status == HD_OK) {
    axes->number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    *out_axes = axes;
  } else {
    free(axes);
  }
  return api_end(&call, status);
}

void hd_axes_destroy(hd_axes *axes) {
  free(axes);
}
