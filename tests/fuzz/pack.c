#include "fuzz.h"
#include "../../runtime/cache/cache_file.h"
#include "../../runtime/cache/pack_file.h"
#include <string.h>

/* As cache_pack.c reads one: the index first, then entries where it says. */
static void read_pack(const uint8_t *bytes, size_t size) {
  size_t index_size = 0, row = 0;
  diags problems;
  diags_init(&problems);
  hd_status status = size < PACK_HEADER ? HD_INVALID : pack_index_size(bytes, size, &index_size, &problems);
  FUZZ_HOLD(status != HD_OK || index_size <= size);
  if (status == HD_OK) status = pack_index_check(bytes, index_size, &problems);
  for (size_t i = 0; status == HD_OK && i < pack_count(bytes); i++) {
    pack_row r = pack_row_at(bytes, i);
    cache_file file;
    descriptor d;
    FUZZ_HOLD(r.offset <= size && r.size <= size - r.offset);
    FUZZ_HOLD(pack_find_key(bytes, r.key, &row) && row == i);
    FUZZ_HOLD(pack_find_source_key(bytes, r.source_key, &row) && row <= i);
    (void)cache_file_verify(bytes + r.offset, (size_t)r.size, r.key, &file, &d, &problems);
  }
  diags_finish(&problems);
}

int fuzz_pack(const uint8_t *bytes, size_t size) {
  uint8_t *sealed = fuzz_seal_pack(bytes, size);
  read_pack(bytes, size);
  if (sealed != NULL) read_pack(sealed, size);
  free(sealed);
  return 0;
}
