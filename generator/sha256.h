/* SHA-256 (FIPS 180-4). */
#ifndef HEDDLE_SHA256_H
#define HEDDLE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
  uint32_t state[8];
  uint64_t length; /* bytes so far */
  unsigned char block[64];
} sha256;

void sha256_init(sha256 *s);
void sha256_update(sha256 *s, const void *data, size_t length);
void sha256_digest(sha256 *s, unsigned char out_digest[32]);
/* Lower-case hex of the digest of one buffer, NUL-terminated. */
void sha256_hex(const void *data, size_t length, char out_hex[65]);
void sha256_digest_hex(const unsigned char digest[32], char out_hex[65]);
/* Whether `word` is such hex. */
bool sha256_is_hex(const char *word);

#endif
