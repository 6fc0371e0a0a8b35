/* Kernels of numbers, checked against plain C: conversions, softmax, halves, doubles, matrix products. */
#include "emu_fixture.h"

/* Value of an e4m3 code from its definition; `bias` 7 (OCP) or 8 (FNUZ). */
static double e4m3(uint8_t code, int bias) {
  int exponent = code >> 3 & 15, mantissa = code & 7;
  double m = exponent ? ldexp(8 + mantissa, exponent - bias - 3) : ldexp(mantissa, 1 - bias - 3);
  return code & 0x80 ? -m : m;
}

EACH_BUILD(quantises_rows_to_fp8) {
  enum { ROWS = 5, D = 64, STRIDE = 72 };
  bool fnuz = strcmp(b->target, "gfx942") == 0;
  float qmax = fnuz ? 240 : 448;
  static uint16_t in[ROWS * STRIDE];
  static uint8_t out[ROWS * STRIDE];
  float scales[ROWS];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < ROWS * STRIDE; ++i) {
    float v = random_float() * (i < STRIDE ? 0.0f : 1.0f);
    uint32_t bits;
    memcpy(&bits, &v, 4);
    in[i] = (uint16_t)(bits >> 16);
  }
  struct {
    device_pointer in, out, scales;
    float qmax;
    int64_t stride;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out), put(&t, NULL, sizeof scales), qmax, STRIDE};
  run(&t, "quantise", (shape){{ROWS, 1, 1}, {D, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  get(&t, scales, args.scales, sizeof scales);
  for (int row = 0; row < ROWS; ++row) {
    float amax = 0;
    for (int i = 0; i < D; ++i) {
      uint32_t bits = (uint32_t)in[row * STRIDE + i] << 16;
      float v;
      memcpy(&v, &bits, 4);
      amax = fmaxf(amax, fabsf(v));
    }
    cr_assert_eq(scales[row], amax / qmax, "%s: row %d: scale %.9g, not %.9g", t.label, row, scales[row],
                 amax / qmax);
    for (int i = 0; i < D; ++i) {
      uint32_t bits = (uint32_t)in[row * STRIDE + i] << 16;
      float v;
      memcpy(&v, &bits, 4);
      float want = scales[row] > 0 ? v * (1.0f / scales[row]) : 0;
      double code = e4m3(out[row * STRIDE + i], fnuz ? 8 : 7);
      cr_assert(fabs(code - want) <= fabs(want) / 16 + ldexp(1, -10), "%s: row %d, %d: %g, not %g", t.label,
                row, i, code, want);
    }
  }
  bench_close(&t);
}

EACH_BUILD(runs_an_online_softmax) {
  enum { ROWS = 3, N = 300 };
  static float scores[ROWS][N], values[ROWS][N];
  float out[ROWS];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < ROWS * N; ++i)
    (&scores[0][0])[i] = random_float(), (&values[0][0])[i] = random_float();
  struct {
    device_pointer scores, values, out;
    int n;
  } args = {put(&t, scores, sizeof scores), put(&t, values, sizeof values), put(&t, NULL, sizeof out), N};
  run(&t, "online_softmax", (shape){{ROWS, 1, 1}, {64, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0, mean = 0;
    for (int i = 0; i < N; ++i) {
      double p = exp((double)scores[row][i] - 10);
      sum += p;
      mean += p * (double)values[row][i];
    }
    cr_assert_float_eq(out[row], mean / sum, 1e-5, "%s: row %d: %g, not %g", t.label, row, out[row],
                       mean / sum);
  }
  bench_close(&t);
}

static float polynomial(float x, int degree, const float *c) {
  float r = 0;
  for (int i = degree; i >= 0; --i)
    r = r * x + c[i];
  return r;
}

EACH_BUILD(calls_functions) {
  enum { DEGREE = 5 };
  float x[64], c[DEGREE + 1], out[64];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 64; ++i)
    x[i] = random_float() / 8;
  for (int i = 0; i <= DEGREE; ++i)
    c[i] = random_float();
  struct {
    device_pointer x, c, out;
    int degree;
  } args = {put(&t, x, sizeof x), put(&t, c, sizeof c), put(&t, NULL, sizeof out), DEGREE};
  run(&t, "calls", one_wave, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < 64; ++i) {
    float want = polynomial(x[i], DEGREE, c) + polynomial(-x[i], i % (DEGREE + 1), c);
    cr_assert_float_eq(out[i], want, 1e-4 * fabs((double)want) + 1e-4, "%s: [%d] %g, not %g", t.label, i,
                       out[i], want);
  }
  bench_close(&t);
}

static uint16_t half(double v) { /* of a value that f16 holds exactly */
  if (v == 0) return 0;
  int exponent;
  double m = frexp(fabs(v), &exponent);
  return (uint16_t)((v < 0 ? 0x8000 : 0) | (unsigned)(exponent + 14) << 10 | ((unsigned)(m * 2048) & 1023));
}
static double of_half(uint16_t h) {
  double m = ldexp(1024 + (h & 1023), (h >> 10 & 31) - 25);
  return h & 0x8000 ? -m : m;
}

EACH_BUILD(computes_in_halves) {
  uint16_t x[128], y[128], out[128], brain[64];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 128; ++i)
    x[i] = half((int)(random_bits() % 64) + 1), y[i] = half((int)(random_bits() % 32) - 15.5);
  struct {
    device_pointer a, b, out, brain;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof out),
            put(&t, NULL, sizeof brain)};
  run(&t, "halves", one_wave, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  get(&t, brain, args.brain, sizeof brain);
  for (int i = 0; i < 128; ++i) {
    double want = of_half(x[i]) * of_half(y[i]) + of_half(x[i]) - (i % 2 ? 0.5 : 0); /* all exact in f16 */
    cr_assert_eq(out[i], half(want), "%s: [%d] %04x, not %04x", t.label, i, out[i], half(want));
  }
  for (int i = 0; i < 64; ++i) {
    float want = (float)(of_half(x[2 * i]) * 3); /* at most 192: exact in bf16's 8 bits */
    uint32_t bits;
    memcpy(&bits, &want, 4);
    cr_assert_eq(brain[i], bits >> 16, "%s: bf16 [%d] %04x, not %04x", t.label, i, brain[i], bits >> 16);
  }
  bench_close(&t);
}

EACH_BUILD(divides_doubles_exactly) {
  double x[64], y[64], out[128];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 64; ++i) {
    x[i] = fabs((double)random_float()) + 0.1;
    y[i] = (double)random_float() * 1e-3 + 17;
  }
  struct {
    device_pointer a, b, out;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof out)};
  run(&t, "doubles", one_wave, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < 64; ++i) {
    cr_assert_eq(out[2 * i], x[i] / y[i], "%s: %.17g / %.17g: %.17g", t.label, x[i], y[i], out[2 * i]);
    double want = sqrt(x[i]) * y[i] + (int)x[i];
    cr_assert_float_eq(out[2 * i + 1], want, 1e-13 * want, "%s: [%d]", t.label, i);
  }
  bench_close(&t);
}

EACH_BUILD(multiplies_fp8_matrices) {
  enum { K = 256 };
  static uint8_t x[16][K], y[16][K];
  float out[16][16];
  int bias = strcmp(b->target, "gfx942") == 0 ? 8 : 7;
  uint32_t wave = strncmp(b->target, "gfx9", 4) == 0 ? 64 : 32;
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 16 * K; ++i) {
    (&x[0][0])[i] = (uint8_t)(0x28 + random_bits() % 24 + (random_bits() % 2 ? 0x80 : 0));
    (&y[0][0])[i] = (uint8_t)(0x28 + random_bits() % 24 + (random_bits() % 2 ? 0x80 : 0));
  }
  struct {
    device_pointer a, b, c;
    int k;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof out), K};
  run(&t, "matrix_fp8", (shape){{1, 1, 1}, {wave, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.c, sizeof out);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      double want = 0;
      for (int k = 0; k < K; ++k)
        want += e4m3(x[i][k], bias) * e4m3(y[j][k], bias);
      cr_assert_float_eq(out[i][j], want, 1e-3, "%s: [%d][%d] %g, not %g", t.label, i, j, out[i][j], want);
    }
  bench_close(&t);
}

EACH_BUILD(multiplies_half_matrices) {
  enum { K = 64 };
  static uint16_t x[16][K], y[16][K];
  float out[2][16][16];
  uint32_t wave = strncmp(b->target, "gfx9", 4) == 0 ? 64 : 32;
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 16 * K; ++i) {
    (&x[0][0])[i] = half((int)(random_bits() % 33) - 16);
    (&y[0][0])[i] = half((int)(random_bits() % 33) - 16);
  }
  struct {
    device_pointer a, b, c;
    int k;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof out), K};
  run(&t, "matrix_half", (shape){{1, 1, 1}, {wave, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.c, sizeof out);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      double want = 0, brain = 0, size = 0;
      for (int k = 0; k < K; ++k) {
        uint32_t xb = (uint32_t)x[i][k] << 16, yb = (uint32_t)y[j][k] << 16;
        float xf, yf;
        memcpy(&xf, &xb, 4);
        memcpy(&yf, &yb, 4);
        want += (x[i][k] ? of_half(x[i][k]) : 0) * (y[j][k] ? of_half(y[j][k]) : 0);
        brain += (double)xf * (double)yf;
        size += fabs((double)xf * (double)yf);
      }
      cr_assert_eq(out[0][i][j], want, "%s: f16 [%d][%d] %g, not %g", t.label, i, j, out[0][i][j], want);
      cr_assert_float_eq(out[1][i][j], brain, 1e-6 * size, "%s: bf16 [%d][%d] %g, not %g", t.label, i, j,
                         out[1][i][j], brain);
    }
  bench_close(&t);
}
