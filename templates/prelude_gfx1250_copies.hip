// ---- gfx1250: asynchronous copies from memory to LDS ---------------------------------------------------------
//
// The compiler inserts no waits for them. A lane's 16 or 4 bytes go to lds + lane * 16 or 4.

typedef int copied4_t __attribute__((ext_vector_type(4)));
#define IN_MEMORY __attribute__((address_space(1)))
#define IN_LDS __attribute__((address_space(3)))
#define NON_TEMPORAL 1 // TH_LOAD_NT

DEVICE u32 lds_address(const void *in_lds) { return (u32)(u64)(__attribute__((address_space(3))) const void *)in_lds; }

// FURTHER bytes on, in memory and in LDS: copies that differ in it alone share the register of their place in LDS.
constexpr int MOST_FURTHER = 0x7fffff;

template <int FURTHER, typename Offset> DEVICE void copy_piece(u32 lds, const u8 *base, Offset offset, int lane) {
  __builtin_amdgcn_global_load_async_to_lds_b128((IN_MEMORY copied4_t *)(base + offset),
                                                 (IN_LDS copied4_t *)(lds + (u32)lane * 16), FURTHER, NON_TEMPORAL);
}
DEVICE void copy_word(u32 lds, const void *from, int lane) {
  __builtin_amdgcn_global_load_async_to_lds_b32((IN_MEMORY int *)from, (IN_LDS int *)(lds + (u32)lane * 4), 0,
                                                NON_TEMPORAL);
}

// Until at most LEFT copies of this wave are under way; they land in the order of their requests.
template <int LEFT> DEVICE void wait_for_copies() { asm volatile("s_wait_asynccnt %0" ::"n"(LEFT) : "memory"); }
// Until this wave has read what it asked LDS for.
DEVICE void wait_for_lds() { asm volatile("s_wait_dscnt 0" ::: "memory"); }

