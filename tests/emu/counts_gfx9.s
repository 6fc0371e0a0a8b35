// Kernels whose counts are known by hand: tests/emu/test_emu_count.c. Each is one wave of 64 lanes; the arguments are one pointer.
// gfx9; counts_gfx12.s has the same kernels for wave32.
    .macro begin name
    .text
    .globl \name
    .p2align 8
    .type \name,@function
\name:
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
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
      .amdhsa_accum_offset 64
      .amdhsa_group_segment_fixed_size 8192
      .amdhsa_kernarg_size 8
    .end_amdhsa_kernel
    .endm

// Lane l loads word l, then word 16 l, then word 0, then 16 bytes at 16 l, then 8 bytes at 8 (63 - l).
    begin loads
    v_lshlrev_b32_e32 v1, 2, v0
    v_lshlrev_b32_e32 v2, 6, v0
    v_mov_b32_e32 v3, 0
    v_lshlrev_b32_e32 v4, 4, v0
    v_sub_u32_e32 v5, 63, v0
    v_lshlrev_b32_e32 v5, 3, v5
    global_load_dword v10, v1, s[2:3]
    global_load_dword v11, v2, s[2:3]
    global_load_dword v12, v3, s[2:3]
    global_load_dwordx4 v[16:19], v4, s[2:3]
    global_load_dwordx2 v[20:21], v5, s[2:3]
    global_load_dword v13, v1, s[2:3] offset:64
    s_waitcnt vmcnt(0)
    global_store_dword v1, v10, s[2:3]
    finish loads

// Stores to LDS at 4 l, 8 l, 128 l, 16 l (16 bytes), then one word for all; a read of 16 bytes at 16 l; two words each at 4 l and 4 l + 256.
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
    ds_write_b32 v1, v8
    ds_write_b32 v2, v8
    ds_write_b32 v3, v8
    ds_write_b128 v4, v[8:11]
    ds_read_b32 v12, v5
    ds_read_b128 v[16:19], v4
    ds_read2_b32 v[20:21], v1 offset1:64
    ds_add_u32 v5, v8
    s_waitcnt lgkmcnt(0)
    finish banks

    begin products
    v_mov_b32_e32 v1, 0
    s_mov_b32 s4, 0
again:
    v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[12:13], v[14:15], v[8:11]
    v_mfma_f32_16x16x16_f16 v[20:23], v[12:13], v[14:15], v[20:23]
    v_mfma_f32_4x4x4_16b_f16 v[24:27], v[12:13], v[14:15], v[24:27]
    v_exp_f32_e32 v1, v1
    s_add_i32 s4, s4, 1
    s_cmp_lt_u32 s4, 3
    s_cbranch_scc1 again
    s_barrier
    finish products

    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - {.name: loads, .symbol: loads.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: banks, .symbol: banks.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
  - {.name: products, .symbol: products.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 64, .max_flat_workgroup_size: 256, .args: [{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}]}
...
    .end_amdgpu_metadata
