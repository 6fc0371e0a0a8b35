// ---- the line of tiles: those of every list of pages and kv head, one behind the other, cut into equal parts
//
// A workgroup of decode takes one part, whatever lists it runs through: batches of any lengths keep all workgroups busy,
// and the cut follows the lengths on the device. The tiles of a list lie together, kv head by kv head. What a part holds of
// a (list, kv head), an item, is a partial result where it is not all of it: 2 * part, or 2 * part + 1 where the item's
// first tile is in that part. A cut close to an item's end is moved there.

// The first tile of a list that one of its rows sees.
DEVICE int first_seen(const page_lists &lists, int length) {
  const int lowest_end = CAUSAL ? length - lists.rows + 1 : length;
  return WINDOW > 0 && lowest_end > WINDOW ? (lowest_end - WINDOW) / TILE : 0;
}
// Tiles on the line: LINE_TILES that a workgroup takes at a time are one. A list without tokens has one too: its output
// has to be written.
DEVICE int tiles_of(const page_lists &lists, int length) {
  const int tiles = length > 0 ? (length - 1) / TILE + 1 - first_seen(lists, length) : 0;
  return tiles > LINE_TILES ? (tiles - 1) / LINE_TILES + 1 : 1;
}

// a / b, in a third of the time that a division takes; a is less than 2^32 - 2^17 - b.
DEVICE int quotient(u32 a, u32 b) {
  u32 q = (u32)((float)a * reciprocal_fast((float)b));
  while (q * b > a) q--;
  while (a - q * b >= b) q++;
  return (int)q;
}

constexpr int LINE_KEPT = 4;       // lengths that a lane keeps
constexpr int LINE_NEAR_LEAST = 8; // tiles of parts whose cuts are moved

// The lists are dealt to the lanes of a wave, `share` consecutive ones each.
struct tile_line {
  page_lists lists;
  int share;
  int lengths[LINE_KEPT]; // of this lane's first lists
  int before; // tiles of one kv head before this lane's lists
  int tiles;  // of all items
  int parts, part_tiles, more; // tiles = parts * part_tiles + more; no part is empty
  int near;   // a cut is moved by at most so many tiles: a query and a partial result are worth about one
};

// How many parts: several for a compute unit, LINE_RESIDENT at most, only where each has LINE_LEAST tiles; every part costs
// a query, a meeting of waves and partial results.
DEVICE int parts_of(int tiles, int splits) {
  const int units = splits > LINE_RESIDENT ? (int)((u32)splits / LINE_RESIDENT) : 1;
  const int each = LINE_RESIDENT > 1 ? (int)((u32)tiles / (u32)(units * LINE_LEAST)) : 1;
  const int wanted = each >= LINE_RESIDENT ? splits : units * (each > 1 ? each : 1);
  const int most = splits < tiles ? splits : tiles;
  return wanted < most ? wanted : most;
}

// The sum of `x` over the lanes up to this one.
DEVICE int sum_upto(int x) {
  UNROLL for (int step = 1; step < WAVE; step *= 2) {
    const int earlier = lane_below(x, step);
    x += lane_id() >= step ? earlier : 0;
  }
  return x;
}

DEVICE tile_line measure_line(const page_lists &lists, int splits) {
  const int count = lists.count;
  tile_line line = {lists, (count + WAVE - 1) / WAVE};
  const int first = lane_id() * line.share, end = first + line.share < count ? first + line.share : count;
  UNROLL for (int i = 0; i < LINE_KEPT; i++) line.lengths[i] = first + i < end ? list_length(lists, first + i) : 0;
  int own = 0;
  UNROLL for (int i = 0; i < LINE_KEPT; i++) own += first + i < end ? tiles_of(lists, line.lengths[i]) : 0;
  UNROLL_BY_4 for (int list = first + LINE_KEPT; list < end; list++) own += tiles_of(lists, list_length(lists, list));
  const int upto = sum_upto(own);
  line.before = upto - own;
  line.tiles = lane_value(upto, WAVE - 1) * lists.heads;
  line.parts = parts_of(line.tiles, splits);
  line.part_tiles = quotient((u32)line.tiles, (u32)line.parts);
  line.more = line.tiles - line.part_tiles * line.parts;
  line.near = line.part_tiles < LINE_NEAR_LEAST ? 0 : 1;
  return line;
}

// The cut before a part, where it is before it is moved.
DEVICE int cut_of(const tile_line &line, int part) {
  return part * line.part_tiles + quotient((u32)part * (u32)line.more, (u32)line.parts);
}
// The last part whose cut is at `position` or before it.
DEVICE int last_cut(const tile_line &line, int position) {
  int part = (int)((float)position * (float)line.parts * reciprocal_fast((float)line.tiles));
  part = part < line.parts ? part : line.parts - 1;
  while (part > 0 && cut_of(line, part) > position) part--;
  while (part + 1 < line.parts && cut_of(line, part + 1) <= position) part++;
  return part;
}
// The parts that hold the first and the last tile of the item at tiles [begin, end) of the line.
DEVICE int first_part_of(const tile_line &line, int begin, int end) {
  return last_cut(line, begin + line.near < end - 1 ? begin + line.near : end - 1);
}
DEVICE int last_part_of(const tile_line &line, int begin, int end) {
  const int early = begin + line.near < end - 1 ? begin + line.near : end - 1, late = end - 1 - line.near;
  return last_cut(line, early > late ? early : late);
}

// A tile on the line. `next_length` is asked for long before it is needed.
struct line_place {
  int list, kv_head, tile, tiles; // tile `tile` of `tiles`
  int length, next_length;        // tokens of this list, and of the one behind it
};

DEVICE int length_behind(const page_lists &lists, int list) {
  return list + 1 < lists.count ? uniform(list_length(lists, list + 1)) : 0;
}

// All lanes of a wave take part.
DEVICE line_place place_at(const tile_line &line, int position) {
  const bool one = line.lists.heads == 1; // no divisions
  const int along = one ? position : quotient((u32)position, (u32)line.lists.heads); // in tiles of one kv head
  const int owner = highest_lane(line.before <= along);
  int before = lane_value(line.before, owner);
  line_place at;
  at.list = owner * line.share;
  at.length = lane_value(line.lengths[0], owner);
  if (line.share > 1 && line.share <= LINE_KEPT)
    UNROLL for (int i = 1; i < LINE_KEPT; i++) {
      const int length = lane_value(line.lengths[i], owner), end = before + tiles_of(line.lists, at.length);
      if (at.list != owner * line.share + i - 1 || end > along) continue;
      before = end;
      at.length = length;
      at.list++;
    }
  else
    for (int ahead = line.share > 1 ? line.share : 0; ahead > 0; ahead -= WAVE) { // of the lane's lists: now one a lane
      const int list = at.list + lane_id(), length = lane_id() < ahead && list < line.lists.count ? list_length(line.lists, list) : 0;
      const int own = lane_id() < ahead ? tiles_of(line.lists, length) : 0, upto = before + sum_upto(own), all = lane_value(upto, WAVE - 1);
      if (all > along || ahead <= WAVE) {
        const int found = highest_lane(upto - own <= along && lane_id() < ahead);
        at.list += found;
        at.length = lane_value(length, found);
        before = lane_value(upto - own, found);
        break;
      }
      before = all;
      at.list += WAVE;
    }
  at.tiles = tiles_of(line.lists, at.length);
  const int rest = position - before * line.lists.heads;
  at.kv_head = one ? 0 : quotient((u32)rest, (u32)at.tiles);
  at.tile = rest - at.kv_head * at.tiles;
  at.next_length = length_behind(line.lists, at.list);
  return at;
}

// The first tile of the next kv head or list.
DEVICE void next_item(const page_lists &lists, line_place &at) {
  at.tile = 0;
  if (++at.kv_head < lists.heads) return;
  at.kv_head = 0;
  at.list++;
  at.length = at.next_length;
  at.tiles = tiles_of(lists, at.length);
  at.next_length = length_behind(lists, at.list);
}

// Tiles by which a cut is moved: to the beginning or the end of the item it runs through.
DEVICE int move_of(const tile_line &line, const line_place &at) {
  return at.tile <= line.near ? -at.tile : at.tiles - at.tile <= line.near ? at.tiles - at.tile : 0;
}

// Where the cut at `position` of the line is once it is moved; the tile behind it.
DEVICE int place_cut(const tile_line &line, int position, line_place &at) {
  at = place_at(line, position);
  const int move = move_of(line, at);
  if (move > 0) next_item(line.lists, at);
  if (move < 0) at.tile = 0;
  return position + move;
}
// And without the tile, which the line's end has none of.
DEVICE int end_of_cut(const tile_line &line, int position) {
  return position == line.tiles ? position : position + move_of(line, place_at(line, position));
}
DEVICE int part_begin(const tile_line &line, int part, line_place &at) { return place_cut(line, cut_of(line, part), at); }
DEVICE int part_end(const tile_line &line, int part) { return end_of_cut(line, cut_of(line, part + 1)); }

// Whether the cut before a part runs through an item, at `at`, rather than lying between two or having been moved there.
DEVICE bool cuts_item(const tile_line &line, int part, line_place &at) {
  if (part <= 0 || part >= line.parts) return false;
  at = place_at(line, cut_of(line, part));
  return at.tile > 0 && move_of(line, at) == 0;
}
