/* Claims about bench: the bytes of a shape, and the lists that name them. */
#include "bench_fixture.h"

/* ---- Bytes ---- */

/* One token and head of 128 fp8 channels, K and V, with a float each: 2 * (128 + 4). */
Test(bench, bytes_count_k_v_and_scales) {
  contract c = fp8_contract(16, 128);
  read_bytes b = read_bytes_of(&c);
  cr_expect(b.token_head == 264 && b.token == 0);
  c.scale.granularity = SCALE_TOKEN; /* one scale for all heads */
  b = read_bytes_of(&c);
  cr_expect(b.token_head == 256 && b.token == 8);
  c.scale.granularity = SCALE_TENSOR;
  b = read_bytes_of(&c);
  cr_expect(b.token_head == 256 && b.token == 0);
  c.scale.granularity = SCALE_GROUP; /* 128 / 32 and 128 / 64 of one byte */
  c.scale.dtype = DTYPE_E8M0;
  c.scale.group_k = 32;
  c.scale.group_v = 64;
  b = read_bytes_of(&c);
  cr_expect(b.token_head == 256 + 4 + 2 && b.token == 0);
  contract plain = example_contract(16, 192, 128); /* bf16 */
  b = read_bytes_of(&plain);
  cr_expect(b.token_head == 2 * (192 + 128) && b.token == 0);
}

Test(bench, bytes_of_a_shape_are_those_of_its_visible_tokens) {
  contract c = fp8_contract(16, 64);
  const bench_shape s = {16, 100, 3, 2};
  int32_t lengths[16];
  bench_data d;
  diags errors;
  diags_init(&errors);
  int64_t tokens = bench_lengths(&s, true, lengths);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = s, .ragged = true, .seed = 1}, &errors), HD_OK);
  cr_expect_eq(d.tokens, tokens);
  cr_expect_eq(d.bytes, tokens * 3 * 2 * (64 + 4));
  cr_expect(d.bytes <= (int64_t)d.slab_bytes, "the read kernel stays inside a copy");
  bench_data_finish(&d);
  diags_finish(&errors);
}

Test(bench, every_page_is_used_once) {
  contract c = fp8_contract(16, 64);
  const bench_shape s = {16, 100, 1, 2};
  bench_data d;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = s, .ragged = true, .seed = 1}, &errors), HD_OK);
  const int32_t *table = d.memory[TENSOR_PAGE_TABLE], *lengths = d.memory[TENSOR_LENGTHS];
  int64_t pages = d.dims[DIM_PAGES], width = d.dims[DIM_TABLE_PAGES], moved = 0, next = 0;
  int *seen = calloc((size_t)pages, sizeof *seen);
  for (int64_t i = 0; i < 16; i++)
    for (int64_t p = 0; p < (lengths[i] + 15) / 16; p++, next++) {
      int32_t id = table[i * width + p];
      cr_assert(id >= 0 && id < pages);
      seen[id]++;
      moved += id != next;
    }
  cr_expect_eq(next, pages);
  for (int64_t p = 0; p < pages; p++)
    cr_expect_eq(seen[p], 1);
  cr_expect(moved > pages / 2, "pages come in random order");
  free(seen);
  bench_data_finish(&d);
  diags_finish(&errors);
}

Test(bench, lists_name_sixteen_blocks_and_the_last_among_them) {
  contract c = blocks_contract();
  const bench_shape s = {2, 3000, 3, 2};
  bench_data d;
  diags errors;
  diags_init(&errors);
  cr_expect_eq(bench_seen(&c, 1, 2048), 2048);
  cr_expect_eq(bench_seen(&c, 1, 3000), 15 * 128 + 56, "24 blocks, the last of 56 tokens");
  cr_expect_eq(bench_seen(&c, 1, 7), 7);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = s, .seed = 1}, &errors), HD_OK);
  cr_expect_eq(d.tokens, 2 * (15 * 128 + 56), "only these are read");
  cr_expect_eq(d.bytes, d.tokens * 3 * 2 * (64 + 4));
  cr_assert_eq(d.dims[DIM_LISTED], 16);
  const int32_t *list = d.memory[TENSOR_BLOCK_LIST];
  for (int n = 0; n < 6; n++, list += 16) {
    int listed[24] = {0}, moved = 0;
    for (int i = 0; i < 16; i++) {
      cr_assert(list[i] >= 0 && list[i] < 24);
      cr_assert_eq(listed[list[i]]++, 0, "twice");
      moved += i > 0 && list[i] < list[i - 1];
    }
    cr_expect_eq(listed[23], 1);
    cr_expect_gt(moved, 0, "in random order");
  }
  bench_data_finish(&d);
  diags_finish(&errors);
}

Test(bench, token_lists_name_tokens_of_their_own_sequence) {
  contract c = example_contract(1, 64, 64);
  c.kv.k = c.kv.v = example_layout("b h d", 1, 64);
  c.select.form = SELECT_TOKENS;
  c.select.per = PER_ROW;
  const bench_shape s = {2, 2100, 1, 1};
  bench_data d;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = s, .seed = 1}, &errors), HD_OK);
  cr_assert_eq(d.dims[DIM_LISTED], 2048);
  int *owner = calloc(4200, sizeof *owner);
  const int32_t *list = d.memory[TENSOR_TOKEN_LIST];
  for (int i = 0; i < 2 * 2048; i++) {
    cr_assert(list[i] >= 0 && list[i] < 4200);
    cr_assert_eq(owner[list[i]], 0, "no token is listed twice, in one sequence or in two");
    owner[list[i]] = 1 + i / 2048;
  }
  free(owner);
  bench_data_finish(&d);
  diags_finish(&errors);
}

/* ---- Ragged lists and rows ---- */

/* The same pages, in the same order, mean the same. */
Test(bench, ragged_lists_hold_what_a_table_holds) {
  const bench_deal deal = {.shape = {5, 70, 3, 0}, .ragged = true, .seed = 3};
  for (int p = 0; p < 3; p++) {
    bench_data d[2];
    diags errors;
    diags_init(&errors);
    contract table = listed_contract(SELECT_TABLE, pers[p], 2),
             ragged = listed_contract(SELECT_INDPTR, pers[p], 2);
    cr_assert_eq(bench_data_init(&d[0], &table, &deal, &errors), HD_OK);
    cr_assert_eq(bench_data_init(&d[1], &ragged, &deal, &errors), HD_OK);
    const size_t bytes = tensor_bytes(&d[0].host.by_name[TENSOR_OUT]);
    for (int i = 0; i < 2; i++)
      cr_assert_eq(oracle_decode_rounded(d[i].contract, &d[i].host, d[i].dims, 0.125, &errors), HD_OK);
    cr_expect_eq(bytes, tensor_bytes(&d[1].host.by_name[TENSOR_OUT]));
    cr_expect_arr_eq(d[0].memory[TENSOR_OUT], d[1].memory[TENSOR_OUT], bytes, "per %s", per_words[p]);
    cr_expect(d[0].tokens == d[1].tokens && d[0].bytes == d[1].bytes && d[0].longest == d[1].longest);
    for (int i = 0; i < 2; i++)
      bench_data_finish(&d[i]);
    diags_finish(&errors);
  }
}

Test(bench, every_kv_head_lists_every_page_of_its_sequence_in_an_order_of_its_own) {
  contract c = listed_contract(SELECT_INDPTR, PER_KV_HEAD, 1);
  bench_data d;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = {2, 300, 3, 0}, .seed = 1}, &errors), HD_OK);
  const int32_t *first = d.memory[TENSOR_KV_INDPTR], *pages = d.memory[TENSOR_KV_INDICES],
                *last = d.memory[TENSOR_LAST_PAGE_LEN];
  int used[38] = {0};
  cr_expect(d.dims[DIM_PAGES] == 38 && d.dims[DIM_TABLE_PAGES] == 3 * 38, "19 pages a sequence");
  for (int list = 0; list < 6; list++) {
    cr_expect_eq(first[list + 1] - first[list], 19);
    cr_expect_eq(last[list], 300 - 18 * 16);
    for (int i = first[list]; i < first[list + 1]; i++) {
      cr_assert(pages[i] >= 0 && pages[i] < 38);
      used[pages[i]] |= 1 << list;
    }
  }
  for (int page = 0; page < 38; page++)
    cr_expect(used[page] == 7 || used[page] == 7 << 3, "page %d is in the lists %x", page,
              (unsigned)used[page]);
  cr_expect_neq(memcmp(pages, pages + 19, 19 * sizeof *pages), 0);
  bench_data_finish(&d);
  diags_finish(&errors);
}

/* A table's row, or a list for each sequence and kv head; what is attended to stays the same. */
Test(bench, capacity_is_room_for_every_sequence) {
  bench_deal deal = {.shape = {5, 70, 2, 0}, .ragged = true, .seed = 3, .capacity = 1000};
  const int64_t room = 63; /* pages of 16 */
  for (int form = 0; form < 2; form++)
    for (int p = 0; p < 3; p++) {
      contract c = listed_contract(form ? SELECT_INDPTR : SELECT_TABLE, pers[p], 1);
      bench_data wide, tight;
      diags errors;
      diags_init(&errors);
      deal.capacity = 1000;
      cr_assert_eq(bench_data_init(&wide, &c, &deal, &errors), HD_OK);
      deal.capacity = 0;
      cr_assert_eq(bench_data_init(&tight, &c, &deal, &errors), HD_OK);
      cr_expect_eq(wide.dims[DIM_TABLE_PAGES], form ? 5 * room * (pers[p] == PER_KV_HEAD ? 2 : 1) : room);
      cr_expect(wide.dims[DIM_PAGES] == tight.dims[DIM_PAGES] && wide.bytes == tight.bytes);
      cr_expect_eq(bind_longest(&c, &wide.host, wide.dims), bind_longest(&c, &tight.host, tight.dims));
      const size_t bytes = tensor_bytes(&wide.host.by_name[TENSOR_OUT]);
      cr_assert_eq(oracle_decode_rounded(&c, &wide.host, wide.dims, 0.125, &errors), HD_OK);
      cr_assert_eq(oracle_decode_rounded(&c, &tight.host, tight.dims, 0.125, &errors), HD_OK);
      cr_expect_arr_eq(wide.memory[TENSOR_OUT], tight.memory[TENSOR_OUT], bytes);
      bench_data_finish(&wide);
      bench_data_finish(&tight);
      diags_finish(&errors);
    }
}

Test(bench, tokens_that_rows_share_count_once) {
  contract c = listed_contract(SELECT_TABLE, PER_SEQUENCE, 4);
  cr_expect_eq(bench_seen(&c, 4, 300), 300, "the last row sees all of them");
  c.mask.window = 64;
  cr_expect_eq(bench_seen(&c, 1, 300), 64);
  cr_expect_eq(bench_seen(&c, 4, 300), 67, "each row's window begins one further on");
  cr_expect_eq(bench_seen(&c, 4, 66), 66);
  c.mask.causal = false;
  cr_expect_eq(bench_seen(&c, 4, 300), 64, "all rows have the same one");
}

Test(bench, rows_list_blocks_of_their_own_and_bytes_count_what_any_of_them_lists) {
  contract c = blocks_contract();
  c.query.rows = 3;
  /* 60 blocks are enough for three rows' lists, 24 are not. */
  for (int64_t length = 3000; length <= 7600; length += 4600) {
    bench_data d;
    diags errors;
    diags_init(&errors);
    cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = {2, length, 2, 0}, .seed = 1}, &errors),
                 HD_OK);
    const int32_t *list = d.memory[TENSOR_BLOCK_LIST];
    const int64_t blocks = (length + 127) / 128;
    for (int item = 0; item < 4; item++) {
      int listed[60] = {0};
      int64_t tokens = 0;
      for (int row = 0; row < 3; row++)
        for (int i = 0; i < 16; i++) {
          const int32_t block = *list++;
          cr_assert(block >= 0 && block < blocks);
          cr_assert_eq(listed[block] & 1 << row, 0, "twice in a row's list");
          listed[block] |= 1 << row;
        }
      cr_expect_eq(listed[blocks - 1], 7);
      for (int64_t i = 0; i < blocks; i++)
        if (listed[i]) tokens += i == blocks - 1 ? length - i * 128 : 128;
      cr_expect_eq(tokens * 2, d.tokens, "%d of %d", (int)tokens, (int)d.tokens);
    }
    bench_data_finish(&d);
    diags_finish(&errors);
  }
}

Test(bench, rows_are_those_asked_for_or_the_contracts) {
  contract c = listed_contract(SELECT_TABLE, PER_SEQUENCE, 3);
  diags errors;
  int rows = 0;
  diags_init(&errors);
  cr_expect(bench_rows(&c, 0, &rows, &errors) == HD_OK && rows == 3);
  cr_expect(bench_rows(&c, 2, &rows, &errors) == HD_OK && rows == 2);
  cr_expect_eq(bench_rows(&c, 4, &rows, &errors), HD_DECLINED);
  c.select.per = PER_ROW;
  cr_expect(bench_rows(&c, 0, &rows, &errors) == HD_OK && rows == 1);
  cr_expect_eq(bench_rows(&c, 3, &rows, &errors), HD_DECLINED);
  cr_expect(errors.count == 2 && strcmp(errors.items[1].code, "bench.rows") == 0);
  diags_finish(&errors);
}
