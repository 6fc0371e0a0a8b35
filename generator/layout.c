#include "layout.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char axis_letter[AXIS_COUNT] = {'b', 'h', 's', 'd'};
static const char *const axis_size_name[AXIS_COUNT] = {"pages", "kv heads", "page", "head_dim"};

static bool has_size(axis a) {
  return a == AXIS_S || a == AXIS_D;
}

static bool fail(layout_error *error, int item, const char *format, ...) HD_PRINTF(3, 4);

static bool fail(layout_error *error, int item, const char *format, ...) {
  va_list args;
  va_start(args, format);
  error->item = item;
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  return false;
}

static const char *skip_space(const char *at) {
  while (isspace((unsigned char)*at))
    at++;
  return at;
}

enum { MOST_NUMBER = 1 << 20 };

/* A number at `*at`, which it moves past: 1 to MOST_NUMBER. */
static bool parse_number(const char *factor, int item, const char **at, int64_t *out_number,
                         layout_error *error) {
  int64_t n = 0;
  if (!isdigit((unsigned char)**at)) return fail(error, item, "factor '%.24s': a number is missing", factor);
  for (; isdigit((unsigned char)**at); ++*at) {
    n = n * 10 + (**at - '0');
    if (n > MOST_NUMBER)
      return fail(error, item, "factor '%.24s': the number is larger than %d", factor, (int)MOST_NUMBER);
  }
  *out_number = n;
  return true;
}

/* A dimension of N of which the array is the first element. */
static bool parse_bare(const char *factor, int item, layout_factor *out, layout_error *error) {
  const char *at = skip_space(factor);
  int64_t n;
  if (!parse_number(factor, item, &at, &n, error)) return false;
  if (*skip_space(at) || n == 0)
    return fail(error, item, "factor '%.24s' is no axis factor and no size of 1 or more", factor);
  *out = (layout_factor){AXIS_D, 1, 1, (int)n - 1};
  return true;
}

/* One factor: an axis letter, then any number of "/n" and "%n", read left to right, then at most one "+n". */
static bool parse_factor(const char *factor, int item, const int64_t size[AXIS_COUNT], layout_factor *out,
                         layout_error *error) {
  const char *at = skip_space(factor);
  if (isdigit((unsigned char)*at)) return parse_bare(factor, item, out, error);
  const char *letter = *at ? memchr(axis_letter, *at, AXIS_COUNT) : NULL;
  if (!letter) return fail(error, item, "factor '%.24s' does not start with an axis: b, h, s or d", factor);
  axis a = (axis)(letter - axis_letter);
  layout_factor f = {.axis = a, .divisor = 1, .extent = size[a]};
  at = skip_space(at + 1);
  if (isalpha((unsigned char)*at))
    return fail(error, item, "factor '%.24s' is not an axis: b page, h kv head, s slot, d channel", factor);
  if (*at && !has_size(a))
    return fail(error, item, "factor '%.24s' %s %c: only s and d can be %s", factor,
                *at == '+' ? "pads" : "splits", *letter, *at == '+' ? "padded" : "split");
  while (*at) {
    char operation = *at;
    if (operation != '/' && operation != '%' && operation != '+')
      return fail(error, item, "factor '%.24s': expected '/', '%%' or '+' after the axis, found '%c'", factor,
                  operation);
    at = skip_space(at + 1);
    int64_t n;
    if (!parse_number(factor, item, &at, &n, error)) return false;
    if (operation == '+') {
      f.pad = (int)n;
      at = skip_space(at);
      if (*at) return fail(error, item, "factor '%.24s': nothing can follow the padding", factor);
      break;
    }
    if (n == 0) return fail(error, item, "factor '%.24s' divides by 0", factor);
    if (f.extent % n != 0)
      return fail(error, item, "factor '%.24s' needs %lld to divide %lld (%s is %lld)", factor, (long long)n,
                  (long long)f.extent, axis_size_name[a], (long long)size[a]);
    if (operation == '/') {
      f.divisor *= n;
      f.extent /= n;
    } else {
      f.extent = n;
    }
    at = skip_space(at);
  }
  *out = f;
  return true;
}

/* The digits of one axis must make the whole axis: divisors 1, e0, e0·e1, … up to its size. */
static bool check_axis(const layout *l, axis a, bool required, layout_error *error) {
  int present = 0;
  for (int i = 0; i < l->count; i++)
    present += l->factors[i].axis == a;
  if (!required) return true; /* a factor that does not belong was refused when it was read */
  if (present == 0 && l->size[a] == 1) return true;
  if (present == 0) return fail(error, -1, "axis %c is missing", axis_letter[a]);
  if (!has_size(a)) return present == 1 || fail(error, -1, "axis %c appears more than once", axis_letter[a]);
  int64_t covered = 1;
  unsigned used = 0;
  for (int taken = 0; taken < present; taken++) {
    int next = -1;
    for (int i = 0; i < l->count; i++) {
      const layout_factor *f = &l->factors[i];
      if (f->axis != a || used & 1u << i || f->divisor != covered) continue;
      if (next < 0 || f->extent == 1) next = i; /* digits of extent 1 share their divisor with the next one */
    }
    if (next < 0) break;
    used |= 1u << next;
    covered *= l->factors[next].extent;
    if (taken == present - 1 && covered == l->size[a]) return true;
  }
  return fail(error, -1, "the factors of %c do not make the whole axis of %lld exactly once", axis_letter[a],
              (long long)l->size[a]);
}

/* Outside h padding would make strides of a number of heads and some elements. */
static bool check_padding(const layout *l, layout_error *error) {
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].pad && layout_factor_stride(l, i).times_heads)
      return fail(error, i, "%c is padded outside h: no stride can say that",
                  axis_letter[l->factors[i].axis]);
  return true;
}

bool layout_parse(const char *const *items, int count, unsigned axes, int64_t page, int64_t head_dim,
                  layout *out_layout, layout_error *out_error) {
  layout l = {0};
  l.size[AXIS_S] = axes & 1u << AXIS_S ? page : 0;
  l.size[AXIS_D] = axes & 1u << AXIS_D ? head_dim : 0;
  if (count > LAYOUT_MAX_FACTORS)
    return fail(out_error, LAYOUT_MAX_FACTORS, "more than %d factors", LAYOUT_MAX_FACTORS);
  for (int i = 0; i < count; i++) {
    layout_factor f;
    const int64_t sizes[AXIS_COUNT] = {0, 0, page, head_dim};
    if (!parse_factor(items[i], i, sizes, &f, out_error)) return false;
    bool bare = isdigit((unsigned char)*skip_space(items[i]));
    if (bare && i + 1 < count)
      return fail(out_error, i,
                  "the size '%.24s' is not innermost: of a buffer with K and V in it each is a view, whose "
                  "strides say "
                  "where it lies",
                  skip_space(items[i]));
    if (!bare && !(axes & 1u << f.axis))
      return fail(out_error, i, "axis %c does not belong in this layout", axis_letter[f.axis]);
    l.factors[l.count++] = f;
  }
  bool page_seen = false;
  for (int i = 0; i < l.count; i++) {
    page_seen |= l.factors[i].axis == AXIS_B;
    if (has_size(l.factors[i].axis) && (axes & 1u << AXIS_B) && !page_seen)
      return fail(out_error, i, "%c lies outside b: slots and channels belong to one page",
                  axis_letter[l.factors[i].axis]);
  }
  for (int a = 0; a < AXIS_COUNT; a++)
    if (!check_axis(&l, (axis)a, axes & 1u << a, out_error)) return false;
  if (!check_padding(&l, out_error)) return false;
  *out_layout = l;
  return true;
}

/* From inside outwards: what a digit of one value is padded with lies behind what is inside it. */
static void drop_single_digits(layout *l) {
  for (int i = l->count - 1; i >= 0; i--) {
    layout_factor *f = &l->factors[i], *inner = i + 1 < l->count ? f + 1 : NULL;
    if (!has_size(f->axis) || f->extent != 1) continue;
    if (f->pad && !inner) *f = (layout_factor){AXIS_D, 1, 1, f->pad};
    if (f->pad && (!inner || !has_size(inner->axis))) continue;
    if (f->pad) inner->pad += f->pad;
    memmove(f, f + 1, sizeof *f * (size_t)(l->count - i - 1));
    l->count--;
  }
}

void layout_canonicalize(layout *l) {
  drop_single_digits(l);
  int kept = 0;
  for (int i = 0; i < l->count; i++) {
    layout_factor f = l->factors[i];
    layout_factor *outer = kept ? &l->factors[kept - 1] : NULL;
    if (outer && outer->axis == f.axis && has_size(f.axis) && outer->divisor == f.divisor * f.extent &&
        f.extent > 1 && f.pad == 0) {
      outer->divisor = f.divisor;
      outer->extent *= f.extent;
    } else {
      l->factors[kept++] = f;
    }
  }
  memset(&l->factors[kept], 0, sizeof l->factors[0] * (size_t)(LAYOUT_MAX_FACTORS - kept));
  l->count = kept;
}

static void write_digit(const layout_factor *f, int64_t size, const char *name, text *out) {
  if (f->divisor == 1 && f->extent == size)
    text_addf(out, "%s", name);
  else if (f->divisor == 1)
    text_addf(out, "%s%%%lld", name, (long long)f->extent);
  else if (f->divisor * f->extent == size)
    text_addf(out, "%s/%lld", name, (long long)f->divisor);
  else
    text_addf(out, "%s%%%lld/%lld", name, (long long)(f->divisor * f->extent), (long long)f->divisor);
  if (f->pad) text_addf(out, "+%d", f->pad);
}

static bool is_number(const layout *l, int index) {
  const layout_factor *f = &l->factors[index];
  return index == l->count - 1 && f->axis == AXIS_D && f->divisor == 1 && f->extent == 1 && f->pad > 0;
}

void layout_write(const layout *l, text *out) {
  text_add(out, "[");
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    const char name[2] = {axis_letter[f->axis], 0};
    if (i) text_add(out, ", ");
    if (is_number(l, i))
      text_addf(out, "%d", f->pad + 1);
    else if (has_size(f->axis))
      write_digit(f, l->size[f->axis], name, out);
    else
      text_add(out, name);
  }
  text_add(out, "]");
}

bool layout_equal(const layout *a, const layout *b) {
  layout x = *a, y = *b;
  layout_canonicalize(&x);
  layout_canonicalize(&y);
  if (x.count != y.count) return false;
  for (int i = 0; i < x.count; i++)
    if (x.factors[i].axis != y.factors[i].axis || x.factors[i].divisor != y.factors[i].divisor ||
        x.factors[i].extent != y.factors[i].extent || x.factors[i].pad != y.factors[i].pad)
      return false;
  return true;
}

layout_stride layout_factor_stride(const layout *l, int index) {
  layout_stride s = {1, false};
  if (!has_size(l->factors[index].axis)) return (layout_stride){0, false};
  for (int i = l->count - 1; i > index; i--) {
    const layout_factor *f = &l->factors[i];
    if (f->axis == AXIS_H)
      s = (layout_stride){1, true}; /* what lies inside h is in the head stride */
    else
      s.elements = s.elements * f->extent + f->pad;
  }
  return s;
}

bool layout_outside_head(const layout *l) {
  for (int i = 0; i < l->count; i++)
    if (layout_factor_stride(l, i).times_heads) return true;
  return false;
}

/* Elements of the array inside factor `outer`; -1: of all of it. */
static int64_t elements_inside(const layout *l, int outer, int64_t pages, int64_t heads) {
  int64_t elements = 1;
  for (int i = l->count - 1; i > outer; i--) {
    const layout_factor *f = &l->factors[i];
    elements *= f->axis == AXIS_B ? pages : f->axis == AXIS_H ? heads : f->extent;
    elements += f->pad;
  }
  return elements;
}

int64_t layout_inner_elements(const layout *l) {
  return elements_inside(l, -1, 1, 1);
}

int64_t layout_elements(const layout *l, int64_t pages, int64_t heads) {
  return elements_inside(l, -1, pages, heads);
}

bool layout_has_axis(const layout *l, axis a) {
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].axis == a) return true;
  return false;
}

bool layout_is_padded(const layout *l) {
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].pad) return true;
  return false;
}

static int64_t packed_stride(const layout *l, axis a, int64_t pages, int64_t heads) {
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].axis == a) return elements_inside(l, i, pages, heads);
  return 0;
}

void layout_packed_strides(const layout *l, int64_t pages, int64_t heads, int64_t *out_stride_b,
                           int64_t *out_stride_h) {
  *out_stride_b = packed_stride(l, AXIS_B, pages, heads);
  *out_stride_h = packed_stride(l, AXIS_H, pages, heads);
}

int64_t layout_offset(const layout *l, int64_t stride_b, int64_t stride_h, int64_t heads, int64_t page,
                      int64_t head, int64_t slot, int64_t channel) {
  int64_t offset = 0;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    if (f->axis == AXIS_B) {
      offset += page * stride_b;
    } else if (f->axis == AXIS_H) {
      offset += head * stride_h;
    } else {
      layout_stride s = layout_factor_stride(l, i);
      int64_t digit = (f->axis == AXIS_S ? slot : channel) / f->divisor % f->extent;
      offset += digit * s.elements * (s.times_heads ? heads * stride_h : 1);
    }
  }
  return offset;
}

int layout_shape(const layout *l, int64_t pages, int64_t heads, int64_t out_shape[LAYOUT_MAX_FACTORS]) {
  int leading = 0;
  bool whole = true;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    int64_t step = f->pad ? layout_factor_stride(l, i).elements : 1; /* padding lies inside h */
    out_shape[i] = f->axis == AXIS_B ? pages : f->axis == AXIS_H ? heads : f->extent + f->pad / step;
    whole &= f->pad % step == 0;
    if (!has_size(f->axis) && leading == i) leading++;
  }
  if (whole) return l->count;
  out_shape[leading] = elements_inside(l, leading - 1, pages, heads);
  return leading + 1;
}

int64_t layout_run(const layout *l, axis a) {
  int64_t run = 1;
  for (int i = l->count - 1; i >= 0; i--) {
    const layout_factor *f = &l->factors[i];
    if (has_size(f->axis) && f->extent == 1 && f->pad == 0) continue; /* a digit of one value moves nothing */
    if (f->axis != a || f->divisor != run || !has_size(a)) break;
    run *= f->extent;
    if (f->pad) break;
  }
  return run;
}

/* Strides are sums of the run and of paddings, each some number of times. */
int64_t layout_aligned_run(const layout *l, axis a) {
  int64_t aligned = layout_run(l, a);
  for (int i = 0; i < l->count; i++)
    for (int64_t b = l->factors[i].pad; b;) {
      int64_t rest = aligned % b;
      aligned = b;
      b = rest;
    }
  return aligned;
}

void layout_write_offset(const layout *l, const char *slot, const char *channel, const char *heads_stride,
                         text *out) {
  bool first = true;
  for (int i = 0; i < l->count; i++) {
    const layout_factor *f = &l->factors[i];
    if (!has_size(f->axis) || f->extent == 1) continue;
    layout_stride s = layout_factor_stride(l, i);
    const char *variable = f->axis == AXIS_S ? slot : channel;
    int64_t size = l->size[f->axis];
    text_add(out, first ? "" : " + ");
    first = false;
    if (f->divisor == 1 && f->extent == size)
      text_add(out, variable);
    else if (f->divisor == 1)
      text_addf(out, "%s %% %lld", variable, (long long)f->extent);
    else if (f->divisor * f->extent == size)
      text_addf(out, "%s / %lld", variable, (long long)f->divisor);
    else
      text_addf(out, "%s / %lld %% %lld", variable, (long long)f->divisor, (long long)f->extent);
    if (s.elements != 1) text_addf(out, " * %lld", (long long)s.elements);
    if (s.times_heads) text_addf(out, " * %s", heads_stride);
  }
  if (first) text_add(out, "0");
}
