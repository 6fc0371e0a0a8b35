#include "records.h"
#include <inttypes.h>

/* One way to lay out a token's bytes. */
typedef struct record_form {
  const char *note;
  int64_t tail;  /* bf16 channels behind the codes; 0: those of keys that values lack */
  int64_t group; /* channels that share a scale */
  int scale_bytes;
  bool apart; /* scales lie behind all tokens of the page, not in each token */
} record_form;

static const record_form forms[] = {
    {"assumed: codes, fp32 scales, then bf16 channels in each token", 0, 128, 4, false},
    {"assumed: codes and bf16 channels of all tokens, then e8m0 scales", 64, 64, 1, true},
};

/* The sizes that follow from a form, in bytes. */
typedef struct record_sizes {
  int64_t coded, tail, groups;
  int64_t token;  /* its share of the page */
  int64_t scales; /* room for a token's */
} record_sizes;

static bool sizes_of(const record_form *f, int64_t qk, int64_t v, record_sizes *out) {
  int64_t tail = f->tail > 0 ? f->tail : qk - v;
  /* A tail of its own channels is read as part of V where V is all of K. */
  if (f->tail > 0 ? qk != v : qk <= v) return false;
  record_sizes s = {.coded = qk - tail, .tail = tail};
  if (s.coded <= 0 || s.coded % f->group != 0) return false;
  s.groups = s.coded / f->group;
  s.scales = f->apart ? (s.groups * f->scale_bytes + 7) / 8 * 8 : s.groups * f->scale_bytes;
  s.token = s.coded + 2 * tail + s.scales;
  *out = s;
  return true;
}

/* [pages, page, token], with a dimension of 1 for the head or not, or [pages, bytes of a page]. 0: neither.
 */
static int64_t page_of(const tensor *t, const record_sizes *s, int64_t page) {
  int64_t bytes = 1;
  if (t->rank < 2 || t->rank > 4 || (t->rank == 4 && t->shape[1] != 1 && t->shape[2] != 1)) return 0;
  for (int i = 1; i < t->rank; i++)
    if (__builtin_mul_overflow(bytes, t->shape[i], &bytes)) return 0;
  int64_t found = bytes / s->token;
  bool fits = found > 0 && bytes % s->token == 0 && (page == 0 || page == found);
  bool whole = t->rank == 2 || t->shape[t->rank - 1] == s->token;
  return fits && whole ? found : 0;
}

static void set_fields(const record_form *f, const record_sizes *s, int64_t page, draft *d) {
  int64_t record = f->apart ? s->coded + 2 * s->tail : s->token; /* bytes from token to token */
  int64_t behind = page * s->scales;
  draft_set(d, FIELD_PAGE, SOURCE_TENSORS, "from k_cache", "%" PRId64, page);
  if (f->apart)
    draft_set(d, FIELD_K, SOURCE_ASSUMED, f->note, "[b, s+%" PRId64 ", d+%" PRId64 "]", behind,
              record - s->coded);
  else
    draft_set(d, FIELD_K, SOURCE_ASSUMED, f->note, "[b, s, d+%" PRId64 "]", record - s->coded);
  draft_set(d, FIELD_V, SOURCE_ASSUMED, "there is no v_cache: V is the first channels of K", "k");
  draft_set(d, FIELD_TAIL, SOURCE_ASSUMED, f->note,
            "{channels: %" PRId64 ", dtype: bf16, at: %" PRId64 ", layout: [b, s, d+%" PRId64 "]}", s->tail,
            s->coded + (f->apart ? 0 : s->scales), (record - 2 * s->tail) / 2);
  draft_set(d, FIELD_GRANULARITY, SOURCE_ASSUMED, f->note, "group");
  draft_set(d, FIELD_GROUP, SOURCE_ASSUMED, f->note, "%" PRId64, f->group);
  draft_set(d, FIELD_SCALE_DTYPE, SOURCE_ASSUMED, f->note, "%s", f->scale_bytes == 4 ? "fp32" : "e8m0");
  int64_t step = f->apart ? s->scales : record;
  draft_set(d, FIELD_SCALE_K, SOURCE_ASSUMED, f->note,
            "{inside: k, at: %" PRId64 ", layout: [b, s, d+%" PRId64 "]}",
            f->apart ? page * record : s->coded, step / f->scale_bytes - s->groups);
}

bool records_infer(const tensor *k_cache, int64_t qk, int64_t v, int64_t page, draft *d) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    record_sizes s;
    if (dtype_bytes(k_cache->dtype) != 1 || !sizes_of(&forms[i], qk, v, &s)) continue;
    int64_t tokens = page_of(k_cache, &s, page);
    if (tokens == 0) continue;
    set_fields(&forms[i], &s, tokens, d);
    return true;
  }
  return false;
}
