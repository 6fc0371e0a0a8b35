/* Tuning: which variant and split is fastest for a shape, as data.
 *
 * A record holds, for one contract on one device, shapes that were measured ("buckets") with the variant and
 * split that won. A launch looks up the nearest bucket by what the host knows without asking the device.
 * Records are text (YAML), carry what they depend on, and are ignored, with a reason, where that has changed.
 * docs/tuning.md is the manual. */
#ifndef HEDDLE_TUNE_H
#define HEDDLE_TUNE_H

#include "../../generator/emit.h"
#include "../../generator/spec.h"
#include "../launch/launch.h"
#include <stdbool.h>
#include <stdint.h>

/* ---- Shapes ---- */

/* What a launch knows on the host. `length`: tokens of the longest sequence. */
typedef struct tune_shape {
  int64_t seqs, length, kv_heads;
  int rows;    /* query rows of a sequence; 0, before it is measured or asked for: the contract's */
  bool ragged; /* the longest sequence has more than 1.3 times the mean */
} tune_shape;

/* `tokens`: of all sequences together, 0 when the host does not know them: then they count as uniform. */
bool tune_is_ragged(int64_t seqs, int64_t longest, int64_t tokens);
/* "64x8192x4", "64x8192x4-ragged", of several query rows "64x8192x4-2rows-ragged". Written without rows is
 * one row; read without them it has 0. */
void tune_shape_write(const tune_shape *s, text *out);
bool tune_shape_parse(const char *word, tune_shape *out_shape);
bool tune_shape_same(const tune_shape *a, const tune_shape *b);
/* How far a launch is from a bucket, in doublings, or a negative number when the bucket says nothing about
 * it. Past the point where sequences and heads fill the device alone, more of them or longer ones count a
 * quarter. */
double tune_distance(const tune_shape *bucket, const tune_shape *launch, int compute_units);

/* The shapes that are measured when none are named; those whose K and V would take more than
 * `bytes_a_token_head` allows for are left out. Returns how many; `out_shapes` may be NULL. Their rows
 * are 0. */
int tune_default_shapes(int64_t bytes_a_token_head, bool emulated, tune_shape *out_shapes);
enum { TUNE_MAX_SHAPES = 256 };

/* ---- The space ---- */

enum { TUNE_MAX_VARIANTS = 96, TUNE_MAX_PRUNED = 512, TUNE_MAX_SPLITS = 12 };

typedef struct tune_variant {
  variant variant;
  char name[64];
  char sum[65]; /* tune_sum */
  split_facts splits;
  int lds_bytes;
} tune_variant;

typedef struct tune_pruned {
  char name[64];
  char why[160];
} tune_pruned;

typedef struct tune_space {
  int count, pruned_count;
  tune_variant items[TUNE_MAX_VARIANTS]; /* items[0] is the generator's own choice, "default" */
  tune_pruned pruned[TUNE_MAX_PRUNED];
  spec_ints splits; /* split counts the spec allows; none: any */
} tune_space;

/* SHA-256 over decode's emitted source and launch descriptor: what a measured time depends on. */
hd_status tune_sum(const contract *c, const variant *v, const target *t, const template_source *templates,
                   char out_sum[65], diags *errors);
/* Every variant of the spec's `tune` section and the target that the generator serves and whose facts fit; of
 * those with the same source the first. `c`: the spec's contract resolved for the target. HD_DECLINED when
 * the contract is not served at all. */
hd_status tune_space_of(const spec *s, const contract *c, const target *t, const template_source *templates,
                        tune_space *out_space, diags *errors);
/* Takes variant `index` (not 0) out. */
void tune_space_prune(tune_space *space, int index, const char *why);
/* The split counts worth trying for a shape, ascending; the policy's is among them and in `out_policy`. */
int tune_splits_of(const tune_space *space, const tune_shape *s, split_facts facts, int compute_units,
                   int64_t out_splits[TUNE_MAX_SPLITS], int64_t *out_policy);

/* ---- Records ---- */

typedef enum tune_evidence { TUNE_MEASURED, TUNE_SIMULATED } tune_evidence;
const char *tune_evidence_name(tune_evidence e);

typedef struct tune_entry {
  tune_shape shape;
  char variant[64];
  int64_t splits;
  double us, policy_us, read_us; /* medians; of the generator's choice at the policy's split; 0: unknown */
  int candidates;                /* variants and splits that were compared */
} tune_entry;

typedef struct tune_source {
  char variant[64];
  char sum[65];
} tune_source;

enum { TUNE_MAX_ENTRIES = 400 };

typedef struct tune_record {
  char name[128]; /* the spec's */
  char contract[65];
  int heads_per_kv, page; /* for people: the key has them */
  char target[16];
  tune_evidence evidence;
  char device[128]; /* as the driver names it */
  int compute_units;
  char compiler[128];
  double margin; /* of noise, as a share */
  int entry_count, source_count;
  tune_entry entries[TUNE_MAX_ENTRIES];   /* sorted by shape */
  tune_source sources[TUNE_MAX_VARIANTS]; /* of the variants that entries name; sorted */
} tune_record;

/* Deterministic: fixed order of keys, shortest numbers. */
void tune_record_write(const tune_record *r, text *out);
/* HD_DECLINED with "tune.record" diagnostics that have line and column. Safe on any bytes. */
hd_status tune_record_parse(const char *yaml, size_t length, tune_record *out_record, diags *errors);
/* Adds, or replaces the entry of the same shape. False when the record is full. */
bool tune_record_add(tune_record *r, const tune_entry *e, const char *sum);
const tune_entry *tune_record_find(const tune_record *r, const tune_shape *shape); /* NULL */
/* Both into `out_record`: of two entries for a shape the faster one, then the first by name and split.
 * HD_DECLINED ("tune.merge") when they are not of one contract, device, evidence or generator. */
hd_status tune_record_merge(const tune_record *a, const tune_record *b, tune_record *out_record,
                            diags *errors);

/* ---- Dispatch ---- */

/* Records by file, and whether they count here. */
typedef struct tune_file {
  char *path;
  tune_record *record;
  bool valid;
  char why[240]; /* why not */
} tune_file;

typedef struct tune_files {
  int count;
  tune_file *items;
} tune_files;

/* `path`: a record, or a folder whose *.yaml are taken, in the order of their names. A folder that is not
 * there has none. HD_IO or HD_DECLINED (nothing is loaded) when a file can't be read or is no record. */
hd_status tune_files_load(const char *path, tune_files *out_files, diags *errors);
void tune_files_finish(tune_files *f);
/* Says for each record whether it holds for this contract (resolved), target and device, with the templates
 * that builds use (HEDDLE_TEMPLATES). `facts` NULL: any device of the target. */
void tune_files_validate(tune_files *f, const contract *c, const target *t, const device_facts *facts);

typedef struct tune_choice {
  bool found;
  variant variant;         /* zero (the generator's choice) when not found */
  int64_t splits;          /* 0 when not found: by policy */
  const tune_file *file;   /* NULL when not found */
  const tune_entry *entry; /* the bucket */
  double distance;
  char reason[480]; /* in words: which bucket and how far, or why no record counts */
} tune_choice;

/* The nearest bucket of the records that are valid; measured ones come before simulated ones. */
void tune_choose(const tune_files *f, const tune_shape *launch, int compute_units, tune_choice *out_choice);
/* The split to launch a found choice with, on a kernel of these facts. */
int64_t tune_choice_splits(const tune_choice *c, split_facts facts, const tune_shape *launch,
                           int compute_units);
/* The split of a launch for a bucket that was measured with `measured` splits: as many workgroups as that
 * stood for, a whole multiple of the compute units where it can have been one. */
int64_t tune_scale_splits(const tune_shape *bucket, int64_t measured, const tune_shape *launch,
                          int compute_units);

/* ---- Search ---- */

/* Where times come from: a device, an emulated device's estimate, or a file of earlier times. */
typedef struct tune_meter {
  void *user;
  /* Gets ready for a shape, and gives that up. */
  hd_status (*begin)(void *user, const tune_shape *s, diags *errors);
  void (*end)(void *user);
  /* Whether variant `v` at this split gives the right result; `out_why` says why not. */
  hd_status (*check)(void *user, const tune_variant *v, int64_t splits, bool *out_good, char out_why[160],
                     diags *errors);
  /* Median microseconds of `repeat` samples. */
  hd_status (*time)(void *user, const tune_variant *v, int64_t splits, int repeat, double *out_us,
                    diags *errors);
  hd_status (*read)(void *user, double *out_us, diags *errors); /* the same bytes, only read; 0: unknown */
} tune_meter;

typedef struct tune_report {
  void *user;
  void (*dropped)(void *user, const tune_shape *s, const char *name, int64_t splits, const char *why);
} tune_report;

/* One shape: checks, then successive halving. `*out_entry` is the winner. HD_DECLINED when no candidate is
 * right. Deterministic: the same answers of the meter give the same entry. */
hd_status tune_search(const tune_space *space, const tune_meter *m, const tune_shape *s, int compute_units,
                      double margin, const tune_report *report, tune_entry *out_entry, diags *errors);

#endif
