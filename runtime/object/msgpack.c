#include "msgpack.h"
#include <string.h>

/* What follows a lead byte: a big-endian number of `width` bytes that is the value itself, a length of
 * payload bytes (plus `extra`: an extension's type byte) or a count of items. */
typedef enum payload { PAYLOAD_VALUE, PAYLOAD_BYTES, PAYLOAD_ITEMS } payload;

static const struct lead {
  unsigned char first, last; /* lead bytes */
  unsigned char mask;        /* bits of the lead byte that are the number itself, when width is 0 */
  unsigned char width, extra;
  msgpack_kind kind;
  payload payload;
} leads[] = {
    {0x00, 0x7f, 0x7f, 0, 0, MSGPACK_UNSIGNED, PAYLOAD_VALUE},
    {0x80, 0x8f, 0x0f, 0, 0, MSGPACK_MAP, PAYLOAD_ITEMS},
    {0x90, 0x9f, 0x0f, 0, 0, MSGPACK_ARRAY, PAYLOAD_ITEMS},
    {0xa0, 0xbf, 0x1f, 0, 0, MSGPACK_STRING, PAYLOAD_BYTES},
    {0xc0, 0xc0, 0, 0, 0, MSGPACK_OTHER, PAYLOAD_VALUE}, /* nil */
    {0xc2, 0xc3, 0, 0, 0, MSGPACK_OTHER, PAYLOAD_VALUE}, /* false, true */
    {0xc4, 0xc4, 0, 1, 0, MSGPACK_OTHER, PAYLOAD_BYTES}, /* bin 8, 16, 32 */
    {0xc5, 0xc5, 0, 2, 0, MSGPACK_OTHER, PAYLOAD_BYTES},
    {0xc6, 0xc6, 0, 4, 0, MSGPACK_OTHER, PAYLOAD_BYTES},
    {0xc7, 0xc7, 0, 1, 1, MSGPACK_OTHER, PAYLOAD_BYTES}, /* ext 8, 16, 32 */
    {0xc8, 0xc8, 0, 2, 1, MSGPACK_OTHER, PAYLOAD_BYTES},
    {0xc9, 0xc9, 0, 4, 1, MSGPACK_OTHER, PAYLOAD_BYTES},
    {0xca, 0xca, 0, 4, 0, MSGPACK_OTHER, PAYLOAD_VALUE}, /* float 32, 64 */
    {0xcb, 0xcb, 0, 8, 0, MSGPACK_OTHER, PAYLOAD_VALUE},
    {0xcc, 0xcc, 0, 1, 0, MSGPACK_UNSIGNED, PAYLOAD_VALUE},
    {0xcd, 0xcd, 0, 2, 0, MSGPACK_UNSIGNED, PAYLOAD_VALUE},
    {0xce, 0xce, 0, 4, 0, MSGPACK_UNSIGNED, PAYLOAD_VALUE},
    {0xcf, 0xcf, 0, 8, 0, MSGPACK_UNSIGNED, PAYLOAD_VALUE},
    {0xd0, 0xd0, 0, 1, 0, MSGPACK_OTHER, PAYLOAD_VALUE}, /* int 8 to 64 */
    {0xd1, 0xd1, 0, 2, 0, MSGPACK_OTHER, PAYLOAD_VALUE},
    {0xd2, 0xd2, 0, 4, 0, MSGPACK_OTHER, PAYLOAD_VALUE},
    {0xd3, 0xd3, 0, 8, 0, MSGPACK_OTHER, PAYLOAD_VALUE},
    {0xd9, 0xd9, 0, 1, 0, MSGPACK_STRING, PAYLOAD_BYTES},
    {0xda, 0xda, 0, 2, 0, MSGPACK_STRING, PAYLOAD_BYTES},
    {0xdb, 0xdb, 0, 4, 0, MSGPACK_STRING, PAYLOAD_BYTES},
    {0xdc, 0xdc, 0, 2, 0, MSGPACK_ARRAY, PAYLOAD_ITEMS},
    {0xdd, 0xdd, 0, 4, 0, MSGPACK_ARRAY, PAYLOAD_ITEMS},
    {0xde, 0xde, 0, 2, 0, MSGPACK_MAP, PAYLOAD_ITEMS},
    {0xdf, 0xdf, 0, 4, 0, MSGPACK_MAP, PAYLOAD_ITEMS},
    {0xe0, 0xff, 0, 0, 0, MSGPACK_OTHER, PAYLOAD_VALUE}, /* negative fixint */
};

static const struct lead *lead_find(unsigned char byte) {
  for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
    if (byte >= leads[i].first && byte <= leads[i].last) return &leads[i];
  }
  return NULL; /* 0xc1, and fixext (0xd4 to 0xd8), which no code object has */
}

bool msgpack_next(msgpack *m, msgpack_item *out_item) {
  if (m->at >= m->size) return false;
  size_t at = m->at;
  unsigned char byte = m->bytes[at++];
  const struct lead *lead = lead_find(byte);
  if (lead == NULL || lead->width > m->size - at) return false;
  uint64_t number = byte & lead->mask;
  for (int i = 0; i < lead->width; i++)
    number = number << 8 | m->bytes[at++];
  msgpack_item item = {.kind = lead->kind, .number = number};
  if (lead->payload == PAYLOAD_ITEMS) {
    uint64_t items = lead->kind == MSGPACK_MAP ? 2 * number : number; /* number < 2^32 */
    if (items > m->size - at) return false;
  } else if (lead->payload == PAYLOAD_BYTES) {
    if (number + lead->extra > m->size - at) return false;
    item.string = (const char *)m->bytes + at;
    item.length = (size_t)number;
    at += (size_t)number + lead->extra;
  }
  m->at = at;
  *out_item = item;
  return true;
}

bool msgpack_skip(msgpack *m) {
  /* Bounded: each container adds at most the bytes left, and each step uses up at least one byte. */
  for (uint64_t pending = 1; pending > 0; pending--) {
    msgpack_item item;
    if (!msgpack_next(m, &item)) return false;
    if (item.kind == MSGPACK_ARRAY)
      pending += item.number;
    else if (item.kind == MSGPACK_MAP)
      pending += 2 * item.number;
  }
  return true;
}

bool msgpack_is(const msgpack_item *item, const char *string) {
  return item->kind == MSGPACK_STRING && item->length == strlen(string) &&
         memcmp(item->string, string, item->length) == 0;
}
