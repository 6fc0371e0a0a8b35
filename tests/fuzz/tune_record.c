#include "fuzz.h"
#include "../../runtime/tune/tune.h"
#include <string.h>

/* A choice from the record never leaves what a launch may use. */
static void hold_choice(tune_record *r, uint32_t hash) {
  tune_file file = {.path = "record.yaml", .record = r, .valid = true};
  tune_files files = {1, &file};
  const int64_t lengths[] = {0, 1, 8192, INT32_MAX, INT64_MAX}, seqs[] = {0, 1, 64, INT32_MAX};
  tune_shape launch = {.seqs = seqs[hash % 4],
                       .length = lengths[hash / 4 % 5],
                       .kv_heads = 1 + hash / 32 % 128,
                       .rows = 1 + (int)(hash / 4096 % 8),
                       .ragged = hash / 32768 % 2};
  const split_facts facts[] = {{.tile_tokens = 16}, {.tile_tokens = 64, .line_parts = 2}};
  tune_choice choice;
  tune_choose(&files, &launch, 132, &choice);
  FUZZ_HOLD(choice.reason[0] != '\0');
  if (!choice.found) return;
  int64_t splits = tune_choice_splits(&choice, facts[hash / 65536 % 2], &launch, 132);
  FUZZ_HOLD(splits >= 1 && splits <= MOST_SPLITS);
}

int fuzz_tune_record(const uint8_t *bytes, size_t size) {
  static tune_record r, again; /* large */
  diags problems;
  diags_init(&problems);
  hd_status status = tune_record_parse((const char *)bytes, size, &r, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_DECLINED && diags_errors(&problems) > 0));
  if (status == HD_OK) {
    text words, words_again;
    text_init(&words);
    text_init(&words_again);
    tune_record_write(&r, &words);
    FUZZ_HOLD(tune_record_parse(text_string(&words), words.length, &again, &problems) == HD_OK);
    tune_record_write(&again, &words_again);
    FUZZ_HOLD(strcmp(text_string(&words), text_string(&words_again)) == 0);
    text_finish(&words);
    text_finish(&words_again);
    hold_choice(&r, fuzz_hash(bytes, size));
  }
  diags_finish(&problems);
  return 0;
}
