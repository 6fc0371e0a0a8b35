/* Random valid specs: what people could write, and more. */
#ifndef HEDDLE_CAMPAIGN_RANDOM_SPEC_H
#define HEDDLE_CAMPAIGN_RANDOM_SPEC_H

#include "../../generator/text.h"
#include "../../runtime/verify/verify_data.h"

/* Valid in the language; whether a target serves it is another question. `r` decides everything. */
void random_spec(random_state *r, const char *name, text *out);

#endif
