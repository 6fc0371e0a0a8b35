#include "../build.h"
#include "../object/codeobject.h"
#include "build_output.h"
#include "progress.h"
#include "store.h"
#include "verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Every kernel of every spec, and which spec a job came from. */
typedef struct build_plan {
  spec_file *files;
  diags *file_diags; /* per file */
  hd_status *file_status;
  int file_count;
  build_job *jobs;
  int *job_file;
  int job_count;
} build_plan;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { JOBS_PER_FILE = SPEC_MAX_LIST * 2 };

static bool plan_init(build_plan *p, int file_count) {
  size_t count = (size_t)file_count;
  *p = (build_plan){.file_count = file_count};
  p->files = calloc(count, sizeof *p->files);
  p->file_diags = calloc(count, sizeof *p->file_diags);
  p->file_status = calloc(count, sizeof *p->file_status);
  p->jobs = calloc(count * JOBS_PER_FILE, sizeof *p->jobs);
  p->job_file = calloc(count * JOBS_PER_FILE, sizeof *p->job_file);
  return p->files && p->file_diags && p->file_status && p->jobs && p->job_file;
}

static void plan_finish(build_plan *p) {
  for (int i = 0; i < p->file_count; i++) {
    if (p->files) spec_file_finish(&p->files[i]);
    if (p->file_diags) diags_finish(&p->file_diags[i]);
  }
  free(p->files);
  free(p->file_diags);
  free(p->file_status);
  free(p->jobs);
  free(p->job_file);
}

/* Adds a file's jobs. Of targets that nobody named, those that don't serve an operation are left out, unless
 * none does. */
static int plan_file(const cli *c, build_plan *p, int index, const variant *v) {
  const spec_file *file = &p->files[index];
  const contract *of = &file->spec.contract;
  target_list targets;
  operation_list operations;
  bool all[2] = {false};
  int code = cli_targets(c, &file->spec, &targets);
  if (!code) code = cli_operations(c, file, &operations);
  if (code) return code;
  for (int o = 0; o < operations.count; o++)
    all[o] = targets.named || !cli_serves(&targets, of, operations.items[o], v);
  for (int t = 0; t < targets.count; t++)
    for (int o = 0; o < operations.count; o++) {
      const target_list one = {1, {targets.items[t]}, true};
      if (!all[o] && !cli_serves(&one, of, operations.items[o], v)) continue;
      p->job_file[p->job_count] = index;
      p->jobs[p->job_count++] = (build_job){
          .contract = of,
          .name = file->spec.name,
          .operation = operations.items[o],
          .variant = *v,
          .target = targets.items[t],
      };
    }
  return EXIT_FINE;
}

static void write_resources_json(const build_result *r, bool *first, text *out) {
  codeobject object;
  diags ignored;
  diags_init(&ignored);
  bool known = codeobject_parse(r->entry.code_object, r->entry.code_object_size, &object, &ignored) == HD_OK;
  diags_finish(&ignored);
  if (!known) return;
  json_key(out, first, "kernels");
  text_add(out, "[");
  for (int i = 0; i < object.kernel_count; i++) {
    const codeobject_kernel *k = &object.kernels[i];
    bool first_member = true;
    text_add(out, i > 0 ? ", {" : "{");
    json_text(out, &first_member, "symbol", k->symbol);
    json_int(out, &first_member, "vgprs", k->vgprs);
    json_int(out, &first_member, "agprs", k->agprs);
    json_int(out, &first_member, "sgprs", k->sgprs);
    json_int(out, &first_member, "vgpr_spills", k->vgpr_spills);
    json_int(out, &first_member, "sgpr_spills", k->sgpr_spills);
    json_int(out, &first_member, "lds_bytes", k->static_lds);
    json_int(out, &first_member, "scratch_bytes", k->scratch);
    text_add(out, "}");
  }
  text_add(out, "]");
}

static void write_resources(const build_result *r, text *out) {
  codeobject object;
  diags ignored;
  diags_init(&ignored);
  if (codeobject_parse(r->entry.code_object, r->entry.code_object_size, &object, &ignored) == HD_OK)
    for (int i = 0; i < object.kernel_count; i++) {
      const codeobject_kernel *k = &object.kernels[i];
      text_addf(out, "    %-24s %3u vgprs, %3u agprs, %3u sgprs, %u + %u spills, %u bytes LDS, %u scratch\n",
                k->symbol, k->vgprs, k->agprs, k->sgprs, k->vgpr_spills, k->sgpr_spills, k->static_lds,
                k->scratch);
    }
  diags_finish(&ignored);
}

static void write_result_json(const cli *c, const build_job *job, const build_result *r, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "spec", job->name);
  json_text(out, &first, "kernel", operation_name(job->operation));
  json_text(out, &first, "target", job->target->name);
  json_bool(out, &first, "ok", r->status == HD_OK);
  json_text(out, &first, "status", hd_status_text(r->status));
  json_text(out, &first, "compiler", r->compiler);
  json_text(out, &first, "key", r->key);
  json_bool(out, &first, "hit", r->hit);
  json_number(out, &first, "compile_seconds", r->compile_seconds);
  if (r->status == HD_OK) {
    json_text(out, &first, "variant", r->entry.descriptor->variant);
    json_int(out, &first, "code_object_bytes", (int64_t)r->entry.code_object_size);
    if (cli_flag(c, "verbose") && job->target->family != FAMILY_CUDA) write_resources_json(r, &first, out);
  }
  json_key(out, &first, "diagnostics");
  diags_render_json(&r->diags, out);
  text_add(out, "}");
}

static void write_result(const cli *c, const build_job *job, const build_result *r, text *out) {
  text_addf(out, "%-28s %-7s %-8s ", job->name, operation_name(job->operation), job->target->name);
  if (r->status != HD_OK) {
    text_addf(out, "%s\n", hd_status_text(r->status));
    return;
  }
  if (r->hit)
    text_add(out, "     hit");
  else
    text_addf(out, "%5.0f ms", r->compile_seconds * 1e3);
  text_addf(out, "  %.12s  %s\n", r->key, r->compiler);
  if (cli_flag(c, "verbose") && job->target->family != FAMILY_CUDA) write_resources(r, out);
}

/* Shows those of a job's diagnostics that weren't shown before: a missing compiler or a decline is the same
 * for many kernels. What has no place in the spec is said to be of this kernel. */
static void complain_once(const build_job *job, const spec_file *file, build_result *r, diags *shown) {
  for (size_t i = 0; i < r->diags.count; i++) {
    diags one = {.items = &r->diags.items[i], .count = 1};
    size_t before = shown->count;
    spec_file_locate(file, &one);
    diags_add_new(shown, &one, DIAG_ERROR);
    if (shown->count == before) continue;
    text place;
    text_init(&place);
    text_add(&place, file->path);
    if (!one.items[0].line) text_addf(&place, " (%s, %s)", operation_name(job->operation), job->target->name);
    cli_complain(text_string(&place), file, &one);
    text_finish(&place);
  }
}

/* A spec that can't be read has no kernels, but an answer of its own. */
static void write_file_json(const spec_file *file, hd_status status, const diags *d, text *out) {
  bool first = true;
  text_add(out, "{");
  json_bool(out, &first, "ok", false);
  json_text(out, &first, "status", hd_status_text(status));
  json_text(out, &first, "file", file->path);
  json_key(out, &first, "diagnostics");
  diags_render_json(d, out);
  text_add(out, "}");
}

/* Prints everything; the exit code is the worst of the results. */
static int report(const cli *c, build_plan *p, build_result *results, double seconds, int code) {
  text out;
  text_init(&out);
  diags shown;
  int hits = 0, built = 0;
  diags_init(&shown);
  if (c->json) text_add(&out, "[");
  int listed = 0;
  for (int i = 0; c->json && i < p->file_count; i++) {
    if (p->file_status[i] == HD_OK) continue;
    if (listed++ > 0) text_add(&out, ",\n ");
    write_file_json(&p->files[i], p->file_status[i], &p->file_diags[i], &out);
  }
  for (int i = 0; i < p->job_count; i++) {
    build_result *r = &results[i];
    const spec_file *file = &p->files[p->job_file[i]];
    complain_once(&p->jobs[i], file, r, &shown);
    if (c->json) {
      if (listed++ > 0) text_add(&out, ",\n ");
      write_result_json(c, &p->jobs[i], r, &out);
    } else {
      write_result(c, &p->jobs[i], r, &out);
    }
    hits += r->status == HD_OK && r->hit;
    built += r->status == HD_OK && !r->hit;
    int own = cli_exit_code(r->status);
    if (own > code) code = own;
  }
  if (c->json)
    text_add(&out, "]\n");
  else
    text_addf(&out, "%d kernels: %d compiled, %d from the cache, %d not built, %.3f s\n", p->job_count, built,
              hits, p->job_count - built - hits, seconds);
  if (p->job_count > 0) cli_hint(c, p->files[p->job_file[0]].path, &shown);
  diags_finish(&shown);
  return cli_output(&out, code);
}

/* A file with some of the kernels missing would be found out too late: all or nothing. */
static int write_output(const cli *c, const build_plan *p, const build_result *results, int code) {
  const build_set all = {p->files, p->file_count, p->jobs, p->job_file, results, p->job_count};
  diags d;
  if (code != EXIT_FINE) {
    fprintf(stderr, "heddle %s: %s is not written: not every kernel could be built\n", c->verb->name,
            cli_text(c, "output"));
    return code;
  }
  diags_init(&d);
  hd_status status = build_output_write(c, &all, &d);
  if (d.count) cli_complain(cli_text(c, "output"), NULL, &d);
  if (status == HD_OUT_OF_MEMORY) fprintf(stderr, "heddle %s: out of memory\n", c->verb->name);
  diags_finish(&d);
  return cli_exit_code(status);
}

static void count_finished(void *user, int index) {
  (void)index;
  progress_step(user);
}

static int build_plan_run(const cli *c, build_plan *p, cache *store, compiler_kind kind, int code) {
  size_t count = p->job_count > 0 ? (size_t)p->job_count : 1;
  build_result *results = calloc(count, sizeof *results);
  if (!results) {
    fprintf(stderr, "heddle %s: out of memory\n", c->verb->name);
    return EXIT_FAILED;
  }
  progress bar;
  const compile_limits limits = {
      .seconds = cli_number(c, "timeout", 0), .finished = count_finished, .user = &bar};
  double start = now();
  progress_begin(&bar, "kernels", p->job_count);
  if (p->job_count > 0)
    build_all(store, kind, p->jobs, results, p->job_count, (int)cli_int(c, "jobs", 0), &limits);
  progress_end(&bar);
  code = report(c, p, results, now() - start, code);
  if (build_output_wanted(c)) code = write_output(c, p, results, code);
  for (int i = 0; i < p->job_count; i++)
    build_result_finish(&results[i]);
  free(results);
  return code;
}

/* Reads all files; those that are not valid are complained about and left out. */
static int read_files(const cli *c, build_plan *p, const variant *v) {
  int worst = EXIT_FINE;
  for (int i = 0; i < p->file_count; i++) {
    diags *d = &p->file_diags[i];
    hd_status status = spec_file_read(c->arguments[i], &p->files[i], d);
    if (d->count || status != HD_OK) cli_complain(c->arguments[i], &p->files[i], d);
    if (status != HD_OK) cli_hint(c, c->arguments[i], d);
    int code = cli_exit_code(status);
    p->file_status[i] = status;
    if (status == HD_OK) code = plan_file(c, p, i, v);
    if (code == EXIT_USAGE) return code;
    if (code > worst) worst = code;
  }
  return worst;
}

int cli_build(cli *c) {
  build_plan p;
  variant v;
  compiler_kind kind;
  int code = cli_variant(c, &v);
  if (!code) code = cli_compiler(c, &kind);
  if (!code) code = build_output_check(c);
  if (code) return code;
  if (!plan_init(&p, c->argument_count)) {
    plan_finish(&p);
    fprintf(stderr, "heddle %s: out of memory\n", c->verb->name);
    return EXIT_FAILED;
  }
  code = read_files(c, &p, &v);
  if (code != EXIT_USAGE) {
    cache *store = NULL;
    diags d;
    diags_init(&d);
    hd_status status = cli_open_cache(c, &store, &d);
    if (status != HD_OK) {
      code = cli_fail(c, "cache", NULL, &d, status);
    } else {
      code = build_plan_run(c, &p, store, kind, code);
      cache_close(store);
      diags_finish(&d);
    }
  }
  plan_finish(&p);
  return code;
}

static const cli_option build_options[] = {
    OPTION_ROW_TARGET,
    OPTION_ROW_KERNEL,
    OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JOBS,
    OPTION_ROW_TIMEOUT,
    {"verbose", 'v', OPTION_FLAG, NULL, "also registers, spills and LDS, read from the code objects", 0, 0},
    {"embed", 0, OPTION_TEXT, "LANGUAGE", "also write a C file with the kernels, for hd_context_add_embedded",
     0, 0},
    {"symbol", 0, OPTION_TEXT, "NAME", "with --embed: the object it defines (default: heddle_embedded)", 0,
     0},
    {"bundle", 0, OPTION_FLAG, NULL, "also write HIP fat binaries: SPEC.KERNEL.hipfb, and launch descriptors",
     0, 0},
    {"output", 'o', OPTION_TEXT, "PATH", "the C file; with --bundle: a folder", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_build = {
    .name = "build",
    .arguments = "SPEC...",
    .summary = "compile kernels into the cache",
    .details =
        "One line a kernel: spec, kernel, target, compile time or hit, code-object key, compiler. With "
        "--embed or\n--bundle the kernels also become files for a build system; the same kernels give the "
        "same bytes\nanywhere (docs/api.md).\n",
    .examples = "  heddle build specs/*.yaml\n"
                "  heddle build specs/minimax-m3-dense-fp8.yaml --target gfx950 --compiler llvm --verbose\n"
                "  heddle build my.yaml --target gfx942 --target gfx950 --embed c --symbol my_kernels -o "
                "my_kernels.c\n"
                "  heddle build my.yaml --target gfx942 --target gfx950 --bundle -o bundles\n",
    .result =
        "0 all built or found, 1 declined or does not compile, 2 usage, 3 no compiler or another failure",
    .options = build_options,
    .fewest = 1,
    .most = -1,
    .run = cli_build,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_TEMPLATES,
    .group = GROUP_KERNELS,
};
