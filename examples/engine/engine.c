/* A decode loop as serving engines have it, over heddle.h: continuous batching on a paged FP8 cache. Requests
 * come and go; sequences share a pool of pages that is too small for all, so some are evicted and come back;
 * every step replays the graph of its batch bucket, captured once, while lengths grow. Each output is held
 * against attention worked out from the values as they were before the cache.
 *
 *   engine SPEC [DEVICE [DUMP_STEP FOLDER]]     DEVICE: emu:gfx950; writes the tensors of a step as .npy
 *
 * Exit code 0: every output of every step is right. */
#include "schedule.h"
#include "steps.h"
#include <stdio.h>
#include <stdlib.h>

/* What the cache's format leaves of values between -1 and 1: e4m3 has 3 bits of mantissa. */
static const double tolerance = 0.06;
enum { MOST_STEPS = 400 };

/* Bursts of short and long ones. */
static void make_requests(schedule *s) {
  static const int prompts[] = {5, 61, 17, 9, 1, 28, 16, 30, 9, 64, 2, 40, 21, 15};
  static const int generated[] = {40, 30, 29, 36, 46, 25, 37, 23, 26, 20, 35, 18, 42, 1};
  for (int i = 0; i < (int)(sizeof prompts / sizeof *prompts); i++)
    schedule_request(s, i / 5 * 6, prompts[i], generated[i]);
}

static double check_step(const schedule *s, const float *out) {
  double worst = 0;
  for (int i = 0; i < s->running_count; i++) {
    double error = model_error(s->running[i]->id, s->running[i]->length, &out[i * Q_HEADS * DIM]);
    if (error > worst) worst = error;
  }
  return worst;
}

static void report(const schedule *s, const steps *device, int step, int tokens, double worst) {
  printf("%d steps, %d tokens, %d requests: %d finished, %d admissions, %d evictions, %d of %d pages free\n",
         step, tokens, s->count, s->finished, s->admitted, s->evicted, s->pages.count, POOL);
  for (int bucket = 0; bucket < BUCKETS; bucket++)
    printf("bucket of %d: %d replays of one capture\n", steps_bucket_size(bucket),
           steps_replays(device, bucket));
  printf("largest error: %.4f\n", worst);
}

int main(int argc, char **argv) {
  static float out[MOST_RUNNING * Q_HEADS * DIM];
  static schedule s;
  if (argc < 2 || argc == 4 || argc > 5) {
    fprintf(stderr, "usage: engine SPEC [DEVICE [DUMP_STEP FOLDER]]\n");
    return 2;
  }
  steps *device = steps_create(argc > 2 ? argv[2] : "emu:gfx950", argv[1]);
  const int dump_step = argc == 5 ? atoi(argv[3]) : -1;
  int step = 0, tokens = 0;
  double worst = 0;
  printf("%s\n", steps_describe(device));
  schedule_init(&s);
  make_requests(&s);
  for (; s.finished < s.count && step < MOST_STEPS; step++) {
    for (sequence *q = schedule_admit(&s, step); q != NULL; q = schedule_admit(&s, step))
      steps_prefill(device, q, q->length - 1);
    schedule_make_room(&s);
    if (s.running_count == 0) continue; /* nobody has arrived yet */
    steps_run(device, s.running, s.running_count, out);
    double error = check_step(&s, out);
    if (error > worst) worst = error;
    if (step == dump_step) steps_dump(device, argv[4]);
    tokens += s.running_count;
    schedule_advance(&s);
  }
  report(&s, device, step, tokens, worst);
  steps_destroy(device);
  return s.finished == s.count && worst < tolerance ? 0 : 1;
}
