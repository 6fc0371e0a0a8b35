// Two small kernels whose code objects the cache, code-object and device tests read: one with static LDS, one with arguments of
// several sizes. Freestanding, like everything heddle emits.
#define KERNEL extern "C" __attribute__((global))

KERNEL __attribute__((amdgpu_flat_work_group_size(1, 256))) void sample_rotate(float *out, const float *in, int count) {
  __attribute__((shared)) static float ring[64];
  int lane = __builtin_amdgcn_workitem_id_x();
  ring[lane & 63] = in[lane];
  __builtin_amdgcn_s_barrier();
  if (lane < count)
    out[lane] = ring[(lane + 1) & 63] + 1.0f;
}

KERNEL void sample_scale(float *out, long stride, int count, float factor) {
  int row = __builtin_amdgcn_workgroup_id_x();
  if (row < count)
    out[row * stride] *= factor;
}
