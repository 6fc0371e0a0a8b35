/* Accesses off a word: what hardware takes and what it doesn't. */
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }

template <typename T> DEVICE static inline void add_one(T *p, int off) { /* `off` bytes behind a word */
  int *place = (int *)((__UINTPTR_TYPE__)p + off);
  __atomic_fetch_add(place, 1, __ATOMIC_RELAXED);
}
KERNEL void adds_to_lds_off_a_word(int *out, int at) {
  __attribute__((shared)) static int slots[80];
  slots[thread_x()] = 0;
  add_one(slots + thread_x(), at);
  out[thread_x()] = slots[thread_x()];
}
KERNEL void adds_off_a_word(int *out, int at) { add_one(out + thread_x(), at); }
KERNEL void reads_bytes_of_lds(int *out, int at) { /* a word at any byte: no fault */
  __attribute__((shared)) static char bytes[512];
  for (int n = 0; n < 8; ++n) bytes[thread_x() * 8 + n] = (char)(thread_x() * 8 + n);
  int word;
  __builtin_memcpy(&word, bytes + thread_x() * 8 + at, 4);
  out[thread_x()] = word;
}
