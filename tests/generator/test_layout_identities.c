/* Identities that hold of every layout: small ones all, larger ones at random, damaged ones. */
#include "../layout_fixture.h"
#include <ctype.h>

enum { HEADS = 3, PAGES = 2 };

/* ---- identities, over every small layout ---- */

static void offsets_follow_the_shape(const layout *l, const char *list) {
  const int64_t stride_h = 1009, stride_b = 100003;
  for (int64_t slot = 0; slot < l->size[AXIS_S]; slot++)
    for (int64_t channel = 0; channel < l->size[AXIS_D]; channel++)
      if (layout_offset(l, stride_b, stride_h, HEADS, 1, 2, slot, channel) !=
          offset_by_shape(l, stride_b, stride_h, HEADS, 1, 2, slot, channel))
        cr_assert(false, "%s: slot %lld channel %lld", list, (long long)slot, (long long)channel);
}

Test(layout, an_offset_is_the_number_its_digits_spell) {
  cr_expect_gt(for_each_small_layout(offsets_follow_the_shape), 30000);
}

static bool same_factors(const layout *a, const layout *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++) {
    const layout_factor *x = &a->factors[i], *y = &b->factors[i];
    if (x->axis != y->axis || x->divisor != y->divisor || x->extent != y->extent || x->pad != y->pad)
      return false;
  }
  return memcmp(a->size, b->size, sizeof a->size) == 0;
}

static void canonical_means_the_same(const layout *l, const char *list) {
  layout c = *l;
  layout_canonicalize(&c);
  for (int64_t slot = 0; slot < l->size[AXIS_S]; slot++)
    for (int64_t channel = 0; channel < l->size[AXIS_D]; channel++)
      if (layout_offset(l, 100003, 1009, HEADS, 1, 2, slot, channel) !=
          layout_offset(&c, 100003, 1009, HEADS, 1, 2, slot, channel))
        cr_assert(false, "%s: slot %lld channel %lld", list, (long long)slot, (long long)channel);
  for (int i = 0; i < c.count; i++) {
    const layout_factor *f = &c.factors[i], *outer = i ? f - 1 : NULL;
    if (f->axis != AXIS_S && f->axis != AXIS_D) continue;
    if (f->extent == 1) cr_assert(false, "%s: a digit of extent 1 is left", list);
    if (outer && outer->axis == f->axis && outer->divisor == f->divisor * f->extent)
      cr_assert(false, "%s: factors %d and %d are one digit", list, i - 1, i);
  }
  layout again = c;
  layout_canonicalize(&again);
  if (!same_factors(&again, &c)) cr_assert(false, "%s: canonical twice is not canonical once", list);
  if (!layout_equal(l, &c) || !layout_equal(&c, l))
    cr_assert(false, "%s: not equal to its canonical form", list);
}

Test(layout, the_canonical_form_keeps_every_offset_and_has_the_fewest_factors) {
  for_each_small_layout(canonical_means_the_same);
}

static void written_reads_back(const layout *l, const char *list) {
  layout canonical = *l;
  layout_canonicalize(&canonical);
  const layout *forms[] = {l, &canonical};
  for (int i = 0; i < 2; i++) {
    text t;
    text_init(&t);
    layout_write(forms[i], &t);
    layout back;
    layout_error error;
    if (!parse_list(text_string(&t), AXES_CACHE, l->size[AXIS_S], l->size[AXIS_D], &back, &error))
      cr_assert(false, "%s written as %s: %s", list, text_string(&t), error.message);
    if (!same_factors(&back, forms[i]))
      cr_assert(false, "%s comes back from %s as another", list, text_string(&t));
    text_finish(&t);
  }
}

Test(layout, what_is_written_parses_to_the_same_factors) {
  for_each_small_layout(written_reads_back);
}

static void packed_is_dense(const layout *l, const char *list) {
  const int64_t inner = l->size[AXIS_S] * l->size[AXIS_D], total = inner * HEADS * PAGES;
  unsigned char seen[8 * 8 * HEADS * PAGES] = {0};
  int64_t stride_b, stride_h;
  if (layout_inner_elements(l) != inner)
    cr_assert(false, "%s: %lld inner elements", list, (long long)layout_inner_elements(l));
  layout_packed_strides(l, PAGES, HEADS, &stride_b, &stride_h);
  for (int64_t page = 0; page < PAGES; page++)
    for (int64_t head = 0; head < HEADS; head++)
      for (int64_t slot = 0; slot < l->size[AXIS_S]; slot++)
        for (int64_t channel = 0; channel < l->size[AXIS_D]; channel++) {
          int64_t offset = layout_offset(l, stride_b, stride_h, HEADS, page, head, slot, channel);
          if (offset < 0 || offset >= total || seen[offset]++)
            cr_assert(false, "%s: page %lld head %lld slot %lld channel %lld at %lld", list, (long long)page,
                      (long long)head, (long long)slot, (long long)channel, (long long)offset);
        }
}

Test(layout, packed_strides_use_every_element_of_the_array_once) {
  for_each_small_layout(packed_is_dense);
}

static bool runs(const layout *l, axis a, int64_t run) {
  const axis other = a == AXIS_S ? AXIS_D : AXIS_S;
  for (int64_t fixed = 0; fixed < l->size[other]; fixed++)
    for (int64_t i = 0; i < l->size[a]; i++) {
      if (i % run == 0) continue;
      int64_t here = a == AXIS_S ? layout_offset(l, 100003, 1009, HEADS, 0, 0, i, fixed)
                                 : layout_offset(l, 100003, 1009, HEADS, 0, 0, fixed, i);
      int64_t before = a == AXIS_S ? layout_offset(l, 100003, 1009, HEADS, 0, 0, i - 1, fixed)
                                   : layout_offset(l, 100003, 1009, HEADS, 0, 0, fixed, i - 1);
      if (here != before + 1) return false;
    }
  return true;
}

static void runs_are_the_longest(const layout *l, const char *list) {
  for (int i = 0; i < 2; i++) {
    const axis a = i ? AXIS_D : AXIS_S;
    int64_t longest = 1;
    for (int64_t run = 2; run <= l->size[a]; run++)
      if (l->size[a] % run == 0 && runs(l, a, run)) longest = run;
    if (layout_run(l, a) != longest)
      cr_assert(false, "%s, page %lld, head_dim %lld: run of %c is %lld, not %lld", list,
                (long long)l->size[AXIS_S], (long long)l->size[AXIS_D], "bhsd"[a],
                (long long)layout_run(l, a), (long long)longest);
    layout canonical = *l;
    layout_canonicalize(&canonical);
    if (layout_run(&canonical, a) != longest)
      cr_assert(false, "%s: its canonical form runs differently", list);
  }
}

Test(layout, a_run_is_the_longest_that_memory_has) {
  for_each_small_layout(runs_are_the_longest);
}

Test(layout, the_runs_of_the_layouts_of_the_field) {
  static const struct {
    const char *list;
    int64_t page, dim, run_d, run_s;
  } cases[] = {
      {"[b, h, d/16, s, d%16]", 128, 128, 16, 1},
      {"[b, h, s/16, d, s%16]", 128, 128, 1, 16},
      {"[b, h, d, s]", 16, 128, 1, 16},
      {"[b, h, d, s]", 528, 128, 1, 528},
      {"[b, h, s, d]", 16, 128, 128, 1},
      {"[b, s, h, d]", 16, 128, 128, 1},
      {"[b, h, d%16, s, d/16]", 16, 128, 1, 1},
      {"[b, h, d]", 1, 128, 128, 1},
      {"[b, s, d, h]", 16, 128, 1, 1},
      {"[b, h, d/32, s, d%32/8, d%8]", 16, 128, 32, 1},
      {"[b, h, d, s/16, s%16]", 64, 128, 1, 64},
      {"[b, h, d/8, s, d%8]", 1, 128, 128, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l = parsed(cases[i].list, cases[i].page, cases[i].dim);
    cr_expect_eq(layout_run(&l, AXIS_D), cases[i].run_d, "%s: run of d", cases[i].list);
    cr_expect_eq(layout_run(&l, AXIS_S), cases[i].run_s, "%s: run of s", cases[i].list);
    cr_expect_eq(layout_run(&l, AXIS_H), 1, "%s: heads have a free stride", cases[i].list);
  }
}

/* What the kernels rely on when they load `width` elements at once. */
static void runs_start_aligned(const layout *l, const char *list) {
  for (int i = 0; i < 2; i++) {
    const axis a = i ? AXIS_D : AXIS_S, other = i ? AXIS_S : AXIS_D;
    const int64_t run = layout_run(l, a);
    for (int64_t start = 0; start < l->size[a]; start += run)
      for (int64_t fixed = 0; fixed < l->size[other]; fixed++) {
        int64_t stride_h = 48 * run;
        int64_t offset =
            layout_offset(l, 7 * stride_h, stride_h, HEADS, 1, 1, i ? fixed : start, i ? start : fixed);
        if (offset % run != 0)
          cr_assert(false, "%s: a run of %c starts at %lld", list, "bhsd"[a], (long long)offset);
      }
  }
}

Test(layout, runs_start_at_multiples_of_their_length_when_the_strides_are) {
  for_each_small_layout(runs_start_aligned);
}

static void strides_step(const layout *l, const char *list) {
  const int64_t stride_h = 1009;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    layout_stride s = layout_factor_stride(l, i);
    if (f->axis != AXIS_S && f->axis != AXIS_D) {
      if (s.elements != 0 || s.times_heads) cr_assert(false, "%s: b and h have run-time strides", list);
      continue;
    }
    if (f->extent == 1) continue;
    int64_t one = f->axis == AXIS_S ? layout_offset(l, 0, stride_h, HEADS, 0, 0, f->divisor, 0)
                                    : layout_offset(l, 0, stride_h, HEADS, 0, 0, 0, f->divisor);
    if (one != s.elements * (s.times_heads ? HEADS * stride_h : 1))
      cr_assert(false, "%s: factor %d", list, i);
  }
}

Test(layout, a_factors_stride_is_the_step_of_its_digit) {
  for_each_small_layout(strides_step);
}

Test(layout, equal_means_the_same_offsets_and_nothing_else) {
  layout whole = parsed("[b, h, d, s]", 16, 128);
  layout chunks = parsed("[b, h, s/16, d, s%16]", 16, 128), smaller = parsed("[b, h, s/8, d, s%8]", 16, 128);
  layout other_page = parsed("[b, h, d, s]", 32, 128), other_dim = parsed("[b, h, d, s]", 16, 64);
  layout turned = parsed("[h, b, d, s]", 16, 128), single = parsed("[b, h, d, s]", 1, 128);
  cr_expect(layout_equal(&whole, &chunks), "a page of 16 is one chunk of 16");
  cr_expect_not(layout_equal(&whole, &smaller));
  cr_expect_not(layout_equal(&whole, &other_page));
  cr_expect_not(layout_equal(&whole, &other_dim));
  cr_expect_not(layout_equal(&whole, &turned));
  cr_expect_not(layout_equal(&whole, &single), "one begins as the other does");
  cr_expect_not(layout_equal(&single, &whole));
}

Test(layout, the_canonical_text_of_the_layouts_of_the_field) {
  static const struct {
    const char *list, *canonical;
    int64_t page;
  } cases[] = {
      {"[b, h, d/16, s, d%16]", "[b, h, d/16, s, d%16]", 16},
      {"[b, h, s/16, d, s%16]", "[b, h, d, s]", 16},
      {"[b, h, s/16, d, s%16]", "[b, h, s/16, d, s%16]", 32},
      {"[b, h, d/16, s, d%16]", "[b, h, d]", 1},
      {"[b, h, s/16, s%16, d]", "[b, h, s, d]", 64},
      {"[b, s, h, d/8, d%8]", "[b, s, h, d]", 16},
      {"[b, h, d%16, s, d/16]", "[b, h, d%16, s, d/16]", 16},
      {"[b, h, d/64, s, d/16%4, d%16]", "[b, h, d/64, s, d%64]", 16},
      {"[b, h, d/32, d%32/16, s, d%16]", "[b, h, d/16, s, d%16]", 16},
      {"[b, h, d/64, s, d%16, d%64/16]", "[b, h, d/64, s, d%16, d%64/16]", 16},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l = parsed(cases[i].list, cases[i].page, 128);
    layout_canonicalize(&l);
    text t;
    text_init(&t);
    layout_write(&l, &t);
    cr_expect_str_eq(text_string(&t), cases[i].canonical);
    text_finish(&t);
  }
}

/* ---- the C expression ---- */

typedef struct expression {
  const char *at;
  int64_t slot, channel, heads_stride;
} expression;

static int64_t read_primary(expression *e) {
  static const char *const names[] = {"slot", "channel", "heads_stride"};
  const int64_t values[] = {e->slot, e->channel, e->heads_stride};
  while (*e->at == ' ')
    e->at++;
  for (int i = 0; i < 3; i++)
    if (strncmp(e->at, names[i], strlen(names[i])) == 0) {
      e->at += strlen(names[i]);
      return values[i];
    }
  cr_assert(isdigit((unsigned char)*e->at), "no operand at '%s'", e->at);
  char *end;
  int64_t number = strtoll(e->at, &end, 10);
  e->at = end;
  return number;
}

/* C's precedence: * / % from left to right, then +. */
static int64_t evaluate(expression *e) {
  int64_t sum = 0, term = read_primary(e);
  for (;;) {
    while (*e->at == ' ')
      e->at++;
    char operation = *e->at;
    if (operation == 0) return sum + term;
    e->at++;
    int64_t operand = read_primary(e);
    switch (operation) {
    case '+':
      sum += term;
      term = operand;
      break;
    case '*':
      term *= operand;
      break;
    case '/':
      term /= operand;
      break;
    case '%':
      term %= operand;
      break;
    default:
      cr_assert(false, "'%c' is no operation", operation);
    }
  }
}

static void expression_agrees(const layout *l, const char *list) {
  text t;
  text_init(&t);
  layout_write_offset(l, "slot", "channel", "heads_stride", &t);
  const int64_t stride_h = 1009, heads = 5;
  for (int64_t slot = 0; slot < l->size[AXIS_S]; slot++)
    for (int64_t channel = 0; channel < l->size[AXIS_D]; channel++) {
      expression e = {text_string(&t), slot, channel, heads * stride_h};
      int64_t found = evaluate(&e), right = layout_offset(l, 0, stride_h, heads, 0, 0, slot, channel);
      if (found != right)
        cr_assert(false, "%s: '%s' is %lld at slot %lld, channel %lld, not %lld", list, text_string(&t),
                  (long long)found, (long long)slot, (long long)channel, (long long)right);
    }
  text_finish(&t);
}

Test(layout, the_expression_in_c_is_the_offset) {
  for_each_small_layout(expression_agrees);
}

Test(layout, expressions_are_as_short_as_the_layout) {
  static const struct {
    const char *list, *expression;
    int64_t page;
  } cases[] = {
      {"[b, h, s, d]", "slot * 128 + channel", 16},
      {"[b, s, h, d]", "slot * heads_stride + channel", 16},
      {"[b, h, d/16, s, d%16]", "channel / 16 * 1024 + slot * 16 + channel % 16", 64},
      {"[b, s/8, h, d, s%8]", "slot / 8 * heads_stride + channel * 8 + slot % 8", 16},
      {"[b, s/8, s%8, h, d]", "slot / 8 * 8 * heads_stride + slot % 8 * heads_stride + channel", 16},
      {"[b, h]", "0", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l = parsed(cases[i].list, cases[i].page, 128);
    text t;
    text_init(&t);
    layout_write_offset(&l, "slot", "channel", "heads_stride", &t);
    cr_expect_str_eq(text_string(&t), cases[i].expression);
    text_finish(&t);
  }
}

/* ---- random and hostile ---- */

/* Up to six digits an axis, sizes with odd factors, any order. */
static layout random_layout(uint64_t *state, char list[256]) {
  static const int primes[] = {2, 2, 2, 3, 5, 11};
  char digits[14][32];
  int count = 2;
  int64_t size[2] = {1, 1};
  snprintf(digits[0], 32, "h");
  snprintf(digits[1], 32, "b");
  for (int a = 0; a < 2; a++) {
    int parts = 1 + random_below(state, 5);
    int64_t divisor = 1;
    for (int i = 0; i < parts; i++) {
      int64_t extent = 1;
      for (int n = random_below(state, 3); n > 0 && divisor * extent < 200; n--)
        extent *= primes[random_below(state, 6)];
      snprintf(digits[count++], 32, "%c/%lld%%%lld", "sd"[a], (long long)divisor, (long long)extent);
      divisor *= extent;
    }
    size[a] = divisor;
  }
  for (int i = count - 1; i > 1; i--) { /* b and h stay first, the digits are shuffled */
    int j = 2 + random_below(state, i - 1);
    char kept[32];
    memcpy(kept, digits[i], 32);
    memcpy(digits[i], digits[j], 32);
    memcpy(digits[j], kept, 32);
  }
  int head_at = random_below(state, count); /* where h goes among the others */
  list[0] = 0;
  for (int i = 1, placed = 0; placed < count; placed++) {
    strcat(list, placed ? ", " : "[");
    strcat(list, placed == head_at ? digits[0] : digits[i++]);
  }
  strcat(list, "]");
  return parsed(list, size[0], size[1]);
}

Test(layout, random_layouts_keep_every_identity) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int round = 0; round < 2000; round++) {
    char list[256];
    layout l = random_layout(&state, list), canonical = l;
    layout_canonicalize(&canonical);
    written_reads_back(&l, list);
    text t;
    text_init(&t);
    layout_write_offset(&canonical, "slot", "channel", "heads_stride", &t);
    int64_t run_s = layout_run(&l, AXIS_S), run_d = layout_run(&l, AXIS_D);
    cr_assert(l.size[AXIS_S] % run_s == 0 && l.size[AXIS_D] % run_d == 0, "%s", list);
    cr_assert(run_s == 1 || run_d == 1, "%s: memory has one innermost axis", list);
    for (int sample = 0; sample < 64; sample++) {
      int64_t slot = random_below(&state, (int)l.size[AXIS_S]),
              channel = random_below(&state, (int)l.size[AXIS_D]);
      int64_t head = random_below(&state, HEADS), page = random_below(&state, 100000);
      int64_t right = offset_by_shape(&l, 1000003, 99991, HEADS, page, head, slot, channel);
      cr_assert_eq(layout_offset(&l, 1000003, 99991, HEADS, page, head, slot, channel), right, "%s", list);
      cr_assert_eq(layout_offset(&canonical, 1000003, 99991, HEADS, page, head, slot, channel), right, "%s",
                   list);
      expression e = {text_string(&t), slot, channel, HEADS * 99991};
      cr_assert_eq(evaluate(&e) + page * 1000003 + head * 99991, right, "%s: %s", list, text_string(&t));
      int64_t in_run =
          layout_offset(&l, 0, 99991, HEADS, 0, 0, slot - slot % run_s, channel - channel % run_d);
      int64_t here = layout_offset(&l, 0, 99991, HEADS, 0, 0, slot, channel);
      cr_assert_eq(here - in_run, slot % run_s + channel % run_d, "%s", list);
    }
    text_finish(&t);
  }
}

Test(layout, damaged_lists_are_refused_or_are_layouts) {
  static const char *const seeds[] = {"[b, h, d/16, s, d%16]", "[b, h, s/16, d, s%16]", "[b, s, h, d]",
                                      "[b, h, d/64, s/2, d%64/16, s%2, d%16]", "[h, b, s, d/128]"};
  static const char alphabet[] = "bhsd/%+0123456789, []x-\t\x80\xff";
  uint64_t state = 88172645463325252u;
  int accepted = 0, refused = 0;
  for (int round = 0; round < 40000; round++) {
    char list[128];
    snprintf(list, sizeof list, "%s", seeds[random_below(&state, 5)]);
    for (int edits = 1 + random_below(&state, 4); edits > 0; edits--) {
      size_t length = strlen(list), at = (size_t)random_below(&state, (int)length + 1);
      char c = alphabet[random_below(&state, sizeof alphabet - 1)];
      int kind = random_below(&state, 3);
      if (kind == 0 && at < length)
        list[at] = c;
      else if (kind == 1 && at < length)
        memmove(list + at, list + at + 1, length - at);
      else if (length + 2 < sizeof list) {
        memmove(list + at + 1, list + at, length - at + 1);
        list[at] = c;
      }
    }
    layout l;
    layout_error error = {.item = -7, .message = ""};
    if (!parse_list(list, AXES_CACHE, 16, 128, &l, &error)) {
      cr_assert(error.message[0] && error.item >= -1 && error.item <= LAYOUT_MAX_FACTORS, "%s", list);
      cr_assert_null(strchr(error.message, '\n'), "%s", list);
      refused++;
      continue;
    }
    accepted++;
    if (layout_is_padded(&l))
      cr_assert_gt(layout_inner_elements(&l), 16 * 128, "%s", list);
    else
      cr_assert_eq(layout_inner_elements(&l), 16 * 128, "%s", list);
    written_reads_back(&l, list);
  }
  cr_expect(accepted > 500 && refused > 10000, "%d accepted, %d refused", accepted, refused);
}
