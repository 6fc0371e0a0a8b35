/* The layout algebra.
 *
 * A layout is a list of axis factors, outermost first, over b (page), h (kv head), s (slot: token within its
 * page) and d (channel within the head). A factor takes one digit of its axis: (index / divisor) % extent.
 * A factor may be padded: behind its run come elements that belong to something else. But for padding
 * everything inside one page and head is dense; the strides of b and h are free (run-time arguments, in
 * elements) unless the contract packs them. A factor that lies outside h has a stride proportional to the
 * number of kv heads. */
#ifndef HEDDLE_LAYOUT_H
#define HEDDLE_LAYOUT_H

#include "text.h"
#include <stdint.h>

typedef enum axis { AXIS_B, AXIS_H, AXIS_S, AXIS_D, AXIS_COUNT } axis;

enum { LAYOUT_MAX_FACTORS = 16 };

typedef struct layout_factor {
  axis axis;
  int64_t divisor; /* 1 for the innermost digit of the axis */
  int64_t extent;  /* number of values of the digit; 0 for b and h, whose extent is known at run time */
  int pad; /* elements behind the run of this factor and all inside it. A bare number N is a digit of d
              with one value and a pad of N - 1 */
} layout_factor;

typedef struct layout {
  int count;
  layout_factor factors[LAYOUT_MAX_FACTORS];
  int64_t size[AXIS_COUNT]; /* page tokens and head_dim; 0 for b and h; 0 for an axis the layout lacks */
} layout;

/* Where a factor lies: stride = elements * (times_heads ? kv_heads * head_stride : 1). For b and h themselves
 * the stride is the run-time argument. */
typedef struct layout_stride {
  int64_t elements;
  bool times_heads;
} layout_stride;

typedef struct layout_error {
  int item; /* which factor, or -1 for the layout as a whole */
  char message[200];
} layout_error;

/* `items`: factor strings such as "d%64/16", "d+4", "33". `axes`: bit mask (1 << AXIS_S | …) of the axes that
 * must each appear exactly once, whole or split. `page` and `head_dim`: sizes of s and d. */
bool layout_parse(const char *const *items, int count, unsigned axes, int64_t page, int64_t head_dim,
                  layout *out_layout, layout_error *out_error);

/* Fewest factors with the same meaning: drops digits of extent 1, joins neighbours that form one digit. */
void layout_canonicalize(layout *l);
/* "[b, h, d/16, s, d%16]" */
void layout_write(const layout *l, text *out);
bool layout_equal(const layout *a, const layout *b);

/* Stride of factor `index` inside the layout (see layout_stride); b and h give {0, false}. */
layout_stride layout_factor_stride(const layout *l, int index);
/* Whether an s or d factor lies outside h, so that offsets inside a page depend on the number of kv heads. */
bool layout_outside_head(const layout *l);
/* Elements one (page, head) occupies when only s and d factors count, padding included. */
int64_t layout_inner_elements(const layout *l);
/* Elements of the packed array, padding included. */
int64_t layout_elements(const layout *l, int64_t pages, int64_t heads);
bool layout_has_axis(const layout *l, axis a);
bool layout_is_padded(const layout *l);
/* Packed strides of b and h in elements for `heads` kv heads (and `pages` pages, needed when b is not
 * outermost). */
void layout_packed_strides(const layout *l, int64_t pages, int64_t heads, int64_t *out_stride_b,
                           int64_t *out_stride_h);
/* Element offset of (page, head, slot, channel). */
int64_t layout_offset(const layout *l, int64_t stride_b, int64_t stride_h, int64_t heads, int64_t page,
                      int64_t head, int64_t slot, int64_t channel);
/* The shape of the packed array in factor order, outermost first: one extent per factor, its padding counted
 * in its steps; returns the rank. Where some padding is no whole number of steps: the leading factors of b and
 * h, then one dimension of all elements inside them. */
int layout_shape(const layout *l, int64_t pages, int64_t heads, int64_t out_shape[LAYOUT_MAX_FACTORS]);

/* How many consecutive indices of `a`, starting at any multiple of the result, are consecutive in memory. 1
 * if none. A run over the whole axis returns its size. */
int64_t layout_run(const layout *l, axis a);
/* The longest part of that run that starts aligned to its own length wherever its page and head do. */
int64_t layout_aligned_run(const layout *l, axis a);
/* A C expression in the variables `slot` and `channel` (and `heads_stride` = kv_heads * head stride) for the
 * element offset inside one page and head. */
void layout_write_offset(const layout *l, const char *slot, const char *channel, const char *heads_stride,
                         text *out);

#endif
