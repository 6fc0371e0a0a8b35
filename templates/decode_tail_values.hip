// ---- V's channels in the tail, as their products take them: without a scale, in a part of their own ----------

struct tail_values {
  typedef TAIL stored;
  typedef TAIL_OPERAND operand;
  typedef tail_value_fragment fragment;
  typedef tail_weight_fragment weights;
  static constexpr int CHANNELS = HEAD_DIM_V - V_CODED, TILES = TAIL_TILES, FIRST_TILE = VALUE_TILES, FIRST_PART = V_PARTS;
  static constexpr int PART_TILES = TAIL_TILES, TOKENS = TAIL_TOKENS, ACROSS = TAIL_ACROSS, WORDS = TAIL_V_WORDS;
  static constexpr int PARTS = TAIL_P_PARTS, FRAGMENTS = TAIL_P_FRAGMENTS;
  static constexpr bool WHOLE = TAIL_WHOLE, SCALED = false;
  static constexpr i64 AT = TAIL_AT;
  DEVICE auto offset(u32 slot, u32 channel, i64 heads_stride) { return tail_offset(slot, channel, heads_stride); }
};
