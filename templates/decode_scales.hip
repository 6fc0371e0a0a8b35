// The group of V channels that is number `part` in a workgroup's slice; tiles filled up take the last one's scale.
DEVICE u32 scale_part(int slice, int part) {
  const int last = (HEAD_DIM_V - 1) / V_PART, at = slice * VALUE_TILES * INDICES / V_PART + part;
  return (u32)(at < last ? at : last);
}

DEVICE void load_scales(tile_scales &scales, const tile_pages &ids, const scale_t *k_scale, const scale_t *v_scale,
                        i64 k_stride_b, i64 k_heads_stride, i64 v_stride_b, i64 v_heads_stride, int tile, int slice,
                        int index, int group) {
  UNROLL for (int n = 0; n < SCALE_WORDS; n++) {
    const u32 slot = (u32)(tile * TILE + group * LIST + scaled_token(n, index)) % PAGE;
    const scale_t *k_page = k_scale + ids.scale[n] * k_stride_b, *v_page = v_scale + ids.scale[n] * v_stride_b;
    UNROLL for (int part = 0; part < K_PARTS; part++) scales.k[part][n] = k_page[k_scale_offset(slot, k_heads_stride, (u32)part)];
    UNROLL for (int part = 0; part < V_PARTS; part++)
      scales.v[part][n] = v_page[v_scale_offset(slot, v_heads_stride, scale_part(slice, part))];
  }
}
