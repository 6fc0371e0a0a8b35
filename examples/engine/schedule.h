/* Who runs: requests in the order of their arrival, admitted while pages last, the youngest evicted when a
 * running one needs a page and none is left. An evicted sequence keeps its tokens, goes to the head of the
 * queue, and is written into the cache anew when it is admitted again. */
#ifndef ENGINE_SCHEDULE_H
#define ENGINE_SCHEDULE_H

#include "pages.h"

enum { MOST_RUNNING = 8, MOST_REQUESTS = 32 };

typedef struct schedule {
  sequence all[MOST_REQUESTS];
  sequence *waiting[MOST_REQUESTS], *running[MOST_RUNNING]; /* both in the order of arrival */
  int count, waiting_count, running_count;
  pool pages;
  int admitted, evicted, finished; /* how often, so far */
} schedule;

void schedule_init(schedule *s);
/* Requests must come in the order of their arrival. */
void schedule_request(schedule *s, int arrives, int prompt, int generate);
/* Admits the first in the queue if it has arrived and there is room for it and for its next token. NULL: not
 * now. */
sequence *schedule_admit(schedule *s, int step);
/* Reserves room for the newest token of every running sequence. */
void schedule_make_room(schedule *s);
/* A token was generated for every running sequence; those that have all theirs leave. */
void schedule_advance(schedule *s);

#endif
