/* The build pipeline between a generator and a compiler that only count: both are replaced here, so what is
 * under test is which jobs are compiled, how often, and what their results say. */
#include "../../runtime/build.h"
#include "../cache/cache_fixture.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char identity[64];             /* of the compiler */
static int batches, compiled, widest; /* calls of compile_all, requests, most requests in a call */
static const char *spoil;             /* what the compiler does to the next code objects */
static unsigned char code[16384];
static size_t code_size;

/* The generator: the contract's page is its meaning here; page 1 is declined. */

const char *operation_name(operation o) {
  return o == OPERATION_WRITE ? "write" : "decode";
}

const template_source *templates_embedded(void) {
  return NULL;
}

hd_status emit_operation(const contract *c, operation o, const variant *v, const target *t,
                         const template_source *templates, emission *out_emission, diags *errors) {
  char source[64];
  (void)v;
  (void)templates;
  if (c->kv.page == 1) {
    diags_errorf(errors, "decline.page", "kv.page", "page 1 is not served");
    return HD_DECLINED;
  }
  emission e = {0};
  descriptor *d = &e.descriptor;
  const extent one = {.multiplier = 1, .divisor = 1};
  snprintf(source, sizeof source, "source of %s page %d\n", operation_name(o), c->kv.page);
  e.source = strdup(source);
  snprintf(d->operation, sizeof d->operation, "%s", operation_name(o));
  snprintf(d->target, sizeof d->target, "%s", t->name);
  snprintf(d->contract_key, sizeof d->contract_key, "contract %d", c->kv.page);
  strcpy(d->variant, "w4");
  d->workspace = one;
  d->tile_tokens = 16;
  d->kernel_count = 1;
  d->kernels[0] = (kernel_descriptor){
      .symbol = "sample_rotate",
      .grid = {one, one, one},
      .block = 64,
      .argument_count = 3,
      .arguments = {{ARGUMENT_TENSOR, TENSOR_OUT}, {ARGUMENT_TENSOR, TENSOR_Q}, {ARGUMENT_DIM, DIM_TOKENS}},
  };
  *out_emission = e;
  return HD_OK;
}

void emission_finish(emission *e) {
  free(e->source);
}

/* The compiler: gives the sample kernels for gfx950, whatever the source. */

const char *compiler_name(compiler_kind k) {
  return k == COMPILER_LLVM ? "llvm" : "hiprtc";
}

hd_status compiler_find(compiler_kind kind, const target *t, compiler *out_compiler, diags *errors) {
  if (kind == COMPILER_NVRTC) {
    diags_errorf(errors, "compile.none", NULL, "no compiler for %s", t->name);
    return HD_UNAVAILABLE;
  }
  *out_compiler = (compiler){.kind = kind, .version = "1.0"};
  snprintf(out_compiler->identity, sizeof out_compiler->identity, "%s", identity);
  return HD_OK;
}

int compiler_options(compiler_kind kind, const target *t, const char *out_options[32]) {
  (void)kind;
  (void)t;
  out_options[0] = "-O3";
  return 1;
}

void compile_all(const compiler *c, const compile_request *requests, compile_result *results, int count,
                 int jobs, const compile_limits *limits) {
  (void)c;
  (void)jobs;
  (void)limits;
  batches++;
  compiled += count;
  widest = count > widest ? count : widest;
  for (int i = 0; i < count; i++) {
    compile_result *r = &results[i];
    *r = (compile_result){.status = HD_OK, .seconds = 0.25, .code_object_size = code_size};
    diags_init(&r->diags);
    if (spoil != NULL && strcmp(spoil, "declines") == 0) {
      r->status = HD_DECLINED;
      diags_errorf(&r->diags, "compile.error", NULL, "%s does not compile", requests[i].name);
      continue;
    }
    r->code_object = malloc(code_size);
    memcpy(r->code_object, code, code_size);
    if (spoil != NULL && strcmp(spoil, "lies") == 0)
      ((char *)r->code_object)[48] ^= 1; /* another ELF machine */
  }
}

void compile_result_finish(compile_result *r) {
  free(r->code_object);
  diags_finish(&r->diags);
}

static void start(void) {
  unsigned char *bytes = sample_read("gfx950", &code_size);
  memcpy(code, bytes, code_size);
  free(bytes);
  strcpy(identity, "compiler 1");
  make_folder();
}

TestSuite(build, .init = start, .fini = remove_folder, .timeout = 60);

enum { JOBS = 6 };

/* Pages 16, 32, 16, 64, 32, 16: three different keys. */
static void make_jobs(contract contracts[JOBS], build_job jobs[JOBS]) {
  static const int pages[JOBS] = {16, 32, 16, 64, 32, 16};
  for (int i = 0; i < JOBS; i++) {
    memset(&contracts[i], 0, sizeof contracts[i]);
    contracts[i].kv.page = pages[i];
    jobs[i] = (build_job){.contract = &contracts[i],
                          .name = "spec",
                          .operation = OPERATION_DECODE,
                          .target = target_find("gfx950")};
  }
}

static void finish_results(build_result *results, int count) {
  for (int i = 0; i < count; i++)
    build_result_finish(&results[i]);
}

Test(build, jobs_of_one_key_compile_once_and_all_are_served) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result results[JOBS];
  cache *c = open_cache();
  make_jobs(contracts, jobs);
  build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
  cr_expect(compiled == 3 && batches == 1 && widest == 3, "%d compiled in %d batches", compiled, batches);
  for (int i = 0; i < JOBS; i++) {
    cr_expect(results[i].status == HD_OK);
    cr_expect(results[i].entry.code_object_size == code_size &&
              memcmp(results[i].entry.code_object, code, code_size) == 0);
    cr_expect_str_eq(results[i].entry.descriptor->kernels[0].symbol, "sample_rotate");
    cr_expect_str_eq(results[i].compiler, "hiprtc 1.0");
    cr_expect(results[i].hit == (results[i].compile_seconds == 0.0));
  }
  cr_expect(!results[0].hit && !results[1].hit && results[2].hit && !results[3].hit && results[4].hit);
  cr_expect_str_eq(results[0].key, results[2].key);
  cr_expect(strcmp(results[0].key, results[1].key) != 0);
  finish_results(results, JOBS);
  cache_close(c);
}

Test(build, a_second_build_compiles_nothing) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result results[JOBS];
  make_jobs(contracts, jobs);
  for (int round = 0; round < 3; round++) {
    cache *c = open_cache();
    build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
    for (int i = 0; i < JOBS; i++)
      cr_expect(results[i].status == HD_OK && (round == 0 || results[i].hit));
    cr_expect(compiled == 3, "round %d: %d compiled", round, compiled);
    finish_results(results, JOBS);
    cache_close(c);
  }
}

Test(build, whatever_the_code_depends_on_is_in_the_key) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result r;
  char key[65];
  cache *c = open_cache();
  make_jobs(contracts, jobs);
  build_all(c, COMPILER_HIPRTC, jobs, &r, 1, 1, NULL);
  memcpy(key, r.key, sizeof key);
  cr_expect(strstr(r.entry.key_text, "compiler: compiler 1\noptions: -O3\n") != NULL);
  cr_expect(strstr(r.entry.key_text,
                   "contract: contract 16\noperation: decode\nvariant: w4\ntarget: gfx950\nsource: ") !=
            NULL);
  cr_expect(strstr(r.entry.key_text, folder) == NULL && strstr(r.entry.key_text, "spec") == NULL,
            "no path, no name");
  build_result_finish(&r);
  strcpy(identity, "compiler 2");
  build_all(c, COMPILER_HIPRTC, jobs, &r, 1, 1, NULL);
  cr_expect(strcmp(r.key, key) != 0 && !r.hit && compiled == 2, "another compiler, another key");
  build_result_finish(&r);
  strcpy(identity, "compiler 1");
  jobs[0].operation = OPERATION_WRITE;
  build_all(c, COMPILER_HIPRTC, jobs, &r, 1, 1, NULL);
  cr_expect(strcmp(r.key, key) != 0 && compiled == 3);
  build_result_finish(&r);
  cache_close(c);
}

Test(build, a_job_that_fails_says_why_and_leaves_the_others_alone) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result results[JOBS];
  cache *c = open_cache();
  make_jobs(contracts, jobs);
  contracts[1].kv.page = 1;
  build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
  cr_expect(results[1].status == HD_DECLINED && results[1].diags.count == 1);
  cr_expect_str_eq(results[1].diags.items[0].code, "decline.page");
  cr_expect_str_eq(results[1].key, "");
  for (int i = 0; i < JOBS; i++)
    cr_expect(i == 1 || results[i].status == HD_OK);
  finish_results(results, JOBS);
  build_all(c, COMPILER_NVRTC, jobs, results, 1, 2, NULL);
  cr_expect(results[0].status == HD_UNAVAILABLE && results[0].diags.count == 1, "no compiler");
  finish_results(results, 1);
  cache_close(c);
}

Test(build, source_that_does_not_compile_is_told_for_every_job_and_not_stored) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result results[JOBS];
  cache *c = open_cache();
  make_jobs(contracts, jobs);
  spoil = "declines";
  build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
  cr_expect(compiled == 3, "a failed key is not tried again for its next job");
  for (int i = 0; i < JOBS; i++) {
    cr_assert(results[i].status == HD_DECLINED && results[i].diags.count == 1);
    cr_expect_str_eq(results[i].diags.items[0].message, "spec/decode does not compile");
  }
  finish_results(results, JOBS);
  spoil = NULL;
  build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
  cr_expect(compiled == 6 && results[0].status == HD_OK);
  finish_results(results, JOBS);
  cache_close(c);
}

Test(build, a_compiler_that_lies_is_caught) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result r;
  cache *c = open_cache();
  make_jobs(contracts, jobs);
  spoil = "lies";
  build_all(c, COMPILER_HIPRTC, jobs, &r, 1, 1, NULL);
  cr_expect(r.status == HD_DECLINED && r.diags.count == 1);
  cr_expect_str_eq(r.diags.items[0].code, "cache.target");
  cr_expect(counts_of(c).stores == 0, "nothing is stored");
  build_result_finish(&r);
  cache_close(c);
}

Test(build, processes_share_the_work) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  int pipes[2], sum = 0, count;
  make_jobs(contracts, jobs);
  cr_assert(pipe(pipes) == 0);
  for (int p = 0; p < 6; p++) {
    if (fork() != 0) continue;
    build_result results[JOBS];
    cache *c = open_cache();
    build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 2, NULL);
    int bad = 0;
    for (int i = 0; i < JOBS; i++)
      bad += results[i].status != HD_OK;
    bad += write(pipes[1], &compiled, sizeof compiled) != sizeof compiled;
    _exit(bad);
  }
  for (int p = 0; p < 6; p++) {
    int status;
    wait(&status);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(read(pipes[0], &count, sizeof count) == sizeof count);
    sum += count;
  }
  cr_expect(sum == 3, "three keys, %d compiles in six processes", sum);
}

static void lock_jobs(cache *c, const void *user) {
  const build_job *jobs = user;
  for (int i = 0; i < JOBS; i++) {
    text key;
    cache_lock *lock = NULL;
    emission e = {0};
    compiler found;
    diags errors;
    diags_init(&errors);
    text_init(&key);
    emit_operation(jobs[i].contract, jobs[i].operation, NULL, jobs[i].target, NULL, &e, &errors);
    compiler_find(COMPILER_HIPRTC, jobs[i].target, &found, &errors);
    build_key_text(&jobs[i], &e, &found, &key);
    hd_status status = cache_lock_key(c, text_string(&key), 0, &lock);
    if (status != HD_OK && status != HD_UNAVAILABLE) _exit(1); /* unavailable: the key of an earlier job */
  }
}

Test(build, a_process_that_never_finishes_costs_its_time_out_once) {
  contract contracts[JOBS];
  build_job jobs[JOBS];
  build_result results[JOBS];
  const compile_limits limits = {.seconds = 0.5};
  struct timespec from, to;
  make_jobs(contracts, jobs);
  pid_t holder = fork_holder_of(lock_jobs, jobs);
  cache *c = open_cache();
  clock_gettime(CLOCK_MONOTONIC, &from);
  build_all(c, COMPILER_HIPRTC, jobs, results, JOBS, 1, &limits);
  clock_gettime(CLOCK_MONOTONIC, &to);
  double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  cr_expect(seconds >= 0.5 && seconds < 1.4,
            "three keys are held: one wait of 0.5 s, not three; it took %g s", seconds);
  cr_expect(compiled == 3, "it compiles for itself");
  for (int i = 0; i < JOBS; i++)
    cr_expect(results[i].status == HD_OK);
  finish_results(results, JOBS);
  cache_close(c);
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
}

Test(build, nothing_to_build_is_fine) {
  cache *c = open_cache();
  build_all(c, COMPILER_HIPRTC, NULL, NULL, 0, 0, NULL);
  cr_expect(batches == 0);
  cache_close(c);
}
