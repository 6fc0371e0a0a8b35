// ---- the tail: the last channels of K, stored in a format of their own in the same page, without a scale ----
//
// Its products are added to those of the channels before it, once these have their scale.

struct tail_words {
  u32 k[SCORE_TILES][TAIL_WORDS];
};

// The channels of a lane of `group`, dealt as those of K are, and whether the tail has them.
DEVICE u32 tail_channel(int i, int group) { return (u32)((i / TAIL_CHUNK * GROUPS + group) * TAIL_CHUNK + i % TAIL_CHUNK); }
DEVICE bool tail_exists(int i, int group) {
  return (i / TAIL_CHUNK + 1) * GROUPS * TAIL_CHUNK <= TAIL_CHANNELS || tail_channel(i, group) < TAIL_CHANNELS;
}

// `k_head`: the cache at the first page and this head; strides in elements of K's codes.
DEVICE void load_tail(tail_words &words, const tile_pages &ids, const u8 *k_head, i64 stride_b, i64 heads_stride, int tile,
                      int index, int group) {
  const int first = tile * TILE + index / RUN * LIST + index % RUN;
  heads_stride = heads_stride * KV_K::BYTES / TAIL::BYTES;
  UNROLL for (int t = 0; t < SCORE_TILES; t++) {
    const u32 slot = (u32)(first + t * RUN) % PAGE;
    const u8 *page = k_head + TAIL_AT + (i64)ids.k[K_EXACT ? t : t * RUN / OWN_RUN] * stride_b * KV_K::BYTES;
    UNROLL for (int i = 0; i < TAIL_LIST; i += TAIL_LOAD)
      load_stream<TAIL_LOAD * TAIL::BYTES>(
          words.k[t], i * TAIL::BYTES, page + tail_offset(slot, tail_exists(i, group) ? tail_channel(i, group) : 0u, heads_stride) * TAIL::BYTES);
  }
}

// The query's channels of the tail from its row; gives the largest magnitude.
DEVICE float load_tail_query(const u8 *row, bool exists, int group, float *x) {
  float largest = 0;
  UNROLL for (int i = 0; i < TAIL_LIST; i += TAIL_CHUNK) {
    u32 loaded[TAIL_CHUNK / QUERY::PER_WORD];
    UNROLL for (int w = 0; w < TAIL_CHUNK / QUERY::PER_WORD; w++) loaded[w] = 0;
    if (exists && tail_exists(i, group))
      load_stream<TAIL_CHUNK * QUERY::BYTES>(loaded, 0, row + (HEAD_DIM_QK - TAIL_CHANNELS + tail_channel(i, group)) * QUERY::BYTES);
    UNROLL for (int w = 0; w < TAIL_CHUNK / QUERY::PER_WORD; w++) QUERY::unpack(loaded[w], x + i + w * QUERY::PER_WORD);
  }
  UNROLL for (int i = 0; i < TAIL_LIST; i++) largest = max_of(largest, abs_of(x[i]));
  return largest;
}

// The same as operands of column c of the lane. Where K's parts share a product, the second half of the columns adds
// nothing unless the tail has two parts as well.
DEVICE void split_tail_query(float *x, float up, int index, int c, tail_query_fragment (&query)[TAIL_FRAGMENTS][TAIL_STEPS]) {
  UNROLL for (int i = 0; i < TAIL_LIST; i += TAIL_OPERAND::PER_WORD) {
    UNROLL for (int k = 0; k < TAIL_OPERAND::PER_WORD; k++) x[i + k] *= up;
    tail_query_fragment parts[TAIL_PARTS];
    const int word = i % TAIL_ELEMENTS / TAIL_OPERAND::PER_WORD * PER_LANE + c;
    split_word<TAIL_PARTS, TAIL_OPERAND>(x + i, index, parts, word);
    if (FOLDED && TAIL_PARTS == 1 && index >= COLUMNS / 2) parts[0].w[word] = 0;
    UNROLL for (int p = 0; p < TAIL_FRAGMENTS; p++) query[p][i / TAIL_ELEMENTS].w[word] = parts[p].w[word];
  }
}

// Gives the products so far their scale and adds the tail's.
DEVICE void add_tail(acc_t (&product)[BLOCKS][SCORE_TILES], const tail_words &words,
                     const tail_query_fragment (&query)[BLOCKS][TAIL_FRAGMENTS][TAIL_STEPS], const tile_scales &scales,
                     float key_scale, int group) {
  UNROLL for (int t = 0; t < SCORE_TILES; t++) {
    UNROLL for (int r = 0; r < RUN; r++) {
      const int e = t * RUN + r;
      float factor = key_scale;
      if constexpr (K_SCALED && K_PARTS == 1) factor *= index_lane(scale_value(scales.k[0][e / INDICES]), e % INDICES);
      UNROLL for (int b = 0; b < BLOCKS; b++)
        UNROLL for (int c = 0; c < PER_LANE; c++) product[b][t][c * RUN + r] *= factor;
    }
    UNROLL for (int u = 0; u < TAIL_STEPS; u++) {
      const tail_key_fragment k = fragment_of<tail_key_fragment, TAIL, TAIL_OPERAND>(
          u, [&](int word) { return tail_exists(word * TAIL::PER_WORD, group) ? words.k[t][word] : 0u; });
      UNROLL for (int b = 0; b < BLOCKS; b++)
        UNROLL for (int p = 0; p < TAIL_FRAGMENTS; p++) product[b][t] = multiply(k, query[b][p][u], product[b][t]);
    }
  }
}
