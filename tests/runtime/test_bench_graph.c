/* Claims about bench: graphs and copies, on a device in host memory that counts. */
#include "bench_fixture.h"

/* ---- A device in host memory that counts ---- */

typedef struct counting_device {
  device base;
  int allocations, streams, events, graphs; /* not given back */
  int captured, replays, records, launch_calls;
  bool capturing;
  int fail_launch; /* which launch fails, -1: none */
  double milliseconds;
} counting_device;

static counting_device *counting(device *d) {
  return (counting_device *)d;
}

static hd_status count_allocate(device *d, size_t bytes, device_pointer *out, diags *errors) {
  (void)errors;
  counting(d)->allocations++;
  *out = (device_pointer)(uintptr_t)malloc(bytes);
  return HD_OK;
}

static hd_status count_release(device *d, device_pointer pointer, diags *errors) {
  (void)errors;
  counting(d)->allocations--;
  free((void *)(uintptr_t)pointer);
  return HD_OK;
}

static hd_status count_copy_in(device *d, device_stream *s, device_pointer to, const void *from, size_t bytes,
                               diags *errors) {
  (void)d;
  (void)s;
  (void)errors;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return HD_OK;
}

static hd_status count_fill(device *d, device_stream *s, device_pointer to, unsigned char value, size_t bytes,
                            diags *errors) {
  (void)d;
  (void)s;
  (void)errors;
  memset((void *)(uintptr_t)to, value, bytes);
  return HD_OK;
}

static hd_status count_stream_create(device *d, device_stream **out, diags *errors) {
  (void)errors;
  counting(d)->streams++;
  *out = (device_stream *)d;
  return HD_OK;
}

static void count_stream_destroy(device *d, device_stream *s) {
  (void)s;
  cr_expect(!counting(d)->capturing, "a stream that captures was destroyed");
  counting(d)->streams--;
}

static hd_status count_event_create(device *d, device_event **out, diags *errors) {
  (void)errors;
  counting(d)->events++;
  *out = (device_event *)d;
  return HD_OK;
}

static void count_event_destroy(device *d, device_event *e) {
  (void)e;
  counting(d)->events--;
}

static hd_status count_event_record(device *d, device_event *e, device_stream *s, diags *errors) {
  (void)e;
  (void)errors;
  cr_expect_not_null(s, "events belong on the stream that is timed");
  counting(d)->records++;
  return HD_OK;
}

static hd_status count_event_elapsed(device *d, device_event *start, device_event *stop, double *out,
                                     diags *errors) {
  (void)start;
  (void)stop;
  (void)errors;
  *out = counting(d)->milliseconds;
  return HD_OK;
}

static hd_status count_capture_begin(device *d, device_stream *s, diags *errors) {
  (void)s;
  (void)errors;
  counting(d)->capturing = true;
  return HD_OK;
}

static hd_status count_capture_end(device *d, device_stream *s, device_graph **out, diags *errors) {
  (void)s;
  (void)errors;
  counting(d)->capturing = false;
  counting(d)->graphs++;
  *out = (device_graph *)d;
  return HD_OK;
}

static hd_status count_graph_launch(device *d, device_graph *g, device_stream *s, diags *errors) {
  (void)g;
  (void)s;
  (void)errors;
  counting(d)->replays++;
  return HD_OK;
}

static void count_graph_destroy(device *d, device_graph *g) {
  (void)g;
  counting(d)->graphs--;
}

static const device_vtable counting_vtable = {
    .allocate = count_allocate,
    .release = count_release,
    .copy_in = count_copy_in,
    .fill = count_fill,
    .stream_create = count_stream_create,
    .stream_destroy = count_stream_destroy,
    .event_create = count_event_create,
    .event_destroy = count_event_destroy,
    .event_record = count_event_record,
    .event_elapsed = count_event_elapsed,
    .capture_begin = count_capture_begin,
    .capture_end = count_capture_end,
    .graph_launch = count_graph_launch,
    .graph_destroy = count_graph_destroy,
};

static counting_device new_device(void) {
  return (counting_device){.base.vtable = &counting_vtable, .fail_launch = -1, .milliseconds = 3.2};
}

static hd_status count_launch(void *user, device_stream *s, int index, diags *errors) {
  counting_device *d = user;
  cr_expect(d->capturing && s, "a launch outside the capture");
  cr_expect_eq(index, d->launch_calls, "launches in order");
  d->launch_calls++;
  if (index != d->fail_launch) return HD_OK;
  diags_errorf(errors, "device.error", NULL, "no");
  return HD_DEVICE;
}

static void expect_nothing_left(const counting_device *d) {
  cr_expect_eq(d->allocations, 0);
  cr_expect_eq(d->streams, 0);
  cr_expect_eq(d->events, 0);
  cr_expect_eq(d->graphs, 0);
}

Test(bench, a_graph_is_captured_once_warmed_up_and_replayed) {
  counting_device d = new_device();
  diags errors;
  double samples[9] = {0};
  diags_init(&errors);
  cr_assert_eq(bench_time(&d.base, count_launch, &d, 16, 9, 20, samples, &errors), HD_OK);
  cr_expect_eq(d.launch_calls, 16);
  /* 3.2 ms a replay: seven until 20 ms have passed. Each measurement has an untimed replay ahead. */
  cr_expect_eq(d.replays, 2 * (7 + 9));
  cr_expect_eq(d.records, d.replays);
  for (int i = 0; i < 9; i++)
    cr_expect_float_eq(samples[i], 3.2 * 1000 / 16, 1e-9);
  expect_nothing_left(&d);
  diags_finish(&errors);
}

Test(bench, a_launch_that_fails_ends_the_capture_and_gives_everything_back) {
  counting_device d = new_device();
  diags errors;
  double samples[9];
  diags_init(&errors);
  d.fail_launch = 3;
  cr_assert_eq(bench_time(&d.base, count_launch, &d, 16, 9, 20, samples, &errors), HD_DEVICE);
  cr_expect_eq(d.launch_calls, 4);
  cr_expect_eq(d.replays, 0);
  cr_expect(!d.capturing);
  expect_nothing_left(&d);
  diags_finish(&errors);
}

Test(bench, launches_walk_over_copies_that_hold_the_same_and_do_not_overlap) {
  counting_device d = new_device();
  session s = {.device = &d.base};
  contract c = fp8_contract(16, 64);
  const bench_shape shape = {3, 50, 2, 2};
  bench_data data;
  bench_pool pool;
  diags errors;
  diags_init(&errors);
  cr_assert_eq(bench_data_init(&data, &c, &(bench_deal){.shape = shape, .seed = 1}, &errors), HD_OK);
  cr_assert_eq(bench_pool_init(&pool, &s, &data, 3, &errors), HD_OK);
  for (int i = 0; i < 7; i++) {
    tensors t = bench_pool_tensors(&pool, i), same = bench_pool_tensors(&pool, i + 3),
            next = bench_pool_tensors(&pool, i + 1);
    for (int name = TENSOR_K_CACHE; name <= TENSOR_V_SCALE; name++) {
      const tensor *a = &t.by_name[name];
      uint64_t b = next.by_name[name].data;
      cr_expect_eq(a->data, same.by_name[name].data);
      cr_expect(b >= a->data + tensor_bytes(a) || b + tensor_bytes(a) <= a->data);
      cr_expect_eq((a->data - pool.base) % 256, 0);
      cr_expect(memcmp((void *)(uintptr_t)a->data, (void *)(uintptr_t)b, tensor_bytes(a)) == 0);
      cr_expect(memcmp((void *)(uintptr_t)a->data, (void *)(uintptr_t)data.host.by_name[name].data,
                       tensor_bytes(a)) == 0);
    }
    cr_expect_eq(t.by_name[TENSOR_Q].data, next.by_name[TENSOR_Q].data);
    cr_expect(t.present[TENSOR_OUT] && t.by_name[TENSOR_OUT].data != 0);
  }
  /* The read kernel begins at k_cache and reads to the end of the scales. */
  tensors last = bench_pool_tensors(&pool, 2);
  cr_expect_eq(last.by_name[TENSOR_K_CACHE].data, pool.base + 2 * pool.stride);
  bench_pool_finish(&pool);
  bench_data_finish(&data);
  expect_nothing_left(&d);
  diags_finish(&errors);
}
