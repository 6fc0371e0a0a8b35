/* What binding shares between its files: bind.c knows which tensors a contract has, bind_check.c whether the
 * caller's fit, by what each shows alone (bind_present.c), the sizes they have together (bind_sizes.c,
 * bind_shapes.c) and their strides (bind_strides.c). */
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

/* One binding in progress. Every step refuses what it finds, and clears `good`; those behind it may count on
 * what it found. */
typedef struct binding {
  const contract *contract;
  operation operation;
  const tensors *tensors;
  int64_t *dims;
  diags *errors;
  bool good;
} binding;

static inline const tensor *binding_tensor(const binding *b, tensor_name name) {
  return &b->tensors->by_name[name];
}

/* "NAME is FOUND, expected ALLOWED: REASON"; `reason` may be NULL. */
void binding_refuse(binding *b, const char *code, const char *field, const char *found, const char *allowed,
                    const char *reason);
/* `reason` is the part of the message that says why, NULL when the shapes speak for themselves. `known`: dims
 * are complete, so the expected shape is also given in numbers. */
void binding_refuse_shape(binding *b, tensor_name name, bool known, const char *reason);

/* Which tensors are there that shouldn't be, which are missing, and what each shows without the others. */
void binding_check_presence(binding *b);
/* Scales that come as numbers: there where the contract says so, and nowhere else. */
void binding_check_numbers(binding *b);

/* The sizes of a page and a head, by the caches' own shapes. */
void binding_check_caches(binding *b);
void binding_infer_decode(binding *b);
void binding_infer_write(binding *b);
/* Pages from the cache's b dimension, or from its size when it is flat. */
int64_t binding_read_pages(binding *b);

/* Sizes travel to kernels as int32. */
void binding_check_sizes(binding *b);
/* Lists of pages, and of tokens, that could name more than kernels count. */
void binding_check_tokens(binding *b);
void binding_check_shapes(binding *b);

void binding_solve_strides(binding *b);

#endif
