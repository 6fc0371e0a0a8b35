#include "store.h"
#include "console.h"
#include "../../generator/sha256.h"
#include "../cache/cache_file.h"
#include "../file.h"
#include "verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void *user, const char *line) {
  const cli *c = user;
  if (console_quiet()) return;
  fprintf(stderr, "heddle %s: cache: %s\n", c->verb->name, line);
}

void cli_log_cache(const cli *c, cache *store) {
  cache_set_log(store, say, (void *)(uintptr_t)c);
}

hd_status cli_open_cache(const cli *c, cache **out_cache, diags *d) {
  size_t before = d->count;
  hd_status status = cache_open(NULL, out_cache, d);
  if (status != HD_OK) return status;
  for (size_t i = before; i < d->count; i++)
    say((void *)(uintptr_t)c, d->items[i].message);
  cli_log_cache(c, *out_cache);
  return HD_OK;
}

/* Read by others, written by nobody else: a pack that others could write would not be used. */
static hd_status write_shared(const char *path, const text *contents, diags *d) {
  if (contents->failed) return HD_OUT_OF_MEMORY;
  hd_status status = file_write_atomic(AT_FDCWD, path, 0644, text_string(contents), contents->length);
  if (status == HD_IO) diags_errorf(d, "file.write", NULL, "can't write %s: %s", path, strerror(errno));
  return status;
}

hd_status cli_write_pack(const cli *c, const char *path, const pack_item *items, size_t count, diags *d) {
  text pack, sum, sum_path;
  char hex[65];
  const char *slash = strrchr(path, '/');
  text_init(&pack);
  text_init(&sum);
  text_init(&sum_path);
  hd_status status = pack_write(items, count, &pack, d);
  if (status == HD_OK) {
    sha256_hex(pack.data, pack.length, hex);
    text_addf(&sum, "%s  %s\n", hex, slash != NULL ? slash + 1 : path);
    text_addf(&sum_path, "%s.sha256", path);
    status = sum_path.failed ? HD_OUT_OF_MEMORY : write_shared(path, &pack, d);
  }
  if (status == HD_OK) status = write_shared(text_string(&sum_path), &sum, d);
  if (status == HD_OK && !c->json && !console_quiet())
    printf("%s: %zu entries, %zu bytes, sha256 %s\n", path, pack_count(pack.data), pack.length, hex);
  text_finish(&pack);
  text_finish(&sum);
  text_finish(&sum_path);
  return status;
}

/* What cli_pack_cache gathers. */
typedef struct gathering {
  const cli *c;
  pack_item *items;
  size_t count, bad;
  uint64_t bytes;
  hd_status status;
} gathering;

static bool is_chosen(const cli *c, const char *target_name) {
  for (int i = 0;; i++) {
    const char *chosen = cli_list(c, "target", i);
    if (chosen == NULL) return i == 0;
    if (strcmp(chosen, target_name) == 0) return true;
  }
}

static hd_status gather_entry(gathering *g, const char *place, const char *key, const void *bytes,
                              size_t size) {
  cache_file file;
  diags problems;
  descriptor *d = malloc(sizeof *d);
  if (d == NULL) return HD_OUT_OF_MEMORY;
  diags_init(&problems);
  hd_status status = cache_file_verify(bytes, size, key, &file, d, &problems);
  bool wanted = status == HD_OK && is_chosen(g->c, d->target);
  if (status == HD_INVALID) {
    fprintf(stderr, "heddle %s: %s: entry %.12s is left out: %s\n", g->c->verb->name, place, key,
            problems.count > 0 ? problems.items[0].message : "it is bad");
    g->bad++;
    status = HD_OK;
  }
  diags_finish(&problems);
  free(d);
  if (status != HD_OK || !wanted) return status;
  pack_item *grown = realloc(g->items, (g->count + 1) * sizeof *grown);
  if (grown != NULL) g->items = grown;
  void *copy = malloc(size);
  if (grown == NULL || copy == NULL) {
    free(copy);
    return HD_OUT_OF_MEMORY;
  }
  memcpy(copy, bytes, size);
  g->items[g->count++] = (pack_item){copy, size};
  return HD_OK;
}

static bool gather(void *user, const char *place, const char *key, const void *bytes, size_t size) {
  gathering *g = user;
  g->status = gather_entry(g, place, key, bytes, size);
  return g->status == HD_OK;
}

int cli_pack_cache(cli *c, cache *store) {
  gathering g = {.c = c, .status = HD_OK};
  const char *path = cli_text(c, "output");
  diags d;
  if (path == NULL) return cli_usage(c, "-o says which file to write");
  diags_init(&d);
  hd_status status = cache_each_entry(store, gather, &g, &d);
  if (status == HD_OK) status = g.status;
  if (status == HD_OK) status = cli_write_pack(c, path, g.items, g.count, &d);
  for (size_t i = 0; i < g.count; i++)
    free((void *)(uintptr_t)g.items[i].bytes);
  free(g.items);
  if (status != HD_OK) return cli_fail(c, path, NULL, &d, status);
  diags_finish(&d);
  text out;
  text_init(&out);
  if (c->json) text_addf(&out, "{\"packed\": %zu, \"bad\": %zu}\n", g.count, g.bad);
  return cli_output(&out, g.bad > 0 ? EXIT_DECLINED : EXIT_FINE);
}

static int pack(cli *c) {
  if (c->argument_count > 0) return cli_build(c);
  cache *store = NULL;
  diags d;
  diags_init(&d);
  hd_status status = cli_open_cache(c, &store, &d);
  if (status != HD_OK) return cli_fail(c, "cache", NULL, &d, status);
  diags_finish(&d);
  int code = cli_pack_cache(c, store);
  cache_close(store);
  return code;
}

static const cli_option pack_options[] = {
    OPTION_ROW_TARGET,
    OPTION_ROW_KERNEL,
    OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JOBS,
    OPTION_ROW_TIMEOUT,
    {"output", 'o', OPTION_TEXT, "FILE", "the pack; FILE.sha256 is written beside it", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_pack = {
    .name = "pack",
    .arguments = "[SPEC...]",
    .summary = "write kernels into one read-only file for HEDDLE_PACKS",
    .details =
        "Builds the specs' kernels, or takes those in the cache already, and writes a pack: what is in it\n"
        "is found by every process with HEDDLE_PACKS=FILE, also without any compiler. Without specs: what\n"
        "the cache holds, for --target if given. The same kernels give the same bytes anywhere, and\n"
        "`sha256sum -c FILE.sha256` verifies them (docs/cache.md).\n",
    .examples = "  heddle pack specs/*.yaml --target gfx942 -o kernels.pack\n"
                "  heddle pack -o everything.pack\n"
                "  HEDDLE_PACKS=kernels.pack HEDDLE_NO_JIT=1 ./engine\n",
    .result = "0 written, 1 a kernel was declined or an entry is bad, 2 usage, 3 failure",
    .options = pack_options,
    .fewest = 0,
    .most = -1,
    .run = pack,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_TEMPLATES,
    .group = GROUP_KERNELS,
};
