/* tune: finds the fastest variant and split for shapes, and keeps them as a record. */
#include "../../generator/emit_read.h"
#include "../bench/bench.h"
#include "../file.h"
#include "../template_folder.h"
#include "../tune/tune_meter.h"
#include "console.h"
#include "shapes.h"
#include "tuned.h"
#include "store.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TIMINGS = 1 << 28 };

/* One run of the search. */
typedef struct tuning {
  cli *c;
  spec_file file;
  contract contract;    /* resolved, with the group and page asked for */
  contract of_the_spec; /* resolved */
  const target *target;
  compiler_kind compiler;
  session session;
  bool has_session;
  tune_device *device;
  tune_timings *timings;
  tune_meter meter;
  tune_space space;
  tune_record record;
  int compute_units;
  text path;
  FILE *log;
  bool shows_progress;
  double start, longest; /* seconds; of the slowest shape so far */
  int shape_count, measured, kept, failed;
  int rows; /* of shapes that don't say */
  tune_shape shapes[TUNE_MAX_SHAPES];
  text dropped; /* JSON */
} tuning;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_log(void *user, const char *line) {
  tuning *t = user;
  fprintf(t->log, "%s\n", line);
}

static void report_dropped(void *user, const tune_shape *s, const char *name, int64_t splits,
                           const char *why) {
  tuning *t = user;
  text shape;
  bool first = true;
  text_init(&shape);
  tune_shape_write(s, &shape);
  if (!console_quiet())
    fprintf(stderr, "heddle tune: dropped %s split %" PRId64 " at %s: %s\n", name, splits,
            text_string(&shape), why);
  text_add(&t->dropped, t->dropped.length ? ", {" : "{");
  json_text(&t->dropped, &first, "shape", text_string(&shape));
  json_text(&t->dropped, &first, "variant", name);
  json_int(&t->dropped, &first, "split", splits);
  json_text(&t->dropped, &first, "why", why);
  text_add(&t->dropped, "}");
  text_finish(&shape);
}

/* ---- What is tuned, and by what ---- */

static hd_status set_contract(tuning *t, diags *d) {
  t->of_the_spec = contract_resolve(&t->file.spec.contract, t->target->fp8);
  hd_status status = bench_contract(&t->of_the_spec, (int)cli_int(t->c, "heads-per-kv", 0),
                                    (int)cli_int(t->c, "page", 0), &t->contract, d);
  if (status == HD_OK) status = bench_rows(&t->contract, (int)cli_int(t->c, "rows", 0), &t->rows, d);
  for (int i = 0; status == HD_OK && i < t->shape_count; i++)
    if (t->shapes[i].rows > 0) status = bench_rows(&t->contract, t->shapes[i].rows, &t->shapes[i].rows, d);
  return status;
}

static hd_status make_space(tuning *t, diags *d) {
  template_folder templates;
  hd_status status = template_folder_init(&templates, getenv("HEDDLE_TEMPLATES"), d);
  if (status != HD_OK) return status;
  status = tune_space_of(&t->file.spec, &t->contract, t->target, &templates.source, &t->space, d);
  template_folder_finish(&templates);
  return status;
}

static hd_status open_timings(tuning *t, const char *path, diags *d) {
  char *bytes;
  size_t length;
  hd_status status = cli_read_file(path, MOST_TIMINGS, &bytes, &length, d);
  if (status != HD_OK) return status;
  status = tune_timings_parse(bytes, length, &t->timings, d);
  free(bytes);
  if (status != HD_OK) return status;
  t->target = tune_timings_target(t->timings);
  t->compute_units = tune_timings_compute_units(t->timings);
  t->meter = tune_timings_meter(t->timings);
  status = set_contract(t, d);
  if (status == HD_OK) status = make_space(t, d);
  if (status != HD_OK) return status;
  tune_timings_prune(t->timings, &t->space);
  tune_timings_describe(t->timings, &t->record);
  t->record.heads_per_kv = t->contract.query.heads_per_kv;
  t->record.page = t->contract.kv.page;
  snprintf(t->record.name, sizeof t->record.name, "%s", t->file.spec.name);
  return contract_key(&t->contract, t->record.contract);
}

static hd_status open_device(tuning *t, diags *d) {
  hd_status status = session_open(cli_text(t->c, "device"), t->compiler, NULL, &t->session, d);
  if (status != HD_OK) return status;
  cli_log_cache(t->c, t->session.cache);
  t->has_session = true;
  t->target = t->session.target;
  t->compute_units = t->session.facts.compute_units;
  status = set_contract(t, d);
  if (status == HD_OK) status = make_space(t, d);
  if (status != HD_OK) return status;
  text pruned;
  text_init(&pruned);
  if (t->shows_progress)
    fprintf(stderr, "heddle tune: %d variants to compile, %d pruned by what the generator says\n",
            t->space.count, t->space.pruned_count);
  status = tune_device_create(&t->session, &t->contract, t->file.spec.name, &t->space,
                              (int)cli_int(t->c, "jobs", 0), (uint64_t)cli_int(t->c, "seed", 1),
                              t->log ? write_log : NULL, t, &t->device, d);
  text_finish(&pruned);
  if (status != HD_OK) return status;
  t->meter = tune_device_meter(t->device);
  tune_device_describe(t->device, &t->record);
  return HD_OK;
}

/* ---- The record's file ---- */

static hd_status save(tuning *t, diags *d) {
  text yaml;
  text_init(&yaml);
  tune_record_write(&t->record, &yaml);
  hd_status status = cli_write_text(text_string(&t->path), &yaml, d);
  text_finish(&yaml);
  if (t->log) fflush(t->log);
  return status;
}

static hd_status set_path(tuning *t, diags *d) {
  const char *out = cli_text(t->c, "out");
  size_t length = out ? strlen(out) : 0;
  text folder;
  if (length > 5 && strcmp(out + length - 5, ".yaml") == 0) {
    text_add(&t->path, out);
    return HD_OK;
  }
  text_init(&folder);
  if (out)
    text_add(&folder, out);
  else
    cli_tuned_folder(t->file.path, &folder);
  hd_status status = file_make_folders(text_string(&folder), 0777);
  if (status != HD_OK) diags_errorf(d, "file.write", NULL, "can't make the folder %s", text_string(&folder));
  cli_tuned_name(text_string(&folder), &t->record, &t->of_the_spec, &t->path);
  text_finish(&folder);
  return status;
}

/* Takes over what is measured already. A record that does not hold any more is begun anew. */
static hd_status resume(tuning *t, diags *d) {
  const char *path = text_string(&t->path), *why = NULL;
  tune_files there;
  if (access(path, F_OK) != 0) return HD_OK;
  hd_status status = tune_files_load(path, &there, d);
  if (status != HD_OK) return status;
  const tune_record *r = there.items[0].record;
  device_facts facts = {.compute_units = t->compute_units};
  snprintf(facts.name, sizeof facts.name, "%s", t->record.device);
  tune_files_validate(&there, &t->contract, t->target, &facts);
  if (strcmp(r->contract, t->record.contract) != 0 || strcmp(r->target, t->record.target) != 0 ||
      r->evidence != t->record.evidence) {
    diags_errorf(d, "tune.record", NULL, "%s is the record of another contract, target or evidence: %s", path,
                 there.items[0].valid ? tune_evidence_name(r->evidence) : there.items[0].why);
    status = HD_DECLINED;
  } else if (!there.items[0].valid) {
    why = there.items[0].why;
  } else if (strcmp(r->compiler, t->record.compiler) != 0) {
    why = "another compiler made its kernels";
  } else {
    double margin = t->record.margin;
    t->record = *r;
    t->record.margin = margin;
  }
  if (why && !console_quiet())
    fprintf(stderr, "heddle tune: %s does not hold any more (%s): begun anew\n", path, why);
  tune_files_finish(&there);
  return status;
}

/* ---- The search ---- */

static int read_shapes(tuning *t) {
  const char *word;
  for (int i = 0; (word = cli_list(t->c, "shape", i)); i++) {
    if (t->shape_count == TUNE_MAX_SHAPES) return cli_usage(t->c, "more than %d shapes", TUNE_MAX_SHAPES);
    if (cli_tune_shape(t->c, word, &t->shapes[t->shape_count++])) return EXIT_USAGE;
  }
  return EXIT_FINE;
}

static void show_progress(const tuning *t, int index, const tune_entry *e, double seconds) {
  text shape;
  if (!t->shows_progress) return;
  int left = t->shape_count - index - 1;
  text_init(&shape);
  tune_shape_write(&e->shape, &shape);
  fprintf(stderr, "[%d/%d] %s: %s split %" PRId64 ", %.2f us", index + 1, t->shape_count, text_string(&shape),
          e->variant, e->splits, e->us);
  if (e->policy_us > 0) fprintf(stderr, " (policy %.2f)", e->policy_us);
  double each = (now() - t->start) / (t->measured > 0 ? t->measured : 1);
  fprintf(stderr, "; %.1f s, about %.0f s left\n", seconds, each * left);
  text_finish(&shape);
}

/* One shape. HD_OK also when the shape was declined and others go on. */
static hd_status tune_shape_at(tuning *t, int index, diags *d) {
  const tune_report report = {t, report_dropped};
  tune_entry e;
  diags problems;
  double before = now();
  diags_init(&problems);
  hd_status status = tune_search(&t->space, &t->meter, &t->shapes[index], t->compute_units, t->record.margin,
                                 &report, &e, &problems);
  if (status == HD_OK) {
    const char *sum = "";
    for (int i = 0; i < t->space.count; i++)
      if (strcmp(t->space.items[i].name, e.variant) == 0) sum = t->space.items[i].sum;
    t->measured++;
    status = tune_record_add(&t->record, &e, sum) ? save(t, d) : HD_INTERNAL;
    double seconds = now() - before;
    if (seconds > t->longest) t->longest = seconds;
    show_progress(t, index, &e, seconds);
  } else if (status == HD_DECLINED && !t->timings) {
    t->failed++;
    cli_complain(t->file.path, &t->file, &problems);
    status = HD_OK;
  } else {
    diags_add_new(d, &problems, DIAG_ERROR);
  }
  diags_finish(&problems);
  return status;
}

static hd_status tune_shapes(tuning *t, bool *out_finished, diags *d) {
  int64_t budget = cli_int(t->c, "budget", 0);
  hd_status status = HD_OK;
  *out_finished = true;
  for (int i = 0; status == HD_OK && i < t->shape_count; i++) {
    if (t->shapes[i].rows == 0) t->shapes[i].rows = t->rows;
    if (tune_record_find(&t->record, &t->shapes[i])) {
      t->kept++;
      continue;
    }
    if (budget > 0 && now() - t->start + t->longest > (double)budget) {
      *out_finished = false;
      break;
    }
    status = tune_shape_at(t, i, d);
  }
  return status;
}

static void write_pruned_json(const tuning *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->space.pruned_count; i++) {
    bool inner = true;
    text_add(out, i ? ", {" : "{");
    json_text(out, &inner, "variant", t->space.pruned[i].name);
    json_text(out, &inner, "why", t->space.pruned[i].why);
    text_add(out, "}");
  }
  text_add(out, "]");
}

static void report_json(const tuning *t, bool finished, text *out) {
  bool first = true;
  text_add(out, "{");
  json_bool(out, &first, "ok", t->failed == 0);
  json_text(out, &first, "record", text_string(&t->path));
  json_text(out, &first, "evidence", tune_evidence_name(t->record.evidence));
  json_bool(out, &first, "complete", finished);
  json_int(out, &first, "shapes", t->shape_count);
  json_int(out, &first, "measured", t->measured);
  json_int(out, &first, "kept", t->kept);
  json_key(out, &first, "variants");
  text_add(out, "[");
  for (int i = 0; i < t->space.count; i++) {
    if (i) text_add(out, ", ");
    text_add_json(out, t->space.items[i].name);
  }
  text_add(out, "]");
  json_key(out, &first, "pruned");
  write_pruned_json(t, out);
  json_key(out, &first, "dropped");
  text_addf(out, "[%s]}\n", text_string(&t->dropped));
}

static void report_text(const tuning *t, bool finished, text *out) {
  text_addf(out, "%s: %d shapes %s, %d from before, %d declined; %d variants, %d pruned\n",
            text_string(&t->path), t->measured,
            t->record.evidence == TUNE_MEASURED ? "measured" : "simulated", t->kept, t->failed,
            t->space.count, t->space.pruned_count);
  if (!finished)
    text_addf(out, "the budget is spent with %d of %d shapes done: run it again to go on\n",
              t->measured + t->kept, t->shape_count);
}

static int run_search(tuning *t, diags *d) {
  bool finished = true;
  t->record.margin = cli_number(t->c, "margin", 1.0) / 100;
  hd_status status = set_path(t, d);
  if (status == HD_OK) status = resume(t, d);
  if (status == HD_OK && t->log) {
    text head;
    text_init(&head);
    tune_timings_head(&t->record, &head);
    fprintf(t->log, "%s", text_string(&head));
    text_finish(&head);
  }
  if (t->shape_count == 0) {
    read_bytes bytes = read_bytes_of(&t->contract);
    t->shape_count =
        tune_default_shapes(bytes.token_head + bytes.token, t->record.evidence == TUNE_SIMULATED, t->shapes);
  }
  if (status == HD_OK) status = tune_shapes(t, &finished, d);
  if (status != HD_OK) return cli_fail(t->c, t->file.path, &t->file, d, status);
  text out;
  text_init(&out);
  cli_complain(t->file.path, &t->file, d);
  (t->c->json ? report_json : report_text)(t, finished, &out);
  return cli_output(&out, t->failed ? EXIT_DECLINED : EXIT_FINE);
}

static void list_json(const tuning *t, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "target", t->target->name);
  json_key(out, &first, "variants");
  text_add(out, "[");
  for (int i = 0; i < t->space.count; i++) {
    bool inner = true;
    text_add(out, i ? ", {" : "{");
    json_text(out, &inner, "variant", t->space.items[i].name);
    json_int(out, &inner, "tile", t->space.items[i].splits.tile_tokens);
    json_int(out, &inner, "lds_bytes", t->space.items[i].lds_bytes);
    text_add(out, "}");
  }
  text_add(out, "]");
  json_key(out, &first, "pruned");
  write_pruned_json(t, out);
  text_add(out, "}\n");
}

/* --list: the space of a target, without a device. */
static int list_space(tuning *t, diags *d) {
  target_list targets;
  int code = cli_targets(t->c, &t->file.spec, &targets);
  if (code) return code;
  if (!cli_text(t->c, "target")) return cli_usage(t->c, "--list needs --target TARGET");
  t->target = targets.items[0];
  hd_status status = set_contract(t, d);
  if (status == HD_OK) status = make_space(t, d);
  if (status != HD_OK) return cli_fail(t->c, t->file.path, &t->file, d, status);
  text out;
  text_init(&out);
  if (t->c->json) {
    list_json(t, &out);
    return cli_output(&out, EXIT_FINE);
  }
  for (int i = 0; i < t->space.count; i++)
    text_addf(&out, "%-16s tile %d, %d bytes of dynamic LDS\n", t->space.items[i].name,
              t->space.items[i].splits.tile_tokens, t->space.items[i].lds_bytes);
  for (int i = 0; i < t->space.pruned_count; i++)
    text_addf(&out, "%-16s pruned: %s\n", t->space.pruned[i].name, t->space.pruned[i].why);
  return cli_output(&out, EXIT_FINE);
}

static int open_and_run(tuning *t, diags *d) {
  const char *timings = cli_text(t->c, "timings"), *log = cli_text(t->c, "log");
  if (cli_flag(t->c, "list")) return list_space(t, d);
  if (!timings && !cli_text(t->c, "device"))
    return cli_usage(t->c, "--device is missing, such as --device cuda:0");
  if (log && !(t->log = fopen(log, "a"))) {
    diags_errorf(d, "file.write", NULL, "can't write %s", log);
    return cli_fail(t->c, log, NULL, d, HD_IO);
  }
  hd_status status = timings ? open_timings(t, timings, d) : open_device(t, d);
  if (status == HD_INVALID && !t->has_session && d->count)
    return cli_usage(t->c, "--device: %s", d->items[0].message);
  if (status != HD_OK) return cli_fail(t->c, t->file.path, &t->file, d, status);
  return run_search(t, d);
}

static int search(cli *c) {
  tuning *t = calloc(1, sizeof *t);
  diags d;
  if (!t) return EXIT_FAILED;
  t->c = c;
  t->start = now();
  t->shows_progress = cli_flag(c, "progress") || console_shows_progress();
  text_init(&t->path);
  text_init(&t->dropped);
  diags_init(&d);
  int code = cli_compiler(c, &t->compiler);
  if (!code) code = read_shapes(t);
  if (!code) {
    hd_status status = spec_file_read(c->arguments[0], &t->file, &d);
    if (status != HD_OK)
      code = cli_fail(c, c->arguments[0], &t->file, &d, status);
    else if (!contract_has_operation(&t->file.spec.contract, OPERATION_DECODE))
      code = cli_usage(c, "%s has no kernel 'decode'", t->file.path);
    else
      code = open_and_run(t, &d);
  }
  tune_device_destroy(t->device);
  tune_timings_destroy(t->timings);
  if (t->has_session) session_close(&t->session);
  if (t->log) fclose(t->log);
  spec_file_finish(&t->file);
  text_finish(&t->path);
  text_finish(&t->dropped);
  diags_finish(&d);
  free(t);
  return code;
}

static const cli_option tune_options[] = {
    {"device", 'd', OPTION_TEXT, "DEVICE", "cuda:0, hip:0: measured; emu:gfx950: by the emulator's estimate",
     0, 0},
    {"out", 'o', OPTION_TEXT, "PATH", "the record, or a folder for it (default: tuned/ beside the spec)", 0,
     0},
    {"shape", 's', OPTION_LIST, "SHAPE",
     "SEQSxLENGTHxKV_HEADS, with -2rows or -ragged behind it or not; may be repeated (default: a grid)", 0,
     0},
    {"rows", 0, OPTION_INT, "N", "query rows a sequence where a shape doesn't say (default: the spec's)", 1,
     8},
    {"budget", 0, OPTION_INT, "SECONDS", "stop before this is spent; the next run goes on", 1, 1 << 20},
    {"margin", 0, OPTION_NUMBER, "PERCENT", "times this near each other are the same (default: 1)", 0, 0},
    {"heads-per-kv", 0, OPTION_INT, "G", "another group size than the spec's", 1, 64},
    OPTION_ROW_PAGE,
    {"jobs", 'j', OPTION_INT, "N", "compilers at a time (default: the cores)", 1, 256},
    OPTION_ROW_SEED,
    {"log", 0, OPTION_TEXT, "FILE", "append every time that was taken", 0, 0},
    {"timings", 0, OPTION_TEXT, "FILE", "take times from such a file instead of a device", 0, 0},
    {"progress", 0, OPTION_FLAG, NULL, "show progress also where standard error is no terminal", 0, 0},
    {"list", 0, OPTION_FLAG, NULL, "with --target: list the variants and why others are pruned", 0, 0},
    OPTION_ROW_TARGET,
    OPTION_ROW_TUNED,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_verb *const tune_actions[] = {&action_tune_show, &action_tune_merge, &action_tune_import,
                                               &action_tune_explain, NULL};

const cli_verb verb_tune = {
    .name = "tune",
    .arguments = "SPEC --device DEVICE | ACTION ARGUMENT...",
    .summary = "find the fastest variant and split for shapes, and keep them as a record",
    .details =
        "With a spec it searches: what is wrong is dropped, the others are halved until one is left. The\n"
        "record is written after every shape, and shapes in it are not measured again.\n"
        "docs/tuning.md has the method and the format.\n",
    .examples = "  heddle tune specs/minimax-m3-dense-fp8.yaml --device cuda:0 --budget 540\n"
                "  heddle tune explain specs/minimax-m3-dense-fp8.yaml --target sm_90 --shape 48x6000x4\n"
                "  heddle tune merge monday.yaml tuesday.yaml --out both.yaml\n",
    .result = "0 fine, 1 declined or no variant is right, 2 usage, 3 failure",
    .options = tune_options,
    .fewest = 1,
    .most = 1,
    .run = search,
    .actions = tune_actions,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES | ENV_TUNED | ENV_TEMPLATES,
    .group = GROUP_LAUNCHES,
};
