/* The part of HIP's C interface that this library implements: names, numbers and layouts of ROCm 7 as its
 * reference manual states them. Nothing of ROCm is needed to build.
 *
 * tests/hip_program/check_signatures.c compiles the library once more with HEDDLE_HIP_REAL_HEADERS, where
 * ROCm's headers take this file's place: every number and offset here is asserted against theirs, and every
 * prototype of api.h must agree with theirs. Lists are X-macros for that. */
#ifndef HEDDLE_EMU_HIP_ABI_H
#define HEDDLE_EMU_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

/* X(name, number, text) */
#define HIP_ERRORS(X)                                                                                        \
  X(hipSuccess, 0, "no error")                                                                               \
  X(hipErrorInvalidValue, 1, "invalid argument")                                                             \
  X(hipErrorOutOfMemory, 2, "out of memory")                                                                 \
  X(hipErrorNotInitialized, 3, "initialization error")                                                       \
  X(hipErrorDeinitialized, 4, "driver shutting down")                                                        \
  X(hipErrorProfilerDisabled, 5, "profiler disabled while using external profiling tool")                    \
  X(hipErrorProfilerNotInitialized, 6, "profiler is not initialized")                                        \
  X(hipErrorProfilerAlreadyStarted, 7, "profiler already started")                                           \
  X(hipErrorProfilerAlreadyStopped, 8, "profiler already stopped")                                           \
  X(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                                       \
  X(hipErrorInvalidPitchValue, 12, "invalid pitch argument")                                                 \
  X(hipErrorInvalidSymbol, 13, "invalid device symbol")                                                      \
  X(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                                              \
  X(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                 \
  X(hipErrorInsufficientDriver, 35, "driver version is insufficient for runtime version")                    \
  X(hipErrorMissingConfiguration, 52, "__global__ function call is not configured")                          \
  X(hipErrorPriorLaunchFailure, 53, "unspecified launch failure in prior launch")                            \
  X(hipErrorInvalidDeviceFunction, 98, "invalid device function")                                            \
  X(hipErrorNoDevice, 100, "no ROCm-capable device is detected")                                             \
  X(hipErrorInvalidDevice, 101, "invalid device ordinal")                                                    \
  X(hipErrorInvalidImage, 200, "device kernel image is invalid")                                             \
  X(hipErrorInvalidContext, 201, "invalid device context")                                                   \
  X(hipErrorContextAlreadyCurrent, 202, "context is already current context")                                \
  X(hipErrorMapFailed, 205, "mapping of buffer object failed")                                               \
  X(hipErrorUnmapFailed, 206, "unmapping of buffer object failed")                                           \
  X(hipErrorArrayIsMapped, 207, "array is mapped")                                                           \
  X(hipErrorAlreadyMapped, 208, "resource already mapped")                                                   \
  X(hipErrorNoBinaryForGpu, 209, "no kernel image is available for execution on the device")                 \
  X(hipErrorAlreadyAcquired, 210, "resource already acquired")                                               \
  X(hipErrorNotMapped, 211, "resource not mapped")                                                           \
  X(hipErrorNotMappedAsArray, 212, "resource not mapped as array")                                           \
  X(hipErrorNotMappedAsPointer, 213, "resource not mapped as pointer")                                       \
  X(hipErrorECCNotCorrectable, 214, "uncorrectable ECC error encountered")                                   \
  X(hipErrorUnsupportedLimit, 215, "limit is not supported on this architecture")                            \
  X(hipErrorContextAlreadyInUse, 216, "exclusive-thread device already in use by a different thread")        \
  X(hipErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices")            \
  X(hipErrorInvalidKernelFile, 218, "invalid kernel file")                                                   \
  X(hipErrorInvalidGraphicsContext, 219, "invalid OpenGL or DirectX context")                                \
  X(hipErrorInvalidSource, 300, "device kernel image is invalid")                                            \
  X(hipErrorFileNotFound, 301, "file not found")                                                             \
  X(hipErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found")                               \
  X(hipErrorSharedObjectInitFailed, 303, "shared object initialization failed")                              \
  X(hipErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")                    \
  X(hipErrorInvalidHandle, 400, "invalid resource handle")                                                   \
  X(hipErrorIllegalState, 401, "the operation cannot be performed in the present state")                     \
  X(hipErrorNotFound, 500, "named symbol not found")                                                         \
  X(hipErrorNotReady, 600, "device not ready")                                                               \
  X(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")                                 \
  X(hipErrorLaunchOutOfResources, 701, "too many resources requested for launch")                            \
  X(hipErrorLaunchTimeOut, 702, "the launch timed out and was terminated")                                   \
  X(hipErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                 \
  X(hipErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                                   \
  X(hipErrorSetOnActiveProcess, 708, "cannot set while device is active in this process")                    \
  X(hipErrorContextIsDestroyed, 709, "context is destroyed")                                                 \
  X(hipErrorAssert, 710, "device-side assert triggered")                                                     \
  X(hipErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  X(hipErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")       \
  X(hipErrorLaunchFailure, 719, "unspecified launch failure")                                                \
  X(hipErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                         \
  X(hipErrorNotSupported, 801, "operation not supported")                                                    \
  X(hipErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")               \
  X(hipErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")        \
  X(hipErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")      \
  X(hipErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")             \
  X(hipErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                \
  X(hipErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")          \
  X(hipErrorStreamCaptureImplicit, 906,                                                                      \
    "operation would make the legacy stream depend on a capturing blocking stream")                          \
  X(hipErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream")   \
  X(hipErrorStreamCaptureWrongThread, 908,                                                                   \
    "attempt to terminate a thread-local capture sequence from another thread")                              \
  X(hipErrorGraphExecUpdateFailure, 910,                                                                     \
    "the graph update was not performed because it included changes which violated constraints specific to " \
    "instantiated graph update")                                                                             \
  X(hipErrorInvalidChannelDescriptor, 911, "invalid resource description of texture passed to the api")      \
  X(hipErrorInvalidTexture, 912, "invalid texture object passed to the api")                                 \
  X(hipErrorUnknown, 999, "unknown error")                                                                   \
  X(hipErrorRuntimeMemory, 1052, "runtime memory call returned error")                                       \
  X(hipErrorRuntimeOther, 1053, "runtime call other than memory returned error")                             \
  X(hipErrorTbd, 1054, "unknown error")

/* Enumerators other than errors and device attributes: X(type, name, number). */
#define HIP_ENUMERATORS(X)                                                                                   \
  X(hipMemcpyKind, hipMemcpyHostToHost, 0)                                                                   \
  X(hipMemcpyKind, hipMemcpyHostToDevice, 1)                                                                 \
  X(hipMemcpyKind, hipMemcpyDeviceToHost, 2)                                                                 \
  X(hipMemcpyKind, hipMemcpyDeviceToDevice, 3)                                                               \
  X(hipMemcpyKind, hipMemcpyDefault, 4)                                                                      \
  X(hipMemcpyKind, hipMemcpyDeviceToDeviceNoCU, 1024)                                                        \
  X(hipMemoryType, hipMemoryTypeUnregistered, 0)                                                             \
  X(hipMemoryType, hipMemoryTypeHost, 1)                                                                     \
  X(hipMemoryType, hipMemoryTypeDevice, 2)                                                                   \
  X(hipMemoryType, hipMemoryTypeManaged, 3)                                                                  \
  X(hipStreamCaptureMode, hipStreamCaptureModeGlobal, 0)                                                     \
  X(hipStreamCaptureMode, hipStreamCaptureModeThreadLocal, 1)                                                \
  X(hipStreamCaptureMode, hipStreamCaptureModeRelaxed, 2)                                                    \
  X(hipStreamCaptureStatus, hipStreamCaptureStatusNone, 0)                                                   \
  X(hipStreamCaptureStatus, hipStreamCaptureStatusActive, 1)                                                 \
  X(hipStreamCaptureStatus, hipStreamCaptureStatusInvalidated, 2)                                            \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                      \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                          \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                                           \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                           \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                   \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                             \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA, 7)                                              \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                              \
  X(hipFunction_attribute, HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)                           \
  X(hipFuncAttribute, hipFuncAttributeMaxDynamicSharedMemorySize, 8)                                         \
  X(hipFuncAttribute, hipFuncAttributePreferredSharedMemoryCarveout, 9)

/* What hipDeviceGetAttribute and the two structs of properties tell, under our own names:
 * X(property, attribute, offset in hipDeviceProp_tR0600, its size, offset in hipDeviceProp_tR0000, its size,
 * member). Bytes. The second list: what the older struct has no member for. */
#define HIP_PROPERTIES_OF_BOTH(X)                                                                            \
  X(TOTAL_MEMORY, hipDeviceAttributeTotalGlobalMem, 84, 288, 8, 256, 8, totalGlobalMem)                      \
  X(LDS_PER_BLOCK, hipDeviceAttributeMaxSharedMemoryPerBlock, 74, 296, 8, 264, 8, sharedMemPerBlock)         \
  X(REGISTERS_PER_BLOCK, hipDeviceAttributeMaxRegistersPerBlock, 71, 304, 4, 272, 4, regsPerBlock)           \
  X(WAVE, hipDeviceAttributeWarpSize, 87, 308, 4, 276, 4, warpSize)                                          \
  X(PITCH, hipDeviceAttributeMaxPitch, 58, 312, 8, 712, 8, memPitch)                                         \
  X(BLOCK_THREADS, hipDeviceAttributeMaxThreadsPerBlock, 56, 320, 4, 280, 4, maxThreadsPerBlock)             \
  X(BLOCK_X, hipDeviceAttributeMaxBlockDimX, 26, 324, 4, 284, 4, maxThreadsDim[0])                           \
  X(BLOCK_Y, hipDeviceAttributeMaxBlockDimY, 27, 328, 4, 288, 4, maxThreadsDim[1])                           \
  X(BLOCK_Z, hipDeviceAttributeMaxBlockDimZ, 28, 332, 4, 292, 4, maxThreadsDim[2])                           \
  X(GRID_X, hipDeviceAttributeMaxGridDimX, 29, 336, 4, 296, 4, maxGridSize[0])                               \
  X(GRID_Y, hipDeviceAttributeMaxGridDimY, 30, 340, 4, 300, 4, maxGridSize[1])                               \
  X(GRID_Z, hipDeviceAttributeMaxGridDimZ, 31, 344, 4, 304, 4, maxGridSize[2])                               \
  X(CLOCK, hipDeviceAttributeClockRate, 5, 348, 4, 308, 4, clockRate)                                        \
  X(MAJOR, hipDeviceAttributeComputeCapabilityMajor, 23, 360, 4, 328, 4, major)                              \
  X(MINOR, hipDeviceAttributeComputeCapabilityMinor, 61, 364, 4, 332, 4, minor)                              \
  X(COMPUTE_UNITS, hipDeviceAttributeMultiprocessorCount, 63, 388, 4, 336, 4, multiProcessorCount)           \
  X(INTEGRATED, hipDeviceAttributeIntegrated, 16, 396, 4, 652, 4, integrated)                                \
  X(MAPS_HOST, hipDeviceAttributeCanMapHostMemory, 3, 400, 4, 388, 4, canMapHostMemory)                      \
  X(COMPUTE_MODE, hipDeviceAttributeComputeMode, 6, 404, 4, 348, 4, computeMode)                             \
  X(CONCURRENT, hipDeviceAttributeConcurrentKernels, 8, 576, 4, 360, 4, concurrentKernels)                   \
  X(ECC, hipDeviceAttributeEccEnabled, 0, 580, 4, 740, 4, ECCEnabled)                                        \
  X(PCI_BUS, hipDeviceAttributePciBusId, 67, 584, 4, 368, 4, pciBusID)                                       \
  X(PCI_DEVICE, hipDeviceAttributePciDeviceId, 68, 588, 4, 372, 4, pciDeviceID)                              \
  X(PCI_DOMAIN, hipDeviceAttributePciDomainID, 69, 592, 4, 364, 4, pciDomainID)                              \
  X(MEMORY_CLOCK, hipDeviceAttributeMemoryClockRate, 60, 608, 4, 312, 4, memoryClockRate)                    \
  X(MEMORY_BUS, hipDeviceAttributeMemoryBusWidth, 59, 612, 4, 316, 4, memoryBusWidth)                        \
  X(L2, hipDeviceAttributeL2CacheSize, 19, 616, 4, 340, 4, l2CacheSize)                                      \
  X(THREADS, hipDeviceAttributeMaxThreadsPerMultiProcessor, 57, 624, 4, 344, 4, maxThreadsPerMultiProcessor) \
  X(MANAGED, hipDeviceAttributeManagedMemory, 24, 652, 4, 772, 4, managedMemory)                             \
  X(MULTI_BOARD, hipDeviceAttributeIsMultiGpuBoard, 17, 656, 4, 384, 4, isMultiGpuBoard)                     \
  X(CONCURRENT_MANAGED, hipDeviceAttributeConcurrentManagedAccess, 9, 676, 4, 780, 4,                        \
    concurrentManagedAccess)                                                                                 \
  X(COOPERATIVE, hipDeviceAttributeCooperativeLaunch, 10, 688, 4, 656, 4, cooperativeLaunch)                 \
  X(LDS_AMD, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 10002, 1416, 8, 376, 8,                     \
    maxSharedMemoryPerMultiProcessor)                                                                        \
  X(DEVICE_CLOCK, hipDeviceAttributeClockInstructionRate, 10000, 1424, 4, 352, 4, clockInstructionRate)      \
  X(LARGE_BAR, hipDeviceAttributeIsLargeBar, 10011, 1464, 4, 764, 4, isLargeBar)
#define HIP_PROPERTIES_SINCE_6(X)                                                                            \
  X(COPY_ENGINES, hipDeviceAttributeAsyncEngineCount, 2, 600, 4, 0, 0, asyncEngineCount)                     \
  X(ONE_ADDRESS_SPACE, hipDeviceAttributeUnifiedAddressing, 85, 604, 4, 0, 0, unifiedAddressing)             \
  X(PRIORITIES, hipDeviceAttributeStreamPrioritiesSupported, 78, 628, 4, 0, 0, streamPrioritiesSupported)    \
  X(LDS, hipDeviceAttributeSharedMemPerMultiprocessor, 76, 640, 8, 0, 0, sharedMemPerMultiprocessor)         \
  X(REGISTERS, hipDeviceAttributeMaxRegistersPerMultiprocessor, 72, 648, 4, 0, 0, regsPerMultiprocessor)     \
  X(LDS_OPT_IN, hipDeviceAttributeSharedMemPerBlockOptin, 75, 696, 8, 0, 0, sharedMemPerBlockOptin)          \
  X(HOST_REGISTER, hipDeviceAttributeHostRegisterSupported, 90, 728, 4, 0, 0, hostRegisterSupported)         \
  X(POOLS, hipDeviceAttributeMemoryPoolsSupported, 88, 744, 4, 0, 0, memoryPoolsSupported)
#define HIP_PROPERTIES(X)                                                                                    \
  HIP_PROPERTIES_OF_BOTH(X)                                                                                  \
  HIP_PROPERTIES_SINCE_6(X)

/* The structs of properties: `name` is at 0 in both. R0600 is ROCm 6 and 7's, R0000 that of ROCm 5. */
enum {
  HIP_NAME_SIZE = 256,
  HIP_ARCH_NAME_SIZE = 256,
  HIP_R0600_SIZE = 1472,
  HIP_R0600_ARCH_NAME_AT = 1160,
  HIP_R0000_SIZE = 792,
  HIP_R0000_ARCH_NAME_AT = 396
};

#ifdef HEDDLE_HIP_REAL_HEADERS

#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>

#else

typedef enum hipError_t {
#define X(name, number, text) name = number,
  HIP_ERRORS(X)
#undef X
} hipError_t;

typedef enum hipDeviceAttribute_t {
#define X(property, attribute, number, ...) attribute = number,
  HIP_PROPERTIES(X)
#undef X
} hipDeviceAttribute_t;

/* Enumerators are plain constants here; a parameter of an enumerated type is an unsigned int in the ABI. */
enum {
#define X(type, name, number) name = number,
  HIP_ENUMERATORS(X)
#undef X
};
typedef unsigned int hipMemcpyKind;
typedef unsigned int hipStreamCaptureMode;
typedef unsigned int hipStreamCaptureStatus;
typedef unsigned int hipFunction_attribute;
typedef unsigned int hipFuncAttribute;
typedef unsigned int hipFuncCache_t;
typedef unsigned int hipJitOption;

#define hipStreamLegacy ((hipStream_t)1)
#define hipStreamPerThread ((hipStream_t)2)
#define hipStreamNonBlocking 1u
#define hipEventBlockingSync 1u
#define hipEventDisableTiming 2u
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)
#define HIP_LAUNCH_PARAM_END ((void *)3)

typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipDeviceProp_tR0600 hipDeviceProp_tR0600;
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *user);
typedef void (*hipHostFn_t)(void *user);

typedef struct dim3 {
  uint32_t x, y, z;
} dim3;

typedef struct hipUUID_t {
  char bytes[16];
} hipUUID;

typedef struct hipPointerAttribute_t {
  unsigned int type; /* hipMemoryType */
  int device;
  void *devicePointer, *hostPointer;
  int isManaged;
  unsigned allocationFlags;
} hipPointerAttribute_t;

typedef struct hipFuncAttributes {
  int binaryVersion, cacheModeCA;
  size_t constSizeBytes, localSizeBytes;
  int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
  size_t sharedSizeBytes;
} hipFuncAttributes;

#endif

/* Layouts that are asserted on both sides: X(type, member, offset) and X(type, size). */
#define HIP_MEMBERS(X)                                                                                       \
  X(dim3, x, 0)                                                                                              \
  X(dim3, y, 4)                                                                                              \
  X(dim3, z, 8)                                                                                              \
  X(hipPointerAttribute_t, type, 0)                                                                          \
  X(hipPointerAttribute_t, device, 4)                                                                        \
  X(hipPointerAttribute_t, devicePointer, 8)                                                                 \
  X(hipPointerAttribute_t, hostPointer, 16)                                                                  \
  X(hipPointerAttribute_t, isManaged, 24)                                                                    \
  X(hipPointerAttribute_t, allocationFlags, 28)                                                              \
  X(hipFuncAttributes, binaryVersion, 0)                                                                     \
  X(hipFuncAttributes, cacheModeCA, 4)                                                                       \
  X(hipFuncAttributes, constSizeBytes, 8)                                                                    \
  X(hipFuncAttributes, localSizeBytes, 16)                                                                   \
  X(hipFuncAttributes, maxDynamicSharedSizeBytes, 24)                                                        \
  X(hipFuncAttributes, maxThreadsPerBlock, 28)                                                               \
  X(hipFuncAttributes, numRegs, 32)                                                                          \
  X(hipFuncAttributes, preferredShmemCarveout, 36)                                                           \
  X(hipFuncAttributes, ptxVersion, 40)                                                                       \
  X(hipFuncAttributes, sharedSizeBytes, 48)
#define HIP_SIZES(X)                                                                                         \
  X(dim3, 12)                                                                                                \
  X(hipUUID, 16)                                                                                             \
  X(hipPointerAttribute_t, 32)                                                                               \
  X(hipFuncAttributes, 56)                                                                                   \
  X(hipError_t, 4)                                                                                           \
  X(hipDeviceAttribute_t, 4)                                                                                 \
  X(hipMemcpyKind, 4)                                                                                        \
  X(hipStreamCaptureMode, 4)                                                                                 \
  X(hipStreamCaptureStatus, 4)                                                                               \
  X(hipFunction_attribute, 4)                                                                                \
  X(hipFuncAttribute, 4)                                                                                     \
  X(hipFuncCache_t, 4)                                                                                       \
  X(hipJitOption, 4)

#define X(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member);
HIP_MEMBERS(X)
#undef X
#define X(type, size) _Static_assert(sizeof(type) == (size), #type);
HIP_SIZES(X)
#undef X

/* Entry points that only compiled programs call: clang emits calls of the first group beside its kernels. */
typedef struct hip_fat_binary hip_fat_binary;

/* What clang places in .hipFatBinSegment. */
typedef struct hip_fat_binary_wrapper {
  uint32_t magic, version; /* "HIPF", 1 */
  const void *binary;      /* a bundle of code objects */
  void *unused;
} hip_fat_binary_wrapper;

#endif
