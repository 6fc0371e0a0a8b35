#include "page_parts.h"

#include <stdio.h>

int page_parts(const contract *c, bool is_k, page_part out_parts[PAGE_MAX_PARTS]) {
  int count = 0;
  out_parts[count++] = (page_part){is_k ? "kv.k" : "kv.v", is_k ? &c->kv.k : &c->kv.v,
                                   dtype_bytes(is_k ? c->kv.k_dtype : c->kv.v_dtype), 0};
  if (c->scale.inside)
    out_parts[count++] = (page_part){is_k ? "scale.k" : "scale.v", is_k ? &c->scale.k : &c->scale.v,
                                     dtype_bytes(c->scale.dtype), is_k ? c->scale.k_at : c->scale.v_at};
  if (is_k && c->kv.tail.channels > 0)
    out_parts[count++] =
        (page_part){"kv.tail", &c->kv.tail.layout, dtype_bytes(c->kv.tail.dtype), c->kv.tail.at};
  return count;
}

bool page_part_stride(const page_part *codes, const page_part *part, int64_t stride, int64_t *out_stride) {
  int64_t bytes;
  if (__builtin_mul_overflow(stride, (int64_t)codes->bytes, &bytes) || bytes % part->bytes != 0) return false;
  *out_stride = bytes / part->bytes;
  return true;
}

/* A dimension of a part: so many steps of so many bytes. */
typedef struct dimension {
  int64_t extent, step;
} dimension;

/* A part of one page in bytes: runs of `run` bytes, dimensions with the longest steps first. */
typedef struct bytes_of {
  int count;
  dimension dimensions[LAYOUT_MAX_FACTORS];
  int64_t at, run, end; /* end: behind its last byte */
} bytes_of;

/* Inserts by step; steps of one index are none. */
static void add_dimension(bytes_of *b, int64_t extent, int64_t step) {
  if (extent == 1) return;
  int place = b->count++;
  for (; place > 0 && b->dimensions[place - 1].step < step; place--)
    b->dimensions[place] = b->dimensions[place - 1];
  b->dimensions[place] = (dimension){extent, step};
  b->end += (extent - 1) * step;
}

static bytes_of bytes_of_part(const page_part *p, int64_t heads, int64_t stride_h) {
  bytes_of b = {.at = p->at, .run = p->bytes, .end = p->at + p->bytes};
  for (int i = 0; i < p->layout->count; i++) {
    const layout_factor *f = &p->layout->factors[i];
    layout_stride s = layout_factor_stride(p->layout, i);
    if (f->axis == AXIS_B) continue;
    if (f->axis == AXIS_H)
      add_dimension(&b, heads, stride_h);
    else
      add_dimension(&b, f->extent, s.times_heads ? s.elements * heads * stride_h : s.elements * p->bytes);
  }
  while (b.count > 0 && b.dimensions[b.count - 1].step == b.run)
    b.run *= b.dimensions[--b.count].extent;
  return b;
}

/* Whether each dimension steps over all that the shorter ones cover. */
static bool nests(const bytes_of *b) {
  int64_t covered = b->run;
  for (int i = b->count - 1; i >= 0; i--) {
    if (b->dimensions[i].step < covered) return false;
    covered += (b->dimensions[i].extent - 1) * b->dimensions[i].step;
  }
  return true;
}

enum { MOST_STEPS = 1 << 18 };

/* What one step of the outermost dimension has. */
static bytes_of inside_step(const bytes_of *b, int64_t step_index) {
  bytes_of part = *b;
  const dimension d = b->dimensions[0];
  part.count--;
  for (int i = 0; i < part.count; i++)
    part.dimensions[i] = b->dimensions[i + 1];
  part.at += step_index * d.step;
  part.end -= (d.extent - 1 - step_index) * d.step;
  return part;
}

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Records: both step alike, and what one step has of both lies within a step. */
static bool same_records(const bytes_of *a, const bytes_of *b) {
  if (a->count == 0 || b->count == 0 || a->dimensions[0].step != b->dimensions[0].step) return false;
  const int64_t step = a->dimensions[0].step, start = lesser(a->at, b->at);
  return inside_step(a, 0).end - start <= step && inside_step(b, 0).end - start <= step;
}

/* Whether some byte is in both, by parting the problem: one step of the longer dimension at a time, and of
 * these only those that reach into what the other covers; records one for all. `*steps` counts down; at 0 the
 * answer is yes. */
static bool meet(const bytes_of *a, const bytes_of *b, int *steps) {
  if (--*steps <= 0) return true;
  if (a->end <= b->at || b->end <= a->at) return false;
  if (a->count == 0 && b->count == 0) return true;
  if (same_records(a, b)) {
    const bytes_of first = inside_step(a, 0), second = inside_step(b, 0);
    return meet(&first, &second, steps);
  }
  bool first = b->count == 0 || (a->count > 0 && a->dimensions[0].step >= b->dimensions[0].step);
  const bytes_of *whole = first ? a : b, *other = first ? b : a;
  const dimension d = whole->dimensions[0];
  int64_t low = other->at - inside_step(whole, 0).end, from = low < 0 ? 0 : low / d.step + 1;
  for (int64_t i = from; i < d.extent && whole->at + i * d.step < other->end; i++) {
    const bytes_of part = inside_step(whole, i);
    if (meet(&part, other, steps)) return true;
  }
  return false;
}

static bool fail(char *out, size_t size, const page_part *p, const char *what, int64_t found,
                 const char *allowed, int64_t bound) {
  snprintf(out, size, "%s %s %lld, allowed: %s %lld", p->field, what, (long long)found, allowed,
           (long long)bound);
  return false;
}

bool page_parts_apart(const page_part *parts, int count, int64_t heads, char *out, size_t size) {
  const page_part *codes = &parts[0];
  int64_t stride_b, stride_h, ignored;
  layout_packed_strides(codes->layout, 1, heads, &stride_b, &stride_h);
  int64_t all = layout_elements(codes->layout, 1, heads) * codes->bytes;
  bytes_of bytes[PAGE_MAX_PARTS];
  for (int i = 0; i < count; i++) {
    const page_part *p = &parts[i];
    bytes[i] = bytes_of_part(p, heads, stride_h * codes->bytes);
    if (p->at % p->bytes != 0)
      return fail(out, size, p, "starts at byte", p->at, "a multiple of its element's", p->bytes);
    if (!page_part_stride(codes, p, stride_b, &ignored))
      return fail(out, size, p, "steps by pages of bytes:", stride_b * codes->bytes,
                  "a multiple of its element's", p->bytes);
    if (!page_part_stride(codes, p, stride_h, &ignored))
      return fail(out, size, p, "steps by heads of bytes:", stride_h * codes->bytes,
                  "a multiple of its element's", p->bytes);
    if (bytes[i].end > all)
      return fail(out, size, p, "ends at byte", bytes[i].end,
                  "within the page, whose padding included end is", all);
    if (!nests(&bytes[i])) {
      snprintf(out, size, "%s overlaps itself, with %lld kv heads", p->field, (long long)heads);
      return false;
    }
  }
  for (int i = 0; i < count; i++)
    for (int j = i + 1; j < count; j++) {
      int steps = MOST_STEPS;
      if (!meet(&bytes[i], &bytes[j], &steps)) continue;
      snprintf(out, size, "%s and %s share bytes of the page, allowed: parts that lie apart%s",
               parts[i].field, parts[j].field, steps <= 0 ? "; these are too tangled to tell" : "");
      return false;
    }
  return true;
}
