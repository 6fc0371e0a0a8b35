/* Padded layouts: against an array that is laid out element by element. */
#include "../layout_fixture.h"

enum { PAGES = 2, HEADS = 3 };

/* Where each element of a packed array lies, found by walking the array: the digits of a factor one after the
 * other, what is inside each of them, then the factor's padding. */
typedef struct walk {
  const layout *l;
  int64_t at;
  int64_t index[AXIS_COUNT];
  int64_t where[PAGES][HEADS][8][8];
} walk;

static void walk_factor(walk *w, int factor) {
  if (factor == w->l->count) {
    w->where[w->index[AXIS_B]][w->index[AXIS_H]][w->index[AXIS_S]][w->index[AXIS_D]] = w->at++;
    return;
  }
  const layout_factor *f = &w->l->factors[factor];
  bool free_axis = f->axis == AXIS_B || f->axis == AXIS_H;
  int64_t extent = f->axis == AXIS_B ? PAGES : f->axis == AXIS_H ? HEADS : f->extent;
  int64_t step = free_axis ? 1 : f->divisor, before = w->index[f->axis];
  for (int64_t i = 0; i < extent; i++) {
    w->index[f->axis] = before + i * step;
    walk_factor(w, factor + 1);
  }
  w->index[f->axis] = before;
  w->at += f->pad;
}

static void expect_walk(const layout *l, const char *list) {
  static walk w;
  memset(&w, 0, sizeof w);
  w.l = l;
  walk_factor(&w, 0);
  int64_t stride_b, stride_h;
  layout_packed_strides(l, PAGES, HEADS, &stride_b, &stride_h);
  cr_assert_eq(layout_elements(l, PAGES, HEADS), w.at, "%s", list);
  for (int64_t page = 0; page < PAGES; page++)
    for (int64_t head = 0; head < HEADS; head++)
      for (int64_t slot = 0; slot < l->size[AXIS_S]; slot++)
        for (int64_t channel = 0; channel < l->size[AXIS_D]; channel++)
          cr_assert_eq(layout_offset(l, stride_b, stride_h, HEADS, page, head, slot, channel),
                       w.where[page][head][slot][channel], "%s: page %d head %d slot %d channel %d", list,
                       (int)page, (int)head, (int)slot, (int)channel);
  int64_t shape[LAYOUT_MAX_FACTORS], product = 1;
  int rank = layout_shape(l, PAGES, HEADS, shape);
  for (int i = 0; i < rank; i++)
    product *= shape[i];
  cr_assert_eq(product, w.at, "%s: the shape has all elements", list);
}

static void expect_aligned(const layout *l, const char *list) {
  for (axis a = AXIS_S; a <= AXIS_D; a++) {
    int64_t run = layout_aligned_run(l, a);
    cr_assert(run >= 1 && layout_run(l, a) % run == 0, "%s", list);
    for (int64_t i = 0; i < l->size[a]; i += run)
      for (int64_t o = 0; o < l->size[a == AXIS_S ? AXIS_D : AXIS_S]; o++)
        for (int64_t head = 0; head < HEADS; head++) {
          int64_t stride_b, stride_h;
          layout_packed_strides(l, 1, HEADS, &stride_b, &stride_h);
          int64_t slot = a == AXIS_S ? i : o, channel = a == AXIS_S ? o : i;
          cr_assert_eq(layout_offset(l, stride_b, stride_h, HEADS, 1, head, slot, channel) % run, 0,
                       "%s: a run of %d", list, (int)run);
        }
  }
}

static uint64_t state = 0x9e3779b97f4a7c15u;
static int padded_layouts;

/* The layout with padding here and there, as its text says it. */
static void with_padding(const layout *plain, const char *list) {
  (void)list;
  layout l = *plain;
  for (int i = 0; i < l.count; i++)
    if (l.factors[i].axis >= AXIS_S && random_below(&state, 3) == 0)
      l.factors[i].pad = 1 + random_below(&state, 12);
  if (l.count < LAYOUT_MAX_FACTORS && random_below(&state, 4) == 0)
    l.factors[l.count++] = (layout_factor){AXIS_D, 1, 1, random_below(&state, 5)};
  text t;
  text_init(&t);
  layout_write(&l, &t);
  layout parsed_back, canonical;
  layout_error error;
  if (parse_list(text_string(&t), AXES_CACHE, l.size[AXIS_S], l.size[AXIS_D], &parsed_back, &error)) {
    padded_layouts++;
    expect_walk(&parsed_back, text_string(&t));
    canonical = parsed_back;
    layout_canonicalize(&canonical);
    expect_walk(&canonical, text_string(&t));
    expect_aligned(&canonical, text_string(&t));
    cr_assert(layout_equal(&canonical, &parsed_back), "%s", text_string(&t));
    text c;
    text_init(&c);
    layout_write(&canonical, &c);
    layout back;
    cr_assert(parse_list(text_string(&c), AXES_CACHE, l.size[AXIS_S], l.size[AXIS_D], &back, &error),
              "%s is written as %s: %s", text_string(&t), text_string(&c), error.message);
    layout again = back;
    layout_canonicalize(&again);
    cr_assert_eq(again.count, back.count, "%s is not in fewest factors", text_string(&c));
    for (int i = 0; i < back.count; i++)
      cr_assert(back.factors[i].axis == again.factors[i].axis && back.factors[i].pad == again.factors[i].pad,
                "%s is not canonical", text_string(&c));
    text_finish(&c);
  } else {
    cr_assert_not_null(strstr(error.message, "is padded outside h"), "%s: %s", text_string(&t),
                       error.message);
  }
  text_finish(&t);
}

Test(padding, an_offset_is_where_a_walk_through_the_array_meets_the_element) {
  for_each_small_layout(with_padding);
  cr_expect_gt(padded_layouts, 10000);
}

Test(padding, one_meaning_has_one_spelling) {
  static const struct {
    const char *list, *canonical;
    int64_t page, head_dim;
  } cases[] = {
      {"[b, s, h, d+4]", "[b, s, h, d+4]", 16, 128},
      {"[b,s,h, d/16, d%16 + 4]", "[b, s, h, d/16, d%16+4]", 16, 128},
      {"[b, s, h, d/16+4, d%16]", "[b, s, h, d+4]", 16, 128},
      {"[b, s, h, d+32]", "[b, s, h, 33]", 16, 1},
      {"[b, s, h, d, 1]", "[b, s, h, d]", 16, 128},
      {"[b, s, h, d, 4]", "[b, s, h, d, 4]", 16, 128},
      {"[b, h, s+3, d]", "[b, h, d+3]", 1, 128},
      {"[b, h, s+3, d+4]", "[b, h, d+7]", 1, 128},
      {"[b, h, d, s+7]", "[b, h, d, 8]", 1, 128},
      {"[b, h, s+512, d+128]", "[b, h, s+512, d+128]", 64, 448},
      {"[b, s+0, h, d]", "[b, s, h, d]", 16, 128},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l;
    layout_error error;
    cr_assert(parse_list(cases[i].list, AXES_CACHE, cases[i].page, cases[i].head_dim, &l, &error), "%s: %s",
              cases[i].list, error.message);
    layout_canonicalize(&l);
    text t;
    text_init(&t);
    layout_write(&l, &t);
    cr_expect_str_eq(text_string(&t), cases[i].canonical);
    text_finish(&t);
  }
}

Test(padding, shapes_count_padding_in_steps_or_pages_whole) {
  static const struct {
    const char *list;
    int64_t page, head_dim;
    int rank;
    int64_t shape[4];
  } cases[] = {
      {"[b, s, h, d+4]", 16, 128, 4, {PAGES, 16, HEADS, 132}},
      {"[b, h, s+256, d]", 16, 128, 4, {PAGES, HEADS, 18, 128}},
      {"[b, s, h, d, 3]", 4, 8, 5, {PAGES, 4, HEADS, 8}},
      {"[b, h, s+512, d+128]", 64, 448, 3, {PAGES, HEADS, 64 * 576 + 512}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l;
    layout_error error;
    int64_t shape[LAYOUT_MAX_FACTORS];
    cr_assert(parse_list(cases[i].list, AXES_CACHE, cases[i].page, cases[i].head_dim, &l, &error));
    cr_assert_eq(layout_shape(&l, PAGES, HEADS, shape), cases[i].rank, "%s", cases[i].list);
    for (int d = 0; d < cases[i].rank && d < 4; d++)
      cr_expect_eq(shape[d], cases[i].shape[d], "%s: %d", cases[i].list, d);
  }
}

Test(padding, what_no_stride_can_say_is_refused) {
  static const struct {
    const char *list;
    int item;
    const char *message;
  } cases[] = {
      {"[b+4,h,s,d]", 0, "factor 'b+4' pads b: only s and d can be padded"},
      {"[b,h+1,s,d]", 1, "factor 'h+1' pads h: only s and d can be padded"},
      {"[b,s/4,s%4+2,h,d]", 2, "s is padded outside h: no stride can say that"},
      {"[b,h,s,d+]", 3, "factor 'd+': a number is missing"},
      {"[b,h,s,d+4+4]", 3, "factor 'd+4+4': nothing can follow the padding"},
      {"[b,h,s,d+4/2]", 3, "factor 'd+4/2': nothing can follow the padding"},
      {"[b,h,s,33,d]", 3,
       "the size '33' is not innermost: of a buffer with K and V in it each is a view, whose strides say "
       "where it lies"},
      {"[b,h,s,d,0]", 4, "factor '0' is no axis factor and no size of 1 or more"},
      {"[b,h,s,d,3x]", 4, "factor '3x' is no axis factor and no size of 1 or more"},
      {"[b,h,s,d+2097152]", 3, "factor 'd+2097152': the number is larger than 1048576"},
      {"[b,h,s,33]", -1, "the factors of d do not make the whole axis of 128 exactly once"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    layout l;
    layout_error error = {.item = -7};
    cr_expect_not(parse_list(cases[i].list, AXES_CACHE, 16, 128, &l, &error), "%s", cases[i].list);
    cr_expect_str_eq(error.message, cases[i].message);
    cr_expect_eq(error.item, cases[i].item, "%s: item %d", cases[i].list, error.item);
  }
}
