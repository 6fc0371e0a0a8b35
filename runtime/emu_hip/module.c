/* Modules and functions. */
#include "../../generator/target.h"
#include "../file.h"
#include "runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 1 << 28 }; /* bytes of a code object or bundle */

hipError_t hipemu_module_load(hipemu_device *d, const void *image, size_t limit, hipModule_t *out_module) {
  const void *bytes = NULL;
  size_t size = 0;
  diags messages;
  hipError_t code = hipemu_image_find(image, limit, d->target->name, &bytes, &size);
  if (code != hipSuccess) return code;
  hipModule_t module = calloc(1, sizeof *module);
  codeobject *object = malloc(sizeof *object);
  hd_status status = module && object ? HD_OK : HD_OUT_OF_MEMORY;
  diags_init(&messages);
  if (status == HD_OK) status = codeobject_parse(bytes, size, object, &messages);
  if (status == HD_OK) status = d->device->vtable->load(d->device, bytes, size, &module->module, &messages);
  if (status == HD_OK && !hipemu_handle_add(module, HIPEMU_MODULE)) {
    d->device->vtable->unload(d->device, module->module);
    status = HD_OUT_OF_MEMORY;
  }
  code = hipemu_answer(d, status, &messages);
  if (code != hipSuccess) {
    free(module);
    free(object);
    return code;
  }
  module->device = d;
  module->object = object;
  *out_module = module;
  return hipSuccess;
}

hipError_t hipemu_module_unload(hipModule_t module) {
  if (!module || !hipemu_handle_remove(module, HIPEMU_MODULE)) return hipErrorInvalidHandle;
  for (int n = 0; n < module->object->kernel_count; ++n) {
    if (!module->functions[n]) continue;
    hipemu_handle_remove(module->functions[n], HIPEMU_FUNCTION);
    free(module->functions[n]);
  }
  module->device->device->vtable->unload(module->device->device, module->module);
  free(module->object);
  free(module);
  return hipSuccess;
}

static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

/* The function of kernel n, made on first use. The caller holds the lock. */
static hipError_t function_at(hipModule_t module, int n, hipFunction_t *out_function) {
  const codeobject_kernel *kernel = &module->object->kernels[n];
  hipemu_device *d = module->device;
  diags messages;
  if (module->functions[n]) {
    *out_function = module->functions[n];
    return hipSuccess;
  }
  hipFunction_t f = calloc(1, sizeof *f);
  if (!f) return hipErrorOutOfMemory;
  f->module = module;
  f->kernel = kernel;
  diags_init(&messages);
  hd_status status =
      d->device->vtable->function(d->device, module->module, kernel->symbol, 0, &f->function, &messages);
  hipError_t code = hipemu_answer(d, status, &messages);
  if (code == hipSuccess && !hipemu_handle_add(f, HIPEMU_FUNCTION)) code = hipErrorOutOfMemory;
  if (code != hipSuccess) {
    free(f);
    return code;
  }
  *out_function = module->functions[n] = f;
  return hipSuccess;
}

hipError_t hipemu_module_function(hipModule_t module, const char *name, hipFunction_t *out_function) {
  for (int n = 0; n < module->object->kernel_count; ++n) {
    if (strcmp(module->object->kernels[n].symbol, name) != 0) continue;
    pthread_mutex_lock(&functions_lock);
    hipError_t code = function_at(module, n, out_function);
    pthread_mutex_unlock(&functions_lock);
    return code;
  }
  hipemu_log("hip.function", "the module has no kernel %s", name);
  return hipErrorNotFound;
}

static hipError_t load_data(hipModule_t *out_module, const void *image, size_t limit) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_enter(&d);
  return code == hipSuccess ? hipemu_module_load(d, image, limit, out_module) : code;
}

hipError_t hipModuleLoadData(hipModule_t *out_module, const void *image) {
  return hipemu_report(out_module && image ? load_data(out_module, image, SIZE_MAX) : hipErrorInvalidValue);
}

/* The options are those of a compiler for PTX. */
hipError_t hipModuleLoadDataEx(hipModule_t *out_module, const void *image, unsigned int option_count,
                               hipJitOption *options, void **option_values) {
  (void)option_count;
  (void)options;
  (void)option_values;
  return hipModuleLoadData(out_module, image);
}

hipError_t hipModuleLoad(hipModule_t *out_module, const char *path) {
  char *bytes = NULL;
  size_t size = 0;
  if (!out_module || !path) return hipemu_report(hipErrorInvalidValue);
  hd_status status = file_read(AT_FDCWD, path, FILE_MOST, &bytes, &size);
  if (status != HD_OK) {
    hipemu_log("hip.image", "%s can't be read: %s", path, strerror(errno));
    return hipemu_report(status == HD_OUT_OF_MEMORY ? hipErrorOutOfMemory : hipErrorFileNotFound);
  }
  hipError_t code = load_data(out_module, bytes, size);
  free(bytes); /* the emulator has its own copy */
  return hipemu_report(code);
}

hipError_t hipModuleUnload(hipModule_t module) {
  return hipemu_report(hipemu_module_unload(module));
}

hipError_t hipModuleGetFunction(hipFunction_t *out_function, hipModule_t module, const char *name) {
  if (!out_function || !name) return hipemu_report(hipErrorInvalidValue);
  if (!module || !hipemu_handle_check(module, HIPEMU_MODULE)) return hipemu_report(hipErrorInvalidHandle);
  return hipemu_report(hipemu_module_function(module, name, out_function));
}

hipError_t hipModuleGetFunctionCount(unsigned int *out_count, hipModule_t module) {
  if (!out_count) return hipemu_report(hipErrorInvalidValue);
  if (!module || !hipemu_handle_check(module, HIPEMU_MODULE)) return hipemu_report(hipErrorInvalidHandle);
  *out_count = (unsigned)module->object->kernel_count;
  return hipSuccess;
}

/* ---- What a function is ---- */

static int block_threads(const codeobject_kernel *k) {
  return k->max_workgroup ? (int)k->max_workgroup : 1024;
}

static int lds_left(hipFunction_t f) {
  return f->module->device->facts.lds_bytes_per_workgroup - (int)f->kernel->static_lds;
}

hipError_t hipFuncGetAttribute(int *out_value, hipFunction_attribute attribute, hipFunction_t function) {
  if (!out_value) return hipemu_report(hipErrorInvalidValue);
  if (!function || !hipemu_handle_check(function, HIPEMU_FUNCTION))
    return hipemu_report(hipErrorInvalidHandle);
  const codeobject_kernel *k = function->kernel;
  const int values[] = {
      [HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = block_threads(k),
      [HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)k->static_lds,
      [HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = 0,
      [HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)k->scratch,
      [HIP_FUNC_ATTRIBUTE_NUM_REGS] = (int)k->vgprs,
      [HIP_FUNC_ATTRIBUTE_PTX_VERSION] = 0,
      [HIP_FUNC_ATTRIBUTE_BINARY_VERSION] = 0,
      [HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA] = 0,
      [HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = lds_left(function),
      [HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = 0,
  };
  if ((size_t)attribute >= sizeof values / sizeof *values) return hipemu_report(hipErrorInvalidValue);
  *out_value = values[attribute];
  return hipSuccess;
}

hipError_t hipFuncGetAttributes(struct hipFuncAttributes *out_attributes, const void *host_function) {
  hipFunction_t f = NULL;
  if (!out_attributes) return hipemu_report(hipErrorInvalidValue);
  hipError_t code = hipemu_program_function(host_function, &f);
  if (code != hipSuccess) return hipemu_report(code);
  *out_attributes = (struct hipFuncAttributes){.localSizeBytes = f->kernel->scratch,
                                               .maxDynamicSharedSizeBytes = lds_left(f),
                                               .maxThreadsPerBlock = block_threads(f->kernel),
                                               .numRegs = (int)f->kernel->vgprs,
                                               .sharedSizeBytes = f->kernel->static_lds};
  return hipSuccess;
}

/* A launch may ask for all the LDS there is; asking for more beforehand is refused here. */
hipError_t hipFuncSetAttribute(const void *host_function, hipFuncAttribute attribute, int value) {
  hipFunction_t f = NULL;
  hipError_t code = hipemu_program_function(host_function, &f);
  if (code == hipSuccess && attribute != hipFuncAttributeMaxDynamicSharedMemorySize &&
      attribute != hipFuncAttributePreferredSharedMemoryCarveout)
    code = hipErrorInvalidValue;
  if (code == hipSuccess && attribute == hipFuncAttributeMaxDynamicSharedMemorySize &&
      (value < 0 || value > lds_left(f)))
    code = hipErrorInvalidValue;
  return hipemu_report(code);
}

hipError_t hipFuncSetCacheConfig(const void *host_function, hipFuncCache_t preference) {
  hipFunction_t f = NULL;
  (void)preference;
  return hipemu_report(hipemu_program_function(host_function, &f));
}

hipError_t hipGetFuncBySymbol(hipFunction_t *out_function, const void *host_function) {
  return hipemu_report(out_function ? hipemu_program_function(host_function, out_function)
                                    : hipErrorInvalidValue);
}

/* How many workgroups the LDS, the wave slots and the registers of a multiprocessor would hold. An estimate:
 * the emulator itself runs one at a time on each of the host's cores. */
static hipError_t occupancy(int *out_blocks, hipFunction_t f, int threads, size_t lds_bytes) {
  const target *t = f->module->device->target;
  const device_facts *facts = &f->module->device->facts;
  if (threads <= 0 || threads > block_threads(f->kernel)) return hipErrorInvalidValue;
  int granules = ((int)f->kernel->vgprs + t->vgpr_granule - 1) / t->vgpr_granule;
  int waves = granules > 0 ? t->simd_vgprs / (granules * t->vgpr_granule) : t->simd_waves;
  if (waves > t->simd_waves) waves = t->simd_waves;
  int block_waves = (threads + facts->wave - 1) / facts->wave;
  int blocks = waves * (t->unit_simds / t->unit_compute_units) / block_waves;
  size_t lds = f->kernel->static_lds + lds_bytes;
  if (lds > 0 && (size_t)facts->lds_bytes_per_workgroup / lds < (size_t)blocks)
    blocks = (int)((size_t)facts->lds_bytes_per_workgroup / lds);
  *out_blocks = blocks;
  return hipSuccess;
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, hipFunction_t function,
                                                              int threads, size_t lds_bytes) {
  if (!out_blocks) return hipemu_report(hipErrorInvalidValue);
  if (!function || !hipemu_handle_check(function, HIPEMU_FUNCTION))
    return hipemu_report(hipErrorInvalidHandle);
  return hipemu_report(occupancy(out_blocks, function, threads, lds_bytes));
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, const void *host_function,
                                                        int threads, size_t lds_bytes) {
  hipFunction_t f = NULL;
  hipError_t code = out_blocks ? hipemu_program_function(host_function, &f) : hipErrorInvalidValue;
  return hipemu_report(code == hipSuccess ? occupancy(out_blocks, f, threads, lds_bytes) : code);
}
