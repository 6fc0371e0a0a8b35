#include "../file.h"
#include "store.h"
#include "verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What ls and verify gather from the visits. */
typedef struct listing {
  const cli *c;
  text *out;
  bool verify;
  int count, bad, stale;
  uint64_t bytes;
} listing;

static void write_item_json(const cache_item *item, bool verified, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "key", item->key);
  json_text(out, &first, "kernel", item->operation);
  json_text(out, &first, "target", item->target);
  json_text(out, &first, "variant", item->variant);
  json_text(out, &first, "contract", item->contract_key);
  json_int(out, &first, "bytes", (int64_t)item->size);
  if (item->pack != NULL) json_text(out, &first, "pack", item->pack);
  if (verified || !item->good) json_bool(out, &first, "good", item->good);
  if (item->stale) json_bool(out, &first, "stale", true);
  if (!item->good) json_text(out, &first, "problem", item->problem);
  text_add(out, "}");
}

static void visit(void *user, const cache_item *item) {
  listing *l = user;
  const char *in = item->pack != NULL ? " in " : "", *pack = item->pack != NULL ? item->pack : "";
  if (l->c->json) {
    if (l->count > 0) text_add(l->out, ",\n ");
    write_item_json(item, l->verify, l->out);
  } else if (!item->good && !(item->stale && l->verify)) { /* verify counts the stale ones */
    text_addf(l->out, "%.12s  %s: %s%s%s\n", item->key, item->stale ? "stale" : "bad", item->problem, in,
              pack);
  } else if (!l->verify) {
    text_addf(l->out, "%.12s  %-7s %-8s %-10s contract %.12s %8llu bytes%s%s\n", item->key, item->operation,
              item->target, item->variant, item->contract_key, (unsigned long long)item->size, in, pack);
  }
  l->count++;
  l->bad += !item->good && !item->stale;
  l->stale += item->stale;
  l->bytes += item->size;
}

/* The exit code for a status; `out` is printed on HD_OK only. */
static int finish(const cli *c, text *out, diags *d, hd_status status, int code) {
  if (status != HD_OK) {
    text_finish(out);
    return cli_fail(c, "cache", NULL, d, status);
  }
  diags_finish(d);
  return cli_output(out, code);
}

static int list(cli *c, cache *store, bool verify) {
  text out;
  diags d;
  listing l = {.c = c, .out = &out, .verify = verify};
  text_init(&out);
  diags_init(&d);
  if (c->json) text_add(&out, "[");
  hd_status status = cache_list(store, verify, visit, &l, &d);
  if (c->json) text_add(&out, "]\n");
  if (!c->json && verify) {
    text_addf(&out, "%d entries, %d bad", l.count, l.bad);
    if (l.stale > 0) text_addf(&out, ", %d of another version of heddle", l.stale);
    text_add(&out, "\n");
  }
  if (!c->json && !verify) text_addf(&out, "%d entries, %llu bytes\n", l.count, (unsigned long long)l.bytes);
  return finish(c, &out, &d, status, verify && l.bad ? EXIT_DECLINED : EXIT_FINE);
}

static int list_all(cli *c, cache *store) {
  return list(c, store, false);
}

static int verify_all(cli *c, cache *store) {
  return list(c, store, true);
}

static int clear(cli *c, cache *store) {
  size_t count = 0;
  text out;
  diags d;
  text_init(&out);
  diags_init(&d);
  hd_status status = cache_clear(store, &count, &d);
  text_addf(&out, c->json ? "{\"removed\": %zu}\n" : "%zu entries removed\n", count);
  return finish(c, &out, &d, status, EXIT_FINE);
}

static int show_path(cli *c, cache *store) {
  text out;
  text_init(&out);
  if (c->json) {
    bool first = true;
    text_add(&out, "{");
    json_text(&out, &first, "path", cache_directory(store));
    text_add(&out, "}\n");
  } else {
    text_addf(&out, "%s\n", cache_directory(store));
  }
  return cli_output(&out, EXIT_FINE);
}

static int prune(cli *c, cache *store) {
  uint64_t most = (uint64_t)cli_int(c, "max-bytes", (int64_t)cache_most_bytes(store));
  cache_pruned done = {0};
  text out;
  diags d;
  if (!cli_text(c, "max-bytes") && most == 0) most = UINT64_MAX; /* no cap: only what was left behind goes */
  text_init(&out);
  diags_init(&d);
  hd_status status = cache_prune(store, most, &done, &d);
  text_addf(&out,
            c->json ? "{\"removed\": %zu, \"bytes\": %llu, \"left\": %llu}\n"
                    : "%zu entries of %llu bytes removed, %llu bytes left\n",
            done.removed, (unsigned long long)done.bytes, (unsigned long long)done.left);
  return finish(c, &out, &d, status, EXIT_FINE);
}

/* What import counts. */
typedef struct importing {
  cache *store;
  size_t imported, bad;
  hd_status status;
  diags *errors;
} importing;

static bool import_entry(void *user, const char *place, const char *key, const void *bytes, size_t size) {
  importing *i = user;
  diags problems;
  diags_init(&problems);
  hd_status status = cache_import(i->store, key, bytes, size, &problems);
  if (status == HD_OK) {
    i->imported++;
  } else if (status == HD_INVALID) {
    i->bad++;
    fprintf(stderr, "heddle cache: %s: entry %.12s is left out: %s\n", place, key,
            problems.count > 0 ? problems.items[0].message : "it is bad");
  } else {
    i->status = status;
    diags_add_new(i->errors, &problems, DIAG_ERROR);
  }
  diags_finish(&problems);
  return i->status == HD_OK;
}

static int import(cli *c, cache *store) {
  importing state = {.store = store, .status = HD_OK};
  cache *packs = NULL; /* in memory, with only these packs */
  text out;
  diags d;
  text_init(&out);
  diags_init(&d);
  if (c->argument_count < 2) return cli_usage(c, "import takes packs");
  state.errors = &d;
  unsetenv("HEDDLE_PACKS");
  unsetenv("HEDDLE_CACHE_URL");
  hd_status status = cache_open("", &packs, &d);
  for (int i = 1; status == HD_OK && i < c->argument_count; i++)
    status = cache_add_pack(packs, c->arguments[i], &d);
  if (status == HD_OK) status = cache_each_entry(packs, import_entry, &state, &d);
  if (status == HD_OK) status = state.status;
  cache_close(packs);
  text_addf(&out, c->json ? "{\"imported\": %zu, \"bad\": %zu}\n" : "%zu entries imported, %zu bad\n",
            state.imported, state.bad);
  return finish(c, &out, &d, status, state.bad > 0 ? EXIT_DECLINED : EXIT_FINE);
}

static const struct action {
  const char *name;
  bool takes_arguments;
  bool needs_folder; /* one that can't be used holds nothing that could be listed */
  int (*run)(cli *c, cache *store);
} actions[] = {
    {"ls", false, false, list_all}, {"verify", false, false, verify_all},
    {"clear", false, true, clear},  {"path", false, true, show_path},
    {"prune", false, true, prune},  {"export", false, false, cli_pack_cache},
    {"import", true, true, import}, {"explain", true, false, cli_explain},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

/* Whether a pack that the environment names was left out when the cache was opened. */
static bool has_refused_pack(const diags *d) {
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->items[i].code, "cache.pack") == 0) return true;
  return false;
}

static int cache_verb(cli *c) {
  const struct action *a = actions;
  while (a < actions + ACTIONS && strcmp(c->arguments[0], a->name) != 0)
    a++;
  if (a == actions + ACTIONS)
    return cli_usage(c, "unknown action '%s': ls, verify, clear, path, prune, export, import or explain",
                     c->arguments[0]);
  if (!a->takes_arguments && c->argument_count > 1) return cli_usage(c, "%s takes no arguments", a->name);
  cache *store = NULL;
  diags d;
  diags_init(&d);
  hd_status status = cli_open_cache(c, &store, &d);
  if (status != HD_OK) return cli_fail(c, "cache", NULL, &d, status);
  bool refused = has_refused_pack(&d);
  diags_finish(&d);
  bool usable = cache_directory(store)[0] != '\0' || (!a->needs_folder && getenv("HEDDLE_PACKS") != NULL);
  int code = usable ? a->run(c, store) : EXIT_FAILED;
  cache_close(store);
  return code == EXIT_FINE && refused && a->run == verify_all ? EXIT_DECLINED : code;
}

static const cli_option cache_options[] = {
    OPTION_ROW_TARGET,
    OPTION_ROW_KERNEL,
    OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER,
    {"max-bytes", 0, OPTION_INT, "N", "prune: bytes to leave (default: the cap, HEDDLE_CACHE_MAX_BYTES)", 0,
     INT64_MAX},
    {"output", 'o', OPTION_TEXT, "FILE", "export: the pack to write", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_cache = {
    .name = "cache",
    .arguments = "ls|verify|clear|path|prune|export|import PACK...|explain SPEC...",
    .summary = "look into the cache of code objects",
    .details = "  ls       list the entries of packs and folder\n"
               "  verify   read and check every byte of every entry\n"
               "  clear    remove all entries of the folder\n"
               "  path     print the folder\n"
               "  prune    remove what was of use longest ago, down to --max-bytes\n"
               "  export   write all entries into a pack, -o FILE; --target chooses some\n"
               "  import   check the entries of packs and put them into the folder\n"
               "  explain  say where a spec's kernels are, or in what the nearest entry differs\n"
               "HEDDLE_CACHE_DIR moves the cache; otherwise it is in the user's cache folder.\n",
    .examples = "  heddle cache ls\n  HEDDLE_CACHE_DIR=/var/cache/heddle heddle cache verify\n"
                "  heddle cache explain my.yaml --target gfx950\n",
    .result = "0 fine, 1 a bad entry or pack, or explain found a kernel missing, 2 usage, 3 the cache can't "
              "be used",
    .options = cache_options,
    .fewest = 1,
    .most = -1,
    .run = cache_verb,
};
