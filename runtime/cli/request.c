#include "request.h"
#include <stdlib.h>

int cli_request_from(const cli *c, const char *option, match_description *out) {
  enum { LARGEST = 1 << 20 };
  const char *path = cli_text(c, option);
  char *json = NULL;
  size_t length = 0;
  diags d;
  diags_init(&d);
  hd_status status = cli_read_file(path, LARGEST, &json, &length, &d);
  if (status == HD_OK) status = match_read(json, length, out, &d);
  free(json);
  if (status != HD_OK) return cli_fail(c, path, NULL, &d, status);
  diags_finish(&d);
  return EXIT_FINE;
}

int cli_request(const cli *c, match_description *out) {
  return cli_request_from(c, "request", out);
}
