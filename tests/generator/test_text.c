#include "comma_locale.h"
#include "../../generator/text.h"
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *double_text(double value) {
  static char buffer[64];
  text t;
  text_init(&t);
  text_add_double(&t, value);
  snprintf(buffer, sizeof buffer, "%s", text_string(&t));
  text_finish(&t);
  return buffer;
}

Test(text, is_a_string_from_the_start) {
  text t;
  text_init(&t);
  cr_assert_str_eq(text_string(&t), "");
  char *taken = text_take(&t);
  cr_assert_str_eq(taken, "");
  free(taken);
}

Test(text, appends_in_order_and_keeps_the_length) {
  text t;
  text_init(&t);
  text_add(&t, "page ");
  text_addf(&t, "%d of %s", 16, "tokens");
  text_add_bytes(&t, "!?", 1);
  cr_assert_str_eq(text_string(&t), "page 16 of tokens!");
  cr_assert_eq(t.length, strlen("page 16 of tokens!"));
  text_clear(&t);
  cr_assert_str_eq(text_string(&t), "");
  text_finish(&t);
}

Test(text, grows_to_any_size) {
  text t;
  text_init(&t);
  for (int i = 0; i < 10000; i++)
    text_addf(&t, "%04d,", i);
  cr_assert_eq(t.length, 50000);
  cr_assert(strncmp(text_string(&t) + 5 * 1234, "1234,", 5) == 0);
  text_finish(&t);
}

Test(text, a_failed_text_stays_failed_and_gives_nothing) {
  text t;
  text_init(&t);
  text_add(&t, "before");
  t.failed = true; /* as running out of memory does */
  text_add(&t, "after");
  cr_assert_str_eq(text_string(&t), "");
  cr_assert_null(text_take(&t));
  cr_assert_not(t.failed, "taking leaves an empty text");
}

Test(text, writes_the_shortest_number_that_reads_back) {
  static const struct {
    double value;
    const char *expected;
  } cases[] = {{0, "0"},
               {-0.0, "-0"},
               {1, "1"},
               {-2.5, "-2.5"},
               {240, "240"},
               {448, "448"},
               {57344, "57344"},
               {0.1, "0.1"},
               {0.00001, "0.00001"},
               {0.000001, "1e-6"},
               {1.25e-8, "1.25e-8"},
               {1.0 / 3, "0.3333333333333333"},
               {1e16, "10000000000000000"},
               {1e17, "1e17"},
               {1.5e300, "1.5e300"},
               {DBL_MAX, "1.7976931348623157e308"},
               {5e-324, "5e-324"},
               {INFINITY, "inf"},
               {-INFINITY, "-inf"},
               {NAN, "nan"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    cr_expect_str_eq(double_text(cases[i].value), cases[i].expected);
}

Test(text, every_number_reads_back_as_itself) {
  unsigned long long state = 88172645463325252ull;
  for (int i = 0; i < 20000; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* xorshift64 */
    double value;
    memcpy(&value, &state, sizeof value);
    if (!isfinite(value)) continue;
    cr_assert_eq(strtod(double_text(value), NULL), value, "%a as %s", value, double_text(value));
  }
}

Test(text, numbers_have_a_full_stop_in_every_locale) {
  use_comma_locale();
  cr_assert_str_eq(double_text(0.125), "0.125");
  cr_assert_str_eq(double_text(1.25e-8), "1.25e-8");
  setlocale(LC_ALL, "C");
}

Test(text, json_strings_are_json_whatever_the_bytes) {
  static const struct {
    const char *string, *expected;
  } cases[] = {{"plain", "\"plain\""},
               {"a\"b\\c", "\"a\\\"b\\\\c\""},
               {"\n\r\t\x01\x7f", "\"\\n\\r\\t\\u0001\\u007f\""},
               {"\xc3\xb6 \xe2\x86\x92 \xf0\x9f\x99\x82", "\"\xc3\xb6 \xe2\x86\x92 \xf0\x9f\x99\x82\""},
               {"\xff|\xc3|\xe2\x86", "\"\\ufffd|\\ufffd|\\ufffd\\ufffd\""},
               {"\xc0\x80", "\"\\ufffd\\ufffd\""},                        /* overlong */
               {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},             /* surrogate */
               {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}}; /* above U+10FFFF */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    text t;
    text_init(&t);
    text_add_json(&t, cases[i].string);
    cr_expect_str_eq(text_string(&t), cases[i].expected);
    text_finish(&t);
  }
}

Test(text, distance_counts_edits_and_swaps) {
  cr_expect_eq(text_distance("", ""), 0);
  cr_expect_eq(text_distance("page", "page"), 0);
  cr_expect_eq(text_distance("page", ""), 4);
  cr_expect_eq(text_distance("page", "pages"), 1);
  cr_expect_eq(text_distance("casual", "causal"), 1);
  cr_expect_eq(text_distance("kitten", "sitting"), 3);
  cr_expect_eq(text_distance("gfx1200", "gfx1201"), 1);
}

Test(text, distance_is_symmetric_and_bounded_for_long_strings) {
  char longer[200], other[200];
  memset(longer, 'a', sizeof longer), memset(other, 'b', sizeof other);
  longer[199] = other[199] = '\0';
  cr_expect_eq(text_distance(longer, other), 64);
  cr_expect_eq(text_distance(longer, "aa"), 62);
  cr_expect_eq(text_distance("aa", longer), 62);
}
