#include "plan_internal.h"

#include <stdio.h>

int plan_gcd(int a, int b) {
  return b ? plan_gcd(b, a % b) : a;
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

/* Operands whose sum is a query exactly. */
static int parts_of(dtype query, dtype operand) {
  return round_up(significand_bits(query), significand_bits(operand)) / significand_bits(operand);
}

/* Exponent of the largest number that a product's operand is filled up to. */
static int q_top(dtype d) {
  return d == DTYPE_FP8_E4M3FNUZ ? 6 : d == DTYPE_FP8_E4M3FN ? 7 : 13;
}
static int p_shift(dtype d) {
  return d == DTYPE_FP8_E4M3FNUZ ? 7 : d == DTYPE_FP8_E4M3FN ? 8 : d == DTYPE_FP16 ? 14 : 0;
}

/* Channels of K: how many a lane holds, dealt how. */
void plan_keys(const contract *c, decode_plan *p) {
  const matrix_op *op = p->op;
  int bytes = dtype_bytes(c->kv.k_dtype);
  int channels = contract_coded_k(c);
  p->k_list = round_up(channels, op->groups * op->elements) / op->groups;
  p->k_chunk = smallest(smallest(16 / bytes, power_of_two_in(p->k_list)), power_of_two_in(channels));
  bool grouped = c->scale.granularity == SCALE_GROUP;
  p->k_part = grouped ? c->scale.group_k : p->k_list * op->groups;
  p->v_part = grouped ? c->scale.group_v : contract_coded_v(c);
  p->k_parts = grouped ? channels / c->scale.group_k : 1;
  if (p->k_parts == 1) p->k_part = p->k_list * op->groups;
  if (p->k_parts > 1 && !plan_parts_whole(p))
    p->k_chunk = smallest(p->k_chunk, op->elements); /* a fragment is then a run of channels */
  p->k_load = smallest(p->k_chunk, power_of_two_in(layout_aligned_run(&c->kv.k, AXIS_D)));
}

/* The tail's channels, dealt like K's. */
static void plan_tail(const contract *c, decode_plan *p) {
  int channels = c->kv.tail.channels, bytes = dtype_bytes(c->kv.tail.dtype);
  if (!p->tail_op) return;
  p->tail_list = round_up(channels, p->tail_op->groups * p->tail_op->elements) / p->tail_op->groups;
  p->tail_chunk = smallest(smallest(16 / bytes, power_of_two_in(p->tail_list)), power_of_two_in(channels));
  p->tail_load = smallest(p->tail_chunk, power_of_two_in(layout_aligned_run(&c->kv.tail.layout, AXIS_D)));
  if (c->kv.tail.at > 0) p->tail_load = smallest(p->tail_load, power_of_two_in(c->kv.tail.at) / bytes);
  p->tail_parts = parts_of(c->query.dtype, p->tail_op->operand);
}

/* Products per weight: one of 8 bits alone is 2e-3 off where a few tokens decide, more than all the rest may
 * be. */
static int weight_parts(const matrix_op *op) {
  return significand_bits(op->operand) < 11 ? 2 : 1;
}

hd_status plan_decode(const contract *c, const variant *v, const target *t, decode_plan *out_plan,
                      diags *errors) {
  size_t before = diags_errors(errors);
  check_cache(c, t, OPERATION_DECODE, errors);
  check_decode(c, errors);
  decode_plan p = {.target = t};
  p.op = find_op(t, c->kv.k_dtype, false, &p.widen);
  p.value_op = find_op(t, c->kv.v_dtype, true, &p.value_widen);
  bool tail_widens;
  if (c->kv.tail.channels) p.tail_op = find_op(t, c->kv.tail.dtype, false, &tail_widens);
  if (contract_coded_v(c) < c->head_dim.v) p.tail_value_op = p.tail_op;
  if (p.op && p.value_op) check_shape(c, &p, errors);
  if (v->waves && (v->waves < 1 || v->waves > 16 || (v->waves & (v->waves - 1))))
    diags_decline_number(errors, "decline.waves", "tune.waves", v->waves, "1, 2, 4, 8, 16");
  if (diags_errors(errors) > before || !p.op || !p.value_op) return HD_DECLINED;

  p.rows = contract_rows_have_lists(c) ? 1 : c->query.rows;
  int queries = p.rows * c->query.heads_per_kv;
  p.q_parts = parts_of(c->query.dtype, p.op->operand);
  p.p_parts = weight_parts(p.value_op);
  p.folded = p.q_parts == 2 && p.op->columns_per_lane == 1 && queries <= p.op->columns / 2;
  p.q_top = q_top(p.op->operand);
  p.p_shift = p_shift(p.value_op->operand);
  if (p.tail_value_op) {
    p.tail_p_parts = weight_parts(p.tail_value_op);
    p.p_shift = largest(p.p_shift, p_shift(p.tail_value_op->operand)); /* bf16 has room for any */
  }
  plan_keys(c, &p);
  plan_tail(c, &p);
  p.line = v->line;
  if (!plan_registers(c, &p, queries)) {
    char found[32];
    snprintf(found, sizeof found, "{qk: %d, v: %d}", c->head_dim.qk, c->head_dim.v);
    diags_decline(errors, "decline.registers", "head_dim", found,
                  "what fits the %d registers of %s with %d queries a page list", t->vgprs, t->name, queries);
    return HD_DECLINED;
  }
  const char *obstacle =
      t->family == FAMILY_CUDA ? ring_obstacle(c, t) : plan_staged(c, v, queries, &p, errors);
  if (diags_errors(errors) > before) return HD_DECLINED;
  if (!obstacle && t->family == FAMILY_CUDA && v->structure == STRUCTURE_AUTO && v->waves % 4 != 0)
    obstacle = "a ring computes in warpgroups of 4 waves";
  if (v->structure == STRUCTURE_RING && obstacle) {
    diags_refusef(errors, "decline.structure", "tune.structure", "ring", "direct", "ring is not served: %s",
                  obstacle);
    return HD_DECLINED;
  }
  p.structure = obstacle || v->structure == STRUCTURE_DIRECT ? STRUCTURE_DIRECT : STRUCTURE_RING;
  if (obstacle) snprintf(p.structure_reason, sizeof p.structure_reason, "%s", obstacle);
  if (p.structure == STRUCTURE_DIRECT && (v->stages || v->resident || v->tile)) {
    diags_refusef(errors, "decline.structure", "tune.structure",
                  v->stages ? "stages" : v->tile ? "a tile" : "resident workgroups", "a ring",
                  "the direct structure has no tile, stages or resident workgroups to choose");
    return HD_DECLINED;
  }
  if (p.structure == STRUCTURE_DIRECT && !plan_waves(v, &p, errors)) return HD_DECLINED;
  if (p.waves > 0)
    p.resident = plan_resident(&p);
  else
    p.line = false; /* plan_ring has the rest */
  *out_plan = p;
  return HD_OK;
}

hd_status plan_write(const contract *c, const variant *v, const target *t, write_plan *out_plan,
                     diags *errors) {
  (void)v; /* the writer has one shape: a lane per 16 bytes of a row */
  size_t before = diags_errors(errors);
  check_cache(c, t, OPERATION_WRITE, errors);
  check_dims(c, errors);
  if (c->kv.tail.channels % DIM_STEP != 0) /* then no load takes channels of both */
    diags_decline_number(errors, "decline.tail", "kv.tail.channels", c->kv.tail.channels, "a multiple of %d",
                         DIM_STEP);
  const int groups[] = {c->scale.group_k, c->scale.group_v};
  for (int i = 0; i < 2; i++)
    if (c->scale.granularity == SCALE_GROUP && groups[i] % 8 != 0)
      diags_decline_number(errors, "decline.scale-group", "scale.group", groups[i],
                           "a multiple of 8 channels");
  if (diags_errors(errors) > before) return HD_DECLINED;
  write_plan p = {.target = t, .load = 16 / dtype_bytes(c->query.dtype), .row_lanes = 1, .threads = 256};
  while (p.row_lanes < t->wave && p.row_lanes * p.load < largest(c->head_dim.qk, c->head_dim.v))
    p.row_lanes *= 2;
  *out_plan = p;
  return HD_OK;
}
