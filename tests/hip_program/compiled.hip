// A program with its kernels in it, as clang compiles it: nothing here knows of an emulator. Ids are read with builtins, since
// HIP's blockIdx wants ROCm's device libraries, which Debian's packages of the runtime don't bring.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <vector>

constexpr int THREADS = 128;

// y[i] = a * x[i] + y[i] for i < count; a block's partial sum of y goes to sums[block].
template <typename T> __global__ void axpy(T a, const T *x, T *y, int count, T *sums) {
  extern __shared__ unsigned char bytes[];
  T *lane = reinterpret_cast<T *>(bytes);
  unsigned block = __builtin_amdgcn_workgroup_id_x(), thread = __builtin_amdgcn_workitem_id_x();
  int i = block * THREADS + thread;
  T value = 0;
  if (i < count) y[i] = value = a * x[i] + y[i];
  lane[thread] = value;
  for (unsigned half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) lane[thread] += lane[thread + half];
  }
  if (thread == 0) sums[block] = lane[0];
}

#define CHECK(call)                                                                                          \
  if (hipError_t code = (call); code != hipSuccess) {                                                        \
    std::printf("%s: %s\n", #call, hipGetErrorString(code));                                                 \
    return 1;                                                                                                \
  }

template <typename T> static int run() {
  const int count = 1000, blocks = (count + THREADS - 1) / THREADS;
  std::vector<T> x(count), y(count), sums(blocks);
  for (int i = 0; i < count; ++i) {
    x[i] = T(i % 17);
    y[i] = T(i % 5);
  }
  T *device_x, *device_y, *device_sums;
  CHECK(hipMalloc(&device_x, count * sizeof(T)));
  CHECK(hipMalloc(&device_y, count * sizeof(T)));
  CHECK(hipMalloc(&device_sums, blocks * sizeof(T)));
  CHECK(hipMemcpy(device_x, x.data(), count * sizeof(T), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(device_y, y.data(), count * sizeof(T), hipMemcpyHostToDevice));
  hipFuncAttributes attributes;
  CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void *>(axpy<T>)));
  axpy<T><<<blocks, THREADS, THREADS * sizeof(T)>>>(T(3), device_x, device_y, count, device_sums);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(y.data(), device_y, count * sizeof(T), hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(sums.data(), device_sums, blocks * sizeof(T), hipMemcpyDeviceToHost));
  int wrong = 0;
  T sum = 0, expected = 0;
  for (int i = 0; i < count; ++i) {
    T value = T(3) * T(i % 17) + T(i % 5);
    expected += value;
    wrong += y[i] != value;
  }
  for (T s : sums)
    sum += s;
  std::printf("%d wrong, sum %s, %s registers\n", wrong, sum == expected ? "right" : "wrong",
              attributes.numRegs > 0 ? "some" : "no");
  CHECK(hipFree(device_x));
  CHECK(hipFree(device_y));
  CHECK(hipFree(device_sums));
  return wrong != 0 || sum != expected;
}

int main() {
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  std::printf("%s, %s\n", properties.name, properties.gcnArchName);
  return run<float>() | run<double>() | run<int>();
}
