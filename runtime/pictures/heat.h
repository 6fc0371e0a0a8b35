/* Heat maps: cells by a row's and a column's number, coloured by a share of 0 to 1. */
#ifndef HEDDLE_PICTURES_HEAT_H
#define HEDDLE_PICTURES_HEAT_H

#include "../../generator/text.h"
#include <stdint.h>

/* Of what several shapes have in common: their least share, and all their titles. */
typedef struct heat_cell {
  int64_t row, column;
  double share;
  int shapes;
  text title;
} heat_cell;

typedef struct heat_map {
  int count, room;
  heat_cell *cells;
  bool failed;
} heat_map;

void heat_begin(heat_map *m);
void heat_finish(heat_map *m);
void heat_add(heat_map *m, int64_t row, int64_t column, double share, const char *title);
/* Rows and columns ascend; `y` is where it begins. Returns its height. */
double heat_draw(const heat_map *m, text *out, double y, const char *row_name, const char *column_name);

/* 0 to 9: below 55 %, then in steps of 5 %. */
int heat_class(double share);
/* The power of two nearest to n, by ratio. */
int64_t heat_power(int64_t n);

#endif
