#include "status.h"
#include <stddef.h>

const char *hd_status_text(hd_status status) {
  static const char *const texts[] = {
#define X(name, text) text,
      HD_STATUS_LIST(X)
#undef X
  };
  size_t index = (size_t)status;
  return index < sizeof texts / sizeof *texts ? texts[index] : "unknown status";
}
