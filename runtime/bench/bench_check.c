#include "bench_data.h"
#include "bench_lists.h"
#include "../verify/oracle.h"
#include "../verify/verify.h"
#include "../verify/verify_data.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Query rows of one sequence. */
static int64_t rows_of(const bench_data *d) {
  return d->dims[DIM_ROWS] * d->dims[DIM_KV_HEADS] * d->contract->query.heads_per_kv;
}

/* Of these, rows that are checked. */
static int64_t checked_rows(const bench_expected *e, const bench_data *d) {
  return rows_of(d) / d->contract->query.heads_per_kv * e->heads;
}

/* Where the n-th checked row of a sequence lies among its rows. */
static int64_t checked_row(const bench_expected *e, const bench_data *d, int64_t n) {
  int heads = d->contract->query.heads_per_kv;
  return n / e->heads * heads + (e->heads == heads ? n % heads : e->head);
}

static bool chosen(const bench_expected *e, int64_t seq) {
  for (int i = 0; i < e->count; i++)
    if (e->seqs[i] == seq) return true;
  return false;
}

static void choose(bench_expected *e, const bench_data *d, int64_t budget, random_state *r) {
  const int32_t *lengths = d->lengths;
  int64_t seqs = d->dims[DIM_SEQS], spent = 0;
  for (int64_t attempt = 0; attempt < 4 * BENCH_MAX_CHECKED && e->count < BENCH_MAX_CHECKED; attempt++) {
    int64_t seq = random_below(r, seqs);
    if (attempt == 0) /* the first of the longest ones from here on */
      while (lengths[seq] < d->longest)
        seq = (seq + 1) % seqs;
    int64_t cost = bench_seen(d->contract, (int)d->dims[DIM_ROWS], lengths[seq]) * checked_rows(e, d);
    if (chosen(e, seq) || (e->count > 0 && spent + cost > budget)) continue;
    e->seqs[e->count++] = seq;
    spent += cost;
  }
}

/* Of a tensor with one row a query head, the checked ones in a new tensor's memory (free). False without
 * memory. */
static bool take_rows(const bench_expected *e, const bench_data *d, tensor *t, int64_t first, int64_t rows) {
  size_t bytes = tensor_bytes(t) / (size_t)(t->shape[0] * (t->rank > 1 ? t->shape[1] : 1));
  unsigned char *taken = malloc((size_t)rows * bytes + 1);
  if (!taken) return false;
  for (int64_t n = 0; n < rows; n++)
    memcpy(taken + (size_t)n * bytes,
           (const unsigned char *)(uintptr_t)t->data + (size_t)(first + checked_row(e, d, n)) * bytes, bytes);
  t->data = (uint64_t)(uintptr_t)taken;
  return true;
}

/* One query head of each kv head of one sequence, as a contract of one head a kv head. */
static hd_status decode_thin(const bench_expected *e, const bench_data *d, int64_t seq, const tensors *host,
                             const int64_t dims[DIM_COUNT], double scale, double *out, diags *errors) {
  contract thin = *d->contract;
  tensors t = *host;
  int64_t rows = checked_rows(e, d);
  t.by_name[TENSOR_Q] = d->host.by_name[TENSOR_Q];
  thin.query.heads_per_kv = 1;
  if (!take_rows(e, d, &t.by_name[TENSOR_Q], seq * rows_of(d), rows)) return HD_OUT_OF_MEMORY;
  bool sinks = t.present[TENSOR_SINKS]; /* the same of all rows */
  bool good = !sinks || take_rows(e, d, &t.by_name[TENSOR_SINKS], 0, rows / d->dims[DIM_ROWS]);
  hd_status status = good ? HD_OK : HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    status = oracle_decode(&thin, &t, dims, scale, out, NULL, errors);
    if (sinks) free((void *)(uintptr_t)t.by_name[TENSOR_SINKS].data);
  }
  free((void *)(uintptr_t)t.by_name[TENSOR_Q].data);
  return status;
}

/* The oracle on one sequence alone. */
static hd_status decode_one(const bench_expected *e, const bench_data *d, int64_t seq, double scale,
                            double *out, diags *errors) {
  static const tensor_name per_sequence[] = {TENSOR_Q, TENSOR_LENGTHS, TENSOR_ROW_SEQUENCES,
                                             TENSOR_PAGE_TABLE, TENSOR_LAST_PAGE_LEN};
  tensors host = d->host;
  int64_t dims[DIM_COUNT];
  memcpy(dims, d->dims, sizeof dims);
  for (size_t i = 0; i < sizeof per_sequence / sizeof per_sequence[0]; i++) {
    tensor *t = &host.by_name[per_sequence[i]];
    bool shared = per_sequence[i] == TENSOR_PAGE_TABLE && host.present[TENSOR_ROW_SEQUENCES];
    if (host.present[per_sequence[i]] && !shared)
      t->data += (uint64_t)seq * (tensor_bytes(t) / (size_t)dims[DIM_SEQS]);
  }
  /* One entry more than there are lists; what they hold begins at the same place for all of them. */
  host.by_name[TENSOR_KV_INDPTR].data +=
      (uint64_t)seq * (tensor_bytes(&host.by_name[TENSOR_LAST_PAGE_LEN]) / (size_t)dims[DIM_SEQS]);
  uint64_t listed = (uint64_t)(seq * dims[DIM_ROWS] * dims[DIM_LISTED_STRIDE_ROW]);
  host.by_name[TENSOR_BLOCK_LIST].data += listed * sizeof(int32_t);
  host.by_name[TENSOR_TOKEN_LIST].data += listed * (uint64_t)dtype_bytes(d->contract->select.index);
  dims[DIM_SEQS] = 1;
  if (e->heads < d->contract->query.heads_per_kv)
    return decode_thin(e, d, seq, &host, dims, scale, out, errors);
  return oracle_decode(d->contract, &host, dims, scale, out, NULL, errors);
}

/* Sequences for several threads, each of which takes the next one. */
typedef struct expecting {
  const bench_expected *e;
  const bench_data *d;
  double scale;
  int64_t elements; /* of a sequence */
  atomic_int next;
  atomic_bool failed;
} expecting;

static void *expect_sequences(void *user) {
  expecting *x = user;
  for (int i; (i = atomic_fetch_add(&x->next, 1)) < x->e->count;) {
    diags errors;
    diags_init(&errors);
    if (decode_one(x->e, x->d, x->e->seqs[i], x->scale, x->e->rows + i * x->elements, &errors) != HD_OK)
      atomic_store(&x->failed, true);
    diags_finish(&errors);
  }
  return NULL;
}

/* False where a sequence failed. */
static bool expect_all(expecting *x) {
  pthread_t threads[BENCH_MAX_CHECKED];
  int started = 0, wanted = x->e->count - 1;
  while (started < wanted && pthread_create(&threads[started], NULL, expect_sequences, x) == 0)
    started++;
  expect_sequences(x);
  for (int i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
  return !atomic_load(&x->failed);
}

hd_status bench_expected_init(bench_expected *e, const bench_data *d, double scale, int64_t budget,
                              uint64_t seed, diags *errors) {
  random_state r = {seed ^ 0x6368656b};
  int heads = d->contract->query.heads_per_kv;
  *e = (bench_expected){.heads = heads};
  const int64_t seen = bench_seen(d->contract, (int)d->dims[DIM_ROWS], d->longest);
  if (seen * rows_of(d) > budget) { /* one query head of each kv head */
    e->heads = 1;
    e->head = (int)random_below(&r, heads);
  }
  int64_t elements = checked_rows(e, d) * d->contract->head_dim.v;
  choose(e, d, budget, &r);
  e->rows = calloc((size_t)(e->count * elements) + 1, sizeof *e->rows);
  if (!e->rows) return HD_OUT_OF_MEMORY;
  expecting all = {.e = e, .d = d, .scale = scale, .elements = elements};
  hd_status status = HD_OK;
  bool good = expect_all(&all);
  for (int i = 0; !good && status == HD_OK && i < e->count; i++) /* what failed again, for its words */
    status = decode_one(e, d, e->seqs[i], scale, e->rows + i * elements, errors);
  if (status != HD_OK) bench_expected_finish(e);
  return status;
}

void bench_expected_finish(bench_expected *e) {
  free(e->rows);
  *e = (bench_expected){0};
}

static double value_at(const void *array, dtype type, int64_t index) {
  return dtype_decode(type, (const unsigned char *)array + (size_t)index * (size_t)dtype_bytes(type));
}

static void fail(bench_result *r, const char *format, ...) HD_PRINTF(2, 3);

/* The first problem stays. */
static void fail(bench_result *r, const char *format, ...) {
  va_list args;
  if (!r->good) return;
  va_start(args, format);
  vsnprintf(r->problem, sizeof r->problem, format, args);
  va_end(args);
  r->good = false;
}

/* Squares of what differs, of what is expected, and of what rounding to the output format differs by. */
typedef struct squares {
  double error, norm, rounding;
} squares;

static squares compare_row(const double *expected, const void *out, dtype type, int64_t first,
                           int64_t width) {
  squares s = {0};
  for (int64_t i = 0; i < width; i++) {
    unsigned char rounded[8];
    dtype_encode(type, expected[i], rounded);
    double error = value_at(out, type, first + i) - expected[i];
    double rounding = dtype_decode(type, rounded) - expected[i];
    s.error += error * error;
    s.norm += expected[i] * expected[i];
    s.rounding += rounding * rounding;
  }
  return s;
}

void bench_expected_compare(const bench_expected *e, const bench_data *d, const void *out, bench_result *r) {
  dtype type = d->contract->output.dtype;
  int64_t width = d->contract->head_dim.v, rows = rows_of(d);
  squares all = {0};
  r->good = true;
  r->problem[0] = '\0';
  r->checked = e->count;
  r->row_rms = 0;
  /* Rows that nobody wrote hold NaN, also those of sequences that are not sampled. */
  for (int64_t i = 0; i < d->dims[DIM_SEQS] * rows * width; i++)
    if (!isfinite(value_at(out, type, i)))
      fail(r, "row %" PRId64 " channel %" PRId64 " is not finite", i / width, i % width);
  for (int i = 0; i < e->count; i++)
    for (int64_t n = 0; n < checked_rows(e, d); n++) {
      int64_t at = e->seqs[i] * rows + checked_row(e, d, n);
      squares s = compare_row(e->rows + (i * checked_rows(e, d) + n) * width, out, type, at * width, width);
      all.error += s.error;
      all.norm += s.norm;
      all.rounding += s.rounding;
      double relative = s.norm > 0 ? sqrt(s.error / s.norm) : 0;
      if (relative > r->row_rms) r->row_rms = relative;
      double allowed =
          s.norm > 0
              ? fmax(VERIFY_ROW_RMS, sqrt(s.rounding / s.norm + VERIFY_ROW_COMPUTED * VERIFY_ROW_COMPUTED))
              : 0;
      if (!(relative <= allowed))
        fail(r, "relative RMS error of row %" PRId64 " is %.2e, allowed %.1e", at, relative, allowed);
    }
  r->rms = all.norm > 0 ? sqrt(all.error / all.norm) : 0;
  double rounding = all.norm > 0 ? all.rounding / all.norm : 0;
  r->rms_allowed = fmax(VERIFY_RMS, sqrt(rounding + VERIFY_COMPUTED * VERIFY_COMPUTED));
  if (all.norm == 0) fail(r, "the expected result is zero: nothing is checked");
  if (!(r->rms <= r->rms_allowed)) fail(r, "relative RMS error %.2e, allowed %.1e", r->rms, r->rms_allowed);
}
