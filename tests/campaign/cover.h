/* A covering array: few points of the space in which every pair of values of two fields occurs. */
#ifndef HEDDLE_CAMPAIGN_COVER_H
#define HEDDLE_CAMPAIGN_COVER_H

#include "../../runtime/verify/verify_data.h"
#include "space.h"

/* A pair that no point was found for: every one that was tried is not valid, or declined. */
typedef struct cover_hole {
  int field, value, other_field, other_value;
  char code[48]; /* of the last one tried */
} cover_hole;

typedef struct cover {
  space_point *points;
  int point_count;
  cover_hole *holes;
  int hole_count;
  int64_t pairs; /* of all fields: in points, or holes */
} cover;

/* Points that the target serves; with `most` not 0 only the first so many, and then not all pairs. Depends on
 * the table, the target and the seed alone. False: out of memory. */
bool cover_init(cover *c, const target *on, uint64_t seed, int most);
void cover_finish(cover *c);

#endif
