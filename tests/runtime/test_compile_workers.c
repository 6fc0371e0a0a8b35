/* The compile service: workers that misbehave, and hosts that kill, ignore or confuse them. */
#include "compile_fixture.h"

TestSuite(compile_workers, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---- workers that misbehave ---- */

Test(compile_workers, a_killed_worker_is_a_diagnostic) {
  char folder[64];
  make_folder(folder);
  compiler c = fake_clang(folder, "#!/bin/sh\nkill -9 $PPID\nsleep 60\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.crashed", "signal 9");
}

Test(compile_workers, what_is_no_code_object_is_refused) {
  char folder[64];
  make_folder(folder);
  compiler c = fake_clang(folder, "#!/bin/sh\necho this is no ELF file > kernel.co\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.malformed", "no code object");
  c = fake_clang(folder, "#!/bin/sh\nexit 0\n");
  EXPECT_DECLINED(compile_with(&c, "gfx950", good, NULL, 20, 0), "compile.malformed", "0 bytes");
}

Test(compile_workers, code_for_another_target_is_refused) {
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
Test(compile_workers, a_timeout_leaves_no_process_behind) {
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
Test(compile_workers, a_killed_host_leaves_no_process_behind) {
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
Test(compile_workers, a_killed_host_leaves_no_sleeping_process_behind) {
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
Test(compile_workers, an_abandoned_folder_is_removed_and_one_in_use_is_not) {
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

Test(compile_workers, a_worker_of_another_build_is_told_apart) {
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

Test(compile_workers, a_missing_worker_is_an_answer) {
  setenv("HEDDLE_WORKER", "/nowhere/worker", 1);
  compiler c = {.kind = COMPILER_LLVM, .path = "/bin/true"};
  compile_result r = compile_with(&c, "gfx950", good, NULL, 20, 0);
  cr_expect_eq(r.status, HD_UNAVAILABLE);
  cr_expect(strstr(first_message(&r), "/nowhere/worker"));
  compile_result_finish(&r);
}

Test(compile_workers, a_library_that_does_not_load_is_an_answer) {
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
Test(compile_workers, the_environment_does_not_reach_the_compiler) {
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

Test(compile_workers, leaves_no_descriptor_folder_or_zombie) {
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

Test(compile_workers, works_in_a_host_that_ignores_its_children) {
  compiler c = find(COMPILER_LLVM, "gfx950");
  signal(SIGCHLD, SIG_IGN);
  compile_result r = compile_with(&c, "gfx950", good, NULL, 0, 0);
  cr_expect_eq(r.status, HD_OK, "%s", first_message(&r));
  compile_result_finish(&r);
}

Test(compile_workers, works_in_a_host_without_standard_streams) {
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
