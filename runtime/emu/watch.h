/* What hardware would only show as a wrong answer now and then: registers used before the load into them was
 * waited for, LDS read before a copy into it has landed, LDS that a copy overwrites too early, races between
 * waves in LDS, LDS and memory that nothing wrote, and waves that part at a barrier. On by default;
 * HEDDLE_EMU_WATCH=0 turns it off for speed.
 */
#ifndef HEDDLE_EMU_WATCH_H
#define HEDDLE_EMU_WATCH_H

#include "emu.h"

/* What may be outstanding. gfx9 has vmcnt (loads and stores) and lgkmcnt, gfx12 has a counter each; scalar
 * loads return in any order, so only a wait for 0 covers them. */
typedef enum emu_counter {
  EMU_COUNTER_NONE,
  EMU_COUNTER_LOAD,   /* vmcnt, loadcnt */
  EMU_COUNTER_STORE,  /* storecnt */
  EMU_COUNTER_LDS,    /* lgkmcnt, dscnt */
  EMU_COUNTER_SCALAR, /* lgkmcnt, kmcnt */
  EMU_COUNTER_ASYNC,
  EMU_COUNTER_TENSOR,
  EMU_COUNTER_COUNT
} emu_counter;

/* A register is pending while sequence[n] > done[counter[n]]; a flat load waits for two counters. */
typedef struct emu_pending {
  uint32_t sequence[2];
  uint8_t counter[2];
} emu_pending;

/* Bytes of LDS that a copy in flight will write. */
typedef struct emu_landing {
  uint32_t start, end, sequence;
  uint8_t counter;
} emu_landing;

enum { EMU_LANDINGS = 512, EMU_MAX_WAVES = 64 };

typedef struct emu_watch {
  uint32_t issued[EMU_COUNTER_COUNT], done[EMU_COUNTER_COUNT];
  emu_pending *vector; /* [row] */
  emu_pending scalar[EMU_S_COUNT];
  emu_landing landings[EMU_LANDINGS]; /* a ring; the oldest is forgotten first */
  uint32_t landing_count;
  uint32_t known[EMU_MAX_WAVES]; /* of every wave, the last epoch that lies before what this one does now */
  bool signalled;                /* at the workgroup's barrier, without having waited there */
} emu_watch;

/* What waves did before they came to a barrier: epochs as in emu_watch.known, of those who have come since it
 * last opened, and of those whom its last opening let through. A wave's epoch ends when it comes to any
 * barrier. */
typedef struct emu_order {
  uint32_t coming[EMU_MAX_WAVES], opened[EMU_MAX_WAVES];
} emu_order;

/* Who touched a byte of LDS last. A tag is (epoch << 6 | wave) + 1; 0: nobody. `asked`: the last access of
 * any kind that LDS's own counter holds, (its number in that counter << 6 | wave); numbers are kept modulo
 * 2^26. */
typedef struct emu_shadow {
  uint32_t written, read[2], asked;
} emu_shadow;

typedef enum emu_touch { EMU_TOUCH_READ, EMU_TOUCH_WRITE, EMU_TOUCH_ATOMIC } emu_touch;

void emu_watch_start(emu_watch *watch, uint32_t vector_rows, int wave);
/* The wave comes to a barrier; the barrier opens; the wave goes on behind it. */
void emu_watch_comes(emu_wave *w, emu_order *order);
void emu_watch_opens(emu_order *order);
void emu_watch_passes(emu_wave *w, const emu_order *order);
/* Before `i` executes: are its registers there? False after a fault. */
bool emu_watch_before(emu_wave *w, const emu_instruction *i);
/* After `i` executed: what it left outstanding, what it waited for. */
void emu_watch_after(emu_wave *w, const emu_instruction *i);
/* A copy of this wave will write LDS [start, end). */
void emu_watch_landing(emu_wave *w, emu_counter counter, uint32_t start, uint32_t end);
/* A lane touches LDS. False after a fault. */
bool emu_watch_lds(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes,
                   emu_touch touch);
/* The wave arrives at the workgroup's barrier; it ends. False after a fault. */
bool emu_watch_barrier(emu_wave *w, const emu_instruction *i);
bool emu_watch_end(emu_wave *w, const emu_instruction *i);
/* A lane (-1: the wave) touches the global memory that the wave's state->last holds. False after a fault. */
bool emu_watch_global(emu_wave *w, const emu_instruction *i, int lane, uint64_t address, uint32_t bytes,
                      bool write);
/* Bytes of the memory that state->last holds were copied to LDS: what nothing wrote there, nothing wrote
 * here. */
void emu_watch_copied(emu_wave *w, uint64_t address, uint32_t offset, uint32_t bytes);

#endif
