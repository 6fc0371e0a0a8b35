// ---- merge: the partial results of every (list, kv head) that the line's parts cut -------------------------
//
// Workspace, fp32: [2 * part or 2 * part + 1, query, PARTIAL_WORDS]: the output relative to 2^highest, then highest,
// lowest, and the sum of weights relative to 2^lowest; then the further highests where groups of channels or the
// tail have their own. A part without visible tokens has sum 0 and maxima NEVER. A query is row * HEADS + head.
//
// As many workgroups as `splits` are dealt to the parts. Those of a part take the item that its first cut runs through, else
// the item that its second one does, and share its outputs with those of the other parts that do: as many workgroups for an
// item as it has partial results, or one less.

KERNEL_REGISTERS(MERGE_THREADS, MERGE_REGISTERS) void heddle_merge(
//@ arguments merge
) {
  let_next_start();
//@ query_rows
//@ page_lists
  const tile_line line = measure_line(source, splits);
  const int helpers = quotient((u32)splits, (u32)line.parts); // workgroups of a part
  const int own = quotient((u32)workgroup_x(), (u32)helpers);
  int list = 0, list_head = 0, first_part = 0, last_part = 0, share = 0, shares = 1;
  if (own < line.parts) {
    line_place at;
    const int cut = cuts_item(line, own, at) ? own : own + 1;
    if (cut == own || cuts_item(line, cut, at)) {
      const int begin = cut_of(line, cut) - at.tile;
      list = at.list;
      list_head = at.kv_head;
      first_part = first_part_of(line, begin, begin + at.tiles);
      last_part = last_part_of(line, begin, begin + at.tiles);
      const int skipped = cuts_item(line, first_part, at) ? 1 : 0; // the first part has another item to take
      share = ((own - first_part - skipped) * helpers + workgroup_x() - own * helpers) * MERGE_SHARES + workgroup_y();
      shares = (last_part - first_part + 1 - skipped) * helpers * MERGE_SHARES;
    }
  }
  if (first_part == last_part) { // decode has written the output
    if (workgroup_x() == 0) wait_for_previous(); // the next kernel relies on this one for decode to have ended
    return;
  }
//@ item

  // Rows of a wave's lanes share the parts out, as many as leave it one round.
  constexpr int BATCH = 5; // of partial results on their way at a time
  const int all_quads = query_rows * HEADS * (HEAD_DIM_V / 4), meeting = last_part - first_part + 1;
  int lane_rows = 1;
  while (lane_rows < WAVE && lane_rows < meeting && all_quads * lane_rows * 2 <= MERGE_THREADS * shares) lane_rows *= 2;
  const int quads = WAVE / lane_rows, quad = lane_id() % quads, own_row = lane_id() / quads;
  float scale = 1;
  const auto begin_for_good = [&] {
    wait_for_previous();
//@ value_scale
    scale = value_scale;
  };
  // Where kernels start early: the first time without partial results, while decode runs, since the instructions have to
  // come from memory too.
  u32 rehearsing = STARTS_EARLY;
  if constexpr (STARTS_EARLY)
    pin(rehearsing);
  else
    begin_for_good();
  int group = share * (MERGE_THREADS / WAVE) + wave_id();
  while (group * quads < all_quads) {
    const int last = rehearsing ? -1 : last_part;
    const bool inside = group * quads + quad < all_quads;
    const int place = inside ? (group * quads + quad) * 4 : 0, column = place / HEAD_DIM_V, at = place % HEAD_DIM_V;
    const u32 channel = (u32)partial_channel(at);
    const int top = top_word(channel);
    const float *partials = (const float *)workspace + column * PARTIAL_WORDS;
    float highest = NEVER, lowest = NEVER, total = 0, x[4] = {0, 0, 0, 0};
    int first = first_part + own_row;
    do {
      float output[BATCH][4], numbers[BATCH][4];
      UNROLL for (int n = 0; n < BATCH; n++) {
        const int p = first + n * lane_rows;
        const float *partial = partials + (i64)(2 * p + (p == first_part ? 1 : 0)) * (ROWS * HEADS * PARTIAL_WORDS);
        if (p <= last) {
          load_partial(output[n], partial + at);
          load_partial(numbers[n], partial + HEAD_DIM_V);
          if (top > 0) numbers[n][0] = partial[HEAD_DIM_V + top];
        } else {
          UNROLL for (int i = 0; i < 4; i++) output[n][i] = 0;
          numbers[n][0] = numbers[n][1] = NEVER;
          numbers[n][2] = 0;
        }
      }
      float new_highest = highest, new_lowest = lowest;
      UNROLL for (int n = 0; n < BATCH; n++) {
        new_highest = max_of(new_highest, numbers[n][0]);
        new_lowest = max_of(new_lowest, numbers[n][1]);
      }
      const float keep = exp2_fast(highest - new_highest);
      UNROLL for (int i = 0; i < 4; i++) x[i] *= keep;
      total *= exp2_fast(lowest - new_lowest);
      UNROLL for (int n = 0; n < BATCH; n++) {
        const float weight = exp2_fast(numbers[n][0] - new_highest);
        UNROLL for (int i = 0; i < 4; i++) x[i] = fused(output[n][i], weight, x[i]);
        total = fused(numbers[n][2], exp2_fast(numbers[n][1] - new_lowest), total);
      }
      highest = new_highest;
      lowest = new_lowest;
      first += BATCH * lane_rows;
    } while (first <= last);
    for (int mask = quads; mask < WAVE; mask *= 2) {
      const float their_highest = lane_xor(highest, mask), their_lowest = lane_xor(lowest, mask);
      const float new_highest = max_of(highest, their_highest), new_lowest = max_of(lowest, their_lowest);
      const float mine = exp2_fast(highest - new_highest), theirs = exp2_fast(their_highest - new_highest);
      UNROLL for (int i = 0; i < 4; i++) x[i] = fused(lane_xor(x[i], mask), theirs, x[i] * mine);
      total = fused(lane_xor(total, mask), exp2_fast(their_lowest - new_lowest), total * exp2_fast(lowest - new_lowest));
      highest = new_highest;
      lowest = new_lowest;
    }
    if (rehearsing) {
      begin_for_good();
      rehearsing = 0;
      continue;
    }
    if (inside && own_row == 0) {
      const i64 query = query_of(sequence, kv_head, kv_heads, query_rows, column);
//@ sink line_merge
      const float root = exp2_fast(0.5f * (highest - lowest)); // the power itself may be too small for fp32
      const float inverse = total > 0 || total != total ? root * reciprocal_fast(total) : 0.0f;
      UNROLL for (int i = 0; i < 4; i++) store_output(out, query * HEAD_DIM_V + partial_channel(at + i), x[i] * root * inverse * scale_behind(channel, scale));
      if (at == 0) {
//@ store_lse line_merge
      }
    }
    group += shares * (MERGE_THREADS / WAVE);
  }
}
