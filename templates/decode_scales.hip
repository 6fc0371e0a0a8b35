DEVICE void load_scales(tile_scales &scales, const tile_pages &ids, const scale_t *k_scale, const scale_t *v_scale,
                        i64 k_stride_b, i64 k_heads_stride, i64 v_stride_b, i64 v_heads_stride, int tile, int index,
                        int group) {
  UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
    const u32 slot = (u32)(tile * TILE + group * LIST + scaled_token(n, index)) % PAGE;
    const i64 page = ids.scale[n];
    scales.k[n] = scale_value(k_scale[page * k_stride_b + k_scale_offset(slot, k_heads_stride)]);
    scales.v[n] = scale_value(v_scale[page * v_stride_b + v_scale_offset(slot, v_heads_stride)]);
  }
}
