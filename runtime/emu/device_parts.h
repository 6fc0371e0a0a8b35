/* The inside of the emulated device: device.c has its memory, modules, streams and graphs, device_launch.c
 * its launches. */
#ifndef HEDDLE_EMU_DEVICE_PARTS_H
#define HEDDLE_EMU_DEVICE_PARTS_H

#include "../device/device.h"
#include "execute.h"

enum { MAX_BLOCK_THREADS = 1024 };

typedef struct allocation {
  uint64_t start;
  void *mapping;
  size_t mapped;
} allocation;

typedef struct emu_device {
  device base;
  const emu_target *target;
  emu_memory memory;
  pthread_mutex_t lock; /* guards `allocations` */
  allocation *allocations;
  size_t allocation_count, allocation_capacity;
  device_graph *capturing; /* of the default stream */
  bool counting;           /* under `lock`, like `counted` */
  counts counted;
} emu_device;

struct device_module {
  emu_module module;
  device_function *functions;
};

struct device_function {
  device_function *next;
  device_module *owner;
  const codeobject_kernel *kernel;
  emu_descriptor descriptor;
};

/* Whether workgroup, arguments and LDS are what kernel and target allow. */
hd_status emu_device_check_launch(emu_device *e, const device_function *f, const device_launch *l,
                                  diags *list);
/* Runs a launch to its end, and counts what it does if the device was asked to. */
hd_status emu_device_execute(emu_device *e, device_function *f, const device_launch *l, diags *list);

#endif
