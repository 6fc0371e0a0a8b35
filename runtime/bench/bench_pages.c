#include "bench_pages.h"
#include "bench_lists.h"
#include <stdlib.h>

static int64_t pages_of(const bench_data *d, int64_t seq) {
  return (d->lengths[seq] + d->contract->kv.page - 1) / d->contract->kv.page;
}

/* Lists of pages that a sequence has. */
static int64_t lists_of(const bench_data *d) {
  return d->contract->select.per == PER_KV_HEAD ? d->dims[DIM_KV_HEADS] : 1;
}

void bench_pages_size(bench_data *d, int64_t capacity) {
  const int64_t page = d->contract->kv.page, seqs = d->dims[DIM_SEQS];
  int64_t all = 0, room = 0;
  for (int64_t s = 0; s < seqs; s++) {
    all += pages_of(d, s);
    if (pages_of(d, s) > room) room = pages_of(d, s);
  }
  if ((capacity + page - 1) / page > room) room = (capacity + page - 1) / page;
  d->dims[DIM_PAGES] = all;
  d->dims[DIM_TABLE_PAGES] = room;
  /* A ragged list has no more than its own, unless it may grow. */
  if (d->contract->select.form == SELECT_INDPTR)
    d->dims[DIM_TABLE_PAGES] = (capacity > 0 ? seqs * room : all) * lists_of(d);
}

static void shuffle(int32_t *pages, int64_t count, random_state *r) {
  for (int64_t i = count - 1; i > 0; i--) {
    int64_t j = random_below(r, i + 1);
    int32_t kept = pages[i];
    pages[i] = pages[j];
    pages[j] = kept;
  }
}

static void put_page(const contract *c, void *list, int64_t place, int32_t page) {
  dtype_encode(c->select.index, page, (unsigned char *)list + place * dtype_bytes(c->select.index));
}

/* A row of the table; what lies behind the sequence's pages is 0, as memory comes. */
static void fill_table(bench_data *d, int64_t list, const int32_t *own, int64_t count) {
  for (int64_t p = 0; p < count; p++)
    put_page(d->contract, d->memory[TENSOR_PAGE_TABLE], list * d->dims[DIM_TABLE_PAGES] + p, own[p]);
}

/* A ragged list, behind those before it. */
static void fill_ragged(bench_data *d, int64_t seq, int64_t list, const int32_t *own, int64_t count) {
  int32_t *first = d->memory[TENSOR_KV_INDPTR], *last = d->memory[TENSOR_LAST_PAGE_LEN];
  for (int64_t p = 0; p < count; p++)
    put_page(d->contract, d->memory[TENSOR_KV_INDICES], first[list] + p, own[p]);
  first[list + 1] = first[list] + (int32_t)count;
  last[list] = (int32_t)(d->lengths[seq] - (count - 1) * d->contract->kv.page);
}

static void list_pages(bench_data *d, int64_t seq, int32_t *own, int64_t count, random_state *r) {
  for (int64_t n = 0, lists = lists_of(d); n < lists; n++) {
    if (n > 0) shuffle(own, count, r);
    if (d->contract->select.form == SELECT_INDPTR)
      fill_ragged(d, seq, seq * lists + n, own, count);
    else if (d->memory[TENSOR_PAGE_TABLE]) /* token lists have none */
      fill_table(d, seq * lists + n, own, count);
  }
}

bool bench_pages_deal(bench_data *d, random_state *r) {
  int64_t pages = d->dims[DIM_PAGES], dealt = 0;
  int32_t *order = calloc((size_t)pages + 1, sizeof *order);
  bool good = order != NULL;
  if (!good) return false;
  for (int64_t i = 0; i < pages; i++)
    order[i] = (int32_t)i;
  shuffle(order, pages, r);
  for (int64_t s = 0; good && s < d->dims[DIM_SEQS]; s++) {
    list_pages(d, s, order + dealt, pages_of(d, s), r);
    good = bench_lists_fill(d, s, order + dealt, r);
    dealt += pages_of(d, s);
  }
  free(order);
  return good;
}
