/* The emulated device, from code object to result: kernels compiled at three levels for every target, checked
 * against plain C; faults planted in kernels are named. */
#include "../../runtime/device/device.h"
#include "../../runtime/object/elf64.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct build_under_test {
  char target[16];
  char level[8];
} build_under_test;

#define EACH_BUILD(test)                                                                                     \
  ParameterizedTestParameters(emu, test) {                                                                   \
    static build_under_test builds[] = {EMU_TEST_BUILDS};                                                    \
    return cr_make_param_array(build_under_test, builds, sizeof builds / sizeof *builds);                    \
  }                                                                                                          \
  ParameterizedTest(build_under_test *b, emu, test)

/* ---- A device with one loaded code object ---- */

typedef struct bench {
  device *d;
  device_module *module;
  diags list;
  char label[40];
} bench;

static void check(bench *b, hd_status status, const char *what) {
  if (status == HD_OK) return;
  text t;
  text_init(&t);
  diags_render(&b->list, b->label, NULL, &t);
  cr_assert_fail("%s: %s: %s\n%s", b->label, what, hd_status_text(status), text_string(&t));
}

static void bench_open_part(bench *b, const build_under_test *build, const char *part) {
  char name[32], path[1024];
  diags_init(&b->list);
  snprintf(b->label, sizeof b->label, "%s -O%s", build->target, build->level);
  snprintf(name, sizeof name, "emu:%s", build->target);
  check(b, device_open(name, &b->d, &b->list), "open");
  snprintf(path, sizeof path, "%s/tests/emu_%s_%s_%s.co", getenv("HEDDLE_BUILD"), part, build->target,
           build->level);
  FILE *f = fopen(path, "rb");
  cr_assert(f, "%s", path);
  static unsigned char bytes[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  check(b, b->d->vtable->load(b->d, bytes, size, &b->module, &b->list), "load");
}

static void bench_open(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "kernels");
}
static void bench_open_faults(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "faults");
}

static void bench_open_unwritten(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "unwritten");
}

static void bench_open_copies(bench *b, const build_under_test *build) {
  bench_open_part(b, build, "copies");
}

static void bench_close(bench *b) {
  b->d->vtable->unload(b->d, b->module);
  device_close(b->d);
  diags_finish(&b->list);
}

static device_pointer put(bench *b, const void *data, size_t bytes) {
  device_pointer p;
  check(b, b->d->vtable->allocate(b->d, bytes, &p, &b->list), "allocate");
  if (data) check(b, b->d->vtable->copy_in(b->d, NULL, p, data, bytes, &b->list), "copy in");
  return p;
}

static void get(bench *b, void *data, device_pointer p, size_t bytes) {
  check(b, b->d->vtable->copy_out(b->d, NULL, data, p, bytes, &b->list), "copy out");
}

typedef struct shape {
  uint32_t grid[3], block[3], lds;
} shape;

static hd_status try_launch(bench *b, const char *symbol, shape s, const void *arguments, size_t size) {
  device_function *f;
  check(b, b->d->vtable->function(b->d, b->module, symbol, s.lds, &f, &b->list), symbol);
  device_launch l = {.lds_bytes = s.lds, .arguments = arguments, .arguments_size = size};
  memcpy(l.grid, s.grid, sizeof l.grid);
  memcpy(l.block, s.block, sizeof l.block);
  return b->d->vtable->launch(b->d, NULL, f, &l, &b->list);
}

static void run(bench *b, const char *symbol, shape s, const void *arguments, size_t size) {
  check(b, try_launch(b, symbol, s, arguments, size), symbol);
}

static uint32_t random_state = 1;
static uint32_t random_bits(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}
static float random_float(void) {
  return (float)(int)(random_bits() % 20001) / 1000.0f - 10.0f;
}

static const shape one_wave = {{1, 1, 1}, {64, 1, 1}, 0};

/* ---- Kernels ---- */

EACH_BUILD(adds_vectors_within_bounds) {
  enum { N = 1000 };
  static float x[N], y[N], z[N];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < N; ++i)
    x[i] = random_float(), y[i] = random_float();
  struct {
    device_pointer a, b, c;
    int n;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof z), N};
  run(&t, "vector_add", (shape){{(N + 255) / 256, 1, 1}, {256, 1, 1}, 0}, &args, sizeof args);
  get(&t, z, args.c, sizeof z);
  for (int i = 0; i < N; ++i)
    cr_assert_eq(z[i], x[i] + y[i], "%s: [%d] %g, not %g", t.label, i, z[i], x[i] + y[i]);
  bench_close(&t);
}

EACH_BUILD(reduces_through_lds_and_barriers) {
  enum { N = 1000, GROUPS = 4 };
  float x[N], sums[GROUPS];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < N; ++i)
    x[i] = (float)(i % 37);
  struct {
    device_pointer in, out;
    int n;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof sums), N};
  run(&t, "reduce", (shape){{GROUPS, 1, 1}, {256, 1, 1}, 0}, &args, sizeof args);
  get(&t, sums, args.out, sizeof sums);
  for (int g = 0; g < GROUPS; ++g) {
    float want = 0;
    for (int i = g * 256; i < N && i < (g + 1) * 256; ++i)
      want += x[i];
    cr_assert_eq(sums[g], want, "%s: group %d: %g, not %g", t.label, g, sums[g], want);
  }
  bench_close(&t);
}

EACH_BUILD(numbers_a_three_dimensional_grid) {
  enum { X = 3 * 8, Y = 2 * 4, Z = 2 * 3 };
  static uint32_t out[Z][Y][X];
  bench t;
  bench_open(&t, b);
  struct {
    device_pointer out;
    int width, height;
  } args = {put(&t, NULL, sizeof out), X, Y};
  run(&t, "grid_ids", (shape){{3, 2, 2}, {8, 4, 3}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (uint32_t z = 0; z < Z; ++z)
    for (uint32_t y = 0; y < Y; ++y)
      for (uint32_t x = 0; x < X; ++x)
        cr_assert_eq(out[z][y][x], x + 1000 * y + 1000000 * z, "%s: %u %u %u: %u", t.label, x, y, z,
                     out[z][y][x]);
  bench_close(&t);
}

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

EACH_BUILD(divides_and_multiplies_wide_integers) {
  enum { N = 128 };
  static int64_t x[N], y[N], out[N][6];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < N; ++i) {
    x[i] = (int64_t)((uint64_t)random_bits() << 40 ^ (uint64_t)random_bits() << 20 ^ random_bits()) >>
           (random_bits() % 50);
    y[i] = (int64_t)((uint64_t)random_bits() << 40 ^ random_bits()) >> (random_bits() % 60);
    if (i % 3 == 0) x[i] = -x[i];
    if (y[i] == 0) y[i] = 3;
  }
  struct {
    device_pointer a, b, out;
    int n;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), put(&t, NULL, sizeof out), N};
  run(&t, "integers", (shape){{2, 1, 1}, {64, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < N; ++i) {
    int64_t p = x[i], q = y[i];
    int64_t want[6] = {p / q,
                       p % q,
                       (int64_t)((int)p / (int)(q | 1)),
                       (int64_t)((uint32_t)p % (uint32_t)(q | 1)),
                       (int64_t)((uint64_t)p * (uint64_t)q) ^ (int64_t)((uint64_t)p >> (q & 63)),
                       __builtin_popcountll((uint64_t)p) + __builtin_clzll((uint64_t)p | 1) +
                           (p < q ? 100 : 0)};
    for (int k = 0; k < 6; ++k)
      cr_assert_eq(out[i][k], want[k], "%s: [%d][%d] of %lld, %lld: %lld, not %lld", t.label, i, k,
                   (long long)p, (long long)q, (long long)out[i][k], (long long)want[k]);
  }
  bench_close(&t);
}

EACH_BUILD(keeps_private_arrays_in_scratch) {
  enum { N = 1024, THREADS = 128 };
  static int in[N], out[THREADS];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < N; ++i)
    in[i] = (int)(random_bits() % 1000);
  struct {
    device_pointer in, out;
    int n;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out), N};
  run(&t, "scratch", (shape){{1, 1, 1}, {THREADS, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int n = 0; n < THREADS; ++n) {
    int local[24];
    uint32_t sum = 0;
    for (int i = 0; i < 24; ++i)
      local[i] = in[(n * 24 + i) % N];
    for (int i = 0; i < 24; ++i) {
      local[(unsigned)local[i] % 24] += i;
      sum = sum * 3 + (uint32_t)local[(i * 7 + n) % 24];
    }
    cr_assert_eq((uint32_t)out[n], sum, "%s: thread %d", t.label, n);
  }
  bench_close(&t);
}

EACH_BUILD(updates_memory_and_lds_atomically) {
  enum { GROUPS = 4, THREADS = 128, N = GROUPS * THREADS };
  uint32_t counter[1 + GROUPS] = {0};
  float sum = 0;
  uint64_t wide = 0;
  static int order[N];
  bool seen[N] = {false};
  bench t;
  bench_open(&t, b);
  struct {
    device_pointer counter, sum, wide, order;
  } args = {put(&t, counter, sizeof counter), put(&t, &sum, sizeof sum), put(&t, &wide, sizeof wide),
            put(&t, NULL, sizeof order)};
  run(&t, "atomics", (shape){{GROUPS, 1, 1}, {THREADS, 1, 1}, 0}, &args, sizeof args);
  get(&t, counter, args.counter, sizeof counter);
  get(&t, &sum, args.sum, sizeof sum);
  get(&t, &wide, args.wide, sizeof wide);
  get(&t, order, args.order, sizeof order);
  cr_assert_eq(counter[0], N);
  cr_assert_eq(sum, 0.5f * N);
  cr_assert_eq(wide, (uint64_t)(N - 1) << 33);
  for (int g = 0; g < GROUPS; ++g)
    cr_assert_eq(counter[1 + g], 2 * THREADS);
  for (int i = 0; i < N; ++i) {
    cr_assert(order[i] >= 0 && order[i] < N && !seen[order[i]], "%s: ticket %d", t.label, i);
    seen[order[i]] = true;
  }
  bench_close(&t);
}

EACH_BUILD(gives_a_launch_its_dynamic_lds) {
  enum { GROUPS = 3, THREADS = 192 };
  static uint32_t in[GROUPS * THREADS], out[GROUPS * THREADS];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < GROUPS * THREADS; ++i)
    in[i] = random_bits();
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "dynamic_lds", (shape){{GROUPS, 1, 1}, {THREADS, 1, 1}, THREADS * 4}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int g = 0; g < GROUPS; ++g)
    for (int i = 0; i < THREADS; ++i)
      cr_assert_eq(out[g * THREADS + i], in[g * THREADS + THREADS - 1 - i], "%s", t.label);
  bench_close(&t);
}

EACH_BUILD(moves_data_across_lanes) {
  int wave = strncmp(b->target, "gfx9", 4) == 0 ? 64 : 32;
  int in[64], out[6][64];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < 64; ++i)
    in[i] = (int)(random_bits() % 1000);
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "lanes", (shape){{1, 1, 1}, {(uint32_t)wave, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < wave; ++i) {
    int sum = 0;
    for (int k = 0; k < 16; ++k)
      sum += in[(i & ~15) + k];
    cr_assert_eq(out[0][i], sum, "%s: sum at %d: %d, not %d", t.label, i, out[0][i], sum);
    cr_assert_eq(out[1][i], in[i ^ 5], "%s: bpermute at %d", t.label, i);
    cr_assert_eq(out[2][i], in[3] + in[0], "%s: readlane at %d", t.label, i);
    cr_assert_eq(out[3][i], i % 16 ? in[i - 1] : -7, "%s: shift at %d: %d", t.label, i, out[3][i]);
    cr_assert_eq(out[4][i], in[i ^ 1], "%s: swizzle at %d", t.label, i);
    cr_assert_eq(out[5][i], i, "%s: lane id at %d: %d", t.label, i, out[5][i]);
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

EACH_BUILD(keeps_more_values_than_256_registers_hold) {
  enum { LIVE = 300 };
  static float x[LIVE][64], out[LIVE][64];
  uint32_t wave = strncmp(b->target, "gfx9", 4) == 0 ? 64 : 32;
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < LIVE * 64; ++i)
    (&x[0][0])[i] = (float)(int)(random_bits() % 64) - 32;
  struct {
    device_pointer in, out;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof out)};
  run(&t, "many_registers", (shape){{1, 1, 1}, {wave, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (uint32_t lane = 0; lane < wave; ++lane) {
    float v[LIVE];
    for (int n = 0; n < LIVE; ++n)
      v[n] = x[n][lane];
    for (int n = 0; n < LIVE; ++n)
      v[n] = v[n] * v[LIVE - 1 - n] + v[(n + 7) % LIVE]; /* whole numbers: exact or rounded alike */
    for (int n = 0; n < LIVE; ++n)
      cr_assert_float_eq(out[n][lane], v[n], 1e-6 * fabs((double)v[n]), "%s: value %d of lane %u: %g, not %g",
                         t.label, n, lane, out[n][lane], v[n]);
  }
  bench_close(&t);
}

EACH_BUILD(replays_a_captured_graph) {
  enum { N = 256 };
  float x[N], y[N], z[N];
  bench t;
  bench_open(&t, b);
  for (int i = 0; i < N; ++i)
    x[i] = (float)i, y[i] = 1;
  struct {
    device_pointer a, b, c;
    int n;
  } args = {put(&t, x, sizeof x), put(&t, y, sizeof y), 0, N};
  args.c = args.a; /* a += b at each replay */
  device_stream *s;
  device_graph *g;
  device_function *f;
  const device_vtable *v = t.d->vtable;
  check(&t, v->stream_create(t.d, &s, &t.list), "stream");
  check(&t, v->function(t.d, t.module, "vector_add", 0, &f, &t.list), "function");
  device_launch l = {
      .grid = {1, 1, 1}, .block = {N, 1, 1}, .arguments = &args, .arguments_size = sizeof args};
  check(&t, v->capture_begin(t.d, s, &t.list), "begin");
  check(&t, v->launch(t.d, s, f, &l, &t.list), "launch");
  check(&t, v->capture_end(t.d, s, &g, &t.list), "end");
  memset(&args, 0, sizeof args); /* the graph has its own copy of the arguments */
  for (int n = 0; n < 3; ++n)
    check(&t, v->graph_launch(t.d, g, s, &t.list), "replay");
  device_pointer a;
  memcpy(&a, l.arguments, sizeof a);
  cr_assert_eq(a, 0);
  v->graph_destroy(t.d, g);
  v->stream_destroy(t.d, s);
  bench_close(&t);
  (void)z;
}

/* ---- Copies to LDS ---- */

EACH_BUILD(copies_through_lds) {
  enum { THREADS = 128 };
  static uint32_t in[THREADS][4], out[THREADS][4];
  bench t;
  bench_open_copies(&t, b);
  for (int i = 0; i < THREADS * 4; ++i)
    (&in[0][0])[i] = random_bits();
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "through_lds", (shape){{1, 1, 1}, {THREADS, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int i = 0; i < THREADS; ++i)
    cr_assert_arr_eq(out[i], in[THREADS - 1 - i], sizeof out[i], "%s: thread %d", t.label, i);
  bench_close(&t);
}

EACH_BUILD(transposes_lds_reads) {
  uint16_t in[16][16], out[64][4];
  uint8_t bytes[32][16], columns[64][8];
  bench t;
  if (strcmp(b->target, "gfx950") != 0) return; /* the instruction is gfx950's */
  bench_open_copies(&t, b);
  for (int i = 0; i < 256; ++i)
    (&in[0][0])[i] = (uint16_t)random_bits();
  for (int i = 0; i < 512; ++i)
    (&bytes[0][0])[i] = (uint8_t)random_bits();
  struct {
    device_pointer in, out;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out)};
  run(&t, "transposed_16", one_wave, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < 4; ++e)
      cr_assert_eq(out[lane][e], in[lane / 16 * 4 + e][lane % 16], "%s: lane %d element %d", t.label, lane,
                   e);
  args.in = put(&t, bytes, sizeof bytes);
  args.out = put(&t, NULL, sizeof columns);
  run(&t, "transposed_8", one_wave, &args, sizeof args);
  get(&t, columns, args.out, sizeof columns);
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < 8; ++e)
      cr_assert_eq(columns[lane][e], bytes[lane / 16 * 8 + e][lane % 16], "%s: lane %d element %d", t.label,
                   lane, e);
  bench_close(&t);
}

EACH_BUILD(copies_padded_tiles) {
  enum { STRIDE = 32, ROWS = 6, COLUMNS = 17, OUT = 200 };
  static uint16_t in[8][STRIDE], out[OUT];
  bench t;
  if (strcmp(b->target, "gfx1250") != 0) return; /* the instruction is gfx1250's */
  bench_open_copies(&t, b);
  for (int i = 0; i < 8 * STRIDE; ++i)
    (&in[0][0])[i] = (uint16_t)(random_bits() | 1);
  struct {
    device_pointer in, out;
    int stride, rows, columns;
  } args = {put(&t, in, sizeof in), put(&t, NULL, sizeof out), STRIDE, ROWS, COLUMNS};
  run(&t, "tensor_copy", (shape){{1, 1, 1}, {32, 1, 1}, 0}, &args, sizeof args);
  get(&t, out, args.out, sizeof out);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 20; ++x) {
      int packed = 2 * (y * 20 + x), at = (packed + packed / 16 * 4) / 2; /* one word after every four */
      uint16_t want = y < ROWS && x < COLUMNS ? in[y][x] : 0;
      cr_assert_eq(out[at], want, "%s: [%d][%d] %04x, not %04x", t.label, y, x, out[at], want);
    }
  bench_close(&t);
}

/* ---- Faults ---- */

static void expect_fault(bench *t, const char *symbol, shape s, const void *arguments, size_t size,
                         const char *phrase) {
  hd_status status = try_launch(t, symbol, s, arguments, size);
  cr_assert_eq(status, HD_DEVICE, "%s: %s: %s", t->label, symbol, hd_status_text(status));
  cr_assert_gt(t->list.count, 1);
  cr_assert(strstr(t->list.items[0].message, phrase), "%s: \"%s\" lacks \"%s\"", t->label,
            t->list.items[0].message, phrase);
  cr_assert(strstr(t->list.items[0].message, symbol), "%s: \"%s\" does not name the kernel", t->label,
            t->list.items[0].message);
  bool marked = false;
  for (size_t n = 1; n < t->list.count; ++n)
    marked = marked || strstr(t->list.items[n].message, "->");
  cr_assert(marked, "%s: no disassembly", t->label);
}

EACH_BUILD(names_a_read_past_the_end) {
  float x[64] = {0};
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
    int at;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof x), 1};
  expect_fault(&t, "reads_past_end", one_wave, &args, sizeof args,
               "0 bytes past the end of allocation 1 (256 bytes");
  bench_close(&t);
}

EACH_BUILD(names_a_write_past_the_end) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), 2};
  expect_fault(&t, "writes_past_end", one_wave, &args, sizeof args, "write of 4 bytes");
  bench_close(&t);
}

EACH_BUILD(names_atomics_off_a_word) {
  static const char *const kernels[] = {"adds_to_lds_off_a_word", "adds_off_a_word"};
  bench t;
  bench_open_part(&t, b, "alignment");
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 512), 0};
  for (int n = 0; n < 2; ++n) {
    args.at = 0;
    run(&t, kernels[n], one_wave, &args, sizeof args);
    args.at = 2;
    expect_fault(&t, kernels[n], one_wave, &args, sizeof args, "misaligned");
    diags_finish(&t.list);
    diags_init(&t.list);
  }
  args.at = 3; /* unaligned access mode */
  run(&t, "reads_bytes_of_lds", one_wave, &args, sizeof args);
  bench_close(&t);
}

EACH_BUILD(stops_a_kernel_that_never_ends) {
  int flag = 0;
  bench t;
  setenv("HEDDLE_EMU_BUDGET", "100000", 1);
  bench_open_faults(&t, b);
  struct {
    device_pointer flag;
  } args = {put(&t, &flag, sizeof flag)};
  expect_fault(&t, "never_ends", one_wave, &args, sizeof args, "HEDDLE_EMU_BUDGET");
  bench_close(&t);
  unsetenv("HEDDLE_EMU_BUDGET");
}

EACH_BUILD(reports_a_trap) {
  bench t;
  bench_open_faults(&t, b);
  expect_fault(&t, "traps", one_wave, NULL, 0, "trap");
  bench_close(&t);
}

EACH_BUILD(names_registers_used_before_their_load_was_waited_for) {
  float x[65] = {0};
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
  } args = {put(&t, x, sizeof x), put(&t, NULL, sizeof x)};
  run(&t, "waits_enough", one_wave, &args, sizeof args);
  expect_fault(&t, "uses_before_wait", one_wave, &args, sizeof args, "must be at most 0 here");
  diags_finish(&t.list);
  diags_init(&t.list);
  expect_fault(&t, "overwrites_before_wait", one_wave, &args, sizeof args,
               "before the load into it was waited for");
  bench_close(&t);
}

EACH_BUILD(names_races_in_lds) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 512)};
  expect_fault(&t, "races_in_lds", (shape){{1, 1, 1}, {128, 1, 1}, 0}, &args, sizeof args, "race in LDS");
  bench_close(&t);
}

EACH_BUILD(names_lds_that_nothing_wrote) {
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 256)};
  expect_fault(&t, "reads_unwritten_lds", one_wave, &args, sizeof args,
               "lane 5: LDS byte 20 is read, and nothing wrote it");
  bench_close(&t);
}

EACH_BUILD(knows_the_order_that_named_barriers_give) {
  if (strcmp(b->target, "gfx1250") != 0) return; /* alone has them */
  bench t;
  bench_open_part(&t, b, "barriers");
  struct {
    device_pointer out;
    int ordered;
  } args = {put(&t, NULL, 128), 1};
  const shape two_waves_of_32 = {{1, 1, 1}, {64, 1, 1}, 0};
  run(&t, "hands_over", two_waves_of_32, &args, 12);
  int got[32];
  check(&t, t.d->vtable->copy_out(t.d, NULL, got, args.out, sizeof got, &t.list), "copy out");
  for (int n = 0; n < 32; ++n)
    cr_expect_eq(got[n], 3 * n);
  args.ordered = 0;
  expect_fault(&t, "hands_over", two_waves_of_32, &args, 12,
               "race in LDS at byte 0: written here, read by wave 1");
  bench_close(&t);
}

static void forget_fault(bench *t) {
  diags_finish(&t->list);
  diags_init(&t->list);
}

EACH_BUILD(names_an_lds_byte_that_nothing_wrote) {
  bench t;
  bench_open_unwritten(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), -1};
  run(&t, "reads_one_unwritten_lds_byte", one_wave, &args, 12);
  args.at = 4 * 7 + 2;
  expect_fault(&t, "reads_one_unwritten_lds_byte", one_wave, &args, 12,
               "lane 7: LDS byte 30 is read, and nothing wrote it");
  bench_close(&t);
}

/* What a copy to LDS takes along is held to account when LDS is read. */
EACH_BUILD(names_lds_that_holds_a_copy_of_memory_that_nothing_wrote) {
  if (strcmp(b->target, "gfx1201") == 0) return; /* has no such copies */
  int words[64] = {0};
  bench t;
  bench_open_unwritten(&t, b);
  struct {
    device_pointer in, out;
    int at;
  } args = {put(&t, NULL, 256), put(&t, NULL, 256), 9};
  check(&t, t.d->vtable->copy_in(t.d, NULL, args.in, words, 40, &t.list), "copy in");
  run(&t, "reads_one_of_a_copy", one_wave, &args, 20);
  args.at = 10;
  expect_fault(&t, "reads_one_of_a_copy", one_wave, &args, 20, "LDS byte 40 is read, and nothing wrote it");
  bench_close(&t);
}

EACH_BUILD(names_a_byte_of_memory_that_nothing_wrote) {
  bench t;
  bench_open_unwritten(&t, b);
  const device_vtable *v = t.d->vtable;
  device_pointer bytes = put(&t, NULL, 256);
  struct {
    device_pointer in, out;
  } args = {bytes, put(&t, NULL, 64)};
  check(&t, v->fill(t.d, NULL, bytes, 0, 19, &t.list), "fill");
  check(&t, v->fill(t.d, NULL, bytes + 20, 0, 236, &t.list), "fill");
  expect_fault(&t, "copies_bytes", one_wave, &args, sizeof args, "lane 19: 1 bytes at 0x");
  forget_fault(&t);
  args.in = bytes + 20; /* its neighbours are nobody's business */
  run(&t, "copies_bytes", one_wave, &args, sizeof args);
  args.in = bytes;
  check(&t, v->fill(t.d, NULL, bytes + 19, 0, 1, &t.list), "fill");
  run(&t, "copies_bytes", one_wave, &args, sizeof args);
  bench_close(&t);
}

EACH_BUILD(names_memory_that_nothing_wrote) {
  int words[64] = {0};
  bench t;
  bench_open_faults(&t, b);
  const device_vtable *v = t.d->vtable;
  device_pointer half = put(&t, NULL, 512), empty = put(&t, NULL, 256), out = put(&t, NULL, 512);
  check(&t, v->copy_in(t.d, NULL, half, words, 256, &t.list), "copy in");
  struct {
    device_pointer in, out;
    int at;
  } args = {half, out, 0};
  run(&t, "copies_words", one_wave, &args, 16);
  args.in = out;
  args.out = out + 256;
  run(&t, "copies_words", one_wave, &args, 16); /* a kernel wrote it */
  args.in = half + 256;
  expect_fault(&t, "copies_words", one_wave, &args, 16, "lane 0: 4 bytes at 0x");
  cr_assert(strstr(t.list.items[0].message,
                   "are read, and nothing wrote them: byte 256 of allocation 1 (512 bytes"),
            "%s", t.list.items[0].message);
  forget_fault(&t);
  /* All but one byte. */
  check(&t, v->fill(t.d, NULL, half + 256, 0, 4 * 9 + 3, &t.list), "fill");
  check(&t, v->fill(t.d, NULL, half + 256 + 40, 0, 216, &t.list), "fill");
  expect_fault(&t, "copies_words", one_wave, &args, 16, "lane 9: 4 bytes at 0x");
  cr_assert(strstr(t.list.items[0].message,
                   "are read, and nothing wrote 1 of them: byte 295 of allocation 1 (512 bytes"),
            "%s", t.list.items[0].message);
  forget_fault(&t);
  args.in = half + 256;
  check(&t, v->fill(t.d, NULL, half + 256 + 39, 0, 1, &t.list), "fill");
  run(&t, "copies_words", one_wave, &args, 16);
  args.in = empty;
  check(&t, v->copy_in(t.d, NULL, empty, words, 8, &t.list), "copy in");
  args.at = 1;
  run(&t, "loads_a_scalar", one_wave, &args, sizeof args);
  args.at = 2;
  expect_fault(&t, "loads_a_scalar", one_wave, &args, sizeof args, "byte 8 of allocation 2");
  forget_fault(&t);
  device_pointer sum = empty;
  run(&t, "adds_to_memory", one_wave, &sum, sizeof sum);
  sum = empty + 12;
  expect_fault(&t, "adds_to_memory", one_wave, &sum, sizeof sum, "byte 12 of allocation 2");
  bench_close(&t);
}

/* The line of the planted fault, found in the source, not written down here. */
static int line_of(const char *phrase) {
  char path[1024], line[1024];
  snprintf(path, sizeof path, "%s/tests/emu/faults.hip", getenv("HEDDLE_SOURCE"));
  FILE *f = fopen(path, "r");
  cr_assert(f, "%s", path);
  for (int n = 1; fgets(line, sizeof line, f); ++n)
    if (strstr(line, phrase)) {
      fclose(f);
      return n;
    }
  fclose(f);
  return 0;
}

EACH_BUILD(names_source_lines) {
  char place[64];
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int at;
  } args = {put(&t, NULL, 256), 2};
  snprintf(place, sizeof place, "faults.hip:%d)", line_of("KERNEL void writes_past_end"));
  expect_fault(&t, "writes_past_end", one_wave, &args, sizeof args, place);
  diags_finish(&t.list);
  diags_init(&t.list);
  snprintf(place, sizeof place, "faults.hip:%d)", line_of("__builtin_trap"));
  expect_fault(&t, "traps", one_wave, NULL, 0, place);
  bench_close(&t);
}

EACH_BUILD(survives_damaged_source_lines) {
  static unsigned char bytes[1 << 20], damaged[1 << 20];
  char path[1024];
  bench t;
  bench_open_faults(&t, b);
  snprintf(path, sizeof path, "%s/tests/emu_faults_%s_%s.co", getenv("HEDDLE_BUILD"), b->target, b->level);
  FILE *f = fopen(path, "rb");
  cr_assert(f, "%s", path);
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  elf64 e;
  elf64_section lines;
  cr_assert_eq(elf64_open(bytes, size, &e, &t.list), HD_OK);
  cr_assert(elf64_section_find(&e, ".debug_line", &lines) && lines.size > 100);
  for (int round = 0; round < 40; ++round) {
    memcpy(damaged, bytes, size);
    for (int n = 0; n < 1 + round / 4; ++n)
      damaged[lines.offset + random_bits() % (round % 2 ? 100 : lines.size)] = (unsigned char)random_bits();
    device_module *m; /* the code is whole: it loads, whatever the lines say */
    check(&t, t.d->vtable->load(t.d, damaged, size, &m, &t.list), "load");
    t.d->vtable->unload(t.d, m);
  }
  bench_close(&t);
}

EACH_BUILD(names_waves_that_part_at_a_barrier) {
  static const int zeros[128];
  static const shape two_waves = {{1, 1, 1}, {128, 1, 1}, 0};
  static const struct {
    const char *kernel;
    int half;
    const char *phrase;
  } faults[] = {
      {"half_a_barrier", 0, "divergence at a barrier: wave 0 waits at another one, 0x"},
      {"half_leaves", 1, "divergence at a barrier: the wave ends while wave 0 waits at 0x"},
      {"half_leaves", 0, " without coming to it"},
  };
  bench t;
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
    int rounds;
  } args = {put(&t, zeros, sizeof zeros), 5};
  run(&t, "meets_at_one_barrier", two_waves, &args, sizeof args);
  args.rounds = 0;
  run(&t, "meets_at_one_barrier", two_waves, &args, sizeof args);
  for (size_t n = 0; n < sizeof faults / sizeof *faults; ++n) {
    args.rounds = faults[n].half;
    expect_fault(&t, faults[n].kernel, two_waves, &args, sizeof args, faults[n].phrase);
    diags_finish(&t.list);
    diags_init(&t.list);
  }
  bench_close(&t);
}

EACH_BUILD(names_copies_used_before_they_landed) {
  static const char zeros[512];
  bench t;
  if (strcmp(b->target, "gfx1250") != 0) return; /* elsewhere the compiler waits */
  bench_open_faults(&t, b);
  struct {
    device_pointer in, out;
  } args = {put(&t, zeros, sizeof zeros), put(&t, NULL, 512)};
  expect_fault(&t, "copy_not_waited_for", (shape){{1, 1, 1}, {32, 1, 1}, 0}, &args, sizeof args, "asynccnt");
  bench_close(&t);
}

/* A copy past the registers may write LDS before an access that was asked for earlier has come to it. */
EACH_BUILD(names_copies_over_what_is_still_being_read) {
  int words[128];
  bench t;
  if (strcmp(b->target, "gfx1201") == 0) return; /* has no such copies */
  for (int n = 0; n < 128; ++n)
    words[n] = 3 * n + 1;
  bench_open_part(&t, b, "overtaken");
  bool split = strcmp(b->target, "gfx1250") == 0;
  int lanes = split ? 32 : 64;
  shape one = {{1, 1, 1}, {lanes, 1, 1}, 0};
  struct {
    device_pointer in, out;
    int over;
  } args = {put(&t, words, sizeof words), put(&t, NULL, 256), 0};
  static const struct {
    const char *kernel;
    int over;
    const char *gfx9, *gfx12; /* NULL: no fault */
  } rows[] = {
      {"copies_over_a_read", 0, "lgkmcnt must be at most 1 here", "dscnt must be at most 1 here"},
      {"copies_over_a_read", 1, "lgkmcnt must be at most 0 here", "dscnt must be at most 0 here"},
      {"copies_over_the_second_read", 0, NULL, NULL},
      {"copies_over_the_second_read", 1, "lgkmcnt must be at most 0 here", "dscnt must be at most 0 here"},
      {"copies_behind_the_reads", 0, NULL, NULL},
      {"copies_behind_the_reads", 1, NULL, NULL},
      {"copies_over_a_write", 0, "an access of wave 0", "an access of wave 0"},
  };
  for (size_t n = 0; n < sizeof rows / sizeof *rows; ++n) {
    const char *phrase = split ? rows[n].gfx12 : rows[n].gfx9;
    args.over = rows[n].over;
    if (phrase) {
      expect_fault(&t, rows[n].kernel, one, &args, sizeof args, phrase);
      diags_finish(&t.list);
      diags_init(&t.list);
      continue;
    }
    run(&t, rows[n].kernel, one, &args, sizeof args);
    int out[64];
    get(&t, out, args.out, (size_t)lanes * sizeof *out);
    for (int k = 0; k < lanes; ++k) {
      int first = words[k], second = words[64 + k];
      cr_assert_eq(out[k], first + second + first + (args.over ? first : second), "%s: %s: lane %d", t.label,
                   rows[n].kernel, k);
    }
  }
  bench_close(&t);
}

EACH_BUILD(watches_only_when_asked) {
  bench t;
  setenv("HEDDLE_EMU_WATCH", "0", 1);
  bench_open_faults(&t, b);
  struct {
    device_pointer out;
  } args = {put(&t, NULL, 512)};
  run(&t, "races_in_lds", (shape){{1, 1, 1}, {128, 1, 1}, 0}, &args, sizeof args);
  bench_close(&t);
  unsetenv("HEDDLE_EMU_WATCH");
}

EACH_BUILD(refuses_what_does_not_fit) {
  bench t;
  bench_open(&t, b);
  struct {
    device_pointer out;
    int width, height;
  } args = {put(&t, NULL, 4096), 1, 1};
  cr_assert_eq(try_launch(&t, "grid_ids", one_wave, &args, 8), HD_INVALID);
  cr_assert_eq(try_launch(&t, "grid_ids", (shape){{1, 1, 1}, {2048, 1, 1}, 0}, &args, sizeof args),
               HD_INVALID);
  device_function *f;
  cr_assert_eq(t.d->vtable->function(t.d, t.module, "no_such_kernel", 0, &f, &t.list), HD_INVALID);
  cr_assert_eq(t.d->vtable->function(t.d, t.module, "dynamic_lds", 1 << 20, &f, &t.list), HD_INVALID);
  bench_close(&t);
}

Test(emu, opens_every_target_and_no_other) {
  static const char *const names[] = {"emu:gfx942", "emu:gfx950", "emu:gfx1201", "emu:gfx1250"};
  diags list;
  diags_init(&list);
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n) {
    device *d;
    device_facts facts;
    cr_assert_eq(device_open(names[n], &d, &list), HD_OK);
    d->vtable->facts(d, &facts);
    cr_assert(facts.emulated);
    cr_assert_str_eq(facts.target, names[n] + 4);
    device_close(d);
  }
  device *d;
  cr_assert_eq(device_open("emu:gfx1030", &d, &list), HD_UNAVAILABLE);
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n)
    cr_assert(strstr(list.items[0].message, names[n] + 4), "%s names no %s", list.items[0].message, names[n] + 4);
  diags_finish(&list);
}
