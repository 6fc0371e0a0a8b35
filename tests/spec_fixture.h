/* What the tests of specs and contracts share: a small spec, ways to change it, and parsing. */
#ifndef HEDDLE_SPEC_FIXTURE_H
#define HEDDLE_SPEC_FIXTURE_H

#include "../generator/spec.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const shipped_specs[] = {
    "minimax-m3-dense-fp8", "minimax-m3-sparse-fp8", "minimax-m3-sparse-blocks-fp8",
    "llama3-70b-tp8-bf16",  "vllm-rocm-classic-fp8", "nhd-fp16",
    "vllm-inline-fp8",      "deepseek-mla-bf16",     "deepseek-mla-fp8",
    "deepseek-mla-fp8-656", "deepseek-mla-fp8-584"};
enum { SHIPPED_COUNT = sizeof shipped_specs / sizeof *shipped_specs };

static const char base_spec[] = "heddle: 1\n"                  /* 1 */
                                "query:\n"                     /* 2 */
                                "  heads_per_kv: 16\n"         /* 3 */
                                "head_dim: 128\n"              /* 4 */
                                "kv:\n"                        /* 5 */
                                "  dtype: fp8_e4m3fn\n"        /* 6 */
                                "  page: 16\n"                 /* 7 */
                                "  k: [b, h, d/16, s, d%16]\n" /* 8 */
                                "  v: [b, h, s/16, d, s%16]\n" /* 9 */
                                "scale:\n"                     /* 10 */
                                "  granularity: token_head\n"; /* 11 */

/* `from` with the one place where `old` stands replaced; `old` "" appends. Free it. */
static inline char *spec_with(const char *from, const char *old, const char *replacement) {
  const char *at = old[0] ? strstr(from, old) : from + strlen(from);
  cr_assert_not_null(at, "the spec has no %s", old);
  size_t size = strlen(from) + strlen(replacement) + 1;
  char *changed = malloc(size);
  snprintf(changed, size, "%.*s%s%s", (int)(at - from), from, replacement, at + strlen(old));
  return changed;
}

/* A spec that must parse. */
static inline spec parse_good(const char *yaml) {
  spec s = {0};
  diags problems;
  diags_init(&problems);
  hd_status status = spec_parse(yaml, strlen(yaml), &s, &problems);
  text rendered;
  text_init(&rendered);
  diags_render(&problems, "spec", yaml, &rendered);
  cr_assert_eq(status, HD_OK, "%s\n%s", text_string(&rendered), yaml);
  cr_assert_eq(problems.count, 0, "%s", text_string(&rendered));
  text_finish(&rendered);
  diags_finish(&problems);
  return s;
}

typedef struct refusal {
  const char *old, *replacement; /* a change to base_spec; old "" appends, old NULL: the whole file */
  const char *code;
  int line, column;
  const char *says; /* part of the message */
} refusal;

static inline void expect_refusal(const char *from, const refusal *c) {
  char *yaml = c->old ? spec_with(from, c->old, c->replacement) : spec_with("", "", c->replacement);
  spec s = {.name = "untouched"};
  diags problems;
  diags_init(&problems);
  hd_status status = spec_parse(yaml, strlen(yaml), &s, &problems);
  cr_expect_eq(status, HD_DECLINED, "accepted: %s", c->replacement);
  cr_expect_str_eq(s.name, "untouched");
  text rendered;
  text_init(&rendered);
  diags_render(&problems, "spec", yaml, &rendered);
  cr_expect_eq(problems.count, 1, "one mistake is one error:\n%s", text_string(&rendered));
  bool found = problems.count > 0 && strcmp(problems.items[0].code, c->code) == 0 &&
               problems.items[0].line == c->line && problems.items[0].column == c->column &&
               strstr(problems.items[0].message, c->says);
  cr_expect(found, "expected %d:%d [%s] \"%s\", got\n%s", c->line, c->column, c->code, c->says,
            text_string(&rendered));
  text_finish(&rendered);
  diags_finish(&problems);
  free(yaml);
}

/* The canonical text of a spec that must parse. Free it. */
static inline char *canonical(const char *yaml) {
  spec s = parse_good(yaml);
  text t;
  text_init(&t);
  contract_write(&s.contract, &t);
  spec_finish(&s);
  return text_take(&t);
}

static inline void key_of(const char *yaml, char out_hex[65]) {
  spec s = parse_good(yaml);
  cr_assert_eq(contract_key(&s.contract, out_hex), HD_OK);
  spec_finish(&s);
}

/* A shipped spec's text. Free it. */
static inline char *read_shipped(const char *name) {
  const char *source = getenv("HEDDLE_SOURCE");
  char path[1024];
  snprintf(path, sizeof path, "%s/specs/%s.yaml", source ? source : ".", name);
  FILE *f = fopen(path, "rb");
  cr_assert_not_null(f, "%s", path);
  char *content = calloc(1, 65536);
  size_t length = fread(content, 1, 65535, f);
  cr_assert_gt(length, 0);
  fclose(f);
  return content;
}

#endif
