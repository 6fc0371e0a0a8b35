/* Where elements lie: layouts, scales inside a cache's pages, the tail of K. */
#include "page_parts.h"
#include "spec_field.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  CACHE_AXES = 1 << AXIS_B | 1 << AXIS_H | 1 << AXIS_S | 1 << AXIS_D,
  MOST_AT = 1 << 30 /* bytes from the start of a page */
};

/* The factor that names h; NULL: none does. */
static const spec_node *heads_factor(const spec_node *node) {
  for (int i = 0; node->kind == NODE_LIST && i < node->count; i++)
    if (node->items[i]->kind == NODE_SCALAR && strchr(node->items[i]->text, 'h')) return node->items[i];
  return NULL;
}

/* A K cache without h has one kv head, and then nothing else has h either. Where K's layout is refused,
 * `node` is taken at its word. */
static unsigned with_heads(const contract *c, const spec_node *node, unsigned axes) {
  bool heads = c->kv.k.count > 0 ? layout_has_axis(&c->kv.k, AXIS_H) : heads_factor(node) != NULL;
  return heads ? axes : axes & ~(1u << AXIS_H);
}

/* Refuses a layout that has h where K's hasn't, or the other way round. */
static bool agrees_on_heads(spec_reader *r, const spec_field *f, const spec_node *node, unsigned axes) {
  const contract *c = &r->spec.contract;
  if (c->kv.k.count == 0 || !(axes & 1u << AXIS_H)) return true;
  const spec_node *found = heads_factor(node);
  if ((found != NULL) == layout_has_axis(&c->kv.k, AXIS_H)) return true;
  if (found)
    return spec_reject(r, "spec.layout", f, found,
                       "%s: axis h does not belong in this layout: kv.k has none, and so one kv head",
                       f->path);
  return spec_reject(r, "spec.layout", f, node, "%s: axis h is missing: kv.k has it", f->path);
}

/* Where a layout is not a list: what one looks like, or what the word for it stands for. */
static bool reject_no_list(spec_reader *r, const spec_field *f, const spec_node *node, const char *or_else) {
  static const struct {
    const char *word, *means;
  } called[] = {{"NHD", "[b, s, h, d]"}, {"HND", "[b, h, s, d]"}};
  text expected;
  text_init(&expected);
  text_addf(&expected, "a layout: a list of axis factors, outermost first%s", or_else);
  const char *word = node->kind == NODE_SCALAR ? node->text : "";
  for (size_t i = 0; i < sizeof called / sizeof *called; i++)
    if (strcasecmp(called[i].word, word) == 0)
      text_addf(&expected, "; %s is %s", called[i].word, called[i].means);
  if (word[0] == '[') text_add(&expected, ", without quotes");
  spec_reject_type(r, f, node, text_string(&expected));
  text_finish(&expected);
  return false;
}

static bool read_layout(spec_reader *r, const spec_field *f, const spec_node *node, unsigned axes,
                        int channels, layout *out_layout) {
  const contract *c = &r->spec.contract;
  if (node->kind != NODE_LIST) return reject_no_list(r, f, node, "");
  if (node->count > LAYOUT_MAX_FACTORS)
    return spec_reject(r, "spec.layout", f, node, "%s has %d factors, allowed: at most %d", f->path,
                       node->count, LAYOUT_MAX_FACTORS);
  const char *items[LAYOUT_MAX_FACTORS];
  for (int i = 0; i < node->count; i++) {
    const spec_node *item = node->items[i];
    if (item->kind != NODE_SCALAR) return spec_reject_type(r, f, item, "an axis factor such as d or d%16");
    items[i] = item->text;
  }
  if (c->kv.page == 0 || channels <= 0) return false; /* refused before: nothing to check against */
  if (!agrees_on_heads(r, f, node, axes)) return false;
  layout_error error;
  if (layout_parse(items, node->count, with_heads(c, node, axes), c->kv.page, channels, out_layout, &error))
    return true;
  const spec_node *at = error.item >= 0 && error.item < node->count ? node->items[error.item] : node;
  return spec_reject(r, "spec.layout", f, at, "%s: %s", f->path, error.message);
}

/* Of what lies inside a cache's pages: paddings that only make strides of pages and heads, which are the
 * cache's, say nothing. */
static void drop_idle_padding(layout *l) {
  layout_canonicalize(l);
  bool idle = false;
  for (int i = 0; i < l->count; i++) {
    layout_factor *f = &l->factors[i];
    bool free_stride = f->axis == AXIS_B || f->axis == AXIS_H;
    if (idle && !free_stride) f->pad = 0;
    idle = free_stride;
  }
  layout_canonicalize(l);
}

bool spec_parse_k(spec_reader *r, const spec_field *f, const spec_node *node) {
  contract *c = &r->spec.contract;
  return read_layout(r, f, node, CACHE_AXES, contract_coded_k(c), &c->kv.k);
}

/* A layout, or `k`: V is the first channels of K. */
bool spec_parse_v(spec_reader *r, const spec_field *f, const spec_node *node) {
  contract *c = &r->spec.contract;
  if (node->kind == NODE_SCALAR && strcmp(node->text, "k") == 0) {
    c->kv.v_in_k = true;
    c->kv.v = c->kv.k;
    return c->kv.k.count > 0;
  }
  if (node->kind != NODE_LIST)
    return reject_no_list(r, f, node, "; or k, where V is the first channels of K");
  return read_layout(r, f, node, CACHE_AXES, c->head_dim.v, &c->kv.v);
}

/* A number of bytes from the start of a page. */
static bool read_at(spec_reader *r, const spec_field *f, const char *path, const spec_node *node,
                    int64_t *out_at) {
  size_t length = node->kind == NODE_SCALAR && !node->quoted ? strlen(node->text) : 0;
  bool good = length > 0 && length <= 10 && strspn(node->text, "0123456789") == length &&
              (length == 1 || node->text[0] != '0') && strtoll(node->text, NULL, 10) <= MOST_AT;
  char found[SPEC_FOUND_BYTES];
  if (!good)
    return spec_reject(r, "spec.value", f, node, "%s is %s, allowed: bytes from the start of a page, 0 to %d",
                       path, spec_found(node, found), (int)MOST_AT);
  *out_at = strtoll(node->text, NULL, 10);
  return true;
}

bool spec_parse_tail_at(spec_reader *r, const spec_field *f, const spec_node *node) {
  return read_at(r, f, f->path, node, &r->spec.contract.kv.tail.at);
}

bool spec_parse_tail_layout(spec_reader *r, const spec_field *f, const spec_node *node) {
  contract *c = &r->spec.contract;
  if (!read_layout(r, f, node, CACHE_AXES, c->kv.tail.channels, &c->kv.tail.layout)) return false;
  drop_idle_padding(&c->kv.tail.layout);
  return true;
}

/* In a scale layout d counts groups of channels. */
static bool read_scale_layout(spec_reader *r, const spec_field *f, const spec_node *node, bool is_k) {
  contract *c = &r->spec.contract;
  granularity g = c->scale.granularity;
  int channels = is_k ? contract_coded_k(c) : contract_coded_v(c);
  int group = is_k ? c->scale.group_k : c->scale.group_v;
  if (g == SCALE_GROUP && (group == 0 || channels % group != 0)) return false; /* refused already */
  return read_layout(r, f, node, contract_scale_axes(g), g == SCALE_GROUP ? channels / group : 1,
                     is_k ? &c->scale.k : &c->scale.v);
}

/* {inside: k, at: 128, layout: [b, s, h, 33]}: the scales lie in the pages of their own cache. */
static bool read_inside(spec_reader *r, const spec_field *f, const spec_node *node, bool is_k) {
  static const char *const keys[] = {"inside", "at", "layout"};
  contract *c = &r->spec.contract;
  const spec_node *values[3] = {NULL};
  const char *cache = is_k ? "k" : "v";
  char found[SPEC_FOUND_BYTES], path[32];
  bool good = true;
  for (int i = 0; i < node->count; i++) {
    int key = 0;
    while (key < 3 && strcmp(node->pairs[i].key->text, keys[key]) != 0)
      key++;
    if (key < 3)
      values[key] = node->pairs[i].value;
    else
      good = spec_reject(r, "spec.unknown-key", f, node->pairs[i].key,
                         "unknown field %s, allowed in %s: inside, at, layout",
                         spec_found(node->pairs[i].key, found), f->path);
  }
  for (int key = 0; key < 3; key++)
    if (!values[key]) good = spec_reject(r, "spec.missing", f, node, "%s.%s is missing", f->path, keys[key]);
  if (!good) return false;
  if (values[0]->kind != NODE_SCALAR || strcmp(values[0]->text, cache) != 0)
    return spec_reject(r, "spec.value", f, values[0], "%s.inside is %s, allowed: %s, the cache it scales",
                       f->path, spec_found(values[0], found), cache);
  if (!contract_token_scales(c))
    return is_k &&
           spec_reject(r, "spec.conflict", f, values[0],
                       "%s lies inside pages, but granularity %s has no scale of a page, allowed with: "
                       "token, token_head, page_head, group",
                       f->path, granularity_name(c->scale.granularity));
  strcpy(stpcpy(path, f->path), ".at");
  good = read_at(r, f, path, values[1], is_k ? &c->scale.k_at : &c->scale.v_at);
  if (!read_scale_layout(r, f, values[2], is_k)) return false;
  drop_idle_padding(is_k ? &c->scale.k : &c->scale.v);
  return good;
}

static bool parse_scale(spec_reader *r, const spec_field *f, const spec_node *node, bool is_k) {
  contract *c = &r->spec.contract;
  bool inside = node->kind == NODE_MAP;
  if (!is_k && c->kv.v_in_k) {
    if (node->line > 0)
      return spec_reject(r, "spec.conflict", f, node,
                         "%s has no meaning where V lies in K: its scales are K's", f->path);
    return true; /* the default */
  }
  if (is_k) c->scale.inside = inside;
  if (!is_k && c->kv.v.count == 0) return false; /* refused, and maybe meant to be `k` */
  if (!is_k && inside != c->scale.inside)
    return spec_reject(r, "spec.conflict", f, node->line > 0 ? node : spec_find_node(r, "scale.k"),
                       "scale.k lies %s its cache's pages and scale.v %s, allowed: both inside, or none",
                       c->scale.inside ? "inside" : "outside", inside ? "inside" : "outside");
  return inside ? read_inside(r, f, node, is_k) : read_scale_layout(r, f, node, is_k);
}

bool spec_parse_scale_k(spec_reader *r, const spec_field *f, const spec_node *node) {
  return parse_scale(r, f, node, true);
}

bool spec_parse_scale_v(spec_reader *r, const spec_field *f, const spec_node *node) {
  return parse_scale(r, f, node, false);
}

bool spec_default_scale_layout(spec_reader *r, const spec_field *f) {
  static const char *const letters[AXIS_COUNT] = {"b", "h", "s", "d"};
  const contract *c = &r->spec.contract;
  bool heads = c->kv.k.count == 0 || layout_has_axis(&c->kv.k, AXIS_H);
  unsigned axes = contract_scale_axes(c->scale.granularity) & ~(heads ? 0 : 1u << AXIS_H);
  spec_node items[AXIS_COUNT], *pointers[AXIS_COUNT];
  spec_node list = {.kind = NODE_LIST, .items = pointers};
  for (int a = 0; a < AXIS_COUNT; a++) {
    if (!(axes & 1u << a)) continue;
    items[list.count] = (spec_node){.kind = NODE_SCALAR, .text = letters[a]};
    pointers[list.count] = &items[list.count];
    list.count++;
  }
  return f->parse(r, f, &list);
}

void spec_check_page(spec_reader *r, const spec_field *f, const spec_node *at, bool is_k) {
  page_part parts[PAGE_MAX_PARTS];
  char problem[200];
  int count = page_parts(&r->spec.contract, is_k, parts);
  static const int64_t heads[] = {1, 3};
  for (int i = 0; i < 2; i++) {
    if (page_parts_apart(parts, count, heads[i], problem, sizeof problem)) continue;
    spec_reject(r, "spec.conflict", f, at, "%s", problem);
    return;
  }
}
