/* Benchmarks of decode on one device: what a shape costs, beside a kernel that only reads the same bytes.
 *
 * Method (docs/benchmarks.md): the caches lie in a pool of copies larger than any cache of the device, a
 * graph of launches walks over the copies, and whole replays of it are timed between events. The output is
 * held against the float64 oracle first; a wrong result has no time. */
#ifndef HEDDLE_BENCH_H
#define HEDDLE_BENCH_H

#include "../session.h"
#include "../tune/tune.h"

/* ---- Shapes ---- */

typedef struct bench_shape {
  int64_t seqs, length, kv_heads; /* length: tokens of the longest sequence */
  int heads_per_kv;               /* 0: the contract's */
} bench_shape;

/* "64x8192x4x16": sequences, tokens, kv heads, query heads a kv head; the last may be left out. */
bool bench_shape_parse(const char *word, bench_shape *out_shape);
void bench_shape_write(const bench_shape *shape, text *out);

typedef struct bench_preset {
  const char *name, *about;
  const bench_shape *shapes;
  int count;
} bench_preset;

extern const bench_preset bench_presets[];
extern const int bench_preset_count;
const bench_preset *bench_preset_find(const char *name); /* NULL when unknown */

enum { BENCH_MAX_SHAPES = 512 };

/* The n-th of the random shapes of a seed: 1 to 256 sequences, 1024 to 65536 tokens, 1 to 8 kv heads, sizes
 * by their logarithm, every other one ragged. What would take more than 600 MB at `bytes_a_token_head` is
 * made shorter, then smaller. */
void bench_random_shape(uint64_t seed, int n, int64_t bytes_a_token_head, bench_shape *out_shape,
                        bool *out_ragged);

/* `c` with another group size or page (0: its own). HD_INVALID with a diagnostic when a layout can't have
 * pages of that size. */
hd_status bench_contract(const contract *c, int heads_per_kv, int page, contract *out_contract,
                         diags *errors);

/* Tokens of each sequence: all `length`, or ragged: every eighth that and the others between 1/16 and 5/16 of
 * it. Returns their sum. */
int64_t bench_lengths(const bench_shape *shape, bool ragged, int32_t *out_lengths);

/* ---- Timing ---- */

enum { BENCH_MAX_REPEAT = 101, BENCH_MAX_SPLITS = 32 };

typedef struct bench_statistics {
  double median, least, most;
  double spread; /* (most - least) / median */
} bench_statistics;

void bench_statistics_of(const double *samples, int count, bench_statistics *out_statistics);

/* How many copies of `bytes` are rotated: more than 450 MB together, at least 2, as memory allows (three
 * quarters of it; 0: unknown). 0 when not even one copy fits. */
int bench_copies(int64_t bytes, int64_t memory_bytes);
/* Launches in a graph: at least 16, and every copy equally often. */
int bench_launches(int copies);

/* Puts the launch of copy `index % copies` on the stream. */
typedef hd_status (*bench_launch)(void *user, device_stream *s, int index, diags *errors);

/* Captures `launches` calls of `launch` in one graph, warms up (two replays, and more until they have taken
 * `warm_milliseconds`), and replays it `repeat` times: microseconds per launch of each replay. */
hd_status bench_time(device *d, bench_launch launch, void *user, int launches, int repeat,
                     double warm_milliseconds, double *out_microseconds, diags *errors);

/* ---- Benchmarks ---- */

typedef struct bench_options {
  bool ragged;
  int rows;   /* query rows of a sequence; 0: the contract's */
  int page;   /* 0: the contract's */
  int repeat; /* replays, at most BENCH_MAX_REPEAT */
  /* Tokens that a sequence may grow to, as where a graph is captured once: page tables and ragged lists have
   * room for them and the split is chosen for them. Less than the longest sequence's: those. */
  int64_t capacity;
  int split_count;
  int64_t splits[BENCH_MAX_SPLITS]; /* 0: by policy */
  uint64_t seed;
  bool quick; /* a quarter of the oracle's rows, and a shorter warm-up: for many shapes */
  /* Records that give variant and split where neither is asked for; NULL: none. Validated anew for each
   * shape's contract. */
  tune_files *tuned;
} bench_options;

typedef struct bench_series {
  int count;
  double samples[BENCH_MAX_REPEAT]; /* microseconds an operation */
  bench_statistics statistics;
} bench_series;

/* One shape at one split. */
typedef struct bench_result {
  bench_shape shape; /* heads_per_kv resolved */
  int rows, page;
  bool ragged;
  bool changed; /* the contract is not the spec's: another group size or page */
  char contract_key[65], code_key[65], variant[64], compiler[128];
  int64_t splits;
  bool by_policy, tuned; /* who chose the split, when it was not asked for */
  char choice[480];      /* where variant and split are from; "" when both were asked for */
  /* Tokens that rows of a sequence see, each once, of all sequences; K + V + scale bytes that must be read.
   */
  int64_t tokens, bytes;
  int copies, launches;
  /* Against the oracle, of the sequences that were sampled. */
  int checked; /* how many */
  double rms, rms_allowed, row_rms;
  bool good;
  char problem[240];
  bool timed; /* false for a wrong result and on emulated devices */
  bool best;  /* the fastest split of its shape */
  bench_series decode;
  bench_series read;
  int64_t read_workgroups;
} bench_result;

/* Derived figures. Decimal GB/s; the share of the read kernel's speed; and the ratio to the aim, 1.02 times
 * the read + 2 microseconds. */
double bench_gigabytes_per_second(const bench_result *r);
double bench_share(const bench_result *r);
double bench_ratio(const bench_result *r);

/* Over shapes, of the fastest split each: ratios to the aim. */
typedef struct bench_summary {
  int count; /* shapes with a time */
  double median, worst;
  const bench_result *worst_result; /* NULL when count is 0 */
} bench_summary;

void bench_summary_of(const bench_result *results, int count, bench_summary *out_summary);

/* Query rows of a sequence: those that are asked for, or 0: the contract's. HD_DECLINED with "bench.rows". */
hd_status bench_rows(const contract *c, int asked, int *out_rows, diags *errors);

/* Runs one shape at each split: options->split_count results. `v` all zero: the records' choice, else the
 * generator's. `c` resolved for the session's target. HD_OK
 * also when a result is wrong; other statuses say that nothing could be run. */
hd_status bench_run(session *s, const contract *c, const char *name, const variant *v,
                    const bench_shape *shape, const bench_options *options, bench_result *out_results,
                    diags *errors);

#endif
