#include "emit_attention.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>

typedef struct ring_fences {
  attention_fences shared;
  const ring_plan *plan;
} ring_fences;

static void write_summary(const contract *c, const ring_plan *p, text *out) {
  text_add(out, "// ---- solved by the generator\n//\n");
  text_addf(out,
            "// Structure: a ring of %d stages of %d tokens in shared memory, %d bytes; %d consumer "
            "warpgroup%s, %d producer warps.\n",
            p->stages, p->tile, p->lds_bytes, p->consumers, p->consumers > 1 ? "s" : "", p->producers);
  if (p->k_slices == 1)
    text_addf(out, "// K: pages of %d tokens copied whole.\n", p->piece);
  else
    text_addf(out, "// K: %d tokens of 16 channels a copy, %d copies.\n", p->piece, p->k_slices);
  text_addf(out, "// A score product's rows are %s.\n",
            p->consecutive ? "64 consecutive tokens" : "eight tokens from each of eight pages");
  text_addf(out, "// V: %d tokens copied together, channels as rows of the value product.\n", p->piece);
  text_addf(out,
            "// K and V are widened to fp16 for the products, exactly; %d query heads in %d columns.\n\n",
            c->query.heads_per_kv, p->column_heads);
}

static void write_solved(const contract *c, const ring_plan *p, text *out) {
  write_summary(c, p, out);
  write_int(out, "HEADS", c->query.heads_per_kv);
  write_int(out, "HEAD_DIM_QK", c->head_dim.qk);
  write_int(out, "HEAD_DIM_V", c->head_dim.v);
  text_addf(out, "constexpr u32 PAGE = %d; // tokens\n\n", c->kv.page);
  text_addf(out, "typedef %s QUERY;\ntypedef %s OUTPUT;\n\n", format_of(c->query.dtype),
            format_of(c->output.dtype));
  write_int(out, "CONSUMERS", p->consumers);
  write_int(out, "PRODUCERS", p->producers);
  write_int(out, "STAGES", p->stages);
  write_int(out, "RESIDENT", p->resident);
  write_int(out, "THREADS", p->consumers * 128 + p->producers * 32);
  write_int(out, "TILE", p->tile);
  write_int(out, "PIECE", p->piece);
  write_int(out, "K_SLICES", p->k_slices);
  write_int(out, "K_LEADING", p->k_leading);
  write_int(out, "K_GROUP", p->k_group);
  write_int(out, "K_PRODUCT", p->k_product);
  write_int(out, "COLUMN_HEADS", p->column_heads);
  write_bool(out, "CONSECUTIVE", p->consecutive);
  write_bool(out, "SCALED", token_scales(c));
  write_int(out, "Q_TOP", 13);
  text_add(out, "constexpr float P_SHIFT = 14;\n");
  write_merge_shape(out);
  text_add(out, "\n// Elements from the first of a page and head. The strides of pages and heads are "
                "run-time arguments.\n");
  write_offset_function(out, "k_offset", &c->kv.k, 1);
  write_offset_function(out, "v_offset", &c->kv.v, 1);
  write_scale_type(out, c->scale.granularity == SCALE_NONE ? DTYPE_FP32 : c->scale.dtype);
  if (token_scales(c)) {
    write_scale_offset_function(out, "k_scale_offset", &c->scale.k);
    write_scale_offset_function(out, "v_scale_offset", &c->scale.v);
  }
  write_store_output(c, out);
}

static bool fill(void *user, const char *name, text *out) {
  ring_fences *f = user;
  const attention_fences *shared = &f->shared;
  if (strcmp(name, "solved") == 0) {
    write_solved(shared->contract, f->plan, out);
  } else if (strcmp(name, "ring_prelude") == 0) {
    return template_copy(shared->templates, f->plan->target->ring_prelude, out, shared->errors) == HD_OK;
  } else if (strcmp(name, "copy_scales") == 0) {
    if (token_scales(shared->contract))
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
  out_descriptor->tile_tokens = plan.tile;
  kernel_descriptor *k = &out_descriptor->kernels[0];
  snprintf(k->symbol, sizeof k->symbol, "heddle_decode");
  k->grid[0] = sequence_extent(c);
  k->grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  k->grid[2] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->block = plan.consumers * 128 + plan.producers * 32;
  k->lds_bytes = plan.lds_bytes;
  add_decode_arguments(c, k);
  describe_merge(c, out_descriptor);
  ring_fences fences = {{c, t, out_descriptor, templates, errors}, &plan};
  return template_fill(templates, "decode_ring.hip", fill, &fences, out_source, errors);
}
