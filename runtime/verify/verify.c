#include "verify.h"
#include "oracle.h"
#include "verify_compare.h"
#include "verify_data.h"
#include "verify_pad.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What all cases share. */
typedef struct verification {
  session *session;
  const contract *contract;
  const verify_options *options;
  session_kernel write, decode;
  bool has_write, has_decode;
  double scale;
} verification;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const tensor_name written[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { WRITTEN_COUNT = sizeof written / sizeof written[0] };

/* The oracle's write on copies of caches and scales: expected[] by name, to be freed by the caller. */
static hd_status write_expected(const verify_data *d, const int64_t dims[DIM_COUNT],
                                void *expected[TENSOR_COUNT], diags *errors) {
  tensors host = d->write;
  for (int i = 0; i < WRITTEN_COUNT; i++) {
    tensor_name name = written[i];
    if (!host.present[name]) continue;
    size_t bytes = tensor_bytes(&host.by_name[name]);
    expected[name] = malloc(bytes + 1);
    if (!expected[name]) return HD_OUT_OF_MEMORY;
    memcpy(expected[name], d->memory[name], bytes);
    host.by_name[name].data = (uint64_t)(uintptr_t)expected[name];
  }
  return oracle_write(d->contract, &host, dims, errors);
}

/* Brings one result back into `dense`, by way of `host`, which may have gaps. */
static hd_status bring_back(verification *v, const tensors *on_device, const tensors *host,
                            const tensors *dense, const int64_t sizes[DIM_COUNT], tensor_name name,
                            verify_outcome *o, diags *errors) {
  hd_status status = session_download(v->session, on_device, host, name, errors);
  if (status == HD_OK && !verify_unpad(v->contract, sizes, name, host, dense))
    verify_problem(o, "write: %s was written to between its elements", tensor_name_text(name));
  return status;
}

/* Uploads, launches, brings results back; `*out_seconds` of the launch. `dense`: in host memory; `dims`: how
 * they bind, or `host`, the same with gaps. */
static hd_status launch_on(verification *v, session_kernel *k, operation asked, const tensors *host,
                           const tensors *dense, int64_t dims[DIM_COUNT], verify_outcome *o,
                           double *out_seconds, diags *errors) {
  tensors on_device;
  hd_status status = session_upload(v->session, v->contract, asked, host, &on_device, errors);
  if (status != HD_OK) return status;
  double start = now();
  status = session_launch(v->session, k, &on_device, dims, (float)v->scale, errors);
  *out_seconds = now() - start;
  for (int i = 0; status == HD_OK && i < TENSOR_COUNT; i++) {
    tensor_role role = bind_role(v->contract, asked, (tensor_name)i);
    if (host->present[i] && (role == ROLE_OUTPUT || role == ROLE_UPDATED))
      status = bring_back(v, &on_device, host, dense, dims, (tensor_name)i, o, errors);
  }
  session_release(v->session, &on_device);
  return status;
}

static hd_status launch(verification *v, session_kernel *k, operation asked, const tensors *dense,
                        const int64_t dense_dims[DIM_COUNT], verify_outcome *o, double *out_seconds,
                        diags *errors) {
  tensors host = *dense;
  int64_t dims[DIM_COUNT];
  hd_status status = HD_OK;
  memcpy(dims, dense_dims, sizeof dims);
  if (v->options->padded) {
    status = verify_pad(v->contract, dense_dims, dense, &host, errors);
    if (status != HD_OK) return status;
    status = bind_dims(v->contract, asked, &host, dims, errors);
    dims[DIM_SPLITS] = dense_dims[DIM_SPLITS];
  }
  if (status == HD_OK) status = launch_on(v, k, asked, &host, dense, dims, o, out_seconds, errors);
  verify_pad_finish(dense, &host);
  return status;
}

static hd_status do_write(verification *v, verify_data *d, verify_outcome *o, diags *errors) {
  int64_t dims[DIM_COUNT];
  void *expected[TENSOR_COUNT] = {NULL};
  hd_status status = bind_dims(v->contract, OPERATION_WRITE, &d->write, dims, errors);
  if (status == HD_OK) status = write_expected(d, dims, expected, errors);
  if (status == HD_OK && v->has_write) {
    status = launch(v, &v->write, OPERATION_WRITE, &d->write, dims, o, &o->write_seconds, errors);
    if (status == HD_OK) {
      o->wrote = true;
      verify_compare_write(d, expected, o);
    }
  }
  /* Decode goes on with what should have been written, so that one fault isn't reported as two. */
  for (int i = 0; status == HD_OK && i < WRITTEN_COUNT; i++)
    if (expected[written[i]])
      memcpy(d->memory[written[i]], expected[written[i]], tensor_bytes(&d->write.by_name[written[i]]));
  for (int i = 0; i < WRITTEN_COUNT; i++)
    free(expected[written[i]]);
  return status;
}

static hd_status do_decode(verification *v, verify_data *d, random_state *r, verify_outcome *o,
                           diags *errors) {
  int64_t dims[DIM_COUNT];
  hd_status status = bind_dims(v->contract, OPERATION_DECODE, &d->decode, dims, errors);
  if (status != HD_OK) return status;
  int64_t asked = v->options->split ? v->options->split : d->from->splits;
  int64_t most = bind_listed_tokens(v->contract, dims), longest = d->longest < most ? d->longest : most;
  dims[DIM_SPLITS] = session_splits(v->session, &v->decode, dims, longest, asked);
  o->splits = dims[DIM_SPLITS];
  status = launch(v, &v->decode, OPERATION_DECODE, &d->decode, dims, o, &o->decode_seconds, errors);
  if (status != HD_OK) return status;
  o->decoded = true;
  return verify_compare_decode(d, dims, v->scale, r, o, errors);
}

static uint64_t hash_name(const char *name) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (; *name; name++)
    hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
  return hash;
}

/* A case has its own random numbers, so that it is the same alone and among others. */
static hd_status run_case(verification *v, const verify_case *from, random_state *r, verify_outcome *o,
                          diags *errors) {
  verify_data d;
  int64_t tile = v->has_decode ? v->decode.descriptor->tile_tokens : 0;
  verify_case asked = *from;
  if (!layout_has_axis(&v->contract->kv.k, AXIS_H)) asked.kv_heads = 1;
  hd_status status = verify_data_init(&d, v->contract, &asked, tile, r, errors);
  if (status != HD_OK) return status;
  o->seqs = d.sizes[DIM_SEQS];
  o->kv_heads = d.sizes[DIM_KV_HEADS];
  o->longest = d.longest;
  status = do_write(v, &d, o, errors);
  if (status == HD_OK && v->has_decode) {
    verify_data_set_scales(&d, r);
    status = do_decode(v, &d, r, o, errors);
  }
  verify_data_finish(&d);
  return status;
}

/* An emulated device that stops a kernel has found a fault in it: that is a verdict. Elsewhere a device error
 * may have left the device unusable. */
static hd_status judge_case(verification *v, const verify_case *from, verify_outcome *o, diags *errors) {
  random_state r = {v->options->seed ^ hash_name(from->name)};
  diags own;
  diags_init(&own);
  *o = (verify_outcome){
      .good = true, .lse_error = (double)NAN, .cosine = (double)NAN, .cosine_stored = (double)NAN};
  snprintf(o->name, sizeof o->name, "%s", from->name);
  hd_status status = run_case(v, from, &r, o, &own);
  if (status == HD_DEVICE && v->session->facts.emulated) {
    verify_problem(o, "%s", own.count ? own.items[0].message : "the device stopped the kernel");
    status = HD_OK;
  }
  for (size_t i = 0; status != HD_OK && i < own.count; i++)
    diags_addf(errors, own.items[i].severity, own.items[i].code, own.items[i].field, own.items[i].line,
               own.items[i].column, "case %s: %s", from->name, own.items[i].message);
  diags_finish(&own);
  return status;
}

static hd_status load_kernels(verification *v, const char *name, const variant *chosen, diags *errors) {
  hd_status status = HD_OK;
  if (contract_has_operation(v->contract, OPERATION_WRITE)) {
    status = session_load(v->session, v->contract, name, OPERATION_WRITE, chosen, &v->write, errors);
    v->has_write = status == HD_OK;
  }
  if (status == HD_OK && contract_has_operation(v->contract, OPERATION_DECODE)) {
    status = session_load(v->session, v->contract, name, OPERATION_DECODE, chosen, &v->decode, errors);
    v->has_decode = status == HD_OK;
  }
  return status;
}

/* The index-th case of the table, or a random one behind it in `random_case`; NULL: the options leave it out.
 * `name`: that of a random one. */
static const verify_case *case_at(const contract *c, const verify_options *options, int index, char name[32],
                                  verify_case *random_case) {
  const verify_case *from = &verify_cases[index < verify_case_count ? index : 0];
  if (index >= verify_case_count) {
    snprintf(name, 32, "random-%d", index - verify_case_count + 1);
    random_state r = {options->seed ^ hash_name(name) ^ 1};
    verify_case_random(&r, name, random_case);
    from = random_case;
  }
  if (from->large && !options->large) return NULL;
  if (from->lists && !contract_makes_lists(c)) return NULL;
  return options->only && !strstr(from->name, options->only) ? NULL : from;
}

int verify_count(const contract *c, const verify_options *options) {
  int count = 0;
  for (int i = 0; i < verify_case_count + options->random_cases; i++) {
    verify_case random_case;
    char name[32];
    count += case_at(c, options, i, name, &random_case) != NULL;
  }
  return count;
}

static hd_status run_table(verification *v, void (*report)(void *, const verify_outcome *), void *user,
                           int *bad, diags *errors) {
  hd_status status = HD_OK;
  int total = verify_case_count + v->options->random_cases;
  for (int i = 0; status == HD_OK && i < total; i++) {
    verify_case random_case;
    char name[32];
    const verify_case *from = case_at(v->contract, v->options, i, name, &random_case);
    if (!from) continue;
    verify_outcome outcome;
    status = judge_case(v, from, &outcome, errors);
    if (status != HD_OK) break;
    *bad += !outcome.good;
    report(user, &outcome);
  }
  return status;
}

hd_status verify_run(session *s, const contract *c, const char *name, const variant *chosen,
                     const verify_options *options, void (*report)(void *user, const verify_outcome *outcome),
                     void *user, int *out_bad, diags *errors) {
  verification v = {.session = s, .contract = c, .options = options};
  int bad = 0;
  v.scale = oracle_logits_scale(c, 1.0 / sqrt((double)c->head_dim.qk));
  hd_status status = load_kernels(&v, name, chosen, errors);
  if (status == HD_OK) status = run_table(&v, report, user, &bad, errors);
  if (v.has_write) session_unload(s, &v.write);
  if (v.has_decode) session_unload(s, &v.decode);
  *out_bad = bad;
  return status;
}
