/* What the compiler made of the shipped specs on the AMD targets, read from the code objects: nothing
 * spilled, LDS and arguments as the plan and the descriptor say. Compiled by clang and lld through the
 * compile service. */
#include "../../generator/emit.h"
#include "../../generator/plan.h"
#include "../../runtime/object/codeobject.h"
#include "../../runtime/compile/compile.h"
#include "../../runtime/object/inspect.h"
#include "../spec_fixture.h"
#include "../layout_fixture.h"

enum { MAX_JOBS = 64 };

typedef struct built {
  contract contract;
  const target *target;
  emission emission;
  char name[96];
  variant variant;
  bool may_spill; /* contracts nobody ships: they have to compile and to be right, not to be fast */
} built;

static built all[MAX_JOBS];
static compile_request requests[MAX_JOBS];
static compile_result results[MAX_JOBS];
static int count;

static void set_up(void) {
  const char *build = getenv("HEDDLE_BUILD");
  char path[4096];
  if (!build) return;
  snprintf(path, sizeof path, "%s/heddle-compile-worker", build);
  setenv("HEDDLE_WORKER", path, 1);
}

static void tear_down(void) {
  for (int i = 0; i < count; i++) {
    emission_finish(&all[i].emission);
    compile_result_finish(&results[i]);
  }
  count = 0;
}

TestSuite(resources, .init = set_up, .fini = tear_down);

static void add_variant(const contract *c, const char *spec_name, operation o, const char *target_name,
                        variant v, bool may_spill) {
  cr_assert_lt(count, MAX_JOBS);
  built *b = &all[count];
  *b = (built){.contract = *c, .target = target_find(target_name), .variant = v, .may_spill = may_spill};
  snprintf(b->name, sizeof b->name, "%s/%s/%s", spec_name, operation_name(o), target_name);
  diags problems;
  diags_init(&problems);
  cr_assert_eq(emit_operation(c, o, &v, b->target, templates_embedded(), &b->emission, &problems), HD_OK,
               "%s", b->name);
  diags_finish(&problems);
  requests[count++] = (compile_request){.source = b->emission.source, .name = b->name, .target = b->target};
}

static void add(const contract *c, const char *spec_name, operation o, const char *target_name,
                bool may_spill) {
  add_variant(c, spec_name, o, target_name, (variant){0}, may_spill);
}

static void compile_everything(void) {
  compiler clang;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(compiler_find(COMPILER_LLVM, target_find("gfx950"), &clang, &problems), HD_OK, "%s",
               problems.count ? problems.items[0].message : "");
  diags_finish(&problems);
  compile_all(&clang, requests, results, count, 1, NULL); /* the tests themselves run side by side */
}

static void kernel_fits(const built *b, const kernel_descriptor *k, const codeobject_kernel *made) {
  const target *t = b->target;
  if (!b->may_spill) {
    cr_expect_eq(made->vgpr_spills, 0, "%s: %s spills %u vector registers", b->name, k->symbol,
                 made->vgpr_spills);
    cr_expect_eq(made->sgpr_spills, 0, "%s: %s spills %u scalar registers", b->name, k->symbol,
                 made->sgpr_spills);
    cr_expect_eq(made->scratch, 0, "%s: %s has %u bytes of scratch", b->name, k->symbol, made->scratch);
  }
  cr_expect_leq((int)made->vgprs, t->vgprs, "%s: %s", b->name, k->symbol);
  cr_expect_leq((int)made->static_lds + k->lds_bytes, t->lds_bytes, "%s: %s has %u bytes of LDS", b->name,
                k->symbol, made->static_lds);
  cr_expect_eq((int)made->wave, t->wave, "%s: %s", b->name, k->symbol);
  cr_expect_geq((int)made->max_workgroup, k->block, "%s: %s", b->name, k->symbol);
  size_t offsets[DESCRIPTOR_MAX_ARGUMENTS];
  cr_expect_eq(made->kernarg_size, kernel_arguments_layout(k, offsets), "%s: %s takes %u bytes of arguments",
               b->name, k->symbol, made->kernarg_size);
  cr_assert_geq(made->argument_count, k->argument_count, "%s: %s", b->name, k->symbol);
  for (int i = 0; i < k->argument_count; i++) {
    const codeobject_argument *a = &made->arguments[i];
    cr_expect(a->offset == offsets[i] && a->size == argument_bytes(k->arguments[i]),
              "%s: %s: %s at %u, %u bytes", b->name, k->symbol, argument_name(k->arguments[i]), a->offset,
              a->size);
    cr_expect_eq(strcmp(a->value_kind, "global_buffer") == 0, k->arguments[i].kind == ARGUMENT_TENSOR,
                 "%s: %s: %s is %s", b->name, k->symbol, argument_name(k->arguments[i]), a->value_kind);
  }
}

static void lds_is_as_planned(const built *b, const codeobject_kernel *made) {
  contract resolved = contract_resolve(&b->contract, b->target->fp8);
  decode_plan p;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(plan_decode(&resolved, &b->variant, b->target, &p, &problems), HD_OK);
  diags_finish(&problems);
  if (p.structure == STRUCTURE_DIRECT || b->target->family != FAMILY_CUDA)
    cr_expect_eq((int)made->static_lds, p.lds_bytes, "%s: %u bytes of LDS, %d planned", b->name,
                 made->static_lds, p.lds_bytes);
}

#ifdef HEDDLE_WITH_EMU
/* What the main loop has to do for a tile and no more: K and V 16 bytes at a time wherever the plan says that
 * they can be, no K widened where the target has products of its format, nothing through scratch. */
static void loop_is_as_planned(const built *b, const inspect_kernel *k) {
  contract resolved = contract_resolve(&b->contract, b->target->fp8);
  int k_bytes = dtype_bytes(resolved.kv.k_dtype), v_bytes = dtype_bytes(resolved.kv.v_dtype), wide = 0;
  decode_plan p;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(plan_decode(&resolved, &b->variant, b->target, &p, &problems), HD_OK);
  diags_finish(&problems);
  cr_assert(k->has_loop, "%s has no loop", b->name);
  if (p.k_load * k_bytes == 16) wide += p.score_tiles * p.k_list * k_bytes;
  if (p.v_tokens * p.v_channels * v_bytes == 16) wide += p.value_tiles * p.list * v_bytes;
  if (p.tail_op && p.tail_load * 2 == 16) wide += p.score_tiles * p.tail_list * 2;
  if (p.structure ==
      STRUCTURE_RING) /* a wave copies its tile past its registers, 16 bytes a lane at a time */
    wide = p.tile * (resolved.head_dim.qk * k_bytes + resolved.head_dim.v * v_bytes) / b->target->wave;
  /* Compilers may join loads that the plan has narrower. */
  cr_expect_geq(k->loop.load_bytes_16, wide,
                "%s: %d bytes a lane are loaded 16 at a time, %d of a tile can be", b->name,
                k->loop.load_bytes_16, wide);
  cr_expect_eq(k->all.scratch, 0, "%s uses scratch %d times", b->name, k->all.scratch);
  cr_expect_gt(k->loop.matrix, 0, "%s has no matrix instruction in its loop", b->name);
  /* Requests in an order that leaves one on its way at every wait. */
  if (p.structure == STRUCTURE_DIRECT && p.steady && p.k_pieces == 1 && !p.line)
    cr_expect_eq(k->loop.draining, 0, "%s: nothing is on its way behind %d of %d waits", b->name,
                 k->loop.draining, k->loop.waits);
  /* Packed: two elements an instruction. */
  int widened = (p.widen ? p.score_tiles * p.k_list : 0) + (p.value_widen ? p.value_tiles * p.list : 0);
  /* With the line of tiles the loop found is that over items, which converts their queries too. */
  if (resolved.kv.k_dtype == b->target->fp8 && !p.line)
    cr_expect_leq(2 * k->loop.fp8_conversions, widened,
                  "%s: %d fp8 conversions in the loop, %d elements to widen", b->name,
                  k->loop.fp8_conversions, widened);
}

static void inspect_built(const built *b, const compile_result *r) {
  static inspection found;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(inspect_code_object(r->code_object, r->code_object_size, &found, &problems), HD_OK, "%s: %s",
               b->name, problems.count ? problems.items[0].message : "");
  diags_finish(&problems);
  for (int i = 0; i < found.count; i++) {
    const inspect_kernel *k = &found.kernels[i];
    if (strcmp(k->resources.symbol, "heddle_decode") == 0) loop_is_as_planned(b, k);
    if (k->waves_per_simd >= 0)
      cr_expect_gt(k->waves_per_simd, 0, "%s: no workgroup of %s fits a compute unit", b->name,
                   k->resources.symbol);
  }
}
#endif

static void object_fits(const built *b, const compile_result *r) {
  static codeobject object;
  const descriptor *d = &b->emission.descriptor;
  cr_assert_eq(r->status, HD_OK, "%s: %s", b->name,
               r->log           ? r->log
               : r->diags.count ? r->diags.items[0].message
                                : "");
  diags problems;
  diags_init(&problems);
  cr_assert_eq(codeobject_parse(r->code_object, r->code_object_size, &object, &problems), HD_OK, "%s",
               b->name);
  diags_finish(&problems);
  cr_expect_eq(object.machine, b->target->elf_machine, "%s", b->name);
  cr_expect_str_eq(object.target, b->target->name);
  cr_expect_eq(object.kernel_count, d->kernel_count, "%s has %d kernels", b->name, object.kernel_count);
  for (int i = 0; i < d->kernel_count; i++) {
    const codeobject_kernel *made = NULL;
    for (int n = 0; n < object.kernel_count; n++)
      if (strcmp(object.kernels[n].symbol, d->kernels[i].symbol) == 0) made = &object.kernels[n];
    cr_assert_not_null(made, "%s: no kernel %s", b->name, d->kernels[i].symbol);
    kernel_fits(b, &d->kernels[i], made);
    if (strcmp(d->kernels[i].symbol, "heddle_decode") == 0) lds_is_as_planned(b, made);
  }
}

static const char *const amd_targets[] = {EMULATED_TARGETS};

static void shipped_on(const char *target_name) {
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    char *yaml = read_shipped(shipped_specs[i]);
    spec s = parse_good(yaml);
    add(&s.contract, shipped_specs[i], OPERATION_WRITE, target_name, false);
    add(&s.contract, shipped_specs[i], OPERATION_DECODE, target_name, false);
    /* The ring besides: a shuffled layout and a plain one. */
    if (target_find(target_name)->ring_prelude &&
        (strstr(shipped_specs[i], "dense") || strstr(shipped_specs[i], "llama")))
      add_variant(&s.contract, shipped_specs[i], OPERATION_DECODE, target_name,
                  (variant){.structure = STRUCTURE_RING}, false);
    /* And parts of the line of tiles, whose loop over items takes registers. */
    if (strstr(shipped_specs[i], "dense") || strstr(shipped_specs[i], "656"))
      add_variant(&s.contract, shipped_specs[i], OPERATION_DECODE, target_name, (variant){.line = true},
                  false);
    spec_finish(&s);
    free(yaml);
  }
  compile_everything();
  for (int i = 0; i < count; i++) {
    object_fits(&all[i], &results[i]);
#ifdef HEDDLE_WITH_EMU
    inspect_built(&all[i], &results[i]);
#endif
  }
}

Test(resources, shipped_specs_neither_spill_nor_overflow_on_gfx942) {
  shipped_on("gfx942");
}
Test(resources, shipped_specs_neither_spill_nor_overflow_on_gfx950) {
  shipped_on("gfx950");
}
Test(resources, shipped_specs_neither_spill_nor_overflow_on_gfx1201) {
  shipped_on("gfx1201");
}
Test(resources, shipped_specs_neither_spill_nor_overflow_on_gfx1250) {
  shipped_on("gfx1250");
}

/* Wide heads where four waves do not fit the LDS, single-token pages, pages smaller than a lane's list or no
 * power of two, h inside the slots, odd groups. */
Test(resources, contracts_at_the_edge_of_what_is_served_compile_everywhere) {
  static const char *const cases[][2] = {
      {"wide", "heddle: 1\nquery: {heads_per_kv: 16}\nhead_dim: 256\n"
               "kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}\n"},
      {"single", "heddle: 1\nquery: {heads_per_kv: 7, dtype: fp16}\nhead_dim: {qk: 192, v: 128}\n"
                 "kv: {dtype: fp8_e4m3, page: 1, k: [b, h, d], v: [b, h, d]}\n"
                 "scale: {granularity: token_head, dtype: fp16, k: [h, b, s], v: [b, s, h]}\n"
                 "output: {dtype: fp32, lse: true}\nlogits: {scale: 0.125}\n"},
      {"narrow", "heddle: 1\nquery: {heads_per_kv: 1}\nhead_dim: 64\n"
                 "kv: {dtype: fp8_e4m3, page: 24, k: [b, d, s, h], v: [b, s/4, h, d, s%4]}\n"
                 "scale: {granularity: tensor}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    spec s = parse_good(cases[i][1]);
    for (size_t n = 0; n < 4; n++) {
      add(&s.contract, cases[i][0], OPERATION_DECODE, amd_targets[n], true);
      if (i > 0 && n == 1) add(&s.contract, cases[i][0], OPERATION_WRITE, amd_targets[n], true);
    }
    spec_finish(&s);
  }
  compile_everything();
  for (int i = 0; i < count; i++)
    object_fits(&all[i], &results[i]);
}

/* Eight rows of 64 heads, and loads of single bytes over pages of three: both once spilled on gfx1250. */
Test(resources, heavy_contracts_do_not_spill_on_gfx1250) {
  static const char *const cases[][2] = {
      {"rows", "heddle: 1\nkernels: [decode]\nquery: {heads_per_kv: 64, rows: 8}\nhead_dim: 128\n"
               "kv: {dtype: fp8_e4m3, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n"
               "scale: {granularity: tensor}\nmask: {window: 128}\n"},
      {"bytes", "heddle: 1\nkernels: [decode]\nquery: {heads_per_kv: 8}\nhead_dim: 128\n"
                "kv: {dtype: fp8_e4m3, page: 3, k: [b, h, d, s], v: [b, h, d, s]}\n"
                "scale: {granularity: token_head}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    spec s = parse_good(cases[i][1]);
    add(&s.contract, cases[i][0], OPERATION_DECODE, "gfx1250", false);
    spec_finish(&s);
  }
  compile_everything();
  for (int i = 0; i < count; i++)
    object_fits(&all[i], &results[i]);
}

/* Groups of K's channels are taken a piece at a time, so a latent cache's rows of queries fit 256 registers. */
Test(resources, rows_over_a_latent_cache_of_records_fit_gfx1201) {
  char *yaml = read_shipped("deepseek-mla-fp8-656");
  char *rows = spec_with(yaml, "heads_per_kv: 16\n", "heads_per_kv: 16\n  rows: 2\n");
  spec s = parse_good(rows);
  add(&s.contract, "rows", OPERATION_DECODE, "gfx1201", false);
  spec_finish(&s);
  free(rows);
  free(yaml);
  compile_everything();
  for (int i = 0; i < count; i++)
    object_fits(&all[i], &results[i]);
}

/* LLVM put a lane's scales, an array of bytes, into LDS, and read them back two words at a time off a word,
 * which gfx1250 can't (docs/targets.md). */
Test(resources, scales_of_a_byte_stay_in_registers) {
  spec s = parse_good(
      "heddle: 1\nkernels: [decode]\nquery: {dtype: fp16, heads_per_kv: 4, rows: 8}\n"
      "head_dim: {qk: 96, v: 112}\n"
      "kv: {dtype: {k: fp8_e5m2, v: fp8_e4m3}, page: 24, k: [b, h, d/8, s, d%8], v: [b, h, s, d]}\n"
      "scale: {granularity: group, group: 16, dtype: e8m0}\n"
      "select: {form: indptr, index: int64}\nmask: {causal: false, window: 128}\n");
  add_variant(&s.contract, "bytes", OPERATION_DECODE, "gfx1250", (variant){.waves = 4}, true);
  add_variant(&s.contract, "bytes", OPERATION_DECODE, "gfx942", (variant){.waves = 4}, true);
  spec_finish(&s);
  compile_everything();
  for (int i = 0; i < count; i++)
    object_fits(&all[i], &results[i]);
}
