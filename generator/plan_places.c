/* Which lane takes which tokens and channels, as the templates have it: decode.hip (load_k, load_v,
 * listed_channel, channel_of), decode_staged.hip (find_places) and decode_ring.hip (token_of,
 * load_fragments, load_rows, load_columns). */
#include "plan_internal.h"

bool plan_read_of_k(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel) {
  int chunks = p->k_list / p->k_chunk, run = p->op->row_run;
  if (n >= p->score_tiles * chunks) return false;
  *out_token = index / run * p->list + index % run + n / chunks * run;
  *out_channel = (n % chunks * p->op->groups + group) * p->k_chunk;
  return true;
}

bool plan_read_of_v(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel) {
  int across = p->value_tiles / p->v_channels;
  if (n >= across * (p->list / p->v_tokens)) return false;
  *out_token = group * p->list + n / across * p->v_tokens;
  *out_channel = (n % across * p->op->rows + index) * p->v_channels;
  return true;
}

int plan_turned(const int turn[TURNED_BITS], int piece) {
  for (int bit = 0, from = piece; bit < TURNED_BITS; bit++)
    if (turn[bit]) piece ^= (from >> turn[bit] & 1) << bit;
  return piece;
}

load_kind plan_load_kind(const decode_solution *s) {
  if (s->on_line) return s->ring.bulk ? LOAD_BULK : LOAD_PIECES;
  return s->plan.structure == STRUCTURE_RING ? LOAD_PIECES : LOAD_REGISTERS;
}

static int index_of(const matrix_op *op, int lane) {
  return lane / op->row_stride % op->rows;
}
static int group_of(const matrix_op *op, int lane) {
  return lane / op->group_stride % op->groups;
}

static int bytes_of(const decode_solution *s, bool is_k) {
  return dtype_bytes(is_k ? s->contract.kv.k_dtype : s->contract.kv.v_dtype);
}

/* Channels that are there to be read as codes. */
static int channels_of(const decode_solution *s, bool is_k) {
  return is_k ? contract_coded_k(&s->contract) : contract_coded_v(&s->contract);
}

typedef struct place_list {
  int count, channels;
  plan_place *items;
} place_list;

static void add_place(place_list *l, plan_place p) {
  if (p.channel < l->channels && l->count < PLAN_MOST_PLACES) l->items[l->count++] = p;
}

/* Lane `lane`'s n-th load into registers: of K, which is read in chunks, only k_load channels at a time. */
static bool add_read(const decode_plan *p, bool is_k, int n, int lane, place_list *l) {
  int index = index_of(p->op, lane), group = group_of(p->op, lane), token, channel;
  if (is_k) {
    int loads = p->k_chunk / p->k_load;
    if (!plan_read_of_k(p, n / loads, index, group, &token, &channel)) return false;
    add_place(l, (plan_place){lane, token, channel + n % loads * p->k_load, 1, p->k_load});
    return true;
  }
  if (!plan_read_of_v(p, n, index, group, &token, &channel)) return false;
  add_place(l, (plan_place){lane, token, channel, p->v_tokens, p->v_channels});
  return true;
}

/* The piece that a lane brings by the first copy: of the tile's first stretch. */
static void add_piece(const decode_solution *s, bool is_k, int lane, place_list *l) {
  const staged_plan *ring = &s->plan.staged;
  const piece_order *o = is_k ? &ring->k : &ring->v;
  int rows = ring->stretch / o->tokens, columns = l->channels / o->channels;
  int piece = plan_turned(o->turn, lane);
  int row = o->tokens_first ? piece % rows : piece / columns;
  int column = o->tokens_first ? piece / rows : piece % columns;
  add_place(l, (plan_place){lane, row * o->tokens, column * o->channels, o->tokens, o->channels});
}

/* Copies of a tile are dealt to the producers' warps in turn: K's slices of a piece, then V. */
static void add_bulk(const decode_solution *s, bool is_k, place_list *l) {
  const ring_plan *r = &s->ring;
  int channels = is_k && r->k_slices > 1 ? 16 / bytes_of(s, is_k) : l->channels;
  add_place(l, (plan_place){is_k ? 0 : r->k_slices / r->producers, 0, 0, r->piece, channels});
}

/* 16 bytes of a row that a lane of the first producer brings. */
static void add_unit(const decode_solution *s, bool is_k, int lane, place_list *l) {
  int unit = 16 / bytes_of(s, is_k), units = l->channels / unit;
  add_place(l, (plan_place){lane, lane / units, lane % units * unit, 1, unit});
}

int plan_first_load(const decode_solution *s, bool is_k, plan_place out[PLAN_MOST_PLACES]) {
  place_list l = {.channels = channels_of(s, is_k), .items = out};
  const load_kind kind = plan_load_kind(s);
  if (kind == LOAD_BULK) add_bulk(s, is_k, &l);
  for (int lane = 0; kind != LOAD_BULK && lane < s->plan.target->wave; lane++)
    if (s->on_line)
      add_unit(s, is_k, lane, &l);
    else if (kind == LOAD_PIECES)
      add_piece(s, is_k, lane, &l);
    else
      add_read(&s->plan, is_k, 0, lane, &l);
  return l.count;
}

/* The first fragment of score tile 0, or of channel tile 0. */
static void add_fragment(const decode_plan *p, bool is_k, int lane, place_list *l) {
  const matrix_op *op = is_k ? p->op : p->value_op;
  int index = index_of(op, lane), group = group_of(op, lane);
  if (!is_k) {
    add_place(l, (plan_place){lane, group * p->list, index * p->v_channels, op->elements, 1});
    return;
  }
  int token = index / op->row_run * p->list + index % op->row_run;
  int run = smallest(op->elements, p->k_chunk);
  for (int i = 0; i < op->elements; i += run)
    add_place(l, (plan_place){lane, token,
                              (i / p->k_chunk * op->groups + group) * p->k_chunk + i % p->k_chunk, 1, run});
}

/* The token of row half * 8 + g of a chunk of 16 rows of the ring's score product. */
static int ring_token(const decode_solution *s, int chunk, int half, int g) {
  bool neighbours = s->ring.by_rows || bytes_of(s, false) == 2;
  return chunk * 16 + (neighbours ? half * 8 + g : g / 2 * 4 + half * 2 + g % 2);
}

/* What a lane has of 16 rows and 16 k, of warp 0 in the first product of a warpgroup: in two rows four
 * neighbours along k, of 8 bits or in rows of K, else two and two more. */
static void add_ring_fragment(const decode_solution *s, bool is_k, int lane, place_list *l) {
  int g = lane / 4, t = lane % 4, bytes = bytes_of(s, is_k), step = 16 / bytes;
  bool rows = s->ring.by_rows, whole = is_k ? rows || bytes == 1 : !rows && bytes == 1;
  for (int half = 0; half < 2; half++)
    for (int part = 0; part < (whole ? 1 : 2); part++) {
      int run = whole ? 4 : 2, k = whole ? t * (is_k && rows ? step : 4) : part * 8 + 2 * t;
      int channel = rows && bytes == 1 ? g * 2 + half : half * 8 + g;
      add_place(l, is_k ? (plan_place){lane, ring_token(s, 0, half, g), k, 1, run}
                        : (plan_place){lane, k, channel, run, 1});
    }
}

int plan_first_operand(const decode_solution *s, bool is_k, plan_place out[PLAN_MOST_PLACES]) {
  place_list l = {.channels = channels_of(s, is_k), .items = out};
  for (int lane = 0; lane < s->plan.target->wave; lane++)
    if (s->on_line)
      add_ring_fragment(s, is_k, lane, &l);
    else
      add_fragment(&s->plan, is_k, lane, &l);
  return l.count;
}

int plan_lane_reads(const decode_solution *s, bool is_k, int lane, plan_place out[PLAN_MOST_PLACES]) {
  place_list l = {.channels = channels_of(s, is_k), .items = out};
  for (int n = 0; !s->on_line && l.count < PLAN_MOST_PLACES && add_read(&s->plan, is_k, n, lane, &l); n++)
    continue;
  return l.count;
}

int plan_tile(const decode_solution *s) {
  return s->on_line ? s->ring.tile : s->plan.tile;
}

enum { WARPGROUP_ROWS = 64, WARP_ROWS = 16 };

int plan_score_products(const decode_solution *s) {
  return s->on_line ? s->ring.tile / WARPGROUP_ROWS : s->plan.score_tiles;
}

int plan_score_rows(const decode_solution *s) {
  return s->on_line ? WARPGROUP_ROWS : s->plan.op->rows;
}

int plan_row_token(const decode_solution *s, int product, int row) {
  const decode_plan *p = &s->plan;
  if (!s->on_line) return row / p->op->row_run * p->list + row % p->op->row_run + product * p->op->row_run;
  int warp = row / WARP_ROWS, half = row / 8 % 2, g = row % 8;
  return ring_token(s, product * 4 + warp, half, g);
}

int plan_token_owner(const decode_solution *s, int token) {
  return s->on_line ? token / WARP_ROWS % 4 : token / s->plan.list;
}
