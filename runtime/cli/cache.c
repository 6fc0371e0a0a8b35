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
  return cli_output_product(&out, EXIT_FINE);
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
  state.errors = &d;
  unsetenv("HEDDLE_PACKS");
  unsetenv("HEDDLE_CACHE_URL");
  hd_status status = cache_open("", &packs, &d);
  for (int i = 0; status == HD_OK && i < c->argument_count; i++)
    status = cache_add_pack(packs, c->arguments[i], &d);
  if (status == HD_OK) status = cache_each_entry(packs, import_entry, &state, &d);
  if (status == HD_OK) status = state.status;
  cache_close(packs);
  text_addf(&out, c->json ? "{\"imported\": %zu, \"bad\": %zu}\n" : "%zu entries imported, %zu bad\n",
            state.imported, state.bad);
  return finish(c, &out, &d, status, state.bad > 0 ? EXIT_DECLINED : EXIT_FINE);
}

/* Whether a pack that the environment names was left out when the cache was opened. */
static bool has_refused_pack(const diags *d) {
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->items[i].code, "cache.pack") == 0) return true;
  return false;
}

enum { ANYWHERE = 0, NEEDS_FOLDER = 1 }; /* a folder that can't be used holds nothing that could be listed */

static int with_cache(cli *c, bool needs_folder, int (*run)(cli *c, cache *store)) {
  cache *store = NULL;
  diags d;
  diags_init(&d);
  hd_status status = cli_open_cache(c, &store, &d);
  if (status != HD_OK) return cli_fail(c, "cache", NULL, &d, status);
  bool refused = has_refused_pack(&d);
  diags_finish(&d);
  bool usable = cache_directory(store)[0] != '\0' || (!needs_folder && getenv("HEDDLE_PACKS") != NULL);
  int code = usable ? run(c, store) : EXIT_FAILED;
  cache_close(store);
  return code == EXIT_FINE && refused && run == verify_all ? EXIT_DECLINED : code;
}

static int cache_ls(cli *c) {
  return with_cache(c, ANYWHERE, list_all);
}
static int cache_verify(cli *c) {
  return with_cache(c, ANYWHERE, verify_all);
}
static int cache_clear_all(cli *c) {
  return with_cache(c, NEEDS_FOLDER, clear);
}
static int cache_path(cli *c) {
  return with_cache(c, NEEDS_FOLDER, show_path);
}
static int cache_prune_some(cli *c) {
  return with_cache(c, NEEDS_FOLDER, prune);
}
static int cache_export(cli *c) {
  return with_cache(c, ANYWHERE, cli_pack_cache);
}
static int cache_import_packs(cli *c) {
  return with_cache(c, NEEDS_FOLDER, import);
}
static int cache_explain_specs(cli *c) {
  return with_cache(c, ANYWHERE, cli_explain);
}

static const cli_option json_alone[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option prune_options[] = {
    {"max-bytes", 0, OPTION_INT, "N", "bytes to leave (default: the cap, HEDDLE_CACHE_MAX_BYTES)", 0,
     INT64_MAX},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option export_options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", "the pack to write; FILE.sha256 is written beside it", 0, 0},
    {"target", 0, OPTION_LIST, "TARGET", "entries of this target alone; may be repeated", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

static const cli_option explain_options[] = {
    OPTION_ROW_TARGET,   OPTION_ROW_KERNEL, OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER, OPTION_ROW_JSON,   OPTION_ROW_END,
};

static const cli_verb action_ls = {
    .name = "cache ls",
    .arguments = "",
    .summary = "list the entries of packs and folder",
    .examples = "  heddle cache ls\n  heddle cache ls --json\n",
    .result = "0 fine, 2 usage, 3 the cache can't be used",
    .options = json_alone,
    .run = cache_ls,
    .environment = ENV_CACHE,
};

static const cli_verb action_verify = {
    .name = "cache verify",
    .arguments = "",
    .summary = "read and check every byte of every entry",
    .details = "Entries of another version of heddle are no damage; they are counted.\n",
    .examples = "  heddle cache verify\n  HEDDLE_CACHE_DIR=/var/cache/heddle heddle cache verify\n",
    .result = "0 fine, 1 a bad entry or pack, 2 usage, 3 the cache can't be used",
    .options = json_alone,
    .run = cache_verify,
    .environment = ENV_CACHE,
};

static const cli_verb action_clear = {
    .name = "cache clear",
    .arguments = "",
    .summary = "remove all entries of the folder",
    .examples = "  heddle cache clear\n",
    .result = "0 fine, 2 usage, 3 the cache can't be used",
    .options = json_alone,
    .run = cache_clear_all,
    .environment = ENV_CACHE,
};

static const cli_verb action_path = {
    .name = "cache path",
    .arguments = "",
    .summary = "print the folder",
    .examples = "  du -sh $(heddle cache path)\n",
    .result = "0 fine, 2 usage, 3 the cache can't be used",
    .options = json_alone,
    .run = cache_path,
    .environment = ENV_CACHE,
};

static const cli_verb action_prune = {
    .name = "cache prune",
    .arguments = "",
    .summary = "remove what was of use longest ago, down to --max-bytes",
    .examples = "  heddle cache prune --max-bytes 100000000\n",
    .result = "0 fine, 2 usage, 3 the cache can't be used",
    .options = prune_options,
    .run = cache_prune_some,
    .environment = ENV_CACHE,
};

static const cli_verb action_export = {
    .name = "cache export",
    .arguments = "-o FILE",
    .summary = "write all entries into a pack, for HEDDLE_PACKS",
    .examples = "  heddle cache export -o kernels.pack\n"
                "  heddle cache export --target gfx950 -o gfx950.pack\n",
    .result = "0 fine, 1 a bad entry was left out, 2 usage, 3 the cache or the pack can't be used",
    .options = export_options,
    .run = cache_export,
    .environment = ENV_CACHE,
};

static const cli_verb action_import = {
    .name = "cache import",
    .arguments = "PACK...",
    .summary = "check the entries of packs and put them into the folder",
    .examples = "  heddle cache import kernels.pack\n",
    .result = "0 fine, 1 a bad entry was left out, 2 usage, 3 the cache or a pack can't be used",
    .options = json_alone,
    .fewest = 1,
    .most = -1,
    .run = cache_import_packs,
    .environment = ENV_CACHE,
};

static const cli_verb action_explain = {
    .name = "cache explain",
    .arguments = "SPEC...",
    .summary = "say where a spec's kernels are, or in what the nearest entry differs",
    .examples = "  heddle cache explain my.yaml --target gfx950\n",
    .result = "0 all are there, 1 a kernel is missing, 2 usage, 3 the cache can't be used",
    .options = explain_options,
    .fewest = 1,
    .most = -1,
    .run = cache_explain_specs,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_TEMPLATES,
};

static const cli_verb *const cache_actions[] = {
    &action_ls,     &action_verify, &action_clear,   &action_path, &action_prune,
    &action_export, &action_import, &action_explain, NULL,
};

const cli_verb verb_cache = {
    .name = "cache",
    .arguments = "ACTION [ARGUMENT]...",
    .summary = "look into the cache of code objects",
    .details =
        "HEDDLE_CACHE_DIR moves the cache; otherwise it is in the user's cache folder (docs/cache.md).\n",
    .examples = "  heddle cache ls\n  HEDDLE_CACHE_DIR=/var/cache/heddle heddle cache verify\n"
                "  heddle cache explain my.yaml --target gfx950\n",
    .result = "0 fine, 1 a bad entry or pack, or explain found a kernel missing, 2 usage, 3 the cache can't "
              "be used",
    .fewest = 1,
    .most = -1,
    .actions = cache_actions,
    .environment = ENV_CACHE,
    .group = GROUP_KERNELS,
};
