/* The contract: everything two programs must agree on to share a KV cache and to call a kernel. Field meanings:
 * docs/spec.md. A contract is plain data: copying the struct copies it. */
#ifndef HEDDLE_CONTRACT_H
#define HEDDLE_CONTRACT_H

#include "diag.h"
#include "dtype.h"
#include "layout.h"

enum { KERNEL_WRITE = 1, KERNEL_DECODE = 2 };

typedef enum granularity {
  SCALE_NONE,
  SCALE_TENSOR,
  SCALE_HEAD,
  SCALE_TOKEN,
  SCALE_TOKEN_HEAD,
  SCALE_PAGE_HEAD,
  SCALE_GROUP
} granularity;

typedef enum zero_row { ZERO_ROW_VALUE, ZERO_ROW_FLOOR } zero_row; /* FLOOR: floor / qmax is stored */
typedef enum select_form { SELECT_TABLE, SELECT_INDPTR, SELECT_BLOCKS } select_form;
typedef enum select_per { PER_SEQUENCE, PER_KV_HEAD, PER_ROW } select_per;
typedef enum logits_scale { LOGITS_ARGUMENT, LOGITS_RSQRT_D, LOGITS_NUMBER } logits_scale;

typedef struct contract {
  unsigned kernels; /* KERNEL_WRITE | KERNEL_DECODE */
  struct {
    dtype dtype;
    int heads_per_kv; /* GQA group g, 1..64 */
    int rows;         /* most query rows per sequence, 1..8 */
  } query;
  struct {
    int qk, v;
  } head_dim;
  struct {
    dtype k_dtype, v_dtype;
    int page; /* tokens per page */
    layout k, v;
    bool packed; /* strides of b and h fixed to the dense ones */
  } kv;
  struct {
    granularity granularity;
    int group_k, group_v; /* channels per scale, SCALE_GROUP only */
    dtype dtype;
    layout k, v; /* over b, h, s as the granularity has them; count 0 for none and tensor */
    struct {
      double amax_floor;
      zero_row zero_row;
      double zero_value; /* stored for an all-zero row when zero_row is ZERO_ROW_VALUE */
      double qmax;       /* 0: the dialect's largest value */
    } writer;
  } scale;
  struct {
    select_form form;
    dtype index;
    select_per per;
  } select;
  struct {
    bool causal;
    int window; /* tokens, 0 = none */
    bool sinks; /* one sink logit per query head */
  } mask;
  struct {
    logits_scale scale;
    double number; /* LOGITS_NUMBER */
    double softcap; /* 0 = none */
  } logits;
  struct {
    dtype dtype;
    bool lse;
  } output;
} contract;

/* Canonical text: every field, defaults written out, fixed order, one spelling per value. */
void contract_write(const contract *c, text *out);
/* Lower-case hex SHA-256 of the canonical text, NUL-terminated. HD_OUT_OF_MEMORY is the only failure. */
hd_status contract_key(const contract *c, char out_hex[65]);
/* The contract with fp8_e4m3 (and with it qmax: dialect) resolved to `dialect`. */
contract contract_resolve(const contract *c, dtype dialect);
/* Appends "field: a → b" lines (one a field) for fields that differ; returns how many do. */
size_t contract_diff(const contract *a, const contract *b, text *out);
/* Number of scale elements per (page, head, slot): helper for readers. Whether axis `a` indexes the scales. */
unsigned contract_scale_axes(granularity g); /* mask of 1 << axis */

#endif
