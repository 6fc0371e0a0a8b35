//@ contract
//@ prelude
//@ solved
// ---- decode: query rows of a sequence over a paged cache, split over its tokens ----------------------------
//
//@ work comment
// Its waves take tiles in turn, each with its own running maximum, sum and output, and meet
// once at the end through LDS. Tokens are the rows of the score product and channels the rows of the value product;
// queries (row * HEADS + head) are the columns of both, so the probabilities stay in the lane that needs them: a lane
// of group q owns tokens q*LIST ... q*LIST + LIST - 1 of a tile.
//
// Scores carry log2(e) and log2(V scale): exp2 of them never exceeds 2^P_SHIFT whatever the scales are.

constexpr float NEVER = -3.0e38f; // below every score, and finite: NEVER - NEVER is 0, not NaN

#define MASKED float_of(0xff800000u) // -infinity: exp2 of it is 0

struct tile_pages {
  int k[K_IDS]; // pages of the K rows this lane loads
  int own[OWN_IDS]; // pages of the tokens this lane's group owns
  int scale[SCALE_WORDS]; // pages of the tokens whose scales this lane loads
};

struct tile_words {
  u32 k[K_BUFFERS][SCORE_TILES][K_WORDS]; // pieces of a token's channels, taking turns
  u32 v[VALUE_TILES * V_WORDS];
};

// One token a lane: the lanes of a group hold the scales of its list between them, one for each group of channels.
struct tile_scales {
  held_scale_t k[K_PARTS][SCALE_WORDS];
  held_scale_t v[V_PARTS][SCALE_WORDS];
};

// Tokens [first, end) of a sequence: those that some query row sees, or one row.
struct token_span {
  int first, end;
};

// The channels of a lane of `group`, in the order its fragments hold them: chunks of K_CHUNK, dealt to the groups in turn.
DEVICE u32 listed_channel(int i, int group) { return (u32)((i / K_CHUNK * GROUPS + group) * K_CHUNK + i % K_CHUNK); }

// Whether the head has that channel: K is filled up to whole products with zeros.
DEVICE bool k_exists(int i, int group) {
  return (i / K_CHUNK + 1) * GROUPS * K_CHUNK <= K_CHANNELS || listed_channel(i, group) < K_CHANNELS;
}

// The channel of row `index` in channel tile m of the value product, whose loads run across ACROSS tiles.
template <int ACROSS = V_CHANNELS> DEVICE u32 channel_of(int m, int index) {
  return (u32)((m / ACROSS * INDICES + index) * ACROSS + m % ACROSS);
}

// V's channels that are stored as codes: how they lie, are loaded and become operands. Rows past CHANNELS are not stored.
struct coded_values {
  typedef KV_V stored;
  typedef V_OPERAND operand;
  typedef value_fragment fragment;
  typedef weight_fragment weights;
  static constexpr int CHANNELS = V_CODED, TILES = VALUE_TILES, FIRST_TILE = 0, FIRST_PART = 0, PART_TILES = ::PART_TILES;
  static constexpr int TOKENS = V_TOKENS, ACROSS = V_CHANNELS, WORDS = V_WORDS, PARTS = P_PARTS, FRAGMENTS = P_FRAGMENTS;
  static constexpr bool WHOLE = V_WHOLE, SCALED = V_SCALED;
  static constexpr i64 AT = 0; // bytes from the start of a page
  DEVICE auto offset(u32 slot, u32 channel, i64 heads_stride) { return v_offset(slot, channel, heads_stride); }
};

// The token of the group's list whose scale the lane of `index` holds in word n.
DEVICE int scaled_token(int n, int index) { return n * INDICES + index % LIST; }

DEVICE float group_max(float x) {
  UNROLL for (int mask = 1; mask < GROUPS; mask *= 2) x = max_of(x, lane_xor(x, mask * GROUP_STRIDE));
  return x;
}
DEVICE float group_sum(float x) {
  UNROLL for (int mask = 1; mask < GROUPS; mask *= 2) x += lane_xor(x, mask * GROUP_STRIDE);
  return x;
}

// The token's place in the list of pages; tokens that no row sees are led to the nearest one that is seen.
DEVICE u32 page_place(int token, token_span seen) {
  token = token < seen.end ? token : seen.end - 1;
  if constexpr (WINDOW > 0) token = token > seen.first ? token : seen.first;
  return (u32)token / PAGE;
}

DEVICE void load_pages(tile_pages &ids, const page_id *table, int tile, token_span seen, int index, int group) {
  const int k_first = tile * TILE + index / RUN * LIST + (K_EXACT ? index % RUN : 0);
  UNROLL for (int a = 0; a < K_IDS; a++) ids.k[a] = (int)table[page_place(k_first + a * K_ID_STEP, seen)];
  const int own_first = tile * TILE + group * LIST;
  UNROLL for (int a = 0; a < OWN_IDS; a++) ids.own[a] = (int)table[page_place(own_first + a * OWN_RUN, seen)];
  if constexpr (K_SCALED || V_SCALED)
    UNROLL for (int n = 0; n < SCALE_WORDS; n++)
      ids.scale[n] = (int)table[page_place(own_first + scaled_token(n, index), seen)];
}

DEVICE void load_k(tile_words &words, const tile_pages &ids, const u8 *k_head, i64 stride_b, i64 heads_stride, int tile,
                   int piece, int index, int group) {
  const int first = tile * TILE + index / RUN * LIST + index % RUN;
  UNROLL for (int t = 0; t < SCORE_TILES; t++) {
    const u32 slot = (u32)(first + t * RUN) % PAGE;
    const u8 *page = k_head + (i64)ids.k[K_EXACT ? t : t * RUN / OWN_RUN] * stride_b * KV_K::BYTES;
    UNROLL for (int i = piece * K_PIECE; i < (piece + 1) * K_PIECE; i += K_LOAD)
      load_stream<K_LOAD * KV_K::BYTES, V_IN_K>(words.k[piece % K_BUFFERS][t], i % K_PIECE * KV_K::BYTES,
                                        page + k_offset(slot, k_exists(i, group) ? listed_channel(i, group) : 0u, heads_stride) * KV_K::BYTES);
  }
}

// `v_head`: the cache at the first page and this head; strides in elements of V's codes. ASK: only into the cache.
template <typename Values, bool ASK = false>
DEVICE void load_v(u32 *words, const tile_pages &ids, const u8 *v_head, i64 stride_b, i64 heads_stride, int tile, int slice,
                   int index, int group) {
  constexpr int BYTES = Values::stored::BYTES;
  const int first = tile * TILE + group * LIST;
  UNROLL for (int e = 0; e < LIST; e += Values::TOKENS) {
    const u32 slot = (u32)(first + e) % PAGE;
    const u8 *page = v_head + Values::AT + (i64)ids.own[e / OWN_RUN] * stride_b * KV_V::BYTES;
    UNROLL for (int m = 0; m < Values::TILES; m += Values::ACROSS) {
      // along tokens: TOKENS of them for channel tile m; along channels: ACROSS tiles for token e
      const int place = Values::ACROSS == 1 ? (m * LIST + e) : (e * Values::TILES + m);
      const u32 channel = (u32)(slice * Values::TILES * INDICES) + channel_of<Values::ACROSS>(m, index);
      const bool exists = Values::WHOLE || channel < Values::CHANNELS;
      const u8 *from = page + Values::offset(slot, exists ? channel : 0u, heads_stride * KV_V::BYTES / BYTES) * BYTES;
      if constexpr (ASK)
        ask_for(from);
      else
        load_stream<Values::TOKENS * Values::ACROSS * BYTES>(words, place * BYTES, from);
    }
  }
}

//@ load_scales function
//@ staged functions
// The bits of V word i that belong to tokens [first, end), counted from the lane's first token.
template <typename Values> DEVICE u32 kept_bits(int i, token_span seen) {
  constexpr int PER_WORD = Values::stored::PER_WORD, BITS = 8 * Values::stored::BYTES;
  if constexpr (Values::ACROSS == 1) {
    const int end = seen.end - i % Values::WORDS * PER_WORD, first = seen.first - i % Values::WORDS * PER_WORD;
    if constexpr (STEADY) { // without branches
      const auto before = [&](int n) { // the first n
        n = n < 0 ? 0 : n > PER_WORD ? PER_WORD : n;
        return (u32)((1ull << n * BITS) - 1);
      };
      return WINDOW > 0 ? before(end) & ~before(first) : before(end);
    } else {
      u32 bits = end >= PER_WORD ? ~0u : end <= 0 ? 0u : (1u << end * BITS % 32) - 1u;
      if constexpr (WINDOW > 0) bits &= first <= 0 ? ~0u : first >= PER_WORD ? 0u : ~0u << first * BITS % 32;
      return bits;
    }
  } else {
    const int token = i * PER_WORD / Values::TILES;
    return token < seen.end && (WINDOW == 0 || token >= seen.first) ? ~0u : 0u;
  }
}

// What is not seen becomes 0: 0 * NaN would not.
template <typename Values> DEVICE void clear_invisible(u32 *words, token_span seen) {
  UNROLL for (int i = 0; i < Values::TILES * Values::WORDS; i++) {
    if (STAGES > 0) pin(words[i]); // or the bits of all of them are kept in registers from before V is read
    words[i] &= kept_bits<Values>(i, seen);
  }
}

// Word `word` of V's list for channel tile m: PER_WORD consecutive tokens of one channel. Query rows of one
// sequence see different tokens, so there the bits of those not seen are dropped on the way.
template <typename Values> DEVICE u32 value_word(const u32 *words, int m, int word, token_span seen) {
  constexpr int PER_WORD = Values::stored::PER_WORD, STRIDE = Values::TILES / PER_WORD;
  const auto stored = [&](int i) { return ROWS > 1 ? words[i] & kept_bits<Values>(i, seen) : words[i]; };
  if constexpr (Values::ACROSS == 1) {
    return stored(m * Values::WORDS + word);
  } else { // tokens lie a row of words apart: pick the channel's bytes out of PER_WORD rows
    const int row = word * PER_WORD * STRIDE + m / PER_WORD;
    if constexpr (PER_WORD == 2) {
      return pick_bytes(stored(row + STRIDE), stored(row), m % 2 ? 0x07060302 : 0x05040100);
    } else {
      const u32 low = pick_bytes(stored(row + STRIDE), stored(row), 0x0c0c0400 + 0x0101 * (m % 4));
      const u32 high = pick_bytes(stored(row + 3 * STRIDE), stored(row + 2 * STRIDE), 0x0c0c0400 + 0x0101 * (m % 4));
      return pick_bytes(high, low, 0x05040100);
    }
  }
}

// Fragment u of a list of stored words, widened where the product has a wider format than the cache.
template <typename Fragment, typename Stored, typename Operand, typename Word> DEVICE Fragment fragment_of(int u, Word word) {
  constexpr int WORDS = sizeof(Fragment) / 4;
  Fragment f;
  if constexpr (Stored::PER_WORD == Operand::PER_WORD) {
    UNROLL for (int i = 0; i < WORDS; i++) f.w[i] = word(u * WORDS + i);
  } else {
    UNROLL for (int i = 0; i < WORDS / 2; i++) Stored::widen(word(u * WORDS / 2 + i), f.w + 2 * i);
  }
  return f;
}

// One word of x as the other operand: PARTS words whose sum is x to the precision the product needs. With folded
// columns the second half of the columns holds the second part.
template <int PARTS, typename Operand, typename Fragment>
DEVICE void split_word(float *x, int index, Fragment *parts, int word) {
  u32 packed[PARTS];
  UNROLL for (int p = 0; p < PARTS; p++) {
    packed[p] = Operand::pack(x);
    float stored[Operand::PER_WORD];
    Operand::unpack(packed[p], stored);
    UNROLL for (int i = 0; i < Operand::PER_WORD; i++) x[i] -= stored[i];
  }
  if constexpr (FOLDED)
    parts[0].w[word] = index < COLUMNS / 2 ? packed[0] : packed[PARTS - 1];
  else
    UNROLL for (int p = 0; p < PARTS; p++) parts[p].w[word] = packed[p];
}

// The channels that fragment u of K holds in all its lanes: [first, end).
DEVICE int first_channel_of(int u) { return u * K_ELEMENTS / K_CHUNK * GROUPS * K_CHUNK; }
DEVICE int end_channel_of(int u) { return (((u + 1) * K_ELEMENTS - 1) / K_CHUNK + 1) * GROUPS * K_CHUNK; }

// The query's fragment u with zeros in the channels outside group `part`.
DEVICE query_fragment within_part(query_fragment q, int u, int part, int group) {
  if (first_channel_of(u) >= part * K_PART && end_channel_of(u) <= (part + 1) * K_PART) return q;
  UNROLL for (int w = 0; w < (int)(sizeof q / 4); w++) {
    const int i = u * K_ELEMENTS + w / PER_LANE * K_OPERAND::PER_WORD;
    q.w[w] = (int)listed_channel(i, group) / K_PART == part ? q.w[w] : 0u;
  }
  return q;
}

//@ tail function
//@ line
KERNEL(THREADS) void heddle_decode(
//@ arguments decode
) {
//@ work begins
  const int first_block = share / SLICES * BLOCKS, slice = share % SLICES;
//@ rows
//@ select

  // Row r of `rows` sees tokens [end - WINDOW, end), end = length - rows + r + 1 under a causal mask.
  const int lowest_end = CAUSAL ? length - rows + 1 : length;
  token_span seen = {0, length}; // by any row
  if constexpr (WINDOW > 0) seen.first = lowest_end > WINDOW ? lowest_end - WINDOW : 0;
  const int highest_first = WINDOW > 0 && length > WINDOW ? length - WINDOW : 0;
  const int first_tile = seen.first / TILE;
//@ span

//@ values
  const u8 *k_head = (const u8 *)k_cache + (i64)kv_head * k_stride_h * KV_K::BYTES;
  const u8 *v_head = (const u8 *)v_cache + (i64)kv_head * v_stride_h * KV_V::BYTES;
  const i64 k_heads_stride = kv_heads * k_stride_h, v_heads_stride = kv_heads * v_stride_h;
//@ scale_heads
//@ value_scale

  // STEADY: of the tile that is requested or computed; of the one behind it. Else: of the tile whose loads come next; `here`
  // of the one whose pieces of K are still to come.
  tile_pages ids, ahead, here;
  tile_words words;
  tile_scales scales;
//@ tail state
  const auto load_k_piece = [&](const tile_pages &from, int of_tile, int piece) {
    load_k(words, from, k_head, k_stride_b, k_heads_stride, of_tile, piece, index, group);
  };
  const auto load_k_first = [&](int of_tile) {
    here = ids;
    UNROLL for (int piece = 0; piece < K_BUFFERS; piece++) load_k_piece(ids, of_tile, piece);
//@ tail load
  };
  const auto load_values = [&](int of_tile) {
    load_v<coded_values>(words.v, ids, v_head, v_stride_b, v_heads_stride, of_tile, slice, index, group);
//@ tail load values
  };
  // The page ids of a tile further on; of this one where there is none, so that no branch is needed.
  const auto load_pages_ahead = [&](int tiles) {
    load_pages(ahead, table, tile + tiles * WAVES < end ? tile + tiles * WAVES : tile, seen, index, group);
  };
  const auto first_loads = [&] {
    if (STAGES > 0 || tile >= end) return;
    load_pages(ids, table, tile, seen, index, group);
//@ load_scales tile
    if constexpr (STEADY) {
      keep_order();
      load_k_first(tile);
      load_pages_ahead(1);
      keep_order();
      if constexpr (V_AHEAD) load_values(tile);
      if constexpr (V_FIRST)
        load_v<coded_values, true>(words.v, ids, v_head, v_stride_b, v_heads_stride, tile, slice, index, group);
    } else {
      load_k_first(tile);
      load_values(tile);
      if (tile + WAVES < end) load_pages(ids, table, tile + WAVES, seen, index, group);
    }
  };
  // STEADY: scales and K of the next tile, and the page ids of the one behind it.
  const auto request_keys = [&] {
    keep_order();
    UNROLL for (int a = 0; a < K_IDS; a++) ids.k[a] = moved(ahead.k[a]);
    UNROLL for (int a = 0; a < OWN_IDS; a++) ids.own[a] = moved(ahead.own[a]);
    if constexpr (K_SCALED || V_SCALED)
      UNROLL for (int n = 0; n < SCALE_WORDS; n++) ids.scale[n] = moved(ahead.scale[n]);
    const int next = tile + WAVES;
//@ load_scales next
    load_k_first(next);
    keep_order();
    load_pages_ahead(2);
  };
  if (EARLY_LOADS) first_loads();
//@ staged first

  // The query (row * HEADS + head) that this lane's column c of block b holds.
  const auto column_of = [&](int b, int c) {
    return (first_block + b) * COLUMNS + (FOLDED ? index % (COLUMNS / 2) : index + c * INDICES);
  };
  // The query: each row scaled by a power of two into the operand's range, then split into parts. Every wave needs the
  // same: where registers are short it stays in LDS and is read again for each tile.
  query_fragment query[BLOCKS][Q_FRAGMENTS][K_STEPS];
  SHARED query_fragment shared_query[QUERY_IN_LDS ? BLOCKS * Q_FRAGMENTS * K_STEPS : 1][WAVE];
  // Q_STEP channels of a column from place i of the lane's list on, as they are.
  const auto load_query = [&](int column, int i, float *x) {
    const u8 *row = (const u8 *)q + query_of(sequence, kv_head, kv_heads, rows, column) * HEAD_DIM_QK * QUERY::BYTES;
    UNROLL for (int n = 0; n < Q_STEP; n += Q_LOAD) {
      u32 loaded[Q_LOAD / QUERY::PER_WORD];
      UNROLL for (int w = 0; w < Q_LOAD / QUERY::PER_WORD; w++) loaded[w] = 0;
      if (column < rows * HEADS && k_exists(i + n, group))
        load_stream<Q_LOAD * QUERY::BYTES>(loaded, 0, row + listed_channel(i + n, group) * QUERY::BYTES);
      UNROLL for (int w = 0; w < Q_LOAD / QUERY::PER_WORD; w++) QUERY::unpack(loaded[w], x + n + w * QUERY::PER_WORD);
    }
  };
  // The same as operands for column c of the lane: `keep` gets every word of part p of fragment u.
  const auto split_query = [&](float *x, float up, int i, int c, auto keep) {
    UNROLL for (int n = 0; n < Q_STEP; n += K_OPERAND::PER_WORD) {
      UNROLL for (int k = 0; k < K_OPERAND::PER_WORD; k++) x[n + k] *= up;
      query_fragment parts[Q_PARTS];
      const int word = n % K_ELEMENTS / K_OPERAND::PER_WORD * PER_LANE + c;
      split_word<Q_PARTS, K_OPERAND>(x + n, index, parts, word);
      UNROLL for (int p = 0; p < Q_FRAGMENTS; p++) keep(p, i / K_ELEMENTS + n / K_ELEMENTS, word, parts[p].w[word]);
    }
  };
  float row_scale[BLOCKS][PER_LANE];
  // The exponent that brings the largest of some numbers up to 2^top.
  const auto exponent_up = [](float largest, int top) {
    const int exponent = (int)(bits_of(largest) >> 23), up = top + 127 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent);
    return up < -120 ? -120 : up > 120 ? 120 : up;
  };
  UNROLL for (int b = 0; b < BLOCKS; b++)
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      float x[QUERY_IN_LDS ? Q_STEP : K_LIST], largest = 0, tail_largest = 0;
      if constexpr (QUERY_IN_LDS) {
        for (int i = 0; i < K_LIST; i += Q_STEP) {
          load_query(column_of(b, c), i, x);
          UNROLL for (int n = 0; n < Q_STEP; n++) largest = max_of(largest, abs_of(x[n]));
        }
      } else {
        UNROLL for (int i = 0; i < K_LIST; i += Q_STEP) load_query(column_of(b, c), i, x + i);
        UNROLL for (int i = 0; i < K_LIST; i++) largest = max_of(largest, abs_of(x[i]));
      }
//@ tail query
      largest = group_max(largest);
      const int exponent = exponent_up(largest, Q_TOP), limit = exponent_up(tail_largest, TAIL_TOP);
      const float up = float_of((u32)(127 + (exponent < limit ? exponent : limit)) << 23);
      // an infinite element makes the row NaN, as its products would
      row_scale[b][c] = float_of((u32)(127 - (exponent < limit ? exponent : limit)) << 23) * (largest - largest + 1.0f);
//@ tail split
      if constexpr (QUERY_IN_LDS)
        for (int i = wave * Q_STEP; i < K_LIST; i += WAVES * Q_STEP) {
          load_query(column_of(b, c), i, x);
          split_query(x, up, i, c, [&](int p, int u, int word, u32 bits) {
            shared_query[(b * Q_FRAGMENTS + p) * K_STEPS + u][lane].w[word] = bits;
          });
        }
      else
        UNROLL for (int i = 0; i < K_LIST; i += Q_STEP)
          split_query(x + i, up, i, c, [&](int p, int u, int word, u32 bits) { query[b][p][u].w[word] = bits; });
    }
  if constexpr (QUERY_IN_LDS) STEADY ? barrier_undivided() : barrier();
  const auto query_part = [&](int b, int p, int u) {
    return QUERY_IN_LDS ? shared_query[(b * Q_FRAGMENTS + p) * K_STEPS + u][lane] : query[b][p][u];
  };
  if (!EARLY_LOADS) first_loads();
//@ logits
  UNROLL for (int b = 0; b < BLOCKS; b++)
    UNROLL for (int c = 0; c < PER_LANE; c++) row_scale[b][c] *= logits;

  acc_t output[BLOCKS][OUTPUT_TILES];
  float top[OUTPUT_PARTS][BLOCKS][PER_LANE]; // running maximum of the scores with V scales: what `output` is relative to
  float base[BLOCKS][PER_LANE]; // running maximum of the lane's own plain scores: what `sum` is relative to
  float sum[BLOCKS][PER_LANE];
  UNROLL for (int b = 0; b < BLOCKS; b++) {
    UNROLL for (int m = 0; m < OUTPUT_TILES; m++)
      UNROLL for (int a = 0; a < PER_LANE * RUN; a++) output[b][m][a] = 0;
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      UNROLL for (int part = 0; part < OUTPUT_PARTS; part++) top[part][b][c] = NEVER;
      base[b][c] = NEVER;
      sum[b][c] = 0;
    }
  }

  // A tile's scores: the products of its keys and the query.
  acc_t product[BLOCKS][SCORE_TILES];
  const auto score_tile = [&]() __attribute__((always_inline)) {
    if constexpr (V_FIRST) {
      load_values(tile);
      keep_order();
    }
//@ staged keys
    if constexpr (QUERY_IN_LDS) asm volatile("" ::: "memory"); // or its loads would move out of the loop
    UNROLL for (int b = 0; b < BLOCKS; b++)
      UNROLL for (int t = 0; t < SCORE_TILES; t++)
        UNROLL for (int a = 0; a < PER_LANE * RUN; a++) product[b][t][a] = 0;
    const auto key = [&](int t, int u) {
      return fragment_of<key_fragment, KV_K, K_OPERAND>(
          u % PIECE_STEPS, [&](int word) {
            const int piece = u / PIECE_STEPS;
            return k_exists(piece * K_PIECE + word * KV_K::PER_WORD, group) ? words.k[piece % K_BUFFERS][t][word] : 0u;
          });
    };
    UNROLL for (int piece = 0; piece < K_PIECES; piece++) {
      if constexpr (K_PIECES > 1) keep_order();
      if constexpr (K_PARTS == 1) {
        UNROLL for (int u = piece * PIECE_STEPS; u < (piece + 1) * PIECE_STEPS; u++)
          UNROLL for (int t = 0; t < SCORE_TILES; t++) {
            const key_fragment k = key(t, u);
            UNROLL for (int b = 0; b < BLOCKS; b++)
              UNROLL for (int p = 0; p < Q_FRAGMENTS; p++) product[b][t] = multiply(k, query_part(b, p, u), product[b][t]);
          }
      } else { // each group of channels has a scale of its own: a product for each
        UNROLL for (int part = piece * K_PARTS / K_PIECES; part < (piece + 1) * K_PARTS / K_PIECES; part++)
          UNROLL for (int t = 0; t < SCORE_TILES; t++)
            UNROLL for (int b = 0; b < BLOCKS; b++) {
              keep_order();
              acc_t x;
              UNROLL for (int a = 0; a < PER_LANE * RUN; a++) x[a] = 0;
              UNROLL for (int u = 0; u < K_STEPS; u++)
                if (first_channel_of(u) < (part + 1) * K_PART && end_channel_of(u) > part * K_PART)
                  UNROLL for (int p = 0; p < Q_FRAGMENTS; p++)
                    x = multiply(key(t, u), within_part(query_part(b, p, u), u, part, group), x);
              UNROLL for (int r = 0; r < RUN; r++) {
                const int e = t * RUN + r;
                const float factor = index_lane(scale_value(scales.k[part][e / INDICES]), e % INDICES);
                UNROLL for (int c = 0; c < PER_LANE; c++)
                  product[b][t][c * RUN + r] = fused(x[c * RUN + r], factor, product[b][t][c * RUN + r]);
              }
            }
      }
      if (piece + K_BUFFERS < K_PIECES) load_k_piece(here, tile, piece + K_BUFFERS);
      if constexpr (STEADY && K_PIECES > K_BUFFERS) {
        if (piece + K_BUFFERS == K_PIECES - 1) {
          keep_order();
          load_values(tile);
        }
      }
    }
//@ tail products
  };

  // Their softmax and the products of values with it. `more`: there is a next tile, to be requested into registers.
  // `masked`: some row does not see some token of this one.
  const auto finish_tile = [&](bool more, bool masked) __attribute__((always_inline)) {
    const int lane_first = tile * TILE + group * LIST;
    if (!STEADY && EARLY_LOADS && more) load_k_first(tile + WAVES);
    float k_factor[SCALE_WORDS], v_log[V_PARTS][SCALE_WORDS];
    if constexpr (K_SCALED && K_PARTS == 1)
      UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
        k_factor[n] = STEADY ? moved(scale_value(scales.k[0][n])) : scale_value(scales.k[0][n]);
      }
    if constexpr (V_SCALED)
      UNROLL for (int part = 0; part < V_PARTS; part++)
        UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
          v_log[part][n] = STEADY ? moved(scale_log2(scales.v[part][n])) : scale_log2(scales.v[part][n]);
        }
    if (STEADY && EARLY_LOADS && more) request_keys();

    // What row r sees of this lane's tokens, counted from the first of them.
    const auto seen_by = [&](int row) {
      const int row_end = ROWS > 1 && CAUSAL ? lowest_end + row : length;
      return token_span{(row_end > WINDOW ? row_end - WINDOW : 0) - lane_first, row_end - lane_first};
    };
    const auto sees = [&](token_span row, int e) { return e < row.end && (WINDOW == 0 || e >= row.first); };

    UNROLL for (int b = 0; b < BLOCKS; b++)
      UNROLL for (int c = 0; c < PER_LANE; c++) {
        const auto score = [&](int e) -> auto & { return product[b][e / RUN]; };
        const auto place = [&](int e) { return c * RUN + e % RUN; };
        UNROLL for (int e = 0; e < LIST; e++) {
          float s = score(e)[place(e)];
          if constexpr (FOLDED) s += lane_plus_8(s);
          s *= row_scale[b][c];
          if constexpr (K_SCALED && K_PARTS == 1 && !HAS_TAIL) s *= index_lane(k_factor[e / INDICES], e % INDICES);
          score(e)[place(e)] = capped(s);
        }
        if (STEADY) keep_order();
        if (masked) {
          const token_span row = seen_by(column_of(b, c) / HEADS);
          UNROLL for (int e = 0; e < LIST; e++)
            if (!sees(row, e)) score(e)[place(e)] = MASKED;
        }
        if constexpr (V_SCALED) {
          float new_base = base[b][c];
          UNROLL for (int e = 0; e < LIST; e++) new_base = max_of(new_base, score(e)[place(e)]);
          sum[b][c] *= exp2_fast(base[b][c] - new_base);
          base[b][c] = new_base;
          UNROLL for (int e = 0; e < LIST; e++) sum[b][c] += exp2_fast(score(e)[place(e)] - new_base);
        }
      }

//@ staged values
    if (STEADY) keep_order();
    if constexpr (ROWS == 1)
      if (masked) {
        clear_invisible<coded_values>(words.v, seen_by(0));
//@ tail clear values
      }
    // Weights of one part of V's channels, those that share a scale, and the products of `v` with them.
    // (Braces around loops behind `if constexpr`: nvrtc takes no pragma as a statement that a template discards.)
    const auto add_values = [&](auto values, u32 *v, int part) __attribute__((always_inline)) {
      typedef decltype(values) of;
      typedef typename of::operand operand;
      typedef typename of::fragment fragment;
      typedef typename of::weights weight;
      constexpr bool SUMS = !V_SCALED && of::FIRST_PART == 0; // the sum is of these weights
      const int first_tile = of::FIRST_TILE + (part - of::FIRST_PART) * of::PART_TILES;
      if (OUTPUT_PARTS > 1) keep_order();
      weight weights[BLOCKS][of::FRAGMENTS][V_STEPS];
      UNROLL for (int b = 0; b < BLOCKS; b++)
        UNROLL for (int c = 0; c < PER_LANE; c++) {
          float weighted[LIST]; // scores with log2(V scale)
          float new_top = NEVER;
          UNROLL for (int e = 0; e < LIST; e++) {
            weighted[e] = product[b][e / RUN][c * RUN + e % RUN];
            if constexpr (of::SCALED) weighted[e] += index_lane(v_log[part][e / INDICES], e % INDICES);
          }
          if (of::SCALED && masked) {
            const token_span row = seen_by(column_of(b, c) / HEADS);
            UNROLL for (int e = 0; e < LIST; e++)
              if (!sees(row, e)) weighted[e] = MASKED; // whatever its scale was
          }
          UNROLL for (int e = 0; e < LIST; e++) new_top = max_of(new_top, weighted[e]);
          new_top = max_of(top[part][b][c], group_max(new_top));
          const float rescale = exp2_fast(top[part][b][c] - new_top);
          top[part][b][c] = new_top;
          UNROLL for (int m = first_tile; m < first_tile + of::PART_TILES; m++)
            UNROLL for (int r = 0; r < RUN; r++) output[b][m][c * RUN + r] *= rescale;
          if constexpr (SUMS) {
            sum[b][c] *= rescale;
            base[b][c] = new_top - P_SHIFT;
          }
          UNROLL for (int e = 0; e < LIST; e += operand::PER_WORD) {
            float p[operand::PER_WORD];
            UNROLL for (int i = 0; i < operand::PER_WORD; i++) {
              p[i] = exp2_fast(weighted[e + i] - (new_top - P_SHIFT));
              if constexpr (SUMS) sum[b][c] += p[i];
            }
            weight parts[of::PARTS];
            const int word = e % V_ELEMENTS / operand::PER_WORD * PER_LANE + c;
            split_word<of::PARTS, operand>(p, index, parts, word);
            UNROLL for (int f = 0; f < of::FRAGMENTS; f++) weights[b][f][e / V_ELEMENTS].w[word] = parts[f].w[word];
          }
        }
      if (STEADY && !EARLY_LOADS && more && part == OUTPUT_PARTS - 1) request_keys();
      if (!STEADY && more && part == OUTPUT_PARTS - 1) {
        const int next = tile + WAVES;
        if (!EARLY_LOADS) load_k_first(next);
//@ load_scales next
      }

      if (STEADY) keep_order();
      // Where rows see different tokens each takes a pass of its own, in which V is 0 for what it does not see.
      const int passes = ROWS > 1 && masked ? rows : 1;
      for (int pass = 0; pass < passes; pass++) {
        token_span row = {0, LIST};
        if (ROWS > 1 && masked) row = seen_by(pass);
        // LLVM 22 on gfx1250 otherwise lets a transposed fragment take the place of words it still needs.
        if constexpr (of::ACROSS > 1) {
          UNROLL for (int i = 0; i < of::TILES * of::WORDS; i++) pin(v[i]);
        }
        UNROLL for (int m = 0; m < of::PART_TILES; m++)
          UNROLL for (int u = 0; u < V_STEPS; u++) {
            const fragment value = fragment_of<fragment, typename of::stored, operand>(
                u, [&](int word) { return value_word<of>(v, first_tile - of::FIRST_TILE + m, word, row); });
            UNROLL for (int b = 0; b < BLOCKS; b++) {
              acc_t &sums = output[b][first_tile + m], x = sums;
              UNROLL for (int f = 0; f < of::FRAGMENTS; f++) x = multiply(value, weights[b][f][u], x);
              if constexpr (ROWS == 1) {
                sums = x;
              } else {
                UNROLL for (int c = 0; c < PER_LANE; c++) {
                  const bool own = !masked || column_of(b, c) / HEADS == pass;
                  UNROLL for (int r = 0; r < RUN; r++) sums[c * RUN + r] = own ? x[c * RUN + r] : sums[c * RUN + r];
                }
              }
            }
          }
        if constexpr (ROWS == 1) break;
      }
    };
    UNROLL for (int part = 0; part < V_PARTS; part++) add_values(coded_values(), words.v, part);
//@ tail add values
    if (STEADY && V_AHEAD && more) {
      keep_order();
      load_values(tile + WAVES);
    }
    if (!STEADY && more) {
      load_values(tile + WAVES);
      if (tile + 2 * WAVES < end) load_pages(ids, table, tile + 2 * WAVES, seen, index, group);
    }
//@ staged next
  };

  // Only tiles at an end of what rows see have tokens that some row does not see.
  const auto has_unseen = [&] { return lowest_end < (tile + 1) * TILE || (WINDOW > 0 && tile * TILE < highest_first); };

  // STEADY: at every wait for a request another one is on its way behind it. In the loop they are made without a branch,
  // since LLVM takes the fewest that are on their way on any of the paths that meet, and a wave's last tile, which has none
  // to make, is taken by code of its own.
  if constexpr (STEADY) {
    for (; tile + WAVES < end; tile += WAVES) {
      score_tile();
      finish_tile(true, !ONLY_LAST_MASKED && has_unseen());
    }
    if (tile < end) {
      score_tile();
      finish_tile(false, has_unseen());
    }
  } else {
    for (; tile < end; tile += WAVES) {
      const bool more = STAGES == 0 && tile + WAVES < end, masked = has_unseen();
      score_tile();
      finish_tile(more, masked);
    }
  }

  // The waves meet: every wave leaves its numbers a column in LDS (base, sum, and a top for each part), and its output,
  // EXCHANGE channel tiles at a time.
//@ meeting
  constexpr int TILES = BLOCKS * OUTPUT_TILES;
//@ shared_output
  SHARED float shared_row[WAVES][BLOCKS * PER_LANE][INDICES][2 + OUTPUT_PARTS];
  UNROLL for (int b = 0; b < BLOCKS; b++)
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      const float lowest = group_max(base[b][c]);
      const float total = group_sum(sum[b][c] * exp2_fast(base[b][c] - lowest));
      if (group == 0) {
        float *row = shared_row[wave][b * PER_LANE + c][index];
        row[0] = lowest;
        row[1] = total;
        UNROLL for (int part = 0; part < OUTPUT_PARTS; part++) row[2 + part] = top[part][b][c];
      }
    }

//@ partial_number
  for (int first = 0; first < TILES; first += EXCHANGE) {
    if (first > 0) barrier(); // the round before is read
    UNROLL for (int n = 0; n < TILES; n++)
      if (n / EXCHANGE * EXCHANGE == first)
        UNROLL for (int a = 0; a < PER_LANE * RUN; a++) {
          float x = output[n / OUTPUT_TILES][n % OUTPUT_TILES][a];
          if (FOLDED && (n % OUTPUT_TILES < VALUE_TILES ? P_PARTS : TAIL_P_PARTS) == 2) x += lane_plus_8(x);
          shared_output[wave][n % EXCHANGE * PER_LANE * RUN + a][lane] = x;
        }
    barrier();
    UNROLL for (int b = 0; b < BLOCKS; b++)
      UNROLL for (int c = 0; c < PER_LANE; c++) {
        const int column = column_of(b, c);
        if (column >= rows * HEADS || (FOLDED && index >= COLUMNS / 2)) continue;
        const i64 query = query_of(sequence, kv_head, kv_heads, rows, column);
        float *partial = (float *)workspace + (i64)(partial_number * (ROWS * HEADS) + column) * PARTIAL_WORDS;
        const auto row = [&](int w) { return shared_row[w][b * PER_LANE + c][index]; };
        float lowest = NEVER, total = 0;
        UNROLL for (int w = 0; w < WAVES; w++) lowest = max_of(lowest, row(w)[0]);
        UNROLL for (int w = 0; w < WAVES; w++) total += row(w)[1] * exp2_fast(row(w)[0] - lowest);
        const bool writes_row = first == 0 && wave == 0 && group == 0;
        if (!whole && writes_row) {
          partial[HEAD_DIM_V + 1] = lowest;
          partial[HEAD_DIM_V + 2] = total;
          if (top_word(HEAD_DIM_V - 1) == 0) partial[HEAD_DIM_V + 3] = 0; // merge may read four words at once
        }
        if (whole) {
//@ sink decode
        }
        const int end_tile = first + EXCHANGE < (b + 1) * OUTPUT_TILES ? first + EXCHANGE : (b + 1) * OUTPUT_TILES;
        for (int n = (first > b * OUTPUT_TILES ? first : b * OUTPUT_TILES) + wave; n < end_tile; n += WAVES) {
          const int m = n - b * OUTPUT_TILES;
          const bool of_tail = TAIL_TILES > 0 && m >= VALUE_TILES;
          const int part = of_tail ? V_PARTS : V_PARTS == 1 ? 0 : m / PART_TILES;
          float highest = NEVER, weight[WAVES];
          UNROLL for (int w = 0; w < WAVES; w++) highest = max_of(highest, row(w)[2 + part]);
          UNROLL for (int w = 0; w < WAVES; w++) weight[w] = exp2_fast(row(w)[2 + part] - highest);
          highest -= P_SHIFT;
          const float root = exp2_fast(0.5f * (highest - lowest)); // the power itself may be too small for fp32
          const float inverse = total > 0 || total != total ? root / total : 0.0f;
          UNROLL for (int r = 0; r < RUN; r++) {
            float x = 0;
            UNROLL for (int w = 0; w < WAVES; w++)
              x = fused(shared_output[w][(n - first) * PER_LANE * RUN + c * RUN + r][lane], weight[w], x);
            const u32 channel = of_tail ? V_CODED + (u32)(slice * TAIL_TILES * INDICES) +
                                              channel_of<TAIL_ACROSS>(m - VALUE_TILES, group * RUN + r)
                                        : (u32)(slice * VALUE_TILES * INDICES) + channel_of(m, group * RUN + r);
            if (of_tail ? !TAIL_WHOLE && channel >= HEAD_DIM_V : !V_WHOLE && channel >= V_CODED) continue;
            if (!whole) {
              partial[channel] = x;
              if (of_tail ? channel == V_CODED : channel % V_PART == 0) partial[HEAD_DIM_V + top_word(channel)] = highest;
            } else {
              store_output(out, query * HEAD_DIM_V + channel, x * root * inverse * scale_behind(channel, value_scale));
            }
          }
        }
        if (whole && writes_row && slice == 0) {
//@ store_lse direct
        }
      }
  }
//@ work ends
}

//@ merge
