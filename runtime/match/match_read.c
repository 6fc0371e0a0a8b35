#include "match.h"
#include "../../generator/dtype_words.h"
#include "../../generator/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A description being read. */
typedef struct reading {
  json_reader json;
  match_description *out;
  tensor *tensor; /* the one being read */
  char axes[LAYOUT_MAX_FACTORS][24];
  int axis_count, stride_count;
  char expected[512]; /* what json.expected may point at */
} reading;

typedef struct member {
  const char *key;
  void (*read)(reading *r);
} member;

/* Fails at `start` with what was expected there, and what was probably meant. Takes `expected`. */
static void fail_at(reading *r, const char *start, text *expected, const guess *near) {
  if (near->count > 0) {
    text_add(expected, "; did you mean ");
    guess_write(near, "", "", expected);
    text_add(expected, "?");
  }
  snprintf(r->expected, sizeof r->expected, "%s", text_string(expected));
  text_finish(expected);
  r->json.at = start;
  json_fail(&r->json, r->expected);
}

static void fail_key(reading *r, const char *start, const char *key, const member *members, size_t count) {
  text expected;
  text_init(&expected);
  guess near = {.found = key};
  for (size_t i = 0; i < count; i++) {
    text_addf(&expected, "%s%s", i == 0 ? "a known key: " : ", ", members[i].key);
    guess_offer_near(&near, members[i].key, 0);
  }
  fail_at(r, start, &expected, &near);
}

/* An object of known members in any order, each at most once. */
static void read_object(reading *r, const member *members, size_t count) {
  unsigned seen = 0;
  json_expect(&r->json, '{');
  for (int n = 0; json_next(&r->json, n, '}'); n++) {
    char key[32];
    const char *start = r->json.at;
    size_t i = 0;
    json_read_key(&r->json, key, sizeof key);
    while (i < count && strcmp(members[i].key, key) != 0)
      i++;
    if (!json_failed(&r->json) && i == count) fail_key(r, start, key, members, count);
    if (!json_failed(&r->json) && seen & 1u << i) {
      r->json.at = start;
      json_fail(&r->json, "each key once");
    }
    if (json_failed(&r->json)) return;
    seen |= 1u << i;
    members[i].read(r);
  }
}

static int64_t read_count(reading *r, int64_t most) {
  return json_read_integer(&r->json, 0, most);
}

static void read_dtype(reading *r) {
  char name[32];
  const char *start = r->json.at;
  json_read_string(&r->json, name, sizeof name);
  if (json_failed(&r->json) || dtype_parse(name, &r->tensor->dtype)) return;
  text expected;
  text_init(&expected);
  text_add(&expected, "a number format: ");
  dtype_list(0, &expected);
  const guess near = dtype_guess(name, 0);
  fail_at(r, start, &expected, &near);
}

static int read_numbers(reading *r, int64_t least, int64_t *out) {
  int count = 0;
  json_expect(&r->json, '[');
  while (json_next(&r->json, count, ']')) {
    if (count == TENSOR_MAX_RANK) {
      json_fail(&r->json, "16 dimensions at most");
      return 0;
    }
    out[count++] = json_read_integer(&r->json, least, INT64_MAX);
  }
  return count;
}

static void read_shape(reading *r) {
  r->tensor->rank = read_numbers(r, 0, r->tensor->shape);
}

static void read_strides(reading *r) {
  r->tensor->strided = true;
  r->stride_count = read_numbers(r, INT64_MIN, r->tensor->strides);
}

static void read_align(reading *r) {
  int64_t bytes = json_read_integer(&r->json, 1, (int64_t)1 << 32);
  if (!json_failed(&r->json) && (bytes & (bytes - 1)) != 0) json_fail(&r->json, "a power of two");
  r->tensor->data = (uint64_t)bytes; /* an address with this alignment and no more */
}

static void read_axes(reading *r) {
  json_expect(&r->json, '[');
  while (json_next(&r->json, r->axis_count, ']')) {
    if (r->axis_count == LAYOUT_MAX_FACTORS) {
      json_fail(&r->json, "16 dimensions at most");
      return;
    }
    json_read_string(&r->json, r->axes[r->axis_count++], sizeof r->axes[0]);
  }
}

/* The axes as a layout: the sizes of s and d are what the shape makes of their digits. */
static bool parse_axes(reading *r, layout *out) {
  const char *items[LAYOUT_MAX_FACTORS];
  int64_t page = 1, head_dim = 1;
  unsigned axes = 0;
  if (r->axis_count != r->tensor->rank) return false;
  for (int i = 0; i < r->axis_count; i++) {
    static const char letters[] = "bhsd";
    const char *letter = r->axes[i][0] ? strchr(letters, r->axes[i][0]) : NULL;
    items[i] = r->axes[i];
    if (!letter || strchr(r->axes[i], '+')) return false;
    axes |= 1u << (letter - letters);
    int64_t *size = *letter == 's' ? &page : *letter == 'd' ? &head_dim : NULL;
    if (size && __builtin_mul_overflow(*size, r->tensor->shape[i], size)) return false;
  }
  layout_error ignored;
  return page > 0 && head_dim > 0 && layout_parse(items, r->axis_count, axes, page, head_dim, out, &ignored);
}

static void read_tensor(reading *r, tensor_name name) {
  static const member members[] = {{"dtype", read_dtype},
                                   {"shape", read_shape},
                                   {"strides", read_strides},
                                   {"align", read_align},
                                   {"axes", read_axes}};
  tensors *all = &r->out->request.tensors;
  r->tensor = &all->by_name[name];
  *r->tensor = (tensor){.dtype = DTYPE_COUNT, .rank = -1, .data = 16};
  all->present[name] = true;
  r->axis_count = r->stride_count = 0;
  const char *start = r->json.at;
  read_object(r, members, sizeof members / sizeof members[0]);
  if (json_failed(&r->json)) return;
  const char *expected = NULL;
  if (r->tensor->dtype == DTYPE_COUNT || r->tensor->rank < 0)
    expected = "a tensor with dtype and shape";
  else if (r->tensor->strided && r->stride_count != r->tensor->rank)
    expected = "as many strides as dimensions";
  else if (r->axis_count > 0 && !parse_axes(r, &r->out->axes[name]))
    expected = "axes that name each dimension's digit of b, h, s, d";
  if (r->axis_count > 0) r->tensor->axes = &r->out->axes[name];
  if (!expected) return;
  r->json.at = start;
  json_fail(&r->json, expected);
}

static void fail_tensor(reading *r, const char *start, const char *key) {
  text expected;
  text_init(&expected);
  guess near = {.found = key};
  for (int i = 0; i < TENSOR_LISTS; i++) {
    const char *name = tensor_name_text((tensor_name)i);
    text_addf(&expected, "%s%s", i == 0 ? "a tensor that heddle knows: " : ", ", name);
    guess_offer_near(&near, name, 0);
  }
  text_add(&expected, "; a cache is k_cache and v_cache, two views if it is one buffer");
  fail_at(r, start, &expected, &near);
}

static void read_tensors(reading *r) {
  json_expect(&r->json, '{');
  for (int n = 0; json_next(&r->json, n, '}'); n++) {
    char key[32];
    tensor_name name;
    const char *start = r->json.at;
    json_read_key(&r->json, key, sizeof key);
    bool known = tensor_name_parse(key, &name);
    if (!json_failed(&r->json) && !known) fail_tensor(r, start, key);
    if (!json_failed(&r->json) && r->out->request.tensors.present[name]) {
      r->json.at = start;
      json_fail(&r->json, "each tensor once");
    }
    if (json_failed(&r->json)) return;
    read_tensor(r, name);
  }
}

static void read_operation(reading *r) {
  char name[16];
  json_read_string(&r->json, name, sizeof name);
  if (!json_failed(&r->json) && !operation_parse(name, &r->out->request.operation))
    json_fail(&r->json, "write or decode");
}

static void read_rows(reading *r) {
  r->out->request.rows = read_count(r, INT32_MAX);
}
static void read_longest(reading *r) {
  r->out->request.longest = read_count(r, INT64_MAX);
}
static void read_query_heads(reading *r) {
  r->out->request.query_heads = read_count(r, INT32_MAX);
}
static void read_kv_heads(reading *r) {
  r->out->request.kv_heads = read_count(r, INT32_MAX);
}
static void read_lse(reading *r) {
  r->out->request.lse = json_read_bool(&r->json);
}
static void read_sinks(reading *r) {
  r->out->request.sinks = json_read_bool(&r->json);
}
static void read_causal(reading *r) {
  r->out->request.causal = json_read_bool(&r->json);
}
static void read_prefix(reading *r) {
  r->out->request.prefix = json_read_bool(&r->json);
}
static void read_window(reading *r) {
  r->out->request.window = (int)read_count(r, INT32_MAX);
}
static void read_block(reading *r) {
  r->out->request.block = (int)read_count(r, INT32_MAX);
}
static void read_softcap(reading *r) {
  r->out->request.softcap = json_read_number(&r->json);
}
static void read_logits_scale(reading *r) {
  r->out->request.logits_scale = json_read_number(&r->json);
}
static void read_scale_number(reading *r, scale_number *out) {
  *out = (scale_number){true, (float)json_read_number(&r->json)};
}
static void read_k_scale(reading *r) {
  read_scale_number(r, &r->out->request.tensors.k_scale);
}
static void read_v_scale(reading *r) {
  read_scale_number(r, &r->out->request.tensors.v_scale);
}
static void read_splits(reading *r) {
  r->out->request.splits = (int)read_count(r, INT32_MAX);
}

static void read_incumbent(reading *r) {
  match_description *m = r->out;
  if (json_accept_null(&r->json)) return;
  json_read_string(&r->json, m->incumbent, sizeof m->incumbent);
  m->request.incumbent = m->incumbent;
}

hd_status match_read(const char *json, size_t length, match_description *out, diags *errors) {
  static const member members[] = {
      {"operation", read_operation},
      {"tensors", read_tensors},
      {"rows", read_rows},
      {"longest", read_longest},
      {"query_heads", read_query_heads},
      {"kv_heads", read_kv_heads},
      {"lse", read_lse},
      {"sinks", read_sinks},
      {"causal", read_causal},
      {"prefix", read_prefix},
      {"window", read_window},
      {"block", read_block},
      {"softcap", read_softcap},
      {"logits_scale", read_logits_scale},
      {"k_scale", read_k_scale},
      {"v_scale", read_v_scale},
      {"splits", read_splits},
      {"incumbent", read_incumbent},
  };
  *out = (match_description){.request = {.operation = OPERATION_DECODE, .causal = true}};
  reading r = {.json = json_reader_of(json, length), .out = out};
  read_object(&r, members, sizeof members / sizeof members[0]);
  json_expect_end(&r.json);
  if (!json_failed(&r.json)) return HD_OK;
  int line, column;
  json_place(&r.json, &line, &column);
  diags_addf(errors, DIAG_ERROR, "request.syntax", NULL, line, column, "expected %s", r.json.expected);
  return HD_DECLINED;
}
