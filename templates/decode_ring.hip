//@ contract
//@ prelude
//@ ring_prelude
//@ solved
// ---- decode, ring: one query row per sequence over a paged cache, split over its tokens --------------------
//
// A workgroup takes one split of one (sequence, kv head). Producer warps copy tiles of K, V and scales, as they lie in
// the cache, into a ring of stages in shared memory; consumer warpgroups take the stages in turn. Tokens, then channels,
// are the rows of the products, query heads the columns. K and V are widened to fp16, exactly, on their way from shared
// memory into fragments: the fp8 products of sm_90 sum with 14 bits, too few for large scores and for sums that cancel.
//
// Scores carry log2(e) and log2(V scale): exp2 of them never exceeds 2^P_SHIFT whatever the scales are. A thread of warp
// w and lane 4g + t holds tokens token_of(product, w, half, g) and heads 8b + 2t, 8b + 2t + 1.

constexpr float NEVER = -3.0e38f; // below every score, and finite: NEVER - NEVER is 0, not NaN
#define MASKED float_of(0xff800000u) // -infinity: exp2 of it is 0

constexpr int PRODUCTS = TILE / 64;               // score products of a tile
constexpr int BLOCKS = COLUMN_HEADS / 8;          // blocks of eight columns
constexpr int PER_THREAD = 2 * BLOCKS;            // heads of a thread
constexpr int VALUE_PRODUCTS = HEAD_DIM_V / 64;
constexpr u32 K_BYTES = TILE * HEAD_DIM_QK, V_BYTES = TILE * HEAD_DIM_V, SCALE_BYTES = TILE * 4;
constexpr u32 STAGE_BYTES = K_BYTES + V_BYTES + (SCALED ? 2 * SCALE_BYTES : 0);
constexpr int CHUNKS = HEAD_DIM_QK / 16;          // of K and q: 16 channels
constexpr int TOKEN_CHUNKS = TILE / 16;           // of V and the weights: 16 tokens
constexpr u32 CHUNK_BYTES = 2 * COLUMN_HEADS * 16; // of q or the weights: [half][head][8] fp16
constexpr u32 Q_BYTES = HEAD_DIM_QK * COLUMN_HEADS * 2, P_BYTES = TILE * COLUMN_HEADS * 2;
constexpr u32 OPERAND_BYTES = Q_BYTES + P_BYTES;  // of one consumer
constexpr int PIECES = TILE / PIECE;
constexpr int COPIES = PIECES * (K_SLICES + 1);   // of a tile: K slices and one V copy for each piece
constexpr int COPIES_PER_LANE = (COPIES + 32 * PRODUCERS - 1) / (32 * PRODUCERS);
constexpr int SCALE_WARPS = SCALED ? PRODUCERS < 2 ? 1 : 2 : 0; // producers that copy scales
constexpr int SCALE_COPIES = SCALED ? TILE / 64 / SCALE_WARPS : 1; // of a lane: four scales each

struct shared_rows {
  float tile_top[4][COLUMN_HEADS];           // of one consumer's warps
  float q_scale[COLUMN_HEADS];
  float top[COLUMN_HEADS];
  float base[4][COLUMN_HEADS], sum[4][COLUMN_HEADS];
};

// The token of row half * 8 + g of warp w in score product `product`: the order in which its groups of eight rows lie.
DEVICE int token_of(int product, int w, int half, int g) {
  return CONSECUTIVE ? product * 64 + 16 * w + 8 * half + g : (2 * w + half) * PIECE + product * 8 + g;
}

// The fragments of 64 rows over N chunks of 16 bytes. The rows of this warp lie in two groups of eight at `address` and
// `group` bytes on, chunks `leading` bytes apart; element 4t + e of a chunk becomes product element 2t + e (e < 2) or
// 2t + e + 6, and the other operand is laid out to match.
template <int N> DEVICE void load_fragments(u32 (*fragment)[4], u32 address, u32 leading, u32 group, int lane) {
  UNROLL for (int c = 0; c < N; c += 2) {
    u32 words[4];
    load_blocks(words, address + lane / 8 % 2 * group + (c + lane / 16) * leading + lane % 8 * 16);
    UNROLL for (int m = 0; m < 4; m++) {
      u32 halves[2];
      format_fp8::widen(words[m], halves);
      fragment[c + m / 2][m % 2] = halves[0];
      fragment[c + m / 2][m % 2 + 2] = halves[1];
    }
  }
}

// 64 rows of fragments times N chunks of q or weights at `other`.
template <int N> DEVICE void multiply(float *sums, u32 (*fragment)[4], u32 other) {
  products_begin();
  UNROLL for (int c = 0; c < N; c++)
    product_fp16<COLUMN_HEADS>(sums, fragment[c], operand_at(other + c * CHUNK_BYTES, COLUMN_HEADS * 16, 128), c > 0);
  products_commit();
}

KERNEL_RESIDENT(THREADS, RESIDENT) void heddle_decode(
//@ arguments decode
) {
  extern __shared__ __align__(1024) u8 shared_memory[];
  // full[STAGES], empty[STAGES]; from 256 the stages; then each consumer's operands, its rows, and its output
  const u32 shared = shared_address(shared_memory);
  const u32 full = shared, empty = shared + 8 * STAGES, stages = shared + 256;
  u8 *const stage_memory = shared_memory + 256;
  u8 *const operand_memory = stage_memory + STAGES * STAGE_BYTES;
  shared_rows *const rows = (shared_rows *)(operand_memory + CONSUMERS * OPERAND_BYTES);
  float *const exchange = (float *)(rows + CONSUMERS);

  const int thread = thread_id(), warp = wave_id(), lane = lane_id();
  const int sequence = workgroup_x(), kv_head = workgroup_y(), split = workgroup_z();
//@ select
  if (thread == CONSUMERS * 128) {
    for (int i = 0; i < STAGES; i++) {
      arrivals_init(full + 8 * i, PRODUCERS + 32 * SCALE_WARPS);
      arrivals_init(empty + 8 * i, 4);
    }
    arrivals_init_done();
  }
  __syncthreads();
  const int tiles = length > 0 ? (length - 1) / TILE + 1 : 0;
  const int first = (int)((i64)tiles * split / splits), end = (int)((i64)tiles * (split + 1) / splits);

  if (warp >= CONSUMERS * 4) {
    // ---- a producer: copy c of a tile goes to producer c % PRODUCERS
    const int producer = warp - CONSUMERS * 4;
    const u8 *k_head = (const u8 *)k_cache + (i64)kv_head * k_stride_h;
    const u8 *v_head = (const u8 *)v_cache + (i64)kv_head * v_stride_h;
    const i64 k_heads_stride = kv_heads * k_stride_h, v_heads_stride = kv_heads * v_stride_h;
//@ scale_heads
    const u64 policy = read_once_policy();
    const int last = length - 1;
    int pages[COPIES_PER_LANE], scale_pages[SCALE_COPIES];
    const auto copy_of = [&](int r) { return (lane + 32 * r) * PRODUCERS + producer; };
    const auto piece_of = [&](int r) { return copy_of(r) / (K_SLICES + 1) * PIECE; };
    const auto scale_unit = [&](int r) { return (producer * SCALE_COPIES + r) * 32 + lane; };
    const auto find_pages = [&](int tile) { // a tile ahead of its copies
      UNROLL for (int r = 0; r < COPIES_PER_LANE; r++) {
        const int token = tile * TILE + piece_of(r);
        pages[r] = table[(u32)(token < last ? token : last) / PAGE];
      }
      if constexpr (SCALED)
        UNROLL for (int r = 0; r < SCALE_COPIES; r++) {
          const int token = tile * TILE + scale_unit(r) % (TILE / 4) * 4;
          scale_pages[r] = table[(u32)(token < last ? token : last) / PAGE];
        }
    };
    if (first < end) find_pages(first);
    for (int tile = first; tile < end; tile++) {
      const int i = tile - first, stage = i % STAGES;
      if (i >= STAGES) wait_for(empty + 8 * stage, (i / STAGES & 1) ^ 1);
      const u32 bar = full + 8 * stage, to = stages + stage * STAGE_BYTES;
      u32 bytes = 0;
      UNROLL for (int r = 0; r < COPIES_PER_LANE; r++)
        if (copy_of(r) < COPIES && tile * TILE + piece_of(r) < length)
          bytes += copy_of(r) % (K_SLICES + 1) < K_SLICES ? PIECE * HEAD_DIM_QK / K_SLICES : PIECE * HEAD_DIM_V;
      bytes = warp_sum(bytes);
      if (lane == 0) arrive_expecting(bar, bytes);
      __syncwarp();
      UNROLL for (int r = 0; r < COPIES_PER_LANE; r++) {
        const int piece = piece_of(r), slice = copy_of(r) % (K_SLICES + 1), token = tile * TILE + piece;
        if (copy_of(r) >= COPIES || token >= length) continue;
        const u32 slot = (u32)token % PAGE;
        if (slice < K_SLICES)
          copy_bulk(to + (K_SLICES == 1 ? piece * HEAD_DIM_QK : slice * TILE * 16 + piece * 16),
                    k_head + pages[r] * k_stride_b + k_offset(slot, slice * 16, k_heads_stride),
                    PIECE * HEAD_DIM_QK / K_SLICES, bar, policy);
        else
          copy_bulk(to + K_BYTES + piece * HEAD_DIM_V, v_head + pages[r] * v_stride_b + v_offset(slot, 0, v_heads_stride),
                    PIECE * HEAD_DIM_V, bar, policy);
      }
//@ copy_scales
      if (tile + 1 < end) find_pages(tile + 1);
    }
    wait_own_copies();
    return;
  }

  // ---- a consumer: tiles first + warpgroup, first + warpgroup + CONSUMERS, ...
  const int consumer = warp / 4, w = warp % 4, g = lane / 4, t = lane % 4, member = thread % 128;
  u8 *const q_memory = operand_memory + consumer * OPERAND_BYTES, *const p_memory = q_memory + Q_BYTES;
  const u32 q_shared = shared_address(q_memory), p_shared = shared_address(p_memory);
  shared_rows &row = rows[consumer];
//@ logits
//@ value_scale

  // The query: 16 channels a thread, each row scaled by a power of two, as fp16 [chunk][half][head][8]. The halves hold
  // channels 4t, 4t + 1 and 4t + 2, 4t + 3: what a lane of K's fragments gets from one word.
  if (member < COLUMN_HEADS * CHUNKS) {
    const int head = member / CHUNKS, chunk = member % CHUNKS;
    float x[16];
    u32 loaded[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (head < HEADS) {
      const u8 *from = (const u8 *)q + (((i64)sequence * kv_heads + kv_head) * HEADS + head) * HEAD_DIM_QK * 2 + chunk * 32;
      load_stream<16>(loaded, 0, from);
      load_stream<16>(loaded, 16, from + 16);
    }
    UNROLL for (int i = 0; i < 8; i++) QUERY::unpack(loaded[i], x + 2 * i);
    float largest = 0;
    UNROLL for (int i = 0; i < 16; i++) largest = max_of(largest, abs_of(x[i]));
    UNROLL for (int mask = 1; mask < CHUNKS; mask *= 2)
      largest = max_of(largest, lane_xor(largest, mask)); // whole warps are in here or not
    int exponent = (int)(bits_of(largest) >> 23);
    exponent = Q_TOP + 127 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent);
    exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
    const float up = float_of((u32)(127 + exponent) << 23);
    UNROLL for (int i = 0; i < 16; i++) x[i] *= up;
    u32 *const to = (u32 *)(q_memory + (chunk * 2 * COLUMN_HEADS + head) * 16);
    UNROLL for (int i = 0; i < 4; i++) {
      to[i] = format_fp16::pack(x + 4 * i);
      to[COLUMN_HEADS * 4 + i] = format_fp16::pack(x + 4 * i + 2);
    }
    // an infinite element makes the row NaN, as its products would
    if (chunk == 0) row.q_scale[head] = float_of((u32)(127 - exponent) << 23) * (largest - largest + 1.0f) * logits;
  }
  publish_shared();
  barrier_of(1 + consumer, 128);

  const auto head_of = [&](int j) { return j / 2 * 8 + 2 * t + j % 2; };
  float q_scale[PER_THREAD];
  float top[PER_THREAD];  // running maximum of the scores with V scales: what `output` is relative to
  float base[PER_THREAD]; // running maximum of the thread's own plain scores: what `sum` is relative to
  float sum[PER_THREAD];
  float output[VALUE_PRODUCTS][2][PER_THREAD]; // [channel / 64][half][head]
  UNROLL for (int j = 0; j < PER_THREAD; j++) {
    q_scale[j] = row.q_scale[head_of(j)];
    top[j] = base[j] = NEVER;
    sum[j] = 0;
    UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++) output[m][0][j] = output[m][1][j] = 0;
  }

  for (int tile = first + consumer; tile < end; tile += CONSUMERS) {
    const int i = tile - first, stage = i % STAGES;
    wait_for(full + 8 * stage, i / STAGES & 1);
    const u32 k_shared = stages + stage * STAGE_BYTES, v_shared = k_shared + K_BYTES;
    u8 *const v_memory = stage_memory + stage * STAGE_BYTES + K_BYTES;

    float product[PRODUCTS][COLUMN_HEADS / 2];
    UNROLL for (int n = 0; n < PRODUCTS; n++) {
      u32 fragment[CHUNKS][4];
      load_fragments<CHUNKS>(fragment, k_shared + n * K_PRODUCT + 2 * w * K_GROUP, K_LEADING, K_GROUP, lane);
      multiply<CHUNKS>(product[n], fragment, q_shared);
    }

    const int visible = length - tile * TILE; // tokens of this tile that exist
    const bool tail = visible < TILE;
    float k_scale_of[PRODUCTS][2], v_log[PRODUCTS][2];
    UNROLL for (int n = 0; n < PRODUCTS; n++)
      UNROLL for (int half = 0; half < 2; half++) {
        const int token = token_of(n, w, half, g);
        const float *scales = (const float *)(v_memory + V_BYTES);
        k_scale_of[n][half] = SCALED ? scales[token] : 1.0f;
        v_log[n][half] = SCALED ? log2_fast(scales[TILE + token]) : 0.0f;
      }
    if (tail) { // 0 * NaN is NaN: V of tokens that do not exist becomes 0
      for (int c = visible / 16; c < TILE / 16; c++)
        for (int d = member; d < HEAD_DIM_V; d += 128) {
          u32 *const words = (u32 *)(v_memory + (c * HEAD_DIM_V + d) * 16);
          UNROLL for (int n = 0; n < 4; n++) {
            const int keep = visible - c * 16 - n * 4;
            words[n] &= keep >= 4 ? ~0u : keep <= 0 ? 0u : (1u << 8 * keep) - 1u;
          }
        }
    }
    products_wait();

    float score[PRODUCTS][2][PER_THREAD], weighted[PRODUCTS][2][PER_THREAD]; // without and with log2(V scale)
    UNROLL for (int n = 0; n < PRODUCTS; n++)
      UNROLL for (int half = 0; half < 2; half++)
        UNROLL for (int j = 0; j < PER_THREAD; j++) {
          const int at = j / 2 * 4 + half * 2 + j % 2;
          float s = product[n][at] * q_scale[j];
          if constexpr (SCALED) s *= k_scale_of[n][half];
          score[n][half][j] = s;
          weighted[n][half][j] = SCALED ? s + v_log[n][half] : s;
        }
    if (tail)
      UNROLL for (int n = 0; n < PRODUCTS; n++)
        UNROLL for (int half = 0; half < 2; half++)
          if (token_of(n, w, half, g) >= visible)
            UNROLL for (int j = 0; j < PER_THREAD; j++) score[n][half][j] = weighted[n][half][j] = MASKED;

    float tile_top[PER_THREAD];
    UNROLL for (int j = 0; j < PER_THREAD; j++) {
      float x = NEVER;
      UNROLL for (int n = 0; n < PRODUCTS; n++) x = max_of(x, max_of(weighted[n][0][j], weighted[n][1][j]));
      UNROLL for (int mask = 4; mask < 32; mask *= 2) x = max_of(x, lane_xor(x, mask));
      if (g == 0) row.tile_top[w][head_of(j)] = x;
    }
    barrier_of(1 + consumer, 128);
    float rescale[PER_THREAD];
    UNROLL for (int j = 0; j < PER_THREAD; j++) {
      tile_top[j] = top[j];
      UNROLL for (int n = 0; n < 4; n++) tile_top[j] = max_of(tile_top[j], row.tile_top[n][head_of(j)]);
      rescale[j] = exp2_fast(top[j] - tile_top[j]);
      top[j] = tile_top[j];
      float lowest = SCALED ? base[j] : top[j] - P_SHIFT;
      if constexpr (SCALED)
        UNROLL for (int n = 0; n < PRODUCTS; n++) lowest = max_of(lowest, max_of(score[n][0][j], score[n][1][j]));
      sum[j] *= exp2_fast(base[j] - lowest);
      base[j] = lowest;
    }
    UNROLL for (int n = 0; n < PRODUCTS; n++)
      UNROLL for (int half = 0; half < 2; half++) {
        // fp16 [chunk][half][head][8], in the order of V's fragments
        const int token = token_of(n, w, half, g), place = token % 16 / 4 * 2 + token % 2;
        u16 *const to = (u16 *)(p_memory + token / 16 * CHUNK_BYTES + token / 2 % 2 * COLUMN_HEADS * 16) + place;
        UNROLL for (int b = 0; b < BLOCKS; b++) {
          float p[2];
          UNROLL for (int e = 0; e < 2; e++) {
            const int j = 2 * b + e;
            p[e] = exp2_fast(weighted[n][half][j] - (top[j] - P_SHIFT));
            sum[j] += SCALED ? exp2_fast(score[n][half][j] - base[j]) : p[e];
          }
          const u32 pair = format_fp16::pack(p);
          to[head_of(2 * b) * 8] = (u16)pair;
          to[head_of(2 * b) * 8 + 8] = (u16)(pair >> 16);
        }
      }
    publish_shared();
    barrier_of(1 + consumer, 128);

    float value[VALUE_PRODUCTS][COLUMN_HEADS / 2];
    UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++) {
      u32 fragment[TOKEN_CHUNKS][4];
      load_fragments<TOKEN_CHUNKS>(fragment, v_shared + (m * 64 + w * 16) * 16, HEAD_DIM_V * 16, 128, lane);
      multiply<TOKEN_CHUNKS>(value[m], fragment, p_shared);
    }
    products_wait();
    if (lane == 0) arrive(empty + 8 * stage);
    UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
      UNROLL for (int half = 0; half < 2; half++)
        UNROLL for (int j = 0; j < PER_THREAD; j++) {
          const int at = j / 2 * 4 + half * 2 + j % 2;
          output[m][half][j] = fused(output[m][half][j], rescale[j], value[m][at]);
        }
  }

  // ---- the consumers meet: all but the first leave their output in shared memory
  constexpr int OUTPUTS = VALUE_PRODUCTS * 2 * PER_THREAD;
  UNROLL for (int j = 0; j < PER_THREAD; j++) {
    float lowest = base[j];
    UNROLL for (int mask = 4; mask < 32; mask *= 2) lowest = max_of(lowest, lane_xor(lowest, mask));
    float total = sum[j] * exp2_fast(base[j] - lowest);
    UNROLL for (int mask = 4; mask < 32; mask *= 2) total += lane_xor(total, mask);
    if (g == 0) {
      row.base[w][head_of(j)] = lowest;
      row.sum[w][head_of(j)] = total;
      if (w == 0) row.top[head_of(j)] = top[j];
    }
  }
  if (consumer > 0)
    UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
      UNROLL for (int half = 0; half < 2; half++)
        UNROLL for (int j = 0; j < PER_THREAD; j++)
          exchange[((consumer - 1) * OUTPUTS + (m * 2 + half) * PER_THREAD + j) * 128 + member] = output[m][half][j];
  barrier_of(15, CONSUMERS * 128);
  if (consumer > 0) return;

  const i64 item = (i64)sequence * kv_heads + kv_head;
  UNROLL for (int j = 0; j < PER_THREAD; j++) {
    const int head = head_of(j);
    float highest = NEVER, lowest = NEVER, total = 0, weight[CONSUMERS];
    UNROLL for (int c = 0; c < CONSUMERS; c++) {
      highest = max_of(highest, rows[c].top[head]);
      UNROLL for (int n = 0; n < 4; n++) lowest = max_of(lowest, rows[c].base[n][head]);
    }
    UNROLL for (int c = 0; c < CONSUMERS; c++) {
      weight[c] = exp2_fast(rows[c].top[head] - highest);
      UNROLL for (int n = 0; n < 4; n++) total += rows[c].sum[n][head] * exp2_fast(rows[c].base[n][head] - lowest);
    }
    highest -= P_SHIFT;
    const float inverse = total > 0 || total != total ? exp2_fast(highest - lowest) / total : 0.0f;
    if (head >= HEADS) continue;
    float *const partial = (float *)workspace + ((item * splits + split) * HEADS + head) * PARTIAL_WORDS;
    UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
      UNROLL for (int half = 0; half < 2; half++) {
        float x = output[m][half][j] * weight[0];
        UNROLL for (int c = 1; c < CONSUMERS; c++)
          x = fused(exchange[((c - 1) * OUTPUTS + (m * 2 + half) * PER_THREAD + j) * 128 + member], weight[c], x);
        const int channel = m * 64 + w * 16 + half * 8 + g;
        if (splits > 1)
          partial[channel] = x;
        else
          store_output(out, (item * HEADS + head) * HEAD_DIM_V + channel, x * inverse * value_scale);
      }
    if (w == 0 && g == 0) {
      if (splits > 1) {
        partial[HEAD_DIM_V] = highest;
        partial[HEAD_DIM_V + 1] = lowest;
        partial[HEAD_DIM_V + 2] = total;
        partial[HEAD_DIM_V + 3] = 0;
      } else {
//@ store_lse decode
      }
    }
  }
}

//@ merge
