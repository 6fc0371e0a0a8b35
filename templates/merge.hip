// ---- merge: partial outputs of all splits to the result ----------------------------------------------------
//
// Workspace, fp32: [sequence, kv head, split, query, PARTIAL_WORDS]: the output relative to 2^highest, then highest,
// lowest, and the sum of weights relative to 2^lowest; then the further highests where groups of channels or the tail
// have their own. An empty split has sum 0 and maxima NEVER. A query is row * HEADS + head.
//
// A workgroup takes MERGE_QUADS * 4 consecutive outputs of one item; its MERGE_LANES rows of threads share the splits
// out between them, so that all loads are in flight at once, and meet in LDS.

KERNEL(MERGE_THREADS) void heddle_merge(
//@ arguments merge
) {
  const int quad = thread_id() % MERGE_QUADS, lane = thread_id() / MERGE_QUADS;
  const int place = (workgroup_z() * MERGE_QUADS + quad) * 4;
//@ rows
  const bool inside = place < rows * HEADS * HEAD_DIM_V;
  const int column = inside ? place / HEAD_DIM_V : 0, channel = inside ? place % HEAD_DIM_V : 0;
  const int kv_head = workgroup_y(), top_place = HEAD_DIM_V + top_word((u32)channel);
  const i64 item = (i64)workgroup_x() * kv_heads + kv_head;
  const float *row = (const float *)workspace + (item * splits * (ROWS * HEADS) + column) * PARTIAL_WORDS;
  constexpr int STEP = ROWS * HEADS * PARTIAL_WORDS;
  SHARED float shared_row[MERGE_LANES][MERGE_QUADS][3];
  SHARED float shared_part[MERGE_LANES][MERGE_QUADS][4];

  float highest = NEVER, lowest = NEVER, total = 0, x[4] = {0, 0, 0, 0};
  UNROLL_BY_4 for (int s = lane; s < splits; s += MERGE_LANES) {
    const float *part = row + (i64)s * STEP;
    const float new_highest = max_of(highest, part[top_place]), new_lowest = max_of(lowest, part[HEAD_DIM_V + 1]);
    const float keep = exp2_fast(highest - new_highest), weight = exp2_fast(part[top_place] - new_highest);
    UNROLL for (int i = 0; i < 4; i++) x[i] = fused(part[channel + i], weight, x[i] * keep);
    total = fused(part[HEAD_DIM_V + 2], exp2_fast(part[HEAD_DIM_V + 1] - new_lowest), total * exp2_fast(lowest - new_lowest));
    highest = new_highest;
    lowest = new_lowest;
  }
  shared_row[lane][quad][0] = highest;
  shared_row[lane][quad][1] = lowest;
  shared_row[lane][quad][2] = total;
  UNROLL for (int i = 0; i < 4; i++) shared_part[lane][quad][i] = x[i];
  barrier();
  if (!inside || lane >= 4) return;

  // Four rows of threads are left, one for each output of a quad.
  float sum = 0, weights = 0, top = NEVER, base = NEVER;
  UNROLL for (int s = 0; s < MERGE_LANES; s++) {
    top = max_of(top, shared_row[s][quad][0]);
    base = max_of(base, shared_row[s][quad][1]);
  }
  UNROLL for (int s = 0; s < MERGE_LANES; s++) {
    sum = fused(shared_part[s][quad][lane], exp2_fast(shared_row[s][quad][0] - top), sum);
    weights = fused(shared_row[s][quad][2], exp2_fast(shared_row[s][quad][1] - base), weights);
  }
  const i64 query = query_of(workgroup_x(), kv_head, kv_heads, rows, column);
//@ sink merge
  const float root = exp2_fast(0.5f * (top - base)); // the power itself may be too small for fp32
  const float inverse = weights > 0 || weights != weights ? root / weights : 0.0f;
//@ value_scale
  store_output(out, query * HEAD_DIM_V + channel + lane, sum * root * inverse * scale_behind((u32)channel, value_scale));
  if (channel + lane == 0) {
//@ store_lse merge
  }
}
