#include "tune_meter.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line: what is asked, and the answer. */
typedef struct timing {
  const char *key, *value;
  int line;
} timing;

struct tune_timings {
  char *bytes; /* what keys and values point into */
  tune_record head;
  const target *target;
  int count;
  timing *items; /* sorted by key, then by line */
  char shape[96];
};

static const char first_line[] = "heddle_timings: 1";

void tune_timings_head(const tune_record *r, text *out) {
  text_addf(out, "%s\ntarget: %s\ndevice: %s\ncompute_units: %d\nevidence: %s\ncompiler: %s\n", first_line,
            r->target, r->device, r->compute_units, tune_evidence_name(r->evidence), r->compiler);
}

static int by_key(const void *a, const void *b) {
  const timing *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order ? order : x->line - y->line;
}

/* 0 for what is no number of compute units, and for more than a record may have. */
static int read_units(const char *value) {
  enum { MOST_DIGITS = 7, MOST_UNITS = 1 << 20 };
  size_t digits = strspn(value, "0123456789");
  if (digits == 0 || digits > MOST_DIGITS || value[digits] != '\0') return 0;
  long units = strtol(value, NULL, 10);
  return units <= MOST_UNITS ? (int)units : 0;
}

/* "name: value" of the head; false for other lines. */
static bool read_head(tune_timings *t, const char *line) {
  tune_record *r = &t->head;
  const char *value = strstr(line, ": ");
  if (!value) return false;
  size_t length = (size_t)(value - line);
  value += 2;
#define IS(name) (length == sizeof(name) - 1 && memcmp(line, name, length) == 0)
  if (IS("target")) {
    t->target = target_find(value);
    snprintf(r->target, sizeof r->target, "%s", value);
  } else if (IS("device")) {
    snprintf(r->device, sizeof r->device, "%s", value);
  } else if (IS("compute_units")) {
    r->compute_units = read_units(value);
  } else if (IS("evidence")) {
    r->evidence = strcmp(value, tune_evidence_name(TUNE_MEASURED)) == 0 ? TUNE_MEASURED : TUNE_SIMULATED;
  } else if (IS("compiler")) {
    snprintf(r->compiler, sizeof r->compiler, "%s", value);
  } else {
    return false;
  }
#undef IS
  return true;
}

/* Words of the key, by the first word of a line. */
static const struct {
  const char *word;
  int words;
} kinds[] = {{"time", 5}, {"read", 2}, {"wrong", 4}, {"pruned", 2}};

/* Cuts a line behind its key. */
static bool read_line(tune_timings *t, char *line, int number) {
  int words = 0;
  size_t first = strcspn(line, " ");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strlen(kinds[i].word) == first && memcmp(kinds[i].word, line, first) == 0) words = kinds[i].words;
  char *at = line;
  for (int i = 0; i < words; i++) {
    at += strcspn(at, " ");
    if (!*at) return false;
    at += i + 1 < words;
  }
  if (words == 0) return false;
  *at = '\0';
  t->items[t->count++] = (timing){line, at + 1, number};
  return true;
}

static hd_status refuse_line(diags *errors, int number, const char *line) {
  diags_errorf(errors, "tune.timings", NULL, "line %d is none of a timings file: %.60s", number, line);
  return HD_DECLINED;
}

static hd_status read_lines(tune_timings *t, diags *errors) {
  int number = 0;
  for (char *line = t->bytes; *line;) {
    size_t length = strcspn(line, "\n");
    char *next = line + length + (line[length] == '\n');
    line[length] = '\0';
    number++;
    bool good = number == 1 ? strcmp(line, first_line) == 0
                            : length == 0 || read_head(t, line) || read_line(t, line, number);
    /* A log that was continued has its head once more. */
    if (!good && strcmp(line, first_line) != 0) return refuse_line(errors, number, line);
    line = next;
  }
  if (t->target && t->head.compute_units > 0) return HD_OK;
  diags_errorf(errors, "tune.timings", NULL, "the head of the timings names no target or no compute units");
  return HD_DECLINED;
}

hd_status tune_timings_parse(const char *bytes, size_t length, tune_timings **out, diags *errors) {
  tune_timings *t = calloc(1, sizeof *t);
  if (!t) return HD_OUT_OF_MEMORY;
  size_t lines = 1;
  for (size_t i = 0; i < length; i++)
    lines += bytes[i] == '\n';
  t->bytes = malloc(length + 1);
  t->items = calloc(lines, sizeof *t->items);
  hd_status status = t->bytes && t->items ? HD_OK : HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    memcpy(t->bytes, bytes, length);
    t->bytes[length] = '\0';
    status = read_lines(t, errors);
  }
  if (status == HD_OK) {
    qsort(t->items, (size_t)t->count, sizeof *t->items, by_key);
    *out = t;
  } else {
    tune_timings_destroy(t);
  }
  return status;
}

void tune_timings_destroy(tune_timings *t) {
  if (!t) return;
  free(t->bytes);
  free(t->items);
  free(t);
}

const target *tune_timings_target(const tune_timings *t) {
  return t->target;
}

int tune_timings_compute_units(const tune_timings *t) {
  return t->head.compute_units;
}

void tune_timings_describe(const tune_timings *t, tune_record *r) {
  r->evidence = t->head.evidence;
  r->compute_units = t->head.compute_units;
  memcpy(r->target, t->head.target, sizeof r->target);
  memcpy(r->device, t->head.device, sizeof r->device);
  memcpy(r->compiler, t->head.compiler, sizeof r->compiler);
}

/* The last line whose key begins with the first `length` bytes of `key`, or NULL. */
static const char *find_prefix(const tune_timings *t, const char *key, size_t length) {
  int low = 0, high = t->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (strncmp(t->items[middle].key, key, length) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && strncmp(t->items[low - 1].key, key, length) == 0 ? t->items[low - 1].value : NULL;
}

/* The last line with this key: what was measured again counts. */
static const char *find(const tune_timings *t, const char *key) {
  return find_prefix(t, key, strlen(key) + 1);
}

void tune_timings_prune(const tune_timings *t, tune_space *space) {
  for (int i = 1; i < space->count;) {
    char key[96];
    snprintf(key, sizeof key, "pruned %s", space->items[i].name);
    const char *why = find(t, key);
    if (why)
      tune_space_prune(space, i, why);
    else
      i++;
  }
}

static hd_status number_of(const char *value, const char *key, double *out, diags *errors) {
  if (value && text_read_double(value, strlen(value), out) && *out >= 0 && *out < 1e12) return HD_OK;
  diags_errorf(errors, "tune.timings", NULL, "the timings have no number for \"%s\"", key);
  return HD_DECLINED;
}

static hd_status begin(void *user, const tune_shape *s, diags *errors) {
  tune_timings *t = user;
  text name;
  (void)errors;
  text_init(&name);
  tune_shape_write(s, &name);
  snprintf(t->shape, sizeof t->shape, "%s", text_string(&name));
  text_finish(&name);
  return HD_OK;
}

static void end(void *user) {
  ((tune_timings *)user)->shape[0] = '\0';
}

static hd_status check(void *user, const tune_variant *v, int64_t splits, bool *out_good, char why[160],
                       diags *errors) {
  const tune_timings *t = user;
  char key[224];
  (void)errors;
  snprintf(key, sizeof key, "wrong %s %s %" PRId64, t->shape, v->name, splits);
  const char *problem = find(t, key);
  *out_good = problem == NULL;
  if (problem) snprintf(why, 160, "%.150s", problem);
  return HD_OK;
}

static hd_status take_time(void *user, const tune_variant *v, int64_t splits, int repeat, double *out_us,
                           diags *errors) {
  const tune_timings *t = user;
  char key[256];
  snprintf(key, sizeof key, "time %s %s %" PRId64 " %d", t->shape, v->name, splits, repeat);
  const char *value = find(t, key);
  /* Times that were edited can lead elsewhere than those that were taken: then any time of the candidate. */
  if (!value) value = find_prefix(t, key, (size_t)(strrchr(key, ' ') + 1 - key));
  return number_of(value, key, out_us, errors);
}

static hd_status read_time(void *user, double *out_us, diags *errors) {
  const tune_timings *t = user;
  char key[128];
  snprintf(key, sizeof key, "read %s", t->shape);
  *out_us = 0;
  const char *value = find(t, key);
  return value ? number_of(value, key, out_us, errors) : HD_OK; /* estimates have none */
}

tune_meter tune_timings_meter(tune_timings *t) {
  return (tune_meter){t, begin, end, check, take_time, read_time};
}
