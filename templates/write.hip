//@ contract
//@ prelude
//@ solved
// ---- write: quantise rows of K and V and scatter them into the paged cache ---------------------------------
//
// ROW_LANES lanes take one (token, kv head) row, LOAD channels each at a time. A token whose slot is negative, or
// beyond the cache, is skipped: neither cache nor scale is touched. The arithmetic is fp32 in the order docs/spec.md gives, so that
// the stored codes and scales are the same on every target, bit for bit.

DEVICE float row_max(float x) {
  UNROLL for (int mask = 1; mask < ROW_LANES; mask *= 2) x = max_of(x, lane_xor(x, mask));
  return x;
}

// Largest magnitude of LOAD channels; a NaN is ignored.
DEVICE float largest_of(const u8 *from) {
  u32 words[LOAD / QUERY::PER_WORD];
  float x[LOAD], largest = 0;
  load_stream<16>(words, 0, from);
  UNROLL for (int i = 0; i < LOAD / QUERY::PER_WORD; i++) QUERY::unpack(words[i], x + i * QUERY::PER_WORD);
  UNROLL for (int i = 0; i < LOAD; i++) largest = max_of(largest, abs_of(x[i]));
  return largest;
}

// One code: round to nearest even, saturate; every NaN is the format's own.
template <typename Side> DEVICE u32 encode(float x) {
  if (x != x) return Side::NAN_CODE;
  if constexpr (Side::QUANTISED) {
    const float bounded = x > Side::LARGEST ? Side::LARGEST : x < Side::LOWEST ? Side::LOWEST : x;
    x = abs_of(bounded) <= Side::FLUSH ? 0.0f : bounded; // a format without -0 must not round to its code
  }
  const float values[4] = {x, x, x, x};
  return Side::STORED::pack(values) & (Side::STORED::BYTES == 1 ? 0xffu : 0xffffu);
}

// What is stored for a row or group of channels with this largest magnitude.
template <typename Side> DEVICE scale_t row_scale_of(float largest) {
  float scale = max_of(largest, AMAX_FLOOR) / Side::QMAX;
  if constexpr (SCALE_FLOOR > 0) scale = max_of(scale, SCALE_FLOOR);
  return scale_of(largest == 0.0f ? Side::ZERO_ROW : scale);
}

// Stores the channels of one array: K's, V's, or those of a tail. `rows`: the token's from the array's first channel
// on, one a kv head. `scale_of_part`: where the scale of a group of channels lies.
template <typename Side, typename Offset, typename Scale>
DEVICE void write_row(const u8 *rows, int head, int kv_heads, u8 *page, bool active, int lane_in_row, Offset offset,
                      Scale scale_of_part) {
  const u8 *row = rows + (i64)head * Side::WIDTH * QUERY::BYTES;
  const int first_channel = active ? lane_in_row * LOAD : Side::HEAD_DIM;
  constexpr int STEP = ROW_LANES * LOAD; // a lane's next channels
  float stored = 1.0f;
  if constexpr (Side::WORKED_OUT && Side::PART == Side::HEAD_DIM) { // one scale for the row, or for those of all heads
    float largest = 0;
    for (int channel = first_channel; channel < Side::HEAD_DIM; channel += STEP)
      for (int h = ALL_HEADS ? 0 : head; h < (ALL_HEADS ? kv_heads : head + 1); h++)
        largest = max_of(largest, largest_of(rows + ((i64)h * Side::WIDTH + channel) * QUERY::BYTES));
    const scale_t rounded = row_scale_of<Side>(row_max(largest));
    if (active && lane_in_row == 0 && (!ALL_HEADS || head == 0)) *scale_of_part(0) = rounded;
    stored = scale_value(rounded);
  } else if constexpr (Side::SCALED && !Side::WORKED_OUT) {
    if (active) stored = scale_value(*scale_of_part(0));
  }
  for (int channel = first_channel; channel < Side::HEAD_DIM; channel += STEP) {
    if constexpr (Side::WORKED_OUT && Side::PART < Side::HEAD_DIM) { // one for a group of channels
      float largest = 0;
      for (int i = 0; i < Side::PART; i += LOAD)
        largest = max_of(largest, largest_of(row + (channel / Side::PART * Side::PART + i) * QUERY::BYTES));
      const scale_t rounded = row_scale_of<Side>(largest);
      if (channel % Side::PART == 0) *scale_of_part(channel / Side::PART) = rounded;
      stored = scale_value(rounded);
    }
    u32 words[LOAD / QUERY::PER_WORD];
    float x[LOAD];
    load_stream<16>(words, 0, row + channel * QUERY::BYTES);
    UNROLL for (int i = 0; i < LOAD / QUERY::PER_WORD; i++) QUERY::unpack(words[i], x + i * QUERY::PER_WORD);
    UNROLL for (int i = 0; i < LOAD; i++) {
      float code = x[i];
      if constexpr (Side::SCALED) code = stored == 0.0f ? x[i] == x[i] ? 0.0f : x[i] : x[i] / stored;
      const u32 bits = Side::COPIED ? words[i / 2] >> i % 2 * 16 : encode<Side>(code); // COPIED: even a NaN keeps its bits
      u8 *to = page + offset((u32)(channel + i)) * Side::STORED::BYTES;
      if constexpr (Side::STORED::BYTES == 1)
        *to = (u8)bits;
      else
        *(u16 *)to = (u16)bits;
    }
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
  const bool active = place >= 0 && place / PAGE < pages; // beyond the cache an offset could wrap into it
  const i64 page = active ? place / PAGE : 0;
  const u32 slot = active ? (u32)(place - page * PAGE) : 0;
//@ row_scales
//@ write_rows
}
