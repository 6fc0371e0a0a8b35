#include "session.h"
#include <stdlib.h>
#include <string.h>

hd_status session_open(const char *device_name, compiler_kind kind, const char *cache_directory,
                       session *out_session, diags *errors) {
  session s = {.compiler = kind};
  hd_status status = device_open(device_name, &s.device, errors);
  if (status != HD_OK) return status;
  s.device->vtable->facts(s.device, &s.facts);
  s.target = target_find(s.facts.target);
  if (!s.target) {
    diags_errorf(errors, "decline.target", NULL, "%s is a %s, which is not a target of heddle", device_name,
                 s.facts.target[0] ? s.facts.target : "device of unknown kind");
    device_close(s.device);
    return HD_DECLINED;
  }
  status = cache_open(cache_directory, &s.cache, errors);
  if (status != HD_OK) {
    device_close(s.device);
    return status;
  }
  *out_session = s;
  return HD_OK;
}

void session_close(session *s) {
  device_close(s->device);
  cache_close(s->cache);
  *s = (session){0};
}

static void append(diags *to, const diags *from) {
  for (size_t i = 0; i < from->count; i++) {
    const diag *item = &from->items[i];
    diags_addf(to, item->severity, item->code, item->field, item->line, item->column, "%s", item->message);
  }
}

hd_status session_load_code(session *s, const descriptor *d, const void *code_object, size_t bytes,
                            session_kernel *out_kernel, diags *errors) {
  const device_vtable *v = s->device->vtable;
  session_kernel k = {.descriptor = d};
  hd_status status = v->load(s->device, code_object, bytes, &k.module, errors);
  for (int i = 0; status == HD_OK && i < d->kernel_count; i++) {
    const kernel_descriptor *kernel = &d->kernels[i];
    size_t lds = kernel->lds_bytes > 0 ? (size_t)kernel->lds_bytes : 0;
    status = v->function(s->device, k.module, kernel->symbol, lds, &k.functions[i], errors);
  }
  if (status != HD_OK && k.module) v->unload(s->device, k.module);
  if (status == HD_OK) *out_kernel = k;
  return status;
}

hd_status session_load(session *s, const contract *c, const char *name, operation o, const variant *v,
                       session_kernel *out_kernel, diags *errors) {
  build_job job = {.contract = c, .name = name, .operation = o, .variant = *v, .target = s->target};
  build_result result = {0};
  build_all(s->cache, s->compiler, &job, &result, 1, 1, NULL);
  append(errors, &result.diags);
  session_kernel k;
  hd_status status = result.status;
  if (status == HD_OK)
    status = session_load_code(s, result.entry.descriptor, result.entry.code_object,
                               result.entry.code_object_size, &k, errors);
  if (status == HD_OK) {
    k.hit = result.hit;
    k.compile_seconds = result.compile_seconds;
    memcpy(k.key, result.key, sizeof k.key);
    memcpy(k.compiler, result.compiler, sizeof k.compiler);
  }
  build_result_finish(&result);
  if (status == HD_OK) *out_kernel = k;
  return status;
}

void session_unload(session *s, session_kernel *k) {
  diags ignored;
  diags_init(&ignored);
  if (k->workspace) s->device->vtable->release(s->device, k->workspace, &ignored);
  if (k->module) s->device->vtable->unload(s->device, k->module);
  diags_finish(&ignored);
  *k = (session_kernel){0};
}

int64_t session_splits(const session *s, const session_kernel *k, const int64_t dims[DIM_COUNT],
                       int64_t longest, int64_t asked) {
  if (asked > 0) return asked;
  const split_facts facts = split_facts_of(k->descriptor);
  return launch_splits(facts, split_items(facts, dims[DIM_SEQS], dims[DIM_ROWS], dims[DIM_KV_HEADS]), longest,
                       s->facts.compute_units);
}

static hd_status make_room(session *s, session_kernel *k, const int64_t dims[DIM_COUNT], diags *errors) {
  int64_t bytes = descriptor_workspace_bytes(k->descriptor, dims);
  if (bytes <= k->workspace_bytes) return HD_OK;
  const device_vtable *v = s->device->vtable;
  if (k->workspace) v->release(s->device, k->workspace, errors);
  k->workspace = 0;
  k->workspace_bytes = 0;
  hd_status status = v->allocate(s->device, (size_t)bytes, &k->workspace, errors);
  if (status == HD_OK) k->workspace_bytes = bytes;
  /* A merge that reads a partial nobody wrote would find NaN. */
  if (status == HD_OK) status = v->fill(s->device, NULL, k->workspace, 0xff, (size_t)bytes, errors);
  return status;
}

hd_status session_launch(session *s, session_kernel *k, const tensors *on_device,
                         const int64_t dims[DIM_COUNT], float scale, diags *errors) {
  hd_status status = make_room(s, k, dims, errors);
  if (status != HD_OK) return status;
  tensors t = *on_device;
  t.present[TENSOR_WORKSPACE] = k->workspace != 0;
  t.by_name[TENSOR_WORKSPACE].data = k->workspace;
  status = launch_operation(s->device, NULL, k->descriptor, k->functions, &t, dims, scale, errors);
  if (status == HD_OK) status = s->device->vtable->synchronize(s->device, NULL, errors);
  return status;
}

static hd_status upload_one(session *s, tensor_role role, const tensor *host, tensor *out_device,
                            diags *errors) {
  const device_vtable *v = s->device->vtable;
  size_t bytes = tensor_bytes(host);
  device_pointer pointer = 0;
  /* An empty tensor still gets an address. */
  hd_status status = v->allocate(s->device, bytes > 0 ? bytes : 1, &pointer, errors);
  if (status != HD_OK) return status;
  if (bytes > 0 && role == ROLE_OUTPUT)
    status = v->fill(s->device, NULL, pointer, 0xff, bytes, errors);
  else if (bytes > 0)
    status = v->copy_in(s->device, NULL, pointer, (const void *)(uintptr_t)host->data, bytes, errors);
  if (status != HD_OK) {
    v->release(s->device, pointer, errors);
    return status;
  }
  *out_device = *host;
  out_device->data = pointer;
  return HD_OK;
}

hd_status session_upload(session *s, const contract *c, operation o, const tensors *host, tensors *out_device,
                         diags *errors) {
  tensors t = {.k_scale = host->k_scale, .v_scale = host->v_scale};
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_role role = bind_role(c, o, (tensor_name)i);
    if (!host->present[i] || role == ROLE_NONE) continue;
    hd_status status = upload_one(s, role, &host->by_name[i], &t.by_name[i], errors);
    if (status != HD_OK) {
      session_release(s, &t);
      return status;
    }
    t.present[i] = true;
  }
  *out_device = t;
  return HD_OK;
}

hd_status session_download(session *s, const tensors *on_device, const tensors *host, tensor_name name,
                           diags *errors) {
  const tensor *to = &host->by_name[name];
  size_t bytes = tensor_bytes(to);
  if (bytes == 0) return HD_OK;
  return s->device->vtable->copy_out(s->device, NULL, (void *)(uintptr_t)to->data,
                                     on_device->by_name[name].data, bytes, errors);
}

void session_release(session *s, tensors *on_device) {
  diags ignored;
  diags_init(&ignored);
  for (int i = 0; i < TENSOR_COUNT; i++)
    if (on_device->present[i]) s->device->vtable->release(s->device, on_device->by_name[i].data, &ignored);
  diags_finish(&ignored);
  *on_device = (tensors){0};
}
