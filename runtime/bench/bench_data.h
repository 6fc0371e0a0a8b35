/* What a benchmark runs on: the inputs of one shape in host memory, a pool of copies of its caches on the
 * device, and what the oracle says of some of its sequences. */
#ifndef HEDDLE_BENCH_DATA_H
#define HEDDLE_BENCH_DATA_H

#include "bench.h"

/* What is dealt. */
typedef struct bench_deal {
  bench_shape shape;
  int rows; /* query rows of a sequence; 0: the contract's */
  bool ragged;
  int64_t capacity; /* tokens that tables and lists have room for; less than the longest sequence's: those */
  uint64_t seed;
} bench_deal;

/* Inputs in host memory. K, V and scales of one copy lie end to end in `slab`. */
typedef struct bench_data {
  const contract *contract;
  tensors host; /* of the decode; out and lse included */
  int64_t dims[DIM_COUNT];
  /* Tokens that rows of a sequence see, each once, for each kv head alike; of the longest sequence, seen or
   * not; bytes of K, V and scales that must be read. */
  int64_t tokens, longest, bytes;
  int32_t *lengths;           /* of each sequence */
  void *memory[TENSOR_COUNT]; /* of tensors outside the slab */
  unsigned char *slab;
  size_t slab_bytes, offset[TENSOR_COUNT]; /* bytes; of tensors inside the slab */
} bench_data;

/* `c` resolved. Every page of the cache is used, in random order. Elements are normal numbers. HD_DECLINED
 * for rows that the contract has not. */
hd_status bench_data_init(bench_data *d, const contract *c, const bench_deal *deal, diags *errors);
void bench_data_finish(bench_data *d);

/* Copies of the slab on the device, and the other tensors once. */
typedef struct bench_pool {
  session *session;
  device_pointer base;
  int copies;
  size_t stride; /* bytes from one copy to the next */
  tensors fixed; /* everything but the caches and scales */
  const bench_data *data;
} bench_pool;

hd_status bench_pool_init(bench_pool *p, session *s, const bench_data *d, int copies, diags *errors);
void bench_pool_finish(bench_pool *p);
/* The tensors of launch `index`: copy index % copies. */
tensors bench_pool_tensors(const bench_pool *p, int index);

/* Tokens times query heads that the oracle is asked for: it takes about 1.3 microseconds each. The longest
 * sequence is checked whatever it takes, but in fewer heads when that is several budgets. */
enum { BENCH_MAX_CHECKED = 16, BENCH_CHECK_BUDGET = 1 << 20 };

/* The oracle's answer for some sequences: the longest one, and others as time allows. */
typedef struct bench_expected {
  int count;
  int64_t seqs[BENCH_MAX_CHECKED];
  int heads;    /* query heads of each kv head that are checked: all, or of very long sequences one */
  int head;     /* which, where it is one */
  double *rows; /* [count, rows, kv_heads * heads, head_dim.v] */
} bench_expected;

hd_status bench_expected_init(bench_expected *e, const bench_data *d, double scale, int64_t budget,
                              uint64_t seed, diags *errors);
void bench_expected_finish(bench_expected *e);
/* Holds `out` (host memory, the whole tensor) against it: fills checked, rms, rms_allowed, row_rms, good and
 * problem. */
void bench_expected_compare(const bench_expected *e, const bench_data *d, const void *out, bench_result *r);

#endif
