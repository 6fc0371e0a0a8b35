/* From a launch of the device interface to one of the emulator: arguments, packet, limits, counts. */
#include "device_parts.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
  KERNARG_SLACK = 64,
  PACKET_BYTES = 64,
  HIDDEN_BYTES = 256 /* implicit arguments of code objects v5 and later */
};
static const uint64_t default_budget = UINT64_C(1000000000);

static void put(uint8_t *kernarg, size_t room, uint32_t offset, uint64_t value, uint32_t bytes) {
  if (bytes > 8) bytes = 8;
  if (offset <= room && room - offset >= bytes) memcpy(kernarg + offset, &value, bytes);
}

/* The implicit arguments that code objects v5 name in their metadata ("AMDHSA Code Object V5 Metadata");
 * others stay 0. */
static void put_hidden(const device_function *f, const device_launch *l, uint8_t *kernarg, size_t room) {
  uint64_t dimensions = l->grid[2] * l->block[2] > 1 ? 3 : l->grid[1] * l->block[1] > 1 ? 2 : 1;
  struct {
    const char *kind;
    uint64_t value;
  } values[] = {
      {"hidden_block_count_x", l->grid[0]},
      {"hidden_block_count_y", l->grid[1]},
      {"hidden_block_count_z", l->grid[2]},
      {"hidden_group_size_x", l->block[0]},
      {"hidden_group_size_y", l->block[1]},
      {"hidden_group_size_z", l->block[2]},
      {"hidden_grid_dims", dimensions},
      {"hidden_dynamic_lds_size", l->lds_bytes},
      {"hidden_private_base", EMU_PRIVATE_APERTURE >> 32},
      {"hidden_shared_base", EMU_SHARED_APERTURE >> 32},
  };
  for (int n = 0; n < f->kernel->argument_count; ++n) {
    const codeobject_argument *a = &f->kernel->arguments[n];
    for (size_t v = 0; v < sizeof values / sizeof *values; ++v)
      if (strcmp(a->value_kind, values[v].kind) == 0) put(kernarg, room, a->offset, values[v].value, a->size);
  }
}

/* Bytes that the caller must pack: the end of the last argument that is not hidden. */
static uint32_t explicit_bytes(const codeobject_kernel *k) {
  uint32_t end = 0;
  for (int n = 0; n < k->argument_count; ++n) {
    const codeobject_argument *a = &k->arguments[n];
    if (strncmp(a->value_kind, "hidden_", 7) != 0 && a->offset + a->size > end) end = a->offset + a->size;
  }
  return end;
}

/* HSA kernel dispatch packet: sizes at 4, 12, 24, 28; kernel object at 32, arguments at 40. */
static void put_packet(const emu_launch *launch, uint8_t *packet) {
  memset(packet, 0, PACKET_BYTES);
  for (uint32_t n = 0; n < 3; ++n) {
    put(packet, PACKET_BYTES, 4 + 2 * n, launch->block[n], 2);
    put(packet, PACKET_BYTES, 12 + 4 * n, (uint64_t)launch->grid[n] * launch->block[n], 4);
  }
  put(packet, PACKET_BYTES, 2, 3, 2);
  put(packet, PACKET_BYTES, 24, launch->descriptor.scratch_bytes, 4);
  put(packet, PACKET_BYTES, 28, launch->lds_bytes, 4);
  put(packet, PACKET_BYTES, 40, (uint64_t)(uintptr_t)launch->kernarg, 8);
}

hd_status emu_device_check_launch(emu_device *e, const device_function *f, const device_launch *l,
                                  diags *list) {
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
  uint32_t need = explicit_bytes(f->kernel),
           most = f->kernel->max_workgroup ? f->kernel->max_workgroup : MAX_BLOCK_THREADS;
  if (threads == 0 || threads > MAX_BLOCK_THREADS || threads > most) {
    diags_errorf(list, "emu.launch", NULL,
                 "kernel %s: a workgroup of %" PRIu64 " threads; between 1 and %u are allowed",
                 f->kernel->symbol, threads, most);
    return HD_INVALID;
  }
  if (l->arguments_size < need) {
    diags_errorf(list, "emu.launch", NULL, "kernel %s takes %u bytes of arguments, %zu were given",
                 f->kernel->symbol, need, l->arguments_size);
    return HD_INVALID;
  }
  if ((uint64_t)f->descriptor.lds_bytes + l->lds_bytes > (uint64_t)e->target->lds_bytes) {
    diags_errorf(list, "emu.lds", NULL, "kernel %s needs %" PRIu64 " bytes of LDS, a workgroup of %s has %d",
                 f->kernel->symbol, (uint64_t)f->descriptor.lds_bytes + l->lds_bytes, e->target->name,
                 e->target->lds_bytes);
    return HD_INVALID;
  }
  return HD_OK;
}

static uint64_t budget(void) {
  const char *setting = getenv("HEDDLE_EMU_BUDGET");
  uint64_t value = setting ? strtoull(setting, NULL, 10) : 0;
  return value ? value : default_budget;
}

static bool watching(void) {
  const char *setting = getenv("HEDDLE_EMU_WATCH");
  return !(setting && strcmp(setting, "0") == 0);
}

/* Runs it, and counts what it does if the device was asked to. A launch that fails has no counts. */
static hd_status run_counted(emu_device *e, emu_launch *l) {
  pthread_mutex_lock(&e->lock);
  bool counting = e->counting;
  pthread_mutex_unlock(&e->lock);
  if (!counting) return emu_run(l);
  launch_counts result;
  l->count = emu_count_create(l);
  hd_status status = l->count ? emu_run(l) : HD_OUT_OF_MEMORY;
  if (status == HD_OK && !emu_count_result(l->count, &result)) status = HD_OUT_OF_MEMORY;
  emu_count_destroy(l->count);
  if (status != HD_OK) return status;
  pthread_mutex_lock(&e->lock);
  bool kept = counts_add(&e->counted, &result);
  pthread_mutex_unlock(&e->lock);
  if (kept) return HD_OK;
  launch_counts_finish(&result);
  return HD_OUT_OF_MEMORY;
}

hd_status emu_device_execute(emu_device *e, device_function *f, const device_launch *l, diags *list) {
  size_t bytes = f->descriptor.kernarg_bytes;
  if (bytes < l->arguments_size) bytes = l->arguments_size;
  size_t room = (bytes + HIDDEN_BYTES + KERNARG_SLACK - 1) / KERNARG_SLACK * KERNARG_SLACK;
  uint8_t *kernarg = aligned_alloc(KERNARG_SLACK, room + PACKET_BYTES);
  if (!kernarg) return HD_OUT_OF_MEMORY;
  memset(kernarg, 0, room);
  if (l->arguments_size) memcpy(kernarg, l->arguments, l->arguments_size);
  put_hidden(f, l, kernarg, room);

  uint32_t threads = l->block[0] * l->block[1] * l->block[2];
  int lanes = f->kernel->wave ? (int)f->kernel->wave : e->target->wave;
  emu_launch launch = {
      .module = &f->owner->module,
      .kernel = f->kernel->symbol,
      .descriptor = f->descriptor,
      .memory = &e->memory,
      .lds_bytes = f->descriptor.lds_bytes + l->lds_bytes,
      .kernarg = kernarg,
      .packet = kernarg + room,
      .budget = budget(),
      .watch = watching(),
      .waves = (int)((threads + (uint32_t)lanes - 1) / (uint32_t)lanes),
      .lanes = lanes,
      .messages = list,
  };
  memcpy(launch.grid, l->grid, sizeof launch.grid);
  memcpy(launch.block, l->block, sizeof launch.block);
  uint64_t at = (uint64_t)(uintptr_t)kernarg;
  /* What the kernel declares, rounded to the 16 bytes that its scalar loads may take at a time. */
  launch.own[0] = (emu_range){at, (bytes + 15) / 16 * 16, EMU_RANGE_KERNARG, 0, NULL};
  launch.own[1] = (emu_range){at + room, PACKET_BYTES, EMU_RANGE_PACKET, 0, NULL};
  put_packet(&launch, launch.packet);
  hd_status status = HD_INTERNAL;
  if (pthread_mutex_init(&launch.fault_lock, NULL) == 0) {
    pthread_rwlock_rdlock(&e->memory.lock);
    status = run_counted(e, &launch);
    pthread_rwlock_unlock(&e->memory.lock);
    pthread_mutex_destroy(&launch.fault_lock);
  }
  free(kernarg);
  return status;
}
