/* The compression function of SHA-256, in portable C and in the processor's own instructions. Both give the
 * same. */
#ifndef HEDDLE_SHA256_BLOCKS_H
#define HEDDLE_SHA256_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_round_constants[64];

/* Takes `count` blocks of 64 bytes in. */
void sha256_blocks_portable(uint32_t state[8], const unsigned char *blocks, size_t count);
/* The same with the SHA extensions of x86-64; only where sha256_has_instructions. */
void sha256_blocks_instructions(uint32_t state[8], const unsigned char *blocks, size_t count);
/* Whether this processor has them. Where heddle has no code for them the answer is no. */
bool sha256_has_instructions(void);

#endif
