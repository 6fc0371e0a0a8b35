/* A reader of MessagePack, as much of it as AMD code-object metadata uses: nil, booleans, integers, strings,
 * arrays and maps (other types can be skipped). Bounded: it never reads beyond the buffer and never recurses.
 */
#ifndef HEDDLE_MSGPACK_H
#define HEDDLE_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum msgpack_kind {
  MSGPACK_UNSIGNED,
  MSGPACK_STRING,
  MSGPACK_ARRAY,
  MSGPACK_MAP,
  MSGPACK_OTHER /* nil, bool, negative, float, binary, extension: read over */
} msgpack_kind;

typedef struct msgpack_item {
  msgpack_kind kind;
  uint64_t number;    /* the value; for arrays the elements, for maps the pairs that follow */
  const char *string; /* not NUL-terminated, in the buffer */
  size_t length;
} msgpack_item;

typedef struct msgpack {
  const unsigned char *bytes;
  size_t size, at;
} msgpack;

/* The next item; an array's or map's contents follow as items of their own. False at a malformed or missing
 * one. A container that claims more items than bytes are left is malformed, so loops over `number` are
 * bounded by the buffer. */
bool msgpack_next(msgpack *m, msgpack_item *out_item);
/* Reads over one whole value. */
bool msgpack_skip(msgpack *m);
bool msgpack_is(const msgpack_item *item, const char *string);

#endif
