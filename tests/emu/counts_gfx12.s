// The kernels of counts_gfx9.s for a wave of 32 lanes.
    .macro begin name
    .text
    .globl \name
    .p2align 8
    .type \name,@function
\name:
    s_load_b64 s[2:3], s[0:1], 0x0
    s_wait_kmcnt 0x0
    .endm

    .macro finish name
    s_endpgm
\name\()_end:
    .size \name, \name\()_end-\name
    .rodata
    .p2align 6
    .amdhsa_kernel \name
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_system_sgpr_workgroup_id_x 1
      .amdhsa_next_free_vgpr 64
      .amdhsa_next_free_sgpr 16
      .amdhsa_wavefront_size32 1
      .amdhsa_group_segment_fixed_size 8192
      .amdhsa_kernarg_size 8
    .end_amdhsa_kernel
    .endm

    begin loads
    v_lshlrev_b32_e32 v1, 2, v0
    v_lshlrev_b32_e32 v2, 6, v0
    v_mov_b32_e32 v3, 0
    v_lshlrev_b32_e32 v4, 4, v0
    v_sub_nc_u32_e32 v5, 31, v0
    v_lshlrev_b32_e32 v5, 3, v5
    global_load_b32 v10, v1, s[2:3]
    global_load_b32 v11, v2, s[2:3]
    global_load_b32 v12, v3, s[2:3]
    global_load_b128 v[16:19], v4, s[2:3]
    global_load_b64 v[20:21], v5, s[2:3]
    global_load_b32 v13, v1, s[2:3] offset:64
    s_wait_loadcnt 0x0
    global_store_b32 v1, v10, s[2:3]
    finish loads

    begin banks
    v_lshlrev_b32_e32 v1, 2, v0
    v_lshlrev_b32_e32 v2, 3, v0
    v_lshlrev_b32_e32 v3, 7, v0
    v_lshlrev_b32_e32 v4, 4, v0
    v_mov_b32_e32 v5, 0
    v_mov_b32_e32 v8, 0
    v_mov_b32_e32 v9, 0
    v_mov_b32_e32 v10, 0
    v_mov_b32_e32 v11, 0
    ds_store_b32 v1, v8
    ds_store_b32 v2, v8
    ds_store_b32 v3, v8
    ds_store_b128 v4, v[8:11]
    ds_load_b32 v12, v5
    ds_load_b128 v[16:19], v4
    ds_load_2addr_b32 v[20:21], v1 offset1:32
    ds_add_u32 v5, v8
    s_wait_dscnt 0x0
    finish banks

    begin products
    v_dual_mov_b32 v1, 0 :: v_dual_mov_b32 v2, 0
    s_mov_b32 s4, 0
again:
    v_wmma_f32_16x16x16_fp8_fp8 v[8:15], v[16:17], v[18:19], v[8:15]
    v_wmma_f32_16x16x16_f16 v[20:27], v[28:31], v[32:35], v[20:27]
    v_wmma_i32_16x16x32_iu4 v[36:43], v[16:17], v[18:19], v[36:43]
    v_exp_f32_e32 v1, v1
    s_add_co_i32 s4, s4, 1
    s_cmp_lt_u32 s4, 3
    s_cbranch_scc1 again
    s_barrier_signal -1
    s_barrier_wait -1
    finish products

    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1201
amdhsa.kernels:
  - {.name: loads, .symbol: loads.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: banks, .symbol: banks.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: products, .symbol: products.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
...
    .end_amdgpu_metadata
