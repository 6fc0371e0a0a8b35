/* The launch path: arguments to dims, dims to packed arguments, then the driver. Nothing here allocates,
 * locks or waits once the kernel is ready; a refusal does, to word itself. */
#include "parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Alignment of a workspace. */
enum { ADDRESS_ALIGNMENT = 16 };

static hd_status refuse_capture(const hd_kernel *k, diags *errors) {
  diags_errorf(errors, "launch.capture", NULL,
               "%s/%s is not prepared, and its stream captures a graph: prepare it before the capture",
               k->name, operation_name(k->operation));
  return HD_DECLINED;
}

/* The prepared kernel; one that isn't is prepared now, unless the stream captures. */
static const prepared *ready_for(hd_kernel *k, hd_stream *stream, hd_status *out_status, diags *errors) {
  const prepared *p = atomic_load_explicit(&k->ready, memory_order_acquire);
  bool capturing = false;
  if (p != NULL) return p;
  device *d = k->context->session.device;
  *out_status = d->vtable->capturing(d, (device_stream *)stream, &capturing, errors);
  if (*out_status == HD_OK && capturing) *out_status = refuse_capture(k, errors);
  return *out_status == HD_OK ? api_ready(k, out_status, errors) : NULL;
}

/* What binding finds of scales that are numbers, which shapes say nothing of. */
static bool numbers_fit(const hd_kernel *k, const hd_arguments *a) {
  return (a->k_scale != NULL) == bind_takes_number(&k->contract, true) &&
         (a->v_scale != NULL) == bind_takes_number(&k->contract, false);
}

/* Shapes to dims, as binding has it, or as it had it for the same shapes before. */
static hd_status settle_dims(hd_kernel *k, const hd_arguments *a, tensors *t, seen_facts *out_facts,
                             diags *errors) {
  seen_key key;
  const bool keyed = numbers_fit(k, a) && seen_key_of(a->tensors, a->tensor_count, &key);
  if (keyed && seen_find(&k->seen, &key, out_facts)) {
    api_tensor_addresses(a->tensors, a->tensor_count, t);
    api_scale_numbers(a->k_scale, a->v_scale, t);
    return HD_OK;
  }
  hd_status status = api_tensors(a->tensors, a->tensor_count, t, errors);
  api_scale_numbers(a->k_scale, a->v_scale, t);
  if (status == HD_OK) status = bind_dims(&k->contract, k->operation, t, out_facts->dims, errors);
  if (status != HD_OK) return status;
  out_facts->capacity = operation_attends(k->operation) ? bind_capacity(&k->contract, t, out_facts->dims) : 0;
  if (keyed) seen_keep(&k->seen, &key, out_facts);
  return HD_OK;
}

static hd_status settle_splits(const hd_kernel *k, const prepared *p, const hd_arguments *a, int64_t room,
                               int64_t dims[DIM_COUNT], diags *errors) {
  if (!operation_attends(k->operation)) return HD_OK;
  if (a->splits < 0 || a->longest < 0) {
    diags_errorf(errors, "launch.splits", a->splits < 0 ? "splits" : "longest",
                 "a split count or length is negative");
    return HD_INVALID;
  }
  if (a->splits > 0 && !splits_allowed(&k->split_factors, a->splits)) {
    char found[32];
    snprintf(found, sizeof found, "%lld", (long long)a->splits);
    diags_refusef(errors, "launch.splits", "splits", found, "one that the spec lists, 65535 at most, or 0",
                  "%s splits are not among those that %s may use: its split.factors, 65535 at most", found,
                  k->name);
    return HD_DECLINED;
  }
  int64_t longest = a->longest > 0 ? a->longest : room;
  dims[DIM_SPLITS] = a->splits > 0 ? a->splits : api_splits(k, p, dims, longest);
  dims[DIM_LISTS_SETTLED] = a->lists_settled != 0;
  return HD_OK;
}

static hd_status settle_workspace(const prepared *p, const hd_arguments *a, tensors *t,
                                  const int64_t dims[DIM_COUNT], diags *errors) {
  int64_t needed = descriptor_workspace_bytes(&p->descriptor, dims);
  t->present[TENSOR_WORKSPACE] = needed > 0;
  t->by_name[TENSOR_WORKSPACE].data = a->workspace;
  if (needed == 0) return HD_OK;
  if (a->workspace_bytes < needed || a->workspace == 0) {
    char found[32], allowed[48];
    snprintf(found, sizeof found, "%lld bytes", a->workspace != 0 ? (long long)a->workspace_bytes : 0LL);
    snprintf(allowed, sizeof allowed, "%lld bytes", (long long)needed);
    diags_refusef(errors, "launch.workspace", "workspace", found, allowed,
                  "the launch (%lld splits) needs a workspace of %s, found %s: hd_kernel_workspace says how "
                  "much is enough",
                  (long long)dims[DIM_SPLITS], allowed, found);
    return HD_DECLINED;
  }
  if (a->workspace % ADDRESS_ALIGNMENT == 0) return HD_OK;
  diags_refusef(errors, "bind.alignment", "workspace", "another address", "a multiple of 16 bytes",
                "the workspace lies at an address that is not a multiple of 16 bytes");
  return HD_DECLINED;
}

static hd_status settle_scale(const hd_kernel *k, const hd_arguments *a, float *out_scale, diags *errors) {
  const contract *c = &k->contract;
  double fixed = c->logits.scale == LOGITS_NUMBER ? c->logits.number : 1 / sqrt(c->head_dim.qk);
  float asked = a->logits_scale;
  *out_scale = asked != 0 ? asked : (float)fixed;
  if (!operation_attends(k->operation) || c->logits.scale == LOGITS_ARGUMENT || asked == 0 ||
      asked == (float)fixed)
    return HD_OK;
  text numbers[2];
  for (int i = 0; i < 2; i++) {
    text_init(&numbers[i]);
    text_add_double(&numbers[i], i == 0 ? (double)asked : fixed);
  }
  diags_refusef(errors, "launch.logits-scale", "logits_scale", text_string(&numbers[0]),
                text_string(&numbers[1]), "the contract fixes the scale of the logits to %s",
                text_string(&numbers[1]));
  for (int i = 0; i < 2; i++)
    text_finish(&numbers[i]);
  return HD_DECLINED;
}

/* Everything up to the packed arguments. */
static hd_status pack(hd_kernel *k, const prepared *p, const hd_arguments *arguments, launch_pack *out_pack,
                      diags *errors) {
  hd_arguments a;
  tensors t;
  seen_facts facts;
  float scale;
  int64_t *dims = facts.dims;
  if (!api_take_struct(arguments, offsetof(hd_arguments, splits), &a, sizeof a, "arguments", errors))
    return HD_INVALID;
  hd_status status = settle_dims(k, &a, &t, &facts, errors);
  if (status == HD_OK) status = settle_splits(k, p, &a, facts.capacity, dims, errors);
  if (status == HD_OK) status = settle_workspace(p, &a, &t, dims, errors);
  if (status == HD_OK) status = settle_scale(k, &a, &scale, errors);
  if (status == HD_OK &&
      launch_pack_init(&p->descriptor, p->loaded.functions, &t, dims, scale, out_pack, errors) != HD_OK)
    status = HD_DECLINED;
  return status;
}

static hd_status launch(hd_kernel *k, const hd_arguments *arguments, hd_stream *stream, diags *errors) {
  launch_pack packed;
  hd_status status = HD_INVALID;
  if (!api_alive(k->context, errors)) return HD_INVALID;
  const prepared *p = ready_for(k, stream, &status, errors);
  if (p == NULL) return status;
  status = pack(k, p, arguments, &packed, errors);
  if (status != HD_OK) return status;
  return launch_pack_run(k->context->session.device, (device_stream *)stream, &packed, errors);
}

hd_status hd_launch(hd_kernel *k, const hd_arguments *arguments, hd_stream *stream,
                    hd_diagnostics *diagnostics) {
  api_call call;
  if (k == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, launch(k, arguments, stream, call.errors));
}

/* ---- Bindings ---- */

struct hd_binding {
  hd_kernel *kernel;
  const prepared *prepared;
  launch_pack pack;
};

const launch_pack *api_binding_pack(const hd_binding *b) {
  return &b->pack;
}

static hd_status bind(hd_kernel *k, const hd_arguments *arguments, hd_binding **out_binding, diags *errors) {
  hd_status status = HD_INVALID;
  const prepared *p = api_alive(k->context, errors) ? api_ready(k, &status, errors) : NULL;
  if (p == NULL) return status;
  hd_binding *b = calloc(1, sizeof *b);
  if (b == NULL) return HD_OUT_OF_MEMORY;
  status = pack(k, p, arguments, &b->pack, errors);
  if (status != HD_OK) {
    free(b);
    return status;
  }
  b->kernel = hd_kernel_retain(k);
  b->prepared = p;
  *out_binding = b;
  return HD_OK;
}

hd_status hd_bind(hd_kernel *k, const hd_arguments *arguments, hd_binding **out_binding,
                  hd_diagnostics *diagnostics) {
  api_call call;
  if (k == NULL || out_binding == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, bind(k, arguments, out_binding, call.errors));
}

void hd_binding_destroy(hd_binding *b) {
  if (b == NULL) return;
  hd_kernel_release(b->kernel);
  free(b);
}

static hd_status set_address(hd_binding *b, tensor_name name, uint64_t address) {
  tensor wanted = {.dtype = DTYPE_FP32};
  const int64_t unknown[DIM_COUNT] = {0};
  bind_tensor(&b->kernel->contract, name, unknown, &wanted);
  if (address % (uint64_t)bind_alignment(name, wanted.dtype) != 0) return HD_INVALID;
  return launch_pack_set(&b->pack, &b->prepared->descriptor, name, address) ? HD_OK : HD_INVALID;
}

hd_status hd_binding_set_address(hd_binding *b, hd_tensor_name name, uint64_t address) {
  tensor_name inner;
  if (b == NULL || !api_tensor_name(name, &inner)) return HD_INVALID;
  return set_address(b, inner, address);
}

hd_status hd_binding_set_scales(hd_binding *b, const float *k_scale, const float *v_scale) {
  if (b == NULL) return HD_INVALID;
  const float *const given[] = {k_scale, v_scale};
  const number_name numbers[] = {NUMBER_K_SCALE, NUMBER_V_SCALE};
  for (int i = 0; i < 2; i++)
    if (given[i] != NULL && !bind_takes_number(&b->kernel->contract, i == 0)) return HD_INVALID;
  for (int i = 0; i < 2; i++)
    if (given[i] != NULL) launch_pack_set_number(&b->pack, &b->prepared->descriptor, numbers[i], *given[i]);
  return HD_OK;
}

hd_status hd_binding_set_workspace(hd_binding *b, uint64_t address) {
  return b == NULL ? HD_INVALID : set_address(b, TENSOR_WORKSPACE, address);
}

hd_status hd_binding_launch(hd_binding *b, hd_stream *stream, hd_diagnostics *diagnostics) {
  api_call call;
  if (b == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  if (!api_alive(b->kernel->context, call.errors)) return api_end(&call, HD_INVALID);
  device *d = b->kernel->context->session.device;
  return api_end(&call, launch_pack_run(d, (device_stream *)stream, &b->pack, call.errors));
}
