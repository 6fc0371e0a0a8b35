/* Kernels that read single bytes which nothing wrote, beside bytes that are written. */
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }

KERNEL void reads_one_unwritten_lds_byte(int *out, int at) { /* one byte of a word that is written but for it */
  __attribute__((shared)) static volatile unsigned char slots[256];
  for (int n = 0; n < 4; ++n)
    if (4 * thread_x() + n != at) slots[4 * thread_x() + n] = n;
  out[thread_x()] = slots[4 * thread_x()] + slots[4 * thread_x() + 1] + slots[4 * thread_x() + 2] + slots[4 * thread_x() + 3];
}
KERNEL void copies_bytes(const unsigned char *in, unsigned char *out) { out[thread_x()] = in[thread_x()]; }
#if !defined(__gfx1201__)
KERNEL void reads_one_of_a_copy(const int *in, int *out, int at) { /* the copy takes neighbours along */
  __attribute__((shared)) static int slab[64];
  int t = thread_x();
#if defined(__gfx1250__)
  __builtin_amdgcn_global_load_async_to_lds_b32((__attribute__((address_space(1))) int *)(in + t),
                                                (__attribute__((address_space(3))) int *)(slab + t), 0, 0);
  __builtin_amdgcn_s_wait_asynccnt(0);
#else
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) int *)(in + t), (__attribute__((address_space(3))) int *)slab, 4, 0, 0);
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
#endif
  __builtin_amdgcn_s_barrier();
  out[t] = slab[at];
}
#endif
