/* Kernels that do what they must not, one fault each; the emulator names it. */
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }
__attribute__((always_inline)) DEVICE static inline void barrier() { /* a place of its own for each */
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
KERNEL void half_leaves(int *out, int half) {
  if (thread_x() / 64 == half) return;
  barrier();
  out[thread_x()] = 1;
}
KERNEL void meets_at_one_barrier(int *out, int rounds) { /* the waves do different things between */
  if (rounds == 0) return;
  for (int n = 0; n < rounds; ++n) {
    if (thread_x() < 64) {
      out[thread_x()] = n;
    } else {
      for (int k = 0; k < 3; ++k)
        out[thread_x()] = k;
    }
    barrier();
  }
}
KERNEL void traps() { __builtin_trap(); }

/* What the watches find. The compiler waits and synchronises by itself, so these go behind its back. */
#if defined(__gfx942__) || defined(__gfx950__)
#define LOAD_WORD "global_load_dword"
#define WAIT_ALL "s_waitcnt vmcnt(0)"
#else
#define LOAD_WORD "global_load_b32"
#define WAIT_ALL "s_wait_loadcnt 0x0"
#endif

KERNEL void uses_before_wait(const float *in, float *out) {
  float v;
  asm volatile(LOAD_WORD " %0, %1, off\n\tv_add_f32 %0, 1.0, %0\n\t" WAIT_ALL : "=&v"(v) : "v"(in + thread_x()));
  out[thread_x()] = v;
}
KERNEL void overwrites_before_wait(const float *in, float *out) {
  float v;
  asm volatile(LOAD_WORD " %0, %1, off\n\tv_mov_b32 %0, 1.0\n\t" WAIT_ALL : "=&v"(v) : "v"(in + thread_x()));
  out[thread_x()] = v;
}
KERNEL void waits_enough(const float *in, float *out) { /* two loads, the first used while the second is under way */
  float v, u;
#if defined(__gfx942__) || defined(__gfx950__)
  asm volatile(LOAD_WORD " %0, %2, off\n\t" LOAD_WORD " %1, %2, off offset:4\n\ts_waitcnt vmcnt(1)\n\tv_add_f32 %0, 1.0, %0\n\t" WAIT_ALL
               : "=&v"(v), "=&v"(u) : "v"(in + thread_x()));
#else
  asm volatile(LOAD_WORD " %0, %2, off\n\t" LOAD_WORD " %1, %2, off offset:4\n\ts_wait_loadcnt 0x1\n\tv_add_f32 %0, 1.0, %0\n\t" WAIT_ALL
               : "=&v"(v), "=&v"(u) : "v"(in + thread_x()));
#endif
  out[thread_x()] = v + u;
}
KERNEL void races_in_lds(int *out) {
  __attribute__((shared)) static volatile int slots[128];
  slots[127 - thread_x()] = 0;
  barrier();
  slots[thread_x()] = thread_x();
  out[thread_x()] = slots[127 - thread_x()];
}
KERNEL void reads_unwritten_lds(int *out) {
  __attribute__((shared)) static volatile int slots[64];
  if (thread_x() != 5) slots[thread_x()] = 1;
  out[thread_x()] = slots[thread_x()];
}
KERNEL void copies_words(const int *in, int *out) { out[thread_x()] = in[thread_x()]; }
KERNEL void loads_a_scalar(const int *in, int *out, int at) { out[thread_x()] = in[at] + in[0]; }
KERNEL void adds_to_memory(int *sum) { __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED); }
#if defined(__gfx1250__)
typedef int int4v __attribute__((ext_vector_type(4)));
KERNEL void copy_not_waited_for(int4v *in, int4v *out) { /* the backend inserts no wait for asynchronous copies */
  __attribute__((shared)) static int4v slab[32];
  int t = thread_x();
  __builtin_amdgcn_global_load_async_to_lds_b128((__attribute__((address_space(1))) int4v *)(in + t),
                                                 (__attribute__((address_space(3))) int4v *)(slab + t), 0, 0);
  barrier();
  out[t] = slab[31 - t];
}
#endif
