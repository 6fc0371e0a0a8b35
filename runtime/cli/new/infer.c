#include "infer.h"
#include "records.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is known before caches are read, and how it is called in notes. */
typedef struct inference {
  const match_request *request;
  const tensors *t;
  draft *draft;
  reading_facts facts;
  int64_t heads, rows, qk, v;
} inference;

static const tensor *given(const inference *n, tensor_name name) {
  return n->t->present[name] ? &n->t->by_name[name] : NULL;
}

/* "q [4, 16, 128]" */
static void set_from(inference *n, field_id field, tensor_name from, const char *format, ...) HD_PRINTF(4, 5);
static void set_from(inference *n, field_id field, tensor_name from, const char *format, ...) {
  const tensor *t = &n->t->by_name[from];
  text note, value;
  text_init(&note);
  text_init(&value);
  text_addf(&note, "from %s: %s [", tensor_name_text(from), dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++)
    text_addf(&note, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(&note, "]");
  va_list args;
  va_start(args, format);
  text_vaddf(&value, format, args);
  va_end(args);
  draft_set(n->draft, field, SOURCE_TENSORS, text_string(&note), "%s", text_string(&value));
  text_finish(&note);
  text_finish(&value);
}

static void set_request(inference *n, field_id field, const char *format, ...) HD_PRINTF(3, 4);
static void set_request(inference *n, field_id field, const char *format, ...) {
  text value;
  text_init(&value);
  va_list args;
  va_start(args, format);
  text_vaddf(&value, format, args);
  va_end(args);
  draft_set(n->draft, field, SOURCE_TENSORS, "from the request", "%s", text_string(&value));
  text_finish(&value);
}

/* A whole number that an option gave, or 0. */
static int64_t given_number(const inference *n, field_id field) {
  return draft_has(n->draft, field) ? strtoll(draft_value(n->draft, field), NULL, 10) : 0;
}

/* ---- Channels, heads and rows ---- */

/* A dimension of the first of two tensors that is there and has it; 0: neither. */
static int64_t extent_of(const inference *n, tensor_name first, tensor_name second, int dimension,
                         tensor_name *out_from) {
  const tensor_name names[] = {first, second};
  for (int i = 0; i < 2; i++) {
    const tensor *t = given(n, names[i]);
    if (!t || t->rank != 3) continue;
    *out_from = names[i];
    return t->shape[dimension];
  }
  return 0;
}

/* "128" or "{qk: 576, v: 512}", as an option gave it. */
static void read_head_dim(const inference *n, int64_t *out_qk, int64_t *out_v) {
  const char *from = draft_value(n->draft, FIELD_HEAD_DIM), *qk = strstr(from, "qk:"),
             *v = strstr(from, "v:");
  *out_qk = strtoll(qk ? qk + 3 : from, NULL, 10);
  *out_v = v ? strtoll(v + 2, NULL, 10) : *out_qk;
}

static hd_status infer_channels(inference *n, diags *errors) {
  tensor_name from = TENSOR_Q, v_from = TENSOR_OUT;
  if (draft_has(n->draft, FIELD_HEAD_DIM)) {
    read_head_dim(n, &n->qk, &n->v);
    return HD_OK;
  }
  n->qk = extent_of(n, TENSOR_Q, TENSOR_K, 2, &from);
  if (n->qk == 0) {
    const tensor *q = given(n, TENSOR_Q);
    if (q)
      diags_errorf(errors, "new.missing", "head_dim",
                   "q has %d dimensions, not those of rows, query heads and channels, and so doesn't say how "
                   "many channels "
                   "a head has: describe that view of it, or --head-dim",
                   q->rank);
    else
      diags_errorf(errors, "new.missing", "head_dim",
                   "neither q nor k is there to say how many channels a head has: --head-dim");
    return HD_DECLINED;
  }
  n->v = extent_of(n, TENSOR_OUT, TENSOR_V, 2, &v_from);
  bool known = n->v > 0 || given(n, TENSOR_V_CACHE);
  if (n->v == 0) n->v = n->qk;
  if (!known)
    draft_set(n->draft, FIELD_HEAD_DIM, SOURCE_ASSUMED,
              "assumed: values have as many channels as keys; out would say it", "%" PRId64, n->qk);
  else if (n->v == n->qk)
    set_from(n, FIELD_HEAD_DIM, from, "%" PRId64, n->qk);
  else
    set_from(n, FIELD_HEAD_DIM, v_from, "{qk: %" PRId64 ", v: %" PRId64 "}", n->qk, n->v);
  return HD_OK;
}

static void infer_heads(inference *n) {
  tensor_name from = TENSOR_K;
  const tensor *table = given(n, TENSOR_PAGE_TABLE), *blocks = given(n, TENSOR_BLOCK_LIST);
  if (n->heads == 0) n->heads = n->request->kv_heads;
  if (n->heads == 0) n->heads = extent_of(n, TENSOR_K, TENSOR_V, 1, &from);
  if (n->heads == 0 && table && table->rank == 3) n->heads = table->shape[1];
  if (n->heads == 0 && blocks && blocks->rank == 3) n->heads = blocks->shape[0];
  n->facts.heads = n->heads;
  n->facts.query_heads = extent_of(n, TENSOR_Q, TENSOR_OUT, 1, &from);
  if (n->facts.query_heads == 0) n->facts.query_heads = n->request->query_heads;
}

static void infer_query(inference *n) {
  const tensor *q = given(n, TENSOR_Q), *k = given(n, TENSOR_K), *out = given(n, TENSOR_OUT);
  if (q)
    set_from(n, FIELD_QUERY_DTYPE, TENSOR_Q, "%s", dtype_name(q->dtype));
  else if (k)
    set_from(n, FIELD_QUERY_DTYPE, TENSOR_K, "%s", dtype_name(k->dtype));
  if (out) set_from(n, FIELD_OUTPUT_DTYPE, TENSOR_OUT, "%s", dtype_name(out->dtype));
}

static void set_heads_per_kv(inference *n, int64_t heads) {
  tensor_name from = TENSOR_Q;
  if (heads == 0 || n->facts.query_heads == 0) return;
  if (extent_of(n, TENSOR_Q, TENSOR_OUT, 1, &from) > 0)
    set_from(n, FIELD_HEADS_PER_KV, from, "%" PRId64, n->facts.query_heads / heads);
  else
    set_request(n, FIELD_HEADS_PER_KV, "%" PRId64, n->facts.query_heads / heads);
}

/* Query rows for each of the sequences that have a length. */
static void infer_rows(inference *n) {
  const tensor *q = given(n, TENSOR_Q), *lengths = given(n, TENSOR_LENGTHS);
  if (n->request->rows > 0)
    set_request(n, FIELD_ROWS, "%" PRId64, n->request->rows);
  else if (q && lengths && q->rank == 3 && lengths->rank == 1 && lengths->shape[0] > 0 &&
           q->shape[0] % lengths->shape[0] == 0)
    set_from(n, FIELD_ROWS, TENSOR_LENGTHS, "%" PRId64, q->shape[0] / lengths->shape[0]);
}

/* ---- Selection, masks, logits ---- */

static void infer_selection(inference *n) {
  const tensor *tokens = given(n, TENSOR_TOKEN_LIST), *indices = given(n, TENSOR_KV_INDICES);
  const tensor *table = given(n, TENSOR_PAGE_TABLE), *q = given(n, TENSOR_Q),
               *last = given(n, TENSOR_LAST_PAGE_LEN);
  if (tokens) {
    set_from(n, FIELD_FORM, TENSOR_TOKEN_LIST, "tokens");
    set_from(n, FIELD_PER, TENSOR_TOKEN_LIST, "%s", tokens->rank == 3 ? "kv_head" : "row");
    set_from(n, FIELD_INDEX, TENSOR_TOKEN_LIST, "%s", dtype_name(tokens->dtype));
  } else if (indices) {
    bool by_head = last && q && last->rank == 1 && n->heads > 1 && last->shape[0] == q->shape[0] * n->heads;
    set_from(n, FIELD_FORM, TENSOR_KV_INDICES, "indptr");
    set_from(n, FIELD_PER, by_head ? TENSOR_LAST_PAGE_LEN : TENSOR_KV_INDICES, "%s",
             by_head ? "kv_head" : "sequence");
    set_from(n, FIELD_INDEX, TENSOR_KV_INDICES, "%s", dtype_name(indices->dtype));
  } else if (table) {
    bool blocks = given(n, TENSOR_BLOCK_LIST) != NULL, rows = given(n, TENSOR_ROW_SEQUENCES) != NULL;
    set_from(n, FIELD_FORM, blocks ? TENSOR_BLOCK_LIST : TENSOR_PAGE_TABLE, "%s",
             blocks ? "blocks" : "table");
    set_from(n, FIELD_PER, TENSOR_PAGE_TABLE, "%s", table->rank == 3 ? "kv_head" : rows ? "row" : "sequence");
    set_from(n, FIELD_INDEX, TENSOR_PAGE_TABLE, "%s", dtype_name(table->dtype));
    if (blocks && n->request->block > 0) set_request(n, FIELD_BLOCK, "%d", n->request->block);
  }
}

static void infer_attention(inference *n) {
  const match_request *r = n->request;
  bool sinks = r->sinks || given(n, TENSOR_SINKS), lse = r->lse || given(n, TENSOR_LSE);
  text number;
  text_init(&number);
  if (!r->causal) set_request(n, FIELD_CAUSAL, "false");
  if (r->window > 0) set_request(n, FIELD_WINDOW, "%d", r->window);
  if (sinks) set_request(n, FIELD_SINKS, "per_head");
  if (lse) set_request(n, FIELD_LSE, "true");
  if (r->softcap > 0) {
    text_add_double(&number, r->softcap);
    if (!strpbrk(text_string(&number), ".e")) text_add(&number, ".0");
    set_request(n, FIELD_SOFTCAP, "%s", text_string(&number));
  }
  text_finish(&number);
}

/* ---- Caches and scales ---- */

static void write_reading(const reading *r, text *out) {
  text_addf(out, "page %" PRId64 ", %" PRId64 " kv heads, k ", r->k.page, r->k.heads);
  layout_write(&r->k.layout, out);
  if (r->v.layout.count > 0) {
    text_add(out, ", v ");
    layout_write(&r->v.layout, out);
  }
  text_addf(out, ", scale %s", granularity_name(r->granularity));
}

/* The reading to take: the only one, or the only one that has a name. */
static const reading *choose(const readings *all, diags *errors) {
  const reading *named = NULL;
  int names = 0;
  for (int i = 0; i < all->count && i < READINGS_MAX; i++)
    if (all->items[i].name) named = &all->items[i], names++;
  if (all->count == 1) return &all->items[0];
  if (names == 1) return named;
  if (all->count == 0) {
    diags_errorf(
        errors, "new.layout", "kv.k",
        "no layout of pages, kv heads, slots and channels has these shapes and strides: are head_dim, "
        "kv_heads and page what the caches have?");
    return NULL;
  }
  text words;
  text_init(&words);
  for (int i = 0; i < all->count && i < 4; i++) {
    text_add(&words, i > 0 ? "; or " : "");
    write_reading(&all->items[i], &words);
  }
  if (all->count > 4) text_addf(&words, "; and %d more", all->count - 4);
  diags_errorf(
      errors, "new.ambiguous", "kv.k",
      "the caches can be read in several ways: %s. --page, --kv-heads or \"axes\" in the tensors decide",
      text_string(&words));
  text_finish(&words);
  return NULL;
}

static void set_layout(inference *n, field_id field, tensor_name from, const layout *l, const char *name) {
  text words;
  text_init(&words);
  layout_write(l, &words);
  if (name && (field == FIELD_K || field == FIELD_V)) {
    text_clear(&words);
    text k, v;
    text_init(&k);
    text_init(&v);
    layout_named(name, dtype_bytes(n->facts.dtype), &k, &v);
    text_add(&words, text_string(field == FIELD_K ? &k : &v));
    text_finish(&k);
    text_finish(&v);
  }
  if (layout_is_padded(l)) /* it may as well be that the channels are more than was said */
    draft_set(n->draft, field, SOURCE_ASSUMED,
              "assumed: what lies behind the channels belongs to something else", "%s", text_string(&words));
  else
    set_from(n, field, from, "%s", text_string(&words));
  text_finish(&words);
}

static void set_scales(inference *n, const reading *r) {
  const tensor *k = given(n, TENSOR_K_SCALE);
  if (n->t->k_scale.given) {
    set_request(n, FIELD_GRANULARITY, "tensor");
    set_request(n, FIELD_SCALE_SOURCE, "argument");
  }
  if (!k) return;
  set_from(n, FIELD_GRANULARITY, TENSOR_K_SCALE, "%s", granularity_name(r->granularity));
  set_from(n, FIELD_SCALE_DTYPE, TENSOR_K_SCALE, "%s", dtype_name(k->dtype));
  if (r->k_scale.count > 0) set_layout(n, FIELD_SCALE_K, TENSOR_K_SCALE, &r->k_scale, NULL);
  if (r->v_scale.count > 0) set_layout(n, FIELD_SCALE_V, TENSOR_V_SCALE, &r->v_scale, NULL);
  if (r->granularity != SCALE_GROUP) return;
  if (r->group_v > 0 && r->group_v != r->group_k)
    set_from(n, FIELD_GROUP, TENSOR_K_SCALE, "{k: %" PRId64 ", v: %" PRId64 "}", r->group_k, r->group_v);
  else
    set_from(n, FIELD_GROUP, TENSOR_K_SCALE, "%" PRId64, r->group_k);
}

/* Codes with a few bytes behind them: a scale of their own, as engines keep it inline. */
static void assume_inline_scales(inference *n, const reading *r) {
  const layout_factor *last = &r->k.layout.factors[r->k.layout.count - 1];
  bool coded = dtype_bytes(n->facts.dtype) == 1;
  if (given(n, TENSOR_K_SCALE) || n->t->k_scale.given || !coded || last->axis != AXIS_D ||
      (last->pad != 4 && last->pad != 2))
    return;
  const char *why = "assumed: a scale in the bytes behind each head's codes";
  draft_set(n->draft, FIELD_GRANULARITY, SOURCE_ASSUMED, why, "token_head");
  draft_set(n->draft, FIELD_SCALE_DTYPE, SOURCE_ASSUMED, why, "%s", last->pad == 4 ? "fp32" : "fp16");
  layout inside = {0};
  for (int i = 0; i < r->k.layout.count; i++)
    if (r->k.layout.factors[i].axis != AXIS_D) inside.factors[inside.count++] = r->k.layout.factors[i];
  inside.size[AXIS_S] = r->k.layout.size[AXIS_S];
  text words;
  text_init(&words);
  layout_write(&inside, &words);
  draft_set(n->draft, FIELD_SCALE_K, SOURCE_ASSUMED, why, "{inside: k, at: %" PRId64 ", layout: %s}", n->qk,
            text_string(&words));
  draft_set(n->draft, FIELD_SCALE_V, SOURCE_ASSUMED, why, "{inside: v, at: %" PRId64 ", layout: %s}", n->v,
            text_string(&words));
  text_finish(&words);
}

/* Declines bytes that are codes and nothing else, as a match of them does: of pages of records a form was
 * recognised, here nothing says which format they are of. */
static hd_status check_named(const inference *n, const readings *all, diags *errors) {
  static const tensor_name caches[] = {TENSOR_K_CACHE, TENSOR_V_CACHE};
  hd_status status = HD_OK;
  bool told = n->draft->fields[FIELD_KV_DTYPE].source == SOURCE_GIVEN;
  for (int i = 0; i < all->count && i < READINGS_MAX; i++)
    if (layout_is_padded(&all->items[i].k.layout)) return HD_OK;
  for (int i = 0; i < 2 && all->count > 0 && !told; i++) {
    const tensor *t = given(n, caches[i]);
    if (!t || t->dtype != DTYPE_UINT8) continue;
    const char *name = tensor_name_text(caches[i]);
    diags_errorf(
        errors, "new.missing", name,
        "%s is uint8, and bytes don't say which codes they are: name the format there, \"fp8_e4m3fn\", "
        "as match wants it too, or with --kv-dtype",
        name);
    status = HD_DECLINED;
  }
  return status;
}

static hd_status infer_caches(inference *n, diags *errors) {
  const tensor *k = given(n, TENSOR_K_CACHE), *v = given(n, TENSOR_V_CACHE);
  readings *all = malloc(sizeof *all);
  if (!all) return HD_OUT_OF_MEMORY;
  n->facts.qk = n->qk;
  n->facts.v = n->v;
  n->facts.page = given_number(n, FIELD_PAGE);
  n->facts.dtype = k->dtype;
  readings_find(n->t, &n->facts, all);
  const reading *r = choose(all, errors);
  hd_status status = r ? HD_OK : HD_DECLINED, named = check_named(n, all, errors);
  if (status == HD_OK) status = named;
  if (status == HD_OK) {
    set_from(n, FIELD_PAGE, TENSOR_K_CACHE, "%" PRId64, r->k.page);
    set_layout(n, FIELD_K, TENSOR_K_CACHE, &r->k.layout, r->name);
    if (v)
      set_layout(n, FIELD_V, TENSOR_V_CACHE, &r->v.layout, r->name);
    else
      draft_set(n->draft, FIELD_V, SOURCE_ASSUMED, "there is no v_cache: V is the first channels of K", "k");
    set_scales(n, r);
    assume_inline_scales(n, r);
    set_heads_per_kv(n, r->k.heads);
  }
  free(all);
  return status;
}

/* fp8_e4m3 of either dialect is that of the target: the contract is the same one on all of them. It is also
 * what bytes are taken for that say no format. */
static const char *format_word(dtype d) {
  return d == DTYPE_FP8_E4M3FN || d == DTYPE_FP8_E4M3FNUZ || d == DTYPE_UINT8 ? "fp8_e4m3" : dtype_name(d);
}

static void infer_format(inference *n) {
  const tensor *k = given(n, TENSOR_K_CACHE), *v = given(n, TENSOR_V_CACHE);
  if (!v) v = k;
  const char *k_word = format_word(k->dtype), *v_word = format_word(v->dtype);
  text words;
  text_init(&words);
  if (strcmp(k_word, v_word) != 0)
    text_addf(&words, "{k: %s, v: %s}", k_word, v_word);
  else
    text_add(&words, k_word);
  if (k->dtype == DTYPE_UINT8 || v->dtype == DTYPE_UINT8)
    draft_set(n->draft, FIELD_KV_DTYPE, SOURCE_ASSUMED, "assumed: uint8 says no format of the codes", "%s",
              text_string(&words));
  else if (strcmp(k_word, dtype_name(k->dtype)) != 0 || strcmp(v_word, dtype_name(v->dtype)) != 0)
    draft_set(n->draft, FIELD_KV_DTYPE, SOURCE_TENSORS,
              "the target's own dialect; the tensors have one of them", "%s", text_string(&words));
  else
    set_from(n, FIELD_KV_DTYPE, TENSOR_K_CACHE, "%s", text_string(&words));
  text_finish(&words);
}

hd_status infer_from(const match_request *r, int64_t heads, draft *d, diags *errors) {
  inference n = {.request = r, .t = &r->tensors, .draft = d, .heads = heads};
  if (!given(&n, TENSOR_K_CACHE)) {
    diags_errorf(errors, "new.missing", "k_cache",
                 "a cache is what a spec is about: k_cache is not among the tensors");
    return HD_DECLINED;
  }
  hd_status status = infer_channels(&n, errors);
  if (status != HD_OK) return status;
  infer_heads(&n);
  infer_query(&n);
  infer_rows(&n);
  infer_format(&n);
  infer_selection(&n);
  infer_attention(&n);
  bool latent = !given(&n, TENSOR_V_CACHE) && !given(&n, TENSOR_K_SCALE) && !n.t->k_scale.given;
  const tensor *k = given(&n, TENSOR_K_CACHE);
  if (latent && records_infer(k, n.qk, n.v, given_number(&n, FIELD_PAGE), d)) {
    set_heads_per_kv(&n, 1);
    return HD_OK;
  }
  return infer_caches(&n, errors);
}
