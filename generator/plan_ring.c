#include "plan.h"

/* Tokens of a stage, rows of a product, tokens or channels of a 16-byte chunk. */
enum { TILE = 128, CHUNK = 16 };

/* Bytes that are on their way to a compute unit, about; what the device takes of every workgroup's LDS. */
enum { STAGES_BYTES = 140 << 10, RESERVED_LDS = 1 << 10 };

/* Registers of a compute unit, those of them that a workgroup of the merge kernel needs to be there early,
 * and what a producer's thread keeps of its share: the rest goes to the consumers. */
enum { REGISTERS = 64 << 10, MERGE_REGISTERS = 9 << 10, PRODUCER_REGISTERS = 40, MOST_REGISTERS = 144 };

static int64_t inner(const layout *l, int64_t slot, int64_t channel) {
  return layout_offset(l, 0, 0, 1, 0, 0, slot, channel);
}

/* K as 8 x 16-byte blocks: 16 channels of a token lie together, the next token's follow, chunks have one
 * stride. */
static bool k_in_blocks(const contract *c, int64_t *out_chunk_stride) {
  const layout *l = &c->kv.k;
  int64_t stride = inner(l, 0, CHUNK);
  for (int s = 0; s < c->kv.page; s++)
    if (inner(l, s, 0) != (int64_t)s * CHUNK) return false;
  for (int d = 0; d < c->head_dim.qk; d++)
    if (inner(l, 0, d) != d / CHUNK * stride + d % CHUNK) return false;
  *out_chunk_stride = stride;
  return !layout_outside_head(l);
}

/* V transposed in blocks: 16 tokens of a channel lie together, the next channel's follow, then the next
 * tokens. */
static bool v_in_blocks(const contract *c) {
  const layout *l = &c->kv.v;
  for (int s = 0; s < c->kv.page; s++)
    if (inner(l, s, 0) != (int64_t)(s / CHUNK) * CHUNK * c->head_dim.v + s % CHUNK) return false;
  for (int d = 0; d < c->head_dim.v; d++)
    if (inner(l, 0, d) != (int64_t)d * CHUNK) return false;
  return !layout_outside_head(l);
}

const char *ring_obstacle(const contract *c, const target *t) {
  int64_t chunk_stride;
  if (!t->ring_prelude) return "the ring is not built for this target";
  if (dtype_bytes(c->query.dtype) != 2) return "the ring takes 16-bit queries";
  if (c->kv.v_in_k || c->kv.tail.channels || c->scale.inside)
    return "the ring takes K, V and their scales in memory of their own";
  if (c->query.rows != 1 && !contract_makes_lists(c)) return "the ring takes one query row a sequence";
  if (c->select.index != DTYPE_INT32) return "the ring takes int32 pages";
  if (!contract_makes_lists(c) && (c->select.form != SELECT_TABLE || c->select.per != PER_SEQUENCE))
    return "the ring takes a page table for each sequence, or lists made of blocks or tokens";
  if (c->mask.window || c->mask.sinks || c->logits.softcap > 0)
    return "the ring has no window, sinks or softcap";
  if (c->scale.granularity != SCALE_NONE && c->scale.granularity != SCALE_TENSOR &&
      c->scale.granularity != SCALE_TOKEN_HEAD)
    return "the ring takes scales of the tensor, or of each token and head";
  if (c->kv.k_dtype != DTYPE_FP8_E4M3FN || c->kv.v_dtype != DTYPE_FP8_E4M3FN)
    return "the ring's products take e4m3fn K and V";
  if (c->query.heads_per_kv > 16) return "the ring holds 16 query heads per kv head";
  if (c->head_dim.qk != 64 && c->head_dim.qk != 128) return "the ring takes head_dim.qk 64 or 128";
  if (c->head_dim.v != 64 && c->head_dim.v != 128) return "the ring takes head_dim.v 64 or 128";
  if (layout_is_padded(&c->kv.k) || layout_is_padded(&c->kv.v) || c->scale.inside)
    return "the ring copies pages without anything between";
  if (c->kv.page % CHUNK != 0) return "the page is not a multiple of 16 tokens";
  if (!k_in_blocks(c, &chunk_stride)) return "K does not lie as [.., d/16, s, d%16]";
  if (!v_in_blocks(c)) return "V does not lie as [.., s/16, d, s%16]";
  if (c->scale.granularity == SCALE_TOKEN_HEAD) {
    if (c->scale.dtype != DTYPE_FP32) return "the ring copies fp32 scales";
    if (layout_run(&c->scale.k, AXIS_S) != c->kv.page || layout_run(&c->scale.v, AXIS_S) != c->kv.page)
      return "the scales of a page's tokens do not lie together";
  }
  return NULL;
}

static int stage_bytes(const contract *c) {
  int scales = c->scale.granularity == SCALE_TOKEN_HEAD ? 2 * TILE * 4 : 0;
  return TILE * (c->head_dim.qk + c->head_dim.v) + scales;
}

/* Bytes of dynamic shared memory: as templates/decode_ring.hip lays them out. */
static int shared_bytes(const contract *c, const ring_plan *p) {
  int operands = (c->head_dim.qk + TILE) / CHUNK * (2 * p->column_heads + 1) * CHUNK,
      rows = 4 * (2 * 4 + 4 + 1 + 3) * p->column_heads;
  int items = 2 * (2 * c->query.heads_per_kv * c->head_dim.qk + 48);
  int exchange = (p->consumers - 1) * c->head_dim.v * p->column_heads * 4;
  return 256 + p->stages * stage_bytes(c) + p->consumers * (operands + rows) + items + exchange;
}

/* All warpgroups start with as many registers; then those that copy give theirs to those that compute. */
static void plan_ring_registers(ring_plan *p) {
  int groups = p->consumers + 1, share = (REGISTERS - MERGE_REGISTERS) / (p->threads * p->resident) / 8 * 8;
  if (share > MOST_REGISTERS) share = MOST_REGISTERS;
  p->thread_registers = share;
  p->consumer_registers = (groups * share - PRODUCER_REGISTERS) / p->consumers / 8 * 8;
  p->producer_registers = groups * share - p->consumers * p->consumer_registers;
}

hd_status plan_ring(const contract *c, const variant *v, const target *t, ring_plan *out_plan,
                    diags *errors) {
  ring_plan p = {.target = t, .tile = TILE};
  int64_t chunk_stride;
  (void)k_in_blocks(c, &chunk_stride);
  p.piece = plan_gcd(c->kv.page, TILE);
  bool whole = c->kv.page == p.piece && chunk_stride == (int64_t)c->kv.page * CHUNK;
  p.k_slices = whole ? 1 : c->head_dim.qk / CHUNK;
  p.k_leading = (whole ? p.piece : TILE) * CHUNK;
  p.k_tokens = whole ? p.piece : TILE;
  p.k_stride = p.k_tokens * c->head_dim.qk;
  p.column_heads = c->query.heads_per_kv <= 8 ? 8 : 16;
  p.consumers = v->waves ? v->waves / 4 : 2;
  if (p.consumers < 1 || p.consumers > 2 || (v->waves && v->waves % 4 != 0)) {
    diags_decline_number(errors, "decline.waves", "tune.waves", v->waves, "4 or 8 in a ring");
    return HD_DECLINED;
  }
  p.resident = v->resident ? v->resident : p.consumers == 1 ? 2 : 1;
  p.threads = (p.consumers + 1) * 128;
  plan_ring_registers(&p);
  p.stages = v->stages ? v->stages : STAGES_BYTES / p.resident / stage_bytes(c) / p.consumers * p.consumers;
  /* A stage belongs to one consumer: one that waits for a stage another used before would take that use for
   * its own. */
  if (p.stages < 1 || p.stages % p.consumers != 0) {
    diags_decline_number(errors, "decline.stages", "tune.stages", p.stages, "a multiple of the %d consumers",
                         p.consumers);
    return HD_DECLINED;
  }
  p.lds_bytes = shared_bytes(c, &p);
  if ((p.lds_bytes + RESERVED_LDS) * p.resident > t->lds_bytes + RESERVED_LDS) {
    diags_decline_number(errors, "decline.stages", "tune.stages", p.stages,
                         "what fits %d bytes of LDS on %s: %d workgroup%s of these need%s %d each",
                         t->lds_bytes, t->name, p.resident, p.resident > 1 ? "s" : "",
                         p.resident > 1 ? "" : "s", p.lds_bytes);
    return HD_DECLINED;
  }
  *out_plan = p;
  return HD_OK;
}
