/* Cross-lane instructions: reading and writing single lanes, permutes through the LDS crossbar, swaps and
 * broadcasts. */
#include "execute.h"

static int lane_mask(const emu_wave *w) {
  return w->lanes - 1;
}

static void v_readlane_b32(emu_wave *w, const emu_instruction *i) {
  const emu_operand *o = &i->operand[1];
  int lane = (int)emu_source_scalar(w, i, 1) & lane_mask(w);
  emu_set_scalar32(w, &i->operand[0],
                   o->kind == EMU_VECTOR ? w->v[emu_row_of(w, o)][lane] : emu_scalar32(w, o));
}

static void v_readfirstlane_b32(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar32(w, &i->operand[0], emu_source_scalar(w, i, 0));
}

/* Writes whatever EXEC says. */
static void v_writelane_b32(emu_wave *w, const emu_instruction *i) {
  int lane = (int)emu_source_scalar(w, i, 1) & lane_mask(w);
  w->v[emu_row_of(w, &i->operand[0])][lane] = emu_source_scalar(w, i, 0);
}

/* Lane t reads the data of lane (address / 4) mod width. EXEC applies to the read too: an inactive lane gives
 * 0. */
static void bpermute(emu_wave *w, const emu_instruction *i, bool fetch_inactive) {
  emu_block r;
  const uint32_t *address = w->v[emu_row_of(w, &i->operand[1])], *data = w->v[emu_row_of(w, &i->operand[2])];
  uint64_t exec = fetch_inactive ? UINT64_MAX : emu_exec(w);
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    int from = (int)((address[lane] + (uint32_t)i->offset) >> 2) & lane_mask(w);
    r.lane[lane] = exec >> from & 1 ? data[from] : 0;
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void ds_bpermute_b32(emu_wave *w, const emu_instruction *i) {
  bpermute(w, i, false);
}
static void ds_bpermute_fi_b32(emu_wave *w, const emu_instruction *i) {
  bpermute(w, i, true);
}

/* Lane t sends its data to lane (address / 4); the highest sender wins; lanes nobody sent to get 0. */
static void ds_permute_b32(emu_wave *w, const emu_instruction *i) {
  emu_block r;
  const uint32_t *address = w->v[emu_row_of(w, &i->operand[1])], *data = w->v[emu_row_of(w, &i->operand[2])];
  memset(&r, 0, sizeof r);
  for (uint64_t left = emu_exec(w); left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    r.lane[(int)((address[lane] + (uint32_t)i->offset) >> 2) & lane_mask(w)] = data[lane];
  }
  emu_result(w, i, EMU_B32, r.lane);
}

/* The pattern is the encoding's 16-bit offset: bit 15 a quad permutation, 0xc… a rotation, else and/or/xor
 * masks on the lane number within 32 lanes. */
static int swizzle_lane(uint32_t pattern, int lane) {
  int group = lane & ~31, inner = lane & 31;
  if (pattern >> 14 == 3) {
    int n = (int)(pattern >> 5 & 31), mask = (int)(pattern & 31);
    int moved = pattern >> 10 & 1 ? inner - n : inner + n;
    return group | (inner & mask) | (moved & ~mask & 31);
  }
  if (pattern >> 15) return (lane & ~3) | (int)(pattern >> (2 * (lane & 3)) & 3);
  int and_mask = (int)(pattern & 31), or_mask = (int)(pattern >> 5 & 31),
      xor_mask = (int)(pattern >> 10 & 31);
  return group | (((inner & and_mask) | or_mask) ^ xor_mask);
}

static void ds_swizzle_b32(emu_wave *w, const emu_instruction *i) {
  if (i->immediate >> 13 == 7) { /* 0xe000 … : the FFT patterns */
    emu_fault(w, i, -1, "the emulator does not implement this instruction: FFT swizzle");
    return;
  }
  emu_block r;
  const uint32_t *data = w->v[emu_row_of(w, &i->operand[1])];
  uint64_t exec = emu_exec(w);
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    int from = swizzle_lane(i->immediate, lane) & lane_mask(w);
    r.lane[lane] = exec >> from & 1 ? data[from] : 0;
  }
  emu_result(w, i, EMU_B32, r.lane);
}

/* v_permlane16/32_swap: the odd rows of the first register trade places with the even rows of the second; a
 * row is 16 or 32 lanes. */
static void swap_rows(emu_wave *w, const emu_instruction *i, int row_lanes) {
  uint32_t *first = w->v[emu_row_of(w, &i->operand[0])], *second = w->v[emu_row_of(w, &i->operand[1])];
  uint64_t exec = emu_exec(w);
  for (int lane = 0; lane < w->lanes; ++lane) {
    if (lane & row_lanes) continue;
    int odd = lane + row_lanes;
    uint32_t a = first[odd], b = second[lane];
    if (exec >> odd & 1) first[odd] = b;
    if (exec >> lane & 1) second[lane] = a;
  }
}
static void v_permlane16_swap_b32(emu_wave *w, const emu_instruction *i) {
  swap_rows(w, i, 16);
}
static void v_permlane32_swap_b32(emu_wave *w, const emu_instruction *i) {
  swap_rows(w, i, 32);
}

/* v_permlane16: lane n of a row of 16 reads lane select[n]; x16 reads from the neighbouring row. op_sel[0]
 * fetches from inactive lanes too, op_sel[1] gives 0 where the source is inactive; else such lanes keep their
 * value. */
static void permute_rows(emu_wave *w, const emu_instruction *i, int row_flip) {
  emu_block x, r;
  const uint32_t *a = emu_source(w, i, 0, EMU_B32, &x).lo, *old = w->v[emu_row_of(w, &i->operand[0])];
  uint64_t select = (uint64_t)emu_source_scalar(w, i, 2) << 32 | emu_source_scalar(w, i, 1),
           exec = emu_exec(w);
  bool fetch_inactive = i->op_sel & 1, zero = i->op_sel & 2;
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    int from = ((lane & ~15) ^ row_flip) | (int)(select >> (4 * (lane & 15)) & 15);
    bool readable = fetch_inactive || (exec >> from & 1);
    r.lane[lane] = readable ? a[from] : zero ? 0 : old[lane];
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_permlane16_b32(emu_wave *w, const emu_instruction *i) {
  permute_rows(w, i, 0);
}
static void v_permlanex16_b32(emu_wave *w, const emu_instruction *i) {
  permute_rows(w, i, 16);
}

/* The same with a select per lane. */
static void permute_rows_variable(emu_wave *w, const emu_instruction *i, int row_flip) {
  emu_block x, y, r;
  const uint32_t *a = emu_source(w, i, 0, EMU_B32, &x).lo, *select = emu_source(w, i, 1, EMU_B32, &y).lo;
  const uint32_t *old = w->v[emu_row_of(w, &i->operand[0])];
  uint64_t exec = emu_exec(w);
  bool fetch_inactive = i->op_sel & 1, zero = i->op_sel & 2;
  for (int lane = 0; lane < EMU_LANES; ++lane) {
    int from = ((lane & ~15) ^ row_flip) | (int)(select[lane] & 15);
    bool readable = fetch_inactive || (exec >> from & 1);
    r.lane[lane] = readable ? a[from] : zero ? 0 : old[lane];
  }
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_permlane16_var_b32(emu_wave *w, const emu_instruction *i) {
  permute_rows_variable(w, i, 0);
}
static void v_permlanex16_var_b32(emu_wave *w, const emu_instruction *i) {
  permute_rows_variable(w, i, 16);
}

/* gfx1250: lanes move within groups of `width` lanes, a power of two, by a distance or to a place that the
 * whole wave shares. A lane whose source would lie outside its group keeps its own value. Sources are read
 * whatever EXEC says. */
typedef int (*lane_choice)(int lane, int first, int width, int distance);

static int choose_broadcast(int lane, int first, int width, int distance) {
  (void)lane;
  return first + (distance & 63 & (width - 1));
}
static int choose_up(int lane, int first, int width, int distance) {
  (void)width;
  return lane - first < distance ? lane : lane - distance;
}
static int choose_down(int lane, int first, int width, int distance) {
  return lane - first + distance < width ? lane + distance : lane;
}
static int choose_exclusive_or(int lane, int first, int width, int distance) {
  int from = lane ^ (distance & 63);
  return distance < EMU_LANES / 2 && from < first + width ? from : lane;
}

/* Zero where the hardware's meaning of a width is unknown. */
static int group_width(emu_wave *w, const emu_instruction *i, int source) {
  uint32_t width = emu_source_scalar(w, i, source);
  if (width && width <= (uint32_t)w->lanes && (width & (width - 1)) == 0) return (int)width;
  emu_fault(w, i, -1, "lanes move in groups of %u, which is no power of two up to the wave's width", width);
  return 0;
}

static void move_in_groups(emu_wave *w, const emu_instruction *i, lane_choice choose) {
  emu_block x, r;
  const uint32_t *a = emu_source(w, i, 0, EMU_B32, &x).lo;
  uint32_t distance = emu_source_scalar(w, i, 1);
  int width = group_width(w, i, 2);
  if (!width) return;
  int capped = distance < EMU_LANES ? (int)distance : EMU_LANES;
  memcpy(&r, a, sizeof r);
  for (int lane = 0; lane < w->lanes; ++lane)
    r.lane[lane] = a[choose(lane, lane & ~(width - 1), width, capped)];
  emu_result(w, i, EMU_B32, r.lane);
}
static void v_permlane_bcast_b32(emu_wave *w, const emu_instruction *i) {
  move_in_groups(w, i, choose_broadcast);
}
static void v_permlane_up_b32(emu_wave *w, const emu_instruction *i) {
  move_in_groups(w, i, choose_up);
}
static void v_permlane_down_b32(emu_wave *w, const emu_instruction *i) {
  move_in_groups(w, i, choose_down);
}
static void v_permlane_xor_b32(emu_wave *w, const emu_instruction *i) {
  move_in_groups(w, i, choose_exclusive_or);
}

/* The address that ds_bpermute_b32 takes, of a place in the lane's own group. */
static void v_permlane_idx_gen_b32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *a = emu_source(w, i, 0, EMU_B32, &x).lo;
  int width = group_width(w, i, 1);
  if (!width) return;
  for (int lane = 0; lane < EMU_LANES; ++lane)
    r.lane[lane] = 4 * ((uint32_t)(lane & ~(width - 1)) | (a[lane] & (uint32_t)(width - 1)));
  emu_result(w, i, EMU_B32, r.lane);
}

/* Swaps the halves of a wave64; a wave32 has nothing to swap. */
static void v_permlane64_b32(emu_wave *w, const emu_instruction *i) {
  emu_block x, r;
  const uint32_t *a = emu_source(w, i, 0, EMU_B32, &x).lo;
  for (int lane = 0; lane < EMU_LANES; ++lane)
    r.lane[lane] = a[w->lanes == 64 ? lane ^ 32 : lane];
  emu_result(w, i, EMU_B32, r.lane);
}

/* Register indexing through M0 (gfx10 and later). */
static bool index_in_range(emu_wave *w, const emu_instruction *i, uint32_t row) {
  if (row < w->vector_rows) return true;
  emu_fault(w, i, -1, "register v%u, indexed through M0, is out of range", row);
  return false;
}
static void v_movrels_b32(emu_wave *w, const emu_instruction *i) {
  uint32_t row = emu_row_of(w, &i->operand[1]) + w->s[EMU_S_M0];
  if (index_in_range(w, i, row)) emu_result(w, i, EMU_B32, w->v[row]);
}
static void v_movreld_b32(emu_wave *w, const emu_instruction *i) {
  emu_block x;
  uint32_t row = emu_row_of(w, &i->operand[0]) + w->s[EMU_S_M0];
  if (index_in_range(w, i, row)) emu_write_row(w, row, emu_exec(w), emu_source(w, i, 0, EMU_B32, &x).lo);
}

/* The same of scalars. */
static emu_operand moved_scalar(emu_wave *w, const emu_instruction *i, int operand) {
  emu_operand o = i->operand[operand];
  uint64_t index = (uint64_t)o.index + w->s[EMU_S_M0];
  if (o.kind != EMU_SCALAR || index + o.count > EMU_S_VCC) {
    emu_fault(w, i, -1, "register s%llu, indexed through M0, is out of range", (unsigned long long)index);
    index = 0;
  }
  o.index = (uint16_t)index;
  return o;
}
static void s_movrels_b32(emu_wave *w, const emu_instruction *i) {
  emu_operand from = moved_scalar(w, i, 1);
  emu_set_scalar32(w, &i->operand[0], emu_scalar32(w, &from));
}
static void s_movrels_b64(emu_wave *w, const emu_instruction *i) {
  emu_operand from = moved_scalar(w, i, 1);
  emu_set_scalar64(w, &i->operand[0], emu_scalar64(w, &from));
}
static void s_movreld_b32(emu_wave *w, const emu_instruction *i) {
  emu_operand to = moved_scalar(w, i, 0);
  emu_set_scalar32(w, &to, emu_scalar32(w, &i->operand[1]));
}
static void s_movreld_b64(emu_wave *w, const emu_instruction *i) {
  emu_operand to = moved_scalar(w, i, 0);
  emu_set_scalar64(w, &to, emu_scalar64(w, &i->operand[1]));
}

/* A counter in LDS, at M0 31:16 plus the offset, goes up or down by the number of active lanes, who all get
 * what it was. */
static void count_lanes(emu_wave *w, const emu_instruction *i, bool up) {
  emu_block r;
  uint32_t offset = (w->s[EMU_S_M0] >> 16) + (uint32_t)i->offset, old, now;
  uint8_t *at = emu_lds(w, i, -1, offset, sizeof old, EMU_TOUCH_ATOMIC);
  if (!at) return;
  memcpy(&old, at, sizeof old);
  uint32_t active = (uint32_t)__builtin_popcountll(emu_exec(w));
  now = up ? old + active : old - active;
  memcpy(at, &now, sizeof now);
  for (int lane = 0; lane < EMU_LANES; ++lane)
    r.lane[lane] = old;
  emu_result(w, i, EMU_B32, r.lane);
}
static void ds_append(emu_wave *w, const emu_instruction *i) {
  count_lanes(w, i, true);
}
static void ds_consume(emu_wave *w, const emu_instruction *i) {
  count_lanes(w, i, false);
}

const emu_row emu_lane_rows[] = {
    {"v_readlane_b32", v_readlane_b32, 1, 0},
    {"v_readfirstlane_b32", v_readfirstlane_b32, 1, 0},
    {"v_writelane_b32", v_writelane_b32, 1, 0},
    {"ds_bpermute_b32", ds_bpermute_b32, 1, EMU_LDS_CROSSBAR},
    {"ds_bpermute_fi_b32", ds_bpermute_fi_b32, 1, EMU_LDS_CROSSBAR},
    {"ds_permute_b32", ds_permute_b32, 1, EMU_LDS_CROSSBAR},
    {"ds_swizzle_b32", ds_swizzle_b32, 1, EMU_LDS_CROSSBAR},
    {"v_permlane16_swap_b32", v_permlane16_swap_b32, 2, 0},
    {"v_permlane32_swap_b32", v_permlane32_swap_b32, 2, 0},
    {"v_permlane16_b32", v_permlane16_b32, 1, 0},
    {"v_permlanex16_b32", v_permlanex16_b32, 1, 0},
    {"v_permlane16_var_b32", v_permlane16_var_b32, 1, 0},
    {"v_permlanex16_var_b32", v_permlanex16_var_b32, 1, 0},
    {"v_permlane_bcast_b32", v_permlane_bcast_b32, 1, 0},
    {"v_permlane_up_b32", v_permlane_up_b32, 1, 0},
    {"v_permlane_down_b32", v_permlane_down_b32, 1, 0},
    {"v_permlane_xor_b32", v_permlane_xor_b32, 1, 0},
    {"v_permlane_idx_gen_b32", v_permlane_idx_gen_b32, 1, 0},
    {"v_permlane64_b32", v_permlane64_b32, 1, 0},
    {"v_movrels_b32", v_movrels_b32, 1, EMU_INDEXES},
    {"v_movreld_b32", v_movreld_b32, 1, EMU_INDEXES},
    {"s_movrels_b32", s_movrels_b32, 1, 0},
    {"s_movrels_b64", s_movrels_b64, 1, 0},
    {"s_movreld_b32", s_movreld_b32, 1, 0},
    {"s_movreld_b64", s_movreld_b64, 1, 0},
    {"ds_append", ds_append, 1, EMU_LDS_CROSSBAR},
    {"ds_consume", ds_consume, 1, EMU_LDS_CROSSBAR},
    {NULL, NULL, 0, 0},
};
