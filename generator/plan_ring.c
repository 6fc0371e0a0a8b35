#include "plan.h"

/* Tokens of a stage: as many as give it some 32 KB; bytes that a lane names for a fragment;
 * channels or tokens of a product. */
enum { LONG_TILE = 128, SHORT_TILE = 64, LONG_TILE_BYTES = 256, CHUNK_BYTES = 16, CHUNK = 16 };

/* Warps that copy. */
enum { PRODUCERS = 4 };

/* Bytes of a copy that leave memory busy: a compute unit begins one in some 10 ns. */
enum { LEAST_COPY = 1 << 10 };

/* Bytes that are on their way to a compute unit, about; what the device takes of every workgroup's LDS. */
enum { STAGES_BYTES = 140 << 10, RESERVED_LDS = 1 << 10 };

/* Registers of a compute unit, those of them that a workgroup of the merge kernel needs to be there early,
 * and what a producer's thread keeps of its share, by bulk copies and by small ones: the rest goes to the
 * consumers. */
enum {
  REGISTERS = 64 << 10,
  MERGE_REGISTERS = 9 << 10,
  BULK_REGISTERS = 40,
  UNIT_REGISTERS = 56,
  MOST_REGISTERS = 144
};

static int64_t inner(const layout *l, int64_t slot, int64_t channel) {
  return layout_offset(l, 0, 0, 1, 0, 0, slot, channel);
}

/* K in blocks of 8 x 16 bytes: 16 bytes of a token's channels lie together, the next token's follow, chunks
 * have one stride, in elements. */
static bool k_in_blocks(const contract *c, int64_t *out_chunk_stride) {
  const layout *l = &c->kv.k;
  int chunk = CHUNK_BYTES / dtype_bytes(c->kv.k_dtype);
  int64_t stride = inner(l, 0, chunk);
  for (int s = 0; s < c->kv.page; s++)
    if (inner(l, s, 0) != (int64_t)s * chunk) return false;
  for (int d = 0; d < c->head_dim.qk; d++)
    if (inner(l, 0, d) != d / chunk * stride + d % chunk) return false;
  *out_chunk_stride = stride;
  return !layout_outside_head(l);
}

/* V transposed: 16 bytes of a channel's tokens lie together. Either the next channel's follow, then the next
 * tokens; or, in pages of two chunks, the next tokens. `out_channel_stride` is in elements. */
static bool v_in_blocks(const contract *c, int64_t *out_channel_stride) {
  const layout *l = &c->kv.v;
  int chunk = CHUNK_BYTES / dtype_bytes(c->kv.v_dtype);
  int64_t channel = inner(l, 0, 1), next = channel == chunk ? (int64_t)chunk * c->head_dim.v : chunk;
  if (channel != chunk && (channel != c->kv.page || c->kv.page != 2 * chunk)) return false;
  for (int s = 0; s < c->kv.page; s++)
    if (inner(l, s, 0) != s / chunk * next + s % chunk) return false;
  for (int d = 0; d < c->head_dim.v; d++)
    if (inner(l, 0, d) != d * channel) return false;
  *out_channel_stride = channel;
  return !layout_outside_head(l);
}

static bool in_blocks(const contract *c) {
  int64_t stride;
  return k_in_blocks(c, &stride) && v_in_blocks(c, &stride);
}

/* The channels of a token lie together. */
static bool in_rows(const contract *c) {
  return layout_run(&c->kv.k, AXIS_D) == c->head_dim.qk && layout_run(&c->kv.v, AXIS_D) == c->head_dim.v;
}

/* The next token's channels follow. */
static bool rows_follow(const contract *c, const layout *l, int channels) {
  for (int s = 0; s < c->kv.page; s++)
    if (inner(l, s, 0) != (int64_t)s * channels) return false;
  return !layout_outside_head(l);
}

static int tile_of(const contract *c) {
  int bytes = c->head_dim.qk * dtype_bytes(c->kv.k_dtype) + c->head_dim.v * dtype_bytes(c->kv.v_dtype);
  return bytes > LONG_TILE_BYTES ? SHORT_TILE : LONG_TILE;
}

/* Tokens of rows that one copy takes. */
static int rows_together(const contract *c, int tile) {
  bool follow = rows_follow(c, &c->kv.k, c->head_dim.qk) && rows_follow(c, &c->kv.v, c->head_dim.v);
  return follow ? plan_gcd(c->kv.page, tile) : 1;
}

/* Rows of which so few lie together are copied 16 bytes at a time, by all producers' lanes. */
static bool rows_are_short(const contract *c, int tile) {
  int tokens = rows_together(c, tile);
  return tokens * c->head_dim.qk * dtype_bytes(c->kv.k_dtype) < LEAST_COPY ||
         tokens * c->head_dim.v * dtype_bytes(c->kv.v_dtype) < LEAST_COPY;
}

const char *ring_obstacle(const contract *c, const target *t) {
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
  if (c->query.heads_per_kv > 16) return "the ring holds 16 query heads per kv head";
  if (c->head_dim.qk != 64 && c->head_dim.qk != 128) return "the ring takes head_dim.qk 64 or 128";
  if (c->head_dim.v != 64 && c->head_dim.v != 128) return "the ring takes head_dim.v 64 or 128";
  if (layout_is_padded(&c->kv.k) || layout_is_padded(&c->kv.v))
    return "the ring copies pages without anything between";
  if (!in_blocks(c) && !in_rows(c))
    return "K and V lie neither in 16-byte blocks of [.., d/x, s, d%x] and [.., s/x, d, s%x], nor token by "
           "token";
  if (in_blocks(c) && c->kv.page % 16 != 0) return "the page is not a multiple of 16 tokens";
  if (!in_blocks(c) && rows_are_short(c, SHORT_TILE) &&
      c->head_dim.qk * dtype_bytes(c->kv.k_dtype) != c->head_dim.v * dtype_bytes(c->kv.v_dtype))
    return "the ring copies token by token only where rows of K and V have one length";
  if (c->scale.granularity == SCALE_TOKEN_HEAD) {
    if (c->scale.dtype != DTYPE_FP32) return "the ring copies fp32 scales";
    if (c->kv.page % 4 != 0) return "the scales of a page are not a multiple of 16 bytes";
    if (layout_run(&c->scale.k, AXIS_S) != c->kv.page || layout_run(&c->scale.v, AXIS_S) != c->kv.page)
      return "the scales of a page's tokens do not lie together";
  }
  return NULL;
}

static int stage_bytes(const contract *c, const ring_plan *p) {
  int scales = c->scale.granularity == SCALE_TOKEN_HEAD ? 2 * p->tile * 4 : 0;
  return p->k.bytes + p->v.bytes + scales;
}

/* Bytes of dynamic shared memory: as templates/decode_ring.hip lays them out. */
static int shared_bytes(const contract *c, const ring_plan *p) {
  int chunks = (p->q_parts * c->head_dim.qk + p->p_parts * p->tile) / CHUNK,
      operands = chunks * (2 * p->column_heads + 1) * 16, rows = 4 * (2 * 4 + 4 + 1 + 3) * p->column_heads;
  int items = p->consumers * 2 * (2 * c->query.heads_per_kv * c->head_dim.qk + 48);
  int exchange = (p->consumers - 1) * c->head_dim.v * p->column_heads * 4;
  int barriers = (3 * 8 * p->stages + 127) / 128 * 128;
  return barriers + p->stages * stage_bytes(c, p) + p->consumers * (operands + rows) + items + exchange;
}

/* All warpgroups start with as many registers; then those that copy give theirs to those that compute. */
static void plan_ring_registers(ring_plan *p) {
  int groups = p->consumers + 1, share = (REGISTERS - MERGE_REGISTERS) / (p->threads * p->resident) / 8 * 8;
  if (share > MOST_REGISTERS) share = MOST_REGISTERS;
  p->thread_registers = share;
  int kept = p->bulk ? BULK_REGISTERS : UNIT_REGISTERS;
  p->consumer_registers = (groups * share - kept) / p->consumers / 8 * 8;
  p->producer_registers = groups * share - p->consumers * p->consumer_registers;
}

/* Blocks stay as they are. A page of K is copied whole, else as many tokens of each 16 bytes of channels. */
static void plan_blocks(const contract *c, ring_plan *p) {
  int64_t chunk_stride, channel_stride;
  (void)k_in_blocks(c, &chunk_stride);
  (void)v_in_blocks(c, &channel_stride);
  int bytes = dtype_bytes(c->kv.k_dtype), row = c->head_dim.qk * bytes;
  p->piece = plan_gcd(c->kv.page, p->tile);
  bool whole = c->kv.page == p->piece && chunk_stride * bytes == (int64_t)c->kv.page * CHUNK_BYTES;
  int tokens = whole ? p->piece : p->tile;
  p->k_slices = whole ? 1 : row / CHUNK_BYTES;
  p->k = (ring_place){.tokens = tokens,
                      .stride = tokens * row,
                      .chunk = 1,
                      .chunk_stride = CHUNK_BYTES,
                      .channel_stride = tokens * CHUNK_BYTES,
                      .bytes = p->tile * row};
  bytes = dtype_bytes(c->kv.v_dtype), row = c->head_dim.v * bytes;
  int chunk = CHUNK_BYTES / bytes;
  bool columns = channel_stride != chunk;
  p->v = (ring_place){.tokens = p->piece,
                      .stride = p->piece * row,
                      .chunk = chunk,
                      .chunk_stride = columns ? CHUNK_BYTES : chunk * row,
                      .channel_stride = (int)channel_stride * bytes,
                      .bytes = p->tile * row};
}

/* Rows stay as they are too. */
static ring_place rows_in_stage(int tile, int row, int channel_stride) {
  return (ring_place){tile, tile * row, 1, row, channel_stride, tile * row};
}

static void plan_rows(const contract *c, ring_plan *p) {
  int k = dtype_bytes(c->kv.k_dtype), v = dtype_bytes(c->kv.v_dtype);
  p->by_rows = true;
  p->bulk = !rows_are_short(c, p->tile);
  p->piece = p->bulk ? rows_together(c, p->tile) : plan_gcd(c->kv.page, p->tile / PRODUCERS);
  p->k_slices = 1;
  p->k = rows_in_stage(p->tile, c->head_dim.qk * k, CHUNK_BYTES);
  p->v = rows_in_stage(p->tile, c->head_dim.v * v, v);
}

static void plan_operands(const contract *c, ring_plan *p) {
  dtype k = c->kv.k_dtype, v = c->kv.v_dtype;
  p->k_operand = dtype_bytes(k) == 1 ? DTYPE_FP16 : k;
  p->v_operand = dtype_bytes(v) == 1 ? DTYPE_FP16 : v;
  p->q_parts = p->k_operand == DTYPE_BF16 && c->query.dtype == DTYPE_FP16 ? 2 : 1;
  p->p_parts = p->v_operand == DTYPE_BF16 ? 2 : 1;
}

hd_status plan_ring(const contract *c, const variant *v, const target *t, ring_plan *out_plan,
                    diags *errors) {
  ring_plan p = {.target = t, .producers = PRODUCERS, .bulk = true};
  p.tile = v->tile ? v->tile : tile_of(c);
  if (p.tile != SHORT_TILE && p.tile != LONG_TILE) {
    diags_decline_number(errors, "decline.tile", "tune.tile", p.tile, "%d or %d in a ring", SHORT_TILE,
                         LONG_TILE);
    return HD_DECLINED;
  }
  plan_operands(c, &p);
  if (in_blocks(c))
    plan_blocks(c, &p);
  else
    plan_rows(c, &p);
  p.column_heads = c->query.heads_per_kv <= 8 ? 8 : 16;
  p.consumers = v->waves ? v->waves / 4 : p.bulk ? 2 : 1; /* or too few lanes copy */
  if (p.consumers < 1 || p.consumers > 2 || (v->waves && v->waves % 4 != 0)) {
    diags_decline_number(errors, "decline.waves", "tune.waves", v->waves, "4 or 8 in a ring");
    return HD_DECLINED;
  }
  p.resident = v->resident ? v->resident : p.consumers == 1 ? 2 : 1;
  p.threads = (p.consumers + 1) * 128;
  plan_ring_registers(&p);
  if (p.producer_registers > p.thread_registers) {
    diags_decline_number(errors, "decline.registers", "tune.resident", p.resident,
                         "fewer: the %d registers of a thread are less than the %d that one needs to copy",
                         p.thread_registers, p.producer_registers);
    return HD_DECLINED;
  }
  p.stages =
      v->stages ? v->stages : STAGES_BYTES / p.resident / stage_bytes(c, &p) / p.consumers * p.consumers;
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
