#include "fuzz.h"
#include "../../generator/descriptor.h"
#include "../../runtime/launch/launch.h"
#include <string.h>

/* What a launcher computes from it, with sizes as an engine may give them. */
static void launch_it(const descriptor *d, uint32_t hash) {
  static const int64_t sizes[] = {0, 1, -1, 7, 4096, INT32_MAX, INT64_MAX, INT64_MIN};
  int64_t dims[DIM_COUNT];
  device_function *functions[DESCRIPTOR_MAX_KERNELS] = {0};
  tensors t = {0};
  diags problems;
  diags_init(&problems);
  for (int i = 0; i < DIM_COUNT; i++, hash = hash * 1664525u + 1013904223u)
    dims[i] = sizes[hash >> 29];
  FUZZ_HOLD(descriptor_lists_bytes(d, dims) >= 0 && descriptor_workspace_bytes(d, dims) >= 0);
  for (int i = 0; i < TENSOR_COUNT; i++)
    t.present[i] = true;
  launch_pack pack;
  (void)launch_pack_init(d, functions, &t, dims, 1, &pack, &problems);
  for (int k = 0; k < d->kernel_count; k++) {
    uint32_t grid[3];
    size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
    if (!launch_grid(&d->kernels[k], dims, grid, &problems)) FUZZ_HOLD(diags_errors(&problems) > 0);
    FUZZ_HOLD(kernel_arguments_layout(&d->kernels[k], offsets) <= LAUNCH_ARGUMENTS_BYTES);
  }
  (void)launch_splits(split_facts_of(d), 4, 1 << 20, 132);
  diags_finish(&problems);
}

int fuzz_descriptor(const uint8_t *bytes, size_t size) {
  descriptor d, again;
  hd_status status = descriptor_parse((const char *)bytes, size, &d);
  FUZZ_HOLD(status == HD_OK || status == HD_INVALID);
  (void)descriptor_is_of_another_version((const char *)bytes, size);
  if (status != HD_OK) return 0;
  text json, json_again;
  text_init(&json);
  text_init(&json_again);
  descriptor_write(&d, &json);
  FUZZ_HOLD(descriptor_parse(text_string(&json), json.length, &again) == HD_OK);
  descriptor_write(&again, &json_again);
  FUZZ_HOLD(strcmp(text_string(&json), text_string(&json_again)) == 0);
  text_finish(&json);
  text_finish(&json_again);
  launch_it(&d, fuzz_hash(bytes, size));
  return 0;
}
