//@ contract
//@ prelude
//@ solved
// ---- decode: one query row per sequence over a paged cache, split over its tokens --------------------------
//
// A workgroup takes one split of one (sequence, kv head); its waves take the split's tiles in turn, each with
// its own running maximum, sum and output, and meet once at the end through LDS. Tokens are the rows of the score
// product and channels the rows of the value product; query heads are the columns of both, so the probabilities
// stay in the lane that needs them: a lane of group q owns tokens q*LIST ... q*LIST + LIST - 1 of a tile.
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
  u32 k[SCORE_TILES][K_WORDS];
  u32 v[VALUE_TILES * V_WORDS];
};

// One token a lane: the lanes of a group hold the scales of its list between them.
struct tile_scales {
  float k[SCALE_WORDS];
  float v[SCALE_WORDS];
};

// The channels of a lane of `group`, in the order its fragments hold them: chunks of K_CHUNK, dealt to the groups in turn.
DEVICE u32 listed_channel(int i, int group) { return (u32)((i / K_CHUNK * GROUPS + group) * K_CHUNK + i % K_CHUNK); }

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

DEVICE void load_pages(tile_pages &ids, const int *table, int tile, int last, int index, int group) {
  const int k_first = tile * TILE + index / RUN * LIST + (K_EXACT ? index % RUN : 0);
  UNROLL for (int a = 0; a < K_IDS; a++) {
    const int token = k_first + a * K_ID_STEP;
    ids.k[a] = table[(u32)(token < last ? token : last) / PAGE];
  }
  const int own_first = tile * TILE + group * LIST;
  UNROLL for (int a = 0; a < OWN_IDS; a++) {
    const int token = own_first + a * OWN_RUN;
    ids.own[a] = table[(u32)(token < last ? token : last) / PAGE];
  }
  if constexpr (K_SCALED || V_SCALED)
    UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
      const int token = own_first + scaled_token(n, index);
      ids.scale[n] = table[(u32)(token < last ? token : last) / PAGE];
    }
}

DEVICE void load_k(tile_words &words, const tile_pages &ids, const u8 *k_head, i64 stride_b, i64 heads_stride, int tile,
                   int index, int group) {
  const int first = tile * TILE + index / RUN * LIST + index % RUN;
  UNROLL for (int t = 0; t < SCORE_TILES; t++) {
    const u32 slot = (u32)(first + t * RUN) % PAGE;
    const u8 *page = k_head + (i64)ids.k[K_EXACT ? t : t * RUN / OWN_RUN] * stride_b * KV_K::BYTES;
    UNROLL for (int i = 0; i < K_LIST; i += K_LOAD)
      load_stream<K_LOAD * KV_K::BYTES>(words.k[t], i * KV_K::BYTES,
                                        page + k_offset(slot, listed_channel(i, group), heads_stride) * KV_K::BYTES);
  }
}

DEVICE void load_v(tile_words &words, const tile_pages &ids, const u8 *v_head, i64 stride_b, i64 heads_stride, int tile,
                   int index, int group) {
  const int first = tile * TILE + group * LIST;
  UNROLL for (int e = 0; e < LIST; e += V_TOKENS) {
    const u32 slot = (u32)(first + e) % PAGE;
    const u8 *page = v_head + (i64)ids.own[e / OWN_RUN] * stride_b * KV_V::BYTES;
    UNROLL for (int m = 0; m < VALUE_TILES; m += V_CHANNELS) {
      // along tokens: V_TOKENS of them for channel tile m; along channels: V_CHANNELS tiles for token e
      const int place = V_CHANNELS == 1 ? (m * LIST + e) : (e * VALUE_TILES + m);
      load_stream<V_TOKENS * V_CHANNELS * KV_V::BYTES>(words.v, place * KV_V::BYTES,
                                                       page + v_offset(slot, channel_of(m, index), heads_stride) * KV_V::BYTES);
    }
  }
}

//@ load_scales function
// Words of V tokens at or past `visible` (counted from the lane's first token) become 0: 0 * NaN would not.
DEVICE void clear_invisible(tile_words &words, int visible) {
  constexpr int PER_WORD = KV_V::PER_WORD, BITS = 8 * KV_V::BYTES;
  UNROLL for (int i = 0; i < VALUE_TILES * V_WORDS; i++) {
    if constexpr (V_CHANNELS == 1) {
      const int keep = visible - i % V_WORDS * PER_WORD;
      words.v[i] &= keep >= PER_WORD ? ~0u : keep <= 0 ? 0u : (1u << keep * BITS % 32) - 1u;
    } else {
      words.v[i] = i * PER_WORD / VALUE_TILES < visible ? words.v[i] : 0u;
    }
  }
}

// Word `word` of V's list for channel tile m: KV_V::PER_WORD consecutive tokens of one channel.
DEVICE u32 value_word(const tile_words &words, int m, int word) {
  constexpr int PER_WORD = KV_V::PER_WORD, STRIDE = VALUE_TILES / PER_WORD;
  if constexpr (V_CHANNELS == 1) {
    return words.v[m * V_WORDS + word];
  } else { // tokens lie a row of words apart: pick the channel's bytes out of PER_WORD rows
    const u32 *row = words.v + word * PER_WORD * STRIDE + m / PER_WORD;
    if constexpr (PER_WORD == 2) {
      return pick_bytes(row[STRIDE], row[0], m % 2 ? 0x07060302 : 0x05040100);
    } else {
      const u32 low = pick_bytes(row[STRIDE], row[0], 0x0c0c0400 + 0x0101 * (m % 4));
      const u32 high = pick_bytes(row[3 * STRIDE], row[2 * STRIDE], 0x0c0c0400 + 0x0101 * (m % 4));
      return pick_bytes(high, low, 0x05040100);
    }
  }
}

// Fragment u of a list of stored words, widened where the product has a wider format than the cache.
template <typename Stored, typename Word> DEVICE kv_fragment fragment_of(int u, Word word) {
  kv_fragment f;
  if constexpr (Stored::PER_WORD == OPERAND::PER_WORD) {
    UNROLL for (int i = 0; i < FRAGMENT_WORDS; i++) f.w[i] = word(u * FRAGMENT_WORDS + i);
  } else {
    UNROLL for (int i = 0; i < FRAGMENT_WORDS / 2; i++) Stored::widen(word(u * FRAGMENT_WORDS / 2 + i), f.w + 2 * i);
  }
  return f;
}

// One row of x as the other operand: PARTS words whose sum is x to the precision the product needs. With folded
// columns the second half of the columns holds the second part.
template <int PARTS>
DEVICE void split_word(float *x, int index, other_fragment *parts, int word) {
  u32 packed[PARTS];
  UNROLL for (int p = 0; p < PARTS; p++) {
    packed[p] = OPERAND::pack(x);
    float stored[OPERAND::PER_WORD];
    OPERAND::unpack(packed[p], stored);
    UNROLL for (int i = 0; i < OPERAND::PER_WORD; i++) x[i] -= stored[i];
  }
  if constexpr (FOLDED)
    parts[0].w[word] = index < COLUMNS / 2 ? packed[0] : packed[PARTS - 1];
  else
    UNROLL for (int p = 0; p < PARTS; p++) parts[p].w[word] = packed[p];
}

KERNEL(THREADS) void heddle_decode(
//@ arguments decode
) {
  const int lane = lane_id(), wave = wave_id();
  const int index = lane / INDEX_STRIDE % INDICES, group = lane / GROUP_STRIDE % GROUPS;
  const int sequence = workgroup_x(), kv_head = workgroup_y(), split = workgroup_z();
  const int length = lengths[sequence];
  const int tiles = length > 0 ? (length - 1) / TILE + 1 : 0;
  const int end = (int)((i64)tiles * (split + 1) / splits);
  int tile = (int)((i64)tiles * split / splits) + wave;

  const int *table = page_table + (i64)sequence * table_pages;
  const u8 *k_head = (const u8 *)k_cache + (i64)kv_head * k_stride_h * KV_K::BYTES;
  const u8 *v_head = (const u8 *)v_cache + (i64)kv_head * v_stride_h * KV_V::BYTES;
  const i64 k_heads_stride = kv_heads * k_stride_h, v_heads_stride = kv_heads * v_stride_h;
//@ scale_heads
//@ value_scale

  tile_pages ids;
  tile_words words;
  tile_scales scales;
  const auto first_loads = [&] {
    if (tile >= end) return;
    load_pages(ids, table, tile, length - 1, index, group);
    load_k(words, ids, k_head, k_stride_b, k_heads_stride, tile, index, group);
//@ load_scales tile
    load_v(words, ids, v_head, v_stride_b, v_heads_stride, tile, index, group);
    if (tile + WAVES < end) load_pages(ids, table, tile + WAVES, length - 1, index, group);
  };
  if (EARLY_LOADS) first_loads();

  // The query: each row scaled by a power of two into the operand's range, then split into parts.
  other_fragment query[BLOCKS][Q_FRAGMENTS][K_STEPS];
  float row_scale[BLOCKS][PER_LANE];
  UNROLL for (int b = 0; b < BLOCKS; b++) {
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      const int head = b * COLUMNS + (FOLDED ? index % (COLUMNS / 2) : index + c * INDICES);
      float x[K_LIST];
      const u8 *row = (const u8 *)q + ((i64)(sequence * kv_heads + kv_head) * HEADS + head) * HEAD_DIM_QK * QUERY::BYTES;
      UNROLL for (int i = 0; i < K_LIST; i += Q_LOAD) {
        u32 loaded[Q_LOAD / QUERY::PER_WORD];
        UNROLL for (int w = 0; w < Q_LOAD / QUERY::PER_WORD; w++) loaded[w] = 0;
        if (head < HEADS) load_stream<Q_LOAD * QUERY::BYTES>(loaded, 0, row + listed_channel(i, group) * QUERY::BYTES);
        UNROLL for (int w = 0; w < Q_LOAD / QUERY::PER_WORD; w++) QUERY::unpack(loaded[w], x + i + w * QUERY::PER_WORD);
      }
      float largest = 0;
      UNROLL for (int i = 0; i < K_LIST; i++) largest = max_of(largest, abs_of(x[i]));
      largest = group_max(largest);
      int exponent = (int)(bits_of(largest) >> 23);
      exponent = Q_TOP + 127 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent);
      exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
      const float up = float_of((u32)(127 + exponent) << 23);
      // an infinite element makes the row NaN, as its products would
      row_scale[b][c] = float_of((u32)(127 - exponent) << 23) * (largest - largest + 1.0f);
      UNROLL for (int i = 0; i < K_LIST; i++) x[i] *= up;
      UNROLL for (int i = 0; i < K_LIST; i += OPERAND::PER_WORD) {
        other_fragment parts[Q_PARTS];
        const int word = i % ELEMENTS / OPERAND::PER_WORD * PER_LANE + c;
        split_word<Q_PARTS>(x + i, index, parts, word);
        UNROLL for (int p = 0; p < Q_FRAGMENTS; p++) query[b][p][i / ELEMENTS].w[word] = parts[p].w[word];
      }
    }
  }
  // Every wave needs the same query: where registers are short it stays in LDS and is read again for each tile.
  SHARED other_fragment shared_query[QUERY_IN_LDS ? BLOCKS * Q_FRAGMENTS * K_STEPS : 1][WAVE];
  if constexpr (QUERY_IN_LDS) {
    if (wave == 0)
      UNROLL for (int b = 0; b < BLOCKS; b++)
        UNROLL for (int p = 0; p < Q_FRAGMENTS; p++)
          UNROLL for (int u = 0; u < K_STEPS; u++) shared_query[(b * Q_FRAGMENTS + p) * K_STEPS + u][lane] = query[b][p][u];
    barrier();
  }
  const auto query_fragment = [&](int b, int p, int u) {
    return QUERY_IN_LDS ? shared_query[(b * Q_FRAGMENTS + p) * K_STEPS + u][lane] : query[b][p][u];
  };
  if (!EARLY_LOADS) first_loads();
//@ logits
  UNROLL for (int b = 0; b < BLOCKS; b++)
    UNROLL for (int c = 0; c < PER_LANE; c++) row_scale[b][c] *= logits;

  acc_t output[BLOCKS][VALUE_TILES];
  float top[BLOCKS][PER_LANE];  // running maximum of the scores with V scales: what `output` is relative to
  float base[BLOCKS][PER_LANE]; // running maximum of the lane's own plain scores: what `sum` is relative to
  float sum[BLOCKS][PER_LANE];
  UNROLL for (int b = 0; b < BLOCKS; b++) {
    UNROLL for (int m = 0; m < VALUE_TILES; m++)
      UNROLL for (int a = 0; a < PER_LANE * RUN; a++) output[b][m][a] = 0;
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      top[b][c] = base[b][c] = NEVER;
      sum[b][c] = 0;
    }
  }

  for (; tile < end; tile += WAVES) {
    const bool more = tile + WAVES < end;
    if constexpr (QUERY_IN_LDS) asm volatile("" ::: "memory"); // or its loads would move out of the loop
    // Tokens of this lane's list that exist; only the last tile has fewer than all.
    const int visible = length - tile * TILE - group * LIST;
    const bool tail = length < (tile + 1) * TILE;

    acc_t product[BLOCKS][SCORE_TILES];
    UNROLL for (int b = 0; b < BLOCKS; b++)
      UNROLL for (int t = 0; t < SCORE_TILES; t++)
        UNROLL for (int a = 0; a < PER_LANE * RUN; a++) product[b][t][a] = 0;
    UNROLL for (int t = 0; t < SCORE_TILES; t++)
      UNROLL for (int u = 0; u < K_STEPS; u++) {
        const kv_fragment k = fragment_of<KV_K>(u, [&](int word) { return words.k[t][word]; });
        UNROLL for (int b = 0; b < BLOCKS; b++)
          UNROLL for (int p = 0; p < Q_FRAGMENTS; p++) product[b][t] = multiply(k, query_fragment(b, p, u), product[b][t]);
      }
    if (EARLY_LOADS && more) load_k(words, ids, k_head, k_stride_b, k_heads_stride, tile + WAVES, index, group);

    float v_log[SCALE_WORDS];
    if constexpr (V_SCALED)
      UNROLL for (int n = 0; n < SCALE_WORDS; n++) v_log[n] = log2_fast(scales.v[n]);

    other_fragment weights[BLOCKS][P_FRAGMENTS][V_STEPS];
    UNROLL for (int b = 0; b < BLOCKS; b++)
      UNROLL for (int c = 0; c < PER_LANE; c++) {
        float score[LIST], weighted[LIST]; // without and with log2(V scale)
        UNROLL for (int e = 0; e < LIST; e++) {
          float s = product[b][e / RUN][c * RUN + e % RUN];
          if constexpr (FOLDED) s += lane_plus_8(s);
          s *= row_scale[b][c];
          if constexpr (K_SCALED) s *= index_lane(scales.k[e / INDICES], e % INDICES);
          score[e] = weighted[e] = s;
          if constexpr (V_SCALED) weighted[e] += index_lane(v_log[e / INDICES], e % INDICES);
        }
        if (tail)
          UNROLL for (int e = 0; e < LIST; e++)
            if (e >= visible) score[e] = weighted[e] = MASKED;
        float tile_top = NEVER, tile_base = NEVER;
        UNROLL for (int e = 0; e < LIST; e++) {
          tile_top = max_of(tile_top, weighted[e]);
          if constexpr (V_SCALED) tile_base = max_of(tile_base, score[e]);
        }
        const float new_top = max_of(top[b][c], group_max(tile_top));
        const float rescale = exp2_fast(top[b][c] - new_top);
        top[b][c] = new_top;
        UNROLL for (int m = 0; m < VALUE_TILES; m++)
          UNROLL for (int r = 0; r < RUN; r++) output[b][m][c * RUN + r] *= rescale;
        const float new_base = V_SCALED ? max_of(base[b][c], tile_base) : new_top - P_SHIFT;
        sum[b][c] *= exp2_fast(base[b][c] - new_base);
        base[b][c] = new_base;
        UNROLL for (int e = 0; e < LIST; e += OPERAND::PER_WORD) {
          float p[OPERAND::PER_WORD];
          UNROLL for (int i = 0; i < OPERAND::PER_WORD; i++) {
            p[i] = exp2_fast(weighted[e + i] - (new_top - P_SHIFT));
            sum[b][c] += V_SCALED ? exp2_fast(score[e + i] - new_base) : p[i];
          }
          other_fragment parts[P_PARTS];
          const int word = e % ELEMENTS / OPERAND::PER_WORD * PER_LANE + c;
          split_word<P_PARTS>(p, index, parts, word);
          UNROLL for (int f = 0; f < P_FRAGMENTS; f++) weights[b][f][e / ELEMENTS].w[word] = parts[f].w[word];
        }
      }
    if (more) {
      if (!EARLY_LOADS) load_k(words, ids, k_head, k_stride_b, k_heads_stride, tile + WAVES, index, group);
//@ load_scales next
    }

    if (tail) clear_invisible(words, visible);
    UNROLL for (int m = 0; m < VALUE_TILES; m++)
      UNROLL for (int u = 0; u < V_STEPS; u++) {
        const kv_fragment v = fragment_of<KV_V>(u, [&](int word) { return value_word(words, m, word); });
        UNROLL for (int b = 0; b < BLOCKS; b++)
          UNROLL for (int f = 0; f < P_FRAGMENTS; f++) output[b][m] = multiply(v, weights[b][f][u], output[b][m]);
      }
    if (more) {
      load_v(words, ids, v_head, v_stride_b, v_heads_stride, tile + WAVES, index, group);
      if (tile + 2 * WAVES < end) load_pages(ids, table, tile + 2 * WAVES, length - 1, index, group);
    }
  }

  // The waves meet: every wave leaves its output and its three numbers a column in LDS.
  SHARED float shared_output[WAVES][BLOCKS * VALUE_TILES * PER_LANE * RUN][WAVE];
  SHARED float shared_row[WAVES][BLOCKS * PER_LANE][INDICES][3];
  UNROLL for (int b = 0; b < BLOCKS; b++) {
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      const float lowest = group_max(base[b][c]);
      const float total = group_sum(sum[b][c] * exp2_fast(base[b][c] - lowest));
      if (group == 0) {
        float *row = shared_row[wave][b * PER_LANE + c][index];
        row[0] = top[b][c];
        row[1] = lowest;
        row[2] = total;
      }
    }
    UNROLL for (int m = 0; m < VALUE_TILES; m++)
      UNROLL for (int a = 0; a < PER_LANE * RUN; a++) {
        float x = output[b][m][a];
        if constexpr (FOLDED) x += lane_plus_8(x);
        shared_output[wave][(b * VALUE_TILES + m) * PER_LANE * RUN + a][lane] = x;
      }
  }
  barrier();

  const i64 item = (i64)sequence * kv_heads + kv_head;
  UNROLL for (int b = 0; b < BLOCKS; b++)
    UNROLL for (int c = 0; c < PER_LANE; c++) {
      const int head = b * COLUMNS + index + c * INDICES;
      if (head >= HEADS || (FOLDED && index >= COLUMNS / 2)) continue;
      float highest = NEVER, lowest = NEVER, total = 0, weight[WAVES];
      UNROLL for (int w = 0; w < WAVES; w++) {
        const float *row = shared_row[w][b * PER_LANE + c][index];
        highest = max_of(highest, row[0]);
        lowest = max_of(lowest, row[1]);
      }
      UNROLL for (int w = 0; w < WAVES; w++) {
        const float *row = shared_row[w][b * PER_LANE + c][index];
        weight[w] = exp2_fast(row[0] - highest);
        total += row[2] * exp2_fast(row[1] - lowest);
      }
      highest -= P_SHIFT;
      const float inverse = total > 0 || total != total ? exp2_fast(highest - lowest) / total : 0.0f;
      for (int m = wave; m < VALUE_TILES; m += WAVES)
        UNROLL for (int r = 0; r < RUN; r++) {
          float x = 0;
          UNROLL for (int w = 0; w < WAVES; w++)
            x = fused(shared_output[w][((b * VALUE_TILES + m) * PER_LANE + c) * RUN + r][lane], weight[w], x);
          const int channel = channel_of(m, group * RUN + r);
          if (splits > 1)
            ((float *)workspace)[((item * splits + split) * HEADS + head) * (HEAD_DIM_V + 4) + channel] = x;
          else
            store_output(out, (item * HEADS + head) * HEAD_DIM_V + channel, x * inverse * value_scale);
        }
      if (wave == 0 && group == 0) {
        if (splits > 1) {
          float *row = (float *)workspace + ((item * splits + split) * HEADS + head) * (HEAD_DIM_V + 4) + HEAD_DIM_V;
          row[0] = highest;
          row[1] = lowest;
          row[2] = total;
          row[3] = 0;
        } else {
//@ store_lse decode
        }
      }
    }
}

//@ merge
