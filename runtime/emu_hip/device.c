/* The devices that HEDDLE_HIP_TARGET lists, and what they say of themselves. */
#include "../../generator/target.h"
#include "runtime.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  VERSION = 70200000, /* of the API that is followed: 7.2 */
  BLOCK_THREADS = 1024,
  TARGET_NAME_SIZE = 32
};
#define DEFAULT_TARGETS "gfx950"

hd_status heddle_emu_open(const char *rest, device **out_device, diags *list);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hipemu_device devices[HIPEMU_DEVICES_MOST];
static int device_count;
static _Thread_local int current;

/* gfx942 is version 9.4, its stepping 2: the last two characters are digits by themselves. */
static void set_version(const char *target_name, int64_t values[PROPERTY_COUNT]) {
  const char *digits = target_name + strcspn(target_name, "0123456789");
  long version = strtol(digits, NULL, 10) / 10;
  values[PROPERTY_MAJOR] = version / 10;
  values[PROPERTY_MINOR] = version % 10;
}

static void describe(hipemu_device *d) {
  const target *t = d->target;
  const int simds = t->unit_simds / t->unit_compute_units; /* of what HIP calls a multiprocessor */
  const device_facts *f = &d->facts;
  int64_t *v = d->values;
  snprintf(d->name, sizeof d->name, "heddle emulated %s (not hardware)", t->name);
  v[PROPERTY_TOTAL_MEMORY] = f->memory_bytes;
  v[PROPERTY_LDS_PER_BLOCK] = v[PROPERTY_LDS_OPT_IN] = f->lds_bytes_per_workgroup;
  v[PROPERTY_LDS] = v[PROPERTY_LDS_AMD] = f->lds_bytes_per_workgroup;
  v[PROPERTY_REGISTERS] = v[PROPERTY_REGISTERS_PER_BLOCK] = (int64_t)t->simd_vgprs * f->wave * simds;
  v[PROPERTY_WAVE] = f->wave;
  v[PROPERTY_PITCH] = INT_MAX;
  v[PROPERTY_BLOCK_THREADS] = BLOCK_THREADS;
  v[PROPERTY_BLOCK_X] = v[PROPERTY_BLOCK_Y] = v[PROPERTY_BLOCK_Z] = BLOCK_THREADS;
  v[PROPERTY_GRID_X] = INT_MAX;
  v[PROPERTY_GRID_Y] = v[PROPERTY_GRID_Z] = 65535;
  set_version(t->name, v);
  v[PROPERTY_COMPUTE_UNITS] = f->compute_units;
  v[PROPERTY_MAPS_HOST] = v[PROPERTY_ONE_ADDRESS_SPACE] = v[PROPERTY_MANAGED] = 1;
  v[PROPERTY_PCI_DEVICE] = d->ordinal;
  v[PROPERTY_L2] = f->l2_bytes > INT_MAX ? INT_MAX : f->l2_bytes;
  v[PROPERTY_THREADS] = (int64_t)t->simd_waves * simds * f->wave;
  /* The rest is 0: there are no clocks, no bus, no copy engines, no cooperative launches and no pools. */
}

static hd_status open_device(hipemu_device *d, const char *name, diags *messages) {
  hd_status status = heddle_emu_open(name, &d->device, messages);
  if (status != HD_OK) return status;
  d->device->vtable->facts(d->device, &d->facts);
  d->target = target_find(d->facts.target);
  if (d->target) {
    describe(d);
    return HD_OK;
  }
  d->device->vtable->close(d->device);
  return HD_UNAVAILABLE;
}

static void log_refused(const char *name, int length) {
  hipemu_log("hip.target",
             "HEDDLE_HIP_TARGET: \"%.*s\" can't be emulated; up to %d names, separated by commas", length,
             name, HIPEMU_DEVICES_MOST);
}

/* One name that can't be opened, and there are no devices at all: a program must not go on with fewer. */
static void open_devices(void) {
  const char *list = getenv("HEDDLE_HIP_TARGET");
  if (!list || !*list) list = DEFAULT_TARGETS;
  int opened = 0;
  while (*list) {
    size_t length = strcspn(list, ",");
    char name[TARGET_NAME_SIZE];
    diags messages;
    hd_status status = HD_INVALID;
    diags_init(&messages);
    if (length > 0 && length < sizeof name && opened < HIPEMU_DEVICES_MOST) {
      memcpy(name, list, length);
      name[length] = '\0';
      devices[opened].ordinal = opened;
      status = open_device(&devices[opened], name, &messages);
    }
    hipemu_answer(&devices[0], status, &messages);
    if (status != HD_OK) {
      log_refused(list, (int)length);
      while (opened > 0) {
        device *d = devices[--opened].device;
        d->vtable->close(d);
      }
      return;
    }
    ++opened;
    list += length;
    if (*list == ',') ++list;
  }
  device_count = opened;
}

int hipemu_device_count(void) {
  pthread_once(&once, open_devices);
  return device_count;
}

hipError_t hipemu_device_at(int ordinal, hipemu_device **out_device) {
  if (hipemu_device_count() == 0) return hipErrorNoDevice;
  if (ordinal < 0 || ordinal >= device_count) return hipErrorInvalidDevice;
  *out_device = &devices[ordinal];
  return hipSuccess;
}

hipError_t hipemu_enter(hipemu_device **out_current) {
  return hipemu_device_at(current, out_current);
}

hipError_t hipInit(unsigned int flags) {
  if (flags != 0) return hipemu_report(hipErrorInvalidValue);
  return hipemu_report(hipemu_device_count() > 0 ? hipSuccess : hipErrorNoDevice);
}

hipError_t hipDriverGetVersion(int *out_version) {
  if (!out_version) return hipemu_report(hipErrorInvalidValue);
  *out_version = VERSION;
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *out_version) {
  return hipDriverGetVersion(out_version);
}

hipError_t hipGetDeviceCount(int *out_count) {
  if (!out_count) return hipemu_report(hipErrorInvalidValue);
  *out_count = hipemu_device_count();
  return hipemu_report(*out_count > 0 ? hipSuccess : hipErrorNoDevice);
}

hipError_t hipSetDevice(int ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_device_at(ordinal, &d);
  if (code == hipSuccess) current = ordinal;
  return hipemu_report(code);
}

hipError_t hipGetDevice(int *out_ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_ordinal ? hipemu_enter(&d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_ordinal = current;
  return hipemu_report(code);
}

hipError_t hipDeviceGet(hipDevice_t *out_device, int ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_device ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_device = ordinal;
  return hipemu_report(code);
}

hipError_t hipDeviceGetName(char *out_name, int size, hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_name && size > 0 ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) snprintf(out_name, (size_t)size, "%s", d->name);
  return hipemu_report(code);
}

/* "heddle emulated" and the ordinal. */
hipError_t hipDeviceGetUuid(hipUUID *out_uuid, hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_uuid ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  memcpy(out_uuid->bytes, "heddle emulated", sizeof out_uuid->bytes);
  out_uuid->bytes[sizeof out_uuid->bytes - 1] = (char)ordinal;
  return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t *out_bytes, hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_bytes ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_bytes = (size_t)d->facts.memory_bytes;
  return hipemu_report(code);
}

hipError_t hipDeviceComputeCapability(int *out_major, int *out_minor, hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_major && out_minor ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  *out_major = (int)d->values[PROPERTY_MAJOR];
  *out_minor = (int)d->values[PROPERTY_MINOR];
  return hipSuccess;
}

typedef struct property_row {
  hipDeviceAttribute_t attribute;
  size_t at_r0600, size_r0600, at_r0000, size_r0000;
} property_row;

static const property_row rows[PROPERTY_COUNT] = {
#define X(property, attribute, number, at, size, old_at, old_size, member)                                   \
  [PROPERTY_##property] = {attribute, at, size, old_at, old_size},
    HIP_PROPERTIES(X)
#undef X
};

hipError_t hipDeviceGetAttribute(int *out_value, hipDeviceAttribute_t attribute, int ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_value ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  for (size_t n = 0; n < PROPERTY_COUNT; ++n) {
    if (rows[n].attribute != attribute) continue;
    *out_value = d->values[n] > INT_MAX ? INT_MAX : (int)d->values[n];
    return hipSuccess;
  }
  hipemu_log("hip.attribute", "attribute %d is not one of those that the emulated device tells",
             (int)attribute);
  return hipemu_report(hipErrorInvalidValue);
}

static void put(char *properties, size_t at, size_t size, int64_t value) {
  int narrow = value > INT_MAX ? INT_MAX : (int)value;
  if (size == sizeof narrow) memcpy(properties + at, &narrow, size);
  if (size == sizeof value) memcpy(properties + at, &value, size);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out_properties, int ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_properties ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  char *properties = (char *)out_properties;
  memset(properties, 0, HIP_R0600_SIZE);
  snprintf(properties, HIP_NAME_SIZE, "%s", d->name);
  snprintf(properties + HIP_R0600_ARCH_NAME_AT, HIP_ARCH_NAME_SIZE, "%s", d->target->name);
  for (size_t n = 0; n < PROPERTY_COUNT; ++n)
    put(properties, rows[n].at_r0600, rows[n].size_r0600, d->values[n]);
  return hipSuccess;
}

hipError_t hipGetDeviceProperties(void *out_properties, int ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_properties ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  char *properties = out_properties;
  memset(properties, 0, HIP_R0000_SIZE);
  snprintf(properties, HIP_NAME_SIZE, "%s", d->name);
  snprintf(properties + HIP_R0000_ARCH_NAME_AT, HIP_ARCH_NAME_SIZE, "%s", d->target->name);
  for (size_t n = 0; n < PROPERTY_COUNT; ++n)
    put(properties, rows[n].at_r0000, rows[n].size_r0000, d->values[n]);
  return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int *out_can, int ordinal, int peer) {
  hipemu_device *d = NULL;
  hipError_t code = out_can ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) code = hipemu_device_at(peer, &d);
  if (code == hipSuccess) *out_can = 0;
  return hipemu_report(code);
}

hipError_t hipDeviceGetStreamPriorityRange(int *out_least, int *out_greatest) {
  if (out_least) *out_least = 0;
  if (out_greatest) *out_greatest = 0;
  return hipSuccess;
}

hipError_t hipGetDeviceFlags(unsigned int *out_flags) {
  if (!out_flags) return hipemu_report(hipErrorInvalidValue);
  *out_flags = 0;
  return hipSuccess;
}

/* How the host waits: it never does. */
hipError_t hipSetDeviceFlags(unsigned flags) {
  (void)flags;
  return hipSuccess;
}

hipError_t hipDeviceSynchronize(void) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_enter(&d);
  if (code == hipSuccess) code = hipemu_uncaptured();
  if (code == hipSuccess) code = (hipError_t)atomic_load(&d->fault);
  return hipemu_report(code);
}

/* A device that a kernel's fault took away works again. Memory, modules and streams stay: their owners free
 * them. */
hipError_t hipDeviceReset(void) {
  hipemu_device *d = NULL;
  hipError_t code = hipemu_enter(&d);
  if (code == hipSuccess) atomic_store(&d->fault, (int)hipSuccess);
  return hipemu_report(code);
}

/* ---- Contexts: a handle is the device itself ---- */

static hipError_t device_of(hipCtx_t context, hipemu_device **out_device) {
  for (int n = 0; n < hipemu_device_count(); ++n) {
    if ((void *)context != &devices[n]) continue;
    *out_device = &devices[n];
    return hipSuccess;
  }
  return hipErrorInvalidContext;
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *out_context, hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  hipError_t code = out_context ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code == hipSuccess) *out_context = (hipCtx_t)(void *)d;
  return hipemu_report(code);
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t ordinal) {
  hipemu_device *d = NULL;
  return hipemu_report(hipemu_device_at(ordinal, &d));
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t ordinal, unsigned int *out_flags, int *out_active) {
  hipemu_device *d = NULL;
  hipError_t code = out_flags && out_active ? hipemu_device_at(ordinal, &d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  *out_flags = 0;
  *out_active = 1;
  return hipSuccess;
}

hipError_t hipCtxGetCurrent(hipCtx_t *out_context) {
  return hipDevicePrimaryCtxRetain(out_context, current);
}

hipError_t hipCtxSetCurrent(hipCtx_t context) {
  hipemu_device *d = NULL;
  hipError_t code = device_of(context, &d);
  if (code == hipSuccess) current = d->ordinal;
  return hipemu_report(code);
}

hipError_t hipCtxGetDevice(hipDevice_t *out_device) {
  return hipGetDevice(out_device);
}

hipError_t hipCtxSynchronize(void) {
  return hipDeviceSynchronize();
}
