/* The device's side: the cache, the kernels, and one captured graph for each batch bucket. A step of the
 * engine is three copies in, a replay and a copy out, whatever the batch. */
#ifndef ENGINE_STEPS_H
#define ENGINE_STEPS_H

#include "model.h"
#include "schedule.h"
#include <heddle.h>

enum { BUCKETS = 4 }; /* of 1, 2, 4 and 8 sequences */
enum { CACHE_ELEMENTS = POOL * KV_HEADS * PAGE * DIM, SCALES = POOL * KV_HEADS * PAGE };

/* What a step takes to the device, as it lies there: of MOST_RUNNING sequences, of which a bucket takes the
 * first. */
typedef struct step_inputs {
  uint16_t q[MOST_RUNNING][Q_HEADS * DIM], k[MOST_RUNNING][KV_HEADS * DIM], v[MOST_RUNNING][KV_HEADS * DIM];
  int64_t slots[MOST_RUNNING];
  int32_t table[MOST_RUNNING][TABLE];
  int32_t lengths[MOST_RUNNING];
} step_inputs;

typedef struct steps steps;

/* Opens the device, prepares both kernels and captures the graphs: nothing is compiled or allocated
 * afterwards. Errors end the program, with what heddle says on stderr. */
steps *steps_create(const char *device, const char *spec_path);
void steps_destroy(steps *s);
const char *steps_describe(const steps *s);

/* Writes the first `count` tokens of a sequence into its pages. */
void steps_prefill(steps *s, const sequence *q, int count);
/* The newest token of each sequence: written into the cache, then attended. out: [count, Q_HEADS, DIM]. */
void steps_run(steps *s, sequence *const *running, int count, float *out);

/* How many replays a bucket had, 0 to BUCKETS - 1. */
int steps_replays(const steps *s, int bucket);
int steps_bucket_size(int bucket);
/* The inputs and output of the step that ran last, and the cache as it is now, as .npy files in a folder. */
void steps_dump(steps *s, const char *folder);

#endif
