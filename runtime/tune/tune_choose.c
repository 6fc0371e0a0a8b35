#include "tune.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Doublings: a bucket further away says too little. */
static const double furthest = 2.5;

typedef struct nearest {
  const tune_file *file;
  const tune_entry *entry;
  double distance;
} nearest;

static void look(const tune_file *f, const tune_shape *launch, int compute_units, nearest *best) {
  for (int i = 0; i < f->record->entry_count; i++) {
    const tune_entry *e = &f->record->entries[i];
    double distance = tune_distance(&e->shape, launch, compute_units);
    if (distance < 0) continue;
    /* Equal distances: the first in the record, which is sorted. */
    if (best->entry && distance >= best->distance - 1e-9) continue;
    *best = (nearest){f, e, distance};
  }
}

static void explain_none(const tune_files *f, const nearest *best, const char *shape, tune_choice *out) {
  if (best->entry) {
    text bucket;
    text_init(&bucket);
    tune_shape_write(&best->entry->shape, &bucket);
    snprintf(out->reason, sizeof out->reason,
             "the policy: the nearest bucket, %s of %.200s, is %.1f doublings from %s, more than %.1f",
             text_string(&bucket), best->file->path, best->distance, shape, furthest);
    text_finish(&bucket);
  } else if (f->count == 0) {
    snprintf(out->reason, sizeof out->reason, "the policy: there is no record");
  } else {
    const tune_file *last = &f->items[0];
    for (int i = 0; i < f->count; i++)
      if (f->items[i].valid) last = &f->items[i];
    if (last->valid)
      snprintf(out->reason, sizeof out->reason, "the policy: %.200s has no bucket like %s", last->path,
               shape);
    else
      snprintf(out->reason, sizeof out->reason, "the policy: of %d records none holds; %.160s: %.200s",
               f->count, last->path, last->why);
  }
}

void tune_choose(const tune_files *f, const tune_shape *launch, int compute_units, tune_choice *out) {
  nearest best = {0};
  text shape, bucket;
  *out = (tune_choice){0};
  for (int evidence = TUNE_MEASURED; evidence <= TUNE_SIMULATED; evidence++)
    for (int i = 0; i < f->count; i++)
      if (f->items[i].valid && (int)f->items[i].record->evidence == evidence &&
          !(best.entry && best.distance <= furthest))
        look(&f->items[i], launch, compute_units, &best);
  text_init(&shape);
  text_init(&bucket);
  tune_shape_write(launch, &shape);
  if (!best.entry || best.distance > furthest || !variant_parse(best.entry->variant, &out->variant)) {
    explain_none(f, &best, text_string(&shape), out);
  } else {
    tune_shape_write(&best.entry->shape, &bucket);
    out->found = true;
    out->file = best.file;
    out->entry = best.entry;
    out->distance = best.distance;
    out->splits = tune_scale_splits(&best.entry->shape, best.entry->splits, launch, compute_units);
    snprintf(out->reason, sizeof out->reason,
             "%s bucket %s of %.200s, %.2f doublings away: %s at split %" PRId64,
             tune_evidence_name(best.file->record->evidence), text_string(&bucket), best.file->path,
             best.distance, best.entry->variant, best.entry->splits);
  }
  text_finish(&bucket);
  text_finish(&shape);
}

int64_t tune_choice_splits(const tune_choice *c, split_facts facts, const tune_shape *launch,
                           int compute_units) {
  if (facts.line_parts == 0) return useful_splits(facts, c->splits, launch->length);
  /* Parts of a line: as many as run at a time mean that for any number of items. */
  int64_t asked = c->entry->splits, full = line_resident(facts, compute_units);
  bool filled = asked <= full && asked >= full - full / 16;
  return filled ? launch_splits(facts, launch->seqs * launch->kv_heads, launch->length, compute_units)
                : asked;
}
