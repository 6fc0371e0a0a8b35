/* Reads what an AMD code object says of itself: ELF machine, kernels, and each kernel's resources from the
 * msgpack note. */
#ifndef HEDDLE_CODEOBJECT_H
#define HEDDLE_CODEOBJECT_H

#include "../../generator/diag.h"
#include <stdint.h>

enum { CODEOBJECT_MAX_KERNELS = 16, CODEOBJECT_MAX_ARGUMENTS = 64 };

typedef struct codeobject_argument {
  char name[32];       /* may be "" */
  char value_kind[40]; /* "by_value", "global_buffer", "hidden_block_count_x" … */
  uint32_t offset, size;
} codeobject_argument;

typedef struct codeobject_kernel {
  char symbol[64];
  uint64_t descriptor_offset;  /* file offset of the 64-byte kernel descriptor (SYMBOL.kd) */
  uint64_t descriptor_address; /* its virtual address */
  uint32_t vgprs, agprs, sgprs, vgpr_spills, sgpr_spills;
  uint32_t static_lds, scratch, kernarg_size, kernarg_align, max_workgroup, wave;
  int argument_count;
  codeobject_argument arguments[CODEOBJECT_MAX_ARGUMENTS];
} codeobject_kernel;

typedef struct codeobject {
  uint32_t machine; /* e_flags & 0xff */
  char target[16];  /* heddle's name, "" when unknown */
  int kernel_count;
  codeobject_kernel kernels[CODEOBJECT_MAX_KERNELS];
} codeobject;

/* Checks every offset it follows: hostile input gives HD_INVALID with a diagnostic. */
hd_status codeobject_parse(const void *bytes, size_t size, codeobject *out_object, diags *errors);

#endif
