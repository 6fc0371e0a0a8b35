/* Status codes of every heddle function that can fail.
 *
 * A status says that a call could not be carried out: misuse, memory, I/O, a device. A contract that is not
 * served or a source that does not compile is not a failed call but an answer; it comes back as diagnostics
 * (diag.h) beside HD_DECLINED. */
#ifndef HEDDLE_STATUS_H
#define HEDDLE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define HD_STATUS_LIST(X)                                                                                    \
  X(HD_OK, "ok")                                                                                             \
  X(HD_DECLINED, "declined")                                                                                 \
  X(HD_INVALID, "invalid argument")                                                                          \
  X(HD_OUT_OF_MEMORY, "out of memory")                                                                       \
  X(HD_IO, "input/output error")                                                                             \
  X(HD_UNAVAILABLE, "unavailable")                                                                           \
  X(HD_DEVICE, "device error")                                                                               \
  X(HD_INTERNAL, "internal error")

typedef enum hd_status {
#define X(name, text) name,
  HD_STATUS_LIST(X)
#undef X
} hd_status;

#ifndef HD_API
#if defined(__GNUC__)
#define HD_API __attribute__((visibility("default"))) /* heddle.h, which programs include, has the same */
#else
#define HD_API
#endif
#endif

/* The short text of a status; never NULL. Static storage. */
HD_API const char *hd_status_text(hd_status status);

#ifdef __cplusplus
}
#endif
#endif
