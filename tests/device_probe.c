/* Opens a device by name and says what came of it, on one line: "status code: message". Run by test_device.c,
 * also under another dynamic loader. */
#include "../runtime/device.h"
#include <stdio.h>

int main(int count, char **arguments) {
  device *d = NULL;
  diags errors;
  device_facts facts = {0};
  if (count != 2) return 2;
  diags_init(&errors);
  hd_status status = device_open(arguments[1], &d, &errors);
  if (status == HD_OK) d->vtable->facts(d, &facts);
  const char *code = errors.count > 0 ? errors.items[0].code : "device.open";
  const char *message = errors.count > 0 ? errors.items[0].message : facts.name;
  printf("%s %s: %s\n", hd_status_text(status), code, message);
  device_close(d);
  diags_finish(&errors);
  return 0;
}
