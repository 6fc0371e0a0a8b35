/* What the cuda and hip devices share. The two driver APIs have one shape, function by function: the same
 * arguments, handles that are pointers, device addresses of 64 bits, 0 for success. So the work is written
 * once, over a table of function pointers, and device_cuda.c and device_hip.c hold what differs: where the
 * library lies, what it calls things, contexts and facts.
 *
 * Prototypes are declared here, from the vendors' documentation: neither cuda.h nor the HIP headers are
 * needed to build. */
#ifndef HEDDLE_DEVICE_DRIVER_H
#define HEDDLE_DEVICE_DRIVER_H

#include "../../generator/text.h"
#include "device.h"

typedef struct driver_handle driver_handle; /* a stream, event, module, function, graph … of the driver */

/* X(field, parameters, symbol in libcuda, symbol in libamdhip64). Each returns 0 or an error code. */
#define DRIVER_SYMBOLS(X)                                                                                    \
  X(init, (unsigned flags), "cuInit", "hipInit")                                                             \
  X(device_count, (int *out_count), "cuDeviceGetCount", "hipGetDeviceCount")                                 \
  X(device_get, (int *out_device, int ordinal), "cuDeviceGet", "hipDeviceGet")                               \
  X(device_name, (char *out_name, int size, int device), "cuDeviceGetName", "hipDeviceGetName")              \
  X(device_memory, (size_t * out_bytes, int device), "cuDeviceTotalMem_v2", "hipDeviceTotalMem")             \
  X(device_attribute, (int *out_value, int attribute, int device), "cuDeviceGetAttribute",                   \
    "hipDeviceGetAttribute")                                                                                 \
  X(synchronize_device, (void), "cuCtxSynchronize", "hipDeviceSynchronize")                                  \
  X(allocate, (uint64_t * out_address, size_t bytes), "cuMemAlloc_v2", "hipMalloc")                          \
  X(release, (uint64_t address), "cuMemFree_v2", "hipFree")                                                  \
  X(copy_in, (uint64_t to, const void *from, size_t bytes, driver_handle *stream), "cuMemcpyHtoDAsync_v2",   \
    "hipMemcpyHtoDAsync")                                                                                    \
  X(copy_out, (void *to, uint64_t from, size_t bytes, driver_handle *stream), "cuMemcpyDtoHAsync_v2",        \
    "hipMemcpyDtoHAsync")                                                                                    \
  X(fill, (uint64_t to, unsigned char value, size_t bytes, driver_handle *stream), "cuMemsetD8Async",        \
    "hipMemsetD8Async")                                                                                      \
  X(module_load, (driver_handle * *out_module, const void *image), "cuModuleLoadData", "hipModuleLoadData")  \
  X(module_unload, (driver_handle * module), "cuModuleUnload", "hipModuleUnload")                            \
  X(module_function, (driver_handle * *out_function, driver_handle * module, const char *name),              \
    "cuModuleGetFunction", "hipModuleGetFunction")                                                           \
  X(launch,                                                                                                  \
    (driver_handle * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, driver_handle *stream, void **parameters,    \
     void **extra),                                                                                          \
    "cuLaunchKernel", "hipModuleLaunchKernel")                                                               \
  X(stream_create, (driver_handle * *out_stream, unsigned flags), "cuStreamCreate",                          \
    "hipStreamCreateWithFlags")                                                                              \
  X(stream_destroy, (driver_handle * stream), "cuStreamDestroy_v2", "hipStreamDestroy")                      \
  X(stream_synchronize, (driver_handle * stream), "cuStreamSynchronize", "hipStreamSynchronize")             \
  X(event_create, (driver_handle * *out_event, unsigned flags), "cuEventCreate", "hipEventCreateWithFlags")  \
  X(event_destroy, (driver_handle * event), "cuEventDestroy_v2", "hipEventDestroy")                          \
  X(event_record, (driver_handle * event, driver_handle * stream), "cuEventRecord", "hipEventRecord")        \
  X(event_synchronize, (driver_handle * event), "cuEventSynchronize", "hipEventSynchronize")                 \
  X(event_elapsed, (float *out_ms, driver_handle *start, driver_handle *stop), "cuEventElapsedTime",         \
    "hipEventElapsedTime")                                                                                   \
  X(capture_begin, (driver_handle * stream, int mode), "cuStreamBeginCapture_v2", "hipStreamBeginCapture")   \
  X(capture_end, (driver_handle * stream, driver_handle * *out_graph), "cuStreamEndCapture",                 \
    "hipStreamEndCapture")                                                                                   \
  X(capture_status, (driver_handle * stream, int *out_status), "cuStreamIsCapturing",                        \
    "hipStreamIsCapturing")                                                                                  \
  X(graph_instantiate, (driver_handle * *out_executable, driver_handle * graph, unsigned long long flags),   \
    "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags")                                           \
  X(graph_destroy, (driver_handle * graph), "cuGraphDestroy", "hipGraphDestroy")                             \
  X(graph_launch, (driver_handle * executable, driver_handle * stream), "cuGraphLaunch", "hipGraphLaunch")   \
  X(executable_destroy, (driver_handle * executable), "cuGraphExecDestroy", "hipGraphExecDestroy")

typedef struct driver_api {
#define X(field, parameters, cuda, hip) int(*field) parameters;
  DRIVER_SYMBOLS(X)
#undef X
} driver_api;

typedef struct driver_device driver_device;

/* What differs between the two. */
typedef struct driver {
  const char *kind; /* "cuda" */
  void *launch_end; /* ends the list of launch extras */
  int (*make_current)(driver_device *d);
  /* The error's symbolic name and its text; static storage of the driver, NULL where it knows none. */
  void (*error)(const driver_device *d, int code, const char **out_name, const char **out_text);
  /* Launches a kernel that waits for the one before it by itself, without waiting for that one; NULL where
   * the driver has no such launch. */
  int (*launch_early)(driver_device *d, driver_handle *function, const device_launch *launch,
                      driver_handle *stream, void **extra);
  /* Called once a function, before any launch of it. */
  int (*prepare_function)(driver_device *d, driver_handle *function, size_t dynamic_lds);
  void (*finish)(driver_device *d);
} driver;

struct driver_device {
  device base;
  const driver *driver;
  driver_api api;
  int ordinal, handle; /* which device; the driver's number for it */
  device_facts facts;
};

/* A symbol to look up and where its address goes, as an offset in a struct of function pointers. */
typedef struct driver_symbol {
  const char *name;
  size_t offset;
} driver_symbol;

/* The value of an environment variable, NULL when it is unset or empty. */
const char *driver_environment(const char *variable);
/* Loads the first of `paths` that can be; what was tried and why it failed is added to `tried`, a line each.
 * NULL when none can. */
void *driver_library_open(const char *const *paths, int count, const char **out_path, text *tried);
/* Fills the struct at `base`. HD_UNAVAILABLE with a diagnostic that names the symbol and `library`. */
hd_status driver_symbols_load(void *library, const char *path, const driver_symbol *symbols, size_t count,
                              void *base, diags *errors);

/* "" is device 0. HD_INVALID when `rest` is no number. */
hd_status driver_ordinal_parse(const char *kind, const char *rest, int *out_ordinal, diags *errors);
/* Initialises the driver and picks the device: fills ordinal, handle and the facts that both drivers tell
 * alike. HD_UNAVAILABLE when there is no such device. `path`: the library, for messages; `hint`: what else a
 * missing device may mean. */
hd_status driver_device_pick(driver_device *d, int ordinal, const char *path, const char *hint,
                             diags *errors);

/* Turns a driver's code into a status: HD_DEVICE with "WHAT: NAME (text)". */
hd_status driver_check(driver_device *d, int code, diags *errors, const char *format, ...) HD_PRINTF(4, 5);

extern const device_vtable driver_vtable;

#endif
