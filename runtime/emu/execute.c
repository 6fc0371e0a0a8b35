/* Running a launch: workgroups over the machine's cores, the waves of a workgroup in turns on one core. */
#include "execute.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
  CONTEXT_LINES = 3,  /* disassembly shown before and after a faulting instruction */
  CHECK_EVERY = 4096, /* instructions between looks at the budget and at other threads' faults */
  MAX_WORKERS = 256,
  REGISTER_NOISE = 0x7fbad0ba /* what registers hold at the start: a NaN that is easy to recognise */
};

/* ---- Faults ---- */

static void add_context(const emu_launch *launch, const emu_instruction *i) {
  const emu_module *m = launch->module;
  size_t at = (size_t)(i - m->code), first = at > CONTEXT_LINES ? at - CONTEXT_LINES : 0;
  for (size_t n = first; n < m->code_count && n <= at + CONTEXT_LINES; ++n) {
    const emu_instruction *line = &m->code[n];
    if (line->size == 0) continue; /* the second half of a pair has its text with the first */
    diags_addf(launch->messages, DIAG_NOTE, "emu.code", NULL, 0, 0, "%s 0x%06" PRIx64 ": %s",
               n == at ? "->" : "  ", line->address, line->text);
  }
}

void emu_fault(emu_wave *w, const emu_instruction *i, int lane, const char *format, ...) {
  emu_launch *launch = w->group->launch;
  char message[512], lane_text[32] = "", place[288] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (lane >= 0) snprintf(lane_text, sizeof lane_text, ", lane %d", lane);
  const emu_module *m = launch->module;
  uint64_t word = (i->address - m->code_start) / 4;
  if (m->lines && m->lines[word].file)
    snprintf(place, sizeof place, " (%s:%u)", m->lines[word].file, m->lines[word].line);
  pthread_mutex_lock(&launch->fault_lock);
  if (!launch->faulted) {
    launch->faulted = true;
    diags_addf(launch->messages, DIAG_ERROR, "emu.fault", NULL, 0, 0,
               "kernel %s, workgroup (%u, %u, %u), wave %d%s: %s%s", launch->kernel, w->group->id[0],
               w->group->id[1], w->group->id[2], w->index, lane_text, message, place);
    add_context(launch, i);
  }
  pthread_mutex_unlock(&launch->fault_lock);
  atomic_store(&launch->stop, true);
  w->faulted = w->yielded = true;
}

/* ---- Barriers ---- */

static void release_if_complete(emu_group *group, emu_barrier *barrier) {
  uint32_t members = barrier->members ? barrier->members : (uint32_t)group->live;
  if (barrier->arrived > 0 && barrier->arrived >= members) {
    barrier->arrived = 0;
    ++barrier->phase;
    if (group->shadow) emu_watch_opens(&group->order[barrier - group->barrier]);
  }
}

void emu_barrier_arrive(emu_wave *w, const emu_instruction *i, emu_barrier *barrier) {
  emu_group *group = w->group;
  if (w->state->watch && barrier == &group->barrier[0] && !emu_watch_barrier(w, i)) return;
  if (w->state->watch) emu_watch_comes(w, &group->order[barrier - group->barrier]);
  ++barrier->arrived;
  release_if_complete(group, barrier);
}

void emu_wave_ends(emu_wave *w, const emu_instruction *i) {
  if (w->state->watch && !emu_watch_end(w, i)) return;
  w->ended = w->yielded = true;
  --w->group->live;
  release_if_complete(w->group, &w->group->barrier[0]);
}

/* ---- A wave ---- */

static void run_pair(emu_wave *w, const emu_instruction *first) {
  emu_state *state = w->state;
  const emu_instruction *second = first + 1;
  ++w->next;
  state->deferring = true;
  state->deferred_count = 0;
  first->handler(w, first);
  state->deferring = false;
  second->handler(w, second);
  for (int n = 0; n < state->deferred_count; ++n) {
    const emu_deferred *d = &state->deferred[n];
    emu_write_row(w, d->row, d->mask, d->value.lane);
  }
}

/* Until the wave ends, waits or faults. */
static void run_wave(emu_wave *w) {
  emu_launch *launch = w->group->launch;
  const emu_instruction *code = launch->module->code;
  size_t count = launch->module->code_count;
  w->yielded = false;
  while (!w->yielded) {
    if (w->next >= count) {
      emu_fault(w, &code[count - 1], -1, "execution ran past the end of the code");
      return;
    }
    const emu_instruction *i = &code[w->next++];
    if (++w->executed % CHECK_EVERY == 0) {
      if (w->executed >= launch->budget) {
        emu_fault(w, i, -1, "still running after %" PRIu64 " instructions (HEDDLE_EMU_BUDGET)", w->executed);
        return;
      }
      if (atomic_load_explicit(&launch->stop, memory_order_relaxed)) return;
    }
    if (launch->watch) {
      if (!emu_watch_before(w, i) || (i->dual && !emu_watch_before(w, i + 1))) return;
    }
    if (i->dual) {
      run_pair(w, i);
    } else {
      i->handler(w, i);
    }
    if (launch->watch) emu_watch_after(w, i);
    if (launch->count) emu_count_after(w, i);
  }
}

/* ---- A workgroup ---- */

typedef struct worker {
  emu_launch *launch;
  pthread_t thread;
  emu_group group;
  emu_wave *waves;
  emu_state *states;
  uint32_t *registers; /* [wave][row][lane] */
  uint8_t *scratch;    /* [wave][lane][byte] */
  uint8_t *lds;
  emu_shadow *shadow;   /* [byte of LDS] */
  emu_watch *watches;   /* [wave] */
  emu_pending *pending; /* [wave][row] */
  emu_tally *tally;
} worker;

static bool has(uint32_t word, int bit) {
  return word >> bit & 1;
}

/* Bits of compute_pgm_rsrc1/2 and kernel_code_properties: LLVM's AMDGPU user guide, "Kernel Descriptor". */
enum {
  PROPERTY_PRIVATE_SEGMENT_BUFFER = 0,
  PROPERTY_DISPATCH_PTR = 1,
  PROPERTY_QUEUE_PTR = 2,
  PROPERTY_KERNARG_PTR = 3,
  PROPERTY_DISPATCH_ID = 4,
  PROPERTY_FLAT_SCRATCH_INIT = 5,
  PROPERTY_PRIVATE_SEGMENT_SIZE = 6,
  RSRC2_WORKGROUP_ID_X = 7,
  RSRC2_WORKGROUP_ID_Y = 8,
  RSRC2_WORKGROUP_ID_Z = 9
};

static void set_user_scalars(emu_wave *w) {
  const emu_launch *launch = w->group->launch;
  const emu_descriptor *d = &launch->descriptor;
  int n = 0;
  if (has(d->properties, PROPERTY_PRIVATE_SEGMENT_BUFFER)) n += 4;
  if (has(d->properties, PROPERTY_DISPATCH_PTR)) {
    emu_set_pair(w, n, (uint64_t)(uintptr_t)launch->packet);
    n += 2;
  }
  if (has(d->properties, PROPERTY_QUEUE_PTR)) n += 2;
  if (has(d->properties, PROPERTY_KERNARG_PTR)) {
    emu_set_pair(w, n, (uint64_t)(uintptr_t)launch->kernarg);
    n += 2;
  }
  if (has(d->properties, PROPERTY_DISPATCH_ID)) n += 2;
  if (has(d->properties, PROPERTY_FLAT_SCRATCH_INIT)) n += 2;
  if (has(d->properties, PROPERTY_PRIVATE_SEGMENT_SIZE)) w->s[n++] = d->scratch_bytes;
  for (uint32_t k = 0; k < d->preload_length && n < EMU_S_VCC; ++k)
    memcpy(&w->s[n++], launch->kernarg + 4 * (size_t)(d->preload_offset + k), 4);
}

static void set_workgroup_id(emu_wave *w) {
  const emu_group *group = w->group;
  const emu_descriptor *d = &group->launch->descriptor;
  if (w->target->generation >= 12) {
    w->s[EMU_S_TTMP + 9] = group->id[0];
    w->s[EMU_S_TTMP + 7] = (group->id[1] & 0xffff) | group->id[2] << 16;
    w->s[EMU_S_TTMP + 8] = (uint32_t)w->index << 25;
    return;
  }
  uint32_t n = d->rsrc2 >> 1 & 31;
  if (has(d->rsrc2, RSRC2_WORKGROUP_ID_X)) w->s[n++] = group->id[0];
  if (has(d->rsrc2, RSRC2_WORKGROUP_ID_Y)) w->s[n++] = group->id[1];
  if (has(d->rsrc2, RSRC2_WORKGROUP_ID_Z)) w->s[n++] = group->id[2];
}

/* MODE as the dispatcher derives it from compute_pgm_rsrc1: rounding and denormals 19:12, DX10 clamp 21, IEEE
 * 23, FP16 overflow 26. */
static uint32_t initial_mode(const emu_target *target, uint32_t rsrc1) {
  uint32_t mode = rsrc1 >> 12 & 0xff;
  if (target->generation < 12) mode |= (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9;
  return mode | (rsrc1 >> 26 & 1) << 23;
}

static void start_wave(emu_wave *w) {
  const emu_launch *launch = w->group->launch;
  const emu_descriptor *d = &launch->descriptor;
  const uint32_t *block = launch->block;
  uint32_t threads = block[0] * block[1] * block[2], first = (uint32_t)(w->index * w->lanes);
  uint64_t exec = 0;
  for (uint32_t n = 0; n < w->vector_rows * (uint32_t)EMU_LANES; ++n)
    (&w->v[0][0])[n] = REGISTER_NOISE;
  memset(w->s, 0, sizeof w->s);
  for (int lane = 0; lane < w->lanes; ++lane) {
    uint32_t id = first + (uint32_t)lane;
    if (id >= threads) break;
    exec |= UINT64_C(1) << lane;
    /* Packed work-item id: ten bits each. */
    w->v[0][lane] = id % block[0] | id / block[0] % block[1] << 10 | id / (block[0] * block[1]) << 20;
  }
  emu_set_pair(w, EMU_S_EXEC, exec);
  emu_set_pair(w, EMU_S_FLAT_SCRATCH, EMU_PRIVATE_APERTURE);
  set_user_scalars(w);
  set_workgroup_id(w);
  w->mode = initial_mode(w->target, d->rsrc1);
  memset(w->row_offset, 0, sizeof w->row_offset);
  w->next = launch->module->index_of[(d->entry - launch->module->code_start) / 4];
  w->ended = w->faulted = w->yielded = false;
  w->executed = 0;
}

static void report_stuck(emu_group *group) {
  for (int n = 0; n < group->wave_count; ++n) {
    emu_wave *w = &group->waves[n];
    if (w->ended) continue;
    const emu_instruction *i = &group->launch->module->code[w->next];
    emu_fault(w, i, -1, "the barrier never completes: %u of %d live waves arrived", group->barrier[0].arrived,
              group->live);
    return;
  }
}

static void run_group(worker *self, uint64_t number) {
  emu_launch *launch = self->launch;
  emu_group *group = &self->group;
  const uint32_t *grid = launch->grid;
  group->id[0] = (uint32_t)(number % grid[0]);
  group->id[1] = (uint32_t)(number / grid[0] % grid[1]);
  group->id[2] = (uint32_t)(number / ((uint64_t)grid[0] * grid[1]));
  group->live = group->wave_count;
  memset(group->barrier, 0, sizeof group->barrier);
  group->arrived = group->ended = (emu_stop){NULL, 0};
  group->copies_in_flight = group->named_barriers = false;
  if (group->shadow) {
    memset(group->shadow, 0, group->lds_bytes * sizeof *group->shadow);
    memset(group->order, 0, sizeof group->order);
  }
  memset(group->lds, 0xff,
         group->lds_bytes); /* LDS holds anything at the start; all ones are NaNs in every format */
  for (int n = 0; n < group->wave_count; ++n) {
    emu_state *state = &self->states[n];
    state->at_barrier = state->blocked = false;
    state->counted = 0;
    state->joined = 0;
    state->last = (emu_range){0, 0, EMU_RANGE_DEVICE, 0, NULL};
    memset(state->barrier_phase, 0, sizeof state->barrier_phase);
    if (state->watch) emu_watch_start(state->watch, self->waves[n].vector_rows, n);
    start_wave(&self->waves[n]);
  }
  while (group->live > 0 && !atomic_load_explicit(&launch->stop, memory_order_relaxed)) {
    bool progress = false;
    for (int n = 0; n < group->wave_count; ++n) {
      emu_wave *w = &self->waves[n];
      if (w->ended) continue;
      uint64_t before = w->executed;
      w->state->blocked = false;
      run_wave(w);
      /* A wave without progress executed nothing but the wait that still holds it. */
      if (!w->state->blocked || w->executed - before > 1) progress = true;
    }
    if (!progress && group->live > 0) {
      report_stuck(group);
      return;
    }
  }
}

static void *work(void *argument) {
  worker *self = argument;
  emu_launch *launch = self->launch;
  uint64_t groups = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2], executed = 0;
  for (;;) {
    uint64_t number = atomic_fetch_add(&launch->next_group, 1);
    if (number >= groups || atomic_load(&launch->stop)) break;
    run_group(self, number);
    for (int n = 0; n < launch->waves; ++n)
      executed += self->waves[n].executed;
  }
  pthread_mutex_lock(&launch->fault_lock);
  launch->executed += executed;
  if (self->tally) emu_tally_add(launch->count, self->tally);
  pthread_mutex_unlock(&launch->fault_lock);
  return NULL;
}

static void worker_finish(worker *self) {
  free(self->waves);
  free(self->states);
  free(self->registers);
  free(self->scratch);
  free(self->lds);
  free(self->shadow);
  free(self->watches);
  free(self->pending);
  emu_tally_destroy(self->tally);
}

static bool worker_init(worker *self, emu_launch *launch) {
  const emu_module *m = launch->module;
  size_t waves = (size_t)launch->waves, rows = m->vector_rows, scratch = launch->descriptor.scratch_bytes;
  memset(self, 0, sizeof *self);
  self->launch = launch;
  self->waves = calloc(waves, sizeof *self->waves);
  self->states = aligned_alloc(64, waves * ((sizeof *self->states + 63) / 64 * 64));
  self->registers = aligned_alloc(64, waves * rows * EMU_LANES * sizeof(uint32_t));
  self->scratch = scratch ? malloc(waves * EMU_LANES * scratch) : NULL;
  self->lds = aligned_alloc(64, ((size_t)launch->lds_bytes + 127) / 64 * 64);
  if (!self->waves || !self->states || !self->registers || !self->lds || (scratch && !self->scratch))
    return false;
  memset(self->states, 0, waves * sizeof *self->states);
  if (launch->watch) {
    self->shadow = calloc((size_t)launch->lds_bytes + 1, sizeof *self->shadow);
    self->watches = calloc(waves, sizeof *self->watches);
    self->pending = calloc(waves * rows, sizeof *self->pending);
    if (!self->shadow || !self->watches || !self->pending) return false;
    self->group.shadow = self->shadow;
  }
  if (launch->count && !(self->tally = emu_tally_create(launch->count))) return false;
  self->group.launch = launch;
  self->group.lds = self->lds;
  self->group.lds_bytes = launch->lds_bytes;
  self->group.waves = self->waves;
  self->group.wave_count = launch->waves;
  for (size_t n = 0; n < waves; ++n) {
    emu_wave *w = &self->waves[n];
    w->v = (uint32_t(*)[EMU_LANES])(self->registers + n * rows * EMU_LANES);
    w->vector_rows = (uint32_t)rows;
    w->lanes = launch->lanes;
    w->target = m->target;
    w->group = &self->group;
    w->index = (int)n;
    w->state = &self->states[n];
    if (launch->watch) {
      w->state->watch = &self->watches[n];
      w->state->watch->vector = self->pending + n * rows;
    }
    w->state->scratch = scratch ? self->scratch + n * EMU_LANES * scratch : NULL;
    w->state->scratch_bytes = (uint32_t)scratch;
    w->state->tally = self->tally;
  }
  return true;
}

static long worker_count(uint64_t groups) {
  const char *setting = getenv("HEDDLE_EMU_THREADS");
  long count = setting ? strtol(setting, NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
  if (count < 1) count = 1;
  if (count > MAX_WORKERS) count = MAX_WORKERS;
  return (uint64_t)count > groups ? (long)groups : count;
}

hd_status emu_run(emu_launch *launch) {
  uint64_t groups = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  if (groups == 0) return HD_OK;
  long count = worker_count(groups), ready = 0, started = 0;
  worker *workers = calloc((size_t)count, sizeof *workers);
  if (!workers) return HD_OUT_OF_MEMORY;
  hd_status status = HD_OK;
  while (ready < count) {
    if (!worker_init(&workers[ready++], launch)) status = HD_OUT_OF_MEMORY;
  }
  if (status == HD_OK) {
    /* The calling thread is the first worker; a thread that cannot be had only costs speed. */
    for (started = 1; started < count; ++started)
      if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    work(&workers[0]);
    for (long n = 1; n < started; ++n)
      pthread_join(workers[n].thread, NULL);
    if (launch->faulted) status = HD_DEVICE;
  }
  for (long n = 0; n < ready; ++n)
    worker_finish(&workers[n]);
  free(workers);
  return status;
}
