// ---- AMD GCN: types, lanes, conversions --------------------------------------------------------------------
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef float float2_t __attribute__((ext_vector_type(2)));
typedef int int2_t __attribute__((ext_vector_type(2)));
typedef int int8_t __attribute__((ext_vector_type(8)));
typedef short short4_t __attribute__((ext_vector_type(4)));
typedef short short8_t __attribute__((ext_vector_type(8)));
typedef _Float16 half2_t __attribute__((ext_vector_type(2)));
typedef _Float16 half4_t __attribute__((ext_vector_type(4)));
typedef _Float16 half8_t __attribute__((ext_vector_type(8)));
typedef _Float16 half16_t __attribute__((ext_vector_type(16)));
typedef __bf16 bf16x8_t __attribute__((ext_vector_type(8)));
typedef __bf16 bf16x16_t __attribute__((ext_vector_type(16)));

#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define KERNEL(threads) extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define KERNEL_REGISTERS(threads, registers) KERNEL(threads)
#define SHARED static __attribute__((shared))
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")

DEVICE int thread_id() { return (int)__builtin_amdgcn_workitem_id_x(); }
// A wave's number is the same in all its lanes; saying so keeps loop bounds in scalar registers.
DEVICE int wave_id() { return __builtin_amdgcn_readfirstlane(thread_id() / WAVE); }
DEVICE int lane_id() { return thread_id() % WAVE; }
DEVICE int workgroup_x() { return (int)__builtin_amdgcn_workgroup_id_x(); }
DEVICE int workgroup_y() { return (int)__builtin_amdgcn_workgroup_id_y(); }
DEVICE int workgroup_z() { return (int)__builtin_amdgcn_workgroup_id_z(); }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// The same with nothing between its halves, where LLVM 22 lost what named a register from 256 on (docs/targets.md).
DEVICE void barrier_undivided() {
#if defined(__gfx1250__)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier_signal(-1);
  __builtin_amdgcn_sched_barrier(0);
  __builtin_amdgcn_s_barrier_wait(-1);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#else
  barrier();
#endif
}

DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
DEVICE float float_of(u32 x) { return __builtin_bit_cast(float, x); }
DEVICE float exp2_fast(float x) { return __builtin_amdgcn_exp2f(x); }
DEVICE float log2_fast(float x) { return __builtin_amdgcn_logf(x); }
DEVICE float reciprocal_fast(float x) { return __builtin_amdgcn_rcpf(x); }
DEVICE float max_of(float a, float b) { return __builtin_fmaxf(a, b); }
DEVICE float abs_of(float a) { return __builtin_fabsf(a); }
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Which lanes of a wave of LANES say yes, and how many bits are set.
template <int LANES> DEVICE u64 lanes_with(bool yes) {
  if constexpr (LANES == 64)
    return __builtin_amdgcn_ballot_w64(yes);
  else
    return __builtin_amdgcn_ballot_w32(yes);
}
DEVICE int bits_set(u64 x) { return __builtin_popcountll(x); }
// The value of the lane whose number differs in the bits of `mask`.
DEVICE float lane_xor(float x, int mask) {
  return float_of((u32)__builtin_amdgcn_ds_bpermute((lane_id() ^ mask) << 2, (int)bits_of(x)));
}
// What is the same in all lanes, in a scalar register.
DEVICE int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }
DEVICE int lane_value(int x, int lane) { return __builtin_amdgcn_readlane(x, lane); }
// The value of the lane `step` below, its own where there is none.
DEVICE int lane_below(int x, int step) {
  return __builtin_amdgcn_ds_bpermute((lane_id() >= step ? lane_id() - step : lane_id()) << 2, x);
}
// The highest lane for which `x` holds.
DEVICE int highest_lane(bool x) { return 63 - __builtin_clzll(lanes_with<WAVE>(x)); }
// The value of the lane 8 further on, within each row of 16 lanes (DPP row_ror:8).
DEVICE float lane_plus_8(float x) {
  return float_of((u32)__builtin_amdgcn_update_dpp(0, (int)bits_of(x), 0x128, 0xf, 0xf, true));
}
// The value of lane `index` of this lane's row of 16: a matrix row's or column's neighbour in the same group. DPP
// row_share (row_newbcast on CDNA) takes its lane as an immediate; unrolled callers leave one case.
template <int INDEX> DEVICE float row_lane(float x) {
  return float_of((u32)__builtin_amdgcn_update_dpp(0, (int)bits_of(x), 0x150 + INDEX, 0xf, 0xf, true));
}
DEVICE float index_lane(float x, int index) {
  switch (index) {
  case 0: return row_lane<0>(x);
  case 1: return row_lane<1>(x);
  case 2: return row_lane<2>(x);
  case 3: return row_lane<3>(x);
  case 4: return row_lane<4>(x);
  case 5: return row_lane<5>(x);
  case 6: return row_lane<6>(x);
  case 7: return row_lane<7>(x);
  case 8: return row_lane<8>(x);
  case 9: return row_lane<9>(x);
  case 10: return row_lane<10>(x);
  case 11: return row_lane<11>(x);
  case 12: return row_lane<12>(x);
  case 13: return row_lane<13>(x);
  case 14: return row_lane<14>(x);
  default: return row_lane<15>(x);
  }
}
// Bytes picked from {high, low}: selector bytes 0-3 name low, 4-7 high.
DEVICE u32 pick_bytes(u32 high, u32 low, u32 selector) { return __builtin_amdgcn_perm(high, low, selector); }

// Keeps the scheduler from mixing what is before with what is behind, which would take registers for both.
DEVICE void keep_order() { __builtin_amdgcn_sched_barrier(0); }

// The word as it is, in a register, at this point: no instruction, but nothing moves across it.
template <typename Word> DEVICE void pin(Word &word) { asm volatile("" : "+v"(word)); }

// The word in a register of its own, at this point: where its old one is loaded anew, no copy waits for that load.
template <typename Word> DEVICE Word moved(Word word) {
  Word copy;
  asm volatile("v_mov_b32 %0, %1" : "=v"(copy) : "v"(word));
  return copy;
}

// The number as it is; but what follows from it is not worked out before a loop and kept.
DEVICE int anew(int x) {
  asm volatile("" : "+v"(x));
  return x;
}
DEVICE int anew_uniform(int x) {
  asm volatile("" : "+s"(x));
  return x;
}
// The kernel's arguments where they lie, to be read once more.
#define GLOBAL __attribute__((address_space(1)))
#define CONSTANT __attribute__((address_space(4)))
template <typename Arguments> DEVICE const CONSTANT Arguments *arguments_again() {
  const CONSTANT Arguments *again = (const CONSTANT Arguments *)__builtin_amdgcn_kernarg_segment_ptr();
  asm volatile("" : "+s"(again));
  return again;
}

// A word that is used half by half: LLVM 22 on gfx1250 otherwise loses one that was loaded with others after its first use
// (docs/targets.md).
DEVICE void keep_whole(u32 &word) {
#if defined(__gfx1250__)
  pin(word);
#endif
}

// K and V are read once: loads say so, unless they come AGAIN. BYTES is 1, 2, 4, 8 or 16; `byte` is the place in `words`.
template <int BYTES, bool AGAIN = false> DEVICE void load_stream(u32 *words, int byte, const u8 *from) {
  if constexpr (BYTES == 16) {
    u32x4 x = AGAIN ? *(const u32x4 *)from : __builtin_nontemporal_load((const u32x4 *)from);
    UNROLL for (int i = 0; i < 4; i++) words[byte / 4 + i] = x[i];
  } else if constexpr (BYTES == 8) {
    u32x2 x = AGAIN ? *(const u32x2 *)from : __builtin_nontemporal_load((const u32x2 *)from);
    UNROLL for (int i = 0; i < 2; i++) words[byte / 4 + i] = x[i];
  } else if constexpr (BYTES == 4) {
    words[byte / 4] = AGAIN ? *(const u32 *)from : __builtin_nontemporal_load((const u32 *)from);
  } else {
    u32 x = BYTES == 2 ? (u32) * (const u16 *)from : (u32)*from;
    words[byte / 4] = byte % 4 ? words[byte / 4] | x << byte % 4 * 8 : x;
  }
}

// Into the cache; nothing waits for it. Only gfx1250 has it.
DEVICE void ask_for(const u8 *from) { __builtin_prefetch(from); }

// Kernels start when the one before has ended.
DEVICE void wait_for_previous() {}
DEVICE void let_next_start() {}

// Four words of a partial result that the kernel before has written: it has ended, so a plain load sees them.
DEVICE void load_partial(float *x, const float *from) {
  const u32x4 words = *(const u32x4 *)from;
  UNROLL for (int i = 0; i < 4; i++) x[i] = float_of(words[i]);
}

// Number formats: PER_WORD values in a 32-bit word, lowest first; pack rounds to nearest even.
struct format_fp32 {
  static constexpr int BYTES = 4, PER_WORD = 1;
  DEVICE u32 pack(const float *x) { return bits_of(x[0]); }
  DEVICE void unpack(u32 word, float *x) { x[0] = float_of(word); }
};

struct format_bf16 {
  static constexpr int BYTES = 2, PER_WORD = 2;
  DEVICE u32 pack(const float *x) {
    u32 low = bits_of((float)(__bf16)x[0]), high = bits_of((float)(__bf16)x[1]);
    return pick_bytes(high, low, 0x07060302);
  }
  DEVICE void unpack(u32 word, float *x) {
    x[0] = float_of(word << 16);
    x[1] = float_of(word & 0xffff0000u);
  }
};

struct format_fp16 {
  static constexpr int BYTES = 2, PER_WORD = 2;
  DEVICE u32 pack(const float *x) {
    half2_t h = {(_Float16)x[0], (_Float16)x[1]};
    return __builtin_bit_cast(u32, h);
  }
  DEVICE void unpack(u32 word, float *x) {
    half2_t h = __builtin_bit_cast(half2_t, word);
    UNROLL for (int i = 0; i < 2; i++) {
      x[i] = (float)h[i];
#if defined(__gfx1250__) // LLVM 22 would fold it into v_fma_mixlo_bf16, which takes the fp16 for fp32 (docs/targets.md)
      asm volatile("" : "+v"(x[i]));
#endif
    }
  }
};

// The dialect is the target's own (see the contract above); values beyond its largest must not come here. widen: four
// values to two words of fp16, exactly.
struct format_fp8 {
  static constexpr int BYTES = 1, PER_WORD = 4;
  DEVICE u32 pack(const float *x) {
    int word = __builtin_amdgcn_cvt_pk_fp8_f32(x[0], x[1], 0, false);
    return (u32)__builtin_amdgcn_cvt_pk_fp8_f32(x[2], x[3], word, true);
  }
  DEVICE void widen(u32 word, u32 *halves) {
#if defined(__gfx950__)
    halves[0] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(word, 1.0f, false));
    halves[1] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(word, 1.0f, true));
#elif defined(__gfx1250__)
    keep_whole(word);
    halves[0] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pk_f16_fp8((short)word));
    halves[1] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pk_f16_fp8((short)(word >> 16)));
#else // by way of fp32
    float2_t low = __builtin_amdgcn_cvt_pk_f32_fp8((int)word, false);
    float2_t high = __builtin_amdgcn_cvt_pk_f32_fp8((int)word, true);
    halves[0] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(low[0], low[1]));
    halves[1] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(high[0], high[1]));
#endif
  }
  DEVICE void unpack(u32 word, float *x) {
    float2_t low = __builtin_amdgcn_cvt_pk_f32_fp8((int)word, false);
    float2_t high = __builtin_amdgcn_cvt_pk_f32_fp8((int)word, true);
    x[0] = low[0];
    x[1] = low[1];
    x[2] = high[0];
    x[3] = high[1];
  }
};

DEVICE u32 subtract_halves(u32 a, u32 b) {
  return __builtin_bit_cast(u32, __builtin_bit_cast(half2_t, a) - __builtin_bit_cast(half2_t, b));
}

// e5m2 is the upper half of fp16. Rounding: denormals count in units of 2^-16, the others in their last place.
struct format_fp8_e5m2 {
  static constexpr int BYTES = 1, PER_WORD = 4;
  DEVICE u32 pack(const float *x) {
    u32 word = 0;
    UNROLL for (int i = 0; i < 4; i++) {
      const u32 sign = bits_of(x[i]) >> 31, bits = bits_of(x[i]) & 0x7fffffff;
      const u32 small = bits_of(float_of(bits) + 128.0f) - bits_of(128.0f);
      const u32 rounded = (bits + 0xfffff + (bits >> 21 & 1)) >> 21;
      word |= (sign << 7 | (bits < 0x38800000u ? small : rounded - ((127 - 15) << 2))) << 8 * i;
    }
    return word;
  }
  DEVICE void widen(u32 word, u32 *halves) {
    keep_whole(word);
    halves[0] = pick_bytes(0, word, 0x01040004);
    halves[1] = pick_bytes(0, word, 0x03040204);
  }
  DEVICE void unpack(u32 word, float *x) {
    u32 halves[2];
    widen(word, halves);
    format_fp16::unpack(halves[0], x);
    format_fp16::unpack(halves[1], x + 2);
  }
};

// widen: with its sign bit flipped a byte u is 1024 + u as the lower half of 0x64uu, and 1152 too much.
struct format_int8 {
  static constexpr int BYTES = 1, PER_WORD = 4;
  DEVICE u32 pack(const float *x) {
    u32 word = 0;
    UNROLL for (int i = 0; i < 4; i++) word |= (bits_of(x[i] + 12582912.0f) & 0xff) << 8 * i; // 1.5 * 2^23
    return word;
  }
  DEVICE void widen(u32 word, u32 *halves) {
    keep_whole(word);
    halves[0] = subtract_halves(pick_bytes(0x64646464, word ^ 0x80808080u, 0x04010400), 0x64806480);
    halves[1] = subtract_halves(pick_bytes(0x64646464, word ^ 0x80808080u, 0x04030402), 0x64806480);
  }
  DEVICE void unpack(u32 word, float *x) {
    UNROLL for (int i = 0; i < 4; i++) x[i] = (float)((int)(word << (24 - 8 * i)) >> 24);
  }
};
