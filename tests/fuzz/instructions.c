/* Machine code of any kind, run by the emulated device: the first byte chooses the target, the second how the
 * kernel's registers are laid out and launched; the rest takes the place of the code of a kernel that the
 * build compiled. */
#include "fuzz.h"
#include "../../runtime/object/codeobject.h"
#include "../../runtime/device/device.h"
#include "../../runtime/object/elf64.h"
#include "../../runtime/file.h"
#include <fcntl.h>
#include <string.h>

hd_status heddle_emu_open(const char *rest, device **out_device, diags *list);

enum { BUFFER_BYTES = 4096 };

typedef struct frame {
  const char *name;
  uint32_t end; /* s_endpgm */
  device *device;
  device_pointer buffer;
  char *bytes;
  size_t size;
  uint64_t code_at, code_size; /* of the file, from the kernel's entry on */
  char symbol[64];
  size_t arguments;
} frame;

static frame frames[] = {{.name = "gfx942", .end = 0xbf810000},
                         {.name = "gfx950", .end = 0xbf810000},
                         {.name = "gfx1201", .end = 0xbfb00000},
                         {.name = "gfx1250", .end = 0xbfb00000}};

static void find_code(frame *f) {
  static codeobject object;
  elf64 e;
  elf64_section code;
  diags problems;
  diags_init(&problems);
  FUZZ_HOLD(codeobject_parse(f->bytes, f->size, &object, &problems) == HD_OK && object.kernel_count > 0);
  FUZZ_HOLD(elf64_open(f->bytes, f->size, &e, &problems) == HD_OK && elf64_section_find(&e, ".text", &code));
  const codeobject_kernel *k = &object.kernels[0];
  int64_t offset;
  memcpy(&offset, f->bytes + k->descriptor_offset + 16, sizeof offset);
  uint64_t entry = k->descriptor_address + (uint64_t)offset;
  FUZZ_HOLD(entry >= code.address && entry < code.address + code.size);
  f->code_at = code.offset + (entry - code.address);
  f->code_size = code.address + code.size - entry;
  f->arguments = k->kernarg_size;
  memcpy(f->symbol, k->symbol, sizeof f->symbol);
  diags_finish(&problems);
}

static frame *frame_of(uint8_t choice) {
  frame *f = &frames[choice % 4];
  char path[4096];
  diags problems;
  if (f->device != NULL) return f;
  diags_init(&problems);
  setenv("HEDDLE_EMU_THREADS", "1", 1);
  setenv("HEDDLE_EMU_BUDGET", "3000", 1);
  snprintf(path, sizeof path, FUZZ_FRAMES "/sample_%s.co", f->name);
  FUZZ_HOLD(file_read(AT_FDCWD, path, 1 << 20, &f->bytes, &f->size) == HD_OK);
  find_code(f);
  FUZZ_HOLD(heddle_emu_open(f->name, &f->device, &problems) == HD_OK);
  FUZZ_HOLD(f->device->vtable->allocate(f->device, BUFFER_BYTES, &f->buffer, &problems) == HD_OK);
  diags_finish(&problems);
  return f;
}

static void launch_code(frame *f, uint8_t how, const void *code_object, diags *problems) {
  const device_vtable *v = f->device->vtable;
  device_module *m = NULL;
  device_function *function = NULL;
  uint64_t arguments[64];
  for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
    arguments[i] = i % 3 == 2 ? 16 : f->buffer;
  if (v->load(f->device, code_object, f->size, &m, problems) != HD_OK) return;
  FUZZ_HOLD(f->arguments <= sizeof arguments);
  if (v->function(f->device, m, f->symbol, 1024, &function, problems) == HD_OK) {
    device_launch launch = {.grid = {2, 1, 1},
                            .block = {how & 1 ? 128 : 64, 1, 1},
                            .lds_bytes = how & 2 ? 1024 : 0,
                            .arguments = arguments,
                            .arguments_size = f->arguments};
    counts counted = {0};
    FUZZ_HOLD(v->fill(f->device, NULL, f->buffer, 1, BUFFER_BYTES, problems) == HD_OK);
    if (how & 4) FUZZ_HOLD(v->count_begin(f->device, problems) == HD_OK);
    hd_status status = v->launch(f->device, NULL, function, &launch, problems);
    FUZZ_HOLD(status == HD_OK || diags_errors(problems) > 0 || status == HD_OUT_OF_MEMORY);
    if (how & 4) FUZZ_HOLD(v->count_end(f->device, &counted, problems) == HD_OK);
    counts_finish(&counted);
  }
  v->unload(f->device, m);
}

int fuzz_instructions(const uint8_t *bytes, size_t size) {
  if (size < 6) return 0;
  frame *f = frame_of(bytes[0]);
  size_t code_size = (size - 2) & ~(size_t)3, room = (size_t)f->code_size & ~(size_t)3;
  if (code_size > room) code_size = room;
  char *changed = malloc(f->size);
  if (changed == NULL) return 0;
  memcpy(changed, f->bytes, f->size);
  for (size_t at = 0; at < room; at += 4)
    memcpy(changed + f->code_at + at, &f->end, 4);
  memcpy(changed + f->code_at, bytes + 2, code_size);
  diags problems;
  diags_init(&problems);
  launch_code(f, bytes[1], changed, &problems);
  diags_finish(&problems);
  free(changed);
  return 0;
}
