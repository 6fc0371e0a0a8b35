#include "device.h"
#include "file.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EMU_LIBRARY "libheddle-emu.so"

/* Below the folder of the executable or library: beside it (the top of the build folder), where it is
 * installed, and seen from the build folder's tests. */
static const char *const emu_places[] = {
    "", "heddle/", "../lib/heddle/", "../lib64/heddle/", "../lib/x86_64-linux-gnu/heddle/", "../"};

typedef struct emu_search {
  void *library;
  text tried;
} emu_search;

static bool emu_try(emu_search *s, const char *path) {
  s->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (s->library != NULL) return true;
  const char *why = dlerror();
  text_addf(&s->tried, "%s%s", s->tried.length > 0 ? "; " : "", why != NULL ? why : path);
  return false;
}

/* Tries the places around `file`, an executable or a library; those without a plug-in are not worth a word
 * each. */
static bool emu_try_around(emu_search *s, const char *file) {
  const char *slash = strrchr(file, '/');
  size_t folder = slash != NULL ? (size_t)(slash + 1 - file) : 0;
  bool found = false;
  for (size_t i = 0; !found && i < sizeof emu_places / sizeof *emu_places; i++) {
    text path;
    text_init(&path);
    text_add_bytes(&path, file, folder);
    text_addf(&path, "%s%s%s", folder == 0 ? "./" : "", emu_places[i], EMU_LIBRARY);
    if (!path.failed && file_belongs_with(text_string(&path), file)) found = emu_try(s, text_string(&path));
    text_finish(&path);
  }
  if (!found) text_addf(&s->tried, "%sno %s around %s", s->tried.length > 0 ? "; " : "", EMU_LIBRARY, file);
  return found;
}

static bool emu_find(emu_search *s) {
  const char *given = getenv("HEDDLE_EMU_LIBRARY");
  char executable[4096];
  Dl_info here;
  if (given != NULL && given[0] != '\0') return emu_try(s, given);
  ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
  if (length > 0) {
    executable[length] = '\0';
    if (emu_try_around(s, executable)) return true;
  }
  /* Under another loader /proc/self/exe is that loader; inside an engine it is the engine. */
  if (dladdr((const void *)emu_places, &here) != 0 && here.dli_fname != NULL && here.dli_fname[0] != '\0' &&
      emu_try_around(s, here.dli_fname))
    return true;
  return emu_try(s, EMU_LIBRARY);
}

/* A function of the plug-in, which stays loaded; NULL with a diagnostic. */
static void *emu_function(const char *symbol, diags *errors) {
  emu_search s = {0};
  void *address = NULL;
  text_init(&s.tried);
  if (emu_find(&s)) {
    address = dlsym(s.library, symbol);
    if (address == NULL)
      diags_errorf(errors, "device.symbol", NULL, "the emulated device's plug-in has no %s", symbol);
  } else {
    diags_errorf(errors, "device.library", NULL,
                 "the emulated device's plug-in can't be opened (HEDDLE_EMU_LIBRARY names one); tried %s",
                 text_string(&s.tried));
  }
  text_finish(&s.tried);
  return address;
}

static hd_status device_emu_open(const char *rest, device **out_device, diags *errors) {
  device_emu_open_function open = NULL;
  void *address = emu_function(DEVICE_EMU_SYMBOL, errors);
  memcpy(&open, &address, sizeof address);
  return open ? open(rest, out_device, errors) : HD_UNAVAILABLE;
}

hd_status device_disassemble(const char *target_name, const void *code, size_t bytes, uint64_t address,
                             device_disassembly line, void *user, diags *errors) {
  device_disassemble_function disassemble = NULL;
  void *found = emu_function(DEVICE_DISASSEMBLE_SYMBOL, errors);
  memcpy(&disassemble, &found, sizeof found);
  return disassemble ? disassemble(target_name, code, bytes, address, line, user, errors) : HD_UNAVAILABLE;
}

static const struct {
  const char *kind;
  hd_status (*open)(const char *rest, device **out_device, diags *errors);
} kinds[] = {{"emu", device_emu_open}, {"cuda", device_cuda_open}, {"hip", device_hip_open}};

hd_status device_open(const char *name, device **out_device, diags *errors) {
  size_t length = strcspn(name, ":");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strlen(kinds[i].kind) == length && strncmp(name, kinds[i].kind, length) == 0)
      return kinds[i].open(name[length] == ':' ? name + length + 1 : "", out_device, errors);
  }
  diags_errorf(errors, "device.name", NULL,
               "\"%s\" names no device: \"emu:gfx950\", \"cuda:0\" and \"hip:0\" are of the right form",
               name);
  return HD_INVALID;
}

bool device_counts_launches(const device *d) {
  return d->vtable->count_begin != NULL;
}

void device_close(device *d) {
  if (d != NULL) d->vtable->close(d);
}
