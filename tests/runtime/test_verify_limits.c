/* Claims about verify's limits: what a kernel can't do better in its formats is good, and what it can is
 * found. */
#include "verify_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* What a kernel may get wrong. */
typedef enum fault {
  SOUND,
  SMALL_WEIGHTS_LOST,  /* fp16 weights up to 1 and not 2^14 */
  WEIGHTS_OF_FP8,      /* in one part */
  LEAST_TOKEN_LOST,    /* the visible token of the least weight that is 1/500 of all */
  NEIGHBOURS_SCALE,    /* V's scale of the token before */
  SUM_OF_BF16,         /* accumulated in bf16 */
  FIRST_CHANNEL_TWICE, /* its value in the place of the second one's */
} fault;

/* A kernel as good as its formats let it be: exact but for its weights, which are one fp16 up to 2^14, or two
 * bf16 that hold 16 bits, and for the output's format; and with the fault. */
typedef struct ideal {
  const solved *s;
  fault fault;
  int64_t tokens;
  double *weights; /* [tokens] probability times V scale */
  double *scales;  /* of V */
} ideal;

/* A token's element, or its scale. */
static double stored(const ideal *k, tensor_name name, const layout *l, dtype d, int64_t slot, int64_t head,
                     int64_t channel) {
  const solved *s = k->s;
  int64_t heads = s->data.sizes[DIM_KV_HEADS], stride_b, stride_h;
  layout_packed_strides(l, s->data.sizes[DIM_PAGES], heads, &stride_b, &stride_h);
  return get(
      d, s->data.memory[name],
      layout_offset(l, stride_b, stride_h, heads, slot / s->data.page, head, slot % s->data.page, channel));
}

static double rounded(dtype d, double x) {
  unsigned char bytes[8];
  dtype_encode(d, x, bytes);
  return dtype_decode(d, bytes);
}

static double held(const ideal *k, double weight, double largest) {
  if (largest == 0) return 0;
  double x = weight / largest;
  if (k->fault == WEIGHTS_OF_FP8) return rounded(DTYPE_FP8_E4M3FN, 256 * x) / 256 * largest;
  if (k->s->contract.kv.v_dtype == DTYPE_BF16) {
    double high = rounded(DTYPE_BF16, x);
    return (high + rounded(DTYPE_BF16, x - high)) * largest;
  }
  double up = k->fault == SMALL_WEIGHTS_LOST ? 1 : 16384;
  return rounded(DTYPE_FP16, up * x) / up * largest;
}

/* Fills weights and scales for query row `row`, of kv head `head`. */
static void weigh(const ideal *k, int64_t row, int64_t head, const int64_t *slots) {
  const contract *c = &k->s->contract;
  bool scaled = c->scale.granularity != SCALE_NONE;
  double top = -(double)INFINITY, sum = 0;
  for (int64_t t = 0; t < k->tokens; t++) {
    double dot = 0;
    for (int64_t i = 0; i < c->head_dim.qk; i++)
      dot += get(c->query.dtype, k->s->data.memory[TENSOR_Q], row * c->head_dim.qk + i) *
             stored(k, TENSOR_K_CACHE, &c->kv.k, c->kv.k_dtype, slots[t], head, i);
    if (scaled) dot *= stored(k, TENSOR_K_SCALE, &c->scale.k, DTYPE_FP32, slots[t], head, 0);
    int64_t from = k->fault == NEIGHBOURS_SCALE && t > 0 ? slots[t - 1] : slots[t];
    k->scales[t] = scaled ? stored(k, TENSOR_V_SCALE, &c->scale.v, DTYPE_FP32, from, head, 0) : 1;
    k->weights[t] = dot * k->s->scale;
    top = fmax(top, k->weights[t]);
  }
  for (int64_t t = 0; t < k->tokens; t++)
    sum += exp(k->weights[t] - top);
  int64_t least = -1;
  for (int64_t t = 0; t < k->tokens; t++) {
    double p = exp(k->weights[t] - top) / sum;
    k->weights[t] = p * k->scales[t];
    if (p > 0.002 && (least < 0 || k->weights[t] < k->weights[least])) least = t;
  }
  if (k->fault == LEAST_TOKEN_LOST && least >= 0) k->weights[least] = 0;
}

static void compute_row(const ideal *k, int64_t row, int64_t head, const int64_t *slots) {
  const contract *c = &k->s->contract;
  double largest = 0, before = 0;
  weigh(k, row, head, slots);
  for (int64_t t = 0; t < k->tokens; t++)
    largest = fmax(largest, k->weights[t]);
  for (int64_t i = 0; i < c->head_dim.v; i++) {
    double sum = 0;
    for (int64_t t = 0; t < k->tokens; t++) {
      sum += held(k, k->weights[t], largest) *
             stored(k, TENSOR_V_CACHE, &c->kv.v, c->kv.v_dtype, slots[t], head, i);
      if (k->fault == SUM_OF_BF16) sum = rounded(DTYPE_BF16, sum);
    }
    put(c->output.dtype, k->s->data.memory[TENSOR_OUT], row * c->head_dim.v + i,
        k->fault == FIRST_CHANNEL_TWICE && i == 1 ? before : sum);
    before = sum;
  }
}

/* Replaces out by what the kernel makes of it. */
static void compute(const solved *s, fault f) {
  ideal k = {.s = s, .fault = f};
  k.weights = calloc((size_t)s->data.longest + 1, sizeof(double));
  k.scales = calloc((size_t)s->data.longest + 1, sizeof(double));
  int64_t heads = s->data.sizes[DIM_KV_HEADS], g = s->contract.query.heads_per_kv;
  for (int64_t seq = 0; seq < s->data.sizes[DIM_SEQS]; seq++) {
    const int64_t first = s->data.first_token[seq];
    k.tokens = s->data.first_token[seq + 1] - first;
    for (int64_t q = 0; q < heads * g; q++)
      compute_row(&k, seq * heads * g + q, q / g, s->data.slot + first);
  }
  free(k.weights);
  free(k.scales);
}

static contract unscaled_contract(dtype d) {
  contract c = bf16_contract();
  c.kv.k_dtype = DTYPE_BF16;
  c.kv.v_dtype = d;
  return c;
}

static contract contract_number(int n) {
  switch (n) {
  case 0:
    return fp8_contract();
  case 1:
    return bf16_contract();
  case 2:
    return unscaled_contract(DTYPE_INT8);
  case 3:
    return unscaled_contract(DTYPE_FP8_E4M3FN);
  default:
    return unscaled_contract(DTYPE_FP16);
  }
}
enum { CONTRACTS = 5 };

static verify_outcome verdict(contract c, const char *name, uint64_t seed, fault f) {
  solved s;
  solve(&s, c, case_named(name), seed);
  compute(&s, f);
  verify_outcome o = judge(&s);
  verify_data_finish(&s.data);
  return o;
}

static const char *const ordinary[] = {"plain", "split", "heads", "zero-query"};
static const char *const uneven[] = {"zero-tokens",   "peaked",        "outliers",
                                     "wide-v-scales", "zero-v-scales", "wide-v-scales-peaked"};

Test(verify_limits, no_kernel_is_asked_for_more_than_its_formats_hold) {
  for (int n = 0; n < CONTRACTS; n++)
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven; i++)
      for (uint64_t seed = 0; seed < 4; seed++) {
        verify_outcome o = verdict(contract_number(n), uneven[i], seed, SOUND);
        cr_expect(o.good, "contract %d, %s, seed %d: %s", n, uneven[i], (int)seed, o.problem);
      }
}

/* The token that has nearly all the weight has no value, as 8 bits without a scale hold it: what is left are
 * weights below fp16's last place. No fixed fraction of the row can be the limit. */
Test(verify_limits, an_ideal_kernel_may_lose_a_whole_row) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 20; seed++) {
    solved s;
    solve(&s, unscaled_contract(DTYPE_INT8), case_named("wide-v-scales-peaked"), seed);
    s.scale = 0.5;
    compute(&s, SOUND);
    verify_outcome o = judge(&s);
    cr_assert(o.good, "seed %d: %s", (int)seed, o.problem);
    worst = fmax(worst, o.row_rms);
    verify_data_finish(&s.data);
  }
  cr_assert_gt(worst, 0.5);
}

Test(verify_limits, ordinary_rows_keep_the_aim) {
  for (int n = 0; n < CONTRACTS; n++)
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++) {
      verify_outcome o = verdict(contract_number(n), ordinary[i], 7, SOUND);
      cr_expect(o.good, "contract %d, %s: %s", n, ordinary[i], o.problem);
      cr_expect_leq(o.rms_allowed, 2.7e-3, "contract %d, %s: %g", n, ordinary[i], o.rms_allowed);
      cr_expect_leq(o.row_allowed, 5.5e-3, "contract %d, %s: %g", n, ordinary[i], o.row_allowed);
    }
}

/* Each in cases that are made for it. */
Test(verify_limits, faults_are_found) {
  static const struct {
    fault fault;
    int contract;
    const char *name;
  } planted[] = {
      {SMALL_WEIGHTS_LOST, 2, "wide-v-scales-peaked"},
      {WEIGHTS_OF_FP8, 0, "split"},
      {WEIGHTS_OF_FP8, 2, "outliers"},
      {WEIGHTS_OF_FP8, 4, "wide-v-scales"},
      {LEAST_TOKEN_LOST, 0, "split"},
      {LEAST_TOKEN_LOST, 1, "peaked"},
      {LEAST_TOKEN_LOST, 2, "wide-v-scales"},
      {LEAST_TOKEN_LOST, 3, "outliers"},
      {NEIGHBOURS_SCALE, 0, "split"},
      {NEIGHBOURS_SCALE, 0, "wide-v-scales-peaked"},
      {SUM_OF_BF16, 0, "split"},
      {SUM_OF_BF16, 1, "outliers"},
      {FIRST_CHANNEL_TWICE, 2, "wide-v-scales"},
      {FIRST_CHANNEL_TWICE, 4, "split"},
  };
  for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
    int found = 0;
    for (uint64_t seed = 0; seed < 5; seed++)
      found += !verdict(contract_number(planted[i].contract), planted[i].name, seed, planted[i].fault).good;
    cr_expect_gt(found, 0, "fault %d of contract %d is not found in %s", planted[i].fault,
                 planted[i].contract, planted[i].name);
  }
}

/* Codes of few levels: the writer's rule, not the kernel, costs the cosine. */
static contract coarse_contract(double qmax) {
  contract c = fp8_contract();
  c.scale.writer.qmax = qmax;
  return c;
}

Test(verify_limits, what_the_format_loses_is_not_the_kernels) {
  verify_outcome o = verdict(coarse_contract(0.02), "lengths", 5, SOUND);
  cr_assert(o.good, "%s", o.problem);
  cr_assert_lt(o.cosine, 0.999);
  cr_assert_float_eq(o.cosine, o.cosine_stored, 1e-4);
}

Test(verify_limits, a_cosine_that_the_kernel_loses_is_found) {
  solved s;
  solve(&s, coarse_contract(0.02), case_named("lengths"), 5);
  verify_outcome before = judge(&s);
  for (int64_t i = 0; i < 22 * 64; i += 16) /* an element of 16 has the other sign */
    put(DTYPE_BF16, s.data.memory[TENSOR_OUT], i, -get(DTYPE_BF16, s.data.memory[TENSOR_OUT], i));
  verify_outcome o = judge(&s);
  cr_assert(before.good && !o.good);
  cr_assert_lt(o.cosine, o.cosine_least);
  verify_data_finish(&s.data);
}

Test(verify_limits, caches_that_do_not_hold_k_and_v_are_found) {
  solved s;
  diags d;
  diags_init(&d);
  solve(&s, fp8_contract(), case_named("lengths"), 5);
  unsigned char *codes = s.data.memory[TENSOR_V_CACHE];
  for (size_t i = 0; i < tensor_bytes(&s.data.decode.by_name[TENSOR_V_CACHE]); i += 16)
    codes[i] ^= 0x80; /* the writer and the oracle agree on what is wrong */
  cr_assert_eq(oracle_decode_rounded(&s.contract, &s.data.decode, s.dims, s.scale, &d), HD_OK);
  verify_outcome o = judge(&s);
  cr_assert_not(o.good);
  cr_assert_not_null(strstr(o.problem, "on the stored bytes"), "%s", o.problem);
  verify_data_finish(&s.data);
  diags_finish(&d);
}
