#include "page_map.h"

/* Strides of a packed cache, in bytes: of the codes, and so of every part of its pages. */
static int64_t head_stride(const page_part *codes, int64_t heads) {
  int64_t stride_b, stride_h;
  layout_packed_strides(codes->layout, 1, heads, &stride_b, &stride_h);
  return stride_h * codes->bytes;
}

static void add_digit(page_map_part *p, page_digit d) {
  if (d.extent == 1 && d.axis != AXIS_H) return;
  int place = p->digit_count++;
  for (; place > 0 && p->digits[place - 1].bytes < d.bytes; place--)
    p->digits[place] = p->digits[place - 1];
  p->digits[place] = d;
}

static page_map_part *add_part(page_map *m, const page_part *part, page_kind kind, int64_t stride_h) {
  page_map_part *p = &m->parts[m->part_count++];
  *p = (page_map_part){.part = *part, .kind = kind};
  for (int i = 0; i < part->layout->count; i++) {
    const layout_factor *f = &part->layout->factors[i];
    layout_stride s = layout_factor_stride(part->layout, i);
    if (f->axis == AXIS_B) continue;
    if (f->axis == AXIS_H)
      add_digit(p, (page_digit){AXIS_H, 1, m->heads, stride_h});
    else
      add_digit(p, (page_digit){f->axis, f->divisor, f->extent,
                                s.times_heads ? s.elements * m->heads * stride_h : s.elements * part->bytes});
  }
  return p;
}

void page_map_of(const contract *c, bool is_k, int64_t heads, page_map *out_map) {
  page_part parts[PAGE_MAX_PARTS];
  int count = page_parts(c, is_k, parts);
  *out_map = (page_map){.heads = layout_has_axis(parts[0].layout, AXIS_H) ? heads : 1};
  out_map->bytes = layout_elements(parts[0].layout, 1, out_map->heads) * parts[0].bytes;
  for (int i = 0; i < count; i++) {
    bool scales = c->scale.inside && i == 1;
    page_kind kind = i == 0 ? PAGE_CODES : scales ? PAGE_SCALES : PAGE_TAIL;
    page_map_part *p = add_part(out_map, &parts[i], kind, head_stride(&parts[0], out_map->heads));
    if (kind == PAGE_TAIL) p->first_channel = contract_coded_k(c);
  }
}

bool page_map_of_scales(const contract *c, bool is_k, int64_t heads, page_map *out_map) {
  const layout *l = is_k ? &c->scale.k : &c->scale.v;
  if (c->scale.inside || l->count == 0 || !layout_has_axis(l, AXIS_B)) return false;
  const page_part part = {is_k ? "scale.k" : "scale.v", l, dtype_bytes(c->scale.dtype), 0};
  *out_map = (page_map){.heads = layout_has_axis(l, AXIS_H) ? heads : 1};
  out_map->bytes = layout_elements(l, 1, out_map->heads) * part.bytes;
  add_part(out_map, &part, PAGE_SCALES, head_stride(&part, out_map->heads));
  return true;
}

static int64_t *coordinate(page_item *item, axis a) {
  return a == AXIS_H ? &item->head : a == AXIS_S ? &item->slot : &item->channel;
}

/* Digit by digit, longest steps first: each steps over all that the shorter ones cover. */
static bool find_in(const page_map_part *p, int64_t byte, page_item *out) {
  int64_t rest = byte - p->part.at;
  if (rest < 0) return false;
  const layout *l = p->part.layout;
  page_item item = {.kind = p->kind, .head = -1, .slot = -1, .channel = -1};
  if (layout_has_axis(l, AXIS_H)) item.head = 0;
  if (layout_has_axis(l, AXIS_S) || l->size[AXIS_S] > 0) item.slot = 0;
  if (p->kind != PAGE_SCALES || l->size[AXIS_D] > 1) item.channel = p->first_channel;
  for (int i = 0; i < p->digit_count; i++) {
    const page_digit *d = &p->digits[i];
    int64_t digit = rest / d->bytes;
    if (digit >= d->extent)
      digit = d->extent - 1; /* what is left is then more than the shorter digits take */
    rest -= digit * d->bytes;
    *coordinate(&item, d->axis) += digit * d->divisor;
  }
  if (rest >= p->part.bytes) return false;
  item.byte = (int)rest;
  *out = item;
  return true;
}

page_item page_map_at(const page_map *m, int64_t byte) {
  page_item item = {.kind = PAGE_PADDING, .part = -1, .head = -1, .slot = -1, .channel = -1};
  for (int i = 0; i < m->part_count; i++)
    if (find_in(&m->parts[i], byte, &item)) {
      item.part = i;
      break;
    }
  return item;
}

int64_t page_map_byte(const page_map *m, int part, int64_t head, int64_t slot, int64_t channel) {
  const page_part *p = &m->parts[part].part;
  int64_t own = channel > 0 ? channel - m->parts[part].first_channel : 0;
  int64_t stride_h = head_stride(&m->parts[0].part, m->heads) / p->bytes;
  return p->at + p->bytes * layout_offset(p->layout, 0, stride_h, m->heads, 0, head > 0 ? head : 0,
                                          slot > 0 ? slot : 0, own);
}

/* Whether `next` is the `n`-th element behind `first` along `a`. */
static bool follows(const page_item *first, const page_item *next, axis a, int64_t n) {
  return next->part == first->part && next->head == first->head + (a == AXIS_H ? n : 0) &&
         next->slot == first->slot + (a == AXIS_S ? n : 0) &&
         next->channel == first->channel + (a == AXIS_D ? n : 0);
}

page_cell page_map_cell(const page_map *m, int64_t at, int64_t end, int64_t most) {
  page_cell c = {.at = at, .first = page_map_at(m, at), .along = AXIS_D, .count = 1};
  if (c.first.part < 0) {
    for (c.bytes = 1; at + c.bytes < end && page_map_at(m, at + c.bytes).part < 0; c.bytes++)
      continue;
    return c;
  }
  const int size = m->parts[c.first.part].part.bytes;
  if (at + size < end) {
    page_item next = page_map_at(m, at + size);
    for (axis a = AXIS_H; a <= AXIS_D; a++)
      if (follows(&c.first, &next, a, 1)) c.along = a;
  }
  while ((c.count + 1) * size <= most && at + c.count * size < end) {
    page_item next = page_map_at(m, at + c.count * size);
    if (!follows(&c.first, &next, c.along, c.count)) break;
    c.count++;
  }
  c.bytes = c.count * size;
  return c;
}

static void write_range(text *out, const char *name, int64_t first, int64_t count, const char *dash) {
  if (count > 1)
    text_addf(out, "%s%lld%s%lld", name, (long long)first, dash, (long long)(first + count - 1));
  else
    text_addf(out, "%s%lld", name, (long long)first);
}

void page_digit_write(const page_digit *d, int64_t size, text *out) {
  const char name = "bhsd"[d->axis];
  if (d->axis == AXIS_H || (d->divisor == 1 && d->extent == size))
    text_addf(out, "%c", name);
  else if (d->divisor == 1)
    text_addf(out, "%c%%%lld", name, (long long)d->extent);
  else if (d->divisor * d->extent == size)
    text_addf(out, "%c/%lld", name, (long long)d->divisor);
  else
    text_addf(out, "%c%%%lld/%lld", name, (long long)(d->divisor * d->extent), (long long)d->divisor);
}

void page_digit_value(const page_digit *d, int64_t n, const char *dash, text *out) {
  static const char *const names[AXIS_COUNT] = {"", "h", "t", "d"};
  write_range(out, names[d->axis], n * d->divisor, d->divisor, dash);
}

void page_cell_write(const page_map *m, const page_cell *c, const char *dash, text *out) {
  const page_item *i = &c->first;
  const char *space = "";
  if (i->part < 0) {
    text_add(out, "padding");
    return;
  }
  if (i->head >= 0 && m->heads > 1) {
    write_range(out, "h", i->head, c->along == AXIS_H ? c->count : 1, dash);
    space = " ";
  }
  if (i->slot >= 0) {
    text_add(out, space);
    write_range(out, "t", i->slot, c->along == AXIS_S ? c->count : 1, dash);
    space = " ";
  }
  if (i->channel >= 0) {
    text_add(out, space);
    write_range(out, i->kind == PAGE_SCALES ? "g" : "d", i->channel, c->along == AXIS_D ? c->count : 1, dash);
  }
  if (i->slot < 0 && i->channel < 0 && m->heads == 1) text_add(out, "page");
  if (i->kind == PAGE_SCALES && m->parts[0].kind != PAGE_SCALES) text_add(out, " scale");
}

void page_cell_describe(const page_map *m, const page_cell *c, const char *dash, text *out) {
  static const char *const kinds[] = {"", "scale of ", "tail of ", "padding"};
  const page_item *i = &c->first;
  const char *comma = "";
  text_add(out, kinds[i->kind]);
  if (i->part < 0) return;
  (void)m;
  if (i->head >= 0) {
    write_range(out, c->along == AXIS_H && c->count > 1 ? "kv heads " : "kv head ", i->head,
                c->along == AXIS_H ? c->count : 1, dash);
    comma = ", ";
  }
  if (i->slot >= 0) {
    text_add(out, comma);
    write_range(out, c->along == AXIS_S && c->count > 1 ? "tokens " : "token ", i->slot,
                c->along == AXIS_S ? c->count : 1, dash);
    comma = ", ";
  }
  if (i->channel >= 0) {
    bool several = c->along == AXIS_D && c->count > 1;
    text_add(out, comma);
    write_range(out,
                i->kind == PAGE_SCALES ? several ? "groups " : "group "
                : several              ? "channels "
                                       : "channel ",
                i->channel, c->along == AXIS_D ? c->count : 1, dash);
  }
}
