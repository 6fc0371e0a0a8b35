#include "pages.h"

void pool_init(pool *p) {
  p->count = 0;
  for (int32_t page = 0; page < POOL; page++)
    p->free[p->count++] = page * 7 % POOL; /* 7 and POOL share no factor: every page once, in no order */
}

bool sequence_reserve(sequence *s, pool *p, int tokens) {
  const int wanted = (tokens + PAGE - 1) / PAGE;
  if (wanted - s->page_count > p->count) return false;
  while (s->page_count < wanted)
    s->pages[s->page_count++] = p->free[--p->count];
  return true;
}

void sequence_release(sequence *s, pool *p) {
  while (s->page_count > 0)
    p->free[p->count++] = s->pages[--s->page_count];
}

int64_t sequence_slot(const sequence *s, int token) {
  return (int64_t)s->pages[token / PAGE] * PAGE + token % PAGE;
}
