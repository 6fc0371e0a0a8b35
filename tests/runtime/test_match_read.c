/* Claims about descriptions of a request: what they become, and where their faults are. */
#include "match_fixture.h"

static const char described[] =
    "{\"operation\": \"decode\", \"longest\": 100, \"lse\": true, \"softcap\": 1.5,\n"
    " \"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [3, 16, 128]},\n"
    " \"k_cache\": {\"axes\": [\"b\", \"s\", \"h\", \"d\"], \"dtype\": \"bf16\",\n"
    "  \"shape\": [50, 16, 2, 128], \"strides\": [4096, 128, 2048, 1], \"align\": 64}},\n"
    " \"incumbent\": \"asm\", \"splits\": 4, \"v_scale\": 0.25}";

static match_description description;

static hd_status read_text(const char *json, diags *errors) {
  diags_init(errors);
  return match_read(json, strlen(json), &description, errors);
}

Test(match_read, a_description_becomes_a_request) {
  diags errors;
  cr_assert_eq(read_text(described, &errors), HD_OK);
  const match_request *r = &description.request;
  const tensor *k = &r->tensors.by_name[TENSOR_K_CACHE];
  cr_assert_eq(r->operation, OPERATION_DECODE);
  cr_assert_eq(r->longest, 100);
  cr_assert(r->lse && !r->sinks && r->causal && !r->prefix);
  cr_assert_eq(r->softcap, 1.5);
  cr_assert_eq(r->splits, 4);
  cr_assert_str_eq(r->incumbent, "asm");
  cr_assert(r->tensors.v_scale.given && !r->tensors.k_scale.given);
  cr_assert_eq(r->tensors.v_scale.value, 0.25f);
  cr_assert(r->tensors.present[TENSOR_Q] && !r->tensors.present[TENSOR_OUT]);
  cr_assert_eq(k->rank, 4);
  cr_assert_eq(k->strides[1], 128);
  cr_assert_eq(k->data, 64);
  cr_assert_eq(k->axes->factors[1].axis, AXIS_S);
  cr_assert_eq(k->axes->size[AXIS_S], 16);
  cr_assert_not(r->tensors.by_name[TENSOR_Q].strided);
}

Test(match_read, faults_have_a_place_and_say_what_was_expected) {
  const struct {
    const char *json, *expected;
    int line, column;
  } faults[] = {
      {"", "expected {", 1, 1},
      {"{\"opration\": 1}",
       "expected a known key: operation, tensors, rows, longest, query_heads, kv_heads, lse, sinks, causal, "
       "prefix, "
       "window, block, softcap, logits_scale, k_scale, v_scale, splits, incumbent; did you mean operation?",
       1, 2},
      {"{\"tensors\": {\"q\": {\"type\": \"bf16\"}}}",
       "expected a known key: dtype, shape, strides, align, axes; did you mean dtype?", 1, 20},
      {"{\"rows\": 1,\n\"rows\": 1}", "expected each key once", 2, 1},
      {"{\"rows\": -1}", "expected a whole number in range", 1, 10},
      {"{\"k_scale\": null}", "expected a number", 1, 13},
      {"{\"operation\": \"read\"}", "expected write or decode", 1, 21},
      {"{\"tensors\": {\"z\": {}}}",
       "expected a tensor that heddle knows: q, k_cache, v_cache, k_scale, v_scale, page_table, lengths, "
       "kv_indptr, "
       "kv_indices, last_page_len, block_list, token_list, row_sequences, sinks, k, v, slot_mapping, out, "
       "lse; a cache is "
       "k_cache and v_cache, two views if it is one buffer",
       1, 14},
      {"{\"tensors\": {\"page_tabel\": {}}}",
       "expected a tensor that heddle knows: q, k_cache, v_cache, k_scale, v_scale, page_table, lengths, "
       "kv_indptr, "
       "kv_indices, last_page_len, block_list, token_list, row_sequences, sinks, k, v, slot_mapping, out, "
       "lse; a cache is "
       "k_cache and v_cache, two views if it is one buffer; did you mean page_table?",
       1, 14},
      {"{\"tensors\": {\"q\": {}}}", "expected a tensor with dtype and shape", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf17\"}}}",
       "expected a number format: bf16, fp16, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8, fp32, e8m0, int32, "
       "int64, uint8; "
       "did you mean bf16?",
       1, 28},
      {"{\"tensors\": {\"q\": {\"dtype\": \"fp8\"}}}",
       "expected a number format: bf16, fp16, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, int8, fp32, e8m0, int32, "
       "int64, uint8; "
       "did you mean fp8_e4m3fn, fp8_e4m3fnuz or fp8_e5m2?",
       1, 28},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1, 2], \"strides\": [1]}}}",
       "expected as many strides as dimensions", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1, 2], \"axes\": [\"b\", \"x\"]}}}",
       "expected axes that name each dimension's digit of b, h, s, d", 1, 18},
      {"{\"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": [1], \"align\": 24}}}",
       "expected a power of two", 1, 62},
      {"{} x", "expected nothing behind the end", 1, 4},
  };
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    diags errors;
    cr_assert_eq(read_text(faults[i].json, &errors), HD_DECLINED, "%s", faults[i].json);
    cr_assert_str_eq(errors.items[0].code, "request.syntax");
    cr_assert_str_eq(errors.items[0].message, faults[i].expected);
    cr_assert_eq(errors.items[0].line, faults[i].line, "%s", faults[i].json);
    cr_expect_eq(errors.items[0].column, faults[i].column, "%s: %d", faults[i].json, errors.items[0].column);
    diags_finish(&errors);
  }
}

Test(match_read, no_damaged_description_does_more_than_decline) {
  uint64_t state = 5;
  char damaged[sizeof described];
  int good = 0;
  for (int i = 0; i < 20000; i++) {
    memcpy(damaged, described, sizeof damaged);
    for (int n = 1 + random_below(&state, 3); n > 0; n--)
      damaged[random_below(&state, sizeof damaged - 1)] = "{}[]\",:0129-e. bhsd/%"[random_below(&state, 21)];
    diags errors;
    diags_init(&errors);
    hd_status status = match_read(damaged, strlen(damaged), &description, &errors);
    cr_assert_eq(status == HD_OK, errors.count == 0);
    good += status == HD_OK;
    diags_finish(&errors);
    if (status == HD_OK) {
      contract c = shuffled();
      match_answer a;
      ask(&description.request, &c, "gfx950", &a);
      match_answers_finish(&a, 1);
    }
  }
  cr_assert(good > 0 && good < 20000);
  for (size_t length = 0; length < strlen(described); length++) {
    diags errors;
    diags_init(&errors);
    cr_assert_eq(match_read(described, length, &description, &errors), HD_DECLINED);
    diags_finish(&errors);
  }
}
