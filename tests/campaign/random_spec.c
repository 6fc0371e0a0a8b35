#include "random_spec.h"
#include "random_draft.h"
#include <stdio.h>
#include <string.h>

int draft_below(draft *d, int limit) {
  return (int)random_below(d->random, limit);
}

bool draft_one_in(draft *d, int n) {
  return draft_below(d, n) == 0;
}

static int random_page(draft *d) {
  static const int real[] = {1, 16, 16, 16, 32, 64, 128, 256, 528, 544, 784, 1024, 1056, 1152, 1568, 2048};
  return draft_one_in(d, 4) ? 1 + draft_below(d, 300) : DRAFT_WORD(d, real);
}

static int random_head_dim(draft *d) {
  static const int real[] = {64, 128, 128, 192, 256, 96, 112, 80};
  if (draft_one_in(d, 40)) return 1 + draft_below(d, 600);
  return draft_one_in(d, 4) ? 8 * (1 + draft_below(d, 32)) : DRAFT_WORD(d, real);
}

/* The largest page a spec's rows may have without the oracle taking seconds. */
static void random_heads(draft *d) {
  static const int heads[] = {1, 2, 4, 5, 6, 7, 8, 8, 10, 12, 16};
  d->heads_per_kv = draft_one_in(d, 8) ? 1 + draft_below(d, 64) : DRAFT_WORD(d, heads);
  d->rows = draft_one_in(d, 4) ? 1 + draft_below(d, 8) : 1;
  if (d->page > 256 && d->rows > 2) d->rows = 2;
  if (d->page > 256 && d->heads_per_kv > 16) d->heads_per_kv = 16;
}

/* A divisor of n, neither 1 nor n where there is another; 1 when n is prime. */
static int random_divisor(draft *d, int n) {
  int divisors[64], count = 0;
  for (int i = 2; i < n && count < 64; i++)
    if (n % i == 0) divisors[count++] = i;
  return count ? divisors[draft_below(d, count)] : 1;
}

/* The digits of an axis, outermost first: at most three. */
static int random_digits(draft *d, char letter, int size, char out[3][32]) {
  int inner = draft_one_in(d, 2) ? random_divisor(d, size) : 1;
  if (inner == 1) {
    snprintf(out[0], 32, "%c", letter);
    return 1;
  }
  int finest = draft_one_in(d, 4) ? random_divisor(d, inner) : 1;
  snprintf(out[0], 32, "%c/%d", letter, inner);
  if (finest == 1) {
    snprintf(out[1], 32, "%c%%%d", letter, inner);
    return 2;
  }
  snprintf(out[1], 32, "%c%%%d/%d", letter, inner, finest);
  snprintf(out[2], 32, "%c%%%d", letter, finest);
  return 3;
}

/* "[b, h, d/16, s, d%16]": any order, but b outside s and d. `axes` of "bhsd"; sizes of s and d. */
static void random_layout(draft *d, const char *axes, int page, int channels, text *out) {
  char items[8][32];
  int count = 0;
  for (const char *a = axes; *a; a++) {
    if (*a == 'b' || *a == 'h') continue;
    count += random_digits(d, *a, *a == 's' ? page : channels, &items[count]);
  }
  for (int i = count - 1; i > 0; i--) {
    int j = draft_below(d, i + 1);
    char kept[32];
    memcpy(kept, items[i], sizeof kept);
    memcpy(items[i], items[j], sizeof kept);
    memcpy(items[j], kept, sizeof kept);
  }
  bool has_b = strchr(axes, 'b') != NULL, has_h = strchr(axes, 'h') != NULL;
  /* h mostly where people have it: beside b. */
  int h_at = !has_h ? -1 : draft_one_in(d, 3) ? draft_below(d, count + 1) : 0;
  bool h_first = has_h && has_b && draft_one_in(d, 8);
  const char *separator = "";
  text_add(out, "[");
  if (h_first) text_add(out, "h, ");
  if (has_b) {
    text_add(out, "b");
    separator = ", ";
  }
  for (int i = 0; i <= count; i++) {
    if (i == h_at && !h_first) {
      text_addf(out, "%sh", separator);
      separator = ", ";
    }
    if (i == count) break;
    text_addf(out, "%s%s", separator, items[i]);
    separator = ", ";
  }
  text_add(out, "]");
}

static bool is_byte(const char *format) {
  return format[0] == 'i' || strncmp(format, "fp8", 3) == 0;
}

static void random_cache(draft *d, text *out) {
  static const char *const dtypes[] = {"bf16",     "fp16", "fp8_e4m3",   "fp8_e4m3",    "fp8_e4m3",
                                       "fp8_e5m2", "int8", "fp8_e4m3fn", "fp8_e4m3fnuz"};
  d->k_dtype = d->v_dtype = DRAFT_WORD(d, dtypes);
  if (draft_one_in(d, 5) && !d->v_in_k) d->v_dtype = DRAFT_WORD(d, dtypes);
  text_addf(out, "kv: {dtype: {k: %s, v: %s}, page: %d, strides: %s,\n  k: ", d->k_dtype, d->v_dtype, d->page,
            draft_one_in(d, 4) ? "packed" : "free");
  const char *axes = d->one_head ? "bsd" : "bhsd";
  random_layout(d, axes, d->page, d->qk, out);
  text_add(out, ",\n  v: ");
  if (d->v_in_k)
    text_add(out, "k");
  else
    random_layout(d, axes, d->page, d->v, out);
  text_add(out, "}\n");
}

int draft_common_divisor(int a, int b) {
  return b ? draft_common_divisor(b, a % b) : a;
}

void draft_writer(draft *d, const char *scale_dtype, text *out) {
  static const char *const plain[] = {"{zero_row: 0}", "{amax_floor: 1e-6, zero_row: floor}",
                                      "{zero_row: 1.0, qmax: 100}", "{amax_floor: 1e-5, zero_row: 0.5}",
                                      "{scale_floor: 1e-2, zero_row: floor}"};
  /* e8m0 holds powers of two. */
  static const char *const powers[] = {"{zero_row: 1.0}", "{zero_row: 0.5, qmax: 64}"};
  if (draft_one_in(d, 2)) return;
  text_addf(out, ", writer: %s",
            strcmp(scale_dtype, "e8m0") == 0 ? DRAFT_WORD(d, powers) : DRAFT_WORD(d, plain));
}

typedef struct scale_kind {
  const char *name, *axes, *one_head; /* axes; those without h, NULL: not without h */
  bool writes;
} scale_kind;

static void write_scale_layouts(draft *d, const scale_kind *kind, int k_group, int v_group, text *out) {
  const char *axes = d->one_head ? kind->one_head : kind->axes;
  if (!axes[0] || draft_one_in(d, 3)) return;
  text_add(out, ",\n  k: ");
  random_layout(d, axes, d->page, d->qk / k_group, out);
  if (d->v_in_k) return;
  text_add(out, ", v: ");
  random_layout(d, axes, d->page, d->v / v_group, out);
}

static void random_scale(draft *d, text *out) {
  static const scale_kind kinds[] = {{"tensor", "", "", false},         {"head", "h", NULL, false},
                                     {"page_head", "bh", "b", false},   {"token_head", "bhs", "bs", true},
                                     {"token_head", "bhs", "bs", true}, {"token_head", "bhs", "bs", true},
                                     {"token", "bs", "bs", true},       {"group", "bhsd", "bsd", true}};
  if (!is_byte(d->k_dtype) || !is_byte(d->v_dtype) || draft_one_in(d, 8)) return;
  const scale_kind *kind = &DRAFT_WORD(d, kinds);
  if (d->one_head && !kind->one_head) kind = &kinds[0];
  bool group = strcmp(kind->name, "group") == 0, one = kind == &kinds[0];
  static const char *const dtypes[] = {"fp32", "fp32", "fp16"}, *const group_dtypes[] = {"fp32", "fp16",
                                                                                         "e8m0"};
  const char *format = group ? DRAFT_WORD(d, group_dtypes) : DRAFT_WORD(d, dtypes);
  text_addf(out, "scale: {granularity: %s, dtype: %s", kind->name, format);
  if (one && strcmp(format, "fp32") == 0 && draft_one_in(d, 2)) text_add(out, ", source: argument");
  int k_group = 1, v_group = 1;
  if (group) {
    k_group = draft_common_divisor(d->qk, 16 << draft_below(d, 4));
    v_group = draft_one_in(d, 4) ? d->v : draft_common_divisor(d->v, 16 << draft_below(d, 4));
    if (d->v_in_k)
      text_addf(out, ", group: %d", k_group);
    else
      text_addf(out, ", group: {k: %d, v: %d}", k_group, v_group);
  }
  write_scale_layouts(d, kind, k_group, v_group, out);
  if (kind->writes) draft_writer(d, format, out);
  text_add(out, "}\n");
}

/* Lists of blocks, and of tokens where pages have one; else pages. */
static void random_select(draft *d, text *out) {
  static const char *const pers[] = {"sequence", "sequence", "kv_head", "row"};
  const char *index = draft_one_in(d, 4) ? "int64" : "int32";
  if (draft_one_in(d, 8))
    text_addf(out, "select: {form: blocks, block: %d, index: %s, per: %s}\n",
              d->page * (1 + draft_below(d, 8)), index, draft_one_in(d, 2) ? "sequence" : "row");
  else if (d->page == 1 && draft_one_in(d, 2))
    text_addf(out, "select: {form: tokens, index: %s, per: %s}\n", index,
              draft_one_in(d, 2) ? "kv_head" : "row");
  else
    text_addf(out, "select: {form: %s, index: %s, per: %s}\n", draft_one_in(d, 3) ? "indptr" : "table", index,
              DRAFT_WORD(d, pers));
}

static void random_rest(draft *d, text *out) {
  static const char *const scales[] = {"argument", "rsqrt_d", "0.0884", "0.05"};
  static const char *const outputs[] = {"bf16", "bf16", "fp16", "fp32"};
  random_select(d, out);
  text_addf(out, "mask: {causal: %s, sinks: %s, window: ", draft_one_in(d, 4) ? "false" : "true",
            draft_one_in(d, 5) ? "per_head" : "none");
  if (draft_one_in(d, 3))
    text_addf(out, "%d}\n", 1 + draft_below(d, draft_one_in(d, 2) ? 20 : 400));
  else
    text_add(out, "none}\n");
  text_addf(out, "logits: {scale: %s, softcap: ", DRAFT_WORD(d, scales));
  if (draft_one_in(d, 5))
    text_addf(out, "%d}\n", 1 + draft_below(d, 50));
  else
    text_add(out, "none}\n");
  text_addf(out, "output: {dtype: %s, lse: %s}\n", DRAFT_WORD(d, outputs),
            draft_one_in(d, 2) ? "true" : "false");
}

/* V as the first channels of K: a latent, often as wide as those of the field. */
static void random_latent(draft *d) {
  static const int more[] = {0, 8, 32, 64, 64, 64};
  d->v_in_k = true;
  if (d->page <= 128 && draft_one_in(d, 3)) d->v = draft_one_in(d, 2) ? 512 : 448;
  d->qk = d->v + DRAFT_WORD(d, more);
}

void random_spec(random_state *r, const char *name, text *out) {
  draft d = {.random = r};
  d.page = random_page(&d);
  d.qk = d.v = random_head_dim(&d);
  if (draft_one_in(&d, 4)) d.v = random_head_dim(&d);
  random_heads(&d);
  if (draft_one_in(&d, 8)) random_latent(&d);
  d.one_head = draft_one_in(&d, d.v_in_k ? 2 : 16);
  text_addf(out, "heddle: 1\nname: %s\nkernels: [write, decode]\n", name);
  text_addf(out, "query: {dtype: %s, heads_per_kv: %d, rows: %d}\nhead_dim: {qk: %d, v: %d}\n",
            draft_one_in(&d, 3) ? "fp16" : "bf16", d.heads_per_kv, d.rows, d.qk, d.v);
  if (draft_one_in(&d, d.v_in_k ? 2 : 6)) {
    random_records(&d, out);
  } else {
    random_cache(&d, out);
    random_scale(&d, out);
  }
  random_rest(&d, out);
}
