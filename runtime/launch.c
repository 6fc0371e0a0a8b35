#include "launch.h"
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

int64_t split_policy(int64_t seqs, int64_t kv_heads, int64_t longest, int64_t tile_tokens,
                     int compute_units) {
  if (seqs <= 0 || kv_heads <= 0 || longest <= 0 || tile_tokens <= 0) return 1;
  int64_t items = seqs * kv_heads;
  int64_t tiles = longest / tile_tokens + (longest % tile_tokens != 0);
  /* Short items: a merge costs more than it saves. Nearly a full device: several small workgroups per unit
   * even the load out. */
  if (tiles <= 8 || items * 100 >= (int64_t)compute_units * 95) return 1;
  int64_t splits = compute_units / items;
  if (splits > tiles / 2) splits = tiles / 2; /* at least two tiles each */
  return splits < 1 ? 1 : splits;
}

enum { ARGUMENTS_MAX_BYTES = DESCRIPTOR_MAX_ARGUMENTS * 8 };

/* The C struct of a kernel's arguments. */
typedef union packed_arguments {
  uint64_t align;
  unsigned char bytes[ARGUMENTS_MAX_BYTES];
} packed_arguments;

/* Lists lie at the start of the workspace, partial results behind them. */
static bool tensor_argument(const kernel_descriptor *k, tensor_name name, const tensors *t,
                            const int64_t dims[DIM_COUNT], int64_t lists_bytes, uint64_t *out_address,
                            diags *errors) {
  bool needed = name != TENSOR_WORKSPACE || dims[DIM_SPLITS] > 1;
  tensor_name from = name == TENSOR_LISTS ? TENSOR_WORKSPACE : name;
  if (needed && !t->present[from]) {
    diags_errorf(errors, "bind.missing", tensor_name_text(from),
                 "kernel %s takes the tensor %s, which is not given", k->symbol, tensor_name_text(from));
    return false;
  }
  *out_address = t->present[from] ? t->by_name[from].data : 0;
  if (name == TENSOR_WORKSPACE && t->present[from]) *out_address += (uint64_t)lists_bytes;
  return true;
}

static bool pack_arguments(const kernel_descriptor *k, const tensors *t, const int64_t dims[DIM_COUNT],
                           int64_t lists_bytes, float scale, packed_arguments *out, size_t *out_size,
                           diags *errors) {
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  size_t size = kernel_arguments_layout(k, offsets);
  if (size > sizeof out->bytes) {
    diags_errorf(errors, "launch.arguments", NULL,
                 "kernel %s takes %zu bytes of arguments, at most %zu are packed", k->symbol, size,
                 sizeof out->bytes);
    return false;
  }
  memset(out, 0, sizeof *out);
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    unsigned char *to = out->bytes + offsets[i];
    size_t bytes = argument_bytes(a);
    if (a.kind == ARGUMENT_TENSOR) {
      uint64_t address;
      if (!tensor_argument(k, (tensor_name)a.index, t, dims, lists_bytes, &address, errors)) return false;
      memcpy(to, &address, sizeof address);
    } else if (a.kind == ARGUMENT_LOGITS_SCALE) {
      memcpy(to, &scale, sizeof scale);
    } else if (bytes == sizeof(int64_t)) {
      memcpy(to, &dims[a.index], sizeof(int64_t));
    } else {
      if (dims[a.index] < INT32_MIN || dims[a.index] > INT32_MAX) {
        diags_errorf(errors, "bind.size", dim_name((dim)a.index),
                     "%s is %" PRId64 ", which does not fit 32 bits", dim_name((dim)a.index), dims[a.index]);
        return false;
      }
      int32_t narrow = (int32_t)dims[a.index];
      memcpy(to, &narrow, sizeof narrow);
    }
  }
  *out_size = size;
  return true;
}

/* False with a diagnostic when the grid is too large; *out_empty when there is nothing to do. */
static bool plan_grid(const kernel_descriptor *k, const int64_t dims[DIM_COUNT], device_launch *launch,
                      bool *out_empty, diags *errors) {
  *out_empty = false;
  for (int i = 0; i < 3; i++) {
    int64_t workgroups = extent_value(&k->grid[i], dims);
    if (workgroups <= 0) *out_empty = true;
    if (workgroups > INT32_MAX) {
      diags_errorf(errors, "launch.grid", NULL,
                   "kernel %s needs %" PRId64 " workgroups in dimension %d, at most %d", k->symbol,
                   workgroups, i, INT32_MAX);
      return false;
    }
    launch->grid[i] = workgroups < 0 ? 0 : (uint32_t)workgroups;
  }
  launch->block[0] = (uint32_t)k->block;
  launch->block[1] = launch->block[2] = 1;
  launch->lds_bytes = (uint32_t)k->lds_bytes;
  return true;
}

hd_status launch_operation(device *d, device_stream *s, const descriptor *desc,
                           device_function *const *functions, const tensors *t, const int64_t dims[DIM_COUNT],
                           float scale, diags *errors) {
  int64_t lists_bytes = descriptor_lists_bytes(desc, dims);
  for (int i = 0; i < desc->kernel_count; i++) {
    const kernel_descriptor *k = &desc->kernels[i];
    if (k->only_when_split && dims[DIM_SPLITS] <= 1) continue;
    packed_arguments arguments;
    device_launch launch = {.arguments = arguments.bytes};
    bool empty;
    if (!pack_arguments(k, t, dims, lists_bytes, scale, &arguments, &launch.arguments_size, errors))
      return HD_INVALID;
    if (!plan_grid(k, dims, &launch, &empty, errors)) return HD_INVALID;
    if (empty) continue;
    hd_status status = d->vtable->launch(d, s, functions[i], &launch, errors);
    if (status != HD_OK) return status;
  }
  return HD_OK;
}
