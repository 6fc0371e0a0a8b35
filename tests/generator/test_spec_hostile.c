/* Claims about specs: bombs and damaged files are refused fast and crash nothing. */
#include "comma_locale.h"
#include "../spec_fixture.h"
#include "../../generator/spec_yaml.h"
#include "../../generator/target.h"
#include <time.h>

/* ---- hostile files ---- */

static void expect_refused_fast(const char *yaml, size_t length, const char *code) {
  spec s;
  diags problems;
  diags_init(&problems);
  clock_t start = clock();
  cr_expect_eq(spec_parse(yaml, length, &s, &problems), HD_DECLINED);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  cr_expect_lt(seconds, 5.0, "%s took %.1f s", code, seconds);
  cr_assert_geq(problems.count, 1);
  cr_expect_str_eq(problems.items[0].code, code);
  diags_finish(&problems);
}

static void expect_refused_repeated(const char *head, const char *unit, size_t length, const char *code) {
  text t;
  text_init(&t);
  text_add(&t, head);
  while (t.length + strlen(unit) <= length)
    text_add(&t, unit);
  expect_refused_fast(t.data, t.length, code);
  text_finish(&t);
}

Test(spec, files_beyond_a_mebibyte_are_refused_and_those_below_are_read) {
  expect_refused_repeated(base_spec, "#", SPEC_MAX_BYTES + 1, "spec.size");
  text t;
  text_init(&t);
  text_add(&t, base_spec);
  while (t.length < SPEC_MAX_BYTES)
    text_add(&t, "#");
  spec s = parse_good(t.data);
  spec_finish(&s);
  text_finish(&t);
}

Test(spec, depth_bombs_are_refused) {
  expect_refused_repeated("", "[", SPEC_MAX_BYTES, "spec.depth");
  expect_refused_repeated("", "{a: ", SPEC_MAX_BYTES, "spec.depth");
  expect_refused_repeated("", "- ", SPEC_MAX_BYTES, "spec.depth");
  expect_refused_repeated("", "? ", SPEC_MAX_BYTES, "spec.depth");
}

Test(spec, width_bombs_are_refused) {
  expect_refused_repeated("a: [", "1,", SPEC_MAX_BYTES, "spec.size");
  expect_refused_repeated("", "- 1\n", SPEC_MAX_BYTES, "spec.size");
  expect_refused_repeated("a: &a 1\nb: [", "*a,", SPEC_MAX_BYTES, "spec.size");
}

Test(spec, alias_bombs_are_refused) {
  text t;
  text_init(&t);
  text_add(&t, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
  for (int i = 1; i < 12; i++) {
    text_addf(&t, "a%d: &a%d [", i, i);
    for (int j = 0; j < 10; j++)
      text_addf(&t, "*a%d, ", i - 1);
    text_add(&t, "]\n");
  }
  expect_refused_fast(t.data, t.length, "spec.size");
  text_finish(&t);
}

/* Every shipped spec, cut at every byte and with every byte changed in several ways: whatever comes of it,
 * the answer is an answer. Under a sanitizer this is the test that no input crashes the parser. */
Test(spec, no_mutation_of_a_shipped_spec_crashes_the_parser) {
  static const char replacements[] = {'\0', '\n', ' ', ':', '*', '&', '[',
                                      '{',  '"',  '%', '-', '9', 'z', (char)0xff};
  size_t accepted = 0, declined = 0;
  for (int i = 0; i < SHIPPED_COUNT; i++) {
    char *yaml = read_shipped(shipped_specs[i]);
    size_t length = strlen(yaml);
    for (size_t at = 0; at < length; at++) {
      for (size_t r = 0; r <= sizeof replacements; r++) {
        char original = yaml[at];
        size_t cut = r == sizeof replacements ? at : length;
        if (r < sizeof replacements) yaml[at] = replacements[(r + at) % sizeof replacements];
        if (r > 2 && r < sizeof replacements) { /* three replacements a byte, rotating, and the cut */
          yaml[at] = original;
          continue;
        }
        /* exactly as long as it is: a read past the end is one past the allocation */
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, yaml, cut);
        spec s;
        diags problems;
        diags_init(&problems);
        hd_status status = spec_parse(copy, cut, &s, &problems);
        cr_assert(status == HD_OK ? problems.count == 0 : status == HD_DECLINED && problems.count > 0);
        if (status == HD_OK) spec_finish(&s);
        status == HD_OK ? accepted++ : declined++;
        diags_finish(&problems);
        free(copy);
        yaml[at] = original;
      }
    }
    free(yaml);
  }
  cr_expect_gt(accepted, 100, "changes inside comments and texts are no errors");
  cr_expect_gt(declined, 1000);
}
