/* Claims about the split policy and about what a launch passes to a kernel. */
#include "bind_fixture.h"

Test(split, short_items_are_not_split) {
  cr_assert_eq(split_policy(1, 1, 8 * 64, 64, 132), 1);
}

Test(split, a_full_device_is_not_split) {
  cr_assert_eq(split_policy(126, 1, 100000, 64, 132), 1);
  cr_assert_gt(split_policy(60, 1, 100000, 64, 132), 1);
}

Test(split, a_small_batch_is_spread_over_the_device_two_tiles_at_least_each) {
  cr_assert_eq(split_policy(4, 1, 8192, 128, 132), 32, "64 tiles allow 32, the device 33");
  cr_assert_eq(split_policy(4, 1, 100000, 128, 132), 33);
  cr_assert_eq(split_policy(1, 1, 10 * 128, 128, 132), 5);
}

Test(split, nothing_to_do_is_one_split) {
  cr_assert_eq(split_policy(0, 1, 100, 64, 132), 1);
  cr_assert_eq(split_policy(1, 1, 0, 64, 132), 1);
}

Test(launch, a_line_is_cut_by_the_device_and_evenly_where_that_costs_little) {
  const split_facts line = {128, 1, 0, false}, twice = {128, 2, 0, false};
  cr_expect_eq(launch_splits(line, 1, 1, 132), 132, "whatever the lengths are");
  cr_expect_eq(launch_splits(line, 1, 1 << 20, 132), 132);
  cr_expect_eq(launch_splits(line, 64, 8192, 132), 128, "two parts an item");
  cr_expect_eq(launch_splits(twice, 64, 8192, 132), 256);
  cr_expect_eq(launch_splits(line, 256, 8192, 132), 128, "two items a part");
  cr_expect_eq(launch_splits(line, 100, 8192, 132), 132, "100 parts would leave a quarter idle");
  cr_expect_eq(launch_splits(line, 0, 0, 132), 132);
  for (int64_t items = 1; items <= 3000; items++) {
    int64_t parts = launch_splits(line, items, 8192, 132);
    cr_expect(parts >= 124 && parts <= 132, "%d items: %d parts", (int)items, (int)parts);
  }
}

Test(launch, workgroups_that_take_the_same_part_are_so_many_fewer_parts) {
  descriptor d = {.line_parts = 3, .kernel_count = 2};
  d.kernels[0].grid[0] = (extent){1, 1, 2, {DIM_SEQS, DIM_ROWS}}; /* makes lists */
  d.kernels[1].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  d.kernels[1].grid[1] = (extent){4, 1, 0, {DIM_SEQS}};
  split_facts facts = split_facts_of(&d);
  cr_expect_eq(facts.line_shares, 4);
  cr_expect_eq(line_resident(facts, 64), 48, "192 workgroups are there at a time");
  cr_expect_eq(launch_splits(facts, 1, 4096, 64), 48);
  cr_expect_eq(line_resident(facts, 1), 3, "fewer workgroups than share a part");
}

Test(launch, splits_beyond_a_tile_each_are_of_no_use_but_on_a_line) {
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 8, 8 * 64), 8);
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 9, 8 * 64), 8);
  cr_expect_eq(useful_splits((split_facts){64, 0, 0, false}, 9, 0), 1);
  cr_expect_eq(useful_splits((split_facts){64, 1, 0, false}, 132, 1), 132);
}

/* A device that writes down its launches. */
typedef struct recorder {
  device base;
  int count;
  device_launch launches[4];
  device_function *functions[4];
  unsigned char arguments[4][256];
} recorder;

static hd_status record(device *d, device_stream *s, device_function *f, const device_launch *launch,
                        diags *errors) {
  recorder *r = (recorder *)d;
  (void)s;
  (void)errors;
  cr_assert_lt(r->count, 4);
  r->launches[r->count] = *launch;
  r->functions[r->count] = f;
  memcpy(r->arguments[r->count++], launch->arguments, launch->arguments_size);
  return HD_OK;
}

static const device_vtable recorder_vtable = {.launch = record};

/* main(q, workspace, seqs, k_stride_b, logits_scale), then a merge when split. */
static descriptor two_kernels(void) {
  descriptor d = {.operation = "decode", .kernel_count = 2};
  d.kernels[0] = (kernel_descriptor){
      .symbol = "main",
      .block = 256,
      .lds_bytes = 1024,
      .argument_count = 5,
      .arguments = {{ARGUMENT_TENSOR, TENSOR_Q},
                    {ARGUMENT_TENSOR, TENSOR_WORKSPACE},
                    {ARGUMENT_DIM, DIM_SEQS},
                    {ARGUMENT_DIM, DIM_K_STRIDE_B},
                    {ARGUMENT_NUMBER, NUMBER_LOGITS_SCALE}},
  };
  d.kernels[0].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  d.kernels[0].grid[1] = (extent){1, 1, 1, {DIM_KV_HEADS}};
  d.kernels[0].grid[2] = (extent){1, 1, 1, {DIM_SEQS}};
  d.kernels[1] = d.kernels[0];
  d.kernels[1].only_when_split = true;
  return d;
}

static device_function *const fake_functions[2] = {(device_function *)0x10, (device_function *)0x20};

static hd_status launch_recorded(recorder *r, const tensors *t, const int64_t dims[DIM_COUNT]) {
  descriptor d = two_kernels();
  diags errors;
  diags_init(&errors);
  r->base.vtable = &recorder_vtable;
  hd_status status = launch_operation(&r->base, NULL, &d, fake_functions, t, dims, 0.5f, &errors);
  diags_finish(&errors);
  return status;
}

Test(launch, arguments_are_the_kernels_c_struct) {
  struct {
    uint64_t q, workspace;
    int32_t seqs;
    int64_t k_stride_b;
    float logits_scale;
  } wanted = {0x1000, 0x2000, 3, (int64_t)1 << 40, 0.5f}, got;
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  t.by_name[TENSOR_Q].data = wanted.q;
  t.by_name[TENSOR_WORKSPACE].data = wanted.workspace;
  const int64_t dims[DIM_COUNT] = {
      [DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4, [DIM_K_STRIDE_B] = (int64_t)1 << 40};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 2);
  memcpy(&got, r.arguments[0], sizeof got);
  cr_assert_eq(got.q, wanted.q);
  cr_assert_eq(got.workspace, wanted.workspace);
  cr_assert_eq(got.seqs, wanted.seqs);
  cr_assert_eq(got.k_stride_b, wanted.k_stride_b);
  cr_assert_eq(got.logits_scale, wanted.logits_scale);
  cr_assert_eq(r.launches[0].grid[0], 4);
  cr_assert_eq(r.launches[0].grid[1], 2);
  cr_assert_eq(r.launches[0].grid[2], 3);
  cr_assert_eq(r.launches[0].block[0], 256);
  cr_assert_eq(r.launches[0].lds_bytes, 1024);
  cr_assert_eq(r.functions[1], fake_functions[1]);
}

/* Both kernels take V's scale, one of them K's. */
Test(launch, numbers_are_packed_by_value_and_can_be_exchanged) {
  descriptor d = two_kernels();
  d.kernels[0].arguments[3] = (argument){ARGUMENT_NUMBER, NUMBER_K_SCALE};
  d.kernels[0].arguments[4] = d.kernels[1].arguments[4] = (argument){ARGUMENT_NUMBER, NUMBER_V_SCALE};
  tensors t = {.k_scale = {true, 0.25f}, .v_scale = {true, 3.0f}};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4};
  launch_pack pack;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(launch_pack_init(&d, fake_functions, &t, dims, 0.5f, &pack, &errors), HD_OK);
  for (int round = 0; round < 2; round++) {
    float numbers[2], merge;
    memcpy(numbers, pack.parts[0].arguments.bytes + 20, sizeof numbers);
    memcpy(&merge, pack.parts[1].arguments.bytes + 32, sizeof merge);
    cr_expect_eq(numbers[0], round ? 0.125f : 0.25f);
    cr_expect_eq(numbers[1], 3.0f);
    cr_expect_eq(merge, 3.0f, "%g", (double)merge);
    cr_expect(launch_pack_set_number(&pack, &d, NUMBER_K_SCALE, 0.125f));
  }
  cr_expect_not(launch_pack_set_number(&pack, &d, NUMBER_LOGITS_SCALE, 1.0f), "nobody takes it");
  diags_finish(&errors);
}

Test(launch, lists_begin_the_workspace_and_partial_results_follow) {
  descriptor d = two_kernels();
  d.kernels[0].arguments[0].index = TENSOR_LISTS;
  d.lists = (extent){4, 1, 2, {DIM_SEQS, DIM_LIST_WIDTH}};
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  t.by_name[TENSOR_WORKSPACE].data = 0x2000;
  int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4, [DIM_LIST_WIDTH] = 100};
  recorder r = {.base.vtable = &recorder_vtable};
  diags errors;
  diags_init(&errors);
  cr_assert_eq(launch_operation(&r.base, NULL, &d, fake_functions, &t, dims, 0.5f, &errors), HD_OK);
  uint64_t addresses[2];
  memcpy(addresses, r.arguments[0], sizeof addresses);
  cr_assert_eq(addresses[0], 0x2000);
  cr_assert_eq(addresses[1], 0x2000 + 1280, "1200 bytes of lists, in whole 256");
  t.present[TENSOR_WORKSPACE] = false;
  dims[DIM_SPLITS] = 1;
  cr_assert_eq(launch_operation(&r.base, NULL, &d, fake_functions, &t, dims, 0.5f, &errors), HD_INVALID);
  diags_finish(&errors);
}

Test(launch, the_merge_runs_only_when_split_and_no_workspace_is_needed_then) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 3, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 1);
}

Test(launch, an_empty_grid_is_not_launched) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 0, [DIM_KV_HEADS] = 2, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_OK);
  cr_assert_eq(r.count, 0);
}

/* Its grid is the parts asked for, whatever the batch, and no tiles can't be dealt to them. */
Test(launch, a_line_without_sequences_is_not_launched) {
  descriptor d = two_kernels();
  d.line_parts = 2;
  tensors t = {0};
  t.present[TENSOR_Q] = t.present[TENSOR_WORKSPACE] = true;
  int64_t dims[DIM_COUNT] = {[DIM_KV_HEADS] = 2, [DIM_SPLITS] = 4};
  launch_pack pack;
  diags errors;
  diags_init(&errors);
  for (int i = 0; i < d.kernel_count; i++) {
    d.kernels[i].grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
    d.kernels[i].grid[1] = d.kernels[i].grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  }
  for (dims[DIM_SEQS] = 0; dims[DIM_SEQS] < 2; dims[DIM_SEQS]++) {
    cr_assert_eq(launch_pack_init(&d, fake_functions, &t, dims, 0.5f, &pack, &errors), HD_OK);
    cr_expect_eq(pack.count, dims[DIM_SEQS] > 0 ? 2 : 0, "%d", pack.count);
  }
  diags_finish(&errors);
}

Test(launch, a_tensor_that_is_not_there_is_refused) {
  tensors t = {0};
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_INVALID);
  t.present[TENSOR_Q] = true;
  const int64_t split[DIM_COUNT] = {[DIM_SEQS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 2};
  cr_assert_eq(launch_recorded(&r, &t, split), HD_INVALID, "a split needs its workspace");
  cr_assert_eq(r.count, 0);
}

Test(launch, a_size_beyond_int32_is_refused) {
  tensors t = {0};
  t.present[TENSOR_Q] = true;
  const int64_t dims[DIM_COUNT] = {[DIM_SEQS] = (int64_t)1 << 31, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 1};
  recorder r = {0};
  cr_assert_eq(launch_recorded(&r, &t, dims), HD_INVALID);
  cr_assert_eq(r.count, 0);
}
