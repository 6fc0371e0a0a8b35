/* One process of the endurance run (run.py): threads that prepare, launch and check kernels of a few
 * contracts, on contexts that come and go, until its standard input closes. A line a second tells how far it
 * is. */
#define FIXTURE_PLAIN
#include "../api/fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_THREADS = 64, CONTRACTS = 12, ROUNDS = 6 };

typedef struct totals {
  atomic_long launches, prepared, compiled, contexts, wrong, failed;
  atomic_bool over;
} totals;

static totals all;
/* The output of every contract, by bits: of this process's first launch, or of the file that another wrote.
 */
static float expected[CONTRACTS][OUT_FLOATS];

static void contract_text(int number, char text[512]) {
  snprintf(text, 512,
           "heddle: 1\nname: endurance-%d\nkernels: [decode]\nquery: {dtype: bf16, heads_per_kv: 4}\n"
           "head_dim: 64\nkv: {dtype: bf16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\n"
           "logits: {scale: rsqrt_d, softcap: %s}\nmask: {window: %s}\noutput: {dtype: fp32}\n",
           number, number % 2 ? "30" : "none",
           number / 2 == 0 ? "none" : (const char *[]){"", "9", "16", "33", "50", "64"}[number / 2]);
}

static uint32_t next_of(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* A thread's failures are counted and told; they end nothing. */
static bool good(hd_status status, hd_diagnostics *why_not, const char *what) {
  if (status == HD_OK) return true;
  atomic_fetch_add(&all.failed, 1);
  fprintf(stderr, "%s: %s\n", what, hd_diagnostics_text(why_not));
  return false;
}

typedef struct memory {
  hd_context *context;
  hd_tensor tensors[READ_COUNT];
  uint64_t pieces[READ_COUNT + 1];
  int count;
} memory;

static bool put(memory *m, const void *from, size_t bytes, uint64_t *out, hd_diagnostics *why_not) {
  if (!good(hd_memory_allocate(m->context, bytes, out, why_not), why_not, "memory")) return false;
  m->pieces[m->count++] = *out;
  return from == NULL ||
         good(hd_memory_copy_in(m->context, NULL, *out, from, bytes, why_not), why_not, "copy");
}

static bool put_noise(memory *m, size_t count, uint32_t state, uint64_t *out, hd_diagnostics *why_not) {
  uint16_t *values = malloc(count * sizeof *values);
  if (values == NULL) return false;
  for (size_t i = 0; i < count; i++)
    values[i] = (uint16_t)(0x3f00 | (next_of(&state) >> 8 & 0x80ff));
  bool done = put(m, values, count * sizeof *values, out, why_not);
  free(values);
  return done;
}

static bool fill(memory *m, hd_diagnostics *why_not) {
  static const int32_t lengths[SEQS] = {40, 7, 100};
  int32_t table[PAGES];
  uint64_t q = 0, k = 0, v = 0, pages = 0, longs = 0, out = 0;
  const size_t elements = (size_t)PAGES * PAGE * KV_HEADS * DIM;
  for (int i = 0; i < PAGES; i++)
    table[i] = (i * 7 + 3) % PAGES;
  if (!put_noise(m, SEQS * Q_HEADS * DIM, 1, &q, why_not) || !put_noise(m, elements, 2, &k, why_not) ||
      !put_noise(m, elements, 3, &v, why_not) || !put(m, table, sizeof table, &pages, why_not) ||
      !put(m, lengths, sizeof lengths, &longs, why_not) ||
      !put(m, NULL, OUT_FLOATS * sizeof(float), &out, why_not))
    return false;
  const hd_tensor tensors[READ_COUNT] = {
      tensor_of(HD_TENSOR_Q, HD_DTYPE_BF16, q, 3, query_shape),
      tensor_of(HD_TENSOR_K_CACHE, HD_DTYPE_BF16, k, 4, cache_shape),
      tensor_of(HD_TENSOR_V_CACHE, HD_DTYPE_BF16, v, 4, cache_shape),
      tensor_of(HD_TENSOR_PAGE_TABLE, HD_DTYPE_INT32, pages, 2, table_shape),
      tensor_of(HD_TENSOR_LENGTHS, HD_DTYPE_INT32, longs, 1, lengths_shape),
      tensor_of(HD_TENSOR_OUT, HD_DTYPE_FP32, out, 3, query_shape)};
  memcpy(m->tensors, tensors, sizeof tensors);
  return true;
}

static bool prepare_one(memory *m, int number, bool in_background, hd_kernel **out, hd_diagnostics *why_not) {
  char text[512];
  hd_contract *c = NULL;
  hd_future *f = NULL;
  contract_text(number, text);
  if (!good(hd_contract_parse(text, strlen(text), &c, why_not), why_not, "contract")) return false;
  const hd_job job = job_of(c, HD_DECODE);
  hd_status status = in_background ? hd_prepare_async(m->context, &job, 1, NULL, NULL, &f, why_not)
                                   : hd_prepare(m->context, &job, out, why_not);
  if (in_background && status == HD_OK) status = hd_future_take(f, 0, out, why_not);
  hd_future_destroy(f);
  hd_contract_destroy(c);
  if (!good(status, why_not, "preparing")) return false;
  MAKE(hd_kernel_info, info);
  if (hd_kernel_get_info(*out, &info) == HD_OK)
    atomic_fetch_add(strcmp(info.origin, "compiled") == 0 ? &all.compiled : &all.prepared, 1);
  return true;
}

static bool launch_one(memory *m, hd_kernel *k, float got[OUT_FLOATS], hd_diagnostics *why_not) {
  MAKE(hd_arguments, a);
  a.tensors = m->tensors;
  a.tensor_count = READ_COUNT;
  a.splits = 1;
  const uint64_t out = m->tensors[READ_COUNT - 1].address;
  memset(got, 0, OUT_FLOATS * sizeof(float));
  return good(hd_memory_fill(m->context, NULL, out, 0xff, OUT_FLOATS * sizeof(float), why_not), why_not,
              "fill") &&
         good(hd_launch(k, &a, NULL, why_not), why_not, "launching") &&
         good(hd_memory_copy_out(m->context, NULL, got, out, OUT_FLOATS * sizeof(float), why_not), why_not,
              "copy out");
}

/* A context's life: some kernels, each launched once or twice. */
static void live(uint32_t *state, hd_diagnostics *why_not) {
  memory m = {0};
  MAKE(hd_context_options, o);
  float got[OUT_FLOATS];
  o.device = "emu:gfx950";
  o.compile_seconds = 600; /* on cores that many share */
  if (!good(hd_context_create(&o, &m.context, why_not), why_not, "context")) return;
  atomic_fetch_add(&all.contexts, 1);
  bool fine = fill(&m, why_not);
  for (int round = 0; fine && round < ROUNDS && !all.over; round++) {
    int number = (int)(next_of(state) % CONTRACTS);
    hd_kernel *k = NULL;
    fine = prepare_one(&m, number, next_of(state) % 3 == 0, &k, why_not) && launch_one(&m, k, got, why_not);
    if (fine) atomic_fetch_add(&all.launches, 1);
    if (fine && memcmp(got, expected[number], sizeof got) != 0) {
      atomic_fetch_add(&all.wrong, 1);
      fprintf(stderr, "contract %d: another output than at first\n", number);
    }
    hd_kernel_release(k);
  }
  for (int i = 0; i < m.count; i++)
    hd_memory_release(m.context, m.pieces[i], NULL);
  hd_context_destroy(m.context);
}

static void *work(void *user) {
  uint32_t state = *(uint32_t *)user;
  hd_diagnostics *why_not = NULL;
  if (hd_diagnostics_create(&why_not) != HD_OK) return NULL;
  while (!all.over)
    live(&state, why_not);
  hd_diagnostics_destroy(why_not);
  return NULL;
}

static long resident_kilobytes(void) {
  long pages = 0, ignored = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
  if (f != NULL) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void tell(void) {
  printf("{\"launches\": %ld, \"prepared\": %ld, \"compiled\": %ld, \"contexts\": %ld, \"wrong\": %ld, "
         "\"failed\": %ld, "
         "\"rss_kb\": %ld}\n",
         all.launches, all.prepared, all.compiled, all.contexts, all.wrong, all.failed, resident_kilobytes());
  fflush(stdout);
}

/* `worker expect FILE` launches every contract once and keeps what comes out. */
static int keep_expected(const char *path) {
  memory m = {.context = open_context("emu:gfx950")};
  cr_assert(fill(&m, why), "no memory");
  for (int i = 0; i < CONTRACTS; i++) {
    hd_kernel *k = NULL;
    cr_assert(prepare_one(&m, i, false, &k, why) && launch_one(&m, k, expected[i], why), "contract %d", i);
    hd_kernel_release(k);
  }
  FILE *f = fopen(path, "wb");
  cr_assert(f != NULL && fwrite(expected, sizeof expected, 1, f) == 1 && fclose(f) == 0, "%s", path);
  hd_context_destroy(m.context);
  hd_diagnostics_destroy(why);
  return 0;
}

int main(int argc, char **argv) {
  static pthread_t threads[MOST_THREADS];
  static uint32_t seeds[MOST_THREADS];
  if (argc == 3 && strcmp(argv[1], "expect") == 0) return keep_expected(argv[2]);
  cr_assert(argc == 4, "usage: worker expect FILE, or: worker FILE THREADS SEED");
  FILE *f = fopen(argv[1], "rb");
  cr_assert(f != NULL && fread(expected, sizeof expected, 1, f) == 1, "%s", argv[1]);
  fclose(f);
  int count = atoi(argv[2]);
  cr_assert(count >= 1 && count <= MOST_THREADS, "%s threads", argv[2]);
  for (int i = 0; i < count; i++) {
    seeds[i] = (uint32_t)atoi(argv[3]) * 977u + (uint32_t)i;
    cr_assert_eq(pthread_create(&threads[i], NULL, work, &seeds[i]), 0, "no thread");
  }
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) /* the driver asks */
    tell();
  all.over = true;
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  tell();
  return all.wrong + all.failed > 0;
}
