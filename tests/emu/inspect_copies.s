// A loop whose loads go past the registers: tests/runtime/test_inspect.c. gfx1250, which counts them by counters of their own.
    .text
    .globl ring
    .p2align 8
    .type ring,@function
ring:
    s_load_b64 s[2:3], s[0:1], 0x0
again:
    global_load_async_to_lds_b128 v4, v[6:7], off
    global_load_async_to_lds_b128 v4, v[6:7], off offset:512
    tensor_load_to_lds s[4:7], s[8:15]
    s_wait_asynccnt 0x2
    global_load_b32 v10, v5, s[2:3]
    s_wait_loadcnt 0x0
    v_wmma_f32_16x16x32_f16 v[24:31], v[16:23], v[32:39], v[24:31]
    global_store_async_from_lds_b32 v[6:7], v4, off
    s_wait_asynccnt 0x0
    s_wait_tensorcnt 0x0
    s_cbranch_scc1 again
    s_endpgm
ring_end:
    .size ring, ring_end-ring
    .rodata
    .p2align 6
    .amdhsa_kernel ring
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_next_free_vgpr 64
      .amdhsa_next_free_sgpr 16
      .amdhsa_wavefront_size32 1
      .amdhsa_group_segment_fixed_size 20480
      .amdhsa_kernarg_size 8
    .end_amdhsa_kernel

    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - {.name: ring, .symbol: ring.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
...
    .end_amdgpu_metadata
