/* Bookkeeping of the emulated device's memory, and the checks every access passes through. */
#include "execute.h"
#include "hot.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

bool emu_memory_init(emu_memory *memory) {
  memset(memory, 0, sizeof *memory);
  return pthread_rwlock_init(&memory->lock, NULL) == 0;
}

/* What was written, a bit a byte: zeros that take room only where they are set. */
static size_t written_bytes(uint64_t size) {
  return (size_t)(size / 64 + 1) * sizeof(uint64_t);
}

static atomic_uint_least64_t *written_create(uint64_t size) {
  void *p = mmap(NULL, written_bytes(size), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void written_destroy(const emu_range *r) {
  if (r->written) munmap(r->written, written_bytes(r->size));
}

/* `count` bits from `first` on. */
static uint64_t bits_from(uint64_t first, uint64_t count) {
  return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
}

void emu_range_wrote(const emu_range *range, uint64_t address, uint64_t bytes) {
  if (!range->written) return;
  for (uint64_t at = address - range->start, end = at + bytes; at < end;) {
    uint64_t in_word = at % 64, count = end - at < 64 - in_word ? end - at : 64 - in_word;
    uint64_t mask = bits_from(in_word, count);
    atomic_uint_least64_t *word = &range->written[at / 64];
    if (mask == UINT64_MAX) {
      atomic_store_explicit(word, mask, memory_order_relaxed);
    } else if ((atomic_load_explicit(word, memory_order_relaxed) & mask) != mask) {
      atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
    }
    at += count;
  }
}

uint64_t emu_range_unwritten(const emu_range *range, uint64_t address, uint32_t bytes) {
  uint64_t at = address - range->start, in_word = at % 64;
  uint64_t written = atomic_load_explicit(&range->written[at / 64], memory_order_relaxed) >> in_word;
  if (in_word + bytes > 64)
    written |= atomic_load_explicit(&range->written[at / 64 + 1], memory_order_relaxed) << (64 - in_word);
  return ~written & bits_from(0, bytes);
}

void emu_memory_finish(emu_memory *memory) {
  for (size_t n = 0; n < memory->count; ++n)
    written_destroy(&memory->ranges[n]);
  free(memory->ranges);
  pthread_rwlock_destroy(&memory->lock);
}

/* How many ranges start at or below `address`. */
static size_t position(const emu_memory *memory, uint64_t address) {
  size_t low = 0, high = memory->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (memory->ranges[middle].start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool emu_memory_add(emu_memory *memory, uint64_t start, uint64_t size, emu_range_kind kind) {
  bool device = kind == EMU_RANGE_DEVICE;
  atomic_uint_least64_t *written = device ? written_create(size) : NULL;
  bool fine = written || !device;
  if (!fine) return false;
  pthread_rwlock_wrlock(&memory->lock);
  if (memory->count == memory->capacity) {
    size_t capacity = memory->capacity ? 2 * memory->capacity : 64;
    emu_range *grown = realloc(memory->ranges, capacity * sizeof *grown);
    if (grown) {
      memory->ranges = grown;
      memory->capacity = capacity;
    } else {
      fine = false;
    }
  }
  if (fine) {
    size_t at = position(memory, start);
    memmove(memory->ranges + at + 1, memory->ranges + at, (memory->count - at) * sizeof *memory->ranges);
    memory->ranges[at] = (emu_range){start, size, kind, device ? ++memory->serial : 0, written};
    ++memory->count;
    if (device) memory->allocated += size;
  }
  pthread_rwlock_unlock(&memory->lock);
  if (!fine && written) munmap(written, written_bytes(size));
  return fine;
}

bool emu_memory_remove(emu_memory *memory, uint64_t start) {
  pthread_rwlock_wrlock(&memory->lock);
  size_t at = position(memory, start);
  bool found = at > 0 && memory->ranges[at - 1].start == start;
  if (found) {
    written_destroy(&memory->ranges[at - 1]);
    if (memory->ranges[at - 1].kind == EMU_RANGE_DEVICE) memory->allocated -= memory->ranges[at - 1].size;
    memmove(memory->ranges + at - 1, memory->ranges + at, (memory->count - at) * sizeof *memory->ranges);
    --memory->count;
  }
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

const emu_range *emu_memory_find(const emu_memory *memory, uint64_t address) {
  size_t at = position(memory, address);
  return at > 0 ? &memory->ranges[at - 1] : NULL;
}

static const char *kind_name(emu_range_kind kind) {
  static const char *const names[] = {"allocation", "code object", "kernel arguments", "dispatch packet"};
  return names[kind];
}

static void name_range(const emu_range *r, char *out, size_t out_size) {
  if (r->kind == EMU_RANGE_DEVICE) {
    snprintf(out, out_size, "allocation %" PRIu64 " (%" PRIu64 " bytes at 0x%" PRIx64 ")", r->serial, r->size,
             r->start);
  } else {
    snprintf(out, out_size, "the %s (%" PRIu64 " bytes at 0x%" PRIx64 ")", kind_name(r->kind), r->size,
             r->start);
  }
}

void emu_memory_describe(const emu_memory *memory, uint64_t address, char *out, size_t out_size) {
  char name[128];
  size_t at = position(memory, address);
  const emu_range *below = at > 0 ? &memory->ranges[at - 1] : NULL;
  const emu_range *above = at < memory->count ? &memory->ranges[at] : NULL;
  uint64_t past = below ? address - below->start : UINT64_MAX;
  if (below && past < below->size) {
    name_range(below, name, sizeof name);
    snprintf(out, out_size, "byte %" PRIu64 " of %s", past, name);
  } else if (below && (!above || past - below->size <= above->start - address)) {
    name_range(below, name, sizeof name);
    snprintf(out, out_size, "%" PRIu64 " bytes past the end of %s", past - below->size, name);
  } else if (above) {
    name_range(above, name, sizeof name);
    snprintf(out, out_size, "%" PRIu64 " bytes before %s", above->start - address, name);
  } else {
    snprintf(out, out_size, "no memory is allocated");
  }
}

static bool inside(const emu_range *r, uint64_t address, uint32_t bytes) {
  return address - r->start < r->size && r->size - (address - r->start) >= bytes;
}

static const emu_range *find_range(const emu_launch *launch, uint64_t address, uint32_t bytes) {
  const emu_range *r = emu_memory_find(launch->memory, address);
  if (r && inside(r, address, bytes)) return r;
  for (size_t n = 0; n < sizeof launch->own / sizeof *launch->own; ++n)
    if (inside(&launch->own[n], address, bytes)) return &launch->own[n];
  return NULL;
}

uint8_t *emu_global(emu_wave *w, const emu_instruction *i, int lane, uint64_t address, uint32_t bytes,
                    bool write) {
  emu_range *last = &w->state->last;
  if (!inside(last, address, bytes)) {
    const emu_launch *launch = w->group->launch;
    const emu_range *r = find_range(launch, address, bytes);
    if (!r) {
      char where[256];
      emu_memory_describe(launch->memory, address, where, sizeof where);
      emu_fault(w, i, lane, "%s of %u bytes at 0x%" PRIx64 " is out of bounds: %s", write ? "write" : "read",
                bytes, address, where);
      return NULL;
    }
    *last = *r;
  }
  if (write && last->kind != EMU_RANGE_DEVICE) {
    emu_fault(w, i, lane, "write of %u bytes at 0x%" PRIx64 " into the %s", bytes, address,
              kind_name(last->kind));
    return NULL;
  }
  if (w->state->watch && !emu_watch_global(w, i, lane, address, bytes, write)) return NULL;
  if (write) emu_range_wrote(last, address, bytes);
  if (w->state->tally) emu_count_global(w, lane, address, bytes, write);
  return (uint8_t *)(uintptr_t)address;
}

#if defined(__SANITIZE_THREAD__)
EMU_GUEST void emu_copy(void *to, const void *from,
                        size_t bytes) { /* the sanitizer's own memcpy would look */
  volatile uint8_t *t = to;
  const volatile uint8_t *f = from;
  for (size_t n = 0; n < bytes; ++n)
    t[n] = f[n];
}
#else
void emu_copy(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
}
#endif

uint8_t *emu_lds(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes,
                 emu_touch touch) {
  const emu_group *group = w->group;
  if (offset > group->lds_bytes || group->lds_bytes - offset < bytes) {
    emu_fault(w, i, lane, "LDS access of %u bytes at offset %u is out of bounds: the workgroup has %u bytes",
              bytes, offset, group->lds_bytes);
    return NULL;
  }
  if (group->shadow && !emu_watch_lds(w, i, lane, offset, bytes, touch)) return NULL;
  if (w->state->tally) emu_count_lds(w, lane, offset, bytes, touch);
  return group->lds + offset;
}

uint8_t *emu_scratch(emu_wave *w, const emu_instruction *i, int lane, uint64_t offset, uint32_t bytes) {
  const emu_state *state = w->state;
  if (offset > state->scratch_bytes || state->scratch_bytes - offset < bytes) {
    emu_fault(w, i, lane,
              "scratch access of %u bytes at offset %" PRIu64 " is out of bounds: a lane has %u bytes", bytes,
              offset, state->scratch_bytes);
    return NULL;
  }
  return state->scratch + (uint64_t)(uint32_t)lane * state->scratch_bytes + offset;
}
