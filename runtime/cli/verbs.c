#include "verbs.h"

const cli_verb *const cli_verbs[] = {
    &verb_check,   &verb_key,   &verb_diff,      &verb_match,  &verb_view,  &verb_emit, &verb_build,
    &verb_pack,    &verb_run,   &verb_reference, &verb_verify, &verb_bench, &verb_tune, &verb_profile,
    &verb_inspect, &verb_cache, &verb_targets,   &verb_doctor, NULL,
};
