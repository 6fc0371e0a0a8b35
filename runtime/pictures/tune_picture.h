/* The picture of tuned records: which variant and split each bucket has, and how long it took. */
#ifndef HEDDLE_PICTURES_TUNE_PICTURE_H
#define HEDDLE_PICTURES_TUNE_PICTURE_H

#include "../tune/tune.h"

/* Failing is in the text (`failed`). */
void tune_svg(const tune_record *const *records, int count, text *out);

#endif
