#include "plan.h"

#include <stdio.h>
#include <string.h>

/* A contract this generator does not serve: which field, what it says, what is served. */
static void decline(diags *diags, const char *code, const char *field, const char *found, const char *allowed) {
  diags_errorf(diags, code, field, "%s is not served: allowed is %s", found, allowed);
}

static void decline_number(diags *diags, const char *code, const char *field, int64_t found, const char *allowed) {
  diags_errorf(diags, code, field, "%lld is not served: allowed is %s", (long long)found, allowed);
}

static bool is_one_of(dtype d, const dtype *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (list[i] == d) return true;
  return false;
}

#define ONE_OF(d, ...) is_one_of(d, (const dtype[]){__VA_ARGS__}, sizeof((const dtype[]){__VA_ARGS__}) / sizeof(dtype))

/* What both operations ask of a contract. */
static void check_cache(const contract *c, const target *t, unsigned kernel, const char *operation, diags *diags) {
  if (!(c->kernels & kernel))
    diags_errorf(diags, "decline.kernels", "kernels", "the contract has no %s kernel", operation);
  if (!ONE_OF(c->query.dtype, DTYPE_BF16, DTYPE_FP16))
    decline(diags, "decline.query-dtype", "query.dtype", dtype_name(c->query.dtype), "bf16, fp16");
  if (c->kv.k_dtype != c->kv.v_dtype)
    decline(diags, "decline.kv-dtype", "kv.dtype", "a different dtype for K and V", "one dtype for both");
  if (ONE_OF(c->kv.k_dtype, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ) && c->kv.k_dtype != t->fp8)
    diags_errorf(diags, "decline.dialect", "kv.dtype", "%s is not the fp8 dialect of %s: allowed is %s, or fp8_e4m3",
                 dtype_name(c->kv.k_dtype), t->name, dtype_name(t->fp8));
  else if (!ONE_OF(c->kv.k_dtype, DTYPE_BF16, DTYPE_FP16, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ))
    decline(diags, "decline.kv-dtype", "kv.dtype", dtype_name(c->kv.k_dtype),
            "bf16, fp16, fp8_e4m3, fp8_e4m3fn, fp8_e4m3fnuz");
  switch (c->scale.granularity) {
  case SCALE_NONE:
  case SCALE_TENSOR:
  case SCALE_TOKEN_HEAD:
    break;
  default:
    diags_errorf(diags, "decline.scale-granularity", "scale.granularity",
                 "this granularity is not served: allowed is none, tensor, token_head");
  }
  if (c->scale.granularity != SCALE_NONE && !ONE_OF(c->scale.dtype, DTYPE_FP32, DTYPE_FP16))
    decline(diags, "decline.scale-dtype", "scale.dtype", dtype_name(c->scale.dtype), "fp32, fp16");
}

static void check_decode(const contract *c, diags *diags) {
  if (c->query.rows != 1) decline_number(diags, "decline.query-rows", "query.rows", c->query.rows, "1");
  if (c->query.heads_per_kv > 16)
    decline_number(diags, "decline.heads-per-kv", "query.heads_per_kv", c->query.heads_per_kv, "1 to 16");
  if (c->select.form != SELECT_TABLE)
    decline(diags, "decline.select-form", "select.form", "this form", "table");
  if (c->select.per != PER_SEQUENCE) decline(diags, "decline.select-per", "select.per", "this", "sequence");
  if (c->select.index != DTYPE_INT32)
    decline(diags, "decline.select-index", "select.index", dtype_name(c->select.index), "int32");
  if (c->mask.window) decline_number(diags, "decline.window", "mask.window", c->mask.window, "none");
  if (c->mask.sinks) decline(diags, "decline.sinks", "mask.sinks", "per_head", "none");
  if (c->logits.softcap > 0) decline(diags, "decline.softcap", "logits.softcap", "a cap", "none");
  if (!ONE_OF(c->output.dtype, DTYPE_BF16, DTYPE_FP16, DTYPE_FP32))
    decline(diags, "decline.output-dtype", "output.dtype", dtype_name(c->output.dtype), "bf16, fp16, fp32");
}

static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }

/* Largest power of two that divides n. */
static int power_of_two_in(int64_t n) { return (int)(n & -n); }

static int smallest(int a, int b) { return a < b ? a : b; }
static int largest(int a, int b) { return a > b ? a : b; }

/* The instruction whose operand is the cache's own dtype, else the one fp8 widens to exactly. */
static const matrix_op *find_op(const target *t, dtype stored, bool *out_widen) {
  for (size_t i = 0; i < t->op_count; i++)
    if (t->ops[i].operand == stored) {
      *out_widen = false;
      return &t->ops[i];
    }
  for (size_t i = 0; i < t->op_count; i++)
    if (dtype_is_fp8(stored) && t->ops[i].operand == DTYPE_FP16) {
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

/* Tokens a lane's group owns and everything that follows from it. */
static void plan_tokens(const contract *c, decode_plan *p, int list) {
  const matrix_op *op = p->op;
  int bytes = dtype_bytes(c->kv.v_dtype);
  p->list = list;
  p->tile = list * op->groups;
  p->score_tiles = list / op->row_run;
  p->own_run = gcd(c->kv.page, list);
  p->k_exact = p->own_run < op->row_run;
  /* A V load runs along tokens (the fragment's own axis) or along channels, whichever is wider. */
  int along = smallest(16 / bytes, power_of_two_in(layout_run(&c->kv.v, AXIS_S)));
  along = smallest(along, p->own_run);
  int across = smallest(16 / bytes, power_of_two_in(layout_run(&c->kv.v, AXIS_D)));
  across = smallest(across, power_of_two_in(p->value_tiles));
  bool transposed = across > along && across * bytes >= 4;
  p->v_tokens = transposed ? 1 : along;
  p->v_channels = transposed ? across : 1;

  int words_per_list = list * bytes / 4;
  int k_words = p->score_tiles * p->k_list * dtype_bytes(c->kv.k_dtype) / 4;
  int operand_words = dtype_bytes(op->operand);
  int scales = c->scale.granularity == SCALE_TOKEN_HEAD ? 2 * largest(1, list / op->rows) : 0;
  int q_fragments = p->folded ? 1 : p->q_parts, p_fragments = p->folded ? 1 : p->p_parts;
  int per_block = p->value_tiles * op->row_run + p->score_tiles * op->row_run +
                  q_fragments * p->k_list * operand_words / 4 + p_fragments * list * operand_words / 4;
  per_block *= op->columns_per_lane;
  p->registers = k_words + p->value_tiles * words_per_list + scales + p->blocks * per_block + WORKING_REGISTERS;
  p->early_loads = p->registers <= p->target->vgprs;
  if (!p->early_loads) p->registers -= k_words; /* the next K tile then takes the place of the scores */
  p->query_in_lds = p->registers > p->target->vgprs - WORKING_REGISTERS / 4;
  if (p->query_in_lds) p->registers -= p->blocks * op->columns_per_lane * q_fragments * p->k_list * operand_words / 4;
}

/* What the template's SHARED arrays take: outputs and three numbers a row and column of every wave, and the query. */
static int lds_bytes(const decode_plan *p, int waves) {
  const matrix_op *op = p->op;
  int outputs = p->blocks * p->value_tiles * op->columns_per_lane * op->row_run * p->target->wave * 4;
  int rows = p->blocks * op->columns_per_lane * op->rows * 3 * 4;
  int fragment = op->elements * dtype_bytes(op->operand) * op->columns_per_lane;
  int fragments = p->blocks * (p->folded ? 1 : p->q_parts) * (p->k_list / op->elements);
  return waves * (outputs + rows) + (p->query_in_lds ? fragments * fragment * p->target->wave : 0);
}

/* A CUDA kernel declares at most 48 KB of static shared memory, whatever the SM has. */
static int lds_limit(const target *t) { return t->family == FAMILY_CUDA ? 48 * 1024 : t->lds_bytes; }

/* The waves asked for, or the most up to 4 that fit the LDS. False when those asked for do not fit. */
static bool plan_waves(const variant *v, decode_plan *p, diags *diags) {
  p->waves = v->waves ? v->waves : 4;
  while (!v->waves && p->waves > 1 && lds_bytes(p, p->waves) > lds_limit(p->target)) p->waves /= 2;
  p->lds_bytes = lds_bytes(p, p->waves);
  if (p->lds_bytes <= lds_limit(p->target)) return true;
  diags_errorf(diags, "decline.waves", "tune.waves", "%d waves need %d bytes of LDS: %s has %d", p->waves, p->lds_bytes,
               p->target->name, lds_limit(p->target));
  return false;
}

static void check_shape(const contract *c, decode_plan *p, diags *diags) {
  const matrix_op *op = p->op;
  int qk_step = op->groups * op->elements, v_step = op->rows;
  if (c->head_dim.qk % qk_step != 0 || c->head_dim.qk > 256)
    diags_errorf(diags, "decline.head-dim", "head_dim.qk", "%d is not served: allowed is a multiple of %d up to 256 (%s)",
                 c->head_dim.qk, qk_step, op->name);
  if (c->head_dim.v % v_step != 0 || c->head_dim.v % (4 * op->rows) != 0 || c->head_dim.v > 256)
    diags_errorf(diags, "decline.head-dim", "head_dim.v", "%d is not served: allowed is a multiple of %d up to 256 (%s)",
                 c->head_dim.v, 4 * v_step, op->name);
}

hd_status plan_decode(const contract *c, const variant *v, const target *t, decode_plan *out_plan, diags *diags) {
  size_t before = diags_errors(diags);
  check_cache(c, t, KERNEL_DECODE, "decode", diags);
  check_decode(c, diags);
  decode_plan p = {.target = t};
  p.op = find_op(t, c->kv.k_dtype, &p.widen);
  if (p.op) check_shape(c, &p, diags);
  if (v->waves && (v->waves < 1 || v->waves > 16 || (v->waves & (v->waves - 1))))
    decline_number(diags, "decline.waves", "tune.waves", v->waves, "1, 2, 4, 8, 16");
  if (diags_errors(diags) > before || !p.op) return HD_DECLINED;

  const matrix_op *op = p.op;
  int operand_bits = significand_bits(op->operand), query_bits = significand_bits(c->query.dtype);
  p.q_parts = (query_bits + operand_bits - 1) / operand_bits;
  p.p_parts = operand_bits < 8 ? 2 : 1;
  p.folded = p.q_parts == 2 && p.p_parts == 2 && op->columns_per_lane == 1 &&
             c->query.heads_per_kv <= op->columns / 2;
  p.blocks = (c->query.heads_per_kv + op->columns - 1) / op->columns;
  p.q_top = op->operand == DTYPE_FP8_E4M3FNUZ ? 6 : op->operand == DTYPE_FP8_E4M3FN ? 7 : 13;
  p.p_shift = op->operand == DTYPE_FP8_E4M3FNUZ ? 7 : op->operand == DTYPE_FP8_E4M3FN ? 8 : op->operand == DTYPE_FP16 ? 14 : 0;
  p.value_tiles = c->head_dim.v / op->rows;
  p.k_list = c->head_dim.qk / op->groups;
  int k_bytes = dtype_bytes(c->kv.k_dtype);
  p.k_chunk = smallest(16 / k_bytes, power_of_two_in(p.k_list));
  p.k_load = smallest(p.k_chunk, power_of_two_in(layout_run(&c->kv.k, AXIS_D)));
  int least = largest(op->elements, op->row_run);
  plan_tokens(c, &p, largest(least, 16 / dtype_bytes(c->kv.v_dtype)));
  while (p.registers > t->vgprs && p.list > least) plan_tokens(c, &p, p.list / 2);
  const char *obstacle = ring_obstacle(c, t);
  if (v->structure == STRUCTURE_RING && obstacle) {
    diags_errorf(diags, "decline.structure", "tune.structure", "ring is not served: %s", obstacle);
    return HD_DECLINED;
  }
  p.structure = obstacle || v->structure == STRUCTURE_DIRECT ? STRUCTURE_DIRECT : STRUCTURE_RING;
  if (obstacle) snprintf(p.structure_reason, sizeof p.structure_reason, "%s", obstacle);
  if (p.structure == STRUCTURE_DIRECT && !plan_waves(v, &p, diags)) return HD_DECLINED;
  *out_plan = p;
  return HD_OK;
}

hd_status plan_write(const contract *c, const variant *v, const target *t, write_plan *out_plan, diags *diags) {
  (void)v; /* the writer has one shape: a lane per 16 bytes of a row */
  size_t before = diags_errors(diags);
  check_cache(c, t, KERNEL_WRITE, "write", diags);
  const int sizes[] = {c->head_dim.qk, c->head_dim.v};
  const char *const fields[] = {"head_dim.qk", "head_dim.v"};
  for (int i = 0; i < 2; i++)
    if (sizes[i] % 8 != 0 || sizes[i] > 256)
      decline_number(diags, "decline.head-dim", fields[i], sizes[i], "a multiple of 8 up to 256");
  if (diags_errors(diags) > before) return HD_DECLINED;
  write_plan p = {.target = t, .load = 16 / dtype_bytes(c->query.dtype), .row_lanes = 1, .threads = 256};
  while (p.row_lanes * p.load < largest(c->head_dim.qk, c->head_dim.v)) p.row_lanes *= 2;
  *out_plan = p;
  return HD_OK;
}
