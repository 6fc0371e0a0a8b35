#include "bench_lists.h"
#include <stdlib.h>

static int64_t unit_of(const contract *c) {
  return c->select.form == SELECT_BLOCKS ? c->select.block : 1;
}

int64_t bench_listed(const contract *c) {
  if (!contract_makes_lists(c)) return 0;
  int64_t listed = BENCH_LISTED_TOKENS / unit_of(c);
  return listed > 0 ? listed : 1;
}

int64_t bench_seen(const contract *c, int rows, int64_t length) {
  int64_t listed = bench_listed(c), unit = unit_of(c), units = (length + unit - 1) / unit;
  int64_t window = c->mask.window + (c->mask.causal ? rows - 1 : 0);
  if (c->mask.window > 0 && window < length) return window;
  listed = rows * (listed - 1) + 1; /* they share the last one */
  if (!contract_makes_lists(c) || units <= listed) return length;
  return (listed - 1) * unit + (length - (units - 1) * unit);
}

static void swap(int64_t *numbers, int64_t i, int64_t j) {
  int64_t kept = numbers[i];
  numbers[i] = numbers[j];
  numbers[j] = kept;
}

/* The numbers below `count`, the first `drawn` of them at random. */
static void draw(int64_t *numbers, int64_t count, int64_t drawn, random_state *r) {
  for (int64_t i = 0; i < count; i++)
    numbers[i] = i;
  for (int64_t i = 0; i < drawn && i < count; i++)
    swap(numbers, i, i + random_below(r, count - i));
}

/* A row's list, of `others` that were drawn and the last one; -1 when they run out. In random order. */
static void list_row(const int64_t *drawn, int64_t others, int64_t row, int64_t listed, int64_t *out,
                     random_state *r) {
  out[0] = others;
  for (int64_t i = 0; i < listed - 1; i++)
    out[1 + i] = i < others ? drawn[(row * (listed - 1) + i) % others] : -1;
  for (int64_t i = listed - 1; i > 0; i--)
    swap(out, i, random_below(r, i + 1));
}

/* Entries of a list, from `first` on. */
static void put_list(bench_data *d, int64_t first, const int64_t *numbers, const int32_t *own) {
  const contract *c = d->contract;
  for (int64_t i = 0; i < d->dims[DIM_LISTED]; i++)
    if (c->select.form == SELECT_BLOCKS)
      ((int32_t *)d->memory[TENSOR_BLOCK_LIST])[first + i] = (int32_t)numbers[i];
    else
      dtype_encode(c->select.index, numbers[i] < 0 ? -1.0 : (double)own[numbers[i]],
                   (unsigned char *)d->memory[TENSOR_TOKEN_LIST] +
                       (first + i) * dtype_bytes(c->select.index));
}

bool bench_lists_fill(bench_data *d, int64_t seq, const int32_t *own, random_state *r) {
  const contract *c = d->contract;
  int64_t listed = d->dims[DIM_LISTED], seqs = d->dims[DIM_SEQS], rows = d->dims[DIM_ROWS];
  if (!contract_makes_lists(c)) return true;
  int64_t others = (d->lengths[seq] + unit_of(c) - 1) / unit_of(c) - 1; /* beside the last one */
  bool by_head = c->select.form == SELECT_BLOCKS || c->select.per == PER_KV_HEAD;
  int64_t *drawn = calloc((size_t)(others + listed) + 1, sizeof *drawn), *list = drawn + others;
  if (!drawn) return false;
  for (int64_t head = 0; head < (by_head ? d->dims[DIM_KV_HEADS] : 1); head++) {
    draw(drawn, others, rows * (listed - 1), r);
    for (int64_t row = 0; row < rows; row++) {
      list_row(drawn, others, row, listed, list, r);
      put_list(d, ((head * seqs + seq) * rows + row) * listed, list, own);
    }
  }
  free(drawn);
  if (d->memory[TENSOR_ROW_SEQUENCES]) ((int32_t *)d->memory[TENSOR_ROW_SEQUENCES])[seq] = (int32_t)seq;
  return true;
}
