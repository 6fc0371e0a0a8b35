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

/* As many parts as run at a time, or a few less where items of one length then begin and end with them. */
static int64_t line_split(int64_t resident, int64_t items) {
  if (items < 1) return resident;
  int64_t each =
      items / resident + (items % resident != 0); /* items of a part, where there are more of them */
  int64_t even = items <= resident ? resident / items * items : items / each + (items % each != 0);
  return even >= resident - resident / 16 ? even : resident;
}

split_facts split_facts_of(const descriptor *desc) {
  split_facts facts = {
      .tile_tokens = desc->tile_tokens, .line_parts = desc->line_parts, .by_row = desc->lists.multiplier > 0};
  for (int i = 0; i < desc->kernel_count && facts.line_parts > 0 && facts.line_shares == 0; i++) {
    const extent *parts = &desc->kernels[i].grid[0], *shares = &desc->kernels[i].grid[1];
    if (parts->dim_count == 1 && parts->dims[0] == DIM_SPLITS && shares->dim_count == 0)
      facts.line_shares = (int)shares->multiplier;
  }
  return facts;
}

int64_t split_items(split_facts facts, int64_t seqs, int64_t rows, int64_t kv_heads) {
  return seqs * kv_heads * (facts.by_row ? rows : 1);
}

int64_t line_resident(split_facts facts, int compute_units) {
  int64_t workgroups = (int64_t)facts.line_parts * compute_units;
  return facts.line_shares > 1 && workgroups > facts.line_shares ? workgroups / facts.line_shares
                                                                 : workgroups;
}

int64_t launch_splits(split_facts facts, int64_t items, int64_t longest, int compute_units) {
  if (facts.line_parts > 0) return line_split(line_resident(facts, compute_units), items);
  return split_policy(items, 1, longest, facts.tile_tokens, compute_units);
}

int64_t useful_splits(split_facts facts, int64_t splits, int64_t longest) {
  int64_t tile = facts.tile_tokens > 0 ? facts.tile_tokens : 1, tiles = (longest + tile - 1) / tile;
  if (facts.line_parts == 0 && splits > tiles) splits = tiles;
  return splits < 1 ? 1 : splits;
}

bool splits_allowed(const spec_ints *factors, int64_t splits) {
  bool any = !factors || factors->count == 0, listed = any && splits >= 1 && splits <= MOST_SPLITS;
  for (int i = 0; !any && i < factors->count; i++)
    listed |= factors->values[i] == splits;
  return listed;
}

int64_t splits_among(const spec_ints *factors, int64_t splits) {
  if (factors->count == 0) return splits < MOST_SPLITS ? splits : MOST_SPLITS;
  int64_t below = 0, least = factors->values[0];
  for (int i = 0; i < factors->count; i++) {
    int64_t factor = factors->values[i];
    if (factor <= splits && factor > below) below = factor;
    if (factor < least) least = factor;
  }
  return below > 0 ? below : least;
}

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
                           int64_t lists_bytes, float scale, launch_part *out, diags *errors) {
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  size_t size = kernel_arguments_layout(k, offsets);
  if (size > sizeof out->arguments.bytes) {
    diags_errorf(errors, "launch.arguments", NULL,
                 "kernel %s takes %zu bytes of arguments, at most %zu are packed", k->symbol, size,
                 sizeof out->arguments.bytes);
    return false;
  }
  memset(out->arguments.bytes, 0, size);
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    unsigned char *to = out->arguments.bytes + offsets[i];
    size_t bytes = argument_bytes(a);
    if (a.kind == ARGUMENT_TENSOR) {
      uint64_t address;
      if (!tensor_argument(k, (tensor_name)a.index, t, dims, lists_bytes, &address, errors)) return false;
      memcpy(to, &address, sizeof address);
    } else if (a.kind == ARGUMENT_NUMBER) {
      const float numbers[NUMBER_COUNT] = {[NUMBER_LOGITS_SCALE] = scale,
                                           [NUMBER_K_SCALE] = t->k_scale.value,
                                           [NUMBER_V_SCALE] = t->v_scale.value};
      memcpy(to, &numbers[a.index], sizeof numbers[0]);
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
  out->launch.arguments_size = size;
  return true;
}

bool launch_grid(const kernel_descriptor *k, const int64_t dims[DIM_COUNT], uint32_t out_grid[3],
                 diags *errors) {
  for (int i = 0; i < 3; i++) {
    const int64_t workgroups = extent_value(&k->grid[i], dims), most = i == 0 ? INT32_MAX : MOST_SPLITS;
    if (workgroups > most) {
      diags_errorf(errors, "launch.grid", NULL,
                   "kernel %s needs %" PRId64 " workgroups in dimension %d, at most %" PRId64, k->symbol,
                   workgroups, i, most);
      return false;
    }
    out_grid[i] = workgroups < 0 ? 0 : (uint32_t)workgroups;
  }
  return true;
}

hd_status launch_pack_init(const descriptor *desc, device_function *const *functions, const tensors *t,
                           const int64_t dims[DIM_COUNT], float scale, launch_pack *out_pack, diags *errors) {
  /* A line's grid says nothing of the batch. */
  const bool idle = desc->line_parts > 0 && dims[DIM_SEQS] <= 0;
  out_pack->count = 0;
  out_pack->lists_bytes = descriptor_lists_bytes(desc, dims);
  for (int i = 0; i < desc->kernel_count; i++) {
    const kernel_descriptor *k = &desc->kernels[i];
    if (k->only_when_split && dims[DIM_SPLITS] <= 1) continue;
    launch_part *part = &out_pack->parts[out_pack->count];
    part->function = functions[i];
    part->kernel = i;
    part->launch = (device_launch){.block = {(uint32_t)k->block, 1, 1},
                                   .lds_bytes = (uint32_t)k->lds_bytes,
                                   .waits_itself = k->waits_itself};
    const uint32_t *grid = part->launch.grid;
    if (!launch_grid(k, dims, part->launch.grid, errors)) return HD_INVALID;
    if (idle || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) continue; /* nor needs it a workspace */
    if (!pack_arguments(k, t, dims, out_pack->lists_bytes, scale, part, errors)) return HD_INVALID;
    out_pack->count++;
  }
  return HD_OK;
}

/* Puts an argument into the part of kernel `kernel`, if that is launched. */
static void put(launch_pack *pack, int kernel, size_t offset, const void *value, size_t bytes) {
  for (int i = 0; i < pack->count; i++)
    if (pack->parts[i].kernel == kernel) memcpy(pack->parts[i].arguments.bytes + offset, value, bytes);
}

bool launch_pack_set_number(launch_pack *pack, const descriptor *desc, number_name n, float value) {
  bool found = false;
  for (int i = 0; i < desc->kernel_count; i++) {
    const kernel_descriptor *k = &desc->kernels[i];
    size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
    kernel_arguments_layout(k, offsets);
    for (int a = 0; a < k->argument_count; a++) {
      if (k->arguments[a].kind != ARGUMENT_NUMBER || k->arguments[a].index != (int)n) continue;
      found = true;
      put(pack, i, offsets[a], &value, sizeof value);
    }
  }
  return found;
}

bool launch_pack_set(launch_pack *pack, const descriptor *desc, tensor_name name, uint64_t address) {
  bool found = false;
  for (int i = 0; i < desc->kernel_count; i++) {
    const kernel_descriptor *k = &desc->kernels[i];
    size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
    kernel_arguments_layout(k, offsets);
    for (int n = 0; n < k->argument_count; n++) {
      tensor_name taken = (tensor_name)k->arguments[n].index;
      bool lists = taken == TENSOR_LISTS && name == TENSOR_WORKSPACE;
      if (k->arguments[n].kind != ARGUMENT_TENSOR || (taken != name && !lists)) continue;
      found = true;
      const uint64_t at = taken == TENSOR_WORKSPACE ? address + (uint64_t)pack->lists_bytes : address;
      put(pack, i, offsets[n], &at, sizeof at);
    }
  }
  return found;
}

hd_status launch_pack_run(device *d, device_stream *s, const launch_pack *pack, diags *errors) {
  for (int i = 0; i < pack->count; i++) {
    const launch_part *part = &pack->parts[i];
    device_launch launch = part->launch;
    launch.arguments = part->arguments.bytes;
    hd_status status = d->vtable->launch(d, s, part->function, &launch, errors);
    if (status != HD_OK) return status;
  }
  return HD_OK;
}

hd_status launch_operation(device *d, device_stream *s, const descriptor *desc,
                           device_function *const *functions, const tensors *t, const int64_t dims[DIM_COUNT],
                           float scale, diags *errors) {
  launch_pack pack;
  hd_status status = launch_pack_init(desc, functions, t, dims, scale, &pack, errors);
  return status == HD_OK ? launch_pack_run(d, s, &pack, errors) : status;
}
