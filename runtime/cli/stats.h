/* How counts are shown: run --stats and profile. */
#ifndef HEDDLE_CLI_STATS_H
#define HEDDLE_CLI_STATS_H

#include "../session.h"
#include "cli.h"

/* Which allocation is which tensor. */
typedef struct stats_names {
  int count;
  struct {
    uint64_t start;
    tensor_name name;
  } items[TENSOR_COUNT];
} stats_names;

void stats_names_of(const tensors *on_device, const session_kernel *k, stats_names *out_names);

/* Loads of K and V caches together, over all launches. */
count_traffic stats_kv_loads(const counts *c, const stats_names *names);
/* {"32": …, "64": …, "128": …}: least / touched of segments of so many bytes. */
void json_efficiency(text *out, bool *first, const char *name, const count_traffic *t);

/* One block a launch; `top`: how many memory instructions each lists. */
void stats_table(const counts *c, const session *s, const stats_names *names, int top, text *out);
/* An array, one object a launch. */
void stats_json(const counts *c, const session *s, const stats_names *names, int top, text *out);

/* Complains and returns the exit code when the device can't count. */
int stats_check(const cli *c, const session *s);

#endif
