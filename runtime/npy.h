/* NumPy's .npy format, versions 1 to 3: one array of a plain type.
 *
 * Reading trusts nothing: a header that lies about its size, a shape whose product overflows or data that is
 * cut short is refused. */
#ifndef HEDDLE_NPY_H
#define HEDDLE_NPY_H

#include "../generator/diag.h"
#include "launch/launch.h"

typedef struct npy {
  char kind;     /* 'f' float, 'i' signed, 'u' unsigned, 'V' raw bytes, 'b' bool … as NumPy has it */
  int item_size; /* bytes */
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
  size_t data_offset, data_size; /* in the file */
} npy;

/* Reads the header of a whole file in memory and checks that the data is there. Little-endian and C order
 * only (Fortran order is taken where it makes no difference). HD_DECLINED with a diagnostic (codes "npy.…").
 */
hd_status npy_parse(const void *file, size_t size, npy *out_npy, diags *errors);

/* Whether the array can stand for elements of `type`: bf16 travels as uint16, fp8 and e8m0 as uint8; raw
 * bytes and signed integers of the same size do as well. */
bool npy_holds(const npy *n, dtype type);
/* "float32", "uint16" … as NumPy calls it; `out` is at least 16 bytes. */
void npy_type_name(const npy *n, char *out, size_t out_size);
/* What NumPy calls the type that `type` travels as: "uint16" for bf16. Static storage. */
const char *npy_travels_as(dtype type);

/* Appends header and data (tensor_bytes(t) bytes at `data`). */
void npy_write(const tensor *t, const void *data, text *out);

#endif
