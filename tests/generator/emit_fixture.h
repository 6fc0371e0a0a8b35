/* Emissions of the shipped specs, and what must hold of each. */
#ifndef HEDDLE_TESTS_EMIT_FIXTURE_H
#define HEDDLE_TESTS_EMIT_FIXTURE_H

#include "comma_locale.h"
#include "../../generator/emit.h"
#include "../../generator/sha256.h"
#include "../random_contract.h"
#include "../spec_fixture.h"
#include <ctype.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static const operation operations[] = {OPERATION_WRITE, OPERATION_DECODE};

static inline emission emitted(const contract *c, operation o, const variant *v, const target *t) {
  emission e = {0};
  diags problems;
  diags_init(&problems);
  hd_status status = emit_operation(c, o, v, t, templates_embedded(), &e, &problems);
  cr_assert_eq(status, HD_OK, "%s for %s: %s", operation_name(o), t->name,
               problems.count ? problems.items[0].message : "no diagnostic");
  cr_expect_eq(problems.count, 0);
  diags_finish(&problems);
  return e;
}

static inline contract shipped(const char *name) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  contract c = s.contract;
  spec_finish(&s);
  free(yaml);
  return c;
}

static inline void for_each_shipped(void (*check)(const contract *c, const emission *e, const char *what)) {
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    contract c = shipped(shipped_specs[i]);
    for (size_t n = 0; n < target_count(); n++)
      for (int o = 0; o < 2; o++) {
        emission e = emitted(&c, operations[o], &(variant){0}, target_at(n));
        char what[128];
        snprintf(what, sizeof what, "%s of %s for %s", operation_name(operations[o]), shipped_specs[i],
                 target_at(n)->name);
        check(&c, &e, what);
        emission_finish(&e);
      }
  }
}

static inline void has_no_fence(const contract *c, const emission *e, const char *what) {
  (void)c;
  cr_expect_null(strstr(e->source, "//@"), "%s", what);
  int braces = 0, parentheses = 0;
  for (const char *at = e->source; *at; at++) {
    if (at[0] == '/' && at[1] == '/') at += strcspn(at, "\n");
    if (*at == '"') at += 1 + strcspn(at + 1, "\""); /* assembly has braces of its own */
    braces += (*at == '{') - (*at == '}');
    parentheses += (*at == '(') - (*at == ')');
    cr_assert(braces >= 0 && parentheses >= 0, "%s", what);
  }
  cr_expect(braces == 0 && parentheses == 0, "%s: %d braces, %d parentheses open", what, braces, parentheses);
}

/* Checks one parameter, "    const u8 *__restrict__ k_cache", against the argument it should be. */
static inline void is_argument(const char *parameter, size_t length, argument a, bool waits_itself,
                               const char *what) {
  size_t end = length;
  while (end > 0 && isspace((unsigned char)parameter[end - 1]))
    end--;
  size_t start = end;
  while (start > 0 && (isalnum((unsigned char)parameter[start - 1]) || parameter[start - 1] == '_'))
    start--;
  cr_assert(strlen(argument_name(a)) == end - start &&
                memcmp(parameter + start, argument_name(a), end - start) == 0,
            "%s: parameter '%.*s' is not %s", what, (int)length, parameter, argument_name(a));
  bool pointer = memchr(parameter, '*', start) != NULL;
  cr_expect_eq(pointer, a.kind == ARGUMENT_TENSOR, "%s: %s", what, argument_name(a));
  /* Or the kernel before may still be writing what the compiler takes for constant. */
  cr_expect_eq(memmem(parameter, length, "__restrict__", 12) != NULL, pointer && !waits_itself, "%s: %s",
               what, argument_name(a));
  if (pointer) return;
  while (isspace((unsigned char)*parameter))
    parameter++;
  const char *type = a.kind == ARGUMENT_NUMBER ? "float " : argument_bytes(a) == 8 ? "i64 " : "int ";
  cr_expect_eq(strncmp(parameter, type, strlen(type)), 0, "%s: %s is %s", what, argument_name(a), type);
}

static inline void parameters_match(const char *source, const kernel_descriptor *k, const char *what) {
  char head[96];
  snprintf(head, sizeof head, "void %s(", k->symbol);
  const char *at = strstr(source, head);
  cr_assert_not_null(at, "%s: no kernel %s", what, k->symbol);
  at += strlen(head);
  const char *close = strchr(at, ')');
  for (int i = 0; i < k->argument_count; i++) {
    const char *end = memchr(at, ',', (size_t)(close - at));
    cr_assert_eq(end == NULL, i + 1 == k->argument_count, "%s: %s has another number of parameters", what,
                 k->symbol);
    is_argument(at, (size_t)((end ? end : close) - at), k->arguments[i], k->waits_itself, what);
    at = end ? end + 1 : close;
  }
}

#endif
