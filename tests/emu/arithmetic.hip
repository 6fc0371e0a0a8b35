/* What a compiler makes of C arithmetic: divisions, roots, conversions and wide integers become sequences of device instructions
 * whose result C defines to the last bit. One work-item is one pair of operands; results are [operation][item], 64 bits each. The order of
 * operations is that of test_emu_arithmetic.c. */
#pragma clang fp contract(off)

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef short short2v __attribute__((ext_vector_type(2)));
typedef u16 ushort2v __attribute__((ext_vector_type(2)));
typedef _Float16 half2v __attribute__((ext_vector_type(2)));
typedef float float2v __attribute__((ext_vector_type(2)));

#define KERNEL extern "C" __attribute__((global))
#define BITS(type, x) __builtin_bit_cast(type, x)

static __attribute__((device)) int item(void) {
  return (int)(__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x());
}

/* Writes the next result of this item. */
struct writer {
  u64 *at;
  long stride;
  __attribute__((device)) void put(u64 bits) {
    *at = bits;
    at += stride;
  }
  __attribute__((device)) void put(float x) { put((u64)BITS(u32, x)); }
  __attribute__((device)) void put(double x) { put(BITS(u64, x)); }
  __attribute__((device)) void put(_Float16 x) { put((u64)BITS(u16, x)); }
  __attribute__((device)) void put(__bf16 x) { put((u64)BITS(u16, x)); }
  __attribute__((device)) void put(int x) { put((u64)(u32)x); }
  __attribute__((device)) void put(u32 x) { put((u64)x); }
  __attribute__((device)) void put(long x) { put((u64)x); }
};

KERNEL void floats(const u32 *x, const u32 *y, u64 *out, int n) {
  int i = item();
  if (i >= n) return;
  float a = BITS(float, x[i]), b = BITS(float, y[i]), c = BITS(float, x[(i + 1) % n]);
  writer w = {out + i, n};
  w.put(a + b);
  w.put(a - b);
  w.put(a * b);
  w.put(a / b);
  w.put(1.0f / b);
  w.put(__builtin_fmaf(a, b, c));
  w.put(__builtin_sqrtf(a));
  w.put(__builtin_fminf(a, b));
  w.put(__builtin_fmaxf(a, b));
  w.put(__builtin_floorf(a));
  w.put(__builtin_ceilf(a));
  w.put(__builtin_truncf(a));
  w.put(__builtin_rintf(a));
  w.put(__builtin_fabsf(a) - __builtin_copysignf(b, a));
  w.put((u64)((a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a >= b) << 4 | (a > b) << 5 |
              __builtin_isunordered(a, b) << 6));
  w.put((double)a);
  w.put((_Float16)a);
  w.put((__bf16)a);
  w.put((u64)(a > 0 && a < 1e9f ? (u32)a : 7));
  w.put((u64)(u32)(a > -1e9f && a < 1e9f ? (int)a : 7));
  w.put((u64)(a > -9e18f && a < 9e18f ? (long)a : 7));
  w.put((u64)(a > 0 && a < 1.8e19f ? (u64)a : 7));
}

KERNEL void doubles(const u64 *x, const u64 *y, u64 *out, int n) {
  int i = item();
  if (i >= n) return;
  double a = BITS(double, x[i]), b = BITS(double, y[i]), c = BITS(double, x[(i + 1) % n]);
  writer w = {out + i, n};
  w.put(a + b);
  w.put(a - b);
  w.put(a * b);
  w.put(a / b);
  w.put(1.0 / b);
  w.put(__builtin_fma(a, b, c));
  w.put(__builtin_sqrt(a));
  w.put(__builtin_fmin(a, b));
  w.put(__builtin_fmax(a, b));
  w.put(__builtin_floor(a));
  w.put(__builtin_ceil(a));
  w.put(__builtin_trunc(a));
  w.put(__builtin_rint(a));
  w.put((u64)((a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a >= b) << 4 | (a > b) << 5));
  w.put((float)a);
  w.put((u64)(a > -9e18 && a < 9e18 ? (long)a : 7));
  w.put((u64)(a > 0 && a < 1.8e19 ? (u64)a : 7));
  w.put((u64)(u32)(a > -1e9 && a < 1e9 ? (int)a : 7));
}

KERNEL void integers(const u64 *x, const u64 *y, u64 *out, int n) {
  int i = item();
  if (i >= n) return;
  u64 a = x[i], b = y[i] ? y[i] : 3;
  u32 p = (u32)a, q = (u32)b ? (u32)b : 5;
  long sa = (long)a, sb = (long)b == -1 ? 11 : (long)b;
  int sp = (int)p, sq = (int)q == -1 ? 13 : (int)q;
  u32 shift = q & 31;
  writer w = {out + i, n};
  w.put(a + b);
  w.put(a - b);
  w.put(a * b);
  w.put(a / b);
  w.put(a % b);
  w.put(sa / sb);
  w.put(sa % sb);
  w.put(p / q);
  w.put(p % q);
  w.put(sp / sq);
  w.put(sp % sq);
  w.put((u64)(((u64)p * q) >> 32));
  w.put((u64)(((long)sp * sq) >> 32));
  w.put((u64)p * q + a);
  w.put(a << (b & 63));
  w.put(a >> (b & 63));
  w.put(sa >> (b & 63));
  w.put(p << shift);
  w.put(p >> shift);
  w.put(sp >> shift);
  w.put(__builtin_popcountl(a));
  w.put(p ? __builtin_clz(p) : 32);
  w.put(p ? __builtin_ctz(p) : 32);
  w.put(a ? __builtin_clzl(a) : 64);
  w.put(a ? __builtin_ctzl(a) : 64);
  w.put(__builtin_bitreverse32(p));
  w.put(__builtin_bswap32(p));
  w.put(__builtin_bswap64(a));
  w.put(__builtin_rotateleft32(p, shift));
  w.put((p & q) | (~p & (u32)(a >> 32)));
  w.put((p ^ q) ^ (u32)(a >> 32));
  w.put((p >> 7) & 0x1ff);
  w.put((sp << 9) >> 21);
  w.put(sp < sq ? sp : sq);
  w.put(sa > sb ? sa : sb);
  w.put(a < b ? a : b);
  w.put(__builtin_elementwise_add_sat(p, q));
  w.put(__builtin_elementwise_sub_sat(p, q));
  w.put(__builtin_elementwise_add_sat(sp, sq));
  w.put(__builtin_elementwise_sub_sat(sp, sq));
  w.put((u64)(u16)__builtin_elementwise_add_sat((u16)p, (u16)q));
  w.put((u64)(u16)__builtin_elementwise_sub_sat((short)p, (short)q));
  w.put((float)p);
  w.put((float)sp);
  w.put((float)a);
  w.put((float)sa);
  w.put((double)a);
  w.put((double)sa);
  w.put((double)p);
  w.put((u64)((a < b) | (sa < sb) << 1 | (p < q) << 2 | (sp <= sq) << 3 | (a == b) << 4 | ((u16)p >= (u16)q) << 5));
  w.put((u64)(u32)((int)(p << 8) >> 8) * (u64)(q & 0xffffff));
  short2v s = BITS(short2v, p), t = BITS(short2v, q);
  w.put((u64)BITS(u32, (short2v)(s * t + s)));
  w.put((u64)BITS(u32, __builtin_elementwise_max(s, t)));
  w.put((u64)BITS(u32, __builtin_elementwise_add_sat(s, t)));
  w.put((u64)BITS(u32, (ushort2v)(BITS(ushort2v, p) >> (ushort2v)(3))));
}

KERNEL void halves(const u32 *x, const u32 *y, u64 *out, int n) {
  int i = item();
  if (i >= n) return;
  half2v a = BITS(half2v, x[i]), b = BITS(half2v, y[i]);
  writer w = {out + i, n};
  w.put(a[0] + b[0]);
  w.put(a[0] - b[1]);
  w.put(a[1] * b[0]);
  w.put((_Float16)(a[0] / b[0]));
  w.put((_Float16)__builtin_elementwise_fma(a[0], b[0], a[1]));
  w.put((_Float16)__builtin_elementwise_sqrt(a[0]));
  w.put((float)a[1]);
  half2v sum = a + b, product = a * b;
  w.put(sum[0]);
  w.put(sum[1]);
  w.put(product[0]);
  w.put(product[1]);
  float f = (float)a[0], g = (float)b[0];
  w.put(__builtin_fmaf((float)a[1], g, f));
  w.put((_Float16)__builtin_fmaf((float)a[1], (float)b[1], f));
  w.put((u64)((a[0] < b[0]) | (a[1] >= b[1]) << 1 | (a[0] != b[1]) << 2));
  float2v v = {f, (float)a[1]}, u = {g, (float)b[1]};
  float2v m = v * u + v;
  w.put(m[0]);
  w.put(m[1]);
  w.put((u64)(u32)(int)(f > -60000.0f && f < 60000.0f ? (int)a[0] : 7));
  w.put((_Float16)(short)x[i]);
  w.put((_Float16)(u16)y[i]);
}

/* Accurate to a few units in the last place, by the language's library or the compiler's expansion. */
KERNEL void transcendentals(const u32 *x, const u32 *y, u64 *out, int n) {
  int i = item();
  if (i >= n) return;
  float a = BITS(float, x[i]), b = BITS(float, y[i]);
  writer w = {out + i, n};
  w.put(__builtin_exp2f(a));
  w.put(__builtin_log2f(a));
  w.put(__builtin_expf(a));
  w.put(__builtin_logf(a));
  w.put(__builtin_log10f(b));
  w.put(__builtin_ldexpf(a, (int)y[i] >> 22));
  w.put(__builtin_amdgcn_exp2f(a > -100.0f && a < 100.0f ? a : 1.0f));
  w.put(__builtin_amdgcn_rcpf(b));
  w.put(__builtin_amdgcn_rsqf(__builtin_fabsf(b)));
}
