//@ contract
//@ prelude
//@ ring_prelude
//@ solved
// ---- decode, ring: one query row per sequence over a paged cache -------------------------------------------
//
// A workgroup takes one part of the line of tiles. Each of its teams, a consumer warpgroup with producer warps and stages
// of its own, runs through the (sequence, kv head) items in its share of that part: producers copy tiles of K, V and scales,
// as they lie in the cache, into a ring of stages in shared memory, without a stop from item to item, and the consumer takes
// them from there. Tokens, then channels, are the rows of the products, query heads the columns. 8 bits are widened to fp16,
// exactly, on their way from shared memory into fragments: the fp8 products of sm_90 sum with 14 bits, too few for large
// scores and for sums that cancel.
//
// Scores carry log2(e) and log2(V scale): exp2 of them never exceeds 2^P_SHIFT whatever the scales are. A thread of warp
// w and lane 4g + t holds tokens token_of(4 * product + w, half, g) and heads 8b + 2t, 8b + 2t + 1.

constexpr float NEVER = -3.0e38f; // below every score, and finite: NEVER - NEVER is 0, not NaN
#define MASKED float_of(0xff800000u) // -infinity: exp2 of it is 0

constexpr int PRODUCTS = TILE / 64, VALUE_PRODUCTS = HEAD_DIM_V / 64; // of a warpgroup and tile
constexpr int BLOCKS = COLUMN_HEADS / 8;          // blocks of eight columns
constexpr int PER_THREAD = 2 * BLOCKS;            // heads of a thread
constexpr u32 BARRIER_BYTES = (3 * 8 * STAGES + 127) / 128 * 128;
constexpr u32 STAGE_BYTES = K_STAGE_BYTES + V_STAGE_BYTES + (SCALED ? 2 * TILE * 4 : 0);
constexpr int K_ROW_BYTES = HEAD_DIM_QK * KV_K::BYTES, V_ROW_BYTES = HEAD_DIM_V * KV_V::BYTES; // of a token
constexpr int CHUNKS = HEAD_DIM_QK / 16;          // of K and q: 16 channels
constexpr int TOKEN_CHUNKS = TILE / 16;           // of V and the weights: 16 tokens
constexpr u32 CHUNK_BYTES = 2 * COLUMN_HEADS * 16 + 16; // of q or the weights: [half][head][8] of 16 bits, and on to other banks
constexpr u32 QUERY_BYTES = HEADS * HEAD_DIM_QK * 2; // as it is stored
constexpr u32 Q_PART_BYTES = CHUNKS * CHUNK_BYTES, P_PART_BYTES = TOKEN_CHUNKS * CHUNK_BYTES;
constexpr u32 Q_BYTES = Q_PARTS * Q_PART_BYTES, P_BYTES = P_PARTS * P_PART_BYTES;
// Bulk copies of a tile: K slices and one V copy for each piece. Else 16 bytes of K and of V a lane and step; a producer has
// neighbouring tokens, and as many steps as PAGE_STEPS share a page.
constexpr int TEAM_PRODUCERS = PRODUCERS / CONSUMERS, TEAM_STAGES = STAGES / CONSUMERS;
constexpr int K_COPIES = TILE / PIECE * K_SLICES, COPIES = K_COPIES + TILE / PIECE;
constexpr int UNITS = K_ROW_BYTES / 16, STEPS = TILE * UNITS / (32 * TEAM_PRODUCERS), STEP_TOKENS = 32 / UNITS;
constexpr int PAGE_STEPS = PIECE > STEP_TOKENS ? PIECE / STEP_TOKENS : 1;
constexpr int PAGES = BULK ? (COPIES + 32 * TEAM_PRODUCERS - 1) / (32 * TEAM_PRODUCERS) : STEPS / PAGE_STEPS; // a lane's, of a tile
constexpr int PARTIAL_RUN = 2 * VALUE_PRODUCTS;    // channels of a thread
constexpr int SCALE_WARPS = SCALED ? TILE / 64 : 0; // producers that copy scales, of a tile's K and V four a lane

// What a team has of one item, for its consumer; the query follows by itself. Two of them are under way.
struct shared_item {
  i64 item;                             // sequence * kv_heads + kv_head
  int length, first_tile, end_tile;     // tokens of the sequence; tiles of it in the team's share
  int whole, divided, last;             // the part has all tiles; both teams have some; nothing follows in the share
  u64 full, empty;
};

constexpr int ITEM_ARRIVALS = 2; // its query is asked for, and what it is is there

// A number for each head of a thread.
struct __align__(4 * PER_THREAD) thread_heads {
  float x[PER_THREAD];
};

struct shared_rows {
  thread_heads tile_top[4][4]; // [warp][t]
  float q_scale[COLUMN_HEADS];
  float base[4][COLUMN_HEADS], sum[4][COLUMN_HEADS]; // [warp]
  float meeting[3][COLUMN_HEADS];                    // of the second team: top, base, sum
};

// The token of row half * 8 + g in chunk 4 * product + w of sixteen rows of the score product: those of a warp. The weights
// of eight rows and a head are one row of the value product's operand, so that they go there with one instruction for four
// times eight rows. Which tokens these are is what a fragment of V takes up: neighbours, but of a channel's 16 bytes of 8 bits
// words 2t and 2t + 1 (see load_fragments).
DEVICE int token_of(int chunk, int half, int g) {
  return chunk * 16 + (BY_ROWS || KV_V::BYTES == 2 ? half * 8 + g : g / 2 * 4 + half * 2 + g % 2);
}

// Where a token's channels begin in a stage's K, and where V has a channel of a token, the first of V_CHUNK.
DEVICE u32 k_place(int token) { return token / K_TOKENS * K_STRIDE + token % K_TOKENS * K_CHUNK_STRIDE; }
DEVICE u32 v_place(int token, int channel) {
  return token / V_TOKENS * V_STRIDE + token % V_TOKENS / V_CHUNK * V_CHUNK_STRIDE + channel * V_CHANNEL_STRIDE;
}

// The channel of row half * 8 + g of warp w in a value product. In rows of tokens a warp has neighbours, so that they come
// from different banks, and two bytes of a unit come apart in fragments.
DEVICE int channel_of(int product, int w, int half, int g) {
  const int first = (BY_ROWS ? w * VALUE_PRODUCTS + product : product * 4 + w) * 16;
  return first + (BY_ROWS && KV_V::BYTES == 1 ? g * 2 + half : half * 8 + g);
}

// Where two of 16 channels of the query go in [chunk][half][head][4] where K lies in rows: to the place of what lane t of four
// has of K there, which is every fourth 16 bytes, from t on (see load_rows).
struct query_place {
  int chunk, half, word;
};
DEVICE query_place query_place_of(int chunk, int pair) {
  const int unit = KV_K::BYTES == 2 ? chunk * 2 + pair / 4 : chunk, part = KV_K::BYTES == 2 ? pair % 4 : pair;
  return {unit / 4 * (4 / KV_K::BYTES) + part / 2, part % 2, unit % 4};
}

// The fragments of 64 rows over N chunks of a product; `address_of` gives that of a row's 16 bytes by their number, for the
// row which the lane names: g = lane % 8 of half lane / 8 % 2. Of 8 bits, element 4t + e becomes product element 2t + e
// (e < 2) or 2t + e + 6, and the other operand is laid out to match.
template <int N, typename Stored, typename Address> DEVICE void load_fragments(u32 (*fragment)[4], int lane, Address address_of) {
  if constexpr (Stored::BYTES == 2) {
    UNROLL for (int c = 0; c < N; c++) load_blocks(fragment[c], address_of(2 * c + lane / 16));
  } else {
    UNROLL for (int c = 0; c < N; c += 2) {
      u32 words[4];
      load_blocks(words, address_of(c + lane / 16));
      UNROLL for (int m = 0; m < 4; m++) {
        u32 halves[2];
        Stored::widen(words[m], halves);
        fragment[c + m / 2][m % 2] = halves[0];
        fragment[c + m / 2][m % 2 + 2] = halves[1];
      }
    }
  }
}

// The same of K in rows: lane 4g + t loads every fourth 16 bytes of rows g and g + 8, from t on, whose words are a piece of
// the lane's own fragments. `address_of` gives where the row of a half begins.
template <int N, typename Stored, typename Address> DEVICE void load_rows(u32 (*fragment)[4], int lane, Address address_of) {
  constexpr int PER_UNIT = 4 / Stored::BYTES; // fragments that share 16 bytes
  UNROLL for (int half = 0; half < 2; half++)
    UNROLL for (int c = 0; c < N; c += PER_UNIT) {
      u32 words[4];
      load_own(words, address_of(half) + (c / PER_UNIT * 4 + lane % 4) * 16);
      UNROLL for (int m = 0; m < 4; m++) {
        if constexpr (Stored::BYTES == 2) {
          fragment[c + m / 2][half + m % 2 * 2] = words[m];
        } else {
          u32 halves[2];
          Stored::widen(words[m], halves);
          fragment[c + m][half] = halves[0];
          fragment[c + m][half + 2] = halves[1];
        }
      }
    }
}

// And of V in rows of tokens, whose columns are the rows of the products, for all of a warp's channels. The lane names token
// lane % 8. Rows are a multiple of 128 bytes apart and would come from the same banks: the lanes of tokens 2t and 2t + 1 take
// the warp's OWN units of 16 bytes in an order that t has turned, which is turned back afterwards.
template <typename Stored> DEVICE void load_columns(u32 (*fragments)[TOKEN_CHUNKS][4], u32 address, int w, int lane) {
  constexpr int OWN = VALUE_PRODUCTS * Stored::BYTES;
  UNROLL for (int n = 0; n < TOKEN_CHUNKS * 2 * OWN; n += 4) { // of [chunk of tokens][half][unit]
    const int block = n + lane / 8, named = (block ^ lane % 8 / 2) % OWN;
    u32 words[4];
    load_transposed(words, address + v_place(token_of(block / OWN / 2, block / OWN % 2, lane % 8), channel_of(0, w, 0, 0)) + named * 16);
    UNROLL for (int turned = 1; turned < OWN; turned *= 2)
      UNROLL for (int m = 0; m < 4; m++)
        if (!(m & turned)) {
          const u32 first = words[m], second = words[m + turned];
          words[m] = lane & turned ? second : first;
          words[m + turned] = lane & turned ? first : second;
        }
    UNROLL for (int m = 0; m < 4; m++) {
      const int c = (n + m) / OWN / 2, half = (n + m) / OWN % 2, unit = (n + m) % OWN;
      if constexpr (Stored::BYTES == 2)
        fragments[unit / 2][c][half * 2 + unit % 2] = words[m];
      else // two channels in 16 bits
        Stored::widen(pick_bytes(words[m], words[m], 0x03010200), fragments[unit][c] + half * 2);
    }
  }
}

// 0 * NaN is NaN: V of tokens that do not exist becomes 0. Words 2 * half and 2 * half + 1 of a chunk have tokens of that half.
DEVICE void clear_tokens(u32 (*fragment)[4], int t, int visible) {
  UNROLL for (int c = 0; c < TOKEN_CHUNKS; c++)
    UNROLL for (int half = 0; half < 2; half++) {
      const int left = visible - token_of(c, half, 2 * t);
      const u32 kept = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
      UNROLL for (int m = 0; m < 2; m++) fragment[c][half * 2 + m] &= kept;
    }
}

// 64 rows of fragments times N chunks of q or weights at `other`, in PARTS that are `part_bytes` apart.
template <int N, typename Operand, int PARTS> DEVICE void multiply(float *sums, u32 (*fragment)[4], u32 other, u32 part_bytes) {
  products_begin();
  UNROLL for (int part = 0; part < PARTS; part++)
    UNROLL for (int c = 0; c < N; c++)
      product<COLUMN_HEADS>(Operand(), sums, fragment[c], operand_at(other + part * part_bytes + c * CHUNK_BYTES, COLUMN_HEADS * 16, 128),
                            c > 0 || part > 0);
  products_commit();
}

// One word of x in PARTS words whose sum is x, or close to it.
template <typename Operand, int PARTS> DEVICE void split_word(float *x, u32 *words) {
  UNROLL for (int part = 0; part < PARTS; part++) {
    words[part] = Operand::pack(x);
    if (part + 1 == PARTS) break;
    float stored[2];
    Operand::unpack(words[part], stored);
    UNROLL for (int i = 0; i < 2; i++) x[i] -= stored[i];
  }
}

//@ line

KERNEL_REGISTERS(THREADS, THREAD_REGISTERS) void heddle_decode(
//@ arguments decode
) {
  extern __shared__ __align__(1024) u8 shared_memory[];
  // barriers: K's and V's arrival and the end of use of each stage; the stages; each team's query and weights, two queries
  // as they are stored, items, and rows; and the output that the second team leaves
  const u32 shared = shared_address(shared_memory);
  const u32 k_full = shared, v_full = k_full + 8 * STAGES, empty = v_full + 8 * STAGES, stages = shared + BARRIER_BYTES;
  u8 *const stage_memory = shared_memory + BARRIER_BYTES;
  u8 *const operand_memory = stage_memory + STAGES * STAGE_BYTES;
  u8 *const stored_queries = operand_memory + CONSUMERS * (Q_BYTES + P_BYTES);
  shared_item *const all_items = (shared_item *)(stored_queries + CONSUMERS * 2 * QUERY_BYTES);
  shared_rows *const team_rows = (shared_rows *)(all_items + CONSUMERS * 2);
  float *const exchange = (float *)(team_rows + CONSUMERS);

  const int thread = thread_id(), warp = wave_id(), lane = lane_id();
//@ early
  if (!early) wait_for_previous();
  let_next_start();
  const int team = warp < CONSUMERS * 4 ? warp / 4 : (warp - CONSUMERS * 4) / TEAM_PRODUCERS;
  shared_item *const items = all_items + team * 2;
  u8 *const team_queries = stored_queries + team * 2 * QUERY_BYTES;
  const auto meet_all = [] { barrier_of(0, THREADS); };
  if (warp >= CONSUMERS * 4) {
    // ---- a producer: bulk copy c of a tile goes to the team's producer c % TEAM_PRODUCERS
    give_registers<PRODUCER_REGISTERS>();
    const int producer = (warp - CONSUMERS * 4) % TEAM_PRODUCERS;
//@ page_lists
    const tile_line line = measure_line(source, splits);
    const int part = workgroup_x();
    // The team's share of the part's tiles, the first half or the second, from its first cut to its last one.
    const int first_cut = cut_of(line, part), next_cut = cut_of(line, part + 1);
    const int middle = first_cut + (next_cut - first_cut + 1) / 2;
    const bool leads = team == 0, ends = team + 1 == CONSUMERS; // the part begins and ends with this share
    const int first = leads ? first_cut : middle, last = ends ? next_cut : middle;
    const bool busy = part < line.parts && first < last;
    line_place at = {};
    int begin = 0;
    if (busy) begin = place_cut(line, first, at);
    int item = 0; // of the share
    const i64 k_heads_stride = kv_heads * k_stride_h, v_heads_stride = kv_heads * v_stride_h;
    const u64 policy = read_once_policy();
    int pages[PAGES], scale_page = 0;
    const auto copy_of = [&](int r) { return (lane + 32 * r) * TEAM_PRODUCERS + producer; };
    const auto copied_token = [&](int r) { // of the tile
      if constexpr (BULK) return (copy_of(r) < K_COPIES ? copy_of(r) / K_SLICES : copy_of(r) - K_COPIES) * PIECE;
      return (producer * STEPS + r) * STEP_TOKENS + lane / UNITS;
    };
    const int scale_unit = producer * 32 + lane;
    const auto find_pages = [&] { // a tile ahead of its copies
      const int *table = source.pages + (i64)at.list * source.page_step;
      const int last = at.length - 1;
      if (last < 0) return;
      UNROLL for (int r = 0; r < PAGES; r++) {
        const int token = at.tile * TILE + copied_token(BULK ? r : r * PAGE_STEPS);
        pages[r] = table[(u32)(token < last ? token : last) / PAGE];
      }
      if constexpr (SCALED) {
        const int token = at.tile * TILE + scale_unit % (TILE / 4) * 4;
        scale_page = table[(u32)(token < last ? token : last) / PAGE];
      }
    };
    if (busy) find_pages();
    meet_all(); // the barriers are there
    if (!busy) {
      if (producer == 0 && lane == 0) {
        items[0].end_tile = -1;
        UNROLL for (int n = 0; n < ITEM_ARRIVALS; n++) arrive(shared_address(&items[0].full));
      }
      return;
    }
    int end = 0, end_of_part = 0; // of the share, and of the part: found while the first tile is on its way
    for (int i = 0;; i++) {
      const int stage = team * TEAM_STAGES + i % TEAM_STAGES, tile = at.tile, length = at.length;
      const int kv_head = LISTS_BY_HEAD ? (int)((u32)at.list % (u32)kv_heads) : at.kv_head;
      const u8 *k_head = (const u8 *)k_cache + (i64)kv_head * k_stride_h * KV_K::BYTES;
      const u8 *v_head = (const u8 *)v_cache + (i64)kv_head * v_stride_h * KV_V::BYTES;
//@ scale_heads
      const bool begins = producer == TEAM_PRODUCERS - 1 && (i == 0 || tile == 0); // an item
      shared_item &next = items[item % 2];
      if (begins && item >= 2) wait_for(shared_address(&next.empty), (item / 2 & 1) ^ 1);
      if (i >= TEAM_STAGES) wait_for(empty + 8 * stage, (i / TEAM_STAGES & 1) ^ 1);
      const u32 k_bar = k_full + 8 * stage, v_bar = v_full + 8 * stage, to = stages + stage * STAGE_BYTES;
      const auto copies = [&](int r, bool k) { // whether this copy is one, of K or of V
        return copy_of(r) < COPIES && (copy_of(r) < K_COPIES) == k && tile * TILE + copied_token(r) < length;
      };
      if constexpr (BULK) {
        u32 k_bytes = 0, v_bytes = 0;
        UNROLL for (int r = 0; r < PAGES; r++) {
          if (copies(r, true)) k_bytes += PIECE * K_ROW_BYTES / K_SLICES;
          if (copies(r, false)) v_bytes += PIECE * V_ROW_BYTES;
        }
        k_bytes = warp_sum(k_bytes);
        v_bytes = warp_sum(v_bytes);
        if (lane == 0) {
          arrive_expecting(k_bar, k_bytes);
          arrive_expecting(v_bar, v_bytes);
        }
        __syncwarp();
      }
      if (early && i == 0) wait_for_previous();
      if (begins) {
        if (lane == 0) {
          const i64 query = ((i64)at.list * source.heads + at.kv_head) * QUERY_BYTES;
          const u32 ready = shared_address(&next.full);
          arrive_expecting(ready, QUERY_BYTES);
          copy_bulk(shared_address(team_queries + item % 2 * QUERY_BYTES), (const u8 *)q + query, QUERY_BYTES, ready, policy);
        }
        __syncwarp();
        item++;
      }
      // scales and K first: scores are computed while V is on its way
//@ copy_scales
      if (BULK && producer < SCALE_WARPS) arrive_after_copies(k_bar);
      if constexpr (BULK) {
        UNROLL for (int r = 0; r < PAGES; r++) {
          const int piece = copied_token(r), slice = copy_of(r) % K_SLICES;
          const u32 slot = (u32)(tile * TILE + piece) % PAGE;
          if (copies(r, true))
            copy_bulk(to + k_place(piece) + slice * K_CHANNEL_STRIDE,
                      k_head + (pages[r] * k_stride_b + k_offset(slot, slice * (16 / KV_K::BYTES), k_heads_stride)) * KV_K::BYTES,
                      PIECE * K_ROW_BYTES / K_SLICES, k_bar, policy);
        }
        UNROLL for (int r = 0; r < PAGES; r++) {
          const int piece = copied_token(r);
          const u32 slot = (u32)(tile * TILE + piece) % PAGE;
          if (copies(r, false))
            copy_bulk(to + K_STAGE_BYTES + v_place(piece, 0),
                      v_head + (pages[r] * v_stride_b + v_offset(slot, 0, v_heads_stride)) * KV_V::BYTES, PIECE * V_ROW_BYTES, v_bar,
                      policy);
        }
      } else {
        const int unit = lane % UNITS * 16;
        UNROLL for (int r = 0; r < STEPS; r++) {
          const int row = copied_token(r), token = tile * TILE + row;
          const u32 slot = (u32)token % PAGE;
          if (token < length)
            copy_16_once(to + k_place(row) + unit,
                         k_head + (pages[r / PAGE_STEPS] * k_stride_b + k_offset(slot, 0, k_heads_stride)) * KV_K::BYTES + unit, policy);
        }
        arrive_after_copies(k_bar);
        UNROLL for (int r = 0; r < STEPS; r++) {
          const int row = copied_token(r), token = tile * TILE + row;
          const u32 slot = (u32)token % PAGE;
          if (token < length)
            copy_16_once(to + K_STAGE_BYTES + v_place(row, 0) + unit,
                         v_head + (pages[r / PAGE_STEPS] * v_stride_b + v_offset(slot, 0, v_heads_stride)) * KV_V::BYTES + unit, policy);
        }
        arrive_after_copies(v_bar);
      }
      if (i == 0) {
        end = end_of_cut(line, last);
        end_of_part = ends ? end : end_of_cut(line, next_cut);
      }
      if (begins && lane == 0) {
        const int rest = end - begin - i;
        next.item = (i64)at.list * source.heads + at.kv_head;
        next.length = length;
        next.first_tile = tile;
        next.end_tile = at.tiles - tile < rest ? at.tiles : tile + rest;
        next.whole = tile == 0 && at.tiles <= end_of_part - begin - i;
        next.divided = leads ? next.end_tile < at.tiles && end < end_of_part : i == 0 && tile > 0;
        next.last = next.end_tile - tile == rest;
        arrive(shared_address(&next.full));
      }
      if (i + 1 == end - begin) break;
      if (++at.tile == at.tiles) next_item(source, at);
      find_pages();
    }
    wait_own_copies();
    return;
  }

  // ---- a team's consumer
  if (thread == 0) {
    for (int i = 0; i < STAGES; i++) {
      arrivals_init(k_full + 8 * i, BULK ? TEAM_PRODUCERS + 32 * SCALE_WARPS : 32 * TEAM_PRODUCERS);
      arrivals_init(v_full + 8 * i, BULK ? TEAM_PRODUCERS : 32 * TEAM_PRODUCERS);
      arrivals_init(empty + 8 * i, 4);
    }
    for (int i = 0; i < CONSUMERS * 2; i++) {
      arrivals_init(shared_address(&all_items[i].full), ITEM_ARRIVALS);
      arrivals_init(shared_address(&all_items[i].empty), 4);
    }
    arrivals_init_done();
  }
  meet_all();
  take_registers<CONSUMER_REGISTERS>();
  if (early) wait_for_previous();
  const int w = warp % 4, g = lane / 4, t = lane % 4, member = thread % 128;
  u8 *const q_memory = operand_memory + team * (Q_BYTES + P_BYTES), *const p_memory = q_memory + Q_BYTES;
  const u32 q_shared = shared_address(q_memory), p_shared = shared_address(p_memory);
  shared_rows &row = team_rows[team];
//@ logits
//@ value_scale
  const auto wait_for_warps = [&] { barrier_of(1 + team, 128); };
  // Weights: [part][chunk][half][head][8], in the order of V's fragments. Lane 8m + i names the row of head i in block m.
  const u32 p_row = (lane / 16 * 4 + w) * CHUNK_BYTES + lane / 8 % 2 * COLUMN_HEADS * 16 + lane % 8 * 16;
  const auto head_of = [&](int j) { return j / 2 * 8 + 2 * t + j % 2; };
  const auto max_over = [](thread_heads heads, int end_mask) { // of the lanes of one t
    UNROLL for (int j = 0; j < PER_THREAD; j++)
      UNROLL for (int mask = 4; mask < end_mask; mask *= 2) heads.x[j] = max_of(heads.x[j], lane_xor(heads.x[j], mask));
    return heads;
  };

  const int q_head = member / CHUNKS, q_chunk = member % CHUNKS; // of the query: 16 channels a thread
  for (int begun = 0, n = 0;; n++) { // tiles, and items, of the share
    shared_item &here = items[n % 2];
    wait_for(shared_address(&here.full), n / 2 & 1);
    const int length = here.length, first_tile = here.first_tile, end_tile = here.end_tile;
    if (end_tile < 0) return;

    // Each row of the query scaled by a power of two, as [part][chunk][half][head][8].
    if (q_head < COLUMN_HEADS) {
      float x[16];
      UNROLL for (int c = 0; c < 16; c++) x[c] = 0;
      if (q_head < HEADS) {
        u32 stored[8];
        const u32 from = shared_address(team_queries) + n % 2 * QUERY_BYTES + (q_head * CHUNKS + q_chunk) * 32;
        load_own(stored, from);
        load_own(stored + 4, from + 16);
        UNROLL for (int c = 0; c < 8; c++) QUERY::unpack(stored[c], x + 2 * c);
      }
      float largest = 0;
      UNROLL for (int c = 0; c < 16; c++) largest = max_of(largest, abs_of(x[c]));
      UNROLL for (int mask = 1; mask < CHUNKS; mask *= 2)
        largest = max_of(largest, lane_xor(largest, mask)); // whole warps are in here or not
      int exponent = (int)(bits_of(largest) >> 23);
      exponent = Q_TOP + 127 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent);
      exponent = exponent < -120 ? -120 : exponent > 120 ? 120 : exponent;
      const float up = float_of((u32)(127 + exponent) << 23);
      UNROLL for (int c = 0; c < 16; c++) x[c] *= up;
      u32 words[8][Q_PARTS]; // two channels each
      UNROLL for (int c = 0; c < 8; c++) split_word<K_OPERAND, Q_PARTS>(x + 2 * c, words[c]);
      UNROLL for (int part = 0; part < Q_PARTS; part++) {
        u8 *const to = q_memory + part * Q_PART_BYTES + q_head * 16;
        if constexpr (BY_ROWS) {
          UNROLL for (int c = 0; c < 8; c++) {
            const query_place place = query_place_of(q_chunk, c);
            *(u32 *)(to + place.chunk * CHUNK_BYTES + place.half * COLUMN_HEADS * 16 + place.word * 4) = words[c][part];
          }
        } else { // 8 bits: channels 4t and 4t + 1, 4t + 2 and 4t + 3 in halves, which are what a lane of K's fragments gets from a word
          UNROLL for (int half = 0; half < 2; half++) {
            u32 of_half[4];
            UNROLL for (int c = 0; c < 4; c++) of_half[c] = words[KV_K::BYTES == 1 ? 2 * c + half : half * 4 + c][part];
            store_shared(to + q_chunk * CHUNK_BYTES + half * COLUMN_HEADS * 16, of_half);
          }
        }
      }
      // an infinite element makes the row NaN, as its products would
      if (q_chunk == 0) row.q_scale[q_head] = float_of((u32)(127 - exponent) << 23) * (largest - largest + 1.0f) * logits;
    }
    publish_shared();
    wait_for_warps();

    float top[PER_THREAD];  // running maximum of the scores with V scales: what `output` is relative to
    float base[PER_THREAD]; // running maximum of the thread's own plain scores: what `sum` is relative to
    float sum[PER_THREAD];
    float output[VALUE_PRODUCTS][2][PER_THREAD]; // [channel / 64][half][head]
    UNROLL for (int j = 0; j < PER_THREAD; j++) {
      top[j] = base[j] = NEVER;
      sum[j] = 0;
      UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++) output[m][0][j] = output[m][1][j] = 0;
    }

    for (int tile = first_tile; tile < end_tile; tile++) {
      const int i = begun + tile - first_tile, stage = team * TEAM_STAGES + i % TEAM_STAGES;
      wait_for(k_full + 8 * stage, i / TEAM_STAGES & 1);
      const u32 k_shared = stages + stage * STAGE_BYTES, v_shared = k_shared + K_STAGE_BYTES;

      float products[PRODUCTS][COLUMN_HEADS / 2];
      UNROLL for (int m = 0; m < PRODUCTS; m++) {
        u32 fragment[CHUNKS][4];
        if constexpr (BY_ROWS) {
          load_rows<CHUNKS, KV_K>(fragment, lane, [&](int half) { return k_shared + k_place(token_of(m * 4 + w, half, g)); });
        } else {
          const u32 k_row = k_shared + k_place(token_of(m * 4 + w, lane / 8 % 2, lane % 8));
          load_fragments<CHUNKS, KV_K>(fragment, lane, [&](int chunk) { return k_row + chunk * K_CHANNEL_STRIDE; });
        }
        multiply<CHUNKS, K_OPERAND, Q_PARTS>(products[m], fragment, q_shared, Q_PART_BYTES);
      }

      const int visible = length - tile * TILE; // tokens of this tile that exist
      const bool tail = visible < TILE;
      float k_scale_of[PRODUCTS][2], v_log[PRODUCTS][2];
      UNROLL for (int m = 0; m < PRODUCTS; m++)
        UNROLL for (int half = 0; half < 2; half++) {
          const int token = token_of(m * 4 + w, half, g);
          const float *scales = (const float *)(stage_memory + stage * STAGE_BYTES + K_STAGE_BYTES + V_STAGE_BYTES);
          k_scale_of[m][half] = SCALED ? scales[token] : 1.0f;
          v_log[m][half] = SCALED ? log2_fast(scales[TILE + token]) : 0.0f;
        }
      products_wait();

      float score[PRODUCTS][2][PER_THREAD], weighted[PRODUCTS][2][PER_THREAD]; // without and with log2(V scale)
      UNROLL for (int m = 0; m < PRODUCTS; m++)
        UNROLL for (int half = 0; half < 2; half++)
          UNROLL for (int j = 0; j < PER_THREAD; j++) {
            float x = products[m][j / 2 * 4 + half * 2 + j % 2] * row.q_scale[head_of(j)];
            if constexpr (SCALED) x *= k_scale_of[m][half];
            score[m][half][j] = x;
            weighted[m][half][j] = SCALED ? x + v_log[m][half] : x;
          }
      if (tail)
        UNROLL for (int m = 0; m < PRODUCTS; m++)
          UNROLL for (int half = 0; half < 2; half++)
            if (token_of(m * 4 + w, half, g) >= visible)
              UNROLL for (int j = 0; j < PER_THREAD; j++) score[m][half][j] = weighted[m][half][j] = MASKED;

      thread_heads tile_top;
      UNROLL for (int j = 0; j < PER_THREAD; j++) {
        tile_top.x[j] = NEVER;
        UNROLL for (int m = 0; m < PRODUCTS; m++)
          tile_top.x[j] = max_of(tile_top.x[j], max_of(weighted[m][0][j], weighted[m][1][j]));
      }
      tile_top = max_over(tile_top, 32);
      if (g == 0) row.tile_top[w][t] = tile_top;
      wait_for_warps();
      tile_top = max_over(row.tile_top[g % 4][t], 16);
      float rescale[PER_THREAD];
      UNROLL for (int j = 0; j < PER_THREAD; j++) {
        const float new_top = max_of(top[j], tile_top.x[j]);
        rescale[j] = exp2_fast(top[j] - new_top);
        top[j] = new_top;
        float lowest = SCALED ? base[j] : new_top - P_SHIFT;
        if constexpr (SCALED)
          UNROLL for (int m = 0; m < PRODUCTS; m++) lowest = max_of(lowest, max_of(score[m][0][j], score[m][1][j]));
        sum[j] *= exp2_fast(base[j] - lowest);
        base[j] = lowest;
      }
      UNROLL for (int b = 0; b < BLOCKS; b++) {
        u32 pairs[P_PARTS][PRODUCTS * 2];
        UNROLL for (int m = 0; m < PRODUCTS; m++)
          UNROLL for (int half = 0; half < 2; half++) {
            float p[2];
            UNROLL for (int e = 0; e < 2; e++) {
              const int j = 2 * b + e;
              p[e] = exp2_fast(weighted[m][half][j] - (top[j] - P_SHIFT));
              sum[j] += SCALED ? exp2_fast(score[m][half][j] - base[j]) : p[e];
            }
            u32 words[P_PARTS];
            split_word<V_OPERAND, P_PARTS>(p, words);
            UNROLL for (int part = 0; part < P_PARTS; part++) pairs[part][m * 2 + half] = words[part];
          }
        UNROLL for (int part = 0; part < P_PARTS; part++)
          store_transposed<PRODUCTS * 2>(p_shared + part * P_PART_BYTES + p_row + b * 128, pairs[part]);
      }
      publish_shared();
      wait_for_warps();

      wait_for(v_full + 8 * stage, i / TEAM_STAGES & 1);
      float value[VALUE_PRODUCTS][COLUMN_HEADS / 2];
      u32 fragments[VALUE_PRODUCTS][TOKEN_CHUNKS][4];
      if constexpr (BY_ROWS)
        load_columns<KV_V>(fragments, v_shared, w, lane);
      UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++) {
        if constexpr (!BY_ROWS)
          load_fragments<TOKEN_CHUNKS, KV_V>(fragments[m], lane, [&](int chunk) {
            return v_shared + v_place(chunk * V_CHUNK, m * 64 + w * 16 + lane % 16);
          });
        if (tail) clear_tokens(fragments[m], t, visible);
        multiply<TOKEN_CHUNKS, V_OPERAND, P_PARTS>(value[m], fragments[m], p_shared, P_PART_BYTES);
      }
      products_wait();
      if (lane == 0) arrive(empty + 8 * stage);
      UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
        UNROLL for (int half = 0; half < 2; half++)
          UNROLL for (int j = 0; j < PER_THREAD; j++)
            output[m][half][j] = fused(output[m][half][j], rescale[j], value[m][j / 2 * 4 + half * 2 + j % 2]);
    }
    begun += end_tile - first_tile;

    // ---- the warps meet: each has the sums of its own tokens, and its own channels of the output
    UNROLL for (int j = 0; j < PER_THREAD; j++) {
      float lowest = base[j];
      UNROLL for (int mask = 4; mask < 32; mask *= 2) lowest = max_of(lowest, lane_xor(lowest, mask));
      float total = sum[j] * exp2_fast(base[j] - lowest);
      UNROLL for (int mask = 4; mask < 32; mask *= 2) total += lane_xor(total, mask);
      if (g == 0) {
        row.base[w][head_of(j)] = lowest;
        row.sum[w][head_of(j)] = total;
      }
    }
    const i64 item = here.item;
    const bool whole = here.whole, divided = here.divided, last = here.last;
    wait_for_warps();
    if (lane == 0) arrive(shared_address(&here.empty));
    UNROLL for (int j = 0; j < PER_THREAD; j++) {
      base[j] = NEVER;
      sum[j] = 0;
      UNROLL for (int m = 0; m < 4; m++) base[j] = max_of(base[j], row.base[m][head_of(j)]);
      UNROLL for (int m = 0; m < 4; m++) sum[j] += row.sum[m][head_of(j)] * exp2_fast(row.base[m][head_of(j)] - base[j]);
    }

    // ---- the teams meet in the item that both have: the second, which begins with it, leaves its part and goes on
    if constexpr (CONSUMERS > 1)
      if (divided) {
        constexpr int LEFT = 1 + CONSUMERS;
        const auto left = [&](int m, int half, int j) -> float & { return exchange[((m * 2 + half) * PER_THREAD + j) * 128 + member]; };
        if (team > 0) {
          UNROLL for (int j = 0; j < PER_THREAD; j++) {
            UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
              UNROLL for (int half = 0; half < 2; half++) left(m, half, j) = output[m][half][j];
            if (w == 0 && g == 0) {
              row.meeting[0][head_of(j)] = top[j];
              row.meeting[1][head_of(j)] = base[j];
              row.meeting[2][head_of(j)] = sum[j];
            }
          }
          arrive_at(LEFT, CONSUMERS * 128);
          if (last) return;
          continue;
        }
        barrier_of(LEFT, CONSUMERS * 128);
        const float(*const theirs)[COLUMN_HEADS] = team_rows[1].meeting;
        UNROLL for (int j = 0; j < PER_THREAD; j++) {
          const float their_top = theirs[0][head_of(j)], their_base = theirs[1][head_of(j)];
          const float new_top = max_of(top[j], their_top), new_base = max_of(base[j], their_base);
          const float mine = exp2_fast(top[j] - new_top), other = exp2_fast(their_top - new_top);
          sum[j] = sum[j] * exp2_fast(base[j] - new_base) + theirs[2][head_of(j)] * exp2_fast(their_base - new_base);
          top[j] = new_top;
          base[j] = new_base;
          UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
            UNROLL for (int half = 0; half < 2; half++)
              output[m][half][j] = fused(left(m, half, j), other, output[m][half][j] * mine);
        }
      }

    if (!whole) {
      float *const partials = (float *)workspace + (i64)(2 * workgroup_x() + (first_tile == 0 ? 1 : 0)) * (HEADS * PARTIAL_WORDS);
      UNROLL for (int j = 0; j < PER_THREAD; j++) {
        if (head_of(j) >= HEADS) continue;
        float *const partial = partials + head_of(j) * PARTIAL_WORDS;
        float *const mine = partial + (w * 8 + g) * PARTIAL_RUN;
        if constexpr (VALUE_PRODUCTS == 1)
          store_partial(mine, output[0][0][j], output[0][1][j]);
        else
          store_partial(mine, output[0][0][j], output[0][1][j], output[1][0][j], output[1][1][j]);
        if (w == 0 && g == 0) store_partial(partial + HEAD_DIM_V, top[j] - P_SHIFT, base[j], sum[j], 0);
      }
    } else {
      UNROLL for (int j = 0; j < PER_THREAD; j++) {
        const int head = head_of(j);
        if (head >= HEADS) continue;
        const float root = exp2_fast(0.5f * (top[j] - P_SHIFT - base[j])); // the power itself may be too small for fp32
        const float inverse = sum[j] > 0 || sum[j] != sum[j] ? root * reciprocal_fast(sum[j]) : 0.0f;
        UNROLL for (int m = 0; m < VALUE_PRODUCTS; m++)
          UNROLL for (int half = 0; half < 2; half++)
            store_output(out, (item * HEADS + head) * HEAD_DIM_V + channel_of(m, w, half, g), output[m][half][j] * root * inverse * value_scale);
        if (w == 0 && g == 0) {
//@ store_lse line
        }
      }
    }
    if (last) return;
  }
}

// A thread's channels of a head, `PARTIAL_RUN` of them, lie together in a partial result.
DEVICE int partial_channel(int place) {
  const int owner = place / PARTIAL_RUN, n = place % PARTIAL_RUN;
  return channel_of(n / 2, owner / 8, n % 2, owner % 8);
}

//@ line_merge
