#include "scene.h"
#include "../../runtime/verify/oracle.h"
#include "../../runtime/verify/verify_compare.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool edge_fail(edge *e, const char *format, ...) {
  if (!e->failed) {
    va_list args;
    va_start(args, format);
    vsnprintf(e->problem, sizeof e->problem, format, args);
    va_end(args);
  }
  e->failed = true;
  return false;
}

static bool fail_with(edge *e, const char *what, diags *d) {
  edge_fail(e, "%s: %s", what, d->count ? d->items[0].message : "no diagnostic");
  diags_finish(d);
  return false;
}

bool scene_init(scene *s, edge *e, const char *yaml, const verify_case *from) {
  spec parsed;
  diags d;
  random_state r = {7};
  const variant plain = {0};
  *s = (scene){.edge = e};
  diags_init(&d);
  hd_status status = spec_parse(yaml, strlen(yaml), &parsed, &d);
  if (status != HD_OK) return fail_with(e, "spec", &d);
  s->contract = contract_resolve(&parsed.contract, e->session->target->fp8);
  spec_finish(&parsed);
  s->scale = oracle_logits_scale(&s->contract, 1.0 / sqrt((double)s->contract.head_dim.qk));
  status = session_load(e->session, &s->contract, "edge", OPERATION_WRITE, &plain, &s->write, &d);
  if (status == HD_OK)
    status = session_load(e->session, &s->contract, "edge", OPERATION_DECODE, &e->variant, &s->decode, &d);
  if (status == HD_OK)
    status = verify_data_init(&s->data, &s->contract, from, s->decode.descriptor->tile_tokens, &r, &d);
  if (status != HD_OK) return fail_with(e, "building", &d);
  diags_finish(&d);
  return true;
}

void scene_finish(scene *s) {
  verify_data_finish(&s->data);
  if (s->write.module) session_unload(s->edge->session, &s->write);
  if (s->decode.module) session_unload(s->edge->session, &s->decode);
}

static bool launch(scene *s, session_kernel *k, operation o, const tensors *host, int64_t splits) {
  session *on = s->edge->session;
  int64_t dims[DIM_COUNT];
  tensors t;
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(&s->contract, o, host, dims, &d);
  if (status == HD_OK) status = session_upload(on, &s->contract, o, host, &t, &d);
  if (status != HD_OK) return fail_with(s->edge, operation_name(o), &d);
  dims[DIM_SPLITS] = splits;
  status = session_launch(on, k, &t, dims, (float)s->scale, &d);
  for (int i = 0; status == HD_OK && i < TENSOR_COUNT; i++) {
    tensor_role role = bind_role(&s->contract, o, (tensor_name)i);
    if (host->present[i] && (role == ROLE_OUTPUT || role == ROLE_UPDATED))
      status = session_download(on, &t, host, (tensor_name)i, &d);
  }
  session_release(on, &t);
  if (status != HD_OK) return fail_with(s->edge, operation_name(o), &d);
  diags_finish(&d);
  return true;
}

static const tensor_name written[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};
enum { WRITTEN_COUNT = sizeof written / sizeof written[0] };

bool scene_write(scene *s) {
  verify_data *d = &s->data;
  tensors host = d->write;
  void *expected[TENSOR_COUNT] = {NULL};
  int64_t dims[DIM_COUNT];
  diags errors;
  diags_init(&errors);
  bool good = true;
  for (int i = 0; i < WRITTEN_COUNT; i++) {
    tensor *t = &host.by_name[written[i]];
    if (!host.present[written[i]]) continue;
    expected[written[i]] = malloc(tensor_bytes(t) + 1);
    good = good && expected[written[i]];
    if (good) memcpy(expected[written[i]], d->memory[written[i]], tensor_bytes(t));
    t->data = (uint64_t)(uintptr_t)expected[written[i]];
  }
  good = EXPECT(s->edge, good, "out of memory") &&
         EXPECT(s->edge, bind_dims(&s->contract, OPERATION_WRITE, &host, dims, &errors) == HD_OK,
                "write does not bind") &&
         EXPECT(s->edge, oracle_write(&s->contract, &host, dims, &errors) == HD_OK,
                "the oracle does not write") &&
         launch(s, &s->write, OPERATION_WRITE, &d->write, 1);
  if (good) {
    verify_outcome o = {.good = true};
    verify_compare_write(d, expected, &o);
    good = EXPECT(s->edge, o.good, "%s", o.problem);
  }
  for (int i = 0; i < WRITTEN_COUNT; i++)
    free(expected[written[i]]);
  diags_finish(&errors);
  return good;
}

bool scene_launch_write(scene *s) {
  return launch(s, &s->write, OPERATION_WRITE, &s->data.write, 1);
}

bool scene_decode(scene *s, int64_t splits) {
  return launch(s, &s->decode, OPERATION_DECODE, &s->data.decode, splits);
}

bool scene_is_right(scene *s, const char *what) {
  int64_t dims[DIM_COUNT];
  random_state r = {1};
  verify_outcome o = {.good = true, .lse_error = (double)NAN, .cosine = (double)NAN};
  /* Tests change what was stored, so attention that was never quantised is no measure: it isn't where large
   * queries are. */
  verify_case from = *s->data.from;
  verify_data data = s->data;
  from.traits |= TRAIT_PEAKED;
  data.from = &from;
  diags d;
  diags_init(&d);
  hd_status status = bind_dims(&s->contract, OPERATION_DECODE, &s->data.decode, dims, &d);
  if (status == HD_OK) status = verify_compare_decode(&data, dims, s->scale, &r, &o, &d);
  if (status != HD_OK) return fail_with(s->edge, what, &d);
  diags_finish(&d);
  return EXPECT(s->edge, o.good, "%s: %s", what, o.problem);
}

bool scene_plays(edge *e, const char *yaml, const verify_case *from, const int *splits) {
  scene s;
  bool good = scene_init(&s, e, yaml, from) && scene_write(&s);
  for (int i = 0; good && splits[i] > 0; i++) {
    char what[48];
    snprintf(what, sizeof what, "%d splits", splits[i]);
    good = scene_decode(&s, splits[i]) && scene_is_right(&s, what);
  }
  scene_finish(&s);
  return good;
}

int64_t scene_rows(const scene *s) {
  const verify_data *d = &s->data;
  return d->sizes[DIM_SEQS] * d->sizes[DIM_ROWS] * d->sizes[DIM_KV_HEADS] * s->contract.query.heads_per_kv;
}

double scene_out(const scene *s, int64_t row, int64_t channel) {
  dtype type = s->contract.output.dtype;
  int64_t at = (row * s->contract.head_dim.v + channel) * dtype_bytes(type);
  return dtype_decode(type, (const char *)s->data.memory[TENSOR_OUT] + at);
}

double scene_lse(const scene *s, int64_t row) {
  return (double)((const float *)s->data.memory[TENSOR_LSE])[row];
}

void *scene_keep(const scene *s) {
  size_t bytes = tensor_bytes(&s->data.decode.by_name[TENSOR_OUT]);
  void *kept = malloc(bytes + 1);
  if (kept) memcpy(kept, s->data.memory[TENSOR_OUT], bytes);
  return kept;
}

bool scene_same(scene *s, const void *kept, const char *what) {
  const tensor *out = &s->data.decode.by_name[TENSOR_OUT];
  return EXPECT(s->edge, kept && memcmp(kept, s->data.memory[TENSOR_OUT], tensor_bytes(out)) == 0,
                "%s: the output changed", what);
}

static const layout *layout_of(const contract *c, tensor_name name) {
  return name == TENSOR_K_CACHE   ? &c->kv.k
         : name == TENSOR_V_CACHE ? &c->kv.v
         : name == TENSOR_K_SCALE ? &c->scale.k
                                  : &c->scale.v;
}

unsigned char *scene_at(scene *s, tensor_name name, int64_t page, int64_t head, int64_t slot,
                        int64_t channel) {
  const layout *l = layout_of(&s->contract, name);
  int64_t b, h, heads = s->data.sizes[DIM_KV_HEADS];
  layout_packed_strides(l, s->data.sizes[DIM_PAGES], heads, &b, &h);
  int64_t at = layout_offset(l, b, h, heads, page, head, slot, channel);
  return (unsigned char *)s->data.memory[name] + at * dtype_bytes(s->data.decode.by_name[name].dtype);
}

void scene_spoil(scene *s, unsigned char byte, double value) {
  const verify_data *d = &s->data;
  int64_t slots = d->sizes[DIM_PAGES] * d->page;
  bool *live = calloc((size_t)slots, sizeof *live);
  if (!live) {
    edge_fail(s->edge, "out of memory");
    return;
  }
  for (int64_t t = 0; t < d->live_tokens; t++)
    live[d->slot[t]] = true;
  bool scales = s->contract.scale.granularity == SCALE_TOKEN_HEAD;
  for (int64_t at = 0; at < slots; at++)
    for (int64_t h = 0; !live[at] && h < d->sizes[DIM_KV_HEADS]; h++)
      for (int n = 0; n < 2; n++) {
        tensor_name codes = n ? TENSOR_V_CACHE : TENSOR_K_CACHE, scale = n ? TENSOR_V_SCALE : TENSOR_K_SCALE;
        int channels = n ? s->contract.head_dim.v : s->contract.head_dim.qk;
        for (int64_t c = 0; c < channels; c++)
          memset(scene_at(s, codes, at / d->page, h, at % d->page, c), byte,
                 (size_t)dtype_bytes(d->decode.by_name[codes].dtype));
        if (scales)
          dtype_encode(s->contract.scale.dtype, value, scene_at(s, scale, at / d->page, h, at % d->page, 0));
      }
  free(live);
}
