/* What `heddle build` writes beside filling the cache: kernels as a C file, or as bundles for HIP. */
#ifndef HEDDLE_CLI_BUILD_OUTPUT_H
#define HEDDLE_CLI_BUILD_OUTPUT_H

#include "../build.h"
#include "cli.h"

/* What was built: a job's spec is files[job_file[job]]. */
typedef struct build_set {
  const spec_file *files;
  int file_count;
  const build_job *jobs;
  const int *job_file;
  const build_result *results; /* all good */
  int job_count;
} build_set;

/* Whether the options go together: EXIT_FINE or EXIT_USAGE. */
int build_output_check(const cli *c);
bool build_output_wanted(const cli *c);
/* Writes the file or folder that -o names. */
hd_status build_output_write(const cli *c, const build_set *b, diags *d);

#endif
