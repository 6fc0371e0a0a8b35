/* What a launch costs the host: hd_launch, hd_binding_launch and the driver's own call, one after the other
 * on one stream, in batches that a device's queue holds. hd_launch twice: of the same shapes as before, as
 * the layers of a model launch, and of caches with another number of pages each time.
 *
 *   host_cost DEVICE [SPEC [MOST]]     cuda:0, hip:0; a spec with a page table; microseconds
 *
 * The split decode is measured (two kernels a launch) and the write (one). Exit code 1: hd_launch of the same
 * shapes costs more than MOST microseconds over the driver. The batch of the least cost counts there, since
 * whatever else the machine does only adds to it. */
#include "../../runtime/api/parts.h"
#include "../../runtime/launch/bind_parts.h"
#include "../../runtime/device/device_driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64, BATCHES = 300, SEQS = 16, KV_HEADS = 4, TABLE = 64, TENSOR_ROOM = 1 << 16 };

static hd_diagnostics *why;

static void check(hd_status status, const char *what) {
  if (status == HD_OK) return;
  fprintf(stderr, "host_cost: %s: %s\n%s", what, hd_status_text(status), hd_diagnostics_text(why));
  exit(3);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* One operation with tensors that fit it. Their elements are 0 (page 0, slot 0), but for lengths of 1. */
typedef struct measured {
  hd_kernel *kernel;
  hd_tensor list[TENSOR_COUNT];
  int64_t shapes[TENSOR_COUNT][TENSOR_MAX_RANK];
  size_t count;
  hd_arguments arguments;
  hd_binding *binding;
  launch_pack pack; /* what the driver is called with */
} measured;

static void make_tensors(hd_context *c, measured *m) {
  int32_t lengths[SEQS];
  for (int i = 0; i < SEQS; i++)
    lengths[i] = 1;
  const int64_t dims[DIM_COUNT] = {
      [DIM_SEQS] = SEQS,         [DIM_ROWS] = 1,     [DIM_KV_HEADS] = KV_HEADS, [DIM_PAGES] = SEQS,
      [DIM_TABLE_PAGES] = TABLE, [DIM_TOKENS] = SEQS};
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name inner;
    tensor t;
    hd_tensor *to = &m->list[m->count];
    if (!api_tensor_name((hd_tensor_name)i, &inner) ||
        bind_role(&m->kernel->contract, m->kernel->operation, inner) == ROLE_NONE ||
        !bind_tensor(&m->kernel->contract, inner, dims, &t))
      continue;
    to->name = (hd_tensor_name)i;
    if (!api_dtype_back(t.dtype, &to->dtype)) exit(3);
    to->rank = t.rank;
    to->shape = m->shapes[m->count];
    memcpy(m->shapes[m->count], t.shape, sizeof t.shape);
    size_t bytes = tensor_bytes(&t);
    check(hd_memory_allocate(c, bytes + TENSOR_ROOM, &to->address, why), "memory");
    check(hd_memory_fill(c, NULL, to->address, 0, bytes, why), "memory");
    if (inner == TENSOR_LENGTHS)
      check(hd_memory_copy_in(c, NULL, to->address, lengths, sizeof lengths, why), "lengths");
    m->count++;
  }
  m->arguments = (hd_arguments){.size = sizeof m->arguments, .tensors = m->list, .tensor_count = m->count};
}

static void measured_init(hd_context *c, const hd_contract *of, hd_operation o, measured *m) {
  const hd_job job = {.size = sizeof job, .contract = of, .operation = o};
  *m = (measured){0};
  check(hd_prepare(c, &job, &m->kernel, why), "preparing");
  make_tensors(c, m);
  if (o == HD_DECODE) {
    const hd_sizes sizes = {
        .size = sizeof sizes, .seqs = SEQS, .kv_heads = KV_HEADS, .longest = 1, .splits = 2};
    m->arguments.splits = sizes.splits;
    check(hd_kernel_workspace(m->kernel, &sizes, &m->arguments.workspace_bytes), "the workspace");
    check(hd_memory_allocate(c, (size_t)m->arguments.workspace_bytes, &m->arguments.workspace, why),
          "memory");
  }
  check(hd_bind(m->kernel, &m->arguments, &m->binding, why), "binding");
  m->pack = *api_binding_pack(m->binding);
}

/* Nothing but the driver's function, as often as the others call it. */
static void call_driver(const driver_device *d, const launch_pack *pack, hd_stream *s) {
  for (int i = 0; i < pack->count; i++) {
    const launch_part *part = &pack->parts[i];
    const device_launch *l = &part->launch;
    const union {
      const void *from;
      void *to; /* the driver takes it so, and only reads */
    } arguments = {.from = part->arguments.bytes};
    size_t bytes = l->arguments_size;
    void *extra[] = {(void *)1, arguments.to, (void *)2, &bytes, d->driver->launch_end};
    int code =
        l->waits_itself && d->driver->launch_early != NULL
            ? d->driver->launch_early((driver_device *)(uintptr_t)d, (driver_handle *)part->function, l,
                                      (driver_handle *)s, extra)
            : d->api.launch((driver_handle *)part->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                            l->block[1], l->block[2], l->lds_bytes, (driver_handle *)s, NULL, extra);
    if (code != 0) exit(3);
  }
}

enum { WAY_DRIVER, WAY_BINDING, WAY_LAUNCH, WAY_NEW, WAYS };
static const char *const ways[] = {"the driver's call", "hd_binding_launch", "hd_launch",
                                   "hd_launch, new shapes"};

/* As if the caches had this many pages; the kernels read and write the first alone. */
static void set_pages(measured *m, int64_t pages) {
  for (size_t i = 0; i < m->count; i++) {
    tensor_name inner;
    const layout *l =
        api_tensor_name(m->list[i].name, &inner) ? bind_layout(&m->kernel->contract, inner) : NULL;
    for (int f = 0; l != NULL && f < l->count; f++)
      if (l->factors[f].axis == AXIS_B) m->shapes[i][f] = pages;
  }
}

static void batch(measured *m, int way, const driver_device *d, hd_stream *s) {
  for (int i = 0; i < BATCH; i++) {
    if (way == WAY_NEW) set_pages(m, SEQS + i);
    if (way == WAY_DRIVER)
      call_driver(d, &m->pack, s);
    else
      check(way == WAY_BINDING ? hd_binding_launch(m->binding, s, why)
                               : hd_launch(m->kernel, &m->arguments, s, why),
            "launching");
  }
  set_pages(m, SEQS);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Microseconds a launch, for each way: the least and the median batch. The ways take turns. */
static double measure(hd_context *c, measured *m, const char *name, hd_stream *s) {
  static double samples[WAYS][BATCHES];
  const driver_device *d = (const driver_device *)c->session.device;
  for (int i = 0; i < BATCHES; i++)
    for (int way = 0; way < WAYS; way++) {
      double start = now_us();
      batch(m, way, d, s);
      samples[way][i] = (now_us() - start) / BATCH;
      check(hd_stream_wait(c, s, why), "waiting");
    }
  for (int way = 0; way < WAYS; way++)
    qsort(samples[way], BATCHES, sizeof samples[way][0], compare_doubles);
  printf("%s, %d kernels a launch: us a launch (least, median), us over the driver's call (least, median)\n",
         name, m->pack.count);
  for (int way = 0; way < WAYS; way++)
    printf("  %-21s %7.3f %7.3f  %7.3f %7.3f\n", ways[way], samples[way][0], samples[way][BATCHES / 2],
           samples[way][0] - samples[WAY_DRIVER][0],
           samples[way][BATCHES / 2] - samples[WAY_DRIVER][BATCHES / 2]);
  return samples[WAY_LAUNCH][0] - samples[WAY_DRIVER][0];
}

int main(int argc, char **argv) {
  static measured decode, write;
  hd_context *c = NULL;
  hd_contract *whole = NULL;
  hd_stream *s = NULL;
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: host_cost DEVICE [SPEC [MOST]]\n");
    return 2;
  }
  const char *spec_path = argc > 2 ? argv[2] : "specs/minimax-m3-dense-fp8.yaml";
  const hd_context_options options = {.size = sizeof options, .device = argv[1]};
  check(hd_diagnostics_create(&why), "starting");
  check(hd_context_create(&options, &c, why), argv[1]);
  if (strncmp(argv[1], "emu", 3) == 0) {
    fprintf(stderr, "host_cost: %s has no driver: cuda:0 or hip:0\n", argv[1]);
    return 2;
  }
  check(hd_contract_read(spec_path, &whole, why), spec_path);
  check(hd_stream_create(c, &s, why), "a stream");
  measured_init(c, whole, HD_DECODE, &decode);
  measured_init(c, whole, HD_WRITE, &write);
  printf("%s, %s\n", c->session.facts.name, spec_path);
  double worst = measure(c, &decode, "decode", s), other = measure(c, &write, "write", s);
  if (other > worst) worst = other;
  return argc > 3 && worst > strtod(argv[3], NULL) ? 1 : 0;
}
