/* The compile worker's protocol and its inside seams.
 *
 * The parent writes requests to the worker's standard input and reads one response for each from its standard
 * output, in order. Both ends are one machine and one build, so numbers travel in the machine's own byte
 * order; `version` tells a worker of another build apart. A request is a request_head, its options (each a
 * uint32_t length and that many bytes), its source. A response is a response_head, the code object, the log.
 * End of file on standard input ends the worker.
 *
 *   heddle-compile-worker COMPILER PATH MEMORY_BYTES SECONDS
 *
 * COMPILER: "hiprtc", "nvrtc" (PATH: the library) or "llvm" (PATH: clang). Works in the folder that TMPDIR
 * names. The parent keeps the time; SECONDS of processor time are for a clang whose parents were killed. */
#ifndef HEDDLE_WORKER_H
#define HEDDLE_WORKER_H

#include <stddef.h>
#include <stdint.h>

enum {
  WORKER_REQUEST_MAGIC = 0x51434448,  /* "HDCQ" */
  WORKER_RESPONSE_MAGIC = 0x52434448, /* "HDCR" */
  WORKER_VERSION = 1,
  WORKER_MAX_OPTIONS = 256,
};
#define WORKER_MAX_BYTES                                                                                     \
  ((uint64_t)1 << 30) /* of a source, a code object or a log: beyond it a head is garbage */

typedef enum worker_outcome {
  WORKER_COMPILED,
  WORKER_REJECTED,    /* the compiler says no; the log says why, or is empty and `code` is all there is */
  WORKER_BROKE_DOWN,  /* the compiler ran into a failure of its own and lived to tell (clang: exit 70, or a
                         signal) */
  WORKER_NO_COMPILER, /* the library or program can't be loaded or started; the log says why */
  WORKER_NO_MEMORY,
  WORKER_IO, /* TMPDIR can't be written or read; the log says why */
} worker_outcome;

typedef struct worker_request_head {
  uint32_t magic, version, option_count, reserved;
  uint64_t source_bytes;
} worker_request_head;

typedef struct worker_response_head {
  uint32_t magic, version, outcome;
  int32_t code; /* the compiler library's result or clang's exit status */
  uint64_t code_object_bytes, log_bytes;
  double seconds; /* of the compile alone */
} worker_response_head;

/* Within the worker: one request and its answer. `source` is NUL-terminated; `options` ends with NULL. */
typedef struct worker_job {
  const char *source;
  size_t source_bytes;
  const char **options;
  int option_count;
} worker_job;

typedef struct worker_answer {
  worker_outcome outcome;
  int code;
  char *code_object, *log; /* heap, may be NULL */
  size_t code_object_bytes, log_bytes;
  double seconds; /* of the compile alone: without loading the library, with lld */
} worker_answer;

double worker_now(void); /* seconds, monotonic */

/* What the source is called: the same for everybody, since it may end up in the output's bytes. */
#define WORKER_SOURCE_NAME "kernel.hip"

/* The last error of `load` or of a compile that never began goes to the answer's log. */
void worker_rtc_compile(const char *compiler, const char *path, const worker_job *job,
                        worker_answer *out_answer);
void worker_clang_compile(const char *compiler, const char *path, const worker_job *job,
                          worker_answer *out_answer);

/* Makes the answer one without output, with this text as its log. */
void worker_answer_say(worker_answer *a, worker_outcome outcome, int code, const char *before,
                       const char *what);

#endif
