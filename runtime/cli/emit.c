#include "../template_folder.h"
#include "verbs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What one run of the verb shares. */
typedef struct emit_state {
  const cli *c;
  const spec_file *file;
  const char *folder; /* -o, or NULL */
  variant variant;
  const template_source *templates;
  text *out;
  bool first;
  int emitted;
} emit_state;

static hd_status write_pair(emit_state *s, const emission *e, const char *description, text *source_path,
                            text *descriptor_path, diags *d) {
  text_addf(source_path, "%s/", s->folder);
  cli_write_stem(&s->file->spec, e->descriptor.operation, source_path);
  text_addf(source_path, ".%s", e->descriptor.target);
  text_addf(descriptor_path, "%s.json", text_string(source_path));
  text_add(source_path, ".hip");
  if (source_path->failed || descriptor_path->failed) return HD_OUT_OF_MEMORY;
  hd_status status = cli_write_file(text_string(source_path), e->source, strlen(e->source), d);
  if (status == HD_OK)
    status = cli_write_file(text_string(descriptor_path), description, strlen(description), d);
  return status;
}

static void report_json(emit_state *s, const emission *e, const char *description, const char *source_path,
                        const char *descriptor_path) {
  bool first = true;
  text_add(s->out, s->first ? "[{" : ",\n {");
  s->first = false;
  json_text(s->out, &first, "spec", s->file->spec.name);
  json_text(s->out, &first, "kernel", e->descriptor.operation);
  json_text(s->out, &first, "target", e->descriptor.target);
  json_text(s->out, &first, "variant", e->descriptor.variant);
  if (s->folder) {
    json_text(s->out, &first, "source_file", source_path);
    json_text(s->out, &first, "descriptor_file", descriptor_path);
  } else {
    json_text(s->out, &first, "source", e->source);
  }
  json_key(s->out, &first, "descriptor");
  text_add(s->out, description);
  text_add(s->out, "}");
}

static hd_status emit_one(emit_state *s, operation o, const target *t, diags *d) {
  emission e = {0};
  hd_status status = emit_operation(&s->file->spec.contract, o, &s->variant, t, s->templates, &e, d);
  if (status != HD_OK) return status;
  text description, source_path, descriptor_path;
  text_init(&description);
  text_init(&source_path);
  text_init(&descriptor_path);
  descriptor_write(&e.descriptor, &description);
  if (description.failed) status = HD_OUT_OF_MEMORY;
  if (status == HD_OK && s->folder)
    status = write_pair(s, &e, text_string(&description), &source_path, &descriptor_path, d);
  if (status == HD_OK) {
    s->emitted++;
    if (s->c->json)
      report_json(s, &e, text_string(&description), text_string(&source_path), text_string(&descriptor_path));
    else if (s->folder)
      text_addf(s->out, "%s\n%s\n", text_string(&source_path), text_string(&descriptor_path));
    else
      text_add(s->out, e.source);
  }
  text_finish(&description);
  text_finish(&source_path);
  text_finish(&descriptor_path);
  emission_finish(&e);
  return status;
}

/* Every operation on every target. A target that nobody asked for by name may decline in silence while
 * another serves the operation. */
static hd_status emit_all(emit_state *s, const operation_list *operations, const target_list *targets,
                          diags *d) {
  hd_status worst = HD_OK;
  bool silent[2] = {false};
  for (int o = 0; o < operations->count; o++)
    silent[o] =
        !targets->named && cli_serves(targets, &s->file->spec.contract, operations->items[o], &s->variant);
  for (int t = 0; t < targets->count; t++)
    for (int o = 0; o < operations->count; o++) {
      diags own;
      diags_init(&own);
      hd_status status = emit_one(s, operations->items[o], targets->items[t], &own);
      bool told = status != HD_DECLINED || !silent[o];
      if (told) diags_add_new(d, &own, DIAG_ERROR);
      diags_finish(&own);
      if (status != HD_OK && told && (worst == HD_OK || worst == HD_DECLINED)) worst = status;
    }
  return worst;
}

static int emit_spec(const cli *c, const spec_file *file, text *out, diags *d) {
  template_folder folder;
  const char *templates = cli_text(c, "templates");
  hd_status status = template_folder_init(&folder, templates ? templates : getenv("HEDDLE_TEMPLATES"), d);
  if (status != HD_OK) return cli_exit_code(status);
  emit_state s = {.c = c, .file = file, .folder = cli_text(c, "output"), .out = out, .first = true};
  s.templates = &folder.source;
  target_list targets;
  operation_list operations;
  int code = cli_variant(c, &s.variant);
  if (!code) code = cli_targets(c, &file->spec, &targets);
  if (!code) code = cli_operations(c, file, &operations);
  if (code) {
    template_folder_finish(&folder);
    return code;
  }
  status = s.folder ? cli_make_folders(s.folder, d) : HD_OK;
  if (status == HD_OK) status = emit_all(&s, &operations, &targets, d);
  template_folder_finish(&folder);
  if (c->json && s.emitted) text_add(out, "]\n");
  return cli_exit_code(status);
}

static int emit(cli *c) {
  const char *path = c->arguments[0];
  spec_file file;
  diags d;
  text out;
  diags_init(&d);
  text_init(&out);
  hd_status status = spec_file_read(path, &file, &d);
  int code;
  if (status != HD_OK) {
    code = cli_fail(c, path, &file, &d, status);
  } else {
    code = emit_spec(c, &file, &out, &d);
    if (code && code != EXIT_USAGE && out.length == 0) {
      code = cli_fail(c, path, &file, &d, code == EXIT_DECLINED ? HD_DECLINED : HD_IO);
    } else {
      cli_complain(path, &file, &d);
      diags_finish(&d);
    }
  }
  spec_file_finish(&file);
  return cli_text(c, "output") ? cli_output(&out, code) : cli_output_product(&out, code);
}

static const cli_option emit_options[] = {
    OPTION_ROW_TARGET,
    OPTION_ROW_KERNEL,
    OPTION_ROW_VARIANT,
    {"output", 'o', OPTION_TEXT, "DIR",
     "write NAME.KERNEL.TARGET.hip and .json there, not to standard output", 0, 0},
    {"templates", 0, OPTION_TEXT, "DIR", "prefer templates in DIR to those built in (for work on templates)",
     0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_emit = {
    .name = "emit",
    .arguments = "SPEC",
    .summary = "generate HIP source and launch descriptors",
    .details = "The source is freestanding: it includes nothing. The same spec, target and heddle give the "
               "same bytes.\n",
    .examples = "  heddle emit specs/minimax-m3-dense-fp8.yaml --target gfx950 --kernel decode\n"
                "  heddle emit specs/minimax-m3-dense-fp8.yaml --target gfx942 --target sm_90 -o kernels\n",
    .options = emit_options,
    .fewest = 1,
    .most = 1,
    .run = emit,
    .environment = ENV_TEMPLATES,
    .group = GROUP_KERNELS,
};
