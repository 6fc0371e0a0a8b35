#include "../launch/launch.h"
#include "tune.h"
#include "../../generator/sha256.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is tried where the spec does not say. 0: the generator's choice. */
static const int all_waves[] = {0, 1, 2, 4, 8, 12, 16}, all_stages[] = {0, 2, 3, 4, 6, 8},
                 all_resident[] = {0, 1, 2, 3}, all_tiles[] = {0, 64, 128};

typedef struct choices {
  int count;
  int values[SPEC_MAX_LIST + 1];
} choices;

static choices choices_of(const int *all, size_t count, const spec_ints *asked) {
  choices c = {0};
  const int *from = asked && asked->count ? asked->values : all;
  int number = asked && asked->count ? asked->count : (int)count;
  for (int i = 0; i < number; i++)
    c.values[c.count++] = from[i];
  return c;
}

#define CHOICES(all, asked) choices_of(all, sizeof(all) / sizeof *(all), asked)

static hd_status emit_decode_of(const contract *c, const variant *v, const target *t,
                                const template_source *templates, emission *out, char sum[65],
                                diags *errors) {
  hd_status status = emit_operation(c, OPERATION_DECODE, v, t, templates, out, errors);
  if (status != HD_OK) return status;
  text all;
  text_init(&all);
  descriptor plain = out->descriptor;
  plain.variant[0] = '\0'; /* two names of one kernel have one sum */
  text_add(&all, out->source);
  descriptor_write(&plain, &all);
  if (all.failed) status = HD_OUT_OF_MEMORY;
  if (status == HD_OK) sha256_hex(text_string(&all), all.length, sum);
  text_finish(&all);
  if (status != HD_OK) emission_finish(out);
  return status;
}

hd_status tune_sum(const contract *c, const variant *v, const target *t, const template_source *templates,
                   char out_sum[65], diags *errors) {
  emission e;
  hd_status status = emit_decode_of(c, v, t, templates, &e, out_sum, errors);
  if (status == HD_OK) emission_finish(&e);
  return status;
}

static void name_of(const variant *v, char name[64]) {
  text t;
  text_init(&t);
  variant_write(v, &t);
  snprintf(name, 64, "%s", text_string(&t));
  text_finish(&t);
}

static void note_pruned(tune_space *space, const char *name, const char *why) {
  if (space->pruned_count == TUNE_MAX_PRUNED) return;
  tune_pruned *p = &space->pruned[space->pruned_count++];
  snprintf(p->name, sizeof p->name, "%s", name);
  snprintf(p->why, sizeof p->why, "%s", why);
}

static int dynamic_lds(const descriptor *d) {
  int most = 0;
  for (int i = 0; i < d->kernel_count; i++)
    if (d->kernels[i].lds_bytes > most) most = d->kernels[i].lds_bytes;
  return most;
}

static bool listed(const spec_ints *list, int value) {
  for (int i = 0; i < list->count; i++)
    if (list->values[i] == value) return true;
  return list->count == 0;
}

/* Emits one variant and keeps it, or says why not. */
static hd_status consider(tune_space *space, const spec *s, const contract *c, const variant *v,
                          const target *t, const template_source *templates) {
  tune_variant made = {.variant = *v};
  emission e;
  diags why;
  name_of(v, made.name);
  diags_init(&why);
  hd_status status = emit_decode_of(c, v, t, templates, &e, made.sum, &why);
  if (status == HD_DECLINED) note_pruned(space, made.name, why.count ? why.items[0].message : "declined");
  diags_finish(&why);
  if (status != HD_OK) return status == HD_DECLINED ? HD_OK : status;
  made.splits = split_facts_of(&e.descriptor);
  made.lds_bytes = dynamic_lds(&e.descriptor);
  emission_finish(&e);
  char reason[160] = "";
  if (space->count > 0 && (int64_t)made.lds_bytes * (v->resident ? v->resident : 1) > t->lds_bytes)
    snprintf(reason, sizeof reason, "%d workgroups of %d bytes of LDS do not fit the %d of a compute unit",
             v->resident, made.lds_bytes, t->lds_bytes);
  else if (space->count > 0 && !listed(&s->tune_tile, made.splits.tile_tokens))
    snprintf(reason, sizeof reason, "a tile of %d tokens, which tune.tile does not list",
             made.splits.tile_tokens);
  for (int i = 0; !reason[0] && i < space->count; i++)
    if (strcmp(space->items[i].sum, made.sum) == 0)
      snprintf(reason, sizeof reason, "the same kernel as %s", space->items[i].name);
  if (!reason[0] && space->count == TUNE_MAX_VARIANTS)
    snprintf(reason, sizeof reason, "more than %d variants", TUNE_MAX_VARIANTS);
  if (reason[0])
    note_pruned(space, made.name, reason);
  else
    space->items[space->count++] = made;
  return HD_OK;
}

/* Whether the structure has this part at all; where not, that is one reason, not one for each variant. */
static bool has_part(tune_space *space, const contract *c, const variant *v, const target *t) {
  diags why;
  diags_init(&why);
  bool lacks = emit_check(c, OPERATION_DECODE, v, t, &why) == HD_DECLINED && why.count > 0 &&
               (strcmp(why.items[0].code, "decline.structure") == 0 ||
                strcmp(why.items[0].code, "decline.waves") == 0);
  if (lacks) {
    char name[64];
    name_of(v, name);
    note_pruned(space, name, why.items[0].message);
  }
  diags_finish(&why);
  return !lacks;
}

static int largest(const choices *c) {
  int most = 0;
  for (int i = 0; i < c->count; i++)
    if (c->values[i] > most) most = c->values[i];
  return most;
}

static const choices only_default = {1, {0}};

/* Every combination of one structure's parts, with the line of tiles or with splits of each item. */
static hd_status consider_structure(tune_space *space, const spec *s, const contract *c, structure kind,
                                    bool line, const target *t, const template_source *templates) {
  choices waves = CHOICES(all_waves, &s->tune_waves), stages = CHOICES(all_stages, &s->tune_stages),
          resident = CHOICES(all_resident, NULL), tiles = CHOICES(all_tiles, NULL);
  hd_status status = HD_OK;
  if (!has_part(space, c, &(variant){.structure = kind}, t)) return HD_OK;
  if (!has_part(space, c, &(variant){.structure = kind, .stages = largest(&stages)}, t))
    stages = only_default;
  if (!has_part(space, c, &(variant){.structure = kind, .resident = largest(&resident)}, t))
    resident = only_default;
  if (!has_part(space, c, &(variant){.structure = kind, .tile = largest(&tiles)}, t)) tiles = only_default;
  for (int w = 0; w < waves.count; w++) {
    const variant bare = {.structure = kind, .waves = waves.values[w]};
    if (bare.waves && !has_part(space, c, &bare, t)) continue;
    const int rest = tiles.count * stages.count * resident.count;
    for (int i = 0; status == HD_OK && i < rest; i++) {
      const variant v = {kind,
                         waves.values[w],
                         tiles.values[i % tiles.count],
                         stages.values[i / tiles.count % stages.count],
                         resident.values[i / tiles.count / stages.count],
                         line};
      status = consider(space, s, c, &v, t, templates);
    }
  }
  return status;
}

hd_status tune_space_of(const spec *s, const contract *c, const target *t, const template_source *templates,
                        tune_space *out, diags *errors) {
  const variant own = {0};
  *out = (tune_space){.splits = s->split_factors};
  hd_status status = emit_check(c, OPERATION_DECODE, &own, t, errors);
  if (status == HD_OK) status = consider(out, s, c, &own, t, templates);
  for (structure kind = STRUCTURE_DIRECT; status == HD_OK && kind <= STRUCTURE_RING; kind++)
    for (int line = 0; status == HD_OK && line < (kind == STRUCTURE_RING && t->family == FAMILY_CUDA ? 1 : 2);
         line++)
      status = consider_structure(out, s, c, kind, line, t, templates);
  return status;
}

void tune_space_prune(tune_space *space, int index, const char *why) {
  if (index < 1 || index >= space->count) return;
  char name[64];
  memcpy(name, space->items[index].name, sizeof name);
  note_pruned(space, name, why);
  memmove(&space->items[index], &space->items[index + 1],
          (size_t)(space->count - index - 1) * sizeof space->items[0]);
  space->count--;
}

static int compare_splits(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void add_split(const tune_space *space, int64_t tiles, int64_t split, int64_t *splits, int *count) {
  if (split < 1 || split > tiles || split > 4096 || *count == TUNE_MAX_SPLITS) return;
  if (!listed(&space->splits, (int)split)) return;
  for (int i = 0; i < *count; i++)
    if (splits[i] == split) return;
  splits[(*count)++] = split;
}

/* Of each sequence and kv head: the device once, twice, three times full, half full; and what is a little off
 * the policy. */
static void add_item_splits(const tune_space *space, const tune_shape *s, int64_t items, int64_t tiles,
                            int64_t policy, int compute_units, int64_t *out, int *count) {
  add_split(space, tiles, 1, out, count);
  for (int times = 1; times <= 3; times++)
    add_split(space, tiles, (int64_t)compute_units * times / items, out, count);
  add_split(space, tiles, compute_units / (2 * items), out, count);
  if (items < 2 * (int64_t)compute_units) add_split(space, tiles, 2, out, count);
  if (items < compute_units) add_split(space, tiles, policy / 2, out, count);
  if (items < compute_units) add_split(space, tiles, tiles / 2, out, count);
  if (s->ragged) {
    add_split(space, tiles, 4, out, count);
    add_split(space, tiles, 8, out, count);
  }
}

int tune_splits_of(const tune_space *space, const tune_shape *s, split_facts facts, int compute_units,
                   int64_t out[TUNE_MAX_SPLITS], int64_t *out_policy) {
  int count = 0;
  int64_t most = useful_splits(facts, INT64_MAX, s->length);
  const int64_t items = split_items(facts, s->seqs, s->rows, s->kv_heads);
  *out_policy = launch_splits(facts, items, s->length, compute_units);
  out[count++] = *out_policy;
  if (facts.line_parts > 0) {
    add_split(space, most, line_resident(facts, compute_units), out, &count);
    add_split(space, most, line_resident(facts, compute_units) / 2, out, &count);
  } else {
    add_item_splits(space, s, items, most, *out_policy, compute_units, out, &count);
  }
  for (int i = 0; i < space->splits.count; i++)
    add_split(space, most, space->splits.values[i], out, &count);
  qsort(out, (size_t)count, sizeof *out, compare_splits);
  return count;
}
