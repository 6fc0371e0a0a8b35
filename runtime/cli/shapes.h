/* Shapes of launches, as several verbs read and write them. */
#ifndef HEDDLE_CLI_SHAPES_H
#define HEDDLE_CLI_SHAPES_H

#include "../bench/bench.h"
#include "../tune/tune.h"
#include "cli.h"

/* "64x8192x4", "64x8192x4x16". EXIT_USAGE, complained about, for a word that is none. */
int cli_bench_shape(const cli *c, const char *word, bench_shape *out_shape);
/* "64x8192x4", "64x8192x4-2rows-ragged". */
int cli_tune_shape(const cli *c, const char *word, tune_shape *out_shape);
/* Members `seqs`, `length` and `kv_heads`. */
void json_extents(text *t, bool *first, int64_t seqs, int64_t length, int64_t kv_heads);

#endif
