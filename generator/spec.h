/* A spec: the YAML file a person writes. It carries a contract and what may change speed but never results.
 */
#ifndef HEDDLE_SPEC_H
#define HEDDLE_SPEC_H

#include "contract.h"

enum { SPEC_MAX_LIST = 32, SPEC_MAX_FIELDS = 96 };

typedef struct spec_ints {
  int count; /* 0: auto */
  int values[SPEC_MAX_LIST];
} spec_ints;

typedef struct spec_place {
  char field[48]; /* dotted path */
  int line, column;
} spec_place;

typedef struct spec {
  contract contract;
  char name[128];
  char *about; /* may be NULL */
  spec_ints split_factors;
  int target_count; /* 0: every target that serves the contract */
  char targets[SPEC_MAX_LIST][16];
  spec_ints tune_waves, tune_tile, tune_stages;
  int place_count;
  spec_place places[SPEC_MAX_FIELDS]; /* where each field stands in the file, for later diagnostics */
} spec;

/* Parse and validate one YAML document of `length` bytes (at most 1 MiB). All errors are collected in
 * `diags`. HD_OK: `out_spec` is filled (spec_finish it). HD_DECLINED: diagnostics say why; `out_spec` is
 * untouched. */
hd_status spec_parse(const char *yaml, size_t length, spec *out_spec, diags *diags);
void spec_finish(spec *s);
/* Place of `field` (or of its nearest parent) in the file; false when unknown. */
bool spec_find_place(const spec *s, const char *field, int *out_line, int *out_column);

#endif
