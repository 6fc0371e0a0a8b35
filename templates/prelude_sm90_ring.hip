// ---- sm_90: bulk copies, their barriers, and warpgroup products --------------------------------------------
DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

DEVICE void arrivals_init(u32 bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
DEVICE void arrivals_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
DEVICE void arrive_expecting(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
DEVICE void wait_for(u32 bar, u32 parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(bar),
               "r"(parity)
               : "memory");
}

// Registers that a warpgroup gives back, or takes of those that others of its workgroup gave back.
template <int REGISTERS> DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS)); }
template <int REGISTERS> DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS)); }

DEVICE void store_shared(u8 *to, const u32 *words) { *(uint4 *)to = make_uint4(words[0], words[1], words[2], words[3]); }

DEVICE void store_partial(float *to, float a, float b) { *(float2 *)to = make_float2(a, b); }
DEVICE void store_partial(float *to, float a, float b, float c, float d) { *(float4 *)to = make_float4(a, b, c, d); }

// Copies of one use: they leave the second-level cache first.
DEVICE u64 read_once_policy() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// bytes is a multiple of 16, both addresses too; `bar` counts them.
DEVICE void copy_bulk(u32 to, const void *from, u32 bytes, u32 bar, u64 policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar), "l"(policy)
               : "memory");
}
DEVICE void copy_16(u32 to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
DEVICE void copy_16_once(u32 to, const void *from, u64 policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "l"(policy) : "memory");
}
// Arrives at `bar` when this lane's earlier copy_16 and copy_16_once have landed.
DEVICE void arrive_after_copies(u32 bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}
DEVICE void wait_own_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A barrier of `threads` threads; numbers 1 to 15 are free.
DEVICE void barrier_of(int number, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
// Arrives there without waiting for the others.
DEVICE void arrive_at(int number, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
// What this thread wrote to shared memory becomes visible to products and copies.
DEVICE void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// An operand in shared memory as 8 x 16-byte blocks: bytes between blocks along k (leading) and along rows (stride).
DEVICE u64 operand_at(u32 address, u32 leading, u32 stride) {
  return (u64)((address & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32;
}
DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void products_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// Four blocks of 8 rows x 16 bytes: lane 8m + i names row i of block m; lane 4g + t gets bytes 4t to 4t + 3 of row g of each.
DEVICE void load_blocks(u32 *words, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

// 16 bytes of the lane's own.
DEVICE void load_own(u32 *words, u32 address) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}
// Four blocks as above, transposed: lane 4g + t gets bytes 2g, 2g + 1 of rows 2t and 2t + 1 of each block.
DEVICE void load_transposed(u32 *words, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

// Two or four blocks of 8 x 8 elements of two bytes, transposed: lane 4g + t has elements g, 2t and g, 2t + 1 of each; lane
// 8m + i names where row i of block m goes, which is element i of all g.
template <int BLOCKS> DEVICE void store_transposed(u32 address, const u32 *words) {
  static_assert(BLOCKS == 2 || BLOCKS == 4, "blocks");
  if constexpr (BLOCKS == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(words[0]), "r"(words[1]) : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
}

// d (64 x COLUMNS, fp32) = a (64 x 16, registers) * b (16 x COLUMNS) + (accumulate ? d : 0), of fp16 or bf16.
#define PRODUCT_OF_8_COLUMNS(format)                                                                                       \
  asm volatile("{\n"                                                                                                       \
               ".reg .pred add;\n"                                                                                         \
               "setp.ne.b32 add, %9, 0;\n"                                                                                 \
               "wgmma.mma_async.sync.aligned.m64n8k16.f32." format "." format                                              \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, add, 1, 1, 0;\n"                                                  \
               "}"                                                                                                         \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
#define PRODUCT_OF_16_COLUMNS(format)                                                                                      \
  asm volatile("{\n"                                                                                                       \
               ".reg .pred add;\n"                                                                                         \
               "setp.ne.b32 add, %13, 0;\n"                                                                                \
               "wgmma.mma_async.sync.aligned.m64n16k16.f32." format "." format                                             \
               " {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, add, 1, 1, 0;\n"                               \
               "}"                                                                                                         \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))

template <int COLUMNS> DEVICE void product(format_fp16, float *d, const u32 *a, u64 b, int accumulate) {
  static_assert(COLUMNS == 8 || COLUMNS == 16, "columns");
  if constexpr (COLUMNS == 8)
    PRODUCT_OF_8_COLUMNS("f16");
  else
    PRODUCT_OF_16_COLUMNS("f16");
}
template <int COLUMNS> DEVICE void product(format_bf16, float *d, const u32 *a, u64 b, int accumulate) {
  static_assert(COLUMNS == 8 || COLUMNS == 16, "columns");
  if constexpr (COLUMNS == 8)
    PRODUCT_OF_8_COLUMNS("bf16");
  else
    PRODUCT_OF_16_COLUMNS("bf16");
}

DEVICE u32 warp_sum(u32 x) { return __reduce_add_sync(0xffffffffu, x); }
