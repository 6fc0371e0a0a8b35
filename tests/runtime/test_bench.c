/* Claims about benchmarks: what is counted, how it is timed, that nothing is timed which is wrong. */
#include "../../generator/emit_read.h"
#include "../../runtime/bench/bench_lists.h"
#include "../../runtime/verify/oracle.h"
#include "../../runtime/bench/bench_rig.h"
#include "../example_contract.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static contract fp8_contract(int page, int width) {
  contract c = example_contract(page, width, width);
  c.query.heads_per_kv = 2;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout("b h d/16 s d%16", page, width);
  c.kv.v = example_layout("b h s/16 d s%16", page, width);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", page, width);
  return c;
}

/* ---- Shapes ---- */

Test(bench, a_shape_is_read_and_written) {
  bench_shape s;
  text out;
  text_init(&out);
  cr_assert(bench_shape_parse("64x8192x4x16", &s));
  cr_assert(s.seqs == 64 && s.length == 8192 && s.kv_heads == 4 && s.heads_per_kv == 16);
  bench_shape_write(&s, &out);
  cr_assert_str_eq(text_string(&out), "64x8192x4x16");
  text_clear(&out);
  cr_assert(bench_shape_parse("1x131072x1", &s));
  cr_assert_eq(s.heads_per_kv, 0);
  bench_shape_write(&s, &out);
  cr_assert_str_eq(text_string(&out), "1x131072x1");
  text_finish(&out);
}

Test(bench, what_is_no_shape_is_refused) {
  static const char *const words[] = {
      "",         "64",         "64x8192",    "64x8192x4x16x1", "64x8192x4x",
      "x64x1x1",  "0x64x1x1",   "64x0x1x1",   "64x64x0x1",      "64x64x1x65",
      "64x-64x1", "64 x64x1x1", "64x64x1x1 ", "4096x1048576x1", "1x99999999999999999999x1",
      "ax64x1",   "+4x64x1",    "64x64x1x0",  "64X64X1"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    bench_shape s = {.seqs = 7};
    cr_expect(!bench_shape_parse(words[i], &s), "'%s' was taken", words[i]);
    cr_expect_eq(s.seqs, 7, "'%s' changed the shape", words[i]);
  }
}

Test(bench, the_decode_preset_has_nine_shapes) {
  const bench_preset *p = bench_preset_find("decode");
  cr_assert_not_null(p);
  cr_assert_eq(p->count, 9);
  for (int i = 0; i < bench_preset_count; i++)
    for (int j = 0; j < bench_presets[i].count; j++) {
      bench_shape again;
      text word;
      text_init(&word);
      bench_shape_write(&bench_presets[i].shapes[j], &word);
      cr_expect(bench_shape_parse(text_string(&word), &again), "%s", text_string(&word));
      text_finish(&word);
    }
  cr_assert_null(bench_preset_find("dec"));
}

Test(bench, ragged_lengths_keep_every_eighth_and_stay_in_bounds) {
  const bench_shape s = {64, 8192, 1, 16};
  int32_t lengths[64];
  int64_t sum = 0;
  int different = 0;
  cr_assert_eq(bench_lengths(&s, false, lengths), 64 * 8192);
  int64_t told = bench_lengths(&s, true, lengths);
  for (int i = 0; i < 64; i++) {
    if (i % 8 == 0)
      cr_expect_eq(lengths[i], 8192);
    else
      cr_expect(lengths[i] >= 8192 / 16 && lengths[i] <= 8192 * 5 / 16, "%d: %d", i, lengths[i]);
    different += i > 1 && lengths[i] != lengths[i - 1];
    sum += lengths[i];
  }
  cr_assert_eq(told, sum);
  cr_assert(different > 50);
  const bench_shape tiny = {16, 1, 1, 1};
  cr_assert_eq(bench_lengths(&tiny, true, lengths), 16, "no sequence is empty");
}

static bool same_shape(const bench_shape *a, const bench_shape *b) {
  return a->seqs == b->seqs && a->length == b->length && a->kv_heads == b->kv_heads &&
         a->heads_per_kv == b->heads_per_kv;
}

Test(bench, random_shapes_follow_from_the_seed_and_fit) {
  int ragged = 0, long_ones = 0, wide = 0;
  for (int n = 0; n < 200; n++) {
    bench_shape a, b, other;
    bool a_ragged, b_ragged, other_ragged;
    bench_random_shape(7, n, 264, &a, &a_ragged);
    bench_random_shape(7, n, 264, &b, &b_ragged);
    bench_random_shape(8, n, 264, &other, &other_ragged);
    cr_expect(same_shape(&a, &b) && a_ragged == b_ragged);
    cr_expect(!same_shape(&a, &other) || a_ragged != other_ragged, "%d", n);
    cr_expect(a.seqs >= 1 && a.seqs <= 256 && a.length >= 1024 && a.length <= 65536, "%d x %d", (int)a.seqs,
              (int)a.length);
    cr_expect(a.kv_heads >= 1 && a.kv_heads <= 8 && a.heads_per_kv == 0);
    cr_expect_leq(a.seqs * a.length * a.kv_heads * 264, 600000000ll * (a_ragged ? 3 : 1));
    ragged += a_ragged;
    long_ones += a.length > 16384;
    wide += a.seqs > 64;
  }
  cr_expect(ragged > 60 && ragged < 140 && long_ones > 20 && wide > 20, "%d %d %d", ragged, long_ones, wide);
}

/* Reads of 98.04 us make an aim of 102. */
Test(bench, the_summary_is_of_the_fastest_split_of_each_shape) {
  static bench_result r[5];
  const double times[] = {102, 204, 153, 51, 1020};
  for (int i = 0; i < 5; i++) {
    r[i].read.statistics.median = 100 / 1.02;
    r[i].decode.statistics.median = times[i];
    r[i].best = i < 4; /* the last was slower than another split */
  }
  bench_summary s;
  bench_summary_of(r, 5, &s);
  cr_expect_eq(s.count, 4);
  cr_expect_float_eq(s.median, 1.25, 1e-9);
  cr_expect_float_eq(s.worst, 2, 1e-9);
  cr_expect_eq(s.worst_result, &r[1]);
  bench_summary_of(r, 0, &s);
  cr_expect(s.count == 0 && !s.worst_result);
}

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

static contract blocks_contract(void) {
  contract c = fp8_contract(16, 64);
  c.select.form = SELECT_BLOCKS;
  c.select.block = 128;
  return c;
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

static contract listed_contract(select_form form, select_per per, int rows) {
  contract c = example_contract(16, 64, 64);
  c.query.heads_per_kv = 2;
  c.query.rows = rows;
  c.select.form = form;
  c.select.per = per;
  return c;
}

static const char *const per_words[] = {"sequence", "kv_head", "row"};
static const select_per pers[] = {PER_SEQUENCE, PER_KV_HEAD, PER_ROW};

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

/* ---- Other groups and pages ---- */

Test(bench, another_page_gives_the_layout_that_a_spec_with_it_has) {
  static const int pages[] = {16, 32, 64, 128};
  diags errors;
  diags_init(&errors);
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++) {
      contract c = fp8_contract(pages[from], 64), wanted = fp8_contract(pages[to], 64), got;
      cr_assert_eq(bench_contract(&c, 0, pages[to], &got, &errors), HD_OK);
      text a, b;
      text_init(&a);
      text_init(&b);
      contract_write(&got, &a);
      contract_write(&wanted, &b);
      cr_expect_str_eq(text_string(&a), text_string(&b), "%d to %d", pages[from], pages[to]);
      text_finish(&a);
      text_finish(&b);
    }
  diags_finish(&errors);
}

Test(bench, a_page_that_a_layout_cannot_have_is_refused) {
  contract c = fp8_contract(64, 64), got = {.kv.page = -1};
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_contract(&c, 0, 24, &got, &errors), HD_INVALID);
  cr_assert_eq(errors.count, 1);
  cr_assert_str_eq(errors.items[0].code, "bench.page");
  cr_assert_eq(got.kv.page, -1);
  diags_finish(&errors);
}

Test(bench, another_group_changes_the_group_alone) {
  contract c = fp8_contract(64, 64), got;
  diags errors;
  text differences;
  diags_init(&errors);
  text_init(&differences);
  cr_assert_eq(bench_contract(&c, 8, 0, &got, &errors), HD_OK);
  cr_assert_eq(contract_diff(&c, &got, &differences), 1);
  cr_assert(strstr(text_string(&differences), "query.heads_per_kv") == text_string(&differences));
  text_finish(&differences);
  diags_finish(&errors);
}

/* ---- Statistics and rotation ---- */

Test(bench, the_median_and_the_spread) {
  bench_statistics s;
  bench_statistics_of((const double[]){9, 1, 5}, 3, &s);
  cr_expect(s.median == 5 && s.least == 1 && s.most == 9 && s.spread == 8.0 / 5);
  bench_statistics_of((const double[]){4, 1, 3, 2}, 4, &s);
  cr_expect(s.median == 2.5 && s.least == 1 && s.most == 4);
  bench_statistics_of((const double[]){7}, 1, &s);
  cr_expect(s.median == 7 && s.spread == 0);
  bench_statistics_of(NULL, 0, &s);
  cr_expect(s.median == 0 && s.spread == 0);
}

Test(bench, copies_cover_more_than_any_cache_and_fit_in_memory) {
  const int64_t memory = 140000000000;
  const int64_t sizes[] = {8650752, 34603008, 69206016, 276824064, 553648128};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    int copies = bench_copies(sizes[i], memory);
    cr_expect(copies >= 2);
    cr_expect(copies * sizes[i] > 450000000, "%d copies of %ld", copies, (long)sizes[i]);
    cr_expect(bench_launches(copies) >= 16);
    cr_expect(bench_launches(copies) % copies == 0, "every copy equally often");
  }
  cr_expect_eq(bench_copies(1, 0), 256, "small ones have a bound");
  cr_expect_eq(bench_copies(400, 1000), 1, "memory for one");
  cr_expect_eq(bench_copies(1000, 1000), 0, "memory for none");
}

/* ---- A device in host memory that counts ---- */

typedef struct counting_device {
  device base;
  int allocations, streams, events, graphs; /* not given back */
  int captured, replays, records, launch_calls;
  bool capturing;
  int fail_launch; /* which launch fails, -1: none */
  double milliseconds;
} counting_device;

static counting_device *counting(device *d) {
  return (counting_device *)d;
}

static hd_status count_allocate(device *d, size_t bytes, device_pointer *out, diags *errors) {
  (void)errors;
  counting(d)->allocations++;
  *out = (device_pointer)(uintptr_t)malloc(bytes);
  return HD_OK;
}

static hd_status count_release(device *d, device_pointer pointer, diags *errors) {
  (void)errors;
  counting(d)->allocations--;
  free((void *)(uintptr_t)pointer);
  return HD_OK;
}

static hd_status count_copy_in(device *d, device_stream *s, device_pointer to, const void *from, size_t bytes,
                               diags *errors) {
  (void)d;
  (void)s;
  (void)errors;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return HD_OK;
}

static hd_status count_fill(device *d, device_stream *s, device_pointer to, unsigned char value, size_t bytes,
                            diags *errors) {
  (void)d;
  (void)s;
  (void)errors;
  memset((void *)(uintptr_t)to, value, bytes);
  return HD_OK;
}

static hd_status count_stream_create(device *d, device_stream **out, diags *errors) {
  (void)errors;
  counting(d)->streams++;
  *out = (device_stream *)d;
  return HD_OK;
}

static void count_stream_destroy(device *d, device_stream *s) {
  (void)s;
  cr_expect(!counting(d)->capturing, "a stream that captures was destroyed");
  counting(d)->streams--;
}

static hd_status count_event_create(device *d, device_event **out, diags *errors) {
  (void)errors;
  counting(d)->events++;
  *out = (device_event *)d;
  return HD_OK;
}

static void count_event_destroy(device *d, device_event *e) {
  (void)e;
  counting(d)->events--;
}

static hd_status count_event_record(device *d, device_event *e, device_stream *s, diags *errors) {
  (void)e;
  (void)errors;
  cr_expect_not_null(s, "events belong on the stream that is timed");
  counting(d)->records++;
  return HD_OK;
}

static hd_status count_event_elapsed(device *d, device_event *start, device_event *stop, double *out,
                                     diags *errors) {
  (void)start;
  (void)stop;
  (void)errors;
  *out = counting(d)->milliseconds;
  return HD_OK;
}

static hd_status count_capture_begin(device *d, device_stream *s, diags *errors) {
  (void)s;
  (void)errors;
  counting(d)->capturing = true;
  return HD_OK;
}

static hd_status count_capture_end(device *d, device_stream *s, device_graph **out, diags *errors) {
  (void)s;
  (void)errors;
  counting(d)->capturing = false;
  counting(d)->graphs++;
  *out = (device_graph *)d;
  return HD_OK;
}

static hd_status count_graph_launch(device *d, device_graph *g, device_stream *s, diags *errors) {
  (void)g;
  (void)s;
  (void)errors;
  counting(d)->replays++;
  return HD_OK;
}

static void count_graph_destroy(device *d, device_graph *g) {
  (void)g;
  counting(d)->graphs--;
}

static const device_vtable counting_vtable = {
    .allocate = count_allocate,
    .release = count_release,
    .copy_in = count_copy_in,
    .fill = count_fill,
    .stream_create = count_stream_create,
    .stream_destroy = count_stream_destroy,
    .event_create = count_event_create,
    .event_destroy = count_event_destroy,
    .event_record = count_event_record,
    .event_elapsed = count_event_elapsed,
    .capture_begin = count_capture_begin,
    .capture_end = count_capture_end,
    .graph_launch = count_graph_launch,
    .graph_destroy = count_graph_destroy,
};

static counting_device new_device(void) {
  return (counting_device){.base.vtable = &counting_vtable, .fail_launch = -1, .milliseconds = 3.2};
}

static hd_status count_launch(void *user, device_stream *s, int index, diags *errors) {
  counting_device *d = user;
  cr_expect(d->capturing && s, "a launch outside the capture");
  cr_expect_eq(index, d->launch_calls, "launches in order");
  d->launch_calls++;
  if (index != d->fail_launch) return HD_OK;
  diags_errorf(errors, "device.error", NULL, "no");
  return HD_DEVICE;
}

static void expect_nothing_left(const counting_device *d) {
  cr_expect_eq(d->allocations, 0);
  cr_expect_eq(d->streams, 0);
  cr_expect_eq(d->events, 0);
  cr_expect_eq(d->graphs, 0);
}

Test(bench, a_graph_is_captured_once_warmed_up_and_replayed) {
  counting_device d = new_device();
  diags errors;
  double samples[9] = {0};
  diags_init(&errors);
  cr_assert_eq(bench_time(&d.base, count_launch, &d, 16, 9, 20, samples, &errors), HD_OK);
  cr_expect_eq(d.launch_calls, 16);
  /* 3.2 ms a replay: seven until 20 ms have passed. Each measurement has an untimed replay ahead. */
  cr_expect_eq(d.replays, 2 * (7 + 9));
  cr_expect_eq(d.records, d.replays);
  for (int i = 0; i < 9; i++)
    cr_expect_float_eq(samples[i], 3.2 * 1000 / 16, 1e-9);
  expect_nothing_left(&d);
  diags_finish(&errors);
}

Test(bench, a_launch_that_fails_ends_the_capture_and_gives_everything_back) {
  counting_device d = new_device();
  diags errors;
  double samples[9];
  diags_init(&errors);
  d.fail_launch = 3;
  cr_assert_eq(bench_time(&d.base, count_launch, &d, 16, 9, 20, samples, &errors), HD_DEVICE);
  cr_expect_eq(d.launch_calls, 4);
  cr_expect_eq(d.replays, 0);
  cr_expect(!d.capturing);
  expect_nothing_left(&d);
  diags_finish(&errors);
}

Test(bench, launches_walk_over_copies_that_hold_the_same_and_do_not_overlap) {
  counting_device d = new_device();
  session s = {.device = &d.base};
  contract c = fp8_contract(16, 64);
  const bench_shape shape = {3, 50, 2, 2};
  bench_data data;
  bench_pool pool;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&data, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_assert_eq(bench_pool_init(&pool, &s, &data, 3, &errors), HD_OK);
  for (int i = 0; i < 7; i++) {
    tensors t = bench_pool_tensors(&pool, i), same = bench_pool_tensors(&pool, i + 3),
            next = bench_pool_tensors(&pool, i + 1);
    for (int name = TENSOR_K_CACHE; name <= TENSOR_V_SCALE; name++) {
      const tensor *a = &t.by_name[name];
      uint64_t b = next.by_name[name].data;
      cr_expect_eq(a->data, same.by_name[name].data);
      cr_expect(b >= a->data + tensor_bytes(a) || b + tensor_bytes(a) <= a->data);
      cr_expect_eq((a->data - pool.base) % 256, 0);
      cr_expect(memcmp((void *)(uintptr_t)a->data, (void *)(uintptr_t)b, tensor_bytes(a)) == 0);
      cr_expect(memcmp((void *)(uintptr_t)a->data, (void *)(uintptr_t)data.host.by_name[name].data,
                       tensor_bytes(a)) == 0);
    }
    cr_expect_eq(t.by_name[TENSOR_Q].data, next.by_name[TENSOR_Q].data);
    cr_expect(t.present[TENSOR_OUT] && t.by_name[TENSOR_OUT].data != 0);
  }
  /* The read kernel begins at k_cache and reads to the end of the scales. */
  tensors last = bench_pool_tensors(&pool, 2);
  cr_expect_eq(last.by_name[TENSOR_K_CACHE].data, pool.base + 2 * pool.stride);
  bench_pool_finish(&pool);
  bench_data_finish(&data);
  expect_nothing_left(&d);
  diags_finish(&errors);
}

/* ---- Checking ---- */

typedef struct checked {
  contract contract;
  bench_data data;
  bench_expected expected;
  unsigned char *out; /* right, rounded to the output format */
  diags errors;
} checked;

static void check_init(checked *c, bool ragged) {
  const bench_shape shape = {20, 200, 2, 2};
  diags_init(&c->errors);
  c->contract = fp8_contract(16, 64);
  cr_assert_eq(bench_data_init(&c->data, &c->contract,
                               &(bench_deal){.shape = shape, .ragged = ragged, .seed = 1}, &c->errors),
               HD_OK);
  cr_assert_eq(bench_expected_init(&c->expected, &c->data, 0.125, BENCH_CHECK_BUDGET, 1, &c->errors), HD_OK);
  cr_assert_eq(oracle_decode_rounded(&c->contract, &c->data.host, c->data.dims, 0.125, &c->errors), HD_OK);
  c->out = c->data.memory[TENSOR_OUT];
}

static void check_finish(checked *c) {
  bench_expected_finish(&c->expected);
  bench_data_finish(&c->data);
  diags_finish(&c->errors);
}

Test(bench, a_right_result_passes) {
  for (int ragged = 0; ragged < 2; ragged++) {
    checked c;
    bench_result r = {0};
    check_init(&c, ragged);
    bench_expected_compare(&c.expected, &c.data, c.out, &r);
    cr_expect(r.good, "%s", r.problem);
    cr_expect(r.checked > 1 && r.checked <= 20);
    cr_expect(r.rms > 0 && r.rms < 2e-3, "%g", r.rms); /* rounding to bf16 alone */
    check_finish(&c);
  }
}

Test(bench, a_wrong_element_of_a_checked_sequence_fails) {
  checked c;
  bench_result r = {0};
  check_init(&c, true);
  int64_t rows = 2 * 2, at = (c.expected.seqs[c.expected.count - 1] * rows + rows - 1) * 64 + 63;
  put(DTYPE_BF16, c.out, at, get(DTYPE_BF16, c.out, at) + 1.0);
  bench_expected_compare(&c.expected, &c.data, c.out, &r);
  cr_expect(!r.good);
  cr_expect(strstr(r.problem, "row"), "%s", r.problem);
  check_finish(&c);
}

Test(bench, a_row_that_nobody_wrote_fails_wherever_it_is) {
  checked c;
  check_init(&c, false);
  for (int64_t seq = 0; seq < 20; seq++) {
    bench_result r = {0};
    int64_t at = (seq * 4 + 1) * 64 + 5;
    double kept = get(DTYPE_BF16, c.out, at);
    put(DTYPE_BF16, c.out, at, (double)NAN);
    bench_expected_compare(&c.expected, &c.data, c.out, &r);
    cr_expect(!r.good, "sequence %ld", (long)seq);
    put(DTYPE_BF16, c.out, at, kept);
  }
  check_finish(&c);
}

Test(bench, the_longest_sequence_is_always_checked) {
  checked c;
  check_init(&c, true);
  const int32_t *lengths = c.data.memory[TENSOR_LENGTHS];
  cr_expect_eq(lengths[c.expected.seqs[0]], c.data.longest);
  check_finish(&c);
}

/* 70,000 tokens and 64 heads: more than the oracle has time for, so one head stands for them. */
Test(bench, a_very_long_sequence_is_checked_in_one_head_of_each_kv_head) {
  contract c = fp8_contract(16, 16);
  const bench_shape shape = {1, 70000, 2, 64};
  bench_data d;
  bench_expected e;
  diags errors;
  diags_init(&errors);
  c.query.heads_per_kv = 32;
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_assert_eq(bench_expected_init(&e, &d, 0.25, BENCH_CHECK_BUDGET, 1, &errors), HD_OK);
  cr_assert_eq(e.heads, 1);
  cr_assert_eq(oracle_decode_rounded(&c, &d.host, d.dims, 0.25, &errors), HD_OK);
  unsigned char *out = d.memory[TENSOR_OUT];
  for (int head = 0; head < 64; head++) {
    bench_result r = {0};
    int64_t at = head * 16 + 3;
    double kept = get(DTYPE_BF16, out, at);
    put(DTYPE_BF16, out, at, kept + 1.0);
    bench_expected_compare(&e, &d, out, &r);
    cr_expect_eq(r.good, head % 32 != e.head, "head %d, checked is %d: %s", head, e.head, r.problem);
    put(DTYPE_BF16, out, at, kept);
  }
  bench_expected_finish(&e);
  bench_data_finish(&d);
  diags_finish(&errors);
}

/* A wrong element of any row, wherever lists begin, with all heads checked or one of them (a budget of 1). */
Test(bench, a_wrong_row_fails_whatever_has_lists_of_its_own) {
  for (int p = 0; p < 3; p++)
    for (int64_t budget = 1; budget <= BENCH_CHECK_BUDGET; budget += BENCH_CHECK_BUDGET - 1) {
      contract c = listed_contract(SELECT_INDPTR, pers[p], 3);
      bench_data d;
      bench_expected e;
      bench_result r = {0};
      diags errors;
      diags_init(&errors);
      c.mask.sinks = true;
      cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = {3, 70, 2, 0}, .seed = 1}, &errors), HD_OK);
      cr_assert_eq(bench_expected_init(&e, &d, 0.125, budget, 1, &errors), HD_OK);
      cr_assert_eq(e.heads, budget == 1 ? 1 : 2);
      cr_assert_eq(oracle_decode_rounded(&c, &d.host, d.dims, 0.125, &errors), HD_OK);
      unsigned char *out = d.memory[TENSOR_OUT];
      bench_expected_compare(&e, &d, out, &r);
      cr_expect(r.good, "per %s: %s", per_words[p], r.problem);
      for (int64_t row = 0; row < d.dims[DIM_ROWS]; row++) {
        const int64_t at =
            ((e.seqs[0] * d.dims[DIM_ROWS] + row) * 4 + 2 + (budget == 1 ? e.head : 0)) * 64 + 5;
        const double kept = get(DTYPE_BF16, out, at);
        put(DTYPE_BF16, out, at, kept + 1.0);
        bench_expected_compare(&e, &d, out, &r);
        cr_expect(!r.good, "per %s, row %d", per_words[p], (int)row);
        put(DTYPE_BF16, out, at, kept);
      }
      bench_expected_finish(&e);
      bench_data_finish(&d);
      diags_finish(&errors);
    }
}

/* ---- Whole runs, on an emulated device ---- */

#ifdef HEDDLE_WITH_EMU

static void open_emulated(session *s, diags *errors) {
  hd_status status = session_open("emu:gfx950", COMPILER_LLVM, NULL, s, errors);
  cr_assert_eq(status, HD_OK, "%s", errors->count ? errors->items[0].message : "");
}

static bench_result *run_once(session *s, const bench_shape *shape, bench_options *options, diags *errors) {
  static bench_result results[2];
  const variant v = {0};
  contract c = fp8_contract(16, 128);
  options->repeat = 7;
  options->split_count = 2;
  options->splits[0] = 1;
  options->splits[1] = 2;
  hd_status status = bench_run(s, &c, "test", &v, shape, options, results, errors);
  cr_assert_eq(status, HD_OK, "%s", errors->count ? errors->items[0].message : "");
  return results;
}

/* The tuner times splits that it has not checked: the workspace has to be there all the same. */
Test(bench, timing_makes_room_for_its_split) {
  session s;
  session_kernel k;
  bench_rig rig;
  bench_series series;
  bench_result r = {0};
  diags errors;
  diags_init(&errors);
  open_emulated(&s, &errors);
  contract c = fp8_contract(16, 128);
  const bench_shape shape = {2, 300, 1, 2};
  cr_assert_eq(session_load(&s, &c, "test", OPERATION_DECODE, &(variant){0}, &k, &errors), HD_OK);
  cr_assert_eq(bench_rig_init(&rig, &s, &c, &(bench_deal){.shape = shape, .seed = 1}, true, &errors), HD_OK);
  cr_assert_eq(bench_rig_check(&rig, &k, 1, &r, &errors), HD_OK);
  cr_expect_eq(bench_rig_time(&rig, &k, 3, 1, 0, &series, &errors), HD_OK, "%s",
               errors.count ? errors.items[0].message : "");
  cr_assert_eq(bench_rig_fetch(&rig, rig.out, &errors), HD_OK);
  bench_expected_compare(&rig.expected, &rig.data, rig.out, &r);
  cr_expect(r.good, "%s", r.problem);
  bench_rig_finish(&rig);
  session_unload(&s, &k);
  session_close(&s);
  diags_finish(&errors);
}

Test(bench, an_emulated_device_checks_and_gives_no_times) {
  session s;
  diags errors;
  bench_options options = {.ragged = true};
  const bench_shape shape = {9, 70, 2, 4};
  diags_init(&errors);
  open_emulated(&s, &errors);
  bench_result *r = run_once(&s, &shape, &options, &errors);
  for (int i = 0; i < 2; i++) {
    cr_expect(r[i].good, "%s", r[i].problem);
    cr_expect(!r[i].timed && !r[i].best);
    cr_expect(r[i].rms > 0 && r[i].rms < 2.5e-3);
    cr_expect_eq(r[i].splits, i + 1);
    cr_expect(r[i].changed && r[i].shape.heads_per_kv == 4);
  }
  session_close(&s);
  diags_finish(&errors);
}

/* Whatever has lists of its own, on the copies that launches walk over. */
Test(bench, rows_over_ragged_lists_are_timed_on_every_copy, .timeout = 120) {
  session s;
  session_kernel k;
  bench_rig rig;
  bench_series series;
  diags errors;
  diags_init(&errors);
  open_emulated(&s, &errors);
  s.facts.emulated = false;
  s.facts.memory_bytes = 250000; /* three quarters of it hold five copies */
  contract c = listed_contract(SELECT_INDPTR, PER_KV_HEAD, 2);
  const bench_deal deal = {.shape = {3, 70, 2, 0}, .ragged = true, .seed = 1, .capacity = 500};
  cr_assert_eq(session_load(&s, &c, "lists", OPERATION_DECODE, &(variant){0}, &k, &errors), HD_OK);
  cr_assert_eq(bench_rig_init(&rig, &s, &c, &deal, true, &errors), HD_OK);
  cr_expect(rig.longest == 500 && rig.pool.copies > 2, "%d", rig.pool.copies);
  cr_expect_eq(bench_rig_time(&rig, &k, 2, 1, 0, &series, &errors), HD_OK);
  bench_result r = {0};
  cr_assert_eq(bench_rig_fetch(&rig, rig.out, &errors), HD_OK);
  bench_expected_compare(&rig.expected, &rig.data, rig.out, &r);
  cr_expect(r.good, "%s", r.problem);
  bench_rig_finish(&rig);
  session_unload(&s, &k);
  session_close(&s);
  diags_finish(&errors);
}

Test(bench, lists_of_blocks_are_checked_against_the_oracle) {
  session s;
  diags errors;
  const bench_shape shape = {3, 2300, 2, 0};
  bench_options options = {.ragged = true, .repeat = 7, .split_count = 2, .splits = {1, 3}};
  static bench_result r[2];
  contract c = blocks_contract();
  diags_init(&errors);
  open_emulated(&s, &errors);
  hd_status status = bench_run(&s, &c, "blocks", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  c.query.rows = 3;
  status = bench_run(&s, &c, "rows", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rows == 3 && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  session_close(&s);
  diags_finish(&errors);
}

/* Numbers for K and V that the oracle is asked with, too. */
Test(bench, scales_that_are_arguments_are_given_to_kernel_and_oracle) {
  session s;
  diags errors;
  const bench_shape shape = {3, 300, 2, 0};
  bench_options options = {.repeat = 7, .split_count = 2, .splits = {1, 3}};
  static bench_result r[2];
  bench_data d;
  contract c = fp8_contract(16, 128);
  c.scale.granularity = SCALE_TENSOR;
  c.scale.argument = true;
  c.scale.k.count = c.scale.v.count = 0;
  c.kv.v_dtype = DTYPE_INT8;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&d, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_expect(d.host.k_scale.given && d.host.v_scale.given && d.host.k_scale.value != d.host.v_scale.value);
  bench_data_finish(&d);
  open_emulated(&s, &errors);
  hd_status status = bench_run(&s, &c, "numbers", &(variant){0}, &shape, &options, r, &errors);
  cr_assert_eq(status, HD_OK, "%s", errors.count ? errors.items[0].message : "");
  for (int i = 0; i < 2; i++)
    cr_expect(r[i].good && r[i].rms > 0 && r[i].rms < 2.5e-3, "%s", r[i].problem);
  session_close(&s);
  diags_finish(&errors);
}

/* The emulator's clock means nothing, but everything that hardware goes through is gone through. */
Test(bench, a_run_is_timed_beside_the_read_kernel, .timeout = 120) {
  session s;
  diags errors;
  bench_options options = {.page = 32};
  const bench_shape shape = {1, 40, 1, 0};
  diags_init(&errors);
  open_emulated(&s, &errors);
  s.facts.emulated = false;
  s.facts.compute_units = 1;
  s.facts.memory_bytes = 140000; /* three quarters of it hold six copies of 16896 bytes */
  bench_result *r = run_once(&s, &shape, &options, &errors);
  int best = 0;
  for (int i = 0; i < 2; i++) {
    cr_expect(r[i].good && r[i].timed, "%s", r[i].problem);
    cr_expect_eq(r[i].page, 32);
    cr_expect_eq(r[i].bytes, 40 * 264);
    cr_expect_eq(r[i].copies, 6);
    cr_expect_eq(r[i].launches, 18);
    cr_expect_eq(r[i].decode.count, 7);
    cr_expect(r[i].decode.statistics.median > 0 && r[i].read.statistics.median > 0);
    cr_expect_float_eq(bench_gigabytes_per_second(&r[i]), 40 * 264 / r[i].decode.statistics.median * 1e-3,
                       1e-9);
    best += r[i].best;
  }
  cr_expect_eq(best, 1);
  session_close(&s);
  diags_finish(&errors);
}

#endif

/* ---- Derived figures ---- */

static bench_result example_result(void) {
  bench_result r = {
      .shape = {64, 8192, 4, 16}, .bytes = 553648128, .good = true, .timed = true, .best = true};
  r.decode.statistics.median = 125;
  r.read.statistics.median = 120;
  return r;
}

Test(bench, derived_figures) {
  bench_result r = example_result();
  cr_expect_float_eq(bench_gigabytes_per_second(&r), 4429.185024, 1e-9);
  cr_expect_float_eq(bench_share(&r), 0.96, 1e-12);
  cr_expect_float_eq(bench_ratio(&r), 125 / 124.4, 1e-12);
}
