/* Claims about dispatch: strides, flat caches and permuted views. */
#include "match_fixture.h"

Test(match, strides_of_k_given_to_v_decline) {
  contract c = shuffled();
  match_request r = usual(&c);
  tensor *k = strided(&r, TENSOR_K_CACHE), *v = strided(&r, TENSOR_V_CACHE);
  memcpy(v->strides, k->strides,
         sizeof v->strides); /* [4096, 2048, 256, 16, 1] for [50, 2, 1, 128, 16]: by chance the same */
  expect_match(&r, &c);
  c = shuffled();
  c.kv.page = 32;
  c.kv.k = example_layout("b h d/16 s d%16", 32, 128);
  c.kv.v = example_layout("b h s/16 d s%16", 32, 128);
  c.scale.k = c.scale.v = example_layout("b h s", 32, 128);
  r = usual(&c);
  k = strided(&r, TENSOR_K_CACHE), v = strided(&r, TENSOR_V_CACHE);
  memcpy(v->strides, k->strides, sizeof v->strides);
  expect(&r, &c, "bind.strides", "v_cache", "[8192, 4096, 512, 16, 1]", "[any, any, 2048, 16, 1]");
}

Test(match, padded_strides_are_each_tensors_own) {
  contract c = shuffled();
  match_request r = usual(&c);
  match_answer a;
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2 * 4096;
  strided(&r, TENSOR_V_CACHE)->strides[1] = 2048 + 64;
  r.tensors.by_name[TENSOR_V_CACHE].strides[0] = 2 * (2048 + 64) + 16;
  strided(&r, TENSOR_K_SCALE)->strides[0] = 48;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_K_STRIDE_B], 8192);
  cr_assert_eq(a.dims[DIM_K_STRIDE_H], 2048);
  cr_assert_eq(a.dims[DIM_V_STRIDE_B], 2 * (2048 + 64) + 16);
  cr_assert_eq(a.dims[DIM_V_STRIDE_H], 2048 + 64);
  cr_assert_eq(a.dims[DIM_K_SCALE_STRIDE_B], 48);
  cr_assert_eq(a.dims[DIM_V_SCALE_STRIDE_B], 32);
  match_answers_finish(&a, 1);
}

Test(match, padding_that_loads_can_not_step_by_declines) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 4096 + 8;
  expect(&r, &c, "bind.stride-alignment", "k_cache", "4104", "a multiple of 16");
  r = usual(&c);
  strided(&r, TENSOR_V_SCALE)->strides[1] = 17;
  r.tensors.by_name[TENSOR_V_SCALE].strides[0] = 36;
  expect(&r, &c, "bind.stride-alignment", "v_scale", "17", "a multiple of 4");
}

Test(match, strides_inside_a_page_and_head_are_the_layouts) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[2] = 512;
  expect(&r, &c, "bind.strides", "k_cache", "[4096, 2048, 512, 16, 1]", "[any, any, 256, 16, 1]");
  r = usual(&c);
  strided(&r, TENSOR_K_SCALE)->strides[2] = 2;
  expect(&r, &c, "bind.strides", "k_scale", "[32, 16, 2]", "[any, any, 1]");
  r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = -4096;
  expect(&r, &c, "bind.strides", "k_cache", "[-4096, 2048, 256, 16, 1]", "[any, any, 256, 16, 1]");
  c.kv.packed = true;
  r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 8192;
  expect(&r, &c, "bind.strides", "k_cache", "[8192, 2048, 256, 16, 1]", "[4096, 2048, 256, 16, 1]");
}

Test(match, pages_that_share_bytes_decline_for_the_writer_only) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2048;
  expect_match(&r, &c);
  r = request_for(&c, OPERATION_WRITE, "gfx950", usual_dims);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2048;
  expect(&r, &c, "bind.overlap", "k_cache", "[2048, 2048, 256, 16, 1]", "[any, any, 256, 16, 1]");
}

Test(match, a_base_off_16_bytes_declines) {
  contract c = shuffled();
  match_request r = usual(&c);
  r.tensors.by_name[TENSOR_V_CACHE].data = 4096 + 8;
  expect(&r, &c, "bind.alignment", "v_cache", "another address", "a multiple of 16 bytes");
}

static contract plain(const char *k, int page) {
  contract c = example_contract(page, 64, 64);
  c.query.heads_per_kv = 8;
  c.kv.k = example_layout(k, page, 64);
  return c;
}

Test(match, a_flat_cache_is_dense) {
  contract c = plain("b h s d", 16);
  match_request r = usual(&c);
  tensor *k = &r.tensors.by_name[TENSOR_K_CACHE];
  k->shape[0] = tensor_elements(k);
  k->rank = 1;
  expect_match(&r, &c);
  strided(&r, TENSOR_K_CACHE)->strides[0] = 2;
  expect(&r, &c, "bind.strides", "k_cache", "[2]", "[any, any, 64, 1]");
}

Test(match, with_one_head_the_slots_say_how_far_heads_would_be_apart) {
  contract c = plain("b s h d", 16);
  int64_t dims[DIM_COUNT];
  memcpy(dims, usual_dims, sizeof dims);
  dims[DIM_KV_HEADS] = 1;
  match_request r = request_for(&c, OPERATION_DECODE, "gfx950", dims);
  tensor *k = strided(&r, TENSOR_K_CACHE); /* [50, 16, 1, 64] */
  k->strides[0] = 16 * 80;
  k->strides[1] = 80;
  match_answer a;
  cr_assert_eq(ask(&r, &c, "gfx950", &a), HD_OK);
  cr_assert_eq(a.dims[DIM_K_STRIDE_H], 80);
  match_answers_finish(&a, 1);
}

static void give_axes(match_request *r, const layout *axes, int64_t a, int64_t b, int64_t c, int64_t d,
                      int64_t e) {
  tensor *k = &r->tensors.by_name[TENSOR_K_CACHE];
  const int64_t shape[] = {a, b, c, d, e};
  k->rank = axes->count;
  k->axes = axes;
  memcpy(k->shape, shape, (size_t)k->rank * sizeof shape[0]);
}

Test(match, axes_are_compared_by_what_they_mean) {
  contract c = plain("b h s d", 12);
  match_request r = usual(&c);
  layout digits = example_layout("b h s/6 s%6 d", 12, 64), four = example_layout("b h s/4 s%4 d", 12, 64);
  give_axes(&r, &digits, PAGES, HEADS, 2, 6, 64);
  r.longest = 12;
  expect_match(&r, &c);
  c.kv.k = four; /* digits that do not nest with those of the view */
  expect_match(&r, &c);
  strided(&r, TENSOR_K_CACHE)->strides[2] = 7 * 64;
  expect(&r, &c, "bind.strides", "k_cache", "[1536, 768, 448, 64, 1]",
         "[any, any, 256, 64, 1] for [b, h, s/4, s%4, d]");
}

Test(match, axes_have_to_be_the_layouts_and_one_index_more_does_no_harm) {
  contract c = shuffled();
  match_request r = usual(&c);
  layout flat = example_layout("b h s d", 16, 1), other = example_layout("b s", 16, 1);
  tensor *scale = &r.tensors.by_name[TENSOR_K_SCALE];
  scale->axes = &flat; /* [pages, heads, 16, 1] */
  scale->rank = 4;
  scale->shape[3] = 1;
  expect_match(&r, &c);
  scale->axes = &other; /* no heads */
  scale->rank = 2;
  scale->shape[1] = 16;
  expect(&r, &c, "bind.shape", "k_scale", "[50, 16]", "[pages, kv_heads, 16] = [50, 2, 16]");
  c.scale.granularity = SCALE_TOKEN;
  c.scale.k = c.scale.v = example_layout("b s", 16, 128);
  r = usual(&c);
  layout heads = example_layout("b h s", 16, 1);
  scale = &r.tensors.by_name[TENSOR_K_SCALE];
  scale->axes = &heads; /* heads that the contract knows nothing of */
  scale->rank = 3;
  scale->shape[1] = HEADS;
  scale->shape[2] = 16;
  expect(&r, &c, "bind.shape", "k_scale", "[50, 2, 16]", "[pages, 16] = [50, 16]");
}

Test(match, rows_of_a_page_table_do_not_overlap_and_stay_within_31_bits) {
  contract c = shuffled();
  match_request r = usual(&c);
  strided(&r, TENSOR_PAGE_TABLE)->strides[0] = TABLE - 1;
  expect(&r, &c, "bind.strides", "page_table", "strided [8, 1]",
         "entries that lie together in rows of one stride");
  r.tensors.by_name[TENSOR_PAGE_TABLE].strides[0] = (int64_t)INT32_MAX + 1;
  expect(&r, &c, "bind.strides", "page_table", "strided [2147483648, 1]",
         "entries that lie together in rows of one stride");
}
