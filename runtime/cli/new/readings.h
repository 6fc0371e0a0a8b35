/* What caches and scales of given shapes and strides can mean: every assignment of their dimensions to pages,
 * kv heads, slots and channels that agrees with what is known. */
#ifndef HEDDLE_CLI_READINGS_H
#define HEDDLE_CLI_READINGS_H

#include "../../match/match.h"

/* 0: not known. */
typedef struct reading_facts {
  int64_t qk, v; /* channels; of the codes alone where a cache holds more */
  int64_t page, heads, query_heads;
  dtype dtype; /* of the caches */
} reading_facts;

typedef struct cache_reading {
  int64_t pages, heads, page;
  layout layout; /* factors in the order of memory */
} cache_reading;

typedef struct reading {
  cache_reading k, v; /* v.layout.count 0: V lies in K */
  granularity granularity;
  int64_t group_k, group_v; /* channels that share a scale, SCALE_GROUP only */
  layout k_scale, v_scale;  /* count 0: none, or one for all */
  const char *name;         /* what people call it, NULL: nothing */
} reading;

enum { READINGS_MAX = 16, READINGS_MAX_RANK = 6 };

typedef struct readings {
  int count; /* distinct ones; more than READINGS_MAX are counted, not kept */
  reading items[READINGS_MAX];
} readings;

/* A reading is another one only where the contract would be. */
void readings_find(const tensors *t, const reading_facts *facts, readings *out);

/* The layouts that people have a name for. */
size_t layout_name_count(void);
const char *layout_name_at(size_t index);
/* The factors of a named layout as a spec has them, for channels of `bytes`. False: there is no such name. */
bool layout_named(const char *name, int bytes, text *out_k, text *out_v);
/* A layout of a cache from its text, "[b, h, d/16, s, d%16]". */
bool layout_read(const char *from, int64_t page, int64_t head_dim, layout *out);

#endif
