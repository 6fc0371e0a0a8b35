// ---- gfx950: copies from memory to LDS that pass by the registers --------------------------------------------
//
// Written as assembly: LLVM 22 has every read of LDS behind `__builtin_amdgcn_global_load_lds` wait for all copies,
// and a ring lives on those that are still under way. A lane's 16 or 4 bytes
// go to lds + lane * 16 or 4.

DEVICE u32 lds_address(const void *in_lds) { return (u32)(u64)(__attribute__((address_space(3))) const void *)in_lds; }

// FURTHER bytes on, in memory and in LDS: copies that differ in it alone share the register of their place in LDS.
constexpr int MOST_FURTHER = 4095;

template <int FURTHER> DEVICE void copy_piece(u32 lds, const u8 *base, u32 offset, int lane) {
  asm volatile("s_nop 0\n\tglobal_load_lds_dwordx4 %1, %2 offset:%3 nt" ::"{m0}"(lds), "v"(offset), "s"(base), "n"(FURTHER)
               : "memory");
}
template <int FURTHER> DEVICE void copy_piece(u32 lds, const u8 *base, i64 offset, int lane) {
  asm volatile("s_nop 0\n\tglobal_load_lds_dwordx4 %1, off offset:%2 nt" ::"{m0}"(lds), "v"(base + offset), "n"(FURTHER)
               : "memory");
}
DEVICE void copy_word(u32 lds, const void *from, int lane) {
  asm volatile("s_nop 0\n\tglobal_load_lds_dword %1, off nt" ::"{m0}"(lds), "v"(from) : "memory");
}

// Until at most LEFT copies of this wave are under way; they land in the order of their requests.
template <int LEFT> DEVICE void wait_for_copies() { asm volatile("s_waitcnt vmcnt(%0)" ::"n"(LEFT) : "memory"); }
// Until this wave has read what it asked LDS for.
DEVICE void wait_for_lds() { asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory"); }

