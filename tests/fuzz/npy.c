#include "fuzz.h"
#include "../../runtime/npy.h"
#include <string.h>

/* Written out as an array of this type, it reads as the same array. */
static void hold_written(const npy *n, dtype type, const void *data) {
  tensor t = {.dtype = type, .rank = n->rank};
  npy again;
  text file;
  diags problems;
  memcpy(t.shape, n->shape, sizeof t.shape);
  FUZZ_HOLD(tensor_bytes(&t) == n->data_size);
  diags_init(&problems);
  text_init(&file);
  npy_write(&t, data, &file);
  FUZZ_HOLD(npy_parse(file.data, file.length, &again, &problems) == HD_OK);
  FUZZ_HOLD(again.rank == n->rank && again.data_size == n->data_size && npy_holds(&again, type));
  FUZZ_HOLD(memcmp(again.shape, n->shape, (size_t)n->rank * sizeof *n->shape) == 0);
  FUZZ_HOLD(n->data_size == 0 || memcmp(file.data + again.data_offset, data, n->data_size) == 0);
  text_finish(&file);
  diags_finish(&problems);
}

int fuzz_npy(const uint8_t *bytes, size_t size) {
  npy n;
  char name[16];
  diags problems;
  diags_init(&problems);
  hd_status status = npy_parse(bytes, size, &n, &problems);
  FUZZ_HOLD((status == HD_OK && diags_errors(&problems) == 0) ||
            (status == HD_DECLINED && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    FUZZ_HOLD(n.data_offset <= size && n.data_size == size - n.data_offset);
    FUZZ_HOLD(n.rank >= 0 && n.rank <= TENSOR_MAX_RANK);
    npy_type_name(&n, name, sizeof name);
    for (int type = 0; type < DTYPE_COUNT; type++)
      if (npy_holds(&n, (dtype)type)) hold_written(&n, (dtype)type, bytes + n.data_offset);
  }
  diags_finish(&problems);
  return 0;
}
