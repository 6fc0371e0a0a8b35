#include "inspect.h"
#include "../device/device.h"
#include "elf64.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What an instruction is ---- */

typedef enum code_class {
  CODE_OTHER,
  CODE_MATRIX,
  CODE_CONVERSION,
  CODE_LOAD,
  CODE_STORE,
  CODE_LDS,
  CODE_SCRATCH,
  CODE_WAIT,
  CODE_BRANCH
} code_class;

/* By the beginning of the mnemonic, the first that fits. */
static const struct {
  const char *prefix;
  code_class class;
} prefixes[] = {
    {"v_mfma", CODE_MATRIX},        {"v_smfma", CODE_MATRIX},
    {"v_wmma", CODE_MATRIX},        {"v_swmma", CODE_MATRIX},
    {"v_cvt", CODE_CONVERSION},     {"global_load", CODE_LOAD},
    {"flat_load", CODE_LOAD},       {"buffer_load", CODE_LOAD},
    {"global_store", CODE_STORE},   {"global_atomic", CODE_STORE},
    {"flat_store", CODE_STORE},     {"buffer_store", CODE_STORE},
    {"scratch_", CODE_SCRATCH},     {"ds_", CODE_LDS},
    {"s_waitcnt", CODE_WAIT},       {"s_wait_loadcnt", CODE_WAIT},
    {"s_wait_asynccnt", CODE_WAIT}, {"s_wait_tensorcnt", CODE_WAIT},
    {"tensor_load", CODE_LOAD},     {"tensor_store", CODE_STORE},
    {"cluster_load", CODE_LOAD},    {"s_cbranch", CODE_BRANCH},
    {"s_branch", CODE_BRANCH},
};

/* What holds loads back until they are waited for; copies past the registers have counters of their own on
 * gfx1250. */
typedef enum load_counter { COUNTER_VECTOR, COUNTER_ASYNC, COUNTER_TENSOR, LOAD_COUNTERS } load_counter;

/* By the beginning of the mnemonic; all others are vector loads or waits for them. */
static const struct {
  const char *prefix;
  load_counter counter;
} counters[] = {
    {"global_load_async", COUNTER_ASYNC},  {"global_store_async", COUNTER_ASYNC},
    {"cluster_load_async", COUNTER_ASYNC}, {"s_wait_asynccnt", COUNTER_ASYNC},
    {"tensor_", COUNTER_TENSOR},           {"s_wait_tensorcnt", COUNTER_TENSOR},
};

/* Bytes a lane, by what a load's mnemonic holds; the first that fits. */
static const struct {
  const char *word;
  int bytes;
} widths[] = {
    {"dwordx4", 16}, {"b128", 16},  {"dwordx3", 12}, {"b96", 12}, {"dwordx2", 8}, {"b64", 8},
    {"ushort", 2},   {"sshort", 2}, {"short", 2},    {"u16", 2},  {"i16", 2},     {"b16", 2},
    {"ubyte", 1},    {"sbyte", 1},  {"u8", 1},       {"i8", 1},   {"dword", 4},   {"b32", 4},
};

typedef struct instruction {
  uint64_t address;
  uint8_t class, bytes; /* bytes: of a load, a lane */
  bool fp8;             /* a conversion from fp8 or bf8 */
  bool stops;           /* the next instruction does not follow: s_branch, s_endpgm, s_setpc */
  uint8_t counter;      /* load_counter of a load, a store or a wait */
  int16_t wait; /* CODE_WAIT: loads of its counter that may still be on their way; -1: no wait for them */
  uint64_t to;  /* CODE_BRANCH */
} instruction;

typedef struct listing {
  instruction *items;
  size_t count, capacity;
  bool failed;
  bool stores_count; /* stores are waited for by the loads' counter: before gfx12 */
} listing;

static bool begins(const char *words, const char *prefix) {
  return strncmp(words, prefix, strlen(prefix)) == 0;
}

static int width_of(const char *mnemonic, size_t length) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (size_t at = 0; at + strlen(widths[i].word) <= length; at++)
      if (begins(mnemonic + at, widths[i].word)) return widths[i].bytes;
  return 4;
}

/* "s_waitcnt vmcnt(3) lgkmcnt(0)", "s_wait_loadcnt 0x3", "s_wait_asynccnt 0x3", "s_wait_loadcnt_dscnt 0x301":
 * of the last the high byte is for loads. */
static int wait_of(const char *words) {
  const char *vmcnt = strstr(words, "vmcnt(");
  if (vmcnt) return atoi(vmcnt + strlen("vmcnt("));
  if (!begins(words, "s_wait_")) return -1;
  const char *number = strchr(words, ' ');
  long value = number ? strtol(number, NULL, 0) : 0;
  return (int)(begins(words, "s_wait_loadcnt_dscnt") ? value >> 8 : value);
}

/* Sixteen bits of words, from behind the branch. */
static uint64_t branch_of(const char *words, uint64_t address) {
  const char *number = strchr(words, ' ');
  long distance = number ? strtol(number, NULL, 0) : 0;
  return address + 4 + (uint64_t)((int64_t)(int16_t)(uint16_t)distance * 4);
}

static void add_instruction(void *user, uint64_t address, size_t bytes, const char *words) {
  listing *l = user;
  (void)bytes;
  if (l->count == l->capacity) {
    size_t capacity = l->capacity ? 2 * l->capacity : 4096;
    instruction *grown = realloc(l->items, capacity * sizeof *grown);
    if (!grown) l->failed = true;
    if (!grown) return;
    l->items = grown;
    l->capacity = capacity;
  }
  instruction *i = &l->items[l->count++];
  size_t length = strcspn(words, " \t");
  *i = (instruction){.address = address, .wait = -1};
  for (size_t n = 0; n < sizeof prefixes / sizeof *prefixes; n++)
    if (begins(words, prefixes[n].prefix)) {
      i->class = (uint8_t)prefixes[n].class;
      break;
    }
  for (size_t n = 0; n < sizeof counters / sizeof *counters; n++)
    if (begins(words, counters[n].prefix)) i->counter = (uint8_t)counters[n].counter;
  /* Loads straight to LDS are loads too: "global_load_lds_dwordx4", "global_load_async_to_lds_b128". How much
   * a tensor copy moves stands in its descriptor. */
  if (i->class == CODE_LOAD && i->counter != COUNTER_TENSOR) i->bytes = (uint8_t)width_of(words, length);
  if (i->class == CODE_CONVERSION) {
    /* v_cvt_TO_FROM: the last format. */
    const char *fp8 = strstr(words, "_fp8"), *bf8 = strstr(words, "_bf8");
    const char *format = fp8 ? fp8 : bf8;
    i->fp8 = format && (size_t)(format - words) < length &&
             (format[4] == ' ' || begins(format + 4, "_e32") || begins(format + 4, "_e64") ||
              begins(format + 4, "_sdwa") || begins(format + 4, "_dpp"));
  }
  i->stops = begins(words, "s_branch") || begins(words, "s_endpgm") || begins(words, "s_setpc");
  if (i->class == CODE_WAIT) i->wait = (int16_t)wait_of(words);
  if (i->class == CODE_BRANCH) i->to = branch_of(words, address);
}

/* ---- Stretches ---- */

static void count_one(const instruction *i, inspect_mix *m) {
  m->instructions++;
  m->matrix += i->class == CODE_MATRIX;
  m->conversions += i->class == CODE_CONVERSION;
  m->fp8_conversions += i->fp8;
  m->lds += i->class == CODE_LDS;
  m->scratch += i->class == CODE_SCRATCH;
  m->waits += i->wait >= 0;
  if (i->class != CODE_LOAD) return;
  m->loads++;
  m->load_bytes += i->bytes;
  m->loads_16 += i->bytes == 16;
  m->load_bytes_16 += i->bytes == 16 ? 16 : 0;
}

/* `in`: which instructions belong to the stretch; NULL: all. */
static inspect_mix count_mix(const listing *l, const bool *in) {
  inspect_mix m = {0};
  for (size_t n = 0; n < l->count; n++)
    if (!in || in[n]) count_one(&l->items[n], &m);
  return m;
}

/* Goes round twice; the second time, loads of the first are on their way. */
static int count_draining(const listing *l, const bool *in) {
  int outstanding[LOAD_COUNTERS] = {0}, all = 0, draining = 0;
  for (int round = 0; round < 2; round++)
    for (size_t n = 0; n < l->count; n++) {
      const instruction *i = &l->items[n];
      if (!in[n]) continue;
      bool counted = i->class == CODE_LOAD ||
                     (i->class == CODE_STORE && (l->stores_count || i->counter != COUNTER_VECTOR));
      outstanding[i->counter] += counted;
      all += counted;
      int left = outstanding[i->counter];
      if (i->wait < 0 || left <= i->wait) continue;
      all -= left - i->wait;
      outstanding[i->counter] = i->wait;
      draining += round == 1 && all == 0;
    }
  return draining;
}

/* Index of the instruction at an address, or the count. */
static size_t index_of(const listing *l, uint64_t address) {
  size_t low = 0, high = l->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (l->items[middle].address < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The loop of a head: what comes after it in the code, is reached from it, and leads back to it. Both are
 * walked to a fixed point: code is laid out in order but for a few blocks, so few rounds do. */
static void find_body(const listing *l, size_t head, bool *reached, bool *returns) {
  memset(reached, 0, l->count * sizeof *reached);
  memset(returns, 0, l->count * sizeof *returns);
  reached[head] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = head; n < l->count; n++) {
      const instruction *i = &l->items[n];
      size_t to = i->class == CODE_BRANCH ? index_of(l, i->to) : l->count;
      if (reached[n] && to > head && to < l->count && !reached[to]) reached[to] = changed = true;
      if (reached[n] && !i->stops && n + 1 < l->count && !reached[n + 1]) reached[n + 1] = changed = true;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = l->count; n-- > head;) {
      const instruction *i = &l->items[n];
      size_t to = i->class == CODE_BRANCH ? index_of(l, i->to) : l->count;
      bool leads = to == head || (to > head && to < l->count && returns[to]) ||
                   (!i->stops && n + 1 < l->count && returns[n + 1]);
      if (leads && !returns[n]) returns[n] = changed = true;
    }
  }
  for (size_t n = 0; n < l->count; n++)
    returns[n] = returns[n] && reached[n];
}

static bool better_loop(const inspect_mix *a, const inspect_mix *than) {
  if (a->matrix != than->matrix) return a->matrix > than->matrix;
  if (a->matrix > 0 && a->load_bytes != than->load_bytes) return a->load_bytes > than->load_bytes;
  return a->matrix > 0 ? a->instructions < than->instructions : a->instructions > than->instructions;
}

/* False without memory. */
static bool find_loop(const listing *l, inspect_kernel *k) {
  bool *reached = calloc(l->count + 1, sizeof *reached), *body = calloc(l->count + 1, sizeof *body);
  bool *seen = calloc(l->count + 1, sizeof *seen), ready = reached && body && seen;
  for (size_t n = 0; ready && n < l->count; n++) {
    const instruction *back = &l->items[n];
    if (back->class != CODE_BRANCH || back->to > back->address) continue;
    size_t head = index_of(l, back->to);
    if (seen[head]) continue;
    seen[head] = true;
    find_body(l, head, reached, body);
    inspect_mix m = count_mix(l, body);
    if (m.instructions == 0 || (k->has_loop && !better_loop(&m, &k->loop))) continue;
    m.draining = count_draining(l, body);
    k->has_loop = true;
    k->loop = m;
    k->loop_start = l->items[head].address;
  }
  free(reached);
  free(body);
  free(seen);
  return ready;
}

double inspect_share_16(const inspect_mix *m) {
  return m->load_bytes > 0 ? (double)m->load_bytes_16 / m->load_bytes : 1;
}

/* ---- Kernels ---- */

static hd_status inspect_one(const elf64 *e, const target *t, inspect_kernel *k, diags *errors) {
  elf64_symbol symbol;
  uint64_t offset;
  listing l = {.stores_count = strncmp(t->name, "gfx9", 4) == 0};
  if (!elf64_symbol_find(e, k->resources.symbol, &symbol) || symbol.size == 0 ||
      !elf64_file_offset(e, symbol.address, symbol.size, &offset)) {
    diags_errorf(errors, "codeobject.symbol", NULL, "kernel \"%s\" has no code in the code object",
                 k->resources.symbol);
    return HD_INVALID;
  }
  hd_status status = device_disassemble(t->name, e->bytes + offset, (size_t)symbol.size, symbol.address,
                                        add_instruction, &l, errors);
  if (status == HD_OK && l.failed) status = HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    k->all = count_mix(&l, NULL);
    if (!find_loop(&l, k)) status = HD_OUT_OF_MEMORY;
  }
  free(l.items);
  return status;
}

static hd_status inspect_all(const elf64 *e, const codeobject *object, inspection *out, diags *errors) {
  const target *t = target_find(object->target);
  if (!t) {
    diags_errorf(errors, "codeobject.target", NULL, "ELF machine 0x%x is no target of heddle",
                 object->machine);
    return HD_DECLINED;
  }
  memcpy(out->target, object->target, sizeof out->target);
  for (int i = 0; i < object->kernel_count; i++) {
    inspect_kernel *k = &out->kernels[out->count++];
    const codeobject_kernel *r = &object->kernels[i];
    *k = (inspect_kernel){.resources = *r, .waves_per_simd = -1, .workgroups_per_unit = -1, .limit = ""};
    inspect_occupancy(t->name, (int)r->vgprs, (int)r->static_lds, (int)r->max_workgroup, &k->waves_per_simd,
                      &k->workgroups_per_unit, &k->limit);
    hd_status status = inspect_one(e, t, k, errors);
    if (status != HD_OK) return status;
  }
  return HD_OK;
}

hd_status inspect_code_object(const void *bytes, size_t size, inspection *out, diags *errors) {
  codeobject *object = calloc(1, sizeof *object);
  inspection *made = calloc(1, sizeof *made);
  elf64 e;
  hd_status status = object && made ? elf64_open(bytes, size, &e, errors) : HD_OUT_OF_MEMORY;
  if (status == HD_OK) status = codeobject_parse(bytes, size, object, errors);
  if (status == HD_OK) status = inspect_all(&e, object, made, errors);
  if (status == HD_OK) *out = *made;
  free(object);
  free(made);
  return status;
}
