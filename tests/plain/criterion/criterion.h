/* The part of Criterion that the tests use, for builds with ThreadSanitizer: Criterion's own runner maps memory
 * where that sanitizer keeps its shadow, and does not start. Every test runs in a process of its own, as there. */
#ifndef HEDDLE_PLAIN_CRITERION_H
#define HEDDLE_PLAIN_CRITERION_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Not <unistd.h>: tests have functions of its names. */
pid_t fork(void);
pid_t waitpid(pid_t pid, int *status, int options);

struct criterion_test_params {
  size_t size;
  void *params;
  size_t length;
};
#define cr_make_param_array(type, array, count) ((struct criterion_test_params){sizeof(type), array, count})

typedef struct plain_options {
  void (*init)(void), (*fini)(void);
  double timeout; /* the test run's own has to do */
} plain_options;

typedef struct plain_test {
  const char *suite, *name;
  void (*run)(void *parameter);
  struct criterion_test_params (*parameters)(void); /* NULL: runs once */
  plain_options options;
  struct plain_test *next;
} plain_test;

__attribute__((weak)) plain_test *plain_tests;
__attribute__((weak)) jmp_buf plain_out; /* where a failed assertion leaves the test */
__attribute__((weak)) int plain_failures;

static inline void plain_register(plain_test *test) {
  test->next = plain_tests;
  plain_tests = test;
}

__attribute__((format(printf, 6, 7))) static inline void plain_check(bool fatal, bool holds, const char *file,
                                                                     int line, const char *text,
                                                                     const char *format, ...) {
  if (holds) return;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s:%d: %s: ", file, line, text);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  ++plain_failures;
  if (fatal) longjmp(plain_out, 1);
}

#define PLAIN(fatal, holds, text, ...) plain_check(fatal, holds, __FILE__, __LINE__, text, " " __VA_ARGS__)
#define PLAIN_COMPARE(fatal, a, operator, b, ...) PLAIN(fatal, (a) operator (b), #a " " #operator " " #b, __VA_ARGS__)

#define cr_log_warn(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

#define cr_assert(condition, ...) PLAIN(true, !!(condition), #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) PLAIN(true, !(condition), "not " #condition, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN(true, false, "failed", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_COMPARE(true, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_COMPARE(true, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_COMPARE(true, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_COMPARE(true, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_COMPARE(true, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_COMPARE(true, a, >=, b, __VA_ARGS__)
#define cr_assert_null(a, ...) PLAIN_COMPARE(true, a, ==, NULL, __VA_ARGS__)
#define cr_assert_not_null(a, ...) PLAIN_COMPARE(true, a, !=, NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN(true, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) PLAIN(true, strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) PLAIN(true, memcmp(a, b, size) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, within, ...) PLAIN(true, fabs((double)(a) - (double)(b)) <= (within), #a " is " #b, __VA_ARGS__)

#define cr_expect(condition, ...) PLAIN(false, !!(condition), #condition, __VA_ARGS__)
#define cr_expect_not(condition, ...) PLAIN(false, !(condition), "not " #condition, __VA_ARGS__)
#define cr_expect_fail(...) PLAIN(false, false, "failed", __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_COMPARE(false, a, ==, b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) PLAIN_COMPARE(false, a, !=, b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_COMPARE(false, a, <, b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) PLAIN_COMPARE(false, a, <=, b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_COMPARE(false, a, >, b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) PLAIN_COMPARE(false, a, >=, b, __VA_ARGS__)
#define cr_expect_null(a, ...) PLAIN_COMPARE(false, a, ==, NULL, __VA_ARGS__)
#define cr_expect_not_null(a, ...) PLAIN_COMPARE(false, a, !=, NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) PLAIN(false, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) PLAIN(false, strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...) PLAIN(false, memcmp(a, b, size) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, within, ...) PLAIN(false, fabs((double)(a) - (double)(b)) <= (within), #a " is " #b, __VA_ARGS__)

/* A suite's options hold for its tests beside their own; a suite has them under the name of no test. */
#define TestSuite(suite_name, ...)                                                                           \
  __attribute__((constructor)) static void plain_suite_##suite_name(void) {                                  \
    static plain_test one = {.suite = #suite_name, .options = {__VA_ARGS__}};                                \
    plain_register(&one);                                                                                    \
  }                                                                                                          \
  struct plain_semicolon

#define Test(suite_name, test_name, ...)                                                                     \
  static void plain_body_##suite_name##_##test_name(void);                                                   \
  static void plain_run_##suite_name##_##test_name(void *parameter) {                                        \
    (void)parameter;                                                                                         \
    plain_body_##suite_name##_##test_name();                                                                 \
  }                                                                                                          \
  __attribute__((constructor)) static void plain_add_##suite_name##_##test_name(void) {                      \
    static plain_test one = {.suite = #suite_name,                                                           \
                             .name = #test_name,                                                             \
                             .run = plain_run_##suite_name##_##test_name,                                    \
                             .options = {__VA_ARGS__}};                                                      \
    plain_register(&one);                                                                                    \
  }                                                                                                          \
  static void plain_body_##suite_name##_##test_name(void)

#define ParameterizedTestParameters(suite_name, test_name)                                                   \
  static struct criterion_test_params plain_parameters_##suite_name##_##test_name(void)
#define ParameterizedTest(parameter, suite_name, test_name, ...)                                             \
  static void plain_body_##suite_name##_##test_name(parameter);                                              \
  static void plain_run_##suite_name##_##test_name(void *one_parameter) {                                    \
    plain_body_##suite_name##_##test_name(one_parameter);                                                    \
  }                                                                                                          \
  __attribute__((constructor)) static void plain_add_##suite_name##_##test_name(void) {                      \
    static plain_test one = {.suite = #suite_name,                                                           \
                             .name = #test_name,                                                             \
                             .run = plain_run_##suite_name##_##test_name,                                    \
                             .parameters = plain_parameters_##suite_name##_##test_name,                      \
                             .options = {__VA_ARGS__}};                                                      \
    plain_register(&one);                                                                                    \
  }                                                                                                          \
  static void plain_body_##suite_name##_##test_name(parameter)

static inline void plain_hook(const plain_test *test, bool start) {
  for (const plain_test *other = plain_tests; other; other = other->next) {
    if (other != test && (other->name || strcmp(other->suite, test->suite) != 0)) continue;
    void (*hook)(void) = start ? other->options.init : other->options.fini;
    if (hook) hook();
  }
}

/* True when it passed. What a sanitizer found shows in the exit status. */
static inline bool plain_run(const plain_test *test, void *parameter) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    plain_hook(test, true);
    if (setjmp(plain_out) == 0) test->run(parameter);
    plain_hook(test, false);
    exit(plain_failures ? 1 : 0);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

__attribute__((weak)) int main(void) {
  int run = 0, failed = 0;
  for (const plain_test *test = plain_tests; test; test = test->next) {
    if (!test->name) continue;
    struct criterion_test_params all = test->parameters ? test->parameters() : (struct criterion_test_params){0, NULL, 1};
    for (size_t n = 0; n < all.length; ++n, ++run) {
      if (plain_run(test, (char *)all.params + n * all.size)) continue;
      fprintf(stderr, "[FAIL] %s::%s\n", test->suite, test->name);
      ++failed;
    }
  }
  fprintf(stderr, "Tested: %d | Failing: %d\n", run, failed);
  return failed || !run ? 1 : 0;
}

#endif
