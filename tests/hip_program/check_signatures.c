/* Holds this library's own copy of HIP's interface against ROCm's headers; that this compiles is the test.
 * api.h declares after ROCm's headers did, so a parameter or result of another type is an error; numbers,
 * offsets and sizes are asserted. */
#define HEDDLE_HIP_REAL_HEADERS
#include "api.h"

#define X(name, number, text) _Static_assert(name == (number), #name);
HIP_ERRORS(X)
#undef X

#define X(type, name, number) _Static_assert(name == (number), #name);
HIP_ENUMERATORS(X)
#undef X

#define SIZE(type, member) sizeof(((type *)NULL)->member)
#define X(property, attribute, number, at, size, old_at, old_size, member)                                   \
  _Static_assert(attribute == (number), #attribute);                                                         \
  _Static_assert(offsetof(hipDeviceProp_tR0600, member) == (at), "R0600 " #member);                          \
  _Static_assert(SIZE(hipDeviceProp_tR0600, member) == (size), "R0600 " #member);
HIP_PROPERTIES(X)
#undef X

#define X(property, attribute, number, at, size, old_at, old_size, member)                                   \
  _Static_assert(offsetof(hipDeviceProp_tR0000, member) == (old_at), "R0000 " #member);                      \
  _Static_assert(SIZE(hipDeviceProp_tR0000, member) == (old_size), "R0000 " #member);
HIP_PROPERTIES_OF_BOTH(X)
#undef X

_Static_assert(offsetof(hipDeviceProp_tR0600, name) == 0, "name");
_Static_assert(SIZE(hipDeviceProp_tR0600, name) == HIP_NAME_SIZE, "name");
_Static_assert(offsetof(hipDeviceProp_tR0600, gcnArchName) == HIP_R0600_ARCH_NAME_AT, "gcnArchName");
_Static_assert(SIZE(hipDeviceProp_tR0600, gcnArchName) == HIP_ARCH_NAME_SIZE, "gcnArchName");
_Static_assert(sizeof(hipDeviceProp_tR0600) == HIP_R0600_SIZE, "hipDeviceProp_tR0600");
_Static_assert(offsetof(hipDeviceProp_tR0000, name) == 0, "name");
_Static_assert(SIZE(hipDeviceProp_tR0000, name) == HIP_NAME_SIZE, "name");
_Static_assert(offsetof(hipDeviceProp_tR0000, gcnArchName) == HIP_R0000_ARCH_NAME_AT, "gcnArchName");
_Static_assert(SIZE(hipDeviceProp_tR0000, gcnArchName) == HIP_ARCH_NAME_SIZE, "gcnArchName");
_Static_assert(sizeof(hipDeviceProp_tR0000) == HIP_R0000_SIZE, "hipDeviceProp_tR0000");

_Static_assert(hipStreamNonBlocking == 1 && hipEventBlockingSync == 1 && hipEventDisableTiming == 2, "flags");
