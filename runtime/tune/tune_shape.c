#include "../bench/bench.h"
#include "tune.h"
#include <math.h>
#include <string.h>

/* Bytes of K, V and scales of the largest shape that is measured by itself: beyond it only bandwidth
 * counts. */
static const int64_t most_bytes = 700000000;

/* Sequences by kv heads, from one to several times the compute units of any device, closer together where a
 * device fills up. */
static const struct {
  int seqs, kv_heads;
} uniform[] =
    {
        {1, 1}, {4, 1}, {16, 1}, {32, 1}, {64, 1}, {96, 1}, {128, 1}, {192, 1}, {256, 1},
        {1, 8}, {2, 8}, {4, 8},  {8, 8},  {16, 8}, {24, 8}, {32, 8},  {64, 8},  {128, 8},
},
  ragged[] = {{8, 1}, {32, 1}, {128, 1}, {256, 1}, {8, 8}, {32, 8}, {128, 8}};

static const int lengths[] = {1024, 4096, 16384, 65536};

/* What an emulated device gets through. */
static const tune_shape emulated_shapes[] = {
    {1, 512, 1, 0, false}, {1, 2048, 1, 0, false}, {4, 512, 1, 0, false}, {8, 512, 1, 0, true}};

static bool add(tune_shape *out, int *count, tune_shape s, int64_t bytes_a_token_head) {
  if (s.seqs * s.kv_heads * s.length > most_bytes / bytes_a_token_head || *count == TUNE_MAX_SHAPES)
    return false;
  if (out) out[*count] = s;
  ++*count;
  return true;
}

int tune_default_shapes(int64_t bytes_a_token_head, bool emulated, tune_shape *out) {
  int count = 0;
  if (emulated) {
    for (size_t i = 0; i < sizeof emulated_shapes / sizeof *emulated_shapes; i++)
      add(out, &count, emulated_shapes[i], bytes_a_token_head);
    return count;
  }
  for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
    for (size_t i = 0; i < sizeof uniform / sizeof *uniform; i++)
      add(out, &count, (tune_shape){uniform[i].seqs, lengths[n], uniform[i].kv_heads, 0, false},
          bytes_a_token_head);
    for (size_t i = 0; lengths[n] > 1024 && i < sizeof ragged / sizeof *ragged; i++)
      add(out, &count, (tune_shape){ragged[i].seqs, lengths[n], ragged[i].kv_heads, 0, true},
          bytes_a_token_head);
  }
  return count;
}

bool tune_is_ragged(int64_t seqs, int64_t longest, int64_t tokens) {
  return tokens > 0 && (double)longest * (double)seqs > 1.3 * (double)tokens;
}

static const char ragged_suffix[] = "-ragged", rows_suffix[] = "rows";

void tune_shape_write(const tune_shape *s, text *out) {
  const bench_shape plain = {s->seqs, s->length, s->kv_heads, 0};
  bench_shape_write(&plain, out);
  if (s->rows > 1) text_addf(out, "-%d%s", s->rows, rows_suffix);
  if (s->ragged) text_add(out, ragged_suffix);
}

/* Takes `suffix` off the end. */
static bool take_suffix(char *word, const char *suffix) {
  const size_t length = strlen(word), own = strlen(suffix);
  if (length <= own || strcmp(word + length - own, suffix) != 0) return false;
  word[length - own] = '\0';
  return true;
}

/* Takes "-2rows" off the end; 0 where the word doesn't end so, -1 for rows that there can't be. */
static int take_rows(char *word) {
  if (!take_suffix(word, rows_suffix)) return 0;
  char *dash = strrchr(word, '-');
  if (!dash || dash[1] < '1' || dash[1] > '9' || dash[2]) return -1; /* 8 are served */
  *dash = '\0';
  return dash[1] - '0';
}

bool tune_shape_parse(const char *word, tune_shape *out_shape) {
  char plain[96];
  bench_shape s;
  if (strlen(word) >= sizeof plain) return false;
  strcpy(plain, word);
  const bool is_ragged = take_suffix(plain, ragged_suffix);
  const int rows = take_rows(plain);
  if (rows < 0 || !bench_shape_parse(plain, &s) || s.heads_per_kv) return false;
  *out_shape = (tune_shape){s.seqs, s.length, s.kv_heads, rows, is_ragged};
  return true;
}

bool tune_shape_same(const tune_shape *a, const tune_shape *b) {
  return a->seqs == b->seqs && a->length == b->length && a->kv_heads == b->kv_heads && a->rows == b->rows &&
         a->ragged == b->ragged;
}

double tune_distance(const tune_shape *bucket, const tune_shape *launch, int compute_units) {
  if (bucket->rows != launch->rows || bucket->ragged != launch->ragged) return -1;
  if (launch->seqs < 1 || launch->length < 1 || launch->kv_heads < 1) return -1;
  double own = (double)bucket->seqs * (double)bucket->kv_heads;
  double items = (double)launch->seqs * (double)launch->kv_heads;
  double more = log2(items / own), longer = log2((double)launch->length / (double)bucket->length);
  double heads = log2((double)launch->kv_heads / (double)bucket->kv_heads);
  bool full = own >= compute_units && items >= compute_units;
  if (full && own >= 2.0 * compute_units && more > 0) more /= 4;
  if (full && longer > 0) longer /= 4;
  return fabs(more) + fabs(longer) + fabs(heads) / 4;
}

int64_t tune_scale_splits(const tune_shape *bucket, int64_t measured, const tune_shape *launch,
                          int compute_units) {
  int64_t own = bucket->seqs * bucket->kv_heads, items = launch->seqs * launch->kv_heads;
  if (measured < 1 || own < 1 || items < 1) return 1;
  /* Any number of workgroups from `least` to `most` gives the bucket its split. */
  int64_t least = measured * own, most = least + own - 1, workgroups = least;
  if (compute_units > 0 && most / compute_units * compute_units >= least)
    workgroups = most / compute_units * compute_units;
  return workgroups / items < 1 ? 1 : workgroups / items;
}
