/* Writes FOLDER/NAME.npy for `heddle reference`. type: "<f4"; shape: "3, 8, 64", "3,". Failures end the
 * program. */
#ifndef ENGINE_DUMP_H
#define ENGINE_DUMP_H

#include <stddef.h>

void dump_npy(const char *folder, const char *name, const char *type, const char *shape, const void *data,
              size_t bytes);

#endif
