/* What the files behind heddle.h share: the objects' insides. Internal headers come first, so that the types
 * which both sides have (hd_status) are theirs. */
#ifndef HEDDLE_API_PARTS_H
#define HEDDLE_API_PARTS_H

#include "../../generator/spec.h"
#include "../session.h"
#include "../tune/tune.h"
#include "../heddle.h"
#include "seen.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- Diagnostics ---- */

struct hd_diagnostics {
  diags list;
  text rendered;
};

/* Where a call puts what it has to say: the caller's list, emptied, or one that is thrown away. */
typedef struct api_call {
  diags thrown_away;
  diags *errors;
} api_call;

void api_begin(api_call *call, hd_diagnostics *wanted);
/* Returns `status`. */
hd_status api_end(api_call *call, hd_status status);
void api_append(diags *to, const diags *from);

/* Copies the caller's struct, whose first member is its size, over `to`, which is `room` bytes and becomes 0
 * where the caller's ends. False with "context.options": no size, or something set beyond what is known here.
 */
bool api_take_struct(const void *from, size_t smallest, void *to, size_t room, const char *what,
                     diags *errors);
/* The other way: gives as much as the caller's `size` has room for. */
hd_status api_give_struct(const void *from, size_t room, void *to, size_t smallest);

/* ---- Contracts and tensors ---- */

struct hd_contract {
  atomic_int owners;
  spec spec;
  char key[65];
  char *text;
};

struct hd_axes {
  layout layout;
  uint64_t number; /* no other of the process has it, alive or not */
};

hd_contract *api_contract_retain(const hd_contract *c);
/* A contract of its own, not from a spec; `name` is copied. */
hd_status api_contract_of(const contract *c, const char *name, hd_contract **out_contract);

bool api_operation(hd_operation o, operation *out_operation);
bool api_tensor_name(hd_tensor_name name, tensor_name *out_name);
/* False for a tensor that the interface has no name for. */
bool api_tensor_name_back(tensor_name name, hd_tensor_name *out_name);
bool api_dtype_back(dtype d, hd_dtype *out_dtype);
/* Scales that come as numbers; NULL: not given. */
void api_scale_numbers(const float *k_scale, const float *v_scale, tensors *out_tensors);
/* HD_INVALID with "launch.tensor" for a description that makes no sense. Allocates only then. The tensors
 * have no numbers among them. */
hd_status api_tensors(const hd_tensor *from, size_t count, tensors *out_tensors, diags *errors);
/* Of tensors that api_tensors took before: which there are and where they lie, nothing else. */
void api_tensor_addresses(const hd_tensor *from, size_t count, tensors *out_tensors);

/* ---- Contexts ---- */

enum { API_MAX_EMBEDDED = 64 };

struct hd_context {
  atomic_int owners;
  unsigned generation; /* of the process, see api_alive */
  session session;
  char *device_name;
  hd_log_function log;
  void *log_user;
  compile_limits limits;
  int jobs;
  const hd_embedded *embedded[API_MAX_EMBEDDED]; /* the last one is looked at first */
  int embedded_count;
  pthread_mutex_t tuned_lock; /* asking which records hold marks them */
  tune_files tuned;
};

/* Whether the context was made in this process; else "context.forked". */
bool api_alive(const hd_context *c, diags *errors);
hd_context *api_context_retain(hd_context *c);
void api_context_release(hd_context *c);
void api_log(const hd_context *c, hd_severity severity, const char *format, ...) HD_PRINTF(3, 4);

/* ---- Kernels ---- */

/* A kernel that can be launched. Immutable. */
typedef struct prepared {
  session_kernel loaded;
  descriptor descriptor;
  char *json;
  char key[65], compiler[128];
  const char *origin;
  const void *code; /* the cache's or the program's */
  size_t code_bytes;
  double compile_seconds;
  bool by_record; /* of the variant that a tuned record chose: its splits are too */
} prepared;

struct hd_kernel {
  atomic_int owners;
  hd_context *context;
  contract contract; /* resolved for the context's target */
  char contract_key[65];
  char *name; /* the contract's */
  spec_ints split_factors;
  operation operation;
  variant variant;
  bool free_variant; /* nobody asked for this one */
  bool has_bucket;   /* a tuned record chose it */
  tune_shape bucket; /* what it was measured for, and at which split */
  int64_t bucket_splits;
  char choice[480];          /* in words */
  pthread_mutex_t lock;      /* held by whoever prepares */
  _Atomic(prepared *) ready; /* NULL until then */
  seen_shapes seen;
};

/* An unprepared kernel. */
hd_status api_kernel_create(hd_context *c, const hd_job *job, hd_kernel **out_kernel, diags *errors);
/* Prepares all of them, each of which is another's and not ready. `finished`, when there is one, is called
 * for each as in compile_limits. */
void api_prepare(hd_context *c, hd_kernel *const *kernels, hd_status *statuses, diags *errors_of_each,
                 int count, void (*finished)(void *user, int index), void *user);
/* The prepared kernel, made now if need be; NULL with the status in *out_status. */
const prepared *api_ready(hd_kernel *k, hd_status *out_status, diags *errors);

/* The embedded kernel for `k`, or NULL. Its descriptor in *out_descriptor. */
const hd_embedded_kernel *api_embedded_find(const hd_context *c, const hd_kernel *k,
                                            descriptor *out_descriptor);

/* A decode's split count where the caller leaves it open. */
int64_t api_splits(const hd_kernel *k, const prepared *p, const int64_t dims[DIM_COUNT], int64_t longest);

/* What a binding hands to the device: what its own cost is measured against. */
const launch_pack *api_binding_pack(const hd_binding *b);

#endif
