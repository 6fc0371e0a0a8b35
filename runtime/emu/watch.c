#include "watch.h"
#include "access.h"
#include "execute.h"
#include <inttypes.h>
#include <stdio.h>

void emu_watch_start(emu_watch *watch, uint32_t vector_rows, int wave) {
  emu_pending *vector = watch->vector;
  memset(watch, 0, sizeof *watch);
  memset(vector, 0, vector_rows * sizeof *vector);
  watch->vector = vector;
  watch->known[wave] = 1;
}

/* ---- Registers ---- */

static const char *const counter_names[2][EMU_COUNTER_COUNT] = {
    {"", "vmcnt", "vmcnt", "lgkmcnt", "lgkmcnt", "asynccnt", "tensorcnt"},
    {"", "loadcnt", "storecnt", "dscnt", "kmcnt", "asynccnt", "tensorcnt"},
};

static const char *counter_name(const emu_wave *w, int counter) {
  return counter_names[w->target->generation >= 12][counter];
}

/* The counter that still holds the register back, or 0. */
static int held_by(const emu_watch *watch, const emu_pending *p) {
  for (int n = 0; n < 2; ++n)
    if (p->counter[n] && p->sequence[n] > watch->done[p->counter[n]]) return p->counter[n];
  return EMU_COUNTER_NONE;
}

static uint32_t outstanding_after(const emu_watch *watch, const emu_pending *p, int counter) {
  int n = p->counter[0] == counter ? 0 : 1;
  return counter == EMU_COUNTER_SCALAR ? 0 : watch->issued[counter] - p->sequence[n];
}

static bool is_load(const emu_instruction *i) {
  return i->access && (i->access->kind == EMU_LOAD || i->access->kind == EMU_LOAD_TRANSPOSED);
}

/* The counters an instruction raises; a flat access may turn out to be LDS. */
static void counters_of(const emu_wave *w, const emu_instruction *i, emu_counter out[2]) {
  bool split = w->target->generation >= 12;
  out[0] = out[1] = EMU_COUNTER_NONE;
  if (!i->access) {
    const char *name = i->row->name;
    if (i->row->flags & EMU_SCALAR_LOAD) out[0] = EMU_COUNTER_SCALAR;
    if (i->row->flags & EMU_LDS_CROSSBAR) out[0] = EMU_COUNTER_LDS;
    if (strncmp(name, "tensor_", 7) == 0) out[0] = EMU_COUNTER_TENSOR;
    return;
  }
  bool returns = is_load(i) || (i->access->kind == EMU_ATOMIC && (i->source0 || i->sc0 || i->glc));
  switch (i->access->kind) {
  case EMU_ASYNC_TO_LDS:
  case EMU_ASYNC_FROM_LDS:
    out[0] = EMU_COUNTER_ASYNC;
    return;
  case EMU_PREFETCH:
    return;
  default:
    break;
  }
  if (i->space == EMU_LDS) {
    out[0] = EMU_COUNTER_LDS;
    return;
  }
  out[0] = split && !returns && i->access->kind != EMU_LOAD_TO_LDS ? EMU_COUNTER_STORE : EMU_COUNTER_LOAD;
  if (i->space == EMU_FLAT) out[1] = EMU_COUNTER_LDS;
}

static bool check_pending(emu_wave *w, const emu_instruction *i, const emu_pending *p, const emu_operand *o,
                          uint32_t index) {
  const emu_watch *watch = w->state->watch;
  int counter = held_by(watch, p);
  if (!counter) return true;
  char letter = o->kind == EMU_SCALAR                                         ? 's'
                : index >= EMU_ACCUMULATOR_BASE && w->target->generation == 9 ? 'a'
                                                                              : 'v';
  if (letter == 'a') index -= EMU_ACCUMULATOR_BASE;
  emu_fault(w, i, -1, "%c%u is used before the load into it was waited for: %s must be at most %u here",
            letter, index, counter_name(w, counter), outstanding_after(watch, p, counter));
  return false;
}

/* A load may overwrite the result of an earlier one that comes back through the same counter: they arrive in
 * order. */
static bool overtakes(const emu_wave *w, const emu_instruction *i, const emu_pending *p) {
  emu_counter counters[2];
  counters_of(w, i, counters);
  return counters[0] != EMU_COUNTER_SCALAR && p->counter[0] == counters[0] && !p->counter[1] && !counters[1];
}

bool emu_watch_before(emu_wave *w, const emu_instruction *i) {
  const emu_watch *watch = w->state->watch;
  for (int n = 0; n < i->operand_count; ++n) {
    const emu_operand *o = &i->operand[n];
    if (o->kind == EMU_VECTOR) {
      uint32_t row = emu_row_of(w, o);
      bool result = n == 0 && is_load(i) && i->source0;
      for (uint32_t k = 0; k < o->count; ++k) {
        const emu_pending *p = &watch->vector[row + k];
        if (!p->counter[0] || (result && overtakes(w, i, p))) continue;
        if (!check_pending(w, i, p, o, row + k)) return false;
      }
    } else if (o->kind == EMU_SCALAR && o->index < EMU_S_SCC) {
      for (uint32_t k = 0; k < o->count && o->index + k < EMU_S_SCC; ++k)
        if (watch->scalar[o->index + k].counter[0] &&
            !check_pending(w, i, &watch->scalar[o->index + k], o, o->index + k))
          return false;
    }
  }
  return true;
}

static void mark(emu_watch *watch, emu_pending *p, const emu_counter counters[2]) {
  for (int n = 0; n < 2; ++n) {
    p->counter[n] = (uint8_t)counters[n];
    p->sequence[n] = watch->issued[counters[n]];
  }
}

/* Waits raise `done` to what must have come back when at most `most` are left. */
static void waited(emu_watch *watch, emu_counter counter, uint32_t most) {
  uint32_t issued = watch->issued[counter];
  uint32_t done = counter == EMU_COUNTER_SCALAR ? (most == 0 ? issued : 0)
                  : issued > most               ? issued - most
                                                : 0;
  if (done > watch->done[counter]) watch->done[counter] = done;
}

static void wait(emu_watch *watch, const emu_instruction *i) {
  static const struct {
    const char *name;
    emu_counter counter;
  } single[] = {
      {"s_wait_loadcnt", EMU_COUNTER_LOAD},   {"s_wait_storecnt", EMU_COUNTER_STORE},
      {"s_wait_dscnt", EMU_COUNTER_LDS},      {"s_wait_kmcnt", EMU_COUNTER_SCALAR},
      {"s_wait_asynccnt", EMU_COUNTER_ASYNC}, {"s_wait_tensorcnt", EMU_COUNTER_TENSOR},
      {"s_waitcnt_vscnt", EMU_COUNTER_STORE},
  };
  const char *name = i->row->name;
  uint32_t bits = i->immediate;
  if (strcmp(name, "s_waitcnt") == 0) { /* gfx9: vmcnt 3:0 and 15:14, lgkmcnt 11:8 */
    waited(watch, EMU_COUNTER_LOAD, (bits & 15) | (bits >> 14 & 3) << 4);
    waited(watch, EMU_COUNTER_LDS, bits >> 8 & 15);
    waited(watch, EMU_COUNTER_SCALAR, bits >> 8 & 15);
    return;
  }
  if (strcmp(name, "s_wait_loadcnt_dscnt") == 0 || strcmp(name, "s_wait_storecnt_dscnt") == 0) {
    waited(watch, name[7] == 'l' ? EMU_COUNTER_LOAD : EMU_COUNTER_STORE, bits >> 8 & 63);
    waited(watch, EMU_COUNTER_LDS, bits & 63);
    return;
  }
  for (size_t n = 0; n < sizeof single / sizeof *single; ++n)
    if (strcmp(name, single[n].name) == 0) waited(watch, single[n].counter, bits);
}

void emu_watch_after(emu_wave *w, const emu_instruction *i) {
  emu_watch *watch = w->state->watch;
  if (i->row->flags & EMU_WAITS) {
    wait(watch, i);
    return;
  }
  if (!i->access && !(i->row->flags & (EMU_MEMORY | EMU_LDS_CROSSBAR | EMU_SCALAR_LOAD))) return;
  emu_counter counters[2];
  counters_of(w, i, counters);
  if (!counters[0]) return;
  ++watch->issued[counters[0]];
  if (counters[1]) ++watch->issued[counters[1]];
  bool to_register = !i->access || is_load(i) || i->access->kind == EMU_ATOMIC;
  if (!to_register || i->lds || counters[0] == EMU_COUNTER_TENSOR) return;
  if (i->access && i->access->kind == EMU_ATOMIC && !i->source0 &&
      !(i->space == EMU_BUFFER && (i->sc0 || i->glc)))
    return;
  const emu_operand *o = &i->operand[0];
  if (o->kind == EMU_VECTOR) {
    uint32_t row = emu_row_of(w, o);
    for (uint32_t k = 0; k < o->count; ++k)
      mark(watch, &watch->vector[row + k], counters);
  } else if (o->kind == EMU_SCALAR && o->index < EMU_S_SCC && o->index != EMU_S_NULL) {
    for (uint32_t k = 0; k < o->count && o->index + k < EMU_S_SCC; ++k)
      mark(watch, &watch->scalar[o->index + k], counters);
  }
}

/* ---- LDS ---- */

void emu_watch_landing(emu_wave *w, emu_counter counter, uint32_t start, uint32_t end) {
  emu_watch *watch = w->state->watch;
  /* Recorded while the copy executes: emu_watch_after counts it. */
  uint32_t sequence = watch->issued[counter] + 1;
  if (watch->landing_count) {
    emu_landing *last = &watch->landings[(watch->landing_count - 1) % EMU_LANDINGS];
    if (last->sequence == sequence && last->counter == counter && last->end == start) {
      last->end = end;
      return;
    }
  }
  watch->landings[watch->landing_count++ % EMU_LANDINGS] =
      (emu_landing){start, end, sequence, (uint8_t)counter};
}

/* Is a copy still on its way to [offset, offset + bytes)? */
static bool check_landings(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes) {
  const emu_group *group = w->group;
  for (int n = 0; n < group->wave_count; ++n) {
    const emu_wave *other = &group->waves[n];
    const emu_watch *watch = other->state->watch;
    uint32_t count = watch->landing_count < EMU_LANDINGS ? watch->landing_count : EMU_LANDINGS;
    for (uint32_t k = 0; k < count; ++k) {
      const emu_landing *l = &watch->landings[k];
      if (l->sequence <= watch->done[l->counter] || offset >= l->end || offset + bytes <= l->start) continue;
      emu_fault(
          w, i, lane,
          "LDS bytes %u to %u are used while a copy of wave %d into them is under way: it has to wait for %s",
          offset, offset + bytes - 1, n, counter_name(w, l->counter));
      return false;
    }
  }
  return true;
}

/* Copies take another way to LDS than its own instructions, which they may overtake. */
static bool is_copy_to_lds(const emu_instruction *i) {
  if (!i->access) return true; /* tensors */
  return i->access->kind == EMU_LOAD_TO_LDS || i->access->kind == EMU_ASYNC_TO_LDS || i->lds;
}

/* Is an access that was asked for before still to come to the byte? Its number's distance from what has been
 * waited for tells, modulo 2^26. */
static bool still_asked(const emu_wave *w, uint32_t asked, uint32_t *out_left) {
  const emu_watch *watch = w->group->waves[asked & 63].state->watch;
  uint32_t number = asked >> 6, ahead = (number - watch->done[EMU_COUNTER_LDS]) & 0x3ffffff;
  *out_left = (watch->issued[EMU_COUNTER_LDS] - number) & 0x3ffffff;
  return asked && ahead && ahead < 0x2000000;
}

static bool overtaken(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes) {
  uint32_t left;
  for (uint32_t n = offset; n < offset + bytes; ++n) {
    uint32_t asked = w->group->shadow[n].asked;
    if (!still_asked(w, asked, &left)) continue;
    emu_fault(
        w, i, lane,
        "LDS bytes %u to %u are overwritten by a copy while an access of wave %u to them is under way: %s "
        "must be at most %u here",
        offset, offset + bytes - 1, asked & 63, counter_name(w, EMU_COUNTER_LDS), left);
    return true;
  }
  return false;
}

/* ---- Order between waves: what barriers give, told by vector clocks ---- */

static void take_later(uint32_t to[EMU_MAX_WAVES], const uint32_t from[EMU_MAX_WAVES]) {
  for (int n = 0; n < EMU_MAX_WAVES; ++n)
    to[n] = from[n] > to[n] ? from[n] : to[n];
}

void emu_watch_comes(emu_wave *w, emu_order *order) {
  take_later(order->coming, w->state->watch->known);
  ++w->state->watch->known[w->index];
}

void emu_watch_opens(emu_order *order) {
  memcpy(order->opened, order->coming, sizeof order->opened);
  memset(order->coming, 0, sizeof order->coming);
}

void emu_watch_passes(emu_wave *w, const emu_order *order) {
  take_later(w->state->watch->known, order->opened);
}

/* By another wave, in an epoch that does not lie before now. */
static bool races(const emu_wave *w, uint32_t tag) {
  uint32_t other = (tag - 1) & 63;
  return tag && other != (uint32_t)w->index && w->state->watch->known[other] < (tag - 1) >> 6;
}

static bool race(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t tag,
                 const char *mine, const char *theirs) {
  emu_fault(w, i, lane, "race in LDS at byte %u: %s here, %s by wave %u, with no barrier between", offset,
            mine, theirs, (tag - 1) & 63);
  return false;
}

bool emu_watch_lds(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes,
                   emu_touch touch) {
  emu_group *group = w->group;
  uint32_t wave = (uint32_t)w->index, tag = (w->state->watch->known[wave] << 6 | wave) + 1;
  if (group->copies_in_flight && !check_landings(w, i, lane, offset, bytes)) return false;
  bool several = group->wave_count > 1, counted = i->access && (i->space == EMU_LDS || i->space == EMU_FLAT);
  uint32_t asked = (w->state->watch->issued[EMU_COUNTER_LDS] + 1) << 6 | wave;
  if (touch == EMU_TOUCH_WRITE && is_copy_to_lds(i) && overtaken(w, i, lane, offset, bytes)) return false;
  for (uint32_t n = offset; n < offset + bytes; ++n) {
    emu_shadow *s = &group->shadow[n];
    if (counted) s->asked = asked;
    if (touch == EMU_TOUCH_READ) {
      if (!s->written) {
        emu_fault(w, i, lane, "LDS byte %u is read, and nothing wrote it", n);
        return false;
      }
      if (several && races(w, s->written)) return race(w, i, lane, n, s->written, "read", "written");
      if (((s->read[0] - 1) & 63) == wave || !s->read[0]) {
        s->read[0] = tag;
      } else {
        s->read[1] = s->read[0];
        s->read[0] = tag;
      }
      continue;
    }
    if (touch == EMU_TOUCH_WRITE && several) {
      if (races(w, s->written)) return race(w, i, lane, n, s->written, "written", "written");
      for (int k = 0; k < 2; ++k)
        if (races(w, s->read[k])) return race(w, i, lane, n, s->read[k], "written", "read");
    }
    /* Atomics order themselves; the first of them still has to follow the initial write. */
    if (touch == EMU_TOUCH_WRITE || !s->written) s->written = tag;
  }
  return true;
}

/* ---- Global memory ---- */

typedef enum reading {
  READS_NOTHING, /* or hands it on: what a copy to LDS takes along is held to account when LDS is read */
  READS_BYTES,
  READS_WORDS /* compilers widen scalar loads of bytes to the word around them */
} reading;

static reading reading_of(const emu_instruction *i, uint32_t bytes, bool write) {
  if (!i->access)
    return !(i->row->flags & EMU_SCALAR_LOAD) ? READS_NOTHING : bytes < 4 ? READS_BYTES : READS_WORDS;
  switch (i->access->kind) {
  case EMU_LOAD:
    return i->lds ? READS_NOTHING : READS_BYTES;
  case EMU_LOAD_TRANSPOSED:
    return READS_BYTES;
  case EMU_ATOMIC:
    return write && i->access->atomic != EMU_SWAP ? READS_BYTES : READS_NOTHING;
  default:
    return READS_NOTHING;
  }
}

/* Of `unwritten`, the bytes of words that hold no written byte at all. */
static uint64_t whole_words(uint64_t unwritten, uint64_t address) {
  uint64_t whole = 0;
  for (unsigned at = 0; at < 64; at += 4 - (unsigned)((address + at) % 4)) {
    unsigned count = 4 - (unsigned)((address + at) % 4);
    uint64_t word = (at + count > 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << at;
    if ((unwritten & word) == word) whole |= word;
  }
  return whole;
}

bool emu_watch_global(emu_wave *w, const emu_instruction *i, int lane, uint64_t address, uint32_t bytes,
                      bool write) {
  const emu_range *r = &w->state->last;
  reading kind = r->written ? reading_of(i, bytes, write) : READS_NOTHING;
  if (kind == READS_NOTHING) return true;
  uint64_t unwritten = emu_range_unwritten(r, address, bytes);
  if (kind == READS_WORDS && unwritten) unwritten = whole_words(unwritten, address);
  if (!unwritten) return true;
  char where[256], some[32] = "them";
  uint32_t bad = (uint32_t)__builtin_popcountll(unwritten);
  if (bad < bytes) snprintf(some, sizeof some, "%u of them", bad);
  emu_memory_describe(w->group->launch->memory, address + (uint64_t)__builtin_ctzll(unwritten), where,
                      sizeof where);
  emu_fault(w, i, lane, "%u bytes at 0x%" PRIx64 " are read, and nothing wrote %s: %s", bytes, address, some,
            where);
  return false;
}

void emu_watch_copied(emu_wave *w, uint64_t address, uint32_t offset, uint32_t bytes) {
  const emu_range *r = &w->state->last;
  if (!w->group->shadow || !r->written) return;
  for (uint64_t left = emu_range_unwritten(r, address, bytes); left; left &= left - 1)
    w->group->shadow[offset + (uint32_t)__builtin_ctzll(left)].written = 0;
}

/* ---- Barriers ---- */

/* Hardware lets waves meet wherever they are, and does not wait for waves that ended. A kernel that needs
 * either has a barrier under a condition that its waves do not share. */
bool emu_watch_barrier(emu_wave *w, const emu_instruction *i) {
  emu_group *group = w->group;
  const emu_stop *first = &group->arrived, *ended = &group->ended;
  if (group->named_barriers) return true;
  if (ended->at) {
    emu_fault(w, i, -1, "divergence at a barrier: wave %d ended at 0x%06" PRIx64 " without coming to it",
              ended->wave, ended->at->address);
    return false;
  }
  if (group->barrier[0].arrived == 0) {
    group->arrived = (emu_stop){i, w->index};
  } else if (first->at != i) {
    emu_fault(w, i, -1, "divergence at a barrier: wave %d waits at another one, 0x%06" PRIx64 ": %s",
              first->wave, first->at->address, first->at->text);
    return false;
  }
  return true;
}

bool emu_watch_end(emu_wave *w, const emu_instruction *i) {
  emu_group *group = w->group;
  if (w->state->watch->signalled)
    return true; /* it has signalled, and ends without waiting: the others may go on */
  group->ended = (emu_stop){i, w->index};
  if (group->barrier[0].arrived == 0 || group->named_barriers) return true;
  emu_fault(w, i, -1, "divergence at a barrier: the wave ends while wave %d waits at 0x%06" PRIx64 ": %s",
            group->arrived.wave, group->arrived.at->address, group->arrived.at->text);
  return false;
}
