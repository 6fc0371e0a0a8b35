#include "build_output.h"
#include "../cache/cache_file.h"
#include "../embed.h"
#include "store.h"
#include "verbs.h"
#include <stdlib.h>
#include <string.h>

static bool is_pack(const cli *c) {
  return c->verb == &verb_pack;
}

bool build_output_wanted(const cli *c) {
  return is_pack(c) || cli_text(c, "embed") || cli_flag(c, "bundle");
}

int build_output_check(const cli *c) {
  const char *embed = cli_text(c, "embed"), *symbol = cli_text(c, "symbol");
  if (embed && cli_flag(c, "bundle")) return cli_usage(c, "--embed or --bundle, not both");
  if (build_output_wanted(c) && !cli_text(c, "output")) return cli_usage(c, "-o says where to write it");
  if (!build_output_wanted(c) && cli_text(c, "output"))
    return cli_usage(c, "-o goes with --embed or --bundle");
  if (symbol && !embed) return cli_usage(c, "--symbol goes with --embed");
  if (symbol && !embed_symbol_fits(symbol)) return cli_usage(c, "--symbol: '%s' is no name in C", symbol);
  return EXIT_FINE;
}

static hd_status write_c(const cli *c, const build_set *b, diags *d) {
  embed_spec *specs = calloc((size_t)b->file_count, sizeof *specs);
  embed_kernel *kernels = calloc((size_t)b->job_count + 1, sizeof *kernels);
  const char *symbol = cli_text(c, "symbol");
  text out;
  text_init(&out);
  hd_status status = specs && kernels ? HD_OK : HD_OUT_OF_MEMORY;
  for (int i = 0; status == HD_OK && i < b->file_count; i++)
    specs[i] = (embed_spec){b->files[i].spec.name, b->files[i].source, b->files[i].length};
  for (int i = 0; status == HD_OK && i < b->job_count; i++)
    kernels[i] = (embed_kernel){b->jobs[i].name, &b->results[i].entry, b->results[i].compiler};
  if (status == HD_OK) {
    embed_write_c(symbol ? symbol : "heddle_embedded", specs, b->file_count, kernels, b->job_count, &out);
    status = cli_write_text(cli_text(c, "output"), &out, d);
  }
  text_finish(&out);
  free(specs);
  free(kernels);
  return status;
}

/* FOLDER/STEM, then `.TARGET.json` or `.hipfb`. */
static hd_status write_beside(const cli *c, const build_set *b, int job, const char *target_name,
                              const char *suffix, const text *contents, diags *d) {
  text path;
  text_init(&path);
  text_addf(&path, "%s/", cli_text(c, "output"));
  cli_write_stem(&b->files[b->job_file[job]].spec, operation_name(b->jobs[job].operation), &path);
  text_addf(&path, "%s%s%s", target_name ? "." : "", target_name ? target_name : "", suffix);
  hd_status status = path.failed ? HD_OUT_OF_MEMORY : cli_write_text(text_string(&path), contents, d);
  text_finish(&path);
  return status;
}

static bool same_bundle(const build_set *b, int x, int y) {
  return b->job_file[x] == b->job_file[y] && b->jobs[x].operation == b->jobs[y].operation;
}

/* All targets of one spec and operation; `first` is the first job of them. */
static hd_status write_bundle(const cli *c, const build_set *b, int first, const cache_entry **entries,
                              diags *d) {
  int count = 0;
  hd_status status = HD_OK;
  text bundle;
  text_init(&bundle);
  for (int i = first; status == HD_OK && i < b->job_count; i++) {
    if (!same_bundle(b, first, i)) continue;
    text launch;
    text_init(&launch);
    entries[count++] = &b->results[i].entry;
    descriptor_write(b->results[i].entry.descriptor, &launch);
    status = write_beside(c, b, i, b->jobs[i].target->name, ".json", &launch, d);
    text_finish(&launch);
  }
  if (status == HD_OK) status = embed_write_bundle(entries, count, &bundle, d);
  if (status == HD_OK) status = write_beside(c, b, first, NULL, ".hipfb", &bundle, d);
  text_finish(&bundle);
  return status;
}

static hd_status write_bundles(const cli *c, const build_set *b, diags *d) {
  const cache_entry **entries = calloc((size_t)b->job_count + 1, sizeof *entries);
  hd_status status = entries ? cli_make_folders(cli_text(c, "output"), d) : HD_OUT_OF_MEMORY;
  for (int i = 0; status == HD_OK && i < b->job_count; i++) {
    bool first = true;
    for (int j = 0; first && j < i; j++)
      first = !same_bundle(b, i, j);
    if (first) status = write_bundle(c, b, i, entries, d);
  }
  free(entries);
  return status;
}

static hd_status write_pack(const cli *c, const build_set *b, diags *d) {
  size_t count = (size_t)b->job_count;
  pack_item *items = calloc(count + 1, sizeof *items);
  text *files = calloc(count + 1, sizeof *files);
  hd_status status = items && files ? HD_OK : HD_OUT_OF_MEMORY;
  for (size_t i = 0; status == HD_OK && i < count; i++) {
    const cache_entry *e = &b->results[i].entry;
    text_init(&files[i]);
    cache_file_write(e->key_text, e->descriptor, e->code_object, e->code_object_size, &files[i]);
    if (files[i].failed) status = HD_OUT_OF_MEMORY;
    items[i] = (pack_item){files[i].data, files[i].length};
  }
  if (status == HD_OK) status = cli_write_pack(c, cli_text(c, "output"), items, count, d);
  for (size_t i = 0; files && i < count; i++)
    text_finish(&files[i]);
  free(files);
  free(items);
  return status;
}

hd_status build_output_write(const cli *c, const build_set *b, diags *d) {
  if (is_pack(c)) return write_pack(c, b, d);
  return cli_flag(c, "bundle") ? write_bundles(c, b, d) : write_c(c, b, d);
}
