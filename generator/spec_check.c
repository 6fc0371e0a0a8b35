/* What fields must be to each other, once each has its value. */
#include "spec_field.h"
#include <math.h>
#include <string.h>

static bool takes_scales(dtype d) {
  return dtype_bytes(d) == 1; /* wider formats store values themselves */
}

static void check_scaled_cache(spec_reader *r) {
  const contract *c = &r->spec.contract;
  if (c->scale.granularity == SCALE_NONE || !spec_is_ok(r, "kv.dtype")) return;
  bool k = takes_scales(c->kv.k_dtype), v = takes_scales(c->kv.v_dtype);
  if (k && v) return;
  int row = spec_row("scale");
  spec_reject(r, "spec.conflict", &spec_fields[row], r->keys[row],
              "scale is given, but a %s cache has none, allowed: fp8 and int8 caches, or no scale",
              dtype_name(k ? c->kv.v_dtype : c->kv.k_dtype));
}

static void check_scale_dtype(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("scale.dtype");
  if (!spec_is_ok(r, "scale.dtype")) return;
  if (c->scale.argument && c->scale.dtype != DTYPE_FP32) {
    spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
                "scale.dtype is %s with source argument, allowed: fp32, since a number that is given at a "
                "launch is one",
                dtype_name(c->scale.dtype));
    return;
  }
  if (c->scale.dtype != DTYPE_E8M0 || c->scale.granularity == SCALE_GROUP) return;
  spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
              "scale.dtype is e8m0 with granularity %s, allowed: fp32, fp16; e8m0 with group only",
              granularity_name(c->scale.granularity));
}

static void check_group(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("scale.group");
  if (c->scale.granularity != SCALE_GROUP || !spec_is_ok(r, "scale.group") || !spec_is_ok(r, "head_dim"))
    return;
  const struct {
    const char *half;
    int group, channels;
  } halves[] = {{"k", c->scale.group_k, contract_coded_k(c)}, {"v", c->scale.group_v, contract_coded_v(c)}};
  if (c->kv.v_in_k && c->scale.group_k != c->scale.group_v)
    spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
                "scale.group is %d for K and %d for V, allowed: one number, since V lies in K",
                c->scale.group_k, c->scale.group_v);
  for (int i = 0; i < (c->kv.v_in_k ? 1 : 2); i++)
    if (halves[i].channels % halves[i].group != 0)
      spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
                  "scale.group.%s is %d, allowed: what divides the %s of %s, %d", halves[i].half,
                  halves[i].group, i == 0 && c->kv.tail.channels ? "channels before kv.tail" : "head_dim",
                  halves[i].half, halves[i].channels);
}

/* V as the first channels of K: what is K's is V's. */
static void check_shared_values(spec_reader *r) {
  contract *c = &r->spec.contract;
  if (!c->kv.v_in_k) return;
  int dtype_row = spec_row("kv.dtype"), dim_row = spec_row("head_dim");
  if (spec_is_ok(r, "kv.dtype") && c->kv.v_dtype != c->kv.k_dtype)
    spec_reject(r, "spec.conflict", &spec_fields[dtype_row], r->nodes[dtype_row],
                "kv.dtype.v is %s, allowed: %s, that of K, since V lies in K", dtype_name(c->kv.v_dtype),
                dtype_name(c->kv.k_dtype));
  if (spec_is_ok(r, "head_dim") && c->head_dim.v > c->head_dim.qk)
    spec_reject(r, "spec.conflict", &spec_fields[dim_row], r->nodes[dim_row],
                "head_dim.v is %d, allowed: up to %d, the channels of K, since V lies in K", c->head_dim.v,
                c->head_dim.qk);
  c->kv.v = c->kv.k;
  c->scale.v = c->scale.k;
  c->scale.v_at = c->scale.k_at;
}

static void check_tail(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("kv.tail.channels");
  if (!r->nodes[row] || !spec_is_ok(r, "kv.tail.channels") || !spec_is_ok(r, "head_dim")) return;
  if (contract_coded_k(c) > 0) return;
  spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
              "kv.tail.channels is %d, allowed: fewer than head_dim.qk, %d", c->kv.tail.channels,
              c->head_dim.qk);
}

/* A scale of each head is one of the tensor where there is one head. */
static void check_head_scale(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("scale.granularity");
  if (c->scale.granularity != SCALE_HEAD || !spec_is_ok(r, "kv.k") || layout_has_axis(&c->kv.k, AXIS_H))
    return;
  spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
              "scale.granularity is head, allowed: tensor, since kv.k has no h and so one kv head");
}

/* What lies in one page must lie apart. Judged once all of it is known. */
static void check_pages(spec_reader *r) {
  static const char *const needed[] = {"kv.dtype",       "kv.k",        "kv.v",    "kv.tail.at",
                                       "kv.tail.layout", "scale.dtype", "scale.k", "scale.v"};
  const contract *c = &r->spec.contract;
  if (r->status != HD_OK) return;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!spec_is_ok(r, needed[i])) return;
  for (int is_k = 1; is_k >= 0; is_k--) {
    bool inside = c->scale.inside, tail = is_k && c->kv.tail.channels > 0;
    if ((!inside && !tail) || (!is_k && c->kv.v_in_k)) continue;
    int row = spec_row(tail ? "kv.tail" : is_k ? "scale.k" : "scale.v");
    spec_check_page(r, &spec_fields[row], tail ? r->keys[row] : r->nodes[row], is_k);
  }
}

/* The largest code must be one that the cache's format has; of fp8_e4m3, that both dialects have. */
static void check_qmax(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("scale.writer.qmax");
  if (!r->nodes[row] || !spec_is_ok(r, "scale.writer.qmax") || !spec_is_ok(r, "kv.dtype")) return;
  const dtype dtypes[] = {c->kv.k_dtype, c->kv.v_dtype};
  for (int i = 0; i < 2; i++) {
    double most = dtype_max(dtypes[i] == DTYPE_FP8_E4M3 ? DTYPE_FP8_E4M3FNUZ : dtypes[i]);
    if (c->scale.writer.qmax <= most) continue;
    spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
                "%s is %s, but %s ends at %.0f%s, allowed: dialect, or a number up to that",
                spec_fields[row].path, r->nodes[row]->text, dtype_name(dtypes[i]), most,
                dtypes[i] == DTYPE_FP8_E4M3 ? " in one of its dialects" : "");
    return;
  }
}

/* What is stored for an all-zero row is a scale: rounded to what its format holds. The floor of what is
 * stored, alone, is such a number. */
static void check_zero_row(spec_reader *r) {
  contract *c = &r->spec.contract;
  int row = spec_row("scale.writer.zero_row");
  if (!spec_has_meaning(r, &spec_fields[row]) || !spec_is_ok(r, "scale.dtype") ||
      !spec_is_ok(r, spec_fields[row].path))
    return;
  unsigned char stored[4];
  if (c->scale.writer.zero_row == ZERO_ROW_FLOOR && c->scale.writer.amax_floor == 0 &&
      c->scale.writer.scale_floor > 0) {
    dtype_encode(c->scale.dtype, c->scale.writer.scale_floor, stored);
    c->scale.writer.zero_value = dtype_decode(c->scale.dtype, stored);
    c->scale.writer.zero_row = ZERO_ROW_VALUE;
    return;
  }
  if (c->scale.writer.zero_row != ZERO_ROW_VALUE) return;
  dtype_encode(c->scale.dtype, c->scale.writer.zero_value, stored);
  double rounded = dtype_decode(c->scale.dtype, stored);
  bool lost = isinf(rounded) || (c->scale.writer.zero_value == 0) != (rounded == 0);
  if (c->scale.dtype == DTYPE_E8M0)
    lost = rounded != c->scale.writer.zero_value; /* a power of two or nothing */
  if (lost)
    spec_reject(r, "spec.conflict", &spec_fields[row],
                r->nodes[row] ? r->nodes[row] : r->keys[spec_row("scale")],
                "%s is %s, allowed with scale.dtype %s: %s", spec_fields[row].path,
                r->nodes[row] ? r->nodes[row]->text : spec_fields[row].fallback, dtype_name(c->scale.dtype),
                c->scale.dtype == DTYPE_E8M0 ? "a power of two"
                                             : "0, or what does not become 0 or infinite in that format");
  else
    c->scale.writer.zero_value = rounded;
}

/* Block lists belong to a kv head and row, token lists to a row, whatever select.per says; it says what comes
 * with each: a length, or a list for each kv head too. */
static void check_per(spec_reader *r) {
  const contract *c = &r->spec.contract;
  int row = spec_row("select.per");
  if (!spec_is_ok(r, "select.form") || !spec_is_ok(r, "select.per")) return;
  bool blocks = c->select.form == SELECT_BLOCKS && c->select.per == PER_KV_HEAD;
  bool tokens = c->select.form == SELECT_TOKENS && c->select.per == PER_SEQUENCE;
  if (blocks || tokens)
    spec_reject(r, "spec.conflict", &spec_fields[row], r->nodes[row],
                "select.per is %s with form %s, allowed: %s", spec_per_words[c->select.per].word,
                spec_form_words[c->select.form].word, blocks ? "sequence, row" : "row, kv_head");
}

static void (*const checks[])(spec_reader *r) = {
    check_scaled_cache, check_scale_dtype, check_tail,       check_shared_values, check_group,
    check_qmax,         check_zero_row,    check_head_scale, check_pages,         check_per};

void spec_check(spec_reader *r) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    checks[i](r);
}
