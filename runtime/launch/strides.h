/* Which bytes a strided tensor means, and whether a contract's layout means the same ones. */
#ifndef HEDDLE_STRIDES_H
#define HEDDLE_STRIDES_H

#include "launch.h"

/* Alignment in bytes of every tensor's first element, and of the strides that a load may step by. */
enum { LOAD_BYTES = 16 };

/* Elements from one index of a dimension to the next, dense tensors included. */
int64_t tensor_stride(const tensor *t, int dimension);
/* Whether its elements lie in row-major order without gaps. Dimensions of one index have any stride. */
bool tensor_is_dense(const tensor *t);
/* "[2048, 16, 1]" */
void tensor_write_strides(const tensor *t, text *out);

typedef struct strides_question {
  const char *name; /* of the tensor, for messages */
  const tensor *tensor;
  const layout *layout; /* not empty */
  int64_t pages, heads;
  bool packed;  /* the contract fixes the strides of b and h too */
  bool updated; /* written to: no two elements may share a byte */
} strides_question;

/* The strides of b and h under which the layout means the tensor's bytes, element for element. The tensor's
 * shape has been checked. False, with "bind.strides", "bind.stride-alignment" or "bind.overlap" in `errors`,
 * when there are none. */
bool strides_solve(const strides_question *q, int64_t *out_stride_b, int64_t *out_stride_h, diags *errors);

#endif
