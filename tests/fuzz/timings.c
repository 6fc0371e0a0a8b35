#include "fuzz.h"
#include "../../runtime/tune/tune_meter.h"

/* What a search asks. */
static void ask(tune_timings *t, const tune_variant *v, diags *problems) {
  const tune_meter m = tune_timings_meter(t);
  const tune_shape shape = {.seqs = 8, .length = 8192, .kv_heads = 4, .rows = 1};
  double us = 0;
  bool good = false;
  char why[160] = "";
  FUZZ_HOLD(m.begin(m.user, &shape, problems) == HD_OK);
  FUZZ_HOLD(m.check(m.user, v, 4, &good, why, problems) == HD_OK);
  for (int repeat = 3; repeat <= 5; repeat += 2)
    FUZZ_HOLD(m.time(m.user, v, 4, repeat, &us, problems) != HD_OK || (us >= 0 && us < 1e12));
  FUZZ_HOLD(m.read(m.user, &us, problems) != HD_OK || (us >= 0 && us < 1e12));
  m.end(m.user);
}

int fuzz_timings(const uint8_t *bytes, size_t size) {
  static tune_space space;
  static tune_record head;
  tune_timings *t = NULL;
  diags problems;
  diags_init(&problems);
  hd_status status = tune_timings_parse((const char *)bytes, size, &t, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_DECLINED && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    FUZZ_HOLD(tune_timings_target(t) != NULL);
    tune_timings_describe(t, &head);
    space.count = 2;
    snprintf(space.items[0].name, sizeof space.items[0].name, "default");
    snprintf(space.items[1].name, sizeof space.items[1].name, "w4");
    for (int i = 0; i < space.count; i++)
      ask(t, &space.items[i], &problems);
    tune_timings_prune(t, &space);
    FUZZ_HOLD(space.count >= 1);
    tune_timings_destroy(t);
  }
  diags_finish(&problems);
  return 0;
}
