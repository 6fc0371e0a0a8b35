#include "dump.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 128 }; /* bytes, the magic ones included */

void dump_npy(const char *folder, const char *name, const char *type, const char *shape, const void *data,
              size_t bytes) {
  static const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER - 10, 0};
  char path[1024], header[HEADER - 10 + 1];
  int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        type, shape);
  memset(header + length, ' ', sizeof header - (size_t)length);
  header[HEADER - 10 - 1] = '\n';
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  FILE *file = fopen(path, "wb");
  size_t written = 0;
  if (file != NULL)
    written = fwrite(magic, 1, sizeof magic, file) + fwrite(header, 1, HEADER - 10, file) +
              fwrite(data, 1, bytes, file);
  if (file == NULL || fclose(file) != 0 || written != HEADER + bytes) {
    perror(path);
    exit(3);
  }
}
