#include "sha256.h"
#include "sha256_blocks.h"
#include <string.h>

/* FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes. */
const uint32_t sha256_round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int bits) {
  return x >> bits | x << (32 - bits);
}

static void add_block(uint32_t state[8], const unsigned char block[64]) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i++) {
    uint32_t sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
    uint32_t temporary1 = h + sum1 + ((e & f) ^ (~e & g)) + sha256_round_constants[i] + w[i];
    uint32_t sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
    uint32_t temporary2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + temporary1;
    d = c, c = b, b = a, a = temporary1 + temporary2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_blocks_portable(uint32_t state[8], const unsigned char *blocks, size_t count) {
  for (size_t i = 0; i < count; i++)
    add_block(state, blocks + 64 * i);
}

static void add_blocks(uint32_t state[8], const unsigned char *blocks, size_t count) {
  (sha256_has_instructions() ? sha256_blocks_instructions : sha256_blocks_portable)(state, blocks, count);
}

void sha256_init(sha256 *s) {
  *s = (sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                          0x5be0cd19}};
}

void sha256_update(sha256 *s, const void *data, size_t length) {
  const unsigned char *bytes = data;
  const size_t filled = (size_t)(s->length % 64);
  s->length += length;
  if (filled > 0 || length < 64) {
    const size_t count = length < 64 - filled ? length : 64 - filled;
    if (count > 0) memcpy(s->block + filled, bytes, count);
    if (filled + count < 64) return;
    add_blocks(s->state, s->block, 1);
    bytes += count;
    length -= count;
  }
  if (length >= 64) add_blocks(s->state, bytes, length / 64);
  if (length % 64 > 0) memcpy(s->block, bytes + length / 64 * 64, length % 64);
}

void sha256_digest(sha256 *s, unsigned char out_digest[32]) {
  unsigned char tail[72] = {0x80};
  uint64_t bits = s->length * 8;
  size_t padding = (size_t)(s->length % 64 < 56 ? 56 - s->length % 64 : 120 - s->length % 64);
  for (int i = 0; i < 8; i++)
    tail[padding + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_update(s, tail, padding + 8);
  for (int i = 0; i < 32; i++)
    out_digest[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

static const char digits[] = "0123456789abcdef";

void sha256_digest_hex(const unsigned char digest[32], char out_hex[65]) {
  for (int i = 0; i < 32; i++) {
    out_hex[2 * i] = digits[digest[i] >> 4];
    out_hex[2 * i + 1] = digits[digest[i] & 15];
  }
  out_hex[64] = '\0';
}

void sha256_hex(const void *data, size_t length, char out_hex[65]) {
  sha256 s;
  unsigned char digest[32];
  sha256_init(&s);
  sha256_update(&s, data, length);
  sha256_digest(&s, digest);
  sha256_digest_hex(digest, out_hex);
}

bool sha256_is_hex(const char *word) {
  return strlen(word) == 64 && strspn(word, digits) == 64;
}
