/* Claims about reading JSON: what it takes, what it refuses, and that it never leaves its bytes. */
#include "../../generator/json.h"
#include "../../generator/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_reader reader(const char *json) {
  return json_reader_of(json, strlen(json));
}

Test(json, whole_numbers_are_read_exactly) {
  const struct {
    const char *json;
    int64_t value;
  } good[] = {{"0", 0}, {"-0", 0}, {" 42 ", 42}, {"-17", -17}, {"9223372036854775807", INT64_MAX}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    json_reader r = reader(good[i].json);
    cr_assert_eq(json_read_integer(&r, INT64_MIN, INT64_MAX), good[i].value);
    json_expect_end(&r);
    cr_assert_not(json_failed(&r), "%s", good[i].json);
  }
}

Test(json, what_is_no_whole_number_in_range_is_refused) {
  const char *const bad[] = {"",   "-",  "01",   "1.0",  "1e3", "+1", "0x1", "9223372036854775808",
                             "11", "-1", "true", "\"1\""};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    json_reader r = reader(bad[i]);
    json_read_integer(&r, 0, 10);
    json_expect_end(&r);
    cr_assert(json_failed(&r), "%s", bad[i]);
  }
}

Test(json, numbers_are_those_of_json) {
  const struct {
    const char *json;
    double value;
  } good[] = {{"0.5", 0.5},
              {"-1.25e2", -125},
              {"1E+3", 1000},
              {"30", 30},
              {"12345678901234567890", 12345678901234567890.0}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    json_reader r = reader(good[i].json);
    cr_assert_eq(json_read_number(&r), good[i].value);
    cr_assert_not(json_failed(&r), "%s", good[i].json);
  }
  const char *const bad[] = {".5", "1.", "1e", "nan", "inf", "1e999", "00.5", "--1", ""};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    json_reader r = reader(bad[i]);
    json_read_number(&r);
    cr_assert(json_failed(&r), "%s", bad[i]);
  }
}

Test(json, strings_are_plain_and_bounded) {
  char out[4];
  json_reader r = reader("\"abc\"");
  json_read_string(&r, out, sizeof out);
  cr_assert_str_eq(out, "abc");
  const char *const bad[] = {"\"abcd\"", "\"a\\n\"", "\"a\nb\"", "\"\xc3\xa4\"", "\"ab", "abc", ""};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    r = reader(bad[i]);
    json_read_string(&r, out, sizeof out);
    cr_assert(json_failed(&r), "%s", bad[i]);
    cr_assert_str_eq(out, "");
  }
}

Test(json, lists_have_commas_between_items_and_none_behind) {
  const char *const lists[] = {"[]", "[1]", "[1, 2,3]", "[1,]", "[,1]", "[1 2]", "[1", "[1,"};
  const int counts[] = {0, 1, 3, -1, -1, -1, -1, -1};
  for (int i = 0; i < 8; i++) {
    json_reader r = reader(lists[i]);
    int count = 0;
    json_expect(&r, '[');
    while (json_next(&r, count, ']')) {
      json_read_integer(&r, 0, 9);
      count++;
    }
    cr_assert_eq(json_failed(&r), counts[i] < 0, "%s", lists[i]);
    if (counts[i] >= 0) cr_assert_eq(count, counts[i]);
  }
}

Test(json, the_first_failure_stays_with_its_place) {
  json_reader r = reader("{\n  \"a\": x, 5}");
  char key[8];
  int line, column;
  json_expect(&r, '{');
  json_read_key(&r, key, sizeof key);
  json_read_bool(&r);
  cr_assert_str_eq(r.expected, "true or false");
  json_expect(&r, ',');
  cr_assert_eq(json_read_integer(&r, 0, 9), 0);
  cr_assert_str_eq(r.expected, "true or false");
  json_place(&r, &line, &column);
  cr_assert_eq(line, 2);
  cr_assert_eq(column, 8);
}

Test(json, words_and_ends) {
  json_reader r = reader(" true false null ");
  cr_assert(json_read_bool(&r));
  cr_assert_not(json_read_bool(&r));
  cr_assert(json_accept_null(&r));
  json_expect_end(&r);
  cr_assert_not(json_failed(&r));
  r = reader("null x");
  cr_assert(json_accept_null(&r));
  json_expect_end(&r);
  cr_assert(json_failed(&r));
}

Test(text, decimal_numbers_are_read_within_their_length) {
  double value = 7;
  cr_assert(text_read_double("1.5e3xyz", 5, &value));
  cr_assert_eq(value, 1500);
  cr_assert_not(text_read_double("1.5e3xyz", 6, &value));
  cr_assert_not(text_read_double("", 0, &value));
  cr_assert_not(text_read_double("1\0", 2, &value));
  cr_assert_eq(value, 1500);
}
