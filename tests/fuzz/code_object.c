#include "fuzz.h"
#include "../../runtime/cache/cache_file.h"
#include "../../runtime/emu/execute.h"
#include <string.h>

static void load_for(const emu_target *t, const uint8_t *bytes, size_t size, diags *problems) {
  emu_module m;
  hd_status status = emu_module_load(t, bytes, size, &m, problems);
  FUZZ_HOLD(status == HD_OK || status == HD_INVALID || status == HD_OUT_OF_MEMORY || status == HD_DECLINED);
  if (status != HD_OK) return;
  for (int i = 0; i < m.object->kernel_count; i++) {
    emu_descriptor d;
    status = emu_module_descriptor(&m, &m.object->kernels[i], &d, problems);
    FUZZ_HOLD(status == HD_OK || status == HD_INVALID);
    FUZZ_HOLD(status != HD_OK || (d.entry >= m.code_start && d.entry < m.code_end));
  }
  emu_module_finish(&m);
}

/* As the cache judges what it finds. */
static void check_for(const char *target_name, const codeobject *o, const uint8_t *bytes, size_t size,
                      diags *problems) {
  descriptor d = {.kernel_count = 1};
  snprintf(d.target, sizeof d.target, "%s", target_name);
  if (o->kernel_count > 0) memcpy(d.kernels[0].symbol, o->kernels[0].symbol, sizeof d.kernels[0].symbol);
  (void)cache_check_code(&d, bytes, size, problems);
}

int fuzz_code_object(const uint8_t *bytes, size_t size) {
  static const char *const targets[] = {EMULATED_TARGETS};
  codeobject *o = malloc(sizeof *o);
  diags problems;
  if (o == NULL) return 0;
  diags_init(&problems);
  hd_status status = codeobject_parse(bytes, size, o, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_INVALID && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    FUZZ_HOLD(o->kernel_count >= 0 && o->kernel_count <= CODEOBJECT_MAX_KERNELS);
    const emu_target *t = emu_find_target_of_machine(o->machine);
    if (t == NULL) t = emu_find_target(targets[fuzz_hash(bytes, size) % 4]);
    check_for(t->name, o, bytes, size, &problems);
    check_for("sm_90", o, bytes, size, &problems);
    load_for(t, bytes, size, &problems);
  }
  free(o);
  diags_finish(&problems);
  return 0;
}
