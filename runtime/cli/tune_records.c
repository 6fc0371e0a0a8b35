/* tune show, merge, import and explain: what is done with records that are there. */
#include "../bench/bench.h"
#include "../file.h"
#include "../pictures/tune_picture.h"
#include "shapes.h"
#include "tuned_launch.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All files or none. */
static hd_status load_arguments(const cli *c, tune_files *out, diags *d) {
  tune_files all = {0};
  hd_status status = HD_OK;
  for (int i = 0; status == HD_OK && i < c->argument_count; i++) {
    tune_files one;
    status = tune_files_load(c->arguments[i], &one, d);
    if (status != HD_OK) break;
    if (one.count == 0) {
      diags_errorf(d, "tune.file", NULL, "%s has no records", c->arguments[i]);
      status = HD_IO;
      break;
    }
    tune_file *grown = realloc(all.items, (size_t)(all.count + one.count) * sizeof *grown);
    if (!grown) {
      tune_files_finish(&one);
      status = HD_OUT_OF_MEMORY;
      break;
    }
    all.items = grown;
    memcpy(all.items + all.count, one.items, (size_t)one.count * sizeof *grown);
    all.count += one.count;
    free(one.items);
  }
  if (status == HD_OK)
    *out = all;
  else
    tune_files_finish(&all);
  return status;
}

/* ---- show ---- */

static void show_entry(const tune_entry *e, text *out) {
  text shape;
  text_init(&shape);
  tune_shape_write(&e->shape, &shape);
  text_addf(out, "  %-24s %-14s %5" PRId64 " %10.2f", text_string(&shape), e->variant, e->splits, e->us);
  if (e->policy_us > 0)
    text_addf(out, " %10.2f %7.1f%%", e->policy_us, 100 * (e->policy_us / e->us - 1));
  else
    text_addf(out, " %10s %8s", "-", "-");
  if (e->read_us > 0)
    text_addf(out, " %9.2f %7.3f\n", e->read_us, e->us / (1.02 * e->read_us + 2));
  else
    text_addf(out, " %9s %7s\n", "-", "-");
  text_finish(&shape);
}

static void show_record(const tune_file *f, text *out) {
  const tune_record *r = f->record;
  text_addf(out, "%s: %s, contract %.12s (%d heads a kv head, page %d)\n", f->path, r->name, r->contract,
            r->heads_per_kv, r->page);
  text_addf(out, "  %s on %s (%s, %d compute units), %s, margin %.1f %%\n", tune_evidence_name(r->evidence),
            r->device, r->target, r->compute_units, r->compiler, 100 * r->margin);
  text_addf(out, "  %-24s %-14s %5s %10s %10s %8s %9s %7s\n", "shape", "variant", "split", "us", "policy us",
            "gained", "read us", "ratio");
  for (int i = 0; i < r->entry_count; i++)
    show_entry(&r->entries[i], out);
}

static void write_record_json(const char *path, const tune_record *r, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "file", path);
  json_text(out, &first, "name", r->name);
  json_text(out, &first, "contract", r->contract);
  json_int(out, &first, "heads_per_kv", r->heads_per_kv);
  json_int(out, &first, "page", r->page);
  json_text(out, &first, "target", r->target);
  json_text(out, &first, "evidence", tune_evidence_name(r->evidence));
  json_text(out, &first, "device", r->device);
  json_int(out, &first, "compute_units", r->compute_units);
  json_text(out, &first, "compiler", r->compiler);
  json_number(out, &first, "margin", r->margin);
  json_key(out, &first, "entries");
  text_add(out, "[");
  for (int i = 0; i < r->entry_count; i++) {
    const tune_entry *e = &r->entries[i];
    bool inner = true;
    text_add(out, i ? ",\n  {" : "\n  {");
    json_extents(out, &inner, e->shape.seqs, e->shape.length, e->shape.kv_heads);
    json_int(out, &inner, "rows", e->shape.rows);
    json_bool(out, &inner, "ragged", e->shape.ragged);
    json_text(out, &inner, "variant", e->variant);
    json_int(out, &inner, "split", e->splits);
    json_number(out, &inner, "us", e->us);
    json_number(out, &inner, "policy_us", e->policy_us);
    json_number(out, &inner, "read_us", e->read_us);
    json_int(out, &inner, "candidates", e->candidates);
    text_add(out, "}");
  }
  text_add(out, "]}");
}

static void show_json(const tune_file *f, text *out) {
  write_record_json(f->path, f->record, out);
}

static hd_status draw_records(const tune_files *files, const char *path, diags *d) {
  const tune_record **records = calloc((size_t)files->count + 1, sizeof *records);
  text svg;
  if (!records) return HD_OUT_OF_MEMORY;
  for (int i = 0; i < files->count; i++)
    records[i] = files->items[i].record;
  text_init(&svg);
  tune_svg(records, files->count, &svg);
  hd_status status = cli_write_text(path, &svg, d);
  text_finish(&svg);
  free(records);
  return status;
}

static int show_records(cli *c) {
  tune_files files;
  diags d;
  text out;
  diags_init(&d);
  hd_status status = load_arguments(c, &files, &d);
  const char *path = cli_text(c, "svg");
  if (status == HD_OK && path) {
    status = draw_records(&files, path, &d);
    if (status != HD_OK) tune_files_finish(&files);
  }
  if (status != HD_OK) return cli_fail(c, "tune show", NULL, &d, status);
  text_init(&out);
  if (c->json) text_add(&out, "[");
  for (int i = 0; i < files.count; i++) {
    if (c->json && i) text_add(&out, ",\n ");
    (c->json ? show_json : show_record)(&files.items[i], &out);
  }
  if (c->json) text_add(&out, "]\n");
  tune_files_finish(&files);
  diags_finish(&d);
  return cli_output(&out, EXIT_FINE);
}

/* ---- merge and import ---- */

static hd_status write_record(const tune_record *r, const char *path, diags *d) {
  text yaml;
  text_init(&yaml);
  tune_record_write(r, &yaml);
  hd_status status = cli_write_text(path, &yaml, d);
  text_finish(&yaml);
  return status;
}

static int merge(cli *c) {
  tune_files files;
  diags d;
  diags_init(&d);
  hd_status status = load_arguments(c, &files, &d);
  if (status != HD_OK) return cli_fail(c, "tune merge", NULL, &d, status);
  tune_record *merged = files.items[0].record;
  for (int i = 1; status == HD_OK && i < files.count; i++)
    status = tune_record_merge(merged, files.items[i].record, merged, &d);
  const char *path = cli_text(c, "out");
  int code = EXIT_FINE;
  if (status == HD_OK && path) status = write_record(merged, path, &d);
  if (status != HD_OK) {
    code = cli_fail(c, "tune merge", NULL, &d, status);
  } else {
    text out;
    text_init(&out);
    if (c->json) {
      write_record_json(path ? path : "", merged, &out);
      text_add(&out, "\n");
    } else if (!path) {
      tune_record_write(merged, &out);
    }
    code = cli_output_product(&out, EXIT_FINE);
  }
  tune_files_finish(&files);
  diags_finish(&d);
  return code;
}

/* Merges each record into the file of its name in the folder. Nothing is written before all of them fit. */
static hd_status import_all(const char *folder, tune_files *files, diags *d) {
  text *paths = calloc((size_t)files->count + 1, sizeof *paths);
  hd_status status = paths ? HD_OK : HD_OUT_OF_MEMORY;
  for (int i = 0; status == HD_OK && i < files->count; i++) {
    tune_files there;
    text_init(&paths[i]);
    cli_tuned_name(folder, files->items[i].record, NULL, &paths[i]);
    /* A name can stand for several groups and pages: the key decides. */
    paths[i].length -= strlen(".yaml");
    text_addf(&paths[i], ".%.8s.yaml", files->items[i].record->contract);
    for (int n = 0; status == HD_OK && n < i; n++)
      if (strcmp(text_string(&paths[n]), text_string(&paths[i])) == 0) {
        status = tune_record_merge(files->items[n].record, files->items[i].record, files->items[i].record, d);
        text_clear(&paths[n]);
      }
    FILE *known = status == HD_OK ? fopen(text_string(&paths[i]), "rb") : NULL;
    if (!known) continue;
    fclose(known);
    status = tune_files_load(text_string(&paths[i]), &there, d);
    if (status != HD_OK) continue;
    status = tune_record_merge(there.items[0].record, files->items[i].record, files->items[i].record, d);
    tune_files_finish(&there);
  }
  for (int i = 0; status == HD_OK && i < files->count; i++)
    if (paths[i].length > 0) status = write_record(files->items[i].record, text_string(&paths[i]), d);
  for (int i = 0; paths && i < files->count; i++)
    text_finish(&paths[i]);
  free(paths);
  return status;
}

static int import(cli *c) {
  tune_files files;
  diags d;
  const char *folder = cli_text(c, "out");
  int imported = 0;
  if (!folder) return cli_usage(c, "--out is missing: the folder to import into");
  diags_init(&d);
  hd_status status = load_arguments(c, &files, &d);
  if (status == HD_OK) {
    if (file_make_folders(folder, 0777) != HD_OK) {
      diags_errorf(&d, "file.write", NULL, "can't make the folder %s", folder);
      status = HD_IO;
    }
    if (status == HD_OK) status = import_all(folder, &files, &d);
    imported = files.count;
    tune_files_finish(&files);
  }
  if (status != HD_OK) return cli_fail(c, "tune import", NULL, &d, status);
  diags_finish(&d);
  text out;
  text_init(&out);
  if (c->json) {
    bool first = true;
    text_add(&out, "{");
    json_int(&out, &first, "imported", imported);
    json_text(&out, &first, "folder", folder);
    text_add(&out, "}\n");
  }
  return cli_output(&out, EXIT_FINE);
}

/* ---- explain ---- */

/* Of the spec, or of it with another group or page size. */
static hd_status explain(cli *c, const spec_file *file, const target *t, const tune_shape *shape,
                         tune_files *files, tuned_launch *out_launch, diags *d) {
  contract resolved = contract_resolve(&file->spec.contract, t->fp8), used;
  hd_status status =
      bench_contract(&resolved, (int)cli_int(c, "heads-per-kv", 0), (int)cli_int(c, "page", 0), &used, d);
  if (status != HD_OK) return status;
  tuned_question q = {.contract = &used, .factors = &file->spec.split_factors, .target = t, .shape = *shape};
  status = bench_rows(&used, q.shape.rows, &q.shape.rows, d);
  if (status != HD_OK) return status;
  return tuned_launch_of(&q, files, out_launch, d);
}

static void explain_json(const tuned_launch *l, const tune_files *files, text *out) {
  bool first = true;
  text_add(out, "{");
  tuned_launch_json(l, files, &first, out);
  text_add(out, "}\n");
}

static int explain_choice(cli *c) {
  tune_shape shape;
  tuned_launch launch;
  spec_file file;
  target_list targets;
  tune_files files = {0};
  diags d;
  const char *word = cli_list(c, "shape", 0);
  if (!word) return cli_usage(c, "--shape is missing, such as --shape 64x8192x4");
  if (!cli_text(c, "target")) return cli_usage(c, "--target is missing");
  if (cli_tune_shape(c, word, &shape)) return EXIT_USAGE;
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &file, &d);
  int code = EXIT_FINE;
  if (status == HD_OK) code = cli_targets(c, &file.spec, &targets);
  if (status == HD_OK && code == EXIT_FINE) {
    status = cli_tuned_load(c, c->arguments[0], &files, &d);
    if (status == HD_OK) status = explain(c, &file, targets.items[0], &shape, &files, &launch, &d);
  }
  if (status != HD_OK) {
    code = cli_fail(c, c->arguments[0], &file, &d, status);
  } else if (code == EXIT_FINE) {
    text out;
    text_init(&out);
    cli_complain(c->arguments[0], &file, &d);
    (c->json ? explain_json : tuned_launch_write)(&launch, &files, &out);
    code = cli_output(&out, EXIT_FINE);
  }
  tune_files_finish(&files);
  spec_file_finish(&file);
  diags_finish(&d);
  return code;
}

static const cli_option show_options[] = {
    {"svg", 0, OPTION_TEXT, "FILE", "also draw variant, split and time of each bucket", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option merge_options[] = {
    {"out", 'o', OPTION_TEXT, "FILE", "the record to write (default: standard output)", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option import_options[] = {
    {"out", 'o', OPTION_TEXT, "DIR", "the folder of records", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option explain_options[] = {
    {"target", 0, OPTION_TEXT, "TARGET", "the device's", 0, 0},
    {"shape", 's', OPTION_TEXT, "SHAPE", "SEQSxLENGTHxKV_HEADS, with -2rows or -ragged behind it or not", 0,
     0},
    {"heads-per-kv", 0, OPTION_INT, "G", "another group size than the spec's", 1, 64},
    OPTION_ROW_PAGE,
    OPTION_ROW_TUNED,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb action_tune_show = {
    .name = "tune show",
    .arguments = "RECORD...",
    .summary = "what records hold",
    .examples = "  heddle tune show specs/tuned/*.yaml\n"
                "  heddle tune show h200.yaml --svg buckets.svg\n",
    .result = "0 fine, 1 a record is not valid, 2 usage, 3 failure",
    .options = show_options,
    .fewest = 1,
    .most = -1,
    .run = show_records,
};

const cli_verb action_tune_merge = {
    .name = "tune merge",
    .arguments = "RECORD RECORD...",
    .summary = "of two entries for a shape the faster one",
    .examples = "  heddle tune merge monday.yaml tuesday.yaml --out both.yaml\n",
    .result = "0 fine, 1 the records don't belong together, 2 usage, 3 failure",
    .options = merge_options,
    .fewest = 2,
    .most = -1,
    .run = merge,
};

const cli_verb action_tune_import = {
    .name = "tune import",
    .arguments = "RECORD... --out DIR",
    .summary = "merge records into a folder of them, all or none",
    .examples = "  heddle tune import h200.yaml --out specs/tuned\n",
    .result = "0 fine, 1 a record is not valid or doesn't belong there, 2 usage, 3 failure",
    .options = import_options,
    .fewest = 1,
    .most = -1,
    .run = import,
};

const cli_verb action_tune_explain = {
    .name = "tune explain",
    .arguments = "SPEC --target TARGET --shape SHAPE",
    .summary = "which variant and split a launch takes, and why",
    .details = "No device is needed: the target stands for any device of it.\n",
    .examples = "  heddle tune explain specs/minimax-m3-dense-fp8.yaml --target sm_90 --shape 48x6000x4\n",
    .result = "0 fine, 1 declined, 2 usage, 3 failure",
    .options = explain_options,
    .fewest = 1,
    .most = 1,
    .run = explain_choice,
    .environment = ENV_TUNED | ENV_TEMPLATES,
};
