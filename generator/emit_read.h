/* The read kernel: reads the bytes a decode has to read, and nothing else. Benchmarks hold decode against it.
 */
#ifndef HEDDLE_EMIT_READ_H
#define HEDDLE_EMIT_READ_H

#include "emit.h"

/* What visible tokens occupy: tokens * (kv_heads * token_head + token) bytes of K, V and scales. Scales that
 * a page or more shares are left out: less than a thousandth. */
typedef struct read_bytes {
  int64_t token_head, token;
} read_bytes;

read_bytes read_bytes_of(const contract *c);

/* One kernel, "heddle_read": DIM_SPLITS workgroups read the bytes of DIM_TOKENS tokens, which lie end to end
 * from k_cache. `out` is a tensor of at least 4 bytes that is not written. */
hd_status emit_read(const contract *c, const variant *v, const target *t, const template_source *templates,
                    text *out_source, descriptor *out_descriptor, diags *errors);

#endif
