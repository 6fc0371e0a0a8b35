// What CUDA's compilers know without an include, as far as emitted sources use it: declarations enough to check a source for
// sm_90 with clang on a machine without CUDA. Nothing is ever linked or run.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __maxnreg__(registers)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned x, y, z;
};
extern const __device__ dim3 threadIdx, blockIdx;

struct __align__(16) float4 {
  float x, y, z, w;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};

__device__ float fmaxf(float, float), fabsf(float), fmaf(float, float, float);
__device__ float __uint_as_float(unsigned);
__device__ unsigned __float_as_uint(float), __byte_perm(unsigned, unsigned, unsigned);
__device__ unsigned __ballot_sync(unsigned, int), __reduce_add_sync(unsigned, unsigned);
__device__ int __clz(int), __popcll(unsigned long long);
__device__ unsigned long __cvta_generic_to_shared(const void *);
__device__ void __syncthreads(), __syncwarp(unsigned = 0xffffffffu);
__device__ uint4 make_uint4(unsigned, unsigned, unsigned, unsigned);
__device__ float2 make_float2(float, float);
__device__ float4 make_float4(float, float, float, float);
template <typename T> __device__ T __shfl_sync(unsigned, T, int, int = 32);
template <typename T> __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
template <typename T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <typename T> __device__ T __ldcg(const T *);
