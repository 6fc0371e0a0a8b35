#include "emit_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The merge kernel: threads of a workgroup, quads of outputs it takes, and rows of threads that share the splits. */
enum { MERGE_THREADS = 256, MERGE_QUADS = 16, MERGE_LANES = MERGE_THREADS / MERGE_QUADS };

bool token_scales(const contract *c) { return c->scale.granularity == SCALE_TOKEN_HEAD; }
bool tensor_scale(const contract *c) { return c->scale.granularity == SCALE_TENSOR; }

void write_merge_shape(text *out) {
  write_int(out, "MERGE_THREADS", MERGE_THREADS);
  write_int(out, "MERGE_QUADS", MERGE_QUADS);
  write_int(out, "MERGE_LANES", MERGE_LANES);
}

void write_store_output(const contract *c, text *out) {
  text_add(out, "\nDEVICE void store_output(void *out, i64 index, float x) {\n"
                "  const float values[2] = {x, 0.0f};\n");
  if (dtype_bytes(c->output.dtype) == 4)
    text_add(out, "  ((float *)out)[index] = values[0];\n}\n");
  else
    text_add(out, "  ((u16 *)out)[index] = (u16)OUTPUT::pack(values);\n}\n");
  text_add(out, "\n");
}

static void write_logits(const contract *c, text *out) {
  text_add(out, "  float logits = 1.44269504088896341f"); /* log2(e) */
  switch (c->logits.scale) {
  case LOGITS_ARGUMENT:
    text_add(out, " * logits_scale");
    break;
  case LOGITS_RSQRT_D:
    text_add(out, " * (float)");
    text_add_double(out, 1.0 / sqrt((double)c->head_dim.qk));
    break;
  case LOGITS_NUMBER:
    text_add(out, " * (float)");
    text_add_double(out, c->logits.number);
    break;
  }
  if (tensor_scale(c)) text_add(out, " * scale_value(k_scale[0])");
  text_add(out, ";\n");
}

static void write_value_scale(const contract *c, text *out) {
  text_addf(out, "  const float value_scale = %s;\n", tensor_scale(c) ? "scale_value(v_scale[0])" : "1.0f");
}

static void write_lse(const contract *c, const char *base, const char *total, text *out) {
  if (c->output.lse)
    text_addf(out, "    lse[item * HEADS + head] = (%s + log2_fast(%s)) * 0.693147180559945309f;\n", base, total);
}

/* Runs the merge template with the same fences. */
static bool fill(void *user, const char *name, text *out) { return fill_attention(user, name, out); }

bool fill_attention(const attention_fences *f, const char *name, text *out) {
  const contract *c = f->contract;
  if (strcmp(name, "contract") == 0) {
    write_contract_comment(c, "decode", f->target, out);
    write_int(out, "WAVE", f->target->wave);
    text_add(out, "\n");
  } else if (strcmp(name, "prelude") == 0) {
    return template_copy(f->templates, f->target->prelude, out, f->diags) == HD_OK;
  } else if (strcmp(name, "arguments decode") == 0) {
    write_arguments(&f->descriptor->kernels[0], out);
  } else if (strcmp(name, "arguments merge") == 0) {
    write_arguments(&f->descriptor->kernels[1], out);
  } else if (strcmp(name, "logits") == 0) {
    write_logits(c, out);
  } else if (strcmp(name, "scale_heads") == 0) {
    if (token_scales(c))
      text_add(out, "  const scale_t *k_scale_head = k_scale + kv_head * k_scale_stride_h;\n"
                    "  const scale_t *v_scale_head = v_scale + kv_head * v_scale_stride_h;\n"
                    "  const i64 k_scale_heads_stride = kv_heads * k_scale_stride_h;\n"
                    "  const i64 v_scale_heads_stride = kv_heads * v_scale_stride_h;\n");
  } else if (strcmp(name, "value_scale") == 0) {
    write_value_scale(c, out);
  } else if (strcmp(name, "store_lse decode") == 0) {
    write_lse(c, "lowest", "total", out);
  } else if (strcmp(name, "store_lse merge") == 0) {
    write_lse(c, "base", "weights", out);
  } else if (strcmp(name, "merge_begin") == 0) {
    return true;
  } else if (strcmp(name, "merge") == 0) {
    attention_fences copy = *f;
    return template_fill(f->templates, "merge.hip", fill, &copy, out, f->diags) == HD_OK;
  } else {
    return false;
  }
  return true;
}

void add_decode_arguments(const contract *c, kernel_descriptor *k) {
  add_tensor(k, TENSOR_OUT);
  if (c->output.lse) add_tensor(k, TENSOR_LSE);
  add_tensor(k, TENSOR_WORKSPACE);
  add_tensor(k, TENSOR_Q);
  add_tensor(k, TENSOR_K_CACHE);
  add_tensor(k, TENSOR_V_CACHE);
  if (c->scale.granularity != SCALE_NONE) {
    add_tensor(k, TENSOR_K_SCALE);
    add_tensor(k, TENSOR_V_SCALE);
  }
  add_tensor(k, TENSOR_PAGE_TABLE);
  add_tensor(k, TENSOR_LENGTHS);
  for (dim d = DIM_K_STRIDE_B; d <= DIM_V_STRIDE_H; d++) add_dim(k, d);
  if (token_scales(c))
    for (dim d = DIM_K_SCALE_STRIDE_B; d <= DIM_V_SCALE_STRIDE_H; d++) add_dim(k, d);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_TABLE_PAGES);
  add_dim(k, DIM_SPLITS);
  if (c->logits.scale == LOGITS_ARGUMENT) add_logits_scale(k);
}

void describe_merge(const contract *c, descriptor *d) {
  kernel_descriptor *k = &d->kernels[1];
  snprintf(k->symbol, sizeof k->symbol, "heddle_merge");
  k->grid[0] = (extent){1, 1, 1, {DIM_SEQS}};
  k->grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  k->grid[2] = (extent){(int64_t)c->query.heads_per_kv * c->head_dim.v, 4 * MERGE_QUADS, 0, {DIM_SEQS}};
  k->block = MERGE_THREADS;
  k->only_when_split = true;
  d->kernel_count = 2;
  d->workspace = (extent){
      4 * (int64_t)c->query.heads_per_kv * (c->head_dim.v + 4), 1, 3, {DIM_SEQS, DIM_KV_HEADS, DIM_SPLITS}};
  add_tensor(k, TENSOR_OUT);
  if (c->output.lse) add_tensor(k, TENSOR_LSE);
  add_tensor(k, TENSOR_WORKSPACE);
  if (tensor_scale(c)) add_tensor(k, TENSOR_V_SCALE);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_SPLITS);
}

