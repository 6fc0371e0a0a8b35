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

int64_t bench_seen(const contract *c, int64_t length) {
  int64_t listed = bench_listed(c), unit = unit_of(c), units = (length + unit - 1) / unit;
  if (listed == 0 || units <= listed) return length;
  return (listed - 1) * unit + (length - (units - 1) * unit);
}

/* `listed` different numbers below `count`, count - 1 among them, in random order; -1 when they run out. */
static void draw(int64_t *numbers, int64_t count, int64_t listed, random_state *r) {
  for (int64_t i = 0; i < count; i++)
    numbers[i] = count - 1 - i; /* the last one first */
  int64_t drawn = listed < count ? listed : count;
  for (int64_t i = 1; i < drawn; i++) {
    int64_t j = i + random_below(r, count - i), kept = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = kept;
  }
  for (int64_t i = drawn; i < listed; i++)
    numbers[i] = -1;
  for (int64_t i = listed - 1; i > 0; i--) {
    int64_t j = random_below(r, i + 1), kept = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = kept;
  }
}

bool bench_lists_fill(bench_data *d, int64_t seq, int64_t length, const int32_t *own, random_state *r) {
  const contract *c = d->contract;
  int64_t listed = d->dims[DIM_LISTED], seqs = d->dims[DIM_SEQS], unit = unit_of(c);
  if (!contract_makes_lists(c)) return true;
  int64_t count = (length + unit - 1) / unit;
  bool blocks = c->select.form == SELECT_BLOCKS, by_head = blocks || c->select.per == PER_KV_HEAD;
  int64_t *numbers = calloc((size_t)(count > listed ? count : listed) + 1, sizeof *numbers);
  if (!numbers) return false;
  for (int64_t head = 0; head < (by_head ? d->dims[DIM_KV_HEADS] : 1); head++) {
    int64_t first = (head * seqs + seq) * listed;
    draw(numbers, count, listed, r);
    for (int64_t i = 0; i < listed; i++)
      if (blocks)
        ((int32_t *)d->memory[TENSOR_BLOCK_LIST])[first + i] = (int32_t)numbers[i];
      else
        dtype_encode(c->select.index, numbers[i] < 0 ? -1.0 : (double)own[numbers[i]],
                     (unsigned char *)d->memory[TENSOR_TOKEN_LIST] +
                         (first + i) * dtype_bytes(c->select.index));
  }
  free(numbers);
  if (d->memory[TENSOR_ROW_SEQUENCES]) ((int32_t *)d->memory[TENSOR_ROW_SEQUENCES])[seq] = (int32_t)seq;
  return true;
}
