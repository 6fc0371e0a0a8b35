/* run and reference: one operation on tensors from files, on a device or by the oracle. */
#include "../verify/oracle.h"
#include "../session.h"
#include "settings.h"
#include "stats.h"
#include "tensor_files.h"
#include "tuned.h"
#include "store.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One call of the command: spec, operation, tensors and what was bound. */
typedef struct call {
  spec_file file;
  contract contract; /* resolved for the target */
  operation operation;
  tensor_set set;
  int64_t dims[DIM_COUNT];
  settings settings;
  double seconds;
  counts counts; /* with --stats */
  stats_names names;
  tune_shape shape; /* of a decode on a device */
  tune_files tuned;
  tune_choice choice;
} call;

enum { STATS_TOP = 10 }; /* memory instructions in the table */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int read_operation(const cli *c, call *k) {
  operation_list list;
  int code = cli_operations(c, &k->file, &list);
  if (code) return code;
  if (list.count != 1)
    return cli_usage(c, "the spec has several kernels; choose with --kernel write or --kernel decode");
  k->operation = list.items[0];
  return EXIT_FINE;
}

/* Everything that needs no device: spec, options, tensors, shapes. EXIT_FINE, or the exit code after
 * complaining. */
static int call_read(const cli *c, call *k, diags *d) {
  *k = (call){0};
  int code = tensor_options_check(c);
  if (code) return code;
  hd_status status = spec_file_read(c->arguments[0], &k->file, d);
  if (status == HD_OK) {
    code = read_operation(c, k);
    if (!code) code = settings_read(c, &k->file.spec.contract, k->operation, &k->settings);
    if (code) return code;
    k->contract = k->file.spec.contract;
    status = tensor_outputs_check(c, &k->contract, k->operation, d);
    hd_status inputs = tensor_set_read(c, &k->contract, k->operation, &k->set, d);
    if (status == HD_OK) status = inputs;
    k->set.host.k_scale = k->settings.k_scale;
    k->set.host.v_scale = k->settings.v_scale;
    if (status == HD_OK) status = bind_dims(&k->contract, k->operation, &k->set.host, k->dims, d);
    if (status == HD_OK) status = tensor_set_add_outputs(&k->set, &k->contract, k->operation, k->dims, d);
  }
  return status == HD_OK ? EXIT_FINE : cli_fail(c, c->arguments[0], &k->file, d, status);
}

/* The contract and the tensors' formats once the dialect is known. */
static void call_resolve(call *k, const target *t) {
  k->contract = contract_resolve(&k->contract, t->fp8);
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor resolved;
    if (k->set.host.present[i] && bind_tensor(&k->contract, (tensor_name)i, k->dims, &resolved))
      k->set.host.by_name[i].dtype = resolved.dtype;
  }
}

static void call_finish(call *k) {
  counts_finish(&k->counts);
  tune_files_finish(&k->tuned);
  tensor_set_finish(&k->set);
  spec_file_finish(&k->file);
}

static void report_outputs(const cli *c, const call *k, text *out) {
  tensor_name name;
  const char *path;
  for (int i = 0; tensor_output_at(c, i, &name, &path); i++) {
    const tensor *t = &k->set.host.by_name[name];
    if (c->json && i > 0) text_add(out, ", ");
    text shape;
    text_init(&shape);
    for (int r = 0; r < t->rank; r++)
      text_addf(&shape, "%s%" PRId64, r > 0 ? ", " : "", t->shape[r]);
    if (c->json) {
      bool first = true;
      text_add(out, "{");
      json_text(out, &first, "name", tensor_name_text(name));
      json_text(out, &first, "file", path);
      json_text(out, &first, "dtype", dtype_name(t->dtype));
      json_key(out, &first, "shape");
      text_addf(out, "[%s]}", text_string(&shape));
    } else {
      text_addf(out, "  %s: %s [%s] in %s\n", tensor_name_text(name), dtype_name(t->dtype),
                text_string(&shape), path);
    }
    text_finish(&shape);
  }
}

static void report_call_json(const cli *c, const call *k, bool *first, text *out) {
  json_text(out, first, "spec", k->file.spec.name);
  json_text(out, first, "kernel", operation_name(k->operation));
  settings_json(&k->settings, k->operation, out, first);
  json_number(out, first, "seconds", k->seconds);
  json_key(out, first, "dims");
  text_add(out, "{");
  bool first_dim = true;
  for (int d = 0; d < DIM_COUNT; d++)
    json_int(out, &first_dim, dim_name((dim)d), k->dims[d]);
  text_add(out, "}");
  json_key(out, first, "outputs");
  text_add(out, "[");
  report_outputs(c, k, out);
  text_add(out, "]");
}

static int report_run(const cli *c, const call *k, const session *s, const session_kernel *kernel) {
  text out;
  text_init(&out);
  if (c->json) {
    bool first = true;
    text_add(&out, "{");
    json_bool(&out, &first, "ok", true);
    report_call_json(c, k, &first, &out);
    json_text(&out, &first, "device", s->facts.name);
    json_text(&out, &first, "target", s->target->name);
    json_text(&out, &first, "variant", kernel->descriptor->variant);
    if (operation_attends(k->operation)) json_text(&out, &first, "choice", k->choice.reason);
    json_text(&out, &first, "key", kernel->key);
    json_text(&out, &first, "compiler", kernel->compiler);
    json_bool(&out, &first, "hit", kernel->hit);
    json_number(&out, &first, "compile_seconds", kernel->compile_seconds);
    if (cli_flag(c, "stats")) {
      json_key(&out, &first, "stats");
      stats_json(&k->counts, s, &k->names, STATS_TOP, &out);
    }
    text_add(&out, "}\n");
  } else {
    text_addf(&out, "%s of %s on %s (%s): %.3f s", operation_name(k->operation), k->file.spec.name,
              s->facts.name, s->target->name, k->seconds);
    if (operation_attends(k->operation)) text_addf(&out, ", split %" PRId64, k->dims[DIM_SPLITS]);
    text_addf(&out, ", kernel %.12s %s\n", kernel->key, kernel->hit ? "from the cache" : "compiled now");
    report_outputs(c, k, &out);
    stats_table(&k->counts, s, &k->names, STATS_TOP, &out);
  }
  return cli_output(&out, EXIT_FINE);
}

/* Launches, and counts if asked to. */
static hd_status launch(const cli *c, call *k, session *s, session_kernel *kernel, const tensors *on_device,
                        diags *d) {
  const device_vtable *v = s->device->vtable;
  bool counting = cli_flag(c, "stats");
  hd_status status = counting ? v->count_begin(s->device, d) : HD_OK;
  if (status != HD_OK) return status;
  double start = now();
  status = session_launch(s, kernel, on_device, k->dims, (float)k->settings.logits_scale, d);
  k->seconds = now() - start;
  if (!counting) return status;
  hd_status ended = v->count_end(s->device, &k->counts, d);
  stats_names_of(on_device, kernel, &k->names);
  return status == HD_OK ? ended : status;
}

static hd_status run_on_device(const cli *c, call *k, session *s, session_kernel *kernel, diags *d) {
  tensors on_device;
  if (operation_attends(k->operation)) {
    int64_t asked = cli_int(c, "split", 0);
    if (asked == 0 && k->choice.found)
      asked = tune_choice_splits(&k->choice, split_facts_of(kernel->descriptor), &k->shape,
                                 s->facts.compute_units);
    int64_t splits = session_splits(s, kernel, k->dims, k->shape.length, asked);
    k->dims[DIM_SPLITS] =
        cli_int(c, "split", 0) > 0 ? splits : splits_among(&k->file.spec.split_factors, splits);
  }
  hd_status status = session_upload(s, &k->contract, k->operation, &k->set.host, &on_device, d);
  if (status != HD_OK) return status;
  status = launch(c, k, s, kernel, &on_device, d);
  for (int i = 0; status == HD_OK && i < TENSOR_COUNT; i++) {
    tensor_role role = bind_role(&k->contract, k->operation, (tensor_name)i);
    if (role == ROLE_OUTPUT || role == ROLE_UPDATED)
      status = session_download(s, &on_device, &k->set.host, (tensor_name)i, d);
  }
  session_release(s, &on_device);
  return status;
}

/* What the tuned records say for these tensors, unless a variant is asked for. */
static hd_status choose(const cli *c, call *k, const session *s, variant *v, diags *d) {
  int64_t tokens = 0;
  const tensor *lengths = &k->set.host.by_name[TENSOR_LENGTHS];
  if (!operation_attends(k->operation)) return HD_OK;
  if (k->set.host.present[TENSOR_LENGTHS])
    for (int64_t i = 0; i < tensor_elements(lengths); i++)
      tokens += ((const int32_t *)(uintptr_t)lengths->data)[i];
  int64_t longest = bind_longest(&k->contract, &k->set.host, k->dims);
  k->shape = (tune_shape){k->dims[DIM_SEQS], longest, k->dims[DIM_KV_HEADS], (int)k->dims[DIM_ROWS],
                          tune_is_ragged(k->dims[DIM_SEQS], longest, tokens)};
  if (cli_text(c, "variant")) return HD_OK;
  hd_status status = cli_tuned_load(c, k->file.path, &k->tuned, d);
  if (status != HD_OK) return status;
  tune_files_validate(&k->tuned, &k->contract, s->target, &s->facts);
  tune_choose(&k->tuned, &k->shape, s->facts.compute_units, &k->choice);
  *v = k->choice.variant;
  return HD_OK;
}

/* Device, kernel, launch, results; complains by itself. */
static int run_call(const cli *c, call *k, variant *v, compiler_kind compiler_asked, diags *d) {
  session s;
  session_kernel kernel;
  hd_status status = session_open(cli_text(c, "device"), compiler_asked, NULL, &s, d);
  if (status == HD_INVALID && d->count) return cli_usage(c, "--device: %s", d->items[0].message);
  if (status != HD_OK) return cli_fail(c, c->arguments[0], &k->file, d, status);
  cli_log_cache(c, s.cache);
  int code = cli_flag(c, "stats") ? stats_check(c, &s) : EXIT_FINE;
  if (code) {
    session_close(&s);
    return code;
  }
  call_resolve(k, s.target);
  status = choose(c, k, &s, v, d);
  if (status == HD_OK)
    status = session_load(&s, &k->contract, k->file.spec.name, k->operation, v, &kernel, d);
  if (status == HD_OK) {
    status = run_on_device(c, k, &s, &kernel, d);
    if (status == HD_OK) status = tensor_set_write(c, &k->set, d);
    if (status == HD_OK) {
      cli_complain(c->arguments[0], &k->file, d);
      code = report_run(c, k, &s, &kernel);
    }
    session_unload(&s, &kernel);
  }
  if (status != HD_OK) code = cli_fail(c, c->arguments[0], &k->file, d, status);
  session_close(&s);
  return code;
}

static int run(cli *c) {
  call k;
  diags d;
  variant v;
  compiler_kind kind;
  if (!cli_text(c, "device")) return cli_usage(c, "--device is missing, such as --device emu:gfx950");
  int code = cli_variant(c, &v);
  if (!code) code = cli_compiler(c, &kind);
  if (code) return code;
  diags_init(&d);
  code = call_read(c, &k, &d);
  if (!code) code = run_call(c, &k, &v, kind, &d);
  call_finish(&k);
  diags_finish(&d);
  return code;
}

/* Whose dialect fp8_e4m3 means: --target, else the spec's only or first one, else OCP. */
static int reference_target(const cli *c, const spec *s, const target **out_target) {
  target_list list;
  int code = cli_targets(c, s, &list);
  if (!code) *out_target = list.items[0];
  return code;
}

static int reference_call(const cli *c, call *k, diags *d) {
  const char *path = c->arguments[0];
  double start = now();
  hd_status status =
      operation_attends(k->operation)
          ? oracle_decode_rounded(&k->contract, &k->set.host, k->dims, k->settings.logits_scale, d)
          : oracle_write(&k->contract, &k->set.host, k->dims, d);
  k->seconds = now() - start;
  if (status == HD_OK) status = tensor_set_write(c, &k->set, d);
  if (status != HD_OK) return cli_fail(c, path, &k->file, d, status);
  cli_complain(path, &k->file, d);
  text out;
  text_init(&out);
  if (c->json) {
    bool first = true;
    text_add(&out, "{");
    json_bool(&out, &first, "ok", true);
    report_call_json(c, k, &first, &out);
    text_add(&out, "}\n");
  } else {
    text_addf(&out, "%s of %s by the reference: %.3f s\n", operation_name(k->operation), k->file.spec.name,
              k->seconds);
    report_outputs(c, k, &out);
  }
  return cli_output(&out, EXIT_FINE);
}

static int reference(cli *c) {
  call k;
  diags d;
  const target *t = NULL;
  diags_init(&d);
  int code = call_read(c, &k, &d);
  if (!code) code = reference_target(c, &k.file.spec, &t);
  if (!code) {
    call_resolve(&k, t);
    code = reference_call(c, &k, &d);
  }
  call_finish(&k);
  diags_finish(&d);
  return code;
}

#define TENSOR_DETAILS                                                                                       \
  "Tensors by name and shape. bf16 travels as uint16, fp8 as uint8.\n"                                       \
  "  decode takes q [seqs*rows, q_heads, d], k_cache, v_cache, k_scale and v_scale (where the contract "     \
  "has\n"                                                                                                    \
  "    scales), page_table int32 [seqs, pages], lengths int32 [seqs] (docs/cli.md has those of the other\n"  \
  "    forms of selection), sinks (where it has them); it gives\n"                                           \
  "    out [seqs*rows, q_heads, d] and lse fp32 [seqs*rows, q_heads] (where it has one).\n"                  \
  "  write takes k and v [tokens, kv_heads, d], slot_mapping int64 [tokens], and k_cache, v_cache and "      \
  "scales\n"                                                                                                 \
  "    as they are; it gives these back with the tokens written.\n"                                          \
  "Caches and scales have the shape of the layout's factors, or are flat.\n"

static const cli_option run_options[] = {
    OPTION_ROW_ONE_KERNEL,
    OPTION_ROW_IN,
    OPTION_ROW_OUT,
    OPTION_ROW_SET,
    {"device", 'd', OPTION_TEXT, "DEVICE", "emu:gfx950, cuda:0, hip:0 (heddle doctor lists what is there)", 0,
     0},
    {"split", 0, OPTION_INT, "N", "workgroups that share one sequence and kv head (default: by policy)", 1,
     4096},
    {"stats", 0, OPTION_FLAG, NULL, "also count what was executed (emulated devices; docs/emulator.md)", 0,
     0},
    OPTION_ROW_VARIANT,
    OPTION_ROW_TUNED,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_run = {
    .name = "run",
    .arguments = "SPEC --device DEVICE --kernel KERNEL --in NAME=FILE... --out NAME=FILE...",
    .summary = "run one kernel on tensors from .npy files",
    .details = TENSOR_DETAILS,
    .examples =
        "  heddle run specs/nhd-fp16.yaml --kernel decode --device emu:gfx950 --in q=q.npy \\\n"
        "      --in k_cache=k.npy --in v_cache=v.npy --in page_table=table.npy --in lengths=lengths.npy \\\n"
        "      --out out=out.npy --split 4\n",
    .result = "0 fine, 1 declined or a tensor does not fit, 2 usage, 3 failure",
    .options = run_options,
    .fewest = 1,
    .most = 1,
    .run = run,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES | ENV_TUNED | ENV_TEMPLATES,
    .group = GROUP_LAUNCHES,
};

static const cli_option reference_options[] = {
    OPTION_ROW_ONE_KERNEL,
    OPTION_ROW_IN,
    OPTION_ROW_OUT,
    OPTION_ROW_SET,
    {"target", 0, OPTION_LIST, "TARGET", "whose dialect fp8_e4m3 means (default: the spec's first target)", 0,
     0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_reference = {
    .name = "reference",
    .arguments = "SPEC --kernel KERNEL --in NAME=FILE... --out NAME=FILE...",
    .summary = "compute what a kernel should give, in float64, without a device",
    .details = TENSOR_DETAILS,
    .examples = "  heddle reference specs/nhd-fp16.yaml --kernel write --in k=k.npy --in v=v.npy \\\n"
                "      --in slot_mapping=slots.npy --in k_cache=k0.npy --in v_cache=v0.npy \\\n"
                "      --out k_cache=k1.npy --out v_cache=v1.npy\n",
    .result = "0 fine, 1 a tensor does not fit, 2 usage, 3 failure",
    .options = reference_options,
    .fewest = 1,
    .most = 1,
    .run = reference,
    .group = GROUP_LAUNCHES,
};
