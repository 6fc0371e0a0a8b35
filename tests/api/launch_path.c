/* The promise of the launch path, held: once a kernel is ready, launches allocate nothing, take no lock and
 * make no system call. The allocator and the locks of the C library are replaced by ones that count; while
 * launches run, a seccomp filter turns every system call into a signal that counts too. The driver is a fake
 * that only remembers (HEDDLE_HIP_LIBRARY): what it would do is not heddle's.
 *
 *   launch_path [allocation | lock | call]     with an argument: one of these is planted
 *
 * Exit code 0: nothing was counted but what was planted, and every launch reached the driver. */
#include "../runtime/fake_driver.h"
#include <dlfcn.h>
#include <errno.h>
#include <heddle.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t watching, calls, last_call;
static volatile int allocations, locks;

/* ---- The C library's functions, counted ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes) {
  allocations += watching;
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  allocations += watching;
  return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
  allocations += watching;
  return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations += watching;
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out_memory, size_t alignment, size_t bytes) {
  allocations += watching;
  *out_memory = __libc_memalign(alignment, bytes);
  return *out_memory != NULL ? 0 : ENOMEM;
}

void free(void *memory) {
  allocations += watching;
  __libc_free(memory);
}

/* X(function, parameters, arguments): everything that may wait for another thread. */
#define LOCKS(X)                                                                                             \
  X(pthread_mutex_lock, (pthread_mutex_t * m), (m))                                                          \
  X(pthread_mutex_trylock, (pthread_mutex_t * m), (m))                                                       \
  X(pthread_mutex_unlock, (pthread_mutex_t * m), (m))                                                        \
  X(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))                                                      \
  X(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))                                                      \
  X(pthread_spin_lock, (pthread_spinlock_t * l), (l))                                                        \
  X(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t * m), (c, m))                                    \
  X(pthread_cond_broadcast, (pthread_cond_t * c), (c))                                                       \
  X(pthread_once, (pthread_once_t * once, void (*function)(void)), (once, function))                         \
  X(sem_wait, (sem_t * s), (s))

#define X(function, parameters, arguments) static int(*real_##function) parameters;
LOCKS(X)
#undef X

/* glibc: dlsym itself may lock, so all are looked up before the first is used from here. */
static void find_locks(void) {
  void *address;
#define X(function, parameters, arguments)                                                                   \
  address = dlsym(RTLD_NEXT, #function);                                                                     \
  memcpy(&real_##function, &address, sizeof address);
  LOCKS(X)
#undef X
}

#define X(function, parameters, arguments)                                                                   \
  int function parameters {                                                                                  \
    locks += watching;                                                                                       \
    if (real_##function == NULL) find_locks();                                                               \
    return real_##function arguments;                                                                        \
  }
LOCKS(X)
#undef X

/* ---- System calls ---- */

static void on_call(int signal_number, siginfo_t *info, void *context) {
  (void)signal_number;
  (void)context;
  calls++;
  last_call = info->si_syscall;
}

/* From here on only these are let through: what ends the program and says how it went. */
static bool forbid_calls(void) {
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof code / sizeof *code, code};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ---- The program ---- */

enum {
  SEQS = 8,
  KV_HEADS = 2,
  Q_HEADS = 8,
  DIM = 64,
  PAGE = 16,
  TABLE = 64,
  PAGES = 512,
  TOKENS = 8,
  ROUNDS = 2000
};
enum { LAUNCHES = 5 /* of the device in a round: decode and merge, bound decode and merge, write */ };

static const char spec[] = "heddle: 1\nname: path\nkernels: [write, decode]\n"
                           "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
                           "kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s, d]}\n"
                           "scale: {granularity: token_head, dtype: fp32, k: [b, h, s], v: [b, h, s]}\n"
                           "logits: {scale: argument}\noutput: {dtype: bf16}\n";

static hd_diagnostics *why;

static void check(hd_status status, const char *what) {
  if (status == HD_OK) return;
  fprintf(stderr, "%s: %s\n%s", what, hd_status_text(status), hd_diagnostics_text(why));
  exit(3);
}

static const int64_t query[] = {SEQS, Q_HEADS, DIM}, k_cache[] = {PAGES, KV_HEADS, DIM / 16, PAGE, 16},
                     v_cache[] = {PAGES, KV_HEADS, PAGE, DIM}, scales[] = {PAGES, KV_HEADS, PAGE},
                     table[] = {SEQS, TABLE}, seqs[] = {SEQS}, tokens[] = {TOKENS, KV_HEADS, DIM},
                     slots[] = {TOKENS};
/* Addresses: the driver never looks at them. */
#define CACHE(name, dtype, n, rank, shape)                                                                   \
  { name, dtype, (n)*UINT64_C(0x100000), shape, NULL, NULL, rank, 0 }
#define CACHES                                                                                               \
  CACHE(HD_TENSOR_K_CACHE, HD_DTYPE_FP8_E4M3FN, 1, 5, k_cache),                                              \
      CACHE(HD_TENSOR_V_CACHE, HD_DTYPE_FP8_E4M3FN, 2, 4, v_cache),                                          \
      CACHE(HD_TENSOR_K_SCALE, HD_DTYPE_FP32, 3, 3, scales),                                                 \
      CACHE(HD_TENSOR_V_SCALE, HD_DTYPE_FP32, 4, 3, scales)
static const hd_tensor read_tensors[] = {CACHES, CACHE(HD_TENSOR_Q, HD_DTYPE_BF16, 5, 3, query),
                                         CACHE(HD_TENSOR_PAGE_TABLE, HD_DTYPE_INT32, 6, 2, table),
                                         CACHE(HD_TENSOR_LENGTHS, HD_DTYPE_INT32, 7, 1, seqs),
                                         CACHE(HD_TENSOR_OUT, HD_DTYPE_BF16, 8, 3, query)};
static const hd_tensor write_tensors[] = {CACHES, CACHE(HD_TENSOR_K, HD_DTYPE_BF16, 9, 3, tokens),
                                          CACHE(HD_TENSOR_V, HD_DTYPE_BF16, 10, 3, tokens),
                                          CACHE(HD_TENSOR_SLOT_MAPPING, HD_DTYPE_INT64, 11, 1, slots)};

static hd_arguments arguments_of(const hd_tensor *tensors, size_t count) {
  hd_arguments a;
  memset(&a, 0, sizeof a);
  a.size = sizeof a;
  a.tensors = tensors;
  a.tensor_count = count;
  a.workspace = UINT64_C(0x10000000);
  a.workspace_bytes = INT64_C(1) << 30;
  return a;
}

static fake_record *driver_record(void) {
  void *library = dlopen(getenv("HEDDLE_HIP_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  void *address = library != NULL ? dlsym(library, FAKE_RECORD) : NULL;
  fake_record *(*get)(void);
  memcpy(&get, &address, sizeof address);
  return get != NULL ? get() : NULL;
}

static const char *const plants[] = {"allocation", "lock", "call"};

static void plant(const char *what) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  if (strcmp(what, plants[0]) == 0) free(malloc(64));
  if (strcmp(what, plants[1]) == 0) pthread_mutex_lock(&mutex);
  if (strcmp(what, plants[2]) == 0) syscall(SYS_gettid);
}

static void say(const char *words) {
  if (write(STDOUT_FILENO, words, strlen(words)) < 0) _exit(4);
}

int main(int argc, char **argv) {
  hd_context_options options;
  hd_context *context = NULL;
  hd_contract *contract = NULL;
  hd_kernel *kernels[2];
  hd_status statuses[2];
  hd_job jobs[2];
  hd_stream *stream = NULL;
  hd_binding *binding = NULL;
  memset(&options, 0, sizeof options);
  memset(jobs, 0, sizeof jobs);
  options.size = sizeof options;
  options.device = "hip:0";
  check(hd_diagnostics_create(&why), "starting");
  check(hd_context_create(&options, &context, why), "hip:0");
  check(hd_contract_parse(spec, sizeof spec - 1, &contract, why), "the spec");
  for (int i = 0; i < 2; i++) {
    jobs[i].size = sizeof jobs[i];
    jobs[i].contract = contract;
    jobs[i].operation = i == 0 ? HD_DECODE : HD_WRITE;
  }
  check(hd_prepare_many(context, jobs, 2, NULL, NULL, kernels, statuses, why), "preparing");
  check(hd_stream_create(context, &stream, why), "a stream");
  hd_arguments decode = arguments_of(read_tensors, sizeof read_tensors / sizeof *read_tensors);
  const hd_arguments write_one = arguments_of(write_tensors, sizeof write_tensors / sizeof *write_tensors);
  check(hd_bind(kernels[0], &decode, &binding, why), "binding");
  const fake_record *record = driver_record();
  if (record == NULL || argc > 2) return 3;

  /* Nothing is warmed up: the first launch has to keep the promise too. */
  const int before = record->launches;
  hd_status worst = HD_OK;
  if (!forbid_calls()) return 3;
  watching = 1;
  for (int i = 0; i < ROUNDS; i++) {
    const hd_status all[] = {
        hd_launch(kernels[0], &decode, stream, why),
        hd_binding_set_address(binding, HD_TENSOR_OUT, (uint64_t)(i + 1) * 256),
        hd_binding_set_workspace(binding, (uint64_t)(i + 1) * 4096),
        hd_binding_launch(binding, stream, why),
        hd_launch(kernels[1], &write_one, stream, NULL),
    };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
      if (all[n] != HD_OK) worst = all[n];
    if (argc == 2 && i == ROUNDS / 2) plant(argv[1]);
  }
  watching = 0;
  char words[200];
  snprintf(words, sizeof words,
           "%d launches: %d allocations or frees, %d locks, %d system calls (last: %d)\n",
           record->launches - before, allocations, locks, (int)calls, (int)last_call);
  say(words);
  if (worst != HD_OK) say(hd_status_text(worst));
  const bool found[] = {allocations > 0, locks > 0, calls > 0};
  bool good = worst == HD_OK && record->launches - before == ROUNDS * LAUNCHES;
  for (int i = 0; i < 3; i++)
    good &= found[i] == (argc == 2 && strcmp(argv[1], plants[i]) == 0);
  _exit(good ? 0 : 1);
}
