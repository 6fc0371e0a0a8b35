/* Kernels that do what they must not, one fault each; the emulator names it. */
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE static inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL void reads_past_end(const float *in, float *out, int at) { out[thread_x()] = in[thread_x() + at]; }
KERNEL void writes_past_end(float *out, int at) { out[thread_x() + at] = 1.0f; }
KERNEL void never_ends(volatile int *flag) {
  while (*flag == 0) {
  }
}
KERNEL void half_a_barrier(int *out) {
  if (thread_x() < 64) {
    barrier();
  } else {
    for (;;) {
      barrier();
      if (out[0] == 12345) break;
    }
  }
  out[1] = 1;
}
KERNEL void traps() { __builtin_trap(); }
