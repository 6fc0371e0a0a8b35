// ---- NVIDIA sm_90: types, lanes, conversions ---------------------------------------------------------------
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE static __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ __launch_bounds__(threads)
#define KERNEL_REGISTERS(threads, registers) extern "C" __global__ __maxnreg__(registers)
#define SHARED __shared__
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")

DEVICE int thread_id() { return (int)threadIdx.x; }
DEVICE int wave_id() { return __shfl_sync(0xffffffffu, thread_id() / WAVE, 0); }
DEVICE int lane_id() { return thread_id() % WAVE; }
DEVICE int workgroup_x() { return (int)blockIdx.x; }
DEVICE int workgroup_y() { return (int)blockIdx.y; }
DEVICE int workgroup_z() { return (int)blockIdx.z; }
DEVICE void barrier() { __syncthreads(); }
DEVICE void barrier_undivided() { barrier(); }

DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE float float_of(u32 x) { return __uint_as_float(x); }
DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float log2_fast(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float max_of(float a, float b) { return fmaxf(a, b); }
DEVICE float abs_of(float a) { return fabsf(a); }
DEVICE float fused(float a, float b, float c) { return fmaf(a, b, c); }

// Which lanes of a wave of LANES say yes, and how many bits are set.
template <int LANES> DEVICE u64 lanes_with(bool yes) { return __ballot_sync(0xffffffffu, yes); }
DEVICE int bits_set(u64 x) { return __popcll(x); }
// The value of the lane whose number differs in the bits of `mask`.
DEVICE float lane_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE int uniform(int x) { return x; } // the same in all lanes already
DEVICE int lane_value(int x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
// The value of the lane `step` below, its own where there is none.
DEVICE int lane_below(int x, int step) { return __shfl_up_sync(0xffffffffu, x, step); }
// The highest lane for which `x` holds.
DEVICE int highest_lane(bool x) { return 31 - __clz((int)__ballot_sync(0xffffffffu, x)); }
// The value of the lane 8 further on, within each row of 16 lanes.
DEVICE float lane_plus_8(float x) { return lane_xor(x, 8); }
// The value of the lane with this index in the same group of the matrix instruction.
DEVICE float index_lane(float x, int index) { return __shfl_sync(0xffffffffu, x, index * 4 + lane_id() % 4); }
// Bytes picked from {high, low}: selector bytes 0-3 name low, 4-7 high.
DEVICE u32 pick_bytes(u32 high, u32 low, u32 selector) {
  u32 nibbles = (selector & 7) | (selector >> 4 & 0x70) | (selector >> 8 & 0x700) | (selector >> 12 & 0x7000);
  return __byte_perm(low, high, nibbles);
}

// Keeps the compiler from mixing what is before with what is behind, which would take registers for both.
DEVICE void keep_order() { asm volatile("" ::: "memory"); }

// The word as it is, in a register, at this point: no instruction, but nothing moves across it.
template <typename Word> DEVICE void pin(Word &word) { asm volatile("" : "+r"(word)); }
template <typename Word> DEVICE Word moved(Word word) { return word; }

// The number as it is; but what follows from it is not worked out before a loop and kept.
DEVICE int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
DEVICE int anew_uniform(int x) { return anew(x); }

// K and V are read once: loads say so. (What comes AGAIN comes from L2, which keeps it all the same.) BYTES is 1, 2, 4, 8
// or 16; `byte` is the place in `words`.
template <int BYTES, bool AGAIN = false> DEVICE void load_stream(u32 *words, int byte, const u8 *from) {
  if constexpr (BYTES == 16) {
    u32 *w = words + byte / 4;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
  } else if constexpr (BYTES == 8) {
    u32 *w = words + byte / 4;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
  } else if constexpr (BYTES == 4) {
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(words[byte / 4]) : "l"(from));
  } else {
    u32 x = BYTES == 2 ? (u32) * (const u16 *)from : (u32)*from;
    words[byte / 4] = byte % 4 ? words[byte / 4] | x << byte % 4 * 8 : x;
  }
}

// Into the cache; nothing waits for it.
DEVICE void ask_for(const u8 *from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

// Until the kernel before this one has ended and what it wrote is visible. Nothing that it may write is read earlier.
DEVICE void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// The next kernel's workgroups may take up what this one leaves free.
DEVICE void let_next_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Four words of a partial result that the kernel before has written, past L1: they are read once. "memory" keeps them behind
// wait_for_previous(), as plain loads stay behind its own; that they are then seen is what it waits for.
DEVICE void load_partial(float *x, const float *from) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "l"(from)
               : "memory");
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
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
    return word;
  }
  DEVICE void unpack(u32 word, float *x) {
    x[0] = float_of(word << 16);
    x[1] = float_of(word & 0xffff0000u);
  }
};

struct format_fp16 {
  static constexpr int BYTES = 2, PER_WORD = 2;
  DEVICE u32 pack(const float *x) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
    return word;
  }
  DEVICE void unpack(u32 word, float *x) {
    asm("{ .reg .b16 low, high;\n"
        "  mov.b32 {low, high}, %2;\n"
        "  cvt.f32.f16 %0, low;\n"
        "  cvt.f32.f16 %1, high; }"
        : "=f"(x[0]), "=f"(x[1])
        : "r"(word));
  }
};

// e4m3fn. widen: four values to two words of fp16, exactly.
struct format_fp8 {
  static constexpr int BYTES = 1, PER_WORD = 4;
  DEVICE u32 pack(const float *x) {
    u16 low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x[1]), "f"(x[0]));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x[3]), "f"(x[2]));
    return (u32)low | (u32)high << 16;
  }
  DEVICE void widen(u32 word, u32 *halves) {
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves[0]) : "h"((u16)word));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves[1]) : "h"((u16)(word >> 16)));
  }
  DEVICE void unpack(u32 word, float *x) {
    u32 halves[2];
    widen(word, halves);
    format_fp16::unpack(halves[0], x);
    format_fp16::unpack(halves[1], x + 2);
  }
};

DEVICE u32 subtract_halves(u32 a, u32 b) {
  u32 difference;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
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
    halves[0] = subtract_halves(pick_bytes(0x64646464, word ^ 0x80808080u, 0x04010400), 0x64806480);
    halves[1] = subtract_halves(pick_bytes(0x64646464, word ^ 0x80808080u, 0x04030402), 0x64806480);
  }
  DEVICE void unpack(u32 word, float *x) {
    UNROLL for (int i = 0; i < 4; i++) x[i] = (float)((int)(word << (24 - 8 * i)) >> 24);
  }
};

template <typename Other, typename Kv, typename Accumulator>
DEVICE Accumulator mma_m16n8k16_f16(const Other &a, const Kv &b, Accumulator c) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[0]), "r"(b.w[1]));
  return c;
}
template <typename Other, typename Kv, typename Accumulator>
DEVICE Accumulator mma_m16n8k16_bf16(const Other &a, const Kv &b, Accumulator c) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[0]), "r"(b.w[1]));
  return c;
}
