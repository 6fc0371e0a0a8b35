/* A code object that somebody else made, run by the emulated device: whatever it does, it does to memory that
 * the device allocated, and it ends. */
#include "fuzz.h"
#include "../../runtime/emu/execute.h"
#include "../../runtime/device/device.h"
#include <string.h>

hd_status heddle_emu_open(const char *rest, device **out_device, diags *list);

enum { BUFFER_BYTES = 4096 };

typedef struct opened {
  const char *name;
  device *device;
  device_pointer buffer;
} opened;

static opened devices[] = {{.name = "gfx942"}, {.name = "gfx950"}, {.name = "gfx1201"}, {.name = "gfx1250"}};

static opened *device_for(const char *name) {
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    opened *o = &devices[i];
    if (strcmp(o->name, name) != 0) continue;
    if (o->device != NULL) return o;
    diags problems;
    diags_init(&problems);
    setenv("HEDDLE_EMU_THREADS", "1", 1);
    setenv("HEDDLE_EMU_BUDGET", "3000", 1);
    FUZZ_HOLD(heddle_emu_open(name, &o->device, &problems) == HD_OK);
    FUZZ_HOLD(o->device->vtable->allocate(o->device, BUFFER_BYTES, &o->buffer, &problems) == HD_OK);
    diags_finish(&problems);
    return o;
  }
  return NULL;
}

/* Pointers to the buffer, and small numbers. */
static size_t fill_arguments(const codeobject_kernel *k, device_pointer buffer, uint8_t *out, size_t room) {
  size_t end = 0;
  memset(out, 0, room);
  for (int i = 0; i < k->argument_count; i++) {
    const codeobject_argument *a = &k->arguments[i];
    uint64_t value = a->size == 8 ? buffer : 16;
    size_t bytes = a->size < 8 ? a->size : 8;
    if (strncmp(a->value_kind, "hidden_", 7) == 0 || a->offset > room - 8) continue;
    memcpy(out + a->offset, &value, bytes);
    if (a->offset + bytes > end) end = a->offset + bytes;
  }
  return k->kernarg_size <= room && k->kernarg_size > end ? k->kernarg_size : end;
}

static void run_kernel(opened *o, device_module *m, const codeobject_kernel *k, uint32_t hash,
                       diags *problems) {
  const device_vtable *v = o->device->vtable;
  device_function *f = NULL;
  union {
    uint64_t align;
    uint8_t bytes[512];
  } arguments;
  counts counted = {0};
  if (v->function(o->device, m, k->symbol, 0, &f, problems) != HD_OK) return;
  device_launch launch = {.grid = {2, 1, 1}, .block = {64u << hash % 2, 1, 1}, .arguments = arguments.bytes};
  launch.arguments_size = fill_arguments(k, o->buffer, arguments.bytes, sizeof arguments.bytes);
  FUZZ_HOLD(v->fill(o->device, NULL, o->buffer, 1, BUFFER_BYTES, problems) == HD_OK);
  bool counts_too = hash / 2 % 4 == 0;
  if (counts_too) FUZZ_HOLD(v->count_begin(o->device, problems) == HD_OK);
  hd_status status = v->launch(o->device, NULL, f, &launch, problems);
  FUZZ_HOLD(status == HD_OK || diags_errors(problems) > 0 || status == HD_OUT_OF_MEMORY);
  if (counts_too) FUZZ_HOLD(v->count_end(o->device, &counted, problems) == HD_OK);
  counts_finish(&counted);
}

int fuzz_kernel(const uint8_t *bytes, size_t size) {
  codeobject *object = malloc(sizeof *object);
  device_module *m = NULL;
  diags problems;
  if (object == NULL) return 0;
  diags_init(&problems);
  hd_status status = codeobject_parse(bytes, size, object, &problems);
  opened *o = status == HD_OK ? device_for(object->target) : NULL;
  if (o != NULL && o->device->vtable->load(o->device, bytes, size, &m, &problems) == HD_OK) {
    uint32_t hash = fuzz_hash(bytes, size);
    for (int i = 0; i < object->kernel_count && i < 4; i++)
      run_kernel(o, m, &object->kernels[i], hash >> i, &problems);
    o->device->vtable->unload(o->device, m);
  }
  free(object);
  diags_finish(&problems);
  return 0;
}
