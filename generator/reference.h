/* The oracle: plain C, float64, reads stored bytes through the layout algebra one element at a time. Slow and
 * obvious on purpose. All pointers are host memory; docs/spec.md has the shapes. The contract's dialect must
 * be resolved (contract_resolve). Functions keep no state and may run in several threads. */
#ifndef HEDDLE_REFERENCE_H
#define HEDDLE_REFERENCE_H

#include "contract.h"

typedef struct reference_cache {
  const void *data;           /* first byte of element (0,0,0,0) */
  int64_t stride_b, stride_h; /* elements; ignored for axes the layout lacks */
} reference_cache;

/* Caches and scales that the contract has no array for are not looked at: V where it lies in K, scales inside
 * their cache's pages. Where the pages hold more than codes the data is the page's bytes, and strides count
 * codes. */

/* What the sum of one channel of one row is made of: how near a kernel can come to it, whose weights
 * (probability times V scale) have a limited format. */
typedef struct reference_terms {
  double squares; /* of probability times value, summed over the visible tokens */
  double codes;   /* magnitudes of the codes of V, summed over those whose scale is not 0 */
  double weight;  /* the largest of theirs */
} reference_terms;

/* Selection. An item is what has a list of pages of its own: select.per makes it a sequence, a (sequence, kv
 * head) or a (sequence, row), numbered in that order, outermost first.
 *
 *   table   page_table [items, table_pages], lengths [seqs], or [seqs*rows] when select.per is row
 *   indptr  kv_indptr [items + 1], kv_indices [kv_indptr[items]], last_page_len [items]
 *   blocks  page_table [seqs, table_pages], lengths [seqs], block_list [kv_heads, seqs*rows, listed]: a row
 * sees the tokens of the listed blocks among those it would see without a list; -1 and blocks past the end
 * list nothing, order and repetition mean nothing. When select.per is row: lengths [seqs*rows], page_table
 * [table_rows, table_pages] and row_sequences [seqs*rows], the row of the table that each query row looks up
 *   tokens  token_list [seqs*rows, listed], or [kv_heads, seqs*rows, listed] when select.per is kv_head: page
 * ids (pages hold one token); negative ones list nothing, an id counts as often as it is listed
 *
 * Of `length` tokens row i of R sees the first length - R + i + 1 when the mask is causal and all of them
 * when it is not; when select.per is row, the length is the row's own and the mask takes nothing away. A
 * window leaves the last `window` positions of those. Page ids, kv_indices and the table are in select.index
 * and are looked at for visible tokens only. */
typedef struct reference_decode_args {
  int64_t seqs, rows, kv_heads, table_pages, pages;
  const void *q; /* query dtype [seqs*rows, kv_heads*g, head_dim.qk] */
  reference_cache k_cache, v_cache, k_scale,
      v_scale; /* scales unused when the contract has none; tensor: [1], or the number that is an argument */
  const void *page_table;
  const int32_t *lengths;
  const int32_t *kv_indptr, *last_page_len;
  const void *kv_indices;
  const int32_t *block_list;
  const void *token_list; /* in select.index */
  int64_t listed;         /* list entries of a row */
  int64_t listed_stride_h,
      listed_stride_row; /* entries from one kv head's lists to the next, from row to row */
  const int32_t *row_sequences;
  int64_t table_rows;
  const float *sinks;  /* [kv_heads*g] or NULL: logits, natural-log units; read when the mask has sinks */
  double logits_scale; /* used when the contract says `argument` */
  double *out;         /* [seqs*rows, kv_heads*g, head_dim.v], unrounded */
  double *lse; /* [seqs*rows, kv_heads*g] or NULL; natural log of the denominator, the sink included; -inf
                  when it is 0 */
  reference_terms *terms; /* [seqs*rows, kv_heads*g, head_dim.v] or NULL */
} reference_decode_args;

/* HD_INVALID with a diagnostic when a visible page id is outside the cache, or a length outside the table. */
hd_status reference_decode(const contract *c, const reference_decode_args *args, diags *diags);

typedef struct reference_write_args {
  int64_t tokens, kv_heads, pages;
  const void *k, *v;           /* query dtype [tokens, kv_heads, head_dim]; v is not read where V lies in K */
  const int64_t *slot_mapping; /* [tokens]; page * page_size + slot, < 0: skip */
  void *k_cache, *v_cache;     /* written in place */
  void *k_scale,
      *v_scale; /* written (token, token_head, group), read (tensor, also the number that is an argument;
                   head, page_head), or NULL (none) */
  int64_t k_stride_b, k_stride_h, v_stride_b, v_stride_h; /* elements */
  int64_t k_scale_stride_b, k_scale_stride_h, v_scale_stride_b, v_scale_stride_h;
} reference_write_args;

/* What the generated writer stores, bit for bit. x is an element widened to fp32 (exact); every operation
 * below is one IEEE fp32 operation, rounded to nearest even, denormals kept.
 *
 * Scale, for the elements that share one (token: all heads of the token; token_head: one head of it; group:
 * group_k/group_v channels of one head), those of a tail left out:
 *   amax = largest |x| of those that are not NaN, 0 when there are none
 *   s    = amax == 0 ? (zero_row is a value ? value : amax_floor / qmax) : max(amax, amax_floor) / qmax
 *   stored = s in scale.dtype: fp32 as it is; fp16 to nearest even, at most 65504; e8m0 up to the next power
 * of two, so that no code overflows, within 2^-127 .. 2^127 For tensor, head and page_head the stored scale
 * is given.
 *
 * Code: s = stored widened to fp32; q = s == 0 && x is not NaN ? 0 : x / s; code = q in the cache's format as
 * dtype_encode rounds it. Without scales q = x, and a cache in the query's own format gets the bytes as they
 * are. A NaN becomes the format's NaN, whose sign and payload are not part of the contract.
 *
 * HD_INVALID, and nothing written, when a slot lies outside the cache. Of two tokens for one slot the later
 * one stays. */
hd_status reference_write(const contract *c, const reference_write_args *args, diags *diags);

#endif
