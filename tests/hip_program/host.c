/* A HIP program like any other: it includes ROCm's header, is linked to ROCm's libamdhip64, and is then run
 * with the emulated device in that library's place. Prints the claims that don't hold; the exit status says
 * whether there were any.
 *
 *   host KERNELS.co    the code object of kernels.hip for device 0 */
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CLAIM(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      ++broken;                                                                                              \
      printf("line %d: %s\n", __LINE__, #condition);                                                         \
    }                                                                                                        \
  } while (0)
#define OK(call) CLAIM((call) == hipSuccess)
#define FAILS(call, code) CLAIM((call) == (code))

enum { COUNT = 100, BYTES = COUNT * (int)sizeof(float), THREADS = 64, BLOCKS = 2 };

static hipModule_t module;
static hipFunction_t scale;
static float in[COUNT], out[COUNT];

static int wrong(double factor, int shift) {
  int n = 0;
  for (int i = 0; i < COUNT; ++i)
    n += out[i] != (float)(in[i] * factor + shift);
  return n;
}

static hipFunction_t kernel(const char *name) {
  hipFunction_t f = NULL;
  OK(hipModuleGetFunction(&f, module, name));
  return f;
}

static void what_the_device_is(void) {
  int count = 0, device = -1, value = 0, major = 0, minor = 0, version = 0;
  char name[256] = "";
  size_t bytes = 0, left = 0, total = 0;
  hipDeviceProp_t p;
  OK(hipInit(0));
  OK(hipGetDeviceCount(&count));
  CLAIM(count >= 1);
  OK(hipRuntimeGetVersion(&version));
  CLAIM(version / 10000000 == HIP_VERSION_MAJOR);
  OK(hipSetDevice(0));
  OK(hipGetDevice(&device));
  CLAIM(device == 0);
  FAILS(hipSetDevice(count), hipErrorInvalidDevice);
  OK(hipDeviceGetName(name, sizeof name, 0));
  CLAIM(strstr(name, "emulated") && strstr(name, "not hardware"));
  memset(&p, 0xff, sizeof p);
  OK(hipGetDeviceProperties(&p, 0));
  CLAIM(strcmp(p.name, name) == 0 && strncmp(p.gcnArchName, "gfx", 3) == 0 && strstr(name, p.gcnArchName));
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  CLAIM(value == p.warpSize && (value == 32 || value == 64));
  OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMaxSharedMemoryPerBlock, 0));
  CLAIM(value >= 65536 && (size_t)value == p.sharedMemPerBlock);
  OK(hipDeviceComputeCapability(&major, &minor, 0));
  CLAIM(major == p.major && minor == p.minor && (major == 9 || major == 12));
  OK(hipDeviceTotalMem(&bytes, 0));
  OK(hipMemGetInfo(&left, &total));
  CLAIM(bytes == p.totalGlobalMem && bytes == total && left == total);
  CLAIM(p.clockRate == 0 && p.memoryBusWidth == 0); /* it has neither */
  FAILS(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)12345, 0), hipErrorInvalidValue);
}

static void errors_are_kept_until_read(void) {
  FAILS(hipSetDevice(99), hipErrorInvalidDevice);
  OK(hipSetDevice(0));
  FAILS(hipPeekAtLastError(), hipErrorInvalidDevice);
  FAILS(hipGetLastError(), hipErrorInvalidDevice);
  OK(hipGetLastError());
  CLAIM(strcmp(hipGetErrorName(hipErrorIllegalAddress), "hipErrorIllegalAddress") == 0);
  CLAIM(strcmp(hipGetErrorString(hipErrorOutOfMemory), "out of memory") == 0);
}

static void memory_and_copies(void) {
  char host[64], *device = NULL, *pinned = NULL, *other = NULL;
  size_t size = 0, left = 0, total = 0;
  hipDeviceptr_t base = NULL;
  hipPointerAttribute_t a;
  OK(hipMalloc((void **)&device, 64));
  OK(hipMemGetInfo(&left, &total));
  CLAIM(total - left == 64);
  OK(hipMemset(device, 7, 64));
  OK(hipMemcpy(host, device, 64, hipMemcpyDeviceToHost));
  CLAIM(host[0] == 7 && host[63] == 7);
  OK(hipMemsetD32(device + 4, 0x01020304, 2));
  OK(hipMemcpyDtoH(host, device, 16));
  CLAIM(host[3] == 7 && host[4] == 4 && host[11] == 1 && host[12] == 7);
  OK(hipHostMalloc((void **)&pinned, 64, hipHostMallocDefault));
  OK(hipMemcpy(pinned, device, 64, hipMemcpyDefault));
  CLAIM(pinned[3] == 7 && pinned[4] == 4);
  OK(hipPointerGetAttributes(&a, pinned + 1));
  CLAIM(a.type == hipMemoryTypeHost && a.hostPointer == pinned + 1);
  OK(hipPointerGetAttributes(&a, device));
  CLAIM(a.type == hipMemoryTypeDevice && a.device == 0 && a.devicePointer == device);
  FAILS(hipPointerGetAttributes(&a, host), hipErrorInvalidValue);
  OK(hipMemGetAddressRange(&base, &size, device + 20));
  CLAIM(base == device && size == 64);
  OK(hipMalloc((void **)&other, 16));
  OK(hipMemcpy(other, device + 4, 8, hipMemcpyDeviceToDevice));
  OK(hipMemcpyDtoH(host, other, 8));
  CLAIM(host[0] == 4 && host[7] == 1);
  OK(hipMemcpy2D(host, 8, device, 16, 4, 2, hipMemcpyDeviceToHost));
  CLAIM(host[0] == 7 && host[8] == 7);
  FAILS(hipMemcpy(device, host, 65, hipMemcpyHostToDevice), hipErrorInvalidValue);
  FAILS(hipMemcpy(host, device + 60, 5, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  FAILS(hipMemcpyDtoD(device, other + 9, 8), hipErrorInvalidValue);
  FAILS(hipMemcpyDtoD(device + 57, other, 8), hipErrorInvalidValue);
  FAILS(hipMemset(device + 1, 0, 64), hipErrorInvalidValue);
  FAILS(hipMemcpy(host, device, 4, (hipMemcpyKind)77), hipErrorInvalidMemcpyDirection);
  FAILS(hipFree(device + 4), hipErrorInvalidValue);
  FAILS(hipFree(pinned), hipErrorInvalidValue);
  OK(hipHostFree(pinned));
  OK(hipFree(other));
  OK(hipFree(device));
  FAILS(hipFree(device), hipErrorInvalidValue);
  OK(hipFree(NULL));
  FAILS(hipMalloc((void **)&device, (size_t)1 << 50), hipErrorOutOfMemory);
  OK(hipMemGetInfo(&left, &total));
  CLAIM(left == total);
  (void)hipGetLastError();
}

static void launch_both_ways(void) {
  float *x = NULL, *y = NULL;
  char shift = 3;
  int count = COUNT, blocks = 0, value = 0;
  double factor = 2.5;
  OK(hipMalloc((void **)&x, BYTES));
  OK(hipMalloc((void **)&y, BYTES));
  OK(hipMemcpyHtoD(x, in, BYTES));
  void *parameters[] = {&y, &x, &shift, &count, &factor};
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
  OK(hipDeviceSynchronize());
  OK(hipMemcpyDtoH(out, y, BYTES));
  CLAIM(wrong(2.5, 3) == 0);

  struct {
    float *out;
    const float *in;
    char shift;
    int count;
    double factor;
  } packed = {y, x, -1, COUNT, 4.0};
  size_t size = sizeof packed;
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   HIP_LAUNCH_PARAM_END};
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
  OK(hipMemcpyDtoH(out, y, BYTES));
  CLAIM(wrong(4.0, -1) == 0);

  float *host = NULL; /* what the host shares, kernels read and write in place */
  OK(hipHostMalloc((void **)&host, 64 * sizeof *host, hipHostMallocDefault));
  for (int i = 0; i < 64; ++i)
    host[i] = (float)i;
  void *one[] = {&host};
  OK(hipModuleLaunchKernel(kernel("reverse"), 1, 1, 1, 64, 1, 1, 64 * sizeof *host, NULL, one, NULL));
  OK(hipDeviceSynchronize());
  CLAIM(host[0] == 63.0f && host[63] == 0.0f);
  OK(hipHostFree(host));

  int *sizes = NULL;
  OK(hipHostMalloc((void **)&sizes, 8, hipHostMallocDefault));
  void *sizes_only[] = {&sizes};
  OK(hipModuleLaunchKernel(kernel("hidden"), 3, 1, 1, 40, 1, 1, 0, NULL, sizes_only, NULL));
  CLAIM(sizes[0] == 40 && sizes[1] == 3);
  OK(hipHostFree(sizes));

  OK(hipModuleLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, THREADS, 0));
  CLAIM(blocks >= 8);
  OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, THREADS, 60000));
  CLAIM(blocks >= 1 && blocks <= 5);
  OK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, scale));
  CLAIM(value > 0);
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL),
        hipErrorInvalidConfiguration);
  FAILS(hipModuleLaunchKernel(scale, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
        hipErrorInvalidConfiguration);
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, parameters, NULL),
        hipErrorLaunchOutOfResources);
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), hipErrorInvalidValue);
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, extra), hipErrorInvalidValue);
  size = 8;
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), hipErrorInvalidValue);
  OK(hipFree(x));
  OK(hipFree(y));
}

static void dead_handles_are_refused(void) {
  hipStream_t stream = NULL;
  hipEvent_t event = NULL;
  hipFunction_t f = NULL;
  FAILS(hipModuleGetFunction(&f, module, "no_such_kernel"), hipErrorNotFound);
  FAILS(hipModuleLoadData((hipModule_t *)&f, "this is no code object, and no bundle"), hipErrorInvalidImage);
  FAILS(hipModuleLoad((hipModule_t *)&f, "/nowhere/kernels.co"), hipErrorFileNotFound);
  OK(hipStreamCreate(&stream));
  OK(hipStreamDestroy(stream));
  FAILS(hipStreamSynchronize(stream), hipErrorInvalidHandle);
  FAILS(hipStreamDestroy(stream), hipErrorInvalidHandle);
  OK(hipEventCreate(&event));
  FAILS(hipStreamSynchronize((hipStream_t)event), hipErrorInvalidHandle); /* alive, but no stream */
  OK(hipEventDestroy(event));
  FAILS(hipEventRecord(event, NULL), hipErrorInvalidHandle);
  FAILS(hipModuleUnload((hipModule_t)&stream), hipErrorInvalidHandle);
  (void)hipGetLastError();
}

static void note(void *user) {
  ++*(int *)user;
}

static void streams_and_events(void) {
  hipStream_t stream = NULL;
  hipEvent_t start = NULL, stop = NULL;
  float *x = NULL, milliseconds = -1;
  unsigned flags = 0;
  int called = 0;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamGetFlags(stream, &flags));
  CLAIM(flags == hipStreamNonBlocking);
  OK(hipEventCreate(&start));
  OK(hipEventCreate(&stop));
  FAILS(hipEventElapsedTime(&milliseconds, start, stop), hipErrorInvalidHandle);
  OK(hipMallocAsync((void **)&x, BYTES, stream));
  OK(hipEventRecord(start, stream));
  OK(hipMemcpyAsync(x, in, BYTES, hipMemcpyHostToDevice, stream));
  OK(hipMemcpyAsync(out, x, BYTES, hipMemcpyDeviceToHost, stream));
  OK(hipEventRecord(stop, stream));
  OK(hipLaunchHostFunc(stream, note, &called));
  OK(hipEventSynchronize(stop));
  OK(hipStreamQuery(stream));
  OK(hipStreamSynchronize(stream));
  CLAIM(called == 1 && memcmp(in, out, BYTES) == 0);
  OK(hipEventElapsedTime(&milliseconds, start, stop));
  CLAIM(milliseconds >= 0 && milliseconds < 10000);
  OK(hipFreeAsync(x, stream));
  OK(hipEventDestroy(start));
  OK(hipEventDestroy(stop));
  OK(hipStreamDestroy(stream));
  (void)hipGetLastError();
}

/* y = x * 2 on one stream, z = x * 3 on another that forks and joins; then y = z + 1 where joined. */
static void a_graph_replays_two_streams(void) {
  hipStream_t first = NULL, second = NULL;
  hipEvent_t fork = NULL, join = NULL;
  hipGraph_t graph = NULL;
  hipGraphExec_t executable = NULL;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  float *x = NULL, *y = NULL, *z = NULL;
  int count = COUNT;
  char none = 0, one = 1;
  double two = 2, three = 3, same = 1;
  OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
  OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  OK(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
  OK(hipEventCreateWithFlags(&join, hipEventDisableTiming));
  OK(hipMalloc((void **)&x, BYTES));
  OK(hipMalloc((void **)&y, BYTES));
  OK(hipMalloc((void **)&z, BYTES));
  OK(hipMemset(x, 0, BYTES));
  OK(hipMemset(y, 0, BYTES));
  OK(hipMemset(z, 0, BYTES));
  void *to_y[] = {&y, &x, &none, &count, &two}, *to_z[] = {&z, &x, &none, &count, &three};
  void *last[] = {&y, &z, &one, &count, &same};

  OK(hipStreamBeginCapture(first, hipStreamCaptureModeThreadLocal));
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, first, to_y, NULL));
  OK(hipEventRecord(fork, first));
  OK(hipStreamWaitEvent(second, fork, 0));
  OK(hipStreamIsCapturing(second, &status));
  CLAIM(status == hipStreamCaptureStatusActive);
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, second, to_z, NULL));
  OK(hipEventRecord(join, second));
  OK(hipStreamWaitEvent(first, join, 0));
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, first, last, NULL));
  OK(hipMemcpyAsync(out, y, BYTES, hipMemcpyDeviceToHost, first));
  FAILS(hipEventQuery(join), hipErrorCapturedEvent);
  OK(hipStreamEndCapture(first, &graph));
  OK(hipStreamIsCapturing(second, &status));
  CLAIM(status == hipStreamCaptureStatusNone);
  OK(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
  OK(hipGraphDestroy(graph)); /* the executable does not need it */
  three = 1000;               /* arguments were taken when the launch was captured */
  OK(hipMemcpy(x, in, BYTES, hipMemcpyHostToDevice));
  memset(out, 0, sizeof out);
  OK(hipGraphLaunch(executable, first));
  OK(hipStreamSynchronize(first));
  CLAIM(wrong(3, 1) == 0);
  OK(hipGraphExecDestroy(executable));
  FAILS(hipGraphLaunch(executable, first), hipErrorInvalidValue);

  OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
  FAILS(hipStreamSynchronize(first), hipErrorStreamCaptureUnsupported);
  FAILS(hipStreamEndCapture(first, &graph), hipErrorStreamCaptureInvalidated);
  OK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
  FAILS(hipMalloc((void **)&graph, 4), hipErrorStreamCaptureUnsupported);
  FAILS(hipStreamEndCapture(first, &graph), hipErrorStreamCaptureInvalidated);
  OK(hipStreamBeginCapture(first, hipStreamCaptureModeRelaxed));
  OK(hipEventRecord(fork, first));
  OK(hipStreamWaitEvent(second, fork, 0));
  OK(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, second, to_z, NULL));
  FAILS(hipStreamEndCapture(second, &graph), hipErrorStreamCaptureUnmatched);
  FAILS(hipStreamEndCapture(first, &graph), hipErrorStreamCaptureUnjoined);
  FAILS(hipStreamEndCapture(first, &graph), hipErrorIllegalState);
  FAILS(hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  OK(hipFree(x));
  OK(hipFree(y));
  OK(hipFree(z));
  OK(hipEventDestroy(fork));
  OK(hipEventDestroy(join));
  OK(hipStreamDestroy(first));
  OK(hipStreamDestroy(second));
  (void)hipGetLastError();
}

/* A kernel that fails takes the device with it until a reset, as on hardware; the launch itself says so
 * already. */
static void a_fault_has_a_code_and_lasts(const char *name, hipError_t code) {
  float *data = NULL;
  int count = 16;
  OK(hipMalloc((void **)&data, 64));
  OK(hipMemset(data, 0, 64));
  void *parameters[] = {&data, &count};
  FAILS(hipModuleLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), code);
  FAILS(hipDeviceSynchronize(), code);
  FAILS(hipMemcpy(&count, data, 4, hipMemcpyDeviceToHost), code);
  FAILS(hipModuleLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), code);
  OK(hipDeviceReset());
  OK(hipModuleLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  OK(hipDeviceSynchronize());
  OK(hipFree(data));
  FAILS(hipGetLastError(), code);
}

enum { WORKERS = 4, ROUNDS = 8 };

typedef struct worker {
  pthread_t thread;
  int number, problems;
} worker;

/* Captures in its own thread while others allocate and launch; counts what went wrong. */
static void *work(void *argument) {
  worker *w = argument;
  float *x = NULL, *y = NULL, result[COUNT];
  char shift = (char)w->number;
  int count = COUNT, problems = 0;
  double factor = 2;
  hipStream_t stream = NULL;
  problems += hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess;
  for (int round = 0; round < ROUNDS; ++round) {
    hipGraph_t graph = NULL;
    hipGraphExec_t executable = NULL;
    problems += hipMalloc((void **)&x, BYTES) != hipSuccess;
    problems += hipMalloc((void **)&y, BYTES) != hipSuccess;
    problems += hipMemcpy(x, in, BYTES, hipMemcpyHostToDevice) != hipSuccess;
    void *parameters[] = {&y, &x, &shift, &count, &factor};
    problems += hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal) != hipSuccess;
    problems +=
        hipModuleLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL) != hipSuccess;
    problems += hipStreamEndCapture(stream, &graph) != hipSuccess;
    problems += hipGraphInstantiateWithFlags(&executable, graph, 0) != hipSuccess;
    problems += hipGraphDestroy(graph) != hipSuccess;
    problems += hipGraphLaunch(executable, stream) != hipSuccess;
    problems += hipStreamSynchronize(stream) != hipSuccess;
    problems += hipMemcpy(result, y, BYTES, hipMemcpyDeviceToHost) != hipSuccess;
    for (int i = 0; i < COUNT; ++i)
      problems += result[i] != in[i] * 2 + (float)shift;
    problems += hipGraphExecDestroy(executable) != hipSuccess;
    problems += hipFree(x) != hipSuccess;
    problems += hipFree(y) != hipSuccess;
  }
  problems += hipStreamDestroy(stream) != hipSuccess;
  w->problems = problems + (hipGetLastError() != hipSuccess);
  return NULL;
}

static void threads_capture_and_allocate_side_by_side(void) {
  worker workers[WORKERS];
  for (int n = 0; n < WORKERS; ++n) {
    workers[n] = (worker){.number = n, .problems = -1};
    CLAIM(pthread_create(&workers[n].thread, NULL, work, &workers[n]) == 0);
  }
  for (int n = 0; n < WORKERS; ++n) {
    pthread_join(workers[n].thread, NULL);
    CLAIM(workers[n].problems == 0);
  }
}

/* hipMalloc in a thread that captures nothing itself. */
static void *allocate(void *out_code) {
  void *pointer = NULL;
  *(hipError_t *)out_code = hipMalloc(&pointer, 16);
  (void)hipFree(pointer);
  return NULL;
}

static hipError_t allocate_elsewhere(void) {
  hipError_t code = hipErrorUnknown;
  pthread_t thread;
  CLAIM(pthread_create(&thread, NULL, allocate, &code) == 0);
  pthread_join(thread, NULL);
  return code;
}

static void only_a_global_capture_forbids_other_threads_to_allocate(void) {
  hipStream_t stream = NULL;
  hipGraph_t graph = NULL;
  void *pointer = NULL;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  OK(hipStreamCreate(&stream));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  FAILS(allocate_elsewhere(), hipErrorStreamCaptureUnsupported);
  FAILS(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  OK(allocate_elsewhere());
  OK(hipThreadExchangeStreamCaptureMode(&mode));
  CLAIM(mode == hipStreamCaptureModeGlobal);
  OK(hipMalloc(&pointer, 16));
  OK(hipThreadExchangeStreamCaptureMode(&mode));
  OK(hipStreamEndCapture(stream, &graph));
  OK(hipGraphDestroy(graph));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));         /* a blocking stream … */
  FAILS(hipMemsetAsync(pointer, 0, 16, NULL), hipErrorStreamCaptureImplicit); /* … and the default stream */
  FAILS(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  OK(hipFree(pointer));
  OK(hipStreamDestroy(stream));
  (void)hipGetLastError();
}

static void copies_between_devices(void) {
  int devices = 0;
  float *x = NULL, *y = NULL;
  size_t left = 0, total = 0;
  hipStream_t stream = NULL;
  hipGraph_t graph = NULL;
  OK(hipGetDeviceCount(&devices));
  CLAIM(devices == 2);
  OK(hipMalloc((void **)&x, BYTES));
  OK(hipSetDevice(1));
  OK(hipMemGetInfo(&left, &total));
  CLAIM(left == total);
  OK(hipMalloc((void **)&y, BYTES));
  OK(hipMemcpy(x, in, BYTES, hipMemcpyHostToDevice));
  OK(hipMemcpyPeer(y, 1, x, 0, BYTES));
  OK(hipMemcpy(out, y, BYTES, hipMemcpyDefault));
  CLAIM(wrong(1, 0) == 0);
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&y, &y, &y, &y, &y}, NULL),
        hipErrorInvalidHandle); /* a function belongs to its device */
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  FAILS(hipMemsetAsync(x, 0, BYTES, stream), hipErrorStreamCaptureUnsupported); /* and so does a graph */
  FAILS(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  OK(hipStreamDestroy(stream));
  OK(hipFree(x));
  OK(hipFree(y));
  OK(hipSetDevice(0));
  (void)hipGetLastError();
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  for (int i = 0; i < COUNT; ++i)
    in[i] = (float)(i * 3 % 64) - 20;
  what_the_device_is();
  errors_are_kept_until_read();
  OK(hipModuleLoad(&module, arguments[1]));
  scale = kernel("scale");
  if (broken) return 1;
  memory_and_copies();
  launch_both_ways();
  dead_handles_are_refused();
  streams_and_events();
  a_graph_replays_two_streams();
  only_a_global_capture_forbids_other_threads_to_allocate();
  threads_capture_and_allocate_side_by_side();
  copies_between_devices();
  a_fault_has_a_code_and_lasts("beyond", hipErrorIllegalAddress);
  a_fault_has_a_code_and_lasts("endless", hipErrorLaunchTimeOut);
  a_fault_has_a_code_and_lasts("unknown", hipErrorLaunchFailure);
  OK(hipModuleUnload(module));
  FAILS(hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), hipErrorInvalidHandle);
  return broken != 0;
}
