/* The meters of a search (tune.h): a device, which is timed where it is one and estimated where it is
 * emulated; and a file of earlier times, which gives the same record again without a device. */
#ifndef HEDDLE_TUNE_METER_H
#define HEDDLE_TUNE_METER_H

#include "../session.h"
#include "tune.h"

/* Gets every answer of a device meter as a line of a timings file, without its newline. */
typedef void (*tune_log)(void *user, const char *line);

/* ---- A device ---- */

typedef struct tune_device tune_device;

/* Builds every variant of the space (`jobs` compilers at a time, 0: the cores) and loads it. Variants that do
 * not compile or load, and those whose code object spills where the generator's own choice does not, are
 * pruned from `space`. `c` (resolved), `s` and `space` outlive the meter. */
hd_status tune_device_create(session *s, const contract *c, const char *name, tune_space *space, int jobs,
                             uint64_t seed, tune_log log, void *log_user, tune_device **out_device,
                             diags *errors);
void tune_device_destroy(tune_device *d); /* NULL is fine */
tune_meter tune_device_meter(tune_device *d);
/* The record's head for what this device measures; without entries. */
void tune_device_describe(const tune_device *d, tune_record *out_record);

/* ---- A file of times ---- */

typedef struct tune_timings tune_timings;

/* HD_DECLINED with "tune.timings" diagnostics for what is none. */
hd_status tune_timings_parse(const char *bytes, size_t length, tune_timings **out_timings, diags *errors);
void tune_timings_destroy(tune_timings *t); /* NULL is fine */
tune_meter tune_timings_meter(tune_timings *t);
const target *tune_timings_target(const tune_timings *t);
int tune_timings_compute_units(const tune_timings *t);
/* Fills in device, compute units, compiler, target and evidence. */
void tune_timings_describe(const tune_timings *t, tune_record *out_record);
/* Takes out of the space what was pruned when the times were taken. */
void tune_timings_prune(const tune_timings *t, tune_space *space);

/* The lines that begin a timings file. */
void tune_timings_head(const tune_record *r, text *out);

#endif
