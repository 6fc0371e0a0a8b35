#include "model.h"
#include "pages.h"
#include <math.h>
#include <string.h>

static uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void fill(uint32_t what, int id, int token, uint16_t *out, int count) {
  uint32_t state = what * 2654435761u + (uint32_t)id * 40503u + (uint32_t)token * 69069u + 1;
  for (int i = 0; i < count; i++) {
    state ^= state << 13; /* xorshift */
    state ^= state >> 17;
    state ^= state << 5;
    out[i] = to_bf16((float)(state >> 8) / (float)(1 << 23) - 1);
  }
}

void model_query(int id, int token, uint16_t out[Q_HEADS * DIM]) {
  fill(1, id, token, out, Q_HEADS * DIM);
}

void model_key(int id, int token, uint16_t out[KV_HEADS * DIM]) {
  fill(2, id, token, out, KV_HEADS * DIM);
}

void model_value(int id, int token, uint16_t out[KV_HEADS * DIM]) {
  fill(3, id, token, out, KV_HEADS * DIM);
}

/* softmax(q k / sqrt(d)) v of one query head. */
static void attend(const uint16_t *q, int head, int length, uint16_t k[][KV_HEADS * DIM],
                   uint16_t v[][KV_HEADS * DIM], double *out) {
  double weights[LONGEST], most = -INFINITY, sum = 0;
  const int at = head / GROUP * DIM;
  for (int t = 0; t < length; t++) {
    weights[t] = 0;
    for (int d = 0; d < DIM; d++)
      weights[t] += (double)from_bf16(q[head * DIM + d]) * (double)from_bf16(k[t][at + d]);
    weights[t] /= sqrt(DIM);
    most = fmax(most, weights[t]);
  }
  for (int t = 0; t < length; t++)
    sum += weights[t] = exp(weights[t] - most);
  for (int d = 0; d < DIM; d++) {
    out[d] = 0;
    for (int t = 0; t < length; t++)
      out[d] += weights[t] * (double)from_bf16(v[t][at + d]) / sum;
  }
}

double model_error(int id, int length, const float *out) {
  static uint16_t k[LONGEST][KV_HEADS * DIM], v[LONGEST][KV_HEADS * DIM];
  uint16_t q[Q_HEADS * DIM];
  double worst = 0, expected[DIM];
  model_query(id, length - 1, q);
  for (int t = 0; t < length; t++) {
    model_key(id, t, k[t]);
    model_value(id, t, v[t]);
  }
  for (int head = 0; head < Q_HEADS; head++) {
    attend(q, head, length, k, v, expected);
    for (int d = 0; d < DIM; d++) {
      double error = fabs((double)out[head * DIM + d] - expected[d]);
      if (!(error <= worst)) worst = error; /* NaN too */
    }
  }
  return worst;
}
