/* Copies from memory to LDS over bytes that an earlier instruction may still be about to read or write. gfx1201 has no such
 * copies. The compiler waits by itself, so these go behind its back. */
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }

#if defined(__gfx942__) || defined(__gfx950__)
#define READ_WORD "ds_read_b32"
#define WAIT_LDS(n) "s_waitcnt lgkmcnt(" n ")"
#define WAIT_LOADS_ONLY "s_waitcnt vmcnt(0)"
#define COPY_WORD "s_nop 0\n\tglobal_load_lds_dword %4, off\n\ts_waitcnt vmcnt(0) lgkmcnt(0)"
#elif defined(__gfx1250__)
#define READ_WORD "ds_load_b32"
#define WAIT_LDS(n) "s_wait_dscnt " n
#define WAIT_LOADS_ONLY "s_wait_loadcnt 0"
#define COPY_WORD "global_load_async_to_lds_b32 %5, %4, off\n\ts_wait_asynccnt 0\n\ts_wait_dscnt 0"
#endif
#if defined(READ_WORD)
/* A word of each row is read, and a copy of `in` overwrites row `over` when WAIT has been waited for. */
#define COPIES_OVER(name, WAIT)                                                                                          \
  KERNEL void name(const int *in, int *out, int over) {                                                                  \
    __attribute__((shared)) static int slots[2][64];                                                                     \
    unsigned t = thread_x(), at = (unsigned)(unsigned long long)(__attribute__((address_space(3))) int *)slots;          \
    slots[0][t] = in[t];                                                                                                 \
    slots[1][t] = in[64 + t];                                                                                            \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                               \
    __builtin_amdgcn_s_barrier();                                                                                        \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                                               \
    int a, b;                                                                                                            \
    asm volatile(READ_WORD " %0, %2\n\t" READ_WORD " %1, %2 offset:256\n\t" WAIT "\n\t" COPY_WORD                      \
                 : "=&v"(a), "=&v"(b)                                                                                    \
                 : "v"(at + 4 * t), "{m0}"(at + 256 * over), "v"(in + t), "v"(at + 256 * over + 4 * t)                   \
                 : "memory");                                                                                            \
    out[t] = a + b + slots[0][t] + slots[1][t];                                                                          \
  }
COPIES_OVER(copies_over_a_read, WAIT_LOADS_ONLY)
COPIES_OVER(copies_over_the_second_read, WAIT_LDS("1"))
COPIES_OVER(copies_behind_the_reads, WAIT_LDS("0"))
KERNEL void copies_over_a_write(const int *in, int *out) {
  __attribute__((shared)) static int slots[64];
  unsigned t = thread_x(), at = (unsigned)(unsigned long long)(__attribute__((address_space(3))) int *)slots;
#if defined(__gfx1250__)
  asm volatile("ds_store_b32 %0, %1\n\tglobal_load_async_to_lds_b32 %0, %2, off\n\ts_wait_asynccnt 0\n\ts_wait_dscnt 0" ::"v"(at + 4 * t), "v"(1), "v"(in + t)
#else
  asm volatile("ds_write_b32 %0, %1\n\ts_nop 0\n\tglobal_load_lds_dword %2, off\n\ts_waitcnt vmcnt(0) lgkmcnt(0)" ::"v"(at + 4 * t), "v"(1), "v"(in + t), "{m0}"(at)
#endif
               : "memory");
  out[t] = slots[t];
}
#endif
