/* The ring on AMD targets: whether a contract's pages can be copied piece by piece into a wave's slice of
 * LDS, in which order the pieces lie there, and how many stages and waves fit. */
#include "plan_internal.h"

#include <string.h>

enum { PIECE = 16, PIECES_OF_BANKS = 8, MOST_COUNTED = 63, MOST_STAGES = 8, DEFAULT_STAGES = 2 };

/* Lanes that LDS serves together in a read of 16 bytes, eight a row; as the emulator counts them. */
static const unsigned char cdna_passes[8][8] = {
    {0, 1, 2, 3, 20, 21, 22, 23},     {4, 5, 6, 7, 16, 17, 18, 19},     {8, 9, 10, 11, 28, 29, 30, 31},
    {12, 13, 14, 15, 24, 25, 26, 27}, {32, 33, 34, 35, 52, 53, 54, 55}, {36, 37, 38, 39, 48, 49, 50, 51},
    {40, 41, 42, 43, 60, 61, 62, 63}, {44, 45, 46, 47, 56, 57, 58, 59},
};

static int lane_of(const target *t, int pass, int n) {
  return t->family == FAMILY_CDNA ? cdna_passes[pass][n] : pass * PIECES_OF_BANKS + n;
}

/* Elements from the first of a page and head; as if there were one head where heads lie inside a slot. */
static int64_t inner(const layout *l, int64_t slot, int64_t channel) {
  return layout_offset(l, 0, layout_inner_elements(l), 1, 0, 0, slot, channel);
}

/* Whether the slots of every stretch of a page lie alike: a lane's place is then the same in each. */
static bool alike(const layout *l, int page, int stretch) {
  for (int first = 0; first < page; first += stretch)
    for (int s = 0; s < stretch; s++)
      if (inner(l, first + s, 0) != inner(l, first, 0) + inner(l, s, 0)) return false;
  return true;
}

/* Whether numbers of pieces ascend with their addresses: copies count on it (`further` in the template). */
static bool ascends(const layout *l, const piece_order *o, int stretch, int head_dim) {
  int rows = stretch / o->tokens, columns = head_dim / o->channels;
  int64_t last = -1;
  for (int n = 0; n < rows * columns; n++) {
    int row = o->tokens_first ? n % rows : n / columns, column = o->tokens_first ? n / rows : n % columns;
    int64_t at = inner(l, row * o->tokens, column * o->channels);
    if (at <= last) return false;
    last = at;
  }
  return true;
}

/* The pieces of one operand, and which neighbour follows a piece in memory. */
static const char *order_pieces(const contract *c, const decode_plan *p, const layout *l, dtype d,
                                bool along_tokens, int head_dim, piece_order *out) {
  int elements = PIECE / dtype_bytes(d), stretch = p->staged.stretch;
  if (layout_aligned_run(l, along_tokens ? AXIS_S : AXIS_D) % elements != 0)
    return "K or V has no runs of 16 bytes where fragments take them";
  *out = (piece_order){.tokens = along_tokens ? elements : 1, .channels = along_tokens ? 1 : elements};
  if (stretch % out->tokens != 0 || head_dim % out->channels != 0)
    return "a page's tokens or a head's channels are not whole pieces of 16 bytes";
  int pieces = stretch / out->tokens * (head_dim / out->channels);
  if (pieces % p->target->wave != 0) return "a page's part of a tile is less than a copy of one wave";
  if (!alike(l, c->kv.page, stretch)) return "the slots of a page do not lie alike in its parts";
  out->copies = p->staged.stretches * pieces / p->target->wave;
  out->tokens_first = stretch > out->tokens && inner(l, out->tokens, 0) == elements;
  if (!ascends(l, out, stretch, head_dim)) return "pieces do not follow each other in memory";
  return NULL;
}

/* Place in its stage of the piece that holds (token, channel), before bits are turned. */
static int piece_of(const piece_order *o, int stretch, int head_dim, int token, int channel) {
  int rows = stretch / o->tokens, columns = head_dim / o->channels;
  int row = token % stretch / o->tokens, column = channel / o->channels;
  return token / stretch * rows * columns + (o->tokens_first ? column * rows + row : row * columns + column);
}

/* What a lane's n-th read takes of K, or V: false when there is no such read. */
static bool read_of_k(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel) {
  int chunks = p->k_list / p->k_chunk, run = p->op->row_run;
  if (n >= p->score_tiles * chunks) return false;
  *out_token = index / run * p->list + index % run + n / chunks * run;
  *out_channel = (n % chunks * p->op->groups + group) * p->k_chunk;
  return true;
}
static bool read_of_v(const decode_plan *p, int n, int index, int group, int *out_token, int *out_channel) {
  int across = p->value_tiles / p->v_channels;
  if (n >= across * (p->list / p->v_tokens)) return false;
  *out_token = group * p->list + n / across * p->v_tokens;
  *out_channel = (n % across * p->op->rows + index) * p->v_channels;
  return true;
}

typedef bool (*read_place)(const decode_plan *p, int n, int index, int group, int *out_token,
                           int *out_channel);

/* Whether the direct structure's first load takes whole segments of 64 bytes. */
static bool whole_segments(const contract *c, const decode_plan *p, const layout *l, dtype d,
                           read_place place) {
  enum { SEGMENT = 64 };
  int64_t touched[64];
  int count = 0, token, channel;
  for (int lane = 0; lane < p->target->wave; lane++) {
    const matrix_op *op = p->op;
    place(p, 0, lane / op->row_stride % op->rows, lane / op->group_stride % op->groups, &token, &channel);
    int64_t at = (int64_t)(token / c->kv.page) << 40 | inner(l, token % c->kv.page, channel) * dtype_bytes(d);
    bool seen = false;
    for (int n = 0; n < count; n++)
      seen |= touched[n] == at / SEGMENT;
    if (!seen) touched[count++] = at / SEGMENT;
  }
  return count <= p->target->wave * PIECE / SEGMENT;
}

/* What the emulator's estimate favours: the same bytes in fewer segments of memory. */
static bool favoured(const contract *c, const decode_plan *p) {
  return !whole_segments(c, p, &c->kv.k, c->kv.k_dtype, read_of_k) ||
         !whole_segments(c, p, &c->kv.v, c->kv.v_dtype, read_of_v);
}

/* `count`: pieces of a stretch. Every stretch is turned alike, whatever its own number. */
static int turned(const int turn[3], int count, int piece) {
  for (int bit = 0, from = piece % count; bit < 3; bit++)
    if (turn[bit]) piece ^= (from >> turn[bit] & 1) << bit;
  return piece;
}

/* What the lanes of a pass want, for the reads of the first few fragments. */
enum { READS = 4, MOST_PASSES = READS * 8 };
typedef struct lane_reads {
  int count; /* pieces of a stretch */
  int passes;
  int piece[MOST_PASSES][PIECES_OF_BANKS];
} lane_reads;

static lane_reads find_reads(const decode_plan *p, const piece_order *o, int head_dim, read_place place) {
  const matrix_op *op = p->op;
  lane_reads found = {.count = o->copies * p->target->wave / p->staged.stretches};
  int token, channel;
  for (int n = 0; n < READS && place(p, n, 0, 0, &token, &channel); n++)
    for (int pass = 0; pass < p->target->wave / PIECES_OF_BANKS; pass++, found.passes++)
      for (int k = 0; k < PIECES_OF_BANKS; k++) {
        int lane = lane_of(p->target, pass, k);
        place(p, n, lane / op->row_stride % op->rows, lane / op->group_stride % op->groups, &token, &channel);
        found.piece[found.passes][k] =
            piece_of(o, p->staged.stretch, head_dim, token, channel < head_dim ? channel : 0);
      }
  return found;
}

/* Cycles beyond one a pass, banks as the emulator has them; counting ends at `limit`. */
static int conflicts(const lane_reads *reads, const int turn[3], int limit) {
  int extra = 0;
  for (int pass = 0; pass < reads->passes && extra < limit; pass++) {
    int wanted[PIECES_OF_BANKS], most = 0;
    for (int k = 0; k < PIECES_OF_BANKS; k++) {
      wanted[k] = turned(turn, reads->count, reads->piece[pass][k]);
      int same = 1;
      bool seen = false;
      for (int j = 0; j < k; j++) {
        seen |= wanted[j] == wanted[k];
        same += (wanted[j] ^ wanted[k]) % PIECES_OF_BANKS == 0;
      }
      if (!seen) most = largest(most, same);
    }
    extra += most - 1;
  }
  return extra;
}

/* Which bits of a piece's number to add to its lowest three, so that no bank is asked for twice in a pass:
 * none first, then one, two and three; the fewest conflicts where there are always some. */
static void turn_pieces(const decode_plan *p, int head_dim, read_place place, piece_order *o) {
  enum { LOW_BITS = 3 };
  const lane_reads reads = find_reads(p, o, head_dim, place);
  int bits = LOW_BITS, least = INT32_MAX;
  while (1 << bits < reads.count)
    bits++;
  const int choices = bits - LOW_BITS + 1; /* no bit, or one of those above */
  for (int turns = 0; turns <= LOW_BITS && least > 0; turns++)
    for (int n = 0; n < choices * choices * choices && least > 0; n++) {
      const int chosen[LOW_BITS] = {n % choices, n / choices % choices, n / choices / choices};
      int turn[LOW_BITS], used = 0;
      for (int bit = 0; bit < LOW_BITS; bit++) {
        turn[bit] = chosen[bit] ? chosen[bit] + LOW_BITS - 1 : 0;
        used += chosen[bit] > 0;
      }
      int found = used == turns ? conflicts(&reads, turn, least) : least;
      if (found >= least) continue;
      least = found;
      memcpy(o->turn, turn, sizeof turn);
    }
}

/* Whether pages can be copied as they lie, else why not; then the order of pieces is solved. */
static const char *obstacle(const contract *c, decode_plan *p) {
  staged_plan *s = &p->staged;
  if (!p->target->ring_prelude) return "the ring is not built for this target";
  if (c->kv.v_in_k) return "the ring would copy the bytes that K and V share twice";
  if (p->tail_op) return "the ring has no tail of another format";
  if (p->slices > 1) return "workgroups share the channels of V, and would copy all of them";
  if (p->k_pieces > 1) return "K is loaded in pieces, to save registers";
  if (p->k_parts > 1 || p->v_parts > 1 || c->scale.granularity == SCALE_GROUP)
    return "the ring has no scales of groups of channels";
  bool scaled = c->scale.granularity >= SCALE_TOKEN;
  if (scaled && c->scale.inside) return "the ring copies no scales that lie inside the pages";
  if (scaled && c->scale.dtype != DTYPE_FP32) return "the ring copies scales of 4 bytes";
  s->stretch = plan_gcd(c->kv.page, p->tile);
  s->stretches = p->tile / s->stretch;
  const char *reason = order_pieces(c, p, &c->kv.k, c->kv.k_dtype, false, c->head_dim.qk, &s->k);
  if (!reason) reason = order_pieces(c, p, &c->kv.v, c->kv.v_dtype, p->v_channels == 1, c->head_dim.v, &s->v);
  if (reason) return reason;
  int scale_words = scaled ? largest(1, p->list / p->op->rows) : 0;
  s->copies = s->k.copies + s->v.copies + 2 * scale_words;
  s->stage_bytes =
      (s->k.copies + s->v.copies) * p->target->wave * PIECE + 2 * scale_words * p->target->wave * 4;
  if (s->copies + s->v.copies > MOST_COUNTED) return "a tile is more copies than the hardware counts";
  return NULL;
}

/* gfx1250 has 1024 registers, but LLVM 22 keeps the operands of matrix instructions in the first 256 as far
 * as it can, and spills them rather than use others. */
enum { OPERAND_REGISTERS = 256 };

static void shorten_lists(const contract *c, int queries, decode_plan *p) {
  if (p->target->family != FAMILY_RDNA || p->registers <= OPERAND_REGISTERS) return;
  decode_plan shorter = *p;
  shorter.most_list = p->list / 2;
  plan_keys(c, &shorter);
  if (plan_registers(c, &shorter, queries) && !obstacle(c, &shorter)) *p = shorter;
}

/* What meets at the end lies where the wave's ring was. */
static int ring_bytes(const decode_plan *p, int stages) {
  const matrix_op *op = p->op;
  int outputs = p->blocks * p->value_tiles * op->columns_per_lane * op->row_run * p->target->wave * 4;
  return largest(stages * p->staged.stage_bytes, outputs);
}

/* Stages and waves that fit the LDS and the counter of copies. */
static bool fit_stages(const variant *v, decode_plan *p, diags *errors) {
  const target *t = p->target;
  staged_plan *s = &p->staged;
  const int counted = (MOST_COUNTED - s->v.copies) / s->copies + 1, most = smallest(counted, MOST_STAGES);
  p->waves = v->waves ? v->waves : 4;
  s->stages = v->stages ? v->stages : smallest(DEFAULT_STAGES, most);
  if (s->stages < 2 || s->stages > most) {
    diags_decline_number(errors, "decline.stages", "tune.stages", s->stages,
                         "2 to %d: a tile is %d copies, and the hardware counts %d", most, s->copies,
                         MOST_COUNTED);
    return false;
  }
  p->exchange = p->blocks * p->value_tiles;
  s->ring_bytes = ring_bytes(p, s->stages);
  while (!v->waves && p->waves > 1 &&
         p->waves * s->ring_bytes + lds_beside_outputs(p, p->waves) > t->lds_bytes)
    p->waves /= 2;
  p->lds_bytes = p->waves * s->ring_bytes + lds_beside_outputs(p, p->waves);
  if (p->lds_bytes > t->lds_bytes) {
    diags_decline_number(errors, "decline.stages", "tune.stages", s->stages,
                         "what fits %d bytes of LDS on %s: these need %d with %d waves", t->lds_bytes,
                         t->name, p->lds_bytes, p->waves);
    return false;
  }
  return true;
}

const char *plan_staged(const contract *c, const variant *v, int queries, decode_plan *p, diags *errors) {
  decode_plan ring = *p;
  const char *reason = obstacle(c, &ring);
  if (reason || v->structure == STRUCTURE_DIRECT) return reason;
  bool asked = v->structure == STRUCTURE_RING || v->stages;
  if (!asked && !favoured(c, &ring)) return "that requests whole segments of memory too";
  if (v->resident) {
    if (asked)
      diags_refusef(errors, "decline.structure", "tune.structure", "resident workgroups", "stages",
                    "the ring on %s has no resident workgroups to choose", p->target->name);
    return "the ring has no resident workgroups to choose";
  }
  shorten_lists(c, queries, &ring);
  diags ignored;
  diags_init(&ignored);
  bool fits = fit_stages(v, &ring, asked ? errors : &ignored);
  diags_finish(&ignored);
  if (!fits) return "a ring for so many waves does not fit the LDS";
  turn_pieces(&ring, c->head_dim.qk, read_of_k, &ring.staged.k);
  turn_pieces(&ring, c->head_dim.v, read_of_v, &ring.staged.v);
  *p = ring;
  return NULL;
}
