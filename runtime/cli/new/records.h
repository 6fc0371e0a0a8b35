/* Latent caches whose tokens are records: codes, scales and channels of another format in one array of bytes.
 * Shapes don't say what lies where in them, so these are the forms that are known from the field. */
#ifndef HEDDLE_CLI_RECORDS_H
#define HEDDLE_CLI_RECORDS_H

#include "../../launch/launch.h"
#include "draft.h"

/* Sets page, layouts, tail and scales where the cache has the bytes of one of the forms, for `qk` and `v`
 * channels of which values are the first of keys. `page`: tokens, 0: not known. */
bool records_infer(const tensor *k_cache, int64_t qk, int64_t v, int64_t page, draft *d);

#endif
