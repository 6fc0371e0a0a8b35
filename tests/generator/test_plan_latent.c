/* Claims about plans of latent caches, whose values lie in their keys and whose tails have products of their
 * own. */
#include "plan_fixture.h"

/* ---- latent caches ---- */

static const char *const latent_specs[] = {"deepseek-mla-bf16", "deepseek-mla-fp8", "deepseek-mla-fp8-656",
                                           "deepseek-mla-fp8-584"};

/* V's channels of the tail: each in one tile of one workgroup, loaded whole from where it lies. */
static void values_of_the_tail_are_dealt_once(const contract *c, const decode_plan *p, const char *what) {
  const layout *l = &c->kv.tail.layout;
  const int bytes = dtype_bytes(c->kv.tail.dtype), channels = c->head_dim.v - contract_coded_v(c);
  int seen[4096] = {0};
  if (channels == 0) return;
  cr_assert_eq(p->tail_value_op->elements, p->value_op->elements, "%s: weights of one shape", what);
  cr_assert(is_width(p->tail_tokens * p->tail_channels * bytes), "%s", what);
  cr_assert(p->tail_tokens == 1 || p->tail_channels == 1, "%s: a load runs one way", what);
  cr_assert_eq(p->tail_tiles % p->tail_channels, 0, "%s", what);
  cr_assert_eq(p->own_run % p->tail_tokens, 0, "%s", what);
  for (int slice = 0; slice < p->slices; slice++)
    for (int index = 0; index < p->op->rows; index++)
      for (int m = 0; m < p->tail_tiles; m++) {
        int first = (m / p->tail_channels * p->op->rows + index) * p->tail_channels;
        int channel = slice * p->tail_tiles * p->op->rows + first + m % p->tail_channels;
        seen[channel]++;
        if (m % p->tail_channels || channel >= channels) continue;
        cr_assert_leq(channel + p->tail_channels, channels, "%s: loads are whole inside V, or outside", what);
        for (int slot = 0; slot < c->kv.page; slot += p->tail_tokens) {
          int64_t at = c->kv.tail.at + bytes * layout_offset(l, 0, 0, 1, 0, 0, slot, channel);
          cr_assert_eq(at % (p->tail_tokens * p->tail_channels * bytes), 0, "%s: load at %lld", what,
                       (long long)at);
        }
      }
  for (int d = 0; d < channels; d++)
    cr_assert_eq(seen[d], 1, "%s: V channel %d of the tail", what, d);
}

/* The spec with pages of `tokens` tokens; where scales lie behind all of them, they move. Free it. */
static char *with_pages(const char *yaml, int tokens) {
  char page[32], behind[32], at[32];
  snprintf(page, sizeof page, "page: %d\n", tokens);
  char *changed = spec_with(yaml, "page: 64\n", page);
  if (!strstr(yaml, "s+512")) return changed;
  snprintf(behind, sizeof behind, "s+%d", 8 * tokens);
  snprintf(at, sizeof at, "at: %d", 576 * tokens);
  char *padded = spec_with(changed, "s+512", behind), *moved = spec_with(padded, "at: 36864", at);
  free(changed);
  free(padded);
  return moved;
}

Test(plan, latent_caches_are_served_with_any_queries_and_pages) {
  static const int heads[] = {8, 16, 20, 32, 64, 128}, pages[] = {1, 16, 64};
  for (size_t i = 0; i < sizeof latent_specs / sizeof *latent_specs; i++) {
    char *yaml = read_shipped(latent_specs[i]);
    for (int n = 0; n < 6 * 3; n++) {
      char head[32];
      snprintf(head, sizeof head, "heads_per_kv: %d\n", heads[n / 3]);
      char *with_heads = spec_with(yaml, "heads_per_kv: 16\n", head);
      char *changed = with_pages(with_heads, pages[n % 3]);
      spec s = parse_good(changed);
      for (size_t t = 0; t < target_count(); t++) {
        contract c = contract_resolve(&s.contract, target_at(t)->fp8);
        decode_plan p = planned(&c, 0, target_at(t), latent_specs[i]);
        counts_agree(&c, &p, latent_specs[i]);
        channels_are_dealt_once(&c, &p, latent_specs[i]);
        loads_are_contiguous_and_aligned(&c, &p, latent_specs[i]);
        values_of_the_tail_are_dealt_once(&c, &p, latent_specs[i]);
        fits_lds(&c, &p, latent_specs[i]);
      }
      spec_finish(&s);
      free(changed);
      free(with_heads);
    }
    free(yaml);
  }
}

Test(plan, channels_of_a_tail_are_dealt_once_in_loads_that_read_them) {
  spec s = shipped("deepseek-mla-fp8-656");
  for (size_t t = 0; t < target_count(); t++) {
    contract c = contract_resolve(&s.contract, target_at(t)->fp8);
    decode_plan p = planned(&c, 0, target_at(t), "656");
    const layout *l = &c.kv.tail.layout;
    int seen[256] = {0};
    cr_assert_not_null(p.tail_op);
    cr_expect_eq(p.tail_op->operand, DTYPE_BF16);
    cr_expect_eq(p.tail_load * 2, 16, "%s: the tail has runs of 16 bytes", target_at(t)->name);
    for (int group = 0; group < p.tail_op->groups; group++)
      for (int e = 0; e < p.tail_list; e++)
        seen[(e / p.tail_chunk * p.tail_op->groups + group) * p.tail_chunk + e % p.tail_chunk]++;
    for (int d = 0; d < c.kv.tail.channels; d++)
      cr_expect_eq(seen[d], 1, "%s: channel %d", target_at(t)->name, d);
    for (int slot = 0; slot < c.kv.page; slot++)
      cr_expect_eq((c.kv.tail.at + 2 * layout_offset(l, 0, 0, 1, 0, 0, slot, 0)) % (2 * p.tail_load), 0);
  }
  spec_finish(&s);
}

static void edit_tail_format(contract *c) {
  c->kv.tail.dtype = DTYPE_FP32;
}
static void edit_tail_length(contract *c) {
  c->kv.tail.channels = 60;
}

Test(plan, tails_that_no_product_takes_decline_by_name) {
  static void (*const edits[])(contract * c) = {edit_tail_format, edit_tail_length};
  spec s = shipped("deepseek-mla-fp8-656");
  for (size_t i = 0; i < 2; i++) {
    contract c = contract_resolve(&s.contract, DTYPE_FP8_E4M3FN);
    edits[i](&c);
    decode_plan p;
    diags problems;
    diags_init(&problems);
    cr_expect_eq(plan_decode(&c, &(variant){0}, target_find("gfx950"), &p, &problems), HD_DECLINED);
    cr_assert_geq((int)problems.count, 1);
    cr_expect_str_eq(problems.items[0].code, "decline.tail");
    diags_finish(&problems);
  }
  spec_finish(&s);
}
