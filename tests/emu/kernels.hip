/* Kernels for the emulator's tests, freestanding. Each is compiled at several optimisation levels for every target. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float8v __attribute__((ext_vector_type(8)));
typedef int int2v __attribute__((ext_vector_type(2)));
typedef _Float16 half2v __attribute__((ext_vector_type(2)));

#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE static inline int thread_y() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE static inline int thread_z() { return __builtin_amdgcn_workitem_id_z(); }
DEVICE static inline int group_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE static inline int group_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE static inline int group_z() { return __builtin_amdgcn_workgroup_id_z(); }
DEVICE static inline int block_x() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE static inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL void vector_add(const float *a, const float *b, float *c, int n) {
  int i = group_x() * block_x() + thread_x();
  if (i < n) c[i] = a[i] + b[i];
}

/* One partial sum per workgroup, by a tree in LDS. */
KERNEL void reduce(const float *in, float *out, int n) {
  SHARED static float partial[256];
  int t = thread_x(), i = group_x() * 256 + t;
  partial[t] = i < n ? in[i] : 0.0f;
  barrier();
  for (int step = 128; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    barrier();
  }
  if (t == 0) out[group_x()] = partial[0];
}

/* out[z][y][x]: every thread of a 3-D grid of 3-D workgroups writes its own place. */
KERNEL void grid_ids(u32 *out, int width, int height) {
  int x = group_x() * block_x() + thread_x();
  int y = group_y() * (int)__builtin_amdgcn_workgroup_size_y() + thread_y();
  int z = group_z() * (int)__builtin_amdgcn_workgroup_size_z() + thread_z();
  out[((u64)z * height + y) * width + x] = (u32)(x + 1000 * y + 1000000 * z);
}

/* Rows of 64 bf16 to fp8 with one scale a row: amax / 448. */
KERNEL void quantise(const u16 *in, u8 *out, float *scales, float qmax, long row_stride) {
  int row = group_x(), t = thread_x();
  SHARED static float amax[64];
  union { u32 u; float f; } v;
  v.u = (u32)in[row * row_stride + t] << 16;
  amax[t] = __builtin_fabsf(v.f);
  barrier();
  for (int step = 32; step > 0; step >>= 1) {
    if (t < step) amax[t] = __builtin_fmaxf(amax[t], amax[t + step]);
    barrier();
  }
  float scale = amax[0] / qmax;
  float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  u32 packed = __builtin_amdgcn_cvt_pk_fp8_f32(v.f * inverse, 0.0f, 0, false);
  out[row * row_stride + t] = (u8)packed;
  if (t == 0) scales[row] = scale;
}

/* Softmax-weighted mean of n values per row, online, as a decode loop does it; 64 threads a row. */
KERNEL void online_softmax(const float *scores, const float *values, float *out, int n) {
  int row = group_x(), t = thread_x();
  float maximum = -__builtin_inff(), sum = 0, mean = 0;
  for (int i = t; i < n; i += 64) {
    float s = scores[row * n + i] * 1.44269504f;
    float larger = __builtin_fmaxf(maximum, s);
    float old = maximum == -__builtin_inff() ? 0.0f : __builtin_amdgcn_exp2f(maximum - larger);
    float p = __builtin_amdgcn_exp2f(s - larger);
    sum = sum * old + p;
    mean = mean * old + p * values[row * n + i];
    maximum = larger;
  }
  SHARED static float m[64], l[64], o[64];
  m[t] = maximum; l[t] = sum; o[t] = mean;
  barrier();
  if (t == 0) {
    float top = m[0];
    for (int i = 1; i < 64; ++i) top = __builtin_fmaxf(top, m[i]);
    float total = 0, weighted = 0;
    for (int i = 0; i < 64; ++i) {
      float w = m[i] == -__builtin_inff() ? 0.0f : __builtin_amdgcn_exp2f(m[i] - top);
      total += w * l[i];
      weighted += w * o[i];
    }
    out[row] = weighted / total;
  }
}

/* Integer work that the compiler has no single instruction for. */
KERNEL void integers(const long *a, const long *b, long *out, int n) {
  int i = group_x() * block_x() + thread_x();
  if (i >= n) return;
  long x = a[i], y = b[i];
  out[6 * i + 0] = x / y;
  out[6 * i + 1] = x % y;
  out[6 * i + 2] = (int)x / (int)(y | 1);
  out[6 * i + 3] = (u32)x % (u32)(y | 1);
  out[6 * i + 4] = (x * y) ^ (long)((u64)x >> (y & 63));
  out[6 * i + 5] = __builtin_popcountll(x) + __builtin_clzll(x | 1) + (x < y ? 100 : 0);
}

/* A private array indexed at run time lives in scratch at every level. */
KERNEL void scratch(const int *in, int *out, int n) {
  int local[24];
  int t = thread_x();
  for (int i = 0; i < 24; ++i) local[i] = in[(t * 24 + i) % n];
  int sum = 0;
  for (int i = 0; i < 24; ++i) {
    local[(unsigned)local[i] % 24] += i;
    sum = sum * 3 + local[(i * 7 + t) % 24];
  }
  out[group_x() * block_x() + t] = sum;
}

KERNEL void atomics(u32 *counter, float *sum, u64 *wide, int *order) {
  int t = thread_x() + block_x() * group_x();
  u32 old = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  order[old] = t;
  __hip_atomic_fetch_add(sum, 0.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(wide, (u64)t << 33, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  SHARED static u32 local;
  if (thread_x() == 0) local = 0;
  barrier();
  __hip_atomic_fetch_add(&local, 2u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  barrier();
  if (thread_x() == 0) counter[1 + group_x()] = local;
}

/* Dynamic LDS: reverses each workgroup's slice. */
KERNEL void dynamic_lds(const u32 *in, u32 *out) {
  extern SHARED u32 slice[];
  int t = thread_x(), n = block_x(), base = group_x() * n;
  slice[t] = in[base + t];
  barrier();
  out[base + t] = slice[n - 1 - t];
}

/* Cross-lane: sum over 16 lanes by DPP, a permute through the crossbar, a broadcast by readlane. */
KERNEL void lanes(const int *in, int *out) {
  int t = thread_x(), v = in[t];
  int sum = v;
  sum += __builtin_amdgcn_update_dpp(0, sum, 0x128, 0xf, 0xf, false); /* row_ror:8 */
  sum += __builtin_amdgcn_update_dpp(0, sum, 0x124, 0xf, 0xf, false);
  sum += __builtin_amdgcn_update_dpp(0, sum, 0x122, 0xf, 0xf, false);
  sum += __builtin_amdgcn_update_dpp(0, sum, 0x121, 0xf, 0xf, false);
  int shifted = __builtin_amdgcn_update_dpp(-7, v, 0x111, 0xf, 0xf, false); /* row_shr:1, lane 0 of a row keeps -7 */
  out[t] = sum;
  out[64 + t] = __builtin_amdgcn_ds_bpermute(4 * (t ^ 5), v);
  out[128 + t] = __builtin_amdgcn_readlane(v, 3) + __builtin_amdgcn_readfirstlane(v);
  out[192 + t] = shifted;
  out[256 + t] = __builtin_amdgcn_ds_swizzle(v, 0x041f); /* xor 1 */
  out[320 + t] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

/* A call the compiler may not inline, through registers and stack. */
__attribute__((device, noinline)) static float polynomial(float x, int degree, const float *c) {
  float r = 0;
  for (int i = degree; i >= 0; --i) r = r * x + c[i];
  return r;
}
KERNEL void calls(const float *x, const float *c, float *out, int degree) {
  int t = thread_x();
  out[t] = polynomial(x[t], degree, c) + polynomial(-x[t], t % (degree + 1), c);
}

KERNEL void halves(const _Float16 *a, const _Float16 *b, _Float16 *out, __bf16 *brain) {
  int t = thread_x();
  half2v x = {a[2 * t], a[2 * t + 1]}, y = {b[2 * t], b[2 * t + 1]};
  half2v r = x * y + x;
  out[2 * t] = r.x;
  out[2 * t + 1] = r.y - (_Float16)0.5f;
  /* Through int: clang 22 reads an f16 as f32 in the v_fma_mixlo_bf16 it would choose on gfx1250. */
  brain[t] = (__bf16)((float)(int)a[2 * t] * 3.0f);
}

KERNEL void doubles(const double *a, const double *b, double *out) {
  int t = thread_x();
  out[2 * t] = a[t] / b[t];
  out[2 * t + 1] = __builtin_sqrt(a[t]) * b[t] + (double)(int)a[t];
}

/* C[16][16] = A[16][k] · B[k][16] in fp8; A by rows, B by columns: B[j][k]. One wave. */
#if defined(__gfx942__) || defined(__gfx950__)
KERNEL void matrix_fp8(const u8 *a, const u8 *b, float *c, int k) {
  int lane = thread_x(), i = lane % 16, group = lane / 16;
  float4v sum = {0, 0, 0, 0};
  for (int k0 = 0; k0 < k; k0 += 32) {
    long x = *(const long *)(a + i * k + k0 + 8 * group);
    long y = *(const long *)(b + i * k + k0 + 8 * group);
    sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, sum, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r) c[(4 * group + r) * 16 + i] = sum[r];
}
#elif defined(__gfx1201__)
KERNEL void matrix_fp8(const u8 *a, const u8 *b, float *c, int k) {
  int lane = thread_x(), i = lane % 16, group = lane / 16;
  float8v sum = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int k0 = 0; k0 < k; k0 += 16) {
    int2v x = *(const int2v *)(a + i * k + k0 + 8 * group);
    int2v y = *(const int2v *)(b + i * k + k0 + 8 * group);
    sum = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(x, y, sum);
  }
  for (int r = 0; r < 8; ++r) c[(8 * group + r) * 16 + i] = sum[r];
}
#else
typedef int int8v __attribute__((ext_vector_type(8)));
typedef int int16v __attribute__((ext_vector_type(16)));
KERNEL void matrix_fp8(const u8 *a, const u8 *b, float *c, int k) {
  int lane = thread_x(), i = lane % 16, group = lane / 16;
  float8v sum = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int k0 = 0; k0 < k; k0 += 128) {
    union { int16v v; int w[16]; } x, y;
    for (int chunk = 0; chunk < 4; ++chunk)
      for (int n = 0; n < 4; ++n) {
        x.w[4 * chunk + n] = *(const int *)(a + i * k + k0 + 32 * chunk + 16 * group + 4 * n);
        y.w[4 * chunk + n] = *(const int *)(b + i * k + k0 + 32 * chunk + 16 * group + 4 * n);
      }
    sum = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(x.v, y.v, (short)0, sum, false, false);
  }
  for (int r = 0; r < 8; ++r) c[(8 * group + r) * 16 + i] = sum[r];
}
#endif

/* The same in f16 and bf16 at once: C = A·B in f16 at c, in bf16 (of the same bytes) at c + 256. */
#if defined(__gfx942__) || defined(__gfx950__)
enum { HALF_K = 16, HALF_CHUNK = 4, HALF_SLOTS = 4, HALF_ROWS = 4 };
typedef float4v sum_type;
#elif defined(__gfx1201__)
enum { HALF_K = 16, HALF_CHUNK = 8, HALF_SLOTS = 8, HALF_ROWS = 8 };
typedef float8v sum_type;
#else
enum { HALF_K = 32, HALF_CHUNK = 8, HALF_SLOTS = 16, HALF_ROWS = 8 };
typedef float8v sum_type;
#endif
typedef _Float16 half_fragment __attribute__((ext_vector_type(HALF_SLOTS)));
typedef short short_fragment __attribute__((ext_vector_type(HALF_SLOTS)));
typedef __bf16 brain_fragment __attribute__((ext_vector_type(HALF_SLOTS)));
KERNEL void matrix_half(const u16 *a, const u16 *b, float *c, int k) {
  int lane = thread_x(), i = lane % 16, group = lane / 16, groups = HALF_K / HALF_SLOTS;
  sum_type sum = {}, brain = {};
  for (int k0 = 0; k0 < k; k0 += HALF_K) {
    union { half_fragment h; short_fragment s; brain_fragment b; u16 w[HALF_SLOTS]; } x, y;
    for (int slot = 0; slot < HALF_SLOTS; ++slot) {
      int kk = k0 + slot / HALF_CHUNK * HALF_CHUNK * groups + group * HALF_CHUNK + slot % HALF_CHUNK;
      x.w[slot] = a[i * k + kk];
      y.w[slot] = b[i * k + kk];
    }
#if defined(__gfx942__) || defined(__gfx950__)
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x.h, y.h, sum, 0, 0, 0);
    brain = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x.s, y.s, brain, 0, 0, 0);
#elif defined(__gfx1201__)
    sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x.h, y.h, sum);
    brain = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x.s, y.s, brain);
#else
    sum = __builtin_amdgcn_wmma_f32_16x16x32_f16(false, x.h, false, y.h, (short)0, sum, false, false);
    brain = __builtin_amdgcn_wmma_f32_16x16x32_bf16(false, x.b, false, y.b, (short)0, brain, false, false);
#endif
  }
  for (int r = 0; r < HALF_ROWS; ++r) {
    c[(HALF_ROWS * group + r) * 16 + i] = sum[r];
    c[256 + (HALF_ROWS * group + r) * 16 + i] = brain[r];
  }
}

/* More live values than 256 registers hold: gfx1250 reaches the upper ones through s_set_vgpr_msb, others spill or use AGPRs. */
enum { LIVE = 300 };
KERNEL __attribute__((amdgpu_flat_work_group_size(32, 64), amdgpu_waves_per_eu(1, 1))) void many_registers(const float *in, float *out) {
  int t = thread_x();
  float v[LIVE];
#pragma unroll
  for (int n = 0; n < LIVE; ++n) v[n] = in[n * 64 + t];
#pragma unroll
  for (int n = 0; n < LIVE; ++n) {
    asm volatile("" : "+v"(v[n])); /* all of them live at once */
  }
#pragma unroll
  for (int n = 0; n < LIVE; ++n) v[n] = v[n] * v[LIVE - 1 - n] + v[(n + 7) % LIVE];
#pragma unroll
  for (int n = 0; n < LIVE; ++n) out[n * 64 + t] = v[n];
}
