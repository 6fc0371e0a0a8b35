#include "../../generator/emit_read.h"
#include "../bench/bench.h"
#include "../pictures/bench_picture.h"
#include "bench_report.h"
#include "progress.h"
#include "shapes.h"
#include "tuned.h"
#include "store.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_REPEAT = 9, QUICK_REPEAT = 7, DEFAULT_COUNT = 200 };

/* What the command line asks for. */
typedef struct request {
  const cli *c;
  spec_file file;
  variant variant;
  compiler_kind compiler;
  bench_options options;
  tune_files tuned;
  int shape_count;
  bench_shape shapes[BENCH_MAX_SHAPES];
  bool ragged[BENCH_MAX_SHAPES];
  report_form form;
} request;

static const char *preset_name(size_t index) {
  return bench_presets[index].name;
}

static int add_shape(request *r, const bench_shape *shape, bool ragged) {
  if (r->shape_count == BENCH_MAX_SHAPES) return cli_usage(r->c, "more than %d shapes", BENCH_MAX_SHAPES);
  r->ragged[r->shape_count] = ragged;
  r->shapes[r->shape_count++] = *shape;
  return EXIT_FINE;
}

/* Known only now: how much a token takes. */
static int add_random(request *r, const contract *resolved) {
  read_bytes bytes = read_bytes_of(resolved);
  int count = (int)cli_int(r->c, "count", DEFAULT_COUNT), code = EXIT_FINE;
  for (int n = 0; !code && n < count; n++) {
    bench_shape shape;
    bool ragged;
    bench_random_shape(r->options.seed, n, bytes.token_head + bytes.token, &shape, &ragged);
    code = add_shape(r, &shape, ragged);
  }
  return code;
}

static int add_preset(request *r, const char *name) {
  if (strcmp(name, "random") == 0) {
    r->options.quick = true;
    r->options.repeat = (int)cli_int(r->c, "repeat", QUICK_REPEAT);
    return EXIT_FINE;
  }
  const bench_preset *p = bench_preset_find(name);
  if (!p) {
    const char *near = cli_nearest(name, (size_t)bench_preset_count, preset_name);
    return near ? cli_usage(r->c, "unknown preset '%s' (did you mean %s?)", name, near)
                : cli_usage(r->c, "unknown preset '%s': decode, first, tiny or random", name);
  }
  int code = EXIT_FINE;
  for (int i = 0; !code && i < p->count; i++)
    code = add_shape(r, &p->shapes[i], r->options.ragged);
  return code;
}

static int read_shapes(request *r) {
  int code = EXIT_FINE;
  const char *word;
  for (int i = 0; !code && (word = cli_list(r->c, "preset", i)); i++)
    code = add_preset(r, word);
  for (int i = 0; !code && (word = cli_list(r->c, "shape", i)); i++) {
    bench_shape shape;
    code = cli_bench_shape(r->c, word, &shape);
    if (!code) code = add_shape(r, &shape, r->options.ragged);
  }
  return code;
}

/* "8,16,auto". */
static int read_splits(request *r) {
  const char *at = cli_text(r->c, "split");
  bench_options *o = &r->options;
  if (!at) at = "auto";
  for (;;) {
    size_t length = strcspn(at, ",");
    char *end = NULL;
    long value = length == 4 && memcmp(at, "auto", 4) == 0 ? 0 : strtol(at, &end, 10);
    bool good = !end || (end == at + length && length > 0 && value >= 1 && value <= 4096);
    if (!good)
      return cli_usage(r->c, "--split takes auto or numbers from 1 to 4096 with commas between, not '%s'",
                       cli_text(r->c, "split"));
    if (o->split_count == BENCH_MAX_SPLITS) return cli_usage(r->c, "more than %d splits", BENCH_MAX_SPLITS);
    o->splits[o->split_count++] = value;
    if (!at[length]) return EXIT_FINE;
    at += length + 1;
  }
}

static int read_request(request *r) {
  const cli *c = r->c;
  if (!cli_text(c, "device")) return cli_usage(c, "--device is missing, such as --device cuda:0");
  if (c->json && cli_flag(c, "csv")) return cli_usage(c, "--json and --csv exclude each other");
  r->form = c->json ? REPORT_JSON : cli_flag(c, "csv") ? REPORT_CSV : REPORT_TABLE;
  r->options.ragged = cli_flag(c, "ragged");
  r->options.capacity = cli_int(c, "capacity", 0);
  r->options.rows = (int)cli_int(c, "rows", 0);
  r->options.page = (int)cli_int(c, "page", 0);
  r->options.repeat = (int)cli_int(c, "repeat", DEFAULT_REPEAT);
  r->options.seed = (uint64_t)cli_int(c, "seed", 1);
  int code = cli_variant(c, &r->variant);
  if (!code) code = cli_compiler(c, &r->compiler);
  if (!code) code = read_splits(r);
  if (!code) code = read_shapes(r);
  return code;
}

static hd_status write_picture(const bench_points *points, const char *path, diags *d) {
  text svg;
  text_init(&svg);
  bench_svg(points, &svg);
  hd_status status = cli_write_text(path, &svg, d);
  text_finish(&svg);
  return status;
}

/* Of the fastest split of each shape. */
static int write_chart(const request *r, const session *s, const bench_result *results, int count, diags *d) {
  const char *path = cli_text(r->c, "svg");
  bench_points points = {0};
  hd_status status = HD_OK;
  if (!path) return EXIT_FINE;
  snprintf(points.spec, sizeof points.spec, "%s", r->file.spec.name);
  snprintf(points.device, sizeof points.device, "%s", s->facts.name);
  snprintf(points.target, sizeof points.target, "%s", s->target->name);
  for (int i = 0; status == HD_OK && i < count; i++) {
    const bench_result *b = &results[i];
    bench_point point = {.seqs = b->shape.seqs,
                         .length = b->shape.length,
                         .kv_heads = b->shape.kv_heads,
                         .heads_per_kv = b->shape.heads_per_kv,
                         .rows = b->rows,
                         .ragged = b->ragged,
                         .splits = b->splits,
                         .bytes = b->bytes,
                         .us = b->decode.statistics.median,
                         .read_us = b->read.statistics.median};
    snprintf(point.variant, sizeof point.variant, "%s", b->variant);
    points.untimed += !b->timed;
    if (b->timed && b->best) status = bench_points_add(&points, &point);
  }
  if (status == HD_OK) status = write_picture(&points, path, d);
  bench_points_finish(&points);
  if (status == HD_OK) return EXIT_FINE;
  cli_complain(path, NULL, d);
  return cli_exit_code(status);
}

/* The picture of results that were printed before. */
static int draw_saved(const cli *c) {
  enum { MOST_SAVED = 1 << 26 };
  const char *from = cli_text(c, "from"), *path = cli_text(c, "svg");
  char *bytes = NULL;
  size_t length = 0;
  bench_points points = {0};
  diags d;
  if (!path) return cli_usage(c, "--from draws a picture: --svg FILE is missing");
  if (c->argument_count || cli_text(c, "device"))
    return cli_usage(c, "--from takes neither a spec nor a device");
  diags_init(&d);
  hd_status status = cli_read_file(from, MOST_SAVED, &bytes, &length, &d);
  if (status == HD_OK) status = bench_points_read(bytes, length, &points, &d);
  if (status == HD_OK) status = write_picture(&points, path, &d);
  bench_points_finish(&points);
  free(bytes);
  if (status != HD_OK) return cli_fail(c, from, NULL, &d, status);
  diags_finish(&d);
  return EXIT_FINE;
}

/* Runs all shapes. A shape that is declined is reported, and the others go on. */
static int run_shapes(request *r, session *s, const contract *c, bench_result *results, diags *d) {
  report out;
  progress bar;
  int code = EXIT_FINE, count = 0, splits = r->options.split_count;
  hd_status status = HD_OK;
  diags shown; /* of declines: shapes may have the same one */
  diags_init(&shown);
  report_init(&out, r->form, r->file.spec.name, s, &r->options);
  progress_begin(&bar, "shapes", r->shape_count);
  for (int i = 0; i < r->shape_count; i++) {
    bench_result *own = results + count;
    r->options.ragged = r->ragged[i];
    status = bench_run(s, c, r->file.spec.name, &r->variant, &r->shapes[i], &r->options, own, d);
    progress_clear();
    if (status == HD_DECLINED || status == HD_INVALID) {
      const size_t before = shown.count;
      diags_add_new(&shown, d, DIAG_ERROR);
      if (shown.count > before) cli_complain(r->file.path, &r->file, d);
      diags_finish(d);
      diags_init(d);
      code = EXIT_DECLINED;
      continue;
    }
    if (status != HD_OK) break;
    for (int j = 0; j < splits; j++) {
      report_result(&out, &own[j]);
      if (!own[j].good) code = EXIT_DECLINED;
    }
    count += splits;
    progress_step(&bar);
  }
  progress_end(&bar);
  cli_hint(r->c, r->file.path, &shown);
  diags_finish(&shown);
  if (status != HD_OK && status != HD_DECLINED && status != HD_INVALID) {
    report_finish(&out, false, false);
    return cli_fail(r->c, r->file.path, &r->file, d, status);
  }
  int written = write_chart(r, s, results, count, d);
  bench_summary summary;
  bench_summary_of(results, count, &summary);
  report_summary(&out, &summary);
  int printed = report_finish(&out, true, code == EXIT_FINE);
  return written ? written : printed ? printed : code;
}

static int run_request(request *r, diags *d) {
  session s;
  hd_status status = session_open(cli_text(r->c, "device"), r->compiler, NULL, &s, d);
  if (status == HD_INVALID && d->count) return cli_usage(r->c, "--device: %s", d->items[0].message);
  if (status != HD_OK) return cli_fail(r->c, r->file.path, &r->file, d, status);
  cli_log_cache(r->c, s.cache);
  contract resolved = contract_resolve(&r->file.spec.contract, s.target->fp8);
  int code = EXIT_FINE;
  status = cli_tuned_load(r->c, r->file.path, &r->tuned, d);
  if (status != HD_OK) {
    session_close(&s);
    return cli_fail(r->c, r->file.path, &r->file, d, status);
  }
  r->options.tuned = &r->tuned;
  if (r->options.quick) code = add_random(r, &resolved);
  if (code == EXIT_FINE && r->shape_count == 0) code = add_preset(r, s.facts.emulated ? "tiny" : "decode");
  size_t rows = (size_t)r->shape_count * (size_t)r->options.split_count;
  bench_result *results = calloc(rows, sizeof *results);
  if (code == EXIT_FINE)
    code = results ? run_shapes(r, &s, &resolved, results, d)
                   : cli_fail(r->c, r->file.path, &r->file, d, HD_OUT_OF_MEMORY);
  free(results);
  tune_files_finish(&r->tuned);
  session_close(&s);
  return code;
}

static int bench(cli *c) {
  diags d;
  if (cli_text(c, "from")) return draw_saved(c);
  if (c->argument_count == 0) return cli_usage(c, "missing argument: heddle bench %s", c->verb->arguments);
  request *r = calloc(1, sizeof *r);
  if (!r) return EXIT_FAILED;
  r->c = c;
  int code = read_request(r);
  if (code) {
    free(r);
    return code;
  }
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &r->file, &d);
  if (status != HD_OK)
    code = cli_fail(c, c->arguments[0], &r->file, &d, status);
  else if (!contract_has_operation(&r->file.spec.contract, OPERATION_DECODE))
    code = cli_usage(c, "%s has no kernel 'decode'", r->file.path);
  else
    code = run_request(r, &d);
  spec_file_finish(&r->file);
  diags_finish(&d);
  free(r);
  return code;
}

static const cli_option bench_options_table[] = {
    {"device", 'd', OPTION_TEXT, "DEVICE", "cuda:0, hip:0, emu:gfx950 (heddle doctor lists what is there)", 0,
     0},
    {"shape", 's', OPTION_LIST, "SHAPE",
     "SEQSxLENGTHxKV_HEADSxG, such as 64x8192x4x16 (default G: the spec's); may be repeated", 0, 0},
    {"preset", 0, OPTION_LIST, "PRESET",
     "decode (nine shapes, the default), first (three of them), tiny, random (--count, --seed)", 0, 0},
    {"count", 0, OPTION_INT, "N", "shapes of --preset random (default: 200)", 1, BENCH_MAX_SHAPES},
    {"ragged", 0, OPTION_FLAG, NULL, "every 8th sequence full, the others 1/16 to 5/16 of it", 0, 0},
    {"capacity", 0, OPTION_INT, "TOKENS",
     "room in page tables and ragged lists, and what the split is chosen for: as in a graph captured once "
     "for sequences that "
     "grow",
     1, 1 << 30},
    {"rows", 0, OPTION_INT, "N", "query rows a sequence, up to the spec's (default: the spec's)", 1, 8},
    OPTION_ROW_PAGE,
    {"split", 0, OPTION_TEXT, "LIST", "auto or numbers, such as 8,16,auto; each is timed (default: auto)", 0,
     0},
    {"repeat", 'n', OPTION_INT, "N", "replays of the graph (default: 9)", 7, BENCH_MAX_REPEAT},
    OPTION_ROW_SEED,
    {"svg", 0, OPTION_TEXT, "FILE", "also draw time over bytes, and shares of the read kernel's speed", 0, 0},
    {"from", 0, OPTION_TEXT, "FILE", "draw the results that --json printed before, and measure nothing", 0,
     0},
    {"csv", 0, OPTION_FLAG, NULL, "print the result as CSV", 0, 0},
    OPTION_ROW_VARIANT,
    OPTION_ROW_TUNED,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_bench = {
    .name = "bench",
    .arguments = "[SPEC --device DEVICE]",
    .summary = "time decode beside a kernel that only reads the same bytes",
    .details = "Caches lie in copies of together more than 450 MB that a graph of launches walks over; the\n"
               "figure is the median of its replays, merge included. The result is held against the float64\n"
               "reference first: a wrong one has no figure. Emulated devices check and give no times.\n"
               "docs/benchmarks.md has the method and the columns.\n",
    .examples =
        "  heddle bench specs/minimax-m3-dense-fp8.yaml --device cuda:0\n"
        "  heddle bench specs/minimax-m3-dense-fp8.yaml --device cuda:0 --shape 4x8192x1x16 --split 8,16,33\n"
        "  heddle bench specs/minimax-m3-dense-fp8.yaml --device cuda:0 --preset random --count 200 --seed "
        "5\n"
        "  heddle bench specs/minimax-m3-dense-fp8.yaml --device cuda:0 --page 16 --svg bench.svg --json\n"
        "  heddle bench --from h200.json --svg bench.svg\n",
    .result = "0 measured, 1 declined or a wrong result, 2 usage, 3 failure",
    .options = bench_options_table,
    .fewest = 0,
    .most = 1,
    .run = bench,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES | ENV_TUNED | ENV_TEMPLATES,
    .group = GROUP_LAUNCHES,
};
