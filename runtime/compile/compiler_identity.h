/* What a compiler is, by content: its version and the SHA-256 of the files that compile. */
#ifndef HEDDLE_COMPILER_IDENTITY_H
#define HEDDLE_COMPILER_IDENTITY_H

#include "compile.h"

/* Fills `c->version` and `c->identity` from `c->kind` and `c->path`: "hiprtc 7.2.53211 sha256:…". The hash
 * covers the library or program at `path` and those parts of the compiler that live in libraries of their own
 * (comgr, LLVM, clang, lld), found through what each file says it needs, in folders beside it or the
 * system's.
 *
 * A quarter of a gigabyte is not hashed in every process: the result is kept in the cache directory, in
 * identity/, together with size, times and inode of every file that was hashed, and holds as long as all of
 * them are the same. */
hd_status compiler_identify(compiler *c, diags *errors);

#endif
