/* What the plan found, in sentences: the head of emitted source and `heddle plan` say the same. */
#include "plan.h"

static void write_operand(const char *side, const matrix_op *op, bool widen, dtype stored, const char *mark,
                          text *out) {
  text_addf(out, "%s  %s: %s, ", mark, side, op->name);
  if (widen)
    text_addf(out, "stored %s widened to %s, exactly.\n", dtype_name(stored), dtype_name(op->operand));
  else
    text_add(out, "operands as stored.\n");
}

static void write_pieces(const char *name, const piece_order *o, const char *mark, text *out) {
  text_addf(out, "%s%s: pieces of %d %s of one %s, neighbours in memory along %s; %d copies a tile.\n", mark,
            name, o->tokens > 1 ? o->tokens : o->channels, o->tokens > 1 ? "tokens" : "channels",
            o->tokens > 1 ? "channel" : "token", o->tokens_first ? "tokens" : "channels", o->copies);
}

static void write_structure(const decode_plan *p, const char *mark, text *out) {
  const staged_plan *s = &p->staged;
  if (p->structure != STRUCTURE_RING) {
    if (*p->structure_reason)
      text_addf(out, "%sStructure: direct to registers, since %s.\n", mark, p->structure_reason);
    return;
  }
  text_addf(out,
            "%sStructure: a ring of %d stages of %d tokens in LDS for each wave, %d bytes; %d tokens of a "
            "tile share a page.\n",
            mark, s->stages, p->tile, s->ring_bytes, s->stretch);
  write_pieces("K", &s->k, mark, out);
  write_pieces("V", &s->v, mark, out);
}

void plan_write_summary(const contract *c, const decode_plan *p, const char *mark, text *out) {
  const matrix_op *op = p->op;
  int bytes = dtype_bytes(c->kv.k_dtype), v_bytes = dtype_bytes(c->kv.v_dtype);
  int k_load = p->k_load * bytes, v_load = (p->v_channels > 1 ? p->v_channels : p->v_tokens) * v_bytes;
  write_structure(p, mark, out);
  text_addf(out, "%sProducts: %d %s rows x %d columns; q in %d part%s, weights in %d%s.\n", mark, op->rows,
            "token or channel", op->columns, p->q_parts, p->q_parts > 1 ? "s" : "", p->p_parts,
            p->folded ? ", parts side by side in one product" : "");
  write_operand("K", op, p->widen, c->kv.k_dtype, mark, out);
  write_operand("V", p->value_op, p->value_widen, c->kv.v_dtype, mark, out);
  if (p->tail_op)
    write_operand(p->tail_value_op ? "The tail of both" : "K's tail", p->tail_op, false, c->kv.tail.dtype,
                  mark, out);
  if (p->column_groups > 1 || p->slices > 1)
    text_addf(out, "%sTo save registers %d workgroup%s share%s the queries and %d the channels of V.\n", mark,
              p->column_groups, p->column_groups > 1 ? "s" : "", p->column_groups > 1 ? "" : "s", p->slices);
  if (p->line)
    text_addf(out, "%sThe line of tiles is cut into parts for %d workgroup%s a compute unit.\n", mark, p->resident,
              p->resident > 1 ? "s" : "");
  text_addf(out, "%sTile: %d tokens a wave, %d a lane group; %d waves.\n", mark, p->tile, p->list, p->waves);
  text_addf(out, "%sK: loads of %d bytes along channels, straight into fragments.\n", mark, k_load);
  if (p->k_pieces > 1)
    text_addf(out, "%sTo save registers K is loaded in %d pieces of %d channels, two at a time.\n", mark,
              p->k_pieces, p->k_list / p->k_pieces * op->groups);
  if (p->v_channels > 1)
    text_addf(out, "%sV: loads of %d bytes along channels, transposed in registers by byte permutes.\n", mark,
              v_load);
  else
    text_addf(out, "%sV: loads of %d bytes along tokens, straight into fragments.\n", mark, v_load);
  if (k_load < 16 || v_load < 16)
    text_addf(out, "%sLoads narrower than 16 bytes: %s.\n", mark,
              k_load < 16 && v_load < 16 ? "K and V"
              : k_load < 16              ? "K"
                                         : "V");
  text_addf(out, "%sLoads are requested %s; the query stays in %s.\n", mark,
            p->early_loads ? "as early as their place is free" : "late, to save registers",
            p->query_in_lds ? "LDS" : "registers");
  if (p->structure != STRUCTURE_RING && p->steady)
    text_addf(out,
              "%sPage ids come two tiles ahead, K and scales one; a wave's last tile, with nothing to request, "
              "has code of its own.\n",
              mark);
  text_addf(out, "%sThe waves meet in LDS with %d of their %d channel tiles at a time.\n", mark, p->exchange,
            p->blocks * plan_output_tiles(p));
  text_addf(out, "%sVector registers, estimated: %d of %d.\n", mark, p->registers, p->target->vgprs);
}

/* What one copy takes. */
static void write_ring_copies(const ring_plan *p, const char *mark, text *out) {
  if (p->by_rows && p->bulk)
    text_addf(out, "%sCopies: the rows of %d tokens of K and of V.\n", mark, p->piece);
  else if (p->by_rows)
    text_addf(out, "%sCopies: 16 bytes of a row of K and of V, by every lane of the producers.\n", mark);
  else if (p->k_slices == 1)
    text_addf(out, "%sCopies: %d tokens of K and of V.\n", mark, p->piece);
  else
    text_addf(out, "%sCopies: %d tokens of 16 bytes of K's channels, %d of them, and as many tokens of V.\n",
              mark, p->piece, p->k_slices);
}

static void write_ring_side(const char *side, dtype stored, dtype operand, const char *other, int parts,
                            const char *mark, text *out) {
  text_addf(out, "%s%s: %s", mark, side, dtype_name(stored));
  if (stored != operand) text_addf(out, " widened to %s, exactly", dtype_name(operand));
  text_addf(out, "; %s in %d part%s of %s.\n", other, parts, parts > 1 ? "s" : "", dtype_name(operand));
}

void plan_write_ring_summary(const contract *c, const ring_plan *p, const char *mark, text *out) {
  text_addf(out,
            "%sStructure: a ring of %d stages of %d tokens in shared memory, %d bytes; %d "
            "warpgroup%s to compute, %d workgroup%s a compute unit.\n",
            mark, p->stages, p->tile, p->lds_bytes, p->consumers, p->consumers > 1 ? "s" : "", p->resident,
            p->resident > 1 ? "s" : "");
  write_ring_copies(p, mark, out);
  write_ring_side("K", c->kv.k_dtype, p->k_operand, "the query", p->q_parts, mark, out);
  write_ring_side("V", c->kv.v_dtype, p->v_operand, "weights", p->p_parts, mark, out);
  text_addf(out, "%sColumns: %d query heads in %d.\n", mark, c->query.heads_per_kv, p->column_heads);
}
