/* C arithmetic, compiled for every target at three levels and executed by the emulator, against the same
 * arithmetic on the host. C and IEEE 754 define each of these results to the last bit, so a wrong instruction
 * in the sequences that a compiler emits for a division, a root, a conversion or a wide integer shows,
 * whatever its author thought that instruction does. */
#include "../../runtime/device/device.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 2048, MAX_RESULTS = 64 };

typedef struct build_under_test {
  char target[16];
  char level[8];
} build_under_test;

#define EACH_BUILD(test)                                                                                     \
  ParameterizedTestParameters(emu_arithmetic, test) {                                                        \
    static build_under_test builds[] = {EMU_TEST_BUILDS};                                                    \
    return cr_make_param_array(build_under_test, builds, sizeof builds / sizeof *builds);                    \
  }                                                                                                          \
  ParameterizedTest(build_under_test *b, emu_arithmetic, test)

/* ---- what the host expects ---- */

typedef enum result_kind { BITS, F32, F64, F16, BF16 } result_kind;

typedef struct result {
  uint64_t bits;
  result_kind kind;
  uint32_t units; /* in the last place that are allowed */
} result;

typedef struct expectation {
  result results[MAX_RESULTS];
  int count;
} expectation;

static void put_bits(expectation *e, uint64_t bits) {
  e->results[e->count++] = (result){bits, BITS, 0};
}
static void put_kind(expectation *e, uint64_t bits, result_kind kind) {
  e->results[e->count++] = (result){bits, kind, 0};
}

static uint32_t bits32(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}
static float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
static double double_of(uint64_t u) {
  double d;
  memcpy(&d, &u, sizeof d);
  return d;
}
static void put_f32(expectation *e, float f) {
  put_kind(e, bits32(f), F32);
}
static void put_f64(expectation *e, double d) {
  uint64_t u;
  memcpy(&u, &d, sizeof u);
  put_kind(e, u, F64);
}

/* Rounds to a half with `mantissa` bits by scaling to whole numbers; x86 rounds those to nearest even. */
static uint32_t to_half(double d, int mantissa, int least_exponent, uint32_t infinity) {
  uint32_t sign = signbit(d) ? 0x8000 : 0;
  if (isnan(d)) return infinity | 1;
  d = fabs(d);
  if (isinf(d) || d == 0) return sign | (d == 0 ? 0 : infinity);
  int exponent = ilogb(d);
  if (exponent < least_exponent) exponent = least_exponent;
  double steps = nearbyint(ldexp(d, mantissa - exponent)); /* in [0, 2^(mantissa + 1)] */
  uint32_t code = ((uint32_t)(exponent - least_exponent) << mantissa) + (uint32_t)steps;
  return sign | (code > infinity ? infinity : code);
}
static uint32_t to_f16(double d) {
  return to_half(d, 10, -14, 0x7c00);
}
static uint32_t to_bf16(double d) {
  return to_half(d, 7, -126, 0x7f80);
}
static double from_f16(uint32_t h) {
  int exponent = (int)(h >> 10 & 31), mantissa = (int)(h & 1023);
  double d = exponent == 31 ? (mantissa ? NAN : INFINITY)
             : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                            : ldexp(mantissa, -24);
  return h & 0x8000 ? -d : d;
}
static void put_f16(expectation *e, double d) {
  put_kind(e, to_f16(d), F16);
}

static bool is_nan(result r) {
  switch (r.kind) {
  case F32:
    return (r.bits & 0x7fffffff) > 0x7f800000;
  case F64:
    return (r.bits & INT64_MAX) > UINT64_C(0x7ff) << 52;
  case F16:
    return (r.bits & 0x7fff) > 0x7c00;
  case BF16:
    return (r.bits & 0x7fff) > 0x7f80;
  default:
    return false;
  }
}

/* ---- inputs ----
 */

static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static const uint32_t floats_of_interest[] = {
    0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 1,
    0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f7fffff, 0x3f800001, 0x4b000001, 0x4f000000,
    0x5f000000, 0xdf000000, 0x33800000, 0x00400000, 0x7e800000, 0x40490fdb, 0xc2c80000, 0x42f6e979};

/* A third special, a third any bits, a third of everyday size. */
static uint32_t random_f32(void) {
  switch (random_bits() % 3) {
  case 0:
    return floats_of_interest[random_bits() % (sizeof floats_of_interest / sizeof *floats_of_interest)];
  case 1:
    return (uint32_t)(random_bits() >> 32);
  default:
    return bits32((float)(int32_t)(uint32_t)random_bits() * 0x1p-24f);
  }
}
static uint64_t random_f64(void) {
  uint64_t bits = random_bits();
  double d;
  switch (random_bits() % 4) {
  case 0:
    d = (double)float_of(random_f32());
    break;
  case 1:
    return bits;
  case 2:
    return bits & ~(UINT64_C(0x7ff) << 52); /* denormal */
  default:
    d = (double)(int64_t)bits * 0x1p-50;
  }
  memcpy(&bits, &d, sizeof bits);
  return bits;
}
static uint64_t random_integer(void) {
  uint64_t bits = random_bits();
  switch (random_bits() % 4) {
  case 0:
    return bits >> (random_bits() % 64);
  case 1:
    return (uint64_t)((int64_t)bits >> (random_bits() % 64));
  case 2:
    return UINT64_C(1) << (bits % 64);
  default:
    return bits;
  }
}
static uint32_t random_halves(void) {
  static const uint16_t special[] = {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                                     1, 0x83ff, 0x0400, 0x7bff, 0x3bff, 0x5640};
  uint32_t low = random_bits() % 2 ? special[random_bits() % 13] : (uint32_t)(random_bits() & 0xffff);
  uint32_t high = random_bits() % 2 ? special[random_bits() % 13] : (uint32_t)(random_bits() & 0xffff);
  return low | high << 16;
}

/* ---- the same operations on the host, in the order of emu/arithmetic.hip ---- */

static float smaller(float a, float b) {
  return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static float larger(float a, float b) {
  return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static double smaller_f64(double a, double b) {
  return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static double larger_f64(double a, double b) {
  return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static void expect_floats(expectation *e, uint64_t x, uint64_t y, uint64_t next) {
  float a = float_of((uint32_t)x), b = float_of((uint32_t)y), c = float_of((uint32_t)next);
  put_f32(e, a + b);
  put_f32(e, a - b);
  put_f32(e, a * b);
  put_f32(e, a / b);
  put_f32(e, 1.0f / b);
  put_f32(e, fmaf(a, b, c));
  put_f32(e, sqrtf(a));
  put_f32(e, smaller(a, b));
  put_f32(e, larger(a, b));
  put_f32(e, floorf(a));
  put_f32(e, ceilf(a));
  put_f32(e, truncf(a));
  put_f32(e, rintf(a));
  put_f32(e, fabsf(a) - copysignf(b, a));
  put_bits(e, (uint64_t)((a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a >= b) << 4 |
                         (a > b) << 5 | (a != a || b != b) << 6));
  put_f64(e, (double)a);
  put_f16(e, (double)a);
  put_kind(e, to_bf16((double)a), BF16);
  put_bits(e, a > 0 && a < 1e9f ? (uint32_t)a : 7);
  put_bits(e, (uint32_t)(a > -1e9f && a < 1e9f ? (int)a : 7));
  put_bits(e, (uint64_t)(a > -9e18f && a < 9e18f ? (int64_t)a : 7));
  put_bits(e, a > 0 && a < 1.8e19f ? (uint64_t)a : 7);
}

static void expect_doubles(expectation *e, uint64_t x, uint64_t y, uint64_t next) {
  double a = double_of(x), b = double_of(y), c = double_of(next);
  put_f64(e, a + b);
  put_f64(e, a - b);
  put_f64(e, a * b);
  put_f64(e, a / b);
  put_f64(e, 1.0 / b);
  put_f64(e, fma(a, b, c));
  put_f64(e, sqrt(a));
  put_f64(e, smaller_f64(a, b));
  put_f64(e, larger_f64(a, b));
  put_f64(e, floor(a));
  put_f64(e, ceil(a));
  put_f64(e, trunc(a));
  put_f64(e, rint(a));
  put_bits(
      e, (uint64_t)((a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a >= b) << 4 | (a > b) << 5));
  put_f32(e, (float)a);
  put_bits(e, (uint64_t)(a > -9e18 && a < 9e18 ? (int64_t)a : 7));
  put_bits(e, a > 0 && a < 1.8e19 ? (uint64_t)a : 7);
  put_bits(e, (uint32_t)(a > -1e9 && a < 1e9 ? (int)a : 7));
}

static int count_ones(uint64_t v) {
  int n = 0;
  for (; v; v &= v - 1)
    ++n;
  return n;
}
static int leading(uint64_t v, int width) {
  int n = 0;
  while (n < width && !(v >> (width - 1 - n) & 1))
    ++n;
  return n;
}
static int trailing(uint64_t v, int width) {
  int n = 0;
  while (n < width && !(v >> n & 1))
    ++n;
  return n;
}
static uint32_t reversed(uint32_t v) {
  uint32_t r = 0;
  for (int n = 0; n < 32; ++n)
    r |= (v >> n & 1) << (31 - n);
  return r;
}
static uint64_t bytes_swapped(uint64_t v, int bytes) {
  uint64_t r = 0;
  for (int n = 0; n < bytes; ++n)
    r |= (v >> 8 * n & 255) << 8 * (bytes - 1 - n);
  return r;
}
static int64_t clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

static void expect_integers(expectation *e, uint64_t x, uint64_t y, uint64_t next) {
  (void)next;
  uint64_t a = x, b = y ? y : 3;
  uint32_t p = (uint32_t)a, q = (uint32_t)b ? (uint32_t)b : 5;
  int64_t sa = (int64_t)a, sb = (int64_t)b == -1 ? 11 : (int64_t)b;
  int32_t sp = (int32_t)p, sq = (int32_t)q == -1 ? 13 : (int32_t)q;
  uint32_t shift = q & 31;
  put_bits(e, a + b);
  put_bits(e, a - b);
  put_bits(e, a * b);
  put_bits(e, a / b);
  put_bits(e, a % b);
  put_bits(e, (uint64_t)(sa / sb));
  put_bits(e, (uint64_t)(sa % sb));
  put_bits(e, p / q);
  put_bits(e, p % q);
  put_bits(e, (uint32_t)(sp / sq));
  put_bits(e, (uint32_t)(sp % sq));
  put_bits(e, (uint64_t)p * q >> 32);
  put_bits(e, (uint64_t)((int64_t)sp * sq >> 32));
  put_bits(e, (uint64_t)p * q + a);
  put_bits(e, a << (b & 63));
  put_bits(e, a >> (b & 63));
  put_bits(e, (uint64_t)(sa >> (b & 63)));
  put_bits(e, (uint32_t)(p << shift));
  put_bits(e, p >> shift);
  put_bits(e, (uint32_t)(sp >> shift));
  put_bits(e, (uint64_t)count_ones(a));
  put_bits(e, (uint64_t)leading(p, 32));
  put_bits(e, (uint64_t)trailing(p, 32));
  put_bits(e, (uint64_t)leading(a, 64));
  put_bits(e, (uint64_t)trailing(a, 64));
  put_bits(e, reversed(p));
  put_bits(e, bytes_swapped(p, 4));
  put_bits(e, bytes_swapped(a, 8));
  put_bits(e, (uint32_t)(p << shift | (shift ? p >> (32 - shift) : 0)));
  put_bits(e, (p & q) | (~p & (uint32_t)(a >> 32)));
  put_bits(e, p ^ q ^ (uint32_t)(a >> 32));
  put_bits(e, p >> 7 & 0x1ff);
  put_bits(e, (uint32_t)((int32_t)(p << 9) >> 21));
  put_bits(e, (uint32_t)(sp < sq ? sp : sq));
  put_bits(e, (uint64_t)(sa > sb ? sa : sb));
  put_bits(e, a < b ? a : b);
  put_bits(e, (uint64_t)clamp((int64_t)p + q, 0, UINT32_MAX));
  put_bits(e, (uint64_t)clamp((int64_t)p - q, 0, UINT32_MAX));
  put_bits(e, (uint32_t)clamp((int64_t)sp + sq, INT32_MIN, INT32_MAX));
  put_bits(e, (uint32_t)clamp((int64_t)sp - sq, INT32_MIN, INT32_MAX));
  put_bits(e, (uint64_t)clamp((int64_t)(p & 0xffff) + (q & 0xffff), 0, 0xffff));
  put_bits(e, (uint16_t)clamp((int64_t)(int16_t)p - (int16_t)q, -0x8000, 0x7fff));
  put_f32(e, (float)p);
  put_f32(e, (float)sp);
  put_f32(e, (float)a);
  put_f32(e, (float)sa);
  put_f64(e, (double)a);
  put_f64(e, (double)sa);
  put_f64(e, (double)p);
  put_bits(e, (uint64_t)((a < b) | (sa < sb) << 1 | (p < q) << 2 | (sp <= sq) << 3 | (a == b) << 4 |
                         ((uint16_t)p >= (uint16_t)q) << 5));
  put_bits(e, (uint64_t)(uint32_t)((int32_t)(p << 8) >> 8) * (q & 0xffffff));
  uint32_t mad = 0, top = 0, sum = 0, shifted = 0;
  for (int n = 0; n < 32; n += 16) {
    int32_t s = (int16_t)(p >> n), t = (int16_t)(q >> n);
    mad |= (uint32_t)(uint16_t)(s * t + s) << n;
    top |= (uint32_t)(uint16_t)(s > t ? s : t) << n;
    sum |= (uint32_t)(uint16_t)clamp(s + t, -0x8000, 0x7fff) << n;
    shifted |= (p >> n & 0xffff) >> 3 << n;
  }
  put_bits(e, mad);
  put_bits(e, top);
  put_bits(e, sum);
  put_bits(e, shifted);
}

static void expect_halves(expectation *e, uint64_t x, uint64_t y, uint64_t next) {
  (void)next;
  double a[2] = {from_f16(x & 0xffff), from_f16(x >> 16 & 0xffff)},
         b[2] = {from_f16(y & 0xffff), from_f16(y >> 16 & 0xffff)};
  put_f16(e, a[0] + b[0]);
  put_f16(e, a[0] - b[1]);
  put_f16(e, a[1] * b[0]);
  put_f16(e, a[0] / b[0]);
  put_f16(e, (double)((long double)a[0] * b[0] + a[1]));
  put_f16(e, sqrt(a[0]));
  put_f32(e, (float)a[1]);
  put_f16(e, a[0] + b[0]);
  put_f16(e, a[1] + b[1]);
  put_f16(e, a[0] * b[0]);
  put_f16(e, a[1] * b[1]);
  put_f32(e, fmaf((float)a[1], (float)b[0], (float)a[0]));
  put_f16(e, (double)fmaf((float)a[1], (float)b[1], (float)a[0]));
  put_bits(e, (uint64_t)((a[0] < b[0]) | (a[1] >= b[1]) << 1 | (a[0] != b[1]) << 2));
  put_f32(e, (float)a[0] * (float)b[0] + (float)a[0]);
  put_f32(e, (float)a[1] * (float)b[1] + (float)a[1]);
  put_bits(e, (uint32_t)(a[0] > -60000 && a[0] < 60000 ? (int)a[0] : 7));
  put_f16(e, (double)(int16_t)x);
  put_f16(e, (double)(uint16_t)y);
}

static void put_near(expectation *e, float f, uint32_t units) {
  put_f32(e, f);
  e->results[e->count - 1].units = units;
}
static float flushed(float f) {
  return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static void expect_transcendentals(expectation *e, uint64_t x, uint64_t y, uint64_t next) {
  (void)next;
  float a = float_of((uint32_t)x), b = float_of((uint32_t)y);
  put_near(e, (float)exp2((double)a), 2);
  put_near(e, (float)log2((double)a), 2);
  put_near(e, (float)exp((double)a), 4);
  put_near(e, (float)log((double)a), 4);
  put_near(e, (float)log10((double)b), 4);
  put_f32(e, ldexpf(a, (int32_t)(uint32_t)y >> 22));
  put_near(e, (float)exp2((double)(a > -100.0f && a < 100.0f ? a : 1.0f)), 1);
  /* The instructions themselves take and give no denormals. */
  put_near(e, flushed(1.0f / flushed(b)), 1);
  put_near(e, flushed((float)(1.0 / sqrt((double)fabsf(flushed(b))))), 1);
}

/* ---- running ----
 */

typedef struct session {
  device *d;
  device_module *module;
  diags list;
  char label[40];
} session;

static void check(session *s, hd_status status, const char *what) {
  if (status == HD_OK) return;
  text t;
  text_init(&t);
  diags_render(&s->list, s->label, NULL, &t);
  cr_assert_fail("%s: %s: %s\n%s", s->label, what, hd_status_text(status), text_string(&t));
}

static void session_open(session *s, const build_under_test *build) {
  char name[32], path[1024];
  diags_init(&s->list);
  snprintf(s->label, sizeof s->label, "%s -O%s", build->target, build->level);
  snprintf(name, sizeof name, "emu:%s", build->target);
  check(s, device_open(name, &s->d, &s->list), "open");
  snprintf(path, sizeof path, "%s/tests/emu_arithmetic_%s_%s.co", getenv("HEDDLE_BUILD"), build->target,
           build->level);
  FILE *f = fopen(path, "rb");
  cr_assert(f, "%s", path);
  static unsigned char bytes[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  check(s, s->d->vtable->load(s->d, bytes, size, &s->module, &s->list), "load");
}

static device_pointer put(session *s, const void *data, size_t bytes) {
  device_pointer p;
  check(s, s->d->vtable->allocate(s->d, bytes, &p, &s->list), "allocate");
  check(s, s->d->vtable->copy_in(s->d, NULL, p, data, bytes, &s->list), "copy in");
  return p;
}

/* Runs kernel `symbol` over random operands of `width` bytes and compares every result of every item. */
static void compare(const build_under_test *build, const char *symbol, size_t width,
                    uint64_t (*operand)(void), void (*expect)(expectation *, uint64_t, uint64_t, uint64_t)) {
  static uint64_t x[ITEMS], y[ITEMS], results[MAX_RESULTS * ITEMS];
  static unsigned char packed_x[8 * ITEMS], packed_y[8 * ITEMS];
  session s;
  session_open(&s, build);
  for (int i = 0; i < ITEMS; ++i) {
    x[i] = operand();
    y[i] = operand();
    if (i % 16 == 0) y[i] = x[i];
    memcpy(packed_x + width * (size_t)i, &x[i], width); /* little-endian */
    memcpy(packed_y + width * (size_t)i, &y[i], width);
  }
  struct {
    device_pointer x, y, out;
    int n;
  } args = {put(&s, packed_x, width * ITEMS), put(&s, packed_y, width * ITEMS),
            put(&s, results, sizeof results), ITEMS};
  device_function *f;
  check(&s, s.d->vtable->function(s.d, s.module, symbol, 0, &f, &s.list), symbol);
  device_launch launch = {
      .grid = {ITEMS / 64, 1, 1}, .block = {64, 1, 1}, .arguments = &args, .arguments_size = sizeof args};
  check(&s, s.d->vtable->launch(s.d, NULL, f, &launch, &s.list), symbol);
  check(&s, s.d->vtable->copy_out(s.d, NULL, results, args.out, sizeof results, &s.list), "copy out");
  int wrong = 0;
  for (int i = 0; i < ITEMS; ++i) {
    expectation e = {.count = 0};
    expect(&e, x[i], y[i], x[(i + 1) % ITEMS]);
    for (int n = 0; n < e.count; ++n) {
      result got = {results[n * ITEMS + i], e.results[n].kind, 0};
      uint64_t want = e.results[n].bits, distance = got.bits > want ? got.bits - want : want - got.bits;
      bool fine = is_nan(e.results[n]) ? is_nan(got) : distance <= e.results[n].units;
      if (!fine && ++wrong <= 8)
        cr_expect_fail("%s: %s, operation %d of 0x%llx and 0x%llx is 0x%llx, not 0x%llx", s.label, symbol, n,
                       (unsigned long long)x[i], (unsigned long long)y[i], (unsigned long long)got.bits,
                       (unsigned long long)e.results[n].bits);
    }
  }
  cr_expect_eq(wrong, 0, "%s: %s: %d results are wrong", s.label, symbol, wrong);
  s.d->vtable->unload(s.d, s.module);
  device_close(s.d);
  diags_finish(&s.list);
}

static uint64_t f32_operand(void) {
  return random_f32();
}
static uint64_t halves_operand(void) {
  return random_halves();
}

EACH_BUILD(floats) {
  compare(b, "floats", 4, f32_operand, expect_floats);
}
EACH_BUILD(doubles) {
  compare(b, "doubles", 8, random_f64, expect_doubles);
}
EACH_BUILD(integers) {
  compare(b, "integers", 8, random_integer, expect_integers);
}
EACH_BUILD(transcendentals) {
  compare(b, "transcendentals", 4, f32_operand, expect_transcendentals);
}
EACH_BUILD(halves) {
  compare(b, "halves", 4, halves_operand, expect_halves);
}
