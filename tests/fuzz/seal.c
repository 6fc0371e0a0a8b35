/* Checksums made right. They find accidents, and would keep a fuzzer from everything behind them. */
#include "fuzz.h"
#include "../../generator/sha256.h"
#include "../../runtime/cache/cache_file.h"
#include "../../runtime/object/little.h"
#include "../../runtime/cache/pack_file.h"
#include <string.h>

static void seal_entry(uint8_t *bytes, size_t size, char out_key[65]) {
  uint64_t left = size - CACHE_FILE_HEADER, text_size = get_little(bytes + 16, 8);
  uint64_t descriptor_size = get_little(bytes + 24, 8);
  sha256 s;
  if (text_size <= left && descriptor_size <= left - text_size)
    put_little(bytes + 32, left - text_size - descriptor_size, 8);
  sha256_init(&s);
  sha256_update(&s, bytes, 40);
  sha256_update(&s, bytes + CACHE_FILE_HEADER, (size_t)left);
  sha256_digest(&s, bytes + 40);
  sha256_hex(bytes + CACHE_FILE_HEADER, (size_t)(text_size <= left ? text_size : left), out_key);
}

static uint8_t *copy(const uint8_t *bytes, size_t size) {
  uint8_t *copied = malloc(size + 1);
  if (copied == NULL) abort();
  memcpy(copied, bytes, size);
  return copied;
}

uint8_t *fuzz_seal_entry(const uint8_t *bytes, size_t size, char out_key[65]) {
  if (size < CACHE_FILE_HEADER) return NULL;
  uint8_t *sealed = copy(bytes, size);
  seal_entry(sealed, size, out_key);
  return sealed;
}

static unsigned digit(char hex) {
  return (unsigned)(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

uint8_t *fuzz_seal_pack(const uint8_t *bytes, size_t size) {
  if (size < PACK_HEADER) return NULL;
  uint8_t *sealed = copy(bytes, size);
  put_little(sealed + 24, size, 8);
  uint64_t count = get_little(sealed + 16, 8), most = (size - PACK_HEADER) / PACK_ROW;
  size_t rows = (size_t)(count < most ? count : most), index_size = PACK_HEADER + rows * PACK_ROW;
  uint64_t offset = index_size;
  put_little(sealed + 16, rows, 8);
  for (size_t i = 0; i < rows; i++) {
    uint8_t *row = sealed + PACK_HEADER + i * PACK_ROW;
    uint64_t entry_size = get_little(row + 72, 8);
    char key[65];
    if (i + 1 == rows || entry_size > size - offset) entry_size = size - offset;
    put_little(row + 64, offset, 8);
    put_little(row + 72, entry_size, 8);
    if (entry_size >= CACHE_FILE_HEADER) {
      seal_entry(sealed + offset, (size_t)entry_size, key);
      for (size_t n = 0; n < 32; n++)
        row[n] = (uint8_t)(digit(key[2 * n]) << 4 | digit(key[2 * n + 1]));
    }
    offset += entry_size;
  }
  sha256 s;
  sha256_init(&s);
  sha256_update(&s, sealed, 32);
  sha256_update(&s, sealed + PACK_HEADER, index_size - PACK_HEADER);
  sha256_digest(&s, sealed + 32);
  return sealed;
}
