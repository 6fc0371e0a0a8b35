/* Claims about the oracle's decode that hold whatever the numbers are. */
#include "reference_fixture.h"

typedef struct random_case {
  contract c;
  reference_decode_args args;
  unsigned char q[2 * 2 * 4 * 16 * 2], k[8 * 2 * 4 * 16], v[8 * 2 * 4 * 16];
  float k_scale[8 * 2 * 4], v_scale[8 * 2 * 4];
  int32_t table[2 * 4], lengths[2];
  double out[2 * 2 * 4 * 16], lse[2 * 2 * 4];
} random_case;

enum { PAGE_BYTES = 2 * 4 * 16, PAGE_SCALES = 2 * 4, OUTPUTS = 2 * 2 * 4 * 16 };

static double random_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) * 0x1p-23 - 1.0;
}

/* 2 sequences of 13 and 7 tokens, 2 rows, 2 kv heads, g 2, page 4, dim 16, 8 pages. */
static void random_init(random_case *r) {
  memset(r, 0, sizeof *r);
  uint32_t state = 12345;
  r->c = example_contract(4, 16, 16);
  r->c.kv.k_dtype = r->c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  r->c.query.heads_per_kv = 2;
  r->c.query.rows = 2;
  r->c.scale.granularity = SCALE_TOKEN_HEAD;
  r->c.scale.k = r->c.scale.v = example_layout("b h s", 4, 16);
  for (int i = 0; i < OUTPUTS; i++)
    put(DTYPE_BF16, r->q, i, random_number(&state));
  for (int i = 0; i < 8 * PAGE_BYTES; i++) {
    put(DTYPE_FP8_E4M3FN, r->k, i, 448.0 * random_number(&state));
    put(DTYPE_FP8_E4M3FN, r->v, i, 448.0 * random_number(&state));
  }
  for (int i = 0; i < 8 * PAGE_SCALES; i++) {
    r->k_scale[i] = (float)(0.01 + 0.005 * random_number(&state));
    r->v_scale[i] = (float)exp(8.0 * random_number(&state));
  }
  static const int32_t table[] = {6, 1, 4, 3, 0, 7, -1, 1 << 30};
  memcpy(r->table, table, sizeof table);
  r->lengths[0] = 13;
  r->lengths[1] = 7;
  r->args = (reference_decode_args){.seqs = 2,
                                    .rows = 2,
                                    .kv_heads = 2,
                                    .table_pages = 4,
                                    .pages = 8,
                                    .q = r->q,
                                    .k_cache = {r->k, 128, 64},
                                    .v_cache = {r->v, 128, 64},
                                    .k_scale = {r->k_scale, 8, 4},
                                    .v_scale = {r->v_scale, 8, 4},
                                    .page_table = r->table,
                                    .lengths = r->lengths,
                                    .logits_scale = 0.25,
                                    .out = r->out,
                                    .lse = r->lse};
  cr_assert_eq(decode(&r->c, &r->args), HD_OK);
}

static void expect_same(const random_case *a, const random_case *b) {
  cr_expect(memcmp(a->out, b->out, sizeof a->out) == 0);
  cr_expect(memcmp(a->lse, b->lse, sizeof a->lse) == 0);
}

Test(reference, permuting_pages_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int page = 0; page < 8; page++) { /* page p moves to 7 - p */
    memcpy(b.k + (7 - page) * PAGE_BYTES, a.k + page * PAGE_BYTES, PAGE_BYTES);
    memcpy(b.v + (7 - page) * PAGE_BYTES, a.v + page * PAGE_BYTES, PAGE_BYTES);
    memcpy(b.k_scale + (7 - page) * PAGE_SCALES, a.k_scale + page * PAGE_SCALES, sizeof(float) * PAGE_SCALES);
    memcpy(b.v_scale + (7 - page) * PAGE_SCALES, a.v_scale + page * PAGE_SCALES, sizeof(float) * PAGE_SCALES);
  }
  for (int i = 0; i < 6; i++)
    b.table[i] = 7 - a.table[i];
  memset(b.out, 0, sizeof b.out);
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
}

Test(reference, scaling_v_scales_the_output_alone) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int i = 0; i < 8 * PAGE_SCALES; i++)
    b.v_scale[i] *= 4.0f;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  for (int i = 0; i < OUTPUTS; i++)
    cr_expect(b.out[i] == 4.0 * a.out[i]);
  cr_expect(memcmp(a.lse, b.lse, sizeof a.lse) == 0);
}

Test(reference, a_longer_window_that_sees_no_more_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  b.c.mask.window = 13;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
  b.c.mask.window = 1000000;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
  b.c.mask.window = 12;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  cr_expect(memcmp(a.out, b.out, sizeof a.out) != 0);
}

Test(reference, halving_q_and_doubling_the_logits_scale_changes_nothing) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  for (int i = 0; i < OUTPUTS; i++)
    put(DTYPE_BF16, b.q, i, 0.5 * get(DTYPE_BF16, a.q, i));
  b.args.logits_scale = 0.5;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  expect_same(&a, &b);
}

Test(reference, a_shifted_last_row_is_the_one_row_decode) {
  random_case a, b;
  random_init(&a);
  random_init(&b);
  b.c.query.rows = 1; /* row 0 of 2 sees one token less */
  b.args.rows = 1;
  b.args.seqs = 1;
  b.lengths[0] = 12;
  cr_assert_eq(decode(&b.c, &b.args), HD_OK);
  cr_expect(memcmp(a.out, b.out, sizeof(double) * 4 * 16) == 0);
}

Test(reference, outputs_stay_within_the_values_they_average) {
  random_case r;
  random_init(&r);
  double largest = 0.0;
  for (int i = 0; i < 8 * PAGE_SCALES; i++)
    largest = fmax(largest, (double)r.v_scale[i] * 448.0);
  for (int i = 0; i < OUTPUTS; i++)
    cr_expect(fabs(r.out[i]) <= largest);
}
