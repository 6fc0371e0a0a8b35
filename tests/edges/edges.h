/* Tests of the edge table and of the known ways to go wrong, each by name: docs/edges.md. */
#ifndef HEDDLE_EDGES_H
#define HEDDLE_EDGES_H

#include "scene.h"

typedef struct edge_test {
  const char *name;
  void (*run)(edge *e);
} edge_test;

/* Lists end with a row without a name. */
extern const edge_test edges_of_values[], edges_of_memory[], edges_of_shapes[], edges_of_launches[],
    edges_of_numbers[], edges_of_logits[];

/* Specs that several tests use. */
extern const char edge_shuffled[]; /* fp8, page 16, a scale a token and head */
extern const char edge_plain[];    /* bf16, page 8, slots outermost */

#endif
