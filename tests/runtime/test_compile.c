/* The compile service: every way in which a compile can fail is provoked for real, with the real compilers.
 * hiprtc and clang have to be there; nvrtc's tests say so and pass where the CUDA toolkit is not. */
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
static const char *const amd_targets[] = {"gfx942", "gfx950", "gfx1201", "gfx1250"};

#define COUNT(array) (sizeof array / sizeof *array)

static void set_up(void) {
  const char *build = getenv("HEDDLE_BUILD");
  char path[4096];
  if (!build) return;
  snprintf(path, sizeof path, "%s/heddle-compile-worker", build);
  setenv("HEDDLE_WORKER", path, 1);
}

/* Folders of the running test: each test is a process of its own. */
static char folders[8][64];
static int folder_count;

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *place) {
  (void)facts, (void)type, (void)place;
  remove(path);
  return 0;
}

static void tear_down(void) {
  while (folder_count > 0)
    nftw(folders[--folder_count], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(compile, .init = set_up, .fini = tear_down, .timeout = 120);

static compiler find(compiler_kind kind, const char *target_name) {
  compiler c = {0};
  diags errors;
  diags_init(&errors);
  hd_status status = compiler_find(kind, target_find(target_name), &c, &errors);
  cr_assert_eq(status, HD_OK, "%s: %s", compiler_name(kind), errors.count ? errors.items[0].message : "");
  diags_finish(&errors);
  return c;
}

static bool nvrtc_is_here(void) {
  compiler c;
  diags errors;
  diags_init(&errors);
  bool here = compiler_find(COMPILER_NVRTC, target_find("sm_90"), &c, &errors) == HD_OK;
  diags_finish(&errors);
  /* Not cr_log_warn: Criterion ends with 1 after a warning. */
  if (!here) fprintf(stderr, "no libnvrtc on this machine: its tests check nothing\n");
  return here;
}

static compile_result compile_with(const compiler *c, const char *target_name, const char *source,
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

static const char *first_code(const compile_result *r) {
  return r->diags.count ? r->diags.items[0].code : "";
}
static const char *first_message(const compile_result *r) {
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
static void make_folder(char out_folder[64]) {
  strcpy(out_folder, "/tmp/heddle-test-XXXXXX");
  cr_assert_not_null(mkdtemp(out_folder));
  strcpy(folders[folder_count++], out_folder);
}

static void write_text(const char *path, const char *content, unsigned mode) {
  cr_assert_eq(file_write_atomic(AT_FDCWD, path, mode, content, strlen(content)), HD_OK);
  chmod(path, mode);
}

static int count_entries(const char *folder) {
  int count = 0;
  DIR *d = opendir(folder);
  cr_assert_not_null(d);
  for (struct dirent *e; (e = readdir(d));)
    count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return count;
}

/* A program that stands in for clang: the worker runs it in its folder and expects kernel.co from it. */
static compiler fake_clang(const char *folder, const char *script) {
  compiler c = {.kind = COMPILER_LLVM, .identity = "fake", .version = "0"};
  snprintf(c.path, sizeof c.path, "%s/clang", folder);
  write_text(c.path, script, 0700);
  return c;
}

/* ---- what compiles ---- */

Test(compile, compiles_for_every_amd_target_with_hiprtc_and_with_clang) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    for (size_t t = 0; t < COUNT(amd_targets); t++) {
      compiler c = find(amd_kinds[k], amd_targets[t]);
      compile_result r = compile_with(&c, amd_targets[t], good, NULL, 0, 0);
      cr_expect_eq(r.status, HD_OK, "%s %s: %s", compiler_name(c.kind), amd_targets[t], first_message(&r));
      cr_expect(r.code_object_size > 64);
      cr_expect(r.seconds > 0 && r.wall_seconds >= r.seconds);
      cr_expect(memmem(r.code_object, r.code_object_size, "probe.kd", 8), "no kernel descriptor");
      compile_result_finish(&r);
    }
  }
}

Test(compile, compiles_for_nvidia_with_nvrtc) {
  if (!nvrtc_is_here()) return;
  compiler c = find(COMPILER_AUTO, "sm_90");
  cr_assert_eq(c.kind, COMPILER_NVRTC);
  compile_result r = compile_with(&c, "sm_90", good_cuda, NULL, 0, 0);
  cr_assert_eq(r.status, HD_OK, "%s", first_message(&r));
  cr_expect(memcmp(r.code_object, "\177ELF", 4) == 0);
  compile_result_finish(&r);
}

/* Eight requests, each its own source and target: bytes do not depend on how many workers there are, on which
 * one served a request or on what it had served before. */
Test(compile, parallel_gives_the_bytes_of_serial) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    compile_request requests[8];
    compile_result serial[8], parallel[8];
    for (int i = 0; i < 8; i++)
      requests[i] = (compile_request){
          .source = i % 2 ? other : good, .name = "test", .target = target_find(amd_targets[i / 2])};
    compile_all(&c, requests, serial, 8, 1, NULL);
    compile_all(&c, requests, parallel, 8, 3, NULL);
    for (int i = 0; i < 8; i++) {
      cr_assert_eq(serial[i].status, HD_OK, "%s", first_message(&serial[i]));
      cr_assert_eq(parallel[i].status, HD_OK, "%s", first_message(&parallel[i]));
      cr_expect_eq(serial[i].code_object_size, parallel[i].code_object_size);
      cr_expect(memcmp(serial[i].code_object, parallel[i].code_object, serial[i].code_object_size) == 0);
      compile_result_finish(&serial[i]);
      compile_result_finish(&parallel[i]);
    }
  }
}

/* A failure costs its own request only, and a request after it in the same worker's turn gets its own bytes.
 */
Test(compile, a_crash_costs_one_request) {
  compiler c = find(COMPILER_HIPRTC, "gfx1250");
  const target *t = target_find("gfx1250");
  compile_request requests[] = {{.source = good, .name = "a", .target = t},
                                {.source = unselectable, .name = "b", .target = t},
                                {.source = wrong, .name = "c", .target = t},
                                {.source = good, .name = "d", .target = t}};
  compile_result results[4];
  compile_all(&c, requests, results, 4, 1, NULL);
  cr_expect_eq(results[0].status, HD_OK);
  cr_expect_str_eq(first_code(&results[1]), "compile.crashed");
  cr_expect_str_eq(first_code(&results[2]), "compile.rejected");
  cr_assert_eq(results[3].status, HD_OK);
  cr_expect(memcmp(results[0].code_object, results[3].code_object, results[0].code_object_size) == 0);
  for (int i = 0; i < 4; i++)
    compile_result_finish(&results[i]);
}

/* ---- what does not ---- */

Test(compile, a_source_error_is_quoted_with_its_place) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    compile_result r = compile_with(&c, "gfx950", wrong, NULL, 0, 0);
    cr_expect(r.log && strstr(r.log, "undefined_thing"));
    cr_expect(r.log && !strstr(r.log, "/tmp"), "the log names the private folder: %s", r.log);
    EXPECT_DECLINED(
        r, "compile.rejected",
        "test for gfx950: kernel.hip:2:12: error: use of undeclared identifier 'undefined_thing'");
  }
}

Test(compile, an_unknown_flag_is_not_a_success) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    EXPECT_DECLINED(compile_with(&c, "gfx950", good, "--no-such-flag", 0, 0), "compile.option",
                    "--no-such-flag");
  }
}

Test(compile, two_architectures_are_refused) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    EXPECT_DECLINED(compile_with(&c, "gfx950", good, "--offload-arch=gfx942", 0, 0), "compile.option",
                    "cannot specify -o");
  }
}

Test(compile, a_failure_without_a_reason_gets_one) {
  char folder[64];
  make_folder(folder);
  compiler c = fake_clang(folder, "#!/bin/sh\nexit 6\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.silent",
                  "code 6 and gave no reason");
}

Test(compile, an_endless_compile_is_stopped) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    compile_result r = compile_with(&c, "gfx950", endless, NULL, 1.0, 0);
    cr_expect(r.wall_seconds < 10, "took %g s", r.wall_seconds);
    EXPECT_DECLINED(r, "compile.timeout", "1 seconds");
  }
}

Test(compile, a_greedy_compile_hits_the_memory_limit) {
  for (size_t k = 0; k < COUNT(amd_kinds); k++) {
    compiler c = find(amd_kinds[k], "gfx950");
    EXPECT_DECLINED(compile_with(&c, "gfx950", endless, NULL, 60, (size_t)64 << 20), "compile.memory",
                    "64 MiB");
  }
}

Test(compile, a_compiler_that_ends_its_process_is_named_with_its_signal) {
  compiler hiprtc = find(COMPILER_HIPRTC, "gfx1250"), llvm = find(COMPILER_LLVM, "gfx1250");
  EXPECT_DECLINED(compile_with(&hiprtc, "gfx1250", unselectable, NULL, 0, 0), "compile.crashed", "signal 6");
  compile_result r = compile_with(&hiprtc, "gfx1250", unselectable, NULL, 0, 0);
  cr_expect(strstr(first_message(&r), "Cannot select"), "%s", first_message(&r));
  compile_result_finish(&r);
  EXPECT_DECLINED(compile_with(&llvm, "gfx1250", unselectable, NULL, 0, 0), "compile.crashed",
                  "Cannot select");
}

Test(compile, nvrtc_fails_in_the_same_words) {
  if (!nvrtc_is_here()) return;
  compiler c = find(COMPILER_NVRTC, "sm_90");
  EXPECT_DECLINED(compile_with(&c, "sm_90", wrong, NULL, 0, 0), "compile.rejected", "kernel.hip(2): error");
  EXPECT_DECLINED(compile_with(&c, "sm_90", good_cuda, "--no-such-flag", 0, 0), "compile.option",
                  "--no-such-flag");
  EXPECT_DECLINED(compile_with(&c, "sm_90", endless, NULL, 1.0, 0), "compile.timeout", "1 seconds");
  EXPECT_DECLINED(compile_with(&c, "sm_90", endless, NULL, 60, (size_t)64 << 20), "compile.memory", "64 MiB");
}

/* ---- workers that misbehave ---- */

Test(compile, a_killed_worker_is_a_diagnostic) {
  char folder[64];
  make_folder(folder);
  compiler c = fake_clang(folder, "#!/bin/sh\nkill -9 $PPID\nsleep 60\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.crashed", "signal 9");
}

Test(compile, what_is_no_code_object_is_refused) {
  char folder[64];
  make_folder(folder);
  compiler c = fake_clang(folder, "#!/bin/sh\necho this is no ELF file > kernel.co\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.malformed", "no code object");
  c = fake_clang(folder, "#!/bin/sh\nexit 0\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.malformed", "0 bytes");
}

Test(compile, code_for_another_target_is_refused) {
  compiler c = find(COMPILER_LLVM, "gfx942");
  compile_result r = compile_with(&c, "gfx942", good, NULL, 0, 0);
  cr_assert_eq(r.status, HD_OK);
  char folder[64], path[128], script[256];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/gfx942.co", folder);
  cr_assert_eq(file_write_atomic(AT_FDCWD, path, 0600, r.code_object, r.code_object_size), HD_OK);
  compile_result_finish(&r);
  snprintf(script, sizeof script, "#!/bin/sh\ncp %s kernel.co\n", path);
  compiler fake = fake_clang(folder, script);
  EXPECT_DECLINED(compile_with(&fake, "gfx950", good, NULL, 20, 0), "compile.malformed", "this target");
  r = compile_with(&fake, "gfx942", good, NULL, 20, 0);
  cr_expect_eq(r.status, HD_OK);
  compile_result_finish(&r);
}

/* The process whose number a script wrote to `path`. */
static pid_t read_pid(const char *path) {
  char *bytes;
  size_t size;
  cr_assert_eq(file_read(AT_FDCWD, path, 100, &bytes, &size), HD_OK);
  pid_t pid = (pid_t)atoi(bytes);
  free(bytes);
  cr_assert(pid > 1);
  return pid;
}

/* A process that ended has no executable any more, even before somebody reaps it. */
static bool ends_within(pid_t pid, double seconds) {
  char executable[64], name[256];
  snprintf(executable, sizeof executable, "/proc/%d/exe", (int)pid);
  for (int i = 0; i < seconds * 100; i++) {
    if (readlink(executable, name, sizeof name) < 0) return true;
    usleep(10000);
  }
  return false;
}

/* The whole process group goes, not the worker alone. */
Test(compile, a_timeout_leaves_no_process_behind) {
  char folder[64], path[128], script[256];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/pid", folder);
  snprintf(script, sizeof script, "#!/bin/sh\nsleep 300 &\necho $! > %s\nwait\n", path);
  compiler c = fake_clang(folder, script);
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 1.0, 0), "compile.timeout", "1 seconds");
  cr_expect(ends_within(read_pid(path), 2));
}

/* Nobody is left to keep the time: the worker goes with its parent, an endless clang after its processor
 * time. */
Test(compile, a_killed_host_leaves_no_process_behind) {
  char folder[64], path[128], script[256];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/pid", folder);
  snprintf(script, sizeof script, "#!/bin/sh\necho $$ $PPID > %s\nwhile :; do :; done\n", path);
  compiler c = fake_clang(folder, script);
  setenv("TMPDIR", folder, 1); /* what nobody is left to remove */
  pid_t host = fork();
  if (host == 0) {
    compile_with(&c, "gfx950", good, NULL, 2.0, 0);
    _exit(0);
  }
  for (int i = 0; i < 100 && access(path, R_OK) != 0; i++)
    usleep(10000);
  usleep(50000);
  kill(host, SIGKILL);
  waitpid(host, NULL, 0);
  cr_expect(ends_within(read_pid(path), 30));
}

/* Without using any processor time, too, and with what the compiler itself started. */
Test(compile, a_killed_host_leaves_no_sleeping_process_behind) {
  char folder[64], path[128], script[512];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/pid", folder);
  snprintf(script, sizeof script, "#!/bin/sh\nsleep 300 &\necho $! > %s.new\nmv %s.new %s\nwait\n", path,
           path, path);
  compiler c = fake_clang(folder, script);
  setenv("TMPDIR", folder, 1);
  pid_t host = fork();
  if (host == 0) {
    compile_with(&c, "gfx950", good, NULL, 60.0, 0);
    _exit(0);
  }
  for (int i = 0; i < 1000 && access(path, R_OK) != 0; i++)
    usleep(10000);
  kill(host, SIGKILL);
  waitpid(host, NULL, 0);
  pid_t sleeper = read_pid(path);
  cr_expect(ends_within(sleeper, 10));
  kill(sleeper, SIGKILL);
}

/* A killed host can't remove its folder: a later one does, once it is old and nobody holds it. */
Test(compile, an_abandoned_folder_is_removed_and_one_in_use_is_not) {
  char folder[64], abandoned[128], file[192], in_use[128], young[128];
  make_folder(folder);
  snprintf(abandoned, sizeof abandoned, "%s/heddle-compile-aaaaaa", folder);
  snprintf(in_use, sizeof in_use, "%s/heddle-compile-bbbbbb", folder);
  snprintf(young, sizeof young, "%s/heddle-compile-cccccc", folder);
  snprintf(file, sizeof file, "%s/kernel.hip", abandoned);
  cr_assert(mkdir(abandoned, 0700) == 0 && mkdir(in_use, 0700) == 0 && mkdir(young, 0700) == 0);
  write_text(file, "left behind", 0600);
  int held = open(in_use, O_RDONLY | O_DIRECTORY);
  cr_assert(held >= 0 && flock(held, LOCK_EX) == 0);
  struct timespec long_ago[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
  cr_assert(utimensat(AT_FDCWD, abandoned, long_ago, 0) == 0 &&
            utimensat(AT_FDCWD, in_use, long_ago, 0) == 0);
  setenv("TMPDIR", folder, 1);
  compiler c = fake_clang(folder, "#!/bin/sh\nexit 1\n");
  compile_result r = compile_with(&c, "gfx950", good, NULL, 20, 0);
  compile_result_finish(&r);
  cr_expect(access(abandoned, F_OK) != 0);
  cr_expect(access(in_use, F_OK) == 0);
  cr_expect(access(young, F_OK) == 0);
  close(held);
}

Test(compile, a_worker_of_another_build_is_told_apart) {
  char folder[64], path[128];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/worker", folder);
  write_text(path, "#!/bin/sh\nexec cat\n", 0700);
  setenv("HEDDLE_WORKER", path, 1);
  compiler c = {.kind = COMPILER_LLVM, .path = "/bin/true"};
  compile_result r = compile_with(&c, "gfx950", good, NULL, 20, 0);
  cr_expect_eq(r.status, HD_INTERNAL);
  cr_expect_str_eq(first_code(&r), "compile.worker");
  compile_result_finish(&r);
}

Test(compile, a_missing_worker_is_an_answer) {
  setenv("HEDDLE_WORKER", "/nowhere/worker", 1);
  compiler c = {.kind = COMPILER_LLVM, .path = "/bin/true"};
  compile_result r = compile_with(&c, "gfx950", good, NULL, 20, 0);
  cr_expect_eq(r.status, HD_UNAVAILABLE);
  cr_expect(strstr(first_message(&r), "/nowhere/worker"));
  compile_result_finish(&r);
}

Test(compile, a_library_that_does_not_load_is_an_answer) {
  char folder[64];
  make_folder(folder);
  compiler c = {.kind = COMPILER_HIPRTC};
  snprintf(c.path, sizeof c.path, "%s/libhiprtc.so.7", folder);
  write_text(c.path, "this is no library", 0600);
  compile_result r = compile_with(&c, "gfx950", good, NULL, 20, 0);
  cr_expect_eq(r.status, HD_UNAVAILABLE);
  cr_expect_str_eq(first_code(&r), "compile.library");
  compile_result_finish(&r);
}

/* ---- the host's surroundings ---- */

/* Each of these changes the code, or the process, when it reaches the compiler. */
Test(compile, the_environment_does_not_reach_the_compiler) {
  static const char *const switches[][2] = {
      {"HIPRTC_COMPILE_OPTIONS_APPEND", "-O0"},
      {"AMD_COMGR_DRIVER_OPTIONS_APPEND", "-O0"},
      {"CCC_OVERRIDE_OPTIONS", "# +-O0"},
      {"NVRTC_APPEND_FLAGS", "-G"},
      {"NVRTC_PREPEND_FLAGS", "-G"},
      {"AMD_COMGR_SAVE_TEMPS", "1"},
      {"LD_PRELOAD", "/nowhere/libnothing.so"},
      {"CPLUS_INCLUDE_PATH", "/nowhere"},
      {"AMD_COMGR_CACHE", "1"},
      {"LC_ALL", "de_DE.UTF-8"},
  };
  compiler_kind kinds[] = {COMPILER_HIPRTC, COMPILER_LLVM, COMPILER_NVRTC};
  for (size_t k = 0; k < COUNT(kinds); k++) {
    if (kinds[k] == COMPILER_NVRTC && !nvrtc_is_here()) continue;
    const char *name = kinds[k] == COMPILER_NVRTC ? "sm_90" : "gfx950";
    const char *source = kinds[k] == COMPILER_NVRTC ? good_cuda : good;
    for (size_t i = 0; i < COUNT(switches); i++)
      unsetenv(switches[i][0]);
    compiler c = find(kinds[k], name);
    compile_result plain = compile_with(&c, name, source, NULL, 0, 0);
    for (size_t i = 0; i < COUNT(switches); i++)
      setenv(switches[i][0], switches[i][1], 1);
    compile_result switched = compile_with(&c, name, source, NULL, 0, 0);
    cr_assert_eq(plain.status, HD_OK);
    cr_assert_eq(switched.status, HD_OK, "%s", first_message(&switched));
    cr_expect_eq(plain.code_object_size, switched.code_object_size);
    cr_expect(memcmp(plain.code_object, switched.code_object, plain.code_object_size) == 0);
    cr_expect_null(switched.log, "%s", switched.log);
    compile_result_finish(&plain);
    compile_result_finish(&switched);
  }
}

static volatile sig_atomic_t children_signalled;
static void on_child(int signal_number) {
  children_signalled = signal_number;
}

Test(compile, leaves_no_descriptor_folder_or_zombie) {
  char folder[64];
  make_folder(folder);
  compiler c = find(COMPILER_HIPRTC, "gfx950");
  setenv("TMPDIR", folder, 1);
  signal(SIGCHLD, on_child);
  int before = count_entries("/proc/self/fd");
  const char *sources[] = {good, wrong, endless};
  for (size_t i = 0; i < COUNT(sources); i++) {
    compile_result r = compile_with(&c, "gfx950", sources[i], NULL, 2, 0);
    compile_result_finish(&r);
  }
  cr_expect_eq(count_entries("/proc/self/fd"), before);
  cr_expect_eq(count_entries(folder), 0);
  cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

Test(compile, works_in_a_host_that_ignores_its_children) {
  compiler c = find(COMPILER_LLVM, "gfx950");
  signal(SIGCHLD, SIG_IGN);
  compile_result r = compile_with(&c, "gfx950", good, NULL, 0, 0);
  cr_expect_eq(r.status, HD_OK, "%s", first_message(&r));
  compile_result_finish(&r);
}

Test(compile, works_in_a_host_without_standard_streams) {
  compiler c = find(COMPILER_HIPRTC, "gfx950");
  int kept[3];
  for (int i = 0; i < 3; i++)
    kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
  for (int i = 0; i < 3; i++)
    close(i);
  compile_result r = compile_with(&c, "gfx950", good, NULL, 0, 0);
  for (int i = 0; i < 3; i++)
    if (kept[i] >= 0) dup2(kept[i], i);
  cr_expect_eq(r.status, HD_OK, "%s", first_message(&r));
  compile_result_finish(&r);
}

/* ---- discovery ---- */

Test(compile, hiprtc_comes_before_clang_and_clang_in_its_place) {
  cr_expect_eq(find(COMPILER_AUTO, "gfx950").kind, COMPILER_HIPRTC);
  setenv("HEDDLE_ROCM", "/nowhere", 1);
  cr_expect_eq(find(COMPILER_AUTO, "gfx950").kind, COMPILER_LLVM);
}

Test(compile, what_was_tried_is_told) {
  setenv("HEDDLE_ROCM", "/nowhere", 1);
  compiler c;
  diags errors;
  diags_init(&errors);
  cr_expect_eq(compiler_find(COMPILER_HIPRTC, target_find("gfx950"), &c, &errors), HD_UNAVAILABLE);
  cr_assert_eq(errors.count, 1);
  cr_expect_str_eq(errors.items[0].code, "compile.unavailable");
  cr_expect(strstr(errors.items[0].message, "/nowhere"));
  cr_expect(strstr(errors.items[0].message, "fetch-rocm.sh"));
  diags_finish(&errors);
}

Test(compile, a_compiler_is_refused_for_a_target_that_it_does_not_serve) {
  compiler c;
  diags errors;
  diags_init(&errors);
  cr_expect_eq(compiler_find(COMPILER_HIPRTC, target_find("sm_90"), &c, &errors), HD_UNAVAILABLE);
  cr_expect_eq(compiler_find(COMPILER_NVRTC, target_find("gfx950"), &c, &errors), HD_UNAVAILABLE);
  cr_expect_eq(errors.count, 2);
  diags_finish(&errors);
  const char *options[32];
  cr_expect_eq(compiler_options(COMPILER_NVRTC, target_find("gfx950"), options), 0);
  cr_expect_eq(compiler_options(COMPILER_AUTO, target_find("gfx950"), options), 0);
}

/* A made-up ROCm whose library is `content`. */
static void fake_rocm(const char *folder, const char *content) {
  char path[128];
  snprintf(path, sizeof path, "%s/lib", folder);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/lib/libhiprtc.so.7.1.2", folder);
  write_text(path, content, 0600);
}

static compiler find_fake_rocm(const char *folder) {
  setenv("HEDDLE_ROCM", folder, 1);
  /* Away and back: the search is remembered for as long as the environment stays the same. */
  setenv("ROCM_PATH", "/nowhere", 1);
  find(COMPILER_LLVM, "gfx950");
  unsetenv("ROCM_PATH");
  return find(COMPILER_HIPRTC, "gfx950");
}

Test(compile, identity_is_content_and_not_place) {
  char cache[64], here[64], there[64];
  make_folder(cache), make_folder(here), make_folder(there);
  setenv("HEDDLE_CACHE_DIR", cache, 1);
  fake_rocm(here, "library one");
  fake_rocm(there, "library one");
  compiler a = find_fake_rocm(here), b = find_fake_rocm(there);
  cr_expect_str_eq(a.version, "7.1.2");
  cr_expect_str_eq(a.identity, b.identity);
  cr_expect_str_neq(a.path, b.path);
  cr_expect_null(strchr(a.identity, '/'));
  /* Same name, same size, other bytes. */
  fake_rocm(there, "library two");
  setenv("CUDA_HOME", "/nowhere", 1);
  compiler changed = find_fake_rocm(there);
  cr_expect_str_neq(changed.identity, b.identity);
}

Test(compile, a_damaged_memo_is_not_believed) {
  char cache[64], rocm[64], folder[128], path[512];
  make_folder(cache), make_folder(rocm);
  setenv("HEDDLE_CACHE_DIR", cache, 1);
  fake_rocm(rocm, "library");
  compiler a = find_fake_rocm(rocm);
  snprintf(folder, sizeof folder, "%s/identity", cache);
  DIR *d = opendir(folder);
  cr_assert_not_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') write_text(path, "heddle-compiler-identity 1\n7\nhiprtc 7 sha256:0\n", 0600);
  }
  closedir(d);
  setenv("CUDA_HOME", "/nowhere", 1); /* forgets what this process remembers */
  compiler b = find(COMPILER_HIPRTC, "gfx950");
  cr_expect_str_eq(a.identity, b.identity);
}

Test(compile, options_say_the_architecture_first) {
  const char *options[32];
  cr_assert(compiler_options(COMPILER_HIPRTC, target_find("gfx1250"), options) > 0);
  cr_expect_str_eq(options[0], "--offload-arch=gfx1250");
  cr_assert(compiler_options(COMPILER_NVRTC, target_find("sm_90"), options) > 0);
  cr_expect_str_eq(options[0], "-arch=sm_90a");
}

Test(compile, names_of_compilers_read_back) {
  compiler_kind kinds[] = {COMPILER_AUTO, COMPILER_HIPRTC, COMPILER_LLVM, COMPILER_NVRTC}, read;
  for (size_t i = 0; i < COUNT(kinds); i++)
    cr_expect(compiler_parse(compiler_name(kinds[i]), &read) && read == kinds[i]);
  cr_expect_not(compiler_parse("gcc", &read));
}

/* ---- logs ---- */

Test(compile, a_log_loses_the_private_folder) {
  char log[] =
      "/tmp/h-1/comgr-12-0-a/input/kernel.hip:2:3: error: no\nsee /tmp/h-1/kernel.log and /tmp/h-12/x\n";
  compile_log_clean(log, "/tmp/h-1");
  cr_expect_str_eq(log, "kernel.hip:2:3: error: no\nsee kernel.log and /tmp/h-12/x\n");
}

Test(compile, many_errors_are_counted) {
  text log;
  diags errors;
  text_init(&log);
  diags_init(&errors);
  for (int i = 1; i <= 9; i++)
    text_addf(&log, "kernel.hip:%d:1: error: wrong\n", i);
  cr_expect_eq(compile_log_errors(text_string(&log), "compile.rejected", "k", &errors), 9);
  cr_expect_eq(errors.count, 6);
  cr_expect_eq(errors.items[5].severity, DIAG_NOTE);
  cr_expect(strstr(errors.items[5].message, "4 more"));
  diags_finish(&errors);
  text_finish(&log);
}
