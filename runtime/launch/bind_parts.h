/* What binding shares between its files: bind.c knows which tensors a contract has, bind_check.c whether the
 * caller's fit. */
#ifndef HEDDLE_BIND_PARTS_H
#define HEDDLE_BIND_PARTS_H

#include "launch.h"

/* The layout of a cache or scale tensor; NULL for every other, and for one scale for all. */
const layout *bind_layout(const contract *c, tensor_name name);

/* What bind_tensor says before any size is known. */
bool bind_form(const contract *c, tensor_name name, dtype *out_dtype, int *out_rank);

/* Whether the cache's layout has h; else there is one kv head. */
bool bind_has_heads(const contract *c);
/* A cache or scale tensor in the factors of its layout, where it comes otherwise: with the padding of records
 * counted in its shape, with pages of so many elements, with a dimension for the one kv head of a layout
 * without h (`has_heads` false). What means none of these comes back as it is. */
tensor bind_fold(const layout *l, bool has_heads, const tensor *t);

#endif
