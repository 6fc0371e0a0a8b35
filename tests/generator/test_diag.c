#include "../../generator/diag.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void expect_render(const diags *list, const char *file, const char *source, const char *expected) {
  text t;
  text_init(&t);
  diags_render(list, file, source, &t);
  cr_expect_str_eq(text_string(&t), expected);
  text_finish(&t);
}

Test(diag, shows_place_line_and_caret) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_ERROR, "spec.value", "kv.page", 2, 9, "kv.page is %d", 0);
  expect_render(&list, "a.yaml", "kv:\n  page: 0\n",
                "a.yaml:2:9: error: kv.page is 0 [spec.value]\n"
                "      page: 0\n"
                "            ^\n");
  diags_finish(&list);
}

Test(diag, names_the_field_where_there_is_no_place) {
  diags list;
  diags_init(&list);
  diags_errorf(&list, "decline.page", "kv.page", "not served");
  diags_errorf(&list, "device.none", NULL, "no device");
  expect_render(
      &list, "a.yaml", "heddle: 1\n",
      "a.yaml: error: kv.page: not served [decline.page]\na.yaml: error: no device [device.none]\n");
  diags_finish(&list);
}

/* As declines found at a place of the spec are: the line alone may hold several fields. */
Test(diag, names_the_field_where_the_message_does_not) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_NOTE, "decline.head-dim", "head_dim.qk", 1, 17, "100 is not served");
  expect_render(&list, "a.yaml", "head_dim: {qk: 100, v: 96}\n",
                "a.yaml:1:17: note: head_dim.qk: 100 is not served [decline.head-dim]\n"
                "    head_dim: {qk: 100, v: 96}\n"
                "                    ^\n");
  diags_finish(&list);
}

Test(diag, a_message_that_begins_with_its_field_has_it_once) {
  diags d;
  diags_init(&d);
  diags_errorf(&d, "bind.missing", "q", "q is missing");
  diags_errorf(&d, "bind.shape", "q", "queries are of another shape");
  diags_errorf(&d, "bind.shape", "k", "what q has");
  expect_render(
      &d, "a", NULL,
      "a: error: q is missing [bind.missing]\na: error: q: queries are of another shape [bind.shape]\n"
      "a: error: k: what q has [bind.shape]\n");
  diags_finish(&d);
}

Test(diag, the_caret_counts_characters_and_keeps_tabs) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_WARNING, "x.y", NULL, 1, 4, "here");
  expect_render(&list, NULL, "\t\xc3\xb6 o",
                "1:4: warning: here [x.y]\n"
                "    \t\xc3\xb6 o\n"
                "    \t  ^\n");
  diags_finish(&list);
}

Test(diag, a_place_beyond_the_text_renders_without_a_line) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_NOTE, "x.y", NULL, 99, 1, "there");
  expect_render(&list, "a", "one\n", "a:99:1: note: there [x.y]\n");
  diags_finish(&list);
}

Test(diag, cuts_long_lines_around_the_place) {
  static char source[100000];
  memset(source, 'a', sizeof source - 1);
  source[50000] = '!';
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_ERROR, "x.y", NULL, 1, 50001, "here");
  text t;
  text_init(&t);
  diags_render(&list, "a", source, &t);
  cr_assert_lt(t.length, 400);
  const char *line = strchr(text_string(&t), '\n') + 1, *caret_line = strchr(line, '\n') + 1;
  cr_assert_eq(line[strchr(caret_line, '^') - caret_line], '!', "the caret stands below the place");
  text_finish(&t);
  diags_finish(&list);
}

Test(diag, messages_are_one_line_without_control_characters) {
  diags list;
  diags_init(&list);
  diags_errorf(&list, "x.y", NULL, "found \"%s\"", "a\nb\x1b[31m");
  cr_assert_str_eq(list.items[0].message, "found \"a?b?[31m\"");
  diags_finish(&list);
}

Test(diag, counts_errors_only) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_NOTE, "x.y", NULL, 0, 0, "note");
  diags_addf(&list, DIAG_WARNING, "x.y", NULL, 0, 0, "warning");
  cr_expect_eq(diags_errors(&list), 0);
  for (int i = 0; i < 100; i++)
    diags_errorf(&list, "x.y", NULL, "error %d", i);
  cr_expect_eq(diags_errors(&list), 100);
  cr_expect_eq(list.count, 102);
  cr_expect_str_eq(list.items[101].message, "error 99");
  diags_finish(&list);
}

Test(diag, json_has_every_part) {
  diags list;
  diags_init(&list);
  diags_addf(&list, DIAG_ERROR, "spec.value", "kv.page", 2, 9, "is \"0\"");
  diags_errorf(&list, "x.y", NULL, "other");
  text t;
  text_init(&t);
  diags_render_json(&list, &t);
  cr_assert_str_eq(
      text_string(&t),
      "[{\"severity\": \"error\", \"code\": \"spec.value\", \"field\": \"kv.page\", \"message\": \"is "
      "\\\"0\\\"\", \"line\": 2, \"column\": 9}, {\"severity\": \"error\", \"code\": \"x.y\", "
      "\"field\": null, \"message\": \"other\", \"line\": 0, \"column\": 0}]");
  text_finish(&t);
  diags_finish(&list);
}
