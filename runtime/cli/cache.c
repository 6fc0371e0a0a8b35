#include "../cache.h"
#include "verbs.h"
#include <stdio.h>
#include <string.h>

/* What ls and verify gather from the visits. */
typedef struct listing {
  const cli *c;
  text *out;
  bool verify;
  int count, bad;
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
  if (verified || !item->good) json_bool(out, &first, "good", item->good);
  if (!item->good) json_text(out, &first, "problem", item->problem);
  text_add(out, "}");
}

static void visit(void *user, const cache_item *item) {
  listing *l = user;
  if (l->c->json) {
    if (l->count > 0) text_add(l->out, ",\n ");
    write_item_json(item, l->verify, l->out);
  } else if (!item->good) {
    text_addf(l->out, "%.12s  bad: %s\n", item->key, item->problem);
  } else if (!l->verify) {
    text_addf(l->out, "%.12s  %-7s %-8s %-10s contract %.12s %8llu bytes\n", item->key, item->operation,
              item->target, item->variant, item->contract_key, (unsigned long long)item->size);
  }
  l->count++;
  l->bad += !item->good;
  l->bytes += item->size;
}

static hd_status list(const cli *c, cache *store, bool verify, text *out, int *out_code, diags *d) {
  listing l = {.c = c, .out = out, .verify = verify};
  if (c->json) text_add(out, "[");
  hd_status status = cache_list(store, verify, visit, &l, d);
  if (c->json) text_add(out, "]\n");
  if (!c->json && verify) text_addf(out, "%d entries, %d bad\n", l.count, l.bad);
  if (!c->json && !verify) text_addf(out, "%d entries, %llu bytes\n", l.count, (unsigned long long)l.bytes);
  *out_code = verify && l.bad ? EXIT_DECLINED : EXIT_FINE;
  return status;
}

static hd_status clear(const cli *c, cache *store, text *out, diags *d) {
  size_t count = 0;
  hd_status status = cache_clear(store, &count, d);
  if (c->json)
    text_addf(out, "{\"removed\": %zu}\n", count);
  else
    text_addf(out, "%zu entries removed\n", count);
  return status;
}

static void show_path(const cli *c, const cache *store, text *out) {
  if (c->json) {
    bool first = true;
    text_add(out, "{");
    json_text(out, &first, "path", cache_directory(store));
    text_add(out, "}\n");
  } else {
    text_addf(out, "%s\n", cache_directory(store));
  }
}

static int cache_verb(cli *c) {
  static const char *const actions[] = {"ls", "verify", "clear", "path"};
  const char *action = c->arguments[0];
  size_t chosen = 0;
  while (chosen < 4 && strcmp(action, actions[chosen]) != 0)
    chosen++;
  if (chosen == 4) return cli_usage(c, "unknown action '%s': ls, verify, clear or path", action);
  cache *store = NULL;
  diags d;
  text out;
  int code = EXIT_FINE;
  diags_init(&d);
  text_init(&out);
  hd_status status = cache_open(NULL, &store, &d);
  if (status == HD_OK && cache_warning(store)[0]) fprintf(stderr, "heddle cache: %s\n", cache_warning(store));
  /* A folder that can't be used holds nothing that could be listed. */
  if (status == HD_OK && !cache_directory(store)[0]) code = EXIT_FAILED;
  if (status == HD_OK && code == EXIT_FINE) {
    if (chosen <= 1) status = list(c, store, chosen == 1, &out, &code, &d);
    if (chosen == 2) status = clear(c, store, &out, &d);
    if (chosen == 3) show_path(c, store, &out);
  }
  if (status != HD_OK) {
    text_clear(&out);
    code = cli_fail(c, "cache", NULL, &d, status);
  } else {
    diags_finish(&d);
  }
  cache_close(store);
  return cli_output(&out, code);
}

static const cli_option cache_options[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_cache = {
    .name = "cache",
    .arguments = "ls|verify|clear|path",
    .summary = "look into the cache of code objects",
    .details = "  ls      list the entries\n"
               "  verify  read and check every byte of every entry\n"
               "  clear   remove all entries\n"
               "  path    print the folder\n"
               "HEDDLE_CACHE_DIR moves the cache; otherwise it is in the user's cache folder.\n",
    .examples = "  heddle cache ls\n  HEDDLE_CACHE_DIR=/var/cache/heddle heddle cache verify\n",
    .result = "0 fine, 1 verify found a bad entry, 2 usage, 3 the cache can't be used",
    .options = cache_options,
    .fewest = 1,
    .most = 1,
    .run = cache_verb,
};
