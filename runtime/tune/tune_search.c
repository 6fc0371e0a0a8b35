#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Samples of a candidate in each round, and how many candidates the round leaves. */
static const struct {
  int repeat, kept_percent, kept_least;
} rounds[] = {{3, 40, 12}, {5, 40, 6}, {9, 50, 4}, {15, 100, 1}};
enum { ROUNDS = sizeof rounds / sizeof rounds[0] };

typedef struct candidate {
  const tune_variant *variant;
  int64_t splits;
  bool policy; /* the generator's choice at the policy's split: kept to the end, to say what tuning gained */
  double us;
} candidate;

typedef struct search {
  const tune_space *space;
  const tune_meter *meter;
  const tune_shape *shape;
  const tune_report *report;
  candidate *items;
  int count;
  int tried;
} search;

static int by_name(const candidate *a, const candidate *b) {
  int order = strcmp(a->variant->name, b->variant->name);
  return order ? order : (a->splits > b->splits) - (a->splits < b->splits);
}

static int by_time(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return x->us < y->us ? -1 : x->us > y->us ? 1 : by_name(x, y);
}

static void drop(search *s, int index, const char *why) {
  const candidate *c = &s->items[index];
  if (s->report && s->report->dropped)
    s->report->dropped(s->report->user, s->shape, c->variant->name, c->splits, why);
  memmove(&s->items[index], &s->items[index + 1], (size_t)(s->count - index - 1) * sizeof *s->items);
  s->count--;
}

static hd_status check(search *s, const candidate *c, bool *out_good, char why[160], diags *errors) {
  snprintf(why, 160, "its result is wrong");
  return s->meter->check(s->meter->user, c->variant, c->splits, out_good, why, errors);
}

/* Every variant once, at its first split: a wrong one goes with all its splits. */
static hd_status check_variants(search *s, diags *errors) {
  for (int i = 0; i < s->count;) {
    const tune_variant *v = s->items[i].variant;
    bool good = false;
    char why[160];
    hd_status status = check(s, &s->items[i], &good, why, errors);
    if (status != HD_OK) return status;
    while (!good && i < s->count && s->items[i].variant == v)
      drop(s, i, why);
    while (good && i < s->count && s->items[i].variant == v)
      i++;
  }
  return HD_OK;
}

static hd_status time_all(search *s, int repeat, diags *errors) {
  hd_status status = HD_OK;
  for (int i = 0; status == HD_OK && i < s->count; i++)
    status = s->meter->time(s->meter->user, s->items[i].variant, s->items[i].splits, repeat, &s->items[i].us,
                            errors);
  qsort(s->items, (size_t)s->count, sizeof *s->items, by_time);
  return status;
}

static void keep(search *s, int percent, int least) {
  int kept = s->count * percent / 100;
  if (kept < least) kept = least;
  if (kept >= s->count) return;
  for (int i = kept; i < s->count; i++)
    if (s->items[i].policy) s->items[kept++] = s->items[i];
  s->count = kept;
}

/* The first by name of those within the margin of the fastest; right at its own split, or the next one. */
static hd_status choose(search *s, double margin, const candidate **out_winner, diags *errors) {
  while (s->count > 0) {
    int winner = 0;
    for (int i = 1; i < s->count && s->items[i].us <= s->items[0].us * (1 + margin); i++)
      if (by_name(&s->items[i], &s->items[winner]) < 0) winner = i;
    bool good = false;
    char why[160];
    hd_status status = check(s, &s->items[winner], &good, why, errors);
    if (status != HD_OK) return status;
    if (good) {
      *out_winner = &s->items[winner];
      return HD_OK;
    }
    drop(s, winner, why);
  }
  diags_errorf(errors, "tune.wrong", NULL, "no variant gives the right result");
  return HD_DECLINED;
}

static bool list_candidates(search *s, int compute_units) {
  s->items = calloc((size_t)s->space->count * TUNE_MAX_SPLITS, sizeof *s->items);
  for (int v = 0; s->items && v < s->space->count; v++) {
    const tune_variant *own = &s->space->items[v];
    int64_t splits[TUNE_MAX_SPLITS], policy;
    int count = tune_splits_of(s->space, s->shape, own->splits, compute_units, splits, &policy);
    for (int i = 0; i < count; i++)
      s->items[s->count++] = (candidate){own, splits[i], v == 0 && splits[i] == policy, 0};
  }
  s->tried = s->count;
  return s->items != NULL;
}

static hd_status run(search *s, double margin, tune_entry *out, diags *errors) {
  double read = 0;
  hd_status status = check_variants(s, errors);
  if (status == HD_OK) status = s->meter->read(s->meter->user, &read, errors);
  for (int round = 0; status == HD_OK && round < ROUNDS; round++) {
    status = time_all(s, rounds[round].repeat, errors);
    keep(s, rounds[round].kept_percent, rounds[round].kept_least);
  }
  const candidate *winner = NULL;
  double policy = 0;
  for (int i = 0; i < s->count; i++)
    if (s->items[i].policy) policy = s->items[i].us;
  if (status == HD_OK) status = choose(s, margin, &winner, errors);
  if (status != HD_OK) return status;
  *out = (tune_entry){.shape = *s->shape,
                      .splits = winner->splits,
                      .us = winner->us,
                      .policy_us = policy,
                      .read_us = read,
                      .candidates = s->tried};
  snprintf(out->variant, sizeof out->variant, "%s", winner->variant->name);
  return HD_OK;
}

hd_status tune_search(const tune_space *space, const tune_meter *m, const tune_shape *shape,
                      int compute_units, double margin, const tune_report *report, tune_entry *out_entry,
                      diags *errors) {
  search s = {.space = space, .meter = m, .shape = shape, .report = report};
  if (!list_candidates(&s, compute_units)) return HD_OUT_OF_MEMORY;
  hd_status status = m->begin(m->user, shape, errors);
  if (status == HD_OK) {
    status = run(&s, margin, out_entry, errors);
    m->end(m->user);
  }
  free(s.items);
  return status;
}
