/* Where the results of `heddle bench` go: a table as they come, CSV, or JSON at the end. */
#ifndef HEDDLE_CLI_BENCH_REPORT_H
#define HEDDLE_CLI_BENCH_REPORT_H

#include "../bench/bench.h"
#include "cli.h"

typedef enum report_form { REPORT_TABLE, REPORT_CSV, REPORT_JSON } report_form;

typedef struct report {
  report_form form;
  const char *spec;
  const session *session;
  const bench_options *options;
  int count;
  text results; /* JSON */
  bench_summary summary;
} report;

void report_init(report *r, report_form form, const char *name, const session *s,
                 const bench_options *options);
void report_result(report *r, const bench_result *result);
/* After the last result, before report_finish. */
void report_summary(report *r, const bench_summary *summary);
/* Prints what is left to print unless it is not `wanted`. An exit code. */
int report_finish(report *r, bool wanted, bool good);

#endif
