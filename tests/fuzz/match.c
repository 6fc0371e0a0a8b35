#include "fuzz.h"
#include "../../runtime/match/match.h"
#include <pthread.h>
#include <string.h>

static const char *const yaml[] = {
    "heddle: 1\nname: shuffled\nquery: {dtype: bf16, heads_per_kv: 16}\nhead_dim: 128\n"
    "kv: {dtype: fp8_e4m3, page: 128, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"
    "scale: {granularity: token_head, dtype: fp32, k: [b, h, s], v: [b, h, s]}\n",
    "heddle: 1\nname: nhd\nkernels: [write, decode]\nquery: {dtype: fp16, heads_per_kv: 8}\nhead_dim: 128\n"
    "kv: {dtype: fp16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n",
    "heddle: 1\nname: blocks\nquery: {dtype: bf16, heads_per_kv: 4, rows: 4}\nhead_dim: 64\n"
    "kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}\nselect: {form: blocks, block: 128, per: "
    "row}\n",
};
enum { CANDIDATES = sizeof yaml / sizeof *yaml };

static spec specs[CANDIDATES];
static match_candidate candidates[CANDIDATES];

static void read_specs(void) {
  diags problems;
  diags_init(&problems);
  for (int i = 0; i < CANDIDATES; i++) {
    FUZZ_HOLD(spec_parse(yaml[i], strlen(yaml[i]), &specs[i], &problems) == HD_OK);
    candidates[i] = match_candidate_of(&specs[i]);
  }
  diags_finish(&problems);
}

int fuzz_match(const uint8_t *bytes, size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static const char *const targets[] = {"gfx942", "gfx950", "gfx1201", "sm_90"};
  match_description description;
  match_answer answers[CANDIDATES];
  diags problems;
  pthread_once(&once, read_specs);
  diags_init(&problems);
  hd_status status = match_read((const char *)bytes, size, &description, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_DECLINED && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    int chosen = -1;
    status = match_best(&description.request, candidates, CANDIDATES, targets[fuzz_hash(bytes, size) % 4],
                        answers, &chosen);
    FUZZ_HOLD(status == HD_OK || status == HD_DECLINED);
    FUZZ_HOLD(status != HD_OK || (chosen >= 0 && chosen < CANDIDATES && answers[chosen].status == HD_OK));
    for (int i = 0; i < CANDIDATES; i++)
      FUZZ_HOLD(answers[i].status == HD_OK || diags_errors(&answers[i].declines) > 0);
    match_answers_finish(answers, CANDIDATES);
  }
  diags_finish(&problems);
  return 0;
}
