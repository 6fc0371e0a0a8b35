/* Counting what a launch executes (../counts.h). Off unless the device was asked to count. Each worker thread
 * has a tally of its own; tallies are added up when the thread is done, and sums, maxima and unions do not
 * depend on who had which workgroup. */
#ifndef HEDDLE_EMU_COUNT_H
#define HEDDLE_EMU_COUNT_H

#include "../device/counts.h"
#include "watch.h"

typedef struct emu_count emu_count; /* of a launch */
typedef struct emu_tally emu_tally; /* of a worker thread */
struct emu_launch;

/* The launch's memory must stay as it is until emu_count_finish. NULL without memory. */
emu_count *emu_count_create(const struct emu_launch *launch);
void emu_count_destroy(emu_count *count);
/* The result; false without memory. The caller owns it. */
bool emu_count_result(emu_count *count, launch_counts *out_counts);

emu_tally *emu_tally_create(emu_count *count);
void emu_tally_destroy(emu_tally *tally);
/* One thread at a time. */
void emu_tally_add(emu_count *count, const emu_tally *tally);

/* A lane (-1: the wave) touches global memory that the wave's state->last holds, or LDS. */
void emu_count_global(emu_wave *w, int lane, uint64_t address, uint32_t bytes, bool write);
void emu_count_lds(emu_wave *w, int lane, uint32_t offset, uint32_t bytes, emu_touch touch);
/* `i` has executed. */
void emu_count_after(emu_wave *w, const emu_instruction *i);

#endif
