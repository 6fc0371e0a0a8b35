// Kernels for host.c. Freestanding, one file for all targets.
#define KERNEL extern "C" __attribute__((global))

// out[i] = in[i] * factor + shift for i < count; the odd arguments show whether each lands at its offset.
KERNEL void scale(float *out, const float *in, char shift, int count, double factor) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < count) out[i] = static_cast<float>(in[i] * factor + shift);
}

// Without arguments: only that it was launched can be seen.
KERNEL void nothing() {}

// What the runtime adds behind the caller's arguments: the workgroup's size and the number of workgroups (code object v5: 16 bits at
// 12, 32 bits at 0).
KERNEL void hidden(int *out) {
  auto implicit = (const char __attribute__((address_space(4))) *)__builtin_amdgcn_implicitarg_ptr();
  out[0] = *(const unsigned short __attribute__((address_space(4))) *)(implicit + 12);
  out[1] = *(const int __attribute__((address_space(4))) *)implicit;
}

// Reverses 64 floats through dynamic LDS.
extern __attribute__((shared)) float dynamic[];
KERNEL void reverse(float *data) {
  int i = __builtin_amdgcn_workitem_id_x();
  dynamic[i] = data[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  data[i] = dynamic[63 - i];
}

// Writes one float behind `count` floats.
KERNEL void beyond(float *data, int count) { data[count + __builtin_amdgcn_workitem_id_x()] = 1.0f; }

// Never ends by itself.
KERNEL void endless(float *data) {
  while (*static_cast<volatile float *>(data) == 0.0f) {
  }
}

// A word that is no instruction of any target.
KERNEL void unknown(float *data) {
  __asm__ volatile(".long 0xffffffff");
  *data = 1.0f;
}
