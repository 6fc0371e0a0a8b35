/* A case's caches and scales with gaps between pages, heads and slots, as hybrid models' caches have them. */
#ifndef HEDDLE_VERIFY_PAD_H
#define HEDDLE_VERIFY_PAD_H

#include "../launch/launch.h"

/* Copies of the caches and scales of `dense` with gaps of each tensor's own size, filled with a pattern; the
 * rest is `dense` itself. Where the contract packs strides, and where a tensor has neither pages nor heads,
 * nothing is copied. `sizes`: DIM_PAGES and DIM_KV_HEADS are read. verify_pad_finish frees the copies. */
hd_status verify_pad(const contract *c, const int64_t sizes[DIM_COUNT], const tensors *dense,
                     tensors *out_padded, diags *errors);
/* The elements of padded `name` back into the dense tensor. False: a byte between elements has changed. */
bool verify_unpad(const contract *c, const int64_t sizes[DIM_COUNT], tensor_name name, const tensors *padded,
                  const tensors *dense);
void verify_pad_finish(const tensors *dense, tensors *padded);

#endif
