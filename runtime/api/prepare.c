/* From a job to a kernel that can be launched: embedded, found in the cache or compiled, then loaded. */
#include "../cache/cache_file.h"
#include "parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void prepared_destroy(hd_context *c, prepared *p) {
  if (p == NULL) return;
  if (p->loaded.module != NULL) session_unload(&c->session, &p->loaded);
  free(p->json);
  free(p);
}

/* Whether it is the variant that a tuned record chose: an embedded one may be another. */
static bool is_of_record(const hd_kernel *k, const prepared *p) {
  text name;
  text_init(&name);
  variant_write(&k->variant, &name);
  bool same = k->has_bucket && strcmp(text_string(&name), p->descriptor.variant) == 0;
  text_finish(&name);
  return same;
}

/* Takes `p` into use. The descriptor is `p`'s own. */
static hd_status load(hd_kernel *k, prepared *p, diags *errors) {
  text json;
  p->by_record = is_of_record(k, p);
  text_init(&json);
  descriptor_write(&p->descriptor, &json);
  p->json = text_take(&json);
  hd_status status = p->json == NULL ? HD_OUT_OF_MEMORY
                                     : session_load_code(&k->context->session, &p->descriptor, p->code,
                                                         p->code_bytes, &p->loaded, errors);
  if (status != HD_OK) {
    prepared_destroy(k->context, p);
    return status;
  }
  api_log(k->context, HD_NOTE, "%s/%s for %s, variant %s: %s", k->name, operation_name(k->operation),
          p->descriptor.target, p->descriptor.variant, p->origin);
  atomic_store_explicit(&k->ready, p, memory_order_release);
  return HD_OK;
}

static hd_status take_embedded(hd_kernel *k, const hd_embedded_kernel *e, const descriptor *d,
                               diags *errors) {
  hd_status status = cache_check_code(d, e->code_object, e->code_object_bytes, errors);
  if (status != HD_OK) return status;
  prepared *p = calloc(1, sizeof *p);
  if (p == NULL) return HD_OUT_OF_MEMORY;
  p->descriptor = *d;
  p->origin = "embedded";
  p->code = e->code_object;
  p->code_bytes = e->code_object_bytes;
  return load(k, p, errors);
}

static hd_status take_built(hd_kernel *k, build_result *r, diags *errors) {
  api_append(errors, &r->diags);
  if (r->status != HD_OK) {
    api_log(k->context, HD_WARNING, "%s/%s: %s", k->name, operation_name(k->operation),
            errors->count > 0 ? errors->items[errors->count - 1].message : hd_status_text(r->status));
    return r->status;
  }
  prepared *p = calloc(1, sizeof *p);
  if (p == NULL) return HD_OUT_OF_MEMORY;
  p->descriptor = *r->entry.descriptor;
  p->origin = r->hit ? "cache" : "compiled";
  p->code = r->entry.code_object; /* lives as long as the context's cache */
  p->code_bytes = r->entry.code_object_size;
  p->compile_seconds = r->compile_seconds;
  memcpy(p->key, r->key, sizeof p->key);
  memcpy(p->compiler, r->compiler, sizeof p->compiler);
  return load(k, p, errors);
}

/* The kernels that build_all is asked for, out of those of one api_prepare. */
typedef struct order {
  hd_kernel *const *kernels;
  hd_status *statuses;
  diags *errors_of_each;
  int *index; /* of the kernel, by job */
  build_job *jobs;
  build_result *results;
  bool *taken; /* by job */
  int count;
  void (*finished)(void *user, int index);
  void *user;
} order;

/* A job of build_all is finished; called from the threads that compile. */
static void take_job(void *user, int job) {
  const order *o = user;
  int i = o->index[job];
  o->taken[job] = true;
  o->statuses[i] = take_built(o->kernels[i], &o->results[job], &o->errors_of_each[i]);
  if (o->finished != NULL) o->finished(o->user, i);
}

static void build(hd_context *c, order *o) {
  compile_limits limits = c->limits;
  limits.finished = take_job;
  limits.user = o;
  build_all(c->session.cache, c->session.compiler, o->jobs, o->results, o->count, c->jobs, &limits);
  for (int job = 0; job < o->count; job++) {
    if (!o->taken[job]) take_job(o, job);
    build_result_finish(&o->results[job]);
  }
}

void api_prepare(hd_context *c, hd_kernel *const *kernels, hd_status *statuses, diags *errors_of_each,
                 int count, void (*finished)(void *user, int index), void *user) {
  size_t room = count > 0 ? (size_t)count : 1;
  order o = {.kernels = kernels,
             .statuses = statuses,
             .errors_of_each = errors_of_each,
             .index = calloc(room, sizeof *o.index),
             .jobs = calloc(room, sizeof *o.jobs),
             .results = calloc(room, sizeof *o.results),
             .taken = calloc(room, sizeof *o.taken),
             .finished = finished,
             .user = user};
  bool memory = o.index != NULL && o.jobs != NULL && o.results != NULL && o.taken != NULL;
  for (int i = 0; i < count; i++) {
    hd_kernel *k = kernels[i];
    descriptor d;
    const hd_embedded_kernel *embedded = memory ? api_embedded_find(c, k, &d) : NULL;
    if (memory && embedded == NULL) {
      o.index[o.count] = i;
      o.jobs[o.count++] = (build_job){.contract = &k->contract,
                                      .name = k->name,
                                      .operation = k->operation,
                                      .variant = k->variant,
                                      .target = c->session.target};
      continue;
    }
    statuses[i] = memory ? take_embedded(k, embedded, &d, &errors_of_each[i]) : HD_OUT_OF_MEMORY;
    if (finished != NULL) finished(user, i);
  }
  if (o.count > 0) build(c, &o);
  free(o.index);
  free(o.jobs);
  free(o.results);
  free(o.taken);
}

const prepared *api_ready(hd_kernel *k, hd_status *out_status, diags *errors) {
  const prepared *p = atomic_load_explicit(&k->ready, memory_order_acquire);
  *out_status = HD_OK;
  if (p != NULL) return p;
  if (!api_alive(k->context, errors)) {
    *out_status = HD_INVALID;
    return NULL;
  }
  pthread_mutex_lock(&k->lock);
  if (atomic_load_explicit(&k->ready, memory_order_acquire) == NULL) {
    diags own; /* the caller's may be shared with other work */
    diags_init(&own);
    api_prepare(k->context, &k, out_status, &own, 1, NULL, NULL);
    api_append(errors, &own);
    diags_finish(&own);
  }
  pthread_mutex_unlock(&k->lock);
  return atomic_load_explicit(&k->ready, memory_order_acquire);
}

/* What the context's tuned records say for the job's shape. */
static void choose(hd_kernel *k, hd_context *c, const hd_sizes *sizes) {
  tune_choice choice;
  tune_shape shape = {.seqs = sizes->seqs,
                      .length = sizes->longest,
                      .kv_heads = sizes->kv_heads,
                      .rows = sizes->rows > 0 ? (int)sizes->rows : 1};
  if (contract_rows_are_sequences(&k->contract)) { /* as launches count them */
    if (__builtin_mul_overflow(shape.seqs, (int64_t)shape.rows, &shape.seqs)) shape.seqs = 0;
    shape.rows = 1;
  }
  pthread_mutex_lock(&c->tuned_lock);
  tune_files_validate(&c->tuned, &k->contract, c->session.target, &c->session.facts);
  tune_choose(&c->tuned, &shape, c->session.facts.compute_units, &choice);
  pthread_mutex_unlock(&c->tuned_lock);
  memcpy(k->choice, choice.reason, sizeof k->choice);
  k->has_bucket = choice.found;
  k->variant = choice.variant;
  if (!choice.found) return;
  k->bucket = choice.entry->shape;
  k->bucket_splits = choice.entry->splits;
}

static hd_status choose_variant(hd_kernel *k, hd_context *c, const hd_job *j, diags *errors) {
  hd_sizes sizes;
  k->free_variant = j->variant == NULL;
  if (j->variant != NULL) {
    snprintf(k->choice, sizeof k->choice, "the caller's");
    if (variant_parse(j->variant, &k->variant)) return HD_OK;
    diags_errorf(errors, "context.options", "variant",
                 "\"%s\" is no variant: \"default\", or parts such as \"w8\" joined by '-'", j->variant);
    return HD_INVALID;
  }
  snprintf(k->choice, sizeof k->choice, "the policy: no shape was given");
  if (j->shape == NULL || !operation_attends(k->operation)) return HD_OK;
  if (!api_take_struct(j->shape, offsetof(hd_sizes, splits), &sizes, sizeof sizes, "shape", errors))
    return HD_INVALID;
  if (sizes.rows > INT32_MAX) sizes.rows = INT32_MAX;
  choose(k, c, &sizes);
  return HD_OK;
}

static hd_status fill_kernel(hd_kernel *k, hd_context *c, const hd_job *j, diags *errors) {
  if (!api_operation(j->operation, &k->operation)) {
    diags_errorf(errors, "bind.operation", "operation", "operation %d is none", (int)j->operation);
    return HD_INVALID;
  }
  k->contract = contract_resolve(&j->contract->spec.contract, c->session.target->fp8);
  k->split_factors = j->contract->spec.split_factors;
  hd_status status = choose_variant(k, c, j, errors);
  if (status != HD_OK) return status;
  k->name = strdup(j->contract->spec.name);
  return k->name != NULL ? contract_key(&k->contract, k->contract_key) : HD_OUT_OF_MEMORY;
}

hd_status api_kernel_create(hd_context *c, const hd_job *job, hd_kernel **out_kernel, diags *errors) {
  hd_job j;
  if (!api_take_struct(job, offsetof(hd_job, reserved), &j, sizeof j, "job", errors)) return HD_INVALID;
  if (j.contract == NULL) {
    diags_errorf(errors, "context.options", "contract", "a job has no contract");
    return HD_INVALID;
  }
  hd_kernel *k = calloc(1, sizeof *k);
  if (k == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = fill_kernel(k, c, &j, errors);
  if (status == HD_OK && pthread_mutex_init(&k->lock, NULL) != 0) status = HD_OUT_OF_MEMORY;
  if (status != HD_OK) {
    free(k->name);
    free(k);
    return status;
  }
  atomic_init(&k->owners, 1);
  atomic_init(&k->ready, NULL);
  k->context = api_context_retain(c);
  *out_kernel = k;
  return HD_OK;
}

hd_kernel *hd_kernel_retain(hd_kernel *k) {
  atomic_fetch_add_explicit(&k->owners, 1, memory_order_relaxed);
  return k;
}

void hd_kernel_release(hd_kernel *k) {
  if (k == NULL || atomic_fetch_sub_explicit(&k->owners, 1, memory_order_acq_rel) > 1) return;
  diags ignored;
  diags_init(&ignored);
  if (api_alive(k->context, &ignored)) prepared_destroy(k->context, atomic_load(&k->ready));
  diags_finish(&ignored);
  pthread_mutex_destroy(&k->lock);
  api_context_release(k->context);
  free(k->name);
  free(k);
}

/* ---- Entry points ---- */

static hd_status prepare_one(hd_context *c, const hd_job *job, bool now, hd_kernel **out_kernel,
                             diags *errors) {
  hd_kernel *k;
  hd_status status = api_alive(c, errors) ? HD_OK : HD_INVALID;
  if (status == HD_OK) status = api_kernel_create(c, job, &k, errors);
  if (status != HD_OK) return status;
  if (now)
    api_ready(k, &status, errors);
  else
    status = emit_check(&k->contract, k->operation, &k->variant, c->session.target, errors);
  if (status == HD_OK)
    *out_kernel = k;
  else
    hd_kernel_release(k);
  return status;
}

hd_status hd_prepare(hd_context *c, const hd_job *job, hd_kernel **out_kernel, hd_diagnostics *diagnostics) {
  api_call call;
  if (c == NULL || out_kernel == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, prepare_one(c, job, true, out_kernel, call.errors));
}

hd_status hd_prepare_lazily(hd_context *c, const hd_job *job, hd_kernel **out_kernel,
                            hd_diagnostics *diagnostics) {
  api_call call;
  if (c == NULL || out_kernel == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, prepare_one(c, job, false, out_kernel, call.errors));
}

hd_status hd_kernel_ready(hd_kernel *k, hd_diagnostics *diagnostics) {
  api_call call;
  hd_status status;
  if (k == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  if (!api_alive(k->context, call.errors)) return api_end(&call, HD_INVALID);
  api_ready(k, &status, call.errors);
  return api_end(&call, status);
}
