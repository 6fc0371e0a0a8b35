/* Runs of specs on devices, in processes: one that crashes or hangs is a result like any other. */
#ifndef HEDDLE_CAMPAIGN_WORK_H
#define HEDDLE_CAMPAIGN_WORK_H

#include "../../generator/spec.h"
#include "../../runtime/verify/verify.h"

/* One spec on one device. */
typedef struct work_job {
  char *yaml; /* owned by the list's owner */
  const char *device, *target;
  variant variant;
  const char *only; /* verify's case */
  int random_cases;
  int64_t split;
  bool padded;
  uint64_t seed;
} work_job;

typedef struct work_result {
  int job;
  bool done;      /* false: its process died */
  bool declined;  /* before anything was compiled */
  int cases, bad; /* runs, and those that were wrong, faulted or were reported by a watch */
  double rms, row_rms, lse;
  double seconds;
  char code[48];     /* of a decline, a failure */
  char problem[400]; /* "" when all is well */
} work_result;

typedef void (*work_report)(void *user, const work_job *job, const work_result *result);

/* Runs the jobs in `processes` at a time, each for at most `seconds`. `report` is called here, in the order
 * in which they end. False: no process could be started. */
bool work_run(const work_job *jobs, int count, int processes, int seconds, work_report report, void *user);

/* The command that does the same: what a failure is reported with. */
void work_write_command(const work_job *job, const char *file, text *out);

#endif
