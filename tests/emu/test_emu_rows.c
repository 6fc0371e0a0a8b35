/* Every scalar, control, cross-lane and memory instruction against values that emu/rows.py worked out from
 * the ISA documents, decoded from its real encoding for every target that has it; and the rule that an
 * instruction without such a row fails the suite. A row names all that changes: registers, memory, the
 * program counter and the wave's state; whatever it does not name must stay as it was. */
#include "../../runtime/emu/access.h"
#include "emu_bench.h"
#include "emu_row_file.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>

enum {
  MAX_COMPLAINTS = 12,
  MEMORY_BYTES = 4096, /* global */
  LDS_BYTES = 8192,
  SCRATCH_BYTES = 256, /* a lane */
};

static char complaints[8192];
static size_t complaint_count;

static void complain(const char *target, const emu_instruction *i, const char *what, int lane, uint32_t got,
                     const char *want) {
  if (complaint_count++ >= MAX_COMPLAINTS) return;
  size_t used = strlen(complaints);
  snprintf(complaints + used, sizeof complaints - used, "\n%s: %s: %s [%d] is %08x, not %s", target, i->text,
           what, lane, got, want);
}

/* ---- What a wave can reach, beside its registers ---- */

typedef struct bench_world {
  bench b;
  emu_memory memory;
  uint8_t *global, *lds, *scratch;
  uint64_t program; /* address of the row's instruction, for values that name it */
} bench_world;

/* The same bytes as noise() in rows_memory.py. */
static void fill(uint8_t *bytes, uint32_t size, uint32_t space) {
  for (uint32_t k = 0; k < size; ++k)
    bytes[k] = (uint8_t)(k * 37 + k / 8 * 5 + 11 * space);
}

static void world_reset(bench_world *w, const emu_target *target) {
  bench *b = &w->b;
  bench_reset(b, target);
  fill(w->global, MEMORY_BYTES, 0);
  fill(w->lds, LDS_BYTES, 1);
  fill(w->scratch, SCRATCH_BYTES * EMU_LANES, 2);
  memset(&b->state, 0, sizeof b->state);
  b->state.scratch = w->scratch;
  b->state.scratch_bytes = SCRATCH_BYTES;
  emu_launch *launch = &b->launch;
  launch->memory = &w->memory;
  launch->faulted = false;
  atomic_store(&launch->stop, false);
  b->group = (emu_group){
      .launch = launch, .lds = w->lds, .lds_bytes = LDS_BYTES, .waves = &b->wave, .wave_count = 1, .live = 1};
  for (int n = 0; n < EMU_NAMED_BARRIERS; ++n)
    b->group.barrier[n].members = 1;
}

static bool world_init(bench_world *w, const emu_target *target, const uint8_t *code, size_t size) {
  memset(w, 0, sizeof *w);
  w->global = aligned_alloc(MEMORY_BYTES, MEMORY_BYTES);
  w->lds = aligned_alloc(64, LDS_BYTES);
  w->scratch = aligned_alloc(64, SCRATCH_BYTES * EMU_LANES);
  if (!w->global || !w->lds || !w->scratch || !emu_memory_init(&w->memory)) return false;
  return bench_init(&w->b, target, code, size) &&
         emu_memory_add(&w->memory, (uint64_t)(uintptr_t)w->global, MEMORY_BYTES, EMU_RANGE_DEVICE);
}

static void world_finish(bench_world *w) {
  bench_finish(&w->b);
  emu_memory_finish(&w->memory);
  free(w->global);
  free(w->lds);
  free(w->scratch);
}

/* ---- Names and values of a row ---- */

/* "a,b,c" in turn; one value stands for all. */
static const char *value_at(const char *list, int position, char out[32]) {
  const char *at = list;
  for (int n = 0; n < position && at[strcspn(at, ", ")] == ','; ++n)
    at += strcspn(at, ", ") + 1;
  snprintf(out, 32, "%.*s", (int)strcspn(at, ", "), at);
  return out;
}

static int list_length(const char *list) {
  int length = 1;
  for (; *list && *list != ' '; ++list)
    length += *list == ',';
  return length;
}

/* One value stands for all lanes; lanes after the end of a list keep what they hold. */
static int lanes_named(const emu_wave *w, const char *list) {
  int length = list_length(list);
  return length == 1 || length > w->lanes ? w->lanes : length;
}

/* Hex; "G+40" and "H+40": low and high word of the address of byte 0x40 of global memory; "P+4", "Q+4": of
 * 4 bytes after the row's instruction starts. */
static uint32_t number(const bench_world *w, const char *digits) {
  if (digits[0] && digits[1] == '+') {
    uint64_t base = *digits == 'G' || *digits == 'H' ? (uint64_t)(uintptr_t)w->global : w->program;
    base += strtoull(digits + 2, NULL, 16);
    return (uint32_t)(*digits == 'G' || *digits == 'P' ? base : base >> 32);
  }
  return (uint32_t)strtoul(digits, NULL, 16);
}

/* "l": bits 15:0 only. "nan": any quiet NaN. */
static bool matches(const bench_world *w, const char *want, uint32_t got) {
  if (strcmp(want, "skip") == 0) return true;
  bool low = *want == 'l';
  if (low) got &= 0xffff;
  want += low;
  if (strcmp(want, "nan") == 0) return low ? (got & 0x7fff) > 0x7c00 : (got & 0x7fffffff) > 0x7f800000;
  return number(w, want) == got;
}

static const struct {
  const char *name;
  int index;
} scalars[] = {{"vcc", EMU_S_VCC},   {"vcc_hi", EMU_S_VCC + 1},   {"m0", EMU_S_M0},
               {"exec", EMU_S_EXEC}, {"exec_hi", EMU_S_EXEC + 1}, {"scc", EMU_S_SCC}};

static int scalar_index(const char *name) {
  for (size_t n = 0; n < sizeof scalars / sizeof *scalars; ++n)
    if (strcmp(scalars[n].name, name) == 0) return scalars[n].index;
  return *name == 's' && isdigit((unsigned char)name[1]) ? atoi(name + 1) : -1;
}

/* State of the wave beside its registers, as numbers. */
enum {
  NEXT, /* instructions from the row's own */
  MODE,
  EXECUTED,
  YIELDED,
  ENDED,
  FAULTED,
  BLOCKED,
  MEMBERS,
  ARRIVED,
  PHASE,
  MEMBERS1, /* named barrier 1 */
  ARRIVED1,
  SIGNALLED, /* phase of barrier 0 in which the wave signalled */
  AT_BARRIER,
  JOINED, /* the named barrier that s_barrier_wait 1 means */
  OFFSET0,
  OFFSET1,
  OFFSET2,
  OFFSET3,
  STATE_COUNT
};
static const char *const state_names[STATE_COUNT] = {
    "next",    "mode",    "executed", "yielded",  "ended",    "faulted",   "blocked",
    "members", "arrived", "phase",    "members1", "arrived1", "signalled", "at_barrier",
    "joined",  "offset0", "offset1",  "offset2",  "offset3"};

static int state_index(const char *name) {
  for (int n = 0; n < STATE_COUNT; ++n)
    if (strcmp(state_names[n], name) == 0) return n;
  return -1;
}

static void read_state(const bench *b, const emu_instruction *i, uint32_t out[STATE_COUNT]) {
  const emu_wave *w = &b->wave;
  const emu_barrier *barrier = b->group.barrier;
  out[NEXT] = w->next - (uint32_t)(i - b->module.code);
  out[MODE] = w->mode;
  out[EXECUTED] = (uint32_t)w->executed;
  out[YIELDED] = w->yielded;
  out[ENDED] = w->ended;
  out[FAULTED] = w->faulted;
  out[BLOCKED] = b->state.blocked;
  out[MEMBERS] = barrier[0].members;
  out[ARRIVED] = barrier[0].arrived;
  out[PHASE] = barrier[0].phase;
  out[MEMBERS1] = barrier[1].members;
  out[ARRIVED1] = barrier[1].arrived;
  out[SIGNALLED] = b->state.barrier_phase[0];
  out[AT_BARRIER] = b->state.at_barrier;
  out[JOINED] = b->state.joined;
  for (int n = 0; n < 4; ++n)
    out[OFFSET0 + n] = w->row_offset[n];
}

static void write_state(bench *b, int name, uint32_t value) {
  emu_barrier *barrier = b->group.barrier;
  switch (name) {
  case MODE:
    b->wave.mode = value;
    break;
  case EXECUTED:
    b->wave.executed = value;
    break;
  case MEMBERS:
    barrier[0].members = value;
    b->group.live = (int)value;
    break;
  case ARRIVED:
    barrier[0].arrived = value;
    break;
  case PHASE:
    barrier[0].phase = value;
    break;
  case MEMBERS1:
    barrier[1].members = value;
    break;
  case ARRIVED1:
    barrier[1].arrived = value;
    break;
  case SIGNALLED:
    b->state.barrier_phase[0] = value;
    break;
  case AT_BARRIER:
    b->state.at_barrier = value != 0;
    break;
  case JOINED:
    b->state.joined = value;
    break;
  default:
    if (name >= OFFSET0 && name <= OFFSET3) b->wave.row_offset[name - OFFSET0] = value;
    break;
  }
}

/* "g40": a word of global memory at byte 0x40; "l…": of LDS; "p…": of scratch, lane after lane. */
static uint8_t *memory_word(const bench_world *w, const char *name) {
  uint8_t *space = *name == 'g' ? w->global : *name == 'l' ? w->lds : *name == 'p' ? w->scratch : NULL;
  if (!space || !isxdigit((unsigned char)name[1])) return NULL;
  return space + strtoul(name + 1, NULL, 16);
}

/* Next "name=" of a list; NULL at its end. */
static const char *next_name(const char **at, char name[16]) {
  while (**at == ' ')
    ++*at;
  if (!**at) return NULL;
  const char *equals = strchr(*at, '=');
  cr_assert_not_null(equals, "no value: %s", *at);
  snprintf(name, 16, "%.*s", (int)(equals - *at), *at);
  const char *list = equals + 1;
  *at = list + strcspn(list, " ");
  return list;
}

static void set_inputs(bench_world *world, const char *inputs, int turn) {
  emu_wave *w = &world->b.wave;
  w->s[EMU_S_EXEC] = 0xffff;
  char name[16], value[32];
  for (const char *at = inputs, *list; (list = next_name(&at, name));) {
    uint8_t *word = memory_word(world, name);
    int state = state_index(name), scalar = scalar_index(name);
    if (*name == 'v' && isdigit((unsigned char)name[1])) {
      for (int lane = 0; lane < lanes_named(w, list); ++lane)
        w->v[atoi(name + 1)][lane] = number(world, value_at(list, lane, value));
      continue;
    }
    uint32_t bits = number(world, value_at(list, turn, value));
    if (scalar >= 0) {
      w->s[scalar] = bits;
    } else if (state >= 0) {
      write_state(&world->b, state, bits);
    } else {
      cr_assert_not_null(word, "no %s", name);
      memcpy(word, &bits, sizeof bits);
    }
  }
}

static int turns_of(const char *inputs) {
  char name[16];
  int turns = 1;
  for (const char *at = inputs, *list; (list = next_name(&at, name));)
    if (*name != 'v' || !isdigit((unsigned char)name[1]))
      turns = list_length(list) > turns ? list_length(list) : turns;
  return turns;
}

/* ---- Before, and what of it may differ after ---- */

static struct {
  uint32_t v[BENCH_ROWS][EMU_LANES], s[EMU_S_COUNT], state[STATE_COUNT];
  uint8_t global[MEMORY_BYTES], lds[LDS_BYTES], scratch[SCRATCH_BYTES * EMU_LANES];
} before;

static void remember(const bench_world *world, const emu_instruction *i) {
  memcpy(before.v, world->b.v, sizeof before.v);
  memcpy(before.s, world->b.wave.s, sizeof before.s);
  read_state(&world->b, i, before.state);
  memcpy(before.global, world->global, sizeof before.global);
  memcpy(before.lds, world->lds, sizeof before.lds);
  memcpy(before.scratch, world->scratch, sizeof before.scratch);
}

/* A named result is right; then it counts as unchanged. */
static void check_named(bench_world *world, const char *target, const emu_instruction *i, const char *name,
                        const char *list, int turn, uint32_t state[STATE_COUNT]) {
  emu_wave *w = &world->b.wave;
  char value[32];
  if (*name == 'v' && isdigit((unsigned char)name[1])) {
    int row = atoi(name + 1);
    for (int lane = 0; lane < lanes_named(w, list); ++lane) {
      value_at(list, lane, value);
      if (!matches(world, value, w->v[row][lane])) complain(target, i, name, lane, w->v[row][lane], value);
      before.v[row][lane] = w->v[row][lane];
    }
    return;
  }
  value_at(list, turn, value);
  uint8_t *word = memory_word(world, name);
  int index = state_index(name), scalar = scalar_index(name);
  uint32_t got = 0;
  if (scalar >= 0) {
    got = before.s[scalar] = w->s[scalar];
  } else if (index >= 0) {
    got = before.state[index] = state[index];
  } else {
    cr_assert_not_null(word, "no %s", name);
    memcpy(&got, word, sizeof got);
    uint8_t *was =
        word >= world->global && word < world->global + MEMORY_BYTES ? before.global + (word - world->global)
        : word >= world->lds && word < world->lds + LDS_BYTES        ? before.lds + (word - world->lds)
                                                              : before.scratch + (word - world->scratch);
    memcpy(was, word, sizeof got);
  }
  if (!matches(world, value, got)) complain(target, i, name, turn, got, value);
}

static void check_bytes(const char *target, const emu_instruction *i, const char *space, const uint8_t *was,
                        const uint8_t *is, uint32_t size) {
  for (uint32_t k = 0; k < size; ++k)
    if (was[k] != is[k]) complain(target, i, space, (int)k, is[k], "what it was");
}

static void check_results(bench_world *world, const char *target, const emu_instruction *i,
                          const char *results, int turn) {
  uint32_t state[STATE_COUNT];
  read_state(&world->b, i, state);
  char name[16];
  for (const char *at = results, *list; (list = next_name(&at, name));)
    check_named(world, target, i, name, list, turn, state);
  const emu_wave *w = &world->b.wave;
  for (int row = 0; row < BENCH_ROWS; ++row)
    for (int lane = 0; lane < w->lanes; ++lane)
      if (w->v[row][lane] != before.v[row][lane]) {
        snprintf(name, sizeof name, "v%d", row);
        complain(target, i, name, lane, w->v[row][lane], "what it was");
      }
  for (int n = 0; n < EMU_S_COUNT; ++n)
    if (w->s[n] != before.s[n]) {
      snprintf(name, sizeof name, "s%d", n);
      complain(target, i, name, turn, w->s[n], "what it was");
    }
  for (int n = 0; n < STATE_COUNT; ++n)
    if (state[n] != before.state[n]) complain(target, i, state_names[n], turn, state[n], "what it was");
  check_bytes(target, i, "global memory", before.global, world->global, MEMORY_BYTES);
  check_bytes(target, i, "LDS", before.lds, world->lds, LDS_BYTES);
  check_bytes(target, i, "scratch", before.scratch, world->scratch, SCRATCH_BYTES * EMU_LANES);
}

/* ---- Running ---- */

/* The mnemonic as decoded, without the suffix of its encoding. */
static bool is_named(const emu_instruction *i, const char *name) {
  static const char *const suffixes[] = {"", "_e32", "_e64", "_dpp", "_e64_dpp", "_dpp8", "_sdwa"};
  size_t length = strlen(name), whole = strcspn(i->text, " \t");
  for (size_t n = 0; n < sizeof suffixes / sizeof *suffixes; ++n)
    if (whole == length + strlen(suffixes[n]) && strncmp(i->text, name, length) == 0 &&
        strncmp(i->text + length, suffixes[n], strlen(suffixes[n])) == 0)
      return true;
  return false;
}

static size_t run_target(const char *target_name) {
  static uint8_t code[MAX_ROWS * 16];
  static size_t offset_of[MAX_ROWS];
  size_t size = 0, run = 0;
  char key[16];
  snprintf(key, sizeof key, "%s=", target_name);
  for (size_t n = 0; n < row_count; ++n) {
    const char *hex = strstr(rows[n].codes, key);
    offset_of[n] = SIZE_MAX;
    if (!hex) continue;
    offset_of[n] = size;
    for (hex += strlen(key); isxdigit((unsigned char)hex[0]); hex += 2) {
      char byte[3] = {hex[0], hex[1], 0};
      code[size++] = (uint8_t)strtoul(byte, NULL, 16);
    }
  }
  const emu_target *target = emu_find_target(target_name);
  cr_assert_not_null(target);
  bench_world w;
  cr_assert(world_init(&w, target, code, size), "cannot decode for %s", target_name);
  for (size_t n = 0; n < row_count; ++n) {
    if (offset_of[n] == SIZE_MAX) continue;
    const emu_instruction *i = bench_at(&w.b, offset_of[n]);
    cr_assert_not_null(i, "%s: no instruction at row %s", target_name, rows[n].name);
    if (i->problem || !is_named(i, rows[n].name)) {
      complain(target_name, i, i->problem ? i->problem : "text", 0, 0, rows[n].name);
      continue;
    }
    w.program = (uint64_t)(uintptr_t)w.b.module.image + i->address;
    int turns = turns_of(rows[n].inputs);
    for (int turn = 0; turn < turns; ++turn) {
      world_reset(&w, target);
      set_inputs(&w, rows[n].inputs, turn);
      w.b.wave.next = (uint32_t)(i - w.b.module.code) + 1;
      remember(&w, i);
      i->handler(&w.b.wave, i);
      check_results(&w, target_name, i, rows[n].results, turn);
    }
    ++run;
  }
  world_finish(&w);
  return run;
}

static void expect_target(const char *name, size_t at_least) {
  load_rows("rows.txt");
  size_t run = run_target(name);
  cr_expect_eq(complaint_count, 0u, "%zu wrong:%s", complaint_count, complaints);
  cr_expect_geq(run, at_least, "only %zu rows ran", run);
  free(file);
}

Test(emu_rows, every_row_holds_on_gfx942) {
  expect_target("gfx942", 900);
}
Test(emu_rows, every_row_holds_on_gfx950) {
  expect_target("gfx950", 900);
}
Test(emu_rows, every_row_holds_on_gfx1201) {
  expect_target("gfx1201", 1000);
}
Test(emu_rows, every_row_holds_on_gfx1250) {
  expect_target("gfx1250", 1000);
}

/* ---- Coverage ---- */

/* Has a row with an encoding; or, when `absent` allows it, one that says why no target has it. */
static bool has_row(const char *prefix, const char *name, bool absent) {
  size_t length = strlen(prefix);
  for (size_t n = 0; n < row_count; ++n)
    if (strncmp(rows[n].name, prefix, length) == 0 && strcmp(rows[n].name + length, name) == 0 &&
        (absent || strcmp(rows[n].codes, "none") != 0))
      return true;
  return false;
}

Test(emu_rows, an_instruction_without_a_row_fails) {
  static const emu_row *const tables[] = {emu_scalar_rows, emu_control_rows, emu_lane_rows, emu_tensor_rows};
  load_rows("rows.txt");
  size_t tested = 0;
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (const emu_row *row = tables[t]; row->name; ++row) {
      cr_expect(has_row("", row->name, true), "%s has no row in tests/emu/rows.txt", row->name);
      ++tested;
    }
  cr_expect_gt(tested, 350u);
  free(file);
}

/* Memory instructions are an address space times what moves: each product has a row. */
Test(emu_rows, an_access_without_a_row_in_every_space_fails) {
  static const char *const spaces[] = {"global_", "flat_", "buffer_", "scratch_"};
  load_rows("rows.txt");
  size_t count, lds_count;
  const emu_access *accesses = emu_accesses(false, &count), *lds = emu_accesses(true, &lds_count);
  for (size_t n = 0; n < lds_count; ++n)
    cr_expect(has_row("ds_", lds[n].name, true), "ds_%s has no row in tests/emu/rows.txt", lds[n].name);
  for (size_t n = 0; n < count; ++n) {
    bool some = false;
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; ++s) {
      cr_expect(has_row(spaces[s], accesses[n].name, true), "%s%s has no row in tests/emu/rows.txt",
                spaces[s], accesses[n].name);
      some = some || has_row(spaces[s], accesses[n].name, false);
    }
    cr_expect(some, "%s runs in no space", accesses[n].name);
  }
  cr_expect_gt(count + lds_count, 250u);
  free(file);
}
