#include "build.h"
#include "../generator/sha256.h"
#include "cache/cache_file.h"
#include "template_folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is known of a job while it is built. Jobs of the same key are one piece of work: the first of them is
 * its leader. */
typedef struct work {
  const build_job *job;
  build_result *result;
  emission emission;
  compiler compiler;
  char *key_text; /* NULL until the key is known */
  int leader;     /* index of the first job of the same key, its own when it is that */
  cache_lock *lock;
  const compile_limits *limits; /* who is told when it is done; may be NULL */
  int index;                    /* of the job */
  enum { WORK_OPEN, WORK_COMPILE, WORK_WAIT, WORK_DONE } state;
} work;

static void hash_text(text *out, const char *field, const void *bytes, size_t size) {
  char hex[65];
  sha256_hex(bytes, size, hex);
  text_addf(out, "%s: %s\n", field, hex);
}

/* All of the key text but what says how it is compiled. */
static hd_status write_source_text(const build_job *job, const emission *e, text *out) {
  text launch;
  text_init(&launch);
  descriptor_write(&e->descriptor, &launch);
  text_addf(out, "code object: 1\ncontract: %s\noperation: %s\nvariant: %s\ntarget: %s\n",
            e->descriptor.contract_key, e->descriptor.operation, e->descriptor.variant, job->target->name);
  hash_text(out, "source", e->source, strlen(e->source));
  /* The descriptor travels with the code object, and a newer generator may launch the same source otherwise.
   */
  hash_text(out, "descriptor", text_string(&launch), launch.length);
  bool failed = launch.failed || out->failed;
  text_finish(&launch);
  return failed ? HD_OUT_OF_MEMORY : HD_OK;
}

hd_status build_key_text(const build_job *job, const emission *e, const compiler *c, text *out) {
  const char *options[32];
  hd_status status = write_source_text(job, e, out);
  text_addf(out, "compiler: %s\noptions:", c->identity);
  int count = compiler_options(c->kind, job->target, options);
  for (int i = 0; i < count; i++)
    text_addf(out, " %s", options[i]);
  text_add(out, "\n");
  return out->failed ? HD_OUT_OF_MEMORY : status;
}

static void finish_with(work *w, hd_status status) {
  w->result->status = status;
  w->state = WORK_DONE;
  if (w->limits != NULL && w->limits->finished != NULL) w->limits->finished(w->limits->user, w->index);
}

static void finish_hit(work *w, const cache_entry *entry) {
  w->result->entry = *entry;
  w->result->hit = true;
  finish_with(w, HD_OK);
}

bool build_may_compile(void) {
  const char *value = getenv("HEDDLE_NO_JIT");
  return value == NULL || value[0] == '\0' || strcmp(value, "0") == 0;
}

/* The compiler that made an entry, as its key text has it: name and version, without the hash. */
static void copy_compiler(const char *key_text, char *out, size_t size) {
  static const char line[] = "\ncompiler: ", hash[] = " sha256:";
  const char *at = strstr(key_text, line);
  at = at != NULL ? at + strlen(line) : "";
  int length = (int)strcspn(at, "\n");
  const char *end = strstr(at, hash);
  if (end != NULL && end - at < length) length = (int)(end - at);
  snprintf(out, size, "%.*s", length, at);
}

/* Takes what any compiler made of this source. HD_DECLINED: there is nothing. */
static hd_status find_source(cache *c, const char *source_text, work *w) {
  cache_entry entry;
  hd_status status = cache_find_source(c, source_text, &entry);
  if (status != HD_OK) return status;
  sha256_hex(entry.key_text, strlen(entry.key_text), w->result->key);
  copy_compiler(entry.key_text, w->result->compiler, sizeof w->result->compiler);
  diags_finish(&w->result->diags); /* that no compiler is here matters no more */
  diags_init(&w->result->diags);
  finish_hit(w, &entry);
  return HD_OK;
}

/* Names what would have to be compiled. */
static void miss_without_compiling(const cache *c, const char *source_text, work *w) {
  const descriptor *d = &w->emission.descriptor;
  char source_key[65];
  text places;
  text_init(&places);
  cache_write_places(c, &places);
  sha256_hex(source_text, strlen(source_text), source_key);
  diags_finish(&w->result->diags); /* that no compiler is here is no part of it */
  diags_init(&w->result->diags);
  diags_errorf(&w->result->diags, "compile.no-jit", NULL,
               "HEDDLE_NO_JIT is set, and there is no code object for %s of %s (contract %s, target %s, "
               "variant %s): key %s, source key %s; looked for in %s",
               d->operation, w->job->name != NULL ? w->job->name : "a contract", d->contract_key, d->target,
               d->variant, w->result->key[0] != '\0' ? w->result->key : "unknown, no compiler is here",
               source_key, text_string(&places));
  text_finish(&places);
  finish_with(w, HD_UNAVAILABLE);
}

/* Looks for what this machine's compiler makes or made. HD_DECLINED: it is to be compiled. */
static hd_status find_exact(cache *c, compiler_kind kind, work *w) {
  build_result *r = w->result;
  text key;
  cache_entry entry;
  hd_status status = compiler_find(kind, w->job->target, &w->compiler, &r->diags);
  if (status != HD_OK) return status;
  snprintf(r->compiler, sizeof r->compiler, "%s %.100s", compiler_name(w->compiler.kind),
           w->compiler.version);
  text_init(&key);
  status = build_key_text(w->job, &w->emission, &w->compiler, &key);
  if (status == HD_OK) {
    sha256_hex(text_string(&key), key.length, r->key);
    w->key_text = text_take(&key);
    if (w->key_text == NULL) status = HD_OUT_OF_MEMORY;
  }
  text_finish(&key);
  if (status == HD_OK) status = cache_find(c, w->key_text, &entry);
  if (status == HD_OK) finish_hit(w, &entry);
  return status;
}

/* Emits, finds the compiler and works out the key; then looks it up. Where nothing may be compiled, or no
 * compiler is there and none was named, what another compiler made of the same source will do. */
static void prepare(cache *c, compiler_kind kind, const template_source *templates, work *w) {
  const build_job *job = w->job;
  build_result *r = w->result;
  /* The target settles what fp8_e4m3 means: a spec that names its dialect and one that leaves it open share a
   * code object, and so do `build` and a launch. */
  contract resolved = contract_resolve(job->contract, job->target->fp8);
  hd_status status = emit_operation(&resolved, job->operation, &job->variant, job->target, templates,
                                    &w->emission, &r->diags);
  if (status != HD_OK) {
    finish_with(w, status);
    return;
  }
  text source;
  text_init(&source);
  status = write_source_text(job, &w->emission, &source);
  bool may_compile = build_may_compile();
  if (status == HD_OK && !may_compile) status = find_source(c, text_string(&source), w);
  if (w->state == WORK_DONE) {
    text_finish(&source);
    return;
  }
  if (status == HD_OK || status == HD_DECLINED) status = find_exact(c, kind, w);
  if (w->state == WORK_DONE) {
    text_finish(&source);
    return;
  }
  hd_status other = HD_DECLINED;
  if (status == HD_UNAVAILABLE && may_compile && kind == COMPILER_AUTO)
    other = find_source(c, text_string(&source), w);
  if (other != HD_OK && !may_compile && (status == HD_UNAVAILABLE || status == HD_DECLINED))
    miss_without_compiling(c, text_string(&source), w);
  else if (other != HD_OK && status != HD_DECLINED)
    finish_with(w, status);
  text_finish(&source);
}

/* For qsort: open work by key, jobs of one key in the order they were given. */
static int compare_work(const void *a, const void *b) {
  const work *x = *(work *const *)a, *y = *(work *const *)b;
  int order = strcmp(x->result->key, y->result->key);
  return order != 0 ? order : (x->result > y->result) - (x->result < y->result);
}

/* Lists the leaders of all open work, sorted by key: a fixed order of taking locks, so that no two processes
 * can wait for each other. */
static int find_leaders(work *all, int count, work **out_leaders) {
  int open = 0, leaders = 0;
  for (int i = 0; i < count; i++) {
    if (all[i].state == WORK_OPEN) out_leaders[open++] = &all[i];
  }
  if (open > 0) qsort(out_leaders, (size_t)open, sizeof *out_leaders, compare_work);
  for (int i = 0; i < open; i++) {
    work *w = out_leaders[i], *previous = leaders > 0 ? out_leaders[leaders - 1] : NULL;
    if (previous != NULL && strcmp(previous->result->key, w->result->key) == 0) {
      w->leader = previous->leader;
    } else {
      w->leader = (int)(w - all);
      out_leaders[leaders++] = w;
    }
  }
  return leaders;
}

/* Takes the key's lock or finds the entry that another process has stored. With `seconds` 0 a busy key is put
 * off. */
static void claim(cache *c, work *w, double seconds) {
  cache_entry entry;
  hd_status status = cache_lock_key(c, w->key_text, seconds, &w->lock);
  if (status == HD_DECLINED && cache_find(c, w->key_text, &entry) == HD_OK)
    finish_hit(w, &entry);
  else if (status == HD_OK ||
           status == HD_DECLINED) /* declined, but what is there is bad: compile without a lock */
    w->state = WORK_COMPILE;
  else if (status == HD_UNAVAILABLE)
    w->state = WORK_WAIT;
  else
    finish_with(w, status);
}

static void copy_diags(diags *to, const diags *from) {
  for (size_t i = 0; i < from->count; i++) {
    const diag *d = &from->items[i];
    diags_addf(to, d->severity, d->code, d->field, d->line, d->column, "%s", d->message);
  }
}

static void take_compiled(cache *c, work *w, compile_result *compiled) {
  build_result *r = w->result;
  const descriptor *d = &w->emission.descriptor;
  hd_status status = compiled->status;
  r->compile_seconds = compiled->seconds;
  copy_diags(&r->diags, &compiled->diags);
  /* A compiler that lies is an answer too: what it made is not launched. */
  if (status == HD_OK &&
      cache_check_code(d, compiled->code_object, compiled->code_object_size, &r->diags) != HD_OK)
    status = HD_DECLINED;
  if (status == HD_OK) {
    cache_entry entry = {
        .key_text = w->key_text,
        .descriptor = d,
        .code_object = compiled->code_object,
        .code_object_size = compiled->code_object_size,
    };
    status = cache_store(c, &entry, &r->entry);
  }
  finish_with(w, status);
}

/* What compile_all works on. */
typedef struct compiling {
  cache *cache;
  work **group;
  compile_result *results;
} compiling;

/* Stores a kernel as soon as it is compiled: others may be waiting for it, and whoever kills this process now
 * costs only what is still being compiled. */
static void take_finished(void *user, int index) {
  const compiling *all = user;
  work *w = all->group[index];
  take_compiled(all->cache, w, &all->results[index]);
  compile_result_finish(&all->results[index]);
  cache_unlock(w->lock);
  w->lock = NULL;
  /* Nobody who waits for the kernel waits for the shared cache too. */
  if (w->result->status == HD_OK) cache_share(all->cache, w->key_text);
}

/* Compiles all claimed work of one compiler. */
static void compile_group(cache *c, work **group, int count, int jobs_at_once, const compile_limits *limits) {
  compile_request *requests = calloc((size_t)count, sizeof *requests);
  compile_result *results = calloc((size_t)count, sizeof *results);
  char(*names)[96] = calloc((size_t)count, sizeof *names);
  bool ready = requests != NULL && results != NULL && names != NULL;
  for (int i = 0; ready && i < count; i++) {
    const build_job *job = group[i]->job;
    snprintf(names[i], sizeof names[i], "%.64s/%s", job->name != NULL ? job->name : "kernel",
             operation_name(job->operation));
    requests[i] =
        (compile_request){.source = group[i]->emission.source, .name = names[i], .target = job->target};
  }
  compiling all = {c, group, results};
  compile_limits own = limits != NULL ? *limits : (compile_limits){0};
  own.finished = take_finished;
  own.user = &all;
  if (ready) compile_all(&group[0]->compiler, requests, results, count, jobs_at_once, &own);
  for (int i = 0; i < count; i++) {
    if (group[i]->state == WORK_DONE) continue;
    if (ready) { /* no thread could be had, and the result says so */
      take_finished(&all, i);
      continue;
    }
    finish_with(group[i], HD_OUT_OF_MEMORY);
    cache_unlock(group[i]->lock);
    group[i]->lock = NULL;
  }
  free(requests);
  free(results);
  free(names);
}

/* Compiles everything that is claimed, compiler by compiler; `group` has room for `count`. */
static void compile_claimed(cache *c, work **leaders, int count, work **group, int jobs_at_once,
                            const compile_limits *limits) {
  for (int first = 0; first < count; first++) {
    int members = 0;
    for (int i = first; i < count; i++) {
      if (leaders[i]->state != WORK_COMPILE) continue;
      if (members == 0 || strcmp(leaders[i]->compiler.identity, group[0]->compiler.identity) == 0)
        group[members++] = leaders[i];
    }
    if (members == 0) return;
    compile_group(c, group, members, jobs_at_once, limits);
  }
}

/* Gives a job what the leader of its key got. */
static void follow(cache *c, work *w, const work *leader) {
  cache_entry entry;
  if (leader->result->status == HD_OK) {
    hd_status status = cache_find(c, w->key_text, &entry);
    if (status == HD_OK)
      finish_hit(w, &entry);
    else
      finish_with(w, status == HD_DECLINED ? HD_INTERNAL : status);
    return;
  }
  copy_diags(&w->result->diags, &leader->result->diags);
  finish_with(w, leader->result->status);
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void build_misses(cache *c, work *all, int count, int jobs_at_once, const compile_limits *limits) {
  work **leaders = calloc((size_t)count, sizeof *leaders), **group = calloc((size_t)count, sizeof *group);
  int leader_count = 0;
  if (leaders != NULL && group != NULL) leader_count = find_leaders(all, count, leaders);
  /* First what nobody else compiles; then what others have finished or given up meanwhile. One patience for
   * all of it, so that a hung process costs its time-out once. */
  for (int i = 0; i < leader_count; i++)
    claim(c, leaders[i], 0);
  compile_claimed(c, leaders, leader_count, group, jobs_at_once, limits);
  double end = seconds_now() + (limits != NULL && limits->seconds > 0 ? limits->seconds : 60);
  for (int i = 0; i < leader_count; i++) {
    double left = end - seconds_now();
    if (leaders[i]->state == WORK_WAIT) claim(c, leaders[i], left > 0.001 ? left : 0.001);
  }
  compile_claimed(c, leaders, leader_count, group, jobs_at_once, limits);
  for (int i = 0; i < count; i++) {
    if (all[i].state == WORK_DONE) continue;
    if (leader_count > 0 && all[i].leader != i)
      follow(c, &all[i], &all[all[i].leader]);
    else
      finish_with(&all[i], HD_OUT_OF_MEMORY); /* the lists could not be made */
  }
  free(leaders);
  free(group);
}

void build_all(cache *c, compiler_kind kind, const build_job *jobs, build_result *results, int count,
               int jobs_at_once, const compile_limits *limits) {
  work *all = count > 0 ? calloc((size_t)count, sizeof *all) : NULL;
  template_folder templates;
  diags problems;
  diags_init(&problems);
  hd_status found = template_folder_init(&templates, getenv("HEDDLE_TEMPLATES"), &problems);
  for (int i = 0; i < count; i++) {
    build_result *r = &results[i];
    *r = (build_result){.status = HD_OUT_OF_MEMORY};
    diags_init(&r->diags);
    if (all == NULL) continue;
    all[i] = (work){.job = &jobs[i], .result = r, .leader = i, .limits = limits, .index = i};
    if (found == HD_OK) {
      prepare(c, kind, &templates.source, &all[i]);
      continue;
    }
    for (size_t n = 0; n < problems.count; n++)
      diags_errorf(&r->diags, problems.items[n].code, NULL, "%s", problems.items[n].message);
    finish_with(&all[i], found);
  }
  diags_finish(&problems);
  if (all == NULL) {
    template_folder_finish(&templates);
    return;
  }
  build_misses(c, all, count, jobs_at_once, limits);
  for (int i = 0; i < count; i++) {
    emission_finish(&all[i].emission);
    free(all[i].key_text);
  }
  free(all);
  template_folder_finish(&templates);
}

hd_status build_explain_key(compiler_kind kind, const build_job *job, text *out_key_text, diags *errors) {
  template_folder templates;
  emission e;
  compiler found;
  hd_status status = template_folder_init(&templates, getenv("HEDDLE_TEMPLATES"), errors);
  if (status != HD_OK) return status;
  contract resolved = contract_resolve(job->contract, job->target->fp8);
  status =
      emit_operation(&resolved, job->operation, &job->variant, job->target, &templates.source, &e, errors);
  if (status == HD_OK) {
    status = compiler_find(kind, job->target, &found, errors);
    if (status == HD_OK) status = build_key_text(job, &e, &found, out_key_text);
    emission_finish(&e);
  }
  template_folder_finish(&templates);
  return status;
}

void build_result_finish(build_result *r) {
  diags_finish(&r->diags);
}
