/* A wave on the bench: one emulated wave with known registers, for tests that execute single instructions. */
#ifndef HEDDLE_TESTS_EMU_BENCH_H
#define HEDDLE_TESTS_EMU_BENCH_H

#include "../../runtime/emu/execute.h"

#include <stdlib.h>

enum { BENCH_ROWS = 512 };

typedef struct bench {
  emu_module module;
  emu_launch launch;
  emu_group group;
  emu_state state;
  diags messages;
  emu_wave wave;
  uint32_t (*v)[EMU_LANES];
} bench;

/* Every register holds its own number, so that a write to a wrong one shows. */
static inline uint32_t bench_vector_noise(int row, int lane) {
  return 0xe0000000u | (uint32_t)row << 8 | (uint32_t)lane;
}
static inline uint32_t bench_scalar_noise(int index) {
  return 0xc0000000u | (uint32_t)index;
}

static inline void bench_reset(bench *b, const emu_target *target) {
  for (int row = 0; row < BENCH_ROWS; ++row)
    for (int lane = 0; lane < EMU_LANES; ++lane)
      b->v[row][lane] = bench_vector_noise(row, lane);
  emu_wave *w = &b->wave;
  memset(w, 0, sizeof *w);
  w->v = b->v;
  w->vector_rows = BENCH_ROWS;
  w->lanes = target->wave;
  w->target = target;
  w->group = &b->group;
  w->state = &b->state;
  for (int n = 0; n < EMU_S_VCC; ++n)
    w->s[n] = bench_scalar_noise(n);
  w->mode = 0xf0; /* nearest even, denormals kept: what HIP kernels start with */
}

/* `code`: bytes of instructions for `target`; false when memory or the disassembler is missing. */
static inline bool bench_init(bench *b, const emu_target *target, const uint8_t *code, size_t size) {
  memset(b, 0, sizeof *b);
  diags_init(&b->messages);
  b->module.target = target;
  b->module.image = malloc(size + 16);
  b->v = aligned_alloc(64, sizeof(uint32_t[BENCH_ROWS][EMU_LANES]));
  if (!b->module.image || !b->v) return false;
  memcpy(b->module.image, code, size);
  memset(b->module.image + size, 0, 16);
  b->module.image_size = b->module.code_end = size;
  pthread_mutex_init(&b->launch.fault_lock, NULL);
  b->launch.module = &b->module;
  b->launch.kernel = "bench";
  b->launch.messages = &b->messages;
  b->group.launch = &b->launch;
  bench_reset(b, target);
  return emu_module_decode(&b->module, &b->messages) == HD_OK;
}

static inline const emu_instruction *bench_at(const bench *b, size_t offset) {
  uint32_t index = b->module.index_of[offset / 4];
  return index == UINT32_MAX ? NULL : &b->module.code[index];
}

static inline void bench_finish(bench *b) {
  pthread_mutex_destroy(&b->launch.fault_lock);
  free(b->v);
  free(b->module.image);
  free(b->module.code);
  free(b->module.index_of);
  free(b->module.texts);
  diags_finish(&b->messages);
}

#endif
