#include "emit_line.h"
#include "plan.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

typedef struct decode_fences {
  attention_fences shared;
  const decode_plan *plan;
  work_fence_state work;
} decode_fences;

/* V of the next tile is requested behind the products of this one, V of pieces of K behind the last of these;
 * and where that would be spilled, where its own tile begins. */
static void write_order_of_requests(const contract *c, const decode_plan *p, text *out) {
  bool steady = p->steady && p->structure != STRUCTURE_RING, whole = steady && p->k_pieces == p->k_buffers;
  /* The wave's next tile reaches into what all rows see. */
  bool seen = c->mask.window == 0 && (!c->mask.causal || p->rows <= (p->waves - 1) * p->tile + 2);
  write_bool(out, "STEADY", steady);
  write_bool(out, "V_AHEAD", whole && !p->crowded);
  write_bool(out, "V_FIRST", whole && p->crowded);
  write_bool(out, "ONLY_LAST_MASKED", steady && seen && !p->crowded);
}

static void write_shape(const contract *c, const decode_plan *p, text *out) {
  const matrix_op *op = p->op, *value_op = p->value_op;
  write_int(out, "HEADS", c->query.heads_per_kv);
  write_int(out, "HEAD_DIM_QK", c->head_dim.qk);
  write_int(out, "HEAD_DIM_V", c->head_dim.v);
  text_addf(out, "constexpr u32 PAGE = %d; // tokens\n\n", c->kv.page);
  write_int(out, "WINDOW", c->mask.window);
  write_bool(out, "CAUSAL", c->mask.causal);
  text_addf(out,
            "\ntypedef %s QUERY;\ntypedef %s KV_K;\ntypedef %s KV_V;\n"
            "typedef %s K_OPERAND; // of the products\ntypedef %s V_OPERAND;\ntypedef %s OUTPUT;\n\n",
            format_of(c->query.dtype), format_of(c->kv.k_dtype), format_of(c->kv.v_dtype),
            format_of(op->operand), format_of(value_op->operand), format_of(c->output.dtype));
  text_add(out, "// The matrix instruction: which lane and element holds which row and k.\n");
  write_int(out, "INDICES", op->rows);
  write_int(out, "INDEX_STRIDE", op->row_stride);
  write_int(out, "GROUPS", op->groups);
  write_int(out, "GROUP_STRIDE", op->group_stride);
  write_int(out, "K_ELEMENTS", op->elements);
  write_int(out, "V_ELEMENTS", value_op->elements);
  write_int(out, "RUN", op->row_run);
  write_int(out, "PER_LANE", op->columns_per_lane);
  write_int(out, "COLUMNS", op->columns);
  text_add(out, "\n");
  write_int(out, "WAVES", p->waves);
  write_int(out, "THREADS", p->waves * p->target->wave);
  write_work_shape(c, p, out);
  write_int(out, "LIST", p->list);
  write_int(out, "TILE", p->tile);
  write_int(out, "EXCHANGE", p->exchange);
  write_int(out, "BLOCKS", p->blocks);
  write_int(out, "COLUMN_GROUPS", p->column_groups);
  write_int(out, "SLICES", p->slices);
  write_int(out, "SCORE_TILES", p->score_tiles);
  write_int(out, "VALUE_TILES", p->value_tiles);
  write_int(out, "K_CHANNELS", contract_coded_k(c));
  write_int(out, "K_LIST", p->k_list);
  write_int(out, "K_CHUNK", p->k_chunk);
  write_int(out, "K_LOAD", p->k_load);
  int q_load = 16 / dtype_bytes(c->query.dtype);
  q_load = p->k_chunk < q_load ? p->k_chunk : q_load;
  write_int(out, "Q_LOAD", q_load);
  write_int(out, "Q_STEP", q_load < op->elements ? op->elements : q_load);
  write_int(out, "K_STEPS", p->k_list / op->elements);
  write_int(out, "K_PIECES", p->k_pieces);
  write_int(out, "K_BUFFERS", p->k_buffers);
  write_int(out, "K_PIECE", p->k_list / p->k_pieces);
  write_int(out, "K_WORDS", p->k_list / p->k_pieces * dtype_bytes(c->kv.k_dtype) / 4);
  write_int(out, "PIECE_STEPS", p->k_list / op->elements / p->k_pieces);
  write_int(out, "V_TOKENS", p->v_tokens);
  write_int(out, "V_CHANNELS", p->v_channels);
  write_int(out, "V_WORDS", p->list * dtype_bytes(c->kv.v_dtype) / 4);
  write_int(out, "V_STEPS", p->list / value_op->elements);
  write_int(out, "V_CODED", contract_coded_v(c));
  write_bool(out, "V_WHOLE", p->slices * p->value_tiles * op->rows == contract_coded_v(c));
  write_int(out, "K_PART", p->k_part);
  write_int(out, "K_PARTS", p->k_parts);
  write_int(out, "V_PART", p->v_part);
  write_int(out, "V_PARTS", p->v_parts);
  write_int(out, "PART_TILES", p->value_tiles / p->v_parts);
  write_int(out, "OUTPUT_TILES", plan_output_tiles(p));
  write_int(out, "OUTPUT_PARTS", plan_output_parts(p));
  write_int(out, "SCALE_WORDS", p->list > op->rows ? p->list / op->rows : 1);
  write_bool(out, "QUERY_IN_LDS", p->query_in_lds);
  write_bool(out, "EARLY_LOADS", p->early_loads);
  write_order_of_requests(c, p, out);
  write_bool(out, "K_EXACT", p->k_exact);
  write_int(out, "OWN_RUN", p->own_run);
  write_int(out, "OWN_IDS", p->list / p->own_run);
  write_int(out, "K_IDS", p->k_exact ? p->score_tiles : p->list / p->own_run);
  write_int(out, "K_ID_STEP", p->k_exact ? op->row_run : p->own_run);
  write_int(out, "Q_PARTS", p->q_parts);
  write_int(out, "P_PARTS", p->p_parts);
  write_bool(out, "FOLDED", p->folded);
  write_int(out, "Q_FRAGMENTS", p->folded ? 1 : p->q_parts);
  write_int(out, "P_FRAGMENTS", p->folded ? 1 : p->p_parts);
  write_int(out, "Q_TOP", p->q_top);
  text_addf(out, "constexpr float P_SHIFT = %d;\n", p->p_shift);
  write_bool(out, "K_SCALED", contract_token_scales(c));
  write_bool(out, "V_SCALED", contract_token_scales(c));
  write_staged_shape(p, out);
  write_bool(out, "V_IN_K", c->kv.v_in_k);
  write_bool(out, "HAS_TAIL", p->tail_op != NULL);
  write_int(out, "TAIL_TOP", 13); /* exponent of a query row's largest element there */
  bool values = p->tail_value_op != NULL;
  write_int(out, "TAIL_TILES", p->tail_tiles);
  write_int(out, "TAIL_ACROSS", values ? p->tail_channels : 1);
  write_int(out, "TAIL_P_PARTS", values ? p->tail_p_parts : 1);
  write_bool(out, "TAIL_WHOLE", p->slices * p->tail_tiles * op->rows == c->head_dim.v - contract_coded_v(c));
  text_add(out, "\n");
}

/* The product of one side with the other operand, as an overload of `multiply`. */
static void write_product(const matrix_op *op, const char *kv, const char *other, text *out) {
  int words = op->elements * dtype_bytes(op->operand) / 4;
  text_addf(out, "struct %s {\n  u32 w[%d];\n};\nstruct %s {\n  u32 w[%d];\n};\n", kv, words, other,
            words * op->columns_per_lane);
  if (op->operand_type)
    text_addf(out,
              "DEVICE acc_t multiply(const %s &a, const %s &b, acc_t acc) {\n"
              "  const %s kv = __builtin_bit_cast(%s, a), other = __builtin_bit_cast(%s, b);\n"
              "  return %s;\n}\n\n",
              kv, other, op->operand_type, op->operand_type, op->operand_type, op->call);
  else
    text_addf(out, "DEVICE acc_t multiply(const %s &kv, const %s &other, acc_t acc) {\n  return %s;\n}\n\n",
              kv, other, op->call);
}

static void write_products(const decode_plan *p, text *out) {
  int accumulators = p->op->row_run * p->op->columns_per_lane;
  if (p->op->operand_type)
    text_addf(out, "typedef float acc_t __attribute__((ext_vector_type(%d)));\n", accumulators);
  else
    text_addf(out,
              "struct acc_t {\n  float x[%d];\n  __device__ __forceinline__ float &operator[](int i) { "
              "return x[i]; }\n};\n",
              accumulators);
  write_product(p->op, "key_fragment", "query_fragment", out);
  write_product(p->value_op, "value_fragment", "weight_fragment", out);
}

/* Above this the 2^-23 of a cap that capped() is off by would show in a weight. */
#define WIDE_CAP 256.0

static double finite_float(double x) {
  return x < (double)FLT_MAX ? x : (double)FLT_MAX;
}

/* cap * tanh(logit / cap), where a score is log2(e) * logit: 1 - 2 / (exp(2x) + 1) is tanh x. Logits that are
 * small beside a wide cap would cancel in that: theirs is the series x - x^3 / 3 + 2 x^5 / 15 - 17 x^7 / 315.
 */
static void write_cap(const contract *c, text *out) {
  const double cap = c->logits.softcap, score_cap = finite_float(cap * 1.44269504088896341);
  if (cap <= 0) {
    text_add(out, "\nDEVICE float capped(float score) { return score; }\n");
    return;
  }
  text_add(out, "\nDEVICE float capped(float score) {\n  ");
  write_float(out, "TWICE", finite_float(2.0 / cap));
  text_add(out, "  ");
  write_float(out, "CAP", score_cap);
  if (cap > WIDE_CAP) {
    text_add(out, "  ");
    write_float(out, "PER_CAP", 1.0 / score_cap);
    text_add(out, "  const float x = score * PER_CAP, square = x * x;\n"
                  "  const float bend = fused(square, fused(square, -17.0f / 315, 2.0f / 15), -1.0f / 3);\n"
                  "  if (abs_of(x) < 0.125f) return fused(score * square, bend, score);\n");
  }
  text_add(out, "  return fused(-2.0f * CAP, reciprocal_fast(exp2_fast(score * TWICE) + 1.0f), CAP);\n}\n");
}

static void write_tail(const contract *c, const decode_plan *p, text *out) {
  const matrix_op *op = p->tail_op;
  if (!op) return;
  text_add(out, "\n// The tail of K.\n");
  text_addf(out, "typedef %s TAIL;\ntypedef %s TAIL_OPERAND;\n", format_of(c->kv.tail.dtype),
            format_of(op->operand));
  write_int(out, "TAIL_CHANNELS", c->kv.tail.channels);
  text_addf(out, "constexpr i64 TAIL_AT = %lld; // bytes from the start of a page\n",
            (long long)c->kv.tail.at);
  write_int(out, "TAIL_ELEMENTS", op->elements);
  write_int(out, "TAIL_LIST", p->tail_list);
  write_int(out, "TAIL_CHUNK", p->tail_chunk);
  write_int(out, "TAIL_LOAD", p->tail_load);
  write_int(out, "TAIL_WORDS", p->tail_list * dtype_bytes(c->kv.tail.dtype) / 4);
  write_int(out, "TAIL_STEPS", p->tail_list / op->elements);
  write_int(out, "TAIL_PARTS", p->tail_parts);
  write_int(out, "TAIL_FRAGMENTS", p->folded ? 1 : p->tail_parts);
  write_offset_function(out, "tail_offset", &c->kv.tail.layout, dtype_bytes(c->kv.tail.dtype));
  write_product(op, "tail_key_fragment", "tail_query_fragment", out);
  if (!p->tail_value_op) return;
  write_int(out, "TAIL_TOKENS", p->tail_tokens);
  write_int(out, "TAIL_V_WORDS", p->list * dtype_bytes(c->kv.tail.dtype) / 4);
  write_int(out, "TAIL_P_FRAGMENTS", p->folded ? 1 : p->tail_p_parts);
  write_product(p->tail_value_op, "tail_value_fragment", "tail_weight_fragment", out);
}

static void write_solved(const contract *c, const decode_plan *p, text *out) {
  text_add(out, "// ---- solved by the generator\n//\n");
  plan_write_summary(c, p, "// ", out);
  text_add(out, "\n");
  write_shape(c, p, out);
  write_products(p, out);
  text_add(out, "// Elements from the first of a page and head. The strides of pages and heads are run-time "
                "arguments.\n");
  write_offset_function(out, "k_offset", &c->kv.k, dtype_bytes(c->kv.k_dtype));
  write_offset_function(out, "v_offset", &c->kv.v, dtype_bytes(c->kv.v_dtype));
  write_tail(c, p, out);
  const dtype scale_type = c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype;
  write_scale_type(out, scale_type);
  text_add(out, scale_type == DTYPE_FP32
                    ? "typedef float held_scale_t;\n"
                    : "typedef u32 held_scale_t; // LLVM puts a lane's array of bytes into LDS\n");
  text_add(
      out,
      c->scale.dtype == DTYPE_E8M0 && c->scale.granularity == SCALE_GROUP
          ? "DEVICE float scale_log2(scale_t s) { return s == 255 ? float_of(0x7fc00000u) : (float)((int)s - "
            "127); }\n"
          : "DEVICE float scale_log2(scale_t s) { // the logarithm of denormals is not exact everywhere\n"
            "  const float x = scale_value(s);\n"
            "  return x < 0x1p-100f ? log2_fast(x * 0x1p64f) - 64.0f : log2_fast(x);\n}\n");
  if (contract_token_scales(c)) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  write_cap(c, out);
  write_store_output(c, out);
}

static void write_load_scales(const char *tile, text *out) {
  text_addf(
      out,
      "    load_scales(scales, ids, k_scale_head, v_scale_head, k_scale_stride_b, k_scale_heads_stride,\n"
      "                v_scale_stride_b, v_scale_heads_stride, %s, slice, index, group);\n",
      tile);
}

/* The lines of each fence where K has a tail, and of those where V reaches into it; decode_tail.hip and
 * decode_tail_values.hip have the functions. */
static const struct {
  const char *name;
  bool of_values;
  const char *lines;
} tail_fences[] = {
    {"tail state", false,
     "  tail_words tail;\n"
     "  tail_query_fragment tail_query[BLOCKS][TAIL_FRAGMENTS][TAIL_STEPS];\n"},
    {"tail state", true, "  u32 tail_v[TAIL_TILES * TAIL_V_WORDS];\n"},
    {"tail load", false,
     "    load_tail(tail, ids, k_head, k_stride_b, k_heads_stride, of_tile, index, group);\n"},
    {"tail load values", true,
     "    load_v<tail_values>(tail_v, ids, v_head, v_stride_b, v_heads_stride, of_tile, slice, index, "
     "group);\n"},
    {"tail query", false,
     "      float tail_x[TAIL_LIST];\n"
     "      const i64 tail_row = query_of(sequence, kv_head, kv_heads, rows, column_of(b, c));\n"
     "      tail_largest = group_max(load_tail_query((const u8 *)q + tail_row * HEAD_DIM_QK * "
     "QUERY::BYTES,\n"
     "                                               column_of(b, c) < rows * HEADS, group, "
     "tail_x));\n"},
    {"tail split", false, "      split_tail_query(tail_x, up, index, c, tail_query[b]);\n"},
    {"tail products", false, "    add_tail(product, tail, tail_query, scales, key_scale, group);\n"},
    {"tail clear values", true, "        clear_invisible<tail_values>(tail_v, seen_by(0));\n"},
    {"tail add values", true, "    add_values(tail_values(), tail_v, V_PARTS);\n"},
};

static bool copy_tail_functions(const decode_fences *f, text *out) {
  const template_source *templates = f->shared.templates;
  if (!f->plan->tail_op) return true;
  if (template_copy(templates, "decode_tail.hip", out, f->shared.errors) != HD_OK) return false;
  text_add(out, "\n");
  if (!f->plan->tail_value_op) return true;
  if (template_copy(templates, "decode_tail_values.hip", out, f->shared.errors) != HD_OK) return false;
  text_add(out, "\n");
  return true;
}

static bool fill_tail(const decode_fences *f, const char *name, text *out) {
  bool has_tail = f->plan->tail_op != NULL, known = false;
  if (strcmp(name, "tail function") == 0) return copy_tail_functions(f, out);
  if (strcmp(name, "tail state") == 0 && has_tail) write_key_scale(f->shared.contract, out);
  for (size_t i = 0; i < sizeof tail_fences / sizeof *tail_fences; i++) {
    if (strcmp(name, tail_fences[i].name) != 0) continue;
    known = true;
    if (tail_fences[i].of_values ? f->plan->tail_value_op != NULL : has_tail)
      text_add(out, tail_fences[i].lines);
  }
  return known;
}

static bool fill(void *user, const char *name, text *out) {
  decode_fences *f = user;
  const contract *c = f->shared.contract;
  bool good;
  if (fill_work(&f->work, &f->shared, f->plan, name, out, &good)) return good;
  if (strcmp(name, "solved") == 0) {
    write_solved(c, f->plan, out);
  } else if (strcmp(name, "load_scales function") == 0) {
    if (contract_token_scales(c)) {
      if (template_copy(f->shared.templates, "decode_scales.hip", out, f->shared.errors) != HD_OK)
        return false;
      text_add(out, "\n");
    }
  } else if (strcmp(name, "load_scales tile") == 0) {
    if (contract_token_scales(c)) write_load_scales("tile", out);
  } else if (strcmp(name, "load_scales next") == 0) {
    if (contract_token_scales(c)) write_load_scales("next", out);
  } else if (!fill_tail(f, name, out) && !fill_staged(&f->shared, f->plan, name, out)) {
    return fill_attention(&f->shared, name, out);
  }
  return true;
}

static hd_status emit_tiles(const contract *c, const decode_plan *p, const template_source *templates,
                            text *out_source, descriptor *out_descriptor, diags *errors) {
  describe_work(c, p, out_descriptor);
  decode_fences fences = {{c, p->target, out_descriptor, templates, errors}, p, {0}};
  return template_fill(templates, "decode.hip", fill, &fences, out_source, errors);
}

hd_status emit_decode(const contract *c, const variant *v, const target *t, const template_source *templates,
                      text *out_source, descriptor *out_descriptor, diags *errors) {
  decode_plan plan;
  hd_status status = plan_decode(c, v, t, &plan, errors);
  if (status != HD_OK) return status;
  status = plan.structure == STRUCTURE_RING && t->family == FAMILY_CUDA
               ? emit_ring(c, v, t, templates, out_source, out_descriptor, errors)
               : emit_tiles(c, &plan, templates, out_source, out_descriptor, errors);
  if (status == HD_OK && contract_makes_lists(c))
    status = emit_select(c, templates, out_source, out_descriptor, errors);
  return status;
}
