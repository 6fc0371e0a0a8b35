/* Claims about what of a contract reaches the source, and that the check gives the answer of the emission. */
#include "emit_fixture.h"

/* ---- the contract decides the source ---- */

/* Behind the comment that quotes the contract. */
static const char *code_of(const emission *e) {
  const char *code = strstr(e->source, "\nconstexpr ");
  cr_assert_not_null(code);
  return code;
}

static void edit_page(contract *c) {
  c->kv.page = 64;
  c->kv.k = parsed("[b,h,d/16,s,d%16]", 64, 128);
  c->kv.v = parsed("[b,h,s/16,d,s%16]", 64, 128);
}
static void edit_k(contract *c) {
  c->kv.k = parsed("[b,h,s,d]", 128, 128);
}
static void edit_v(contract *c) {
  c->kv.v = parsed("[b,h,d,s]", 128, 128);
}
static void edit_heads(contract *c) {
  c->query.heads_per_kv = 7;
}
static void edit_query(contract *c) {
  c->query.dtype = DTYPE_FP16;
}
static void edit_cache(contract *c) {
  c->kv.k_dtype = c->kv.v_dtype = DTYPE_BF16;
}
static void edit_scale(contract *c) {
  c->scale.dtype = DTYPE_FP16;
}
static void edit_scale_k(contract *c) {
  c->scale.k = parsed("[b,s,h]", 128, 0);
}
static void edit_scale_v(contract *c) {
  c->scale.v = parsed("[b,s,h]", 128, 0);
}
static void edit_granularity(contract *c) {
  c->scale.granularity = SCALE_TENSOR;
}
static void edit_source(contract *c) {
  c->scale.granularity = SCALE_TENSOR;
  c->scale.argument = true;
}
static void edit_output(contract *c) {
  c->output.dtype = DTYPE_FP32;
}
static void edit_lse(contract *c) {
  c->output.lse = true;
}
static void edit_rsqrt(contract *c) {
  c->logits.scale = LOGITS_RSQRT_D;
}
static void edit_floor(contract *c) {
  c->scale.writer.amax_floor = (double)1e-8f;
}

static void edit_scale_floor(contract *c) {
  c->scale.writer.scale_floor = (double)1e-6f;
}
static void edit_zero(contract *c) {
  c->scale.writer.zero_value = 0;
}
static void edit_qmax(contract *c) {
  c->scale.writer.qmax = 127;
}

Test(emit, what_a_contract_says_reaches_the_code_of_whom_it_concerns) {
  enum { WRITER = 1, READER = 2, BOTH = 3 };
  static const struct {
    const char *what;
    void (*edit)(contract *c);
    int who;
  } edits[] = {
      {"page", edit_page, BOTH},
      {"k", edit_k, BOTH},
      {"v", edit_v, BOTH},
      {"heads_per_kv", edit_heads, READER},
      {"query dtype", edit_query, BOTH},
      {"kv dtype", edit_cache, BOTH},
      {"scale dtype", edit_scale, BOTH},
      {"scale.k", edit_scale_k, BOTH},
      {"scale.v", edit_scale_v, BOTH},
      {"granularity", edit_granularity, BOTH},
      {"source", edit_source, BOTH},
      {"output dtype", edit_output, READER},
      {"lse", edit_lse, READER},
      {"logits", edit_rsqrt, READER},
      {"amax_floor", edit_floor, WRITER},
      {"scale_floor", edit_scale_floor, WRITER},
      {"zero_row", edit_zero, WRITER},
      {"qmax", edit_qmax, WRITER},
  };
  contract base = shipped("minimax-m3-dense-fp8");
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      emission before = emitted(&base, operations[o], &(variant){0}, target_at(n));
      for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        contract c = base;
        edits[i].edit(&c);
        emission after = emitted(&c, operations[o], &(variant){0}, target_at(n));
        cr_expect_eq(strcmp(code_of(&before), code_of(&after)) != 0,
                     (edits[i].who & (o ? READER : WRITER)) != 0, "%s in %s for %s", edits[i].what,
                     operation_name(operations[o]), target_at(n)->name);
        cr_expect_str_neq(before.descriptor.contract_key, after.descriptor.contract_key, "%s", edits[i].what);
        emission_finish(&after);
      }
      emission_finish(&before);
    }
}

static void same_source(const char *spec_a, const char *spec_b) {
  spec a = parse_good(spec_a), b = parse_good(spec_b);
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      emission x = emitted(&a.contract, operations[o], &(variant){0}, target_at(n));
      emission y = emitted(&b.contract, operations[o], &(variant){0}, target_at(n));
      cr_expect_str_eq(x.descriptor.contract_key, y.descriptor.contract_key);
      cr_expect(strcmp(x.source, y.source) == 0, "%s for %s: one key, two sources",
                operation_name(operations[o]), target_at(n)->name);
      emission_finish(&x);
      emission_finish(&y);
    }
  spec_finish(&a);
  spec_finish(&b);
}

#define SPEC(heads_and_cache) "heddle: 1\nquery: {heads_per_kv: 8}\nhead_dim: 128\n" heads_and_cache

Test(emit, one_key_has_one_source_however_the_spec_spells_it) {
  same_source(SPEC("kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"),
              SPEC("kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/64, d/16%4, s, d%16], v: [b, h, d, s]}\n"));
  same_source(SPEC("kv: {dtype: bf16, page: 1, k: [b, h, d/8, s, d%8], v: [b, h, d, s]}\n"),
              SPEC("kv: {dtype: bf16, page: 1, k: [b, h, d], v: [b, h, s, d]}\n"));
  same_source(
      SPEC("kv: {dtype: fp8_e4m3, page: 32, k: [b, h, s, d], v: [b, h, s, d]}\n"
           "scale: {granularity: token_head, k: [b, h, s/4, s%4], writer: {qmax: dialect, zero_row: 0}}\n"),
      SPEC("kv: {dtype: fp8_e4m3, page: 32, k: [b, h, s, d], v: [b, h, s, d]}\n"
           "scale: {granularity: token_head, writer: {amax_floor: 0.0, zero_row: floor}}\n"));
}

/* ---- one selector ---- */

static void same_diagnostics(const diags *a, const diags *b, const char *what) {
  cr_assert_eq(a->count, b->count, "%s", what);
  for (size_t i = 0; i < a->count; i++) {
    cr_assert_str_eq(a->items[i].code, b->items[i].code, "%s", what);
    cr_assert_str_eq(a->items[i].message, b->items[i].message, "%s", what);
    cr_assert_eq(strncmp(a->items[i].code, "decline.", 8), 0, "%s: %s", what, a->items[i].code);
    cr_assert(a->items[i].field && a->items[i].severity == DIAG_ERROR, "%s: %s", what, a->items[i].code);
    cr_assert(a->items[i].message[0] && !strchr(a->items[i].message, '\n'), "%s", what);
  }
}

Test(emit, the_check_and_the_emission_give_one_answer) {
  uint64_t state = 0x853c49e6748fea9bu;
  int served = 0, declined = 0;
  for (int round = 0; round < 2500; round++) {
    contract c = random_contract(&state);
    variant v = {.structure = (structure)random_below(&state, 3)};
    if (random_below(&state, 2)) v.structure = STRUCTURE_AUTO;
    if (random_below(&state, 3) == 0) v.waves = random_below(&state, 18);
    if (random_below(&state, 8) == 0) v.stages = 1 + random_below(&state, 16);
    const target *t = target_at((size_t)round % target_count());
    for (int o = 0; o < 2; o++) {
      emission e, untouched;
      memset(&e, 0x5a, sizeof e);
      untouched = e;
      diags checked, emitting;
      diags_init(&checked);
      diags_init(&emitting);
      hd_status answer = emit_check(&c, operations[o], &v, t, &checked);
      hd_status outcome = emit_operation(&c, operations[o], &v, t, templates_embedded(), &e, &emitting);
      text what;
      text_init(&what);
      text_addf(&what, "round %d, %s for %s:\n", round, operation_name(operations[o]), t->name);
      contract_write(&c, &what);
      cr_assert_eq(answer, outcome, "%s", text_string(&what));
      same_diagnostics(&checked, &emitting, text_string(&what));
      if (outcome == HD_OK) {
        cr_assert_eq(checked.count, 0, "%s", text_string(&what));
        has_no_fence(&c, &e, text_string(&what));
        for (int k = 0; k < e.descriptor.kernel_count; k++)
          parameters_match(e.source, &e.descriptor.kernels[k], text_string(&what));
        emission_finish(&e);
        served++;
      } else {
        cr_assert_eq(outcome, HD_DECLINED, "%s", text_string(&what));
        cr_assert_geq(checked.count, 1, "%s: declined without a word", text_string(&what));
        cr_assert_eq(memcmp(&e, &untouched, sizeof e), 0, "%s: a decline leaves the result alone",
                     text_string(&what));
        declined++;
      }
      text_finish(&what);
      diags_finish(&checked);
      diags_finish(&emitting);
    }
  }
  cr_expect(served > 800 && declined > 1000, "%d served, %d declined", served, declined);
}

/* ---- whose words ---- */

/* Names and remarks are anybody's text; a contract has none of it, so no comment can be ended from a spec. */
Test(emit, no_word_of_a_specs_author_reaches_the_source) {
  char *yaml =
      spec_with(base_spec, "", "name: author-word\nabout: '*/ author-word\n\n  #error author-word'\n");
  spec s = parse_good(yaml), plain = parse_good(base_spec);
  cr_assert_not_null(strstr(s.about, "*/ author-word\n"));
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      if (target_at(n)->fp8 != DTYPE_FP8_E4M3FN) continue; /* base_spec's dialect */
      emission e = emitted(&s.contract, operations[o], &(variant){0}, target_at(n));
      emission same = emitted(&plain.contract, operations[o], &(variant){0}, target_at(n));
      cr_expect_null(strstr(e.source, "author-word"));
      cr_expect_str_eq(e.source, same.source);
      emission_finish(&e);
      emission_finish(&same);
    }
  spec_finish(&s);
  spec_finish(&plain);
  free(yaml);
}
