/* Launches, bindings and graphs through heddle.h, on the emulated device and on HIP over it; on hardware:
 * HEDDLE_TEST_DEVICE=cuda:0 build/tests/api/test_api_launches --filter 'api_launches/a_*' */
#include "fixture.h"
#include <stdbool.h>
#include <math.h>

static const char *const devices[] = {"emu:gfx950", "hip:0"};
enum { DEVICES = sizeof devices / sizeof *devices };

/* The device that the environment names takes the place of all. */
static const char *device_at(int index) {
  const char *named = getenv("HEDDLE_TEST_DEVICE");
  return named != NULL ? named : devices[index];
}

Test(api_launches, a_binding_gives_what_a_launch_gives) {
  for (int d = 0; d < DEVICES; d++) {
    engine e;
    float direct[OUT_FLOATS], bound[OUT_FLOATS];
    hd_binding *b = NULL;
    engine_open(&e, device_at(d));
    const hd_arguments a = engine_arguments(&e, 2);
    OK(hd_launch(e.decode, &a, NULL, why));
    engine_out(&e, direct);
    engine_forget_out(&e);
    OK(hd_bind(e.decode, &a, &b, why));
    OK(hd_binding_launch(b, NULL, why));
    engine_out(&e, bound);
    cr_assert_eq(memcmp(direct, bound, sizeof bound), 0);
    cr_assert(difference(direct, bound) < 1e30, "the output holds NaN");
    hd_binding_destroy(b);
    engine_close(&e);
  }
}

Test(api_launches, a_binding_takes_other_buffers) {
  engine e;
  float here[OUT_FLOATS], there[OUT_FLOATS];
  hd_binding *b = NULL;
  engine_open(&e, device_at(0));
  const hd_arguments a = engine_arguments(&e, 1);
  OK(hd_bind(e.decode, &a, &b, why));
  OK(hd_binding_launch(b, NULL, why));
  engine_out(&e, here);
  const uint64_t elsewhere = on_device(e.context, NULL, sizeof there);
  engine_forget_out(&e);
  OK(hd_binding_set_address(b, HD_TENSOR_OUT, elsewhere));
  OK(hd_binding_launch(b, NULL, why));
  OK(hd_memory_copy_out(e.context, NULL, there, elsewhere, sizeof there, why));
  cr_assert_eq(memcmp(here, there, sizeof here), 0);
  engine_out(&e, here);
  cr_assert(isnan(here[0]), "the first buffer was written again");
  cr_assert_eq(hd_binding_set_address(b, HD_TENSOR_OUT, elsewhere + 4), HD_INVALID, "not aligned");
  cr_assert_eq(hd_binding_set_address(b, HD_TENSOR_SINKS, elsewhere), HD_INVALID, "no such tensor");
  cr_assert_eq(hd_binding_set_workspace(b, elsewhere), HD_OK);
  hd_binding_destroy(b);
  engine_close(&e);
}

/* Every refusal says what is wrong, and leaves the output alone. */
Test(api_launches, what_does_not_fit_is_refused_and_nothing_runs) {
  engine e;
  float out[OUT_FLOATS];
  int64_t wide[] = {SEQS, Q_HEADS, DIM + 8};
  engine_open(&e, device_at(0));
  const hd_arguments good = engine_arguments(&e, 1);
  hd_tensor t[READ_COUNT + 1];
  hd_arguments a = good;
  a.tensors = t;
#define FRESH() memcpy(t, e.read, sizeof e.read)
  FRESH();
  a.tensor_count = READ_COUNT - 1; /* no out */
  SAYS(HD_DECLINED, "bind.missing", hd_launch(e.decode, &a, NULL, why));
  a.tensor_count = READ_COUNT;
  t[0].shape = wide;
  SAYS(HD_DECLINED, "bind.shape", hd_launch(e.decode, &a, NULL, why));
  FRESH();
  t[1].dtype = HD_DTYPE_FP16;
  SAYS(HD_DECLINED, "bind.dtype", hd_launch(e.decode, &a, NULL, why));
  FRESH();
  t[5].address += 8;
  SAYS(HD_DECLINED, "bind.alignment", hd_launch(e.decode, &a, NULL, why));
  FRESH();
  t[READ_COUNT] = tensor_of(HD_TENSOR_SINKS, HD_DTYPE_FP32, e.out, 1, lengths_shape);
  a.tensor_count = READ_COUNT + 1;
  SAYS(HD_DECLINED, "bind.unneeded", hd_launch(e.decode, &a, NULL, why));
  t[READ_COUNT] = t[0];
  SAYS(HD_INVALID, "launch.tensor", hd_launch(e.decode, &a, NULL, why));
  t[READ_COUNT].name = (hd_tensor_name)99;
  SAYS(HD_INVALID, "launch.tensor", hd_launch(e.decode, &a, NULL, why));
  FRESH();
  t[0].rank = HD_MAX_RANK + 1;
  SAYS(HD_INVALID, "launch.tensor", hd_launch(e.decode, &a, NULL, why));
  a = good;
  a.splits = 2;
  a.workspace_bytes = 64;
  SAYS(HD_DECLINED, "launch.workspace", hd_launch(e.decode, &a, NULL, why));
  a.splits = -1;
  SAYS(HD_INVALID, "launch.splits", hd_launch(e.decode, &a, NULL, why));
  a = good;
  a.logits_scale = 0.5f; /* the contract says 1/8 */
  SAYS(HD_DECLINED, "launch.logits-scale", hd_launch(e.decode, &a, NULL, why));
  a.size = 8;
  SAYS(HD_INVALID, "context.options", hd_launch(e.decode, &a, NULL, why));
  a = good;
  a.tensors = NULL;
  SAYS(HD_INVALID, "launch.tensor", hd_launch(e.decode, &a, NULL, why));
  engine_out(&e, out);
  cr_assert(isnan(out[0]) && isnan(out[OUT_FLOATS - 1]), "a refused launch wrote something");
  a = good;
  a.logits_scale = 0.125f;
  OK(hd_launch(e.decode, &a, NULL, why));
  engine_close(&e);
}

/* Lengths and tables cut out of longer ones, as engines that halve a batch do. */
Test(api_launches, indices_may_begin_anywhere) {
  for (int d = 0; d < DEVICES; d++) {
    static const int32_t lengths[SEQS + 3] = {900, 900, 900, 40, 7, 100};
    engine e;
    float whole[OUT_FLOATS], cut[OUT_FLOATS];
    int32_t table[1 + PAGES];
    engine_open(&e, device_at(d));
    const hd_arguments a = engine_arguments(&e, 2);
    OK(hd_launch(e.decode, &a, NULL, why));
    engine_out(&e, whole);
    OK(hd_memory_copy_out(e.context, NULL, table + 1, e.read[3].address, sizeof table - 4, why));
    e.read[4].address = on_device(e.context, lengths, sizeof lengths) + 12;
    e.read[3].address = on_device(e.context, table, sizeof table) + 4;
    hd_binding *b = NULL;
    OK(hd_bind(e.decode, &a, &b, why));
    OK(hd_binding_launch(b, NULL, why));
    engine_out(&e, cut);
    cr_assert_eq(difference(whole, cut), 0.0);
    engine_forget_out(&e);
    OK(hd_binding_set_address(b, HD_TENSOR_LENGTHS, e.read[4].address));
    cr_assert_eq(hd_binding_set_address(b, HD_TENSOR_LENGTHS, e.read[4].address + 2), HD_INVALID);
    OK(hd_binding_launch(b, NULL, why));
    engine_out(&e, cut);
    cr_assert_eq(difference(whole, cut), 0.0);
    hd_binding_destroy(b);
    engine_close(&e);
  }
}

/* An engine between requests: nothing to do, for workgroups that share out a line of no tiles too. */
Test(api_launches, a_batch_without_sequences_is_no_work) {
  static const int64_t query[] = {0, Q_HEADS, DIM}, table[] = {0, TABLE}, lengths[] = {0};
  static const char *const variants[] = {NULL, "line"};
  for (int d = 0; d < DEVICES; d++)
    for (int i = 0; i < 2; i++) {
      engine e;
      float out[OUT_FLOATS];
      engine_open(&e, device_at(d));
      hd_job job = job_of(e.contract, HD_DECODE);
      hd_kernel *k = NULL;
      MAKE(hd_sizes, sizes);
      sizes.kv_heads = KV_HEADS;
      sizes.splits = 5;
      job.variant = variants[i];
      OK(hd_prepare(e.context, &job, &k, why));
      hd_arguments a = engine_arguments(&e, 5);
      OK(hd_kernel_workspace(k, &sizes, &a.workspace_bytes));
      a.workspace = a.workspace_bytes > 0 ? on_device(e.context, NULL, (size_t)a.workspace_bytes) : 0;
      e.read[0].shape = e.read[5].shape = query;
      e.read[3].shape = table;
      e.read[4].shape = lengths;
      engine_forget_out(&e);
      for (int again = 0; again < 2; again++)
        OK(hd_launch(k, &a, NULL, why));
      engine_out(&e, out);
      cr_assert(isnan(out[0]), "something was written");
      hd_kernel_release(k);
      engine_close(&e);
    }
}

/* A graph is captured while sequences are short and replayed while they grow to what the page table has room
 * for. Its split count comes from that room. */
Test(api_launches, a_captured_launch_serves_growing_lengths) {
  static const int32_t lengths[][SEQS] = {
      {3, 1, 2}, {17, 16, 15}, {200, 1, 130}, {LONGEST, LONGEST, LONGEST - 1}};
  for (int d = 0; d < DEVICES; d++) {
    engine e;
    hd_stream *s = NULL;
    hd_graph *g = NULL;
    float direct[OUT_FLOATS], replayed[OUT_FLOATS];
    MAKE(hd_sizes, sizes);
    int64_t short_splits = 0, splits = 0;
    engine_open(&e, device_at(d));
    sizes.seqs = SEQS;
    sizes.kv_heads = KV_HEADS;
    sizes.longest = 3;
    OK(hd_kernel_splits(e.decode, &sizes, &short_splits));
    sizes.longest = LONGEST;
    OK(hd_kernel_splits(e.decode, &sizes, &splits));
    cr_assert_eq(short_splits, 1);
    cr_assert_gt(splits, 1, "the test needs lengths that are split");
    OK(hd_stream_create(e.context, &s, why));
    engine_set_lengths(&e, 3, 1, 2);
    const hd_arguments captured = engine_arguments(&e, 0), single = engine_arguments(&e, 1);
    hd_arguments poor = captured;
    poor.workspace_bytes = 0;
    OK(hd_capture_begin(e.context, s, why));
    SAYS(HD_DECLINED, "launch.workspace", hd_launch(e.decode, &poor, s, why)); /* it is split */
    OK(hd_launch(e.decode, &captured, s, why));
    OK(hd_capture_end(e.context, s, &g, why));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      engine_set_lengths(&e, lengths[i][0], lengths[i][1], lengths[i][2]);
      OK(hd_launch(e.decode, &single, NULL, why));
      engine_out(&e, direct);
      engine_forget_out(&e);
      OK(hd_graph_launch(e.context, g, s, why));
      OK(hd_stream_wait(e.context, s, why));
      engine_out(&e, replayed);
      cr_assert(difference(direct, replayed) < 1e-4, "%s, lengths %d: %g", device_at(d), lengths[i][0],
                difference(direct, replayed));
    }
    hd_graph_destroy(e.context, g);
    hd_stream_destroy(e.context, s);
    engine_close(&e);
  }
}

Test(api_launches, a_kernel_that_is_not_prepared_is_not_compiled_under_capture) {
  for (int d = 0; d < DEVICES; d++) {
    engine e;
    hd_stream *s = NULL;
    hd_graph *g = NULL;
    hd_kernel *lazy = NULL;
    hd_diagnostic first;
    float out[OUT_FLOATS];
    engine_open(&e, device_at(d));
    const hd_job job = job_of(e.contract, HD_DECODE);
    OK(hd_prepare_lazily(e.context, &job, &lazy, why));
    OK(hd_stream_create(e.context, &s, why));
    const hd_arguments a = engine_arguments(&e, 1);
    OK(hd_capture_begin(e.context, s, why));
    SAYS(HD_DECLINED, "launch.capture", hd_launch(lazy, &a, s, why));
    OK(hd_diagnostics_get(why, 0, &first));
    cr_assert(strstr(first.message, "nhd/decode") != NULL, "%s", first.message);
    OK(hd_launch(e.decode, &a, s, why)); /* the capture goes on */
    OK(hd_capture_end(e.context, s, &g, why));
    OK(hd_launch(lazy, &a, s, why)); /* compiled now: nothing captures */
    OK(hd_stream_wait(e.context, s, why));
    engine_out(&e, out);
    cr_assert(!isnan(out[0]));
    hd_graph_destroy(e.context, g);
    OK(hd_capture_begin(e.context, s, why));
    OK(hd_launch(lazy, &a, s, why)); /* ready, so legal */
    OK(hd_capture_end(e.context, s, &g, why));
    hd_graph_destroy(e.context, g);
    hd_kernel_release(lazy);
    hd_stream_destroy(e.context, s);
    engine_close(&e);
  }
}

/* What the spec lists bounds what is launched, by number or by policy, and a match says the same. */
Test(api_launches, split_counts_are_those_of_the_spec) {
  static const char suffix[] = "split: {factors: [2, 3]}\n";
  char yaml[sizeof spec_nhd + sizeof suffix];
  engine e;
  engine_open(&e, device_at(0));
  strcat(strcpy(yaml, spec_nhd), suffix);
  hd_contract *listed = parse(yaml);
  hd_kernel *k = prepare(e.context, listed, HD_DECODE);
  const hd_candidate candidates[] = {{.contract = listed}, {.contract = e.contract}};
  const int64_t asked[] = {2, 3, 1, 4, 65535, 65536, INT32_MAX};
  float out[2][OUT_FLOATS];
  MAKE(hd_match_request, request);
  MAKE(hd_sizes, sizes);
  request.operation = HD_DECODE;
  request.causal = 1;
  request.tensors = e.read;
  request.tensor_count = READ_COUNT;
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
    for (int free = 0; free < 2; free++) {
      const bool served = free ? asked[i] <= 65535 : i < 2;
      hd_arguments a = engine_arguments(&e, asked[i]);
      size_t chosen = 0;
      request.splits = (int32_t)asked[i];
      hd_kernel *kernel = free ? e.decode : k;
      cr_assert_eq(hd_match(&request, &candidates[free], 1, "gfx950", &chosen, NULL) == HD_OK, served,
                   "match: %d splits", (int)asked[i]);
      if (served && a.workspace_bytes >= asked[i] * SEQS * Q_HEADS * (DIM + 4) * 4)
        OK(hd_launch(kernel, &a, NULL, why));
      else
        SAYS(HD_DECLINED, served ? "launch.workspace" : "launch.splits", hd_launch(kernel, &a, NULL, why));
    }
  sizes.seqs = SEQS;
  sizes.kv_heads = KV_HEADS;
  for (sizes.longest = 1; sizes.longest <= 100000; sizes.longest *= 10) {
    int64_t splits = 0, bytes = 0;
    OK(hd_kernel_splits(k, &sizes, &splits));
    cr_assert(splits == 2 || splits == 3, "%d splits for %d tokens", (int)splits, (int)sizes.longest);
    OK(hd_kernel_workspace(k, &sizes, &bytes));
    cr_assert_gt(bytes, 0);
  }
  hd_arguments by_policy = engine_arguments(&e, 0);
  OK(hd_launch(k, &by_policy, NULL, why));
  engine_out(&e, out[0]);
  by_policy.splits = 3;
  OK(hd_launch(k, &by_policy, NULL, why));
  engine_out(&e, out[1]);
  cr_assert_eq(difference(out[0], out[1]), 0.0, "a page table of this length is split in three");
  hd_kernel_release(k);
  hd_contract_destroy(listed);
  engine_close(&e);
}

/* Workspace asked for with the largest sizes is enough for every smaller launch, whatever the policy splits.
 */
Test(api_launches, workspace_is_enough_for_smaller_launches) {
  engine e;
  engine_open(&e, device_at(0));
  MAKE(hd_sizes, most);
  int64_t room = 0, bytes = 0, splits = 0;
  most.seqs = 70;
  most.kv_heads = 4;
  most.longest = 20000;
  OK(hd_kernel_workspace(e.decode, &most, &room));
  cr_assert_gt(room, 0);
  hd_sizes s = most;
  for (s.seqs = 1; s.seqs <= most.seqs; s.seqs += 3)
    for (s.longest = 1; s.longest <= most.longest; s.longest = s.longest * 3 + 1)
      for (s.kv_heads = 1; s.kv_heads <= most.kv_heads; s.kv_heads++) {
        s.splits = 0;
        OK(hd_kernel_splits(e.decode, &s, &splits));
        s.splits = splits;
        OK(hd_kernel_workspace(e.decode, &s, &bytes));
        cr_assert_leq(bytes, room, "%lld seqs, %lld heads, %lld tokens", (long long)s.seqs,
                      (long long)s.kv_heads, (long long)s.longest);
      }
  engine_close(&e);
}

Test(api_launches, parts_say_what_would_be_launched) {
  engine e;
  engine_open(&e, device_at(0));
  MAKE(hd_kernel_info, info);
  MAKE(hd_sizes, sizes);
  MAKE(hd_part, part);
  OK(hd_kernel_get_info(e.decode, &info));
  cr_assert_str_eq(info.contract_name, "nhd");
  cr_assert_str_eq(info.operation, "decode");
  cr_assert_str_eq(info.target, "gfx950");
  cr_assert_str_eq(info.variant, "default");
  cr_assert_eq(strlen(info.code_key), 64u);
  cr_assert_eq(memcmp(info.code_object, "\177ELF", 4), 0);
  cr_assert_gt(info.code_object_bytes, 1000u);
  cr_assert(strstr(info.descriptor, info.contract_key) != NULL);
  cr_assert_eq(info.parts, 2, "decode and merge");
  sizes.seqs = 5;
  sizes.kv_heads = 2;
  sizes.longest = 1000;
  sizes.splits = 1;
  OK(hd_kernel_part(e.decode, 0, &sizes, &part));
  cr_assert_eq(part.launched, 1);
  cr_assert_eq(part.grid[0] * part.grid[1] * part.grid[2] % 10, 0u, "a multiple of sequences and heads");
  cr_assert_gt(part.threads, 0u);
  const uint32_t unsplit = part.grid[0] * part.grid[1] * part.grid[2];
  OK(hd_kernel_part(e.decode, 1, &sizes, &part));
  cr_assert_eq(part.launched, 0, "nothing to merge");
  sizes.splits = 3;
  OK(hd_kernel_part(e.decode, 0, &sizes, &part));
  cr_assert_eq(part.grid[0] * part.grid[1] * part.grid[2], 3 * unsplit);
  OK(hd_kernel_part(e.decode, 1, &sizes, &part));
  cr_assert_eq(part.launched, 1);
  cr_assert_eq(hd_kernel_part(e.decode, 2, &sizes, &part), HD_INVALID);
  engine_close(&e);
}

/* Destroyed in the least likely order. */
Test(api_launches, objects_keep_alive_what_they_need) {
  engine e;
  hd_binding *b = NULL;
  float out[OUT_FLOATS];
  engine_open(&e, device_at(0));
  const hd_arguments a = engine_arguments(&e, 1);
  OK(hd_bind(e.decode, &a, &b, why));
  hd_contract_destroy(e.contract);
  hd_kernel_release(e.decode);
  OK(hd_binding_launch(b, NULL, why));
  engine_out(&e, out);
  cr_assert(!isnan(out[0]));
  hd_context_destroy(e.context);
  OK(hd_binding_launch(b, NULL, why));
  hd_binding_destroy(b);
}
