/* Views: the same memory under another contract. A view gives shapes and strides, or a decline; it never
 * copies, moves or reads an element. docs/match.md tells when each is of use. */
#ifndef HEDDLE_VIEWS_H
#define HEDDLE_VIEWS_H

#include "../launch/launch.h"

/* What a view promises of every cache and scale tensor in it. */
typedef enum view_meaning {
  VIEW_SAME_BYTES,  /* each element is the byte that it was: a cache written under either contract is read
                       under both */
  VIEW_SAME_STORAGE /* each element lies in the tensor's own memory, but a byte is another element's: whoever
                       reads through the view reads only what was written through it */
} view_meaning;

typedef struct view {
  contract contract; /* what the viewed tensors hold to */
  tensors
      tensors; /* same addresses. Absent: tensors whose values, not only shapes, are others under the view */
  view_meaning meaning; /* what holds of all of them */
  /* Page id under the view of part j of a page, for kv head h: (page * parts + j) * heads + h. */
  int64_t parts, heads;
} view;

/* "page-split": pages of `page` tokens where the contract has longer ones. Part j of a page is its tokens j *
 * page and on.
 *
 * With the slots outermost in a page (NHD; one head of HND; V as [b, h, s/16, d, s%16] with one head) it
 * keeps every byte's meaning. Where channels lie outside the slots (K as [b, h, d/16, s, d%16]) it can't: a
 * page of 128 and eight pages of 16 in the same memory are two orders of the same elements. VIEW_SAME_STORAGE
 * then allows what MiniMax-M3 does: one allocator, whose pages have 128 tokens, and sparse layers that write
 * and read their share of it under the page-16 contract throughout. The pair is
 * (specs/minimax-m3-dense-fp8.yaml with page 128, specs/minimax-m3-sparse-fp8.yaml); a layer that one
 * producer writes under the first and a consumer reads under the second is what corrupts a model, and
 * VIEW_SAME_BYTES declines it.
 *
 * page_table and the ragged lists are absent in the view: their ids are others. slot_mapping and lists of
 * blocks stay as they are.
 * Needs k_cache or v_cache, in the contract's rank. Declines, codes "view.…" and "bind.…": `page` does not
 * divide the contract's or one of its layout's digits; scales that belong to pages; for VIEW_SAME_STORAGE
 * strides that aren't packed, since a padded page's parts would lie in its neighbour's memory. */
hd_status view_page_split(const contract *c, const tensors *t, int page, view_meaning wanted, view *out_view,
                          diags *errors);

/* "collapse-heads": every (page, kv head) is a page of its own with one head, every (query row, kv head) a
 * sequence of its own with one row. Caches [pages, kv_heads, …] become [pages * kv_heads, 1, …], scales
 * alike, q, out and lse [rows, q_heads, …] become [rows * kv_heads, heads_per_kv, …]. Always VIEW_SAME_BYTES.
 * It turns a page list for each kv head into one for each sequence.
 *
 * page_table, lengths, every kind of list and slot_mapping are absent in the view: they have a row for each
 * (query row, kv head), row * kv_heads + h, whose length is the causal one of that row; with lists of blocks
 * and select.per row, row_sequences may still let rows share a table. Declines: strides
 * where pages and heads are not one run (page stride = kv_heads * head stride), factors outside h, scales
 * without a head or without a page, sinks. */
hd_status view_collapse_heads(const contract *c, const tensors *t, view *out_view, diags *errors);

#endif
