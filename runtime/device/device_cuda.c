/* NVIDIA GPUs through the driver API of libcuda: cuda.h of CUDA 12 and 13 agree on everything used here. */
#include "device_driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct launch_attribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int allowed;
  } value;
} launch_attribute;

typedef struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  driver_handle *stream;
  launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;

/* Symbols only this driver has: X(field, parameters, symbol). */
#define CUDA_SYMBOLS(X)                                                                                      \
  X(error_name, (int code, const char **out_name), "cuGetErrorName")                                         \
  X(error_text, (int code, const char **out_text), "cuGetErrorString")                                       \
  X(context_retain, (void **out_context, int device), "cuDevicePrimaryCtxRetain")                            \
  X(context_release, (int device), "cuDevicePrimaryCtxRelease_v2")                                           \
  X(context_set, (void *context), "cuCtxSetCurrent")                                                         \
  X(function_set, (driver_handle * function, int attribute, int value), "cuFuncSetAttribute")                \
  X(launch_with, (const launch_config *config, driver_handle *function, void **parameters, void **extra),    \
    "cuLaunchKernelEx")

typedef struct cuda_api {
#define X(field, parameters, symbol) int(*field) parameters;
  CUDA_SYMBOLS(X)
#undef X
} cuda_api;

typedef struct cuda_device {
  driver_device base;
  cuda_api api;
  void *context; /* the primary one, which the CUDA runtime and PyTorch use too */
} cuda_device;

static const driver_symbol symbols[] = {
#define X(field, parameters, cuda, hip) {cuda, offsetof(cuda_device, base.api.field)},
    DRIVER_SYMBOLS(X)
#undef X
#define X(field, parameters, symbol) {symbol, offsetof(cuda_device, api.field)},
        CUDA_SYMBOLS(X)
#undef X
};

/* CU_DEVICE_ATTRIBUTE_… and CU_FUNC_ATTRIBUTE_… */
enum {
  ATTRIBUTE_WARP_SIZE = 10,
  ATTRIBUTE_MULTIPROCESSORS = 16,
  ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
  ATTRIBUTE_BUS_BITS = 37,
  ATTRIBUTE_L2_BYTES = 38,
  ATTRIBUTE_MAJOR = 75,
  ATTRIBUTE_MINOR = 76,
  ATTRIBUTE_SHARED_BYTES_OPT_IN = 97,
  FUNCTION_MAX_DYNAMIC_SHARED = 8,
  FUNCTION_SHARED_CARVEOUT = 9, /* percent of what could be shared memory */
  SHARED_WITHOUT_OPT_IN = 48 << 10,
  LAUNCH_BEFORE_THE_LAST_ENDS = 6 /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
};

static cuda_device *self(driver_device *d) {
  return (cuda_device *)d;
}

static int make_current(driver_device *d) {
  return self(d)->api.context_set(self(d)->context);
}

static void error(const driver_device *d, int code, const char **out_name, const char **out_text) {
  const cuda_device *c = (const cuda_device *)d;
  *out_name = *out_text = NULL; /* they leave it so for a code they don't know */
  c->api.error_name(code, out_name);
  c->api.error_text(code, out_text);
}

static int prepare_function(driver_device *d, driver_handle *function, size_t dynamic_lds) {
  /* A multiprocessor runs kernels of one carveout at a time: with one for all, a merge starts beside the
   * decode. */
  int code = self(d)->api.function_set(function, FUNCTION_SHARED_CARVEOUT, 100);
  if (code != 0 || dynamic_lds <= SHARED_WITHOUT_OPT_IN) return code;
  return self(d)->api.function_set(function, FUNCTION_MAX_DYNAMIC_SHARED, (int)dynamic_lds);
}

static int launch_early(driver_device *d, driver_handle *function, const device_launch *l,
                        driver_handle *stream, void **extra) {
  launch_attribute early = {.id = LAUNCH_BEFORE_THE_LAST_ENDS, .value.allowed = 1};
  const launch_config config = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                .block = {l->block[0], l->block[1], l->block[2]},
                                .shared_bytes = l->lds_bytes,
                                .stream = stream,
                                .attributes = &early,
                                .attribute_count = 1};
  return self(d)->api.launch_with(&config, function, NULL, extra);
}

static void finish(driver_device *d) {
  if (self(d)->context != NULL) self(d)->api.context_release(d->handle);
}

static const driver cuda_driver = {
    .kind = "cuda",
    .launch_end = NULL,
    .launch_early = launch_early,
    .make_current = make_current,
    .error = error,
    .prepare_function = prepare_function,
    .finish = finish,
};

static hd_status read_facts(driver_device *d, diags *errors) {
  int major = 0, minor = 0, clock = 0, bits = 0, l2 = 0;
  const struct {
    int attribute, *value;
  } rows[] = {
      {ATTRIBUTE_MAJOR, &major},
      {ATTRIBUTE_MINOR, &minor},
      {ATTRIBUTE_MEMORY_CLOCK_KHZ, &clock},
      {ATTRIBUTE_BUS_BITS, &bits},
      {ATTRIBUTE_L2_BYTES, &l2},
      {ATTRIBUTE_MULTIPROCESSORS, &d->facts.compute_units},
      {ATTRIBUTE_WARP_SIZE, &d->facts.wave},
      {ATTRIBUTE_SHARED_BYTES_OPT_IN, &d->facts.lds_bytes_per_workgroup},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int code = d->api.device_attribute(rows[i].value, rows[i].attribute, d->handle);
    hd_status status = driver_check(d, code, errors, "asking for attribute %d", rows[i].attribute);
    if (status != HD_OK) return status;
  }
  snprintf(d->facts.target, sizeof d->facts.target, "sm_%d%d", major, minor);
  d->facts.l2_bytes = l2;
  d->facts.peak_bytes_per_s = 2.0 * 1000.0 * clock * bits / 8; /* two transfers a clock */
  return HD_OK;
}

static hd_status open_device(cuda_device *c, int ordinal, diags *errors) {
  static const char *const standard[] = {"libcuda.so.1", "libcuda.so"};
  const char *path = NULL, *given = driver_environment("HEDDLE_CUDA_LIBRARY");
  text tried;
  text_init(&tried);
  void *library = given != NULL ? driver_library_open(&given, 1, &path, &tried)
                                : driver_library_open(standard, 2, &path, &tried);
  if (library == NULL)
    diags_errorf(errors, "device.library", NULL,
                 "no cuda device: the NVIDIA driver's libcuda can't be opened (HEDDLE_CUDA_LIBRARY names "
                 "one); tried %s",
                 text_string(&tried));
  text_finish(&tried);
  if (library == NULL) return HD_UNAVAILABLE;
  driver_device *d = &c->base;
  hd_status status = driver_symbols_load(library, path, symbols, sizeof symbols / sizeof *symbols, c, errors);
  if (status == HD_OK) status = driver_device_pick(d, ordinal, path, "", errors);
  if (status == HD_OK) status = read_facts(d, errors);
  if (status == HD_OK)
    status = driver_check(d, c->api.context_retain(&c->context, d->handle), errors,
                          "retaining the primary context");
  return status;
}

hd_status device_cuda_open(const char *rest, device **out_device, diags *errors) {
  int ordinal = 0;
  hd_status status = driver_ordinal_parse("cuda", rest, &ordinal, errors);
  if (status != HD_OK) return status;
  cuda_device *c = calloc(1, sizeof *c);
  if (c == NULL) return HD_OUT_OF_MEMORY;
  c->base.base.vtable = &driver_vtable;
  c->base.driver = &cuda_driver;
  status = open_device(c, ordinal, errors);
  if (status == HD_OK)
    *out_device = &c->base.base;
  else
    free(c);
  return status;
}
