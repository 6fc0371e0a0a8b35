/* What reads bytes that others wrote, one function each: libFuzzer calls it (entry.c), and so does the replay
 * of inputs in every test run (replay.c). Each takes any bytes and returns 0; what it finds wrong it says and
 * aborts. They hold claims, too, not only that nothing crashes: what is written out again means the same. */
#ifndef HEDDLE_TESTS_FUZZ_H
#define HEDDLE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* X(name): fuzz_name in name.c. Those of the emulated device come last. */
#define FUZZ_CORE_LIST(X)                                                                                    \
  X(spec)   /* YAML → contract → emit_check → source */                                                \
  X(layout) /* "page, head_dim, axes" and factor strings */                                                  \
  X(npy)                                                                                                     \
  X(cache_entry)                                                                                             \
  X(pack)                                                                                                    \
  X(tier) /* code, error, pieces and body of a server's answer, through the cache */                         \
  X(tune_record)                                                                                             \
  X(timings)                                                                                                 \
  X(match)      /* a description, against contracts and targets */                                           \
  X(descriptor) /* JSON → launch */

#define FUZZ_EMU_LIST(X)                                                                                     \
  X(code_object)  /* ELF, msgpack, kernel descriptors, relocations, lines, decoding */                       \
  X(kernel)       /* the same, run by the emulated device */                                                 \
  X(instructions) /* machine code in a kernel of ours, run by it */

#if defined(HEDDLE_WITH_EMU)
#define FUZZ_LIST(X) FUZZ_CORE_LIST(X) FUZZ_EMU_LIST(X)
#else
#define FUZZ_LIST(X) FUZZ_CORE_LIST(X)
#endif

#define X(name) int fuzz_##name(const uint8_t *bytes, size_t size);
FUZZ_LIST(X)
#undef X

#define FUZZ_HOLD(claim)                                                                                     \
  do {                                                                                                       \
    if (!(claim)) fuzz_broken(#claim, __FILE__, __LINE__);                                                   \
  } while (0)

static inline void fuzz_broken(const char *claim, const char *file, int line) {
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
  abort();
}

/* FNV-1a: chooses targets and the like, so that one input always means the same. */
static inline uint32_t fuzz_hash(const uint8_t *bytes, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

/* ---- seal.c: checksums made right, so that what lies behind them is reached ---- */

/* A copy of `bytes` (the caller's to free) in which the length of the code object and the hash fit, and its
 * key. NULL: too short to be one. */
uint8_t *fuzz_seal_entry(const uint8_t *bytes, size_t size, char out_key[65]);
/* Likewise a pack: its size, its hash, and of each entry that lies where the index says the key. */
uint8_t *fuzz_seal_pack(const uint8_t *bytes, size_t size);

#endif
