/* Claims about the campaign's random specs: they are valid, and each part of the language is in some that are
 * served. */
#include "../../generator/target.h"
#include "random_spec.h"
#include "space.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { SPECS = 1500 };

static char *spec_number(int i) {
  random_state r = {(uint64_t)i + 77000000};
  text yaml;
  text_init(&yaml);
  random_spec(&r, "random", &yaml);
  return text_take(&yaml);
}

Test(campaign, random_specs_are_valid) {
  for (int i = 0; i < SPECS; i++) {
    char *yaml = spec_number(i);
    spec s;
    diags d;
    diags_init(&d);
    hd_status status = spec_parse(yaml, strlen(yaml), &s, &d);
    cr_assert_eq(status, HD_OK, "%d: %s\n%s", i, d.count ? d.items[0].message : "", yaml);
    spec_finish(&s);
    diags_finish(&d);
    free(yaml);
  }
}

Test(campaign, every_part_of_the_language_is_in_specs_that_are_served) {
  static const char *const parts[] = {"tail: {",
                                      "inside: k",
                                      "inside: v",
                                      "v: k",
                                      "[b, s, d+",
                                      "s+",
                                      "dtype: e8m0",
                                      "dtype: fp16,",
                                      "granularity: group",
                                      "granularity: token,",
                                      "granularity: token_head",
                                      "granularity: page_head",
                                      "granularity: head",
                                      "granularity: tensor",
                                      "source: argument",
                                      "per: row",
                                      "per: kv_head",
                                      "form: blocks",
                                      "form: tokens",
                                      "form: indptr",
                                      "window: 1",
                                      "sinks: per_head",
                                      "strides: packed",
                                      "qmax: 100",
                                      "scale_floor",
                                      "int64",
                                      "lse: true"};
  enum { PARTS = sizeof parts / sizeof *parts };
  int served[PARTS] = {0}, good = 0;
  for (int i = 0; i < SPECS; i++) {
    char *yaml = spec_number(i);
    const variant v = {0};
    bool is_served = space_ask(yaml, &v, target_find("gfx950")).good;
    good += is_served;
    for (int n = 0; is_served && n < PARTS; n++)
      served[n] += strstr(yaml, parts[n]) != NULL;
    free(yaml);
  }
  cr_expect_gt(good, SPECS / 2);
  for (int n = 0; n < PARTS; n++)
    cr_expect_geq(served[n], 5, "%s is in %d of %d served specs", parts[n], served[n], good);
}
