/* The targets that can be emulated. Machine numbers: ELF e_flags of LLVM's AMDGPU user guide. Compute units,
 * memory and LDS: AMD's product pages and ISA documents. LDS banks: AMD's Composable
 * Kernel library (get_n_lds_banks: 64 on gfx950 and gfx125x); on gfx950 in reads of 8 and 16 bytes alone
 * (Triton's AMD back end; measured for the paper about HipKittens, arXiv 2511.08083). */
#include "execute.h"

#define GIB INT64_C(1073741824)
#define MIB INT64_C(1048576)

static const emu_target targets[] = {
    {.name = "gfx942",
     .machine = 0x4c,
     .generation = 9,
     .wave = 64,
     .lds_bytes = 64 * 1024,
     .lds_banks = 32,
     .lds_wide_read_banks = 32,
     .fnuz = true,
     .compute_units = 304,
     .memory_bytes = 192 * GIB,
     .l2_bytes = 256 * MIB,
     .product = "MI300X"},
    {.name = "gfx950",
     .machine = 0x4f,
     .generation = 9,
     .wave = 64,
     .lds_bytes = 160 * 1024,
     .lds_banks = 32,
     .lds_wide_read_banks = 64,
     .compute_units = 256,
     .memory_bytes = 288 * GIB,
     .l2_bytes = 256 * MIB,
     .product = "MI355X"},
    {.name = "gfx1201",
     .machine = 0x4e,
     .generation = 12,
     .wave = 32,
     .lds_bytes = 64 * 1024,
     .lds_banks = 32,
     .lds_wide_read_banks = 32,
     .compute_units = 64,
     .memory_bytes = 16 * GIB,
     .l2_bytes = 64 * MIB,
     .product = "RX 9070 XT"},
    {.name = "gfx1250",
     .machine = 0x49,
     .generation = 12,
     .wave = 32,
     .lds_bytes = 320 * 1024,
     .lds_banks = 64,
     .lds_wide_read_banks = 64,
     .replicates_packed_scalar = true,
     .signed_address_offset = true,
     .global_scratch = true,
     .wide_buffers = true,
     .setreg_extends_rows = true,
     .compute_units = 256,
     .memory_bytes = 432 * GIB,
     .l2_bytes = 256 * MIB,
     .product = "MI455X"},
};

const emu_target *emu_find_target(const char *name) {
  for (size_t n = 0; n < sizeof targets / sizeof *targets; ++n)
    if (strcmp(targets[n].name, name) == 0) return &targets[n];
  return NULL;
}

const emu_target *emu_find_target_of_machine(uint32_t machine) {
  for (size_t n = 0; n < sizeof targets / sizeof *targets; ++n)
    if (targets[n].machine == machine) return &targets[n];
  return NULL;
}
