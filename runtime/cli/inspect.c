/* inspect: what the compiler made of a spec's kernels, or of those in a code-object file. */
#include "../object/inspect.h"
#include "../build.h"
#include "verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 };

/* What one run gathers. */
typedef struct inspecting {
  cli *c;
  text out;
  int kernels;
} inspecting;

static void write_number(text *out, const char *format, int value) {
  if (value < 0)
    text_add(out, "    ?");
  else
    text_addf(out, format, value);
}

static void write_row(inspecting *n, const char *name, const char *target_name, const inspect_kernel *k) {
  const codeobject_kernel *r = &k->resources;
  const inspect_mix *m = k->has_loop ? &k->loop : &k->all;
  if (n->kernels == 0)
    text_add(&n->out, "kernel                                   target   VGPR AGPR SGPR spill scratch    LDS "
                      "waves  wgs limit      | loop  matrix  cvt (fp8)  loads 16-byte   lds waits drain\n");
  text_addf(&n->out, "%-40s %-8s %4u %4u %4u %5u %7u %6u", name, target_name, r->vgprs, r->agprs, r->sgprs,
            r->vgpr_spills + r->sgpr_spills, r->scratch, r->static_lds);
  write_number(&n->out, " %5d", k->waves_per_simd);
  write_number(&n->out, " %4d", k->workgroups_per_unit);
  text_addf(&n->out, " %-10s | %5d%s %6d %4d (%3d) %6d %6.1f%% %5d %5d %5d\n", k->limit, m->instructions,
            k->has_loop ? " " : "-", m->matrix, m->conversions, m->fp8_conversions, m->loads,
            100 * inspect_share_16(m), m->lds, m->waits, m->draining);
}

static void json_mix(text *out, bool *first, const char *name, const inspect_mix *m) {
  bool inner = true;
  json_key(out, first, name);
  text_add(out, "{");
  json_int(out, &inner, "instructions", m->instructions);
  json_int(out, &inner, "matrix", m->matrix);
  json_int(out, &inner, "conversions", m->conversions);
  json_int(out, &inner, "fp8_conversions", m->fp8_conversions);
  json_int(out, &inner, "loads", m->loads);
  json_int(out, &inner, "loads_16", m->loads_16);
  json_int(out, &inner, "load_bytes", m->load_bytes);
  json_number(out, &inner, "share_16", inspect_share_16(m));
  json_int(out, &inner, "lds", m->lds);
  json_int(out, &inner, "scratch", m->scratch);
  json_int(out, &inner, "waits", m->waits);
  json_int(out, &inner, "draining_waits", m->draining);
  text_add(out, "}");
}

static void json_kernel(inspecting *n, const char *name, const char *target_name, const inspect_kernel *k) {
  const codeobject_kernel *r = &k->resources;
  bool first = true;
  text *out = &n->out;
  text_add(out, n->kernels ? ",\n {" : "{");
  json_text(out, &first, "of", name);
  json_text(out, &first, "kernel", r->symbol);
  json_text(out, &first, "target", target_name);
  json_int(out, &first, "vgprs", r->vgprs);
  json_int(out, &first, "agprs", r->agprs);
  json_int(out, &first, "sgprs", r->sgprs);
  json_int(out, &first, "vgpr_spills", r->vgpr_spills);
  json_int(out, &first, "sgpr_spills", r->sgpr_spills);
  json_int(out, &first, "scratch_bytes", r->scratch);
  json_int(out, &first, "lds_bytes", r->static_lds);
  json_int(out, &first, "threads", r->max_workgroup);
  if (k->waves_per_simd >= 0) {
    json_int(out, &first, "waves_per_simd", k->waves_per_simd);
    json_int(out, &first, "workgroups_per_unit", k->workgroups_per_unit);
    json_text(out, &first, "limit", k->limit);
  }
  json_mix(out, &first, "all", &k->all);
  if (k->has_loop) json_mix(out, &first, "loop", &k->loop);
  text_add(out, "}");
}

static hd_status inspect_bytes(inspecting *n, const char *name, const void *bytes, size_t size, diags *d) {
  inspection *found = malloc(sizeof *found);
  if (!found) return HD_OUT_OF_MEMORY;
  hd_status status = inspect_code_object(bytes, size, found, d);
  for (int i = 0; status == HD_OK && i < found->count; i++) {
    const inspect_kernel *k = &found->kernels[i];
    text full;
    text_init(&full);
    text_addf(&full, "%s/%s", name,
              strncmp(k->resources.symbol, "heddle_", 7) ? k->resources.symbol : k->resources.symbol + 7);
    if (n->c->json)
      json_kernel(n, name, found->target, k);
    else
      write_row(n, text_string(&full), found->target, k);
    n->kernels++;
    text_finish(&full);
  }
  free(found);
  return status;
}

static hd_status inspect_file(inspecting *n, const char *path, diags *d) {
  char *bytes;
  size_t length;
  hd_status status = cli_read_file(path, MOST_BYTES, &bytes, &length, d);
  if (status != HD_OK) return status;
  const char *slash = strrchr(path, '/');
  status = inspect_bytes(n, slash ? slash + 1 : path, bytes, length, d);
  free(bytes);
  return status;
}

static bool is_code_object(const char *path) {
  char magic[4] = {0};
  FILE *f = strcmp(path, "-") ? fopen(path, "rb") : NULL;
  size_t got = f ? fread(magic, 1, sizeof magic, f) : 0;
  if (f) fclose(f);
  return got == sizeof magic && memcmp(magic, "\177ELF", 4) == 0;
}

/* Builds every operation for every AMD target asked for, and inspects what came out. */
static int inspect_spec(inspecting *n, spec_file *file, diags *d) {
  enum { MOST_JOBS = 2 * SPEC_MAX_LIST };
  build_job jobs[MOST_JOBS];
  static build_result results[MOST_JOBS];
  target_list targets;
  operation_list operations;
  variant v;
  compiler_kind kind;
  cache *store = NULL;
  int count = 0, code = cli_targets(n->c, &file->spec, &targets);
  if (!code) code = cli_operations(n->c, file, &operations);
  if (!code) code = cli_variant(n->c, &v);
  if (!code) code = cli_compiler(n->c, &kind);
  if (code) return code;
  for (int t = 0; t < targets.count && cli_text(n->c, "target"); t++)
    if (targets.items[t]->elf_machine == 0) {
      diags_errorf(d, "codeobject.machine", NULL,
                   "%s's kernels are no AMD code objects, which is what can be inspected: of source that "
                   "heddle emit writes, "
                   "nvcc -cubin -Xptxas -v says registers and spills",
                   targets.items[t]->name);
      return cli_fail(n->c, file->path, file, d, HD_DECLINED);
    }
  for (int t = 0; t < targets.count; t++)
    for (int o = 0; o < operations.count; o++) {
      diags ignored;
      diags_init(&ignored);
      /* Of "every target" those that don't serve the spec, and those without code objects, are left out. */
      bool wanted = targets.named || (targets.items[t]->elf_machine != 0 &&
                                      emit_check(&file->spec.contract, operations.items[o], &v,
                                                 targets.items[t], &ignored) == HD_OK);
      diags_finish(&ignored);
      if (wanted && !cli_text(n->c, "target") && targets.items[t]->elf_machine == 0) wanted = false;
      if (wanted)
        jobs[count++] =
            (build_job){&file->spec.contract, file->spec.name, operations.items[o], v, targets.items[t]};
    }
  hd_status status = cache_open(NULL, &store, d), worst = status;
  if (status == HD_OK) build_all(store, kind, jobs, results, count, 0, NULL);
  for (int i = 0; status == HD_OK && i < count; i++) {
    status = results[i].status;
    if (status == HD_OK)
      status = inspect_bytes(n, file->spec.name, results[i].entry.code_object,
                             results[i].entry.code_object_size, d);
    else
      diags_add_new(d, &results[i].diags, DIAG_ERROR);
    if (status != HD_OK) worst = status;
  }
  for (int i = 0; worst != HD_OUT_OF_MEMORY && store && i < count; i++)
    build_result_finish(&results[i]);
  cache_close(store);
  return worst == HD_OK ? EXIT_FINE : cli_fail(n->c, file->path, file, d, worst);
}

static int inspect(cli *c) {
  inspecting n = {.c = c};
  int worst = EXIT_FINE;
  text_init(&n.out);
  if (c->json) text_add(&n.out, "[");
  for (int i = 0; i < c->argument_count; i++) {
    const char *path = c->arguments[i];
    spec_file file = {0};
    diags d;
    int code = EXIT_FINE;
    diags_init(&d);
    hd_status status = is_code_object(path) ? inspect_file(&n, path, &d) : spec_file_read(path, &file, &d);
    if (status != HD_OK)
      code = cli_fail(c, path, &file, &d, status);
    else if (file.parsed)
      code = inspect_spec(&n, &file, &d);
    spec_file_finish(&file);
    diags_finish(&d);
    if (code > worst) worst = code;
    if (code == EXIT_USAGE) break;
  }
  if (worst != EXIT_FINE && (c->json || n.kernels == 0)) {
    text_finish(&n.out);
    return worst;
  }
  if (c->json) text_add(&n.out, "]\n");
  return cli_output(&n.out, worst);
}

static const cli_option inspect_options[] = {
    OPTION_ROW_TARGET,   OPTION_ROW_KERNEL, OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER, OPTION_ROW_JSON,   OPTION_ROW_END,
};

const cli_verb verb_inspect = {
    .name = "inspect",
    .arguments = "SPEC|CODE_OBJECT...",
    .summary = "read registers, occupancy and the main loop from AMD code objects",
    .details =
        "Builds a spec's kernels (or takes a code-object file) and reads from the result: registers,\n"
        "spills, scratch, LDS, waves per SIMD, workgroups per compute unit; and of the main loop, from its\n"
        "disassembly: matrix and conversion instructions, vector loads and the share of their bytes that\n"
        "comes 16 at a time, waits for loads, and those after which no load is on its way.\n"
        "docs/performance.md has the columns.\n",
    .examples = "  heddle inspect specs/minimax-m3-dense-fp8.yaml --target gfx942 --kernel decode\n"
                "  heddle inspect kernel.co --json\n",
    .options = inspect_options,
    .fewest = 1,
    .most = -1,
    .run = inspect,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_TEMPLATES,
    .group = GROUP_KERNELS,
};
