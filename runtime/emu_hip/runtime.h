/* Inside the HIP runtime over the emulator: devices, live handles, errors, captures. Every HIP function ends
 * in hipemu_report, which keeps the thread's last error; everything below it returns plain codes.
 *
 * Threads: any thread may call anything; each has its own current device, last error and capture mode. Work
 * is done when the call that asked for it returns, so streams order nothing that is not in order already. */
#ifndef HEDDLE_EMU_HIP_RUNTIME_H
#define HEDDLE_EMU_HIP_RUNTIME_H

#include "../object/codeobject.h"
#include "../device/device.h"
#include "api.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- Devices (device.c) ---- */

typedef enum hipemu_property {
#define X(property, ...) PROPERTY_##property,
  HIP_PROPERTIES(X)
#undef X
      PROPERTY_COUNT
} hipemu_property;

typedef struct hipemu_device {
  device *device;
  int ordinal;
  const struct target *target; /* ../../generator/target.h */
  device_facts facts;
  char name[HIP_NAME_SIZE];
  int64_t values[PROPERTY_COUNT];
  _Atomic int fault; /* hipError_t of the first kernel that failed: the device is lost until hipDeviceReset */
} hipemu_device;

enum { HIPEMU_DEVICES_MOST = 16 };

/* Opens the devices on first use. hipErrorNoDevice when there is none. */
hipError_t hipemu_enter(hipemu_device **out_current);
hipError_t hipemu_device_at(int ordinal, hipemu_device **out_device);
int hipemu_device_count(void);

/* ---- Errors (error.c) ---- */

hipError_t hipemu_report(hipError_t code);
/* A diagnostic of the runtime's own, to the log. `code`: "hip.pointer". */
void hipemu_log(const char *code, const char *format, ...) HD_PRINTF(2, 3);
/* What the emulator answered: logs and finishes `messages`, and marks the device lost after a fault. */
hipError_t hipemu_answer(hipemu_device *d, hd_status status, diags *messages);

/* ---- Live handles (handle.c) ---- */

typedef enum hipemu_kind {
  HIPEMU_STREAM,
  HIPEMU_EVENT,
  HIPEMU_MODULE,
  HIPEMU_FUNCTION,
  HIPEMU_GRAPH,
  HIPEMU_EXECUTABLE
} hipemu_kind;

bool hipemu_handle_add(const void *handle, hipemu_kind kind);
/* False, and a line in the log, when it is not alive or of another kind. */
bool hipemu_handle_check(const void *handle, hipemu_kind kind);
/* The same; it is not alive afterwards. */
bool hipemu_handle_remove(const void *handle, hipemu_kind kind);

/* ---- Memory (memory.c) ---- */

typedef struct hipemu_allocation {
  uint64_t start;
  size_t size;
  hipemu_device *device;
  unsigned type; /* hipMemoryTypeHost, …Device, …Managed */
  unsigned flags;
} hipemu_allocation;

static inline uint64_t hipemu_address(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}
/* The allocation that holds `address`. */
bool hipemu_allocation_find(uint64_t address, hipemu_allocation *out_allocation);

/* ---- Streams and captures (stream.c, capture.c) ---- */

typedef struct hipemu_capture hipemu_capture;

struct ihipStream_t {
  hipemu_device *device;
  device_stream *stream;
  unsigned flags;
  int priority;
  hipemu_capture *capture; /* NULL: work is done at once */
  bool unjoined;           /* it joined another stream's capture and did work that no event led back */
};

/* What is captured on several streams is kept in the order of the calls, in the stream where the capture
 * began. */
struct hipemu_capture {
  hipemu_capture *next;
  hipStream_t origin;
  hipStreamCaptureMode mode;
  pthread_t owner;
  unsigned long long id;
  atomic_bool invalidated;
};

/* Where work of `stream` goes, and whether it may go there. `*out_stream` NULL: the default stream. */
hipError_t hipemu_enqueue(hipStream_t stream, hipemu_device **out_device, device_stream **out_stream);
/* NULL for the default streams; `*out_device` is the stream's. */
hipError_t hipemu_stream(hipStream_t handle, hipStream_t *out_stream, hipemu_device **out_device);
/* For calls that a capture forbids (hipMalloc, waiting …): invalidates the captures that are concerned. */
hipError_t hipemu_uncaptured(void);
/* Work of the default stream depends on that of all streams but non-blocking ones. */
hipError_t hipemu_default_stream_allowed(const hipemu_device *d);
/* Ends a stream's part in a capture, when it is destroyed. */
void hipemu_capture_drop(hipStream_t stream);
/* `stream` waits for an event that was recorded on `from` while capture `id` ran. */
hipError_t hipemu_capture_join(hipStream_t stream, hipStream_t from, unsigned long long id);

/* ---- Code objects, functions and launches (image.c, module.c, launch.c) ---- */

struct ihipModule_t {
  hipemu_device *device;
  device_module *module;
  codeobject *object;
  hipFunction_t functions[CODEOBJECT_MAX_KERNELS]; /* as in `object`; NULL until asked for */
};

struct ihipModuleSymbol_t {
  hipModule_t module;
  device_function *function;
  const codeobject_kernel *kernel;
};

/* The code object for the device in `image`: an ELF file as it is, or an entry of a bundle. `limit`: bytes
 * known to be readable, SIZE_MAX when the caller did not say. Nothing is copied. */
hipError_t hipemu_image_find(const void *image, size_t limit, const char *target, const void **out_bytes,
                             size_t *out_size);
hipError_t hipemu_module_load(hipemu_device *d, const void *image, size_t limit, hipModule_t *out_module);
hipError_t hipemu_module_unload(hipModule_t module);
hipError_t hipemu_module_function(hipModule_t module, const char *name, hipFunction_t *out_function);
hipError_t hipemu_launch(hipFunction_t f, dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream,
                         void **parameters, void **extra);
/* The function behind a kernel's address in a compiled program, on the current device (program.c). */
hipError_t hipemu_program_function(const void *host_function, hipFunction_t *out_function);

#endif
