/* A YAML document as a small located tree. Aliases and merge keys are already resolved, so whoever reads the
 * tree sees plain lists and mappings. Everything is in one arena: a node lives until spec_tree_finish. */
#ifndef HEDDLE_SPEC_YAML_H
#define HEDDLE_SPEC_YAML_H

#include "diag.h"

enum {
  SPEC_MAX_BYTES = 1 << 20,
  SPEC_MAX_DEPTH = 16,   /* the language nests five deep */
  SPEC_MAX_NODES = 10000 /* with every alias written out */
};

typedef enum spec_node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP } spec_node_kind;

typedef struct spec_node spec_node;
typedef struct spec_pair spec_pair;

struct spec_node {
  spec_node_kind kind;
  int line, column;  /* 1-based; of the alias where the node came through one */
  const char *text;  /* scalar: NUL-terminated, without NULs inside; else NULL */
  bool quoted;       /* scalar: a string for certain, never a number, boolean or nothing */
  int count;         /* items or pairs */
  spec_node **items; /* list */
  spec_pair *pairs;  /* map; keys are scalars and unique */
  size_t weight;     /* nodes of the subtree */
};

struct spec_pair {
  const spec_node *key;
  spec_node *value;
};

typedef struct spec_tree {
  spec_node *root; /* always a map */
  void *arena;
} spec_tree;

/* HD_OK: a tree; `problems` may still have got errors about duplicate keys, whose first value the tree has.
 * HD_DECLINED: `problems` say why, with its place; `out_tree` is untouched. */
hd_status spec_tree_parse(const char *yaml, size_t length, spec_tree *out_tree, diags *problems);
void spec_tree_finish(spec_tree *t);

#endif
