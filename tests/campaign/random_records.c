#include "random_draft.h"
#include <stdio.h>
#include <string.h>

/* Where codes, scales and the tail stand to each other. */
typedef enum arrangement {
  HEADS_INSIDE, /* [page, slot, head, record] */
  HEADS_OUTER,  /* [page, head, slot, record] */
  AT_THE_END,   /* of a page's head: all codes, then all of the others */
} arrangement;

/* One cache's record: bytes of a slot, or AT_THE_END of all slots. */
typedef struct record {
  arrangement arrangement;
  int slots;       /* 1; AT_THE_END the page's */
  int codes;       /* channels of a byte */
  int scale_bytes; /* of one scale; 0: none */
  int scales;      /* of a slot */
  int tail;        /* channels of two bytes */
  int scale_at, tail_at, bytes;
} record;

static int up_to(int n, int step) {
  return (n + step - 1) / step * step;
}

/* Some bytes that belong to nothing. */
static int gap(draft *d) {
  return draft_one_in(d, 4) ? draft_below(d, 40) : 0;
}

/* Lets scales and tail follow the codes, in any order, each at a multiple of its own elements. */
static void place_parts(draft *d, record *r) {
  int at = r->slots * r->codes;
  bool tail_first = draft_one_in(d, 2);
  for (int part = 0; part < 2; part++) {
    bool tail = (part == 0) == tail_first;
    int bytes = tail ? 2 : r->scale_bytes, count = tail ? r->tail : r->scales;
    if (bytes == 0 || count == 0) continue;
    at = up_to(at + gap(d), bytes);
    *(tail ? &r->tail_at : &r->scale_at) = at;
    at += r->slots * count * bytes;
  }
  r->bytes = up_to(at + gap(d), draft_one_in(d, 2) ? 16 : 4);
}

/* Axes in front of a part's innermost one. */
static const char *outer_axes(const draft *d, arrangement a) {
  if (d->one_head) return "b, s";
  return a == HEADS_INSIDE ? "b, s, h" : "b, h, s";
}

/* The layout of a part of `count` elements a slot, `bytes` each; `counted`: there is an axis d to count them.
 * Padding that would only make strides of heads or pages is left out. */
static void write_part_layout(const draft *d, const record *r, int count, int bytes, bool counted,
                              text *out) {
  bool padded = r->arrangement != AT_THE_END && (r->arrangement == HEADS_OUTER || d->one_head);
  int step = r->bytes / bytes;
  text_addf(out, "[%s", outer_axes(d, r->arrangement));
  if (counted && padded && step > count)
    text_addf(out, ", d+%d", step - count);
  else if (counted)
    text_add(out, ", d");
  else if (padded && step > 1)
    text_addf(out, ", %d", step);
  text_add(out, "]");
}

static void write_codes_layout(const draft *d, const record *r, text *out) {
  int rest = r->bytes - r->slots * r->codes;
  if (r->arrangement == AT_THE_END)
    text_addf(out, "[%s+%d, d]", outer_axes(d, AT_THE_END), rest);
  else
    text_addf(out, "[%s, d+%d]", outer_axes(d, r->arrangement), rest);
}

static record random_record(draft *d, arrangement a, int channels, int tail, int group, int scale_bytes) {
  record r = {.arrangement = a,
              .slots = a == AT_THE_END ? d->page : 1,
              .codes = channels - tail,
              .scale_bytes = scale_bytes,
              .tail = tail};
  r.scales = scale_bytes == 0 ? 0 : group ? r.codes / group : 1;
  place_parts(d, &r);
  return r;
}

static void write_scale(draft *d, const record *k, const record *v, const char *format, int k_group,
                        int v_group, text *out) {
  const char *names[] = {"k", "v"};
  const record *records[] = {k, v};
  bool token = d->one_head && k_group == 0 && draft_one_in(d, 2); /* of one head: the same bytes */
  if (k->scale_bytes == 0) return;
  text_addf(out, "scale: {granularity: %s, dtype: %s",
            k_group ? "group"
            : token ? "token"
                    : "token_head",
            format);
  if (k_group && d->v_in_k) text_addf(out, ", group: %d", k_group);
  if (k_group && !d->v_in_k) text_addf(out, ", group: {k: %d, v: %d}", k_group, v_group);
  for (int i = 0; i < (d->v_in_k ? 1 : 2); i++) {
    text_addf(out, ",\n  %s: {inside: %s, at: %d, layout: ", names[i], names[i], records[i]->scale_at);
    write_part_layout(d, records[i], records[i]->scales, records[i]->scale_bytes, k_group > 0, out);
    text_add(out, "}");
  }
  draft_writer(d, format, out);
  text_add(out, "}\n");
}

/* Channels of K in another format: whole eights mostly, fewer than all. */
static int random_tail(draft *d) {
  int most = d->v_in_k && !draft_one_in(d, 6) ? d->qk - d->v : d->qk - 8;
  if (!draft_one_in(d, 2) || most < 8) return 0;
  return draft_one_in(d, 12) ? 1 + draft_below(d, most)
                             : 8 * (1 + draft_below(d, most / 8 > 8 ? 8 : most / 8));
}

void random_records(draft *d, text *out) {
  static const char *const bytes[] = {"fp8_e4m3", "fp8_e4m3", "fp8_e5m2", "int8"}, *const tails[] = {"bf16",
                                                                                                     "bf16",
                                                                                                     "fp16"};
  static const struct {
    const char *name;
    int bytes;
  } formats[] = {{"fp32", 4}, {"fp32", 4}, {"fp16", 2}, {"e8m0", 1}};
  arrangement a = (arrangement)draft_below(d, 3);
  int format = draft_below(d, draft_one_in(d, 2) ? 4 : 3), tail = random_tail(d), k_group = 0, v_group = 0;
  d->k_dtype = DRAFT_WORD(d, bytes);
  d->v_dtype = d->v_in_k || !draft_one_in(d, 4) ? d->k_dtype : DRAFT_WORD(d, bytes);
  if (format == 3 || draft_one_in(d, 3)) { /* e8m0 is for groups alone */
    k_group = draft_common_divisor(d->qk - tail, 16 << draft_below(d, 4));
    v_group = draft_common_divisor(d->v, 16 << draft_below(d, 4));
  }
  bool scaled = !(tail && draft_one_in(d, 4));
  record k = random_record(d, a, d->qk, tail, k_group, scaled ? formats[format].bytes : 0);
  record v = random_record(d, (arrangement)draft_below(d, 3), d->v, 0, v_group, k.scale_bytes);
  text_addf(out, "kv: {dtype: {k: %s, v: %s}, page: %d, strides: %s,\n  k: ", d->k_dtype, d->v_dtype, d->page,
            draft_one_in(d, 4) ? "packed" : "free");
  write_codes_layout(d, &k, out);
  text_add(out, ",\n  v: ");
  if (d->v_in_k)
    text_add(out, "k");
  else
    write_codes_layout(d, &v, out);
  if (tail) {
    text_addf(out, ",\n  tail: {channels: %d, dtype: %s, at: %d, layout: ", tail, DRAFT_WORD(d, tails),
              k.tail_at);
    write_part_layout(d, &k, tail, 2, true, out);
    text_add(out, "}");
  }
  text_add(out, "}\n");
  write_scale(d, &k, &v, formats[format].name, k_group, v_group, out);
}
