/* Sources that compile, that fail and that never end, and folders that go with their test. hiprtc and clang
 * have to be there; nvrtc's tests say so and pass where the CUDA toolkit is not. */
#ifndef HEDDLE_TESTS_COMPILE_FIXTURE_H
#define HEDDLE_TESTS_COMPILE_FIXTURE_H

#include "../../runtime/compile/compile.h"
#include "../../runtime/compile/compile_log.h"
#include "../../runtime/file.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- sources ---- */

#define KERNEL "extern \"C\" __attribute__((global)) void "

static const char good[] =
    KERNEL "probe(const float *in, float *out, int n) {\n"
           "  __attribute__((shared)) float tile[256];\n"
           "  int t = __builtin_amdgcn_workitem_id_x(), i = __builtin_amdgcn_workgroup_id_x() * 256 + t;\n"
           "  tile[t] = i < n ? in[i] : 0.0f;\n"
           "  __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");\n"
           "  __builtin_amdgcn_s_barrier();\n"
           "  if (i < n) out[i] = tile[255 - t];\n"
           "}\n";
static const char other[] = KERNEL "other(int *out) { out[__builtin_amdgcn_workitem_id_x()] = 42; }\n";
static const char good_cuda[] = KERNEL "probe(float *out, int n) {\n"
                                       "  int i = blockIdx.x * 256 + threadIdx.x;\n"
                                       "  if (i < n) out[i] = 1.0f;\n"
                                       "}\n";
static const char wrong[] = KERNEL "probe(float *out) {\n"
                                   "  out[0] = undefined_thing;\n"
                                   "}\n";
/* 2^26 instantiations: minutes of time and gigabytes of memory. */
static const char endless[] = "template <int N, int M> struct f { static constexpr int v = f<N - 1, 2 * "
                              "M>::v + f<N - 1, 2 * M + 1>::v; };\n"
                              "template <int M> struct f<0, M> { static constexpr int v = M & 1; };\n" KERNEL
                              "probe(int *out) { out[0] = f<26, 1>::v; }\n";
/* An instruction of gfx11 that gfx1250 has not: LLVM's instruction selection gives up by ending the process.
 */
static const char unselectable[] =
    "typedef _Float16 half16 __attribute__((ext_vector_type(16)));\n"
    "typedef float float8 __attribute__((ext_vector_type(8)));\n" KERNEL "probe(float8 *out, half16 *in) {\n"
    "  float8 c = {};\n"
    "  out[0] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(in[0], in[1], c);\n"
    "}\n";

/* ---- helpers ---- */

static const compiler_kind amd_kinds[] = {COMPILER_HIPRTC, COMPILER_LLVM};
static const char *const amd_targets[] = {EMULATED_TARGETS};

#define COUNT(array) (sizeof array / sizeof *array)

static inline void set_up(void) {
  const char *build = getenv("HEDDLE_BUILD");
  char path[4096];
  if (!build) return;
  snprintf(path, sizeof path, "%s/heddle-compile-worker", build);
  setenv("HEDDLE_WORKER", path, 1);
}

/* Folders of the running test: each test is a process of its own. */
static char folders[8][64];
static int folder_count;

static inline int remove_one(const char *path, const struct stat *facts, int type, struct FTW *place) {
  (void)facts, (void)type, (void)place;
  remove(path);
  return 0;
}

static inline void tear_down(void) {
  while (folder_count > 0)
    nftw(folders[--folder_count], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline compiler find(compiler_kind kind, const char *target_name) {
  compiler c = {0};
  diags errors;
  diags_init(&errors);
  hd_status status = compiler_find(kind, target_find(target_name), &c, &errors);
  cr_assert_eq(status, HD_OK, "%s: %s", compiler_name(kind), errors.count ? errors.items[0].message : "");
  diags_finish(&errors);
  return c;
}

static inline bool nvrtc_is_here(void) {
  compiler c;
  diags errors;
  diags_init(&errors);
  bool here = compiler_find(COMPILER_NVRTC, target_find("sm_90"), &c, &errors) == HD_OK;
  diags_finish(&errors);
  /* Not cr_log_warn: Criterion ends with 1 after a warning. */
  if (!here) fprintf(stderr, "no libnvrtc on this machine: its tests check nothing\n");
  return here;
}

static inline compile_result compile_with(const compiler *c, const char *target_name, const char *source,
                                          const char *option, double seconds, size_t memory_bytes) {
  compile_request request = {.source = source,
                             .name = "test",
                             .target = target_find(target_name),
                             .extra_options = &option,
                             .extra_option_count = option ? 1 : 0};
  compile_limits limits = {.seconds = seconds, .memory_bytes = memory_bytes};
  compile_result result;
  compile_all(c, &request, &result, 1, 1, &limits);
  return result;
}

static inline const char *first_code(const compile_result *r) {
  return r->diags.count ? r->diags.items[0].code : "";
}
static inline const char *first_message(const compile_result *r) {
  return r->diags.count ? r->diags.items[0].message : "";
}

/* The result is declined with this code, and its message has these words. Finishes it. */
#define EXPECT_DECLINED(result, expected_code, words)                                                        \
  do {                                                                                                       \
    compile_result expect_result = (result);                                                                 \
    cr_expect_eq(expect_result.status, HD_DECLINED, "status %s", hd_status_text(expect_result.status));      \
    cr_expect_str_eq(first_code(&expect_result), expected_code, "message: %s",                               \
                     first_message(&expect_result));                                                         \
    cr_expect(strstr(first_message(&expect_result), words), "message: %s", first_message(&expect_result));   \
    cr_expect_null(expect_result.code_object);                                                               \
    compile_result_finish(&expect_result);                                                                   \
  } while (0)

/* A fresh folder for a test's own files, removed after it. */
static inline void make_folder(char out_folder[64]) {
  strcpy(out_folder, "/tmp/heddle-test-XXXXXX");
  cr_assert_not_null(mkdtemp(out_folder));
  strcpy(folders[folder_count++], out_folder);
}

static inline void write_text(const char *path, const char *content, unsigned mode) {
  cr_assert_eq(file_write_atomic(AT_FDCWD, path, mode, content, strlen(content)), HD_OK);
  chmod(path, mode);
}

static inline int count_entries(const char *folder) {
  int count = 0;
  DIR *d = opendir(folder);
  cr_assert_not_null(d);
  for (struct dirent *e; (e = readdir(d));)
    count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return count;
}

/* A program that stands in for clang: the worker runs it in its folder and expects kernel.co from it. */
static inline compiler fake_clang(const char *folder, const char *script) {
  compiler c = {.kind = COMPILER_LLVM, .identity = "fake", .version = "0"};
  snprintf(c.path, sizeof c.path, "%s/clang", folder);
  write_text(c.path, script, 0700);
  return c;
}

#endif
