/* One compile worker as its parent sees it: start, exchange, stop. Used by one thread at a time; no state
 * besides the struct. */
#ifndef HEDDLE_WORKER_PROCESS_H
#define HEDDLE_WORKER_PROCESS_H

#include "compile.h"
#include "worker.h"
#include <sys/types.h>

typedef struct worker_process {
  pid_t pid;         /* also its process group; 0 when none runs */
  int in, out;       /* our ends: requests go into `in`, responses come out of `out` */
  int errors;        /* a file in the folder that takes the worker's stderr and stray stdout */
  char folder[1024]; /* private TMPDIR, removed when it stops */
  int folder_lock;   /* keeps other processes from taking the folder for one that was left behind */
  int served;        /* answers so far */
} worker_process;

typedef enum worker_exchange_result {
  EXCHANGE_DONE,
  EXCHANGE_DIED, /* end of file before a whole answer */
  EXCHANGE_TIMEOUT,
  EXCHANGE_GARBLED,   /* bytes that are no answer */
  EXCHANGE_NO_MEMORY, /* ours, not the worker's */
} worker_exchange_result;

/* How a worker ended. `status` is wait's; when the host's own SIGCHLD handling took it away, `status_known`
 * is false. */
typedef struct worker_end {
  bool status_known;
  int status;
  size_t peak_bytes; /* resident; of the worker or of the largest of its children */
  char errors[2048]; /* the end of what it wrote to stderr */
} worker_end;

/* HEDDLE_WORKER, beside the executable or library, one folder up, in ../libexec/heddle and
 * ../../libexec/heddle. HD_UNAVAILABLE with a diagnostic that lists what was tried. `size`: of out_path. */
hd_status worker_find(char *out_path, size_t size, diags *errors);

hd_status worker_start(worker_process *w, const compiler *c, const compile_limits *limits, diags *errors);

/* Sends one request and waits for its answer. `seconds`: for both together. On EXCHANGE_DONE the answer's
 * buffers are the caller's and NUL-terminated beyond their length. After anything else the worker is of no
 * more use. */
worker_exchange_result worker_exchange(worker_process *w, const char *source, size_t source_bytes,
                                       const char *const *options, int option_count, double seconds,
                                       worker_answer *out_answer);

/* Kills the worker's process group, reaps it, removes its folder. `out_end` may be NULL. Fine when none runs.
 */
void worker_stop(worker_process *w, worker_end *out_end);

#endif
