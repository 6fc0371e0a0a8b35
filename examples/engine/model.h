/* Stands for a model: q, k and v of a token follow from whose and which it is, so that anybody can say what
 * attention must give. Between -1 and 1, as bf16. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include <stdint.h>

enum { KV_HEADS = 2, GROUP = 4, Q_HEADS = KV_HEADS * GROUP, DIM = 64 };

void model_query(int id, int token, uint16_t out[Q_HEADS * DIM]);
void model_key(int id, int token, uint16_t out[KV_HEADS * DIM]);
void model_value(int id, int token, uint16_t out[KV_HEADS * DIM]);

/* The largest difference between `out` [Q_HEADS, DIM] and attention of the token `length` - 1 over the first
 * `length` tokens of the sequence, worked out in double from values as they were before the cache. */
double model_error(int id, int length, const float *out);

#endif
