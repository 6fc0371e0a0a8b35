#include "plan_internal.h"

static bool is_one_of(dtype d, const dtype *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == d) return true;
  return false;
}

#define ONE_OF(d, ...)                                                                                       \
  is_one_of(d, (const dtype[]){__VA_ARGS__}, sizeof((const dtype[]){__VA_ARGS__}) / sizeof(dtype))

static void check_dtype(dtype d, const target *t, diags *errors) {
  if (ONE_OF(d, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ) && d != t->fp8)
    diags_decline(errors, "decline.dialect", "kv.dtype", dtype_name(d),
                  "%s, the fp8 dialect of %s, or fp8_e4m3", dtype_name(t->fp8), t->name);
  else if (!ONE_OF(d, DTYPE_BF16, DTYPE_FP16, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ, DTYPE_FP8_E5M2,
                   DTYPE_INT8))
    diags_decline(errors, "decline.kv-dtype", "kv.dtype", dtype_name(d),
                  "bf16, fp16, fp8_e4m3, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8");
}

/* What both operations ask of a contract. */
void check_cache(const contract *c, const target *t, unsigned kernel, const char *name, diags *errors) {
  if (!(c->kernels & kernel))
    diags_refusef(errors, "decline.kernels", "kernels", name, c->kernels & KERNEL_WRITE ? "write" : "decode",
                  "the contract has no %s kernel", name);
  if (!ONE_OF(c->query.dtype, DTYPE_BF16, DTYPE_FP16))
    diags_decline(errors, "decline.query-dtype", "query.dtype", dtype_name(c->query.dtype), "bf16, fp16");
  check_dtype(c->kv.k_dtype, t, errors);
  if (c->kv.v_dtype != c->kv.k_dtype) check_dtype(c->kv.v_dtype, t, errors);
  bool group = c->scale.granularity == SCALE_GROUP;
  if (c->scale.granularity != SCALE_NONE && !ONE_OF(c->scale.dtype, DTYPE_FP32, DTYPE_FP16) &&
      !(group && c->scale.dtype == DTYPE_E8M0))
    diags_decline(errors, "decline.scale-dtype", "scale.dtype", dtype_name(c->scale.dtype),
                  group ? "fp32, fp16, e8m0" : "fp32, fp16");
}

/* Pages of a list are whole ones, and a list does not say where its tokens stood. */
static void check_lists(const contract *c, diags *errors) {
  if (!contract_makes_lists(c)) return;
  if (c->select.form == SELECT_BLOCKS && (c->select.block < 1 || c->select.block % c->kv.page != 0))
    diags_decline_number(errors, "decline.select-block", "select.block", c->select.block,
                         "a multiple of the page, %d", c->kv.page);
  if (c->select.form == SELECT_TOKENS && c->kv.page != 1)
    diags_decline_number(errors, "decline.select-page", "kv.page", c->kv.page, "1 with select.form: tokens");
  if (c->mask.window)
    diags_decline_number(errors, "decline.select-window", "mask.window", c->mask.window,
                         "none with select.form: blocks or tokens");
}

void check_decode(const contract *c, diags *errors) {
  if (c->query.rows < 1 || c->query.rows > 8)
    diags_decline_number(errors, "decline.query-rows", "query.rows", c->query.rows, "1 to 8");
  if (c->query.heads_per_kv < 1 || c->query.heads_per_kv > 128)
    diags_decline_number(errors, "decline.heads-per-kv", "query.heads_per_kv", c->query.heads_per_kv,
                         "1 to 128");
  check_lists(c, errors);
  if (!ONE_OF(c->select.index, DTYPE_INT32, DTYPE_INT64))
    diags_decline(errors, "decline.select-index", "select.index", dtype_name(c->select.index),
                  "int32, int64");
  if (!ONE_OF(c->output.dtype, DTYPE_BF16, DTYPE_FP16, DTYPE_FP32))
    diags_decline(errors, "decline.output-dtype", "output.dtype", dtype_name(c->output.dtype),
                  "bf16, fp16, fp32");
}

void check_dim(const char *field, int channels, int most, diags *errors) {
  if (channels >= DIM_STEP && channels % DIM_STEP == 0 && channels <= most) return;
  diags_decline_number(errors, "decline.head-dim", field, channels, "a multiple of %d up to %d", DIM_STEP,
                       most);
}

void check_shape(const contract *c, const decode_plan *p, diags *errors) {
  if (c->kv.tail.channels && !ONE_OF(c->kv.tail.dtype, DTYPE_BF16, DTYPE_FP16))
    diags_decline(errors, "decline.tail", "kv.tail.dtype", dtype_name(c->kv.tail.dtype), "bf16, fp16");
  if (c->kv.tail.channels % DIM_STEP != 0)
    diags_decline_number(errors, "decline.tail", "kv.tail.channels", c->kv.tail.channels, "a multiple of %d",
                         DIM_STEP);
  check_dim("head_dim.qk", c->head_dim.qk, MOST_QK, errors);
  check_dim("head_dim.v", c->head_dim.v, MOST_V, errors);
  if (c->scale.granularity != SCALE_GROUP) return;
  if (c->scale.group_k % 4 != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_k,
                         "a multiple of 4 channels of K");
  int coded = contract_coded_v(c);
  if (c->kv.v_in_k && coded % c->scale.group_v != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_v,
                         "what divides the %d channels of V, where V lies in K", coded);
  if (c->scale.group_v != coded && c->scale.group_v % p->value_op->rows != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_v,
                         "a multiple of %d channels of V (%s)", p->value_op->rows, p->value_op->name);
}
