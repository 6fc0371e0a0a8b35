#include "emit_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The merge kernel: threads of a workgroup, quads of outputs it takes, and rows of threads that share the
 * splits. */
enum { MERGE_THREADS = 256, MERGE_QUADS = 16, MERGE_LANES = MERGE_THREADS / MERGE_QUADS };

/* What stands for the one scale that all tokens of a workgroup have; NULL: they have their own, or none. */
static const char *common_scale(const contract *c, char side) {
  if (c->kv.v_in_k) side = 'k';
  if (c->scale.argument) return side == 'k' ? "k_scale_value" : "v_scale_value";
  if (c->scale.granularity == SCALE_TENSOR) return side == 'k' ? "k_scale[0]" : "v_scale[0]";
  if (c->scale.granularity != SCALE_HEAD) return NULL;
  return side == 'k' ? "k_scale[kv_head * k_scale_stride_h]" : "v_scale[kv_head * v_scale_stride_h]";
}

int shared_rows(const contract *c) {
  return contract_rows_have_lists(c) ? 1 : c->query.rows;
}

static int v_groups(const contract *c) {
  return c->scale.granularity == SCALE_GROUP ? contract_coded_v(c) / c->scale.group_v : 1;
}

/* Whether V's last channels are the tail's, which have no scale. */
static bool v_has_tail(const contract *c) {
  return contract_coded_v(c) < c->head_dim.v;
}

/* A split's partial result of one query: the outputs, then highest, lowest and the sum, then further
 * highests. */
int partial_words(const contract *c) {
  return c->head_dim.v + (v_groups(c) + v_has_tail(c) + 2 + 3) / 4 * 4;
}

/* Functions of a query (row * HEADS + head) and its partial result. */
static void write_queries(const contract *c, text *out) {
  text_add(out, "\n");
  text_addf(out, "typedef %s page_id;\n", c->select.index == DTYPE_INT64 ? "i64" : "int");
  write_int(out, "ROWS", shared_rows(c));
  write_int(out, "PARTIAL_WORDS", partial_words(c));
  text_add(
      out,
      "// Place of a query, row * HEADS + head of its sequence and kv head, among all of them.\n"
      "DEVICE i64 query_of(int sequence, int kv_head, int kv_heads, int rows, int query) {\n"
      "  return (((i64)sequence * rows + query / HEADS) * kv_heads + kv_head) * HEADS + query % HEADS;\n}\n");
  text_add(out, "// Where behind a partial result the highest score stands that `channel` is relative to.\n"
                "DEVICE int top_word(u32 channel) { return ");
  if (v_has_tail(c)) text_addf(out, "channel >= V_CODED ? %d : ", 2 + v_groups(c));
  if (v_groups(c) > 1)
    text_addf(out, "channel < %d ? 0 : 2 + (int)channel / %d; }\n", c->scale.group_v, c->scale.group_v);
  else
    text_add(out, "0; }\n");
  text_addf(out,
            "// What the sum of `channel` still lacks of its scale, where K and V have a common one each.\n"
            "DEVICE float scale_behind(u32 channel, float value_scale) { return %svalue_scale%s; }\n",
            v_has_tail(c) ? "channel < V_CODED ? " : "", v_has_tail(c) ? " : 1.0f" : "");
  if (c->mask.sinks)
    text_add(out,
             "// One more logit, without a value: it takes part in the sum of weights, which is "
             "relative to 2^base.\n"
             "DEVICE void add_sink(float &base, float &sum, float sink) {\n"
             "  const float score = sink * 1.44269504088896341f, top = max_of(base, score);\n"
             "  // Not exp2(0) where it is the largest: the product is not rounded in a fused difference.\n"
             "  sum = sum * exp2_fast(base - top) + (score >= base ? 1.0f : exp2_fast(score - top));\n"
             "  base = top;\n}\n");
}

void write_merge_shape(text *out) {
  write_int(out, "MERGE_THREADS", MERGE_THREADS);
  write_int(out, "MERGE_QUADS", MERGE_QUADS);
  write_int(out, "MERGE_LANES", MERGE_LANES);
}

void write_store_output(const contract *c, text *out) {
  write_queries(c, out);
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
  if (common_scale(c, 'k') && !c->kv.tail.channels)
    text_addf(out, " * scale_value(%s)", common_scale(c, 'k'));
  text_add(out, ";\n");
}

void write_key_scale(const contract *c, text *out) {
  const char *scale = common_scale(c, 'k');
  text_addf(out, "  const float key_scale = %s%s%s;\n", scale ? "scale_value(" : "", scale ? scale : "1.0f",
            scale ? ")" : "");
}

static void write_value_scale(const contract *c, text *out) {
  const char *scale = common_scale(c, 'v');
  text_addf(out, "  const float value_scale = %s%s%s;\n", scale ? "scale_value(" : "", scale ? scale : "1.0f",
            scale ? ")" : "");
}

void write_lse(const contract *c, const char *query, const char *base, const char *total, text *out) {
  if (c->output.lse)
    text_addf(out, "    lse[%s] = (%s + log2_fast(%s)) * 0.693147180559945309f;\n", query, base, total);
}

void write_sink(const contract *c, const char *base, const char *total, text *out) {
  if (c->mask.sinks)
    text_addf(out, "  add_sink(%s, %s, sinks[kv_head * HEADS + column %% HEADS]);\n", base, total);
}

bool lists_by_head(const contract *c) {
  return c->select.form == SELECT_BLOCKS || c->select.per == PER_KV_HEAD;
}

/* The item that has a list of pages of its own, and how many tokens the list has. */
static void write_select(const contract *c, text *out) {
  bool by_head = lists_by_head(c);
  if (contract_makes_lists(c)) {
    text_addf(out,
              "  const page_id *list = (const page_id *)lists + %s * list_width; // made by heddle_select\n"
              "  const page_id *table = list + 1;\n"
              "  const int length = (int)list[0];\n",
              by_head ? "((i64)sequence * kv_heads + kv_head)" : "(i64)sequence");
    return;
  }
  const char *item = c->select.per == PER_KV_HEAD ? "(i64)sequence * kv_heads + kv_head" : "(i64)sequence";
  if (c->select.form == SELECT_INDPTR)
    text_addf(out,
              "  const i64 list = %s;\n"
              "  const int first_page = kv_indptr[list], listed = kv_indptr[list + 1] - first_page;\n"
              "  const page_id *table = kv_indices + first_page;\n"
              "  const int length = listed > 0 ? (listed - 1) * (int)PAGE + last_page_len[list] : 0;\n",
              item);
  else
    text_addf(out,
              "  const page_id *table = page_table + (%s) * table_pages;\n"
              "  const int length = lengths[sequence];\n",
              item);
}

/* Runs the merge template with the same fences. */
static bool fill(void *user, const char *name, text *out) {
  return fill_attention(user, name, out);
}

bool fill_attention(const attention_fences *f, const char *name, text *out) {
  const contract *c = f->contract;
  if (strcmp(name, "contract") == 0) {
    write_contract_comment(c, "decode", f->target, out);
    write_int(out, "WAVE", f->target->wave);
    text_add(out, "\n");
  } else if (strcmp(name, "prelude") == 0) {
    return template_copy(f->templates, f->target->prelude, out, f->errors) == HD_OK;
  } else if (strcmp(name, "arguments decode") == 0) {
    write_arguments(&f->descriptor->kernels[0], out);
  } else if (strcmp(name, "arguments merge") == 0) {
    write_arguments(&f->descriptor->kernels[1], out);
  } else if (strcmp(name, "logits") == 0) {
    write_logits(c, out);
  } else if (strcmp(name, "values") == 0) {
    if (c->kv.v_in_k)
      text_add(out, "  const void *const v_cache = k_cache; // V is the first channels of K\n");
    if (c->kv.v_in_k && contract_token_scales(c) && !c->scale.inside)
      text_add(out, "  const scale_t *const v_scale = k_scale;\n");
  } else if (strcmp(name, "scale_heads") == 0) {
    write_scales_inside(c, false, out);
    if (contract_token_scales(c))
      text_add(out, "  const scale_t *k_scale_head = k_scale + kv_head * k_scale_stride_h;\n"
                    "  const scale_t *v_scale_head = v_scale + kv_head * v_scale_stride_h;\n"
                    "  const i64 k_scale_heads_stride = kv_heads * k_scale_stride_h;\n"
                    "  const i64 v_scale_heads_stride = kv_heads * v_scale_stride_h;\n");
  } else if (strcmp(name, "value_scale") == 0) {
    write_value_scale(c, out);
  } else if (strcmp(name, "store_lse direct") == 0) {
    write_lse(c, "query", "lowest", "total", out);
  } else if (strcmp(name, "store_lse merge") == 0) {
    write_lse(c, "query", "base", "weights", out);
  } else if (strcmp(name, "sink decode") == 0) {
    write_sink(c, "lowest", "total", out);
  } else if (strcmp(name, "sink merge") == 0) {
    write_sink(c, "base", "weights", out);
  } else if (strcmp(name, "select") == 0) {
    write_select(c, out);
  } else if (strcmp(name, "rows") == 0) {
    if (shared_rows(c) == 1) text_add(out, "  constexpr int rows = 1;\n");
  } else if (strcmp(name, "merge") == 0) {
    attention_fences copy = *f;
    return template_fill(f->templates, "merge.hip", fill, &copy, out, f->errors) == HD_OK;
  } else {
    return false;
  }
  return true;
}

void add_page_lists(const contract *c, kernel_descriptor *k) {
  if (contract_makes_lists(c)) {
    add_tensor(k, TENSOR_LISTS);
  } else if (c->select.form == SELECT_INDPTR) {
    add_tensor(k, TENSOR_KV_INDPTR);
    add_tensor(k, TENSOR_KV_INDICES);
    add_tensor(k, TENSOR_LAST_PAGE_LEN);
  } else {
    add_tensor(k, TENSOR_PAGE_TABLE);
    add_tensor(k, TENSOR_LENGTHS);
  }
}

void add_page_list_width(const contract *c, kernel_descriptor *k) {
  if (contract_makes_lists(c))
    add_dim(k, DIM_LIST_WIDTH);
  else if (c->select.form != SELECT_INDPTR)
    add_dim(k, DIM_TABLE_PAGES);
}

void add_decode_arguments(const contract *c, kernel_descriptor *k) {
  add_tensor(k, TENSOR_OUT);
  if (c->output.lse) add_tensor(k, TENSOR_LSE);
  add_tensor(k, TENSOR_WORKSPACE);
  add_tensor(k, TENSOR_Q);
  add_tensor(k, TENSOR_K_CACHE);
  if (!c->kv.v_in_k) add_tensor(k, TENSOR_V_CACHE);
  add_scale(c, k, true);
  if (!c->kv.v_in_k) add_scale(c, k, false);
  add_page_lists(c, k);
  if (c->mask.sinks) add_tensor(k, TENSOR_SINKS);
  for (dim d = DIM_K_STRIDE_B; d <= DIM_V_STRIDE_H; d++)
    add_dim(k, d);
  if (contract_token_scales(c)) {
    for (dim d = DIM_K_SCALE_STRIDE_B; d <= DIM_V_SCALE_STRIDE_H; d++)
      add_dim(k, d);
  } else if (c->scale.granularity == SCALE_HEAD) {
    add_dim(k, DIM_K_SCALE_STRIDE_H);
    add_dim(k, DIM_V_SCALE_STRIDE_H);
  }
  add_dim(k, DIM_KV_HEADS);
  if (shared_rows(c) > 1) add_dim(k, DIM_ROWS);
  add_page_list_width(c, k);
  add_dim(k, DIM_SPLITS);
  if (c->logits.scale == LOGITS_ARGUMENT) add_number(k, NUMBER_LOGITS_SCALE);
}

extent sequence_extent(const contract *c) {
  return contract_rows_have_lists(c) ? (extent){1, 1, 2, {DIM_SEQS, DIM_ROWS}}
                                     : (extent){1, 1, 1, {DIM_SEQS}};
}

void describe_merge(const contract *c, descriptor *d) {
  kernel_descriptor *k = &d->kernels[1];
  int64_t queries = (int64_t)shared_rows(c) * c->query.heads_per_kv;
  snprintf(k->symbol, sizeof k->symbol, "heddle_merge");
  k->grid[0] = sequence_extent(c);
  k->grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  k->grid[2] = (extent){queries * c->head_dim.v, 4 * MERGE_QUADS, 0, {DIM_SEQS}};
  k->block = MERGE_THREADS;
  k->only_when_split = true;
  d->kernel_count = 2;
  d->workspace = (extent){4 * queries * partial_words(c), 1, 3, {DIM_SEQS, DIM_KV_HEADS, DIM_SPLITS}};
  if (contract_rows_have_lists(c)) d->workspace.dims[d->workspace.dim_count++] = DIM_ROWS;
  add_merge_arguments(c, k);
}

void add_merge_arguments(const contract *c, kernel_descriptor *k) {
  add_tensor(k, TENSOR_OUT);
  if (c->output.lse) add_tensor(k, TENSOR_LSE);
  add_tensor(k, TENSOR_WORKSPACE);
  if (common_scale(c, 'v')) add_scale(c, k, c->kv.v_in_k);
  if (c->mask.sinks) add_tensor(k, TENSOR_SINKS);
  if (c->scale.granularity == SCALE_HEAD)
    add_dim(k, c->kv.v_in_k ? DIM_K_SCALE_STRIDE_H : DIM_V_SCALE_STRIDE_H);
  add_dim(k, DIM_KV_HEADS);
  if (shared_rows(c) > 1) add_dim(k, DIM_ROWS);
  add_dim(k, DIM_SPLITS);
}
