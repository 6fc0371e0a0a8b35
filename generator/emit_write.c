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

/* An array that the writer stores to: the codes of K or V, or the tail of K. */
typedef struct stored_array {
  const char *name; /* "k", "k_tail", "v" */
  char cache;       /* whose pages it lies in, and whose rows it takes */
  dtype dtype, cache_dtype;
  const layout *layout;
  int64_t at;          /* bytes from the start of a page */
  int width, first;    /* channels of a row as given; the first of them that is the array's */
  int channels, group; /* the array's; those that share a scale */
  bool scaled;
} stored_array;

enum { MOST_ARRAYS = 3 };

static int stored_arrays(const contract *c, stored_array out[MOST_ARRAYS]) {
  int count = 0, coded = contract_coded_k(c);
  bool scaled = c->scale.granularity != SCALE_NONE, groups = c->scale.granularity == SCALE_GROUP;
  out[count++] = (stored_array){"k",
                                'k',
                                c->kv.k_dtype,
                                c->kv.k_dtype,
                                &c->kv.k,
                                0,
                                c->head_dim.qk,
                                0,
                                coded,
                                groups ? c->scale.group_k : coded,
                                scaled};
  if (c->kv.tail.channels)
    out[count++] = (stored_array){"k_tail",
                                  'k',
                                  c->kv.tail.dtype,
                                  c->kv.k_dtype,
                                  &c->kv.tail.layout,
                                  c->kv.tail.at,
                                  c->head_dim.qk,
                                  coded,
                                  c->kv.tail.channels,
                                  c->kv.tail.channels,
                                  false};
  if (!c->kv.v_in_k)
    out[count++] = (stored_array){"v",           'v',
                                  c->kv.v_dtype, c->kv.v_dtype,
                                  &c->kv.v,      0,
                                  c->head_dim.v, 0,
                                  c->head_dim.v, groups ? c->scale.group_v : c->head_dim.v,
                                  scaled};
  return count;
}

/* How the array's elements are made: what the template's functions take as `Side`. */
static void write_side(const contract *c, const stored_array *a, text *out) {
  dtype kv = a->dtype;
  double qmax = c->scale.writer.qmax > 0 ? c->scale.writer.qmax : dtype_max(kv);
  const double flush = dtype_flushes_below(kv);
  const double floor = (double)((float)c->scale.writer.amax_floor / (float)qmax);
  double zero_row_scale = c->scale.writer.zero_row == ZERO_ROW_VALUE ? c->scale.writer.zero_value
                          : floor > c->scale.writer.scale_floor      ? floor
                                                                     : c->scale.writer.scale_floor;
  const struct {
    const char *name;
    double value;
  } floats[] = {{"LARGEST", dtype_max(kv)},
                {"LOWEST", dtype_lowest(kv)},
                {"FLUSH", flush > 0 ? flush : -1.0},
                {"ZERO_ROW", zero_row_scale},
                {"QMAX", qmax}};
  const struct {
    const char *name;
    bool value;
  } flags[] = {{"SCALED", a->scaled},
               {"WORKED_OUT", a->scaled && contract_writer_scales(c->scale.granularity)},
               {"QUANTISED", dtype_bytes(kv) == 1},
               {"COPIED", kv == c->query.dtype && !a->scaled}};
  text_addf(out, "struct %s_side {\n  typedef %s STORED;\n", a->name, format_of(kv));
  text_addf(
      out,
      "  static constexpr int WIDTH = %d, HEAD_DIM = %d, PART = %d; // channels of a row, of the array, "
      "and those that share a scale\n",
      a->width, a->channels, a->group);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    text_add(out, "  static ");
    write_bool(out, flags[i].name, flags[i].value);
  }
  text_addf(out, "  static constexpr u32 NAN_CODE = %lld;\n", (long long)nan_code(kv));
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    text_add(out, "  static ");
    write_float(out, floats[i].name, floats[i].value);
  }
  text_add(out, "};\n");
}

/* One call for each array. */
static void write_rows(const contract *c, text *out) {
  stored_array arrays[MOST_ARRAYS];
  int count = stored_arrays(c, arrays);
  for (int i = 0; i < count; i++) {
    const stored_array *a = &arrays[i];
    char s = a->cache;
    text_addf(out, "  write_row<%s_side>((const u8 *)%c + ", a->name, s);
    text_addf(out,
              a->first ? "(token * kv_heads * %s_side::WIDTH + %d)" : "token * kv_heads * %s_side::WIDTH",
              a->name, a->first);
    text_addf(out,
              " * QUERY::BYTES, head, kv_heads,\n"
              "                    (u8 *)%c_cache + (page * %c_stride_b + head * %c_stride_h) * "
              "%c_side::STORED::BYTES",
              s, s, s, s);
    if (a->at) text_addf(out, " + %lld", (long long)a->at);
    text_addf(out,
              ",\n                    active, lane_in_row,\n"
              "                    [&](u32 channel) { return %s_offset(slot, channel, kv_heads * %c_stride_h",
              a->name, s);
    if (a->dtype != a->cache_dtype)
      text_addf(out, " * %d / %d", dtype_bytes(a->cache_dtype), dtype_bytes(a->dtype));
    text_addf(out, "); }, %s);\n",
              !a->scaled ? "[](int) -> scale_t * { return nullptr; }"
              : s == 'k' ? "k_row_scale"
                         : "v_row_scale");
  }
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
  text_add(out, "\n// The scale rule: rows of zeros store ZERO_ROW, others max(amax, AMAX_FLOOR) / QMAX, "
                "SCALE_FLOOR at least. Else the scale is given.\n");
  write_bool(out, "ALL_HEADS",
             contract_writer_scales(c->scale.granularity) &&
                 !(contract_scale_axes(c->scale.granularity) & 1u << AXIS_H));
  write_float(out, "AMAX_FLOOR", c->scale.writer.amax_floor);
  write_float(out, "SCALE_FLOOR", c->scale.writer.scale_floor);
  text_add(out, "\n");
  stored_array arrays[MOST_ARRAYS];
  int count = stored_arrays(c, arrays);
  for (int i = 0; i < count; i++)
    write_side(c, &arrays[i], out);
  text_add(out, "\n// Elements from the first of a page and head. The strides of pages and heads are "
                "run-time arguments.\n");
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "%s_offset", arrays[i].name);
    write_offset_function(out, name, arrays[i].layout, dtype_bytes(arrays[i].dtype));
  }
  write_scale_type(out, c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype);
  if (contract_scale_axes(c->scale.granularity)) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    if (!c->kv.v_in_k) write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  text_add(out, "\n");
}

/* Where the scales of the row's groups of channels lie. */
static void write_row_scales(const contract *c, text *out) {
  if (c->scale.granularity == SCALE_NONE) return;
  write_scales_inside(c, true, out);
  for (int i = 0; i < (c->kv.v_in_k ? 1 : 2); i++) {
    char s = "kv"[i];
    text_addf(out, "  const auto %c_row_scale = [&](int part) -> %sscale_t * { return ", s,
              c->scale.argument ? "const " : "");
    if (c->scale.argument)
      text_addf(out, "&%c_scale_value", s);
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
  } else if (strcmp(name, "write_rows") == 0) {
    write_rows(f->contract, out);
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
  bool own_v = !c->kv.v_in_k;
  bool strides = contract_scale_axes(c->scale.granularity) != 0;
  add_tensor(k, TENSOR_K_CACHE);
  if (own_v) add_tensor(k, TENSOR_V_CACHE);
  add_scale(c, k, true);
  if (own_v) add_scale(c, k, false);
  add_tensor(k, TENSOR_K);
  if (own_v) add_tensor(k, TENSOR_V);
  add_tensor(k, TENSOR_SLOT_MAPPING);
  add_dim(k, DIM_K_STRIDE_B);
  add_dim(k, DIM_K_STRIDE_H);
  if (own_v) add_dim(k, DIM_V_STRIDE_B);
  if (own_v) add_dim(k, DIM_V_STRIDE_H);
  if (strides) add_dim(k, DIM_K_SCALE_STRIDE_B);
  if (strides) add_dim(k, DIM_K_SCALE_STRIDE_H);
  if (strides && own_v) add_dim(k, DIM_V_SCALE_STRIDE_B);
  if (strides && own_v) add_dim(k, DIM_V_SCALE_STRIDE_H);
  add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_PAGES);
  add_dim(k, DIM_TOKENS);
  write_fences fences = {c, &plan, out_descriptor, templates, errors};
  return template_fill(templates, "write.hip", fill, &fences, out_source, errors);
}
