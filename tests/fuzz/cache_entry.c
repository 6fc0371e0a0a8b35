#include "fuzz.h"
#include "../../runtime/cache/cache_file.h"
#include <string.h>

static void verify(const uint8_t *bytes, size_t size, const char *key) {
  cache_file file;
  descriptor d;
  diags problems;
  diags_init(&problems);
  hd_status status = cache_file_verify(bytes, size, key, &file, &d, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_INVALID && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    const uint8_t *code = file.code_object;
    FUZZ_HOLD(file.key_text_size + file.descriptor_size + file.code_object_size + CACHE_FILE_HEADER == size);
    FUZZ_HOLD(code >= bytes && code + file.code_object_size == bytes + size);
    FUZZ_HOLD(d.kernel_count >= 1 && d.kernel_count <= DESCRIPTOR_MAX_KERNELS);
  }
  diags_finish(&problems);
}

int fuzz_cache_entry(const uint8_t *bytes, size_t size) {
  char key[65] = "";
  uint8_t *sealed = fuzz_seal_entry(bytes, size, key);
  verify(bytes, size, key);
  if (sealed != NULL) verify(sealed, size, key);
  free(sealed);
  return 0;
}
