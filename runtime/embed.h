/* Kernels as files that a build system takes: a C file for a program, a bundle for HIP. Pure: text and bytes
 * from what was built; the same input gives the same bytes, with no path, date or machine in them. */
#ifndef HEDDLE_EMBED_H
#define HEDDLE_EMBED_H

#include "build.h"

/* A spec whose kernels are embedded. */
typedef struct embed_spec {
  const char *name, *yaml;
  size_t length;
} embed_spec;

/* A kernel that was built. */
typedef struct embed_kernel {
  const char *name; /* of its spec, for comments */
  const cache_entry *entry;
  const char *compiler;
} embed_kernel;

/* Whether `symbol` may name an object in C. */
bool embed_symbol_fits(const char *symbol);

/* A C file that defines `const hd_embedded SYMBOL` (heddle.h), with external linkage. */
void embed_write_c(const char *symbol, const embed_spec *specs, int spec_count, const embed_kernel *kernels,
                   int kernel_count, text *out);

/* clang's offload bundle ("ClangOffloadBundler" in LLVM's documentation), which hipModuleLoad takes: one code
 * object for each target, page-aligned, behind an empty one for the host. HD_INVALID with "embed.bundle" for
 * a target that HIP doesn't have, or two of one. */
hd_status embed_write_bundle(const cache_entry *const *entries, int count, text *out, diags *errors);

#endif
