/* The compile service: what compiles, and every way in which a compile can fail, provoked for real, with the
 * real compilers. */
#include "compile_fixture.h"

TestSuite(compile, .init = set_up, .fini = tear_down, .timeout = 120);

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
