// Kernels whose loops are known by hand: tests/runtime/test_inspect.c. gfx12; inspect_gfx9.s has the same.
    .macro begin name
    .text
    .globl \name
    .p2align 8
    .type \name,@function
\name:
    s_load_b64 s[2:3], s[0:1], 0x0
    .endm

    .macro finish name
    s_endpgm
\name\()_end:
    .size \name, \name\()_end-\name
    .rodata
    .p2align 6
    .amdhsa_kernel \name
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_next_free_vgpr 64
      .amdhsa_next_free_sgpr 16
      .amdhsa_wavefront_size32 1
      .amdhsa_group_segment_fixed_size 20480
      .amdhsa_kernarg_size 8
    .end_amdhsa_kernel
    .endm

// Loads of one round are waited for in the next: never is none on its way.
    begin pipelined
    global_load_b128 v[16:19], v4, s[2:3]
    global_load_b32 v10, v4, s[2:3]
    global_load_u16 v11, v4, s[2:3]
pipelined_again:
    global_load_b128 v[16:19], v4, s[2:3]
    global_load_b32 v10, v4, s[2:3]
    global_load_u16 v11, v4, s[2:3]
    s_wait_loadcnt 0x3
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    v_cvt_pk_f32_fp8_e32 v[20:21], v5
    v_cvt_f32_u32_e32 v6, v5
    ds_store_b32 v4, v5
    s_cbranch_scc1 pipelined_again
    finish pipelined

// Every load is waited for by itself.
    begin drained
drained_again:
    global_load_b128 v[16:19], v4, s[2:3]
    s_wait_loadcnt 0x0
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    global_load_b32 v10, v4, s[2:3]
    s_wait_loadcnt 0x0
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    s_cbranch_scc1 drained_again
    finish drained

// The loads of the loop lie behind it, and lead to another head than its short way round.
    begin rotated
rotated_first:
    v_mov_b32_e32 v1, 0
rotated_again:
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    s_cbranch_vccnz rotated_again
    s_cbranch_scc0 rotated_out
    global_load_b128 v[16:19], v4, s[2:3]
    global_load_b128 v[16:19], v4, s[2:3]
    s_branch rotated_first
rotated_out:
    global_load_b32 v10, v4, s[2:3]
    s_wait_loadcnt 0x0
    finish rotated

// The inner loop alone has the products.
    begin nested
nested_outer:
    ds_store_b32 v4, v5
nested_inner:
    v_wmma_f32_16x16x16_fp8_fp8 v[24:31], v[12:13], v[14:15], v[24:31]
    s_cbranch_scc1 nested_inner
    ds_store_b32 v4, v5
    ds_store_b32 v4, v5
    s_cbranch_vccnz nested_outer
    finish nested

// No loop.
    begin straight
    global_load_b32 v10, v4, s[2:3]
    s_wait_loadcnt 0x0
    ds_store_b32 v4, v5
    finish straight

    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1201
amdhsa.kernels:
  - {.name: pipelined, .symbol: pipelined.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: drained, .symbol: drained.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: rotated, .symbol: rotated.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: nested, .symbol: nested.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: straight, .symbol: straight.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 20480, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
...
    .end_amdgpu_metadata
