#include "count.h"
#include "access.h"
#include "execute.h"
#include <stdio.h>
#include <stdlib.h>

enum {
  TOUCHES = 2 * EMU_LANES, /* of one instruction: two elements a lane */
  MAX_BANKS = 64,
  BANK_BYTES = 4,
  NO_SITE = -1
};

/* One lane's piece of memory or LDS. */
typedef struct touch {
  uint64_t start;
  uint32_t bytes;
  int lane;
} touch;

typedef struct touches {
  touch items[TOUCHES];
  int count;
  bool writes, atomic;
} touches;

typedef struct site_tally {
  uint64_t buffer;
  bool several, writes;
  count_traffic traffic;
  uint64_t lds_cycles, lds_least;
} site_tally;

struct emu_count {
  const emu_launch *launch;
  int32_t *site_of; /* [instruction] → site, or NO_SITE */
  size_t site_count, buffer_count;
  /* One bit a cache line of every allocation, shared by all threads. */
  atomic_uint_least64_t **lines_read, **lines_written; /* [buffer] */
  /* Sums. */
  uint64_t *executed;    /* [instruction] */
  site_tally *sites;     /* [site] */
  count_buffer *buffers; /* [buffer]: the memory's ranges in their order, then the launch's own two */
  uint64_t lds_bytes, lds_cycles, lds_least, longest;
};

struct emu_tally {
  emu_count *count;
  uint64_t *executed;
  site_tally *sites;
  count_buffer *buffers;
  uint64_t lds_bytes, lds_cycles, lds_least, longest;
  touches global, lds; /* of the instruction that is executing */
  emu_range range;     /* that `global` lies in */
  /* What it has moved so far, if it touches several allocations. */
  count_traffic moved;
  uint64_t first_buffer;
  bool several;
};

/* ---- Classes ---- */

static bool begins(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

static const struct {
  const char *prefix;
  count_class class;
} scalar_classes[] = {
    {"s_barrier", COUNT_BARRIER}, {"s_wait", COUNT_WAIT},      {"s_delay_alu", COUNT_WAIT},
    {"s_nop", COUNT_WAIT},        {"s_sleep", COUNT_WAIT},     {"s_endpgm", COUNT_OTHER},
    {"s_clause", COUNT_OTHER},    {"s_setprio", COUNT_OTHER},  {"s_set_inst_pref", COUNT_OTHER},
    {"s_inst_pref", COUNT_OTHER}, {"s_icache", COUNT_OTHER},   {"s_dcache", COUNT_OTHER},
    {"s_sendmsg", COUNT_OTHER},   {"s_trap", COUNT_OTHER},     {"s_ttrace", COUNT_OTHER},
    {"s_prefetch", COUNT_OTHER},  {"s_code_end", COUNT_OTHER},
};

static count_class class_of(const emu_instruction *i) {
  const char *name = i->row->name;
  if (i->row->flags & EMU_MATRIX) return COUNT_MATRIX;
  if (i->access)
    return i->space == EMU_LDS ? COUNT_LDS : i->space == EMU_SCRATCH ? COUNT_SCRATCH : COUNT_MEMORY;
  if (begins(name, "tensor_")) return COUNT_MEMORY;
  if (i->row->flags & EMU_LDS_CROSSBAR) return COUNT_LDS;
  if (i->row->flags & EMU_SCALAR_LOAD) return COUNT_SCALAR_MEMORY;
  if (begins(name, "v_")) return i->row->flags & EMU_TRANSCENDENTAL ? COUNT_TRANSCENDENTAL : COUNT_VECTOR;
  if (!begins(name, "s_")) return COUNT_OTHER;
  for (size_t n = 0; n < sizeof scalar_classes / sizeof *scalar_classes; ++n)
    if (begins(name, scalar_classes[n].prefix)) return scalar_classes[n].class;
  if (i->row->flags & (EMU_BRANCH | EMU_ENDS_BLOCK)) return COUNT_BRANCH;
  return COUNT_SCALAR;
}

static bool is_site(count_class c) {
  return c == COUNT_MEMORY || c == COUNT_LDS || c == COUNT_SCALAR_MEMORY;
}

/* ---- Matrix instructions ---- */

/* Products of one instruction: "16x16x32" and, if it has several blocks, "_4b" from the name. */
static uint64_t multiply_adds(const char *name) {
  unsigned m, n, k, blocks = 1;
  int end = 0;
  for (const char *at = strchr(name, '_'); at; at = strchr(at + 1, '_')) {
    if (sscanf(at, "_%ux%ux%u%n", &m, &n, &k, &end) != 3) continue;
    if (sscanf(at + end, "_%ub_", &blocks) != 1) blocks = 1;
    return (uint64_t)m * n * k * blocks;
  }
  return 0;
}

/* Bits of an element of A, the last type but one or the last in the name. */
static int operand_bits(const emu_instruction *i) {
  static const struct {
    const char *type;
    int bits;
  } types[] = {{"_f64", 64}, {"xf32", 32}, {"_bf16", 16}, {"_f16", 16}, {"fp8", 8},
               {"bf8", 8},   {"iu4", 4},   {"iu8", 8},    {"_i8", 8},   {"_f32", 32}};
  const char *name = i->row->name, *shape = name;
  for (const char *at = strchr(name, '_'); at; at = strchr(at + 1, '_'))
    if (at[1] >= '0' && at[1] <= '9' && strchr(at, 'x')) shape = at;
  if (strstr(name, "f8f6f4")) {
    enum { FIRST_SIX_BIT_FORMAT = 2 }; /* fp8, bf8, fp6, bf6, fp4 */
    bool gfx9 = begins(name, "v_mfma");
    int a = gfx9 ? i->cbsz : i->matrix_a_format, b = gfx9 ? i->blgp : i->matrix_b_format;
    return a >= FIRST_SIX_BIT_FORMAT && b >= FIRST_SIX_BIT_FORMAT ? 4 : 8;
  }
  for (size_t n = 0; n < sizeof types / sizeof *types; ++n)
    if (strstr(shape, types[n].type)) return types[n].bits;
  return 32;
}

/* ---- Segments ---- */

static void sort_touches(touches *t) {
  for (int n = 1; n < t->count; ++n) {
    touch moving = t->items[n];
    int at = n;
    for (; at > 0 && t->items[at - 1].start > moving.start; --at)
      t->items[at] = t->items[at - 1];
    t->items[at] = moving;
  }
}

/* `t` sorted by address. */
static count_traffic traffic_of(const touches *t) {
  count_traffic r = {0};
  uint64_t reached = 0;
  for (int n = 0; n < t->count; ++n) {
    const touch *p = &t->items[n];
    uint64_t end = p->start + p->bytes, from = p->start > reached ? p->start : reached;
    r.bytes += p->bytes;
    if (end > from) r.distinct += end - from;
    if (end > reached) reached = end;
  }
  for (int size = 0; size < COUNT_SEGMENT_SIZES; ++size) {
    int shift = 5 + size;
    uint64_t next = 0; /* segments below it are counted */
    for (int n = 0; n < t->count; ++n) {
      uint64_t first = t->items[n].start >> shift,
               last = (t->items[n].start + t->items[n].bytes - 1) >> shift;
      if (first < next) first = next;
      if (last + 1 <= first) continue;
      r.segments[size] += last + 1 - first;
      next = last + 1;
    }
    r.least[size] = (r.distinct + (UINT64_C(1) << shift) - 1) >> shift;
  }
  return r;
}

static void mark_lines(atomic_uint_least64_t *lines, const emu_range *range, const touches *t) {
  /* Lines are those of memory, not of the allocation. */
  uint64_t base = range->start / COUNT_LINE_BYTES;
  for (int n = 0; n < t->count; ++n) {
    uint64_t last = (t->items[n].start + t->items[n].bytes - 1) / COUNT_LINE_BYTES - base;
    for (uint64_t at = t->items[n].start / COUNT_LINE_BYTES - base; at <= last; ++at) {
      uint64_t bit = UINT64_C(1) << (at & 63);
      if (!(atomic_load_explicit(&lines[at >> 6], memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(&lines[at >> 6], bit, memory_order_relaxed);
    }
  }
}

static size_t buffer_of(const emu_count *count, const emu_range *range) {
  const emu_memory *memory = count->launch->memory;
  for (size_t n = 0; n < 2; ++n)
    if (count->launch->own[n].start == range->start) return memory->count + n;
  return (size_t)(emu_memory_find(memory, range->start) - memory->ranges);
}

static void settle_global(emu_tally *tally) {
  touches *t = &tally->global;
  if (t->count == 0) return;
  size_t buffer = buffer_of(tally->count, &tally->range);
  sort_touches(t);
  count_traffic moved = traffic_of(t);
  count_traffic_add(&tally->moved, &moved);
  moved.instructions = 1;
  count_buffer *b = &tally->buffers[buffer];
  count_traffic_add(t->writes ? &b->stores : &b->loads, &moved);
  atomic_uint_least64_t *lines = (t->writes ? tally->count->lines_written : tally->count->lines_read)[buffer];
  if (lines) mark_lines(lines, &tally->range, t);
  if (tally->first_buffer && tally->first_buffer != tally->range.start) tally->several = true;
  if (!tally->first_buffer || tally->range.start < tally->first_buffer)
    tally->first_buffer = tally->range.start;
  t->count = 0;
}

static void add_touch(touches *t, int lane, uint64_t start, uint32_t bytes) {
  /* Copies of a whole wave go on where they were. */
  touch *before = t->count ? &t->items[t->count - 1] : NULL;
  if (lane < 0 && before && before->start + before->bytes == start && before->bytes < 1u << 30) {
    before->bytes += bytes;
    return;
  }
  t->items[t->count++] = (touch){start, bytes, lane};
}

void emu_count_global(emu_wave *w, int lane, uint64_t address, uint32_t bytes, bool write) {
  emu_tally *tally = w->state->tally;
  const emu_range *range = &w->state->last;
  if (tally->global.count == TOUCHES || (tally->global.count && tally->range.start != range->start))
    settle_global(tally);
  tally->range = *range;
  tally->global.writes = write;
  /* Where the host put arguments and code says nothing: they begin a line. */
  if (range->kind != EMU_RANGE_DEVICE) address -= range->start;
  add_touch(&tally->global, lane, address, bytes);
}

/* ---- LDS banks ----
 * A pass serves as many lanes as LDS has bytes a cycle for: of 128 bytes, 32 lanes of 4 bytes, 16 of 8, 8
 * of 16. In a pass each bank gives one word a cycle; lanes that want the same word share it, except in
 * atomics. */

/* The order in which gfx9 takes lanes for reads of 12 and 16 bytes, in fours of lanes, and gfx950 for those
 * of 16 (AMD's documentation of Composable Kernel; HipKittens, arXiv 2511.08083). Other accesses: in order.
 */
static const uint8_t wide_read_order[16] = {0, 5, 1, 4, 2, 7, 3, 6, 8, 13, 9, 12, 10, 15, 11, 14};
static const uint8_t paired_read_order[16] = {0, 3, 5, 6, 1, 2, 4, 7, 8, 11, 13, 14, 9, 10, 12, 15};

static uint32_t banks_of(const emu_target *target, uint32_t bytes, bool writes) {
  bool wide_read = !writes && (bytes == 8 || bytes == 16);
  return (uint32_t)(wide_read ? target->lds_wide_read_banks : target->lds_banks);
}

static uint32_t words_of(const touch *t, uint64_t *out) {
  uint32_t count = 0;
  for (uint64_t at = t->start / BANK_BYTES; at <= (t->start + t->bytes - 1) / BANK_BYTES; ++at)
    out[count++] = at;
  return count;
}

typedef struct bank_cycles {
  uint64_t cycles, least;
} bank_cycles;

/* `lanes`: index of the lane's touch or -1, in the order of service. */
static bank_cycles pass_cycles(const touches *t, const int *lanes, int lane_count, uint32_t banks) {
  uint64_t words[MAX_BANKS * 2 + 16];
  uint32_t count = 0, in_bank[MAX_BANKS] = {0}, most = 0;
  for (int n = 0; n < lane_count; ++n) {
    if (lanes[n] < 0) continue;
    uint64_t own[8];
    uint32_t own_count = words_of(&t->items[lanes[n]], own);
    for (uint32_t k = 0; k < own_count; ++k) {
      bool known = false;
      for (uint32_t before = 0; before < count && !t->atomic; ++before)
        known = known || words[before] == own[k];
      if (known || count == sizeof words / sizeof *words) continue;
      words[count++] = own[k];
      uint32_t load = ++in_bank[own[k] % banks];
      if (load > most) most = load;
    }
  }
  return (bank_cycles){most, (count + banks - 1) / banks};
}

/* One element of every lane: touches `first`, `first + step` … */
static bank_cycles element_cycles(const emu_wave *w, const touches *t, int first, int step) {
  bank_cycles sum = {0, 0};
  int by_lane[EMU_LANES], order[EMU_LANES];
  uint32_t bytes = t->items[first].bytes;
  uint32_t banks = banks_of(w->target, bytes, t->writes);
  int group = (int)banks / (bytes <= 4 ? 1 : bytes <= 8 ? 2 : 4);
  const uint8_t *fours = t->writes || bytes <= 8 || w->target->generation != 9 ? NULL
                         : banks == 64                                         ? paired_read_order
                                                                               : wide_read_order;
  for (int lane = 0; lane < w->lanes; ++lane)
    by_lane[lane] = -1;
  for (int n = first; n < t->count; n += step)
    by_lane[t->items[n].lane] = n;
  for (int n = 0; n < w->lanes; ++n)
    order[n] = by_lane[fours ? 4 * fours[n / 4] + n % 4 : n];
  for (int n = 0; n < w->lanes; n += group) {
    int count = group < w->lanes - n ? group : w->lanes - n;
    bank_cycles pass = pass_cycles(t, order + n, count, banks);
    sum.cycles += pass.cycles;
    sum.least += pass.least;
  }
  return sum;
}

static bank_cycles settle_lds(emu_wave *w, emu_tally *tally, int elements) {
  touches *t = &tally->lds;
  bank_cycles sum = {0, 0};
  for (int n = 0; n < t->count; ++n)
    tally->lds_bytes += t->items[n].bytes;
  if (t->count && t->items[0].lane < 0) { /* a copy without lanes */
    uint32_t served = banks_of(w->target, 16, t->writes) * BANK_BYTES;
    for (int n = 0; n < t->count; ++n)
      sum.cycles += (t->items[n].bytes + served - 1) / served;
    sum.least = sum.cycles;
  } else if (t->count) {
    for (int n = 0; n < elements && n < t->count; ++n) {
      bank_cycles one = element_cycles(w, t, n, elements);
      sum.cycles += one.cycles;
      sum.least += one.least;
    }
  }
  tally->lds_cycles += sum.cycles;
  tally->lds_least += sum.least;
  t->count = 0;
  return sum;
}

void emu_count_lds(emu_wave *w, int lane, uint32_t offset, uint32_t bytes, emu_touch kind) {
  emu_tally *tally = w->state->tally;
  if (tally->lds.count == TOUCHES) settle_lds(w, tally, 1);
  tally->lds.writes = kind != EMU_TOUCH_READ;
  tally->lds.atomic = kind == EMU_TOUCH_ATOMIC;
  add_touch(&tally->lds, lane, offset, bytes);
}

/* ---- Instructions ---- */

void emu_count_after(emu_wave *w, const emu_instruction *i) {
  emu_tally *tally = w->state->tally;
  const emu_count *count = tally->count;
  size_t index = (size_t)(i - count->launch->module->code);
  /* A barrier that still holds the wave will execute again. */
  if (w->faulted || (w->yielded && !w->ended && w->next == index)) return;
  ++tally->executed[index];
  if (i->dual) ++tally->executed[index + 1];
  if (++w->state->counted > tally->longest) tally->longest = w->state->counted;
  int32_t number = count->site_of[index];
  if (number == NO_SITE) return;
  site_tally *site = &tally->sites[number];
  if (tally->lds.count) {
    site->writes = site->writes || tally->lds.writes;
    bank_cycles cycles = settle_lds(w, tally, i->access && i->access->elements > 1 ? 2 : 1);
    site->lds_cycles += cycles.cycles;
    site->lds_least += cycles.least;
  }
  if (!tally->global.count) return;
  bool writes = tally->global.writes;
  settle_global(tally);
  tally->moved.instructions = 1;
  count_traffic_add(&site->traffic, &tally->moved);
  site->writes = site->writes || writes;
  site->several = site->several || tally->several || (site->buffer && site->buffer != tally->first_buffer);
  if (!site->buffer || tally->first_buffer < site->buffer) site->buffer = tally->first_buffer;
  tally->moved = (count_traffic){0};
  tally->first_buffer = 0;
  tally->several = false;
}

/* ---- Life ---- */

emu_count *emu_count_create(const emu_launch *launch) {
  const emu_module *m = launch->module;
  const emu_memory *memory = launch->memory;
  emu_count *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->launch = launch;
  c->buffer_count = memory->count + 2;
  c->site_of = malloc(m->code_count * sizeof *c->site_of + 1);
  c->executed = calloc(m->code_count + 1, sizeof *c->executed);
  c->buffers = calloc(c->buffer_count, sizeof *c->buffers);
  c->lines_read = calloc(c->buffer_count, sizeof *c->lines_read);
  c->lines_written = calloc(c->buffer_count, sizeof *c->lines_written);
  bool fine = c->site_of && c->executed && c->buffers && c->lines_read && c->lines_written;
  for (size_t n = 0; fine && n < m->code_count; ++n)
    c->site_of[n] = is_site(class_of(&m->code[n])) ? (int32_t)c->site_count++ : NO_SITE;
  if (fine) c->sites = calloc(c->site_count + 1, sizeof *c->sites);
  fine = fine && c->sites;
  for (size_t n = 0; fine && n < c->buffer_count; ++n) {
    const emu_range *r = n < memory->count ? &memory->ranges[n] : &launch->own[n - memory->count];
    c->buffers[n] = (count_buffer){.start = r->start, .size = r->size, .serial = r->serial};
    if (r->kind != EMU_RANGE_DEVICE) continue;
    /* Zeroed when touched: a large allocation costs what is used of it. */
    size_t words = (size_t)(r->size / COUNT_LINE_BYTES / 64 + 2);
    c->lines_read[n] = calloc(words, sizeof **c->lines_read);
    c->lines_written[n] = calloc(words, sizeof **c->lines_written);
    fine = c->lines_read[n] && c->lines_written[n];
  }
  if (fine) return c;
  emu_count_destroy(c);
  return NULL;
}

void emu_count_destroy(emu_count *c) {
  if (!c) return;
  for (size_t n = 0; n < c->buffer_count; ++n) {
    if (c->lines_read) free(c->lines_read[n]);
    if (c->lines_written) free(c->lines_written[n]);
  }
  free(c->lines_read);
  free(c->lines_written);
  free(c->site_of);
  free(c->executed);
  free(c->sites);
  free(c->buffers);
  free(c);
}

emu_tally *emu_tally_create(emu_count *count) {
  emu_tally *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->count = count;
  t->executed = calloc(count->launch->module->code_count + 1, sizeof *t->executed);
  t->sites = calloc(count->site_count + 1, sizeof *t->sites);
  t->buffers = calloc(count->buffer_count, sizeof *t->buffers);
  if (t->executed && t->sites && t->buffers) return t;
  emu_tally_destroy(t);
  return NULL;
}

void emu_tally_destroy(emu_tally *t) {
  if (!t) return;
  free(t->executed);
  free(t->sites);
  free(t->buffers);
  free(t);
}

static void add_site(site_tally *to, const site_tally *s) {
  count_traffic_add(&to->traffic, &s->traffic);
  to->lds_cycles += s->lds_cycles;
  to->lds_least += s->lds_least;
  to->writes = to->writes || s->writes;
  to->several = to->several || s->several || (to->buffer && s->buffer && to->buffer != s->buffer);
  if (s->buffer && (!to->buffer || s->buffer < to->buffer)) to->buffer = s->buffer;
}

void emu_tally_add(emu_count *c, const emu_tally *t) {
  for (size_t n = 0; n < c->launch->module->code_count; ++n)
    c->executed[n] += t->executed[n];
  for (size_t n = 0; n < c->site_count; ++n)
    add_site(&c->sites[n], &t->sites[n]);
  for (size_t n = 0; n < c->buffer_count; ++n) {
    count_traffic_add(&c->buffers[n].loads, &t->buffers[n].loads);
    count_traffic_add(&c->buffers[n].stores, &t->buffers[n].stores);
  }
  c->lds_bytes += t->lds_bytes;
  c->lds_cycles += t->lds_cycles;
  c->lds_least += t->lds_least;
  if (t->longest > c->longest) c->longest = t->longest;
}

/* ---- The result ---- */

static uint64_t bits_set(const atomic_uint_least64_t *lines, uint64_t size) {
  uint64_t sum = 0;
  if (!lines) return 0;
  for (uint64_t n = 0; n < size / COUNT_LINE_BYTES / 64 + 2; ++n)
    for (uint64_t word = lines[n]; word; word &= word - 1)
      ++sum;
  return sum;
}

/* In the order of allocation; what is none comes last. */
static int compare_buffers(const void *a, const void *b) {
  const count_buffer *x = a, *y = b;
  uint64_t first = x->serial - 1, second = y->serial - 1;
  return first < second ? -1 : first > second;
}

static void add_buffers(const emu_count *c, launch_counts *out) {
  for (size_t n = 0; n < c->buffer_count; ++n) {
    count_buffer b = c->buffers[n];
    if (!b.loads.instructions && !b.stores.instructions) continue;
    if (b.loads.instructions) b.lines_read = bits_set(c->lines_read[n], b.size);
    if (b.stores.instructions) b.lines_written = bits_set(c->lines_written[n], b.size);
    out->lines_read += b.lines_read;
    out->lines_written += b.lines_written;
    count_traffic_add(&out->loads, &b.loads);
    count_traffic_add(&out->stores, &b.stores);
    out->buffers[out->buffer_count++] = b;
  }
  qsort(out->buffers, out->buffer_count, sizeof *out->buffers, compare_buffers);
}

static void add_matrix(launch_counts *out, const emu_instruction *i, uint64_t executed) {
  uint64_t products = executed * multiply_adds(i->row->name);
  int bits = operand_bits(i);
  size_t n = 0;
  while (n < out->matrix_count &&
         (strcmp(out->matrix[n].name, i->row->name) != 0 || out->matrix[n].bits != bits))
    ++n;
  count_matrix *m = &out->matrix[n];
  if (n == out->matrix_count) {
    *m = (count_matrix){.bits = bits};
    snprintf(m->name, sizeof m->name, "%s", i->row->name);
    ++out->matrix_count;
  }
  m->executed += executed;
  m->multiply_adds += products;
  out->matrix_operations += executed;
  out->multiply_adds += products;
}

static bool add_site_result(const emu_count *c, size_t index, count_class class, launch_counts *out) {
  const emu_instruction *i = &c->launch->module->code[index];
  const site_tally *s = &c->sites[c->site_of[index]];
  char *copy = strdup(i->text ? i->text : i->row->name);
  if (!copy) return false;
  out->sites[out->site_count++] = (count_site){.address = i->address,
                                               .text = copy,
                                               .class = class,
                                               .executed = c->executed[index],
                                               .writes = s->writes,
                                               .several = s->several,
                                               .buffer = s->buffer,
                                               .traffic = s->traffic,
                                               .lds_cycles = s->lds_cycles,
                                               .lds_least = s->lds_least};
  return true;
}

bool emu_count_result(emu_count *c, launch_counts *out_counts) {
  const emu_launch *l = c->launch;
  const emu_module *m = l->module;
  launch_counts r = {.lanes = l->lanes,
                     .longest_wave = c->longest,
                     .lds_bytes = c->lds_bytes,
                     .lds_cycles = c->lds_cycles,
                     .lds_least = c->lds_least};
  snprintf(r.kernel, sizeof r.kernel, "%s", l->kernel);
  r.workgroups = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  r.waves = r.workgroups * (uint64_t)l->waves;
  size_t executed = 0, matrix = 0;
  for (size_t n = 0; n < m->code_count; ++n) {
    if (!c->executed[n]) continue;
    ++executed;
    if (class_of(&m->code[n]) == COUNT_MATRIX) ++matrix;
  }
  r.buffers = calloc(c->buffer_count, sizeof *r.buffers);
  r.sites = calloc(executed + 1, sizeof *r.sites);
  r.matrix = calloc(matrix + 1, sizeof *r.matrix);
  bool fine = r.buffers && r.sites && r.matrix;
  if (fine) add_buffers(c, &r);
  for (size_t n = 0; fine && n < m->code_count; ++n) {
    if (!c->executed[n]) continue;
    count_class class = class_of(&m->code[n]);
    r.instructions[class] += c->executed[n];
    if (class == COUNT_MATRIX) add_matrix(&r, &m->code[n], c->executed[n]);
    if (c->site_of[n] != NO_SITE) fine = add_site_result(c, n, class, &r);
  }
  if (!fine) {
    launch_counts_finish(&r);
    return false;
  }
  *out_counts = r;
  return true;
}
