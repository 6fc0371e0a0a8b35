/* Claims about launch descriptors: sizes, argument layout, and a JSON form that comes back whole or not at
 * all. */
#include "../../generator/descriptor.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static argument tensor_argument(tensor_name t) {
  return (argument){ARGUMENT_TENSOR, (int)t};
}

static argument dim_argument(dim d) {
  return (argument){ARGUMENT_DIM, (int)d};
}

/* A decode of two kernels with every kind of argument. */
static descriptor example(void) {
  descriptor d;
  memset(&d, 0, sizeof d);
  strcpy(d.operation, "decode");
  strcpy(d.target, "gfx950");
  strcpy(d.variant, "w4");
  memset(d.contract_key, 'a', 64);
  d.tile_tokens = 128;
  d.line_parts = 2;
  d.lists = (extent){4, 1, 3, {DIM_LIST_WIDTH, DIM_SEQS, DIM_KV_HEADS}};
  d.workspace = (extent){520, 1, 4, {DIM_SEQS, DIM_ROWS, DIM_KV_HEADS, DIM_SPLITS}};
  d.kernel_count = 2;
  kernel_descriptor *k = &d.kernels[0];
  strcpy(k->symbol, "heddle_decode");
  k->grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  k->grid[2] = (extent){1, 1, 2, {DIM_SEQS, DIM_ROWS}};
  k->block = 256;
  k->lds_bytes = 32768;
  const argument arguments[] = {tensor_argument(TENSOR_Q),    dim_argument(DIM_SEQS),
                                dim_argument(DIM_K_STRIDE_B), {ARGUMENT_NUMBER, NUMBER_LOGITS_SCALE},
                                tensor_argument(TENSOR_OUT),  dim_argument(DIM_SPLITS)};
  k->argument_count = 6;
  memcpy(k->arguments, arguments, sizeof arguments);
  k = &d.kernels[1];
  strcpy(k->symbol, "heddle_merge");
  k->grid[0] = (extent){16, 4, 1, {DIM_SEQS}};
  k->grid[1] = k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = 128;
  k->only_when_split = true;
  k->waits_itself = true;
  k->argument_count = 1;
  k->arguments[0] = tensor_argument(TENSOR_WORKSPACE);
  return d;
}

static char *written(const descriptor *d) {
  text t;
  text_init(&t);
  descriptor_write(d, &t);
  char *json = text_take(&t);
  cr_assert_not_null(json);
  return json;
}

/* Parsed from an allocation of exactly that size, so that a memory checker sees a read past the end. */
static hd_status parse_exact(const char *json, size_t length, descriptor *out) {
  char *copy = malloc(length == 0 ? 1 : length);
  cr_assert_not_null(copy);
  memcpy(copy, json, length);
  const hd_status status = descriptor_parse(copy, length, out);
  free(copy);
  return status;
}

static hd_status parse_replaced(const char *from, const char *to) {
  const descriptor d = example();
  char *json = written(&d);
  const char *place = strstr(json, from);
  cr_assert_not_null(place, "%s", from);
  text t;
  text_init(&t);
  text_add_bytes(&t, json, (size_t)(place - json));
  text_add(&t, to);
  text_add(&t, place + strlen(from));
  descriptor out;
  const hd_status status = parse_exact(text_string(&t), t.length, &out);
  text_finish(&t);
  free(json);
  return status;
}

Test(descriptor, extents_round_up) {
  int64_t dims[DIM_COUNT] = {0};
  dims[DIM_SEQS] = 5;
  dims[DIM_ROWS] = 3;
  const extent exact = {4, 2, 2, {DIM_SEQS, DIM_ROWS}}, up = {1, 4, 2, {DIM_SEQS, DIM_ROWS}},
               constant = {7, 1, 0, {0}};
  const extent zero = {0};
  cr_expect_eq(extent_value(&exact, dims), 30);
  cr_expect_eq(extent_value(&up, dims), 4);
  cr_expect_eq(extent_value(&constant, dims), 7);
  cr_expect_eq(extent_value(&zero, dims), 0);
}

Test(descriptor, extents_neither_overflow_nor_go_negative) {
  int64_t dims[DIM_COUNT] = {0};
  dims[DIM_SEQS] = INT64_MAX / 2;
  dims[DIM_ROWS] = 3;
  dims[DIM_PAGES] = -1;
  const extent large = {1, 16, 2, {DIM_SEQS, DIM_ROWS}}, negative = {1, 1, 2, {DIM_ROWS, DIM_PAGES}};
  const extent nothing = {8, 1, 3, {DIM_SEQS, DIM_ROWS, DIM_TOKENS}};
  cr_expect_eq(extent_value(&large, dims), INT64_MAX);
  cr_expect_eq(extent_value(&negative, dims), 0);
  cr_expect_eq(extent_value(&nothing, dims), 0);
}

Test(descriptor, partial_results_lie_behind_the_lists) {
  descriptor d = example();
  int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_ROWS] = 1, [DIM_KV_HEADS] = 2, [DIM_LIST_WIDTH] = 13};
  dims[DIM_SPLITS] = 1;
  cr_expect_eq(descriptor_lists_bytes(&d, dims), 512, "312 bytes, then whole 256");
  cr_expect_eq(descriptor_workspace_bytes(&d, dims), 512);
  dims[DIM_SPLITS] = 4;
  cr_expect_eq(descriptor_workspace_bytes(&d, dims), 512 + 520 * 3 * 2 * 4);
  dims[DIM_LIST_WIDTH] = INT64_MAX / 2;
  cr_expect_eq(descriptor_workspace_bytes(&d, dims), INT64_MAX);
  d.lists = (extent){0};
  cr_expect_eq(descriptor_workspace_bytes(&d, dims), 520 * 3 * 2 * 4);
}

Test(descriptor, arguments_lie_as_in_a_c_struct) {
  struct arguments {
    void *q;
    int32_t seqs;
    int64_t k_stride_b;
    float logits_scale;
    void *out;
    int32_t splits;
  };
  const descriptor d = example();
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  const size_t end = kernel_arguments_layout(&d.kernels[0], offsets);
  cr_expect_eq(offsets[0], offsetof(struct arguments, q));
  cr_expect_eq(offsets[1], offsetof(struct arguments, seqs));
  cr_expect_eq(offsets[2], offsetof(struct arguments, k_stride_b));
  cr_expect_eq(offsets[3], offsetof(struct arguments, logits_scale));
  cr_expect_eq(offsets[4], offsetof(struct arguments, out));
  cr_expect_eq(offsets[5], offsetof(struct arguments, splits));
  cr_expect_eq(end, 44);
  cr_expect_eq(kernel_arguments_layout(&d.kernels[0], NULL), 44);
}

Test(descriptor, strides_are_wide_and_other_dims_are_not) {
  for (int i = 0; i < DIM_COUNT; i++) {
    const argument a = dim_argument((dim)i);
    cr_expect_eq(argument_bytes(a), strstr(dim_name((dim)i), "stride") != NULL ? 8 : 4, "%s",
                 argument_name(a));
  }
}

Test(descriptor, every_tensor_name_parses_to_itself) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name t = TENSOR_COUNT;
    cr_assert(tensor_name_parse(tensor_name_text((tensor_name)i), &t));
    cr_expect_eq((int)t, i);
  }
  tensor_name untouched = TENSOR_LSE;
  cr_expect_not(tensor_name_parse("queries", &untouched));
  cr_expect_eq(untouched, TENSOR_LSE);
}

Test(descriptor, comes_back_from_json_whole) {
  const descriptor d = example();
  char *json = written(&d);
  descriptor back;
  cr_assert_eq(parse_exact(json, strlen(json), &back), HD_OK, "%s", json);
  cr_expect_str_eq(back.operation, "decode");
  cr_expect_eq(back.tile_tokens, 128);
  cr_expect_eq(back.line_parts, 2);
  cr_expect_eq(back.workspace.dim_count, 4);
  cr_expect_eq(back.lists.dims[0], DIM_LIST_WIDTH);
  cr_expect_eq(back.kernels[1].only_when_split, true);
  cr_expect_eq(back.kernels[1].waits_itself, true);
  cr_expect_eq(back.kernels[0].arguments[3].kind, ARGUMENT_NUMBER);
  cr_expect(memcmp(&back.kernels[0].arguments, &d.kernels[0].arguments, sizeof d.kernels[0].arguments) == 0);
  char *again = written(&back);
  cr_expect_str_eq(again, json);
  free(again);
  free(json);
}

Test(descriptor, the_json_reads_as_intended) {
  const descriptor d = example();
  char *json = written(&d);
  cr_expect_not_null(strstr(json, "{\"name\": \"k_stride_b\", \"type\": \"int64\", \"offset\": 16}"), "%s",
                     json);
  cr_expect_not_null(strstr(json, "{\"multiplier\": 1, \"divisor\": 1, \"dims\": [\"seqs\", \"rows\"]}"),
                     "%s", json);
  free(json);
}

/* A name says the type of an argument. */
Test(descriptor, every_number_survives_as_an_argument_and_has_a_name_of_its_own) {
  descriptor d = example();
  kernel_descriptor *k = &d.kernels[0];
  k->argument_count = 0;
  for (int i = 0; i < NUMBER_COUNT; i++) {
    const argument a = {ARGUMENT_NUMBER, i};
    tensor_name t;
    k->arguments[k->argument_count++] = a;
    cr_expect_eq(argument_bytes(a), 4u);
    cr_expect_not(tensor_name_parse(argument_name(a), &t), "%s", argument_name(a));
    for (int n = 0; n < DIM_COUNT; n++)
      cr_expect_str_neq(argument_name(a), dim_name((dim)n));
  }
  char *json = written(&d);
  descriptor back;
  cr_assert_eq(parse_exact(json, strlen(json), &back), HD_OK);
  cr_expect(memcmp(back.kernels[0].arguments, k->arguments, NUMBER_COUNT * sizeof(argument)) == 0);
  cr_expect_not_null(strstr(json, "{\"name\": \"v_scale_value\", \"type\": \"fp32\", \"offset\": 8}"), "%s",
                     json);
  free(json);
}

Test(descriptor, every_tensor_and_dim_survives_as_an_argument) {
  descriptor d = example();
  kernel_descriptor *k = &d.kernels[0];
  k->argument_count = 0;
  cr_assert_leq((int)TENSOR_COUNT, (int)DESCRIPTOR_MAX_ARGUMENTS);
  cr_assert_leq((int)DIM_COUNT, (int)DESCRIPTOR_MAX_ARGUMENTS);
  for (int i = 0; i < TENSOR_COUNT; i++)
    k->arguments[k->argument_count++] = tensor_argument((tensor_name)i);
  kernel_descriptor *sizes = &d.kernels[1];
  sizes->argument_count = 0;
  for (int i = 0; i < DIM_COUNT; i++)
    sizes->arguments[sizes->argument_count++] = dim_argument((dim)i);
  char *json = written(&d);
  descriptor back;
  cr_assert_eq(parse_exact(json, strlen(json), &back), HD_OK);
  cr_expect(memcmp(back.kernels[0].arguments, k->arguments, sizeof k->arguments) == 0);
  cr_expect(memcmp(back.kernels[1].arguments, sizes->arguments, sizeof k->arguments) == 0);
  free(json);
}

Test(descriptor, no_kernels_and_no_arguments_are_lists_too) {
  descriptor d = example(), back;
  d.kernels[0].argument_count = 0;
  char *json = written(&d);
  cr_expect_eq(parse_exact(json, strlen(json), &back), HD_OK);
  free(json);
  d.kernel_count = 0;
  json = written(&d);
  cr_expect_eq(parse_exact(json, strlen(json), &back), HD_OK);
  free(json);
}

Test(descriptor, white_space_does_not_matter) {
  const descriptor d = example();
  char *json = written(&d);
  size_t kept = 0;
  for (const char *c = json; *c != '\0'; c++) {
    if (*c != ' ' && *c != '\n') json[kept++] = *c;
  }
  descriptor back;
  cr_expect_eq(parse_exact(json, kept, &back), HD_OK);
  free(json);
}

Test(descriptor, a_truncated_one_is_refused_at_every_byte) {
  const descriptor d = example();
  char *json = written(&d);
  const size_t length = strlen(json) - 1; /* the last byte is a line feed */
  descriptor untouched = d;
  for (size_t i = 0; i < length; i++)
    cr_assert_eq(parse_exact(json, i, &untouched), HD_INVALID, "%zu bytes", i);
  cr_expect(memcmp(&untouched, &d, sizeof d) == 0);
  cr_expect_eq(parse_exact(json, length, &untouched), HD_OK);
  free(json);
}

Test(descriptor, what_does_not_belong_is_refused) {
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"\"descriptor\": 3", "\"descriptor\": 1"},
      {"\"operation\"", "\"Operation\""},
      {"\"target\": \"gfx950\",", ""},
      {"\"target\": \"gfx950\"", "\"target\": \"gfx950-and-too-long\""},
      {"\"target\": \"gfx950\"", "\"target\": \"gfx\\u0039\""},
      {"\"target\": \"gfx950\"", "\"target\": \"gfx\x80\""},
      {"\"target\": \"gfx950\"", "\"target\": null"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 0128"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": -1"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 1e2"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 128.0"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 2147483648"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 99999999999999999999"},
      {"\"tile_tokens\": 128", "\"tile_tokens\": "},
      {"\"tile_tokens\": 128", "\"tile_tokens\": 128, \"extra\": 1"},
      {"\"multiplier\": 520", "\"multiplier\": 9223372036854775808"},
      {"\"divisor\": 4", "\"divisor\": 0"},
      {"\"seqs\", \"rows\", \"kv_heads\", \"splits\"",
       "\"seqs\", \"rows\", \"kv_heads\", \"splits\", \"pages\""},
      {"\"seqs\", \"rows\", \"kv_heads\"", "\"seqs\", \"rows\", \"q\""},
      {"\"seqs\", \"rows\"", "\"seqs\" \"rows\""},
      {"\"seqs\", \"rows\"", "\"seqs\",, \"rows\""},
      {"\"splits\"]", "\"splits\",]"},
      {"\"only_when_split\": true", "\"only_when_split\": 1"},
      {"\"only_when_split\": true", "\"only_when_split\": tru"},
      {"\"name\": \"q\"", "\"name\": \"queries\""},
      {"\"type\": \"int64\"", "\"type\": \"int32\""},
      {"\"offset\": 16", "\"offset\": 12"},
      {"\"argument_bytes\": 44", "\"argument_bytes\": 48"},
      {"]\n}\n", "]\n}\n}"},
      {"]\n}\n", "],\n}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    cr_expect_eq(parse_replaced(cases[i].from, cases[i].to), HD_INVALID, "%s -> %s", cases[i].from,
                 cases[i].to);
}

Test(descriptor, too_many_kernels_or_arguments_are_refused) {
  text t;
  text_init(&t);
  for (int i = 0; i < 40; i++)
    text_addf(&t, "{\"name\": \"q\", \"type\": \"pointer\", \"offset\": %d}, ", 8 * i);
  text_add(&t, "{\"name\": \"q\"");
  cr_expect_eq(parse_replaced("{\"name\": \"q\"", text_string(&t)), HD_INVALID);
  text_finish(&t);

  const descriptor d = example();
  char *json = written(&d);
  const char *first = strstr(json, "    {\n"), *second = strstr(first + 1, "    {\n");
  text_init(&t);
  text_add_bytes(&t, json, (size_t)(first - json));
  for (int i = 0; i < 5; i++)
    text_add_bytes(&t, first, (size_t)(second - first));
  text_add(&t, second);
  descriptor out;
  cr_expect_eq(parse_exact(text_string(&t), t.length, &out), HD_INVALID);
  text_finish(&t);
  free(json);
}

Test(descriptor, any_byte_may_change_and_what_is_accepted_still_reads_back) {
  const descriptor d = example();
  char *json = written(&d);
  const size_t length = strlen(json);
  static const char replacements[] = {'\0', '"', '\\', '0', '9', '-',    '{',   '}',
                                      '[',  ']', ',',  'x', ' ', '\x7f', '\xff'};
  for (size_t i = 0; i < length; i++) {
    const char kept = json[i];
    for (size_t j = 0; j < sizeof replacements; j++) {
      json[i] = replacements[j];
      descriptor out;
      if (parse_exact(json, length, &out) != HD_OK) continue;
      char *again = written(&out);
      descriptor twice;
      cr_assert_eq(parse_exact(again, strlen(again), &twice), HD_OK);
      free(again);
    }
    json[i] = kept;
  }
  free(json);
}

Test(descriptor, random_bytes_and_deep_nesting_are_refused) {
  char bytes[4096];
  descriptor out;
  uint32_t state = 7;
  for (int round = 0; round < 2000; round++) {
    for (size_t i = 0; i < 64; i++) {
      state = state * 1664525u + 1013904223u;
      bytes[i] = (char)(state >> 24);
    }
    cr_assert_eq(parse_exact(bytes, 64, &out), HD_INVALID);
  }
  memset(bytes, '[', sizeof bytes);
  cr_expect_eq(parse_exact(bytes, sizeof bytes, &out), HD_INVALID);
  memset(bytes, '{', sizeof bytes);
  cr_expect_eq(parse_exact(bytes, sizeof bytes, &out), HD_INVALID);
  cr_expect_eq(parse_exact("", 0, &out), HD_INVALID);
}
