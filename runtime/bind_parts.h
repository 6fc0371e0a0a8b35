/* What binding shares between its files: bind.c knows which tensors a contract has, bind_check.c whether the
 * caller's fit. */
#ifndef HEDDLE_BIND_PARTS_H
#define HEDDLE_BIND_PARTS_H

#include "launch.h"

/* The layout of a cache or scale tensor; NULL for every other, and for one scale for all. */
const layout *bind_layout(const contract *c, tensor_name name);

#endif
