/* Many cache entries as one file, to be shipped and only read. Format: docs/cache.md. Pure: bytes in, bytes
 * out; the same entries give the same bytes, in whatever order they come.
 *
 *   0  magic "\x8bhdpack\n"
 *   8  format version, u32 little endian; 12 reserved, 0
 *  16  number of entries, bytes of the whole file: u64 each
 *  32  SHA-256 of the bytes 0..31 and of the index
 *  64  index, sorted by key, 80 bytes an entry: key, source key (32 bytes each), offset, size (u64 each)
 *      entries as in the cache folder (cache_file.h), in the order of the index, with nothing between them
 */
#ifndef HEDDLE_PACK_FILE_H
#define HEDDLE_PACK_FILE_H

#include "../../generator/diag.h"
#include "../../generator/text.h"
#include <stdint.h>

enum { PACK_VERSION = 1, PACK_HEADER = 64, PACK_ROW = 80, PACK_MOST_ENTRIES = 1 << 20 };

/* An entry that is to be packed: its file's bytes, which were checked. */
typedef struct pack_item {
  const void *bytes;
  size_t size;
} pack_item;

/* The key without what says how it was compiled: SHA-256 of the key text before its line "compiler:". */
void pack_source_key(const char *key_text, size_t size, char out_key[65]);

/* Entries that come twice are written once. HD_INVALID for what isn't the head of an entry. */
hd_status pack_write(const pack_item *items, size_t count, text *out, diags *errors);

typedef struct pack_row {
  char key[65], source_key[65];
  uint64_t offset, size; /* bytes in the file */
} pack_row;

/* The size of header and index, from the first PACK_HEADER bytes of a file of `file_size` bytes. HD_INVALID
 * with "cache.pack". */
hd_status pack_index_size(const void *header, uint64_t file_size, size_t *out_size, diags *errors);
/* Checks header and index, all of it. HD_INVALID with "cache.pack". */
hd_status pack_index_check(const void *bytes, size_t size, diags *errors);
size_t pack_count(const void *index);
pack_row pack_row_at(const void *index, size_t i);
/* Finds the row of a key, or the first one of a source key. */
bool pack_find_key(const void *index, const char *key, size_t *out_row);
bool pack_find_source_key(const void *index, const char *source_key, size_t *out_row);

#endif
