#include "steps.h"
#include "dump.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_TENSORS = 8, WRITE_TENSORS = 7 };

struct steps {
  hd_diagnostics *why;
  hd_context *context;
  hd_contract *contract;
  hd_kernel *write, *decode;
  hd_stream *stream;
  hd_graph *graphs[BUCKETS];
  int replays[BUCKETS];
  char description[128];
  uint64_t k_cache, v_cache, k_scale, v_scale; /* of all sequences */
  uint64_t inputs, out, workspace;           /* of a step: a step_inputs, and [MOST_RUNNING, Q_HEADS, DIM] */
  uint64_t prompt_k, prompt_v, prompt_slots; /* of a prefill: LONGEST tokens */
  step_inputs last;
  int last_count;
};

static void check(steps *s, hd_status status, const char *what) {
  if (status == HD_OK) return;
  fprintf(stderr, "%s: %s\n%s", what, hd_status_text(status), hd_diagnostics_text(s->why));
  exit(3);
}

static uint64_t allocate(steps *s, size_t bytes) {
  uint64_t address = 0;
  check(s, hd_memory_allocate(s->context, bytes, &address, s->why), "allocating");
  check(s, hd_memory_fill(s->context, s->stream, address, 0, bytes, s->why), "filling");
  return address;
}

static void upload(steps *s, uint64_t to, const void *from, size_t bytes) {
  check(s, hd_memory_copy_in(s->context, s->stream, to, from, bytes, s->why), "copying in");
}

static hd_kernel *prepare(steps *s, hd_operation operation) {
  hd_job job;
  hd_kernel *kernel = NULL;
  memset(&job, 0, sizeof job);
  job.size = sizeof job;
  job.contract = s->contract;
  job.operation = operation;
  check(s, hd_prepare(s->context, &job, &kernel, s->why), "preparing");
  return kernel;
}

static void launch(steps *s, hd_kernel *kernel, const hd_tensor *tensors, size_t count,
                   int64_t workspace_bytes) {
  hd_arguments a;
  memset(&a, 0, sizeof a);
  a.size = sizeof a;
  a.tensors = tensors;
  a.tensor_count = count;
  a.workspace = workspace_bytes > 0 ? s->workspace : 0;
  a.workspace_bytes = workspace_bytes;
  a.lists_settled = 1; /* what runs just before decode is write, which touches no list */
  check(s, hd_launch(kernel, &a, s->stream, s->why),
        "launching"); /* longest 0: for all that a row of the table holds */
}

static const int64_t k_shape[] = {POOL, KV_HEADS, DIM / 16, PAGE, 16},
                     v_shape[] = {POOL, KV_HEADS, DIM, PAGE}, scale_shape[] = {POOL, KV_HEADS, PAGE};

static hd_tensor tensor(hd_tensor_name name, hd_dtype dtype, uint64_t address, int rank,
                        const int64_t *shape) {
  hd_tensor t;
  memset(&t, 0, sizeof t);
  t.name = name;
  t.dtype = dtype;
  t.address = address;
  t.rank = rank;
  t.shape = shape;
  return t;
}

/* fp8_e4m3 in the dialect of the device, as the kernel says. */
static hd_dtype cache_dtype(steps *s) {
  hd_role role;
  hd_dtype dtype = HD_DTYPE_FP8_E4M3FN;
  check(s, hd_kernel_tensor(s->decode, HD_TENSOR_K_CACHE, &role, &dtype, NULL, 0), "asking about the cache");
  return dtype;
}

static void add_cache(steps *s, hd_tensor out[4]) {
  const hd_dtype dtype = cache_dtype(s);
  out[0] = tensor(HD_TENSOR_K_CACHE, dtype, s->k_cache, 5, k_shape);
  out[1] = tensor(HD_TENSOR_V_CACHE, dtype, s->v_cache, 4, v_shape);
  out[2] = tensor(HD_TENSOR_K_SCALE, HD_DTYPE_FP32, s->k_scale, 3, scale_shape);
  out[3] = tensor(HD_TENSOR_V_SCALE, HD_DTYPE_FP32, s->v_scale, 3, scale_shape);
}

static void launch_write(steps *s, uint64_t k, uint64_t v, uint64_t slots, int64_t tokens) {
  const int64_t rows[] = {tokens, KV_HEADS, DIM};
  hd_tensor t[WRITE_TENSORS] = {
      tensor(HD_TENSOR_K, HD_DTYPE_BF16, k, 3, rows),
      tensor(HD_TENSOR_V, HD_DTYPE_BF16, v, 3, rows),
      tensor(HD_TENSOR_SLOT_MAPPING, HD_DTYPE_INT64, slots, 1, rows),
  };
  add_cache(s, &t[3]);
  launch(s, s->write, t, WRITE_TENSORS, 0);
}

static int64_t workspace_for(steps *s, int64_t seqs) {
  hd_sizes sizes;
  int64_t bytes = 0;
  memset(&sizes, 0, sizeof sizes);
  sizes.size = sizeof sizes;
  sizes.seqs = seqs;
  sizes.kv_heads = KV_HEADS;
  sizes.longest = LONGEST;
  check(s, hd_kernel_workspace(s->decode, &sizes, &bytes), "asking for the workspace");
  return bytes;
}

static void launch_decode(steps *s, int64_t seqs) {
  const int64_t rows[] = {seqs, Q_HEADS, DIM}, table[] = {seqs, TABLE};
  hd_tensor t[READ_TENSORS] = {
      tensor(HD_TENSOR_Q, HD_DTYPE_BF16, s->inputs + offsetof(step_inputs, q), 3, rows),
      tensor(HD_TENSOR_PAGE_TABLE, HD_DTYPE_INT32, s->inputs + offsetof(step_inputs, table), 2, table),
      tensor(HD_TENSOR_LENGTHS, HD_DTYPE_INT32, s->inputs + offsetof(step_inputs, lengths), 1, rows),
      tensor(HD_TENSOR_OUT, HD_DTYPE_FP32, s->out, 3, rows),
  };
  add_cache(s, &t[4]);
  launch(s, s->decode, t, READ_TENSORS, workspace_for(s, seqs));
}

int steps_bucket_size(int bucket) {
  return 1 << bucket;
}

static void capture(steps *s, int bucket) {
  const int64_t seqs = steps_bucket_size(bucket);
  check(s, hd_capture_begin(s->context, s->stream, s->why), "beginning a capture");
  launch_write(s, s->inputs + offsetof(step_inputs, k), s->inputs + offsetof(step_inputs, v),
               s->inputs + offsetof(step_inputs, slots), seqs);
  launch_decode(s, seqs);
  check(s, hd_capture_end(s->context, s->stream, &s->graphs[bucket], s->why), "ending a capture");
}

static void allocate_all(steps *s) {
  s->k_cache = allocate(s, CACHE_ELEMENTS);
  s->v_cache = allocate(s, CACHE_ELEMENTS);
  s->k_scale = allocate(s, SCALES * sizeof(float));
  s->v_scale = allocate(s, SCALES * sizeof(float));
  s->inputs = allocate(s, sizeof(step_inputs));
  s->out = allocate(s, sizeof(float) * MOST_RUNNING * Q_HEADS * DIM);
  s->workspace = allocate(s, (size_t)workspace_for(s, MOST_RUNNING));
  s->prompt_k = allocate(s, sizeof(uint16_t) * LONGEST * KV_HEADS * DIM);
  s->prompt_v = allocate(s, sizeof(uint16_t) * LONGEST * KV_HEADS * DIM);
  s->prompt_slots = allocate(s, sizeof(int64_t) * LONGEST);
}

steps *steps_create(const char *device, const char *spec_path) {
  steps *s = calloc(1, sizeof *s);
  hd_context_options options;
  hd_kernel_info info;
  if (s == NULL || hd_diagnostics_create(&s->why) != HD_OK) {
    fprintf(stderr, "memory is short\n");
    exit(3);
  }
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = device;
  check(s, hd_context_create(&options, &s->context, s->why), device);
  check(s, hd_contract_read(spec_path, &s->contract, s->why), spec_path);
  check(s, hd_stream_create(s->context, &s->stream, s->why), "creating a stream");
  s->write = prepare(s, HD_WRITE);
  s->decode = prepare(s, HD_DECODE);
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  check(s, hd_kernel_get_info(s->decode, &info), "asking about the kernel");
  snprintf(s->description, sizeof s->description, "%s: decode for %s, variant %s", device, info.target,
           info.variant);
  allocate_all(s);
  for (int bucket = 0; bucket < BUCKETS; bucket++)
    capture(s, bucket);
  return s;
}

void steps_destroy(steps *s) {
  const uint64_t memory[] = {s->k_cache, s->v_cache,   s->k_scale,  s->v_scale,  s->inputs,
                             s->out,     s->workspace, s->prompt_k, s->prompt_v, s->prompt_slots};
  check(s, hd_stream_wait(s->context, s->stream, s->why), "waiting");
  for (int bucket = 0; bucket < BUCKETS; bucket++)
    hd_graph_destroy(s->context, s->graphs[bucket]);
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    check(s, hd_memory_release(s->context, memory[i], s->why), "releasing");
  hd_kernel_release(s->write);
  hd_kernel_release(s->decode);
  hd_stream_destroy(s->context, s->stream);
  hd_contract_destroy(s->contract);
  hd_context_destroy(s->context);
  hd_diagnostics_destroy(s->why);
  free(s);
}

const char *steps_describe(const steps *s) {
  return s->description;
}

void steps_prefill(steps *s, const sequence *q, int count) {
  static uint16_t k[LONGEST][KV_HEADS * DIM], v[LONGEST][KV_HEADS * DIM];
  int64_t slots[LONGEST];
  if (count == 0) return;
  for (int t = 0; t < count; t++) {
    model_key(q->id, t, k[t]);
    model_value(q->id, t, v[t]);
    slots[t] = sequence_slot(q, t);
  }
  upload(s, s->prompt_k, k, (size_t)count * sizeof k[0]);
  upload(s, s->prompt_v, v, (size_t)count * sizeof v[0]);
  upload(s, s->prompt_slots, slots, (size_t)count * sizeof slots[0]);
  launch_write(s, s->prompt_k, s->prompt_v, s->prompt_slots, count);
}

/* Rows of the bucket that nobody uses: no token is written (slot -1), nothing is attended (length 0). */
static void gather(sequence *const *running, int count, step_inputs *in) {
  memset(in, 0, sizeof *in);
  for (int i = 0; i < MOST_RUNNING; i++)
    in->slots[i] = -1;
  for (int i = 0; i < count; i++) {
    const sequence *q = running[i];
    const int newest = q->length - 1;
    model_query(q->id, newest, in->q[i]);
    model_key(q->id, newest, in->k[i]);
    model_value(q->id, newest, in->v[i]);
    in->slots[i] = sequence_slot(q, newest);
    in->lengths[i] = q->length;
    memcpy(in->table[i], q->pages, sizeof q->pages);
  }
}

void steps_run(steps *s, sequence *const *running, int count, float *out) {
  int bucket = 0;
  while (steps_bucket_size(bucket) < count)
    bucket++;
  gather(running, count, &s->last);
  s->last_count = count;
  upload(s, s->inputs, &s->last, sizeof s->last);
  check(s, hd_graph_launch(s->context, s->graphs[bucket], s->stream, s->why), "replaying a graph");
  s->replays[bucket]++;
  check(s,
        hd_memory_copy_out(s->context, s->stream, out, s->out, sizeof(float) * (size_t)count * Q_HEADS * DIM,
                           s->why),
        "copying out");
}

int steps_replays(const steps *s, int bucket) {
  return s->replays[bucket];
}

static void dump_device(steps *s, const char *folder, const char *name, const char *type, uint64_t from,
                        size_t bytes, const char *shape) {
  void *data = malloc(bytes);
  if (data == NULL) {
    fprintf(stderr, "memory is short\n");
    exit(3);
  }
  check(s, hd_memory_copy_out(s->context, s->stream, data, from, bytes, s->why), "copying out");
  dump_npy(folder, name, type, shape, data, bytes);
  free(data);
}

void steps_dump(steps *s, const char *folder) {
  const size_t n = (size_t)s->last_count;
  char shape[64];
  snprintf(shape, sizeof shape, "%zu, %d, %d", n, Q_HEADS, DIM);
  dump_npy(folder, "q", "<u2", shape, s->last.q, n * sizeof s->last.q[0]);
  dump_device(s, folder, "out", "<f4", s->out, n * Q_HEADS * DIM * sizeof(float), shape);
  snprintf(shape, sizeof shape, "%zu, %d", n, TABLE);
  dump_npy(folder, "page_table", "<i4", shape, s->last.table, n * sizeof s->last.table[0]);
  snprintf(shape, sizeof shape, "%zu,", n);
  dump_npy(folder, "lengths", "<i4", shape, s->last.lengths, n * sizeof s->last.lengths[0]);
  snprintf(shape, sizeof shape, "%d, %d, %d, %d, 16", POOL, KV_HEADS, DIM / 16, PAGE);
  dump_device(s, folder, "k_cache", "|u1", s->k_cache, CACHE_ELEMENTS, shape);
  snprintf(shape, sizeof shape, "%d, %d, %d, %d", POOL, KV_HEADS, DIM, PAGE);
  dump_device(s, folder, "v_cache", "|u1", s->v_cache, CACHE_ELEMENTS, shape);
  snprintf(shape, sizeof shape, "%d, %d, %d", POOL, KV_HEADS, PAGE);
  dump_device(s, folder, "k_scale", "<f4", s->k_scale, SCALES * sizeof(float), shape);
  dump_device(s, folder, "v_scale", "<f4", s->v_scale, SCALES * sizeof(float), shape);
}
