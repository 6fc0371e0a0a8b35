/* profile: what the kernels of a spec execute, counted on an emulated device. */
#include "../bench/bench.h"
#include "../verify/oracle.h"
#include "../verify/verify_data.h"
#include "shapes.h"
#include "stats.h"
#include "store.h"
#include "verbs.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_TOP = 10 };

/* One operation, counted. */
typedef struct profiled {
  operation operation;
  session_kernel kernel;
  bool loaded;
  counts counts;
  stats_names names;
  int64_t splits;
} profiled;

typedef struct request {
  const cli *c;
  spec_file file;
  session session;
  contract contract; /* resolved, with the shape's group size */
  variant variant;
  compiler_kind compiler;
  bench_shape shape;
  verify_case inputs;
  verify_data data;
  profiled done[2];
  int count;
} request;

static const tensor_name written[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};

static int read_shape(request *r) {
  const char *word = cli_text(r->c, "shape");
  if (!word) word = "1x1024x1";
  if (cli_bench_shape(r->c, word, &r->shape)) return EXIT_USAGE;
  if (r->shape.seqs > CASE_MAX_SEQS)
    return cli_usage(r->c, "--shape has %" PRId64 " sequences, at most %d are profiled", r->shape.seqs,
                     CASE_MAX_SEQS);
  r->inputs = (verify_case){.name = "profile",
                            .kv_heads = (int)r->shape.kv_heads,
                            .traits = TRAIT_CLEAN,
                            .length_count = 1,
                            .lengths = {{0, 0, (int)r->shape.length}},
                            .repeat = (int)r->shape.seqs};
  if (cli_flag(r->c, "ragged")) {
    int32_t lengths[CASE_MAX_SEQS];
    bench_lengths(&r->shape, true, lengths);
    r->inputs.length_count = (int)r->shape.seqs;
    r->inputs.repeat = 0;
    for (int64_t i = 0; i < r->shape.seqs; i++)
      r->inputs.lengths[i] = (case_length){.tokens = lengths[i]};
  }
  return EXIT_FINE;
}

/* A prefill in order: token after token of each sequence. */
static void order_slots(verify_data *d) {
  int64_t *slots = d->memory[TENSOR_SLOT_MAPPING];
  for (int64_t i = 0; slots && i < d->live_tokens; i++)
    slots[i] = d->slot[i];
}

static hd_status count_launch(request *r, profiled *p, const tensors *host, int64_t dims[DIM_COUNT],
                              diags *d) {
  session *s = &r->session;
  double scale = oracle_logits_scale(&r->contract, 1.0 / sqrt((double)r->contract.head_dim.qk));
  tensors on_device;
  hd_status status = session_upload(s, &r->contract, p->operation, host, &on_device, d);
  if (status != HD_OK) return status;
  status = s->device->vtable->count_begin(s->device, d);
  if (status == HD_OK) {
    status = session_launch(s, &p->kernel, &on_device, dims, (float)scale, d);
    hd_status ended = s->device->vtable->count_end(s->device, &p->counts, d);
    if (status == HD_OK) status = ended;
  }
  stats_names_of(&on_device, &p->kernel, &p->names);
  /* Decode reads what write left. */
  for (size_t i = 0;
       status == HD_OK && p->operation == OPERATION_WRITE && i < sizeof written / sizeof *written; i++)
    if (on_device.present[written[i]]) status = session_download(s, &on_device, host, written[i], d);
  session_release(s, &on_device);
  return status;
}

static hd_status profile_write(request *r, profiled *p, diags *d) {
  int64_t dims[DIM_COUNT];
  hd_status status = bind_dims(&r->contract, OPERATION_WRITE, &r->data.write, dims, d);
  return status == HD_OK ? count_launch(r, p, &r->data.write, dims, d) : status;
}

static hd_status profile_decode(request *r, profiled *p, diags *d) {
  int64_t dims[DIM_COUNT];
  hd_status status = bind_dims(&r->contract, OPERATION_DECODE, &r->data.decode, dims, d);
  if (status != HD_OK) return status;
  p->splits = dims[DIM_SPLITS] =
      session_splits(&r->session, &p->kernel, dims, r->data.longest, cli_int(r->c, "split", 0));
  return count_launch(r, p, &r->data.decode, dims, d);
}

static hd_status profile_all(request *r, const operation_list *list, diags *d) {
  random_state random = {(uint64_t)cli_int(r->c, "seed", 1)};
  int64_t tile = 0;
  hd_status status = HD_OK;
  for (int i = 0; status == HD_OK && i < list->count; i++) {
    profiled *p = &r->done[r->count++];
    p->operation = list->items[i];
    status =
        session_load(&r->session, &r->contract, r->file.spec.name, p->operation, &r->variant, &p->kernel, d);
    p->loaded = status == HD_OK;
    if (p->loaded && operation_attends(p->operation)) tile = p->kernel.descriptor->tile_tokens;
  }
  if (status == HD_OK) status = verify_data_init(&r->data, &r->contract, &r->inputs, tile, &random, d);
  if (status != HD_OK) return status;
  order_slots(&r->data);
  bool filled = false;
  for (int i = 0; status == HD_OK && i < r->count; i++)
    if (r->done[i].operation == OPERATION_WRITE) {
      status = profile_write(r, &r->done[i], d);
      filled = true;
    }
  if (status == HD_OK && !filled) {
    int64_t dims[DIM_COUNT];
    status = bind_dims(&r->contract, OPERATION_WRITE, &r->data.write, dims, d);
    if (status == HD_OK) status = oracle_write(&r->contract, &r->data.write, dims, d);
  }
  for (int i = 0; status == HD_OK && i < r->count; i++)
    if (r->done[i].operation == OPERATION_DECODE) status = profile_decode(r, &r->done[i], d);
  verify_data_finish(&r->data);
  return status;
}

static void report_json(const request *r, int top, text *out) {
  bool first = true;
  text shape;
  text_init(&shape);
  bench_shape_write(&r->shape, &shape);
  text_add(out, "{");
  json_bool(out, &first, "ok", true);
  json_text(out, &first, "spec", r->file.spec.name);
  json_text(out, &first, "device", r->session.facts.name);
  json_text(out, &first, "target", r->session.target->name);
  json_text(out, &first, "shape", text_string(&shape));
  json_key(out, &first, "operations");
  text_add(out, "[");
  for (int i = 0; i < r->count; i++) {
    const profiled *p = &r->done[i];
    count_traffic kv = stats_kv_loads(&p->counts, &p->names);
    bool inner = true;
    text_add(out, i ? ", {" : "{");
    json_text(out, &inner, "operation", operation_name(p->operation));
    json_text(out, &inner, "variant", p->kernel.descriptor->variant);
    json_text(out, &inner, "key", p->kernel.key);
    json_text(out, &inner, "compiler", p->kernel.compiler);
    if (operation_attends(p->operation)) json_int(out, &inner, "split", p->splits);
    if (kv.instructions) json_efficiency(out, &inner, "kv_segment_efficiency", &kv);
    json_key(out, &inner, "launches");
    stats_json(&p->counts, &r->session, &p->names, top, out);
    text_add(out, "}");
  }
  text_add(out, "]}\n");
  text_finish(&shape);
}

static void report_table(const request *r, int top, text *out) {
  text shape;
  text_init(&shape);
  bench_shape_write(&r->shape, &shape);
  text_addf(out, "%s on %s (%s), %s: counted, not timed\n", r->file.spec.name, r->session.facts.name,
            r->session.target->name, text_string(&shape));
  for (int i = 0; i < r->count; i++) {
    const profiled *p = &r->done[i];
    count_traffic kv = stats_kv_loads(&p->counts, &p->names);
    text_addf(out, "\n%s, variant %s", operation_name(p->operation), p->kernel.descriptor->variant);
    if (operation_attends(p->operation)) text_addf(out, ", split %" PRId64, p->splits);
    text_add(out, "\n");
    stats_table(&p->counts, &r->session, &p->names, top, out);
    if (kv.instructions)
      text_addf(out, "segment efficiency of K/V reads: %.3f of 32 bytes, %.3f of 64, %.3f of 128\n",
                count_efficiency(&kv, 0), count_efficiency(&kv, 1), count_efficiency(&kv, 2));
  }
  text_finish(&shape);
}

static int run_request(request *r, diags *d) {
  operation_list list;
  int top = (int)cli_int(r->c, "top", DEFAULT_TOP);
  int code = cli_operations(r->c, &r->file, &list);
  if (code) return code;
  hd_status status = session_open(cli_text(r->c, "device"), r->compiler, NULL, &r->session, d);
  if (status == HD_INVALID && d->count) return cli_usage(r->c, "--device: %s", d->items[0].message);
  if (status != HD_OK) return cli_fail(r->c, r->file.path, &r->file, d, status);
  cli_log_cache(r->c, r->session.cache);
  code = stats_check(r->c, &r->session);
  if (!code) {
    contract resolved = contract_resolve(&r->file.spec.contract, r->session.target->fp8);
    status = bench_contract(&resolved, r->shape.heads_per_kv, 0, &r->contract, d);
    if (status == HD_OK) status = profile_all(r, &list, d);
    if (status == HD_OK) {
      text out;
      text_init(&out);
      cli_complain(r->file.path, &r->file, d);
      (r->c->json ? report_json : report_table)(r, top, &out);
      code = cli_output(&out, EXIT_FINE);
    } else {
      code = cli_fail(r->c, r->file.path, &r->file, d, status);
    }
  }
  for (int i = 0; i < r->count; i++) {
    counts_finish(&r->done[i].counts);
    if (r->done[i].loaded) session_unload(&r->session, &r->done[i].kernel);
  }
  session_close(&r->session);
  return code;
}

static int profile(cli *c) {
  diags d;
  request r = {.c = c};
  if (!cli_text(c, "device")) return cli_usage(c, "--device is missing, such as --device emu:gfx950");
  int code = read_shape(&r);
  if (!code) code = cli_variant(c, &r.variant);
  if (!code) code = cli_compiler(c, &r.compiler);
  if (code) return code;
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &r.file, &d);
  code = status == HD_OK ? run_request(&r, &d) : cli_fail(c, c->arguments[0], &r.file, &d, status);
  spec_file_finish(&r.file);
  diags_finish(&d);
  return code;
}

static const cli_option profile_options[] = {
    {"device", 'd', OPTION_TEXT, "DEVICE", "an emulated one, such as emu:gfx950", 0, 0},
    {"shape", 's', OPTION_TEXT, "SHAPE",
     "SEQSxLENGTHxKV_HEADS, xG for another heads_per_kv (default: 1x1024x1)", 0, 0},
    {"ragged", 0, OPTION_FLAG, NULL, "every eighth sequence that long, the others 1/16 to 5/16 of it", 0, 0},
    {"split", 0, OPTION_INT, "N", "workgroups that share one sequence and kv head (default: by policy)", 1,
     4096},
    {"top", 0, OPTION_INT, "N", "memory instructions to list a kernel (default: 10)", 0, 1000},
    OPTION_ROW_SEED,
    OPTION_ROW_KERNEL,
    OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_profile = {
    .name = "profile",
    .arguments = "SPEC --device DEVICE",
    .summary = "count what the kernels execute, on an emulated device",
    .details =
        "Runs write and decode on a generated case and counts: instructions by class, memory traffic and "
        "its\n"
        "segments by tensor and by instruction, LDS bank conflicts, matrix operations. Counts are exact; "
        "the\n"
        "time and the bound that follow from them are an estimate. docs/emulator.md explains the columns.\n",
    .examples =
        "  heddle profile specs/minimax-m3-dense-fp8.yaml --device emu:gfx950\n"
        "  heddle profile specs/nhd-fp16.yaml --device emu:gfx1201 --shape 4x2048x8 --split 4 --json\n",
    .result = "0 fine, 1 declined, 2 usage, 3 failure",
    .options = profile_options,
    .fewest = 1,
    .most = 1,
    .run = profile,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES | ENV_TEMPLATES,
    .group = GROUP_LAUNCHES,
};
