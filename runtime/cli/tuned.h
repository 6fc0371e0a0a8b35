/* Tuned records, as several verbs find and use them. */
#ifndef HEDDLE_CLI_TUNED_H
#define HEDDLE_CLI_TUNED_H

#include "../tune/tune.h"
#include "cli.h"

/* Loads what --tuned names; without it the folder HEDDLE_TUNED_DIR, or `tuned` beside the spec. Records that
 * nobody named and that can't be read are left out with a warning. */
hd_status cli_tuned_load(const cli *c, const char *spec_path, tune_files *out_files, diags *d);

/* The path of a record: `NAME.TARGET.yaml` in `folder`, with the group and page where they are not the
 * spec's. */
void cli_tuned_name(const char *folder, const tune_record *r, const contract *of_spec, text *out);
/* "FOLDER/tuned" for the folder of a spec. */
void cli_tuned_folder(const char *spec_path, text *out);

/* What is done with records that are there (tune_records.c). */
extern const cli_verb action_tune_show, action_tune_merge, action_tune_import, action_tune_explain;

#endif
