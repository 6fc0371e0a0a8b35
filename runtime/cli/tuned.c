#include "tuned.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_tuned_folder(const char *spec_path, text *out) {
  const char *slash = strrchr(spec_path, '/');
  if (slash) text_add_bytes(out, spec_path, (size_t)(slash + 1 - spec_path));
  text_add(out, "tuned");
}

void cli_tuned_name(const char *folder, const tune_record *r, const contract *of_spec, text *out) {
  text_addf(out, "%s/", folder);
  const char *name = r->name[0] ? r->name : "spec";
  for (const char *at = name; *at; at++) {
    bool plain = isalnum((unsigned char)*at) || *at == '-' || *at == '_' || (*at == '.' && at != name);
    text_add_bytes(out, plain ? at : "-", 1);
  }
  if (of_spec && r->heads_per_kv != of_spec->query.heads_per_kv) text_addf(out, ".g%d", r->heads_per_kv);
  if (of_spec && r->page != of_spec->kv.page) text_addf(out, ".p%d", r->page);
  text_addf(out, ".%s%s.yaml", r->target, r->evidence == TUNE_SIMULATED ? ".simulated" : "");
}

hd_status cli_tuned_load(const cli *c, const char *spec_path, tune_files *out, diags *d) {
  const char *asked = cli_text(c, "tuned"), *variable = getenv("HEDDLE_TUNED_DIR");
  text beside;
  *out = (tune_files){0};
  if (asked && strcmp(asked, "none") == 0) return HD_OK;
  if (asked && access(asked, F_OK) != 0) {
    diags_errorf(d, "tune.file", NULL, "--tuned: there is no %s", asked);
    return HD_IO;
  }
  if (asked) return tune_files_load(asked, out, d);
  text_init(&beside);
  cli_tuned_folder(spec_path, &beside);
  diags problems;
  diags_init(&problems);
  hd_status status =
      tune_files_load(variable && variable[0] ? variable : text_string(&beside), out, &problems);
  if (status == HD_IO || status == HD_DECLINED) {
    diags_add_new(d, &problems, DIAG_WARNING);
    status = HD_OK;
  }
  diags_finish(&problems);
  text_finish(&beside);
  return status;
}
