#include "cli.h"
#include "console.h"
#include "shipped.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPEC_MAX_BYTES = 1 << 20 };

static bool no_file(const char *path) {
  return strcmp(path, "-") != 0 && access(path, F_OK) != 0 && errno == ENOENT;
}

/* Also for "minimax-m3-dense-fp8.yaml". */
static const char *nearest_shipped(const char *word) {
  size_t length = strlen(word);
  if (length > 5 && strcmp(word + length - 5, ".yaml") == 0) length -= 5;
  char *stem = strndup(word, length);
  const char *near = stem ? cli_nearest(stem, shipped_count(), shipped_name_at) : NULL;
  free(stem);
  return near;
}

/* The file, or the shipped spec of that name where there is no such file. */
static hd_status read_source(const char *path, spec_file *out_file, diags *d) {
  const char *shipped = no_file(path) ? shipped_find(path) : NULL;
  if (shipped) {
    out_file->source = strdup(shipped);
    out_file->length = strlen(shipped);
    return out_file->source ? HD_OK : HD_OUT_OF_MEMORY;
  }
  const char *near = no_file(path) && !strchr(path, '/') ? nearest_shipped(path) : NULL;
  if (!near) return cli_read_file(path, SPEC_MAX_BYTES, &out_file->source, &out_file->length, d);
  diags_errorf(d, "file.read", NULL, "there is no such file; did you mean the shipped spec %s?", near);
  return HD_IO;
}

hd_status spec_file_read(const char *path, spec_file *out_file, diags *d) {
  *out_file = (spec_file){.path = path};
  diags why;
  diags_init(&why);
  hd_status status = read_source(path, out_file, &why);
  if (status == HD_DECLINED) /* as the parser would say it */
    diags_errorf(d, "spec.size", NULL, "the file has more than %d bytes, the most that a spec has (1 MiB)",
                 SPEC_MAX_BYTES);
  else
    diags_add_new(d, &why, DIAG_ERROR);
  diags_finish(&why);
  if (status != HD_OK) return status;
  status = spec_parse(out_file->source, out_file->length, &out_file->spec, d);
  out_file->parsed = status == HD_OK;
  return status;
}

void spec_file_finish(spec_file *f) {
  if (f->parsed) spec_finish(&f->spec);
  free(f->source);
  *f = (spec_file){0};
}

void spec_file_locate(const spec_file *f, diags *d) {
  if (!f || !f->parsed) return;
  for (size_t i = 0; i < d->count; i++) {
    diag *item = &d->items[i];
    if (item->field && !item->line) spec_find_place(&f->spec, item->field, &item->line, &item->column);
  }
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

void diags_add_new(diags *to, const diags *from, diag_severity severity) {
  for (size_t i = 0; i < from->count; i++) {
    const diag *item = &from->items[i];
    bool known = false;
    for (size_t j = 0; j < to->count && !known; j++)
      known = same_text(to->items[j].field, item->field) && same_text(to->items[j].message, item->message);
    if (!known)
      diags_addf(to, severity, item->code, item->field, item->line, item->column, "%s", item->message);
  }
}

/* One diagnostic, its severity in colour on a terminal. */
static void complain_one(const char *path, const char *source, const diag *item) {
  static const console_paint paints[] = {
      [DIAG_ERROR] = PAINT_BAD, [DIAG_WARNING] = PAINT_WARNING, [DIAG_NOTE] = PAINT_STRONG};
  static const char *const names[] = {
      [DIAG_ERROR] = "error: ", [DIAG_WARNING] = "warning: ", [DIAG_NOTE] = "note: "};
  text out;
  text_init(&out);
  const diags one = {.items = (diag *)(uintptr_t)item, .count = 1};
  diags_render(&one, path, source, &out);
  const char *all = text_string(&out), *name = names[item->severity], *at = strstr(all, name);
  if (!at) at = all, name = "";
  fprintf(stderr, "%.*s%s%s%s%s", (int)(at - all), all, console_paint_of(stderr, paints[item->severity]),
          name, console_paint_of(stderr, PAINT_PLAIN), at + strlen(name));
  if (out.failed) fputs("heddle: out of memory, messages are missing\n", stderr);
  text_finish(&out);
}

void cli_complain(const char *path, const spec_file *f, diags *d) {
  spec_file_locate(f, d);
  for (size_t i = 0; i < d->count; i++)
    if (d->items[i].severity == DIAG_ERROR || !console_quiet())
      complain_one(path, f ? f->source : NULL, &d->items[i]);
  if (d->failed) fputs("heddle: out of memory, messages are missing\n", stderr);
}

int cli_fail(const cli *c, const char *path, const spec_file *f, diags *d, hd_status status) {
  cli_complain(path, f, d);
  if (diags_errors(d) == 0) fprintf(stderr, "%s: error: %s\n", path, hd_status_text(status));
  cli_hint(c, path, d);
  int code = cli_exit_code(status);
  if (c->json) {
    text out;
    text_init(&out);
    bool first = true;
    text_add(&out, "{");
    json_bool(&out, &first, "ok", false);
    json_text(&out, &first, "status", hd_status_text(status));
    json_text(&out, &first, "file", path);
    json_key(&out, &first, "diagnostics");
    diags_render_json(d, &out);
    text_add(&out, "}\n");
    code = cli_output(&out, code);
  }
  diags_finish(d);
  return code;
}

/* Names that got this far are known: values.h has looked at those of options, spec_parse at a spec's. */
static int add_target(const cli *c, target_list *list, const char *name) {
  const target *t = target_find(name);
  if (!t) return cli_usage(c, "unknown target '%s'", name);
  for (int i = 0; i < list->count; i++)
    if (list->items[i] == t) return EXIT_FINE;
  if (list->count < SPEC_MAX_LIST) list->items[list->count++] = t;
  return EXIT_FINE;
}

int cli_targets(const cli *c, const spec *s, target_list *out_list) {
  target_list list = {.named = true};
  int code = EXIT_FINE;
  const char *name;
  for (int i = 0; !code && (name = cli_list(c, "target", i)); i++)
    code = add_target(c, &list, name);
  if (code) return code;
  if (list.count == 0)
    for (int i = 0; !code && i < s->target_count; i++)
      code = add_target(c, &list, s->targets[i]);
  if (code) return code;
  if (list.count == 0) {
    list.named = false;
    for (size_t i = 0; i < target_count() && list.count < SPEC_MAX_LIST; i++)
      list.items[list.count++] = target_at(i);
  }
  *out_list = list;
  return EXIT_FINE;
}

bool cli_serves(const target_list *targets, const contract *c, operation o, const variant *v) {
  bool served = false;
  for (int t = 0; t < targets->count && !served; t++) {
    diags ignored;
    diags_init(&ignored);
    served = emit_check(c, o, v, targets->items[t], &ignored) == HD_OK;
    diags_finish(&ignored);
  }
  return served;
}

int cli_operations(const cli *c, const spec_file *f, operation_list *out_list) {
  operation_list list = {0};
  const char *name;
  for (int i = 0; (name = cli_list(c, "kernel", i)); i++) {
    operation o;
    if (!operation_parse(name, &o) || !contract_has_operation(&f->spec.contract, o))
      return cli_usage(c, "%s has no kernel '%s'", f->path, name);
    bool listed = false;
    for (int n = 0; n < list.count; n++)
      listed |= list.items[n] == o;
    if (!listed) list.items[list.count++] = o;
  }
  if (list.count == 0)
    for (operation o = 0; o < OPERATION_COUNT; o++)
      if (contract_has_operation(&f->spec.contract, o)) list.items[list.count++] = o;
  *out_list = list;
  return EXIT_FINE;
}

int cli_variant(const cli *c, variant *out_variant) {
  const char *name = cli_text(c, "variant");
  variant v = {0};
  if (name && !variant_parse(name, &v))
    return cli_usage(
        c,
        "'%s' is not a variant: default, or in this order, joined by -, direct or ring, line, wN (waves), tN "
        "(tokens of a tile), sN (stages), oN (workgroups resident), such as ring-w4-s3",
        name);
  *out_variant = v;
  return EXIT_FINE;
}

int cli_compiler(const cli *c, compiler_kind *out_kind) {
  const char *name = cli_text(c, "compiler");
  compiler_kind kind = COMPILER_AUTO;
  if (name && !compiler_parse(name, &kind)) return cli_usage(c, "unknown compiler '%s'", name);
  *out_kind = kind;
  return EXIT_FINE;
}
