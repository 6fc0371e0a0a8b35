/* The device interface over the emulator: memory, modules, launches, and streams, events and graphs that have
 * nothing to wait for, because every call is complete when it returns. */
#include "../../generator/target.h"
#include "../../generator/text.h"
#include "device_parts.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { POISON_LIMIT = 64 << 20 }; /* bytes; larger allocations stay lazily mapped and read as zero */

struct device_stream {
  device_graph *capturing;
};

struct device_event {
  struct timespec time;
  bool recorded;
};

/* ---- Graphs: recorded calls, replayed in order ---- */

typedef enum node_kind { NODE_LAUNCH, NODE_COPY_IN, NODE_COPY_OUT, NODE_FILL } node_kind;

typedef struct graph_node {
  node_kind kind;
  device_function *function;
  device_launch launch;
  void *arguments; /* owned */
  device_pointer pointer;
  void *host_to;
  const void *host_from;
  size_t bytes;
  unsigned char value;
} graph_node;

struct device_graph {
  graph_node *nodes;
  size_t count, capacity;
};

static emu_device *self(device *d) {
  return (emu_device *)d;
}

static device_graph **capture_slot(device *d, device_stream *s) {
  return s ? &s->capturing : &self(d)->capturing;
}

static hd_status graph_add(device_graph *g, const graph_node *node, diags *list) {
  if (g->count == g->capacity) {
    size_t capacity = g->capacity ? 2 * g->capacity : 16;
    graph_node *grown = realloc(g->nodes, capacity * sizeof *grown);
    if (!grown) {
      diags_errorf(list, "emu.memory", NULL, "no memory for a graph of %zu nodes", capacity);
      return HD_OUT_OF_MEMORY;
    }
    g->nodes = grown;
    g->capacity = capacity;
  }
  g->nodes[g->count++] = *node;
  return HD_OK;
}

static void graph_destroy(device *d, device_graph *g) {
  (void)d;
  if (!g) return;
  for (size_t n = 0; n < g->count; ++n)
    free(g->nodes[n].arguments);
  free(g->nodes);
  free(g);
}

/* ---- Memory ---- */

static hd_status release(device *d, device_pointer pointer, diags *list) {
  if (!pointer) return HD_OK;
  emu_device *e = self(d);
  pthread_mutex_lock(&e->lock);
  size_t n = 0;
  while (n < e->allocation_count && e->allocations[n].start != pointer)
    ++n;
  bool found = n < e->allocation_count;
  allocation a = {0, NULL, 0};
  if (found) {
    a = e->allocations[n];
    e->allocations[n] = e->allocations[--e->allocation_count];
  }
  pthread_mutex_unlock(&e->lock);
  if (!found) {
    diags_errorf(list, "emu.release", NULL, "0x%" PRIx64 " is not the start of a live allocation", pointer);
    return HD_INVALID;
  }
  emu_memory_remove(&e->memory, pointer);
  munmap(a.mapping, a.mapped);
  return HD_OK;
}

static hd_status allocate(device *d, size_t bytes, device_pointer *out_pointer, diags *list) {
  emu_device *e = self(d);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = bytes ? bytes : 1;
  pthread_rwlock_rdlock(&e->memory.lock);
  uint64_t used = e->memory.allocated;
  pthread_rwlock_unlock(&e->memory.lock);
  if (room > (size_t)e->target->memory_bytes - used) {
    diags_errorf(list, "emu.memory", NULL,
                 "allocating %zu bytes: the %s has %" PRId64 ", of which %" PRIu64 " are in use", bytes,
                 e->target->product, e->target->memory_bytes, used);
    return HD_OUT_OF_MEMORY;
  }
  /* One unmapped page on each side: a stray host access faults too. */
  size_t mapped = (room + page - 1) / page * page + 2 * page;
  uint8_t *mapping = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping + page, mapped - 2 * page, PROT_READ | PROT_WRITE) != 0) {
    if (mapping != MAP_FAILED) munmap(mapping, mapped);
    diags_errorf(list, "emu.memory", NULL, "allocating %zu bytes: the host has no room", bytes);
    return HD_OUT_OF_MEMORY;
  }
  uint64_t start = (uint64_t)(uintptr_t)(mapping + page);
  if (room <= POISON_LIMIT)
    memset(mapping + page, 0xff, room); /* fresh device memory holds anything: NaNs find readers */

  pthread_mutex_lock(&e->lock);
  bool fine = true;
  if (e->allocation_count == e->allocation_capacity) {
    size_t capacity = e->allocation_capacity ? 2 * e->allocation_capacity : 64;
    allocation *grown = realloc(e->allocations, capacity * sizeof *grown);
    if (grown) {
      e->allocations = grown;
      e->allocation_capacity = capacity;
    } else {
      fine = false;
    }
  }
  if (fine) e->allocations[e->allocation_count++] = (allocation){start, mapping, mapped};
  pthread_mutex_unlock(&e->lock);
  if (fine && !emu_memory_add(&e->memory, start, bytes, EMU_RANGE_DEVICE)) {
    diags ignored;
    diags_init(&ignored);
    release(d, start, &ignored);
    diags_finish(&ignored);
    return HD_OUT_OF_MEMORY;
  }
  if (!fine) {
    munmap(mapping, mapped);
    return HD_OUT_OF_MEMORY;
  }
  *out_pointer = start;
  return HD_OK;
}

static hd_status check_span(emu_device *e, const char *what, device_pointer pointer, size_t bytes,
                            diags *list) {
  char where[256];
  pthread_rwlock_rdlock(&e->memory.lock);
  const emu_range *r = emu_memory_find(&e->memory, pointer);
  bool fine = bytes == 0 || (r && r->kind == EMU_RANGE_DEVICE && pointer - r->start < r->size &&
                             r->size - (pointer - r->start) >= bytes);
  if (!fine) emu_memory_describe(&e->memory, pointer, where, sizeof where);
  pthread_rwlock_unlock(&e->memory.lock);
  if (fine) return HD_OK;
  diags_errorf(list, "emu.bounds", NULL, "%s of %zu bytes at 0x%" PRIx64 " is out of bounds: the start is %s",
               what, bytes, pointer, where);
  return HD_INVALID;
}

/* The host wrote there; check_span has passed. */
static void wrote(emu_device *e, device_pointer to, size_t bytes) {
  pthread_rwlock_rdlock(&e->memory.lock);
  const emu_range *r = emu_memory_find(&e->memory, to);
  if (r && bytes) emu_range_wrote(r, to, bytes);
  pthread_rwlock_unlock(&e->memory.lock);
}

static hd_status copy_in(device *d, device_stream *s, device_pointer to, const void *from, size_t bytes,
                         diags *list) {
  hd_status status = check_span(self(d), "copy to the device", to, bytes, list);
  if (status != HD_OK) return status;
  device_graph *g = *capture_slot(d, s);
  if (g)
    return graph_add(g, &(graph_node){.kind = NODE_COPY_IN, .pointer = to, .host_from = from, .bytes = bytes},
                     list);
  if (bytes) memcpy((void *)(uintptr_t)to, from, bytes);
  wrote(self(d), to, bytes);
  return HD_OK;
}

static hd_status copy_out(device *d, device_stream *s, void *to, device_pointer from, size_t bytes,
                          diags *list) {
  hd_status status = check_span(self(d), "copy from the device", from, bytes, list);
  if (status != HD_OK) return status;
  device_graph *g = *capture_slot(d, s);
  if (g)
    return graph_add(g, &(graph_node){.kind = NODE_COPY_OUT, .pointer = from, .host_to = to, .bytes = bytes},
                     list);
  if (bytes) memcpy(to, (const void *)(uintptr_t)from, bytes);
  return HD_OK;
}

static hd_status fill(device *d, device_stream *s, device_pointer to, unsigned char value, size_t bytes,
                      diags *list) {
  hd_status status = check_span(self(d), "fill", to, bytes, list);
  if (status != HD_OK) return status;
  device_graph *g = *capture_slot(d, s);
  if (g)
    return graph_add(g, &(graph_node){.kind = NODE_FILL, .pointer = to, .value = value, .bytes = bytes},
                     list);
  if (bytes) memset((void *)(uintptr_t)to, value, bytes);
  wrote(self(d), to, bytes);
  return HD_OK;
}

/* ---- Modules ---- */

static hd_status load(device *d, const void *code_object, size_t bytes, device_module **out_module,
                      diags *list) {
  emu_device *e = self(d);
  device_module *m = calloc(1, sizeof *m);
  if (!m) return HD_OUT_OF_MEMORY;
  hd_status status = emu_module_load(e->target, code_object, bytes, &m->module, list);
  if (status != HD_OK) {
    free(m);
    return status;
  }
  if (!emu_memory_add(&e->memory, (uint64_t)(uintptr_t)m->module.image, m->module.image_size,
                      EMU_RANGE_CODE)) {
    emu_module_finish(&m->module);
    free(m);
    return HD_OUT_OF_MEMORY;
  }
  *out_module = m;
  return HD_OK;
}

static void unload(device *d, device_module *m) {
  if (!m) return;
  emu_memory_remove(&self(d)->memory, (uint64_t)(uintptr_t)m->module.image);
  while (m->functions) {
    device_function *f = m->functions;
    m->functions = f->next;
    free(f);
  }
  emu_module_finish(&m->module);
  free(m);
}

static hd_status function(device *d, device_module *m, const char *symbol, size_t dynamic_lds,
                          device_function **out_function, diags *list) {
  const codeobject_kernel *kernel = emu_module_kernel(&m->module, symbol);
  if (!kernel) {
    diags_errorf(list, "emu.function", NULL, "the code object has no kernel %s", symbol);
    return HD_INVALID;
  }
  emu_descriptor descriptor;
  hd_status status = emu_module_descriptor(&m->module, kernel, &descriptor, list);
  if (status != HD_OK) return status;
  uint64_t lds = descriptor.lds_bytes + (uint64_t)dynamic_lds;
  if (lds > (uint64_t)self(d)->target->lds_bytes) {
    diags_errorf(list, "emu.lds", NULL, "kernel %s needs %" PRIu64 " bytes of LDS, a workgroup of %s has %d",
                 symbol, lds, self(d)->target->name, self(d)->target->lds_bytes);
    return HD_INVALID;
  }
  device_function *f = calloc(1, sizeof *f);
  if (!f) return HD_OUT_OF_MEMORY;
  f->owner = m;
  f->kernel = kernel;
  f->descriptor = descriptor;
  pthread_mutex_lock(&self(d)->lock);
  f->next = m->functions;
  m->functions = f;
  pthread_mutex_unlock(&self(d)->lock);
  *out_function = f;
  return HD_OK;
}

/* ---- Launch ---- */

static hd_status launch(device *d, device_stream *s, device_function *f, const device_launch *l,
                        diags *list) {
  hd_status status = emu_device_check_launch(self(d), f, l, list);
  if (status != HD_OK) return status;
  device_graph *g = *capture_slot(d, s);
  if (!g) return emu_device_execute(self(d), f, l, list);
  graph_node node = {.kind = NODE_LAUNCH, .function = f, .launch = *l};
  if (l->arguments_size) {
    node.arguments = malloc(l->arguments_size);
    if (!node.arguments) return HD_OUT_OF_MEMORY;
    memcpy(node.arguments, l->arguments, l->arguments_size);
  }
  node.launch.arguments = node.arguments;
  status = graph_add(g, &node, list);
  if (status != HD_OK) free(node.arguments);
  return status;
}

/* ---- Streams, events, graphs ---- */

static hd_status stream_create(device *d, device_stream **out_stream, diags *list) {
  (void)d;
  (void)list;
  device_stream *s = calloc(1, sizeof *s);
  if (!s) return HD_OUT_OF_MEMORY;
  *out_stream = s;
  return HD_OK;
}

static void stream_destroy(device *d, device_stream *s) {
  if (!s) return;
  graph_destroy(d, s->capturing);
  free(s);
}

static hd_status synchronize(device *d, device_stream *s, diags *list) {
  (void)list;
  (void)d;
  (void)s;
  return HD_OK;
}

static hd_status event_create(device *d, device_event **out_event, diags *list) {
  (void)d;
  (void)list;
  device_event *e = calloc(1, sizeof *e);
  if (!e) return HD_OUT_OF_MEMORY;
  *out_event = e;
  return HD_OK;
}

static void event_destroy(device *d, device_event *e) {
  (void)d;
  free(e);
}

static hd_status event_record(device *d, device_event *e, device_stream *s, diags *list) {
  (void)d;
  (void)s;
  (void)list;
  clock_gettime(CLOCK_MONOTONIC, &e->time);
  e->recorded = true;
  return HD_OK;
}

static hd_status event_elapsed(device *d, device_event *start, device_event *stop, double *out_ms,
                               diags *list) {
  (void)d;
  if (!start->recorded || !stop->recorded) {
    diags_errorf(list, "emu.event", NULL, "an event that was never recorded has no time");
    return HD_INVALID;
  }
  *out_ms = (double)(stop->time.tv_sec - start->time.tv_sec) * 1e3 +
            (double)(stop->time.tv_nsec - start->time.tv_nsec) * 1e-6;
  return HD_OK;
}

static hd_status capture_begin(device *d, device_stream *s, diags *list) {
  device_graph **slot = capture_slot(d, s);
  if (*slot) {
    diags_errorf(list, "emu.capture", NULL, "the stream is already capturing");
    return HD_INVALID;
  }
  *slot = calloc(1, sizeof **slot);
  return *slot ? HD_OK : HD_OUT_OF_MEMORY;
}

static hd_status capture_end(device *d, device_stream *s, device_graph **out_graph, diags *list) {
  device_graph **slot = capture_slot(d, s);
  if (!*slot) {
    diags_errorf(list, "emu.capture", NULL, "the stream is not capturing");
    return HD_INVALID;
  }
  *out_graph = *slot;
  *slot = NULL;
  return HD_OK;
}

static hd_status capturing(device *d, device_stream *s, bool *out_capturing, diags *list) {
  (void)list;
  *out_capturing = *capture_slot(d, s) != NULL;
  return HD_OK;
}

static hd_status graph_launch(device *d, device_graph *g, device_stream *s, diags *list) {
  hd_status status = HD_OK;
  for (size_t n = 0; n < g->count && status == HD_OK; ++n) {
    const graph_node *node = &g->nodes[n];
    switch (node->kind) {
    case NODE_LAUNCH:
      status = launch(d, s, node->function, &node->launch, list);
      break;
    case NODE_COPY_IN:
      status = copy_in(d, s, node->pointer, node->host_from, node->bytes, list);
      break;
    case NODE_COPY_OUT:
      status = copy_out(d, s, node->host_to, node->pointer, node->bytes, list);
      break;
    case NODE_FILL:
      status = fill(d, s, node->pointer, node->value, node->bytes, list);
      break;
    }
  }
  return status;
}

/* ---- Counting ---- */

static hd_status count_begin(device *d, diags *list) {
  (void)list;
  pthread_mutex_lock(&self(d)->lock);
  counts_finish(&self(d)->counted);
  self(d)->counting = true;
  pthread_mutex_unlock(&self(d)->lock);
  return HD_OK;
}

static hd_status count_end(device *d, counts *out_counts, diags *list) {
  (void)list;
  pthread_mutex_lock(&self(d)->lock);
  *out_counts = self(d)->counted;
  self(d)->counted = (counts){0};
  self(d)->counting = false;
  pthread_mutex_unlock(&self(d)->lock);
  return HD_OK;
}

/* ---- The device ---- */

static void facts(device *d, device_facts *out) {
  const emu_target *t = self(d)->target;
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%s emulated (%s)", t->name, t->product);
  snprintf(out->target, sizeof out->target, "%s", t->name);
  out->compute_units = t->compute_units;
  out->wave = t->wave;
  out->lds_bytes_per_workgroup = t->lds_bytes;
  out->memory_bytes = t->memory_bytes;
  out->l2_bytes = t->l2_bytes;
  out->emulated = true;
}

static void close_device(device *d) {
  emu_device *e = self(d);
  for (size_t n = 0; n < e->allocation_count; ++n)
    munmap(e->allocations[n].mapping, e->allocations[n].mapped);
  free(e->allocations);
  graph_destroy(d, e->capturing);
  counts_finish(&e->counted);
  emu_memory_finish(&e->memory);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

static const device_vtable vtable = {
    .close = close_device,
    .facts = facts,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .load = load,
    .unload = unload,
    .function = function,
    .launch = launch,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .synchronize = synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capturing = capturing,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .count_begin = count_begin,
    .count_end = count_end,
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
hd_status
heddle_emu_open(const char *rest, device **out_device, diags *list);

/* A setting that is read later as a count: said now where it is none, not taken for the default. */
static bool is_count(const char *variable, diags *list) {
  const char *setting = getenv(variable);
  if (!setting ||
      (*setting && strspn(setting, "0123456789") == strlen(setting) && strtoull(setting, NULL, 10) > 0))
    return true;
  diags_errorf(list, "emu.environment", NULL, "%s is \"%.40s\": allowed is a number above 0", variable,
               setting);
  return false;
}

static hd_status decline_target(const char *name, diags *list) {
  text known;
  text_init(&known);
  for (size_t i = 0; i < target_count(); i++)
    if (emu_find_target(target_at(i)->name))
      text_addf(&known, "%s%s", known.length > 0 ? ", " : "", target_at(i)->name);
  diags_errorf(list, "device.emu", NULL, "no emulated target \"%s\"; there are %s", name,
               text_string(&known));
  text_finish(&known);
  return HD_UNAVAILABLE;
}

hd_status heddle_emu_open(const char *rest, device **out_device, diags *list) {
  const emu_target *found = emu_find_target(rest && *rest ? rest : "gfx950");
  if (!found) return decline_target(rest, list);
  if (!is_count("HEDDLE_EMU_THREADS", list) || !is_count("HEDDLE_EMU_BUDGET", list)) return HD_UNAVAILABLE;
  emu_device *e = calloc(1, sizeof *e);
  if (!e) return HD_OUT_OF_MEMORY;
  e->base.vtable = &vtable;
  e->target = found;
  bool memory = emu_memory_init(&e->memory), lock = memory && pthread_mutex_init(&e->lock, NULL) == 0;
  if (!lock) {
    if (memory) emu_memory_finish(&e->memory);
    free(e);
    return HD_OUT_OF_MEMORY;
  }
  *out_device = &e->base;
  return HD_OK;
}
