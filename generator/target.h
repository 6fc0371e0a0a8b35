/* The target table: one row an architecture, one row a matrix instruction. Facts and sources:
 * docs/targets.md. */
#ifndef HEDDLE_TARGET_H
#define HEDDLE_TARGET_H

#include "dtype.h"
#include <stddef.h>

typedef enum target_family { FAMILY_CDNA, FAMILY_RDNA, FAMILY_CUDA } target_family;

/* A matrix instruction as the generator uses it. "Rows" are the kv side (tokens, then channels), "columns"
 * the query heads. lane -> (row, group): row = lane / row_stride % rows, group = lane / group_stride %
 * groups; each lane holds `elements` k values of its row and, in the accumulator, `row_run` consecutive rows
 * (group * row_run + r) of `columns_per_lane` columns. */
typedef struct matrix_op {
  const char *name; /* "mfma_f32_16x16x32_fp8_fp8" */
  dtype operand;
  int k; /* products per instruction along k */
  int rows, columns;
  int row_stride, groups, group_stride, elements, row_run, columns_per_lane;
  const char *operand_type; /* C type of an operand; NULL: the call takes fragments as they are */
  const char *call;         /* source text: the product of kv and other, added to acc */
} matrix_op;

/* What a launch's time is estimated from, per compute unit and clock, by datasheets. */
typedef struct target_rates {
  double clock;           /* Hz; 0: no figures, no estimate */
  double matrix_flops[5]; /* of elements of 64, 32, 16, 8 and 4 bits */
  int issue_clocks;       /* between two instructions of one wave */
} target_rates;

typedef struct target {
  const char *name; /* "gfx950", "sm_90" */
  const char *product;
  target_family family;
  int wave;      /* lanes */
  int lds_bytes; /* per workgroup */
  int vgprs;     /* architectural registers a wave may use before it spills */
  /* A unit is what shares one LDS: a compute unit, a work-group processor, an SM. 0: nothing public
   * says it. */
  int unit_lds;
  int unit_compute_units; /* 2 in a work-group processor */
  int unit_simds;
  int unit_workgroups;    /* resident at most */
  int simd_waves;         /* resident at most */
  int simd_vgprs;         /* for one lane, shared by its waves; what a wave may use where unknown */
  int vgpr_granule;       /* registers of a wave are given out in multiples of this */
  dtype fp8;              /* the dialect its fp8 instructions speak */
  unsigned elf_machine;   /* e_flags & 0xff of an AMD code object; 0 for others */
  double hbm_bytes_per_s; /* datasheet */
  int compute_units;      /* datasheet: CUs or SMs */
  target_rates rates;
  const char *prelude;      /* template file with the family's helpers */
  const char *ring_prelude; /* helpers of the ring structure; NULL: the target has none yet */
  const matrix_op *ops;
  size_t op_count;
} target;

size_t target_count(void);
const target *target_at(size_t index);
const target *target_find(const char *name); /* NULL when unknown */
/* Whether `name` is, or begins, one of its products' names, in letters of any size: "mi300x", "H100". */
bool target_is_sold_as(const target *t, const char *name);

#endif
