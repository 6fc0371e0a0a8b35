/* Binding tensors to a kernel and launching it. */
#ifndef HEDDLE_LAUNCH_H
#define HEDDLE_LAUNCH_H

#include "../generator/contract.h"
#include "../generator/descriptor.h"
#include "device.h"

enum { TENSOR_MAX_RANK = LAYOUT_MAX_FACTORS };

/* A tensor as the caller has it. Strides are in elements; dense row-major when stride_count is 0. */
typedef struct tensor {
  dtype dtype;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
  uint64_t data; /* device or host address */
} tensor;

typedef struct tensors {
  tensor by_name[TENSOR_COUNT];
  bool present[TENSOR_COUNT];
} tensors;

/* Works out every dim from the tensors' shapes and checks all of them against the contract (operation: "write" or
 * "decode"). Everything that does not fit is refused by name: what was found, what was expected. `splits` 0: chosen by policy
 * for `compute_units`. */
hd_status bind_dims(const contract *c, const char *operation, const tensors *t, int64_t out_dims[DIM_COUNT], diags *diags);

/* The expected shape of `name` as text ("[seqs*rows, q_heads, 128]"), for messages and --help. */
void bind_expected_shape(const contract *c, tensor_name name, text *out);

/* Split count by policy: spec of kernels.md (split-K and merge). `longest`: tokens of the longest sequence. */
int64_t split_policy(int64_t seqs, int64_t kv_heads, int64_t longest, int64_t tile_tokens, int compute_units);

/* Packs arguments and launches every kernel of the operation on the stream. No allocation, no lock, no sync. `functions` in the
 * descriptor's kernel order. */
hd_status launch_operation(device *d, device_stream *s, const descriptor *desc, device_function *const *functions,
                           const tensors *t, const int64_t dims[DIM_COUNT], float logits_scale, diags *diags);

#endif
