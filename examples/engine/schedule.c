#include "schedule.h"
#include <string.h>

void schedule_init(schedule *s) {
  memset(s, 0, sizeof *s);
  pool_init(&s->pages);
}

void schedule_request(schedule *s, int arrives, int prompt, int generate) {
  sequence *q = &s->all[s->count];
  q->id = s->count++;
  q->arrives = arrives;
  q->prompt = q->length = prompt;
  q->generate = generate;
  s->waiting[s->waiting_count++] = q;
}

sequence *schedule_admit(schedule *s, int step) {
  sequence *first = s->waiting_count > 0 ? s->waiting[0] : NULL;
  if (first == NULL || first->arrives > step || s->running_count == MOST_RUNNING) return NULL;
  if (!sequence_reserve(first, &s->pages, first->length)) return NULL;
  memmove(&s->waiting[0], &s->waiting[1], (size_t)--s->waiting_count * sizeof s->waiting[0]);
  int at = s->running_count++;
  for (; at > 0 && s->running[at - 1]->id > first->id; at--) /* evicted ones were here before */
    s->running[at] = s->running[at - 1];
  s->running[at] = first;
  s->admitted++;
  return first;
}

static void evict_youngest(schedule *s) {
  sequence *youngest = s->running[--s->running_count];
  sequence_release(youngest, &s->pages);
  memmove(&s->waiting[1], &s->waiting[0], (size_t)s->waiting_count++ * sizeof s->waiting[0]);
  s->waiting[0] = youngest;
  s->evicted++;
}

void schedule_make_room(schedule *s) {
  for (int i = 0; i < s->running_count; i++)
    while (i < s->running_count && !sequence_reserve(s->running[i], &s->pages, s->running[i]->length))
      evict_youngest(s); /* itself at last */
}

void schedule_advance(schedule *s) {
  int kept = 0;
  for (int i = 0; i < s->running_count; i++) {
    sequence *q = s->running[i];
    q->length++;
    if (q->length < q->prompt + q->generate) {
      s->running[kept++] = q;
      continue;
    }
    sequence_release(q, &s->pages);
    s->finished++;
  }
  s->running_count = kept;
}
