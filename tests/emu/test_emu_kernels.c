/* What compilers make of ordinary code computes what plain C does: memory, LDS, atomics, grids, lanes, calls,
 * graphs. */
#include "emu_fixture.h"

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
