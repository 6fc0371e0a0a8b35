/* Claims about binding tensors by name: sizes, strides, presence and scales. */
#include "bind_fixture.h"

Test(bind, decode_dims_follow_from_the_shapes) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 3);
  cr_assert_eq(dims[DIM_ROWS], 1);
  cr_assert_eq(dims[DIM_KV_HEADS], 2);
  cr_assert_eq(dims[DIM_PAGES], 10);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 5);
  cr_assert_eq(dims[DIM_SPLITS], 1);
}

/* Tokens up to the end of the last tile are int32: near 2^31 a kernel's comparisons would wrap. */
Test(bind, lists_that_could_name_two_thousand_million_tokens_are_refused) {
  const int64_t most = (INT64_C(1) << 31) - 4096;
  int64_t dims[DIM_COUNT];
  tensors t = decode_tensors();
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = most / 16;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TABLE_PAGES], most / 16);
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = most / 16 + 1;
  expect_decline(OPERATION_DECODE, &t, "bind.size",
                 "page_table has room for 2147479568 tokens, expected up to 2147479552 tokens");
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = INT64_C(1) << 28; /* the product is beyond 32 bits */
  expect_decline(OPERATION_DECODE, &t, "bind.size",
                 "page_table has room for 4294967296 tokens, expected up to 2147479552 tokens");
  t.by_name[TENSOR_PAGE_TABLE].shape[1] = INT64_C(1) << 31;
  expect_decline(OPERATION_DECODE, &t, "bind.size", "table_pages is 2147483648, allowed are 0 to 2147483647");
}

Test(bind, a_tensor_with_a_dimension_of_none_has_no_bytes_however_large_the_others) {
  tensor t = {.dtype = DTYPE_FP32, .rank = 4, .shape = {1LL << 40, 1LL << 30, 0, 6}};
  cr_expect_eq(tensor_elements(&t), 0);
  cr_expect_eq(tensor_bytes(&t), 0);
  t.strided = true;
  for (int i = 0; i < t.rank; i++)
    t.strides[i] = 1LL << 40;
  cr_expect_eq(tensor_bytes(&t), 0);
  t.shape[2] = 1;
  cr_expect_eq(tensor_bytes(&t), SIZE_MAX);
}

Test(bind, strides_are_those_of_a_packed_cache) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 16 * 32);
  cr_assert_eq(dims[DIM_K_STRIDE_B], 2 * 16 * 32);
  cr_assert_eq(dims[DIM_V_STRIDE_B], 2 * 16 * 32);
  cr_assert_eq(dims[DIM_K_SCALE_STRIDE_H], 16);
  cr_assert_eq(dims[DIM_V_SCALE_STRIDE_B], 32);
}

Test(bind, write_dims_follow_from_the_shapes) {
  tensors t = write_tensors();
  int64_t dims[DIM_COUNT];
  cr_assert_eq(bind(OPERATION_WRITE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TOKENS], 7);
  cr_assert_eq(dims[DIM_KV_HEADS], 2);
  cr_assert_eq(dims[DIM_PAGES], 10);
}

Test(bind, a_flat_cache_gives_its_pages_by_its_size) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  set(&t, TENSOR_K_CACHE, DTYPE_FP8_E4M3FN, 1, 10 * 2 * 16 * 32, 0, 0, 0, 0);
  set(&t, TENSOR_K_SCALE, DTYPE_FP32, 1, 10 * 2 * 16, 0, 0, 0, 0);
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_PAGES], 10);
  t.by_name[TENSOR_K_CACHE].shape[0]++;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "k_cache has shape [10241], expected [pages, kv_heads, 2, 16, 16]: its size is not a whole "
                 "number of pages");
}

Test(bind, an_empty_batch_binds) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  t.by_name[TENSOR_Q].shape[0] = t.by_name[TENSOR_OUT].shape[0] = 0;
  t.by_name[TENSOR_PAGE_TABLE].shape[0] = t.by_name[TENSOR_LENGTHS].shape[0] = 0;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_SEQS], 0);
}

Test(bind, a_shape_that_does_not_fit_is_named_with_what_was_expected) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_V_CACHE].shape[0] = 9;
  expect_decline(
      OPERATION_DECODE, &t, "bind.shape",
      "v_cache has shape [9, 2, 1, 32, 16], expected [pages, kv_heads, 1, 32, 16] = [10, 2, 1, 32, 16]");
  t = decode_tensors();
  t.by_name[TENSOR_OUT].shape[2] = 64;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "out has shape [3, 8, 64], expected [seqs*rows, q_heads, 32] = [3, 8, 32]");
  t = decode_tensors();
  t.by_name[TENSOR_PAGE_TABLE].rank = 1;
  expect_decline(OPERATION_DECODE, &t, "bind.shape",
                 "page_table has shape [3], expected [seqs, table_pages]");
}

Test(bind, query_heads_and_rows_that_do_not_fit_have_codes_of_their_own) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_Q].shape[1] = 7;
  expect_decline(OPERATION_DECODE, &t, "bind.heads-per-kv",
                 "q has query heads per kv head 7 over 2 kv heads, expected 4");
  t.by_name[TENSOR_Q].shape[1] = 16;
  expect_decline(OPERATION_DECODE, &t, "bind.heads-per-kv", "q has query heads per kv head 8, expected 4");
  t = decode_tensors();
  t.by_name[TENSOR_Q].shape[0] = 6;
  expect_decline(OPERATION_DECODE, &t, "bind.rows", "q has query rows per sequence 2, expected 1");
  t.by_name[TENSOR_Q].shape[0] = 7;
  expect_decline(OPERATION_DECODE, &t, "bind.rows",
                 "q has query rows per sequence 7 over 3 sequences, expected 1");
}

/* Strides of a dense tensor, to be changed. */
static tensor *strided(tensors *t, tensor_name name) {
  tensor *s = &t->by_name[name];
  for (int i = 0; i < s->rank; i++)
    s->strides[i] = tensor_stride(s, i);
  s->strided = true;
  return s;
}

Test(bind, free_strides_are_the_tensors_own_each_for_itself) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  strided(&t, TENSOR_K_CACHE)->strides[0] = 4096; /* K and V in turn in one buffer */
  strided(&t, TENSOR_V_CACHE)->strides[0] = 2 * 1024 + 16;
  strided(&t, TENSOR_V_SCALE)->strides[1] = 20;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_B], 4096);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 512);
  cr_assert_eq(dims[DIM_V_STRIDE_B], 2 * 1024 + 16);
  cr_assert_eq(dims[DIM_K_SCALE_STRIDE_H], 16);
  cr_assert_eq(dims[DIM_V_SCALE_STRIDE_H], 20);
}

Test(bind, rows_of_a_page_table_may_be_cut_out_of_a_wider_one) {
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  strided(&t, TENSOR_PAGE_TABLE)->strides[0] = 64;
  cr_assert_eq(bind(OPERATION_DECODE, &t, dims), HD_OK);
  cr_assert_eq(dims[DIM_TABLE_PAGES], 64);
  t.by_name[TENSOR_PAGE_TABLE].strides[1] = 2;
  expect_decline(OPERATION_DECODE, &t, "bind.strides",
                 "page_table is strided [64, 2], expected entries that lie together in rows of one stride");
}

Test(bind, a_permuted_view_binds_where_its_bytes_are_the_contracts) {
  contract c = example_contract(16, 32, 32);
  layout axes = example_layout("b s h d", 16, 32);
  tensors t = {0};
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  set(&t, TENSOR_K, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_V, DTYPE_BF16, 3, 7, 2, 32, 0, 0);
  set(&t, TENSOR_SLOT_MAPPING, DTYPE_INT64, 1, 7, 0, 0, 0, 0);
  set(&t, TENSOR_K_CACHE, DTYPE_BF16, 4, 10, 16, 2, 32, 0);
  set(&t, TENSOR_V_CACHE, DTYPE_BF16, 4, 10, 2, 16, 32, 0);
  tensor *k = strided(&t, TENSOR_K_CACHE); /* [page, slot, head, channel], in memory head before slot */
  const int64_t strides[] = {1024, 32, 512, 1};
  memcpy(k->strides, strides, sizeof strides);
  k->axes = &axes;
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_OK);
  cr_assert_eq(dims[DIM_K_STRIDE_H], 512);
  k->strided = false; /* the same shape, but really NHD */
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_DECLINED);
  cr_assert_str_eq(d.items[0].code, "bind.strides");
  diags_finish(&d);
}

Test(bind, missing_and_unneeded_tensors_are_named) {
  tensors t = decode_tensors();
  t.present[TENSOR_LENGTHS] = false;
  expect_decline(OPERATION_DECODE, &t, "bind.missing", "lengths is missing: decode needs int32 [seqs]");
  t = decode_tensors();
  set(&t, TENSOR_SINKS, DTYPE_FP32, 1, 8, 0, 0, 0, 0);
  expect_decline(OPERATION_DECODE, &t, "bind.unneeded", "decode takes no tensor sinks under this contract");
  t = write_tensors();
  set(&t, TENSOR_Q, DTYPE_BF16, 3, 3, 8, 32, 0, 0);
  expect_decline(OPERATION_WRITE, &t, "bind.unneeded", "write takes no tensor q under this contract");
}

Test(bind, every_fault_is_reported_in_one_go) {
  contract c = shuffled_contract();
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  t.by_name[TENSOR_K_CACHE].dtype = DTYPE_BF16;
  t.by_name[TENSOR_LENGTHS].dtype = DTYPE_INT64;
  t.present[TENSOR_Q] = false;
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 3);
  diags_finish(&d);
}

Test(bind, a_query_of_another_rank_is_one_fault) {
  contract c = shuffled_contract();
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  set(&t, TENSOR_Q, DTYPE_BF16, 2, 3, 256, 0, 0, 0);
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 1);
  cr_assert_str_eq(d.items[0].message, "q has shape [3, 256], expected [seqs*rows, q_heads, 32]");
  diags_finish(&d);
  t = write_tensors();
  set(&t, TENSOR_K, DTYPE_BF16, 2, 7, 64, 0, 0, 0);
  diags_init(&d);
  cr_assert_eq(bind_dims(&c, OPERATION_WRITE, &t, dims, &d), HD_DECLINED);
  cr_assert_eq(d.count, 1);
  diags_finish(&d);
}

Test(bind, caches_that_differ_in_kv_heads_are_not_blamed_on_the_query) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_K_CACHE].shape[1] = 3;
  expect_decline(OPERATION_DECODE, &t, "bind.kv-heads", "k_cache has 3 kv heads, v_cache has 2");
  t = decode_tensors();
  t.by_name[TENSOR_V_CACHE].shape[1] = 1;
  expect_decline(OPERATION_DECODE, &t, "bind.kv-heads", "v_cache has 1 kv heads, k_cache has 2");
  t = write_tensors();
  t.by_name[TENSOR_V_CACHE].shape[1] = 1;
  expect_decline(OPERATION_WRITE, &t, "bind.kv-heads", "v_cache has 1 kv heads, k_cache has 2");
}

Test(bind, an_address_off_16_bytes_is_refused) {
  tensors t = decode_tensors();
  t.by_name[TENSOR_K_CACHE].data = 72;
  expect_decline(OPERATION_DECODE, &t, "bind.alignment",
                 "k_cache lies at an address that is not a multiple of 16 bytes");
}

/* Engines cut lengths, tables and slots out of longer ones; kernels read them one at a time. */
Test(bind, indices_and_logits_lie_at_any_address_of_their_own_size) {
  static const struct {
    operation operation;
    tensor_name name;
    uint64_t good, bad;
  } places[] = {{OPERATION_DECODE, TENSOR_LENGTHS, 68, 66},
                {OPERATION_DECODE, TENSOR_PAGE_TABLE, 76, 74},
                {OPERATION_WRITE, TENSOR_SLOT_MAPPING, 72, 68}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    tensors t = places[i].operation == OPERATION_DECODE ? decode_tensors() : write_tensors();
    tensor *moved = &t.by_name[places[i].name];
    const contract c = shuffled_contract();
    int64_t dims[DIM_COUNT];
    char message[128];
    diags d;
    diags_init(&d);
    moved->data = places[i].good;
    cr_expect_eq(bind_dims(&c, places[i].operation, &t, dims, &d), HD_OK, "%s",
                 tensor_name_text(places[i].name));
    diags_finish(&d);
    moved->data = places[i].bad;
    snprintf(message, sizeof message, "%s lies at an address that is not a multiple of %d bytes",
             tensor_name_text(places[i].name), dtype_bytes(moved->dtype));
    expect_decline(places[i].operation, &t, "bind.alignment", message);
  }
}

Test(bind, roles_depend_on_the_contract) {
  contract c = shuffled_contract();
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_UPDATED);
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_K_SCALE), ROLE_INPUT);
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_LSE), ROLE_NONE);
  c.output.lse = true;
  cr_assert_eq(bind_role(&c, OPERATION_DECODE, TENSOR_LSE), ROLE_OUTPUT);
  c.scale.granularity = SCALE_TENSOR;
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_INPUT,
               "one scale for all is given to the writer");
  c.scale.granularity = SCALE_NONE;
  cr_assert_eq(bind_role(&c, OPERATION_WRITE, TENSOR_K_SCALE), ROLE_NONE);
}

/* The scales of a tensor that the caller has as numbers: an operation has no tensors of these names then. */
static contract with_numbers(void) {
  contract c = shuffled_contract();
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  c.scale.k.count = c.scale.v.count = 0;
  return c;
}

static void drop_scales(tensors *t) {
  t->present[TENSOR_K_SCALE] = t->present[TENSOR_V_SCALE] = false;
}

/* Declined for one reason: its code, field, what was found and what is allowed, in one line. */
static void numbers_decline(const contract *c, operation o, const tensors *t, const char *wanted) {
  int64_t dims[DIM_COUNT];
  char said[160];
  diags d;
  diags_init(&d);
  cr_assert_eq(bind_dims(c, o, t, dims, &d), HD_DECLINED, "expected: %s", wanted);
  cr_expect_eq(d.count, 1u, "%s", wanted);
  snprintf(said, sizeof said, "%s %s: %s, %s", d.items[0].code, d.items[0].field, d.items[0].found,
           d.items[0].allowed);
  cr_expect_str_eq(said, wanted);
  diags_finish(&d);
}

Test(bind, scales_that_are_arguments_come_as_numbers_and_no_other_way) {
  contract c = with_numbers(), memory = c;
  memory.scale.argument = false;
  for (operation o = 0; o < OPERATION_COUNT; o++) {
    tensors t = o == OPERATION_DECODE ? decode_tensors() : write_tensors();
    int64_t dims[DIM_COUNT];
    diags d;
    diags_init(&d);
    drop_scales(&t);
    t.k_scale = (scale_number){true, 0.5f};
    numbers_decline(&c, o, &t, "bind.missing v_scale: none, a number");
    t.v_scale = (scale_number){true, 0};
    cr_expect_eq(bind_dims(&c, o, &t, dims, &d), HD_OK, "0 is a number, too");
    cr_expect_eq(bind_role(&c, o, TENSOR_K_SCALE), ROLE_NONE);
    set(&t, TENSOR_K_SCALE, DTYPE_FP32, 1, 1, 0, 0, 0, 0);
    numbers_decline(&c, o, &t, "bind.unneeded k_scale: given, a number");
    set(&t, TENSOR_V_SCALE, DTYPE_FP32, 1, 1, 0, 0, 0, 0);
    t.k_scale.given = false;
    numbers_decline(&memory, o, &t, "bind.unneeded v_scale: a number, none");
    diags_finish(&d);
  }
}

Test(bind, values_that_lie_in_k_have_no_scale_of_their_own) {
  contract c = with_numbers();
  c.kv.v_in_k = true;
  c.kv.v = c.kv.k;
  tensors t = decode_tensors();
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  drop_scales(&t);
  t.present[TENSOR_V_CACHE] = false;
  t.k_scale = (scale_number){true, 0.5f};
  cr_expect_eq(bind_dims(&c, OPERATION_DECODE, &t, dims, &d), HD_OK);
  t.v_scale = (scale_number){true, 0.5f};
  numbers_decline(&c, OPERATION_DECODE, &t, "bind.unneeded v_scale: a number, none");
  diags_finish(&d);
}
