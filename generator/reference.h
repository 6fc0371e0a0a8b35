/* The oracle: plain C, float64, reads stored bytes through the layout algebra one element at a time. Slow and
 * obvious on purpose. All pointers are host memory; see the spec for shapes. */
#ifndef HEDDLE_REFERENCE_H
#define HEDDLE_REFERENCE_H

#include "contract.h"

typedef struct reference_cache {
  const void *data;     /* first byte of element (0,0,0,0) */
  int64_t stride_b, stride_h; /* elements */
} reference_cache;

typedef struct reference_decode_args {
  int64_t seqs, rows, kv_heads, table_pages, pages;
  const void *q;                 /* query dtype [seqs*rows, kv_heads*g, head_dim.qk] */
  reference_cache k_cache, v_cache, k_scale, v_scale; /* scales unused when the contract has none; tensor: [1] */
  const int32_t *page_table;     /* [seqs, table_pages] or [seqs, kv_heads, table_pages] */
  const int32_t *lengths;        /* [seqs] */
  const float *sinks;            /* [kv_heads*g] or NULL */
  double logits_scale;           /* used when the contract says `argument` */
  double *out;                   /* [seqs*rows, kv_heads*g, head_dim.v], unrounded */
  double *lse;                   /* [seqs*rows, kv_heads*g] or NULL; natural log, -inf when nothing is visible */
} reference_decode_args;

/* HD_INVALID with a diagnostic when a visible page id is outside the cache. */
hd_status reference_decode(const contract *c, const reference_decode_args *args, diags *diags);

typedef struct reference_write_args {
  int64_t tokens, kv_heads, pages;
  const void *k, *v;             /* query dtype [tokens, kv_heads, head_dim] */
  const int64_t *slot_mapping;   /* [tokens]; page * page_size + slot, < 0: skip */
  void *k_cache, *v_cache;       /* written in place */
  void *k_scale, *v_scale;       /* written in place (token_head, …) or read (tensor); NULL when none */
  int64_t k_stride_b, k_stride_h, v_stride_b, v_stride_h; /* elements */
  int64_t k_scale_stride_b, k_scale_stride_h, v_scale_stride_b, v_scale_stride_h;
} reference_write_args;

/* Bit-exact statement of what the generated writer stores: fp32 arithmetic in the order docs/spec.md gives. */
hd_status reference_write(const contract *c, const reference_write_args *args, diags *diags);

#endif
