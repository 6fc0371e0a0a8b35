#include "shipped.h"
#include <string.h>

const char *shipped_find(const char *name) {
  for (size_t i = 0; i < shipped_count(); i++)
    if (strcmp(shipped_name_at(i), name) == 0) return shipped_text_at(i);
  return NULL;
}
