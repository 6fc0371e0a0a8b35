/* What the fake driver libraries (fake_driver.c) remember of the calls that reached them. */
#ifndef HEDDLE_TESTS_FAKE_DRIVER_H
#define HEDDLE_TESTS_FAKE_DRIVER_H

#include <stddef.h>

typedef struct fake_record {
  int launches; /* executed, graph launches counted by what they hold */
  unsigned grid[3], block[3], shared_bytes;
  int early; /* the last launch was allowed to start before the one ahead of it ends */
  unsigned char arguments[256];
  size_t arguments_size;
  void *stream;
  int dynamic_limit;   /* set for a function, 0 when never */
  int live;            /* streams, events, modules, graphs and allocations not given back */
  int retained;        /* primary contexts */
  int without_context; /* calls from a thread where no context was current */
} fake_record;

#define FAKE_RECORD "fake_record_get" /* fake_record *(void), exported by both */

#endif
