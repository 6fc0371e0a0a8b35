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
  diags *errors;
} write_fences;

/* The code every NaN is stored as. */
static int64_t nan_code(dtype d) {
  unsigned char bytes[8] = {0};
  dtype_encode(d, (double)NAN, bytes);
  return bytes[0] | (dtype_bytes(d) > 1 ? bytes[1] << 8 : 0);
}

/* How codes of K or V are made: what the template's functions take as `Side`. */
static void write_side(const contract *c, char side, text *out) {
  bool is_k = side == 'k';
  dtype kv = is_k ? c->kv.k_dtype : c->kv.v_dtype;
  int head_dim = is_k ? c->head_dim.qk : c->head_dim.v;
  int part = c->scale.granularity == SCALE_GROUP ? is_k ? c->scale.group_k : c->scale.group_v : head_dim;
  double qmax = c->scale.writer.qmax > 0 ? c->scale.writer.qmax : dtype_max(kv);
  double zero_row_scale = c->scale.writer.zero_row == ZERO_ROW_FLOOR
                              ? (double)((float)c->scale.writer.amax_floor / (float)qmax)
                              : c->scale.writer.zero_value;
  const struct {
    const char *name;
    double value;
  } floats[] = {{"LARGEST", dtype_max(kv)},
                {"LOWEST", kv == DTYPE_INT8 ? -128.0 : -dtype_max(kv)},
                /* e4m3fnuz has no -0; its smallest value is 2^-10 and half of it still rounds to 0 */
                {"FLUSH", kv == DTYPE_FP8_E4M3FNUZ ? 0x1p-11 : -1.0},
                {"ZERO_ROW", zero_row_scale},
                {"QMAX", qmax}};
  text_addf(out, "struct %c_side {\n  typedef %s STORED;\n", side, format_of(kv));
  text_addf(out,
            "  static constexpr int HEAD_DIM = %d, PART = %d; // channels, and those that share a scale\n",
            head_dim, part);
  text_addf(out, "  static constexpr bool QUANTISED = %s, COPIED = %s;\n",
            dtype_bytes(kv) == 1 ? "true" : "false",
            kv == c->query.dtype && c->scale.granularity == SCALE_NONE ? "true" : "false");
  text_addf(out, "  static constexpr u32 NAN_CODE = %lld;\n", (long long)nan_code(kv));
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    text_add(out, "  static ");
    write_float(out, floats[i].name, floats[i].value);
  }
  text_add(out, "};\n");
}

static void write_solved(const contract *c, const write_plan *p, text *out) {
  text_addf(
      out,
      "// ---- solved by the generator\n//\n// %d lanes a row, %d channels each; %d rows a workgroup.\n\n",
      p->row_lanes, p->load, p->threads / p->row_lanes);
  text_addf(out, "constexpr i64 PAGE = %d; // tokens\n\n", c->kv.page);
  text_addf(out, "typedef %s QUERY;\n\n", format_of(c->query.dtype));
  write_int(out, "THREADS", p->threads);
  write_int(out, "ROW_LANES", p->row_lanes);
  write_int(out, "LOAD", p->load);
  text_add(out, "\n// The scale rule: rows of zeros store ZERO_ROW, others max(amax, AMAX_FLOOR) / QMAX. "
                "Else the scale is given.\n");
  write_bool(out, "SCALED", c->scale.granularity != SCALE_NONE);
  write_bool(out, "WORKED_OUT", contract_writer_scales(c->scale.granularity));
  write_bool(out, "ALL_HEADS", c->scale.granularity == SCALE_TOKEN);
  write_float(out, "AMAX_FLOOR", c->scale.writer.amax_floor);
  text_add(out, "\n");
  write_side(c, 'k', out);
  write_side(c, 'v', out);
  text_add(out, "\n// Elements from the first of a page and head. The strides of pages and heads are "
                "run-time arguments.\n");
  write_offset_function(out, "k_offset", &c->kv.k, dtype_bytes(c->kv.k_dtype));
  write_offset_function(out, "v_offset", &c->kv.v, dtype_bytes(c->kv.v_dtype));
  write_scale_type(out, c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype);
  if (c->scale.granularity >= SCALE_HEAD) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  text_add(out, "\n");
}

static void write_row_scales(const contract *c, text *out) {
  static const char sides[] = {'k', 'v'};
  write_scales_inside(c, true, out);
  for (int i = 0; i < 2; i++) {
    char s = sides[i];
    text_addf(out, "  const auto %c_row_scale = [&](int part) -> scale_t * { return ", s);
    if (c->scale.granularity == SCALE_NONE)
      text_add(out, "nullptr");
    else if (c->scale.granularity == SCALE_TENSOR)
      text_addf(out, "%c_scale", s);
    else
      text_addf(out,
                "\n    %c_scale + page * %c_scale_stride_b + head * %c_scale_stride_h +\n"
                "    %c_scale_offset(slot, kv_heads * %c_scale_stride_h, (u32)part)",
                s, s, s, s, s);
    text_add(out, "; };\n");
  }
}

static bool fill(void *user, const char *name, text *out) {
  write_fences *f = user;
  if (strcmp(name, "contract") == 0) {
    write_contract_comment(f->contract, "write", f->plan->target, out);
    write_int(out, "WAVE", f->plan->target->wave);
    text_add(out, "\n");
  } else if (strcmp(name, "prelude") == 0) {
    return template_copy(f->templates, f->plan->target->prelude, out, f->errors) == HD_OK;
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
                     text *out_source, descriptor *out_descriptor, diags *errors) {
  write_plan plan;
  hd_status status = plan_write(c, v, t, &plan, errors);
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
  if (c->scale.granularity != SCALE_NONE && !c->scale.inside) {
    add_tensor(k, TENSOR_K_SCALE);
    add_tensor(k, TENSOR_V_SCALE);
  }
  add_tensor(k, TENSOR_K);
  add_tensor(k, TENSOR_V);
  add_tensor(k, TENSOR_SLOT_MAPPING);
  for (dim d = DIM_K_STRIDE_B; d <= DIM_V_STRIDE_H; d++)
    add_dim(k, d);
  if (c->scale.granularity >= SCALE_HEAD)
    for (dim d = DIM_K_SCALE_STRIDE_B; d <= DIM_V_SCALE_STRIDE_H; d++)
      add_dim(k, d);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_PAGES);
  add_dim(k, DIM_TOKENS);
  write_fences fences = {c, &plan, out_descriptor, templates, errors};
  return template_fill(templates, "write.hip", fill, &fences, out_source, errors);
}
