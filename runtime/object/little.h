/* Little-endian numbers at any address: the formats of files, and ELF. `bytes`: 1 to 8. */
#ifndef HEDDLE_LITTLE_H
#define HEDDLE_LITTLE_H

#include <stdint.h>

static inline void put_little(unsigned char *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++)
    at[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t get_little(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--)
    value = value << 8 | at[i];
  return value;
}

#endif
