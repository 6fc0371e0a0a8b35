/* How far a long verb is and how long it will take, on a line of standard error that is written over. Nothing
 * where that is no terminal, and with --quiet. */
#ifndef HEDDLE_CLI_PROGRESS_H
#define HEDDLE_CLI_PROGRESS_H

#include <pthread.h>

typedef struct progress {
  pthread_mutex_t lock; /* steps may come from several threads */
  const char *what;     /* borrowed */
  int total, done;
  double start; /* seconds */
} progress;

void progress_begin(progress *p, const char *what, int total);
/* One more is done. */
void progress_step(progress *p);
/* Takes the line away: before anything else is printed. The next step brings it back. */
void progress_clear(void);
void progress_end(progress *p);

#endif
