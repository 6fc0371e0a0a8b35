/* What each tensor shows by itself: whether it is there, its format, density and address. */
#include "../../generator/page_parts.h"
#include "bind_parts.h"
#include "strides.h"

#include <stdio.h>

static bool is_e4m3(dtype d) {
  return d == DTYPE_FP8_E4M3 || d == DTYPE_FP8_E4M3FN || d == DTYPE_FP8_E4M3FNUZ;
}

/* Whether a cache's pages are records of bytes: codes of one byte beside something else. */
static bool is_record(const contract *c, tensor_name name, dtype codes) {
  page_part parts[PAGE_MAX_PARTS];
  if ((name != TENSOR_K_CACHE && name != TENSOR_V_CACHE) || dtype_bytes(codes) != 1) return false;
  return page_parts(c, name == TENSOR_K_CACHE, parts) > 1 || layout_is_padded(bind_layout(c, name));
}

static void check_format(binding *b, tensor_name name, dtype expected) {
  dtype found = binding_tensor(b, name)->dtype;
  if (found == expected || (found == DTYPE_UINT8 && is_record(b->contract, name, expected))) return;
  const char *field = tensor_name_text(name);
  if (is_e4m3(found) && is_e4m3(expected))
    binding_refuse(b, "bind.dialect", field, dtype_name(found), dtype_name(expected),
                   "the same byte is another number in another dialect");
  else if (found == DTYPE_UINT8 && dtype_bytes(expected) == 1)
    binding_refuse(b, "bind.dtype", field, dtype_name(found), dtype_name(expected),
                   "bytes don't say what they are, and only pages of records may be called so");
  else
    binding_refuse(b, "bind.dtype", field, dtype_name(found), dtype_name(expected), NULL);
}

/* Whether the rows of a page table that isn't dense have one stride, and the entries of a row lie together.
 */
static bool table_rows_fit(const tensor *t) {
  if (t->rank < 2 || (t->shape[t->rank - 1] > 1 && tensor_stride(t, t->rank - 1) != 1)) return false;
  int64_t row = tensor_stride(t, t->rank - 2), rows_of_all;
  if (t->rank == 3 && t->shape[1] == 1) row = tensor_stride(t, 0);
  if (row < t->shape[t->rank - 1] || row > INT32_MAX) return false;
  if (t->rank == 2 || t->shape[0] <= 1 || t->shape[1] <= 1) return true;
  return !__builtin_mul_overflow(row, t->shape[1], &rows_of_all) && tensor_stride(t, 0) == rows_of_all;
}

/* Tensors that kernels read and write by their shape alone. Caches and scales: strides_solve. */
static void check_dense(binding *b, tensor_name name) {
  const tensor *t = binding_tensor(b, name);
  if (bind_layout(b->contract, name) || tensor_is_dense(t)) return;
  bool table = name == TENSOR_PAGE_TABLE, list = name == TENSOR_BLOCK_LIST || name == TENSOR_TOKEN_LIST;
  if (table && table_rows_fit(t)) return;
  if (list && t->rank > 0 && (t->shape[t->rank - 1] <= 1 || tensor_stride(t, t->rank - 1) == 1)) return;
  text found;
  text_init(&found);
  text_add(&found, "strided ");
  tensor_write_strides(t, &found);
  binding_refuse(b, "bind.strides", tensor_name_text(name), text_string(&found),
                 table  ? "entries that lie together in rows of one stride"
                 : list ? "entries of a list that lie together"
                        : "dense and row-major",
                 NULL);
  text_finish(&found);
}

static void check_present(binding *b, tensor_name name, dtype expected) {
  const tensor *t = binding_tensor(b, name);
  bool sound = t->rank >= 0 && t->rank <= TENSOR_MAX_RANK;
  for (int i = 0; sound && i < t->rank; i++)
    sound = t->shape[i] >= 0;
  if (!sound) {
    binding_refuse(b, "bind.shape", tensor_name_text(name), "of an impossible shape", "extents of 0 and more",
                   NULL);
    return;
  }
  check_format(b, name, expected);
  check_dense(b, name);
  char allowed[32];
  const int bytes = bind_alignment(name, expected);
  if (t->data % (uint64_t)bytes == 0) return;
  snprintf(allowed, sizeof allowed, "a multiple of %d bytes", bytes);
  diags_refusef(b->errors, "bind.alignment", tensor_name_text(name), "another address", allowed,
                "%s lies at an address that is not %s", tensor_name_text(name), allowed);
  b->good = false;
}

static void refuse_missing(binding *b, tensor_name name, dtype expected_type) {
  text expected;
  text_init(&expected);
  text_addf(&expected, "%s ", dtype_name(expected_type));
  bind_expected_shape(b->contract, name, &expected);
  diags_refusef(b->errors, "bind.missing", tensor_name_text(name), "none", text_string(&expected),
                "%s is missing: %s needs %s", tensor_name_text(name), operation_name(b->operation),
                text_string(&expected));
  text_finish(&expected);
  b->good = false;
}

void binding_check_numbers(binding *b) {
  const scale_number *const numbers[] = {&b->tensors->k_scale, &b->tensors->v_scale};
  for (int i = 0; i < 2; i++) {
    const char *name = tensor_name_text(i == 0 ? TENSOR_K_SCALE : TENSOR_V_SCALE);
    bool wanted = bind_takes_number(b->contract, i == 0);
    if (numbers[i]->given == wanted) continue;
    if (wanted)
      diags_refusef(b->errors, "bind.missing", name, "none", "a number",
                    "%s is missing: %s needs it as a number, since scale.source is argument", name,
                    operation_name(b->operation));
    else
      diags_refusef(b->errors, "bind.unneeded", name, "a number", "none",
                    "%s takes no number %s under this contract", operation_name(b->operation), name);
    b->good = false;
  }
}

void binding_check_presence(binding *b) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor_role role = bind_role(b->contract, b->operation, name);
    bool present = b->tensors->present[name];
    dtype type;
    int rank;
    if (name == TENSOR_WORKSPACE) continue;
    if (present && role == ROLE_NONE) {
      bind_refuse_unneeded(b->contract, b->operation, name, b->errors);
      b->good = false;
    }
    if (role == ROLE_NONE || !bind_form(b->contract, name, &type, &rank)) continue;
    if (present)
      check_present(b, name, type);
    else if (role != ROLE_OUTPUT)
      refuse_missing(b, name, type);
  }
}
