#include "target.h"

#include <string.h>
#include <strings.h>

/* Fragment shapes. Sources: the CDNA3, CDNA4 and RDNA4 ISA documents, LLVM's intrinsic definitions and the
 * PTX ISA; docs/targets.md has the tables. Columns: rows, columns, row_stride, groups, group_stride,
 * elements, row_run, columns_per_lane. */
#define MFMA16(elements) 16, 16, 1, 4, 16, elements, 4, 1
#define WMMA16(elements) 16, 16, 1, 2, 16, elements, 8, 1
#define MMA8(elements) 8, 16, 4, 4, 1, elements, 2, 2

static const matrix_op gfx942_ops[] = {
    {"mfma_f32_16x16x32_fp8_fp8", DTYPE_FP8_E4M3FNUZ, 32, MFMA16(8), "long",
     "__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(kv, other, acc, 0, 0, 0)"},
    {"mfma_f32_16x16x16_bf16", DTYPE_BF16, 16, MFMA16(4), "short4_t",
     "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(kv, other, acc, 0, 0, 0)"},
    {"mfma_f32_16x16x16_f16", DTYPE_FP16, 16, MFMA16(4), "half4_t",
     "__builtin_amdgcn_mfma_f32_16x16x16f16(kv, other, acc, 0, 0, 0)"},
};

static const matrix_op gfx950_ops[] = {
    {"mfma_f32_16x16x32_fp8_fp8", DTYPE_FP8_E4M3FN, 32, MFMA16(8), "long",
     "__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(kv, other, acc, 0, 0, 0)"},
    {"mfma_f32_16x16x32_bf16", DTYPE_BF16, 32, MFMA16(8), "bf16x8_t",
     "__builtin_amdgcn_mfma_f32_16x16x32_bf16(kv, other, acc, 0, 0, 0)"},
    {"mfma_f32_16x16x32_f16", DTYPE_FP16, 32, MFMA16(8), "half8_t",
     "__builtin_amdgcn_mfma_f32_16x16x32_f16(kv, other, acc, 0, 0, 0)"},
};

static const matrix_op gfx1201_ops[] = {
    {"wmma_f32_16x16x16_fp8_fp8", DTYPE_FP8_E4M3FN, 16, WMMA16(8), "int2_t",
     "__builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(kv, other, acc)"},
    {"wmma_f32_16x16x16_bf16", DTYPE_BF16, 16, WMMA16(8), "short8_t",
     "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(kv, other, acc)"},
    {"wmma_f32_16x16x16_f16", DTYPE_FP16, 16, WMMA16(8), "half8_t",
     "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(kv, other, acc)"},
};

static const matrix_op gfx1250_ops[] = {
    {"wmma_f32_16x16x64_fp8_fp8", DTYPE_FP8_E4M3FN, 64, WMMA16(32), "int8_t",
     "__builtin_amdgcn_wmma_f32_16x16x64_fp8_fp8(kv, other, (short)0, acc, false, false)"},
    {"wmma_f32_16x16x32_bf16", DTYPE_BF16, 32, WMMA16(16), "bf16x16_t",
     "__builtin_amdgcn_wmma_f32_16x16x32_bf16(false, kv, false, other, (short)0, acc, false, false)"},
    {"wmma_f32_16x16x32_f16", DTYPE_FP16, 32, WMMA16(16), "half16_t",
     "__builtin_amdgcn_wmma_f32_16x16x32_f16(false, kv, false, other, (short)0, acc, false, false)"},
};

/* fp8 mma.sync is emulated on sm_90, so fp8 caches go through f16 here: e4m3 to f16 is exact. */
static const matrix_op sm_90_ops[] = {
    {"mma_m16n8k16_bf16", DTYPE_BF16, 16, MMA8(4), NULL, "mma_m16n8k16_bf16(other, kv, acc)"},
    {"mma_m16n8k16_f16", DTYPE_FP16, 16, MMA8(4), NULL, "mma_m16n8k16_f16(other, kv, acc)"},
};

#define OPS(table) .ops = table, .op_count = sizeof table / sizeof *table

/* Sources: docs/targets.md. Of gfx1250 bandwidth, units and rates are from announcements (fp8 and fp4 peak);
 * its clock and its 16-bit rate are assumptions. */
static const target targets[] = {
    {
        .name = "gfx942",
        .product = "MI300X, MI325X",
        .family = FAMILY_CDNA,
        .wave = 64,
        .lds_bytes = 64 * 1024,
        .vgprs = 512,
        .unit_lds = 64 * 1024,
        .unit_compute_units = 1,
        .unit_simds = 4,
        .unit_workgroups = 32,
        .simd_waves = 8,
        .simd_vgprs = 512,
        .vgpr_granule = 8,
        .fp8 = DTYPE_FP8_E4M3FNUZ,
        .elf_machine = 0x4c,
        .hbm_bytes_per_s = 5.3e12,
        .compute_units = 304,
        .rates = {2.1e9, {256, 256, 2048, 4096, 4096}, 4},
        .prelude = "prelude_amdgcn.hip",
        OPS(gfx942_ops),
    },
    {
        .name = "gfx950",
        .product = "MI355X",
        .family = FAMILY_CDNA,
        .wave = 64,
        .lds_bytes = 160 * 1024,
        .vgprs = 512,
        .unit_lds = 160 * 1024,
        .unit_compute_units = 1,
        .unit_simds = 4,
        .unit_workgroups = 32,
        .simd_waves = 8,
        .simd_vgprs = 512,
        .vgpr_granule = 8,
        .fp8 = DTYPE_FP8_E4M3FN,
        .elf_machine = 0x4f,
        .hbm_bytes_per_s = 8.0e12,
        .compute_units = 256,
        .rates = {2.4e9, {128, 256, 4096, 8192, 16384}, 4},
        .prelude = "prelude_amdgcn.hip",
        .ring_prelude = "prelude_gfx950_copies.hip",
        OPS(gfx950_ops),
    },
    {
        .name = "gfx1201",
        .product = "RX 9070",
        .family = FAMILY_RDNA,
        .wave = 32,
        .lds_bytes = 64 * 1024,
        .vgprs = 256,
        .unit_lds = 128 * 1024,
        .unit_compute_units = 2,
        .unit_simds = 4,
        .unit_workgroups = 32,
        .simd_waves = 16,
        .simd_vgprs = 1536,
        .vgpr_granule = 24,
        .fp8 = DTYPE_FP8_E4M3FN,
        .elf_machine = 0x4e,
        .hbm_bytes_per_s = 0.64e12,
        .compute_units = 56,
        .rates = {2.97e9, {0, 0, 1024, 2048, 4096}, 1},
        .prelude = "prelude_amdgcn.hip",
        OPS(gfx1201_ops),
    },
    {
        .name = "gfx1250",
        .product = "MI455X",
        .family = FAMILY_RDNA,
        .wave = 32,
        .lds_bytes = 320 * 1024,
        .vgprs = 1024,
        .unit_lds = 320 * 1024,
        .unit_compute_units = 1,
        .unit_simds = 4,
        .simd_waves = 16,
        .simd_vgprs = 1024,
        .vgpr_granule = 16,
        .fp8 = DTYPE_FP8_E4M3FN,
        .elf_machine = 0x49,
        .hbm_bytes_per_s = 19.6e12,
        .compute_units = 256,
        .rates = {2.4e9, {128, 256, 16384, 32768, 65536}, 1},
        .prelude = "prelude_amdgcn.hip",
        .ring_prelude = "prelude_gfx1250_copies.hip",
        OPS(gfx1250_ops),
    },
    {
        .name = "sm_90",
        .product = "H100, H200",
        .family = FAMILY_CUDA,
        .wave = 32,
        .lds_bytes = 227 * 1024,
        .vgprs = 255,
        .unit_lds = 228 * 1024,
        .unit_compute_units = 1,
        .unit_simds = 4,
        .unit_workgroups = 32,
        .simd_waves = 16,
        .simd_vgprs = 512,
        .vgpr_granule = 8,
        .fp8 = DTYPE_FP8_E4M3FN,
        .hbm_bytes_per_s = 4.8e12,
        .compute_units = 132,
        .prelude = "prelude_sm90.hip",
        .ring_prelude = "prelude_sm90_ring.hip",
        OPS(sm_90_ops),
    },
};

size_t target_count(void) {
  return sizeof targets / sizeof *targets;
}

const target *target_at(size_t index) {
  return index < target_count() ? &targets[index] : NULL;
}

const target *target_find(const char *name) {
  for (size_t i = 0; i < target_count(); i++)
    if (strcmp(targets[i].name, name) == 0) return &targets[i];
  return NULL;
}

bool target_is_sold_as(const target *t, const char *name) {
  enum { LEAST = 4 }; /* letters: "MI300" */
  size_t length = strlen(name);
  for (const char *product = t->product; length >= LEAST && product;) {
    if (strncasecmp(product, name, length) == 0) return true;
    product = strstr(product, ", ");
    if (product) product += 2;
  }
  return false;
}
