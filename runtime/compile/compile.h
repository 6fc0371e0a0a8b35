/* The compile service: source in, code object out, through a worker process.
 *
 * The worker (heddle-compile-worker) loads the compiler library or runs clang and lld, with a private TMPDIR,
 * a time and a memory limit, and a scrubbed environment. A worker that crashes, hangs or lies is a
 * diagnostic. Several run side by side. */
#ifndef HEDDLE_COMPILE_H
#define HEDDLE_COMPILE_H

#include "../../generator/diag.h"
#include "../../generator/target.h"

typedef enum compiler_kind { COMPILER_AUTO, COMPILER_HIPRTC, COMPILER_LLVM, COMPILER_NVRTC } compiler_kind;

const char *compiler_name(compiler_kind k); /* "auto", "hiprtc", "llvm", "nvrtc" */
bool compiler_parse(const char *name, compiler_kind *out_kind);

/* A compiler that was found. `identity` is what code-object keys hash: name, version and content hash of the
 * library or binary that compiles, no path. */
typedef struct compiler {
  compiler_kind kind;
  char version[128];
  char identity[256];
  char path[1024];         /* libhiprtc, clang, libnvrtc */
  char loader[1024];       /* a dynamic loader to start the worker under, "" for none */
  char library_path[2048]; /* --library-path for that loader, "" for none */
} compiler;

typedef struct compile_request {
  const char *source;
  const char *name; /* for diagnostics: "minimax-m3-dense-fp8/decode" */
  const target *target;
  const char *const *extra_options; /* may be NULL */
  int extra_option_count;
} compile_request;

typedef struct compile_result {
  hd_status status;  /* HD_OK, HD_DECLINED (does not compile: see diags), or why it could not be tried */
  void *code_object; /* owned */
  size_t code_object_size;
  char *log;           /* compiler's text, may be NULL, owned */
  double seconds;      /* in the worker, compile call alone (clang: its process) */
  double wall_seconds; /* from here, a worker's start included for its first request */
  diags diags;
} compile_result;

typedef struct compile_limits {
  double seconds;      /* 0: 60 */
  size_t memory_bytes; /* 0: 4 GiB */
  /* Told of each request (of build_all: of each job) once its result is complete, in any order and from
   * whichever thread completed it, also from several at a time. NULL: nobody. */
  void (*finished)(void *user, int index);
  void *user;
} compile_limits;

/* Finds the compiler for `target`; COMPILER_AUTO takes hiprtc before llvm on AMD targets, nvrtc on sm_*.
 * HD_UNAVAILABLE with diagnostics that list what was tried and how to get it. Results are remembered per
 * process; thread-safe. */
hd_status compiler_find(compiler_kind kind, const target *target, compiler *out_compiler, diags *diags);

/* The option list for a target, deterministic; part of the code-object key. Returns the count; static
 * storage. */
int compiler_options(compiler_kind kind, const target *target, const char *out_options[32]);

/* Compiles `count` requests, `jobs` workers at a time (0: the number of cores). Every result is filled and to
 * be finished by the caller. A crash or a time-out costs its own request only; the bytes don't depend on
 * `jobs`. The codes of the diagnostics are in docs/compile.md. */
void compile_all(const compiler *c, const compile_request *requests, compile_result *results, int count,
                 int jobs, const compile_limits *limits);
void compile_result_finish(compile_result *r);

#endif
