/* Every exported function. The real headers declare the same ones again when the signatures are checked,
 * except for what they leave to the compiler: hipGetDeviceProperties under its own name (the struct of ROCm
 * 5; programs since ROCm 6 call hipGetDevicePropertiesR0600) and the registration of a compiled program's
 * kernels. */
#ifndef HEDDLE_EMU_HIP_API_H
#define HEDDLE_EMU_HIP_API_H

#include "abi.h"

/* ---- Devices ---- */
hipError_t hipInit(unsigned int flags);
hipError_t hipDriverGetVersion(int *out_version);
hipError_t hipRuntimeGetVersion(int *out_version);
hipError_t hipGetDeviceCount(int *out_count);
hipError_t hipSetDevice(int ordinal);
hipError_t hipGetDevice(int *out_ordinal);
hipError_t hipDeviceGet(hipDevice_t *out_device, int ordinal);
hipError_t hipDeviceGetName(char *out_name, int size, hipDevice_t ordinal);
hipError_t hipDeviceGetUuid(hipUUID *out_uuid, hipDevice_t ordinal);
hipError_t hipDeviceTotalMem(size_t *out_bytes, hipDevice_t ordinal);
hipError_t hipDeviceComputeCapability(int *out_major, int *out_minor, hipDevice_t ordinal);
hipError_t hipDeviceGetAttribute(int *out_value, hipDeviceAttribute_t attribute, int ordinal);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out_properties, int ordinal);
#undef hipGetDeviceProperties
hipError_t hipGetDeviceProperties(void *out_properties, int ordinal);
hipError_t hipDeviceCanAccessPeer(int *out_can, int ordinal, int peer);
hipError_t hipDeviceGetStreamPriorityRange(int *out_least, int *out_greatest);
hipError_t hipGetDeviceFlags(unsigned int *out_flags);
hipError_t hipSetDeviceFlags(unsigned flags);
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceReset(void);

/* ---- Contexts: a device has one, its primary context ---- */
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *out_context, hipDevice_t ordinal);
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t ordinal);
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t ordinal, unsigned int *out_flags, int *out_active);
hipError_t hipCtxGetCurrent(hipCtx_t *out_context);
hipError_t hipCtxSetCurrent(hipCtx_t context);
hipError_t hipCtxGetDevice(hipDevice_t *out_device);
hipError_t hipCtxSynchronize(void);

/* ---- Errors ---- */
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
const char *hipGetErrorName(hipError_t code);
const char *hipGetErrorString(hipError_t code);
hipError_t hipDrvGetErrorName(hipError_t code, const char **out_name);
hipError_t hipDrvGetErrorString(hipError_t code, const char **out_text);

/* ---- Memory ---- */
hipError_t hipMalloc(void **out_pointer, size_t bytes);
hipError_t hipFree(void *pointer);
hipError_t hipMallocAsync(void **out_pointer, size_t bytes, hipStream_t stream);
hipError_t hipFreeAsync(void *pointer, hipStream_t stream);
hipError_t hipMallocManaged(void **out_pointer, size_t bytes, unsigned int flags);
hipError_t hipHostMalloc(void **out_pointer, size_t bytes, unsigned int flags);
hipError_t hipHostAlloc(void **out_pointer, size_t bytes, unsigned int flags);
hipError_t hipMallocHost(void **out_pointer, size_t bytes);
hipError_t hipHostFree(void *pointer);
hipError_t hipFreeHost(void *pointer);
hipError_t hipHostGetDevicePointer(void **out_pointer, void *host, unsigned int flags);
hipError_t hipHostGetFlags(unsigned int *out_flags, void *host);
hipError_t hipMemGetInfo(size_t *out_free, size_t *out_total);
hipError_t hipMemPtrGetInfo(void *pointer, size_t *out_bytes);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *out_base, size_t *out_bytes, hipDeviceptr_t pointer);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out_attributes, const void *pointer);

/* ---- Copies and fills ---- */
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream);
hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, hipMemcpyKind kind);
hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemset(void *to, int value, size_t bytes);
hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream);
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count);
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream);
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count);
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream);
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count);
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream);

/* ---- Modules, functions, launches ---- */
hipError_t hipModuleLoad(hipModule_t *out_module, const char *path);
hipError_t hipModuleLoadData(hipModule_t *out_module, const void *image);
hipError_t hipModuleLoadDataEx(hipModule_t *out_module, const void *image, unsigned int option_count,
                               hipJitOption *options, void **option_values);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *out_function, hipModule_t module, const char *name);
hipError_t hipModuleGetFunctionCount(unsigned int *out_count, hipModule_t module);
hipError_t hipFuncGetAttribute(int *out_value, hipFunction_attribute attribute, hipFunction_t function);
hipError_t hipFuncGetAttributes(struct hipFuncAttributes *out_attributes, const void *host_function);
hipError_t hipFuncSetAttribute(const void *host_function, hipFuncAttribute attribute, int value);
hipError_t hipFuncSetCacheConfig(const void *host_function, hipFuncCache_t preference);
hipError_t hipGetFuncBySymbol(hipFunction_t *out_function, const void *host_function);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int lds_bytes, hipStream_t stream,
                                 void **parameters, void **extra);
hipError_t hipLaunchKernel(const void *host_function, dim3 grid, dim3 block, void **parameters,
                           size_t lds_bytes, hipStream_t stream);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, hipFunction_t function,
                                                              int block_threads, size_t lds_bytes);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, const void *host_function,
                                                        int block_threads, size_t lds_bytes);

/* ---- Compiled programs ---- */
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3 *out_grid, dim3 *out_block, size_t *out_lds_bytes,
                                     hipStream_t *out_stream);
hip_fat_binary **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(hip_fat_binary **handle);
void __hipRegisterFunction(hip_fat_binary **handle, const void *host_function, char *device_text,
                           const char *device_name, unsigned int thread_limit, void *thread_id,
                           void *block_id, dim3 *block, dim3 *grid, int *warp_size);
void __hipRegisterVar(hip_fat_binary **handle, void *host_variable, char *host_name, char *device_name,
                      int external, size_t bytes, int constant, int global);

/* ---- Streams and events ---- */
hipError_t hipStreamCreate(hipStream_t *out_stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *out_stream, unsigned int flags);
hipError_t hipStreamCreateWithPriority(hipStream_t *out_stream, unsigned int flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags);
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *out_flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int *out_priority);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out_device);
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user,
                                unsigned int flags);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user);
hipError_t hipEventCreate(hipEvent_t *out_event);
hipError_t hipEventCreateWithFlags(hipEvent_t *out_event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float *out_milliseconds, hipEvent_t start, hipEvent_t stop);

/* ---- Graphs ---- */
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out_graph);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out_status);
hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *out_status,
                                   unsigned long long *out_id);
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode);
hipError_t hipGraphInstantiate(hipGraphExec_t *out_executable, hipGraph_t graph, hipGraphNode_t *out_node,
                               char *out_log, size_t log_size);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out_executable, hipGraph_t graph,
                                        unsigned long long flags);
hipError_t hipGraphUpload(hipGraphExec_t executable, hipStream_t stream);
hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphExecDestroy(hipGraphExec_t executable);

#endif
