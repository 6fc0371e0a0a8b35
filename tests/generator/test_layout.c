/* Claims about layouts: where elements lie, by formulas that know nothing of factors; what is refused. */
#include "../layout_fixture.h"
#include <ctype.h>

enum { HEADS = 3 };

/* ---- the layouts of the field, by formulas that know nothing of factors ---- */

typedef struct place {
  int64_t stride_b, stride_h, heads, page_size, dim, page, head, slot, channel;
} place;

static int64_t shuffled_k(place p, int64_t x) {
  return p.page * p.stride_b + p.head * p.stride_h + p.channel / x * p.page_size * x + p.slot * x +
         p.channel % x;
}
static int64_t shuffled_v(place p, int64_t x) {
  return p.page * p.stride_b + p.head * p.stride_h + p.slot / x * p.dim * x + p.channel * x + p.slot % x;
}
static int64_t classic_v(place p, int64_t x) {
  (void)x;
  return p.page * p.stride_b + p.head * p.stride_h + p.channel * p.page_size + p.slot;
}
static int64_t nhd(place p, int64_t x) {
  (void)x;
  return p.page * p.stride_b + p.slot * p.heads * p.stride_h + p.head * p.stride_h + p.channel;
}
static int64_t hnd(place p, int64_t x) {
  (void)x;
  return p.page * p.stride_b + p.head * p.stride_h + p.slot * p.dim + p.channel;
}
static int64_t pool(place p, int64_t x) {
  (void)x;
  return p.page * p.stride_b + p.head * p.stride_h + p.channel;
}

static const struct {
  const char *name, *list;
  int64_t (*formula)(place p, int64_t x);
  int64_t x, page, dim, inside_head; /* inside_head: elements of a head that lie together */
} field[] = {
    {"shuffled K, fp8", "[b, h, d/16, s, d%16]", shuffled_k, 16, 16, 128, 16 * 128},
    {"shuffled V, fp8", "[b, h, s/16, d, s%16]", shuffled_v, 16, 128, 128, 128 * 128},
    {"shuffled K, bf16", "[b, h, d/8, s, d%8]", shuffled_k, 8, 64, 64, 64 * 64},
    {"shuffled V, bf16", "[b, h, s/8, d, s%8]", shuffled_v, 8, 64, 96, 64 * 96},
    {"shuffled K, a page that is no power of two", "[b, h, d/16, s, d%16]", shuffled_k, 16, 528, 128,
     528 * 128},
    {"shuffled V, a page that is no power of two", "[b, h, s/16, d, s%16]", shuffled_v, 16, 528, 128,
     528 * 128},
    {"classic V", "[b, h, d, s]", classic_v, 1, 16, 128, 16 * 128},
    {"NHD", "[b, s, h, d]", nhd, 1, 16, 64, 64},
    {"HND", "[b, h, s, d]", hnd, 1, 16, 192, 16 * 192},
    {"page 1", "[b, h, d]", pool, 1, 1, 128, 128},
};

Test(layout, the_layouts_of_the_field_lie_where_their_owners_put_them) {
  for (size_t i = 0; i < sizeof field / sizeof *field; i++)
    for (int64_t padding = 0; padding <= 32; padding += 32) {
      layout l = parsed(field[i].list, field[i].page, field[i].dim);
      place p = {.heads = HEADS, .page_size = field[i].page, .dim = field[i].dim};
      p.stride_h = field[i].inside_head + padding;
      p.stride_b = HEADS * field[i].page * field[i].dim + 7 * padding;
      for (p.page = 0; p.page < 70000; p.page += 69999)
        for (p.head = 0; p.head < HEADS; p.head++)
          for (p.slot = 0; p.slot < p.page_size; p.slot++)
            for (p.channel = 0; p.channel < p.dim; p.channel++) {
              int64_t found =
                  layout_offset(&l, p.stride_b, p.stride_h, HEADS, p.page, p.head, p.slot, p.channel);
              int64_t right = field[i].formula(p, field[i].x);
              if (found != right)
                cr_assert(false, "%s: page %lld head %lld slot %lld channel %lld: %lld, not %lld",
                          field[i].name, (long long)p.page, (long long)p.head, (long long)p.slot,
                          (long long)p.channel, (long long)found, (long long)right);
            }
    }
}

Test(layout, offsets_worked_by_hand) {
  layout k = parsed("[b, h, d/16, s, d%16]", 16, 128), v = parsed("[b, h, s/16, d, s%16]", 32, 128);
  layout slots_first = parsed("[b, s, h, d]", 16, 64),
         nested = parsed("[b, h, d/64, s, d%64/16, d%16]", 4, 128);
  /* channel 37 = 2 chunks of 16 and 5; 2 * 16 slots * 16 + 3 * 16 + 5 */
  cr_expect_eq(layout_offset(&k, 10000, 2048, 4, 0, 0, 3, 37), 512 + 48 + 5);
  cr_expect_eq(layout_offset(&k, 10000, 2048, 4, 2, 3, 3, 37), 20000 + 6144 + 565);
  /* slot 19 = 1 chunk of 16 and 3; 1 * 128 channels * 16 + 37 * 16 + 3 */
  cr_expect_eq(layout_offset(&v, 10000, 4096, 4, 0, 0, 19, 37), 2048 + 592 + 3);
  /* slot 5 steps over 5 times 4 heads of 64, padded to 80 */
  cr_expect_eq(layout_offset(&slots_first, 10000, 80, 4, 1, 2, 5, 7), 10000 + 2 * 80 + 5 * 4 * 80 + 7);
  /* channel 101 = 1 * 64 + 2 * 16 + 5: 1 * 4 slots * 64 + 3 * 64 + 2 * 16 + 5 */
  cr_expect_eq(layout_offset(&nested, 0, 0, 1, 0, 0, 3, 101), 256 + 192 + 32 + 5);
  /* a slot of page 70,000 lies beyond 2^31 elements */
  cr_expect_eq(layout_offset(&k, 1048576, 2048, 4, 70000, 0, 0, 0), 73400320000);
}

Test(layout, shapes_are_the_extents_in_the_order_of_the_spec) {
  int64_t shape[LAYOUT_MAX_FACTORS];
  layout k = parsed("[b, h, d/16, s, d%16]", 64, 128), first = parsed("[h, b, s]", 64, 128);
  cr_assert_eq(layout_shape(&k, 1000, 4, shape), 5);
  const int64_t expected[] = {1000, 4, 8, 64, 16};
  for (int i = 0; i < 5; i++)
    cr_expect_eq(shape[i], expected[i], "extent %d", i);
  cr_assert_eq(layout_shape(&first, 1000, 4, shape), 3);
  cr_expect(shape[0] == 4 && shape[1] == 1000 && shape[2] == 64);
}

/* ---- what is accepted and what is refused ---- */

Test(layout, factors_may_nest_and_have_blanks) {
  static const char *const lists[] = {
      "[b,h,d/64,s,d%64/16,d%16]", "[ b , h , d / 64 , s , d % 64 / 16 , d % 16 ]",
      "[b, h, d/64, s, d/16%4, d%16]", "[b, h, d/32/2, s, d%64/8/2, d%64%16]"};
  layout first = parsed(lists[0], 16, 128);
  for (size_t i = 1; i < sizeof lists / sizeof *lists; i++) {
    layout l = parsed(lists[i], 16, 128);
    cr_expect(layout_equal(&first, &l), "%s", lists[i]);
  }
}

Test(layout, with_one_token_a_page_the_slot_may_be_left_out) {
  layout with = parsed("[b, h, s, d]", 1, 128), without = parsed("[b, h, d]", 1, 128);
  cr_expect(layout_equal(&with, &without));
  layout l;
  layout_error error;
  cr_assert_not(parse_list("[b, h, d]", AXES_CACHE, 2, 128, &l, &error));
  cr_expect_str_eq(error.message, "axis s is missing");
}

Test(layout, every_refusal_says_which_factor_and_why) {
  static const struct {
    const char *list;
    unsigned axes;
    int item;
    const char *message;
  } cases[] = {
      {"[b, h, x, d]", AXES_CACHE, 2, "factor 'x' does not start with an axis: b, h, s or d"},
      {"[b, h, , d]", AXES_CACHE, 2, "factor '' does not start with an axis: b, h, s or d"},
      {"[blocks, h, s, d]", AXES_CACHE, 0,
       "factor 'blocks' is not an axis: b page, h kv head, s slot, d channel"},
      {"[b, h, s, dim]", AXES_CACHE, 3, "factor 'dim' is not an axis: b page, h kv head, s slot, d channel"},
      {"[b, 2, h, s, d]", AXES_CACHE, 1,
       "the size '2' is not innermost: of a buffer with K and V in it each is a view, whose strides say "
       "where it lies"},
      {"[b/2, h, s, d]", AXES_CACHE, 0, "factor 'b/2' splits b: only s and d can be split"},
      {"[b, h%4, s, d]", AXES_CACHE, 1, "factor 'h%4' splits h: only s and d can be split"},
      {"[b, h, s*2, d]", AXES_CACHE, 2, "factor 's*2': expected '/', '%' or '+' after the axis, found '*'"},
      {"[b, h, s/, d]", AXES_CACHE, 2, "factor 's/': a number is missing"},
      {"[b, h, s/-2, d]", AXES_CACHE, 2, "factor 's/-2': a number is missing"},
      {"[b, h, s/0, d]", AXES_CACHE, 2, "factor 's/0' divides by 0"},
      {"[b, h, s%0, d]", AXES_CACHE, 2, "factor 's%0' divides by 0"},
      {"[b, h, s/2097152, d]", AXES_CACHE, 2, "factor 's/2097152': the number is larger than 1048576"},
      {"[b, h, s/5, d]", AXES_CACHE, 2, "factor 's/5' needs 5 to divide 16 (page is 16)"},
      {"[b, h, s, d/48]", AXES_CACHE, 3, "factor 'd/48' needs 48 to divide 128 (head_dim is 128)"},
      {"[b, h, s, d/16/16]", AXES_CACHE, 3, "factor 'd/16/16' needs 16 to divide 8 (head_dim is 128)"},
      {"[b, h, s]", AXES_CACHE, -1, "axis d is missing"},
      {"[h, s, d]", AXES_CACHE, 1, "s lies outside b: slots and channels belong to one page"},
      {"[]", AXES_CACHE, -1, "axis b is missing"},
      {"[b, s, d]", AXES_CACHE, -1, "axis h is missing"},
      {"[b, b, h, s, d]", AXES_CACHE, -1, "axis b appears more than once"},
      {"[b, h, h, s, d]", AXES_CACHE, -1, "axis h appears more than once"},
      {"[b, h, s, d, d]", AXES_CACHE, -1, "the factors of d do not make the whole axis of 128 exactly once"},
      {"[b, h, s, d/16]", AXES_CACHE, -1, "the factors of d do not make the whole axis of 128 exactly once"},
      {"[b, h, s%8, d]", AXES_CACHE, -1, "the factors of s do not make the whole axis of 16 exactly once"},
      {"[b, h, s/8, s%4, d]", AXES_CACHE, -1,
       "the factors of s do not make the whole axis of 16 exactly once"},
      {"[b, h, s/4, s%8, d]", AXES_CACHE, -1,
       "the factors of s do not make the whole axis of 16 exactly once"},
      {"[d, b, h, s]", AXES_CACHE, 0, "d lies outside b: slots and channels belong to one page"},
      {"[b, h, s, d]", AXES_CACHE & ~(1u << AXIS_D), 3, "axis d does not belong in this layout"},
      {"[b, h]", 1u << AXIS_H, 0, "axis b does not belong in this layout"},
      {"[b,h,s,d,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128,d/128]", AXES_CACHE,
       16, "more than 16 factors"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l, untouched;
    layout_error error = {.item = -7};
    memset(&l, 0x5a, sizeof l);
    untouched = l;
    char list[128]; /* blanks after commas belong to the message's quotation otherwise */
    size_t length = 0;
    for (const char *at = cases[i].list; *at; at++)
      if (*at != ' ') list[length++] = *at;
    list[length] = 0;
    cr_expect_not(parse_list(list, cases[i].axes, 16, 128, &l, &error), "%s", list);
    cr_expect_str_eq(error.message, cases[i].message, "%s: %s", list, error.message);
    cr_expect_eq(error.item, cases[i].item, "%s: item %d", list, error.item);
    cr_expect_eq(memcmp(&l, &untouched, sizeof l), 0, "%s: the result is left alone", list);
  }
}

Test(layout, numbers_far_beyond_any_integer_are_refused) {
  layout l;
  layout_error error;
  cr_expect_not(parse_list("[b,h,s,d/99999999999999999999999999999999]", AXES_CACHE, 16, 128, &l, &error));
  cr_expect_not_null(strstr(error.message, "larger than 1048576"), "%s", error.message);
}

Test(layout, sixteen_factors_are_enough_for_every_bit_of_a_head) {
  layout l = parsed("[b,h,s,d/512,d/256%2,d/128%2,d/64%2,d/32%2,d/16%2,d/8%2,d/4%2,d/2%2,d%2,s/16,s/16,s/16]",
                    16, 1024);
  cr_expect_eq(l.count, 16);
  layout_canonicalize(&l);
  cr_expect_eq(l.count, 4);
}
