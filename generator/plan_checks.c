#include "plan_internal.h"

/* Declines a format that has no such use, and lists those that have. */
static void check_use(dtype d, dtype_use use, const char *code, const char *field, diags *errors) {
  if (dtype_serves(d, use)) return;
  text allowed;
  text_init(&allowed);
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (dtype_serves((dtype)i, use))
      text_addf(&allowed, "%s%s", allowed.length ? ", " : "", dtype_name((dtype)i));
  diags_decline(errors, code, field, dtype_name(d), "%s", text_string(&allowed));
  text_finish(&allowed);
}

static void check_cache_dtype(dtype d, const target *t, diags *errors) {
  if (dtype_is_dialect(d) && d != t->fp8)
    diags_decline(errors, "decline.dialect", "kv.dtype", dtype_name(d),
                  "%s, or fp8_e4m3, which is every target's own dialect", dtype_name(t->fp8));
  else
    check_use(d, USE_CACHE, "decline.kv-dtype", "kv.dtype", errors);
}

static void check_operation(const contract *c, operation o, diags *errors) {
  if (contract_has_operation(c, o)) return;
  text allowed;
  text_init(&allowed);
  for (operation i = 0; i < OPERATION_COUNT; i++)
    if (contract_has_operation(c, i))
      text_addf(&allowed, "%s%s", allowed.length ? ", " : "", operation_name(i));
  diags_refusef(errors, "decline.kernels", "kernels", operation_name(o), text_string(&allowed),
                "the contract has no %s kernel", operation_name(o));
  text_finish(&allowed);
}

void check_cache(const contract *c, const target *t, operation o, diags *errors) {
  check_operation(c, o, errors);
  check_use(c->query.dtype, USE_QUERY, "decline.query-dtype", "query.dtype", errors);
  check_cache_dtype(c->kv.k_dtype, t, errors);
  if (c->kv.v_dtype != c->kv.k_dtype) check_cache_dtype(c->kv.v_dtype, t, errors);
  if (c->scale.granularity != SCALE_NONE)
    check_use(c->scale.dtype, c->scale.granularity == SCALE_GROUP ? USE_GROUP_SCALE : USE_SCALE,
              "decline.scale-dtype", "scale.dtype", errors);
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

void check_decode(const contract *c, diags *errors) {
  if (c->query.rows < 1 || c->query.rows > 8)
    diags_decline_number(errors, "decline.query-rows", "query.rows", c->query.rows, "1 to 8");
  if (c->query.heads_per_kv < 1 || c->query.heads_per_kv > 128)
    diags_decline_number(errors, "decline.heads-per-kv", "query.heads_per_kv", c->query.heads_per_kv,
                         "1 to 128");
  check_lists(c, errors);
  check_use(c->select.index, USE_INDEX, "decline.select-index", "select.index", errors);
  check_use(c->output.dtype, USE_OUTPUT, "decline.output-dtype", "output.dtype", errors);
}

static bool dim_serves(int channels, int most) {
  return channels >= DIM_STEP && channels % DIM_STEP == 0 && channels <= most;
}

static void check_dim(const char *field, int channels, int most, diags *errors) {
  if (dim_serves(channels, most)) return;
  diags_decline_number(errors, "decline.head-dim", field, channels, "a multiple of %d up to %d", DIM_STEP,
                       most);
}

void check_dims(const contract *c, diags *errors) {
  const int qk = c->head_dim.qk, v = c->head_dim.v;
  if (qk == v && !dim_serves(qk, MOST_QK) && !dim_serves(v, MOST_V)) { /* one number, one fault */
    check_dim("head_dim", v, MOST_V, errors);
    return;
  }
  check_dim("head_dim.qk", qk, MOST_QK, errors);
  check_dim("head_dim.v", v, MOST_V, errors);
}

void check_shape(const contract *c, const decode_plan *p, diags *errors) {
  if (c->kv.tail.channels) check_use(c->kv.tail.dtype, USE_QUERY, "decline.tail", "kv.tail.dtype", errors);
  if (c->kv.tail.channels % DIM_STEP != 0)
    diags_decline_number(errors, "decline.tail", "kv.tail.channels", c->kv.tail.channels, "a multiple of %d",
                         DIM_STEP);
  check_dims(c, errors);
  if (c->scale.granularity != SCALE_GROUP) return;
  if (c->scale.group_k % 4 != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_k,
                         "a multiple of 4 channels of K");
  int coded = contract_coded_v(c);
  if (c->kv.v_in_k && coded % c->scale.group_v != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_v,
                         "what divides the %d channels of V, where V lies in K", coded);
  if (c->scale.group_v != coded && c->scale.group_v % p->value_op->rows != 0)
    diags_decline_number(errors, "decline.scale-group", "scale.group", c->scale.group_v,
                         "a multiple of %d channels of V, the rows of a matrix instruction",
                         p->value_op->rows);
}
