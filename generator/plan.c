#include "plan.h"

#include <stdio.h>
#include <string.h>

static bool is_one_of(dtype d, const dtype *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == d) return true;
  return false;
}

#define ONE_OF(d, ...)                                                                                       \
  is_one_of(d, (const dtype[]){__VA_ARGS__}, sizeof((const dtype[]){__VA_ARGS__}) / sizeof(dtype))

static bool scales_a_token(const contract *c) {
  return c->scale.granularity >= SCALE_TOKEN;
}

static void check_dtype(const contract *c, dtype d, const target *t, diags *errors) {
  if (ONE_OF(d, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ) && d != t->fp8)
    diags_decline(errors, "decline.dialect", "kv.dtype", dtype_name(d),
                  "%s, the fp8 dialect of %s, or fp8_e4m3", dtype_name(t->fp8), t->name);
  else if (!ONE_OF(d, DTYPE_BF16, DTYPE_FP16, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ, DTYPE_FP8_E5M2,
                   DTYPE_INT8))
    diags_decline(errors, "decline.kv-dtype", "kv.dtype", dtype_name(d),
                  "bf16, fp16, fp8_e4m3, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8");
  (void)c;
}

/* What both operations ask of a contract. */
static void check_cache(const contract *c, const target *t, unsigned kernel, const char *name,
                        diags *errors) {
  if (!(c->kernels & kernel))
    diags_refusef(errors, "decline.kernels", "kernels", name, c->kernels & KERNEL_WRITE ? "write" : "decode",
                  "the contract has no %s kernel", name);
  if (!ONE_OF(c->query.dtype, DTYPE_BF16, DTYPE_FP16))
    diags_decline(errors, "decline.query-dtype", "query.dtype", dtype_name(c->query.dtype), "bf16, fp16");
  check_dtype(c, c->kv.k_dtype, t, errors);
  if (c->kv.v_dtype != c->kv.k_dtype) check_dtype(c, c->kv.v_dtype, t, errors);
  bool group = c->scale.granularity == SCALE_GROUP;
  if (c->scale.granularity != SCALE_NONE && !ONE_OF(c->scale.dtype, DTYPE_FP32, DTYPE_FP16) &&
      !(group && c->scale.dtype == DTYPE_E8M0))
    diags_decline(errors, "decline.scale-dtype", "scale.dtype", dtype_name(c->scale.dtype),
                  group ? "fp32, fp16, e8m0" : "fp32, fp16");
  if (c->kv.v_in_k) diags_decline(errors, "decline.shared-values", "kv.v", "k", "a cache of its own");
  if (c->kv.tail.channels)
    diags_decline(errors, "decline.tail", "kv.tail", "a tail of another format", "none");
}

/* Pages of a list are whole ones, and a list does not say where its tokens stood. */
static void check_lists(const contract *c, diags *errors) {
  if (!contract_makes_lists(c)) return;
  if (c->select.form == SELECT_BLOCKS && (c->select.block < 1 || c->select.block % c->kv.page != 0))
    diags_decline_number(errors, "decline.select-block", "select.block", c->select.block,
                         "a multiple of the page, %d", c->kv.page);
  if (c->select.form == SELECT_TOKENS && c->kv.page != 1)
    diags_decline_number(errors, "decline.select-page", "kv.page", c->kv.page, "1 with select.form: tokens");
  if (c->mask.window)
    diags_decline_number(errors, "decline.select-window", "mask.window", c->mask.window,
                         "none with select.form: blocks or tokens");
}

static void check_decode(const contract *c, diags *errors) {
  if (c->query.rows < 1 || c->query.rows > 8)
    diags_decline_number(errors, "decline.query-rows", "query.rows", c->query.rows, "1 to 8");
  if (c->query.heads_per_kv < 1 || c->query.heads_per_kv > 64)
    diags_decline_number(errors, "decline.heads-per-kv", "query.heads_per_kv", c->query.heads_per_kv,
                         "1 to 64");
  check_lists(c, errors);
  if (!ONE_OF(c->select.index, DTYPE_INT32, DTYPE_INT64))
    diags_decline(errors, "decline.select-index", "select.index", dtype_name(c->select.index),
                  "int32, int64");
  if (!ONE_OF(c->output.dtype, DTYPE_BF16, DTYPE_FP16, DTYPE_FP32))
    diags_decline(errors, "decline.output-dtype", "output.dtype", dtype_name(c->output.dtype),
                  "bf16, fp16, fp32");
}

int plan_gcd(int a, int b) {
  return b ? plan_gcd(b, a % b) : a;
}

/* Largest power of two that divides n. */
static int power_of_two_in(int64_t n) {
  return (int)(n & -n);
}

static int smallest(int a, int b) {
  return a < b ? a : b;
}
static int largest(int a, int b) {
  return a > b ? a : b;
}

/* The instruction whose operand is the cache's own dtype, else the one that 8 bits widen to exactly. Values
 * always take the latter: weights in two fp8 parts lose what counts where large terms cancel or a scale is
 * shared by small ones. */
static const matrix_op *find_op(const target *t, dtype stored, bool values, bool *out_widen) {
  for (size_t i = 0; i < t->op_count; i++)
    if (t->ops[i].operand == stored && !(values && dtype_bytes(stored) == 1)) {
      *out_widen = false;
      return &t->ops[i];
    }
  for (size_t i = 0; i < t->op_count; i++)
    if (dtype_bytes(stored) == 1 && t->ops[i].operand == DTYPE_FP16) {
      *out_widen = true;
      return &t->ops[i];
    }
  return NULL;
}

/* Significant bits of a format, the implicit one included. */
static int significand_bits(dtype d) {
  switch (d) {
  case DTYPE_FP16:
    return 11;
  case DTYPE_BF16:
    return 8;
  default:
    return 4; /* e4m3 */
  }
}

/* Addresses, page ids and temporaries; from the code objects of the shipped specs. */
enum { WORKING_REGISTERS = 84 };

/* Blocks of columns that a workgroup takes at most: every one makes the unrolled tile longer. */
enum { MOST_BLOCKS = 4 };

/* What the template's SHARED arrays take: outputs and the numbers of a row and column of every wave, and the
 * query. */
static int lds_bytes(const decode_plan *p, int waves) {
  const matrix_op *op = p->op;
  int outputs = p->blocks * p->value_tiles * op->columns_per_lane * op->row_run * p->target->wave * 4;
  int rows = p->blocks * op->columns_per_lane * op->rows * (2 + p->v_parts) * 4;
  int fragment = op->elements * dtype_bytes(op->operand) * op->columns_per_lane;
  int fragments = p->blocks * (p->folded ? 1 : p->q_parts) * (p->k_list / op->elements);
  return waves * (outputs + rows) + (p->query_in_lds ? fragments * fragment * p->target->wave : 0);
}

/* A CUDA kernel declares at most 48 KB of static shared memory, whatever the SM has. */
static int lds_limit(const target *t) {
  return t->family == FAMILY_CUDA ? 48 * 1024 : t->lds_bytes;
}

static int round_up(int n, int step) {
  return (n + step - 1) / step * step;
}

/* Channel tiles of V, and whether its loads run along tokens (the fragment's own axis) or along channels.
 * Loads along channels may fill the tiles up beyond head_dim.v, so that they stay wide. */
static void plan_values(const contract *c, decode_plan *p) {
  const matrix_op *op = p->value_op;
  int bytes = dtype_bytes(c->kv.v_dtype), v = c->head_dim.v;
  int along = smallest(16 / bytes, power_of_two_in(layout_aligned_run(&c->kv.v, AXIS_S)));
  along = smallest(along, p->own_run);
  int run = smallest(16 / bytes, power_of_two_in(layout_aligned_run(&c->kv.v, AXIS_D)));
  int tiles = round_up(v, op->rows) / op->rows, channels = 1, least = INT32_MAX;
  for (int across = run; across * bytes >= 4 && across > along; across /= 2) {
    if (p->v_part < v && p->v_part % (across * op->rows) != 0)
      continue; /* a tile has one group of channels */
    int padded = round_up(v, op->rows * across * p->slices) / op->rows;
    int cost = 4 * padded / across + padded; /* a load and a product of one list, as instructions */
    if (cost < least) {
      least = cost;
      tiles = padded;
      channels = across;
    }
  }
  p->v_tokens = channels > 1 ? 1 : along;
  p->v_channels = channels;
  p->value_tiles = tiles;
}

/* Tokens a lane's group owns and everything that follows from it. */
static void plan_tokens(const contract *c, decode_plan *p, int list) {
  const matrix_op *op = p->op;
  p->list = list;
  p->tile = list * op->groups;
  p->score_tiles = list / op->row_run;
  p->own_run = plan_gcd(c->kv.page, list);
  p->k_exact = p->own_run < op->row_run;
  plan_values(c, p);
}

/* V channels shared by `slices` workgroups; false where tiles or scale groups do not divide so. */
static bool plan_slices(const contract *c, decode_plan *p, int slices) {
  int tiles = p->value_tiles, rows = p->op->rows;
  p->slices = slices;
  p->value_tiles = round_up(tiles, slices * p->v_channels) / slices;
  if (p->v_part >= c->head_dim.v) p->v_part = slices * p->value_tiles * rows;
  int channels = p->value_tiles * rows;
  p->v_parts = largest(1, channels / p->v_part);
  return p->v_part % channels == 0 || channels % p->v_part == 0;
}

/* Registers that the words of a tile take while they are loaded: narrower loads have one each. */
static int loaded_registers(int bytes, int load) {
  return load < 4 ? bytes / load : bytes / 4;
}

static int page_ids(const contract *c, const decode_plan *p) {
  int scales = scales_a_token(c) ? largest(1, p->list / p->op->rows) : 0;
  return p->list / p->own_run + (p->k_exact ? p->score_tiles : p->list / p->own_run) + scales;
}

/* Vector registers; where they are short, loads that come later and a query that stays in LDS. */
static void estimate_registers(const contract *c, decode_plan *p) {
  const matrix_op *op = p->op, *value_op = p->value_op;
  int k_bytes = dtype_bytes(c->kv.k_dtype), v_bytes = dtype_bytes(c->kv.v_dtype);
  int k_words = loaded_registers(p->score_tiles * p->k_list * k_bytes, p->k_load * k_bytes);
  int v_words = loaded_registers(p->value_tiles * p->list * v_bytes, p->v_tokens * p->v_channels * v_bytes);
  int scales = scales_a_token(c) ? (p->k_parts + 2 * p->v_parts) * largest(1, p->list / op->rows) - 1 : 0;
  int q_fragments = p->folded ? 1 : p->q_parts, p_fragments = p->folded ? 1 : p->p_parts;
  int query = q_fragments * p->k_list * dtype_bytes(op->operand) / 4 * op->columns_per_lane;
  int per_block = p->value_tiles * op->row_run + p->score_tiles * op->row_run +
                  p_fragments * p->list * dtype_bytes(value_op->operand) / 4 + p->v_parts - 1;
  per_block = per_block * op->columns_per_lane + query;
  int keep = p->rows > 1 ? 40 + (p->v_channels > 1 ? p->list : p->list * v_bytes / 4) : 0;
  keep +=
      (p->k_parts + p->v_parts - 2) * p->list;   /* compilers work on several groups of channels at a time */
  if (p->k_parts > 1) keep += query * p->blocks; /* fragments with zeros outside a group */
  p->registers = k_words + v_words + scales + p->blocks * per_block + keep + largest(0, page_ids(c, p) - 8) +
                 WORKING_REGISTERS;
  p->early_loads = p->registers <= p->target->vgprs;
  if (!p->early_loads)
    p->registers -= k_words / 2; /* the next K tile then takes the place of scores, as far as they reach */
  p->query_in_lds = p->registers > p->target->vgprs - WORKING_REGISTERS / 4;
  if (p->query_in_lds) p->registers -= p->blocks * query;
}

/* Several blocks fit only with room to spare: compilers hold more of them at a time than is counted here, and
 * loads that come late make that worse. */
static bool fits(const decode_plan *p) {
  if (lds_bytes(p, 1) > lds_limit(p->target)) return false;
  int limit = smallest(p->target->vgprs, 512); /* gfx1250 has more, but spills before they are used up */
  if (p->blocks == 1) return p->registers <= limit;
  return p->early_loads && !p->query_in_lds && p->registers + p->registers / 16 <= limit;
}

/* The first that fits the registers: short lists before fewer queries, fewer queries before fewer channels,
 * since K and V are then read again. */
static bool plan_registers(const contract *c, decode_plan *p, int queries) {
  const matrix_op *op = p->op;
  int least = largest(p->value_op->elements, op->row_run);
  int list = largest(largest(least, op->elements), 16 / dtype_bytes(c->kv.v_dtype));
  int all_blocks = p->folded ? 1 : round_up(queries, op->columns) / op->columns, v_part = p->v_part;
  for (int slices = 1; slices <= 8; slices *= 2)
    for (int groups = 1; groups <= all_blocks; groups++) {
      p->blocks = (all_blocks + groups - 1) / groups;
      p->column_groups = (all_blocks + p->blocks - 1) / p->blocks;
      if (p->column_groups != groups || p->blocks > MOST_BLOCKS) continue;
      for (int tokens = list; tokens >= least; tokens /= 2) {
        p->v_part = v_part;
        p->slices = slices;
        plan_tokens(c, p, tokens);
        if (!plan_slices(c, p, slices)) continue;
        estimate_registers(c, p);
        if (fits(p)) return true;
      }
    }
  return false;
}

/* The waves asked for, or the most up to 4 that fit the LDS. False when those asked for do not fit. */
static bool plan_waves(const variant *v, decode_plan *p, diags *errors) {
  p->waves = v->waves ? v->waves : 4;
  while (!v->waves && p->waves > 1 && lds_bytes(p, p->waves) > lds_limit(p->target))
    p->waves /= 2;
  p->lds_bytes = lds_bytes(p, p->waves);
  if (p->lds_bytes <= lds_limit(p->target)) return true;
  diags_decline_number(errors, "decline.waves", "tune.waves", p->waves,
                       "what fits %d bytes of LDS on %s: these need %d", lds_limit(p->target),
                       p->target->name, p->lds_bytes);
  return false;
}

static void check_dim(const char *field, int channels, int step, diags *errors) {
  if (channels >= step && channels % step == 0 && channels <= 256) return;
  diags_decline_number(errors, "decline.head-dim", field, channels, "a multiple of %d up to 256", step);
}

static void check_shape(const contract *c, const decode_plan *p, diags *errors) {
  check_dim("head_dim.qk", c->head_dim.qk, 8, errors);
  check_dim("head_dim.v", c->head_dim.v, 8, errors);
  if (c->scale.granularity != SCALE_GROUP) return;
  if (c->scale.group_k % 4 != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_k,
                         "a multiple of 4 channels of K");
  if (c->scale.group_v != c->head_dim.v && c->scale.group_v % p->value_op->rows != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_v,
                         "a multiple of %d channels of V (%s)", p->value_op->rows, p->value_op->name);
}

/* Exponent of the largest number that a product's operand is filled up to. */
static int q_top(dtype d) {
  return d == DTYPE_FP8_E4M3FNUZ ? 6 : d == DTYPE_FP8_E4M3FN ? 7 : 13;
}
static int p_shift(dtype d) {
  return d == DTYPE_FP8_E4M3FNUZ ? 7 : d == DTYPE_FP8_E4M3FN ? 8 : d == DTYPE_FP16 ? 14 : 0;
}

/* Channels of K: how many a lane holds, dealt how. */
static void plan_keys(const contract *c, decode_plan *p) {
  const matrix_op *op = p->op;
  int bytes = dtype_bytes(c->kv.k_dtype);
  p->k_list = round_up(c->head_dim.qk, op->groups * op->elements) / op->groups;
  p->k_chunk = smallest(smallest(16 / bytes, power_of_two_in(p->k_list)), power_of_two_in(c->head_dim.qk));
  bool grouped = c->scale.granularity == SCALE_GROUP;
  p->k_part = grouped ? c->scale.group_k : p->k_list * op->groups;
  p->v_part = grouped ? c->scale.group_v : c->head_dim.v;
  p->k_parts = grouped ? c->head_dim.qk / c->scale.group_k : 1;
  if (p->k_parts == 1) p->k_part = p->k_list * op->groups;
  if (p->k_parts > 1)
    p->k_chunk = smallest(p->k_chunk, op->elements); /* a fragment is then a run of channels */
  p->k_load = smallest(p->k_chunk, power_of_two_in(layout_aligned_run(&c->kv.k, AXIS_D)));
}

hd_status plan_decode(const contract *c, const variant *v, const target *t, decode_plan *out_plan,
                      diags *errors) {
  size_t before = diags_errors(errors);
  check_cache(c, t, KERNEL_DECODE, "decode", errors);
  check_decode(c, errors);
  decode_plan p = {.target = t};
  p.op = find_op(t, c->kv.k_dtype, false, &p.widen);
  p.value_op = find_op(t, c->kv.v_dtype, true, &p.value_widen);
  if (p.op && p.value_op) check_shape(c, &p, errors);
  if (v->waves && (v->waves < 1 || v->waves > 16 || (v->waves & (v->waves - 1))))
    diags_decline_number(errors, "decline.waves", "tune.waves", v->waves, "1, 2, 4, 8, 16");
  if (diags_errors(errors) > before || !p.op || !p.value_op) return HD_DECLINED;

  int query_bits = significand_bits(c->query.dtype), operand_bits = significand_bits(p.op->operand);
  p.rows = contract_rows_have_lists(c) ? 1 : c->query.rows;
  int queries = p.rows * c->query.heads_per_kv;
  p.q_parts = (query_bits + operand_bits - 1) / operand_bits;
  /* A weight of 8 bits alone is 2e-3 off where a few tokens decide: more than all the rest may be. */
  p.p_parts = significand_bits(p.value_op->operand) < 11 ? 2 : 1;
  p.folded = p.q_parts == 2 && p.op->columns_per_lane == 1 && queries <= p.op->columns / 2;
  p.q_top = q_top(p.op->operand);
  p.p_shift = p_shift(p.value_op->operand);
  plan_keys(c, &p);
  if (!plan_registers(c, &p, queries)) {
    char found[32];
    snprintf(found, sizeof found, "{qk: %d, v: %d}", c->head_dim.qk, c->head_dim.v);
    diags_decline(errors, "decline.registers", "head_dim", found,
                  "what fits the %d registers of %s with %d queries a page list", t->vgprs, t->name, queries);
    return HD_DECLINED;
  }
  const char *obstacle = ring_obstacle(c, t);
  if (!obstacle && v->structure == STRUCTURE_AUTO && v->waves % 4 != 0)
    obstacle = "a ring computes in warpgroups of 4 waves";
  if (v->structure == STRUCTURE_RING && obstacle) {
    diags_refusef(errors, "decline.structure", "tune.structure", "ring", "direct", "ring is not served: %s",
                  obstacle);
    return HD_DECLINED;
  }
  p.structure = obstacle || v->structure == STRUCTURE_DIRECT ? STRUCTURE_DIRECT : STRUCTURE_RING;
  if (obstacle) snprintf(p.structure_reason, sizeof p.structure_reason, "%s", obstacle);
  if (p.structure == STRUCTURE_DIRECT && (v->stages || v->resident)) {
    diags_refusef(errors, "decline.structure", "tune.structure", v->stages ? "stages" : "resident workgroups",
                  "a ring", "the direct structure has no stages or resident workgroups to choose");
    return HD_DECLINED;
  }
  if (p.structure == STRUCTURE_DIRECT && !plan_waves(v, &p, errors)) return HD_DECLINED;
  *out_plan = p;
  return HD_OK;
}

hd_status plan_write(const contract *c, const variant *v, const target *t, write_plan *out_plan,
                     diags *errors) {
  (void)v; /* the writer has one shape: a lane per 16 bytes of a row */
  size_t before = diags_errors(errors);
  check_cache(c, t, KERNEL_WRITE, "write", errors);
  check_dim("head_dim.qk", c->head_dim.qk, 8, errors);
  check_dim("head_dim.v", c->head_dim.v, 8, errors);
  const int groups[] = {c->scale.group_k, c->scale.group_v};
  for (int i = 0; i < 2; i++)
    if (c->scale.granularity == SCALE_GROUP && groups[i] % 8 != 0)
      diags_decline_number(errors, "decline.scale-group", "scale.group", groups[i],
                           "a multiple of 8 channels");
  if (diags_errors(errors) > before) return HD_DECLINED;
  write_plan p = {.target = t, .load = 16 / dtype_bytes(c->query.dtype), .row_lanes = 1, .threads = 256};
  while (p.row_lanes * p.load < largest(c->head_dim.qk, c->head_dim.v))
    p.row_lanes *= 2;
  *out_plan = p;
  return HD_OK;
}
