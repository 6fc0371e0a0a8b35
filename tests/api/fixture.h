/* A program with a paged cache, through heddle.h alone. */
#ifndef HEDDLE_TESTS_API_FIXTURE_H
#define HEDDLE_TESTS_API_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#ifdef FIXTURE_PLAIN /* a program by itself: the first failure ends it */
#include <stdarg.h>
#include <stdio.h>
static inline void fixture_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}
#define cr_assert(condition, ...)                                                                            \
  do {                                                                                                       \
    if (!(condition)) fixture_fail(__VA_ARGS__);                                                             \
  } while (0)
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b), __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) cr_assert(strcmp(a, b) == 0, __VA_ARGS__)
#else
#include <criterion/criterion.h>
#endif
#include <heddle.h>

enum { KV_HEADS = 2, Q_HEADS = 8, DIM = 64, PAGE = 16, SEQS = 3, TABLE = 80, PAGES = SEQS * TABLE };
enum { LONGEST = TABLE * PAGE, OUT_FLOATS = SEQS * Q_HEADS * DIM };
enum { READ_COUNT = 6 };

static const char spec_nhd[] = "heddle: 1\n"
                               "name: nhd\n"
                               "kernels: [write, decode]\n"
                               "query: {dtype: bf16, heads_per_kv: 4}\n"
                               "head_dim: 64\n"
                               "kv: {dtype: bf16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n"
                               "logits: {scale: rsqrt_d}\n"
                               "output: {dtype: fp32}\n";

/* Zeroed, with its size: every struct that says how large it is begins with it. */
#define MAKE(type, name)                                                                                     \
  type name;                                                                                                 \
  memset(&name, 0, sizeof name);                                                                             \
  name.size = sizeof name

static hd_diagnostics *why;

#define OK(call) cr_assert_eq((call), HD_OK, "%s: %s", #call, hd_diagnostics_text(why))
/* Declined, or whatever status, with this code first. */
#define SAYS(expected, code_text, call)                                                                      \
  do {                                                                                                       \
    hd_diagnostic said_first;                                                                                \
    cr_assert_eq((call), expected, "%s: %s", #call, hd_diagnostics_text(why));                               \
    cr_assert_eq(hd_diagnostics_get(why, 0, &said_first), HD_OK, "%s says nothing", #call);                  \
    cr_assert_str_eq(said_first.code, code_text, "%s says %s", #call, said_first.code);                      \
  } while (0)

static inline hd_context *open_context(const char *device_name) {
  MAKE(hd_context_options, o);
  hd_context *c = NULL;
  if (why == NULL) cr_assert_eq(hd_diagnostics_create(&why), HD_OK, "memory");
  o.device = device_name;
  OK(hd_context_create(&o, &c, why));
  return c;
}

static inline hd_contract *parse(const char *yaml) {
  hd_contract *c = NULL;
  if (why == NULL) cr_assert_eq(hd_diagnostics_create(&why), HD_OK, "memory");
  OK(hd_contract_parse(yaml, strlen(yaml), &c, why));
  return c;
}

static inline hd_job job_of(const hd_contract *c, hd_operation o) {
  MAKE(hd_job, job);
  job.contract = c;
  job.operation = o;
  return job;
}

static inline hd_kernel *prepare(hd_context *context, const hd_contract *c, hd_operation o) {
  const hd_job job = job_of(c, o);
  hd_kernel *k = NULL;
  OK(hd_prepare(context, &job, &k, why));
  return k;
}

static inline uint64_t on_device(hd_context *c, const void *from, size_t bytes) {
  uint64_t address = 0;
  OK(hd_memory_allocate(c, bytes, &address, why));
  if (from != NULL)
    OK(hd_memory_copy_in(c, NULL, address, from, bytes, why));
  else
    OK(hd_memory_fill(c, NULL, address, 0xff, bytes, why));
  return address;
}

static const int64_t query_shape[] = {SEQS, Q_HEADS, DIM}, cache_shape[] = {PAGES, PAGE, KV_HEADS, DIM},
                     table_shape[] = {SEQS, TABLE}, lengths_shape[] = {SEQS};

/* A context, the two kernels of a contract, and the tensors of a decode in its memory. */
typedef struct engine {
  hd_context *context;
  hd_contract *contract;
  hd_kernel *decode;
  hd_tensor read[READ_COUNT]; /* q, k_cache, v_cache, page_table, lengths, out */
  uint64_t lengths, out, workspace;
  int64_t workspace_bytes;
} engine;

static inline hd_tensor tensor_of(hd_tensor_name name, hd_dtype format, uint64_t address, int rank,
                                  const int64_t *shape) {
  return (hd_tensor){.name = name, .dtype = format, .address = address, .shape = shape, .rank = rank};
}

/* bf16 numbers between 1/2 and 2, of either sign. */
static inline uint64_t noise(hd_context *c, size_t count, uint32_t state) {
  uint16_t *values = malloc(count * sizeof *values);
  cr_assert(values != NULL, "memory");
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (uint16_t)(0x3f00 | (state >> 16 & 0x80ff));
  }
  uint64_t address = on_device(c, values, count * sizeof *values);
  free(values);
  return address;
}

static inline void engine_set_lengths(engine *e, int32_t a, int32_t b, int32_t c) {
  const int32_t lengths[SEQS] = {a, b, c};
  OK(hd_memory_copy_in(e->context, NULL, e->lengths, lengths, sizeof lengths, why));
}

/* The tensors alone: `decode` may be set by then. */
static inline void engine_fill(engine *e) {
  int32_t table[PAGES];
  for (int i = 0; i < PAGES; i++)
    table[i] = (i * 7 + 3) % PAGES;
  const size_t elements = (size_t)PAGES * PAGE * KV_HEADS * DIM;
  e->lengths = on_device(e->context, NULL, SEQS * sizeof(int32_t));
  e->out = on_device(e->context, NULL, OUT_FLOATS * sizeof(float));
  const hd_tensor read[READ_COUNT] = {
      tensor_of(HD_TENSOR_Q, HD_DTYPE_BF16, noise(e->context, SEQS * Q_HEADS * DIM, 1), 3, query_shape),
      tensor_of(HD_TENSOR_K_CACHE, HD_DTYPE_BF16, noise(e->context, elements, 2), 4, cache_shape),
      tensor_of(HD_TENSOR_V_CACHE, HD_DTYPE_BF16, noise(e->context, elements, 3), 4, cache_shape),
      tensor_of(HD_TENSOR_PAGE_TABLE, HD_DTYPE_INT32, on_device(e->context, table, sizeof table), 2,
                table_shape),
      tensor_of(HD_TENSOR_LENGTHS, HD_DTYPE_INT32, e->lengths, 1, lengths_shape),
      tensor_of(HD_TENSOR_OUT, HD_DTYPE_FP32, e->out, 3, query_shape),
  };
  memcpy(e->read, read, sizeof read);
  engine_set_lengths(e, 40, 7, 100);
}

/* Workspace for as much as the policy may want. */
static inline void engine_workspace(engine *e) {
  MAKE(hd_sizes, most);
  most.seqs = SEQS;
  most.kv_heads = KV_HEADS;
  most.longest = LONGEST;
  OK(hd_kernel_workspace(e->decode, &most, &e->workspace_bytes));
  if (e->workspace_bytes > 0) e->workspace = on_device(e->context, NULL, (size_t)e->workspace_bytes);
}

static inline void engine_open(engine *e, const char *device_name) {
  *e = (engine){.context = open_context(device_name), .contract = parse(spec_nhd)};
  e->decode = prepare(e->context, e->contract, HD_DECODE);
  engine_fill(e);
  engine_workspace(e);
}

static inline hd_arguments engine_arguments(const engine *e, int64_t splits) {
  MAKE(hd_arguments, a);
  a.tensors = e->read;
  a.tensor_count = READ_COUNT;
  a.workspace = e->workspace;
  a.workspace_bytes = e->workspace_bytes;
  a.splits = splits;
  return a;
}

static inline void engine_out(const engine *e, float out[OUT_FLOATS]) {
  OK(hd_memory_copy_out(e->context, NULL, out, e->out, OUT_FLOATS * sizeof(float), why));
}

static inline void engine_forget_out(const engine *e) {
  OK(hd_memory_fill(e->context, NULL, e->out, 0xff, OUT_FLOATS * sizeof(float), why));
}

/* The largest difference; NaN counts as 1e30. */
static inline double difference(const float *a, const float *b) {
  double worst = 0;
  for (int i = 0; i < OUT_FLOATS; i++) {
    double d = a[i] > b[i] ? (double)a[i] - (double)b[i] : (double)b[i] - (double)a[i];
    if (!(d <= 1e30)) d = 1e30;
    if (d > worst) worst = d;
  }
  return worst;
}

static inline void engine_close(engine *e) {
  hd_kernel_release(e->decode);
  hd_contract_destroy(e->contract);
  hd_context_destroy(e->context);
}

#endif
