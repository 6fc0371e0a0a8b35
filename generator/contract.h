/* The contract: everything two programs must agree on to share a KV cache and to call a kernel. Field
 * meanings: docs/spec.md. A contract is plain data: copying the struct copies it. */
#ifndef HEDDLE_CONTRACT_H
#define HEDDLE_CONTRACT_H

#include "diag.h"
#include "dtype.h"
#include "layout.h"
#include "operation.h"

/* Words of the spec language. X(enumerator, word) or X(enumerator, word, …); specs, canonical text and
 * messages all take their spelling from here. */
/* The axes are those that index the scale array (d counts groups). */
#define GRANULARITY_LIST(X)                                                                                  \
  X(SCALE_NONE, "none", 0)                                                                                   \
  X(SCALE_TENSOR, "tensor", 0)                                                                               \
  X(SCALE_HEAD, "head", 1 << AXIS_H)                                                                         \
  X(SCALE_TOKEN, "token", 1 << AXIS_B | 1 << AXIS_S)                                                         \
  X(SCALE_TOKEN_HEAD, "token_head", 1 << AXIS_B | 1 << AXIS_H | 1 << AXIS_S)                                 \
  X(SCALE_PAGE_HEAD, "page_head", 1 << AXIS_B | 1 << AXIS_H)                                                 \
  X(SCALE_GROUP, "group", 1 << AXIS_B | 1 << AXIS_H | 1 << AXIS_S | 1 << AXIS_D)

#define SELECT_FORM_LIST(X)                                                                                  \
  X(SELECT_TABLE, "table")                                                                                   \
  X(SELECT_INDPTR, "indptr")                                                                                 \
  X(SELECT_BLOCKS, "blocks")                                                                                 \
  X(SELECT_TOKENS, "tokens")

#define SELECT_PER_LIST(X)                                                                                   \
  X(PER_SEQUENCE, "sequence")                                                                                \
  X(PER_KV_HEAD, "kv_head")                                                                                  \
  X(PER_ROW, "row")

typedef enum granularity {
#define X(name, word, axes) name,
  GRANULARITY_LIST(X)
#undef X
} granularity;

typedef enum zero_row { ZERO_ROW_VALUE, ZERO_ROW_FLOOR } zero_row; /* FLOOR: floor / qmax is stored */

typedef enum select_form {
#define X(name, word) name,
  SELECT_FORM_LIST(X)
#undef X
} select_form;

typedef enum select_per {
#define X(name, word) name,
  SELECT_PER_LIST(X)
#undef X
} select_per;

typedef enum logits_scale { LOGITS_ARGUMENT, LOGITS_RSQRT_D, LOGITS_NUMBER } logits_scale;

typedef struct contract {
  unsigned kernels; /* bits of operation.h: KERNEL_WRITE | KERNEL_DECODE */
  struct {
    dtype dtype;
    int heads_per_kv; /* GQA group g, 1..128 */
    int rows;         /* most query rows per sequence, 1..8 */
  } query;
  struct {
    int qk, v;
  } head_dim;
  struct {
    dtype k_dtype, v_dtype;
    int page;    /* tokens per page */
    layout k, v; /* of the channels that are stored as codes: contract_coded. Without h: one kv head */
    bool packed; /* strides of b and h fixed to the dense ones */
    bool v_in_k; /* V is the first head_dim.v channels of K. v, v_dtype, scale.v, scale.group_v and scale.v_at
                    are then K's, and there is no V cache */
    struct {     /* the last channels of K, stored as values of another format in the same page */
      int channels; /* 0: there is no tail */
      dtype dtype;
      int64_t at; /* bytes from the start of the page */
      layout layout;
    } tail;
  } kv;
  struct {
    granularity granularity;
    bool argument; /* SCALE_TENSOR only: the caller gives K's and V's as fp32 numbers at every launch */
    int group_k, group_v; /* channels per scale, SCALE_GROUP only */
    dtype dtype;
    layout k, v; /* over b, h, s as the granularity has them; count 0 for none and tensor */
    bool inside; /* the scales lie in the pages of the cache they belong to, whose page and head strides, in
                    bytes, are theirs */
    int64_t k_at, v_at; /* bytes from the start of the page, when inside */
    struct {
      double amax_floor, scale_floor; /* least amax, and least that is stored */
      zero_row zero_row;
      double zero_value; /* stored for an all-zero row when zero_row is ZERO_ROW_VALUE */
      double qmax;       /* 0: the dialect's largest value */
    } writer;
  } scale;
  struct {
    select_form form;
    int block; /* tokens of a block, SELECT_BLOCKS only */
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
    double number;  /* LOGITS_NUMBER */
    double softcap; /* 0 = none */
  } logits;
  struct {
    dtype dtype;
    bool lse;
  } output;
} contract;

/* Numbers (amax_floor, scale_floor, zero_value, qmax, number, softcap) are fp32 values. Layouts stand as the
 * spec has them, so that arrays keep the shape their owner gave them; the canonical text has them in fewest
 * factors.
 */

/* Canonical text: every field that applies, defaults written out, fixed order, one spelling per value. It is
 * itself a spec that means the same contract. */
void contract_write(const contract *c, text *out);
/* Lower-case hex SHA-256 of the canonical text, NUL-terminated. HD_OUT_OF_MEMORY is the only failure. */
hd_status contract_key(const contract *c, char out_hex[65]);
/* The contract with fp8_e4m3 resolved to `dialect`, and with it `qmax: dialect` to its number where K and V
 * agree on one. */
contract contract_resolve(const contract *c, dtype dialect);
/* Appends "field: a → b" lines (one a field) for fields that differ; a field that does not apply on one side
 * reads
 * "(absent)". Returns how many differ. */
size_t contract_diff(const contract *a, const contract *b, text *out);

bool contract_has_operation(const contract *c, operation o);

/* Which axes index the scale array: mask of 1 << axis; d counts groups. 0 for none and tensor. */
unsigned contract_scale_axes(granularity g);
/* Whether scales lie in pages' places, and are looked up for every visible token. Otherwise a kv head has one
 * for K and one for V, or none. */
bool contract_token_scales(const contract *c);
/* Whether the scales lie in arrays of their own: not in the cache's pages, not given as numbers. */
bool contract_scale_arrays(const contract *c);
/* Whether the writer works the scale out of the row it stores (token, token_head, group). Otherwise it is
 * given the scale, or there is none, and the writer's rule does not apply. */
bool contract_writer_scales(granularity g);
const char *granularity_name(granularity g);
/* Channels of K and of V that are stored as codes at kv.k and kv.v: all but those of the tail. */
int contract_coded_k(const contract *c);
int contract_coded_v(const contract *c);

/* Whether the caller lists what a row attends to, and the page lists that decode reads are made of that on
 * the device (blocks, tokens). */
bool contract_makes_lists(const contract *c);
/* Whether each query row comes with a length or list of its own: rows are then sequences of one row. */
bool contract_rows_are_sequences(const contract *c);
/* Most query rows of a sequence: query.rows, or 1 where rows are sequences. */
int contract_most_rows(const contract *c);
/* Whether each query row has a list of pages of its own. Otherwise the rows of a sequence share one. */
bool contract_rows_have_lists(const contract *c);

#endif
