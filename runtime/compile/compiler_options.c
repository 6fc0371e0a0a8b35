/* Names of the compilers and what each is told. docs/compile.md says why for every option. */
#include "compile.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TARGETS = 64 };

/* `arch` is completed with the target's name, or with `arch_suffix` besides; it comes first. */
typedef struct compiler_row {
  compiler_kind kind;
  const char *name, *arch, *arch_suffix;
  bool nvidia;
  const char *options[16];
} compiler_row;

static const compiler_row rows[] = {
    {COMPILER_AUTO, "auto", NULL, NULL, false, {NULL}},
    {COMPILER_HIPRTC,
     "hiprtc",
     "--offload-arch=",
     "",
     false,
     {"--hiprtc-no-builtin-header", "-nogpuinc", "-nogpulib", "-std=c++17", "-O3"}},
    {COMPILER_LLVM,
     "llvm",
     "--offload-arch=",
     "",
     false,
     {"-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-nostdinc",
      "-nostdinc++", "-fuse-cuid=none", "-std=c++17", "-O3"}},
    /* sm_90a, not sm_90: wgmma and its kin exist only in the architecture-specific set. */
    {COMPILER_NVRTC, "nvrtc", "-arch=", "a", true, {"-std=c++17", "-default-device"}},
};

static const compiler_row *row_of(compiler_kind kind) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == kind) return &rows[i];
  return NULL;
}

const char *compiler_name(compiler_kind k) {
  const compiler_row *row = row_of(k);
  return row ? row->name : "unknown";
}

bool compiler_parse(const char *name, compiler_kind *out_kind) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) {
      *out_kind = rows[i].kind;
      return true;
    }
  return false;
}

/* The architecture option of every compiler and target, written once. */
static char arch_options[sizeof rows / sizeof *rows][MOST_TARGETS][48];

static void write_arch_options(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t j = 0; rows[i].arch && j < target_count() && j < MOST_TARGETS; j++)
      snprintf(arch_options[i][j], sizeof arch_options[i][j], "%s%s%s", rows[i].arch, target_at(j)->name,
               rows[i].arch_suffix);
}

int compiler_options(compiler_kind kind, const target *t, const char *out_options[32]) {
  static pthread_once_t written = PTHREAD_ONCE_INIT;
  pthread_once(&written, write_arch_options);
  const compiler_row *row = row_of(kind);
  if (!row || !row->arch || row->nvidia != (t->family == FAMILY_CUDA)) return 0;
  int count = 0;
  for (size_t j = 0; j < target_count() && j < MOST_TARGETS; j++)
    if (strcmp(target_at(j)->name, t->name) == 0) out_options[count++] = arch_options[row - rows][j];
  if (count == 0) return 0;
  for (int i = 0; row->options[i]; i++)
    out_options[count++] = row->options[i];
  return count;
}
