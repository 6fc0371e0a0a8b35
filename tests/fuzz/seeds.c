/* Writes what the fuzzers begin with, a folder a target: seeds STAMP OUT SPEC.yaml… CODE_OBJECT.co…
 *
 * Specs and code objects as they are; of specs their layouts and launch descriptors; of code objects cache
 * entries, a pack and servers' answers. The rest is short and stands here. */
#include "../../generator/emit.h"
#include "../../generator/spec.h"
#include "../../runtime/cache/cache_file.h"
#include "../../runtime/object/codeobject.h"
#include "../../runtime/object/elf64.h"
#include "../../runtime/file.h"
#include "../../runtime/npy.h"
#include "../../runtime/cache/pack_file.h"
#include "../../runtime/tune/tune.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *out_folder;

static void stop(const char *what, const char *on) {
  fprintf(stderr, "seeds: %s: %s\n", on, what);
  exit(1);
}

static void save(const char *target_name, const char *name, const void *bytes, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", out_folder, target_name);
  if (file_make_folders(path, 0755) != HD_OK) stop(strerror(errno), path);
  snprintf(path, sizeof path, "%s/%s/%s", out_folder, target_name, name);
  if (file_write_atomic(AT_FDCWD, path, 0644, bytes, size) != HD_OK) stop(strerror(errno), path);
}

static void save_text(const char *target_name, const char *name, text *t) {
  if (t->failed) stop("out of memory", name);
  save(target_name, name, text_string(t), t->length);
  text_clear(t);
}

static void layout_seed(const layout *l, unsigned axes, int page, int head_dim, const char *name) {
  text words, seed;
  text_init(&words);
  text_init(&seed);
  layout_write(l, &words);
  text_addf(&seed, "%d %d %u\n", page, head_dim, axes);
  for (const char *at = text_string(&words); *at != '\0'; at++)
    if (*at == ',')
      text_add(&seed, "\n");
    else if (strchr("[] ", *at) == NULL)
      text_add_bytes(&seed, at, 1);
  save_text("layout", name, &seed);
  text_finish(&words);
  text_finish(&seed);
}

/* Descriptors of each target in turn: all of them would be as many again. */
static void descriptor_seeds(const spec *s, const char *name, int index) {
  for (operation o = OPERATION_WRITE; o <= OPERATION_DECODE; o++) {
    const target *t = target_at(((size_t)index + (size_t)o) % target_count());
    const variant chosen = {0};
    char file[160];
    emission e;
    text json;
    diags problems;
    diags_init(&problems);
    text_init(&json);
    if (emit_operation(&s->contract, o, &chosen, t, templates_embedded(), &e, &problems) == HD_OK) {
      descriptor_write(&e.descriptor, &json);
      snprintf(file, sizeof file, "%s-%s-%s", name, operation_name(o), t->name);
      save_text("descriptor", file, &json);
      emission_finish(&e);
    }
    text_finish(&json);
    diags_finish(&problems);
  }
}

static void spec_seeds(const char *path, const char *name, int index) {
  char *bytes = NULL, file[160];
  size_t size = 0;
  spec s;
  diags problems;
  diags_init(&problems);
  if (file_read(AT_FDCWD, path, 1 << 20, &bytes, &size) != HD_OK) stop(strerror(errno), path);
  if (spec_parse(bytes, size, &s, &problems) != HD_OK) stop("not valid", path);
  save("spec", name, bytes, size);
  const contract *c = &s.contract;
  unsigned axes = contract_scale_axes(c->scale.granularity);
  snprintf(file, sizeof file, "%s-k", name);
  layout_seed(&c->kv.k, (1u << AXIS_COUNT) - 1, c->kv.page, contract_coded_k(c), file);
  snprintf(file, sizeof file, "%s-scale", name);
  if (axes != 0)
    layout_seed(&c->scale.k, axes, c->kv.page, contract_coded_k(c) / (c->scale.group_k + !c->scale.group_k),
                file);
  descriptor_seeds(&s, name, index);
  spec_finish(&s);
  diags_finish(&problems);
  free(bytes);
}

/* A descriptor with this code object's first kernel, whose arguments need not be what the kernel takes: some
 * entries are refused for that, which is a seed, too. */
static void describe(const codeobject *o, descriptor *out) {
  const extent one = {.multiplier = 1, .divisor = 1};
  *out = (descriptor){.operation = "decode",
                      .variant = "w4",
                      .contract_key = "c0ffee",
                      .tile_tokens = 16,
                      .kernel_count = 1,
                      .workspace = one};
  snprintf(out->target, sizeof out->target, "%s", o->target);
  kernel_descriptor *k = &out->kernels[0];
  *k = (kernel_descriptor){.grid = {one, one, one}, .block = 64};
  memcpy(k->symbol, o->kernels[0].symbol, sizeof k->symbol);
  for (int i = 0; i < o->kernels[0].argument_count && k->argument_count < DESCRIPTOR_MAX_ARGUMENTS; i++) {
    const codeobject_argument *a = &o->kernels[0].arguments[i];
    if (strncmp(a->value_kind, "hidden_", 7) == 0) continue;
    argument wide = {ARGUMENT_TENSOR, TENSOR_Q}, narrow = {ARGUMENT_DIM, DIM_TOKENS};
    k->arguments[k->argument_count++] = a->size == 8 ? wide : narrow;
  }
}

/* Stretches of its code, for the target that takes code alone: as that chooses targets. */
static void instruction_seeds(const void *bytes, size_t size, const char *target_name, const char *name) {
  enum { STRETCH = 384, MOST_STRETCHES = 12 };
  static const char *const names[] = {EMULATED_TARGETS};
  elf64 e;
  elf64_section code;
  diags problems;
  char file[160];
  diags_init(&problems);
  if (elf64_open(bytes, size, &e, &problems) != HD_OK || !elf64_section_find(&e, ".text", &code))
    stop("no code", name);
  char choice[2] = {0, 0};
  while (strcmp(names[(int)choice[0]], target_name) != 0)
    choice[0]++;
  for (uint64_t n = 0; n < MOST_STRETCHES && n * STRETCH < code.size; n++) {
    uint64_t left = code.size - n * STRETCH;
    text seed;
    text_init(&seed);
    choice[1] = (char)(n % 8);
    text_add_bytes(&seed, choice, 2);
    text_add_bytes(&seed, e.bytes + code.offset + n * STRETCH, left < STRETCH ? left : STRETCH);
    snprintf(file, sizeof file, "%s-%d", name, (int)n);
    save_text("instructions", file, &seed);
    text_finish(&seed);
  }
  diags_finish(&problems);
}

static void code_object_seeds(const char *path, const char *name, text *out_entry) {
  char *bytes = NULL, key_text[256];
  size_t size = 0;
  codeobject *o = malloc(sizeof *o);
  diags problems;
  diags_init(&problems);
  if (o == NULL) stop("out of memory", path);
  if (file_read(AT_FDCWD, path, 1 << 20, &bytes, &size) != HD_OK) stop(strerror(errno), path);
  if (codeobject_parse(bytes, size, o, &problems) != HD_OK || o->kernel_count == 0)
    stop("no code object", path);
  save("code_object", name, bytes, size);
  save("kernel", name, bytes, size);
  instruction_seeds(bytes, size, o->target, name);
  descriptor d;
  describe(o, &d);
  snprintf(key_text, sizeof key_text,
           "code object: 1\ncontract: c0ffee\ntarget: %s\ncompiler: none\noptions: %s\n", o->target, name);
  cache_file_write(key_text, &d, bytes, size, out_entry);
  save("cache_entry", name, text_string(out_entry), out_entry->length);
  text answer;
  text_init(&answer);
  text_add_bytes(&answer, "\0\0\0", 3);
  text_add_bytes(&answer, out_entry->data, out_entry->length);
  save_text("tier", name, &answer);
  text_finish(&answer);
  diags_finish(&problems);
  free(bytes);
  free(o);
}

static void pack_seed(const text *entries, size_t count) {
  pack_item *items = calloc(count + 1, sizeof *items);
  text pack;
  diags problems;
  if (items == NULL) stop("out of memory", "pack");
  diags_init(&problems);
  for (size_t i = 0; i < count; i++)
    items[i] = (pack_item){entries[i].data, entries[i].length};
  for (size_t kept = 0; kept <= count; kept += count > 1 ? count - 1 : 1) {
    text_init(&pack);
    if (pack_write(items, kept, &pack, &problems) != HD_OK) stop("not packed", "pack");
    save_text("pack", kept == 0 ? "empty" : "entries", &pack);
    text_finish(&pack);
  }
  diags_finish(&problems);
  free(items);
}

static void npy_seeds(void) {
  static const double data[8] = {1, 2, 3};
  for (int type = 0; type < DTYPE_COUNT; type++) {
    const tensor t = {.dtype = (dtype)type, .rank = type % 3, .shape = {2, 3}};
    text file;
    text_init(&file);
    npy_write(&t, data, &file);
    save_text("npy", dtype_name((dtype)type), &file);
    text_finish(&file);
  }
}

static void record_seed(void) {
  static tune_record r = {.name = "small",
                          .target = "gfx950",
                          .heads_per_kv = 16,
                          .page = 16,
                          .evidence = TUNE_SIMULATED,
                          .device = "gfx950 emulated",
                          .compute_units = 256,
                          .compiler = "none",
                          .margin = 0.02};
  const tune_entry entries[] = {
      {.shape = {8, 8192, 4, 1, false},
       .variant = "default",
       .splits = 4,
       .us = 12.5,
       .policy_us = 13,
       .read_us = 9,
       .candidates = 7},
      {.shape = {64, 1024, 1, 2, true}, .variant = "ring-w2-s3", .splits = 1, .us = 1.5, .candidates = 2}};
  char sum[65];
  text words;
  text_init(&words);
  memset(sum, 'a', 64);
  sum[64] = '\0';
  memcpy(r.contract, sum, sizeof sum);
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (!tune_record_add(&r, &entries[i], sum)) stop("full", "tune_record");
  tune_record_write(&r, &words);
  save_text("tune_record", "two", &words);
  text_finish(&words);
}

static const struct {
  const char *target, *name, *bytes;
} written[] = {
    {"timings", "short",
     "heddle_timings: 1\ntarget: gfx950\ndevice: gfx950 emulated\ncompute_units: 256\nevidence: "
     "simulated\ncompiler: none\n"
     "time 8x8192x4 default 4 5 12.5\nread 8x8192x4 9\nwrong 8x8192x4 w4 4 off by 3\npruned w4 spills\n"},
    {"match", "decode",
     "{\"operation\": \"decode\", \"longest\": 8192, \"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": "
     "[4, 16, 128]},"
     "\"k_cache\": {\"dtype\": \"fp8_e4m3fn\", \"shape\": [100, 1, 8, 128, 16], \"strides\": [32768, 16384, "
     "2048, 16, 1]},"
     "\"v_cache\": {\"dtype\": \"fp8_e4m3fn\", \"shape\": [100, 1, 8, 128, 16], \"strides\": [32768, 16384, "
     "2048, 16, 1]},"
     "\"k_scale\": {\"dtype\": \"fp32\", \"shape\": [100, 1, 128]}, \"v_scale\": {\"dtype\": \"fp32\", "
     "\"shape\": [100, 1, 128]},"
     "\"page_table\": {\"dtype\": \"int32\", \"shape\": [4, 64], \"strides\": [2048, 1]}, \"lengths\": "
     "{\"dtype\": \"int32\", \"shape\": [4]}}}"},
    {"match", "axes",
     "{\"kv_heads\": 2, \"window\": 0, \"softcap\": 0, \"causal\": true, \"logits_scale\": 0.0883, "
     "\"splits\": 2, \"incumbent\": null,"
     "\"tensors\": {\"q\": {\"dtype\": \"fp16\", \"shape\": [3, 16, 128], \"align\": 256},"
     "\"k_cache\": {\"dtype\": \"fp16\", \"shape\": [9, 2, 16, 128], \"axes\": [\"b\", \"h\", \"s\", \"d\"], "
     "\"strides\": [4096, 128, 256, 1]},"
     "\"v_cache\": {\"dtype\": \"fp16\", \"shape\": [9, 16, 2, 128]}, \"page_table\": {\"dtype\": \"int32\", "
     "\"shape\": [3, 4]},"
     "\"lengths\": {\"dtype\": \"int32\", \"shape\": [3]}}}"},
    {"match", "blocks",
     "{\"rows\": 1, \"lse\": false, \"block\": 128, \"tensors\": {\"q\": {\"dtype\": \"bf16\", \"shape\": "
     "[6, 8, 64]},"
     "\"k_cache\": {\"dtype\": \"bf16\", \"shape\": [40, 2, 16, 64]}, \"v_cache\": {\"dtype\": \"bf16\", "
     "\"shape\": [40, 2, 16, 64]},"
     "\"block_list\": {\"dtype\": \"int32\", \"shape\": [2, 6, 4]}, \"page_table\": {\"dtype\": \"int32\", "
     "\"shape\": [6, 8]},"
     "\"lengths\": {\"dtype\": \"int32\", \"shape\": [6]}}}"},
    {"spec", "all-sections",
     "heddle: 1\nname: all\nabout: words\nkernels: [write, decode]\ntargets: [gfx950, sm_90]\nquery: {dtype: "
     "bf16, heads_per_kv: 4, rows: 2}\n"
     "head_dim: {qk: 128, v: 64}\nkv: {k: {dtype: fp8_e4m3, layout: [b, s, h, d+4]}, v: {dtype: int8, "
     "layout: [b, s, h, d+4]}, page: 16, strides: packed}\n"
     "scale: {granularity: token_head, dtype: fp32, k: {in: cache, at: 128, layout: [b, s, h]}, v: {in: "
     "cache, at: 64, layout: [b, s, h]}}\n"
     "select: {form: indptr, index: int32}\nmask: {causal: true, window: 4096, sinks: true}\nlogits: {scale: "
     "0.125, softcap: 30}\n"
     "output: {dtype: fp32, lse: true}\nsplit: {factors: [1, 2, 4]}\ntune: {waves: [1, 2], tile: auto}\n"},
    {"layout", "split", "16 64 15\nb\nh\nd%64/16\ns/2\nd/64\ns%2\nd%16+3\n33"},
};

static bool ends_with(const char *path, const char *ending) {
  size_t length = strlen(path), most = strlen(ending);
  return length > most && strcmp(path + length - most, ending) == 0;
}

int main(int argc, char **argv) {
  if (argc < 3) stop("usage: seeds STAMP OUT SPEC.yaml… CODE_OBJECT.co…", "no folder");
  out_folder = argv[2];
  text *entries = calloc((size_t)argc, sizeof *entries);
  size_t count = 0;
  if (entries == NULL) stop("out of memory", "entries");
  for (int i = 3; i < argc; i++) {
    const char *slash = strrchr(argv[i], '/'), *name = slash != NULL ? slash + 1 : argv[i];
    if (ends_with(name, ".yaml")) {
      spec_seeds(argv[i], name, i);
    } else {
      text_init(&entries[count]);
      code_object_seeds(argv[i], name, &entries[count++]);
    }
  }
  pack_seed(entries, count);
  npy_seeds();
  record_seed();
  for (size_t i = 0; i < sizeof written / sizeof *written; i++)
    save(written[i].target, written[i].name, written[i].bytes, strlen(written[i].bytes));
  for (size_t i = 0; i < count; i++)
    text_finish(&entries[i]);
  free(entries);
  if (file_write_atomic(AT_FDCWD, argv[1], 0644, "", 0) != HD_OK) stop(strerror(errno), argv[1]);
  return 0;
}
