/* Claims about scales of the whole tensor that a program holds as numbers: launches, bindings, graphs and
 * matches take them, and nothing takes them for what they aren't. */
#include "fixture.h"
#include <math.h>
#include <stddef.h>

#define SPEC(source)                                                                                         \
  "heddle: 1\n"                                                                                              \
  "name: scales\n"                                                                                           \
  "query: {dtype: bf16, heads_per_kv: 4}\n"                                                                  \
  "head_dim: 64\n"                                                                                           \
  "kv: {dtype: int8, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n"                                          \
  "scale: {granularity: tensor" source "}\n"                                                                 \
  "logits: {scale: rsqrt_d}\n"                                                                               \
  "output: {dtype: fp32}\n"

static const int64_t one[] = {1};
static const float k_number = 0.03125f, v_number = 0.02f;

/* Codes in the caches; `scales`: as tensors, behind the others. */
typedef struct quantised {
  engine e;
  hd_tensor read[READ_COUNT + 2];
} quantised;

static void quantised_open(quantised *q, const char *yaml) {
  engine *e = &q->e;
  *e = (engine){.context = open_context("emu:gfx950"), .contract = parse(yaml)};
  e->decode = prepare(e->context, e->contract, HD_DECODE);
  engine_fill(e);
  engine_workspace(e);
  for (int i = 1; i <= 2; i++) /* bf16's bytes are as good as any */
    e->read[i].dtype = HD_DTYPE_INT8;
  memcpy(q->read, e->read, sizeof e->read);
  q->read[READ_COUNT] =
      tensor_of(HD_TENSOR_K_SCALE, HD_DTYPE_FP32, on_device(e->context, &k_number, sizeof k_number), 1, one);
  q->read[READ_COUNT + 1] =
      tensor_of(HD_TENSOR_V_SCALE, HD_DTYPE_FP32, on_device(e->context, &v_number, sizeof v_number), 1, one);
}

static hd_arguments with_numbers(const quantised *q, const float *k_scale, const float *v_scale) {
  hd_arguments a = engine_arguments(&q->e, 2);
  a.k_scale = k_scale;
  a.v_scale = v_scale;
  return a;
}

static hd_arguments with_tensors(const quantised *q) {
  hd_arguments a = engine_arguments(&q->e, 2);
  a.tensors = q->read;
  a.tensor_count = READ_COUNT + 2;
  return a;
}

static void result(const quantised *q, const hd_arguments *a, float out[OUT_FLOATS]) {
  engine_forget_out(&q->e);
  OK(hd_launch(q->e.decode, a, NULL, why));
  engine_out(&q->e, out);
}

/* Whether every output is `factor` times what it was. */
static bool is_multiple(const float *out, const float *of, float factor) {
  for (int i = 0; i < OUT_FLOATS; i++)
    if (out[i] != factor * of[i]) return false;
  return true;
}

Test(api_scales, numbers_give_what_tensors_of_the_same_values_do) {
  quantised memory, argument;
  float wanted[OUT_FLOATS], out[OUT_FLOATS];
  quantised_open(&memory, SPEC(""));
  quantised_open(&argument, SPEC(", source: argument"));
  const hd_arguments tensors = with_tensors(&memory), numbers = with_numbers(&argument, &k_number, &v_number);
  result(&memory, &tensors, wanted);
  result(&argument, &numbers, out);
  cr_assert_eq(difference(out, wanted), 0.0);
  cr_assert(!isnan(out[0]) && out[0] != 0);
  engine_close(&memory.e);
  engine_close(&argument.e);
}

Test(api_scales, a_missing_number_is_no_scale_of_one) {
  quantised memory, argument;
  quantised_open(&memory, SPEC(""));
  quantised_open(&argument, SPEC(", source: argument"));
  /* Launches that served are no excuse for those that don't. */
  hd_arguments a = with_numbers(&argument, &k_number, &v_number);
  OK(hd_launch(argument.e.decode, &a, NULL, why));
  a = with_tensors(&memory);
  OK(hd_launch(memory.e.decode, &a, NULL, why));
  a = with_numbers(&argument, NULL, &v_number);
  SAYS(HD_DECLINED, "bind.missing", hd_launch(argument.e.decode, &a, NULL, why));
  a = with_numbers(&argument, &k_number, &v_number);
  a.size = offsetof(hd_arguments, k_scale); /* a program from before there were numbers */
  SAYS(HD_DECLINED, "bind.missing", hd_launch(argument.e.decode, &a, NULL, why));
  a = with_tensors(&argument);
  SAYS(HD_DECLINED, "bind.unneeded", hd_launch(argument.e.decode, &a, NULL, why));
  a = with_tensors(&memory);
  a.v_scale = &v_number;
  SAYS(HD_DECLINED, "bind.unneeded", hd_launch(memory.e.decode, &a, NULL, why));
  hd_binding *b = NULL;
  a = with_numbers(&argument, &k_number, NULL);
  SAYS(HD_DECLINED, "bind.missing", hd_bind(argument.e.decode, &a, &b, why));
  engine_close(&memory.e);
  engine_close(&argument.e);
}

/* One binding goes over layers that have scales of their own. */
Test(api_scales, a_binding_takes_other_numbers) {
  quantised memory, argument;
  float first[OUT_FLOATS], out[OUT_FLOATS];
  float k = k_number, v = v_number;
  hd_binding *b = NULL;
  quantised_open(&memory, SPEC(""));
  quantised_open(&argument, SPEC(", source: argument"));
  const hd_arguments a = with_numbers(&argument, &k, &v);
  OK(hd_bind(argument.e.decode, &a, &b, why));
  v = 77; /* read by then */
  OK(hd_binding_launch(b, NULL, why));
  engine_out(&argument.e, first);
  v = 4 * v_number;
  cr_assert_eq(hd_binding_set_scales(b, NULL, &v), HD_OK);
  OK(hd_binding_launch(b, NULL, why));
  engine_out(&argument.e, out);
  cr_assert(is_multiple(out, first, 4));
  v = v_number;
  k = 2 * k_number;
  cr_assert_eq(hd_binding_set_scales(b, &k, &v), HD_OK);
  OK(hd_binding_launch(b, NULL, why));
  engine_out(&argument.e, out);
  cr_assert_gt(difference(out, first), 0.0);
  float again[OUT_FLOATS];
  const hd_arguments doubled = with_numbers(&argument, &k, &v);
  result(&argument, &doubled, again);
  cr_assert_eq(difference(out, again), 0.0);
  hd_binding_destroy(b);
  cr_assert_eq(hd_binding_set_scales(NULL, &k, &v), HD_INVALID);
  const hd_arguments tensors = with_tensors(&memory);
  OK(hd_bind(memory.e.decode, &tensors, &b, why));
  cr_assert_eq(hd_binding_set_scales(b, &k, NULL), HD_INVALID, "its scales lie in memory");
  cr_assert_eq(hd_binding_set_scales(b, NULL, NULL), HD_OK);
  hd_binding_destroy(b);
  engine_close(&memory.e);
  engine_close(&argument.e);
}

/* A scale in memory may change between replays, a number stays as it was captured. */
Test(api_scales, a_graph_keeps_the_numbers_it_was_captured_with) {
  quantised q;
  float first[OUT_FLOATS], out[OUT_FLOATS], k = k_number, v = v_number;
  hd_stream *s = NULL;
  hd_graph *g = NULL;
  quantised_open(&q, SPEC(", source: argument"));
  const hd_arguments a = with_numbers(&q, &k, &v);
  result(&q, &a, first);
  OK(hd_stream_create(q.e.context, &s, why));
  OK(hd_capture_begin(q.e.context, s, why));
  OK(hd_launch(q.e.decode, &a, s, why));
  OK(hd_capture_end(q.e.context, s, &g, why));
  v = 100;
  engine_forget_out(&q.e);
  OK(hd_graph_launch(q.e.context, g, s, why));
  OK(hd_stream_wait(q.e.context, s, why));
  engine_out(&q.e, out);
  cr_assert_eq(difference(out, first), 0.0);
  hd_graph_destroy(q.e.context, g);
  hd_stream_destroy(q.e.context, s);
  engine_close(&q.e);
}

/* The writer quantises with the number, and stores nothing but codes. */
Test(api_scales, the_writer_divides_by_the_number) {
  enum { TOKENS = 3, WIDTH = KV_HEADS * DIM };
  static const int64_t row_shape[] = {TOKENS, KV_HEADS, DIM}, slots[] = {5, -1, 17}, slot_shape[] = {TOKENS};
  quantised q;
  quantised_open(&q, SPEC(", source: argument"));
  hd_kernel *write = prepare(q.e.context, q.e.contract, HD_WRITE);
  uint16_t rows[TOKENS * WIDTH];
  for (int i = 0; i < TOKENS * WIDTH; i++)
    rows[i] = (uint16_t)(i % 2 ? 0x3f80 : 0xc040); /* 1 and -3 */
  hd_tensor t[] = {
      tensor_of(HD_TENSOR_K, HD_DTYPE_BF16, on_device(q.e.context, rows, sizeof rows), 3, row_shape),
      tensor_of(HD_TENSOR_V, HD_DTYPE_BF16, on_device(q.e.context, rows, sizeof rows), 3, row_shape),
      tensor_of(HD_TENSOR_SLOT_MAPPING, HD_DTYPE_INT64, on_device(q.e.context, slots, sizeof slots), 1,
                slot_shape),
      q.e.read[1],
      q.e.read[2],
  };
  const float k = 0.5f, v = 0.0f;
  MAKE(hd_arguments, a);
  a.tensors = t;
  a.tensor_count = sizeof t / sizeof *t;
  a.k_scale = &k;
  SAYS(HD_DECLINED, "bind.missing", hd_launch(write, &a, NULL, why));
  a.v_scale = &v;
  OK(hd_launch(write, &a, NULL, why));
  for (int i = 0; i < 2; i++) {
    signed char codes[WIDTH];
    OK(hd_memory_copy_out(q.e.context, NULL, codes, t[3 + i].address + 17 * WIDTH, sizeof codes, why));
    cr_assert_eq(codes[0], i ? 0 : -6);
    cr_assert_eq(codes[WIDTH - 1], i ? 0 : 2);
  }
  hd_kernel_release(write);
  engine_close(&q.e);
}

Test(api_scales, a_match_asks_what_a_launch_asks) {
  quantised q;
  size_t chosen = 9;
  quantised_open(&q, SPEC(", source: argument"));
  hd_contract *memory = parse(SPEC(""));
  const hd_candidate candidates[] = {{.contract = memory}, {.contract = q.e.contract}};
  hd_diagnostics *const answers[] = {why, NULL};
  MAKE(hd_match_request, r);
  r.operation = HD_DECODE;
  r.tensors = q.e.read;
  r.tensor_count = READ_COUNT;
  r.k_scale = r.v_scale = &k_number;
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_OK);
  cr_assert_eq(chosen, 1u);
  r.size = offsetof(hd_match_request, k_scale); /* a program from before there were numbers */
  SAYS(HD_DECLINED, "bind.missing", hd_match(&r, candidates, 2, "gfx950", &chosen, answers));
  r.size = sizeof r;
  r.v_scale = NULL;
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_DECLINED);
  r.k_scale = NULL;
  r.tensors = q.read;
  r.tensor_count = READ_COUNT + 2;
  cr_assert_eq(hd_match(&r, candidates, 2, "gfx950", &chosen, NULL), HD_OK);
  cr_assert_eq(chosen, 0u);
  hd_contract_destroy(memory);
  engine_close(&q.e);
}
