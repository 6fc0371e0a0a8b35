#include "readings.h"
#include "../../launch/strides.h"
#include <string.h>

/* A tensor's dimensions in the order of memory, the largest step first. */
typedef struct memory_order {
  int rank;
  int64_t extent[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
  const layout_factor *factor[TENSOR_MAX_RANK]; /* what the dimension is said to be; NULL: nothing is said */
} memory_order;

static memory_order order_of(const tensor *t) {
  memory_order m = {.rank = t->rank};
  for (int i = 0; i < t->rank; i++) {
    int64_t step = tensor_stride(t, i);
    int at = i;
    for (; at > 0 && m.stride[at - 1] < step; at--) {
      m.stride[at] = m.stride[at - 1];
      m.extent[at] = m.extent[at - 1];
      m.factor[at] = m.factor[at - 1];
    }
    m.stride[at] = step;
    m.extent[at] = t->shape[i];
    m.factor[at] = t->axes ? &t->axes->factors[i] : NULL;
  }
  return m;
}

/* ---- One assignment of axes to dimensions ---- */

/* Divisors: of several digits of an axis the outer one in memory counts more, unless it is said otherwise. */
static void set_digits(const memory_order *m, layout *l) {
  for (int a = AXIS_S; a <= AXIS_D; a++) {
    int64_t divisor = 1;
    for (int i = l->count - 1; i >= 0; i--) {
      layout_factor *f = &l->factors[i];
      if (f->axis != (axis)a) continue;
      f->divisor = m->factor[i] ? m->factor[i]->divisor : divisor;
      divisor *= f->extent;
    }
    l->size[a] = layout_has_axis(l, (axis)a) ? divisor : 0;
  }
}

/* Elements that lie behind the run of a dimension because the step of the next slot or channel says so. Steps
 * of pages and heads are free. False: no layout has these steps. */
static bool set_padding(const memory_order *m, layout *l) {
  for (int i = 0; i + 1 < m->rank; i++) {
    axis outer = l->factors[i].axis;
    int64_t inner = m->stride[i + 1], run = m->extent[i + 1] + l->factors[i + 1].pad;
    if (outer == AXIS_B || outer == AXIS_H || m->extent[i] == 1) continue;
    if (inner <= 0 || m->stride[i] % inner != 0 || m->stride[i] / inner < run) return false;
    int64_t gap = m->stride[i] / inner - run;
    if (gap == 0) continue;
    if (l->factors[i + 1].axis < AXIS_S || gap > INT32_MAX) return false;
    l->factors[i + 1].pad += (int)gap;
  }
  return m->rank == 0 || m->stride[m->rank - 1] == 1 || m->extent[m->rank - 1] == 1;
}

/* Records: where one dimension has all channels and is the innermost, it may be longer than they are. */
static bool cut_record(const memory_order *m, int64_t channels, layout *l) {
  layout_factor *last = &l->factors[l->count - 1];
  int digits = 0;
  for (int i = 0; i < l->count; i++)
    digits += l->factors[i].axis == AXIS_D;
  if (digits != 1 || last->axis != AXIS_D || last->extent <= channels || m->factor[l->count - 1])
    return false;
  last->pad = (int)(last->extent - channels);
  last->extent = channels;
  return true;
}

static bool is_said(const memory_order *m, const axis *axes) {
  for (int i = 0; i < m->rank; i++)
    if (m->factor[i] && m->factor[i]->axis != axes[i]) return false;
  return true;
}

static bool read_cache(const memory_order *m, const axis *axes, int64_t channels, const reading_facts *known,
                       cache_reading *out) {
  cache_reading r = {.heads = 1, .page = 1};
  unsigned seen = 0;
  if (!is_said(m, axes) || m->rank > LAYOUT_MAX_FACTORS) return false;
  r.layout.count = m->rank;
  int64_t product = 1;
  for (int i = 0; i < m->rank; i++) {
    axis a = axes[i];
    r.layout.factors[i] = (layout_factor){.axis = a, .divisor = 1, .extent = a < AXIS_S ? 0 : m->extent[i]};
    bool whole = a == AXIS_B || a == AXIS_H;
    bool split =
        i > 0 && axes[i - 1] == a && !m->factor[i]; /* one axis in two dimensions that are neighbours */
    if (split || (whole ? (seen & 1u << a) != 0 : (seen & 1u << AXIS_B) == 0)) return false;
    seen |= 1u << a;
    if (a == AXIS_B) r.pages = m->extent[i];
    if (a == AXIS_H) r.heads = m->extent[i];
    if (a == AXIS_S && __builtin_mul_overflow(r.page, m->extent[i], &r.page)) return false;
    if (a == AXIS_D && __builtin_mul_overflow(product, m->extent[i], &product)) return false;
  }
  if (!(seen & 1u << AXIS_B) || !(seen & 1u << AXIS_D) || r.page < 1) return false;
  if (product != channels && !cut_record(m, channels, &r.layout)) return false;
  if (known->page && r.page != known->page) return false;
  if (known->heads && r.heads != known->heads) return false;
  if (known->query_heads && (r.heads < 1 || known->query_heads % r.heads != 0)) return false;
  set_digits(m, &r.layout);
  if (!set_padding(m, &r.layout)) return false;
  *out = r;
  return true;
}

/* The next assignment of `rank` dimensions, as a number of base AXIS_COUNT; false after the last. */
static bool next_axes(axis *axes, int rank) {
  for (int i = rank - 1; i >= 0; i--) {
    if (axes[i] < AXIS_D) {
      axes[i] = (axis)(axes[i] + 1);
      return true;
    }
    axes[i] = AXIS_B;
  }
  return false;
}

/* ---- Scales ---- */

/* The axes of a scale's dimensions under a reading of its cache; NULL cache: none. */
static bool read_scale(const tensor *t, unsigned axes_wanted, const cache_reading *of, int64_t channels,
                       layout *out, int64_t *out_group) {
  memory_order m = order_of(t);
  axis axes[LAYOUT_MAX_FACTORS] = {AXIS_B};
  bool has_h = layout_has_axis(&of->layout, AXIS_H);
  if (!has_h) axes_wanted &= ~(1u << AXIS_H);
  if (m.rank > 5) return false;
  do {
    unsigned seen = 0;
    bool fits = is_said(&m, axes);
    layout l = {.count = m.rank};
    for (int i = 0; fits && i < m.rank; i++) {
      axis a = axes[i];
      int64_t wanted = a == AXIS_B   ? of->pages
                       : a == AXIS_H ? of->heads
                       : a == AXIS_S ? of->page
                                     : m.extent[i];
      fits = !(seen & 1u << a) && m.extent[i] == wanted;
      seen |= 1u << a;
      l.factors[i] = (layout_factor){.axis = a, .divisor = 1, .extent = a < AXIS_S ? 0 : m.extent[i]};
      if (a == AXIS_S || a == AXIS_D) l.size[a] = m.extent[i];
      if (a == AXIS_D) {
        fits &= m.extent[i] > 0 && channels % m.extent[i] == 0;
        *out_group = fits ? channels / m.extent[i] : 0;
      }
    }
    if (fits && seen == axes_wanted && set_padding(&m, &l)) {
      *out = l;
      return true;
    }
  } while (next_axes(axes, m.rank));
  return false;
}

static bool is_one(const tensor *t) {
  return tensor_elements(t) == 1 && t->rank <= 1;
}

static bool same_reading(const reading *a, const reading *b) {
  return a->k.page == b->k.page && a->k.heads == b->k.heads && a->granularity == b->granularity &&
         a->group_k == b->group_k && a->group_v == b->group_v && layout_equal(&a->k.layout, &b->k.layout) &&
         layout_equal(&a->v.layout, &b->v.layout) && layout_equal(&a->k_scale, &b->k_scale) &&
         layout_equal(&a->v_scale, &b->v_scale);
}

/* Of one kv head: the layout as it is where a dimension of 1 that stands for it is no dimension of its own.
 */
static layout without_h(const layout *l) {
  layout bare = *l;
  bare.count = 0;
  for (int i = 0; i < l->count; i++)
    if (l->factors[i].axis != AXIS_H) bare.factors[bare.count++] = l->factors[i];
  return bare;
}

/* Whether they differ in what a dimension of 1 is called: the only kv head, or a digit of slots or channels.
 */
static bool is_same_but_for_h(const reading *a, const reading *b) {
  const layout a_k = without_h(&a->k.layout), b_k = without_h(&b->k.layout);
  const layout a_v = without_h(&a->v.layout), b_v = without_h(&b->v.layout);
  return a->k.heads == 1 && b->k.heads == 1 && a->k.page == b->k.page && a->granularity == b->granularity &&
         layout_equal(&a_k, &b_k) && layout_equal(&a_v, &b_v);
}

/* Of readings that are one contract a named one is kept, and of those of one kv head one that has it. */
static void add(const reading *r, readings *out) {
  for (int i = 0; i < out->count && i < READINGS_MAX; i++) {
    reading *kept = &out->items[i];
    const bool has_h = layout_has_axis(&r->k.layout, AXIS_H),
               kept_has = layout_has_axis(&kept->k.layout, AXIS_H);
    if (same_reading(kept, r) ? !kept->name : has_h && !kept_has && is_same_but_for_h(kept, r)) {
      *kept = *r;
      return;
    }
    if (same_reading(kept, r) || (kept_has && !has_h && is_same_but_for_h(kept, r))) return;
  }
  if (out->count < READINGS_MAX) out->items[out->count] = *r;
  out->count++;
}

/* Adds a reading for every granularity that the scales' shapes allow under this reading of the caches. */
static void add_with_scales(const tensors *t, const reading_facts *facts, reading r, readings *out) {
  static const struct {
    granularity granularity;
    unsigned axes;
  } forms[] = {
#define X(name, word, axes) {name, axes},
      GRANULARITY_LIST(X)
#undef X
  };
  const tensor *k = t->present[TENSOR_K_SCALE] ? &t->by_name[TENSOR_K_SCALE] : NULL;
  const tensor *v = t->present[TENSOR_V_SCALE] ? &t->by_name[TENSOR_V_SCALE] : NULL;
  if (!k || is_one(k)) {
    r.granularity = k ? SCALE_TENSOR : SCALE_NONE;
    add(&r, out);
    return;
  }
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    reading with = r;
    with.granularity = forms[i].granularity;
    if (forms[i].axes == 0) continue;
    /* Without kv heads a scale a token is one a token and head. */
    if (!layout_has_axis(&r.k.layout, AXIS_H) && forms[i].granularity == SCALE_TOKEN) continue;
    if (!read_scale(k, forms[i].axes, &r.k, facts->qk, &with.k_scale, &with.group_k)) continue;
    if (v && !read_scale(v, forms[i].axes, &r.v, facts->v, &with.v_scale, &with.group_v)) continue;
    add(&with, out);
  }
}

/* ---- Caches ---- */

/* Whether a layout as a spec would have it makes a tensor of these dimensions, too: of a digit of extent 1
 * there may be a dimension or none. */
static bool is_shaped(const layout *named, const layout *read) {
  bool same = named->count == read->count && layout_equal(named, read);
  for (int i = 0; same && i < named->count; i++) {
    const layout_factor *a = &named->factors[i], *b = &read->factors[i];
    same = a->axis < AXIS_S || b->axis < AXIS_S ? a->axis == b->axis : a->extent == b->extent;
  }
  return same;
}

static void name_it(const reading_facts *facts, reading *r) {
  for (size_t i = 0; i < layout_name_count() && !r->name; i++) {
    text k, v;
    text_init(&k);
    text_init(&v);
    layout named;
    bool same = layout_named(layout_name_at(i), dtype_bytes(facts->dtype), &k, &v) &&
                layout_read(text_string(&k), r->k.page, facts->qk, &named) && is_shaped(&named, &r->k.layout);
    if (same && r->v.layout.count > 0)
      same = layout_read(text_string(&v), r->k.page, facts->v, &named) && is_shaped(&named, &r->v.layout);
    if (same) r->name = layout_name_at(i);
    text_finish(&k);
    text_finish(&v);
  }
}

void readings_find(const tensors *t, const reading_facts *facts, readings *out) {
  memory_order k = order_of(&t->by_name[TENSOR_K_CACHE]), v = {0};
  bool has_v = t->present[TENSOR_V_CACHE];
  axis k_axes[LAYOUT_MAX_FACTORS] = {AXIS_B};
  *out = (readings){0};
  if (has_v) v = order_of(&t->by_name[TENSOR_V_CACHE]);
  if (k.rank > READINGS_MAX_RANK || v.rank > READINGS_MAX_RANK) return;
  do {
    reading r = {0};
    if (!read_cache(&k, k_axes, facts->qk, facts, &r.k)) continue;
    reading_facts with_k = *facts;
    with_k.page = r.k.page;
    with_k.heads = r.k.heads;
    axis v_axes[LAYOUT_MAX_FACTORS] = {AXIS_B};
    if (!has_v) {
      name_it(facts, &r);
      add_with_scales(t, facts, r, out);
      continue;
    }
    do {
      if (!read_cache(&v, v_axes, facts->v, &with_k, &r.v) || r.v.pages != r.k.pages ||
          layout_has_axis(&r.v.layout, AXIS_H) != layout_has_axis(&r.k.layout, AXIS_H))
        continue;
      r.name = NULL;
      name_it(facts, &r);
      add_with_scales(t, facts, r, out);
    } while (next_axes(v_axes, v.rank));
  } while (next_axes(k_axes, k.rank));
}
