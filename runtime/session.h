/* A device, the cache and a compiler together: from a contract to launched kernels on one device. What `run`,
 * `verify` and benchmarks share. Not for the launch path of an engine: it allocates and synchronises. */
#ifndef HEDDLE_SESSION_H
#define HEDDLE_SESSION_H

#include "build.h"
#include "launch/launch.h"

typedef struct session {
  device *device;
  device_facts facts;
  const target *target; /* what the device executes */
  cache *cache;
  compiler_kind compiler;
} session;

/* Opens the device by name ("emu:gfx950", "cuda:0") and the cache (`cache_directory` NULL: the user's). */
hd_status session_open(const char *device_name, compiler_kind kind, const char *cache_directory,
                       session *out_session, diags *errors);
void session_close(session *s);

/* One operation, built and loaded. Belongs to its session and is finished before it. */
typedef struct session_kernel {
  const descriptor *descriptor; /* lives as long as the session's cache */
  device_module *module;
  device_function *functions[DESCRIPTOR_MAX_KERNELS];
  device_pointer workspace;
  int64_t workspace_bytes;
  char key[65];
  char compiler[128];
  bool hit;
  double compile_seconds;
} session_kernel;

/* `c` must be resolved for the session's target. `name`: the spec's, for messages. */
hd_status session_load(session *s, const contract *c, const char *name, operation o, const variant *v,
                       session_kernel *out_kernel, diags *errors);
/* The same for code that is there already: fills descriptor, module and functions. What both point to
 * outlives the kernel. */
hd_status session_load_code(session *s, const descriptor *d, const void *code_object, size_t bytes,
                            session_kernel *out_kernel, diags *errors);
void session_unload(session *s, session_kernel *k);

/* The split count for a decode: `asked` when it is not 0, else by policy. A contract that bakes nothing in
 * takes any. */
int64_t session_splits(const session *s, const session_kernel *k, const int64_t dims[DIM_COUNT],
                       int64_t longest, int64_t asked);

/* Launches on device tensors and waits. Makes room in the workspace when the launch needs it. */
hd_status session_launch(session *s, session_kernel *k, const tensors *on_device,
                         const int64_t dims[DIM_COUNT], float logits_scale, diags *errors);

/* Copies the tensors that are there to the device (outputs: allocated and filled with 0xff, NaN in every
 * float format, so that an element nobody wrote shows). */
hd_status session_upload(session *s, const contract *c, operation o, const tensors *host, tensors *out_device,
                         diags *errors);
/* Copies one tensor back into the host tensor's memory. */
hd_status session_download(session *s, const tensors *on_device, const tensors *host, tensor_name name,
                           diags *errors);
void session_release(session *s, tensors *on_device);

#endif
