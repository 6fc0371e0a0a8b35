/* Launches: a kernel's arguments, packed by the caller or as pointers to each. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

static bool hidden(const codeobject_argument *a) {
  return strncmp(a->value_kind, "hidden_", 7) == 0;
}

/* Bytes up to the end of the last argument that the caller gives. */
static size_t argument_bytes(const codeobject_kernel *k) {
  size_t end = 0;
  for (int n = 0; n < k->argument_count; ++n)
    if (!hidden(&k->arguments[n]) && (size_t)k->arguments[n].offset + k->arguments[n].size > end)
      end = (size_t)k->arguments[n].offset + k->arguments[n].size;
  return end;
}

static hipError_t gather(const codeobject_kernel *k, void **parameters, char *packed) {
  int given = 0;
  for (int n = 0; n < k->argument_count; ++n) {
    const codeobject_argument *a = &k->arguments[n];
    if (hidden(a)) continue;
    if (!parameters[given]) return hipErrorInvalidValue;
    memcpy(packed + a->offset, parameters[given++], a->size);
  }
  return hipSuccess;
}

/* {HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END} */
static hipError_t read_extra(void **extra, const void **out_packed, size_t *out_size) {
  const size_t *size = NULL;
  *out_packed = NULL;
  for (; *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER)
      *out_packed = extra[1];
    else if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE)
      size = extra[1];
    else
      return hipErrorInvalidValue;
  }
  if (!size || (*size > 0 && !*out_packed)) return hipErrorInvalidValue;
  *out_size = *size;
  return hipSuccess;
}

static hipError_t check_dimensions(dim3 grid, dim3 block) {
  const uint32_t grids[] = {grid.x, grid.y, grid.z}, blocks[] = {block.x, block.y, block.z};
  for (int n = 0; n < 3; ++n)
    if (grids[n] == 0 || blocks[n] == 0 || (uint64_t)grids[n] * blocks[n] > UINT32_MAX)
      return hipErrorInvalidConfiguration;
  return hipSuccess;
}

static hipError_t launch_packed(hipFunction_t f, dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream,
                                const void *packed, size_t size) {
  hipemu_device *d = NULL;
  device_stream *s = NULL;
  diags messages;
  hipError_t code = hipemu_enqueue(stream, &d, &s);
  if (code == hipSuccess && d != f->module->device) code = hipErrorInvalidHandle;
  if (code != hipSuccess) return code;
  const device_launch l = {.grid = {grid.x, grid.y, grid.z},
                           .block = {block.x, block.y, block.z},
                           .lds_bytes = (uint32_t)lds_bytes,
                           .arguments = packed,
                           .arguments_size = size};
  diags_init(&messages);
  return hipemu_answer(d, d->device->vtable->launch(d->device, s, f->function, &l, &messages), &messages);
}

hipError_t hipemu_launch(hipFunction_t f, dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream,
                         void **parameters, void **extra) {
  const void *given = NULL;
  size_t size = argument_bytes(f->kernel);
  hipError_t code = check_dimensions(grid, block);
  if (code == hipSuccess && lds_bytes > UINT32_MAX) code = hipErrorLaunchOutOfResources;
  if (code == hipSuccess && parameters && extra) code = hipErrorInvalidValue;
  if (code != hipSuccess) return code;
  if (extra) {
    code = read_extra(extra, &given, &size);
    return code == hipSuccess ? launch_packed(f, grid, block, lds_bytes, stream, given, size) : code;
  }
  if (size == 0) return launch_packed(f, grid, block, lds_bytes, stream, NULL, 0);
  if (!parameters) {
    hipemu_log("hip.launch", "kernel %s takes %zu bytes of arguments, none were given", f->kernel->symbol,
               size);
    return hipErrorInvalidValue;
  }
  char *packed = calloc(1, size);
  if (!packed) return hipErrorOutOfMemory;
  code = gather(f->kernel, parameters, packed);
  if (code == hipSuccess) code = launch_packed(f, grid, block, lds_bytes, stream, packed, size);
  free(packed);
  return code;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int lds_bytes, hipStream_t stream,
                                 void **parameters, void **extra) {
  if (!function || !hipemu_handle_check(function, HIPEMU_FUNCTION))
    return hipemu_report(hipErrorInvalidHandle);
  const dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
  return hipemu_report(hipemu_launch(function, grid, block, lds_bytes, stream, parameters, extra));
}
