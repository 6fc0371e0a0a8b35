/* Stands in for libcuda (FAKE_CUDA) or libamdhip64: enough of a driver, in host memory, to see what the cuda
 * and hip devices ask of theirs. FAKE_DEVICES in the environment says how many devices there are. */
#include "fake_driver.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef FAKE_CUDA
#define NAME(cuda, hip) cuda
#define LAUNCH_END ((void *)0)
#define DEVICE_NAME "Fake CUDA device"
#else
#define NAME(cuda, hip) hip
#define LAUNCH_END ((void *)3)
#define DEVICE_NAME "Fake HIP device"
#endif

enum {
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  NO_CONTEXT = 201,
  BAD_IMAGE = 200,
  NOT_FOUND = 500,
  BAD_VALUE = 1
};

static fake_record record;
static _Thread_local int current = -1;
static int capturing, captured; /* one capture at a time is enough */

fake_record *fake_record_get(void);
fake_record *fake_record_get(void) {
  return &record;
}

static int need_context(void) {
  record.without_context += current < 0;
  return current < 0 ? NO_CONTEXT : 0;
}

static int make(void **out_handle) {
  int code = need_context();
  if (code != 0) return code;
  *out_handle = malloc(16);
  record.live++;
  return 0;
}

static int destroy(void *handle) {
  int code = need_context();
  if (code != 0) return code;
  record.live--;
  free(handle);
  return 0;
}

#define EXPORT(cuda, hip, ...)                                                                               \
  int NAME(cuda, hip)(__VA_ARGS__);                                                                          \
  int NAME(cuda, hip)(__VA_ARGS__)

EXPORT(cuInit, hipInit, unsigned flags) {
  return flags == 0 ? 0 : BAD_VALUE;
}

EXPORT(cuDeviceGetCount, hipGetDeviceCount, int *out_count) {
  const char *devices = getenv("FAKE_DEVICES");
  *out_count = devices != NULL ? atoi(devices) : 1;
  return *out_count > 0 ? 0 : NO_DEVICE;
}

EXPORT(cuDeviceGet, hipDeviceGet, int *out_device, int ordinal) {
  *out_device = ordinal;
  return 0;
}

EXPORT(cuDeviceGetName, hipDeviceGetName, char *out_name, int size, int device) {
  (void)device;
  strncpy(out_name, DEVICE_NAME, (size_t)size);
  return 0;
}

EXPORT(cuDeviceTotalMem_v2, hipDeviceTotalMem, size_t *out_bytes, int device) {
  (void)device;
  *out_bytes = (size_t)1 << 36;
  return 0;
}

EXPORT(cuDeviceGetAttribute, hipDeviceGetAttribute, int *out_value, int attribute, int device) {
  static const struct {
    int cuda, hip, value;
  } rows[] = {{10, 87, 32},      {16, 63, 132}, {36, 60, 2000000}, {37, 59, 4096},
              {38, 19, 1 << 22}, {75, -1, 9},   {76, -1, 0},       {97, 74, 200 << 10}};
  (void)device;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (attribute != NAME(rows[i].cuda, rows[i].hip)) continue;
    *out_value = rows[i].value;
    return 0;
  }
  return BAD_VALUE;
}

EXPORT(cuCtxSynchronize, hipDeviceSynchronize, void) {
  return need_context();
}

EXPORT(cuMemAlloc_v2, hipMalloc, uint64_t *out_address, size_t bytes) {
  void *memory;
  if (bytes > (size_t)1 << 30) return need_context() != 0 ? NO_CONTEXT : OUT_OF_MEMORY;
  int code = make(&memory);
  if (code == 0) *out_address = (uint64_t)(uintptr_t)realloc(memory, bytes);
  return code;
}

EXPORT(cuMemFree_v2, hipFree, uint64_t address) {
  return destroy((void *)(uintptr_t)address);
}

EXPORT(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, uint64_t to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return need_context();
}

EXPORT(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, void *to, uint64_t from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (void *)(uintptr_t)from, bytes);
  return need_context();
}

EXPORT(cuMemsetD8Async, hipMemsetD8Async, uint64_t to, unsigned char value, size_t bytes, void *stream) {
  (void)stream;
  memset((void *)(uintptr_t)to, value, bytes);
  return need_context();
}

EXPORT(cuModuleLoadData, hipModuleLoadData, void **out_module, const void *image) {
  bool good = memcmp(image, "FAKE", 4) == 0 || memcmp(image, "\177ELF", 4) == 0;
  return good ? make(out_module) : BAD_IMAGE;
}

EXPORT(cuModuleUnload, hipModuleUnload, void *module) {
  return destroy(module);
}

EXPORT(cuModuleGetFunction, hipModuleGetFunction, void **out_function, void *module, const char *name) {
  *out_function = module;
  return strcmp(name, "missing") == 0 ? NOT_FOUND : need_context();
}

EXPORT(cuLaunchKernel, hipModuleLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz,
       unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
       void **extra) {
  size_t bytes = 0;
  if (function == NULL || parameters != NULL || bx * by * bz > 1024) return BAD_VALUE;
  if (extra != NULL) {
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != LAUNCH_END) return BAD_VALUE;
    bytes = *(size_t *)extra[3];
    memcpy(record.arguments, extra[1], bytes);
  }
  record.arguments_size = bytes;
  memcpy(record.grid, (unsigned[]){gx, gy, gz}, sizeof record.grid);
  memcpy(record.block, (unsigned[]){bx, by, bz}, sizeof record.block);
  record.shared_bytes = shared;
  record.stream = stream;
  record.early = 0;
  *(capturing ? &captured : &record.launches) += 1;
  return need_context();
}

EXPORT(cuStreamCreate, hipStreamCreateWithFlags, void **out_stream, unsigned flags) {
  return flags == 1 ? make(out_stream) : BAD_VALUE;
}

EXPORT(cuStreamDestroy_v2, hipStreamDestroy, void *stream) {
  return destroy(stream);
}

EXPORT(cuStreamSynchronize, hipStreamSynchronize, void *stream) {
  (void)stream;
  return need_context();
}

EXPORT(cuEventCreate, hipEventCreateWithFlags, void **out_event, unsigned flags) {
  return flags == 0 ? make(out_event) : BAD_VALUE;
}

EXPORT(cuEventDestroy_v2, hipEventDestroy, void *event) {
  return destroy(event);
}

EXPORT(cuEventRecord, hipEventRecord, void *event, void *stream) {
  (void)stream;
  return event != NULL ? need_context() : BAD_VALUE;
}

EXPORT(cuEventSynchronize, hipEventSynchronize, void *event) {
  return event != NULL ? need_context() : BAD_VALUE;
}

EXPORT(cuEventElapsedTime, hipEventElapsedTime, float *out_ms, void *start, void *stop) {
  *out_ms = 1.5f;
  return start != NULL && stop != NULL ? need_context() : BAD_VALUE;
}

EXPORT(cuStreamBeginCapture_v2, hipStreamBeginCapture, void *stream, int mode) {
  if (stream == NULL || mode != 1) return BAD_VALUE;
  capturing = 1;
  captured = 0;
  return need_context();
}

EXPORT(cuStreamEndCapture, hipStreamEndCapture, void *stream, void **out_graph) {
  (void)stream;
  if (!capturing) return BAD_VALUE;
  capturing = 0;
  return make(out_graph);
}

EXPORT(cuStreamIsCapturing, hipStreamIsCapturing, void *stream, int *out_status) {
  *out_status = stream != NULL && capturing;
  return need_context();
}

EXPORT(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, void **out_executable, void *graph,
       unsigned long long flags) {
  (void)graph;
  return flags == 0 ? make(out_executable) : BAD_VALUE;
}

EXPORT(cuGraphDestroy, hipGraphDestroy, void *graph) {
  return destroy(graph);
}

EXPORT(cuGraphLaunch, hipGraphLaunch, void *executable, void *stream) {
  record.stream = stream;
  record.launches += captured;
  return executable != NULL ? need_context() : BAD_VALUE;
}

EXPORT(cuGraphExecDestroy, hipGraphExecDestroy, void *executable) {
  return destroy(executable);
}

static const char *error_name(int code) {
  return code == OUT_OF_MEMORY ? "ERROR_OUT_OF_MEMORY" : code == NOT_FOUND ? "ERROR_NOT_FOUND" : NULL;
}

#ifdef FAKE_CUDA
EXPORT(cuGetErrorName, , int code, const char **out_name) {
  *out_name = error_name(code);
  return *out_name != NULL ? 0 : BAD_VALUE;
}

EXPORT(cuGetErrorString, , int code, const char **out_text) {
  *out_text = code == OUT_OF_MEMORY ? "out of memory" : NULL;
  return 0;
}

EXPORT(cuDevicePrimaryCtxRetain, , void **out_context, int device) {
  record.retained++;
  *out_context = (void *)(uintptr_t)(device + 1);
  return 0;
}

EXPORT(cuDevicePrimaryCtxRelease_v2, , int device) {
  (void)device;
  record.retained--;
  return 0;
}

EXPORT(cuCtxSetCurrent, , void *context) {
  current = (int)(uintptr_t)context - 1;
  return 0;
}

/* CUlaunchConfig with CUlaunchAttribute, as cuda.h has them. */
typedef struct launch_config {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct {
    int id;
    char pad[4];
    union {
      char bytes[64];
      int allowed;
    } value;
  } * attributes;
  unsigned attribute_count;
} launch_config;

EXPORT(cuLaunchKernelEx, , const launch_config *c, void *function, void **parameters, void **extra) {
  if (c->attribute_count != 1 || c->attributes->id != 6 || c->attributes->value.allowed != 1) return BAD_VALUE;
  int code = cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                            c->block[2], c->shared, c->stream, parameters, extra);
  record.early = 1;
  return code;
}

EXPORT(cuFuncSetAttribute, , void *function, int attribute, int value) {
  (void)function;
  if (attribute == 9) return value == 100 ? need_context() : BAD_VALUE;
  if (attribute != 8 || value > 200 << 10) return BAD_VALUE;
  record.dynamic_limit = value;
  return need_context();
}
#else
const char *hipGetErrorName(int code);
const char *hipGetErrorName(int code) {
  return error_name(code);
}

const char *hipGetErrorString(int code);
const char *hipGetErrorString(int code) {
  return code == OUT_OF_MEMORY ? "out of memory" : NULL;
}

EXPORT(, hipSetDevice, int ordinal) {
  current = ordinal;
  return 0;
}

EXPORT(, hipGetDevicePropertiesR0600, void *out_properties, int ordinal) {
  (void)ordinal;
  memset(out_properties, 0, 1472);
  strcpy((char *)out_properties + 1160, "gfx950:sramecc+:xnack-");
  return 0;
}
#endif
