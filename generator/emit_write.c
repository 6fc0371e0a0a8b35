#include "emit_internal.h"
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct write_fences {
  const contract *contract;
  const write_plan *plan;
  const descriptor *descriptor;
  const template_source *templates;
  diags *diags;
} write_fences;

/* The code every NaN is stored as. */
static int64_t nan_code(dtype d) {
  unsigned char bytes[8] = {0};
  dtype_encode(d, (double)NAN, bytes);
  return bytes[0] | (dtype_bytes(d) > 1 ? bytes[1] << 8 : 0);
}

static void write_solved(const contract *c, const write_plan *p, text *out) {
  dtype kv = c->kv.k_dtype;
  bool row_scaled = c->scale.granularity == SCALE_TOKEN_HEAD;
  double qmax = c->scale.writer.qmax > 0 ? c->scale.writer.qmax : dtype_max(kv);
  double zero_row = c->scale.writer.zero_row == ZERO_ROW_FLOOR
                        ? (double)((float)c->scale.writer.amax_floor / (float)qmax)
                        : c->scale.writer.zero_value;
  text_addf(out, "// ---- solved by the generator\n//\n// %d lanes a row, %d channels each; %d rows a workgroup.\n\n",
            p->row_lanes, p->load, p->threads / p->row_lanes);
  write_int(out, "HEAD_DIM_QK", c->head_dim.qk);
  write_int(out, "HEAD_DIM_V", c->head_dim.v);
  text_addf(out, "constexpr i64 PAGE = %d; // tokens\n\n", c->kv.page);
  text_addf(out, "typedef %s QUERY;\ntypedef %s KV;\n\n", format_of(c->query.dtype), format_of(kv));
  write_int(out, "THREADS", p->threads);
  write_int(out, "ROW_LANES", p->row_lanes);
  write_int(out, "LOAD", p->load);
  write_bool(out, "QUANTISED", dtype_is_fp8(kv));
  write_bool(out, "COPIED", kv == c->query.dtype && c->scale.granularity == SCALE_NONE);
  write_float(out, "CODE_MAX", dtype_max(kv));
  /* e4m3fnuz has no -0; its smallest value is 2^-10 and half of it still rounds to 0 */
  write_float(out, "CODE_FLUSH", kv == DTYPE_FP8_E4M3FNUZ ? 0x1p-11 : -1.0);
  write_int(out, "NAN_CODE", nan_code(kv));
  text_add(out, "\n// The scale rule: 0 rows store ZERO_ROW, others max(amax, AMAX_FLOOR) / QMAX.\n");
  write_bool(out, "SCALED", c->scale.granularity != SCALE_NONE);
  write_bool(out, "ROW_SCALED", row_scaled);
  write_float(out, "AMAX_FLOOR", c->scale.writer.amax_floor);
  write_float(out, "ZERO_ROW", zero_row);
  write_float(out, "QMAX", qmax);
  text_add(out, "\n// Elements from the first of a page and head. The strides of pages and heads are run-time arguments.\n");
  write_offset_function(out, "k_offset", &c->kv.k, dtype_bytes(kv));
  write_offset_function(out, "v_offset", &c->kv.v, dtype_bytes(kv));
  write_scale_type(out, c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype);
  if (row_scaled) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  text_add(out, "\n");
}

static void write_row_scales(const contract *c, text *out) {
  static const char sides[] = {'k', 'v'};
  for (int i = 0; i < 2; i++) {
    char s = sides[i];
    text_addf(out, "  scale_t *%c_row_scale = ", s);
    if (c->scale.granularity == SCALE_NONE)
      text_add(out, "nullptr;\n");
    else if (c->scale.granularity == SCALE_TENSOR)
      text_addf(out, "%c_scale;\n", s);
    else
      text_addf(out,
                "%c_scale + page * %c_scale_stride_b + head * %c_scale_stride_h +\n"
                "                         %c_scale_offset(slot, kv_heads * %c_scale_stride_h);\n",
                s, s, s, s, s);
  }
}

static bool fill(void *user, const char *name, text *out) {
  write_fences *f = user;
  if (strcmp(name, "contract") == 0) {
    write_contract_comment(f->contract, "write", f->plan->target, out);
    write_int(out, "WAVE", f->plan->target->wave);
    text_add(out, "\n");
  } else if (strcmp(name, "prelude") == 0) {
    return template_copy(f->templates, f->plan->target->prelude, out, f->diags) == HD_OK;
  } else if (strcmp(name, "solved") == 0) {
    write_solved(f->contract, f->plan, out);
  } else if (strcmp(name, "arguments write") == 0) {
    write_arguments(&f->descriptor->kernels[0], out);
  } else if (strcmp(name, "row_scales") == 0) {
    write_row_scales(f->contract, out);
  } else {
    return false;
  }
  return true;
}

hd_status emit_write(const contract *c, const variant *v, const target *t, const template_source *templates,
                     text *out_source, descriptor *out_descriptor, diags *diags) {
  write_plan plan;
  hd_status status = plan_write(c, v, t, &plan, diags);
  if (status != HD_OK) return status;
  kernel_descriptor *k = &out_descriptor->kernels[0];
  out_descriptor->kernel_count = 1;
  out_descriptor->tile_tokens = 1;
  out_descriptor->workspace = (extent){0, 1, 0, {DIM_SEQS}};
  snprintf(k->symbol, sizeof k->symbol, "heddle_write");
  k->grid[0] = (extent){plan.row_lanes, plan.threads, 2, {DIM_TOKENS, DIM_KV_HEADS}};
  k->grid[1] = k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = plan.threads;
  add_tensor(k, TENSOR_K_CACHE);
  add_tensor(k, TENSOR_V_CACHE);
  if (c->scale.granularity != SCALE_NONE) {
    add_tensor(k, TENSOR_K_SCALE);
    add_tensor(k, TENSOR_V_SCALE);
  }
  add_tensor(k, TENSOR_K);
  add_tensor(k, TENSOR_V);
  add_tensor(k, TENSOR_SLOT_MAPPING);
  for (dim d = DIM_K_STRIDE_B; d <= DIM_V_STRIDE_H; d++) add_dim(k, d);
  if (c->scale.granularity == SCALE_TOKEN_HEAD)
    for (dim d = DIM_K_SCALE_STRIDE_B; d <= DIM_V_SCALE_STRIDE_H; d++) add_dim(k, d);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_TOKENS);
  write_fences fences = {c, &plan, out_descriptor, templates, diags};
  return template_fill(templates, "write.hip", fill, &fences, out_source, diags);
}
