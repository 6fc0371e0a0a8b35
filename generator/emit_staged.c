/* The ring on AMD targets: what it adds to the decode template. */
#include "emit_attention.h"

#include <string.h>

static bool is_staged(const decode_plan *p) {
  return p->structure == STRUCTURE_RING;
}

static void write_order(const char *name, const piece_order *o, const char *head_dim, text *out) {
  text_addf(out, "typedef piece_order<%d, %d, %s, %s", o->tokens, o->channels, head_dim,
            o->tokens_first ? "true" : "false");
  for (int bit = 0; bit < TURNED_BITS; bit++)
    text_addf(out, ", %d", o->turn[bit]);
  text_addf(out, ", %d> %s;\n", o->pad, name);
}

void write_staged_shape(const decode_plan *p, text *out) {
  const staged_plan *s = &p->staged;
  if (!is_staged(p)) {
    write_int(out, "STAGES", 0);
    return;
  }
  text_add(out, "\n// The ring: a stage holds a tile; tokens of a share lie in one page.\n");
  write_int(out, "STAGES", s->stages);
  write_int(out, "PIECE", 16);
  write_int(out, "STRETCH", s->stretch);
  write_int(out, "STRETCHES", s->stretches);
  write_int(out, "K_COPIES", s->k.copies);
  write_int(out, "V_COPIES", s->v.copies);
  write_int(out, "COPIES", s->copies);
  write_int(out, "STAGE_PIECES", s->stage_bytes / 16);
  write_int(out, "RING_PIECES", s->ring_bytes / 16);
}

typedef struct staged_fences {
  const attention_fences *shared;
  const decode_plan *plan;
} staged_fences;

static bool fill(void *user, const char *name, text *out) {
  const staged_fences *f = user;
  if (strcmp(name, "copies prelude") == 0)
    return template_copy(f->shared->templates, f->plan->target->ring_prelude, out, f->shared->errors) ==
           HD_OK;
  if (strcmp(name, "orders") == 0) {
    write_order("k_order", &f->plan->staged.k, "HEAD_DIM_QK", out);
    write_order("v_order", &f->plan->staged.v, "HEAD_DIM_V", out);
    return true;
  }
  if (strcmp(name, "scales") == 0)
    return !contract_token_scales(f->shared->contract) ||
           template_copy(f->shared->templates, "decode_staged_scales.hip", out, f->shared->errors) == HD_OK;
  return false;
}

/* ---- In the kernel ---- */

static void write_ring(const contract *c, text *out) {
  text_add(out, "  SHARED u32x4 ring[WAVES][RING_PIECES];\n"
                "  const u32 ring_at = lds_address(ring[wave]);\n"
                "  tile_stretches stretches; // pages of the next tile to be requested\n"
                "  int next = tile, next_stage = 0, stage = 0;\n"
                "  const lane_places places = find_places(k_heads_stride, v_heads_stride, lane);\n"
                "  const auto request = [&]() __attribute__((always_inline)) {\n"
                "    if (next >= end) return;\n"
                "    const u32 to = ring_at + (u32)(next_stage * STAGE_PIECES * PIECE);\n"
                "    wait_for_lds(); // the stage has been read\n"
                "    request_k(to, stretches, places, k_head, k_stride_b, k_heads_stride, next, lane);\n");
  if (contract_token_scales(c))
    text_add(out, "    request_scales(to, stretches, k_scale_head, v_scale_head, k_scale_stride_b, "
                  "k_scale_heads_stride, v_scale_stride_b,\n"
                  "                   v_scale_heads_stride, next, index, group, lane);\n");
  text_add(out, "    request_v(to, stretches, places, v_head, v_stride_b, v_heads_stride, next, lane);\n"
                "    next += WAVES;\n"
                "    next_stage = next_stage + 1 < STAGES ? next_stage + 1 : 0;\n"
                "    if (next < end) find_pages(stretches, table, next, seen);\n"
                "  };\n"
                "  if (tile < end) find_pages(stretches, table, tile, seen);\n"
                "  UNROLL for (int n = 1; n < STAGES; n++) request();\n"
                "  const u32x4 *landed; // the tile\n"
                "  int behind; // tiles requested behind it\n");
}

static void write_keys(const contract *c, text *out) {
  text_add(out, "    request();\n"
                "    landed = ring[wave] + stage * STAGE_PIECES;\n"
                "    behind = (next - tile) / WAVES - 1;\n"
                "    wait_for_tile<V_COPIES>(behind);\n"
                "    take_k(words, landed, index, group);\n");
  if (contract_token_scales(c)) text_add(out, "    take_scales(scales, landed, lane);\n");
}

static void write_values(text *out) {
  text_add(out, "    wait_for_tile<0>(behind);\n"
                "    take_v(words, landed, index, group);\n");
}

/* The waves meet where their rings were: each in its own, so none waits for another. */
static void write_outputs(const decode_plan *p, text *out) {
  if (is_staged(p))
    text_add(out, "  typedef float outputs_t[WAVES][RING_PIECES * PIECE / 4 / WAVE][WAVE];\n"
                  "  outputs_t &shared_output = *(outputs_t *)ring; // each wave's in its own part\n"
                  "  asm volatile(\"\" ::: \"memory\");\n");
  else
    text_add(out, "  SHARED float shared_output[WAVES][EXCHANGE * PER_LANE * RUN][WAVE];\n");
}

bool fill_staged(const attention_fences *f, const decode_plan *p, const char *name, text *out) {
  const contract *c = f->contract;
  staged_fences fences = {f, p};
  if (strcmp(name, "shared_output") == 0)
    write_outputs(p, out);
  else if (strncmp(name, "staged ", 7) != 0)
    return false;
  else if (!is_staged(p))
    return true;
  else if (strcmp(name, "staged functions") == 0)
    return template_fill(f->templates, "decode_staged.hip", fill, &fences, out, f->errors) == HD_OK;
  else if (strcmp(name, "staged first") == 0)
    write_ring(c, out);
  else if (strcmp(name, "staged keys") == 0)
    write_keys(c, out);
  else if (strcmp(name, "staged values") == 0)
    write_values(out);
  else if (strcmp(name, "staged next") == 0)
    text_add(out, "    stage = stage + 1 < STAGES ? stage + 1 : 0;\n");
  else
    return false;
  return true;
}
