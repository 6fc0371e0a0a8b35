#include "emit_line.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* Registers of a merge kernel's thread: what decode leaves free. */
enum { MERGE_REGISTERS = 72 };

typedef struct ring_fences {
  attention_fences shared;
  const ring_plan *plan;
} ring_fences;

/* See ring_place. */
static void write_place(const char *side, const ring_place *place, text *out) {
  const struct {
    const char *name;
    int value;
  } numbers[] = {{"TOKENS", place->tokens},
                 {"STRIDE", place->stride},
                 {"CHUNK", place->chunk},
                 {"CHUNK_STRIDE", place->chunk_stride},
                 {"CHANNEL_STRIDE", place->channel_stride},
                 {"STAGE_BYTES", place->bytes}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s_%s", side, numbers[i].name);
    write_int(out, name, numbers[i].value);
  }
}

static void write_solved(const contract *c, const ring_plan *p, text *out) {
  text_add(out, "// ---- solved by the generator\n//\n");
  plan_write_ring_summary(c, p, "// ", out);
  text_add(out, "\n");
  write_int(out, "HEADS", c->query.heads_per_kv);
  write_int(out, "HEAD_DIM_QK", c->head_dim.qk);
  write_int(out, "HEAD_DIM_V", c->head_dim.v);
  text_addf(out, "constexpr u32 PAGE = %d; // tokens\n\n", c->kv.page);
  text_addf(out,
            "typedef %s QUERY;\ntypedef %s KV_K;\ntypedef %s KV_V;\n"
            "typedef %s K_OPERAND; // of the products\ntypedef %s V_OPERAND;\ntypedef %s OUTPUT;\n\n",
            format_of(c->query.dtype), format_of(c->kv.k_dtype), format_of(c->kv.v_dtype),
            format_of(p->k_operand), format_of(p->v_operand), format_of(c->output.dtype));
  write_int(out, "CONSUMERS", p->consumers);
  write_int(out, "PRODUCERS", p->producers);
  write_int(out, "STAGES", p->stages);
  write_int(out, "THREAD_REGISTERS", p->thread_registers);
  write_int(out, "PRODUCER_REGISTERS", p->producer_registers);
  write_int(out, "CONSUMER_REGISTERS", p->consumer_registers);
  write_int(out, "THREADS", p->threads);
  write_int(out, "TILE", p->tile);
  write_bool(out, "BULK", p->bulk);
  write_int(out, "PIECE", p->piece);
  write_int(out, "K_SLICES", p->k_slices);
  write_bool(out, "BY_ROWS", p->by_rows);
  write_place("K", &p->k, out);
  write_place("V", &p->v, out);
  write_int(out, "Q_PARTS", p->q_parts);
  write_int(out, "P_PARTS", p->p_parts);
  write_int(out, "COLUMN_HEADS", p->column_heads);
  write_bool(out, "SCALED", contract_token_scales(c));
  write_bool(out, "LISTS_BY_HEAD", lists_by_head(c));
  write_int(out, "Q_TOP", 13);
  text_addf(out, "constexpr float P_SHIFT = %d;\n", p->v_operand == DTYPE_FP16 ? 14 : 0);
  write_int(out, "WINDOW", 0);
  write_bool(out, "CAUSAL", c->mask.causal);
  write_line_shape(c, 1, 1, true, MERGE_REGISTERS, out);
  text_add(out, "\n// Elements from the first of a page and head. The strides of pages and heads are "
                "run-time arguments.\n");
  write_offset_function(out, "k_offset", &c->kv.k, dtype_bytes(c->kv.k_dtype));
  write_offset_function(out, "v_offset", &c->kv.v, dtype_bytes(c->kv.v_dtype));
  write_scale_type(out, c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype);
  if (contract_token_scales(c)) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  write_store_output(c, out);
}

/* Whether page lists and lengths may be read before the kernel before has ended. */
static void write_early(const contract *c, text *out) {
  if (contract_makes_lists(c))
    text_add(out, "  constexpr bool early = false; // heddle_select has just made the lists\n");
  else
    text_add(
        out,
        "  const bool early = lists_settled != 0; // the kernel before writes no page table and no length\n");
}

static bool fill(void *user, const char *name, text *out) {
  ring_fences *f = user;
  const attention_fences *shared = &f->shared;
  if (strcmp(name, "solved") == 0) {
    write_solved(shared->contract, f->plan, out);
  } else if (strcmp(name, "ring_prelude") == 0) {
    return template_copy(shared->templates, f->plan->target->ring_prelude, out, shared->errors) == HD_OK;
  } else if (strcmp(name, "page_lists") == 0) {
    write_page_lists(shared->contract, "    ", "rows", out);
  } else if (strcmp(name, "early") == 0) {
    write_early(shared->contract, out);
  } else if (strcmp(name, "line") == 0) {
    return copy_line(shared, out);
  } else if (strcmp(name, "line_merge") == 0) {
    return fill_line_merge(shared, out);
  } else if (strcmp(name, "store_lse line") == 0) {
    write_lse(shared->contract, "item * HEADS + head", "base[j]", "sum[j]", out);
  } else if (strcmp(name, "copy_scales") == 0) {
    if (contract_token_scales(shared->contract))
      return template_copy(shared->templates, "decode_ring_scales.hip", out, shared->errors) == HD_OK;
  } else {
    return fill_attention(shared, name, out);
  }
  return true;
}

hd_status emit_ring(const contract *c, const variant *v, const target *t, const template_source *templates,
                    text *out_source, descriptor *out_descriptor, diags *errors) {
  ring_plan plan;
  hd_status status = plan_ring(c, v, t, &plan, errors);
  if (status != HD_OK) return status;
  const line_shape shape = {plan.tile, plan.resident, 1, plan.threads, plan.lds_bytes, true};
  describe_line(c, &shape, out_descriptor);
  if (!contract_makes_lists(c)) add_dim(&out_descriptor->kernels[0], DIM_LISTS_SETTLED);
  ring_fences fences = {{c, t, out_descriptor, templates, errors}, &plan};
  return template_fill(templates, "decode_ring.hip", fill, &fences, out_source, errors);
}
