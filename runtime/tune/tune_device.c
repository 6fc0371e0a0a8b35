#include "../bench/bench_rig.h"
#include "../object/codeobject.h"
#include "../estimate.h"
#include "tune_meter.h"
#include "../verify/verify.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The device is busy all the time, so its clock is up. */
static const double warm_up = 2;
/* What a launch costs by itself, for the estimate: the counts know nothing of it. */
static const double launch_seconds = 2e-6;
enum { READ_REPEAT = 5, MEMO_MAX = TUNE_MAX_VARIANTS * TUNE_MAX_SPLITS };

typedef struct tuned_kernel {
  char name[64];
  session_kernel kernel;
} tuned_kernel;

typedef struct memo {
  const session_kernel *kernel;
  int64_t splits;
  double us;
} memo;

struct tune_device {
  session *session;
  const contract *contract;
  const char *name;
  uint64_t seed;
  tune_log log;
  void *log_user;
  int kernel_count;
  tuned_kernel kernels[TUNE_MAX_VARIANTS];
  session_kernel read;
  bool has_read;
  char compiler[128];
  /* Of the shape being measured. */
  bench_rig rig;
  bool has_rig;
  char shape[96];
  unsigned char *reference; /* the output of the first variant that was right; NULL: none yet */
  int memo_count;
  memo memos[MEMO_MAX]; /* estimates: they do not change */
};

static void write_log(tune_device *d, const char *format, ...) HD_PRINTF(2, 3);

static void write_log(tune_device *d, const char *format, ...) {
  text line;
  va_list args;
  if (!d->log) return;
  text_init(&line);
  va_start(args, format);
  text_vaddf(&line, format, args);
  va_end(args);
  d->log(d->log_user, text_string(&line));
  text_finish(&line);
}

/* ---- Kernels ---- */

/* Spills or scratch of an AMD code object; false for others. */
static bool spills(const cache_entry *entry, const target *t, char why[160]) {
  codeobject *object = t->elf_machine ? malloc(sizeof *object) : NULL;
  bool found = false;
  diags ignored;
  diags_init(&ignored);
  if (object && codeobject_parse(entry->code_object, entry->code_object_size, object, &ignored) == HD_OK)
    for (int i = 0; !found && i < object->kernel_count; i++) {
      const codeobject_kernel *k = &object->kernels[i];
      found = k->vgpr_spills || k->sgpr_spills || k->scratch;
      if (found)
        snprintf(why, 160, "%.64s spills %u registers and has %u bytes of scratch", k->symbol,
                 k->vgpr_spills + k->sgpr_spills, k->scratch);
    }
  diags_finish(&ignored);
  free(object);
  return found;
}

static void take_out(tune_device *d, tune_space *space, int index, const char *why) {
  write_log(d, "pruned %s %s", space->items[index].name, why);
  tune_space_prune(space, index, why);
}

/* Loads what was built; the generator's own choice has to load, others are pruned where they don't. */
static hd_status load_all(tune_device *d, tune_space *space, build_result *results, diags *errors) {
  bool own_spills = false;
  int built = space->count;
  for (int n = 0, i = 0; n < built; n++) {
    char why[160] = "";
    const tune_variant *v = &space->items[i];
    diags problems;
    diags_init(&problems);
    hd_status status = results[n].status;
    if (status != HD_OK) {
      snprintf(why, sizeof why, "%.150s",
               results[n].diags.count ? results[n].diags.items[0].message : "it does not compile");
    } else {
      bool spilled = spills(&results[n].entry, d->session->target, why);
      if (n == 0) own_spills = spilled;
      if (spilled && !own_spills) status = HD_DECLINED;
    }
    tuned_kernel *k = &d->kernels[d->kernel_count];
    if (status == HD_OK) {
      status = session_load(d->session, d->contract, d->name, OPERATION_DECODE, &v->variant, &k->kernel,
                            &problems);
      if (status != HD_OK)
        snprintf(why, sizeof why, "%.150s", problems.count ? problems.items[0].message : "it does not load");
    }
    diags_finish(&problems);
    if (status == HD_OK) {
      snprintf(k->name, sizeof k->name, "%s", v->name);
      snprintf(d->compiler, sizeof d->compiler, "%s", k->kernel.compiler);
      d->kernel_count++;
      i++;
    } else if (n == 0) {
      diags_errorf(errors, "tune.default", NULL, "the generator's own variant: %s", why);
      return status;
    } else {
      take_out(d, space, i, why);
    }
  }
  return HD_OK;
}

static hd_status build_and_load(tune_device *d, tune_space *space, int jobs, diags *errors) {
  build_job *list = calloc((size_t)space->count, sizeof *list);
  build_result *results = calloc((size_t)space->count, sizeof *results);
  const variant plain = {0};
  hd_status status = list && results ? HD_OK : HD_OUT_OF_MEMORY;
  for (int i = 0; status == HD_OK && i < space->count; i++)
    list[i] =
        (build_job){d->contract, d->name, OPERATION_DECODE, space->items[i].variant, d->session->target};
  int count = space->count;
  if (status == HD_OK) {
    build_all(d->session->cache, d->session->compiler, list, results, count, jobs, NULL);
    status = load_all(d, space, results, errors);
    for (int i = 0; i < count; i++)
      build_result_finish(&results[i]);
  }
  free(list);
  free(results);
  if (status != HD_OK) return status;
  status = session_load(d->session, d->contract, d->name, OPERATION_READ, &plain, &d->read, errors);
  d->has_read = status == HD_OK;
  return status;
}

hd_status tune_device_create(session *s, const contract *c, const char *name, tune_space *space, int jobs,
                             uint64_t seed, tune_log log, void *log_user, tune_device **out, diags *errors) {
  hd_status status = HD_OK;
  if (s->facts.emulated && !device_counts_launches(s->device)) {
    diags_errorf(errors, "tune.device", NULL,
                 "this emulated device can't count, so nothing can be estimated");
    status = HD_DECLINED;
  }
  if (status != HD_OK) return status;
  tune_device *d = calloc(1, sizeof *d);
  if (!d) return HD_OUT_OF_MEMORY;
  d->session = s;
  d->contract = c;
  d->name = name;
  d->seed = seed;
  d->log = log;
  d->log_user = log_user;
  status = build_and_load(d, space, jobs, errors);
  if (status == HD_OK)
    *out = d;
  else
    tune_device_destroy(d);
  return status;
}

void tune_device_destroy(tune_device *d) {
  if (!d) return;
  for (int i = 0; i < d->kernel_count; i++)
    session_unload(d->session, &d->kernels[i].kernel);
  if (d->has_read) session_unload(d->session, &d->read);
  free(d);
}

void tune_device_describe(const tune_device *d, tune_record *r) {
  const device_facts *f = &d->session->facts;
  *r = (tune_record){.heads_per_kv = d->contract->query.heads_per_kv,
                     .page = d->contract->kv.page,
                     .evidence = f->emulated ? TUNE_SIMULATED : TUNE_MEASURED,
                     .compute_units = f->compute_units};
  snprintf(r->name, sizeof r->name, "%s", d->name);
  snprintf(r->contract, sizeof r->contract, "%s", d->kernels[0].kernel.descriptor->contract_key);
  snprintf(r->target, sizeof r->target, "%s", d->session->target->name);
  snprintf(r->device, sizeof r->device, "%s", f->name);
  snprintf(r->compiler, sizeof r->compiler, "%s", d->compiler);
}

static session_kernel *kernel_of(tune_device *d, const tune_variant *v) {
  for (int i = 0; i < d->kernel_count; i++)
    if (strcmp(d->kernels[i].name, v->name) == 0) return &d->kernels[i].kernel;
  return NULL;
}

/* ---- A shape ---- */

static hd_status begin(void *user, const tune_shape *s, diags *errors) {
  tune_device *d = user;
  const bench_deal deal = {{s->seqs, s->length, s->kv_heads, 0}, s->rows, s->ragged, 0, d->seed};
  text name;
  text_init(&name);
  tune_shape_write(s, &name);
  snprintf(d->shape, sizeof d->shape, "%s", text_string(&name));
  text_finish(&name);
  d->memo_count = 0;
  hd_status status = bench_rig_init(&d->rig, d->session, d->contract, &deal, true, errors);
  d->has_rig = status == HD_OK;
  return status;
}

static void end(void *user) {
  tune_device *d = user;
  free(d->reference);
  d->reference = NULL;
  if (d->has_rig) bench_rig_finish(&d->rig);
  d->has_rig = false;
}

/* Every row against that of the variant that was right before: the oracle sees only some sequences. */
static bool agrees(const tune_device *d, char why[160]) {
  const bench_data *data = &d->rig.data;
  dtype type = data->contract->output.dtype;
  size_t bytes = (size_t)dtype_bytes(type);
  int64_t width = data->contract->head_dim.v,
          rows = (int64_t)bench_rig_out_bytes(&d->rig) / (int64_t)bytes / width;
  for (int64_t row = 0; row < rows; row++) {
    double error = 0, norm = 0;
    for (int64_t i = row * width; i < (row + 1) * width; i++) {
      double a = dtype_decode(type, d->rig.out + (size_t)i * bytes);
      double b = dtype_decode(type, d->reference + (size_t)i * bytes);
      error += (a - b) * (a - b);
      norm += b * b;
    }
    /* Both are within this of the truth. */
    if (!(sqrt(error) <= 2 * VERIFY_ROW_RMS * sqrt(norm) + 1e-30)) {
      snprintf(why, 160, "row %" PRId64 " differs from that of a variant that is right by %.1e", row,
               norm > 0 ? sqrt(error / norm) : error);
      return false;
    }
  }
  return true;
}

static bool keep_reference(tune_device *d) {
  size_t bytes = bench_rig_out_bytes(&d->rig);
  d->reference = malloc(bytes + 1);
  if (d->reference) memcpy(d->reference, d->rig.out, bytes);
  return d->reference != NULL;
}

static hd_status check(void *user, const tune_variant *v, int64_t splits, bool *out_good, char why[160],
                       diags *errors) {
  tune_device *d = user;
  session_kernel *k = kernel_of(d, v);
  bench_result r = {0};
  diags problems;
  diags_init(&problems);
  hd_status status = bench_rig_check(&d->rig, k, splits, &r, &problems);
  *out_good = status == HD_OK && r.good;
  if (status == HD_OK && !r.good) snprintf(why, 160, "%.150s", r.problem);
  if (status == HD_DEVICE) {
    /* A launch that the device refuses is that variant's fault, unless the device is gone with it. */
    snprintf(why, 160, "%.150s",
             problems.count ? problems.items[0].message : "the device refuses the launch");
    status = d->session->device->vtable->synchronize(d->session->device, NULL, errors);
  } else if (status != HD_OK && problems.count) {
    diags_errorf(errors, problems.items[0].code, NULL, "%s", problems.items[0].message);
  }
  diags_finish(&problems);
  if (status != HD_OK) return status;
  if (*out_good && d->reference) *out_good = agrees(d, why);
  if (*out_good && !d->reference && !keep_reference(d)) return HD_OUT_OF_MEMORY;
  if (!*out_good) write_log(d, "wrong %s %s %" PRId64 " %s", d->shape, v->name, splits, why);
  return HD_OK;
}

/* All launches of one decode, one after another. */
static hd_status estimate_once(tune_device *d, session_kernel *k, int64_t splits, double *out_us,
                               diags *errors) {
  session *s = d->session;
  tensors t = bench_pool_tensors(&d->rig.pool, 0);
  counts c = {0};
  d->rig.dims[DIM_SPLITS] = splits;
  hd_status status = s->device->vtable->count_begin(s->device, errors);
  if (status != HD_OK) return status;
  status = session_launch(s, k, &t, d->rig.dims, d->rig.scale, errors);
  hd_status ended = s->device->vtable->count_end(s->device, &c, errors);
  if (status == HD_OK) status = ended;
  double seconds = 0;
  for (size_t i = 0; status == HD_OK && i < c.count; i++) {
    estimate e;
    if (!estimate_launch(s->target, s->facts.compute_units, &c.launches[i], &e)) {
      diags_errorf(errors, "tune.device", NULL, "there are no figures to estimate %s by", s->target->name);
      status = HD_DECLINED;
    } else {
      seconds += e.total + launch_seconds;
    }
  }
  counts_finish(&c);
  *out_us = seconds * 1e6;
  return status;
}

static hd_status estimate_time(tune_device *d, session_kernel *k, int64_t splits, double *out_us,
                               diags *errors) {
  for (int i = 0; i < d->memo_count; i++)
    if (d->memos[i].kernel == k && d->memos[i].splits == splits) {
      *out_us = d->memos[i].us;
      return HD_OK;
    }
  hd_status status = estimate_once(d, k, splits, out_us, errors);
  if (status == HD_OK && d->memo_count < MEMO_MAX) d->memos[d->memo_count++] = (memo){k, splits, *out_us};
  return status;
}

static hd_status take_time(void *user, const tune_variant *v, int64_t splits, int repeat, double *out_us,
                           diags *errors) {
  tune_device *d = user;
  session_kernel *k = kernel_of(d, v);
  bench_series series;
  hd_status status;
  if (d->session->facts.emulated) {
    status = estimate_time(d, k, splits, out_us, errors);
  } else {
    status = bench_rig_time(&d->rig, k, splits, repeat, warm_up, &series, errors);
    if (status == HD_OK) *out_us = series.statistics.median;
  }
  text line;
  text_init(&line);
  text_addf(&line, "time %s %s %" PRId64 " %d ", d->shape, v->name, splits, repeat);
  if (status == HD_OK) text_add_double(&line, *out_us);
  if (status == HD_OK) write_log(d, "%s", text_string(&line));
  text_finish(&line);
  return status;
}

static hd_status read_time(void *user, double *out_us, diags *errors) {
  tune_device *d = user;
  bench_series series = {0};
  int64_t workgroups;
  *out_us = 0;
  if (d->session->facts.emulated) return HD_OK;
  hd_status status = bench_rig_read(&d->rig, &d->read, READ_REPEAT, warm_up, &series, &workgroups, errors);
  if (status != HD_OK) return status;
  *out_us = series.statistics.median;
  text line;
  text_init(&line);
  text_addf(&line, "read %s ", d->shape);
  text_add_double(&line, *out_us);
  write_log(d, "%s", text_string(&line));
  text_finish(&line);
  return HD_OK;
}

tune_meter tune_device_meter(tune_device *d) {
  return (tune_meter){d, begin, end, check, take_time, read_time};
}
