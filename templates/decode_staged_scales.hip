// The scales of a tile: each lane copies those of the tokens it holds the scales of.
DEVICE void request_scales(u32 stage, const tile_stretches &stretches, const scale_t *k_scale, const scale_t *v_scale, i64 k_stride_b,
                           i64 k_heads_stride, i64 v_stride_b, i64 v_heads_stride, int tile, int index, int group, int lane) {
  UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
    const int token = group * LIST + scaled_token(n, index);
    int page = stretches.page[0];
    UNROLL for (int s = 1; s < STRETCHES; s++) page = token / STRETCH == s ? stretches.page[s] : page;
    const u32 slot = (u32)(tile * TILE + token) % PAGE, place = (u32)(STRETCHES * (k_order::STEP + v_order::STEP) * PIECE + n * WAVE * 4);
    copy_word(stage + place, k_scale + page * k_stride_b + k_scale_offset(slot, k_heads_stride), lane);
    copy_word(stage + place + SCALE_WORDS * WAVE * 4, v_scale + page * v_stride_b + v_scale_offset(slot, v_heads_stride), lane);
  }
}

DEVICE void take_scales(tile_scales &scales, const u32x4 *stage, int lane) {
  const scale_t *landed = (const scale_t *)(stage + STRETCHES * (k_order::STEP + v_order::STEP));
  UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
    scales.k[0][n] = landed[n * WAVE + lane];
    scales.v[0][n] = landed[(SCALE_WORDS + n) * WAVE + lane];
  }
}

