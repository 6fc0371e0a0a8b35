/* Programs that clang compiled with kernels in them: before main they register a bundle and, for each kernel,
 * the address that stands for it on the host; `kernel<<<…>>>(…)` pushes a configuration and launches by that
 * address. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_MAGIC = 0x48495046 /* "HIPF" */, CONFIGURATIONS_MOST = 8 };

struct hip_fat_binary {
  hip_fat_binary *next;
  const void *image;
  hip_fat_binary *self;                     /* what a handle points to */
  hipModule_t modules[HIPEMU_DEVICES_MOST]; /* loaded on first use */
};

typedef struct kernel_symbol {
  const void *host_function;
  const char *name; /* the program's */
  hip_fat_binary *binary;
} kernel_symbol;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kernel_symbol *symbols;
static size_t symbol_count, symbol_capacity;

hip_fat_binary **__hipRegisterFatBinary(const void *wrapper) {
  const hip_fat_binary_wrapper *w = wrapper;
  if (!w || w->magic != WRAPPER_MAGIC || w->version != 1) {
    hipemu_log("hip.image", "a program registers kernels in a form that is not known");
    return NULL;
  }
  hip_fat_binary *binary = calloc(1, sizeof *binary);
  if (!binary) return NULL;
  binary->image = w->binary;
  binary->self = binary;
  return &binary->self;
}

void __hipRegisterFunction(hip_fat_binary **handle, const void *host_function, char *device_text,
                           const char *device_name, unsigned int thread_limit, void *thread_id,
                           void *block_id, dim3 *block, dim3 *grid, int *warp_size) {
  (void)device_text;
  (void)thread_limit;
  (void)thread_id;
  (void)block_id;
  (void)block;
  (void)grid;
  (void)warp_size;
  if (!handle) return;
  pthread_mutex_lock(&lock);
  if (symbol_count == symbol_capacity) {
    size_t more = symbol_capacity ? 2 * symbol_capacity : 16;
    kernel_symbol *grown = realloc(symbols, more * sizeof *grown);
    if (grown) {
      symbols = grown;
      symbol_capacity = more;
    }
  }
  if (symbol_count < symbol_capacity)
    symbols[symbol_count++] = (kernel_symbol){host_function, device_name, *handle};
  pthread_mutex_unlock(&lock);
}

/* A variable of the device keeps its place in the code object; there is no way to it from the host. */
void __hipRegisterVar(hip_fat_binary **handle, void *host_variable, char *host_name, char *device_name,
                      int external, size_t bytes, int constant, int global) {
  (void)handle;
  (void)host_variable;
  (void)host_name;
  (void)device_name;
  (void)external;
  (void)bytes;
  (void)constant;
  (void)global;
}

void __hipUnregisterFatBinary(hip_fat_binary **handle) {
  if (!handle) return;
  hip_fat_binary *binary = *handle;
  pthread_mutex_lock(&lock);
  size_t kept = 0;
  for (size_t n = 0; n < symbol_count; ++n)
    if (symbols[n].binary != binary) symbols[kept++] = symbols[n];
  symbol_count = kept;
  pthread_mutex_unlock(&lock);
  for (int n = 0; n < HIPEMU_DEVICES_MOST; ++n)
    if (binary->modules[n]) hipemu_module_unload(binary->modules[n]);
  free(binary);
}

hipError_t hipemu_program_function(const void *host_function, hipFunction_t *out_function) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_enter(&d);
  if (code != hipSuccess) return code;
  pthread_mutex_lock(&lock);
  size_t n = 0;
  while (n < symbol_count && symbols[n].host_function != host_function)
    ++n;
  code = n < symbol_count ? hipSuccess : hipErrorInvalidDeviceFunction;
  if (code == hipSuccess) {
    hipModule_t *module = &symbols[n].binary->modules[d->ordinal];
    if (!*module) code = hipemu_module_load(d, symbols[n].binary->image, SIZE_MAX, module);
    if (code == hipSuccess) code = hipemu_module_function(*module, symbols[n].name, out_function);
  }
  pthread_mutex_unlock(&lock);
  return code;
}

typedef struct configuration {
  dim3 grid, block;
  size_t lds_bytes;
  hipStream_t stream;
} configuration;

static _Thread_local configuration configurations[CONFIGURATIONS_MOST];
static _Thread_local int depth;

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream) {
  if (depth == CONFIGURATIONS_MOST) return hipemu_report(hipErrorMissingConfiguration);
  configurations[depth++] = (configuration){grid, block, lds_bytes, stream};
  return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *out_grid, dim3 *out_block, size_t *out_lds_bytes,
                                     hipStream_t *out_stream) {
  if (depth == 0) return hipemu_report(hipErrorMissingConfiguration);
  const configuration *c = &configurations[--depth];
  *out_grid = c->grid;
  *out_block = c->block;
  *out_lds_bytes = c->lds_bytes;
  *out_stream = c->stream;
  return hipSuccess;
}

hipError_t hipLaunchKernel(const void *host_function, dim3 grid, dim3 block, void **parameters,
                           size_t lds_bytes, hipStream_t stream) {
  hipFunction_t f = NULL;
  hipError_t code = hipemu_program_function(host_function, &f);
  return hipemu_report(code == hipSuccess ? hipemu_launch(f, grid, block, lds_bytes, stream, parameters, NULL)
                                          : code);
}
