#include "bench.h"
#include "../verify/verify_data.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "NxNx…" of 3 or 4 whole numbers; how many, or 0. */
static int parse_numbers(const char *word, int64_t out[4]) {
  int count = 0;
  for (const char *at = word;; at++) {
    char *end;
    errno = 0;
    if (*at < '0' || *at > '9' || count == 4) return 0;
    out[count++] = strtoll(at, &end, 10);
    if (errno || (*end && *end != 'x')) return 0;
    if (!*end) return count >= 3 ? count : 0;
    at = end;
  }
}

bool bench_shape_parse(const char *word, bench_shape *out_shape) {
  int64_t n[4] = {0};
  int count = parse_numbers(word, n);
  if (count == 0) return false;
  bool fits = n[0] >= 1 && n[0] <= 1 << 20 && n[1] >= 1 && n[1] <= 1 << 28 && n[2] >= 1 && n[2] <= 1 << 12;
  if (count == 4) fits = fits && n[3] >= 1 && n[3] <= 64;
  /* Tokens of all sequences travel to kernels as int32. */
  if (!fits || n[0] * n[1] > INT32_MAX) return false;
  *out_shape = (bench_shape){n[0], n[1], n[2], (int)n[3]};
  return true;
}

void bench_shape_write(const bench_shape *s, text *out) {
  text_addf(out, "%" PRId64 "x%" PRId64 "x%" PRId64, s->seqs, s->length, s->kv_heads);
  if (s->heads_per_kv) text_addf(out, "x%d", s->heads_per_kv);
}

/* Small and large batches, short and long contexts: 8.7 MB to 554 MB at fp8 with token scales. */
static const bench_shape decode_shapes[] = {
    {4, 8192, 1, 16},    {4, 8192, 4, 16},  {64, 8192, 1, 16}, {64, 8192, 4, 8},   {64, 8192, 4, 16},
    {128, 16384, 1, 16}, {128, 2048, 8, 8}, {8, 32768, 8, 4},  {1, 131072, 1, 16},
};
static const bench_shape first_shapes[] = {{4, 8192, 1, 16}, {64, 8192, 4, 8}, {128, 16384, 1, 16}};
/* For emulated devices. */
static const bench_shape tiny_shapes[] = {{1, 64, 1, 16}, {2, 300, 2, 8}};

#define PRESET(name, about, shapes)                                                                          \
  { name, about, shapes, (int)(sizeof(shapes) / sizeof(shapes)[0]) }
const bench_preset bench_presets[] = {
    PRESET("decode", "nine shapes from one long sequence to large batches", decode_shapes),
    PRESET("first", "three of them: a small, a middling and a large one", first_shapes),
    PRESET("tiny", "two that an emulated device gets through", tiny_shapes),
};
const int bench_preset_count = sizeof bench_presets / sizeof bench_presets[0];

const bench_preset *bench_preset_find(const char *name) {
  for (int i = 0; i < bench_preset_count; i++)
    if (strcmp(bench_presets[i].name, name) == 0) return &bench_presets[i];
  return NULL;
}

static int64_t by_logarithm(random_state *r, double least, double most) {
  return (int64_t)(least * pow(most / least, random_unit(r)));
}

void bench_random_shape(uint64_t seed, int n, int64_t bytes_a_token_head, bench_shape *out,
                        bool *out_ragged) {
  static const int64_t most_bytes = 600000000;
  random_state r = {seed * 0x9e3779b97f4a7c15u + (uint64_t)n};
  bench_shape s = {.seqs = by_logarithm(&r, 1, 257), .length = by_logarithm(&r, 1024, 65537)};
  s.kv_heads = 1 + random_below(&r, 8);
  bool ragged = random_below(&r, 2) == 1;
  /* Ragged batches hold about 0.3 of what their longest sequence says. */
  int64_t tokens = most_bytes / bytes_a_token_head / s.kv_heads * (ragged ? 3 : 1);
  while (s.seqs * s.length > tokens && s.length >= 2048)
    s.length /= 2;
  while (s.seqs * s.length > tokens && s.seqs >= 2)
    s.seqs /= 2;
  *out = s;
  *out_ragged = ragged;
}

/* Gives the outermost digit of s the extent that makes up the new page; the inner digits stay. */
static bool resize_page(layout *l, int page) {
  layout_factor *outermost = NULL;
  if (l->count == 0 || l->size[AXIS_S] == 0) return true; /* scales that a page shares */
  if (layout_is_padded(l)) return false;                  /* what lies in the padding would move */
  for (int i = 0; i < l->count; i++) {
    layout_factor *f = &l->factors[i];
    if (f->axis != AXIS_S) continue;
    if (!outermost || f->divisor > outermost->divisor ||
        (f->divisor == outermost->divisor && f->extent > outermost->extent))
      outermost = f;
  }
  if (!outermost || page % outermost->divisor != 0) return false;
  outermost->extent = page / outermost->divisor;
  l->size[AXIS_S] = page;
  return true;
}

hd_status bench_contract(const contract *c, int heads_per_kv, int page, contract *out_contract,
                         diags *errors) {
  contract changed = *c;
  if (heads_per_kv) changed.query.heads_per_kv = heads_per_kv;
  if (page && page != c->kv.page) {
    layout *const layouts[] = {&changed.kv.k, &changed.kv.v, &changed.scale.k, &changed.scale.v};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
      if (resize_page(layouts[i], page)) continue;
      text written;
      text_init(&written);
      layout_write(layouts[i], &written);
      diags_errorf(errors, "bench.page", "kv.page", "the layout %s can't have pages of %d tokens",
                   text_string(&written), page);
      text_finish(&written);
      return HD_INVALID;
    }
    changed.kv.page = page;
  }
  *out_contract = changed;
  return HD_OK;
}

int64_t bench_lengths(const bench_shape *shape, bool ragged, int32_t *out_lengths) {
  int64_t sum = 0;
  for (int64_t i = 0; i < shape->seqs; i++) {
    int64_t length = shape->length;
    if (ragged && i % 8 != 0) {
      /* A fixed walk over 1/16 … 5/16: the same lengths on every machine, without a pattern of eight. */
      uint32_t mixed = (uint32_t)i * 2654435761u;
      length = length / 16 + (int64_t)(mixed >> 16) * (length / 4) / 65536;
    }
    out_lengths[i] = (int32_t)(length > 0 ? length : 1);
    sum += out_lengths[i];
  }
  return sum;
}
