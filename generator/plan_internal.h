/* What the files of the plan share: plan.c solves products and channels, plan_registers.c lists, tiles and
 * waves that fit a target, plan_checks.c says what is not served. */
#ifndef HEDDLE_PLAN_INTERNAL_H
#define HEDDLE_PLAN_INTERNAL_H

#include "plan.h"

/* Heads: multiples of DIM_STEP channels, up to those of a latent cache. */
enum { DIM_STEP = 8, MOST_QK = 576, MOST_V = 512 };

/* What every operation asks of a contract. */
void check_cache(const contract *c, const target *t, operation o, diags *errors);
/* What decode asks besides, of the contract and of its shape beside the instructions found. */
void check_decode(const contract *c, diags *errors);
void check_shape(const contract *c, const decode_plan *p, diags *errors);
void check_dims(const contract *c, diags *errors);

/* Lists, tiles, blocks and slices: the first that fits the registers; false when nothing does. */
void plan_keys(const contract *c, decode_plan *p);
bool plan_registers(const contract *c, decode_plan *p, int queries);
/* The waves asked for, or the most up to 4 that fit the LDS. False when those asked for do not fit. */
bool plan_waves(const variant *v, decode_plan *p, diags *errors);
/* Workgroups that a compute unit's registers and LDS leave room for. */
int plan_resident(const decode_plan *p);
/* LDS of a workgroup without the outputs: the numbers of rows and columns of the waves, and the query. */
int lds_beside_outputs(const decode_plan *p, int waves);

/* The ring on AMD targets, where it is asked for, or favoured and fits. Otherwise `p` stays what it is, and
 * the result says why (a static text); what was asked for and does not fit is an error besides. */
const char *plan_staged(const contract *c, const variant *v, int queries, decode_plan *p, diags *errors);

/* What a lane's n-th read takes of K, or V: false when there is no such read. Of K k_chunk channels, of V
 * what a load takes. */
bool plan_read_of_k(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel);
bool plan_read_of_v(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel);
/* Where a piece lies in its stretch, and which lies there: each undoes the other. Every stretch is turned
 * alike, whatever its own number. */
int plan_turned(const int turn[TURNED_BITS], int piece);

/* Whether every fragment of K lies within one group of channels that share a scale. */
static inline bool plan_parts_whole(const decode_plan *p) {
  int chunk = p->k_chunk > p->op->elements ? p->k_chunk : p->op->elements;
  return p->k_part % (p->op->groups * chunk) == 0;
}

/* Largest power of two that divides n. */
static inline int power_of_two_in(int64_t n) {
  return (int)(n & -n);
}
static inline int smallest(int a, int b) {
  return a < b ? a : b;
}
static inline int largest(int a, int b) {
  return a > b ? a : b;
}
static inline int round_up(int n, int step) {
  return (n + step - 1) / step * step;
}

#endif
