#include "emit_read.h"
#include "emit_internal.h"

#include <stdio.h>
#include <string.h>

enum { READ_THREADS = 512, READ_IN_FLIGHT = 8 };

/* Bytes of one side: `width` elements and their scales. */
static void add_side(const contract *c, dtype d, int width, int group, read_bytes *bytes) {
  int scale = dtype_bytes(c->scale.dtype);
  bytes->token_head += (int64_t)width * dtype_bytes(d);
  const unsigned axes = contract_scale_axes(c->scale.granularity);
  if (!(axes & 1u << AXIS_S)) return; /* few, whatever the tokens */
  if (axes & 1u << AXIS_D && group == 0) return;
  int64_t scales = axes & 1u << AXIS_D ? width / group : 1;
  *(axes & 1u << AXIS_H ? &bytes->token_head : &bytes->token) += scales * scale;
}

read_bytes read_bytes_of(const contract *c) {
  read_bytes bytes = {0};
  add_side(c, c->kv.k_dtype, contract_coded_k(c), c->scale.group_k, &bytes);
  if (c->kv.tail.channels) bytes.token_head += (int64_t)c->kv.tail.channels * dtype_bytes(c->kv.tail.dtype);
  if (!c->kv.v_in_k) add_side(c, c->kv.v_dtype, c->head_dim.v, c->scale.group_v, &bytes);
  return bytes;
}

typedef struct read_fences {
  const contract *contract;
  const target *target;
  const descriptor *descriptor;
  const template_source *templates;
  diags *errors;
} read_fences;

static void write_solved(const contract *c, text *out) {
  read_bytes bytes = read_bytes_of(c);
  text_add(out, "// ---- solved by the generator\n\n");
  text_addf(out, "constexpr i64 TOKEN_HEAD_BYTES = %lld; // K, V and scales of one token and kv head\n",
            (long long)bytes.token_head);
  text_addf(out, "constexpr i64 TOKEN_BYTES = %lld; // scales that all kv heads of a token share\n",
            (long long)bytes.token);
  write_int(out, "THREADS", READ_THREADS);
  write_int(out, "IN_FLIGHT", READ_IN_FLIGHT);
  text_add(out, "\n");
}

static bool fill(void *user, const char *name, text *out) {
  read_fences *f = user;
  if (strcmp(name, "contract") == 0) {
    write_contract_comment(f->contract, "read", f->target, out);
    write_int(out, "WAVE", f->target->wave);
    text_add(out, "\n");
  } else if (strcmp(name, "prelude") == 0) {
    return template_copy(f->templates, f->target->prelude, out, f->errors) == HD_OK;
  } else if (strcmp(name, "solved") == 0) {
    write_solved(f->contract, out);
  } else if (strcmp(name, "arguments read") == 0) {
    write_arguments(&f->descriptor->kernels[0], out);
  } else {
    return false;
  }
  return true;
}

hd_status emit_read(const contract *c, const variant *v, const target *t, const template_source *templates,
                    text *out_source, descriptor *out_descriptor, diags *errors) {
  (void)v; /* it has one shape */
  kernel_descriptor *k = &out_descriptor->kernels[0];
  out_descriptor->kernel_count = 1;
  out_descriptor->tile_tokens = 1;
  out_descriptor->workspace = (extent){0, 1, 0, {DIM_SEQS}};
  snprintf(k->symbol, sizeof k->symbol, "heddle_read");
  k->grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->grid[1] = k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = READ_THREADS;
  add_tensor(k, TENSOR_K_CACHE);
  add_tensor(k, TENSOR_OUT);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_TOKENS);
  add_dim(k, DIM_SPLITS);
  read_fences fences = {c, t, out_descriptor, templates, errors};
  return template_fill(templates, "read.hip", fill, &fences, out_source, errors);
}
