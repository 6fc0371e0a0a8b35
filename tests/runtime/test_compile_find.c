/* The compile service: which compiler is found, and what it is known by. */
#include "compile_fixture.h"

TestSuite(compile_find, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---- discovery ---- */

Test(compile_find, hiprtc_comes_before_clang_and_clang_in_its_place) {
  cr_expect_eq(find(COMPILER_AUTO, "gfx950").kind, COMPILER_HIPRTC);
  setenv("HEDDLE_ROCM", "/nowhere", 1);
  cr_expect_eq(find(COMPILER_AUTO, "gfx950").kind, COMPILER_LLVM);
}

Test(compile_find, what_was_tried_is_told) {
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

Test(compile_find, a_compiler_is_refused_for_a_target_that_it_does_not_serve) {
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

Test(compile_find, identity_is_content_and_not_place) {
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

Test(compile_find, a_damaged_memo_is_not_believed) {
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

Test(compile_find, options_say_the_architecture_first) {
  const char *options[32];
  cr_assert(compiler_options(COMPILER_HIPRTC, target_find("gfx1250"), options) > 0);
  cr_expect_str_eq(options[0], "--offload-arch=gfx1250");
  cr_assert(compiler_options(COMPILER_NVRTC, target_find("sm_90"), options) > 0);
  cr_expect_str_eq(options[0], "-arch=sm_90a");
}

Test(compile_find, names_of_compilers_read_back) {
  compiler_kind kinds[] = {COMPILER_AUTO, COMPILER_HIPRTC, COMPILER_LLVM, COMPILER_NVRTC}, read;
  for (size_t i = 0; i < COUNT(kinds); i++)
    cr_expect(compiler_parse(compiler_name(kinds[i]), &read) && read == kinds[i]);
  cr_expect_not(compiler_parse("gcc", &read));
}
