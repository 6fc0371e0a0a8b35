#include "verify_compare.h"
#include "oracle.h"
#include "verify_limits.h"
#include "verify_lists.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void verify_problem(verify_outcome *o, const char *format, ...) {
  if (o->problem[0]) return;
  va_list args;
  va_start(args, format);
  vsnprintf(o->problem, sizeof o->problem, format, args);
  va_end(args);
  o->good = false;
}

static double value_at(const void *array, dtype type, int64_t index) {
  return dtype_decode(type, (const unsigned char *)array + (size_t)index * (size_t)dtype_bytes(type));
}

/* Page, head, slot and channel of the element at `offset`, by search: only for a message. */
static void describe_place(const verify_data *d, const layout *l, int64_t offset, char *out,
                           size_t out_size) {
  int64_t pages = d->sizes[DIM_PAGES], heads = d->sizes[DIM_KV_HEADS], stride_b, stride_h;
  int64_t slots = l->size[AXIS_S] ? l->size[AXIS_S] : 1, channels = l->size[AXIS_D] ? l->size[AXIS_D] : 1;
  snprintf(out, out_size, "element %" PRId64, offset);
  if (l->count == 0 || pages * heads * slots * channels > 50000000) return;
  layout_packed_strides(l, pages, heads, &stride_b, &stride_h);
  for (int64_t p = 0; p < pages; p++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t s = 0; s < slots; s++)
        for (int64_t c = 0; c < channels; c++)
          if (layout_offset(l, stride_b, stride_h, heads, p, h, s, c) == offset) {
            snprintf(out, out_size, "page %" PRId64 ", head %" PRId64 ", slot %" PRId64 ", channel %" PRId64,
                     p, h, s, c);
            return;
          }
}

/* Elements that differ in bits and are not both NaN. */
static int64_t compare_array(const verify_data *d, tensor_name name, const layout *l, const void *expected,
                             verify_outcome *o) {
  const tensor *t = &d->write.by_name[name];
  const unsigned char *got = d->memory[name], *wanted = expected;
  size_t bytes = (size_t)dtype_bytes(t->dtype);
  int64_t count = tensor_elements(t), differ = 0;
  bool codes_alone = !d->contract->scale.inside && !d->contract->kv.tail.channels;
  if (!d->write.present[name]) return 0;
  if (memcmp(got, wanted, tensor_bytes(t)) == 0) return 0;
  for (int64_t i = 0; i < count; i++) {
    size_t at = (size_t)i * bytes;
    if (memcmp(got + at, wanted + at, bytes) == 0) continue;
    double a = value_at(got, t->dtype, i), b = value_at(wanted, t->dtype, i);
    if (codes_alone && isnan(a) && isnan(b)) continue;
    if (differ++ == 0) {
      char place[120];
      describe_place(d, l, i, place, sizeof place);
      verify_problem(o, "write: %s at %s is %g, expected %g", tensor_name_text(name), place, a, b);
    }
  }
  return differ;
}

void verify_compare_write(const verify_data *d, void *const expected[TENSOR_COUNT], verify_outcome *o) {
  const contract *c = d->contract;
  o->codes_differ = compare_array(d, TENSOR_K_CACHE, &c->kv.k, expected[TENSOR_K_CACHE], o) +
                    compare_array(d, TENSOR_V_CACHE, &c->kv.v, expected[TENSOR_V_CACHE], o);
  if (expected[TENSOR_K_SCALE])
    o->scales_differ = compare_array(d, TENSOR_K_SCALE, &c->scale.k, expected[TENSOR_K_SCALE], o) +
                       compare_array(d, TENSOR_V_SCALE, &c->scale.v, expected[TENSOR_V_SCALE], o);
}

/* Sums over everything compared so far. */
typedef struct sums {
  double error, norm, rounding, computed; /* against the oracle on the stored bytes */
  /* Against unquantised attention: of the device's results, and of the oracle's on the stored bytes. */
  double dot, own_norm, free_norm;
  double stored_dot, stored_norm;
} sums;

/* One row of out: `width` channels against float64. */
static void compare_row(const verify_data *d, int64_t row, const double *expected,
                        const reference_terms *terms, int64_t width, sums *all, verify_outcome *o) {
  dtype type = d->contract->output.dtype;
  double error = 0, norm = 0, rounding = 0;
  for (int64_t i = 0; i < width; i++) {
    double got = value_at(d->memory[TENSOR_OUT], type, row * width + i), wanted = expected[i];
    /* What the output format can't hold is not an error of the kernel. */
    if (isfinite(wanted) && fabs(wanted) > dtype_max(type)) {
      unsigned char rounded[8];
      dtype_encode(type, wanted, rounded);
      wanted = dtype_decode(type, rounded);
    }
    if (!isfinite(got) || !isfinite(wanted)) {
      bool same = isnan(wanted) ? isnan(got) : got == wanted;
      if (!same)
        verify_problem(o, "decode: row %" PRId64 " channel %" PRId64 " is %g, expected %g", row, i, got,
                       wanted);
      continue;
    }
    unsigned char rounded[8];
    dtype_encode(type, wanted, rounded);
    double unavoidable = dtype_decode(type, rounded) - wanted;
    rounding += unavoidable * unavoidable;
    error += (got - wanted) * (got - wanted);
    norm += wanted * wanted;
  }
  all->error += error;
  all->norm += norm;
  all->rounding += rounding;
  double computed = verify_limit_computed(d->contract, terms, expected, width);
  all->computed += computed;
  if (norm == 0 && error > 0) {
    verify_problem(o, "decode: row %" PRId64 " should be zero", row);
    return;
  }
  if (norm == 0) return;
  double relative = sqrt(error / norm);
  double allowed = verify_limit_relative(norm, rounding, computed, VERIFY_ROW_RMS, VERIFY_ROW_COMPUTED);
  /* The worst row is the one that comes nearest to its limit, or is furthest beyond. */
  if (o->row_allowed == 0 || relative / allowed > o->row_rms / o->row_allowed) {
    o->row_rms = relative;
    o->row_allowed = allowed;
    o->row = row;
  }
}

static void compare_lse(const verify_data *d, int64_t row, double expected, verify_outcome *o) {
  double got = value_at(d->memory[TENSOR_LSE], DTYPE_FP32, row);
  if (!isfinite(expected) || !isfinite(got)) {
    bool same = isnan(expected) ? isnan(got) : got == expected;
    if (!same) verify_problem(o, "decode: lse of row %" PRId64 " is %g, expected %g", row, got, expected);
    return;
  }
  double error = fabs(got - expected) / fmax(1.0, fabs(expected));
  if (!(o->lse_error >= error)) o->lse_error = error;
}

/* The decode's host tensors with sequence `seq` alone; dims too. Ragged lists keep their offsets into
 * kv_indices. */
static void one_sequence(const verify_data *d, int64_t seq, const int64_t dims[DIM_COUNT], tensors *out,
                         int64_t out_dims[DIM_COUNT]) {
  const tensor_name per_sequence[] = {TENSOR_Q, TENSOR_LENGTHS, TENSOR_LAST_PAGE_LEN, TENSOR_ROW_SEQUENCES,
                                      TENSOR_PAGE_TABLE};
  *out = d->decode;
  memcpy(out_dims, dims, DIM_COUNT * sizeof dims[0]);
  for (size_t i = 0; i < sizeof per_sequence / sizeof per_sequence[0]; i++) {
    tensor *t = &out->by_name[per_sequence[i]];
    bool shared = per_sequence[i] == TENSOR_PAGE_TABLE && out->present[TENSOR_ROW_SEQUENCES];
    if (out->present[per_sequence[i]] && !shared)
      t->data += (uint64_t)seq * (tensor_bytes(t) / (size_t)dims[DIM_SEQS]);
  }
  int64_t lists = d->contract->select.per == PER_KV_HEAD ? dims[DIM_KV_HEADS] : 1;
  out->by_name[TENSOR_KV_INDPTR].data += (uint64_t)(seq * lists) * sizeof(int32_t);
  uint64_t listed_before = (uint64_t)(seq * dims[DIM_ROWS] * dims[DIM_LISTED_STRIDE_ROW]);
  out->by_name[TENSOR_BLOCK_LIST].data += listed_before * sizeof(int32_t);
  out->by_name[TENSOR_TOKEN_LIST].data += listed_before * (uint64_t)dtype_bytes(d->contract->select.index);
  out_dims[DIM_SEQS] = 1;
}

/* A contract over the same queries whose cache keeps k and v as the writer got them. */
static bool plain_contract(const contract *c, contract *out) {
  static const char *const items[] = {"b", "s", "h", "d"};
  const unsigned axes = 1u << AXIS_B | 1u << AXIS_H | 1u << AXIS_S | 1u << AXIS_D;
  layout_error ignored;
  *out = *c;
  out->kv.k_dtype = out->kv.v_dtype = c->query.dtype;
  out->scale.granularity = SCALE_NONE;
  out->scale.argument = false;
  out->scale.k.count = out->scale.v.count = 0;
  if (c->select.form != SELECT_BLOCKS) out->select.form = SELECT_TABLE;
  out->scale.inside = false;
  out->kv.tail.channels = 0;
  out->kv.v_in_k = false;
  out->select.index = DTYPE_INT32;
  out->select.per = PER_SEQUENCE;
  return layout_parse(items, 4, axes, c->kv.page, c->head_dim.qk, &out->kv.k, &ignored) &&
         layout_parse(items, 4, axes, c->kv.page, c->head_dim.v, &out->kv.v, &ignored);
}

/* Copies the rows of k or v that sequence `seq` sees in token order: where V lies in K, the first channels of
 * k. With layout [b, s, h, d] that is the cache. */
static void gather_rows(const verify_data *d, tensor_name name, int64_t seq, void *to) {
  const contract *c = d->contract;
  bool from_k = name == TENSOR_K || c->kv.v_in_k;
  size_t element = (size_t)dtype_bytes(c->query.dtype);
  size_t taken = (size_t)(name == TENSOR_K ? c->head_dim.qk : c->head_dim.v) * element;
  size_t width = (size_t)(from_k ? c->head_dim.qk : c->head_dim.v) * element;
  size_t heads = (size_t)d->sizes[DIM_KV_HEADS];
  const char *rows = d->memory[from_k ? TENSOR_K : TENSOR_V];
  const int64_t *own = d->row + d->first_token[verify_lists_sequence(d, seq)];
  for (int64_t t = 0; t < d->first_token[seq + 1] - d->first_token[seq]; t++)
    for (size_t h = 0; h < heads; h++, to = (char *)to + taken)
      memcpy(to, rows + ((size_t)own[t] * heads + h) * width, taken);
}

/* Unquantised attention of one sequence: `out` as the oracle's. */
static hd_status decode_unquantised(const verify_data *d, int64_t seq, const int64_t dims[DIM_COUNT],
                                    double scale, double *out, diags *errors) {
  contract plain;
  tensors host;
  int64_t own[DIM_COUNT];
  int64_t length = d->first_token[seq + 1] - d->first_token[seq];
  if (!plain_contract(d->contract, &plain)) return HD_INTERNAL;
  one_sequence(d, seq, dims, &host, own);
  own[DIM_PAGES] = own[DIM_TABLE_PAGES] = (length + d->page - 1) / d->page;
  int64_t rows = own[DIM_PAGES] * d->page * own[DIM_KV_HEADS];
  size_t element = (size_t)dtype_bytes(plain.query.dtype);
  int32_t own_length = (int32_t)length;
  void *k = calloc((size_t)(rows * plain.head_dim.qk) + 1, element),
       *v = calloc((size_t)(rows * plain.head_dim.v) + 1, element);
  int32_t *table = calloc((size_t)own[DIM_PAGES] + 1, sizeof *table);
  hd_status status = k && v && table ? HD_OK : HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    gather_rows(d, TENSOR_K, seq, k);
    gather_rows(d, TENSOR_V, seq, v);
    for (int64_t i = 0; i < own[DIM_PAGES]; i++)
      table[i] = (int32_t)i;
    host.present[TENSOR_PAGE_TABLE] = host.present[TENSOR_LENGTHS] = host.present[TENSOR_V_CACHE] = true;
    host.by_name[TENSOR_LENGTHS].data = (uint64_t)(uintptr_t)&own_length;
    host.by_name[TENSOR_K_CACHE].data = (uint64_t)(uintptr_t)k;
    host.by_name[TENSOR_V_CACHE].data = (uint64_t)(uintptr_t)v;
    host.by_name[TENSOR_PAGE_TABLE].data = (uint64_t)(uintptr_t)table;
    layout_packed_strides(&plain.kv.k, own[DIM_PAGES], own[DIM_KV_HEADS], &own[DIM_K_STRIDE_B],
                          &own[DIM_K_STRIDE_H]);
    layout_packed_strides(&plain.kv.v, own[DIM_PAGES], own[DIM_KV_HEADS], &own[DIM_V_STRIDE_B],
                          &own[DIM_V_STRIDE_H]);
    status = oracle_decode(&plain, &host, own, scale, out, NULL, errors);
  }
  free(k);
  free(v);
  free(table);
  return status;
}

/* Whether a comparison with unquantised attention says anything about the kernels, and not only about the
 * format. Integers without scales hold whole numbers: of values around 1 it keeps next to nothing. Logits beyond
 * q·k / √d carry K's rounding into the softmax enlarged. */
static bool cosine_applies(const verify_data *d, double scale) {
  const contract *c = d->contract;
  bool whole_numbers = dtype_is_integer(c->kv.k_dtype) || dtype_is_integer(c->kv.v_dtype);
  if (whole_numbers && c->scale.granularity == SCALE_NONE) return false;
  if (scale * sqrt((double)c->head_dim.qk) > 1.001) return false;
  const unsigned mild = TRAIT_CLEAN | TRAIT_ZERO_QUERY | TRAIT_ZERO_TOKENS | TRAIT_SKIPPED | TRAIT_FAR;
  /* Token lists name places in the cache, and the unquantised one has others. */
  return (d->from->traits & ~mild) == 0 && d->contract->select.form != SELECT_TOKENS;
}

/* Which sequences to check: the oracle takes about 5 µs a token and query head, so large batches are sampled.
 */
static void choose_sequences(const verify_data *d, const int64_t dims[DIM_COUNT], random_state *r,
                             bool chosen[CASE_MAX_SEQS]) {
  const int64_t budget = 1 << 21; /* tokens times query heads */
  int64_t q_heads = dims[DIM_KV_HEADS] * d->contract->query.heads_per_kv, spent = 0;
  int64_t seqs = dims[DIM_SEQS];
  bool all = d->live_tokens * q_heads <= budget;
  for (int64_t s = 0; s < seqs; s++) {
    int64_t length = d->first_token[s + 1] - d->first_token[s];
    chosen[s] = all || (length == d->longest && spent == 0) || length <= 1;
    if (chosen[s]) spent += length * q_heads;
  }
  for (int64_t attempt = 0; !all && attempt < seqs; attempt++) {
    int64_t s = random_below(r, seqs);
    int64_t cost = (d->first_token[s + 1] - d->first_token[s]) * q_heads;
    if (chosen[s] || spent + cost > budget) continue;
    chosen[s] = true;
    spent += cost;
  }
}

static hd_status compare_sequence(const verify_data *d, int64_t seq, const int64_t dims[DIM_COUNT],
                                  double scale, sums *all, verify_outcome *o, diags *errors) {
  int64_t width = d->contract->head_dim.v,
          rows = dims[DIM_ROWS] * dims[DIM_KV_HEADS] * d->contract->query.heads_per_kv;
  bool with_lse = d->decode.present[TENSOR_LSE];
  double *expected = calloc((size_t)(rows * (2 * width + 1)), sizeof *expected);
  reference_terms *terms = calloc((size_t)(rows * width), sizeof *terms);
  if (!expected || !terms) {
    free(expected);
    free(terms);
    return HD_OUT_OF_MEMORY;
  }
  double *lse = expected + rows * width, *unquantised = lse + rows;
  tensors host;
  int64_t own[DIM_COUNT];
  one_sequence(d, seq, dims, &host, own);
  hd_status status =
      oracle_decode_terms(d->contract, &host, own, scale, expected, with_lse ? lse : NULL, terms, errors);
  for (int64_t i = 0; status == HD_OK && i < rows; i++) {
    compare_row(d, seq * rows + i, expected + i * width, terms + i * width, width, all, o);
    if (with_lse) compare_lse(d, seq * rows + i, lse[i], o);
  }
  if (status == HD_OK && cosine_applies(d, scale) && d->first_token[seq + 1] > d->first_token[seq]) {
    status = decode_unquantised(d, seq, dims, scale, unquantised, errors);
    for (int64_t i = 0; status == HD_OK && i < rows * width; i++) {
      double got = value_at(d->memory[TENSOR_OUT], d->contract->output.dtype, seq * rows * width + i);
      all->dot += got * unquantised[i];
      all->own_norm += got * got;
      all->free_norm += unquantised[i] * unquantised[i];
      all->stored_dot += expected[i] * unquantised[i];
      all->stored_norm += expected[i] * expected[i];
    }
  }
  free(expected);
  free(terms);
  return status;
}

/* The cosines to unquantised attention. What the format loses is not the kernel's; but if that is ten times
 * the usual, what is stored is not k and v. */
static void judge_cosine(const verify_data *d, const sums *all, verify_outcome *o) {
  double usual = verify_limit_cosine(d->contract), least = 1 - 10 * (1 - usual);
  if (all->free_norm == 0) return;
  if (all->own_norm > 0) o->cosine = all->dot / sqrt(all->own_norm * all->free_norm);
  if (all->stored_norm > 0) o->cosine_stored = all->stored_dot / sqrt(all->stored_norm * all->free_norm);
  o->cosine_least = fmin(usual, verify_limit_cosine_near(o->cosine_stored, o->rms_allowed));
  if (!(o->cosine_stored >= least))
    verify_problem(
        o,
        "cosine of exact attention on the stored bytes to unquantised attention %.6f, expected at least %.5f",
        o->cosine_stored, least);
  else if (!(o->cosine >= o->cosine_least))
    verify_problem(o, "cosine to unquantised attention %.6f, expected at least %.5f", o->cosine,
                   o->cosine_least);
}

hd_status verify_compare_decode(const verify_data *d, const int64_t dims[DIM_COUNT], double scale,
                                random_state *r, verify_outcome *o, diags *errors) {
  bool chosen[CASE_MAX_SEQS] = {false};
  sums all = {0};
  hd_status status = HD_OK;
  choose_sequences(d, dims, r, chosen);
  for (int64_t s = 0; status == HD_OK && s < dims[DIM_SEQS]; s++)
    if (chosen[s]) status = compare_sequence(d, s, dims, scale, &all, o, errors);
  if (status != HD_OK) return status;
  o->rms = all.norm > 0 ? sqrt(all.error / all.norm) : 0;
  o->rms_allowed =
      all.norm > 0 ? verify_limit_relative(all.norm, all.rounding, all.computed, VERIFY_RMS, VERIFY_COMPUTED)
                   : VERIFY_RMS;
  if (o->row_rms > o->row_allowed)
    verify_problem(o, "decode: relative RMS error of row %" PRId64 " is %.2e, allowed %.1e", o->row,
                   o->row_rms, o->row_allowed);
  if (o->rms > o->rms_allowed)
    verify_problem(o, "decode: relative RMS error %.2e, allowed %.1e", o->rms, o->rms_allowed);
  if (o->lse_error > VERIFY_LSE)
    verify_problem(o, "decode: lse error %.2e, allowed %.1e", o->lse_error, VERIFY_LSE);
  if (cosine_applies(d, scale)) judge_cosine(d, &all, o);
  return HD_OK;
}
