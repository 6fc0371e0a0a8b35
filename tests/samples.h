/* The code objects of tests/data/sample_kernels.hip, as the build made them. */
#ifndef HEDDLE_TESTS_SAMPLES_H
#define HEDDLE_TESTS_SAMPLES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A heap buffer with the code object for a target. */
static inline unsigned char *sample_read(const char *target_name, size_t *out_size) {
  const char *build = getenv("HEDDLE_BUILD");
  char path[4096];
  cr_assert(build != NULL, "HEDDLE_BUILD names the build folder");
  snprintf(path, sizeof path, "%s/tests/sample_%s.co", build, target_name);
  FILE *file = fopen(path, "rb");
  cr_assert(file != NULL, "%s: run by the build, which makes it", path);
  unsigned char *bytes = malloc(1 << 20);
  *out_size = fread(bytes, 1, 1 << 20, file);
  cr_assert(*out_size > 0 && *out_size < 1 << 20);
  fclose(file);
  return bytes;
}

#endif
