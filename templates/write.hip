//@ contract
//@ prelude
//@ solved
// ---- write: quantise rows of K and V and scatter them into the paged cache ---------------------------------
//
// ROW_LANES lanes take one (token, kv head) row, LOAD channels each. A token whose slot is negative is skipped:
// neither cache nor scale is touched. The arithmetic is fp32 in the order docs/spec.md gives, so that the stored
// codes and scales are the same on every target, bit for bit.

DEVICE float row_max(float x) {
  UNROLL for (int mask = 1; mask < ROW_LANES; mask *= 2) x = max_of(x, lane_xor(x, mask));
  return x;
}

// One code: round to nearest even, saturate; every NaN is the format's own.
DEVICE u32 encode(float x) {
  if (x != x) return NAN_CODE;
  if constexpr (QUANTISED) {
    const float bounded = x > CODE_MAX ? CODE_MAX : x < -CODE_MAX ? -CODE_MAX : x;
    x = abs_of(bounded) <= CODE_FLUSH ? 0.0f : bounded; // a format without -0 must not round to its code
  }
  const float values[4] = {x, x, x, x};
  return KV::pack(values) & (KV::BYTES == 1 ? 0xffu : 0xffffu);
}

template <typename Offset>
DEVICE void write_row(const u8 *from, u8 *page, scale_t *scale, bool active, int lane_in_row, int head_dim,
                      Offset offset) {
  float x[LOAD];
  u32 words[LOAD / QUERY::PER_WORD];
  const int channel = lane_in_row * LOAD;
  const bool inside = active && channel < head_dim;
  UNROLL for (int i = 0; i < LOAD; i++) x[i] = 0;
  if (inside) {
    load_stream<16>(words, 0, from + channel * QUERY::BYTES);
    UNROLL for (int i = 0; i < LOAD / QUERY::PER_WORD; i++) QUERY::unpack(words[i], x + i * QUERY::PER_WORD);
  }
  float stored = 1.0f;
  if constexpr (ROW_SCALED) {
    float largest = 0;
    UNROLL for (int i = 0; i < LOAD; i++) largest = max_of(largest, abs_of(x[i])); // a NaN is ignored
    largest = row_max(largest);
    const scale_t rounded = scale_of(largest == 0.0f ? ZERO_ROW : max_of(largest, AMAX_FLOOR) / QMAX);
    if (active && lane_in_row == 0) *scale = rounded;
    stored = scale_value(rounded);
  } else if constexpr (SCALED) {
    stored = scale_value(*scale);
  }
  if (!inside) return;
  UNROLL for (int i = 0; i < LOAD; i++) {
    float code = x[i];
    if constexpr (SCALED) code = stored == 0.0f ? x[i] == x[i] ? 0.0f : x[i] : x[i] / stored;
    const u32 bits = COPIED ? words[i / 2] >> i % 2 * 16 : encode(code); // COPIED: even a NaN keeps its bits
    u8 *to = page + offset((u32)(channel + i)) * KV::BYTES;
    if constexpr (KV::BYTES == 1)
      *to = (u8)bits;
    else
      *(u16 *)to = (u16)bits;
  }
}

KERNEL(THREADS) void heddle_write(
//@ arguments write
) {
  const i64 row = (i64)workgroup_x() * (THREADS / ROW_LANES) + thread_id() / ROW_LANES;
  const int lane_in_row = thread_id() % ROW_LANES;
  const bool exists = row < (i64)tokens * kv_heads;
  const i64 token = exists ? row / kv_heads : 0;
  const int head = exists ? (int)(row - token * kv_heads) : 0;
  const i64 place = exists ? slot_mapping[token] : -1;
  const bool active = place >= 0;
  const i64 page = active ? place / PAGE : 0;
  const u32 slot = active ? (u32)(place - page * PAGE) : 0;
  const i64 k_heads_stride = kv_heads * k_stride_h, v_heads_stride = kv_heads * v_stride_h;
  u8 *k_page = (u8 *)k_cache + (page * k_stride_b + head * k_stride_h) * KV::BYTES;
  u8 *v_page = (u8 *)v_cache + (page * v_stride_b + head * v_stride_h) * KV::BYTES;
//@ row_scales
  write_row((const u8 *)k + row * HEAD_DIM_QK * QUERY::BYTES, k_page, k_row_scale, active, lane_in_row, HEAD_DIM_QK,
            [&](u32 channel) { return k_offset(slot, channel, k_heads_stride); });
  write_row((const u8 *)v + row * HEAD_DIM_V * QUERY::BYTES, v_page, v_row_scale, active, lane_in_row, HEAD_DIM_V,
            [&](u32 channel) { return v_offset(slot, channel, v_heads_stride); });
}
