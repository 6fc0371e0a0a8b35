#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One array of stored elements: codes, scales, or the channels of a tail. */
typedef struct stored {
  dtype dtype;
  const layout *layout;
  unsigned char *data;        /* written by reference_write only */
  int64_t stride_b, stride_h; /* bytes */
  int64_t heads;
} stored;

/* K or V: where its elements and its scales lie. */
typedef struct side {
  stored codes, scales, tail;
  int dim, coded; /* channels; those of them that are codes. The rest is the tail's */
  bool scaled;
  bool one_scale; /* granularity tensor */
  int group;      /* channels of one head that surely share a scale */
  int64_t heads;
} side;

static stored stored_make(dtype d, const layout *l, reference_cache cache, int64_t heads) {
  return (stored){d,
                  l,
                  (unsigned char *)(uintptr_t)cache.data,
                  cache.stride_b * dtype_bytes(d),
                  cache.stride_h * dtype_bytes(d),
                  heads};
}

/* What lies in the pages of `cache`, `at` bytes behind their start, and steps as they do. */
static stored stored_inside(const stored *cache, dtype d, const layout *l, int64_t at) {
  stored s = *cache;
  s.dtype = d;
  s.layout = l;
  s.data = cache->data ? cache->data + at : NULL;
  return s;
}

static unsigned char *stored_at(const stored *s, int64_t page, int64_t head, int64_t slot, int64_t channel) {
  /* Digits inside the head step by elements, those outside it by all heads. */
  const int64_t bytes = dtype_bytes(s->dtype);
  int64_t offset = page * s->stride_b;
  for (int i = 0; i < s->layout->count; i++) {
    const layout_factor *f = &s->layout->factors[i];
    const layout_stride step = layout_factor_stride(s->layout, i);
    if (f->axis == AXIS_H) offset += head * s->stride_h;
    if (f->axis != AXIS_S && f->axis != AXIS_D) continue;
    const int64_t digit = (f->axis == AXIS_S ? slot : channel) / f->divisor % f->extent;
    offset += digit * step.elements * (step.times_heads ? s->heads * s->stride_h : bytes);
  }
  return s->data + offset;
}

static side side_make(const contract *c, bool is_k, int64_t heads, reference_cache cache,
                      reference_cache scale) {
  const bool from_k = is_k || c->kv.v_in_k; /* what K has, V has where it lies in K */
  const int group = from_k ? c->scale.group_k : c->scale.group_v;
  const layout *scale_layout = from_k ? &c->scale.k : &c->scale.v;
  side s = {
      .dim = is_k ? c->head_dim.qk : c->head_dim.v,
      .coded = is_k ? contract_coded_k(c) : contract_coded_v(c),
      .scaled = c->scale.granularity != SCALE_NONE,
      .one_scale = c->scale.granularity == SCALE_TENSOR,
      .heads = heads,
  };
  s.group = c->scale.granularity == SCALE_GROUP ? group : s.coded;
  s.codes = stored_make(from_k ? c->kv.k_dtype : c->kv.v_dtype, from_k ? &c->kv.k : &c->kv.v, cache, heads);
  s.tail = stored_inside(&s.codes, c->kv.tail.dtype, &c->kv.tail.layout, c->kv.tail.at);
  s.scales = c->scale.inside ? stored_inside(&s.codes, c->scale.dtype, scale_layout,
                                             from_k ? c->scale.k_at : c->scale.v_at)
                             : stored_make(c->scale.dtype, scale_layout, scale, heads);
  return s;
}

/* The scale of one element. The d axis of a scale layout counts groups. */
static unsigned char *scale_at(const side *s, int64_t page, int64_t head, int64_t slot, int64_t channel) {
  if (s->one_scale) return s->scales.data;
  return stored_at(&s->scales, page, head, slot, channel / s->group);
}

static hd_status invalid(diags *problems, const char *code, const char *field, const char *what,
                         int64_t found, int64_t limit) {
  diags_errorf(problems, code, field, "%s %lld is outside [0, %lld)", what, (long long)found,
               (long long)limit);
  return HD_INVALID;
}

/* What the rest of this file relies on; a contract from spec_parse has the second already. */
static hd_status check_contract(const contract *c, diags *problems) {
  if (c->kv.k_dtype == DTYPE_FP8_E4M3 || c->kv.v_dtype == DTYPE_FP8_E4M3) {
    diags_errorf(problems, "reference.dialect", "kv.dtype",
                 "fp8_e4m3 is a target's own dialect: resolve it to fp8_e4m3fn or fp8_e4m3fnuz first");
    return HD_INVALID;
  }
  if (c->scale.granularity != SCALE_GROUP) return HD_OK;
  const int k = c->scale.group_k, v = c->scale.group_v;
  const int k_coded = contract_coded_k(c), v_coded = contract_coded_v(c);
  if (k > 0 && k_coded % k == 0 && v > 0 && (c->kv.v_in_k || v_coded % v == 0)) return HD_OK;
  diags_errorf(problems, "reference.group", "scale.granularity",
               "groups of %d and %d do not divide the %d and %d channels of codes", k, v, k_coded, v_coded);
  return HD_INVALID;
}

/* Decode */

typedef struct place {
  int64_t page, slot;
} place;

/* What one decode needs, made once. */
typedef struct decoder {
  const contract *c;
  const reference_decode_args *args;
  side k, v;
  double scale;    /* of the logits */
  place *places;   /* [most] visible tokens of one row and kv head */
  double *logits;  /* [g, most] */
  double *queries; /* [g, qk] of one row and kv head */
  double *values;  /* [max(qk, v)] one token's K or V */
  double *scales;  /* [max(qk, v)] of those values */
  double *codes;   /* [max(qk, v)] and their codes' magnitudes; 0 where the scale is */
  int64_t most;    /* tokens of the longest item */
  diags *problems;
} decoder;

/* Element `index` of an array in select.index; -1 for what no page id can be. */
static int64_t index_at(const contract *c, const void *array, int64_t index) {
  const dtype d = c->select.index;
  const double value = dtype_decode(d, (const unsigned char *)array + index * dtype_bytes(d));
  return value >= 0.0 && value < 0x1p53 ? (int64_t)value : -1;
}

/* Whether each query row comes with tokens of its own, which no mask shortens. */
static bool row_has_own_tokens(const contract *c) {
  return contract_rows_are_sequences(c);
}

static int64_t item_of(const contract *c, const reference_decode_args *a, int64_t seq, int64_t row,
                       int64_t head) {
  if (c->select.form == SELECT_BLOCKS && c->select.per == PER_ROW)
    return a->row_sequences[seq * a->rows + row];
  switch (c->select.per) {
  case PER_KV_HEAD:
    return seq * a->kv_heads + head;
  case PER_ROW:
    return seq * a->rows + row;
  case PER_SEQUENCE:
    break;
  }
  return seq;
}

/* Tokens of the item, before the mask. */
static int64_t length_of(const contract *c, const reference_decode_args *a, int64_t seq, int64_t row,
                         int64_t item) {
  if (c->select.form != SELECT_INDPTR) return a->lengths[row_has_own_tokens(c) ? seq * a->rows + row : seq];
  const int64_t pages = (int64_t)a->kv_indptr[item + 1] - a->kv_indptr[item];
  return pages == 0 ? 0 : (pages - 1) * c->kv.page + a->last_page_len[item];
}

/* How many pages the item lists. */
static int64_t pages_of(const contract *c, const reference_decode_args *a, int64_t item) {
  if (c->select.form != SELECT_INDPTR) return a->table_pages;
  return (int64_t)a->kv_indptr[item + 1] - a->kv_indptr[item];
}

static int64_t page_at(const contract *c, const reference_decode_args *a, int64_t item, int64_t position) {
  const int64_t i = position / c->kv.page;
  if (c->select.form == SELECT_INDPTR) return index_at(c, a->kv_indices, a->kv_indptr[item] + i);
  return index_at(c, a->page_table, item * a->table_pages + i);
}

static bool block_listed(const contract *c, const reference_decode_args *a, int64_t seq, int64_t row,
                         int64_t head, int64_t position) {
  const int64_t first = head * a->listed_stride_h + (seq * a->rows + row) * a->listed_stride_row;
  for (int64_t i = 0; i < a->listed; i++) {
    if (a->block_list[first + i] == position / c->select.block) return true;
  }
  return false;
}

static hd_status check_page(const decoder *r, int64_t seq, int64_t position, int64_t page) {
  if (page >= 0 && page < r->args->pages) return HD_OK;
  diags_errorf(r->problems, "reference.page", "page_table",
               "sequence %lld, token %lld: page %lld is outside the cache of %lld pages", (long long)seq,
               (long long)position, (long long)page, (long long)r->args->pages);
  return HD_INVALID;
}

/* Fills `places` with the tokens that the row lists for this kv head. */
static hd_status find_listed(const decoder *r, int64_t seq, int64_t row, int64_t head, int64_t *out_count) {
  const contract *c = r->c;
  const reference_decode_args *a = r->args;
  const int64_t by_head = c->select.per == PER_KV_HEAD ? head * a->listed_stride_h : 0;
  const int64_t first = by_head + (seq * a->rows + row) * a->listed_stride_row;
  const dtype d = c->select.index;
  int64_t count = 0;
  for (int64_t i = 0; i < a->listed; i++) {
    const unsigned char *id = (const unsigned char *)a->token_list + (first + i) * dtype_bytes(d);
    if (dtype_decode(d, id) < 0.0) continue;
    const int64_t page = index_at(c, a->token_list, first + i);
    const hd_status status = check_page(r, seq, i, page);
    if (status != HD_OK) return status;
    r->places[count++] = (place){page, 0};
  }
  *out_count = count;
  return HD_OK;
}

/* Fills `places` with the tokens that the row sees in this kv head. */
static hd_status find_visible(const decoder *r, int64_t seq, int64_t row, int64_t head, int64_t *out_count) {
  const contract *c = r->c;
  const reference_decode_args *a = r->args;
  if (c->select.form == SELECT_TOKENS) return find_listed(r, seq, row, head, out_count);
  const int64_t item = item_of(c, a, seq, row, head);
  int64_t end = length_of(c, a, seq, row, item);
  if (c->mask.causal && !row_has_own_tokens(c)) end = end - a->rows + row + 1;
  const int64_t begin = c->mask.window > 0 && end > c->mask.window ? end - c->mask.window : 0;
  int64_t count = 0;
  for (int64_t position = begin; position < end; position++) {
    if (c->select.form == SELECT_BLOCKS && !block_listed(c, a, seq, row, head, position)) continue;
    const int64_t page = page_at(c, a, item, position);
    const hd_status status = check_page(r, seq, position, page);
    if (status != HD_OK) return status;
    r->places[count++] = (place){page, position % c->kv.page};
  }
  *out_count = count;
  return HD_OK;
}

/* One token's values in one head: code times scale, or what the tail has. `scales`: those of the values. */
static void read_token(const side *s, place at, int64_t head, double *out, double *scales) {
  double scale = 1.0;
  for (int channel = 0; channel < s->coded; channel++) {
    if (s->scaled && channel % s->group == 0)
      scale = dtype_decode(s->scales.dtype, scale_at(s, at.page, head, at.slot, channel));
    scales[channel] = scale;
    out[channel] =
        scale * dtype_decode(s->codes.dtype, stored_at(&s->codes, at.page, head, at.slot, channel));
  }
  for (int channel = s->coded; channel < s->dim; channel++) {
    scales[channel] = 1.0;
    out[channel] =
        dtype_decode(s->tail.dtype, stored_at(&s->tail, at.page, head, at.slot, channel - s->coded));
  }
}

static double logit_of(const decoder *r, const double *query, const double *key) {
  double dot = 0.0;
  for (int d = 0; d < r->k.dim; d++)
    dot += query[d] * key[d];
  const double scaled = dot * r->scale;
  const double cap = r->c->logits.softcap;
  return cap > 0.0 ? cap * tanh(scaled / cap) : scaled;
}

/* Turns `count` logits into probabilities, in place; returns the natural logarithm of their denominator. A
 * sink adds to the denominator alone. NaN and infinities go where IEEE arithmetic takes them. */
static double softmax(double *logits, int64_t count, double sink) {
  double top = sink;
  for (int64_t i = 0; i < count; i++) {
    if (logits[i] > top) top = logits[i]; /* a NaN reaches the sum below */
  }
  if (count == 0) return sink;
  double sum = isinf(sink) && sink < 0.0 ? 0.0 : exp(sink - top);
  for (int64_t i = 0; i < count; i++) {
    logits[i] = exp(logits[i] - top);
    sum += logits[i];
  }
  for (int64_t i = 0; i < count; i++)
    logits[i] /= sum;
  return top + log(sum);
}

/* Logits of `count` visible tokens with the g queries at `q`, in the query dtype. */
static void score(const decoder *r, const unsigned char *q, int64_t head, int64_t count) {
  const dtype d = r->c->query.dtype;
  const int64_t g = r->c->query.heads_per_kv;
  for (int64_t i = 0; i < g * r->k.dim; i++)
    r->queries[i] = dtype_decode(d, q + i * dtype_bytes(d));
  for (int64_t t = 0; t < count; t++) {
    read_token(&r->k, r->places[t], head, r->values, r->scales);
    for (int64_t i = 0; i < g; i++)
      r->logits[i * r->most + t] = logit_of(r, r->queries + i * r->k.dim, r->values);
  }
}

/* Adds to the terms of a row's channels what the token just read gives them with this probability. */
static void add_terms(const decoder *r, double probability, reference_terms *terms) {
  for (int d = 0; d < r->v.dim; d++) {
    const double value = probability * r->values[d], weight = probability * r->scales[d];
    terms[d].squares += value * value;
    terms[d].codes += r->codes[d];
    if (weight > terms[d].weight) terms[d].weight = weight;
  }
}

/* Values of `count` visible tokens, weighted by the probabilities that the logits have become; `out` is [g,
 * v]. */
static void average(const decoder *r, int64_t head, int64_t count, double *out, reference_terms *terms) {
  const int64_t g = r->c->query.heads_per_kv;
  for (int64_t i = 0; i < g * r->v.dim; i++)
    out[i] = 0.0;
  for (int64_t i = 0; terms != NULL && i < g * r->v.dim; i++)
    terms[i] = (reference_terms){0.0, 0.0, 0.0};
  for (int64_t t = 0; t < count; t++) {
    read_token(&r->v, r->places[t], head, r->values, r->scales);
    for (int d = 0; terms != NULL && d < r->v.dim; d++)
      r->codes[d] = r->scales[d] == 0.0 ? 0.0 : fabs(r->values[d]) / r->scales[d];
    for (int64_t i = 0; i < g; i++) {
      for (int d = 0; d < r->v.dim; d++)
        out[i * r->v.dim + d] += r->logits[i * r->most + t] * r->values[d];
      if (terms != NULL) add_terms(r, r->logits[i * r->most + t], terms + i * r->v.dim);
    }
  }
}

/* All query heads of one row and kv head. */
static hd_status decode_group(const decoder *r, int64_t seq, int64_t row, int64_t head) {
  const contract *c = r->c;
  const reference_decode_args *a = r->args;
  const int64_t g = c->query.heads_per_kv;
  const int64_t first = ((seq * a->rows + row) * a->kv_heads + head) * g; /* [row, query head] */
  int64_t count = 0;
  const hd_status status = find_visible(r, seq, row, head, &count);
  if (status != HD_OK) return status;
  score(r, (const unsigned char *)a->q + first * r->k.dim * dtype_bytes(c->query.dtype), head, count);
  for (int64_t i = 0; i < g; i++) {
    const bool has_sink = c->mask.sinks && a->sinks != NULL;
    const double sink = has_sink ? (double)a->sinks[head * g + i] : -(double)INFINITY;
    const double lse = softmax(r->logits + i * r->most, count, sink);
    if (a->lse != NULL) a->lse[first + i] = lse;
  }
  average(r, head, count, a->out + first * r->v.dim, a->terms ? a->terms + first * r->v.dim : NULL);
  return HD_OK;
}

/* Checks every length; the longest one in `out_most`. */
static hd_status check_lengths(const contract *c, const reference_decode_args *a, diags *problems,
                               int64_t *out_most) {
  int64_t most = 0;
  if (c->select.form == SELECT_TOKENS) {
    *out_most = a->listed;
    return HD_OK;
  }
  for (int64_t seq = 0; seq < a->seqs; seq++) {
    for (int64_t row = 0; row < a->rows; row++) {
      for (int64_t head = 0; head < a->kv_heads; head++) {
        const int64_t item = item_of(c, a, seq, row, head);
        const int64_t length = length_of(c, a, seq, row, item), limit = pages_of(c, a, item) * c->kv.page;
        const bool mapped = c->select.form == SELECT_BLOCKS && c->select.per == PER_ROW;
        if (mapped && length > 0 && (item < 0 || item >= a->table_rows))
          return invalid(problems, "reference.row", "row_sequences", "row of the page table", item,
                         a->table_rows);
        if (length < 0 || length > limit)
          return invalid(problems, "reference.length", "lengths", "length", length, limit + 1);
        if (length > most) most = length;
      }
    }
  }
  *out_most = most;
  return HD_OK;
}

static double logits_scale_of(const contract *c, const reference_decode_args *a) {
  switch (c->logits.scale) {
  case LOGITS_RSQRT_D:
    return 1.0 / sqrt((double)c->head_dim.qk);
  case LOGITS_NUMBER:
    return c->logits.number;
  case LOGITS_ARGUMENT:
    break;
  }
  return a->logits_scale;
}

static hd_status decode_all(const decoder *r) {
  const reference_decode_args *a = r->args;
  if (r->places == NULL || r->logits == NULL || r->queries == NULL || r->values == NULL ||
      r->scales == NULL || r->codes == NULL)
    return HD_OUT_OF_MEMORY;
  for (int64_t seq = 0; seq < a->seqs; seq++) {
    for (int64_t row = 0; row < a->rows; row++) {
      for (int64_t head = 0; head < a->kv_heads; head++) {
        const hd_status status = decode_group(r, seq, row, head);
        if (status != HD_OK) return status;
      }
    }
  }
  return HD_OK;
}

hd_status reference_decode(const contract *c, const reference_decode_args *args, diags *problems) {
  decoder r = {
      .c = c,
      .args = args,
      .k = side_make(c, true, args->kv_heads, args->k_cache, args->k_scale),
      .v = side_make(c, false, args->kv_heads, c->kv.v_in_k ? args->k_cache : args->v_cache,
                     c->kv.v_in_k ? args->k_scale : args->v_scale),
      .scale = logits_scale_of(c, args),
      .problems = problems,
  };
  hd_status status = check_contract(c, problems);
  if (status == HD_OK) status = check_lengths(c, args, problems, &r.most);
  if (status != HD_OK) return status;
  const size_t most = (size_t)r.most + 1;
  const size_t widest = (size_t)(r.k.dim > r.v.dim ? r.k.dim : r.v.dim);
  r.places = calloc(most, sizeof *r.places);
  r.logits = calloc(most * (size_t)c->query.heads_per_kv, sizeof *r.logits);
  r.queries = calloc((size_t)c->query.heads_per_kv * (size_t)r.k.dim, sizeof *r.queries);
  r.values = calloc(widest, sizeof *r.values);
  r.scales = calloc(widest, sizeof *r.scales);
  r.codes = calloc(widest, sizeof *r.codes);
  status = decode_all(&r);
  free(r.places);
  free(r.logits);
  free(r.queries);
  free(r.values);
  free(r.scales);
  free(r.codes);
  return status;
}

/* Write */

static float widen(dtype d, const void *bytes) {
  return (float)dtype_decode(d, bytes);
}

/* Largest |x| that is not NaN. */
static float largest_magnitude(const float *x, int64_t count) {
  float amax = 0.0f;
  for (int64_t i = 0; i < count; i++) {
    if (fabsf(x[i]) > amax) amax = fabsf(x[i]);
  }
  return amax;
}

static float scale_for(const contract *c, const side *s, float amax) {
  const float qmax = (float)(c->scale.writer.qmax > 0.0 ? c->scale.writer.qmax : dtype_max(s->codes.dtype));
  const float least = (float)c->scale.writer.amax_floor;
  if (amax == 0.0f && c->scale.writer.zero_row == ZERO_ROW_VALUE) return (float)c->scale.writer.zero_value;
  const float floor = (float)c->scale.writer.scale_floor, scale = (amax > least ? amax : least) / qmax;
  return scale > floor ? scale : floor;
}

/* The power of two at or above `value`, which is not NaN. */
static double power_above(double value) {
  if (value <= 0.0 || isinf(value)) return value;
  const double below = ldexp(1.0, ilogb(value));
  return below < value ? 2.0 * below : below;
}

static void store_scale(dtype d, float value, void *bytes) {
  double rounded = (double)value;
  if (d == DTYPE_E8M0) rounded = power_above(rounded);
  if (d == DTYPE_FP16 && rounded >= 65504.0) rounded = 65504.0;
  dtype_encode(d, rounded, bytes);
}

static void store_code(const side *s, float x, float scale, unsigned char *to) {
  const float q = scale == 0.0f && !isnan(x) ? 0.0f : x / scale;
  dtype_encode(s->codes.dtype, (double)q, to);
}

static void write_scale(const contract *c, const side *s, float amax, place at, int64_t head,
                        int64_t channel) {
  store_scale(s->scales.dtype, scale_for(c, s, amax), scale_at(s, at.page, head, at.slot, channel));
}

/* Scales that the writer works out, from `x`: [head, channel]. The tail takes no part. */
static void write_scales(const contract *c, const side *s, const float *x, place at) {
  if (!contract_writer_scales(c->scale.granularity)) return;
  const bool shared = !(contract_scale_axes(c->scale.granularity) & 1u << AXIS_H); /* by all heads */
  float all = 0.0f;
  for (int64_t head = 0; head < s->heads; head++) {
    for (int channel = 0; channel < s->coded; channel += s->group) {
      const float amax = largest_magnitude(x + head * s->dim + channel, s->group);
      if (amax > all) all = amax;
      if (!shared) write_scale(c, s, amax, at, head, channel);
    }
  }
  if (shared) write_scale(c, s, all, at, 0, 0);
}

/* Without a scale; a format that is the query's own gets the bytes as they are. */
static void store_plain(dtype from_type, const unsigned char *from, dtype to_type, unsigned char *to) {
  if (from_type == to_type)
    memcpy(to, from, (size_t)dtype_bytes(to_type));
  else
    dtype_encode(to_type, dtype_decode(from_type, from), to);
}

/* `from`: one token [head, channel] in the query dtype; `x`: the same in fp32. */
static void write_token(const contract *c, const side *s, const unsigned char *from, float *x, place at) {
  const dtype given = c->query.dtype;
  const int bytes = dtype_bytes(given);
  for (int64_t i = 0; i < s->heads * s->dim; i++)
    x[i] = widen(given, from + i * bytes);
  write_scales(c, s, x, at);
  for (int64_t i = 0; i < s->heads * s->dim; i++) {
    const int64_t head = i / s->dim, channel = i % s->dim;
    if (channel >= s->coded) {
      store_plain(given, from + i * bytes, s->tail.dtype,
                  stored_at(&s->tail, at.page, head, at.slot, channel - s->coded));
      continue;
    }
    unsigned char *to = stored_at(&s->codes, at.page, head, at.slot, channel);
    if (s->scaled)
      store_code(s, x[i], widen(s->scales.dtype, scale_at(s, at.page, head, at.slot, channel)), to);
    else
      store_plain(given, from + i * bytes, s->codes.dtype, to);
  }
}

hd_status reference_write(const contract *c, const reference_write_args *args, diags *problems) {
  const reference_write_args *a = args;
  const side k = side_make(c, true, a->kv_heads, (reference_cache){a->k_cache, a->k_stride_b, a->k_stride_h},
                           (reference_cache){a->k_scale, a->k_scale_stride_b, a->k_scale_stride_h});
  const side v = side_make(c, false, a->kv_heads, (reference_cache){a->v_cache, a->v_stride_b, a->v_stride_h},
                           (reference_cache){a->v_scale, a->v_scale_stride_b, a->v_scale_stride_h});
  const hd_status status = check_contract(c, problems);
  if (status != HD_OK) return status;
  for (int64_t t = 0; t < a->tokens; t++) {
    if (a->slot_mapping[t] >= a->pages * c->kv.page)
      return invalid(problems, "reference.slot", "slot_mapping", "slot", a->slot_mapping[t],
                     a->pages * c->kv.page);
  }
  const int widest = k.dim > v.dim ? k.dim : v.dim;
  float *x = calloc((size_t)(a->kv_heads * widest) + 1, sizeof *x);
  if (x == NULL) return HD_OUT_OF_MEMORY;
  const int bytes = dtype_bytes(c->query.dtype);
  for (int64_t t = 0; t < a->tokens; t++) {
    if (a->slot_mapping[t] < 0) continue;
    const place at = {a->slot_mapping[t] / c->kv.page, a->slot_mapping[t] % c->kv.page};
    write_token(c, &k, (const unsigned char *)a->k + t * a->kv_heads * k.dim * bytes, x, at);
    if (!c->kv.v_in_k)
      write_token(c, &v, (const unsigned char *)a->v + t * a->kv_heads * v.dim * bytes, x, at);
  }
  free(x);
  return HD_OK;
}
