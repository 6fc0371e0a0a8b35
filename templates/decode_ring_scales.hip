      if (producer < SCALE_WARPS) {
        UNROLL for (int r = 0; r < SCALE_COPIES; r++) {
          const int unit = scale_unit(r), token = tile * TILE + unit % (TILE / 4) * 4;
          const u32 slot = (u32)token % PAGE;
          if (token >= length) continue;
          const scale_t *from = unit < TILE / 4
                                    ? k_scale_head + scale_pages[r] * k_scale_stride_b + k_scale_offset(slot, k_scale_heads_stride)
                                    : v_scale_head + scale_pages[r] * v_scale_stride_b + v_scale_offset(slot, v_scale_heads_stride);
          copy_16(to + K_BYTES + V_BYTES + unit * 16, from);
        }
        arrive_after_copies(bar);
      }
