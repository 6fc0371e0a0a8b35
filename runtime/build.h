/* From a contract to a code object: emit, key, look up, compile, store. */
#ifndef HEDDLE_BUILD_H
#define HEDDLE_BUILD_H

#include "../generator/emit.h"
#include "cache/cache.h"
#include "compile/compile.h"

typedef struct build_job {
  const contract *contract;
  const char *name; /* the spec's name, for diagnostics; may be NULL */
  operation operation;
  variant variant;
  const target *target;
} build_job;

typedef struct build_result {
  hd_status status; /* HD_OK, HD_DECLINED (contract not served or source does not compile), HD_UNAVAILABLE (no
                       compiler) … */
  cache_entry entry;      /* on HD_OK; lives until the cache is closed */
  char key[65];           /* code-object key, when it was computed */
  bool hit;               /* found in the cache */
  double compile_seconds; /* in the worker, 0 on a hit */
  char compiler[128];     /* name and version */
  diags diags;
} build_result;

/* The text whose SHA-256 is the code-object key: one "field: value" line each for contract key, operation,
 * variant, target, source sum, compiler identity, options. */
hd_status build_key_text(const build_job *job, const emission *e, const compiler *c, text *out);

/* Whether HEDDLE_NO_JIT leaves it open: without it, or with it empty or 0. Otherwise nothing is compiled, and
 * a miss is HD_UNAVAILABLE with "compile.no-jit". */
bool build_may_compile(void);
/* The key text of a job on this machine. HD_UNAVAILABLE: no compiler. */
hd_status build_explain_key(compiler_kind kind, const build_job *job, text *out_key_text, diags *errors);

/* Builds all jobs, compiling `jobs_at_once` at a time (0: cores). Each result is filled and to be finished by
 * the caller. */
void build_all(cache *c, compiler_kind kind, const build_job *jobs, build_result *results, int count,
               int jobs_at_once, const compile_limits *limits);
void build_result_finish(build_result *r);

#endif
