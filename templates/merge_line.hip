// ---- merge: the partial results of every (sequence, kv head) that the line's parts cut ---------------------
//
// Workspace, fp32: [2 * part or 2 * part + 1, query, PARTIAL_WORDS]: the output relative to 2^highest, then highest,
// lowest, and the sum of weights relative to 2^lowest. A part without visible tokens has sum 0 and maxima NEVER.
//
// A unit is an item, where they are fewer than the parts, else the cut behind a part. As many workgroups as `splits` are
// dealt to the units.

KERNEL_REGISTERS(MERGE_REGISTERS) void heddle_merge(
//@ arguments merge
) {
  let_next_start();
//@ page_lists
  const tile_line line = measure_line(source, splits);
  const bool few = source.count * source.heads <= line.parts;
  const int units = few ? source.count * source.heads : line.parts;
  const int shares = few ? (int)((u32)splits / (u32)units) : 1;
  const int unit = few ? (int)((u32)workgroup_x() / (u32)shares) : workgroup_x(), share = workgroup_x() - unit * shares;

  int item = 0, first_part = 0, last_part = 0;
  if (unit < units && few) {
    item = unit;
    const int list = source.heads == 1 ? unit : (int)((u32)unit / (u32)source.heads), kv_head = unit - list * source.heads;
    const int owner = line.share == 1 ? list : list / line.share;
    int before = lane_value(line.before, owner), length = lane_value(line.length, owner);
    for (int earlier = owner * line.share; earlier < list;) {
      before += tiles_of(length);
      length = list_length(source, ++earlier);
    }
    const int tiles = tiles_of(length), begin = before * source.heads + kv_head * tiles;
    first_part = first_part_of(line, begin, begin + tiles);
    last_part = last_part_of(line, begin, begin + tiles);
  } else if (unit + 1 < units) {
    const int cut = cut_of(line, unit + 1);
    const line_place at = place_at(line, cut);
    const int begin = cut - at.tile;
    item = at.list * source.heads + at.kv_head;
    first_part = first_part_of(line, begin, begin + at.tiles);
    // an item belongs to the first of the cuts it runs across
    last_part = move_of(line, at) != 0 || at.tile == 0 || first_part != unit ? first_part : last_part_of(line, begin, begin + at.tiles);
  }
  if (first_part == last_part) { // decode has written the output
    if (workgroup_x() == 0) wait_for_previous(); // the next kernel relies on this one for decode to have ended
    return;
  }

  // Rows of a wave's lanes share the parts out, as many as leave it one round.
  constexpr int QUADS = HEADS * HEAD_DIM_V / 4;
  const int meeting = last_part - first_part + 1;
  int lane_rows = 1;
  while (lane_rows < WAVE && lane_rows < meeting && QUADS * lane_rows * 2 <= MERGE_THREADS * shares) lane_rows *= 2;
  const int quads = WAVE / lane_rows, quad = lane_id() % quads, own_row = lane_id() / quads;
//@ value_scale
  wait_for_previous();

  for (int group = share * (MERGE_THREADS / WAVE) + wave_id(); group * quads < QUADS; group += shares * (MERGE_THREADS / WAVE)) {
    const bool inside = group * quads + quad < QUADS;
    const int place = inside ? (group * quads + quad) * 4 : 0, column = place / HEAD_DIM_V, channel = place % HEAD_DIM_V;
    const float *partials = (const float *)workspace + column * PARTIAL_WORDS;
    float highest = NEVER, lowest = NEVER, total = 0, x[4] = {0, 0, 0, 0};
    const auto add = [&](const float *output, float new_part, float base, float sum) {
      const float new_highest = max_of(highest, new_part), new_lowest = max_of(lowest, base);
      const float keep = exp2_fast(highest - new_highest), weight = exp2_fast(new_part - new_highest);
      UNROLL for (int i = 0; i < 4; i++) x[i] = fused(output[i], weight, x[i] * keep);
      total = fused(sum, exp2_fast(base - new_lowest), total * exp2_fast(lowest - new_lowest));
      highest = new_highest;
      lowest = new_lowest;
    };
    UNROLL_BY_4 for (int p = first_part + own_row; p <= last_part; p += lane_rows) {
      const float *partial = partials + (i64)(2 * p + (p == first_part ? 1 : 0)) * (HEADS * PARTIAL_WORDS);
      float output[4], numbers[4];
      load_partial(output, partial + channel);
      load_partial(numbers, partial + HEAD_DIM_V);
      add(output, numbers[0], numbers[1], numbers[2]);
    }
    for (int mask = quads; mask < WAVE; mask *= 2) {
      float output[4];
      UNROLL for (int i = 0; i < 4; i++) output[i] = lane_xor(x[i], mask);
      add(output, lane_xor(highest, mask), lane_xor(lowest, mask), lane_xor(total, mask));
    }
    if (!inside || own_row > 0) continue;
    const i64 query = (i64)item * HEADS + column;
    const float root = exp2_fast(0.5f * (highest - lowest)); // the power itself may be too small for fp32
    const float inverse = total > 0 || total != total ? root / total : 0.0f;
    UNROLL for (int i = 0; i < 4; i++) store_output(out, query * HEAD_DIM_V + channel + i, x[i] * root * inverse * value_scale);
    if (channel == 0) {
//@ store_lse line_merge
    }
  }
}
