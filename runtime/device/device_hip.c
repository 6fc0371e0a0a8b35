/* AMD GPUs through libamdhip64 of ROCm 6 and later. */
#include "device_driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* hipDeviceProp_t as hipGetDevicePropertiesR0600 fills it: the layout belongs to that symbol, so it can't
 * change; the symbol without a suffix is the struct of ROCm 5. Only gcnArchName is wanted: no attribute tells
 * it. */
enum {
  PROPERTIES_SIZE = 1472,
  PROPERTIES_ROOM = 4096,
  PROPERTIES_ARCH_NAME_AT = 1160,
  PROPERTIES_ARCH_NAME_SIZE = 256
};

/* hipDeviceAttribute_t; numbers of attributes that went away are kept as "unused", so these stay. */
enum {
  ATTRIBUTE_L2_BYTES = 19,
  ATTRIBUTE_BUS_BITS = 59,
  ATTRIBUTE_MEMORY_CLOCK_KHZ = 60,
  ATTRIBUTE_MULTIPROCESSORS = 63,
  ATTRIBUTE_SHARED_BYTES = 74,
  ATTRIBUTE_WARP_SIZE = 87
};

typedef struct hip_api {
  const char *(*error_name)(int code);
  const char *(*error_text)(int code);
  int (*set_device)(int ordinal);
  int (*properties)(void *out_properties, int ordinal);
} hip_api;

typedef struct hip_device {
  driver_device base;
  hip_api api;
} hip_device;

static const driver_symbol symbols[] = {
#define X(field, parameters, cuda, hip) {hip, offsetof(hip_device, base.api.field)},
    DRIVER_SYMBOLS(X)
#undef X
        {"hipGetErrorName", offsetof(hip_device, api.error_name)},
    {"hipGetErrorString", offsetof(hip_device, api.error_text)},
    {"hipSetDevice", offsetof(hip_device, api.set_device)},
    {"hipGetDevicePropertiesR0600", offsetof(hip_device, api.properties)},
};

static int make_current(driver_device *d) {
  return ((hip_device *)d)->api.set_device(d->ordinal);
}

static void error(const driver_device *d, int code, const char **out_name, const char **out_text) {
  const hip_device *h = (const hip_device *)d;
  *out_name = h->api.error_name(code);
  *out_text = h->api.error_text(code);
}

/* A launch may ask for all the LDS there is. */
static int prepare_function(driver_device *d, driver_handle *function, size_t dynamic_lds) {
  (void)d;
  (void)function;
  (void)dynamic_lds;
  return 0;
}

static void finish(driver_device *d) {
  (void)d; /* the primary context lives as long as the process */
}

static const driver hip_driver = {
    .kind = "hip",
    .launch_end = (void *)3,
    .make_current = make_current,
    .error = error,
    .prepare_function = prepare_function,
    .finish = finish,
};

static hd_status read_facts(hip_device *h, diags *errors) {
  driver_device *d = &h->base;
  int clock = 0, bits = 0, l2 = 0;
  const struct {
    int attribute, *value;
  } rows[] = {
      {ATTRIBUTE_MEMORY_CLOCK_KHZ, &clock},
      {ATTRIBUTE_BUS_BITS, &bits},
      {ATTRIBUTE_L2_BYTES, &l2},
      {ATTRIBUTE_MULTIPROCESSORS, &d->facts.compute_units},
      {ATTRIBUTE_WARP_SIZE, &d->facts.wave},
      {ATTRIBUTE_SHARED_BYTES, &d->facts.lds_bytes_per_workgroup},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int code = d->api.device_attribute(rows[i].value, rows[i].attribute, d->handle);
    hd_status status = driver_check(d, code, errors, "asking for attribute %d", rows[i].attribute);
    if (status != HD_OK) return status;
  }
  d->facts.l2_bytes = l2;
  d->facts.peak_bytes_per_s = 2.0 * 1000.0 * clock * bits / 8; /* two transfers a clock */
  union {
    char bytes[PROPERTIES_ROOM];
    max_align_t align;
  } properties = {{0}};
  hd_status status =
      driver_check(d, h->api.properties(&properties, d->ordinal), errors, "asking for its properties");
  if (status != HD_OK) return status;
  const char *arch = properties.bytes + PROPERTIES_ARCH_NAME_AT;
  size_t length = strcspn(arch, ":"); /* "gfx942:sramecc+:xnack-" */
  if (memchr(arch, '\0', PROPERTIES_ARCH_NAME_SIZE) == NULL || strncmp(arch, "gfx", 3) != 0 ||
      length >= sizeof d->facts.target) {
    diags_errorf(errors, "device.properties", NULL, "hip:%d does not say which architecture it is",
                 d->ordinal);
    return HD_UNAVAILABLE;
  }
  memcpy(d->facts.target, arch, length);
  /* libheddle-hip.so is this library over the emulated device, and its devices' names say so. */
  d->facts.emulated = strstr(d->facts.name, "(not hardware)") != NULL;
  return HD_OK;
}

/* Where the library may lie, best first. */
enum { PATHS_MOST = 16 };
typedef struct path_list {
  char *items[PATHS_MOST];
  int count;
  bool failed;
} path_list;

static void path_add(path_list *list, const char *folder, const char *below) {
  text path;
  if (folder == NULL || list->count == PATHS_MOST) return;
  text_init(&path);
  text_addf(&path, "%s%s", folder, below);
  char *taken = text_take(&path);
  if (taken == NULL)
    list->failed = true;
  else
    list->items[list->count++] = taken;
}

/* HEDDLE_HIP_LIBRARY alone, or: an installed ROCm, the system's library path, the folder that
 * tools/fetch-rocm.sh fills. */
static void paths_collect(path_list *list) {
  static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};
#define FETCHED "/usr/lib/x86_64-linux-gnu/libamdhip64.so"
  const char *given = driver_environment("HEDDLE_HIP_LIBRARY");
  if (given != NULL) {
    path_add(list, given, "");
    return;
  }
  path_add(list, driver_environment("ROCM_PATH"), "/lib/libamdhip64.so");
  path_add(list, "/opt/rocm", "/lib/libamdhip64.so");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    path_add(list, names[i], "");
  if (driver_environment("HEDDLE_ROCM") != NULL)
    path_add(list, driver_environment("HEDDLE_ROCM"), FETCHED);
  else if (driver_environment("XDG_CACHE_HOME") != NULL)
    path_add(list, driver_environment("XDG_CACHE_HOME"), "/heddle/rocm" FETCHED);
  else
    path_add(list, driver_environment("HOME"), "/.cache/heddle/rocm" FETCHED);
#undef FETCHED
}

static hd_status open_device(hip_device *h, int ordinal, const path_list *paths, diags *errors) {
  const char *path = NULL;
  text tried;
  text_init(&tried);
  void *library = driver_library_open((const char *const *)paths->items, paths->count, &path, &tried);
  if (library == NULL)
    diags_errorf(
        errors, "device.library", NULL,
        "no hip device: ROCm's libamdhip64 can't be opened (HEDDLE_HIP_LIBRARY names one; what "
        "tools/fetch-rocm.sh "
        "fetches opens only in a program run under that folder's own loader, see docs/devices.md); tried %s",
        text_string(&tried));
  text_finish(&tried);
  if (library == NULL) return HD_UNAVAILABLE;
  hd_status status = driver_symbols_load(library, path, symbols, sizeof symbols / sizeof *symbols, h, errors);
  const char *hint =
      access("/dev/kfd", R_OK | W_OK) == 0
          ? ""
          : "; /dev/kfd can't be opened: the amdgpu kernel driver isn't there, or this user may not use it";
  if (status == HD_OK) status = driver_device_pick(&h->base, ordinal, path, hint, errors);
  if (status == HD_OK) status = read_facts(h, errors);
  return status;
}

hd_status device_hip_open(const char *rest, device **out_device, diags *errors) {
  int ordinal = 0;
  path_list paths = {0};
  hd_status status = driver_ordinal_parse("hip", rest, &ordinal, errors);
  if (status != HD_OK) return status;
  hip_device *h = calloc(1, sizeof *h);
  paths_collect(&paths);
  if (h == NULL || paths.failed) {
    status = HD_OUT_OF_MEMORY;
  } else {
    h->base.base.vtable = &driver_vtable;
    h->base.driver = &hip_driver;
    status = open_device(h, ordinal, &paths, errors);
  }
  for (int i = 0; i < paths.count; i++)
    free(paths.items[i]);
  if (status == HD_OK)
    *out_device = &h->base.base;
  else
    free(h);
  return status;
}
