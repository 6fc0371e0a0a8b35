//@ copies prelude
// ---- ring: every wave keeps tiles on their way from memory in a part of LDS of its own ------------------------
//
// Copies pass by the registers, a piece of 16 bytes a lane, so that lanes request whole lines of memory. A stage of
// the ring is a tile: pieces of K and V as they lie in the pages, then a scale a lane. No barrier: a wave counts its
// own copies, and waits for those of the tile it takes. Fragments read their pieces from there.

// One operand's pieces: TOKENS tokens of one channel, or one token's CHANNELS channels. Those of a stretch of the tile
// (tokens of one page) have consecutive numbers in the order of memory. Lanes that LDS serves together would want the
// same banks in places: bits TURN_0 to TURN_3 of a number (0: none), added to its lowest, keep them apart, and lines of memory
// whole.
template <int TOKENS, int CHANNELS, int HEAD_DIM, bool TOKENS_FIRST, int TURN_0, int TURN_1, int TURN_2, int TURN_3, int PAD>
struct piece_order {
  static constexpr int ROWS = STRETCH / TOKENS, COLUMNS = HEAD_DIM / CHANNELS, COUNT = ROWS * COLUMNS;
  static constexpr int COPIES = COUNT / WAVE; // of a stretch
  static constexpr int STEP = COUNT + PAD;    // from one stretch to the next, in LDS

  // What copy n of a stretch leaves to its instruction, of the way from the stretch's first piece in LDS.
  DEVICE constexpr int further(int n) { return n % (MOST_FURTHER / (WAVE * PIECE) + 1) * WAVE * PIECE; }

  // Where a piece lies in its stage, and which lies there: each undoes the other.
  DEVICE u32 turned(u32 piece) {
    u32 low = 0;
    if constexpr (TURN_0 > 0) low |= piece >> TURN_0 & 1;
    if constexpr (TURN_1 > 0) low |= (piece >> TURN_1 & 1) << 1;
    if constexpr (TURN_2 > 0) low |= (piece >> TURN_2 & 1) << 2;
    if constexpr (TURN_3 > 0) low |= (piece >> TURN_3 & 1) << 3;
    return piece ^ low;
  }
  DEVICE u32 place_of(u32 token, u32 channel) {
    const u32 row = token % STRETCH / TOKENS, column = channel / CHANNELS;
    return token / STRETCH * STEP + turned(TOKENS_FIRST ? column * ROWS + row : row * COLUMNS + column);
  }
  DEVICE u32 token_of(u32 piece) { return (TOKENS_FIRST ? piece % ROWS : piece % COUNT / COLUMNS) * TOKENS; } // of its stretch
  DEVICE u32 channel_of(u32 piece) { return (TOKENS_FIRST ? piece % COUNT / ROWS : piece % COLUMNS) * CHANNELS; }
};
//@ orders

struct tile_stretches {
  int page[STRETCHES]; // of each stretch of the tile; the same in all lanes
};

DEVICE void find_pages(tile_stretches &stretches, const page_id *table, int tile, token_span seen) {
  UNROLL for (int n = 0; n < STRETCHES; n++) stretches.page[n] = (int)table[page_place(tile * TILE + n * STRETCH, seen)];
}

// The slot in its page of a stretch's first token.
DEVICE u32 first_slot(int tile, int stretch) { return (u32)(tile * TILE + stretch * STRETCH) % PAGE; }

// Bytes from a stretch's first slot to the pieces that this lane copies of it.
struct lane_places {
  decltype(k_offset(0, 0, 0)) k[k_order::COPIES];
  decltype(v_offset(0, 0, 0)) v[v_order::COPIES];
};

// Or the compiler would have a 64-bit address for each.
DEVICE void keep_place(u32 &place) { pin(place); }
DEVICE void keep_place(i64 &) {}

DEVICE lane_places find_places(i64 k_heads_stride, i64 v_heads_stride, int lane) {
  lane_places places;
  UNROLL for (int n = 0; n < k_order::COPIES; n++) {
    const u32 piece = k_order::turned((u32)(n * WAVE + lane));
    places.k[n] = k_offset(k_order::token_of(piece), k_order::channel_of(piece), k_heads_stride) * KV_K::BYTES - k_order::further(n);
    keep_place(places.k[n]);
  }
  UNROLL for (int n = 0; n < v_order::COPIES; n++) {
    const u32 piece = v_order::turned((u32)(n * WAVE + lane));
    places.v[n] = v_offset(v_order::token_of(piece), v_order::channel_of(piece), v_heads_stride) * KV_V::BYTES - v_order::further(n);
    keep_place(places.v[n]);
  }
  return places;
}

// One stretch of an operand into its part of a stage.
template <typename Order, int N = 0, typename Place>
DEVICE void copy_stretch(u32 part, const u8 *slots, const Place *places, int lane) {
  if constexpr (N < Order::COPIES) {
    copy_piece<Order::further(N)>(part + (u32)(N * WAVE * PIECE - Order::further(N)), slots, places[N], lane);
    copy_stretch<Order, N + 1>(part, slots, places, lane);
  }
}

DEVICE void request_k(u32 stage, const tile_stretches &stretches, const lane_places &places, const u8 *k_head, i64 stride_b,
                      i64 heads_stride, int tile, int lane) {
  UNROLL for (int n = 0; n < STRETCHES; n++) {
    const i64 slots = (i64)((u64)(u32)stretches.page[n] * (u64)stride_b) + k_offset(first_slot(tile, n), 0, heads_stride);
    copy_stretch<k_order>(stage + (u32)(n * k_order::STEP * PIECE), k_head + slots * KV_K::BYTES, places.k, lane);
  }
}

DEVICE void request_v(u32 stage, const tile_stretches &stretches, const lane_places &places, const u8 *v_head, i64 stride_b,
                      i64 heads_stride, int tile, int lane) {
  UNROLL for (int n = 0; n < STRETCHES; n++) {
    const i64 slots = (i64)((u64)(u32)stretches.page[n] * (u64)stride_b) + v_offset(first_slot(tile, n), 0, heads_stride);
    copy_stretch<v_order>(stage + (u32)((STRETCHES * k_order::STEP + n * v_order::STEP) * PIECE), v_head + slots * KV_V::BYTES, places.v,
                          lane);
  }
}

DEVICE void take_k(tile_words &words, const u32x4 *stage, int index, int group) {
  const u32 first = (u32)(index / RUN * LIST + index % RUN);
  UNROLL for (int t = 0; t < SCORE_TILES; t++)
    UNROLL for (int i = 0; i < K_LIST; i += K_LOAD) {
      const u32 channel = k_exists(i, group) ? listed_channel(i, group) : 0u;
      const u8 *piece = (const u8 *)(stage + k_order::place_of(first + (u32)(t * RUN), channel));
      load_stream<K_LOAD * KV_K::BYTES>(words.k[0][t], i * KV_K::BYTES, piece + channel * KV_K::BYTES % PIECE);
    }
}

DEVICE void take_v(tile_words &words, const u32x4 *stage, int index, int group) {
  UNROLL for (int e = 0; e < LIST; e += V_TOKENS)
    UNROLL for (int m = 0; m < VALUE_TILES; m += V_CHANNELS) {
      const int place = V_CHANNELS == 1 ? (m * LIST + e) : (e * VALUE_TILES + m);
      const u32 token = (u32)(group * LIST + e), channel = V_WHOLE || channel_of(m, index) < V_CODED ? channel_of(m, index) : 0u;
      const u8 *piece = (const u8 *)(stage + STRETCHES * k_order::STEP + v_order::place_of(token, channel));
      load_stream<V_TOKENS * V_CHANNELS * KV_V::BYTES>(words.v, place * KV_V::BYTES,
                                                       piece + (V_CHANNELS == 1 ? token : channel) * KV_V::BYTES % PIECE);
    }
}

// Until the tile has landed that `ahead` later ones were requested behind, but for the last LEFT copies of it.
template <int LEFT, int AHEAD = STAGES - 1> DEVICE void wait_for_tile(int ahead) {
  if constexpr (AHEAD == 0)
    wait_for_copies<LEFT>();
  else if (ahead == AHEAD)
    wait_for_copies<AHEAD * COPIES + LEFT>();
  else
    wait_for_tile<LEFT, AHEAD - 1>(ahead);
}

//@ scales
