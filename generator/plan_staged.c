/* The ring on AMD targets: whether a contract's pages can be copied piece by piece into a wave's slice of
 * LDS, in which order the pieces lie there, and how many stages and waves fit. */
#include "plan_internal.h"

#include <string.h>

enum {
  PIECE = 16,
  PIECES_OF_BANKS = 1 << TURNED_BITS,
  MOST_COUNTED = 63,
  MOST_STAGES = 8,
  DEFAULT_STAGES = 2
};

/* Fours of lanes in the order in which gfx950's LDS takes them in a read of 16 bytes, four at a time; as the
 * emulator counts them. */
static const unsigned char cdna_fours[16] = {0, 3, 5, 6, 1, 2, 4, 7, 8, 11, 13, 14, 9, 10, 12, 15};

/* Lane n of those that LDS serves together. */
static int lane_of(const target *t, int pass, int n) {
  int lane = pass * PIECES_OF_BANKS + n;
  return t->family == FAMILY_CDNA ? 4 * cdna_fours[lane / 4] + lane % 4 : lane;
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

/* Number within its stretch of the piece that holds (token, channel). */
static int piece_of(const piece_order *o, int stretch, int head_dim, int token, int channel) {
  int rows = stretch / o->tokens, columns = head_dim / o->channels;
  int row = token % stretch / o->tokens, column = channel / o->channels;
  return o->tokens_first ? column * rows + row : row * columns + column;
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
  return !whole_segments(c, p, &c->kv.k, c->kv.k_dtype, plan_read_of_k) ||
         !whole_segments(c, p, &c->kv.v, c->kv.v_dtype, plan_read_of_v);
}

/* What the lanes of a pass want, for the reads of the first few fragments. */
enum { READS = 4, MOST_PASSES = READS * 64 / PIECES_OF_BANKS };
typedef struct lane_reads {
  int count; /* pieces of a stretch */
  int passes;
  int stretch[MOST_PASSES][PIECES_OF_BANKS], piece[MOST_PASSES][PIECES_OF_BANKS];
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
        found.stretch[found.passes][k] = token / p->staged.stretch;
        found.piece[found.passes][k] =
            piece_of(o, p->staged.stretch, head_dim, token, channel < head_dim ? channel : 0);
      }
  return found;
}

/* Cycles beyond one a pass, banks as the emulator has them; counting ends at `limit`. */
static int conflicts(const lane_reads *reads, const int turn[TURNED_BITS], int pad, int limit) {
  int extra = 0;
  for (int pass = 0; pass < reads->passes && extra < limit; pass++) {
    int wanted[PIECES_OF_BANKS], most = 0;
    for (int k = 0; k < PIECES_OF_BANKS; k++) {
      wanted[k] = plan_turned(turn, reads->piece[pass][k]) + reads->stretch[pass][k] * (reads->count + pad);
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

/* Which bits of a piece's number to add to its lowest, for this pad: none first, then one, two and more.
 * Takes what has fewer conflicts than `least`; returns the fewest. */
static int turn_pieces(const lane_reads *reads, int pad, int least, piece_order *o) {
  int bits = TURNED_BITS, all = 1;
  while (1 << bits < reads->count)
    bits++;
  const int choices = bits - TURNED_BITS + 1; /* no bit, or one of those above */
  for (int bit = 0; bit < TURNED_BITS; bit++)
    all *= choices;
  for (int turns = 0; turns <= TURNED_BITS && least > 0; turns++)
    for (int n = 0; n < all && least > 0; n++) {
      int turn[TURNED_BITS], used = 0;
      for (int bit = 0, rest = n; bit < TURNED_BITS; bit++, rest /= choices) {
        turn[bit] = rest % choices ? rest % choices + TURNED_BITS - 1 : 0;
        used += turn[bit] > 0;
      }
      int found = used == turns ? conflicts(reads, turn, pad, least) : least;
      if (found >= least) continue;
      least = found;
      o->pad = pad;
      memcpy(o->turn, turn, sizeof turn);
    }
  return least;
}

/* So that no bank is asked for twice in a pass: by turning bits alone, or with room between stretches, whose
 * pieces have the same numbers; the fewest conflicts where there are always some. */
static void spread_pieces(const decode_plan *p, int head_dim, read_place place, piece_order *o) {
  static const int pads[] = {0, 4, 8, 1, 2};
  const lane_reads reads = find_reads(p, o, head_dim, place);
  int least = INT32_MAX;
  for (size_t i = 0; i < (p->staged.stretches > 1 ? sizeof pads / sizeof *pads : 1) && least > 0; i++)
    least = turn_pieces(&reads, pads[i], least, o);
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
  bool scaled = contract_token_scales(c);
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

/* A stage stays a whole number of words for every lane. */
static void add_pads(decode_plan *p) {
  staged_plan *s = &p->staged;
  s->stage_bytes =
      round_up(s->stage_bytes + s->stretches * (s->k.pad + s->v.pad) * PIECE, 4 * p->target->wave);
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
  if (v->resident || v->tile) {
    const char *what = v->tile ? "tile" : "resident workgroups";
    if (asked)
      diags_refusef(errors, "decline.structure", "tune.structure", what, "stages",
                    "the ring on %s has no %s to choose", p->target->name, what);
    return v->tile ? "the ring has no tile to choose" : "the ring has no resident workgroups to choose";
  }
  shorten_lists(c, queries, &ring);
  spread_pieces(&ring, c->head_dim.qk, plan_read_of_k, &ring.staged.k);
  spread_pieces(&ring, c->head_dim.v, plan_read_of_v, &ring.staged.v);
  add_pads(&ring);
  diags ignored;
  diags_init(&ignored);
  bool fits = fit_stages(v, &ring, asked ? errors : &ignored);
  diags_finish(&ignored);
  if (!fits) return "a ring for so many waves does not fit the LDS";
  *p = ring;
  return NULL;
}
