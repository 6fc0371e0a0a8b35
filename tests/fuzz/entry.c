/* libFuzzer's entry point, for the target that the build names. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  return FUZZ_TARGET(bytes, size);
}
