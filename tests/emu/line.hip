// The line of tiles (templates/line.hip) by itself: what it says of parts and items is held against plain counting in
// test_line.c.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define KERNEL extern "C" __attribute__((global))
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")

typedef int page_id;
#ifdef WITH_WINDOW
constexpr int TILE = 32, LINE_TILES = 4, WINDOW = 1500, ROWS = 3, LINE_RESIDENT = 3, LINE_LEAST = 4;
#else
constexpr int TILE = 128, LINE_TILES = 1, WINDOW = 0, ROWS = 1, LINE_RESIDENT = 1, LINE_LEAST = 4;
#endif
constexpr bool CAUSAL = true;
#ifdef __gfx950__
constexpr int WAVE = 64;
#else
constexpr int WAVE = 32;
#endif

DEVICE int lane_id() { return (int)__builtin_amdgcn_workitem_id_x(); }
DEVICE float reciprocal_fast(float x) { return __builtin_amdgcn_rcpf(x); }
DEVICE int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }
DEVICE int lane_value(int x, int lane) { return __builtin_amdgcn_ds_bpermute(lane * 4, x); }
DEVICE int lane_below(int x, int step) { return lane_value(x, lane_id() >= step ? lane_id() - step : lane_id()); }
DEVICE int highest_lane(bool x) { return 63 - __builtin_clzll(WAVE == 64 ? __builtin_amdgcn_ballot_w64(x) : (u64)__builtin_amdgcn_ballot_w32(x)); }

#include "../../templates/lists.hip"
#include "../../templates/line.hip"

// [part][9]: begin, end, the first tile's place, and whether the cut before it runs through an item.
KERNEL void parts(const int *lengths, int *out, int count, int heads, int splits) {
  const page_lists lists = {lengths, nullptr, 1, 0, count, heads, ROWS};
  const tile_line line = measure_line(lists, splits);
  const int part = (int)__builtin_amdgcn_workgroup_id_x();
  int *const row = out + part * 9;
  if (part >= line.parts) {
    if (lane_id() == 0) row[0] = row[1] = -1;
    return;
  }
  line_place at;
  const int begin = part_begin(line, part, at), end = part_end(line, part);
  line_place cut;
  const bool within = cuts_item(line, part, cut);
  if (lane_id() > 0) return;
  row[0] = begin;
  row[1] = end;
  row[2] = at.list;
  row[3] = at.kv_head;
  row[4] = at.tile;
  row[5] = at.tiles;
  row[6] = at.length;
  row[7] = at.next_length;
  row[8] = within;
}

// bounds [item][2], tiles of the line; out [item][2]: the parts with its first and last tile.
KERNEL void items(const int *lengths, const int *bounds, int *out, int count, int heads, int splits) {
  const page_lists lists = {lengths, nullptr, 1, 0, count, heads, ROWS};
  const tile_line line = measure_line(lists, splits);
  const int item = (int)__builtin_amdgcn_workgroup_id_x();
  const int first = first_part_of(line, bounds[item * 2], bounds[item * 2 + 1]);
  const int last = last_part_of(line, bounds[item * 2], bounds[item * 2 + 1]);
  if (lane_id() > 0) return;
  out[item * 2] = first;
  out[item * 2 + 1] = last;
}
