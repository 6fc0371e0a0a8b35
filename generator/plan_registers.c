#include "plan_internal.h"

/* Addresses, page ids and temporaries; from the code objects of the shipped specs. */
enum { WORKING_REGISTERS = 84 };

/* Blocks of columns that a workgroup takes at most: every one makes the unrolled tile longer. */
enum { MOST_BLOCKS = 4 };

/* Pieces of K at most, and SIMDs of a compute unit, workgroup processor or SM. */
enum { MOST_PIECES = 9, SIMDS = 4 };

/* Page ids a lane that are worth registers a second time. */
enum { MOST_STEADY_IDS = 8 };

int lds_beside_outputs(const decode_plan *p, int waves) {
  const matrix_op *op = p->op;
  int rows = p->blocks * op->columns_per_lane * op->rows * (2 + plan_output_parts(p)) * 4;
  int fragment = op->elements * dtype_bytes(op->operand) * op->columns_per_lane;
  int fragments = p->blocks * (p->folded ? 1 : p->q_parts) * (p->k_list / op->elements);
  return waves * rows + (p->query_in_lds ? fragments * fragment * p->target->wave : 0);
}

/* What the template's SHARED arrays take: `exchange` tiles of outputs and the numbers of a row and column of
 * every wave, and the query. */
static int lds_bytes(const decode_plan *p, int exchange, int waves) {
  const matrix_op *op = p->op;
  int outputs = exchange * op->columns_per_lane * op->row_run * p->target->wave * 4;
  return waves * outputs + lds_beside_outputs(p, waves);
}

/* A CUDA kernel declares at most 48 KB of static shared memory, whatever the SM has. */
static int lds_limit(const target *t) {
  return t->family == FAMILY_CUDA ? 48 * 1024 : t->lds_bytes;
}

/* Values of V that are stored one way: its codes, or what it has of the tail. */
typedef struct stored_values {
  const layout *layout;
  int64_t at;                /* bytes from the start of a page */
  int bytes, channels, part; /* of an element; of a head; those that share a scale, or all */
} stored_values;

/* Their channel tiles in all workgroups, and whether loads run along tokens (the fragment's own axis) or
 * along channels. Loads along channels may fill the tiles up beyond the last, so that they stay wide. */
static void plan_values(const decode_plan *p, const stored_values *v, int *out_tiles, int *out_tokens,
                        int *out_channels) {
  int rows = p->op->rows, widest = 16 / v->bytes;
  if (v->at > 0) widest = smallest(widest, power_of_two_in(v->at) / v->bytes);
  int along = smallest(widest, power_of_two_in(layout_aligned_run(v->layout, AXIS_S)));
  along = smallest(along, p->own_run);
  int run = smallest(widest, power_of_two_in(layout_aligned_run(v->layout, AXIS_D)));
  int tiles = round_up(v->channels, rows) / rows, channels = 1, least = INT32_MAX;
  for (int across = run; across * v->bytes >= 4 && across > along; across /= 2) {
    if (v->part < v->channels && v->part % (across * rows) != 0)
      continue; /* a tile has one group of channels */
    int padded = round_up(v->channels, rows * across * p->slices) / rows;
    int cost = 4 * padded / across + padded; /* a load and a product of one list, as instructions */
    if (cost < least) {
      least = cost;
      tiles = padded;
      channels = across;
    }
  }
  *out_tokens = channels > 1 ? 1 : along;
  *out_channels = channels;
  *out_tiles = tiles;
}

/* Tokens a lane's group owns and everything that follows from it. */
static void plan_tokens(const contract *c, decode_plan *p, int list) {
  const matrix_op *op = p->op;
  p->list = list;
  p->tile = list * op->groups;
  p->score_tiles = list / op->row_run;
  p->own_run = plan_gcd(c->kv.page, list);
  p->k_exact = p->own_run < op->row_run;
  const stored_values codes = {&c->kv.v, 0, dtype_bytes(c->kv.v_dtype), contract_coded_v(c), p->v_part};
  plan_values(p, &codes, &p->value_tiles, &p->v_tokens, &p->v_channels);
  if (!p->tail_value_op) return;
  int channels = c->head_dim.v - contract_coded_v(c);
  const stored_values tail = {&c->kv.tail.layout, c->kv.tail.at, dtype_bytes(c->kv.tail.dtype), channels,
                              channels};
  plan_values(p, &tail, &p->tail_tiles, &p->tail_tokens, &p->tail_channels);
}

/* V channels shared by `slices` workgroups; false where tiles or scale groups do not divide so. */
static bool plan_slices(const contract *c, decode_plan *p, int slices) {
  int tiles = p->value_tiles, rows = p->op->rows;
  p->slices = slices;
  p->value_tiles = round_up(tiles, slices * p->v_channels) / slices;
  if (p->tail_value_op) p->tail_tiles = round_up(p->tail_tiles, slices * p->tail_channels) / slices;
  if (p->v_part >= contract_coded_v(c)) p->v_part = slices * p->value_tiles * rows;
  int channels = p->value_tiles * rows;
  p->v_parts = largest(1, channels / p->v_part);
  return p->v_part % channels == 0 || channels % p->v_part == 0;
}

/* Registers that the words of a tile take while they are loaded: narrower loads have one each. */
static int loaded_registers(int bytes, int load) {
  return load < 4 ? bytes / load : bytes / 4;
}

static int page_ids(const contract *c, const decode_plan *p) {
  int scales = contract_token_scales(c) ? largest(1, p->list / p->op->rows) : 0;
  return p->list / p->own_run + (p->k_exact ? p->score_tiles : p->list / p->own_run) + scales;
}

/* What a wave may use: gfx1250 has more, but spills before they are used up. */
enum { MOST_REGISTERS = 512 };
static int register_limit(const target *t) {
  return smallest(t->vgprs, MOST_REGISTERS);
}

/* Several blocks, pieces and late loads fit only with room to spare: compilers hold more of them at a time
 * than is counted here, above all where accumulators have registers of their own. (Groups of channels that
 * share a scale are counted with such room.) On gfx1250 narrow loads and many blocks end as operands that
 * LLVM spills rather than move to the registers beyond the first 256. */
static int spare_registers(const contract *c, const decode_plan *p) {
  bool narrow = p->k_load * dtype_bytes(c->kv.k_dtype) < 4;
  if (p->target->vgprs > MOST_REGISTERS && (narrow || p->blocks > 2)) return p->registers / 4;
  if (p->k_pieces > 1 && p->k_parts == 1 && p->target->family == FAMILY_CDNA) return p->registers / 6;
  if (!p->early_loads) return p->registers / 12;
  if (p->k_parts > 1 && p->k_pieces > 1 && p->blocks == 1) return 0; /* one group's products at a time */
  return p->blocks > 1 || p->k_pieces > 1 ? p->registers / 16 : 0;
}

/* Whether requests can be ordered so that one is always on its way: page ids of two tiles at a time then.
 * Beside pieces of K, and on gfx1250 beside anything, there is room for that alone: else LLVM spills. sm_90
 * has its ring for that. */
static bool requests_steadily(const contract *c, const decode_plan *p) {
  bool pieces = p->k_pieces > 1;
  bool more = p->blocks > 1 || p->rows > 1 || p->line || c->mask.window > 0;
  if (p->target->family == FAMILY_CUDA || (pieces && p->crowded) || ((pieces || p->crowded) && more))
    return false;
  int ids = page_ids(c, p);
  return ids <= MOST_STEADY_IDS && p->registers + ids + spare_registers(c, p) <= register_limit(p->target);
}

/* Vector registers; where they are short, loads that come later and a query that stays in LDS. */
static void estimate_registers(const contract *c, decode_plan *p) {
  const matrix_op *op = p->op, *value_op = p->value_op;
  int k_bytes = dtype_bytes(c->kv.k_dtype), v_bytes = dtype_bytes(c->kv.v_dtype);
  int k_words = loaded_registers(p->score_tiles * p->k_list / p->k_pieces * p->k_buffers * k_bytes,
                                 p->k_load * k_bytes);
  int v_words = loaded_registers(p->value_tiles * p->list * v_bytes, p->v_tokens * p->v_channels * v_bytes);
  int scales = contract_token_scales(c) ? (p->k_parts + 2 * p->v_parts) * largest(1, p->list / op->rows) - 1 : 0;
  int q_fragments = p->folded ? 1 : p->q_parts, p_fragments = p->folded ? 1 : p->p_parts;
  int query = q_fragments * p->k_list * dtype_bytes(op->operand) / 4 * op->columns_per_lane;
  int scores = p->list * op->columns_per_lane;
  if (p->tail_value_op) {
    v_words += loaded_registers(p->tail_tiles * p->list * 2, p->tail_tokens * p->tail_channels * 2);
    p_fragments = p->folded ? 1 : largest(p_fragments, p->tail_p_parts);
  }
  int per_block = plan_output_tiles(p) * op->row_run + p->score_tiles * op->row_run +
                  p_fragments * p->list * dtype_bytes(value_op->operand) / 4 + plan_output_parts(p) - 1;
  per_block = per_block * op->columns_per_lane + query;
  if (p->tail_op) {
    int bytes = p->tail_list * 2, fragments = p->folded ? 1 : p->tail_parts;
    k_words += loaded_registers(p->score_tiles * bytes, p->tail_load * 2);
    per_block += fragments * bytes / 4 * op->columns_per_lane;
  }
  int keep = p->rows > 1 ? 40 + (p->v_channels > 1 ? p->list : p->list * v_bytes / 4) : 0;
  /* Compilers work on several groups of channels at a time, of K on those of a piece. */
  keep += (largest(1, p->k_parts / p->k_pieces) + plan_output_parts(p) - 2) * p->list;
  if (p->k_parts > 1 && !plan_parts_whole(p))
    keep += query * p->blocks; /* fragments with zeros outside a group */
  p->registers = k_words + v_words + scales + p->blocks * per_block + keep + largest(0, page_ids(c, p) - 8) +
                 WORKING_REGISTERS;
  int limit = register_limit(p->target);
  p->early_loads = p->k_pieces > 1 || p->registers <= limit;
  if (!p->early_loads)
    p->registers -= smallest(k_words / 2, p->blocks * scores); /* whose place the next K tile then takes */
  p->query_in_lds = p->registers + spare_registers(c, p) > limit - WORKING_REGISTERS / 4;
  if (p->query_in_lds) p->registers -= p->blocks * query;
  p->crowded = p->target->vgprs > MOST_REGISTERS;
  p->steady = requests_steadily(c, p);
}

static bool fits(const contract *c, const decode_plan *p) {
  if (lds_bytes(p, 1, 1) > lds_limit(p->target)) return false;
  if (p->blocks > 1 && (!p->early_loads || (p->query_in_lds && p->k_pieces == 1))) return false;
  return p->registers + spare_registers(c, p) <= register_limit(p->target);
}

/* Whether K's channels can be loaded in so many pieces: whole chunks and fragments, and whole groups of
 * channels where they have scales of their own. */
static bool plan_pieces(const contract *c, decode_plan *p, int pieces) {
  p->k_pieces = pieces;
  p->k_buffers = smallest(pieces, 2);
  if (p->k_list % (pieces * largest(p->k_chunk, p->op->elements)) != 0) return false;
  if (p->k_parts == 1 || pieces == 1) return true;
  return p->k_list * p->op->groups == contract_coded_k(c) && p->k_parts % pieces == 0;
}

/* One row of the search below; false where it is not possible or does not fit. */
static bool try_registers(const contract *c, decode_plan *p, int tokens, int slices, int pieces) {
  int v_part = p->v_part;
  p->slices = slices;
  if (!plan_pieces(c, p, pieces)) return false;
  plan_tokens(c, p, tokens);
  if (plan_slices(c, p, slices)) {
    estimate_registers(c, p);
    if (fits(c, p)) return true;
  }
  p->v_part = v_part;
  return false;
}

/* K whole or in pieces; where both would do, in pieces rather than late. */
static bool try_pieces(const contract *c, decode_plan *p, int tokens, int slices) {
  if (try_registers(c, p, tokens, slices, 1) && p->early_loads) return true;
  for (int pieces = 2; pieces <= MOST_PIECES; pieces++)
    if (try_registers(c, p, tokens, slices, pieces)) return true;
  return try_registers(c, p, tokens, slices, 1);
}

/* The first that fits the registers: short lists before K in pieces, pieces before fewer queries, fewer
 * queries before fewer channels, since K and V are then read again. */
bool plan_registers(const contract *c, decode_plan *p, int queries) {
  const matrix_op *op = p->op;
  int least = largest(p->value_op->elements, op->row_run);
  int list = largest(largest(least, op->elements), 16 / dtype_bytes(c->kv.v_dtype));
  if (p->most_list) list = smallest(list, p->most_list);
  int all_blocks = p->folded ? 1 : round_up(queries, op->columns) / op->columns;
  for (int slices = 1; slices <= 16; slices *= 2)
    for (int groups = 1; groups <= all_blocks; groups++) {
      p->blocks = (all_blocks + groups - 1) / groups;
      p->column_groups = (all_blocks + p->blocks - 1) / p->blocks;
      if (p->column_groups != groups || p->blocks > MOST_BLOCKS) continue;
      for (int tokens = list; tokens > least; tokens /= 2)
        if (try_registers(c, p, tokens, slices, 1)) return true;
      if (try_pieces(c, p, least, slices)) return true;
    }
  return false;
}

/* Workgroups that a unit's registers leave room for. */
static int resident(const decode_plan *p, int waves) {
  return largest(1, p->target->simd_vgprs / largest(p->registers, 1) * SIMDS / waves);
}

int plan_resident(const decode_plan *p) {
  return largest(1, smallest(resident(p, p->waves), p->target->unit_lds / largest(p->lds_bytes, 1)));
}

/* The waves asked for, or the most up to 4 that fit the LDS; then the outputs they exchange at a time: as
 * many as leave LDS for all workgroups that the registers do. False when the waves asked for do not fit. */
bool plan_waves(const variant *v, decode_plan *p, diags *errors) {
  p->waves = v->waves ? v->waves : 4;
  int limit = lds_limit(p->target), tiles = p->blocks * plan_output_tiles(p);
  while (!v->waves && p->waves > 1 && lds_bytes(p, smallest(p->waves, tiles), p->waves) > limit)
    p->waves /= 2;
  limit = smallest(limit, p->target->unit_lds / resident(p, p->waves));
  p->exchange = tiles;
  while (lds_bytes(p, p->exchange, p->waves) > limit && p->exchange > p->waves)
    p->exchange = largest(p->waves, round_up(p->exchange, 2) / 2);
  p->lds_bytes = lds_bytes(p, p->exchange, p->waves);
  if (p->lds_bytes <= lds_limit(p->target)) return true;
  diags_decline_number(errors, "decline.waves", "tune.waves", p->waves,
                       "what fits %d bytes of LDS on %s: these need %d", lds_limit(p->target),
                       p->target->name, p->lds_bytes);
  return false;
}
