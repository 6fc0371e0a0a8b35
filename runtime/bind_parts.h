/* What binding shares between its files: bind.c knows which tensors a contract has, bind_check.c whether the
 * caller's fit. */
#ifndef HEDDLE_BIND_PARTS_H
#define HEDDLE_BIND_PARTS_H

#include "launch.h"

/* Whether each query row has a list of pages and a length of its own. Rows are then sequences of one row. */
bool bind_rows_are_sequences(const contract *c);
/* The layout of a cache or scale tensor; NULL for every other, and for one scale for all. */
const layout *bind_layout(const contract *c, tensor_name name);

#endif
