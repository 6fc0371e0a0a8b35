/* The plan: what the generator solves before it writes a line. For each operand it finds how a lane's loads
 * can become matrix fragments: which tokens and channels a lane owns, in which order, and how wide its loads
 * are.
 *
 * Terms, all per lane: a lane belongs to a group (of the matrix instruction's k) and has an index (of its row
 * or column). A group owns `list` consecutive tokens of a tile; the order of tokens inside a tile and of
 * channels inside a head is free as long as both operands of a product share it, and that freedom is what the
 * plan spends. */
#ifndef HEDDLE_PLAN_H
#define HEDDLE_PLAN_H

#include "contract.h"
#include "emit.h"
#include "target.h"

/* How one operand's pieces of 16 bytes lie in a stage of LDS: in the order of memory, but for the lowest bits
 * of a piece's number, to which others are added so that lanes read from different banks: 64 of 4 bytes on
 * gfx950 and gfx1250, 16 pieces. */
enum { TURNED_BITS = 4 };
typedef struct piece_order {
  int tokens, channels;  /* of a piece: one of the two is 1 */
  bool tokens_first;     /* the next piece has the next tokens, not the next channels */
  int copies;            /* instructions that copy a tile's */
  int pad;               /* pieces left free behind each stretch */
  int turn[TURNED_BITS]; /* number of the bit, within a stretch, that is added to bit n, or 0 */
} piece_order;

/* The ring on AMD targets: every wave copies its tiles into stages of its own in LDS. */
typedef struct staged_plan {
  int stretch, stretches; /* tokens of a tile that have a page in common; how often that is in a tile */
  piece_order k, v;
  int copies; /* of a tile, scales included */
  int stages, stage_bytes, ring_bytes;
} staged_plan;

typedef struct decode_plan {
  const target *target;
  structure structure;        /* direct, or ring: then plan_ring has the rest */
  char structure_reason[120]; /* why not the ring where the target has one; "" otherwise */
  const matrix_op *op,
      *value_op;           /* of the score and the value product; they differ in elements and operand only */
  bool widen, value_widen; /* stored K, V are widened to the operand */
  int q_parts, p_parts;    /* products per operand: the sum of the parts is exact (q) or close (p) */
  bool folded; /* q's parts share one product: the upper half of the columns holds the second; p's too, where
                  it has two */
  int rows;    /* most query rows that share a page list; 1 where each row has its own */
  int blocks;  /* blocks of op->columns queries (row, head) in a workgroup */
  int column_groups;        /* workgroups that share the queries of a sequence and kv head */
  int most_list;            /* tokens a group may own; 0: as many as fit */
  int list, tile;           /* tokens a group owns; tokens of a tile: list * groups */
  int score_tiles;          /* products along tokens: list / row_run */
  int value_tiles;          /* products along V channels in a workgroup: those that are codes */
  int slices;               /* workgroups that share the V channels */
  int k_list;               /* channels of K a lane holds per token, zeros behind head_dim.qk included */
  int k_chunk, k_load;      /* channels dealt to a group at a time; elements per load */
  int k_pieces, k_buffers;  /* K's channels are loaded in so many pieces, of which so many lie in registers */
  const matrix_op *tail_op; /* of the tail's products; NULL: there is no tail */
  int tail_parts;           /* of the query */
  int tail_list, tail_chunk, tail_load; /* as of K */
  const matrix_op *tail_value_op;       /* of the tail's part of V; NULL: V does not reach into the tail */
  int tail_p_parts, tail_tiles, tail_tokens,
      tail_channels; /* as p_parts, value_tiles, v_tokens, v_channels */
  int v_tokens,
      v_channels; /* a V load covers v_tokens tokens (along the fragment) or v_channels channels (across) */
  int own_run;    /* tokens of a group's list that share a page: gcd(page, list) */
  bool k_exact;   /* K rows need a page id each, since own_run < row_run */
  int k_part, v_part;   /* channels that share a token's scale; all of them where there are no groups */
  int k_parts, v_parts; /* of these: in a head of K; in a workgroup's channels of V */
  bool early_loads; /* the first tile is requested before the query is prepared, the next K before the softmax
                     */
  bool steady;      /* requests in an order that leaves one on its way at every wait; not in the ring */
  bool crowded;     /* LLVM spills what is kept in registers over a tile, rather than use all of them */
  bool query_in_lds; /* the query is read from LDS for each tile, to save registers */
  int waves;
  int exchange;       /* channel tiles of outputs that the waves exchange at a time when they meet */
  int lds_bytes;      /* LDS of a workgroup: the query where it lies there, and where the waves meet */
  bool line;          /* workgroups share out the line of tiles, not splits of each (sequence, kv head) */
  int resident;       /* workgroups that a compute unit has room for, estimated */
  int registers;      /* estimate of vector registers */
  staged_plan staged; /* where the structure is a ring and the target AMD's */
  int q_top, p_shift; /* exponents: a q row's largest element, and the largest weight */
} decode_plan;

/* Where K or V lie in a stage, in bytes: token / tokens * stride + token % tokens / chunk * chunk_stride, and
 * from there channel_stride for each 16 bytes of channels of K, for each channel of V. */
typedef struct ring_place {
  int tokens, stride;
  int chunk, chunk_stride; /* tokens that lie within 16 bytes, and bytes from one such chunk to the next */
  int channel_stride;
  int bytes; /* of a stage */
} ring_place;

/* The ring on sm_90: a stage holds one tile of K, V and scales as they lie in the cache; tokens, then
 * channels, are the rows of warpgroup products whose operands are read from shared memory. */
typedef struct ring_plan {
  const target *target;
  dtype k_operand, v_operand; /* of the products: the cache's own 16 bits, or fp16 for 8 */
  int q_parts, p_parts;       /* operands whose sum is the query exactly, a weight closely */
  int tile;                   /* tokens of a stage: 64 or 128 */
  int producers;              /* warps that copy */
  bool bulk;                  /* else each of their lanes copies 16 bytes of a row of K and of V at a time */
  int piece;    /* tokens copied together, or of the same page in a producer's share of a tile */
  int k_slices; /* copies of K for a piece: 1, or one for every 16 bytes of channels */
  bool by_rows; /* the channels of a token lie together, of K and of V */
  ring_place k, v;
  int column_heads;                /* query heads of a column part: heads_per_kv in eights */
  int consumers, stages, resident; /* warpgroups that compute, beside one that copies; of the ring; workgroups
                                      of a compute unit */
  int threads;
  int thread_registers, producer_registers, consumer_registers; /* at first; then after the roles part */
  int lds_bytes;
} ring_plan;

/* Whether the contract's bytes can be used as they lie, else why not (a static text). */
const char *ring_obstacle(const contract *c, const target *t);
hd_status plan_ring(const contract *c, const variant *v, const target *t, ring_plan *out_plan, diags *errors);

typedef struct write_plan {
  const target *target;
  int load;      /* channels a lane handles: one 16-byte load of the query dtype */
  int row_lanes; /* lanes of one (token, head) row: a power of two, all in one wave */
  int threads;
} write_plan;

/* `c` is resolved for the target. HD_DECLINED with "decline.…" diagnostics when the contract is not served.
 */
hd_status plan_decode(const contract *c, const variant *v, const target *t, decode_plan *out_plan,
                      diags *errors);
hd_status plan_write(const contract *c, const variant *v, const target *t, write_plan *out_plan,
                     diags *errors);

/* Products along all V channels in a workgroup, and what of these has weights of its own: each group of
 * channels that share a token's scale, and the tail, which has none. */
static inline int plan_output_tiles(const decode_plan *p) {
  return p->value_tiles + p->tail_tiles;
}
static inline int plan_output_parts(const decode_plan *p) {
  return p->v_parts + (p->tail_value_op != NULL);
}

/* ---- As a whole ---- */

/* What is emitted for `c`: its dtypes resolved for the target, each layout in its fewest factors, so that
 * runs are found whole. */
contract plan_contract(const contract *c, const target *t);

/* All that is solved for decode. `ring` holds where `on_line`: a ring on sm_90, whose workgroups take parts of
 * the line of all tiles. */
typedef struct decode_solution {
  contract contract; /* plan_contract's */
  decode_plan plan;
  bool on_line;
  ring_plan ring;
} decode_solution;

hd_status plan_solve(const contract *c, const variant *v, const target *t, decode_solution *out_solution,
                     diags *errors);

/* What was solved, in sentences: one a line, each behind `mark` ("// "). */
void plan_write_summary(const contract *c, const decode_plan *p, const char *mark, text *out);
void plan_write_ring_summary(const contract *c, const ring_plan *p, const char *mark, text *out);

/* ---- Places ---- */

/* What one lane takes of K or V: `tokens` x `channels` elements from (token, channel) of the first tile on. One
 * of the two is 1, but for copies of whole pages. */
typedef struct plan_place {
  int lane;
  int token, channel;
  int tokens, channels;
} plan_place;

enum { PLAN_MOST_PLACES = 512 };

/* How K and V leave memory. */
typedef enum load_kind {
  LOAD_REGISTERS, /* a wave's loads, straight into fragments */
  LOAD_PIECES,    /* a wave's copies into LDS, a piece of 16 bytes a lane */
  LOAD_BULK       /* one lane's copy of many bytes into shared memory */
} load_kind;
load_kind plan_load_kind(const decode_solution *s);

/* What the lanes take by the first load, or copy, of a tile; what the operand of the first matrix instruction
 * is made of. Channels that the head does not have are left out. How many places; lanes ascend. */
int plan_first_load(const decode_solution *s, bool is_k, plan_place out_places[PLAN_MOST_PLACES]);
int plan_first_operand(const decode_solution *s, bool is_k, plan_place out_places[PLAN_MOST_PLACES]);
/* All that one lane of a wave reads of a tile of K or V, where loads or pieces are a lane's: at most
 * PLAN_MOST_PLACES, else the first of them. */
int plan_lane_reads(const decode_solution *s, bool is_k, int lane, plan_place out_places[PLAN_MOST_PLACES]);

/* The score products of a tile side by side along tokens, their rows, and the token of each: the order that
 * scores and values share. */
int plan_score_products(const decode_solution *s);
int plan_score_rows(const decode_solution *s);
int plan_row_token(const decode_solution *s, int product, int row);
/* Which lane group owns a token's score: of the matrix instruction's k, or the warp of the warpgroup. */
int plan_token_owner(const decode_solution *s, int token);
/* Tokens of a tile. */
int plan_tile(const decode_solution *s);

/* Greatest common divisor: of a page and a tile, the tokens that always share both. */
int plan_gcd(int a, int b);

#endif
