/* Claims about what source and descriptor say of each other, for every operation and variant. */
#include "emit_fixture.h"

static void descriptor_fits(const contract *c, const emission *e, const char *what) {
  const descriptor *d = &e->descriptor;
  const target *t = target_find(d->target);
  char key[65];
  cr_assert_eq(contract_key(c, key), HD_OK);
  cr_expect_str_eq(d->contract_key, key, "%s", what);
  cr_expect_str_eq(d->variant, "default", "%s", what);
  cr_assert(d->kernel_count >= 1 && d->kernel_count <= DESCRIPTOR_MAX_KERNELS, "%s", what);
  cr_expect_gt(d->tile_tokens, 0, "%s", what);
  for (int i = 0; i < d->kernel_count; i++) {
    const kernel_descriptor *k = &d->kernels[i];
    parameters_match(e->source, k, what);
    cr_expect(k->block > 0 && k->block <= 1024 && k->block % t->wave == 0, "%s: %s has %d threads", what,
              k->symbol, k->block);
    cr_expect_leq(k->lds_bytes, t->lds_bytes, "%s", what);
    unsigned tensors = 0;
    for (int n = 0; n < k->argument_count; n++)
      if (k->arguments[n].kind == ARGUMENT_TENSOR) {
        cr_expect_not(tensors & 1u << k->arguments[n].index, "%s: %s twice", what,
                      argument_name(k->arguments[n]));
        tensors |= 1u << k->arguments[n].index;
      }
    cr_expect_eq((tensors & 1u << TENSOR_LSE) != 0, c->output.lse && strcmp(d->operation, "decode") == 0,
                 "%s", what);
  }
  text json;
  text_init(&json);
  descriptor_write(d, &json);
  descriptor back;
  cr_expect_eq(descriptor_parse(text_string(&json), json.length, &back), HD_OK, "%s", what);
  text_finish(&json);
}

Test(emit, descriptor_and_source_agree_on_every_parameter) {
  for_each_shipped(descriptor_fits);
}

static int64_t sample_dims[DIM_COUNT] = {
    [DIM_SEQS] = 5,   [DIM_ROWS] = 1,     [DIM_KV_HEADS] = 3,    [DIM_PAGES] = 1000,
    [DIM_SPLITS] = 7, [DIM_TOKENS] = 101, [DIM_TABLE_PAGES] = 64};

Test(emit, grids_and_workspace_are_these_numbers) {
  contract c = shipped("minimax-m3-dense-fp8");
  emission e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx950"));
  cr_assert_eq(e.descriptor.kernel_count, 2);
  const kernel_descriptor *decode = &e.descriptor.kernels[0], *merge = &e.descriptor.kernels[1];
  cr_expect_str_eq(decode->symbol, "heddle_decode");
  cr_expect_str_eq(merge->symbol, "heddle_merge");
  cr_expect_eq(extent_value(&decode->grid[0], sample_dims), 5);
  cr_expect_eq(extent_value(&decode->grid[1], sample_dims), 3);
  cr_expect_eq(extent_value(&decode->grid[2], sample_dims), 7);
  cr_expect_not(decode->only_when_split);
  cr_expect(merge->only_when_split);
  /* 16 heads of 128 values, a maximum of each kind, a sum and a blank, 4 bytes each */
  cr_expect_eq(extent_value(&e.descriptor.workspace, sample_dims), 5 * 3 * 7 * 16 * (128 + 4) * 4);
  emission_finish(&e);

  e = emitted(&c, OPERATION_WRITE, &(variant){0}, target_find("gfx950"));
  cr_assert_eq(e.descriptor.kernel_count, 1);
  const kernel_descriptor *writer = &e.descriptor.kernels[0];
  /* 303 rows of 16 lanes, 256 lanes a workgroup: 18.9 */
  cr_expect_eq(extent_value(&writer->grid[0], sample_dims), 19);
  cr_expect_eq(extent_value(&writer->grid[1], sample_dims), 1);
  cr_expect_eq(extent_value(&writer->grid[2], sample_dims), 1);
  cr_expect_eq(writer->block, 256);
  cr_expect_eq(extent_value(&e.descriptor.workspace, sample_dims), 0);
  emission_finish(&e);
}

Test(emit, arguments_follow_the_contract) {
  contract c = shipped("nhd-fp16"); /* no scales, rsqrt_d */
  emission e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx942"));
  cr_expect_null(strstr(e.source, "logits_scale,"));
  cr_expect_null(strstr(e.source, "k_scale_stride_b"));
  int plain = e.descriptor.kernels[0].argument_count;
  emission_finish(&e);
  c.output.lse = true;
  c.logits.scale = LOGITS_ARGUMENT;
  e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx942"));
  cr_expect_eq(e.descriptor.kernels[0].argument_count, plain + 2);
  descriptor_fits(&c, &e, "nhd-fp16 with lse");
  emission_finish(&e);
}

static bool takes(const kernel_descriptor *k, argument_kind kind, int index) {
  for (int i = 0; i < k->argument_count; i++)
    if (k->arguments[i].kind == kind && k->arguments[i].index == index) return true;
  return false;
}

/* Of every kernel of an emission: which of K's and V's scale it takes, and that it takes it as it should. */
static void scales_come(const emission *e, bool as_numbers, int kernel, bool k_scale, bool v_scale,
                        const char *what) {
  const kernel_descriptor *k = &e->descriptor.kernels[kernel];
  const argument_kind kind = as_numbers ? ARGUMENT_NUMBER : ARGUMENT_TENSOR,
                      other = as_numbers ? ARGUMENT_TENSOR : ARGUMENT_NUMBER;
  const int own[] = {as_numbers ? (int)NUMBER_K_SCALE : (int)TENSOR_K_SCALE,
                     as_numbers ? (int)NUMBER_V_SCALE : (int)TENSOR_V_SCALE};
  const int others[] = {as_numbers ? (int)TENSOR_K_SCALE : (int)NUMBER_K_SCALE,
                        as_numbers ? (int)TENSOR_V_SCALE : (int)NUMBER_V_SCALE};
  const bool wanted[] = {k_scale, v_scale};
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(takes(k, kind, own[i]), wanted[i], "%s: %s, scale %d", what, k->symbol, i);
    cr_expect_not(takes(k, other, others[i]), "%s: %s, scale %d", what, k->symbol, i);
  }
}

/* In every structure of every target, whatever lists the pages; where V lies in K its scale is K's. */
Test(emit, scales_of_a_tensor_are_pointers_or_numbers) {
  static const struct {
    const char *spec, *target, *variant;
    bool shared;
  } cases[] = {{"vllm-rocm-classic-fp8", "gfx942", "default", false},
               {"vllm-rocm-classic-fp8", "gfx950", "direct", false},
               {"vllm-rocm-classic-fp8", "gfx950", "ring", false},
               {"vllm-rocm-classic-fp8", "gfx1201", "default", false},
               {"vllm-rocm-classic-fp8", "gfx1250", "ring", false},
               {"vllm-rocm-classic-fp8", "sm_90", "direct", false},
               {"minimax-m3-dense-fp8", "sm_90", "ring", false},
               {"deepseek-mla-fp8", "gfx950", "default", true},
               {"minimax-m3-sparse-blocks-fp8", "gfx942", "default", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int numbers = 0; numbers < 2; numbers++) {
      const target *t = target_find(cases[i].target);
      contract c = shipped(cases[i].spec);
      variant v;
      char what[96];
      cr_assert(variant_parse(cases[i].variant, &v));
      snprintf(what, sizeof what, "%s on %s, %s", cases[i].spec, cases[i].target,
               numbers ? "argument" : "memory");
      c.scale.granularity = SCALE_TENSOR;
      c.scale.k.count = c.scale.v.count = 0;
      c.scale.argument = numbers;
      emission e = emitted(&c, OPERATION_WRITE, &(variant){0}, t);
      scales_come(&e, numbers, 0, true, !cases[i].shared, what);
      descriptor_fits(&c, &e, what);
      emission_finish(&e);
      e = emitted(&c, OPERATION_DECODE, &v, t);
      const int first = contract_makes_lists(&c); /* behind heddle_select */
      scales_come(&e, numbers, first, true, !cases[i].shared, what);
      scales_come(&e, numbers, first + 1, cases[i].shared, !cases[i].shared, what);
      for (int k = 0; k < e.descriptor.kernel_count; k++)
        parameters_match(e.source, &e.descriptor.kernels[k], what);
      emission_finish(&e);
    }
}

/* ---- operations and variants ---- */

Test(emit, operations_a_spec_can_ask_for_have_names) {
  for (int o = 0; o < 2; o++) {
    operation found;
    cr_assert(operation_parse(operation_name(operations[o]), &found));
    cr_expect_eq(found, operations[o]);
  }
  operation untouched = OPERATION_DECODE;
  static const char *const strangers[] = {"", "merge", "Decode", "decode ", "read"};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
    cr_expect_not(operation_parse(strangers[i], &untouched), "%s", strangers[i]);
  cr_expect_eq(untouched, OPERATION_DECODE);
}

Test(emit, a_variants_text_is_read_back_and_has_one_spelling) {
  static const int numbers[] = {0, 1, 2, 9, 10, 16};
  for (int i = 0; i < 3 * 6 * 6 * 6 * 2; i++) {
    variant v = {.structure = (structure)(i % 3),
                 .waves = numbers[i / 3 % 6],
                 .stages = numbers[i / 18 % 6],
                 .resident = numbers[i / 108 % 6],
                 .tile = i % 7 * 64,
                 .line = i >= 648};
    variant back;
    text t;
    text_init(&t);
    variant_write(&v, &t);
    cr_assert(variant_parse(text_string(&t), &back), "%s", text_string(&t));
    cr_expect(back.structure == v.structure && back.waves == v.waves && back.stages == v.stages &&
                  back.resident == v.resident && back.tile == v.tile && back.line == v.line,
              "%s", text_string(&t));
    text_finish(&t);
  }
  static const char *const refused[] = {"",
                                        "w",
                                        "w0",
                                        "w17",
                                        "w-1",
                                        "w 4",
                                        "w+4",
                                        "w04",
                                        "W4",
                                        "4",
                                        "x4",
                                        "w4x",
                                        "w4 ",
                                        " w4",
                                        "w4-",
                                        "-w4",
                                        "w4--w4",
                                        "w4-w4",
                                        "w4,",
                                        "def",
                                        "default-w4",
                                        "w4-default",
                                        "w99999999999999999999",
                                        "s4-w4",
                                        "w4-ring",
                                        "w4-line",
                                        "line-ring",
                                        "line-line",
                                        "lines",
                                        "ring-direct",
                                        "auto",
                                        "ringw4",
                                        "o2-s2"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    variant v = {.waves = 77};
    cr_expect_not(variant_parse(refused[i], &v), "'%s'", refused[i]);
    cr_expect_eq(v.waves, 77, "'%s': the result is left alone", refused[i]);
  }
}

Test(emit, the_variant_reaches_descriptor_and_source) {
  contract c = shipped("minimax-m3-dense-fp8");
  const target *t = target_find("gfx950");
  emission two = emitted(&c, OPERATION_DECODE, &(variant){.waves = 2}, t);
  emission eight = emitted(&c, OPERATION_DECODE, &(variant){.waves = 8}, t);
  cr_expect_str_eq(two.descriptor.variant, "w2");
  cr_expect_eq(two.descriptor.kernels[0].block, 128);
  cr_expect_eq(eight.descriptor.kernels[0].block, 512);
  cr_expect_not_null(strstr(eight.source, "constexpr int WAVES = 8;"));
  cr_expect_str_eq(two.descriptor.contract_key, eight.descriptor.contract_key);
  emission_finish(&two);
  emission_finish(&eight);
}

/* 304 compute units; a batch of three lists by rows, one sequence and 17 kv heads has no other workspace than
 * one of a single list. */
Test(emit, parts_of_a_line_have_a_grid_and_workspace_whatever_the_batch) {
  int64_t dims[DIM_COUNT] = {
      [DIM_SEQS] = 1, [DIM_ROWS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 608, [DIM_LIST_WIDTH] = 9};
  contract mla = shipped("deepseek-mla-bf16"), blocks = shipped("minimax-m3-sparse-blocks-fp8");
  const contract *contracts[] = {&mla, &blocks};
  for (int i = 0; i < 2; i++)
    for (size_t n = 0; n < target_count(); n++) {
      const contract *c = contracts[i];
      emission e = emitted(c, OPERATION_DECODE, &(variant){.line = true}, target_at(n));
      const descriptor *d = &e.descriptor;
      const kernel_descriptor *decode = &d->kernels[d->kernel_count - 2],
                              *merge = &d->kernels[d->kernel_count - 1];
      cr_expect_gt(d->line_parts, 0);
      cr_expect_str_eq(decode->symbol, "heddle_decode");
      cr_expect_eq(extent_value(&decode->grid[0], dims), 608);
      cr_expect_eq(extent_value(&merge->grid[0], dims), 608);
      cr_expect_eq(extent_value(&decode->grid[2], dims), 1);
      cr_expect_eq(decode->waits_itself, target_at(n)->family == FAMILY_CUDA);
      int64_t bytes = extent_value(&d->workspace, dims);
      cr_expect_eq(bytes, 608 * 2 * (int64_t)c->query.heads_per_kv * (c->head_dim.v + 4) * 4, "%s",
                   target_at(n)->name);
      dims[DIM_SEQS] = 3, dims[DIM_KV_HEADS] = 17;
      cr_expect_eq(extent_value(&d->workspace, dims), bytes);
      cr_expect_eq(extent_value(&decode->grid[1], dims), decode->grid[1].multiplier);
      dims[DIM_SEQS] = dims[DIM_KV_HEADS] = 1;
      emission_finish(&e);
    }
}

/* 65535 parts of 128 heads with 512 channels are more than 2^31 words. */
Test(emit, partial_results_lie_at_64_bit_places) {
  contract mla = shipped("deepseek-mla-bf16");
  for (int line = 0; line < 2; line++)
    for (size_t n = 0; n < target_count(); n++) {
      emission e = emitted(&mla, OPERATION_DECODE, &(variant){.line = line}, target_at(n));
      cr_expect_not_null(strstr(e.source, "(i64)(partial_number * (ROWS * HEADS) + column) * PARTIAL_WORDS"),
                         "%s, line %d", target_at(n)->name, line);
      emission_finish(&e);
    }
}
