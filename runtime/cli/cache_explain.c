/* heddle cache explain: is a kernel in the cache, and if not, in what does the nearest entry differ. */
#include "../../generator/sha256.h"
#include "../build.h"
#include "../cache/cache_explain.h"
#include "store.h"
#include <string.h>

static void write_differences(const key_difference *all, int count, text *out) {
  for (int i = 0; i < count; i++) {
    const key_difference *d = &all[i];
    text_addf(out, "    %-11s there   %.*s\n                wanted  %.*s\n", d->field,
              d->found != NULL ? d->found_length : 4, d->found != NULL ? d->found : "none", d->wanted_length,
              d->wanted);
  }
}

static void write_value(text *out, bool *first, const char *name, const char *value, int length) {
  text one;
  text_init(&one);
  text_addf(&one, "%.*s", length, value != NULL ? value : "");
  json_text(out, first, name, text_string(&one));
  text_finish(&one);
}

static void write_json(const build_job *job, const char *key, const cache_neighbour *n,
                       const key_difference *all, int count, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "spec", job->name);
  json_text(out, &first, "kernel", operation_name(job->operation));
  json_text(out, &first, "target", job->target->name);
  json_text(out, &first, "key", key);
  json_bool(out, &first, "found", n->key_text != NULL && count == 0);
  if (n->key_text != NULL) {
    json_text(out, &first, "nearest", n->key);
    json_text(out, &first, "place", n->place);
    json_key(out, &first, "differences");
    text_add(out, "[");
    for (int i = 0; i < count; i++) {
      bool first_member = true;
      text_add(out, i > 0 ? ", {" : "{");
      json_text(out, &first_member, "field", all[i].field);
      write_value(out, &first_member, "wanted", all[i].wanted, all[i].wanted_length);
      write_value(out, &first_member, "found", all[i].found, all[i].found_length);
      text_add(out, "}");
    }
    text_add(out, "]");
  }
  text_add(out, "}");
}

static void write_words(const build_job *job, const char *key, const cache_neighbour *n,
                        const key_difference *all, int count, text *out) {
  text_addf(out, "%s %s %s  key %.12s: ", job->name, operation_name(job->operation), job->target->name, key);
  if (n->key_text == NULL) {
    text_add(out, "not there, and nothing else is\n");
  } else if (count == 0) {
    text_addf(out, "in %s\n", n->place);
  } else {
    text_addf(out, "not there\n  the nearest entry is %.12s in %s\n", n->key, n->place);
    write_differences(all, count, out);
  }
}

/* What all of a run has. */
typedef struct explaining {
  const cli *c;
  cache *store;
  compiler_kind compiler;
  variant variant;
  text *out;
  int answers, missing;
} explaining;

static hd_status explain_job(explaining *x, const build_job *job, diags *d) {
  text key_text;
  char key[65];
  cache_neighbour nearest = {0};
  key_difference differences[CACHE_MOST_FIELDS];
  int count = 0;
  text_init(&key_text);
  hd_status status = build_explain_key(x->compiler, job, &key_text, d);
  if (status == HD_OK) status = cache_nearest(x->store, text_string(&key_text), &nearest, d);
  if (status == HD_OK) {
    sha256_hex(text_string(&key_text), key_text.length, key);
    if (nearest.key_text != NULL)
      count = key_text_compare(text_string(&key_text), nearest.key_text, differences);
    if (x->c->json && x->answers > 0) text_add(x->out, ",\n ");
    (x->c->json ? write_json : write_words)(job, key, &nearest, differences, count, x->out);
    x->answers++;
    x->missing += nearest.key_text == NULL || count > 0;
  }
  cache_neighbour_finish(&nearest);
  text_finish(&key_text);
  return status;
}

static int explain_file(explaining *x, const char *path) {
  spec_file file = {0};
  target_list targets;
  operation_list operations;
  diags d;
  diags_init(&d);
  hd_status status = spec_file_read(path, &file, &d);
  int code = EXIT_FINE;
  if (status == HD_OK) code = cli_targets(x->c, &file.spec, &targets);
  if (status == HD_OK && !code) code = cli_operations(x->c, &file, &operations);
  for (int t = 0; status == HD_OK && !code && t < targets.count; t++)
    for (int o = 0; status == HD_OK && o < operations.count; o++) {
      const build_job job = {&file.spec.contract, file.spec.name, operations.items[o], x->variant,
                             targets.items[t]};
      const target_list one = {1, {targets.items[t]}, true};
      const bool served = cli_serves(&one, job.contract, job.operation, &job.variant);
      if (served || targets.named || !cli_serves(&targets, job.contract, job.operation, &job.variant))
        status = explain_job(x, &job, &d);
    }
  if (status != HD_OK)
    code = cli_fail(x->c, path, &file, &d, status);
  else
    diags_finish(&d);
  spec_file_finish(&file);
  return code;
}

int cli_explain(cli *c, cache *store) {
  text out;
  explaining x = {.c = c, .store = store, .out = &out};
  int code = cli_variant(c, &x.variant);
  if (!code) code = cli_compiler(c, &x.compiler);
  if (code) return code;
  text_init(&out);
  if (c->json) text_add(&out, "[");
  for (int i = 0; !code && i < c->argument_count; i++)
    code = explain_file(&x, c->arguments[i]);
  if (code) {
    text_finish(&out);
    return code;
  }
  if (c->json) text_add(&out, "]\n");
  return cli_output(&out, x.missing > 0 ? EXIT_DECLINED : EXIT_FINE);
}
