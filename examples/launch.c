/* The whole interface once: a contract from text, its two kernels, tokens written into a paged cache,
 * attention over it, the result held against plain C.
 *
 *   cc launch.c $(pkg-config --cflags --libs heddle) -lm && ./a.out emu:gfx950
 *
 * Exit code 0: the result is right. Without an argument the device is emulated. */
#include <heddle.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQS = 2, KV_HEADS = 2, GROUP = 4, Q_HEADS = KV_HEADS * GROUP, DIM = 64, PAGE = 16, TABLE = 3 };
enum { PAGES = SEQS * TABLE, LONGEST = TABLE * PAGE };
static const int32_t lengths[SEQS] = {LONGEST - 5, 20}; /* tokens */

static const char spec[] = "heddle: 1\n"
                           "name: example\n"
                           "kernels: [write, decode]\n"
                           "query: {dtype: bf16, heads_per_kv: 4}\n"
                           "head_dim: 64\n"
                           "kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}\n"
                           "logits: {scale: argument}\n"
                           "output: {dtype: fp32}\n";

static hd_diagnostics *why;

/* Every call is checked; a program of yours may have better things to do than to end. */
static void check(hd_status status, const char *what) {
  if (status == HD_OK) return;
  fprintf(stderr, "%s: %s\n%s", what, hd_status_text(status), hd_diagnostics_text(why));
  exit(1);
}

static uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Between -1 and 1, the same on every machine. */
static float random_value(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (float)(1 << 23) - 1;
}

static uint64_t upload(hd_context *context, const void *from, size_t bytes) {
  uint64_t address = 0;
  check(hd_memory_allocate(context, bytes, &address, why), "allocating");
  if (from != NULL)
    check(hd_memory_copy_in(context, NULL, address, from, bytes, why), "copying");
  else
    check(hd_memory_fill(context, NULL, address, 0, bytes, why), "filling");
  return address;
}

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

static hd_kernel *prepare(hd_context *context, const hd_contract *contract, hd_operation operation) {
  hd_job job;
  hd_kernel *kernel = NULL;
  memset(&job, 0, sizeof job);
  job.size = sizeof job;
  job.contract = contract;
  job.operation = operation;
  check(hd_prepare(context, &job, &kernel, why), "preparing");
  return kernel;
}

/* softmax(q k / sqrt(d)) v of one query head, over the first `length` tokens of sequence `s`. */
static void attend(const uint16_t *q, const uint16_t *k, const uint16_t *v, int s, int head, float *out) {
  double weights[LONGEST], sum = 0, most = -1e30;
  for (int t = 0; t < lengths[s]; t++) {
    const uint16_t *row = &k[((s * LONGEST + t) * KV_HEADS + head / GROUP) * DIM];
    weights[t] = 0;
    for (int d = 0; d < DIM; d++)
      weights[t] += (double)from_bf16(q[(s * Q_HEADS + head) * DIM + d]) * (double)from_bf16(row[d]);
    weights[t] /= sqrt(DIM);
    if (weights[t] > most) most = weights[t];
  }
  for (int t = 0; t < lengths[s]; t++)
    sum += weights[t] = exp(weights[t] - most);
  for (int d = 0; d < DIM; d++) {
    double value = 0;
    for (int t = 0; t < lengths[s]; t++)
      value += weights[t] * (double)from_bf16(v[((s * LONGEST + t) * KV_HEADS + head / GROUP) * DIM + d]);
    out[d] = (float)(value / sum);
  }
}

static uint16_t q[SEQS * Q_HEADS * DIM], k[SEQS * LONGEST * KV_HEADS * DIM],
    v[SEQS * LONGEST * KV_HEADS * DIM];
static int64_t slots[SEQS * LONGEST];
static int32_t table[SEQS * TABLE];
static float out[SEQS * Q_HEADS * DIM];

static void make_inputs(void) {
  for (size_t i = 0; i < sizeof q / sizeof *q; i++)
    q[i] = to_bf16(random_value());
  for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
    k[i] = to_bf16(random_value());
    v[i] = to_bf16(random_value());
  }
  for (int i = 0; i < SEQS * TABLE; i++)
    table[i] = (i * 5 + 2) % PAGES; /* pages in no order */
  for (int s = 0; s < SEQS; s++)
    for (int t = 0; t < LONGEST; t++) /* -1: a token that isn't written */
      slots[s * LONGEST + t] = t < lengths[s] ? (int64_t)table[s * TABLE + t / PAGE] * PAGE + t % PAGE : -1;
}

static double worst_error(void) {
  double worst = 0;
  float expected[DIM];
  for (int s = 0; s < SEQS; s++)
    for (int head = 0; head < Q_HEADS; head++) {
      attend(q, k, v, s, head, expected);
      for (int d = 0; d < DIM; d++) {
        double error = fabs((double)out[(s * Q_HEADS + head) * DIM + d] - (double)expected[d]);
        if (!(error <= worst)) worst = error; /* NaN too */
      }
    }
  return worst;
}

int main(int argc, char **argv) {
  hd_context_options options;
  hd_context *context = NULL;
  hd_contract *contract = NULL;
  hd_kernel_info info;
  check(hd_diagnostics_create(&why), "starting");

  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = argc > 1 ? argv[1] : "emu:gfx950";
  check(hd_context_create(&options, &context, why), options.device);
  check(hd_contract_parse(spec, strlen(spec), &contract, why), "reading the spec");
  hd_kernel *write = prepare(context, contract, HD_WRITE), *decode = prepare(context, contract, HD_DECODE);
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  check(hd_kernel_get_info(decode, &info), "asking about the kernel");
  printf("%s: decode for %s, %s\n", options.device, info.target, info.origin);

  make_inputs();
  const int64_t cache_shape[] = {PAGES, KV_HEADS, PAGE, DIM}, token_shape[] = {SEQS * LONGEST, KV_HEADS, DIM},
                query_shape[] = {SEQS, Q_HEADS, DIM}, table_shape[] = {SEQS, TABLE}, lengths_shape[] = {SEQS},
                slots_shape[] = {SEQS * LONGEST};
  const size_t cache_bytes = sizeof(uint16_t) * PAGES * KV_HEADS * PAGE * DIM;
  const uint64_t k_cache = upload(context, NULL, cache_bytes), v_cache = upload(context, NULL, cache_bytes);

  /* Tokens into the cache: quantised and scattered, if the contract says so. */
  const hd_tensor written[] = {
      tensor(HD_TENSOR_K, HD_DTYPE_BF16, upload(context, k, sizeof k), 3, token_shape),
      tensor(HD_TENSOR_V, HD_DTYPE_BF16, upload(context, v, sizeof v), 3, token_shape),
      tensor(HD_TENSOR_SLOT_MAPPING, HD_DTYPE_INT64, upload(context, slots, sizeof slots), 1, slots_shape),
      tensor(HD_TENSOR_K_CACHE, HD_DTYPE_BF16, k_cache, 4, cache_shape),
      tensor(HD_TENSOR_V_CACHE, HD_DTYPE_BF16, v_cache, 4, cache_shape),
  };
  hd_arguments arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.size = sizeof arguments;
  arguments.tensors = written;
  arguments.tensor_count = sizeof written / sizeof *written;
  check(hd_launch(write, &arguments, NULL, why), "writing");

  /* Attention, each sequence shared by two workgroups, which need a workspace to merge what they have. */
  hd_sizes sizes;
  int64_t workspace = 0;
  memset(&sizes, 0, sizeof sizes);
  sizes.size = sizeof sizes;
  sizes.seqs = SEQS;
  sizes.kv_heads = KV_HEADS;
  sizes.longest = LONGEST;
  sizes.splits = 2;
  check(hd_kernel_workspace(decode, &sizes, &workspace), "asking for the workspace");
  const uint64_t out_address = upload(context, NULL, sizeof out);
  const hd_tensor read[] = {
      tensor(HD_TENSOR_Q, HD_DTYPE_BF16, upload(context, q, sizeof q), 3, query_shape),
      tensor(HD_TENSOR_K_CACHE, HD_DTYPE_BF16, k_cache, 4, cache_shape),
      tensor(HD_TENSOR_V_CACHE, HD_DTYPE_BF16, v_cache, 4, cache_shape),
      tensor(HD_TENSOR_PAGE_TABLE, HD_DTYPE_INT32, upload(context, table, sizeof table), 2, table_shape),
      tensor(HD_TENSOR_LENGTHS, HD_DTYPE_INT32, upload(context, lengths, sizeof lengths), 1, lengths_shape),
      tensor(HD_TENSOR_OUT, HD_DTYPE_FP32, out_address, 3, query_shape),
  };
  arguments.tensors = read;
  arguments.tensor_count = sizeof read / sizeof *read;
  arguments.splits = sizes.splits;
  arguments.workspace = upload(context, NULL, (size_t)workspace);
  arguments.workspace_bytes = workspace;
  check(hd_launch(decode, &arguments, NULL, why), "decoding");
  check(hd_memory_copy_out(context, NULL, out, out_address, sizeof out, why), "copying back");

  double worst = worst_error();
  printf("largest error: %.2e\n", worst);
  hd_kernel_release(write);
  hd_kernel_release(decode);
  hd_contract_destroy(contract);
  hd_context_destroy(context); /* and the device's memory with it, on emulated devices */
  hd_diagnostics_destroy(why);
  return worst < 1e-2 ? 0 : 1;
}
