      if (producer < SCALE_WARPS) {
        const int token = tile * TILE + scale_unit % (TILE / 4) * 4;
        const u32 slot = (u32)token % PAGE;
        if (token < length) {
          const scale_t *from = scale_unit < TILE / 4
                                    ? k_scale_head + scale_page * k_scale_stride_b + k_scale_offset(slot, k_scale_heads_stride)
                                    : v_scale_head + scale_page * v_scale_stride_b + v_scale_offset(slot, v_scale_heads_stride);
          copy_16(to + K_STAGE_BYTES + V_STAGE_BYTES + scale_unit * 16, from);
        }
      }
