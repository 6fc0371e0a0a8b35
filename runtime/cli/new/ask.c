#include "ask.h"
#include "../console.h"
#include "../values.h"
#include "readings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One question; `word` is the kind of answer (values.h), "N" a whole number from 1 to `most`. */
typedef struct question {
  field_id field;
  const char *words, *otherwise, *word;
  long most;
} question;

static const question questions[] = {
    {FIELD_K,
     "How does the cache lie in memory? nhd [page, slot, head, channel], hnd, shuffled, classic, latent",
     "nhd", "LAYOUT", 0},
    {FIELD_KV_DTYPE, "Number format of the cache", "bf16", "DTYPE", 0},
    {FIELD_PAGE, "Tokens in a page", "16", "N", 1 << 20},
    {FIELD_HEAD_DIM, "Channels of a head", "128", "N", 4096},
    {FIELD_HEADS_PER_KV, "Query heads for each kv head (1: no grouping)", "8", "N", 128},
    {FIELD_GRANULARITY, "What shares a scale? none, tensor, head, token, token_head, page_head", "token_head",
     "GRANULARITY", 0},
};

/* A line without its end; false at the end of the input. */
static bool read_line(text *out) {
  char *line = NULL;
  size_t room = 0;
  ssize_t length = getline(&line, &room, stdin);
  while (length > 0 && strchr("\r\n \t", line[length - 1]))
    length--;
  text_clear(out);
  if (length >= 0) text_add_bytes(out, line, (size_t)length);
  free(line);
  return length >= 0;
}

/* Says what is wrong with an answer. */
static bool is_good(const question *q, const char *answer) {
  char *end;
  if (strcmp(q->word, "N") == 0) {
    long value = strtol(answer, &end, 10);
    if (end != answer && !*end && value >= 1 && value <= q->most) return true;
    fprintf(stderr, "  a whole number from 1 to %ld\n", q->most);
    return false;
  }
  value_kind k = value_kind_of(q->word);
  size_t count = k.count();
  for (size_t i = 0; i < count; i++)
    if (strcmp(k.name_at(i), answer) == 0) return true;
  const char *near = k.nearest ? k.nearest(answer) : cli_nearest(answer, count, k.name_at);
  fprintf(stderr, near ? "  did you mean %s?\n" : "  one of those, please\n", near);
  return false;
}

static bool is_sixteen_bit(const draft *d) {
  const char *format = draft_value(d, FIELD_KV_DTYPE);
  return strcmp(format, "bf16") == 0 || strcmp(format, "fp16") == 0;
}

static bool ask_one(const question *q, text *answer) {
  do {
    fprintf(stderr, "%s%s%s [%s]: ", console_paint_of(stderr, PAINT_STRONG), q->words,
            console_paint_of(stderr, PAINT_PLAIN), q->otherwise);
    fflush(stderr);
    if (!read_line(answer)) {
      fputs("\n", stderr);
      return false;
    }
    if (answer->length == 0) text_add(answer, q->otherwise);
  } while (!is_good(q, text_string(answer)));
  return true;
}

bool ask_for_fields(draft *d, text *name) {
  bool good = true;
  text answer;
  text_init(&answer);
  for (size_t i = 0; good && i < sizeof questions / sizeof *questions; i++) {
    const question *q = &questions[i];
    bool known = draft_has(d, q->field) || (q->field == FIELD_K && name->length > 0);
    if (known || (q->field == FIELD_GRANULARITY && is_sixteen_bit(d))) continue;
    good = ask_one(q, &answer);
    if (good && q->field == FIELD_K)
      text_add(name, text_string(&answer));
    else if (good)
      draft_set(d, q->field, SOURCE_GIVEN, NULL, "%s", text_string(&answer));
  }
  text_finish(&answer);
  return good;
}
