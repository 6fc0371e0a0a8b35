/* The campaign: a pairwise-covering array of the spec space, and random specs, generated, compiled, executed
 * on devices and held against the oracle. docs/edges.md has its figures; "campaign --help" its options. */
#include "cover.h"
#include "random_spec.h"
#include "work.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DEVICES = 8, MAX_CODES = 64, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_BROKEN = 3 };

static const char usage[] =
    "campaign pairwise|fuzz [OPTION]...\n"
    "  --devices LIST  emu:gfx942,… (default: the four emulated ones); cuda:0\n"
    "  --seed N        everything follows from it (default: 1)\n"
    "  --count N       fuzz: random specs, which the devices take in turns (default: 100)\n"
    "  --shapes N      fuzz: random batches of each spec (default: 2)\n"
    "  --points N      pairwise: only the first N points of the array\n"
    "  --jobs N        processes (default: cores)\n"
    "  --seconds N     what one spec may take (default: 300)\n"
    "  --line          every decode shares out the line of tiles\n"
    "  --json FILE     what was done, for programs\n"
    "  --holes         pairwise: list the pairs that are not served, and run nothing\n"
    "HEDDLE_CACHE_DIR: where compiled kernels are kept.\n";

typedef struct settings {
  bool fuzz, holes_only, line;
  const char *devices[MAX_DEVICES], *targets[MAX_DEVICES];
  int device_count;
  uint64_t seed;
  int count, shapes, points, jobs, seconds;
  const char *json;
} settings;

/* Codes and how often each was met. */
typedef struct tally {
  char codes[MAX_CODES][48];
  int counts[MAX_CODES], used;
} tally;

static void count_code(tally *t, const char *code) {
  int i = 0;
  while (i < t->used && strcmp(t->codes[i], code) != 0)
    i++;
  if (i == MAX_CODES) return;
  if (i == t->used) snprintf(t->codes[t->used++], sizeof t->codes[i], "%s", code);
  t->counts[i]++;
}

/* What is known of one device. */
typedef struct summary {
  int specs, served, invalid, runs, bad;
  int64_t pairs;
  int points, holes;
  double rms, row_rms, lse;
  tally declines, hole_codes;
} summary;

typedef struct campaign {
  settings settings;
  work_job *jobs;
  int job_count, job_capacity, reported;
  summary by_device[MAX_DEVICES];
  text failures, holes; /* JSON array items */
  bool out_of_memory;
} campaign;

static int device_index(const campaign *c, const work_job *job) {
  for (int i = 0; i < c->settings.device_count; i++)
    if (c->settings.devices[i] == job->device) return i;
  return 0;
}

/* The next job, zeroed but for device, target and seed; NULL: out of memory. */
static work_job *add_job(campaign *c, int at) {
  if (c->job_count == c->job_capacity) {
    int capacity = c->job_capacity ? 2 * c->job_capacity : 256;
    work_job *grown = realloc(c->jobs, (size_t)capacity * sizeof *grown);
    if (!grown) {
      c->out_of_memory = true;
      return NULL;
    }
    c->jobs = grown;
    c->job_capacity = capacity;
  }
  work_job *job = &c->jobs[c->job_count++];
  *job = (work_job){
      .device = c->settings.devices[at], .target = c->settings.targets[at], .seed = c->settings.seed};
  return job;
}

static void keep_text(campaign *c, work_job *job, text *yaml) {
  job->yaml = text_take(yaml);
  c->out_of_memory = c->out_of_memory || !job->yaml;
}

static void add_pair(text *out, const char *key, int field, int value) {
  text_addf(out, "\"%s\": ", key);
  text_add_json(out, space_fields[field].path);
  text_addf(out, ", \"%s_value\": ", key);
  text_add_json(out, space_fields[field].values[value]);
}

static void note_hole(campaign *c, int at, const cover_hole *h) {
  count_code(&c->by_device[at].hole_codes, h->code);
  text_addf(&c->holes, "%s{\"target\": \"%s\", ", c->holes.length ? ",\n  " : "", c->settings.targets[at]);
  add_pair(&c->holes, "field", h->field, h->value);
  text_add(&c->holes, ", ");
  add_pair(&c->holes, "other", h->other_field, h->other_value);
  text_addf(&c->holes, ", \"code\": \"%s\"}", h->code);
  if (!c->settings.holes_only) return;
  printf("%-8s %s = %s with %s = %s: %s\n", c->settings.targets[at], space_fields[h->field].path,
         space_fields[h->field].values[h->value], space_fields[h->other_field].path,
         space_fields[h->other_field].values[h->other_value], h->code);
}

static void plan_pairwise(campaign *c, int at) {
  cover found;
  if (!cover_init(&found, target_find(c->settings.targets[at]), c->settings.seed, c->settings.points)) {
    c->out_of_memory = true;
    return;
  }
  summary *s = &c->by_device[at];
  s->pairs = found.pairs;
  s->points = found.point_count;
  s->holes = found.hole_count;
  for (int i = 0; i < found.hole_count; i++)
    note_hole(c, at, &found.holes[i]);
  for (int i = 0; i < found.point_count; i++) {
    const space_point *p = &found.points[i];
    work_job *job = add_job(c, at);
    if (!job) break;
    char name[64];
    text yaml;
    text_init(&yaml);
    snprintf(name, sizeof name, "pairwise-%s-%d", c->settings.targets[at], i);
    space_write_spec(p, name, &yaml);
    keep_text(c, job, &yaml);
    job->variant = space_variant(p);
    job->variant.line |= c->settings.line;
    job->only = space_value(p, "run.case");
    job->split = atoi(space_value(p, "run.split"));
    job->padded = strcmp(space_value(p, "run.strides"), "padded") == 0;
  }
  cover_finish(&found);
  printf("%s: %lld pairs of values, %d points, %d pairs not served\n", c->settings.targets[at],
         (long long)s->pairs, s->points, s->holes);
  fflush(stdout);
}

static void plan_fuzz(campaign *c) {
  static const int waves[] = {0, 0, 0, 1, 2, 4, 8};
  for (int i = 0; i < c->settings.count; i++) {
    random_state r = {c->settings.seed * 1000003u + (uint64_t)i};
    work_job *job = add_job(c, i % c->settings.device_count);
    if (!job) return;
    char name[64];
    text yaml;
    text_init(&yaml);
    snprintf(name, sizeof name, "fuzz-%llu-%d", (unsigned long long)c->settings.seed, i);
    random_spec(&r, name, &yaml);
    keep_text(c, job, &yaml);
    job->variant.waves = waves[random_below(&r, 7)];
    job->variant.line = c->settings.line;
    job->only = "random-";
    job->random_cases = c->settings.shapes;
    job->split = random_below(&r, 3) ? 0 : 1 + random_below(&r, 12);
    job->padded = random_below(&r, 2) != 0;
    job->seed = random_bits(&r) >> 1; /* as the command's option reads it */
  }
}

static void note_failure(campaign *c, const work_job *job, const work_result *r) {
  text command;
  text_init(&command);
  work_write_command(job, "failed.yaml", &command);
  printf("BAD %s: %s %s\n%s  # failed.yaml: the text above\n  %s\n", job->target, r->code, r->problem,
         job->yaml, text_string(&command));
  text_addf(&c->failures,
            "%s{\"target\": \"%s\", \"code\": \"%s\", \"problem\": ", c->failures.length ? ",\n  " : "",
            job->target, r->code);
  text_add_json(&c->failures, r->problem);
  text_add(&c->failures, ", \"spec\": ");
  text_add_json(&c->failures, job->yaml);
  text_add(&c->failures, ", \"command\": ");
  text_add_json(&c->failures, text_string(&command));
  text_add(&c->failures, "}");
  text_finish(&command);
}

static void note_result(void *user, const work_job *job, const work_result *r) {
  campaign *c = user;
  summary *s = &c->by_device[device_index(c, job)];
  s->specs++;
  s->runs += r->cases;
  s->rms = fmax(s->rms, r->rms);
  s->row_rms = fmax(s->row_rms, r->row_rms);
  s->lse = fmax(s->lse, r->lse);
  bool invalid = strncmp(r->code, "spec.", 5) == 0;
  if (r->declined) count_code(&s->declines, r->code);
  s->invalid += invalid;
  s->served += !r->declined && !invalid;
  /* A served spec has to run, and a random spec has to be valid. */
  bool wrong = !r->done || r->bad > 0 || (r->code[0] && !r->declined) || (!r->code[0] && r->cases == 0);
  s->bad += r->bad > 0 ? r->bad : wrong;
  if (wrong) note_failure(c, job, r);
  if (++c->reported % 50 == 0) printf("  %d of %d specs\n", c->reported, c->job_count);
  fflush(stdout);
}

static void print_tally(const char *what, const tally *t) {
  for (int i = 0; i < t->used; i++)
    printf("  %s %-24s %d\n", what, t->codes[i], t->counts[i]);
}

static void print_summary(const campaign *c) {
  for (int i = 0; i < c->settings.device_count; i++) {
    const summary *s = &c->by_device[i];
    printf("%s: %d specs, %d served, %d runs, %d bad; worst rms %.2e, worst row %.2e, worst lse %.1e\n",
           c->settings.devices[i], s->specs, s->served, s->runs, s->bad, s->rms, s->row_rms, s->lse);
    print_tally("declined", &s->declines);
    print_tally("pairs not served", &s->hole_codes);
  }
}

static void add_tally(text *out, const char *key, const tally *t) {
  text_addf(out, ", \"%s\": {", key);
  for (int i = 0; i < t->used; i++)
    text_addf(out, "%s\"%s\": %d", i ? ", " : "", t->codes[i], t->counts[i]);
  text_add(out, "}");
}

static bool write_json(const campaign *c, double seconds) {
  text out;
  text_init(&out);
  text_addf(&out, "{\"kind\": \"%s\", \"seed\": %llu, \"seconds\": %.1f, \"devices\": [",
            c->settings.fuzz ? "fuzz" : "pairwise", (unsigned long long)c->settings.seed, seconds);
  for (int i = 0; i < c->settings.device_count; i++) {
    const summary *s = &c->by_device[i];
    text_addf(&out,
              "%s{\"device\": \"%s\", \"target\": \"%s\", \"specs\": %d, \"served\": %d, \"runs\": %d, "
              "\"bad\": %d, "
              "\"worst_rms\": %.3e, \"worst_row_rms\": %.3e, \"worst_lse\": %.2e",
              i ? ",\n  " : "\n  ", c->settings.devices[i], c->settings.targets[i], s->specs, s->served,
              s->runs, s->bad, s->rms, s->row_rms, s->lse);
    add_tally(&out, "declined", &s->declines);
    if (!c->settings.fuzz) {
      text_addf(&out, ", \"pairs\": %lld, \"points\": %d, \"pairs_not_served\": %d", (long long)s->pairs,
                s->points, s->holes);
      add_tally(&out, "not_served_by_code", &s->hole_codes);
    }
    text_add(&out, "}");
  }
  text_addf(&out, "],\n \"failures\": [%s],\n \"not_served\": [%s]}\n", text_string(&c->failures),
            text_string(&c->holes));
  FILE *f = out.failed ? NULL : fopen(c->settings.json, "w");
  bool good = f && fwrite(out.data, 1, out.length, f) == out.length;
  if (f && fclose(f) != 0) good = false;
  text_finish(&out);
  return good;
}

static bool read_number(const char *from, int least, int *out) {
  char *end;
  long n = strtol(from, &end, 10);
  if (*end || n < least || n > 100000000) return false;
  *out = (int)n;
  return true;
}

static bool read_devices(settings *s, char *list) {
  s->device_count = 0;
  for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
    if (s->device_count == MAX_DEVICES) return false;
    const char *colon = strchr(name, ':');
    s->devices[s->device_count] = name;
    s->targets[s->device_count] = strncmp(name, "emu:", 4) == 0 && colon ? colon + 1 : "sm_90";
    if (!target_find(s->targets[s->device_count++])) return false;
  }
  return s->device_count > 0;
}

static bool read_settings(int argc, char **argv, settings *s) {
  static char all[32 * MAX_DEVICES];
  for (size_t t = 0, length = 0; t < target_count() && length < sizeof all; t++)
    if (target_at(t)->family != FAMILY_CUDA)
      length += (size_t)snprintf(all + length, sizeof all - length, "%semu:%s", length > 0 ? "," : "",
                                 target_at(t)->name);
  *s = (settings){.seed = 1, .count = 100, .shapes = 2, .seconds = 300};
  s->jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (argc < 2 || !read_devices(s, all)) return false;
  s->fuzz = strcmp(argv[1], "fuzz") == 0;
  if (!s->fuzz && strcmp(argv[1], "pairwise") != 0) return false;
  for (int i = 2; i < argc; i++) {
    const struct {
      const char *name;
      int least, *to;
    } numbers[] = {{"--count", 1, &s->count},
                   {"--shapes", 1, &s->shapes},
                   {"--points", 1, &s->points},
                   {"--jobs", 1, &s->jobs},
                   {"--seconds", 1, &s->seconds}};
    bool holes = strcmp(argv[i], "--holes") == 0, line = strcmp(argv[i], "--line") == 0, known = false;
    s->holes_only |= holes;
    s->line |= line;
    if (holes || line) continue;
    if (i + 1 >= argc) return false;
    const char *name = argv[i++];
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0] && !known; n++) {
      known = strcmp(name, numbers[n].name) == 0;
      if (known && !read_number(argv[i], numbers[n].least, numbers[n].to)) return false;
    }
    if (known) continue;
    int seed = 0;
    if (strcmp(name, "--json") == 0)
      s->json = argv[i];
    else if (strcmp(name, "--seed") == 0 && read_number(argv[i], 0, &seed))
      s->seed = (uint64_t)seed;
    else if (strcmp(name, "--devices") != 0 || !read_devices(s, argv[i]))
      return false;
  }
  return true;
}

static int run(campaign *c) {
  for (int i = 0; !c->settings.fuzz && i < c->settings.device_count; i++)
    plan_pairwise(c, i);
  if (c->settings.fuzz) plan_fuzz(c);
  if (c->out_of_memory) return EXIT_BROKEN;
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (!c->settings.holes_only &&
      !work_run(c->jobs, c->job_count, c->settings.jobs, c->settings.seconds, note_result, c))
    return EXIT_BROKEN;
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
  print_summary(c);
  if (c->settings.json && !write_json(c, seconds)) return EXIT_BROKEN;
  int runs = 0, bad = 0;
  for (int i = 0; i < c->settings.device_count; i++) {
    runs += c->by_device[i].runs;
    bad += c->by_device[i].bad;
  }
  printf("%d specs, %d runs, %d bad, %.0f s\n", c->job_count, runs, bad, seconds);
  return bad ? EXIT_BAD : 0;
}

int main(int argc, char **argv) {
  campaign *c = calloc(1, sizeof *c);
  if (!c) return EXIT_BROKEN;
  if (!read_settings(argc, argv, &c->settings)) {
    fputs(usage, stderr);
    free(c);
    return EXIT_USAGE;
  }
  setenv("HEDDLE_EMU_THREADS", "1", 0); /* processes keep the cores busy */
  text_init(&c->failures);
  text_init(&c->holes);
  int code = run(c);
  for (int i = 0; i < c->job_count; i++)
    free(c->jobs[i].yaml);
  free(c->jobs);
  text_finish(&c->failures);
  text_finish(&c->holes);
  free(c);
  return code;
}
