#include "verbs.h"
#include <string.h>

const cli_verb *const cli_verbs[] = {
    &verb_check,  &verb_key,     &verb_diff, &verb_new,     &verb_tensors, &verb_match, &verb_view,
    &verb_layout, &verb_plan,    &verb_emit, &verb_build,   &verb_pack,    &verb_run,   &verb_reference,
    &verb_verify, &verb_bench,   &verb_tune, &verb_profile, &verb_inspect, &verb_cache, &verb_targets,
    &verb_doctor, &verb_explain, &verb_help, &verb_version, NULL,
};

size_t cli_verb_count(void) {
  return sizeof cli_verbs / sizeof *cli_verbs - 1;
}

const char *cli_verb_name_at(size_t index) {
  return cli_verbs[index]->name;
}

const cli_verb *cli_find_verb(const char *name) {
  for (size_t i = 0; i < cli_verb_count(); i++)
    if (strcmp(cli_verbs[i]->name, name) == 0) return cli_verbs[i];
  return NULL;
}
