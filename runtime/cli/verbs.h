/* The verbs, each defined in the file of its name (check, key and diff share one). */
#ifndef HEDDLE_CLI_VERBS_H
#define HEDDLE_CLI_VERBS_H

#include "cli.h"

extern const cli_verb verb_check, verb_key, verb_diff, verb_match, verb_view, verb_layout, verb_plan,
    verb_emit, verb_build, verb_pack, verb_run, verb_reference, verb_verify, verb_bench, verb_tune,
    verb_profile, verb_inspect, verb_cache, verb_targets, verb_doctor, verb_help, verb_version, verb_explain,
    verb_new, verb_tensors;

#endif
