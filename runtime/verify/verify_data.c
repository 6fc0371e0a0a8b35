#include "verify_data.h"
#include "../../generator/page_parts.h"
#include "verify_lists.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_bits(random_state *r) {
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t random_below(random_state *r, int64_t limit) {
  return limit > 0 ? (int64_t)(random_bits(r) % (uint64_t)limit) : 0;
}

double random_unit(random_state *r) {
  return (double)(random_bits(r) >> 11) * 0x1p-53;
}

/* The sum of twelve uniform numbers: within 6 of 0, and exact arithmetic on every machine. */
double random_normal(random_state *r) {
  int64_t sum = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t bits = random_bits(r);
    for (int j = 0; j < 4; j++)
      sum += (int64_t)(bits >> (16 * j) & 0xffff);
  }
  return (double)sum / 65536.0 - 6.0 * 65535.0 / 65536.0;
}

static void random_fill(random_state *r, void *to, size_t bytes) {
  unsigned char *at = to;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t bits = random_bits(r);
    memcpy(at, &bits, 8);
  }
  for (; bytes > 0; bytes--)
    *at++ = (unsigned char)random_bits(r);
}

static void put(void *array, dtype type, int64_t index, double value) {
  dtype_encode(type, value, (unsigned char *)array + (size_t)index * (size_t)dtype_bytes(type));
}

static double sign(random_state *r) {
  return random_bits(r) & 1 ? 1.0 : -1.0;
}

/* Scales that must not be looked at: of unwritten slots. */
static double garbage_scale(random_state *r) {
  const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e30, -1.0, 0.0, 1e-38};
  return values[random_below(r, 7)];
}

static double garbage_page(random_state *r) {
  const double values[] = {-1, INT32_MIN, INT32_MAX, 1 << 30, -77777};
  return values[random_below(r, 5)];
}

static hd_status out_of_memory(diags *errors) {
  diags_errorf(errors, "memory", NULL, "out of memory for the inputs of a verification case");
  return HD_OUT_OF_MEMORY;
}

/* Allocates `name` for these dims and lists it for the operations that take it. */
static bool add_tensor(verify_data *d, tensor_name name) {
  tensor t;
  if (!bind_tensor(d->contract, name, d->sizes, &t)) return true;
  void *memory = calloc(tensor_bytes(&t) + 16, 1);
  if (!memory) return false;
  t.data = (uint64_t)(uintptr_t)memory;
  d->memory[name] = memory;
  if (bind_role(d->contract, OPERATION_WRITE, name) != ROLE_NONE) {
    d->write.by_name[name] = t;
    d->write.present[name] = true;
  }
  if (bind_role(d->contract, OPERATION_DECODE, name) != ROLE_NONE) {
    d->decode.by_name[name] = t;
    d->decode.present[name] = true;
  }
  return true;
}

static const tensor *tensor_of(const verify_data *d, tensor_name name) {
  return d->write.present[name] ? &d->write.by_name[name] : &d->decode.by_name[name];
}

/* Pages that nothing uses: those in use come behind them. Far: 2^31 elements of K. */
static int64_t spare_pages(const verify_data *d) {
  if (!(d->from->traits & TRAIT_FAR)) return d->from->spare_pages;
  return ((int64_t)1 << 31) / (layout_inner_elements(&d->contract->kv.k) * d->sizes[DIM_KV_HEADS]) + 1;
}

/* Lengths, and the sizes that follow from them. */
static bool set_sizes(verify_data *d, int32_t lengths[CASE_MAX_SEQS]) {
  const verify_case *from = d->from;
  int repeat = from->repeat > 0 ? from->repeat : 1;
  int64_t seqs = 0, pages = 0, most_pages = 0;
  for (int i = 0; i < repeat; i++)
    for (int j = 0; j < from->length_count && seqs < CASE_MAX_SEQS; j++) {
      const case_length *l = &from->lengths[j];
      int64_t length = l->pages * d->page + l->tiles * d->tile + l->tokens +
                       (int64_t)l->blocks * d->contract->select.block;
      if (length < 0) length = 0;
      int64_t own_pages = (length + d->page - 1) / d->page;
      lengths[seqs++] = (int32_t)length;
      pages += own_pages;
      if (own_pages > most_pages) most_pages = own_pages;
      if (length > d->longest) d->longest = length;
      d->live_tokens += length;
    }
  d->sizes[DIM_SEQS] = seqs;
  d->sizes[DIM_ROWS] = contract_most_rows(d->contract);
  d->sizes[DIM_TABLE_ROWS] = seqs;
  /* A cache without h has one kv head. */
  d->sizes[DIM_KV_HEADS] = layout_has_axis(&d->contract->kv.k, AXIS_H) ? from->kv_heads : 1;
  int64_t lists = d->contract->select.per == PER_KV_HEAD ? d->sizes[DIM_KV_HEADS] : 1;
  d->sizes[DIM_TABLE_PAGES] = d->contract->select.form == SELECT_INDPTR ? pages * lists : most_pages + 2;
  d->sizes[DIM_PAGES] = pages + 3 + spare_pages(d);
  d->sizes[DIM_TOKENS] = d->live_tokens + (from->traits & TRAIT_SKIPPED ? 1 + d->live_tokens / 3 : 0);
  d->first_token = calloc((size_t)seqs + 1, sizeof *d->first_token);
  d->slot = calloc((size_t)d->live_tokens + 1, sizeof *d->slot);
  d->row = calloc((size_t)d->live_tokens + 1, sizeof *d->row);
  return d->first_token && d->slot && d->row;
}

/* Writes sequence `seq`'s pages, `count` of them, into the page table or the ragged list. Heads that have
 * lists of their own get the same pages. */
static void list_pages(verify_data *d, int64_t seq, const int64_t *own, int64_t count, int64_t *next_entry,
                       random_state *r) {
  const contract *c = d->contract;
  int64_t width = d->sizes[DIM_TABLE_PAGES],
          copies = c->select.per == PER_KV_HEAD ? d->sizes[DIM_KV_HEADS] : 1;
  int64_t length = d->first_token[seq + 1] - d->first_token[seq];
  if (c->select.form == SELECT_TOKENS) return;
  for (int64_t copy = 0; copy < copies; copy++) {
    int64_t item = seq * copies + copy;
    if (c->select.form == SELECT_INDPTR) {
      int32_t *first = d->memory[TENSOR_KV_INDPTR], *last = d->memory[TENSOR_LAST_PAGE_LEN];
      first[item] = (int32_t)*next_entry;
      last[item] = count > 0 ? (int32_t)(length - (count - 1) * d->page) : 0;
      for (int64_t p = 0; p < count; p++)
        put(d->memory[TENSOR_KV_INDICES], c->select.index, (*next_entry)++, (double)own[p]);
      first[item + 1] = (int32_t)*next_entry;
    } else {
      for (int64_t p = 0; p < width; p++) {
        double page = p < count ? (double)own[p] : d->from->traits & TRAIT_CLEAN ? 0.0 : garbage_page(r);
        put(d->memory[TENSOR_PAGE_TABLE], c->select.index, item * width + p, page);
      }
    }
  }
}

/* All pages behind the spare ones in random order. The caller frees; NULL without memory. */
static int64_t *shuffled_pages(const verify_data *d, random_state *r) {
  int64_t pages = d->sizes[DIM_PAGES], pool = pages - spare_pages(d);
  int64_t *order = calloc((size_t)pool + 1, sizeof *order);
  if (!order) return NULL;
  for (int64_t i = 0; i < pool; i++)
    order[i] = pages - pool + i;
  for (int64_t i = pool - 1; i > 0; i--) {
    int64_t j = random_below(r, i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return order;
}

/* Deals pages to sequences at random and lists them. */
static bool deal_pages(verify_data *d, const int32_t *lengths, random_state *r) {
  int64_t dealt = 0, next_token = 0, next_entry = 0;
  int64_t *order = shuffled_pages(d, r);
  if (!order) return false;
  for (int64_t s = 0; s < d->sizes[DIM_SEQS]; s++) {
    int64_t own = (lengths[s] + d->page - 1) / d->page;
    d->first_token[s] = next_token;
    d->first_token[s + 1] = next_token + lengths[s];
    list_pages(d, s, order + dealt, own, &next_entry, r);
    for (int64_t t = 0; t < lengths[s]; t++)
      d->slot[next_token++] = order[dealt + t / d->page] * d->page + t % d->page;
    dealt += own;
  }
  free(order);
  return true;
}

/* Stores the scale of one place, in its own array or in its cache's pages. */
static void put_scale(verify_data *d, bool is_k, int64_t page, int64_t head, int64_t slot, int64_t group,
                      double value) {
  const contract *c = d->contract;
  const layout *l = is_k ? &c->scale.k : &c->scale.v;
  int64_t heads = d->sizes[DIM_KV_HEADS], stride_b, stride_h;
  page_part parts[PAGE_MAX_PARTS];
  unsigned char *array = d->memory[is_k ? TENSOR_K_SCALE : TENSOR_V_SCALE];
  if (c->scale.inside) {
    page_parts(c, is_k, parts); /* the scales come second */
    layout_packed_strides(parts[0].layout, d->sizes[DIM_PAGES], heads, &stride_b, &stride_h);
    page_part_stride(&parts[0], &parts[1], stride_b, &stride_b);
    page_part_stride(&parts[0], &parts[1], stride_h, &stride_h);
    array = (unsigned char *)d->memory[is_k ? TENSOR_K_CACHE : TENSOR_V_CACHE] + parts[1].at;
  } else {
    layout_packed_strides(l, d->sizes[DIM_PAGES], heads, &stride_b, &stride_h);
  }
  put(array, c->scale.dtype, layout_offset(l, stride_b, stride_h, heads, page, head, slot, group), value);
}

/* Garbage fills the pages; scales in them that the writer is given are set to something sensible. */
static void fill_scales_inside(verify_data *d, bool is_k, double sensible) {
  const layout *l = is_k ? &d->contract->scale.k : &d->contract->scale.v;
  int64_t slots = l->size[AXIS_S] ? l->size[AXIS_S] : 1, groups = l->size[AXIS_D] ? l->size[AXIS_D] : 1;
  for (int64_t page = 0; page < d->sizes[DIM_PAGES]; page++)
    for (int64_t head = 0; head < d->sizes[DIM_KV_HEADS]; head++)
      for (int64_t i = 0; i < slots * groups; i++)
        put_scale(d, is_k, page, head, i / groups, i % groups, sensible);
}

static void set_scale_number(verify_data *d, bool is_k, float value) {
  tensors *const all[] = {&d->write, &d->decode};
  for (int i = 0; i < 2; i++)
    *(is_k ? &all[i]->k_scale : &all[i]->v_scale) = (scale_number){true, value};
}

/* Unwritten slots hold anything. Scales that the writer is given are set to something sensible instead. */
static void fill_caches(verify_data *d, random_state *r) {
  const contract *c = d->contract;
  const tensor_name caches[] = {TENSOR_K_CACHE, TENSOR_V_CACHE}, scales[] = {TENSOR_K_SCALE, TENSOR_V_SCALE};
  for (int i = 0; i < 2; i++) {
    if (!d->memory[caches[i]]) continue;
    const tensor *cache = tensor_of(d, caches[i]), *scale = tensor_of(d, scales[i]);
    bool clean = d->from->traits & TRAIT_CLEAN, given = !contract_writer_scales(c->scale.granularity);
    if (!clean) random_fill(r, d->memory[caches[i]], tensor_bytes(cache));
    /* Normal numbers stay below 5; an odd factor, so that a kernel that forgets it is found out. */
    double sensible = (i == 0 ? 5.1 : 4.7) / dtype_max(cache->dtype);
    if (given && c->scale.inside) fill_scales_inside(d, i == 0, sensible);
    if (bind_takes_number(c, i == 0)) set_scale_number(d, i == 0, (float)sensible);
    if (!d->memory[scales[i]]) continue;
    for (int64_t e = 0; e < tensor_elements(scale); e++)
      put(d->memory[scales[i]], scale->dtype, e, given ? sensible : clean ? 0.0 : garbage_scale(r));
  }
}

static bool scales_per_token(const contract *c) {
  const unsigned axes = contract_scale_axes(c->scale.granularity);
  return axes & 1u << AXIS_S && !(axes & 1u << AXIS_D);
}

/* Power of ten of the largest V scale: fp16 ends at 65504, and a value is up to 448 scales large. */
static double top_scale(const contract *c) {
  return c->output.dtype == DTYPE_FP16 || c->query.dtype == DTYPE_FP16 ? 1.0 : 3.0;
}

/* What rows of v are multiplied by where no scale a token can be wide. A byte under one scale spans four
 * powers of ten, and where one token has nearly all the weight, its value should not be lost among the
 * others'. */
static double wide_value(const verify_data *d, random_state *r) {
  bool narrow = dtype_bytes(d->contract->kv.v_dtype) == 1 || (d->from->traits & TRAIT_PEAKED);
  double least = narrow ? -2.0 : -6.0, most = narrow ? 0.0 : top_scale(d->contract);
  return pow(10.0, least + (most - least) * random_unit(r));
}

/* A size of row whose largest element is near the writer's floors, below or above; 1 where it has none, or a
 * format of scales that they may be too small for. */
static double size_near_floor(const verify_data *d, bool is_v, random_state *r) {
  const contract *c = d->contract;
  double qmax =
      c->scale.writer.qmax > 0 ? c->scale.writer.qmax : dtype_max(is_v ? c->kv.v_dtype : c->kv.k_dtype);
  double least = fmax(c->scale.writer.amax_floor, c->scale.writer.scale_floor * qmax);
  if (!contract_writer_scales(c->scale.granularity) || least == 0 || c->scale.dtype != DTYPE_FP32) return 1;
  return least / 3 * pow(2.0, -2.0 + 3.0 * random_unit(r));
}

/* One row of k or v, `count` channels. `outlier`: the size that heads share where a token has one scale;
 * drawn for the first of them. Else a head's values could all be lost beside another's, and its result be a
 * sum of the smallest probabilities. */
static void fill_row(const verify_data *d, bool is_v, int64_t row_index, int64_t count, double *outlier,
                     random_state *r) {
  unsigned traits = d->from->traits;
  void *array = d->memory[is_v ? TENSOR_V : TENSOR_K];
  if (!array) return; /* V lies in K */
  dtype type = d->contract->query.dtype;
  double factor = 1.0;
  bool first_head = row_index % d->sizes[DIM_KV_HEADS] == 0;
  if ((traits & TRAIT_OUTLIERS) && (first_head || d->contract->scale.granularity != SCALE_TOKEN))
    *outlier = is_v ? pow(10.0, -4.0 + 6.0 * random_unit(r)) : pow(10.0, -4.0 + 5.0 * random_unit(r));
  if (traits & TRAIT_OUTLIERS) factor = *outlier;
  if (traits & TRAIT_ZERO_TOKENS) {
    int64_t kind = random_below(r, 4);
    factor *= kind == 0 ? 0.0 : kind == 1 ? size_near_floor(d, is_v, r) : 1.0;
  }
  /* Without scales a token, the values themselves are what the V scales would have made of them. */
  if (is_v && !scales_per_token(d->contract)) {
    if (traits & TRAIT_WIDE_SCALES) factor = wide_value(d, r);
    if ((traits & TRAIT_ZERO_SCALES) && random_below(r, 3) == 0) factor = 0.0;
  }
  for (int64_t i = 0; i < count; i++)
    put(array, type, row_index * count + i, factor * random_normal(r));
  if ((traits & TRAIT_OUTLIERS) && random_below(r, 4) == 0)
    put(array, type, row_index * count + random_below(r, count), sign(r) * 60.0 * factor);
}

/* k, v and slot_mapping: live tokens in random order, between them tokens that are to be skipped. */
static bool fill_tokens(verify_data *d, random_state *r) {
  int64_t tokens = d->sizes[DIM_TOKENS], heads = d->sizes[DIM_KV_HEADS];
  int64_t *slots = d->memory[TENSOR_SLOT_MAPPING];
  int64_t *order = calloc((size_t)tokens + 1, sizeof *order);
  if (!order) return false;
  for (int64_t i = 0; i < tokens; i++)
    order[i] = i;
  for (int64_t i = tokens - 1; i > 0; i--) {
    int64_t j = random_below(r, i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (int64_t i = 0; i < tokens; i++) {
    slots[order[i]] = i < d->live_tokens ? d->slot[i] : -1 - random_below(r, 3);
    if (i < d->live_tokens) d->row[i] = order[i];
  }
  free(order);
  double k_outlier = 1, v_outlier = 1;
  for (int64_t i = 0; i < tokens * heads; i++) {
    fill_row(d, false, i, d->contract->head_dim.qk, &k_outlier, r);
    fill_row(d, true, i, d->contract->head_dim.v, &v_outlier, r);
  }
  return true;
}

/* A NaN in k of the first sequence's second token, and in v of the second sequence's. */
static void plant_nan(verify_data *d) {
  int64_t heads = d->sizes[DIM_KV_HEADS];
  dtype type = d->contract->query.dtype;
  for (int64_t s = 0; s < 2 && s < d->sizes[DIM_SEQS]; s++) {
    int64_t token = d->first_token[s] + 1;
    if (token >= d->first_token[s + 1] || !d->memory[s == 0 ? TENSOR_K : TENSOR_V]) continue;
    int64_t width = s == 0 ? d->contract->head_dim.qk : d->contract->head_dim.v;
    put(d->memory[s == 0 ? TENSOR_K : TENSOR_V], type, d->row[token] * heads * width + 5, (double)NAN);
  }
}

static void fill_queries(verify_data *d, random_state *r) {
  if (!d->memory[TENSOR_Q]) return;
  int64_t heads = d->sizes[DIM_KV_HEADS] * d->contract->query.heads_per_kv;
  int64_t rows = d->sizes[DIM_SEQS] * d->sizes[DIM_ROWS] * heads, width = d->contract->head_dim.qk;
  for (int64_t i = 0; i < rows; i++) {
    double factor = d->from->traits & TRAIT_PEAKED ? 30.0 : 1.0;
    if ((d->from->traits & TRAIT_ZERO_QUERY) && i % 3 == 0) factor = 0.0;
    for (int64_t j = 0; j < width; j++)
      put(d->memory[TENSOR_Q], d->contract->query.dtype, i * width + j, factor * random_normal(r));
  }
  if (d->memory[TENSOR_SINKS])
    for (int64_t i = 0; i < heads; i++)
      put(d->memory[TENSOR_SINKS], DTYPE_FP32, i, random_normal(r));
}

hd_status verify_data_init(verify_data *d, const contract *c, const verify_case *from, int64_t tile,
                           random_state *r, diags *errors) {
  *d = (verify_data){.contract = c, .from = from, .page = c->kv.page, .tile = tile > 0 ? tile : 64};
  int32_t lengths[CASE_MAX_SEQS];
  bool good = set_sizes(d, lengths);
  verify_lists_size(d, r);
  for (int i = 0; good && i < TENSOR_COUNT; i++)
    good = add_tensor(d, (tensor_name)i);
  if (good && d->memory[TENSOR_LENGTHS])
    memcpy(d->memory[TENSOR_LENGTHS], lengths, (size_t)d->sizes[DIM_SEQS] * sizeof lengths[0]);
  good = good && deal_pages(d, lengths, r);
  if (good) verify_lists_fill(d, r);
  if (good) fill_caches(d, r);
  good = good && fill_tokens(d, r);
  if (!good) {
    verify_data_finish(d);
    return out_of_memory(errors);
  }
  if (from->traits & TRAIT_NAN) plant_nan(d);
  fill_queries(d, r);
  return HD_OK;
}

void verify_data_finish(verify_data *d) {
  for (int i = 0; i < TENSOR_COUNT; i++)
    free(d->memory[i]);
  free(d->first_token);
  free(d->slot);
  free(d->row);
  *d = (verify_data){0};
}

void verify_data_set_scales(verify_data *d, random_state *r) {
  const contract *c = d->contract;
  if (!(d->from->traits & (TRAIT_WIDE_SCALES | TRAIT_ZERO_SCALES)) || !scales_per_token(c)) return;
  if (c->kv.v_in_k) return; /* K's too */
  for (int64_t s = 0; s < d->sizes[DIM_SEQS]; s++)
    for (int64_t t = d->first_token[s]; t < d->first_token[s + 1]; t++)
      for (int64_t h = 0; h < d->sizes[DIM_KV_HEADS]; h++) {
        int64_t page = d->slot[t] / d->page, slot = d->slot[t] % d->page;
        if (d->from->traits & TRAIT_WIDE_SCALES)
          put_scale(d, false, page, h, slot, 0, pow(10.0, -6.0 + (6.0 + top_scale(c)) * random_unit(r)));
        else if (s == 0 || random_below(r, 3) == 0)
          put_scale(d, false, page, h, slot, 0, 0.0);
      }
}
