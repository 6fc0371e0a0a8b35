//@ contract
//@ prelude
//@ solved
// ---- read: how fast memory gives the bytes of a decode -----------------------------------------------------
//
// Reads what `tokens` visible tokens of `kv_heads` heads occupy, K, V and scales laid end to end from k_cache, and
// does nothing else. `splits` workgroups walk over it together: neighbouring threads take neighbouring chunks of 16
// bytes, and each thread has IN_FLIGHT loads on their way before it looks at the first. A benchmark holds decode
// against the time of this kernel.

DEVICE u32 fold(const u32 *words, u32 folded) {
  UNROLL for (int i = 0; i < IN_FLIGHT * 4; i++) folded ^= words[i];
  return folded;
}

KERNEL(THREADS) void heddle_read(
//@ arguments read
) {
  const i64 chunks = (kv_heads * TOKEN_HEAD_BYTES + TOKEN_BYTES) * tokens / 16;
  const i64 step = (i64)splits * THREADS;
  const u8 *from = (const u8 *)k_cache;
  u32 words[IN_FLIGHT * 4], folded = 0;
  i64 chunk = (i64)workgroup_x() * THREADS + thread_id();
  for (; chunk + (IN_FLIGHT - 1) * step < chunks; chunk += IN_FLIGHT * step) {
    UNROLL for (int i = 0; i < IN_FLIGHT; i++) load_stream<16>(words, i * 16, from + (chunk + i * step) * 16);
    folded = fold(words, folded);
  }
  // The last round: some of the chunks are beyond the end.
  UNROLL for (int i = 0; i < IN_FLIGHT * 4; i++) words[i] = 0;
  UNROLL for (int i = 0; i < IN_FLIGHT; i++)
    if (chunk + i * step < chunks) load_stream<16>(words, i * 16, from + (chunk + i * step) * 16);
  folded = fold(words, folded);
  // Never true in practice, but no compiler knows.
  if (folded == 0x9e3779b9u) *(u32 *)out = folded;
}
