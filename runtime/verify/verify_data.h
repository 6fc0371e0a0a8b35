/* Inputs for verification: cases and what is generated from them. */
#ifndef HEDDLE_VERIFY_DATA_H
#define HEDDLE_VERIFY_DATA_H

#include "../launch/launch.h"

/* What is peculiar about a case's inputs. */
enum {
  TRAIT_CLEAN = 1 << 0,      /* unwritten slots and unused table entries are 0; otherwise they are garbage */
  TRAIT_ZERO_QUERY = 1 << 1, /* some query rows are all zero */
  TRAIT_ZERO_TOKENS =
      1 << 2, /* some k and v rows are all zero, some as small as the floors of the writer's rule */
  TRAIT_PEAKED = 1 << 3,      /* large queries: the softmax is nearly one token */
  TRAIT_OUTLIERS = 1 << 4,    /* rows of k and v differ in size by orders of magnitude */
  TRAIT_WIDE_SCALES = 1 << 5, /* V scales from 1e-6 to 1e3 within a sequence, set after the write */
  TRAIT_ZERO_SCALES = 1 << 6, /* V scales of 0: all of one sequence, some of the others */
  TRAIT_SKIPPED = 1 << 7,     /* the writer also gets tokens with slot -1 */
  TRAIT_NAN = 1 << 8,         /* NaN in a visible k and in a visible v */
  TRAIT_FAR = 1 << 9,         /* a cache of more than 2^31 elements, used at its far end */
};

/* pages * page + tiles * tile + tokens + blocks * select.block */
typedef struct case_length {
  int pages, tiles, tokens, blocks;
} case_length;

enum { CASE_MAX_SEQS = 64, CASE_MAX_LISTED = 4096 };

typedef struct verify_case {
  const char *name;
  int kv_heads;
  int64_t splits; /* 0: by policy */
  unsigned traits;
  bool large;
  bool lists; /* only for contracts with lists of blocks or tokens */
  int length_count;
  case_length lengths[CASE_MAX_SEQS];
  int repeat;          /* the list of lengths so many times; 0: once */
  int64_t spare_pages; /* pages in front of those in use */
} verify_case;

extern const verify_case verify_cases[];
extern const int verify_case_count;

/* splitmix64: deterministic, the same on every machine. */
typedef struct random_state {
  uint64_t state;
} random_state;

uint64_t random_bits(random_state *r);
/* 0 <= result < limit */
int64_t random_below(random_state *r, int64_t limit);
double random_unit(random_state *r); /* [0, 1) */
double random_normal(random_state *r);

/* A random case; `name` stays with the caller. */
void verify_case_random(random_state *r, const char *name, verify_case *out_case);

/* One case's tensors in host memory. */
typedef struct verify_data {
  const contract *contract;
  const verify_case *from;
  int64_t page, tile, longest, live_tokens;
  int64_t sizes[DIM_COUNT]; /* seqs, rows, kv_heads, pages, table_pages, table_rows, tokens, listed */
  tensors write, decode;    /* share caches and scales */
  void *memory[TENSOR_COUNT];
  /* Where each live token lies: token t of sequence s is row first_token[s] + t of these. */
  int64_t *first_token, *slot; /* physical slot: page * page_size + slot */
  int64_t *row;                /* its row in k and v, which come in another order */
} verify_data;

hd_status verify_data_init(verify_data *d, const contract *c, const verify_case *from, int64_t tile,
                           random_state *r, diags *errors);
void verify_data_finish(verify_data *d);
/* Changes V scales as the case's traits say, after the write. Where the contract has no scales a token, v
 * itself came like that. */
void verify_data_set_scales(verify_data *d, random_state *r);

#endif
