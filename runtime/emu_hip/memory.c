/* Memory. A device address is a host address: what hipHostMalloc and hipMallocManaged give is
 * the device's memory too. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hipemu_allocation *allocations; /* sorted by address */
static size_t count, capacity;

/* How many start at or below `address`. */
static size_t position(uint64_t address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (allocations[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool hipemu_allocation_find(uint64_t address, hipemu_allocation *out_allocation) {
  pthread_mutex_lock(&lock);
  size_t at = position(address);
  bool found = at > 0 && address - allocations[at - 1].start < allocations[at - 1].size;
  if (found) *out_allocation = allocations[at - 1];
  pthread_mutex_unlock(&lock);
  return found;
}

static bool remember(const hipemu_allocation *a) {
  pthread_mutex_lock(&lock);
  bool fine = true;
  if (count == capacity) {
    size_t more = capacity ? 2 * capacity : 64;
    hipemu_allocation *grown = realloc(allocations, more * sizeof *grown);
    fine = grown != NULL;
    if (fine) {
      allocations = grown;
      capacity = more;
    }
  }
  if (fine) {
    size_t at = position(a->start);
    memmove(allocations + at + 1, allocations + at, (count - at) * sizeof *allocations);
    allocations[at] = *a;
    ++count;
  }
  pthread_mutex_unlock(&lock);
  return fine;
}

/* Of the same kind as it was allocated: hipFree for the device's, hipHostFree for the host's. */
static bool forget(uint64_t start, bool host, hipemu_allocation *out_allocation) {
  pthread_mutex_lock(&lock);
  size_t at = position(start);
  bool found =
      at > 0 && allocations[at - 1].start == start && (allocations[at - 1].type == hipMemoryTypeHost) == host;
  if (found) {
    *out_allocation = allocations[at - 1];
    memmove(allocations + at - 1, allocations + at, (count - at) * sizeof *allocations);
    --count;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static hipError_t allocate(void **out_pointer, size_t bytes, unsigned type, unsigned flags) {
  hipemu_device *d = NULL;
  device_pointer start = 0;
  diags messages;
  if (!out_pointer) return hipErrorInvalidValue;
  hipError_t code = hipemu_uncaptured();
  if (code == hipSuccess) code = hipemu_enter(&d);
  if (code != hipSuccess) return code;
  if (bytes == 0) {
    *out_pointer = NULL;
    return hipSuccess;
  }
  diags_init(&messages);
  hd_status status = d->device->vtable->allocate(d->device, bytes, &start, &messages);
  /* The host writes to what it shares without telling anybody: the device may read all of it. */
  if (status == HD_OK && type != hipMemoryTypeDevice)
    status = d->device->vtable->fill(d->device, NULL, start, 0, bytes, &messages);
  const hipemu_allocation a = {start, bytes, d, type, flags};
  bool kept = status == HD_OK && remember(&a);
  if (status == HD_OK && !kept) status = HD_OUT_OF_MEMORY;
  if (start && !kept) d->device->vtable->release(d->device, start, &messages);
  code = hipemu_answer(d, status, &messages);
  if (code == hipSuccess) *out_pointer = (void *)(uintptr_t)start;
  return code;
}

static hipError_t release(void *pointer, bool host) {
  hipemu_allocation a;
  diags messages;
  if (!pointer) return hipSuccess;
  hipError_t code = hipemu_uncaptured();
  if (code != hipSuccess) return code;
  if (!forget(hipemu_address(pointer), host, &a)) {
    hipemu_log("hip.pointer", "%p is not the start of live memory from %s", pointer,
               host ? "hipHostMalloc" : "hipMalloc");
    return hipErrorInvalidValue;
  }
  diags_init(&messages);
  return hipemu_answer(a.device, a.device->device->vtable->release(a.device->device, a.start, &messages),
                       &messages);
}

hipError_t hipMalloc(void **out_pointer, size_t bytes) {
  return hipemu_report(allocate(out_pointer, bytes, hipMemoryTypeDevice, 0));
}

hipError_t hipFree(void *pointer) {
  return hipemu_report(release(pointer, false));
}

hipError_t hipMallocAsync(void **out_pointer, size_t bytes, hipStream_t stream) {
  hipStream_t s = NULL;
  hipemu_device *d = NULL;
  hipError_t code = hipemu_stream(stream, &s, &d);
  return hipemu_report(code == hipSuccess ? allocate(out_pointer, bytes, hipMemoryTypeDevice, 0) : code);
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  hipStream_t s = NULL;
  hipemu_device *d = NULL;
  hipError_t code = hipemu_stream(stream, &s, &d);
  return hipemu_report(code == hipSuccess ? release(pointer, false) : code);
}

hipError_t hipMallocManaged(void **out_pointer, size_t bytes, unsigned int flags) {
  return hipemu_report(allocate(out_pointer, bytes, hipMemoryTypeManaged, flags));
}

hipError_t hipHostMalloc(void **out_pointer, size_t bytes, unsigned int flags) {
  return hipemu_report(allocate(out_pointer, bytes, hipMemoryTypeHost, flags));
}

hipError_t hipHostAlloc(void **out_pointer, size_t bytes, unsigned int flags) {
  return hipHostMalloc(out_pointer, bytes, flags);
}

hipError_t hipMallocHost(void **out_pointer, size_t bytes) {
  return hipHostMalloc(out_pointer, bytes, 0);
}

hipError_t hipHostFree(void *pointer) {
  return hipemu_report(release(pointer, true));
}

hipError_t hipFreeHost(void *pointer) {
  return hipHostFree(pointer);
}

hipError_t hipHostGetDevicePointer(void **out_pointer, void *host, unsigned int flags) {
  hipemu_allocation a;
  if (!out_pointer || flags != 0 || !hipemu_allocation_find(hipemu_address(host), &a) ||
      a.type != hipMemoryTypeHost)
    return hipemu_report(hipErrorInvalidValue);
  *out_pointer = host;
  return hipSuccess;
}

hipError_t hipHostGetFlags(unsigned int *out_flags, void *host) {
  hipemu_allocation a;
  if (!out_flags || !hipemu_allocation_find(hipemu_address(host), &a) || a.type != hipMemoryTypeHost)
    return hipemu_report(hipErrorInvalidValue);
  *out_flags = a.flags;
  return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *out_free, size_t *out_total) {
  hipemu_device *d = NULL;
  hipError_t code = out_free && out_total ? hipemu_enter(&d) : hipErrorInvalidValue;
  if (code != hipSuccess) return hipemu_report(code);
  size_t used = 0;
  pthread_mutex_lock(&lock);
  for (size_t n = 0; n < count; ++n)
    if (allocations[n].device == d) used += allocations[n].size;
  pthread_mutex_unlock(&lock);
  *out_total = (size_t)d->facts.memory_bytes;
  *out_free = *out_total - used;
  return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *out_bytes) {
  hipemu_allocation a;
  if (!out_bytes || !hipemu_allocation_find(hipemu_address(pointer), &a) ||
      a.start != hipemu_address(pointer))
    return hipemu_report(hipErrorInvalidValue);
  *out_bytes = a.size;
  return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *out_base, size_t *out_bytes, hipDeviceptr_t pointer) {
  hipemu_allocation a;
  if (!out_base || !out_bytes) return hipemu_report(hipErrorInvalidValue);
  if (!hipemu_allocation_find(hipemu_address(pointer), &a)) return hipemu_report(hipErrorNotFound);
  *out_base = (void *)(uintptr_t)a.start;
  *out_bytes = a.size;
  return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out_attributes, const void *pointer) {
  hipemu_allocation a;
  if (!out_attributes) return hipemu_report(hipErrorInvalidValue);
  if (!hipemu_allocation_find(hipemu_address(pointer), &a)) {
    memset(out_attributes, 0, sizeof *out_attributes); /* hipMemoryTypeUnregistered */
    return hipemu_report(hipErrorInvalidValue);
  }
  void *same = (void *)(uintptr_t)hipemu_address(pointer);
  *out_attributes = (hipPointerAttribute_t){.type = a.type,
                                            .device = a.device->ordinal,
                                            .devicePointer = same,
                                            .hostPointer = a.type == hipMemoryTypeDevice ? NULL : same,
                                            .isManaged = a.type == hipMemoryTypeManaged,
                                            .allocationFlags = a.flags};
  return hipSuccess;
}
