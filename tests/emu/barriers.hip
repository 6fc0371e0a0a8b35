/* Two waves of gfx1250 that hand data over at a named barrier; the other targets have none. */
#if defined(__gfx1250__)
#define KERNEL extern "C" __attribute__((global))

__attribute__((shared)) static __amdgpu_named_workgroup_barrier_t meeting;

/* `ordered`: the reader waits before it reads; else after. */
KERNEL void hands_over(int *out, int ordered) {
  __attribute__((shared)) static volatile int slots[32];
  int t = __builtin_amdgcn_workitem_id_x();
  if (t < 32) slots[t] = 0;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier_init(&meeting, 2);
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_s_barrier_join(&meeting);
  if (t < 32) slots[t] = 3 * t;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier_signal_var(&meeting, 2);
  if (ordered) __builtin_amdgcn_s_barrier_wait(1);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (t >= 32) out[t - 32] = slots[t - 32];
  if (!ordered) __builtin_amdgcn_s_barrier_wait(1);
}
#endif
